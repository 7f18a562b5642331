// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_tasks_test.c - the manager's tasks and their workers, by themselves: each goes on also when the signal that says so
 * to an idle worker is lost. What requests make of them is in mgr_park_test.c.
 */
#include "mgr/mgr.h"
#include "lost_signal.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define WORKERS	2u
#define PATIENCE_S 20		/* an idle worker looks every 2 s */

static struct mgr_tasks ts;
static pthread_barrier_t all_there;

struct step {
	struct mgr_job job;
	struct mgr_task *task;
	sem_t done;
};

static void step_init(struct step *s, void (*fn)(struct mgr_job *job))
{
	*s = (struct step){ .job.fn = fn };
	sem_init(&s->done, 0, 0);
}

static bool step_ended(struct step *s)
{
	struct timespec until;
	bool ret;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	ret = !sem_clockwait(&s->done, CLOCK_MONOTONIC, &until);
	if (!ret) {
		/* So that there is an end to this. */
		pthread_mutex_lock(&ts.lock);
		pthread_cond_broadcast(&ts.work);
		pthread_mutex_unlock(&ts.lock);
		while (sem_wait(&s->done))
			;
	}
	sem_destroy(&s->done);
	return ret;
}

static void just_run(struct mgr_job *job)
{
	sem_post(&container_of(job, struct step, job)->done);
}

static void meet(struct mgr_job *job)
{
	pthread_barrier_wait(&all_there);
}

static void be_woken(struct mgr_job *job)
{
	struct step *s = container_of(job, struct step, job);

	s->task = mgr_task_self();
	mgr_task_park();
	sem_post(&s->done);
}

static void wait_a_little(struct mgr_job *job)
{
	mgr_task_park_until(mgr_mono_ms() + 10);
	sem_post(&container_of(job, struct step, job)->done);
}

/* Returns when all workers wait for work, and nothing is about to wake one. */
static int setup(void **state)
{
	static struct step met[WORKERS];
	u32 i;

	alarm(100);
	memset(&ts, 0, sizeof(ts));
	mgr_tasks_init(&ts);
	pthread_barrier_init(&all_there, NULL, WORKERS);
	if (mgr_tasks_start(&ts, WORKERS))
		return -1;
	for (i = 0; i < WORKERS; i++) {
		met[i].job.fn = meet;
		mgr_task_queue(&ts, &met[i].job);
	}
	/* From the end of its job until it waits a worker holds the lock. */
	pthread_mutex_lock(&ts.lock);
	while (ts.n || !TAILQ_EMPTY(&ts.jobs))
		pthread_cond_wait(&ts.idle, &ts.lock);
	pthread_mutex_unlock(&ts.lock);
	to_lose = 1;
	return 0;
}

static int teardown(void **state)
{
	mgr_tasks_stop(&ts);
	mgr_tasks_fini(&ts);
	pthread_barrier_destroy(&all_there);
	return 0;
}

static void queued(void **state)
{
	struct step s;

	step_init(&s, just_run);
	mgr_task_queue(&ts, &s.job);
	assert_int_equal(to_lose, 0);
	assert_true(step_ended(&s));
}

static void woken(void **state)
{
	struct step s;

	step_init(&s, be_woken);
	mgr_task_begin(&ts, &s.job);
	assert_int_equal(to_lose, 1);
	mgr_task_wake(s.task);
	assert_int_equal(to_lose, 0);
	assert_true(step_ended(&s));
}

/* No worker knows until when it may sleep. */
static void timed(void **state)
{
	struct step s;

	step_init(&s, wait_a_little);
	mgr_task_begin(&ts, &s.job);
	assert_int_equal(to_lose, 0);
	assert_true(step_ended(&s));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(queued), T(woken), T(timed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_tasks", tests, NULL, NULL);
}
