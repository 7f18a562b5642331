// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * callback.c - requests that a server sends to a session's client, over a connection the client
 * made.
 */
#include "server.h"
#include <stdlib.h>
#include <time.h>

enum cb_state { CB_WAITING, CB_RECEIVING, CB_DONE };

/**
 * struct srv_callback - one exchange; its waiter, the sending side, and a reader that fills it have
 * a reference each
 *
 * @refs and what follows are protected by the server's lock. While RECEIVING the reader of @sc
 *	writes to @body, which is ours and not the waiter's, so that the waiter may leave at any
 *	time.
 */
struct srv_callback {
	struct pvfs_send send;
	u8 req[PVFS_BODY_MAX];
	u8 body[PVFS_BODY_MAX];
	struct srv_conn *sc;
	struct timespec until;
	u32 tag;
	int refs;
	enum cb_state state;
	int err;
	u32 len;
	struct srv_callback *next;
	struct cb_notice *notice;	/* instead of a waiter; NULL: there is one, or it was told */
};

/* Who is told of the end of an exchange, instead of waiting for it. */
struct cb_notice {
	struct cb_notice *next;
	struct srv_conn *sc;		/* with the exchange's reference */
	void (*done)(void *arg, int err);
	void *arg;
	int err;
};

/* Lock held. */
static void cb_put(struct srv_callback *cb)
{
	if (!--cb->refs)
		free(cb);
}

/* Lock held. */
static void cb_unlink(struct pvfs_server *s, struct srv_callback *cb)
{
	struct srv_callback **p;

	for (p = &s->callbacks; *p && *p != cb; p = &(*p)->next)
		;
	if (*p)
		*p = cb->next;
}

/*
 * Lock held, and a reference besides the waiter's: it is over. If it has no waiter, who is to be
 * told goes to @over, for cb_tell().
 */
static void cb_end(struct pvfs_server *s, struct srv_callback *cb, int err, struct cb_notice **over)
{
	struct cb_notice *n = cb->notice;

	cb->state = CB_DONE;
	cb->err = err;
	if (!n) {
		pthread_cond_broadcast(&s->cond);
		return;
	}
	cb->notice = NULL;
	n->err = err;
	n->next = *over;
	*over = n;
	cb_unlink(s, cb);
	cb->refs--;	/* the waiter's; the caller has one */
}

/* No lock held: tells those who do not wait. */
static void cb_tell(struct cb_notice *over)
{
	struct cb_notice *n;

	while ((n = over)) {
		over = n->next;
		n->done(n->arg, n->err);
		pvfs_conn_put(&n->sc->c);
		free(n);
	}
}

static void cb_sent(struct pvfs_send *send, int err)
{
	struct srv_callback *cb = container_of(send, struct srv_callback, send);
	struct pvfs_server *s = cb->sc->s;
	struct cb_notice *over = NULL;

	pthread_mutex_lock(&s->lock);
	if (err && cb->state == CB_WAITING)
		cb_end(s, cb, -ENOTCONN, &over);
	cb_put(cb);
	pthread_mutex_unlock(&s->lock);
	cb_tell(over);
}

/* Lock held: a connection of the session that can be sent on, with a reference. */
static struct srv_conn *find_conn(struct pvfs_server *s, u64 session)
{
	struct srv_session *ss = srv_session_find(s, session);
	struct srv_conn *sc;

	if (!ss)
		return NULL;
	LIST_FOREACH(sc, &ss->conns, slink)
		if (sc->state == SRV_OPEN && !atomic_load(&sc->c.dead) && pvfs_conn_tryget(&sc->c))
			return sc;
	return NULL;
}

static void cb_encode(struct srv_callback *cb, u16 op, u64 session, u32 body_len)
{
	struct pvfs_header h = {
		.op = op,
		.flags = PVFS_HF_CALLBACK,
		.tag = cb->tag,
		.session = session,
		.body_len = body_len,
		.body_crc = body_len ? pvfs_crc32c(0, cb->req, body_len) : 0,
	};

	pvfs_header_encode(&h, &cb->send.hdr);
	cb->send.body = cb->req;
	cb->send.body_len = body_len;
	cb->send.done = cb_sent;
}

/* Sends it. It may be over when this returns. @notice: taken, unless it fails; *@ret is then NULL. */
static int cb_begin(struct pvfs_server *s, u64 session, u16 op, const void *body, u32 body_len,
		    unsigned int timeout_ms, struct cb_notice *notice, struct srv_callback **ret)
{
	struct srv_callback *cb;
	struct srv_conn *sc;

	if (body_len > PVFS_BODY_MAX)
		return -EMSGSIZE;
	cb = malloc(sizeof(*cb));
	if (!cb)
		return -ENOMEM;
	memset(&cb->send, 0, sizeof(cb->send));
	if (body_len)
		memcpy(cb->req, body, body_len);
	cb->state = CB_WAITING;
	cb->err = 0;
	cb->len = 0;
	cb->refs = 2;
	cb->notice = notice;
	clock_gettime(CLOCK_MONOTONIC, &cb->until);
	cb->until.tv_sec += timeout_ms / 1000;
	cb->until.tv_nsec += timeout_ms % 1000 * 1000000l;
	if (cb->until.tv_nsec >= 1000000000) {
		cb->until.tv_sec++;
		cb->until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&s->lock);
	sc = find_conn(s, session);
	if (!sc) {
		pthread_mutex_unlock(&s->lock);
		free(cb);
		return -ENOTCONN;
	}
	cb->sc = sc;
	if (notice)
		notice->sc = sc;
	cb->tag = s->next_tag++;
	cb->next = s->callbacks;
	s->callbacks = cb;
	pthread_mutex_unlock(&s->lock);
	cb_encode(cb, op, session, body_len);
	*ret = notice ? NULL : cb;
	pvfs_conn_send(&sc->c, &cb->send);
	return 0;
}

int pvfs_server_callback_begin(struct pvfs_server *s, u64 session, u16 op, const void *body,
			       u32 body_len, unsigned int timeout_ms, struct srv_callback **ret)
{
	return cb_begin(s, session, op, body, body_len, timeout_ms, NULL, ret);
}

int pvfs_server_callback_async(struct pvfs_server *s, u64 session, u16 op, const void *body,
			       u32 body_len, void (*done)(void *arg, int err), void *arg)
{
	struct cb_notice *n = malloc(sizeof(*n));
	struct srv_callback *none;
	int err;

	if (!n)
		return -ENOMEM;
	*n = (struct cb_notice){ .done = done, .arg = arg };
	err = cb_begin(s, session, op, body, body_len, 0, n, &none);
	if (err)
		free(n);
	return err;
}

int pvfs_server_callback_end(struct pvfs_server *s, struct srv_callback *cb, void *rep,
			     u32 rep_room, u32 *ret_len)
{
	struct srv_conn *sc = cb->sc;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	while (cb->state != CB_DONE && err != ETIMEDOUT)
		err = pthread_cond_clockwait(&s->cond, &s->lock, CLOCK_MONOTONIC, &cb->until);
	cb_unlink(s, cb);
	if (cb->state != CB_DONE) {
		err = -ETIMEDOUT;
	} else {
		err = cb->err;
		if (!err && cb->len > rep_room)
			err = -EMSGSIZE;
		if (!err) {
			if (cb->len)
				memcpy(rep, cb->body, cb->len);
			*ret_len = cb->len;
		}
	}
	cb->state = CB_DONE;
	cb_put(cb);
	pthread_mutex_unlock(&s->lock);
	pvfs_conn_put(&sc->c);
	return err;
}

int pvfs_server_callback(struct pvfs_server *s, u64 session, u16 op, const void *body, u32 body_len,
			 void *rep, u32 rep_room, u32 *ret_len, unsigned int timeout_ms)
{
	struct srv_callback *cb;

	return pvfs_server_callback_begin(s, session, op, body, body_len, timeout_ms, &cb) ?:
	       pvfs_server_callback_end(s, cb, rep, rep_room, ret_len);
}

/* The header of an answer is in. An answer that comes too late is read and thrown away. */
int callback_head(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	struct pvfs_conn *c = &sc->c;
	struct srv_callback *cb;

	if (!(c->h.flags & PVFS_HF_CALLBACK) || c->h.payload_len) {
		c->why = "an answer to nothing";
		return -EPROTO;
	}
	pthread_mutex_lock(&s->lock);
	for (cb = s->callbacks; cb; cb = cb->next)
		if (cb->sc == sc && cb->tag == c->h.tag && cb->state == CB_WAITING)
			break;
	if (cb) {
		cb->state = CB_RECEIVING;
		cb->refs++;
		c->body = cb->body;
	}
	sc->cb = cb;
	sc->cb_late = !cb;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* Lock held: the reader is done with it. */
static void reader_done(struct srv_conn *sc, int err, u32 len, struct cb_notice **over)
{
	struct srv_callback *cb = sc->cb;

	sc->cb = NULL;
	if (cb->state == CB_RECEIVING) {	/* else the waiter left meanwhile */
		cb->len = len;
		cb_end(sc->s, cb, err, over);
	}
	cb_put(cb);
}

void callback_message(struct srv_conn *sc)
{
	struct cb_notice *over = NULL;

	if (sc->cb_late) {
		sc->cb_late = false;
		return;
	}
	pthread_mutex_lock(&sc->s->lock);
	reader_done(sc, -pvfs_errno_from_wire(sc->c.h.status), sc->c.h.body_len, &over);
	pthread_mutex_unlock(&sc->s->lock);
	cb_tell(over);
}

void callback_down(struct srv_conn *sc)
{
	struct srv_callback *cb, *next;
	struct cb_notice *over = NULL;

	pthread_mutex_lock(&sc->s->lock);
	if (sc->cb)
		reader_done(sc, -ENOTCONN, 0, &over);
	for (cb = sc->s->callbacks; cb; cb = next) {
		next = cb->next;
		if (cb->sc != sc || cb->state != CB_WAITING)
			continue;
		cb->refs++;
		cb_end(sc->s, cb, -ENOTCONN, &over);
		cb_put(cb);
	}
	pthread_mutex_unlock(&sc->s->lock);
	cb_tell(over);
}
