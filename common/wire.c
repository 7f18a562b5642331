// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * wire.c - counted strings and blobs; the fixed-size accessors are inline in wire.h.
 */
#include "wire.h"

static void put_counted(struct pvfs_wire *w, const struct pvfs_str *s)
{
	u8 *p = pvfs_wire_take(w, s->len, -EMSGSIZE);

	if (p && s->len)
		memcpy(p, s->p, s->len);
}

static void get_counted(struct pvfs_wire *w, struct pvfs_str *s, u32 len, u32 max)
{
	if (!w->err && len > max)
		w->err = -EBADMSG;
	s->p = pvfs_wire_take(w, len, -EBADMSG);
	s->len = s->p ? len : 0;
}

void pvfs_put_str(struct pvfs_wire *w, const struct pvfs_str *s, u32 max)
{
	if (s->len > max || s->len > 0xffff)
		w->err = w->err ?: -EMSGSIZE;
	pvfs_put_u16(w, s->len);
	put_counted(w, s);
}

void pvfs_get_str(struct pvfs_wire *w, struct pvfs_str *s, u32 max)
{
	get_counted(w, s, pvfs_get_u16(w), max);
}

void pvfs_put_blob(struct pvfs_wire *w, const struct pvfs_str *s, u32 max)
{
	if (s->len > max)
		w->err = w->err ?: -EMSGSIZE;
	pvfs_put_u32(w, s->len);
	put_counted(w, s);
}

void pvfs_get_blob(struct pvfs_wire *w, struct pvfs_str *s, u32 max)
{
	get_counted(w, s, pvfs_get_u32(w), max);
}
