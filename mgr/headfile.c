// SPDX-License-Identifier: GPL-2.0
/*
 * headfile.c - files that have the bytes of a stuffed file each; see heads.h.
 *
 * STORE/heads/xxx/<ino>.<gen>.<epoch>.<nr>, all in hexadecimal. A file is written once, and has its
 * bytes for as long as it is there: who changes a head makes another file. xxx is bits 8 to 17 of
 * the ino: inos are handed out in order, so files made one after the other lie near each other, and
 * many fill all directories evenly. Directories are made when needed and kept.
 *
 * A directory's own name has to be on stable storage before anything in it counts. After a start it
 * is not known of any, since the manager before may have been killed between making and syncing it.
 */
#include "heads.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void dir_path(u32 i, char path[MGR_HEADFILE_NAME])
{
	snprintf(path, MGR_HEADFILE_NAME, "%03x", i);
}

static u32 dir_of(const struct mgr_headfile *f)
{
	return (f->ino >> 8) % MGR_HEADDIRS;
}

void mgr_headfile_path(const struct mgr_headfile *f, char path[MGR_HEADFILE_NAME])
{
	snprintf(path, MGR_HEADFILE_NAME, "%03x/%llx.%x.%llx.%llx", dir_of(f),
		 (unsigned long long)f->ino, f->gen, (unsigned long long)f->epoch,
		 (unsigned long long)f->nr);
}

static int open_dir(int dfd, const char *path)
{
	int fd = openat(dfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int sync_dir(int dfd, const char *path)
{
	int fd = open_dir(dfd, path), err;

	if (fd < 0)
		return fd;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

/* Directory @i is there, and its name is last. */
static int need_dir(struct mgr_headfiles *s, u32 i)
{
	char path[MGR_HEADFILE_NAME];
	int err = 0;

	if (atomic_load(&s->kept[i]))
		return 0;
	dir_path(i, path);
	pthread_mutex_lock(&s->lock);
	if (mkdirat(s->dfd, path, 0700) && errno != EEXIST)
		err = -errno;
	else if (s->sync && fsync(s->dfd))
		err = -errno;
	if (!err)
		atomic_store(&s->kept[i], true);
	pthread_mutex_unlock(&s->lock);
	return err;
}

int mgr_headfiles_open(struct mgr_headfiles *s, const char *store, bool make, bool sync)
{
	int top = open_dir(AT_FDCWD, store), err = 0;

	s->dfd = -1;
	s->sync = sync;
	if (top < 0)
		return top;
	if (make && mkdirat(top, "heads", 0700) && errno != EEXIST)
		err = -errno;
	else if (make && sync && fsync(top))
		err = -errno;
	if (!err)
		err = open_dir(top, "heads");
	close(top);
	if (err < 0)
		return err == -ENOENT && !make ? 0 : err;
	s->dfd = err;
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

void mgr_headfiles_close(struct mgr_headfiles *s)
{
	if (s->dfd < 0)
		return;
	close(s->dfd);
	pthread_mutex_destroy(&s->lock);
}

static int write_all(int fd, const u8 *bytes, u32 len)
{
	u32 done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(fd, bytes + done, len - done, done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += n;
	}
	return 0;
}

int mgr_headfile_write(struct mgr_headfiles *s, const struct mgr_headfile *f, const void *bytes)
{
	char path[MGR_HEADFILE_NAME], dir[MGR_HEADFILE_NAME];
	int fd, err;

	err = need_dir(s, dir_of(f));
	if (err)
		return err;
	mgr_headfile_path(f, path);
	dir_path(dir_of(f), dir);
	fd = openat(s->dfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, bytes, f->len);
	if (!err && s->sync && fdatasync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && s->sync)
		err = sync_dir(s->dfd, dir);
	if (err)
		unlinkat(s->dfd, path, 0);
	return err;
}

int mgr_headfile_read(struct mgr_headfiles *s, const struct mgr_headfile *f, void *bytes)
{
	char path[MGR_HEADFILE_NAME];
	struct stat st;
	u32 done = 0;
	ssize_t n;
	int fd, err = 0;

	mgr_headfile_path(f, path);
	fd = openat(s->dfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if ((u64)st.st_size != f->len)
		err = -EUCLEAN;
	while (!err && done < f->len) {
		n = pread(fd, (u8 *)bytes + done, f->len - done, done);
		if (n > 0)
			done += n;
		else if (!n || errno != EINTR)
			err = n ? -errno : -EUCLEAN;
	}
	close(fd);
	if (!err && pvfs_crc32c(0, bytes, f->len) != f->crc)
		err = -EUCLEAN;
	return err;
}

int mgr_headfile_remove(struct mgr_headfiles *s, const struct mgr_headfile *f)
{
	char path[MGR_HEADFILE_NAME];

	mgr_headfile_path(f, path);
	return unlinkat(s->dfd, path, 0) && errno != ENOENT ? -errno : 0;
}

DIR *mgr_headfile_opendir(struct mgr_headfiles *s, u32 i)
{
	char path[MGR_HEADFILE_NAME];
	DIR *d;
	int fd;

	dir_path(i, path);
	fd = open_dir(s->dfd, path);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

bool mgr_headfile_next(DIR *d, struct mgr_headfile *ret)
{
	unsigned long long ino, epoch, nr;
	struct dirent *e;
	unsigned int gen;
	int n;

	while ((e = readdir(d))) {
		n = 0;
		if (sscanf(e->d_name, "%llx.%x.%llx.%llx%n", &ino, &gen, &epoch, &nr, &n) != 4 ||
		    e->d_name[n])
			continue;
		*ret = (struct mgr_headfile){ .ino = ino, .gen = gen, .epoch = epoch, .nr = nr };
		return true;
	}
	return false;
}
