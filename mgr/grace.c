// SPDX-License-Identifier: GPL-2.0
/*
 * grace.c - requests that wait until the clients from before a restart have told what they have:
 * changes, which would have to recall leases, what may be a draft, and locks.
 *
 * They are put aside as messages (recall.h is the same for leases) and executed again when the last
 * session has said RECLAIM_DONE or has ended, or the grace is over. A request waits once, and WAIT_MS
 * at most; then, and when too many wait already, it is answered as it would have been at once, and
 * the client asks again. The time is short because a task that waits for a lock can't be
 * interrupted, and a connection can't be replaced, before its request is answered. A session that
 * has to tell its own files first does not wait: that might be behind its requests.
 *
 * mgr_grace_kick() may be called with any lock held: the thread does all the rest.
 */
#include "mgr.h"
#include <stdlib.h>

#define WAIT_MS		2000u
#define WAITING_MAX	1024u
#define WAITING_SESSION	64u	/* of a session: less than a connection's credits by far */

struct mgr_graced {
	TAILQ_ENTRY(mgr_graced) link;
	struct pvfs_call *call;
	u64 session, deadline;		/* deadline: monotonic ms */
	enum mgr_grace_of of;
};

int mgr_grace_wait(struct mgr_op *op, enum mgr_grace_of of)
{
	if (!op->can_wait || !op->s || atomic_load(&op->s->returning))
		return -EAGAIN;
	op->grace = of;
	return -EINPROGRESS;
}

int mgr_grace_park(struct mgr *m, const struct mgr_op *op, u64 session, struct pvfs_call *call)
{
	struct mgr_grace *g = &m->grace;
	struct mgr_graced *w = malloc(sizeof(*w)), *at;
	u32 mine = 0;
	int err = 0;

	if (!w)
		return -ENOMEM;
	*w = (struct mgr_graced){ .call = call, .session = session, .of = op->grace,
				  .deadline = mgr_mono_ms() + m->grace.wait_ms };
	pthread_mutex_lock(&g->lock);
	TAILQ_FOREACH(at, &g->waiting, link)
		mine += at->session == session;
	if (!g->running || g->stop || g->n >= WAITING_MAX || mine >= WAITING_SESSION) {
		err = -EAGAIN;
	} else {
		TAILQ_INSERT_TAIL(&g->waiting, w, link);
		g->n++;
		atomic_fetch_add_explicit(&g->parked, 1, memory_order_relaxed);
		/* It looks whether the grace has ended since. */
		pthread_cond_signal(&g->cond);
	}
	pthread_mutex_unlock(&g->lock);
	if (err)
		free(w);
	return err;
}

void mgr_grace_kick(struct mgr *m)
{
	pthread_mutex_lock(&m->grace.lock);
	if (m->grace.n)
		pthread_cond_signal(&m->grace.cond);
	pthread_mutex_unlock(&m->grace.lock);
}

/* Lock held: those that need not wait any longer are taken out. */
static void take_ready(struct mgr *m, struct mgr_graced_list *ready)
{
	bool locks = mgr_locks_in_grace(m), leases = mgr_leases_in_grace(m);
	struct mgr_grace *g = &m->grace;
	struct mgr_graced *w, *next;
	u64 now = mgr_mono_ms();

	for (w = TAILQ_FIRST(&g->waiting); w; w = next) {
		next = TAILQ_NEXT(w, link);
		if ((w->of == MGR_GRACE_LOCKS ? locks : leases) && now < w->deadline && !g->stop)
			continue;
		TAILQ_REMOVE(&g->waiting, w, link);
		g->n--;
		TAILQ_INSERT_TAIL(ready, w, link);
	}
}

/* Lock held: until something may have changed. */
static void grace_thread_wait(struct mgr *m)
{
	struct mgr_grace *g = &m->grace;
	struct mgr_graced *w = TAILQ_FIRST(&g->waiting);
	u64 over = atomic_load(&m->grace_until), next;
	struct timespec until;

	if (!w) {
		pthread_cond_wait(&g->cond, &g->lock);
		return;
	}
	next = over > mgr_mono_ms() ? min(over, w->deadline) : w->deadline;
	until.tv_sec = next / 1000;
	until.tv_nsec = next % 1000 * 1000000l;
	pthread_cond_timedwait(&g->cond, &g->lock, &until);
}

static void *grace_thread(void *arg)
{
	struct mgr *m = arg;
	struct mgr_grace *g = &m->grace;
	struct mgr_graced_list ready;
	struct mgr_graced *w;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		TAILQ_INIT(&ready);
		take_ready(m, &ready);
		if (TAILQ_EMPTY(&ready)) {
			if (g->stop)
				break;
			grace_thread_wait(m);
			continue;
		}
		pthread_mutex_unlock(&g->lock);
		while ((w = TAILQ_FIRST(&ready))) {
			TAILQ_REMOVE(&ready, w, link);
			g->resume(m, w->call);
			free(w);
		}
		pthread_mutex_lock(&g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

int mgr_grace_start(struct mgr *m)
{
	int err = pthread_create(&m->grace.thread, NULL, grace_thread, m);

	pthread_mutex_lock(&m->grace.lock);
	m->grace.running = !err;
	pthread_mutex_unlock(&m->grace.lock);
	return -err;
}

void mgr_grace_stop(struct mgr *m)
{
	struct mgr_grace *g = &m->grace;

	if (!g->running)
		return;
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_signal(&g->cond);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	g->running = false;
}

void mgr_grace_init(struct mgr_grace *g)
{
	pthread_mutex_init(&g->lock, NULL);
	mgr_cond_init(&g->cond);
	TAILQ_INIT(&g->waiting);
	g->wait_ms = WAIT_MS;
	g->resume = mgr_offload_waited;
}

void mgr_grace_fini(struct mgr_grace *g)
{
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->cond);
}
