/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * peer.h - what the files of the asking side share: peer.c (the pool: requests in and out, time,
 * state), channel.c (one channel: its requests and its connection), client_auth.c (HELLO and AUTH,
 * the client's part).
 *
 * A channel's connection; changes go through chan_set_state() in channel.c:
 *
 *            chan_connect()                  chan_auth_ok()             chan_up()
 *   IDLE ---------------------> CONNECTING ------------------> UPCALL --------------> UP
 *    ^                           |   ^                           |                     |
 *    |        chan_lost()        |   | chan_connect()            |                     |
 *    +---------------------------+   |                           |                     |
 *    |  nobody wants it          v   |                           |                     |
 *    +------------------------ WAIT <----------------------------+---------------------+
 *                             (back-off)              chan_lost()
 *
 * A request: QUEUED (urgent or queue) -> POSTED (posted, has a tag) -> gone, or back to QUEUED when
 * the connection is lost. POSTED ends when both sides are done with its memory: `sending' is false
 * and either `replied' or `lost' is true: preq_settle().
 *
 * Locks: chan.lock, then pvfs_peer.lock. No callback, and no pvfs_conn_send(), is called with
 * either.
 */
#ifndef PVFS_PEER_H
#define PVFS_PEER_H

#include <sys/queue.h>
#include "auth.h"
#include "conn.h"

#define CHAN_TAGS 256			/* power of two; requests in flight on a channel */
#define HANDSHAKE_MS_DEFAULT 15000u
#define PEER_STALL_MS_DEFAULT 20000u
#define BACKOFF_MIN_MS 50u
#define BACKOFF_MAX_MS 5000u
/* so long after a refusal requests fail without another try */
#define REFUSED_QUIET_NS 1000000000ull
#define PREQS_KEPT 512

enum chan_state { CHAN_IDLE, CHAN_CONNECTING, CHAN_UPCALL, CHAN_UP, CHAN_WAIT };

/* A request on its way; all but @send under the channel's lock. */
struct preq {
	struct pvfs_send send;
	struct pvfs_rpc *rpc;		/* NULL: timed out, the reply will be thrown away */
	u32 payload_len;		/* of the request */
	struct chan *ch;
	TAILQ_ENTRY(preq) link;	/* urgent, queue or posted; or a list of what is to be completed */
	u32 tag;
	bool urgent, posted;
	bool sending;			/* the sending side has it */
	bool rx;			/* the reader is writing into its memory */
	bool replied, lost;
	bool timed_out;
	bool resend;			/* was posted on a connection that was lost */
	u64 session;			/* when it was posted first; valid if @resend */
	u64 t_submit, t_queued;
	u64 deadline;			/* ns, 0: none */
	int err;			/* result, when to be completed */
	u32 rep_len, in_len;
};

TAILQ_HEAD(preq_list, preq);

struct pconn;

struct chan {
	struct pvfs_peer *p;
	u32 index;
	pthread_mutex_t lock;		/* protects all below */
	enum chan_state state;
	bool in_up;			/* params.up runs for it */
	bool was_up;			/* ever */
	struct pconn *conn;	/* with a reference; CONNECTING (from connect on), UPCALL, UP */
	struct preq_list urgent, queue, posted;
	struct preq *tags[CHAN_TAGS];
	u32 tag_next;
	u32 nposted;			/* that have a tag */
	u32 nzombies;			/* of them, without an rpc */
	u32 credits;
	u32 payload_max;		/* bytes that the server takes */
	u32 backoff_ms;
	u64 retry_at;			/* WAIT: when to connect */
	u64 down_since;			/* not UP since */
	u64 up_since;
	u64 handshake_until;		/* CONNECTING */
};

/* A channel's connection; outlives its time as such until its sending side is done. */
struct pconn {
	struct pvfs_conn c;
	struct chan *ch;
	u64 session;			/* ch->lock: the one it is bound to */
	u8 ticket[PVFS_TICKET_LEN];	/* its */
	/* reader's */
	enum { HS_HELLO, HS_AUTH, HS_DONE } hs;
	struct pvfs_nonces nonces;
	struct preq *rx;		/* whose reply is being received */
	bool callback;			/* a request of the server is */
	u8 *cb_body;
	u8 small[512];
	int refusal;			/* -errno of AUTH: not to be tried again */
	bool stale;			/* AUTH: the session is gone */
	char why[192];
};

struct pvfs_peer {
	struct pvfs_engine *e;
	struct pvfs_peer_params pp;
	struct pvfs_key key;
	char host[PVFS_HOST_MAX + 1];	/* our own name, for AUTH */
	struct pvfs_timer timer;
	struct chan *chans;
	atomic_bool closing;
	struct {
		atomic_ullong n, errors, bytes_out, bytes_in, resent, ns_total, ns_max;
	} counts[PVFS_OP_LIMIT];
	atomic_ullong connects, wakeups;
	atomic_uint backoff_max_ms;

	pthread_mutex_t lock;		/* protects all below */
	pthread_cond_t cond;		/* inflight or nconns became 0 */
	u64 session;
	u8 ticket[PVFS_TICKET_LEN];	/* its */
	u64 due;			/* what timer is set to, 0: not */
	enum pvfs_peer_state state;
	u32 nup;
	int last_err;
	char why[192];
	u64 refused_at, down_since;
	bool told;			/* the log says that it does not answer */
	bool known;			/* who it is, see pvfs_peer_expect() */
	u8 uuid[PVFS_UUID_LEN];
	u32 index;
	bool told_refused;		/* the log says that it refuses us */
	bool told_unproved;		/* the same, but of whom nobody knows */
	bool told_other;		/* the log says that somebody else answers there: these */
	u8 other_uuid[PVFS_UUID_LEN];
	u32 other_index;
	u32 inflight;			/* preqs that exist */
	u32 nconns;
	struct preq_list free;
	u32 nfree;
};

/* peer.c */
void peer_due(struct pvfs_peer *p, u64 due);	/* tick no later than @due */
void peer_complete(struct pvfs_peer *p, struct preq_list *done);	/* no locks held */
void peer_preq_free(struct pvfs_peer *p, struct preq *r);
void peer_up(struct pvfs_peer *p);
void peer_down(struct pvfs_peer *p, bool was_up, int err, const char *why);
void peer_refused(struct pvfs_peer *p, int err, const char *why);
void peer_unproved(struct pvfs_peer *p, int err);	/* a refusal without a mac came: logged once */
/* Is it another daemon than it should be? Logs that once, and says it in @why. */
bool peer_is_other(struct pvfs_peer *p, const struct pvfs_auth_rep *rep, char *why, size_t n);

/* channel.c */
void chan_init(struct pvfs_peer *p, struct chan *ch, u32 index);
void chan_submit(struct chan *ch, struct preq *r);
void chan_pump(struct chan *ch);		/* posts and connects what can be */
u64 chan_tick(struct chan *ch, u64 now);	/* returns when it wants the next one, or 0 */
void chan_fail(struct chan *ch, int err);	/* all that is queued */
void chan_close(struct chan *ch);		/* the peer goes: everything ends with -ECANCELED */
void chan_session(struct chan *ch, u64 session);
void chan_auth_ok(struct pconn *pc, const struct pvfs_auth_rep *rep);
struct pconn *chan_conn(struct chan *ch);	/* with a reference, or NULL */

/* client_auth.c */
int client_auth_begin(struct pconn *pc);	/* sends HELLO */
int client_auth_head(struct pconn *pc);		/* as ops->head */
int client_auth_message(struct pconn *pc);	/* as ops->message */

#endif
