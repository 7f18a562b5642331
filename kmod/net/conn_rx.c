// SPDX-License-Identifier: GPL-2.0
/*
 * conn_rx.c - what comes in on a channel: replies, requests of the server's, and the tasks that
 * wait for them.
 *
 * The bytes are read by whoever waits for a reply there, or by the channel's thread (see conn.c), a
 * part at a time and without waiting: header, body, payload, each straight into the memory where it
 * is wanted.
 */
#include <linux/highmem.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include "conn.h"
#include "trace.h"

#define POLL_BYTES 16384u		/* larger transfers are not polled for */
#define POLL_WAKES 8u			/* for how many times as long as a wake-up takes */
#define READER_MS 10u			/* that a reader may take to look at what has come */

static unsigned int poll_us = 1000;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us,
		 "longest time to poll for a reply on a CPU that is idle otherwise, microseconds; 0: never");

/* ---------------------------------------------------------------- receiving; rx_mutex held */

/* 1: @n bytes are in @p; 0: not yet; -errno. */
static int rx_part(struct pvfs_conn *c, void *p, u32 n)
{
	int got;

	while (c->rx_done < n) {
		got = pvfs_tcp_recv(c->sock, p + c->rx_done, n - c->rx_done);
		if (got < 0)
			return got == -EAGAIN ? 0 : got;
		c->rx_done += got;
	}
	return 1;
}

/* Reads and throws away up to the end of a part of @n bytes. */
static int rx_discard(struct pvfs_conn *c, u32 n)
{
	int got;

	while (c->rx_done < n) {
		got = pvfs_tcp_recv(c->sock, c->rx_small,
				    min_t(u32, n - c->rx_done, sizeof(c->rx_small)));
		if (got < 0)
			return got == -EAGAIN ? 0 : got;
		c->rx_done += got;
	}
	return 1;
}

static int rx_protocol_error(struct pvfs_conn *c, const char *what)
{
	pr_warn_ratelimited("%s: %s sent %s (%s, tag %u): connection closed\n",
			    c->server->vol->opts.volume, c->server->name, what,
			    pvfs_op_name(c->rx_head.op), c->rx_head.tag);
	return -EPROTO;
}

/* A header is in: whose is it? */
static int rx_header(struct pvfs_conn *c)
{
	struct pvfs_header *h = &c->rx_head;
	struct pvfs_request *req;
	int err = pvfs_header_decode(&c->rx_hdr, h);

	if (err && err != -EOPNOTSUPP) {
		memset(h, 0, sizeof(*h));
		return rx_protocol_error(c, "a damaged or foreign header");
	}
	c->rx_req = NULL;
	c->rx_discard = false;
	if (!(h->flags & PVFS_HF_REPLY)) {
		if (!(h->flags & PVFS_HF_CALLBACK))
			return rx_protocol_error(c, "a request that is not a callback");
		if (h->body_len > sizeof(c->rx_small) || h->payload_len)
			return rx_protocol_error(c, "too large a callback");
		return 0;
	}
	if (h->flags & PVFS_HF_PAYLOAD_CRC)	/* would have to be checked */
		return rx_protocol_error(c, "a checksum that was not asked for");
	spin_lock_bh(&c->lock);
	req = pvfs_tag_find(c, h->tag);
	if (req && req->op == h->op) {
		if (req->detached)
			c->rx_discard = true;
		else
			c->rx_req = req;
	}
	spin_unlock_bh(&c->lock);
	if (!c->rx_req && !c->rx_discard)
		return rx_protocol_error(c, "a reply nobody waits for");
	if (c->rx_req &&
	    (h->body_len > req->rep_room || h->payload_len > (req->write ? 0 : req->bv_len)))
		return rx_protocol_error(c, "too large a reply");
	return 0;
}

static int rx_queue_answer(struct pvfs_conn *c, int status)
{
	struct pvfs_header h = {
		.op = c->rx_head.op,
		.flags = PVFS_HF_REPLY | PVFS_HF_CALLBACK,
		.tag = c->rx_head.tag,
		.session = c->rx_head.session,
		.status = pvfs_errno_to_wire(status),
	};
	struct pvfs_answer *a = kmalloc(sizeof(*a), GFP_NOFS);
	struct pvfs_ping_rep pong = {};
	bool room;
	int n = 0;

	if (!a)
		return -ENOMEM;
	if (h.op == PVFS_OP_PING && !status) {
		struct timespec64 now;

		ktime_get_real_ts64(&now);
		pong.now.sec = now.tv_sec;
		pong.now.nsec = now.tv_nsec;
		n = pvfs_ping_rep_encode(&pong, a->bytes + PVFS_HDR_LEN,
					 sizeof(a->bytes) - PVFS_HDR_LEN);
		h.body_len = n;
		h.body_crc = pvfs_crc32c(0, a->bytes + PVFS_HDR_LEN, n);
	}
	pvfs_header_encode(&h, (struct pvfs_hdr *)a->bytes);
	a->len = PVFS_HDR_LEN + n;
	spin_lock_bh(&c->lock);
	room = c->nanswers < PVFS_CHAN_ANSWERS;
	if (room) {
		list_add_tail(&a->link, &c->answers);
		c->nanswers++;
	}
	spin_unlock_bh(&c->lock);
	if (!room) {
		kfree(a);
		return rx_protocol_error(c, "callbacks faster than it takes answers");
	}
	return 0;
}

/* A request from the server. Return: 0 or -errno, for the answer. */
static int rx_callback(struct pvfs_conn *c)
{
	struct pvfs_volume *vol = c->server->vol;
	struct pvfs_lock_grant_req grant;
	struct pvfs_recall_req recall;
	struct pvfs_settle_req settle;
	struct pvfs_yield_req yield;
	u32 len = c->rx_head.body_len;
	int err;

	if (c->rx_head.op == PVFS_OP_PING)
		return 0;
	if (c->server->role != PVFS_ROLE_MGR)
		return -EOPNOTSUPP;
	switch (c->rx_head.op) {
	case PVFS_OP_LOCK_GRANT:
		err = pvfs_lock_grant_req_decode(&grant, c->rx_small, len);
		return err ?: vol->ops->lock_granted(vol, &grant);
	case PVFS_OP_RECALL:
		err = pvfs_recall_req_decode(&recall, c->rx_small, len);
		return err ?: vol->ops->recall(vol, &recall);
	case PVFS_OP_SETTLE:
		err = pvfs_settle_req_decode(&settle, c->rx_small, len);
		return err ?: vol->ops->settle(vol, &settle);
	case PVFS_OP_YIELD:
		err = pvfs_yield_req_decode(&yield, c->rx_small, len);
		return err ?: vol->ops->yield(vol, &yield);
	default:
		return -EOPNOTSUPP;
	}
}

/* A whole message is in. 1: dealt with; 0: not now, kicked for another try; -errno. */
static int rx_message(struct pvfs_conn *c)
{
	struct pvfs_header *h = &c->rx_head;
	struct pvfs_request *req;
	bool forget;

	if (!(h->flags & PVFS_HF_REPLY))
		return rx_queue_answer(c, -rx_callback(c)) ?: 1;

	/* `posted' and the tag table change under rx_mutex only, so the request is still there. */
	req = pvfs_tag_find(c, h->tag);
	if (smp_load_acquire(&c->tx_req) == req) {	/* pairs with conn_send_request() */
		/*
		 * Its last bytes went out a moment ago and the sender has not looked up yet - or
		 * the server answers what it has not read. The sender's mutex tells which; it is
		 * never held for long.
		 */
		if (!mutex_trylock(&c->tx_mutex)) {
			pvfs_kpvfsd_kick(c);
			return 0;
		}
		forget = c->tx_req == req;
		mutex_unlock(&c->tx_mutex);
		if (forget)
			return rx_protocol_error(c, "a reply before the request was out");
	}
	spin_lock_bh(&c->lock);
	if (h->credits)
		c->credits = min_t(u32, h->credits, PVFS_CHAN_TAGS);
	pvfs_tag_drop(c, req);
	forget = req->detached;
	if (h->status == pvfs_errno_to_wire(EAGAIN) && req->has_slot && !forget &&
	    c->state == PVFS_CONN_UP) {
		/* Not now, says the mgr: the same request again after a pause. */
		pvfs_req_set_state(req, PVFS_REQ_QUEUED);
		req->resend = true;
		list_move_tail(&req->link, &c->later);
		pvfs_conn_come_back(c);
		spin_unlock_bh(&c->lock);
		c->rx_req = NULL;
		return 1;
	}
	list_del_init(&req->link);
	pvfs_req_set_state(req, PVFS_REQ_DONE);
	spin_unlock_bh(&c->lock);
	c->rx_req = NULL;
	trace_pvfs_reply(req);
	if (forget) {
		if (req->has_slot)	/* see pvfs_conn_abandon() */
			pvfs_conn_unsure(c, -1);
		pvfs_req_forget(req);
		return 1;
	}
	req->rep_len = h->body_len;
	req->in_len = h->payload_len;
	req->answered = true;
	pvfs_req_complete(req, -pvfs_errno_from_wire(h->status));
	return 1;
}

/* Of the first @n bytes of the pages that the reply was received into. */
static u32 rx_payload_crc(const struct pvfs_request *req, u32 n)
{
	const struct bio_vec *bv = req->bv;
	u32 crc = 0;

	for (; n; bv++) {
		u32 off = bv->bv_offset, end = off + min(bv->bv_len, n);

		n -= end - off;
		while (off < end) {
			u32 len = min_t(u32, end - off, PAGE_SIZE - offset_in_page(off));
			void *p = kmap_local_page(nth_page(bv->bv_page, off >> PAGE_SHIFT));

			crc = pvfs_crc32c(crc, p + offset_in_page(off), len);
			kunmap_local(p);
			off += len;
		}
	}
	return crc;
}

int pvfs_conn_receive(struct pvfs_conn *c)
{
	struct pvfs_header *h = &c->rx_head;
	u8 *body;
	int n;

	switch (c->rx_state) {
	case PVFS_RX_HEADER:
		n = rx_part(c, &c->rx_hdr, PVFS_HDR_LEN);
		if (n <= 0)
			return n;
		n = rx_header(c);
		if (n)
			return n;
		c->rx_state = PVFS_RX_BODY;
		c->rx_done = 0;
		fallthrough;
	case PVFS_RX_BODY:
		body = c->rx_req ? c->rx_req->rep : c->rx_small;
		if (c->rx_discard)
			n = rx_discard(c, h->body_len);
		else
			n = rx_part(c, body, h->body_len);
		if (n <= 0)
			return n;
		if (!c->rx_discard && h->body_len &&
		    pvfs_crc32c(0, body, h->body_len) != h->body_crc)
			return rx_protocol_error(c, "a damaged body");
		c->rx_state = PVFS_RX_PAYLOAD;
		c->rx_done = 0;
		fallthrough;
	case PVFS_RX_PAYLOAD:
		if (c->rx_discard) {
			n = rx_discard(c, h->payload_len);
			if (n <= 0)
				return n;
		} else {
			struct pvfs_request *req = c->rx_req;

			while (c->rx_done < h->payload_len) {
				n = pvfs_tcp_recv_pages(c->sock, req->bv, req->nbv, c->rx_done,
							h->payload_len - c->rx_done);
				if (n < 0)
					return n == -EAGAIN ? 0 : n;
				c->rx_done += n;
			}
			if ((h->flags & PVFS_HF_PAYLOAD_CRC) && h->payload_len &&
			    rx_payload_crc(req, h->payload_len) != h->payload_crc)
				return rx_protocol_error(c, "a damaged payload");
		}
		n = rx_message(c);
		if (n > 0) {
			c->rx_state = PVFS_RX_HEADER;
			c->rx_done = 0;
		}
		return n;
	}
	return -EPROTO;
}

/* ---------------------------------------------------------------- the waiter as receiver */

void pvfs_conn_readable(struct pvfs_conn *c)
{
	unsigned long flags;
	bool reader;

	spin_lock_irqsave(&c->reader.lock, flags);
	/* changed under the lock only */
	reader = waitqueue_active(&c->reader) && !test_bit(PVFS_CONN_LATE, &c->flags);
	if (reader) {
		if (!test_and_set_bit(PVFS_CONN_READABLE, &c->flags)) {
			WRITE_ONCE(c->readable_at, ktime_get_ns());
			/* It looks by itself whether it came too early: not moved each time. */
			if (!timer_pending(&c->reader_timer))
				mod_timer(&c->reader_timer,
					  jiffies + msecs_to_jiffies(READER_MS) + 1);
		}
		/*
		 * Who sent it will sleep soon, says "sync": on loopback the reader may run on the
		 * sender's CPU.
		 */
		__wake_up_locked_sync_key(&c->reader, TASK_NORMAL, NULL);
	}
	spin_unlock_irqrestore(&c->reader.lock, flags);
	if (!reader)
		pvfs_kpvfsd_kick(c);
}

/*
 * A reader that does not run, because its cgroup is throttled or frozen or others are more urgent,
 * must not hold up what came for others: replies, RECALLs. (One that stops running while it
 * receives does, as any task that stops with a mutex in its hands.)
 */
static void rx_reader_late(struct timer_list *timer)
{
	struct pvfs_conn *c = container_of(timer, struct pvfs_conn, reader_timer);
	bool late = false;
	u64 age;

	spin_lock_irq(&c->reader.lock);
	/* Both sides hold its lock, so no barrier is needed. */
	if (waitqueue_active(&c->reader) && test_bit(PVFS_CONN_READABLE, &c->flags)) {
		age = ktime_get_ns() - READ_ONCE(c->readable_at);
		late = age >= READER_MS * NSEC_PER_MSEC;
		if (late)
			set_bit(PVFS_CONN_LATE, &c->flags);
		else
			mod_timer(&c->reader_timer, jiffies + msecs_to_jiffies(READER_MS) + 1);
	}
	spin_unlock_irq(&c->reader.lock);
	if (late)
		pvfs_kpvfsd_kick(c);
}

void pvfs_conn_reader_init(struct pvfs_conn *c)
{
	init_waitqueue_head(&c->reader);
	timer_setup(&c->reader_timer, rx_reader_late, 0);
}

void pvfs_conn_reader_fini(struct pvfs_conn *c)
{
	pvfs_timer_delete_sync(&c->reader_timer);
}

/* The reader looks at what has come. */
static bool rx_reader_sees(struct pvfs_conn *c)
{
	if (!test_and_clear_bit(PVFS_CONN_READABLE, &c->flags))
		return false;
	if (unlikely(test_bit(PVFS_CONN_LATE, &c->flags))) {
		spin_lock_irq(&c->reader.lock);
		clear_bit(PVFS_CONN_LATE, &c->flags);
		spin_unlock_irq(&c->reader.lock);
	}
	return true;
}

static bool rx_reader_begin(struct pvfs_conn *c, struct wait_queue_entry *w)
{
	bool mine;

	spin_lock_irq(&c->reader.lock);
	mine = !waitqueue_active(&c->reader);	/* changed under the lock only */
	if (mine)
		__add_wait_queue(&c->reader, w);
	spin_unlock_irq(&c->reader.lock);
	return mine;
}

static void rx_reader_end(struct pvfs_conn *c, struct wait_queue_entry *w)
{
	spin_lock_irq(&c->reader.lock);
	__remove_wait_queue(&c->reader, w);
	clear_bit(PVFS_CONN_LATE, &c->flags);
	spin_unlock_irq(&c->reader.lock);
	/* What has come since we looked last is the thread's. */
	if (test_and_clear_bit(PVFS_CONN_READABLE, &c->flags))
		pvfs_kpvfsd_kick(c);
}

/* A moving average over eight. Racy: it is a hint. */
static void rx_average(u64 *avg, u64 ns)
{
	u64 old = READ_ONCE(*avg);

	WRITE_ONCE(*avg, old - old / 8 + ns / 8);
}

/*
 * Looks out for the reply for a while before going to sleep. That pays where a near server answers
 * in little more time than it takes to sleep and to be woken, both of which are measured; and costs
 * nothing while this CPU has nothing else to do.
 */
static void rx_poll_reply(struct pvfs_conn *c, struct pvfs_request *req)
{
	u64 most = min(READ_ONCE(poll_us) * NSEC_PER_USEC, READ_ONCE(c->wake_ns) * POLL_WAKES);
	u64 start;

	if (req->bv_len > POLL_BYTES || READ_ONCE(c->reply_ns) > most)
		return;
	start = ktime_get_ns();
	while (!pvfs_req_ended(req)) {
		if (rx_reader_sees(c)) {
			pvfs_conn_service(c);
			continue;
		}
		if (need_resched() || !single_task_running() || ktime_get_ns() - start > most)
			break;
		cpu_relax();
	}
}

long pvfs_conn_wait(struct pvfs_request *req, long left)
{
	struct pvfs_conn *c = req->conn;
	DEFINE_WAIT_FUNC(readable, default_wake_function);
	DEFINE_WAIT(wait);
	unsigned int nofs;
	bool slept = false;

	if (pvfs_req_ended(req))
		return 1;
	if (!rx_reader_begin(c, &readable)) {
		left = pvfs_wait_event_timeout(req->wait, pvfs_req_ended(req), left);
		return left;
	}
	nofs = memalloc_nofs_save();
	rx_poll_reply(c, req);
	for (;;) {
		prepare_to_wait(&req->wait, &wait, PVFS_WAIT);
		if (pvfs_req_ended(req)) {
			if (req->t_post && req->bv_len <= POLL_BYTES)
				rx_average(&c->reply_ns, ktime_get_ns() - req->t_post);
			left = 1;
			break;
		}
		if (rx_reader_sees(c)) {
			finish_wait(&req->wait, &wait);
			if (slept)
				rx_average(&c->wake_ns, ktime_get_ns() - READ_ONCE(c->readable_at));
			slept = false;
			pvfs_conn_service(c);
			continue;
		}
		if (fatal_signal_pending(current)) {
			left = -ERESTARTSYS;
			break;
		}
		if (!left)
			break;
		left = schedule_timeout(left);
		slept = true;
	}
	finish_wait(&req->wait, &wait);
	memalloc_nofs_restore(nofs);
	rx_reader_end(c, &readable);
	return left;
}
