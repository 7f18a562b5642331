// SPDX-License-Identifier: GPL-2.0
/*
 * evict.c - sessions that gave no sign of life are ended, and what they held is given to others when
 * they can't write any more.
 *
 *   alive --- mgr_sessions_expire() ---> MARKED ---------> FENCED ---------> gone
 *             no answer to PING            |  the iods        |  all iods
 *                                          |  refuse it       |  know
 *
 * MARKED is recorded, durably, before anything is done about it: from then on the session's requests
 * are refused, its client gets another number when it comes back, also from a manager that was
 * restarted meanwhile, which goes on from here. Then all iods are told. An iod that does not answer
 * is waited for once, some seconds, for all sessions together; it is told again later, for which the
 * record stays.
 * FENCED: what it had open and locked, its leases and its stored replies are gone from here on, and
 * that is recorded. The record goes when all iods know.
 *
 * Any number of sessions go through this together, in a round of the thread that expires them; what
 * fails is done again in the next round, each step may be. Nothing else runs this.
 */
#include "mgr.h"
#include <stdlib.h>

#define FENCE_MS 3000u
#define CALLS_MAX 1024u		/* to iods at once */

enum state { UNMARKED, MARKED, FENCED };

struct mgr_eviction {
	struct mgr_eviction *next;
	struct mgr_session *s;		/* a reference */
	enum state state;
	u32 left;			/* iods that do not know */
	bool known[];			/* by iod */
};

static unsigned long long number(const struct mgr_eviction *e)
{
	return e->s->id;
}

static struct mgr_eviction *add(struct mgr *m, struct mgr_session *s, enum state state)
{
	struct mgr_eviction *e = calloc(1, sizeof(*e) + m->niods);

	if (!e)
		return NULL;
	e->s = s;
	e->state = state;
	e->left = m->niods;
	e->next = m->evictions;
	m->evictions = e;
	return e;
}

int mgr_evict_resume(struct mgr *m, struct mgr_session *s, bool fenced)
{
	return add(m, s, fenced ? FENCED : MARKED) ? 0 : -ENOMEM;
}

int mgr_evict_add(struct mgr *m, struct mgr_session *s)
{
	return add(m, s, UNMARKED) ? 0 : -ENOMEM;
}

/* ---- marking ---- */

static int mark_fn(struct mgr_op *op, void *arg)
{
	struct mgr_eviction *e;
	int err = 0;

	for (e = op->m->evictions; e && !err; e = e->next)
		if (e->state == UNMARKED)
			err = mgr_session_mark(op, e->s->id, false);
	return err;
}

static int mark_txn(struct mgr_op *op, void *arg)
{
	return mgr_run(op, mark_fn, NULL, MGR_RUN_SYNC);
}

/* One transaction for all. */
static void mark_all(struct mgr *m)
{
	struct mgr_eviction *e;
	int err;

	for (e = m->evictions; e && e->state != UNMARKED; e = e->next)
		;
	if (!e)
		return;
	err = mgr_bg_do(m, mark_txn, NULL);
	if (err) {
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "session %llu and others: can't be marked as evicted: %s; trying again",
				 number(e), strerror(-err));
		return;
	}
	for (e = m->evictions; e; e = e->next)
		if (e->state == UNMARKED)
			e->state = MARKED;
}

/* ---- fencing ---- */

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* What they have under way here is finished with, so that the sweep misses nothing. */
static int end_calls(struct mgr *m)
{
	struct mgr_eviction *e;
	u64 *sessions;
	u32 n = 0;

	for (e = m->evictions; e; e = e->next)
		n += e->state == MARKED;
	if (!n || !m->server)
		return 0;
	sessions = malloc(n * sizeof(*sessions));
	if (!sessions)
		return -ENOMEM;
	for (n = 0, e = m->evictions; e; e = e->next)
		if (e->state == MARKED)
			sessions[n++] = e->s->id;
	qsort(sessions, n, sizeof(*sessions), by_number);
	pvfs_server_kill_begin(m->server, sessions, n);
	pvfs_server_kill_wait(m->server, sessions, n);
	free(sessions);
	return 0;
}

struct telling {
	struct mgr_iocall calls[CALLS_MAX];
	struct mgr_eviction *whose[CALLS_MAX];
	bool silent[];			/* iods that did not answer in this round */
};

static void tell(struct mgr *m, struct telling *t, u32 n)
{
	u32 i;

	m->iod_ops->call(m->iod_arg, t->calls, n, FENCE_MS);
	for (i = 0; i < n; i++) {
		if (t->calls[i].err) {
			t->silent[t->calls[i].iod] = true;
			continue;
		}
		t->whose[i]->known[t->calls[i].iod] = true;
		t->whose[i]->left--;
	}
}

/* All iods are told of all that they do not know of. One that does not answer is left alone then. */
static int tell_all(struct mgr *m)
{
	struct mgr_eviction *e;
	struct telling *t;
	u32 i, n = 0;

	for (e = m->evictions; e && (e->state == UNMARKED || !e->left); e = e->next)
		;
	if (!e)
		return 0;
	t = calloc(1, sizeof(*t) + m->niods);
	if (!t)
		return -ENOMEM;
	for (; e; e = e->next) {
		for (i = 0; e->state != UNMARKED && i < m->niods; i++) {
			if (e->known[i] || t->silent[i])
				continue;
			t->calls[n] = (struct mgr_iocall){ .iod = i, .op = PVFS_OP_EVICT,
							   .session = e->s->id };
			t->whose[n++] = e;
			if (n == CALLS_MAX) {
				tell(m, t, n);
				n = 0;
			}
		}
	}
	if (n)
		tell(m, t, n);
	free(t);
	return 0;
}

/* ---- the end ---- */

static int end_fn(struct mgr_op *op, void *arg)
{
	struct mgr_eviction *e = arg;

	return mgr_session_end(op, e->s, e->left);
}

/* Its locks and the rest. */
static void give_away(struct mgr *m, struct mgr_eviction *e)
{
	int err;

	if (e->left)
		pvfs_warn("session %llu: %u iods do not answer: its client may still write there",
			  number(e), e->left);
	err = mgr_bg_do(m, end_fn, e);
	if (err) {
		pvfs_log_limited(PVFS_LOG_WARNING, "session %llu: can't be ended: %s; trying again",
				 number(e), strerror(-err));
		return;
	}
	e->state = FENCED;
	atomic_fetch_add_explicit(&m->count.evicted, 1, memory_order_relaxed);
}

void mgr_evict_round(struct mgr *m)
{
	struct mgr_eviction **pp = &m->evictions, *e;
	bool forgotten;

	if (!m->evictions)
		return;
	mark_all(m);
	if (end_calls(m) || tell_all(m))
		return;		/* no memory: the next round */
	while ((e = *pp)) {
		forgotten = false;
		if (e->state == MARKED) {
			give_away(m, e);
			/* Without anybody left to be told, its record went with that. */
			forgotten = e->state == FENCED && !e->left;
		} else if (e->state == FENCED && !e->left) {
			forgotten = !mgr_session_forget(m, e->s->id);
		}
		if (!forgotten) {
			pp = &e->next;
			continue;
		}
		*pp = e->next;
		mgr_session_put(e->s);
		free(e);
	}
}

void mgr_evict_fini(struct mgr *m)
{
	struct mgr_eviction *e;

	while ((e = m->evictions)) {
		m->evictions = e->next;
		mgr_session_put(e->s);
		free(e);
	}
}
