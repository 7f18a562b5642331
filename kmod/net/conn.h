/* SPDX-License-Identifier: GPL-2.0 */
/*
 * conn.h - servers, channels, and what a kernel transport has to supply. Lower half only.
 */
#ifndef PVFS_CONN_H
#define PVFS_CONN_H

#include <linux/llist.h>
#include <linux/net.h>
#include "net.h"

/* Requests in flight on one channel, whatever the server would grant. */
#define PVFS_CHAN_TAGS 256
/* Answers to the server's own requests that may wait to be sent on one channel. */
#define PVFS_CHAN_ANSWERS 16

#define PVFS_CONNECT_MS 5000	/* for the TCP connection, and again for all of the hello */
#define PVFS_AGAIN_MS 100		/* after EAGAIN */
#define PVFS_BACKOFF_MIN_MS 50
#define PVFS_BACKOFF_MAX_MS 5000

/*
 *            conn_kick_connect            conn_connect_work          conn_service on fault
 *   DOWN ---------------------> CONNECTING -----------> UP ------------------------> DOWN
 *    ^                              |                                                 |
 *    +--- failed, after back-off ---+                    any --- conn_close ---> DEAD
 *
 * Moved by conn_set_state() only, under conn->lock.
 */
enum pvfs_conn_state {
	PVFS_CONN_DOWN,
	PVFS_CONN_CONNECTING,
	PVFS_CONN_UP,
	PVFS_CONN_DEAD,
};

/* An answer to a request from the server, small enough to be kept whole. */
struct pvfs_answer {
	struct list_head link;
	u32 len;
	u8 bytes[PVFS_HDR_LEN + 64];
};

/**
 * struct pvfs_conn - one channel: at most one connection to one server, served by one kpvfsd thread
 *
 * Locks, outermost first: tx_mutex, rx_mutex, lock. Both mutexes together are needed to take the
 * socket away.
 */
struct pvfs_conn {
	struct pvfs_server *server;
	u32 channel;
	struct pvfs_kthread *thread;	/* serves it */

	spinlock_t lock;		/* protects from here to `tags' */
	enum pvfs_conn_state state;
	struct list_head urgent;	/* QUEUED requests that (re)establish the session */
	struct list_head queue;		/* other QUEUED requests, oldest first */
	/* QUEUED requests that the server told to come back: again_work moves them */
	struct list_head later;
	struct list_head posted;	/* POSTED requests, oldest first */
	struct list_head answers;
	u32 nanswers;
	u32 credits;			/* messages we may still post */
	u32 nposted;
	int fault;			/* why the connection must go; 0: it need not */
	bool abort;	/* at the next fault requests fail instead of being sent again */
	/* requests were given up that the server may do until this channel is back: pvfs_conn_unsure() */
	bool lost;
	unsigned int backoff_ms;
	u64 connects;
	/* that the connection proved, or that was opened on it; all that is posted on it names it */
	u64 session;
	struct pvfs_request *tags[PVFS_CHAN_TAGS];
	u32 tag_gen;

	struct socket *sock;		/* changed under both mutexes */

	struct mutex tx_mutex;		/* protects the sending half: */
	/* sent in part; holds no reference of its own: it is on `posted' */
	struct pvfs_request *tx_req;
	struct pvfs_answer *tx_answer;	/* sent in part */
	u32 tx_done;			/* bytes of it that are out */
	bool tx_full;			/* the socket took no more; write_space will kick */
	struct pvfs_hdr tx_hdr;

	struct mutex rx_mutex;		/* protects the receiving half: */
	enum { PVFS_RX_HEADER, PVFS_RX_BODY, PVFS_RX_PAYLOAD } rx_state;
	u32 rx_done;			/* bytes of the current part that are in */
	struct pvfs_request *rx_req;	/* whose reply is coming in; NULL: none, or thrown away */
	bool rx_discard;
	struct pvfs_hdr rx_hdr;
	struct pvfs_header rx_head;
	u8 rx_small[256];	/* bodies of requests from the server, and what is thrown away */

	unsigned long flags;		/* PVFS_CONN_* bits, atomic */
	struct llist_node ready;	/* on the thread's list while KICKED */
	u64 reply_ns;			/* averages: from post to reply of small requests, */
	u64 wake_ns;			/* and from data_ready to the reader's looking at it */
	u64 readable_at;		/* ns; when READABLE was set */
	/* at most one task: it waits for a reply and receives for all meanwhile */
	wait_queue_head_t reader;
	struct timer_list reader_timer;	/* runs while READABLE may be set */
	struct delayed_work connect_work;
	struct delayed_work again_work;

	/* the socket's own callbacks, put back before it is released */
	void (*old_data_ready)(struct sock *sk);
	void (*old_write_space)(struct sock *sk);
	void (*old_state_change)(struct sock *sk);
};

#define PVFS_CONN_KICKED 0
#define PVFS_CONN_SERVING 1
/* the reader has been woken for data; set under reader.lock while there is one */
#define PVFS_CONN_READABLE 2
/* the reader did not come for it in time: the thread receives until it does; under reader.lock */
#define PVFS_CONN_LATE 3

/**
 * struct pvfs_server - one server node: the mgr or an iod
 */
struct pvfs_server {
	struct pvfs_volume *vol;
	u8 role;			/* PVFS_ROLE_MGR or PVFS_ROLE_IOD */
	u32 index;			/* of an iod */
	struct sockaddr_storage addr;
	char name[PVFS_HOST_MAX + 64];	/* "node3 (10.0.0.3:7101)", for messages */
	u32 nchan;
	struct pvfs_conn *chan;

	spinlock_t lock;		/* protects what follows */
	int last_err;			/* of the last attempt to connect */
	u32 nup;
	u64 down_since;			/* jiffies64, 0: up, or never tried */
	bool told;			/* the log has "not responding" */
	bool told_other;		/* the log has that it is another daemon */
	bool told_unproved;		/* and that somebody refuses us there who does not prove the key */
	u32 payload_max;		/* from AUTH */
	u64 epoch;
	wait_queue_head_t wait;		/* nup or last_err changed */
	u64 attempts;
	/* of an iod, no lock: bytes that it takes yet, as it said last, and when that was, jiffies64 */
	atomic64_t room;
	u64 room_told;
};

static inline bool pvfs_req_ended(const struct pvfs_request *req)
{
	return smp_load_acquire(&req->ended);	/* pairs with pvfs_req_complete() */
}

/* The POSTED request that a reply is for, or NULL. conn->rx_mutex or conn->lock held. */
static inline struct pvfs_request *pvfs_tag_find(struct pvfs_conn *c, u32 tag)
{
	struct pvfs_request *req = c->tags[tag % PVFS_CHAN_TAGS];

	return req && req->tag == tag ? req : NULL;
}

/* There is a change more, or one less, of which nobody knows when it is made: see pvfs_volume_ops. */
static inline void pvfs_conn_unsure(struct pvfs_conn *c, int delta)
{
	struct pvfs_volume *vol = c->server->vol;

	vol->ops->leases_unsure(vol, delta);
}

/* conn->lock held. */
static inline void pvfs_tag_drop(struct pvfs_conn *c, struct pvfs_request *req)
{
	c->tags[req->tag % PVFS_CHAN_TAGS] = NULL;
	c->nposted--;
}

/* ---- conn.c ---- */
struct pvfs_server *pvfs_server_new(struct pvfs_volume *vol, u8 role, u32 index,
				    const struct sockaddr_storage *addr, const char *host);
/* Fails everything with -ESHUTDOWN, closes, waits for its threads and work, frees. NULL is fine. */
void pvfs_server_free(struct pvfs_server *s);
/* Fails everything in flight and queued with -EIO and drops the connections; usable afterwards. */
void pvfs_server_abort(struct pvfs_server *s);
/* Fails what recovery waits for with -EIO; its connection is another then. */
void pvfs_server_interrupt(struct pvfs_server *s);
/*
 * The volume's session is @session now, 0: gone. The mgr's connections that know another end; that
 * on which it was opened, channel 0's number @opened, goes on with it. When it returns, the ONCE
 * requests that were posted in another have failed with -EIO: nobody can say whether they took effect.
 */
void pvfs_server_session(struct pvfs_server *s, u64 session, u64 opened);
/* Drops the connections so that they come back with the volume's present session. */
void pvfs_server_reconnect(struct pvfs_server *s);
/* Starts channel 0 and waits until it is up, refused, or @ms passed. 0 or -errno. */
int pvfs_server_wait_up(struct pvfs_server *s, unsigned int ms);
/* Queues on the channel of this CPU and sends if it can. Takes the lower half's reference. */
void pvfs_conn_submit(struct pvfs_server *s, struct pvfs_request *req);
/* The owner wants to leave: after it returned no payload and no reply memory is touched. */
void pvfs_conn_abandon(struct pvfs_request *req, int err);
/* On the thread or a reader: receive, send, deal with faults. */
void pvfs_conn_service(struct pvfs_conn *c);
/* Marks the connection bad; its thread takes it down. Any context. */
void pvfs_conn_fault(struct pvfs_conn *c, int err);
/* Pushes what waits on the mgr's channels, after recovery. */
void pvfs_server_push(struct pvfs_server *s);

/* Has the `later' queue looked at after a pause, and the socket. */
void pvfs_conn_come_back(struct pvfs_conn *c);

/* ---- conn_rx.c ---- */
/* One step of receiving; rx_mutex held. 1: went on, 0: no bytes, -errno: bad. */
int pvfs_conn_receive(struct pvfs_conn *c);
/*
 * Waits, killably, for the end of a request of ours. If nobody does so yet we receive for the
 * channel meanwhile: then the reply wakes who asked for it, instead of a thread that would have to
 * wake it. @left: jiffies. Return: as wait_event_killable_timeout().
 */
long pvfs_conn_wait(struct pvfs_request *req, long left);
/* From the socket's callback: data, or the end of it. */
void pvfs_conn_readable(struct pvfs_conn *c);
void pvfs_conn_reader_init(struct pvfs_conn *c);
/* The socket is gone, and nobody waits any more. */
void pvfs_conn_reader_fini(struct pvfs_conn *c);

/* ---- kreq.c ---- */
/* Its part of vol->room. 0 or -ENOMEM. */
int pvfs_kreq_room_init(struct pvfs_volume *vol);
/* No request exists any more. */
void pvfs_kreq_room_fini(struct pvfs_volume *vol);
/* conn->lock held */
void pvfs_req_set_state(struct pvfs_request *req, enum pvfs_req_state state);
/*
 * Final: gives back slot and the lower half's reference, wakes or calls the owner. No locks held.
 */
void pvfs_req_complete(struct pvfs_request *req, int err);
/* A detached request's reply came, or never will. No locks held. */
void pvfs_req_forget(struct pvfs_request *req);

/* ---- kpvfsd.c ---- */
unsigned int pvfs_kpvfsd_count(void);
struct pvfs_kthread *pvfs_kpvfsd_thread(u32 channel);
void pvfs_kpvfsd_kick(struct pvfs_conn *c);
/* Waits until no thread will touch @c again; nobody may kick it any more. */
void pvfs_kpvfsd_flush(struct pvfs_conn *c);

/* ---- tcp_kern.c: the TCP transport ---- */
int pvfs_tcp_connect(struct net *net, const struct sockaddr_storage *addr, unsigned int ms,
		     struct socket **ret);
/* All of it or an error, blocking until @end, jiffies: for the hello. */
int pvfs_tcp_send_all(struct socket *sock, const void *p, size_t n, unsigned long end);
int pvfs_tcp_recv_all(struct socket *sock, void *p, size_t n, unsigned long end);
/* Non-blocking: bytes, -EAGAIN, or -errno (0 is turned into -ECONNRESET). */
int pvfs_tcp_send(struct socket *sock, const void *a, u32 an, const void *b, u32 bn, bool more);
int pvfs_tcp_send_pages(struct socket *sock, const struct bio_vec *bv, unsigned int nbv, u32 skip,
			u32 n);
/* There is room in the socket: after EAGAIN, write_space will not tell. */
bool pvfs_tcp_has_room(struct socket *sock);
int pvfs_tcp_recv(struct socket *sock, void *p, u32 n);
int pvfs_tcp_recv_pages(struct socket *sock, const struct bio_vec *bv, unsigned int nbv, u32 skip,
			u32 n);
void pvfs_tcp_attach(struct pvfs_conn *c, struct socket *sock);
void pvfs_tcp_detach(struct pvfs_conn *c, struct socket *sock);

/* ---- auth_kern.c ---- */
/*
 * HELLO and AUTH on a fresh connection, within PVFS_CONNECT_MS, however few bytes the server sends at a
 * time. 0 and the server's answer, or -errno (the server's -EACCES,
 * -ESTALE, ...); -EKEYREJECTED: a refusal, ret->status, without the key's mac.
 */
int pvfs_auth_client(struct socket *sock, struct pvfs_volume *vol, u8 role, u64 session,
		     const u8 *ticket, u32 channel, struct pvfs_auth_rep *ret);

/* ---- volume.c ---- */
/* A connection to the mgr is up: is the mgr a new one? */
void pvfs_volume_mgr_up(struct pvfs_volume *vol, u64 epoch);
/* AUTH said that @session is gone. */
void pvfs_volume_session_lost(struct pvfs_volume *vol, u64 session);
int pvfs_slot_get(struct pvfs_volume *vol, struct pvfs_request *req);
void pvfs_slot_put(struct pvfs_volume *vol, struct pvfs_request *req);

/* ---- stats.c ---- */
#include "stats.h"

#endif
