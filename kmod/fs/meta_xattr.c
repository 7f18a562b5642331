// SPDX-License-Identifier: GPL-2.0
/*
 * meta_xattr.c - the operations of the manager on extended attributes.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include "meta.h"

META_DATA(GETXATTR, getxattr)
META_DATA(SETXATTR, setxattr)
META_DATA(LISTXATTR, listxattr)
META(REMOVEXATTR, removexattr)

/*
 * Memory for a value or a list on its way. The caller's own could be anywhere, the stack or a
 * module's constants, where its pages can't be had.
 */
struct bounce {
	void *mem;
	struct bio_vec bv[PVFS_XATTR_VALUE_MAX / PAGE_SIZE + 1];
	struct payload p;
};

static int meta_bounce_init(struct bounce *b, u32 size, bool write)
{
	u32 done, n;

	b->p = (struct payload){ .bv = b->bv, .len = size, .write = write };
	b->mem = NULL;
	if (!size)
		return 0;
	b->mem = kvmalloc(size, GFP_KERNEL);
	if (!b->mem)
		return -ENOMEM;
	if (!is_vmalloc_addr(b->mem)) {
		b->bv[b->p.nbv++] = (struct bio_vec){
			.bv_page = virt_to_page(b->mem),
			.bv_len = size,
			.bv_offset = offset_in_page(b->mem),
		};
		return 0;
	}
	for (done = 0; done < size; done += n) {
		n = min_t(u32, size - done, PAGE_SIZE);
		b->bv[b->p.nbv++] = (struct bio_vec){ .bv_page = vmalloc_to_page(b->mem + done),
						      .bv_len = n };
	}
	return 0;
}

/*
 * What came, @size bytes as the answer says, to the caller, who has @room (0: wants only the size).
 */
static int meta_bounce_take(struct bounce *b, struct inode *inode, void *to, u32 size, u32 room)
{
	if (size > PVFS_XATTR_VALUE_MAX || (room && (size > room || b->p.got != size)))
		return pvfs_bogus(PVFS_VOL(inode), "an extended attribute's size",
				  PVFS_I(inode)->fid.ino);
	if (room)
		memcpy(to, b->mem, size);
	return size;
}

static void meta_bounce_fini(struct bounce *b)
{
	kvfree(b->mem);
}

/**
 * pvfs_meta_getxattr - read an extended attribute
 * @inode: the inode
 * @name: with its prefix
 * @value: room for it
 * @size: bytes of @value; 0: only its size is wanted
 * @acl_version: of the inode, when the value was read; may be NULL
 *
 * Return: bytes of the value, or -errno: -ENODATA, -ERANGE, and as all here.
 */
int pvfs_meta_getxattr(struct inode *inode, const char *name, void *value, size_t size,
		       u64 *acl_version)
{
	struct pvfs_getxattr_req m = {
		.fid = fid_of(inode),
		.name = PVFS_STR(name),
		.size = min_t(size_t, size, PVFS_XATTR_VALUE_MAX),
	};
	struct pvfs_getxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_bounce_init(&b, m.size, false);
	if (!err)
		err = data_getxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
	pvfs_who_put(&w);
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err && acl_version)
		*acl_version = r.acl_version;
	if (!err)
		err = meta_bounce_take(&b, inode, value, r.size, m.size);
	meta_bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_setxattr - set an extended attribute
 * @inode: the inode
 * @name: with its prefix
 * @value: what to
 * @size: bytes of it
 * @flags: XATTR_CREATE, XATTR_REPLACE, which are the protocol's 1 and 2
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setxattr(struct inode *inode, const char *name, const void *value, size_t size,
		       int flags)
{
	struct pvfs_setxattr_req m = { .fid = fid_of(inode),
				       .name = PVFS_STR(name),
				       .flags = flags };
	struct pvfs_setxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	if (size > PVFS_XATTR_VALUE_MAX)
		return -E2BIG;
	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_bounce_init(&b, size, true);
	if (!err) {
		if (size)
			memcpy(b.mem, value, size);
		pvfs_own_begin(inode);
		err = data_setxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
		err = pvfs_own_changed(inode, err, &r.attr);
	}
	pvfs_who_put(&w);
	meta_bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_listxattr - names of the extended attributes that the mgr keeps
 * @inode: the inode
 * @list: room for them, a NUL behind each
 * @size: bytes of @list; 0: only the size is wanted
 *
 * Return: bytes of the list, or -errno: -ERANGE, and as all here.
 */
int pvfs_meta_listxattr(struct inode *inode, char *list, size_t size)
{
	struct pvfs_listxattr_req m = { .fid = fid_of(inode),
					.size = min_t(size_t, size, PVFS_XATTR_LIST_MAX) };
	struct pvfs_listxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	BUILD_BUG_ON(PVFS_XATTR_LIST_MAX > PVFS_XATTR_VALUE_MAX);
	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	/* Whom trusted.* is shown to is not a matter of the inode. */
	if ((m.cred.flags & PVFS_CRED_CHECKED) && !capable(CAP_SYS_ADMIN)) {
		m.cred.flags = 0;
		m.cred.uid = from_kuid_munged(&init_user_ns, INVALID_UID);
	}
	err = meta_bounce_init(&b, m.size, false);
	if (!err)
		err = data_listxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
	pvfs_who_put(&w);
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err)
		err = meta_bounce_take(&b, inode, list, r.size, m.size);
	/* Whoever walks over the names stops at their ends. */
	if (err > 0 && m.size && list[err - 1])
		err = pvfs_bogus(PVFS_VOL(inode), "a list of names without an end",
				 PVFS_I(inode)->fid.ino);
	meta_bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_removexattr - remove an extended attribute
 * @inode: the inode
 * @name: with its prefix
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_removexattr(struct inode *inode, const char *name)
{
	struct pvfs_removexattr_req m = { .fid = fid_of(inode), .name = PVFS_STR(name) };
	struct pvfs_removexattr_rep r;
	struct who w;
	int err;

	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	pvfs_own_begin(inode);
	err = meta_removexattr(PVFS_VOL(inode), room(&w), &m, &r);
	pvfs_who_put(&w);
	return pvfs_own_changed(inode, err, &r.attr);
}
