// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * srvaccept.c - a server's listening addresses, and the connections that it sends away again: those
 * that don't prove themselves in time, or are too many, and those that stall.
 */
#include "server.h"
#include "../common/log.h"
#include <stdlib.h>

#define ACCEPT_RETRY_NS 100000000ull
#define BACKLOG 512
#define ACCEPT_BATCH 64			/* accepted before others on this thread get their turn */
#define KILL_BATCH 64

/* Kills what is in @list, and gives back the references. No lock held. */
static void kill_all(struct srv_conn **list, u32 n)
{
	while (n--) {
		pvfs_conn_kill(&list[n]->c);
		pvfs_conn_put(&list[n]->c);
	}
}

/*
 * Lock held. The unproved connections beyond @max, the oldest first, are to be killed: who knocks
 * and does not come in makes room for others who may. Return: how many, with references.
 */
static u32 unproved_cut(struct pvfs_server *s, u32 max, struct srv_conn **list, u32 room)
{
	struct srv_conn *sc;
	u32 n = 0;

	while (s->nunproved > max && n < room) {
		sc = TAILQ_FIRST(&s->unproved);
		srv_unproved_remove(sc);
		if (pvfs_conn_tryget(&sc->c))
			list[n++] = sc;
	}
	return n;
}

/* Listener's lock held. */
static void conn_new(struct pvfs_server *s, struct pvfs_xprt *x)
{
	struct srv_conn *sc = calloc(1, sizeof(*sc)), *old[2];
	char name[80];
	u32 n;

	if (!sc) {
		x->ops->peer_name(x, name, sizeof(name));
		x->ops->close(x);
		atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection refused: out of memory", name);
		return;
	}
	sc->s = s;
	sc->t_accept = pvfs_now();
	pvfs_conn_init(&sc->c, s->e, x, &srv_conn_ops);
	snprintf(sc->peer.addr, sizeof(sc->peer.addr), "%s", sc->c.name);
	pthread_mutex_lock(&s->lock);
	sc->next = s->conns;
	sc->link = &s->conns;
	if (sc->next)
		sc->next->link = &sc->next;
	s->conns = sc;
	s->nconns++;
	sc->unproved = true;
	TAILQ_INSERT_TAIL(&s->unproved, sc, ulink);
	s->nunproved++;
	n = unproved_cut(s, s->p.max_unproved, old, ARRAY_SIZE(old));
	pthread_mutex_unlock(&s->lock);
	if (n) {
		atomic_fetch_add_explicit(&s->refused, n, memory_order_relaxed);
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection closed: more than %u have not "
				 "proved themselves, and it is the oldest", old[0]->c.name,
				 s->p.max_unproved);
		kill_all(old, n);
	}
	atomic_fetch_add_explicit(&s->accepted, 1, memory_order_relaxed);
	if (pvfs_conn_start(&sc->c, false)) {
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection refused: can't wait for it",
				 sc->c.name);
		pvfs_conn_put(&sc->c);
	}
}

/* Out of descriptors, as a rule: those who have not proved themselves give theirs back. */
static void accept_failed(struct pvfs_server *s, int err)
{
	struct srv_conn *old[KILL_BATCH];
	u32 n;

	pvfs_log_limited(PVFS_LOG_ERROR, "can't accept connections: %s", strerror(-err));
	pthread_mutex_lock(&s->lock);
	n = unproved_cut(s, s->nunproved / 2, old, ARRAY_SIZE(old));
	pthread_mutex_unlock(&s->lock);
	kill_all(old, n);
}

static void accept_ready(struct pvfs_source *src, u32 events)
{
	struct srv_listener *l = container_of(src, struct srv_listener, src);
	struct pvfs_xprt *x;
	int n, err = 0;

	pthread_mutex_lock(&l->lock);
	if (l->stopped)
		goto out;
	for (n = 0; n < ACCEPT_BATCH && !(err = l->ops->accept(l->l, &x)); n++)
		conn_new(l->s, x);
	if (err && err != -EAGAIN) {
		/* The event would come again at once: wait a little. */
		accept_failed(l->s, err);
		pvfs_timer_set(l->s->e, &l->retry, pvfs_now() + ACCEPT_RETRY_NS);
	} else if (pvfs_engine_arm(l->s->e, src, EPOLLIN)) {
		pvfs_timer_set(l->s->e, &l->retry, pvfs_now() + ACCEPT_RETRY_NS);
	}
out:
	pthread_mutex_unlock(&l->lock);
}

static void accept_retry(void *arg)
{
	struct srv_listener *l = arg;

	accept_ready(&l->src, EPOLLIN);
}

int srv_listen(struct pvfs_server *s, const struct pvfs_addr *a)
{
	struct srv_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->s = s;
	l->ops = pvfs_xprt_for(a);
	l->src.ready = accept_ready;
	l->retry.fn = accept_retry;
	l->retry.arg = l;
	pthread_mutex_init(&l->lock, NULL);
	err = l->ops->listen(a, BACKLOG, &l->l, &l->src.fd);
	if (err) {
		free(l);
		return err;
	}
	s->listeners[s->nlisteners++] = l;
	return pvfs_engine_arm(s->e, &l->src, EPOLLIN);
}

void srv_unlisten(struct pvfs_server *s, struct srv_listener *l)
{
	pvfs_engine_del(s->e, &l->src);
	pthread_mutex_lock(&l->lock);
	l->stopped = true;
	pthread_mutex_unlock(&l->lock);
	pvfs_timer_cancel(s->e, &l->retry);
	l->ops->unlisten(l->l);
	pvfs_engine_defer(s->e, l);
}

/* ---------------------------------------------------------------- sending away */

/* Connections that don't prove themselves in time go: however often they send a byte. */
void srv_cut_unproved(struct pvfs_server *s, u64 now)
{
	u64 limit = s->p.auth_ms * 1000000ull;
	struct srv_conn *late[KILL_BATCH], *sc;
	u32 i, n;

	do {
		n = 0;
		pthread_mutex_lock(&s->lock);
		while (n < KILL_BATCH && (sc = TAILQ_FIRST(&s->unproved)) &&
		       now - sc->t_accept >= limit) {
			srv_unproved_remove(sc);
			if (pvfs_conn_tryget(&sc->c))
				late[n++] = sc;
		}
		pthread_mutex_unlock(&s->lock);
		for (i = 0; i < n; i++)
			pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection closed: it did not "
					 "prove itself within %u ms", late[i]->c.name,
					 s->p.auth_ms);
		kill_all(late, n);
	} while (n == KILL_BATCH);
}

/* Those that began a message and don't go on with it go, and those that take nothing. */
void srv_cut_stalled(struct pvfs_server *s, u64 now)
{
	u64 limit = s->p.stall_ms * 1000000ull;
	struct srv_conn *bad[KILL_BATCH], *sc;
	const char *why[KILL_BATCH];
	u32 i, n = 0;

	if (now < s->watch_due)
		return;
	s->watch_due = now + limit / 8;
	pthread_mutex_lock(&s->lock);
	for (sc = s->conns; sc && n < KILL_BATCH; sc = sc->next) {
		if (!sc->proved || sc->is_down || atomic_load(&sc->c.dead))
			continue;
		why[n] = pvfs_conn_stalled(&sc->c, now, limit);
		if (why[n] && pvfs_conn_tryget(&sc->c))
			bad[n++] = sc;
	}
	pthread_mutex_unlock(&s->lock);
	for (i = 0; i < n; i++)
		pvfs_log_limited(PVFS_LOG_WARNING, "%s (%s): connection closed: %s for %u ms",
				 bad[i]->c.name, bad[i]->peer.host, why[i], s->p.stall_ms);
	kill_all(bad, n);
}
