// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * conn.c - framing: messages out of bytes and bytes out of messages. The rules of ownership are in
 * conn.h.
 *
 * Receiving goes through the thread's scratch memory for headers and bodies; a payload's bytes land
 * where they belong, and what follows them in the same read lands in the scratch memory. An idle
 * connection owns no buffer: a header that is there in part is kept in the structure, a body or
 * payload in part is where it belongs already. Only when the connection changes hands with whole
 * messages unread are these copied to a stash.
 *
 * Sending takes as many queued messages as fit one vectored send.
 */
#include "conn.h"
#include <stdlib.h>
#include <unistd.h>

#define TX_IOVS 64
#define RX_IOVS 16
#define WANT_MIN 4096u			/* bytes that are worth waiting for together, */
#define WANT_MAX 65536u			/* and enough to go on with */
#define RX_BUDGET 32			/* reads before others on this thread get their turn */
#define TX_COPY_LEN (64u << 10)

static void read_ready(struct pvfs_source *src, u32 events);
static void write_ready(struct pvfs_source *src, u32 events);

/* ---------------------------------------------------------------- life */

void pvfs_conn_init(struct pvfs_conn *c, struct pvfs_engine *e, struct pvfs_xprt *x,
		    const struct pvfs_conn_ops *ops)
{
	c->engine = e;
	c->xprt = x;
	c->ops = ops;
	atomic_init(&c->refs, 1);
	atomic_init(&c->progress, pvfs_now());
	c->wants = 1;
	c->in = (struct pvfs_source){ .fd = x->ops->event_fd(x), .ready = read_ready };
	c->out = (struct pvfs_source){ .fd = c->in.fd, .ready = write_ready };
	c->tx_tail = &c->tx_head;
	pthread_mutex_init(&c->tx_lock, NULL);
	x->ops->peer_name(x, c->name, sizeof(c->name));
	pvfs_engine_hold(e, 1);
}

int pvfs_conn_start(struct pvfs_conn *c, bool connecting)
{
	c->rx = connecting ? PVFS_RX_CONNECT : PVFS_RX_HEAD;
	return pvfs_engine_arm(c->engine, &c->in, connecting ? EPOLLOUT : EPOLLIN);
}

void pvfs_conn_get(struct pvfs_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

bool pvfs_conn_tryget(struct pvfs_conn *c)
{
	int n = atomic_load(&c->refs);

	while (n)
		if (atomic_compare_exchange_weak(&c->refs, &n, n + 1))
			return true;
	return false;
}

void pvfs_conn_put(struct pvfs_conn *c)
{
	struct pvfs_engine *e = c->engine;
	struct pvfs_xprt *x = c->xprt;

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&c->tx_lock);
	free(c->tx_copy);
	free(c->stash.mem);
	/* Before freed(): who waits for that may free the engine next. */
	pvfs_engine_hold(e, -1);
	/* Before the close: pvfs_conn_stalled() may be looking at it till then. */
	c->ops->freed(c);
	x->ops->close(x);
}

/**
 * pvfs_conn_kill - end a connection from outside
 * @c: the caller has a reference, or is in one of its callbacks
 *
 * Any thread; returns at once. Its reader ends it, on an engine thread: down() follows.
 */
void pvfs_conn_kill(struct pvfs_conn *c)
{
	if (atomic_exchange(&c->dead, true))
		return;
	c->xprt->ops->shutdown(c->xprt);
	pvfs_conn_resume(c);
}

/* ---------------------------------------------------------------- the other end's idleness */

static u64 load(atomic_ullong *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static bool stalled_in(struct pvfs_conn *c, u64 now, u64 limit)
{
	u64 bytes = load(&c->bytes_in), messages = load(&c->messages);
	struct pvfs_conn_watch *w = &c->watch;

	if (w->in_since && atomic_load_explicit(&c->rx_mid, memory_order_relaxed) &&
	    messages == w->in_messages && bytes - w->in_bytes < PVFS_STALL_BYTES)
		return now - w->in_since > limit;
	w->in_since = now;
	w->in_bytes = bytes;
	w->in_messages = messages;
	return false;
}

static bool stalled_out(struct pvfs_conn *c, u64 now, u64 limit)
{
	struct pvfs_conn_watch *w = &c->watch;
	u64 bytes;

	if (!atomic_load_explicit(&c->tx_full, memory_order_relaxed)) {
		w->out_since = 0;
		return false;
	}
	/* The transport takes much and tells of room in lumps: what counts is what has arrived. */
	bytes = load(&c->bytes_out) - c->xprt->ops->unsent(c->xprt);
	if (w->out_since && (s64)(bytes - w->out_bytes) < PVFS_STALL_BYTES)
		return now - w->out_since > limit;
	w->out_since = now;
	w->out_bytes = bytes;
	return false;
}

const char *pvfs_conn_stalled(struct pvfs_conn *c, u64 now, u64 limit)
{
	if (stalled_in(c, now, limit))
		return "it stopped in the middle of a message";
	if (stalled_out(c, now, limit))
		return "it does not take what it is sent";
	return NULL;
}

/*
 * ---------------------------------------------------------------- the receiving side changes hands
 */

/*
 * What was received and not looked at goes to the stash. False: no memory, the connection is as
 * good as dead.
 */
static bool put_by(struct pvfs_conn *c)
{
	struct pvfs_rbuf *rb = c->rb;
	u32 n = rb->end - rb->pos;

	c->rb = NULL;
	/* was the stash, and stays it while there is something in it */
	if (rb->mem != pvfs_engine_scratch()) {
		if (n) {
			c->stash = *rb;
		} else {
			free(rb->mem);
		}
	} else if (n) {
		c->stash.mem = malloc(n);
		if (!c->stash.mem) {
			c->why = "out of memory";
			pvfs_conn_kill(c);
			return false;
		}
		memcpy(c->stash.mem, rb->mem + rb->pos, n);
		c->stash.pos = 0;
		c->stash.end = n;
	}
	rb->mem = NULL;
	return true;
}

/*
 * In the middle of a payload a thread is woken for a good piece of it, not for each segment that comes. Not for
 * more than even a slow network brings within a second, as others look at whether anything moves.
 */
static void want_more(struct pvfs_conn *c)
{
	u32 left = c->rx == PVFS_RX_PAYLOAD ? c->h.payload_len - c->got : 0;
	u32 want = left > WANT_MIN ? min(left, WANT_MAX) : 1;

	if (want != c->wants && c->xprt->ops->want) {
		c->xprt->ops->want(c->xprt, want);
		c->wants = want;
	}
}

static void arm_reader(struct pvfs_conn *c)
{
	/*
	 * Bytes that are here already don't make the descriptor readable, nor need there be room to
	 * send.
	 */
	bool now = c->stash.mem || c->rx == PVFS_RX_DECIDE;

	atomic_store_explicit(&c->rx_mid, !now && (c->rx > PVFS_RX_HEAD || c->got),
			      memory_order_relaxed);
	if (!now)
		want_more(c);
	if (now) {
		pvfs_engine_post(c->engine, &c->in);
	} else if (pvfs_engine_arm(c->engine, &c->in, EPOLLIN)) {
		/*
		 * Out of memory in the kernel. Nobody will be told of what this connection sends:
		 * end it here.
		 */
		pvfs_conn_kill(c);
		c->why = "can't wait for it";
		c->ops->down(c, -ENOMEM);
		pvfs_conn_put(c);
	}
}

void pvfs_conn_release(struct pvfs_conn *c)
{
	put_by(c);
	arm_reader(c);
}

void pvfs_conn_park(struct pvfs_conn *c)
{
	put_by(c);
	atomic_store(&c->parked, true);
	/* Killed before it could be seen to be parked: then it's ours to wake. */
	if (atomic_load(&c->dead))
		pvfs_conn_resume(c);
}

void pvfs_conn_resume(struct pvfs_conn *c)
{
	if (atomic_exchange(&c->parked, false))
		arm_reader(c);
}

/* ---------------------------------------------------------------- receiving */

static int broken(struct pvfs_conn *c, int err, const char *why)
{
	c->why = why;
	return err;
}

/* Payload bytes: @n of them have just been put where iov_now() said. */
static void pay_advance(struct pvfs_conn *c, u32 n)
{
	c->got += n;
	while (n) {
		const struct iovec *v = &c->pay[c->pay_i];
		u32 k = min((size_t)n, v->iov_len - c->pay_off);

		if (c->h.flags & PVFS_HF_PAYLOAD_CRC)
			c->crc = pvfs_crc32c(c->crc, (u8 *)v->iov_base + c->pay_off, k);
		c->pay_off += k;
		n -= k;
		if (c->pay_off == v->iov_len) {
			c->pay_i++;
			c->pay_off = 0;
		}
	}
}

/* Where the next payload bytes go: at most @max entries for what is missing. */
static int pay_iov(const struct pvfs_conn *c, struct iovec *iov, int max)
{
	size_t left = c->h.payload_len - c->got, off = c->pay_off;
	int i = c->pay_i, n = 0;

	for (; left && n < max && i < c->npay; i++, off = 0) {
		size_t k = min(left, c->pay[i].iov_len - off);

		if (!k)
			continue;
		iov[n].iov_base = (u8 *)c->pay[i].iov_base + off;
		iov[n++].iov_len = k;
		left -= k;
	}
	return n;
}

static int take_head(struct pvfs_conn *c)
{
	int err = pvfs_header_decode(&c->hbuf, &c->h);

	c->got = 0;
	c->t_head = atomic_load_explicit(&c->progress, memory_order_relaxed);
	switch (err) {
	case -EPROTO:
		return broken(c, err, "does not speak this protocol");
	case -EBADMSG:
		return broken(c, err, "damaged header");
	case -EMSGSIZE:
		return broken(c, err, "header over a limit");
	}
	return 0;	/* an operation we don't know is for the owner to refuse */
}

static int take_body(struct pvfs_conn *c, u32 n)
{
	struct pvfs_rbuf *rb = c->rb;

	n = min(n, rb->end - rb->pos);
	c->crc = pvfs_crc32c(c->crc, rb->mem + rb->pos, n);
	if (c->body)
		memcpy(c->body + c->got, rb->mem + rb->pos, n);
	c->got += n;
	rb->pos += n;
	if (c->got < c->h.body_len)
		return 0;
	if (c->h.body_len ? c->crc != c->h.body_crc : c->h.body_crc)
		return broken(c, -EBADMSG, "damaged body");
	c->got = c->crc = 0;
	c->pay_i = c->pay_off = 0;
	c->rx = c->ops->payload && c->h.payload_len ? PVFS_RX_WANT : PVFS_RX_PAYLOAD;
	return 1;
}

/* Payload bytes that are in the buffer already. */
static void take_payload(struct pvfs_conn *c)
{
	struct pvfs_rbuf *rb = c->rb;
	struct iovec v;
	u32 n;

	while (rb->pos < rb->end && c->got < c->h.payload_len) {
		n = min(rb->end - rb->pos, c->h.payload_len - c->got);
		if (!c->npay) {
			if (c->h.flags & PVFS_HF_PAYLOAD_CRC)
				c->crc = pvfs_crc32c(c->crc, rb->mem + rb->pos, n);
			c->got += n;
		} else {
			if (!pay_iov(c, &v, 1))
				return;
			n = min((size_t)n, v.iov_len);
			memcpy(v.iov_base, rb->mem + rb->pos, n);
			pay_advance(c, n);
		}
		rb->pos += n;
	}
}

/*
 * Uses up what is in the buffer. 0: more bytes are needed; 1: released or parked; -errno: to be
 * ended.
 */
static int consume(struct pvfs_conn *c)
{
	struct pvfs_rbuf *rb = c->rb;
	u32 n;
	int err;

	for (;;) {
		switch (c->rx) {
		case PVFS_RX_CONNECT:
			return -EIO;	/* read_ready() is past that */
		case PVFS_RX_HEAD:
			if (atomic_load_explicit(&c->dead, memory_order_relaxed))
				return -ECONNABORTED;
			n = min(PVFS_HDR_LEN - c->got, rb->end - rb->pos);
			memcpy((u8 *)&c->hbuf + c->got, rb->mem + rb->pos, n);
			rb->pos += n;
			c->got += n;
			if (c->got < PVFS_HDR_LEN)
				return 0;
			err = take_head(c);
			if (err)
				return err;
			c->rx = PVFS_RX_DECIDE;
			fallthrough;
		case PVFS_RX_DECIDE:
			/* It may have been parked, and killed meanwhile. */
			if (atomic_load_explicit(&c->dead, memory_order_relaxed))
				return -ECONNABORTED;
			c->body = NULL;
			c->npay = 0;
			c->got = c->crc = 0;
			err = c->ops->head(c);
			if (err)
				return err;
			c->rx = PVFS_RX_BODY;
			fallthrough;
		case PVFS_RX_BODY:
			err = take_body(c, c->h.body_len - c->got);
			if (err <= 0)
				return err;
			fallthrough;
		case PVFS_RX_WANT:
			if (c->rx == PVFS_RX_WANT) {
				if (atomic_load_explicit(&c->dead, memory_order_relaxed))
					return -ECONNABORTED;
				if (rb->pos == rb->end)
					return 0;
				err = c->ops->payload(c);
				if (err)
					return err;
				c->rx = PVFS_RX_PAYLOAD;
			}
			fallthrough;
		case PVFS_RX_PAYLOAD:
			take_payload(c);
			if (c->got < c->h.payload_len)
				return 0;
			if ((c->h.flags & PVFS_HF_PAYLOAD_CRC) && c->crc != c->h.payload_crc)
				return broken(c, -EBADMSG, "damaged payload");
			c->rx = PVFS_RX_HEAD;
			c->got = 0;
			atomic_fetch_add_explicit(&c->messages, 1, memory_order_relaxed);
			err = c->ops->message(c);
			if (err)
				return err;
		}
	}
}

/*
 * Reads: payload to its place, the rest to the buffer, which is empty. Return: bytes, 0 at the end,
 * -errno.
 */
static ssize_t fill(struct pvfs_conn *c, bool *ret_short)
{
	struct iovec iov[RX_IOVS];
	struct pvfs_rbuf *rb = c->rb;
	size_t direct = 0, room = PVFS_SCRATCH_LEN;
	int n = 0, i;
	ssize_t k;

	if (rb->mem != pvfs_engine_scratch()) {
		free(rb->mem);
		rb->mem = pvfs_engine_scratch();
	}
	rb->pos = rb->end = 0;
	if (c->rx == PVFS_RX_PAYLOAD && c->npay)
		n = pay_iov(c, iov, RX_IOVS - 1);
	for (i = 0; i < n; i++)
		direct += iov[i].iov_len;
	if (!n || c->got + direct == c->h.payload_len) {
		iov[n].iov_base = rb->mem;
		iov[n++].iov_len = room;
	} else {
		room = 0;
	}
	k = c->xprt->ops->recvv(c->xprt, iov, n);
	if (k <= 0)
		return k;
	*ret_short = (size_t)k < direct + room;
	atomic_fetch_add_explicit(&c->bytes_in, k, memory_order_relaxed);
	atomic_store_explicit(&c->progress, pvfs_now(), memory_order_relaxed);
	direct = min(direct, (size_t)k);
	if (direct)
		pay_advance(c, direct);
	rb->end = k - direct;
	return k;
}

/* The reader's end. */
static void end_reader(struct pvfs_conn *c, struct pvfs_rbuf *rb, int err)
{
	if (rb->mem != pvfs_engine_scratch())
		free(rb->mem);
	c->rb = NULL;
	c->mid = c->rx > PVFS_RX_HEAD || (c->rx == PVFS_RX_HEAD && c->got);
	pvfs_conn_kill(c);
	c->ops->down(c, err);
	pvfs_conn_put(c);
}

static int finish_connect(struct pvfs_conn *c)
{
	int err;

	if (atomic_load(&c->dead))
		return -ECANCELED;
	err = c->xprt->ops->connected(c->xprt);
	if (err)
		return err;
	c->rx = PVFS_RX_HEAD;
	return c->ops->connected(c);
}

static void read_ready(struct pvfs_source *src, u32 events)
{
	struct pvfs_conn *c = container_of(src, struct pvfs_conn, in);
	struct pvfs_rbuf rb = { .mem = pvfs_engine_scratch() };
	int budget = RX_BUDGET, err;
	bool drained = false;
	ssize_t k;

	c->rb = &rb;
	atomic_store_explicit(&c->rx_mid, false, memory_order_relaxed);
	if (c->rx == PVFS_RX_CONNECT) {
		err = finish_connect(c);
		if (err)
			end_reader(c, &rb, err);
		else
			pvfs_conn_release(c);
		return;
	}
	if (c->stash.mem) {
		rb = c->stash;
		c->stash.mem = NULL;
	}
	for (;;) {
		if (rb.pos < rb.end || c->rx == PVFS_RX_DECIDE) {
			err = consume(c);
			if (err == 1)
				return;
			if (err) {
				end_reader(c, &rb, err);
				return;
			}
		}
		if (atomic_load(&c->dead)) {
			end_reader(c, &rb, -ECONNABORTED);
			return;
		}
		if (drained || !budget--) {
			pvfs_conn_release(c);
			return;
		}
		k = fill(c, &drained);
		if (k == -EAGAIN) {
			pvfs_conn_release(c);
			return;
		}
		if (k <= 0) {
			end_reader(c, &rb, k);
			return;
		}
		/* A payload that ended with the read, no byte behind it, is complete too. */
		if (rb.pos == rb.end && c->rx == PVFS_RX_PAYLOAD && c->got == c->h.payload_len) {
			err = consume(c);
			if (err == 1)
				return;
			if (err) {
				end_reader(c, &rb, err);
				return;
			}
		}
	}
}

/* ---------------------------------------------------------------- sending */

static u64 mem_len(const struct pvfs_send *s)
{
	return s->fd_len ? PVFS_HDR_LEN + s->body_len : s->total;
}

/* Adds the part of @v that lies behind @skip bytes, which is counted down. */
static void gather_one(const void *p, size_t len, u64 *skip, struct iovec *iov, int *n)
{
	if (*skip >= len) {
		*skip -= len;
		return;
	}
	iov[*n].iov_base = (u8 *)p + *skip;
	iov[(*n)++].iov_len = len - *skip;
	*skip = 0;
}

/* Queue lock held. Entries for what can go in one send; none when a file's bytes are next. */
static int gather(struct pvfs_conn *c, struct iovec *iov, bool *ret_more)
{
	struct pvfs_send *s;
	u64 skip = c->tx_off;
	int n = 0, i;

	*ret_more = false;
	for (s = c->tx_head; s; s = s->next) {
		if (n + 2 > TX_IOVS) {
			*ret_more = true;
			break;
		}
		gather_one(&s->hdr, PVFS_HDR_LEN, &skip, iov, &n);
		gather_one(s->body, s->body_len, &skip, iov, &n);
		for (i = 0; i < s->npay && n < TX_IOVS; i++)
			gather_one(s->pay[i].iov_base, s->pay[i].iov_len, &skip, iov, &n);
		if (s->fd_len || i < s->npay) {
			*ret_more = true;
			break;
		}
	}
	return n;
}

/* File bytes by way of memory. */
static ssize_t send_copied(struct pvfs_conn *c, struct pvfs_send *s, off_t off, size_t n)
{
	struct iovec iov;
	ssize_t k;

	if (c->tx_copy_pos == c->tx_copy_len) {
		if (!c->tx_copy)
			c->tx_copy = malloc(TX_COPY_LEN);
		if (!c->tx_copy)
			return -ENOMEM;
		k = pread(s->fd, c->tx_copy, min(n, (size_t)TX_COPY_LEN), off);
		if (k <= 0)
			return k < 0 ? -errno : 0;
		c->tx_copy_pos = 0;
		c->tx_copy_len = k;
	}
	iov.iov_base = c->tx_copy + c->tx_copy_pos;
	iov.iov_len = c->tx_copy_len - c->tx_copy_pos;
	k = c->xprt->ops->sendv(c->xprt, &iov, 1, iov.iov_len < n);
	if (k > 0)
		c->tx_copy_pos += k;
	return k;
}

static ssize_t send_file(struct pvfs_conn *c, struct pvfs_send *s)
{
	u64 done = c->tx_off - mem_len(s);
	size_t left = s->fd_len - done;
	off_t off = s->off + done;
	ssize_t k;

	if (c->xprt->ops->sendfile)
		k = c->xprt->ops->sendfile(c->xprt, s->fd, &off, left);
	else
		k = send_copied(c, s, off, left);
	/* The header promised the length; the peer asks again, on another connection. */
	return k ?: -ENODATA;
}

/* @k more bytes are out: messages that are complete leave the queue. */
static void tx_advance(struct pvfs_conn *c, u64 k)
{
	struct pvfs_send *s, *gone = NULL, **tail = &gone;

	pthread_mutex_lock(&c->tx_lock);
	c->tx_off += k;
	while ((s = c->tx_head) && c->tx_off >= s->total) {
		c->tx_off -= s->total;
		c->tx_head = s->next;
		if (!c->tx_head)
			c->tx_tail = &c->tx_head;
		s->next = NULL;
		*tail = s;
		tail = &s->next;
	}
	pthread_mutex_unlock(&c->tx_lock);
	while (gone) {
		s = gone;
		gone = s->next;
		s->done(s, 0);
		pvfs_conn_put(c);
	}
}

static void tx_fail(struct pvfs_conn *c, int err)
{
	struct pvfs_send *s, *list;

	pthread_mutex_lock(&c->tx_lock);
	list = c->tx_head;
	c->tx_head = NULL;
	c->tx_tail = &c->tx_head;
	c->tx_dead = true;
	c->tx_busy = false;
	pthread_mutex_unlock(&c->tx_lock);
	pvfs_conn_kill(c);
	while (list) {
		s = list;
		list = s->next;
		s->done(s, err);
		pvfs_conn_put(c);
	}
}

/* The caller owns the sending side and has a reference. */
static void tx_run(struct pvfs_conn *c)
{
	struct iovec iov[TX_IOVS];
	bool more;
	ssize_t k;
	int n;

	for (;;) {
		pthread_mutex_lock(&c->tx_lock);
		if (!c->tx_head) {
			c->tx_busy = false;
			pthread_mutex_unlock(&c->tx_lock);
			return;
		}
		n = gather(c, iov, &more);
		pthread_mutex_unlock(&c->tx_lock);
		k = n ? c->xprt->ops->sendv(c->xprt, iov, n, more) : send_file(c, c->tx_head);
		if (k > 0) {
			atomic_fetch_add_explicit(&c->bytes_out, k, memory_order_relaxed);
			atomic_store_explicit(&c->progress, pvfs_now(), memory_order_relaxed);
			tx_advance(c, k);
			continue;
		}
		if (k == -EAGAIN) {
			pvfs_conn_get(c);
			atomic_store_explicit(&c->tx_full, true, memory_order_relaxed);
			k = pvfs_engine_arm_out(c->engine, &c->out);
			if (!k)
				return;
			pvfs_conn_put(c);
		}
		tx_fail(c, k ?: -EPIPE);
		return;
	}
}

static void write_ready(struct pvfs_source *src, u32 events)
{
	struct pvfs_conn *c = container_of(src, struct pvfs_conn, out);

	atomic_store_explicit(&c->tx_full, false, memory_order_relaxed);
	tx_run(c);
	pvfs_conn_put(c);
}

void pvfs_conn_send(struct pvfs_conn *c, struct pvfs_send *s)
{
	bool mine;
	int i;

	s->next = NULL;
	s->total = PVFS_HDR_LEN + s->body_len + s->fd_len;
	for (i = 0; i < s->npay; i++)
		s->total += s->pay[i].iov_len;
	pthread_mutex_lock(&c->tx_lock);
	if (c->tx_dead || atomic_load(&c->dead)) {
		pthread_mutex_unlock(&c->tx_lock);
		s->done(s, -ENOTCONN);
		return;
	}
	pvfs_conn_get(c);
	*c->tx_tail = s;
	c->tx_tail = &s->next;
	mine = !c->tx_busy;
	c->tx_busy = true;
	/* done() may drop the caller's reference, and that of @s goes with it. */
	if (mine)
		pvfs_conn_get(c);
	pthread_mutex_unlock(&c->tx_lock);
	if (mine) {
		tx_run(c);
		pvfs_conn_put(c);
	}
}
