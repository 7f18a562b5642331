// SPDX-License-Identifier: GPL-2.0
/*
 * lib_queue_test.c - libpvfs' queues: calls are made, and their ends are told, also when the signal that says so to a
 * thread is lost; several threads wait on one queue.
 */
#include "lib/lib.h"
#include "lost_signal.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define THREADS	2u
#define PATIENCE_MS 20000	/* an idle thread looks every 2 s */

static pthread_barrier_t all_there;

static ssize_t meet(void *arg)
{
	pthread_barrier_wait(&all_there);
	return 0;
}

static ssize_t answer(void *arg)
{
	return 42;
}

/* ---- threads in pvfs_wait(), of which is known when they wait ---- */

struct waiter {
	struct pvfs_queue *q;
	struct pvfs_async *got;
	int n;
	pthread_t id;
	sem_t waits, ended;
};

static __thread struct waiter *me;

static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	/* Who has the lock after this finds us waiting. */
	if (me)
		sem_post(&me->waits);
	return pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, until);
}

/* Of conditions in here that go by this clock, as all do that wait so. */
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	return wait_for(c, m, until);
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	struct timespec never = { .tv_sec = 1ll << 33 };

	return wait_for(c, m, &never);
}

static void *waiter_main(void *arg)
{
	me = arg;
	me->n = pvfs_wait(me->q, &me->got, 1, -1);
	sem_post(&me->ended);
	return NULL;
}

static void waiter_begin(struct waiter *w, struct pvfs_queue *q)
{
	*w = (struct waiter){ .q = q };
	sem_init(&w->waits, 0, 0);
	sem_init(&w->ended, 0, 0);
	assert_int_equal(pthread_create(&w->id, NULL, waiter_main, w), 0);
	while (sem_wait(&w->waits))
		;
}

static void waiter_end(struct waiter *w)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	assert_int_equal(sem_clockwait(&w->ended, CLOCK_MONOTONIC, &until), 0);
	pthread_join(w->id, NULL);
	sem_destroy(&w->waits);
	sem_destroy(&w->ended);
}

static ssize_t when_told(void *arg)
{
	while (sem_wait(arg))
		;
	return 42;
}

/* ---- tests ---- */

/* One of those who wait gets what was the last call under way: the others wait for nothing. */
static void all_waiters_end(void **state)
{
	struct pvfs_async a = { .op = PVFS_ASYNC_CALL, .call = when_told };
	struct pvfs_fs fs = { .pid = getpid() };
	static struct waiter w[3];
	struct pvfs_queue *q;
	static sem_t go;
	u32 i, n = 0;

	alarm(100);
	sem_init(&go, 0, 0);
	a.arg = &go;
	assert_int_equal(pvfs_queue_new(&fs, 1, &q), 0);
	assert_int_equal(pvfs_submit(q, &a), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		waiter_begin(&w[i], q);
	sem_post(&go);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		waiter_end(&w[i]);
		n += w[i].n;
	}
	assert_int_equal(n, 1);
	assert_int_equal(a.result, 42);
	assert_int_equal(pvfs_queue_free(q), 0);
	sem_destroy(&go);
}

/* It is told late that a call has ended, but it is told. */
static void end_lost(void **state)
{
	struct pvfs_async a = { .op = PVFS_ASYNC_CALL, .call = when_told };
	struct pvfs_fs fs = { .pid = getpid() };
	static struct waiter w;
	struct pvfs_queue *q;
	static sem_t go;

	alarm(100);
	sem_init(&go, 0, 0);
	a.arg = &go;
	assert_int_equal(pvfs_queue_new(&fs, 1, &q), 0);
	assert_int_equal(pvfs_submit(q, &a), 0);
	waiter_begin(&w, q);
	to_lose = 1;
	sem_post(&go);
	waiter_end(&w);
	assert_int_equal(to_lose, 0);
	assert_int_equal(w.n, 1);
	assert_ptr_equal(w.got, &a);
	assert_int_equal(pvfs_queue_free(q), 0);
	sem_destroy(&go);
}

static void signal_lost(void **state)
{
	struct pvfs_fs fs = { .pid = getpid() };
	struct pvfs_async met[THREADS], a = { .op = PVFS_ASYNC_CALL, .call = answer }, *got;
	struct pvfs_queue *q;
	u32 i;

	alarm(100);
	pthread_barrier_init(&all_there, NULL, THREADS);
	assert_int_equal(pvfs_queue_new(&fs, THREADS, &q), 0);
	for (i = 0; i < THREADS; i++) {
		met[i] = (struct pvfs_async){ .op = PVFS_ASYNC_CALL, .call = meet };
		assert_int_equal(pvfs_submit(q, &met[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pvfs_wait(q, &got, 1, PATIENCE_MS), 1);
	/* From the end of its call until it waits for another a thread holds the lock, with which we fetched it: all wait. */
	to_lose = 1;
	assert_int_equal(pvfs_submit(q, &a), 0);
	assert_int_equal(to_lose, 0);
	got = NULL;
	assert_int_equal(pvfs_wait(q, &got, 1, PATIENCE_MS), 1);
	assert_ptr_equal(got, &a);
	assert_int_equal(a.result, 42);
	assert_int_equal(pvfs_queue_free(q), 0);
	pthread_barrier_destroy(&all_there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_lost), cmocka_unit_test(all_waiters_end), cmocka_unit_test(end_lost),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lib_queue", tests, NULL, NULL);
}
