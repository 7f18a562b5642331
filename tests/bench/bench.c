// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench.c - the measurements of tests/bench/guest.sh. Each prints numbers on one line.
 *
 *	bench write|read FILE MB BLOCK		MB/s, and ms of CPU a MiB (all of the machine's)
 *	bench writers|readers FILE MB BLOCK N	the same by N processes in disjoint parts of one file
 *	bench randread|randwrite FILE MB OPS	4 KiB direct operations a second at random places, one at a time
 *	bench bufread|bufwrite FILE MB OPS	the same through the page cache
 *	bench append FILE OPS			appends of 4 bytes a second
 *	bench create|stat|unlink DIR N		files a second
 *	bench put|get DIR N			the same: made with 10 KiB in them, by one write; read, to their end
 *	bench stream SECONDS			MB/s through one loopback TCP connection, 1 MiB calls
 *	bench trip OPS				us for 128 bytes there and 128 back over loopback TCP
 *
 * Writes end with fsync, and it counts. Whoever wants cold caches drops them before.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

/* Seconds that any CPU worked since the start: the daemons' and the kernel's count too. */
static double cpu(void)
{
	unsigned long long user, nice, sys, idle, wait, irq, soft;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys, &idle, &wait, &irq, &soft) != 7)
		errx(1, "/proc/stat");
	fclose(f);
	return (double)(user + nice + sys + irq + soft) / sysconf(_SC_CLK_TCK);
}

static char *memory(size_t n)
{
	char *p;

	if (posix_memalign((void **)&p, 4096, n))
		errx(1, "memory");
	/* Touched, and not all zeros. */
	for (size_t i = 0; i < n; i++)
		p[i] = i * 2654435761u >> 13;
	return p;
}

static void move(int fd, bool out, char *buf, uint64_t from, uint64_t to, size_t block)
{
	while (from < to) {
		size_t n = to - from < block ? to - from : block;
		ssize_t r = out ? pwrite(fd, buf, n, from) : pread(fd, buf, n, from);

		if (r <= 0)
			errx(1, "%s at %llu: %s", out ? "write" : "read", (unsigned long long)from,
			     r ? strerror(errno) : "end of file");
		from += r;
	}
	if (out && fsync(fd) < 0)
		err(1, "fsync");
}

static void sequential(const char *path, bool out, uint64_t mb, size_t block, int procs)
{
	char *buf = memory(block);
	double t, c;
	int i, status, fd;

	fd = open(path, out ? O_WRONLY | O_CREAT : O_RDONLY, 0644);
	if (fd < 0)
		err(1, "%s", path);
	c = cpu();
	t = now();
	if (procs == 1) {
		move(fd, out, buf, 0, mb << 20, block);
	} else {
		uint64_t share = (mb << 20) / procs;

		for (i = 0; i < procs; i++) {
			if (fork())
				continue;
			fd = open(path, out ? O_WRONLY : O_RDONLY);
			if (fd < 0)
				err(1, "%s", path);
			move(fd, out, buf, i * share, (i + 1) * share, block);
			_exit(0);
		}
		while (wait(&status) > 0)
			if (status)
				errx(1, "a process failed");
	}
	close(fd);
	t = now() - t;
	c = cpu() - c;
	printf("%.1f %.2f\n", (mb << 20) / t / 1e6, c * 1e3 / mb);
}

static void random_places(const char *path, bool out, int flags, uint64_t mb, long ops)
{
	int fd = open(path, O_RDWR | flags);
	char *buf = memory(4096);
	uint64_t s = 88172645463325252ull;
	double t;
	long i;

	if (fd < 0)
		err(1, "%s", path);
	t = now();
	for (i = 0; i < ops; i++) {
		off_t off;
		ssize_t r;

		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		off = (s >> 20) % (mb << 8) << 12;
		r = out ? pwrite(fd, buf, 4096, off) : pread(fd, buf, 4096, off);
		if (r != 4096)
			err(1, "%s at %lld", path, (long long)off);
	}
	if (out && fsync(fd) < 0)
		err(1, "fsync %s", path);
	printf("%.0f\n", ops / (now() - t));
}

static void appends(const char *path, long ops)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	double t;
	long i;

	if (fd < 0)
		err(1, "%s", path);
	t = now();
	for (i = 0; i < ops; i++)
		if (write(fd, "four", 4) != 4)
			err(1, "%s", path);
	if (fsync(fd) < 0)
		err(1, "fsync %s", path);
	printf("%.0f\n", ops / (now() - t));
}

#define SMALL 10240

/* Opened, written or read, closed. */
static void small_file(const char *name, bool put)
{
	static char buf[2 * SMALL];
	int fd = put ? open(name, O_WRONLY | O_CREAT | O_EXCL, 0644) : open(name, O_RDONLY);
	ssize_t n = put ? write(fd, buf, SMALL) : read(fd, buf, sizeof(buf));

	if (fd < 0 || n != SMALL || (!put && read(fd, buf, sizeof(buf))) || close(fd) < 0)
		err(1, "%s", name);
}

static void files(const char *dir, const char *op, long n)
{
	struct stat st;
	char name[32];
	double t;
	long i;
	int fd;

	if (chdir(dir) < 0)
		err(1, "%s", dir);
	t = now();
	for (i = 0; i < n; i++) {
		sprintf(name, "f%ld", i);
		if (!strcmp(op, "put") || !strcmp(op, "get")) {
			small_file(name, *op == 'p');
		} else if (!strcmp(op, "create")) {
			fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
			if (fd < 0 || close(fd) < 0)
				err(1, "%s", name);
		} else if ((!strcmp(op, "stat") ? stat(name, &st) : unlink(name)) < 0) {
			err(1, "%s", name);
		}
	}
	printf("%.0f\n", n / (now() - t));
}

/* A connection over loopback; the child, which gets the other end, never returns. */
static int pair(void (*child)(int fd))
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0), fd, one = 1;

	if (bind(l, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(l, 1) < 0 ||
	    getsockname(l, (struct sockaddr *)&a, &len) < 0)
		err(1, "listen");
	if (!fork()) {
		fd = accept(l, NULL, NULL);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		child(fd);
		_exit(0);
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		err(1, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void sink(int fd)
{
	char *buf = memory(1 << 20);

	while (read(fd, buf, 1 << 20) > 0)
		;
}

static void echo(int fd)
{
	char buf[128];
	ssize_t r;

	while ((r = read(fd, buf, sizeof(buf))) > 0)
		if (write(fd, buf, r) != r)
			err(1, "echo");
}

static void stream(double seconds)
{
	char *buf = memory(1 << 20);
	double t, end, done = 0;
	int fd = pair(sink), status;

	t = now();
	end = t + seconds;
	while (now() < end) {
		ssize_t r = write(fd, buf, 1 << 20);

		if (r < 0)
			err(1, "write");
		done += r;
	}
	close(fd);
	wait(&status);
	printf("%.1f\n", done / (now() - t) / 1e6);
}

static void trip(long ops)
{
	char buf[128] = "";
	int fd = pair(echo);
	double t = now();
	long i;

	for (i = 0; i < ops; i++)
		if (write(fd, buf, sizeof(buf)) != sizeof(buf) || recv(fd, buf, sizeof(buf), MSG_WAITALL) != sizeof(buf))
			err(1, "round trip");
	printf("%.1f\n", (now() - t) / ops * 1e6);
}

int main(int argc, char **argv)
{
	const char *op = argc > 1 ? argv[1] : "";
	long a[4] = { 0 };
	int i;

	for (i = 3; i < argc && i < 7; i++)
		a[i - 3] = atol(argv[i]);
	if ((!strcmp(op, "write") || !strcmp(op, "read")) && argc == 5)
		sequential(argv[2], *op == 'w', a[0], a[1], 1);
	else if ((!strcmp(op, "writers") || !strcmp(op, "readers")) && argc == 6)
		sequential(argv[2], *op == 'w', a[0], a[1], a[2]);
	else if ((!strcmp(op, "bufread") || !strcmp(op, "bufwrite")) && argc == 5)
		random_places(argv[2], op[3] == 'w', 0, a[0], a[1]);
	else if (!strcmp(op, "append") && argc == 4)
		appends(argv[2], a[0]);
	else if ((!strcmp(op, "randread") || !strcmp(op, "randwrite")) && argc == 5)
		random_places(argv[2], op[4] == 'w', O_DIRECT, a[0], a[1]);
	else if ((!strcmp(op, "create") || !strcmp(op, "stat") || !strcmp(op, "unlink") ||
		  !strcmp(op, "put") || !strcmp(op, "get")) && argc == 4)
		files(argv[2], op, a[0]);
	else if (!strcmp(op, "stream") && argc == 3)
		stream(atof(argv[2]));
	else if (!strcmp(op, "trip") && argc == 3)
		trip(atol(argv[2]));
	else
		errx(2, "usage: see the top of tests/bench/bench.c");
	return 0;
}
