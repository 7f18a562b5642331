// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * bufmgr.c - zones of buffers with a bound and fair shares; see bufmgr.h.
 *
 * Zones are of 4 KiB, 16 KiB, ... up to the largest. What is given back stays allocated in its
 * zone, the last one in is the first one out (its memory is warm), until another zone needs the
 * room.
 *
 *   used       bytes of buffers that someone has
 *   allocated  bytes of all buffers: used + kept; never above the limit
 *
 * A client exists while it uses or waits for a buffer; their number is bounded by that of buffers
 * and connections. One lock protects everything: it is held for some hundred nanoseconds per
 * request that carries data.
 */
#include "bufmgr.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ZONE_MIN 4096u
#define ZONES 6			/* 4 KiB .. 4 MiB */
#define CLIENT_BUCKETS 1024u

struct pvfs_bufclient {
	struct pvfs_bufclient *next;
	u64 id;
	u64 used;		/* bytes */
	u32 waiting;		/* waits queued */
};

struct pvfs_buf {
	struct pvfs_bufs *m;
	struct pvfs_bufclient *client;	/* while in use */
	struct pvfs_buf *next;		/* while kept */
	u8 *mem;
	u32 zone;
};

struct zone {
	u32 size;
	struct pvfs_buf *kept;
	u32 nkept, nused;
	u64 gets, allocs, refused;
};

struct pvfs_bufs {
	pthread_mutex_t lock;	/* protects all below */
	u64 limit, used, allocated;
	u64 freed;		/* bytes given back since ready() was called */
	u32 nzones, nclients;
	struct zone zone[ZONES];
	TAILQ_HEAD(bufwaits, pvfs_bufwait) waits;	/* longest waiting first */
	u32 nwaits;
	u64 calls;		/* of ready() */
	struct pvfs_bufclient *client[CLIENT_BUCKETS];
	/* constant */
	void (*ready)(void *arg);
	void *arg;
};

static struct pvfs_bufclient **client_link(struct pvfs_bufs *m, u64 id)
{
	struct pvfs_bufclient **l = &m->client[(id * 0x9e3779b97f4a7c15ull) >> 54];

	while (*l && (*l)->id != id)
		l = &(*l)->next;
	return l;
}

static struct pvfs_bufclient *client_get(struct pvfs_bufs *m, u64 id)
{
	struct pvfs_bufclient **l = client_link(m, id);

	if (!*l) {
		*l = calloc(1, sizeof(**l));
		if (*l) {
			(*l)->id = id;
			m->nclients++;
		}
	}
	return *l;
}

/* Drops the client when it neither uses nor waits for anything. */
static void client_idle(struct pvfs_bufs *m, struct pvfs_bufclient *c)
{
	struct pvfs_bufclient **l;

	if (c->used || c->waiting)
		return;
	l = client_link(m, c->id);
	*l = c->next;
	m->nclients--;
	free(c);
}

static void unwait(struct pvfs_bufs *m, struct pvfs_bufwait *w)
{
	if (!w || !w->queued)
		return;
	TAILQ_REMOVE(&m->waits, w, link);
	w->queued = false;
	w->client->waiting--;
	m->nwaits--;
}

/* The policy; bufmgr.h has it in words. */
static bool may_have(struct pvfs_bufs *m, struct pvfs_bufclient *c, u32 size, struct pvfs_bufwait *w)
{
	struct pvfs_bufwait *first = TAILQ_FIRST(&m->waits);
	u64 after = m->used + size;

	if (after > m->limit)
		return false;
	if (first && first != w && after + first->size > m->limit)
		return false;
	if (after <= m->limit - m->limit / 4)
		return true;
	return !c->used || c->used + size <= m->limit / m->nclients;
}

static void buf_free(struct pvfs_bufs *m, struct pvfs_buf *b)
{
	m->allocated -= m->zone[b->zone].size;
	munmap(b->mem, m->zone[b->zone].size);
	free(b);
}

/* Kept buffers of other zones go until @size more bytes may be allocated; largest first. */
static void make_room(struct pvfs_bufs *m, u32 size)
{
	u32 z = m->nzones;

	while (z-- && m->allocated + size > m->limit) {
		struct zone *zn = &m->zone[z];

		while (zn->kept && m->allocated + size > m->limit) {
			struct pvfs_buf *b = zn->kept;

			zn->kept = b->next;
			zn->nkept--;
			buf_free(m, b);
		}
	}
}

static struct pvfs_buf *buf_alloc(struct pvfs_bufs *m, u32 z)
{
	u32 size = m->zone[z].size;
	struct pvfs_buf *b;

	make_room(m, size);
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->mem == MAP_FAILED) {
		free(b);
		return NULL;
	}
	b->m = m;
	b->zone = z;
	m->allocated += size;
	m->zone[z].allocs++;
	return b;
}

struct pvfs_buf *pvfs_bufs_get(struct pvfs_bufs *m, u64 client, u32 len, struct pvfs_bufwait *w,
			     u8 **ret_mem)
{
	struct pvfs_bufclient *c, *waited;
	struct pvfs_buf *b = NULL;
	struct zone *zn;
	u32 z = 0;

	while (z < m->nzones && m->zone[z].size < len)
		z++;
	if (z == m->nzones)
		return NULL;
	zn = &m->zone[z];
	pthread_mutex_lock(&m->lock);
	zn->gets++;
	c = client_get(m, client);
	if (!c)
		goto out;
	if (may_have(m, c, zn->size, w)) {
		b = zn->kept;
		if (b) {
			zn->kept = b->next;
			zn->nkept--;
		} else {
			b = buf_alloc(m, z);
		}
	}
	if (b) {
		waited = w && w->queued ? w->client : NULL;
		unwait(m, w);
		b->client = c;
		c->used += zn->size;
		m->used += zn->size;
		zn->nused++;
		*ret_mem = b->mem;
		/* A connection may have waited under another session. */
		if (waited)
			client_idle(m, waited);
	} else {
		zn->refused++;
		if (w && !w->queued) {
			w->client = c;
			w->size = zn->size;
			w->queued = true;
			c->waiting++;
			m->nwaits++;
			TAILQ_INSERT_TAIL(&m->waits, w, link);
		}
		client_idle(m, c);
	}
out:
	pthread_mutex_unlock(&m->lock);
	return b;
}

/*
 * Is it worth it to call all who wait? Not after every buffer, when a thousand wait: after a
 * sixteenth of the limit was given back, or when half of it is free.
 */
static bool worth_a_call(struct pvfs_bufs *m)
{
	if (!m->nwaits || (m->used > m->limit / 2 && m->freed < m->limit / 16))
		return false;
	m->freed = 0;
	m->calls++;
	return true;
}

void pvfs_bufs_put(struct pvfs_buf *b)
{
	struct pvfs_bufs *m = b->m;
	struct zone *zn = &m->zone[b->zone];
	bool call;

	pthread_mutex_lock(&m->lock);
	b->client->used -= zn->size;
	client_idle(m, b->client);
	b->client = NULL;
	m->used -= zn->size;
	m->freed += zn->size;
	zn->nused--;
	zn->nkept++;
	b->next = zn->kept;
	zn->kept = b;
	call = worth_a_call(m);
	pthread_mutex_unlock(&m->lock);
	if (call && m->ready)
		m->ready(m->arg);
}

void pvfs_bufs_forget(struct pvfs_bufs *m, struct pvfs_bufwait *w)
{
	bool call = false;

	pthread_mutex_lock(&m->lock);
	if (w->queued) {
		unwait(m, w);
		client_idle(m, w->client);
		/* It may have been the one that room was left for. */
		call = m->nwaits != 0;
	}
	pthread_mutex_unlock(&m->lock);
	if (call && m->ready)
		m->ready(m->arg);
}

void pvfs_bufs_kick(struct pvfs_bufs *m)
{
	bool call;

	pthread_mutex_lock(&m->lock);
	call = m->nwaits != 0;
	m->calls += call;
	pthread_mutex_unlock(&m->lock);
	if (call && m->ready)
		m->ready(m->arg);
}

void pvfs_bufs_usage(struct pvfs_bufs *m, u64 *ret_used, u64 *ret_allocated, u32 *ret_waiting)
{
	pthread_mutex_lock(&m->lock);
	*ret_used = m->used;
	*ret_allocated = m->allocated;
	*ret_waiting = m->nwaits;
	pthread_mutex_unlock(&m->lock);
}

void pvfs_bufs_stats(struct pvfs_bufs *m, FILE *f)
{
	u32 z;

	pthread_mutex_lock(&m->lock);
	fprintf(f, "\"limit\":%llu,\"used\":%llu,\"allocated\":%llu,\"clients\":%u,\"waiting\":%u,"
		"\"wakeups\":%llu,\"zones\":[", (unsigned long long)m->limit,
		(unsigned long long)m->used,
		(unsigned long long)m->allocated, m->nclients, m->nwaits,
		(unsigned long long)m->calls);
	for (z = 0; z < m->nzones; z++) {
		struct zone *zn = &m->zone[z];

		fprintf(f,
			"%s{\"size\":%u,\"used\":%u,\"kept\":%u,\"gets\":%llu,\"allocs\":%llu,\"waits\":%llu}",
			z ? "," : "", zn->size, zn->nused, zn->nkept, (unsigned long long)zn->gets,
			(unsigned long long)zn->allocs, (unsigned long long)zn->refused);
	}
	fputs("]", f);
	pthread_mutex_unlock(&m->lock);
}

int pvfs_bufs_new(u64 limit, u32 largest, void (*ready)(void *arg), void *arg, struct pvfs_bufs **ret)
{
	struct pvfs_bufs *m;
	u32 size;

	if (largest < ZONE_MIN || largest > ZONE_MIN << (2 * (ZONES - 1)) ||
	    (largest & (largest - 1)) ||
	    limit / 8 < largest)
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	TAILQ_INIT(&m->waits);
	m->limit = limit;
	m->ready = ready;
	m->arg = arg;
	for (size = ZONE_MIN; size < largest; size *= 4)
		m->zone[m->nzones++].size = size;
	m->zone[m->nzones++].size = largest;
	*ret = m;
	return 0;
}

void pvfs_bufs_free(struct pvfs_bufs *m)
{
	u32 z;

	if (!m)
		return;
	for (z = 0; z < m->nzones; z++) {
		struct pvfs_buf *b;

		while ((b = m->zone[z].kept) != NULL) {
			m->zone[z].kept = b->next;
			buf_free(m, b);
		}
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}
