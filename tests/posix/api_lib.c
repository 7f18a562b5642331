// SPDX-License-Identifier: GPL-2.0-only
/*
 * api_lib.c - struct api over libpvfs. The library has no current directory: paths that do not
 * begin with a slash get the table's directory in front. Files and directories are indexes of a
 * table.
 */
#include "conform.h"
#include <limits.h>
#include "lib/pvfs.h"

static struct pvfs_fs *vol;
static struct pvfs_file *files[256];
static struct pvfs_dir *dirs[64];
static char top[256], cwd[512];		/* "/conform.N" and "/conform.N/table" */

/* Two paths may be needed at once. */
static const char *at(const char *path)
{
	static char buf[2][2 * PATH_MAX];
	static int turn;

	if (!*path || *path == '/' || !*cwd)
		return path;
	turn = !turn;
	snprintf(buf[turn], sizeof(buf[turn]), "%s/%s", cwd, path);
	return buf[turn];
}

static struct pvfs_file *file(int h)
{
	return h >= 0 && h < (int)ARRAY_SIZE(files) ? files[h] : NULL;
}

static int l_open(const char *path, int flags, mode_t mode)
{
	int h = 0, err;

	while (h < (int)ARRAY_SIZE(files) && files[h])
		h++;
	if (h == ARRAY_SIZE(files))
		return -EMFILE;
	err = pvfs_open(vol, at(path), flags, mode, &files[h]);
	return err ? err : h;
}

static int l_close(int h)
{
	struct pvfs_file *f = file(h);

	if (!f)
		return -EBADF;
	files[h] = NULL;
	return pvfs_close(f);
}

static int give_stat(int err, const struct pvfs_stat *from, struct stat *to)
{
	if (!err)
		*to = from->st;
	return err;
}

/* Calls on a file whose open failed, which is the row's failure already. */
#define ON(h, call) (file(h) ? (call) : -EBADF)

static ssize_t l_pread(int h, void *buf, size_t n, off_t off)
{
	return ON(h, pvfs_pread(files[h], buf, n, off));
}

static ssize_t l_pwrite(int h, const void *buf, size_t n, off_t off)
{
	return ON(h, pvfs_pwrite(files[h], buf, n, off));
}

static ssize_t l_preadv(int h, const struct iovec *iov, int n, off_t off)
{
	return ON(h, pvfs_preadv(files[h], iov, n, off));
}

static ssize_t l_pwritev(int h, const struct iovec *iov, int n, off_t off)
{
	return ON(h, pvfs_pwritev(files[h], iov, n, off));
}

static int l_fsync(int h)
{
	return ON(h, pvfs_fsync(files[h]));
}

static int l_fdatasync(int h)
{
	return ON(h, pvfs_fdatasync(files[h]));
}

static int l_ftruncate(int h, off_t size)
{
	return ON(h, pvfs_ftruncate(files[h], size));
}

static int l_fallocate(int h, int mode, off_t off, off_t len)
{
	return ON(h, pvfs_fallocate(files[h], mode, off, len));
}

static off_t l_lseek(int h, off_t off, int whence)
{
	return ON(h, pvfs_lseek(files[h], off, whence));
}

static ssize_t l_copy_file_range(int in, off_t *from, int out, off_t *to, size_t n,
				 unsigned int flags)
{
	ssize_t r = ON(in, ON(out, pvfs_copy_file_range(files[in], *from, files[out], *to, n,
							flags)));

	if (r > 0) {
		*from += r;
		*to += r;
	}
	return r;
}

static int l_fstat(int h, struct stat *st)
{
	struct pvfs_stat s;

	return ON(h, give_stat(pvfs_fstat(files[h], &s), &s, st));
}

static int l_fchmod(int h, mode_t mode)
{
	return ON(h, pvfs_fchmod(files[h], mode));
}

static int l_fchown(int h, uid_t uid, gid_t gid)
{
	return ON(h, pvfs_fchown(files[h], uid, gid));
}

static int l_futimens(int h, const struct timespec ts[2])
{
	return ON(h, pvfs_futimens(files[h], ts));
}

static int l_stat(const char *path, struct stat *st)
{
	struct pvfs_stat s;

	return give_stat(pvfs_stat(vol, at(path), &s), &s, st);
}

static int l_lstat(const char *path, struct stat *st)
{
	struct pvfs_stat s;

	return give_stat(pvfs_lstat(vol, at(path), &s), &s, st);
}

static int l_access(const char *path, int mode)
{
	return pvfs_access(vol, at(path), mode);
}

static int l_truncate(const char *path, off_t size)
{
	return pvfs_truncate(vol, at(path), size);
}

static int l_chmod(const char *path, mode_t mode)
{
	return pvfs_chmod(vol, at(path), mode);
}

static int l_chown(const char *path, uid_t uid, gid_t gid)
{
	return pvfs_chown(vol, at(path), uid, gid);
}

static int l_lchown(const char *path, uid_t uid, gid_t gid)
{
	return pvfs_lchown(vol, at(path), uid, gid);
}

static int l_utimens(const char *path, const struct timespec ts[2])
{
	return pvfs_utimens(vol, at(path), ts);
}

static int l_lutimens(const char *path, const struct timespec ts[2])
{
	return pvfs_lutimens(vol, at(path), ts);
}

static int l_mkdir(const char *path, mode_t mode)
{
	return pvfs_mkdir(vol, at(path), mode);
}

static int l_mknod(const char *path, mode_t mode, dev_t dev)
{
	return pvfs_mknod(vol, at(path), mode, dev);
}

static int l_rmdir(const char *path)
{
	return pvfs_rmdir(vol, at(path));
}

static int l_unlink(const char *path)
{
	return pvfs_unlink(vol, at(path));
}

static int l_rename(const char *from, const char *to, unsigned int flags)
{
	return pvfs_rename(vol, at(from), at(to), flags);
}

static int l_link(const char *from, const char *to)
{
	return pvfs_link(vol, at(from), at(to));
}

static int l_symlink(const char *target, const char *path)
{
	return pvfs_symlink(vol, target, at(path));
}

static ssize_t l_readlink(const char *path, char *buf, size_t n)
{
	return pvfs_readlink(vol, at(path), buf, n);
}

static ssize_t l_getxattr(const char *path, const char *name, void *value, size_t size)
{
	return pvfs_getxattr(vol, at(path), name, value, size);
}

static ssize_t l_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	return pvfs_lgetxattr(vol, at(path), name, value, size);
}

static ssize_t l_fgetxattr(int h, const char *name, void *value, size_t size)
{
	return ON(h, pvfs_fgetxattr(files[h], name, value, size));
}

static int l_setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return pvfs_setxattr(vol, at(path), name, value, size, flags);
}

static int l_lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return pvfs_lsetxattr(vol, at(path), name, value, size, flags);
}

static int l_fsetxattr(int h, const char *name, const void *value, size_t size, int flags)
{
	return ON(h, pvfs_fsetxattr(files[h], name, value, size, flags));
}

static ssize_t l_listxattr(const char *path, char *list, size_t size)
{
	return pvfs_listxattr(vol, at(path), list, size);
}

static ssize_t l_llistxattr(const char *path, char *list, size_t size)
{
	return pvfs_llistxattr(vol, at(path), list, size);
}

static ssize_t l_flistxattr(int h, char *list, size_t size)
{
	return ON(h, pvfs_flistxattr(files[h], list, size));
}

static int l_removexattr(const char *path, const char *name)
{
	return pvfs_removexattr(vol, at(path), name);
}

static int l_lremovexattr(const char *path, const char *name)
{
	return pvfs_lremovexattr(vol, at(path), name);
}

static int l_fremovexattr(int h, const char *name)
{
	return ON(h, pvfs_fremovexattr(files[h], name));
}

static int l_opendir(const char *path)
{
	int h = 0, err;

	while (h < (int)ARRAY_SIZE(dirs) && dirs[h])
		h++;
	if (h == ARRAY_SIZE(dirs))
		return -EMFILE;
	err = pvfs_opendir(vol, at(path), &dirs[h]);
	return err ? err : h;
}

static int l_readdir(int h, struct entry *e)
{
	struct pvfs_dirent de;
	int rc = pvfs_readdir(dirs[h], &de);

	if (rc == 1) {
		snprintf(e->name, sizeof(e->name), "%s", de.name);
		e->off = de.off;
		e->ino = de.stat.st.st_ino;
	}
	return rc;
}

static void l_seekdir(int h, int64_t off)
{
	pvfs_seekdir(dirs[h], off);
}

static int64_t l_telldir(int h)
{
	return pvfs_telldir(dirs[h]);
}

static int l_closedir(int h)
{
	struct pvfs_dir *d = dirs[h];

	dirs[h] = NULL;
	return pvfs_closedir(d);
}

static int l_lock(int h, int cmd, struct flock *fl)
{
	return ON(h, pvfs_lock(files[h], cmd, fl, 0));
}

static int l_flock(int h, int op)
{
	return ON(h, pvfs_flock(files[h], op, 0));
}

static mode_t l_umask(mode_t mask)
{
	return pvfs_umask(vol, mask);
}

static void l_setcred(const struct who *w)
{
	int err = pvfs_setcred(vol, w->uid, w->gid, w->groups, w->ngroups);

	if (err) {
		fprintf(stderr, "conform: pvfs_setcred: %s\n", strerror(-err));
		_exit(3);
	}
}

/* The first is the top, those that follow are in it; NULL: back there. Nothing may be open then. */
static int l_enter(const char *dir)
{
	int h;

	if (!*top)
		snprintf(top, sizeof(top), "/%s", dir);
	else if (dir)
		return snprintf(cwd, sizeof(cwd), "%s/%s", top, dir) < (int)sizeof(cwd) ? 0 : -ENAMETOOLONG;
	/* A table whose row failed may have left files open. */
	for (h = 0; h < (int)ARRAY_SIZE(files); h++)
		if (files[h])
			l_close(h);
	for (h = 0; h < (int)ARRAY_SIZE(dirs); h++)
		if (dirs[h])
			l_closedir(h);
	snprintf(cwd, sizeof(cwd), "%s", top);
	return 0;
}

int api_lib_mount(const char *spec)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	char *s = strdup(spec), *mgr, *volume, *key, err[512] = "";
	int rc;

	if (!s)
		return -ENOMEM;
	mgr = strtok(s, ",");
	volume = strtok(NULL, ",");
	key = strtok(NULL, ",");
	if (!mgr || !volume || !key) {
		free(s);
		return -EINVAL;
	}
	o.mgr = mgr;
	o.volume = volume;
	o.key_file = key;
	rc = pvfs_mount(&o, &vol, err, sizeof(err));
	if (rc)
		fprintf(stderr, "conform: %s\n", err);
	free(s);
	return rc;
}

int api_lib_umount(void)
{
	l_enter(NULL);
	return pvfs_umount(vol);
}

const struct api api_lib = {
	.name = "lib",
	.open = l_open, .close = l_close, .pread = l_pread, .pwrite = l_pwrite, .preadv = l_preadv,
	.pwritev = l_pwritev, .fsync = l_fsync, .fdatasync = l_fdatasync, .ftruncate = l_ftruncate,
	.fallocate = l_fallocate, .lseek = l_lseek, .copy_file_range = l_copy_file_range,
	.fstat = l_fstat, .fchmod = l_fchmod, .fchown = l_fchown, .futimens = l_futimens,
	.stat = l_stat, .lstat = l_lstat, .access = l_access, .truncate = l_truncate, .chmod = l_chmod,
	.chown = l_chown, .lchown = l_lchown, .utimens = l_utimens, .lutimens = l_lutimens,
	.mkdir = l_mkdir, .mknod = l_mknod, .rmdir = l_rmdir, .unlink = l_unlink, .rename = l_rename,
	.link = l_link, .symlink = l_symlink, .readlink = l_readlink,
	.getxattr = l_getxattr, .lgetxattr = l_lgetxattr, .fgetxattr = l_fgetxattr,
	.setxattr = l_setxattr, .lsetxattr = l_lsetxattr, .fsetxattr = l_fsetxattr,
	.listxattr = l_listxattr, .llistxattr = l_llistxattr, .flistxattr = l_flistxattr,
	.removexattr = l_removexattr, .lremovexattr = l_lremovexattr, .fremovexattr = l_fremovexattr,
	.opendir = l_opendir, .readdir = l_readdir, .seekdir = l_seekdir, .telldir = l_telldir,
	.closedir = l_closedir, .lock = l_lock, .flock = l_flock, .umask = l_umask,
	.setcred = l_setcred, .enter = l_enter,
};
