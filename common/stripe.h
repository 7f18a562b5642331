/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * stripe.h - where the bytes of a file lie. Pure integer functions; any context; no state.
 *
 * A file is cut into stripe units of ssize bytes, dealt in turn to its pcount datafiles; datafile i
 * is on iod (base + i) % niods. With pcount 3 and ssize 4 (impossible, but readable):
 *
 *   file offset   0  4  8 12 16 20 24 ...
 *   datafile      0  1  2  0  1  2  0
 *   offset in it  0  0  0  4  4  4  8
 */
#ifndef PVFS_STRIPE_H
#define PVFS_STRIPE_H

#include "msg.h"

/* One file's share in one iod: a contiguous run in the datafile. */
struct pvfs_extent {
	u32 df;		/* datafile index, 0 .. pcount - 1 */
	u64 off;	/* in the datafile */
	u64 len;	/* bytes, contiguous in the file too */
};

/**
 * pvfs_layout_valid - is a layout from outside usable?
 * @l: the layout
 * @niods: iods of the volume
 *
 * pcount 1 .. niods, base below niods, ssize a power of two within PVFS_SSIZE_MIN ..
 * PVFS_SSIZE_MAX, stuff_max at most PVFS_STUFF_MAX.
 */
bool pvfs_layout_valid(const struct pvfs_layout *l, u32 niods);

/* Do both put the same bytes on the same iods? */
static inline bool pvfs_layout_alike(const struct pvfs_layout *a, const struct pvfs_layout *b)
{
	return a->base == b->base && a->pcount == b->pcount && a->ssize == b->ssize;
}

/* The iod (index in the volume's table) that holds datafile @df. */
static inline u32 pvfs_stripe_iod(const struct pvfs_layout *l, u32 df, u32 niods)
{
	return (l->base + df) % niods;
}

/**
 * pvfs_stripe_map - the piece of a file range that is contiguous on one iod
 * @l: a valid layout
 * @off: file offset
 * @len: bytes wanted from there, > 0
 * @e: the first piece: up to the end of its stripe unit (or of the range when pcount is 1)
 */
void pvfs_stripe_map(const struct pvfs_layout *l, u64 off, u64 len, struct pvfs_extent *e);

/**
 * pvfs_stripe_share - what part of a file range lies in one datafile
 * @l: a valid layout
 * @df: datafile index
 * @off: file offset
 * @len: bytes
 * @e: df, and the run in the datafile (len 0 when there is none); the run is contiguous there, its
 *	pieces are
 *     ssize * pcount apart in the file
 */
void pvfs_stripe_share(const struct pvfs_layout *l, u32 df, u64 off, u64 len,
		       struct pvfs_extent *e);

/* The file offset of byte @off of datafile @df. */
u64 pvfs_stripe_file_off(const struct pvfs_layout *l, u32 df, u64 off);

/* The size the file has at least, given that datafile @df has @size bytes: 0 for an empty one. */
u64 pvfs_stripe_file_size(const struct pvfs_layout *l, u32 df, u64 size);

/* How many bytes datafile @df has when the file is @size bytes long and has no hole at its end. */
u64 pvfs_stripe_df_size(const struct pvfs_layout *l, u32 df, u64 size);

/**
 * pvfs_stripe_shift - do bytes stay with their datafiles when they move in the file?
 * @l: a valid layout
 * @apart: how far they move, bytes
 * @shift: how far each moves in its datafile then
 */
bool pvfs_stripe_shift(const struct pvfs_layout *l, s64 apart, s64 *shift);

/**
 * pvfs_stripe_rounds - how much of a file at a time, so that no datafile's share is too long
 * @l: a valid layout
 * @max: of a datafile, bytes
 *
 * Return: whole rounds of all datafiles; @max when one unit is longer than that.
 */
u64 pvfs_stripe_rounds(const struct pvfs_layout *l, u32 max);

#endif
