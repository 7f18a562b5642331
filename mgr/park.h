/* SPDX-License-Identifier: GPL-2.0 */
/*
 * park.h - requests that wait are put aside, and hold no thread.
 *
 * There are two ways to be put aside. What has done nothing yet is kept as the message that it was,
 * and executed from the start when it can be (recall.h). What is in the middle of something is a
 * task: an operation with a stack of its own, which is left where it waits, by whatever thread runs
 * it, and gone on with by a worker when it has been woken. Handlers see nothing of it: they call
 * mgr_iods_call(), mgr_log_wait(), mgr_pause() or mgr_file_lock() (wait.c), which park when they
 * run on a task and block when they run on a plain thread, as in the background and in tests.
 *
 * A task must not park with a transaction open, between mdb_enter() and mdb_leave(), or with any
 * mutex held: it goes on on another thread. After a park nothing that belongs to the thread (errno,
 * __thread) is what it was.
 */
#ifndef PVFS_MGR_PARK_H
#define PVFS_MGR_PARK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include "../common/compat.h"

#define MGR_TASKS_MAX	4096u	/* at once; what is begun beyond that waits as a message */

struct mgr_task;
struct mgr_job;

TAILQ_HEAD(mgr_task_list, mgr_task);
TAILQ_HEAD(mgr_job_list, mgr_job);

/* Something to be begun on a task. Embedded by who queues it. */
struct mgr_job {
	TAILQ_ENTRY(mgr_job) link;
	void (*fn)(struct mgr_job *job);	/* frees it */
};

/* Zeroed is fine until it is initialised, and runs nothing. */
struct mgr_tasks {
	pthread_mutex_t lock;		/* protects all below but the counters */
	pthread_cond_t work;		/* for workers: ready, jobs, stop, an earlier deadline */
	pthread_cond_t idle;		/* nothing is left */
	struct mgr_task_list ready;	/* woken, to be gone on with */
	struct mgr_task_list timed;	/* parked with a deadline, by deadline */
	struct mgr_task_list unused;	/* stacks for reuse */
	struct mgr_task_list blocked;	/* that will block a worker, when they may */
	u32 nblocking;			/* that do */
	struct mgr_job_list jobs;	/* to be begun, when there is a task for them */
	u32 n, nunused;			/* tasks that are running or parked; stacks kept */
	bool stop;
	pthread_t *workers;
	u32 nworkers;
	atomic_ullong parked;		/* for statistics */
	atomic_uint now, most;
};

void mgr_tasks_init(struct mgr_tasks *ts);
void mgr_tasks_fini(struct mgr_tasks *ts);
/* @n workers. Return: 0 or -errno with none running. */
int mgr_tasks_start(struct mgr_tasks *ts, u32 n);
/* Waits until all that was begun or queued has ended. */
void mgr_tasks_stop(struct mgr_tasks *ts);

/**
 * mgr_task_begin - run a job on a task, on this thread, until it ends or parks
 *
 * When all tasks are taken, or this is one, it is queued for the workers.
 */
void mgr_task_begin(struct mgr_tasks *ts, struct mgr_job *job);
/* The same by a worker. */
void mgr_task_queue(struct mgr_tasks *ts, struct mgr_job *job);

/* The one that we run on, NULL: a plain thread. */
struct mgr_task *mgr_task_self(void);
/* Until mgr_task_wake(), which may have come before. Each wake ends one park. */
void mgr_task_park(void);
/* The same, at most until @deadline (monotonic ms). Return: it was woken. */
bool mgr_task_park_until(u64 deadline);
/*
 * Before something that blocks the thread, as a disk does, and after it. On a worker, not on a thread
 * of the network's, for which all clients wait; and not on the last one, which others need to go on.
 * The first is a park like the others; nobody else may be about to wake us.
 */
void mgr_task_block(void);
void mgr_task_unblock(void);
/* Once for each park. It may be over before this returns. */
void mgr_task_wake(struct mgr_task *t);

#endif
