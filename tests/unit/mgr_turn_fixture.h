/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mgr_turn_fixture.h - clients that ask to be let into a file, and are told to go out, for the tests of turns.
 */
#ifndef MGR_TURN_FIXTURE_H
#define MGR_TURN_FIXTURE_H

#include "mgr_wlease_fixture.h"

static inline int turn(struct fx_client *c, struct pvfs_fid fid, u32 flags, u64 seq, struct pvfs_attr *at)
{
	struct pvfs_turn_req rq = { .fid = fid, .flags = flags, .seq = seq };
	struct pvfs_turn_rep rp;
	int err = fx_turn(c, &rq, &rp);

	fx_take(at, err, &rp.attr);
	return err;
}

static inline int alone(struct fx_client *c, struct pvfs_fid fid, u64 seq, struct pvfs_attr *at)
{
	return turn(c, fid, PVFS_TN_ALONE, seq, at);
}

/* The request that was resumed as number @i is executed again. */
static inline int again(struct fx_client *c, u32 i, struct pvfs_fid fid, u32 flags, u64 seq, struct pvfs_attr *at)
{
	int err;

	assert_true(i < seen.nresumed);
	c->parked = seen.resumed[i];
	err = turn(c, fid, flags, seq, at);
	c->parked = NULL;
	return err;
}

static inline int reported(struct fx_client *c, struct pvfs_fid fid, u64 round, u32 flags)
{
	struct pvfs_report_req rq = { .fid = fid, .settled = round, .flags = flags };
	struct pvfs_report_rep rp;

	return fx_report(c, &rq, &rp);
}

static inline bool in(struct wl *t, const struct fx_client *c, u64 ino)
{
	struct mgr_opens_view v;

	mgr_opens_view(&t->f->m->opens, ino, c->session, &v);
	return v.open && !v.out;
}

static inline bool barred(struct wl *t)
{
	return atomic_load(&t->f->m->recalls.barred);
}

/* What was sent last is a YIELD of this file to this client. Return: its round. */
static inline u64 yields(const struct fx_client *c, u64 ino, u32 n)
{
	assert_int_equal(seen.nyields, n);
	assert_int_equal(seen.yield[n - 1].session, c->session);
	assert_int_equal(seen.yield[n - 1].ino, ino);
	assert_true(seen.yield[n - 1].round);
	return seen.yield[n - 1].round;
}

/* A file that a and b have open. */
static inline struct hf both(struct wl *t, const char *name)
{
	struct hf h = make_striped(&t->a, name, 0);

	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), 0);
	assert_true(in(t, &t->a, h.at.fid.ino) && in(t, &t->b, h.at.fid.ino));
	return h;
}

/* @c gets what it asks for when the other one has gone out. */
static inline void gets_from(struct wl *t, struct fx_client *c, const struct fx_client *other, struct pvfs_fid fid,
			     u32 flags, u64 seq, struct pvfs_attr *at)
{
	u32 n = seen.nyields;

	assert_int_equal(turn(c, fid, flags, seq, at), -EINPROGRESS);
	assert_false(in(t, c, fid.ino));
	park(c, fid.ino);
	mgr_round_told(t->f->m, other->session, fid.ino, yields(other, fid.ino, n + 1), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(c, 0, fid, flags, seq, at), 0);
	over(t);
	assert_true(in(t, c, fid.ino) && !in(t, other, fid.ino));
}

/* b is in, with a WRITE lease, and a out. */
static inline void give(struct wl *t, struct hf *h, u64 seq)
{
	u64 ino = h->at.fid.ino;
	struct pvfs_attr at;

	gets_from(t, &t->b, &t->a, h->at.fid, PVFS_TN_ALONE, seq, &at);
	assert_true(granted(&at));
	assert_true(in(t, &t->b, ino) && !in(t, &t->a, ino) && writes(t, &t->b, ino));
}

#endif
