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
 * Adds @n of them, or with PVFS_SESSION_ALL all up to one, durably. Return: 0 or -errno: they are
 * known all the same until the daemon ends, unless it is -ENOMEM.
 */
int iod_fence_add(struct iod_fence *f, const u64 *sessions, u32 n);
bool iod_fence_has(struct iod_fence *f, u64 session);

#endif
