// SPDX-License-Identifier: GPL-2.0
/*
 * draft.c - new small files that the mgr has not been told all of.
 *
 * Who makes a file writes a few bytes, often sets times, owner and mode, and closes it. If the file
 * is stuffed, and nobody else can have heard of it, CREATE makes it a draft: what is written and
 * set stays here, and goes to the mgr in one request (FLUSH) behind the close (late.c), or after
 * a second; to the iods when it becomes too long for a head. The mgr tells nobody else anything of
 * the inode before it has recalled it from us, and then that request goes at once.
 *
 * Nothing but this file knows what is in a draft: the inode is as the mgr has it, but for i_size,
 * at which the VFS looks without asking. Whoever on this node wants to know or do anything else with
 * the inode ends the draft first (pvfs_draft_settle()). Once ended it does not begin again.
 *
 * Lock order: inode->i_rwsem, pvfs_inode.draft.mutex. The FLUSH is sent under the mutex.
 */
#include <linux/cred.h>
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/writeback.h>
#include "meta.h"

#define DRAFT_MS 1000			/* that a draft is kept back */

META_DATA(FLUSH, flush)

/* pvfs_inode.draft.mutex protects it. */
struct pvfs_draft {
	struct inode *inode;		/* a reference, which counts in vol->closing */
	struct delayed_work work;	/* ends it */
	const struct cred *cred;	/* who wrote and set; NULL: nobody yet */
	u64 version, session;		/* of the inode, and in which it was made */
	bool outgrown;			/* what comes does not fit a head */
	bool again;			/* a FLUSH was sent, and nobody knows whether it was done */
	bool asking;			/* a WRITE lease was asked for. Read without the mutex */
	u32 len;			/* bytes written, from the start of the file */
	unsigned int npages;
	struct page *page[PVFS_STUFF_MAX / PAGE_SIZE];
	struct pvfs_setattr_req set;	/* valid, and what it says */
};

static bool draft_dirty(const struct pvfs_draft *d)
{
	return d->len || d->set.valid;
}

/* Something is about to be put into it. The mutex is held. */
static void draft_begun(const struct pvfs_draft *d)
{
	if (!draft_dirty(d))
		atomic_inc(&PVFS_VOL(d->inode)->drafts_due);
}

static void draft_free(struct pvfs_draft *d)
{
	while (d->npages)
		put_page(d->page[--d->npages]);
	if (d->cred)
		put_cred(d->cred);
	kfree(d);
}

/* ---------------------------------------------------------------- to the mgr */

struct flushing {
	struct pvfs_draft *d;
	u32 flags;
	bool done;
};

static int draft_flush_once(struct inode *inode, const struct pvfs_cap *cap, void *arg)
{
	struct bio_vec bv[PVFS_STUFF_MAX / PAGE_SIZE];
	struct flushing *f = arg;
	struct pvfs_draft *d = f->d;
	struct pvfs_flush_req m = {
		.fid = fid_of(inode), .version = d->version, .valid = d->set.valid,
		.flags = f->flags | (d->again ? PVFS_FL_AGAIN : 0),
		.mode = d->set.mode, .uid = d->set.uid, .gid = d->set.gid,
		.atime = d->set.atime, .mtime = d->set.mtime, .cap = *cap,
	};
	struct payload p = { .bv = bv, .len = d->len, .write = true };
	struct pvfs_flush_rep r = { };
	struct pvfs_ask ask;
	struct who w;
	int err;

	while (p.nbv * PAGE_SIZE < d->len) {
		bv[p.nbv] = (struct bio_vec){
			.bv_page = d->page[p.nbv],
			.bv_len = min_t(u32, d->len - p.nbv * PAGE_SIZE, PAGE_SIZE),
		};
		p.nbv++;
	}
	err = pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	pvfs_lease_ask(PVFS_VOL(inode), &ask);
	pvfs_own_begin(inode);
	err = data_flush(PVFS_VOL(inode), room(&w), &m, &r, d->len ? &p : NULL);
	err = pvfs_own_changed(inode, err, &r.attr);
	pvfs_who_put(&w);
	f->done = r.done;
	if (!err && r.done)
		pvfs_wlease_take(inode, r.attr.flags, &ask);
	/* Its session ended under it, or this task was killed and the request goes on alone. */
	d->again |= err == -EIO || err == -EINTR;
	return err;
}

static int draft_flush(struct pvfs_draft *d, u32 flags)
{
	struct flushing f = { .d = d, .flags = flags };
	const struct cred *old = d->cred ? override_creds(d->cred) : NULL;
	struct inode *inode = d->inode;
	int err;

	err = pvfs_with_cap(inode, PVFS_CAP_WRITE, true, draft_flush_once, &f);
	if (old)
		revert_creds(old);
	/* We were gone for so long that others went on without us. */
	if (!err && !f.done && draft_dirty(d)) {
		pvfs_attr_distrust(inode);
		pr_warn_ratelimited("%s: inode %llu was changed by others while the manager did not hear of us\n",
				    PVFS_VOL(inode)->opts.volume, PVFS_I(inode)->fid.ino);
		err = -EIO;
	}
	return err;
}

/*
 * It has outgrown a head. To the mgr the file is empty: it is made a striped one now, which is one
 * exchange, and the iods get what was written. It comes under a WRITE lease with that, if it was not
 * recalled. @flags: of a FLUSH.
 */
static int draft_write_striped(struct pvfs_draft *d, u32 flags)
{
	u32 done = 0;
	int err;

	err = pvfs_unstuff(d->inode, flags & PVFS_FL_WLEASE ? PVFS_US_WLEASE : 0);
	while (done < d->len && !err) {
		struct pvfs_io *io = pvfs_io_get(d->inode, true, done, d->len - done, true);
		u32 n, at;

		if (IS_ERR(io))
			return PTR_ERR(io);
		/* In another one somebody else may have gone on without us. */
		io->bound = d->session;
		for (at = done; at < d->len && io->nmem < io->mem_room; at += n) {
			n = min_t(u32, d->len - at, PAGE_SIZE - at % PAGE_SIZE);
			io->mem[io->nmem++] = (struct bio_vec){
				.bv_page = d->page[at / PAGE_SIZE], .bv_len = n,
				.bv_offset = at % PAGE_SIZE,
			};
		}
		io->len = at - done;
		err = pvfs_io_run(io);
		done += io->len;
		pvfs_io_put(io);
	}
	return err;
}

/*
 * Takes it from the inode, which it does not come back to. The mutex is held. @flags: PVFS_FL_*; WLEASE: it is
 * likely to be written again. @always: tell also of one with nothing in it.
 *
 * Writes have returned to whom this task may not know: what comes of them is noted in the mapping, for all who have the
 * file open. Return: 0; -EINTR: killed, and it is still there; or what was noted.
 */
static int draft_end_held(struct inode *inode, u32 flags, bool always)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_draft *d = pi->draft.d;
	int err = 0;

	if (!d)
		return 0;
	if (draft_dirty(d) || always) {
		/* Who has written nothing yet may not do so soon; and is to be told then of a disk that is full. */
		if (!PVFS_VOL(inode)->opts.cache || !draft_dirty(d))
			flags &= ~PVFS_FL_WLEASE;
		d->asking |= flags & PVFS_FL_WLEASE;
		err = d->outgrown ? draft_write_striped(d, flags) : draft_flush(d, flags);
	}
	if (err == -EINTR)		/* killed: it stays for somebody else */
		return err;
	spin_lock(&pi->lock);		/* see pvfs_draft_reclaims() */
	WRITE_ONCE(pi->draft.d, NULL);
	spin_unlock(&pi->lock);
	if (draft_dirty(d))
		atomic_dec(&PVFS_VOL(inode)->drafts_due);
	if (err && draft_dirty(d)) {
		mapping_set_error(inode->i_mapping, err);
		pr_warn_ratelimited("%s: inode %llu: what was written to a new file is lost: error %d\n",
				    PVFS_VOL(inode)->opts.volume, pi->fid.ino, err);
	} else {
		/* For who waits as long as it gets on. */
		atomic_inc(&PVFS_VOL(inode)->wrote);
	}
	pvfs_leasestat_told(inode, d->len);
	if (!cancel_delayed_work(&d->work))
		return err;		/* @work is at it, or is this task */
	draft_free(d);
	pvfs_use_iput(pi->use);
	return err;
}

/* @flags: of the FLUSH. @always: as of draft_end_held(). Return: 0 or -EINTR. */
static int draft_settle(struct inode *inode, u32 flags, bool always)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	int err;

	/* Who has it may be waiting for the mgr. */
	if (mutex_lock_killable(&pi->draft.mutex))
		return -EINTR;
	err = draft_end_held(inode, flags, always);
	mutex_unlock(&pi->draft.mutex);
	return err == -EINTR ? err : 0;
}

/**
 * pvfs_draft_settle - what is known of an inode here only is told to the mgr
 * @inode: the inode; most have no draft
 *
 * Errors are kept for fsync and close.
 *
 * Context: the caller has a reference. May sleep.
 *
 * Return: 0; -EINTR: killed, and the draft is still there.
 */
int pvfs_draft_settle(struct inode *inode)
{
	return likely(!READ_ONCE(PVFS_I(inode)->draft.d)) ? 0 : draft_settle(inode, PVFS_FL_WLEASE, false);
}

/**
 * pvfs_draft_close - the same, for close(2)
 * @inode: the inode
 *
 * Return: 0 or -EINTR.
 */
int pvfs_draft_close(struct inode *inode)
{
	return likely(!READ_ONCE(PVFS_I(inode)->draft.d)) ? 0 : draft_settle(inode, 0, false);
}

/**
 * pvfs_draft_behind - may close(2) leave it to somebody else to tell the mgr, behind it?
 * @inode: the inode
 *
 * The mgr has kept room for it, and tells nobody else anything of the file before. With nothing in it, it is not worth that.
 * While somebody is at it, which may take long, it is not this task's to wait for that.
 */
bool pvfs_draft_behind(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	if (likely(!READ_ONCE(pi->draft.d)))
		return false;
	/* First: while a FLUSH is under way the lease is doubtful. */
	if (!mutex_trylock(&pi->draft.mutex))
		return true;
	ret = pi->draft.d && draft_dirty(pi->draft.d) && pvfs_inode_leased(inode);
	mutex_unlock(&pi->draft.mutex);
	return ret;
}

/**
 * pvfs_draft_show - the same, for who wants to know the attributes
 * @inode: the inode
 *
 * One that nothing was done to stays a draft.
 *
 * Return: 0 or -EINTR.
 */
int pvfs_draft_show(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool told;

	if (likely(!READ_ONCE(pi->draft.d)))
		return 0;
	if (mutex_lock_killable(&pi->draft.mutex))
		return -EINTR;
	told = !pi->draft.d || !draft_dirty(pi->draft.d);
	mutex_unlock(&pi->draft.mutex);
	return told ? 0 : draft_settle(inode, PVFS_FL_WLEASE, false);
}

static void draft_work(struct work_struct *work)
{
	struct pvfs_draft *d = container_of(work, struct pvfs_draft, work.work);
	struct pvfs_inode *pi = PVFS_I(d->inode);

	/* Or somebody else is ending it: that is over when we get the mutex. The mgr is to keep no room for it for ever. */
	if (draft_settle(d->inode, PVFS_FL_WLEASE, true)) {
		queue_delayed_work(PVFS_VOL(d->inode)->vfs_wq, &d->work,
				   msecs_to_jiffies(DRAFT_MS));
		return;
	}
	draft_free(d);
	pvfs_use_iput(pi->use);
}

/**
 * pvfs_draft_reclaims - what the mgr is to be told of an inode that is open for writing
 * @inode: the inode
 *
 * Return: PVFS_O_*
 */
u32 pvfs_draft_reclaims(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_draft *d;
	u32 ret = 0;

	/* One that begins from here on does so under no lease of an older mgr. */
	spin_lock(&pi->lock);
	d = READ_ONCE(pi->draft.d);
	if (d)
		ret = PVFS_O_DRAFT | (READ_ONCE(d->asking) ? PVFS_O_WLEASE : 0);
	spin_unlock(&pi->lock);
	return ret;
}

void pvfs_draft_recalled_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, draft.recalled_work);

	draft_settle(&pi->vfs_inode, PVFS_FL_RECALLED, true);		/* answers the RECALL */
	pvfs_use_iput(pi->use);
}

/**
 * pvfs_draft_recalled - RECALL names an inode; the lease on it has been given up
 * @inode: the inode, found under RCU
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: true: it is a draft, which will be flushed: not yet, is the answer.
 */
bool pvfs_draft_recalled(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!READ_ONCE(pi->draft.d) || !igrab(inode))
		return false;
	pvfs_leasestat_late(inode);
	atomic_inc(&vol->closing);
	/* The mgr asks again and again; for what takes long one work item is enough, as they are not many. */
	if (!queue_work(vol->vfs_wq, &pi->draft.recalled_work))
		pvfs_use_iput(pi->use);		/* also counts vol->closing down */
	return true;
}

/* ---------------------------------------------------------------- from programs */

/**
 * pvfs_draft_begin - CREATE has made a draft
 * @inode: the file
 * @attr: came with it; the lease has been taken, or was recalled already
 */
void pvfs_draft_begin(struct inode *inode, const struct pvfs_attr *attr)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_draft *d;

	d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	if (!d)
		return;
	d->inode = inode;
	d->version = attr->version;
	d->session = READ_ONCE(PVFS_VOL(inode)->session);
	INIT_DELAYED_WORK(&d->work, draft_work);
	mutex_lock(&pi->draft.mutex);
	spin_lock(&pi->lock);
	/* A RECALL comes first, and the lease is gone; or it finds the draft. */
	WRITE_ONCE(pi->draft.d, d);
	if (!pvfs_inode_leased(inode) || pi->attr.version != attr->version)
		WRITE_ONCE(pi->draft.d, NULL);
	spin_unlock(&pi->lock);
	if (pi->draft.d) {
		pvfs_leasestat_draft(PVFS_VOL(inode), 1);
		ihold(inode);
		atomic_inc(&PVFS_VOL(inode)->closing);
		queue_delayed_work(PVFS_VOL(inode)->vfs_wq, &d->work,
				   msecs_to_jiffies(DRAFT_MS));
	} else {
		kfree(d);
	}
	mutex_unlock(&pi->draft.mutex);
}

/* Is it @d's to take what this task brings? Not when the mgr may be telling others of it. */
static bool draft_takes(struct pvfs_draft *d)
{
	if (d->again)
		return false;
	if (!d->cred)
		d->cred = get_current_cred();
	return d->cred == current_cred();
}

static bool draft_fits(const struct inode *inode, const struct pvfs_draft *d, loff_t pos, size_t n)
{
	u32 max = READ_ONCE(PVFS_I(inode)->layout.stuff_max);

	/* Nor may it leave a block out: a stuffed file has no holes. */
	return n <= max && pos <= max - n && pos <= round_up(d->len, SZ_4K);
}

/*
 * Page faults are off: they take locks that mmap(2) holds when it wants the mutex. Return: bytes
 * that were there, or -ENOMEM.
 */
static ssize_t draft_fill(struct pvfs_draft *d, u32 pos, struct iov_iter *from)
{
	u32 done = 0, n = iov_iter_count(from);
	size_t part, copied;
	bool memory = false;

	do {
		u32 at = pos + done, off = at % PAGE_SIZE, i = at / PAGE_SIZE;

		while (d->npages <= i) {
			struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

			if (!page)
				goto out;
			d->page[d->npages++] = page;
		}
		part = min_t(u32, n - done, PAGE_SIZE - off);
		pagefault_disable();
		copied = copy_page_from_iter_atomic(d->page[i], off, part, from);
		pagefault_enable();
		done += copied;
		if (copied) {
			draft_begun(d);
			d->len = max(d->len, pos + done);
		}
	} while (copied == part && done < n);
	memory = true;
out:
	/* The VFS looks there without asking us, as for copy_file_range(2). */
	spin_lock(&PVFS_I(d->inode)->lock);
	if (d->len > i_size_read(d->inode))
		i_size_write(d->inode, d->len);
	spin_unlock(&PVFS_I(d->inode)->lock);
	return done || memory ? (ssize_t)done : -ENOMEM;
}

/* Return: bytes written, none when they are not in memory; -EAGAIN: it is not for a draft. */
static ssize_t draft_write_some(struct inode *inode, loff_t pos, struct iov_iter *from)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_draft *d;
	ssize_t n = -EAGAIN;

	if (mutex_lock_killable(&pi->draft.mutex))
		return -EINTR;
	d = pi->draft.d;
	/* What was set comes after what was written. */
	if (d && !d->set.valid && draft_takes(d)) {
		d->outgrown |= !draft_fits(inode, d, pos, iov_iter_count(from));
		n = d->outgrown ? draft_end_held(inode, PVFS_FL_WLEASE, false) ?: -EAGAIN : draft_fill(d, pos, from);
	}
	mutex_unlock(&pi->draft.mutex);
	return n;
}

/**
 * pvfs_draft_write - write(2), if it is to a draft
 * @iocb: as of write_iter
 * @from: the same
 *
 * Return: bytes written; -EAGAIN: it is none, any more; or another -errno.
 */
ssize_t pvfs_draft_write(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n, total = 0;
	size_t want;

	if ((iocb->ki_flags & IOCB_DIRECT) || (inode->i_mode & (S_ISUID | S_ISGID)))
		return -EAGAIN;
	if (down_write_killable(&inode->i_rwsem))
		return -EINTR;
	n = generic_write_checks(iocb, from);
	while (n > 0 && iov_iter_count(from)) {
		want = min_t(size_t, iov_iter_count(from), PVFS_STUFF_MAX);
		if (fault_in_iov_iter_readable(from, want) == want) {
			n = -EFAULT;
			break;
		}
		n = draft_write_some(inode, iocb->ki_pos, from);
		if (n < 0)
			break;
		iocb->ki_pos += n;
		total += n;
		n = 1;
	}
	up_write(&inode->i_rwsem);
	return total ?: n;
}

#define DRAFT_TIMES (PVFS_SA_ATIME | PVFS_SA_MTIME | PVFS_SA_ATIME_NOW | PVFS_SA_MTIME_NOW)
#define DRAFT_OWNERS (PVFS_SA_UID | PVFS_SA_GID)

/**
 * pvfs_draft_setattr - chmod, chown or utimes, if it is of a draft
 * @inode: the file; the caller has found that this task may do it
 * @m: what is to be set
 *
 * Return: whether it is done.
 */
bool pvfs_draft_setattr(struct inode *inode, const struct pvfs_setattr_req *m)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_setattr_req *set;
	struct pvfs_draft *d;
	bool ret = false;

	if (m->valid & ~(DRAFT_TIMES | DRAFT_OWNERS | PVFS_SA_MODE))
		return false;
	if (mutex_lock_killable(&pi->draft.mutex))
		return false;		/* who ends it will be told the same */
	d = pi->draft.d;
	if (!d || !draft_takes(d))
		goto out;
	set = &d->set;
	/* A chown may take bits of the mode away; the mgr does the chown first. */
	if ((m->valid & DRAFT_OWNERS) && (set->valid & PVFS_SA_MODE))
		goto out;
	draft_begun(d);
	if (m->valid & PVFS_SA_MODE)
		set->mode = m->mode;
	if (m->valid & PVFS_SA_UID)
		set->uid = m->uid;
	if (m->valid & PVFS_SA_GID)
		set->gid = m->gid;
	if (m->valid & (PVFS_SA_ATIME | PVFS_SA_ATIME_NOW)) {
		set->atime = m->atime;
		set->valid &= ~(PVFS_SA_ATIME | PVFS_SA_ATIME_NOW);
	}
	if (m->valid & (PVFS_SA_MTIME | PVFS_SA_MTIME_NOW)) {
		set->mtime = m->mtime;
		set->valid &= ~(PVFS_SA_MTIME | PVFS_SA_MTIME_NOW);
	}
	set->valid |= m->valid;
	ret = true;
out:
	mutex_unlock(&pi->draft.mutex);
	return ret;
}
