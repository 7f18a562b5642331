// SPDX-License-Identifier: GPL-2.0
/*
 * locks.c - the lock table; see locks.h, and "Locks" in docs/protocol.md.
 *
 * One mutex protects all of it: a search for deadlocks must see every file and every session at one
 * moment, and what is done under it takes microseconds. No database and no network under it:
 * clients are told by threads of their own.
 *
 * Waiting is fair: a call is let in when nothing that is held is in its way, and no call before it
 * that wants what it wants. Two exceptions, or fairness would make deadlocks of its own: who holds
 * something of the file already does not queue behind those who may be waiting for just that; and
 * where waiting in order closes a circle, the one that waits only for its turn is let through
 * (barge).
 */
#include "mgr.h"
#include <stdlib.h>

#define DEADLOCK_DEPTH 256u		/* longer chains of waiters are not followed */
#define DEADLOCK_STEPS 100000u	/* nor more of them than this, as all else waits meanwhile */
#define TELL_MS 1000u	/* for a client's answer to LOCK_GRANT; it asks by itself too */

static void count(atomic_ullong *c)
{
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* ---- finding and making; the lock is held in all that follows ---- */

static struct mgr_lock_file *file_find(struct mgr_locks *l, u64 ino)
{
	struct mgr_lock_file *f;

	LIST_FOREACH(f, &l->bucket[ino % MGR_LOCK_BUCKETS], link)
		if (f->ino == ino)
			return f;
	return NULL;
}

static struct mgr_lock_file *file_get(struct mgr_locks *l, u64 ino)
{
	struct mgr_lock_file *f = file_find(l, ino);

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->ino = ino;
	TAILQ_INIT(&f->waits);
	LIST_INSERT_HEAD(&l->bucket[ino % MGR_LOCK_BUCKETS], f, link);
	return f;
}

static void file_trim(struct mgr_lock_file *f)
{
	if (!f || LIST_FIRST(&f->holders) || TAILQ_FIRST(&f->waits))
		return;
	LIST_REMOVE(f, link);
	free(f);
}

static struct mgr_lock_client *client_find(struct mgr_locks *l, u64 session)
{
	struct mgr_lock_client *c;

	LIST_FOREACH(c, &l->client[session % MGR_LOCK_CLIENTS], link)
		if (c->session == session)
			return c;
	return NULL;
}

static struct mgr_lock_client *client_get(struct mgr_locks *l, u64 session)
{
	struct mgr_lock_client *c = client_find(l, session);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->session = session;
	LIST_INSERT_HEAD(&l->client[session % MGR_LOCK_CLIENTS], c, link);
	return c;
}

static void client_trim(struct mgr_lock_client *c)
{
	if (!c || LIST_FIRST(&c->holders) || LIST_FIRST(&c->waits))
		return;
	LIST_REMOVE(c, link);
	free(c);
}

static struct mgr_lock_holder *holder_find(struct mgr_lock_file *f, struct mgr_lock_client *c,
					   u8 kind, u64 owner)
{
	struct mgr_lock_holder *h;

	if (!f || !c)
		return NULL;
	LIST_FOREACH(h, &f->holders, in_file)
		if (h->c == c && h->kind == kind && h->owner == owner)
			return h;
	return NULL;
}

static struct mgr_lock_holder *holder_get(struct mgr_lock_file *f, struct mgr_lock_client *c,
					  u8 kind, u64 owner)
{
	struct mgr_lock_holder *h = holder_find(f, c, kind, owner);

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->f = f;
	h->c = c;
	h->kind = kind;
	h->owner = owner;
	LIST_INSERT_HEAD(&f->holders, h, in_file);
	LIST_INSERT_HEAD(&c->holders, h, in_client);
	return h;
}

static void holder_trim(struct mgr_lock_holder *h)
{
	if (!h || h->set.n)
		return;
	LIST_REMOVE(h, in_file);
	LIST_REMOVE(h, in_client);
	pvfs_lockset_free(&h->set);
	free(h);
}

static struct mgr_lock_wait *wait_find(struct mgr_lock_client *c, u64 ticket)
{
	struct mgr_lock_wait *w;

	if (!c || !ticket)
		return NULL;
	LIST_FOREACH(w, &c->waits, in_client)
		if (w->want.ticket == ticket)
			return w;
	return NULL;
}

static void wait_drop(struct mgr_locks *l, struct mgr_lock_wait *w)
{
	if (!w)
		return;
	TAILQ_REMOVE(&w->f->waits, w, in_file);
	LIST_REMOVE(w, in_client);
	w->c->count--;
	l->count--;
	free(w);
}

/* The owner's locks change; the limits were looked at. */
static int holder_set(struct mgr_locks *l, struct mgr_lock_holder *h,
		      const struct pvfs_lockrange *want)
{
	u32 before = h->set.n;
	int err = pvfs_lockset_set(&h->set, want);

	h->c->count += h->set.n - before;
	l->count += h->set.n - before;
	return err ? -ENOLCK : 0;
}

static bool room(const struct mgr_locks *l, const struct mgr_lock_client *c)
{
	/* A range in the middle of another makes two more. */
	return l->count + 2 <= l->max && c->count + 2 <= l->max_session;
}

/* ---- conflicts ---- */

/* RECORD and OFD are in each other's way, and so of one class. */
static u8 class_of(u8 kind)
{
	return kind == PVFS_LK_OFD ? PVFS_LK_RECORD : kind;
}

/* Whose lock is it that wants something: may be one that exists nowhere yet. */
struct asker {
	const struct mgr_lock_client *c;
	u64 owner;
	u8 kind;
	const struct pvfs_lockrange *want;
};

static struct asker asker_of(const struct mgr_lock_wait *w)
{
	return (struct asker){ .c = w->c, .owner = w->owner, .kind = w->kind, .want = &w->want };
}

/* A session's truncations and appends are its own business. */
static bool same_owner(const struct asker *a, const struct mgr_lock_client *c, u8 kind, u64 owner)
{
	return c == a->c && kind == a->kind && (owner == a->owner || kind == PVFS_LK_APPEND);
}

static const struct pvfs_lockrange *in_the_way(const struct asker *a,
					       const struct mgr_lock_holder *h)
{
	if (class_of(a->kind) != class_of(h->kind) || same_owner(a, h->c, h->kind, h->owner))
		return NULL;
	return pvfs_lockset_conflict(&h->set, a->want->start, a->want->end, a->want->type);
}

static bool held_conflict(const struct mgr_lock_file *f, const struct asker *a)
{
	struct mgr_lock_holder *h;

	LIST_FOREACH(h, &f->holders, in_file)
		if (in_the_way(a, h))
			return true;
	return false;
}

static bool waits_conflict(const struct asker *a, const struct mgr_lock_wait *w)
{
	return class_of(a->kind) == class_of(w->kind) && !same_owner(a, w->c, w->kind, w->owner) &&
	       w->want.start <= a->want->end && a->want->start <= w->want.end &&
	       (w->want.type == PVFS_LK_WRITE || a->want->type == PVFS_LK_WRITE);
}

/* Is it somebody else's turn? Looks at those before @until, NULL: at all. */
static bool queue_conflict(const struct mgr_lock_file *f, const struct asker *a,
			   const struct mgr_lock_wait *until)
{
	struct mgr_lock_wait *w;

	TAILQ_FOREACH(w, &f->waits, in_file) {
		if (w == until)
			break;
		if (waits_conflict(a, w))
			return true;
	}
	return false;
}

/* ---- granting ---- */

static void tell(struct mgr_locks *l, u64 session, u64 ticket)
{
	struct mgr_lock_grant *g = malloc(sizeof(*g));

	if (!g)
		return;		/* it asks by itself */
	g->session = session;
	g->ticket = ticket;
	TAILQ_INSERT_TAIL(&l->grants, g, link);
	pthread_cond_signal(&l->cond);
}

/* Lets in whoever can be, in their order; again while that may have made room (a downgrade). */
static void scan(struct mgr_locks *l, struct mgr_lock_file *f)
{
	struct mgr_lock_wait *w, *next;
	struct mgr_lock_holder *h;
	struct asker a;
	bool again;

	do {
		again = false;
		for (w = TAILQ_FIRST(&f->waits); w; w = next) {
			next = TAILQ_NEXT(w, in_file);
			a = asker_of(w);
			if (held_conflict(f, &a) || (!w->barge && queue_conflict(f, &a, w)))
				continue;
			h = holder_get(f, w->c, w->kind, w->owner);
			if (!h)
				continue;	/* its next question tries again */
			again |= h->set.n > 0;
			if (holder_set(l, h, &w->want)) {
				holder_trim(h);
				continue;
			}
			tell(l, w->c->session, w->want.ticket);
			count(&l->granted);
			wait_drop(l, w);
		}
	} while (again);
}

/* ---- deadlocks ---- */

/*
 * A search through who waits for whom. @fair: waiting for one's turn counts too, of owners of any
 * kind; what it finds is let through. Else only what is held counts, and only by processes, which
 * are the only owners of which one knows that they can't go on.
 */
struct lock_search {
	struct mgr_locks *l;
	struct asker who;
	bool fair;
	u32 steps;
	struct mgr_lock_file *rescan[DEADLOCK_DEPTH];
	u32 nrescan;
};

static bool search_wait(struct lock_search *s, const struct mgr_lock_file *f, const struct asker *a,
			const struct mgr_lock_wait *until, u32 depth);

/* Does this owner wait, in the end, for the one that we search for? */
static bool search_owner(struct lock_search *s, struct mgr_lock_client *c, u8 kind, u64 owner, u32 depth)
{
	struct mgr_lock_wait *w;
	struct asker a;

	if (!s->fair && kind != PVFS_LK_RECORD)
		return false;
	if (c == s->who.c && kind == s->who.kind && owner == s->who.owner)
		return true;
	LIST_FOREACH(w, &c->waits, in_client) {
		if (++s->steps > DEADLOCK_STEPS)
			return false;
		if (w->kind != kind || w->owner != owner || w->mark == s->l->marks)
			continue;
		w->mark = s->l->marks;
		a = asker_of(w);
		if (!search_wait(s, w->f, &a, w, depth + 1))
			continue;
		if (s->fair && !held_conflict(w->f, &a)) {
			w->barge = true;
			s->rescan[s->nrescan++] = w->f;
		}
		return true;
	}
	return false;
}

static bool search_wait(struct lock_search *s, const struct mgr_lock_file *f, const struct asker *a,
			const struct mgr_lock_wait *until, u32 depth)
{
	struct mgr_lock_holder *h;
	struct mgr_lock_wait *w;

	if (depth >= DEADLOCK_DEPTH)
		return false;
	LIST_FOREACH(h, &f->holders, in_file) {
		if (++s->steps > DEADLOCK_STEPS)
			return false;
		if (in_the_way(a, h) && search_owner(s, h->c, h->kind, h->owner, depth))
			return true;
	}
	if (!s->fair)
		return false;
	TAILQ_FOREACH(w, &f->waits, in_file) {
		if (w == until || ++s->steps > DEADLOCK_STEPS)
			break;
		if (waits_conflict(a, w) && search_owner(s, w->c, w->kind, w->owner, depth))
			return true;
	}
	return false;
}

/* Would the asker wait for itself? @until: its place in the queue, NULL: the end. */
static bool deadlock(struct mgr_locks *l, struct mgr_lock_file *f, const struct asker *a,
		     struct mgr_lock_wait *until)
{
	struct lock_search s = { .l = l, .who = *a };

	if (a->kind != PVFS_LK_RECORD)
		return false;
	l->marks++;
	return search_wait(&s, f, a, until, 0);
}

/* @w has queued: if waiting in order closes a circle, out of it with those who wait for no lock. */
static void break_circle(struct mgr_locks *l, struct mgr_lock_wait *w)
{
	struct asker a = asker_of(w);
	struct lock_search s = { .l = l, .who = a, .fair = true };
	u32 i;

	l->marks++;
	w->mark = l->marks;
	if (!search_wait(&s, w->f, &a, w, 0))
		return;
	if (!held_conflict(w->f, &a)) {
		w->barge = true;
		scan(l, w->f);		/* the files of the others stay: they have waiters */
		return;
	}
	/* What a scan lets in leaves its file with a holder: none of them goes away. */
	for (i = 0; i < s.nrescan; i++)
		scan(l, s.rescan[i]);
}

/* ---- LOCK ---- */

/* It can't be had now. */
static int enqueue(struct mgr_locks *l, struct mgr_lock_file *f, struct mgr_lock_client *c,
		   const struct asker *a, struct mgr_lock_holder *h, u8 *state)
{
	struct pvfs_lockrange none = *a->want;
	struct mgr_lock_wait *w;

	if (!room(l, c)) {
		count(&l->refused);
		return -ENOLCK;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOLCK;
	w->f = f;
	w->c = c;
	w->owner = a->owner;
	w->kind = a->kind;
	w->want = *a->want;
	TAILQ_INSERT_TAIL(&f->waits, w, in_file);
	LIST_INSERT_HEAD(&c->waits, w, in_client);
	c->count++;
	l->count++;
	count(&l->queued);
	if (h && a->kind == PVFS_LK_FLOCK) {
		/*
		 * flock(2) gives up the old lock before it waits: two that upgrade don't block each
		 * other.
		 */
		none.type = PVFS_LK_UNLOCK;
		holder_set(l, h, &none);
		holder_trim(h);
		scan(l, f);
	}
	/* That may have let it in at once. */
	*state = wait_find(c, none.ticket) ? PVFS_LK_QUEUED : PVFS_LK_GRANTED;
	if (*state == PVFS_LK_QUEUED) {
		break_circle(l, w);
		*state = wait_find(c, none.ticket) ? PVFS_LK_QUEUED : PVFS_LK_GRANTED;
	}
	return 0;
}

static bool wait_is(const struct mgr_lock_wait *w, const struct mgr_lock_file *f,
		    const struct asker *a)
{
	return w->f == f && w->kind == a->kind && w->owner == a->owner &&
	       w->want.type == a->want->type && w->want.start == a->want->start &&
	       w->want.end == a->want->end;
}

static int grant(struct mgr_locks *l, struct mgr_lock_file *f, struct mgr_lock_client *c,
		 const struct asker *a, u8 *state)
{
	struct mgr_lock_holder *h;
	int err = -ENOLCK;

	if (!room(l, c)) {
		count(&l->refused);
		return err;
	}
	h = holder_get(f, c, a->kind, a->owner);
	if (h)
		err = holder_set(l, h, a->want);
	holder_trim(h);
	if (err)
		return err;
	wait_drop(l, wait_find(c, a->want->ticket));
	count(&l->granted);
	*state = PVFS_LK_GRANTED;
	/* If it was a downgrade, others may come in. */
	scan(l, f);
	return 0;
}

static int set_locked(struct mgr_locks *l, struct mgr_lock_file *f, struct mgr_lock_client *c,
		      const struct pvfs_lock_req *req, bool grace, bool reclaims, u8 *state)
{
	struct pvfs_lockrange want = {
		.start = req->start, .end = req->end, .type = req->type, .pid = req->pid,
		.ticket = req->ticket,
	};
	struct asker a = { .c = c, .owner = req->owner, .kind = req->kind, .want = &want };
	struct mgr_lock_holder *h = holder_find(f, c, req->kind, req->owner);
	struct mgr_lock_wait *w = wait_find(c, req->ticket);
	int err = 0;

	if (w && !wait_is(w, f, &a))
		return -EINVAL;
	*state = PVFS_LK_GRANTED;
	if (req->type == PVFS_LK_UNLOCK) {
		if (!h)
			return 0;
		err = holder_set(l, h, &want);
		holder_trim(h);
		if (!err)
			scan(l, f);
		return err;
	}
	if (h && pvfs_lockset_covers(&h->set, req->start, req->end, req->type, false)) {
		wait_drop(l, w);
		return 0;
	}
	if (req->flags & PVFS_LK_RECLAIM) {
		if (!grace || !reclaims)
			return -ENOLCK;
		if (held_conflict(f, &a)) {
			*state = PVFS_LK_CONFLICT;
			return 0;
		}
		return grant(l, f, c, &a, state);
	}
	if (grace) {
		*state = PVFS_LK_GRACE;
		return 0;
	}
	if (!held_conflict(f, &a)) {
		if (h || !(req->flags & PVFS_LK_WAIT) || (w && w->barge) ||
		    !queue_conflict(f, &a, w))
			return grant(l, f, c, &a, state);
	} else if (!(req->flags & PVFS_LK_WAIT)) {
		wait_drop(l, w);
		*state = PVFS_LK_CONFLICT;
		return 0;
	} else if (deadlock(l, f, &a, w)) {
		wait_drop(l, w);
		count(&l->deadlocks);
		*state = PVFS_LK_DEADLOCK;
		return 0;
	}
	*state = PVFS_LK_QUEUED;
	return w ? 0 : enqueue(l, f, c, &a, h, state);
}

int mgr_locks_set(struct mgr_locks *l, struct mgr_session *s, const struct pvfs_lock_req *req,
		  bool grace, bool reclaims, u8 *state)
{
	bool unlock = req->type == PVFS_LK_UNLOCK;
	struct mgr_lock_client *c;
	struct mgr_lock_file *f;
	int err = -ENOLCK;

	pthread_mutex_lock(&l->lock);
	/* The sweep takes the lock after @dead was set: it finds this one, or we see @dead. */
	if (atomic_load(&s->dead)) {
		pthread_mutex_unlock(&l->lock);
		return -ESTALE;
	}
	f = unlock ? file_find(l, req->fid.ino) : file_get(l, req->fid.ino);
	c = unlock ? client_find(l, s->id) : client_get(l, s->id);
	if (f && c) {
		err = set_locked(l, f, c, req, grace, reclaims, state);
	} else if (unlock) {
		*state = PVFS_LK_GRANTED;
		err = 0;
	}
	file_trim(f);
	client_trim(c);
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* ---- truncation ---- */

/* Owner 0 is the mgr's own: clients count from 1. */
static struct pvfs_lock_req truncation(const struct pvfs_fid *fid, u8 type)
{
	return (struct pvfs_lock_req){
		.fid = *fid, .kind = PVFS_LK_APPEND, .type = type, .end = PVFS_FILE_MAX,
	};
}

int mgr_locks_truncate_begin(struct mgr_locks *l, struct mgr_session *s, const struct pvfs_fid *fid)
{
	struct pvfs_lock_req req = truncation(fid, PVFS_LK_WRITE);
	u8 state;
	int err = mgr_locks_set(l, s, &req, false, false, &state);

	return err ?: state == PVFS_LK_GRANTED ? 0 : -EAGAIN;
}

void mgr_locks_truncate_end(struct mgr_locks *l, struct mgr_session *s, const struct pvfs_fid *fid)
{
	struct pvfs_lock_req req = truncation(fid, PVFS_LK_UNLOCK);
	u8 state;

	mgr_locks_set(l, s, &req, false, false, &state);
}

/* ---- the others ---- */

void mgr_locks_get(struct mgr_locks *l, u64 session, const struct pvfs_getlk_req *req,
		   struct pvfs_getlk_rep *rep)
{
	struct pvfs_lockrange want = { .start = req->start, .end = req->end, .type = req->type };
	struct asker a = { .owner = req->owner, .kind = req->kind, .want = &want };
	const struct pvfs_lockrange *r;
	struct mgr_lock_holder *h;
	struct mgr_lock_file *f;

	memset(rep, 0, sizeof(*rep));
	pthread_mutex_lock(&l->lock);
	f = file_find(l, req->fid.ino);
	a.c = client_find(l, session);
	if (f) {
		LIST_FOREACH(h, &f->holders, in_file) {
			r = in_the_way(&a, h);
			if (!r || (rep->type != PVFS_LK_UNLOCK && rep->start <= r->start))
				continue;
			*rep = (struct pvfs_getlk_rep){
				.type = r->type, .kind = h->kind, .own = h->c == a.c, .pid = r->pid,
				.start = r->start, .end = r->end,
			};
		}
	}
	pthread_mutex_unlock(&l->lock);
}

bool mgr_locks_cancel(struct mgr_locks *l, u64 session, const struct pvfs_lock_cancel_req *req)
{
	struct mgr_lock_client *c;
	struct mgr_lock_holder *h;
	struct mgr_lock_file *f;
	struct mgr_lock_wait *w;
	bool granted = false;
	u32 before;

	pthread_mutex_lock(&l->lock);
	f = file_find(l, req->fid.ino);
	c = client_find(l, session);
	w = wait_find(c, req->ticket);
	h = holder_find(f, c, req->kind, req->owner);
	if (w && w->f == f) {
		wait_drop(l, w);
		count(&l->cancelled);
		scan(l, f);
	} else if (!w && h && (req->flags & PVFS_LK_KEEP)) {
		granted = pvfs_lockset_covers(&h->set, req->start, req->end, req->type, false);
	} else if (!w && h) {
		before = h->set.n;
		granted = pvfs_lockset_drop_ticket(&h->set, req->start, req->end, req->ticket);
		c->count += h->set.n - before;
		l->count += h->set.n - before;
		holder_trim(h);
		scan(l, f);
	}
	file_trim(f);
	client_trim(c);
	pthread_mutex_unlock(&l->lock);
	return granted;
}

void mgr_locks_sweep(struct mgr_locks *l, u64 session)
{
	struct mgr_lock_holder *h, *hnext;
	struct mgr_lock_wait *w, *next;
	struct mgr_lock_client *c;
	struct mgr_lock_file *f;

	pthread_mutex_lock(&l->lock);
	c = client_find(l, session);
	if (!c)
		goto out;
	/*
	 * All its waiters of a file go before others are let in there, or it might be one of them.
	 */
	while ((w = LIST_FIRST(&c->waits))) {
		f = w->f;
		for (w = TAILQ_FIRST(&f->waits); w; w = next) {
			next = TAILQ_NEXT(w, in_file);
			if (w->c == c)
				wait_drop(l, w);
		}
		scan(l, f);
		file_trim(f);
	}
	/* Without waiters it gets no new ones meanwhile. */
	for (h = LIST_FIRST(&c->holders); h; h = hnext) {
		hnext = LIST_NEXT(h, in_client);
		f = h->f;
		l->count -= h->set.n;
		h->set.n = 0;
		holder_trim(h);
		scan(l, f);
		file_trim(f);
	}
	client_trim(c);
out:
	pthread_mutex_unlock(&l->lock);
}

/* ---- telling the clients ---- */

u32 mgr_locks_grants(struct mgr_locks *l, u64 *session, u64 *tickets, u32 max, bool wait)
{
	struct mgr_lock_grant *g, *next;
	u32 n = 0;

	pthread_mutex_lock(&l->lock);
	while (wait && !l->stop && !TAILQ_FIRST(&l->grants))
		pthread_cond_wait(&l->cond, &l->lock);
	for (g = l->stop ? NULL : TAILQ_FIRST(&l->grants); g && n < max; g = next) {
		next = TAILQ_NEXT(g, link);
		if (!n)
			*session = g->session;
		if (g->session != *session)
			continue;
		tickets[n++] = g->ticket;
		TAILQ_REMOVE(&l->grants, g, link);
		free(g);
	}
	pthread_mutex_unlock(&l->lock);
	return n;
}

static void *notifier(void *arg)
{
	u8 body[8 + 8 * PVFS_LK_TICKETS_MAX], raw[8 * PVFS_LK_TICKETS_MAX], rep[64];
	u64 session, tickets[PVFS_LK_TICKETS_MAX];
	struct pvfs_lock_grant_req req;
	struct mgr_locks *l = arg;
	u32 i, n, len;
	int blen;

	while ((n = mgr_locks_grants(l, &session, tickets, ARRAY_SIZE(tickets), true))) {
		for (i = 0; i < n; i++)
			put_unaligned_le64(tickets[i], raw + 8 * i);
		req.tickets = (struct pvfs_str){ .p = raw, .len = 8 * n };
		blen = pvfs_lock_grant_req_encode(&req, body, sizeof(body));
		/* If it does not come through: the client asks every few seconds. */
		if (blen > 0 && !pvfs_server_callback(l->server, session, PVFS_OP_LOCK_GRANT, body,
						      blen, rep, sizeof(rep), &len, TELL_MS))
			atomic_fetch_add_explicit(&l->told, n, memory_order_relaxed);
	}
	return NULL;
}

int mgr_locks_start(struct mgr_locks *l, struct pvfs_server *server)
{
	int err;

	l->server = server;
	for (l->nnotifiers = 0; l->nnotifiers < MGR_LOCK_NOTIFIERS; l->nnotifiers++) {
		err = pthread_create(&l->notifier[l->nnotifiers], NULL, notifier, l);
		if (err) {
			mgr_locks_stop(l);
			return -err;
		}
	}
	return 0;
}

void mgr_locks_stop(struct mgr_locks *l)
{
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->cond);
	pthread_mutex_unlock(&l->lock);
	while (l->nnotifiers)
		pthread_join(l->notifier[--l->nnotifiers], NULL);
}

/* ---- start and end ---- */

int mgr_locks_init(struct mgr_locks *l, u32 max, u32 max_session)
{
	l->bucket = calloc(MGR_LOCK_BUCKETS, sizeof(*l->bucket));
	if (!l->bucket)
		return -ENOMEM;
	l->max = max;
	l->max_session = max_session;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->cond, NULL);
	TAILQ_INIT(&l->grants);
	return 0;
}

void mgr_locks_fini(struct mgr_locks *l)
{
	struct mgr_lock_client *c;
	struct mgr_lock_grant *g;
	u32 i;

	if (!l->bucket)
		return;
	for (i = 0; i < MGR_LOCK_CLIENTS; i++)
		while ((c = LIST_FIRST(&l->client[i])))
			mgr_locks_sweep(l, c->session);
	while ((g = TAILQ_FIRST(&l->grants))) {
		TAILQ_REMOVE(&l->grants, g, link);
		free(g);
	}
	free(l->bucket);
	l->bucket = NULL;
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->cond);
}
