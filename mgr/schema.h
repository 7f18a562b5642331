/* SPDX-License-Identifier: GPL-2.0 */
/*
 * schema.h - what the tables of mdb.h hold: keys and records, in memory and on disk.
 *
 * Keys are big-endian, so that their byte order is their numeric order. Records are packed
 * little-endian structures that begin with their format number; a record that has another format, a
 * wrong length or impossible values is reported as -EUCLEAN by the decoders and becomes EIO for the
 * client. No I/O here.
 */
#ifndef PVFS_MGR_SCHEMA_H
#define PVFS_MGR_SCHEMA_H

#include "../common/msg.h"

/* inode flags, on disk too */
#define MGR_IF_UNCERTAIN	0x1u	/* was opened for writing: the iods know better */
#define MGR_IF_TRIM		0x2u	/* a truncation goes on; there is a trim record */
#define MGR_IF_REAP		0x4u	/* in the reap queue: gone for clients */
#define MGR_IF_ORPHAN		0x8u	/* no name, but open by a session: has orphan records */
#define MGR_IF_ACL		0x10u	/* has an access ACL */
#define MGR_IF_DEFACL		0x20u	/* has a default ACL */
#define MGR_IF_CAPS		0x40u	/* has security.capability */
#define MGR_IF_LINKABLE		0x80u	/* made without a name, and may be given one */
#define MGR_IF_SPARSE		0x100u	/* takes other space than its size says: blocks */
#define MGR_IF_STUFFED		0x200u	/* its bytes are its head, in our table */
#define MGR_IF_SPILL		0x400u	/* STUFFED, being unstuffed: the head stays as it is */
#define MGR_IF_BEHIND		0x800u	/* STUFFED, and a session may have bytes of it that we don't */
#define MGR_IF_ALL		0xfffu

#define MGR_BASE_ANY		0xffffu	/* of directories: each new file starts on the next iod */

#define MGR_COOKIE_MIN		3ull	/* 1 and 2 are "." and ".." at the client */

/* An inode in memory. */
struct mgr_inode {
	u64 ino;
	u32 gen;
	u32 flags;		/* MGR_IF_* */
	u32 mode, nlink, uid, gid;
	u32 trunc_gen;
	u64 rdev, size, version;
	u64 blocks;		/* with SPARSE: 512-byte units that its datafiles take */
	u64 entries;		/* of a directory */
	struct pvfs_ts atime, mtime, ctime, btime;
	struct pvfs_ts wtime;	/* latest write time, by an iod's clock, that mtime accounts for */
	struct pvfs_layout layout;
	struct pvfs_fid parent;	/* of a directory */
	u64 acl_version;	/* changes with its ACLs, see pvfs_attr */
	u32 xattr_names;	/* bytes that the list of its extended attributes has */
	u32 xattr_bytes;	/* bytes of their values */
};

/* A directory entry in memory. @name borrows the record it was decoded from. */
struct mgr_dirent {
	u64 dir, cookie;
	u64 ino;
	u32 gen;
	u8 type;		/* mode >> 12 */
	struct pvfs_str name;
};

/* The volume, in the table "meta" under "super". */
struct mgr_super {
	u8 uuid[PVFS_UUID_LEN];
	u8 hash_key[16];	/* secret key of the cookies' hash */
	u32 niods;
};

struct mgr_session_rec {
	u8 client[PVFS_UUID_LEN];
	u64 opened;		/* seconds since the epoch */
	bool evicted;		/* is no session any more, but an iod does not know that: evict.c */
	bool fenced;		/* and what it held is others' */
	bool leases;		/* it may be given leases */
	char host[PVFS_HOST_MAX + 1];
};

struct mgr_trim_rec {
	u32 gen, trunc_gen;
	u64 size;
};

/* A file that has, or had, a head. The first four are its name, which is never used again. */
struct mgr_headfile {
	u64 ino;
	u32 gen;
	u64 epoch;		/* of the process that made it */
	u64 nr;			/* counts its files */
	u32 len, crc;		/* of its bytes */
};

/* ---- on disk ---- */

struct mgr_ts_disk {
	__le64 sec;
	__le32 nsec;
} __attribute__((packed));

struct mgr_inode_disk {
	u8 format;		/* MGR_INODE_FORMAT */
	u8 zero[3];
	__le32 flags;
	__le32 gen;
	__le32 mode;
	__le32 nlink;
	__le32 uid;
	__le32 gid;
	__le32 trunc_gen;
	__le64 rdev;
	__le64 size;
	__le64 version;
	__le64 entries;
	struct mgr_ts_disk atime, mtime, ctime, btime, wtime;
	__le16 base;
	__le16 pcount;
	__le32 ssize;
	__le64 parent_ino;
	__le32 parent_gen;
	__le64 acl_version;
	__le32 xattr_names;
	__le32 xattr_bytes;
	__le64 blocks;
	__le32 stuff_max;
} __attribute__((packed));
#define MGR_INODE_FORMAT 2
_Static_assert(sizeof(struct mgr_inode_disk) == 172, "inode record");

struct mgr_dirent_disk {	/* the name follows */
	u8 format;		/* MGR_DIRENT_FORMAT */
	u8 type;
	u8 namelen;
	u8 zero;
	__le32 gen;
	__le64 ino;
} __attribute__((packed));
#define MGR_DIRENT_FORMAT 1
#define MGR_DIRENT_MAX (sizeof(struct mgr_dirent_disk) + PVFS_NAME_MAX)
_Static_assert(sizeof(struct mgr_dirent_disk) == 16, "entry record");
_Static_assert(PVFS_NAME_MAX <= 255, "namelen is one byte");

struct mgr_slot_disk {		/* the reply's body follows */
	u8 format;		/* MGR_SLOT_FORMAT */
	u8 zero;
	__le16 op;
	__le32 seq;
} __attribute__((packed));
#define MGR_SLOT_FORMAT 1
_Static_assert(sizeof(struct mgr_slot_disk) == 8, "slot record");

struct mgr_session_disk {	/* the host's name follows */
	u8 format;		/* MGR_SESSION_FORMAT */
	u8 flags;		/* MGR_SESSION_EVICTED, _LEASES, _FENCED */
	__le16 hostlen;
	u8 client[PVFS_UUID_LEN];
	__le64 opened;
} __attribute__((packed));
#define MGR_SESSION_FORMAT 1
#define MGR_SESSION_EVICTED 1u
#define MGR_SESSION_LEASES 2u
#define MGR_SESSION_FENCED 4u
#define MGR_SESSION_MAX (sizeof(struct mgr_session_disk) + PVFS_HOST_MAX)
_Static_assert(sizeof(struct mgr_session_disk) == 28, "session record");

struct mgr_trim_disk {
	u8 format;		/* MGR_TRIM_FORMAT */
	u8 zero[3];
	__le32 gen;
	__le32 trunc_gen;
	__le64 size;
} __attribute__((packed));
#define MGR_TRIM_FORMAT 1
_Static_assert(sizeof(struct mgr_trim_disk) == 20, "trim record");

struct mgr_mark_disk {		/* reap and orphan records: the key says all */
	u8 format;		/* MGR_MARK_FORMAT */
	u8 zero[3];
	__le32 gen;
} __attribute__((packed));
#define MGR_MARK_FORMAT 1
_Static_assert(sizeof(struct mgr_mark_disk) == 8, "mark record");

struct mgr_xattr_disk {		/* the value follows; the name is in the key */
	u8 format;		/* MGR_XATTR_FORMAT */
	u8 zero[3];
} __attribute__((packed));
#define MGR_XATTR_FORMAT 1
#define MGR_XATTR_MAX (sizeof(struct mgr_xattr_disk) + PVFS_XATTR_VALUE_MAX)
_Static_assert(sizeof(struct mgr_xattr_disk) == 4, "extended attribute record");

struct mgr_head_disk {		/* the bytes of the file follow */
	u8 format;		/* MGR_HEAD_FORMAT */
	u8 zero[3];
	__le32 crc;		/* crc32c of them */
} __attribute__((packed));
#define MGR_HEAD_FORMAT 1
#define MGR_HEAD_MAX (sizeof(struct mgr_head_disk) + PVFS_STUFF_MAX)
_Static_assert(sizeof(struct mgr_head_disk) == 8, "head record");

struct mgr_headfile_disk {	/* a head whose bytes are in a file of ours: headfile.c */
	u8 format;		/* MGR_HEADFILE_FORMAT */
	u8 zero[3];
	__le32 crc;		/* crc32c of them */
	__le32 len;
	__le32 gen;
	__le64 epoch;
	__le64 nr;
} __attribute__((packed));
#define MGR_HEADFILE_FORMAT 2
_Static_assert(sizeof(struct mgr_headfile_disk) == 32, "head file record");
_Static_assert(MGR_HEAD_MAX > MGR_XATTR_MAX, "the largest record");

struct mgr_super_disk {
	u8 format;		/* MGR_SUPER_FORMAT */
	u8 zero[3];
	__le32 niods;
	u8 uuid[PVFS_UUID_LEN];
	u8 hash_key[16];
} __attribute__((packed));
#define MGR_SUPER_FORMAT 1
_Static_assert(sizeof(struct mgr_super_disk) == 40, "super record");

/* ---- keys ---- */

static inline void mgr_put_be64(u8 *p, u64 v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

static inline u64 mgr_get_be64(const u8 *p)
{
	u64 v;

	memcpy(&v, p, 8);
	return be64toh(v);
}

#define MGR_INO_KEY 8u		/* inode, symlink, reap, trim; session too */
#define MGR_PAIR_KEY 16u	/* dirent: dir, cookie; orphan: ino, session */
#define MGR_SLOT_KEY 10u
#define MGR_XATTR_KEY_MAX (MGR_INO_KEY + PVFS_XATTR_NAME_MAX)

static inline void mgr_ino_key(u8 key[MGR_INO_KEY], u64 ino)
{
	mgr_put_be64(key, ino);
}

static inline void mgr_pair_key(u8 key[MGR_PAIR_KEY], u64 a, u64 b)
{
	mgr_put_be64(key, a);
	mgr_put_be64(key + 8, b);
}

static inline void mgr_slot_key(u8 key[MGR_SLOT_KEY], u64 session, u16 slot)
{
	mgr_put_be64(key, session);
	key[8] = slot >> 8;
	key[9] = slot & 0xff;
}

/* Return: the key's length. @name is checked. */
static inline u32 mgr_xattr_key(u8 key[MGR_XATTR_KEY_MAX], u64 ino, const struct pvfs_str *name)
{
	mgr_put_be64(key, ino);
	memcpy(key + MGR_INO_KEY, name->p, name->len);
	return MGR_INO_KEY + name->len;
}

/**
 * mgr_name_cookie - where the entries of a name's hash begin
 * @key: the volume's hash key
 * @name: any bytes
 *
 * Return: a cookie below 2^63 whose low 8 bits are 0; the entries with this hash have the 256
 * cookies from there (those below MGR_COOKIE_MIN are not used).
 */
u64 mgr_name_cookie(const u8 key[16], const struct pvfs_str *name);

/* SipHash-2-4 of @len bytes. */
u64 mgr_siphash(const u8 key[16], const void *p, size_t len);

/* ---- records: encoders return the length, decoders 0 or -EUCLEAN ---- */

u32 mgr_inode_encode(const struct mgr_inode *in, struct mgr_inode_disk *d);
int mgr_inode_decode(struct mgr_inode *in, u64 ino, const void *rec, u32 len);
/* @room is MGR_DIRENT_MAX bytes */
u32 mgr_dirent_encode(const struct mgr_dirent *de, void *room);
int mgr_dirent_decode(struct mgr_dirent *de, const u8 *key, u32 klen, const void *rec, u32 len);
/* @room is MGR_SESSION_MAX bytes */
u32 mgr_session_encode(const struct mgr_session_rec *s, void *room);
int mgr_session_decode(struct mgr_session_rec *s, const void *rec, u32 len);
u32 mgr_trim_encode(const struct mgr_trim_rec *t, struct mgr_trim_disk *d);
int mgr_trim_decode(struct mgr_trim_rec *t, const void *rec, u32 len);
u32 mgr_mark_encode(u32 gen, struct mgr_mark_disk *d);
int mgr_mark_decode(u32 *ret_gen, const void *rec, u32 len);
/* Of the @len bytes that are behind @d already. */
u32 mgr_head_encode(struct mgr_head_disk *d, u32 len);
/* How many bytes are behind it, in *@ret_len. */
int mgr_head_decode(const struct mgr_head_disk *d, u32 len, u32 *ret_len);
/* Bytes that either record of a head may have, and the head when it was read into its place. */
static inline size_t mgr_head_room(u64 size)
{
	return max(sizeof(struct mgr_head_disk) + size, sizeof(struct mgr_headfile_disk));
}
u32 mgr_headfile_encode(const struct mgr_headfile *f, struct mgr_headfile_disk *d);
int mgr_headfile_decode(struct mgr_headfile *f, u64 ino, const void *rec, u32 len);
u32 mgr_super_encode(const struct mgr_super *s, struct mgr_super_disk *d);
int mgr_super_decode(struct mgr_super *s, const void *rec, u32 len);

/* ---- times ---- */

static inline bool mgr_ts_zero(const struct pvfs_ts *a)
{
	return !a->sec && !a->nsec;
}

#endif
