// SPDX-License-Identifier: GPL-2.0
/*
 * fdcache.c - open datafiles, found by fid; see fdcache.h.
 *
 * The table is cut into stripes by a hash of the fid. Each has two locks:
 *
 *   open_lock  held while a datafile of the stripe is opened, made or removed, disk and all. So for
 *              one fid these happen one after the other: no datafile is opened twice, none is put
 *              in the table after its removal, none is made by who looked before the removal.
 *   lock       protects the table, the LRU list and the counts. Held for a few instructions; a hit
 *              takes no other.
 *
 * Order: open_lock, then lock.
 *
 * An entry is in the table, or dead. With refs 0 and in the table it is on the LRU list, and may be
 * closed at any time if it is clean; a dead entry is closed by who drops the last reference. Closing
 * can take long (the last close of a removed file frees its blocks), so it is always done without a
 * lock.
 *
 * One that was written is clean when it has been synced, alone or by a pass: one sync of the whole
 * store for all of them, as a sync for each would slow down who makes many small files to what the
 * disk does in syncs. Passes are numbered. A write that ends while passes up to n have begun is
 * covered by pass n + 1, whenever that begins. A pass is begun, beside the requests, when nothing
 * clean is left to be closed; who would write when there are twice as many as should be waits for it.
 */
#include "fdcache.h"
#include "loss.h"
#include "sched.h"
#include "../common/log.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define STRIPES_MAX 64u
#define TOMBS 1024u		/* per stripe */
#define TOMB_CHAINS 256u
#define LOOK 32u		/* so many are looked at for one that may be closed */

struct tomb {
	u64 ino;
	u32 gen;
	u16 next;		/* in its chain, index + 1 */
	bool used;
};

struct iod_fds_stripe {
	struct iod_fds *cache;
	pthread_mutex_t open_lock, lock;

	/* protected by open_lock: a ring of the fids removed last, found by chains */
	struct tomb *tombs;
	u16 chain[TOMB_CHAINS];	/* index + 1 */
	u32 tomb_next;

	/* protected by lock */
	struct iod_fdent **bucket;
	TAILQ_HEAD(fdlru, iod_fdent) lru;	/* longest unused first */
	u32 n, in_use;
	u64 hits, misses, evictions;
};

struct iod_fds {
	struct iod_store *store;
	struct iod_sched *sched;
	pthread_mutex_t pass_lock;	/* held by a pass; none of the others is */
	_Atomic u64 begun, done;	/* passes */
	atomic_flag passing;		/* one is submitted */
	u32 nstripes, nbuckets;		/* powers of two; buckets per stripe */
	u32 limit;			/* per stripe */
	struct iod_fds_stripe stripe[];
};

static u64 fid_hash(const struct pvfs_fid *fid)
{
	u64 h = (fid->ino ^ ((u64)fid->gen << 40)) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	return h * 0xd6e8feb86659fd93ull;
}

static bool fid_equal(const struct pvfs_fid *a, const struct pvfs_fid *b)
{
	return a->ino == b->ino && a->gen == b->gen;
}

static struct iod_fds_stripe *stripe_of(struct iod_fds *c, u64 h)
{
	return &c->stripe[(h >> 56) & (c->nstripes - 1)];
}

static struct iod_fdent **bucket_of(struct iod_fds_stripe *st, u64 h)
{
	return &st->bucket[(h >> 24) & (st->cache->nbuckets - 1)];
}

static u32 pow2_at_most(u32 v)
{
	return v ? 1u << (31 - __builtin_clz(v)) : 1;
}

/* ---------------------------------------------------------------- tombs; call with open_lock */

static u16 *tomb_chain(struct iod_fds_stripe *st, u64 h)
{
	return &st->chain[(h >> 16) & (TOMB_CHAINS - 1)];
}

static bool tomb_has(struct iod_fds_stripe *st, const struct pvfs_fid *fid, u64 h)
{
	u16 i;

	for (i = *tomb_chain(st, h); i; i = st->tombs[i - 1].next) {
		if (st->tombs[i - 1].ino == fid->ino && st->tombs[i - 1].gen == fid->gen)
			return true;
	}
	return false;
}

/*
 * Inos are never used again, so a tomb is never wrong and need not end by time: the oldest goes
 * when the ring is full.
 */
static void tomb_add(struct iod_fds_stripe *st, const struct pvfs_fid *fid, u64 h)
{
	struct tomb *t = &st->tombs[st->tomb_next];
	u16 idx = st->tomb_next + 1, *link;

	if (tomb_has(st, fid, h))
		return;
	if (t->used) {
		struct pvfs_fid old = { .ino = t->ino, .gen = t->gen };

		link = tomb_chain(st, fid_hash(&old));
		while (*link != idx)
			link = &st->tombs[*link - 1].next;
		*link = t->next;
	}
	link = tomb_chain(st, h);
	*t = (struct tomb){ .ino = fid->ino, .gen = fid->gen, .next = *link, .used = true };
	*link = idx;
	st->tomb_next = (st->tomb_next + 1) % TOMBS;
}

/* ---------------------------------------------------------------- the table; call with lock */

/* Takes a reference. */
static struct iod_fdent *table_get(struct iod_fds_stripe *st, const struct pvfs_fid *fid, u64 h)
{
	struct iod_fdent *e = *bucket_of(st, h);

	while (e && !fid_equal(&e->file.fid, fid))
		e = e->next;
	if (e && !e->refs++) {
		TAILQ_REMOVE(&st->lru, e, lru);
		st->in_use++;
	}
	return e;
}

static void table_del(struct iod_fds_stripe *st, struct iod_fdent *e)
{
	struct iod_fdent **l = bucket_of(st, fid_hash(&e->file.fid));

	while (*l != e)
		l = &(*l)->next;
	*l = e->next;
	e->dead = true;
	st->n--;
}

/*
 * The one to close when there are too many, out of the table; NULL when there is none that may be. Beyond
 * twice the limit, where readers alone come who don't wait for a pass, all are looked at.
 */
static struct iod_fdent *table_evict(struct iod_fds_stripe *st)
{
	u32 limit = st->cache->limit, look = st->n - st->in_use > 2 * limit ? st->n : LOOK, i;
	struct iod_fdent *e = st->n > limit ? TAILQ_FIRST(&st->lru) : NULL;
	u64 done = atomic_load(&st->cache->done);

	for (i = 0; e && atomic_load(&e->unsynced) > done; i++)
		e = i < look ? TAILQ_NEXT(e, lru) : NULL;
	if (e) {
		TAILQ_REMOVE(&st->lru, e, lru);
		table_del(st, e);
		st->evictions++;
	}
	return e;
}

/* ---------------------------------------------------------------- interface */

/* Without locks. @e is dead and has no reference; NULL is fine. */
static void ent_close(struct iod_fds *c, struct iod_fdent *e)
{
	if (!e)
		return;
	c->store->ops->close(c->store, &e->file);
	free(e);
}

/* Closes what is too much and clean. */
static void trim(struct iod_fds *c)
{
	struct iod_fdent *victim;
	u32 i;

	for (i = 0; i < c->nstripes; i++) {
		do {
			pthread_mutex_lock(&c->stripe[i].lock);
			victim = table_evict(&c->stripe[i]);
			pthread_mutex_unlock(&c->stripe[i].lock);
			ent_close(c, victim);
		} while (victim);
	}
}

/* Returns when a pass is done that began after this call, its own or another's. */
static void pass(struct iod_fds *c)
{
	u64 due = atomic_load(&c->begun) + 1;
	int err;

	pthread_mutex_lock(&c->pass_lock);
	if (atomic_load(&c->done) < due) {
		due = atomic_fetch_add(&c->begun, 1) + 1;
		err = c->store->ops->sync_all(c->store);
		if (err) {
			/* Before one that lost something is closed, and synced by who opens it anew. */
			iod_loss_note(c->store->loss);
			pvfs_log_limited(PVFS_LOG_ERROR, "sync of the store: %s; unsynced data may be lost",
					 strerror(-err));
		}
		atomic_store(&c->done, due);
	}
	pthread_mutex_unlock(&c->pass_lock);
	trim(c);
}

/* On a thread of sched.c. */
static void pass_beside(void *arg)
{
	struct iod_fds *c = arg;

	pass(c);
	atomic_flag_clear(&c->passing);		/* not before: one thread is enough */
}

struct iod_fdent *iod_fds_lookup(struct iod_fds *c, const struct pvfs_fid *fid)
{
	u64 h = fid_hash(fid);
	struct iod_fds_stripe *st = stripe_of(c, h);
	struct iod_fdent *e;

	pthread_mutex_lock(&st->lock);
	e = table_get(st, fid, h);
	if (e)
		st->hits++;
	pthread_mutex_unlock(&st->lock);
	return e;
}

int iod_fds_get(struct iod_fds *c, const struct pvfs_fid *fid, bool create, struct iod_fdent **ret)
{
	u64 h = fid_hash(fid);
	struct iod_fds_stripe *st = stripe_of(c, h);
	struct iod_fdent *e, *victim, **b;
	u32 unused = 0;
	bool gone;
	int err;

	e = iod_fds_lookup(c, fid);
	if (e) {
		*ret = e;
		return 0;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	pthread_mutex_lock(&st->open_lock);
	/* Another one may have opened it while we waited for the lock. */
	*ret = iod_fds_lookup(c, fid);
	if (*ret) {
		pthread_mutex_unlock(&st->open_lock);
		free(e);
		return 0;
	}
	gone = tomb_has(st, fid, h);
	err = c->store->ops->open(c->store, fid, create && !gone, &e->file);
	if (err) {
		pthread_mutex_unlock(&st->open_lock);
		free(e);
		return gone && err == -ENOENT ? -ESTALE : err;
	}
	e->stripe = st;
	e->refs = 1;
	pthread_mutex_lock(&st->lock);
	b = bucket_of(st, h);
	e->next = *b;
	*b = e;
	st->n++;
	st->in_use++;
	st->misses++;
	victim = table_evict(st);
	if (!victim && st->n > c->limit)
		unused = st->n - st->in_use;
	pthread_mutex_unlock(&st->lock);
	pthread_mutex_unlock(&st->open_lock);
	ent_close(c, victim);
	/* Who only reads makes none of them, and may be on a thread that others' messages wait for. */
	if ((create && unused > 2 * c->limit) || (unused && !c->sched))
		pass(c);
	else if (unused && !atomic_flag_test_and_set(&c->passing))
		iod_sched_run(c->sched, pass_beside, c);
	*ret = e;
	return 0;
}

static void note_time(struct iod_fdent *e)
{
	u64 had = atomic_load(&e->wrote_ns), now;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	while (had < now && !atomic_compare_exchange_weak(&e->wrote_ns, &had, now))
		;
}

struct pvfs_ts iod_fds_wtime(const struct iod_fdent *e, const struct pvfs_ts *mtime)
{
	u64 ns = e ? atomic_load(&e->wrote_ns) : 0;
	struct pvfs_ts wrote = { .sec = ns / 1000000000, .nsec = ns % 1000000000 };

	return pvfs_ts_after(&wrote, mtime) ? wrote : *mtime;
}

void iod_fds_wrote(struct iod_fdent *e, int err)
{
	u64 due = atomic_load(&e->stripe->cache->begun) + 1, had = atomic_load(&e->unsynced);

	if (!err)
		note_time(e);
	/* Another, that ended after us, may have been here before. */
	while (had < due && !atomic_compare_exchange_weak(&e->unsynced, &had, due))
		;
}

void iod_fds_syncing(struct iod_fdent *e)
{
	/* Who writes from now on says so when it has. */
	atomic_store(&e->unsynced, 0);
}

struct iod_fdent *iod_fds_ref(struct iod_fdent *e)
{
	pthread_mutex_lock(&e->stripe->lock);
	e->refs++;
	pthread_mutex_unlock(&e->stripe->lock);
	return e;
}

void iod_fds_put(struct iod_fdent *e)
{
	struct iod_fds_stripe *st = e->stripe;
	struct iod_fdent *victim = NULL;

	pthread_mutex_lock(&st->lock);
	if (!--e->refs) {
		st->in_use--;
		if (e->dead) {
			victim = e;
		} else {
			TAILQ_INSERT_TAIL(&st->lru, e, lru);
			victim = table_evict(st);
		}
	}
	pthread_mutex_unlock(&st->lock);
	ent_close(st->cache, victim);
}

int iod_fds_fill(struct iod_fds *c, const struct pvfs_fid *fid, const void *data, u32 len)
{
	u64 h = fid_hash(fid);
	struct iod_fds_stripe *st = stripe_of(c, h);
	const struct iod_store_ops *ops = c->store->ops;
	struct iod_file f;
	bool gone;
	int err;

	err = ops->draft(c->store, fid, data, len, &f);
	if (err)
		return err;
	pthread_mutex_lock(&st->open_lock);
	gone = tomb_has(st, fid, h);
	err = gone ? -ESTALE : ops->publish(c->store, &f);
	pthread_mutex_unlock(&st->open_lock);
	if (err)
		ops->withdraw(c->store, &f);
	/* One that is there may have got its name a moment ago. */
	if (!err || err == -EEXIST)
		err = ops->sync(c->store, &f, true);
	/* What others wrote to one that was there may be among what was lost. */
	if (err && err != -ESTALE)
		iod_loss_note(c->store->loss);
	ops->close(c->store, &f);
	return gone ? 0 : err;
}

int iod_fds_remove(struct iod_fds *c, const struct pvfs_fid *fid)
{
	u64 h = fid_hash(fid);
	struct iod_fds_stripe *st = stripe_of(c, h);
	struct iod_fdent *e;
	int err;

	pthread_mutex_lock(&st->open_lock);
	tomb_add(st, fid, h);
	err = c->store->ops->remove(c->store, fid);
	pthread_mutex_lock(&st->lock);
	e = table_get(st, fid, h);
	if (e)
		table_del(st, e);
	pthread_mutex_unlock(&st->lock);
	pthread_mutex_unlock(&st->open_lock);
	if (e)
		iod_fds_put(e);
	return err;
}

void iod_fds_stats(struct iod_fds *c, FILE *f)
{
	u64 hits = 0, misses = 0, evictions = 0;
	u32 n = 0, in_use = 0, i;

	for (i = 0; i < c->nstripes; i++) {
		struct iod_fds_stripe *st = &c->stripe[i];

		pthread_mutex_lock(&st->lock);
		hits += st->hits;
		misses += st->misses;
		evictions += st->evictions;
		n += st->n;
		in_use += st->in_use;
		pthread_mutex_unlock(&st->lock);
	}
	fprintf(f,
		"\"open\":%u,\"in_use\":%u,\"limit\":%u,\"hits\":%llu,\"opens\":%llu,\"evictions\":%llu,\"passes\":%llu",
		n, in_use, c->limit * c->nstripes, (unsigned long long)hits,
		(unsigned long long)misses, (unsigned long long)evictions,
		(unsigned long long)atomic_load(&c->done));
}

int iod_fds_new(struct iod_store *store, struct iod_sched *sched, u32 limit, struct iod_fds **ret)
{
	u32 nstripes = min(pow2_at_most(limit / 16), STRIPES_MAX), i;
	struct iod_fds *c;

	c = calloc(1, sizeof(*c) + nstripes * sizeof(c->stripe[0]));
	if (!c)
		return -ENOMEM;
	c->store = store;
	c->sched = sched;
	pthread_mutex_init(&c->pass_lock, NULL);
	c->nstripes = nstripes;
	c->limit = max(limit / nstripes, 1u);
	c->nbuckets = 2 * pow2_at_most(c->limit);
	for (i = 0; i < nstripes; i++) {
		struct iod_fds_stripe *st = &c->stripe[i];

		st->cache = c;
		pthread_mutex_init(&st->open_lock, NULL);
		pthread_mutex_init(&st->lock, NULL);
		TAILQ_INIT(&st->lru);
		st->tombs = calloc(TOMBS, sizeof(*st->tombs));
		st->bucket = calloc(c->nbuckets, sizeof(*st->bucket));
		if (!st->tombs || !st->bucket) {
			c->nstripes = i + 1;
			iod_fds_free(c);
			return -ENOMEM;
		}
	}
	*ret = c;
	return 0;
}

void iod_fds_free(struct iod_fds *c)
{
	struct iod_fdent *e;
	u32 i;

	if (!c)
		return;
	for (i = 0; i < c->nstripes; i++) {
		struct iod_fds_stripe *st = &c->stripe[i];

		while ((e = TAILQ_FIRST(&st->lru)) != NULL) {
			TAILQ_REMOVE(&st->lru, e, lru);
			table_del(st, e);
			ent_close(c, e);
		}
		free(st->bucket);
		free(st->tombs);
		pthread_mutex_destroy(&st->lock);
		pthread_mutex_destroy(&st->open_lock);
	}
	pthread_mutex_destroy(&c->pass_lock);
	free(c);
}
