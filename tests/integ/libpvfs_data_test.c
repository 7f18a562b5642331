// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_data_test.c - libpvfs against a real cluster: the bytes of files, how many requests they
 * take, and restarts of the servers.
 */
#include "libpvfs_test.h"
#include <stdatomic.h>

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

	/*
	 * One byte beyond the second row: all else is hole, on daemons that have no datafile at
	 * all.
	 */
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

	/*
	 * Large reads and writes: nothing to the mgr, 16 MiB over 4 daemons in requests of 1 MiB.
	 */
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
	struct pvfs_file *f = open_new("/conc"), *g;
	size_t size = 3 * SSIZE + 777;
	int i;

	OK(pvfs_open(other, "/conc", O_RDWR, 0, &g));
	work_all(io_worker, f, g);
	for (i = 0; i < THREADS * ROUNDS; i++)
		check_at(i % 2 ? f : g, (off_t)i * size, size);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/conc"));
}

#define APPENDS 300
#define RECORD 96u

struct appending {
	struct pvfs_file *f;
	atomic_bool over;
	atomic_uint failed;
};

static void *append_some(void *arg)
{
	struct appending *a = arg;
	char buf[RECORD];
	int i;

	memset(buf, 'a', sizeof(buf));
	for (i = 0; i < APPENDS; i++)
		if (pvfs_pwrite(a->f, buf, sizeof(buf), 0) != sizeof(buf))
			a->failed++;
	return NULL;
}

/* Each question takes along what the manager is to know of the writes. */
static void *ask_some(void *arg)
{
	struct appending *a = arg;
	struct pvfs_stat st;

	while (!a->over)
		if (pvfs_fstat(a->f, &st))
			a->failed++;
	return NULL;
}

/* One thread's question about the file does not hide from another's append where the end is. */
static void test_append_while_asked(void **state)
{
	struct appending a = { 0 };
	struct pvfs_striping s = { .base = PVFS_BASE_ANY, .stuff_max = PVFS_STUFF_NONE };
	pthread_t t[6];
	struct pvfs_stat st;
	int i;

	OK(pvfs_open_striped(fs, "/appended", O_RDWR | O_CREAT | O_APPEND, 0644, &s, &a.f));
	for (i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i < 3 ? append_some : ask_some, &a), 0);
	for (i = 0; i < 6; i++) {
		pthread_join(t[i], NULL);
		a.over |= i == 2;
	}
	assert_int_equal(a.failed, 0);
	OK(pvfs_fstat(a.f, &st));
	assert_int_equal(st.st.st_size, 3 * APPENDS * RECORD);
	OK(pvfs_close(a.f));
	OK(pvfs_unlink(fs, "/appended"));
}

/* ---------------------------------------------------------------- restarts */

/*
 * What is open stays open: with a name and without, for reading and for writing, with a size that
 * only iods know.
 */
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
	/* An open file is good whatever the mode is: what it was opened for is proved, not asked again. */
	OK(pvfs_chmod(other, "/restart", 0));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_small_units),
		cmocka_unit_test(test_unlinked),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_concurrent_io),
		cmocka_unit_test(test_append_while_asked),
		cmocka_unit_test(test_mgr_restart),
		cmocka_unit_test(test_iod_restart),
	};

	return cmocka_run_group_tests_name("data", tests, setup, teardown);
}
