// SPDX-License-Identifier: GPL-2.0
/*
 * xattr.c - the extended attribute pvfs.layout: how a file is striped, or a directory's new files will be.
 *
 *   $ getfattr -n pvfs.layout big
 *   pvfs.layout="base=0 pcount=4 ssize=65536"
 *   $ setfattr -n pvfs.layout -v "pcount=2 ssize=1048576" dir
 *
 * Settable on directories and on files that were never written; what is left out stays, base=any lets the mgr choose,
 * pcount=0 is all iods, ssize=0 the default.
 */
#include <linux/slab.h>
#include <linux/xattr.h>
#include "vfs.h"

#define PREFIX "pvfs."
#define LAYOUT "layout"
#define BASE_ANY 0xffff		/* in a directory's layout: the mgr chooses */
#define TEXT_MAX 64

static bool has_layout(struct inode *inode)
{
	return S_ISREG(inode->i_mode) || S_ISDIR(inode->i_mode);
}

static void layout_get(struct inode *inode, struct pvfs_layout *l)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	*l = pi->layout;
	spin_unlock(&pi->lock);
}

static int pvfs_xattr_get(const struct xattr_handler *handler, struct dentry *dentry, struct inode *inode,
			  const char *name, void *buffer, size_t size)
{
	struct pvfs_layout l;
	char text[TEXT_MAX];
	int n, err;

	if (strcmp(name, LAYOUT) || !has_layout(inode))
		return -ENODATA;
	err = pvfs_revalidate(inode);
	if (err)
		return err;
	layout_get(inode, &l);
	if (l.base == BASE_ANY)
		n = snprintf(text, sizeof(text), "base=any pcount=%u ssize=%u", l.pcount, l.ssize);
	else
		n = snprintf(text, sizeof(text), "base=%u pcount=%u ssize=%u", l.base, l.pcount, l.ssize);
	if (!size)
		return n;
	if (n > size)
		return -ERANGE;
	memcpy(buffer, text, n);
	return n;
}

/* One "key=value". */
static int parse_word(struct pvfs_layout *l, const char *word)
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
	return -EINVAL;
}

static int pvfs_xattr_set(const struct xattr_handler *handler, struct pvfs_idmap *idmap, struct dentry *dentry,
			  struct inode *inode, const char *name, const void *value, size_t size, int flags)
{
	struct pvfs_layout l, check;
	char text[TEXT_MAX], *rest = text, *word;

	if (strcmp(name, LAYOUT) || !has_layout(inode))
		return -EOPNOTSUPP;
	if (flags & XATTR_CREATE)
		return -EEXIST;
	if (!value)		/* removal */
		return -EPERM;
	if (size >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, size);
	text[size] = 0;
	layout_get(inode, &l);
	while ((word = strsep(&rest, "\n ")))
		if (*word && parse_word(&l, word))
			return -EINVAL;
	l.pcount = l.pcount ?: PVFS_VOL(inode)->niods;
	l.ssize = l.ssize ?: PVFS_SSIZE_DEFAULT;
	check = l;
	if (check.base == BASE_ANY)
		check.base = 0;
	if (!pvfs_layout_valid(&check, PVFS_VOL(inode)->niods))
		return -EINVAL;
	return pvfs_meta_setlayout(inode, &l);
}

static const struct xattr_handler pvfs_xattr_handler = {
	.prefix = PREFIX,
	.get = pvfs_xattr_get,
	.set = pvfs_xattr_set,
};

const struct xattr_handler *pvfs_xattr_handlers[] = {
	&pvfs_xattr_handler,
	NULL
};

ssize_t pvfs_listxattr(struct dentry *dentry, char *list, size_t size)
{
	static const char names[] = PREFIX LAYOUT;

	if (!has_layout(d_inode(dentry)))
		return 0;
	if (!size)
		return sizeof(names);
	if (size < sizeof(names))
		return -ERANGE;
	memcpy(list, names, sizeof(names));
	return sizeof(names);
}
