/* SPDX-License-Identifier: GPL-2.0 */
/*
 * iod.h - what the files of the I/O daemon share.
 *
 *     op_io.c  op_list.c  op_meta.c    one handler per operation; durable.c: what waits for the disk
 *          \     |     /
 *          server.c               dispatch, payload memory, statistics; start and stop
 *         /    |    \
 *  bufmgr  capcache  sched        buffers, rights, threads that may wait for a disk;
 *  evict  fence  hold  loss       sessions that have none any more; datafiles that are being cut;
 *                                 how often a sync failed
 *              |
 *           fdcache               open datafiles
 *              |
 *            store                store_posix, store_null
 */
#ifndef PVFS_IOD_H
#define PVFS_IOD_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "../common/config.h"
#include "../transport/transport.h"
#include "../transport/bufmgr.h"
#include "capcache.h"
#include "evict.h"
#include "fdcache.h"
#include "fence.h"
#include "hold.h"
#include "loss.h"
#include "sched.h"
#include "store.h"

/* What was done, for STATS. Relaxed: no order between them is promised. */
struct iod_counts {
	_Atomic u64 bytes_read, bytes_written, bytes_copied;
	_Atomic u64 by_sendfile, by_copy;	/* replies to READ with bytes */
	_Atomic u64 read_ahead;			/* stretches read before they were asked for */
	_Atomic u64 handed_over;		/* requests that went to sched.c */
	_Atomic u64 held;			/* requests that waited for a cut */
	_Atomic u64 no_space;			/* ENOSPC or EDQUOT given to a client */
	_Atomic u64 sync_failed;
};

#define iod_count(counter, n) atomic_fetch_add_explicit(&(counter), n, memory_order_relaxed)

/*
 * Limits that were chosen by measurement, variable so that a benchmark can measure them again. Set
 * before iod_start(), constant afterwards.
 */
struct iod_tuning {
	u32 sendfile_min;	/* replies of so many bytes leave by sendfile, smaller are copied */
	u32 read_ahead;		/* bytes that are read ahead of a sequential reader; 0: none */
};

extern struct iod_tuning iod_tuning;

#define IOD_SYNC_LOCKS 64u

/* A REMOVE that is done, but not yet durable. */
struct iod_removal {
	struct iod_removal *next;
	struct pvfs_call *call;
	struct pvfs_fid fid;
};

/* A TRIM that has begun. */
struct iod_trim {
	LIST_ENTRY(iod_trim) link;
	struct pvfs_call *call;
	struct pvfs_fid fid;
	u64 size;
	bool over;	/* one that began later has been done */
};

struct iod {
	u32 index, io_max;
	u64 boot;		/* hash of the machine's boot and the store: see iod_verifier() */
	_Atomic u32 inside;	/* engine threads inside writes and SLOW operations */
	u32 slow_max, write_max;	/* so many of them may be there when another one enters */
	struct iod_store *store;
	struct iod_fds *files;
	struct pvfs_bufs *bufs;
	struct iod_caps *caps;
	struct iod_fence *fence;
	struct iod_loss *loss;
	struct iod_sched *sched;
	struct iod_evictor *evictor;
	struct iod_holds *holds;
	pthread_mutex_t sync_lock[IOD_SYNC_LOCKS];	/* one sync of a datafile at a time; by ino */
	pthread_mutex_t cut_lock[IOD_SYNC_LOCKS];	/* one TRIM of a datafile at a time; by ino */
	pthread_mutex_t trim_lock;			/* protects the next; taken last */
	LIST_HEAD(, iod_trim) trims;			/* the one that began last first */
	pthread_mutex_t removal_lock;			/* protects the next two */
	struct iod_removal *removals;
	bool removing;					/* a thread of sched.c sees to them */
	struct pvfs_engine *engine;
	_Atomic(struct pvfs_server *) server;
	struct iod_counts counts;
};

/*
 * The verifier of WRITE and FSYNC replies: changes when unsynced data may have been lost, by the
 * machine's going down or by a sync that failed, also one of a daemon that served the store before.
 * The daemon's own end loses nothing: the bytes are the kernel's by then.
 */
static inline u64 iod_verifier(struct iod *iod)
{
	return iod->boot + iod_loss_count(iod->loss) * 0x9e3779b97f4a7c15ull;
}

/* The handlers. Each takes the call and answers it, maybe later on a thread of sched.c. */
void iod_op_read(struct iod *iod, struct pvfs_call *call);
void iod_op_write(struct iod *iod, struct pvfs_call *call);
void iod_op_read_list(struct iod *iod, struct pvfs_call *call);
void iod_op_write_list(struct iod *iod, struct pvfs_call *call);
void iod_op_fsync(struct iod *iod, struct pvfs_call *call);
void iod_op_hold(struct iod *iod, struct pvfs_call *call);
void iod_op_trim(struct iod *iod, struct pvfs_call *call);
void iod_op_glimpse(struct iod *iod, struct pvfs_call *call);
void iod_op_remove(struct iod *iod, struct pvfs_call *call);
void iod_op_space(struct iod *iod, struct pvfs_call *call);
void iod_op_copy(struct iod *iod, struct pvfs_call *call);
void iod_op_seek(struct iod *iod, struct pvfs_call *call);
void iod_op_evict(struct iod *iod, struct pvfs_call *call);
void iod_op_fill(struct iod *iod, struct pvfs_call *call);
void iod_op_iod_statfs(struct iod *iod, struct pvfs_call *call);

/**
 * iod_enter - may this engine thread do something that can wait for the disk?
 * @max: iod->slow_max or iod->write_max
 *
 * Return: true, and iod_leave() is due; false: too many do so already, the request is for sched.c,
 * so that some threads stay free for what does not wait.
 */
static inline bool iod_enter(struct iod *iod, u32 max)
{
	if (atomic_fetch_add(&iod->inside, 1) < max)
		return true;
	atomic_fetch_sub(&iod->inside, 1);
	return false;
}

static inline void iod_leave(struct iod *iod)
{
	atomic_fetch_sub(&iod->inside, 1);
}

/* Has @fn called with @call by a thread of sched.c, where it may wait. */
void iod_hand_over(struct iod *iod, struct pvfs_call *call, iod_handler fn);

/* Answers without a body. */
void iod_fail(struct pvfs_call *call, int err);

/* durable.c */

/**
 * iod_sync - what was written to @e is on stable storage, and so is its name
 *
 * May wait for the disk, and for another thread that syncs the same datafile, and then shares what
 * that one did. When it fails the verifier has changed, and one line was logged.
 */
int iod_sync(struct iod *iod, struct iod_fdent *e, bool datasync);
/* Answers REMOVE when it is on stable storage that @fid has no datafile. Does not wait. */
void iod_removed(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid);

/* op_io.c */

/* One log line for what only a broken or hostile client does. */
int iod_check_cap(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid,
		  const struct pvfs_cap *cap, u32 want);
/* All of it, or an error; bytes before the place of the error may have been taken. */
int iod_write_all(struct iod *iod, struct iod_fdent *e, u8 *p, u32 len, u64 off);
/* What replies tell of the store's room. */
u64 iod_room(struct iod *iod);
/* Answers a WRITE; SPACE, COPY and WRITE_LIST are answered with the same. */
void iod_reply_write(struct iod *iod, struct pvfs_call *call, u64 verifier);
/* The same when it failed. @off: for the log */
void iod_write_failed(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid, u64 off,
		      int err);

/**
 * iod_start - everything but main(): buffers, caches, threads, listening
 * @conf: read and checked; borrowed until iod_stop()
 * @index: which of its iods this is, below niods
 * @store: taken, also on failure
 * @ret_iod: on success; give to iod_stop()
 * @err, @errlen: on failure one line for the user
 *
 * Return: 0 or -errno.
 */
int iod_start(const struct pvfs_conf *conf, u32 index, struct iod_store *store,
	      struct iod **ret_iod, char *err, size_t errlen);

/* Finishes what was accepted, at most @grace_ms, then frees all. NULL is fine. */
void iod_stop(struct iod *iod, unsigned int grace_ms);

#endif
