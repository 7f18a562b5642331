// SPDX-License-Identifier: GPL-2.0
/*
 * fence.c - see fence.h. A file of numbers, appended to, and all of them sorted in memory: evictions are rare.
 */
#include "fence.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "pvfs.evicted"
#define MOST 65536u		/* the newest; sessions count up, and so old ones have no client any more */

struct iod_fence {
	pthread_rwlock_t lock;	/* protects all below */
	int fd;			/* -1: nothing is kept */
	u32 n;
	u64 id[MOST];		/* sorted */
};

/* Where @session is, or would be. */
static u32 place(const struct iod_fence *f, u64 session)
{
	u32 lo = 0, hi = f->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (f->id[mid] < session)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool found(const struct iod_fence *f, u32 at, u64 session)
{
	return at < f->n && f->id[at] == session;
}

/* Return: it is new. */
static bool insert(struct iod_fence *f, u64 session)
{
	u32 at = place(f, session);

	if (found(f, at, session))
		return false;
	if (f->n == MOST) {
		if (!at)
			return false;
		memmove(f->id, f->id + 1, --at * sizeof(f->id[0]));
		f->n--;
	} else {
		memmove(f->id + at + 1, f->id + at, (f->n - at) * sizeof(f->id[0]));
	}
	f->id[at] = session;
	f->n++;
	return true;
}

/* A number that was not written to its end counts for nothing: its eviction was not answered. */
static int load(struct iod_fence *f)
{
	struct stat st;
	u8 rec[8];
	off_t at;
	ssize_t n;

	if (fstat(f->fd, &st))
		return -errno;
	for (at = 0; at + (off_t)sizeof(rec) <= st.st_size; at += sizeof(rec)) {
		n = pread(f->fd, rec, sizeof(rec), at);
		if (n != sizeof(rec))
			return n < 0 ? -errno : -EIO;
		insert(f, get_unaligned_le64(rec));
	}
	return ftruncate(f->fd, at) ? -errno : 0;
}

int iod_fence_open(const char *dir, struct iod_fence **ret)
{
	struct iod_fence *f = calloc(1, sizeof(*f));
	char path[4200];
	int err = 0;

	if (!f)
		return -ENOMEM;
	pthread_rwlock_init(&f->lock, NULL);
	f->fd = -1;
	if (dir) {
		snprintf(path, sizeof(path), "%s/" NAME, dir);
		f->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		err = f->fd < 0 ? -errno : load(f);
	}
	if (err)
		iod_fence_close(f);
	else
		*ret = f;
	return err;
}

void iod_fence_close(struct iod_fence *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	pthread_rwlock_destroy(&f->lock);
	free(f);
}

int iod_fence_add(struct iod_fence *f, u64 session)
{
	u8 rec[8];
	int err = 0;

	put_unaligned_le64(session, rec);
	pthread_rwlock_wrlock(&f->lock);
	if (insert(f, session) && f->fd >= 0 &&
	    (write(f->fd, rec, sizeof(rec)) != sizeof(rec) || fdatasync(f->fd)))
		err = errno ? -errno : -EIO;
	pthread_rwlock_unlock(&f->lock);
	return err;
}

bool iod_fence_has(struct iod_fence *f, u64 session)
{
	bool ret;

	pthread_rwlock_rdlock(&f->lock);
	ret = found(f, place(f, session), session);
	pthread_rwlock_unlock(&f->lock);
	return ret;
}
