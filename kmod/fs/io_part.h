/* SPDX-License-Identifier: GPL-2.0 */
/*
 * io_part.h - what io.c and io_cut.c share.
 */
#ifndef PVFS_KMOD_IO_PART_H
#define PVFS_KMOD_IO_PART_H

#include "vfs.h"

#define PVFS_IO_LIST_PARTS 64u		/* requests that a list is, at most */

struct pvfs_io_part {
	struct pvfs_io *io;
	struct pvfs_request *req;
	u32 df;
	u64 off;		/* in the datafile */
	u32 len;
	u32 first;		/* where its first byte is in the transfer */
	struct bio_vec *bv;
	unsigned int nbv;
	u32 filled;		/* while being built */
	int err;
	u32 got;		/* read: bytes that came */
	struct pvfs_ts wtime;	/* write: when it was made */
};

/* A place in io->mem. */
struct pvfs_io_cursor {
	const struct bio_vec *bv;
	u32 skip;		/* bytes of it that are behind us */
};

/*
 * Steps over @n bytes. Return: how many bio_vecs they are in, which are written to @out unless it
 * is NULL.
 */
unsigned int pvfs_io_advance(struct pvfs_io_cursor *c, u32 n, struct bio_vec *out);
/* Finds the parts of a transfer, with io->layout; it becomes shorter if there is no room for all. */
void pvfs_io_plan(struct pvfs_io *io, u32 xsize);
/* 0: no list of such a file. */
unsigned int pvfs_io_list_room(unsigned int pcount, u32 ssize, u32 xsize);

#endif
