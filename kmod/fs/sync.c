// SPDX-License-Identifier: GPL-2.0
/*
 * sync.c - having what was written put on stable storage: the FSYNCs to the iods, for fsync(2), syncfs(2), when
 * there is too much of it, and at unmount. What there is, unstable.c remembers.
 *
 * Files are synced many at once, so that all iods work; each by one task at a time, and who
 * comes second waits for it, as the first has taken the verifiers. A task never waits for another's
 * file while it has some of its own claimed.
 */
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "unstable.h"

#define SYNC_PARTS 64			/* FSYNCs under way of one task */
#define SYNC_TRIES 5			/* sessions may end under it */
#define UNMOUNT_DOWN_MS 5000		/* at unmount: with a server that is away, */
#define UNMOUNT_SILENT_MS 20000		/* or that has answered nothing for so long */
#define UNMOUNT_ABORT_MS 200		/* then again and again */

/* A datafile being synced. */
struct sync_part {
	struct pvfs_unstable *u;
	struct pvfs_request *req;
	u64 verf;
	u64 session;
	u32 df;
};

/* ---------------------------------------------------------------- the iods */

/*
 * A capability that is good now. That of the writes is, unless the session is another: then the file
 * may not be open any more, and is opened in the kernel's own name.
 */
static int sync_cap(struct pvfs_volume *vol, struct pvfs_unstable *u)
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
	pvfs_unstable_session(u, session);
	spin_unlock(&u->lock);
	return 0;
}

/* Takes the verifiers of the next datafiles from *@df on. */
static unsigned int sync_collect(struct pvfs_unstable *u, u32 *df, struct sync_part *parts,
				     unsigned int room)
{
	unsigned int n = 0;

	spin_lock(&u->lock);
	for (; *df < u->nverf && n < room; ++*df) {
		if (!u->verf[*df])
			continue;
		parts[n++] = (struct sync_part){ .u = u, .df = *df, .verf = u->verf[*df],
						     .session = u->session };
		u->verf[*df] = 0;
	}
	spin_unlock(&u->lock);
	return n;
}

/* It was not synced after all. What was written meanwhile may have told of another verifier. */
static void sync_restore(struct pvfs_volume *vol, const struct sync_part *p)
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
		pvfs_unstable_changed(vol, p->u);
}

static void sync_submit(struct pvfs_volume *vol, struct sync_part *p, bool datasync)
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
static int sync_answer(struct pvfs_volume *vol, struct sync_part *p)
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
		if (pvfs_unstable_verf(rep.verifier) != p->verf) {
			spin_lock(&p->u->lock);
			p->u->changed = true;
			spin_unlock(&p->u->lock);
			pvfs_unstable_changed(vol, p->u);
		}
		return 0;
	}
	sync_restore(vol, p);
	if (err == -EACCES && pvfs_session_over(vol, p->session))
		return -EAGAIN;
	p->u->err = err == -ESHUTDOWN || err == -EAGAIN ? -EIO : err;
	return p->u->err;
}

/* All at once. *@again is set when the session had ended. Return: 0 or the first -errno. */
static int sync_run(struct pvfs_volume *vol, struct sync_part *parts, unsigned int n,
			bool datasync, bool *again)
{
	unsigned int i;
	int err, e;

	if (!n)
		return 0;
	err = pvfs_io_permits_get(vol, n, true);
	if (err) {
		for (i = 0; i < n; i++) {
			sync_restore(vol, &parts[i]);
			parts[i].u->err = err;
		}
		return err;
	}
	for (i = 0; i < n; i++)
		sync_submit(vol, &parts[i], datasync);
	for (i = 0; i < n; i++) {
		e = sync_answer(vol, &parts[i]);
		if (e == -EAGAIN)
			*again = true;
		else
			err = err ?: e;
	}
	pvfs_io_permits_put(vol, n, true);
	return err;
}

/* What is written from now on this sync does not answer for. */
static void sync_begin(struct pvfs_unstable *u)
{
	spin_lock(&u->lock);
	u->syncing = u->gen++;
	spin_unlock(&u->lock);
}

static void sync_end(struct pvfs_unstable *u)
{
	spin_lock(&u->lock);
	if (!u->err && !u->missed && !u->changed) {
		u->stable = u->syncing;
		u->resends = 0;
	}
	spin_unlock(&u->lock);
}

/* Syncs files that this task has claimed. Return: 0 or -errno of one of them; their err has each. */
static int sync_claimed(struct pvfs_volume *vol, struct pvfs_unstable **us, unsigned int n,
			 bool datasync)
{
	unsigned int i, nparts, tries;
	struct sync_part *parts;
	int err = 0, e;

	parts = kmalloc_array(SYNC_PARTS, sizeof(*parts), GFP_NOFS);
	if (!parts) {
		for (i = 0; i < n; i++)
			us[i]->err = -ENOMEM;
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		sync_begin(us[i]);
	for (tries = 0; tries < SYNC_TRIES; tries++) {
		bool again = false;

		nparts = 0;
		err = 0;
		for (i = 0; i < n; i++) {
			u32 df = 0;

			us[i]->missed = false;
			if (!pvfs_unstable_dirty(us[i]))
				continue;
			e = sync_cap(vol, us[i]);
			if (e == -ESTALE)	/* removed: nobody will miss it */
				pvfs_unstable_forget(us[i]);
			if (e == -ESTALE)
				continue;
			if (e) {
				us[i]->err = e;
				err = err ?: e;
				continue;
			}
			for (;;) {
				nparts += sync_collect(us[i], &df, parts + nparts,
							   SYNC_PARTS - nparts);
				if (nparts < SYNC_PARTS)
					break;
				e = sync_run(vol, parts, nparts, datasync, &again);
				err = err ?: e;
				nparts = 0;
			}
		}
		e = sync_run(vol, parts, nparts, datasync, &again);
		err = err ?: e;
		if (err || !again)
			goto out;
	}
	err = -EIO;
	for (i = 0; i < n; i++)
		us[i]->err = pvfs_unstable_dirty(us[i]) ? err : 0;
out:
	for (i = 0; i < n; i++)
		sync_end(us[i]);
	kfree(parts);
	return err;
}

/* ---------------------------------------------------------------- files */

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
	struct pvfs_unstable *u = pvfs_unstable_of(inode, false);
	u32 seen;
	int err;

	if (!u)
		return 0;
	if (pvfs_wait_event(vol->unstable.wait, pvfs_unstable_claim(vol, u)))
		return -EINTR;
	seen = pvfs_unstable_resends(inode);
	err = pvfs_unstable_resend(vol, u);
	if (!err && seen == pvfs_unstable_resends(inode)) {
		err = sync_claimed(vol, &u, 1, datasync);
		err = pvfs_unstable_resend(vol, u) ?: err;
	}
	u->err = u->err ?: err;
	u->redo = READ_ONCE(u->changed) || READ_ONCE(u->resent);
	pvfs_unstable_release(vol, &u, 1);
	return err;
}

/*
 * Writes and syncs all of a file until nothing of it has to be sent again. Return: 0 or -errno; of
 * pages that could not be written the mapping knows.
 */
static int sync_all(struct inode *inode)
{
	struct pvfs_unstable *u;
	u32 seen;
	int err;

	do {
		seen = pvfs_unstable_resends(inode);
		err = pvfs_cache_write(inode, 0, LLONG_MAX) ?: pvfs_unstable_fsync(inode, false);
	} while (!err && seen != pvfs_unstable_resends(inode));
	u = pvfs_unstable_of(inode, false);
	if (u && err != -EINTR)
		pvfs_unstable_resent(inode, u, seen);
	return err;
}

/* A verifier was another, and perhaps nobody syncs the file. */
void pvfs_unstable_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, resend.work);

	sync_all(&pi->vfs_inode);
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
	/* Of what an inode wrote that is gone pvfs_unstable_evict() has told. Pairs with pvfs_unstable_of(). */
	struct pvfs_unstable *u = smp_load_acquire(&PVFS_I(inode)->unstable);

	if (u && (READ_ONCE(u->changed) || READ_ONCE(u->resending)))
		sync_all(inode);
}

/*
 * Those of the files, which are claimed, that have to be sent again, with references. What is on its
 * way out, with its pages, is told. Return: how many.
 */
static unsigned int sync_to_resend(struct pvfs_volume *vol, struct pvfs_unstable **us,
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
static bool sync_claim_next(struct pvfs_volume *vol, u64 since, struct pvfs_unstable **us,
				unsigned int *n, bool *busy, bool *failed)
{
	*n = pvfs_unstable_claim_oldest(vol, since, false, us, busy, failed);
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
	struct pvfs_unstable *us[PVFS_UNSTABLE_FILES];
	struct inode *inodes[PVFS_UNSTABLE_FILES];
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
				    sync_claim_next(vol, since, us, &n, &busy, &failed)))
			return -EINTR;
		if (!n)
			break;
		e = sync_claimed(vol, us, n, false);
		m = sync_to_resend(vol, us, n, inodes);
		pvfs_unstable_release(vol, us, n);
		/* One after the other, with none claimed but that one. */
		for (i = 0; i < m; i++) {
			e2 = e == -EINTR ? 0 : sync_all(inodes[i]);
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
	struct pvfs_unstable *us[PVFS_UNSTABLE_FILES];
	bool busy, failed;
	unsigned int i, n;
	int err;

	n = pvfs_unstable_claim_oldest(vol, U64_MAX, true, us, &busy, &failed);
	/* syncfs was told of these, and nobody has asked for the file since. */
	spin_lock(&vol->unstable.lock);
	for (i = 0; i < n; i++)
		us[i]->lost = false;
	spin_unlock(&vol->unstable.lock);
	err = n ? sync_claimed(vol, us, n, false) : 0;
	for (i = 0; i < n && err && err != -EINTR; i++) {
		/* Not what was synced, and written again meanwhile. */
		if (!us[i]->err || us[i]->err == -EINTR || !pvfs_unstable_dirty(us[i]))
			continue;
		pvfs_unstable_forget(us[i]);
		pvfs_unstable_lost(vol, us[i]);
	}
	/* That is for others, who are waited for by no writer. */
	for (i = 0; i < n; i++)
		us[i]->redo = READ_ONCE(us[i]->changed) || READ_ONCE(us[i]->resent);
	pvfs_unstable_release(vol, us, n);
	return err == -EINTR ? err : 0;
}

/* ---------------------------------------------------------------- unmounting */

struct sync_unmount {
	struct work_struct work;
	struct pvfs_volume *vol;
	struct completion done;
};

static void sync_unmount_work(struct work_struct *work)
{
	struct sync_unmount *u = container_of(work, struct sync_unmount, work);

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
	struct sync_unmount u = { .vol = vol };
	u64 answers = 0, now;
	unsigned int ms = 0;
	long left = 0;

	if (!READ_ONCE(vol->unstable.n))
		return;
	init_completion(&u.done);
	INIT_WORK_ONSTACK(&u.work, sync_unmount_work);
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
