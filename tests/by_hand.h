/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * by_hand.h - messages over a transport that is driven by hand, one after the other and waiting, for
 * programs that play a client. Included by one C file of a program, which has a die(const char *) of its
 * own that does not return.
 */
#ifndef PVFS_TESTS_BY_HAND_H
#define PVFS_TESTS_BY_HAND_H

#include "transport/transport.h"
#include <poll.h>

static inline bool ready(struct pvfs_xprt *x, short events, int ms)
{
	struct pollfd p = { .fd = x->ops->event_fd(x), .events = events };

	return poll(&p, 1, ms) == 1;
}

static inline void drain(struct pvfs_xprt *x)
{
	static u8 sink[1 << 16];
	struct iovec v = { sink, sizeof(sink) };

	while (x->ops->recvv(x, &v, 1) > 0)
		;
}

static inline bool send_all(struct pvfs_xprt *x, const u8 *p, size_t n)
{
	while (n) {
		struct iovec v = { (void *)p, n };
		ssize_t k = x->ops->sendv(x, &v, 1, false);

		if (k == -EAGAIN) {
			drain(x);
			if (!ready(x, POLLOUT | POLLIN, 10000))
				die("takes no bytes");
			continue;
		}
		if (k <= 0)
			return false;
		p += k;
		n -= k;
	}
	return true;
}

static inline bool recv_all(struct pvfs_xprt *x, void *p, size_t n)
{
	while (n) {
		struct iovec v = { p, n };
		ssize_t k = x->ops->recvv(x, &v, 1);

		if (k == -EAGAIN) {
			if (!ready(x, POLLIN, 10000))
				die("does not answer");
			continue;
		}
		if (k <= 0)
			return false;
		p = (u8 *)p + k;
		n -= k;
	}
	return true;
}

static inline bool send_msg(struct pvfs_xprt *x, u16 op, u32 flags, u32 tag, const u8 *body, u32 len)
{
	struct pvfs_header h = { .op = op, .flags = flags, .tag = tag, .body_len = len };
	struct pvfs_hdr hdr;

	h.body_crc = len ? pvfs_crc32c(0, body, len) : 0;
	pvfs_header_encode(&h, &hdr);
	return send_all(x, (u8 *)&hdr, sizeof(hdr)) && send_all(x, body, len);
}

static inline bool recv_msg(struct pvfs_xprt *x, struct pvfs_header *h, u8 *body, size_t room)
{
	struct pvfs_hdr hdr;

	return recv_all(x, &hdr, sizeof(hdr)) && !pvfs_header_decode(&hdr, h) && h->body_len <= room &&
	       !h->payload_len && recv_all(x, body, h->body_len);
}

#endif
