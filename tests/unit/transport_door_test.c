// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * transport_door_test.c - who is let in: wrong keys, volumes and versions, servers that are none and
 * what they say, sessions of others; keys, macs and addresses. Each costs one connection and, at most,
 * one line in the log; everyone else is served as before.
 */
#include "transport_witness.h"
#include <arpa/inet.h>
#include <sys/stat.h>

/*
 * ---------------------------------------------------------------- refused at the door, as the
 * client sees it
 */

#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)

#define OTHER 1000	/* a version of the protocol that nobody speaks yet */

static const char speaks_other[] = "it speaks version " TEXT(OTHER) " of the protocol, we speak " TEXT(PVFS_PROTO_VERSION);

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
	expect_refused(&pp, -EPROTOTYPE, "it is an I/O daemon, not a manager");
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
	u32 taken;		/* connections, by fake_close() */
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

static void fake_listen(struct fake *f)
{
	const char *why;
	char text[40];

	snprintf(text, sizeof(text), "127.0.0.1:%u", free_port());
	assert_int_equal(pvfs_addr_resolve(text, 0, &f->addr, &why), 0);
	assert_int_equal(pvfs_tcp_ops.listen(&f->addr, 5, &f->listener, &f->fd), 0);
}

static void fake_start(struct fake *f)
{
	fake_listen(f);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
}

static void fake_end(struct fake *f)
{
	pthread_join(f->thread, NULL);
	pvfs_tcp_ops.unlisten(f->listener);
}

/* Takes connections and closes them, until there were so many. */
#define CLOSED 14u

static void *fake_close(void *arg)
{
	struct fake *f = arg;
	struct pollfd pfd = { .fd = f->fd, .events = POLLIN };
	struct raw r = { 0 };

	for (f->taken = 0; f->taken < CLOSED && poll(&pfd, 1, 10000) > 0; f->taken++)
		if (!pvfs_tcp_ops.accept(f->listener, &r.x))
			raw_close(&r);
	return NULL;
}

/*
 * The pauses between two tries to connect grow, but not over what is asked for. With such as nobody has limited, so many
 * tries take half a minute.
 */
static void test_retry_within(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	atomic_uint done = 0;
	struct pvfs_peer *p;
	struct fx_rpc ping;
	struct fake f = { 0 };
	u64 begin;

	fake_listen(&f);
	assert_int_equal(pthread_create(&f.thread, NULL, fake_close, &f), 0);
	pp.addr = f.addr;
	pp.hard = 1;
	p = fx_peer(&pp);
	pvfs_peer_retry_within(p, 100);
	begin = fx_now_ms();
	fx_make_ping(&ping, &done);
	pvfs_peer_submit(p, &ping.rpc);
	fake_end(&f);
	assert_int_equal(f.taken, CLOSED);
	assert_true(fx_now_ms() - begin < 15000);
	assert_int_equal(atomic_load(&done), 0);
	pvfs_peer_free(p);
	assert_int_equal(ping.rpc.err, -ECANCELED);
}

static void test_version(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct fake f = { .version = OTHER, .status = 71, .sealed = 71 };

	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EPROTO, speaks_other);
	fake_end(&f);
	/* One that thinks that this is no reason to refuse. */
	f = (struct fake){ .version = OTHER };
	fake_start(&f);
	pp.addr = f.addr;
	expect_refused(&pp, -EPROTO, speaks_other);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_wrong_key, tcp),
		T(test_auth_by_hand, loop),
		T(test_wrong_volume, tcp),
		T(test_wrong_role, loop),
		T(test_no_key, loop),
		T(test_retry_within, tcp),
		T(test_version, tcp),
		T(test_impostor, tcp),
		T(test_foreign_server, tcp),
		T(test_forged_refusal, tcp),
		T(test_other_client, tcp),
		T(test_key_file, loop),
		T(test_mac, loop),
		T(test_addresses, loop),
		T(test_listen_fails, tcp),
		T(test_listen_fails, loop),
	};

	return witness_main("transport_door", tests, ARRAY_SIZE(tests));
}
