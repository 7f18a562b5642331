/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * engine.h - what the engine offers to the rest of transport/: event sources, timers, scratch
 * memory.
 *
 * Ownership rule that everything leans on: an event source is one-shot. Arming it gives it away;
 * the event gives it to exactly one thread. So whoever handles an event is alone with that side of
 * the connection until it arms again, and no lock is needed for what only that side uses.
 */
#ifndef PVFS_ENGINE_H
#define PVFS_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include "transport.h"

#define PVFS_SCRATCH_LEN (32u << 10)	/* bytes every thread keeps to receive into */

/**
 * struct pvfs_source - one side of a pollable descriptor
 * @fd: the descriptor
 * @ready: called on an engine thread with EPOLL* bits when an armed event came
 * @added: known to epoll already; whoever owns the source
 * @handed: orders what its owners did, one after the other: written when it is given away, read
 *	when it is got
 * @next: engine.c's, while it is posted
 */
struct pvfs_source {
	int fd;
	void (*ready)(struct pvfs_source *s, u32 events);
	bool added;
	atomic_uint handed;
	struct pvfs_source *next;
};

/**
 * pvfs_engine_arm - give @s away until one of @events comes
 * @events: EPOLLIN, and EPOLLOUT when it should fire as soon as there is room to send
 *
 * Hang-up always fires. The first call adds the descriptor.
 *
 * Return: 0 or -errno (the caller keeps the source then).
 */
int pvfs_engine_arm(struct pvfs_engine *e, struct pvfs_source *s, u32 events);

/*
 * Gives @s away to a thread that comes to it after what is there already, whatever happens at its
 * descriptor. Never fails.
 */
void pvfs_engine_post(struct pvfs_engine *e, struct pvfs_source *s);

/*
 * As pvfs_engine_arm() for the sending side: fires when there is room. A second source of the same descriptor,
 * so that the two sides of a connection are owned apart; it lives in an epoll set of its own inside
 * the first.
 */
int pvfs_engine_arm_out(struct pvfs_engine *e, struct pvfs_source *s);

/*
 * Takes a source out of the set. An event of it may already be with a thread: its memory must stay,
 * and ready() must be prepared for it, until the engine is freed - see pvfs_engine_defer().
 */
void pvfs_engine_del(struct pvfs_engine *e, struct pvfs_source *s);

/* Frees @mem (malloc'ed) when the engine's threads have ended. */
void pvfs_engine_defer(struct pvfs_engine *e, void *mem);

/* A point in time. Zeroed, fn and arg set by its owner; the rest is engine.c's under its lock. */
struct pvfs_timer {
	void (*fn)(void *arg);
	void *arg;
	u64 due;			/* ns of CLOCK_MONOTONIC; 0: not set */
	u64 every;			/* ns: set again after each run */
	bool running;
	pthread_t thread;		/* that runs it */
	struct pvfs_timer *next;	/* list in order of due */
};

/* Sets or moves @t to @due. It may run again while it runs; not with itself on two threads. */
void pvfs_timer_set(struct pvfs_engine *e, struct pvfs_timer *t, u64 due);

/* When this returns @t is not set and does not run, unless called from its own function. */
void pvfs_timer_cancel(struct pvfs_engine *e, struct pvfs_timer *t);

/* CLOCK_MONOTONIC, ns */
u64 pvfs_now(void);

/* PVFS_SCRATCH_LEN bytes of the calling thread; NULL off the engine's threads. */
u8 *pvfs_engine_scratch(void);

/* Events handled, timers included. */
u64 pvfs_engine_wakeups(struct pvfs_engine *e);

/* Counts connections, so that engine_free can tell what was left behind. */
void pvfs_engine_hold(struct pvfs_engine *e, int n);

#endif
