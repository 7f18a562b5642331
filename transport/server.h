/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * server.h - what the files of the serving side share: server.c (life, requests, replies),
 * srvaccept.c (listening, who is sent away), handshake.c (HELLO and AUTH, sessions' connections),
 * srvmem.c (memory for payloads and replies), callback.c (requests to clients), srvstats.c
 * (counters, STATS).
 *
 * A connection as the server sees it; changes go through srv_set_state() in handshake.c:
 *
 *   accept_ready()      handshake_hello()         handshake_auth()
 *  --------------> NEW -----------------> HELLOED --------+-----------> OPEN
 *                   |                        |            |              ^
 *                   |                        |            v              | auth_finish()
 *                   |                        |         WAITING ----------+
 *                   |                        |      (for the calls of the connection it replaces)
 *                   +----------+-------------+------------+--------------+
 *                              | conn_down()
 *                              v
 *                            CLOSED --- last call's end ---> conn_freed()
 */
#ifndef PVFS_SERVER_H
#define PVFS_SERVER_H

#include <sys/queue.h>
#include "auth.h"
#include "bufmgr.h"
#include "conn.h"

#define SRV_HASH 256
#define SRV_SESSIONS 1024		/* buckets */
#define SRV_CALLS_KEPT 256		/* free calls kept for reuse */
#define SRV_BODY_INLINE 768		/* bytes; longer bodies get memory of their own */
#define SRV_REPLY_INLINE 640
#define SRV_DEAD 0x80000000u		/* in srv_conn.calls */

enum srv_state { SRV_NEW, SRV_HELLOED, SRV_WAITING, SRV_OPEN, SRV_CLOSED };

struct srv_callback;

/* A session's connections; exists while there are any. All fields under s->lock. */
struct srv_session {
	LIST_ENTRY(srv_session) link;	/* in its bucket */
	u64 id;
	LIST_HEAD(, srv_conn) conns;
};

/**
 * struct srv_conn - an accepted connection
 * @calls: running calls, and SRV_DEAD: no further one may begin. A connection that replaces one counts
 *	as having a call until it is done with it, so that a third one in its place waits for it and
 *	thereby for the first.
 * @unsent: replies made and not yet with the transport
 * @unread: bytes of them that take memory
 */
struct srv_conn {
	struct pvfs_conn c;
	struct pvfs_server *s;
	struct pvfs_peerinfo peer;
	void *data;			/* the handler's */
	u64 t_accept;
	atomic_uint calls, unsent;
	atomic_ullong unread;

	/* reader's */
	enum srv_state state;		/* written under s->lock too, so that others may look */
	struct pvfs_nonces nonces;
	struct srv_call *call;		/* being received */
	struct srv_callback *cb;	/* whose answer is being received */
	bool cb_late;			/* an answer nobody waits for is */
	int verdict;	/* -errno the request will be refused with, known from its header */
	struct iovec pay;
	u8 small[1024];			/* body of HELLO, AUTH */

	/* s->lock */
	struct srv_conn *next, **link;	/* s->conns */
	struct srv_conn *hnext;		/* s->hash */
	bool hashed;
	TAILQ_ENTRY(srv_conn) ulink;	/* s->unproved, while @unproved */
	bool unproved;
	bool proved;			/* counts in s->nproved, until it is freed */
	struct srv_session *session;	/* whose list it is in, until it is freed */
	LIST_ENTRY(srv_conn) slink;
	/* WAITING for our calls; it holds no reference, we hold one on it */
	struct srv_conn *waiter;
	struct srv_conn *waits_for;	/* whose waiter we are */
	bool is_down;
	bool killed;			/* with its session */
	struct srv_conn *pnext;		/* s->pay_wait or pay_round */
	bool pay_queued, pay_trying;
	struct pvfs_bufwait bufwait;	/* s->bufs' */
};

/* A request being served and its reply; recycled. */
struct srv_call {
	struct pvfs_call call;
	struct srv_conn *sc;
	struct pvfs_send send;
	struct pvfs_out out;
	struct iovec iov;
	u64 bytes;
	u64 unread;			/* bytes counted in sc->unread */
	u8 *reply;
	struct srv_call *next;		/* free list */
	u8 body_mem[SRV_BODY_INLINE];
	u8 reply_mem[SRV_REPLY_INLINE];
};

struct srv_count {
	atomic_ullong count, errors, bytes_in, bytes_out, ns_total, ns_max;
};

/* A listening address. Outlives its server: see pvfs_engine_del(). */
struct srv_listener {
	struct pvfs_source src;
	struct pvfs_server *s;		/* valid while !stopped */
	const struct pvfs_xprt_ops *ops;
	void *l;
	struct pvfs_timer retry;	/* accept failed for want of something */
	pthread_mutex_t lock;	/* protects the next, and is held while connections are accepted */
	bool stopped;
};

struct pvfs_server {
	struct pvfs_engine *e;
	struct pvfs_server_params p;
	int nlisteners;			/* entries of listeners[] */
	u64 t_start;
	struct pvfs_timer tick;
	struct srv_count counts[PVFS_OP_LIMIT];
	atomic_ullong accepted, refused, protocol_errors, replies_dropped;
	atomic_bool stopping;		/* requests that come are not begun any more */
	struct pvfs_bufs *bufs;		/* for payloads, unless ops->payload_get finds room */
	atomic_ullong unread;		/* bytes, of all connections */
	u64 watch_due;			/* tick's */

	pthread_mutex_t lock;	/* protects all below; leaf but for a connection's tx_lock */
	pthread_cond_t cond;	/* a connection or its calls are gone, a callback was answered */
	struct srv_conn *conns;
	u32 nconns, nproved, nunproved;
	TAILQ_HEAD(, srv_conn) unproved;	/* the oldest first */
	LIST_HEAD(, srv_session) sessions[SRV_SESSIONS];
	u32 nsessions;
	/* by session and channel: the last one of each that proved itself, until it is freed */
	struct srv_conn *hash[SRV_HASH];
	struct srv_conn *pay_wait, **pay_wait_tail;	/* in order, for payload memory */
	struct srv_conn *pay_round;	/* to be tried one after the other, before pay_wait */
	bool pay_busy;			/* one of a round is trying */
	u64 pay_seq;			/* grows when memory came back */
	u64 pay_round_seq;		/* what it was when the round began */
	struct srv_callback *callbacks;
	u32 next_tag;

	pthread_mutex_t free_lock;	/* protects the free list */
	struct srv_call *free_calls;
	u32 nfree;

	struct srv_listener *listeners[];	/* fixed after the start */
};

static inline struct srv_conn *srv_conn(struct pvfs_conn *c)
{
	return container_of(c, struct srv_conn, c);
}

/* server.c */
struct srv_call *srv_call_new(struct pvfs_server *s, u32 body_len);
void srv_call_free(struct srv_call *k);
bool srv_call_begin(struct srv_conn *sc);	/* false: the connection is ending */
void srv_call_end(struct srv_conn *sc);
void srv_conn_close_calls(struct srv_conn *sc);	/* no further call may begin */

extern const struct pvfs_conn_ops srv_conn_ops;

/* srvaccept.c */
int srv_listen(struct pvfs_server *s, const struct pvfs_addr *a);
void srv_unlisten(struct pvfs_server *s, struct srv_listener *l);
void srv_cut_unproved(struct pvfs_server *s, u64 now);	/* both: now and then, on one thread */
void srv_cut_stalled(struct pvfs_server *s, u64 now);

/* srvmem.c */
int srv_bufs_make(struct pvfs_server *s);
int srv_payload(struct pvfs_conn *c);		/* as ops->payload */
void srv_payload_put(struct srv_call *k);
u64 srv_pay_seq(struct pvfs_server *s);	/* to be read before memory is asked for */
int srv_pay_wait(struct srv_conn *sc, u64 seq);	/* there was none; parks, returns 1 */
void srv_pay_success(struct srv_conn *sc);	/* there was */
struct srv_conn *srv_pay_forget(struct srv_conn *sc);	/* s->lock held; srv_pay_kick() follows */
void srv_pay_kick(struct srv_conn *sc);
void srv_unread_add(struct srv_conn *sc, u64 n);
void srv_unread_sub(struct srv_conn *sc, u64 n);
bool srv_may_begin(struct srv_conn *sc);

/* handshake.c */
void srv_set_state(struct srv_conn *sc, enum srv_state state);	/* s->lock held */
int handshake_message(struct srv_conn *sc);	/* as ops->message */
void handshake_resume(struct srv_conn *sc);	/* what it waited for is over; takes a reference */
void srv_hash_remove(struct srv_conn *sc);	/* s->lock held */
void srv_unproved_remove(struct srv_conn *sc);	/* the same */
struct srv_session *srv_session_find(struct pvfs_server *s, u64 id);	/* the same */
void srv_session_leave(struct srv_conn *sc);	/* the same */

/* callback.c */
int callback_head(struct srv_conn *sc);		/* as ops->head, for a reply */
void callback_message(struct srv_conn *sc);
void callback_down(struct srv_conn *sc);

/* srvstats.c */
void srv_count_reply(struct srv_call *k, int err, u64 bytes_out);
void srv_stats_reply(struct srv_call *k);

#endif
