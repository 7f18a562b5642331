// SPDX-License-Identifier: LGPL-2.1
/*
 * queue.c - calls that are not waited for: threads make them, as many at once as the queue allows,
 * and a descriptor says that some have ended. Threads are started when there is work for them, and
 * end with the queue.
 */
#include "lib.h"
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define CALLS_DEFAULT 16u
#define CALLS_MAX 1024u
#define LOOK_SECONDS 2		/* at most, until who waits looks whether there is something for him */

struct list {
	struct pvfs_async *first, **end;	/* by next_of() */
};

struct pvfs_queue {
	struct pvfs_fs *fs;
	int efd;			/* not 0 while @done has something in it */
	u32 max;
	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t work;		/* @waiting is not empty, or @stop */
	pthread_cond_t ended;		/* @done is not empty, or @calls is 0 */
	struct list waiting, done;
	u32 calls;			/* submitted and not in @done yet */
	u32 queued;			/* of them those in @waiting */
	u32 idle, nthreads;
	bool stop;
	pthread_t threads[];		/* @max */
};

static struct pvfs_async **next_of(struct pvfs_async *a)
{
	return (struct pvfs_async **)&a->priv[0];
}

static void list_init(struct list *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void list_add(struct list *l, struct pvfs_async *a)
{
	*next_of(a) = NULL;
	*l->end = a;
	l->end = next_of(a);
}

static struct pvfs_async *list_take(struct list *l)
{
	struct pvfs_async *a = l->first;

	l->first = *next_of(a);
	if (!l->first)
		l->end = &l->first;
	return a;
}

static ssize_t make_call(struct pvfs_async *a)
{
	switch (a->op) {
	case PVFS_ASYNC_READ:
	case PVFS_ASYNC_WRITE:
		if (a->nmem > IOV_MAX)
			return -EINVAL;
		return a->op == PVFS_ASYNC_READ ? pvfs_preadv(a->file, a->mem, a->nmem, a->off) :
						  pvfs_pwritev(a->file, a->mem, a->nmem, a->off);
	case PVFS_ASYNC_READ_LIST:
		return pvfs_read_list(a->file, a->mem, a->nmem, a->pieces, a->nfile);
	case PVFS_ASYNC_WRITE_LIST:
		return pvfs_write_list(a->file, a->mem, a->nmem, a->pieces, a->nfile);
	case PVFS_ASYNC_READ_PATTERN:
		return pvfs_read_pattern(a->file, a->mem, a->nmem, a->patterns, a->nfile);
	case PVFS_ASYNC_WRITE_PATTERN:
		return pvfs_write_pattern(a->file, a->mem, a->nmem, a->patterns, a->nfile);
	case PVFS_ASYNC_FSYNC:
		return pvfs_fsync(a->file);
	case PVFS_ASYNC_FDATASYNC:
		return pvfs_fdatasync(a->file);
	case PVFS_ASYNC_CALL:
		return a->call(a->arg);
	}
	return -EINVAL;
}

/* A signal may be lost where several wait: glibc's bug 25847, until 2.41. */
static struct timespec next_look(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += LOOK_SECONDS;
	return ts;
}

static void *thread(void *arg)
{
	struct pvfs_queue *q = arg;
	struct pvfs_async *a;
	struct timespec look;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		if (!q->waiting.first) {
			if (q->stop)
				break;
			q->idle++;
			look = next_look();
			pthread_cond_clockwait(&q->work, &q->lock, CLOCK_MONOTONIC, &look);
			q->idle--;
			continue;
		}
		a = list_take(&q->waiting);
		q->queued--;
		pthread_mutex_unlock(&q->lock);
		a->result = make_call(a);
		pthread_mutex_lock(&q->lock);
		q->calls--;
		if (!q->done.first)
			eventfd_write(q->efd, 1);
		list_add(&q->done, a);
		pthread_cond_signal(&q->ended);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

int pvfs_queue_new(struct pvfs_fs *fs, unsigned int calls, struct pvfs_queue **ret)
{
	struct pvfs_queue *q;
	pthread_condattr_t attr;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	if (calls > CALLS_MAX)
		return -EINVAL;
	calls = calls ?: CALLS_DEFAULT;
	q = calloc(1, sizeof(*q) + calls * sizeof(q->threads[0]));
	if (!q)
		return -ENOMEM;
	q->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->efd < 0) {
		err = -errno;
		free(q);
		return err;
	}
	q->fs = fs;
	q->max = calls;
	list_init(&q->waiting);
	list_init(&q->done);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->ended, &attr);
	pthread_condattr_destroy(&attr);
	atomic_fetch_add(&fs->nqueues, 1);
	*ret = q;
	return 0;
}

int pvfs_queue_fd(const struct pvfs_queue *q)
{
	return q->efd;
}

/* One more thread, if there is work for it. Return: 0, also when others can do it; or -errno. */
static int more_threads(struct pvfs_queue *q)
{
	int err;

	if (q->queued <= q->idle || q->nthreads == q->max)
		return 0;
	err = pvfs_thread_start(&q->threads[q->nthreads], thread, q);
	if (!err)
		q->nthreads++;
	return q->nthreads ? 0 : err;
}

int pvfs_submit(struct pvfs_queue *q, struct pvfs_async *a)
{
	int err = lib_fs_check(q->fs);

	if (err)
		return err;
	if ((unsigned int)a->op > PVFS_ASYNC_CALL || (a->op == PVFS_ASYNC_CALL ? !a->call : !a->file))
		return -EINVAL;
	pthread_mutex_lock(&q->lock);
	q->queued++;
	err = more_threads(q);
	if (!err) {
		q->calls++;
		list_add(&q->waiting, a);
		pthread_cond_signal(&q->work);
	} else {
		q->queued--;
	}
	pthread_mutex_unlock(&q->lock);
	return err;
}

int pvfs_wait(struct pvfs_queue *q, struct pvfs_async **ret, unsigned int n, int timeout_ms)
{
	struct timespec end;
	unsigned int got;
	eventfd_t unused;
	int err = lib_fs_check(q->fs);

	if (err)
		return err;
	if (timeout_ms > 0) {
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += timeout_ms / 1000;
		end.tv_nsec += timeout_ms % 1000 * 1000000l;
		end.tv_sec += end.tv_nsec / 1000000000;
		end.tv_nsec %= 1000000000;
	}
	pthread_mutex_lock(&q->lock);
	while (n && !q->done.first && q->calls && timeout_ms && err != ETIMEDOUT) {
		if (timeout_ms < 0)
			end = next_look();
		err = pthread_cond_timedwait(&q->ended, &q->lock, &end);
		if (timeout_ms < 0)
			err = 0;
	}
	for (got = 0; got < n && q->done.first; got++)
		ret[got] = list_take(&q->done);
	if (got && !q->done.first)
		eventfd_read(q->efd, &unused);
	/* What is left may be another waiter's; and with nothing under way there is nothing to wait for. */
	if (q->done.first || !q->calls)
		pthread_cond_signal(&q->ended);
	pthread_mutex_unlock(&q->lock);
	return got;
}

int pvfs_queue_free(struct pvfs_queue *q)
{
	struct pvfs_fs *fs;
	u32 i;
	int err;

	if (!q)
		return 0;
	err = lib_fs_check(q->fs);
	if (err)
		return err;
	pthread_mutex_lock(&q->lock);
	if (q->calls || q->done.first) {
		pthread_mutex_unlock(&q->lock);
		return -EBUSY;
	}
	q->stop = true;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	for (i = 0; i < q->nthreads; i++)
		pthread_join(q->threads[i], NULL);
	fs = q->fs;
	close(q->efd);
	pthread_cond_destroy(&q->ended);
	pthread_cond_destroy(&q->work);
	pthread_mutex_destroy(&q->lock);
	free(q);
	atomic_fetch_sub(&fs->nqueues, 1);
	return 0;
}
