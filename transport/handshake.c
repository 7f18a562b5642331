// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * handshake.c - the serving side of HELLO and AUTH, and which connection is a session's channel.
 *
 * A connection that comes for a (session, channel) that another one holds takes its place: the
 * older one may begin no further request, is shut down, and its running requests are awaited before
 * AUTH is answered; also when it had broken by itself. So what the client sends again on the new
 * connection never overtakes its first copy. See the states in server.h.
 */
#include "server.h"
#include "../common/log.h"
#include <stdlib.h>

/*
 * ---------------------------------------------------------------- states and the table of channels
 */

static bool may_move(enum srv_state from, enum srv_state to)
{
	switch (to) {
	case SRV_NEW:
		return false;
	case SRV_HELLOED:
		return from == SRV_NEW;
	case SRV_WAITING:
		return from == SRV_HELLOED;
	case SRV_OPEN:
		return from == SRV_HELLOED || from == SRV_WAITING;
	case SRV_CLOSED:
		return true;
	}
	return false;
}

void srv_set_state(struct srv_conn *sc, enum srv_state state)
{
	if (!may_move(sc->state, state))
		pvfs_error("%s: connection moves from state %d to %d", sc->c.name, sc->state,
			   state);
	sc->state = state;
}

static void set_state(struct srv_conn *sc, enum srv_state state)
{
	pthread_mutex_lock(&sc->s->lock);
	srv_set_state(sc, state);
	pthread_mutex_unlock(&sc->s->lock);
}

static struct srv_conn **bucket(struct pvfs_server *s, u64 session, u32 channel)
{
	return &s->hash[((session * 0x9e3779b97f4a7c15ull) >> 40 ^ channel) % SRV_HASH];
}

void srv_hash_remove(struct srv_conn *sc)
{
	struct srv_conn **p;

	if (!sc->hashed)
		return;
	for (p = bucket(sc->s, sc->peer.session, sc->peer.channel); *p != sc; p = &(*p)->hnext)
		;
	*p = sc->hnext;
	sc->hashed = false;
}

/*
 * @sc becomes its session's channel. Lock held. Return: the one that was, with a reference, or
 *	NULL: there was none, or nothing of it runs any more.
 */
static struct srv_conn *take_place(struct srv_conn *sc)
{
	struct srv_conn **p, *old;

	for (p = bucket(sc->s, sc->peer.session, sc->peer.channel); (old = *p); p = &old->hnext)
		if (old->peer.session == sc->peer.session && old->peer.channel == sc->peer.channel)
			break;
	if (old) {
		*p = old->hnext;
		old->hashed = false;
		if (!pvfs_conn_tryget(&old->c))
			old = NULL;
	}
	p = bucket(sc->s, sc->peer.session, sc->peer.channel);
	sc->hnext = *p;
	*p = sc;
	sc->hashed = true;
	return old;
}

/* ---- a session's connections; the server's lock is held ---- */

struct srv_session *srv_session_find(struct pvfs_server *s, u64 id)
{
	struct srv_session *ss;

	LIST_FOREACH(ss, &s->sessions[id % SRV_SESSIONS], link)
		if (ss->id == id)
			return ss;
	return NULL;
}

/* @sc is among its session's connections from now on. Return: 0 or -ENOMEM. */
static int session_join(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	u64 id = sc->peer.session;
	struct srv_session *ss = srv_session_find(s, id);

	if (!ss) {
		ss = calloc(1, sizeof(*ss));
		if (!ss)
			return -ENOMEM;
		ss->id = id;
		LIST_INSERT_HEAD(&s->sessions[id % SRV_SESSIONS], ss, link);
		s->nsessions++;
	}
	sc->session = ss;
	LIST_INSERT_HEAD(&ss->conns, sc, slink);
	return 0;
}

void srv_session_leave(struct srv_conn *sc)
{
	struct srv_session *ss = sc->session;

	if (!ss)
		return;
	LIST_REMOVE(sc, slink);
	sc->session = NULL;
	if (LIST_EMPTY(&ss->conns)) {
		LIST_REMOVE(ss, link);
		sc->s->nsessions--;
		free(ss);
	}
}

void srv_unproved_remove(struct srv_conn *sc)
{
	if (!sc->unproved)
		return;
	TAILQ_REMOVE(&sc->s->unproved, sc, ulink);
	sc->unproved = false;
	sc->s->nunproved--;
}

/*
 * @sc has proved itself: it leaves those that may be sent away for another, and counts among those
 * that are served; for a client that takes another one's place there is always room, and it counts as
 * having a call until it is done with that one, @ret_old. Return: 0;
 * -ECONNABORTED: it was sent away meanwhile; -EBUSY: there are too many; -ENOMEM.
 */
static int prove(struct srv_conn *sc, struct srv_conn **ret_old)
{
	struct pvfs_server *s = sc->s;
	int err = 0;

	*ret_old = NULL;
	pthread_mutex_lock(&s->lock);
	if (!sc->unproved) {
		err = -ECONNABORTED;
		goto out;
	}
	if (sc->peer.session && session_join(sc)) {
		err = -ENOMEM;
		goto out;
	}
	if (sc->peer.session && sc->peer.role == PVFS_ROLE_CLIENT)
		*ret_old = take_place(sc);
	if (s->p.max_conns && s->nproved >= s->p.max_conns && !*ret_old &&
	    sc->peer.role == PVFS_ROLE_CLIENT) {
		srv_hash_remove(sc);
		srv_session_leave(sc);
		err = -EBUSY;
		goto out;
	}
	/* Who comes for its place from now on waits for it, and thereby for the older one. */
	if (*ret_old)
		atomic_fetch_add(&sc->calls, 1);
	srv_unproved_remove(sc);
	sc->proved = true;
	s->nproved++;
out:
	pthread_mutex_unlock(&s->lock);
	return err;
}

void pvfs_conn_set_session(struct pvfs_conn *c, u64 session)
{
	struct srv_conn *sc = srv_conn(c), *old = NULL;
	bool lost = false;

	pthread_mutex_lock(&sc->s->lock);
	if (sc->peer.session != session) {
		srv_hash_remove(sc);
		srv_session_leave(sc);
		__atomic_store_n(&sc->peer.session, session, __ATOMIC_RELAXED);
		lost = session && session_join(sc);
		if (session && sc->peer.role == PVFS_ROLE_CLIENT)
			old = take_place(sc);
	}
	pthread_mutex_unlock(&sc->s->lock);
	if (lost)	/* nobody would find it; the client comes again */
		pvfs_conn_kill(c);
	if (old) {
		srv_conn_close_calls(old);
		pvfs_conn_kill(&old->c);
		pvfs_conn_put(&old->c);
	}
}

/* ---------------------------------------------------------------- replies */

/* A reply without a call: these two exchanges come one at a time, but are sent like any other. */
static void answer(struct srv_conn *sc, u16 op, u32 tag, int err, const void *body, int len)
{
	struct srv_call *k = srv_call_new(sc->s, 0);

	if (!k || !srv_call_begin(sc)) {
		if (k)
			srv_call_free(k);
		pvfs_conn_kill(&sc->c);
		return;
	}
	pvfs_conn_get(&sc->c);
	k->sc = sc;
	k->call.conn = &sc->c;
	k->call.peer = &sc->peer;
	k->call.head = (struct pvfs_header){ .op = op, .tag = tag };
	k->call.info = pvfs_op_info(op);
	k->call.t_start = sc->c.t_head;
	k->bytes = PVFS_HDR_LEN + sc->c.h.body_len;
	pvfs_call_reply(&k->call, err, body, max(len, 0), NULL);
}

static const struct pvfs_key *key_of(const struct pvfs_server *s, u8 role)
{
	return role == PVFS_ROLE_CLIENT ? &s->p.cluster_key : &s->p.server_key;
}

/*
 * AUTH's answer with the mac: the server proves itself too, and that a refusal (@err: 0 or -errno) is
 * its own.
 */
static void answer_auth(struct srv_conn *sc, int err)
{
	struct pvfs_server *s = sc->s;
	struct pvfs_auth_rep rep = {
		.version = PVFS_PROTO_VERSION,
		.role = s->p.role,
		.status = pvfs_errno_to_wire(-err),
		.session = sc->peer.session,
		.features = PVFS_FEATURES,
		.epoch = s->p.epoch,
		.index = s->p.index,
		.payload_max = s->p.payload_max,
		.credits = s->p.credits,
		.room = s->p.ops->room ? s->p.ops->room(s) : 0,
	};
	u8 buf[256];
	int n;

	memcpy(rep.volume_uuid, s->p.uuid, sizeof(rep.volume_uuid));
	n = pvfs_auth_rep_encode(&rep, buf, sizeof(buf));
	if (n > 0)
		pvfs_auth_seal(key_of(s, sc->peer.role), &sc->nonces, true, buf, n);
	answer(sc, PVFS_OP_AUTH, sc->c.h.tag, err, buf, n);
}

/*
 * ---------------------------------------------------------------- waiting for the older connection
 */

/* Is its session over? */
static bool gone(const struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;

	return sc->peer.session && s->p.ops->session_check &&
	       s->p.ops->session_check(s, sc->peer.session, NULL);
}

void handshake_resume(struct srv_conn *sc)
{
	bool open;

	pthread_mutex_lock(&sc->s->lock);
	open = !sc->is_down && sc->state == SRV_WAITING;
	if (open)
		srv_set_state(sc, SRV_OPEN);
	pthread_mutex_unlock(&sc->s->lock);
	if (open && gone(sc))
		pvfs_conn_kill(&sc->c);
	else if (open)
		answer_auth(sc, 0);
	srv_call_end(sc);
	pvfs_conn_resume(&sc->c);
	pvfs_conn_put(&sc->c);
}

/* @old (a reference, taken) must be finished with first. Return: as ops->message. */
static int wait_for(struct srv_conn *sc, struct srv_conn *old)
{
	struct pvfs_server *s = sc->s;
	struct srv_conn *first;
	bool busy, passed = false;

	pvfs_debug("%s (%s): waits for the requests of %s, which it replaces", sc->c.name,
		   sc->peer.host, old->c.name);
	set_state(sc, SRV_WAITING);
	pvfs_conn_get(&sc->c);		/* the waiter's, dropped by handshake_resume() */
	pvfs_conn_park(&sc->c);
	pthread_mutex_lock(&s->lock);
	busy = atomic_load(&old->calls) != SRV_DEAD;
	first = old;
	if (old->waits_for) {
		/* Its turn is ours: who comes again and again leaves no row of them behind. */
		first = old->waits_for;
		old->waits_for = NULL;
		passed = true;
	}
	if (busy) {
		first->waiter = sc;
		sc->waits_for = first;
	}
	pthread_mutex_unlock(&s->lock);
	if (passed)
		handshake_resume(old);
	pvfs_conn_put(&old->c);
	if (!busy)
		handshake_resume(sc);
	return 1;
}

/* ---------------------------------------------------------------- HELLO and AUTH */

static int handshake_hello(struct srv_conn *sc)
{
	struct pvfs_hello_req req;
	struct pvfs_hello_rep rep;
	u8 buf[64];
	int n;

	if (pvfs_hello_req_decode(&req, sc->small, sc->c.h.body_len)) {
		sc->c.why = "malformed HELLO";
		return -EPROTO;
	}
	memcpy(sc->nonces.client, req.nonce, PVFS_NONCE_LEN);
	if (pvfs_nonce_make(sc->nonces.server)) {
		sc->c.why = "no random numbers";
		return -EIO;
	}
	memcpy(rep.nonce, sc->nonces.server, PVFS_NONCE_LEN);
	n = pvfs_hello_rep_encode(&rep, buf, sizeof(buf));
	set_state(sc, SRV_HELLOED);
	answer(sc, PVFS_OP_HELLO, sc->c.h.tag, 0, buf, n);
	return 0;
}

/* Text from outside, made fit for a line of a log. */
static void copy_name(char *to, size_t room, const struct pvfs_str *s)
{
	size_t i, n = min((size_t)s->len, room - 1);

	for (i = 0; i < n; i++)
		to[i] = s->p[i] > ' ' && s->p[i] < 127 ? s->p[i] : '?';
	to[n] = '\0';
}

/* Of who has not proved the key: there is none to prove anything with. */
static int refuse_unproved(struct srv_conn *sc, const char *why)
{
	sc->c.why = why;
	answer(sc, PVFS_OP_AUTH, sc->c.h.tag, -EACCES, NULL, 0);
	return -EACCES;
}

static int refuse(struct srv_conn *sc, int err, const char *why)
{
	sc->c.why = why;
	answer_auth(sc, err);
	return err;
}

static int handshake_auth(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	u32 len = sc->c.h.body_len;
	struct srv_conn *old = NULL;
	struct pvfs_auth_req m;
	char volume[PVFS_VOLUME_MAX + 1];
	u8 role;
	int err;

	/* The mac before the rest: one of another version has other fields. */
	if (len < PVFS_AUTH_HEAD_LEN)
		return refuse_unproved(sc, "malformed AUTH");
	role = pvfs_auth_role(sc->small);
	if ((role != PVFS_ROLE_CLIENT && role != PVFS_ROLE_MGR && role != PVFS_ROLE_IOD) ||
	    !pvfs_auth_verify(key_of(s, role), &sc->nonces, false, sc->small, len))
		return refuse_unproved(sc, role == PVFS_ROLE_CLIENT ?
					   "it does not know the cluster key" :
					   "it does not know the server key");
	/* From here on it is one of us. */
	pthread_mutex_lock(&s->lock);
	sc->peer.role = role;
	pthread_mutex_unlock(&s->lock);
	if (pvfs_auth_version(sc->small) != PVFS_PROTO_VERSION)
		return refuse(sc, -EPROTO, "it speaks another version of the protocol");
	if (pvfs_auth_req_decode(&m, sc->small, len))
		return refuse(sc, -EPROTO, "malformed AUTH");
	pthread_mutex_lock(&s->lock);
	sc->peer.session = m.session;
	sc->peer.channel = m.channel;
	sc->peer.features = m.features & PVFS_FEATURES;
	copy_name(sc->peer.host, sizeof(sc->peer.host), &m.host);
	pthread_mutex_unlock(&s->lock);
	if (m.required & ~PVFS_FEATURES)
		return refuse(sc, -EPROTO, "it insists on a feature that is not known here");
	if (m.channel >= PVFS_CHANNELS_MAX)
		return refuse(sc, -EPROTO, "channel number over the limit");
	if (m.volume.len != strlen(s->p.volume) || memcmp(m.volume.p, s->p.volume, m.volume.len)) {
		copy_name(volume, sizeof(volume), &m.volume);
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "%s (%s): refused: it asks for volume '%s', this is '%s'",
				 sc->c.name, sc->peer.host, volume, s->p.volume);
		refuse(sc, -ENOENT, NULL);
		return -ENOENT;
	}
	err = 0;
	if (m.session && s->p.ops->session_check)
		err = s->p.ops->session_check(s, m.session, m.ticket);
	if (err == -EPERM) {
		atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
		pvfs_log_limited(PVFS_LOG_WARNING, "%s (%s): refused: session %llu is another client's%s",
				 sc->c.name, sc->peer.host, (unsigned long long)m.session,
				 s->p.role == PVFS_ROLE_IOD ?
					 ", or the manager has another server key than we" : "");
		return refuse(sc, err, NULL);
	}
	if (err) {
		/* Ours to say once, not an attack: the client opens another one. */
		pvfs_info("%s (%s): session %llu is not known any more", sc->c.name, sc->peer.host,
			  (unsigned long long)m.session);
		return refuse(sc, -ESTALE, NULL);
	}
	err = prove(sc, &old);
	if (err == -EBUSY) {
		atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
		pvfs_log_limited(PVFS_LOG_WARNING, "%s (%s): connection refused: there are as many "
				 "as configured (max connections)", sc->c.name, sc->peer.host);
	}
	if (err)
		return err;
	if (old) {
		srv_conn_close_calls(old);
		pvfs_conn_kill(&old->c);
		if (atomic_load(&old->calls) != SRV_DEAD)
			return wait_for(sc, old);
		pvfs_conn_put(&old->c);
		srv_call_end(sc);
	}
	set_state(sc, SRV_OPEN);
	/*
	 * Once more, as it can be seen now: who ends a session makes it known first, and then ends
	 * the connections that it sees. So either it sees this one, or we see what it made known.
	 */
	if (gone(sc))
		return refuse(sc, -ESTALE, NULL);
	answer_auth(sc, 0);
	return 0;
}

int handshake_message(struct srv_conn *sc)
{
	return sc->c.h.op == PVFS_OP_HELLO ? handshake_hello(sc) : handshake_auth(sc);
}
