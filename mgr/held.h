/* SPDX-License-Identifier: GPL-2.0 */
/*
 * held.h - what each session has, of one kind (opens, leases): lists by session beside a table by
 * inode, so that a session's end costs what it had.
 *
 * Locks are leaves, and may be taken under the lock of whichever table the entries are in.
 */
#ifndef PVFS_MGR_HELD_H
#define PVFS_MGR_HELD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "../common/compat.h"

#define MGR_HELD_BUCKETS 256u

/* What a session has here. Exists while it has something. */
struct mgr_held_by {
	LIST_ENTRY(mgr_held_by) link;		/* in its bucket */
	u64 session;
	LIST_HEAD(, mgr_held) list;
};

/* Embedded in an entry of a table. All fields are protected by the bucket's lock. */
struct mgr_held {
	LIST_ENTRY(mgr_held) link;
	struct mgr_held_by *by;
	u64 ino;
};

struct mgr_helds {
	struct {
		pthread_mutex_t lock;
		LIST_HEAD(, mgr_held_by) list;
	} bucket[MGR_HELD_BUCKETS];
};

/* What a session has of one inode, as somebody asks who does: HOLDERS. */
struct mgr_holder {
	u64 session;
	u64 end;		/* of its lease, monotonic ms; 0: it has none, or WRITE */
	u32 flags;		/* PVFS_HD_* */
	u32 readers, writers;	/* opens for reading only, for writing */
};

void mgr_helds_init(struct mgr_helds *t);
/* All entries must be gone. */
void mgr_helds_fini(struct mgr_helds *t);

/**
 * mgr_held_add - a session has something of an inode from now on
 * @h: of the table's entry; what the caller has locked keeps others from it
 * @dead: when it is set nothing is added; NULL: the caller looks by itself, afterwards
 *
 * Who sets @dead and then asks mgr_helds_of() finds the entry, or it was refused.
 *
 * Return: 0, -ENOMEM, -ESTALE (@dead).
 */
int mgr_held_add(struct mgr_helds *t, struct mgr_held *h, u64 session, u64 ino,
		 const atomic_bool *dead);
void mgr_held_del(struct mgr_helds *t, struct mgr_held *h, u64 session);

/* Up to @room of the inodes that a session has something of. Return: how many. */
u32 mgr_helds_of(struct mgr_helds *t, u64 session, u64 *inos, u32 room);

#endif
