// SPDX-License-Identifier: GPL-2.0
/*
 * unstable.c - what was written and is not known to be on stable storage: remembering it, who has claimed it to
 * sync it, and what becomes of what an iod has lost. The syncing is sync.c's.
 *
 * An iod answers a write with its verifier, which is another when its machine has been started
 * anew. What was written is safe when a later FSYNC was answered with the same one; with another it
 * may be lost, and that has to be told. So the verifiers are remembered from the write to the
 * FSYNC, by volume and file, whatever becomes of the inode meanwhile: programs close a file long
 * before it is synced, and memory is wanted for other inodes.
 *
 * With another verifier the pages that are not stable are written once more, if all that was written is
 * in the page cache (resend.c): who syncs the file does that first, and a work item, if nobody does.
 *
 * Else it may be lost. That is told once to each open descriptor of the file, when it is synced (the
 * mapping's errseq), and to the next syncfs(2) (the super block's). If no inode is in memory it is
 * told to who opens the file and syncs it.
 *
 * Memory is bounded: who writes while too many files are unsynced has the oldest of them synced
 * first.
 */
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "unstable.h"

#define RESENDS_MAX 5			/* times that pages are sent again before a sync went well */

static unsigned int unsynced_max = 16384;
module_param(unsynced_max, uint, 0644);
MODULE_PARM_DESC(unsynced_max,
		 "files of a volume that were written and not synced; with more, the oldest are synced");

void pvfs_unstable_init(struct pvfs_volume *vol)
{
	spin_lock_init(&vol->unstable.lock);
	INIT_LIST_HEAD(&vol->unstable.list);
	init_waitqueue_head(&vol->unstable.wait);
}

/* ---------------------------------------------------------------- the table */

static struct hlist_head *unstable_bucket(struct pvfs_volume *vol, u64 ino)
{
	return &vol->unstable.hash[hash_64(ino, PVFS_UNSTABLE_BITS)];
}

/* The volume's lock is held. */
static struct pvfs_unstable *unstable_find(struct pvfs_volume *vol, const struct pvfs_fid *fid)
{
	struct pvfs_unstable *u;

	hlist_for_each_entry(u, unstable_bucket(vol, fid->ino), hash)
		if (u->fid.ino == fid->ino && u->fid.gen == fid->gen)
			return u;
	return NULL;
}

/* The volume's lock is held. */
static void unstable_list(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	u->since = ++vol->unstable.seq;
	list_add_tail(&u->link, &vol->unstable.list);
	WRITE_ONCE(vol->unstable.n, vol->unstable.n + 1);
}

/* The volume's lock is held. */
static void unstable_unlist(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	if (list_empty(&u->link))
		return;
	list_del_init(&u->link);
	WRITE_ONCE(vol->unstable.n, vol->unstable.n - 1);
}

/* The volume's lock is held. Return: whether the caller is to free it. */
static bool unstable_idle(struct pvfs_unstable *u)
{
	if (u->inode || u->claimed || !list_empty(&u->link))
		return false;
	hlist_del(&u->hash);
	return true;
}

static void unstable_free(struct pvfs_unstable *u)
{
	kvfree(u->verf);
	kfree(u);
}

/**
 * pvfs_unstable_dirty - is there something to sync?
 * @u: what is remembered of a file
 */
bool pvfs_unstable_dirty(struct pvfs_unstable *u)
{
	bool ret = false;
	u32 df;

	spin_lock(&u->lock);
	for (df = 0; df < u->nverf && !ret; df++)
		ret = u->verf[df];
	spin_unlock(&u->lock);
	return ret;
}

/* Is it to be kept on the list? */
static bool unstable_pending(struct pvfs_unstable *u)
{
	return READ_ONCE(u->changed) || READ_ONCE(u->resent) || pvfs_unstable_dirty(u);
}

/**
 * pvfs_unstable_forget - nothing of a file is to be synced any more
 * @u: what is remembered of it
 */
void pvfs_unstable_forget(struct pvfs_unstable *u)
{
	spin_lock(&u->lock);
	if (u->nverf)
		memset(u->verf, 0, u->nverf * sizeof(*u->verf));
	u->changed = false;
	u->resent = false;
	spin_unlock(&u->lock);
}

/* What was written may be gone. The volume's lock is held. */
static void unstable_lost_locked(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	if (u->inode) {
		mapping_set_error(u->inode->i_mapping, -EIO);
	} else {
		errseq_set(&vol->sb->s_wb_err, -EIO);
		u->lost = true;
	}
	pr_warn_ratelimited("%s: inode %llu: what was written here and not synced may be lost\n",
			    vol->opts.volume, u->fid.ino);
}

/**
 * pvfs_unstable_lost - what was written to a file may be gone: have that told
 * @vol: the volume
 * @u: what is remembered of the file
 */
void pvfs_unstable_lost(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	spin_lock(&vol->unstable.lock);
	unstable_lost_locked(vol, u);
	spin_unlock(&vol->unstable.lock);
}

/* Takes a reference to the inode. */
static void unstable_queue(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);

	atomic_inc(&vol->closing);
	if (queue_work(vol->vfs_wq, &PVFS_I(inode)->resend.work))
		return;
	/* It is yet to run, and has its reference, which counts. */
	atomic_dec(&vol->closing);
	pvfs_iput_later(inode);
}

/* Is all that is not stable in the page cache of an inode? Both locks are held. */
static bool unstable_here(const struct pvfs_unstable *u)
{
	return u->inode && u->gone <= u->stable;
}

/**
 * pvfs_unstable_changed - @u->changed was set
 * @vol: the volume
 * @u: what is remembered of a file
 *
 * What can't be sent again is told at once; the rest is for who syncs the file next, or for the work
 * item. Does not sleep. Of an inode that is going pvfs_unstable_evict() tells.
 */
void pvfs_unstable_changed(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	struct inode *inode = NULL;

	spin_lock(&vol->unstable.lock);
	spin_lock(&u->lock);
	if (u->changed && unstable_here(u)) {
		inode = igrab(u->inode);
	} else if (u->changed) {
		/* Before it is cleared: who syncs the file looks for both, in that order. */
		unstable_lost_locked(vol, u);
		u->changed = false;
	}
	spin_unlock(&u->lock);
	spin_unlock(&vol->unstable.lock);
	if (inode)
		unstable_queue(inode);
}

/**
 * pvfs_unstable_of - what is remembered of an inode's file; it does not go before the inode
 * @inode: the file
 * @make: also if that is nothing
 *
 * Return: NULL: there is nothing, or no memory.
 */
struct pvfs_unstable *pvfs_unstable_of(struct inode *inode, bool make)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	/* Pairs with the release below. */
	struct pvfs_unstable *u = smp_load_acquire(&pi->unstable), *new = NULL;

	if (u || (!make && !READ_ONCE(vol->unstable.n)))
		return u;
	if (make) {
		new = kzalloc(sizeof(*new), GFP_NOFS);
		if (!new)
			return NULL;
		INIT_LIST_HEAD(&new->link);
		spin_lock_init(&new->lock);
		new->fid = pi->fid;
		new->gen = 1;
	}
	spin_lock(&vol->unstable.lock);
	u = unstable_find(vol, &pi->fid);
	if (!u && new) {
		u = new;
		new = NULL;
		hlist_add_head(&u->hash, unstable_bucket(vol, u->fid.ino));
	}
	if (u && !u->inode) {
		u->inode = inode;
		if (u->lost) {
			/* To those who have it open from now on; syncfs has been told. */
			errseq_set(&inode->i_mapping->wb_err, -EIO);
			u->lost = false;
			if (!u->claimed && !unstable_pending(u))
				unstable_unlist(vol, u);
		}
		/* Pairs with the load above. */
		smp_store_release(&pi->unstable, u);
	}
	spin_unlock(&vol->unstable.lock);
	kfree(new);
	return u;
}

/**
 * pvfs_unstable_evict - an inode goes
 * @inode: the inode
 *
 * What was written stays to be synced, but for a file that nobody will look at any more. Its pages
 * are gone.
 */
void pvfs_unstable_evict(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_unstable *u = PVFS_I(inode)->unstable;
	bool idle;

	if (!u)
		return;
	PVFS_I(inode)->unstable = NULL;
	spin_lock(&vol->unstable.lock);
	u->inode = NULL;
	if (!inode->i_nlink) {
		pvfs_unstable_forget(u);
		if (!u->claimed)
			unstable_unlist(vol, u);
	} else {
		spin_lock(&u->lock);
		if (u->changed)
			unstable_lost_locked(vol, u);
		if (u->changed && list_empty(&u->link))
			unstable_list(vol, u);
		u->changed = false;
		u->resent = false;
		u->gone = u->gen;
		spin_unlock(&u->lock);
		if (!u->claimed && !u->lost && !pvfs_unstable_dirty(u))
			unstable_unlist(vol, u);
	}
	idle = unstable_idle(u);
	spin_unlock(&vol->unstable.lock);
	if (idle)
		unstable_free(u);
}

/**
 * pvfs_unstable_free - all inodes of a volume are gone
 * @vol: the volume
 */
void pvfs_unstable_free(struct pvfs_volume *vol)
{
	struct pvfs_unstable *u, *next;

	list_for_each_entry_safe(u, next, &vol->unstable.list, link)
		unstable_free(u);
	INIT_LIST_HEAD(&vol->unstable.list);
}

/* ---------------------------------------------------------------- writes */

/**
 * pvfs_unstable_room - before a write
 * @inode: the file
 * @n: it has so many datafiles
 *
 * Without it what is written would not be synced by fsync.
 *
 * Return: 0, -ENOMEM, or -EINTR: killed while older files were synced.
 */
int pvfs_unstable_room(struct inode *inode, u32 n)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_unstable *u;
	u64 *verf, *old;
	int err;

	if (READ_ONCE(vol->unstable.n) >= READ_ONCE(unsynced_max)) {
		err = pvfs_unstable_trim(vol);
		if (err)
			return err;
	}
	u = pvfs_unstable_of(inode, true);
	if (!u)
		return -ENOMEM;
	if (READ_ONCE(u->nverf) >= n)
		return 0;
	verf = kvcalloc(n, sizeof(*verf), GFP_NOFS);
	if (!verf)
		return -ENOMEM;
	spin_lock(&u->lock);
	old = verf;
	if (u->nverf < n) {
		if (u->nverf)
			memcpy(verf, u->verf, u->nverf * sizeof(*verf));
		old = u->verf;
		u->verf = verf;
		WRITE_ONCE(u->nverf, n);
	}
	spin_unlock(&u->lock);
	kvfree(old);
	return 0;
}

/* Some of what was written so far is not in the page cache, or not to be sent again. u->lock is held. */
static void unstable_all_gone(struct pvfs_unstable *u)
{
	u->gone = u->gen;
	u->missing = true;
}

/**
 * pvfs_unstable_session - the capability is of that session
 * @u: what is remembered of a file; its lock is held
 * @session: the session
 *
 * What was written in a former one others may have gone on from.
 */
void pvfs_unstable_session(struct pvfs_unstable *u, u64 session)
{
	if (u->session && u->session != session)
		unstable_all_gone(u);
	u->session = session;
}

/**
 * pvfs_unstable_note - an iod has taken a write
 * @inode: the file; pvfs_unstable_room() was called for it
 * @layout: that it was written with
 * @df: the datafile
 * @verifier: from the answer
 * @cap: the write was made with, any of the file's
 * @session: in which @cap is good
 * @kept: what was written are pages of the page cache, which get their stamps behind this
 *
 * Another verifier than before: what was written before and not synced may be lost.
 */
void pvfs_unstable_note(struct inode *inode, const struct pvfs_layout *layout, u32 df, u64 verifier,
			const struct pvfs_cap *cap, u64 session, bool kept)
{
	struct pvfs_unstable *u = PVFS_I(inode)->unstable;
	struct pvfs_volume *vol = PVFS_VOL(inode);
	bool changed;
	u64 old;

	if (WARN_ONCE(!u || df >= READ_ONCE(u->nverf), "pvfs: a write that fsync would not sync\n"))
		return;
	spin_lock(&u->lock);
	old = u->verf[df];
	u->verf[df] = pvfs_unstable_verf(verifier);
	changed = old && old != pvfs_unstable_verf(verifier);
	u->changed |= changed;
	if (!kept)
		unstable_all_gone(u);
	if (!old || u->session != session) {
		u->layout = *layout;
		u->cap = *cap;
		pvfs_unstable_session(u, session);
	}
	spin_unlock(&u->lock);
	if (changed)
		pvfs_unstable_changed(vol, u);
	if (old)
		return;
	spin_lock(&vol->unstable.lock);
	if (list_empty(&u->link))
		unstable_list(vol, u);
	spin_unlock(&vol->unstable.lock);
}

/**
 * pvfs_unstable_stamp - the generation of what was written
 * @inode: the file; its iods have answered, and pvfs_unstable_note() was called
 */
unsigned long pvfs_unstable_stamp(struct inode *inode)
{
	struct pvfs_unstable *u = PVFS_I(inode)->unstable;
	unsigned long ret;

	spin_lock(&u->lock);
	ret = u->gen;
	spin_unlock(&u->lock);
	return ret;
}

/**
 * pvfs_unstable_gone - a page of the page cache goes
 * @inode: whose
 * @stamp: the page's, of pvfs_unstable_stamp()
 * @index: where it is in the file, pages
 */
void pvfs_unstable_gone(struct inode *inode, unsigned long stamp, pgoff_t index)
{
	struct pvfs_unstable *u = PVFS_I(inode)->unstable;

	spin_lock(&u->lock);
	u->gone = max(u->gone, stamp);
	/* What has been made dirty went by another WRITE before it could go. */
	if (u->resending && index >= u->passed && stamp > u->stable)
		u->missing = true;
	spin_unlock(&u->lock);
}

/**
 * pvfs_unstable_passed - a page was looked at, and made dirty if it has to be sent again
 * @inode: whose
 * @index: where it is in the file, pages; it is locked
 */
void pvfs_unstable_passed(struct inode *inode, pgoff_t index)
{
	struct pvfs_unstable *u = PVFS_I(inode)->unstable;

	spin_lock(&u->lock);
	u->passed = index + 1;
	spin_unlock(&u->lock);
}

/**
 * pvfs_unstable_resends - how often pages of a file were made dirty to be sent again
 * @inode: the file
 *
 * If it is another after the file was synced than before its pages were written, some may not have
 * been.
 */
u32 pvfs_unstable_resends(const struct inode *inode)
{
	return atomic_read(&PVFS_I(inode)->resend.n);
}

/* ---------------------------------------------------------------- claims */

/* The volume's lock is held. */
static bool unstable_claim_locked(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	if (u->claimed)
		return false;
	u->claimed = true;
	u->begun = ++vol->unstable.seq;
	u->err = 0;
	u->redo = false;
	return true;
}

/**
 * pvfs_unstable_claim - claim a file, to sync it
 * @vol: the volume
 * @u: what is remembered of the file
 *
 * Return: false: somebody else has.
 */
bool pvfs_unstable_claim(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	bool ret;

	spin_lock(&vol->unstable.lock);
	ret = unstable_claim_locked(vol, u);
	spin_unlock(&vol->unstable.lock);
	return ret;
}

/**
 * pvfs_unstable_release - claims are given back
 * @vol: the volume
 * @us: of what is remembered of these files, which may go with it
 * @n: so many
 *
 * What was written meanwhile, or could not be synced, goes to the end, so that trimming comes to
 * others; since when it is on the list stays: a syncfs that has begun before goes by that.
 */
void pvfs_unstable_release(struct pvfs_volume *vol, struct pvfs_unstable **us, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct pvfs_unstable *u = us[i];
		bool idle;

		spin_lock(&vol->unstable.lock);
		u->claimed = false;
		/* Whose task was killed was not tried, nor was what has to be sent again. */
		if (u->err != -EINTR && !u->redo) {
			u->tried = u->begun;
			u->failed = u->err;
		}
		if (!u->lost && !unstable_pending(u))
			unstable_unlist(vol, u);
		else if (list_empty(&u->link))
			unstable_list(vol, u);
		else
			list_move_tail(&u->link, &vol->unstable.list);
		idle = unstable_idle(u);
		spin_unlock(&vol->unstable.lock);
		if (idle)
			unstable_free(u);
	}
	wake_up_all(&vol->unstable.wait);
}

/**
 * pvfs_unstable_claim_oldest - claim some of the files that are on the list
 * @vol: the volume
 * @since: since then or longer, the first
 * @told: also those of which there is only a loss to be told
 * @us: set to them, up to PVFS_UNSTABLE_FILES
 * @busy: set to whether others have claimed some of them
 * @failed: those that somebody has tried to sync from beginning to end after @since are not claimed
 *	again: set to whether one of these attempts failed
 *
 * Return: how many.
 */
unsigned int pvfs_unstable_claim_oldest(struct pvfs_volume *vol, u64 since, bool told,
					struct pvfs_unstable **us, bool *busy, bool *failed)
{
	struct pvfs_unstable *u;
	unsigned int n = 0;

	*busy = false;
	*failed = false;
	spin_lock(&vol->unstable.lock);
	list_for_each_entry(u, &vol->unstable.list, link) {
		if (n == PVFS_UNSTABLE_FILES)
			break;
		if (u->since > since)
			continue;
		if (u->lost && !told && !u->claimed && !unstable_pending(u))
			continue;
		if (!u->claimed && u->tried > since) {
			*failed |= u->failed;
			continue;
		}
		if (unstable_claim_locked(vol, u))
			us[n++] = u;
		else
			*busy = true;
	}
	spin_unlock(&vol->unstable.lock);
	return n;
}

/**
 * pvfs_unstable_unsettled - is something of a file to be sent again, or to be told as lost?
 * @inode: the file, which is open for writing
 */
bool pvfs_unstable_unsettled(struct inode *inode)
{
	struct pvfs_unstable *u = smp_load_acquire(&PVFS_I(inode)->unstable);	/* pairs with pvfs_unstable_room() */

	return u && (READ_ONCE(u->changed) || READ_ONCE(u->resending));
}

/* ---------------------------------------------------------------- sending again */

/**
 * pvfs_unstable_resend - another verifier is dealt with: pages are made dirty, or it is told
 * @vol: the volume
 * @u: what is remembered of the file, which is claimed
 *
 * Return: 0, or -EINTR: killed, it is to be done yet.
 */
int pvfs_unstable_resend(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	struct inode *inode = NULL;
	unsigned long stable = 0;
	bool missing;
	int err;

	if (!READ_ONCE(u->changed))
		return 0;
	spin_lock(&vol->unstable.lock);
	spin_lock(&u->lock);
	if (u->changed && unstable_here(u) && u->resends < RESENDS_MAX) {
		inode = igrab(u->inode);
		if (inode) {
			u->changed = false;
			u->resent = true;
			u->resends++;
			u->resending = true;
			u->missing = false;
			u->passed = 0;
			stable = u->stable;
		}
	} else if (u->changed) {
		unstable_lost_locked(vol, u);
		u->changed = false;
	}
	spin_unlock(&u->lock);
	spin_unlock(&vol->unstable.lock);
	if (!inode)
		return 0;
	err = pvfs_resend(inode, stable);
	/* Who has seen the number before may have written pages before this made them dirty. */
	atomic_inc(&PVFS_I(inode)->resend.n);
	spin_lock(&u->lock);
	u->changed |= err == -EINTR;
	u->resending = false;
	missing = u->missing;
	spin_unlock(&u->lock);
	if (err == -EINTR) {
		ihold(inode);
		unstable_queue(inode);
	} else if (err || missing) {
		pvfs_unstable_lost(vol, u);
	}
	pvfs_iput_later(inode);
	return err == -EINTR ? err : 0;
}

/**
 * pvfs_unstable_resent - what had to be sent again was written and synced
 * @inode: the file
 * @u: what is remembered of it
 * @seen: of pvfs_unstable_resends(), from before
 */
void pvfs_unstable_resent(struct inode *inode, struct pvfs_unstable *u, u32 seen)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);

	spin_lock(&vol->unstable.lock);
	spin_lock(&u->lock);
	/* Who has claimed it may be about to send again. */
	if (!u->claimed && seen == pvfs_unstable_resends(inode))
		WRITE_ONCE(u->resent, false);
	spin_unlock(&u->lock);
	if (!u->claimed && !u->lost && !unstable_pending(u))
		unstable_unlist(vol, u);
	spin_unlock(&vol->unstable.lock);
}
