// SPDX-License-Identifier: GPL-2.0
/*
 * namei.c - names: finding, making, removing, renaming them, and opening by name.
 *
 * A name that the dentry cache holds is asked again each time it is used, but where the operation
 * that follows asks by name itself: opening a regular file (which then compares what it got with
 * what was cached) and unlink(2). With actimeo names are believed for that long; under a lease on
 * their directory until it is recalled.
 */
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <linux/compat.h>
#include <linux/namei.h>
#include <linux/slab.h>
#include "vfs.h"

/* ---------------------------------------------------------------- what the dentry cache holds */

/**
 * pvfs_dentry_validated - the mgr has just confirmed this name
 * @dentry: the name
 * @token: of the directory's lease that covers it; 0: none does
 */
void pvfs_dentry_validated(struct dentry *dentry, unsigned long token)
{
	const struct pvfs_volume *vol = PVFS_D_VOL(dentry);

	WRITE_ONCE(dentry->d_time, vol->opts.actimeo_ms ? jiffies : token);
}

static void namei_dentry_distrust(struct dentry *dentry)
{
	const struct pvfs_volume *vol = PVFS_D_VOL(dentry);

	WRITE_ONCE(dentry->d_time, vol->opts.actimeo_ms ? jiffies - INT_MAX / 2 : 0);
}

/**
 * pvfs_dentry_confirmed - as pvfs_dentry_validated(), for who asked without the directory's lock
 * @dentry: the name
 * @parent: its directory's dentry, when it was asked about
 * @name: the name that was asked about
 * @token: of the directory's lease that covers it; 0: none does
 *
 * A rename of this node has its answer before the VFS moves the dentries: one that it has to do with
 * may be confirmed as the name that it is about to lose. So of such a one it is only believed when no
 * rename goes on, and it still has that name.
 */
void pvfs_dentry_confirmed(struct dentry *dentry, const struct dentry *parent,
			   const struct qstr *name, unsigned long token)
{
	struct inode *dir = d_inode(parent);

	if (likely(READ_ONCE(dentry->d_fsdata) != PVFS_D_MOVED)) {
		pvfs_dentry_validated(dentry, token);
		/* Pairs with pvfs_rename(): it marks, then distrusts. */
		smp_mb();
		if (unlikely(READ_ONCE(dentry->d_fsdata) == PVFS_D_MOVED))
			namei_dentry_distrust(dentry);
		return;
	}
	if (!inode_trylock_shared(dir))
		return;
	if (dentry->d_parent == parent && dentry->d_name.len == name->len &&
	    !memcmp(dentry->d_name.name, name->name, name->len)) {
		WRITE_ONCE(dentry->d_fsdata, NULL);
		pvfs_dentry_validated(dentry, token);
	}
	inode_unlock_shared(dir);
}

/**
 * pvfs_dentry_trusted - is a name believed?
 * @dentry: the name
 * @dir: where it is; the caller has a reference, or the RCU read lock
 */
bool pvfs_dentry_trusted(const struct dentry *dentry, const struct inode *dir)
{
	const struct pvfs_volume *vol = PVFS_D_VOL(dentry);
	unsigned long time = READ_ONCE(dentry->d_time), token;
	unsigned int ms = vol->opts.actimeo_ms;

	if (ms)
		return time_before(jiffies, time + msecs_to_jiffies(ms));
	token = pvfs_lease_token(dir);
	return token && time == token;
}

/*
 * Is this task in unlink(2)? It takes a name away whatever the name stands for, and the mgr finds
 * out what that is; so to ask before would be a second question for the same answer. The VFS tells
 * us its intent for opening, creating and renaming to, but not for removing; and rmdir(2), which
 * looks the same from here, does need to know the type, because the VFS refuses by it before we are
 * called.
 */
static bool namei_in_unlink(void)
{
	unsigned long args[6];

	if (pvfs_task_is_worker(current) || in_compat_syscall())
		return false;
	switch (pvfs_syscall_nr()) {
#ifdef __NR_unlink
	case __NR_unlink:
		return true;
#endif
	case __NR_unlinkat:
		syscall_get_arguments(current, task_pt_regs(current), args);
		return !(args[2] & AT_REMOVEDIR);
	default:
		return false;
	}
}

/* Is this task in link(2)? */
static bool namei_in_link(void)
{
	switch (pvfs_syscall_nr()) {
#ifdef __NR_link
	case __NR_link:
#endif
	case __NR_linkat:
		return !in_compat_syscall();
	}
	return false;
}

/* Is this task in rename(2)? */
static bool namei_in_rename(void)
{
	switch (pvfs_syscall_nr()) {
#ifdef __NR_rename
	case __NR_rename:
#endif
#ifdef __NR_renameat
	case __NR_renameat:
#endif
	case __NR_renameat2:
		return !in_compat_syscall();
	}
	return false;
}

/* And must that not replace anything? Not all kernels say so with LOOKUP_EXCL. */
static bool namei_rename_keeps(void)
{
	unsigned long args[6];

	if (pvfs_syscall_nr() != __NR_renameat2 || in_compat_syscall())
		return false;
	syscall_get_arguments(current, task_pt_regs(current), args);
	return args[4] & RENAME_NOREPLACE;
}

/*
 * The name by which the rename that this task is in has found the inode already, with a reference;
 * or NULL.
 */
static struct dentry *namei_found_before(struct inode *inode, const struct dentry *dentry)
{
	struct dentry *d, *ret = NULL;

	spin_lock(&inode->i_lock);
	hlist_for_each_entry(d, &inode->i_dentry, d_u.d_alias) {
		/* It may be unhashed: others here may know already that it is not there. */
		if (d == dentry || READ_ONCE(d->d_fsdata) != current || !d_count(d))
			continue;
		ret = dget(d);
		break;
	}
	spin_unlock(&inode->i_lock);
	return ret;
}

/* Does the name stand for the inode? @version: set to the inode's. Return: 0, -ENOENT: no; -errno. */
static int namei_ask(struct dentry *dentry, struct inode *inode, u64 *version, u32 *nlink)
{
	struct pvfs_found found;
	struct name_snapshot name;
	struct dentry *parent;
	int err;

	parent = dget_parent(dentry);
	take_dentry_name_snapshot(&name, dentry);
	err = pvfs_meta_lookup(d_inode(parent), &name.name, &found);
	release_dentry_name_snapshot(&name);
	dput(parent);
	if (err)
		return err;
	if (!pvfs_inode_is(inode, &found.attr.fid))
		return -ENOENT;
	*version = found.attr.version;
	*nlink = found.attr.nlink;
	return 0;
}

/*
 * Are both names the inode's, at one time? Each may have been when it was asked about, if it was
 * renamed to and fro; that changes the inode. The mgr reads the name and then the inode, which may
 * have been renamed in between: so a version says that a name stood for it only if the answer before
 * had that version, too. A file that others write changes all the time: then its links tell.
 *
 * @version: of when the second was asked about.
 *
 * Return: 0; -ENOENT: not the first; -EAGAIN: not the second, any more; -errno.
 */
static int namei_both(struct inode *inode, struct dentry *first, struct dentry *second, u64 version)
{
	unsigned int tries, same = 0;
	u64 now = 0;
	u32 nlink;
	int err;

	for (tries = 0; tries < 16; tries++) {
		err = namei_ask(tries % 2 ? second : first, inode, &now, &nlink);
		if (err)
			return err == -ENOENT && tries % 2 ? -EAGAIN : err;
		same = now == version ? same + 1 : 0;
		if (same == 2)
			return 0;
		version = now;
	}
	return nlink > 1 ? 0 : -ENOENT;
}

/*
 * rename(2) from one name of an inode to another does nothing, and the VFS sees that by what it got
 * when it looked them up, one after the other. If another client has renamed between the two, it
 * got the same inode twice though no inode ever had both names. So when the second name is found to
 * be of the first one's inode, the first is asked again.
 *
 * Both are looked up under the lock of their directory, or of both directories, so that nobody
 * else's rename here can put its mark (d_fsdata) on the first. Marks of this task's earlier renames
 * may still be on other names of the inode that are in use: they are asked about like the first, and
 * all are gone when the VFS begins anew.
 *
 * What is to be replaced, or must not be, need not be known: the mgr goes by the names. But the two
 * names of an exchange must both be known; and a directory's, which is right, is not given up, as
 * something may be mounted there.
 *
 * @version: the inode's, as it came with @dentry's name.
 *
 * Return: 0; -EAGAIN: @dentry's name is another's by now, or need not be known; -ESTALE: the VFS is to
 * begin anew, or -EBUSY if it has done that (LOOKUP_REVAL) and it happened again.
 */
static int namei_renamed_meanwhile(struct inode *inode, struct dentry *dentry, unsigned int flags,
				   u64 version)
{
	int err = 0, gone = flags & LOOKUP_REVAL ? -EBUSY : -ESTALE;
	struct dentry *first;
	bool any = false;

	if ((flags & LOOKUP_RENAME_TARGET) && !S_ISDIR(inode->i_mode))
		gone = -EAGAIN;
	if ((flags & LOOKUP_PARENT) || likely(!namei_in_rename()))
		return 0;
	WRITE_ONCE(dentry->d_fsdata, current);
	while (!err && unlikely(first = namei_found_before(inode, dentry))) {
		WRITE_ONCE(first->d_fsdata, NULL);
		err = namei_both(inode, first, dentry, version);
		if (err == -ENOENT) {
			d_drop(first);
			any = true;
			/* It is found once more, by the LOOKUP that follows. */
			err = gone == -EAGAIN ? gone : 0;
			if (err)
				WRITE_ONCE(first->d_fsdata, current);
		} else if (err == -EAGAIN) {
			/* The first may be the inode's still, and is asked about when we come again. */
			WRITE_ONCE(first->d_fsdata, current);
		}
		dput(first);
	}
	return err || !any ? err : gone;
}

/*
 * A symbolic link never changes, so its target is read once, with the LOOKUP or else by READLINK.
 * From then on the VFS finds it in i_link and does not ask; pvfs_free_inode() frees it.
 */
static void namei_link_target_set(struct inode *inode, const char *target)
{
	char *copy;

	if (!S_ISLNK(inode->i_mode) || READ_ONCE(inode->i_link) ||
	    strlen(target) != i_size_read(inode))
		return;
	copy = kstrdup(target, GFP_KERNEL_ACCOUNT);
	/* Pairs with the VFS's READ_ONCE() and its address dependency. */
	if (copy && cmpxchg_release(&inode->i_link, NULL, copy))
		kfree(copy);
}

/*
 * The cached inode only has to pass the VFS's own checks, which a directory, or a file that is
 * another's in a sticky directory, may not.
 */
static bool namei_unlink_follows(struct inode *dir, struct inode *inode, unsigned int flags)
{
	return !flags && !S_ISDIR(inode->i_mode) && !(dir->i_mode & S_ISVTX) && namei_in_unlink();
}

/*
 * Does ->open() follow, which asks by name? Only for the last component of a path is LOOKUP_OPEN
 * set, but it stays set while a symbolic link found there is followed; those components are not
 * regular files, or not the last.
 */
static bool namei_open_follows(struct dentry *dentry, struct inode *inode, unsigned int flags)
{
	flags &= LOOKUP_OPEN | LOOKUP_DIRECTORY | LOOKUP_EXCL | LOOKUP_REVAL;
	return flags == LOOKUP_OPEN &&
	       S_ISREG(inode->i_mode) && !d_mountpoint(dentry);
}

/*
 * Is it better to look the name up, and open the file without a message? When nothing but the name is
 * in doubt, which the answer ends for all names of the directory.
 */
static bool namei_lookup_better(struct inode *dir, struct inode *inode)
{
	return pvfs_open_joinable(inode) && pvfs_lease_may_ask(dir);
}

/*
 * Does the VFS begin anew, because the name stood for something else when it was opened? Then the
 * dentry is given up, so that pvfs_atomic_open() finds and opens in one request: the VFS does not
 * begin a third time.
 */
static bool namei_opened_anew(struct dentry *dentry, struct inode *inode, unsigned int flags)
{
	flags &= LOOKUP_OPEN | LOOKUP_DIRECTORY | LOOKUP_EXCL | LOOKUP_REVAL;
	return flags == (LOOKUP_OPEN | LOOKUP_REVAL) && S_ISREG(inode->i_mode) &&
	       !d_mountpoint(dentry);
}

/*
 * Are the attributes of what was looked up about to be read, in the same system call? Of the last
 * component, but not of a link that is followed, nor if it must be a directory and is none. Before
 * it only of directories, and only if it is here that their permissions are checked.
 */
static bool namei_stat_follows(struct inode *dir, struct inode *inode, unsigned int flags)
{
	if (flags & LOOKUP_PARENT)
		return S_ISDIR(inode->i_mode) && pvfs_checked_here(PVFS_VOL(dir), PVFS_NOP_IDMAP);
	if (S_ISLNK(inode->i_mode))
		return !(flags & LOOKUP_FOLLOW);
	return S_ISDIR(inode->i_mode) || !(flags & LOOKUP_DIRECTORY);
}

static int namei_revalidate(const struct dentry *parent, struct dentry *dentry,
			    struct inode *inode, unsigned int flags)
{
	struct inode *dir = d_inode(parent);
	struct name_snapshot name;
	struct pvfs_found found;
	int err;

	take_dentry_name_snapshot(&name, dentry);
	err = pvfs_meta_lookup(dir, &name.name, &found);
	if (!err && !pvfs_inode_is(inode, &found.attr.fid))
		err = -ENOENT;
	err = err ?: pvfs_inode_update(inode, &found.attr, &found.ask);
	if (!err) {
		namei_link_target_set(inode, found.target);
		pvfs_dentry_confirmed(dentry, parent, &name.name, found.token);
	}
	release_dentry_name_snapshot(&name);
	if (err)
		return err == -ENOENT ? 0 : err;
	if (namei_stat_follows(dir, inode, flags))
		pvfs_fresh_leave(inode, &found.ask);
	err = namei_renamed_meanwhile(inode, dentry, flags, found.attr.version);
	return err == -EAGAIN ? 0 : err ?: 1;
}

/*
 * Is the name believed, for who walks a path? "Must not exist" is asked always: lock files live by
 * it. Under a lease what rename(2) moves is asked about, too: namei_renamed_meanwhile() must have
 * seen it. And a LOOKUP would have checked that the directory may be searched: pvfs_permission()
 * relies on that, but where it checks by itself.
 */
static bool namei_name_trusted(const struct dentry *dentry, struct inode *dir, unsigned int flags)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	int mask = MAY_EXEC | (flags & LOOKUP_RCU ? MAY_NOT_BLOCK : 0);

	if ((flags & (LOOKUP_REVAL | LOOKUP_EXCL)) || !pvfs_dentry_trusted(dentry, dir))
		return false;
	if (vol->opts.actimeo_ms)
		return true;
	if (!(flags & LOOKUP_PARENT) && namei_in_rename())
		return false;
	return pvfs_checked_here(vol, PVFS_NOP_IDMAP) ||
	       !generic_permission(PVFS_NOP_IDMAP, dir, mask);
}

static int pvfs_d_revalidate(struct dentry *dentry, unsigned int flags)
{
	struct inode *inode, *dir;
	struct dentry *parent;
	int ret;

	if (flags & LOOKUP_RCU) {
		dir = d_inode_rcu(READ_ONCE(dentry->d_parent));
		/*
		 * A name about to be made or replaced is better looked up anew, which costs
		 * nothing: see lookup.
		 */
		if (dir && !(flags & (LOOKUP_CREATE | LOOKUP_RENAME_TARGET)) &&
		    namei_name_trusted(dentry, dir, flags))
			return 1;
		return -ECHILD;
	}
	inode = d_inode(dentry);
	parent = dget_parent(dentry);
	dir = d_inode(parent);
	if (namei_name_trusted(dentry, dir, flags))
		ret = inode || !(flags & (LOOKUP_CREATE | LOOKUP_RENAME_TARGET));
	else if (!inode || namei_opened_anew(dentry, inode, flags))
		ret = 0;
	else if ((namei_open_follows(dentry, inode, flags) && !namei_lookup_better(dir, inode)) ||
		 namei_unlink_follows(dir, inode, flags))
		ret = 1;
	else
		ret = namei_revalidate(parent, dentry, inode, flags);
	dput(parent);
	return ret;
}

/*
 * The file was reached without its name (/proc/self/fd, open_by_handle_at()). If the name is gone, the
 * open that follows is of the inode all the same: see open_by_name().
 */
static int pvfs_d_weak_revalidate(struct dentry *dentry, unsigned int flags)
{
	if (d_unhashed(dentry) && d_is_reg(dentry))
		WRITE_ONCE(dentry->d_fsdata, PVFS_D_NAMELESS);
	return 1;
}

static int pvfs_d_init(struct dentry *dentry)
{
	namei_dentry_distrust(dentry);	/* d_time is not the VFS's to set */
	return 0;
}

/* Names that are not there are remembered only where they may be believed. */
static int pvfs_d_delete(const struct dentry *dentry)
{
	const struct inode *dir = d_inode(dentry->d_parent);

	return d_really_is_negative(dentry) && !(dir && pvfs_dentry_trusted(dentry, dir));
}

const struct dentry_operations pvfs_dentry_operations = {
	.d_init = pvfs_d_init,
	.d_revalidate = pvfs_d_revalidate,
	.d_weak_revalidate = pvfs_d_weak_revalidate,
	.d_delete = pvfs_d_delete,
};

/* ---------------------------------------------------------------- finding */

/*
 * A name that is to be made (and must not exist), or replaced: the mgr finds out in the request
 * that does it. But when the VFS would refuse for other reasons before it comes to that, the user
 * is owed the better reason, EEXIST.
 */
static bool namei_lookup_needless(struct inode *dir, unsigned int flags)
{
	/* A rename that must not replace into the own subtree: EINVAL comes behind EEXIST. */
	if (flags & LOOKUP_RENAME_TARGET)
		return !(flags & LOOKUP_EXCL) && !namei_rename_keeps();
	if ((flags & (LOOKUP_CREATE | LOOKUP_EXCL | LOOKUP_OPEN)) != (LOOKUP_CREATE | LOOKUP_EXCL))
		return false;
	/* That it is a directory which is to be linked the VFS says (EPERM) before it asks us. */
	if (namei_in_link())
		return false;
	return !sb_rdonly(dir->i_sb) &&
	       !generic_permission(PVFS_NOP_IDMAP, dir, MAY_WRITE | MAY_EXEC);
}

static struct dentry *pvfs_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct inode *inode = NULL;
	struct pvfs_found found;
	struct dentry *alias;
	bool directory;
	int err;

	if (dentry->d_name.len > PVFS_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	if (namei_lookup_needless(dir, flags))
		return NULL;		/* negative, and not hashed: nothing is known of it */
again:
	err = pvfs_meta_lookup(dir, &dentry->d_name, &found);
	if (!err) {
		inode = pvfs_iget(dir->i_sb, &found.attr, &found.ask);
		if (IS_ERR(inode))
			return ERR_CAST(inode);
		namei_link_target_set(inode, found.target);
		if (namei_stat_follows(dir, inode, flags))
			pvfs_fresh_leave(inode, &found.ask);
		err = namei_renamed_meanwhile(inode, dentry, flags, found.attr.version);
		if (err) {
			directory = S_ISDIR(inode->i_mode);
			iput(inode);
			inode = NULL;
			/* Nothing need be known of it. */
			if (err == -EAGAIN && (flags & LOOKUP_RENAME_TARGET) && !directory)
				return NULL;
			if (err == -EAGAIN)
				goto again;
			return ERR_PTR(err);
		}
	} else if (err != -ENOENT) {
		return ERR_PTR(err);
	}
	pvfs_dentry_validated(dentry, found.token);
	alias = d_splice_alias(inode, dentry);
	if (!IS_ERR_OR_NULL(alias)) {
		pvfs_dentry_validated(alias, found.token);
		if (dentry->d_fsdata)		/* see namei_renamed_meanwhile() */
			WRITE_ONCE(alias->d_fsdata, dentry->d_fsdata);
	}
	return alias;
}

/* ---------------------------------------------------------------- opening by name */

/* What is there can't be opened by CREATE: find it, and let the VFS go on with it. */
static int namei_no_open(struct inode *dir, struct dentry *dentry, struct file *file)
{
	struct dentry *alias;

	if (!d_in_lookup(dentry))
		d_drop(dentry);
	alias = pvfs_lookup(dir, dentry, 0);
	if (IS_ERR(alias))
		return PTR_ERR(alias);
	return finish_no_open(file, alias);	/* takes it */
}

/*
 * Ties an inode to a dentry that was negative. The inode's reference is taken. @token: of the
 * directory, from before the request that told us.
 */
static struct dentry *namei_splice(struct inode *inode, struct dentry *dentry, unsigned long token)
{
	struct dentry *alias;

	if (!d_in_lookup(dentry))
		d_drop(dentry);
	pvfs_dentry_validated(dentry, token);
	alias = d_splice_alias(inode, dentry);
	if (!IS_ERR_OR_NULL(alias))
		pvfs_dentry_validated(alias, token);
	return alias;
}

/* Is it likely to be written a little, and closed? */
static bool namei_wants_draft(struct inode *dir, unsigned int oflags)
{
	return (oflags & O_CREAT) && (oflags & O_ACCMODE) != O_RDONLY &&
	       !(oflags & (O_DIRECT | O_DSYNC)) && PVFS_VOL(dir)->opts.lease &&
	       READ_ONCE(PVFS_I(dir)->layout.stuff_max);
}

/* @token: the directory's. @head: room for what comes along of a stuffed file, or NULL. */
static int namei_atomic_open(struct inode *dir, struct dentry *dentry, struct file *file,
			     unsigned int oflags, umode_t mode, unsigned long token,
			     struct pvfs_head_mem *head)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_create_rep rep;
	struct dentry *alias;
	struct pvfs_file *pf;
	struct pvfs_ask ask;
	struct inode *inode;
	u64 session, epoch;
	int err;

	/*
	 * Not to truncate: that goes with a report of our writes, and we do not know yet to what
	 * inode.
	 */
	pf = pvfs_file_alloc(pvfs_open_flags(file, oflags & ~O_TRUNC));
	if (!pf)
		return -ENOMEM;
	pvfs_session_sample(vol, &session, &epoch);
	err = pvfs_meta_create(pvfs_file_idmap(file), dir, &dentry->d_name,
			       pf->flags | pvfs_wlease_wish(vol, pf->flags) |
				       (namei_wants_draft(dir, oflags) ? PVFS_O_DRAFT : 0),
			       mode, 0, &rep, &ask, head);
	if (err == -ELOOP || err == -EISDIR || err == -ENXIO) {
		/* A symbolic link, a directory, a fifo or the like: the VFS knows what to do. */
		kfree(pf);
		return namei_no_open(dir, dentry, file);
	}
	if (err)
		goto out_free;
	if (rep.created)
		pvfs_attr_distrust(dir);
	inode = pvfs_iget(dir->i_sb, &rep.attr, &ask);
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		if (S_ISREG(rep.attr.mode))
			pvfs_close_at_mgr(vol, &rep.attr.fid, pf->flags, NULL);
		d_drop(dentry);
		goto out_free;
	}
	if (!S_ISREG(inode->i_mode)) {		/* found, but not opened */
		kfree(pf);
		pvfs_fresh_leave(inode, &ask);
		alias = namei_splice(inode, dentry, token);
		return IS_ERR(alias) ? PTR_ERR(alias) : finish_no_open(file, alias);
	}
	err = pvfs_file_opened(inode, pf, &rep.cap, session, epoch);
	if (err) {
		iput(inode);
		d_drop(dentry);
		goto out_free;
	}
	pvfs_turn_opened(inode, rep.attr.flags, &ask);
	pvfs_wlease_take(inode, rep.attr.flags, &ask);
	pvfs_cache_check(inode);
	if (rep.created && (rep.attr.flags & PVFS_AF_DRAFT))
		pvfs_draft_begin(inode, &rep.attr);
	if (head)
		pvfs_head_keep(inode, head, &rep.attr);
	/* Held across namei_splice(), which takes a reference and may fail. */
	ihold(inode);
	alias = namei_splice(inode, dentry, token);
	if (IS_ERR(alias)) {
		err = PTR_ERR(alias);
		goto out_close;
	}
	if (rep.created)
		file->f_mode |= FMODE_CREATED;
	/*
	 * Before finish_open(): it may fail when the file already counts as open, and then
	 * ->release() comes.
	 */
	file->private_data = pf;
	err = finish_open(file, alias ?: dentry, pvfs_open_noop);
	dput(alias);
	if (err && !(file->f_mode & FMODE_OPENED)) {
		file->private_data = NULL;
		goto out_close;
	}
	if (!err)
		pvfs_open_share(inode, pf);
	iput(inode);
	return err;

out_close:
	pvfs_close_at_mgr(vol, &PVFS_I(inode)->fid, pf->flags, inode);
	iput(inode);
out_free:
	kfree(pf);
	return err;
}

/*
 * Finds, makes and opens in one request. Called for every open of a name that is not cached, with
 * the directory locked exclusively only when O_CREAT is set.
 */
static int pvfs_atomic_open(struct inode *dir, struct dentry *dentry, struct file *file,
			    unsigned int oflags, umode_t mode)
{
	unsigned long token = pvfs_lease_token(dir);
	struct pvfs_head_mem *head = NULL;
	int err;

	if (dentry->d_name.len > PVFS_NAME_MAX)
		return -ENAMETOOLONG;
	/* A name that is believed not to be there. */
	if (!(oflags & O_CREAT) && !d_in_lookup(dentry))
		return finish_no_open(file, NULL);
	/* A regular file it is not to be, or one that is opened for ioctl()s only. */
	if ((oflags & O_DIRECTORY) || !(file->f_mode & (FMODE_READ | FMODE_WRITE))) {
		if (oflags & O_CREAT)
			return -EINVAL;
		return namei_no_open(dir, dentry, file);
	}
	/* What it will be nobody knows; where new files are stuffed, old ones are too, probably. */
	if (PVFS_VOL(dir)->opts.lease && READ_ONCE(PVFS_I(dir)->layout.stuff_max) &&
	    !(file->f_mode & FMODE_WRITE) && !(oflags & (O_EXCL | O_DIRECT)))
		head = pvfs_head_alloc(PVFS_EAGER_MAX, GFP_KERNEL);
	if (oflags & O_CREAT)
		pvfs_own_begin(dir);
	err = namei_atomic_open(dir, dentry, file, oflags, mode, token, head);
	if (oflags & O_CREAT)
		pvfs_own_end(dir);
	pvfs_head_free(head);
	return err;
}

/*
 * O_TMPFILE: a file without a name, which is gone with its last close unless linkat(2) gives it
 * one. Whether it may be given one the VFS decides first (O_EXCL), then the mgr.
 */
static int pvfs_tmpfile(struct pvfs_idmap *idmap, struct inode *dir, struct file *file,
			umode_t mode)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct dentry *dentry = file->f_path.dentry;
	struct pvfs_create_rep rep;
	struct pvfs_file *pf;
	struct pvfs_ask ask;
	struct inode *inode;
	u64 session, epoch;
	int err;

	pf = pvfs_file_alloc(pvfs_open_flags(file, O_CREAT | (file->f_flags & O_EXCL)) |
			     PVFS_O_TMPFILE);
	if (!pf)
		return -ENOMEM;
	pvfs_session_sample(vol, &session, &epoch);
	err = pvfs_meta_create(idmap, dir, &(const struct qstr)QSTR_INIT("", 0),
			       pf->flags | pvfs_wlease_wish(vol, pf->flags), mode, 0, &rep, &ask, NULL);
	if (err)
		goto out_free;
	inode = S_ISREG(rep.attr.mode) ?
			pvfs_iget(dir->i_sb, &rep.attr, NULL) :
			ERR_PTR(pvfs_bogus(vol, "a file without a name", rep.attr.fid.ino));
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		pvfs_close_at_mgr(vol, &rep.attr.fid, pf->flags, NULL);
		goto out_free;
	}
	err = pvfs_file_opened(inode, pf, &rep.cap, session, epoch);
	if (err) {
		iput(inode);
		goto out_free;
	}
	pvfs_wlease_take(inode, rep.attr.flags, &ask);
	ihold(inode);
	set_nlink(inode, 1);		/* d_tmpfile() takes it away */
	d_tmpfile(file, inode);
	file->private_data = pf;
	err = finish_open(file, dentry, pvfs_open_noop);
	if (err && !(file->f_mode & FMODE_OPENED)) {
		file->private_data = NULL;
		pvfs_close_at_mgr(vol, &PVFS_I(inode)->fid, pf->flags, inode);
		kfree(pf);
	}
	iput(inode);
	return err;

out_free:
	kfree(pf);
	return err;
}

/* ---------------------------------------------------------------- making */

/* @token: the directory's, from before. */
static int namei_made(struct inode *dir, struct dentry *dentry, const struct pvfs_attr *attr,
		      unsigned long token)
{
	struct dentry *alias;
	struct inode *inode;

	pvfs_attr_distrust(dir);
	inode = pvfs_iget(dir->i_sb, attr, NULL);
	if (IS_ERR(inode)) {
		d_drop(dentry);
		return PTR_ERR(inode);
	}
	alias = namei_splice(inode, dentry, token);
	if (IS_ERR(alias))
		return PTR_ERR(alias);
	dput(alias);
	return 0;
}

static int pvfs_mknod(struct pvfs_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      umode_t mode, dev_t rdev)
{
	unsigned long token = pvfs_lease_token(dir);
	struct pvfs_attr attr;
	int err;

	pvfs_own_begin(dir);
	err = pvfs_meta_mknod(idmap, dir, &dentry->d_name, mode, rdev, &attr);
	err = err ?: namei_made(dir, dentry, &attr, token);
	pvfs_own_end(dir);
	return err;
}

/* Without opening: mknod(2) of a regular file. */
static int pvfs_create(struct pvfs_idmap *idmap, struct inode *dir, struct dentry *dentry,
		       umode_t mode, bool excl)
{
	return pvfs_mknod(idmap, dir, dentry, (mode & S_IALLUGO) | S_IFREG, 0);
}

static int pvfs_mkdir(struct pvfs_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      umode_t mode)
{
	unsigned long token = pvfs_lease_token(dir);
	struct pvfs_attr attr;
	int err;

	pvfs_own_begin(dir);
	err = pvfs_meta_mkdir(idmap, dir, &dentry->d_name, mode, &attr);
	err = err ?: namei_made(dir, dentry, &attr, token);
	pvfs_own_end(dir);
	return err;
}

static int pvfs_symlink(struct pvfs_idmap *idmap, struct inode *dir, struct dentry *dentry,
			const char *target)
{
	unsigned long token = pvfs_lease_token(dir);
	struct pvfs_attr attr;
	int err;

	if (strlen(target) > PVFS_SYMLINK_MAX)
		return -ENAMETOOLONG;
	pvfs_own_begin(dir);
	err = pvfs_meta_symlink(idmap, dir, &dentry->d_name, target, &attr);
	err = err ?: namei_made(dir, dentry, &attr, token);
	pvfs_own_end(dir);
	return err;
}

static int pvfs_link(struct dentry *old, struct inode *dir, struct dentry *dentry)
{
	unsigned long token = pvfs_lease_token(dir);
	struct inode *inode = d_inode(old);
	struct pvfs_attr attr;
	int err;

	err = pvfs_draft_settle(inode) ?: pvfs_late_lost(inode);
	if (err)
		return err;
	pvfs_own_begin(dir);
	pvfs_own_begin(inode);
	err = pvfs_meta_link(inode, dir, &dentry->d_name, &attr);
	err = err ?: namei_made(dir, dentry, &attr, token);
	if (err)
		pvfs_attr_distrust(inode);
	pvfs_own_end(inode);
	pvfs_own_end(dir);
	return err;
}

/* ---------------------------------------------------------------- removing */

static int pvfs_unlink(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	struct pvfs_attr attr;
	int err;

	err = pvfs_draft_settle(inode);
	if (err)
		return err;
	pvfs_own_begin(dir);
	pvfs_own_begin(inode);
	pvfs_closes_hurry(inode);
	err = pvfs_meta_unlink(dir, &dentry->d_name, &attr);
	if (!err) {
		pvfs_attr_distrust(dir);
		/* Often this inode; but the name may have stood for another by now. */
		pvfs_inode_update_cached(dir->i_sb, &attr);
		/* The VFS is yet to take it away. */
		namei_dentry_distrust(dentry);
	} else if (err == -ENOENT || err == -EISDIR || err == -ESTALE) {
		/* It may not have been asked about before: forget what we thought of it. */
		d_drop(dentry);
	}
	pvfs_attr_distrust(inode);
	pvfs_own_end(inode);
	pvfs_own_end(dir);
	return err;
}

/* A directory that is gone has no links. */
static void namei_dir_gone(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	clear_nlink(inode);
	pi->attr.valid = false;
	spin_unlock(&pi->lock);
}

static int pvfs_rmdir(struct inode *dir, struct dentry *dentry)
{
	int err;

	pvfs_own_begin(dir);
	err = pvfs_meta_rmdir(dir, &dentry->d_name);
	if (!err) {
		pvfs_attr_distrust(dir);
		namei_dir_gone(d_inode(dentry));
		namei_dentry_distrust(dentry);
	}
	pvfs_own_end(dir);
	return err;
}

static int pvfs_rename(struct pvfs_idmap *idmap, struct inode *sdir, struct dentry *sdentry,
		       struct inode *ddir, struct dentry *ddentry, unsigned int flags)
{
	struct inode *inode = d_inode(sdentry), *old = d_inode(ddentry);
	struct inode *changed[] = { sdir, ddir, inode, old };
	struct pvfs_rename_rep rep;
	unsigned int i;
	int err;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	err = pvfs_draft_settle(inode) ?: pvfs_late_lost(inode);
	if (!err && old)
		err = pvfs_draft_settle(old);
	if (!err && (flags & RENAME_EXCHANGE))
		err = pvfs_late_lost(old);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(changed); i++)
		if (changed[i])
			pvfs_own_begin(changed[i]);
	if (old)
		pvfs_closes_hurry(old);
	err = pvfs_meta_rename(sdir, &sdentry->d_name, ddir, &ddentry->d_name, flags, &rep);
	for (i = 0; i < ARRAY_SIZE(changed); i++)
		if (changed[i])
			pvfs_attr_distrust(changed[i]);
	if (!err) {
		if (old && S_ISDIR(old->i_mode) && !(flags & RENAME_EXCHANGE))
			namei_dir_gone(old);
		if (rep.replaced)
			pvfs_inode_update_cached(ddir->i_sb, &rep.old);
		if (pvfs_inode_is(inode, &rep.attr.fid))
			pvfs_inode_update(inode, &rep.attr, NULL);
		/* The VFS is yet to move them, and one may have stood for another inode by now. */
		WRITE_ONCE(sdentry->d_fsdata, PVFS_D_MOVED);
		WRITE_ONCE(ddentry->d_fsdata, PVFS_D_MOVED);
		smp_mb();		/* pairs with pvfs_dentry_confirmed() */
		namei_dentry_distrust(sdentry);
		namei_dentry_distrust(ddentry);
	}
	for (i = 0; i < ARRAY_SIZE(changed); i++)
		if (changed[i])
			pvfs_own_end(changed[i]);
	return err;
}

/* ---------------------------------------------------------------- symbolic links */

static const char *pvfs_get_link(struct dentry *dentry, struct inode *inode,
				 struct delayed_call *done)
{
	char *target;
	int err;

	if (!dentry)
		return ERR_PTR(-ECHILD);
	target = kmalloc(PVFS_SYMLINK_MAX + 1, GFP_KERNEL_ACCOUNT);
	if (!target)
		return ERR_PTR(-ENOMEM);
	err = pvfs_meta_readlink(inode, target);
	if (!err) {
		namei_link_target_set(inode, target);
		set_delayed_call(done, kfree_link, target);
		return target;
	}
	kfree(target);
	return ERR_PTR(err);
}

const struct inode_operations pvfs_symlink_inode_operations = {
	.get_link = pvfs_get_link,
	PVFS_INODE_OPERATIONS,
};

const struct inode_operations pvfs_dir_inode_operations = {
	.lookup = pvfs_lookup,
	.atomic_open = pvfs_atomic_open,
	.tmpfile = pvfs_tmpfile,
	.create = pvfs_create,
	.mknod = pvfs_mknod,
	.mkdir = pvfs_mkdir,
	.symlink = pvfs_symlink,
	.link = pvfs_link,
	.unlink = pvfs_unlink,
	.rmdir = pvfs_rmdir,
	.rename = pvfs_rename,
	PVFS_INODE_OPERATIONS,
	PVFS_ACL_OPERATIONS,
};
