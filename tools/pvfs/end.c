// SPDX-License-Identifier: GPL-2.0
/*
 * end.c - the same calls for a file in the volume and for a local one. What `pvfs cp` needs, no
 * more.
 */
#include "cp.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NEG(x) ((x) ? -errno : 0)

int end_stat(struct end e, const char *path, bool follow, struct stat *ret)
{
	struct pvfs_stat st;
	int err;

	if (!e.fs)
		return NEG(follow ? stat(path, ret) : lstat(path, ret));
	err = follow ? pvfs_stat(e.fs, path, &st) : pvfs_lstat(e.fs, path, &st);
	if (!err)
		*ret = st.st;
	return err;
}

int end_open(struct end e, const char *path, int flags, mode_t mode, struct end_file *ret)
{
	*ret = (struct end_file){ .fd = -1 };
	if (e.fs)
		return pvfs_open(e.fs, path, flags, mode, &ret->remote);
	ret->fd = open(path, flags | O_CLOEXEC, mode);
	return NEG(ret->fd < 0);
}

int end_close(struct end_file *f)
{
	struct end_file copy = *f;

	*f = (struct end_file){ .fd = -1 };
	if (copy.remote)
		return pvfs_close(copy.remote);
	return copy.fd < 0 ? 0 : NEG(close(copy.fd));
}

ssize_t end_pread(struct end_file *f, void *buf, size_t n, off_t off)
{
	size_t sum = 0;
	ssize_t k;

	while (sum < n) {
		if (f->remote) {
			k = pvfs_pread(f->remote, (char *)buf + sum, n - sum, off + sum);
		} else {
			k = pread(f->fd, (char *)buf + sum, n - sum, off + sum);
			if (k < 0 && errno == EINTR)
				continue;
			k = k < 0 ? -errno : k;
		}
		if (k < 0)
			return k;
		if (!k)
			break;
		sum += k;
	}
	return sum;
}

/* All of it, or -errno. */
ssize_t end_pwrite(struct end_file *f, const void *buf, size_t n, off_t off)
{
	size_t sum = 0;
	ssize_t k;

	while (sum < n) {
		if (f->remote) {
			k = pvfs_pwrite(f->remote, (const char *)buf + sum, n - sum, off + sum);
		} else {
			k = pwrite(f->fd, (const char *)buf + sum, n - sum, off + sum);
			if (k < 0 && errno == EINTR)
				continue;
			k = k < 0 ? -errno : k;
		}
		if (k <= 0)
			return k ?: -EIO;
		sum += k;
	}
	return sum;
}

int end_truncate(struct end_file *f, off_t size)
{
	return f->remote ? pvfs_ftruncate(f->remote, size) : NEG(ftruncate(f->fd, size));
}

int end_fsync(struct end_file *f)
{
	return f->remote ? pvfs_fsync(f->remote) : NEG(fsync(f->fd));
}

int end_fstat(struct end_file *f, struct stat *ret)
{
	struct pvfs_stat st;
	int err;

	if (!f->remote)
		return NEG(fstat(f->fd, ret));
	err = pvfs_fstat(f->remote, &st);
	if (!err)
		*ret = st.st;
	return err;
}

/* The next data or hole, or -errno. */
static off_t seek(struct end_file *f, off_t off, int whence)
{
	off_t at = f->remote ? pvfs_lseek(f->remote, off, whence) : lseek(f->fd, off, whence);

	return at < 0 && !f->remote ? -errno : at;
}

/**
 * end_next_data - skip a hole, where the file system can tell
 *
 * Return: where there may be bytes other than zero, @off .. @end.
 */
off_t end_next_data(struct end_file *f, off_t off, off_t end)
{
	off_t at = seek(f, off, SEEK_DATA);

	if (at < 0)
		return at == -ENXIO ? end : off;
	return min(at, end);
}

/**
 * end_next_hole - where the data at @off ends, where the file system can tell
 *
 * Return: @off .. @end.
 */
off_t end_next_hole(struct end_file *f, off_t off, off_t end)
{
	off_t at = seek(f, off, SEEK_HOLE);

	return at < 0 ? end : min(at, end);
}

/**
 * end_copy - have the volume copy
 * @from: in the volume, as is @to
 *
 * Return: bytes copied, 0 at the end, or -errno.
 */
ssize_t end_copy(struct end_file *from, struct end_file *to, off_t off, size_t n)
{
	return pvfs_copy_file_range(from->remote, off, to->remote, off, n, 0);
}

int end_mkdir(struct end e, const char *path, mode_t mode)
{
	return e.fs ? pvfs_mkdir(e.fs, path, mode) : NEG(mkdir(path, mode));
}

int end_unlink(struct end e, const char *path)
{
	return e.fs ? pvfs_unlink(e.fs, path) : NEG(unlink(path));
}

int end_rename(struct end e, const char *from, const char *to)
{
	return e.fs ? pvfs_rename(e.fs, from, to, 0) : NEG(rename(from, to));
}

int end_readlink(struct end e, const char *path, char target[PVFS_SYMLINK_MAX + 1])
{
	ssize_t n = e.fs ? pvfs_readlink(e.fs, path, target, PVFS_SYMLINK_MAX + 1) :
			   readlink(path, target, PVFS_SYMLINK_MAX + 1);

	if (n < 0)
		return e.fs ? (int)n : -errno;
	if (n > PVFS_SYMLINK_MAX)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return 0;
}

/**
 * end_copy_special - make what is neither file nor directory again: links, devices, pipes, sockets
 * @st: of what is at @from
 */
int end_copy_special(struct end s, const char *from, const struct stat *st, struct end d,
		     const char *to)
{
	char target[PVFS_SYMLINK_MAX + 1];
	int err;

	if (!S_ISLNK(st->st_mode))
		return d.fs ? pvfs_mknod(d.fs, to, st->st_mode, st->st_rdev) :
			      NEG(mknod(to, st->st_mode, st->st_rdev));
	err = end_readlink(s, from, target);
	if (err)
		return err;
	return d.fs ? pvfs_symlink(d.fs, target, to) : NEG(symlink(target, to));
}

int end_chmod(struct end e, const char *path, mode_t mode)
{
	return e.fs ? pvfs_chmod(e.fs, path, mode) : NEG(chmod(path, mode));
}

static int list_remote(struct end e, const char *dir, int (*fn)(const char *name, void *arg),
		       void *arg)
{
	struct pvfs_dirent ent;
	struct pvfs_dir *d;
	int rc = pvfs_opendir(e.fs, dir, &d);

	if (rc)
		return rc;
	while ((rc = pvfs_readdir(d, &ent)) > 0) {
		if (!strcmp(ent.name, ".") || !strcmp(ent.name, ".."))
			continue;
		rc = fn(ent.name, arg);
		if (rc)
			break;
	}
	pvfs_closedir(d);
	return rc;
}

int end_list(struct end e, const char *dir, int (*fn)(const char *name, void *arg), void *arg)
{
	struct dirent *ent;
	int rc = 0;
	DIR *d;

	if (e.fs)
		return list_remote(e, dir, fn, arg);
	d = opendir(dir);
	if (!d)
		return -errno;
	while (!rc && (errno = 0, ent = readdir(d)) != NULL) {
		if (strcmp(ent->d_name, ".") && strcmp(ent->d_name, ".."))
			rc = fn(ent->d_name, arg);
	}
	if (!rc && errno)
		rc = -errno;
	closedir(d);
	return rc;
}
