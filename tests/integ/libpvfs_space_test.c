// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_space_test.c - libpvfs against a real cluster: fallocate, data and holes,
 * copy_file_range; what they refuse, who does the work, what other clients see of it, and servers
 * that are restarted meanwhile.
 */
#include <limits.h>
#include <linux/falloc.h>
#include <stdatomic.h>
#include "libpvfs_test.h"

#define KEEP FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO FALLOC_FL_ZERO_RANGE
#define ROUND ((uint64_t)NIODS * SSIZE)

static off_t size_of(struct pvfs_file *f)
{
	struct pvfs_stat st;

	OK(pvfs_fstat(f, &st));
	return st.st.st_size;
}

/* In bytes. */
static uint64_t space_of(struct pvfs_fs *who, const char *path)
{
	struct pvfs_stat st;

	OK(pvfs_stat(who, path, &st));
	return (uint64_t)st.st.st_blocks * 512;
}

static void check_zero(struct pvfs_file *f, uint64_t off, size_t n)
{
	uint8_t *zero = calloc(1, n), *got = malloc(n);

	assert_int_equal(pvfs_pread(f, got, n, off), n);
	assert_memory_equal(got, zero, n);
	free(zero);
	free(got);
}

/* ---------------------------------------------------------------- errors */

static void test_fallocate_errors(void **state)
{
	static const struct { int mode; off_t off, len; int err; } t[] = {
		{ 0, 0, 0, EINVAL },
		{ 0, 0, -1, EINVAL },
		{ 0, -1, 10, EINVAL },
		{ 0, LLONG_MIN, 1, EINVAL },
		{ KEEP, -1, 10, EINVAL },
		{ PUNCH, 0, 0, EINVAL },
		{ PUNCH, -1, 10, EINVAL },
		{ ZERO, 0, -5, EINVAL },
		{ 0, LLONG_MAX, 1, EFBIG },
		{ 0, LLONG_MAX, LLONG_MAX, EFBIG },
		{ 0, 1, LLONG_MAX, EFBIG },
		{ KEEP, LLONG_MAX, 10, EFBIG },
		{ PUNCH, LLONG_MAX, 10, EFBIG },
		{ ZERO, LLONG_MAX, 10, EFBIG },
		{ FALLOC_FL_PUNCH_HOLE, 0, 10, EOPNOTSUPP },
		{ PUNCH | ZERO, 0, 10, EOPNOTSUPP },
		{ FALLOC_FL_COLLAPSE_RANGE, 0, 4096, EOPNOTSUPP },
		{ FALLOC_FL_INSERT_RANGE, 0, 4096, EOPNOTSUPP },
		{ FALLOC_FL_UNSHARE_RANGE, 0, 10, EOPNOTSUPP },
		{ 0x800, 0, 10, EOPNOTSUPP },
		{ -1, 0, 10, EOPNOTSUPP },
		/* The range is looked at first. */
		{ 0x800, -1, 10, EINVAL },
	};
	struct pvfs_file *f = open_new("/errors"), *r;
	struct pvfs_stat before, after;
	size_t i;

	write_at(f, 0, 100);
	OK(pvfs_fstat(f, &before));
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		assert_int_equal(pvfs_fallocate(f, t[i].mode, t[i].off, t[i].len), -t[i].err);
	OK(pvfs_open(fs, "/errors", O_RDONLY, 0, &r));
	assert_int_equal(pvfs_fallocate(r, 0, 0, 10), -EBADF);
	assert_int_equal(pvfs_fallocate(r, PUNCH, 0, 10), -EBADF);
	assert_int_equal(pvfs_fallocate(r, PUNCH, 0, 0), -EINVAL);
	OK(pvfs_fstat(f, &after));
	assert_memory_equal(&before, &after, sizeof(before));
	OK(pvfs_close(r));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/errors"));
}

static void test_seek_errors(void **state)
{
	static const struct { off_t off; int whence, err; } t[] = {
		{ -1, SEEK_DATA, ENXIO },
		{ -1, SEEK_HOLE, ENXIO },
		{ LLONG_MIN, SEEK_DATA, ENXIO },
		{ 100, SEEK_DATA, ENXIO },
		{ 100, SEEK_HOLE, ENXIO },
		{ 1 << 20, SEEK_DATA, ENXIO },
		{ LLONG_MAX, SEEK_DATA, ENXIO },
		{ LLONG_MAX, SEEK_HOLE, ENXIO },
		{ 0, SEEK_SET, EINVAL },
		{ 0, SEEK_CUR, EINVAL },
		{ 0, SEEK_END, EINVAL },
		{ 0, 77, EINVAL },
		{ 0, -1, EINVAL },
	};
	struct pvfs_file *f = open_new("/errors"), *w;
	size_t i;

	assert_int_equal(pvfs_lseek(f, 0, SEEK_DATA), -ENXIO);
	assert_int_equal(pvfs_lseek(f, 0, SEEK_HOLE), -ENXIO);
	write_at(f, 0, 100);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		assert_int_equal(pvfs_lseek(f, t[i].off, t[i].whence), -t[i].err);
	/* It need not be open for reading. */
	OK(pvfs_open(fs, "/errors", O_WRONLY, 0, &w));
	assert_int_equal(pvfs_lseek(w, 5, SEEK_DATA), 5);
	assert_int_equal(pvfs_lseek(w, 5, SEEK_HOLE), 100);
	OK(pvfs_close(w));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/errors"));
}

static void test_copy_errors(void **state)
{
	static const struct { off_t in, out; size_t n; unsigned int flags; int err; } t[] = {
		{ -1, 0, 10, 0, EINVAL },
		{ 0, -1, 10, 0, EINVAL },
		{ 0, 0, 10, 1, EINVAL },
		{ LLONG_MIN, 0, 1, 0, EINVAL },
		{ 0, LLONG_MAX - 5, 100, 0, EOVERFLOW },
		{ LLONG_MAX - 5, 0, 100, 0, EOVERFLOW },
		{ 0, 1, SIZE_MAX, 0, EOVERFLOW },
		{ LLONG_MAX, 0, 1, 0, EOVERFLOW },
	};
	static const struct { off_t in, out; size_t n; } overlaps[] = {
		{ 0, 0, 10 }, { 0, 50, 51 }, { 50, 0, 51 }, { 5, 5, 1 }, { 0, 100000, 200000 },
		{ 100000, 0, 200000 },
	};
	struct pvfs_file *in = open_new("/errors"), *out = open_new("/errors2"), *f, *again;
	struct pvfs_stat before, after;
	size_t i;

	write_at(in, 0, 300000);
	write_at(out, 0, 10);
	OK(pvfs_fstat(out, &before));
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		assert_int_equal(
			pvfs_copy_file_range(in, t[i].in, out, t[i].out, t[i].n, t[i].flags),
			-t[i].err);
	assert_int_equal(pvfs_copy_file_range(in, 0, out, 0, 0, 0), 0);
	assert_int_equal(pvfs_copy_file_range(in, 300000, out, 0, 10, 0), 0);
	assert_int_equal(pvfs_copy_file_range(in, 1 << 30, out, 0, 1 << 30, 0), 0);
	OK(pvfs_open(fs, "/errors2", O_RDONLY, 0, &f));
	assert_int_equal(pvfs_copy_file_range(in, 0, f, 0, 10, 0), -EBADF);
	OK(pvfs_close(f));
	OK(pvfs_open(fs, "/errors2", O_RDWR | O_APPEND, 0, &f));
	assert_int_equal(pvfs_copy_file_range(in, 0, f, 0, 10, 0), -EBADF);
	OK(pvfs_close(f));
	OK(pvfs_open(fs, "/errors", O_WRONLY, 0, &f));
	assert_int_equal(pvfs_copy_file_range(f, 0, out, 0, 10, 0), -EBADF);
	assert_int_equal(pvfs_copy_file_range(f, 0, out, 0, MIB, 0), -EBADF);
	OK(pvfs_close(f));
	OK(pvfs_fstat(out, &after));
	assert_memory_equal(&before, &after, sizeof(before));
	/* One file, also where it is open through another client. */
	OK(pvfs_fstat(in, &before));
	OK(pvfs_open(other, "/errors", O_RDWR, 0, &again));
	for (i = 0; i < sizeof(overlaps) / sizeof(*overlaps); i++) {
		assert_int_equal(pvfs_copy_file_range(in, overlaps[i].in, in, overlaps[i].out,
						      overlaps[i].n, 0),
				 -EINVAL);
		assert_int_equal(pvfs_copy_file_range(in, overlaps[i].in, again, overlaps[i].out,
						      overlaps[i].n, 0),
				 -EINVAL);
	}
	/* What is behind the end is not copied, so it does not overlap. */
	assert_int_equal(pvfs_copy_file_range(in, 300000, in, 299999, 100, 0), 0);
	OK(pvfs_fstat(in, &after));
	assert_int_equal(before.version, after.version);
	assert_int_equal(pvfs_copy_file_range(in, 299990, in, 300000, 100, 0), 10);
	assert_int_equal(size_of(again), 300010);
	OK(pvfs_close(again));
	OK(pvfs_close(in));
	OK(pvfs_close(out));
	OK(pvfs_unlink(fs, "/errors"));
	OK(pvfs_unlink(fs, "/errors2"));
}

static void test_space_fork(void **state)
{
	struct pvfs_file *f = open_new("/fork");
	int status;
	pid_t pid;

	write_at(f, 0, 10);
	pid = fork();
	if (!pid)
		_exit(pvfs_fallocate(f, 0, 0, 10) != -EBADF ||
		      pvfs_lseek(f, 0, SEEK_DATA) != -EBADF ||
		      pvfs_copy_file_range(f, 0, f, 100, 10, 0) != -EBADF);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/fork"));
}

/* ---------------------------------------------------------------- fallocate */

static void test_fallocate(void **state)
{
	struct pvfs_file *f = open_new("/space"), *g, *s;
	struct pvfs_stat before, after;

	OK(pvfs_open(other, "/space", O_RDWR, 0, &g));
	/* Room, and no longer; then longer. The other client sees it at once. */
	OK(pvfs_fallocate(f, KEEP, 0, 4 * ROUND));
	assert_int_equal(size_of(g), 0);
	assert_in_range(space_of(other, "/space"), 4 * ROUND, 4 * ROUND + NIODS * 16384);
	COSTS(PVFS_SERVER_ALL, "SPACE", NIODS + 1, OK(pvfs_fallocate(f, 0, 0, ROUND + 5)));
	assert_int_equal(size_of(g), ROUND + 5);
	check_zero(g, 0, ROUND + 5);
	check_zero(f, 0, ROUND + 5);
	/* Below the end it changes nothing but the times. */
	write_at(f, 0, ROUND);
	COSTS(PVFS_SERVER_ALL, "SPACE", 2,
	      OK(pvfs_fallocate(g, 0, 10, SSIZE) ?: pvfs_fallocate(f, 0, 10, SSIZE)));
	check_at(g, 0, ROUND);
	assert_int_equal(size_of(f), ROUND + 5);
	/* What is cut off and comes back is zeros, without room. */
	OK(pvfs_ftruncate(g, 0));
	assert_int_equal(space_of(fs, "/space"), 0);

	/* A hole gives back, in the middle and over the end; zeros do not. */
	write_at(f, 0, 2 * ROUND);
	OK(pvfs_fstat(g, &before));
	OK(pvfs_fallocate(g, PUNCH, SSIZE, 2 * SSIZE));
	OK(pvfs_fstat(f, &after));
	assert_int_equal(before.st.st_blocks - after.st.st_blocks, 2 * SSIZE / 512);
	assert_int_equal(after.st.st_size, 2 * ROUND);
	assert_true(after.version > before.version);
	check_at(f, 0, SSIZE);
	check_zero(f, SSIZE, 2 * SSIZE);
	check_at(f, 3 * SSIZE, 2 * ROUND - 3 * SSIZE);
	OK(pvfs_fallocate(f, PUNCH, 2 * ROUND - 100, 5 * ROUND));
	check_zero(g, 2 * ROUND - 100, 100);
	check_at(g, ROUND, ROUND - 100);
	assert_int_equal(size_of(g), 2 * ROUND);
	OK(pvfs_fallocate(f, ZERO | KEEP, ROUND, 2 * ROUND));
	assert_int_equal(size_of(g), 2 * ROUND);
	check_zero(g, ROUND, ROUND);
	OK(pvfs_fallocate(f, ZERO, ROUND, 2 * ROUND + 1));
	assert_int_equal(size_of(g), 3 * ROUND + 1);
	check_zero(g, ROUND, 2 * ROUND + 1);
	/* It is a write: set-id bits go, and with O_SYNC it is on disk. */
	OK(pvfs_chmod(fs, "/space", 06777));
	OK(pvfs_setcred(other, 1000, 1000, NULL, 0));
	OK(pvfs_open(other, "/space", O_WRONLY | O_SYNC, 0, &s));
	OK(pvfs_fallocate(s, PUNCH, 0, 1));
	OK(pvfs_setcred(other, 0, 0, NULL, 0));
	OK(pvfs_fstat(f, &after));
	assert_int_equal(after.st.st_mode & 07777, 0777);
	OK(pvfs_close(s));
	OK(pvfs_open(fs, "/space", O_WRONLY | O_DSYNC, 0, &s));
	COSTS(PVFS_SERVER_ALL, "FSYNC", NIODS, OK(pvfs_fallocate(s, PUNCH, 0, ROUND)));
	OK(pvfs_close(s));
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	/* Closed by all, it is what it was. */
	assert_int_equal(space_of(fs, "/space"), space_of(other, "/space"));
	OK(pvfs_unlink(fs, "/space"));

	/* More than the daemons' file systems hold. */
	f = open_new("/space");
	assert_int_equal(pvfs_fallocate(f, 0, (off_t)1 << 62, 10), -EFBIG);
	assert_int_equal(size_of(f), 0);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/space"));
}

/* ---------------------------------------------------------------- data and holes */

static void test_seek(void **state)
{
	/* Data in some units, holes in others, an end in the middle of one. */
	static const char units[] = "d.dd...d....d...........d.";
	struct pvfs_file *f = open_new("/seek"), *g;
	size_t n = sizeof(units) - 1, i, k;
	off_t at, size;

	for (i = 0; i < n; i++)
		if (units[i] == 'd')
			write_at(f, i * SSIZE, SSIZE);
	size = n * SSIZE - 1000;
	OK(pvfs_ftruncate(f, size));
	OK(pvfs_open(other, "/seek", O_RDONLY, 0, &g));
	for (at = 0; at < size; at += SSIZE / 2) {
		i = at / SSIZE;
		for (k = i; k < n && units[k] != 'd'; k++)
			;
		assert_int_equal(pvfs_lseek(g, at, SEEK_DATA),
				 k == n ? -ENXIO : k == i ? at : (off_t)k * SSIZE);
		for (k = i; k < n && units[k] == 'd'; k++)
			;
		assert_int_equal(pvfs_lseek(f, at, SEEK_HOLE), k == i ? at : (off_t)k * SSIZE);
	}
	/* One question to each daemon, and one to the manager. */
	COSTS(PVFS_SERVER_ALL, "SEEK", NIODS, assert_int_equal(pvfs_lseek(f, 0, SEEK_DATA), 0));
	MGR_COSTS(1, assert_int_equal(pvfs_lseek(f, SSIZE, SEEK_DATA), 2 * SSIZE));
	/* A hole at the end is found before the end; a file without one ends with one. */
	assert_int_equal(pvfs_lseek(g, size - 1, SEEK_DATA), -ENXIO);
	assert_int_equal(pvfs_lseek(g, size - 1, SEEK_HOLE), size - 1);
	OK(pvfs_ftruncate(f, SSIZE));
	assert_int_equal(pvfs_lseek(g, 0, SEEK_HOLE), SSIZE);
	assert_int_equal(pvfs_lseek(g, SSIZE - 1, SEEK_DATA), SSIZE - 1);
	assert_int_equal(pvfs_lseek(g, 5 * SSIZE, SEEK_DATA), -ENXIO);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/seek"));
}

/* ---------------------------------------------------------------- copies */

static uint64_t bytes_moved(void)
{
	struct pvfs_opcount r, w;

	OK(pvfs_counters(fs, PVFS_SERVER_ALL, "READ", &r));
	OK(pvfs_counters(fs, PVFS_SERVER_ALL, "WRITE", &w));
	return r.bytes_in + w.bytes_out;
}

/* @call is @n requests to copy, and no byte comes here. */
#define BY_IODS(n, call) do { \
		uint64_t copies_ = count(PVFS_SERVER_ALL, "COPY"), moved_ = bytes_moved(); \
		call; \
		assert_int_equal(count(PVFS_SERVER_ALL, "COPY") - copies_, n); \
		assert_int_equal(bytes_moved(), moved_); \
	} while (0)

static void test_copy(void **state)
{
	struct pvfs_striping narrow = { .base = 1, .pcount = 2, .ssize = 4096 }, s;
	struct pvfs_striping single = { .base = 1, .pcount = 1, .ssize = 4096 };
	struct pvfs_file *in, *out, *far;
	uint64_t space;

	OK(pvfs_open_striped(fs, "/in", O_RDWR | O_CREAT, 0644, &narrow, &in));
	out = open_new("/out");
	/* A hole of 1 MiB in 3. */
	write_at(in, 0, MIB);
	write_at(in, 2 * MIB, MIB + 77);
	space = space_of(fs, "/in");
	assert_in_range(space, 2 * MIB, 2 * MIB + 65536);
	/* A new file becomes like its source, nothing comes here, and the hole stays one. */
	BY_IODS(2,
		assert_int_equal(pvfs_copy_file_range(in, 0, out, 0, SSIZE_MAX, 0), 3 * MIB + 77));
	OK(pvfs_getlayout(other, "/out", &s));
	narrow.stuff_max = s.stuff_max;		/* it was not asked for */
	assert_memory_equal(&s, &narrow, sizeof(s));
	check_at(out, 0, MIB);
	check_zero(out, MIB, MIB);
	check_at(out, 2 * MIB, MIB + 77);
	assert_int_equal(space_of(other, "/out"), space);
	/* Over what is there, a hole makes a hole; a piece of it, rounds of stripe units away. */
	write_at(out, 0, 4 * MIB);
	BY_IODS(2, assert_int_equal(pvfs_copy_file_range(in, MIB - 8192, out, 8192, MIB, 0), MIB));
	check_zero(out, 16384, MIB - 8192);
	check_at(out, MIB + 8192, 3 * MIB - 8192);
	assert_int_equal(size_of(out), 4 * MIB);
	/* Not rounds away, or little: through here. The bytes are the same. */
	COSTS(PVFS_SERVER_ALL, "COPY", 0,
	      assert_int_equal(pvfs_copy_file_range(in, 0, out, 4096, MIB, 0), MIB));
	COSTS(PVFS_SERVER_ALL, "COPY", 0,
	      assert_int_equal(pvfs_copy_file_range(in, 0, out, 0, 4096, 0), 4096));
	check_at(out, 0, 4096);
	OK(pvfs_ftruncate(out, 0));
	assert_int_equal(pvfs_copy_file_range(in, 1, out, 1, 3 * MIB, 0), 3 * MIB);
	check_at(out, 1, MIB - 1);
	check_zero(out, MIB, MIB);
	OK(pvfs_close(out));
	OK(pvfs_unlink(fs, "/out"));

	/* One that was written keeps its layout, another mount is another client: through here. */
	out = open_new("/out");
	write_at(out, 3 * MIB, 100);
	COSTS(PVFS_SERVER_ALL, "COPY", 0,
	      assert_int_equal(pvfs_copy_file_range(in, 0, out, 0, MIB, 0), MIB));
	check_at(out, 0, MIB);
	check_at(out, 3 * MIB, 100);
	OK(pvfs_open(other, "/far", O_RDWR | O_CREAT, 0644, &far));
	assert_int_equal(pvfs_copy_file_range(in, 2 * MIB, far, 2 * MIB, 5 * MIB, 0), MIB + 77);
	check_at(far, 2 * MIB, MIB + 77);
	OK(pvfs_close(far));
	OK(pvfs_close(out));

	/* Within one file. */
	BY_IODS(2, assert_int_equal(pvfs_copy_file_range(in, 2 * MIB, in, MIB, MIB, 0), MIB));
	check_moved(in, MIB, 2 * MIB, MIB);
	OK(pvfs_close(in));

	/* All of a file with one iod: any distance, and a hole goes with it. */
	OK(pvfs_open_striped(fs, "/one", O_RDWR | O_CREAT, 0644, &single, &in));
	OK(pvfs_open_striped(fs, "/one2", O_RDWR | O_CREAT, 0644, &single, &out));
	write_at(in, 0, MIB);
	write_at(in, 2 * MIB, MIB);
	write_at(out, 0, MIB);
	BY_IODS(1, assert_int_equal(pvfs_copy_file_range(in, 777, out, 5, 3 * MIB, 0), 3 * MIB - 777));
	check_at(out, 0, 5);
	check_moved(out, 5, 777, MIB - 777);
	check_zero(out, MIB - 772, MIB);
	check_moved(out, 2 * MIB - 772, 2 * MIB, MIB);
	assert_int_equal(size_of(out), 3 * MIB - 772);
	assert_in_range(space_of(other, "/one2"), 2 * MIB, 2 * MIB + 65536);
	BY_IODS(1, assert_int_equal(pvfs_copy_file_range(in, 2 * MIB + 9, in, 100001, 300000, 0), 300000));
	check_moved(in, 100001, 2 * MIB + 9, 300000);
	check_at(in, 400001, MIB - 400001);
	OK(pvfs_close(in));
	OK(pvfs_close(out));

	/* It is a write and a read: O_SYNC, and large steps. */
	OK(pvfs_open(fs, "/big", O_RDWR | O_CREAT, 0644, &in));
	write_at(in, 0, 70 * MIB);
	OK(pvfs_open(fs, "/big2", O_RDWR | O_CREAT | O_SYNC, 0644, &out));
	COSTS(PVFS_SERVER_ALL, "FSYNC", NIODS,
	      BY_IODS(2 * NIODS, assert_int_equal(pvfs_copy_file_range(in, 0, out, 0, 100 * MIB, 0),
						  70 * MIB)));
	check_at(out, 0, 70 * MIB);
	OK(pvfs_close(in));
	OK(pvfs_close(out));
	OK(pvfs_unlink(fs, "/in"));
	OK(pvfs_unlink(fs, "/out"));
	OK(pvfs_unlink(fs, "/far"));
	OK(pvfs_unlink(fs, "/big"));
	OK(pvfs_unlink(fs, "/big2"));
}

/* The manager does not know yet that the file was written. */
static void test_layout_stays(void **state)
{
	struct pvfs_striping narrow = { .base = 0, .pcount = 1, .ssize = 4096 }, s, t;
	struct pvfs_file *f = open_new("/stays"), *g;

	OK(pvfs_getlayout(fs, "/stays", &s));
	write_at(f, 0, 3 * SSIZE);
	assert_int_equal(pvfs_setlayout(fs, "/stays", &narrow), -EEXIST);
	OK(pvfs_open(other, "/stays", O_RDONLY, 0, &g));
	check_at(g, 0, 3 * SSIZE);
	OK(pvfs_getlayout(other, "/stays", &t));
	assert_memory_equal(&s, &t, sizeof(s));
	OK(pvfs_close(g));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/stays"));
}

/* ---------------------------------------------------------------- a model, two clients */

enum { MODEL_MAX = 5 * 256 * 1024, STEPS = 600 };

struct model {
	struct pvfs_file *f;		/* of each client */
	uint8_t *b;
	size_t size;
};

static uint32_t seed;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)seed * below) >> 32);
}

/* Around the edges of pages, units and rounds, and anywhere. */
static size_t some_offset(void)
{
	static const uint32_t grid[] = { 4096, SSIZE, ROUND, 1 };
	uint32_t g = grid[rnd(4)], at = rnd(MODEL_MAX / g) * g;

	return rnd(3) || !at ? at : at - 1 + rnd(3);
}

static void grow(struct model *m, size_t end)
{
	if (end <= m->size)
		return;
	memset(m->b + m->size, 0, end - m->size);
	m->size = end;
}

/* Between two clients, of two files. */
static void model_step(struct model *m, struct pvfs_file *c[2][2])
{
	static const int modes[] = { 0, KEEP, PUNCH, ZERO, ZERO | KEEP };
	int file = rnd(2), who = rnd(2), what = rnd(8), mode, from;
	size_t at = some_offset(), n = 1 + (rnd(2) ? rnd(9000) : rnd(MODEL_MAX)), to, k;
	struct pvfs_file *f = c[file][who];
	struct model *d = &m[file], *s;
	off_t found;

	n = at + n > MODEL_MAX ? MODEL_MAX - at : n;
	if (!n)
		return;
	switch (what) {
	case 0:
		grow(d, at);
		for (k = 0; k < n; k++)
			d->b[at + k] = 1 + rnd(255);
		d->size = at + n > d->size ? at + n : d->size;
		assert_int_equal(pvfs_pwrite(f, d->b + at, n, at), n);
		break;
	case 1:
		OK(pvfs_ftruncate(f, at));
		grow(d, at);
		d->size = at;
		break;
	case 2:
	case 3:
		mode = modes[rnd(5)];
		OK(pvfs_fallocate(f, mode, at, n));
		if (!(mode & KEEP))
			grow(d, at + n);
		if ((mode & (ZERO | FALLOC_FL_PUNCH_HOLE)) && at < d->size)
			memset(d->b + at, 0, at + n < d->size ? n : d->size - at);
		break;
	case 4:
	case 5:
		from = rnd(2);
		s = &m[from];
		to = rnd(2) ? at % ROUND + rnd(MODEL_MAX / ROUND - 1) * ROUND : some_offset();
		n = to + n > MODEL_MAX ? MODEL_MAX - to : n;
		n = at >= s->size ? 0 : at + n > s->size ? s->size - at : n;
		if (from == file && n && at < to + n && to < at + n) {
			assert_int_equal(pvfs_copy_file_range(c[from][who], at, f, to, n, 0),
					 -EINVAL);
			break;
		}
		assert_int_equal(
			pvfs_copy_file_range(c[from][rnd(4) ? who : !who], at, f, to, n, 0), n);
		if (n) {
			grow(d, to);
			memmove(d->b + to, s->b + at, n);
			d->size = to + n > d->size ? to + n : d->size;
		}
		break;
	default:
		found = pvfs_lseek(f, at, what == 6 ? SEEK_DATA : SEEK_HOLE);
		if (at >= d->size) {
			assert_int_equal(found, -ENXIO);
		} else if (what == 6) {
			for (k = at; k < (found < 0 ? d->size : (size_t)found); k++)
				assert_int_equal(d->b[k], 0);
			assert_true(found == -ENXIO ||
				    (found >= (off_t)at && found < (off_t)d->size));
		} else {
			assert_in_range(found, at, d->size);
			if ((size_t)found < d->size)
				assert_int_equal(d->b[found], 0);
		}
	}
}

static void test_model(void **state)
{
	struct model m[2] = { 0 };
	struct pvfs_file *c[2][2];
	uint8_t *got = malloc(MODEL_MAX + 1);
	const char *path[] = { "/model0", "/model1" };
	int i, k, w;

	seed = time(NULL);
	print_message("# seed %u\n", seed);
	for (i = 0; i < 2; i++) {
		m[i].b = calloc(1, MODEL_MAX);
		c[i][0] = open_new(path[i]);
		OK(pvfs_open(other, path[i], O_RDWR, 0, &c[i][1]));
	}
	for (i = 0; i < STEPS; i++) {
		model_step(m, c);
		for (k = 0; k < 2; k++) {
			w = rnd(2);
			assert_int_equal(size_of(c[k][w]), m[k].size);
			if (i % 10)
				continue;
			assert_int_equal(pvfs_pread(c[k][w], got, MODEL_MAX + 1, 0), m[k].size);
			assert_memory_equal(got, m[k].b, m[k].size);
		}
	}
	for (i = 0; i < 2; i++) {
		assert_int_equal(space_of(fs, path[i]), space_of(other, path[i]));
		OK(pvfs_close(c[i][0]));
		OK(pvfs_close(c[i][1]));
		OK(pvfs_unlink(fs, path[i]));
		free(m[i].b);
	}
	free(got);
}

/* ---------------------------------------------------------------- at once */

enum { SPINS = 150 };

static void *cutter(void *arg)
{
	struct pvfs_file *f = arg;
	intptr_t bad = 0;
	int i;

	for (i = 0; i < SPINS; i++)
		bad += pvfs_ftruncate(f, i % 3 ? ROUND : 0) != 0;
	return (void *)bad;
}

static void *allocator(void *arg)
{
	static const int modes[] = { 0, KEEP, PUNCH, ZERO };
	struct pvfs_file *f = arg;
	intptr_t bad = 0;
	off_t at;
	int i;

	for (i = 0; i < SPINS; i++) {
		bad += pvfs_fallocate(f, modes[i % 4], SSIZE / 2, 2 * ROUND) != 0;
		at = pvfs_lseek(f, 0, i % 2 ? SEEK_DATA : SEEK_HOLE);
		bad += at != -ENXIO && (at < 0 || at > (off_t)(3 * ROUND));
	}
	return (void *)bad;
}

/* Truncations by one client, allocations and copies by the other. */
static void test_beside_truncation(void **state)
{
	struct pvfs_file *f = open_new("/beside"), *g, *from = open_new("/from");
	pthread_t cut, alloc;
	uint64_t space;
	off_t size;
	void *bad;
	int i;

	write_at(from, 0, ROUND);
	OK(pvfs_open(other, "/beside", O_RDWR, 0, &g));
	assert_int_equal(pthread_create(&cut, NULL, cutter, g), 0);
	assert_int_equal(pthread_create(&alloc, NULL, allocator, f), 0);
	for (i = 0; i < SPINS; i++) {
		size = size_of(i % 2 ? f : g);
		assert_in_range(size, 0, 3 * ROUND);
		assert_int_equal(pvfs_copy_file_range(from, 0, f, 2 * ROUND, ROUND, 0), ROUND);
	}
	pthread_join(cut, &bad);
	assert_null(bad);
	pthread_join(alloc, &bad);
	assert_null(bad);
	/* When all is done both know the same. */
	size = size_of(f);
	assert_int_equal(size_of(g), size);
	space = space_of(fs, "/beside");
	assert_int_equal(space_of(other, "/beside"), space);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	assert_int_equal(space_of(other, "/beside"), space);
	OK(pvfs_ftruncate(from, 0));
	OK(pvfs_close(from));
	OK(pvfs_truncate(other, "/beside", 0));
	assert_int_equal(space_of(fs, "/beside"), 0);
	OK(pvfs_unlink(fs, "/beside"));
	OK(pvfs_unlink(fs, "/from"));
}

struct busy {
	struct pvfs_file *in, *out;
	atomic_bool stop;
	int rounds, errors;
};

static void *busy_worker(void *arg)
{
	struct busy *b = arg;

	while (!atomic_load(&b->stop)) {
		b->errors += pvfs_fallocate(b->out, PUNCH, 0, 4 * ROUND) != 0;
		b->errors += pvfs_fallocate(b->out, 0, 0, 5 * ROUND) != 0;
		b->errors += pvfs_copy_file_range(b->in, 0, b->out, 0, 4 * ROUND, 0) != 4 * ROUND;
		b->errors += pvfs_lseek(b->out, 0, SEEK_DATA) != 0;
		b->rounds++;
	}
	return NULL;
}

/* Daemons come and go in the middle: the calls wait, and what they have done is there. */
static void test_restarts(void **state)
{
	static const char *const daemons[] = { "iod0", "iod2", "mgr", "iod0", "iod3" };
	struct busy b = { .in = open_new("/restart"), .out = open_new("/restart2") };
	struct pvfs_file *g;
	pthread_t t;
	size_t i;

	write_at(b.in, 0, 4 * ROUND);
	assert_int_equal(pthread_create(&t, NULL, busy_worker, &b), 0);
	for (i = 0; i < sizeof(daemons) / sizeof(*daemons); i++) {
		usleep(100000);
		restart(daemons[i]);
	}
	usleep(100000);
	atomic_store(&b.stop, true);
	pthread_join(t, NULL);
	assert_int_equal(b.errors, 0);
	assert_true(b.rounds > 0);
	/* The machine did not go down: nothing was lost. */
	OK(pvfs_fsync(b.out));
	OK(pvfs_open(other, "/restart2", O_RDONLY, 0, &g));
	assert_int_equal(size_of(g), 5 * ROUND);
	check_at(g, 0, 4 * ROUND);
	check_zero(g, 4 * ROUND, ROUND);
	OK(pvfs_close(g));
	OK(pvfs_close(b.in));
	OK(pvfs_close(b.out));
	OK(pvfs_unlink(fs, "/restart"));
	OK(pvfs_unlink(fs, "/restart2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fallocate_errors),
		cmocka_unit_test(test_seek_errors),
		cmocka_unit_test(test_copy_errors),
		cmocka_unit_test(test_space_fork),
		cmocka_unit_test(test_fallocate),
		cmocka_unit_test(test_seek),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_layout_stays),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_beside_truncation),
		cmocka_unit_test(test_restarts),
	};

	return cmocka_run_group_tests_name("libpvfs: space", tests, setup, teardown);
}
