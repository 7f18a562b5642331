/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * msg_fill.h - fills and compares every body of msg.def, made from the table. Included by one C
 * file of a program; used by the codec's test and to make the seeds for fuzzing.
 *
 * For each group and each body: fill_<name>(m, f), and same_<name>(a, b). Strings are as long as
 * the filler says.
 */
#ifndef PVFS_MSG_FILL_H
#define PVFS_MSG_FILL_H

#include "common/msg.h"

/* Where the values come from. */
struct filler {
	u64 state;
	u32 len;	/* of strings and blobs, at most; 0xffffffff: as long as they may be */
	u32 below;		/* numbers are below this; 0: any */
};

static u8 fill_bytes[65536];

static inline u64 fill_next(struct filler *f)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->below ? (f->state >> 11) % f->below : f->state;
}

static inline void fill_str(struct filler *f, struct pvfs_str *s, u32 max)
{
	u32 i;

	if (!fill_bytes[1])
		for (i = 0; i < sizeof(fill_bytes); i++)
			fill_bytes[i] = 'a' + i % 26;
	s->len = f->len == 0xffffffff ? max : (u32)(fill_next(f) % (min(f->len, max) + 1));
	s->len -= s->len == f->len || max % 4 ? 0 : s->len % 4;
	s->p = fill_bytes + fill_next(f) % (sizeof(fill_bytes) - s->len);
}

static inline void fill_fix(struct filler *f, u8 *p, size_t n)
{
	while (n--)
		*p++ = fill_next(f);
}

static inline int same_str(const struct pvfs_str *a, const struct pvfs_str *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->p, b->p, a->len));
}

#define U8(f) m->f = fill_next(fl);
#define U16(f) m->f = fill_next(fl);
#define U32(f) m->f = fill_next(fl);
#define U64(f) m->f = fill_next(fl);
#define S64(f) m->f = fill_next(fl);
#define FIX(f, n) fill_fix(fl, m->f, n);
#define STR(f, max) fill_str(fl, &m->f, max);
#define BLOB(f, max) fill_str(fl, &m->f, max);
#define SUB(type, f) fill_##type(&m->f, fl);
#define SUBMSG(name, fields) MSG(name, fields)
#define MSG(name, fields) \
	static inline void fill_##name(struct pvfs_##name *m, struct filler *fl) { (void)m; (void)fl; fields }
#include "common/msg.def"
#include "common/msg_undef.h"

#define U8(f) same &= a->f == b->f;
#define U16(f) same &= a->f == b->f;
#define U32(f) same &= a->f == b->f;
#define U64(f) same &= a->f == b->f;
#define S64(f) same &= a->f == b->f;
#define FIX(f, n) same &= !memcmp(a->f, b->f, n);
#define STR(f, max) same &= same_str(&a->f, &b->f);
#define BLOB(f, max) same &= same_str(&a->f, &b->f);
#define SUB(type, f) same &= same_##type(&a->f, &b->f);
#define SUBMSG(name, fields) MSG(name, fields)
#define MSG(name, fields) \
	static inline int same_##name(const struct pvfs_##name *a, const struct pvfs_##name *b) \
	{ int same = 1; (void)a; (void)b; fields return same; }
#include "common/msg.def"
#include "common/msg_undef.h"

#endif
