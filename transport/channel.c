// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * channel.c - one channel of a peer: its requests, its connection, losing it and getting it back.
 *
 * Whoever may post sends: a submitter when the connection is idle, else what it queued goes out
 * with the current sender's next call. States, and what keeps whose memory in use, are in peer.h.
 */
#include "peer.h"
#include "../common/log.h"
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static const struct pvfs_conn_ops peer_conn_ops;

/* ---------------------------------------------------------------- small things; lock held */

static bool may_move(enum chan_state from, enum chan_state to)
{
	switch (to) {
	case CHAN_IDLE:
	case CHAN_WAIT:
		return true;
	case CHAN_CONNECTING:
		return from == CHAN_IDLE || from == CHAN_WAIT;
	case CHAN_UPCALL:
		return from == CHAN_CONNECTING;
	case CHAN_UP:
		return from == CHAN_UPCALL;
	}
	return false;
}

static void chan_set_state(struct chan *ch, enum chan_state state)
{
	if (!may_move(ch->state, state))
		pvfs_error("%s: channel %u moves from state %d to %d", ch->p->pp.addr.text,
			   ch->index, ch->state, state);
	ch->state = state;
}

static bool chan_wanted(const struct chan *ch)
{
	if (!TAILQ_EMPTY(&ch->urgent) || !TAILQ_EMPTY(&ch->queue))
		return true;
	/* Where the manager calls back, and where its restart is noticed. */
	return ch->index == 0 && ch->p->pp.its_role == PVFS_ROLE_MGR && ch->was_up;
}

static bool tag_take(struct chan *ch, struct preq *r)
{
	u32 i;

	/* The upper bits tell a late reply from a fresh one. */
	for (i = 0; i < CHAN_TAGS; i++) {
		ch->tag_next++;
		if (!ch->tags[ch->tag_next % CHAN_TAGS]) {
			ch->tags[ch->tag_next % CHAN_TAGS] = r;
			r->tag = ch->tag_next;
			ch->nposted++;
			return true;
		}
	}
	return false;
}

static void tag_drop(struct chan *ch, struct preq *r)
{
	if (ch->tags[r->tag % CHAN_TAGS] != r)
		return;
	ch->tags[r->tag % CHAN_TAGS] = NULL;
	ch->nposted--;
	if (!r->rpc)
		ch->nzombies--;
}

static void enqueue(struct chan *ch, struct preq *r, bool first)
{
	struct preq_list *l = r->urgent ? &ch->urgent : &ch->queue;

	if (first)
		TAILQ_INSERT_HEAD(l, r, link);
	else
		TAILQ_INSERT_TAIL(l, r, link);
}

/* To be completed by peer_complete(), when the lock is not held. */
static void finish(struct preq *r, int err, struct preq_list *done)
{
	r->err = err;
	TAILQ_INSERT_TAIL(done, r, link);
}

/* A posted request may have come to its end: see peer.h. */
static void preq_settle(struct chan *ch, struct preq *r, struct preq_list *done)
{
	if (r->sending || r->rx || !(r->replied || r->lost))
		return;
	TAILQ_REMOVE(&ch->posted, r, link);
	r->posted = false;
	if (r->replied || !r->rpc) {
		finish(r, r->err, done);
	} else if (atomic_load(&ch->p->closing)) {
		finish(r, -ECANCELED, done);
	} else if (r->timed_out) {
		finish(r, -ETIMEDOUT, done);
	} else {
		r->lost = false;
		r->resend = true;
		r->t_queued = pvfs_now();
		enqueue(ch, r, true);
	}
}

/* ---------------------------------------------------------------- posting */

static void preq_sent(struct pvfs_send *send, int err)
{
	struct preq *r = container_of(send, struct preq, send);
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	struct chan *ch = r->ch;
	bool lost;

	pthread_mutex_lock(&ch->lock);
	r->sending = false;
	lost = r->lost;
	preq_settle(ch, r, &done);
	pthread_mutex_unlock(&ch->lock);
	peer_complete(ch->p, &done);
	/* The connection may be back already, or nobody thought that it was wanted. */
	if (lost)
		chan_pump(ch);
}

/* Lock held: gives @r a tag and a header. False: none is free. */
static bool preq_post(struct chan *ch, struct preq *r, struct pconn *pc)
{
	struct pvfs_rpc *rpc = r->rpc;
	struct pvfs_header h = {
		.op = rpc->op,
		.flags = r->resend ? PVFS_HF_RESEND : 0,
		.session = pc->session,
		.slot = rpc->slot,
		.slot_seq = rpc->slot_seq,
		.body_len = rpc->body_len,
		.payload_len = r->payload_len,
	};

	if (!tag_take(ch, r))
		return false;
	if (!r->resend)
		r->session = pc->session;
	h.tag = r->tag;
	h.body_crc = rpc->body_len ? pvfs_crc32c(0, rpc->body, rpc->body_len) : 0;
	memset(&r->send, 0, sizeof(r->send));
	pvfs_header_encode(&h, &r->send.hdr);
	r->send.body = rpc->body;
	r->send.body_len = rpc->body_len;
	r->send.pay = rpc->out;
	r->send.npay = rpc->nout;
	r->send.done = preq_sent;
	r->sending = r->posted = true;
	r->replied = r->lost = r->rx = false;
	TAILQ_INSERT_TAIL(&ch->posted, r, link);
	return true;
}

/* Lock held: the next request that may go out now, posted; or NULL. */
static struct preq *next_to_post(struct chan *ch, struct preq_list *done)
{
	struct preq_list *l;
	struct preq *r;

	for (;;) {
		if ((ch->state != CHAN_UP && ch->state != CHAN_UPCALL) ||
		    ch->nposted >= ch->credits)
			return NULL;
		if (!TAILQ_EMPTY(&ch->urgent))
			l = &ch->urgent;
		else if (ch->state == CHAN_UP && !TAILQ_EMPTY(&ch->queue))
			l = &ch->queue;
		else
			return NULL;
		r = TAILQ_FIRST(l);
		TAILQ_REMOVE(l, r, link);
		/*
		 * Its slot was the old session's: whether it took effect there, nobody can say any
		 * more.
		 */
		if (r->resend && r->session != ch->conn->session &&
		    (pvfs_op_info(r->rpc->op)->flags & PVFS_OPF_ONCE)) {
			finish(r, -ESTALE, done);
			continue;
		}
		/* The server would close the connection, each time that it is sent. */
		if (r->payload_len > ch->payload_max) {
			finish(r, -EMSGSIZE, done);
			continue;
		}
		if (preq_post(ch, r, ch->conn))
			return r;
		TAILQ_INSERT_HEAD(l, r, link);
		return NULL;
	}
}

static void chan_connect(struct chan *ch);

void chan_pump(struct chan *ch)
{
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	struct pconn *pc;
	struct preq *r;

	for (;;) {
		pthread_mutex_lock(&ch->lock);
		if (ch->state == CHAN_IDLE || ch->state == CHAN_WAIT) {
			bool now = chan_wanted(ch) && !ch->in_up && !atomic_load(&ch->p->closing) &&
				   (ch->state == CHAN_IDLE || pvfs_now() >= ch->retry_at);

			if (now) {
				chan_set_state(ch, CHAN_CONNECTING);
				ch->handshake_until =
					pvfs_now() + ch->p->pp.handshake_ms * 1000000ull;
			}
			pthread_mutex_unlock(&ch->lock);
			if (now)
				chan_connect(ch);
			break;
		}
		r = next_to_post(ch, &done);
		pc = ch->conn;
		if (r)
			pvfs_conn_get(&pc->c);
		pthread_mutex_unlock(&ch->lock);
		if (!r)
			break;
		pvfs_conn_send(&pc->c, &r->send);
		pvfs_conn_put(&pc->c);
	}
	peer_complete(ch->p, &done);
}

void chan_submit(struct chan *ch, struct preq *r)
{
	struct pvfs_peer *p = ch->p;
	u64 due = r->deadline;

	pthread_mutex_lock(&ch->lock);
	enqueue(ch, r, false);
	if (!p->pp.hard && ch->state != CHAN_UP) {
		u64 fail = r->t_queued + p->pp.fail_ms * 1000000ull;

		due = due ? min(due, fail) : fail;
	}
	pthread_mutex_unlock(&ch->lock);
	if (due)
		peer_due(p, due);
	chan_pump(ch);
}

/* ---------------------------------------------------------------- connecting and losing */

/*
 * Lock held. The channel has no connection: what next? Return: when to try again, 0: when somebody
 * wants it.
 */
static u64 plan_retry(struct chan *ch, bool at_once)
{
	u32 r;

	if (atomic_load(&ch->p->closing) || !chan_wanted(ch)) {
		chan_set_state(ch, CHAN_IDLE);
		return 0;
	}
	chan_set_state(ch, CHAN_WAIT);
	ch->retry_at = pvfs_now();
	if (!at_once) {
		ch->backoff_ms = min(max(ch->backoff_ms * 2, BACKOFF_MIN_MS),
				     atomic_load(&ch->p->backoff_max_ms));
		/* A quarter of jitter, so that a thousand clients don't come back in step. */
		if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
			r = ch->retry_at;
		ch->retry_at += (ch->backoff_ms - r % (ch->backoff_ms / 4 + 1)) * 1000000ull;
	}
	return ch->retry_at;
}

/* It could not be connected: no connection of it exists. */
static void connect_failed(struct chan *ch, int err)
{
	u64 due;

	peer_down(ch->p, false, err, NULL);
	pthread_mutex_lock(&ch->lock);
	due = plan_retry(ch, false);
	pthread_mutex_unlock(&ch->lock);
	if (due)
		peer_due(ch->p, due);
}

/* State is CONNECTING. */
static void chan_connect(struct chan *ch)
{
	struct pvfs_peer *p = ch->p;
	const struct pvfs_xprt_ops *ops = pvfs_xprt_for(&p->pp.addr);
	struct pvfs_xprt *x;
	struct pconn *pc = calloc(1, sizeof(*pc));
	int err = -ENOMEM;

	if (pc)
		err = ops->connect(&p->pp.addr, &x);
	if (err) {
		free(pc);
		connect_failed(ch, err);
		return;
	}
	pc->ch = ch;
	pvfs_conn_init(&pc->c, p->e, x, &peer_conn_ops);
	pvfs_conn_get(&pc->c);		/* ch->conn's */
	pthread_mutex_lock(&p->lock);
	pc->session = p->session;
	memcpy(pc->ticket, p->ticket, sizeof(pc->ticket));
	p->nconns++;
	if (p->state == PVFS_PEER_IDLE)
		p->state = PVFS_PEER_CONNECTING;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_lock(&ch->lock);
	ch->conn = pc;
	pthread_mutex_unlock(&ch->lock);
	/* Closed meanwhile, by someone who could not see the connection yet. */
	if (atomic_load(&p->closing))
		pvfs_conn_kill(&pc->c);
	peer_due(p, ch->handshake_until);
	err = pvfs_conn_start(&pc->c, true);
	if (!err)
		return;
	pthread_mutex_lock(&ch->lock);
	ch->conn = NULL;
	pthread_mutex_unlock(&ch->lock);
	connect_failed(ch, err);
	pvfs_conn_put(&pc->c);
	pvfs_conn_put(&pc->c);
}

/* The connection is gone: what it had posted goes back in line. */
static void chan_lost(struct pconn *pc, int err)
{
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	struct chan *ch = pc->ch;
	struct pvfs_peer *p = ch->p;
	bool was_up, long_up, final;
	struct preq *r, *prev;
	u64 due;

	pthread_mutex_lock(&ch->lock);
	was_up = ch->state == CHAN_UP || ch->state == CHAN_UPCALL;
	pthread_mutex_unlock(&ch->lock);
	/*
	 * A server that took the key before has been given another: whoever waits for servers waits
	 * until that is put right.
	 */
	final = pc->refusal && !(pc->refusal == -EACCES && p->pp.hard && atomic_load(&p->connects));
	/* Before the state: who sees us down must find the reason. */
	if (final)
		peer_refused(p, pc->refusal, pc->why);
	else
		peer_down(p, was_up, pc->refusal ?: err ?: -ECONNRESET,
			  *pc->why ? pc->why : pc->c.why);

	pthread_mutex_lock(&ch->lock);
	ch->conn = NULL;
	if (pc->rx)
		pc->rx->rx = false;
	pc->rx = NULL;
	/*
	 * From the last to the first: each goes to the front of its queue. Those that the sending
	 * side still has follow in preq_sent().
	 */
	for (r = TAILQ_LAST(&ch->posted, preq_list); r; r = prev) {
		prev = TAILQ_PREV(r, preq_list, link);
		tag_drop(ch, r);
		r->lost = true;
		preq_settle(ch, r, &done);
	}
	if (was_up)
		ch->down_since = pvfs_now();
	long_up = was_up && ch->down_since - ch->up_since > 1000000000ull;
	if (final)
		ch->was_up = false;	/* only a new request leads to another try */
	due = plan_retry(ch, pc->stale || long_up);
	pthread_mutex_unlock(&ch->lock);
	peer_complete(p, &done);
	if (final) {
		chan_fail(ch, -ENOTCONN);
	} else if (due) {
		peer_due(p, due);
		if (!p->pp.hard)
			peer_due(p, pvfs_now() + p->pp.fail_ms * 1000000ull);
	}
	pvfs_conn_put(&pc->c);
}

/* AUTH said that the session is gone. */
static void session_lost(struct pconn *pc)
{
	struct pvfs_peer *p = pc->ch->p;
	bool tell;

	pthread_mutex_lock(&p->lock);
	tell = pc->session && p->session == pc->session;
	if (tell)
		p->session = 0;
	pthread_mutex_unlock(&p->lock);
	if (tell && p->pp.session_lost)
		p->pp.session_lost(p);
}

static void peer_conn_down(struct pvfs_conn *c, int err)
{
	struct pconn *pc = container_of(c, struct pconn, c);
	struct chan *ch = pc->ch;

	if (pc->hs == HS_DONE && c->why)
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection closed: %s (%s, tag %u)",
				 ch->p->pp.addr.text, c->why, pvfs_op_name(c->h.op), c->h.tag);
	else if (pc->hs != HS_DONE && (err == -ECANCELED || err == -ECONNABORTED))
		err = -ETIMEDOUT;	/* chan_tick() ended it */
	else if (pc->hs != HS_DONE && !*pc->why && !err)
		snprintf(pc->why, sizeof(pc->why),
			 "it closed the connection before the handshake was over");
	else if (pc->hs != HS_DONE && !*pc->why && c->why)
		snprintf(pc->why, sizeof(pc->why), "what answers there %s", c->why);
	free(pc->cb_body);
	pc->cb_body = NULL;
	if (pc->stale)
		session_lost(pc);
	/* The reader has its reference until we return: the channel may be used till then. */
	chan_lost(pc, err);
	chan_pump(ch);
}

static void peer_conn_freed(struct pvfs_conn *c)
{
	struct pconn *pc = container_of(c, struct pconn, c);
	struct pvfs_peer *p = pc->ch->p;

	free(pc);
	pthread_mutex_lock(&p->lock);
	if (!--p->nconns)
		pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
}

static int peer_connected(struct pvfs_conn *c)
{
	return client_auth_begin(container_of(c, struct pconn, c));
}

void chan_auth_ok(struct pconn *pc, const struct pvfs_auth_rep *rep)
{
	struct chan *ch = pc->ch;
	struct pvfs_peer *p = ch->p;
	bool other;

	atomic_fetch_add_explicit(&p->connects, 1, memory_order_relaxed);
	pthread_mutex_lock(&p->lock);
	other = p->session != pc->session;
	pthread_mutex_unlock(&p->lock);
	/* The session was replaced while we shook hands: come back with the new one. */
	if (other)
		pvfs_conn_kill(&pc->c);
	pvfs_conn_get(&pc->c);
	pthread_mutex_lock(&ch->lock);
	chan_set_state(ch, CHAN_UPCALL);
	ch->credits = min(max(rep->credits, (u16)1), (u16)CHAN_TAGS);
	ch->payload_max = rep->payload_max;
	ch->backoff_ms = 0;
	ch->was_up = true;
	ch->up_since = other ? 0 : pvfs_now();
	ch->in_up = true;
	pthread_mutex_unlock(&ch->lock);
	peer_up(p);
	peer_due(p, pvfs_now() + p->pp.stall_ms * 1000000ull / 4);
	/* Answers to what up() asks come while it runs: let another thread read them. */
	pvfs_conn_release(&pc->c);
	/*
	 * What was submitted for this channel before goes out now: up() may be waiting for what it
	 * brings.
	 */
	chan_pump(ch);
	if (p->pp.up && !other)
		p->pp.up(p, ch->index, rep);
	pthread_mutex_lock(&ch->lock);
	ch->in_up = false;
	if (ch->state == CHAN_UPCALL && ch->conn == pc)
		chan_set_state(ch, CHAN_UP);
	pthread_mutex_unlock(&ch->lock);
	chan_pump(ch);
	pvfs_conn_put(&pc->c);
}

struct pconn *chan_conn(struct chan *ch)
{
	struct pconn *pc;

	pthread_mutex_lock(&ch->lock);
	pc = ch->conn;
	if (pc)
		pvfs_conn_get(&pc->c);
	pthread_mutex_unlock(&ch->lock);
	return pc;
}

void chan_session(struct chan *ch, u64 session)
{
	struct pconn *pc = chan_conn(ch);
	bool other;

	if (!pc)
		return;
	pthread_mutex_lock(&ch->lock);
	other = pc->session != session && (ch->state == CHAN_UP || ch->state == CHAN_UPCALL);
	if (other)
		/* Not the server's fault: come back at once. */
		ch->up_since = 0;
	pthread_mutex_unlock(&ch->lock);
	if (other)
		pvfs_conn_kill(&pc->c);
	pvfs_conn_put(&pc->c);
}

/* ---------------------------------------------------------------- receiving */

static int bad(struct pconn *pc, const char *why)
{
	pc->c.why = why;
	return -EPROTO;
}

static size_t iov_total(const struct iovec *iov, int n)
{
	size_t total = 0;

	while (n--)
		total += iov++->iov_len;
	return total;
}

static int reply_head(struct pconn *pc)
{
	struct pvfs_conn *c = &pc->c;
	struct chan *ch = pc->ch;
	struct pvfs_rpc *rpc;
	struct preq *r;

	if (c->h.flags & PVFS_HF_CALLBACK)
		return bad(pc, "an answer to what was never asked");
	if (c->h.flags & PVFS_HF_PAYLOAD_CRC)
		return bad(pc, "a checksum that was not asked for");
	pthread_mutex_lock(&ch->lock);
	r = ch->tags[c->h.tag % CHAN_TAGS];
	if (!r || r->tag != c->h.tag || (r->rpc && r->rpc->op != c->h.op)) {
		pthread_mutex_unlock(&ch->lock);
		return bad(pc, "a reply nobody waits for");
	}
	pc->rx = r;
	r->rx = true;
	r->err = 0;
	rpc = r->rpc;
	if (rpc &&
	    (c->h.body_len > rpc->rep_room || c->h.payload_len > iov_total(rpc->in, rpc->nin))) {
		/* Read and thrown away: the requester is told. */
		r->err = -EMSGSIZE;
	} else if (rpc) {
		c->body = rpc->rep;
		c->pay = rpc->in;
		c->npay = c->h.payload_len ? rpc->nin : 0;
	}
	pthread_mutex_unlock(&ch->lock);
	return 0;
}

static int reply_message(struct pconn *pc)
{
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	struct pvfs_session_open_rep so;
	struct pvfs_conn *c = &pc->c;
	struct chan *ch = pc->ch;
	struct preq *r = pc->rx;
	int err;

	pthread_mutex_lock(&ch->lock);
	pc->rx = NULL;
	r->rx = false;
	tag_drop(ch, r);
	r->replied = true;
	err = -pvfs_errno_from_wire(c->h.status);
	if (!r->err) {
		r->err = err;
		r->rep_len = c->h.body_len;
		r->in_len = c->h.payload_len;
	}
	/* The server has bound the session it made to this connection. */
	if (c->h.op == PVFS_OP_SESSION_OPEN && !r->err && r->rpc &&
	    !pvfs_session_open_rep_decode(&so, r->rpc->rep, r->rep_len))
		pc->session = so.session;
	if (c->h.credits)
		ch->credits = min(c->h.credits, (u16)CHAN_TAGS);
	preq_settle(ch, r, &done);
	pthread_mutex_unlock(&ch->lock);
	peer_complete(ch->p, &done);
	chan_pump(ch);
	return 0;
}

static int callback_head(struct pconn *pc)
{
	struct pvfs_conn *c = &pc->c;

	if (!(c->h.flags & PVFS_HF_CALLBACK) || c->h.payload_len)
		return bad(pc, "a request that is not a callback");
	pc->callback = true;
	if (c->h.body_len) {
		pc->cb_body = malloc(c->h.body_len);
		if (!pc->cb_body)
			return -ENOMEM;
		c->body = pc->cb_body;
	}
	return 0;
}

static int callback_message(struct pconn *pc)
{
	struct pvfs_peer *p = pc->ch->p;
	struct pvfs_ping_rep pong = { 0 };
	struct pvfs_header h = pc->c.h;
	struct timespec ts;
	u8 buf[16];
	int n;

	pc->callback = false;
	if (h.op == PVFS_OP_PING) {
		clock_gettime(CLOCK_REALTIME, &ts);
		pong.now.sec = ts.tv_sec;
		pong.now.nsec = ts.tv_nsec;
		n = pvfs_ping_rep_encode(&pong, buf, sizeof(buf));
		pvfs_peer_callback_reply(p, pc->ch->index, &h, 0, buf, max(n, 0));
	} else if (p->pp.callback) {
		p->pp.callback(p, pc->ch->index, &h, pc->cb_body);
	} else {
		pvfs_peer_callback_reply(p, pc->ch->index, &h, -ENOSYS, NULL, 0);
	}
	free(pc->cb_body);
	pc->cb_body = NULL;
	return 0;
}

static int peer_conn_head(struct pvfs_conn *c)
{
	struct pconn *pc = container_of(c, struct pconn, c);

	if (pc->hs != HS_DONE)
		return client_auth_head(pc);
	return c->h.flags & PVFS_HF_REPLY ? reply_head(pc) : callback_head(pc);
}

static int peer_conn_message(struct pvfs_conn *c)
{
	struct pconn *pc = container_of(c, struct pconn, c);

	if (pc->hs != HS_DONE)
		return client_auth_message(pc);
	return pc->callback ? callback_message(pc) : reply_message(pc);
}

static const struct pvfs_conn_ops peer_conn_ops = {
	.connected = peer_connected,
	.head = peer_conn_head,
	.message = peer_conn_message,
	.down = peer_conn_down,
	.freed = peer_conn_freed,
};

/* ---------------------------------------------------------------- time */

static void sooner(u64 *due, u64 t)
{
	if (t && (!*due || t < *due))
		*due = t;
}

/* Lock held. Fails what waited too long in @l. */
static void tick_queue(struct chan *ch, struct preq_list *l, u64 now, u64 *due,
		       struct preq_list *done)
{
	struct pvfs_peer *p = ch->p;
	struct preq *r, *next;
	u64 fail;

	for (r = TAILQ_FIRST(l); r; r = next) {
		next = TAILQ_NEXT(r, link);
		fail = p->pp.hard || ch->state == CHAN_UP ? 0 :
		       max(r->t_queued, ch->down_since) + p->pp.fail_ms * 1000000ull;
		if (r->deadline && r->deadline <= now) {
			TAILQ_REMOVE(l, r, link);
			finish(r, -ETIMEDOUT, done);
		} else if (fail && fail <= now) {
			TAILQ_REMOVE(l, r, link);
			finish(r, -ENOTCONN, done);
		} else {
			sooner(due, r->deadline);
			sooner(due, fail);
		}
	}
}

/*
 * Lock held. A posted request whose time is over: if nobody has its memory in hand, its rpc is
 * completed and a reply that may come will be thrown away; else the connection has to give it back.
 * Return: true if that must be ended.
 */
static bool preq_expire(struct chan *ch, struct preq *r, u64 now, u64 *due)
{
	u64 moved = ch->conn ? atomic_load(&ch->conn->c.progress) : 0;

	if (r->timed_out && now - moved > 1000000000ull)
		return true;
	r->timed_out = true;
	sooner(due, now + 1000000000ull);
	return false;
}

/* Lock held. */
static bool tick_posted(struct chan *ch, u64 now, u64 *due, struct preq_list *done)
{
	struct preq *r, *next, *z;
	bool kill = false;

	for (r = TAILQ_FIRST(&ch->posted); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (!r->deadline || !r->rpc)
			continue;
		if (r->deadline > now) {
			sooner(due, r->deadline);
			continue;
		}
		if (r->sending || r->rx) {
			kill |= preq_expire(ch, r, now, due);
			continue;
		}
		/* The reply's place is taken by one without an owner. */
		z = calloc(1, sizeof(*z));
		if (!z) {
			kill |= preq_expire(ch, r, now, due);
			continue;
		}
		z->ch = ch;
		z->tag = r->tag;
		z->posted = true;
		ch->tags[r->tag % CHAN_TAGS] = z;
		ch->nzombies++;
		TAILQ_INSERT_BEFORE(r, z, link);
		TAILQ_REMOVE(&ch->posted, r, link);
		r->posted = false;
		finish(r, -ETIMEDOUT, done);
	}
	/* A server that never answers must not use up the channel. */
	return kill || (ch->nzombies && ch->nzombies >= ch->credits / 2);
}

u64 chan_tick(struct chan *ch, u64 now)
{
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	u64 stall = ch->p->pp.stall_ms * 1000000ull, due = 0;
	struct pconn *pc = NULL;
	const char *why = NULL;
	bool kill;

	pthread_mutex_lock(&ch->lock);
	tick_queue(ch, &ch->urgent, now, &due, &done);
	tick_queue(ch, &ch->queue, now, &due, &done);
	kill = tick_posted(ch, now, &due, &done);
	if (ch->state == CHAN_CONNECTING) {
		kill |= now >= ch->handshake_until;
		sooner(&due,
		       now >= ch->handshake_until ? now + 1000000000ull : ch->handshake_until);
	} else if (ch->state == CHAN_WAIT && ch->retry_at > now) {
		sooner(&due, ch->retry_at);
	} else if (ch->conn && (ch->state == CHAN_UP || ch->state == CHAN_UPCALL)) {
		why = pvfs_conn_stalled(&ch->conn->c, now, stall);
		kill |= why != NULL;
		sooner(&due, now + stall / 4);
	}
	if (kill && ch->conn) {
		pc = ch->conn;
		pvfs_conn_get(&pc->c);
	}
	pthread_mutex_unlock(&ch->lock);
	if (why)
		pvfs_log_limited(PVFS_LOG_WARNING, "%s: connection closed: %s for %u ms",
				 ch->p->pp.addr.text, why, ch->p->pp.stall_ms);
	if (pc) {
		pvfs_conn_kill(&pc->c);
		pvfs_conn_put(&pc->c);
	}
	peer_complete(ch->p, &done);
	chan_pump(ch);
	return due;
}

/* ---------------------------------------------------------------- life */

void chan_init(struct pvfs_peer *p, struct chan *ch, u32 index)
{
	ch->p = p;
	ch->index = index;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->urgent);
	TAILQ_INIT(&ch->queue);
	TAILQ_INIT(&ch->posted);
}

void chan_fail(struct chan *ch, int err)
{
	struct preq_list done = TAILQ_HEAD_INITIALIZER(done);
	struct preq *r;

	pthread_mutex_lock(&ch->lock);
	TAILQ_CONCAT(&done, &ch->urgent, link);
	TAILQ_CONCAT(&done, &ch->queue, link);
	TAILQ_FOREACH(r, &done, link)
		r->err = err;
	if (ch->state == CHAN_WAIT && !chan_wanted(ch))
		chan_set_state(ch, CHAN_IDLE);
	pthread_mutex_unlock(&ch->lock);
	peer_complete(ch->p, &done);
}

void chan_close(struct chan *ch)
{
	struct pconn *pc = chan_conn(ch);

	if (pc) {
		pvfs_conn_kill(&pc->c);
		pvfs_conn_put(&pc->c);
	}
	chan_fail(ch, -ECANCELED);
}
