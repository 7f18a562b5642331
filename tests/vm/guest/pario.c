// SPDX-License-Identifier: GPL-2.0-only
/*
 * pario.c - one file of known content, written and read in disjoint parts by several processes.
 *
 *	pario print MB			the content, to stdout
 *	pario write|read FILE MB PROCS [BLOCK]	process i takes the i-th of PROCS parts; "read" compares every byte
 *	pario interleave|verify FILE MB PROCS BLOCK	process i takes blocks i, i + PROCS, ...
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Words that depend on their place all over. */
static void fill(uint64_t *p, size_t n, uint64_t off)
{
	uint64_t i, x;

	for (i = 0; i < n / 8; i++) {
		x = (off / 8 + i) * 0x9e3779b97f4a7c15ull;
		x ^= x >> 31;
		p[i] = x * 0xbf58476d1ce4e5b9ull;
	}
}

static void part(int fd, uint64_t from, uint64_t to, uint64_t step, size_t block, int reading)
{
	char *buf = malloc(block), *want = malloc(block);

	if (!buf || !want)
		err(1, "memory");
	for (; from < to; from += step) {
		size_t n = to - from < block ? to - from : block, done = 0;
		ssize_t r;

		fill((uint64_t *)want, n, from);
		while (done < n) {
			r = reading ? pread(fd, buf + done, n - done, from + done) :
				      pwrite(fd, want + done, n - done, from + done);
			if (r <= 0)
				errx(1, "%s of %zu at %llu: %s", reading ? "read" : "write", n - done,
				     (unsigned long long)from + done, r ? strerror(errno) : "end of file");
			done += r;
		}
		if (reading && memcmp(buf, want, n))
			errx(1, "wrong bytes between %llu and %llu", (unsigned long long)from,
			     (unsigned long long)from + n);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t size, procs, i, block = 1 << 20;
	int status, rc = 0, reading, spread, fd;
	double t = now();

	if (argc == 3 && !strcmp(argv[1], "print")) {
		static uint64_t buf[1 << 17];

		size = strtoull(argv[2], NULL, 10);
		for (i = 0; i < size; i++) {
			fill(buf, sizeof(buf), i << 20);
			if (fwrite(buf, sizeof(buf), 1, stdout) != 1)
				err(1, "stdout");
		}
		return 0;
	}
	if (argc < 5)
		errx(2, "usage: pario print MB | pario write|read|interleave|verify FILE MB PROCS [BLOCK]");
	size = strtoull(argv[3], NULL, 10) << 20;
	procs = strtoull(argv[4], NULL, 10);
	if (argc > 5)
		block = strtoull(argv[5], NULL, 10);
	if (!size || !procs || !block || block % 8)
		errx(2, "bad number");
	reading = !strcmp(argv[1], "read") || !strcmp(argv[1], "verify");
	spread = !strcmp(argv[1], "interleave") || !strcmp(argv[1], "verify");
	fd = open(argv[2], reading ? O_RDONLY : O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		err(1, "%s", argv[2]);
	close(fd);
	for (i = 0; i < procs; i++) {
		uint64_t share = (size / procs) & ~7ull;

		if (fork())
			continue;
		fd = open(argv[2], reading ? O_RDONLY : O_WRONLY);
		if (fd < 0)
			err(1, "%s", argv[2]);
		if (spread)
			part(fd, i * block, size, procs * block, block, reading);
		else
			part(fd, i * share, i == procs - 1 ? size : (i + 1) * share, block, block, reading);
		/* An error that came late. */
		if ((!reading && fsync(fd) < 0) || close(fd) < 0)
			err(1, "closing");
		exit(0);
	}
	while (wait(&status) > 0)
		rc |= !!status;
	t = now() - t;
	printf("%s: %llu MiB by %llu processes in %.1f s, %.0f MB/s\n", argv[1], (unsigned long long)size >> 20,
	       (unsigned long long)procs, t, size / t / 1e6);
	return rc;
}
