// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_names_test.c - libpvfs against a real cluster: names, attributes, handles, directories,
 * extended attributes, and what a mount may be refused for.
 */
#include "libpvfs_test.h"

static void test_names(void **state)
{
	struct pvfs_stat st, st2;
	struct pvfs_file *f;
	char buf[4096];

	OK(pvfs_mkdir(fs, "/names", 0777));
	assert_int_equal(pvfs_mkdir(fs, "/names", 0777), -EEXIST);
	assert_int_equal(pvfs_mkdir(fs, "/", 0777), -EEXIST);
	OK(pvfs_stat(fs, "names/", &st));
	assert_int_equal(st.st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st.st_nlink, 2);
	f = open_new("/names/a");
	OK(pvfs_close(f));
	assert_int_equal(pvfs_open(fs, "/names/a", O_RDWR | O_CREAT | O_EXCL, 0644, &f), -EEXIST);
	assert_int_equal(pvfs_open(fs, "/names/none", O_RDONLY, 0, &f), -ENOENT);
	assert_int_equal(pvfs_open(fs, "/names", O_RDONLY, 0, &f), -EISDIR);
	assert_int_equal(pvfs_open(fs, "/", O_RDONLY, 0, &f), -EISDIR);
	assert_int_equal(pvfs_open(fs, "/names/a/", O_RDONLY, 0, &f), -ENOTDIR);
	assert_int_equal(pvfs_open(fs, "/names/new/", O_RDWR | O_CREAT, 0644, &f), -EISDIR);
	assert_int_equal(pvfs_stat(fs, "/names/a/x", &st), -ENOTDIR);
	assert_int_equal(pvfs_stat(fs, "", &st), -ENOENT);

	OK(pvfs_link(fs, "/names/a", "/names/b"));
	OK(pvfs_stat(fs, "/names/a", &st));
	OK(pvfs_stat(fs, "/names/b", &st2));
	assert_int_equal(st.st.st_nlink, 2);
	assert_int_equal(st.fh.ino, st2.fh.ino);
	assert_int_equal(pvfs_link(fs, "/names", "/names/dirlink"), -EPERM);
	OK(pvfs_unlink(fs, "/names/a"));
	assert_int_equal(pvfs_unlink(fs, "/names/a"), -ENOENT);
	assert_int_equal(pvfs_unlink(fs, "/names"), -EISDIR);
	assert_int_equal(pvfs_unlink(fs, "/names/b/"), -ENOTDIR);

	OK(pvfs_symlink(fs, "b", "/names/s"));
	OK(pvfs_symlink(fs, "/names/s", "/names/t"));
	OK(pvfs_symlink(fs, "loop", "/names/loop"));
	OK(pvfs_symlink(fs, "nowhere", "/names/dangling"));
	OK(pvfs_symlink(fs, "../names", "/names/self"));
	assert_int_equal(pvfs_readlink(fs, "/names/t", buf, sizeof(buf)), 8);
	assert_memory_equal(buf, "/names/s", 8);
	assert_int_equal(pvfs_readlink(fs, "/names/t", buf, 3), 3);
	assert_int_equal(pvfs_readlink(fs, "/names/b", buf, 3), -EINVAL);
	OK(pvfs_stat(fs, "/names/t", &st));
	assert_int_equal(st.fh.ino, st2.fh.ino);
	OK(pvfs_lstat(fs, "/names/t", &st));
	assert_true(S_ISLNK(st.st.st_mode));
	assert_int_equal(st.st.st_size, 8);
	assert_int_equal(pvfs_stat(fs, "/names/loop", &st), -ELOOP);
	assert_int_equal(pvfs_stat(fs, "/names/loop/x", &st), -ELOOP);
	assert_int_equal(pvfs_open(fs, "/names/loop", O_RDONLY, 0, &f), -ELOOP);
	assert_int_equal(pvfs_stat(fs, "/names/dangling", &st), -ENOENT);
	OK(pvfs_stat(fs, "/names/self/self/../names/self/b", &st));
	assert_int_equal(st.fh.ino, st2.fh.ino);
	assert_int_equal(pvfs_stat(fs, "/names/t/", &st), -ENOTDIR);
	OK(pvfs_open(fs, "/names/t", O_RDONLY, 0, &f));
	OK(pvfs_close(f));
	assert_int_equal(pvfs_open(fs, "/names/t", O_RDONLY | O_NOFOLLOW, 0, &f), -ELOOP);
	OK(pvfs_open(fs, "/names/dangling", O_WRONLY | O_CREAT, 0600, &f));
	OK(pvfs_close(f));
	OK(pvfs_stat(fs, "/names/nowhere", &st));

	OK(pvfs_rename(fs, "/names/b", "/names/c", 0));
	assert_int_equal(pvfs_stat(fs, "/names/b", &st), -ENOENT);
	OK(pvfs_mkdir(fs, "/names/d1", 0777));
	OK(pvfs_mkdir(fs, "/names/d1/d2", 0777));
	assert_int_equal(pvfs_rename(fs, "/names/d1", "/names/d1/d2/d3", 0), -EINVAL);
	assert_int_equal(pvfs_rename(fs, "/names/c", "/names/d1", 0), -EISDIR);
	assert_int_equal(pvfs_rename(fs, "/names/d1", "/names/c", 0), -ENOTDIR);
	assert_int_equal(pvfs_rename(fs, "/names/c", "/names/nowhere", 1), -EEXIST);
	OK(pvfs_rename(fs, "/names/c", "/names/nowhere", 0));
	assert_int_equal(pvfs_rmdir(fs, "/names/d1"), -ENOTEMPTY);
	assert_int_equal(pvfs_rmdir(fs, "/names/nowhere"), -ENOTDIR);
	assert_int_equal(pvfs_rmdir(fs, "/"), -EBUSY);
	OK(pvfs_rmdir(fs, "/names/d1/d2/"));
	OK(pvfs_rmdir(fs, "/names/d1"));

	OK(pvfs_mknod(fs, "/names/fifo", S_IFIFO | 0600, 0));
	OK(pvfs_lstat(fs, "/names/fifo", &st));
	assert_true(S_ISFIFO(st.st.st_mode));
	assert_int_equal(pvfs_open(fs, "/names/fifo", O_RDONLY, 0, &f), -ENXIO);
}

static void test_attributes(void **state)
{
	struct timespec ts[2] = { { 1000000000, 123456789 }, { -5, 999999999 } };
	struct pvfs_stat st;
	struct pvfs_file *f = open_new("/attr");

	OK(pvfs_fchmod(f, 0640));
	OK(pvfs_chown(fs, "/attr", 12, 34));
	OK(pvfs_futimens(f, ts));
	OK(pvfs_stat(fs, "/attr", &st));
	assert_int_equal(st.st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st.st_uid, 12);
	assert_int_equal(st.st.st_gid, 34);
	assert_int_equal(st.st.st_atim.tv_sec, 1000000000);
	assert_int_equal(st.st.st_atim.tv_nsec, 123456789);
	assert_int_equal(st.st.st_mtim.tv_sec, -5);
	assert_int_equal(st.st.st_mtim.tv_nsec, 999999999);
	ts[0].tv_nsec = UTIME_OMIT;
	ts[1].tv_nsec = UTIME_NOW;
	OK(pvfs_utimens(fs, "/attr", ts));
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_atim.tv_sec, 1000000000);
	assert_in_range(st.st.st_mtim.tv_sec, time(NULL) - 60, time(NULL) + 60);
	ts[1].tv_nsec = 1000000000;
	assert_int_equal(pvfs_utimens(fs, "/attr", ts), -EINVAL);

	/* A time that is set after a write stays, whatever is reported later. */
	write_at(f, 0, 100);
	ts[0] = ts[1] = (struct timespec){ 5, 6 };
	OK(pvfs_futimens(f, ts));
	OK(pvfs_close(f));
	OK(pvfs_stat(fs, "/attr", &st));
	assert_int_equal(st.st.st_mtim.tv_sec, 5);
	assert_int_equal(st.st.st_mtim.tv_nsec, 6);
	assert_int_equal(st.st.st_size, 100);

	/* As somebody else. */
	OK(pvfs_setcred(other, 1000, 1000, NULL, 0));
	assert_int_equal(pvfs_chmod(other, "/attr", 0777), -EPERM);
	assert_int_equal(pvfs_open(other, "/attr", O_RDONLY, 0, &f), -EACCES);
	assert_int_equal(pvfs_access(other, "/attr", R_OK), -EACCES);
	OK(pvfs_setcred(other, 1000, 1000, (gid_t[]){ 5, 34 }, 2));
	OK(pvfs_access(other, "/attr", R_OK));
	OK(pvfs_open(other, "/attr", O_RDONLY, 0, &f));
	assert_int_equal(pvfs_pwrite(f, "x", 1, 0), -EBADF);
	OK(pvfs_close(f));
	assert_int_equal(pvfs_open(other, "/attr", O_WRONLY, 0, &f), -EACCES);
	assert_int_equal(pvfs_mkdir(other, "/notmine", 0777), -EACCES);

	/* Writing takes the set-id bits away, unless root writes. */
	OK(pvfs_chmod(fs, "/attr", 06777));
	OK(pvfs_open(fs, "/attr", O_WRONLY, 0, &f));
	write_at(f, 0, 1);
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_mode & 07777, 06777);
	OK(pvfs_close(f));
	OK(pvfs_open(other, "/attr", O_WRONLY, 0, &f));
	assert_int_equal(pvfs_pwrite(f, "x", 1, 0), 1);
	OK(pvfs_close(f));
	OK(pvfs_stat(fs, "/attr", &st));
	assert_int_equal(st.st.st_mode & 07777, 0777);
	OK(pvfs_setcred(other, 0, 0, NULL, 0));
}

/* ---------------------------------------------------------------- directories */

static void test_readdir(void **state)
{
	enum { N = 3000 };
	struct pvfs_dirent e;
	struct pvfs_file *f;
	struct pvfs_dir *d;
	static bool seen[N];
	char path[64];
	int64_t middle = 0;
	int i, k, n = 0;

	OK(pvfs_mkdir(fs, "/dir", 0755));
	for (i = 0; i < N; i++) {
		snprintf(path, sizeof(path), "/dir/entry-%d", i);
		OK(pvfs_open(fs, path, O_WRONLY | O_CREAT, 0600 + i % 8, &f));
		if (i == 7)
			write_at(f, 0, 777);
		OK(pvfs_close(f));
	}
	OK(pvfs_opendir(fs, "/dir", &d));
	/* 3,000 entries of 144 bytes in replies of 256 KiB; and not one request for an entry. */
	MGR_COSTS(2, while (pvfs_readdir(d, &e) == 1) n++);
	assert_int_equal(n, N + 2);
	pvfs_seekdir(d, 0);
	assert_int_equal(pvfs_readdir(d, &e), 1);
	assert_string_equal(e.name, ".");
	assert_int_equal(pvfs_readdir(d, &e), 1);
	assert_string_equal(e.name, "..");
	for (n = 0; pvfs_readdir(d, &e) == 1; n++) {
		assert_int_equal(sscanf(e.name, "entry-%d", &k), 1);
		assert_in_range(k, 0, N - 1);
		assert_false(seen[k]);
		seen[k] = true;
		assert_int_equal(e.stat.st.st_mode, S_IFREG | ((0600 + k % 8) & ~022));
		assert_int_equal(e.stat.st.st_size, k == 7 ? 777 : 0);
		if (n == N / 2)
			middle = e.off;
	}
	assert_int_equal(n, N);
	/* Going back to a place, after entries before and behind it were removed. */
	OK(pvfs_unlink(other, "/dir/entry-0"));
	OK(pvfs_unlink(other, "/dir/entry-1"));
	pvfs_seekdir(d, middle);
	assert_int_equal(pvfs_telldir(d), middle);
	for (n = 0; pvfs_readdir(d, &e) == 1; n++)
		;
	assert_in_range(n, N / 2 - 3, N / 2);
	assert_int_equal(pvfs_umount(fs), -EBUSY);
	OK(pvfs_closedir(d));
	assert_int_equal(pvfs_opendir(fs, "/dir/entry-2", &d), -ENOTDIR);
	assert_int_equal(pvfs_rmdir(fs, "/dir"), -ENOTEMPTY);
}

/* ---------------------------------------------------------------- many at once */

static void *name_worker(void *arg)
{
	struct worker *w = arg;
	struct pvfs_fs *me = w->n % 2 ? fs : other;
	char a[64], b[64];
	struct pvfs_stat st;
	struct pvfs_file *f;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		snprintf(a, sizeof(a), "/conc/a%d-%d", w->n, i);
		snprintf(b, sizeof(b), "/conc/b%d-%d", w->n, i);
		if (pvfs_open(me, a, O_WRONLY | O_CREAT | O_EXCL, 0644, &f)) {
			w->errors++;
			continue;
		}
		w->errors += pvfs_pwrite(f, a, i, 0) != i;
		w->errors += pvfs_rename(me, a, b, 0) != 0;
		w->errors += pvfs_close(f) != 0;
		w->errors += pvfs_stat(me == fs ? other : fs, b, &st) || st.st.st_size != i;
		w->errors += pvfs_stat(me, a, &st) != -ENOENT;
		w->errors += pvfs_link(me, b, a) != 0;
		w->errors += pvfs_unlink(me, b) != 0;
		w->errors += pvfs_unlink(me, a) != 0;
	}
	return NULL;
}

static void test_concurrent_names(void **state)
{
	OK(pvfs_mkdir(fs, "/conc", 0755));
	work_all(name_worker, NULL, NULL);
	OK(pvfs_rmdir(fs, "/conc"));
}

/* ---------------------------------------------------------------- handles, forks, volumes */

static void test_handles(void **state)
{
	struct pvfs_volinfo vi;
	struct pvfs_fsstat vs;
	struct pvfs_stat st, dir;
	struct pvfs_file *f;
	struct pvfs_fh gone;
	char buf[64];

	OK(pvfs_volinfo(fs, &vi));
	assert_int_equal(vi.niods, NIODS);
	OK(pvfs_iod_name(fs, 3, buf, sizeof(buf)));
	assert_int_equal(pvfs_iod_name(fs, 4, buf, sizeof(buf)), -ENOENT);
	OK(pvfs_statfs(fs, &vs));
	assert_int_equal(vs.iods_up, NIODS);
	assert_true(vs.vfs.f_blocks > 0);
	OK(pvfs_mkdir_fh(fs, &vi.root, "fh", 0755, &dir));
	OK(pvfs_symlink_fh(fs, "target", &dir.fh, "s", &st));
	assert_int_equal(pvfs_readlink_fh(fs, &st.fh, buf, sizeof(buf)), 6);
	OK(pvfs_create_fh(fs, &dir.fh, "f", O_RDWR | O_CREAT, 0600, NULL, &f, &st));
	OK(pvfs_close(f));
	OK(pvfs_truncate_fh(fs, &st.fh, 12345, &st));
	assert_int_equal(st.st.st_size, 12345);
	OK(pvfs_chmod_fh(fs, &st.fh, 0611, &st));
	OK(pvfs_chown_fh(fs, &st.fh, -1, 7, &st));
	assert_int_equal(st.st.st_mode & 07777, 0611);
	assert_int_equal(st.st.st_gid, 7);
	assert_int_equal(st.st.st_uid, 0);
	OK(pvfs_open_fh(fs, &st.fh, O_RDONLY, &f));
	assert_int_equal(pvfs_pread(f, buf, sizeof(buf), 12340), 5);
	OK(pvfs_close(f));
	OK(pvfs_link_fh(fs, &st.fh, &dir.fh, "g", &st));
	OK(pvfs_rename_fh(fs, &dir.fh, "g", &vi.root, "g", 0));
	OK(pvfs_unlink_fh(fs, &vi.root, "g"));
	assert_int_equal(pvfs_mkdir_fh(fs, &vi.root, "a/b", 0755, NULL), -EINVAL);
	assert_int_equal(pvfs_mkdir_fh(fs, &vi.root, "", 0755, NULL), -ENOENT);
	gone = st.fh;
	OK(pvfs_unlink_fh(fs, &dir.fh, "f"));
	OK(pvfs_unlink_fh(fs, &dir.fh, "s"));
	OK(pvfs_rmdir_fh(fs, &vi.root, "fh"));
	assert_int_equal(pvfs_stat_fh(fs, &gone, &st), -ESTALE);
	assert_int_equal(pvfs_open_fh(fs, &gone, O_RDONLY, &f), -ESTALE);
	gone.gen++;
	assert_int_equal(pvfs_stat_fh(fs, &gone, &st), -ESTALE);
}

static void test_fork(void **state)
{
	struct pvfs_file *f = open_new("/fork");
	struct pvfs_stat st;
	int status;
	pid_t pid;
	char c;

	write_at(f, 0, 10);
	pid = fork();
	if (!pid) {
		int bad = pvfs_stat(fs, "/", &st) != -EBADF || pvfs_pread(f, &c, 1, 0) != -EBADF ||
			  pvfs_pwrite(f, &c, 1, 0) != -EBADF || pvfs_fsync(f) != -EBADF ||
			  pvfs_close(f) != -EBADF || pvfs_umount(fs) != -EBADF || pvfs_unlink(fs, "/fork") != -EBADF;

		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_at(f, 0, 10);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/fork"));
}

/* ---------------------------------------------------------------- extended attributes */

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

static void test_xattrs(void **state)
{
	static char big[65537], got[65537];
	struct pvfs_file *f = open_new("/xattrs");
	struct pvfs_stat st;
	struct pvfs_fh fh;
	char name[300];
	int i;

	for (i = 0; i < (int)sizeof(big); i++)
		big[i] = byte_at(i);
	OK(pvfs_symlink(fs, "xattrs", "/xattrs-link"));
	OK(pvfs_resolve(fs, "/xattrs", 0, &fh));
	MGR_COSTS(2, assert_int_equal(pvfs_getxattr(fs, "/xattrs", "user.a", got, 10), -ENODATA));
	MGR_COSTS(2, OK(pvfs_setxattr(fs, "/xattrs", "user.a", "one", 3, XATTR_CREATE)));
	assert_int_equal(pvfs_setxattr(fs, "/xattrs", "user.a", "x", 1, XATTR_CREATE), -EEXIST);
	assert_int_equal(pvfs_setxattr(fs, "/xattrs", "user.b", "x", 1, XATTR_REPLACE), -ENODATA);
	assert_int_equal(pvfs_setxattr(fs, "/xattrs", "user.b", "x", 1, 8), -EINVAL);
	/* At once, by any way there is. */
	assert_int_equal(pvfs_getxattr(other, "/xattrs-link", "user.a", got, sizeof(got)), 3);
	assert_memory_equal(got, "one", 3);
	assert_int_equal(pvfs_lgetxattr(other, "/xattrs-link", "user.a", got, 10), -ENODATA);
	MGR_COSTS(1, assert_int_equal(pvfs_fgetxattr(f, "user.a", got, 10), 3));
	MGR_COSTS(1, assert_int_equal(pvfs_getxattr_fh(fs, &fh, "user.a", got, 10), 3));
	assert_int_equal(pvfs_getxattr(fs, "/xattrs", "user.a", got, 2), -ERANGE);
	assert_int_equal(pvfs_getxattr(fs, "/xattrs", "user.a", NULL, 0), 3);
	OK(pvfs_fsetxattr(f, "user.a", big, 65536, 0));
	assert_int_equal(pvfs_fsetxattr(f, "user.a", big, 65537, 0), -E2BIG);
	assert_int_equal(pvfs_getxattr(other, "/xattrs", "user.a", got, sizeof(got)), 65536);
	assert_memory_equal(got, big, 65536);
	OK(pvfs_setxattr_fh(other, &fh, "user.empty", NULL, 0, 0));
	assert_int_equal(pvfs_fgetxattr(f, "user.empty", got, 10), 0);
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[256] = 0;
	assert_int_equal(pvfs_fsetxattr(f, name, "x", 1, 0), -ERANGE);
	assert_int_equal(pvfs_fsetxattr(f, "", "x", 1, 0), -ERANGE);
	name[255] = 0;
	OK(pvfs_fsetxattr(f, name, "x", 1, 0));
	OK(pvfs_fremovexattr(f, name));
	/* Lists. */
	OK(pvfs_lsetxattr(fs, "/xattrs-link", "trusted.own", "x", 1, 0));
	assert_int_equal(pvfs_lsetxattr(fs, "/xattrs-link", "user.own", "x", 1, 0), -EPERM);
	assert_int_equal(pvfs_llistxattr(fs, "/xattrs-link", got, 100), 12);
	assert_string_equal(got, "trusted.own");
	assert_int_equal(pvfs_listxattr(fs, "/xattrs-link", NULL, 0), 7 + 11);
	assert_int_equal(pvfs_listxattr(fs, "/xattrs", got, 17), -ERANGE);
	assert_int_equal(pvfs_flistxattr(f, got, 18), 18);
	assert_memory_equal(got, "user.a\0user.empty", 18);
	assert_int_equal(pvfs_listxattr_fh(other, &fh, got, 100), 18);
	OK(pvfs_removexattr(fs, "/xattrs-link", "user.a"));
	OK(pvfs_removexattr_fh(fs, &fh, "user.empty"));
	OK(pvfs_lremovexattr(fs, "/xattrs-link", "trusted.own"));
	assert_int_equal(pvfs_removexattr(other, "/xattrs", "user.a"), -ENODATA);
	assert_int_equal(pvfs_flistxattr(f, NULL, 0), 0);
	/* What a program may do is gone when it is written to. */
	OK(pvfs_fsetxattr(f, "security.capability", "\1\0\0\2\0\40\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0));
	OK(pvfs_fchmod(f, 04755));
	write_at(f, 0, 100);
	assert_int_equal(pvfs_fgetxattr(f, "security.capability", NULL, 0), -ENODATA);
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_mode & 07777, 04755);
	COSTS(PVFS_SERVER_MGR, "SETATTR", 0, write_at(f, 100, 100));
	OK(pvfs_close(f));
	assert_int_equal(pvfs_listxattr(fs, "/nosuch", NULL, 0), -ENOENT);
	OK(pvfs_unlink(fs, "/xattrs"));
	OK(pvfs_unlink(fs, "/xattrs-link"));
	assert_int_equal(pvfs_getxattr_fh(fs, &fh, "user.a", got, 10), -ESTALE);
}

static void test_acls(void **state)
{
	/* u:rwx u1000:r-x g:--- m:r-x o:---; and a default one with w for 1000 */
	static const uint8_t acl[] = {
		2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 5, 0, 0xe8, 3, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255,
		16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
	};
	uint8_t def[sizeof(acl)], got[100];
	struct pvfs_stat st;
	struct pvfs_dir *d;
	struct pvfs_file *f;

	memcpy(def, acl, sizeof(def));
	def[14] = def[30] = 7;
	OK(pvfs_mkdir(fs, "/acls", 0700));
	OK(pvfs_mkdir(fs, "/acls/sub", 0777));
	OK(pvfs_setcred(other, 1000, 1000, NULL, 0));
	assert_int_equal(pvfs_access(other, "/acls", R_OK), -EACCES);
	assert_int_equal(pvfs_opendir(other, "/acls", &d), -EACCES);
	assert_int_equal(pvfs_stat(other, "/acls/sub", &st), -EACCES);
	assert_int_equal(pvfs_setxattr(other, "/acls", ACCESS, acl, sizeof(acl), 0), -EPERM);
	OK(pvfs_setxattr(fs, "/acls", ACCESS, acl, sizeof(acl), 0));
	OK(pvfs_stat(fs, "/acls", &st));
	assert_int_equal(st.st.st_mode, S_IFDIR | 0750);
	OK(pvfs_access(other, "/acls", R_OK | X_OK));
	assert_int_equal(pvfs_access(other, "/acls", W_OK), -EACCES);
	OK(pvfs_opendir(other, "/acls", &d));
	OK(pvfs_closedir(d));
	OK(pvfs_stat(other, "/acls/sub", &st));
	assert_int_equal(pvfs_mkdir(other, "/acls/no", 0777), -EACCES);
	OK(pvfs_chmod(fs, "/acls", 0710));
	assert_int_equal(pvfs_access(other, "/acls", R_OK), -EACCES);
	assert_int_equal(pvfs_getxattr(other, "/acls", ACCESS, got, sizeof(got)), sizeof(acl));
	assert_int_equal(got[30], 1);
	/* A default ACL takes the place of the mask, which is 022. */
	OK(pvfs_setxattr(fs, "/acls/sub", DEFAULT, def, sizeof(def), 0));
	OK(pvfs_open(fs, "/acls/sub/f", O_WRONLY | O_CREAT, 0666, &f));
	OK(pvfs_close(f));
	OK(pvfs_stat(fs, "/acls/sub/f", &st));
	assert_int_equal(st.st.st_mode & 0777, 0660);
	OK(pvfs_open(other, "/acls/sub/f", O_RDWR, 0, &f));
	OK(pvfs_close(f));
	OK(pvfs_mkdir(fs, "/acls/sub/d", 0777));
	assert_int_equal(pvfs_getxattr(fs, "/acls/sub/d", DEFAULT, got, sizeof(got)), sizeof(def));
	assert_memory_equal(got, def, sizeof(def));
	OK(pvfs_stat(fs, "/acls/sub/d", &st));
	assert_int_equal(st.st.st_mode & 0777, 0770);
	OK(pvfs_removexattr(fs, "/acls/sub", DEFAULT));
	OK(pvfs_mknod(fs, "/acls/sub/g", S_IFREG | 0666, 0));
	OK(pvfs_stat(fs, "/acls/sub/g", &st));
	assert_int_equal(st.st.st_mode & 0777, 0644);
	OK(pvfs_setcred(other, 0, 0, NULL, 0));
	OK(pvfs_rmdir(fs, "/acls/sub/d"));
	OK(pvfs_unlink(fs, "/acls/sub/f"));
	OK(pvfs_unlink(fs, "/acls/sub/g"));
	OK(pvfs_rmdir(fs, "/acls/sub"));
	OK(pvfs_rmdir(fs, "/acls"));
}

static void test_mount_errors(void **state)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_fs *p;
	char err[256];

	assert_int_equal(pvfs_mount(&o, &p, err, sizeof(err)), -EINVAL);
	assert_true(strlen(err) > 0);
	o.mgr = getenv("PVFS_TEST_MGR");
	o.volume = "nosuch";
	o.key_file = getenv("PVFS_TEST_KEY");
	assert_int_equal(pvfs_mount(&o, &p, err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "nosuch"));
	o.struct_size = sizeof(o) + 8;
	assert_int_equal(pvfs_mount(&o, &p, NULL, 0), -EINVAL);
}

static uid_t maker(struct pvfs_fs *of, const char *path, mode_t *mode)
{
	struct pvfs_stat st;

	OK(pvfs_mkdir(of, path, 0777));
	OK(pvfs_stat(of, path, &st));
	OK(pvfs_rmdir(of, path));
	*mode = st.st.st_mode & 0777;
	return st.st.st_uid;
}

static void *maker_elsewhere(void *arg)
{
	mode_t mode;

	return (void *)(uintptr_t)maker(arg, "/elsewhere", &mode);
}

/* Of a thread, and of a mount: no other thread's calls, and no mount's that comes later. */
static void test_thread_cred(void **state)
{
	struct pvfs_fs *m = mount_one();
	pthread_t t;
	mode_t mode;
	void *uid;
	int i;

	OK(pvfs_chmod(fs, "/", 0777));
	pvfs_umask(m, 022);
	OK(pvfs_setcred_thread(m, 1000, 1000, NULL, 0, 077));
	assert_int_equal(maker(m, "/here", &mode), 1000);
	assert_int_equal(mode, 0700);
	assert_int_equal(maker(other, "/other", &mode), 0);
	OK(pthread_create(&t, NULL, maker_elsewhere, m));
	pthread_join(t, &uid);
	assert_int_equal((uintptr_t)uid, 0);
	pvfs_endcred_thread();
	assert_int_equal(maker(m, "/here", &mode), 0);
	assert_int_equal(mode, 0755);
	/* One of these gets the memory that the one before had. */
	for (i = 0; i < 20; i++) {
		OK(pvfs_setcred_thread(m, 1000, 1000, NULL, 0, 077));
		assert_int_equal(pvfs_umount(m), 0);
		m = mount_one();
		assert_int_equal(maker(m, "/here", &mode), 0);
	}
	pvfs_endcred_thread();
	assert_int_equal(pvfs_umount(m), 0);
	OK(pvfs_chmod(fs, "/", 0755));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_readdir),
		cmocka_unit_test(test_concurrent_names),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_xattrs),
		cmocka_unit_test(test_acls),
		cmocka_unit_test(test_mount_errors),
		cmocka_unit_test(test_thread_cred),
	};

	return cmocka_run_group_tests_name("names", tests, setup, teardown);
}
