// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * server.c - the serving side: requests from header to reply, starting and stopping.
 *
 * What the thread that reads a connection does with a request: ordinary ones are dispatched right
 * there, and it reads on afterwards; before a SLOW one is dispatched the connection goes back to
 * the engine, so that another thread can serve what comes behind. Replies go out from whichever
 * thread calls pvfs_call_reply().
 *
 * The states of a connection are in server.h.
 */
#include "server.h"
#include "../common/log.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define AUTH_MS_DEFAULT 10000
#define STALL_MS_DEFAULT 20000

/* ---------------------------------------------------------------- calls */

struct srv_call *srv_call_new(struct pvfs_server *s, u32 body_len)
{
	struct srv_call *k;

	pthread_mutex_lock(&s->free_lock);
	k = s->free_calls;
	if (k) {
		s->free_calls = k->next;
		s->nfree--;
	}
	pthread_mutex_unlock(&s->free_lock);
	if (!k)
		k = malloc(sizeof(*k));
	if (!k)
		return NULL;
	memset(k, 0, offsetof(struct srv_call, body_mem));
	k->call.server = s;
	k->call.body = body_len > sizeof(k->body_mem) ? malloc(body_len) : k->body_mem;
	if (!k->call.body) {
		srv_call_free(k);
		return NULL;
	}
	return k;
}

void srv_call_free(struct srv_call *k)
{
	struct pvfs_server *s = k->call.server;

	srv_payload_put(k);
	if (k->call.body != k->body_mem)
		free(k->call.body);
	if (k->reply != k->reply_mem)
		free(k->reply);
	pthread_mutex_lock(&s->free_lock);
	if (s->nfree < SRV_CALLS_KEPT) {
		k->next = s->free_calls;
		s->free_calls = k;
		s->nfree++;
		k = NULL;
	}
	pthread_mutex_unlock(&s->free_lock);
	free(k);
}

bool srv_call_begin(struct srv_conn *sc)
{
	u32 n = atomic_fetch_add(&sc->calls, 1) + 1;

	if (!(n & SRV_DEAD))
		return true;
	srv_call_end(sc);
	return false;
}

/* No call of @sc runs and none will: whoever waits for that goes on. */
static void drained(struct srv_conn *sc)
{
	struct pvfs_server *s = sc->s;
	struct srv_conn *w;

	pthread_mutex_lock(&s->lock);
	w = sc->waiter;
	sc->waiter = NULL;
	if (w)
		w->waits_for = NULL;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	if (w)
		handshake_resume(w);
}

/* The caller has a reference. */
void srv_call_end(struct srv_conn *sc)
{
	if (atomic_fetch_sub(&sc->calls, 1) - 1 == SRV_DEAD)
		drained(sc);
}

void srv_conn_close_calls(struct srv_conn *sc)
{
	if (!atomic_fetch_or(&sc->calls, SRV_DEAD))
		drained(sc);
}

static void reply_done(struct pvfs_send *send, int err)
{
	struct srv_call *k = container_of(send, struct srv_call, send);
	struct srv_conn *sc = k->sc;

	srv_unread_sub(sc, k->unread);
	if (err)
		atomic_fetch_add_explicit(&sc->s->replies_dropped, 1, memory_order_relaxed);
	if (k->out.release)
		k->out.release(k->out.arg);
	srv_call_free(k);
	atomic_fetch_sub(&sc->unsent, 1);
	pvfs_conn_put(&sc->c);
}

/* Copies the body; -ENOMEM turns the reply into that error. */
static int reply_body(struct srv_call *k, const void *body, u32 len)
{
	k->reply = len > sizeof(k->reply_mem) ? malloc(len) : k->reply_mem;
	if (!k->reply)
		return -ENOMEM;
	if (len)
		memcpy(k->reply, body, len);
	k->send.body = k->reply;
	k->send.body_len = len;
	return 0;
}

static void reply_payload(struct srv_call *k, struct pvfs_header *h)
{
	const struct pvfs_out *out = &k->out;

	h->payload_len = out->len;
	if (!out->mem) {
		k->send.fd = out->fd;
		k->send.off = out->off;
		k->send.fd_len = out->len;
		return;
	}
	k->iov = (struct iovec){ .iov_base = (void *)out->mem, .iov_len = out->len };
	k->send.pay = &k->iov;
	k->send.npay = 1;
	/* Who sends a checksum gets one, but for bytes that we never see. */
	if (k->call.head.flags & PVFS_HF_PAYLOAD_CRC) {
		h->flags |= PVFS_HF_PAYLOAD_CRC;
		h->payload_crc = pvfs_crc32c(0, out->mem, out->len);
	}
}

void pvfs_call_reply(struct pvfs_call *call, int err, const void *body, u32 body_len,
		     const struct pvfs_out *out)
{
	struct srv_call *k = container_of(call, struct srv_call, call);
	struct srv_conn *sc = k->sc;
	struct pvfs_server *s = sc->s;
	struct pvfs_header h = {
		.op = call->head.op,
		.flags = PVFS_HF_REPLY,
		.tag = call->head.tag,
		.session = call->head.session,
		.credits = s->p.credits,
	};

	if (out)
		k->out = *out;
	if (body_len > PVFS_BODY_MAX || (out && out->len > PVFS_PAYLOAD_MAX)) {
		pvfs_log_limited(PVFS_LOG_ERROR, "%s: %s: reply over a limit", sc->c.name,
				 pvfs_op_name(h.op));
		err = -EIO;
		body_len = 0;
		out = NULL;
	}
	if (reply_body(k, body, body_len)) {
		err = -ENOMEM;
		out = NULL;
	}
	if (out && out->len)
		reply_payload(k, &h);
	h.status = pvfs_errno_to_wire(-err);
	h.body_len = k->send.body_len;
	h.body_crc = h.body_len ? pvfs_crc32c(0, k->send.body, h.body_len) : 0;
	pvfs_header_encode(&h, &k->send.hdr);
	k->send.done = reply_done;
	srv_payload_put(k);
	k->unread = sizeof(*k) + (h.body_len > sizeof(k->reply_mem) ? h.body_len : 0) +
		    (k->send.npay ? h.payload_len : 0);
	srv_unread_add(sc, k->unread);
	srv_count_reply(k, err, PVFS_HDR_LEN + h.body_len + h.payload_len);

	/*
	 * A client that sends without reading what it gets would make us keep any number of
	 * replies: a lawful one has at most `credits' requests that are running or whose reply is
	 * not out.
	 */
	if (atomic_fetch_add(&sc->unsent, 1) > 2u * s->p.credits + 64 &&
	    !atomic_load(&sc->c.dead)) {
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: closed: does not read its replies",
				 sc->c.name);
		pvfs_conn_kill(&sc->c);
	}
	/* Before the send: the answer is the client's leave to send the next. */
	srv_call_end(sc);
	pvfs_conn_send(&sc->c, &k->send);
}

/* ---------------------------------------------------------------- requests */

static int bad(struct srv_conn *sc, const char *why)
{
	sc->c.why = why;
	return -EPROTO;
}

/* May this request be served at all? 0 or the error it is answered with. */
static int check_request(struct srv_conn *sc, const struct pvfs_header *h, u64 session)
{
	const struct pvfs_op_info *info = pvfs_op_info(h->op);
	bool client = sc->peer.role == PVFS_ROLE_CLIENT;

	if (!info || (info->by != PVFS_ROLE_ANY && info->by != sc->s->p.role))
		return -EOPNOTSUPP;
	if (!client)
		return 0;
	if (info->flags & PVFS_OPF_SERVER)
		return -EACCES;
	if (!(info->flags & PVFS_OPF_NOSESS) && !session)
		return -ESTALE;
	/*
	 * A slot belongs to a session: a request made under another one must not take it for its
	 * own.
	 */
	if ((info->flags & PVFS_OPF_ONCE) && h->session != session)
		return -ESTALE;
	return 0;
}

static int conn_head(struct pvfs_conn *c)
{
	struct srv_conn *sc = srv_conn(c);
	struct pvfs_header *h = &c->h;
	struct srv_call *k;
	u64 session, seq;

	if (sc->state != SRV_OPEN) {
		if (h->flags || h->payload_len || h->body_len > sizeof(sc->small) ||
		    h->op != (sc->state == SRV_NEW ? PVFS_OP_HELLO : PVFS_OP_AUTH))
			return bad(sc, "something else before it proved itself");
		c->body = sc->small;
		return 0;
	}
	if (h->flags & PVFS_HF_REPLY)
		return callback_head(sc);
	if (h->flags & PVFS_HF_CALLBACK)
		return bad(sc, "a callback from a client");
	if (h->op == PVFS_OP_HELLO || h->op == PVFS_OP_AUTH)
		return bad(sc, "a second hello");
	if (h->payload_len > sc->s->p.payload_max)
		return bad(sc, "payload over the limit");
	/*
	 * Handlers, and the sharing out of memory, go by what the connection proved. SESSION_OPEN
	 * may be changing it.
	 */
	if (sc->s->p.unread_max) {
		seq = srv_pay_seq(sc->s);
		if (!srv_may_begin(sc))
			return srv_pay_wait(sc, seq);
		srv_pay_success(sc);
	}
	session = __atomic_load_n(&sc->peer.session, __ATOMIC_RELAXED);
	sc->verdict = check_request(sc, h, session);
	h->session = session;
	k = sc->call;
	if (!k) {
		k = srv_call_new(sc->s, h->body_len);
		if (!k) {
			c->why = "out of memory";
			return -ENOMEM;
		}
		k->sc = sc;
		sc->call = k;
	}
	c->body = k->call.body;
	return 0;
}

static void ping(struct srv_call *k)
{
	struct pvfs_ping_rep rep = { 0 };
	struct timespec ts;
	u8 buf[16];
	int n;

	clock_gettime(CLOCK_REALTIME, &ts);
	rep.now.sec = ts.tv_sec;
	rep.now.nsec = ts.tv_nsec;
	n = pvfs_ping_rep_encode(&rep, buf, sizeof(buf));
	pvfs_call_reply(&k->call, 0, buf, max(n, 0), NULL);
}

static int conn_message(struct pvfs_conn *c)
{
	struct srv_conn *sc = srv_conn(c);
	struct pvfs_server *s = sc->s;
	struct srv_call *k = sc->call;
	u32 credits = s->p.credits;

	if (sc->state != SRV_OPEN)
		return handshake_message(sc);
	if (sc->cb || sc->cb_late) {
		callback_message(sc);
		return 0;
	}
	/* Not begun, not answered: the client sends it again to our successor. */
	if (atomic_load_explicit(&s->stopping, memory_order_relaxed)) {
		sc->call = NULL;
		srv_call_free(k);
		return 0;
	}
	if (!srv_call_begin(sc))
		return -ECONNABORTED;
	if ((atomic_load_explicit(&sc->calls, memory_order_relaxed) & ~SRV_DEAD) > credits) {
		srv_call_end(sc);
		return bad(sc, "more requests than it has credits for");
	}
	sc->call = NULL;
	pvfs_conn_get(c);		/* the call's */
	k->call.conn = c;
	k->call.peer = &sc->peer;
	k->call.head = c->h;
	k->call.info = pvfs_op_info(c->h.op);
	k->call.t_start = c->t_head;
	k->bytes = PVFS_HDR_LEN + c->h.body_len + c->h.payload_len;
	if (sc->verdict) {
		pvfs_call_reply(&k->call, sc->verdict, NULL, 0, NULL);
	} else if (c->h.op == PVFS_OP_PING) {
		ping(k);
	} else if (c->h.op == PVFS_OP_STATS) {
		srv_stats_reply(k);
	} else if (k->call.info->flags & PVFS_OPF_SLOW) {
		pvfs_conn_release(c);
		s->p.ops->dispatch(&k->call);
		return 1;
	} else {
		s->p.ops->dispatch(&k->call);
	}
	return 0;
}

/* ---------------------------------------------------------------- the end of a connection */

static void conn_down(struct pvfs_conn *c, int err)
{
	struct srv_conn *sc = srv_conn(c);
	struct pvfs_server *s = sc->s;
	struct srv_conn *next;
	const char *who = *sc->peer.host ? sc->peer.host : "unknown";

	if (c->why) {
		atomic_fetch_add_explicit(&s->protocol_errors, 1, memory_order_relaxed);
		pvfs_log_limited(PVFS_LOG_WARNING, "%s (%s): connection closed: %s (%s, tag %u)",
				 c->name, who, c->why, pvfs_op_name(c->h.op), c->h.tag);
	} else if (c->mid && sc->state == SRV_OPEN && !atomic_load(&s->stopping)) {
		pvfs_debug("%s (%s): connection lost within a message: %s", c->name, who,
			   strerror(-err));
	}
	pthread_mutex_lock(&s->lock);
	srv_set_state(sc, SRV_CLOSED);
	sc->is_down = true;
	/* Not its place as a channel: who comes for that waits for what still runs. */
	srv_unproved_remove(sc);
	next = srv_pay_forget(sc);
	pthread_mutex_unlock(&s->lock);
	srv_pay_kick(next);
	callback_down(sc);
	if (sc->call)
		srv_call_free(sc->call);
	sc->call = NULL;
	srv_conn_close_calls(sc);
}

static void conn_freed(struct pvfs_conn *c)
{
	struct srv_conn *sc = srv_conn(c);
	struct pvfs_server *s = sc->s;

	if (s->p.ops->closed)
		s->p.ops->closed(c);
	if (s->bufs)
		pvfs_bufs_forget(s->bufs, &sc->bufwait);
	pthread_mutex_lock(&s->lock);
	srv_hash_remove(sc);
	srv_unproved_remove(sc);
	srv_session_leave(sc);
	s->nproved -= sc->proved;
	*sc->link = sc->next;
	if (sc->next)
		sc->next->link = sc->link;
	s->nconns--;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	free(sc);
}

const struct pvfs_conn_ops srv_conn_ops = {
	.head = conn_head,
	.payload = srv_payload,
	.message = conn_message,
	.down = conn_down,
	.freed = conn_freed,
};

void pvfs_conn_set_data(struct pvfs_conn *c, void *data)
{
	srv_conn(c)->data = data;
}

void *pvfs_conn_data(struct pvfs_conn *c)
{
	return srv_conn(c)->data;
}

void *pvfs_server_arg(struct pvfs_server *s)
{
	return s->p.arg;
}

/* Lock held: the first connection of the sessions that @named stands for which @is so. */
static struct srv_conn *conn_of(struct pvfs_server *s, u64 named, bool (*is)(struct srv_conn *sc))
{
	bool all = named & PVFS_SESSION_ALL;
	u32 i = all ? 0 : named % SRV_SESSIONS, end = all ? SRV_SESSIONS : i + 1;
	struct srv_session *ss;
	struct srv_conn *sc;

	for (; i < end; i++)
		LIST_FOREACH(ss, &s->sessions[i], link)
			LIST_FOREACH(sc, &ss->conns, slink)
				if (pvfs_session_named(named, ss->id) && is(sc))
					return sc;
	return NULL;
}

/* Takes a reference. */
static bool to_be_killed(struct srv_conn *sc)
{
	return !sc->killed && pvfs_conn_tryget(&sc->c);
}

static bool killed_and_busy(struct srv_conn *sc)
{
	return sc->killed && atomic_load(&sc->calls) != SRV_DEAD;
}

void pvfs_server_kill_begin(struct pvfs_server *s, const u64 *sessions, u32 n)
{
	struct srv_conn *sc;
	u32 i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < n; i++) {
		while ((sc = conn_of(s, sessions[i], to_be_killed))) {
			sc->killed = true;
			pthread_mutex_unlock(&s->lock);
			srv_conn_close_calls(sc);
			pvfs_conn_kill(&sc->c);
			pvfs_conn_put(&sc->c);
			pthread_mutex_lock(&s->lock);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

bool pvfs_server_session_busy(struct pvfs_server *s, u64 session)
{
	bool busy;

	pthread_mutex_lock(&s->lock);
	busy = conn_of(s, session, killed_and_busy);
	pthread_mutex_unlock(&s->lock);
	return busy;
}

void pvfs_server_kill_wait(struct pvfs_server *s, const u64 *sessions, u32 n)
{
	u32 i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < n; i++)
		while (conn_of(s, sessions[i], killed_and_busy))
			pthread_cond_wait(&s->cond, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

void pvfs_server_kill_session(struct pvfs_server *s, u64 session)
{
	pvfs_server_kill_begin(s, &session, 1);
	pvfs_server_kill_wait(s, &session, 1);
}

/* ---------------------------------------------------------------- life */

static void tick(void *arg)
{
	struct pvfs_server *s = arg;
	u64 now = pvfs_now();

	srv_cut_unproved(s, now);
	srv_cut_stalled(s, now);
	if (s->bufs)
		pvfs_bufs_kick(s->bufs);
}

static void server_free(struct pvfs_server *s)
{
	struct srv_call *k;

	pvfs_timer_cancel(s->e, &s->tick);
	while ((k = s->free_calls)) {
		s->free_calls = k->next;
		free(k);
	}
	pvfs_bufs_free(s->bufs);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->free_lock);
	pthread_cond_destroy(&s->cond);
	explicit_bzero(&s->p, sizeof(s->p));
	free(s);
}

/* sendfile() has no MSG_NOSIGNAL: a client that went away must not end the daemon. */
static void ignore_sigpipe(void)
{
	struct sigaction sa;

	if (!sigaction(SIGPIPE, NULL, &sa) && sa.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
}

int pvfs_server_start(struct pvfs_engine *e, const struct pvfs_addr *addrs, int naddrs,
		      const struct pvfs_server_params *p, struct pvfs_server **ret,
		      const char **ret_why)
{
	struct pvfs_server *s = calloc(1, sizeof(*s) + naddrs * sizeof(s->listeners[0]));
	unsigned int every_ms;
	int i, err;

	*ret_why = "out of memory";
	if (!s)
		return -ENOMEM;
	ignore_sigpipe();
	s->e = e;
	s->p = *p;
	s->p.auth_ms = p->auth_ms ?: AUTH_MS_DEFAULT;
	s->p.stall_ms = p->stall_ms ?: STALL_MS_DEFAULT;
	s->p.max_unproved = p->max_unproved ?: PVFS_UNPROVED_DEFAULT;
	s->p.credits = min(max(p->credits, (u16)1), (u16)PVFS_CREDITS_MAX);
	s->p.payload_max = min(p->payload_max, PVFS_PAYLOAD_MAX);
	s->t_start = pvfs_now();
	s->pay_wait_tail = &s->pay_wait;
	s->next_tag = 1;
	s->tick.fn = tick;
	s->tick.arg = s;
	every_ms = min(s->p.auth_ms / 4, s->p.stall_ms / 8);
	every_ms = max(every_ms, 20u);
	s->tick.every = min(every_ms, 1000u) * 1000000ull;
	TAILQ_INIT(&s->unproved);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->free_lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	if (!p->ops->payload_get) {
		err = srv_bufs_make(s);
		if (err)
			goto fail;
	}
	for (i = 0; i < naddrs; i++) {
		err = srv_listen(s, &addrs[i]);
		if (err) {
			static _Thread_local char why[400];

			snprintf(why, sizeof(why), "can't listen on %s: %s", addrs[i].text,
				 strerror(-err));
			*ret_why = why;
			goto fail;
		}
	}
	pvfs_timer_set(e, &s->tick, pvfs_now() + s->tick.every);
	*ret = s;
	return 0;
fail:
	pvfs_server_stop(s, 0);
	return err;
}

static bool busy(struct pvfs_server *s)
{
	struct srv_conn *sc;
	bool any = false;

	pthread_mutex_lock(&s->lock);
	for (sc = s->conns; sc && !any; sc = sc->next)
		any = (atomic_load(&sc->calls) & ~SRV_DEAD) ||
		      (!sc->is_down && atomic_load(&sc->unsent));
	pthread_mutex_unlock(&s->lock);
	return any;
}

/*
 * After @grace_ms connections are cut; but requests that a handler still holds are waited for
 * however long it takes, because they point to the server. Not from an engine thread. NULL is fine.
 */
void pvfs_server_stop(struct pvfs_server *s, unsigned int grace_ms)
{
	u64 until = pvfs_now() + grace_ms * 1000000ull;
	struct srv_conn *sc;

	if (!s)
		return;
	while (s->nlisteners)
		srv_unlisten(s, s->listeners[--s->nlisteners]);
	atomic_store(&s->stopping, true);
	while (pvfs_now() < until && busy(s))
		usleep(2000);
	pthread_mutex_lock(&s->lock);
again:
	for (sc = s->conns; sc; sc = sc->next) {
		if (atomic_load(&sc->c.dead) || !pvfs_conn_tryget(&sc->c))
			continue;
		pthread_mutex_unlock(&s->lock);
		pvfs_conn_kill(&sc->c);
		pvfs_conn_put(&sc->c);
		pthread_mutex_lock(&s->lock);
		goto again;
	}
	while (s->nconns)
		pthread_cond_wait(&s->cond, &s->lock);
	pthread_mutex_unlock(&s->lock);
	server_free(s);
}
