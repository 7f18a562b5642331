// SPDX-License-Identifier: GPL-2.0
/*
 * leases.c - the table of leases; see leases.h. Locks are leaves, and held for a bucket's length, or
 * for the stripe's when a session ends.
 */
#include "leases.h"
#include <stdlib.h>

#define CLEAR_BUCKETS 256u	/* looked through for expired ones when the table is full */

static u32 bucket_of(u64 ino)
{
	return ino * 0x9e3779b97f4a7c15ull >> 48 & (MGR_LEASE_BUCKETS - 1);
}

static pthread_mutex_t *stripe_of(struct mgr_leases *l, u32 bucket)
{
	return &l->stripe[bucket % MGR_LEASE_STRIPES];
}

/* Takes one out of its bucket. */
static void lease_del(struct mgr_leases *l, struct mgr_lease **pp)
{
	struct mgr_lease *e = *pp;

	*pp = e->next;
	atomic_fetch_sub(&l->drafts, e->draft);
	free(e);
	atomic_fetch_sub_explicit(&l->count, 1, memory_order_relaxed);
}

/* What has expired in one bucket goes, and what is of @session. Lock held. */
static void purge(struct mgr_leases *l, u32 bucket, u64 now, u64 session)
{
	struct mgr_lease **pp;

	for (pp = &l->bucket[bucket]; *pp;) {
		if ((*pp)->end <= now || (*pp)->session == session)
			lease_del(l, pp);
		else
			pp = &(*pp)->next;
	}
}

/* The pointer to it, or to the end of its bucket. Lock held. */
static struct mgr_lease **find(struct mgr_leases *l, u32 bucket, u64 ino, u64 session)
{
	struct mgr_lease **pp;

	for (pp = &l->bucket[bucket]; *pp; pp = &(*pp)->next)
		if ((*pp)->ino == ino && (*pp)->session == session)
			break;
	return pp;
}

static bool full(struct mgr_leases *l)
{
	return atomic_load_explicit(&l->count, memory_order_relaxed) >= l->max;
}

static bool make_room(struct mgr_leases *l, u64 now)
{
	u32 i, bucket;

	for (i = 0; i < CLEAR_BUCKETS && full(l); i++) {
		bucket = atomic_fetch_add(&l->hand, 1) % MGR_LEASE_BUCKETS;
		pthread_mutex_lock(stripe_of(l, bucket));
		purge(l, bucket, now, 0);
		pthread_mutex_unlock(stripe_of(l, bucket));
	}
	return !full(l);
}

bool mgr_leases_grant(struct mgr_leases *l, u64 ino, u64 session, u64 now, u64 end)
{
	u32 bucket = bucket_of(ino);
	bool room = !full(l) || make_room(l, now);
	struct mgr_lease *e;

	pthread_mutex_lock(stripe_of(l, bucket));
	purge(l, bucket, now, 0);
	e = *find(l, bucket, ino, session);
	if (!e && room) {
		e = malloc(sizeof(*e));
		if (e) {
			*e = (struct mgr_lease){
				.next = l->bucket[bucket], .ino = ino, .session = session,
			};
			l->bucket[bucket] = e;
			atomic_fetch_add_explicit(&l->count, 1, memory_order_relaxed);
		}
	}
	if (e)
		e->end = end;
	pthread_mutex_unlock(stripe_of(l, bucket));
	atomic_fetch_add_explicit(e ? &l->granted : &l->refused, 1, memory_order_relaxed);
	return e;
}

void mgr_leases_drop(struct mgr_leases *l, u64 ino, u64 session)
{
	u32 bucket = bucket_of(ino);
	struct mgr_lease **pp;

	pthread_mutex_lock(stripe_of(l, bucket));
	pp = find(l, bucket, ino, session);
	if (*pp)
		lease_del(l, pp);
	pthread_mutex_unlock(stripe_of(l, bucket));
}

void mgr_leases_draft(struct mgr_leases *l, u64 ino, u64 session, bool on)
{
	u32 bucket = bucket_of(ino);
	struct mgr_lease *e;

	if (!on && !atomic_load(&l->drafts))
		return;
	pthread_mutex_lock(stripe_of(l, bucket));
	e = *find(l, bucket, ino, session);
	if (e && e->draft != on) {
		e->draft = on;
		if (on)
			atomic_fetch_add(&l->drafts, 1);
		else
			atomic_fetch_sub(&l->drafts, 1);
	}
	pthread_mutex_unlock(stripe_of(l, bucket));
}

bool mgr_leases_draft_of(struct mgr_leases *l, u64 ino, u64 session)
{
	u32 bucket = bucket_of(ino);
	struct mgr_lease *e;
	bool ret;

	if (!atomic_load(&l->drafts))
		return false;
	pthread_mutex_lock(stripe_of(l, bucket));
	e = *find(l, bucket, ino, session);
	ret = e && e->draft;
	pthread_mutex_unlock(stripe_of(l, bucket));
	return ret;
}

bool mgr_leases_drafted(struct mgr_leases *l, u64 ino, u64 but, u64 now)
{
	u32 bucket = bucket_of(ino);
	struct mgr_lease *e;

	if (!atomic_load(&l->drafts))
		return false;
	pthread_mutex_lock(stripe_of(l, bucket));
	for (e = l->bucket[bucket]; e; e = e->next)
		if (e->draft && e->ino == ino && e->session != but && e->end > now)
			break;
	pthread_mutex_unlock(stripe_of(l, bucket));
	return e;
}

void mgr_leases_sweep(struct mgr_leases *l, u64 session)
{
	u32 stripe, i;

	if (!atomic_load(&l->count))
		return;
	for (stripe = 0; stripe < MGR_LEASE_STRIPES; stripe++) {
		pthread_mutex_lock(&l->stripe[stripe]);
		for (i = stripe; i < MGR_LEASE_BUCKETS; i += MGR_LEASE_STRIPES)
			purge(l, i, 0, session);
		pthread_mutex_unlock(&l->stripe[stripe]);
	}
}

u32 mgr_leases_held(struct mgr_leases *l, u64 ino, u64 but, u64 now, struct mgr_lease_holder *ret,
		    u32 room)
{
	u32 bucket = bucket_of(ino), n = 0;
	struct mgr_lease *e;

	if (!atomic_load(&l->count))
		return 0;
	pthread_mutex_lock(stripe_of(l, bucket));
	for (e = l->bucket[bucket]; e; e = e->next) {
		if (e->ino != ino || e->end <= now || (but && e->session == but))
			continue;
		if (n < room)
			ret[n] = (struct mgr_lease_holder){ e->session, e->end };
		n++;
	}
	pthread_mutex_unlock(stripe_of(l, bucket));
	return n;
}

int mgr_leases_init(struct mgr_leases *l, u32 max)
{
	u32 i;

	l->bucket = calloc(MGR_LEASE_BUCKETS, sizeof(*l->bucket));
	if (!l->bucket)
		return -ENOMEM;
	l->max = max;
	for (i = 0; i < MGR_LEASE_STRIPES; i++)
		pthread_mutex_init(&l->stripe[i], NULL);
	return 0;
}

void mgr_leases_fini(struct mgr_leases *l)
{
	u32 i;

	if (!l->bucket)
		return;
	for (i = 0; i < MGR_LEASE_BUCKETS; i++)
		purge(l, i, ~0ull, 0);
	for (i = 0; i < MGR_LEASE_STRIPES; i++)
		pthread_mutex_destroy(&l->stripe[i]);
	free(l->bucket);
	l->bucket = NULL;
}
