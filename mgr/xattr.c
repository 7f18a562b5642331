// SPDX-License-Identifier: GPL-2.0
/*
 * xattr.c - extended attributes and ACLs as records: read, written, removed together with what the
 * inode says of them. No permissions here but what an ACL grants: those are op_xattr.c's.
 *
 * The inode counts its attributes' bytes, which bounds them, and has flags for those that others
 * ask about all the time; so an inode without any costs nobody a look at the table. Whoever calls
 * mgr_xattr_put() or mgr_xattr_del() writes the inode back in the same transaction.
 *
 * An ACL that says no more than the mode is not kept. One that is kept agrees with the mode: owner
 * and others are the mode's, the mask (or, with none, the group's entry) is the mode's group bits.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

/* bytes of one inode's values: what one transaction is able to remove */
#define TOTAL_MAX (1u << 20)

static u32 flag_of(const struct pvfs_str *name)
{
	if (ns_str_is(name, PVFS_ACL_ACCESS))
		return MGR_IF_ACL;
	if (ns_str_is(name, PVFS_ACL_DEFAULT))
		return MGR_IF_DEFACL;
	return ns_str_is(name, MGR_XATTR_CAPS) ? MGR_IF_CAPS : 0;
}

/* What the flags tell without a look. */
static bool surely_none(const struct mgr_inode *in, const struct pvfs_str *name)
{
	u32 flag = flag_of(name);

	return !in->xattr_names || (flag && !(in->flags & flag));
}

/**
 * mgr_xattr_read - the value of an attribute
 * @name: 1 .. PVFS_XATTR_NAME_MAX bytes
 * @room: @size bytes, for the value and the few that the record has before it
 * @ret: where the value is in @room
 *
 * Return: the value's length, -ENODATA, -EUCLEAN, or the database's error.
 */
int mgr_xattr_read(struct mgr_op *op, const struct mgr_inode *in, const struct pvfs_str *name,
		   void *room, u32 size, u8 **ret)
{
	const struct mgr_xattr_disk *d = room;
	u8 key[MGR_XATTR_KEY_MAX];
	int n;

	if (surely_none(in, name))
		return -ENODATA;
	n = mdb_get(op->m->db, op->txn, MDB_XATTR, key, mgr_xattr_key(key, in->ino, name), room,
		    size, 0);
	if (n < 0)
		return n == -ENOENT ? -ENODATA : n == -EMSGSIZE ? -EUCLEAN : n;
	if (n < (int)sizeof(*d) || d->format != MGR_XATTR_FORMAT)
		return -EUCLEAN;
	*ret = (u8 *)room + sizeof(*d);
	return n - sizeof(*d);
}

/* The length of a value that may be there: -ENODATA, or the length. */
static int value_len(struct mgr_op *op, const struct mgr_inode *in, const struct pvfs_str *name)
{
	u8 *room, *value;
	int n;

	if (surely_none(in, name))
		return -ENODATA;
	room = malloc(MGR_XATTR_MAX);
	if (!room)
		return -ENOMEM;
	n = mgr_xattr_read(op, in, name, room, MGR_XATTR_MAX, &value);
	free(room);
	return n;
}

static void acl_changed(struct mgr_inode *in)
{
	in->acl_version = mgr_version_after(max(in->acl_version, in->version));
}

/**
 * mgr_xattr_put - set an attribute, in op->txn
 * @in: read with MDB_RMW; its counts and flags are adjusted, the caller writes it
 * @value: @len bytes, at most PVFS_XATTR_VALUE_MAX
 * @flags: PVFS_XA_*
 *
 * Return: 0, -EEXIST, -ENODATA, -ENOSPC (an inode has no room for more), -ENOMEM, or the database's
 * error.
 */
int mgr_xattr_put(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_str *name,
		  const void *value, u32 len, u32 flags)
{
	int old = value_len(op, in, name), err;
	struct mgr_xattr_disk *d;
	u8 key[MGR_XATTR_KEY_MAX];
	u32 names, bytes;

	if (old < 0 && old != -ENODATA)
		return old;
	if (old >= 0 && (flags & PVFS_XA_CREATE))
		return -EEXIST;
	if (old < 0 && (flags & PVFS_XA_REPLACE))
		return -ENODATA;
	names = in->xattr_names + (old < 0 ? name->len + 1 : 0);
	bytes = in->xattr_bytes - (old < 0 ? 0 : old) + len;
	if (names > PVFS_XATTR_LIST_MAX || bytes > TOTAL_MAX)
		return -ENOSPC;
	d = malloc(sizeof(*d) + len);
	if (!d)
		return -ENOMEM;
	*d = (struct mgr_xattr_disk){ .format = MGR_XATTR_FORMAT };
	if (len)
		memcpy(d + 1, value, len);
	err = mdb_put(op->m->db, op->txn, MDB_XATTR, key, mgr_xattr_key(key, in->ino, name), d,
		      sizeof(*d) + len);
	free(d);
	if (err)
		return err;
	in->xattr_names = names;
	in->xattr_bytes = bytes;
	in->flags |= flag_of(name);
	if (flag_of(name) & (MGR_IF_ACL | MGR_IF_DEFACL))
		acl_changed(in);
	return 0;
}

/**
 * mgr_xattr_del - remove an attribute, in op->txn
 * @in: as for mgr_xattr_put()
 *
 * Return: 0, -ENODATA, -ENOMEM, or the database's error.
 */
int mgr_xattr_del(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_str *name)
{
	int old = value_len(op, in, name), err;
	u8 key[MGR_XATTR_KEY_MAX];

	if (old < 0)
		return old;
	err = mdb_del(op->m->db, op->txn, MDB_XATTR, key, mgr_xattr_key(key, in->ino, name));
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	in->xattr_names -= min(in->xattr_names, name->len + 1);
	in->xattr_bytes -= min(in->xattr_bytes, (u32)old);
	in->flags &= ~flag_of(name);
	if (flag_of(name) & (MGR_IF_ACL | MGR_IF_DEFACL))
		acl_changed(in);
	return 0;
}

/**
 * mgr_xattr_walk - the names of an inode's attributes
 * @fn: called with each; anything but 0 ends the walk
 *
 * Return: 0, what @fn returned, or the database's error.
 */
int mgr_xattr_walk(struct mgr_op *op, const struct mgr_inode *in,
		   int (*fn)(void *arg, const struct pvfs_str *name), void *arg)
{
	struct mdb_rec rec = { .val = NULL };
	struct mdb_cursor c;
	struct pvfs_str name;
	u8 key[MGR_INO_KEY];
	int err;

	if (!in->xattr_names)
		return 0;
	err = mdb_cursor_open(op->m->db, op->txn, MDB_XATTR, MDB_KEYS, &c);
	if (err)
		return err;
	mgr_ino_key(key, in->ino);
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		if (rec.klen <= MGR_INO_KEY || mgr_get_be64(rec.key) != in->ino)
			break;
		name.p = rec.key + MGR_INO_KEY;
		name.len = rec.klen - MGR_INO_KEY;
		err = fn(arg, &name);
		if (err)
			break;
	}
	mdb_cursor_close(&c);
	return err == -ENOENT ? 0 : err;
}

struct first {
	u8 bytes[PVFS_XATTR_NAME_MAX];
	struct pvfs_str name;
};

static int take_first(void *arg, const struct pvfs_str *name)
{
	struct first *f = arg;

	f->name.p = memcpy(f->bytes, name->p, min(name->len, PVFS_XATTR_NAME_MAX));
	f->name.len = name->len;
	return 1;
}

/**
 * mgr_xattr_del_all - the inode goes, and its attributes with it
 */
int mgr_xattr_del_all(struct mgr_op *op, const struct mgr_inode *in)
{
	u8 key[MGR_XATTR_KEY_MAX];
	struct first f = { .name = { .p = f.bytes } };
	int err;

	while ((err = mgr_xattr_walk(op, in, take_first, &f)) == 1) {
		err = mdb_del(op->m->db, op->txn, MDB_XATTR, key,
			      mgr_xattr_key(key, in->ino, &f.name));
		if (err)
			return err == -ENOENT ? -EUCLEAN : err;
	}
	return err;
}

/**
 * mgr_xattr_kill_caps - the file's bytes or its owner change: what it may do as a program is void
 */
int mgr_xattr_kill_caps(struct mgr_op *op, struct mgr_inode *in)
{
	if (!(in->flags & MGR_IF_CAPS))
		return 0;
	return mgr_xattr_del(op, in, &PVFS_STR(MGR_XATTR_CAPS));
}

/* ---- ACLs ---- */

/**
 * mgr_acl_read - an inode's ACL
 * @name: PVFS_ACL_ACCESS or PVFS_ACL_DEFAULT
 *
 * Return: 0, -ENODATA, -EUCLEAN, or the database's error.
 */
int mgr_acl_read(struct mgr_op *op, const struct mgr_inode *in, const char *name,
		 struct pvfs_acl *a)
{
	u8 room[sizeof(struct mgr_xattr_disk) + PVFS_ACL_BYTES_MAX], *value;
	int n = mgr_xattr_read(op, in, &PVFS_STR(name), room, sizeof(room), &value);

	if (n < 0)
		return n;
	return pvfs_acl_decode(a, value, n) || !a->n ? -EUCLEAN : 0;
}

static int acl_write(struct mgr_op *op, struct mgr_inode *in, const char *name,
		     const struct pvfs_acl *a)
{
	u8 bytes[PVFS_ACL_BYTES_MAX];

	return mgr_xattr_put(op, in, &PVFS_STR(name), bytes, pvfs_acl_encode(a, bytes), 0);
}

/**
 * mgr_acl_set - set an ACL or, with no entries, remove it; in op->txn
 * @in: as for mgr_xattr_put(); of an access ACL its mode follows
 */
int mgr_acl_set(struct mgr_op *op, struct mgr_inode *in, const char *name, const struct pvfs_acl *a)
{
	bool access = !strcmp(name, PVFS_ACL_ACCESS);
	int err;

	if (a->n && !(access && pvfs_acl_minimal(a, &in->mode)))
		return acl_write(op, in, name, a);
	err = mgr_xattr_del(op, in, &PVFS_STR(name));
	return err == -ENODATA ? 0 : err;
}

/**
 * mgr_acl_chmod - the mode of @in was changed: its access ACL follows
 */
int mgr_acl_chmod(struct mgr_op *op, struct mgr_inode *in)
{
	struct pvfs_acl a;
	int err;

	if (!(in->flags & MGR_IF_ACL))
		return 0;
	err = mgr_acl_read(op, in, PVFS_ACL_ACCESS, &a);
	if (err)
		return err == -ENODATA ? -EUCLEAN : err;
	pvfs_acl_chmod(&a, in->mode);
	return acl_write(op, in, PVFS_ACL_ACCESS, &a);
}

/**
 * mgr_acl_inherit - what a new inode gets from its directory: ACLs, or else the creator's mask
 * @in: the new inode, its mode as the creator asked for it; not yet written
 */
int mgr_acl_inherit(struct mgr_op *op, const struct mgr_inode *dir, struct mgr_inode *in, u32 umask)
{
	struct pvfs_acl a;
	int err;

	if (S_ISLNK(in->mode))
		return 0;
	if (!(dir->flags & MGR_IF_DEFACL)) {
		in->mode &= ~(umask & 0777);
		return 0;
	}
	err = mgr_acl_read(op, dir, PVFS_ACL_DEFAULT, &a);
	if (err)
		return err == -ENODATA ? -EUCLEAN : err;
	if (S_ISDIR(in->mode))
		err = acl_write(op, in, PVFS_ACL_DEFAULT, &a);
	if (!err && pvfs_acl_inherit(&a, &in->mode))
		err = acl_write(op, in, PVFS_ACL_ACCESS, &a);
	return err;
}

/* By the mode alone. */
static bool mode_may(const struct pvfs_cred *cred, const struct mgr_inode *in, u32 mask)
{
	u32 bits = in->mode;

	if (cred->uid == in->uid)
		bits >>= 6;
	else if (pvfs_cred_in_group(cred, in->gid))
		bits >>= 3;
	return !(mask & ~bits & 7);
}

/**
 * ns_may - permission check by mode and ACL
 * @mask: MGR_MAY_*, all of which must be granted
 *
 * Who was checked by its client may all. Uid 0 may read and write anything, and execute what is a
 * directory or has any execute bit. As on Linux an ACL whose mask grants nothing is not looked at:
 * who is named in it counts as one of the others then.
 *
 * Return: 0, -EACCES, -EUCLEAN, or the database's error.
 */
int ns_may(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *in, u32 mask)
{
	struct mgr_inode fresh;
	struct pvfs_acl a;
	unsigned int tries;
	int err;

	if (cred->flags & PVFS_CRED_CHECKED)
		return 0;
	if (!cred->uid) {
		if ((mask & MGR_MAY_EXEC) && !S_ISDIR(in->mode) && !(in->mode & 0111))
			return -EACCES;
		return 0;
	}
	for (tries = 0; tries < 10; tries++) {
		if (!(in->flags & MGR_IF_ACL) || cred->uid == in->uid || !(in->mode & 070))
			return mode_may(cred, in, mask) ? 0 : -EACCES;
		err = mgr_acl_read(op, in, PVFS_ACL_ACCESS, &a);
		if (!err)
			return pvfs_acl_may(&a, cred, in->uid, in->gid, mask) ? 0 : -EACCES;
		if (err != -ENODATA || op->txn)
			return err == -ENODATA ? -EUCLEAN : err;
		/*
		 * Without a transaction it can go between the two looks; what the mode says now
		 * comes with it.
		 */
		err = ns_inode_get(op, in->ino, 0, &fresh);
		if (err)
			return err;
		in = &fresh;
	}
	return -EAGAIN;
}
