// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * transport_slow_test.c - those who take their time, on either end, and those who come in numbers:
 * a byte now and then in every state of a connection, answers nobody takes, connections that never
 * prove themselves, memory that is asked for and not used. They go after a bounded time, and hold
 * nobody up before; who is slow but honest stays.
 */
#include "transport_witness.h"
#include "transport/conn.h"

#define STALL_MS 200
#define LATE_MS 3000		/* a slow machine's idea of soon */

static struct pvfs_server_params params(void)
{
	struct pvfs_server_params p = fx_params;

	p.auth_ms = 300;
	p.stall_ms = STALL_MS;
	return p;
}

static void up(const char *transport, const struct pvfs_server_params *p, unsigned int threads)
{
	fx_up(transport, p, threads);
}

/* ---------------------------------------------------------------- a byte now and then */

enum where { HELLO, AUTH, HEADER, BODY, PAYLOAD, NWHERE };

/* What comes next in this state, and where to begin with single bytes. */
static size_t message(struct raw *r, enum where w, u8 *msg, size_t *from)
{
	struct pvfs_write_req req = { .fid = { .ino = 1 } };
	struct pvfs_auth_req a = { .role = PVFS_ROLE_CLIENT, .version = PVFS_PROTO_VERSION,
				   .volume = PVFS_STR("vol"), .host = PVFS_STR("drip") };
	struct pvfs_header h = { .tag = 1 };
	u8 *body = msg + PVFS_HDR_LEN;

	*from = 0;
	switch (w) {
	case HELLO:
		h.op = PVFS_OP_HELLO;
		h.body_len = PVFS_NONCE_LEN;
		memset(body, 'n', PVFS_NONCE_LEN);
		break;
	case AUTH:
		h.op = PVFS_OP_AUTH;
		h.body_len = pvfs_auth_req_encode(&a, body, 400);
		pvfs_auth_seal(&fx.cluster, &r->n, false, body, h.body_len);
		break;
	default:
		h.op = PVFS_OP_WRITE;
		h.body_len = pvfs_write_req_encode(&req, body, 400);
		h.payload_len = 100000;
		fx_pattern(body + h.body_len, h.payload_len, 0);
		*from = w == HEADER ? 1 : w == BODY ? PVFS_HDR_LEN + 1 :
			PVFS_HDR_LEN + h.body_len + 1;
	}
	h.body_crc = pvfs_crc32c(0, body, h.body_len);
	pvfs_header_encode(&h, (struct pvfs_hdr *)msg);
	return PVFS_HDR_LEN + h.body_len + h.payload_len;
}

static void one_byte(const char *transport)
{
	struct pvfs_server_params p = params();
	/* Headers are made in place: as they are aligned. */
	static u8 msg[NWHERE][PVFS_HDR_LEN + 504 + 100000] __attribute__((aligned(8)));
	size_t at[NWHERE], len[NWHERE];
	u64 gone[NWHERE] = { 0 }, t0;
	struct raw r[NWHERE];
	unsigned int i, left = NWHERE;

	up(transport, &p, 2);
	witness = witness_new();
	t0 = fx_now_ms();
	for (i = 0; i < NWHERE; i++) {
		if (i >= HEADER)
			raw_login(&r[i], 100 + i, 0);
		else
			raw_open(&r[i]);
		if (i == AUTH)
			assert_true(raw_hello(&r[i]));
		len[i] = message(&r[i], i, msg[i], &at[i]);
		assert_true(raw_send(&r[i], msg[i], at[i]));
	}
	while (left && fx_now_ms() - t0 < 2 * LATE_MS) {
		for (i = 0; i < NWHERE; i++) {
			if (gone[i])
				continue;
			assert_true(at[i] < len[i]);
			if (!raw_send(&r[i], &msg[i][at[i]++], 1)) {
				gone[i] = fx_now_ms() - t0;
				left--;
			}
		}
		fx_sleep_ms(20);
	}
	assert_int_equal(left, 0);
	for (i = 0; i < NWHERE; i++) {
		assert_in_range(gone[i], STALL_MS / 2, LATE_MS);
		raw_close(&r[i]);
	}
	/* What the last one had been given for its payload came back: fx_down() counts. */
	assert_int_equal(fx_call_write(witness, 1, 1000), 0);
	pvfs_peer_free(witness);
	fx_down();
}

static void test_one_byte_tcp(void **state)
{
	one_byte("tcp");
}

static void test_one_byte_loop(void **state)
{
	one_byte("loop");
}

/* As slow as is just lawful, for longer than the time that silence may last. */
static void test_slow_but_honest(void **state)
{
	struct pvfs_server_params p = params();
	static u8 msg[PVFS_HDR_LEN + 500 + 100000];
	size_t at, len, n;
	struct raw r;
	u64 t0;

	p.stall_ms = 2 * STALL_MS;
	up("loop", &p, 2);
	raw_login(&r, 5, 0);
	len = message(&r, PAYLOAD, msg, &at);
	at = 0;
	for (t0 = fx_now_ms(); at < len; at += n) {
		n = min((size_t)PVFS_STALL_BYTES, len - at);
		assert_true(raw_send(&r, msg + at, n));
		fx_sleep_ms(STALL_MS / 2);
	}
	assert_true(fx_now_ms() - t0 > p.stall_ms);
	assert_true(raw_get(&r));
	assert_int_equal(r.h.status, 0);
	/* And silent between two messages, for as long. */
	fx_sleep_ms(p.stall_ms + STALL_MS / 2);
	assert_true(raw_ping(&r));
	raw_close(&r);
	fx_down();
}

/* ---------------------------------------------------------------- answers that are not taken */

static void test_takes_nothing(void **state)
{
	struct pvfs_server_params p = params();
	struct raw r, slow;
	u8 *data = malloc(2 << 20);
	size_t at;
	u64 t0;

	p.stall_ms = 2 * STALL_MS;
	up("tcp", &p, 2);
	witness = witness_new();
	raw_login(&r, 5, 0);
	raw_login(&slow, 6, 0);
	t0 = fx_now_ms();
	/* More than fits the buffers of both ends' sockets. */
	for (at = 0; at < 4; at++)
		assert_true(raw_read(&r, at, 1, PVFS_PAYLOAD_MAX, 0));
	assert_true(raw_read(&slow, 9, 1, 2 << 20, 0));
	/* The other one takes it piece by piece. */
	assert_true(raw_recv(&slow, slow.body, PVFS_HDR_LEN + 8));
	for (at = 0; at < 2 << 20; at += 128 << 10) {
		assert_true(raw_recv(&slow, data + at, 128 << 10));
		fx_sleep_ms(STALL_MS / 8);
	}
	assert_true(fx_is_pattern(data, 2 << 20, 0));
	assert_true(raw_ping(&slow));
	/* Nothing of it was taken: nobody knows but the server, which shut it down. */
	while (stat_of(witness, "connections") > 2 && fx_now_ms() - t0 < LATE_MS)
		fx_sleep_ms(5);
	assert_in_range(fx_now_ms() - t0, STALL_MS / 2, LATE_MS);
	assert_int_equal(stat_of(witness, "connections"), 2);
	free(data);
	raw_close(&r);
	raw_close(&slow);
	pvfs_peer_free(witness);
	fx_down();
}

/* Replies that wait to be taken count: a session that has its share begins nothing more. */
static void test_unread_replies(void **state)
{
	struct pvfs_server_params p = params();
	unsigned int i;
	struct raw r;

	p.stall_ms = 20000;
	p.unread_max = 1 << 20;
	up("loop", &p, 2);
	witness = witness_new();
	raw_login(&r, 5, 0);
	for (i = 0; i < 60; i++)
		assert_true(raw_read(&r, i, 1, 100000, 0));
	assert_true(fx_reach(&fx.finished, 5));
	for (i = 0; i < 20; i++)
		assert_int_equal(fx_call_read(witness, 1, 7, 50000), 0);
	assert_true(atomic_load(&fx.finished) - 20 < 20);
	/* All of it comes, once it is taken. */
	for (i = 0; i < 60; i++) {
		assert_true(raw_get(&r));
		assert_int_equal(r.h.tag, i);
		assert_true(fx_is_pattern(r.payload, 100000, 0));
	}
	assert_int_equal(atomic_load(&fx.finished), 80);
	raw_close(&r);
	pvfs_peer_free(witness);
	fx_down();
}

/* ---------------------------------------------------------------- room for payloads */

/* It is looked for when the payload comes, not when it is announced. */
static void test_room_when_it_comes(void **state)
{
	struct pvfs_server_params p = params();
	static u8 msg[PVFS_HDR_LEN + 500 + 100000];
	struct raw r;
	size_t from, len;

	p.stall_ms = 20000;
	up("tcp", &p, 1);
	witness = witness_new();
	raw_login(&r, 5, 0);
	len = message(&r, PAYLOAD, msg, &from);
	/* One thread, and what it was sent it has read when it answers others. */
	assert_true(raw_send(&r, msg, from - 1));
	assert_int_equal(fx_ping(witness), 0);
	assert_int_equal(fx_ping(witness), 0);
	assert_int_equal(atomic_load(&fx.gets), 0);
	assert_true(raw_send(&r, msg + from - 1, 1));
	assert_true(fx_reach(&fx.gets, 1));
	assert_true(raw_send(&r, msg + from, len - from));
	assert_true(raw_get(&r));
	assert_int_equal(r.h.status, 0);
	raw_close(&r);
	pvfs_peer_free(witness);
	fx_down();
}

/* The server's own zones: who takes all there is and sends nothing gives it back in time. */
static void test_zones(void **state)
{
	static struct pvfs_server_ops ops;
	struct pvfs_server_params p = params();
	static u8 msg[PVFS_HDR_LEN + 500 + 100000];
	struct raw r[12];
	size_t from;
	unsigned int i;

	ops = fx_ops;
	ops.payload_get = NULL;
	ops.payload_put = NULL;
	p.ops = &ops;
	p.payload_max = 128 << 10;
	p.payload_mem = 1 << 20;	/* eight of the largest */
	up("tcp", &p, 2);
	witness = witness_new();
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		raw_login(&r[i], 5, i);
		message(&r[i], PAYLOAD, msg, &from);
		assert_true(raw_send(&r[i], msg, from));
	}
	/* All are its, or its share is: this one waits for those to be cut, or gets its own. */
	for (i = 0; i < 5; i++)
		assert_int_equal(fx_call_write(witness, 1, 100000), 0);
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		assert_true(raw_closed(&r[i]));
		raw_close(&r[i]);
	}
	pvfs_peer_free(witness);
	fx_down();
}

/* A connection that gets its turn for memory uses it, whether or not there is room to send to it. */
static void test_turn_of_the_deaf(void **state)
{
	struct pvfs_server_params p = params();
	static u8 msg[PVFS_HDR_LEN + 500 + 100000];
	atomic_uint done = 0;
	struct fx_rpc w;
	struct raw r;
	size_t from;
	unsigned int i;

	p.stall_ms = 20000;
	up("loop", &p, 2);
	witness = witness_new();
	raw_login(&r, 5, 0);
	for (i = 0; i < 4; i++)
		assert_true(raw_read(&r, i, 1, PVFS_PAYLOAD_MAX, 0));
	assert_true(fx_reach(&fx.finished, 4));
	/* Its answers fill its socket; now it and the witness wait for memory, in this order. */
	atomic_store(&fx.no_memory, 1);
	message(&r, PAYLOAD, msg, &from);
	assert_true(raw_send(&r, msg, from));
	for (i = 0; atomic_load(&fx.no_memory) > 0 && i < 1000; i++)
		fx_sleep_ms(1);
	atomic_store(&fx.no_memory, 1);
	fx_make_write(&w, 3, 1000, &done);
	pvfs_peer_submit(witness, &w.rpc);
	for (i = 0; atomic_load(&fx.no_memory) > 0 && i < 1000; i++)
		fx_sleep_ms(1);
	assert_int_equal(atomic_load(&fx.no_memory), 0);
	fx_sleep_ms(5);
	for (i = 0; !atomic_load(&done) && i < 100; i++) {
		pvfs_server_payload_ready(fx.server);
		fx_sleep_ms(5);
	}
	assert_int_equal(atomic_load(&done), 1);
	fx_check(&w);
	raw_close(&r);
	pvfs_peer_free(witness);
	fx_down();
}

/* ---------------------------------------------------------------- numbers */

/* However many knock: who has the key comes in, and stays. */
static void test_unproved(void **state)
{
	enum { N = 300 };
	struct pvfs_server_params p = params();
	struct raw *r = calloc(N, sizeof(*r)), in[3], more;
	struct pvfs_auth_req m = { .session = 77 };
	unsigned int i;

	p.auth_ms = 60000;
	p.max_conns = 4;
	p.max_unproved = 16;
	up("tcp", &p, 2);
	witness = witness_new();
	for (i = 0; i < N; i++) {
		raw_open(&r[i]);
		/* Some say that they will. */
		if (i % 3 == 0)
			raw_send(&r[i], "PVFS", 4);
		if (i % 100 == 50)
			raw_login(&in[i / 100], 5, i / 100);
	}
	/* They did not use up a single place of those who are served. */
	assert_int_equal(fx_ping(witness), 0);
	for (i = 0; i < 3; i++)
		assert_true(raw_ping(&in[i]));
	/* All but the last are gone, the oldest first. */
	for (i = 0; i < N - 16; i++)
		assert_true(raw_closed(&r[i]));
	assert_in_range(stat_of(witness, "connections"), 4, 4 + 16);
	assert_int_equal(stat_of(witness, "refused"), N - 16);
	/* Of those who are served there are as many as may be. */
	raw_open(&more);
	assert_true(raw_hello(&more));
	assert_true(raw_auth_send(&more, &m, &fx.cluster));
	assert_true(raw_closed(&more));
	raw_close(&more);
	for (i = 0; i < N; i++)
		raw_close(&r[i]);
	for (i = 0; i < 3; i++)
		raw_close(&in[i]);
	free(r);
	pvfs_peer_free(witness);
	fx_down();
}

/* ---------------------------------------------------------------- a server that takes its time */

struct drip {
	struct pvfs_addr addr;
	void *listener;
	int fd;
	enum { IN_HELLO, IN_AUTH, IN_REPLY } where;
	u64 gone_ms;		/* the client closed after so long */
	pthread_t thread;
};

static void drip_send(struct raw *r, struct drip *d, const struct pvfs_header *head, const void *body)
{
	struct pvfs_header h = *head;
	struct pvfs_hdr hdr;
	u64 t0 = fx_now_ms();
	size_t i;

	h.body_crc = h.body_len ? pvfs_crc32c(0, body, h.body_len) : 0;
	pvfs_header_encode(&h, &hdr);
	for (i = 0; i < PVFS_HDR_LEN + h.body_len; i++) {
		if (!raw_send(r, i < PVFS_HDR_LEN ? (u8 *)&hdr + i : (u8 *)body + i - PVFS_HDR_LEN,
			      1))
			break;
		fx_sleep_ms(20);
	}
	d->gone_ms = fx_now_ms() - t0;
}

static void drip_serve(struct raw *r, struct drip *d)
{
	struct pvfs_auth_rep rep = { .version = PVFS_PROTO_VERSION, .role = PVFS_ROLE_IOD,
				     .credits = 1 };
	struct pvfs_header h = { .op = PVFS_OP_HELLO, .flags = PVFS_HF_REPLY };
	struct pvfs_auth_req req;
	u8 body[256] = { 0 };

	if (!raw_get(r))
		return;
	memcpy(r->n.client, r->body, PVFS_NONCE_LEN);
	memset(r->n.server, 'S', PVFS_NONCE_LEN);
	h.tag = r->h.tag;
	h.body_len = PVFS_NONCE_LEN;
	if (d->where == IN_HELLO) {
		drip_send(r, d, &h, r->n.server);
		return;
	}
	if (!raw_msg(r, &h, r->n.server, NULL) || !raw_get(r))
		return;
	h.op = PVFS_OP_AUTH;
	h.tag = r->h.tag;
	assert_int_equal(pvfs_auth_req_decode(&req, r->body, r->h.body_len), 0);
	rep.session = req.session;
	h.body_len = pvfs_auth_rep_encode(&rep, body, sizeof(body));
	pvfs_auth_seal(&fx.cluster, &r->n, true, body, h.body_len);
	if (d->where == IN_AUTH) {
		drip_send(r, d, &h, body);
		return;
	}
	if (!raw_msg(r, &h, body, NULL) || !raw_get(r))
		return;
	h = (struct pvfs_header){ .op = r->h.op, .tag = r->h.tag, .flags = PVFS_HF_REPLY,
				.body_len = 200 };
	drip_send(r, d, &h, body);
}

static void *drip_run(void *arg)
{
	struct drip *d = arg;
	struct pollfd pfd = { .fd = d->fd, .events = POLLIN };
	struct raw r = { 0 };

	poll(&pfd, 1, 10000);
	if (!pvfs_loop_ops.accept(d->listener, &r.x)) {
		drip_serve(&r, d);
		raw_close(&r);
	}
	return NULL;
}

static void test_slow_server(void **state)
{
	static const char *const names[] = { "loop:drip0", "loop:drip1", "loop:drip2" };
	struct pvfs_peer_params pp;
	struct pvfs_peer *peer[3];
	struct drip d[3] = { 0 };
	const char *why;
	unsigned int i;
	atomic_uint done = 0;
	struct fx_rpc r[3];

	up("loop", NULL, 2);
	for (i = 0; i < 3; i++) {
		d[i].where = i;
		assert_int_equal(pvfs_addr_resolve(names[i], 0, &d[i].addr, &why), 0);
		assert_int_equal(pvfs_loop_ops.listen(&d[i].addr, 5, &d[i].listener, &d[i].fd), 0);
		assert_int_equal(pthread_create(&d[i].thread, NULL, drip_run, &d[i]), 0);
		pp = fx_peer_params();
		pp.addr = d[i].addr;
		pp.handshake_ms = STALL_MS;
		pp.stall_ms = STALL_MS;
		peer[i] = fx_peer(&pp);
		fx_make_ping(&r[i], &done);
		pvfs_peer_submit(peer[i], &r[i].rpc);
	}
	for (i = 0; i < 3; i++) {
		pthread_join(d[i].thread, NULL);
		assert_in_range(d[i].gone_ms, STALL_MS / 2, LATE_MS);
		/* The request waits for the next connection. */
		assert_int_equal(atomic_load(&done), 0);
	}
	for (i = 0; i < 3; i++) {
		pvfs_peer_free(peer[i]);
		pvfs_loop_ops.unlisten(d[i].listener);
	}
	assert_int_equal(atomic_load(&done), 3);
	fx_down();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_byte_tcp),
		cmocka_unit_test(test_one_byte_loop),
		cmocka_unit_test(test_slow_but_honest),
		cmocka_unit_test(test_takes_nothing),
		cmocka_unit_test(test_unread_replies),
		cmocka_unit_test(test_room_when_it_comes),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_turn_of_the_deaf),
		cmocka_unit_test(test_unproved),
		cmocka_unit_test(test_slow_server),
	};

	if (pvfs_log_init("test", PVFS_LOG_WARNING, NULL))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("transport_slow", tests, NULL, NULL);
}
