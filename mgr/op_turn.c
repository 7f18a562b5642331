// SPDX-License-Identifier: GPL-2.0
/*
 * op_turn.c - TURN: a session that is out of a file that it has open is let in; see "Turns" in
 * docs/protocol.md.
 *
 * It is in before it is looked who has a WRITE lease, and a WRITE lease is noted before it is looked who is
 * in: so either the one that grants sees who comes in, or the one that comes in sees the lease. What comes
 * to nothing leaves it out, as it was. The same request may be on its way twice: what one of them does is
 * over for the other when one is answered (mgr_opens_turn_in()).
 *
 * Those that wait do so in line (recall.h). Only who has the file open for writing is given a WRITE lease.
 *
 * Who only reads, through a mapping, need not be alone, but without anybody who may write (READ): he is given a
 * lease to read that lasts, and who may write comes in when those have been recalled.
 */
#include "mgr.h"
#include <sys/stat.h>

#define TRIES 3u		/* others come in meanwhile; then it is the client that asks again */

struct turn {
	const struct pvfs_turn_req *req;
	struct pvfs_attr *attr;
	bool ask;		/* all others are to go out */
	bool writers;		/* only those of them who may write */
	struct mgr_inode in;
};

static void view(struct mgr_op *op, const struct turn *t, struct mgr_opens_view *v)
{
	mgr_opens_view(&op->m->opens, t->req->fid.ino, mgr_op_session(op), v);
}

static int look_fn(struct mgr_op *op, void *arg)
{
	struct turn *t = arg;
	struct mgr_opens_view v;
	int err;

	err = ns_fid_get(op, &t->req->fid, 0, &t->in);
	if (err)
		return err;
	if (!S_ISREG(t->in.mode))
		return -EINVAL;
	if (t->ask)
		mgr_yield_note(op, t->in.ino, t->writers);
	/* It may have been opened to write since it was looked the last time. */
	view(op, t, &v);
	if (v.self)
		mgr_lasting_note(op, t->in.ino);
	return 0;
}

/* Who is told that it has a WRITE lease on a head may keep back bytes of it: as by HEAD_WRITE. */
static int behind_fn(struct mgr_op *op, void *arg)
{
	struct turn *t = arg;
	int err;

	err = ns_fid_get(op, &t->req->fid, MDB_RMW, &t->in);
	if (err || !(t->in.flags & MGR_IF_STUFFED) || (t->in.flags & MGR_IF_SPILL))
		return err;
	return mgr_head_behind(op, &t->in);
}

static bool turn_in(struct mgr_op *op, const struct turn *t, bool in)
{
	return mgr_opens_turn_in(&op->m->opens, t->req->fid.ino, mgr_op_session(op), t->req->seq, in);
}

static bool holds(struct mgr_op *op, const struct turn *t)
{
	return mgr_leases_writes(&op->m->leases, t->req->fid.ino, mgr_op_session(op));
}

/* It comes to nothing. Who has a WRITE lease all the same is in. */
static int turn_off(struct mgr_op *op, const struct turn *t, int err)
{
	turn_in(op, t, holds(op, t));
	return err;
}

static int answered(struct mgr_op *op, const struct turn *t)
{
	return mgr_opens_turn_end(&op->m->opens, t->req->fid.ino, mgr_op_session(op), t->req->seq) ? 0 :
													-EAGAIN;
}

/* @quiets: nobody has it open for writing, and READ is wanted. */
static int let_in(struct mgr_op *op, struct turn *t, bool quiets)
{
	u64 ino = t->req->fid.ino, session = mgr_op_session(op);
	bool lease = quiets && mgr_lease_begin(op, ino);
	struct mgr_opens_view v;
	int err;

	t->ask = false;
	if (!turn_in(op, t, true))
		return -EAGAIN;
	err = mgr_run(op, look_fn, t, MGR_RUN_READ);
	/* Where nothing is recalled. */
	if (!err && mgr_leases_drafted(&op->m->leases, ino, session, mgr_mono_ms()))
		err = -EAGAIN;
	err = err ?: mgr_size_attr(op, &t->in, NULL, t->attr);
	if (!err)
		mgr_lease_attr(op, lease, &t->in, t->attr);
	/* Somebody has come to write: he is asked to go out. */
	view(op, t, &v);
	if (!err && quiets && !(t->attr->flags & PVFS_AF_LEASE) && v.writers)
		err = -EAGAIN;
	err = err ?: answered(op, t);
	if (err)
		return turn_off(op, t, err);
	if (mgr_write_told(op, ino))
		t->attr->flags |= PVFS_AF_WLEASE;
	return 0;
}

/* With all others out. */
static int take(struct mgr_op *op, struct turn *t)
{
	u64 ino = t->req->fid.ino;
	bool had = holds(op, t);
	int err;

	/* It is giving it up. */
	if (had && !mgr_write_told(op, ino))
		return -EAGAIN;
	if (!turn_in(op, t, true))
		return -EAGAIN;
	if (!mgr_write_turn(op, ino))
		return turn_off(op, t, -EAGAIN);
	t->ask = false;
	err = mgr_run(op, look_fn, t, MGR_RUN_READ);
	if (!err && (t->in.flags & MGR_IF_STUFFED)) {
		err = mgr_run(op, behind_fn, t, 0);
		err = err ?: mgr_log_wait(op);
	}
	if (!err && (t->in.flags & (MGR_IF_TRIM | MGR_IF_SPILL)))
		err = -EAGAIN;
	err = err ?: mgr_size_attr(op, &t->in, NULL, t->attr);
	err = err ?: answered(op, t);
	if (!err) {
		if (holds(op, t))
			t->attr->flags |= PVFS_AF_WLEASE;
		return 0;
	}
	if (had)
		return turn_off(op, t, err);
	/* Unless it was answered by the same request, come twice, or is a later one's: then it stays in, with it. */
	turn_in(op, t, false);
	mgr_write_back(op, ino);
	if (t->in.flags & MGR_IF_BEHIND)
		mgr_head_known(op, ino);
	return err;
}

/* Of what is under such a lease nothing may be cut or unstuffed behind it. */
static int finish_change(struct mgr_op *op, struct turn *t)
{
	struct mgr_inode in;
	int err;

	if (t->in.flags & MGR_IF_SPILL)
		return mgr_unstuff(op, &t->req->fid, &in);
	err = mgr_trim_finish(op, t->in.ino);
	return err && err != -ERESTART ? -EAGAIN : err;
}

static bool takes_leases(struct mgr_op *op)
{
	return atomic_load_explicit(&op->s->leases, memory_order_relaxed);
}

static int alone(struct mgr_op *op, struct turn *t)
{
	u64 ino = t->req->fid.ino;
	struct mgr_opens_view v;
	unsigned int tries;
	int err = -EAGAIN;

	for (tries = 0; tries < TRIES && err == -EAGAIN; tries++) {
		view(op, t, &v);
		if (!v.writers) {
			err = let_in(op, t, true);
			continue;
		}
		/* Nor is there a WRITE lease for who takes none, or writes nothing. */
		if (!v.self || !takes_leases(op) || !mgr_yield_may(op->m, ino, mgr_op_session(op), false))
			return let_in(op, t, false);
		/* Who has it already is waited for by whoever comes in. */
		t->ask = !holds(op, t);
		err = mgr_run(op, look_fn, t, MGR_RUN_READ);
		if (!err && (t->in.flags & (MGR_IF_TRIM | MGR_IF_SPILL)))
			err = finish_change(op, t);
		err = err ?: take(op, t);
	}
	return err;
}

/* With all others out who may write. */
static int show(struct mgr_op *op, struct turn *t)
{
	u64 ino = t->req->fid.ino;
	int err;

	if (!turn_in(op, t, true))
		return -EAGAIN;
	if (!mgr_lasting_turn(op, ino)) {
		turn_off(op, t, -EAGAIN);
		mgr_lasting_back(op, ino);
		return -EAGAIN;
	}
	t->ask = false;
	err = mgr_run(op, look_fn, t, MGR_RUN_READ);
	if (!err && (t->in.flags & (MGR_IF_TRIM | MGR_IF_SPILL)))
		err = -EAGAIN;
	err = err ?: mgr_size_attr(op, &t->in, NULL, t->attr);
	err = err ?: answered(op, t);
	if (!err) {
		if (mgr_leases_lasts(&op->m->leases, ino, mgr_op_session(op)))
			t->attr->flags |= PVFS_AF_LASTS;
		return 0;
	}
	/* As in take(). */
	turn_off(op, t, err);
	mgr_lasting_back(op, ino);
	return err;
}

static int shown(struct mgr_op *op, struct turn *t)
{
	unsigned int tries;
	int err = -EAGAIN;

	for (tries = 0; tries < TRIES && err == -EAGAIN; tries++) {
		if (!takes_leases(op) || !mgr_yield_may(op->m, t->req->fid.ino, mgr_op_session(op), true))
			return let_in(op, t, false);
		t->ask = t->writers = true;
		err = mgr_run(op, look_fn, t, MGR_RUN_READ);
		if (!err && (t->in.flags & (MGR_IF_TRIM | MGR_IF_SPILL)))
			err = finish_change(op, t);
		err = err ?: show(op, t);
	}
	return err;
}

/* It is answered once more, and nothing else comes of it. */
static int tell(struct mgr_op *op, struct turn *t)
{
	int err;

	op->tells = true;
	err = mgr_run(op, look_fn, t, MGR_RUN_READ);
	err = err ?: mgr_size_attr(op, &t->in, NULL, t->attr);
	/* Also while it is recalled, which the client finds by itself: else it took itself for refused. */
	if (!err && holds(op, t))
		t->attr->flags |= PVFS_AF_WLEASE;
	if (!err && mgr_leases_lasts(&op->m->leases, t->req->fid.ino, mgr_op_session(op)))
		t->attr->flags |= PVFS_AF_LASTS;
	return err;
}

/* Is there such a file? Whoever has what of it is not asked. */
static int look(struct mgr_op *op, struct turn *t)
{
	bool recalls = op->recalls;
	int err;

	op->recalls = false;
	err = mgr_run(op, look_fn, t, MGR_RUN_READ);
	op->recalls = recalls;
	return err;
}

int mgr_op_turn(struct mgr_op *op, const struct pvfs_turn_req *req, struct pvfs_turn_rep *rep)
{
	struct turn t = { .req = req, .attr = &rep->attr };
	bool fresh, has;
	int err;

	if ((req->flags & ~(PVFS_TN_ALONE | PVFS_TN_READ)) || !req->seq ||
	    req->flags == (PVFS_TN_ALONE | PVFS_TN_READ))
		return -EINVAL;
	/* Who has it open, and who is in, has to be known. */
	if (mgr_locks_in_grace(op->m))
		return mgr_grace_wait(op, MGR_GRACE_LOCKS);
	err = look(op, &t);
	if (err)
		return err;
	has = holds(op, &t);
	err = mgr_opens_turn(&op->m->opens, req->fid.ino, mgr_op_session(op), req->seq, has, &fresh);
	if (err > 0)
		return tell(op, &t);
	if (err)
		return err;
	/*
	 * Who has a WRITE lease may have pages to write back: it goes out when it says so, and waits for nobody.
	 * Or it has not heard of the lease, and said that it is out already.
	 */
	if (has && !(req->flags & PVFS_TN_ALONE)) {
		mgr_yield_anew(op, req->fid.ino);
	} else if (fresh && !has) {
		mgr_yield_came(op, req->fid.ino);
		mgr_lasting_over(op, req->fid.ino);
	}
	if (!has && !mgr_line_first(op, req->fid.ino, &err))
		return err;
	if ((req->flags & PVFS_TN_READ) && !has)
		return shown(op, &t);
	/* Who has a WRITE lease reads under that, if it is not giving it up. */
	if ((req->flags & PVFS_TN_READ) && !mgr_write_told(op, req->fid.ino))
		return -EAGAIN;
	return req->flags & PVFS_TN_ALONE ? alone(op, &t) : let_in(op, &t, false);
}
