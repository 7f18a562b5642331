// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_test.c - every call of libpvfs against a real cluster: results, and how many requests they take.
 *
 * libpvfs.t starts the cluster (4 iods) and gives PVFS_TEST_MGR, PVFS_TEST_VOLUME, PVFS_TEST_KEY, and
 * PVFS_TEST_RESTART: a command that kills the daemon it is given and starts it again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/pvfs.h"

#define MIB (1u << 20)
#define NIODS 4
#define SSIZE 65536u

static struct pvfs_fs *fs, *other;	/* two clients */

static struct pvfs_fs *mount_one(void)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_fs *ret = NULL;
	char err[512] = "";
	int rc;

	o.mgr = getenv("PVFS_TEST_MGR");
	o.volume = getenv("PVFS_TEST_VOLUME");
	o.key_file = getenv("PVFS_TEST_KEY");
	rc = pvfs_mount(&o, &ret, err, sizeof(err));
	if (rc)
		print_error("mount: %s\n", err);
	assert_int_equal(rc, 0);
	return ret;
}

static int setup(void **state)
{
	fs = mount_one();
	other = mount_one();
	pvfs_umask(fs, 022);
	pvfs_umask(other, 022);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(pvfs_umount(fs), 0);
	assert_int_equal(pvfs_umount(other), 0);
	return 0;
}

static uint64_t count(int server, const char *op)
{
	struct pvfs_opcount c;

	assert_int_equal(pvfs_counters(fs, server, op, &c), 0);
	return c.count;
}

/* Requests to the mgr that an operation was, heartbeats aside. */
static uint64_t mgr_total(void)
{
	return count(PVFS_SERVER_MGR, NULL) - count(PVFS_SERVER_MGR, "SESSION_RENEW") -
	       count(PVFS_SERVER_MGR, "CLOSE");
}

#define COSTS(server, op, n, call) do { \
		uint64_t before_ = count(server, op); \
		call; \
		assert_int_equal(count(server, op) - before_, n); \
	} while (0)
#define MGR_COSTS(n, call) do { \
		uint64_t before_ = mgr_total(); \
		call; \
		assert_int_equal(mgr_total() - before_, n); \
	} while (0)
#define OK(call) assert_int_equal(call, 0)

/* Byte @i of the test's files: no stripe unit is like another. */
static uint8_t byte_at(uint64_t i)
{
	return (i * 2654435761u >> 13) ^ (i >> 16) * 31 ^ i;
}

static uint8_t *pattern(uint64_t off, size_t n)
{
	uint8_t *p = malloc(n ? n : 1);
	size_t i;

	assert_non_null(p);
	for (i = 0; i < n; i++)
		p[i] = byte_at(off + i);
	return p;
}

static void write_at(struct pvfs_file *f, uint64_t off, size_t n)
{
	uint8_t *p = pattern(off, n);

	assert_int_equal(pvfs_pwrite(f, p, n, off), n);
	free(p);
}

static void check_at(struct pvfs_file *f, uint64_t off, size_t n)
{
	uint8_t *p = pattern(off, n), *q = malloc(n ? n : 1);

	assert_int_equal(pvfs_pread(f, q, n, off), n);
	assert_memory_equal(p, q, n);
	free(p);
	free(q);
}

static struct pvfs_file *open_new(const char *path)
{
	struct pvfs_file *f;

	OK(pvfs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, 0644, &f));
	return f;
}

/* ---------------------------------------------------------------- names */

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

/* ---------------------------------------------------------------- data */

static void test_edges(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, 4095, SSIZE - 1, SSIZE, SSIZE + 1, NIODS * SSIZE - 1, NIODS * SSIZE, NIODS * SSIZE + 1,
		3 * NIODS * SSIZE + 17, 10 * MIB,
	};
	struct pvfs_file *f, *g;
	struct pvfs_stat st;
	uint8_t buf[64];
	char path[32];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t n = sizes[i];

		snprintf(path, sizeof(path), "/edge%zu", i);
		f = open_new(path);
		write_at(f, 0, n);
		check_at(f, 0, n);
		OK(pvfs_fstat(f, &st));
		assert_int_equal(st.st.st_size, n);
		/* What another client sees, while it is open and after. */
		OK(pvfs_stat(other, path, &st));
		assert_int_equal(st.st.st_size, n);
		OK(pvfs_open(other, path, O_RDONLY, 0, &g));
		check_at(g, 0, n);
		assert_int_equal(pvfs_pread(g, buf, sizeof(buf), n), 0);
		assert_int_equal(pvfs_pread(g, buf, sizeof(buf), n + 1000000), 0);
		if (n > 10)
			assert_int_equal(pvfs_pread(g, buf, sizeof(buf), n - 10), 10);
		OK(pvfs_close(f));
		OK(pvfs_stat(other, path, &st));
		assert_int_equal(st.st.st_size, n);
		assert_int_equal(pvfs_pread(g, buf, sizeof(buf), n), 0);
		OK(pvfs_close(g));
		OK(pvfs_stat(fs, path, &st));
		assert_int_equal(st.st.st_size, n);
		OK(pvfs_unlink(fs, path));
	}
}

/* Every pair of a start and an end around unit boundaries, against a copy in memory. */
static void test_ranges(void **state)
{
	static const int around[] = { -4097, -1, 0, 1, 4096 };
	const size_t size = 3 * NIODS * SSIZE;
	uint8_t *want = pattern(0, size), *got = malloc(size);
	struct pvfs_file *f = open_new("/ranges");
	size_t a, b, i, j;

	assert_non_null(got);
	write_at(f, 0, size);
	for (a = 1; a < 6; a++) {
		for (b = a; b < 10; b++) {
			for (i = 0; i < 5; i++) {
				for (j = 0; j < 5; j++) {
					size_t from = a * SSIZE + around[i], to = b * SSIZE + around[j];

					if (to <= from)
						continue;
					assert_int_equal(pvfs_pread(f, got, to - from, from), to - from);
					assert_memory_equal(got, want + from, to - from);
					memset(want + from, a * 16 + b, to - from > 100 ? 100 : to - from);
					assert_int_equal(pvfs_pwrite(f, want + from, to - from, from), to - from);
				}
			}
		}
	}
	assert_int_equal(pvfs_pread(f, got, size, 0), size);
	assert_memory_equal(got, want, size);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/ranges"));
	free(want);
	free(got);
}

static void test_holes(void **state)
{
	struct pvfs_file *f = open_new("/holes");
	uint8_t *buf = malloc(2 * MIB), *zero = calloc(1, 2 * MIB);
	struct pvfs_stat st;

	/* One byte beyond the second row: all else is hole, on daemons that have no datafile at all. */
	assert_int_equal(pvfs_pwrite(f, "x", 1, 9 * SSIZE + 5), 1);
	memset(buf, 0xff, 2 * MIB);
	assert_int_equal(pvfs_pread(f, buf, 2 * MIB, 0), 9 * SSIZE + 6);
	assert_memory_equal(buf, zero, 9 * SSIZE + 5);
	assert_int_equal(buf[9 * SSIZE + 5], 'x');
	/* The untouched rest of the caller's memory. */
	assert_int_equal(buf[9 * SSIZE + 6], 0xff);
	memset(buf, 0xff, 100);
	assert_int_equal(pvfs_pread(f, buf, 100, SSIZE - 50), 100);
	assert_memory_equal(buf, zero, 100);

	/* Growing and cutting, here and by the other client. */
	OK(pvfs_ftruncate(f, 20 * SSIZE + 3));
	OK(pvfs_stat(other, "/holes", &st));
	assert_int_equal(st.st.st_size, 20 * SSIZE + 3);
	memset(buf, 0xff, 2 * MIB);
	assert_int_equal(pvfs_pread(f, buf, 2 * MIB, 10 * SSIZE), 10 * SSIZE + 3);
	assert_memory_equal(buf, zero, 10 * SSIZE + 3);
	OK(pvfs_truncate(other, "/holes", SSIZE / 2));
	assert_int_equal(pvfs_pread(f, buf, 2 * MIB, 0), SSIZE / 2);
	assert_int_equal(pvfs_pread(f, buf, 100, 9 * SSIZE), 0);
	OK(pvfs_ftruncate(f, 10 * SSIZE));
	memset(buf, 0xff, 2 * MIB);
	assert_int_equal(pvfs_pread(f, buf, 2 * MIB, 0), 10 * SSIZE);
	assert_memory_equal(buf, zero, 10 * SSIZE);	/* the x is gone */
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_size, 10 * SSIZE);
	assert_int_equal(pvfs_ftruncate(f, -1), -EINVAL);

	/* Far out. */
	assert_int_equal(pvfs_pwrite(f, "end", 3, (off_t)5 << 40), 3);
	OK(pvfs_stat(other, "/holes", &st));
	assert_true(st.st.st_size == ((off_t)5 << 40) + 3);
	assert_int_equal(pvfs_pread(f, buf, 100, ((off_t)5 << 40) - 10), 13);
	assert_memory_equal(buf, "\0\0\0\0\0\0\0\0\0\0end", 13);
	assert_int_equal(pvfs_pread(f, buf, 10, -1), -EINVAL);
	assert_int_equal(pvfs_pwrite(f, buf, 10, -1), -EINVAL);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/holes"));
	free(buf);
	free(zero);
}

static void test_vectors(void **state)
{
	struct pvfs_file *f = open_new("/vectors");
	uint8_t *p = pattern(0, 300000), *q = calloc(1, 300000);
	struct iovec iov[100];
	size_t at = 0;
	int i;

	for (i = 0; i < 100; i++) {
		size_t n = i % 7 == 0 ? 0 : (i * 7919) % 6000;

		n = at + n > 300000 ? 300000 - at : n;
		iov[i] = (struct iovec){ p + at, n };
		at += n;
	}
	assert_int_equal(pvfs_pwritev(f, iov, 100, SSIZE - 100), at);
	for (i = 0; i < 100; i++)
		iov[i].iov_base = q + ((uint8_t *)iov[i].iov_base - p);
	assert_int_equal(pvfs_preadv(f, iov, 100, SSIZE - 100), at);
	assert_memory_equal(p, q, at);
	assert_int_equal(pvfs_preadv(f, iov, 0, 0), 0);
	assert_int_equal(pvfs_preadv(f, iov, -1, 0), -EINVAL);
	OK(pvfs_close(f));

	/* Appending, by both clients in turn. */
	OK(pvfs_unlink(fs, "/vectors"));
	OK(pvfs_open(fs, "/vectors", O_WRONLY | O_CREAT | O_APPEND, 0644, &f));
	assert_int_equal(pvfs_pwrite(f, "one", 3, 1000), 3);
	assert_int_equal(pvfs_pread(f, q, 1, 0), -EBADF);
	{
		struct pvfs_file *g;

		OK(pvfs_open(other, "/vectors", O_RDWR | O_APPEND, 0644, &g));
		assert_int_equal(pvfs_pwrite(g, "two", 3, 0), 3);
		assert_int_equal(pvfs_pwrite(f, "three", 5, 0), 5);
		assert_int_equal(pvfs_pread(g, q, 100, 0), 11);
		assert_memory_equal(q, "onetwothree", 11);
		OK(pvfs_close(g));
	}
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/vectors"));
	free(p);
	free(q);
}

static void test_small_units(void **state)
{
	struct pvfs_striping s = { .base = 1, .pcount = 3, .ssize = 4096 }, t;
	struct pvfs_file *f;
	struct pvfs_stat st;

	OK(pvfs_open_striped(fs, "/small", O_RDWR | O_CREAT, 0644, &s, &f));
	/* 4 MiB in units of 4 KiB: more pieces than one system call takes. */
	write_at(f, 1, 12 * MIB);
	check_at(f, 1, 12 * MIB);
	check_at(f, 4095, 3 * MIB + 5);
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.striping.base, 1);
	assert_int_equal(st.striping.pcount, 3);
	assert_int_equal(st.striping.ssize, 4096);
	OK(pvfs_close(f));
	assert_int_not_equal(pvfs_setlayout(fs, "/small", &s), 0);
	OK(pvfs_unlink(fs, "/small"));
	s = (struct pvfs_striping){ .base = PVFS_BASE_ANY, .pcount = 2, .ssize = 8192 };
	OK(pvfs_mkdir(fs, "/layout", 0755));
	OK(pvfs_setlayout(fs, "/layout", &s));
	OK(pvfs_getlayout(fs, "/layout", &t));
	assert_int_equal(t.pcount, 2);
	OK(pvfs_mkdir(fs, "/layout/sub", 0755));
	OK(pvfs_open(fs, "/layout/sub/f", O_WRONLY | O_CREAT, 0644, &f));
	OK(pvfs_close(f));
	OK(pvfs_getlayout(fs, "/layout/sub/f", &t));
	assert_int_equal(t.ssize, 8192);
	assert_int_equal(t.pcount, 2);
	s.pcount = NIODS + 1;
	assert_int_equal(pvfs_setlayout(fs, "/layout", &s), -EINVAL);
	s = (struct pvfs_striping){ .ssize = 5000, .pcount = 1 };
	assert_int_equal(pvfs_setlayout(fs, "/layout", &s), -EINVAL);
}

static void test_unlinked(void **state)
{
	struct pvfs_file *f = open_new("/unlinked"), *g;
	struct pvfs_stat st;

	write_at(f, 0, 3 * SSIZE);
	OK(pvfs_open(other, "/unlinked", O_RDONLY, 0, &g));
	OK(pvfs_unlink(other, "/unlinked"));
	check_at(f, 0, 3 * SSIZE);
	check_at(g, 100, SSIZE);
	write_at(f, 3 * SSIZE, SSIZE);
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_nlink, 0);
	assert_int_equal(st.st.st_size, 4 * SSIZE);
	OK(pvfs_fsync(f));
	OK(pvfs_close(f));
	check_at(g, 3 * SSIZE, SSIZE);
	OK(pvfs_close(g));
}

static void test_sync(void **state)
{
	struct pvfs_file *f = open_new("/sync"), *g;

	OK(pvfs_fsync(f));
	write_at(f, 0, 2 * NIODS * SSIZE);
	COSTS(PVFS_SERVER_ALL, "FSYNC", NIODS, OK(pvfs_fsync(f)));
	OK(pvfs_fdatasync(f));
	OK(pvfs_close(f));
	OK(pvfs_open(fs, "/sync", O_RDONLY, 0, &g));
	OK(pvfs_fsync(g));
	OK(pvfs_close(g));
	OK(pvfs_open(fs, "/sync", O_WRONLY | O_SYNC | O_TRUNC, 0, &g));
	COSTS(PVFS_SERVER_ALL, "FSYNC", 1, write_at(g, 0, 100));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/sync"));
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

/* ---------------------------------------------------------------- requests */

static void test_round_trips(void **state)
{
	struct pvfs_file *f;
	struct pvfs_stat st;
	struct pvfs_fh fh;
	uint8_t *buf = malloc(16 * MIB);
	int i;

	OK(pvfs_mkdir(fs, "/rt", 0755));
	MGR_COSTS(2, OK(pvfs_open(fs, "/rt/f", O_RDWR | O_CREAT, 0644, &f)));	/* one for /rt */
	OK(pvfs_resolve(fs, "/rt", 1, &fh));
	write_at(f, 0, 16 * MIB);
	OK(pvfs_close(f));

	MGR_COSTS(1, OK(pvfs_stat(fs, "/rt", &st)));
	COSTS(PVFS_SERVER_MGR, "LOOKUP", 2, OK(pvfs_stat(fs, "/rt/f", &st)));
	MGR_COSTS(1, OK(pvfs_lookup_fh(fs, &fh, "f", &st)));
	MGR_COSTS(1, OK(pvfs_stat_fh(fs, &st.fh, &st)));
	MGR_COSTS(1, OK(pvfs_create_fh(fs, &fh, "g", O_WRONLY | O_CREAT, 0644, NULL, &f, NULL)));
	OK(pvfs_close(f));
	MGR_COSTS(1, OK(pvfs_unlink_fh(fs, &fh, "g")));

	/* Large reads and writes: nothing to the mgr, 16 MiB over 4 daemons in requests of 1 MiB. */
	MGR_COSTS(2, OK(pvfs_open(fs, "/rt/f", O_RDWR, 0, &f)));
	for (i = 0; i < NIODS; i++)
		COSTS(i, "READ", 4, assert_int_equal(pvfs_pread(f, buf, 16 * MIB, 0), 16 * MIB));
	for (i = 0; i < NIODS; i++)
		COSTS(i, "WRITE", 4, assert_int_equal(pvfs_pwrite(f, buf, 16 * MIB, 0), 16 * MIB));
	MGR_COSTS(0, assert_int_equal(pvfs_pread(f, buf, 16 * MIB, 0), 16 * MIB));
	MGR_COSTS(0, assert_int_equal(pvfs_pwrite(f, buf, 16 * MIB, 0), 16 * MIB));
	COSTS(PVFS_SERVER_ALL, "READ", 1, assert_int_equal(pvfs_pread(f, buf, 100, SSIZE - 100), 100));
	COSTS(PVFS_SERVER_ALL, "READ", 2, assert_int_equal(pvfs_pread(f, buf, 200, SSIZE - 100), 200));
	/* Beyond the end: one question. */
	MGR_COSTS(1, assert_int_equal(pvfs_pread(f, buf, 100, 16 * MIB), 0));
	/* Appending by offset needs none. */
	MGR_COSTS(0, write_at(f, 16 * MIB, 100));
	MGR_COSTS(0, check_at(f, 16 * MIB, 100));
	OK(pvfs_close(f));
	MGR_COSTS(2, OK(pvfs_stat(fs, "/rt/f", &st)));
	assert_int_equal(st.st.st_size, 16 * MIB + 100);
	MGR_COSTS(2, OK(pvfs_unlink(fs, "/rt/f")));
	free(buf);
}

/* ---------------------------------------------------------------- many at once */

enum { THREADS = 8, ROUNDS = 60 };

struct worker {
	pthread_t thread;
	struct pvfs_file *f;
	int n;
	int errors;
};

static void *io_worker(void *arg)
{
	struct worker *w = arg;
	size_t size = 3 * SSIZE + 777, k;
	uint8_t *buf = malloc(size);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		off_t off = (off_t)(i * THREADS + w->n) * size;

		for (k = 0; k < size; k++)
			buf[k] = byte_at(off + k);
		w->errors += pvfs_pwrite(w->f, buf, size, off) != (ssize_t)size;
		memset(buf, 0, size);
		w->errors += pvfs_pread(w->f, buf, size, off) != (ssize_t)size;
		for (k = 0; k < size; k++)
			w->errors += buf[k] != byte_at(off + k);
		if (i % 16 == w->n)
			w->errors += pvfs_fsync(w->f) != 0;
	}
	free(buf);
	return NULL;
}

static void test_concurrent_io(void **state)
{
	struct worker w[THREADS] = { 0 };
	struct pvfs_file *f = open_new("/conc"), *g;
	size_t size = 3 * SSIZE + 777;
	int i;

	OK(pvfs_open(other, "/conc", O_RDWR, 0, &g));
	for (i = 0; i < THREADS; i++) {
		w[i].n = i;
		w[i].f = i % 2 ? f : g;
		assert_int_equal(pthread_create(&w[i].thread, NULL, io_worker, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].errors, 0);
	}
	for (i = 0; i < THREADS * ROUNDS; i++)
		check_at(i % 2 ? f : g, (off_t)i * size, size);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/conc"));
}

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
	struct worker w[THREADS] = { 0 };
	int i;

	OK(pvfs_mkdir(fs, "/conc", 0755));
	for (i = 0; i < THREADS; i++) {
		w[i].n = i;
		assert_int_equal(pthread_create(&w[i].thread, NULL, name_worker, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].errors, 0);
	}
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

/* kill -9 of a daemon, and another start. */
static void restart(const char *daemon)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), "%s %s", getenv("PVFS_TEST_RESTART"), daemon);
	assert_int_equal(system(cmd), 0);
}

/* What is open stays open: with a name and without, for reading and for writing, with a size that only iods know. */
static void test_mgr_restart(void **state)
{
	struct pvfs_file *f = open_new("/restart"), *g, *r;
	struct pvfs_stat st;
	struct pvfs_fh fh;

	write_at(f, 0, 5 * SSIZE + 5);
	g = open_new("/restart2");
	write_at(g, 0, 3 * SSIZE);
	OK(pvfs_open(other, "/restart2", O_RDONLY, 0, &r));
	OK(pvfs_fstat(g, &st));
	fh = st.fh;
	OK(pvfs_unlink(other, "/restart2"));
	restart("mgr");
	OK(pvfs_stat(other, "/restart", &st));
	assert_int_equal(st.st.st_size, 5 * SSIZE + 5);
	write_at(f, 5 * SSIZE + 5, SSIZE);
	write_at(g, 3 * SSIZE, SSIZE);
	OK(pvfs_stat(other, "/restart", &st));
	assert_int_equal(st.st.st_size, 6 * SSIZE + 5);
	OK(pvfs_fstat(g, &st));
	assert_int_equal(st.st.st_size, 4 * SSIZE);
	assert_int_equal(st.st.st_nlink, 0);
	restart("mgr");
	OK(pvfs_fsync(f));
	OK(pvfs_close(g));
	check_at(r, 0, 4 * SSIZE);
	OK(pvfs_close(f));
	OK(pvfs_close(r));
	OK(pvfs_stat(other, "/restart", &st));
	assert_int_equal(st.st.st_size, 6 * SSIZE + 5);
	/* Let go by its last user, whose close nobody waited for. */
	assert_int_equal(pvfs_umount(other), 0);
	other = mount_one();
	assert_int_equal(pvfs_stat_fh(other, &fh, &st), -ESTALE);
	OK(pvfs_unlink(fs, "/restart"));
}

static void test_iod_restart(void **state)
{
	struct pvfs_file *f = open_new("/restart");

	write_at(f, 0, 8 * SSIZE);
	restart("iod0");
	check_at(f, 0, 8 * SSIZE);
	write_at(f, 8 * SSIZE, 8 * SSIZE);
	restart("iod1");
	/* The machine did not go down: nothing was lost. */
	OK(pvfs_fsync(f));
	check_at(f, 0, 16 * SSIZE);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/restart"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_small_units),
		cmocka_unit_test(test_unlinked),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_readdir),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_concurrent_io),
		cmocka_unit_test(test_concurrent_names),
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_xattrs),
		cmocka_unit_test(test_acls),
		cmocka_unit_test(test_mgr_restart),
		cmocka_unit_test(test_iod_restart),
		cmocka_unit_test(test_mount_errors),
	};

	return cmocka_run_group_tests_name("libpvfs", tests, setup, teardown);
}
