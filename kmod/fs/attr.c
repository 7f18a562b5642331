// SPDX-License-Identifier: GPL-2.0
/*
 * attr.c - attributes of inodes: taking them in, how fresh they are, stat, chmod and the like,
 * permissions.
 *
 * Attributes come with nearly every answer of the mgr. They carry a version; older ones never
 * replace newer ones, in whatever order answers arrive.
 */
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <linux/iversion.h>
#include <linux/pagemap.h>
#include <linux/ratelimit.h>
#include "vfs.h"

/* Longest time between a LOOKUP's answer and its use by the same system call. */
#define FRESH_NS (50 * NSEC_PER_MSEC)

/* ---------------------------------------------------------------- what comes from outside */

/**
 * pvfs_bogus - a server sent something that makes no sense
 * @vol: the volume
 * @what: what it was
 * @ino: of which inode; 0: none
 *
 * The one exit for all such values: one line in the log, limited, and -EIO.
 */
int pvfs_bogus(struct pvfs_volume *vol, const char *what, u64 ino)
{
	pr_warn_ratelimited("%s: the mgr sent nonsense: %s (ino %llu)\n", vol->opts.volume, what,
			    ino);
	return -EIO;
}

/* pvfs_mode_sane - does @mode name a type of file? */
bool pvfs_mode_sane(u32 mode)
{
	if (mode & ~(u32)(S_IFMT | S_IALLUGO))
		return false;
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
	       S_ISFIFO(mode) || S_ISSOCK(mode);
}

static bool attr_ts_sane(const struct pvfs_ts *t)
{
	return t->nsec < NSEC_PER_SEC;
}

/**
 * pvfs_attr_sane - can these attributes be an inode's?
 * @vol: the volume
 * @attr: from the wire
 */
bool pvfs_attr_sane(struct pvfs_volume *vol, const struct pvfs_attr *attr)
{
	if (!attr->fid.ino || !pvfs_mode_sane(attr->mode) || attr->size > PVFS_FILE_MAX)
		return false;
	if (!attr_ts_sane(&attr->atime) || !attr_ts_sane(&attr->mtime) ||
	    !attr_ts_sane(&attr->ctime) || !attr_ts_sane(&attr->btime))
		return false;
	if (S_ISREG(attr->mode) && !pvfs_layout_valid(&attr->layout, vol->niods))
		return false;
	if ((attr->flags & PVFS_AF_STUFFED) && attr->size > PVFS_STUFF_MAX)
		return false;
	return uid_valid(make_kuid(&init_user_ns, attr->uid)) &&
	       gid_valid(make_kgid(&init_user_ns, attr->gid));
}

/* ---------------------------------------------------------------- taking them in */

/**
 * pvfs_inode_update - take in attributes that came from the mgr
 * @inode: the inode
 * @attr: checked by pvfs_attr_sane(), and this inode's
 * @ask: from before the question, if the answer may bring a lease; else NULL
 *
 * Older ones than we have are left alone. A file is never made shorter than our own writes have
 * made it, unless it was truncated since: the mgr may not know of them yet. Those without the true
 * size do for all but that: who needs it asks with GETATTR, which waits until the mgr knows.
 *
 * Return: 0, or -EIO when the type is another than it was.
 */
int pvfs_inode_update(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct timespec64 atime, ctime;
	u64 size = attr->size;

	if ((attr->mode ^ inode->i_mode) & S_IFMT)
		return pvfs_bogus(PVFS_VOL(inode), "another type for an inode", attr->fid.ino);
	spin_lock(&pi->lock);
	if (!(attr->flags & PVFS_AF_STUFFED) && !pi->striped) {
		WRITE_ONCE(pi->striped, true);
		/*
		 * What is written from here on the mgr hears of later. It leases no striped file that
		 * somebody writes; this one it may have leased as a stuffed one.
		 */
		if (pi->attr.version)
			pvfs_own_change(inode);
	}
	/* What we have may be as old as it was: also if the rest of it is newer than this. */
	if (attr->flags & PVFS_AF_SIZE_UNKNOWN) {
		pi->attr.valid = false;
	} else if (attr->version >= pi->attr.told_version) {
		pi->attr.told = size;
		pi->attr.told_version = attr->version;
	}
	/* Nor does a lease come with them: it would be taken for one on what we have. */
	if (attr->version < pi->attr.version) {
		spin_unlock(&pi->lock);
		return 0;
	}
	if (S_ISREG(attr->mode) && pi->attr.floor_gen == attr->trunc_gen)
		size = max(size, pi->attr.floor);
	if ((attr->flags & PVFS_AF_SIZE_UNKNOWN) && pi->attr.trunc_gen == attr->trunc_gen)
		size = max_t(u64, size, i_size_read(inode));
	/* What the mgr says of it is from before what was written. */
	if (READ_ONCE(pi->draft.d))
		size = max_t(u64, size, i_size_read(inode));
	inode->i_mode = attr->mode;
	i_uid_write(inode, attr->uid);
	i_gid_write(inode, attr->gid);
	set_nlink(inode, attr->nlink);
	i_size_write(inode, size);
	inode->i_blocks = attr->blocks;
	atime = pvfs_ts_to_kernel(&attr->atime);
	ctime = pvfs_ts_to_kernel(&attr->ctime);
	/* The mgr will do the same with it. */
	if (timespec64_compare(&pi->attr.atime_due, &atime) > 0 &&
	    timespec64_compare(&pi->attr.atime_due, &ctime) > 0)
		atime = pi->attr.atime_due;
	pvfs_set_atime(inode, atime);
	pvfs_set_mtime(inode, pvfs_ts_to_kernel(&attr->mtime));
	pvfs_set_ctime(inode, ctime);
	inode_set_iversion_raw(inode, attr->version);
	pi->attr.btime = pvfs_ts_to_kernel(&attr->btime);
	pi->layout = attr->layout;
	if (pvfs_wlease_keeps_step(pi, attr))
		pi->cache_version = attr->version;
	pi->attr.version = attr->version;
	pi->attr.trunc_gen = attr->trunc_gen;
	WRITE_ONCE(pi->attr.has,
		   attr->flags & (PVFS_AF_XATTR | PVFS_AF_ACL | PVFS_AF_DEFACL | PVFS_AF_CAPS));
	pi->attr.acl_version = attr->acl_version;
	pi->attr.time = jiffies;
	pi->attr.valid = !(attr->flags & PVFS_AF_SIZE_UNKNOWN);
	if (pi->attr.stale && attr->nlink)	/* it was taken for removed */
		inode_set_flags(inode, 0, S_DEAD);
	pi->attr.stale = false;
	pvfs_lease_take(inode, attr, ask);
	pvfs_wlease_closed(inode, attr, ask);
	spin_unlock(&pi->lock);
	return 0;
}

/**
 * pvfs_dir_told - take in a directory's attributes that came, with a lease, along with its names
 * @dir: the directory
 * @attr: checked
 * @ask: from before the question
 * @token: set to that of the lease under which the names may be believed; 0: they may not
 *
 * Return: as pvfs_inode_update().
 */
int pvfs_dir_told(struct inode *dir, const struct pvfs_attr *attr, const struct pvfs_ask *ask,
		  unsigned long *token)
{
	int err = pvfs_inode_update(dir, attr, ask);

	*token = err ? 0 : pvfs_lease_since(dir, ask);
	return err;
}

/**
 * pvfs_inode_stale - the mgr said that there is no such inode (any more)
 * @inode: the inode
 */
void pvfs_inode_stale(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->attr.stale = true;
	pi->attr.valid = false;
	pvfs_own_change(inode);
	spin_unlock(&pi->lock);
}

/* ---------------------------------------------------------------- how fresh they are */

/**
 * pvfs_syscall_nr - the system call that this task is in
 *
 * Return: its number; -1 for threads that do other tasks' work.
 */
int pvfs_syscall_nr(void)
{
	if (pvfs_task_is_worker(current))
		return -1;
	return syscall_get_nr(current, task_pt_regs(current));
}

/**
 * pvfs_fresh_leave - a LOOKUP of this task, for the last component of a path, has just brought
 * attributes
 * @inode: whose
 * @ask: from before the LOOKUP
 *
 * The kernel makes stat(path) of two calls to us: one that finds the name, one that reads the
 * attributes. To ask the mgr in both would double the price of stat. But attributes may be used
 * without asking only if they are not older than the system call they are used in: otherwise a
 * change that was complete before the call could be missed. So the first call leaves leave for the
 * second: good once, for the same task, in a system call of the same number.
 *
 * That this is the same system call, and not a later one of the same number, follows from who
 * takes: in a call that stats a path, the taking follows the leaving, so a leave that is found was
 * left in this call; a call that stats a descriptor leaves none, and would find one only if a call
 * of the same number, on a path, had failed between the two. For that case alone there is the limit
 * of some milliseconds.
 *
 * What we wrote goes along with GETATTR, not with LOOKUP. So there is none when the mgr may have
 * answered before it was told of all that was written before the question, or while some of that is in
 * the page cache only.
 */
void pvfs_fresh_leave(struct inode *inode, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	int nr = pvfs_syscall_nr();

	if (nr < 0 || !pvfs_writes_reported(inode, ask) || pvfs_unwritten(inode))
		return;
	spin_lock(&pi->lock);
	pi->attr.fresh.task = current;
	pi->attr.fresh.nr = nr;
	pi->attr.fresh.when = ktime_get_ns();
	spin_unlock(&pi->lock);
}

/**
 * pvfs_fresh_take - may the attributes we have be used without asking?
 * @inode: whose
 *
 * Takes the leave: the next question gets no.
 */
bool pvfs_fresh_take(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	spin_lock(&pi->lock);
	ret = pi->attr.fresh.task == current && ktime_get_ns() - pi->attr.fresh.when < FRESH_NS &&
	      pi->attr.valid && pi->attr.fresh.nr == pvfs_syscall_nr();
	pi->attr.fresh.task = NULL;
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_attr_trusted - with actimeo: are the attributes we have young enough?
 * @inode: the inode
 */
bool pvfs_attr_trusted(struct inode *inode)
{
	unsigned int ms = PVFS_VOL(inode)->opts.actimeo_ms;
	struct pvfs_inode *pi = PVFS_I(inode);

	return ms && READ_ONCE(pi->attr.valid) &&
	       time_before(jiffies, READ_ONCE(pi->attr.time) + msecs_to_jiffies(ms));
}

/**
 * pvfs_size_told - how long a file is, for who has just made sure that the attributes are fresh
 * @inode: the inode
 *
 * i_size is also what writes make it that end on this node between the mgr's answer and now, but not
 * what those of other nodes did that ended before them: together it may have been no size ever. The
 * answer alone was one.
 */
loff_t pvfs_size_told(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	loff_t size;

	if (!S_ISREG(inode->i_mode) || PVFS_VOL(inode)->opts.actimeo_ms)
		return i_size_read(inode);
	spin_lock(&pi->lock);
	size = pi->attr.told;
	spin_unlock(&pi->lock);
	return size;
}

/**
 * pvfs_attr_distrust - we have changed something: what we know is old, whatever actimeo says
 * @inode: the inode
 */
void pvfs_attr_distrust(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->attr.valid = false;
	pi->attr.fresh.task = NULL;
	pvfs_own_change(inode);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_dir_removed - the mgr does not know a directory any more: another client has removed it
 * @dir: open here, or somebody's current directory
 *
 * From now on it has no links and no entries, and the VFS lets nobody make any; unless it turns out
 * to be there, see pvfs_inode_update().
 *
 * Return: false: it is the volume's root, which nobody removes.
 */
bool pvfs_dir_removed(struct inode *dir)
{
	if (d_inode(dir->i_sb->s_root) == dir)
		return false;
	spin_lock(&PVFS_I(dir)->lock);
	clear_nlink(dir);
	spin_unlock(&PVFS_I(dir)->lock);
	inode_set_flags(dir, S_DEAD, S_DEAD);
	return true;
}

/**
 * pvfs_revalidate - make sure that the attributes are not older than this call (or than actimeo
 * allows)
 * @inode: the inode
 */
int pvfs_revalidate(struct inode *inode)
{
	int err = pvfs_draft_show(inode) ?: pvfs_behind_settle(inode);

	if (err)
		return err;
	if (pvfs_fresh_take(inode) || pvfs_attr_trusted(inode) || pvfs_attrs_leased(inode))
		return 0;
	/*
	 * Removed, and still open or somebody's current directory: the mgr has forgotten it, nothing
	 * changes any more.
	 */
	if (S_ISDIR(inode->i_mode) && !inode->i_nlink)
		return 0;
	err = pvfs_meta_getattr(inode);
	if (err == -ESTALE && S_ISDIR(inode->i_mode) && pvfs_dir_removed(inode))
		return 0;
	return err;
}

/* ---------------------------------------------------------------- what the VFS calls */

/*
 * A truncation, among other things maybe. Nobody stores through a mapping meanwhile, and what is
 * behind the new end goes to the iods first, so that nothing comes after the cut. What a mapping
 * holds behind the end of the last page becomes zeros when the file grows.
 */
static int attr_set_size(struct inode *inode, struct pvfs_setattr_req *m)
{
	struct address_space *mapping = inode->i_mapping;
	loff_t from = min_t(loff_t, m->size, i_size_read(inode));
	int err;

	err = down_write_killable(&mapping->invalidate_lock);
	if (err)
		return err;
	if (mapping->nrpages) {
		loff_t page = round_down(from, PAGE_SIZE);

		unmap_mapping_range(mapping, page, 0, 1);
		err = pvfs_cache_write(inode, page, LLONG_MAX);
		if (err == -EINTR)
			goto out;
	}
	err = pvfs_cache_wait(inode, from) ?: pvfs_meta_setattr(inode, m);
	if (!err)
		truncate_pagecache(inode, from);
out:
	filemap_invalidate_unlock(mapping);
	return err;
}

int pvfs_getattr(struct pvfs_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ask = (flags & AT_STATX_SYNC_TYPE) != AT_STATX_DONT_SYNC;
	int err = 0;

	if ((flags & AT_STATX_SYNC_TYPE) == AT_STATX_FORCE_SYNC)
		err = pvfs_draft_show(inode) ?: pvfs_behind_settle(inode) ?:
		      pvfs_fresh_take(inode) ? 0 : pvfs_meta_getattr(inode);
	else if (ask)
		err = pvfs_revalidate(inode);
	if (err)
		return err;
	spin_lock(&pi->lock);
	pvfs_fillattr(idmap, mask, inode, stat);
	stat->ino = pi->fid.ino;	/* i_ino has 32 bits on a machine of 32 bits */
	stat->btime = pi->attr.btime;
	spin_unlock(&pi->lock);
	if (ask)
		stat->size = pvfs_size_told(inode);
	stat->result_mask |= STATX_BTIME;
	/* Asking the iods for as much as fits one request is what reads and writes do best. */
	if (S_ISREG(inode->i_mode))
		stat->blksize = PVFS_VOL(inode)->rsize;
	return 0;
}

int pvfs_setattr(struct pvfs_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	unsigned int valid = attr->ia_valid;
	struct pvfs_setattr_req m = {};
	bool draft = false;
	int err;

	if (S_ISREG(inode->i_mode) && (valid & ATTR_OPEN) && (valid & ATTR_FILE)) {
		struct pvfs_file *pf = attr->ia_file->private_data;

		if (pf && pf->truncated) {
			pf->truncated = false;
			return 0;
		}
	}
	/* What was written comes before times that are set. A truncation sees to that by itself. */
	if (!(valid & ATTR_SIZE)) {
		err = pvfs_behind_settle(inode);
		if (err)
			return err;
	}
	/* Nobody else has changed a draft, and its owner may do all that goes into it. */
	if (READ_ONCE(PVFS_I(inode)->draft.d)) {
		struct iattr copy = *attr;

		draft = !setattr_prepare(idmap, dentry, &copy);
	}
	if (!draft && pvfs_checked_here(PVFS_VOL(inode), idmap)) {
		err = pvfs_revalidate(inode) ?: setattr_prepare(idmap, dentry, attr);
		if (err)
			return err;
	}
	if (valid & ATTR_SIZE) {
		err = inode_newsize_ok(inode, attr->ia_size);
		if (err)
			return err;
		m.valid |= PVFS_SA_SIZE;
		m.size = attr->ia_size;
		if ((valid & ATTR_FILE) && (attr->ia_file->f_mode & FMODE_WRITE))
			m.valid |= PVFS_SA_OPENED;
		/* A truncation moves them anyway. */
		if (!(valid & ATTR_MTIME_SET))
			valid &= ~ATTR_MTIME;
	}
	/*
	 * With a KILL flag the mode is the VFS's guess from attributes that may be old; the mgr
	 * knows better.
	 */
	if (valid & (ATTR_KILL_SUID | ATTR_KILL_SGID | ATTR_KILL_PRIV)) {
		valid &= ~ATTR_MODE;
		/* But not whether this caller may keep the bit that is of no use to the group. */
		if ((valid & ATTR_KILL_SGID) && pvfs_checked_here(PVFS_VOL(inode), idmap))
			m.valid |= PVFS_SA_KILL_SGID;
		if (!(valid & (ATTR_UID | ATTR_GID))) {	/* a chown does it by itself */
			if (valid & (ATTR_KILL_SUID | ATTR_KILL_SGID))
				m.valid |= PVFS_SA_KILL_PRIV;
			if (valid & ATTR_KILL_PRIV)
				m.valid |= PVFS_SA_KILL_CAPS;
			/* For a write, not for a chown to whom it belongs to. */
			if (valid & ATTR_FORCE)
				m.valid |= PVFS_SA_OPENED;
		}
	}
	if (valid & ATTR_MODE) {
		m.valid |= PVFS_SA_MODE;
		m.mode = attr->ia_mode & S_IALLUGO;
	}
	if (valid & ATTR_UID) {
		m.valid |= PVFS_SA_UID;
		m.uid = from_kuid(&init_user_ns,
				  from_vfsuid(idmap, &init_user_ns, attr->ia_vfsuid));
	}
	if (valid & ATTR_GID) {
		m.valid |= PVFS_SA_GID;
		m.gid = from_kgid(&init_user_ns,
				  from_vfsgid(idmap, &init_user_ns, attr->ia_vfsgid));
	}
	if (valid & ATTR_ATIME) {
		m.valid |= valid & ATTR_ATIME_SET ? PVFS_SA_ATIME : PVFS_SA_ATIME_NOW;
		m.atime = pvfs_ts_from_kernel(&attr->ia_atime);
	}
	if (valid & ATTR_MTIME) {
		m.valid |= valid & ATTR_MTIME_SET ? PVFS_SA_MTIME : PVFS_SA_MTIME_NOW;
		m.mtime = pvfs_ts_from_kernel(&attr->ia_mtime);
	}
	if (!m.valid || (draft && pvfs_draft_setattr(inode, &m)))
		return 0;
	return m.valid & PVFS_SA_SIZE ? attr_set_size(inode, &m) : pvfs_meta_setattr(inode, &m);
}

/* Is root less than all-powerful, or another more than its uid says? */
static bool attr_unusual_caps(const struct cred *cred)
{
	kernel_cap_t caps = cred->cap_effective;
	/* Up to Linux 6.2 cap_raised() gives a mask. */
	unsigned int n = !!cap_raised(caps, CAP_DAC_OVERRIDE) + !!cap_raised(caps, CAP_DAC_READ_SEARCH) +
			 !!cap_raised(caps, CAP_FOWNER) + !!cap_raised(caps, CAP_CHOWN) +
			 !!cap_raised(caps, CAP_FSETID);

	return n != (uid_eq(cred->fsuid, GLOBAL_ROOT_UID) ? 5 : 0);
}

/**
 * pvfs_checked_here - is it the VFS that says what the caller may, not the mgr?
 * @vol: the volume
 * @idmap: of the mount, or PVFS_NOP_IDMAP where the VFS does not tell
 *
 * The mgr knows uids and gids. What goes beyond them - capabilities, user name spaces, mounts that
 * map ids - only the caller's kernel can judge: then every check is made here, against fresh
 * attributes, and the mgr is told so. As the VFS doesn't say for all operations through which mount
 * they come, one mount that maps ids makes it so for all of a volume.
 */
bool pvfs_checked_here(struct pvfs_volume *vol, struct pvfs_idmap *idmap)
{
	const struct cred *cred = current_cred();

	if (unlikely(idmap != PVFS_NOP_IDMAP))
		WRITE_ONCE(vol->idmapped, true);
	return READ_ONCE(vol->idmapped) || cred->user_ns != &init_user_ns ||
	       attr_unusual_caps(cred);
}

/*
 * The mgr checks every request by itself, against attributes that are not old. So what is asked
 * here on behalf of a request that follows may be granted by old attributes; it must not be refused
 * by them. The same goes for ACLs: pvfs_acl_for_check() has the one that belongs to the attributes
 * we have, and knows when it must ask.
 */
int pvfs_permission(struct pvfs_idmap *idmap, struct inode *inode, int mask)
{
	bool here = pvfs_checked_here(PVFS_VOL(inode), idmap), followed;
	int err;

	/* An OPEN follows. */
	if (!here && S_ISREG(inode->i_mode) && (mask & MAY_OPEN))
		return 0;
	/*
	 * A LOOKUP, or a change of the directory, follows; but nothing on access(), chdir() and
	 * opening it.
	 */
	followed = !here && S_ISDIR(inode->i_mode) && !(mask & (MAY_ACCESS | MAY_CHDIR | MAY_OPEN));
	if (mask & MAY_NOT_BLOCK) {
		if (followed && !generic_permission(idmap, inode, mask))
			return 0;
		return -ECHILD;
	}
	if (followed && !generic_permission(idmap, inode, mask))
		return 0;
	err = pvfs_revalidate(inode);
	return err ?: generic_permission(idmap, inode, mask);
}
