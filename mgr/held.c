// SPDX-License-Identifier: GPL-2.0
/*
 * held.c - lists of what each session has; see held.h. Knows neither opens nor leases.
 */
#include "held.h"
#include <errno.h>
#include <stdlib.h>

static u32 bucket_of(u64 session)
{
	return session % MGR_HELD_BUCKETS;
}

/* Lock held. */
static struct mgr_held_by *by_find(struct mgr_helds *t, u64 session)
{
	struct mgr_held_by *by;

	LIST_FOREACH(by, &t->bucket[bucket_of(session)].list, link)
		if (by->session == session)
			return by;
	return NULL;
}

/* Lock held. */
static struct mgr_held_by *by_get(struct mgr_helds *t, u64 session)
{
	struct mgr_held_by *by = by_find(t, session);

	if (by)
		return by;
	by = calloc(1, sizeof(*by));
	if (!by)
		return NULL;
	by->session = session;
	LIST_INSERT_HEAD(&t->bucket[bucket_of(session)].list, by, link);
	return by;
}

int mgr_held_add(struct mgr_helds *t, struct mgr_held *h, u64 session, u64 ino,
		 const atomic_bool *dead)
{
	pthread_mutex_t *lock = &t->bucket[bucket_of(session)].lock;
	int err = -ESTALE;

	pthread_mutex_lock(lock);
	if (dead && atomic_load(dead))
		goto out;
	err = -ENOMEM;
	h->by = by_get(t, session);
	if (!h->by)
		goto out;
	h->ino = ino;
	LIST_INSERT_HEAD(&h->by->list, h, link);
	err = 0;
out:
	pthread_mutex_unlock(lock);
	return err;
}

void mgr_held_del(struct mgr_helds *t, struct mgr_held *h, u64 session)
{
	pthread_mutex_t *lock = &t->bucket[bucket_of(session)].lock;

	pthread_mutex_lock(lock);
	LIST_REMOVE(h, link);
	if (LIST_EMPTY(&h->by->list)) {
		LIST_REMOVE(h->by, link);
		free(h->by);
	}
	h->by = NULL;
	pthread_mutex_unlock(lock);
}

u32 mgr_helds_of(struct mgr_helds *t, u64 session, u64 *inos, u32 room)
{
	pthread_mutex_t *lock = &t->bucket[bucket_of(session)].lock;
	struct mgr_held_by *by;
	struct mgr_held *h;
	u32 n = 0;

	pthread_mutex_lock(lock);
	by = by_find(t, session);
	h = by ? LIST_FIRST(&by->list) : NULL;
	for (; h && n < room; h = LIST_NEXT(h, link))
		inos[n++] = h->ino;
	pthread_mutex_unlock(lock);
	return n;
}

void mgr_helds_init(struct mgr_helds *t)
{
	u32 i;

	for (i = 0; i < MGR_HELD_BUCKETS; i++) {
		pthread_mutex_init(&t->bucket[i].lock, NULL);
		LIST_INIT(&t->bucket[i].list);
	}
}

void mgr_helds_fini(struct mgr_helds *t)
{
	u32 i;

	for (i = 0; i < MGR_HELD_BUCKETS; i++)
		pthread_mutex_destroy(&t->bucket[i].lock);
}
