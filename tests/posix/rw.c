// SPDX-License-Identifier: GPL-2.0-only
/*
 * rw.c - reading and writing: vectors, flags of preadv2 and pwritev2, O_APPEND, O_DIRECT, bad
 * buffers, and what is read of what was written, at every edge of blocks and stripe units.
 */
#include "conform.h"
#include <limits.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

static void fill(char *buf, size_t n, off_t at)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf[i] = 'A' + (at + i) * 11 % 57;
}

static off_t size_of(int h)
{
	struct stat st = { 0 };

	OK(fs->fstat(h, &st));
	return st.st_size;
}

/* Each write to an empty file: before it are zeros, after it nothing. */
static void edges(void)
{
	static const off_t at[] = { 0, 1, 511, 4095, 4096, 65535, 65536, 65537, 131071, 262143, 262144 };
	static const size_t sizes[] = { 1, 2, 511, 512, 513, 4096, 4097, 65535, 65536, 65537, 200000 };
	static char in[200000], out[500000];
	size_t a, n, i;
	int h = -1;

	if (live()) {
		h = fs->open("f", O_RDWR | O_CREAT, 0644);
		OK(h);
	}
	for (a = 0; a < ARRAY_SIZE(at); a++) {
		for (n = 0; n < ARRAY_SIZE(sizes); n++) {
			if (!row("rw/%zu bytes at %lld", sizes[n], (long long)at[a]))
				continue;
			fill(in, sizes[n], at[a]);
			OK(fs->ftruncate(h, 0));
			EQ(fs->pwrite(h, in, sizes[n], at[a]), sizes[n]);
			EQ(size_of(h), at[a] + (off_t)sizes[n]);
			memset(out, '!', sizeof(out));
			EQ(fs->pread(h, out, sizeof(out), 0), at[a] + (off_t)sizes[n]);
			for (i = 0; i < (size_t)at[a] && !out[i]; i++)
				;
			EQ(i, at[a]);
			WANT(!memcmp(out + at[a], in, sizes[n]));
		}
	}
	if (h >= 0)
		fs->close(h);
}

static void vectors(void)
{
	char a[16] = "0123456789abcdef", b[16] = "", c[16] = "";
	struct iovec iov[1025];
	struct snap snap;
	int h = -1, i;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR, 0);
		OK(h);
	}
	if (row("vectors/written and read in other pieces")) {
		iov[0].iov_base = a;
		iov[0].iov_len = 3;
		iov[1].iov_base = a + 3;
		iov[1].iov_len = 0;
		iov[2].iov_base = a + 3;
		iov[2].iov_len = 13;
		EQ(fs->pwritev(h, iov, 3, 100), 16);
		iov[0].iov_base = b;
		iov[0].iov_len = 10;
		iov[1].iov_base = c;
		iov[1].iov_len = 10;
		EQ(fs->preadv(h, iov, 2, 100), 16);
		WANT(!memcmp(b, a, 10) && !memcmp(c, a + 10, 6));
	}
	if (row("vectors/none: 0 bytes")) {
		snap_take(&snap, "f", NULL);
		EQ(fs->pwritev(h, iov, 0, 0), 0);
		EQ(fs->preadv(h, iov, 0, 0), 0);
		SAME(&snap);
	}
	if (row("vectors/1024 of a byte")) {
		for (i = 0; i < 1024; i++) {
			iov[i].iov_base = a;
			iov[i].iov_len = 1;
		}
		EQ(fs->pwritev(h, iov, 1024, 0), 1024);
	}
	if (row("vectors/1025: EINVAL")) {
		iov[1024] = iov[0];
		snap_take(&snap, "f", NULL);
		GIVES(fs->pwritev(h, iov, 1025, 0), EINVAL);
		GIVES(fs->preadv(h, iov, 1025, 0), EINVAL);
		SAME(&snap);
	}
	if (row("vectors/a number below 0: EINVAL")) {
		snap_take(&snap, "f", NULL);
		GIVES(fs->pwritev(h, iov, -1, 0), EINVAL);
		GIVES(fs->preadv(h, iov, -1, 0), EINVAL);
		SAME(&snap);
	}
	if (row("vectors/more than 2^63 bytes: EINVAL")) {
		iov[0].iov_len = (size_t)1 << 63;
		snap_take(&snap, "f", NULL);
		GIVES(fs->pwritev(h, iov, 1, 0), EINVAL);
		GIVES(fs->preadv(h, iov, 1, 0), EINVAL);
		SAME(&snap);
	}
	if (h >= 0)
		fs->close(h);
}

static void append(void)
{
	char c[32] = "";
	int h = -1, g = -1;

	if (live()) {
		make_file("f", 5, 0644);
		h = fs->open("f", O_RDWR | O_APPEND, 0);
		OK(h);
		g = fs->open("f", O_RDWR | O_APPEND, 0);
		OK(g);
	}
	if (row("append/pwrite goes to the end, whatever the offset")) {
		EQ(fs->pwrite(h, "abc", 3, 0), 3);
		EQ(size_of(h), 8);
		EQ(fs->pread(h, c, 32, 0), 8);
		WANT(!memcmp(c, "xxxxxabc", 8));
	}
	if (row("append/two descriptors take turns")) {
		EQ(fs->pwrite(g, "1", 1, 0), 1);
		EQ(fs->pwrite(h, "2", 1, 0), 1);
		EQ(fs->pwrite(g, "3", 1, 0), 1);
		EQ(fs->pread(h, c, 32, 8), 3);
		WANT(!memcmp(c, "123", 3));
	}
	if (row("append/after another has cut it")) {
		OK(fs->truncate("f", 2));
		EQ(fs->pwrite(h, "Z", 1, 0), 1);
		EQ(size_of(h), 3);
	}
	if (row("append/after another has made it longer")) {
		OK(fs->truncate("f", 100000));
		EQ(fs->pwrite(h, "Z", 1, 0), 1);
		EQ(size_of(h), 100001);
		EQ(fs->pread(h, c, 1, 100000), 1);
		EQ(c[0], 'Z');
	}
	if (row("append/no bytes")) {
		EQ(fs->pwrite(h, "", 0, 0), 0);
		EQ(size_of(h), 100001);
	}
	if (on_vfs()) {
		if (row("append/write leaves the offset at the end")) {
			OK(sys(lseek(h, 0, SEEK_SET)));
			EQ(write(h, "ab", 2), 2);
			EQ(lseek(h, 0, SEEK_CUR), 100003);
		}
		if (row("append/set and cleared by fcntl")) {
			int k = open("f", O_RDWR);

			OK(sys(ftruncate(k, 10)));
			OK(sys(fcntl(k, F_SETFL, O_APPEND)));
			EQ(pwrite(k, "x", 1, 0), 1);
			EQ(size_of(k), 11);
			OK(sys(fcntl(k, F_SETFL, 0)));
			EQ(pwrite(k, "x", 1, 0), 1);
			EQ(size_of(k), 11);
			close(k);
		}
		if (row("append/pwritev2 RWF_APPEND goes to the end once")) {
			struct iovec iov = { "pq", 2 };
			int k = open("f", O_RDWR);
			off_t size = size_of(k);

			EQ(sys(pwritev2(k, &iov, 1, 0, RWF_APPEND)), 2);
			EQ(size_of(k), size + 2);
			EQ(sys(pwritev2(k, &iov, 1, 0, 0)), 2);
			EQ(size_of(k), size + 2);
			close(k);
		}
	}
	if (live()) {
		fs->close(h);
		fs->close(g);
	}
}

static void flags(void)
{
	static const struct { const char *name; int flags; int rd, wr; } t[] = {
		{ "0", 0, 0, 0 }, { "RWF_DSYNC", RWF_DSYNC, -1, 0 }, { "RWF_SYNC", RWF_SYNC, -1, 0 },
		{ "RWF_HIPRI", RWF_HIPRI, 0, 0 },
		{ "RWF_DSYNC|RWF_APPEND", RWF_DSYNC | RWF_APPEND, -1, 0 },
		{ "an unknown one", 0x1000000, EOPNOTSUPP, EOPNOTSUPP },
		{ "a high one", INT_MIN, EOPNOTSUPP, EOPNOTSUPP },
	};
	char c[8] = "flags..";
	struct iovec iov = { c, 4 };
	struct snap snap;
	size_t i;
	int h = -1;

	if (live()) {
		make_file("f", 100, 0644);
		h = open("f", O_RDWR);
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (t[i].rd >= 0 && row("rwf/preadv2 %s: %s", t[i].name, err_name(t[i].rd)))
			GIVES(sys(preadv2(h, &iov, 1, 0, t[i].flags)), t[i].rd);
		if (row("rwf/pwritev2 %s: %s", t[i].name, err_name(t[i].wr))) {
			snap_take(&snap, "f", NULL);
			GIVES(sys(pwritev2(h, &iov, 1, 0, t[i].flags)), t[i].wr);
			if (t[i].wr)
				SAME(&snap);
		}
	}
	if (row("rwf/preadv2 at -1 reads at the descriptor's offset")) {
		OK(sys(lseek(h, 10, SEEK_SET)));
		EQ(sys(preadv2(h, &iov, 1, -1, 0)), 4);
		EQ(lseek(h, 0, SEEK_CUR), 14);
	}
	if (row("rwf/pwritev2 at -1 writes at the descriptor's offset")) {
		OK(sys(lseek(h, 20, SEEK_SET)));
		EQ(sys(pwritev2(h, &iov, 1, -1, 0)), 4);
		EQ(lseek(h, 0, SEEK_CUR), 24);
	}
	if (row("rwf/preadv2 at -2: EINVAL"))
		GIVES(sys(preadv2(h, &iov, 1, -2, 0)), EINVAL);
	if (row("rwf/RWF_NOWAIT gives bytes, EAGAIN or EOPNOTSUPP")) {
		int r = sys(preadv2(h, &iov, 1, 0, RWF_NOWAIT));

		WANT(r == 4 || r == -EAGAIN || r == -EOPNOTSUPP);
	}
	if (h >= 0)
		close(h);
}

static void buffers(void)
{
	char *none, c[8];
	struct iovec iov[2];
	struct snap snap;
	int h = -1, out;

	if (live()) {
		make_file("f", 20000, 0644);
		h = open("f", O_RDWR);
	}
	none = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(none + 4096, 4096);
	if (row("buffers/read to nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_pread64, h, (char *)8, 10, 0)), EFAULT);
	if (row("buffers/write from nowhere: EFAULT")) {
		snap_take(&snap, "f", NULL);
		GIVES(sys(syscall(SYS_pwrite64, h, (char *)8, 10, 0)), EFAULT);
		WANT(size_of(h) == 20000);
	}
	if (row("buffers/read to memory that ends is short or EFAULT")) {
		ssize_t r = sys(syscall(SYS_pread64, h, none + 4000, 200, 0));

		WANT(r == 96 || r == -EFAULT);
	}
	if (row("buffers/write from memory that ends is short or EFAULT")) {
		ssize_t r = sys(syscall(SYS_pwrite64, h, none + 4000, 200, 0));

		WANT((r > 0 && r <= 96) || r == -EFAULT);
		EQ(size_of(h), 20000);
	}
	if (row("buffers/vectors at nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_preadv, h, (void *)8, 2, 0, 0)), EFAULT);
	if (row("buffers/a second vector at nowhere is short or EFAULT")) {
		ssize_t r;

		iov[0].iov_base = c;
		iov[0].iov_len = 8;
		iov[1].iov_base = (void *)8;
		iov[1].iov_len = 8;
		r = sys(preadv(h, iov, 2, 0));
		WANT(r == 8 || r == -EFAULT);
	}
	if (row("buffers/stat to nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_newfstatat, AT_FDCWD, "f", (void *)8, 0)), EFAULT);
	if (row("buffers/a path at nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_openat, AT_FDCWD, (void *)8, O_RDONLY, 0)), EFAULT);
	if (row("buffers/readlink to nowhere: EFAULT")) {
		make("l", T_SYMFILE);
		GIVES(sys(syscall(SYS_readlinkat, AT_FDCWD, "l", (void *)8, 10)), EFAULT);
	}
	if (row("buffers/getdents to nowhere: EFAULT")) {
		out = open(".", O_RDONLY);
		GIVES(sys(syscall(SYS_getdents64, out, (void *)8, 4096)), EFAULT);
		close(out);
	}
	if (row("buffers/getdents with too small a buffer: EINVAL")) {
		out = open(".", O_RDONLY);
		GIVES(sys(syscall(SYS_getdents64, out, c, 8)), EINVAL);
		close(out);
	}
	if (row("buffers/setxattr of a value at nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_setxattr, "f", "user.a", (void *)8, 10, 0)), EFAULT);
	if (row("buffers/utimensat of times at nowhere: EFAULT"))
		GIVES(sys(syscall(SYS_utimensat, AT_FDCWD, "f", (void *)8, 0)), EFAULT);
	if (row("buffers/sendfile from it")) {
		off_t at = 100;

		out = open("out", O_RDWR | O_CREAT, 0644);
		EQ(sys(sendfile(out, h, &at, 5000)), 5000);
		EQ(at, 5100);
		EQ(size_of(out), 5000);
		close(out);
	}
	if (row("buffers/sendfile to one open O_APPEND: EINVAL")) {
		out = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
		GIVES(sys(sendfile(out, h, NULL, 10)), EINVAL);
		close(out);
	}
	munmap(none, 4096);
	if (h >= 0)
		close(h);
}

/*
 * O_DIRECT: what is aligned to 4096 works everywhere; what is not is refused or works, and is right
 * if it does.
 */
static void direct(void)
{
	static const struct { off_t at; size_t n; } t[] = {
		{ 0, 4096 }, { 4096, 4096 }, { 0, 65536 }, { 65536, 65536 }, { 61440, 8192 }, { 0, 262144 },
		{ 8192, 262144 },
	};
	char *in = NULL, *out = NULL;
	int h = -1;
	size_t i;

	if (live()) {
		in = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		out = in + (1 << 19);
		h = open("f", O_RDWR | O_CREAT | O_DIRECT, 0644);
		OK(sys(h));
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (row("direct/%zu bytes at %lld", t[i].n, (long long)t[i].at)) {
			fill(in, t[i].n, t[i].at);
			OK(sys(ftruncate(h, 0)));
			EQ(sys(pwrite(h, in, t[i].n, t[i].at)), t[i].n);
			EQ(size_of(h), t[i].at + (off_t)t[i].n);
			EQ(sys(pread(h, out, t[i].n, t[i].at)), t[i].n);
			WANT(!memcmp(in, out, t[i].n));
		}
		if (row("direct/%zu bytes at %lld are seen by a read through the cache", t[i].n, (long long)t[i].at)) {
			int g = open("f", O_RDWR);

			fill(in, t[i].n, t[i].at + 3);
			EQ(sys(pread(g, out, t[i].n, t[i].at)), t[i].n);
			EQ(sys(pwrite(h, in, t[i].n, t[i].at)), t[i].n);
			EQ(sys(pread(g, out, t[i].n, t[i].at)), t[i].n);
			WANT(!memcmp(in, out, t[i].n));
			close(g);
		}
	}
	if (row("direct/a read at the end is short")) {
		OK(sys(ftruncate(h, 5000)));
		EQ(sys(pread(h, out, 8192, 0)), 5000);
		EQ(sys(pread(h, out, 8192, 8192)), 0);
	}
	if (row("direct/what is not aligned is right or EINVAL")) {
		ssize_t r;

		OK(sys(ftruncate(h, 0)));
		r = sys(pwrite(h, "odd", 3, 1));
		WANT(r == 3 || r == -EINVAL);
		EQ(size_of(h), r == 3 ? 4 : 0);
	}
	if (live()) {
		munmap(in, 1 << 20);
		close(h);
	}
}

const struct table tables_rw[] = {
	{ "rw", edges },
	{ "vectors", vectors },
	{ "append", append },
	{ "rwf", flags, true },
	{ "buffers", buffers, true },
	{ "direct", direct, true },
	{ NULL },
};
