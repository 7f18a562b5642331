// SPDX-License-Identifier: GPL-2.0
/*
 * export.c - file handles: for NFS re-export and open_by_handle_at(2).
 *
 * A handle is the inode's number and generation, which are the manager's: it survives restarts of
 * servers and clients, and is stale when the inode is gone. With a parent, when the caller wants
 * one, it is twice that.
 */
#include <linux/exportfs.h>
#include "vfs.h"

/* Types of handles, ours; not those of fs/exportfs. */
#define FH_INODE 0x70
#define FH_WITH_PARENT 0x71
#define FH_WORDS 3

static void export_put_fid(u32 *fh, const struct inode *inode)
{
	const struct pvfs_fid *fid = &PVFS_I(inode)->fid;

	fh[0] = lower_32_bits(fid->ino);
	fh[1] = upper_32_bits(fid->ino);
	fh[2] = fid->gen;
}

static int pvfs_encode_fh(struct inode *inode, u32 *fh, int *max_len, struct inode *parent)
{
	int words = parent ? 2 * FH_WORDS : FH_WORDS, room = *max_len;

	*max_len = words;
	if (room < words)
		return FILEID_INVALID;
	export_put_fid(fh, inode);
	if (parent)
		export_put_fid(fh + FH_WORDS, parent);
	return parent ? FH_WITH_PARENT : FH_INODE;
}

static struct dentry *export_dentry_of(struct super_block *sb, const struct pvfs_fid *fid)
{
	struct pvfs_attr attr;
	struct inode *inode;
	int err;

	err = pvfs_meta_getattr_fid(sb->s_fs_info, fid, &attr);
	if (err)
		return ERR_PTR(err);
	inode = pvfs_iget(sb, &attr, NULL);
	/* Removed, and its last close has not reached the mgr. */
	if (!IS_ERR(inode) && S_ISREG(attr.mode) && !attr.nlink &&
	    !atomic_read(&PVFS_I(inode)->opens.live)) {
		iput(inode);
		return ERR_PTR(-ESTALE);
	}
	return d_obtain_alias(inode);
}

static struct dentry *export_from_words(struct super_block *sb, const u32 *fh)
{
	struct pvfs_fid fid = { .ino = (u64)fh[1] << 32 | fh[0], .gen = fh[2] };

	return export_dentry_of(sb, &fid);
}

static struct dentry *pvfs_fh_to_dentry(struct super_block *sb, struct fid *fid, int len, int type)
{
	if ((type != FH_INODE && type != FH_WITH_PARENT) || len < FH_WORDS)
		return NULL;
	return export_from_words(sb, fid->raw);
}

static struct dentry *pvfs_fh_to_parent(struct super_block *sb, struct fid *fid, int len, int type)
{
	if (type != FH_WITH_PARENT || len < 2 * FH_WORDS)
		return NULL;
	return export_from_words(sb, fid->raw + FH_WORDS);
}

/* The answer to every listing says which directory it is in. */
static struct dentry *pvfs_get_parent(struct dentry *child)
{
	struct page *page = alloc_page(GFP_KERNEL);
	struct pvfs_readdir_rep rep;
	struct bio_vec bv = { .bv_page = page, .bv_len = PAGE_SIZE };
	struct pvfs_ask ask;
	unsigned long token;
	u32 len;
	int err;

	if (!page)
		return ERR_PTR(-ENOMEM);
	/* From behind the last entry. */
	err = pvfs_meta_readdir(d_inode(child), S64_MAX, false, &bv, 1, PAGE_SIZE, &rep, &len,
				&ask, &token);
	__free_page(page);
	return err ? ERR_PTR(err) : export_dentry_of(child->d_sb, &rep.parent);
}

const struct export_operations pvfs_export_operations = {
	.encode_fh = pvfs_encode_fh,
	.fh_to_dentry = pvfs_fh_to_dentry,
	.fh_to_parent = pvfs_fh_to_parent,
	.get_parent = pvfs_get_parent,
};
