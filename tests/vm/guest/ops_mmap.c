// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_mmap.c - shared writable mappings: with read and write on the same mount, with truncation,
 * and what another mount sees after msync, munmap and close.
 */
#include "ops.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096

static char *map(int fd, size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		FAIL("mmap of %zu bytes: %s", n, strerror(errno));
	return p;
}

static void with_read_and_write(void)
{
	size_t n = ROUND + 3000;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	char *want = malloc(n), *got = malloc(n), *p;

	ops_fill(want, n, 0, 1);
	ops_pwrite(fd, want, n, 0);
	p = map(fd, n);
	WANT(!memcmp(p, want, n));
	/*
	 * What is stored is read, what is written is loaded, each in the middle of a page of the
	 * other's.
	 */
	memset(p + 100, 'm', 5000);
	memset(want + 100, 'm', 5000);
	EQ(ops_pread(fd, got, n, 0), n);
	WANT(!memcmp(got, want, n));
	memset(want + 5000, 'w', 200);
	ops_pwrite(fd, want + 5000, 200, 5000);
	WANT(!memcmp(p, want, n));
	p[n - 1] = want[n - 1] = 'e';
	p[UNIT - 1] = want[UNIT - 1] = 'u';
	p[UNIT] = want[UNIT] = 'v';
	OK(munmap(p, n));
	OK(close(fd));
	fd = ops_open("f", O_RDONLY, 0);
	EQ(ops_pread(fd, got, n, 0), n);
	WANT(!memcmp(got, want, n));
}

/* The memory of a transfer is a mapping of the same file. */
static void to_itself(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	char *p, want[4 * PAGE];

	OK(ftruncate(fd, sizeof(want)));
	p = map(fd, sizeof(want));
	ops_fill(want, PAGE, 0, 5);
	memcpy(p, want, PAGE);
	EQ(pwrite(fd, p, PAGE, 2 * PAGE), PAGE);
	EQ(pwrite(fd, p, PAGE, 0), PAGE);
	EQ(pread(fd, p + PAGE, PAGE, 2 * PAGE), PAGE);
	memcpy(want + PAGE, want, PAGE);
	memcpy(want + 2 * PAGE, want, PAGE);
	memset(want + 3 * PAGE, 0, PAGE);
	WANT(!memcmp(p, want, sizeof(want)));
	OK(msync(p, sizeof(want), MS_SYNC));
	WANT(!memcmp(p, want, sizeof(want)));
}

static sigjmp_buf bus;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

static void behind_the_end(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), i;
	char c[2 * PAGE];
	char *volatile p;
	struct stat st;

	ops_pwrite(fd, "0123456789", 10, 0);
	p = map(fd, 2 * PAGE);
	signal(SIGBUS, on_bus);
	if (!sigsetjmp(bus, 1)) {
		p[PAGE] = 1;
		FAIL("storing behind the last page is no error");
	}
	/* In the last page it is none, but it is not part of the file either, now or later. */
	p[5] = 'x';
	p[10] = p[PAGE - 1] = 'y';
	OK(msync(p, PAGE, MS_SYNC));
	OK(fstat(fd, &st));
	EQ(st.st_size, 10);
	p[11] = 'z';
	OK(ftruncate(fd, PAGE));
	EQ(ops_pread(fd, c, sizeof(c), 0), PAGE);
	WANT(!memcmp(c, "01234x6789", 10));
	for (i = 10; i < PAGE; i++)
		if (c[i] || p[i])
			FAIL("byte %d is %d, mapped %d, should be 0", i, c[i], p[i]);
	OK(ftruncate(fd, 10));
	p[12] = 'z';
	ops_pwrite(fd, "!", 1, 100);
	EQ(ops_pread(fd, c, sizeof(c), 0), 101);
	for (i = 10; i < 100; i++)
		if (c[i] || p[i])
			FAIL("byte %d is %d, mapped %d, should be 0", i, c[i], p[i]);
	EQ(p[100], '!');
}

static void protections(void)
{
	int rw = ops_open("f", O_RDWR | O_CREAT, 0644), ro;
	char *p, c;

	OK(ftruncate(rw, PAGE));
	ro = ops_open("f", O_RDONLY, 0);
	WANT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0) == MAP_FAILED && errno == EACCES);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0);
	WANT(p != MAP_FAILED);
	ERR(mprotect(p, PAGE, PROT_READ | PROT_WRITE), EACCES);
	OK(munmap(p, PAGE));
	/* Mapped for reading from a descriptor that may write: later it may, too. */
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, rw, 0);
	WANT(p != MAP_FAILED);
	EQ(p[7], 0);
	OK(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	p[7] = 'q';
	OK(close(rw));		/* the mapping stays */
	p[8] = 'r';
	OK(munmap(p, PAGE));
	EQ(pread(ro, &c, 1, 7), 1);
	EQ(c, 'q');
	EQ(pread(ro, &c, 1, 8), 1);
	EQ(c, 'r');
	/* A private one changes nothing. */
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0);
	WANT(p != MAP_FAILED);
	p[7] = 's';
	EQ(pread(ro, &c, 1, 7), 1);
	EQ(c, 'q');
}

/* A process that is killed leaves what it has stored. */
static void killed(void)
{
	size_t n = 2 << 20, i;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), status;
	pid_t pid;
	char *p;

	OK(ftruncate(fd, n));
	pid = fork();
	OK(pid);
	if (!pid) {
		p = map(fd, n);
		for (i = 0; i < n; i += 512)
			p[i] = 'k';
		raise(SIGKILL);
	}
	OK(waitpid(pid, &status, 0));
	WANT(WIFSIGNALED(status));
	p = malloc(n);
	EQ(ops_pread(fd, p, n, 0), n);
	for (i = 0; i < n; i++)
		if (p[i] != (i % 512 ? 0 : 'k'))
			FAIL("byte %zu is %d", i, p[i]);
}

/* Several processes store in one mapping, a byte each in every line. */
static void together(void)
{
	size_t n = 512 << 10, i;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), status, k, rc = 0;
	char *p;

	OK(ftruncate(fd, n));
	for (k = 0; k < 4; k++) {
		if (fork())
			continue;
		p = map(fd, n);
		for (i = k; i < n; i += 64) {
			p[i] = '0' + k;
			if (i % 65536 == (size_t)k)
				OK(msync(p, n, i % 131072 ? MS_ASYNC : MS_SYNC));
		}
		_exit(0);
	}
	while (wait(&status) > 0)
		rc |= status;
	EQ(rc, 0);
	p = malloc(n);
	EQ(ops_pread(fd, p, n, 0), n);
	for (i = 0; i < n; i++)
		if (p[i] != (i % 64 < 4 ? '0' + (int)(i % 64) : 0))
			FAIL("byte %zu is %d", i, p[i]);
}

/*
 * One process stores into the pages that another writes to: neither takes the other's bytes back.
 */
static void side_by_side(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), i, r, status;
	char *p, *buf = malloc(16 * PAGE);
	pid_t pid;

	OK(ftruncate(fd, 16 * PAGE));
	p = map(fd, 16 * PAGE);
	pid = fork();
	OK(pid);
	for (r = 1; r <= 60; r++) {
		for (i = 0; i < 16; i++) {
			char c = r;

			if (pid)
				p[i * PAGE + 1000] = c;
			else
				ops_pwrite(fd, &c, 1, i * PAGE + 2000);
		}
	}
	if (!pid)
		_exit(0);
	OK(waitpid(pid, &status, 0));
	EQ(status, 0);
	OK(msync(p, 16 * PAGE, MS_SYNC));
	EQ(ops_pread(fd, buf, 16 * PAGE, 0), 16 * PAGE);
	for (i = 0; i < 16; i++) {
		EQ(buf[i * PAGE + 1000], 60);
		EQ(buf[i * PAGE + 2000], 60);
		EQ(p[i * PAGE + 2000], 60);
	}
}

/* Anything in any order, beside a model in memory. */
static void random_mix(void)
{
	enum { MAX = 300000 };
	unsigned char *model = calloc(1, MAX), *buf = malloc(MAX), *p;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), i, op;
	size_t size = 0, off, n, k, end;

	p = (unsigned char *)map(fd, MAX);
	for (i = 0; i < 1500; i++) {
		op = ops_random() % 8;
		off = ops_random() % MAX;
		n = 1 + ops_random() % (ops_random() % 8 ? 5000 : 100000);
		n = off + n > MAX ? MAX - off : n;
		end = off < size ? size - off : 0;
		end = end < n ? end : n;	/* how much of it is in the file */
		switch (op) {
		case 0:
			ops_fill(buf, n, off, i);
			ops_pwrite(fd, buf, n, off);
			memcpy(model + off, buf, n);
			size = off + n > size ? off + n : size;
			break;
		case 1:
		case 2:
			ops_fill(buf, end, off, i);
			memcpy(p + off, buf, end);
			memcpy(model + off, buf, end);
			break;
		case 3:
			if (memcmp(p + off, model + off, end)) {
				for (k = 0; p[off + k] == model[off + k]; k++)
					;
				FAIL("step %d: mapped byte %zu is %d, should be %d; size %zu", i, off + k,
				     p[off + k], model[off + k], size);
			}
			break;
		case 4:
			EQ(ops_pread(fd, buf, n, off), end);
			if (memcmp(buf, model + off, end)) {
				for (k = 0; buf[k] == model[off + k]; k++)
					;
				FAIL("step %d: byte %zu is %d, should be %d; size %zu", i, off + k, buf[k],
				     model[off + k], size);
			}
			break;
		case 5:
			if (ops_random() % 4)
				break;
			n = ops_random() % MAX;
			OK(ftruncate(fd, n));
			if (n < size)
				memset(model + n, 0, size - n);
			size = n;
			break;
		case 6:
			OK(msync(p, MAX, ops_random() % 2 ? MS_SYNC : MS_ASYNC));
			break;
		case 7:
			if (ops_random() % 8)
				break;
			OK(munmap(p, MAX));
			OK(close(fd));
			fd = ops_open("f", O_RDWR, 0);
			p = (unsigned char *)map(fd, MAX);
			break;
		}
	}
}

const struct ops_check ops_mmap[] = {
	{ "shared maps: with read and write", with_read_and_write },
	{ "shared maps: transfers from and to the file's own pages", to_itself },
	{ "shared maps: behind the end", behind_the_end },
	{ "shared maps: protections", protections },
	{ "shared maps: of a process that is killed", killed },
	{ "shared maps: of four processes", together },
	{ "shared maps: beside writes to the same pages", side_by_side },
	{ "shared maps: random, with a model", random_mix },
	{ NULL, NULL }
};

/* ---------------------------------------------------------------- two mounts */

static void seen_by_the_other(void)
{
	char path[4200], c;
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644), other, i;
	char *p, *q;

	snprintf(path, sizeof(path), "%s/f", ops_other);
	OK(ftruncate(fd, ROUND));
	p = map(fd, ROUND);
	for (i = 0; i < 20; i++) {
		off_t at = ops_random() % ROUND;

		/* After msync for whoever reads; a map shows it when it is made anew. */
		p[at] = i + 1;
		OK(msync(p, ROUND, MS_SYNC));
		other = ops_open(path, O_RDWR, 0);
		EQ(pread(other, &c, 1, at), 1);
		EQ(c, i + 1);
		q = map(other, ROUND);
		EQ(q[at], i + 1);
		/* And the other way round, by munmap and close alone. */
		q[at] = 100 + i;
		OK(munmap(q, ROUND));
		OK(close(other));
		EQ(pread(fd, &c, 1, at), 1);
		EQ(c, 100 + i);
		OK(munmap(p, ROUND));
		OK(close(fd));
		fd = ops_open("f", O_RDWR, 0);
		p = map(fd, ROUND);
		EQ(p[at], 100 + i);
	}
}

const struct ops_check ops_mmap_two[] = {
	{ "two mounts: shared maps", seen_by_the_other },
	{ NULL, NULL }
};
