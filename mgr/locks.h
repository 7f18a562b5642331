/* SPDX-License-Identifier: GPL-2.0 */
/*
 * locks.h - who has locked which bytes of which file, and who waits for that. In memory only: after
 * a restart the clients say it again (LOCK with RECLAIM).
 *
 * An owner is {session, kind, number}. Owners of kind FLOCK are in conflict among themselves only;
 * RECORD and OFD with each other; APPEND's with those of other sessions only. What an owner does to
 * its own locks is common/lockset.h.
 */
#ifndef PVFS_MGR_LOCKS_H
#define PVFS_MGR_LOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "../common/lockset.h"
#include "../common/msg.h"

struct mgr_session;
struct pvfs_server;

#define MGR_LOCK_BUCKETS 4096u
#define MGR_LOCK_CLIENTS 256u
#define MGR_LOCK_NOTIFIERS 2u

/* What a session has here. Exists while it holds or waits for something. */
struct mgr_lock_client {
	LIST_ENTRY(mgr_lock_client) link;	/* in its bucket */
	u64 session;
	u32 count;				/* ranges and waiters */
	LIST_HEAD(, mgr_lock_holder) holders;
	LIST_HEAD(, mgr_lock_wait) waits;
};

/* What one owner holds of one file. */
struct mgr_lock_holder {
	LIST_ENTRY(mgr_lock_holder) in_file, in_client;
	struct mgr_lock_file *f;
	struct mgr_lock_client *c;
	u64 owner;
	u8 kind;
	struct pvfs_lockset set;
};

/* A call that waits. */
struct mgr_lock_wait {
	TAILQ_ENTRY(mgr_lock_wait) in_file;	/* in the order they came */
	LIST_ENTRY(mgr_lock_wait) in_client;
	struct mgr_lock_file *f;
	struct mgr_lock_client *c;
	u64 owner;
	u8 kind;
	struct pvfs_lockrange want;
	bool barge;		/* may overtake others: they would wait for each other for ever */
	u64 mark;		/* search for a deadlock that has seen it */
};

/* A file that is locked or waited for. */
struct mgr_lock_file {
	LIST_ENTRY(mgr_lock_file) link;		/* in its bucket */
	u64 ino;
	LIST_HEAD(, mgr_lock_holder) holders;
	TAILQ_HEAD(mgr_lock_queue, mgr_lock_wait) waits;
};

/* A client that has to be told that a call of it is through. */
struct mgr_lock_grant {
	TAILQ_ENTRY(mgr_lock_grant) link;
	u64 session, ticket;
};

struct mgr_locks {
	pthread_mutex_t lock;			/* protects all but the counters; a leaf */
	LIST_HEAD(, mgr_lock_file) *bucket;
	LIST_HEAD(, mgr_lock_client) client[MGR_LOCK_CLIENTS];
	u32 max, max_session, count;		/* ranges and waiters */
	u64 marks;
	TAILQ_HEAD(mgr_lock_grants, mgr_lock_grant) grants;
	pthread_cond_t cond;			/* grants has something, or stop */
	bool stop;
	struct pvfs_server *server;
	pthread_t notifier[MGR_LOCK_NOTIFIERS];
	u32 nnotifiers;
	atomic_ullong granted, queued, deadlocks, refused, cancelled, told;	/* for statistics */
};

int mgr_locks_init(struct mgr_locks *l, u32 max, u32 max_session);
void mgr_locks_fini(struct mgr_locks *l);

/**
 * mgr_locks_set - LOCK, and its UNLOCK
 * @s: the session, referenced
 * @req: checked by the caller
 * @grace: others may have locks that they have not told yet
 * @reclaims: the session may have some, too
 * @state: filled with PVFS_LK_*
 *
 * Return: 0; -ENOLCK (limits, memory, or nothing to be reclaimed any more); -EINVAL (a ticket that
 * means another lock); -ESTALE (the session is dead).
 */
int mgr_locks_set(struct mgr_locks *l, struct mgr_session *s, const struct pvfs_lock_req *req,
		  bool grace, bool reclaims, u8 *state);

/* GETLK: the first lock that is in the way, by its start; @rep is all 0 when there is none. */
void mgr_locks_get(struct mgr_locks *l, u64 session, const struct pvfs_getlk_req *req,
		   struct pvfs_getlk_rep *rep);

/*
 * LOCK_CANCEL: the call does not wait any more, and what it was granted is unlocked unless KEEP
 * says otherwise. Return: was it granted?
 */
bool mgr_locks_cancel(struct mgr_locks *l, u64 session, const struct pvfs_lock_cancel_req *req);

/*
 * A truncation for session @s begins: nobody else may be appending from here on to the end. Return:
 * 0, -EAGAIN (somebody is), -ENOLCK, -ESTALE.
 */
int mgr_locks_truncate_begin(struct mgr_locks *l, struct mgr_session *s,
			     const struct pvfs_fid *fid);
void mgr_locks_truncate_end(struct mgr_locks *l, struct mgr_session *s, const struct pvfs_fid *fid);

/* Drops all that a session, which is dead, holds and waits for. */
void mgr_locks_sweep(struct mgr_locks *l, u64 session);

/*
 * Takes up to @max tickets, of one session, that their client is to be told of. Return: how many; 0
 * when there are none (@wait: only after the stop).
 */
u32 mgr_locks_grants(struct mgr_locks *l, u64 *session, u64 *tickets, u32 max, bool wait);

/* Threads that tell the clients through @server. */
int mgr_locks_start(struct mgr_locks *l, struct pvfs_server *server);
void mgr_locks_stop(struct mgr_locks *l);

#endif
