// SPDX-License-Identifier: GPL-2.0
/*
 * sched.c - threads for what may wait for a disk; see sched.h.
 *
 * One queue. It is as long as the credits of all connections allow, not longer. The thread that
 * began to wait last is woken first: a light load stays on one warm thread.
 */
#include "sched.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

struct work {
	STAILQ_ENTRY(work) link;
	void (*fn)(void *arg);
	void *arg;
};

/* A thread that waits. On its stack. */
struct idler {
	SLIST_ENTRY(idler) link;
	pthread_cond_t wake;
	bool woken;
};

struct iod_sched {
	pthread_mutex_t lock;		/* protects all below but thread */
	STAILQ_HEAD(workq, work) queue;
	SLIST_HEAD(idlers, idler) idle;
	bool stop;
	u32 queued, queued_max, busy, busy_max;
	u64 runs;
	u32 nthreads;
	pthread_t thread[];
};

/* Wakes the thread that fell idle last. Call with the lock. */
static void wake_one(struct iod_sched *s)
{
	struct idler *i = SLIST_FIRST(&s->idle);

	if (!i)
		return;
	SLIST_REMOVE_HEAD(&s->idle, link);
	i->woken = true;
	pthread_cond_signal(&i->wake);
}

static void *worker(void *arg)
{
	struct idler me = { .wake = PTHREAD_COND_INITIALIZER };
	struct iod_sched *s = arg;
	struct work *w;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		w = STAILQ_FIRST(&s->queue);
		if (w) {
			STAILQ_REMOVE_HEAD(&s->queue, link);
			s->queued--;
			s->runs++;
			s->busy_max = max(++s->busy, s->busy_max);
			pthread_mutex_unlock(&s->lock);
			w->fn(w->arg);
			free(w);
			pthread_mutex_lock(&s->lock);
			s->busy--;
			continue;
		}
		if (s->stop)
			break;
		me.woken = false;
		SLIST_INSERT_HEAD(&s->idle, &me, link);
		while (!me.woken)
			pthread_cond_wait(&me.wake, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	pthread_cond_destroy(&me.wake);
	return NULL;
}

void iod_sched_run(struct iod_sched *s, void (*fn)(void *arg), void *arg)
{
	struct work *w = malloc(sizeof(*w));

	if (!w) {
		fn(arg);
		return;
	}
	w->fn = fn;
	w->arg = arg;
	pthread_mutex_lock(&s->lock);
	STAILQ_INSERT_TAIL(&s->queue, w, link);
	s->queued_max = max(++s->queued, s->queued_max);
	wake_one(s);
	pthread_mutex_unlock(&s->lock);
}

void iod_sched_stats(struct iod_sched *s, FILE *f)
{
	pthread_mutex_lock(&s->lock);
	fprintf(f,
		"\"threads\":%u,\"busy\":%u,\"busy_max\":%u,\"queued\":%u,\"queued_max\":%u,\"runs\":%llu",
		s->nthreads, s->busy, s->busy_max, s->queued, s->queued_max,
		(unsigned long long)s->runs);
	pthread_mutex_unlock(&s->lock);
}

int iod_sched_new(unsigned int nthreads, struct iod_sched **ret)
{
	struct iod_sched *s;
	pthread_attr_t attr;
	int err = 0;

	s = calloc(1, sizeof(*s) + nthreads * sizeof(s->thread[0]));
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	STAILQ_INIT(&s->queue);
	SLIST_INIT(&s->idle);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	while (s->nthreads < nthreads && !err) {
		err = -pthread_create(&s->thread[s->nthreads], &attr, worker, s);
		if (!err)
			pthread_setname_np(s->thread[s->nthreads++], "iod-disk");
	}
	pthread_attr_destroy(&attr);
	if (err) {
		iod_sched_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void iod_sched_free(struct iod_sched *s)
{
	u32 i;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	while (!SLIST_EMPTY(&s->idle))
		wake_one(s);
	pthread_mutex_unlock(&s->lock);
	for (i = 0; i < s->nthreads; i++)
		pthread_join(s->thread[i], NULL);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
