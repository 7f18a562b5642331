/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * conn.h - one connection: messages out of bytes and bytes out of messages. Used by server.c and
 * peer.c only.
 *
 * Receiving side. Exactly one thread at a time owns it ("the reader"):
 *
 *    pvfs_conn_start()             event           read_ready()
 *   ------------------> ARMED ------------------> RUNNING ---+---> ops->head() ... ops->message()
 *                         ^                          |       |
 *                         +--- pvfs_conn_release() --+       +---> ops->down(), once, for good
 *                         +--- pvfs_conn_resume() --- PARKED <--- pvfs_conn_park()
 *
 * Sending side. Owned by whoever found it idle in pvfs_conn_send(), until the queue is empty; while
 * the transport is full the engine's second set owns it. Both sides are ended by pvfs_conn_kill(),
 * which shuts the transport down: the owner of each side finds out and ends it.
 *
 * References: the reader, an armed sending side, each struct pvfs_send in the queue, and whoever
 * calls pvfs_conn_get(). The transport is closed and ops->freed() called with the last one.
 */
#ifndef PVFS_CONN_H
#define PVFS_CONN_H

#include "engine.h"

/**
 * struct pvfs_send - a message on its way out
 *
 * Owned by the connection from pvfs_conn_send() until done(). What it points to is borrowed for as
 * long.
 */
struct pvfs_send {
	struct pvfs_hdr hdr;
	const void *body;
	u32 body_len;
	const struct iovec *pay;	/* payload in memory, or NULL */
	int npay;
	/* else, if fd_len: that many bytes of this file from @off; or the connection ends */
	int fd;
	off_t off;
	u32 fd_len;
	/*
	 * 0: handed to the transport; -errno: given up. No lock held; may free the send, may not
	 * block.
	 */
	void (*done)(struct pvfs_send *s, int err);
	/* conn.c's */
	struct pvfs_send *next;
	u64 total;			/* bytes of all of it */
};

struct pvfs_conn;

/* What the owner of a connection does with it; all but freed() on the reader's thread. */
struct pvfs_conn_ops {
	/* The transport is connected (connecting side only). -errno ends the connection. */
	int (*connected)(struct pvfs_conn *c);
	/*
	 * A header is in c->h. Set c->body (h.body_len bytes of room; NULL: throw it away) and,
	 * unless payload() does, c->pay/c->npay (where the payload goes, that much room; npay 0:
	 * throw it away). 0: go on; 1: the connection was parked by this call, and it comes again;
	 * -errno: end the connection, c->why may say why.
	 */
	int (*head)(struct pvfs_conn *c);
	/*
	 * The body is there and right, and so are the first bytes of the payload: now is the time
	 * to find room for it, and not before. Sets c->pay/c->npay; returns as head(). May be NULL.
	 */
	int (*payload)(struct pvfs_conn *c);
	/*
	 * The message is complete and its checksums are right. 0: go on; 1: released or parked;
	 * -errno: end.
	 */
	int (*message)(struct pvfs_conn *c);
	/*
	 * The reader ends. Nothing is received any more. @err: 0 the other end closed between
	 * messages.
	 */
	void (*down)(struct pvfs_conn *c, int err);
	/* The last reference is gone; frees the memory @c is in. Any thread. */
	void (*freed)(struct pvfs_conn *c);
};

enum pvfs_conn_rx {
	PVFS_RX_CONNECT,	/* connecting side: not connected yet */
	PVFS_RX_HEAD,		/* collecting a header */
	PVFS_RX_DECIDE,		/* header is there; head() has to say where the rest goes */
	PVFS_RX_BODY,
	PVFS_RX_WANT,		/* body is there; payload() has to say where the payload goes */
	PVFS_RX_PAYLOAD,
};

struct pvfs_rbuf {
	u8 *mem;		/* the thread's scratch memory or the connection's stash */
	u32 pos, end;
};

struct pvfs_conn {
	struct pvfs_engine *engine;
	struct pvfs_xprt *xprt;
	const struct pvfs_conn_ops *ops;
	char name[80];			/* of the other end, for logs */
	atomic_int refs;
	atomic_bool dead;		/* being ended; set by pvfs_conn_kill() */
	atomic_bool parked;		/* who clears it resumes */
	atomic_ullong bytes_in, bytes_out;
	atomic_ullong progress;		/* pvfs_now() when bytes last moved */
	atomic_ullong messages;		/* received whole */
	atomic_bool rx_mid;		/* waits for the rest of a message */
	atomic_bool tx_full;		/* waits for room to send */
	struct pvfs_conn_watch {	/* of who calls pvfs_conn_stalled() */
		u64 in_since, in_bytes, in_messages;
		u64 out_since, out_bytes;
	} watch;

	/* reader's */
	struct pvfs_source in;
	u32 wants;			/* bytes that make the descriptor readable */
	enum pvfs_conn_rx rx;
	struct pvfs_hdr hbuf;
	u32 got;			/* bytes of the part being collected */
	struct pvfs_header h;
	u64 t_head;
	u8 *body;
	const struct iovec *pay;
	int npay;
	int pay_i;			/* position in it */
	size_t pay_off;
	u32 crc;
	struct pvfs_rbuf *rb;		/* what was received and not looked at; while RUNNING */
	struct pvfs_rbuf stash;		/* the same while not RUNNING; mem NULL: nothing */
	const char *why;		/* static text for the log, or NULL */
	bool mid;			/* died within a message */

	/* sending side */
	struct pvfs_source out;
	pthread_mutex_t tx_lock;	/* protects the four below */
	struct pvfs_send *tx_head, **tx_tail;
	bool tx_busy;			/* someone owns the sending side */
	bool tx_dead;
	u64 tx_off;			/* owner's: bytes of tx_head that are out */
	u8 *tx_copy;			/* owner's: file bytes when the transport can't sendfile */
	u32 tx_copy_pos, tx_copy_len;
};

/**
 * pvfs_conn_init - set up a connection over @x
 * @c: zeroed memory, embedded in the owner's structure
 * @x: taken; closed with the last reference, also if start fails
 *
 * The caller has one reference, which becomes the reader's in pvfs_conn_start().
 */
void pvfs_conn_init(struct pvfs_conn *c, struct pvfs_engine *e, struct pvfs_xprt *x,
		    const struct pvfs_conn_ops *ops);

/*
 * Begins to receive (@connecting: first wait for the connect). On error the caller still has its
 * reference and down() will not be called.
 */
int pvfs_conn_start(struct pvfs_conn *c, bool connecting);

void pvfs_conn_get(struct pvfs_conn *c);
bool pvfs_conn_tryget(struct pvfs_conn *c);	/* false: its last reference is gone */
void pvfs_conn_put(struct pvfs_conn *c);

/**
 * pvfs_conn_send - send @s after what is queued
 *
 * Any thread. Sends at once in the caller if nobody else is sending. done() may be called before
 * this returns, with -ENOTCONN if the connection is gone. The caller must hold a reference.
 */
void pvfs_conn_send(struct pvfs_conn *c, struct pvfs_send *s);

/*
 * Reader only: gives the receiving side back to the engine. @c may be gone at once unless a
 * reference is held.
 */
void pvfs_conn_release(struct pvfs_conn *c);

/**
 * pvfs_conn_stalled - does the other end neither go on with what it began to send, nor take what it
 * is sent?
 * @now: pvfs_now()
 * @limit: ns
 *
 * Half a message must get on, by PVFS_STALL_BYTES or to its end, within @limit; so must what waits
 * for room to be sent, and bytes that lie in the socket's buffer are not out yet. A connection that
 * is parked, or whose request is being handled, is not the other end's fault. To be called again and
 * again, several times in @limit, by one thread at a time; the caller has a reference, or freed()
 * waits for it.
 *
 * Return: NULL, or what is wrong, for the log.
 */
#define PVFS_STALL_BYTES (16u << 10)
const char *pvfs_conn_stalled(struct pvfs_conn *c, u64 now, u64 limit);

/* Reader only: keeps the receiving side out of the engine until pvfs_conn_resume(), by anyone. */
void pvfs_conn_park(struct pvfs_conn *c);
void pvfs_conn_resume(struct pvfs_conn *c);

#endif
