// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_data.c - checks of what is in files: every way to read and write, holes, ends, sizes, times
 * of writing.
 *
 * Offsets and lengths are chosen around the edges of pages, stripe units and rounds of units.
 */
#include "ops.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>

static const off_t edges[] = {
	0, 1, 4095, 4096, 4097, UNIT - 1, UNIT, UNIT + 1, 2 * UNIT - 5, ROUND - 1, ROUND, ROUND + 1,
	ROUND + UNIT, 1048575, 1048576, 1048577,
};
static const size_t lengths[] = { 1, 7, 4096, UNIT - 1, UNIT, UNIT + 1, ROUND, 300001, 1048579 };

#define N(a) (sizeof(a) / sizeof(*(a)))
#define MODEL (4u << 20)

/* What a file should hold, beside the file. */
struct model {
	unsigned char *want, *got;
	size_t size;
	int fd;
};

static void model_open(struct model *m, const char *path, int flags)
{
	m->fd = ops_open(path, O_RDWR | O_CREAT | flags, 0644);
	/* O_DIRECT wants aligned memory. */
	WANT(!posix_memalign((void **)&m->want, 4096, MODEL));
	WANT(!posix_memalign((void **)&m->got, 4096, MODEL));
	memset(m->want, 0, MODEL);
	m->size = 0;
}

static void model_write(struct model *m, off_t off, size_t len, uint32_t seed)
{
	ops_fill(m->want + off, len, off, seed);
	ops_pwrite(m->fd, m->want + off, len, off);
	if (off + len > m->size)
		m->size = off + len;
}

static void model_truncate(struct model *m, size_t size)
{
	OK(ftruncate(m->fd, size));
	if (size < m->size)
		memset(m->want + size, 0, m->size - size);
	m->size = size;
}

/* Reads a range in one call; compares, the end of the file included. */
static void model_read(struct model *m, off_t off, size_t len)
{
	size_t want = (size_t)off >= m->size ? 0 : m->size - off < len ? m->size - off : len, i;
	ssize_t r;

	memset(m->got, 0xa5, len);
	r = pread(m->fd, m->got, len, off);
	if (r < 0 || (size_t)r != want)
		FAIL("read of %zu at %lld, file of %zu, gave %zd (%s), should be %zu", len, (long long)off, m->size,
		     r, strerror(errno), want);
	for (i = 0; i < want; i++)
		if (m->got[i] != m->want[off + i])
			FAIL("read of %zu at %lld: byte %zu is %#x, should be %#x", len, (long long)off, i,
			     m->got[i], m->want[off + i]);
}

static void model_check(struct model *m)
{
	struct stat st;

	OK(fstat(m->fd, &st));
	EQ(st.st_size, m->size);
	model_read(m, 0, MODEL);
}

static void all_edges(int flags, bool aligned)
{
	struct model m;
	uint32_t seed = 0;
	size_t i, j;

	model_open(&m, "f", flags);
	for (i = 0; i < N(edges); i++) {
		if (aligned && edges[i] % 4096)
			continue;
		for (j = 0; j < N(lengths); j++) {
			if (aligned && lengths[j] % 4096)
				continue;
			model_write(&m, edges[i], lengths[j], ++seed);
			model_read(&m, edges[i], lengths[j]);
		}
		model_check(&m);
	}
	/* And every read across the file that these make. */
	for (i = 0; i < N(edges); i++)
		for (j = 0; j < N(lengths); j++)
			if (!aligned || !(edges[i] % 4096 || lengths[j] % 4096))
				model_read(&m, edges[i], lengths[j]);
	OK(close(m.fd));
}

static void buffered_edges(void)
{
	all_edges(0, false);
}

static void direct_edges(void)
{
	all_edges(O_DIRECT, true);
}

/* Direct transfers that are not aligned: right, or refused, never wrong. */
static void direct_unaligned(void)
{
	unsigned char *want = malloc(ROUND), *got = malloc(ROUND);
	int fd = ops_open("f", O_RDWR | O_CREAT | O_DIRECT, 0644);
	ssize_t r;

	ops_fill(want, ROUND, 0, 1);
	r = pwrite(fd, want + 1, 100001, 4097);
	if (r < 0) {
		EQ(errno, EINVAL);
		return;
	}
	EQ(r, 100001);
	EQ(pread(fd, got + 3, 100001, 4097), 100001);
	WANT(!memcmp(got + 3, want + 1, 100001));
	EQ(pread(fd, got, 4097, 0), 4097);
	EQ(got[0] | got[4096], 0);
}

static void direct_and_buffered(void)
{
	int d = ops_open("f", O_RDWR | O_CREAT | O_DIRECT, 0644), b = ops_open("f", O_RDWR, 0);
	char *buf, *want;
	int i;

	WANT(!posix_memalign((void **)&buf, 4096, ROUND));
	want = malloc(ROUND);
	for (i = 0; i < 8; i++) {
		ops_fill(want, ROUND, 0, i);
		memcpy(buf, want, ROUND);
		ops_pwrite(i & 1 ? d : b, buf, ROUND, 0);
		memset(buf, 0, ROUND);
		EQ(ops_pread(i & 1 ? b : d, buf, ROUND, 0), ROUND);
		WANT(!memcmp(buf, want, ROUND));
	}
}

static void holes(void)
{
	struct model m;
	size_t i;

	model_open(&m, "f", 0);
	for (i = 1; i < N(edges); i += 2) {
		model_truncate(&m, 0);
		model_write(&m, edges[i], 3, i);
		model_check(&m);
		model_write(&m, edges[i] + ROUND + 17, UNIT, i);
		model_check(&m);
	}
	/* lseek may know the holes or not, but not lie. */
	EQ(lseek(m.fd, 0, SEEK_END), m.size);
	WANT(lseek(m.fd, m.size - 1, SEEK_DATA) == (off_t)m.size - 1);
	WANT(lseek(m.fd, m.size - 1, SEEK_HOLE) == (off_t)m.size);
	ERR(lseek(m.fd, m.size, SEEK_DATA), ENXIO);
}

static void ends(void)
{
	size_t i;

	for (i = 0; i < N(edges); i++) {
		struct model m;
		char name[32];

		snprintf(name, sizeof(name), "f%zu", i);
		model_open(&m, name, 0);
		if (edges[i])
			model_write(&m, 0, edges[i], i);
		model_read(&m, 0, MODEL);
		model_read(&m, edges[i], 1);
		model_read(&m, edges[i] + 1, ROUND);
		model_read(&m, edges[i] + ROUND, ROUND);
		if (edges[i]) {
			model_read(&m, edges[i] - 1, 2);
			model_read(&m, edges[i] - 1, ROUND);
		}
		OK(close(m.fd));
		free(m.want);
		free(m.got);
	}
}

static void truncates(void)
{
	struct model m;
	size_t i;

	model_open(&m, "f", 0);
	for (i = 0; i < N(edges); i++) {
		model_truncate(&m, 0);
		model_write(&m, 0, 3 * ROUND + 5, i);
		model_truncate(&m, edges[i]);
		model_check(&m);
		/* What was cut off does not come back. */
		model_truncate(&m, 3 * ROUND + 4099);
		model_check(&m);
		model_write(&m, 2 * ROUND + UNIT - 2, 4, i);
		model_check(&m);
	}
	OK(close(m.fd));
	OK(truncate("f", 12345));
	m.fd = ops_open("f", O_RDWR, 0);
	memset(m.want + 12345, 0, MODEL - 12345);
	m.size = 12345;
	model_check(&m);
	ERR(ftruncate(m.fd, -1), EINVAL);
	ERR(truncate("none", 0), ENOENT);
	ERR(truncate(".", 0), EISDIR);
}

/* Some hundred random operations against the model. */
static void random_ops(int flags)
{
	struct model m;
	int i;

	model_open(&m, "f", flags);
	for (i = 0; i < 250; i++) {
		uint32_t r = ops_random();
		size_t len = (flags ? 4096 : 1) + ops_random() % (r & 64 ? 700000 : 9000);
		off_t off = ops_random() % (MODEL - len);

		if (flags) {
			len &= ~4095ul;
			off &= ~4095ul;
		}
		switch (r % 8) {
		case 0:
			off = ops_random() % (2 * ROUND);
			model_truncate(&m, flags ? off & ~4095ul : (size_t)off);
			break;
		case 1: case 2: case 3:
			model_write(&m, off, len, r);
			break;
		default:
			model_read(&m, off, len);
		}
	}
	model_check(&m);
}

static void random_buffered(void)
{
	random_ops(0);
}

static void random_direct(void)
{
	random_ops(O_DIRECT);
}

static void vectors(void)
{
	static const size_t cut[] = { 1, 65535, 0, 4096, 3, 131072, 17, 70000, 5, 1 };
	struct iovec iov[N(cut)], big[700];
	size_t total = 0, i;
	char *want, *got;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);

	for (i = 0; i < N(cut); i++)
		total += cut[i];
	want = malloc(total);
	got = malloc(total);
	ops_fill(want, total, 0, 1);
	for (i = 0, total = 0; i < N(cut); total += cut[i++])
		iov[i] = (struct iovec){ want + total, cut[i] };
	EQ(writev(fd, iov, N(cut)), total);
	EQ(pwritev(fd, iov, N(cut), UNIT - 3), total);
	for (i = 0, total = 0; i < N(cut); total += cut[i++])
		iov[i].iov_base = got + total;
	EQ(preadv(fd, iov, N(cut), UNIT - 3), total);
	WANT(!memcmp(want, got, total));
	EQ(lseek(fd, 0, SEEK_SET), 0);
	EQ(readv(fd, iov, N(cut)), total);
	WANT(!memcmp(want, got, UNIT - 3));
	EQ(lseek(fd, 0, SEEK_CUR), total);
	/* Many small pieces, one transfer. */
	for (i = 0; i < N(big); i++)
		big[i] = (struct iovec){ want + i * 301, 301 };
	EQ(pwritev(fd, big, N(big), 99), 301 * N(big));
	EQ(ops_pread(fd, got, 301 * N(big), 99), 301 * N(big));
	WANT(!memcmp(want, got, 301 * N(big)));
}

static void append(void)
{
	int a = ops_open("f", O_WRONLY | O_CREAT | O_APPEND, 0644), b = ops_open("f", O_RDWR | O_APPEND, 0);
	char *buf = malloc(ROUND), *got = malloc(ROUND);
	size_t at = 0, i;

	ops_fill(buf, ROUND, 0, 7);
	for (i = 0; i < 40; i++) {
		size_t n = 1 + ops_random() % 9000;

		EQ(write(i & 1 ? a : b, buf + at, n), n);
		at += n;
		EQ(lseek(i & 1 ? a : b, 0, SEEK_CUR), at);
	}
	EQ(ops_pread(b, got, ROUND, 0), at);
	WANT(!memcmp(buf, got, at));
	/* As Linux has it, an offset does not matter then. */
	EQ(pwrite(a, "xyz", 3, 0), 3);
	EQ(ops_pread(b, got, ROUND, 0), at + 3);
	WANT(!memcmp(buf, got, at) && !memcmp(got + at, "xyz", 3));
}

static void o_trunc(void)
{
	int fd, old;

	ops_make("f", ROUND + 9, 1);
	old = ops_open("f", O_RDONLY, 0);
	fd = ops_open("f", O_WRONLY | O_TRUNC, 0);
	EQ(lseek(old, 0, SEEK_END), 0);
	ops_pwrite(fd, "abc", 3, UNIT + 1);
	EQ(lseek(old, 0, SEEK_END), UNIT + 4);
	OK(close(fd));
	fd = ops_open("f", O_RDONLY | O_CREAT | O_TRUNC, 0644);
	EQ(lseek(fd, 0, SEEK_END), 0);
}

static void syncs(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), s = ops_open("f", O_WRONLY | O_SYNC, 0);
	int d = ops_open("f", O_WRONLY | O_DSYNC, 0), dir = ops_open(".", O_RDONLY | O_DIRECTORY, 0);
	char *buf = malloc(ROUND);

	ops_fill(buf, ROUND, 0, 3);
	OK(fsync(fd));
	ops_pwrite(fd, buf, ROUND, 0);
	OK(fsync(fd));
	OK(fdatasync(fd));
	ops_pwrite(s, buf, 70000, 1);
	ops_pwrite(d, buf, 10, UNIT);
	OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	OK(syncfs(fd));
	OK(fsync(dir));
}

/* Advice changes no byte, and what is no advice is refused. */
static void advice(void)
{
	static const int kinds[] = {
		POSIX_FADV_NORMAL, POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM, POSIX_FADV_NOREUSE,
		POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED,
	};
	int fd, pipes[2];
	size_t i;

	ops_make("f", ROUND + 5, 1);
	fd = ops_open("f", O_RDWR, 0);
	for (i = 0; i < N(kinds); i++) {
		EQ(posix_fadvise(fd, 0, 0, kinds[i]), 0);
		EQ(posix_fadvise(fd, UNIT - 1, ROUND, kinds[i]), 0);
		ops_verify("f", ROUND + 5, 1);
	}
	OK(readahead(fd, 10, ROUND));
	ops_verify("f", ROUND + 5, 1);
	EQ(posix_fadvise(fd, 0, 0, 100), EINVAL);
	EQ(posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL), EINVAL);
	OK(pipe(pipes));
	EQ(posix_fadvise(pipes[0], 0, 0, POSIX_FADV_NORMAL), ESPIPE);
}

static void bigger_than_4g(void)
{
	static const off_t at[] = { 4294967295ll, 5368709121ll, 1099511627777ll, 8796093022207ll };
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	char buf[200000], got[200000];
	struct stat st;
	size_t i;

	for (i = 0; i < N(at); i++) {
		ops_fill(buf, sizeof(buf), at[i], i);
		ops_pwrite(fd, buf, sizeof(buf), at[i]);
		OK(fstat(fd, &st));
		EQ(st.st_size, at[i] + (off_t)sizeof(buf));
	}
	for (i = 0; i < N(at); i++) {
		ops_fill(buf, sizeof(buf), at[i], i);
		EQ(ops_pread(fd, got, sizeof(got), at[i]), sizeof(got));
		WANT(!memcmp(buf, got, sizeof(got)));
	}
	EQ(ops_pread(fd, got, 10, 3000000000ll), 10);
	WANT(!memcmp(got, "\0\0\0\0\0\0\0\0\0\0", 10));
	OK(ftruncate(fd, 5000000000ll));
	OK(fstat(fd, &st));
	EQ(st.st_size, 5000000000ll);
	EQ(pread(fd, got, 10, 5000000000ll - 4), 4);
}

static void limits(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), w = ops_open("f", O_WRONLY, 0), r = ops_open("f", O_RDONLY, 0);
	char *bad = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c = 'x', *half;

	EQ(write(fd, "", 0), 0);
	EQ(read(fd, &c, 0), 0);
	ERR(pwrite(fd, &c, 1, -1), EINVAL);
	ERR(pread(fd, &c, 1, -1), EINVAL);
	WANT(pwrite(fd, &c, 1, 0x7fffffffffffffffll) < 0 && (errno == EFBIG || errno == EINVAL));
	ERR(read(w, &c, 1), EBADF);
	ERR(write(r, &c, 1), EBADF);
	ERR(ftruncate(r, 0), EINVAL);
	ops_pwrite(fd, "hello", 5, 0);
	ERR(write(fd, bad, 4096), EFAULT);
	ERR(pread(fd, bad, 4096, 0), EFAULT);
	/*
	 * A buffer that ends in nothing: what fits is moved, or nothing, and the file is not
	 * harmed.
	 */
	half = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	OK(mprotect(half + 4096, 4096, PROT_NONE));
	memset(half, 'h', 4096);
	WANT(pwrite(fd, half, 8192, 0) == 4096 || errno == EFAULT);
	EQ(pread(fd, &c, 1, 5000), 0);
	/* The same in the middle of a page of the file that is not there yet. */
	OK(ftruncate(fd, 4096));
	WANT(pwrite(fd, half + 3996, 4096, 4096) == 100 || errno == EFAULT);
	EQ(pread(fd, &c, 1, 4200), 0);
	ERR(lseek(fd, -1, SEEK_SET), EINVAL);
}

static void mmaps(void)
{
	size_t n = 2 * ROUND + 1000, i;
	unsigned char *want = malloc(n), *p, *q;
	int fd;

	ops_make("f", n, 5);
	ops_fill(want, n, 0, 5);
	fd = ops_open("f", O_RDONLY, 0);
	p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	WANT(p != MAP_FAILED);
	WANT(!memcmp(p, want, n));
	/* To the end of the last page there are zeros. */
	for (i = n; i % 4096; i++)
		EQ(p[i], 0);
	q = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	WANT(q != MAP_FAILED);
	for (i = 0; i < n; i += 4096)
		q[i] ^= 0xff;
	WANT(!memcmp(p, want, n));
	for (i = 0; i < n; i += 4096)
		EQ(q[i], want[i] ^ 0xff);
	OK(munmap(q, n));
	ops_verify("f", n, 5);
	q = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, UNIT);
	WANT(!memcmp(q, want + UNIT, 4096));
	OK(madvise(p, n, MADV_WILLNEED));
	OK(close(fd));
	WANT(!memcmp(p, want, n));
	OK(munmap(p, n));
}

/* A map made after a write shows it, though pages were cached before. */
static void mmap_after_write(void)
{
	unsigned char *p, *want = malloc(ROUND);
	int i, fd = ops_open("f", O_RDWR | O_CREAT, 0644);

	for (i = 0; i < 5; i++) {
		ops_fill(want, ROUND, 0, i);
		ops_pwrite(fd, want, ROUND, 0);
		p = mmap(NULL, ROUND, PROT_READ, MAP_PRIVATE, fd, 0);
		WANT(p != MAP_FAILED);
		WANT(!memcmp(p, want, ROUND));
		OK(munmap(p, ROUND));
	}
}

static void sendfiles(void)
{
	size_t n = ROUND + 4321, done = 0;
	int in, out, sv[2];
	off_t off = 0;
	ssize_t r;
	char *buf = malloc(n), *want = malloc(n);
	pid_t pid;

	ops_make("f", n, 6);
	ops_fill(want, n, 0, 6);
	in = ops_open("f", O_RDONLY, 0);
	out = ops_open("g", O_WRONLY | O_CREAT, 0644);
	while ((r = sendfile(out, in, &off, n)) > 0)
		;
	OK(r);
	EQ(off, n);
	ops_verify("g", n, 6);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	pid = fork();
	OK(pid);
	if (!pid) {
		off = 0;
		while (sendfile(sv[0], in, &off, n) > 0)
			;
		_exit(0);
	}
	close(sv[0]);
	while ((r = read(sv[1], buf + done, n - done)) > 0)
		done += r;
	EQ(done, n);
	WANT(!memcmp(buf, want, n));
}

static void splices(void)
{
	size_t n = ROUND + 4321, left = n;
	loff_t from = 0, to = 0;
	int in, out, p[2];

	ops_make("f", n, 8);
	in = ops_open("f", O_RDONLY, 0);
	out = ops_open("g", O_WRONLY | O_CREAT, 0644);
	OK(pipe(p));
	while (left) {
		ssize_t r = splice(in, &from, p[1], NULL, 30000, 0), w;

		OK(r);
		WANT(r > 0);
		left -= r;
		while (r > 0) {
			w = splice(p[0], NULL, out, &to, r, 0);
			OK(w);
			r -= w;
		}
	}
	ops_verify("g", n, 8);
	/* Between files of one file system, as cp and rsync may. */
	out = ops_open("h", O_WRONLY | O_CREAT, 0644);
	from = to = 0;
	for (left = n; left;) {
		ssize_t r = copy_file_range(in, &from, out, &to, left, 0);

		if (r < 0 && (errno == EXDEV || errno == EOPNOTSUPP))
			return;
		OK(r);
		WANT(r > 0);
		left -= r;
	}
	ops_verify("h", n, 8);
}

struct piece {
	int fd, index;
};

static void *write_pieces(void *arg)
{
	struct piece *p = arg;
	char buf[5000];
	int i;

	for (i = p->index; i < 200; i += 4) {
		ops_fill(buf, sizeof(buf), (uint64_t)i * sizeof(buf), 11);
		ops_pwrite(p->fd, buf, sizeof(buf), (off_t)i * sizeof(buf));
	}
	return NULL;
}

/* Four threads, interleaved pieces that share pages and stripe units: nothing is lost. */
static void threads(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), i;
	struct piece p[4];
	pthread_t t[4];

	for (i = 0; i < 4; i++) {
		p[i] = (struct piece){ fd, i };
		WANT(!pthread_create(&t[i], NULL, write_pieces, &p[i]));
	}
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	ops_verify("f", 200 * 5000, 11);
}

/* A process' offset is its own, shared by dup and fork. */
static void offsets(void)
{
	int a, b, c;
	char buf[10];

	ops_make("f", 100, 0);
	a = ops_open("f", O_RDONLY, 0);
	b = dup(a);
	c = ops_open("f", O_RDONLY, 0);
	EQ(read(a, buf, 10), 10);
	EQ(lseek(b, 0, SEEK_CUR), 10);
	EQ(lseek(c, 0, SEEK_CUR), 0);
	EQ(lseek(a, -5, SEEK_END), 95);
	EQ(read(b, buf, 10), 5);
	EQ(read(b, buf, 10), 0);
}

static void fs_numbers(void)
{
	struct statfs s;
	struct stat st;

	OK(statfs(".", &s));
	WANT(s.f_bsize > 0 && s.f_blocks > 0 && s.f_bfree <= s.f_blocks && s.f_bavail <= s.f_bfree);
	EQ(s.f_namelen, 255);
	ops_make("f", ROUND, 1);
	OK(stat("f", &st));
	WANT(st.st_blksize >= 4096);
	/* Written bytes take room. */
	WANT(st.st_blocks * 512 >= ROUND / 2 && st.st_blocks * 512 <= 4 * ROUND);
	OK(stat(".", &st));
	WANT(S_ISDIR(st.st_mode));
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* What writing, truncating and reading do to the times. */
static void write_times(void)
{
	struct stat a, b;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	char c;

	OK(fstat(fd, &a));
	usleep(20000);
	ops_pwrite(fd, "x", 1, 0);
	OK(fstat(fd, &b));
	WANT(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
	usleep(20000);
	EQ(pread(fd, &c, 1, 0), 1);
	OK(stat("f", &a));
	WANT(!later(a.st_mtim, b.st_mtim) && !later(b.st_mtim, a.st_mtim));
	OK(ftruncate(fd, 10));
	OK(close(fd));
	OK(stat("f", &b));
	WANT(later(b.st_mtim, a.st_mtim));
	/* Closed: the times stand still. */
	usleep(20000);
	OK(stat("f", &a));
	WANT(!memcmp(&a.st_mtim, &b.st_mtim, sizeof(a.st_mtim)));
}

/* cp -p and tar set the time while the file is open, or just after: it stays. */
static void set_times_while_open(void)
{
	struct timespec t[2] = { { 1000000000, 123456789 }, { 1100000000, 987654321 } };
	int fd = ops_open("f", O_WRONLY | O_CREAT, 0644);
	struct stat st;

	ops_pwrite(fd, "data", 4, 0);
	OK(futimens(fd, t));
	OK(close(fd));
	OK(stat("f", &st));
	EQ(st.st_mtim.tv_sec, 1100000000);
	EQ(st.st_mtim.tv_nsec, 987654321);
	EQ(st.st_atim.tv_sec, 1000000000);
	EQ(st.st_atim.tv_nsec, 123456789);
	EQ(st.st_size, 4);
}

const struct ops_check ops_data[] = {
	{ "buffered read and write at every edge", buffered_edges },
	{ "direct read and write at every edge", direct_edges },
	{ "direct transfers that are not aligned", direct_unaligned },
	{ "direct and buffered see each other", direct_and_buffered },
	{ "holes read as zeros", holes },
	{ "ends of files at every edge", ends },
	{ "truncate down and up at every edge", truncates },
	{ "random buffered operations", random_buffered },
	{ "random direct operations", random_direct },
	{ "readv, writev, preadv, pwritev", vectors },
	{ "append", append },
	{ "O_TRUNC", o_trunc },
	{ "fsync, fdatasync, O_SYNC, O_DSYNC, syncfs", syncs },
	{ "posix_fadvise, readahead", advice },
	{ "files over 4 GiB, sparse", bigger_than_4g },
	{ "offsets and buffers that are out of bounds", limits },
	{ "mmap, private and shared for reading", mmaps },
	{ "mmap after write", mmap_after_write },
	{ "sendfile to file and socket", sendfiles },
	{ "splice and copy_file_range", splices },
	{ "threads that write interleaved pieces", threads },
	{ "file offsets", offsets },
	{ "statfs, st_blksize, st_blocks", fs_numbers },
	{ "times of writes", write_times },
	{ "times set while the file is open", set_times_while_open },
	{ NULL, NULL }
};
