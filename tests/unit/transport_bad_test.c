// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * transport_bad_test.c - those who do not play by the rules, on either end: wrong keys, volumes and
 * versions, damaged, oversized and random messages, more requests than credits, silence. Each costs
 * one connection and, at most, one line in the log; everyone else is served as before.
 */
#include "transport_fixture.h"
#include <arpa/inet.h>
#include <sys/stat.h>

#define WITNESS_SESSION 4242

static struct pvfs_peer *witness;	/* an ordinary client, connected all the while */
static char log_path[] = "/tmp/pvfs-transport-test.XXXXXX";

static int setup(const char *transport, const struct pvfs_server_params *p)
{
	fx_up(transport, p, 2);
	witness = fx_peer(NULL);
	pvfs_peer_set_session(witness, WITNESS_SESSION, NULL);
	assert_int_equal(fx_ping(witness), 0);
	return truncate(log_path, 0);
}

static int setup_tcp(void **state)
{
	return setup("tcp", NULL);
}

static int setup_loop(void **state)
{
	return setup("loop", NULL);
}

static int setup_impatient(void **state)
{
	struct pvfs_server_params p = fx_params;

	p.auth_ms = 200;
	return setup("tcp", &p);
}

static int teardown(void **state)
{
	struct pvfs_peer_counts *c = malloc(sizeof(*c));

	/* Unharmed: still the same connection. */
	assert_int_equal(fx_call_write(witness, 99, 100000), 0);
	assert_int_equal(fx_call_read(witness, 1, 99, 100000), 0);
	pvfs_peer_counts(witness, c);
	assert_int_equal(c->connects, 1);
	free(c);
	pvfs_peer_free(witness);
	fx_down();
	return 0;
}

/* How many lines of the log have @part in them. */
static int logged_now(const char *part)
{
	static char text[1 << 16];
	size_t len;
	int n = 0;
	char *s;
	FILE *f;

	f = fopen(log_path, "r");
	assert_non_null(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	for (s = text; (s = strstr(s, part)); s++)
		n++;
	return n;
}

/*
 * They come a little later than what they are about. Ten lines from one place in the code pass in
 * five seconds: the tests that ask for them come first, the others go by the counter.
 */
static void expect_logged(const char *part, int want)
{
	int n = logged_now(part), tries;

	for (tries = 0; n < want && tries < 1000; tries++) {
		fx_sleep_ms(5);
		n = logged_now(part);
	}
	assert_int_equal(n, want);
}

/* How many connections were closed for breaking the rules: waits until it is @want. */
static void expect_closed(unsigned int want)
{
	static char text[65536];
	struct iovec in = { text, sizeof(text) - 1 };
	unsigned int n = 0, tries;
	struct fx_rpc r;
	char *s;

	for (tries = 0; n < want && tries < 500; tries++) {
		fx_make_ping(&r, NULL);
		r.rpc.op = PVFS_OP_STATS;
		r.rpc.in = &in;
		r.rpc.nin = 1;
		assert_int_equal(pvfs_peer_call(witness, &r.rpc), 0);
		text[r.rpc.in_len] = '\0';
		s = strstr(text, "\"protocol_errors\":");
		assert_non_null(s);
		n = atoi(s + strlen("\"protocol_errors\":"));
		fx_sleep_ms(1);
	}
	assert_int_equal(n, want);
}

/*
 * ---------------------------------------------------------------- refused at the door, as the
 * client sees it
 */

#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)

static const char speaks_9[] = "it speaks version 9 of the protocol, we speak " TEXT(PVFS_PROTO_VERSION);

static void expect_refused(struct pvfs_peer_params *pp, int want, const char *text)
{
	struct pvfs_peer *p;
	char why[200];
	int err;

	p = fx_peer(pp);
	assert_int_equal(fx_ping(p), -ENOTCONN);
	assert_int_equal(pvfs_peer_state(p, &err, why, sizeof(why)), PVFS_PEER_REFUSED);
	assert_int_equal(err, want);
	if (!strstr(why, text))
		fail_msg("'%s' is not in '%s'", text, why);
	/* Not tried again by itself, nor for each request. */
	assert_int_equal(fx_ping(p), -ENOTCONN);
	pvfs_peer_free(p);
}

static void test_wrong_key(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_key wrong = fx.cluster;

	wrong.bytes[31] ^= 1;
	pp.key = &wrong;
	expect_refused(&pp, -EACCES, "refused our key");
	expect_logged("it does not know the cluster key", 1);
	/* The cluster key is not enough to pass for a server. */
	pp.key = &fx.cluster;
	pp.my_role = PVFS_ROLE_MGR;
	expect_refused(&pp, -EACCES, "refused our key");
	expect_logged("it does not know the server key", 1);
	pp.my_role = 77;
	expect_refused(&pp, -EACCES, "refused our key");
}

static void test_wrong_volume(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();

	strcpy(pp.volume, "volx");
	expect_refused(&pp, -ENOENT, "does not serve volume 'volx'");
	expect_logged("it asks for volume 'volx', this is 'vol'", 1);
	strcpy(pp.volume, "vo\x01");
	expect_refused(&pp, -ENOENT, "does not serve volume");
	expect_logged("volume 'vo?'", 1);
}

static void test_wrong_role(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();

	pp.its_role = PVFS_ROLE_MGR;
	expect_refused(&pp, -EPROTO, "it is an I/O daemon, not a manager");
}

static void test_no_key(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_key none = { 0 };
	struct pvfs_peer *p;

	pp.key = &none;
	assert_int_equal(pvfs_peer_new(fx.ce, &pp, &p), -EINVAL);
	pp.key = NULL;
	assert_int_equal(pvfs_peer_new(fx.ce, &pp, &p), -EINVAL);
	pp.key = &fx.cluster;
	pp.nconnect = 0;
	assert_int_equal(pvfs_peer_new(fx.ce, &pp, &p), -EINVAL);
}

/* ---------------------------------------------------------------- a server that is none */

struct fake {
	struct pvfs_addr addr;
	void *listener;
	int fd;
	u32 version;
	int status, sealed;	/* in the header, and under the mac */
	u64 session;		/* it says that it speaks of this one; 0: of what was asked for */
	bool bare;		/* no body, and so no mac */
	const char *greeting;
	bool wrong_mac;
	pthread_t thread;
};

static void fake_answer(struct raw *r, struct fake *f)
{
	struct pvfs_auth_rep rep = { .version = f->version, .role = PVFS_ROLE_IOD, .credits = 1 };
	struct pvfs_auth_req req;
	struct pvfs_header h = { .op = PVFS_OP_HELLO, .flags = PVFS_HF_REPLY };
	u8 body[256];

	if (f->greeting) {
		raw_send(r, f->greeting, strlen(f->greeting));
		return;
	}
	if (!raw_get(r))
		return;
	memcpy(r->n.client, r->body, PVFS_NONCE_LEN);
	memset(r->n.server, 'S', PVFS_NONCE_LEN);
	h.tag = r->h.tag;
	h.body_len = PVFS_NONCE_LEN;
	if (!raw_msg(r, &h, r->n.server, NULL) || !raw_get(r))
		return;
	h.op = PVFS_OP_AUTH;
	h.tag = r->h.tag;
	h.status = f->status;
	if (f->bare) {
		h.body_len = 0;
		raw_msg(r, &h, NULL, NULL);
		return;
	}
	assert_int_equal(pvfs_auth_req_decode(&req, r->body, r->h.body_len), 0);
	rep.session = f->session ?: req.session;
	rep.status = f->sealed;
	h.body_len = pvfs_auth_rep_encode(&rep, body, sizeof(body));
	pvfs_auth_seal(&fx.cluster, &r->n, true, body, h.body_len);
	body[0] ^= f->wrong_mac;
	raw_msg(r, &h, body, NULL);
}

/* Serves one connection and ends. */
static void *fake_run(void *arg)
{
	struct fake *f = arg;
	struct pollfd pfd = { .fd = f->fd, .events = POLLIN };
	struct raw r = { 0 };

	poll(&pfd, 1, 10000);
	if (!pvfs_tcp_ops.accept(f->listener, &r.x)) {
		fake_answer(&r, f);
		fx_sleep_ms(50);
		raw_close(&r);
	}
	return NULL;
}

static void fake_start(struct fake *f)
{
	const char *why;
	char text[40];

	snprintf(text, sizeof(text), "127.0.0.1:%u", free_port());
	assert_int_equal(pvfs_addr_resolve(text, 0, &f->addr, &why), 0);
	assert_int_equal(pvfs_tcp_ops.listen(&f->addr, 5, &f->listener, &f->fd), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
}

static void fake_end(struct fake *f)
{
	pthread_join(f->thread, NULL);
	pvfs_tcp_ops.unlisten(f->listener);
}

static void test_version(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct fake f = { .version = 9, .status = 71, .sealed = 71 };

	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EPROTO, speaks_9);
	fake_end(&f);
	/* One that thinks that this is no reason to refuse. */
	f = (struct fake){ .version = 9 };
	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EPROTO, speaks_9);
	fake_end(&f);
	f = (struct fake){ .version = PVFS_PROTO_VERSION, .status = 71, .sealed = 71 };
	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EPROTO, "lacks a feature");
	fake_end(&f);
}

/* Someone who pretends to be a server, without the key. */
static void test_impostor(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct fake f = { .version = PVFS_PROTO_VERSION, .wrong_mac = true };

	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EACCES, "could not prove that it knows our key");
	fake_end(&f);
}

static void on_lost(struct pvfs_peer *p)
{
	atomic_fetch_add((atomic_uint *)pvfs_peer_arg(p), 1);
}

/*
 * Whoever answers there says no, and can't prove who he is: nothing that the client has is given up for
 * that, it is a connection that broke. What is proved counts.
 */
static void test_forged_refusal(void **state)
{
	static const struct fake fakes[] = {
		{ .status = ESTALE, .bare = true },
		{ .status = ENOENT, .bare = true },
		{ .status = EPROTO, .bare = true },
		{ .status = EPERM, .bare = true },
		{ .status = ESTALE, .sealed = ESTALE, .wrong_mac = true },
		{ .status = EACCES, .sealed = EACCES, .wrong_mac = true },
		/* An answer of the server's, with another status than it had. */
		{ .status = ESTALE },
		{ .status = ENOENT },
		{ .status = ESTALE, .sealed = EPROTO },
		/* The server's word about another session. */
		{ .status = ESTALE, .sealed = ESTALE, .session = 41 },
	};
	struct pvfs_peer_params pp = fx_peer_params();
	atomic_uint lost = 0;
	struct pvfs_peer *p;
	struct fake f;
	unsigned int i;
	char why[200];

	pp.session_lost = on_lost;
	pp.arg = &lost;
	pp.hard = 0;
	pp.fail_ms = 300;
	for (i = 0; i < ARRAY_SIZE(fakes); i++) {
		f = fakes[i];
		f.version = PVFS_PROTO_VERSION;
		fake_start(&f);
		pp.addr = f.addr;
		p = fx_peer(&pp);
		assert_int_equal(fx_ping(p), -ENOTCONN);
		fake_end(&f);
		assert_int_equal(pvfs_peer_state(p, NULL, why, sizeof(why)), PVFS_PEER_DOWN);
		assert_int_equal(atomic_load(&lost), 0);
		pvfs_peer_free(p);
	}
	f = (struct fake){ .version = PVFS_PROTO_VERSION, .status = ESTALE, .sealed = ESTALE };
	fake_start(&f);
	pp.addr = f.addr;
	p = fx_peer(&pp);
	assert_int_equal(fx_ping(p), -ENOTCONN);
	fake_end(&f);
	assert_int_equal(atomic_load(&lost), 1);
	pvfs_peer_free(p);
}

static void test_foreign_server(void **state)
{
	static const char *const greetings[] = {
		"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\nand so on, and so on, and so on, and so on.",
		"HTTP/1.1 400 Bad Request\r\nServer: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "",
	};
	static const char *const want[] = { "does not speak this protocol", "does not speak this protocol", "closed" };
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	struct fake f;
	char why[200];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(greetings); i++) {
		f = (struct fake){ .greeting = greetings[i] };
		fake_start(&f);
		pp.addr = f.addr;
		pp.hard = 0;
		pp.fail_ms = 400;	/* longer than the stranger keeps the connection */
		p = fx_peer(&pp);
		assert_int_equal(fx_ping(p), -ENOTCONN);
		fake_end(&f);
		pvfs_peer_state(p, NULL, why, sizeof(why));
		/* It may have tried again and found nobody. */
		if (!strstr(why, want[i]) && !strstr(why, "refused") && !strstr(why, "reset"))
			fail_msg("'%s' is not in '%s'", want[i], why);
		pvfs_peer_free(p);
	}
}

/* ---------------------------------------------------------------- a client that is none */

static void test_auth_by_hand(void **state)
{
	struct pvfs_auth_req m = { .version = PVFS_PROTO_VERSION + 1 };
	struct pvfs_auth_rep rep;
	struct raw r;
	int i;

	for (i = 0; i < 2; i++) {
		raw_open(&r);
		assert_true(raw_hello(&r));
		if (i)
			m = (struct pvfs_auth_req){ .required = 1ull << 60 };
		assert_true(raw_auth_send(&r, &m, &fx.cluster));
		assert_true(raw_get(&r));
		assert_int_equal(pvfs_errno_from_wire(r.h.status), EPROTO);
		assert_true(pvfs_auth_verify(&fx.cluster, &r.n, true, r.body, r.h.body_len));
		assert_int_equal(pvfs_auth_rep_decode(&rep, r.body, r.h.body_len), 0);
		assert_int_equal(rep.version, PVFS_PROTO_VERSION);
		assert_true(raw_closed(&r));
		raw_close(&r);
	}
	expect_logged("another version of the protocol", 1);
	expect_logged("a feature that is not known here", 1);
	/* Of its own volume, or session, a refusal says so under the mac, too. */
	fx.stale = 8;
	for (i = 0; i < 2; i++) {
		raw_open(&r);
		assert_true(raw_hello(&r));
		m = (struct pvfs_auth_req){ .session = 8, .volume = i ? PVFS_STR("else") : PVFS_STR("vol") };
		assert_true(raw_auth_send(&r, &m, &fx.cluster));
		assert_true(raw_get(&r));
		assert_int_equal(pvfs_errno_from_wire(r.h.status), i ? ENOENT : ESTALE);
		assert_true(pvfs_auth_verify(&fx.cluster, &r.n, true, r.body, r.h.body_len));
		assert_int_equal(pvfs_auth_rep_decode(&rep, r.body, r.h.body_len), 0);
		assert_int_equal(rep.status, r.h.status);
		assert_int_equal(rep.session, 8);
		assert_true(raw_closed(&r));
		raw_close(&r);
	}
	fx.stale = 0;
	/* A mac made for another connection's nonces. */
	raw_open(&r);
	assert_true(raw_hello(&r));
	r.n.server[5] ^= 4;
	m = (struct pvfs_auth_req){ 0 };
	assert_true(raw_auth_send(&r, &m, &fx.cluster));
	assert_true(raw_get(&r));
	assert_int_equal(pvfs_errno_from_wire(r.h.status), EACCES);
	assert_int_equal(r.h.body_len, 0);
	assert_true(raw_closed(&r));
	raw_close(&r);
}

/* Nothing, not even a ping, is answered before AUTH. */
static void test_before_auth(void **state)
{
	struct pvfs_header h = { .op = PVFS_OP_PING, .tag = 1 };
	struct pvfs_auth_req m = { 0 };
	struct raw r;

	raw_open(&r);
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_closed(&r));
	raw_close(&r);
	raw_open(&r);
	assert_true(raw_hello(&r));
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_closed(&r));
	raw_close(&r);
	/* AUTH without HELLO, HELLO twice, HELLO with a payload. */
	raw_open(&r);
	assert_true(raw_auth_send(&r, &m, &fx.cluster));
	assert_true(raw_closed(&r));
	raw_close(&r);
	raw_open(&r);
	assert_true(raw_hello(&r));
	assert_false(raw_hello(&r));
	raw_close(&r);
	raw_open(&r);
	h = (struct pvfs_header){ .op = PVFS_OP_HELLO, .payload_len = PVFS_PAYLOAD_MAX };
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_closed(5);
	/* And a second one afterwards. */
	raw_login(&r, 5, 0);
	h = (struct pvfs_header){ .op = PVFS_OP_HELLO };
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_closed(6);
}

static void test_slow_loris(void **state)
{
	struct raw idle, drip;
	u64 t0 = fx_now_ms();
	int i;

	raw_open(&idle);
	raw_open(&drip);
	for (i = 0; i < 60; i++) {
		if (!raw_send(&drip, "P", 1))
			break;
		fx_sleep_ms(20);
	}
	assert_true(i < 60);
	assert_true(raw_closed(&idle));
	assert_in_range(fx_now_ms() - t0, 190, 3000);
	raw_close(&idle);
	raw_close(&drip);
	expect_logged("did not prove itself within 200 ms", 2);
}

static void test_damaged(void **state)
{
	struct pvfs_header h = { .op = PVFS_OP_PING, .tag = 1 };
	struct pvfs_fsync_req req = { 0 };
	struct pvfs_hdr hdr;
	struct raw r;
	u8 body[64];
	int n;

	/* A header with a flipped bit. */
	raw_login(&r, 5, 0);
	pvfs_header_encode(&h, &hdr);
	((u8 *)&hdr)[20] ^= 1;
	assert_true(raw_send(&r, &hdr, sizeof(hdr)));
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_logged("damaged header", 1);
	/* A body with one. */
	raw_login(&r, 5, 0);
	n = pvfs_fsync_req_encode(&req, body, sizeof(body));
	h = (struct pvfs_header){ .op = PVFS_OP_FSYNC, .body_len = n, .body_crc = pvfs_crc32c(0, body, n) };
	pvfs_header_encode(&h, &hdr);
	body[3] ^= 128;
	assert_true(raw_send(&r, &hdr, sizeof(hdr)));
	assert_true(raw_send(&r, body, n));
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_logged("damaged body", 1);
	/* Over a limit: known from the header, nothing more is read. */
	raw_login(&r, 5, 0);
	h = (struct pvfs_header){ .op = PVFS_OP_WRITE, .payload_len = PVFS_PAYLOAD_MAX + 1 };
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_closed(&r));
	raw_close(&r);
	raw_login(&r, 5, 0);
	h = (struct pvfs_header){ .op = PVFS_OP_WRITE, .body_len = 1 << 30 };
	h.body_crc = 1;
	pvfs_header_encode(&h, &hdr);
	assert_true(raw_send(&r, &hdr, sizeof(hdr)));
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_logged("header over a limit", 2);
}

/* A payload's checksum, in both directions. */
static void test_payload_crc(void **state)
{
	struct pvfs_write_req req = { .off = 3 };
	struct pvfs_header h = { .op = PVFS_OP_WRITE, .tag = 8, .flags = PVFS_HF_PAYLOAD_CRC, .payload_len = 50000 };
	u8 body[64], *data = malloc(50000);
	struct raw r;

	raw_login(&r, 5, 0);
	fx_pattern(data, 50000, 3);
	h.body_len = pvfs_write_req_encode(&req, body, sizeof(body));
	h.payload_crc = pvfs_crc32c(0, data, 50000);
	assert_true(raw_msg(&r, &h, body, data));
	assert_true(raw_get(&r));
	assert_int_equal(r.h.status, 0);
	assert_true(raw_read(&r, 9, 1, 50000, PVFS_HF_PAYLOAD_CRC));
	assert_true(raw_get(&r));
	assert_int_equal(r.h.flags, PVFS_HF_REPLY | PVFS_HF_PAYLOAD_CRC);
	assert_int_equal(r.h.payload_crc, pvfs_crc32c(0, r.payload, 50000));
	data[49999] ^= 1;
	assert_true(raw_msg(&r, &h, body, data));
	assert_true(raw_closed(&r));
	raw_close(&r);
	free(data);
	expect_closed(1);
}

/* Sound headers that ask for what is not to be had are answered, and the connection goes on. */
static void test_unknown(void **state)
{
	struct pvfs_header h = { .op = 999, .tag = 5, .body_len = 11, .payload_len = 100000 };
	u8 *junk = calloc(1, 100000);
	struct raw r;

	raw_login(&r, 5, 0);
	assert_true(raw_msg(&r, &h, "hello world", junk));
	assert_true(raw_get(&r));
	assert_int_equal(r.h.op, 999);
	assert_int_equal(r.h.tag, 5);
	assert_int_equal(pvfs_errno_from_wire(r.h.status), EOPNOTSUPP);
	h.op = PVFS_OP_CREATE;
	assert_true(raw_msg(&r, &h, "hello world", junk));
	assert_true(raw_get(&r));
	assert_int_equal(pvfs_errno_from_wire(r.h.status), EOPNOTSUPP);
	/* A body that is not what it should be: the handler says so. */
	h = (struct pvfs_header){ .op = PVFS_OP_READ, .tag = 6, .body_len = 3 };
	assert_true(raw_msg(&r, &h, "abc", NULL));
	assert_true(raw_get(&r));
	assert_int_equal(pvfs_errno_from_wire(r.h.status), EBADMSG);
	assert_true(raw_ping(&r));
	raw_close(&r);
	free(junk);
}

static void test_wrong_direction(void **state)
{
	static const u32 flags[] = { PVFS_HF_REPLY, PVFS_HF_CALLBACK };
	struct pvfs_header h = { .op = PVFS_OP_PING, .tag = 5 };
	struct raw r;
	int i;

	for (i = 0; i < 2; i++) {
		raw_login(&r, 5, 0);
		h.flags = flags[i];
		assert_true(raw_msg(&r, &h, NULL, NULL));
		assert_true(raw_closed(&r));
		raw_close(&r);
	}
	/* An answer to a callback that was never made is a late one, as far as anyone can tell. */
	raw_login(&r, 5, 0);
	h.flags = PVFS_HF_REPLY | PVFS_HF_CALLBACK;
	assert_true(raw_msg(&r, &h, NULL, NULL));
	assert_true(raw_ping(&r));
	raw_close(&r);
}

static void test_random(void **state)
{
	u8 junk[4096];
	unsigned int seed = 1, i, k, n;
	struct raw r;

	for (i = 0; i < 200; i++) {
		n = 64 + rand_r(&seed) % (sizeof(junk) - 64);
		for (k = 0; k < n; k++)
			junk[k] = rand_r(&seed) >> 7;
		if (i % 2)
			raw_login(&r, 5, i % 7);
		else
			raw_open(&r);
		raw_send(&r, junk, n);
		assert_true(raw_closed(&r));
		raw_close(&r);
	}
	expect_closed(200);
	/* The log is not theirs to fill. */
	assert_in_range(logged_now("connection closed"), 0, 30);
}

/* Messages cut off anywhere. */
static void test_truncated(void **state)
{
	struct pvfs_write_req req = { .off = 3 };
	struct pvfs_header h = { .op = PVFS_OP_WRITE, .payload_len = 500 };
	u8 msg[1024] = { 0 };
	unsigned int n, total;
	struct raw r;

	h.body_len = pvfs_write_req_encode(&req, msg + PVFS_HDR_LEN, 100);
	h.body_crc = pvfs_crc32c(0, msg + PVFS_HDR_LEN, h.body_len);
	pvfs_header_encode(&h, (struct pvfs_hdr *)msg);
	total = PVFS_HDR_LEN + h.body_len + h.payload_len;
	for (n = 1; n < total; n += n < 120 ? 1 : 37) {
		raw_login(&r, 5, 0);
		assert_true(raw_send(&r, msg, n));
		raw_close(&r);
	}
	raw_login(&r, 5, 0);
	assert_true(raw_ping(&r));
	raw_close(&r);
}

/* ---------------------------------------------------------------- credits, replacement, many */

static void test_credits(void **state)
{
	struct raw r;
	u32 i;

	raw_login(&r, 5, 0);
	for (i = 0; i < fx_params.credits; i++)
		assert_true(raw_read(&r, i, 4, 10, 0));
	assert_true(fx_reach(&fx.dispatched, fx_params.credits));
	fx_release_held();
	for (i = 0; i < fx_params.credits; i++) {
		assert_true(raw_get(&r));
		assert_int_equal(r.h.credits, fx_params.credits);
	}
	for (i = 0; i <= fx_params.credits; i++)
		raw_read(&r, i, 4, 10, 0);
	assert_true(raw_closed(&r));
	raw_close(&r);
	expect_closed(1);
	fx_release_held();
}

/* Answers nobody takes are not kept without end. */
static void test_never_reads(void **state)
{
	struct raw r;
	u32 i;

	raw_login(&r, 5, 0);
	for (i = 0; i < 3000; i++)
		if (!raw_read(&r, i, 1, 100000, 0))
			break;
	expect_logged("does not read its replies", 1);
	raw_close(&r);
}

/* Who names another's session is refused, and what that one has is left alone. */
static void test_other_client(void **state)
{
	struct pvfs_auth_req m = { .session = 15, .channel = 3 };
	struct pvfs_auth_rep rep;
	struct raw a, b;

	fx.owned = 15;
	memset(m.ticket, FX_TICKET, sizeof(m.ticket));
	raw_open(&a);
	assert_true(raw_hello(&a));
	assert_true(raw_auth_send(&a, &m, &fx.cluster));
	assert_true(raw_get(&a));
	assert_int_equal(a.h.status, 0);
	m.ticket[PVFS_TICKET_LEN - 1] ^= 1;
	raw_open(&b);
	assert_true(raw_hello(&b));
	assert_true(raw_auth_send(&b, &m, &fx.cluster));
	assert_true(raw_get(&b));
	assert_int_equal(pvfs_errno_from_wire(b.h.status), EPERM);
	assert_true(pvfs_auth_verify(&fx.cluster, &b.n, true, b.body, b.h.body_len));
	assert_int_equal(pvfs_auth_rep_decode(&rep, b.body, b.h.body_len), 0);
	assert_int_equal(rep.status, b.h.status);
	assert_true(raw_closed(&b));
	raw_close(&b);
	expect_logged("session 15 is another client's", 1);
	assert_true(raw_ping(&a));
	raw_close(&a);
	fx.owned = 0;
}

static void test_replaced_waits(void **state)
{
	struct pvfs_auth_req m = { .session = 5, .channel = 3 };
	struct raw a, b, c, d;
	u64 t0;

	raw_login(&a, 5, 3);
	assert_true(raw_fsync(&a, 1, 400));
	assert_true(fx_reach(&fx.running, 1));
	t0 = fx_now_ms();
	/* Another channel, another session: not concerned. */
	raw_login(&d, 5, 4);
	raw_close(&d);
	raw_login(&d, 6, 3);
	assert_true(raw_ping(&d));
	assert_true(fx_now_ms() - t0 < 300);
	/*
	 * Two come for the place, one after the other; the last gets it, once the first one's
	 * request is done.
	 */
	raw_open(&b);
	assert_true(raw_hello(&b));
	assert_true(raw_auth_send(&b, &m, &fx.cluster));
	fx_sleep_ms(50);
	assert_int_equal(fx.finished, 0);
	raw_open(&c);
	assert_true(raw_hello(&c));
	assert_true(raw_auth_send(&c, &m, &fx.cluster));
	assert_true(raw_get(&c));
	assert_int_equal(c.h.status, 0);
	assert_int_equal(fx.finished, 1);
	assert_true(fx_now_ms() - t0 >= 300);
	assert_true(raw_ping(&c));
	assert_true(raw_closed(&a));
	assert_false(raw_get(&b));
	assert_true(raw_ping(&d));
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
	raw_close(&d);
}

static void test_kill_session(void **state)
{
	struct raw a, b, other;
	u64 t0;

	raw_login(&a, 5, 0);
	raw_login(&b, 5, 1);
	raw_login(&other, 6, 0);
	assert_true(raw_fsync(&a, 1, 300));
	assert_true(fx_reach(&fx.running, 1));
	t0 = fx_now_ms();
	pvfs_server_kill_session(fx.server, 5);
	assert_int_equal(fx.finished, 1);
	assert_true(fx_now_ms() - t0 >= 200);
	assert_true(raw_closed(&a));
	assert_true(raw_closed(&b));
	assert_true(raw_ping(&other));
	pvfs_server_kill_session(fx.server, 5);
	pvfs_server_kill_session(fx.server, 12345);
	raw_close(&a);
	raw_close(&b);
	raw_close(&other);
}

/* Two at once: nobody waits for what runs, unless he wants to. */
static void test_kill_many(void **state)
{
	static const u64 both[] = { 5, 7 };
	struct raw a, b, other;

	atomic_store(&fx.finished, 0);
	raw_login(&a, 5, 0);
	raw_login(&b, 7, 0);
	raw_login(&other, 6, 0);
	assert_true(raw_fsync(&a, 1, 300));
	assert_true(fx_reach(&fx.running, 1));
	pvfs_server_kill_begin(fx.server, both, 2);
	assert_int_equal(fx.finished, 0);
	assert_true(pvfs_server_session_busy(fx.server, 5));
	assert_false(pvfs_server_session_busy(fx.server, 7));
	assert_false(pvfs_server_session_busy(fx.server, 6));
	pvfs_server_kill_wait(fx.server, both, 2);
	assert_int_equal(fx.finished, 1);
	assert_true(raw_closed(&a));
	assert_true(raw_closed(&b));
	assert_true(raw_ping(&other));
	raw_close(&a);
	raw_close(&b);
	raw_close(&other);
}

/* AUTH that races the end of its session loses. */
static void test_auth_too_late(void **state)
{
	struct pvfs_auth_req m = { .session = 9 };
	struct raw r, again;

	fx.ends = 9;
	raw_open(&r);
	assert_true(raw_hello(&r));
	assert_true(raw_auth_send(&r, &m, &fx.cluster));
	assert_true(raw_get(&r));
	assert_int_equal(r.h.op, PVFS_OP_AUTH);
	assert_int_equal(r.h.status, ESTALE);
	assert_true(raw_closed(&r));
	raw_close(&r);
	/* The same when it has to wait for the connection that it replaces. */
	fx.stale = 0;
	raw_login(&r, 9, 0);
	assert_true(raw_fsync(&r, 1, 100));
	assert_true(fx_reach(&fx.running, 1));
	fx.ends = 9;
	raw_open(&again);
	assert_true(raw_hello(&again));
	assert_true(raw_auth_send(&again, &m, &fx.cluster));
	assert_false(raw_get(&again) && !again.h.status);
	assert_true(raw_closed(&r));
	fx.stale = 0;
	raw_close(&r);
	raw_close(&again);
}

static long resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_200_connections(void **state)
{
	enum { N = 200 };
	struct raw *r = calloc(N, sizeof(*r));
	long before = resident_kib(), grown;
	u32 i;

	for (i = 0; i < N; i++)
		raw_login(&r[i], 1000 + i, 0);
	for (i = 0; i < N; i++)
		assert_true(raw_read(&r[i], i, 1, 20000, 0));
	for (i = 0; i < N; i++) {
		assert_true(raw_get(&r[i]));
		assert_int_equal(r[i].h.payload_len, 20000);
		assert_true(fx_is_pattern(r[i].payload, 20000, 0));
	}
	/* Sanitizers keep what is freed: only a bound for what is certain to be wrong. */
	grown = resident_kib() - before;
	print_message("# 200 connections and their clients: %ld KiB\n", grown);
	assert_true(grown < 120000);
	assert_int_equal(fx_call_write(witness, 1, 1000), 0);
	for (i = 0; i < N; i++)
		raw_close(&r[i]);
	assert_true(fx_reach(&fx.closed, N));
	free(r);
}

static void test_max_conns(void **state)
{
	struct pvfs_server_params p = fx_params;
	struct pvfs_auth_req m = { .session = 6 };
	struct raw r[3];
	int i;

	/*
	 * The witness would not survive the change of servers: it gets its own connection back
	 * below.
	 */
	pvfs_peer_free(witness);
	fx_server_stop(0);
	p.max_conns = 3;
	fx_server_start(&p);
	for (i = 0; i < 3; i++)
		raw_login(&r[i], 5, i);
	{
		struct raw more;

		raw_open(&more);
		assert_true(raw_hello(&more));
		assert_true(raw_auth_send(&more, &m, &fx.cluster));
		assert_true(raw_closed(&more));
		raw_close(&more);
	}
	expect_logged("as many as configured", 1);
	/* In the place of another there is room. */
	raw_close(&r[2]);
	raw_login(&r[2], 5, 2);
	for (i = 0; i < 3; i++) {
		assert_true(raw_ping(&r[i]));
		raw_close(&r[i]);
	}
	assert_true(fx_reach(&fx.closed, 4));
	fx_sleep_ms(20);
	witness = fx_peer(NULL);
	pvfs_peer_set_session(witness, WITNESS_SESSION, NULL);
	assert_int_equal(fx_ping(witness), 0);
}

/* ---------------------------------------------------------------- keys, capabilities, addresses */

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_key_file(void **state)
{
	static const char hex[] = "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100";
	struct pvfs_key k = { 0 };
	const char *why = "";
	char path[64], text[100];

	snprintf(path, sizeof(path), "/tmp/pvfs-key-test.%d", getpid());
	snprintf(text, sizeof(text), "%s\n", hex);
	write_file(path, text, 0600);
	assert_int_equal(pvfs_key_load(path, &k, &why), 0);
	assert_true(k.present);
	assert_int_equal(k.bytes[1], 0x11);
	assert_int_equal(k.bytes[16], 0xff);
	write_file(path, hex, 0400);
	assert_int_equal(pvfs_key_load(path, &k, &why), 0);
	write_file(path, text, 0640);
	assert_int_equal(pvfs_key_load(path, &k, &why), -EACCES);
	assert_non_null(strstr(why, "chmod"));
	write_file(path, "", 0600);
	assert_int_equal(pvfs_key_load(path, &k, &why), -EINVAL);
	text[5] = 'g';
	write_file(path, text, 0600);
	assert_int_equal(pvfs_key_load(path, &k, &why), -EINVAL);
	snprintf(text, sizeof(text), "%s00\n", hex);
	write_file(path, text, 0600);
	assert_int_equal(pvfs_key_load(path, &k, &why), -EINVAL);
	unlink(path);
	assert_int_equal(pvfs_key_load(path, &k, &why), -ENOENT);
	assert_int_equal(pvfs_key_load("/tmp", &k, &why), -EACCES);
}

static void test_mac(void **state)
{
	/*
	 * RFC 4231, test case 1, but with a key of our length: its 20 bytes padded with zeros are
	 * the same key.
	 */
	static const u8 want[] = {
		0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b,
		0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83, 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7 };
	struct iovec iov[] = { { "Hi ", 3 }, { NULL, 0 }, { "There", 5 } };
	struct pvfs_fid fid = { .ino = 5, .gen = 6 }, other = { .ino = 5, .gen = 7 };
	u8 key[PVFS_KEY_LEN] = { 0 }, out[PVFS_MAC_LEN], uuid[PVFS_UUID_LEN] = { 1 };
	struct pvfs_key none = { 0 };
	struct pvfs_cap cap;

	memset(key, 0x0b, 20);
	pvfs_hmac(key, iov, 3, out);
	assert_memory_equal(out, want, sizeof(want));
	assert_true(pvfs_mac_equal(out, want, sizeof(want)));
	out[31] ^= 1;
	assert_false(pvfs_mac_equal(out, want, sizeof(want)));

	pvfs_cap_make(&fx.secret, uuid, 42, &fid, PVFS_CAP_READ, &cap);
	assert_true(pvfs_cap_check(&fx.secret, uuid, 42, &fid, &cap));
	assert_false(pvfs_cap_check(&fx.secret, uuid, 43, &fid, &cap));
	assert_false(pvfs_cap_check(&fx.secret, uuid, 42, &other, &cap));
	assert_false(pvfs_cap_check(&fx.cluster, uuid, 42, &fid, &cap));
	assert_false(pvfs_cap_check(&none, uuid, 42, &fid, &cap));
	cap.rights |= PVFS_CAP_WRITE;
	assert_false(pvfs_cap_check(&fx.secret, uuid, 42, &fid, &cap));
	cap.rights = PVFS_CAP_READ;
	uuid[0] = 2;
	assert_false(pvfs_cap_check(&fx.secret, uuid, 42, &fid, &cap));
}

static void test_addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1", "127.0.0.1:9", "localhost:65535", "*", "*:7000", "loop:x", "[::1]:80",
					    "::1" };
	static const char *const bad[] = { "", ":7100", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "[::1", "[::1]x",
					   "[]:5", "127.0.0.1:-1" };
	struct pvfs_addr a;
	const char *why;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(pvfs_addr_resolve(good[i], 7100, &a, &why), 0);
		assert_string_equal(a.text, good[i]);
	}
	assert_int_equal(pvfs_addr_resolve("127.0.0.1", 7100, &a, &why), 0);
	assert_int_equal(ntohs(((struct sockaddr_in *)&a.ss)->sin_port), 7100);
	assert_int_equal(pvfs_addr_resolve("127.0.0.1:9", 7100, &a, &why), 0);
	assert_int_equal(ntohs(((struct sockaddr_in *)&a.ss)->sin_port), 9);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		assert_int_equal(pvfs_addr_resolve(bad[i], 7100, &a, &why), -EINVAL);
		assert_non_null(why);
	}
	assert_ptr_equal(pvfs_xprt_for(&a), &pvfs_tcp_ops);
}

static void test_listen_fails(void **state)
{
	struct pvfs_server_params p = fx_params;
	struct pvfs_server *s;
	const char *why = "";

	/* The address is taken. */
	assert_int_equal(pvfs_server_start(fx.se, &fx.addr, 1, &p, &s, &why), -EADDRINUSE);
	assert_non_null(strstr(why, fx.addr.text));
	assert_non_null(strstr(why, "in use"));
}

#define T(test, how) cmocka_unit_test_setup_teardown(test, setup_##how, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_damaged, tcp),
		T(test_wrong_key, tcp),
		T(test_auth_by_hand, loop),
		T(test_wrong_volume, tcp),
		T(test_wrong_role, loop),
		T(test_no_key, loop),
		T(test_version, tcp),
		T(test_impostor, tcp),
		T(test_foreign_server, tcp),
		T(test_forged_refusal, tcp),
		T(test_before_auth, tcp),
		T(test_slow_loris, impatient),
		T(test_payload_crc, loop),
		T(test_unknown, tcp),
		T(test_wrong_direction, loop),
		T(test_random, tcp),
		T(test_random, loop),
		T(test_truncated, loop),
		T(test_credits, tcp),
		T(test_never_reads, tcp),
		T(test_other_client, tcp),
		T(test_replaced_waits, tcp),
		T(test_replaced_waits, loop),
		T(test_kill_session, tcp),
		T(test_kill_many, tcp), T(test_auth_too_late, tcp),
		T(test_200_connections, tcp),
		T(test_max_conns, tcp),
		T(test_key_file, loop),
		T(test_mac, loop),
		T(test_addresses, loop),
		T(test_listen_fails, tcp),
		T(test_listen_fails, loop),
	};
	int fd = mkstemp(log_path), rc;

	if (fd < 0 || pvfs_log_init("test", PVFS_LOG_WARNING, log_path))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = cmocka_run_group_tests_name("transport_bad", tests, NULL, NULL);
	close(fd);
	unlink(log_path);
	return rc;
}
