/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * bufmgr.h - memory for data on its way through a server: zones of equal-sized buffers, bounded in
 * total, shared fairly between the clients (PVFS over InfiniBand, section 5.2).
 *
 * Any thread. Nothing here waits: who gets no buffer is told so, and told again when it is worth
 * another try.
 */
#ifndef PVFS_BUFMGR_H
#define PVFS_BUFMGR_H

#include <stdio.h>
#include <sys/queue.h>
#include "../common/compat.h"

struct pvfs_bufs;
struct pvfs_buf;

/* One who was refused and will ask again. Owned by the asker, zeroed before its first use. */
struct pvfs_bufwait {
	/* bufmgr.c's, protected by its lock */
	TAILQ_ENTRY(pvfs_bufwait) link;
	struct pvfs_bufclient *client;
	u32 size;
	bool queued;
};

/**
 * pvfs_bufs_new - set up; allocates no buffer yet
 * @limit: bytes that all buffers together may use, whether in use or kept for the next; at least
 *	8 x @largest
 * @largest: bytes of the largest buffer, a power of two of 4,096 or more
 * @ready: called, without a lock held, from the thread that gave a buffer back, when those who were
 *	refused should ask again; may be NULL
 * @arg: for @ready
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pvfs_bufs_new(u64 limit, u32 largest, void (*ready)(void *arg), void *arg,
		 struct pvfs_bufs **ret);

/* All buffers must have been given back and nobody may be waiting. NULL is fine. */
void pvfs_bufs_free(struct pvfs_bufs *m);

/**
 * pvfs_bufs_get - a buffer of at least @len bytes for client @client
 * @client: any number that tells clients apart
 * @len: 1 .. the largest
 * @w: where to wait when refused, or NULL: the caller has another way and will not ask again
 * @ret_mem: aligned to a page; the contents are undefined
 *
 * While less than three quarters of the limit are in use everyone gets what they ask for. Above, a
 * client gets no more than its share: the limit divided by the clients that use or wait for
 * buffers, but one buffer at least. Who asks newly leaves room for the one that waits longest.
 *
 * Return: the buffer, given back with pvfs_bufs_put(); NULL when refused (@w is queued then).
 */
struct pvfs_buf *pvfs_bufs_get(struct pvfs_bufs *m, u64 client, u32 len, struct pvfs_bufwait *w,
			     u8 **ret_mem);
void pvfs_bufs_put(struct pvfs_buf *b);

/* @w asks no more; to be called before its memory goes away. */
void pvfs_bufs_forget(struct pvfs_bufs *m, struct pvfs_bufwait *w);

/* Calls ready() if anyone waits: a periodic safety net for a call that came too early. */
void pvfs_bufs_kick(struct pvfs_bufs *m);

/* Bytes in use and allocated now. */
void pvfs_bufs_usage(struct pvfs_bufs *m, u64 *ret_used, u64 *ret_allocated, u32 *ret_waiting);

/* Appends members of a JSON object, without braces. */
void pvfs_bufs_stats(struct pvfs_bufs *m, FILE *f);

#endif
