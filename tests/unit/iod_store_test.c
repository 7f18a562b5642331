// SPDX-License-Identifier: GPL-2.0
/*
 * iod_store_test.c - the datafile stores, the cache of open datafiles above them, and the disk
 * threads.
 */
#include "iod/fdcache.h"
#include "iod/sched.h"
#include "iod/store.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];
static struct iod_store *store;
static struct iod_fds *fds;

static int setup_posix(void **state)
{
	strcpy(dir, "/tmp/pvfs-store-XXXXXX");
	if (!mkdtemp(dir) || iod_store_posix_open(dir, 0, &store))
		return -1;
	return iod_fds_new(store, NULL, 16, &fds);
}

static int setup_null(void **state)
{
	*dir = '\0';
	if (iod_store_null_open(1 << 20, &store))
		return -1;
	return iod_fds_new(store, NULL, 16, &fds);
}

static int teardown(void **state)
{
	char cmd[80];

	iod_fds_free(fds);
	store->ops->free(store);
	if (!*dir)
		return 0;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static struct pvfs_fid fid(u64 ino)
{
	return (struct pvfs_fid){ .ino = ino, .gen = 1 };
}

/* Called within mkdirat(), before and after the directory is made. */
static void (*at_mkdir)(bool made);
static ino_t synced_dir;	/* the last one */

int mkdirat(int dfd, const char *path, mode_t mode)
{
	int ret, err;

	if (at_mkdir)
		at_mkdir(false);
	ret = syscall(SYS_mkdirat, dfd, path, mode);
	err = errno;
	if (at_mkdir)
		at_mkdir(true);
	errno = err;
	return ret;
}

int fsync(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		synced_dir = st.st_ino;
	return syscall(SYS_fsync, fd);
}

static ssize_t put(struct iod_file *f, u64 off, const void *p, size_t n)
{
	struct iovec iov = { .iov_base = (void *)p, .iov_len = n };

	return store->ops->pwritev(store, f, &iov, 1, off);
}

static ssize_t get(struct iod_file *f, u64 off, void *p, size_t n)
{
	struct iovec iov = { .iov_base = p, .iov_len = n };

	return store->ops->preadv(store, f, &iov, 1, off, false);
}

/* What both stores promise. */
static void test_sizes(void **state)
{
	struct pvfs_fid a = fid(0x123456789abcdefull), b = { .ino = a.ino, .gen = 2 };
	struct pvfs_iod_statfs_rep sf;
	struct iod_file f, g;
	struct iod_stat st;
	char buf[64];
	off_t off;

	assert_int_equal(store->ops->open(store, &a, false, &f), -ENOENT);
	assert_int_equal(store->ops->stat(store, &a, NULL, &st), -ENOENT);
	assert_int_equal(store->ops->remove(store, &a), 0);
	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	assert_int_equal(st.size, 0);
	assert_int_equal(get(&f, 0, buf, 10), 0);
	assert_int_equal(put(&f, 100, "hello", 5), 5);
	assert_int_equal(store->ops->stat(store, &a, NULL, &st), 0);
	assert_int_equal(st.size, 105);
	assert_true(st.mtime.sec > 0);
	assert_int_equal(get(&f, 96, buf, sizeof(buf)), 9);
	assert_memory_equal(buf, "\0\0\0\0", 4);
	assert_true(store->ops->ready(store, &f, 0, 105));
	store->ops->prefetch(store, &f, 0, 105, true);
	assert_true(store->ops->sendable(store, &f, 100, &off) >= 0);
	/* another generation is another datafile */
	assert_int_equal(store->ops->open(store, &b, false, &g), -ENOENT);
	/* beyond 4 GiB */
	assert_int_equal(put(&f, 5ull << 30, "x", 1), 1);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	assert_true(st.size == (5ull << 30) + 1);
	assert_int_equal(store->ops->truncate(store, &f, 3), 0);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	assert_int_equal(st.size, 3);
	assert_int_equal(store->ops->truncate(store, &f, 4096), 0);
	assert_int_equal(get(&f, 0, buf, sizeof(buf)), sizeof(buf));
	assert_int_equal(store->ops->sync(store, &f, true), 0);
	assert_int_equal(store->ops->sync(store, &f, false), 0);
	assert_int_equal(store->ops->statfs(store, &sf), 0);
	assert_true(sf.bsize && sf.blocks >= sf.bfree && sf.bfree >= sf.bavail);
	assert_int_equal(store->ops->remove(store, &a), 0);
	assert_int_equal(store->ops->stat(store, &a, NULL, &st), -ENOENT);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	store->ops->close(store, &f);
}

static void test_bytes(void **state)
{
	struct pvfs_fid a = fid(77);
	struct iod_file f;
	char buf[16];
	off_t off;
	int fd;

	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	assert_int_equal(put(&f, 4090, "0123456789", 10), 10);
	assert_int_equal(get(&f, 4088, buf, 16), 12);
	assert_memory_equal(buf, "\0\0" "0123456789", 12);
	fd = store->ops->sendable(store, &f, 4095, &off);
	assert_int_equal(pread(fd, buf, 5, off), 5);
	assert_memory_equal(buf, "56789", 5);
	store->ops->close(store, &f);
	assert_int_equal(store->ops->remove(store, &a), 0);
}

/* 1,024 inos in a row share a directory; the tree is data/xx/yy/ino.gen. */
static u64 next(struct iod_file *f, u64 off, bool hole)
{
	u64 at = 1;

	assert_int_equal(store->ops->seek(store, f, off, hole, &at), 0);
	return at;
}

/* fallocate and SEEK_DATA, SEEK_HOLE. */
static void test_space(void **state)
{
	struct pvfs_fid a = fid(77);
	struct iod_stat st;
	struct iod_file f;
	char buf[20000];
	int i;

	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	assert_true(next(&f, 0, false) == PVFS_SEEK_NONE);
	assert_true(next(&f, 500, true) == 500);
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(put(&f, 1 << 20, buf, sizeof(buf)), sizeof(buf));
	assert_true(next(&f, 0, false) == 1 << 20);
	assert_true(next(&f, 1 << 20, true) == (1 << 20) + sizeof(buf));
	assert_int_equal(store->ops->space(store, &f, PVFS_SP_PUNCH | PVFS_SP_KEEP_SIZE, (1 << 20) + 4096, 4096), 0);
	assert_true(next(&f, 1 << 20, true) == (1 << 20) + 4096);
	assert_int_equal(store->ops->space(store, &f, PVFS_SP_ZERO | PVFS_SP_KEEP_SIZE, (1 << 20) + 100, 100), 0);
	assert_int_equal(get(&f, 1 << 20, buf, sizeof(buf)), sizeof(buf));
	for (i = 0; i < (int)sizeof(buf); i++)
		assert_int_equal(buf[i], (i >= 100 && i < 200) || (i >= 4096 && i < 8192) ? 0 : 'x');
	/* Longer only without KEEP_SIZE. */
	assert_int_equal(store->ops->space(store, &f, PVFS_SP_KEEP_SIZE, 2 << 20, 4096), 0);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	assert_true(st.size == (1 << 20) + sizeof(buf));
	assert_int_equal(store->ops->space(store, &f, 0, 2 << 20, 1), 0);
	assert_int_equal(store->ops->stat(store, &a, &f, &st), 0);
	assert_true(st.size == (2 << 20) + 1);
	store->ops->close(store, &f);
}

static void test_tree(void **state)
{
	static const struct { u64 ino; const char *path; } t[] = {
		{ 1, "data/00/00/0000000000000001.00000001" },
		{ 1023, "data/00/00/00000000000003ff.00000001" },
		{ 1024, "data/00/01/0000000000000400.00000001" },
		{ 0x40000, "data/01/00/0000000000040000.00000001" },
		{ 0xffffffffffffffff, "data/ff/ff/ffffffffffffffff.00000001" },
	};
	char path[160];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct pvfs_fid a = fid(t[i].ino);
		struct iod_file f;

		assert_int_equal(store->ops->open(store, &a, true, &f), 0);
		snprintf(path, sizeof(path), "%s/%s", dir, t[i].path);
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(store->ops->sync(store, &f, false), 0);
		store->ops->close(store, &f);
		assert_int_equal(store->ops->remove(store, &a), 0);
		assert_int_not_equal(access(path, F_OK), 0);
	}
	/* directories are kept */
	snprintf(path, sizeof(path), "%s/data/ff/ff", dir);
	assert_int_equal(access(path, F_OK), 0);
}

/* A truncation's time is the mgr's business: the datafile's mtime stays that of the last write. */
/* One that is synced beside who makes a directory of the tree; @made: or was just made. */
static void beside_mkdir(bool made)
{
	struct pvfs_fid a = fid((7ull << 18) + (made ? 1 << 10 : 0));
	struct iod_file f;
	char path[80];
	struct stat st;

	at_mkdir = NULL;
	if (made) {
		assert_int_equal(store->ops->open(store, &a, true, &f), 0);
		synced_dir = 0;
		assert_int_equal(store->ops->sync(store, &f, false), 0);
		store->ops->close(store, &f);
		/* The name of the directory that it is in, which is another's making. */
		snprintf(path, sizeof(path), "%s/data", dir);
		assert_int_equal(stat(path, &st), 0);
		assert_true(synced_dir == st.st_ino);
		return;
	}
	/* So that the tree's root has nothing to be synced. */
	assert_int_equal(store->ops->sync_name(store, &a), 0);
	at_mkdir = beside_mkdir;
}

static void test_sync_beside_mkdir(void **state)
{
	struct pvfs_fid a = fid(7ull << 18);
	struct iod_file f;

	at_mkdir = beside_mkdir;
	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	assert_null(at_mkdir);
	store->ops->close(store, &f);
	assert_int_equal(store->ops->remove(store, &a), 0);
}

static void test_truncate_keeps_mtime(void **state)
{
	struct pvfs_fid a = fid(5), b = fid(6);
	struct iod_stat before, after;
	struct iod_file f;

	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	assert_int_equal(put(&f, 0, "abc", 3), 3);
	assert_int_equal(store->ops->stat(store, &a, &f, &before), 0);
	usleep(20000);
	assert_int_equal(store->ops->truncate(store, &f, 1), 0);
	assert_int_equal(store->ops->stat(store, &a, &f, &after), 0);
	assert_true(before.mtime.sec == after.mtime.sec && before.mtime.nsec == after.mtime.nsec);
	store->ops->close(store, &f);
	/* never written: no time */
	assert_int_equal(store->ops->open(store, &b, true, &f), 0);
	assert_int_equal(store->ops->truncate(store, &f, 10), 0);
	assert_int_equal(store->ops->stat(store, &b, &f, &after), 0);
	assert_int_equal(after.mtime.sec, 0);
	store->ops->close(store, &f);
}

static void test_file_too_big(void **state)
{
	struct rlimit old, rl;
	struct pvfs_fid a = fid(9);
	struct iod_file f;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	rl = old;
	rl.rlim_cur = 1 << 20;
	assert_int_equal(store->ops->open(store, &a, true, &f), 0);
	setrlimit(RLIMIT_FSIZE, &rl);
	/* up to the limit, then the error */
	assert_int_equal(put(&f, (1 << 20) - 2, "abcd", 4), 2);
	assert_int_equal(put(&f, 1 << 20, "cd", 2), -EFBIG);
	assert_int_equal(store->ops->truncate(store, &f, 2 << 20), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	store->ops->close(store, &f);
}

static void test_cache(void **state)
{
	struct iod_fdent *e[40], *again;
	char *text = NULL;
	struct pvfs_fid a;
	size_t n = 0;
	FILE *f;
	int i;

	a = fid(1000);
	assert_int_equal(iod_fds_get(fds, &a, false, &e[0]), -ENOENT);
	/* more in use than the limit is fine, and none is closed under its user */
	for (i = 0; i < 40; i++) {
		a = fid(1000 + i);
		assert_null(iod_fds_lookup(fds, &a));
		assert_int_equal(iod_fds_get(fds, &a, true, &e[i]), 0);
	}
	a = fid(1000);
	again = iod_fds_lookup(fds, &a);
	assert_ptr_equal(again, e[0]);
	iod_fds_put(again);
	for (i = 0; i < 40; i++)
		iod_fds_put(e[i]);
	f = open_memstream(&text, &n);
	iod_fds_stats(fds, f);
	fclose(f);
	assert_non_null(strstr(text,
			       "\"open\":16,\"in_use\":0,\"limit\":16,\"hits\":1,\"opens\":40,\"evictions\":24"));
	free(text);
	/* the least recently used ones were closed */
	a = fid(1000);
	assert_null(iod_fds_lookup(fds, &a));
	a = fid(1039);
	again = iod_fds_lookup(fds, &a);
	assert_non_null(again);
	iod_fds_put(again);
}

static void test_removed_stays_removed(void **state)
{
	struct pvfs_fid a = fid(42), b = { .ino = 42, .gen = 2 };
	struct iod_fdent *e, *late;
	char buf[4];

	assert_int_equal(iod_fds_get(fds, &a, true, &e), 0);
	assert_int_equal(put(&e->file, 0, "abc", 3), 3);
	assert_int_equal(iod_fds_remove(fds, &a), 0);
	assert_int_equal(iod_fds_remove(fds, &a), 0);
	/* who has it open goes on */
	assert_int_equal(get(&e->file, 0, buf, 3), 3);
	assert_null(iod_fds_lookup(fds, &a));
	assert_int_equal(iod_fds_get(fds, &a, true, &late), -ESTALE);
	assert_int_equal(iod_fds_get(fds, &a, false, &late), -ESTALE);
	iod_fds_put(e);
	assert_int_equal(iod_fds_get(fds, &a, true, &late), -ESTALE);
	assert_int_equal(iod_fds_get(fds, &b, true, &late), 0);
	iod_fds_put(late);
}

/* The memory of what was removed is bounded, and forgets the oldest first. */
static void test_tombs_bounded(void **state)
{
	struct pvfs_fid a;
	struct iod_fdent *e;
	u64 i;

	for (i = 0; i < 5000; i++) {
		a = fid(100000 + i);
		assert_int_equal(iod_fds_remove(fds, &a), 0);
	}
	a = fid(100000 + 4999);
	assert_int_equal(iod_fds_get(fds, &a, true, &e), -ESTALE);
	a = fid(100000);
	assert_int_equal(iod_fds_get(fds, &a, true, &e), 0);
	iod_fds_put(e);
	/* in range of the last 1,024 of this one-stripe cache */
	for (i = 5000 - 1024; i < 5000; i++) {
		a = fid(100000 + i);
		assert_int_equal(iod_fds_get(fds, &a, true, &e), -ESTALE);
	}
}

static _Atomic int stop_threads, ghosts;

static void *hammer(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct iod_fdent *e;

	while (!atomic_load(&stop_threads)) {
		struct pvfs_fid a = fid(500000 + rand_r(&seed) % 64);
		int err = iod_fds_get(fds, &a, rand_r(&seed) & 1, &e);

		if (!err) {
			if (e->file.fid.ino != a.ino)
				atomic_fetch_add(&ghosts, 1);
			put(&e->file, 0, &a, sizeof(a));
			iod_fds_put(e);
		} else if (err != -ENOENT && err != -ESTALE) {
			atomic_fetch_add(&ghosts, 1);
		}
	}
	return NULL;
}

/* Writers race with removals: in the end there is no datafile of a removed fid. */
static void test_race(void **state)
{
	struct iod_fdent *e;
	struct iod_stat st;
	pthread_t t[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, (void *)(uintptr_t)(i + 1)),
				 0);
	for (i = 0; i < 64; i++) {
		struct pvfs_fid a = fid(500000 + i);

		usleep(2000);
		assert_int_equal(iod_fds_remove(fds, &a), 0);
	}
	usleep(20000);
	atomic_store(&stop_threads, 1);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&ghosts), 0);
	for (i = 0; i < 64; i++) {
		struct pvfs_fid a = fid(500000 + i);

		assert_int_equal(store->ops->stat(store, &a, NULL, &st), -ENOENT);
		assert_int_equal(iod_fds_get(fds, &a, true, &e), -ESTALE);
	}
}

static _Atomic int ran;

static void count(void *arg)
{
	usleep(100);
	atomic_fetch_add(&ran, (int)(uintptr_t)arg);
}

static void test_sched(void **state)
{
	struct iod_sched *s;
	int i;

	assert_int_equal(iod_sched_new(4, &s), 0);
	for (i = 0; i < 500; i++) {
		iod_sched_run(s, count, (void *)1);
		if (i % 100 == 0)
			usleep(3000);
	}
	/* finishes what was submitted */
	iod_sched_free(s);
	assert_int_equal(atomic_load(&ran), 500);
	iod_sched_free(NULL);
}

#define POSIX(t) cmocka_unit_test_setup_teardown(t, setup_posix, teardown)
#define NULLST(t) { "null_" #t, t, setup_null, teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		POSIX(test_sizes), POSIX(test_bytes), POSIX(test_tree), POSIX(test_space),
		POSIX(test_sync_beside_mkdir), POSIX(test_truncate_keeps_mtime),
		POSIX(test_file_too_big), POSIX(test_cache), POSIX(test_removed_stays_removed),
		POSIX(test_tombs_bounded), POSIX(test_race),
		NULLST(test_sizes), NULLST(test_cache), NULLST(test_removed_stays_removed),
		NULLST(test_race),
		cmocka_unit_test(test_sched),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_store", tests, NULL, NULL);
}
