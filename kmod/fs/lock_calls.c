// SPDX-License-Identifier: GPL-2.0
/*
 * lock_calls.c - who owns locks, and what is asked of the mgr for them: see lock.c.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "lock.h"

/* ---------------------------------------------------------------- owners */

/* locks_lock held. */
struct lock_owner *pvfs_lock_owner_find(struct pvfs_inode *pi, const void *key, u8 kind)
{
	struct lock_owner *o;

	list_for_each_entry(o, &pi->locks.owners, link)
		if (o->key == key && o->kind == kind)
			return o;
	return NULL;
}

void pvfs_lock_owner_unlink(struct lock_owner *o)
{
	list_del_init(&o->link);
	if (list_empty(&o->pi->locks.owners))
		list_del_init(&o->pi->locks.listed.link);
	o->pi = NULL;
}

void pvfs_lock_owner_put(struct lock_owner *o)
{
	struct pvfs_volume *vol = o->vol;
	bool last;

	spin_lock(&vol->locks_lock);
	last = !--o->users && (!o->pi || (!o->lost && !pvfs_lock_owner_holds(o)));
	if (last && o->pi)
		pvfs_lock_owner_unlink(o);
	spin_unlock(&vol->locks_lock);
	if (last)
		kfree(o);
}

static void lock_owner_work(struct work_struct *work);

/* @make: if there is none. Return: a user, or NULL. */
struct lock_owner *pvfs_lock_owner_get(struct inode *inode, const void *key, u8 kind, bool make)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o, *new = NULL;

	if (make) {
		new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
		if (!new)
			return NULL;
		INIT_LIST_HEAD(&new->link);
		INIT_LIST_HEAD(&new->calls);
		INIT_WORK(&new->work, lock_owner_work);
		INIT_DELAYED_WORK(&new->append_work, pvfs_lock_append_late);
		new->vol = vol;
		new->pi = pi;
		new->fid = pi->fid;
		new->key = key;
		new->kind = kind;
	}
	spin_lock(&vol->locks_lock);
	o = pvfs_lock_owner_find(pi, key, kind);
	if (!o && new) {
		o = new;
		new = NULL;
		o->id = ++vol->lock_ids;
		if (list_empty(&pi->locks.owners))
			list_add_tail(&pi->locks.listed.link, &vol->lock_inodes);
		list_add_tail(&o->link, &pi->locks.owners);
	}
	if (o)
		o->users++;
	spin_unlock(&vol->locks_lock);
	kfree(new);
	return o;
}

/* ---------------------------------------------------------------- calls */

struct lock_call *pvfs_lock_call_new(struct lock_owner *o, const struct file_lock *fl, bool wait)
{
	struct pvfs_volume *vol = o->vol;
	/* An unlock must not fail for want of it. */
	struct lock_call *call = kzalloc(sizeof(*call), GFP_KERNEL | __GFP_NOFAIL);
	bool unlock = pvfs_fl(fl, type) == F_UNLCK;

	call->o = o;
	call->op = PVFS_OP_LOCK;
	refcount_set(&call->ref, 1);
	INIT_LIST_HEAD(&call->link);
	INIT_LIST_HEAD(&call->wait_link);
	init_waitqueue_head(&call->wait);
	call->aborts = READ_ONCE(vol->aborts);
	call->m = (struct pvfs_lock_req){
		.fid = o->fid,
		.kind = o->kind,
		.owner = o->id,
		.pid = pvfs_fl(fl, pid),
		.type = unlock ? PVFS_LK_UNLOCK : pvfs_lock_type(fl),
		.start = fl->fl_start,
		.end = fl->fl_end,
		.flags = wait && !unlock ? PVFS_LK_WAIT : 0,
	};
	if (o->kind == PVFS_LK_FLOCK || o->kind == PVFS_LK_APPEND) {
		call->m.start = 0;
		call->m.end = PVFS_FILE_MAX;
	}
	atomic_inc(&vol->lock_calls);
	spin_lock(&vol->locks_lock);
	o->users++;
	if (!unlock) {
		call->m.ticket = ++vol->lock_ids;
		list_add_tail(&call->wait_link, &vol->lock_waits);
	}
	spin_unlock(&vol->locks_lock);
	return call;
}

void pvfs_lock_call_put(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;

	if (!refcount_dec_and_test(&call->ref))
		return;
	spin_lock(&vol->locks_lock);
	list_del(&call->wait_link);
	spin_unlock(&vol->locks_lock);
	pvfs_lock_owner_put(call->o);
	kfree(call);
	if (atomic_dec_and_test(&vol->lock_calls))
		wake_up_all(&vol->async_wait);
}

/*
 * It was answered, or could not be sent. A lock that nobody waits for any more is taken back: the
 * answer to the LOCK has come, so the LOCK_CANCEL can't be overtaken by it.
 */
static void lock_call_answered(struct lock_call *call, int err, u8 state)
{
	struct lock_owner *o = call->o;
	struct pvfs_volume *vol = o->vol;
	bool undo, more;

	spin_lock(&vol->locks_lock);
	list_del_init(&call->link);
	o->busy = false;
	call->err = err;
	call->state = state;
	undo = call->left && !err && call->m.type != PVFS_LK_UNLOCK &&
	       !READ_ONCE(vol->locks_dead) &&
	       (call->op == PVFS_OP_LOCK ? state == PVFS_LK_GRANTED || state == PVFS_LK_QUEUED :
					   (call->m.flags & PVFS_LK_KEEP) && state);
	if (undo) {
		call->op = PVFS_OP_LOCK_CANCEL;
		call->m.flags = 0;
		call->sent = false;
		list_add(&call->link, &o->calls);
	}
	more = !list_empty(&o->calls);
	if (more) {
		o->busy = true;
		o->users++;
	}
	if (!undo) {
		/* Pairs with lock_call_done(). */
		smp_store_release(&call->done, true);
		wake_up(&call->wait);
	}
	spin_unlock(&vol->locks_lock);
	if (more)
		queue_work(pvfs_lock_wq, &o->work);
	if (!undo)
		pvfs_lock_call_put(call);
}

static void lock_call_request_done(struct pvfs_request *req)
{
	struct lock_call *call = req->priv;
	struct pvfs_lock_cancel_rep cancelled = {};
	struct pvfs_lock_rep rep = {};
	int err = req->err;

	if (!err && req->op == PVFS_OP_LOCK)
		err = pvfs_lock_rep_decode(&rep, req->rep, req->rep_len);
	else if (!err)
		err = pvfs_lock_cancel_rep_decode(&cancelled, req->rep, req->rep_len);
	if (err == -EBADMSG || rep.state > PVFS_LK_DEADLOCK)
		err = pvfs_bogus(call->o->vol, "an answer about locks", call->m.fid.ino);
	if (err && call->m.type == PVFS_LK_UNLOCK)
		pr_warn_ratelimited("%s: inode %llu: cannot unlock at the mgr: error %d\n",
				    call->o->vol->opts.volume, call->m.fid.ino, err);
	lock_call_answered(call, err, req->op == PVFS_OP_LOCK ? rep.state : cancelled.granted);
}

/* It is the first of its owner's calls, which is busy with it. */
static void lock_call_send(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;
	struct pvfs_request *req;

	req = READ_ONCE(vol->locks_dead) ? ERR_PTR(-ESHUTDOWN) :
					   pvfs_req_alloc(vol->mgr, call->op, 0);
	if (IS_ERR(req)) {
		lock_call_answered(call, PTR_ERR(req), 0);
		return;
	}
	if (call->op == PVFS_OP_LOCK) {
		req->body_len = pvfs_lock_req_encode(&call->m, req->body, req->body_room);
	} else {
		struct pvfs_lock_cancel_req m = {
			.fid = call->m.fid,
			.kind = call->m.kind,
			.type = call->m.type,
			.flags = call->m.flags,
			.owner = call->m.owner,
			.start = call->m.start,
			.end = call->m.end,
			.ticket = call->m.ticket,
		};

		req->body_len = pvfs_lock_cancel_req_encode(&m, req->body, req->body_room);
	}
	req->flags = PVFS_RF_ASYNC;
	req->done = lock_call_request_done;
	req->priv = call;
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

static void lock_owner_work(struct work_struct *work)
{
	struct lock_owner *o = container_of(work, struct lock_owner, work);
	struct lock_call *call;

	spin_lock(&o->vol->locks_lock);
	call = list_first_entry_or_null(&o->calls, struct lock_call, link);
	if (call)
		call->sent = true;
	else
		o->busy = false;	/* its caller left */
	spin_unlock(&o->vol->locks_lock);
	if (call)
		lock_call_send(call);
	pvfs_lock_owner_put(o);
}

/* Asks, after what its owner asked before. */
void pvfs_lock_call_submit(struct lock_call *call, u16 op, u32 flags, bool left)
{
	struct lock_owner *o = call->o;
	bool send;

	refcount_inc(&call->ref);
	spin_lock(&o->vol->locks_lock);
	call->op = op;
	call->m.flags = flags;
	call->left = left;
	call->done = false;
	call->hinted = false;
	list_add_tail(&call->link, &o->calls);
	send = !o->busy;
	call->sent = send;
	o->busy = true;
	spin_unlock(&o->vol->locks_lock);
	if (send)
		lock_call_send(call);
}

static bool lock_call_done(struct lock_call *call)
{
	return smp_load_acquire(&call->done);	/* pairs with lock_call_answered() */
}

/*
 * Waits for the answer. Return: 0: it is there; -EINTR killed, -EIO time is up (soft): it will be
 * dealt with when it comes. An unlock is made in every case.
 */
int pvfs_lock_call_wait(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;
	bool withdrawn = false, done;
	long left;

	left = pvfs_wait_event_timeout(call->wait, lock_call_done(call),
					   vol->opts.soft ? msecs_to_jiffies(vol->opts.timeo_ms) :
							    MAX_SCHEDULE_TIMEOUT);
	if (left > 0)
		return 0;
	spin_lock(&vol->locks_lock);
	done = call->done;
	if (!done && !call->sent && call->op == PVFS_OP_LOCK && call->m.type != PVFS_LK_UNLOCK) {
		list_del_init(&call->link);
		withdrawn = true;
	}
	call->left = !done;
	spin_unlock(&vol->locks_lock);
	if (withdrawn)
		pvfs_lock_call_put(call);
	if (done)
		return 0;
	return left ? -EINTR : -EIO;
}

/*
 * LOCK, and its answer: in call->state. Return: 0 or -errno. The mgr may have granted what failed
 * with EIO (umount -f), and nobody has heard of it: so it is cancelled.
 */
int pvfs_lock_call_ask(struct lock_call *call, u32 flags)
{
	int err;

	pvfs_lock_call_submit(call, PVFS_OP_LOCK, flags, false);
	err = pvfs_lock_call_wait(call);
	if (err)
		return err;
	if (call->err == -EIO && call->m.type != PVFS_LK_UNLOCK)
		pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
	return call->err;
}

/* umount -f came since it was begun. */
bool pvfs_lock_call_aborted(const struct lock_call *call)
{
	return READ_ONCE(call->o->vol->aborts) != call->aborts;
}

/* There is a reason not to wait any longer before it asks again. */
bool pvfs_lock_call_stirred(const struct lock_call *call)
{
	return READ_ONCE(call->hinted) || pvfs_lock_call_aborted(call);
}

/**
 * pvfs_locks_abort - umount -f: whoever waits for a lock gets EIO
 * @vol: the volume
 */
void pvfs_locks_abort(struct pvfs_volume *vol)
{
	struct lock_call *call;

	spin_lock(&vol->locks_lock);
	WRITE_ONCE(vol->aborts, vol->aborts + 1);
	list_for_each_entry(call, &vol->lock_waits, wait_link)
		wake_up(&call->wait);
	spin_unlock(&vol->locks_lock);
}

/**
 * pvfs_locks_granted - the mgr says that calls would be granted if they asked now
 * @vol: the volume
 * @req: the message; borrowed
 *
 * As pvfs_volume_ops.lock_granted. It is a hint: one that is wrong costs a question.
 *
 * Return: 0 or -EBADMSG.
 */
int pvfs_locks_granted(struct pvfs_volume *vol, const struct pvfs_lock_grant_req *req)
{
	struct lock_call *call;
	u32 i;

	if (req->tickets.len % 8)
		return -EBADMSG;
	for (i = 0; i < req->tickets.len / 8; i++) {
		u64 ticket = get_unaligned_le64(req->tickets.p + 8 * i);

		spin_lock(&vol->locks_lock);
		list_for_each_entry(call, &vol->lock_waits, wait_link) {
			if (call->m.ticket == ticket) {
				WRITE_ONCE(call->hinted, true);
				wake_up(&call->wait);
				break;
			}
		}
		spin_unlock(&vol->locks_lock);
	}
	return 0;
}
