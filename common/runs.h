/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * runs.h - places in a file that are described, not enumerated: what READ_LIST and WRITE_LIST name.
 * Pure functions; any thread; no allocation.
 *
 * A run is blocks of equal length, in up to PVFS_DIMS_MAX nested loops, each with a stride. With
 * two dimensions, the outer first:
 *
 *   off                        off + stride[0]
 *   |##..##..##..|             |##..##..##..|          # len bytes, .. up to stride[1]
 *
 * is len 2, dims (2, stride[0]), (3, stride[1] = 4): 6 blocks, 12 bytes. Without a dimension it is
 * one block. Blocks may overlap, and lie side by side.
 *
 * The stream of a list of runs is the bytes of all its blocks, in order: of the first run its first
 * block to its last, then of the next. A place in the stream is a number of bytes from its start.
 */
#ifndef PVFS_RUNS_H
#define PVFS_RUNS_H

#include "wire.h"

#define PVFS_DIMS_MAX		4u
#define PVFS_RUN_BYTES_MAX	(8u + 8u + 1u + PVFS_DIMS_MAX * 12u)	/* encoded */

struct pvfs_run {
	u64 off;	/* of the first block, in the file */
	u64 len;	/* of a block, bytes, > 0 */
	u32 ndims;
	struct {
		u32 count;	/* > 0 */
		u64 stride;	/* bytes from one to the next */
	} dim[PVFS_DIMS_MAX];
};

/**
 * pvfs_run_check - is a run sound, and how much is it?
 * @r: from anywhere
 * @ret_bytes: of all blocks
 * @ret_end: behind the last byte of the file that it reaches
 *
 * Return: 0, or -EINVAL: nothing in it, too many dimensions, or beyond PVFS_FILE_MAX.
 */
int pvfs_run_check(const struct pvfs_run *r, u64 *ret_bytes, u64 *ret_end);

void pvfs_put_run(struct pvfs_wire *w, const struct pvfs_run *r);
void pvfs_get_run(struct pvfs_wire *w, struct pvfs_run *r);

/* A place in a run. */
struct pvfs_run_at {
	const struct pvfs_run *run;	/* sound */
	u64 off;			/* of the block */
	u64 done;			/* bytes of the block */
	u32 pos[PVFS_DIMS_MAX];		/* which block it is */
};

/**
 * pvfs_run_seek - go to a place in a run's stream
 * @at: set
 * @r: sound; used as long as @at is
 * @bytes: less than the run has
 */
void pvfs_run_seek(struct pvfs_run_at *at, const struct pvfs_run *r, u64 bytes);

/**
 * pvfs_run_advance - go on
 * @bytes: at most what is left of the block
 *
 * Return: false: that was the run's end.
 */
bool pvfs_run_advance(struct pvfs_run_at *at, u64 bytes);

/* Where the next bytes are in the file, and how many of them there are in a row, > 0. */
static inline u64 pvfs_run_off(const struct pvfs_run_at *at)
{
	return at->off + at->done;
}

static inline u64 pvfs_run_left(const struct pvfs_run_at *at)
{
	return at->run->len - at->done;
}

/* A part of the stream of encoded runs, from place to place. */
struct pvfs_runs {
	struct pvfs_wire w;
	struct pvfs_run run;
	struct pvfs_run_at at;
	u64 left;		/* bytes of the part */
};

/**
 * pvfs_runs_begin - look at a part of the stream of encoded runs
 * @it: set, for pvfs_runs_next()
 * @p, @len: the runs, from outside
 * @first: where the part begins, in the first run
 * @n: how long it is, bytes; it ends in the last run
 * @ret_blocks: how many blocks are in it, in whole or in part
 *
 * Return: 0, or -EINVAL: a run is not sound, or there are runs that have nothing of the part.
 */
int pvfs_runs_begin(struct pvfs_runs *it, const void *p, u32 len, u64 first, u64 n,
		    u64 *ret_blocks);

/**
 * pvfs_runs_next - the next block, or part of one
 * @ret_off: where it is in the file
 * @ret_len: its bytes
 *
 * Return: false: there are no more.
 */
bool pvfs_runs_next(struct pvfs_runs *it, u64 *ret_off, u64 *ret_len);

#endif
