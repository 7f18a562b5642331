// SPDX-License-Identifier: GPL-2.0
/*
 * ask.c - what the kernel has asked and waits for, and callers that do not wait any more.
 *
 * The kernel tells of any signal that a caller has got while it waited, once; most of them are no
 * reason to end a call on a file, and some programs get one every second. So a caller that was
 * interrupted is looked at, again and again, until it has its answer or is being killed: then it
 * gets EINTR at once, whatever the servers do. What it had asked for goes on, and its answer is
 * thrown away: a request cannot be taken back from a server that has it.
 */
#include "pvfsd.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 100	/* how often a caller that was interrupted is looked at */

/* Never freed: the kernel's word of a signal may come late. Protected by asks_lock. */
struct ask {
	struct ask *next;	/* free, or interrupted */
	fuse_req_t req;		/* NULL: none */
	pid_t pid;		/* the thread that called; 0: not one of ours to see */
	int interrupted;	/* it is in that list */
	int answered;		/* by us */
};

static pthread_mutex_t asks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t any_interrupted = PTHREAD_COND_INITIALIZER;
static struct ask *free_asks, *interrupted;

/* What this thread works on. */
static _Thread_local struct {
	struct ask *ask;
	struct held *held[2];
	int nheld;
} now;

/* ---- what is used meanwhile ---- */

void held_init(struct held *h, int (*last)(struct held *h))
{
	atomic_init(&h->refs, 1);
	h->last = last;
}

int held_put(struct held *h)
{
	return atomic_fetch_sub(&h->refs, 1) == 1 ? h->last(h) : 0;
}

int held_shared(struct held *h)
{
	return atomic_load(&h->refs) > 1;
}

void ask_hold(struct held *h)
{
	if (now.nheld == 2 || (now.nheld && now.held[0] == h))
		return;
	atomic_fetch_add(&h->refs, 1);
	now.held[now.nheld++] = h;
}

/* ---- requests ---- */

static void on_interrupt(fuse_req_t req, void *arg)
{
	struct ask *a = arg;

	pthread_mutex_lock(&asks_lock);
	/* It may be about another one by now. */
	if (a->req == req && !a->interrupted) {
		a->interrupted = 1;
		a->next = interrupted;
		interrupted = a;
		pthread_cond_signal(&any_interrupted);
	}
	pthread_mutex_unlock(&asks_lock);
}

void ask_begin(fuse_req_t req, pid_t pid)
{
	struct ask *a;

	pthread_mutex_lock(&asks_lock);
	a = free_asks;
	if (a)
		free_asks = a->next;
	pthread_mutex_unlock(&asks_lock);
	if (!a)
		a = malloc(sizeof(*a));
	now.ask = a;
	if (!a)
		return;		/* it will not be noticed when its caller is killed */
	pthread_mutex_lock(&asks_lock);
	*a = (struct ask){ .req = req, .pid = pid };
	pthread_mutex_unlock(&asks_lock);
	fuse_req_interrupt_func(req, on_interrupt, a);
}

/* With asks_lock held. */
static void leave_interrupted(struct ask *a)
{
	struct ask **p;

	for (p = &interrupted; *p && *p != a; p = &(*p)->next)
		;
	if (*p)
		*p = a->next;
}

int ask_end(void)
{
	struct ask *a = now.ask;
	int mine = 1;

	now.ask = NULL;
	if (a) {
		pthread_mutex_lock(&asks_lock);
		if (a->interrupted && !a->answered)
			leave_interrupted(a);
		mine = !a->answered;
		a->req = NULL;
		a->next = free_asks;
		free_asks = a;
		pthread_mutex_unlock(&asks_lock);
	}
	while (now.nheld)
		held_put(now.held[--now.nheld]);
	return mine;
}

/* ---- callers ---- */

/* A line of /proc/PID/status with a set of signals in it. */
static int has_signal(const char *line, const char *name, int sig)
{
	size_t n = strlen(name);

	return !strncmp(line, name, n) && (strtoull(line + n, NULL, 16) >> (sig - 1) & 1);
}

/* Is the thread being killed, or is it gone? */
static int killed(pid_t pid)
{
	char path[64], line[256];
	int ret = 0;
	FILE *f;

	if (!pid)
		return 1;	/* nobody can say: better an error than never an end */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return kill(pid, 0) && errno == ESRCH;
	while (!ret && fgets(line, sizeof(line), f))
		ret = has_signal(line, "SigPnd:", SIGKILL) || has_signal(line, "ShdPnd:", SIGKILL) ||
		      !strncmp(line, "State:\tZ", 8) || !strncmp(line, "State:\tX", 8);
	fclose(f);
	return ret;
}

/* The first that is being killed, not in the list any more, or NULL. With asks_lock held. */
static struct ask *take_killed(void)
{
	struct ask **p, *a;

	for (p = &interrupted; (a = *p) != NULL; p = &a->next) {
		if (killed(a->pid)) {
			*p = a->next;
			return a;
		}
	}
	return NULL;
}

static void *look(void *unused)
{
	struct timespec ts;
	struct ask *a;
	fuse_req_t req;

	pthread_mutex_lock(&asks_lock);
	for (;;) {
		while (!interrupted)
			pthread_cond_wait(&any_interrupted, &asks_lock);
		while ((a = take_killed()) != NULL) {
			req = a->req;
			a->answered = 1;
			pthread_mutex_unlock(&asks_lock);
			fuse_reply_err(req, EINTR);
			pthread_mutex_lock(&asks_lock);
		}
		clock_gettime(CLOCK_MONOTONIC, &ts);
		ts.tv_nsec += LOOK_MS * 1000000;
		ts.tv_sec += ts.tv_nsec / 1000000000;
		ts.tv_nsec %= 1000000000;
		pthread_cond_clockwait(&any_interrupted, &asks_lock, CLOCK_MONOTONIC, &ts);
	}
	return NULL;
}

/**
 * ask_start - from now on callers that are killed are noticed
 *
 * In the process that serves: threads don't survive a fork.
 *
 * Return: 0 or -errno.
 */
int ask_start(void)
{
	sigset_t all, old;
	pthread_t t;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t, NULL, look, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_detach(t);
	return -err;
}
