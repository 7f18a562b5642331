// SPDX-License-Identifier: GPL-2.0
/*
 * conn.c - servers and their channels: queueing, posting, receiving, losing a connection and getting it back.
 *
 * A request goes to the channel of the CPU it is made on and stays with that channel until it is done, also across
 * reconnects: the server waits for the old connection of a (session, channel) to be finished with before it answers
 * a new one, so a request that is sent again never overtakes its first copy.
 *
 * Who sends: whoever finds tx_mutex free, the submitter as a rule; nobody waits for the network while holding it.
 * Who receives: a task that waits for its reply anyway, one at a time (pvfs_conn_wait()); the channel's kpvfsd thread
 * when there is none. Who takes a connection down: either, under both mutexes.
 */
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "conn.h"
#include "trace.h"

#define POLL_BYTES 16384u		/* larger transfers are not polled for */
#define POLL_WAKES 8u			/* for how many times as long as a wake-up takes */

static unsigned int poll_us = 1000;
module_param(poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "longest time to poll for a reply on a CPU that is idle otherwise, microseconds; 0: never");

static struct workqueue_struct *connect_wq;

int pvfs_conn_init(void)
{
	int err = pvfs_auth_init();

	if (err)
		return err;
	connect_wq = alloc_workqueue("pvfs_connect", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!connect_wq) {
		pvfs_auth_exit();
		return -ENOMEM;
	}
	return 0;
}

void pvfs_conn_exit(void)
{
	destroy_workqueue(connect_wq);
	pvfs_auth_exit();
}

static bool may_move(enum pvfs_conn_state from, enum pvfs_conn_state to)
{
	switch (to) {
	case PVFS_CONN_CONNECTING:
		return from == PVFS_CONN_DOWN;
	case PVFS_CONN_UP:
		return from == PVFS_CONN_CONNECTING;
	case PVFS_CONN_DOWN:
		return from == PVFS_CONN_CONNECTING || from == PVFS_CONN_UP;
	case PVFS_CONN_DEAD:
		return true;
	}
	return false;
}

/* conn->lock held. */
static void conn_set_state(struct pvfs_conn *c, enum pvfs_conn_state state)
{
	WARN_ONCE(!may_move(c->state, state), "pvfs: channel moves from state %d to %d\n", c->state, state);
	c->state = state;
}

/* ---------------------------------------------------------------- what the log says of a server */

static void server_up(struct pvfs_server *s, const struct pvfs_auth_rep *rep)
{
	bool tell;

	spin_lock(&s->lock);
	s->nup++;
	s->last_err = 0;
	s->down_since = 0;
	s->payload_max = rep->payload_max;
	s->epoch = rep->epoch;
	tell = s->told;
	s->told = false;
	spin_unlock(&s->lock);
	if (tell)
		pr_info("%s: %s answers again\n", s->vol->opts.volume, s->name);
	wake_up_all(&s->wait);
}

static void server_down(struct pvfs_server *s, bool was_up, int err)
{
	bool tell = false;

	spin_lock(&s->lock);
	if (was_up)
		s->nup--;
	else
		s->attempts++;
	s->last_err = err;
	if (!s->nup) {
		if (!s->down_since)
			s->down_since = get_jiffies_64();
		/* A restart of the daemon is over in a second and not worth a line. */
		if (!s->told && get_jiffies_64() - s->down_since > 2 * HZ) {
			tell = true;
			s->told = true;
		}
	}
	spin_unlock(&s->lock);
	if (tell && !READ_ONCE(s->vol->dead))
		pr_warn("%s: %s does not respond (error %d), %s\n", s->vol->opts.volume, s->name, err,
			s->vol->opts.soft ? "requests will fail" : "still trying");
	wake_up_all(&s->wait);
}

/* ---------------------------------------------------------------- tags; conn->lock held */

/* A tag is its index in the table and a count that tells a late reply from a fresh one. */
static bool tag_take(struct pvfs_conn *c, struct pvfs_request *req)
{
	unsigned int i, at;

	for (i = 0; i < PVFS_CHAN_TAGS; i++) {
		at = (c->tag_gen + i) % PVFS_CHAN_TAGS;
		if (!c->tags[at]) {
			c->tag_gen += PVFS_CHAN_TAGS + i + 1;
			req->tag = (c->tag_gen / PVFS_CHAN_TAGS) << 8 | at;
			c->tags[at] = req;
			return true;
		}
	}
	return false;
}

static struct pvfs_request *tag_find(struct pvfs_conn *c, u32 tag)
{
	struct pvfs_request *req = c->tags[tag % PVFS_CHAN_TAGS];

	return req && req->tag == tag ? req : NULL;
}

static void tag_drop(struct pvfs_conn *c, struct pvfs_request *req)
{
	c->tags[req->tag % PVFS_CHAN_TAGS] = NULL;
	c->nposted--;
}

/* ---------------------------------------------------------------- connecting */

/* conn->lock held. */
static void kick_connect(struct pvfs_conn *c, unsigned int delay_ms)
{
	if (c->state != PVFS_CONN_DOWN)
		return;
	conn_set_state(c, PVFS_CONN_CONNECTING);
	queue_delayed_work(connect_wq, &c->connect_work, msecs_to_jiffies(delay_ms));
}

static bool conn_wanted(struct pvfs_conn *c)
{
	return !list_empty(&c->urgent) || !list_empty(&c->queue);
}

static void connect_failed(struct pvfs_conn *c, u64 session, int err)
{
	struct pvfs_server *s = c->server;

	/* Before the state: a waiter for the server must see the error when it sees us down. */
	server_down(s, false, err);
	if (err == -ESTALE)
		pvfs_volume_session_lost(s->vol, session);
	spin_lock_bh(&c->lock);
	if (c->state == PVFS_CONN_CONNECTING) {
		conn_set_state(c, PVFS_CONN_DOWN);
		c->backoff_ms = clamp(c->backoff_ms * 2, PVFS_BACKOFF_MIN_MS, PVFS_BACKOFF_MAX_MS);
		/* A quarter of jitter, so that a thousand clients don't come back in step. */
		if (conn_wanted(c) || s->role == PVFS_ROLE_MGR)
			kick_connect(c, c->backoff_ms - get_random_u32() % (c->backoff_ms / 4 + 1));
	}
	spin_unlock_bh(&c->lock);
}

static void conn_connect_work(struct work_struct *work)
{
	struct pvfs_conn *c = container_of(to_delayed_work(work), struct pvfs_conn, connect_work);
	struct pvfs_server *s = c->server;
	struct pvfs_volume *vol = s->vol;
	struct pvfs_auth_rep rep;
	struct socket *sock = NULL;
	u64 session = 0;
	int err;

	if (READ_ONCE(vol->dead) && s->role != PVFS_ROLE_MGR) {
		err = -ESHUTDOWN;
		goto out_failed;
	}
	spin_lock(&vol->lock);
	session = vol->session;
	spin_unlock(&vol->lock);
	if (!session && c->channel) {	/* a session is being opened, on channel 0 */
		err = -EAGAIN;
		goto out_failed;
	}

	err = pvfs_tcp_connect(vol->net, &s->addr, PVFS_CONNECT_MS, &sock);
	if (err)
		goto out_failed;
	err = pvfs_auth_client(sock, vol, s->role, session, c->channel, &rep);
	if (err)
		goto out_failed;

	mutex_lock(&c->tx_mutex);
	mutex_lock(&c->rx_mutex);
	spin_lock_bh(&c->lock);
	if (c->state != PVFS_CONN_CONNECTING) {		/* closed meanwhile */
		spin_unlock_bh(&c->lock);
		mutex_unlock(&c->rx_mutex);
		mutex_unlock(&c->tx_mutex);
		sock_release(sock);
		return;
	}
	conn_set_state(c, PVFS_CONN_UP);
	c->sock = sock;
	c->credits = clamp_t(u32, rep.credits, 1, PVFS_CHAN_TAGS);
	c->backoff_ms = 0;
	c->fault = 0;
	c->tx_full = false;
	c->rx_state = PVFS_RX_HEADER;
	c->rx_done = 0;
	c->connects++;
	spin_unlock_bh(&c->lock);
	server_up(s, &rep);
	pvfs_tcp_attach(c, sock);
	mutex_unlock(&c->rx_mutex);
	mutex_unlock(&c->tx_mutex);
	if (c->connects > 1)
		pvfs_count(vol, PVFS_CNT_RECONNECTS, 1);

	if (s->role == PVFS_ROLE_MGR)
		pvfs_volume_mgr_up(vol, rep.epoch);
	/* The session was replaced while we shook hands: come back with the new one. */
	if (session && session != READ_ONCE(vol->session))
		pvfs_conn_fault(c, -ESTALE);
	pvfs_kpvfsd_kick(c);
	return;

out_failed:
	if (sock)
		sock_release(sock);
	connect_failed(c, session, err);
}

int pvfs_server_wait_up(struct pvfs_server *s, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	long left;
	int err;

	spin_lock_bh(&s->chan[0].lock);
	kick_connect(&s->chan[0], 0);
	spin_unlock_bh(&s->chan[0].lock);
	for (;;) {
		u64 tried = READ_ONCE(s->attempts);

		if (READ_ONCE(s->nup))
			return 0;
		err = READ_ONCE(s->last_err);
		/* A clear no stays one; silence may end. */
		if (err == -EACCES || err == -EPROTO || err == -ENOENT)
			return err;
		left = end - jiffies;
		if (left <= 0)
			return err ?: -ETIMEDOUT;
		left = wait_event_killable_timeout(s->wait, READ_ONCE(s->nup) || READ_ONCE(s->attempts) != tried, left);
		if (left < 0)
			return -EINTR;
	}
}

/* ---------------------------------------------------------------- losing a connection */

void pvfs_conn_fault(struct pvfs_conn *c, int err)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	if (c->state == PVFS_CONN_UP && !c->fault)
		c->fault = err ?: -ECONNRESET;
	spin_unlock_irqrestore(&c->lock, flags);
	pvfs_kpvfsd_kick(c);
}

/*
 * Takes the connection away and puts what was posted back in front of the queue (or fails it). Both mutexes held.
 * Requests to be completed are gathered on @done, detached ones on @forgotten: no locks are held while they end.
 */
static void conn_drop(struct pvfs_conn *c, struct list_head *done, struct list_head *forgotten)
{
	struct pvfs_request *req, *next;
	struct socket *sock = c->sock;
	struct pvfs_answer *a, *an;
	LIST_HEAD(answers);
	LIST_HEAD(again);
	bool was_up;

	if (sock) {
		pvfs_tcp_detach(c, sock);
		kernel_sock_shutdown(sock, SHUT_RDWR);
	}
	c->sock = NULL;
	c->tx_req = NULL;
	kfree(c->tx_answer);
	c->tx_answer = NULL;
	c->tx_done = 0;
	c->rx_req = NULL;

	spin_lock_bh(&c->lock);
	was_up = c->state == PVFS_CONN_UP;
	list_splice_init(&c->answers, &answers);
	c->nanswers = 0;
	list_for_each_entry_safe(req, next, &c->posted, link) {
		tag_drop(c, req);
		if (req->detached) {
			pvfs_req_set_state(req, PVFS_REQ_DONE);
			list_move_tail(&req->link, forgotten);
		} else if (c->abort || c->state == PVFS_CONN_DEAD) {
			pvfs_req_set_state(req, PVFS_REQ_DONE);
			list_move_tail(&req->link, done);
		} else {
			pvfs_req_set_state(req, PVFS_REQ_QUEUED);
			req->resend = true;
			list_move_tail(&req->link, &again);
		}
	}
	if (c->abort || c->state == PVFS_CONN_DEAD) {
		list_splice_init(&c->urgent, &again);
		list_splice_tail_init(&c->queue, &again);
		list_splice_tail_init(&c->later, &again);
		list_for_each_entry(req, &again, link)
			pvfs_req_set_state(req, PVFS_REQ_DONE);
		list_splice_tail_init(&again, done);
	}
	list_for_each_entry_safe_reverse(req, next, &again, link)
		list_move(&req->link, req->flags & PVFS_RF_RECOVERY ? &c->urgent : &c->queue);
	c->abort = false;
	c->fault = 0;
	if (c->state == PVFS_CONN_UP) {
		conn_set_state(c, PVFS_CONN_DOWN);
		/* The mgr is always wanted: heartbeats. */
		if (conn_wanted(c) || c->server->role == PVFS_ROLE_MGR)
			kick_connect(c, PVFS_BACKOFF_MIN_MS / 2);
	}
	spin_unlock_bh(&c->lock);

	if (sock)
		sock_release(sock);
	list_for_each_entry_safe(a, an, &answers, link)
		kfree(a);
	if (was_up)
		server_down(c->server, true, -ECONNRESET);
}

static void end_lists(struct list_head *done, struct list_head *forgotten, int err)
{
	struct pvfs_request *req, *next;

	list_for_each_entry_safe(req, next, done, link) {
		list_del_init(&req->link);
		pvfs_req_complete(req, err);
	}
	list_for_each_entry_safe(req, next, forgotten, link) {
		list_del_init(&req->link);
		pvfs_req_forget(req);
	}
}

/* @faulty: only if it still is; another may have come first, and this be a new connection. */
static void conn_take_down(struct pvfs_conn *c, int err, bool faulty)
{
	LIST_HEAD(forgotten);
	LIST_HEAD(done);

	mutex_lock(&c->tx_mutex);
	mutex_lock(&c->rx_mutex);
	if (!faulty || READ_ONCE(c->fault))
		conn_drop(c, &done, &forgotten);
	mutex_unlock(&c->rx_mutex);
	mutex_unlock(&c->tx_mutex);
	end_lists(&done, &forgotten, err);
}

void pvfs_server_abort(struct pvfs_server *s)
{
	u32 i;

	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		spin_lock_bh(&c->lock);
		c->abort = true;
		spin_unlock_bh(&c->lock);
		conn_take_down(c, -EIO, false);
	}
}

void pvfs_server_fail_unsure(struct pvfs_server *s)
{
	struct pvfs_request *req, *next;
	LIST_HEAD(forgotten);
	LIST_HEAD(done);
	u32 i;

	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		spin_lock_bh(&c->lock);
		list_splice_tail_init(&c->later, &c->queue);
		list_for_each_entry_safe(req, next, &c->queue, link) {
			if (!req->resend || !req->has_slot)
				continue;
			pvfs_req_set_state(req, PVFS_REQ_DONE);
			list_move_tail(&req->link, &done);
		}
		spin_unlock_bh(&c->lock);
	}
	end_lists(&done, &forgotten, -EIO);
}

void pvfs_server_reconnect(struct pvfs_server *s)
{
	u32 i;

	for (i = 0; i < s->nchan; i++)
		pvfs_conn_fault(&s->chan[i], -ESTALE);
}

/* ---------------------------------------------------------------- sending; tx_mutex held */

static bool held_back(struct pvfs_conn *c)
{
	return c->server->role == PVFS_ROLE_MGR && READ_ONCE(c->server->vol->recovering);
}

/* The next thing to send, POSTED and with its header made; NULL: nothing may be sent now. */
static struct pvfs_request *next_request(struct pvfs_conn *c)
{
	struct pvfs_request *req = NULL;
	struct pvfs_head h = {};

	spin_lock_bh(&c->lock);
	if (c->state != PVFS_CONN_UP || c->fault || c->nposted >= c->credits)
		goto out;
	req = list_first_entry_or_null(&c->urgent, struct pvfs_request, link);
	if (!req && !held_back(c))
		req = list_first_entry_or_null(&c->queue, struct pvfs_request, link);
	if (!req)
		goto out;
	if (!tag_take(c, req)) {
		req = NULL;
		goto out;
	}
	c->nposted++;
	list_move_tail(&req->link, &c->posted);
	/* Both before the bytes go out: the reply may come while we still send. */
	pvfs_req_set_state(req, PVFS_REQ_POSTED);
	c->tx_req = req;
	h.op = req->op;
	h.flags = req->resend ? PVFS_HF_RESEND : 0;
	h.tag = req->tag;
	h.slot = req->slot;
	h.slot_seq = req->slot_seq;
	h.body_len = req->body_len;
	h.payload_len = req->write ? req->bv_len : 0;
out:
	spin_unlock_bh(&c->lock);
	if (!req)
		return NULL;
	if (req->resend)
		pvfs_count(c->server->vol, PVFS_CNT_RESENDS, 1);
	h.session = READ_ONCE(c->server->vol->session);
	h.body_crc = req->body_len ? pvfs_crc32c(0, req->body, req->body_len) : 0;
	pvfs_head_encode(&h, &c->tx_hdr);
	return req;
}

/* 1: all of it is out; 0: the socket is full; -errno. */
static int send_answer(struct pvfs_conn *c)
{
	struct pvfs_answer *a = c->tx_answer;
	int n;

	while (c->tx_done < a->len) {
		n = pvfs_tcp_send(c->sock, a->bytes + c->tx_done, a->len - c->tx_done, NULL, 0, false);
		if (n < 0)
			return n == -EAGAIN ? 0 : n;
		c->tx_done += n;
	}
	kfree(a);
	c->tx_answer = NULL;
	c->tx_done = 0;
	return 1;
}

static int send_request(struct pvfs_conn *c)
{
	struct pvfs_request *req = c->tx_req;
	u32 front = PVFS_HDR_LEN + req->body_len;
	u32 payload = req->write ? req->bv_len : 0;
	int n;

	while (c->tx_done < front + payload) {
		if (c->tx_done < PVFS_HDR_LEN)
			n = pvfs_tcp_send(c->sock, (u8 *)&c->tx_hdr + c->tx_done, PVFS_HDR_LEN - c->tx_done,
					  req->body, req->body_len, payload);
		else if (c->tx_done < front)
			n = pvfs_tcp_send(c->sock, req->body + c->tx_done - PVFS_HDR_LEN, front - c->tx_done,
					  NULL, 0, payload);
		else
			n = pvfs_tcp_send_pages(c->sock, req->bv, req->nbv, c->tx_done - front,
						front + payload - c->tx_done);
		if (n < 0)
			return n == -EAGAIN ? 0 : n;
		c->tx_done += n;
	}
	c->tx_done = 0;
	/* From here on the receiver may end the request: see rx_message(). */
	smp_store_release(&c->tx_req, NULL);
	return 1;
}

/* Sends until there is nothing, the socket is full, or the connection is bad. */
static void send_all(struct pvfs_conn *c, enum pvfs_counter who)
{
	int n;

	for (;;) {
		if (!c->sock || READ_ONCE(c->fault))
			return;
		if (!c->tx_req && !c->tx_answer) {
			spin_lock_bh(&c->lock);
			c->tx_answer = list_first_entry_or_null(&c->answers, struct pvfs_answer, link);
			if (c->tx_answer) {
				list_del(&c->tx_answer->link);
				c->nanswers--;
			}
			spin_unlock_bh(&c->lock);
		}
		if (!c->tx_req && !c->tx_answer) {
			if (!next_request(c))
				return;
			pvfs_count(c->server->vol, who, 1);
		}
		n = c->tx_answer ? send_answer(c) : send_request(c);
		if (n < 0) {
			pvfs_conn_fault(c, n);
			return;
		}
		if (!n) {
			c->tx_full = true;
			return;
		}
		c->tx_full = false;
	}
}

/* Is there something that a sender could send right now? */
static bool can_send(struct pvfs_conn *c)
{
	bool can;

	spin_lock_bh(&c->lock);
	can = c->state == PVFS_CONN_UP && !c->fault && !READ_ONCE(c->tx_full) &&
	      (!list_empty(&c->answers) ||
	       (c->nposted < c->credits &&
		(!list_empty(&c->urgent) || (!list_empty(&c->queue) && !held_back(c)))));
	spin_unlock_bh(&c->lock);
	return can;
}

static void conn_push(struct pvfs_conn *c, enum pvfs_counter who)
{
	/*
	 * Whoever holds the mutex looks again after giving it up, so what was queued before our trylock failed is
	 * seen by the holder: lock's unlock-lock pair orders the queueing before its look.
	 */
	do {
		if (!mutex_trylock(&c->tx_mutex))
			return;
		send_all(c, who);
		mutex_unlock(&c->tx_mutex);
		smp_mb();	/* gave the mutex up, then look: see above */
	} while (can_send(c));
}

void pvfs_server_push(struct pvfs_server *s)
{
	u32 i;

	for (i = 0; i < s->nchan; i++)
		conn_push(&s->chan[i], PVFS_CNT_THREAD_SENDS);
}

static void conn_again_work(struct work_struct *work)
{
	struct pvfs_conn *c = container_of(to_delayed_work(work), struct pvfs_conn, again_work);

	spin_lock_bh(&c->lock);
	list_splice_init(&c->later, &c->queue);
	kick_connect(c, 0);
	spin_unlock_bh(&c->lock);
	conn_push(c, PVFS_CNT_THREAD_SENDS);
}

void pvfs_conn_submit(struct pvfs_server *s, struct pvfs_request *req)
{
	/* Recovery has one channel: the one whose connection is tried first. */
	u32 n = req->flags & PVFS_RF_RECOVERY ? 0 : raw_smp_processor_id() % s->nchan;
	struct pvfs_conn *c = &s->chan[n];
	bool dead;

	req->conn = c;
	spin_lock_bh(&c->lock);
	/* Under the lock: whoever sets vol->dead fails what is queued after it. */
	dead = c->state == PVFS_CONN_DEAD || READ_ONCE(s->vol->dead);
	if (dead) {
		pvfs_req_set_state(req, PVFS_REQ_DONE);
	} else {
		pvfs_req_set_state(req, PVFS_REQ_QUEUED);
		list_add_tail(&req->link, req->flags & PVFS_RF_RECOVERY ? &c->urgent : &c->queue);
		kick_connect(c, 0);
	}
	spin_unlock_bh(&c->lock);
	if (dead)
		pvfs_req_complete(req, -ESHUTDOWN);
	else
		conn_push(c, PVFS_CNT_DIRECT_SENDS);
}

static bool ended(struct pvfs_request *req)
{
	return smp_load_acquire(&req->ended);	/* pairs with pvfs_req_complete() */
}

void pvfs_conn_abandon(struct pvfs_request *req, int err)
{
	struct pvfs_conn *c = req->conn;
	bool withdrawn = false, done = false, bad = false;

	mutex_lock(&c->tx_mutex);
	mutex_lock(&c->rx_mutex);
	spin_lock_bh(&c->lock);
	switch (req->state) {
	case PVFS_REQ_QUEUED:		/* could be withdrawn: the server never heard of it, or will be asked no more */
		list_del_init(&req->link);
		pvfs_req_set_state(req, PVFS_REQ_DONE);
		req->err = err;
		withdrawn = true;
		break;
	case PVFS_REQ_POSTED:		/* its reply will come and be thrown away */
		req->detached = true;
		req->err = err;
		if (c->rx_req == req) {
			c->rx_req = NULL;
			c->rx_discard = true;
		}
		/* Half of its payload is out: the owner's memory is needed for the rest, so the stream must end. */
		bad = c->tx_req == req && req->bv_len && req->write;
		break;
	default:			/* the reply was faster */
		done = true;
		break;
	}
	if (bad && c->state == PVFS_CONN_UP && !c->fault)
		c->fault = -EPIPE;
	if (bad)
		c->tx_req = NULL;
	spin_unlock_bh(&c->lock);
	mutex_unlock(&c->rx_mutex);
	mutex_unlock(&c->tx_mutex);

	pvfs_count(c->server->vol, PVFS_CNT_ABANDONED, !done);
	if (bad)
		pvfs_kpvfsd_kick(c);
	if (withdrawn)
		pvfs_req_forget(req);
	if (done)
		wait_event(req->wait, ended(req));
}

/* ---------------------------------------------------------------- receiving; rx_mutex held */

/* 1: @n bytes are in @p; 0: not yet; -errno. */
static int recv_part(struct pvfs_conn *c, void *p, u32 n)
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
static int discard_part(struct pvfs_conn *c, u32 n)
{
	int got;

	while (c->rx_done < n) {
		got = pvfs_tcp_recv(c->sock, c->rx_small, min_t(u32, n - c->rx_done, sizeof(c->rx_small)));
		if (got < 0)
			return got == -EAGAIN ? 0 : got;
		c->rx_done += got;
	}
	return 1;
}

static int protocol_error(struct pvfs_conn *c, const char *what)
{
	pr_warn_ratelimited("%s: %s sent %s (%s, tag %u): connection closed\n", c->server->vol->opts.volume,
			    c->server->name, what, pvfs_op_name(c->rx_head.op), c->rx_head.tag);
	return -EPROTO;
}

/* A header is in: whose is it? */
static int rx_header(struct pvfs_conn *c)
{
	struct pvfs_head *h = &c->rx_head;
	struct pvfs_request *req;
	int err = pvfs_head_decode(&c->rx_hdr, h);

	if (err && err != -EOPNOTSUPP) {
		memset(h, 0, sizeof(*h));
		return protocol_error(c, "a damaged or foreign header");
	}
	c->rx_req = NULL;
	c->rx_discard = false;
	if (!(h->flags & PVFS_HF_REPLY)) {
		if (!(h->flags & PVFS_HF_CALLBACK))
			return protocol_error(c, "a request that is not a callback");
		if (h->body_len > sizeof(c->rx_small) || h->payload_len)
			return protocol_error(c, "too large a callback");
		return 0;
	}
	spin_lock_bh(&c->lock);
	req = tag_find(c, h->tag);
	if (req && req->op == h->op) {
		if (req->detached)
			c->rx_discard = true;
		else
			c->rx_req = req;
	}
	spin_unlock_bh(&c->lock);
	if (!c->rx_req && !c->rx_discard)
		return protocol_error(c, "a reply nobody waits for");
	if (c->rx_req && (h->body_len > req->rep_room || h->payload_len > (req->write ? 0 : req->bv_len)))
		return protocol_error(c, "too large a reply");
	return 0;
}

static int queue_answer(struct pvfs_conn *c, int status)
{
	struct pvfs_head h = {
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
		n = pvfs_ping_rep_encode(&pong, a->bytes + PVFS_HDR_LEN, sizeof(a->bytes) - PVFS_HDR_LEN);
		h.body_len = n;
		h.body_crc = pvfs_crc32c(0, a->bytes + PVFS_HDR_LEN, n);
	}
	pvfs_head_encode(&h, (struct pvfs_hdr *)a->bytes);
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
		return protocol_error(c, "callbacks faster than it takes answers");
	}
	return 0;
}

/* A request from the server. Return: 0 or -errno, for the answer. */
static int callback(struct pvfs_conn *c)
{
	struct pvfs_lock_grant_req req;
	int err;

	if (c->rx_head.op == PVFS_OP_PING)
		return 0;
	if (c->rx_head.op != PVFS_OP_LOCK_GRANT || c->server->role != PVFS_ROLE_MGR)
		return -EOPNOTSUPP;
	err = pvfs_lock_grant_req_decode(&req, c->rx_small, c->rx_head.body_len);
	return err ?: pvfs_locks_granted(c->server->vol, &req);
}

/* A whole message is in. 1: dealt with; 0: not now, kicked for another try; -errno. */
static int rx_message(struct pvfs_conn *c)
{
	struct pvfs_head *h = &c->rx_head;
	struct pvfs_request *req;
	bool forget;

	if (!(h->flags & PVFS_HF_REPLY))
		return queue_answer(c, -callback(c)) ?: 1;

	/* `posted' and the tag table change under rx_mutex only, so the request is still there. */
	req = tag_find(c, h->tag);
	if (smp_load_acquire(&c->tx_req) == req) {	/* pairs with send_request() */
		/*
		 * Its last bytes went out a moment ago and the sender has not looked up yet - or the server answers
		 * what it has not read. The sender's mutex tells which; it is never held for long.
		 */
		if (!mutex_trylock(&c->tx_mutex)) {
			pvfs_kpvfsd_kick(c);
			return 0;
		}
		forget = c->tx_req == req;
		mutex_unlock(&c->tx_mutex);
		if (forget)
			return protocol_error(c, "a reply before the request was out");
	}
	spin_lock_bh(&c->lock);
	if (h->credits)
		c->credits = min_t(u32, h->credits, PVFS_CHAN_TAGS);
	tag_drop(c, req);
	forget = req->detached;
	if (h->status == pvfs_errno_to_wire(EAGAIN) && req->has_slot && !forget && c->state == PVFS_CONN_UP) {
		/* Not now, says the mgr: the same request again after a pause. */
		pvfs_req_set_state(req, PVFS_REQ_QUEUED);
		req->resend = true;
		list_move_tail(&req->link, &c->later);
		queue_delayed_work(connect_wq, &c->again_work, msecs_to_jiffies(PVFS_AGAIN_MS));
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
		pvfs_req_forget(req);
		return 1;
	}
	req->rep_len = h->body_len;
	req->in_len = h->payload_len;
	pvfs_req_complete(req, -pvfs_errno_from_wire(h->status));
	return 1;
}

/* One step: 1 went on, 0 no bytes, -errno bad. */
static int rx_step(struct pvfs_conn *c)
{
	struct pvfs_head *h = &c->rx_head;
	u8 *body;
	int n;

	switch (c->rx_state) {
	case PVFS_RX_HEADER:
		n = recv_part(c, &c->rx_hdr, PVFS_HDR_LEN);
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
			n = discard_part(c, h->body_len);
		else
			n = recv_part(c, body, h->body_len);
		if (n <= 0)
			return n;
		if (!c->rx_discard && h->body_len && pvfs_crc32c(0, body, h->body_len) != h->body_crc)
			return protocol_error(c, "a damaged body");
		c->rx_state = PVFS_RX_PAYLOAD;
		c->rx_done = 0;
		fallthrough;
	case PVFS_RX_PAYLOAD:
		if (c->rx_discard) {
			n = discard_part(c, h->payload_len);
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

void pvfs_conn_service(struct pvfs_conn *c)
{
	int n = 0, budget = 64, fault;

	mutex_lock(&c->rx_mutex);
	while (c->sock && budget--) {
		n = rx_step(c);
		if (n <= 0)
			break;
	}
	mutex_unlock(&c->rx_mutex);
	if (n < 0)
		pvfs_conn_fault(c, n);

	spin_lock_bh(&c->lock);
	fault = c->fault;
	spin_unlock_bh(&c->lock);
	if (fault) {
		conn_take_down(c, fault, true);
		return;
	}
	if (READ_ONCE(c->tx_full)) {
		mutex_lock(&c->tx_mutex);
		c->tx_full = false;
		send_all(c, PVFS_CNT_THREAD_SENDS);
		mutex_unlock(&c->tx_mutex);
	}
	if (can_send(c))
		conn_push(c, PVFS_CNT_THREAD_SENDS);
	if (n > 0)	/* fair to the other channels of this thread: come back for the rest */
		pvfs_kpvfsd_kick(c);
}

/* ---------------------------------------------------------------- the waiter as receiver */

void pvfs_conn_readable(struct pvfs_conn *c)
{
	unsigned long flags;
	bool reader;

	spin_lock_irqsave(&c->reader.lock, flags);
	reader = waitqueue_active(&c->reader);	/* changed under the lock only */
	if (reader) {
		if (!test_and_set_bit(PVFS_CONN_READABLE, &c->flags))
			WRITE_ONCE(c->readable_at, ktime_get_ns());
		/* Who sent it will sleep soon, says "sync": on loopback the reader may run on the sender's CPU. */
		__wake_up_locked_sync_key(&c->reader, TASK_NORMAL, NULL);
	}
	spin_unlock_irqrestore(&c->reader.lock, flags);
	if (!reader)
		pvfs_kpvfsd_kick(c);
}

static bool reader_begin(struct pvfs_conn *c, struct wait_queue_entry *w)
{
	bool mine;

	spin_lock_irq(&c->reader.lock);
	mine = !waitqueue_active(&c->reader);	/* changed under the lock only */
	if (mine)
		__add_wait_queue(&c->reader, w);
	spin_unlock_irq(&c->reader.lock);
	return mine;
}

static void reader_end(struct pvfs_conn *c, struct wait_queue_entry *w)
{
	spin_lock_irq(&c->reader.lock);
	__remove_wait_queue(&c->reader, w);
	spin_unlock_irq(&c->reader.lock);
	/* What has come since we looked last is the thread's. */
	if (test_and_clear_bit(PVFS_CONN_READABLE, &c->flags))
		pvfs_kpvfsd_kick(c);
}

/* A moving average over eight. Racy: it is a hint. */
static void average(u64 *avg, u64 ns)
{
	u64 old = READ_ONCE(*avg);

	WRITE_ONCE(*avg, old - old / 8 + ns / 8);
}

/*
 * Looks out for the reply for a while before going to sleep. That pays where a near server answers in little more time
 * than it takes to sleep and to be woken, both of which are measured; and costs nothing while this CPU has nothing else
 * to do.
 */
static void poll_reply(struct pvfs_conn *c, struct pvfs_request *req)
{
	u64 most = min(READ_ONCE(poll_us) * NSEC_PER_USEC, READ_ONCE(c->wake_ns) * POLL_WAKES), start;

	if (req->bv_len > POLL_BYTES || READ_ONCE(c->reply_ns) > most)
		return;
	start = ktime_get_ns();
	while (!ended(req)) {
		if (test_and_clear_bit(PVFS_CONN_READABLE, &c->flags)) {
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

	if (ended(req))
		return 1;
	if (!reader_begin(c, &readable)) {
		left = wait_event_killable_timeout(req->wait, ended(req), left);
		return left;
	}
	nofs = memalloc_nofs_save();
	poll_reply(c, req);
	for (;;) {
		prepare_to_wait(&req->wait, &wait, TASK_KILLABLE);
		if (ended(req)) {
			if (req->t_post && req->bv_len <= POLL_BYTES)
				average(&c->reply_ns, ktime_get_ns() - req->t_post);
			left = 1;
			break;
		}
		if (test_and_clear_bit(PVFS_CONN_READABLE, &c->flags)) {
			finish_wait(&req->wait, &wait);
			if (slept)
				average(&c->wake_ns, ktime_get_ns() - READ_ONCE(c->readable_at));
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
	reader_end(c, &readable);
	return left;
}

/* ---------------------------------------------------------------- servers */

struct pvfs_server *pvfs_server_new(struct pvfs_volume *vol, u8 role, u32 index, const struct sockaddr_storage *addr,
				    const char *host)
{
	struct pvfs_server *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u32 i;

	if (!s)
		return NULL;
	s->vol = vol;
	s->role = role;
	s->index = index;
	s->addr = *addr;
	snprintf(s->name, sizeof(s->name), "%s %s (%pISpc)", role == PVFS_ROLE_MGR ? "mgr" : "iod", host, addr);
	s->nchan = vol->opts.nconnect;
	spin_lock_init(&s->lock);
	init_waitqueue_head(&s->wait);
	s->chan = kvcalloc(s->nchan, sizeof(*s->chan), GFP_KERNEL);
	if (!s->chan) {
		kfree(s);
		return NULL;
	}
	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		c->server = s;
		c->channel = i;
		c->thread = pvfs_kpvfsd_thread(i);
		spin_lock_init(&c->lock);
		INIT_LIST_HEAD(&c->urgent);
		INIT_LIST_HEAD(&c->queue);
		INIT_LIST_HEAD(&c->later);
		INIT_LIST_HEAD(&c->posted);
		INIT_LIST_HEAD(&c->answers);
		mutex_init(&c->tx_mutex);
		mutex_init(&c->rx_mutex);
		init_waitqueue_head(&c->reader);
		INIT_DELAYED_WORK(&c->connect_work, conn_connect_work);
		INIT_DELAYED_WORK(&c->again_work, conn_again_work);
	}
	return s;
}

void pvfs_server_free(struct pvfs_server *s)
{
	u32 i;

	if (!s)
		return;
	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		spin_lock_bh(&c->lock);
		conn_set_state(c, PVFS_CONN_DEAD);
		spin_unlock_bh(&c->lock);
		cancel_delayed_work_sync(&c->connect_work);
		conn_take_down(c, -ESHUTDOWN, false);
		cancel_delayed_work_sync(&c->again_work);
		pvfs_kpvfsd_flush(c);
	}
	kvfree(s->chan);
	kfree(s);
}
