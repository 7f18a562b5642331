// SPDX-License-Identifier: GPL-2.0
/*
 * late.c - what a dying task leaves to be written, and how long it waits for that; and what a task must
 * not wait for at all, as it is another's.
 *
 * Who reads /proc/PID/stat, or memory of a process, holds that process's memory for a moment, and the one
 * who lets go of it last takes it apart: if the process ended meanwhile, that is not the process. Such a
 * task is not to wait for anybody's iods.
 *
 * No signal reaches a task that is exiting, so what it would wait for on its way out could not be
 * ended: it would stay, with all its memory, for as long as a server is away. And pages may be in
 * the hands of others, whom nobody can wait for killably. So a work item writes what is left of the
 * file. The task waits for that as long as it gets on, as others are to find the bytes when the
 * process has gone; but no longer than PVFS_EXIT_MS in which nothing of the file was written. From
 * then on what it asks on its way out goes on alone, see pvfs_exit_hurry(): pages stay in the
 * mapping, dirty or being written, a draft stays with the inode, and the open, without which the
 * iods would refuse them, is given back after that. What fails is noted in the mapping, for who has
 * the file open and syncs it, and in the log, as there may be nobody.
 *
 * What was written under a WRITE lease, and a draft, goes the same way behind its last close, as whoever asks for the file waits
 * for that wherever he is. There nobody waits here, either, unless that is so of many files already.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "vfs.h"

struct late {
	struct work_struct work;
	refcount_t ref;			/* the work's and the task's */
	struct inode *inode;		/* the work's reference, which counts in vol->closing */
	u32 flags;			/* of an open that is to be given back then; 0: none */
	bool done;
	wait_queue_head_t wait;
};

static void late_put(struct late *late)
{
	if (refcount_dec_and_test(&late->ref))
		kfree(late);
}

static void late_work(struct work_struct *work)
{
	struct late *late = container_of(work, struct late, work);
	struct inode *inode = late->inode;
	errseq_t since;
	int err;

	pvfs_draft_close(inode);
	/* Also of one that nobody has seen. */
	since = READ_ONCE(inode->i_mapping->wb_err);
	if (late->flags & PVFS_O_WRITE)
		pvfs_wlease_leave(inode);
	pvfs_cache_write(inode, 0, LLONG_MAX);
	pvfs_unstable_settle(inode);
	err = filemap_check_wb_err(inode->i_mapping, since);
	if (err)
		pr_warn_ratelimited("%s: inode %llu: something that was written and closed is lost: error %d\n",
				    PVFS_VOL(inode)->opts.volume, PVFS_I(inode)->fid.ino, err);
	if (late->flags)
		pvfs_close_at_mgr(PVFS_VOL(inode), &PVFS_I(inode)->fid, late->flags, inode);
	smp_store_release(&late->done, true);	/* pairs with late_done() */
	wake_up_all(&late->wait);
	late_put(late);
	atomic_dec(&PVFS_VOL(inode)->late);
	pvfs_use_iput(PVFS_I(inode)->use);	/* also counts vol->closing down */
}

static bool late_done(const struct late *late)
{
	return smp_load_acquire(&late->done);	/* pairs with late_work() */
}

/**
 * pvfs_dying - does this task have to leave what takes long to others?
 *
 * Return: it is exiting, or was killed.
 */
bool pvfs_dying(void)
{
	return (current->flags & PF_EXITING) || fatal_signal_pending(current);
}

/**
 * pvfs_late_room - may one more file be written by a work item that nobody waits for?
 * @vol: the volume
 *
 * What an iod that is away holds up of them stays.
 */
bool pvfs_late_room(const struct pvfs_volume *vol)
{
	return atomic_read(&vol->late) < PVFS_LATE_MAX;
}

/**
 * pvfs_late_behind - is what was written to a file to go to the servers behind its close, or munmap?
 * @inode: the file
 *
 * Under a WRITE lease, and of a draft, who asks for the file waits for it, as for what was not closed yet; then also for
 * what a mapping stored.
 */
bool pvfs_late_behind(struct inode *inode)
{
	const struct pvfs_volume *vol = PVFS_VOL(inode);

	if (vol->opts.flush_close || !vol->opts.cache || !pvfs_late_room(vol))
		return false;
	if (pvfs_draft_behind(inode))
		return true;
	if (!pvfs_wlease_token(inode))
		return false;
	WRITE_ONCE(PVFS_I(inode)->wl.behind, true);
	return true;
}

/**
 * pvfs_late_due - is anything of a file still to be written?
 * @inode: the file
 *
 * Return: it has a draft, or pages that are dirty or being written.
 */
bool pvfs_late_due(struct inode *inode)
{
	return READ_ONCE(PVFS_I(inode)->draft.d) ||
	       mapping_tagged(inode->i_mapping, PAGECACHE_TAG_DIRTY) ||
	       mapping_tagged(inode->i_mapping, PAGECACHE_TAG_WRITEBACK);
}

/**
 * pvfs_late_lost - was anything lost that was written to a file, and nobody has been told?
 * @inode: the file
 *
 * For who is about to give it another name, which may be that of what it was to replace: close has not waited. It is told
 * once; who has the file open is told all the same. Not of what is still on its way to iods: directories are not to wait for these.
 *
 * Return: 0, -EIO, -ENOSPC or -EDQUOT.
 */
int pvfs_late_lost(struct inode *inode)
{
	struct address_space *mapping = inode->i_mapping;
	errseq_t since = filemap_sample_wb_err(mapping);
	int err = errseq_check_and_advance(&mapping->wb_err, &since);

	return !err || err == -ENOSPC || err == -EDQUOT ? err : -EIO;
}

/**
 * pvfs_late_write - have others write what is left of a file
 * @inode: the file, which this task has open
 * @flags: an open of it, as opened, that is given back when all is written; 0: none
 * @wait: wait for that, if it does not take long; not a task that was killed, or has waited as long as it
 *	may
 */
void pvfs_late_write(struct inode *inode, u32 flags, bool wait)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct late *late;
	long left;
	u32 seen;

	/* Who would not wait leaves it to the last close: a process may have a thousand mappings. */
	if (!flags && fatal_signal_pending(current))
		return;
	late = kmalloc(sizeof(*late), GFP_KERNEL | __GFP_NOFAIL);
	INIT_WORK(&late->work, late_work);
	refcount_set(&late->ref, 2);
	late->inode = inode;
	late->flags = flags;
	late->done = false;
	init_waitqueue_head(&late->wait);
	ihold(inode);
	atomic_inc(&PVFS_VOL(inode)->closing);
	atomic_inc(&PVFS_VOL(inode)->late);
	queue_work(PVFS_VOL(inode)->late_wq, &late->work);
	if (!wait) {
		late_put(late);
		return;
	}
	do {
		seen = READ_ONCE(pi->wb.wrote);
		left = pvfs_wait_event_timeout(late->wait, late_done(late),
					       msecs_to_jiffies(PVFS_EXIT_MS));
	} while (!left && READ_ONCE(pi->wb.wrote) != seen);
	if (!left)
		pvfs_exit_hurry();
	late_put(late);
}
