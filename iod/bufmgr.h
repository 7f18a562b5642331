/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bufmgr.h - memory for data on its way through an iod: zones of equal-sized buffers, bounded in
 * total, shared fairly between the clients (PVFS over InfiniBand, section 5.2).
 *
 * Any thread. Nothing here waits: who gets no buffer is told so, and told again when it is worth
 * another try.
 */
#ifndef PVFS_IOD_BUFMGR_H
#define PVFS_IOD_BUFMGR_H

#include <stdio.h>
#include <sys/queue.h>
#include "../common/compat.h"

struct iod_bufs;
struct iod_buf;

/* One who was refused and will ask again. Owned by the asker, zeroed before its first use. */
struct iod_bufwait {
	/* bufmgr.c's, protected by its lock */
	TAILQ_ENTRY(iod_bufwait) link;
	struct iod_bufclient *client;
	u32 size;
	bool queued;
};

/**
 * iod_bufs_new - set up; allocates no buffer yet
 * @limit: bytes that all buffers together may use, whether in use or kept for the next; at least
 *	8 x @largest
 * @largest: bytes of the largest buffer, a power of two of 4,096 or more
 * @ready: called, without a lock held, from the thread that gave a buffer back, when those who were
 *	refused should ask again; may be NULL
 * @arg: for @ready
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int iod_bufs_new(u64 limit, u32 largest, void (*ready)(void *arg), void *arg,
		 struct iod_bufs **ret);

/* All buffers must have been given back and nobody may be waiting. NULL is fine. */
void iod_bufs_free(struct iod_bufs *m);

/**
 * iod_bufs_get - a buffer of at least @len bytes for client @client
 * @client: any number that tells clients apart
 * @len: 1 .. the largest
 * @w: where to wait when refused, or NULL: the caller has another way and will not ask again
 * @ret_mem: aligned to a page; the contents are undefined
 *
 * While less than three quarters of the limit are in use everyone gets what they ask for. Above, a
 * client gets no more than its share: the limit divided by the clients that use or wait for
 * buffers, but one buffer at least. Who asks newly leaves room for the one that waits longest.
 *
 * Return: the buffer, given back with iod_bufs_put(); NULL when refused (@w is queued then).
 */
struct iod_buf *iod_bufs_get(struct iod_bufs *m, u64 client, u32 len, struct iod_bufwait *w,
			     u8 **ret_mem);
void iod_bufs_put(struct iod_buf *b);

/* @w asks no more; to be called before its memory goes away. */
void iod_bufs_forget(struct iod_bufs *m, struct iod_bufwait *w);

/* Calls ready() if anyone waits: a periodic safety net for a call that came too early. */
void iod_bufs_kick(struct iod_bufs *m);

/* Bytes in use and allocated now. */
void iod_bufs_usage(struct iod_bufs *m, u64 *ret_used, u64 *ret_allocated, u32 *ret_waiting);

/* Appends members of a JSON object, without braces. */
void iod_bufs_stats(struct iod_bufs *m, FILE *f);

#endif
