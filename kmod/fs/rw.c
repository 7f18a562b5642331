// SPDX-License-Identifier: GPL-2.0
/*
 * rw.c - read(2) and write(2) of regular files: which way the bytes go, to where, and under which locks.
 *
 * A write returns when the iods have answered, and a read asks them: direct.c. But while a lease says that
 * nobody else writes, a read comes from the page cache (cache.c), and while one says that nobody else has the
 * file open, a write goes there (writeback.c), unless it is a large one, or disks are about to be full (full.c). New files
 * may be drafts (draft.c).
 *
 * Reads take no lock. Writes hold i_rwsem shared, so that they run side by side; appending ones, those to
 * the page cache, and such as take setuid away hold it exclusively, as an open does that cuts the file.
 */
#include <linux/sched/signal.h>
#include "vfs.h"

/* ---------------------------------------------------------------- read */

static bool rw_cached(struct inode *inode)
{
	return pvfs_head_kept(inode) || pvfs_cache_reads(inode);
}

/*
 * From the page cache, under one lease from beginning to end. If it was lost on the way pages are what the
 * file was then, but i_size may be what it is now: the zeros behind the old end are not to be taken for
 * bytes of it. Return: as of read_iter; -EAGAIN: it has to be read without.
 */
static ssize_t rw_read_cached(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	unsigned long token = pvfs_cache_token(inode);
	loff_t pos = iocb->ki_pos;
	ssize_t n;

	if (!rw_cached(inode))
		return -EAGAIN;
	if (!token) {			/* it was asked for just now */
		token = pvfs_cache_token(inode);
		if (!token || !rw_cached(inode))
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

/**
 * pvfs_read_iter - read(2) and its like
 * @iocb: the open file, and where in it
 * @to: where to
 *
 * Return: bytes, 0 at the end of the file, or -errno.
 */
ssize_t pvfs_read_iter(struct kiocb *iocb, struct iov_iter *to)
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
		n = rw_read_cached(iocb, to);
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
static bool rw_has_priv_bits(struct inode *inode)
{
	return (READ_ONCE(inode->i_mode) & (S_ISUID | S_ISGID)) ||
	       (READ_ONCE(PVFS_I(inode)->attr.has) & PVFS_AF_CAPS);
}

/*
 * Can the mgr append it? It is one request of a file that is still stuffed then. Where the end is
 * nobody knows before; so not where that matters.
 */
static bool rw_mgr_appends(struct inode *inode, const struct iov_iter *from)
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
static ssize_t rw_write_begin(struct kiocb *iocb, struct iov_iter *from,
			      struct lock_owner **appender, bool again)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	int err;

	if ((iocb->ki_flags & IOCB_APPEND) && (again || !rw_mgr_appends(inode, from))) {
		if (*appender)
			pvfs_append_end(*appender);
		*appender = NULL;
		/* Be in the file before: who has the lock waits for no other client. */
		err = pvfs_turn_enter(inode);
		if (err)
			return err;
		pvfs_turn_leave(inode);
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
static size_t rw_append_step(struct inode *inode, loff_t pos, size_t left)
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
static ssize_t rw_write_behind(struct kiocb *iocb, struct iov_iter *from, int *err)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	unsigned long token = pvfs_wlease_token(inode);
	ssize_t n;

	*err = -EAGAIN;
	if (!token || rw_has_priv_bits(inode))
		return 0;
	/* Where the end is nobody else moves: no lock is needed to append. */
	n = generic_write_checks(iocb, from);
	if (n <= 0) {
		*err = n;
		return 0;
	}
	return pvfs_write_behind(iocb, from, token, err);
}

/**
 * pvfs_write_iter - write(2) and its like
 * @iocb: the open file, and where in it
 * @from: what
 *
 * Return: bytes, or -errno if there were none.
 */
ssize_t pvfs_write_iter(struct kiocb *iocb, struct iov_iter *from)
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
	if (READ_ONCE(PVFS_I(inode)->draft.d)) {
		n = pvfs_draft_write(iocb, from);
		if (n != -EAGAIN)
			return n > 0 ? generic_write_sync(iocb, n) : n;
		err = pvfs_draft_settle(inode);
		if (err)
			return err;
	}
	behind = pvfs_may_write_behind(iocb, from);
	excl = append || behind || rw_has_priv_bits(inode);
	err = excl ? down_write_killable(&inode->i_rwsem) : down_read_killable(&inode->i_rwsem);
	if (err)
		return err;
	if (behind) {
		total = rw_write_behind(iocb, from, &err);
		/* What another appends may have come between: the rest does not belong there. */
		if (err != -EAGAIN || !iov_iter_count(from) || (append && total))
			goto out_unlock;
	}
	err = pvfs_full_settle(inode, append ? i_size_read(inode) : iocb->ki_pos, iov_iter_count(from));
	if (err)
		goto out_unlock;
	n = rw_write_begin(iocb, from, &appender, false);
	if (n <= 0) {
		err = n;
		goto out_unlock;
	}
	if (excl && rw_has_priv_bits(inode)) {
		err = file_remove_privs(file);
		if (err)
			goto out_unlock;
	}
	err = pvfs_cache_prepare(inode, iocb->ki_pos, iov_iter_count(from));
	while (!err && iov_iter_count(from)) {
		n = pvfs_direct_write(file, &iocb->ki_pos, from,
				      appender ? min(most, rw_append_step(inode, iocb->ki_pos, iov_iter_count(from))) :
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
			n = rw_write_begin(iocb, from, &appender, true);
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
