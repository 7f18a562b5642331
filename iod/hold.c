// SPDX-License-Identifier: GPL-2.0
/*
 * hold.c - see hold.h. A list: there are as many as the mgr cuts shared files at once, mostly none,
 * and then nobody takes the lock.
 */
#include "hold.h"
#include "iod.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

struct hold_waiter {
	STAILQ_ENTRY(hold_waiter) link;
	struct pvfs_call *call;
	iod_handler again;
};

STAILQ_HEAD(waiters, hold_waiter);

struct hold {
	LIST_ENTRY(hold) link;
	struct pvfs_fid fid;
	u64 until;		/* monotonic ms */
	struct waiters waiters;	/* in the order in which they came */
};

struct iod_holds {
	struct iod *iod;
	_Atomic u32 n;
	pthread_mutex_t lock;	/* protects the list */
	LIST_HEAD(, hold) list;
};

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

int iod_holds_new(struct iod *iod, struct iod_holds **ret)
{
	struct iod_holds *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->iod = iod;
	pthread_mutex_init(&h->lock, NULL);
	LIST_INIT(&h->list);
	*ret = h;
	return 0;
}

void iod_holds_free(struct iod_holds *h)
{
	struct hold *d;

	if (!h)
		return;
	while ((d = LIST_FIRST(&h->list))) {
		LIST_REMOVE(d, link);
		free(d);
	}
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* Call with the lock. */
static struct hold *find(struct iod_holds *h, const struct pvfs_fid *fid)
{
	struct hold *d;

	LIST_FOREACH(d, &h->list, link)
		if (d->fid.ino == fid->ino && d->fid.gen == fid->gen)
			break;
	return d;
}

int iod_hold(struct iod_holds *h, const struct pvfs_fid *fid, u32 ms)
{
	struct hold *d;
	int err = 0;

	pthread_mutex_lock(&h->lock);
	d = find(h, fid);
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d) {
			err = -ENOMEM;
			goto out;
		}
		d->fid = *fid;
		STAILQ_INIT(&d->waiters);
		LIST_INSERT_HEAD(&h->list, d, link);
		atomic_fetch_add(&h->n, 1);
	}
	d->until = now_ms() + min(ms, PVFS_HOLD_MAX_MS);
out:
	pthread_mutex_unlock(&h->lock);
	return err;
}

bool iod_hold_wait(struct iod_holds *h, const struct pvfs_fid *fid, struct pvfs_call *call,
		   iod_handler again)
{
	u64 session = call->peer->session;
	struct hold_waiter *w = NULL;
	struct hold *d;

	if (!atomic_load(&h->n))
		return false;
	pthread_mutex_lock(&h->lock);
	d = find(h, fid);
	if (d)
		w = malloc(sizeof(*w));
	if (w) {
		*w = (struct hold_waiter){ .call = call, .again = again };
		STAILQ_INSERT_TAIL(&d->waiters, w, link);
	}
	pthread_mutex_unlock(&h->lock);
	/* Without memory it goes on: better than to fail. */
	if (!w)
		return false;
	iod_count(h->iod->counts.held, 1);
	/* Evicted just now? Who did that looked for waiters before we were one, or finds us, too. */
	if (iod_fence_has(h->iod->fence, session))
		iod_holds_evict(h, session);
	return true;
}

void iod_holds_evict(struct iod_holds *h, u64 session)
{
	struct waiters gone = STAILQ_HEAD_INITIALIZER(gone), stay;
	struct hold_waiter *w;
	struct hold *d;

	if (!atomic_load(&h->n))
		return;
	pthread_mutex_lock(&h->lock);
	LIST_FOREACH(d, &h->list, link) {
		STAILQ_INIT(&stay);
		while ((w = STAILQ_FIRST(&d->waiters))) {
			STAILQ_REMOVE_HEAD(&d->waiters, link);
			if (pvfs_session_named(session, w->call->peer->session))
				STAILQ_INSERT_TAIL(&gone, w, link);
			else
				STAILQ_INSERT_TAIL(&stay, w, link);
		}
		STAILQ_CONCAT(&d->waiters, &stay);
	}
	pthread_mutex_unlock(&h->lock);
	while ((w = STAILQ_FIRST(&gone))) {
		STAILQ_REMOVE_HEAD(&gone, link);
		iod_fail(w->call, -ESTALE);
		free(w);
	}
}

/* Takes @d; call without the lock. */
static void let_go(struct iod_holds *h, struct hold *d)
{
	struct hold_waiter *w;

	while ((w = STAILQ_FIRST(&d->waiters))) {
		STAILQ_REMOVE_HEAD(&d->waiters, link);
		iod_hand_over(h->iod, w->call, w->again);
		free(w);
	}
	free(d);
}

/* Call with the lock. */
static void take_out(struct iod_holds *h, struct hold *d)
{
	LIST_REMOVE(d, link);
	atomic_fetch_sub(&h->n, 1);
}

void iod_hold_end(struct iod_holds *h, const struct pvfs_fid *fid)
{
	struct hold *d;

	if (!atomic_load(&h->n))
		return;
	pthread_mutex_lock(&h->lock);
	d = find(h, fid);
	if (d)
		take_out(h, d);
	pthread_mutex_unlock(&h->lock);
	if (d)
		let_go(h, d);
}

void iod_holds_expire(struct iod_holds *h, bool all)
{
	u64 now = now_ms();
	struct hold *d;

	while (atomic_load(&h->n)) {
		pthread_mutex_lock(&h->lock);
		LIST_FOREACH(d, &h->list, link)
			if (all || d->until <= now)
				break;
		if (d)
			take_out(h, d);
		pthread_mutex_unlock(&h->lock);
		if (!d)
			break;
		let_go(h, d);
	}
}
