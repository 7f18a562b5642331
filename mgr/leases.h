/* SPDX-License-Identifier: GPL-2.0 */
/*
 * leases.h - which sessions may believe what they were told of which inode: its attributes and, of a
 * directory, its names. In memory only: after a restart changes wait until the sessions from before
 * have come back, or what they had has expired (mgr_leases_in_grace()).
 *
 * A lease is noted before the inode is read for the reply that grants it, and a change looks for
 * leases under the inode's page lock, before it commits: so either the reader sees the change, or
 * the change sees the lease.
 */
#ifndef PVFS_MGR_LEASES_H
#define PVFS_MGR_LEASES_H

#include <pthread.h>
#include <stdatomic.h>
#include "../common/msg.h"

#define MGR_LEASE_STRIPES 64u
#define MGR_LEASE_BUCKETS 65536u	/* a multiple of the stripes */

struct mgr_lease {
	struct mgr_lease *next;
	u64 ino, session;
	u64 end;		/* monotonic ms */
	bool draft;		/* and others are not told of the inode before it is recalled */
};

/* A lease as it is looked at. */
struct mgr_lease_holder {
	u64 session, end;
};

struct mgr_leases {
	pthread_mutex_t stripe[MGR_LEASE_STRIPES];
	struct mgr_lease **bucket;	/* bucket i is protected by stripe i % MGR_LEASE_STRIPES */
	u32 max;
	atomic_uint drafts;		/* leases that are drafts, too */
	atomic_uint count;		/* expired ones that nobody came across too */
	atomic_uint hand;		/* the bucket that is cleared of them next, when it is full */
	atomic_ullong granted, refused;	/* for statistics */
};

int mgr_leases_init(struct mgr_leases *l, u32 max);
void mgr_leases_fini(struct mgr_leases *l);

/**
 * mgr_leases_grant - a session has a lease from now on
 * @now: monotonic ms
 * @end: when it expires, the same
 *
 * Return: false: the table is full, or there is no memory.
 */
bool mgr_leases_grant(struct mgr_leases *l, u64 ino, u64 session, u64 now, u64 end);
void mgr_leases_drop(struct mgr_leases *l, u64 ino, u64 session);
/* All of a session. Walks the table. */
void mgr_leases_sweep(struct mgr_leases *l, u64 session);

/* The lease that a session has on an inode is a draft, or is none any more. */
void mgr_leases_draft(struct mgr_leases *l, u64 ino, u64 session, bool on);
/* Is the inode a draft of this session? */
bool mgr_leases_draft_of(struct mgr_leases *l, u64 ino, u64 session);
/* Is the inode the draft of another session than @but? */
bool mgr_leases_drafted(struct mgr_leases *l, u64 ino, u64 but, u64 now);

/**
 * mgr_leases_held - who has a lease on an inode
 * @but: except this session; 0: nobody is left out
 * @ret: room for @room of them, may be NULL when that is 0
 *
 * Return: how many there are, perhaps more than @room.
 */
u32 mgr_leases_held(struct mgr_leases *l, u64 ino, u64 but, u64 now, struct mgr_lease_holder *ret,
		    u32 room);

#endif
