/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recall.h - requests that wait until others have given up their leases.
 *
 * A transaction that changes an inode notes it (mgr_lease_note()). If others have leases on one,
 * mgr_run() aborts it and the request ends with -EINPROGRESS; the server parks it here, holding no
 * thread, slot or lock, until each of them has answered a RECALL or its lease has expired, and then
 * executes it again from the start. Until that has ended nobody gets a lease on these inodes.
 *
 * A draft is a new file that its maker's session has not told all of yet, and a session that has a
 * WRITE lease on a file has not told all that it wrote. Who reads such an inode notes it as well
 * (mgr_draft_note()), and waits in the same way: until the lease is given up, however long that
 * takes, if it is a WRITE lease; the client answers RECALL with EAGAIN meanwhile.
 *
 * Who only wants to be told what a file under a WRITE lease is like need not take the lease away:
 * the session is asked to *settle* it, that is to write back what it has, with SETTLE. What had been
 * written when the request came is told if it waits until a SETTLE was answered that was sent after
 * that. So these go in rounds, one at a time for an inode: who comes while one is under way waits for
 * the next, with all others who do. A round has a number, which no other round of any manager has,
 * and the REPORT that ends it says it.
 *
 *       who comes        mgr_recall_park()      batch_add()            mgr_round_told(0),
 *      waits for it ---> (to be sent) --------------------> (sent) --- mgr_settled(), or the lease
 *                             ^          who comes waits for the next  ends (settle_drop())
 *                             +------ if anybody waits for it ------------+
 *
 * Who wants to be alone in a file (TURN) waits until each other session that has it open is out of it:
 * those are asked with YIELD, which has a round as well, and only one. It ends when the session says that
 * it is out, asks to be let in again, which says the same, or has the file not open any more.
 *
 * TURNs that wait, for whatever, stand in a line, one for each inode, in the order in which they came. Only
 * the first asks anybody for anything; the others wait until it leaves. It leaves when it has been answered
 * or refused, not when it is parked again: then the place goes with it. Other requests are in no line.
 *
 *       TURN     mgr_recall_park()                     first, all answered         mgr_recall_over(),
 *      comes  ----------------------> behind / first -----------------------> run ---> the next is run
 *                                           ^  mgr_recall_park(), the same place |     the session ends
 *                                           +------------------------------------+
 */
#ifndef PVFS_MGR_RECALL_H
#define PVFS_MGR_RECALL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "../common/msg.h"
#include "held.h"

struct mgr;
struct mgr_inode;
struct mgr_op;
struct mgr_parked;
struct pvfs_attr;
struct pvfs_call;

#define MGR_NOTED_MAX	8u	/* inodes that one transaction changes, and drafts that are read */
#define MGR_RECALL_BUCKETS 256u
#define MGR_IN_MAX 256u		/* sessions of an inode that are told to go out at once; the rest the next time */

/* An inode that a transaction changes, or a draft that is read. */
struct mgr_noted {
	u64 ino;
	bool change;
	bool own;		/* the asking session's lease goes too */
	bool settle;		/* it is only told of: a WRITE lease on it is settled, and stays */
	bool yield;		/* all others are to go out of it */
	bool writers;		/* only those of them that may write */
	bool line;		/* only that those before it in line are through */
};

/* Whose lease may stay; 0: nobody's. */
static inline u64 mgr_noted_exempt(const struct mgr_noted *n, u64 session)
{
	return n->own ? 0 : session;
}

struct mgr_recalls {
	pthread_mutex_t lock;	/* protects all but the counters */
	LIST_HEAD(, mgr_recall) bucket[MGR_RECALL_BUCKETS];	/* under way, by inode */
	LIST_HEAD(, mgr_bar) bar[MGR_RECALL_BUCKETS];
	TAILQ_HEAD(, mgr_parked) line[MGR_RECALL_BUCKETS];	/* those of several inodes in one */
	u32 n, unsent;		/* under way, of any kind; those of them that wait to be sent */
	u32 hand;		/* the bucket that those are sent from next that were answered EAGAIN */
	atomic_ullong born;	/* recalls that were begun, so that no answer is taken for a later one's */
	u64 round;		/* of the settle or yield that was begun last */
	pthread_cond_t cond;	/* n is not 0 any more, or stop */
	bool stop, running;
	pthread_t thread;	/* sends again, and gives up */
	/* sends RECALL, and calls mgr_recall_told() once if it returns 0; tests have their own */
	int (*send)(struct mgr *m, u64 session, const u64 *inos, u32 n);
	/* the same for SETTLE, and YIELD, and mgr_round_told() */
	int (*settle)(struct mgr *m, u64 session, u64 ino, u64 round);
	int (*yield)(struct mgr *m, u64 session, u64 ino, u64 round);
	/* executes the request again: server.c, tests */
	void (*resume)(struct mgr *m, struct pvfs_call *call, struct mgr_parked *p);
	atomic_uint barred;	/* inodes, so that others need not take the lock */
	atomic_uint settles, yields;	/* those of n that are, the same */
	atomic_uint lined;	/* in the lines, the same */
	/* for statistics */
	atomic_ullong recalled, write_recalled, write_settled, yielded, expired, parked;
};

/* @round: anything; for each manager another one */
void mgr_recalls_init(struct mgr_recalls *r, u64 round);
void mgr_recalls_fini(struct mgr_recalls *r);
/* The thread, and calls that are sent through m->server. */
int mgr_recalls_start(struct mgr *m);
/* Answers what is parked with -EAGAIN; nothing is parked from then on. */
void mgr_recalls_stop(struct mgr *m);

/**
 * mgr_lease_begin - the session may get a lease on @ino: call before the inode is read
 *
 * Return: whether it has one now.
 */
bool mgr_lease_begin(struct mgr_op *op, u64 ino);

/**
 * mgr_lease_attr - whether @attr, which go into a reply, may be believed: call after the inode was
 * read
 * @had: what mgr_lease_begin() said
 * @in: as read
 */
void mgr_lease_attr(struct mgr_op *op, bool had, const struct mgr_inode *in, struct pvfs_attr *attr);

/*
 * In a transaction: it changes this inode, so others' leases on it must go; with @own the asking
 * session's as well.
 */
void mgr_lease_note(struct mgr_op *op, u64 ino, bool own);
/*
 * @in is read for somebody: if it is another session's draft it must not stay one; and as long as
 * it may be one of a session that has yet to come back, nothing is told of it.
 */
void mgr_draft_note(struct mgr_op *op, const struct mgr_inode *in);
/* All other sessions, or those that may write, are to be out of the file before the request goes on. */
void mgr_yield_note(struct mgr_op *op, u64 ino, bool writers);
/* Who may write comes in: others' leases to read that last must go. */
void mgr_lasting_note(struct mgr_op *op, u64 ino);
/*
 * A TURN that may have to wait: is nobody before it in the inode's line? If somebody is, it is to end with
 * *@ret_err. Else, and wherever it is parked from here on, it has its place.
 */
bool mgr_line_first(struct mgr_op *op, u64 ino, int *ret_err);
/* May those that are in it, but @but, be asked to go out? Not who takes no leases. */
bool mgr_yield_may(struct mgr *m, u64 ino, u64 but, bool writers);
bool mgr_takes_leases(struct mgr *m, u64 session);
/*
 * After a restart: may it be a draft, or under a WRITE lease, of another session that has not said so
 * yet?
 */
bool mgr_draft_unsure(struct mgr_op *op, const struct mgr_inode *in);
/*
 * Before it commits, or when it has read. Return: 0, -EINPROGRESS (to be parked), -EAGAIN (nobody
 * knows who has one, and the request may not wait for that).
 */
int mgr_lease_check(struct mgr_op *op);

/**
 * mgr_recall_park - the request, whose execution said -EINPROGRESS and noted inodes, waits
 * @call: what resume() gets; taken unless it fails
 *
 * Return: 0, -ENOMEM, or -EAGAIN when the manager is about to end.
 */
int mgr_recall_park(struct mgr *m, const struct mgr_op *op, u64 session, struct pvfs_call *call);
/* The request has been executed again. */
void mgr_recall_over(struct mgr *m, struct mgr_parked *p);
/*
 * The session has told all there was to its draft. @recalled: it was asked to, and believes nothing
 * about the inode any more.
 */
void mgr_draft_over(struct mgr_op *op, u64 ino, bool recalled);

/**
 * mgr_write_begin - the session may get a WRITE lease on a file that it has opened for writing, or
 * keep the one it has
 *
 * Call when its open has been counted and the mark that it is written is durable or about to be, so
 * that nobody believes anything of it, and read what is told of it afterwards.
 *
 * Return: whether it has one, and may be told so.
 */
bool mgr_write_begin(struct mgr_op *op, u64 ino);
/* The same for one that is told after a restart. */
bool mgr_write_reclaim(struct mgr_op *op, u64 ino);
/* The session's draft, if it is one, has become striped: it has a WRITE lease. Return: as above. */
bool mgr_write_of_draft(struct mgr_op *op, u64 ino);
/* The session, which is in the file, may get a WRITE lease as all others are out. Return: it has one. */
bool mgr_write_turn(struct mgr_op *op, u64 ino);
/* It is out after all, and was not told: it has none. */
void mgr_write_back(struct mgr_op *op, u64 ino);
/*
 * The session, which is in the file, may get a lease to read that lasts, as who may write is out. Return: it has one; if
 * not, mgr_lasting_back() is to follow.
 */
bool mgr_lasting_turn(struct mgr_op *op, u64 ino);
/* It is out after all, and was not told: it has none. */
void mgr_lasting_back(struct mgr_op *op, u64 ino);
/* The session has gone out by itself. */
void mgr_lasting_over(struct mgr_op *op, u64 ino);
/* Has the session one that nobody waits for? */
bool mgr_write_told(struct mgr_op *op, u64 ino);
/* A session has one open for writing of the file less: with the last its WRITE lease goes. */
void mgr_write_trim(struct mgr_op *op, u64 ino, u64 session);
/* The session has written all, told of it, and given its WRITE lease up: a RECALL is answered. */
void mgr_write_over(struct mgr_op *op, u64 ino);
/* A RECALL was answered (0), or was not. */
void mgr_recall_told(struct mgr *m, u64 session, const u64 *inos, u32 n, int err);
/*
 * The same. @asked: mgr_recalls.born when it was asked: what has begun since is not answered by it, as the
 * session may have been granted something new in between.
 */
void mgr_recall_answered(struct mgr *m, u64 session, const u64 *inos, u32 n, int err, u64 asked);
/* recall_send.c: what struct mgr_recalls calls, but for tests. */
int mgr_send_recall(struct mgr *m, u64 session, const u64 *inos, u32 n);
int mgr_send_settle(struct mgr *m, u64 session, u64 ino, u64 round);
int mgr_send_yield(struct mgr *m, u64 session, u64 ino, u64 round);
/*
 * A SETTLE was answered (0: nothing is here that the iods have not, -EAGAIN: REPORT will say), or was not;
 * or a YIELD (0: the session is out).
 */
void mgr_round_told(struct mgr *m, u64 session, u64 ino, u64 round, int err);
/*
 * The session has written all that it had when this round began, and told of it, and if it was that of a
 * YIELD, is out. Others are ignored.
 */
void mgr_settled(struct mgr_op *op, u64 ino, u64 round);
/* Is the session, which has it open, out of the file, or asked to go? */
bool mgr_yield_due(struct mgr_op *op, u64 ino);
/* The session asks to be let in: it is out. */
void mgr_yield_came(struct mgr_op *op, u64 ino);
/* It is let in as it is: an answer that is on its way does not say any more that it is out. */
void mgr_yield_anew(struct mgr_op *op, u64 ino);
/* A WRITE lease may have ended: of such a one nothing is left to settle. */
void mgr_settle_trim(struct mgr *m, u64 ino, u64 session);
/* Does somebody wait until all leases on it are given up? */
bool mgr_recall_barred(struct mgr *m, u64 ino);
/* The same, of who is in no line; or is the session itself being asked? */
bool mgr_turn_barred(struct mgr *m, u64 ino, u64 session);
/* Was an inode settled for who waited for that? NULL: for nobody. */
bool mgr_recall_settled(const struct mgr_parked *p, u64 ino);
/* A session has one open of the file less: who has it not open has no lease that lasts, and need not go out. */
void mgr_open_trim(struct mgr *m, u64 ino, u64 session);
void mgr_yield_trim(struct mgr *m, u64 ino, u64 session);
/* Sends what must be sent again, gives up on what has expired. @now: monotonic ms. */
void mgr_recall_tick(struct mgr *m, u64 now);
/*
 * Who is being asked for the lease on @ino, or to go out of it, of sessions with a number behind @after, for HOLDERS.
 * Return: how many, perhaps more than @room.
 */
u32 mgr_recall_holders(struct mgr *m, u64 ino, u64 after, struct mgr_holder *ret, u32 room);
/* A session is over, with all its leases. */
void mgr_recall_session_end(struct mgr *m, u64 session);

#endif
