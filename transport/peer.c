// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * peer.c - a server as seen by those who ask it: a pool of channels, requests in and out, time,
 * state for messages.
 *
 * A thread's requests all go to one channel, so that what it sends is pipelined on one connection;
 * different threads use different ones. A request stays on its channel until it is done, however
 * often the connection is lost.
 */
#include "peer.h"
#include "../common/log.h"
#include "../common/storeid.h"
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define QUIET_NS 2000000000ull		/* shorter silences are not worth a line in the log */

/* ---------------------------------------------------------------- state, for people */

/* Lock held: "iod 3 (host:port)", as far as it is known. */
static void peer_name(const struct pvfs_peer *p, char *buf, size_t n)
{
	if (p->known && p->pp.its_role == PVFS_ROLE_IOD)
		snprintf(buf, n, "iod %u (%s)", p->index, p->pp.addr.text);
	else
		snprintf(buf, n, "%s", p->pp.addr.text);
}

void peer_up(struct pvfs_peer *p)
{
	char name[sizeof(p->pp.addr.text) + 16];
	bool tell;

	pthread_mutex_lock(&p->lock);
	p->nup++;
	p->state = PVFS_PEER_UP;
	p->last_err = 0;
	p->why[0] = '\0';
	p->down_since = 0;
	peer_name(p, name, sizeof(name));
	tell = p->told || p->told_other || p->told_refused || p->told_unproved;
	p->told = p->told_other = p->told_refused = p->told_unproved = false;
	pthread_mutex_unlock(&p->lock);
	if (tell)
		pvfs_info("%s answers again", name);
}

void peer_down(struct pvfs_peer *p, bool was_up, int err, const char *why)
{
	u64 now = pvfs_now();
	char text[sizeof(p->why)], name[sizeof(p->pp.addr.text) + 16];
	bool tell = false;

	snprintf(text, sizeof(text), "%s", why && *why ? why : strerror(-err));
	pthread_mutex_lock(&p->lock);
	if (was_up)
		p->nup--;
	if (!p->nup && !atomic_load(&p->closing)) {
		p->state = PVFS_PEER_DOWN;
		p->last_err = err;
		memcpy(p->why, text, sizeof(p->why));
		if (!p->down_since)
			p->down_since = now;
		/* A daemon's restart, and the start of all of them, is over in a second. */
		tell = !p->told && ((p->pp.watch && was_up) ||
				    ((p->pp.hard || p->pp.watch) &&
				     now - p->down_since > QUIET_NS));
		p->told |= tell;
	}
	peer_name(p, name, sizeof(name));
	pthread_mutex_unlock(&p->lock);
	if (tell)
		pvfs_warn("%s does not answer (%s), still trying", name, text);
}

void peer_refused(struct pvfs_peer *p, int err, const char *why)
{
	char name[sizeof(p->pp.addr.text) + 16];
	bool tell;

	pthread_mutex_lock(&p->lock);
	/* Programs have their error; who watches has the log (and of another daemon already). */
	tell = p->pp.watch && err != -EHOSTUNREACH && !p->told_refused;
	p->told_refused |= tell;
	peer_name(p, name, sizeof(name));
	p->state = PVFS_PEER_REFUSED;
	p->last_err = err;
	snprintf(p->why, sizeof(p->why), "%s", why);
	p->refused_at = pvfs_now();
	pthread_mutex_unlock(&p->lock);
	if (tell)
		pvfs_warn("%s refuses us (%s), still trying", name, why);
}

void peer_unproved(struct pvfs_peer *p, int err)
{
	char name[sizeof(p->pp.addr.text) + 16];
	bool tell;

	pthread_mutex_lock(&p->lock);
	tell = !p->told_unproved;
	p->told_unproved = true;
	peer_name(p, name, sizeof(name));
	pthread_mutex_unlock(&p->lock);
	if (tell)
		pvfs_warn("%s: somebody refuses us there (%s) who does not prove that he knows the key, still trying",
			  name, strerror(-err));
}

/* "iod 3 of volume UUID" */
static void daemon_text(u8 role, u32 index, const u8 uuid[PVFS_UUID_LEN], char *buf, size_t n)
{
	char text[37];

	pvfs_uuid_text(uuid, text);
	if (role == PVFS_ROLE_IOD)
		snprintf(buf, n, "iod %u of volume %s", index, text);
	else
		snprintf(buf, n, "the manager of volume %s", text);
}

bool peer_is_other(struct pvfs_peer *p, const struct pvfs_auth_rep *rep, char *why, size_t n)
{
	char is[96], wanted[96];
	bool other, tell;

	pthread_mutex_lock(&p->lock);
	other = p->known && (memcmp(rep->volume_uuid, p->uuid, sizeof(p->uuid)) ||
			     (rep->role == PVFS_ROLE_IOD && rep->index != p->index));
	tell = other && (!p->told_other || p->other_index != rep->index ||
			 memcmp(p->other_uuid, rep->volume_uuid, sizeof(p->other_uuid)));
	if (tell) {
		p->told_other = true;
		p->other_index = rep->index;
		memcpy(p->other_uuid, rep->volume_uuid, sizeof(p->other_uuid));
	}
	if (other)
		daemon_text(p->pp.its_role, p->index, p->uuid, wanted, sizeof(wanted));
	pthread_mutex_unlock(&p->lock);
	if (!other)
		return false;
	daemon_text(rep->role, rep->index, rep->volume_uuid, is, sizeof(is));
	snprintf(why, n, "it is %s, not %s", is, wanted);
	if (tell)
		pvfs_error("%s: refused: it is %s, not %s: were addresses or stores exchanged?",
			   p->pp.addr.text, is, wanted);
	return true;
}

void pvfs_peer_expect(struct pvfs_peer *p, const u8 uuid[PVFS_UUID_LEN], u32 index)
{
	pthread_mutex_lock(&p->lock);
	p->known = true;
	memcpy(p->uuid, uuid, sizeof(p->uuid));
	p->index = index;
	pthread_mutex_unlock(&p->lock);
}

void pvfs_peer_retry_within(struct pvfs_peer *p, u32 ms)
{
	atomic_store(&p->backoff_max_ms, min(max(ms, BACKOFF_MIN_MS), BACKOFF_MAX_MS));
}

u64 pvfs_peer_down_ms(struct pvfs_peer *p)
{
	u64 ret;

	pthread_mutex_lock(&p->lock);
	ret = p->down_since ? (pvfs_now() - p->down_since) / 1000000 + 1 : 0;
	pthread_mutex_unlock(&p->lock);
	return ret;
}

enum pvfs_peer_state pvfs_peer_state(struct pvfs_peer *p, int *ret_err, char *why, size_t n)
{
	enum pvfs_peer_state state;

	pthread_mutex_lock(&p->lock);
	state = p->state;
	if (ret_err)
		*ret_err = p->last_err;
	if (why && n)	/* a request may have given up before the connection did */
		snprintf(why, n, "%s",
			 *p->why || state == PVFS_PEER_UP ? p->why : "it has not answered yet");
	pthread_mutex_unlock(&p->lock);
	return state;
}

/* ---------------------------------------------------------------- time */

void peer_due(struct pvfs_peer *p, u64 due)
{
	pthread_mutex_lock(&p->lock);
	if (!p->due || due < p->due) {
		p->due = due;
		pvfs_timer_set(p->e, &p->timer, due);
	}
	pthread_mutex_unlock(&p->lock);
}

static void peer_tick(void *arg)
{
	struct pvfs_peer *p = arg;
	u64 now = pvfs_now(), due = 0, t;
	unsigned int i;

	pthread_mutex_lock(&p->lock);
	p->due = 0;
	pthread_mutex_unlock(&p->lock);
	for (i = 0; i < p->pp.nconnect; i++) {
		t = chan_tick(&p->chans[i], now);
		if (t && (!due || t < due))
			due = t;
	}
	if (due)
		peer_due(p, due);
}

/* ---------------------------------------------------------------- requests */

static struct preq *preq_alloc(struct pvfs_peer *p)
{
	struct preq *r;

	pthread_mutex_lock(&p->lock);
	r = TAILQ_FIRST(&p->free);
	if (r) {
		TAILQ_REMOVE(&p->free, r, link);
		p->nfree--;
	}
	p->inflight++;
	pthread_mutex_unlock(&p->lock);
	if (!r)
		r = malloc(sizeof(*r));
	if (r)
		memset(r, 0, sizeof(*r));
	return r;
}

/* @r may be NULL. After this the peer may be gone. */
void peer_preq_free(struct pvfs_peer *p, struct preq *r)
{
	pthread_mutex_lock(&p->lock);
	if (r && p->nfree < PREQS_KEPT) {
		TAILQ_INSERT_HEAD(&p->free, r, link);
		p->nfree++;
		r = NULL;
	}
	if (!--p->inflight)
		pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->lock);
	free(r);
}

static void count(struct pvfs_peer *p, const struct preq *r)
{
	unsigned long long ns = pvfs_now() - r->t_submit, seen, out = 0;
	struct pvfs_rpc *rpc = r->rpc;
	int i;

	if (rpc->op >= PVFS_OP_LIMIT)
		return;
#define ADD(field, v) atomic_fetch_add_explicit(&p->counts[rpc->op].field, v, memory_order_relaxed)
	for (i = 0; i < rpc->nout; i++)
		out += rpc->out[i].iov_len;
	ADD(n, 1);
	ADD(errors, !!r->err);
	ADD(bytes_out, out);
	ADD(bytes_in, r->in_len);
	ADD(resent, r->resend);
	ADD(ns_total, ns);
#undef ADD
	seen = atomic_load_explicit(&p->counts[rpc->op].ns_max, memory_order_relaxed);
	while (ns > seen && !atomic_compare_exchange_weak(&p->counts[rpc->op].ns_max, &seen, ns))
		;
}

void peer_complete(struct pvfs_peer *p, struct preq_list *done)
{
	struct pvfs_rpc *rpc;
	struct preq *r;

	while ((r = TAILQ_FIRST(done))) {
		TAILQ_REMOVE(done, r, link);
		rpc = r->rpc;
		if (!rpc) {
			free(r);	/* see tick_posted() */
			continue;
		}
		count(p, r);
		rpc->err = r->err;
		rpc->rep_len = r->rep_len;
		rpc->in_len = r->in_len;
		rpc->done(rpc);
		peer_preq_free(p, r);
	}
}

static bool refused_lately(struct pvfs_peer *p)
{
	bool yes;

	pthread_mutex_lock(&p->lock);
	yes = p->state == PVFS_PEER_REFUSED && pvfs_now() - p->refused_at < REFUSED_QUIET_NS;
	pthread_mutex_unlock(&p->lock);
	return yes;
}

static int check_rpc(struct pvfs_peer *p, const struct pvfs_rpc *rpc, u32 *ret_payload_len)
{
	size_t total = 0;
	int i;

	for (i = 0; i < rpc->nout; i++)
		total += rpc->out[i].iov_len;
	*ret_payload_len = total;
	if (total > PVFS_PAYLOAD_MAX || rpc->body_len > PVFS_BODY_MAX)
		return -EMSGSIZE;
	if (!pvfs_op_info(rpc->op) || rpc->slot >= PVFS_SLOTS_MAX)
		return -EINVAL;
	if (atomic_load(&p->closing))
		return -ECANCELED;
	return refused_lately(p) ? -ENOTCONN : 0;
}

static void submit(struct pvfs_peer *p, u32 channel, struct pvfs_rpc *rpc, bool urgent)
{
	struct preq *r = preq_alloc(p);
	int err = r ? check_rpc(p, rpc, &r->payload_len) : -ENOMEM;

	rpc->err = err;
	rpc->rep_len = rpc->in_len = 0;
	if (err) {
		rpc->done(rpc);
		peer_preq_free(p, r);
		return;
	}
	r->rpc = rpc;
	r->ch = &p->chans[channel % p->pp.nconnect];
	r->urgent = urgent;
	r->t_submit = r->t_queued = pvfs_now();
	r->deadline = rpc->timeout_ms > 0 ? r->t_submit + rpc->timeout_ms * 1000000ull : 0;
	chan_submit(r->ch, r);
}

void pvfs_peer_submit(struct pvfs_peer *p, struct pvfs_rpc *rpc)
{
	static atomic_uint threads;
	static _Thread_local u32 me;

	if (!me)
		me = atomic_fetch_add(&threads, 1) + 1;
	submit(p, me, rpc, false);
}

/*
 * Such requests go before those of pvfs_peer_submit(), and while params.up runs for the channel
 * they are the only ones that go. up() itself must not wait for their completion if the engine has
 * one thread only.
 */
void pvfs_peer_submit_on(struct pvfs_peer *p, u32 channel, struct pvfs_rpc *rpc)
{
	submit(p, channel, rpc, true);
}

struct reply_waiter {
	sem_t sem;
	struct pvfs_peer *p;
};

static void call_done(struct pvfs_rpc *rpc)
{
	struct reply_waiter *w = rpc->arg;

	atomic_fetch_add_explicit(&w->p->wakeups, 1, memory_order_relaxed);
	sem_post(&w->sem);
}

int pvfs_peer_call(struct pvfs_peer *p, struct pvfs_rpc *rpc)
{
	struct reply_waiter w = { .p = p };

	sem_init(&w.sem, 0, 0);
	rpc->done = call_done;
	rpc->arg = &w;
	pvfs_peer_submit(p, rpc);
	while (sem_wait(&w.sem))
		;
	sem_destroy(&w.sem);
	return rpc->err;
}

static void set_done(struct pvfs_rpc *rpc)
{
	struct pvfs_rpc_set *s = rpc->arg;

	pthread_mutex_lock(&s->lock);
	/* Signalled under the lock: the set is gone when its owner has seen zero. */
	if (!--s->left)
		pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

void pvfs_rpc_set_submit(struct pvfs_rpc_set *s, struct pvfs_peer *p, struct pvfs_rpc *rpc)
{
	rpc->done = set_done;
	rpc->arg = s;
	pthread_mutex_lock(&s->lock);
	s->left++;
	pthread_mutex_unlock(&s->lock);
	pvfs_peer_submit(p, rpc);
}

void pvfs_rpc_set_wait(struct pvfs_rpc_set *s)
{
	pthread_mutex_lock(&s->lock);
	s->left--;
	while (s->left)
		pthread_cond_wait(&s->cond, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* ---------------------------------------------------------------- callbacks' answers */

struct cb_answer {
	struct pvfs_send send;
	u8 body[];
};

static void cb_sent(struct pvfs_send *send, int err)
{
	free(container_of(send, struct cb_answer, send));
}

/**
 * pvfs_peer_callback_reply - answer a request of the server
 * @h: the request's header
 * @body: copied
 *
 * Any thread. Dropped when the connection it came on is gone.
 */
void pvfs_peer_callback_reply(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h, int err,
			      const void *body, u32 body_len)
{
	struct pvfs_header rh = {
		.op = h->op,
		.flags = PVFS_HF_REPLY | PVFS_HF_CALLBACK,
		.tag = h->tag,
		.session = h->session,
		.status = pvfs_errno_to_wire(-err),
		.body_len = body_len,
		.body_crc = body_len ? pvfs_crc32c(0, body, body_len) : 0,
	};
	struct pconn *pc = chan_conn(&p->chans[channel % p->pp.nconnect]);
	struct cb_answer *a;

	if (!pc)
		return;
	a = body_len > PVFS_BODY_MAX ? NULL : calloc(1, sizeof(*a) + body_len);
	if (a) {
		if (body_len)
			memcpy(a->body, body, body_len);
		pvfs_header_encode(&rh, &a->send.hdr);
		a->send.body = a->body;
		a->send.body_len = body_len;
		a->send.done = cb_sent;
		pvfs_conn_send(&pc->c, &a->send);
	}
	pvfs_conn_put(&pc->c);
}

/* ---------------------------------------------------------------- life */

void *pvfs_peer_arg(struct pvfs_peer *p)
{
	return p->pp.arg;
}

void pvfs_peer_set_session(struct pvfs_peer *p, u64 session, const u8 *ticket)
{
	unsigned int i;

	pthread_mutex_lock(&p->lock);
	p->session = session;
	if (ticket)
		memcpy(p->ticket, ticket, sizeof(p->ticket));
	else
		memset(p->ticket, 0, sizeof(p->ticket));
	pthread_mutex_unlock(&p->lock);
	for (i = 0; i < p->pp.nconnect; i++)
		chan_session(&p->chans[i], session);
}

void pvfs_peer_counts(struct pvfs_peer *p, struct pvfs_peer_counts *ret)
{
	unsigned int i;

#define GET(c) atomic_load_explicit(&(c), memory_order_relaxed)
	for (i = 0; i < PVFS_OP_LIMIT; i++) {
		ret->op[i].n = GET(p->counts[i].n);
		ret->op[i].errors = GET(p->counts[i].errors);
		ret->op[i].bytes_out = GET(p->counts[i].bytes_out);
		ret->op[i].bytes_in = GET(p->counts[i].bytes_in);
		ret->op[i].resent = GET(p->counts[i].resent);
		ret->op[i].ns_total = GET(p->counts[i].ns_total);
		ret->op[i].ns_max = GET(p->counts[i].ns_max);
	}
	ret->connects = GET(p->connects);
	ret->wakeups = GET(p->wakeups);
#undef GET
}

/**
 * pvfs_peer_new - a pool of channels to one server
 * @e: outlives the peer
 * @pp: copied
 *
 * Connects when the first request is submitted.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int pvfs_peer_new(struct pvfs_engine *e, const struct pvfs_peer_params *pp, struct pvfs_peer **ret)
{
	struct pvfs_peer *p;
	unsigned int i;

	if (!pp->nconnect || pp->nconnect > PVFS_CHANNELS_MAX || !pp->key || !pp->key->present)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->chans = calloc(pp->nconnect, sizeof(*p->chans));
	if (!p->chans) {
		free(p);
		return -ENOMEM;
	}
	p->e = e;
	p->pp = *pp;
	p->key = *pp->key;
	p->pp.key = &p->key;
	p->pp.handshake_ms = pp->handshake_ms ?: HANDSHAKE_MS_DEFAULT;
	p->pp.stall_ms = pp->stall_ms ?: PEER_STALL_MS_DEFAULT;
	if (gethostname(p->host, sizeof(p->host) - 1))
		strcpy(p->host, "localhost");
	atomic_init(&p->backoff_max_ms, BACKOFF_MAX_MS);
	p->timer.fn = peer_tick;
	p->timer.arg = p;
	TAILQ_INIT(&p->free);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->cond, NULL);
	for (i = 0; i < pp->nconnect; i++)
		chan_init(p, &p->chans[i], i);
	*ret = p;
	return 0;
}

/* Lock held. Until something ended, or 20 ms. */
static void wait_a_little(struct pvfs_peer *p)
{
	struct timespec ts;
	u64 until = pvfs_now() + 20000000;

	ts.tv_sec = until / 1000000000;
	ts.tv_nsec = until % 1000000000;
	pthread_cond_clockwait(&p->cond, &p->lock, CLOCK_MONOTONIC, &ts);
}

void pvfs_peer_free(struct pvfs_peer *p)
{
	struct preq *r;
	unsigned int i;

	if (!p)
		return;
	atomic_store(&p->closing, true);
	for (i = 0; i < p->pp.nconnect; i++)
		chan_close(&p->chans[i]);
	pthread_mutex_lock(&p->lock);
	while (p->nconns || p->inflight) {
		pthread_mutex_unlock(&p->lock);
		/* What was requeued while its connection went down. */
		for (i = 0; i < p->pp.nconnect; i++)
			chan_close(&p->chans[i]);
		pthread_mutex_lock(&p->lock);
		if (p->nconns || p->inflight)
			wait_a_little(p);
	}
	pthread_mutex_unlock(&p->lock);
	pvfs_timer_cancel(p->e, &p->timer);
	while ((r = TAILQ_FIRST(&p->free))) {
		TAILQ_REMOVE(&p->free, r, link);
		free(r);
	}
	for (i = 0; i < p->pp.nconnect; i++)
		pthread_mutex_destroy(&p->chans[i].lock);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->cond);
	explicit_bzero(&p->key, sizeof(p->key));
	free(p->chans);
	free(p);
}
