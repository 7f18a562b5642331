// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * stripe.c - where the bytes of a file lie; see the table in stripe.h.
 *
 * ssize is a power of two, so that the kernel needs one division (by pcount), done by div_u64_rem
 * there.
 */
#include "stripe.h"
#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/log2.h>
#else
static inline u64 div_u64_rem(u64 a, u32 b, u32 *rem)
{
	*rem = a % b;
	return a / b;
}
#define ilog2(v) (31 - __builtin_clz(v))
#endif

bool pvfs_layout_valid(const struct pvfs_layout *l, u32 niods)
{
	return niods && l->pcount >= 1 && l->pcount <= niods && l->base < niods &&
	       l->ssize >= PVFS_SSIZE_MIN && l->ssize <= PVFS_SSIZE_MAX &&
	       !(l->ssize & (l->ssize - 1)) && l->stuff_max <= PVFS_STUFF_MAX;
}

void pvfs_stripe_map(const struct pvfs_layout *l, u64 off, u64 len, struct pvfs_extent *e)
{
	u32 shift = ilog2(l->ssize), in = off & (l->ssize - 1), df;
	u64 row;

	if (l->pcount == 1) {
		*e = (struct pvfs_extent){ .df = 0, .off = off, .len = len };
		return;
	}
	row = div_u64_rem(off >> shift, l->pcount, &df);
	e->df = df;
	e->off = (row << shift) + in;
	e->len = min(len, (u64)(l->ssize - in));
}

/* Bytes of datafile @df that lie below file offset @off. */
static u64 below(const struct pvfs_layout *l, u32 df, u64 off)
{
	u32 shift = ilog2(l->ssize), cur;
	u64 row = div_u64_rem(off >> shift, l->pcount, &cur);

	if (df < cur)
		return (row + 1) << shift;
	if (df > cur)
		return row << shift;
	return (row << shift) + (off & (l->ssize - 1));
}

void pvfs_stripe_share(const struct pvfs_layout *l, u32 df, u64 off, u64 len, struct pvfs_extent *e)
{
	u64 a = below(l, df, off), b = below(l, df, off + len);

	*e = (struct pvfs_extent){ .df = df, .off = a, .len = b - a };
}

u64 pvfs_stripe_file_off(const struct pvfs_layout *l, u32 df, u64 off)
{
	u32 shift = ilog2(l->ssize);

	return ((((off >> shift) * l->pcount) + df) << shift) + (off & (l->ssize - 1));
}

u64 pvfs_stripe_file_size(const struct pvfs_layout *l, u32 df, u64 size)
{
	return size ? pvfs_stripe_file_off(l, df, size - 1) + 1 : 0;
}

u64 pvfs_stripe_df_size(const struct pvfs_layout *l, u32 df, u64 size)
{
	return below(l, df, size);
}

bool pvfs_stripe_shift(const struct pvfs_layout *l, s64 apart, s64 *shift)
{
	u64 by = apart < 0 ? -(u64)apart : (u64)apart, rounds;
	u32 units;

	if (l->pcount == 1) {
		*shift = apart;
		return true;
	}
	rounds = div_u64_rem(by >> ilog2(l->ssize), l->pcount, &units);
	if (units || (by & (l->ssize - 1)))
		return false;
	*shift = (s64)(rounds << ilog2(l->ssize));
	if (apart < 0)
		*shift = -*shift;
	return true;
}

u64 pvfs_stripe_rounds(const struct pvfs_layout *l, u32 max)
{
	return (u64)(max & ~(l->ssize - 1)) * l->pcount ?: max;
}
