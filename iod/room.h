/* SPDX-License-Identifier: GPL-2.0 */
/*
 * room.h - how much a store takes in: the file system below it is never filled to the last block.
 *
 * A manager on the same file system needs some for its log, without which it can't even open a session
 * or remove a file; so does the file system itself, for what makes room. So what takes new space ends
 * with ENOSPC while there is a reserve left. What was allocated before can be written all the same, but
 * where the file system writes everything anew, or what files share.
 *
 * Clients are told what is left, so that one that has to write bytes later, which it has taken from a program
 * already, knows that they will fit.
 */
#ifndef PVFS_IOD_ROOM_H
#define PVFS_IOD_ROOM_H

#include "../common/compat.h"
#include <stdatomic.h>
#include <sys/statvfs.h>

struct iod_room {
	int dfd;		/* a directory of the file system */
	u64 reserve;		/* bytes */
	u64 slack;		/* bytes that nobody is told of */
	bool endless;		/* the file system says no size, as ramfs */
	_Atomic s64 credit;	/* bytes that may be taken before the file system is asked again */
	_Atomic u64 beyond;	/* and what else was left when it was */
	_Atomic u64 asked;	/* when that was, ms */
};

/**
 * iod_room_init - watch a file system
 * @r: the room
 * @dfd: a descriptor of a directory in it, which outlives @r
 * @reserve: bytes to leave free; of a small file system a sixteenth at most
 *
 * Return: 0 or -errno.
 */
int iod_room_init(struct iod_room *r, int dfd, u64 reserve);

/**
 * iod_room_take - before bytes are written, or allocated
 * @r: the room
 * @fd: of the file, or -1: it has nothing there yet
 * @off: first byte
 * @len: bytes
 *
 * Overwriting counts as taking while there is plenty of room; when there is not, it is found out
 * whether the file has the space already.
 *
 * Return: 0 or -ENOSPC.
 */
int iod_room_take(struct iod_room *r, int fd, u64 off, u64 len);

/**
 * iod_room_left - what of the free blocks may be taken
 * @r: the room
 * @sv: what the file system says
 *
 * Return: blocks of sv->f_frsize bytes.
 */
u64 iod_room_left(const struct iod_room *r, const struct statvfs *sv);

/**
 * iod_room_told - what clients are told to be left
 * @r: the room
 *
 * Less than there is: what they know is from some time ago, and others are told the same.
 *
 * Return: bytes, 0: write, and see; UINT64_MAX: the file system does not say.
 */
u64 iod_room_told(struct iod_room *r);

#endif
