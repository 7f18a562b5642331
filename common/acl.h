/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * acl.h - POSIX access control lists: from and to the bytes of the attributes
 * system.posix_acl_access and system.posix_acl_default, and what they mean. Pure functions, no
 * state; user space only (the kernel has its own).
 *
 * The bytes are those of Linux's setxattr(2): a 32-bit 2, then entries of tag u16, permissions u16,
 * id u32.
 */
#ifndef PVFS_ACL_H
#define PVFS_ACL_H

#include "msg.h"

#define PVFS_ACL_ACCESS		"system.posix_acl_access"
#define PVFS_ACL_DEFAULT	"system.posix_acl_default"

/* Tags, in the order in which they must come. */
#define PVFS_ACL_USER_OBJ	0x01u
#define PVFS_ACL_USER		0x02u
#define PVFS_ACL_GROUP_OBJ	0x04u
#define PVFS_ACL_GROUP		0x08u
#define PVFS_ACL_MASK		0x10u
#define PVFS_ACL_OTHER		0x20u

/* What is asked for, as the bits of a mode: 4 read, 2 write, 1 execute or search. */
#define PVFS_MAY_EXEC		1u
#define PVFS_MAY_WRITE		2u
#define PVFS_MAY_READ		4u

struct pvfs_acl_entry {
	u16 tag;
	u16 perm;		/* 0 .. 7 */
	u32 id;			/* of USER and GROUP, else all ones */
};

struct pvfs_acl {
	u32 n;
	struct pvfs_acl_entry e[PVFS_ACL_MAX];
};

/**
 * pvfs_acl_decode - read a list and check that it is one
 * @a: filled; n is 0 for the bytes that mean "no list"
 * @buf: @len bytes from outside
 *
 * Return: 0; -EINVAL: no such list can be; -EOPNOTSUPP: another version; -E2BIG: too many entries.
 */
int pvfs_acl_decode(struct pvfs_acl *a, const void *buf, size_t len);

/**
 * pvfs_acl_encode - the bytes of a list, in their one form
 * @buf: room for PVFS_ACL_BYTES_MAX
 *
 * Return: how many there are.
 */
u32 pvfs_acl_encode(const struct pvfs_acl *a, void *buf);

/**
 * pvfs_acl_minimal - does the list say no more than a mode does?
 * @mode: its permission bits become the list's, in either case
 */
bool pvfs_acl_minimal(const struct pvfs_acl *a, u32 *mode);

/* pvfs_acl_chmod - the list's part in a change of the mode to @mode */
void pvfs_acl_chmod(struct pvfs_acl *a, u32 mode);

/**
 * pvfs_acl_inherit - make a directory's default list the access list of what is new in it
 * @a: the default list; becomes the access list
 * @mode: as the creator asked for it; becomes what the new inode has
 *
 * Return: is the list needed, or does @mode say it all?
 */
bool pvfs_acl_inherit(struct pvfs_acl *a, u32 *mode);

/* pvfs_cred_in_group - is @gid the credential's group or one of its supplementary ones? */
bool pvfs_cred_in_group(const struct pvfs_cred *cred, u32 gid);

/**
 * pvfs_acl_may - does the list grant @want?
 * @uid: owner of the inode, @gid: its group
 * @want: PVFS_MAY_*, all of which must be granted
 */
bool pvfs_acl_may(const struct pvfs_acl *a, const struct pvfs_cred *cred, u32 uid, u32 gid,
		  u32 want);

#endif
