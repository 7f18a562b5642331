// SPDX-License-Identifier: GPL-2.0
/*
 * conn.c - servers and their channels: queueing, posting, losing a connection and getting it back.
 * Receiving is in conn_rx.c.
 *
 * A request goes to the channel of the CPU it is made on and stays with that channel until it is
 * done, also across reconnects: the server waits for the old connection of a (session, channel) to
 * be finished with before it answers a new one, so a request that is sent again never overtakes its
 * first copy.
 *
 * Who sends: whoever finds tx_mutex free, the submitter as a rule; nobody waits for the network
 * while holding it. Who receives: a task that waits for its reply anyway, one at a time
 * (pvfs_conn_wait()); the channel's kpvfsd thread when there is none. Who takes a connection down:
 * either, under both mutexes.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "conn.h"
#include "trace.h"

#define CREDITS_KEPT 8u		/* of a channel to the mgr: see conn_may_send() */

static bool conn_may_move(enum pvfs_conn_state from, enum pvfs_conn_state to)
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
	WARN_ONCE(!conn_may_move(c->state, state), "pvfs: channel moves from state %d to %d\n",
		  c->state, state);
	c->state = state;
}

/* ---------------------------------------------------------------- what the log says of a server */

static void conn_server_up(struct pvfs_server *s, const struct pvfs_auth_rep *rep)
{
	bool tell;

	spin_lock(&s->lock);
	s->nup++;
	s->last_err = 0;
	s->down_since = 0;
	s->payload_max = rep->payload_max;
	s->epoch = rep->epoch;
	pvfs_iod_tells_room(s, rep->room);
	tell = s->told;
	s->told = false;
	spin_unlock(&s->lock);
	if (tell)
		pr_info("%s: %s answers again\n", s->vol->opts.volume, s->name);
	wake_up_all(&s->wait);
}

static void conn_server_down(struct pvfs_server *s, bool was_up, int err)
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
		/*
		 * A restart of the daemon is over in a second and not worth a line. EAGAIN: it is
		 * the session that is missing, not the server.
		 */
		if (!s->told && err != -EAGAIN && get_jiffies_64() - s->down_since > 2 * HZ) {
			tell = true;
			s->told = true;
		}
	}
	spin_unlock(&s->lock);
	if (tell && !READ_ONCE(s->vol->dead))
		pr_warn("%s: %s does not respond (error %d), %s\n", s->vol->opts.volume, s->name,
			err, s->vol->opts.soft ? "requests will fail" : "still trying");
	wake_up_all(&s->wait);
}

/* ---------------------------------------------------------------- tags; conn->lock held */

/* A tag is its index in the table and a count that tells a late reply from a fresh one. */
static bool conn_tag_take(struct pvfs_conn *c, struct pvfs_request *req)
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

/* No locks held. */
static void conn_end_list(struct list_head *done, int err)
{
	struct pvfs_request *req, *next;

	list_for_each_entry_safe(req, next, done, link) {
		list_del_init(&req->link);
		pvfs_req_complete(req, err);
	}
}

/* ---------------------------------------------------------------- connecting */

/* conn->lock held. */
static void conn_kick_connect(struct pvfs_conn *c, unsigned int delay_ms)
{
	if (c->state != PVFS_CONN_DOWN)
		return;
	conn_set_state(c, PVFS_CONN_CONNECTING);
	queue_delayed_work(c->server->vol->connect_wq, &c->connect_work,
			   msecs_to_jiffies(delay_ms));
}

/*
 * What was posted in another session than the connection's and may be done only once can't be sent
 * again: its slot is known by another number, or not at all. To @ret, to be failed. conn->lock
 * held.
 */
static void conn_take_unsure(struct pvfs_conn *c, struct list_head *ret)
{
	struct pvfs_request *req, *next;

	list_splice_tail_init(&c->later, &c->queue);
	list_for_each_entry_safe(req, next, &c->queue, link) {
		if (!req->resend || !req->has_slot || req->session == c->session)
			continue;
		pvfs_req_set_state(req, PVFS_REQ_DONE);
		list_move_tail(&req->link, ret);
	}
}

static bool conn_wanted(struct pvfs_conn *c)
{
	return !list_empty(&c->urgent) || !list_empty(&c->queue);
}

/* A mgr that is back gives its sessions a lease time to come back, too: see docs/protocol.md. */
static unsigned int conn_backoff_max(const struct pvfs_server *s)
{
	u32 lease_ms = READ_ONCE(s->vol->lease_ms);

	if (s->role != PVFS_ROLE_MGR || !lease_ms)
		return PVFS_BACKOFF_MAX_MS;
	return clamp(lease_ms / 4, PVFS_BACKOFF_MIN_MS, PVFS_BACKOFF_MAX_MS);
}

static void conn_connect_failed(struct pvfs_conn *c, u64 session, int err)
{
	struct pvfs_server *s = c->server;

	/* Before the state: a waiter for the server must see the error when it sees us down. */
	conn_server_down(s, false, err);
	if (err == -ESTALE)
		pvfs_volume_session_lost(s->vol, session);
	spin_lock_bh(&c->lock);
	if (c->state == PVFS_CONN_CONNECTING) {
		conn_set_state(c, PVFS_CONN_DOWN);
		c->backoff_ms = clamp(c->backoff_ms * 2, PVFS_BACKOFF_MIN_MS, conn_backoff_max(s));
		/* A quarter of jitter, so that a thousand clients don't come back in step. */
		if (conn_wanted(c) || s->role == PVFS_ROLE_MGR)
			conn_kick_connect(c, c->backoff_ms -
						     get_random_u32() % (c->backoff_ms / 4 + 1));
	}
	spin_unlock_bh(&c->lock);
}

/*
 * Is who proved to know the key the one that the volume's table means? Another one has other
 * datafiles. Said once, until the right one answers.
 */
static int conn_check_identity(struct pvfs_server *s, const struct pvfs_auth_rep *rep)
{
	struct pvfs_volume *vol = s->vol;
	bool tell, known = memchr_inv(vol->uuid, 0, sizeof(vol->uuid));

	if ((!known || !memcmp(rep->volume_uuid, vol->uuid, sizeof(vol->uuid))) &&
	    (s->role != PVFS_ROLE_IOD || rep->index == s->index)) {
		WRITE_ONCE(s->told_other, false);
		return 0;
	}
	spin_lock(&s->lock);
	tell = !s->told_other;
	s->told_other = true;
	spin_unlock(&s->lock);
	if (tell && s->role == PVFS_ROLE_IOD)
		pr_err("%s: %s should be iod %u of volume %pUb, and is iod %u of volume %pUb: refused\n",
		       vol->opts.volume, s->name, s->index, vol->uuid, rep->index,
		       rep->volume_uuid);
	else if (tell)
		pr_err("%s: %s should be the mgr of volume %pUb, and is that of volume %pUb: refused\n",
		       vol->opts.volume, s->name, vol->uuid, rep->volume_uuid);
	return -EPROTO;
}

/*
 * A refusal by nobody knows whom: he may be between us and the server, or have come to its port
 * first. As when the connection breaks, the next one may tell more. Said once, until one is made.
 */
static int conn_unproved(struct pvfs_server *s, int why)
{
	bool tell;

	spin_lock(&s->lock);
	tell = !s->told_unproved;
	s->told_unproved = true;
	spin_unlock(&s->lock);
	if (tell)
		pr_warn("%s: %s: somebody refuses us there (error %d) who does not prove that he knows the key, still trying\n",
			s->vol->opts.volume, s->name, -why);
	return -ECONNRESET;
}

static void conn_connect(struct pvfs_conn *c)
{
	struct pvfs_server *s = c->server;
	struct pvfs_volume *vol = s->vol;
	u8 ticket[PVFS_TICKET_LEN];
	struct pvfs_auth_rep rep;
	struct socket *sock = NULL;
	LIST_HEAD(unsure);
	u64 session = 0;
	int err;

	if (READ_ONCE(vol->dead) && s->role != PVFS_ROLE_MGR) {
		err = -ESHUTDOWN;
		goto out_failed;
	}
	spin_lock(&vol->lock);
	session = vol->session;
	memcpy(ticket, vol->ticket, sizeof(ticket));
	spin_unlock(&vol->lock);
	/* A session is being opened, on the mgr's channel 0: without one an iod does nothing. */
	if (!session && (c->channel || s->role != PVFS_ROLE_MGR)) {
		err = -EAGAIN;
		goto out_failed;
	}

	err = pvfs_tcp_connect(vol->net, &s->addr, PVFS_CONNECT_MS, &sock);
	if (err)
		goto out_failed;
	err = pvfs_auth_client(sock, vol, s->role, session, ticket, c->channel, &rep);
	if (err == -EKEYREJECTED)
		err = conn_unproved(s, pvfs_errno_from_wire(rep.status));
	else if (err == -EPERM && rep.version)	/* one of another volume does not take our ticket */
		err = conn_check_identity(s, &rep) ?: err;
	if (err)
		goto out_failed;
	WRITE_ONCE(s->told_unproved, false);

	err = conn_check_identity(s, &rep);
	if (err)
		goto out_failed;
	/* Before it is up: nothing ordinary passes before a mgr that is another was told all. */
	if (s->role == PVFS_ROLE_MGR)
		pvfs_volume_mgr_up(vol, rep.epoch);

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
	if (c->lost)		/* the server has waited for what it had of us */
		pvfs_conn_unsure(c, -1);
	c->lost = false;
	c->sock = sock;
	c->session = session;
	conn_take_unsure(c, &unsure);
	c->credits = clamp_t(u32, rep.credits, 1, PVFS_CHAN_TAGS);
	c->backoff_ms = 0;
	c->fault = 0;
	c->tx_full = false;
	c->rx_state = PVFS_RX_HEADER;
	c->rx_done = 0;
	c->connects++;
	spin_unlock_bh(&c->lock);
	conn_server_up(s, &rep);
	pvfs_tcp_attach(c, sock);
	mutex_unlock(&c->rx_mutex);
	mutex_unlock(&c->tx_mutex);
	if (c->connects > 1)
		pvfs_count(vol, PVFS_CNT_RECONNECTS, 1);

	conn_end_list(&unsure, -EIO);
	/* The session was replaced while we shook hands: come back with the new one. */
	if (session != READ_ONCE(vol->session))
		pvfs_conn_fault(c, -ESTALE);
	pvfs_kpvfsd_kick(c);
	return;

out_failed:
	if (sock)
		sock_release(sock);
	conn_connect_failed(c, session, err);
}

static void conn_connect_work(struct work_struct *work)
{
	struct pvfs_conn *c = container_of(to_delayed_work(work), struct pvfs_conn, connect_work);
	/* A page that is to be written may be waiting for it, on swap or under a loop device. */
	unsigned int noio = memalloc_noio_save();

	conn_connect(c);
	memalloc_noio_restore(noio);
}

int pvfs_server_wait_up(struct pvfs_server *s, unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	long left;
	int err;

	spin_lock_bh(&s->chan[0].lock);
	conn_kick_connect(&s->chan[0], 0);
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
		left = pvfs_wait_event_timeout(s->wait,
					       READ_ONCE(s->nup) ||
						       READ_ONCE(s->attempts) != tried,
					       left);
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

/* A request is given up that the server may have, and may do still. c->lock is held. */
static void conn_lost(struct pvfs_conn *c, const struct pvfs_request *req)
{
	if (!req->has_slot || c->lost)
		return;
	c->lost = true;
	pvfs_conn_unsure(c, 1);
}

/* Part of a recovery, which begins anew: the mgr that comes back may be another. */
static bool conn_interrupted(struct pvfs_conn *c, const struct pvfs_request *req)
{
	return (req->flags & (PVFS_RF_RECOVERY | PVFS_RF_ASYNC)) == PVFS_RF_RECOVERY &&
	       READ_ONCE(c->server->vol->recovering);
}

/*
 * Takes the connection away and puts what was posted back in front of the queue (or fails it). Both
 * mutexes held. Requests to be completed are gathered on @done, detached ones on @forgotten: no
 * locks are held while they end.
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
		pvfs_tag_drop(c, req);
		if (req->detached) {
			conn_lost(c, req);
			if (req->has_slot)
				pvfs_conn_unsure(c, -1);
			pvfs_req_set_state(req, PVFS_REQ_DONE);
			list_move_tail(&req->link, forgotten);
		} else if (c->abort || c->state == PVFS_CONN_DEAD || conn_interrupted(c, req)) {
			conn_lost(c, req);
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
		list_for_each_entry(req, &again, link) {
			if (req->resend)
				conn_lost(c, req);
			pvfs_req_set_state(req, PVFS_REQ_DONE);
		}
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
			conn_kick_connect(c, PVFS_BACKOFF_MIN_MS / 2);
	}
	spin_unlock_bh(&c->lock);

	if (sock)
		sock_release(sock);
	list_for_each_entry_safe(a, an, &answers, link)
		kfree(a);
	if (was_up)
		conn_server_down(c->server, true, -ECONNRESET);
}

static void conn_end_lists(struct list_head *done, struct list_head *forgotten, int err)
{
	struct pvfs_request *req, *next;

	conn_end_list(done, err);
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
	conn_end_lists(&done, &forgotten, err);
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

void pvfs_server_interrupt(struct pvfs_server *s)
{
	struct pvfs_conn *c = &s->chan[0];	/* recovery's */
	struct pvfs_request *req, *next;
	LIST_HEAD(forgotten);
	LIST_HEAD(done);

	mutex_lock(&c->tx_mutex);
	mutex_lock(&c->rx_mutex);
	conn_drop(c, &done, &forgotten);
	spin_lock_bh(&c->lock);
	list_for_each_entry_safe(req, next, &c->urgent, link) {
		if (!conn_interrupted(c, req))
			continue;
		pvfs_req_set_state(req, PVFS_REQ_DONE);
		list_move_tail(&req->link, &done);
	}
	spin_unlock_bh(&c->lock);
	mutex_unlock(&c->rx_mutex);
	mutex_unlock(&c->tx_mutex);
	conn_end_lists(&done, &forgotten, -EIO);
}

void pvfs_server_session(struct pvfs_server *s, u64 session, u64 opened)
{
	u32 i;

	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];
		LIST_HEAD(forgotten);
		LIST_HEAD(unsure);
		LIST_HEAD(done);

		mutex_lock(&c->tx_mutex);
		mutex_lock(&c->rx_mutex);
		spin_lock_bh(&c->lock);
		/* The server has noted it for the connection on which it was opened. */
		if (!i && opened && c->connects == opened)
			c->session = session;
		spin_unlock_bh(&c->lock);
		if (c->session != session)
			conn_drop(c, &done, &forgotten);
		spin_lock_bh(&c->lock);
		c->session = session;
		conn_take_unsure(c, &unsure);
		spin_unlock_bh(&c->lock);
		mutex_unlock(&c->rx_mutex);
		mutex_unlock(&c->tx_mutex);
		conn_end_lists(&done, &forgotten, -ECONNRESET);
		conn_end_list(&unsure, -EIO);
	}
}

void pvfs_server_reconnect(struct pvfs_server *s)
{
	u32 i;

	for (i = 0; i < s->nchan; i++)
		pvfs_conn_fault(&s->chan[i], -ESTALE);
}

/* ---------------------------------------------------------------- sending; tx_mutex held */

/*
 * Ordinary requests wait for recovery, and for a connection of the present session: what the mgr
 * says to another is said of a session that is gone.
 */
static bool conn_held_back(struct pvfs_conn *c)
{
	struct pvfs_volume *vol = c->server->vol;

	return c->server->role == PVFS_ROLE_MGR &&
	       (READ_ONCE(vol->recovering) || c->session != READ_ONCE(vol->session));
}

/*
 * The next request that may be sent now; c->lock is held. Those that the mgr answers when another client has
 * given something up may be as many as there are credits, and that client may be waiting for us in the
 * same way. So some credits are kept for heartbeats, and for what ends such waiting, whose answers wait
 * for nobody.
 */
static struct pvfs_request *conn_may_send(struct pvfs_conn *c)
{
	bool mgr = c->server->role == PVFS_ROLE_MGR;
	struct pvfs_request *req;

	if (c->state != PVFS_CONN_UP || c->fault || c->nposted >= c->credits)
		return NULL;
	req = list_first_entry_or_null(&c->urgent, struct pvfs_request, link);
	if (req || conn_held_back(c))
		return req;
	if (!mgr || c->nposted + min_t(u32, CREDITS_KEPT, c->credits / 2) < c->credits)
		return list_first_entry_or_null(&c->queue, struct pvfs_request, link);
	list_for_each_entry(req, &c->queue, link)
		if (req->op == PVFS_OP_REPORT || req->op == PVFS_OP_CLOSE || (req->flags & PVFS_RF_GIVES))
			return req;
	return NULL;
}

/* The next thing to send, POSTED and with its header made; NULL: nothing may be sent now. */
static struct pvfs_request *conn_next_request(struct pvfs_conn *c)
{
	struct pvfs_request *req;
	struct pvfs_header h = {};

	spin_lock_bh(&c->lock);
	req = conn_may_send(c);
	if (!req)
		goto out;
	if (!conn_tag_take(c, req)) {
		req = NULL;
		goto out;
	}
	c->nposted++;
	list_move_tail(&req->link, &c->posted);
	/* Both before the bytes go out: the reply may come while we still send. */
	pvfs_req_set_state(req, PVFS_REQ_POSTED);
	c->tx_req = req;
	req->session = c->session;
	req->connect = c->connects;
	h.session = c->session;
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
	if (req->op == PVFS_OP_CLOSE)
		c->server->vol->ops->close_current(req);
	h.body_crc = req->body_len ? pvfs_crc32c(0, req->body, req->body_len) : 0;
	pvfs_header_encode(&h, &c->tx_hdr);
	return req;
}

/* 1: all of it is out; 0: the socket is full; -errno. */
static int conn_send_answer(struct pvfs_conn *c)
{
	struct pvfs_answer *a = c->tx_answer;
	int n;

	while (c->tx_done < a->len) {
		n = pvfs_tcp_send(c->sock, a->bytes + c->tx_done, a->len - c->tx_done, NULL, 0,
				  false);
		if (n < 0)
			return n == -EAGAIN ? 0 : n;
		c->tx_done += n;
	}
	kfree(a);
	c->tx_answer = NULL;
	c->tx_done = 0;
	return 1;
}

static int conn_send_request(struct pvfs_conn *c)
{
	struct pvfs_request *req = c->tx_req;
	u32 front = PVFS_HDR_LEN + req->body_len;
	u32 payload = req->write ? req->bv_len : 0;
	int n;

	while (c->tx_done < front + payload) {
		if (c->tx_done < PVFS_HDR_LEN)
			n = pvfs_tcp_send(c->sock, (u8 *)&c->tx_hdr + c->tx_done,
					  PVFS_HDR_LEN - c->tx_done, req->body, req->body_len,
					  payload);
		else if (c->tx_done < front)
			n = pvfs_tcp_send(c->sock, req->body + c->tx_done - PVFS_HDR_LEN,
					  front - c->tx_done, NULL, 0, payload);
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
static void conn_send_all(struct pvfs_conn *c, enum pvfs_counter who)
{
	bool again = false;
	int n;

	for (;;) {
		if (!c->sock || READ_ONCE(c->fault))
			return;
		if (!c->tx_req && !c->tx_answer) {
			spin_lock_bh(&c->lock);
			c->tx_answer = list_first_entry_or_null(&c->answers, struct pvfs_answer,
								link);
			if (c->tx_answer) {
				list_del(&c->tx_answer->link);
				c->nanswers--;
			}
			spin_unlock_bh(&c->lock);
		}
		if (!c->tx_req && !c->tx_answer) {
			if (!conn_next_request(c))
				return;
			pvfs_count(c->server->vol, who, 1);
		}
		n = c->tx_answer ? conn_send_answer(c) : conn_send_request(c);
		if (n < 0) {
			pvfs_conn_fault(c, n);
			return;
		}
		if (!n) {
			WRITE_ONCE(c->tx_full, true);
			smp_mb();	/* pairs with pvfs_tcp_attach()'s write_space() */
			/* Room that was made before that was told to nobody. */
			if (!pvfs_tcp_has_room(c->sock))
				return;
			if (again) {
				/* It has room, and takes nothing: it is memory that is short. */
				pvfs_conn_come_back(c);
				return;
			}
			again = true;
			continue;
		}
		again = false;
		WRITE_ONCE(c->tx_full, false);
	}
}

/* Is there something that a sender could send right now? */
static bool conn_can_send(struct pvfs_conn *c)
{
	bool can;

	spin_lock_bh(&c->lock);
	can = c->state == PVFS_CONN_UP && !c->fault && !READ_ONCE(c->tx_full) &&
	      (!list_empty(&c->answers) || conn_may_send(c));
	spin_unlock_bh(&c->lock);
	return can;
}

static void conn_push(struct pvfs_conn *c, enum pvfs_counter who)
{
	/*
	 * Whoever holds the mutex looks again after giving it up, so what was queued before our
	 * trylock failed is seen by the holder: lock's unlock-lock pair orders the queueing before
	 * its look.
	 */
	do {
		if (!mutex_trylock(&c->tx_mutex))
			return;
		conn_send_all(c, who);
		mutex_unlock(&c->tx_mutex);
		smp_mb();	/* gave the mutex up, then look: see above */
	} while (conn_can_send(c));
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
	conn_kick_connect(c, 0);
	spin_unlock_bh(&c->lock);
	conn_push(c, PVFS_CNT_THREAD_SENDS);
}

void pvfs_conn_come_back(struct pvfs_conn *c)
{
	queue_delayed_work(c->server->vol->connect_wq, &c->again_work,
			   msecs_to_jiffies(PVFS_AGAIN_MS));
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
		conn_kick_connect(c, 0);
	}
	spin_unlock_bh(&c->lock);
	if (dead)
		pvfs_req_complete(req, -ESHUTDOWN);
	else
		conn_push(c, PVFS_CNT_DIRECT_SENDS);
}

void pvfs_conn_abandon(struct pvfs_request *req, int err)
{
	struct pvfs_conn *c = req->conn;
	bool withdrawn = false, done = false, bad = false;

	mutex_lock(&c->tx_mutex);
	mutex_lock(&c->rx_mutex);
	spin_lock_bh(&c->lock);
	switch (req->state) {
	/* could be withdrawn: the server never heard of it, or will be asked no more */
	case PVFS_REQ_QUEUED:
		list_del_init(&req->link);
		if (req->resend && c->state != PVFS_CONN_UP)
			conn_lost(c, req);
		else if (req->resend && req->has_slot)	/* it may have been done */
			c->server->vol->ops->leases_void(c->server->vol);
		pvfs_req_set_state(req, PVFS_REQ_DONE);
		req->err = err;
		withdrawn = true;
		break;
	case PVFS_REQ_POSTED:		/* its reply will come and be thrown away */
		req->detached = true;
		req->err = err;
		if (req->has_slot)	/* until the reply comes, or the channel is back */
			pvfs_conn_unsure(c, 1);
		if (c->rx_req == req) {
			c->rx_req = NULL;
			c->rx_discard = true;
		}
		/*
		 * Half of its payload is out: the owner's memory is needed for the rest, so the
		 * stream must end.
		 */
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
		wait_event(req->wait, pvfs_req_ended(req));
}

/* ---------------------------------------------------------------- serving */

void pvfs_conn_service(struct pvfs_conn *c)
{
	int n = 0, budget = 64, fault;

	mutex_lock(&c->rx_mutex);
	while (c->sock && budget--) {
		n = pvfs_conn_receive(c);
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
		conn_take_down(c, -EIO, true);
		return;
	}
	if (READ_ONCE(c->tx_full)) {
		mutex_lock(&c->tx_mutex);
		c->tx_full = false;
		conn_send_all(c, PVFS_CNT_THREAD_SENDS);
		mutex_unlock(&c->tx_mutex);
	}
	if (conn_can_send(c))
		conn_push(c, PVFS_CNT_THREAD_SENDS);
	if (n > 0)	/* fair to the other channels of this thread: come back for the rest */
		pvfs_kpvfsd_kick(c);
}

/* ---------------------------------------------------------------- servers */

struct pvfs_server *pvfs_server_new(struct pvfs_volume *vol, u8 role, u32 index,
				    const struct sockaddr_storage *addr, const char *host)
{
	struct pvfs_server *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u32 i;

	if (!s)
		return NULL;
	s->vol = vol;
	s->role = role;
	s->index = index;
	s->addr = *addr;
	snprintf(s->name, sizeof(s->name), "%s %s (%pISpc)", role == PVFS_ROLE_MGR ? "mgr" : "iod",
		 host, addr);
	atomic64_set(&s->room, U64_MAX);
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
		pvfs_conn_reader_init(c);
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
		pvfs_conn_reader_fini(c);
		pvfs_kpvfsd_flush(c);
	}
	kvfree(s->chan);
	kfree(s);
}
