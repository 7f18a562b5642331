// SPDX-License-Identifier: GPL-2.0
/*
 * xattr.c - extended attributes.
 *
 * user.*, trusted.*, security.* and the two of ACLs are the mgr's, which also checks who may do
 * what; attributes that are fresh and say that there are none save the question. pvfs.layout is
 * ours: how a file is striped, or a directory's new files will be.
 *
 *   $ getfattr -n pvfs.layout big
 *   pvfs.layout="base=0 pcount=4 ssize=65536"
 *   $ setfattr -n pvfs.layout -v "pcount=2 ssize=1048576" dir
 *
 * Settable on directories and on files that were never written; what is left out stays, base=any
 * lets the mgr choose, pcount=0 is all iods, ssize=0 the default.
 */
#include <linux/compat.h>
#include <linux/slab.h>
#include <linux/xattr.h>
#include <asm/unistd.h>
#include "vfs.h"

#define PREFIX "pvfs."
#define LAYOUT "layout"
#define BASE_ANY 0xffff		/* in a directory's layout: the mgr chooses */
#define TEXT_MAX 96

static bool xattr_has_layout(struct inode *inode)
{
	return S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode);
}

static void xattr_layout_get(struct inode *inode, struct pvfs_layout *l)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	*l = pi->layout;
	spin_unlock(&pi->lock);
}

static int xattr_layout_xattr_get(const struct xattr_handler *handler, struct dentry *dentry,
				  struct inode *inode, const char *name, void *buffer, size_t size)
{
	struct pvfs_layout l;
	char text[TEXT_MAX];
	int n, err;

	if (strcmp(name, LAYOUT) || !xattr_has_layout(inode))
		return -ENODATA;
	err = pvfs_revalidate(inode);
	if (err)
		return err;
	xattr_layout_get(inode, &l);
	if (l.base == BASE_ANY)
		n = snprintf(text, sizeof(text), "base=any");
	else
		n = snprintf(text, sizeof(text), "base=%u", l.base);
	n += snprintf(text + n, sizeof(text) - n, " pcount=%u ssize=%u stuff_max=%u", l.pcount,
		      l.ssize, l.stuff_max);
	if (!size)
		return n;
	if (n > size)
		return -ERANGE;
	memcpy(buffer, text, n);
	return n;
}

/* One "key=value". */
static int xattr_parse_word(struct pvfs_layout *l, const char *word)
{
	if (!strcmp(word, "base=any")) {
		l->base = BASE_ANY;
		return 0;
	}
	if (!strncmp(word, "base=", 5))
		return kstrtou16(word + 5, 0, &l->base);
	if (!strncmp(word, "pcount=", 7))
		return kstrtou16(word + 7, 0, &l->pcount);
	if (!strncmp(word, "ssize=", 6))
		return kstrtou32(word + 6, 0, &l->ssize);
	if (!strncmp(word, "stuff_max=", 10))
		return kstrtou32(word + 10, 0, &l->stuff_max);
	return -EINVAL;
}

static int xattr_layout_xattr_set(const struct xattr_handler *handler, struct pvfs_idmap *idmap,
				  struct dentry *dentry, struct inode *inode, const char *name,
				  const void *value, size_t size, int flags)
{
	struct pvfs_layout l, check;
	char text[TEXT_MAX], *rest = text, *word;

	if (strcmp(name, LAYOUT) || !xattr_has_layout(inode))
		return -EOPNOTSUPP;
	if (flags & XATTR_CREATE)
		return -EEXIST;
	if (!value)		/* removal */
		return -EPERM;
	if (size >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, size);
	text[size] = 0;
	xattr_layout_get(inode, &l);
	while ((word = strsep(&rest, "\n ")))
		if (*word && xattr_parse_word(&l, word))
			return -EINVAL;
	l.pcount = l.pcount ?: PVFS_VOL(inode)->niods;
	l.ssize = l.ssize ?: PVFS_SSIZE_DEFAULT;
	check = l;
	if (check.base == BASE_ANY)
		check.base = 0;
	if (!pvfs_layout_valid(&check, PVFS_VOL(inode)->niods))
		return -EINVAL;
	if (pvfs_checked_here(PVFS_VOL(inode), idmap) && !inode_owner_or_capable(idmap, inode))
		return -EPERM;
	return pvfs_meta_setlayout(inode, &l);
}

/* ---------------------------------------------------------------- those that the mgr keeps */

/**
 * pvfs_xattr_absent - do attributes that are fresh enough say that there is none?
 * @inode: the inode
 * @flag: PVFS_AF_XATTR for any, or the flag of the one in question
 *
 * Takes the leave that a LOOKUP left, see pvfs_fresh_leave().
 */
bool pvfs_xattr_absent(struct inode *inode, u32 flag)
{
	return (pvfs_fresh_take(inode) || pvfs_attr_trusted(inode) || pvfs_attrs_leased(inode)) &&
	       !(READ_ONCE(PVFS_I(inode)->attr.has) & flag);
}

static u32 xattr_flag_of(const char *name)
{
	if (!strcmp(name, XATTR_NAME_CAPS))
		return PVFS_AF_CAPS;
	if (!strcmp(name, XATTR_NAME_POSIX_ACL_ACCESS))
		return PVFS_AF_ACL;
	return strcmp(name, XATTR_NAME_POSIX_ACL_DEFAULT) ? PVFS_AF_XATTR : PVFS_AF_DEFACL;
}

/*
 * Does a program want to know? Else it is the kernel that looks for security.capability: before it
 * runs a program, whose open has just brought the attributes; or before a write, truncation or
 * chown, which take it away at the mgr.
 */
static bool xattr_program_asks(void)
{
	int nr = pvfs_syscall_nr();

	return nr < 0 || in_compat_syscall() || nr == __NR_getxattr || nr == __NR_lgetxattr ||
	       nr == __NR_fgetxattr || nr == __NR_io_uring_enter;
}

static int pvfs_xattr_get(const struct xattr_handler *handler, struct dentry *dentry,
			  struct inode *inode, const char *name, void *buffer, size_t size)
{
	const char *full = xattr_full_name(handler, name);
	u32 flag = xattr_flag_of(full);

	/* Up to Linux 6.1 ACLs come here, and nobody has looked at what they are asked of. */
	if ((flag & (PVFS_AF_ACL | PVFS_AF_DEFACL)) && S_ISLNK(inode->i_mode))
		return -EOPNOTSUPP;
	if (flag == PVFS_AF_CAPS && !(READ_ONCE(PVFS_I(inode)->attr.has) & flag) &&
	    !xattr_program_asks())
		return -ENODATA;
	if (pvfs_xattr_absent(inode, flag))
		return -ENODATA;
	return pvfs_meta_getxattr(inode, full, buffer, size, NULL);
}

static int pvfs_xattr_set(const struct xattr_handler *handler, struct pvfs_idmap *idmap,
			  struct dentry *dentry, struct inode *inode, const char *name,
			  const void *value, size_t size, int flags)
{
	const char *full = xattr_full_name(handler, name);

	/*
	 * Up to Linux 6.1 ACLs come here; for the others the VFS has checked what there is to
	 * check.
	 */
	if ((xattr_flag_of(full) & (PVFS_AF_ACL | PVFS_AF_DEFACL)) &&
	    pvfs_checked_here(PVFS_VOL(inode), idmap)) {
		if (!inode_owner_or_capable(idmap, inode))
			return -EPERM;
		if (value && idmap != PVFS_NOP_IDMAP)
			return pvfs_acl_set_mapped(idmap, inode, xattr_flag_of(full), value, size);
	}
	if (!value)
		return pvfs_meta_removexattr(inode, full);
	return pvfs_meta_setxattr(inode, full, value, size, flags);
}

#define HANDLER(id, how, what) \
static const struct xattr_handler id##_handler = { \
	.how = what, \
	.get = pvfs_xattr_get, \
	.set = pvfs_xattr_set, \
}
HANDLER(user, prefix, XATTR_USER_PREFIX);
HANDLER(trusted, prefix, XATTR_TRUSTED_PREFIX);
HANDLER(security, prefix, XATTR_SECURITY_PREFIX);
HANDLER(access, name, XATTR_NAME_POSIX_ACL_ACCESS);
HANDLER(default, name, XATTR_NAME_POSIX_ACL_DEFAULT);

static const struct xattr_handler layout_handler = {
	.prefix = PREFIX,
	.get = xattr_layout_xattr_get,
	.set = xattr_layout_xattr_set,
};

const struct xattr_handler *pvfs_xattr_handlers[] = {
	&user_handler,
	&trusted_handler,
	&security_handler,
	&access_handler,
	&default_handler,
	&layout_handler,
	NULL
};

/**
 * pvfs_listxattr - listxattr(2): the names that the mgr has for who asks
 * @dentry: whose
 * @list: room for them, a NUL behind each
 * @size: bytes of @list; 0: only the size is wanted
 *
 * Our own pvfs.layout is not listed: who copies all attributes of a file, or makes those of a copy
 * the same, must not stumble over it.
 */
ssize_t pvfs_listxattr(struct dentry *dentry, char *list, size_t size)
{
	struct inode *inode = d_inode(dentry);

	return pvfs_xattr_absent(inode, PVFS_AF_XATTR) ? 0 : pvfs_meta_listxattr(inode, list, size);
}
