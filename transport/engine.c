// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * engine.c - an epoll set, its threads and its timers.
 *
 * All threads wait in epoll_wait() on one set and take one event at a time. The kernel wakes the
 * thread that waited last first, so a light load stays on one warm thread and nobody hands events
 * over; when that thread is busy the next one takes the next event. One-shot registration makes the
 * event the owner's mark (engine.h).
 *
 * Knows nothing of messages or connections.
 */
#include "engine.h"
#include "../common/log.h"
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define OUT_BATCH 16

/**
 * struct pvfs_engine - see pvfs_engine_new()
 * @epfd: the set the threads wait on
 * @out_epfd: sending sides only; is a member of @epfd
 */
struct pvfs_engine {
	int epfd, out_epfd, timer_fd, stop_fd, post_fd;
	struct pvfs_source out_src, timer_src, post_src;
	pthread_t *threads;
	unsigned int nthreads;
	char name[12];
	atomic_bool stopping;
	atomic_ullong wakeups;
	atomic_int held;		/* connections that exist */

	pthread_mutex_t post_lock;	/* protects the next two */
	struct pvfs_source *posted, **posted_tail;

	pthread_mutex_t lock;	/* protects the timers' fields, @timer_at, @everys and @deferred */
	pthread_cond_t timer_idle;	/* a timer's function returned */
	struct pvfs_timer *timers;
	u64 timer_at;			/* what timer_fd is set to; 0: not */
	struct every {
		struct pvfs_timer t;
		struct every *next;
	} *everys;
	struct deferred {
		void *mem;
		struct deferred *next;
	} *deferred;
};

static _Thread_local u8 *scratch;

u64 pvfs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

u8 *pvfs_engine_scratch(void)
{
	return scratch;
}

u64 pvfs_engine_wakeups(struct pvfs_engine *e)
{
	return atomic_load_explicit(&e->wakeups, memory_order_relaxed);
}

void pvfs_engine_hold(struct pvfs_engine *e, int n)
{
	atomic_fetch_add(&e->held, n);
}

/* ---------------------------------------------------------------- sources */

static int arm(int epfd, struct pvfs_source *s, u32 events)
{
	struct epoll_event ev = { .events = events | EPOLLONESHOT, .data.ptr = s };
	bool added = s->added;
	int fd = s->fd;

	/* Before the call: from then on the source is another's. */
	s->added = true;
	atomic_fetch_add_explicit(&s->handed, 1, memory_order_release);
	if (!epoll_ctl(epfd, added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev))
		return 0;
	s->added = added;
	return -errno;
}

static void source_ready(struct pvfs_source *s, u32 events)
{
	atomic_load_explicit(&s->handed, memory_order_acquire);
	s->ready(s, events);
}

int pvfs_engine_arm(struct pvfs_engine *e, struct pvfs_source *s, u32 events)
{
	return arm(e->epfd, s, events);
}

int pvfs_engine_arm_out(struct pvfs_engine *e, struct pvfs_source *s)
{
	return arm(e->out_epfd, s, EPOLLOUT);
}

void pvfs_engine_post(struct pvfs_engine *e, struct pvfs_source *s)
{
	u64 one = 1;
	bool first;

	atomic_fetch_add_explicit(&s->handed, 1, memory_order_release);
	pthread_mutex_lock(&e->post_lock);
	first = !e->posted;
	s->next = NULL;
	*e->posted_tail = s;
	e->posted_tail = &s->next;
	/* Its counter is 0 or 1: it takes this, and is readable while anything is posted. */
	if (first && write(e->post_fd, &one, sizeof(one)) != sizeof(one))
		pvfs_error("%s: can't wake a thread: %s", e->name, strerror(errno));
	pthread_mutex_unlock(&e->post_lock);
}

/* Something is posted: one of it. */
static void post_ready(struct pvfs_source *src, u32 events)
{
	struct pvfs_engine *e = container_of(src, struct pvfs_engine, post_src);
	struct pvfs_source *s;
	u64 count;

	pthread_mutex_lock(&e->post_lock);
	s = e->posted;
	if (s) {
		e->posted = s->next;
		if (!e->posted) {
			e->posted_tail = &e->posted;
			if (read(e->post_fd, &count, sizeof(count)) < 0)
				pvfs_error("%s: eventfd: %s", e->name, strerror(errno));
		}
	}
	pthread_mutex_unlock(&e->post_lock);
	/* Before it runs: another thread takes the next. */
	pvfs_engine_arm(e, src, EPOLLIN);
	if (s)
		source_ready(s, EPOLLIN);
}

void pvfs_engine_del(struct pvfs_engine *e, struct pvfs_source *s)
{
	epoll_ctl(e->epfd, EPOLL_CTL_DEL, s->fd, NULL);
}

void pvfs_engine_defer(struct pvfs_engine *e, void *mem)
{
	struct deferred *d = malloc(sizeof(*d));

	if (!d)
		return;		/* rather lose it than free it too early */
	d->mem = mem;
	pthread_mutex_lock(&e->lock);
	d->next = e->deferred;
	e->deferred = d;
	pthread_mutex_unlock(&e->lock);
}

/* Some sending sides have room. */
static void out_ready(struct pvfs_source *src, u32 events)
{
	struct pvfs_engine *e = container_of(src, struct pvfs_engine, out_src);
	struct epoll_event ev[OUT_BATCH];
	int i, n;

	n = epoll_wait(e->out_epfd, ev, OUT_BATCH, 0);
	/* Let another thread have what comes meanwhile: each event has its own owner. */
	pvfs_engine_arm(e, src, EPOLLIN);
	for (i = 0; i < n; i++) {
		source_ready(ev[i].data.ptr, ev[i].events);
	}
}

/* ---------------------------------------------------------------- timers */

/* Lock held. */
static void timer_unlink(struct pvfs_engine *e, struct pvfs_timer *t)
{
	struct pvfs_timer **p;

	if (!t->due)
		return;
	for (p = &e->timers; *p != t; p = &(*p)->next)
		;
	*p = t->next;
	t->due = 0;
}

/* Lock held. */
static void timer_insert(struct pvfs_engine *e, struct pvfs_timer *t, u64 due)
{
	struct pvfs_timer **p;

	t->due = due ?: 1;
	for (p = &e->timers; *p && (*p)->due <= t->due; p = &(*p)->next)
		;
	t->next = *p;
	*p = t;
}

/*
 * Lock held: timer_fd fires no later than the first timer is due. One whose function runs is left
 * out: the end of its run comes here again.
 */
static void timer_program(struct pvfs_engine *e)
{
	struct itimerspec its = { 0 };
	struct pvfs_timer *t = e->timers;

	while (t && t->running)
		t = t->next;
	if (!t || (e->timer_at && e->timer_at <= t->due))
		return;
	e->timer_at = t->due;
	its.it_value.tv_sec = e->timer_at / 1000000000;
	its.it_value.tv_nsec = e->timer_at % 1000000000;
	timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

void pvfs_timer_set(struct pvfs_engine *e, struct pvfs_timer *t, u64 due)
{
	pthread_mutex_lock(&e->lock);
	timer_unlink(e, t);
	timer_insert(e, t, due);
	timer_program(e);
	pthread_mutex_unlock(&e->lock);
}

void pvfs_timer_cancel(struct pvfs_engine *e, struct pvfs_timer *t)
{
	pthread_mutex_lock(&e->lock);
	t->every = 0;
	timer_unlink(e, t);
	while (t->running && !pthread_equal(t->thread, pthread_self())) {
		pthread_cond_wait(&e->timer_idle, &e->lock);
		/* Its function may have set it again. */
		timer_unlink(e, t);
	}
	pthread_mutex_unlock(&e->lock);
}

static void timer_ready(struct pvfs_source *src, u32 events)
{
	struct pvfs_engine *e = container_of(src, struct pvfs_engine, timer_src);
	struct pvfs_timer *t;
	u64 ticks, now;

	if (read(e->timer_fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		pvfs_log_limited(PVFS_LOG_ERROR, "timer: %s", strerror(errno));
	pthread_mutex_lock(&e->lock);
	e->timer_at = 0;
	for (;;) {
		now = pvfs_now();
		for (t = e->timers; t && t->due <= now && t->running; t = t->next)
			;
		if (!t || t->due > now)
			break;
		timer_unlink(e, t);
		t->running = true;
		t->thread = pthread_self();
		/* A function may take its time: others' timers go on in another thread. */
		timer_program(e);
		pthread_mutex_unlock(&e->lock);
		pvfs_engine_arm(e, src, EPOLLIN);
		t->fn(t->arg);
		pthread_mutex_lock(&e->lock);
		t->running = false;
		if (t->every && !t->due)
			timer_insert(e, t, pvfs_now() + t->every);
		pthread_cond_broadcast(&e->timer_idle);
		timer_program(e);
		pthread_mutex_unlock(&e->lock);
		/* The source is another thread's now; what is due fires there. */
		return;
	}
	timer_program(e);
	pthread_mutex_unlock(&e->lock);
	pvfs_engine_arm(e, src, EPOLLIN);
}

int pvfs_engine_every(struct pvfs_engine *e, unsigned int ms, void (*fn)(void *arg), void *arg)
{
	struct every *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return -ENOMEM;
	ev->t.fn = fn;
	ev->t.arg = arg;
	ev->t.every = max(ms, 1u) * 1000000ull;
	pthread_mutex_lock(&e->lock);
	ev->next = e->everys;
	e->everys = ev;
	pthread_mutex_unlock(&e->lock);
	pvfs_timer_set(e, &ev->t, pvfs_now() + ev->t.every);
	return 0;
}

/* ---------------------------------------------------------------- threads */

static void *engine_thread(void *arg)
{
	struct pvfs_engine *e = arg;
	struct epoll_event ev;
	u8 *mem = malloc(PVFS_SCRATCH_LEN);
	int n;

	if (!mem)
		pvfs_error("%s: no memory for a thread", e->name);
	scratch = mem;
	while (mem && !atomic_load_explicit(&e->stopping, memory_order_acquire)) {
		n = epoll_wait(e->epfd, &ev, 1, -1);
		if (n < 0 && errno != EINTR) {
			pvfs_error("%s: epoll_wait: %s", e->name, strerror(errno));
			break;
		}
		if (n < 1 || !ev.data.ptr)
			continue;
		atomic_fetch_add_explicit(&e->wakeups, 1, memory_order_relaxed);
		source_ready(ev.data.ptr, ev.events);
	}
	scratch = NULL;
	free(mem);
	return NULL;
}

static void stop_threads(struct pvfs_engine *e)
{
	u64 one = 1;
	unsigned int i;

	atomic_store_explicit(&e->stopping, true, memory_order_release);
	/* Level-triggered and never read: every thread sees it. */
	if (e->nthreads && write(e->stop_fd, &one, sizeof(one)) != sizeof(one))
		pvfs_error("%s: can't stop the threads: %s", e->name, strerror(errno));
	for (i = 0; i < e->nthreads; i++)
		pthread_join(e->threads[i], NULL);
	e->nthreads = 0;
}

int pvfs_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(ret, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

static int start_threads(struct pvfs_engine *e, unsigned int nthreads)
{
	char name[16];
	int err;

	e->threads = calloc(nthreads, sizeof(*e->threads));
	if (!e->threads)
		return -ENOMEM;
	for (e->nthreads = 0; e->nthreads < nthreads; e->nthreads++) {
		err = pvfs_thread_start(&e->threads[e->nthreads], engine_thread, e);
		if (err) {
			stop_threads(e);
			return err;
		}
		snprintf(name, sizeof(name), "%.10s/%u", e->name, e->nthreads);
		pthread_setname_np(e->threads[e->nthreads], name);
	}
	return 0;
}

int pvfs_engine_new(const char *name, unsigned int nthreads, struct pvfs_engine **ret)
{
	struct epoll_event stop = { .events = EPOLLIN };
	struct pvfs_engine *e;
	int err;

	if (!nthreads || nthreads > PVFS_ENGINE_THREADS_MAX)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	snprintf(e->name, sizeof(e->name), "%s", name);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->post_lock, NULL);
	e->posted_tail = &e->posted;
	pthread_cond_init(&e->timer_idle, NULL);
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	e->out_epfd = epoll_create1(EPOLL_CLOEXEC);
	e->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	e->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->post_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->out_src = (struct pvfs_source){ .fd = e->out_epfd, .ready = out_ready };
	e->timer_src = (struct pvfs_source){ .fd = e->timer_fd, .ready = timer_ready };
	e->post_src = (struct pvfs_source){ .fd = e->post_fd, .ready = post_ready };
	if (e->epfd < 0 || e->out_epfd < 0 || e->timer_fd < 0 || e->stop_fd < 0 ||
	    e->post_fd < 0 ||
	    epoll_ctl(e->epfd, EPOLL_CTL_ADD, e->stop_fd, &stop)) {
		err = -errno;
		goto fail;
	}
	err = pvfs_engine_arm(e, &e->out_src, EPOLLIN);
	if (!err)
		err = pvfs_engine_arm(e, &e->timer_src, EPOLLIN);
	if (!err)
		err = pvfs_engine_arm(e, &e->post_src, EPOLLIN);
	if (!err)
		err = start_threads(e, nthreads);
	if (err)
		goto fail;
	*ret = e;
	return 0;
fail:
	pvfs_engine_free(e);
	return err;
}

void pvfs_engine_free(struct pvfs_engine *e)
{
	struct deferred *d;
	struct every *ev;
	int left;

	if (!e)
		return;
	stop_threads(e);
	left = atomic_load(&e->held);
	if (left)
		pvfs_error("%s: freed before its %d connections: stop servers and free peers first",
			   e->name, left);
	while (e->everys) {
		ev = e->everys;
		e->everys = ev->next;
		free(ev);
	}
	while (e->deferred) {
		d = e->deferred;
		e->deferred = d->next;
		free(d->mem);
		free(d);
	}
	if (e->epfd >= 0)
		close(e->epfd);
	if (e->out_epfd >= 0)
		close(e->out_epfd);
	if (e->timer_fd >= 0)
		close(e->timer_fd);
	if (e->stop_fd >= 0)
		close(e->stop_fd);
	if (e->post_fd >= 0)
		close(e->post_fd);
	pthread_mutex_destroy(&e->post_lock);
	pthread_cond_destroy(&e->timer_idle);
	pthread_mutex_destroy(&e->lock);
	free(e->threads);
	free(e);
}
