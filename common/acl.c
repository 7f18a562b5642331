// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * acl.c - POSIX access control lists; see acl.h. The rules are those of POSIX 1003.1e draft 17,
 * section 23, as Linux has them.
 */
#include "acl.h"

#define VERSION 2u
#define NO_ID 0xffffffffu

/* What has to come next while a list is read. */
enum expect { WANT_USER_OBJ, WANT_USER, WANT_GROUP, WANT_OTHER, WANT_END };

static int check_order(const struct pvfs_acl *a)
{
	enum expect state = WANT_USER_OBJ;
	bool named = false;
	u32 i;

	for (i = 0; i < a->n; i++) {
		const struct pvfs_acl_entry *e = &a->e[i];

		switch (e->tag) {
		case PVFS_ACL_USER_OBJ:
			if (state != WANT_USER_OBJ)
				return -EINVAL;
			state = WANT_USER;
			break;
		case PVFS_ACL_USER:
			if (state != WANT_USER || e->id == NO_ID)
				return -EINVAL;
			named = true;
			break;
		case PVFS_ACL_GROUP_OBJ:
			if (state != WANT_USER)
				return -EINVAL;
			state = WANT_GROUP;
			break;
		case PVFS_ACL_GROUP:
			if (state != WANT_GROUP || e->id == NO_ID)
				return -EINVAL;
			named = true;
			break;
		case PVFS_ACL_MASK:
			if (state != WANT_GROUP)
				return -EINVAL;
			state = WANT_OTHER;
			break;
		case PVFS_ACL_OTHER:
			/* Named entries need a mask. */
			if (state != WANT_OTHER && (state != WANT_GROUP || named))
				return -EINVAL;
			state = WANT_END;
			break;
		default:
			return -EINVAL;
		}
	}
	return state == WANT_END ? 0 : -EINVAL;
}

int pvfs_acl_decode(struct pvfs_acl *a, const void *buf, size_t len)
{
	const u8 *p = buf;
	u32 i;

	a->n = 0;
	if (len < 4 || (len - 4) % 8)
		return -EINVAL;
	if (get_unaligned_le32(p) != VERSION)
		return -EOPNOTSUPP;
	if ((len - 4) / 8 > PVFS_ACL_MAX)
		return -E2BIG;
	if (len == 4)
		return 0;
	a->n = (len - 4) / 8;
	for (i = 0, p += 4; i < a->n; i++, p += 8) {
		struct pvfs_acl_entry *e = &a->e[i];

		e->tag = get_unaligned_le16(p);
		e->perm = get_unaligned_le16(p + 2);
		e->id = get_unaligned_le32(p + 4);
		if (e->perm & ~7u)
			return -EINVAL;
		if (e->tag != PVFS_ACL_USER && e->tag != PVFS_ACL_GROUP)
			e->id = NO_ID;
	}
	return check_order(a);
}

u32 pvfs_acl_encode(const struct pvfs_acl *a, void *buf)
{
	u8 *p = buf;
	u32 i;

	put_unaligned_le32(VERSION, p);
	for (i = 0, p += 4; i < a->n; i++, p += 8) {
		put_unaligned_le16(a->e[i].tag, p);
		put_unaligned_le16(a->e[i].perm, p + 2);
		put_unaligned_le32(a->e[i].id, p + 4);
	}
	return 4 + 8 * a->n;
}

static struct pvfs_acl_entry *find(struct pvfs_acl *a, u16 tag)
{
	u32 i;

	for (i = 0; i < a->n; i++)
		if (a->e[i].tag == tag)
			return &a->e[i];
	return NULL;
}

/* The entry that a mode's group bits stand for. */
static struct pvfs_acl_entry *group_class(struct pvfs_acl *a)
{
	return find(a, PVFS_ACL_MASK) ?: find(a, PVFS_ACL_GROUP_OBJ);
}

bool pvfs_acl_minimal(const struct pvfs_acl *a, u32 *mode)
{
	struct pvfs_acl *l = (struct pvfs_acl *)a;	/* only looked at */

	*mode = (*mode & ~0777u) | find(l, PVFS_ACL_USER_OBJ)->perm << 6 |
		group_class(l)->perm << 3 | find(l, PVFS_ACL_OTHER)->perm;
	return a->n == 3;
}

void pvfs_acl_chmod(struct pvfs_acl *a, u32 mode)
{
	find(a, PVFS_ACL_USER_OBJ)->perm = mode >> 6 & 7;
	group_class(a)->perm = mode >> 3 & 7;
	find(a, PVFS_ACL_OTHER)->perm = mode & 7;
}

bool pvfs_acl_inherit(struct pvfs_acl *a, u32 *mode)
{
	find(a, PVFS_ACL_USER_OBJ)->perm &= *mode >> 6 & 7;
	group_class(a)->perm &= *mode >> 3 & 7;
	find(a, PVFS_ACL_OTHER)->perm &= *mode & 7;
	return !pvfs_acl_minimal(a, mode);
}

bool pvfs_cred_in_group(const struct pvfs_cred *cred, u32 gid)
{
	u32 i, n = pvfs_cred_ngroups(cred);

	if (cred->gid == gid)
		return true;
	for (i = 0; i < n; i++)
		if (pvfs_cred_group(cred, i) == gid)
			return true;
	return false;
}

bool pvfs_acl_may(const struct pvfs_acl *a, const struct pvfs_cred *cred, u32 uid, u32 gid,
		  u32 want)
{
	const struct pvfs_acl_entry *mask = find((struct pvfs_acl *)a, PVFS_ACL_MASK);
	u32 limit = mask ? mask->perm : 7;
	bool in_class = false;
	u32 i;

	for (i = 0; i < a->n; i++) {
		const struct pvfs_acl_entry *e = &a->e[i];

		switch (e->tag) {
		case PVFS_ACL_USER_OBJ:
			if (cred->uid == uid)
				return !(want & ~e->perm);
			break;
		case PVFS_ACL_USER:
			if (cred->uid == e->id)
				return !(want & ~(e->perm & limit));
			break;
		case PVFS_ACL_GROUP_OBJ:
		case PVFS_ACL_GROUP:
			if (!pvfs_cred_in_group(cred, e->tag == PVFS_ACL_GROUP ? e->id : gid))
				break;
			/* One entry has to grant it all; each that matches keeps OTHER out. */
			if (!(want & ~e->perm))
				return !(want & ~limit);
			in_class = true;
			break;
		case PVFS_ACL_OTHER:
			return !in_class && !(want & ~e->perm);
		}
	}
	return false;
}
