// SPDX-License-Identifier: GPL-2.0
/*
 * file.c - regular files: open and close, read, write, fsync. Bytes that go past the page cache direct.c moves.
 *
 * A write returns when the iods have answered, and a read asks them. But while a lease says that nobody else
 * writes, a read comes from the page cache (addr.c), and while one says that nobody else has the file
 * open, a write goes there (writeback.c), unless it is a large one.
 *
 * Reads take no lock. Writes hold i_rwsem shared, so that they run side by side; appending ones, those to
 * the page cache, such as take setuid away, and an open that cuts the file, hold it exclusively.
 */
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "vfs.h"

/* ---------------------------------------------------------------- open, close */

/* What to send to the mgr for an open: @oflags are O_*. */
u32 pvfs_open_flags(const struct file *file, unsigned int oflags)
{
	u32 flags = 0;

	if (file->f_flags & __FMODE_EXEC)
		flags |= PVFS_O_EXEC;
	else if (file->f_mode & FMODE_READ)
		flags |= PVFS_O_READ;
	if (file->f_mode & FMODE_WRITE) {
		flags |= PVFS_O_WRITE;
		/* Without leave to write it is a matter for setattr, which the VFS calls. */
		if (oflags & O_TRUNC)
			flags |= PVFS_O_TRUNC;
	}
	if (oflags & O_CREAT)
		flags |= PVFS_O_CREAT | (oflags & O_EXCL ? PVFS_O_EXCL : 0);
	if ((oflags & O_CREAT) && (file->f_flags & O_DIRECT))
		flags |= PVFS_O_STRIPED;
	return flags;
}

struct pvfs_file *pvfs_file_alloc(u32 flags)
{
	struct pvfs_file *pf = kzalloc(sizeof(*pf), GFP_KERNEL_ACCOUNT);

	if (!pf)
		return NULL;
	pf->flags = flags;
	spin_lock_init(&pf->ahead.lock);
	return pf;
}

/**
 * pvfs_open_noop - for finish_open(): all has been done
 * @inode: the inode
 * @file: the open file
 */
int pvfs_open_noop(struct inode *inode, struct file *file)
{
	return 0;
}

/*
 * Is the inode to be opened, whatever its name stands for? That it has lost its name alone does not
 * say so: others here may have found that out after pvfs_d_revalidate() left it to our open to ask.
 * The NFS server and other threads of the kernel don't come by names.
 */
static bool file_open_nameless(const struct dentry *dentry)
{
	if (IS_ROOT(dentry))
		return true;
	return d_unhashed(dentry) && (READ_ONCE(dentry->d_fsdata) == PVFS_D_NAMELESS ||
				      (current->flags & PF_KTHREAD));
}

/*
 * Opens the name that the dentry has, which nobody may have asked about before: pvfs_d_revalidate()
 * leaves that to us. If it names something else by now, the dentry is dropped and the VFS starts
 * over from the path (EOPENSTALE). An open that did not come by the path then comes again as
 * nameless.
 */
static int file_open_by_name(struct inode *inode, struct dentry *dentry, u32 flags,
			     struct pvfs_open_rep *ret, struct pvfs_ask *ask,
			     struct pvfs_head_mem *head)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_create_rep rep;
	struct name_snapshot name;
	struct dentry *parent;
	unsigned long token;
	bool same;
	int err;

	parent = dget_parent(dentry);
	token = pvfs_lease_token(d_inode(parent));
	take_dentry_name_snapshot(&name, dentry);
	err = pvfs_meta_create(PVFS_NOP_IDMAP, d_inode(parent), &name.name, flags, 0,
			       pvfs_open_changes(flags) ? pi->fid.ino : 0, &rep, ask, head);
	same = !err && pvfs_inode_is(inode, &rep.attr.fid);
	if (same)
		pvfs_dentry_confirmed(dentry, parent, &name.name, token);
	release_dentry_name_snapshot(&name);
	dput(parent);
	switch (err) {
	case 0:
		break;
	case -ENOENT:
	case -ELOOP:
	case -EISDIR:
	case -ENXIO:
	case -ESTALE:
		goto out_other;
	default:
		return err;
	}
	if (!same) {
		if (S_ISREG(rep.attr.mode))
			pvfs_close_at_mgr(PVFS_VOL(inode), &rep.attr.fid, flags, NULL);
		goto out_other;
	}
	err = pvfs_inode_update(inode, &rep.attr, ask);
	if (err) {
		pvfs_close_at_mgr(PVFS_VOL(inode), &pi->fid, flags, NULL);
		return err;
	}
	ret->attr = rep.attr;
	ret->cap = rep.cap;
	if (head)
		pvfs_head_keep(inode, head, &rep.attr);
	return 0;

out_other:
	d_drop(dentry);
	return -EOPENSTALE;
}

/*
 * Opens without a message what is open for reading here already, if the name is known to be the file's
 * and the caller to have leave to: the mgr would have checked both. What it would refuse it is asked.
 */
static bool file_open_joined(struct inode *inode, struct file *file, u32 flags)
{
	bool here = pvfs_checked_here(PVFS_VOL(inode), PVFS_NOP_IDMAP), named;
	unsigned long token = pvfs_lease_token(inode);
	struct dentry *dentry = file_dentry(file);
	struct dentry *parent;

	if ((flags != PVFS_O_READ && flags != PVFS_O_EXEC) || !pvfs_open_joinable(inode))
		return false;
	if (!file_open_nameless(dentry)) {
		parent = dget_parent(dentry);
		/* As for a name that is walked: see namei_name_trusted(). */
		named = pvfs_dentry_trusted(dentry, d_inode(parent)) &&
			(here || !generic_permission(PVFS_NOP_IDMAP, d_inode(parent), MAY_EXEC));
		dput(parent);
		if (!named)
			return false;
	}
	/* Else the VFS has, with attributes that are leased. */
	if (!here && generic_permission(PVFS_NOP_IDMAP, inode, flags & PVFS_O_EXEC ? MAY_EXEC : MAY_READ))
		return false;
	return pvfs_open_join(inode, token);
}

/*
 * Is an open to cut the file, and can the mgr do that with it? Only if the mgr knows all that we wrote: an OPEN has
 * no report, and the mgr, taking us at our word, could believe that there is nothing to cut; if nothing is left to
 * be written back; and if it is the mgr that checks. Else the VFS's call of setattr does it.
 */
static bool file_open_cuts(struct inode *inode, const struct file *file)
{
	return (file->f_flags & O_TRUNC) && (file->f_mode & FMODE_WRITE) && !pvfs_writes_pending(inode) &&
	       !pvfs_late_due(inode) && !pvfs_checked_here(PVFS_VOL(inode), PVFS_NOP_IDMAP);
}

/* @cut: it may, as i_rwsem and the mapping's invalidate_lock are both held exclusively. */
static int file_open_at_mgr(struct inode *inode, struct file *file, bool cut)
{
	u32 flags = pvfs_open_flags(file, cut && file_open_cuts(inode, file) ? O_TRUNC : 0);
	bool changes = pvfs_open_changes(flags);
	struct dentry *dentry = file_dentry(file);
	struct pvfs_head_mem *head = NULL;
	struct pvfs_open_rep rep;
	struct pvfs_file *pf;
	struct pvfs_ask ask;
	u64 session, epoch;
	u32 wish;
	int err;

	pf = pvfs_file_alloc(flags);
	if (!pf)
		return -ENOMEM;
	if (file_open_joined(inode, file, flags)) {
		pf->shared = true;
		pvfs_cache_check(inode);
	} else if (pvfs_open_class(flags)) {	/* else for ioctl()s only */
		pvfs_session_sample(PVFS_VOL(inode), &session, &epoch);
		if (changes) {
			pvfs_unlease(inode);
			/* Nobody may be writing behind meanwhile; from here on nobody begins. */
			if (pvfs_wlease_busy(inode) || pvfs_late_due(inode))
				flags &= ~PVFS_O_TRUNC;
		} else if (pvfs_stuffed(inode) && !inode->i_mapping->nrpages) {
			head = pvfs_head_alloc(PVFS_EAGER_MAX, GFP_KERNEL);
		}
		wish = pvfs_wlease_wish(PVFS_VOL(inode), flags);
		if (file_open_nameless(dentry))
			err = pvfs_meta_open(inode, flags | wish, &rep, &ask);
		else
			err = file_open_by_name(inode, dentry, flags | wish, &rep, &ask, head);
		if (changes)
			pvfs_unlease_end(inode);
		pvfs_head_free(head);
		if (!err)
			err = pvfs_file_opened(inode, pf, &rep.cap, session, epoch);
		if (err) {
			kfree(pf);
			return err;
		}
		pvfs_turn_opened(inode, rep.attr.flags, &ask);
		if (changes)
			pvfs_wlease_take(inode, rep.attr.flags, &ask);
		pvfs_open_share(inode, pf);
		pf->truncated = flags & PVFS_O_TRUNC;
		pvfs_cache_check(inode);
	}
	file->private_data = pf;
	return 0;
}

/*
 * A write of ours that is on its way while the mgr cuts the file could come to the iods after that, and we would
 * take the file for as short as the mgr says: so there is none, as for ftruncate.
 */
static int pvfs_file_open(struct inode *inode, struct file *file)
{
	struct address_space *mapping = inode->i_mapping;
	int err;

	err = pvfs_draft_settle(inode);
	if (err || !file_open_cuts(inode, file))
		return err ?: file_open_at_mgr(inode, file, false);
	err = down_write_killable(&inode->i_rwsem);
	if (err)
		return err;
	err = down_write_killable(&mapping->invalidate_lock);
	if (!err) {
		err = file_open_at_mgr(inode, file, true);
		filemap_invalidate_unlock(mapping);
	}
	up_write(&inode->i_rwsem);
	return err;
}

/**
 * pvfs_file_flush - close(2), of one of maybe several descriptors
 * @file: the file, or directory
 * @id: the owner of the record locks
 *
 * Errors of writing back are told here, too; not as told, for the open file may be others' as well, who sync it
 * later: a child that ends, or execs, looks at nothing that close says.
 */
int pvfs_file_flush(struct file *file, fl_owner_t id)
{
	int err, err2;

	pvfs_locks_flushed(file, id);
	if (!(file->f_mode & FMODE_WRITE))
		return 0;
	/* Nobody is told what comes of it. */
	if (pvfs_dying()) {
		if (pvfs_late_due(file_inode(file)))
			pvfs_late_write(file_inode(file), 0, true);
		return 0;
	}
	err = pvfs_draft_close(file_inode(file));
	err2 = pvfs_cache_write(file_inode(file), 0, LLONG_MAX);
	err = err ?: err2;
	/* While it is open: then it may be that nothing is lost. */
	if (err != -EINTR)
		pvfs_unstable_settle(file_inode(file));
	err2 = filemap_check_wb_err(file->f_mapping, READ_ONCE(file->f_wb_err));
	return err ?: err2;
}

static int pvfs_file_release(struct inode *inode, struct file *file)
{
	struct pvfs_file *pf = file->private_data;
	bool writer = file->f_mode & FMODE_WRITE;

	pvfs_locks_released(inode, file);
	/*
	 * Closing and unmapping have waited. What was not written all the same needs the open, and is not
	 * for this task to wait for: the last reference may be another's.
	 */
	if (writer && pvfs_late_due(inode))
		pvfs_late_write(inode, pf->flags, pvfs_dying());
	else if (pf->shared)
		pvfs_open_leave(inode);
	else if (pvfs_open_class(pf->flags))
		pvfs_close_at_mgr(PVFS_VOL(inode), &PVFS_I(inode)->fid, pf->flags, inode);
	kfree(pf);
	return 0;
}

/* ---------------------------------------------------------------- read */

static bool file_cached(struct inode *inode)
{
	return pvfs_head_kept(inode) || pvfs_cache_reads(inode);
}

/*
 * From the page cache, under one lease from beginning to end. If it was lost on the way pages are what the
 * file was then, but i_size may be what it is now: the zeros behind the old end are not to be taken for
 * bytes of it. Return: as of read_iter; -EAGAIN: it has to be read without.
 */
static ssize_t file_read_cached(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	unsigned long token = pvfs_cache_token(inode);
	loff_t pos = iocb->ki_pos;
	ssize_t n;

	if (!file_cached(inode))
		return -EAGAIN;
	if (!token) {			/* it was asked for just now */
		token = pvfs_cache_token(inode);
		if (!token || !file_cached(inode))
			return -EAGAIN;
	}
	pvfs_read_ahead(iocb->ki_filp, pos, iov_iter_count(to));
	n = generic_file_read_iter(iocb, to);
	if (n <= 0 || pvfs_cache_token(inode) == token)
		return n;
	iov_iter_revert(to, n);
	iocb->ki_pos = pos;
	return -EAGAIN;
}

static ssize_t pvfs_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	ssize_t n, total = 0;
	bool eof = false;

	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	if (!iov_iter_count(to))
		return 0;
	total = pvfs_draft_settle(inode);
	if (total)
		return total;
	if (!(iocb->ki_flags & IOCB_DIRECT)) {
		n = file_read_cached(iocb, to);
		if (n != -EAGAIN)
			return n;
	}
	while (iov_iter_count(to) && !eof) {
		n = pvfs_direct_read(inode, iocb->ki_pos, to, !(iocb->ki_flags & IOCB_DIRECT), &eof);
		if (n == -EAGAIN && !fatal_signal_pending(current))
			continue;	/* somebody has truncated it */
		if (n <= 0) {
			if (!total)
				total = n;
			break;
		}
		iocb->ki_pos += n;
		total += n;
	}
	if (total >= 0)
		file_accessed(iocb->ki_filp);
	return total;
}

/* ---------------------------------------------------------------- write */

/*
 * Must a write change the mode, or take security.capability away? As far as we know; the mgr sees
 * to the rest.
 */
static bool file_has_priv_bits(struct inode *inode)
{
	return (READ_ONCE(inode->i_mode) & (S_ISUID | S_ISGID)) ||
	       (READ_ONCE(PVFS_I(inode)->has) & PVFS_AF_CAPS);
}

/*
 * Can the mgr append it? It is one request of a file that is still stuffed then. Where the end is
 * nobody knows before; so not where that matters.
 */
static bool file_mgr_appends(struct inode *inode, const struct iov_iter *from)
{
	return pvfs_stuffed(inode) && rlimit(RLIMIT_FSIZE) == RLIM_INFINITY &&
	       i_size_read(inode) + iov_iter_count(from) <=
		       READ_ONCE(PVFS_I(inode)->layout.stuff_max);
}

/*
 * Where a write is to go, and how much of it may. Who appends has the lock from then on, unless the
 * mgr is to do it: *@appender, which is NULL, or the one that was lost. @again: it was not done.
 * Return: bytes, or -errno.
 */
static ssize_t file_write_begin(struct kiocb *iocb, struct iov_iter *from,
				struct lock_owner **appender, bool again)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	int err;

	if ((iocb->ki_flags & IOCB_APPEND) && (again || !file_mgr_appends(inode, from))) {
		if (*appender)
			pvfs_append_end(*appender);
		*appender = NULL;
		/* Where the end is now, whatever is trusted; and stays until we have written. */
		err = pvfs_append_begin(inode, appender) ?: pvfs_meta_getattr(inode);
		if (err)
			return err;
	}
	return generic_write_checks(iocb, from);
}

/*
 * A record that crosses into other stripe units is appended unit by unit: else who reads meanwhile could find
 * its end, and zeros before it. Many at a time, as a copy appends them, would then wait for each other: a longer
 * one is written all at once. @left: of what is appended. Return: bytes.
 */
static size_t file_append_step(struct inode *inode, loff_t pos, size_t left)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_layout layout;

	spin_lock(&pi->lock);
	layout = pi->layout;
	spin_unlock(&pi->lock);
	if (layout.pcount == 1 || left > max(layout.ssize, PVFS_APPEND_STEPS_MAX))
		return SIZE_MAX;
	return layout.ssize - (pos & (layout.ssize - 1));
}

/*
 * Under a WRITE lease to the page cache, as far as that goes. i_rwsem is held exclusively. Return: bytes,
 * with *@err why not more: -EAGAIN: the rest is to go to the iods.
 */
static ssize_t file_write_behind(struct kiocb *iocb, struct iov_iter *from, int *err)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	unsigned long token = pvfs_wlease_token(inode);
	ssize_t n;

	*err = -EAGAIN;
	if (!token || file_has_priv_bits(inode))
		return 0;
	/* Where the end is nobody else moves: no lock is needed to append. */
	n = generic_write_checks(iocb, from);
	if (n <= 0) {
		*err = n;
		return 0;
	}
	return pvfs_write_behind(iocb, from, token, err);
}

static ssize_t pvfs_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *file = iocb->ki_filp;
	struct inode *inode = file_inode(file);
	bool append = iocb->ki_flags & IOCB_APPEND;
	bool behind, excl;
	struct lock_owner *appender = NULL;
	size_t most = SIZE_MAX;
	ssize_t n, total = 0;
	bool done = false;
	int err;

	if (iocb->ki_flags & IOCB_NOWAIT)
		return -EAGAIN;
	if (!iov_iter_count(from))
		return 0;
	if (pvfs_locks_are_lost(file))
		return -EIO;
	if (READ_ONCE(PVFS_I(inode)->draft)) {
		n = pvfs_draft_write(iocb, from);
		if (n != -EAGAIN)
			return n > 0 ? generic_write_sync(iocb, n) : n;
		err = pvfs_draft_settle(inode);
		if (err)
			return err;
	}
	behind = pvfs_may_write_behind(iocb, from);
	excl = append || behind || file_has_priv_bits(inode);
	err = excl ? down_write_killable(&inode->i_rwsem) : down_read_killable(&inode->i_rwsem);
	if (err)
		return err;
	if (behind) {
		total = file_write_behind(iocb, from, &err);
		/* What another appends may have come between: the rest does not belong there. */
		if (err != -EAGAIN || !iov_iter_count(from) || (append && total))
			goto out_unlock;
	}
	n = file_write_begin(iocb, from, &appender, false);
	if (n <= 0) {
		err = n;
		goto out_unlock;
	}
	if (excl && file_has_priv_bits(inode)) {
		err = file_remove_privs(file);
		if (err)
			goto out_unlock;
	}
	err = pvfs_cache_prepare(inode, iocb->ki_pos, iov_iter_count(from));
	while (!err && iov_iter_count(from)) {
		n = pvfs_direct_write(file, &iocb->ki_pos, from,
				      appender ? min(most, file_append_step(inode, iocb->ki_pos, iov_iter_count(from))) :
						 most, append, appender);
		/*
		 * What fits below the largest size of the iods' file systems, which only they know,
		 * is written.
		 */
		if (n == -EFBIG) {
			most = min(most, iov_iter_count(from)) / 2;
			if (most)
				continue;
		}
		/* What had been written of it stays where it is: it was a short write. */
		if (n == -EAGAIN && !done) {
			n = file_write_begin(iocb, from, &appender, true);
			if (n > 0) {
				err = pvfs_cache_prepare(inode, iocb->ki_pos, n);
				continue;
			}
		}
		if (n <= 0) {
			err = n;
			break;
		}
		iocb->ki_pos += n;
		total += n;
		done = true;
	}
out_unlock:
	if (appender)
		pvfs_append_end(appender);
	if (excl)
		up_write(&inode->i_rwsem);
	else
		up_read(&inode->i_rwsem);
	if (total)
		return generic_write_sync(iocb, total);
	return err;
}

/* ---------------------------------------------------------------- the rest */

static int pvfs_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = file_inode(file);
	int err, lost;
	u32 seen;

	err = pvfs_draft_settle(inode);
	do {
		/* Pages that are made dirty again from here on have to be written, too. */
		seen = pvfs_unstable_resends(inode);
		err = err ?: pvfs_cache_write(inode, start, end);
		err = err ?: file_check_and_advance_wb_err(file);
		err = err ?: pvfs_unstable_fsync(inode, datasync);
	} while (!err && seen != pvfs_unstable_resends(inode));
	/* The size is data too. */
	if (!err && pvfs_writes_pending(inode))
		err = pvfs_meta_report(inode, 0, 0);
	lost = file_check_and_advance_wb_err(file);
	return err ?: lost;
}

const struct file_operations pvfs_file_operations = {
	.llseek = pvfs_file_llseek,
	.read_iter = pvfs_read_iter,
	.write_iter = pvfs_write_iter,
	.mmap = pvfs_file_mmap,
	.open = pvfs_file_open,
	.release = pvfs_file_release,
	.fsync = pvfs_fsync,
	.flush = pvfs_file_flush,
	.lock = pvfs_file_lock,
	.flock = pvfs_file_flock,
	.setlease = simple_nosetlease,	/* other clients would not break it */
	.splice_read = pvfs_splice_read,
	.splice_write = iter_file_splice_write,
	.fallocate = pvfs_fallocate,
	.copy_file_range = pvfs_copy_file_range,
};

const struct inode_operations pvfs_file_inode_operations = {
	PVFS_INODE_OPERATIONS,
	PVFS_ACL_OPERATIONS,
};
