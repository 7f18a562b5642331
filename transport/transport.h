/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * transport.h - messages between nodes, in user space: the seam, the engine that drives it, servers
 * and peers.
 *
 *   handlers (mgr/, iod/)      lib/, mgr's calls to the iods
 *           |                          |
 *     server.c: calls            peer.c: requests, pool, reconnect
 *           \                          /
 *            conn.c + auth.c: framing, hello, checks      engine.c: epoll and threads
 *                         |
 *              struct pvfs_xprt_ops: tcp.c, loop.c
 *
 * Nothing above conn.c names a transport. The kernel's twin of this file is kmod/net/conn.h.
 */
#ifndef PVFS_TRANSPORT_H
#define PVFS_TRANSPORT_H

#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "../common/msg.h"

/* ---------------------------------------------------------------- addresses */

/*
 * A resolved address. Text form: "host", "host:port", "[v6]:port", or "loop:name" for the
 * in-process transport.
 */
struct pvfs_addr {
	struct sockaddr_storage ss;
	socklen_t len;
	char text[320];		/* as the user wrote it, for messages */
};

/**
 * pvfs_addr_resolve - turn text into an address
 * @text: see struct pvfs_addr
 * @port: used when the text names none
 * @ret_addr: filled on success
 * @ret_why: on failure a static or strerror-like text that says why, for the user
 *
 * May block in the resolver.
 *
 * Return: 0, -EINVAL (malformed), -EHOSTUNREACH (no such host).
 */
int pvfs_addr_resolve(const char *text, u16 port, struct pvfs_addr *ret_addr, const char **ret_why);

/* ---------------------------------------------------------------- the seam */

struct pvfs_xprt;

/**
 * struct pvfs_xprt_ops - what a transport has to supply
 *
 * An xprt is one ordered, reliable, two-way channel. Sends and receives never block; both may be
 * partial. One thread at a time sends and one at a time receives (conn.c sees to it); close may
 * come only when neither runs. Memory for bulk data is registered through @mem_register where the
 * transport needs that; it crosses this seam as an opaque handle, never as a key.
 */
struct pvfs_xprt_ops {
	const char *name;
	/* Starts listening; @ret_fd becomes readable (level) when @accept has something. */
	int (*listen)(const struct pvfs_addr *a, int backlog, void **ret_listener, int *ret_fd);
	/* 0 and a connected xprt, -EAGAIN when none waits. */
	int (*accept)(void *listener, struct pvfs_xprt **ret);
	void (*unlisten)(void *listener);
	/*
	 * Begins to connect; the xprt's event source becomes writable when done, then @connected
	 * gives the result.
	 */
	int (*connect)(const struct pvfs_addr *a, struct pvfs_xprt **ret);
	int (*connected)(struct pvfs_xprt *x);
	/* Bytes moved, -EAGAIN, 0 (end, receive only) or -errno. */
	ssize_t (*sendv)(struct pvfs_xprt *x, const struct iovec *iov, int n, bool more);
	/* NULL: not supported */
	ssize_t (*sendfile)(struct pvfs_xprt *x, int fd, off_t *off, size_t n);
	ssize_t (*recvv)(struct pvfs_xprt *x, const struct iovec *iov, int n);
	/* It is readable when so many bytes, 1 or more, are there, or the end. NULL: with every byte. */
	void (*want)(struct pvfs_xprt *x, u32 n);
	/* Bytes that were taken and have not arrived at the other end. From any thread until close. */
	u64 (*unsent)(struct pvfs_xprt *x);
	/* A pollable descriptor with EPOLLIN/EPOLLOUT meaning; owned by the xprt. */
	int (*event_fd)(struct pvfs_xprt *x);
	int (*mem_register)(void *base, size_t len, void **ret_handle);	/* NULL: not needed */
	void (*mem_unregister)(void *handle);
	void (*peer_name)(struct pvfs_xprt *x, char *buf, size_t n);
	/*
	 * Ends both directions; both ends' event sources tell. From any thread until close, also
	 * while others send.
	 */
	void (*shutdown)(struct pvfs_xprt *x);
	void (*close)(struct pvfs_xprt *x);
};

/* Every implementation embeds this first. */
struct pvfs_xprt {
	const struct pvfs_xprt_ops *ops;
};

extern const struct pvfs_xprt_ops pvfs_tcp_ops;
extern const struct pvfs_xprt_ops pvfs_loop_ops;

/* The transport an address belongs to. */
const struct pvfs_xprt_ops *pvfs_xprt_for(const struct pvfs_addr *a);

/*
 * loop.c, fault injection, for tests. All counts are of bytes seen by one xprt pair since its
 * creation.
 */
struct pvfs_loop_faults {
	u64 cut_after;		/* close both ends after so many bytes; 0: never */
	u64 flip_at;		/* flip one bit of this byte (1-based); 0: never */
	u32 max_io;		/* longest single send or receive; 0: no limit */
	bool refuse;		/* refuse new connections */
	bool stall;		/* take bytes but deliver none */
};
void pvfs_loop_set_faults(const char *name, const struct pvfs_loop_faults *f);

/* ---------------------------------------------------------------- engine */

struct pvfs_engine;

#define PVFS_ENGINE_THREADS_MAX 512u

/**
 * pvfs_engine_new - an epoll set and the threads that serve it
 * @name: thread name prefix, at most 10 bytes
 * @nthreads: 1 .. PVFS_ENGINE_THREADS_MAX
 *
 * The thread that reads a message handles it. Threads take connections in turn (one-shot events);
 * the one that waited last is woken first, so that a light load stays on one warm thread.
 *
 * Return: 0 or -errno.
 */
int pvfs_engine_new(const char *name, unsigned int nthreads, struct pvfs_engine **ret);

/**
 * pvfs_thread_start - pthread_create() of a thread that no signal is delivered to
 *
 * Signals are the program's, whose threads have set themselves up for them. Those that a thread
 * brings on itself by a fault are not blocked.
 *
 * Return: 0 or -errno.
 */
int pvfs_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/*
 * Stops the threads (not from one of them), closes every connection that is left, frees all. NULL
 * is fine.
 */
void pvfs_engine_free(struct pvfs_engine *e);

/* Calls @fn(@arg) on an engine thread about every @ms milliseconds until the engine is freed. */
int pvfs_engine_every(struct pvfs_engine *e, unsigned int ms, void (*fn)(void *arg), void *arg);

/* ---------------------------------------------------------------- keys */

/* A loaded key; all zero means absent. */
struct pvfs_key {
	u8 bytes[PVFS_KEY_LEN];
	bool present;
};

/**
 * pvfs_key_load - read a key file (64 hex digits and a newline)
 * @path: must be a regular file that neither group nor others can read
 * @ret_why: on failure what is wrong and what to do
 *
 * Return: 0, -ENOENT, -EACCES (unreadable, or readable by others), -EINVAL (not a key).
 */
int pvfs_key_load(const char *path, struct pvfs_key *ret_key, const char **ret_why);
bool pvfs_key_same(const struct pvfs_key *a, const struct pvfs_key *b);

/* HMAC-SHA256 over a list of pieces. */
struct iovec;
void pvfs_hmac(const u8 key[PVFS_KEY_LEN], const struct iovec *iov, int n, u8 out[PVFS_MAC_LEN]);

/**
 * pvfs_cap_make - sign a capability (docs/protocol.md, "Capabilities")
 * @server_key: known to the servers only
 * @uuid: the volume's
 */
void pvfs_cap_make(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		   const struct pvfs_fid *fid, u32 rights, struct pvfs_cap *ret_cap);
bool pvfs_cap_check(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		    const struct pvfs_fid *fid, const struct pvfs_cap *cap);

/*
 * What SESSION_OPEN gives with a session's number, and AUTH has to bring with it: that number alone
 * can be guessed.
 */
void pvfs_ticket_make(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		      u8 ret_ticket[PVFS_TICKET_LEN]);
bool pvfs_ticket_check(const struct pvfs_key *server_key, const u8 uuid[PVFS_UUID_LEN], u64 session,
		       const u8 ticket[PVFS_TICKET_LEN]);

/* Constant-time comparison. */
bool pvfs_mac_equal(const void *a, const void *b, size_t n);

/* ---------------------------------------------------------------- server side */

struct pvfs_server;
struct pvfs_conn;

/* Who is at the other end; filled when the connection has proved itself. */
struct pvfs_peerinfo {
	u64 session;		/* 0: none yet */
	u32 channel;
	u8 role;		/* enum pvfs_role; MGR and IOD have proved the server key */
	u64 features;
	char host[PVFS_HOST_MAX + 1];
	char addr[80];		/* "127.0.0.1:40312" */
};

/**
 * struct pvfs_call - one request as a handler gets it
 *
 * Owned by the handler from dispatch() until pvfs_call_reply(), which it must call exactly once,
 * from any thread.
 * @body and @payload live until then. @conn may be dead by then: the reply is dropped.
 */
struct pvfs_call {
	struct pvfs_conn *conn;
	struct pvfs_peerinfo *peer;	/* of @conn; stable while the call lives */
	struct pvfs_header head;	/* .session is what the connection has proved, whatever was sent */
	const struct pvfs_op_info *info;
	u8 *body;			/* head.body_len bytes, checksum verified */
	u8 *payload;			/* head.payload_len bytes, or NULL */
	void *payload_handle;		/* what payload_get() returned */
	struct pvfs_server *server;
	u64 t_start;			/* CLOCK_MONOTONIC ns, when the header was read */
};

/* What goes behind the body of a reply. */
struct pvfs_out {
	const void *mem;	/* bytes in memory, or NULL */
	int fd;	/* else: from this file at @off (sendfile); if it lacks some, the connection ends */
	off_t off;
	u32 len;
	/* called once when the bytes are gone or given up; may be NULL */
	void (*release)(void *arg);
	void *arg;
};

struct pvfs_server_ops {
	/*
	 * Handle one request. Runs on an engine thread. Requests without PVFS_OPF_SLOW should not
	 * block: the thread keeps the connection and reads on afterwards; for SLOW ones the
	 * connection has been handed on before. Only authenticated requests arrive here, with a
	 * session unless NOSESS, from a server if SERVER, and only for operations that ->role
	 * serves. HELLO, AUTH, PING and STATS are answered by server.c.
	 */
	void (*dispatch)(struct pvfs_call *call);
	/*
	 * Find @len bytes for a request's payload. Return memory and set *@ret_handle, or NULL:
	 * server.c then stops reading this connection until pvfs_server_payload_ready() is called.
	 * Called when the body is there and the first bytes of the payload are. NULL op: from
	 * zones of the server's own, with a fair share for each session (bufmgr.h).
	 */
	u8 *(*payload_get)(struct pvfs_conn *conn, const struct pvfs_header *h, u32 len,
			   void **ret_handle);
	void (*payload_put)(struct pvfs_conn *conn, u8 *payload, void *handle);
	/*
	 * AUTH asks for session @session with @ticket (PVFS_TICKET_LEN bytes; NULL: that was
	 * checked before): 0 it exists; -ESTALE it does not; -EPERM it is another client's, which
	 * is to notice nothing. NULL: all are taken as they are.
	 */
	int (*session_check)(struct pvfs_server *s, u64 session, const u8 *ticket);
	/* What AUTH's reply tells as room, see msg.def. NULL: 0. */
	u64 (*room)(struct pvfs_server *s);
	/* The connection is gone; no call of it is running any more. May be NULL. */
	void (*closed)(struct pvfs_conn *conn);
	/*
	 * Adds the server's own members to the STATS answer: appends ",\"name\":{...}" text. May be
	 * NULL.
	 */
	void (*stats)(struct pvfs_server *s, FILE *f);
};

#define PVFS_UNPROVED_DEFAULT 256u

struct pvfs_server_params {
	const struct pvfs_server_ops *ops;
	void *arg;			/* pvfs_server_arg() */
	u8 role;			/* PVFS_ROLE_MGR or PVFS_ROLE_IOD */
	u32 index;			/* of an iod */
	char volume[PVFS_VOLUME_MAX + 1];
	u8 uuid[PVFS_UUID_LEN];
	struct pvfs_key cluster_key, server_key;
	u64 epoch;			/* differs after every start */
	u32 payload_max;		/* largest request payload accepted */
	u16 credits;			/* requests one connection may have open */
	/* clients' connections that have proved themselves; more are closed with a log line */
	u32 max_conns;
	/* that have not, and don't count above: beyond it the oldest goes; 0: the default */
	u32 max_unproved;
	/* a connection that has not proved itself by then is closed; 0: 10,000 */
	unsigned int auth_ms;
	/* half a message, or a reply, that does not get on for so long ends it; 0: 20,000 */
	unsigned int stall_ms;
	u64 payload_mem;	/* bytes, without ops->payload_get; 0: the default */
	/*
	 * Bytes of replies in memory that are not sent: beyond half of it, sessions that have their
	 * share wait. 0: they are bounded in another way.
	 */
	u64 unread_max;
};

/**
 * pvfs_server_start - listen and serve
 * @e: engine whose threads do the work; outlives the server
 * @addrs: @naddrs addresses
 *
 * A connection that comes with the session and channel of an older one replaces it: the older one
 * is shut down and its running calls are awaited before AUTH is answered, so that a request sent
 * again never overtakes its first copy. Sets SIGPIPE to be ignored if it was not dealt with.
 *
 * Return: 0, or -errno with *@ret_why saying which address and why.
 */
int pvfs_server_start(struct pvfs_engine *e, const struct pvfs_addr *addrs, int naddrs,
		      const struct pvfs_server_params *p, struct pvfs_server **ret,
		      const char **ret_why);

/*
 * Graceful stop: no new connections, no new requests; what was accepted is finished and answered
 * (at most @grace_ms), then everything is closed.
 */
void pvfs_server_stop(struct pvfs_server *s, unsigned int grace_ms);
void *pvfs_server_arg(struct pvfs_server *s);

/**
 * pvfs_call_reply - answer a call and give it up
 * @call: taken
 * @err: 0 or -errno
 * @body: encoded body, copied; @body_len bytes
 * @out: payload or NULL; its release is called when done, in all cases
 */
void pvfs_call_reply(struct pvfs_call *call, int err, const void *body, u32 body_len,
		     const struct pvfs_out *out);

/* Payload memory is there again: connections that were refused it try once more, in order. */
void pvfs_server_payload_ready(struct pvfs_server *s);

/* Binds the session that SESSION_OPEN made to the connection. */
void pvfs_conn_set_session(struct pvfs_conn *c, u64 session);
/* A place for the handler's own data about a connection. */
void pvfs_conn_set_data(struct pvfs_conn *c, void *data);
void *pvfs_conn_data(struct pvfs_conn *c);
/* Shuts it down from any thread; closed() follows. One log line is the caller's. */
void pvfs_conn_kill(struct pvfs_conn *c);
/*
 * Shuts down every connection of a session and waits until no call of it runs (not from one of its
 * calls).
 */
void pvfs_server_kill_session(struct pvfs_server *s, u64 session);
/*
 * The same for many at once, in two steps: none of them begins another call from the first on, and
 * those that run are over with the second, which waits for all together. @sessions is sorted. A
 * connection that is just being made is refused by session_check(), which has to know of it before.
 */
void pvfs_server_kill_begin(struct pvfs_server *s, const u64 *sessions, u32 n);
void pvfs_server_kill_wait(struct pvfs_server *s, const u64 *sessions, u32 n);
/* Does a call of it run? */
bool pvfs_server_session_busy(struct pvfs_server *s, u64 session);

/**
 * pvfs_server_callback - send a request to a session's client (any live connection of it) and wait
 * for the answer
 * @timeout_ms: 1 .. 60,000
 *
 * Return: 0 and the reply's body length in *@ret_len (body copied into @rep, room @rep_room);
 * -ENOTCONN no connection; -ETIMEDOUT; or the client's error. Not from an engine thread of the same
 * server unless SLOW.
 */
int pvfs_server_callback(struct pvfs_server *s, u64 session, u16 op, const void *body, u32 body_len,
			 void *rep, u32 rep_room, u32 *ret_len, unsigned int timeout_ms);

/*
 * The same in two halves, for several clients at once. The time runs from the first on. After one
 * that began the other half must be called, once.
 */
struct srv_callback;
int pvfs_server_callback_begin(struct pvfs_server *s, u64 session, u16 op, const void *body,
			       u32 body_len, unsigned int timeout_ms, struct srv_callback **ret);
int pvfs_server_callback_end(struct pvfs_server *s, struct srv_callback *cb, void *rep,
			     u32 rep_room, u32 *ret_len);

/*
 * The same for who does not wait, and wants no more of the answer than that it came. When this
 * returned 0, @done(@arg, 0 or -errno) comes exactly once, from any thread, perhaps before; at the
 * latest when the connection ends: there is no other time limit. @done may not wait.
 */
int pvfs_server_callback_async(struct pvfs_server *s, u64 session, u16 op, const void *body,
			       u32 body_len, void (*done)(void *arg, int err), void *arg);

/* ---------------------------------------------------------------- client side */

struct pvfs_peer;

/**
 * struct pvfs_rpc - one request to a server
 *
 * Caller-owned; untouched by the caller from submit to completion, body, payload and destinations
 * included. QUEUED (no connection or no credit) -> POSTED -> done. A request that was posted on a
 * connection that broke goes back to QUEUED, on the same channel, and is sent again with
 * PVFS_HF_RESEND.
 */
struct pvfs_rpc {
	/* in */
	u16 op;
	u16 slot;		/* ONCE requests: the session's slot and its sequence number */
	u32 slot_seq;
	const void *body;
	u32 body_len;
	const struct iovec *out;	/* payload of the request */
	int nout;
	const struct iovec *in;	/* where the reply's payload goes; longer ones are an error */
	int nin;
	void *rep;			/* where the reply's body goes */
	u32 rep_room;
	int timeout_ms;			/* from submit to completion; 0: wait as long as it takes */
	/* on an engine thread, or in submit's caller if that fails at once */
	void (*done)(struct pvfs_rpc *rpc);
	void *arg;
	/* out */
	int err;	/* 0 or -errno; from the server, or -ETIMEDOUT, -ENOTCONN, -ECANCELED, -EMSGSIZE */
	u32 rep_len;
	u32 in_len;			/* payload bytes received */
	/* peer.c's */
	struct { void *p[8]; u64 v[6]; } priv;
};

/* State of a peer, for messages and status. What can't be reached is DOWN. */
enum pvfs_peer_state {
	PVFS_PEER_IDLE,		/* never tried */
	PVFS_PEER_CONNECTING,
	PVFS_PEER_UP,
	PVFS_PEER_DOWN,		/* tried and failed; trying again with back-off */
	/* the server said no (key, version, volume): not tried again by itself */
	PVFS_PEER_REFUSED,
};

struct pvfs_peer_params {
	struct pvfs_addr addr;
	/* cluster key for clients, server key for servers; copied */
	const struct pvfs_key *key;
	u8 my_role, its_role;
	char volume[PVFS_VOLUME_MAX + 1];
	unsigned int nconnect;		/* channels, 1 .. PVFS_CHANNELS_MAX */
	/* requests wait for ever while it is down; else fail after fail_ms with -ENOTCONN */
	int hard;
	unsigned int fail_ms;
	/* for who looks after it: a line in the log as soon as it goes away, and when it is back */
	bool watch;
	/* a connection that is not up by then is closed, however it gets on; 0: 15,000 */
	unsigned int handshake_ms;
	/* as for a server: half a reply, or a request, that does not get on; 0: 20,000 */
	unsigned int stall_ms;
	/*
	 * A connection is up (its AUTH answered). On an engine thread. @rep is the server's answer.
	 * May submit requests with pvfs_peer_submit_on() for this channel: they go out at once.
	 * Those of pvfs_peer_submit() wait until it returns. Must not wait for an answer unless the
	 * engine has threads to spare. If the connection is lost while it runs, the next one is
	 * made after it returned. NULL: nothing to do.
	 */
	void (*up)(struct pvfs_peer *p, u32 channel, const struct pvfs_auth_rep *rep);
	/*
	 * AUTH was answered -ESTALE, with a mac: the session is gone. The pool continues with
	 * session 0 until told otherwise.
	 */
	void (*session_lost)(struct pvfs_peer *p);
	/*
	 * A request from the server (HF_CALLBACK). Reply with pvfs_peer_callback_reply(). NULL:
	 * answered ENOSYS. PING is answered here.
	 */
	void (*callback)(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h,
			 const void *body);
	void *arg;
};

int pvfs_peer_new(struct pvfs_engine *e, const struct pvfs_peer_params *pp, struct pvfs_peer **ret);
/*
 * From now on only the daemon that says in AUTH that it is @index of volume @uuid is spoken to: what
 * is meant for one place of a stripe must not reach another. Who is another one is told apart before
 * any request goes there, with one line in the log that names both; a hard peer goes on trying.
 */
void pvfs_peer_expect(struct pvfs_peer *p, const u8 uuid[PVFS_UUID_LEN], u32 index);
/* Fails what is left with -ECANCELED, closes, frees. Not from an engine thread. NULL is fine. */
void pvfs_peer_free(struct pvfs_peer *p);
void *pvfs_peer_arg(struct pvfs_peer *p);
/*
 * While it is away it is tried again after pauses that grow up to @ms (5,000 if this is not called, nor ever more). A
 * client whose session ends when the mgr has not heard of it for a while must not sleep that long.
 */
void pvfs_peer_retry_within(struct pvfs_peer *p, u32 ms);
/*
 * Session used in AUTH and headers of connections made from now on; existing ones of another
 * session are closed. @ticket: what SESSION_OPEN gave with it, PVFS_TICKET_LEN bytes; NULL: zeros.
 */
void pvfs_peer_set_session(struct pvfs_peer *p, u64 session, const u8 *ticket);
enum pvfs_peer_state pvfs_peer_state(struct pvfs_peer *p, int *ret_err, char *why, size_t n);
/* For how long it is DOWN, ms; 0: it is not. */
u64 pvfs_peer_down_ms(struct pvfs_peer *p);

/*
 * Starts a request; rpc->done is called exactly once, possibly before this returns. Never blocks.
 */
void pvfs_peer_submit(struct pvfs_peer *p, struct pvfs_rpc *rpc);
/* The same for one channel, ahead of what pvfs_peer_submit() queued there, also while up() runs. */
void pvfs_peer_submit_on(struct pvfs_peer *p, u32 channel, struct pvfs_rpc *rpc);
/*
 * Submit and wait. done and arg are used by it. Return: rpc->err. Not from a thread of the peer's
 * engine.
 */
int pvfs_peer_call(struct pvfs_peer *p, struct pvfs_rpc *rpc);

/* Requests, to one peer or several, that are waited for together. */
struct pvfs_rpc_set {
	pthread_mutex_t lock;	/* protects left */
	pthread_cond_t cond;
	u32 left;		/* of them, and one while they are submitted */
};

#define PVFS_RPC_SET \
	{ .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .left = 1 }

/* Submit; done and arg are used by it. */
void pvfs_rpc_set_submit(struct pvfs_rpc_set *s, struct pvfs_peer *p, struct pvfs_rpc *rpc);
/* Wait for all that were submitted; once. Not from a thread of a peer's engine. */
void pvfs_rpc_set_wait(struct pvfs_rpc_set *s);

void pvfs_peer_callback_reply(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h, int err,
			      const void *body, u32 body_len);

/* Counters of a peer's requests, by operation. */
struct pvfs_peer_counts {
	struct { u64 n, errors, bytes_out, bytes_in, resent, ns_total, ns_max; } op[PVFS_OP_LIMIT];
	u64 connects, wakeups;
};
void pvfs_peer_counts(struct pvfs_peer *p, struct pvfs_peer_counts *ret);

#endif
