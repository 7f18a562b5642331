// SPDX-License-Identifier: GPL-2.0
/*
 * iod_fds_test.c - the cache of open datafiles, when one thread comes between two steps of another. Who is to be late is
 * held inside the store, before a lock or at the clock, until the other has done what it can do meanwhile.
 */
#include "iod/fdcache.h"
#include "iod/store.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define LIMIT 16u		/* of datafiles that are kept open; and so there is one stripe */

/* Where a thread can be held: when it has, or has not yet, had this from the store. */
enum place { NOWHERE, BEFORE_OPEN, AFTER_OPEN, BEFORE_REMOVE, AFTER_DRAFT, BEFORE_PUBLISH, BEFORE_LOCK, AT_CLOCK };

struct thread {
	void (*fn)(struct thread *t);
	enum place place;
	u32 pass_by;		/* so often before that */
	struct pvfs_fid fid;
	struct iod_fdent *e;	/* what came of it */
	int err;
	pthread_t id;
	sem_t halted;		/* it is held, waits for a lock that another has, or has ended */
	sem_t go;
	bool held;
};

static char dir[64];
static struct iod_store *store;
static const struct iod_store_ops *real;
static struct iod_fds *fds;
static atomic_uint opens, closes;
static __thread struct thread *me;

static void at(enum place place)
{
	if (!me || me->place != place || me->pass_by-- > 0)
		return;
	me->place = NOWHERE;
	me->held = true;
	sem_post(&me->halted);
	while (sem_wait(&me->go))
		;
}

/* ---- what is called ---- */

int pthread_mutex_lock(pthread_mutex_t *m)
{
	/* timedlock's, which has to have one */
	struct timespec never = { .tv_sec = 1ll << 33 };
	int err;

	at(BEFORE_LOCK);
	err = pthread_mutex_trylock(m);
	if (err != EBUSY)
		return err;
	if (me)
		sem_post(&me->halted);
	return pthread_mutex_timedlock(m, &never);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	at(AT_CLOCK);
	return syscall(SYS_clock_gettime, clock, ret);
}

static int store_open(struct iod_store *s, const struct pvfs_fid *fid, bool create, struct iod_file *f)
{
	int err;

	at(BEFORE_OPEN);
	err = real->open(s, fid, create, f);
	opens += !err;
	at(AFTER_OPEN);
	return err;
}

static void store_close(struct iod_store *s, struct iod_file *f)
{
	closes++;
	real->close(s, f);
}

static int store_remove(struct iod_store *s, const struct pvfs_fid *fid)
{
	at(BEFORE_REMOVE);
	return real->remove(s, fid);
}

static int store_draft(struct iod_store *s, const struct pvfs_fid *fid, const void *data, u32 len,
		       struct iod_file *f)
{
	int err = real->draft(s, fid, data, len, f);

	opens += !err;
	at(AFTER_DRAFT);
	return err;
}

static int store_publish(struct iod_store *s, struct iod_file *f)
{
	at(BEFORE_PUBLISH);
	return real->publish(s, f);
}

/* The real one would write everything that this machine has to write. */
static int store_sync_all(struct iod_store *s)
{
	return 0;
}

static int setup(void **state)
{
	static struct iod_store_ops ops;

	alarm(100);
	opens = closes = 0;
	strcpy(dir, "/tmp/pvfs-fds-XXXXXX");
	if (!mkdtemp(dir) || iod_store_posix_open(dir, 0, &store))
		return -1;
	real = store->ops;
	ops = *real;
	ops.open = store_open;
	ops.close = store_close;
	ops.remove = store_remove;
	ops.draft = store_draft;
	ops.publish = store_publish;
	ops.sync_all = store_sync_all;
	store->ops = &ops;
	return iod_fds_new(store, NULL, LIMIT, &fds);
}

static int teardown(void **state)
{
	char cmd[80];

	iod_fds_free(fds);
	store->ops->free(store);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	/* Nothing is left open, or was closed twice. */
	return system(cmd) || opens != closes;
}

/* ---- threads ---- */

static void *thread_main(void *arg)
{
	me = arg;
	me->fn(me);
	sem_post(&me->halted);
	return NULL;
}

/* Returns when it has gone as far as it can; *t has what it is to do, and where it is to be held. */
static void begin(struct thread *t)
{
	sem_init(&t->halted, 0, 0);
	sem_init(&t->go, 0, 0);
	assert_int_equal(pthread_create(&t->id, NULL, thread_main, t), 0);
	while (sem_wait(&t->halted))
		;
}

static void end(struct thread *t)
{
	sem_post(&t->go);
	pthread_join(t->id, NULL);
	sem_destroy(&t->halted);
	sem_destroy(&t->go);
}

static void get(struct thread *t)
{
	t->err = iod_fds_get(fds, &t->fid, true, &t->e);
}

static void fill(struct thread *t)
{
	t->err = iod_fds_fill(fds, &t->fid, "bytes", 5);
}

static void drop(struct thread *t)
{
	t->err = iod_fds_remove(fds, &t->fid);
}

static void wrote(struct thread *t)
{
	iod_fds_wrote(t->e, 0);
}

static const struct pvfs_fid one = { .ino = 42, .gen = 1 };

/* There is no such datafile any more, nothing brings it back, and nobody finds it open. */
static void is_gone(void)
{
	struct iod_fdent *e;
	struct iod_stat st;

	assert_int_equal(real->stat(store, &one, NULL, &st), -ENOENT);
	assert_null(iod_fds_lookup(fds, &one));
	assert_int_equal(iod_fds_get(fds, &one, true, &e), -ESTALE);
	assert_int_equal(real->stat(store, &one, NULL, &st), -ENOENT);
}

/* @first is held at @place, the other comes, @first goes on. */
static void between(struct thread *first, struct thread *second)
{
	begin(first);
	assert_true(first->held);
	begin(second);
	/* If it waits for the first one it ends behind it. */
	end(first);
	end(second);
}

/* ---- tests ---- */

/* It is removed while it is being made, by who has found that there is none, */
static void removed_while_made(void **state)
{
	struct thread maker = { .fn = get, .fid = one, .place = BEFORE_OPEN };
	struct thread remover = { .fn = drop, .fid = one };

	between(&maker, &remover);
	assert_int_equal(remover.err, 0);
	is_gone();
	if (!maker.err)
		iod_fds_put(maker.e);
	is_gone();
}

/* or has made it and not told. */
static void removed_when_made(void **state)
{
	struct thread maker = { .fn = get, .fid = one, .place = AFTER_OPEN };
	struct thread remover = { .fn = drop, .fid = one };

	between(&maker, &remover);
	assert_int_equal(remover.err, 0);
	assert_int_equal(maker.err, 0);
	is_gone();
	iod_fds_put(maker.e);
	is_gone();
}

/* Who looked, and did not find it, comes to make it when it has been removed. */
static void made_late(void **state)
{
	struct thread remover = { .fn = drop, .fid = one };
	/* The table's lock, then that of who makes and removes. */
	struct thread maker = { .fn = get, .fid = one, .place = BEFORE_LOCK, .pass_by = 1 };

	between(&maker, &remover);
	assert_int_equal(remover.err, 0);
	assert_int_equal(maker.err, -ESTALE);
	is_gone();
}

/* The same while it is being removed, its file being still there. */
static void made_while_removed(void **state)
{
	struct thread first = { .fn = get, .fid = one };
	struct thread remover = { .fn = drop, .fid = one, .place = BEFORE_REMOVE };
	struct thread maker = { .fn = get, .fid = one };

	begin(&first);
	end(&first);
	assert_int_equal(first.err, 0);
	iod_fds_put(first.e);
	/* Not open, or it would be found. */
	iod_fds_free(fds);
	assert_int_equal(iod_fds_new(store, NULL, LIMIT, &fds), 0);
	between(&remover, &maker);
	assert_int_equal(remover.err, 0);
	assert_int_equal(maker.err, -ESTALE);
	is_gone();
}

/* Two look at once and find none: one opens it, for both. */
static void opened_once(void **state)
{
	struct thread a = { .fn = get, .fid = one, .place = BEFORE_LOCK, .pass_by = 1 };
	struct thread b = { .fn = get, .fid = one };

	between(&a, &b);
	assert_int_equal(a.err, 0);
	assert_int_equal(b.err, 0);
	assert_ptr_equal(a.e, b.e);
	assert_int_equal(opens, 1);
	iod_fds_put(a.e);
	iod_fds_put(b.e);
}

/* It is removed when its bytes are there and its name is not; */
static void removed_when_drafted(void **state)
{
	struct thread filler = { .fn = fill, .fid = one, .place = AFTER_DRAFT };
	struct thread remover = { .fn = drop, .fid = one };

	between(&filler, &remover);
	assert_int_equal(remover.err, 0);
	assert_int_equal(filler.err, 0);
	is_gone();
}

/* or when it is just getting it. */
static void removed_while_published(void **state)
{
	struct thread filler = { .fn = fill, .fid = one, .place = BEFORE_PUBLISH };
	struct thread remover = { .fn = drop, .fid = one };

	between(&filler, &remover);
	assert_int_equal(remover.err, 0);
	assert_int_equal(filler.err, 0);
	is_gone();
}

/* Two writes end at once. Between them the store is synced, but the one that comes last began to say so before. */
static void noted_late(void **state)
{
	struct thread late = { .fn = wrote, .place = AT_CLOCK };
	struct iod_fdent *e;
	struct pvfs_fid fid;
	u64 due;
	u32 i;

	assert_int_equal(iod_fds_get(fds, &one, true, &late.e), 0);
	begin(&late);
	assert_true(late.held);
	/* So many that there is a pass, the first one. */
	for (i = 0; i <= LIMIT; i++) {
		fid = (struct pvfs_fid){ .ino = 100 + i, .gen = 1 };
		assert_int_equal(iod_fds_get(fds, &fid, true, &e), 0);
		iod_fds_wrote(e, 0);
		iod_fds_put(e);
	}
	iod_fds_wrote(late.e, 0);
	due = late.e->unsynced;
	assert_true(due > 1);
	end(&late);
	assert_int_equal(late.e->unsynced, due);
	iod_fds_put(late.e);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(removed_while_made), T(removed_when_made), T(made_late), T(made_while_removed), T(opened_once),
		T(removed_when_drafted), T(removed_while_published), T(noted_late),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_fds", tests, NULL, NULL);
}
