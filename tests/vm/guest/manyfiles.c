// SPDX-License-Identifier: GPL-2.0-only
/*
 * manyfiles.c - many files in one directory, by several processes, quickly.
 *
 *	manyfiles create|stat|unlink DIR N [PROCS]	files entry-000000 ... of DIR, shares of them per process
 *	manyfiles list DIR N				every one of them is listed exactly once, and nothing else
 *	manyfiles seek DIR N				the same; the second half by another open, from where the first was
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void share(const char *op, long from, long to)
{
	char name[32];
	struct stat st;
	long i;
	int fd;

	for (i = from; i < to; i++) {
		sprintf(name, "entry-%06ld", i);
		if (!strcmp(op, "create")) {
			fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
			if (fd < 0 || close(fd) < 0)
				err(1, "creating %s", name);
		} else if (!strcmp(op, "stat")) {
			if (stat(name, &st) < 0)
				err(1, "stat %s", name);
		} else if (unlink(name) < 0) {
			err(1, "removing %s", name);
		}
	}
}

static int list(long n, int again)
{
	unsigned char *seen = calloc(1, n);
	struct dirent *e;
	long got = 0, i;
	DIR *d = opendir(".");

	if (!d || !seen)
		err(1, "opendir");
	while (errno = 0, (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (sscanf(e->d_name, "entry-%ld", &i) != 1 || i < 0 || i >= n)
			errx(1, "%s should not be there", e->d_name);
		if (seen[i]++)
			errx(1, "%s is listed twice", e->d_name);
		got++;
		if (again && got == n / 2) {
			long pos = telldir(d);

			closedir(d);
			d = opendir(".");
			if (!d)
				err(1, "opendir");
			seekdir(d, pos);
		}
	}
	if (errno)
		err(1, "readdir");
	if (got != n)
		errx(1, "%ld of %ld are listed", got, n);
	return 0;
}

int main(int argc, char **argv)
{
	long n, procs, i;
	int status, rc = 0;
	double t = now();

	if (argc < 4)
		errx(2, "usage: manyfiles create|stat|unlink|list|seek DIR N [PROCS]");
	n = atol(argv[3]);
	procs = argc > 4 ? atol(argv[4]) : 1;
	if (n < 1 || procs < 1)
		errx(2, "bad number");
	if (chdir(argv[2]) < 0)
		err(1, "%s", argv[2]);
	if (!strcmp(argv[1], "list") || !strcmp(argv[1], "seek")) {
		rc = list(n, !strcmp(argv[1], "seek"));
	} else {
		for (i = 0; i < procs; i++) {
			if (fork())
				continue;
			share(argv[1], n * i / procs, n * (i + 1) / procs);
			exit(0);
		}
		while (wait(&status) > 0)
			rc |= !!status;
	}
	t = now() - t;
	printf("%s: %ld files in %.1f s, %.0f a second\n", argv[1], n, t, n / t);
	return rc;
}
