// SPDX-License-Identifier: GPL-2.0-only
/*
 * calls.c - does one file operation and prints what it cost: the statistics file of a mount,
 * started from zero just before the operation and read just after, so that opening and closing
 * around it do not count.
 *
 *	calls STATS DIR lookup NAME...	stat each name, which nobody knows here
 *	calls STATS DIR readlink NAME	of a symbolic link that nobody knows here
 *	calls STATS DIR stat NAME	stat a name that is known here
 *	calls STATS DIR absent NAME	stat a name that is known not to be there
 *	calls STATS DIR fstat NAME	of an open file
 *	calls STATS DIR read NAME LEN [OFF]	one read of LEN bytes at OFF
 *	calls STATS DIR write|append NAME LEN [OFF]	one write
 *	calls STATS DIR msync NAME LEN	stores to a mapping, and msync
 *	calls STATS DIR whole NAME LEN	open, read all, close
 *	calls STATS DIR again NAME LEN	the same for the second time
 *	calls STATS DIR create NAME LEN	create, write, close
 *	calls STATS DIR unlink NAME
 *	calls STATS DIR list		read the current directory and stat every entry, as ls -l
 *	calls STATS DIR relist		the same for the second time
 *	calls STATS DIR names		read it only
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *stats;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

static size_t look(char *to, size_t room)
{
	int fd = open(stats, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room);

	if (n < 0)
		err(1, "%s", stats);
	close(fd);
	return n;
}

/* What goes behind the return of a call is sent within 10 ms; unless that waits for more, and the machine is slow. */
static void settle(void)
{
	static char now[65536], then[65536];
	size_t n = look(now, sizeof(now)), last;

	do {
		last = n;
		memcpy(then, now, n);
		usleep(100000);
		n = look(now, sizeof(now));
	} while (n != last || memcmp(now, then, n));
}

/* Names, inodes and pages that no one uses are forgotten, and the opens that went with them given back. */
static void forget(void)
{
	put("/proc/sys/vm/drop_caches", "3");
	settle();
}

static void begin(void)
{
	put(stats, "reset");
}

static void list(int with_stat)
{
	DIR *d = opendir(".");
	struct dirent *e;
	struct stat st;
	long n = 0;

	if (!d)
		err(1, "opendir");
	begin();
	while ((e = readdir(d))) {
		n++;
		if (with_stat && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			err(1, "stat %s", e->d_name);
	}
	fprintf(stderr, "%ld entries\n", n);
}

static ssize_t whole(int fd, char *buf, size_t n, int out)
{
	size_t done = 0;
	ssize_t r = 1;

	while (done < n && r > 0) {
		r = out ? write(fd, buf + done, n - done) : read(fd, buf + done, n - done);
		if (r < 0)
			err(1, "%s", out ? "write" : "read");
		done += r;
	}
	return done;
}

int main(int argc, char **argv)
{
	char *buf = NULL, text[16384];
	size_t len = 0;
	off_t off = 0;
	const char *op;
	struct stat st;
	int fd, i;
	ssize_t r;

	if (argc < 4)
		errx(2, "usage: calls STATS DIR OP [NAME [LEN [OFF]]]");
	stats = argv[1];
	if (chdir(argv[2]) < 0)
		err(1, "%s", argv[2]);
	op = argv[3];
	argv += 4;
	argc -= 4;
	if (argc > 1 && strcmp(op, "lookup")) {
		len = strtoull(argv[1], NULL, 0);
		off = argc > 2 ? strtoll(argv[2], NULL, 0) : 0;
		/* Touched before the clock starts. */
		buf = malloc(len + 1);
		if (!buf)
			err(1, "memory");
		memset(buf, 'c', len + 1);
	}
	forget();
	if (!strcmp(op, "lookup")) {
		begin();
		for (i = 0; i < argc; i++)
			if (stat(argv[i], &st) < 0)
				err(1, "%s", argv[i]);
	} else if (!strcmp(op, "readlink")) {
		begin();
		if (readlink(argv[0], text, sizeof(text)) < 0)
			err(1, "%s", argv[0]);
	} else if (!strcmp(op, "stat")) {
		if (stat(argv[0], &st) < 0)
			err(1, "%s", argv[0]);
		begin();
		if (stat(argv[0], &st) < 0)
			err(1, "%s", argv[0]);
	} else if (!strcmp(op, "absent")) {
		if (!stat(argv[0], &st) || errno != ENOENT)
			err(1, "%s", argv[0]);
		begin();
		if (!stat(argv[0], &st) || errno != ENOENT)
			err(1, "%s", argv[0]);
	} else if (!strcmp(op, "fstat")) {
		fd = open(argv[0], O_RDONLY);
		begin();
		if (fd < 0 || fstat(fd, &st) < 0)
			err(1, "%s", argv[0]);
	} else if (!strcmp(op, "read")) {
		fd = open(argv[0], O_RDONLY);
		begin();
		r = pread(fd, buf, len, off);
		if (r != (ssize_t)len)
			errx(1, "read %zd of %zu: %s", r, len, strerror(errno));
	} else if (!strcmp(op, "write") || !strcmp(op, "append")) {
		fd = open(argv[0], O_RDWR | O_CREAT | (*op == 'a' ? O_APPEND : 0), 0644);
		begin();
		r = pwrite(fd, buf, len, off);
		if (r != (ssize_t)len)
			errx(1, "wrote %zd of %zu: %s", r, len, strerror(errno));
	} else if (!strcmp(op, "msync")) {
		char *map;

		fd = open(argv[0], O_RDWR);
		map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fd < 0 || map == MAP_FAILED)
			err(1, "%s", argv[0]);
		/* The pages are there before it counts. */
		if (madvise(map, len, MADV_POPULATE_READ) < 0)
			err(1, "madvise");
		begin();
		memcpy(map, buf, len);
		if (msync(map, len, MS_SYNC) < 0)
			err(1, "msync");
	} else if (!strcmp(op, "whole") || !strcmp(op, "again")) {
		for (i = *op == 'a'; i >= 0; i--) {
			begin();
			fd = open(argv[0], O_RDONLY);
			if (fd < 0)
				err(1, "%s", argv[0]);
			whole(fd, buf, len, 0);
			close(fd);
			settle();
		}
	} else if (!strcmp(op, "create")) {
		begin();
		fd = open(argv[0], O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			err(1, "%s", argv[0]);
		whole(fd, buf, len, 1);
		close(fd);
		settle();
	} else if (!strcmp(op, "untar")) {
		/* As tar does it: in two writes, then times, owner and mode. */
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000 } };

		begin();
		fd = open(argv[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0)
			err(1, "%s", argv[0]);
		whole(fd, buf, len / 2, 1);
		whole(fd, buf + len / 2, len - len / 2, 1);
		if (futimens(fd, times) < 0 || fchown(fd, 7, 8) < 0 || fchmod(fd, 0644) < 0)
			err(1, "%s", argv[0]);
		close(fd);
		settle();
	} else if (!strcmp(op, "unlink")) {
		begin();
		if (unlink(argv[0]) < 0)
			err(1, "%s", argv[0]);
	} else if (!strcmp(op, "relist")) {
		list(1);
		list(1);
	} else if (!strcmp(op, "list")) {
		list(1);
	} else if (!strcmp(op, "names")) {
		list(0);
	} else {
		errx(2, "unknown operation %s", op);
	}
	fd = open(stats, O_RDONLY);
	r = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (r < 0)
		err(1, "%s", stats);
	fwrite(text, 1, r, stdout);
	return 0;
}
