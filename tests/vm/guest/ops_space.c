// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_space.c - fallocate and its modes, SEEK_DATA and SEEK_HOLE.
 */
#include "ops.h"
#include <linux/falloc.h>
#include <sys/mman.h>

#define KEEP FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO FALLOC_FL_ZERO_RANGE

static off_t size_of(int fd)
{
	struct stat st;

	OK(fstat(fd, &st));
	return st.st_size;
}

/* Not all local file systems make zeros; the others do nothing then. */
static bool zeros(int fd, int mode, off_t off, off_t n)
{
	if (!fallocate(fd, mode, off, n))
		return true;
	if (errno != EOPNOTSUPP)
		FAIL("fallocate mode %d at %lld: %s", mode, (long long)off, strerror(errno));
	return false;
}

static void allocation(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), ro;
	char c[100], zero[100] = "";

	ops_pwrite(fd, "begin", 5, 0);
	OK(fallocate(fd, KEEP, 0, 3 * ROUND + 77));
	EQ(size_of(fd), 5);
	OK(fallocate(fd, 0, 1, 2));
	EQ(size_of(fd), 5);
	OK(fallocate(fd, 0, 100, 3 * ROUND));
	EQ(size_of(fd), 3 * ROUND + 100);
	EQ(ops_pread(fd, c, 5, 0), 5);
	WANT(!memcmp(c, "begin", 5));
	EQ(ops_pread(fd, c, 100, 3 * ROUND), 100);
	WANT(!memcmp(c, zero, 100));
	OK(posix_fallocate(fd, 0, 4 * ROUND) ? -1 : 0);
	EQ(size_of(fd), 4 * ROUND);
	ERR(fallocate(fd, 0, -1, 10), EINVAL);
	ERR(fallocate(fd, 0, 0, 0), EINVAL);
	ERR(fallocate(fd, 0, INT64_MAX, 10), EFBIG);
	ERR(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10), EOPNOTSUPP);
	ro = ops_open("f", O_RDONLY, 0);
	ERR(fallocate(ro, 0, 0, 10), EBADF);
}

static void holes(void)
{
	size_t n = 3 * ROUND + 500, i;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), k;
	unsigned char *want = malloc(n), *got = malloc(n);

	ops_fill(want, n, 0, 9);
	ops_pwrite(fd, want, n, 0);
	for (k = 0; k < 12; k++) {
		off_t off = ops_random() % n;
		size_t len = 1 + ops_random() % (k % 3 ? 9000 : 2 * ROUND);

		if (k % 4 == 3 && !zeros(fd, ZERO | KEEP, off, len))
			continue;
		if (k % 4 != 3)
			OK(fallocate(fd, PUNCH, off, len));
		memset(want + off, 0, off + len > n ? n - off : len);
		EQ(size_of(fd), n);
		EQ(ops_pread(fd, got, n, 0), n);
		for (i = 0; i < n; i++)
			if (got[i] != want[i])
				FAIL("step %d: byte %zu is %d, should be %d", k, i, got[i], want[i]);
	}
	/* Behind the end there is nothing to punch; zeros make the file longer, if they may. */
	OK(fallocate(fd, PUNCH, n + 1000, ROUND));
	EQ(size_of(fd), n);
	if (zeros(fd, ZERO, n - 10, 1000))
		EQ(size_of(fd), n + 990);
}

static void extents(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	off_t far = 9 * ROUND, d, h;

	ERR(lseek(fd, 0, SEEK_DATA), ENXIO);
	ERR(lseek(fd, 0, SEEK_HOLE), ENXIO);
	ops_pwrite(fd, "x", 1, far);
	/* As exact as the store's pages. */
	d = lseek(fd, 0, SEEK_DATA);
	WANT(d <= far && d > far - UNIT);
	EQ(lseek(fd, far, SEEK_DATA), far);
	EQ(lseek(fd, 100, SEEK_HOLE), 100);
	EQ(lseek(fd, far, SEEK_HOLE), far + 1);
	ERR(lseek(fd, far + 1, SEEK_DATA), ENXIO);
	ERR(lseek(fd, far + 1, SEEK_HOLE), ENXIO);
	ERR(lseek(fd, -1, SEEK_DATA), ENXIO);
	ops_make("g", 2 * ROUND, 1);
	OK(close(fd));
	fd = ops_open("g", O_RDWR, 0);
	EQ(lseek(fd, 0, SEEK_HOLE), 2 * ROUND);
	EQ(lseek(fd, UNIT + 5, SEEK_DATA), UNIT + 5);
	OK(fallocate(fd, PUNCH, UNIT, UNIT));
	h = lseek(fd, 0, SEEK_HOLE);
	EQ(h, UNIT);
	EQ(lseek(fd, h, SEEK_DATA), 2 * UNIT);
	EQ(lseek(fd, 2 * UNIT, SEEK_HOLE), 2 * ROUND);
	EQ(lseek(fd, 0, SEEK_END), 2 * ROUND);
	/* What is allocated and not written is a hole to its end. */
	OK(close(fd));
	fd = ops_open("h", O_RDWR | O_CREAT, 0644);
	OK(fallocate(fd, 0, 0, 4 * ROUND));
	EQ(size_of(fd), 4 * ROUND);
	ops_pwrite(fd, "x", 1, 4 * ROUND);
	EQ(lseek(fd, 0, SEEK_DATA), 4 * ROUND);
}

/* What is stored in a mapping goes with the range, or stays beside it. */
static void mapped(void)
{
	size_t n = ROUND, i;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	char *p;

	OK(fallocate(fd, 0, 0, n));
	p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	WANT(p != MAP_FAILED);
	memset(p, 'a', n);
	OK(fallocate(fd, PUNCH, 1000, 10000));
	for (i = 0; i < n; i++)
		if (p[i] != (i >= 1000 && i < 11000 ? 0 : 'a'))
			FAIL("byte %zu is %d", i, p[i]);
}

static long kib_of(const char *path)
{
	struct stat st;

	OK(stat(path, &st));
	return st.st_blocks / 2;
}

/* The space that a file takes, as far as any local file system says it to a few blocks. */
static void blocks(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	static char buf[ROUND];

	EQ(kib_of("f"), 0);
	memset(buf, 'x', sizeof(buf));
	ops_pwrite(fd, buf, sizeof(buf), 0);
	WANT(kib_of("f") >= ROUND / 1024 && kib_of("f") < ROUND / 1024 + 64);
	/* A hole of a gigabyte. */
	ops_pwrite(fd, buf, 4096, 1 << 30);
	WANT(kib_of("f") < ROUND / 1024 + 128);
	OK(close(fd));
	WANT(kib_of("f") < ROUND / 1024 + 128);
	OK(truncate("f", ROUND));
	WANT(kib_of("f") >= ROUND / 1024 && kib_of("f") < ROUND / 1024 + 64);
	OK(truncate("f", 100 << 20));
	WANT(kib_of("f") < ROUND / 1024 + 64);
	fd = ops_open("f", O_RDWR, 0);
	OK(fallocate(fd, PUNCH, 0, ROUND));
	WANT(kib_of("f") < 64);
	OK(fallocate(fd, KEEP, 0, 1 << 20));
	WANT(kib_of("f") >= 1024);
	OK(close(fd));
	WANT(kib_of("f") >= 1024);
	OK(truncate("f", 0));
	EQ(kib_of("f"), 0);
}

static void copies(int in, off_t from, int out, off_t to, size_t n)
{
	ssize_t did;

	for (; n; n -= did) {
		did = copy_file_range(in, &from, out, &to, n, 0);
		WANT(did > 0);
	}
}

static void same(int a, off_t from, int b, off_t to, size_t n)
{
	static char x[1 << 20], y[1 << 20];

	EQ(ops_pread(a, x, n, from), n);
	EQ(ops_pread(b, y, n, to), n);
	WANT(!memcmp(x, y, n));
}

/* Ranges that servers can copy by themselves, and ones that they can't. */
static void copied(void)
{
	int a, b = ops_open("b", O_RDWR | O_CREAT, 0644), c = ops_open("c", O_RDWR | O_CREAT, 0644);
	size_t n = 4 * ROUND - 77;
	off_t from = 0, to = 0;
	struct stat st;

	ops_make("a", n, 7);
	a = ops_open("a", O_RDONLY, 0);
	copies(a, 0, b, 0, n);
	ops_verify("b", n, 7);
	/* Elsewhere in a file that has bytes already. */
	ops_pwrite(c, "first", 5, 0);
	copies(a, 3, c, 3 + 2 * ROUND, 2 * ROUND);
	same(a, 3, c, 3 + 2 * ROUND, 2 * ROUND);
	copies(a, 1, c, 2, 2 * ROUND);
	same(a, 1, c, 2, 2 * ROUND);
	/* Within one. */
	copies(b, 100, b, 100 + 8 * ROUND, 2 * ROUND);
	same(b, 100, b, 100 + 8 * ROUND, 2 * ROUND);
	b = ops_open("b", O_RDWR, 0);
	from = 0;
	to = ROUND;
	ERR(copy_file_range(b, &from, b, &to, 2 * ROUND, 0), EINVAL);
	/* No more than there is. */
	from = n - 10;
	to = 0;
	EQ(copy_file_range(a, &from, c, &to, 4 * ROUND, 0), 10);
	from = n;
	EQ(copy_file_range(a, &from, c, &to, 4 * ROUND, 0), 0);
	ERR(copy_file_range(a, NULL, a, NULL, ROUND, 0), EBADF);
	/* What was stored through a mapping goes along. */
	{
		char *p = mmap(NULL, 4 * ROUND, PROT_READ | PROT_WRITE, MAP_SHARED, b, 0);
		int d = ops_open("d", O_RDWR | O_CREAT, 0644);

		WANT(p != MAP_FAILED);
		memset(p + 1000, 'm', 2 * ROUND);
		copies(b, 0, d, 0, 3 * ROUND);
		same(b, 0, d, 0, 3 * ROUND);
		EQ(fstat(d, &st), 0);
		EQ(st.st_size, 3 * ROUND);
	}
}

const struct ops_check ops_space[] = {
	{ "space: allocation", allocation },
	{ "space: holes and zeros", holes },
	{ "space: where data and holes are", extents },
	{ "space: holes in a mapping", mapped },
	{ "space: st_blocks", blocks },
	{ "space: copy_file_range", copied },
	{ NULL, NULL }
};
