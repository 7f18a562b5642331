// SPDX-License-Identifier: GPL-2.0
/*
 * report.c - what was done to an inode here that the mgr has not been told yet: that it was read, and
 * how far it was written. It goes along with GETATTR, SETATTR, fsync's REPORT and CLOSE.
 */
#include "vfs.h"

/**
 * pvfs_update_time - the VFS has found that an access time is to be kept: as the mount's and the
 * open's flags say
 * @inode: the inode
 * @flags: S_ATIME, or nothing of interest: with S_NOCMTIME the VFS leaves the other times alone
 *
 * The mgr hears of it with the next GETATTR, or when the file is closed.
 */
int pvfs_update_time(struct inode *inode, int flags)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct timespec64 now;

	if (!(flags & S_ATIME))
		return 0;
	/* Not the time of the last tick: it is compared with times of the mgr's. */
	ktime_get_real_ts64(&now);
	spin_lock(&pi->lock);
	pvfs_set_atime(inode, now);
	pi->attr.atime_due = now;
	spin_unlock(&pi->lock);
	return 0;
}

/**
 * pvfs_atime_report - what goes along with a request: that the file was read. If the request fails,
 * nobody will know
 * @inode: the inode
 * @ret: its atime is filled
 *
 * Return: there is something to tell.
 */
bool pvfs_atime_report(struct inode *inode, struct pvfs_wreport *ret)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!READ_ONCE(pi->attr.atime_due.tv_sec))
		return false;
	spin_lock(&pi->lock);
	ret->atime = pvfs_ts_from_kernel(&pi->attr.atime_due);
	pi->attr.atime_due = (struct timespec64){};
	spin_unlock(&pi->lock);
	return true;
}

/**
 * pvfs_writes_report - what goes along with a request: our writes since the last report that was
 * answered, and that the file was read
 * @inode: the inode
 * @ret: filled
 */
void pvfs_writes_report(struct inode *inode, struct pvfs_wreport *ret)
{
	/* Pairs with pvfs_use_init(). */
	struct pvfs_use *w = smp_load_acquire(&PVFS_I(inode)->use);

	memset(ret, 0, sizeof(*ret));
	if (w) {
		spin_lock(&w->lock);
		*ret = w->rep;
		spin_unlock(&w->lock);
	}
	pvfs_atime_report(inode, ret);
}

/**
 * pvfs_writes_ack - a report was taken in by the mgr; what came after it stays. NULL is fine.
 * @w: whose; may be NULL
 * @sent: what was reported
 */
void pvfs_writes_ack(struct pvfs_use *w, const struct pvfs_wreport *sent)
{
	if (!w || !sent->end)
		return;
	spin_lock(&w->lock);
	if (w->rep.end == sent->end && w->rep.trunc_gen == sent->trunc_gen &&
	    !pvfs_ts_after(&w->rep.wtime, &sent->wtime)) {
		memset(&w->rep, 0, sizeof(w->rep));
		w->reports = atomic64_inc_return(&w->vol->reports);
	}
	spin_unlock(&w->lock);
}

/**
 * pvfs_writes_pending - have we written what the mgr has not been told?
 * @inode: the inode
 */
bool pvfs_writes_pending(struct inode *inode)
{
	/* Pairs with pvfs_use_init(). */
	struct pvfs_use *w = smp_load_acquire(&PVFS_I(inode)->use);

	return w && READ_ONCE(w->rep.end);
}

/**
 * pvfs_writes_reported - had the mgr been told of all our writes when a question was asked?
 * @inode: the inode
 * @ask: from before the question
 */
bool pvfs_writes_reported(struct inode *inode, const struct pvfs_ask *ask)
{
	/* Pairs with pvfs_use_init(). */
	struct pvfs_use *w = smp_load_acquire(&PVFS_I(inode)->use);
	bool ret;

	if (!w)
		return true;
	spin_lock(&w->lock);
	ret = !w->rep.end && w->reports <= ask->reports;
	spin_unlock(&w->lock);
	return ret;
}

/**
 * pvfs_file_grown - a file is at least so long with the present trunc_gen: our writes
 * @inode: the file; pvfs_inode.lock is held
 * @end: bytes
 */
void pvfs_file_grown(struct inode *inode, u64 end)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (pi->attr.floor_gen != pi->attr.trunc_gen)
		pi->attr.floor = 0;
	pi->attr.floor_gen = pi->attr.trunc_gen;
	pi->attr.floor = max(pi->attr.floor, end);
	if (end > i_size_read(inode))
		i_size_write(inode, end);
	pi->attr.valid = false;
}

/**
 * pvfs_writes_note - a write was answered by the iods
 * @inode: the file
 * @end: its end in the file, bytes
 * @wtime: the latest time an iod gave
 * @trunc_gen: what we knew when it began
 * @ask: the file takes another space than its size says: the mgr is to ask the iods
 */
void pvfs_writes_note(struct inode *inode, u64 end, const struct pvfs_ts *wtime, u32 trunc_gen,
		      bool ask)
{
	struct timespec64 t = pvfs_ts_to_kernel(wtime), m;
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_use *w = pi->use;

	if (w) {
		spin_lock(&w->lock);
		/*
		 * Writes from before and after a truncation in one report go under the older
		 * number: the mgr sees that it does not fit and asks the iods.
		 */
		if (ask)
			w->rep.trunc_gen = PVFS_GEN_ASK;
		else if (!w->rep.end)
			w->rep.trunc_gen = trunc_gen;
		w->rep.end = max(w->rep.end, end);
		if (pvfs_ts_after(wtime, &w->rep.wtime))
			w->rep.wtime = *wtime;
		spin_unlock(&w->lock);
	}
	spin_lock(&pi->lock);
	if (pi->attr.trunc_gen == trunc_gen)
		pvfs_file_grown(inode, end);
	m = pvfs_mtime(inode);
	if (timespec64_compare(&t, &m) > 0) {
		pvfs_set_mtime(inode, t);
		pvfs_set_ctime(inode, t);
	}
	pi->attr.valid = false;
	spin_unlock(&pi->lock);
}
