// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * srvmem.c - what a server's memory is shared out by: room for payloads, which connections wait for
 * in line, and replies that clients have not taken.
 *
 * Nothing here is called before a connection has proved itself.
 */
#include "server.h"
#include <stdlib.h>

#define PAYLOAD_MEM_DEFAULT (64ull << 20)

/* ---------------------------------------------------------------- payload memory */

void srv_payload_put(struct srv_call *k)
{
	struct pvfs_server *s = k->call.server;
	u8 *mem = k->call.payload;

	if (!mem)
		return;
	k->call.payload = NULL;
	if (s->p.ops->payload_get)
		s->p.ops->payload_put(&k->sc->c, mem, k->call.payload_handle);
	else
		pvfs_bufs_put(k->call.payload_handle);
}

/*
 * Lock held: the next of the round, to be resumed without the lock; a reference comes with it.
 * Memory that came back during a round makes another one.
 */
static struct srv_conn *pay_next(struct pvfs_server *s)
{
	struct srv_conn *sc;

	for (;;) {
		while ((sc = s->pay_round)) {
			s->pay_round = sc->pnext;
			sc->pay_queued = false;
			if (!pvfs_conn_tryget(&sc->c))
				continue;
			sc->pay_trying = true;
			s->pay_busy = true;
			return sc;
		}
		s->pay_busy = false;
		if (!s->pay_wait || s->pay_round_seq == s->pay_seq)
			return NULL;
		s->pay_round_seq = s->pay_seq;
		s->pay_round = s->pay_wait;
		s->pay_wait = NULL;
		s->pay_wait_tail = &s->pay_wait;
	}
}

void srv_pay_kick(struct srv_conn *sc)
{
	if (!sc)
		return;
	pvfs_conn_resume(&sc->c);
	pvfs_conn_put(&sc->c);
}

/*
 * Everyone who waits is tried once, one after the other, so that those who are refused again stay
 * in order.
 */
void pvfs_server_payload_ready(struct pvfs_server *s)
{
	struct srv_conn *sc;

	pthread_mutex_lock(&s->lock);
	s->pay_seq++;
	sc = s->pay_busy ? NULL : pay_next(s);
	pthread_mutex_unlock(&s->lock);
	srv_pay_kick(sc);
}

/* @sc had its try, or is gone. Lock held. */
static struct srv_conn *pay_tried(struct srv_conn *sc)
{
	if (!sc->pay_trying)
		return NULL;
	sc->pay_trying = false;
	return pay_next(sc->s);
}

/*
 * No memory: the connection waits in line. @seq: s->pay_seq before memory was asked for; when it
 * has moved since, there may be some now. Return: 1, see struct pvfs_conn_ops.
 */
int srv_pay_wait(struct srv_conn *sc, u64 seq)
{
	struct pvfs_server *s = sc->s;
	struct srv_conn *next;
	bool again = false;

	pvfs_conn_get(&sc->c);
	pvfs_conn_park(&sc->c);
	pthread_mutex_lock(&s->lock);
	next = pay_tried(sc);
	if (s->pay_seq != seq) {
		again = true;
	} else if (!sc->is_down) {
		sc->pay_queued = true;
		sc->pnext = NULL;
		*s->pay_wait_tail = sc;
		s->pay_wait_tail = &sc->pnext;
	}
	pthread_mutex_unlock(&s->lock);
	if (again)
		pvfs_conn_resume(&sc->c);
	srv_pay_kick(next);
	pvfs_conn_put(&sc->c);
	return 1;
}

/* Lock held. */
static void pay_unqueue(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	struct srv_conn **p;

	if (!sc->pay_queued)
		return;
	for (p = &s->pay_round; *p && *p != sc; p = &(*p)->pnext)
		;
	if (!*p) {
		for (p = &s->pay_wait; *p != sc; p = &(*p)->pnext)
			;
		if (!sc->pnext)
			s->pay_wait_tail = p;
	}
	*p = sc->pnext;
	sc->pay_queued = false;
}

struct srv_conn *srv_pay_forget(struct srv_conn *sc)
{
	pay_unqueue(sc);
	return pay_tried(sc);
}

u64 srv_pay_seq(struct pvfs_server *s)
{
	u64 seq;

	pthread_mutex_lock(&s->lock);
	seq = s->pay_seq;
	pthread_mutex_unlock(&s->lock);
	return seq;
}

/* It got what it had waited for, if it had: the next may try. */
void srv_pay_success(struct srv_conn *sc)
{
	struct srv_conn *next;

	if (!sc->pay_trying)
		return;
	pthread_mutex_lock(&sc->s->lock);
	next = pay_tried(sc);
	pthread_mutex_unlock(&sc->s->lock);
	srv_pay_kick(next);
}

/* As ops->payload. */
int srv_payload(struct pvfs_conn *c)
{
	struct srv_conn *sc = srv_conn(c);
	struct pvfs_server *s = sc->s;
	struct srv_call *k = sc->call;
	struct pvfs_buf *b;
	u8 *mem = NULL;
	u64 seq;

	if (sc->verdict)
		return 0;	/* read and thrown away */
	seq = srv_pay_seq(s);
	if (s->p.ops->payload_get) {
		k->call.payload = s->p.ops->payload_get(c, &c->h, c->h.payload_len,
							&k->call.payload_handle);
	} else {
		b = pvfs_bufs_get(s->bufs, c->h.session, c->h.payload_len, &sc->bufwait, &mem);
		k->call.payload = b ? mem : NULL;
		k->call.payload_handle = b;
	}
	if (!k->call.payload)
		return srv_pay_wait(sc, seq);
	srv_pay_success(sc);
	sc->pay = (struct iovec){ .iov_base = k->call.payload, .iov_len = c->h.payload_len };
	c->pay = &sc->pay;
	c->npay = 1;
	return 0;
}

static void bufs_ready(void *arg)
{
	pvfs_server_payload_ready(arg);
}

/* Zones for payloads, whose largest buffers take the largest payload. */
int srv_bufs_make(struct pvfs_server *s)
{
	u32 largest = 4096;

	while (largest < s->p.payload_max)
		largest *= 2;
	return pvfs_bufs_new(max(s->p.payload_mem ?: PAYLOAD_MEM_DEFAULT, 8ull * largest), largest,
			     bufs_ready, s, &s->bufs);
}

/* ---------------------------------------------------------------- replies */

/*
 * Replies that are not out take memory, too. While they take more than half of what is allowed, a
 * session whose replies take more than its share of the other half may begin nothing new.
 */
void srv_unread_add(struct srv_conn *sc, u64 n)
{
	atomic_fetch_add(&sc->unread, n);
	atomic_fetch_add(&sc->s->unread, n);
}

void srv_unread_sub(struct srv_conn *sc, u64 n)
{
	struct pvfs_server *s = sc->s;

	atomic_fetch_sub(&sc->unread, n);
	/* After the counts: who finds them too high has asked for pay_seq before. */
	if (atomic_fetch_sub(&s->unread, n) > s->p.unread_max / 2 && s->p.unread_max)
		pvfs_server_payload_ready(s);
}

bool srv_may_begin(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	struct srv_conn *other;
	u64 n = 0;
	bool ok;

	if (!s->p.unread_max || atomic_load(&s->unread) <= s->p.unread_max / 2)
		return true;
	pthread_mutex_lock(&s->lock);
	if (!sc->session)
		n = atomic_load(&sc->unread);
	else
		LIST_FOREACH(other, &sc->session->conns, slink)
			n += atomic_load(&other->unread);
	ok = n <= s->p.unread_max / 2 / max(s->nsessions, 1u);
	pthread_mutex_unlock(&s->lock);
	return ok;
}
