// SPDX-License-Identifier: GPL-2.0-only
/*
 * far.c - the near end of far.h: asks, waits, and believes nothing that does not fit.
 */
#include "far.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct far {
	int sock;
};

/* ------------------------------------------------------------------ both ends */

bool far_send(int fd, const void *head, size_t head_len, const void *data, size_t len)
{
	struct iovec v[2] = { { (void *)head, head_len }, { (void *)data, len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	while (v[0].iov_len || v[1].iov_len) {
		size_t done, i;

		n = sendmsg(fd, &m, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		for (i = 0; i < 2; i++, n -= done) {
			done = (size_t)n < v[i].iov_len ? (size_t)n : v[i].iov_len;
			v[i].iov_base = (char *)v[i].iov_base + done;
			v[i].iov_len -= done;
		}
	}
	return true;
}

bool far_receive(int fd, void *buf, size_t n)
{
	while (n) {
		ssize_t got = recv(fd, buf, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (!got)
				errno = 0;
			return false;
		}
		buf = (char *)buf + got;
		n -= got;
	}
	return true;
}

struct addrinfo *far_resolve(const char *where, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *ai;
	const char *port = strrchr(where, ':');
	char host[256];

	if (!port || port == where || (size_t)(port - where) >= sizeof(host)) {
		errno = EINVAL;
		return NULL;
	}
	memcpy(host, where, port - where);
	host[port - where] = 0;
	if (getaddrinfo(host, port + 1, &hints, &ai)) {
		errno = EINVAL;
		return NULL;
	}
	return ai;
}

/* ------------------------------------------------------------------ the connection */

struct far *far_connect(const char *where)
{
	struct addrinfo *ai = far_resolve(where, 0);
	struct far *f;
	int one = 1, saved;

	if (!ai)
		return NULL;
	f = malloc(sizeof(*f));
	if (!f)
		goto out;
	f->sock = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (f->sock < 0 || connect(f->sock, ai->ai_addr, ai->ai_addrlen) < 0 ||
	    setsockopt(f->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0) {
		saved = errno;
		far_close_connection(f);
		f = NULL;
		errno = saved;
	}
out:
	freeaddrinfo(ai);
	return f;
}

void far_close_connection(struct far *f)
{
	if (f && f->sock >= 0)
		close(f->sock);
	free(f);
}

/* After this nothing on it can be told apart any more. */
static int64_t broken(struct far *f, int err)
{
	if (f->sock >= 0)
		close(f->sock);
	f->sock = -1;
	errno = err ? err : ECONNRESET;
	return -1;
}

/*
 * Asks @q with @len bytes of @data. What comes back goes to @in, which has room for @room bytes:
 * @result bytes when the call succeeded.
 */
static int64_t ask(struct far *f, struct far_ask q, const void *data, size_t len, void *in,
		   size_t room)
{
	struct far_answer a;

	if (f->sock < 0)
		return broken(f, ENOTCONN);
	if (len > FAR_DATA_MAX || room > FAR_DATA_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	q.len = len;
	if (!far_send(f->sock, &q, sizeof(q), data, len) ||
	    !far_receive(f->sock, &a, sizeof(a)))
		return broken(f, errno);
	if (a.result < -1 || (a.result < 0 && a.err <= 0) || a.len > room ||
	    a.len != (in && a.result > 0 ? a.result : 0))
		return broken(f, EPROTO);
	if (!far_receive(f->sock, in, a.len))
		return broken(f, errno);
	if (a.result < 0)
		errno = a.err;
	return a.result;
}

/* The same with one name or two. */
static int64_t ask_names(struct far *f, struct far_ask q, const char *name, const char *second,
			 void *in, size_t room)
{
	size_t n = strlen(name) + 1, k = second ? strlen(second) + 1 : 0;
	char both[2 * 4096];

	if (n > 4096 || k > 4096) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(both, name, n);
	if (second)
		memcpy(both + n, second, k);
	return ask(f, q, both, n + k, in, room);
}

/* ------------------------------------------------------------------ the calls */

#define ASK(...) ((struct far_ask){ __VA_ARGS__ })

int far_openat(struct far *f, int dir, const char *name, int flags, mode_t mode)
{
	if (!f)
		return openat(dir, name, flags, mode);
	return ask_names(f, ASK(FAR_OPENAT, 0, { dir, flags, mode }), name, NULL, NULL, 0);
}

int far_close(struct far *f, int fd)
{
	if (!f)
		return close(fd);
	return ask(f, ASK(FAR_CLOSE, 0, { fd }), NULL, 0, NULL, 0);
}

ssize_t far_pread(struct far *f, int fd, void *buf, size_t n, off_t off)
{
	if (!f)
		return pread(fd, buf, n, off);
	return ask(f, ASK(FAR_PREAD, 0, { fd, n, off }), NULL, 0, buf, n);
}

ssize_t far_pwrite(struct far *f, int fd, const void *buf, size_t n, off_t off)
{
	if (!f)
		return pwrite(fd, buf, n, off);
	return ask(f, ASK(FAR_PWRITE, 0, { fd, 0, off }), buf, n, NULL, 0);
}

ssize_t far_write(struct far *f, int fd, const void *buf, size_t n)
{
	if (!f)
		return write(fd, buf, n);
	return ask(f, ASK(FAR_WRITE, 0, { fd }), buf, n, NULL, 0);
}

int far_ftruncate(struct far *f, int fd, off_t size)
{
	if (!f)
		return ftruncate(fd, size);
	return ask(f, ASK(FAR_FTRUNCATE, 0, { fd, size }), NULL, 0, NULL, 0);
}

/* A stat's result is the length of what comes back. */
static int stat_result(struct far *f, int64_t result)
{
	if (result >= 0 && result != sizeof(struct stat))
		return broken(f, EPROTO);
	return result < 0 ? -1 : 0;
}

int far_fstat(struct far *f, int fd, struct stat *st)
{
	if (!f)
		return fstat(fd, st);
	return stat_result(f, ask(f, ASK(FAR_FSTAT, 0, { fd }), NULL, 0, st, sizeof(*st)));
}

int far_fstatat(struct far *f, int dir, const char *name, struct stat *st, int flags)
{
	if (!f)
		return fstatat(dir, name, st, flags);
	return stat_result(f, ask_names(f, ASK(FAR_FSTATAT, 0, { dir, flags }), name, NULL, st,
					sizeof(*st)));
}

int far_symlinkat(struct far *f, const char *target, int dir, const char *name)
{
	if (!f)
		return symlinkat(target, dir, name);
	return ask_names(f, ASK(FAR_SYMLINKAT, 0, { dir }), target, name, NULL, 0);
}

ssize_t far_readlinkat(struct far *f, int dir, const char *name, char *buf, size_t n)
{
	if (!f)
		return readlinkat(dir, name, buf, n);
	return ask_names(f, ASK(FAR_READLINKAT, 0, { dir, n }), name, NULL, buf, n);
}

int far_unlinkat(struct far *f, int dir, const char *name, int flags)
{
	if (!f)
		return unlinkat(dir, name, flags);
	return ask_names(f, ASK(FAR_UNLINKAT, 0, { dir, flags }), name, NULL, NULL, 0);
}

int far_renameat2(struct far *f, int dir, const char *from, int to_dir, const char *to,
		  unsigned int flags)
{
	if (!f)
		return renameat2(dir, from, to_dir, to, flags);
	return ask_names(f, ASK(FAR_RENAMEAT2, 0, { dir, to_dir, flags }), from, to, NULL, 0);
}

int far_mkdirat(struct far *f, int dir, const char *name, mode_t mode)
{
	if (!f)
		return mkdirat(dir, name, mode);
	return ask_names(f, ASK(FAR_MKDIRAT, 0, { dir, mode }), name, NULL, NULL, 0);
}

/* ------------------------------------------------------------------ commands */

int far_run(struct far *f, const char *command)
{
	struct far_ask q = { .call = FAR_RUN, .len = strlen(command) + 1 };
	struct far_answer a;
	char buf[32768];

	if (!far_send(f->sock, &q, sizeof(q), command, q.len))
		return broken(f, errno);
	for (;;) {
		if (!far_receive(f->sock, &a, sizeof(a)))
			return broken(f, errno);
		if (a.result == FAR_OUTPUT && a.len <= sizeof(buf)) {
			if (!far_receive(f->sock, buf, a.len))
				return broken(f, errno);
			if (fwrite(buf, 1, a.len, stdout) != a.len || fflush(stdout))
				return broken(f, EPIPE);
			continue;
		}
		if (a.result < -1 || a.result > 255 || a.len)
			return broken(f, EPROTO);
		errno = a.err;
		return a.result;
	}
}
