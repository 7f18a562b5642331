// SPDX-License-Identifier: GPL-2.0
/*
 * opens.c - who has which file open; see opens.h. A hash table with striped locks; nothing here
 * touches the database or the network, so a stripe's lock may be taken inside a transaction.
 */
#include "mgr.h"
#include <stdlib.h>
#include <time.h>

#define OPEN_MODE (PVFS_O_READ | PVFS_O_WRITE)
#define SWEEP_BATCH 64u

/* Which of mgr_open.n[] an open with these flags counts in; opening to execute is reading. */
static u32 open_class(u32 flags)
{
	return (flags & OPEN_MODE) | (flags & PVFS_O_EXEC ? PVFS_O_READ : 0);
}

static u32 open_writes(const struct mgr_open *o)
{
	return o->n[PVFS_O_WRITE] + o->n[PVFS_O_READ | PVFS_O_WRITE];
}

static bool open_empty(const struct mgr_open *o)
{
	return !(o->n[0] | o->n[1] | o->n[2] | o->n[3]);
}

static u32 bucket_of(u64 ino)
{
	return (ino * 0x9e3779b97f4a7c15ull) >> 50 & (MGR_OPEN_BUCKETS - 1);
}

static u32 stripe_of(u64 ino)
{
	return bucket_of(ino) % MGR_OPEN_STRIPES;
}

int mgr_opens_init(struct mgr_opens *o)
{
	unsigned int i;

	o->bucket = calloc(MGR_OPEN_BUCKETS, sizeof(struct mgr_ofile *));
	if (!o->bucket)
		return -ENOMEM;
	for (i = 0; i < MGR_OPEN_STRIPES; i++) {
		pthread_mutex_init(&o->stripe[i].lock, NULL);
		mgr_cond_init(&o->stripe[i].cond);
	}
	mgr_helds_init(&o->of);
	atomic_init(&o->files, 0);
	return 0;
}

/* Stripe lock held. */
static void open_free(struct mgr_opens *o, struct mgr_ofile *f, struct mgr_open *p)
{
	struct mgr_open **pp;

	for (pp = &f->opens; *pp != p; pp = &(*pp)->next)
		;
	*pp = p->next;
	mgr_held_del(&o->of, &p->held, p->session);
	free(p);
}

static void ofile_free(struct mgr_opens *o, struct mgr_ofile *f)
{
	while (f->opens)
		open_free(o, f, f->opens);
	free(f);
}

void mgr_opens_fini(struct mgr_opens *o)
{
	struct mgr_ofile *f, *next;
	unsigned int i;

	if (!o->bucket)
		return;
	for (i = 0; i < MGR_OPEN_BUCKETS; i++) {
		for (f = o->bucket[i]; f; f = next) {
			next = f->next;
			ofile_free(o, f);
		}
	}
	free(o->bucket);
	o->bucket = NULL;
	mgr_helds_fini(&o->of);
	for (i = 0; i < MGR_OPEN_STRIPES; i++) {
		pthread_mutex_destroy(&o->stripe[i].lock);
		pthread_cond_destroy(&o->stripe[i].cond);
	}
}

/* Stripe lock held. */
static struct mgr_ofile *ofile_find(struct mgr_opens *o, u64 ino)
{
	struct mgr_ofile *f;

	for (f = o->bucket[bucket_of(ino)]; f; f = f->next)
		if (f->ino == ino)
			return f;
	return NULL;
}

/* Stripe lock held. */
static void untrack(struct mgr_opens *o, struct mgr_ofile *f)
{
	f->tracked = false;
	f->doubt = atomic_fetch_add_explicit(&o->doubts, 1, memory_order_relaxed) + 1;
}

/* Stripe lock held. */
static struct mgr_ofile *ofile_get(struct mgr_opens *o, u64 ino)
{
	struct mgr_ofile *f = ofile_find(o, ino), **head = &o->bucket[bucket_of(ino)];

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->ino = ino;
	untrack(o, f);
	f->next = *head;
	*head = f;
	atomic_fetch_add_explicit(&o->files, 1, memory_order_relaxed);
	return f;
}

/* Stripe lock held; frees @f when nothing needs it any more. */
static void ofile_trim(struct mgr_opens *o, struct mgr_ofile *f)
{
	struct mgr_ofile **pp;

	if (f->opens || f->users)
		return;
	for (pp = &o->bucket[bucket_of(f->ino)]; *pp != f; pp = &(*pp)->next)
		;
	*pp = f->next;
	free(f);
	atomic_fetch_sub_explicit(&o->files, 1, memory_order_relaxed);
}

static struct mgr_open *open_find(struct mgr_ofile *f, u64 session)
{
	struct mgr_open *p;

	for (p = f->opens; p; p = p->next)
		if (p->session == session)
			return p;
	return NULL;
}

static pthread_mutex_t *stripe_lock(struct mgr_opens *o, u64 ino)
{
	pthread_mutex_t *lock = &o->stripe[stripe_of(ino)].lock;

	pthread_mutex_lock(lock);
	return lock;
}

/* What a session has open of a file, if anything, in *@ret; *@f: of whom, or NULL. Return: the stripe's lock, held. */
static pthread_mutex_t *open_lock(struct mgr_opens *o, u64 ino, u64 session, struct mgr_ofile **f,
				  struct mgr_open **ret)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);

	*f = ofile_find(o, ino);
	*ret = *f ? open_find(*f, session) : NULL;
	return lock;
}

int mgr_opens_add(struct mgr_opens *o, struct mgr_session *s, u64 ino, u32 flags, u32 count,
		  bool set)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	u32 class = open_class(flags);
	struct mgr_ofile *f = NULL;
	struct mgr_open *p;
	int err = -ENOMEM;

	if (atomic_load(&s->dead)) {
		err = -ESTALE;
		goto out;
	}
	f = ofile_get(o, ino);
	if (!f)
		goto out;
	p = open_find(f, s->id);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			goto out;
		p->session = s->id;
		/*
		 * The sweep of a dead session looks at its list after @dead was set: it finds this
		 * open, or @dead is seen here.
		 */
		err = mgr_held_add(&o->of, &p->held, s->id, ino, &s->dead);
		if (err) {
			free(p);
			goto out;
		}
		p->next = f->opens;
		f->opens = p;
	}
	if (set) {
		p->n[class] = count;
		if (!p->seq)
			p->out = flags & PVFS_O_OUT;
	} else {
		p->n[class] += count;
	}
	if (open_empty(p))
		open_free(o, f, p);
	err = 0;
out:
	if (f)
		ofile_trim(o, f);
	pthread_mutex_unlock(lock);
	return err;
}

void mgr_opens_reclaimed(struct mgr_opens *o, u64 session, u64 ino)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);

	if (p)
		p->reclaimed = true;
	pthread_mutex_unlock(lock);
}

/* Stripe lock held. Return: the session's last open of an orphan went. */
static bool open_drop(struct mgr_opens *o, struct mgr_ofile *f, struct mgr_open *p, u32 flags)
{
	bool released = false;

	if (p->n[open_class(flags)])
		p->n[open_class(flags)]--;
	if (open_empty(p)) {
		released = f->orphan;
		open_free(o, f, p);
	}
	ofile_trim(o, f);
	return released;
}

bool mgr_opens_del(struct mgr_opens *o, u64 session, u64 ino, u32 flags)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	bool released = false;

	if (p)
		released = open_drop(o, f, p, flags);
	pthread_mutex_unlock(lock);
	return released;
}

/* Stripe lock held. */
static void merge(struct mgr_ofile *f, u64 end, const struct pvfs_ts *wtime)
{
	struct timespec now;
	u64 ns;

	if (end <= f->end && !pvfs_ts_after(wtime, &f->wtime))
		return;
	f->end = max(f->end, end);
	if (pvfs_ts_after(wtime, &f->wtime))
		f->wtime = *wtime;
	clock_gettime(CLOCK_REALTIME, &now);
	ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	f->version = max(f->version + 1, ns);
}

/* Stripe lock held. */
static void merge_report(struct mgr_opens *o, struct mgr_ofile *f, const struct pvfs_wreport *r)
{
	if (!r->end && mgr_ts_zero(&r->wtime))
		return;
	if (r->trunc_gen != f->gen || r->end > PVFS_FILE_MAX || r->wtime.nsec >= 1000000000u ||
	    f->sparse)
		untrack(o, f);
	else
		merge(f, r->end, &r->wtime);
}

/* Stripe lock held. */
static bool writers_left(const struct mgr_ofile *f)
{
	const struct mgr_open *p;

	for (p = f->opens; p; p = p->next)
		if (open_writes(p) > p->closing)
			return true;
	return false;
}

bool mgr_opens_close_begin(struct mgr_opens *o, u64 session, u64 ino, u32 flags,
			   const struct pvfs_wreport *r)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	bool last = false;

	if (p && open_writes(p)) {
		merge_report(o, f, r);
		p->closing++;
		last = !writers_left(f);
	}
	pthread_mutex_unlock(lock);
	return last;
}

bool mgr_opens_close_end(struct mgr_opens *o, u64 session, u64 ino, u32 flags)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	bool released = false;

	if (p) {
		if (p->closing)
			p->closing--;
		released = open_drop(o, f, p, flags);
	}
	pthread_mutex_unlock(lock);
	return released;
}

int mgr_opens_turn(struct mgr_opens *o, u64 ino, u64 session, u64 seq, bool writes, bool *fresh)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	int ret = 0;

	*fresh = false;
	if (!p) {
		ret = -EBADF;
	} else if (seq < p->seq) {
		ret = -EINVAL;
	} else if (seq == p->seq && p->answered) {
		ret = 1;
	} else {
		*fresh = seq > p->seq;
		p->seq = seq;
		p->answered = false;
		p->out = !writes;
	}
	pthread_mutex_unlock(lock);
	return ret;
}

bool mgr_opens_turn_in(struct mgr_opens *o, u64 ino, u64 session, u64 seq, bool in)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	bool ret = p && p->seq == seq && !p->answered;

	if (ret)
		p->out = !in;
	pthread_mutex_unlock(lock);
	return ret;
}

bool mgr_opens_turn_end(struct mgr_opens *o, u64 ino, u64 session, u64 seq)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);
	bool ret = p && p->seq == seq && !p->answered && !p->out;

	if (ret)
		p->answered = true;
	pthread_mutex_unlock(lock);
	return ret;
}

void mgr_opens_out(struct mgr_opens *o, u64 ino, u64 session)
{
	struct mgr_ofile *f;
	struct mgr_open *p;
	pthread_mutex_t *lock = open_lock(o, ino, session, &f, &p);

	if (p)
		p->out = true;
	pthread_mutex_unlock(lock);
}

u32 mgr_opens_in(struct mgr_opens *o, u64 ino, u64 but, bool writers, u64 *ids, u32 room)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);
	struct mgr_open *p;
	u32 n = 0;

	for (p = f ? f->opens : NULL; p; p = p->next) {
		if (p->out || p->session == but || (writers && !open_writes(p)))
			continue;
		if (n < room)
			ids[n] = p->session;
		n++;
	}
	pthread_mutex_unlock(lock);
	return n;
}

void mgr_opens_view(struct mgr_opens *o, u64 ino, u64 session, struct mgr_opens_view *v)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);
	struct mgr_open *p;

	memset(v, 0, sizeof(*v));
	v->last = true;
	if (!f)
		goto out;
	for (p = f->opens; p; p = p->next) {
		if (p->session == session) {
			v->open = true;
			v->reclaimed = p->reclaimed;
			v->out = p->out;
		} else {
			v->open_elsewhere = true;
			v->in_elsewhere |= !p->out;
			v->writers_in |= !p->out && open_writes(p);
		}
		if (!open_writes(p))
			continue;
		v->writers++;
		if (p->session == session)
			v->self = true;
		else
			v->others = true;
	}
	v->last = !writers_left(f);
	v->orphan = f->orphan;
	v->tracked = f->tracked && v->writers;
	v->doubt = f->doubt;
	v->gen = f->gen;
	v->end = f->end;
	v->wtime = f->wtime;
	v->sparse = f->sparse;
	v->blocks = f->blocks;
	v->version = v->writers ? f->version : 0;
out:
	pthread_mutex_unlock(lock);
}

void mgr_opens_report(struct mgr_opens *o, u64 session, u64 ino, const struct pvfs_wreport *r)
{
	pthread_mutex_t *lock;
	struct mgr_ofile *f;
	struct mgr_open *p;

	if (!r->end && mgr_ts_zero(&r->wtime))
		return;
	lock = stripe_lock(o, ino);
	f = ofile_find(o, ino);
	p = f ? open_find(f, session) : NULL;
	if (p && open_writes(p))
		merge_report(o, f, r);
	pthread_mutex_unlock(lock);
}

void mgr_opens_learn(struct mgr_opens *o, const struct mgr_inode *in, const struct pvfs_ts *wtime,
		     u64 doubt)
{
	pthread_mutex_t *lock = stripe_lock(o, in->ino);
	struct mgr_ofile *f = ofile_find(o, in->ino);

	/* It may have been cut since. */
	if (!f || (s32)(in->trunc_gen - f->gen) < 0)
		goto out;
	if (f->gen != in->trunc_gen) {
		f->gen = in->trunc_gen;
		f->end = 0;
		f->wtime = (struct pvfs_ts){ 0 };
	}
	merge(f, in->size, wtime);
	if (f->doubt == doubt) {
		f->sparse = in->flags & MGR_IF_SPARSE;
		f->blocks = in->blocks;
		f->tracked = true;
	}
out:
	pthread_mutex_unlock(lock);
}

void mgr_opens_reset(struct mgr_opens *o, const struct mgr_inode *in, bool tracked)
{
	pthread_mutex_t *lock = stripe_lock(o, in->ino);
	struct mgr_ofile *f = ofile_find(o, in->ino);

	if (f) {
		f->gen = in->trunc_gen;
		f->end = 0;
		f->wtime = (struct pvfs_ts){ 0 };
		f->version = 0;
		f->sparse = in->flags & MGR_IF_SPARSE;
		f->blocks = in->blocks;
		untrack(o, f);
		f->tracked = tracked;
	}
	pthread_mutex_unlock(lock);
}

void mgr_opens_orphan(struct mgr_opens *o, u64 ino)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);

	if (f)
		f->orphan = true;
	pthread_mutex_unlock(lock);
}

int mgr_opens_who(struct mgr_opens *o, u64 ino, u64 **ret)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);
	struct mgr_open *p;
	u64 *ids = NULL;
	int n = 0;

	for (p = f ? f->opens : NULL; p; p = p->next)
		n++;
	if (n) {
		ids = malloc(n * sizeof(*ids));
		if (!ids) {
			n = -ENOMEM;
			goto out;
		}
		n = 0;
		for (p = f->opens; p; p = p->next)
			ids[n++] = p->session;
	}
	*ret = ids;
out:
	pthread_mutex_unlock(lock);
	return n;
}

u32 mgr_opens_holders(struct mgr_opens *o, u64 ino, u64 after, struct mgr_holder *ret, u32 room)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);
	struct mgr_open *p;
	u32 n = 0;

	for (p = f ? f->opens : NULL; p; p = p->next) {
		if (p->session <= after)
			continue;
		if (n < room)
			ret[n] = (struct mgr_holder){
				.session = p->session, .writers = open_writes(p),
				.readers = p->n[0] + p->n[PVFS_O_READ],
				.flags = p->out ? PVFS_HD_OUT : 0,
			};
		n++;
	}
	pthread_mutex_unlock(lock);
	return n;
}

void mgr_opens_sweep(struct mgr_opens *o, u64 session, void (*wrote)(void *arg, u64 ino), void *arg)
{
	pthread_mutex_t *lock;
	struct mgr_ofile *f;
	struct mgr_open *p;
	u64 ino[SWEEP_BATCH];
	bool wrote_it;
	u32 i, n;

	while ((n = mgr_helds_of(&o->of, session, ino, SWEEP_BATCH))) {
		for (i = 0; i < n; i++) {
			lock = stripe_lock(o, ino[i]);
			f = ofile_find(o, ino[i]);
			p = f ? open_find(f, session) : NULL;
			wrote_it = p && open_writes(p);
			if (p) {
				/* What it wrote and did not report is lost to us; the iods know. */
				if (wrote_it)
					untrack(o, f);
				open_free(o, f, p);
				ofile_trim(o, f);
			}
			pthread_mutex_unlock(lock);
			if (wrote_it && wrote)
				wrote(arg, ino[i]);
		}
	}
}

/* A task that waits; on its stack. */
struct mgr_opens_wait {
	struct mgr_opens_wait *next;
	struct mgr_task *task;
	bool woken;
};

/* Stripe lock held, dropped meanwhile: a task waits. Return: false when its time is over. */
static bool wait_parked(pthread_mutex_t *lock, struct mgr_ofile *f, u64 deadline)
{
	struct mgr_opens_wait w = { .next = f->waits, .task = mgr_task_self() }, **pp;
	bool woken;

	f->waits = &w;
	pthread_mutex_unlock(lock);
	woken = mgr_task_park_until(deadline);
	pthread_mutex_lock(lock);
	if (w.woken) {
		/* A wake that came too late has come all the same. */
		if (!woken)
			mgr_task_park();
		return true;
	}
	for (pp = &f->waits; *pp != &w; pp = &(*pp)->next)
		;
	*pp = w.next;
	return false;
}

int mgr_opens_lock(struct mgr_opens *o, u64 ino, unsigned int timeout_ms)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	pthread_cond_t *cond = &o->stripe[stripe_of(ino)].cond;
	struct mgr_ofile *f = ofile_get(o, ino);
	u64 deadline = mgr_mono_ms() + timeout_ms;
	struct timespec until = { .tv_sec = deadline / 1000,
				  .tv_nsec = deadline % 1000 * 1000000l };
	bool task = mgr_task_self(), in_time = timeout_ms;
	int err = 0;

	if (!f) {
		err = -ENOMEM;
		goto out;
	}
	f->users++;
	while (f->busy && in_time)
		in_time = task ? wait_parked(lock, f, deadline) :
				 !pthread_cond_timedwait(cond, lock, &until);
	if (f->busy) {
		err = -EAGAIN;
		f->users--;
		ofile_trim(o, f);
	} else {
		f->busy = true;
	}
out:
	pthread_mutex_unlock(lock);
	return err;
}

void mgr_opens_unlock(struct mgr_opens *o, u64 ino)
{
	pthread_mutex_t *lock = stripe_lock(o, ino);
	struct mgr_ofile *f = ofile_find(o, ino);
	struct mgr_opens_wait *w;

	f->busy = false;
	f->users--;
	while ((w = f->waits)) {
		f->waits = w->next;
		w->woken = true;
		mgr_task_wake(w->task);
	}
	pthread_cond_broadcast(&o->stripe[stripe_of(ino)].cond);
	ofile_trim(o, f);
	pthread_mutex_unlock(lock);
}
