// SPDX-License-Identifier: GPL-2.0-only
/*
 * api_vfs.c - struct api over the kernel: each call is the system call of that name, with -errno
 * for -1.
 */
#include "conform.h"
#include <dirent.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

/* Directories are numbers as files are. */
static DIR *dirs[64];

long sys(long r)
{
	return r == -1 ? -errno : r;
}

static int v_open(const char *path, int flags, mode_t mode)
{
	return sys(open(path, flags, mode));
}

static int v_close(int h)
{
	return sys(close(h));
}

static ssize_t v_pread(int h, void *buf, size_t n, off_t off)
{
	return sys(pread(h, buf, n, off));
}

static ssize_t v_pwrite(int h, const void *buf, size_t n, off_t off)
{
	return sys(pwrite(h, buf, n, off));
}

static ssize_t v_preadv(int h, const struct iovec *iov, int n, off_t off)
{
	return sys(preadv(h, iov, n, off));
}

static ssize_t v_pwritev(int h, const struct iovec *iov, int n, off_t off)
{
	return sys(pwritev(h, iov, n, off));
}

static int v_fsync(int h)
{
	return sys(fsync(h));
}

static int v_fdatasync(int h)
{
	return sys(fdatasync(h));
}

static int v_ftruncate(int h, off_t size)
{
	return sys(ftruncate(h, size));
}

static int v_fallocate(int h, int mode, off_t off, off_t len)
{
	return sys(fallocate(h, mode, off, len));
}

static off_t v_lseek(int h, off_t off, int whence)
{
	return sys(lseek(h, off, whence));
}

static ssize_t v_copy_file_range(int in, off_t *from, int out, off_t *to, size_t n,
				 unsigned int flags)
{
	return sys(copy_file_range(in, from, out, to, n, flags));
}

static int v_fstat(int h, struct stat *st)
{
	return sys(fstat(h, st));
}

static int v_fchmod(int h, mode_t mode)
{
	return sys(fchmod(h, mode));
}

static int v_fchown(int h, uid_t uid, gid_t gid)
{
	return sys(fchown(h, uid, gid));
}

static int v_futimens(int h, const struct timespec ts[2])
{
	return sys(futimens(h, ts));
}

static int v_stat(const char *path, struct stat *st)
{
	return sys(stat(path, st));
}

static int v_lstat(const char *path, struct stat *st)
{
	return sys(lstat(path, st));
}

static int v_access(const char *path, int mode)
{
	return sys(access(path, mode));
}

static int v_truncate(const char *path, off_t size)
{
	return sys(truncate(path, size));
}

static int v_chmod(const char *path, mode_t mode)
{
	return sys(chmod(path, mode));
}

static int v_chown(const char *path, uid_t uid, gid_t gid)
{
	return sys(chown(path, uid, gid));
}

static int v_lchown(const char *path, uid_t uid, gid_t gid)
{
	return sys(lchown(path, uid, gid));
}

/* glibc refuses nothing here that the kernel would take. */
static int v_utimens(const char *path, const struct timespec ts[2])
{
	return sys(utimensat(AT_FDCWD, path, ts, 0));
}

static int v_lutimens(const char *path, const struct timespec ts[2])
{
	return sys(utimensat(AT_FDCWD, path, ts, AT_SYMLINK_NOFOLLOW));
}

static int v_mkdir(const char *path, mode_t mode)
{
	return sys(mkdir(path, mode));
}

static int v_mknod(const char *path, mode_t mode, dev_t dev)
{
	return sys(mknod(path, mode, dev));
}

static int v_rmdir(const char *path)
{
	return sys(rmdir(path));
}

static int v_unlink(const char *path)
{
	return sys(unlink(path));
}

/* Without flags it is the old call: not all file systems know renameat2. */
static int v_rename(const char *from, const char *to, unsigned int flags)
{
	if (!flags)
		return sys(rename(from, to));
	return sys(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

static int v_link(const char *from, const char *to)
{
	return sys(link(from, to));
}

static int v_symlink(const char *target, const char *path)
{
	return sys(symlink(target, path));
}

static ssize_t v_readlink(const char *path, char *buf, size_t n)
{
	return sys(readlink(path, buf, n));
}

static ssize_t v_getxattr(const char *path, const char *name, void *value, size_t size)
{
	return sys(getxattr(path, name, value, size));
}

static ssize_t v_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	return sys(lgetxattr(path, name, value, size));
}

static ssize_t v_fgetxattr(int h, const char *name, void *value, size_t size)
{
	return sys(fgetxattr(h, name, value, size));
}

static int v_setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return sys(setxattr(path, name, value, size, flags));
}

static int v_lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return sys(lsetxattr(path, name, value, size, flags));
}

static int v_fsetxattr(int h, const char *name, const void *value, size_t size, int flags)
{
	return sys(fsetxattr(h, name, value, size, flags));
}

static ssize_t v_listxattr(const char *path, char *l, size_t size)
{
	return sys(listxattr(path, l, size));
}

static ssize_t v_llistxattr(const char *path, char *l, size_t size)
{
	return sys(llistxattr(path, l, size));
}

static ssize_t v_flistxattr(int h, char *l, size_t size)
{
	return sys(flistxattr(h, l, size));
}

static int v_removexattr(const char *path, const char *name)
{
	return sys(removexattr(path, name));
}

static int v_lremovexattr(const char *path, const char *name)
{
	return sys(lremovexattr(path, name));
}

static int v_fremovexattr(int h, const char *name)
{
	return sys(fremovexattr(h, name));
}

static int v_opendir(const char *path)
{
	DIR *d = opendir(path);
	size_t i;

	if (!d)
		return -errno;
	for (i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (!dirs[i]) {
			dirs[i] = d;
			return i;
		}
	}
	closedir(d);
	return -EMFILE;
}

static int v_readdir(int h, struct entry *e)
{
	struct dirent *de;

	errno = 0;
	de = readdir(dirs[h]);
	if (!de)
		return -errno;
	snprintf(e->name, sizeof(e->name), "%s", de->d_name);
	e->off = de->d_off;
	e->ino = de->d_ino;
	return 1;
}

static void v_seekdir(int h, int64_t off)
{
	if (off)
		seekdir(dirs[h], off);
	else
		rewinddir(dirs[h]);
}

static int64_t v_telldir(int h)
{
	return telldir(dirs[h]);
}

static int v_closedir(int h)
{
	DIR *d = dirs[h];

	dirs[h] = NULL;
	return sys(closedir(d));
}

static int v_lock(int h, int cmd, struct flock *fl)
{
	return sys(fcntl(h, cmd, fl));
}

static int v_flock(int h, int op)
{
	return sys(flock(h, op));
}

static mode_t v_umask(mode_t mask)
{
	return umask(mask);
}

/* The saved ids stay 0: the way back. The real ones are what access() goes by. */
static void v_setcred(const struct who *w)
{
	if (setresuid(0, 0, 0) || setresgid(w->gid, w->gid, 0) || setgroups(w->ngroups, w->groups) ||
	    setresuid(w->uid, w->uid, 0)) {
		perror("conform: cannot change identity");
		_exit(3);
	}
}

static int v_enter(const char *dir)
{
	return sys(chdir(dir));
}

const struct api api_vfs = {
	.name = "vfs",
	.open = v_open, .close = v_close, .pread = v_pread, .pwrite = v_pwrite, .preadv = v_preadv,
	.pwritev = v_pwritev, .fsync = v_fsync, .fdatasync = v_fdatasync, .ftruncate = v_ftruncate,
	.fallocate = v_fallocate, .lseek = v_lseek, .copy_file_range = v_copy_file_range,
	.fstat = v_fstat, .fchmod = v_fchmod, .fchown = v_fchown, .futimens = v_futimens,
	.stat = v_stat, .lstat = v_lstat, .access = v_access, .truncate = v_truncate, .chmod = v_chmod,
	.chown = v_chown, .lchown = v_lchown, .utimens = v_utimens, .lutimens = v_lutimens,
	.mkdir = v_mkdir, .mknod = v_mknod, .rmdir = v_rmdir, .unlink = v_unlink, .rename = v_rename,
	.link = v_link, .symlink = v_symlink, .readlink = v_readlink,
	.getxattr = v_getxattr, .lgetxattr = v_lgetxattr, .fgetxattr = v_fgetxattr,
	.setxattr = v_setxattr, .lsetxattr = v_lsetxattr, .fsetxattr = v_fsetxattr,
	.listxattr = v_listxattr, .llistxattr = v_llistxattr, .flistxattr = v_flistxattr,
	.removexattr = v_removexattr, .lremovexattr = v_lremovexattr, .fremovexattr = v_fremovexattr,
	.opendir = v_opendir, .readdir = v_readdir, .seekdir = v_seekdir, .telldir = v_telldir,
	.closedir = v_closedir, .lock = v_lock, .flock = v_flock, .umask = v_umask,
	.setcred = v_setcred, .enter = v_enter,
};
