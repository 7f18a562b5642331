/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mgr.h - the manager's private structures and the calls between its files.
 *
 *   server.c    transport <-> mgr_execute(); the driver mgr_run()
 *   park.c      requests put aside in the middle      wait.c      what they wait for
 *   slot.c      exactly once
 *   op_*.c      one handler per operation of ops.def
 *   ns.c        names, inodes, entries: what the handlers share
 *   xattr.c     extended attributes, ACLs, and the permission check that uses them
 *   opens.c     who has what open, in memory          size.c     how long a file is
 *   locks.c     who has locked what, in memory        iodtab.c   calls to the iods
 *   leases.c    who may believe what, in memory       grant.c    who gets that, and waits for whom,
 *   recall.c    until others have given it back       recall_send.c  asked by messages
 *   session.c   sessions and their leases             evict.c    their ends, told to the iods
 *   head.c      stuffed files                         heads.c     where their bytes are
 *   reap.c      the thread behind unlink, truncate    recover.c   start and stop of all this
 *   grace.c     requests that wait for clients to come back
 *   settle.c    the thread that finds out sizes that nobody asks for
 *   path.c      what an inode is called, for the log
 *   schema.c    records                               mdb_*.c    the database
 *
 * A handler gets a decoded request and fills a reply; it knows nothing of connections. It may be
 * run again from the start (deadlock, recovery), so it changes memory only after, or undoes it
 * when, its transaction failed. Errors that never leave mgr/: -EDEADLK and -ERESTART (see mdb.h),
 * -EINPROGRESS (must ask the iods but runs where it may not block), -EUCLEAN (damaged record,
 * becomes EIO), -EREMCHG (has to be unstuffed first), -ENOLINK (a head's file has to be
 * written first). Lock order: top of server.c.
 */
#ifndef PVFS_MGR_MGR_H
#define PVFS_MGR_MGR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "../common/acl.h"
#include "../common/config.h"
#include "../common/log.h"
#include "../common/storeid.h"
#include "../common/stripe.h"
#include "../transport/transport.h"
#include "mdb.h"
#include "schema.h"
#include "opens.h"
#include "locks.h"
#include "leases.h"
#include "recall.h"
#include "heads.h"
#include "park.h"

#define MGR_NSLOTS	128u			/* of a session */
#define MGR_BODY_MAX	(PVFS_SYMLINK_MAX + 257u) /* bytes of the largest reply body we make */
#define MGR_SYMLINK_FORMAT 1
#define MGR_BG_MAX	5u			/* threads in the background */
#define MGR_XATTR_CAPS "security.capability"

struct mgr_op;
struct mgr_session;

/* ---- calls to the iods: the seam that lets tests do without any ---- */

/* One request to one iod. */
struct mgr_iocall {
	/* in */
	u32 iod;			/* index in the volume's table */
	u16 op;				/* PVFS_OP_GLIMPSE, HOLD, TRIM, FILL, REMOVE, EVICT or IOD_STATFS */
	struct pvfs_fid fid;
	u64 size;			/* TRIM */
	u32 hold_ms;			/* HOLD */
	const struct iovec *data;	/* FILL, @ndata pieces */
	u32 ndata;
	u64 session;			/* EVICT */
	/* out */
	int err;
	union {
		struct pvfs_glimpse_rep glimpse;
		struct pvfs_iod_statfs_rep statfs;
	};
};

struct mgr_iod_ops {
	/*
	 * Make @n calls at once and return when each has its answer or an error, at most about
	 * @timeout_ms later. An iod that is known to be down fails at once with -EHOSTDOWN.
	 */
	void (*call)(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms);
	/*
	 * The same without waiting: @done is called once when all have ended, on any thread, perhaps
	 * before this returns. @calls stay until then. May be NULL.
	 */
	void (*start)(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms,
		      void (*done)(void *done_arg), void *done_arg);
	/* Its address, false: not known yet; NULL: as configured. */
	bool (*addr)(void *arg, u32 iod, struct pvfs_addr *ret);
	/* Text ",\"iods\":[...]" for STATS; may be NULL. */
	void (*stats)(void *arg, FILE *f);
};

/* ---- the manager ---- */

/* Counters for STATS; relaxed atomics, never decremented. */
struct mgr_counters {
	atomic_ullong op[PVFS_OP_LIMIT], op_err[PVFS_OP_LIMIT];
	atomic_ullong retries;		/* transactions done again after a deadlock */
	atomic_ullong restarts;		/* requests done again after recovery in place */
	atomic_ullong replays;		/* ONCE requests answered from the stored reply */
	atomic_ullong offloaded;	/* requests handed to a worker */
	atomic_ullong glimpses;		/* files asked about */
	atomic_ullong trims;		/* truncations sent to iods */
	atomic_ullong reaped;		/* inodes whose datafiles were removed */
	atomic_ullong evicted;		/* sessions that expired */
};

struct mgr_sessions {
	pthread_rwlock_t lock;		/* protects the chains */
	struct mgr_session *by_id[1024], *by_client[1024];
	u32 n;
	/* one session is made at a time; held across its transaction */
	pthread_mutex_t open_lock;
	atomic_uint returning;		/* sessions with @returning set */
	atomic_uint returning_leases;	/* those of them that had leases */
	atomic_uint absent;		/* sessions with @absent set */
};

/* Who waits for the log to be flushed: wait.c. */
struct mgr_log {
	pthread_mutex_t lock;		/* protects the next three */
	pthread_cond_t cond;		/* the line is not empty, or stop */
	struct mgr_log_wait *line, **tail;
	bool stop, running;		/* running: fixed while requests are served */
	pthread_t thread;
	atomic_uint took_us;		/* a flush, lately */
	atomic_bool alone;		/* a request flushes by itself: one at a time */
	atomic_ullong flushes, released, most;	/* for statistics */
};

/* Requests that wait for clients to come back after a restart: grace.c. */
enum mgr_grace_of { MGR_GRACE_NONE, MGR_GRACE_LEASES, MGR_GRACE_LOCKS };

TAILQ_HEAD(mgr_graced_list, mgr_graced);

struct mgr_grace {
	pthread_mutex_t lock;		/* protects the next four */
	pthread_cond_t cond;		/* something waits, or need not any more, or stop */
	struct mgr_graced_list waiting;	/* in the order they came */
	u32 n;
	bool stop, running;
	u32 wait_ms;			/* at most; fixed, but by tests */
	pthread_t thread;
	/* executes the request again, which does not wait a second time: server.c, tests */
	void (*resume)(struct mgr *m, struct pvfs_call *call);
	atomic_ullong parked;		/* for statistics */
};

/* Files that are UNCERTAIN and have no writer any more: settle.c. */
#define MGR_SETTLE_MAX	16384u

struct mgr_settle {
	pthread_mutex_t lock;		/* protects the next five; a leaf */
	u64 ino[MGR_SETTLE_MAX];
	u32 n;
	bool walk, again;		/* there may be more behind inode @after; anywhere */
	u64 after;
	bool kicked;			/* protected by bg_lock */
	atomic_ullong settled;		/* for statistics */
};

struct mgr {
	/* fixed after mgr_core_open() */
	struct pvfs_conf *conf;		/* borrowed */
	struct mdb *db;
	const struct mgr_iod_ops *iod_ops;
	void *iod_arg;
	struct pvfs_key server_key;
	u8 uuid[PVFS_UUID_LEN];
	u8 hash_key[16];
	u32 niods;
	u64 epoch;
	struct pvfs_fid root;
	struct pvfs_layout root_layout;	/* as mkfs made it; SESSION_OPEN tells it */
	bool sessions_lost;		/* at this start; --check tells it */
	/* niods of them; host strings point into the configuration */
	struct pvfs_iodent *iodents;
	pthread_mutex_t iodents_lock;	/* protects their addresses */
	struct pvfs_server *server;	/* NULL in tests */

	struct mgr_sessions sessions;
	struct mgr_eviction *evictions;	/* that are under way: evict.c */
	struct mgr_opens opens;
	struct mgr_locks locks;
	struct mgr_leases leases;
	struct mgr_recalls recalls;
	struct mgr_heads heads;

	pthread_mutex_t ino_lock;	/* protects the next two */
	u64 ino_next, ino_end;		/* reserved and not yet given out */
	/* inodes in the table; wrong after a crash until they are counted */
	atomic_llong files;
	atomic_bool files_stale;	/* the last process did not leave in order: count them */
	atomic_uint base_next;		/* first iod of the next file */

	pthread_mutex_t rename_lock;	/* one directory at a time moves to another parent */

	/* monotonic ms: clients may still reclaim what they had open */
	_Atomic u64 grace_until;
	struct mgr_grace grace;
	struct mgr_settle settle;

	/* space on the store's disk, looked at now and then */
	_Atomic u64 space_checked;	/* monotonic ms */
	_Atomic u64 space_avail;	/* bytes */
	u64 space_reserve;		/* creating operations stop here */
	atomic_llong full_files;	/* how many there were when it was reached, 0: it is not */

	/* threads of reap.c, heads.c, session.c, recover.c, settle.c; protected by bg_lock */
	pthread_mutex_t bg_lock;
	pthread_cond_t bg_cond;
	bool bg_stop, reap_kicked;
	pthread_t bg[MGR_BG_MAX];
	u32 nbg;

	struct mgr_tasks tasks;		/* requests that run, or are parked in the middle */
	struct mgr_log log;

	struct mgr_counters count;
};

/* ---- one request ---- */

/*
 * The operations we serve: expands its argument for those lines of ops.def whose fourth field is
 * MGR.
 */
#define MGR_SERVED_ANY(...)
#define MGR_SERVED_IOD(...)
#define MGR_SERVED_CLIENT(...)
#define MGR_SERVED_MGR(...) __VA_ARGS__

union mgr_req {
#define PVFS_OP(num, NAME, name, by, flags) MGR_SERVED_##by(struct pvfs_##name##_req name;)
#include "../common/ops.def"
#undef PVFS_OP
};

union mgr_rep {
#define PVFS_OP(num, NAME, name, by, flags) MGR_SERVED_##by(struct pvfs_##name##_rep name;)
#include "../common/ops.def"
#undef PVFS_OP
};

/* The handlers. @op->s is the session, NULL only for NOSESS operations. Return: 0 or -errno. */
#define PVFS_OP(num, NAME, name, by, flags) \
	MGR_SERVED_##by(int mgr_op_##name(struct mgr_op *op, const struct pvfs_##name##_req *req, \
					  struct pvfs_##name##_rep *rep);)
#include "../common/ops.def"
#undef PVFS_OP

/* Table entry made of a line of ops.def (server.c). */
struct mgr_handler {
	const char *name;
	u8 flags;			/* PVFS_OPF_* */
	int (*decode)(struct mgr_op *op, const void *buf, size_t len);
	int (*handle)(struct mgr_op *op);
	int (*encode)(const struct mgr_op *op, void *buf, size_t room);
};

/**
 * struct mgr_op - a request while it is handled; also the background threads' ticket to the
 * database
 * @m: the manager
 * @s: session, referenced by the caller; NULL for none
 * @h: handler, NULL in the background
 * @nr: number of the operation
 * @slot: and @slot_seq: exactly once; seq 0: not asked for
 * @can_block: may wait for iods, being a task or on a thread of its own
 * @can_wait: may be put aside until the grace is over
 * @grace: what of it the request waits for, when it ended with -EINPROGRESS
 * @txn: the transaction that is open, NULL outside
 * @db_gen: generation of the database we entered
 * @need_sync: something was committed that must be durable before the reply
 * @stored: the reply is in the database, committed with the work
 * @final: the running transaction is the last: MGR_RUN_FINAL, or set by its function
 * @again: this is not the first run of the handler (recovery came between)
 * @now: wall clock at the start, for timestamps
 * @data: payload of the request, @data_len bytes, borrowed
 * @req: decoded request
 * @rep: reply being made
 * @body: encoded reply, @body_len bytes
 * @payload: malloc'ed by the handler or NULL, @payload_len bytes
 * @bind_session: session to bind to the connection, 0: none
 * @recalls: others' leases on what a transaction changes are recalled first: recall.h
 * @only_kept: but of leases only those of who keeps something back: a RECLAIM in the grace
 * @tells: it only tells what inodes are like: a WRITE lease on one is settled for it, and stays
 * @beside: it has read one that another has a WRITE lease on, which was settled
 * @outside: a RECLAIM of who is out of the file: others may keep back of it what they will
 * @parked: what it waited for until now, or NULL
 * @line: of a TURN that may have to wait: the inode in whose line it does that; else 0
 * @for_others: it opens a file for other sessions: what its own keeps back of it is recalled, too
 * @nclosed: a CLOSE has so many of its opens behind it
 * @headnew: the head's file that the running transaction has asked for, or NULL
 * @dropped: heads' files that it does away with
 * @noted: @nnoted inodes that the running transaction changes; @noted_all: there was room for all
 * @unsure: it has read what may be a draft that we have not been told of
 * @lost: the database was recovered while it waited: nothing more is done in this run
 * @gives_up: it does not wait for iods when the manager stops
 */
struct mgr_op {
	struct mgr *m;
	struct mgr_session *s;
	const struct mgr_handler *h;
	u16 nr, slot;
	u32 slot_seq;
	bool can_block, can_wait, need_sync, stored, final, again;
	enum mgr_grace_of grace;
	struct mdb_txn *txn;
	u64 db_gen;
	struct pvfs_ts now;
	const void *data;
	u32 data_len;
	const char *from;
	union mgr_req req;
	union mgr_rep rep;
	u32 body_len, payload_len;
	u8 *payload;
	u64 bind_session;
	struct mgr_headnew *headnew;
	struct mgr_headgone *dropped;
	struct mgr_parked *parked;
	u64 line;
	bool recalls, only_kept, tells, beside, outside, for_others, noted_all, unsure, lost, gives_up;
	u32 nclosed;
	u32 nnoted;
	struct mgr_noted noted[MGR_NOTED_MAX];
	u8 body[MGR_BODY_MAX];
};

static inline u64 mgr_op_session(const struct mgr_op *op);

/*
 * What mgr_execute() is asked, without any transport. @body and @data (the payload) are borrowed.
 */
struct mgr_request {
	u16 op, slot;
	u32 slot_seq;
	u64 session;
	const char *from;		/* the address it came from, for the log; or NULL */
	struct mgr_parked *parked;	/* what it waited for until now, borrowed, or NULL */
	const void *body, *data;
	u32 body_len, data_len;
	bool can_block, can_park, can_wait;
};

/**
 * mgr_execute - decode, run once, make durable, encode
 * @rq: the request
 * @op: scratch; on return body, payload (the caller frees it) and bind_session are the answer
 *
 * Return: 0; -EINPROGRESS when it must be executed again: with can_block, or, when @op has noted
 * inodes, after mgr_recall_park(), or, when it says what of the grace it waits for, after
 * mgr_grace_park(); or the error for the client.
 */
int mgr_execute(struct mgr *m, const struct mgr_request *rq, struct mgr_op *op);

/* Prepares an op for use by a background thread: it may block and has no session. */
void mgr_op_init_bg(struct mgr_op *op, struct mgr *m);

/* mgr_run() */
#define MGR_RUN_READ	0x1u	/* no transaction: @fn only reads */
#define MGR_RUN_SYNC	0x2u	/* the reply must wait until this is durable */
#define MGR_RUN_FINAL	0x4u	/* last one of the request: stores the reply when a slot is used */
#define MGR_RUN_GROWS	0x8u	/* refuse with -ENOSPC when the store's disk is nearly full */

/**
 * mgr_run - the one driver of transactions: begin, @fn, commit; again after a deadlock
 * @fn: does the work with op->txn; returns 0 to commit, -errno to abort
 *
 * Context: inside mgr_execute() or mgr_bg_run(). @fn must bear being called several times.
 *
 * Return: 0, @fn's error, or the database's.
 */
int mgr_run(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg,
	    unsigned int flags);
/* The same for what is not worth waiting for: in the grace it is -EAGAIN at once. */
int mgr_run_now(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg,
		unsigned int flags);

/**
 * mgr_bg_run - enter the database, call @fn, leave; again after recovery in place
 *
 * For threads of our own. @fn typically calls mgr_run() a few times.
 */
int mgr_bg_run(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg);
/* The same with an op of its own. Also -ENOMEM. */
int mgr_bg_do(struct mgr *m, int (*fn)(struct mgr_op *op, void *arg), void *arg);

/* ---- wait.c: inside the database, which is left meanwhile; no transaction is open ---- */

/* As iod_ops->call(). */
void mgr_iods_call(struct mgr_op *op, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms);
void mgr_pause(struct mgr_op *op, unsigned int ms);
/* Around a wait for a disk, on a task: no thread of the network does. Return: 0 or -ERESTART. */
int mgr_disk_begin(struct mgr_op *op);
void mgr_disk_end(void);
/* As mgr_opens_lock(). */
int mgr_file_lock(struct mgr_op *op, u64 ino, unsigned int timeout_ms);
/*
 * Until all that was committed is durable. Return: 0, or -ERESTART; may be 0 with @op lost, which
 * then is about what comes later.
 */
int mgr_log_wait(struct mgr_op *op);
void mgr_log_init(struct mgr_log *l);
void mgr_log_fini(struct mgr_log *l);
int mgr_log_start(struct mgr *m);
void mgr_log_stop(struct mgr *m);

/* ---- time ---- */
u64 mgr_mono_ms(void);
/* One whose timed waits go by the clock of mgr_mono_ms(). */
void mgr_cond_init(pthread_cond_t *c);
void mgr_wall_now(struct pvfs_ts *ret);
/*
 * A version larger than @old and than any that a crash may have lost: versions follow the clock
 * where they can.
 */
u64 mgr_version_after(u64 old);

/* ---- slot.c ---- */
enum mgr_slot_todo { MGR_SLOT_EXECUTE, MGR_SLOT_REPLAY };
int mgr_slot_begin(struct mgr_op *op, enum mgr_slot_todo *ret_todo);
/* In the final transaction: stores op->body. */
int mgr_slot_store(struct mgr_op *op);
void mgr_slot_end(struct mgr_op *op, int err);
/* Deletes the stored replies of a session in op->txn. */
int mgr_slots_del(struct mgr_op *op, u64 session);

struct mgr_slot {
	u32 seq;		/* of the last request that succeeded */
	u16 op;
	bool busy;		/* a request runs; its thread owns the fields below */
	bool here;		/* the request ran in this process: what it opened is registered */
	/* seq was compared with the database of this generation; 0: never */
	u64 db_gen;
	/* reply that is not in the database, malloc'ed; NULL: it is there */
	u8 *body;
	u32 body_len;
};

/* ---- session.c ---- */

/**
 * struct mgr_session - a client
 *
 * Referenced by the table while alive and by every request that runs. @dead is set once, before its
 * opens are swept.
 */
struct mgr_session {
	struct mgr_session *next_id, *next_client;	/* sessions.lock */
	u64 id;
	u8 client[PVFS_UUID_LEN];
	char host[PVFS_HOST_MAX + 1];
	atomic_uint refs;
	atomic_bool dead;
	/* from before the restart, and has not told yet all that it has open and locked */
	atomic_bool returning;
	/* from before the restart, and has given no sign of life since */
	atomic_bool absent;
	atomic_bool evicting;		/* evict.c has it: its record is not for SESSION_CLOSE */
	bool had_leases;		/* before the restart */
	atomic_bool leases;		/* it may be given leases */
	atomic_uint recalls;		/* RECALLs, SETTLEs and YIELDs that it has not answered */
	/* monotonic ms: when its orphans go that it has not open; 0: they stay */
	_Atomic u64 unclaimed;
	_Atomic u64 seen;		/* monotonic ms of the last sign of life */
	/* generation of the database that has its record; sessions.open_lock */
	u64 recorded;
	pthread_mutex_t lock;		/* protects slots[].busy, and the others while not busy */
	struct mgr_slot slots[MGR_NSLOTS];
};

static inline u64 mgr_op_session(const struct mgr_op *op)
{
	return op->s ? op->s->id : 0;
}

/* Takes a reference; NULL when there is none such or it is dead. */
struct mgr_session *mgr_session_lookup(struct mgr *m, u64 id);
/* The same, and no sign of life. */
struct mgr_session *mgr_session_peek(struct mgr *m, u64 id);
void mgr_session_put(struct mgr_session *s);
/* Finds or makes (durably) the session of client @client. Context: inside mgr_execute(). */
int mgr_session_open(struct mgr_op *op, const struct pvfs_session_open_req *req,
		     struct mgr_session **ret);
/*
 * Ends @s: opens, orphans, replies, record; with @keep the record stays, as that of a session that
 * was fenced. The caller keeps its reference.
 */
int mgr_session_end(struct mgr_op *op, struct mgr_session *s, bool keep);
/* In a transaction: the record says that it is evicted. 0 also when there is none. */
int mgr_session_mark(struct mgr_op *op, u64 id, bool fenced);
/* The record of an evicted session that all iods know of by now. Context: mgr_bg_run() is possible. */
int mgr_session_forget(struct mgr *m, u64 id);
/* @s has told all that it had before the restart, or ended. */
void mgr_session_returned(struct mgr *m, struct mgr_session *s);
/* A sign of life of one that the table had before the restart. */
void mgr_session_back(struct mgr *m, struct mgr_session *s);

/* ---- evict.c: the thread that expires sessions, and the start ---- */

/* @s, whose @dead is set, is to be ended. Takes the caller's reference, unless it is -ENOMEM. */
int mgr_evict_add(struct mgr *m, struct mgr_session *s);
/* The same for one that the process before us had begun with. */
int mgr_evict_resume(struct mgr *m, struct mgr_session *s, bool fenced);
/* Goes on with all of them. */
void mgr_evict_round(struct mgr *m);
void mgr_evict_fini(struct mgr *m);

int mgr_sessions_init(struct mgr *m);
int mgr_sessions_load(struct mgr_op *op);
int mgr_sessions_lost(struct mgr_op *op);
int mgr_sessions_advance(struct mgr_op *op, s64 now);
void mgr_sessions_fini(struct mgr *m);
void *mgr_expire_thread(void *arg);
/* One round of the expiry thread; for it and for tests. */
void mgr_sessions_expire(struct mgr *m);
bool mgr_in_grace(struct mgr *m);
/* May there be locks from before the restart that have not been told yet? */
bool mgr_locks_in_grace(struct mgr *m);
/* May there be leases from before the restart? */
bool mgr_leases_in_grace(struct mgr *m);

/* ---- grace.c ---- */

/*
 * The request can't be answered in the grace. Return: -EINPROGRESS (the handler ends with it, with
 * nothing done, and the request waits), or -EAGAIN (it may not).
 */
int mgr_grace_wait(struct mgr_op *op, enum mgr_grace_of of);
/**
 * mgr_grace_park - the request, whose execution said -EINPROGRESS and op->grace, waits
 * @call: what resume() gets; taken unless it fails
 *
 * Return: 0; -EAGAIN (too many wait, or the manager is about to end) or -ENOMEM.
 */
int mgr_grace_park(struct mgr *m, const struct mgr_op *op, u64 session, struct pvfs_call *call);
/* A session has come back or ended. */
void mgr_grace_kick(struct mgr *m);
void mgr_grace_init(struct mgr_grace *g);
void mgr_grace_fini(struct mgr_grace *g);
int mgr_grace_start(struct mgr *m);
/* Executes again what waits; nothing is put aside from then on. */
void mgr_grace_stop(struct mgr *m);

/* ---- ns.c ---- */
#define MGR_MAY_EXEC	PVFS_MAY_EXEC
#define MGR_MAY_WRITE	PVFS_MAY_WRITE
#define MGR_MAY_READ	PVFS_MAY_READ

int ns_name_check(const struct pvfs_str *name);
int ns_inode_get(struct mgr_op *op, u64 ino, u32 flags, struct mgr_inode *in);
int ns_fid_get(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags, struct mgr_inode *in);
int ns_dir_get(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags, struct mgr_inode *in);
int ns_inode_put(struct mgr_op *op, const struct mgr_inode *in);
int ns_inode_insert(struct mgr_op *op, const struct mgr_inode *in);
int ns_inode_del(struct mgr_op *op, const struct mgr_inode *in);

/* An entry as found. */
struct ns_entry {
	u64 cookie;		/* of the entry; when there is none: where it would go */
	struct pvfs_fid fid;
	u8 type;
};

int ns_entry_find(struct mgr_op *op, u64 dir, const struct pvfs_str *name, u32 flags,
		  struct ns_entry *e);
int ns_entry_add(struct mgr_op *op, u64 dir, const struct ns_entry *e, const struct pvfs_str *name,
		 const struct mgr_inode *in);
int ns_entry_del(struct mgr_op *op, u64 dir, u64 cookie);
/* The entry now names @in: what rename puts in place of the one it replaces. */
int ns_entry_set(struct mgr_op *op, u64 dir, u64 cookie, const struct pvfs_str *name,
		 const struct mgr_inode *in);
int ns_dir_empty(struct mgr_op *op, u64 dir);
int ns_loop_check(struct mgr_op *op, const struct mgr_inode *moved, const struct mgr_inode *ddir);

int ns_may_delete(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *dir,
		  const struct mgr_inode *victim);
/* May it do everything? Also who was checked by its client, by rules that go beyond uids. */
static inline bool ns_all_powerful(const struct pvfs_cred *cred)
{
	return !cred->uid || (cred->flags & PVFS_CRED_CHECKED);
}
bool ns_in_group(const struct pvfs_cred *cred, u32 gid);
void ns_kill_priv(struct mgr_inode *in, const struct pvfs_cred *cred);

/* ctime (and mtime) are now, the version grows. */
void ns_touch_ctime(struct mgr_op *op, struct mgr_inode *in);
void ns_touch_mtime(struct mgr_op *op, struct mgr_inode *in);
/* Gives an unused inode number, durably reserved. Outside of transactions. */
int ns_ino_alloc(struct mgr_op *op, struct pvfs_fid *ret);
void ns_inode_init(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_fid *fid,
		   const struct mgr_inode *dir, const struct pvfs_cred *cred, u32 mode);
/*
 * Layout of a new file: @want when its pcount is not 0, else the directory's; a concrete base is
 * chosen.
 */
int ns_layout_pick(struct mgr *m, const struct mgr_inode *dir, const struct pvfs_layout *want,
		   struct pvfs_layout *ret);
/* A directory's layout: as pvfs_layout_valid(), and base may be MGR_BASE_ANY. */
bool ns_layout_ok(const struct pvfs_layout *l, u32 niods);
/*
 * A name of @in was removed and nlink adjusted: writes it back, or sends it to the orphans, the
 * reaper, or away.
 */
int ns_inode_unlinked(struct mgr_op *op, struct mgr_inode *in, bool *ret_gone);
int ns_orphan_end(struct mgr_op *op, struct mgr_inode *in);
/* Attributes as the database knows them. */
u64 ns_blocks(const struct mgr_inode *in);
void ns_attr(const struct mgr_inode *in, struct pvfs_attr *attr);

static inline bool ns_str_is(const struct pvfs_str *s, const char *text)
{
	return s->len == strlen(text) && !memcmp(s->p, text, s->len);
}

/* ---- xattr.c ---- */
int mgr_xattr_read(struct mgr_op *op, const struct mgr_inode *in, const struct pvfs_str *name,
		   void *room, u32 size, u8 **ret);
int mgr_xattr_put(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_str *name,
		  const void *value, u32 len, u32 flags);
int mgr_xattr_del(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_str *name);
int mgr_xattr_del_all(struct mgr_op *op, const struct mgr_inode *in);
int mgr_xattr_walk(struct mgr_op *op, const struct mgr_inode *in,
		   int (*fn)(void *arg, const struct pvfs_str *name), void *arg);
int mgr_xattr_kill_caps(struct mgr_op *op, struct mgr_inode *in);
int mgr_acl_read(struct mgr_op *op, const struct mgr_inode *in, const char *name,
		 struct pvfs_acl *a);
int mgr_acl_set(struct mgr_op *op, struct mgr_inode *in, const char *name,
		const struct pvfs_acl *a);
int mgr_acl_chmod(struct mgr_op *op, struct mgr_inode *in);
int mgr_acl_inherit(struct mgr_op *op, const struct mgr_inode *dir, struct mgr_inode *in,
		    u32 umask);
int ns_may(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *in, u32 mask);

/* ---- size.c ---- */
/*
 * Attributes as @op's session should see them: asks the iods where it must. @report: what the
 * session's own writes did, or NULL. -EINPROGRESS when that needs blocking and op->can_block is not
 * set. Outside of transactions.
 */
int mgr_size_attr(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_wreport *report,
		  struct pvfs_attr *attr);
/*
 * The same for the reply of something that is committed: what goes wrong now must not make it look
 * failed, so @attr stays as the transaction filled it. Only -ERESTART comes out (and the reply is
 * replayed).
 */
int mgr_size_attr_after(struct mgr_op *op, struct mgr_inode *in, struct pvfs_attr *attr);
/* The same for many inodes at once; entries that are certain cost nothing. */
int mgr_size_attrs(struct mgr_op *op, struct mgr_inode *in, struct pvfs_attr *attrs, u32 n);
/* Folds what is known in memory into @in (a copy, or one about to be written). */
void mgr_size_fold(struct mgr_op *op, struct mgr_inode *in);
/* The last writer of @fid leaves: record size and times, if they can be known. */
int mgr_size_settle(struct mgr_op *op, const struct pvfs_fid *fid);
/* Write size and time that are known now to the database, if they differ. */
int mgr_size_record(struct mgr_op *op, const struct pvfs_fid *fid);

/* ---- settle.c ---- */
/* @ino may be UNCERTAIN, and has no writer, or will soon have none. Context: any. */
void mgr_settle_add(struct mgr *m, u64 ino);
/* How many are known; *@ret_walk: perhaps there are others. */
u32 mgr_settle_left(struct mgr *m, bool *ret_walk);
/* Return: how many it tried in vain, or -errno. For the thread and tests. */
int mgr_settle_pass(struct mgr *m);
void *mgr_settle_thread(void *arg);

/*
 * A file or directory was read, says a report (op_attr.c). Return: 0, also when it could not be
 * recorded, or -ERESTART.
 */
int mgr_atime(struct mgr_op *op, const struct pvfs_fid *fid, const struct pvfs_wreport *report);
/* The same, in a transaction. Return: 0, -ESTALE, or the database's error. */
int mgr_atime_set(struct mgr_op *op, const struct pvfs_fid *fid, const struct pvfs_ts *ts);

/* What the datafiles say together. */
struct mgr_glimpse {
	struct pvfs_fid fid;
	struct pvfs_layout layout;
	u64 known;		/* how long it was at least, before the iods are asked */
	/* of struct mgr_ofile, before the iods were asked */
	u64 doubt;
	u32 writers;
	u64 end;		/* of the file */
	u64 blocks;		/* 512-byte units */
	struct pvfs_ts wtime;
	bool complete;		/* every iod answered */
};
int mgr_glimpse(struct mgr_op *op, struct mgr_glimpse *g, u32 n);

/**
 * struct mgr_truncate - a size change under way (op_attr.c, op_open.c)
 * @fid: the file
 * @size: new size, bytes
 * @change: called in the first transaction with the inode, before the size is set: checks and other
 * changes
 * @finish: called in the last transaction with the inode as it is after: fills the reply
 * @arg: for both
 * @in: the inode as it is after
 */
struct mgr_truncate {
	struct pvfs_fid fid;
	u64 size;
	int (*change)(struct mgr_op *op, struct mgr_inode *in, void *arg);
	void (*finish)(struct mgr_op *op, const struct mgr_inode *in, void *arg);
	void *arg;
	struct mgr_inode in;
	/* mgr_truncate()'s own */
	u64 old_size;
	struct pvfs_ts old_mtime, old_ctime;
	bool exact, need_trim, shared;
};
/*
 * -EAGAIN: an iod did not answer; the size is changed and the cut goes on behind; ask again with
 * the same slot.
 */
int mgr_truncate(struct mgr_op *op, struct mgr_truncate *t);
/* Completes a truncation that an earlier request or process left. 0 also when there is none. */
int mgr_trim_finish(struct mgr_op *op, u64 ino);

/* ---- head.c ---- */
/*
 * In a transaction: the head of @in, which is STUFFED, becomes @size bytes long, and so does @in;
 * what is added is zero. With @len bytes of @data at @off, if @len is not 0.
 */
int mgr_head_change(struct mgr_op *op, struct mgr_inode *in, u64 size, const void *data, u32 off,
		    u32 len);
/*
 * The head of @in, of which the session has had a lease since before it was read, goes along with
 * the reply, if it is not too long. Return: 0, also without, -ERESTART or -EDEADLK.
 */
int mgr_head_eager(struct mgr_op *op, const struct mgr_inode *in);

/**
 * mgr_head_known - the session of an operation has given its WRITE lease on a file up
 * @op: the operation
 * @ino: the file
 *
 * If it is stuffed, and nobody has one any more, that is written down, without being waited for.
 */
void mgr_head_known(struct mgr_op *op, u64 ino);
/* In a transaction: whoever keeps back bytes of @in, which is STUFFED, has a WRITE lease; nobody else knows it. */
int mgr_head_behind(struct mgr_op *op, struct mgr_inode *in);
/* Can a STUFFED file stay so when bytes @off .. @end are written? */
bool mgr_head_fits(const struct mgr_inode *in, u64 off, u64 end);
/**
 * mgr_unstuff - make a file that may be STUFFED a striped one
 * @ret: the inode as it is after
 *
 * Context: outside of transactions.
 *
 * Return: 0, -EINPROGRESS when it needs blocking and may not, -EAGAIN when an iod does not answer,
 * -ENOSPC or -EDQUOT when one is full, or the database's error; the file is whole in any case.
 */
int mgr_unstuff(struct mgr_op *op, const struct pvfs_fid *fid, struct mgr_inode *ret);

/* ---- op_attr.c ---- */

/*
 * Checks and makes every change that @req asks for, but that of the size; writes up to @wtime are
 * accounted for.
 */
int mgr_setattr_apply(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_setattr_req *req,
		      const struct pvfs_ts *wtime);

/* ---- op_name.c ---- */

/**
 * struct mgr_make - a new entry with a new inode
 * @cred: who asks
 * @dir: and @name: where; without a name it belongs to no directory, @made has opened it, and it
 *   goes with the last open
 * @mode: type and permission bits
 * @umask: taken off @mode where the directory has no default ACL
 * @iflags: MGR_IF_* to start with
 * @written: it is opened for writing
 * @striped: it is not to be stuffed
 * @rdev: of devices
 * @target: of a symbolic link, else NULL
 * @data: and @len: bytes of a file that is stuffed, with 0 none; borrowed
 * @layout: wanted for a file, NULL or pcount 0: the directory's
 * @fid: from ns_ino_alloc()
 * @in: the new inode
 * @found: on -EEXIST the entry that is there
 * @made: called last in the transaction, may be NULL: fills the reply
 */
struct mgr_make {
	const struct pvfs_cred *cred;
	const struct pvfs_fid *dir;
	const struct pvfs_str *name;
	u32 mode, umask, iflags;
	bool written, striped;
	u64 rdev;
	const struct pvfs_str *target;
	const void *data;
	u32 len;
	const struct pvfs_layout *layout;
	struct pvfs_fid fid;
	struct mgr_inode in;
	struct ns_entry found;
	bool picked;
	struct pvfs_layout pick;
	int (*made)(struct mgr_op *op, struct mgr_make *mk);
	void *arg;
};
/*
 * One entry more in @dir, which was read with MDB_RMW and may be searched; the caller touches it and
 * puts it. Return: 0; -EEXIST and -EREMCHG (the bytes do not fit) with nothing done; or another
 * error, and the transaction has to end.
 */
int mgr_make_in(struct mgr_op *op, struct mgr_make *mk, struct mgr_inode *dir);
/* For mgr_run(): @arg is a struct mgr_make. */
int mgr_make_fn(struct mgr_op *op, void *arg);
/* Checks, allocates the number, runs mgr_make_fn() and counts the file. */
int mgr_make(struct mgr_op *op, struct mgr_make *mk);

/* ---- op_open.c, also used to replay CREATE after a restart ---- */
int mgr_open_again(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags);
/* What a file opened with @flags gives a right to: PVFS_CAP_*. */
u32 mgr_cap_rights(u32 flags);
/* May @cred open @in with @flags (PVFS_O_*)? Return: 0 or -EACCES. */
int mgr_open_may(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *in,
		 u32 flags);
/* Of an OPEN_SHARED: the payload again, and, unless it is known @here, what was opened. */
int mgr_open_shared_again(struct mgr_op *op, const struct pvfs_open_shared_rep *rep, bool here);
/*
 * The session's last open of @ino is gone: drops its orphan record, and the inode if that was the
 * last.
 */
int mgr_orphan_release(struct mgr_op *op, u64 ino, u64 session);

/* ---- reap.c ---- */
void mgr_reap_kick(struct mgr *m);
void *mgr_reap_thread(void *arg);
/* One pass over the queues. Return: number of entries that could not be done now, or -errno. */
int mgr_reap_pass(struct mgr *m);
int mgr_count_table(struct mgr_op *op, enum mdb_table tab, u64 limit, u64 *ret);

/* ---- path.c ---- */
#define MGR_PATH_ROOM 900u		/* a line of the log has no room for more */

/* An entry that names @ino: in directory @dir, 0: none was found. */
struct mgr_found {
	u64 ino, dir;
	char name[PVFS_NAME_MAX + 1];
};
/* Looks for entries of @n inodes, through the whole volume. 0, -ECANCELED (we stop), or -errno. */
int mgr_find_names(struct mgr *m, struct mgr_found *f, u32 n);
/* For people: from the root, or the end of that. 0, -ECANCELED, or -errno. */
int mgr_path(struct mgr *m, const struct mgr_found *f, char path[MGR_PATH_ROOM]);

/* ---- iodtab.c ---- */
struct mgr_iodtab;
int mgr_iodtab_open(const struct pvfs_conf *conf, const struct pvfs_key *server_key,
		    struct mgr_iodtab **ret);
void mgr_iodtab_close(struct mgr_iodtab *t);
extern const struct mgr_iod_ops mgr_iodtab_ops;
int mgr_iodents_make(struct mgr *m);
/* Writes the table. -EAGAIN: one has no address yet. */
int mgr_iodents_put(struct mgr *m, struct pvfs_wire *w);

/* ---- recover.c ---- */
/**
 * mgr_core_open - everything below the transport
 * @conf: borrowed until mgr_core_close()
 * @iod_ops: and @iod_arg: how iods are called
 * @ret: the manager, its threads not started
 *
 * The caller holds the store's lock and has checked its mark.
 *
 * Return: 0 or -errno; @err gets a line for the user.
 */
int mgr_core_open(struct pvfs_conf *conf, const struct pvfs_key *server_key,
		  const struct mgr_iod_ops *iod_ops,
		  void *iod_arg, struct mgr **ret, char *err, size_t errlen);
int mgr_core_start(struct mgr *m);	/* the threads in the background */
void mgr_core_stop(struct mgr *m);
void mgr_core_close(struct mgr *m);	/* NULL is fine */
/* For threads of our own: waits until @deadline (monotonic ms) or the stop. Return: stop. */
bool mgr_bg_wait(struct mgr *m, u64 deadline);
/* The same until @kicked, which is made false; or a second when something is @left to be done. */
bool mgr_bg_wait_kick(struct mgr *m, bool *kicked, bool left);
void mgr_bg_kick(struct mgr *m, bool *kicked);
/* How many inodes there are, for df. */
u64 mgr_files(struct mgr *m);
/*
 * May a transaction begin? @grows: it adds to the tables. 0, -ENOSPC, or the database's error.
 * Inside mdb_enter(), outside of transactions.
 */
int mgr_space_check(struct mgr *m, bool grows);
/* Is there room for one more draft, whose bytes come when nobody waits to be told that there is none? Inside mdb_enter(). */
bool mgr_space_for_draft(struct mgr *m);
/* Bytes of the disk that new inodes may still take. */
u64 mgr_space_left(struct mgr *m);

/* ---- mkfs.c ---- */
/**
 * mgr_mkfs - make the manager's store of a new volume
 * @conf: names it
 *
 * Return: 0, -EEXIST (it is there already), or -errno; @err gets a line for the user.
 */
int mgr_mkfs(const struct pvfs_conf *conf, char *err, size_t errlen);
/* The root directory of a new volume. */
void mgr_mkfs_root(const struct pvfs_conf *conf, struct mgr_inode *root);
/**
 * mgr_salvage - make a new store of what is readable in the volume's, which may be damaged
 * @newdir: made; must be new or empty
 * @report: gets what was found, and a line for each thing that is lost
 *
 * Nothing else uses the store (the caller has its lock).
 *
 * Return: 0, or -errno and a line for the user in @err.
 */
int mgr_salvage(const struct pvfs_conf *conf, const char *newdir, FILE *report, char *err,
		size_t errlen);
/* Path of the database within a store. */
int mgr_db_dir(const struct pvfs_conf *conf, char *buf, size_t n);

/* ---- check.c ---- */
struct mgr_check_result {
	u64 inodes, dirs, entries, orphans, reap, problems;
};
/*
 * Walks the tables and reports every disagreement, a line each, to @f (may be NULL). Nothing else
 * may run.
 */
int mgr_check(struct mgr *m, FILE *f, struct mgr_check_result *ret);

/* ---- server.c ---- */
extern const struct pvfs_server_ops mgr_server_ops;
void mgr_offload(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked);
/* The same for what has waited for the end of the grace. */
void mgr_offload_waited(struct mgr *m, struct pvfs_call *call);
int mgr_workers_start(struct mgr *m, u32 n);
void mgr_workers_stop(struct mgr *m);
void mgr_stats(struct mgr *m, FILE *f);

#endif
