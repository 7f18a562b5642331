/* SPDX-License-Identifier: GPL-2.0 */
/*
 * opens.h - who has which file open, and what their writes are known to have done. In memory only:
 * after a restart the clients say it again (RECLAIM).
 */
#ifndef PVFS_MGR_OPENS_H
#define PVFS_MGR_OPENS_H

#include <pthread.h>
#include <stdatomic.h>
#include "../common/msg.h"
#include "held.h"

struct mgr_session;

#define MGR_OPEN_STRIPES 64u
#define MGR_OPEN_BUCKETS 16384u		/* a power of two, a multiple of the stripes */

/* One session's opens of one file. */
struct mgr_open {
	struct mgr_open *next;
	struct mgr_held held;
	u64 session;
	u32 n[4];		/* by PVFS_O_READ | PVFS_O_WRITE */
	u32 closing;		/* closes of writers that have begun and not ended */
	bool reclaimed;		/* it was open before a restart, for the same session */
	bool out;		/* the session is out of the file: it asks before it reads or writes */
	bool answered;		/* its last TURN was */
	u64 seq;		/* of that; 0: there was none */
};

/**
 * struct mgr_ofile - a file that is open, being truncated, or both
 *
 * All fields are protected by the lock of its stripe. It exists while it has opens or waiters.
 *
 * What writes did is known completely ("tracked") when every writer that left has reported, and
 * every writer that is here will: then the size needs no question to the iods once the others are
 * gone. A report under another truncation generation, a writer that died, and a restart end that; a
 * glimpse that every iod answered begins it again, if nothing ended it since the glimpse began.
 */
struct mgr_ofile {
	struct mgr_ofile *next;
	u64 ino;
	u32 users;		/* who is in mgr_opens_lock(), waiting or not */
	struct mgr_opens_wait *waits;	/* those of them that are tasks and wait */
	bool busy;		/* held by mgr_opens_lock() */
	bool orphan;		/* unlinked while open */
	bool tracked;
	u64 doubt;		/* another number whenever tracked ends; never 0 */
	u32 gen;		/* trunc_gen that end belongs to */
	u64 end;		/* bytes */
	struct pvfs_ts wtime;
	bool sparse;		/* @blocks is not what the size says: a write ends being tracked */
	u64 blocks;
	u64 version;		/* grows with end and wtime; 0: they say nothing new */
	struct mgr_open *opens;
};

struct mgr_opens {
	struct {
		pthread_mutex_t lock;
		pthread_cond_t cond;	/* an mgr_ofile's busy became false */
	} stripe[MGR_OPEN_STRIPES];
	struct mgr_ofile **bucket;	/* bucket i is protected by stripe i % MGR_OPEN_STRIPES */
	struct mgr_helds of;		/* the opens of each session */
	atomic_ullong files;		/* for statistics */
	atomic_ullong doubts;		/* the last mgr_ofile.doubt */
};

/* What a reader of size and times needs to know, all from one moment. */
struct mgr_opens_view {
	u32 writers;		/* sessions that have it open for writing */
	bool self, others;	/* is the asking session among them; are others */
	bool last;		/* nobody has it open for writing but for closes under way */
	bool open;		/* the asking session has it open in any way */
	bool open_elsewhere;	/* another has */
	bool in_elsewhere;	/* another has, and is not out of it */
	bool writers_in;	/* such a one has it open for writing */
	bool out;		/* as in the asking session's struct mgr_open */
	bool reclaimed;		/* the asking session has had it open since before a restart */
	bool orphan, tracked;
	bool sparse;
	u32 gen;
	u64 end, version, blocks;
	u64 doubt;
	struct pvfs_ts wtime;
};

int mgr_opens_init(struct mgr_opens *o);
void mgr_opens_fini(struct mgr_opens *o);

/**
 * mgr_opens_add - count opens of a session
 * @flags: PVFS_O_*
 * @count: how many; @set: make it exactly so many, for RECLAIM, with PVFS_O_OUT in or out, unless a TURN has come
 *
 * Who had it not open is in, who had stays what it is.
 *
 * Call before the inode is read, so that an unlink which does not see this open has made itself
 * seen to that read.
 *
 * Return: 0, -ENOMEM, -ESTALE when the session is dead.
 */
int mgr_opens_add(struct mgr_opens *o, struct mgr_session *s, u64 ino, u32 flags, u32 count,
		  bool set);

/* A session's open, told by RECLAIM, is one that it had all the time. */
void mgr_opens_reclaimed(struct mgr_opens *o, u64 session, u64 ino);

/*
 * Takes one open back. Return: true when it was the session's last of an orphan. Unknown ones are
 * ignored.
 */
bool mgr_opens_del(struct mgr_opens *o, u64 session, u64 ino, u32 flags);

/*
 * A close of a writer begins: merges its report. Return: true when no writer is left after the
 * closes that have begun. mgr_opens_close_end() follows in every case and is the mgr_opens_del() of
 * it.
 */
bool mgr_opens_close_begin(struct mgr_opens *o, u64 session, u64 ino, u32 flags,
			   const struct pvfs_wreport *r);
bool mgr_opens_close_end(struct mgr_opens *o, u64 session, u64 ino, u32 flags);

/*
 * A TURN with this number has come: the session is out, unless it has a WRITE lease (@writes). Return: 0;
 * 1: it was answered before, nothing is done; -EBADF: not open; -EINVAL: there was a later one. *@fresh: it
 * is none that has come before.
 */
int mgr_opens_turn(struct mgr_opens *o, u64 ino, u64 session, u64 seq, bool writes, bool *fresh);
/*
 * In the middle of it: the session is in, or is out again as it comes to nothing. Return: false, with nothing
 * done, when it is over: it was answered, there is a later one, or none is open.
 */
bool mgr_opens_turn_in(struct mgr_opens *o, u64 ino, u64 session, u64 seq, bool in);
/* It is answered. Return: false: the session has gone out meanwhile, or the same as above. */
bool mgr_opens_turn_end(struct mgr_opens *o, u64 ino, u64 session, u64 seq);
/* It has gone out of the file. */
void mgr_opens_out(struct mgr_opens *o, u64 ino, u64 session);
/*
 * Sessions but @but that have it open and are not out of it; @writers: for writing. Return: how many, perhaps
 * more than @room.
 */
u32 mgr_opens_in(struct mgr_opens *o, u64 ino, u64 but, bool writers, u64 *ids, u32 room);

void mgr_opens_view(struct mgr_opens *o, u64 ino, u64 session, struct mgr_opens_view *v);

/* Merges what a session says about its writes. */
void mgr_opens_report(struct mgr_opens *o, u64 session, u64 ino, const struct pvfs_wreport *r);
/*
 * Merges what all iods said and @in has taken in. @doubt: as a view had it before they were asked.
 */
void mgr_opens_learn(struct mgr_opens *o, const struct mgr_inode *in, const struct pvfs_ts *wtime,
		     u64 doubt);
/*
 * The first writer came (@tracked) or a truncation set the size: forget what was known. @in: as it
 * is about to be recorded.
 */
void mgr_opens_reset(struct mgr_opens *o, const struct mgr_inode *in, bool tracked);
void mgr_opens_orphan(struct mgr_opens *o, u64 ino);

/* Sessions that have @ino open; malloc'ed array in *@ret. Return: how many or -ENOMEM. */
int mgr_opens_who(struct mgr_opens *o, u64 ino, u64 **ret);

/*
 * Who has @ino open, of sessions with a number behind @after, for HOLDERS. Return: how many, perhaps
 * more than @room.
 */
u32 mgr_opens_holders(struct mgr_opens *o, u64 ino, u64 after, struct mgr_holder *ret, u32 room);

/*
 * Drops all opens of a session that is dead. Costs what it had open. @wrote is called for each file
 * that it had open for writing, with no lock held; may be NULL.
 */
void mgr_opens_sweep(struct mgr_opens *o, u64 session, void (*wrote)(void *arg, u64 ino), void *arg);

/*
 * One truncation at a time: a lock that is held across calls to the iods. A task parks, and must be
 * outside of the database unless @timeout_ms is 0: mgr_file_lock(). Return: 0, -EAGAIN after
 * @timeout_ms, -ENOMEM.
 */
int mgr_opens_lock(struct mgr_opens *o, u64 ino, unsigned int timeout_ms);
void mgr_opens_unlock(struct mgr_opens *o, u64 ino);

#endif
