// SPDX-License-Identifier: GPL-2.0
/*
 * fence.c - see fence.h. A file of sorted numbers, written anew for all that are evicted together:
 * that is rare. None is ever dropped: a capability is good for ever.
 */
#include "fence.h"
#include "../common/log.h"
#include "../common/proto.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "pvfs.evicted"
#define NAME_NEW NAME ".new"
#define ROOM 256u	/* numbers; more when they are used up */

struct iod_fence {
	/* Protects all below; the one who adds and saves may look without it. */
	pthread_rwlock_t lock;
	int dfd;		/* the store's directory; -1: nothing is kept */
	bool unsaved;		/* the file lacks some */
	u64 floor;		/* this one and all before it; in the file with PVFS_SESSION_ALL */
	u32 n, room;
	u64 *id;		/* sorted */
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

/* Return: 1 when it is new, 0, or -ENOMEM. */
static int insert(struct iod_fence *f, u64 session)
{
	u32 at = place(f, session);
	u64 *more;

	if (session & PVFS_SESSION_ALL) {
		session &= ~PVFS_SESSION_ALL;
		if (session <= f->floor)
			return 0;
		f->floor = session;
		at = place(f, session + 1);
		if (at)
			memmove(f->id, f->id + at, (f->n - at) * sizeof(f->id[0]));
		f->n -= at;
		return 1;
	}
	if (session <= f->floor || found(f, at, session))
		return 0;
	if (f->n == f->room) {
		more = realloc(f->id, (f->room + max(f->room, ROOM)) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		f->id = more;
		f->room += max(f->room, ROOM);
	}
	memmove(f->id + at + 1, f->id + at, (f->n - at) * sizeof(f->id[0]));
	f->id[at] = session;
	f->n++;
	return 1;
}

static int load(struct iod_fence *f)
{
	int fd = openat(f->dfd, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t n = sizeof(u64);
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
	err = 0;
	while (err >= 0 && (n = fread(rec, 1, sizeof(rec), file)) == sizeof(rec))
		err = insert(f, get_unaligned_le64(rec));
	if (err >= 0)
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
	if (f->floor) {
		put_unaligned_le64(f->floor | PVFS_SESSION_ALL, rec);
		fwrite(rec, sizeof(rec), 1, file);
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
	free(f->id);
	free(f);
}

int iod_fence_add(struct iod_fence *f, const u64 *sessions, u32 n)
{
	int err = 0, new;
	u32 i;

	pthread_rwlock_wrlock(&f->lock);
	for (i = 0; i < n; i++) {
		new = insert(f, sessions[i]);
		if (new > 0)
			f->unsaved = f->dfd >= 0;
		else
			err = new ? new : err;
	}
	pthread_rwlock_unlock(&f->lock);
	return err;
}

int iod_fence_save(struct iod_fence *f)
{
	int err = f->unsaved ? save(f) : 0;

	f->unsaved = err;
	return err;
}

bool iod_fence_has(struct iod_fence *f, u64 session)
{
	bool ret;

	pthread_rwlock_rdlock(&f->lock);
	ret = (session && session <= f->floor) || found(f, place(f, session), session);
	pthread_rwlock_unlock(&f->lock);
	return ret;
}
