/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * msg.h - the bodies as C structures, and their codec. Both are made from msg.def.
 *
 * For every MSG(name, ...) there is struct pvfs_<name> with
 *   int pvfs_<name>_encode(const struct pvfs_<name> *m, void *buf, size_t room);
 *       Return: bytes written, or -EMSGSIZE when they do not fit or a string is over its limit.
 *   int pvfs_<name>_decode(struct pvfs_<name> *m, const void *buf, size_t len);
 *       Return: 0, or -EBADMSG when anything is short, long or over its limit. All of @buf must be
 *       used. Strings and blobs borrow @buf. @m is fully written in every case.
 * and for every group SUBMSG(name, ...) struct pvfs_<name> with
 *   void pvfs_put_<name>(struct pvfs_wire *, const struct pvfs_<name> *);
 *   void pvfs_get_<name>(struct pvfs_wire *, struct pvfs_<name> *);
 * Safe from any context; no allocation.
 */
#ifndef PVFS_MSG_H
#define PVFS_MSG_H

#include "proto.h"
#include "wire.h"

#define U8(f) u8 f;
#define U16(f) u16 f;
#define U32(f) u32 f;
#define U64(f) u64 f;
#define S64(f) s64 f;
#define FIX(f, n) u8 f[n];
#define STR(f, max) struct pvfs_str f;
#define BLOB(f, max) struct pvfs_str f;
#define SUB(type, f) struct pvfs_##type f;
#define SUBMSG(name, fields) \
	struct pvfs_##name { fields }; \
	void pvfs_put_##name(struct pvfs_wire *w, const struct pvfs_##name *m); \
	void pvfs_get_##name(struct pvfs_wire *w, struct pvfs_##name *m);
#define MSG(name, fields) \
	struct pvfs_##name { fields }; \
	int pvfs_##name##_encode(const struct pvfs_##name *m, void *buf, size_t room); \
	int pvfs_##name##_decode(struct pvfs_##name *m, const void *buf, size_t len);
#include "msg.def"
#include "msg_undef.h"

/**
 * pvfs_close_req_one - the CLOSE that ends one open
 * @req: made
 * @c: the open
 * @raw: memory, for as long as @req is used
 */
static inline void pvfs_close_req_one(struct pvfs_close_req *req, const struct pvfs_closing *c,
				      u8 raw[PVFS_CLOSING_LEN])
{
	struct pvfs_wire w;

	pvfs_wire_init(&w, raw, PVFS_CLOSING_LEN);
	pvfs_put_closing(&w, c);
	req->closings = (struct pvfs_str){ .p = raw, .len = w.p - raw };
}

static inline bool pvfs_ts_after(const struct pvfs_ts *a, const struct pvfs_ts *b)
{
	return a->sec != b->sec ? a->sec > b->sec : a->nsec > b->nsec;
}

/*
 * Is the time of a read, @now, to be kept? As mounts do by default (relatime): if the last one that
 * was kept is not after the last change, or a day old.
 */
static inline bool pvfs_relatime(const struct pvfs_ts *atime, const struct pvfs_ts *mtime,
				 const struct pvfs_ts *ctime, const struct pvfs_ts *now)
{
	return !pvfs_ts_after(atime, mtime) || !pvfs_ts_after(atime, ctime) ||
	       now->sec - atime->sec >= 24 * 60 * 60;
}

/* A header in the host's byte order. Fields as in struct pvfs_hdr. */
struct pvfs_header {
	u16 op;
	u32 flags;
	u32 tag;
	u64 session;
	u16 slot;
	u16 credits;
	u32 slot_seq;
	u32 status;		/* wire errno, see pvfs_errno_from_wire() */
	u32 body_len;
	u32 payload_len;
	u32 body_crc;
	u32 payload_crc;
};

/**
 * pvfs_header_encode - write a header, its own checksum included
 * @h: body_crc and payload_crc must be set already
 * @out: 64 bytes
 */
void pvfs_header_encode(const struct pvfs_header *h, struct pvfs_hdr *out);

/**
 * pvfs_header_decode - check and read a header from the wire
 * @in: 64 bytes from outside
 * @h: filled on success
 *
 * Checks magic, version, checksum, zero fields, flag bits, the operation's existence and every
 * limit.
 *
 * Return: 0; -EPROTO: not this protocol or version; -EBADMSG: damaged; -EMSGSIZE: over a limit;
 * -EOPNOTSUPP: sound, but no such operation (@h is filled).
 */
int pvfs_header_decode(const struct pvfs_hdr *in, struct pvfs_header *h);

/**
 * pvfs_op_name - the operation's name, for logs
 * @op: any number
 */
const char *pvfs_op_name(unsigned int op);

/* Group @i of a decoded credential; the caller keeps @i below pvfs_cred_ngroups(). */
static inline u32 pvfs_cred_ngroups(const struct pvfs_cred *c)
{
	return c->groups.len / 4;
}

static inline u32 pvfs_cred_group(const struct pvfs_cred *c, u32 i)
{
	return get_unaligned_le32(c->groups.p + 4 * i);
}

/* errmap.c: errno (positive) to and from its number on the wire. Unknown ones become EIO. */
u32 pvfs_errno_to_wire(int err);
int pvfs_errno_from_wire(u32 wire);

#endif
