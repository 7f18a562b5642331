// SPDX-License-Identifier: GPL-2.0
/*
 * fence.c - see fence.h. A file of sorted numbers, written anew for each eviction: they are rare,
 * and few.
 */
#include "fence.h"
#include "../common/log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "pvfs.evicted"
#define NAME_NEW NAME ".new"
#define MOST 65536u	/* the newest; sessions count up, and so old ones have no client any more */

struct iod_fence {
	pthread_rwlock_t lock;	/* protects all below */
	int dfd;		/* the store's directory; -1: nothing is kept */
	bool unsaved;		/* the file lacks some */
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

static int load(struct iod_fence *f)
{
	int fd = openat(f->dfd, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = sizeof(u64);
	u8 rec[sizeof(u64)];
	FILE *file;
	int err;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	while ((n = fread(rec, 1, sizeof(rec), file)) == sizeof(rec))
		insert(f, get_unaligned_le64(rec));
	err = ferror(file) ? -EIO : n ? -EUCLEAN : 0;
	fclose(file);
	return err;
}

/* All of them, in place of the file. */
static int save(struct iod_fence *f)
{
	int fd = openat(f->dfd, NAME_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			0600);
	u8 rec[sizeof(u64)];
	FILE *file;
	u32 i;

	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	for (i = 0; i < f->n; i++) {
		put_unaligned_le64(f->id[i], rec);
		fwrite(rec, sizeof(rec), 1, file);
	}
	errno = EIO;
	if (fflush(file) || ferror(file) || fdatasync(fd)) {
		int err = -errno;

		fclose(file);
		unlinkat(f->dfd, NAME_NEW, 0);
		return err;
	}
	fclose(file);
	return renameat(f->dfd, NAME_NEW, f->dfd, NAME) || fsync(f->dfd) ? -errno : 0;
}

int iod_fence_open(const char *dir, struct iod_fence **ret)
{
	struct iod_fence *f = calloc(1, sizeof(*f));
	int err = 0;

	if (!f)
		return -ENOMEM;
	pthread_rwlock_init(&f->lock, NULL);
	f->dfd = -1;
	if (dir) {
		f->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = f->dfd < 0 ? -errno : load(f);
		if (err)
			pvfs_log(PVFS_LOG_ERROR, "%s/" NAME ": %s%s", dir, strerror(-err),
				 err == -EUCLEAN ?
					 "; it must have 8 bytes for each evicted session: get it from a backup" :
					 "");
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
	if (f->dfd >= 0)
		close(f->dfd);
	pthread_rwlock_destroy(&f->lock);
	free(f);
}

int iod_fence_add(struct iod_fence *f, u64 session)
{
	int err = 0;

	pthread_rwlock_wrlock(&f->lock);
	if (insert(f, session))
		f->unsaved = f->dfd >= 0;
	if (f->unsaved) {
		err = save(f);
		f->unsaved = err;
	}
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
