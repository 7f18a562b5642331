/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fence.h - sessions that the mgr has evicted. Their capabilities are good for ever, so it is their
 * connections that are refused: what an evicted client held, others may hold by now.
 */
#ifndef PVFS_IOD_FENCE_H
#define PVFS_IOD_FENCE_H

#include <stdbool.h>
#include "../common/compat.h"

struct iod_fence;

/**
 * iod_fence_open - the sessions that were evicted so far
 * @dir: the store's directory, where they are kept; NULL: they are forgotten at the end
 * @ret: for iod_fence_close()
 *
 * Return: 0 or -errno; -EUCLEAN when the file is not one of ours.
 */
int iod_fence_open(const char *dir, struct iod_fence **ret);
void iod_fence_close(struct iod_fence *f);

/*
 * Adds @n of them, or with PVFS_SESSION_ALL all up to one; the file is as before. Does not wait.
 * One thread at a time adds and saves. Return: 0 or -ENOMEM.
 */
int iod_fence_add(struct iod_fence *f, const u64 *sessions, u32 n);
/* All that were added are on stable storage. Return: 0 or -errno: they are known until the daemon ends. */
int iod_fence_save(struct iod_fence *f);
bool iod_fence_has(struct iod_fence *f, u64 session);

#endif
