// SPDX-License-Identifier: GPL-2.0
/*
 * evict.c - see evict.h. All that have come by the time that the thread looks are made known
 * together, and their connections go; then the fence's file is written, once for all, and each is
 * answered as soon as what it had under way has ended. The disk may be what they hang on: so it comes
 * last.
 */
#include "iod.h"
#include "../common/log.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOGETHER 256u
#define LOOK_MS 20u	/* between two looks at those that have something under way */

struct evicting {
	STAILQ_ENTRY(evicting) link;
	struct pvfs_call *call;
	u64 session;
	int err;
};

STAILQ_HEAD(evicting_list, evicting);

struct iod_evictor {
	struct iod *iod;
	pthread_t thread;
	pthread_mutex_t lock;		/* protects the next three */
	pthread_cond_t cond;
	struct evicting_list come;
	bool stop;
	struct evicting_list busy;	/* the thread's: nothing is left but what they have under way */
};

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void answer(struct evicting *e, int err)
{
	pvfs_call_reply(e->call, err, NULL, 0, NULL);
	free(e);
}

/* Who comes from now on is refused; then who is here goes, and what waits itself is not done. */
static void make_known(struct iod_evictor *v, struct evicting_list *come)
{
	u64 sessions[TOGETHER];
	struct evicting *e;
	u32 n = 0, i;
	int err, saved;

	STAILQ_FOREACH(e, come, link)
		sessions[n++] = e->session;
	qsort(sessions, n, sizeof(*sessions), by_number);
	err = iod_fence_add(v->iod->fence, sessions, n);
	for (i = 0; i < n; i++)
		iod_holds_evict(v->iod->holds, sessions[i]);
	pvfs_server_kill_begin(STAILQ_FIRST(come)->call->server, sessions, n);
	saved = iod_fence_save(v->iod->fence);
	err = err ? err : saved;
	if (err)
		pvfs_log_limited(PVFS_LOG_ERROR, "store: evictions (%u, session %llu) can't be kept: %s",
				 n, (unsigned long long)sessions[0], strerror(-err));
	STAILQ_FOREACH(e, come, link)
		e->err = err;
	STAILQ_CONCAT(&v->busy, come);
}

/* Those that have nothing under way are answered. */
static void look(struct iod_evictor *v)
{
	struct evicting_list all = STAILQ_HEAD_INITIALIZER(all);
	struct evicting *e;

	STAILQ_CONCAT(&all, &v->busy);
	while ((e = STAILQ_FIRST(&all))) {
		STAILQ_REMOVE_HEAD(&all, link);
		if (pvfs_server_session_busy(e->call->server, e->session))
			STAILQ_INSERT_TAIL(&v->busy, e, link);
		else
			answer(e, e->err);
	}
}

/* Lock held: until some come, or it is time to look. */
static void evictor_wait(struct iod_evictor *v)
{
	struct timespec until;

	if (STAILQ_EMPTY(&v->busy)) {
		pthread_cond_wait(&v->cond, &v->lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000l;
	if (until.tv_nsec >= 1000000000l) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000l;
	}
	pthread_cond_clockwait(&v->cond, &v->lock, CLOCK_MONOTONIC, &until);
}

static void *evictor_thread(void *arg)
{
	struct iod_evictor *v = arg;
	struct evicting_list some;
	struct evicting *e;
	u32 n;

	pthread_mutex_lock(&v->lock);
	while (!v->stop) {
		STAILQ_INIT(&some);
		for (n = 0; n < TOGETHER && (e = STAILQ_FIRST(&v->come)); n++) {
			STAILQ_REMOVE_HEAD(&v->come, link);
			STAILQ_INSERT_TAIL(&some, e, link);
		}
		if (!n)
			evictor_wait(v);
		pthread_mutex_unlock(&v->lock);
		if (n)
			make_known(v, &some);
		look(v);
		pthread_mutex_lock(&v->lock);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

void iod_evict(struct iod_evictor *v, struct pvfs_call *call, u64 session)
{
	struct evicting *e = malloc(sizeof(*e));
	bool stop;

	if (!e) {
		pvfs_call_reply(call, -ENOMEM, NULL, 0, NULL);
		return;
	}
	*e = (struct evicting){ .call = call, .session = session };
	pthread_mutex_lock(&v->lock);
	stop = v->stop;
	if (!stop)
		STAILQ_INSERT_TAIL(&v->come, e, link);
	pthread_cond_signal(&v->cond);
	pthread_mutex_unlock(&v->lock);
	if (stop)
		answer(e, -EAGAIN);
}

int iod_evictor_new(struct iod *iod, struct iod_evictor **ret)
{
	struct iod_evictor *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	v->iod = iod;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->cond, NULL);
	STAILQ_INIT(&v->come);
	STAILQ_INIT(&v->busy);
	err = pthread_create(&v->thread, NULL, evictor_thread, v);
	if (err) {
		v->stop = true;
		iod_evictor_free(v);
		return -err;
	}
	*ret = v;
	return 0;
}

void iod_evictor_stop(struct iod_evictor *v)
{
	struct evicting *e;

	if (!v)
		return;
	pthread_mutex_lock(&v->lock);
	v->stop = true;
	pthread_cond_signal(&v->cond);
	pthread_mutex_unlock(&v->lock);
	pthread_join(v->thread, NULL);
	STAILQ_CONCAT(&v->busy, &v->come);
	while ((e = STAILQ_FIRST(&v->busy))) {
		STAILQ_REMOVE_HEAD(&v->busy, link);
		answer(e, -EAGAIN);
	}
}

void iod_evictor_free(struct iod_evictor *v)
{
	if (!v)
		return;
	pthread_mutex_destroy(&v->lock);
	pthread_cond_destroy(&v->cond);
	free(v);
}
