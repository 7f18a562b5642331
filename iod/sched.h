/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sched.h - threads for what may wait for a disk, so that an engine thread need not.
 *
 * Used only where waiting is likely: a hand-over costs more than a small request (DESIGN.md 13).
 */
#ifndef PVFS_IOD_SCHED_H
#define PVFS_IOD_SCHED_H

#include <stdio.h>
#include "../common/compat.h"

struct iod_sched;

/**
 * iod_sched_new - start the threads
 * @nthreads: 1 .. 256
 *
 * Return: 0 or -errno.
 */
int iod_sched_new(unsigned int nthreads, struct iod_sched **ret);

/* Finishes what was submitted, then stops the threads. NULL is fine. */
void iod_sched_free(struct iod_sched *s);

/**
 * iod_sched_run - call @fn(@arg) on a thread, in the order of submission
 *
 * Any thread. Without memory it is called here and now.
 */
void iod_sched_run(struct iod_sched *s, void (*fn)(void *arg), void *arg);

/* Appends members of a JSON object, without braces. */
void iod_sched_stats(struct iod_sched *s, FILE *f);

#endif
