/* SPDX-License-Identifier: GPL-2.0 */
/*
 * loss.h - how often a sync has failed. The kernel tells that once and has dropped the bytes, so that
 * the next sync succeeds: whoever wrote them learns it by the verifier, which this number is part of.
 * It outlives the daemon.
 */
#ifndef PVFS_IOD_LOSS_H
#define PVFS_IOD_LOSS_H

#include "../common/compat.h"

struct iod_loss;

/**
 * iod_loss_open - the syncs that failed so far
 * @dir: the store's directory, where they are counted; NULL: they are forgotten at the end
 * @ret: for iod_loss_close()
 *
 * Return: 0 or -errno. A count that can't be read or written is no error: it begins anew at a random
 * number, as if one had failed.
 */
int iod_loss_open(const char *dir, struct iod_loss **ret);
void iod_loss_close(struct iod_loss *l);

/* One more. Visible to iod_loss_count() by any thread when this returns. @l may be NULL. */
void iod_loss_note(struct iod_loss *l);
u64 iod_loss_count(struct iod_loss *l);

#endif
