// SPDX-License-Identifier: GPL-2.0
/*
 * lock_append.c - the lock that makes appending atomic on all clients: of a kind of its own, whose
 * owner is the inode, and which no list of the kernel has. It is kept for a moment after a write,
 * for the next one.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "lock.h"

#define APPEND_MS 50	/* to be kept by one append after the other, when others may wait for it */

/* The lock is not ours any more. Return: it was. */
bool pvfs_lock_append_drop(struct lock_owner *o)
{
	bool had;

	if (!o)
		return false;
	spin_lock(&o->vol->locks_lock);
	had = o->appends;
	o->appends = false;
	spin_unlock(&o->vol->locks_lock);
	return had;
}

static void append_lock_init(struct file_lock *fl, int type)
{
	locks_init_lock(fl);
	pvfs_fl(fl, type) = type;
	fl->fl_start = 0;
	fl->fl_end = OFFSET_MAX;
}

/* Gives the lock back. @o: a user, which is put. */
static void append_unlock(struct lock_owner *o)
{
	struct pvfs_volume *vol = o->vol;
	struct lock_call *call;
	struct file_lock fl;

	if (pvfs_lock_append_drop(o)) {
		append_lock_init(&fl, F_UNLCK);
		call = pvfs_lock_call_new(o, &fl, false);
		pvfs_lock_call_submit(call, PVFS_OP_LOCK, 0, true);
		pvfs_lock_call_put(call);
	}
	pvfs_lock_owner_put(o);
	if (atomic_dec_and_test(&vol->lock_calls))
		wake_up_all(&vol->async_wait);
}

void pvfs_lock_append_late(struct work_struct *work)
{
	append_unlock(container_of(to_delayed_work(work), struct lock_owner, append_work));
}

/* Until it is time to ask again. */
static int append_pause(struct lock_call *call)
{
	long left = pvfs_wait_event_timeout(call->wait, pvfs_lock_call_stirred(call),
						msecs_to_jiffies(call->state == PVFS_LK_QUEUED ?
									 PVFS_LOCK_ASK_MS :
									 PVFS_LOCK_GRACE_MS));

	if (pvfs_lock_call_aborted(call))
		return -EIO;
	return left < 0 ? -EINTR : 0;
}

static int append_ask(struct lock_owner *o, struct lock_call *call)
{
	struct pvfs_volume *vol = o->vol;
	u64 session, epoch, session_now, epoch_now;
	int err;

	for (;;) {
		pvfs_session_sample(vol, &session, &epoch);
		err = pvfs_lock_call_ask(call, PVFS_LK_WAIT);
		if (err)
			return err;
		if (call->state != PVFS_LK_GRANTED) {
			err = append_pause(call);
			if (err) {
				pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
				return err;
			}
			continue;
		}
		spin_lock(&vol->locks_lock);
		o->appends = true;
		spin_unlock(&vol->locks_lock);
		/* As in lock_set(): a new mgr is told of it, or asked again. */
		pvfs_session_sample(vol, &session_now, &epoch_now);
		if (session_now == session && epoch_now == epoch)
			return 0;
	}
}

/**
 * pvfs_append_begin - no other client appends to a file, or cuts it, until pvfs_append_end()
 * @inode: the file; i_rwsem held exclusively until then
 * @ret: for pvfs_append_end()
 *
 * Return: 0, -EINTR killed, or -errno.
 */
int pvfs_append_begin(struct inode *inode, struct lock_owner **ret)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o = pvfs_lock_owner_get(inode, pi, PVFS_LK_APPEND, true);
	struct lock_call *call;
	struct file_lock fl;
	int err;

	if (!o)
		return -ENOMEM;
	if (cancel_delayed_work_sync(&o->append_work)) {
		pvfs_lock_owner_put(o);			/* the work's: ours is another */
		if (READ_ONCE(o->appends))
			goto out;
	} else {
		atomic_inc(&vol->lock_calls);	/* from here to append_unlock() */
	}
	append_lock_init(&fl, F_WRLCK);
	call = pvfs_lock_call_new(o, &fl, true);
	err = append_ask(o, call);
	pvfs_lock_call_put(call);
	if (err) {
		append_unlock(o);
		return err == -ESHUTDOWN || err == -ENOLCK ? -EIO : err;
	}
	o->since = jiffies;
out:
	*ret = o;
	return 0;
}

/**
 * pvfs_append_holds - is the lock still ours? A session that was lost takes it along
 * @o: from pvfs_append_begin()
 */
bool pvfs_append_holds(const struct lock_owner *o)
{
	return READ_ONCE(o->appends);
}

/**
 * pvfs_append_end - others may append: at once if they have waited for long, else soon
 * @o: from pvfs_append_begin()
 */
void pvfs_append_end(struct lock_owner *o)
{
	if (time_before(jiffies, o->since + msecs_to_jiffies(APPEND_MS)))
		queue_delayed_work(pvfs_lock_wq, &o->append_work, 1);
	else
		append_unlock(o);
}
