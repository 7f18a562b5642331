/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fdcache.h - open datafiles, found by fid, least recently used ones closed first.
 *
 * Also remembers which fids were removed lately, so that a write that comes late does not bring a
 * removed datafile back. Any thread; get and remove may wait for the disk, the rest does not.
 *
 * What was written and not synced stays open until it is on stable storage: the kernel tells of a
 * failure whoever had the file open then, and forgets it with the file.
 */
#ifndef PVFS_IOD_FDCACHE_H
#define PVFS_IOD_FDCACHE_H

#include <stdatomic.h>
#include <stdio.h>
#include <sys/queue.h>
#include "store.h"

struct iod_fds;
struct iod_fds_stripe;
struct iod_sched;

/* A cached open datafile. Whoever holds a reference may use ->file. */
struct iod_fdent {
	struct iod_file file;
	struct iod_fds_stripe *stripe;
	/* op_io.c's, about sequential reading: hints, each right or wrong by itself */
	_Atomic u64 seq_end;			/* where the last read ended */
	_Atomic u64 ahead_end;			/* how far was read ahead of it */
	/* durable.c's: syncs that were asked for, and up to which of them they are done */
	_Atomic u64 sync_asked;
	u64 synced_data, synced;		/* protected by iod.sync_lock[] */
	_Atomic u64 unsynced;			/* the first pass that covers what was written; 0: none due */
	_Atomic u64 wrote_ns;			/* when it was written last, real time; 0: not while it was open */
	/* protected by the stripe's lock */
	struct iod_fdent *next;			/* in its hash chain */
	TAILQ_ENTRY(iod_fdent) lru;		/* while refs is 0 */
	u32 refs;
	bool dead;				/* out of the table: the last one closes it */
};

/**
 * iod_fds_new - make a cache
 * @store: borrowed; outlives the cache
 * @sched: borrowed; not needed any more when the last iod_fds_get() has returned. NULL: none, and
 *	iod_fds_get() waits for what it would do
 * @limit: datafiles kept open when nobody uses them; those in use come on top. While a sync of what
 *	was written to them goes on it may be twice as many.
 *
 * Return: 0 or -ENOMEM.
 */
int iod_fds_new(struct iod_store *store, struct iod_sched *sched, u32 limit, struct iod_fds **ret);

/* Closes all. No reference may be left. NULL is fine. */
void iod_fds_free(struct iod_fds *c);

/**
 * iod_fds_get - open datafile @fid, or find it open
 * @create: make it when there is none
 * @ret: a reference; give it back with iod_fds_put()
 *
 * Return: 0; -ENOENT: there is none; -ESTALE: it was removed; or the store's error.
 */
int iod_fds_get(struct iod_fds *c, const struct pvfs_fid *fid, bool create, struct iod_fdent **ret);

/* A reference if it is open already, else NULL. Never waits for the disk. */
struct iod_fdent *iod_fds_lookup(struct iod_fds *c, const struct pvfs_fid *fid);

/* Another reference for who has one. Return: @e. */
struct iod_fdent *iod_fds_ref(struct iod_fdent *e);

void iod_fds_put(struct iod_fdent *e);

/* @e was changed, before this call and while the reference was held. @err: it failed, and perhaps nothing was. */
void iod_fds_wrote(struct iod_fdent *e, int err);

/*
 * When a datafile was written last: @e, or NULL, as it is not open; @mtime is its file's, which is that of a tick of the
 * kernel's clock, some milliseconds ago. So of two writes the second would seem not to have been made, to who was told
 * when the first one was.
 */
struct pvfs_ts iod_fds_wtime(const struct iod_fdent *e, const struct pvfs_ts *mtime);

/* A sync of @e is about to begin, by who has a reference and notes it if it fails (loss.h). */
void iod_fds_syncing(struct iod_fdent *e);

/**
 * iod_fds_fill - make a datafile, whole
 * @data: @len bytes of it, > 0
 *
 * It is on stable storage before it has its name. One that is there stays as it is: a request that
 * comes late, a second time, does no harm.
 *
 * Return: 0 (also when it was removed for good), or the store's error: there may be a datafile then,
 * a whole one, whose name is not on stable storage.
 */
int iod_fds_fill(struct iod_fds *c, const struct pvfs_fid *fid, const void *data, u32 len);

/**
 * iod_fds_remove - remove a datafile for good
 *
 * From now on gets that would make it fail with -ESTALE, for as long as it is among the last 65,536
 * removed. Those who hold a reference go on with a file that has no name. Idempotent. It is not yet
 * on stable storage: store_ops.sync_name() is for that.
 *
 * Return: 0 or the store's error; the fid counts as removed in both cases.
 */
int iod_fds_remove(struct iod_fds *c, const struct pvfs_fid *fid);

/* Appends members of a JSON object, without braces. */
void iod_fds_stats(struct iod_fds *c, FILE *f);

#endif
