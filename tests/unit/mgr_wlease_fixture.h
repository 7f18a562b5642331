/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mgr_wlease_fixture.h - three clients, and what the manager asks of them, for the tests of WRITE leases.
 */
#ifndef MGR_WLEASE_FIXTURE_H
#define MGR_WLEASE_FIXTURE_H

#include "mgr_head_fixture.h"

#define RW (PVFS_O_READ | PVFS_O_WRITE)
#define WL (RW | PVFS_O_WLEASE)
#define LEASE_MS 30000u

/* What was sent, instead of a server. */
static struct {
	u32 n;
	u64 session[64], ino[64];
	struct mgr_parked *resumed[8];
	u32 nresumed, msgs;
	u32 nsettles;			/* SETTLEs */
	u64 settled[16], of[16], round[16];
	u32 nyields;			/* YIELDs */
	struct {
		u64 session, ino, round;
	} yield[32];
} seen;

static inline int fake_send(struct mgr *m, u64 session, const u64 *inos, u32 n)
{
	u32 i;

	seen.msgs++;
	for (i = 0; i < n && seen.n < ARRAY_SIZE(seen.ino); i++) {
		seen.session[seen.n] = session;
		seen.ino[seen.n++] = inos[i];
	}
	return 0;
}

static inline int fake_settle(struct mgr *m, u64 session, u64 ino, u64 round)
{
	if (seen.nsettles < ARRAY_SIZE(seen.round)) {
		seen.of[seen.nsettles] = session;
		seen.settled[seen.nsettles] = ino;
		seen.round[seen.nsettles] = round;
	}
	seen.nsettles++;
	return 0;
}

static inline int fake_yield(struct mgr *m, u64 session, u64 ino, u64 round)
{
	assert_true(seen.nyields < ARRAY_SIZE(seen.yield));
	seen.yield[seen.nyields].session = session;
	seen.yield[seen.nyields].ino = ino;
	seen.yield[seen.nyields++].round = round;
	return 0;
}

static inline void fake_resume(struct mgr *m, struct pvfs_call *call, struct mgr_parked *p)
{
	seen.resumed[seen.nresumed++] = p;
}

static inline void only_over(struct mgr *m, struct pvfs_call *call, struct mgr_parked *p)
{
	mgr_recall_over(m, p);
}

/* Two clients that take leases, one that takes none; files are striped. */
struct wl {
	struct fx *f;
	struct fx_client a, b, plain;
};

static inline void hook(struct wl *t)
{
	memset(&seen, 0, sizeof(seen));
	t->f->m->recalls.send = fake_send;
	t->f->m->recalls.settle = fake_settle;
	t->f->m->recalls.yield = fake_yield;
	t->f->m->recalls.resume = fake_resume;
}

static inline int setup(void **state)
{
	struct wl *t = calloc(1, sizeof(*t));

	t->f = fx_new();
	fx_client_open(&t->a, t->f, 1, PVFS_SO_LEASES);
	fx_client_open(&t->b, t->f, 2, PVFS_SO_LEASES);
	fx_client_init(&t->plain, t->f, 3);
	t->a.park = t->b.park = t->plain.park = true;
	hook(t);
	*state = t;
	return 0;
}

static inline int teardown(void **state)
{
	struct wl *t = *state;

	fx_free(t->f);
	free(t);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

static inline struct hf make_striped(struct fx_client *c, const char *name, u32 flags)
{
	return make(c, name, PVFS_O_STRIPED | flags);
}

static inline bool granted(const struct pvfs_attr *a)
{
	return a->flags & PVFS_AF_WLEASE;
}

static inline bool writes(struct wl *t, const struct fx_client *c, u64 ino)
{
	return mgr_leases_writes(&t->f->m->leases, ino, c->session);
}

/* Its last request waits for this inode. */
static inline void park(struct fx_client *c, u64 ino)
{
	assert_int_equal(fx_op.nnoted, 1);
	assert_int_equal(fx_op.noted[0].ino, ino);
	assert_int_equal(mgr_recall_park(c->f->m, &fx_op, c->session, (void *)c), 0);
}

static inline void over(struct wl *t)
{
	u32 i;

	for (i = 0; i < seen.nresumed; i++)
		mgr_recall_over(t->f->m, seen.resumed[i]);
	seen.nresumed = 0;
	assert_int_equal(atomic_load(&t->f->m->recalls.barred), 0);
}

static inline int report(struct fx_client *c, struct pvfs_fid fid, const struct pvfs_wreport *r, u32 flags)
{
	struct pvfs_report_req rq = { .fid = fid, .flags = flags };
	struct pvfs_report_rep rp;

	if (r)
		rq.report = *r;
	return fx_report(c, &rq, &rp);
}

/* What a client wrote, as it reports it. */
static inline struct pvfs_wreport wrote(struct wl *t, const struct pvfs_attr *at, u64 off, u64 len)
{
	struct pvfs_wreport r = { .end = off + len, .trunc_gen = at->trunc_gen };

	fx_write(&t->f->x, at, off, len, &r.wtime);
	return r;
}

static inline int open_by_name(struct fx_client *c, const char *name, u32 flags, struct pvfs_attr *a)
{
	return do_create(c, fx_root, name, flags, 0, a);
}

static inline bool head_put(struct fx_client *c, struct hf *h, u32 flags, u64 off, const char *p)
{
	bool done = false;

	assert_int_equal(head_write(c, h, flags, off, p, strlen(p), &done), 0);
	return done;
}

/* ---- a restart ---- */

static inline int reclaim(struct fx_client *c, const struct hf *h, u32 flags, struct pvfs_attr *at)
{
	struct pvfs_reclaim_req rq = { .fid = h->at.fid, .flags = flags, .count = 1, .cap = h->cap };
	struct pvfs_reclaim_rep rp;
	int err = fx_reclaim(c, &rq, &rp);

	fx_take(at, err, &rp.attr);
	return err;
}

static inline int come_back(struct fx_client *c)
{
	struct pvfs_reclaim_done_req rq = { .epoch = c->f->m->epoch };
	struct pvfs_reclaim_done_rep rp;

	return fx_reclaim_done(c, &rq, &rp);
}

#endif
