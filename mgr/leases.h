/* SPDX-License-Identifier: GPL-2.0 */
/*
 * leases.h - which sessions may believe what they were told of which inode: its attributes and, of a
 * directory, its names. In memory only: after a restart changes wait until the sessions from before
 * have come back, or what they had has expired (mgr_leases_in_grace()).
 *
 * A lease is noted before the inode is read for the reply that grants it, and a change looks for
 * leases under the inode's page lock, before it commits: so either the reader sees the change, or
 * the change sees the lease.
 *
 * A session may keep an inode's news back: those of a draft, for as long as its lease lasts; and what
 * it writes to a striped file that nobody else has open, under a WRITE lease, for as long as it
 * lives. Who reads such an inode for another session waits (mgr_draft_note()).
 *
 * A session that reads a file through a mapping has a lease to read that lasts: for as long as it lives, and
 * has the file open. Nobody who may write is in the file then. It is noted before it is looked who is in, and
 * who comes in is in before he looks for such leases.
 *
 * A WRITE lease is noted before it is looked who has the file open, and an open is counted before
 * the inode is read and looked for WRITE leases: so either the one that grants sees the open, or the
 * one that opens sees the lease.
 */
#ifndef PVFS_MGR_LEASES_H
#define PVFS_MGR_LEASES_H

#include <pthread.h>
#include <stdatomic.h>
#include "../common/msg.h"
#include "held.h"

#define MGR_LEASE_STRIPES 64u
#define MGR_LEASE_BUCKETS 1024u		/* of a stripe, in each of its two tables */
#define MGR_LEASE_NEVER	(~0ull)

/* An inode that somebody has a lease on. */
struct mgr_leased {
	LIST_ENTRY(mgr_leased) link;		/* in its bucket */
	u64 ino;
	TAILQ_HEAD(mgr_lease_list, mgr_lease) list;	/* the one that ends first is the first */
};

struct mgr_lease {
	LIST_ENTRY(mgr_lease) link;		/* in its bucket */
	TAILQ_ENTRY(mgr_lease) in_inode;
	struct mgr_leased *on;
	struct mgr_held held;
	u64 session;
	u64 end;		/* monotonic ms; MGR_LEASE_NEVER when it is a WRITE lease, or lasts */
	u64 read_end;		/* when that to believe ends, which it may be as well */
	bool draft;		/* others are not told of the inode before it is recalled */
	bool write;		/* a WRITE lease: the same */
	bool lasts;		/* nobody comes in to write before it is recalled */
};

/* Inodes whose number says so; all fields are protected by the lock. */
struct mgr_lease_stripe {
	pthread_mutex_t lock;
	LIST_HEAD(, mgr_lease) lease[MGR_LEASE_BUCKETS];	/* by inode and session */
	LIST_HEAD(, mgr_leased) inode[MGR_LEASE_BUCKETS];
};

/* A lease as it is looked at. */
struct mgr_lease_holder {
	u64 session, end;
	bool write;
	bool kept;		/* that, or a draft */
};

struct mgr_leases {
	struct mgr_lease_stripe *stripe;	/* MGR_LEASE_STRIPES of them */
	struct mgr_helds of;		/* the leases of each session */
	u32 max;
	atomic_uint kept;		/* leases that are drafts or WRITE leases */
	atomic_uint drafts;		/* those of drafts alone */
	atomic_uint writes;		/* WRITE leases, for statistics */
	atomic_uint lasting;		/* those to read that last */
	atomic_uint count;		/* expired ones that nobody came across too */
	atomic_uint hand;		/* the inodes that are cleared of them next, when it is full */
	atomic_ullong granted, refused, write_granted;	/* for statistics */
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
/* When it expires, MGR_LEASE_NEVER of a WRITE lease and one that lasts, 0: there is none. */
u64 mgr_leases_end(struct mgr_leases *l, u64 ino, u64 session);
void mgr_leases_drop(struct mgr_leases *l, u64 ino, u64 session);
/* The same but for a WRITE lease: what the session was told it does not believe any more. */
void mgr_leases_drop_read(struct mgr_leases *l, u64 ino, u64 session);
/* All of a session that is dead. Costs what it had. */
void mgr_leases_sweep(struct mgr_leases *l, u64 session);

/* The lease that a session has on an inode is a draft, or is none any more. */
void mgr_leases_draft(struct mgr_leases *l, u64 ino, u64 session, bool on);
/* Is the inode a draft of this session? */
bool mgr_leases_is_draft(struct mgr_leases *l, u64 ino, u64 session);
/* Is it, or has it a WRITE lease on it? */
bool mgr_leases_draft_of(struct mgr_leases *l, u64 ino, u64 session);
/* The same of another session than @but. */
bool mgr_leases_drafted(struct mgr_leases *l, u64 ino, u64 but, u64 now);

/**
 * mgr_leases_write - a session has a WRITE lease from now on
 * @alone: asked unless it has one already, when it is noted and seen by all: does nobody else have
 * the file open? Called with the inode's stripe locked. NULL: only if it is the session's draft,
 * which ends with that
 *
 * Return: whether it has one.
 */
bool mgr_leases_write(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*alone)(void *arg),
		      void *arg);
bool mgr_leases_writes(struct mgr_leases *l, u64 ino, u64 session);
/* Which session has a WRITE lease on an inode, but for @but; 0: none. */
u64 mgr_leases_writer(struct mgr_leases *l, u64 ino, u64 but);

/**
 * mgr_leases_unwrite - the WRITE lease, if there is one, ends
 * @over: asked first, with the inode's stripe locked; NULL: it does
 *
 * Return: it has ended, and the session has no other lease on the inode.
 */
bool mgr_leases_unwrite(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*over)(void *arg),
			void *arg);

/**
 * mgr_leases_last - a session has a lease to read that lasts, from now on
 * @may: asked unless it has one already, when it is noted and seen by all: is nobody in the file who may write?
 * Called with the inode's stripe locked
 *
 * Return: whether it has one.
 */
bool mgr_leases_last(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*may)(void *arg), void *arg);
bool mgr_leases_lasts(struct mgr_leases *l, u64 ino, u64 session);
/* Has another session than @but one? */
bool mgr_leases_lasting(struct mgr_leases *l, u64 ino, u64 but);
/* It does not last any more. As mgr_leases_unwrite(). */
bool mgr_leases_unlast(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*over)(void *arg), void *arg);

/**
 * mgr_leases_held - who has a lease on an inode; looks at nobody else
 * @but: except this session; 0: nobody is left out
 * @ret: room for @room of them, may be NULL when that is 0
 *
 * Return: how many there are, perhaps more than @room.
 */
u32 mgr_leases_held(struct mgr_leases *l, u64 ino, u64 but, u64 now, struct mgr_lease_holder *ret,
		    u32 room);
/* The same for HOLDERS: of sessions with a number behind @after. */
u32 mgr_leases_holders(struct mgr_leases *l, u64 ino, u64 after, u64 now, struct mgr_holder *ret,
		       u32 room);

#endif
