// SPDX-License-Identifier: GPL-2.0
/*
 * mdb.c - what every database below the seam shares: counting who is inside, and recovery in place.
 *
 * Recovery has to close every handle, so it waits until no thread is between mdb_enter() and
 * mdb_leave(), and holds new ones back meanwhile. The common case costs two atomic operations a
 * request.
 */
#include "mdb.h"
#include "../common/log.h"
#include <time.h>
#include <unistd.h>

static u64 mono_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

void mdb_base_init(struct mdb *db, const struct mdb_ops *ops)
{
	db->ops = ops;
	atomic_init(&db->users, 0);
	atomic_init(&db->restarting, false);
	pthread_mutex_init(&db->lock, NULL);
	pthread_cond_init(&db->cond, NULL);
	db->generation = 1;
	db->failed_at = 0;
	db->failed_err = 0;
}

void mdb_base_fini(struct mdb *db)
{
	pthread_mutex_destroy(&db->lock);
	pthread_cond_destroy(&db->cond);
}

u64 mdb_enter(struct mdb *db)
{
	u64 generation;

	for (;;) {
		/*
		 * Count first, look second; mdb_restart() sets its flag first and looks at the
		 * count second. Both are sequentially consistent, so one of the two sees the other.
		 */
		atomic_fetch_add(&db->users, 1);
		if (likely(!atomic_load(&db->restarting)))
			break;
		atomic_fetch_sub(&db->users, 1);
		pthread_mutex_lock(&db->lock);
		while (atomic_load(&db->restarting))
			pthread_cond_wait(&db->cond, &db->lock);
		pthread_mutex_unlock(&db->lock);
	}
	/* Stable while we are inside: only a restart changes it. */
	generation = db->generation;
	return generation;
}

void mdb_leave(struct mdb *db)
{
	atomic_fetch_sub(&db->users, 1);
}

int mdb_restart(struct mdb *db, u64 generation)
{
	int err = 0;

	pthread_mutex_lock(&db->lock);
	while (atomic_load(&db->restarting))
		pthread_cond_wait(&db->cond, &db->lock);
	if (db->generation != generation)
		goto out;
	if (db->failed_at && mono_ms() - db->failed_at < 1000) {
		err = db->failed_err;
		goto out;
	}
	atomic_store(&db->restarting, true);
	pthread_mutex_unlock(&db->lock);

	while (atomic_load(&db->users)) {
		/*
		 * Locks that an aborted transaction could not release are waited for: nobody else
		 * would wake those.
		 */
		db->ops->give_up(db);
		usleep(2000);
	}
	err = db->ops->reopen(db);

	pthread_mutex_lock(&db->lock);
	if (err) {
		db->failed_at = mono_ms();
		db->failed_err = err;
		pvfs_error("database: recovery failed: %s; trying again", strerror(-err));
	} else {
		db->failed_at = 0;
		db->generation++;
		pvfs_warn("database: recovered in place");
	}
	atomic_store(&db->restarting, false);
	pthread_cond_broadcast(&db->cond);
out:
	pthread_mutex_unlock(&db->lock);
	return err;
}
