// SPDX-License-Identifier: GPL-2.0
/*
 * wait.c - what handlers wait for: iods, the log's flush, another truncation, a while. On a task the
 * request is parked (park.h), on a plain thread it blocks.
 *
 * Nothing is waited for inside the database: recovery in place, which waits for all who are inside,
 * would wait for an iod as well, or for a task that no thread is left to go on with. Who comes back
 * to another generation of the database may have lost what it had committed: @lost makes the next
 * transaction end with -ERESTART, and the request begins anew.
 *
 * The log is flushed by one thread for all. A request that has committed takes a place in the line;
 * who stands there when a flush begins, has its commit record in the log by then, and is released
 * when that flush is over, in the order of the line. So one flush answers any number of requests,
 * however few threads there are.
 */
#include "mgr.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 5u	/* between two looks of a thread in the background whether its calls ended */
#define QUICK_US 200u	/* a flush that is not worth two switches of threads */

/* Out of the database, to wait. */
static void step_out(struct mgr_op *op)
{
	mdb_leave(op->m->db);
}

static void step_in(struct mgr_op *op)
{
	if (mdb_enter(op->m->db) != op->db_gen)
		op->lost = true;
}

/* ---- iods ---- */

static void calls_done(void *arg)
{
	mgr_task_wake(arg);
}

/* Calls whose end nobody may see any more. Referenced by who makes them, and until all have ended. */
struct loose_calls {
	atomic_uint refs;
	atomic_bool done;
	struct mgr_iocall calls[];
};

static void loose_put(struct loose_calls *l)
{
	if (atomic_fetch_sub(&l->refs, 1) == 1)
		free(l);
}

static void loose_done(void *arg)
{
	struct loose_calls *l = arg;

	atomic_store(&l->done, true);
	loose_put(l);
}

/* On a thread in the background, which is not to be waited for when it has to stop. */
static void call_loosely(struct mgr *m, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms)
{
	struct loose_calls *l = malloc(sizeof(*l) + n * sizeof(*calls));
	bool stop = false;
	u32 i;

	for (i = 0; i < n; i++)
		calls[i].err = l ? -ECANCELED : -ENOMEM;
	if (!l)
		return;
	atomic_init(&l->refs, 2);
	atomic_init(&l->done, false);
	memcpy(l->calls, calls, n * sizeof(*calls));
	m->iod_ops->start(m->iod_arg, l->calls, n, timeout_ms, loose_done, l);
	while (!atomic_load(&l->done) && !stop)
		stop = mgr_bg_wait(m, mgr_mono_ms() + LOOK_MS);
	if (!stop)
		memcpy(calls, l->calls, n * sizeof(*calls));
	loose_put(l);
}

void mgr_iods_call(struct mgr_op *op, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms)
{
	const struct mgr_iod_ops *ops = op->m->iod_ops;
	struct mgr_task *t = mgr_task_self();

	if (!n)
		return;
	step_out(op);
	if (t && ops->start) {
		ops->start(op->m->iod_arg, calls, n, timeout_ms, calls_done, t);
		mgr_task_park();
	} else if (op->gives_up && ops->start) {
		call_loosely(op->m, calls, n, timeout_ms);
	} else {
		ops->call(op->m->iod_arg, calls, n, timeout_ms);
	}
	step_in(op);
}

/* ---- time ---- */

void mgr_pause(struct mgr_op *op, unsigned int ms)
{
	step_out(op);
	if (mgr_task_self())
		mgr_task_park_until(mgr_mono_ms() + ms);
	else
		usleep(ms * 1000);
	step_in(op);
}

/* ---- a disk ---- */

int mgr_disk_begin(struct mgr_op *op)
{
	step_out(op);
	mgr_task_block();
	step_in(op);
	if (!op->lost)
		return 0;
	mgr_task_unblock();
	return -ERESTART;
}

void mgr_disk_end(void)
{
	mgr_task_unblock();
}

/* ---- one truncation at a time ---- */

int mgr_file_lock(struct mgr_op *op, u64 ino, unsigned int timeout_ms)
{
	int err = mgr_opens_lock(&op->m->opens, ino, 0);

	if (err != -EAGAIN)
		return err;
	step_out(op);
	err = mgr_opens_lock(&op->m->opens, ino, timeout_ms);
	step_in(op);
	return err;
}

/* ---- the log ---- */

/* A place in the line. */
struct mgr_log_wait {
	struct mgr_log_wait *next;
	struct mgr_task *task;
	u64 db_gen;			/* of the database that has its commit */
	int err;
};

static u64 now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

/* Inside the database. */
static int flush(struct mgr *m)
{
	u64 t0 = now_us(), took;
	int err = mdb_sync(m->db);

	took = now_us() - t0;
	took = (3ull * atomic_load_explicit(&m->log.took_us, memory_order_relaxed) + took) / 4;
	atomic_store_explicit(&m->log.took_us, min(took, (u64)1000000), memory_order_relaxed);
	atomic_fetch_add_explicit(&m->log.flushes, 1, memory_order_relaxed);
	return err;
}

static void *log_thread(void *arg)
{
	struct mgr *m = arg;
	struct mgr_log *l = &m->log;
	struct mgr_log_wait *w, *line;
	u64 gen, n;
	int err;

	pthread_mutex_lock(&l->lock);
	for (;;) {
		line = l->line;
		if (!line) {
			if (l->stop)
				break;
			pthread_cond_wait(&l->cond, &l->lock);
			continue;
		}
		l->line = NULL;
		l->tail = &l->line;
		pthread_mutex_unlock(&l->lock);
		gen = mdb_enter(m->db);
		err = flush(m);
		mdb_leave(m->db);
		for (n = 0, w = line; w; w = w->next)
			n++;
		/* Before anybody is told, who may look at it. */
		atomic_fetch_add_explicit(&l->released, n, memory_order_relaxed);
		if (n > atomic_load_explicit(&l->most, memory_order_relaxed))
			atomic_store_explicit(&l->most, n, memory_order_relaxed);
		while ((w = line)) {
			line = w->next;
			/* Recovery undid what was not flushed before. */
			w->err = w->db_gen == gen ? err : -ERESTART;
			mgr_task_wake(w->task);	/* @w is gone */
		}
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Return: true when it was flushed here, with the result in *@ret. */
static bool flush_alone(struct mgr_op *op, int *ret)
{
	struct mgr_log *l = &op->m->log;

	if (atomic_load_explicit(&l->took_us, memory_order_relaxed) > QUICK_US ||
	    atomic_exchange(&l->alone, true))
		return false;
	*ret = flush(op->m);
	atomic_store(&l->alone, false);
	return true;
}

int mgr_log_wait(struct mgr_op *op)
{
	struct mgr_log *l = &op->m->log;
	struct mgr_log_wait w = { .task = mgr_task_self(), .db_gen = op->db_gen };

	if (op->lost)
		return -ERESTART;
	if (!w.task || !l->running)
		return mdb_sync(op->m->db);
	if (flush_alone(op, &w.err))
		return w.err;
	step_out(op);
	pthread_mutex_lock(&l->lock);
	*l->tail = &w;
	l->tail = &w.next;
	pthread_cond_signal(&l->cond);
	pthread_mutex_unlock(&l->lock);
	mgr_task_park();
	step_in(op);
	return w.err;
}

void mgr_log_init(struct mgr_log *l)
{
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->cond, NULL);
	l->tail = &l->line;
}

void mgr_log_fini(struct mgr_log *l)
{
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->cond);
}

/**
 * mgr_log_start - start the thread that flushes the log
 *
 * Where commits need no flush (durability "write") there is none.
 *
 * Return: 0 or -errno.
 */
int mgr_log_start(struct mgr *m)
{
	int err;

	if (m->conf->durability == PVFS_DURABLE_WRITE)
		return 0;
	m->log.stop = false;
	err = pthread_create(&m->log.thread, NULL, log_thread, m);
	m->log.running = !err;
	return -err;
}

/* Nobody waits any more. */
void mgr_log_stop(struct mgr *m)
{
	if (!m->log.running)
		return;
	pthread_mutex_lock(&m->log.lock);
	m->log.stop = true;
	pthread_cond_signal(&m->log.cond);
	pthread_mutex_unlock(&m->log.lock);
	pthread_join(m->log.thread, NULL);
	m->log.running = false;
}
