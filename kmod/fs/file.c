// SPDX-License-Identifier: GPL-2.0
/*
 * file.c - regular files: open, close, fsync, and the tables of what the VFS may ask of one. Reading and writing
 * is rw.c's.
 */
#include <linux/namei.h>
#include <linux/pagemap.h>
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
 * Errors of writing back are told here, too, as far as they are known; not as told, for the open file may be
 * others' as well, who sync it later: a child that ends, or execs, looks at nothing that close says.
 */
int pvfs_file_flush(struct file *file, fl_owner_t id)
{
	struct inode *inode = file_inode(file);
	int err = 0, err2;

	pvfs_locks_flushed(file, id);
	if (!(file->f_mode & FMODE_WRITE))
		return 0;
	/* Nobody is told what comes of it. */
	if (pvfs_dying()) {
		if (pvfs_late_due(inode) && !pvfs_late_behind(inode))
			pvfs_late_write(inode, 0, true);
		return 0;
	}
	if (!pvfs_late_behind(inode)) {
		err = pvfs_draft_close(inode) ?: pvfs_cache_write(inode, 0, LLONG_MAX);
		/* While it is open: then it may be that nothing is lost. */
		if (err != -EINTR)
			pvfs_unstable_settle(inode);
	}
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
	if (writer && (pvfs_late_due(inode) || pvfs_unstable_unsettled(inode)))
		pvfs_late_write(inode, pf->flags, pvfs_dying() && !pvfs_late_behind(inode));
	else if (pf->shared)
		pvfs_open_leave(inode);
	else if (pvfs_open_class(pf->flags))
		pvfs_close_at_mgr(PVFS_VOL(inode), &PVFS_I(inode)->fid, pf->flags, inode);
	kfree(pf);
	return 0;
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
