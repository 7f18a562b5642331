/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * lockset.h - the byte ranges of one file that one owner has locked: disjoint, in order, equal
 * neighbours joined.
 *
 * What POSIX says of an owner's own locks is here, once, for the manager and for libpvfs: a new
 * lock replaces what the owner had there, splits what reaches beyond, and an unlock is a lock of
 * type none. What owners do to one another is not. User space only; no locking.
 */
#ifndef PVFS_LOCKSET_H
#define PVFS_LOCKSET_H

#include "proto.h"

/* A locked range; @end is its last byte. */
struct pvfs_lockrange {
	u64 start, end;
	u64 ticket;		/* of the call that made it so */
	u32 pid;
	u8 type;		/* PVFS_LK_READ or WRITE; UNLOCK in requests */
};

struct pvfs_lockset {
	struct pvfs_lockrange *r;	/* @n of them, room for @room */
	u32 n, room;
};

/**
 * pvfs_lockset_set - the range is locked this way from now on, whatever it was before
 * @want: its type UNLOCK: not locked
 *
 * Return: 0; -ENOMEM with nothing changed.
 */
int pvfs_lockset_set(struct pvfs_lockset *s, const struct pvfs_lockrange *want);

/**
 * pvfs_lockset_covers - is all of start .. end locked as @type, or (@at_least) more strongly?
 */
bool pvfs_lockset_covers(const struct pvfs_lockset *s, u64 start, u64 end, u8 type, bool at_least);

/**
 * pvfs_lockset_conflict - the first range in the way of another owner's lock of @type on start ..
 * end, or NULL
 */
const struct pvfs_lockrange *pvfs_lockset_conflict(const struct pvfs_lockset *s, u64 start, u64 end,
						   u8 type);

/**
 * pvfs_lockset_drop_ticket - unlock what the call @ticket has locked within start .. end
 *
 * Return: was there anything?
 */
bool pvfs_lockset_drop_ticket(struct pvfs_lockset *s, u64 start, u64 end, u64 ticket);

void pvfs_lockset_free(struct pvfs_lockset *s);

#endif
