// SPDX-License-Identifier: GPL-2.0
/*
 * store_posix.c - datafiles as sparse files in a directory tree of a local file system; see
 * store.h.
 *
 * Datafile {ino, gen} is DIR/data/xx/yy/<ino>.<gen>, all in hexadecimal. yy is bits 10 to 17 of the
 * ino and xx bits 18 to 25: inos are handed out in order, so 1,024 files made one after the other
 * share a directory and lie near each other on the disk, and a new directory is a rare event.
 * Directories are made when needed and kept.
 *
 * Drafts are in DIR/data/new until they are published.
 *
 * Names become durable with sync() and sync_name(): a directory in which a name was made or removed
 * since it was last synced is marked, and whoever syncs a datafile in it syncs it too. After a start every directory counts
 * as marked, since the daemon before may have been killed between making a name and syncing it.
 */
#include "loss.h"
#include "room.h"
#include "store.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LEAVES 65536u
#define TOPS 256u
#define SYNC_LOCKS 64u
#define COPY_BUF 65536u
#define DRAFTS "new"		/* directory below data */

/* Whether the names in a directory are on stable storage. */
enum dirstate {
	DIR_CLEAN,
	DIR_DIRTY,	/* no */
	DIR_SYNCING,	/* someone sees to it, and nothing was added since it began */
};

struct posix_store {
	struct iod_store s;
	int dfd;				/* of DIR/data */
	struct iod_room room;
	u64 disk;				/* see disk_number() */
	bool in_memory;				/* tmpfs and the like never wait for a disk */
	_Atomic bool nowait;			/* the file system has RWF_NOWAIT,
	for all we know */
	/* enum dirstate of data, data/xx, data/xx/yy */
	_Atomic u8 root, top[TOPS], leaf[LEAVES];
	_Atomic u32 making;			/* make_dirs() that may have yet to mark what they made */
	/* One sync of a directory at a time, so that the second one waits for the first one's. */
	pthread_mutex_t sync_lock[SYNC_LOCKS];
};

#define NAME_ROOM 48

static struct posix_store *posix_of(struct iod_store *s)
{
	return container_of(s, struct posix_store, s);
}

static u32 leaf_of(const struct pvfs_fid *fid)
{
	return (fid->ino >> 10) & (LEAVES - 1);
}

static void leaf_name(u32 leaf, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, "%02x/%02x", leaf >> 8, leaf & 255);
}

static void file_name(const struct pvfs_fid *fid, char name[NAME_ROOM])
{
	u32 leaf = leaf_of(fid);

	snprintf(name, NAME_ROOM, "%02x/%02x/%016llx.%08x", leaf >> 8, leaf & 255,
		 (unsigned long long)fid->ino, fid->gen);
}

/* The directories above a datafile of @leaf. */
static int make_dirs(struct posix_store *p, u32 leaf)
{
	char name[NAME_ROOM];
	int err = 0;

	/*
	 * A name is made, then marked. In between others may make a datafile in that directory and
	 * sync it: they believe no mark meanwhile.
	 */
	atomic_fetch_add(&p->making, 1);
	snprintf(name, sizeof(name), "%02x", leaf >> 8);
	if (!mkdirat(p->dfd, name, 0700))
		atomic_store(&p->root, DIR_DIRTY);
	else if (errno != EEXIST)
		err = -errno;
	leaf_name(leaf, name);
	if (!err && !mkdirat(p->dfd, name, 0700))
		atomic_store(&p->top[leaf >> 8], DIR_DIRTY);
	else if (!err && errno != EEXIST)
		err = -errno;
	atomic_fetch_sub(&p->making, 1);
	return err;
}

/* Has directory @state no name that is not on stable storage? */
static bool is_clean(struct posix_store *p, _Atomic u8 *state)
{
	return !atomic_load(&p->making) && atomic_load(state) == DIR_CLEAN;
}

static int posix_open(struct iod_store *s, const struct pvfs_fid *fid, bool create,
		      struct iod_file *ret)
{
	static const struct timespec never[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };
	struct posix_store *p = posix_of(s);
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW, fd, err;
	u32 leaf = leaf_of(fid);
	char name[NAME_ROOM];

	file_name(fid, name);
	fd = openat(p->dfd, name, flags);
	if (fd < 0 && errno == ENOENT && create) {
		fd = openat(p->dfd, name, flags | O_CREAT, 0600);
		if (fd < 0 && errno == ENOENT) {
			err = make_dirs(p, leaf);
			if (err)
				return err;
			fd = openat(p->dfd, name, flags | O_CREAT, 0600);
		}
		if (fd >= 0) {
			atomic_store(&p->leaf[leaf], DIR_DIRTY);
			/* Nothing was written yet, and mtime is to say so. */
			futimens(fd, never);
		}
	}
	if (fd < 0)
		return -errno;
	ret->fid = *fid;
	ret->fd = fd;
	ret->priv = NULL;
	return 0;
}

static void posix_close(struct iod_store *s, struct iod_file *f)
{
	close(f->fd);
	f->fd = -1;
}

static ssize_t posix_preadv(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			    u64 off, bool nowait)
{
	struct posix_store *p = posix_of(s);
	ssize_t r;

	if (nowait && !p->in_memory) {
		if (!atomic_load_explicit(&p->nowait, memory_order_relaxed))
			return -EAGAIN;
		r = preadv2(f->fd, iov, n, off, RWF_NOWAIT);
		if (r >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
			return r < 0 ? -errno : r;
		atomic_store(&p->nowait, false);
		return -EAGAIN;
	}
	do {
		r = preadv(f->fd, iov, n, off);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static ssize_t posix_pwritev(struct iod_store *s, struct iod_file *f, const struct iovec *iov,
			     int n, u64 off)
{
	u64 len = 0;
	ssize_t r;
	int i;

	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	r = iod_room_take(&posix_of(s)->room, f->fd, off, len);
	if (r)
		return r;
	do {
		r = pwritev(f->fd, iov, n, off);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static int posix_sendable(struct iod_store *s, struct iod_file *f, u64 off, off_t *ret_off)
{
	*ret_off = off;
	return f->fd;
}

/*
 * A byte at both ends stands for the range: what came in by read-ahead came in together. The
 * sender waits for a page that is missing in between; that is slow for it, not wrong.
 */
static bool posix_ready(struct iod_store *s, struct iod_file *f, u64 off, u32 len)
{
	struct iovec iov;
	char byte;

	if (posix_of(s)->in_memory || !len)
		return true;
	iov = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	return posix_preadv(s, f, &iov, 1, off + len - 1, true) >= 0 &&
	       posix_preadv(s, f, &iov, 1, off, true) >= 0;
}

static void posix_prefetch(struct iod_store *s, struct iod_file *f, u64 off, u32 len, bool wait)
{
	struct iovec iov;
	char byte;

	if (!len || readahead(f->fd, off, len) || !wait)
		return;
	/* readahead() only starts the transfers; the last byte comes with or after the others. */
	iov = (struct iovec){ .iov_base = &byte, .iov_len = 1 };
	posix_preadv(s, f, &iov, 1, off + len - 1, false);
}

static void fill_stat(const struct stat *st, struct iod_stat *ret)
{
	ret->size = st->st_size;
	ret->blocks = st->st_blocks;
	ret->mtime.sec = st->st_mtim.tv_sec;
	ret->mtime.nsec = st->st_mtim.tv_nsec;
}

static int posix_stat(struct iod_store *s, const struct pvfs_fid *fid, struct iod_file *f,
		      struct iod_stat *ret)
{
	char name[NAME_ROOM];
	struct stat st;

	if (f) {
		if (fstat(f->fd, &st))
			return -errno;
	} else {
		file_name(fid, name);
		if (fstatat(posix_of(s)->dfd, name, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
	}
	fill_stat(&st, ret);
	return 0;
}

/*
 * The mtime is put back, since a glimpse gives it as the time of the last write. A write that comes
 * between the two calls loses its time here, but its writer was told it in the reply.
 */
static int posix_truncate(struct iod_store *s, struct iod_file *f, u64 size)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if (fstat(f->fd, &st))
		return -errno;
	/* There may be space behind the end, which goes too. */
	if ((u64)st.st_size == size && (u64)st.st_blocks * 512 <= ((size + 4095) & ~4095ull))
		return 0;
	if (ftruncate(f->fd, size))
		return -errno;
	ts[1] = st.st_mtim;
	return futimens(f->fd, ts) ? -errno : 0;
}

static int posix_space(struct iod_store *s, struct iod_file *f, u32 mode, u64 off, u64 len)
{
	int keep = mode & PVFS_SP_KEEP_SIZE ? FALLOC_FL_KEEP_SIZE : 0, err;

	err = mode & PVFS_SP_PUNCH ? 0 : iod_room_take(&posix_of(s)->room, f->fd, off, len);
	if (err)
		return err;
	if (mode & PVFS_SP_ZERO) {
		if (!fallocate(f->fd, FALLOC_FL_ZERO_RANGE | keep, off, len))
			return 0;
		if (errno != EOPNOTSUPP)
			return -errno;
	}
	/* Where there is no ZERO_RANGE a hole that is filled again does it. */
	if ((mode & (PVFS_SP_PUNCH | PVFS_SP_ZERO)) &&
	    fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len))
		return -errno;
	if (mode & PVFS_SP_PUNCH)
		return 0;
	return fallocate(f->fd, keep, off, len) ? -errno : 0;
}

static int posix_seek(struct iod_store *s, struct iod_file *f, u64 off, bool hole, u64 *ret)
{
	/* The descriptor's position means nothing to anybody. */
	off_t at = lseek(f->fd, off, hole ? SEEK_HOLE : SEEK_DATA);

	if (at < 0 && errno != ENXIO)
		return -errno;
	*ret = at >= 0 ? (u64)at : hole ? off : PVFS_SEEK_NONE;
	return 0;
}

/* What copy_file_range(2) cannot do here. */
static int copy_through(struct iod_file *src, u64 src_off, struct iod_file *dst, u64 dst_off,
			u64 len, u64 *done)
{
	char buf[COPY_BUF];
	ssize_t n, m, at;

	n = pread(src->fd, buf, min(len, (u64)sizeof(buf)), src_off);
	if (n < 0)
		return -errno;
	for (at = 0; at < n; at += m) {
		m = pwrite(dst->fd, buf + at, n - at, dst_off + at);
		if (m < 0)
			return -errno;
	}
	*done = n;
	return 0;
}

/* A run of data. *@done < @len when @src has become shorter. */
static int copy_data(struct iod_file *src, u64 src_off, struct iod_file *dst, u64 dst_off, u64 len,
		     u64 *done)
{
	bool through = false;
	u64 step = 0;
	int err;

	for (*done = 0; *done < len; *done += step) {
		off_t from = src_off + *done, to = dst_off + *done;
		ssize_t n = through ? -1 :
				      copy_file_range(src->fd, &from, dst->fd, &to, len - *done, 0);

		/* 0 at the end; also where the kernel has no idea how. */
		if (n > 0) {
			step = n;
			continue;
		}
		if (n < 0 && !through && errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP &&
		    errno != ENOSYS)
			return -errno;
		through = true;
		err = copy_through(src, src_off + *done, dst, dst_off + *done, len - *done, &step);
		if (err || !step)
			return err;
	}
	return 0;
}

static int posix_copy(struct iod_store *s, struct iod_file *src, u64 src_off, struct iod_file *dst,
		      u64 dst_off, u64 len)
{
	u64 done = 0, data, hole = 0, n;
	struct stat st;
	int err;

	while (done < len) {
		data = PVFS_SEEK_NONE;
		err = src ? posix_seek(s, src, src_off + done, false, &data) : 0;
		if (err)
			return err;
		n = min(data - (src_off + done), len - done);
		if (n || !src) {
			if (fallocate(dst->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				      dst_off + done, n))
				return -errno;
			done += n;
			continue;
		}
		err = posix_seek(s, src, src_off + done, true, &hole);
		if (err)
			return err;
		n = min(hole - (src_off + done), len - done);
		err = iod_room_take(&posix_of(s)->room, dst->fd, dst_off + done, n);
		err = err ?: copy_data(src, src_off + done, dst, dst_off + done, n, &n);
		if (err)
			return err;
		done += n;
	}
	if (fstat(dst->fd, &st))
		return -errno;
	/* It ended in a hole: as a write, so that one that comes beside it is not cut. */
	if ((u64)st.st_size < dst_off + len && pwrite(dst->fd, "", 1, dst_off + len - 1) != 1)
		return errno ? -errno : -EIO;
	return 0;
}

/* Makes the names in directory @name last, if they don't yet. One that does not exist has none. */
static int sync_dir(struct posix_store *p, const char *name, _Atomic u8 *state,
		    pthread_mutex_t *lock)
{
	int fd, err = 0;
	u8 was;

	if (is_clean(p, state))
		return 0;
	pthread_mutex_lock(lock);
	if (is_clean(p, state))
		goto out;
	/* A name made from now on sets DIR_DIRTY again, and the exchange below then fails. */
	atomic_store(state, DIR_SYNCING);
	fd = openat(p->dfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 ? errno != ENOENT : fsync(fd))
		err = -errno;
	if (fd >= 0)
		close(fd);
	was = DIR_SYNCING;
	if (err) {
		/* Before anyone else's sync of it succeeds, as the kernel tells it once. */
		iod_loss_note(p->s.loss);
		atomic_store(state, DIR_DIRTY);
	} else {
		atomic_compare_exchange_strong(state, &was, DIR_CLEAN);
	}
out:
	pthread_mutex_unlock(lock);
	return err;
}

static int posix_sync_name(struct iod_store *s, const struct pvfs_fid *fid)
{
	struct posix_store *p = posix_of(s);
	u32 leaf = leaf_of(fid), top = leaf >> 8;
	char name[NAME_ROOM];
	int err;

	leaf_name(leaf, name);
	err = sync_dir(p, name, &p->leaf[leaf], &p->sync_lock[leaf % SYNC_LOCKS]);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%02x", top);
	err = sync_dir(p, name, &p->top[top], &p->sync_lock[top % SYNC_LOCKS]);
	if (err)
		return err;
	return sync_dir(p, ".", &p->root, &p->sync_lock[0]);
}

static int posix_sync(struct iod_store *s, struct iod_file *f, bool datasync)
{
	if (datasync ? fdatasync(f->fd) : fsync(f->fd))
		return -errno;
	return posix_sync_name(s, &f->fid);
}

/* The kernel keeps what went wrong for the file system as a whole too, since 5.8, and tells @p->dfd once. */
static int posix_sync_all(struct iod_store *s)
{
	return syncfs(posix_of(s)->dfd) ? -errno : 0;
}

/* Of a draft: where it is until it is published. */
static void draft_name(const struct iod_file *f, char name[NAME_ROOM])
{
	snprintf(name, NAME_ROOM, DRAFTS "/%llx", (unsigned long long)(uintptr_t)f->priv);
}

static int posix_draft(struct iod_store *s, const struct pvfs_fid *fid, const void *data, u32 len,
		       struct iod_file *ret)
{
	static const struct timespec never[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };
	static atomic_ulong last;
	struct posix_store *p = posix_of(s);
	char name[NAME_ROOM];
	u32 done = 0;
	ssize_t n;
	int err;

	err = iod_room_take(&p->room, -1, 0, len);
	if (err)
		return err;
	ret->fid = *fid;
	ret->priv = (void *)(uintptr_t)(atomic_fetch_add(&last, 1) + 1);
	draft_name(ret, name);
	ret->fd = openat(p->dfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->fd < 0)
		return -errno;
	while (done < len) {
		n = pwrite(ret->fd, (const char *)data + done, len - done, done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			goto fail;
		done += n;
	}
	if (!futimens(ret->fd, never) && !fsync(ret->fd))
		return 0;
fail:
	err = errno ? -errno : -EIO;
	unlinkat(p->dfd, name, 0);
	close(ret->fd);
	return err;
}

static int posix_publish(struct iod_store *s, struct iod_file *f)
{
	char from[NAME_ROOM], to[NAME_ROOM];
	struct posix_store *p = posix_of(s);
	u32 leaf = leaf_of(&f->fid);
	int err;

	draft_name(f, from);
	file_name(&f->fid, to);
	if (linkat(p->dfd, from, p->dfd, to, 0)) {
		if (errno != ENOENT)
			return -errno;
		err = make_dirs(p, leaf);
		if (err)
			return err;
		if (linkat(p->dfd, from, p->dfd, to, 0))
			return -errno;
	}
	atomic_store(&p->leaf[leaf], DIR_DIRTY);
	unlinkat(p->dfd, from, 0);
	return 0;
}

static void posix_withdraw(struct iod_store *s, struct iod_file *f)
{
	char name[NAME_ROOM];

	draft_name(f, name);
	unlinkat(posix_of(s)->dfd, name, 0);
}

/* Those that were never published, of a daemon that was killed. Return: 0 or -errno. */
static int drafts_begin(struct posix_store *p)
{
	struct dirent *d;
	int fd, err = 0;
	DIR *dir;

	if (mkdirat(p->dfd, DRAFTS, 0700) && errno != EEXIST)
		return -errno;
	fd = openat(p->dfd, DRAFTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && unlinkat(fd, d->d_name, 0))
			err = -errno;
	closedir(dir);
	return err;
}

static int posix_remove(struct iod_store *s, const struct pvfs_fid *fid)
{
	struct posix_store *p = posix_of(s);
	char name[NAME_ROOM];

	file_name(fid, name);
	if (unlinkat(p->dfd, name, 0))
		return errno == ENOENT ? 0 : -errno;
	atomic_store(&p->leaf[leaf_of(fid)], DIR_DIRTY);
	return 0;
}

/*
 * The file system, as this kernel numbers it, and which kernel this is: so that two machines' first
 * disks differ. 0 if one of them can't be told.
 */
static u64 disk_number(int dfd)
{
	char boot[64] = "";
	u64 h = 0xcbf29ce484222325ull;
	struct stat st;
	ssize_t n = -1;
	char *p;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, boot, sizeof(boot) - 1);
		close(fd);
	}
	if (n <= 0 || fstat(dfd, &st))
		return 0;
	for (p = boot; *p; p++)
		h = (h ^ (u8)*p) * 0x100000001b3ull;
	for (n = 0; n < 64; n += 8)
		h = (h ^ (u8)((u64)st.st_dev >> n)) * 0x100000001b3ull;
	return h;
}

static int posix_statfs(struct iod_store *s, struct pvfs_iod_statfs_rep *ret)
{
	struct posix_store *p = posix_of(s);
	struct statvfs sv;

	if (fstatvfs(p->dfd, &sv))
		return -errno;
	ret->disk = p->disk;
	ret->bsize = sv.f_frsize ? sv.f_frsize : sv.f_bsize;
	ret->blocks = sv.f_blocks;
	ret->bfree = sv.f_bfree;
	ret->bavail = iod_room_left(&p->room, &sv);
	ret->files = sv.f_files;
	ret->ffree = sv.f_ffree;
	return 0;
}

static u64 posix_room(struct iod_store *s)
{
	return iod_room_told(&posix_of(s)->room);
}

static void posix_free(struct iod_store *s)
{
	struct posix_store *p;
	u32 i;

	if (!s)
		return;
	p = posix_of(s);
	for (i = 0; i < SYNC_LOCKS; i++)
		pthread_mutex_destroy(&p->sync_lock[i]);
	if (p->dfd >= 0)
		close(p->dfd);
	free(p);
}

static const struct iod_store_ops posix_ops = {
	.name = "posix",
	.open = posix_open,
	.close = posix_close,
	.preadv = posix_preadv,
	.pwritev = posix_pwritev,
	.sendable = posix_sendable,
	.ready = posix_ready,
	.prefetch = posix_prefetch,
	.truncate = posix_truncate,
	.space = posix_space,
	.seek = posix_seek,
	.copy = posix_copy,
	.stat = posix_stat,
	.sync = posix_sync,
	.sync_all = posix_sync_all,
	.sync_name = posix_sync_name,
	.draft = posix_draft,
	.publish = posix_publish,
	.withdraw = posix_withdraw,
	.remove = posix_remove,
	.statfs = posix_statfs,
	.room = posix_room,
	.free = posix_free,
};

int iod_store_posix_open(const char *dir, u64 reserve, struct iod_store **ret)
{
	struct posix_store *p;
	struct statfs sf;
	int top, err;
	u32 i;

	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->s.ops = &posix_ops;
	p->dfd = -1;
	for (i = 0; i < SYNC_LOCKS; i++)
		pthread_mutex_init(&p->sync_lock[i], NULL);
	atomic_store(&p->nowait, true);
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0) {
		err = -errno;
		goto out_free;
	}
	if (mkdirat(top, "data", 0700) && errno != EEXIST) {
		err = -errno;
		goto out_close;
	}
	/* Once per start, so it needs no mark. */
	p->dfd = openat(top, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dfd < 0 || fsync(top) || fstatfs(p->dfd, &sf)) {
		err = -errno;
		goto out_close;
	}
	err = iod_room_init(&p->room, p->dfd, reserve) ?: drafts_begin(p);
	if (err)
		goto out_close;
	p->disk = disk_number(p->dfd);
	p->in_memory = sf.f_type == TMPFS_MAGIC || sf.f_type == RAMFS_MAGIC;
	atomic_store(&p->root, DIR_DIRTY);
	for (i = 0; i < TOPS; i++)
		atomic_store(&p->top[i], DIR_DIRTY);
	for (i = 0; i < LEAVES; i++)
		atomic_store(&p->leaf[i], DIR_DIRTY);
	close(top);
	*ret = &p->s;
	return 0;
out_close:
	close(top);
out_free:
	posix_free(&p->s);
	return err;
}
