// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * tcp.c - the TCP transport, and the parsing of addresses.
 *
 * Only moves bytes: what they mean is conn.c's. Everything is non-blocking but the resolver.
 */
#include "transport.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

/*
 * A peer that vanished without a word is noticed: unanswered data after USER_TIMEOUT_MS, silence
 * after about KEEP_IDLE_S + KEEP_COUNT * KEEP_INTERVAL_S.
 */
#define USER_TIMEOUT_MS 20000
#define KEEP_IDLE_S 10
#define KEEP_INTERVAL_S 3
#define KEEP_COUNT 4

struct tcp_xprt {
	struct pvfs_xprt x;
	int fd;
	struct sockaddr_storage ss;	/* the other end's */
};

struct tcp_listener {
	int fd;
};

static struct tcp_xprt *tcp(struct pvfs_xprt *x)
{
	return container_of(x, struct tcp_xprt, x);
}

/* ---------------------------------------------------------------- addresses */

static bool parse_port(const char *s, u16 *ret)
{
	unsigned long v;
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	v = strtoul(s, &end, 10);
	if (*end || v > 65535)
		return false;
	*ret = v;
	return true;
}

/* Splits "host", "host:port", "[v6]", "[v6]:port" and a bare v6 address. */
static bool split(const char *text, char *host, size_t room, u16 *port)
{
	const char *colon, *end, *start = text;

	if (*text == '[') {
		start = text + 1;
		end = strchr(start, ']');
		if (!end || (end[1] && (end[1] != ':' || !parse_port(end + 2, port))))
			return false;
	} else {
		colon = strchr(text, ':');
		end = text + strlen(text);
		/* Two colons and no brackets: an IPv6 address without a port. */
		if (colon && !strchr(colon + 1, ':')) {
			end = colon;
			if (!parse_port(colon + 1, port))
				return false;
		}
	}
	if (end == start || (size_t)(end - start) >= room)
		return false;
	memcpy(host, start, end - start);
	host[end - start] = '\0';
	return true;
}

static void set_port(struct pvfs_addr *a, u16 port)
{
	if (a->ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->ss)->sin_port = htons(port);
}

int pvfs_addr_resolve(const char *text, u16 port, struct pvfs_addr *ret_addr, const char **ret_why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *list,
			*ai;
	struct pvfs_addr a = { 0 };
	char host[PVFS_HOST_MAX + 1];
	int rc;

	if (strlen(text) >= sizeof(a.text)) {
		*ret_why = "address is too long";
		return -EINVAL;
	}
	strcpy(a.text, text);
	if (!strncmp(text, "loop:", 5)) {
		*ret_addr = a;
		return 0;
	}
	if (!split(text, host, sizeof(host), &port)) {
		*ret_why = "not an address: expected host, host:port or [IPv6]:port";
		return -EINVAL;
	}
	if (!strcmp(host, "*"))
		strcpy(host, "0.0.0.0");
	rc = getaddrinfo(host, NULL, &hints, &list);
	if (rc == EAI_NONAME || rc == EAI_ADDRFAMILY) {
		/* A machine with nothing but loopback has no "configured" family. */
		hints.ai_flags = 0;
		rc = getaddrinfo(host, NULL, &hints, &list);
	}
	if (rc || !list) {
		*ret_why = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
		return -EHOSTUNREACH;
	}
	/*
	 * IPv4 if there is one, so that who listens and who connects choose alike, whatever the
	 * resolver's order.
	 */
	for (ai = list; ai && ai->ai_family != AF_INET; ai = ai->ai_next)
		;
	ai = ai ?: list;
	memcpy(&a.ss, ai->ai_addr, ai->ai_addrlen);
	a.len = ai->ai_addrlen;
	freeaddrinfo(list);
	set_port(&a, port);
	*ret_addr = a;
	return 0;
}

const struct pvfs_xprt_ops *pvfs_xprt_for(const struct pvfs_addr *a)
{
	return strncmp(a->text, "loop:", 5) ? &pvfs_tcp_ops : &pvfs_loop_ops;
}

/* ---------------------------------------------------------------- listening */

static int tcp_listen(const struct pvfs_addr *a, int backlog, void **ret_listener, int *ret_fd)
{
	struct tcp_listener *l;
	int fd, one = 1, err;

	l = malloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	fd = socket(a->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err = -errno;
		goto fail;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a->ss, a->len) || listen(fd, backlog)) {
		err = -errno;
		goto fail_fd;
	}
	l->fd = fd;
	*ret_listener = l;
	*ret_fd = fd;
	return 0;
fail_fd:
	close(fd);
fail:
	free(l);
	return err;
}

static void tcp_unlisten(void *listener)
{
	struct tcp_listener *l = listener;

	close(l->fd);
	free(l);
}

static void set_options(int fd)
{
	static const struct { int level, name, value; } opts[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(opts); i++)
		setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value, sizeof(opts[i].value));
}

static int tcp_accept(void *listener, struct pvfs_xprt **ret)
{
	struct tcp_listener *l = listener;
	struct tcp_xprt *t = calloc(1, sizeof(*t));
	socklen_t len = sizeof(t->ss);
	int err;

	if (!t)
		return -ENOMEM;
	do {
		t->fd = accept4(l->fd, (struct sockaddr *)&t->ss, &len,
				SOCK_NONBLOCK | SOCK_CLOEXEC);
		/* A connection that died in the queue is no reason to stop. */
	} while (t->fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (t->fd < 0) {
		err = errno == EWOULDBLOCK ? -EAGAIN : -errno;
		free(t);
		return err;
	}
	set_options(t->fd);
	t->x.ops = &pvfs_tcp_ops;
	*ret = &t->x;
	return 0;
}

/* ---------------------------------------------------------------- connecting */

static int tcp_connect(const struct pvfs_addr *a, struct pvfs_xprt **ret)
{
	struct tcp_xprt *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->x.ops = &pvfs_tcp_ops;
	t->ss = a->ss;
	t->fd = socket(a->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->fd < 0) {
		err = -errno;
		goto fail;
	}
	set_options(t->fd);
	if (connect(t->fd, (const struct sockaddr *)&a->ss, a->len) && errno != EINPROGRESS) {
		err = -errno;
		goto fail_fd;
	}
	*ret = &t->x;
	return 0;
fail_fd:
	close(t->fd);
fail:
	free(t);
	return err;
}

static int tcp_connected(struct pvfs_xprt *x)
{
	struct sockaddr_storage a, b;
	socklen_t len = sizeof(int), alen = sizeof(a), blen = sizeof(b);
	int err = 0;

	if (getsockopt(tcp(x)->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err)
		return -err;
	if (getpeername(tcp(x)->fd, (struct sockaddr *)&b, &blen))
		return errno == ENOTCONN ? -ECONNREFUSED : -errno;
	/* A port of our own that nobody listens on can be connected to itself. */
	if (!getsockname(tcp(x)->fd, (struct sockaddr *)&a, &alen) && alen == blen &&
	    !memcmp(&a, &b, alen))
		return -ECONNREFUSED;
	return 0;
}

/* ---------------------------------------------------------------- bytes */

static ssize_t tcp_sendv(struct pvfs_xprt *x, const struct iovec *iov, int n, bool more)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t k;

	do {
		k = sendmsg(tcp(x)->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
	} while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

static ssize_t tcp_sendfile(struct pvfs_xprt *x, int fd, off_t *off, size_t n)
{
	ssize_t k;

	do {
		k = sendfile(tcp(x)->fd, fd, off, n);
	} while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

static ssize_t tcp_recvv(struct pvfs_xprt *x, const struct iovec *iov, int n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t k;

	do {
		k = recvmsg(tcp(x)->fd, &m, MSG_DONTWAIT);
	} while (k < 0 && errno == EINTR);
	return k < 0 ? -errno : k;
}

static void tcp_want(struct pvfs_xprt *x, u32 n)
{
	int v = n;

	setsockopt(tcp(x)->fd, SOL_SOCKET, SO_RCVLOWAT, &v, sizeof(v));
}

static u64 tcp_unsent(struct pvfs_xprt *x)
{
	int n = 0;

	return ioctl(tcp(x)->fd, SIOCOUTQ, &n) || n < 0 ? 0 : n;
}

static int tcp_event_fd(struct pvfs_xprt *x)
{
	return tcp(x)->fd;
}

static void tcp_peer_name(struct pvfs_xprt *x, char *buf, size_t n)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&tcp(x)->ss;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&tcp(x)->ss;
	char ip[INET6_ADDRSTRLEN] = "?";

	if (v6->sin6_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof(ip));
		snprintf(buf, n, "[%s]:%u", ip, ntohs(v6->sin6_port));
	} else if (v6->sin6_family == AF_INET6) {
		inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], ip, sizeof(ip));
		snprintf(buf, n, "%s:%u", ip, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof(ip));
		snprintf(buf, n, "%s:%u", ip, ntohs(v4->sin_port));
	}
}

static void tcp_shutdown(struct pvfs_xprt *x)
{
	shutdown(tcp(x)->fd, SHUT_RDWR);
}

static void tcp_close(struct pvfs_xprt *x)
{
	close(tcp(x)->fd);
	free(tcp(x));
}

const struct pvfs_xprt_ops pvfs_tcp_ops = {
	.name = "tcp",
	.listen = tcp_listen,
	.accept = tcp_accept,
	.unlisten = tcp_unlisten,
	.connect = tcp_connect,
	.connected = tcp_connected,
	.sendv = tcp_sendv,
	.sendfile = tcp_sendfile,
	.recvv = tcp_recvv,
	.want = tcp_want,
	.unsent = tcp_unsent,
	.event_fd = tcp_event_fd,
	.peer_name = tcp_peer_name,
	.shutdown = tcp_shutdown,
	.close = tcp_close,
};
