// SPDX-License-Identifier: GPL-2.0
/*
 * park.c - tasks and the workers that go on with them; see park.h. It knows nothing of requests.
 *
 *        mgr_task_begin()                  switch_out()
 *   (unused) ------------> RUNNING ------------------------> PARKED
 *      ^                    |    ^                              |
 *      |      job ended     |    |  a worker         READY <----+  mgr_task_wake(), the deadline
 *      +--------------------+    +--------------------+
 *
 * A task that wants to wait goes back to its thread, and it is the thread, on its own stack again,
 * that parks it: so nobody goes on with a task whose registers are not saved yet. A wake that comes
 * in between is remembered.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES	(2u << 20)
#else
#define STACK_BYTES	(512u << 10)	/* of address space; what is not used takes no memory */
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif
#define UNUSED_MAX	64u		/* stacks that are kept */
#define LOOK_MS		2000u		/* at most, until an idle worker looks whether there is work */

/* A thread that runs tasks: where they return to. */
struct host {
	ucontext_t ctx;
	const void *stack;		/* for the sanitizers */
	size_t stack_len;
	void *fiber;
	bool worker;
};

struct mgr_task {
	TAILQ_ENTRY(mgr_task) link;	/* ready, timed, blocked or unused */
	struct mgr_tasks *ts;
	struct mgr_job *job;
	ucontext_t ctx;
	u8 *stack;
	struct host *host;		/* while it runs */
	u64 deadline;			/* monotonic ms, 0: none; it is in timed then */
	bool parked, woken;
	void *fiber;
};

static __thread struct mgr_task *current;

/* Not to be inlined: after a switch the thread's variables are somewhere else. */
struct mgr_task *__attribute__((noinline)) mgr_task_self(void)
{
	__asm__ volatile("" ::: "memory");
	return current;
}

static void __attribute__((noinline)) set_current(struct mgr_task *t)
{
	__asm__ volatile("" ::: "memory");
	current = t;
}

/* ---- switching ---- */

static void enter_stack(void **save, const void *stack, size_t len, void *fiber)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(save, stack, len);
#endif
#ifdef __SANITIZE_THREAD__
	__tsan_switch_to_fiber(fiber, 0);
#endif
}

static void entered_stack(void *save, const void **from, size_t *from_len)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(save, from, from_len);
#endif
}

/* From the task to its thread, until it is gone on with. */
static void __attribute__((noinline)) switch_out(struct mgr_task *t)
{
	struct host *h = t->host;
	void *save = NULL;

	enter_stack(&save, h->stack, h->stack_len, h->fiber);
	swapcontext(&t->ctx, &h->ctx);
	/* Perhaps on another thread. */
	entered_stack(save, &t->host->stack, &t->host->stack_len);
}

static void task_main(unsigned int hi, unsigned int lo)
{
	struct mgr_task *t = (struct mgr_task *)(uintptr_t)((u64)hi << 32 | lo);

	entered_stack(NULL, &t->host->stack, &t->host->stack_len);
	for (;;) {
		t->job->fn(t->job);
		t->job = NULL;
		switch_out(t);
	}
}

/* From a thread to the task, until it ends or wants to park. */
static void __attribute__((noinline)) switch_in(struct mgr_task *t, bool worker)
{
	struct host h = { .worker = worker };
	void *save = NULL;

#ifdef __SANITIZE_THREAD__
	h.fiber = __tsan_get_current_fiber();
#else
	h.fiber = NULL;
#endif
	t->host = &h;
	set_current(t);
	enter_stack(&save, t->stack, STACK_BYTES, t->fiber);
	swapcontext(&h.ctx, &t->ctx);
	entered_stack(save, NULL, NULL);
	set_current(NULL);
}

/* Not inlined: getcontext() returns twice for all the compiler knows. */
static void __attribute__((noinline)) task_context(struct mgr_task *t)
{
	getcontext(&t->ctx);
	t->ctx.uc_stack.ss_sp = t->stack;
	t->ctx.uc_stack.ss_size = STACK_BYTES;
	makecontext(&t->ctx, (void (*)(void))task_main, 2, (unsigned int)((uintptr_t)t >> 32),
		    (unsigned int)(uintptr_t)t);
}

static struct mgr_task *task_new(struct mgr_tasks *ts)
{
	size_t guard = sysconf(_SC_PAGESIZE);
	struct mgr_task *t = calloc(1, sizeof(*t));
	u8 *mem;

	if (!t)
		return NULL;
	mem = mmap(NULL, guard + STACK_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED) {
		free(t);
		return NULL;
	}
	/* Without it, what runs over would be in another task's stack. */
	if (mprotect(mem, guard, PROT_NONE)) {
		munmap(mem, guard + STACK_BYTES);
		free(t);
		return NULL;
	}
	t->ts = ts;
	t->stack = mem + guard;
#ifdef __SANITIZE_THREAD__
	t->fiber = __tsan_create_fiber(0);
#endif
	task_context(t);
	return t;
}

static void task_free(struct mgr_task *t)
{
	size_t guard = sysconf(_SC_PAGESIZE);

#ifdef __SANITIZE_THREAD__
	__tsan_destroy_fiber(t->fiber);
#endif
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(t->stack, STACK_BYTES);
#endif
	munmap(t->stack - guard, guard + STACK_BYTES);
	free(t);
}

/* ---- life ---- */

/* Lock held; dropped and taken again when a stack has to be made. NULL: none to be had. */
static struct mgr_task *task_get(struct mgr_tasks *ts)
{
	struct mgr_task *t;
	u32 most;

	if (ts->n >= MGR_TASKS_MAX)
		return NULL;
	ts->n++;
	t = TAILQ_FIRST(&ts->unused);
	if (t) {
		TAILQ_REMOVE(&ts->unused, t, link);
		ts->nunused--;
	} else {
		pthread_mutex_unlock(&ts->lock);
		t = task_new(ts);
		pthread_mutex_lock(&ts->lock);
		if (!t) {
			ts->n--;
			return NULL;
		}
	}
	most = atomic_load_explicit(&ts->most, memory_order_relaxed);
	if (ts->n > most)
		atomic_store_explicit(&ts->most, ts->n, memory_order_relaxed);
	return t;
}

static void task_put(struct mgr_tasks *ts, struct mgr_task *t)
{
	ts->n--;
	if (!TAILQ_EMPTY(&ts->jobs))
		pthread_cond_signal(&ts->work);
	if (!ts->n && TAILQ_EMPTY(&ts->jobs))
		pthread_cond_broadcast(&ts->idle);
	if (ts->nunused < UNUSED_MAX) {
		TAILQ_INSERT_HEAD(&ts->unused, t, link);
		ts->nunused++;
		return;
	}
	pthread_mutex_unlock(&ts->lock);
	task_free(t);
	pthread_mutex_lock(&ts->lock);
}

/* Lock held. */
static void timed_add(struct mgr_tasks *ts, struct mgr_task *t)
{
	struct mgr_task *at = TAILQ_LAST(&ts->timed, mgr_task_list);

	while (at && at->deadline > t->deadline)
		at = TAILQ_PREV(at, mgr_task_list, link);
	if (at) {
		TAILQ_INSERT_AFTER(&ts->timed, at, t, link);
		return;
	}
	TAILQ_INSERT_HEAD(&ts->timed, t, link);
	pthread_cond_signal(&ts->work);
}

/* Lock held: it is parked, and will be gone on with. */
static void make_ready(struct mgr_tasks *ts, struct mgr_task *t)
{
	if (t->deadline)
		TAILQ_REMOVE(&ts->timed, t, link);
	t->deadline = 0;
	t->parked = false;
	atomic_fetch_sub_explicit(&ts->now, 1, memory_order_relaxed);
	TAILQ_INSERT_TAIL(&ts->ready, t, link);
	pthread_cond_signal(&ts->work);
}

/* Lock held: it wants to wait. */
static void park_task(struct mgr_tasks *ts, struct mgr_task *t)
{
	if (t->woken) {
		TAILQ_INSERT_TAIL(&ts->ready, t, link);
		t->deadline = 0;
		pthread_cond_signal(&ts->work);
		return;
	}
	t->parked = true;
	if (t->deadline)
		timed_add(ts, t);
	atomic_fetch_add_explicit(&ts->parked, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&ts->now, 1, memory_order_relaxed);
}

/* Lock held on entry and return: runs it on this thread. */
static void run(struct mgr_tasks *ts, struct mgr_task *t, bool worker)
{
	pthread_mutex_unlock(&ts->lock);
	switch_in(t, worker);
	pthread_mutex_lock(&ts->lock);
	if (t->job)
		park_task(ts, t);
	else
		task_put(ts, t);
}

void mgr_task_begin(struct mgr_tasks *ts, struct mgr_job *job)
{
	struct mgr_task *t = NULL;

	pthread_mutex_lock(&ts->lock);
	/* Nobody overtakes what waits for a task. */
	if (TAILQ_EMPTY(&ts->jobs) && !mgr_task_self())
		t = task_get(ts);
	if (t) {
		t->job = job;
		run(ts, t, false);
	} else {
		TAILQ_INSERT_TAIL(&ts->jobs, job, link);
		pthread_cond_signal(&ts->work);
	}
	pthread_mutex_unlock(&ts->lock);
}

void mgr_task_queue(struct mgr_tasks *ts, struct mgr_job *job)
{
	pthread_mutex_lock(&ts->lock);
	TAILQ_INSERT_TAIL(&ts->jobs, job, link);
	pthread_cond_signal(&ts->work);
	pthread_mutex_unlock(&ts->lock);
}

/* ---- waiting ---- */

static bool park(struct mgr_task *t, u64 deadline)
{
	bool woken;

	pthread_mutex_lock(&t->ts->lock);
	woken = t->woken;
	t->deadline = deadline;
	pthread_mutex_unlock(&t->ts->lock);
	if (!woken)
		switch_out(t);
	pthread_mutex_lock(&t->ts->lock);
	woken = t->woken;
	t->woken = false;
	t->deadline = 0;
	pthread_mutex_unlock(&t->ts->lock);
	return woken;
}

void mgr_task_park(void)
{
	park(mgr_task_self(), 0);
}

bool mgr_task_park_until(u64 deadline)
{
	return park(mgr_task_self(), max(deadline, (u64)1));
}

void mgr_task_wake(struct mgr_task *t)
{
	struct mgr_tasks *ts = t->ts;

	pthread_mutex_lock(&ts->lock);
	t->woken = true;
	if (t->parked)
		make_ready(ts, t);
	pthread_mutex_unlock(&ts->lock);
}

/* Lock held. One worker at least is for those who do not block. */
static bool may_block(const struct mgr_tasks *ts)
{
	return ts->nblocking < max(ts->nworkers, 2u) - 1;
}

void mgr_task_block(void)
{
	struct mgr_task *t = mgr_task_self();
	struct mgr_tasks *ts = t ? t->ts : NULL;
	bool now;

	if (!t || !ts->nworkers)
		return;
	pthread_mutex_lock(&ts->lock);
	now = may_block(ts);
	if (now)
		ts->nblocking++;
	else
		TAILQ_INSERT_TAIL(&ts->blocked, t, link);
	if (now && !t->host->worker)
		t->woken = true;	/* gone on with at once, by a worker */
	pthread_mutex_unlock(&ts->lock);
	if (now && t->host->worker)
		return;
	switch_out(t);
	pthread_mutex_lock(&ts->lock);
	t->woken = false;
	pthread_mutex_unlock(&ts->lock);
}

void mgr_task_unblock(void)
{
	struct mgr_task *t = mgr_task_self(), *next;
	struct mgr_tasks *ts = t ? t->ts : NULL;

	if (!t || !ts->nworkers)
		return;
	pthread_mutex_lock(&ts->lock);
	next = TAILQ_FIRST(&ts->blocked);
	if (next)
		TAILQ_REMOVE(&ts->blocked, next, link);
	else
		ts->nblocking--;
	pthread_mutex_unlock(&ts->lock);
	if (next)
		mgr_task_wake(next);
}

/* ---- workers ---- */

/* Lock held: those whose time is over, and waits until there is something to do, or the next's is. */
static void worker_wait(struct mgr_tasks *ts)
{
	struct mgr_task *t = TAILQ_FIRST(&ts->timed);
	/* What could not be begun for want of memory is tried again. */
	bool poor = !TAILQ_EMPTY(&ts->jobs) && ts->n < MGR_TASKS_MAX;
	u64 now = mgr_mono_ms(), next = t ? t->deadline : ~0ull;
	struct timespec until;

	if (next <= now) {
		make_ready(ts, t);
		return;
	}
	/*
	 * Not for ever in any case: until glibc 2.41 a signal can be lost where several wait and come and go
	 * (its bug 25847), and with it the task that it was for.
	 */
	next = min(next, now + (poor ? 10 : LOOK_MS));
	until.tv_sec = next / 1000;
	until.tv_nsec = next % 1000 * 1000000l;
	pthread_cond_timedwait(&ts->work, &ts->lock, &until);
}

static void *worker(void *arg)
{
	struct mgr_tasks *ts = arg;
	struct mgr_task *t;

	pthread_mutex_lock(&ts->lock);
	for (;;) {
		t = TAILQ_FIRST(&ts->ready);
		if (t) {
			TAILQ_REMOVE(&ts->ready, t, link);
		} else {
			t = TAILQ_EMPTY(&ts->jobs) ? NULL : task_get(ts);
			/* The lock may have been dropped: another may have taken the last one. */
			if (t && TAILQ_EMPTY(&ts->jobs)) {
				task_put(ts, t);
				continue;
			}
			if (t) {
				t->job = TAILQ_FIRST(&ts->jobs);
				TAILQ_REMOVE(&ts->jobs, t->job, link);
			}
		}
		if (t)
			run(ts, t, true);
		else if (ts->stop)
			break;
		else
			worker_wait(ts);
	}
	pthread_mutex_unlock(&ts->lock);
	return NULL;
}

int mgr_tasks_start(struct mgr_tasks *ts, u32 n)
{
	int err;

	ts->workers = calloc(n, sizeof(*ts->workers));
	if (!ts->workers)
		return -ENOMEM;
	ts->stop = false;
	for (ts->nworkers = 0; ts->nworkers < n; ts->nworkers++) {
		err = pthread_create(&ts->workers[ts->nworkers], NULL, worker, ts);
		if (err) {
			mgr_tasks_stop(ts);
			return -err;
		}
	}
	return 0;
}

void mgr_tasks_stop(struct mgr_tasks *ts)
{
	u32 i;

	if (!ts->workers)
		return;
	pthread_mutex_lock(&ts->lock);
	while (ts->nworkers && (ts->n || !TAILQ_EMPTY(&ts->jobs)))
		pthread_cond_wait(&ts->idle, &ts->lock);
	ts->stop = true;
	pthread_cond_broadcast(&ts->work);
	pthread_mutex_unlock(&ts->lock);
	for (i = 0; i < ts->nworkers; i++)
		pthread_join(ts->workers[i], NULL);
	free(ts->workers);
	ts->workers = NULL;
	ts->nworkers = 0;
}

void mgr_tasks_init(struct mgr_tasks *ts)
{
	pthread_mutex_init(&ts->lock, NULL);
	mgr_cond_init(&ts->work);
	pthread_cond_init(&ts->idle, NULL);
	TAILQ_INIT(&ts->ready);
	TAILQ_INIT(&ts->timed);
	TAILQ_INIT(&ts->unused);
	TAILQ_INIT(&ts->blocked);
	TAILQ_INIT(&ts->jobs);
}

void mgr_tasks_fini(struct mgr_tasks *ts)
{
	struct mgr_task *t;

	while ((t = TAILQ_FIRST(&ts->unused))) {
		TAILQ_REMOVE(&ts->unused, t, link);
		task_free(t);
	}
	pthread_mutex_destroy(&ts->lock);
	pthread_cond_destroy(&ts->work);
	pthread_cond_destroy(&ts->idle);
}
