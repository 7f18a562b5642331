// SPDX-License-Identifier: GPL-2.0
/*
 * loss.c - see loss.h. The number is in a file of the store, overwritten in place.
 *
 * It has to last until the machine is restarted, when the verifier changes anyhow: so the kernel's
 * memory of the file is enough, and a disk that takes nothing any more does no harm. Where not even
 * that can be had (the file system has become read-only), a daemon that is started counts as one
 * whose predecessor lost something.
 */
#include "loss.h"
#include "../common/log.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define NAME "pvfs.lost"

struct iod_loss {
	_Atomic u64 n;
	pthread_mutex_t lock;	/* one note at a time */
	int fd;			/* -1: nothing is kept */
};

static u64 random_number(void)
{
	u64 v;

	return getrandom(&v, sizeof(v), 0) == sizeof(v) ? v : (u64)getpid() << 32 | 1;
}

/* Return: it can be found there by the next daemon. */
static bool save(struct iod_loss *l)
{
	u8 rec[sizeof(u64)];

	if (l->fd < 0)
		return true;
	put_unaligned_le64(atomic_load(&l->n), rec);
	if (pwrite(l->fd, rec, sizeof(rec), 0) != sizeof(rec))
		return false;
	fdatasync(l->fd);	/* nice to have, see above */
	return true;
}

/* A new store, or one of a time before this was counted, has no file. */
static bool load(struct iod_loss *l, int dfd)
{
	u8 rec[sizeof(u64)];
	ssize_t n;

	l->fd = openat(dfd, NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0)
		return false;
	errno = 0;
	n = pread(l->fd, rec, sizeof(rec), 0);
	if (n == sizeof(rec))
		atomic_store(&l->n, get_unaligned_le64(rec));
	/* Written at once, so that there is room for it when it counts. */
	return (n == sizeof(rec) || !n) && save(l);
}

int iod_loss_open(const char *dir, struct iod_loss **ret)
{
	struct iod_loss *l = calloc(1, sizeof(*l));
	int dfd;

	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->fd = -1;
	dfd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir && (dfd < 0 || !load(l, dfd))) {
		pvfs_warn("%s/" NAME ": %s; clients write unsynced data once more", dir,
			  errno ? strerror(errno) : "it has the wrong size");
		atomic_store(&l->n, random_number());
		save(l);
	}
	if (dfd >= 0)
		close(dfd);
	*ret = l;
	return 0;
}

void iod_loss_close(struct iod_loss *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void iod_loss_note(struct iod_loss *l)
{
	if (!l)
		return;
	atomic_fetch_add(&l->n, 1);
	pthread_mutex_lock(&l->lock);
	if (!save(l))
		pvfs_log_limited(PVFS_LOG_ERROR,
				 "store: that a sync failed can't be kept (%s): a restart will count as one more",
				 strerror(errno));
	pthread_mutex_unlock(&l->lock);
}

u64 iod_loss_count(struct iod_loss *l)
{
	return atomic_load(&l->n);
}
