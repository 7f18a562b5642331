// SPDX-License-Identifier: GPL-2.0-only
/*
 * limits.c - offsets and sizes: negative, around the largest, beyond what the file system or the
 * process may have; lseek from everywhere to everywhere; truncate and ftruncate.
 */
#include "conform.h"
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>

static off_t size_of(int h)
{
	struct stat st = { 0 };

	OK(fs->fstat(h, &st));
	return st.st_size;
}

/* The largest size that a file may have here, found by halving. */
static off_t largest(int h)
{
	off_t good = 0, bad = LLONG_MAX, mid;

	if (fs->ftruncate(h, bad) >= 0) {
		OK(fs->ftruncate(h, 0));
		return bad;
	}
	while (bad - good > 1) {
		mid = good + (bad - good) / 2;
		if (fs->ftruncate(h, mid) >= 0)
			good = mid;
		else
			bad = mid;
	}
	OK(fs->ftruncate(h, 0));
	return good;
}

static void truncates(void)
{
	static const off_t sizes[] = {
		0, 1, 4, 5, 6, 511, 512, 4095, 4096, 4097, 65535, 65536, 65537, 131072, 262143, 262144, 262145,
		1000000, 0x7fffffffll, 0x80000000ll, 0x100000000ll, 0x10000000000ll,
	};
	static const off_t from[] = { 0, 5, 4096, 70000, 300000 };
	static const struct { const char *name; enum type type; int err; } things[] = {
		{ "a directory", T_DIR, EISDIR }, { "a fifo", T_FIFO, EINVAL }, { "a socket", T_SOCK, EINVAL },
		{ "a character device", T_CHR, EINVAL }, { "a link to a directory", T_SYMDIR, EISDIR },
		{ "a dangling link", T_DANGLING, ENOENT }, { "nothing", T_NONE, ENOENT },
	};
	char buf[64], zero[64] = "";
	size_t i, k;
	int h = -1, by_fd;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(h);
	}
	for (k = 0; k < ARRAY_SIZE(from); k++)
	for (by_fd = 0; by_fd < 2; by_fd++)
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		off_t keep = from[k] < sizes[i] ? from[k] : sizes[i], at;

		if (!row("truncate/%s from %lld to %lld", by_fd ? "descriptor" : "path", (long long)from[k],
			 (long long)sizes[i]))
			continue;
		OK(fs->ftruncate(h, 0));
		OK(fs->ftruncate(h, from[k]));
		if (from[k]) {
			/* Its last bytes: what is cut off has to be gone when it grows again. */
			at = from[k] > 8 ? from[k] - 8 : 0;
			EQ(fs->pwrite(h, "12345678", from[k] - at, at), from[k] - at);
		}
		OK(by_fd ? fs->ftruncate(h, sizes[i]) : fs->truncate("f", sizes[i]));
		EQ(size_of(h), sizes[i]);
		at = keep > 16 ? keep - 16 : 0;
		OK(fs->ftruncate(h, keep + 32 > sizes[i] ? keep + 32 : sizes[i]));
		memset(buf, '!', sizeof(buf));
		EQ(fs->pread(h, buf, 32, keep), 32);
		WANT(!memcmp(buf, zero, 32));
		if (keep == from[k] && keep) {
			EQ(fs->pread(h, buf, 1, keep - 1), 1);
			EQ(buf[0], from[k] > 8 ? '8' : '0' + (char)from[k]);
		}
	}
	for (i = 0; i < ARRAY_SIZE(things); i++) {
		struct snap snap;

		if (!row("truncate/%s: %s", things[i].name, err_name(things[i].err)))
			continue;
		make_targets(".");
		make("x", things[i].type);
		snap_take(&snap, "x", ".", "tdir", NULL);
		GIVES(fs->truncate("x", 0), things[i].err);
		SAME(&snap);
		wipe("x");
		wipe("tdir");
		wipe("tfile");
	}
	for (by_fd = 0; by_fd < 2; by_fd++) {
		static const off_t bad[] = { -1, -4096, LLONG_MIN };

		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			struct snap snap;

			if (!row("truncate/%s to %lld: EINVAL", by_fd ? "descriptor" : "path", (long long)bad[i]))
				continue;
			snap_take(&snap, "f", NULL);
			GIVES(by_fd ? fs->ftruncate(h, bad[i]) : fs->truncate("f", bad[i]), EINVAL);
			SAME(&snap);
		}
	}
	if (row("truncate/path to the largest size, and one more: EFBIG")) {
		off_t max = largest(h);
		struct snap snap;

		WANT(max >= 0xfffffffffffll - 4096);
		OK(fs->truncate("f", max));
		EQ(size_of(h), max);
		if (max < LLONG_MAX) {
			snap_take(&snap, "f", NULL);
			GIVES(fs->truncate("f", max + 1), EFBIG);
			GIVES(fs->truncate("f", LLONG_MAX), EFBIG);
			SAME(&snap);
		}
		OK(fs->truncate("f", 0));
	}
	if (h >= 0)
		fs->close(h);
}

/* Reads and writes at the edges. @max is the largest size. */
static void offsets(void)
{
	static const off_t negative[] = { -1, -2, -4096, -0x100000000ll, LLONG_MIN };
	off_t max = 0;
	char c[16];
	size_t i;
	struct iovec iov[2];
	struct snap snap;
	int h = -1;

	iov[0].iov_base = iov[1].iov_base = c;
	iov[0].iov_len = iov[1].iov_len = 8;
	memset(c, 'c', sizeof(c));
	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(h);
		max = largest(h);
		OK(fs->ftruncate(h, 5));
	}
	for (i = 0; i < ARRAY_SIZE(negative); i++) {
		if (row("offsets/pread at %lld: EINVAL", (long long)negative[i]))
			GIVES(fs->pread(h, c, 1, negative[i]), EINVAL);
		if (row("offsets/pread of no bytes at %lld: EINVAL", (long long)negative[i]))
			GIVES(fs->pread(h, c, 0, negative[i]), EINVAL);
		/*
		 * -1 is the descriptor's own offset for preadv2(2), and glibc's preadv is that
		 * system call's kin.
		 */
		if (row("offsets/preadv at %lld: EINVAL", (long long)negative[i]))
			GIVES(fs->preadv(h, iov, 2, negative[i]), EINVAL);
		if (row("offsets/pwrite at %lld: EINVAL", (long long)negative[i])) {
			snap_take(&snap, "f", NULL);
			GIVES(fs->pwrite(h, c, 1, negative[i]), EINVAL);
			SAME(&snap);
		}
		if (row("offsets/pwritev at %lld: EINVAL", (long long)negative[i])) {
			snap_take(&snap, "f", NULL);
			GIVES(fs->pwritev(h, iov, 2, negative[i]), EINVAL);
			SAME(&snap);
		}
	}
	if (row("offsets/pread at the end: 0"))
		EQ(fs->pread(h, c, 16, 5), 0);
	if (row("offsets/pread beyond the end: 0"))
		EQ(fs->pread(h, c, 16, 6), 0);
	if (row("offsets/pread across the end: short"))
		EQ(fs->pread(h, c, 16, 3), 2);
	/*
	 * Linux refuses what would end above the largest offset, POSIX sees the end of the file
	 * first.
	 */
	if (row("offsets/pread at 2^63 - 1: 0 or EINVAL, no bytes")) {
		ssize_t r = fs->pread(h, c, 1, LLONG_MAX);

		WANT(r == 0 || r == -EINVAL || r == -EOVERFLOW);
	}
	if (row("offsets/pread at 2^63 - 17: 0"))
		EQ(fs->pread(h, c, 16, LLONG_MAX - 16), 0);
	if (row("offsets/pread whose end is above 2^63 - 1: 0 or EINVAL, no bytes")) {
		ssize_t r = fs->pread(h, c, 16, LLONG_MAX - 3);

		WANT(r == 0 || r == -EINVAL || r == -EOVERFLOW);
	}
	if (row("offsets/pwrite at 2^63 - 1: EFBIG or EINVAL")) {
		ssize_t r;

		snap_take(&snap, "f", NULL);
		r = fs->pwrite(h, c, 1, LLONG_MAX);
		WANT(r == -EFBIG || r == -EINVAL || r == -EOVERFLOW);
		SAME(&snap);
	}
	if (row("offsets/pwrite at the largest size: EFBIG")) {
		snap_take(&snap, "f", NULL);
		GIVES(fs->pwrite(h, c, 1, max), EFBIG);
		SAME(&snap);
	}
	if (row("offsets/pwrite of no bytes at the largest size: 0")) {
		snap_take(&snap, "f", NULL);
		EQ(fs->pwrite(h, c, 0, max < LLONG_MAX ? max : max - 1), 0);
		SAME(&snap);
	}
	if (row("offsets/pwrite of the last byte there is")) {
		char b = 0;

		EQ(fs->pwrite(h, "z", 1, max - 1), 1);
		EQ(size_of(h), max);
		EQ(fs->pread(h, &b, 1, max - 1), 1);
		EQ(b, 'z');
		EQ(fs->pread(h, &b, 1, max - 2), 1);
		EQ(b, 0);
	}
	if (row("offsets/pwrite across the largest size is short")) {
		EQ(fs->pwrite(h, c, 16, max - 7), 7);
		EQ(size_of(h), max);
	}
	if (row("offsets/pwritev across the largest size is short")) {
		EQ(fs->pwritev(h, iov, 2, max - 11), 11);
		EQ(size_of(h), max);
	}
	if (row("offsets/pread across the largest size is short"))
		EQ(fs->pread(h, c, 16, max - 7), 7);
	if (row("offsets/and back to nothing")) {
		OK(fs->ftruncate(h, 0));
		EQ(fs->pread(h, c, 16, 0), 0);
	}
	/* 32-bit edges. */
	for (i = 31; i < 44; i++) {
		off_t at = ((off_t)1 << i) - 4;
		char got[8] = "";

		if (!row("offsets/8 bytes around 2^%zu", i))
			continue;
		EQ(fs->pwrite(h, "abcdefgh", 8, at), 8);
		EQ(size_of(h), at + 8);
		EQ(fs->pread(h, got, 8, at), 8);
		WANT(!memcmp(got, "abcdefgh", 8));
		EQ(fs->pread(h, got, 8, at - 8), 8);
		WANT(!memcmp(got, "\0\0\0\0\0\0\0", 8));
		OK(fs->ftruncate(h, 0));
	}
	if (h >= 0)
		fs->close(h);
}

static volatile sig_atomic_t xfsz;

static void on_xfsz(int sig)
{
	xfsz++;
}

/* RLIMIT_FSIZE: the process' own limit, and a signal when it is met. */
static void limited(bool on)
{
	static struct rlimit old = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit lim;

	if (on) {
		getrlimit(RLIMIT_FSIZE, &old);
		lim = old;
		lim.rlim_cur = 100000;
		setrlimit(RLIMIT_FSIZE, &lim);
		xfsz = 0;
	} else if (live()) {
		setrlimit(RLIMIT_FSIZE, &old);
	}
}

/* The results go to a file, maybe: there is a limit only while a row's calls are made. */
static bool limited_row(const char *name)
{
	limited(false);
	if (!row("rlimit/%s", name))
		return false;
	limited(true);
	return true;
}

static void rlimits(void)
{
	struct snap snap;
	char buf[64];
	int h = -1;

	memset(buf, 'b', sizeof(buf));
	if (live()) {
		make_file("f", 5, 0644);
		h = open("f", O_RDWR);
		signal(SIGXFSZ, on_xfsz);
		limited(true);
	}
	if (limited_row("write up to it")) {
		EQ(sys(pwrite(h, buf, 64, 100000 - 64)), 64);
		EQ(xfsz, 0);
	}
	if (limited_row("write across it is short, without a signal")) {
		EQ(sys(pwrite(h, buf, 64, 100000 - 10)), 10);
		EQ(xfsz, 0);
	}
	if (limited_row("write at it: EFBIG and SIGXFSZ")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(pwrite(h, buf, 64, 100000)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
	}
	if (limited_row("write beyond it: EFBIG and SIGXFSZ")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(pwrite(h, buf, 64, 200000)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
	}
	if (limited_row("ftruncate beyond it: EFBIG and SIGXFSZ")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(ftruncate(h, 100001)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
	}
	if (limited_row("truncate beyond it: EFBIG and SIGXFSZ")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(truncate("f", 100001)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
	}
	if (limited_row("ftruncate to it")) {
		OK(sys(ftruncate(h, 100000)));
		EQ(xfsz, 0);
	}
	if (limited_row("fallocate beyond it: EFBIG and SIGXFSZ")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(fallocate(h, 0, 0, 100001)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
	}
	if (limited_row("O_APPEND at it: EFBIG and SIGXFSZ")) {
		int a = open("f", O_WRONLY | O_APPEND);

		snap_take(&snap, "f", NULL);
		GIVES(sys(write(a, buf, 1)), EFBIG);
		EQ(xfsz, 1);
		SAME(&snap);
		close(a);
	}
	if (limited_row("copy_file_range across it is short or fails")) {
		int src = open("src", O_RDWR | O_CREAT, 0644);
		off_t in = 0, out = 99990;
		ssize_t r;

		EQ(pwrite(src, buf, 64, 0), 64);
		r = sys(copy_file_range(src, &in, h, &out, 64, 0));
		EQ(r, 10);
		EQ(size_of(h), 100000);
		close(src);
	}
	if (limited_row("a file that is larger already can be written below it")) {
		limited(false);
		OK(sys(ftruncate(h, 300000)));
		limited(true);
		EQ(sys(pwrite(h, buf, 64, 50000)), 64);
	}
	if (limited_row("and cut shorter")) {
		OK(sys(ftruncate(h, 200000)));
		EQ(size_of(h), 200000);
	}
	if (limited_row("write of no bytes beyond it: 0")) {
		EQ(sys(pwrite(h, buf, 0, 150000)), 0);
		EQ(xfsz, 0);
	}
	limited(false);
	if (live()) {
		signal(SIGXFSZ, SIG_DFL);
		close(h);
	}
}

static void seeks(void)
{
	static const struct { const char *name; off_t at; int whence; off_t gives; int err; } t[] = {
		{ "SEEK_SET 0", 0, SEEK_SET, 0 }, { "SEEK_SET 3", 3, SEEK_SET, 3 },
		{ "SEEK_SET beyond the end", 1000000, SEEK_SET, 1000000 },
		{ "SEEK_SET 2^40", 1ll << 40, SEEK_SET, 1ll << 40 },
		{ "SEEK_SET -1", -1, SEEK_SET, 0, EINVAL }, { "SEEK_SET lowest", LLONG_MIN, SEEK_SET, 0, EINVAL },
		{ "SEEK_CUR 0", 0, SEEK_CUR, 100 }, { "SEEK_CUR 5", 5, SEEK_CUR, 105 },
		{ "SEEK_CUR -100", -100, SEEK_CUR, 0 }, { "SEEK_CUR -101", -101, SEEK_CUR, 0, EINVAL },
		{ "SEEK_CUR largest", LLONG_MAX, SEEK_CUR, 0, EINVAL },
		{ "SEEK_CUR lowest", LLONG_MIN, SEEK_CUR, 0, EINVAL },
		{ "SEEK_END 0", 0, SEEK_END, 200000 }, { "SEEK_END -1", -1, SEEK_END, 199999 },
		{ "SEEK_END 100", 100, SEEK_END, 200100 }, { "SEEK_END to 0", -200000, SEEK_END, 0 },
		{ "SEEK_END before 0", -200001, SEEK_END, 0, EINVAL },
		{ "SEEK_END largest", LLONG_MAX, SEEK_END, 0, EINVAL },
		{ "SEEK_DATA -1", -1, SEEK_DATA, 0, ENXIO }, { "SEEK_HOLE -1", -1, SEEK_HOLE, 0, ENXIO },
		{ "SEEK_DATA at the end", 200000, SEEK_DATA, 0, ENXIO },
		{ "SEEK_HOLE at the end", 200000, SEEK_HOLE, 0, ENXIO },
		{ "SEEK_DATA beyond the end", 200001, SEEK_DATA, 0, ENXIO },
		{ "SEEK_HOLE beyond the end", 1ll << 50, SEEK_HOLE, 0, ENXIO },
		{ "SEEK_DATA at 2^63 - 1", LLONG_MAX, SEEK_DATA, 0, ENXIO },
		{ "SEEK_DATA in data", 7, SEEK_DATA, 7 }, { "SEEK_HOLE without holes", 0, SEEK_HOLE, 200000 },
		{ "SEEK_HOLE in the last byte", 199999, SEEK_HOLE, 200000 },
		{ "SEEK_DATA in the last byte", 199999, SEEK_DATA, 199999 },
		{ "whence 5", 0, 5, 0, EINVAL }, { "whence 77", 0, 77, 0, EINVAL }, { "whence -1", 0, -1, 0, EINVAL },
	};
	size_t i;
	int h = -1;

	if (live()) {
		make_file("f", 200000, 0644);
		h = fs->open("f", O_RDWR, 0);
		/* It is on disk, or what is a hole may not have been decided. */
		OK(fs->fsync(h));
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		bool moves = t[i].whence == SEEK_SET || t[i].whence == SEEK_CUR ||
			     t[i].whence == SEEK_END;

		/* Files of libpvfs have no position. */
		if ((moves && !on_vfs()) || !row("lseek/%s: %s", t[i].name, err_name(t[i].err)))
			continue;
		if (on_vfs())
			OK(sys(lseek(h, 100, SEEK_SET)));
		if (t[i].err)
			GIVES(fs->lseek(h, t[i].at, t[i].whence), t[i].err);
		else
			EQ(fs->lseek(h, t[i].at, t[i].whence), t[i].gives);
		if (on_vfs())
			EQ(lseek(h, 0, SEEK_CUR), t[i].err ? 100 : t[i].gives);
		EQ(size_of(h), 200000);
	}
	if (row("lseek/SEEK_DATA of an empty file: ENXIO")) {
		int e = fs->open("empty", O_RDWR | O_CREAT, 0644);

		GIVES(fs->lseek(e, 0, SEEK_DATA), ENXIO);
		GIVES(fs->lseek(e, 0, SEEK_HOLE), ENXIO);
		fs->close(e);
	}
	if (row("lseek/SEEK_DATA of a file that is a hole: ENXIO")) {
		int e = fs->open("hole", O_RDWR | O_CREAT, 0644);

		OK(fs->ftruncate(e, 1 << 20));
		GIVES(fs->lseek(e, 0, SEEK_DATA), ENXIO);
		EQ(fs->lseek(e, 0, SEEK_HOLE), 0);
		EQ(fs->lseek(e, 77, SEEK_HOLE), 77);
		fs->close(e);
	}
	if (row("lseek/data, hole, data: found")) {
		int e = fs->open("mixed", O_RDWR | O_CREAT, 0644);
		off_t at;

		EQ(fs->pwrite(e, "first", 5, 0), 5);
		EQ(fs->pwrite(e, "second", 6, 1 << 20), 6);
		OK(fs->fsync(e));
		at = fs->lseek(e, 0, SEEK_HOLE);
		WANT(at >= 5 && at <= 1 << 20);
		at = fs->lseek(e, at, SEEK_DATA);
		WANT(at > 65536 && at <= 1 << 20);
		EQ(fs->lseek(e, 1 << 20, SEEK_HOLE), (1 << 20) + 6);
		fs->close(e);
	}
	if (!on_vfs())
		goto out;
	if (row("lseek/a directory: to its start")) {
		int d = open(".", O_RDONLY);

		EQ(sys(lseek(d, 0, SEEK_SET)), 0);
		GIVES(sys(lseek(d, -1, SEEK_SET)), EINVAL);
		close(d);
	}
	if (row("lseek/a fifo: ESPIPE")) {
		int e;

		make("fifo", T_FIFO);
		e = open("fifo", O_RDWR);
		GIVES(sys(lseek(e, 0, SEEK_SET)), ESPIPE);
		GIVES(sys(lseek(e, 0, SEEK_DATA)), ESPIPE);
		close(e);
	}
	if (row("lseek/no descriptor: EBADF"))
		GIVES(sys(lseek(-1, 0, SEEK_SET)), EBADF);
	if (row("lseek/read and write move the offset, pread and pwrite do not")) {
		char c[10];

		OK(sys(lseek(h, 10, SEEK_SET)));
		EQ(read(h, c, 10), 10);
		EQ(lseek(h, 0, SEEK_CUR), 20);
		EQ(write(h, c, 5), 5);
		EQ(lseek(h, 0, SEEK_CUR), 25);
		EQ(pread(h, c, 10, 0), 10);
		EQ(pwrite(h, c, 10, 0), 10);
		EQ(lseek(h, 0, SEEK_CUR), 25);
	}
	if (row("lseek/duplicates share the offset")) {
		int d = dup(h);

		OK(sys(lseek(d, 1234, SEEK_SET)));
		EQ(lseek(h, 0, SEEK_CUR), 1234);
		close(d);
	}
out:
	if (h >= 0)
		fs->close(h);
}

const struct table tables_limits[] = {
	{ "truncate", truncates },
	{ "offsets", offsets },
	{ "rlimit", rlimits, true },
	{ "lseek", seeks },
	{ NULL },
};
