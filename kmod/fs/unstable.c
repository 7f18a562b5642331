// SPDX-License-Identifier: GPL-2.0
/*
 * unstable.c - what was written and is not known to be on stable storage, and having it put there.
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
 * first. Files are synced many at once, so that all iods work; each by one task at a time, and who
 * comes second waits for it, as the first has taken the verifiers. A task never waits for another's
 * file while it has some of its own claimed.
 *
 * It is long, as all of it is about one table and who holds which of its two locks, and claims: nobody
 * else knows of these.
 */
#include <linux/moduleparam.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "vfs.h"

#define UNSTABLE_FILES 32		/* synced at once by one task */
#define UNSTABLE_PARTS 64		/* FSYNCs under way of one task */
#define UNSTABLE_TRIES 5		/* sessions may end under it */
#define RESENDS_MAX 5			/* times that pages are sent again before a sync went well */
#define UNMOUNT_DOWN_MS 5000		/* at unmount: with a server that is away, */
#define UNMOUNT_SILENT_MS 20000		/* or that has answered nothing for so long */
#define UNMOUNT_ABORT_MS 200		/* then again and again */

static unsigned int unsynced_max = 16384;
module_param(unsynced_max, uint, 0644);
MODULE_PARM_DESC(unsynced_max,
		 "files of a volume that were written and not synced; with more, the oldest are synced");

/* A file that was written to. vol->unstable.lock protects what has no remark. */
struct pvfs_unstable {
	struct hlist_node hash;
	struct list_head link;	/* on vol->unstable.list while there is something to sync or tell */
	struct pvfs_fid fid;		/* constant */
	struct inode *inode;		/* that points here; NULL: none is in memory */
	u64 since;			/* when it came onto the list */
	u64 begun;			/* when who has claimed it did so, */
	u64 tried;			/* and when the last one who is done did; as since */
	bool failed;			/* that one could not sync all of it */
	bool claimed;			/* somebody is syncing it, and sees to it afterwards */
	int err;			/* what came of that so far; the claimer's */
	bool lost;			/* to be told to who opens it */
	spinlock_t lock;		/* protects the rest; inside vol->unstable.lock */
	struct pvfs_layout layout;
	struct pvfs_cap cap;		/* of the last write; any is good for FSYNC */
	u64 session;			/* in this session */
	u64 *verf;			/* by datafile: of writes since the last FSYNC, 0: none */
	u32 nverf;
	/*
	 * Generations of what is written: @gen now; what was up to @stable is on stable storage, or was
	 * told as lost; and of @gone is the latest that is not in the page cache. See resend.c.
	 */
	unsigned long gen, stable, gone;
	/* a verifier was another, which is to be dealt with; cleared under vol->unstable.lock, too */
	bool changed;
	bool resent;	/* pages were made dirty for that, and not all were written and synced since */
	/* that is being done, and pages from this one on are yet to be looked at; one of these went */
	bool resending, missing;
	pgoff_t passed;
	u32 resends;			/* how often, since a sync went well */
	unsigned long syncing;		/* the claimer's: what it will have synced */
	bool missed;			/* the same: not all of that */
	bool redo;			/* the same: it is not done with it */
};

/* A datafile being synced. */
struct unstable_part {
	struct pvfs_unstable *u;
	struct pvfs_request *req;
	u64 verf;
	u64 session;
	u32 df;
};

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

static bool unstable_dirty(struct pvfs_unstable *u)
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
	return READ_ONCE(u->changed) || READ_ONCE(u->resent) || unstable_dirty(u);
}

/* Nothing of it is to be synced any more. */
static void unstable_forget(struct pvfs_unstable *u)
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

static void unstable_lost(struct pvfs_volume *vol, struct pvfs_unstable *u)
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
	if (queue_work(vol->vfs_wq, &PVFS_I(inode)->resend_work))
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

/*
 * u->changed was set. What can't be sent again is told at once; the rest is for who syncs the file
 * next, or for the work item. Does not sleep. Of an inode that is going pvfs_unstable_evict() tells.
 */
static void unstable_changed(struct pvfs_volume *vol, struct pvfs_unstable *u)
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

/*
 * What is remembered of an inode's file; it does not go before the inode. @make: also if that is
 * nothing. Return: NULL: there is nothing, or no memory.
 */
static struct pvfs_unstable *unstable_of(struct inode *inode, bool make)
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
		unstable_forget(u);
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
		if (!u->claimed && !u->lost && !unstable_dirty(u))
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
	u = unstable_of(inode, true);
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

/* A verifier as we keep it: 0 means none. */
static u64 unstable_verf(u64 verifier)
{
	return verifier ?: 1;
}

/* Some of what was written so far is not in the page cache, or not to be sent again. u->lock is held. */
static void unstable_all_gone(struct pvfs_unstable *u)
{
	u->gone = u->gen;
	u->missing = true;
}

/*
 * The capability is of that one. What was written in a former one others may have gone on from.
 * u->lock is held.
 */
static void unstable_session(struct pvfs_unstable *u, u64 session)
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
	u->verf[df] = unstable_verf(verifier);
	changed = old && old != unstable_verf(verifier);
	u->changed |= changed;
	if (!kept)
		unstable_all_gone(u);
	if (!old || u->session != session) {
		u->layout = *layout;
		u->cap = *cap;
		unstable_session(u, session);
	}
	spin_unlock(&u->lock);
	if (changed)
		unstable_changed(vol, u);
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
	return atomic_read(&PVFS_I(inode)->resends);
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

static bool unstable_claim(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	bool ret;

	spin_lock(&vol->unstable.lock);
	ret = unstable_claim_locked(vol, u);
	spin_unlock(&vol->unstable.lock);
	return ret;
}

/*
 * The claims are given back. What was written meanwhile, or could not be synced, goes to the end, so
 * that trimming comes to others; since when it is on the list stays: a syncfs that has begun before
 * goes by that.
 */
static void unstable_release(struct pvfs_volume *vol, struct pvfs_unstable **us, unsigned int n)
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

/*
 * Claims some of the files that are on the list since @since or longer, the first; not those that
 * somebody has tried to sync from beginning to end after that: *@failed then says whether one of
 * these attempts failed. @told: also those of which there is only a loss to be told. *@busy: others
 * have claimed some of them.
 */
static unsigned int unstable_claim_oldest(struct pvfs_volume *vol, u64 since, bool told,
					  struct pvfs_unstable **us, bool *busy, bool *failed)
{
	struct pvfs_unstable *u;
	unsigned int n = 0;

	*busy = false;
	*failed = false;
	spin_lock(&vol->unstable.lock);
	list_for_each_entry(u, &vol->unstable.list, link) {
		if (n == UNSTABLE_FILES)
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

/* ---------------------------------------------------------------- syncing */

/*
 * A capability that is good now. That of the writes is, unless the session is another: then the file
 * may not be open any more, and is opened in the kernel's own name.
 */
static int unstable_cap(struct pvfs_volume *vol, struct pvfs_unstable *u)
{
	struct inode *inode = NULL;
	u64 session, epoch;
	struct pvfs_cap cap;
	int err = -EBADF;
	bool good;

	pvfs_session_sample(vol, &session, &epoch);
	spin_lock(&u->lock);
	good = u->session == session;
	spin_unlock(&u->lock);
	if (good)
		return 0;
	spin_lock(&vol->unstable.lock);
	if (u->inode)
		inode = igrab(u->inode);
	spin_unlock(&vol->unstable.lock);
	/*
	 * Who has it open has one. An open of our own beside theirs would not be among what recovery
	 * tells the mgr, and its CLOSE would end theirs.
	 */
	if (inode) {
		err = pvfs_file_cap(inode, 0, &cap, &session);
		pvfs_iput_later(inode);
	}
	if (err == -EBADF) {
		err = pvfs_meta_open_fid(vol, &u->fid, PVFS_O_READ, &cap);
		if (!err)
			pvfs_close_at_mgr(vol, &u->fid, PVFS_O_READ, NULL);
	}
	if (err)
		return err;
	/* If it has become another meanwhile the iods refuse it, and it comes again. */
	spin_lock(&u->lock);
	u->cap = cap;
	unstable_session(u, session);
	spin_unlock(&u->lock);
	return 0;
}

/* Takes the verifiers of the next datafiles from *@df on. */
static unsigned int unstable_collect(struct pvfs_unstable *u, u32 *df, struct unstable_part *parts,
				     unsigned int room)
{
	unsigned int n = 0;

	spin_lock(&u->lock);
	for (; *df < u->nverf && n < room; ++*df) {
		if (!u->verf[*df])
			continue;
		parts[n++] = (struct unstable_part){ .u = u, .df = *df, .verf = u->verf[*df],
						     .session = u->session };
		u->verf[*df] = 0;
	}
	spin_unlock(&u->lock);
	return n;
}

/* It was not synced after all. What was written meanwhile may have told of another verifier. */
static void unstable_restore(struct pvfs_volume *vol, const struct unstable_part *p)
{
	bool changed;
	u64 newer;

	spin_lock(&p->u->lock);
	newer = p->u->verf[p->df];
	if (!newer)
		p->u->verf[p->df] = p->verf;
	changed = newer && newer != p->verf;
	p->u->changed |= changed;
	p->u->missed = true;
	spin_unlock(&p->u->lock);
	if (changed)
		unstable_changed(vol, p->u);
}

static void unstable_submit(struct pvfs_volume *vol, struct unstable_part *p, bool datasync)
{
	struct pvfs_fsync_req m = { .fid = p->u->fid, .flags = datasync ? PVFS_FS_DATASYNC : 0 };
	struct pvfs_layout layout;

	spin_lock(&p->u->lock);
	layout = p->u->layout;
	m.cap = p->u->cap;
	spin_unlock(&p->u->lock);
	/* Who writes pages back may have to wait for it: pvfs_unstable_trim(). */
	p->req = pvfs_req_alloc_giving(pvfs_io_iod(vol, &layout, p->df), PVFS_OP_FSYNC, 0);
	if (IS_ERR(p->req))
		return;
	p->req->body_len = pvfs_fsync_req_encode(&m, p->req->body, p->req->body_room);
	pvfs_req_submit(p->req);
}

/* Return: 0, also when it may be lost; -EAGAIN: the session had ended; or another -errno. */
static int unstable_answer(struct pvfs_volume *vol, struct unstable_part *p)
{
	struct pvfs_fsync_rep rep;
	int err;

	if (IS_ERR(p->req)) {
		err = PTR_ERR(p->req);
	} else {
		err = pvfs_req_wait(p->req);
		if (!err && pvfs_fsync_rep_decode(&rep, p->req->rep, p->req->rep_len))
			err = -EIO;
		pvfs_req_put(p->req);
	}
	if (!err) {
		WRITE_ONCE(vol->unstable.answers, vol->unstable.answers + 1);
		if (unstable_verf(rep.verifier) != p->verf) {
			spin_lock(&p->u->lock);
			p->u->changed = true;
			spin_unlock(&p->u->lock);
			unstable_changed(vol, p->u);
		}
		return 0;
	}
	unstable_restore(vol, p);
	if (err == -EACCES && pvfs_session_over(vol, p->session))
		return -EAGAIN;
	p->u->err = err == -ESHUTDOWN || err == -EAGAIN ? -EIO : err;
	return p->u->err;
}

/* All at once. *@again is set when the session had ended. Return: 0 or the first -errno. */
static int unstable_run(struct pvfs_volume *vol, struct unstable_part *parts, unsigned int n,
			bool datasync, bool *again)
{
	unsigned int i;
	int err, e;

	if (!n)
		return 0;
	err = pvfs_io_permits_get(vol, n, true);
	if (err) {
		for (i = 0; i < n; i++) {
			unstable_restore(vol, &parts[i]);
			parts[i].u->err = err;
		}
		return err;
	}
	for (i = 0; i < n; i++)
		unstable_submit(vol, &parts[i], datasync);
	for (i = 0; i < n; i++) {
		e = unstable_answer(vol, &parts[i]);
		if (e == -EAGAIN)
			*again = true;
		else
			err = err ?: e;
	}
	pvfs_io_permits_put(vol, n, true);
	return err;
}

/* What is written from now on this sync does not answer for. */
static void unstable_sync_begin(struct pvfs_unstable *u)
{
	spin_lock(&u->lock);
	u->syncing = u->gen++;
	spin_unlock(&u->lock);
}

static void unstable_sync_end(struct pvfs_unstable *u)
{
	spin_lock(&u->lock);
	if (!u->err && !u->missed && !u->changed) {
		u->stable = u->syncing;
		u->resends = 0;
	}
	spin_unlock(&u->lock);
}

/* Syncs files that this task has claimed. Return: 0 or -errno of one of them; their err has each. */
static int unstable_sync(struct pvfs_volume *vol, struct pvfs_unstable **us, unsigned int n,
			 bool datasync)
{
	unsigned int i, nparts, tries;
	struct unstable_part *parts;
	int err = 0, e;

	parts = kmalloc_array(UNSTABLE_PARTS, sizeof(*parts), GFP_NOFS);
	if (!parts) {
		for (i = 0; i < n; i++)
			us[i]->err = -ENOMEM;
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		unstable_sync_begin(us[i]);
	for (tries = 0; tries < UNSTABLE_TRIES; tries++) {
		bool again = false;

		nparts = 0;
		err = 0;
		for (i = 0; i < n; i++) {
			u32 df = 0;

			us[i]->missed = false;
			if (!unstable_dirty(us[i]))
				continue;
			e = unstable_cap(vol, us[i]);
			if (e == -ESTALE)	/* removed: nobody will miss it */
				unstable_forget(us[i]);
			if (e == -ESTALE)
				continue;
			if (e) {
				us[i]->err = e;
				err = err ?: e;
				continue;
			}
			for (;;) {
				nparts += unstable_collect(us[i], &df, parts + nparts,
							   UNSTABLE_PARTS - nparts);
				if (nparts < UNSTABLE_PARTS)
					break;
				e = unstable_run(vol, parts, nparts, datasync, &again);
				err = err ?: e;
				nparts = 0;
			}
		}
		e = unstable_run(vol, parts, nparts, datasync, &again);
		err = err ?: e;
		if (err || !again)
			goto out;
	}
	err = -EIO;
	for (i = 0; i < n; i++)
		us[i]->err = unstable_dirty(us[i]) ? err : 0;
out:
	for (i = 0; i < n; i++)
		unstable_sync_end(us[i]);
	kfree(parts);
	return err;
}

/*
 * Another verifier is dealt with: pages are made dirty, or it is told. The file is claimed. Return:
 * 0, or -EINTR: killed, it is to be done yet.
 */
static int unstable_resend(struct pvfs_volume *vol, struct pvfs_unstable *u)
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
	atomic_inc(&PVFS_I(inode)->resends);
	spin_lock(&u->lock);
	u->changed |= err == -EINTR;
	u->resending = false;
	missing = u->missing;
	spin_unlock(&u->lock);
	if (err == -EINTR) {
		ihold(inode);
		unstable_queue(inode);
	} else if (err || missing) {
		unstable_lost(vol, u);
	}
	pvfs_iput_later(inode);
	return err == -EINTR ? err : 0;
}

/**
 * pvfs_unstable_fsync - have the iods put what was written to a file on stable storage
 * @inode: the file
 * @datasync: times are of no interest
 *
 * Only the datafiles that were written to since the last time are asked. That writes were lost in a
 * crash of an iod is not returned, but noted in the mapping for each open file to be told once; or
 * pages are dirty when it returns that are to be written again: see pvfs_unstable_resends().
 *
 * Return: 0 or -errno.
 */
int pvfs_unstable_fsync(struct inode *inode, bool datasync)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_unstable *u = unstable_of(inode, false);
	u32 seen;
	int err;

	if (!u)
		return 0;
	if (pvfs_wait_event(vol->unstable.wait, unstable_claim(vol, u)))
		return -EINTR;
	seen = pvfs_unstable_resends(inode);
	err = unstable_resend(vol, u);
	if (!err && seen == pvfs_unstable_resends(inode)) {
		err = unstable_sync(vol, &u, 1, datasync);
		err = unstable_resend(vol, u) ?: err;
	}
	u->err = u->err ?: err;
	u->redo = READ_ONCE(u->changed) || READ_ONCE(u->resent);
	unstable_release(vol, &u, 1);
	return err;
}

/*
 * Writes and syncs all of a file until nothing of it has to be sent again. Return: 0 or -errno; of
 * pages that could not be written the mapping knows.
 */
static int unstable_all(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_unstable *u;
	u32 seen;
	int err;

	do {
		seen = pvfs_unstable_resends(inode);
		err = pvfs_cache_write(inode, 0, LLONG_MAX) ?: pvfs_unstable_fsync(inode, false);
	} while (!err && seen != pvfs_unstable_resends(inode));
	u = unstable_of(inode, false);
	if (!u || err == -EINTR)
		return err;
	spin_lock(&vol->unstable.lock);
	spin_lock(&u->lock);
	/* Who has claimed it may be about to send again. */
	if (!u->claimed && seen == pvfs_unstable_resends(inode))
		WRITE_ONCE(u->resent, false);
	spin_unlock(&u->lock);
	if (!u->claimed && !u->lost && !unstable_pending(u))
		unstable_unlist(vol, u);
	spin_unlock(&vol->unstable.lock);
	return err;
}

/* A verifier was another, and perhaps nobody syncs the file. */
void pvfs_unstable_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, resend_work);

	unstable_all(&pi->vfs_inode);
	pvfs_use_iput(pi->use);			/* also counts vol->closing down */
}

/**
 * pvfs_unstable_settle - an open for writing is about to be given back: first what has to be sent
 * again
 * @inode: the file
 *
 * Errors are kept in the mapping.
 */
void pvfs_unstable_settle(struct inode *inode)
{
	/* Of what an inode wrote that is gone pvfs_unstable_evict() has told. Pairs with unstable_of(). */
	struct pvfs_unstable *u = smp_load_acquire(&PVFS_I(inode)->unstable);

	if (u && (READ_ONCE(u->changed) || READ_ONCE(u->resending)))
		unstable_all(inode);
}

/*
 * Those of the files, which are claimed, that have to be sent again, with references. What is on its
 * way out, with its pages, is told. Return: how many.
 */
static unsigned int unstable_inodes(struct pvfs_volume *vol, struct pvfs_unstable **us,
				    unsigned int n, struct inode **inodes)
{
	unsigned int i, m = 0;
	struct inode *inode;

	spin_lock(&vol->unstable.lock);
	for (i = 0; i < n; i++) {
		if (!us[i]->inode || !(READ_ONCE(us[i]->changed) || READ_ONCE(us[i]->resent)))
			continue;
		inode = igrab(us[i]->inode);
		us[i]->redo = inode;
		if (inode) {
			inodes[m++] = inode;
			continue;
		}
		spin_lock(&us[i]->lock);
		if (us[i]->changed) {
			errseq_set(&vol->sb->s_wb_err, -EIO);
			us[i]->lost = true;
			us[i]->changed = false;
		}
		spin_unlock(&us[i]->lock);
	}
	spin_unlock(&vol->unstable.lock);
	return m;
}

/* Return: some are claimed (@n), or there is nothing to wait for. */
static bool unstable_claim_next(struct pvfs_volume *vol, u64 since, struct pvfs_unstable **us,
				unsigned int *n, bool *busy, bool *failed)
{
	*n = unstable_claim_oldest(vol, since, false, us, busy, failed);
	return *n || !*busy;
}

/**
 * pvfs_unstable_sync - the same for all that was written to a volume so far
 * @vol: the volume
 *
 * Return: 0, or the first -errno: all were tried, unless this task was killed, or umount -f came.
 */
int pvfs_unstable_sync(struct pvfs_volume *vol)
{
	struct pvfs_unstable *us[UNSTABLE_FILES];
	struct inode *inodes[UNSTABLE_FILES];
	u32 aborts = READ_ONCE(vol->aborts);
	bool busy, failed = false;
	unsigned int i, m, n;
	int err = 0, e, e2;
	u64 since;

	spin_lock(&vol->unstable.lock);
	since = ++vol->unstable.seq;
	spin_unlock(&vol->unstable.lock);
	while (!READ_ONCE(vol->unstable.dead)) {
		if (pvfs_wait_event(vol->unstable.wait,
				    unstable_claim_next(vol, since, us, &n, &busy, &failed)))
			return -EINTR;
		if (!n)
			break;
		e = unstable_sync(vol, us, n, false);
		m = unstable_inodes(vol, us, n, inodes);
		unstable_release(vol, us, n);
		/* One after the other, with none claimed but that one. */
		for (i = 0; i < m; i++) {
			e2 = e == -EINTR ? 0 : unstable_all(inodes[i]);
			e = e2 == -EINTR ? e2 : e ?: e2;
			pvfs_iput_later(inodes[i]);
		}
		if (e == -EINTR)
			return e;
		err = err ?: e;
		if (READ_ONCE(vol->aborts) != aborts)
			return err ?: -EIO;
	}
	return err ?: failed ? -EIO : 0;
}

/**
 * pvfs_unstable_trim - there are too many: sync some of the oldest
 * @vol: the volume
 *
 * Those that cannot be synced are given up, and that is told.
 *
 * Return: 0 or -EINTR.
 */
int pvfs_unstable_trim(struct pvfs_volume *vol)
{
	struct pvfs_unstable *us[UNSTABLE_FILES];
	bool busy, failed;
	unsigned int i, n;
	int err;

	n = unstable_claim_oldest(vol, U64_MAX, true, us, &busy, &failed);
	/* syncfs was told of these, and nobody has asked for the file since. */
	spin_lock(&vol->unstable.lock);
	for (i = 0; i < n; i++)
		us[i]->lost = false;
	spin_unlock(&vol->unstable.lock);
	err = n ? unstable_sync(vol, us, n, false) : 0;
	for (i = 0; i < n && err && err != -EINTR; i++) {
		/* Not what was synced, and written again meanwhile. */
		if (!us[i]->err || us[i]->err == -EINTR || !unstable_dirty(us[i]))
			continue;
		unstable_forget(us[i]);
		unstable_lost(vol, us[i]);
	}
	/* That is for others, who are waited for by no writer. */
	for (i = 0; i < n; i++)
		us[i]->redo = READ_ONCE(us[i]->changed) || READ_ONCE(us[i]->resent);
	unstable_release(vol, us, n);
	return err == -EINTR ? err : 0;
}

/* ---------------------------------------------------------------- unmounting */

struct unstable_unmount {
	struct work_struct work;
	struct pvfs_volume *vol;
	struct completion done;
};

static void unstable_unmount_work(struct work_struct *work)
{
	struct unstable_unmount *u = container_of(work, struct unstable_unmount, work);

	pvfs_unstable_sync(u->vol);
	complete(&u->done);
}

/**
 * pvfs_unstable_unmount - have all that was written synced, before the super block goes
 * @vol: the volume, which nobody can use any more
 *
 * As long as there are answers; a server that is away, or silent, is not waited for, nor is
 * anything when the task is killed.
 */
void pvfs_unstable_unmount(struct pvfs_volume *vol)
{
	struct unstable_unmount u = { .vol = vol };
	u64 answers = 0, now;
	unsigned int ms = 0;
	long left = 0;

	if (!READ_ONCE(vol->unstable.n))
		return;
	init_completion(&u.done);
	INIT_WORK_ONSTACK(&u.work, unstable_unmount_work);
	queue_work(vol->vfs_wq, &u.work);
	while (!left) {
		left = wait_for_completion_killable_timeout(&u.done,
							    msecs_to_jiffies(UNMOUNT_ABORT_MS));
		now = READ_ONCE(vol->unstable.answers);
		ms = now == answers ? ms + UNMOUNT_ABORT_MS : 0;
		answers = now;
		if (ms >= (pvfs_volume_up(vol) ? UNMOUNT_SILENT_MS : UNMOUNT_DOWN_MS))
			break;
	}
	WRITE_ONCE(vol->unstable.dead, left <= 0);
	if (left <= 0) {
		pr_warn("%s: unmounted with files that could not be synced (%u)\n",
			vol->opts.volume, READ_ONCE(vol->unstable.n));
		/* Again, because one may have been on its way to the queue. */
		do {
			pvfs_umount_begin(vol->sb);
		} while (!wait_for_completion_timeout(&u.done, msecs_to_jiffies(UNMOUNT_ABORT_MS)));
	}
	destroy_work_on_stack(&u.work);
}
