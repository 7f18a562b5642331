// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * loop.c - the in-process transport, "loop:name", with faults to order. For tests and fuzzing.
 *
 * Bytes go through a socket pair, so that events mean what they mean for TCP; the faults of struct
 * pvfs_loop_faults are worked in on the way. Faults belong to the name and act on connections that
 * exist, too.
 *
 * A stalled connection is like a cable pulled: what is sent meanwhile is gone. When the stall ends
 * the connection is found to be broken at the next send.
 */
#include "transport.h"
#include <pthread.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NAME_MAX_LEN 63

/* All that share a name. Never freed: tests use a handful of names. */
struct loop_name {
	char name[NAME_MAX_LEN + 1];
	struct pvfs_loop_faults faults;
	struct loop_listener *listener;
	struct loop_name *next;
};

/* What the two ends of a connection share. */
struct loop_pair {
	int refs;
	u64 bytes;			/* sent by both ends */
	bool lost, cut;
	struct loop_name *name;
};

struct loop_xprt {
	struct pvfs_xprt x;
	int fd;
	struct loop_pair *pair;
	struct loop_xprt *next;		/* in a listener's queue */
};

struct loop_listener {
	struct loop_name *name;
	int fd;
	int waiting, backlog;
	struct loop_xprt *head, **tail;
};

/* protects all of the above but fd and x */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop_name *names;

static struct loop_xprt *loop(struct pvfs_xprt *x)
{
	return container_of(x, struct loop_xprt, x);
}

/* Lock held. */
static struct loop_name *name_get(const char *text)
{
	struct loop_name *n;

	if (!strncmp(text, "loop:", 5))
		text += 5;
	for (n = names; n; n = n->next)
		if (!strncmp(n->name, text, NAME_MAX_LEN))
			return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	snprintf(n->name, sizeof(n->name), "%s", text);
	n->next = names;
	names = n;
	return n;
}

void pvfs_loop_set_faults(const char *name, const struct pvfs_loop_faults *f)
{
	struct loop_name *n;

	pthread_mutex_lock(&lock);
	n = name_get(name);
	if (n)
		n->faults = *f;
	pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- listening and connecting */

static int loop_listen(const struct pvfs_addr *a, int backlog, void **ret_listener, int *ret_fd)
{
	struct loop_listener *l = calloc(1, sizeof(*l));
	int err = -ENOMEM;

	if (!l)
		return -ENOMEM;
	l->tail = &l->head;
	l->backlog = backlog;
	l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->fd < 0) {
		err = -errno;
		free(l);
		return err;
	}
	pthread_mutex_lock(&lock);
	l->name = name_get(a->text);
	if (l->name && l->name->listener)
		err = -EADDRINUSE;
	else if (l->name)
		err = 0;
	if (!err)
		l->name->listener = l;
	pthread_mutex_unlock(&lock);
	if (err) {
		close(l->fd);
		free(l);
		return err;
	}
	*ret_listener = l;
	*ret_fd = l->fd;
	return 0;
}

static void loop_close(struct pvfs_xprt *x);

static void loop_unlisten(void *listener)
{
	struct loop_listener *l = listener;
	struct loop_xprt *t;

	pthread_mutex_lock(&lock);
	l->name->listener = NULL;
	pthread_mutex_unlock(&lock);
	while (l->head) {
		t = l->head;
		l->head = t->next;
		loop_close(&t->x);
	}
	close(l->fd);
	free(l);
}

static int loop_accept(void *listener, struct pvfs_xprt **ret)
{
	struct loop_listener *l = listener;
	struct loop_xprt *t;
	u64 count;

	pthread_mutex_lock(&lock);
	t = l->head;
	if (t) {
		l->head = t->next;
		if (!l->head)
			l->tail = &l->head;
		l->waiting--;
	} else if (read(l->fd, &count, sizeof(count)) < 0) {
		count = 0;	/* it was not readable: nothing to take back */
	}
	pthread_mutex_unlock(&lock);
	if (!t)
		return -EAGAIN;
	*ret = &t->x;
	return 0;
}

static struct loop_xprt *end_new(struct loop_pair *p, int fd)
{
	struct loop_xprt *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->x.ops = &pvfs_loop_ops;
	t->fd = fd;
	t->pair = p;
	return t;
}

static int loop_connect(const struct pvfs_addr *a, struct pvfs_xprt **ret)
{
	struct loop_xprt *mine = NULL, *theirs = NULL;
	struct loop_pair *p;
	struct loop_name *n;
	u64 one = 1;
	int fd[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd))
		return -errno;
	p = calloc(1, sizeof(*p));
	if (p) {
		mine = end_new(p, fd[0]);
		theirs = end_new(p, fd[1]);
	}
	err = -ENOMEM;
	if (!mine || !theirs)
		goto fail;
	p->refs = 2;
	pthread_mutex_lock(&lock);
	n = name_get(a->text);
	p->name = n;
	if (!n)
		err = -ENOMEM;
	else if (n->faults.refuse || !n->listener || n->listener->waiting >= n->listener->backlog)
		err = -ECONNREFUSED;
	else if (write(n->listener->fd, &one, sizeof(one)) != sizeof(one))
		err = -errno;
	else
		err = 0;
	if (!err) {
		*n->listener->tail = theirs;
		n->listener->tail = &theirs->next;
		n->listener->waiting++;
	}
	pthread_mutex_unlock(&lock);
	if (err)
		goto fail;
	*ret = &mine->x;
	return 0;
fail:
	free(mine);
	free(theirs);
	free(p);
	close(fd[0]);
	close(fd[1]);
	return err;
}

static int loop_connected(struct pvfs_xprt *x)
{
	return 0;
}

/* ---------------------------------------------------------------- bytes */

/* The first @max bytes of @iov as a list in @out, which has as much room. Return: entries. */
static int limit(const struct iovec *iov, int n, size_t max, struct iovec *out, size_t *ret_total)
{
	int i;

	*ret_total = 0;
	for (i = 0; i < n && max; i++) {
		out[i] = iov[i];
		out[i].iov_len = min(out[i].iov_len, max);
		max -= out[i].iov_len;
		*ret_total += out[i].iov_len;
	}
	return i;
}

static ssize_t send_flipped(int fd, const struct iovec *iov, int n, size_t total, u64 at)
{
	u8 *copy = malloc(total);
	size_t pos = 0;
	ssize_t k;
	int i;

	if (!copy)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		memcpy(copy + pos, iov[i].iov_base, iov[i].iov_len);
		pos += iov[i].iov_len;
	}
	copy[at] ^= 1 << (at % 8);
	k = send(fd, copy, total, MSG_NOSIGNAL | MSG_DONTWAIT);
	k = k < 0 ? -errno : k;
	free(copy);
	return k;
}

static ssize_t loop_sendv(struct pvfs_xprt *x, const struct iovec *iov, int n, bool more)
{
	struct loop_xprt *t = loop(x);
	struct loop_pair *p = t->pair;
	struct iovec part[n ?: 1];
	struct msghdr m = { .msg_iov = part };
	struct pvfs_loop_faults f;
	size_t max = SIZE_MAX, total;
	ssize_t k;

	/*
	 * The lock is held over the send: both ends count and cut at one place. It does not block.
	 */
	pthread_mutex_lock(&lock);
	f = p->name->faults;
	if (p->cut || (p->lost && !f.stall)) {
		shutdown(t->fd, SHUT_RDWR);
		k = -ECONNRESET;
		goto out;
	}
	if (f.max_io)
		max = f.max_io;
	if (f.cut_after)
		max = min(max,
			  f.cut_after > p->bytes ? (size_t)(f.cut_after - p->bytes) : (size_t)0);
	m.msg_iovlen = limit(iov, n, max, part, &total);
	if (f.stall) {
		p->lost = true;
		k = total;
	} else if (!max) {
		p->cut = true;
		shutdown(t->fd, SHUT_RDWR);
		k = -ECONNRESET;
	} else if (f.flip_at > p->bytes && f.flip_at <= p->bytes + total) {
		k = send_flipped(t->fd, part, m.msg_iovlen, total, f.flip_at - p->bytes - 1);
	} else {
		k = sendmsg(t->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		k = k < 0 ? -errno : k;
	}
	if (k > 0)
		p->bytes += k;
	/*
	 * Right away, not at the next send, which may never come. What was sent can still be read.
	 */
	if (f.cut_after && p->bytes >= f.cut_after && !p->cut) {
		p->cut = true;
		shutdown(t->fd, SHUT_RDWR);
	}
out:
	pthread_mutex_unlock(&lock);
	return k;
}

static ssize_t loop_recvv(struct pvfs_xprt *x, const struct iovec *iov, int n)
{
	struct iovec part[n ?: 1];
	struct msghdr m = { .msg_iov = part };
	size_t max, total;
	ssize_t k;

	pthread_mutex_lock(&lock);
	max = loop(x)->pair->name->faults.max_io ?: SIZE_MAX;
	pthread_mutex_unlock(&lock);
	m.msg_iovlen = limit(iov, n, max, part, &total);
	k = recvmsg(loop(x)->fd, &m, MSG_DONTWAIT);
	return k < 0 ? -errno : k;
}

static u64 loop_unsent(struct pvfs_xprt *x)
{
	int n = 0;

	return ioctl(loop(x)->fd, SIOCOUTQ, &n) || n < 0 ? 0 : n;
}

static int loop_event_fd(struct pvfs_xprt *x)
{
	return loop(x)->fd;
}

static void loop_peer_name(struct pvfs_xprt *x, char *buf, size_t n)
{
	snprintf(buf, n, "loop:%s", loop(x)->pair->name->name);
}

static void loop_shutdown(struct pvfs_xprt *x)
{
	shutdown(loop(x)->fd, SHUT_RDWR);
}

static void loop_close(struct pvfs_xprt *x)
{
	struct loop_xprt *t = loop(x);
	bool last;

	close(t->fd);
	pthread_mutex_lock(&lock);
	last = !--t->pair->refs;
	pthread_mutex_unlock(&lock);
	if (last)
		free(t->pair);
	free(t);
}

const struct pvfs_xprt_ops pvfs_loop_ops = {
	.name = "loop",
	.listen = loop_listen,
	.accept = loop_accept,
	.unlisten = loop_unlisten,
	.connect = loop_connect,
	.connected = loop_connected,
	.sendv = loop_sendv,
	.recvv = loop_recvv,
	.unsent = loop_unsent,
	.event_fd = loop_event_fd,
	.peer_name = loop_peer_name,
	.shutdown = loop_shutdown,
	.close = loop_close,
};
