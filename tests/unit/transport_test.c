// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * transport_test.c - server and peer together, over TCP and over the faulty in-process transport:
 * what is asked is answered, once, with the right bytes, however the connection behaves.
 */
#include "transport_fixture.h"

static int setup_tcp(void **state)
{
	fx_up("tcp", NULL, 2);
	return 0;
}

static int setup_loop(void **state)
{
	fx_up("loop", NULL, 2);
	return 0;
}

/* One thread on each side: nothing may wait for another thread of the engine. */
static int setup_single(void **state)
{
	fx_up("tcp", NULL, 1);
	return 0;
}

static int teardown(void **state)
{
	fx_down();
	return 0;
}

static void set_faults(struct pvfs_loop_faults f)
{
	pvfs_loop_set_faults(fx.addr.text, &f);
}

/* ---------------------------------------------------------------- the ordinary */

static void test_requests(void **state)
{
	static const u32 lens[] = { 0, 1, 3, 511, 4096, 65536, 1 << 20, PVFS_PAYLOAD_MAX };
	struct pvfs_peer *p = fx_peer(NULL);
	struct pvfs_peer_counts *c = malloc(sizeof(*c));
	unsigned int i;
	char why[100];
	int err;

	assert_int_equal(pvfs_peer_state(p, NULL, NULL, 0), PVFS_PEER_IDLE);
	assert_int_equal(fx_ping(p), 0);
	assert_int_equal(pvfs_peer_state(p, &err, why, sizeof(why)), PVFS_PEER_UP);
	assert_int_equal(err, 0);
	assert_string_equal(why, "");
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		assert_int_equal(fx_call_write(p, 12345 * i, lens[i]), 0);
		assert_int_equal(fx_call_read(p, 1, 777 * i, lens[i]), 0);
	}
	pvfs_peer_counts(p, c);
	assert_int_equal(c->op[PVFS_OP_WRITE].n, ARRAY_SIZE(lens));
	assert_int_equal(c->op[PVFS_OP_WRITE].errors, 0);
	assert_int_equal(c->op[PVFS_OP_WRITE].bytes_out, c->op[PVFS_OP_READ].bytes_in);
	assert_int_equal(c->connects, 1);
	free(c);
	pvfs_peer_free(p);
}

/* sendfile, or its stand-in. */
static void test_file_payload(void **state)
{
	static const struct { u64 off; u32 len; } t[] = {
		{ 0, 10 }, { 0, FX_FILE_LEN }, { 5000, 90000 }, { FX_FILE_LEN - 5, 100 }, { FX_FILE_LEN, 300000 },
		{ 1 << 20, 1 << 20 }, { 0, PVFS_PAYLOAD_MAX },
	};
	struct pvfs_peer_counts *c = malloc(sizeof(*c));
	struct pvfs_peer *p = fx_peer(NULL);
	unsigned int i, have, cut;
	struct fx_rpc r;

	/*
	 * Cut: the file has become shorter after the reply's header was made. No made-up byte
	 * comes; it is asked anew.
	 */
	for (cut = 0; cut < 2; cut++) {
		for (i = 0; i < ARRAY_SIZE(t); i++) {
			have = t[i].off < FX_FILE_LEN ? min((u64)t[i].len, FX_FILE_LEN - t[i].off) : 0;
			atomic_store(&fx.promise, cut && have < t[i].len);
			fx_make_read(&r, 2, t[i].off, t[i].len, NULL);
			assert_int_equal(pvfs_peer_call(p, &r.rpc), 0);
			assert_int_equal(r.rpc.in_len, have);
			assert_true(fx_is_pattern(r.data, have, t[i].off));
			free(r.data);
		}
		pvfs_peer_counts(p, c);
		assert_int_equal(c->connects, cut ? 5 : 1);
	}
	free(c);
	pvfs_peer_free(p);
}

static void test_pipeline_out_of_order(void **state)
{
	enum { N = 64 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r[N];
	atomic_uint done = 0;
	int i;

	fx.hold = N;
	for (i = 0; i < N; i++) {
		fx_make_read(&r[i], 3, i * 1000, 100 * i, &done);
		pvfs_peer_submit_on(p, 0, &r[i].rpc);
	}
	assert_true(fx_reach(&done, N));
	for (i = 0; i < N; i++)
		fx_check(&r[i]);
	pvfs_peer_free(p);
}

/* Far more than credits or tags: the rest waits its turn. */
static void test_many(void **state)
{
	enum { N = 3000 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc *r = malloc(N * sizeof(*r));
	atomic_uint done = 0;
	int i;

	for (i = 0; i < N; i++) {
		if (i % 2)
			fx_make_read(&r[i], 1 + i / 2 % 2, i % 50000, i * 7 % 5000, &done);
		else
			fx_make_write(&r[i], i, i * 11 % 9000, &done);
		pvfs_peer_submit(p, &r[i].rpc);
	}
	assert_true(fx_reach(&done, N));
	for (i = 0; i < N; i++)
		fx_check(&r[i]);
	free(r);
	pvfs_peer_free(p);
}

struct worker {
	struct pvfs_peer *p;
	unsigned int seed;
	atomic_uint *bad;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	int i;

	for (i = 0; i < 150; i++) {
		u32 len = rand_r(&w->seed) % 200000 >> rand_r(&w->seed) % 16;
		u64 off = rand_r(&w->seed);

		if (i % 2 ? fx_call_write(w->p, off, len) : fx_call_read(w->p, 1, off, len))
			atomic_fetch_add(w->bad, 1);
	}
	return NULL;
}

static void run_workers(struct pvfs_peer *p, int n)
{
	struct worker w[16];
	pthread_t t[16];
	atomic_uint bad = 0;
	int i;

	for (i = 0; i < n; i++) {
		w[i] = (struct worker){ .p = p, .seed = i + 1, .bad = &bad };
		assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	}
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(bad, 0);
}

static void test_threads_and_channels(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;

	pp.nconnect = 3;
	p = fx_peer(&pp);
	run_workers(p, 8);
	pvfs_peer_free(p);
}

/* ---------------------------------------------------------------- partial, cut and damaged */

static void test_partial(void **state)
{
	struct pvfs_loop_faults f = { 0 };
	struct pvfs_peer *p;

	for (f.max_io = 1; f.max_io <= 7; f.max_io++) {
		set_faults(f);
		p = fx_peer(NULL);
		assert_int_equal(fx_call_write(p, 5, 3001), 0);
		assert_int_equal(fx_call_read(p, 1, 9, 3003), 0);
		assert_int_equal(fx_call_read(p, 2, FX_FILE_LEN - 1000, 1000), 0);
		pvfs_peer_free(p);
	}
}

static u64 resent(struct pvfs_peer *p)
{
	struct pvfs_peer_counts *c = malloc(sizeof(*c));
	u64 n;

	pvfs_peer_counts(p, c);
	n = c->op[PVFS_OP_READ].resent + c->op[PVFS_OP_WRITE].resent;
	free(c);
	return n;
}

/*
 * The connection breaks after every N-th byte, each time anew, until it is let through. Return:
 * requests sent again.
 */
static u64 cut_at(u64 n)
{
	struct pvfs_loop_faults cut = { .cut_after = n }, none = { 0 };
	enum { N = 6 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r[N];
	atomic_uint done = 0;
	u64 end = fx_now_ms() + 3, again;
	int i;

	set_faults(cut);
	for (i = 0; i < N; i++) {
		if (i % 2)
			fx_make_read(&r[i], 1, i, 300, &done);
		else
			fx_make_write(&r[i], i, 200, &done);
		pvfs_peer_submit(p, &r[i].rpc);
	}
	while (atomic_load(&done) < N && fx_now_ms() < end)
		fx_sleep_ms(1);
	set_faults(none);
	assert_true(fx_reach(&done, N));
	for (i = 0; i < N; i++)
		fx_check(&r[i]);
	again = resent(p);
	pvfs_peer_free(p);
	return again;
}

static void test_cut(void **state)
{
	u64 n, again = 0;

	for (n = 1; n < 4200; n += n < 200 ? 13 : 67)
		again += cut_at(n);
	assert_true(again > 50);
}

static void test_cut_large(void **state)
{
	struct pvfs_loop_faults none = { 0 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r[4];
	atomic_uint done = 0;
	u64 n;
	int i;

	for (n = 10000; n < 5000000; n = n * 3 + 1) {
		set_faults((struct pvfs_loop_faults){ .cut_after = n });
		done = 0;
		for (i = 0; i < 4; i++) {
			if (i % 2)
				fx_make_read(&r[i], i, n, 1 << 20, &done);
			else
				fx_make_write(&r[i], n, 1 << 20, &done);
			r[i].rpc.in = r[i].rpc.nin ? r[i].iov : NULL;
		}
		/* ino 3 is answered when one is there. */
		fx.hold = 1;
		for (i = 0; i < 4; i++)
			pvfs_peer_submit(p, &r[i].rpc);
		fx_sleep_ms(5);
		set_faults(none);
		assert_true(fx_reach(&done, 4));
		for (i = 0; i < 4; i++)
			fx_check(&r[i]);
	}
	assert_true(resent(p) > 5);
	pvfs_peer_free(p);
}

/* One flipped bit anywhere in headers and bodies: found, and the request is sent again. */
static void test_flip(void **state)
{
	struct pvfs_loop_faults none = { 0 };
	struct fx_rpc r[3];
	atomic_uint done;
	struct pvfs_peer *p;
	enum pvfs_peer_state st;
	u64 at, end;
	int i, err;
	char why[160];

	for (at = 1; at < 1500; at += at < 700 ? 7 : 23) {
		set_faults((struct pvfs_loop_faults){ .flip_at = at });
		p = fx_peer(NULL);
		done = 0;
		for (i = 0; i < 3; i++) {
			fx_make_fsync(&r[i], 0, &done);
			pvfs_peer_submit(p, &r[i].rpc);
		}
		end = fx_now_ms() + 2;
		while (atomic_load(&done) < 3 && fx_now_ms() < end)
			fx_sleep_ms(1);
		set_faults(none);
		assert_true(fx_reach(&done, 3));
		st = pvfs_peer_state(p, &err, why, sizeof(why));
		for (i = 0; i < 3; i++) {
			/* A flip in a nonce or mac looks like a wrong key, and must. */
			if (r[i].rpc.err == -ENOTCONN) {
				assert_int_equal(st, PVFS_PEER_REFUSED);
				continue;
			}
			assert_int_equal(r[i].rpc.err, 0);
			assert_int_equal(r[i].rpc.rep_len, 8);
			assert_int_equal(r[i].rep[0], 7);
		}
		pvfs_peer_free(p);
	}
}

static void test_chaos(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	struct worker w[4];
	pthread_t t[4];
	atomic_uint bad = 0;
	unsigned int seed = 7;
	u64 end;
	int i;

	pp.nconnect = 2;
	p = fx_peer(&pp);
	for (i = 0; i < 4; i++) {
		w[i] = (struct worker){ .p = p, .seed = i + 1, .bad = &bad };
		assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
	}
	for (end = fx_now_ms() + 1500; fx_now_ms() < end;) {
		set_faults((struct pvfs_loop_faults){ .cut_after = 20000 + rand_r(&seed) % 3000000,
						      .max_io = rand_r(&seed) % 4 ? 0 : 1000 });
		fx_sleep_ms(rand_r(&seed) % 30);
	}
	set_faults((struct pvfs_loop_faults){ 0 });
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(bad, 0);
	pvfs_peer_free(p);
}

/* ---------------------------------------------------------------- time, absence, end */

static void test_timeout(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;
	u64 t0 = fx_now_ms();

	fx_make_read(&r, 4, 0, 1000, NULL);
	r.rpc.timeout_ms = 100;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -ETIMEDOUT);
	assert_in_range(fx_now_ms() - t0, 95, 5000);
	free(r.data);
	/* The late answer has nowhere to go, and the connection is as good as before. */
	fx_release_held();
	assert_int_equal(fx_call_read(p, 1, 3, 5000), 0);
	assert_int_equal(fx_ping(p), 0);
	pvfs_peer_free(p);
}

/* Time runs out in the middle of a transfer: the memory is given back before the request ends. */
static void test_timeout_stalled(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;

	assert_int_equal(fx_ping(p), 0);
	set_faults((struct pvfs_loop_faults){ .stall = true });
	fx_make_write(&r, 0, 1 << 20, NULL);
	r.rpc.timeout_ms = 50;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -ETIMEDOUT);
	free(r.data);
	set_faults((struct pvfs_loop_faults){ 0 });
	assert_int_equal(fx_ping(p), 0);
	pvfs_peer_free(p);
}

static void test_soft(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	char why[160];
	u64 t0;
	int err;

	pp.hard = 0;
	pp.fail_ms = 200;
	fx_server_stop(0);
	p = fx_peer(&pp);
	t0 = fx_now_ms();
	assert_int_equal(fx_ping(p), -ENOTCONN);
	assert_in_range(fx_now_ms() - t0, 190, 5000);
	assert_int_equal(pvfs_peer_state(p, &err, why, sizeof(why)), PVFS_PEER_DOWN);
	assert_int_equal(err, -ECONNREFUSED);
	assert_string_equal(why, "Connection refused");
	fx_server_start(NULL);
	/* Each waits 200 ms, in which a busy machine may not get through the handshake. */
	for (t0 = fx_now_ms(), err = fx_ping(p); err == -ENOTCONN && fx_now_ms() - t0 < 10000;)
		err = fx_ping(p);
	assert_int_equal(err, 0);
	/* Gone again in the middle of a request. */
	fx_server_stop(0);
	assert_int_equal(fx_ping(p), -ENOTCONN);
	pvfs_peer_free(p);
}

static void *start_later(void *arg)
{
	fx_sleep_ms(300);
	fx_server_start(NULL);
	return NULL;
}

static void test_hard(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	pthread_t t;
	int i;

	for (i = 0; i < 2; i++) {
		fx_server_stop(0);
		assert_int_equal(pthread_create(&t, NULL, start_later, NULL), 0);
		assert_int_equal(fx_call_write(p, 0, 100000), 0);
		pthread_join(t, NULL);
	}
	pvfs_peer_free(p);
}

/* A server that took our key and has another one now: who waits for servers waits. */
static void test_key_changed(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	u8 good = fx.cluster.bytes[0];
	unsigned int tries, i;
	atomic_uint done = 0;
	struct fx_rpc r;
	char why[200];
	int err = 0;

	assert_int_equal(fx_ping(p), 0);
	for (i = 0; i < 2; i++) {
		fx_server_stop(0);
		fx.cluster.bytes[0] ^= 1;
		fx_server_start(NULL);
		fx_make_ping(&r, &done);
		pvfs_peer_submit(p, &r.rpc);
		for (tries = 0; err != -EACCES && tries < 1000; tries++) {
			fx_sleep_ms(1);
			pvfs_peer_state(p, &err, why, sizeof(why));
		}
		assert_non_null(strstr(why, "refused our key"));
		assert_int_equal(atomic_load(&done), i);
		fx_server_stop(0);
		fx.cluster.bytes[0] = good;
		fx_server_start(NULL);
		assert_true(fx_reach(&done, i + 1));
		assert_int_equal(r.rpc.err, 0);
		assert_int_equal(fx_ping(p), 0);
		err = 0;
	}
	pvfs_peer_free(p);
}

static void test_free_cancels(void **state)
{
	enum { N = 100 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r[N];
	atomic_uint done = 0;
	int i;

	for (i = 0; i < N; i++) {
		fx_make_read(&r[i], 4, 0, 100, &done);
		pvfs_peer_submit(p, &r[i].rpc);
	}
	assert_true(fx_reach(&fx.dispatched, 64));
	pvfs_peer_free(p);
	assert_int_equal(done, N);
	for (i = 0; i < N; i++) {
		assert_int_equal(r[i].rpc.err, -ECANCELED);
		free(r[i].data);
	}
	fx_release_held();
}

/* One that never reached its server. */
static void test_free_unconnected(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;
	atomic_uint done = 0;

	fx_server_stop(0);
	fx_make_ping(&r, &done);
	pvfs_peer_submit(p, &r.rpc);
	pvfs_peer_free(p);
	assert_int_equal(done, 1);
	assert_int_equal(r.rpc.err, -ECANCELED);
	pvfs_peer_free(NULL);
}

static void test_graceful_stop(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	struct fx_rpc slow, late;
	atomic_uint done = 0;

	pp.hard = 0;
	pp.fail_ms = 100;
	p = fx_peer(&pp);
	fx_make_fsync(&slow, 300, &done);
	pvfs_peer_submit(p, &slow.rpc);
	assert_true(fx_reach(&fx.running, 1));
	fx_server_stop(5000);
	assert_int_equal(fx.finished, 1);
	assert_true(fx_reach(&done, 1));
	assert_int_equal(slow.rpc.err, 0);
	fx_make_ping(&late, NULL);
	assert_int_equal(pvfs_peer_call(p, &late.rpc), -ENOTCONN);
	pvfs_peer_free(p);
}

/* A handler that holds its call longer than the grace: the server waits for it all the same. */
static void *release_later(void *arg)
{
	fx_sleep_ms(200);
	fx_release_held();
	return NULL;
}

static void test_stop_waits_for_handlers(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;
	pthread_t t;
	u64 t0;

	fx_make_read(&r, 4, 0, 10, NULL);
	pvfs_peer_submit(p, &r.rpc);
	assert_true(fx_reach(&fx.dispatched, 1));
	assert_int_equal(pthread_create(&t, NULL, release_later, NULL), 0);
	t0 = fx_now_ms();
	fx_server_stop(10);
	assert_in_range(fx_now_ms() - t0, 150, 5000);
	pthread_join(t, NULL);
	pvfs_peer_free(p);
	free(r.data);
}

/* ---------------------------------------------------------------- sessions and hooks */

struct hook {
	atomic_uint ups, lost, done, before;
	struct fx_rpc first;
	struct pvfs_peer *p;
	struct pvfs_auth_rep rep;
	u32 sleep_ms;
};

static void on_up(struct pvfs_peer *p, u32 channel, const struct pvfs_auth_rep *rep)
{
	struct hook *h = pvfs_peer_arg(p);

	h->rep = *rep;
	fx_make_fsync(&h->first, 50, &h->before);
	pvfs_peer_submit_on(p, channel, &h->first.rpc);
	fx_sleep_ms(h->sleep_ms);
	atomic_fetch_add(&h->ups, 1);
}

static void on_lost(struct pvfs_peer *p)
{
	struct hook *h = pvfs_peer_arg(p);

	atomic_fetch_add(&h->lost, 1);
}

static void test_up_hook(void **state)
{
	struct hook h = { .sleep_ms = 100 };
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;

	pp.up = on_up;
	pp.arg = &h;
	p = fx_peer(&pp);
	assert_int_equal(fx_ping(p), 0);
	/*
	 * The ping went after up() returned; what up() asked for went before that, and was answered
	 * meanwhile.
	 */
	assert_int_equal(h.ups, 1);
	assert_int_equal(h.before, 1);
	assert_int_equal(h.rep.index, 5);
	assert_int_equal(h.rep.role, PVFS_ROLE_IOD);
	assert_int_equal(h.rep.epoch, 77);
	assert_int_equal(h.rep.payload_max, PVFS_PAYLOAD_MAX);
	assert_int_equal(h.rep.credits, 64);
	assert_memory_equal(h.rep.volume_uuid, fx_params.uuid, PVFS_UUID_LEN);
	pvfs_peer_free(p);
}

static void test_session(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer_counts *c = malloc(sizeof(*c));
	struct pvfs_peer *p;
	struct hook h = { 0 };

	pp.session_lost = on_lost;
	pp.arg = &h;
	p = fx_peer(&pp);
	assert_int_equal(fx_call_read(p, 1, 0, 10), 0);
	/* Another session: another connection. */
	pvfs_peer_set_session(p, 43, NULL);
	assert_int_equal(fx_call_read(p, 1, 0, 10), 0);
	pvfs_peer_counts(p, c);
	assert_int_equal(c->connects, 2);
	pvfs_peer_set_session(p, 43, NULL);
	assert_int_equal(fx_call_read(p, 1, 0, 10), 0);
	pvfs_peer_counts(p, c);
	assert_int_equal(c->connects, 2);
	assert_int_equal(h.lost, 0);
	/*
	 * A session the server does not know. What needs one is refused, what does not is served.
	 */
	fx.stale = 44;
	pvfs_peer_set_session(p, 44, NULL);
	assert_int_equal(fx_call_read(p, 1, 0, 10), -ESTALE);
	assert_int_equal(h.lost, 1);
	assert_int_equal(fx_ping(p), 0);
	pvfs_peer_set_session(p, 45, NULL);
	assert_int_equal(fx_call_read(p, 1, 0, 10), 0);
	free(c);
	pvfs_peer_free(p);
}

static void test_permissions(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct fx_rpc r;
	struct pvfs_peer *p = fx_peer(NULL);

	fx_make_ping(&r, NULL);
	r.rpc.op = PVFS_OP_GLIMPSE;	/* for servers only */
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EACCES);
	r.rpc.op = PVFS_OP_LOOKUP;	/* the manager's */
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EOPNOTSUPP);
	pvfs_peer_set_session(p, 0, NULL);
	assert_int_equal(fx_call_read(p, 1, 0, 10), -ESTALE);
	pvfs_peer_free(p);
	/* A server has the server key, needs no session, and may all. */
	pp.key = &fx.secret;
	pp.my_role = PVFS_ROLE_MGR;
	assert_int_equal(pvfs_peer_new(fx.ce, &pp, &p), 0);
	r.rpc.op = PVFS_OP_GLIMPSE;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), 0);
	assert_int_equal(fx_call_read(p, 1, 0, 10), 0);
	pvfs_peer_free(p);
}

/* A server that takes less than it might: what is too much for it fails, and the others go on. */
static void test_payload_limit(void **state)
{
	struct pvfs_server_params less = fx_params;
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;

	assert_int_equal(fx_call_write(p, 0, 65537), 0);
	fx_server_stop(0);
	less.payload_max = 65536;
	fx_server_start(&less);
	fx_make_write(&r, 0, 65537, NULL);
	r.rpc.timeout_ms = 5000;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EMSGSIZE);
	free(r.data);
	assert_int_equal(fx_call_write(p, 0, 65536), 0);
	assert_int_equal(fx_call_read(p, 1, 0, 65537), 0);
	pvfs_peer_free(p);
}

static void test_rpc_limits(void **state)
{
	struct pvfs_peer *p = fx_peer(NULL);
	struct iovec big = { NULL, PVFS_PAYLOAD_MAX + 1 };
	struct fx_rpc r;

	fx_make_ping(&r, NULL);
	r.rpc.out = &big;
	r.rpc.nout = 1;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EMSGSIZE);
	fx_make_ping(&r, NULL);
	r.rpc.body_len = PVFS_BODY_MAX + 1;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EMSGSIZE);
	fx_make_ping(&r, NULL);
	r.rpc.op = 100;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EINVAL);
	/* Answers longer than there is room for. */
	fx_make_ping(&r, NULL);
	r.rpc.rep_room = 3;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EMSGSIZE);
	fx_make_read(&r, 1, 0, 5000, NULL);
	r.rpc.nin = 1;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), -EMSGSIZE);
	free(r.data);
	assert_int_equal(fx_call_read(p, 1, 0, 5000), 0);
	pvfs_peer_free(p);
}

static void test_stats(void **state)
{
	static char text[65536];
	struct iovec in = { text, sizeof(text) - 1 };
	struct pvfs_peer *p = fx_peer(NULL);
	struct fx_rpc r;
	int depth = 0;
	char *c;

	assert_int_equal(fx_call_read(p, 1, 0, 5000), 0);
	fx_make_ping(&r, NULL);
	r.rpc.op = PVFS_OP_STATS;
	r.rpc.in = &in;
	r.rpc.nin = 1;
	assert_int_equal(pvfs_peer_call(p, &r.rpc), 0);
	text[r.rpc.in_len] = '\0';
	for (c = text; *c; c++) {
		depth += (*c == '{') - (*c == '}');
		assert_true(depth > 0 || !strcmp(c, "}\n") || !strcmp(c, "\n"));
	}
	assert_int_equal(depth, 0);
	assert_non_null(strstr(text, "{\"role\":\"iod\""));
	assert_non_null(strstr(text, "\"READ\":{\"count\":1,\"errors\":0,"));
	assert_non_null(strstr(text, "\"extra\":{\"n\":1}"));
	pvfs_peer_free(p);
}

/* ---------------------------------------------------------------- requests from the server */

static void on_callback(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h, const void *body)
{
	u8 copy[100];

	if (h->op == PVFS_OP_FSYNC)
		return;			/* never answered */
	memcpy(copy, body, h->body_len);
	copy[0] ^= 0xff;
	pvfs_peer_callback_reply(p, channel, h, h->op == PVFS_OP_TRIM ? -EBUSY : 0, copy, h->body_len);
}

static void test_callback(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	struct srv_callback *cb[8], *none;
	u8 body[100], rep[100];
	unsigned int i;
	u32 len = 0;
	u64 t0;

	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_PING, NULL, 0, rep, sizeof(rep), &len, 1000),
			 -ENOTCONN);
	pp.callback = on_callback;
	p = fx_peer(&pp);
	assert_int_equal(fx_ping(p), 0);
	assert_int_equal(pvfs_server_callback(fx.server, 43, PVFS_OP_PING, NULL, 0, rep, sizeof(rep), &len, 1000),
			 -ENOTCONN);
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_PING, NULL, 0, rep, sizeof(rep), &len, 1000), 0);
	assert_int_equal(len, 12);
	memset(body, 3, sizeof(body));
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_GLIMPSE, body, 100, rep, 100, &len, 1000), 0);
	assert_int_equal(len, 100);
	assert_int_equal(rep[0], 3 ^ 0xff);
	assert_int_equal(rep[99], 3);
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_GLIMPSE, body, 100, rep, 99, &len, 1000), -EMSGSIZE);
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_TRIM, body, 1, rep, 100, &len, 1000), -EBUSY);
	t0 = fx_now_ms();
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_FSYNC, body, 1, rep, 100, &len, 100), -ETIMEDOUT);
	assert_in_range(fx_now_ms() - t0, 95, 5000);
	assert_int_equal(fx_ping(p), 0);
	/* Several at once: their times run together, or it would be eight seconds. */
	t0 = fx_now_ms();
	for (i = 0; i < 8; i++)
		assert_int_equal(pvfs_server_callback_begin(fx.server, 42, i == 1 ? PVFS_OP_GLIMPSE : PVFS_OP_FSYNC, body,
							    i + 1, 1000, &cb[i]), 0);
	assert_int_equal(pvfs_server_callback_begin(fx.server, 43, PVFS_OP_PING, NULL, 0, 400, &none), -ENOTCONN);
	for (i = 8; i-- > 0;)
		assert_int_equal(pvfs_server_callback_end(fx.server, cb[i], rep, 100, &len), i == 1 ? 0 : -ETIMEDOUT);
	assert_int_equal(len, 2);
	assert_in_range(fx_now_ms() - t0, 995, 5000);
	assert_int_equal(fx_ping(p), 0);
	pvfs_peer_free(p);
	/* A client that takes none. */
	p = fx_peer(NULL);
	assert_int_equal(fx_ping(p), 0);
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_TRIM, body, 1, rep, 100, &len, 1000), -ENOSYS);
	pvfs_peer_free(p);
}

static void *free_later(void *arg)
{
	fx_sleep_ms(100);
	pvfs_peer_free(arg);
	return NULL;
}

static void test_callback_lost(void **state)
{
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	u8 rep[100];
	pthread_t t;
	u32 len;

	pp.callback = on_callback;
	p = fx_peer(&pp);
	assert_int_equal(fx_ping(p), 0);
	assert_int_equal(pthread_create(&t, NULL, free_later, p), 0);
	assert_int_equal(pvfs_server_callback(fx.server, 42, PVFS_OP_FSYNC, "x", 1, rep, 100, &len, 30000), -ENOTCONN);
	pthread_join(t, NULL);
}

/* ---------------------------------------------------------------- memory for payloads */

static void test_no_memory(void **state)
{
	enum { N = 20 };
	struct pvfs_peer_params pp = fx_peer_params();
	struct pvfs_peer *p;
	struct fx_rpc r[N];
	atomic_uint done = 0;
	u64 end;
	int i;

	pp.nconnect = 5;
	p = fx_peer(&pp);
	fx.no_memory = -1;		/* none at all */
	for (i = 0; i < N; i++) {
		fx_make_write(&r[i], i, 10000, &done);
		pvfs_peer_submit_on(p, i, &r[i].rpc);
	}
	/* Requests without a payload, on connections that do not wait, are served. */
	fx_sleep_ms(50);
	assert_int_equal(done, 0);
	pvfs_server_payload_ready(fx.server);
	fx_sleep_ms(20);
	assert_int_equal(done, 0);
	/* A little at a time. */
	fx.no_memory = 8;
	for (end = fx_now_ms() + 10000; atomic_load(&done) < N && fx_now_ms() < end; fx_sleep_ms(1))
		pvfs_server_payload_ready(fx.server);
	assert_int_equal(done, N);
	for (i = 0; i < N; i++)
		fx_check(&r[i]);
	/* Connections that go while they wait. */
	fx.no_memory = -1;
	done = 0;
	for (i = 0; i < N; i++) {
		fx_make_write(&r[i], i, 10000, &done);
		pvfs_peer_submit_on(p, i, &r[i].rpc);
	}
	fx_sleep_ms(20);
	pvfs_peer_free(p);
	assert_int_equal(done, N);
	for (i = 0; i < N; i++)
		free(r[i].data);
	fx.no_memory = 0;
	pvfs_server_payload_ready(fx.server);
	p = fx_peer(NULL);
	assert_int_equal(fx_call_write(p, 1, 1000), 0);
	pvfs_peer_free(p);
}

#define BOTH(test) \
	cmocka_unit_test_setup_teardown(test, setup_tcp, teardown), \
	cmocka_unit_test_setup_teardown(test, setup_loop, teardown)
#define LOOP(test) cmocka_unit_test_setup_teardown(test, setup_loop, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		BOTH(test_requests),
		BOTH(test_file_payload),
		BOTH(test_pipeline_out_of_order),
		BOTH(test_many),
		cmocka_unit_test_setup_teardown(test_many, setup_single, teardown),
		BOTH(test_threads_and_channels),
		LOOP(test_partial),
		LOOP(test_cut),
		LOOP(test_cut_large),
		LOOP(test_flip),
		LOOP(test_chaos),
		BOTH(test_timeout),
		LOOP(test_timeout_stalled),
		BOTH(test_soft),
		BOTH(test_hard),
		BOTH(test_key_changed),
		BOTH(test_free_cancels),
		BOTH(test_free_unconnected),
		BOTH(test_graceful_stop),
		BOTH(test_stop_waits_for_handlers),
		BOTH(test_up_hook),
		BOTH(test_session),
		BOTH(test_permissions),
		BOTH(test_rpc_limits),
		BOTH(test_payload_limit),
		BOTH(test_stats),
		BOTH(test_callback),
		BOTH(test_callback_lost),
		BOTH(test_no_memory),
	};

	pvfs_log_init("transport_test", PVFS_LOG_ERROR, NULL);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
