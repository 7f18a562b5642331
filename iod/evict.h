/* SPDX-License-Identifier: GPL-2.0 */
/*
 * evict.h - EVICT: a session is over. One thread does it for all that come, so that a session whose
 * last write hangs on the disk takes that thread's time only, and many take no more than one.
 */
#ifndef PVFS_IOD_EVICT_H
#define PVFS_IOD_EVICT_H

#include "../common/compat.h"

struct iod;
struct iod_evictor;
struct pvfs_call;

int iod_evictor_new(struct iod *iod, struct iod_evictor **ret);
/* Answers what is left with -EAGAIN; so is what comes later. NULL is fine. */
void iod_evictor_stop(struct iod_evictor *v);
void iod_evictor_free(struct iod_evictor *v);
/* Answers the call when none of the session's runs, and none will. */
void iod_evict(struct iod_evictor *v, struct pvfs_call *call, u64 session);

#endif
