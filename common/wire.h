/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * wire.h - a bounds-checked cursor over bytes that go to or come from the wire.
 *
 * The error is sticky: after the first access that does not fit, puts do nothing and gets return
 * zero, so a caller encodes or decodes a whole structure and looks at the error once. Nothing here
 * allocates or blocks.
 */
#ifndef PVFS_WIRE_H
#define PVFS_WIRE_H

#include "compat.h"

/**
 * struct pvfs_wire - the cursor
 * @p: next byte
 * @end: one past the last byte that may be touched
 * @err: 0, or -EMSGSIZE (put past the end) or -EBADMSG (get past the end, or a length over its
 *	limit)
 */
struct pvfs_wire {
	u8 *p;
	u8 *end;
	int err;
};

/* A counted string or blob; when decoded it borrows the buffer it came from. Not NUL-terminated. */
struct pvfs_str {
	const u8 *p;
	u32 len;
};

#define PVFS_STR(s) ((struct pvfs_str){ .p = (const u8 *)(s), .len = strlen(s) })

static inline void pvfs_wire_init(struct pvfs_wire *w, const void *buf, size_t len)
{
	w->p = (u8 *)buf;
	w->end = w->p + len;
	w->err = 0;
}

static inline size_t pvfs_wire_left(const struct pvfs_wire *w)
{
	return w->end - w->p;
}

/* Takes @n bytes off the cursor; NULL (and @err set to @fault) when they are not there. */
static inline u8 *pvfs_wire_take(struct pvfs_wire *w, size_t n, int fault)
{
	u8 *p = w->p;

	if (w->err)
		return NULL;
	if (pvfs_wire_left(w) < n) {
		w->err = fault;
		return NULL;
	}
	w->p += n;
	return p;
}

static inline void pvfs_put_u8(struct pvfs_wire *w, u8 v)
{
	u8 *p = pvfs_wire_take(w, 1, -EMSGSIZE);

	if (p)
		*p = v;
}

static inline void pvfs_put_u16(struct pvfs_wire *w, u16 v)
{
	u8 *p = pvfs_wire_take(w, 2, -EMSGSIZE);

	if (p)
		put_unaligned_le16(v, p);
}

static inline void pvfs_put_u32(struct pvfs_wire *w, u32 v)
{
	u8 *p = pvfs_wire_take(w, 4, -EMSGSIZE);

	if (p)
		put_unaligned_le32(v, p);
}

static inline void pvfs_put_u64(struct pvfs_wire *w, u64 v)
{
	u8 *p = pvfs_wire_take(w, 8, -EMSGSIZE);

	if (p)
		put_unaligned_le64(v, p);
}

static inline u8 pvfs_get_u8(struct pvfs_wire *w)
{
	u8 *p = pvfs_wire_take(w, 1, -EBADMSG);

	return p ? *p : 0;
}

static inline u16 pvfs_get_u16(struct pvfs_wire *w)
{
	u8 *p = pvfs_wire_take(w, 2, -EBADMSG);

	return p ? get_unaligned_le16(p) : 0;
}

static inline u32 pvfs_get_u32(struct pvfs_wire *w)
{
	u8 *p = pvfs_wire_take(w, 4, -EBADMSG);

	return p ? get_unaligned_le32(p) : 0;
}

static inline u64 pvfs_get_u64(struct pvfs_wire *w)
{
	u8 *p = pvfs_wire_take(w, 8, -EBADMSG);

	return p ? get_unaligned_le64(p) : 0;
}

static inline void pvfs_put_fix(struct pvfs_wire *w, const void *v, size_t n)
{
	u8 *p = pvfs_wire_take(w, n, -EMSGSIZE);

	if (p)
		memcpy(p, v, n);
}

static inline void pvfs_get_fix(struct pvfs_wire *w, void *v, size_t n)
{
	u8 *p = pvfs_wire_take(w, n, -EBADMSG);

	if (p)
		memcpy(v, p, n);
	else
		memset(v, 0, n);
}

/* u16 length + bytes; a length over @max is refused on both sides. */
void pvfs_put_str(struct pvfs_wire *w, const struct pvfs_str *s, u32 max);
void pvfs_get_str(struct pvfs_wire *w, struct pvfs_str *s, u32 max);

/* u32 length + bytes */
void pvfs_put_blob(struct pvfs_wire *w, const struct pvfs_str *s, u32 max);
void pvfs_get_blob(struct pvfs_wire *w, struct pvfs_str *s, u32 max);

#endif
