// SPDX-License-Identifier: GPL-2.0
/*
 * tcp_kern.c - the TCP transport in the kernel: a socket, its callbacks, and moving bytes without a
 * bounce buffer.
 *
 * Everything after the hello is non-blocking. Bulk data goes from its pages to the socket by a bvec
 * iterator (on kernels that can, the pages themselves are handed over) and from the socket into its
 * pages the same way.
 */
#include <linux/tcp.h>
#include <net/sock.h>
#include <net/tcp.h>
#include "conn.h"

int pvfs_tcp_connect(struct net *net, const struct sockaddr_storage *addr, unsigned int ms,
		     struct socket **ret)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(net, addr->ss_family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	pvfs_sk_hold_net(sock->sk);
	sock->sk->sk_allocation = GFP_NOFS;
	pvfs_sk_no_task_frag(sock->sk);
	tcp_sock_set_nodelay(sock->sk);
	/*
	 * A peer that vanished without a word is noticed in half a minute, with or without data on
	 * the way.
	 */
	sock_set_keepalive(sock->sk);
	tcp_sock_set_keepidle(sock->sk, 10);
	tcp_sock_set_keepintvl(sock->sk, 5);
	tcp_sock_set_keepcnt(sock->sk, 3);
	tcp_sock_set_user_timeout(sock->sk, 25000);
	sock->sk->sk_sndtimeo = msecs_to_jiffies(ms);
	err = kernel_connect(sock, (struct sockaddr *)addr,
			     addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
							   sizeof(struct sockaddr_in),
			     0);
	if (err == -EINPROGRESS || err == -EAGAIN)
		err = -ETIMEDOUT;
	if (err) {
		sock_release(sock);
		return err;
	}
	*ret = sock;
	return 0;
}

/* Lets the next call wait until @end, jiffies. Return: there is time left. */
static bool tcp_kern_time_left(long *timeo, unsigned long end)
{
	long left = end - jiffies;

	WRITE_ONCE(*timeo, max(left, 1l));
	return left > 0;
}

int pvfs_tcp_send_all(struct socket *sock, const void *p, size_t n, unsigned long end)
{
	while (n) {
		struct msghdr m = { .msg_flags = MSG_NOSIGNAL };
		struct kvec v = { .iov_base = (void *)p, .iov_len = n };
		int did;

		if (!tcp_kern_time_left(&sock->sk->sk_sndtimeo, end))
			return -ETIMEDOUT;
		did = kernel_sendmsg(sock, &m, &v, 1, n);
		if (did < 0)
			return did == -EAGAIN ? -ETIMEDOUT : did;
		p += did;
		n -= did;
	}
	return 0;
}

int pvfs_tcp_recv_all(struct socket *sock, void *p, size_t n, unsigned long end)
{
	while (n) {
		struct msghdr m = {};
		struct kvec v = { .iov_base = p, .iov_len = n };
		int did;

		if (!tcp_kern_time_left(&sock->sk->sk_rcvtimeo, end))
			return -ETIMEDOUT;
		did = kernel_recvmsg(sock, &m, &v, 1, n, 0);
		if (!did)
			return -ECONNRESET;
		if (did < 0)
			return did == -EAGAIN ? -ETIMEDOUT : did;
		p += did;
		n -= did;
	}
	return 0;
}

int pvfs_tcp_send(struct socket *sock, const void *a, u32 an, const void *b, u32 bn, bool more)
{
	struct msghdr m = { .msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0) };
	struct kvec v[2] = {
		{ .iov_base = (void *)a, .iov_len = an },
		{ .iov_base = (void *)b, .iov_len = bn },
	};
	int n = kernel_sendmsg(sock, &m, v, bn ? 2 : 1, an + bn);

	return n ?: -EAGAIN;
}

int pvfs_tcp_send_pages(struct socket *sock, const struct bio_vec *bv, unsigned int nbv, u32 skip,
			u32 n)
{
	struct msghdr m = { .msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT };
	int did;

	iov_iter_bvec(&m.msg_iter, ITER_SOURCE, bv, nbv, skip + n);
	iov_iter_advance(&m.msg_iter, skip);
	did = sock_sendmsg(sock, &m);
	return did ?: -EAGAIN;
}

bool pvfs_tcp_has_room(struct socket *sock)
{
	return sk_stream_is_writeable(sock->sk);
}

int pvfs_tcp_recv(struct socket *sock, void *p, u32 n)
{
	struct msghdr m = {};
	struct kvec v = { .iov_base = p, .iov_len = n };
	int did = kernel_recvmsg(sock, &m, &v, 1, n, MSG_DONTWAIT);

	return did ?: -ECONNRESET;
}

int pvfs_tcp_recv_pages(struct socket *sock, const struct bio_vec *bv, unsigned int nbv, u32 skip,
			u32 n)
{
	struct msghdr m = {};
	int did;

	iov_iter_bvec(&m.msg_iter, ITER_DEST, bv, nbv, skip + n);
	iov_iter_advance(&m.msg_iter, skip);
	did = sock_recvmsg(sock, &m, MSG_DONTWAIT);
	return did ?: -ECONNRESET;
}

/* ---- callbacks; softirq or process context ---- */

static void tcp_kern_data_ready(struct sock *sk)
{
	struct pvfs_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = sk->sk_user_data;
	if (c)
		pvfs_conn_readable(c);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void tcp_kern_write_space(struct sock *sk)
{
	struct pvfs_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = sk->sk_user_data;
	if (c && sk_stream_is_writeable(sk)) {
		if (sk->sk_socket)
			clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		smp_mb();	/* pairs with conn_send_all(): either sees what the other did */
		if (READ_ONCE(c->tx_full))
			pvfs_kpvfsd_kick(c);
	}
	read_unlock_bh(&sk->sk_callback_lock);
}

static void tcp_kern_state_change(struct sock *sk)
{
	struct pvfs_conn *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = sk->sk_user_data;
	/* The receive that follows finds out what it is. */
	if (c && sk->sk_state != TCP_ESTABLISHED)
		pvfs_kpvfsd_kick(c);
	read_unlock_bh(&sk->sk_callback_lock);
}

void pvfs_tcp_attach(struct pvfs_conn *c, struct socket *sock)
{
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	c->old_data_ready = sk->sk_data_ready;
	c->old_write_space = sk->sk_write_space;
	c->old_state_change = sk->sk_state_change;
	sk->sk_user_data = c;
	sk->sk_data_ready = tcp_kern_data_ready;
	sk->sk_write_space = tcp_kern_write_space;
	sk->sk_state_change = tcp_kern_state_change;
	write_unlock_bh(&sk->sk_callback_lock);
}

void pvfs_tcp_detach(struct pvfs_conn *c, struct socket *sock)
{
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = c->old_data_ready;
	sk->sk_write_space = c->old_write_space;
	sk->sk_state_change = c->old_state_change;
	write_unlock_bh(&sk->sk_callback_lock);
}
