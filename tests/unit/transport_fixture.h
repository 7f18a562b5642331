/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * transport_fixture.h - a server and clients for the transport's tests: a server whose answers can
 * be foretold, and a bare client that says exactly what it is told to. Included by one C file of a
 * program.
 *
 * The server is an iod that stores nothing. What its operations do:
 *   WRITE  the payload must be pattern(off); EIO if not. Waits for no one.
 *   READ   payload pattern(off), len bytes; from memory, or from a file when ino is 2
 *   READ   with ino 3: kept until `hold' of them are there, then answered last first
 *   READ   with ino 4: never answered, until release_held()
 *   FSYNC  (SLOW) takes ino milliseconds
 */
#ifndef PVFS_TRANSPORT_FIXTURE_H
#define PVFS_TRANSPORT_FIXTURE_H

#include "common/log.h"
#include "tests/free_port.h"
#include "transport/auth.h"
#include "transport/transport.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define FX_FILE_LEN 100000
#define FX_HELD_MAX 512

struct fx {
	struct pvfs_engine *se, *ce;
	struct pvfs_server *server;
	struct pvfs_addr addr;
	struct pvfs_key cluster, secret;
	atomic_uint running, finished, dispatched, closed;
	atomic_int no_memory;		/* payload_get() refuses so often */
	atomic_uint gets, puts;
	u64 stale;			/* session_check() does not know this one */
	u64 owned;			/* this one needs a ticket of FX_TICKET */
	u64 ends;			/* this one is ended when session_check() has just found it good */
	u64 pattern_file_off;
	int file;
	atomic_uint promise;	/* the next answer from the file promises all that was asked for */
	pthread_mutex_t lock;
	struct pvfs_call *held[FX_HELD_MAX];
	unsigned int nheld, hold;
};

static struct fx fx;

static inline u64 fx_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static inline void fx_sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* Waits until *@v is at least @n; false after ten seconds. */
static inline bool fx_reach(atomic_uint *v, unsigned int n)
{
	u64 end = fx_now_ms() + 10000;

	while (atomic_load(v) < n && fx_now_ms() < end)
		fx_sleep_ms(1);
	return atomic_load(v) >= n;
}

static inline void fx_pattern(u8 *p, size_t n, u64 off)
{
	size_t i;

	for (i = 0; i < n; i++, off++)
		p[i] = off ^ off >> 8 ^ off >> 16;
}

static inline bool fx_is_pattern(const u8 *p, size_t n, u64 off)
{
	size_t i;

	for (i = 0; i < n; i++, off++)
		if (p[i] != (u8)(off ^ off >> 8 ^ off >> 16))
			return false;
	return true;
}

/* ---------------------------------------------------------------- the server's operations */

static inline void fx_reply_read(struct pvfs_call *call)
{
	struct pvfs_read_rep rep = { .size = 1 };
	struct pvfs_out out = { 0 };
	struct pvfs_read_req req;
	u8 body[64];
	int n;

	pvfs_read_req_decode(&req, call->body, call->head.body_len);
	n = pvfs_read_rep_encode(&rep, body, sizeof(body));
	out.len = req.len;
	if (req.fid.ino == 2) {
		if (!atomic_exchange(&fx.promise, 0))
			out.len = req.off < FX_FILE_LEN ? min((u64)req.len, FX_FILE_LEN - req.off) : 0;
		out.fd = fx.file;
		out.off = req.off;
	} else if (req.len) {
		u8 *mem = malloc(req.len);

		fx_pattern(mem, req.len, req.off);
		out.mem = out.arg = mem;
		out.release = free;
	}
	pvfs_call_reply(call, 0, body, n, &out);
	atomic_fetch_add(&fx.finished, 1);
}

static inline void fx_release_held(void)
{
	struct pvfs_call *held[FX_HELD_MAX];
	unsigned int n;

	pthread_mutex_lock(&fx.lock);
	n = fx.nheld;
	memcpy(held, fx.held, n * sizeof(held[0]));
	fx.nheld = 0;
	pthread_mutex_unlock(&fx.lock);
	while (n)
		fx_reply_read(held[--n]);
}

static inline void fx_read(struct pvfs_call *call)
{
	struct pvfs_read_req req;
	bool go;

	if (pvfs_read_req_decode(&req, call->body, call->head.body_len) || req.len > PVFS_PAYLOAD_MAX) {
		pvfs_call_reply(call, -EBADMSG, NULL, 0, NULL);
		return;
	}
	if (req.fid.ino < 3) {
		fx_reply_read(call);
		return;
	}
	pthread_mutex_lock(&fx.lock);
	assert_true(fx.nheld < FX_HELD_MAX);
	fx.held[fx.nheld++] = call;
	go = req.fid.ino == 3 && fx.nheld >= fx.hold;
	pthread_mutex_unlock(&fx.lock);
	if (go)
		fx_release_held();
}

static inline void fx_write(struct pvfs_call *call)
{
	struct pvfs_write_rep rep = { .verifier = 7 };
	struct pvfs_write_req req;
	u8 body[64];
	int n;

	if (pvfs_write_req_decode(&req, call->body, call->head.body_len)) {
		pvfs_call_reply(call, -EBADMSG, NULL, 0, NULL);
		return;
	}
	n = pvfs_write_rep_encode(&rep, body, sizeof(body));
	if (call->head.payload_len && !fx_is_pattern(call->payload, call->head.payload_len, req.off))
		pvfs_call_reply(call, -EIO, NULL, 0, NULL);
	else
		pvfs_call_reply(call, 0, body, n, NULL);
}

static inline void fx_fsync(struct pvfs_call *call)
{
	struct pvfs_fsync_rep rep = { .verifier = 7 };
	struct pvfs_fsync_req req;
	u8 body[16];
	int n;

	if (pvfs_fsync_req_decode(&req, call->body, call->head.body_len)) {
		pvfs_call_reply(call, -EBADMSG, NULL, 0, NULL);
		return;
	}
	atomic_fetch_add(&fx.running, 1);
	fx_sleep_ms(req.fid.ino);
	atomic_fetch_sub(&fx.running, 1);
	atomic_fetch_add(&fx.finished, 1);
	n = pvfs_fsync_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
}

static inline void fx_dispatch(struct pvfs_call *call)
{
	atomic_fetch_add(&fx.dispatched, 1);
	switch (call->head.op) {
	case PVFS_OP_READ:
		fx_read(call);
		break;
	case PVFS_OP_WRITE:
		fx_write(call);
		break;
	case PVFS_OP_FSYNC:
		fx_fsync(call);
		break;
	default:
		pvfs_call_reply(call, 0, NULL, 0, NULL);
	}
}

static inline u8 *fx_payload_get(struct pvfs_conn *c, const struct pvfs_header *h, u32 len, void **ret_handle)
{
	int n = atomic_load(&fx.no_memory);

	while (n > 0)
		if (atomic_compare_exchange_weak(&fx.no_memory, &n, n - 1))
			return NULL;
	if (n < 0)
		return NULL;
	atomic_fetch_add(&fx.gets, 1);
	*ret_handle = &fx;
	return malloc(len);
}

static inline void fx_payload_put(struct pvfs_conn *c, u8 *payload, void *handle)
{
	assert_ptr_equal(handle, &fx);
	atomic_fetch_add(&fx.puts, 1);
	free(payload);
}

#define FX_TICKET 'T'

static inline int fx_session_check(struct pvfs_server *s, u64 session, const u8 *ticket)
{
	if (ticket && session && session == fx.owned &&
	    (ticket[0] != FX_TICKET || ticket[PVFS_TICKET_LEN - 1] != FX_TICKET))
		return -EPERM;
	if (session && session == fx.ends) {
		fx.ends = 0;
		fx.stale = session;
		pvfs_server_kill_session(s, session);
		return 0;
	}
	return session == fx.stale ? -ESTALE : 0;
}

static inline void fx_closed(struct pvfs_conn *c)
{
	atomic_fetch_add(&fx.closed, 1);
}

static inline void fx_stats(struct pvfs_server *s, FILE *f)
{
	fprintf(f, ",\"extra\":{\"n\":%u}", atomic_load(&fx.dispatched));
}

static const struct pvfs_server_ops fx_ops = {
	.dispatch = fx_dispatch,
	.payload_get = fx_payload_get,
	.payload_put = fx_payload_put,
	.session_check = fx_session_check,
	.closed = fx_closed,
	.stats = fx_stats,
};

/* ---------------------------------------------------------------- up and down */

static const struct pvfs_server_params fx_params = {
	.ops = &fx_ops,
	.arg = &fx,
	.role = PVFS_ROLE_IOD,
	.index = 5,
	.volume = "vol",
	.uuid = "0123456789abcde",
	.epoch = 77,
	.payload_max = PVFS_PAYLOAD_MAX,
	.credits = 64,
	.max_conns = 1000,
};

static inline void fx_server_start(const struct pvfs_server_params *p)
{
	struct pvfs_server_params copy = p ? *p : fx_params;
	const char *why = "";
	int err;

	copy.cluster_key = fx.cluster;
	copy.server_key = fx.secret;
	err = pvfs_server_start(fx.se, &fx.addr, 1, &copy, &fx.server, &why);
	if (err)
		fail_msg("%s: %s", fx.addr.text, why);
}

static inline void fx_server_stop(unsigned int grace_ms)
{
	pvfs_server_stop(fx.server, grace_ms);
	fx.server = NULL;
}

/* @transport: "tcp" or "loop" */
static inline void fx_up(const char *transport, const struct pvfs_server_params *p, unsigned int threads)
{
	static unsigned int serial;
	const char *why = "";
	char text[64];
	u8 *mem;

	memset(&fx, 0, sizeof(fx));
	pthread_mutex_init(&fx.lock, NULL);
	memset(fx.cluster.bytes, 'c', PVFS_KEY_LEN);
	memset(fx.secret.bytes, 's', PVFS_KEY_LEN);
	fx.cluster.present = fx.secret.present = true;
	fx.stale = ~0ull;
	if (!strcmp(transport, "tcp"))
		snprintf(text, sizeof(text), "127.0.0.1:%u", free_port());
	else
		snprintf(text, sizeof(text), "loop:t%u", ++serial);
	assert_int_equal(pvfs_addr_resolve(text, 0, &fx.addr, &why), 0);
	fx.file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	assert_true(fx.file >= 0);
	mem = malloc(FX_FILE_LEN);
	fx_pattern(mem, FX_FILE_LEN, 0);
	assert_int_equal(write(fx.file, mem, FX_FILE_LEN), FX_FILE_LEN);
	free(mem);
	assert_int_equal(pvfs_engine_new("srv", threads, &fx.se), 0);
	assert_int_equal(pvfs_engine_new("cli", threads, &fx.ce), 0);
	fx_server_start(p);
}

static inline void fx_down(void)
{
	struct pvfs_loop_faults none = { 0 };

	if (!strncmp(fx.addr.text, "loop:", 5))
		pvfs_loop_set_faults(fx.addr.text, &none);
	fx_release_held();
	fx_server_stop(0);
	pvfs_engine_free(fx.ce);
	pvfs_engine_free(fx.se);
	close(fx.file);
	assert_int_equal(atomic_load(&fx.gets), atomic_load(&fx.puts));
}

static inline struct pvfs_peer_params fx_peer_params(void)
{
	struct pvfs_peer_params pp = {
		.addr = fx.addr, .key = &fx.cluster, .my_role = PVFS_ROLE_CLIENT, .its_role = PVFS_ROLE_IOD,
		.volume = "vol", .nconnect = 1, .hard = 1,
	};

	return pp;
}

static inline struct pvfs_peer *fx_peer(const struct pvfs_peer_params *pp)
{
	struct pvfs_peer_params def = fx_peer_params();
	struct pvfs_peer *p;

	assert_int_equal(pvfs_peer_new(fx.ce, pp ?: &def, &p), 0);
	pvfs_peer_set_session(p, 42, NULL);
	return p;
}

/* ---------------------------------------------------------------- requests by a peer */

/* A request with room for all that belongs to it. */
struct fx_rpc {
	struct pvfs_rpc rpc;
	struct iovec iov[3];
	u8 body[256], rep[256];
	atomic_uint *done;
	u8 *data;
	u32 len;
	u64 off;
};

static inline void fx_rpc_done(struct pvfs_rpc *rpc)
{
	struct fx_rpc *r = rpc->arg;

	if (r->done)
		atomic_fetch_add(r->done, 1);
}

/* In three pieces of odd sizes, to be awkward. */
static inline void fx_cut(struct fx_rpc *r)
{
	u32 a = r->len / 3, b = r->len / 7;

	r->iov[0] = (struct iovec){ r->data, a };
	r->iov[1] = (struct iovec){ r->data + a, b };
	r->iov[2] = (struct iovec){ r->data + a + b, r->len - a - b };
}

static inline void fx_rpc_base(struct fx_rpc *r, u16 op, int body_len, atomic_uint *done)
{
	assert_true(body_len >= 0);
	r->done = done;
	r->rpc = (struct pvfs_rpc){ .op = op, .body = r->body, .body_len = body_len, .rep = r->rep,
				    .rep_room = sizeof(r->rep), .done = fx_rpc_done, .arg = r };
}

static inline void fx_make_read(struct fx_rpc *r, u64 ino, u64 off, u32 len, atomic_uint *done)
{
	struct pvfs_read_req req = { .fid = { .ino = ino }, .off = off, .len = len };

	r->data = calloc(1, len ?: 1);
	r->len = len;
	r->off = off;
	fx_rpc_base(r, PVFS_OP_READ, pvfs_read_req_encode(&req, r->body, sizeof(r->body)), done);
	fx_cut(r);
	r->rpc.in = r->iov;
	r->rpc.nin = 3;
}

static inline void fx_make_write(struct fx_rpc *r, u64 off, u32 len, atomic_uint *done)
{
	struct pvfs_write_req req = { .fid = { .ino = 1 }, .off = off };

	r->data = malloc(len ?: 1);
	r->len = len;
	r->off = off;
	fx_pattern(r->data, len, off);
	fx_rpc_base(r, PVFS_OP_WRITE, pvfs_write_req_encode(&req, r->body, sizeof(r->body)), done);
	fx_cut(r);
	r->rpc.out = r->iov;
	r->rpc.nout = 3;
}

static inline void fx_make_fsync(struct fx_rpc *r, unsigned int ms, atomic_uint *done)
{
	struct pvfs_fsync_req req = { .fid = { .ino = ms } };

	memset(r, 0, sizeof(*r));
	fx_rpc_base(r, PVFS_OP_FSYNC, pvfs_fsync_req_encode(&req, r->body, sizeof(r->body)), done);
}

static inline void fx_make_ping(struct fx_rpc *r, atomic_uint *done)
{
	memset(r, 0, sizeof(*r));
	fx_rpc_base(r, PVFS_OP_PING, 0, done);
}

/* Is what a finished READ or WRITE brought right? Frees its data. */
static inline void fx_check(struct fx_rpc *r)
{
	assert_int_equal(r->rpc.err, 0);
	if (r->rpc.op == PVFS_OP_READ) {
		assert_int_equal(r->rpc.in_len, r->len);
		assert_true(fx_is_pattern(r->data, r->len, r->off));
	}
	free(r->data);
	r->data = NULL;
}

static inline int fx_ping(struct pvfs_peer *p)
{
	struct fx_rpc r;

	fx_make_ping(&r, NULL);
	return pvfs_peer_call(p, &r.rpc);
}

static inline int fx_call_read(struct pvfs_peer *p, u64 ino, u64 off, u32 len)
{
	struct fx_rpc r;
	int err;

	fx_make_read(&r, ino, off, len, NULL);
	err = pvfs_peer_call(p, &r.rpc);
	if (!err)
		fx_check(&r);
	else
		free(r.data);
	return err;
}

static inline int fx_call_write(struct pvfs_peer *p, u64 off, u32 len)
{
	struct fx_rpc r;
	int err;

	fx_make_write(&r, off, len, NULL);
	err = pvfs_peer_call(p, &r.rpc);
	free(r.data);
	return err;
}

/* ---------------------------------------------------------------- the bare client */

struct raw {
	struct pvfs_xprt *x;
	struct pvfs_nonces n;
	struct pvfs_header h;		/* of the last message received */
	u8 body[PVFS_BODY_MAX];
	u8 *payload;
};

static inline void raw_wait(struct raw *r, short events)
{
	struct pollfd pfd = { .fd = r->x->ops->event_fd(r->x), .events = events };

	assert_int_equal(poll(&pfd, 1, 20000), 1);
}

static inline void raw_open(struct raw *r)
{
	memset(r, 0, sizeof(*r));
	assert_int_equal(pvfs_xprt_for(&fx.addr)->connect(&fx.addr, &r->x), 0);
	raw_wait(r, POLLOUT);
	assert_int_equal(r->x->ops->connected(r->x), 0);
}

static inline void raw_close(struct raw *r)
{
	free(r->payload);
	r->payload = NULL;
	r->x->ops->close(r->x);
}

/* False when the other end is gone. */
static inline bool raw_send(struct raw *r, const void *p, size_t n)
{
	while (n) {
		struct iovec v = { (void *)p, n };
		ssize_t k = r->x->ops->sendv(r->x, &v, 1, false);

		if (k == -EAGAIN) {
			raw_wait(r, POLLOUT);
			continue;
		}
		if (k < 0)
			return false;
		p = (const u8 *)p + k;
		n -= k;
	}
	return true;
}

static inline bool raw_recv(struct raw *r, void *p, size_t n)
{
	while (n) {
		struct iovec v = { p, n };
		ssize_t k = r->x->ops->recvv(r->x, &v, 1);

		if (k == -EAGAIN) {
			raw_wait(r, POLLIN);
			continue;
		}
		if (k <= 0)
			return false;
		p = (u8 *)p + k;
		n -= k;
	}
	return true;
}

/* Has the other end closed? Waits for it. */
static inline bool raw_closed(struct raw *r)
{
	u8 c;

	return !raw_recv(r, &c, 1);
}

static inline bool raw_msg(struct raw *r, const struct pvfs_header *head, const void *body, const void *payload)
{
	struct pvfs_header h = *head;
	struct pvfs_hdr hdr;

	h.body_crc = h.body_len ? pvfs_crc32c(0, body, h.body_len) : 0;
	pvfs_header_encode(&h, &hdr);
	return raw_send(r, &hdr, sizeof(hdr)) && raw_send(r, body, h.body_len) &&
	       raw_send(r, payload, payload ? h.payload_len : 0);
}

static inline bool raw_get(struct raw *r)
{
	struct pvfs_hdr hdr;
	int err;

	if (!raw_recv(r, &hdr, sizeof(hdr)))
		return false;
	err = pvfs_header_decode(&hdr, &r->h);
	assert_true(!err || err == -EOPNOTSUPP);
	free(r->payload);
	r->payload = malloc(r->h.payload_len ?: 1);
	if (!raw_recv(r, r->body, r->h.body_len) || !raw_recv(r, r->payload, r->h.payload_len))
		return false;
	assert_int_equal(r->h.body_len ? pvfs_crc32c(0, r->body, r->h.body_len) : 0, r->h.body_crc);
	return true;
}

static inline bool raw_hello(struct raw *r)
{
	struct pvfs_header h = { .op = PVFS_OP_HELLO, .tag = 1, .body_len = PVFS_NONCE_LEN };

	memset(r->n.client, 'n', PVFS_NONCE_LEN);
	if (!raw_msg(r, &h, r->n.client, NULL) || !raw_get(r))
		return false;
	assert_int_equal(r->h.op, PVFS_OP_HELLO);
	assert_int_equal(r->h.status, 0);
	memcpy(r->n.server, r->body, PVFS_NONCE_LEN);
	return true;
}

/* Sends AUTH as in @m (its strings default), does not wait for the answer. */
static inline bool raw_auth_send(struct raw *r, const struct pvfs_auth_req *m, const struct pvfs_key *key)
{
	struct pvfs_header h = { .op = PVFS_OP_AUTH, .tag = 2 };
	struct pvfs_auth_req req = *m;
	u8 body[512];
	int n;

	req.role = req.role ?: PVFS_ROLE_CLIENT;
	req.version = req.version ?: PVFS_PROTO_VERSION;
	if (!req.volume.p)
		req.volume = PVFS_STR("vol");
	if (!req.host.p)
		req.host = PVFS_STR("raw");
	n = pvfs_auth_req_encode(&req, body, sizeof(body));
	assert_true(n > 0);
	pvfs_auth_seal(key, &r->n, false, body, n);
	h.body_len = n;
	return raw_msg(r, &h, body, NULL);
}

/* Connected, and proved to be session @session, channel @channel. */
static inline void raw_login(struct raw *r, u64 session, u32 channel)
{
	struct pvfs_auth_req m = { .session = session, .channel = channel };

	raw_open(r);
	assert_true(raw_hello(r));
	assert_true(raw_auth_send(r, &m, &fx.cluster));
	assert_true(raw_get(r));
	assert_int_equal(r->h.op, PVFS_OP_AUTH);
	assert_int_equal(r->h.status, 0);
}

static inline bool raw_fsync(struct raw *r, u32 tag, unsigned int ms)
{
	struct pvfs_fsync_req req = { .fid = { .ino = ms } };
	struct pvfs_header h = { .op = PVFS_OP_FSYNC, .tag = tag };
	u8 body[64];

	h.body_len = pvfs_fsync_req_encode(&req, body, sizeof(body));
	return raw_msg(r, &h, body, NULL);
}

static inline bool raw_read(struct raw *r, u32 tag, u64 ino, u32 len, u32 flags)
{
	struct pvfs_read_req req = { .fid = { .ino = ino }, .len = len };
	struct pvfs_header h = { .op = PVFS_OP_READ, .tag = tag, .flags = flags };
	u8 body[64];

	h.body_len = pvfs_read_req_encode(&req, body, sizeof(body));
	return raw_msg(r, &h, body, NULL);
}

static inline bool raw_ping(struct raw *r)
{
	struct pvfs_header h = { .op = PVFS_OP_PING, .tag = 99 };

	return raw_msg(r, &h, NULL, NULL) && raw_get(r) && r->h.op == PVFS_OP_PING && r->h.tag == 99;
}

#endif
