// SPDX-License-Identifier: GPL-2.0
/*
 * acl.c - POSIX ACLs for the VFS. The mgr keeps them, checks by them, and keeps them and the mode
 * together; here they are needed for getxattr(2) and setxattr(2), and where we check permissions
 * ourselves, see pvfs_permission().
 *
 * The VFS's own cache is off: it has no idea of how old an ACL is. Ours is one access ACL an inode,
 * good as long as the attributes that we have carry the acl_version it came with. So it is never
 * older than they are, and how old those may be is the caller's business. Nothing is asked for an
 * inode whose attributes say that it has no ACL.
 */
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/slab.h>
#include <linux/xattr.h>
#include "vfs.h"

static const char *acl_name_of(int type)
{
	return type == ACL_TYPE_ACCESS ? XATTR_NAME_POSIX_ACL_ACCESS : XATTR_NAME_POSIX_ACL_DEFAULT;
}

static u32 acl_flag_of(int type)
{
	return type == ACL_TYPE_ACCESS ? PVFS_AF_ACL : PVFS_AF_DEFACL;
}

/* pvfs_acl_inode_setup - a new inode, of which only the mode is known */
void pvfs_acl_inode_setup(struct inode *inode)
{
	/*
	 * For symbolic links, which have no operations for ACLs, the VFS must know by itself that
	 * there are none.
	 */
	inode->i_acl = S_ISLNK(inode->i_mode) ? NULL : ACL_DONT_CACHE;
	inode->i_default_acl = inode->i_acl;
}

/* Puts an access ACL in the place of the one we had; its reference is taken. */
static void acl_keep(struct inode *inode, struct posix_acl *acl, u64 version)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	if (version >= pi->acl.version) {
		swap(pi->acl.access, acl);
		pi->acl.version = version;
	}
	spin_unlock(&pi->lock);
	posix_acl_release(acl);
}

/* pvfs_acl_inode_evict - the inode goes */
void pvfs_acl_inode_evict(struct inode *inode)
{
	acl_keep(inode, NULL, U64_MAX);
}

/* Asks the mgr. Return: a reference, NULL when there is none, or ERR_PTR. */
static struct posix_acl *acl_fetch(struct inode *inode, int type)
{
	struct posix_acl *acl;
	u64 version;
	void *value;
	int n;

	value = kmalloc(PVFS_ACL_BYTES_MAX, GFP_KERNEL);
	if (!value)
		return ERR_PTR(-ENOMEM);
	n = pvfs_meta_getxattr(inode, acl_name_of(type), value, PVFS_ACL_BYTES_MAX, &version);
	if (n < 0) {
		kfree(value);
		return n == -ENODATA ? NULL : ERR_PTR(n);
	}
	acl = posix_acl_from_xattr(&init_user_ns, value, n);
	kfree(value);
	if (IS_ERR_OR_NULL(acl) || posix_acl_valid(&init_user_ns, acl)) {
		if (PTR_ERR_OR_ZERO(acl) == -ENOMEM)
			return acl;
		if (!IS_ERR(acl))
			posix_acl_release(acl);
		return ERR_PTR(pvfs_bogus(PVFS_VOL(inode), "an ACL", PVFS_I(inode)->fid.ino));
	}
	if (type == ACL_TYPE_ACCESS)
		acl_keep(inode, posix_acl_dup(acl), version);
	return acl;
}

/**
 * pvfs_acl_for_check - the ACL that goes with the attributes we have
 * @inode: the inode
 * @type: ACL_TYPE_ACCESS or ACL_TYPE_DEFAULT
 * @rcu: called under RCU only, the ACL is borrowed and nothing may be asked: -ECHILD if that is
 *	needed
 *
 * Called by generic_permission().
 *
 * Return: a reference (@rcu: none), NULL when there is no ACL, or ERR_PTR.
 */
struct posix_acl *pvfs_acl_for_check(struct inode *inode, int type, bool rcu)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct posix_acl *acl = NULL;

	/* On every path walk: without a lock for nearly all inodes. */
	if (!(READ_ONCE(pi->attr.has) & acl_flag_of(type)))
		return NULL;
	spin_lock(&pi->lock);
	if (type == ACL_TYPE_ACCESS && pi->acl.version == pi->attr.acl_version)
		acl = rcu ? pi->acl.access : posix_acl_dup(pi->acl.access);
	spin_unlock(&pi->lock);
	if (acl)
		return acl;
	return rcu ? ERR_PTR(-ECHILD) : acl_fetch(inode, type);
}

/**
 * pvfs_get_acl - getxattr(2) of an ACL, on kernels that have it apart
 * @idmap: of the mount
 * @dentry: whose
 * @type: which ACL
 *
 * Return: a reference, NULL when there is no ACL, or ERR_PTR.
 */
struct posix_acl *pvfs_get_acl(struct pvfs_idmap *idmap, struct dentry *dentry, int type)
{
	struct inode *inode = d_inode(dentry);

	return pvfs_xattr_absent(inode, acl_flag_of(type)) ? NULL : acl_fetch(inode, type);
}

/**
 * pvfs_set_acl - set or (@acl is NULL) remove an ACL
 * @idmap: of the mount
 * @target: whose: the dentry, or before Linux 6.2 the inode
 * @acl: borrowed
 * @type: which ACL
 *
 * The mode follows at the mgr; the answer brings it.
 */
int pvfs_set_acl(struct pvfs_idmap *idmap, struct pvfs_acl_target *target, struct posix_acl *acl,
		 int type)
{
	struct inode *inode = pvfs_acl_target_inode(target);
	size_t size;
	void *value;
	int err;

	if (!acl)
		return pvfs_meta_removexattr(inode, acl_name_of(type));
	size = posix_acl_xattr_size(acl->a_count);
	value = kmalloc(size, GFP_KERNEL);
	if (!value)
		return -ENOMEM;
	err = posix_acl_to_xattr(&init_user_ns, acl, value, size);
	if (err >= 0)
		err = pvfs_meta_setxattr(inode, acl_name_of(type), value, size, 0);
	kfree(value);
	return err;
}

#ifndef pvfs_acl_set_mapped
/**
 * pvfs_acl_set_mapped - set an ACL that setxattr(2) gives through a mount that maps ids; up to
 * Linux 6.1
 * @idmap: of the mount
 * @inode: whose
 * @flag: PVFS_AF_ACL or PVFS_AF_DEFACL
 * @value: as a program gave it, but for its user name space
 * @size: bytes
 *
 * Return: 0 or -errno.
 */
int pvfs_acl_set_mapped(struct pvfs_idmap *idmap, struct inode *inode, u32 flag, const void *value,
			size_t size)
{
	struct posix_acl *acl = vfs_set_acl_prepare(idmap, i_user_ns(inode), value, size);
	int err;

	if (IS_ERR(acl))
		return PTR_ERR(acl);
	err = pvfs_set_acl(idmap, inode, acl,
			   flag == PVFS_AF_ACL ? ACL_TYPE_ACCESS : ACL_TYPE_DEFAULT);
	posix_acl_release(acl);
	return err;
}
#endif
