// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream.c - what TCP itself can do where a file system is measured.
 *
 *	stream serve PORT [FILE]	until it is ended. Bytes that come are dropped, those that are asked for
 *					come from memory; with FILE they are written to it (FILE.0 ..., one for
 *					each connection, over what is there) and sent from there, as an I/O
 *					daemon must
 *	stream put|get MIB HOST:PORT...	so many bytes over a connection to each, all at once, by calls of
 *					1 MiB: MB/s of all, ms of CPU for a MiB here, and at the servers
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CALL (1 << 20)
#define MEMORY (64 << 20)	/* more than caches hold, as in a program that has much to write */

/* From the client, before the bytes; and from the server, when it is ready and when it is done. */
struct order {
	uint32_t put;
	uint32_t number;	/* of the connection */
	uint64_t bytes;
};
struct answer {
	double cpu;		/* seconds, of that thread */
};

static const char *file;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Touched, and not all zeros. */
static char *memory(size_t n)
{
	char *p = malloc(n);
	size_t i;

	if (!p)
		errx(1, "memory");
	for (i = 0; i < n; i += 8)
		*(uint64_t *)(p + i) = i * 0x9e3779b97f4a7c15ull;
	return p;
}

static void put_all(int fd, const void *buf, size_t n)
{
	const char *p = buf;

	while (n) {
		ssize_t r = send(fd, p, n, MSG_NOSIGNAL);

		if (r <= 0)
			err(1, "send");
		p += r;
		n -= r;
	}
}

static void get_all(int fd, void *buf, size_t n)
{
	ssize_t r = recv(fd, buf, n, MSG_WAITALL);

	if (r != (ssize_t)n)
		errx(1, "receive: %s", r < 0 ? strerror(errno) : "the other side has closed");
}

static void write_all(int fd, const char *p, size_t n, off_t off)
{
	if (pwrite(fd, p, n, off) != (ssize_t)n)
		err(1, "write");
}

static void *serve_one(void *arg)
{
	int fd = (long)arg, data = -1, on = 1;
	struct answer a = { 0 };
	struct order o;
	char *buf = memory(MEMORY), path[4096];
	uint64_t at;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	get_all(fd, &o, sizeof(o));
	if (file) {
		snprintf(path, sizeof(path), "%s.%u", file, o.number);
		data = open(path, o.put ? O_RDWR | O_CREAT : O_RDONLY, 0600);
		if (data < 0)
			err(1, "%s", path);
	}
	put_all(fd, &a, sizeof(a));
	a.cpu = cpu();
	for (at = 0; at < o.bytes; at += CALL) {
		if (o.put) {
			/* An I/O daemon's buffer is used again and again. */
			get_all(fd, buf, CALL);
			if (data >= 0)
				write_all(data, buf, CALL, at);
		} else if (data >= 0) {
			/* In memory, where sendfile() goes page by page, this is twice as fast. */
			if (pread(data, buf, CALL, at) != CALL)
				errx(1, "read");
			put_all(fd, buf, CALL);
		} else {
			put_all(fd, buf + at % MEMORY, CALL);
		}
	}
	a.cpu = cpu() - a.cpu;
	put_all(fd, &a, sizeof(a));
	if (data >= 0)
		close(data);
	close(fd);
	free(buf);
	return NULL;
}

static void serve(int port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int s = socket(AF_INET6, SOCK_STREAM, 0), on = 1;
	pthread_t t;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) || listen(s, 64))
		err(1, "port %d", port);
	for (;;) {
		long fd = accept(s, NULL, NULL);

		if (fd < 0)
			err(1, "accept");
		errno = pthread_create(&t, NULL, serve_one, (void *)fd);
		if (errno)
			err(1, "thread");
		pthread_detach(t);
	}
}

/* ---- the client ---- */

static struct order order;
static pthread_barrier_t barrier;
static struct conn {
	char *host;
	int number;
	double client, server;	/* seconds of CPU */
} *conn;

static int reach(char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai;
	char *colon = strrchr(name, ':');
	int fd, on = 1;

	if (!colon)
		errx(2, "%s: HOST:PORT was expected", name);
	*colon = 0;
	if (getaddrinfo(name, colon + 1, &hints, &ai))
		errx(1, "%s: no such host", name);
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
		err(1, "%s", name);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	freeaddrinfo(ai);
	return fd;
}

static void *client(void *arg)
{
	struct conn *c = arg;
	struct order o = order;
	struct answer a;
	char *buf = memory(MEMORY);
	int fd = reach(c->host);
	uint64_t at;

	o.number = c->number;
	put_all(fd, &o, sizeof(o));
	get_all(fd, &a, sizeof(a));
	pthread_barrier_wait(&barrier);
	c->client = cpu();
	for (at = 0; at < o.bytes; at += CALL)
		if (o.put)
			put_all(fd, buf + at % MEMORY, CALL);
		else
			get_all(fd, buf + at % MEMORY, CALL);
	get_all(fd, &a, sizeof(a));
	c->client = cpu() - c->client;
	c->server = a.cpu;
	pthread_barrier_wait(&barrier);
	close(fd);
	free(buf);
	return NULL;
}

static void run(int n, char **host)
{
	double t, mib = (double)order.bytes * n / (1 << 20), here = 0, there = 0;
	pthread_t thread;
	int i;

	conn = calloc(n, sizeof(*conn));
	if (!conn || pthread_barrier_init(&barrier, NULL, n + 1))
		errx(1, "memory");
	for (i = 0; i < n; i++) {
		conn[i] = (struct conn){ .host = host[i], .number = i };
		errno = pthread_create(&thread, NULL, client, &conn[i]);
		if (errno)
			err(1, "thread");
	}
	pthread_barrier_wait(&barrier);
	t = now();
	pthread_barrier_wait(&barrier);
	t = now() - t;
	for (i = 0; i < n; i++) {
		here += conn[i].client;
		there += conn[i].server;
	}
	printf("%.2f %.3f %.3f\n", mib * 1.048576 / t, here * 1e3 / mib, there * 1e3 / mib);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "serve") && atoi(argv[2]) > 0) {
		file = argv[3];
		serve(atoi(argv[2]));
	}
	if (argc < 4 || (strcmp(argv[1], "put") && strcmp(argv[1], "get")) || atol(argv[2]) < 1)
		errx(2, "usage: stream serve PORT [FILE] | stream put|get MIB HOST:PORT...");
	order.put = !strcmp(argv[1], "put");
	order.bytes = (uint64_t)atol(argv[2]) << 20;
	run(argc - 3, argv + 3);
	return 0;
}
