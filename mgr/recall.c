// SPDX-License-Identifier: GPL-2.0
/*
 * recall.c - who waits for whom: leases that are recalled, settled, files that others are to go out of, and
 * the requests that wait for that; see recall.h and "Leases" in docs/protocol.md. What is granted, and what
 * is to be waited for, grant.c says.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define TICK_MS 100u
#define HOLDERS_MAX 1024u	/* of one inode that are recalled at once; the rest the next time */

LIST_HEAD(waiting_list, waiting);

enum recall_kind { RECALL, SETTLE, YIELD };

/* One session that is asked to give up its lease on one inode, to settle it, or to go out of it. */
struct mgr_recall {
	LIST_ENTRY(mgr_recall) link;		/* in its bucket */
	u64 ino, session;
	enum recall_kind kind;
	u64 end;				/* of the lease, monotonic ms, or MGR_LEASE_NEVER */
	u64 born;				/* mgr_recalls.born */
	bool sent;				/* and not yet answered */
	bool again;				/* it was sent before */
	bool write;				/* it is, or was meanwhile, of a WRITE lease */
	bool begun;				/* this round was sent, maybe answered EAGAIN */
	u64 round;				/* of a settle or yield */
	struct waiting_list waiting;
	struct waiting_list later;		/* of a settle: for the next round */
};

/* A request that waits for one of these. */
struct waiting {
	LIST_ENTRY(waiting) link;
	struct mgr_parked *p;
};

struct mgr_parked {
	struct mgr_parked *next;		/* ready ones */
	struct pvfs_call *call;
	u32 left;				/* recalls, settles and yields that it waits for, and its turn */
	struct mgr_noted noted[MGR_NOTED_MAX];	/* what it has barred */
	u32 nnoted;
	u64 settled[MGR_NOTED_MAX];		/* what is settled for it when nothing is left; the last ones */
	u32 nsettled;
	TAILQ_ENTRY(mgr_parked) place;		/* in the line of @line, if that is not 0 */
	u64 line, session;
	bool lined;				/* it was in one all the time */
	bool behind;				/* not the first there: it waits for that */
};

/* Nobody gets a lease on it. */
struct mgr_bar {
	LIST_ENTRY(mgr_bar) link;
	u64 ino;
	u32 n, lined;				/* parked requests that want it so; those in line */
};

/* Inodes of one session for one message. */
struct recall_batch {
	struct recall_batch *next;
	u64 session;
	enum recall_kind kind;
	bool write, open;	/* of WRITE leases; takes more of them */
	u64 round;
	u32 n;
	u64 inos[PVFS_RECALL_MAX];
};

/* ---- looked at by who is executed ---- */

static struct mgr_bar *bar_find(struct mgr_recalls *r, u64 ino)
{
	struct mgr_bar *b;

	LIST_FOREACH(b, &r->bar[ino % MGR_RECALL_BUCKETS], link)
		if (b->ino == ino)
			return b;
	return NULL;
}

bool mgr_recall_barred(struct mgr *m, u64 ino)
{
	bool ret;

	if (!atomic_load(&m->recalls.barred))
		return false;
	pthread_mutex_lock(&m->recalls.lock);
	ret = bar_find(&m->recalls, ino);
	pthread_mutex_unlock(&m->recalls.lock);
	return ret;
}

bool mgr_recall_settled(const struct mgr_parked *p, u64 ino)
{
	u32 i;

	for (i = 0; p && i < min(p->nsettled, MGR_NOTED_MAX); i++)
		if (p->settled[i] == ino)
			return true;
	return false;
}

/* The lock is held. */
static struct mgr_parked *line_first(struct mgr_recalls *r, u64 ino)
{
	struct mgr_parked *p;

	TAILQ_FOREACH(p, &r->line[ino % MGR_RECALL_BUCKETS], place)
		if (p->line == ino)
			return p;
	return NULL;
}

bool mgr_line_first(struct mgr_op *op, u64 ino, int *ret_err)
{
	struct mgr_recalls *r = &op->m->recalls;
	struct mgr_parked *first;

	op->line = ino;
	if (!atomic_load(&r->lined))
		return true;
	pthread_mutex_lock(&r->lock);
	first = line_first(r, ino);
	pthread_mutex_unlock(&r->lock);
	if (!first || first == op->parked)
		return true;
	*ret_err = op->recalls ? -EINPROGRESS : -EAGAIN;
	if (op->recalls) {
		op->noted[0] = (struct mgr_noted){ .ino = ino, .line = true };
		op->nnoted = 1;
	}
	return false;
}

/* ---- recalling; the lock is held in what follows ---- */

static struct mgr_recall *find(struct mgr_recalls *r, u64 ino, u64 session, enum recall_kind kind)
{
	struct mgr_recall *c;

	LIST_FOREACH(c, &r->bucket[ino % MGR_RECALL_BUCKETS], link)
		if (c->ino == ino && c->session == session && c->kind == kind)
			return c;
	return NULL;
}

static struct mgr_recall *recall_find(struct mgr_recalls *r, u64 ino, u64 session)
{
	return find(r, ino, session, RECALL);
}

static struct mgr_recall *settle_find(struct mgr_recalls *r, u64 ino, u64 session)
{
	return atomic_load(&r->settles) ? find(r, ino, session, SETTLE) : NULL;
}

static struct mgr_recall *yield_find(struct mgr_recalls *r, u64 ino, u64 session)
{
	return atomic_load(&r->yields) ? find(r, ino, session, YIELD) : NULL;
}

static void round_new(struct mgr_recalls *r, struct mgr_recall *c)
{
	r->round += r->round + 1 ? 1 : 2;	/* never 0 */
	c->round = r->round;
	c->begun = c->again = false;
}

static struct mgr_recall *recall_new(struct mgr_recalls *r, enum recall_kind kind, u64 ino,
				     const struct mgr_lease_holder *h)
{
	struct mgr_recall *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = kind;
	c->ino = ino;
	c->session = h->session;
	c->end = h->end;
	c->write = h->write;
	c->born = atomic_fetch_add(&r->born, 1) + 1;
	if (kind != RECALL)
		round_new(r, c);
	atomic_fetch_add(&r->settles, kind == SETTLE);
	atomic_fetch_add(&r->yields, kind == YIELD);
	LIST_INSERT_HEAD(&r->bucket[ino % MGR_RECALL_BUCKETS], c, link);
	if (!r->n++)
		pthread_cond_broadcast(&r->cond);
	r->unsent++;
	return c;
}

/* One less to wait for: who waits for nothing else is ready. */
static void wake_one(struct mgr_parked *p, struct mgr_parked **ready)
{
	if (--p->left)
		return;
	p->next = *ready;
	*ready = p;
}

static void wake(struct waiting_list *l, struct mgr_parked **ready)
{
	struct waiting *w;

	while ((w = LIST_FIRST(l))) {
		LIST_REMOVE(w, link);
		wake_one(w->p, ready);
		free(w);
	}
}

/* Its turn has come; or we end. */
static void line_on(struct mgr_parked *p, struct mgr_parked **ready)
{
	if (!p->behind)
		return;
	p->behind = false;
	wake_one(p, ready);
}

/* @old: what the same request was parked as before, or NULL: its place goes over */
static void line_join(struct mgr_recalls *r, struct mgr_parked *p, struct mgr_parked *old, u64 ino)
{
	p->line = ino;
	if (old && old->line) {
		TAILQ_INSERT_BEFORE(old, p, place);
		TAILQ_REMOVE(&r->line[ino % MGR_RECALL_BUCKETS], old, place);
		old->line = 0;
		return;
	}
	TAILQ_INSERT_TAIL(&r->line[ino % MGR_RECALL_BUCKETS], p, place);
	atomic_fetch_add(&r->lined, 1);
}

static void line_leave(struct mgr_recalls *r, struct mgr_parked *p, struct mgr_parked **ready)
{
	u64 ino = p->line;

	if (!ino)
		return;
	TAILQ_REMOVE(&r->line[ino % MGR_RECALL_BUCKETS], p, place);
	atomic_fetch_sub(&r->lined, 1);
	p->line = 0;
	p = line_first(r, ino);
	if (p)
		line_on(p, ready);
}

/* It is answered or has expired; or its session, its lease, or we, end. */
static void recall_end(struct mgr_recalls *r, struct mgr_recall *c, struct mgr_parked **ready)
{
	wake(&c->waiting, ready);
	wake(&c->later, ready);
	LIST_REMOVE(c, link);
	r->n--;
	r->unsent -= !c->sent;
	atomic_fetch_sub(&r->settles, c->kind == SETTLE);
	atomic_fetch_sub(&r->yields, c->kind == YIELD);
	free(c);
}

static void recall_done(struct mgr_recalls *r, struct mgr_recall *c, struct mgr_parked **ready)
{
	atomic_fetch_add_explicit(c->write ? &r->write_recalled : &r->recalled, 1, memory_order_relaxed);
	recall_end(r, c, ready);
}

/* A round was answered; the next begins if anybody waits for it, and is to be sent. */
static void round_end(struct mgr_recalls *r, struct mgr_recall *c, struct mgr_parked **ready)
{
	struct waiting *w;

	atomic_fetch_add_explicit(&r->write_settled, 1, memory_order_relaxed);
	if (!LIST_FIRST(&c->later)) {
		recall_end(r, c, ready);
		return;
	}
	wake(&c->waiting, ready);
	while ((w = LIST_FIRST(&c->later))) {
		LIST_REMOVE(w, link);
		LIST_INSERT_HEAD(&c->waiting, w, link);
	}
	r->unsent += c->sent;
	c->sent = false;
	round_new(r, c);
}

/* Of a lease that has ended all is with the iods: nothing is left to settle. */
static void settle_drop(struct mgr *m, u64 ino, u64 session, struct mgr_parked **ready)
{
	struct mgr_recall *c = settle_find(&m->recalls, ino, session);

	if (c && !mgr_leases_writes(&m->leases, ino, session))
		recall_end(&m->recalls, c, ready);
}

/*
 * It is out, with nothing of the file: what else it was asked about is answered. It was granted nothing
 * since: who waits has barred it.
 */
static void yield_end(struct mgr *m, struct mgr_recall *c, struct mgr_parked **ready)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_recall *other = recall_find(r, c->ino, c->session);

	mgr_opens_out(&m->opens, c->ino, c->session);
	mgr_leases_drop(&m->leases, c->ino, c->session);
	if (other)
		recall_done(r, other, ready);
	settle_drop(m, c->ino, c->session, ready);
	atomic_fetch_add_explicit(&r->yielded, 1, memory_order_relaxed);
	recall_end(r, c, ready);
}

static bool is_in(struct mgr *m, const struct mgr_recall *c)
{
	struct mgr_opens_view v;

	mgr_opens_view(&m->opens, c->ino, c->session, &v);
	return v.open && !v.out;
}

/* Puts it into a message. Without memory: the tick tries again. */
static void batch_add(struct mgr_recalls *r, struct recall_batch **list, struct mgr_recall *c)
{
	bool open = c->kind == RECALL && !c->again;
	struct recall_batch *b;

	/*
	 * One answer is for all that is in it, and of WRITE leases, or what is mapped, that is: not yet. Of several one
	 * may be stuck for long, and another have nothing to give up: those that were answered so go by themselves. And so
	 * do settles and yields, which are in a hurry.
	 */
	for (b = open ? *list : NULL; b; b = b->next)
		if (b->open && b->session == c->session && b->write == c->write && b->n < PVFS_RECALL_MAX)
			break;
	if (!b) {
		b = malloc(sizeof(*b));
		if (!b)
			return;
		*b = (struct recall_batch){ .next = *list, .session = c->session, .write = c->write,
					    .open = open, .kind = c->kind, .round = c->round };
		*list = b;
	}
	b->inos[b->n++] = c->ino;
	c->sent = c->begun = true;
	r->unsent--;
}

/* Those that were sent before (@again), or not. */
static void batch_some(struct mgr_recalls *r, struct recall_batch **list, u64 session, bool again,
		       u32 from)
{
	struct mgr_recall *c;
	u32 i;

	for (i = 0; i < MGR_RECALL_BUCKETS && r->unsent; i++)
		LIST_FOREACH(c, &r->bucket[(from + i) % MGR_RECALL_BUCKETS], link)
			if (!c->sent && c->again == again && (!session || c->session == session))
				batch_add(r, list, c);
}

/*
 * What was not sent of one session or (0) of all, and, of all, what was answered EAGAIN or got lost.
 * A client takes so many messages and no more: those that it answers EAGAIN for long are sent last,
 * and each time from another one on, so that they are in the way of nothing. (The list's first is
 * sent first, and what is added comes in front.)
 */
static void batch_unsent(struct mgr_recalls *r, struct recall_batch **list, u64 session)
{
	if (!session)
		batch_some(r, list, session, true, r->hand += 17);
	batch_some(r, list, session, false, 0);
}

/*
 * Until @c is over; NULL: it is begun with that. Of a settle that was sent, the next round. A RECALL may be waited for
 * by who wants a settle.
 */
static int wait_for(struct mgr_recalls *r, struct mgr_parked *p, struct mgr_recall *c, enum recall_kind kind,
		    u64 ino, const struct mgr_lease_holder *h, struct recall_batch **list)
{
	bool later = c && c->kind == SETTLE && c->begun;
	struct waiting *w = malloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	if (!c) {
		c = recall_new(r, kind, ino, h);
		if (!c) {
			free(w);
			return -ENOMEM;
		}
		batch_add(r, list, c);
	}
	w->p = p;
	LIST_INSERT_HEAD(later ? &c->later : &c->waiting, w, link);
	p->left++;
	return 0;
}

/*
 * Until the inode was settled, by a round that was not sent before now. A RECALL will do as well, whenever
 * it was sent: when the lease has been given up all is with the iods.
 */
static int wait_settled(struct mgr *m, struct mgr_parked *p, u64 ino, u64 but, struct recall_batch **list)
{
	struct mgr_lease_holder h = { .session = mgr_leases_writer(&m->leases, ino, but), .end = MGR_LEASE_NEVER,
				      .write = true };
	struct mgr_recalls *r = &m->recalls;
	int err;

	if (!h.session)
		return 0;		/* ended meanwhile */
	err = wait_for(r, p, recall_find(r, ino, h.session) ?: settle_find(r, ino, h.session), SETTLE, ino, &h,
		       list);
	if (!err)
		p->settled[p->nsettled++ % MGR_NOTED_MAX] = ino;
	return err;
}

/*
 * Until all but @but are out. One that takes no leases is never asked: then nobody is, and the request finds
 * that out.
 */
static int wait_alone(struct mgr *m, struct mgr_parked *p, const struct mgr_noted *noted, u64 but,
		      struct recall_batch **list)
{
	u64 ids[MGR_IN_MAX], ino = noted->ino;
	u32 i, n = min(mgr_opens_in(&m->opens, ino, but, noted->writers, ids, MGR_IN_MAX), MGR_IN_MAX);
	int err = 0;

	if (!mgr_yield_may(m, ino, but, noted->writers))
		return 0;
	for (i = 0; i < n && !err; i++) {
		struct mgr_lease_holder h = { .session = ids[i], .end = MGR_LEASE_NEVER };

		err = wait_for(&m->recalls, p, yield_find(&m->recalls, ino, ids[i]), YIELD, ino, &h, list);
	}
	return err;
}

static int bar(struct mgr_recalls *r, u64 ino, bool lined)
{
	struct mgr_bar *b = bar_find(r, ino);

	if (!b) {
		b = malloc(sizeof(*b));
		if (!b)
			return -ENOMEM;
		*b = (struct mgr_bar){ .ino = ino };
		LIST_INSERT_HEAD(&r->bar[ino % MGR_RECALL_BUCKETS], b, link);
		atomic_fetch_add(&r->barred, 1);
	}
	b->n++;
	b->lined += lined;
	return 0;
}

static void unbar(struct mgr_recalls *r, u64 ino, bool lined)
{
	struct mgr_bar *b = bar_find(r, ino);

	if (!b)
		return;
	b->lined -= lined;
	if (--b->n)
		return;
	LIST_REMOVE(b, link);
	free(b);
	atomic_fetch_sub(&r->barred, 1);
}

/* ---- without the lock ---- */

bool mgr_turn_barred(struct mgr *m, u64 ino, u64 session)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_bar *b;
	bool ret;

	pthread_mutex_lock(&r->lock);
	b = bar_find(r, ino);
	ret = (b && b->n > b->lined) || recall_find(r, ino, session);
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static void send_all(struct mgr *m, struct recall_batch *list)
{
	struct mgr_recalls *r = &m->recalls;
	struct recall_batch *b;
	int err;

	while ((b = list)) {
		list = b->next;
		err = b->kind == SETTLE ? r->settle(m, b->session, b->inos[0], b->round) :
		      b->kind == YIELD ? r->yield(m, b->session, b->inos[0], b->round) :
					 r->send(m, b->session, b->inos, b->n);
		if (err && b->kind != RECALL)
			mgr_round_told(m, b->session, b->inos[0], b->round, err);
		else if (err)
			mgr_recall_told(m, b->session, b->inos, b->n, err);
		free(b);
	}
}

static void resume_all(struct mgr *m, struct mgr_parked *ready)
{
	struct mgr_parked *p;

	while ((p = ready)) {
		ready = p->next;
		m->recalls.resume(m, p->call, p);
	}
}

void mgr_recall_answered(struct mgr *m, u64 session, const u64 *inos, u32 n, int err, u64 asked)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;
	struct recall_batch *list = NULL;
	struct mgr_recall *c;
	u32 i;

	pthread_mutex_lock(&r->lock);
	for (i = 0; i < n; i++) {
		c = recall_find(r, inos[i], session);
		if (!c || c->born > asked) {
			/* It has expired meanwhile, or there was none. */
			settle_drop(m, inos[i], session, &ready);
			continue;
		}
		if (err) {
			r->unsent += c->sent;
			c->sent = false;
			c->again = err == -EAGAIN;
			/* It may have become one before it was barred. */
			c->write |= mgr_leases_end(&m->leases, c->ino, session) == MGR_LEASE_NEVER;
			continue;
		}
		/* No new one was granted since: it is barred. */
		mgr_leases_drop(&m->leases, inos[i], session);
		recall_done(r, c, &ready);
		settle_drop(m, inos[i], session, &ready);
	}
	if (!err)
		batch_unsent(r, &list, session);
	pthread_mutex_unlock(&r->lock);
	send_all(m, list);
	resume_all(m, ready);
}

void mgr_recall_told(struct mgr *m, u64 session, const u64 *inos, u32 n, int err)
{
	mgr_recall_answered(m, session, inos, n, err, ~0ull);
}

/* Rounds have numbers that are their own, whatever they are of. */
static struct mgr_recall *round_find(struct mgr_recalls *r, u64 ino, u64 session, u64 round)
{
	struct mgr_recall *c;

	LIST_FOREACH(c, &r->bucket[ino % MGR_RECALL_BUCKETS], link)
		if (c->ino == ino && c->session == session && c->kind != RECALL && c->round == round)
			return c->begun ? c : NULL;
	return NULL;
}

void mgr_round_told(struct mgr *m, u64 session, u64 ino, u64 round, int err)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;
	struct recall_batch *list = NULL;
	struct mgr_recall *c;

	pthread_mutex_lock(&r->lock);
	c = round_find(r, ino, session, round);
	if (c && err) {
		r->unsent += c->sent;
		c->sent = false;
		c->again = err == -EAGAIN;
	} else if (c && c->kind == YIELD) {
		yield_end(m, c, &ready);
	} else if (c) {
		round_end(r, c, &ready);
	}
	/* It takes one more. */
	if (!err || err == -EAGAIN)
		batch_unsent(r, &list, session);
	pthread_mutex_unlock(&r->lock);
	send_all(m, list);
	resume_all(m, ready);
}

void mgr_settled(struct mgr_op *op, u64 ino, u64 round)
{
	mgr_round_told(op->m, mgr_op_session(op), ino, round, 0);
}

bool mgr_yield_due(struct mgr_op *op, u64 ino)
{
	struct mgr_recalls *r = &op->m->recalls;
	struct mgr_opens_view v;
	bool ret;

	mgr_opens_view(&op->m->opens, ino, mgr_op_session(op), &v);
	if (v.out || !atomic_load(&r->yields))
		return v.out;
	pthread_mutex_lock(&r->lock);
	ret = yield_find(r, ino, mgr_op_session(op));
	pthread_mutex_unlock(&r->lock);
	return ret;
}

void mgr_yield_came(struct mgr_op *op, u64 ino)
{
	struct mgr_recalls *r = &op->m->recalls;
	struct mgr_parked *ready = NULL;
	struct mgr_recall *c;

	if (!atomic_load(&r->yields))
		return;
	pthread_mutex_lock(&r->lock);
	c = yield_find(r, ino, mgr_op_session(op));
	if (c)
		yield_end(op->m, c, &ready);
	pthread_mutex_unlock(&r->lock);
	resume_all(op->m, ready);
}

void mgr_yield_anew(struct mgr_op *op, u64 ino)
{
	struct mgr_recalls *r = &op->m->recalls;
	struct recall_batch *list = NULL;
	struct mgr_recall *c;

	if (!atomic_load(&r->yields))
		return;
	pthread_mutex_lock(&r->lock);
	c = yield_find(r, ino, mgr_op_session(op));
	if (c && c->begun) {
		r->unsent += c->sent;
		c->sent = false;
		round_new(r, c);
		batch_add(r, &list, c);
	}
	pthread_mutex_unlock(&r->lock);
	send_all(op->m, list);
}

void mgr_yield_trim(struct mgr *m, u64 ino, u64 session)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;
	struct mgr_recall *c;

	if (!atomic_load(&r->yields))
		return;
	pthread_mutex_lock(&r->lock);
	c = yield_find(r, ino, session);
	if (c && !is_in(m, c))
		recall_end(r, c, &ready);
	pthread_mutex_unlock(&r->lock);
	resume_all(m, ready);
}

void mgr_settle_trim(struct mgr *m, u64 ino, u64 session)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;

	if (!atomic_load(&r->settles))
		return;
	pthread_mutex_lock(&r->lock);
	settle_drop(m, ino, session, &ready);
	pthread_mutex_unlock(&r->lock);
	resume_all(m, ready);
}

void mgr_draft_over(struct mgr_op *op, u64 ino, bool recalled)
{
	mgr_leases_draft(&op->m->leases, ino, mgr_op_session(op), false);
	if (recalled)
		mgr_recall_told(op->m, mgr_op_session(op), &ino, 1, 0);
}

static void park_free(struct mgr_recalls *r, struct mgr_parked *p, struct mgr_parked **ready)
{
	u32 i;

	line_leave(r, p, ready);
	for (i = 0; i < p->nnoted; i++)
		unbar(r, p->noted[i].ino, p->lined);
	free(p);
}

void mgr_recall_over(struct mgr *m, struct mgr_parked *p)
{
	struct mgr_parked *ready = NULL;

	pthread_mutex_lock(&m->recalls.lock);
	park_free(&m->recalls, p, &ready);
	pthread_mutex_unlock(&m->recalls.lock);
	resume_all(m, ready);
}

int mgr_recall_park(struct mgr *m, const struct mgr_op *op, u64 session, struct pvfs_call *call)
{
	struct mgr_lease_holder held[HOLDERS_MAX];
	struct mgr_parked *p = calloc(1, sizeof(*p));
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *first, *ready = NULL;
	struct recall_batch *list = NULL;
	u64 now = mgr_mono_ms();
	bool behind;
	u32 i, k, n;
	int err;

	if (!p)
		return -ENOMEM;
	p->call = call;
	p->session = session;
	p->lined = op->line;
	if (op->parked) {
		memcpy(p->settled, op->parked->settled, sizeof(p->settled));
		p->nsettled = op->parked->nsettled;
	}
	/* Ours, so that it does not begin again before we have noted all. */
	p->left = 1;
	pthread_mutex_lock(&r->lock);
	err = r->stop ? -EAGAIN : 0;
	first = op->line ? line_first(r, op->line) : NULL;
	behind = first && first != op->parked;
	for (i = 0; i < op->nnoted && !err; i++) {
		if (op->noted[i].settle) {
			err = wait_settled(m, p, op->noted[i].ino, session, &list);
			continue;
		}
		err = bar(r, op->noted[i].ino, op->line);
		if (err)
			break;
		p->noted[p->nnoted++] = op->noted[i];
		/* Who is behind asks for nothing yet. */
		if (behind || op->noted[i].line)
			continue;
		if (op->noted[i].yield)
			err = wait_alone(m, p, &op->noted[i], session, &list);
		n = mgr_leases_held(&m->leases, op->noted[i].ino, mgr_noted_exempt(&op->noted[i], session),
				    now, held, HOLDERS_MAX);
		for (k = 0; k < min(n, HOLDERS_MAX) && !err; k++)
			/* Who goes out has no lease any more; and who reads may do so, beside others. */
			if (!op->noted[i].yield || (!yield_find(r, op->noted[i].ino, held[k].session) &&
						    (!op->noted[i].writers || op->noted[i].change || held[k].kept)))
				err = wait_for(r, p, recall_find(r, op->noted[i].ino, held[k].session), RECALL,
					       op->noted[i].ino, &held[k], &list);
	}
	if (behind && !err) {
		p->behind = true;
		p->left++;
	}
	/* Without memory it waits for what it can; executed again, it comes back. */
	n = --p->left;
	if (err && !n) {
		park_free(r, p, &ready);
		p = NULL;
	} else if (op->line) {
		line_join(r, p, op->parked, op->line);
	}
	pthread_mutex_unlock(&r->lock);
	send_all(m, list);
	if (!p)
		return err;
	atomic_fetch_add_explicit(&r->parked, 1, memory_order_relaxed);
	/* From here on @p may be gone, unless nothing was left to wait for. */
	if (!n)
		r->resume(m, call, p);
	return 0;
}

/* ---- expiry, and what is sent again ---- */

/* It has had its time. Whoever does not answer is not believed to answer the next time. */
static void expire(struct mgr *m, struct mgr_recall *c, struct mgr_parked **ready)
{
	struct mgr_session *s = mgr_session_peek(m, c->session);

	mgr_leases_drop(&m->leases, c->ino, c->session);
	atomic_fetch_add_explicit(&m->recalls.expired, 1, memory_order_relaxed);
	/* That it is not yet done is an answer, too. */
	if (s && !c->again && atomic_exchange(&s->leases, false))
		pvfs_warn("session %llu of %s: does not answer a recall: it gets no leases any more",
			  (unsigned long long)s->id, s->host);
	if (s)
		mgr_session_put(s);
	recall_end(&m->recalls, c, ready);
}

void mgr_recall_tick(struct mgr *m, u64 now)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;
	struct mgr_recall *c, *next;
	struct recall_batch *list = NULL;
	u32 i;

	pthread_mutex_lock(&r->lock);
	for (i = 0; i < MGR_RECALL_BUCKETS && r->n; i++) {
		for (c = LIST_FIRST(&r->bucket[i]); c; c = next) {
			next = LIST_NEXT(c, link);
			if (c->kind == YIELD) {
				if (!is_in(m, c) || !mgr_takes_leases(m, c->session))
					recall_end(r, c, &ready);
				continue;
			}
			if (c->kind == SETTLE) {
				if (!mgr_leases_writes(&m->leases, c->ino, c->session))
					recall_end(r, c, &ready);
				continue;
			}
			if (c->end > now && c->end != MGR_LEASE_NEVER)
				continue;
			c->write |= c->end == MGR_LEASE_NEVER;
			/*
			 * Who looked for the bar before it was there may have got it for longer
			 * after we had looked how long it had it.
			 */
			c->end = mgr_leases_end(&m->leases, c->ino, c->session);
			if (c->end > now)
				continue;
			if (!c->write) {
				expire(m, c, &ready);
				continue;
			}
			/* Closed meanwhile: it may have answered EAGAIN all the time. */
			mgr_leases_drop(&m->leases, c->ino, c->session);
			recall_end(r, c, &ready);
		}
	}
	batch_unsent(r, &list, 0);
	pthread_mutex_unlock(&r->lock);
	send_all(m, list);
	resume_all(m, ready);
}

u32 mgr_recall_holders(struct mgr *m, u64 ino, u64 after, struct mgr_holder *ret, u32 room)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_recall *c;
	u32 n = 0;

	pthread_mutex_lock(&r->lock);
	LIST_FOREACH(c, &r->bucket[ino % MGR_RECALL_BUCKETS], link) {
		if (c->ino != ino || c->session <= after || c->kind == SETTLE)
			continue;
		if (n < room)
			ret[n] = (struct mgr_holder){ .session = c->session, .flags = PVFS_HD_RECALL };
		n++;
	}
	pthread_mutex_unlock(&r->lock);
	return n;
}

void mgr_recall_session_end(struct mgr *m, u64 session)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL;
	struct mgr_recall *c, *next;
	struct mgr_parked *p, *pnext;
	u32 i;

	mgr_leases_sweep(&m->leases, session);
	pthread_mutex_lock(&r->lock);
	for (i = 0; i < MGR_RECALL_BUCKETS && atomic_load(&r->lined); i++) {
		for (p = TAILQ_FIRST(&r->line[i]); p; p = pnext) {
			pnext = TAILQ_NEXT(p, place);
			if (p->session != session)
				continue;
			/* It is refused, whoever is before it. */
			line_leave(r, p, &ready);
			line_on(p, &ready);
		}
	}
	for (i = 0; i < MGR_RECALL_BUCKETS && r->n; i++) {
		for (c = LIST_FIRST(&r->bucket[i]); c; c = next) {
			next = LIST_NEXT(c, link);
			if (c->session == session)
				recall_end(r, c, &ready);
		}
	}
	pthread_mutex_unlock(&r->lock);
	resume_all(m, ready);
}

static void *recall_thread(void *arg)
{
	struct mgr *m = arg;
	struct mgr_recalls *r = &m->recalls;
	struct timespec until;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		if (!r->n) {
			pthread_cond_wait(&r->cond, &r->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += TICK_MS * 1000000l;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		while (!r->stop && !pthread_cond_timedwait(&r->cond, &r->lock, &until))
			;
		pthread_mutex_unlock(&r->lock);
		mgr_recall_tick(m, mgr_mono_ms());
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- its life ---- */

int mgr_recalls_start(struct mgr *m)
{
	struct mgr_recalls *r = &m->recalls;
	int err;

	err = pthread_create(&r->thread, NULL, recall_thread, m);
	r->running = !err;
	return -err;
}

void mgr_recalls_stop(struct mgr *m)
{
	struct mgr_recalls *r = &m->recalls;
	struct mgr_parked *ready = NULL, *p;
	struct mgr_recall *c, *next;
	u32 i;

	if (!r->running)
		return;
	/* What was sent and is not answered ends with its connection, and finds nothing here. */
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->cond);
	for (i = 0; i < MGR_RECALL_BUCKETS; i++) {
		for (c = LIST_FIRST(&r->bucket[i]); c; c = next) {
			next = LIST_NEXT(c, link);
			recall_end(r, c, &ready);
		}
		TAILQ_FOREACH(p, &r->line[i], place)
			line_on(p, &ready);
	}
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	r->running = false;
	/* The client asks the next manager. */
	while ((p = ready)) {
		ready = p->next;
		pvfs_call_reply(p->call, -EAGAIN, NULL, 0, NULL);
		mgr_recall_over(m, p);
	}
}

void mgr_recalls_init(struct mgr_recalls *r, u64 round)
{
	u32 i;

	pthread_mutex_init(&r->lock, NULL);
	mgr_cond_init(&r->cond);
	r->round = round;
	r->send = mgr_send_recall;
	r->settle = mgr_send_settle;
	r->yield = mgr_send_yield;
	r->resume = mgr_offload;
	for (i = 0; i < MGR_RECALL_BUCKETS; i++) {
		LIST_INIT(&r->bucket[i]);
		LIST_INIT(&r->bar[i]);
		TAILQ_INIT(&r->line[i]);
	}
}

void mgr_recalls_fini(struct mgr_recalls *r)
{
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->cond);
}
