// SPDX-License-Identifier: GPL-2.0
/*
 * lib_queue_test.c - libpvfs' queues: calls are made also when the signal that says so to an idle thread is lost.
 */
#include "lib/lib.h"
#include "lost_signal.h"
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
		cmocka_unit_test(signal_lost),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lib_queue", tests, NULL, NULL);
}
