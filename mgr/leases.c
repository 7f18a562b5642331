// SPDX-License-Identifier: GPL-2.0
/*
 * leases.c - the table of leases; see leases.h.
 *
 * A lease is in three places: in a table by inode and session, so that one of many holders is found
 * at once; in its inode's list, so that a recall looks at the holders and nobody else; in its
 * session's list (held.h), so that a session's end costs what it had. A stripe has all that is known
 * of an inode. Its lock is a leaf but for that of the session's list.
 */
#include "leases.h"
#include <stdlib.h>

#define CLEAR_BUCKETS 256u	/* looked through for expired ones when the table is full */
#define SWEEP_BATCH 64u

static u64 mix(u64 v)
{
	return v * 0x9e3779b97f4a7c15ull;
}

static struct mgr_lease_stripe *stripe_of(struct mgr_leases *l, u64 ino)
{
	return &l->stripe[(mix(ino) >> 58) % MGR_LEASE_STRIPES];
}

static u32 inode_bucket(u64 ino)
{
	return mix(ino) >> 40 & (MGR_LEASE_BUCKETS - 1);
}

static u32 lease_bucket(u64 ino, u64 session)
{
	return mix(mix(ino) ^ session) >> 40 & (MGR_LEASE_BUCKETS - 1);
}

static struct mgr_lease_stripe *stripe_lock(struct mgr_leases *l, u64 ino)
{
	struct mgr_lease_stripe *s = stripe_of(l, ino);

	pthread_mutex_lock(&s->lock);
	return s;
}

/* ---- the stripe's lock is held in all that follows ---- */

static struct mgr_leased *inode_find(struct mgr_lease_stripe *s, u64 ino)
{
	struct mgr_leased *f;

	LIST_FOREACH(f, &s->inode[inode_bucket(ino)], link)
		if (f->ino == ino)
			return f;
	return NULL;
}

static struct mgr_leased *inode_get(struct mgr_lease_stripe *s, u64 ino)
{
	struct mgr_leased *f = inode_find(s, ino);

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->ino = ino;
	TAILQ_INIT(&f->list);
	LIST_INSERT_HEAD(&s->inode[inode_bucket(ino)], f, link);
	return f;
}

/* Frees @f when nobody has a lease on it any more. */
static void inode_trim(struct mgr_leased *f)
{
	if (TAILQ_FIRST(&f->list))
		return;
	LIST_REMOVE(f, link);
	free(f);
}

static struct mgr_lease *lease_find(struct mgr_lease_stripe *s, u64 ino, u64 session)
{
	struct mgr_lease *e;

	LIST_FOREACH(e, &s->lease[lease_bucket(ino, session)], link)
		if (e->session == session && e->on->ino == ino)
			return e;
	return NULL;
}

static bool kept(const struct mgr_lease *e)
{
	return e->draft || e->write;
}

static u64 lease_end(const struct mgr_lease *e)
{
	return e->write || e->lasts ? MGR_LEASE_NEVER : e->read_end;
}

/* Leaves its inode in place. */
static void lease_free(struct mgr_leases *l, struct mgr_lease *e)
{
	LIST_REMOVE(e, link);
	TAILQ_REMOVE(&e->on->list, e, in_inode);
	mgr_held_del(&l->of, &e->held, e->session);
	atomic_fetch_sub(&l->kept, kept(e));
	atomic_fetch_sub(&l->drafts, e->draft);
	atomic_fetch_sub(&l->writes, e->write);
	atomic_fetch_sub(&l->lasting, e->lasts);
	free(e);
	atomic_fetch_sub_explicit(&l->count, 1, memory_order_relaxed);
}

static void lease_del(struct mgr_leases *l, struct mgr_lease *e)
{
	struct mgr_leased *f = e->on;

	lease_free(l, e);
	inode_trim(f);
}

/* Leases end in their inode's order, whatever end a caller names. */
static void lease_order(struct mgr_leased *f, struct mgr_lease *e)
{
	struct mgr_lease *last;

	TAILQ_FOREACH_REVERSE(last, &f->list, mgr_lease_list, in_inode)
		if (last->end <= e->end)
			break;
	if (last)
		TAILQ_INSERT_AFTER(&f->list, last, e, in_inode);
	else
		TAILQ_INSERT_HEAD(&f->list, e, in_inode);
}

/* Also what it is changes the order; it may be in none. */
static void lease_mark(struct mgr_leases *l, struct mgr_lease *e, bool draft, bool write)
{
	bool was = kept(e);

	atomic_fetch_add(&l->drafts, draft - e->draft);
	atomic_fetch_add(&l->writes, write - e->write);
	e->draft = draft;
	e->write = write;
	atomic_fetch_add(&l->kept, kept(e) - was);
	e->end = lease_end(e);
}

/* The same. */
static void lease_mark_lasts(struct mgr_leases *l, struct mgr_lease *e, bool lasts)
{
	atomic_fetch_add(&l->lasting, lasts - e->lasts);
	e->lasts = lasts;
	e->end = lease_end(e);
}

static void lease_move(struct mgr_lease *e)
{
	TAILQ_REMOVE(&e->on->list, e, in_inode);
	lease_order(e->on, e);
}

static struct mgr_lease *lease_new(struct mgr_leases *l, struct mgr_lease_stripe *s,
				   struct mgr_leased *f, u64 session)
{
	struct mgr_lease *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->on = f;
	e->session = session;
	if (mgr_held_add(&l->of, &e->held, session, f->ino, NULL)) {
		free(e);
		return NULL;
	}
	LIST_INSERT_HEAD(&s->lease[lease_bucket(f->ino, session)], e, link);
	atomic_fetch_add_explicit(&l->count, 1, memory_order_relaxed);
	return e;
}

/* What has expired on an inode goes. */
static void purge(struct mgr_leases *l, struct mgr_leased *f, u64 now)
{
	struct mgr_lease *e, *next;

	for (e = TAILQ_FIRST(&f->list); e && e->end <= now; e = next) {
		next = TAILQ_NEXT(e, in_inode);
		lease_free(l, e);
	}
}

/* ---- no lock is held in what follows ---- */

static bool full(struct mgr_leases *l)
{
	return atomic_load_explicit(&l->count, memory_order_relaxed) >= l->max;
}

static void clear_bucket(struct mgr_leases *l, struct mgr_lease_stripe *s, u32 bucket, u64 now)
{
	struct mgr_leased *f, *next;

	pthread_mutex_lock(&s->lock);
	for (f = LIST_FIRST(&s->inode[bucket]); f; f = next) {
		next = LIST_NEXT(f, link);
		purge(l, f, now);
		inode_trim(f);
	}
	pthread_mutex_unlock(&s->lock);
}

static bool make_room(struct mgr_leases *l, u64 now)
{
	u32 i, at;

	for (i = 0; i < CLEAR_BUCKETS && full(l); i++) {
		at = atomic_fetch_add(&l->hand, 1);
		clear_bucket(l, &l->stripe[at % MGR_LEASE_STRIPES],
			     at / MGR_LEASE_STRIPES % MGR_LEASE_BUCKETS, now);
	}
	return !full(l);
}

bool mgr_leases_grant(struct mgr_leases *l, u64 ino, u64 session, u64 now, u64 end)
{
	bool room = !full(l) || make_room(l, now);
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_lease *e = NULL;
	struct mgr_leased *f;

	f = room ? inode_get(s, ino) : inode_find(s, ino);
	if (!f)
		goto out;
	purge(l, f, now);
	e = lease_find(s, ino, session);
	if (e)
		TAILQ_REMOVE(&f->list, e, in_inode);
	else if (room)
		e = lease_new(l, s, f, session);
	if (e) {
		e->read_end = end;
		e->end = lease_end(e);
		lease_order(f, e);
	}
	inode_trim(f);
out:
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(e ? &l->granted : &l->refused, 1, memory_order_relaxed);
	return e;
}

void mgr_leases_drop(struct mgr_leases *l, u64 ino, u64 session)
{
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_lease *e = lease_find(s, ino, session);

	if (e)
		lease_del(l, e);
	pthread_mutex_unlock(&s->lock);
}

void mgr_leases_drop_read(struct mgr_leases *l, u64 ino, u64 session)
{
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_lease *e = lease_find(s, ino, session);

	if (e && e->write) {
		e->read_end = 0;
		lease_mark_lasts(l, e, false);
	} else if (e) {
		lease_del(l, e);
	}
	pthread_mutex_unlock(&s->lock);
}

void mgr_leases_draft(struct mgr_leases *l, u64 ino, u64 session, bool on)
{
	struct mgr_lease_stripe *s;
	struct mgr_lease *e;

	if (!on && !atomic_load(&l->kept))
		return;
	s = stripe_lock(l, ino);
	e = lease_find(s, ino, session);
	if (e && !e->write)
		lease_mark(l, e, on, false);
	pthread_mutex_unlock(&s->lock);
}

/* Stripe lock held. One that is not to be believed by itself: it has expired. */
static struct mgr_lease *lease_get(struct mgr_leases *l, struct mgr_lease_stripe *s, u64 ino, u64 session,
				   bool room)
{
	struct mgr_leased *f = room ? inode_get(s, ino) : NULL;
	struct mgr_lease *e;

	if (!f)
		return NULL;
	e = lease_new(l, s, f, session);
	if (e)
		lease_order(f, e);
	else
		inode_trim(f);
	return e;
}

/* Stripe lock held. */
static bool kept_elsewhere(const struct mgr_lease *e)
{
	const struct mgr_lease *o;

	TAILQ_FOREACH(o, &e->on->list, in_inode)
		if (o != e && kept(o))
			return true;
	return false;
}

bool mgr_leases_write(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*alone)(void *arg),
		      void *arg)
{
	bool room = !full(l) || make_room(l, now), ret = false;
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	bool had, draft;
	struct mgr_lease *e;

	if (inode_find(s, ino))
		purge(l, inode_find(s, ino), now);
	e = lease_find(s, ino, session);
	had = e && e->write;
	draft = e && e->draft;
	if (had) {
		ret = true;
	} else if (!alone) {
		ret = draft;
	} else if (e || (e = lease_get(l, s, ino, session, room))) {
		/* Seen by who opens it from here on: @kept is looked at first, and then there is the lock. */
		lease_mark(l, e, false, true);
		lease_move(e);
		ret = !kept_elsewhere(e) && alone(arg);
		if (!ret) {
			lease_mark(l, e, draft, false);
			lease_move(e);
		}
	}
	if (ret && !e->write) {
		lease_mark(l, e, false, true);
		lease_move(e);
	}
	if (e && e->end <= now)
		lease_del(l, e);
	else if (inode_find(s, ino))
		inode_trim(inode_find(s, ino));
	pthread_mutex_unlock(&s->lock);
	if (ret && !had)
		atomic_fetch_add_explicit(&l->write_granted, 1, memory_order_relaxed);
	return ret;
}

/* Has a session one that is, of those that @n counts, what @is says? */
static bool lease_of(struct mgr_leases *l, const atomic_uint *n, u64 ino, u64 session,
		     bool (*is)(const struct mgr_lease *e))
{
	struct mgr_lease_stripe *s;
	struct mgr_lease *e;
	bool ret;

	if (!atomic_load(n))
		return false;
	s = stripe_lock(l, ino);
	e = lease_find(s, ino, session);
	ret = e && is(e);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

static bool is_write(const struct mgr_lease *e)
{
	return e->write;
}

bool mgr_leases_writes(struct mgr_leases *l, u64 ino, u64 session)
{
	return lease_of(l, &l->writes, ino, session, is_write);
}

static bool is_lasting(const struct mgr_lease *e)
{
	return e->lasts;
}

bool mgr_leases_lasts(struct mgr_leases *l, u64 ino, u64 session)
{
	return lease_of(l, &l->lasting, ino, session, is_lasting);
}

/* Which session but @but has one that is, of those that @n counts, what @is says? 0: none. */
static u64 lease_of_another(struct mgr_leases *l, const atomic_uint *n, u64 ino, u64 but,
			    bool (*is)(const struct mgr_lease *e))
{
	struct mgr_lease_stripe *s;
	struct mgr_leased *f;
	struct mgr_lease *e;
	u64 ret = 0;

	if (!atomic_load(n))
		return 0;
	s = stripe_lock(l, ino);
	f = inode_find(s, ino);
	for (e = f ? TAILQ_FIRST(&f->list) : NULL; e && !ret; e = TAILQ_NEXT(e, in_inode))
		if (is(e) && e->session != but)
			ret = e->session;
	pthread_mutex_unlock(&s->lock);
	return ret;
}

u64 mgr_leases_writer(struct mgr_leases *l, u64 ino, u64 but)
{
	return lease_of_another(l, &l->writes, ino, but, is_write);
}

bool mgr_leases_lasting(struct mgr_leases *l, u64 ino, u64 but)
{
	return lease_of_another(l, &l->lasting, ino, but, is_lasting);
}

static bool is_draft(const struct mgr_lease *e)
{
	return e->draft;
}

bool mgr_leases_is_draft(struct mgr_leases *l, u64 ino, u64 session)
{
	return lease_of(l, &l->drafts, ino, session, is_draft);
}

bool mgr_leases_draft_of(struct mgr_leases *l, u64 ino, u64 session)
{
	return lease_of(l, &l->kept, ino, session, kept);
}

static void no_write(struct mgr_leases *l, struct mgr_lease *e)
{
	lease_mark(l, e, false, false);
}

static void no_lasting(struct mgr_leases *l, struct mgr_lease *e)
{
	lease_mark_lasts(l, e, false);
}

/* As mgr_leases_unwrite(), of one that is, of those that @n counts, what @is says: @not makes it none. */
static bool lease_over(struct mgr_leases *l, const atomic_uint *n, u64 ino, u64 session, u64 now,
		       bool (*is)(const struct mgr_lease *e), void (*not)(struct mgr_leases *l, struct mgr_lease *e),
		       bool (*over)(void *arg), void *arg)
{
	struct mgr_lease_stripe *s;
	struct mgr_lease *e;
	bool gone = false;

	if (!atomic_load(n))
		return false;
	s = stripe_lock(l, ino);
	e = lease_find(s, ino, session);
	if (e && is(e) && (!over || over(arg))) {
		not(l, e);
		lease_move(e);
		gone = e->end <= now;
		if (gone)
			lease_del(l, e);
	}
	pthread_mutex_unlock(&s->lock);
	return gone;
}

bool mgr_leases_unwrite(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*over)(void *arg),
			void *arg)
{
	return lease_over(l, &l->writes, ino, session, now, is_write, no_write, over, arg);
}

bool mgr_leases_unlast(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*over)(void *arg), void *arg)
{
	return lease_over(l, &l->lasting, ino, session, now, is_lasting, no_lasting, over, arg);
}

bool mgr_leases_last(struct mgr_leases *l, u64 ino, u64 session, u64 now, bool (*may)(void *arg), void *arg)
{
	bool room = !full(l) || make_room(l, now), ret = false;
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_lease *e = lease_find(s, ino, session) ?: lease_get(l, s, ino, session, room);

	if (!e)
		goto out;
	ret = e->lasts;
	if (!ret) {
		/* Seen by who comes in from here on: @lasting is looked at first, and then there is the lock. */
		lease_mark_lasts(l, e, true);
		ret = may(arg);
		if (!ret)
			lease_mark_lasts(l, e, false);
		lease_move(e);
	}
	if (e->end <= now)
		lease_del(l, e);
out:
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add_explicit(ret ? &l->granted : &l->refused, 1, memory_order_relaxed);
	return ret;
}

u64 mgr_leases_end(struct mgr_leases *l, u64 ino, u64 session)
{
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_lease *e = lease_find(s, ino, session);
	u64 end = e ? e->end : 0;

	pthread_mutex_unlock(&s->lock);
	return end;
}

bool mgr_leases_drafted(struct mgr_leases *l, u64 ino, u64 but, u64 now)
{
	struct mgr_lease_stripe *s;
	struct mgr_leased *f;
	struct mgr_lease *e;

	if (!atomic_load(&l->kept))
		return false;
	s = stripe_lock(l, ino);
	f = inode_find(s, ino);
	for (e = f ? TAILQ_FIRST(&f->list) : NULL; e; e = TAILQ_NEXT(e, in_inode))
		if (kept(e) && e->session != but && e->end > now)
			break;
	pthread_mutex_unlock(&s->lock);
	return e;
}

void mgr_leases_sweep(struct mgr_leases *l, u64 session)
{
	u64 ino[SWEEP_BATCH];
	u32 i, n;

	while ((n = mgr_helds_of(&l->of, session, ino, SWEEP_BATCH)))
		for (i = 0; i < n; i++)
			mgr_leases_drop(l, ino[i], session);
}

u32 mgr_leases_held(struct mgr_leases *l, u64 ino, u64 but, u64 now, struct mgr_lease_holder *ret,
		    u32 room)
{
	struct mgr_lease_stripe *s;
	struct mgr_leased *f;
	struct mgr_lease *e;
	u32 n = 0;

	if (!atomic_load(&l->count))
		return 0;
	s = stripe_lock(l, ino);
	f = inode_find(s, ino);
	for (e = f ? TAILQ_FIRST(&f->list) : NULL; e; e = TAILQ_NEXT(e, in_inode)) {
		if (e->end <= now || (but && e->session == but))
			continue;
		if (n < room)
			ret[n] = (struct mgr_lease_holder){ .session = e->session, .end = e->end, .write = e->write,
							    .kept = kept(e) };
		n++;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

u32 mgr_leases_holders(struct mgr_leases *l, u64 ino, u64 after, u64 now, struct mgr_holder *ret,
		       u32 room)
{
	struct mgr_lease_stripe *s = stripe_lock(l, ino);
	struct mgr_leased *f = inode_find(s, ino);
	struct mgr_lease *e;
	u32 n = 0;

	for (e = f ? TAILQ_FIRST(&f->list) : NULL; e; e = TAILQ_NEXT(e, in_inode)) {
		if (e->end <= now || e->session <= after)
			continue;
		if (n < room)
			ret[n] = (struct mgr_holder){
				.session = e->session, .end = e->end == MGR_LEASE_NEVER ? 0 : e->end,
				.flags = PVFS_HD_LEASE | (e->draft ? PVFS_HD_DRAFT : 0) |
					 (e->write ? PVFS_HD_WRITE : 0),
			};
		n++;
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

int mgr_leases_init(struct mgr_leases *l, u32 max)
{
	u32 i;

	l->stripe = calloc(MGR_LEASE_STRIPES, sizeof(*l->stripe));
	if (!l->stripe)
		return -ENOMEM;
	l->max = max;
	mgr_helds_init(&l->of);
	for (i = 0; i < MGR_LEASE_STRIPES; i++)
		pthread_mutex_init(&l->stripe[i].lock, NULL);
	return 0;
}

void mgr_leases_fini(struct mgr_leases *l)
{
	u32 i, b;

	if (!l->stripe)
		return;
	for (i = 0; i < MGR_LEASE_STRIPES; i++) {
		for (b = 0; b < MGR_LEASE_BUCKETS; b++)
			clear_bucket(l, &l->stripe[i], b, ~0ull);
		pthread_mutex_destroy(&l->stripe[i].lock);
	}
	mgr_helds_fini(&l->of);
	free(l->stripe);
	l->stripe = NULL;
}
