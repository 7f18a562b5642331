/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hold.h - datafiles that are about to be cut, and the requests that wait for that.
 *
 * A file is cut datafile by datafile. The mgr has all of them held before it has the first one cut,
 * so that to those who read and write the file it is one moment: what was done before it is cut, and
 * what comes after it is not, in every datafile.
 */
#ifndef PVFS_IOD_HOLD_H
#define PVFS_IOD_HOLD_H

#include "../transport/transport.h"

struct iod;
struct iod_holds;

/* Takes the call and answers it, maybe later on a thread of sched.c. */
typedef void (*iod_handler)(struct iod *iod, struct pvfs_call *call);

/* Return: 0 or -ENOMEM. */
int iod_holds_new(struct iod *iod, struct iod_holds **ret);
/* No request may wait any more: see iod_holds_expire(). NULL is fine. */
void iod_holds_free(struct iod_holds *h);

/**
 * iod_hold - requests for a datafile wait from now on
 * @ms: at most so long, from now on; at most PVFS_HOLD_MAX_MS
 *
 * The datafile need not exist. Those that have begun are not waited for. Return: 0 or -ENOMEM.
 */
int iod_hold(struct iod_holds *h, const struct pvfs_fid *fid, u32 ms);

/**
 * iod_hold_wait - must this request wait? To be asked after its checks, before it does anything
 * @again: called with it, on a thread of sched.c, when the waiting is over; may ask again
 *
 * Return: true, and it is not the caller's any more; false: go on.
 */
bool iod_hold_wait(struct iod_holds *h, const struct pvfs_fid *fid, struct pvfs_call *call,
		   iod_handler again);

/* It was cut, or won't be: what waited goes on. */
void iod_hold_end(struct iod_holds *h, const struct pvfs_fid *fid);

/* An evicted session's requests that wait, and that would from now on, are answered ESTALE. */
void iod_holds_evict(struct iod_holds *h, u64 session);

/* Ends what has lasted too long, or @all. About ten times a second. */
void iod_holds_expire(struct iod_holds *h, bool all);

#endif
