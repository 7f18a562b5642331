// SPDX-License-Identifier: GPL-2.0
/*
 * op_lock.c - LOCK, GETLK, LOCK_CANCEL, RECLAIM_DONE: what is asked is checked here, and done in
 * locks.c.
 */
#include "mgr.h"

static bool range_ok(u8 kind, u64 start, u64 end)
{
	if (kind == PVFS_LK_FLOCK || kind == PVFS_LK_APPEND)
		return !start && end == PVFS_FILE_MAX;
	return (kind == PVFS_LK_RECORD || kind == PVFS_LK_OFD) && start <= end &&
	       end <= PVFS_FILE_MAX;
}

/* Is there such an inode? Whoever wants to lock it has it open; that is not asked again. */
static int exists_fn(struct mgr_op *op, void *arg)
{
	struct mgr_inode in;

	return ns_fid_get(op, arg, 0, &in);
}

int mgr_op_lock(struct mgr_op *op, const struct pvfs_lock_req *req, struct pvfs_lock_rep *rep)
{
	struct pvfs_fid fid = req->fid;
	int err;

	if (!range_ok(req->kind, req->start, req->end) || req->type > PVFS_LK_WRITE ||
	    (req->flags & ~(PVFS_LK_WAIT | PVFS_LK_RECLAIM)))
		return -EINVAL;
	if (req->type == PVFS_LK_UNLOCK ? req->flags != 0 : !req->ticket)
		return -EINVAL;
	if (req->kind == PVFS_LK_APPEND && (req->type == PVFS_LK_READ || !req->owner))
		return -EINVAL;
	if (req->type != PVFS_LK_UNLOCK) {
		/* That it is there draws no draft in, and after a restart is asked in time. */
		op->recalls = false;
		err = mgr_run(op, exists_fn, &fid, MGR_RUN_READ);
		if (err)
			return err;
	}
	err = mgr_locks_set(&op->m->locks, op->s, req, mgr_locks_in_grace(op->m),
			    atomic_load(&op->s->returning), &rep->state);
	/* Who may not wait is told the state. */
	if (!err && rep->state == PVFS_LK_GRACE &&
	    mgr_grace_wait(op, MGR_GRACE_LOCKS) == -EINPROGRESS)
		return -EINPROGRESS;
	return err;
}

int mgr_op_getlk(struct mgr_op *op, const struct pvfs_getlk_req *req, struct pvfs_getlk_rep *rep)
{
	if (!range_ok(req->kind, req->start, req->end) ||
	    (req->type != PVFS_LK_READ && req->type != PVFS_LK_WRITE))
		return -EINVAL;
	if (mgr_locks_in_grace(op->m))
		return mgr_grace_wait(op, MGR_GRACE_LOCKS);
	mgr_locks_get(&op->m->locks, op->s->id, req, rep);
	return 0;
}

int mgr_op_lock_cancel(struct mgr_op *op, const struct pvfs_lock_cancel_req *req,
		       struct pvfs_lock_cancel_rep *rep)
{
	if (!range_ok(req->kind, req->start, req->end) || !req->ticket ||
	    (req->flags & ~PVFS_LK_KEEP) ||
	    (req->type != PVFS_LK_READ && req->type != PVFS_LK_WRITE))
		return -EINVAL;
	rep->granted = mgr_locks_cancel(&op->m->locks, op->s->id, req);
	return 0;
}

int mgr_op_reclaim_done(struct mgr_op *op, const struct pvfs_reclaim_done_req *req,
			struct pvfs_reclaim_done_rep *rep)
{
	/* What it told to an earlier process is forgotten: it is to tell us. */
	if (req->epoch != op->m->epoch)
		return -EAGAIN;
	/* What it asked for before, and asks for again now, may be open by then. */
	if (atomic_load(&op->s->returning))
		atomic_store(&op->s->unclaimed, mgr_mono_ms() + op->m->conf->lease_ms);
	mgr_session_returned(op->m, op->s);
	return 0;
}
