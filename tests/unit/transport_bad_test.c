// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * transport_bad_test.c - clients that do not play by the rules: damaged, oversized and random
 * messages, more requests than credits, silence, sessions that are taken away. Each costs one
 * connection and, at most, one line in the log; everyone else is served as before. Who is let in at
 * all: transport_door_test.c.
 */
#include "transport_witness.h"
#include "transport/server.h"

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

/*
 * Until a connection of session 5, channel 3 that came after @before is in @state. Nothing frees it
 * meanwhile: a request runs, which it waits for or has.
 */
static struct srv_conn *await_state(struct srv_conn *before, enum srv_state state)
{
	u64 end = fx_now_ms() + 10000;
	enum srv_state now = SRV_NEW;
	struct srv_conn *sc;

	do {
		fx_sleep_ms(1);
		pthread_mutex_lock(&fx.server->lock);
		for (sc = fx.server->conns; sc; sc = sc->next)
			if (sc->peer.session == 5 && sc->peer.channel == 3 &&
			    (!before || sc->t_accept > before->t_accept))
				break;
		now = sc ? sc->state : SRV_NEW;
		pthread_mutex_unlock(&fx.server->lock);
	} while (now < state && fx_now_ms() < end);
	assert_int_equal(now, state);
	return sc;
}

static void auth_begin(struct raw *r)
{
	struct pvfs_auth_req m = { .session = 5, .channel = 3 };

	raw_open(r);
	assert_true(raw_hello(r));
	assert_true(raw_auth_send(r, &m, &fx.cluster));
}

/* The requests of a connection that broke run on, and are waited for as well. */
static void test_broken_is_waited_for(void **state)
{
	unsigned int closed = atomic_load(&fx.closed);
	struct srv_conn *first, *second;
	struct raw a, b, c;

	raw_login(&a, 5, 3);
	atomic_store(&fx.dispatched, 0);
	atomic_store(&fx.finished, 0);
	assert_true(raw_read(&a, 1, 4, 10, 0));
	assert_true(fx_reach(&fx.dispatched, 1));
	raw_close(&a);
	first = await_state(NULL, SRV_CLOSED);
	auth_begin(&b);
	second = await_state(first, SRV_WAITING);
	/* That one breaks while it waits. */
	pvfs_conn_get(&second->c);
	pvfs_conn_kill(&second->c);
	assert_ptr_equal(await_state(first, SRV_CLOSED), second);
	auth_begin(&c);
	await_state(second, SRV_WAITING);
	pvfs_conn_put(&second->c);
	/* And goes at once. */
	assert_true(fx_reach(&fx.closed, closed + 1));
	assert_int_equal(fx.finished, 0);
	fx_release_held();
	assert_true(raw_get(&c));
	assert_int_equal(c.h.status, 0);
	assert_true(raw_ping(&c));
	assert_true(raw_closed(&b));
	/* Nothing runs on this one: nobody waits. */
	raw_login(&a, 5, 3);
	assert_true(raw_closed(&c));
	assert_true(fx_reach(&fx.closed, closed + 3));
	assert_true(raw_ping(&a));
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_damaged, tcp),
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
		T(test_replaced_waits, tcp),
		T(test_replaced_waits, loop),
		T(test_broken_is_waited_for, tcp),
		T(test_broken_is_waited_for, loop),
		T(test_kill_session, tcp),
		T(test_kill_many, tcp),
		T(test_auth_too_late, tcp),
		T(test_200_connections, tcp),
		T(test_max_conns, tcp),
	};

	return witness_main("transport_bad", tests, ARRAY_SIZE(tests));
}
