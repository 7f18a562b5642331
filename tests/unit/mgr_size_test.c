// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_size_test.c - how long is a file? Writers, reports, glimpses, truncation, iods that are away.
 */
#include "mgr_fixture.h"
#include <semaphore.h>

#define RW (PVFS_O_READ | PVFS_O_WRITE)
#define MKW (PVFS_O_CREAT | PVFS_O_WRITE)

struct two {
	struct fx *f;
	struct fx_client a, b;
};

static int setup(void **state)
{
	struct two *t = malloc(sizeof(*t));

	t->f = fx_new();
	fx_client_init(&t->a, t->f, 1);
	fx_client_init(&t->b, t->f, 2);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct two *t = *state;

	fx_free(t->f);
	free(t);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

/* Writes through client-side eyes: the datafiles grow, the report to come remembers it. */
static void put(struct fx *f, const struct pvfs_attr *at, u64 off, u64 len, struct pvfs_wreport *r)
{
	fx_write(&f->x, at, off, len, &r->wtime);
	r->end = max(r->end, off + len);
	r->trunc_gen = at->trunc_gen;
}

/*
 * One writer that reports never makes the manager ask the iods; nor does a stat of a file nobody
 * writes.
 */
static void one_writer(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;

	assert_int_equal(do_create(&t->a, fx_root, "f", MKW, 0644, &at), 0);
	put(t->f, &at, 0, 100000, &r);
	assert_int_equal(do_getattr(&t->a, at.fid, &r, &x), 0);
	assert_int_equal(x.size, 100000);
	assert_int_equal(x.blocks, (100000 + 4095) / 4096 * 8);
	assert_int_equal(x.mtime.sec, r.wtime.sec);
	assert_true(x.version > at.version);
	assert_false(x.flags & PVFS_AF_WRITERS);
	/* What was reported stays known. */
	assert_int_equal(do_getattr(&t->a, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 100000);
	put(t->f, &at, 200000, 1, &r);
	assert_int_equal(do_close(&t->a, at.fid, PVFS_O_WRITE, &r), 0);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 200001);
	assert_int_equal(x.flags, 0);
	assert_int_equal(x.mtime.sec, r.wtime.sec);
	assert_int_equal(t->f->x.glimpses, 0);
	/* Opened for writing and closed with nothing written: nothing changes. */
	assert_int_equal(do_open(&t->b, at.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_close(&t->b, at.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 200001);
	assert_int_equal(at.mtime.sec, x.mtime.sec);
	assert_int_equal(t->f->x.glimpses, 0);
}

/* The space that a file takes: from its size while it has no holes, else from the iods. */
static void blocks(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 5000, &r);
	assert_int_equal(do_getattr(&t->a, at.fid, &r, &x), 0);
	assert_int_equal(x.blocks, 16);
	assert_int_equal(t->f->x.glimpses, 0);
	/* A hole, of which the client tells. */
	put(t->f, &at, 1 << 20, 4096, &r);
	r.trunc_gen = PVFS_GEN_ASK;
	assert_int_equal(do_getattr(&t->a, at.fid, &r, &x), 0);
	assert_int_equal(x.size, (1 << 20) + 4096);
	assert_int_equal(x.blocks, 24);
	/* Once more, because it was longer than known: was it ever just that long? */
	assert_int_equal(t->f->x.glimpses, 2 * FX_NIODS);
	/* Asked once; but each write may change it now. */
	assert_int_equal(do_getattr(&t->a, at.fid, NULL, &x), 0);
	assert_int_equal(x.blocks, 24);
	assert_int_equal(t->f->x.glimpses, 2 * FX_NIODS);
	put(t->f, &at, (1 << 20) + 4096, 4096, &r);
	assert_int_equal(do_close(&t->a, at.fid, PVFS_O_WRITE, &r), 0);
	assert_int_equal(t->f->x.glimpses, 3 * FX_NIODS);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.blocks, 32);
	assert_int_equal(t->f->x.glimpses, 3 * FX_NIODS);
	/* A restart does not forget it. */
	fx_reopen(t->f);
	fx_end_grace(t->f);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.blocks, 32);
	/* Growing takes no space; a cut through the holes has to be asked for. */
	t->f->x.glimpses = 0;
	assert_int_equal(do_truncate(&t->b, at.fid, 4 << 20, NULL, &x), 0);
	assert_int_equal(x.blocks, 32);
	assert_int_equal(t->f->x.glimpses, 0);
	assert_int_equal(do_truncate(&t->b, at.fid, 2 << 20, NULL, &x), 0);
	assert_int_equal(x.blocks, 32);
	assert_int_equal(t->f->x.glimpses, FX_NIODS);
	assert_int_equal(do_truncate(&t->b, at.fid, 0, NULL, &x), 0);
	assert_int_equal(x.blocks, 0);
	assert_int_equal(t->f->x.glimpses, FX_NIODS);
	/* A file without holes that grows has one. */
	do_create(&t->a, fx_root, "g", MKW, 0644, &at);
	memset(&r, 0, sizeof(r));
	put(t->f, &at, 0, 5000, &r);
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
	assert_int_equal(do_truncate(&t->b, at.fid, 1 << 20, NULL, &x), 0);
	assert_int_equal(x.blocks, 16);
	assert_int_equal(do_getattr(&t->a, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 1 << 20);
	assert_int_equal(x.blocks, 16);
	assert_int_equal(t->f->x.glimpses, FX_NIODS);
}

static void others_ask(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x, y;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 70000, &r);
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_int_equal(x.size, 70000);
	assert_true(x.flags & PVFS_AF_WRITERS);
	assert_int_equal(x.mtime.sec, r.wtime.sec);
	/* Twice: it was longer than known. */
	assert_int_equal(t->f->x.glimpses, 2 * FX_NIODS);
	/* Nothing new, once. */
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_int_equal(t->f->x.glimpses, 3 * FX_NIODS);
	put(t->f, &at, 70000, 70000, &r);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &y), 0);
	assert_int_equal(y.size, 140000);
	assert_true(y.version > x.version);
	/* The writer hears its own word, with no question. */
	t->f->x.glimpses = 0;
	assert_int_equal(do_getattr(&t->a, at.fid, &r, &x), 0);
	assert_int_equal(x.size, 140000);
	assert_false(x.flags & PVFS_AF_WRITERS);
	assert_int_equal(t->f->x.glimpses, 0);
	/* Readdir asks too, for this file only. */
	{
		struct pvfs_readdir_req rq = { .dir = fx_root, .bytes = 65536,
			.flags = PVFS_RD_ATTRS };
		struct pvfs_readdir_rep rp;
		struct pvfs_dent d;
		struct pvfs_wire w;
		u32 i;

		do_mkfile(&t->a, fx_root, "g", 0644, NULL);
		put(t->f, &at, 140000, 1, &r);
		assert_int_equal(fx_readdir(&t->b, &rq, &rp), 0);
		assert_int_equal(rp.count, 2);
		pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
		for (i = 0; i < 2; i++) {
			pvfs_get_dent(&w, &d);
			assert_int_equal(d.attr.size, d.name.p[0] == 'f' ? 140001 : 0);
		}
		assert_int_equal(t->f->x.glimpses, 2 * FX_NIODS);
	}
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
}

static void two_writers(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport ra = { 0 }, rb = { 0 };
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	assert_int_equal(do_open(&t->b, at.fid, RW, &x), 0);
	assert_true(x.flags & PVFS_AF_WRITERS);
	put(t->f, &at, 0, 500000, &ra);
	put(t->f, &at, 500000, 1, &rb);
	assert_int_equal(do_getattr(&t->a, at.fid, &ra, &x), 0);
	assert_int_equal(x.size, 500001);
	/* Both report at close: no question is left. */
	assert_int_equal(do_close(&t->b, at.fid, RW, &rb), 0);
	t->f->x.glimpses = 0;
	put(t->f, &at, 500001, 100000, &ra);
	assert_int_equal(do_close(&t->a, at.fid, PVFS_O_WRITE, &ra), 0);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 600001);
	assert_int_equal(x.flags, 0);
	assert_int_equal(t->f->x.glimpses, 0);
	/* Two descriptors of one session are one writer, until the second is closed. */
	do_open(&t->a, at.fid, PVFS_O_WRITE, NULL);
	do_open(&t->a, at.fid, RW, NULL);
	ra.end = 0;
	put(t->f, &at, 600001, 100000, &ra);
	do_close(&t->a, at.fid, RW, &ra);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 700001);
	assert_true(x.flags & PVFS_AF_WRITERS);
	do_close(&t->a, at.fid, PVFS_O_WRITE, NULL);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 700001);
	assert_int_equal(x.flags, 0);
}

/* A writer dies without a word; the next who asks finds out, once. */
static void writer_dies(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 12345, &r);
	t->f->conf.lease_ms = 0;
	mgr_session_put(mgr_session_lookup(t->f->m, t->b.session));
	usleep(2000);
	{
		/* Only a's lease has run out: b shows itself at the moment of the round. */
		struct mgr_session *b = mgr_session_lookup(t->f->m, t->b.session);

		t->f->conf.lease_ms = 1;
		atomic_store(&b->seen, mgr_mono_ms() + 100000);
		mgr_sessions_expire(t->f->m);
		atomic_store(&b->seen, mgr_mono_ms());
		t->f->conf.lease_ms = 30000;
		mgr_session_put(b);
	}
	assert_int_equal(do_getattr(&t->a, at.fid, NULL, NULL), -ESTALE);
	t->f->x.down = 1u << at.layout.base;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), -EAGAIN);
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_true(x.flags & PVFS_AF_SIZE_UNKNOWN);
	t->f->x.down = 0;
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_int_equal(x.size, 12345);
	assert_int_equal(x.mtime.sec, r.wtime.sec);
	assert_int_equal(x.flags, 0);
	t->f->x.glimpses = 0;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 12345);
	assert_int_equal(t->f->x.glimpses, 0);
}

/* The manager dies while a file is written; the writer comes back. */
static void manager_restarts(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_reclaim_req rq = { .flags = PVFS_O_WRITE, .count = 1 };
	struct pvfs_reclaim_rep rp;
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 1000, &r);
	do_getattr(&t->a, at.fid, &r, NULL);
	fx_reopen(t->f);
	assert_true(mgr_in_grace(t->f->m));
	r.end = 0;
	put(t->f, &at, 1000, 1000, &r);
	/* Before the writer is back others see the truth, and it is not taken for final. */
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 2000);
	put(t->f, &at, 2000, 1000, &r);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 3000);
	rq.fid = at.fid;
	assert_int_equal(fx_reclaim(&t->a, &rq, &rp), 0);
	assert_int_equal(rp.attr.size, 3000);
	assert_int_equal(rp.cap.rights, PVFS_CAP_WRITE);
	fx_end_grace(t->f);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_true(x.flags & PVFS_AF_WRITERS);
	put(t->f, &at, 3000, 1000, &r);
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
	t->f->x.glimpses = 0;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 4000);
	assert_int_equal(x.flags, 0);
	assert_int_equal(t->f->x.glimpses, 0);
	/* Saying it twice counts it once. */
	do_open(&t->a, at.fid, PVFS_O_WRITE, NULL);
	fx_reclaim(&t->a, &rq, &rp);
	fx_reclaim(&t->a, &rq, &rp);
	do_close(&t->a, at.fid, PVFS_O_WRITE, NULL);
	assert_int_equal(t->f->m->opens.files, 0);
}

static void truncation(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 1000000, &r);
	/* The only writer: cut what its report says is there. */
	assert_int_equal(do_truncate(&t->a, at.fid, 100, &r, &x), 0);
	assert_int_equal(x.size, 100);
	assert_true(x.trunc_gen > at.trunc_gen);
	assert_int_equal(t->f->x.glimpses, 0);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 100);
	/* A late report of a write from before the cut does not bring the size back. */
	assert_int_equal(do_getattr(&t->a, at.fid, &r, &x), 0);
	assert_int_equal(x.size, 100);
	at = x;
	memset(&r, 0, sizeof(r));
	put(t->f, &at, 100, 50, &r);
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
	t->f->x.glimpses = t->f->x.trims = 0;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 150);
	assert_int_equal(t->f->x.glimpses, 0);
	/* Growing moves the end of one datafile; and the iods know it. */
	assert_int_equal(do_truncate(&t->b, at.fid, 65536 * 3 + 5, NULL, &x), 0);
	assert_int_equal(x.size, 65536 * 3 + 5);
	assert_int_equal(t->f->x.trims, 1);
	assert_int_equal(t->f->x.holds, 0);
	do_open(&t->a, at.fid, PVFS_O_WRITE, NULL);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 65536 * 3 + 5);
	/* With another writer there, every datafile is made to fit. */
	t->f->x.trims = 0;
	assert_int_equal(do_truncate(&t->b, at.fid, 7, NULL, &x), 0);
	assert_int_equal(x.size, 7);
	assert_true(x.flags & PVFS_AF_WRITERS);
	assert_int_equal(t->f->x.trims, FX_NIODS);
	/* And none before all are held, so that the writer sees one moment. */
	assert_int_equal(t->f->x.holds, FX_NIODS);
	assert_int_equal(t->f->x.holds_before_trim, FX_NIODS);
	do_close(&t->a, at.fid, PVFS_O_WRITE, NULL);
	/* Nothing to cut: no message. */
	t->f->x.trims = 0;
	assert_int_equal(do_truncate(&t->b, at.fid, 7, NULL, &x), 0);
	assert_int_equal(t->f->x.trims, 0);
	/* The times: set by hand after writing, they stay. */
	do_open(&t->a, at.fid, PVFS_O_WRITE, &at);
	memset(&r, 0, sizeof(r));
	put(t->f, &at, 0, 10, &r);
	{
		struct pvfs_setattr_req rq = {
			.cred = fx_cred(&t->a), .fid = at.fid, .valid = PVFS_SA_MTIME,
			.mtime = { 1234, 0 }, .report = r,
		};
		struct pvfs_setattr_rep rp;

		assert_int_equal(fx_setattr(&t->a, &rq, &rp), 0);
		assert_int_equal(rp.attr.mtime.sec, 1234);
		assert_int_equal(rp.attr.size, 10);
	}
	memset(&r, 0, sizeof(r));
	assert_int_equal(do_close(&t->a, at.fid, PVFS_O_WRITE, &r), 0);
	do_getattr(&t->b, at.fid, NULL, &x);
	assert_int_equal(x.mtime.sec, 1234);
	/* Until somebody writes. */
	do_open(&t->a, at.fid, PVFS_O_WRITE, &at);
	put(t->f, &at, 0, 10, &r);
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
	do_getattr(&t->b, at.fid, NULL, &x);
	assert_int_equal(x.mtime.sec, r.wtime.sec);
}

/* Who cuts the file, and writes it again, whenever somebody asks how long it is. */
struct cutter {
	struct two *t;
	struct pvfs_attr at;
	struct fx_client c;
	pthread_t thread;
	sem_t done;
	unsigned int cuts;
	bool cutting;
	int err;
};

static void *cut(void *arg)
{
	struct cutter *k = arg;
	struct pvfs_wreport r = { 0 };

	k->err = do_truncate(&k->c, k->at.fid, 0, NULL, NULL);
	put(k->t->f, &k->at, 0, 200704, &r);
	sem_post(&k->done);
	return NULL;
}

static void cut_meanwhile(void *arg)
{
	struct cutter *k = arg;
	struct timespec until;

	if (k->cutting)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	k->cutting = true;
	k->cuts++;
	assert_int_equal(pthread_create(&k->thread, NULL, cut, k), 0);
	/* It may have to wait for us. */
	if (sem_timedwait(&k->done, &until))
		return;
	pthread_join(k->thread, NULL);
	k->cutting = false;
}

/* However often it is cut while the iods are asked: what is told is a size that it had. */
static void cut_while_asked(void **state)
{
	struct two *t = *state;
	struct cutter k = { .t = t };
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr x;
	bool blocked;

	fx_client_init(&k.c, t->f, 3);
	sem_init(&k.done, 0, 0);
	do_create(&t->a, fx_root, "f", MKW, 0644, &k.at);
	assert_int_equal(do_open(&t->b, k.at.fid, PVFS_O_WRITE, NULL), 0);
	put(t->f, &k.at, 0, 200704, &r);
	t->f->x.meanwhile_arg = &k;
	t->f->x.meanwhile = cut_meanwhile;
	assert_int_equal(do_getattr(&t->b, k.at.fid, NULL, &x), 0);
	/* The last one waited until we knew; it looks at the iods too. */
	blocked = k.cutting;
	if (blocked)
		pthread_join(k.thread, NULL);
	t->f->x.meanwhile = NULL;
	assert_true(blocked);
	assert_int_equal(k.cuts, 3);
	assert_int_equal(k.err, 0);
	assert_int_equal(x.size, 200704);
	assert_false(x.flags & PVFS_AF_SIZE_UNKNOWN);
	sem_destroy(&k.done);
}

static void truncation_interrupted(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;
	u32 seq;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 1000000, &r);
	do_close(&t->a, at.fid, PVFS_O_WRITE, &r);
	/* An iod is away: the size is cut, the request waits and is asked again. */
	t->a.no_retry = true;
	t->f->x.down = 4;
	seq = t->a.seq;
	assert_int_equal(do_truncate(&t->a, at.fid, 10, NULL, NULL), -EAGAIN);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), -EAGAIN);
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_int_equal(x.size, 10);
	assert_true(x.flags & PVFS_AF_SIZE_UNKNOWN);
	assert_int_equal(do_open(&t->b, at.fid, PVFS_O_WRITE, NULL), -EAGAIN);
	assert_int_equal(t->f->m->opens.files, 0);
	/* The manager restarts, the iod comes back: the reaper finishes it. */
	fx_reopen(t->f);
	assert_true(mgr_reap_pass(t->f->m) > 0);
	t->f->x.down = 0;
	mgr_reap_pass(t->f->m);
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.flags, 0);
	assert_int_equal(x.size, 10);
	/* The client asks again with the same slot: it is done (again), and then replayed. */
	t->a.seq = seq;
	assert_int_equal(do_truncate(&t->a, at.fid, 10, NULL, &x), 0);
	t->a.seq = seq;
	assert_int_equal(do_truncate(&t->a, at.fid, 10, NULL, &x), 0);
	assert_int_equal(t->f->m->count.replays, 1);
	/* An iod cannot grow its datafile: it never happened. */
	t->f->x.trim_error = -EFBIG;
	assert_int_equal(do_truncate(&t->a, at.fid, 1ull << 50, NULL, NULL), -EFBIG);
	t->f->x.trim_error = 0;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.flags, 0);
	assert_int_equal(x.size, 10);
	/* Opening for writing finishes what is pending. */
	t->f->x.down = 1u << at.layout.base;
	assert_int_equal(do_truncate(&t->a, at.fid, 5, NULL, NULL), -EAGAIN);
	t->f->x.down = 0;
	assert_int_equal(do_open(&t->b, at.fid, PVFS_O_WRITE, &x), 0);
	assert_int_equal(x.size, 5);
	assert_false(x.flags & PVFS_AF_SIZE_UNKNOWN);
	do_close(&t->b, at.fid, PVFS_O_WRITE, NULL);
}

static void reports(void **state)
{
	struct two *t = *state;
	struct pvfs_report_req rq = { 0 };
	struct pvfs_report_rep rp;
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 5000, &rq.report);
	rq.fid = at.fid;
	assert_int_equal(fx_report(&t->a, &rq, &rp), 0);
	assert_int_equal(rp.attr.size, 5000);
	assert_int_equal(t->f->x.glimpses, 0);
	/* It is in the database: with every iod away, it is the last known size. */
	fx_reopen(t->f);
	t->f->x.down = ~0u;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), -EAGAIN);
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &x), 0);
	assert_int_equal(x.size, 5000);
	assert_true(x.flags & PVFS_AF_SIZE_UNKNOWN);
	t->f->x.down = 0;
	/* Nonsense in a report is not believed. */
	rq.report.end = ~0ull;
	assert_int_equal(fx_report(&t->b, &rq, &rp), 0);
	assert_int_equal(rp.attr.size, 5000);
}

/*
 * Many uncertain files in one directory: asked all at once, and once more; more datafiles than
 * calls in flight.
 */
static void many_uncertain(void **state)
{
	struct two *t = *state;
	struct pvfs_readdir_req rq = { .dir = fx_root, .bytes = PVFS_READDIR_MAX,
		.flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rp;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at;
	struct pvfs_dent d;
	struct pvfs_wire w;
	char name[16];
	u32 i;

	for (i = 0; i < 700; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(do_create(&t->a, fx_root, name, MKW, 0644, &at), 0);
		put(t->f, &at, i, 1, &r);
	}
	assert_int_equal(fx_readdir(&t->b, &rq, &rp), 0);
	assert_int_equal(rp.count, 700);
	assert_true(rp.eof);
	assert_int_equal(t->f->x.glimpses, 2 * 700 * FX_NIODS);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	for (i = 0; i < 700; i++) {
		pvfs_get_dent(&w, &d);
		memcpy(name, d.name.p, d.name.len);
		name[d.name.len] = 0;
		assert_int_equal(d.attr.size, atoi(name) + 1);
	}
}

/* What the iods answered before the knowledge was lost again does not bring it back. */
static void learned_too_late(void **state)
{
	struct two *t = *state;
	struct mgr_opens *o = &t->f->m->opens;
	struct mgr_inode in = { 0 };
	struct mgr_opens_view v, late;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at;

	assert_int_equal(do_create(&t->a, fx_root, "f", MKW, 0644, &at), 0);
	assert_int_equal(do_open(&t->b, at.fid, PVFS_O_WRITE, NULL), 0);
	put(t->f, &at, 0, 1000, &r);
	in.ino = at.fid.ino;
	in.size = 1000;
	in.trunc_gen = at.trunc_gen;
	in.flags = MGR_IF_SPARSE;
	mgr_opens_view(o, in.ino, t->a.session, &v);
	mgr_opens_sweep(o, t->b.session, NULL, NULL);	/* what it wrote meanwhile nobody has told */
	mgr_opens_view(o, in.ino, t->a.session, &late);
	assert_false(late.tracked);
	assert_true(late.doubt != v.doubt);
	mgr_opens_learn(o, &in, &r.wtime, v.doubt);
	mgr_opens_view(o, in.ino, t->a.session, &v);
	assert_int_equal(v.end, 1000);
	assert_false(v.tracked || v.sparse);
	mgr_opens_learn(o, &in, &r.wtime, late.doubt);
	mgr_opens_view(o, in.ino, t->a.session, &v);
	assert_true(v.tracked && v.sparse);
}

/* The end of a session looks at what it had open: the other stripes may be locked meanwhile. */
static void sweep_of_one(void **state)
{
	struct two *t = *state;
	struct mgr_opens *o = &t->f->m->opens;
	struct mgr_opens_view v;
	struct pvfs_attr at;
	u32 i, mine;

	assert_int_equal(do_create(&t->a, fx_root, "f", MKW, 0644, &at), 0);
	assert_int_equal(do_open(&t->b, at.fid, PVFS_O_WRITE, NULL), 0);
	mine = (at.fid.ino * 0x9e3779b97f4a7c15ull >> 50 & (MGR_OPEN_BUCKETS - 1)) %
	       MGR_OPEN_STRIPES;
	for (i = 0; i < MGR_OPEN_STRIPES; i++)
		if (i != mine)
			pthread_mutex_lock(&o->stripe[i].lock);
	mgr_opens_sweep(o, t->b.session, NULL, NULL);
	mgr_opens_sweep(o, 12345, NULL, NULL);	/* has nothing */
	for (i = 0; i < MGR_OPEN_STRIPES; i++)
		if (i != mine)
			pthread_mutex_unlock(&o->stripe[i].lock);
	mgr_opens_view(o, at.fid.ino, t->a.session, &v);
	assert_int_equal(v.writers, 1);
	assert_true(v.self && !v.others && !v.tracked);
}

/* In vain: how many the table has then, and that no walk is due. */
static u32 settle_left(struct fx *f)
{
	bool walk;
	u32 n = mgr_settle_left(f->m, &walk);

	assert_false(walk);
	return n;
}

/*
 * Writers that the manager's restart has lost: it finds out what they wrote when it may, and nobody
 * waits for an iod then.
 */
static void settled_behind(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at[40], x;
	char name[8];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		do_create(&t->a, fx_root, name, MKW, 0644, &at[i]);
		put(t->f, &at[i], 0, 1000 + i, &r);
	}
	fx_reopen(t->f);
	/* In the grace nothing is final. */
	assert_int_equal(mgr_settle_pass(t->f->m), ARRAY_SIZE(at));
	assert_int_equal(settle_left(t->f), ARRAY_SIZE(at));
	fx_end_grace(t->f);
	t->f->x.down = 1;
	assert_int_equal(mgr_settle_pass(t->f->m), ARRAY_SIZE(at));
	/* One has a writer again, which will say what it did; one is gone. */
	assert_int_equal(do_open(&t->a, at[0].fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(&t->b, fx_root, "f1"), 0);
	assert_int_equal(mgr_settle_pass(t->f->m), ARRAY_SIZE(at) - 2);
	t->f->x.down = 0;
	assert_int_equal(mgr_settle_pass(t->f->m), 0);
	assert_int_equal(settle_left(t->f), 0);
	assert_int_equal(t->f->m->settle.settled, ARRAY_SIZE(at) - 2);
	t->f->x.glimpses = 0;
	t->f->x.down = ~0u;
	for (i = 2; i < ARRAY_SIZE(at); i++) {
		assert_int_equal(do_getattr(&t->b, at[i].fid, NULL, &x), 0);
		assert_int_equal(x.size, 1000 + i);
		assert_int_equal(x.flags, 0);
	}
	assert_int_equal(t->f->x.glimpses, 0);
	/* A close that meets an iod that is away; the writer's other open has made its report useless. */
	r = (struct pvfs_wreport){ .trunc_gen = at[0].trunc_gen };
	do_close(&t->a, at[0].fid, PVFS_O_WRITE, &r);
	assert_int_equal(settle_left(t->f), 1);
	assert_int_equal(mgr_settle_pass(t->f->m), 1);
	/* That is remembered. */
	fx_reopen(t->f);
	fx_end_grace(t->f);
	t->f->x.down = 0;
	assert_int_equal(mgr_settle_pass(t->f->m), 0);
	assert_int_equal(t->f->m->settle.settled, 1);
	/* That nothing is left, too: no walk is due. */
	fx_reopen(t->f);
	fx_end_grace(t->f);
	assert_int_equal(settle_left(t->f), 0);
}

/* Of more than the table has the walk finds the others. */
static void settle_table_full(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;
	u32 i;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 1000, &r);
	fx_reopen(t->f);
	fx_end_grace(t->f);
	t->f->m->settle.walk = false;
	for (i = 0; i < MGR_SETTLE_MAX; i++)
		mgr_settle_add(t->f->m, 1 << 20);	/* there is none such */
	mgr_settle_add(t->f->m, at.fid.ino);
	assert_int_equal(t->f->m->settle.n, MGR_SETTLE_MAX);
	assert_int_equal(mgr_settle_pass(t->f->m), 0);
	assert_int_equal(settle_left(t->f), 0);
	t->f->x.down = ~0u;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 1000);
	assert_int_equal(x.flags, 0);
}

static bool asked(struct fx_iods *x)
{
	bool ret;

	pthread_mutex_lock(&x->lock);
	ret = x->nheld;
	pthread_mutex_unlock(&x->lock);
	return ret;
}

/* The thread asks after the grace; and while its question is not answered, the manager can stop. */
static void settle_thread_stops(void **state)
{
	struct two *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at, x;

	do_create(&t->a, fx_root, "f", MKW, 0644, &at);
	put(t->f, &at, 0, 1000, &r);
	fx_reopen(t->f);
	t->f->x.silent = true;
	assert_int_equal(mgr_core_start(t->f->m), 0);
	fx_end_grace(t->f);
	while (!asked(&t->f->x))
		usleep(1000);
	mgr_core_stop(t->f->m);
	assert_int_equal(settle_left(t->f), 1);
	/* Too late to be of use, and does no harm. */
	fx_iods_answer(&t->f->x);
	assert_int_equal(mgr_core_start(t->f->m), 0);
	while (!atomic_load(&t->f->m->settle.settled))
		usleep(1000);
	mgr_core_stop(t->f->m);
	t->f->x.down = ~0u;
	assert_int_equal(do_getattr(&t->b, at.fid, NULL, &x), 0);
	assert_int_equal(x.size, 1000);
	assert_int_equal(x.flags, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(one_writer), T(blocks), T(others_ask), T(two_writers), T(writer_dies), T(manager_restarts),
		T(truncation), T(cut_while_asked),
		T(truncation_interrupted), T(reports), T(many_uncertain), T(learned_too_late),
		T(sweep_of_one), T(settled_behind), T(settle_table_full), T(settle_thread_stops),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
