// SPDX-License-Identifier: GPL-2.0-only
/*
 * space.c - fallocate and its modes, copy_file_range, and what they refuse.
 */
#include "conform.h"
#include <limits.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#define KEEP FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO FALLOC_FL_ZERO_RANGE
#define SIZE 200000

static off_t size_of(int h)
{
	struct stat st = { 0 };

	OK(fs->fstat(h, &st));
	return st.st_size;
}

/*
 * The file is SIZE bytes that say where they are, but for [from, to), which is zeros; it ends with
 * zeros after SIZE.
 */
static char pattern(off_t at)
{
	return 'a' + (at * 7 + (at >> 9)) % 26;
}

static void fill(int h)
{
	static char buf[SIZE];
	off_t i;

	for (i = 0; i < SIZE; i++)
		buf[i] = pattern(i);
	OK(fs->ftruncate(h, 0));
	EQ(fs->pwrite(h, buf, SIZE, 0), SIZE);
}

static void verify(int h, off_t from, off_t to, off_t size)
{
	static char buf[2 * SIZE];
	off_t i;

	EQ(size_of(h), size);
	EQ(fs->pread(h, buf, sizeof(buf), 0), size);
	for (i = 0; i < size; i++) {
		char want = i >= SIZE || (i >= from && i < to) ? 0 : pattern(i);

		if (buf[i] != want) {
			wrong(__FILE__, __LINE__, "byte %lld is %#x, should be %#x", (long long)i, buf[i], want);
			return;
		}
	}
}

static const struct {
	const char *name;
	int mode;
	bool zeros, keeps;
} modes[] = {
	{ "0", 0, false, false },
	{ "KEEP_SIZE", KEEP, false, true },
	{ "PUNCH_HOLE|KEEP_SIZE", PUNCH, true, true },
	{ "ZERO_RANGE", ZERO, true, false },
	{ "ZERO_RANGE|KEEP_SIZE", ZERO | KEEP, true, true },
};

static void ranges(void)
{
	static const struct { off_t at, n; } r[] = {
		{ 0, 1 }, { 0, 4096 }, { 0, SIZE }, { 1, 1 }, { 1, 4095 }, { 4095, 2 }, { 4096, 4096 }, { 100, 50000 },
		{ 65536, 65536 }, { 65535, 65538 }, { 130000, 70000 }, { SIZE - 1, 1 }, { SIZE - 1, 2 },
		{ SIZE, 1 }, { SIZE, 100000 }, { SIZE + 5000, 5000 }, { 1000, SIZE }, { 0, 2 * SIZE - 5 },
	};
	size_t m, i;
	int h = -1;

	if (live()) {
		h = fs->open("f", O_RDWR | O_CREAT, 0644);
		OK(h);
	}
	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		for (i = 0; i < ARRAY_SIZE(r); i++) {
			off_t end = r[i].at + r[i].n;
			off_t size = modes[m].keeps || end < SIZE ? SIZE : end;

			if (!row("fallocate/%s of %lld at %lld", modes[m].name, (long long)r[i].n, (long long)r[i].at))
				continue;
			fill(h);
			OK(fs->fallocate(h, modes[m].mode, r[i].at, r[i].n));
			if (modes[m].zeros)
				verify(h, r[i].at, end, size);
			else
				verify(h, 0, 0, size);
		}
	}
	if (h >= 0)
		fs->close(h);
}

static void refusals(void)
{
	static const struct { const char *name; int mode; off_t at, n; int err; } t[] = {
		{ "no bytes", 0, 0, 0, EINVAL }, { "bytes below 0", 0, 0, -1, EINVAL },
		{ "an offset below 0", 0, -1, 10, EINVAL }, { "both below 0", 0, -10, -10, EINVAL },
		{ "an end above 2^63 - 1", 0, LLONG_MAX, 10, EFBIG }, { "an end of 2^63", 0, LLONG_MAX, 1, EFBIG },
		{ "the lowest offset", 0, LLONG_MIN, 1, EINVAL },
		{ "an end beyond the largest size", 0, LLONG_MAX - 10, 10, EFBIG },
		{ "no bytes, KEEP_SIZE", KEEP, 0, 0, EINVAL }, { "an offset below 0, KEEP_SIZE", KEEP, -1, 10, EINVAL },
		{ "an end beyond the largest size, KEEP_SIZE", KEEP, LLONG_MAX - 10, 10, EFBIG },
		{ "no bytes, PUNCH_HOLE", PUNCH, 0, 0, EINVAL }, { "bytes below 0, PUNCH_HOLE", PUNCH, 0, -4, EINVAL },
		{ "an offset below 0, PUNCH_HOLE", PUNCH, -1, 10, EINVAL },
		{ "an end above 2^63 - 1, PUNCH_HOLE", PUNCH, LLONG_MAX, 10, EFBIG },
		{ "no bytes, ZERO_RANGE", ZERO, 0, 0, EINVAL },
		{ "an end above 2^63 - 1, ZERO_RANGE", ZERO, LLONG_MAX, 10, EFBIG },
		{ "PUNCH_HOLE without KEEP_SIZE", FALLOC_FL_PUNCH_HOLE, 0, 10, EOPNOTSUPP },
		{ "PUNCH_HOLE and ZERO_RANGE", PUNCH | ZERO, 0, 10, EOPNOTSUPP },
		{ "COLLAPSE_RANGE and KEEP_SIZE", FALLOC_FL_COLLAPSE_RANGE | KEEP, 0, 4096, -EINVAL },
		{ "INSERT_RANGE and PUNCH_HOLE", FALLOC_FL_INSERT_RANGE | PUNCH, 0, 4096, -EINVAL },
		{ "COLLAPSE_RANGE of no block", FALLOC_FL_COLLAPSE_RANGE, 1, 5, -EINVAL },
		{ "COLLAPSE_RANGE beyond the end", FALLOC_FL_COLLAPSE_RANGE, 0, 1 << 20, -EINVAL },
		{ "INSERT_RANGE of no block", FALLOC_FL_INSERT_RANGE, 1, 5, -EINVAL },
		{ "INSERT_RANGE beyond the end", FALLOC_FL_INSERT_RANGE, 1 << 20, 4096, -EINVAL },
		{ "an unknown mode", 0x800, 0, 10, EOPNOTSUPP }, { "a high unknown mode", 0x40000000, 0, 10, EOPNOTSUPP },
	};
	static const struct { const char *name; enum type type; int err; } things[] = {
		{ "a fifo", T_FIFO, ESPIPE }, { "a character device", T_CHR, ENODEV },
	};
	struct snap snap;
	size_t i;
	int h = -1, fd;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		/* Modes that a file system need not have: it refuses the mode or the range. */
		bool either = t[i].err < 0;

		if (!row("fallocate-errors/%s: %s", t[i].name, either ? "EINVAL or EOPNOTSUPP" : err_name(t[i].err)))
			continue;
		snap_take(&snap, "f", NULL);
		fd = fs->fallocate(h, t[i].mode, t[i].at, t[i].n);
		if (either)
			WANT(fd == -EINVAL || fd == -EOPNOTSUPP);
		else
			GIVES(fd, t[i].err);
		SAME(&snap);
	}
	for (i = 0; i < ARRAY_SIZE(things); i++) {
		if (!on_vfs() ||
		    !row("fallocate-errors/%s: %s", things[i].name, err_name(things[i].err)))
			continue;
		make("x", things[i].type);
		fd = open("x", O_RDWR);
		GIVES(sys(fallocate(fd, 0, 0, 10)), things[i].err);
		close(fd);
		wipe("x");
	}
	if (on_vfs() && row("fallocate-errors/a directory: EBADF")) {
		fd = open(".", O_RDONLY);
		GIVES(sys(fallocate(fd, 0, 0, 10)), EBADF);
		close(fd);
	}
	if (row("fallocate-errors/a file that is open for reading: EBADF")) {
		fd = fs->open("f", O_RDONLY, 0);
		snap_take(&snap, "f", NULL);
		GIVES(fs->fallocate(fd, 0, 0, 10), EBADF);
		GIVES(fs->fallocate(fd, PUNCH, 0, 10), EBADF);
		SAME(&snap);
		fs->close(fd);
	}
	if (row("fallocate-errors/no descriptor: EBADF"))
		GIVES(fs->fallocate(-1, 0, 0, 10), EBADF);
	if (on_vfs() && row("fallocate-errors/posix_fallocate returns its errors")) {
		EQ(posix_fallocate(h, 0, 0), EINVAL);
		EQ(posix_fallocate(h, -1, 5), EINVAL);
		EQ(posix_fallocate(h, 0, 10), 0);
		EQ(size_of(h), 10);
	}
	if (h >= 0)
		fs->close(h);
}

/* st_blocks is the space that there is, not the size. */
static void blocks(void)
{
	struct stat st;
	int h = -1;

	if (live()) {
		h = fs->open("f", O_RDWR | O_CREAT, 0644);
		OK(h);
	}
	if (row("st_blocks/an empty file has none")) {
		OK(fs->fstat(h, &st));
		EQ(st.st_blocks, 0);
	}
	if (row("st_blocks/a hole has none")) {
		OK(fs->ftruncate(h, 1 << 20));
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		EQ(st.st_blocks, 0);
	}
	if (row("st_blocks/one byte has few")) {
		EQ(fs->pwrite(h, "x", 1, 1 << 19), 1);
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		WANT(st.st_blocks > 0 && st.st_blocks <= 256);
	}
	if (row("st_blocks/a full file has all")) {
		fill(h);
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		WANT(st.st_blocks >= SIZE / 512);
		WANT(st.st_blocks <= SIZE / 512 + 512);
	}
	if (row("st_blocks/a hole that is punched gives back")) {
		long before;

		fill(h);
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		before = st.st_blocks;
		OK(fs->fallocate(h, PUNCH, 65536, 65536));
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		EQ(st.st_blocks, before - 128);
	}
	if (row("st_blocks/KEEP_SIZE takes space")) {
		OK(fs->ftruncate(h, 0));
		OK(fs->fallocate(h, KEEP, 0, 1 << 20));
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		WANT(st.st_blocks >= 2048);
		EQ(st.st_size, 0);
	}
	if (row("st_blocks/truncation gives all back")) {
		OK(fs->ftruncate(h, 0));
		OK(fs->fsync(h));
		OK(fs->fstat(h, &st));
		EQ(st.st_blocks, 0);
	}
	if (h >= 0)
		fs->close(h);
}

static void copies(void)
{
	static const struct { off_t in, out; size_t n; } t[] = {
		{ 0, 0, SIZE }, { 0, 0, 1 }, { 1, 0, 4096 }, { 0, 1, 4096 }, { 4096, 8192, 65536 }, { 65536, 65536, 65536 },
		{ 65535, 1, 131072 }, { 100, 300, 99999 }, { SIZE - 1, 0, 1 }, { SIZE - 1, 0, 100 }, { SIZE, 0, 10 },
		{ SIZE + 100, 0, 10 }, { 0, SIZE, 1000 }, { 0, SIZE + 5000, 1000 }, { 0, 0, 0 }, { 10, 20, 0 },
		{ 0, 0, 1 << 30 },
	};
	static char got[2 * SIZE];
	int in = -1, out = -1, other;
	struct snap snap;
	off_t a, b;
	size_t i;

	if (live()) {
		in = fs->open("in", O_RDWR | O_CREAT, 0644);
		fill(in);
		out = fs->open("out", O_RDWR | O_CREAT, 0644);
		make_targets(".");
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		size_t left = t[i].in < SIZE ? SIZE - t[i].in : 0, n = t[i].n < left ? t[i].n : left, k;
		ssize_t r, done = 0;

		if (!row("copy_file_range/%zu from %lld to %lld", t[i].n, (long long)t[i].in, (long long)t[i].out))
			continue;
		OK(fs->ftruncate(out, 0));
		a = t[i].in;
		b = t[i].out;
		/* It may be short. */
		do {
			r = fs->copy_file_range(in, &a, out, &b, t[i].n - done, 0);
			if (r > 0)
				done += r;
		} while (r > 0 && done < (ssize_t)n);
		OK(r);
		EQ(done, n);
		EQ(a, t[i].in + (off_t)n);
		EQ(b, t[i].out + (off_t)n);
		EQ(size_of(out), n ? t[i].out + (off_t)n : 0);
		EQ(fs->pread(out, got, n, t[i].out), n);
		for (k = 0; k < n; k++) {
			if (got[k] != pattern(t[i].in + k)) {
				wrong(__FILE__, __LINE__, "byte %zu differs", k);
				break;
			}
		}
		if (on_vfs()) {
			EQ(lseek(in, 0, SEEK_CUR), 0);
			EQ(lseek(out, 0, SEEK_CUR), 0);
		}
	}
	if (on_vfs() && row("copy_file_range/without offsets moves the descriptors'")) {
		OK(sys(ftruncate(out, 0)));
		OK(sys(lseek(in, 100, SEEK_SET)));
		OK(sys(lseek(out, 10, SEEK_SET)));
		EQ(sys(copy_file_range(in, NULL, out, NULL, 50, 0)), 50);
		EQ(lseek(in, 0, SEEK_CUR), 150);
		EQ(lseek(out, 0, SEEK_CUR), 60);
		EQ(size_of(out), 60);
		EQ(pread(out, got, 60, 0), 60);
		EQ(got[9], 0);
		EQ(got[10], pattern(100));
	}
	if (row("copy_file_range/within a file, apart")) {
		fill(in);
		a = 0;
		b = 150000;
		EQ(fs->copy_file_range(in, &a, in, &b, 50000, 0), 50000);
		EQ(fs->pread(in, got, 50000, 150000), 50000);
		EQ(got[0], pattern(0));
		EQ(got[49999], pattern(49999));
		fill(in);
	}
	if (row("copy_file_range/within a file, overlapping: EINVAL")) {
		snap_take(&snap, "in", NULL);
		a = 0;
		b = 10;
		GIVES(fs->copy_file_range(in, &a, in, &b, 50, 0), EINVAL);
		a = 10;
		b = 0;
		GIVES(fs->copy_file_range(in, &a, in, &b, 50, 0), EINVAL);
		a = b = 5;
		GIVES(fs->copy_file_range(in, &a, in, &b, 1, 0), EINVAL);
		SAME(&snap);
	}
	if (row("copy_file_range/within a file, through another descriptor, overlapping: EINVAL")) {
		other = fs->open("in", O_RDWR, 0);
		snap_take(&snap, "in", NULL);
		a = 0;
		b = 10;
		GIVES(fs->copy_file_range(in, &a, other, &b, 50, 0), EINVAL);
		SAME(&snap);
		fs->close(other);
	}
	if (row("copy_file_range/flags: EINVAL")) {
		a = b = 0;
		snap_take(&snap, "out", NULL);
		GIVES(fs->copy_file_range(in, &a, out, &b, 10, 1), EINVAL);
		SAME(&snap);
	}
	if (row("copy_file_range/from one open for writing: EBADF")) {
		other = fs->open("in", O_WRONLY, 0);
		a = b = 0;
		snap_take(&snap, "out", NULL);
		GIVES(fs->copy_file_range(other, &a, out, &b, 10, 0), EBADF);
		SAME(&snap);
		fs->close(other);
	}
	if (row("copy_file_range/to one open for reading: EBADF")) {
		other = fs->open("out", O_RDONLY, 0);
		a = b = 0;
		snap_take(&snap, "out", NULL);
		GIVES(fs->copy_file_range(in, &a, other, &b, 10, 0), EBADF);
		SAME(&snap);
		fs->close(other);
	}
	if (row("copy_file_range/to one open O_APPEND: EBADF")) {
		other = fs->open("out", O_WRONLY | O_APPEND, 0);
		a = b = 0;
		snap_take(&snap, "out", NULL);
		GIVES(fs->copy_file_range(in, &a, other, &b, 10, 0), EBADF);
		SAME(&snap);
		fs->close(other);
	}
	if (on_vfs() && row("copy_file_range/from a directory: EISDIR")) {
		other = open(".", O_RDONLY);
		a = b = 0;
		GIVES(sys(copy_file_range(other, &a, out, &b, 10, 0)), EISDIR);
		close(other);
	}
	if (on_vfs() && row("copy_file_range/to a directory: EISDIR")) {
		other = open(".", O_RDONLY);
		a = b = 0;
		GIVES(sys(copy_file_range(in, &a, other, &b, 10, 0)), EISDIR);
		close(other);
	}
	if (on_vfs() && row("copy_file_range/from a fifo: EINVAL")) {
		make("fifo", T_FIFO);
		other = open("fifo", O_RDWR);
		b = 0;
		GIVES(sys(copy_file_range(other, NULL, out, &b, 10, 0)), EINVAL);
		close(other);
	}
	if (on_vfs() && row("copy_file_range/from a device: EINVAL")) {
		other = open("/dev/zero", O_RDONLY);
		b = 0;
		GIVES(sys(copy_file_range(other, NULL, out, &b, 10, 0)), EINVAL);
		close(other);
	}
	if (row("copy_file_range/no descriptors: EBADF")) {
		a = b = 0;
		GIVES(fs->copy_file_range(-1, &a, out, &b, 10, 0), EBADF);
		GIVES(fs->copy_file_range(in, &a, -1, &b, 10, 0), EBADF);
	}
	if (row("copy_file_range/an end above 2^63 - 1: EOVERFLOW or EFBIG")) {
		a = 0;
		b = LLONG_MAX - 5;
		snap_take(&snap, "out", NULL);
		other = fs->copy_file_range(in, &a, out, &b, 100, 0);
		WANT(other == -EOVERFLOW || other == -EFBIG);
		SAME(&snap);
	}
	if (row("copy_file_range/an offset below 0: EINVAL")) {
		a = -1;
		b = 0;
		snap_take(&snap, "out", NULL);
		other = fs->copy_file_range(in, &a, out, &b, 100, 0);
		WANT(other == -EINVAL || other == -EOVERFLOW);
		SAME(&snap);
	}
	if (row("copy_file_range/a hole is copied as zeros")) {
		other = fs->open("hole", O_RDWR | O_CREAT, 0644);
		OK(fs->ftruncate(other, 100000));
		fill(out);
		a = b = 0;
		EQ(fs->copy_file_range(other, &a, out, &b, 100000, 0), 100000);
		EQ(fs->pread(out, got, 100001, 0), 100001);
		EQ(got[0], 0);
		EQ(got[99999], 0);
		EQ(got[100000], pattern(100000));
		fs->close(other);
	}
	if (live()) {
		fs->close(in);
		fs->close(out);
	}
}

const struct table tables_space[] = {
	{ "fallocate", ranges },
	{ "fallocate-errors", refusals },
	{ "st_blocks", blocks },
	{ "copy_file_range", copies },
	{ NULL },
};
