// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_files_test.c - many small files at once, one file that is opened for many clients, and
 * calls that are not waited for.
 */
#include "libpvfs_test.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>

/* ---------------------------------------------------------------- many small files */

enum { MANY = 1000, STUFFED = 16384 };

static struct pvfs_small small[MANY];
static char paths[MANY][64];
static uint8_t *bytes[MANY];

/* File @i is so long, and begins at this byte of the pattern. */
static size_t length(int i)
{
	return i % 7 * 311;
}

static void name_them(const char *dir, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		snprintf(paths[i], sizeof(paths[i]), dir, i);
		free(bytes[i]);
		bytes[i] = pattern(i * 5000, length(i));
		small[i] = (struct pvfs_small){ .path = paths[i], .buf = bytes[i],
						.len = length(i), .mode = 0644 };
	}
}

/* Reads them through @from. */
static void check_them(struct pvfs_fs *from, int n)
{
	static uint8_t got[MANY][4096];
	struct pvfs_small in[MANY];
	int i;

	for (i = 0; i < n; i++)
		in[i] = (struct pvfs_small){ .path = paths[i], .buf = got[i], .len = sizeof(got[i]) };
	assert_int_equal(pvfs_read_files(from, in, n), n);
	for (i = 0; i < n; i++) {
		assert_int_equal(in[i].result, length(i));
		assert_memory_equal(got[i], bytes[i], length(i));
	}
}

static void test_many(void **state)
{
	struct pvfs_file *f;
	struct pvfs_stat st;

	OK(pvfs_mkdir(fs, "/many", 0755));
	name_them("/many/file%d", MANY);
	/* Its directory, and eight for 128 files and one for what is left. */
	MGR_COSTS(1 + 8, assert_int_equal(pvfs_write_files(fs, small, MANY, O_EXCL), MANY));
	assert_int_equal(small[6].result, length(6));
	OK(pvfs_stat(other, "/many/file6", &st));
	assert_int_equal(st.st.st_size, length(6));
	assert_int_equal(st.st.st_mode, S_IFREG | 0644);
	check_them(other, MANY);
	MGR_COSTS(1 + 8, check_them(fs, MANY));
	COSTS(PVFS_SERVER_MGR, "CLOSE", 0, check_them(fs, MANY));
	COSTS(PVFS_SERVER_ALL, "READ", 0, check_them(fs, MANY));
	/* They are files as any others. */
	OK(pvfs_open(other, "/many/file6", O_RDWR, 0, &f));
	check_moved(f, 0, 6 * 5000, length(6));
	assert_int_equal(pvfs_pwrite(f, "!", 1, 0), 1);
	OK(pvfs_close(f));
	bytes[6][0] = '!';
	check_them(fs, MANY);
}

/* In many directories, in any order, one path twice. */
static void test_directories(void **state)
{
	struct pvfs_file *f;
	struct pvfs_stat st;
	char dir[32];
	int i;

	for (i = 0; i < 5; i++) {
		snprintf(dir, sizeof(dir), "/d%d", i);
		OK(pvfs_mkdir(fs, dir, 0755));
	}
	name_them("", 100);
	for (i = 0; i < 100; i++)
		snprintf(paths[i], sizeof(paths[i]), i % 2 ? "/d%d/%d" : "d%d//%d", i % 5, i);
	strcpy(paths[3], "in-root");
	strcpy(paths[99], paths[98]);
	/* Ten names of directories, and the root; and the path that is there already. */
	COSTS(PVFS_SERVER_MGR, "FILES_WRITE", 12,
	      assert_int_equal(pvfs_write_files(fs, small, 100, 0), 100));
	check_them(other, 98);
	/* Of two the last one is there. */
	OK(pvfs_open(other, paths[98], O_RDONLY, 0, &f));
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_size, length(99));
	check_moved(f, 0, 99 * 5000, length(99));
	OK(pvfs_close(f));
}

/* What the manager has not, or does not take, goes the usual way. */
static void test_others(void **state)
{
	enum { LONG = 3 * SSIZE + 5, N = 9 };
	uint8_t *p = pattern(0, LONG), *q = malloc(LONG), tiny[3];
	struct pvfs_small s[N] = {
		{ .path = "/o/small", .buf = p, .len = 100, .mode = 0600 },
		{ .path = "/o/long", .buf = p, .len = LONG, .mode = 0600 },
		{ .path = "/o/fits-not", .buf = p, .len = STUFFED + 1, .mode = 0600 },
		{ .path = "/o/fits", .buf = p, .len = STUFFED, .mode = 0600 },
		{ .path = "/o/link", .buf = p, .len = 7, .mode = 0600 },
		{ .path = "/o/dir", .buf = p, .len = 7, .mode = 0600 },
		{ .path = "/nowhere/file", .buf = p, .len = 7, .mode = 0600 },
		{ .path = "/o/fits/file", .buf = p, .len = 7, .mode = 0600 },
		{ .path = "/o/..", .buf = p, .len = 7, .mode = 0600 },
	};
	struct pvfs_stat st;
	int i;

	OK(pvfs_mkdir(fs, "/o", 0755));
	OK(pvfs_mkdir(fs, "/o/dir", 0755));
	OK(pvfs_symlink(fs, "target", "/o/link"));
	assert_int_equal(pvfs_write_files(fs, s, N, 0), 5);
	assert_int_equal(s[0].result, 100);
	assert_int_equal(s[1].result, LONG);
	assert_int_equal(s[2].result, STUFFED + 1);
	assert_int_equal(s[3].result, STUFFED);
	assert_int_equal(s[4].result, 7);
	assert_int_equal(s[5].result, -EISDIR);
	assert_int_equal(s[6].result, -ENOENT);
	assert_int_equal(s[7].result, -ENOTDIR);
	assert_int_equal(s[8].result, -EISDIR);
	OK(pvfs_stat(other, "/o/target", &st));
	assert_int_equal(st.st.st_size, 7);
	OK(pvfs_lstat(other, "/o/fits", &st));
	assert_true(st.flags & PVFS_ST_STUFFED);
	for (i = 0; i < N; i++)
		s[i].buf = q;
	s[0].len = LONG;
	/* One buffer for all: the last that was read is in it. */
	assert_int_equal(pvfs_read_files(other, s, 1), 1);
	assert_int_equal(s[0].result, 100);
	assert_int_equal(pvfs_read_files(other, s + 1, 1), 1);
	assert_int_equal(s[1].result, LONG);
	assert_memory_equal(p, q, LONG);
	assert_int_equal(pvfs_read_files(other, s + 2, N - 2), 3);
	assert_int_equal(s[5].result, -EISDIR);
	assert_int_equal(s[6].result, -ENOENT);
	/* Less than there is. */
	s[3].buf = tiny;
	s[3].len = sizeof(tiny);
	assert_int_equal(pvfs_read_files(other, s + 3, 1), 1);
	assert_int_equal(s[3].result, sizeof(tiny));
	assert_memory_equal(tiny, p, sizeof(tiny));
	/* One that is there: written anew, or left alone. */
	s[0] = (struct pvfs_small){ .path = "/o/fits", .buf = p + 1, .len = 10, .mode = 0600 };
	assert_int_equal(pvfs_write_files(fs, s, 1, O_EXCL), 0);
	assert_int_equal(s[0].result, -EEXIST);
	assert_int_equal(pvfs_write_files(fs, s, 1, 0), 1);
	OK(pvfs_stat(other, "/o/fits", &st));
	assert_int_equal(st.st.st_size, 10);
	free(p);
	free(q);
}

static void test_small_bad(void **state)
{
	struct pvfs_small s = { .path = "/bad", .buf = "x", .len = 1, .mode = 0644 };

	assert_int_equal(pvfs_write_files(fs, &s, 1, O_TRUNC), -EINVAL);
	assert_int_equal(pvfs_write_files(fs, &s, 0, 0), 0);
	assert_int_equal(pvfs_read_files(fs, NULL, 0), 0);
	s.path = NULL;
	assert_int_equal(pvfs_write_files(fs, &s, 1, 0), 0);
	assert_int_equal(s.result, -ENOENT);
	s.path = "";
	assert_int_equal(pvfs_read_files(fs, &s, 1), 0);
	assert_int_equal(s.result, -ENOENT);
	/* Who may not. */
	OK(pvfs_setcred(fs, 1000, 1000, NULL, 0));
	s.path = "/not-mine";
	assert_int_equal(pvfs_write_files(fs, &s, 1, 0), 0);
	assert_int_equal(s.result, -EACCES);
	OK(pvfs_setcred(fs, 0, 0, NULL, 0));
}

static void *write_many(void *arg)
{
	struct worker *w = arg;
	struct pvfs_small s[20];
	char name[20][64];
	int i, k;

	for (k = 0; k < 20; k++) {
		for (i = 0; i < 20; i++) {
			snprintf(name[i], sizeof(name[i]), "/race/%d-%d", i, k);
			s[i] = (struct pvfs_small){ .path = name[i], .buf = name[i], .len = strlen(name[i]),
						    .mode = 0644 };
		}
		w->errors += pvfs_write_files(w->n % 2 ? fs : other, s, 20, 0) != 20;
	}
	return NULL;
}

/* All make the same files: each is there in the end, and whole. */
static void test_race(void **state)
{
	char name[64], got[64];
	struct pvfs_small s = { .path = name, .buf = got, .len = sizeof(got) };
	int i, k;

	OK(pvfs_mkdir(fs, "/race", 0755));
	work_all(write_many, NULL, NULL);
	for (i = 0; i < 20; i++)
		for (k = 0; k < 20; k++) {
			snprintf(name, sizeof(name), "/race/%d-%d", i, k);
			assert_int_equal(pvfs_read_files(fs, &s, 1), 1);
			assert_int_equal(s.result, strlen(name));
			assert_memory_equal(got, name, s.result);
		}
}

static void *restart_mgr(void *arg)
{
	usleep(100000);
	restart("mgr");
	return NULL;
}

/* The manager is killed in the middle: all that was answered is there, and nothing twice. */
static void test_files_restart(void **state)
{
	pthread_t t;
	int round;

	OK(pvfs_mkdir(fs, "/again", 0755));
	assert_int_equal(pthread_create(&t, NULL, restart_mgr, NULL), 0);
	for (round = 0; round < 10; round++) {
		char dir[32];

		snprintf(dir, sizeof(dir), "/again/%d-%%d", round);
		name_them(dir, 300);
		assert_int_equal(pvfs_write_files(fs, small, 300, O_EXCL), 300);
		check_them(other, 300);
	}
	pthread_join(t, NULL);
	check_them(other, 300);
}

/* ---------------------------------------------------------------- one file for many */

static void test_shared(void **state)
{
	struct pvfs_fs *third = mount_one();
	struct pvfs_mount_id ids[3];
	struct pvfs_shared given[3];
	struct pvfs_striping s;
	struct pvfs_file *f[3];
	struct pvfs_stat st;

	OK(pvfs_mkdir(fs, "/shared", 0755));
	OK(pvfs_mount_id(other, &ids[0]));
	OK(pvfs_mount_id(third, &ids[1]));
	ids[2] = ids[1];
	ids[2].client[0] ^= 1;	/* of a session that is not that client's */
	/* One message, behind that for the directory, and none by the others. */
	MGR_COSTS(2, OK(pvfs_open_for(fs, "/shared/f", O_RDWR | O_CREAT, 0644, NULL, ids, 3, given, &f[0])));
	OK(pvfs_open_shared(other, &given[0], O_RDWR | O_CREAT, &f[1]));
	OK(pvfs_open_shared(third, &given[1], O_RDWR | O_CREAT, &f[2]));
	MGR_COSTS(0, OK(pvfs_fgetlayout(f[0], &s)));
	assert_int_equal(s.pcount, NIODS);
	write_at(f[0], 0, 1000);
	write_at(f[1], 1000, SSIZE);
	write_at(f[2], 1000 + SSIZE, SSIZE);
	check_at(f[2], 0, 1000 + 2 * SSIZE);
	check_at(f[0], 0, 1000 + 2 * SSIZE);
	/* All of them have it open: it outlives its name and who opened it. */
	OK(pvfs_unlink(fs, "/shared/f"));
	OK(pvfs_close(f[0]));
	OK(pvfs_close(f[2]));
	check_at(f[1], 0, 1000 + 2 * SSIZE);
	OK(pvfs_fstat(f[1], &st));
	assert_int_equal(st.st.st_size, 1000 + 2 * SSIZE);
	OK(pvfs_close(f[1]));
	/* Who got nothing opens by itself, with the rights it has. */
	OK(pvfs_open_for(fs, "/shared/g", O_RDWR | O_CREAT | O_EXCL, 0644, NULL, ids, 3, given, &f[0]));
	OK(pvfs_open_shared(third, &given[2], O_RDWR, &f[2]));
	write_at(f[2], 0, 10);
	check_at(f[0], 0, 10);
	OK(pvfs_close(f[2]));
	OK(pvfs_open_shared(third, &given[1], O_RDWR, &f[2]));
	OK(pvfs_close(f[2]));
	OK(pvfs_open_shared(other, &given[0], O_RDWR, &f[1]));
	OK(pvfs_close(f[1]));
	/* What was another's, or an earlier session's, is no capability: it opens by itself then. */
	OK(pvfs_open_for(fs, "/shared/h", O_RDWR | O_CREAT, 0644, NULL, ids, 1, given, &f[1]));
	OK(pvfs_open_shared(third, &given[0], O_RDWR, &f[2]));
	write_at(f[2], 0, 2 * SSIZE);
	check_at(f[1], 0, 2 * SSIZE);
	OK(pvfs_close(f[2]));
	OK(pvfs_close(f[1]));
	OK(pvfs_close(f[0]));
	assert_int_equal(pvfs_open_for(fs, "/shared/g", O_RDWR | O_CREAT | O_EXCL, 0644, NULL, ids, 3, given,
				       &f[0]), -EEXIST);
	memset(given, 0, sizeof(given));
	assert_int_equal(pvfs_open_shared(other, &given[0], O_RDWR, &f[1]), -EINVAL);
	memset(given, 0xff, sizeof(given));
	assert_int_equal(pvfs_open_shared(other, &given[0], O_RDWR, &f[1]), -EINVAL);
	OK(pvfs_umount(third));
}

/* The manager is another one before the others have heard of it. */
static void test_shared_restart(void **state)
{
	struct pvfs_mount_id id;
	struct pvfs_shared given;
	struct pvfs_file *f, *g;

	OK(pvfs_mount_id(other, &id));
	OK(pvfs_open_for(fs, "/restarted", O_RDWR | O_CREAT, 0644, NULL, &id, 1, &given, &f));
	restart("mgr");
	OK(pvfs_access(other, "/restarted", F_OK));	/* it has met the new one */
	OK(pvfs_open_shared(other, &given, O_RDWR, &g));
	write_at(g, 0, 100);
	check_at(f, 0, 100);
	OK(pvfs_unlink(fs, "/restarted"));
	OK(pvfs_close(f));
	check_at(g, 0, 100);
	OK(pvfs_close(g));
}

/* ---------------------------------------------------------------- calls that are not waited for */

static bool readable(struct pvfs_queue *q, int ms)
{
	struct pollfd p = { .fd = pvfs_queue_fd(q), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void test_async(void **state)
{
	enum { N = 64 };
	struct pvfs_async a[N] = { 0 }, *done[N];
	struct pvfs_file *f = open_new("/async");
	struct iovec mem[N];
	struct pvfs_queue *q;
	uint8_t *p = pattern(0, N * SSIZE), *r = calloc(N, SSIZE);
	unsigned int i, k;
	int n;

	OK(pvfs_queue_new(fs, 8, &q));
	assert_false(readable(q, 0));
	assert_int_equal(pvfs_wait(q, done, N, -1), 0);	/* nothing is under way */
	assert_int_equal(pvfs_umount(fs), -EBUSY);
	for (i = 0; i < N; i++) {
		mem[i] = (struct iovec){ p + i * SSIZE, SSIZE };
		a[i] = (struct pvfs_async){ .op = PVFS_ASYNC_WRITE, .file = f, .mem = &mem[i], .nmem = 1,
					    .off = i * SSIZE, .user = &mem[i] };
		OK(pvfs_submit(q, &a[i]));
	}
	for (k = 0; k < N; k += n) {
		assert_true(readable(q, 20000));
		n = pvfs_wait(q, done, 5, 0);
		assert_in_range(n, 1, 5);
		while (n-- > 0) {
			assert_int_equal(done[n]->result, SSIZE);
			assert_ptr_equal(done[n]->user, done[n]->mem);
			k++;
		}
		n = 0;
	}
	assert_int_equal(k, N);
	assert_false(readable(q, 0));
	check_at(f, 0, N * SSIZE);
	for (i = 0; i < N; i++) {
		mem[i].iov_base = r + i * SSIZE;
		a[i].op = PVFS_ASYNC_READ;
		OK(pvfs_submit(q, &a[i]));
	}
	assert_int_equal(pvfs_queue_free(q), -EBUSY);
	for (k = 0; k < N; k += n) {
		n = pvfs_wait(q, done, N, 20000);
		assert_in_range(n, 1, N);
	}
	assert_memory_equal(p, r, N * SSIZE);
	assert_int_equal(pvfs_wait(q, done, N, 0), 0);
	OK(pvfs_queue_free(q));
	OK(pvfs_queue_free(NULL));
	OK(pvfs_close(f));
	free(p);
	free(r);
}

static ssize_t make_dir(void *arg)
{
	return pvfs_mkdir(fs, arg, 0755);
}

static ssize_t pause_ms(void *arg)
{
	usleep(1000 * *(int *)arg);
	return *(int *)arg;
}

static void test_async_ops(void **state)
{
	struct pvfs_piece pieces[2] = { { 10, 5 }, { 0, 5 } };
	struct pvfs_pattern pat = { .off = 100, .len = 2, .ndims = 1, .dim = { { 5, 4 } } };
	struct pvfs_file *f = open_new("/ops"), *r;
	char w[] = "abcdefghij", got[10];
	struct iovec out = { w, 10 }, in = { got, 10 };
	struct pvfs_async a = { .op = PVFS_ASYNC_WRITE_LIST, .file = f, .mem = &out, .nmem = 1,
				.pieces = pieces, .nfile = 2 }, b, *done;
	struct pvfs_queue *q;
	int ms = 200;

#define DO(what, rc) do { \
		OK(pvfs_submit(q, what)); \
		assert_int_equal(pvfs_wait(q, &done, 1, -1), 1); \
		assert_ptr_equal(done, what); \
		assert_int_equal((what)->result, rc); \
	} while (0)
	OK(pvfs_queue_new(fs, 0, &q));
	DO(&a, 10);
	a.op = PVFS_ASYNC_READ_LIST;
	a.mem = &in;
	DO(&a, 10);
	assert_memory_equal(w, got, 10);
	a.op = PVFS_ASYNC_WRITE_PATTERN;
	a.mem = &out;
	a.patterns = &pat;
	a.nfile = 1;
	DO(&a, 10);
	memset(got, 0, sizeof(got));
	a.op = PVFS_ASYNC_READ_PATTERN;
	a.mem = &in;
	DO(&a, 10);
	assert_memory_equal(w, got, 10);
	a.op = PVFS_ASYNC_FSYNC;
	DO(&a, 0);
	a.op = PVFS_ASYNC_FDATASYNC;
	DO(&a, 0);
	b = (struct pvfs_async){ .op = PVFS_ASYNC_CALL, .call = make_dir, .arg = "/by-call" };
	DO(&b, 0);
	DO(&b, -EEXIST);
	/* A time-out, and then the end of what it did not wait for. */
	b = (struct pvfs_async){ .op = PVFS_ASYNC_CALL, .call = pause_ms, .arg = &ms };
	OK(pvfs_submit(q, &b));
	assert_int_equal(pvfs_wait(q, &done, 1, 1), 0);
	assert_int_equal(pvfs_wait(q, &done, 1, -1), 1);
	assert_int_equal(b.result, 200);
	/* What cannot be. */
	OK(pvfs_open(fs, "/ops", O_RDONLY, 0, &r));
	a = (struct pvfs_async){ .op = PVFS_ASYNC_WRITE, .file = r, .mem = &out, .nmem = 1 };
	DO(&a, -EBADF);
	a.op = PVFS_ASYNC_CALL + 1;
	assert_int_equal(pvfs_submit(q, &a), -EINVAL);
	a = (struct pvfs_async){ .op = PVFS_ASYNC_READ };
	assert_int_equal(pvfs_submit(q, &a), -EINVAL);
	a = (struct pvfs_async){ .op = PVFS_ASYNC_CALL };
	assert_int_equal(pvfs_submit(q, &a), -EINVAL);
	OK(pvfs_close(r));
	OK(pvfs_close(f));
	OK(pvfs_queue_free(q));
	assert_int_equal(pvfs_queue_new(fs, 5000, &q), -EINVAL);
#undef DO
}

/* A child can do nothing with it, and does its parent no harm. */
static void test_async_fork(void **state)
{
	struct pvfs_async a = { .op = PVFS_ASYNC_CALL, .call = make_dir, .arg = "/child" }, *done;
	struct pvfs_queue *q;
	int status;
	pid_t pid;

	OK(pvfs_queue_new(fs, 2, &q));
	pid = fork();
	if (!pid)
		_exit(pvfs_submit(q, &a) != -EBADF || pvfs_wait(q, &done, 1, -1) != -EBADF ||
		      pvfs_queue_free(q) != -EBADF);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(pvfs_submit(q, &a));
	assert_int_equal(pvfs_wait(q, &done, 1, -1), 1);
	assert_int_equal(a.result, 0);
	OK(pvfs_queue_free(q));
}

/* A signal that the program's threads do not want now is for none of the library's. */
static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
	signalled = 1;
}

static void test_signals(void **state)
{
	struct pvfs_async a = { .op = PVFS_ASYNC_CALL, .call = make_dir, .arg = "/signals" }, *done;
	struct sigaction sa = { .sa_handler = on_signal };
	struct pvfs_queue *q;
	sigset_t set, old;

	OK(pvfs_queue_new(fs, 2, &q));
	OK(pvfs_submit(q, &a));
	assert_int_equal(pvfs_wait(q, &done, 1, -1), 1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &old), 0);
	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	/* They all have had something to do since. */
	OK(pvfs_submit(q, &a));
	assert_int_equal(pvfs_wait(q, &done, 1, -1), 1);
	assert_int_equal(sigpending(&set), 0);
	assert_int_equal(sigismember(&set, SIGUSR1), 1);
	assert_int_equal(signalled, 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	assert_int_equal(signalled, 1);
	OK(pvfs_queue_free(q));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_small_bad),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_files_restart),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_shared_restart),
		cmocka_unit_test(test_async),
		cmocka_unit_test(test_async_ops),
		cmocka_unit_test(test_async_fork),
		cmocka_unit_test(test_signals),
	};
	int rc, i;

	rc = cmocka_run_group_tests_name("libpvfs_files", tests, setup, teardown);
	for (i = 0; i < MANY; i++)
		free(bytes[i]);
	return rc;
}
