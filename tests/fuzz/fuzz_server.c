// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * fuzz_server.c - real servers and a real peer, over the in-process transport, fed with mutated streams.
 *
 * The first byte of an input says what is done with the rest:
 *   01 prove ourselves first (else the stream is the first thing the server hears)
 *   02 mend the headers   04 mend the checksums of bodies and payloads
 *   08 pass for a server, with the server key
 *   10 to the iod, else to the mgr
 *   60 both: the stream is what a server answers to a real peer's requests
 *   80 go away without waiting for the server to have read it all
 *
 * Checked: nothing crashes, and a client that keeps to the rules is served all the while. Handlers decode what they
 * get, answer some requests at once, some later from another request's thread, and run out of memory for payloads.
 */
#include "driver.h"
#include "common/log.h"
#include "transport/auth.h"
#include "transport/transport.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define HELD 8

static struct pvfs_engine *engine;
static struct pvfs_server *servers[2];
static struct pvfs_peer *witness[2];
static struct pvfs_addr addrs[2], fake_addr;
static void *fake_listener;
static struct pvfs_key cluster_key, server_key;
static atomic_uint tries;

static void die(const char *what)
{
	fprintf(stderr, "fuzz_server: %s\n", what);
	abort();
}

/* ---------------------------------------------------------------- the servers' handlers */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects held */
static struct pvfs_call *held[HELD];

static int decode(const struct pvfs_call *call)
{
	const u8 *b = call->body;
	u32 n = call->head.body_len;

	switch (call->head.op) {
#define PVFS_OP(num, NAME, lower, who, fl) \
	case num: { \
		struct pvfs_##lower##_req m; \
		return pvfs_##lower##_req_decode(&m, b, n); \
	}
#include "common/ops.def"
#undef PVFS_OP
	}
	return -EOPNOTSUPP;
}

static void answer(struct pvfs_call *call)
{
	static const u8 junk[3000];
	struct pvfs_out out = { .len = call->head.tag % 70000 };
	int err = decode(call);

	if (err || call->head.tag % 3 == 0) {
		pvfs_call_reply(call, err ?: -EAGAIN, NULL, 0, NULL);
		return;
	}
	out.mem = out.arg = calloc(1, out.len ?: 1);
	out.release = free;
	pvfs_call_reply(call, 0, junk, call->head.tag % sizeof(junk), out.mem ? &out : NULL);
}

static void dispatch(struct pvfs_call *call)
{
	struct pvfs_call *other = NULL;
	u32 i = call->head.tag % (2 * HELD);

	if (call->payload && call->head.payload_len)
		/* All of it is ours, to the last byte. */
		call->payload[call->head.payload_len - 1] ^= call->payload[0];
	if (call->head.op == PVFS_OP_SESSION_OPEN)
		pvfs_conn_set_session(call->conn, 1 + call->head.tag % 5);
	if (i < HELD) {
		pthread_mutex_lock(&lock);
		other = held[i];
		held[i] = call;
		pthread_mutex_unlock(&lock);
		call = other;
	}
	if (call)
		answer(call);
}

static void release_held(void)
{
	struct pvfs_call *call;
	int i;

	for (i = 0; i < HELD; i++) {
		pthread_mutex_lock(&lock);
		call = held[i];
		held[i] = NULL;
		pthread_mutex_unlock(&lock);
		if (call)
			answer(call);
	}
}

static u8 *payload_get(struct pvfs_conn *c, const struct pvfs_head *h, u32 len, void **ret_handle)
{
	if (atomic_fetch_add(&tries, 1) % 4 == 0)
		return NULL;
	*ret_handle = &tries;
	return malloc(len);
}

static void payload_put(struct pvfs_conn *c, u8 *payload, void *handle)
{
	if (handle != &tries)
		die("payload_put: another handle");
	free(payload);
}

/* Memory comes back, calls that were held are answered. */
static void tick(void *arg)
{
	pvfs_server_payload_ready(servers[0]);
	pvfs_server_payload_ready(servers[1]);
	release_held();
}

static const struct pvfs_server_ops server_ops = {
	.dispatch = dispatch,
	.payload_get = payload_get,
	.payload_put = payload_put,
};

/* ---------------------------------------------------------------- up and down */

void fuzz_end(void)
{
	pvfs_peer_free(witness[0]);
	pvfs_peer_free(witness[1]);
	pvfs_server_stop(servers[0], 0);
	pvfs_server_stop(servers[1], 0);
	pvfs_loop_ops.unlisten(fake_listener);
	pvfs_engine_free(engine);
}

static int start(int i, const char *text, u8 role)
{
	struct pvfs_server_params p = {
		.ops = &server_ops, .role = role, .volume = "vol", .cluster_key = cluster_key,
		.server_key = server_key, .payload_max = 1 << 20, .credits = 16, .max_conns = 200, .auth_ms = 1000,
	};
	struct pvfs_peer_params pp = {
		.key = &cluster_key, .my_role = PVFS_ROLE_CLIENT, .its_role = role, .volume = "vol", .nconnect = 1,
		.hard = 1,
	};
	const char *why;

	if (pvfs_addr_resolve(text, 0, &addrs[i], &why))
		return -1;
	pp.addr = addrs[i];
	return pvfs_server_start(engine, &addrs[i], 1, &p, &servers[i], &why) ?: pvfs_peer_new(engine, &pp, &witness[i]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *why;
	int fd;

	pvfs_log_init("fuzz_server", PVFS_LOG_ERROR, NULL);
	memset(cluster_key.bytes, 'c', PVFS_KEY_LEN);
	memset(server_key.bytes, 's', PVFS_KEY_LEN);
	cluster_key.present = server_key.present = true;
	if (pvfs_engine_new("fuzz", 3, &engine) || start(0, "loop:mgr", PVFS_ROLE_MGR) ||
	    start(1, "loop:iod", PVFS_ROLE_IOD) || pvfs_addr_resolve("loop:fake", 0, &fake_addr, &why) ||
	    pvfs_loop_ops.listen(&fake_addr, 16, &fake_listener, &fd) || pvfs_engine_every(engine, 3, tick, NULL))
		die("can't start");
	return 0;
}

static void check_witness(int i)
{
	u8 rep[16];
	struct pvfs_rpc rpc = { .op = PVFS_OP_PING, .rep = rep, .rep_room = sizeof(rep), .timeout_ms = 20000 };

	if (pvfs_peer_call(witness[i], &rpc))
		die("a client that keeps to the rules is not served");
}

/* ---------------------------------------------------------------- bytes by hand */

static bool ready(struct pvfs_xprt *x, short events, int ms)
{
	struct pollfd p = { .fd = x->ops->event_fd(x), .events = events };

	return poll(&p, 1, ms) == 1;
}

static void drain(struct pvfs_xprt *x)
{
	static u8 sink[1 << 16];
	struct iovec v = { sink, sizeof(sink) };

	while (x->ops->recvv(x, &v, 1) > 0)
		;
}

static bool send_all(struct pvfs_xprt *x, const u8 *p, size_t n)
{
	while (n) {
		struct iovec v = { (void *)p, n };
		ssize_t k = x->ops->sendv(x, &v, 1, false);

		if (k == -EAGAIN) {
			drain(x);
			if (!ready(x, POLLOUT | POLLIN, 10000))
				die("takes no bytes");
			continue;
		}
		if (k <= 0)
			return false;
		p += k;
		n -= k;
	}
	return true;
}

static bool recv_all(struct pvfs_xprt *x, void *p, size_t n)
{
	while (n) {
		struct iovec v = { p, n };
		ssize_t k = x->ops->recvv(x, &v, 1);

		if (k == -EAGAIN) {
			if (!ready(x, POLLIN, 10000))
				die("does not answer");
			continue;
		}
		if (k <= 0)
			return false;
		p = (u8 *)p + k;
		n -= k;
	}
	return true;
}

static bool send_msg(struct pvfs_xprt *x, u16 op, u32 flags, u32 tag, const u8 *body, u32 len)
{
	struct pvfs_head h = { .op = op, .flags = flags, .tag = tag, .body_len = len };
	struct pvfs_hdr hdr;

	h.body_crc = len ? pvfs_crc32c(0, body, len) : 0;
	pvfs_head_encode(&h, &hdr);
	return send_all(x, (u8 *)&hdr, sizeof(hdr)) && send_all(x, body, len);
}

static bool recv_msg(struct pvfs_xprt *x, struct pvfs_head *h, u8 *body, size_t room)
{
	struct pvfs_hdr hdr;

	return recv_all(x, &hdr, sizeof(hdr)) && !pvfs_head_decode(&hdr, h) && h->body_len <= room && !h->payload_len &&
	       recv_all(x, body, h->body_len);
}

/* The stream, message by message as far as it has any, mended as @flags say. */
static void mend_stream(u8 *p, size_t n, u8 flags, const u32 *tags, unsigned int ntags)
{
	struct pvfs_hdr h;
	size_t at = 0, len;

	if (!(flags & 0x02))
		return;
	while (n - at >= PVFS_HDR_LEN) {
		if (ntags) {
			memcpy(&h, p + at, sizeof(h));
			if (h.tag & cpu_to_le32(7)) {
				h.tag = cpu_to_le32(tags[le32_to_cpu(h.tag) % ntags]);
				h.op = cpu_to_le16(le32_to_cpu(h.tag) & 1 ? PVFS_OP_READ : PVFS_OP_PING);
				h.flags |= cpu_to_le32(PVFS_HF_REPLY);
			}
			memcpy(p + at, &h, sizeof(h));
		}
		fuzz_mend(p + at, n - at - PVFS_HDR_LEN, flags & 0x04);
		memcpy(&h, p + at, sizeof(h));
		len = PVFS_HDR_LEN + le32_to_cpu(h.body_len) + le32_to_cpu(h.payload_len);
		at += len;
	}
}

/* ---------------------------------------------------------------- at a server */

static bool login(struct pvfs_xprt *x, bool as_server, u32 channel)
{
	struct pvfs_auth_req req = { .version = PVFS_PROTO_VERSION, .volume = PVFS_STR("vol"), .host = PVFS_STR("fuzz"),
				     .session = as_server ? 0 : channel % 3, .channel = channel,
				     .role = as_server ? PVFS_ROLE_MGR : PVFS_ROLE_CLIENT };
	struct pvfs_nonces n;
	struct pvfs_head h;
	u8 body[512];
	int len;

	memset(n.client, 1, sizeof(n.client));
	if (!send_msg(x, PVFS_OP_HELLO, 0, 1, n.client, sizeof(n.client)) || !recv_msg(x, &h, body, sizeof(body)))
		return false;
	memcpy(n.server, body, sizeof(n.server));
	len = pvfs_auth_req_encode(&req, body, sizeof(body));
	pvfs_auth_seal(as_server ? &server_key : &cluster_key, &n, false, body, len);
	return send_msg(x, PVFS_OP_AUTH, 0, 2, body, len) && recv_msg(x, &h, body, sizeof(body)) && !h.status;
}

static void at_server(u8 flags, u8 *p, size_t n)
{
	int which = !!(flags & 0x10), i;
	struct pvfs_xprt *x;

	for (i = 0; pvfs_loop_ops.connect(&addrs[which], &x); i++) {
		if (i > 10000)
			die("takes no connections");
		poll(NULL, 0, 1);
	}
	/* One that is refused because there are too many is no failure. */
	if (!(flags & 0x01) || login(x, flags & 0x08, n % 4)) {
		mend_stream(p, n, flags, NULL, 0);
		send_all(x, p, n);
		if (!(flags & 0x80))
			ready(x, POLLIN, 2);
		drain(x);
	}
	x->ops->close(x);
}

/* ---------------------------------------------------------------- at a peer */

static void count_done(struct pvfs_rpc *rpc)
{
	atomic_fetch_add((atomic_uint *)rpc->arg, 1);
}

/* Shakes hands as a server does, and reads the requests that come. Return: how many. */
static unsigned int serve_peer(struct pvfs_xprt *x, u32 *tags, unsigned int max)
{
	struct pvfs_auth_rep rep = { .version = PVFS_PROTO_VERSION, .role = PVFS_ROLE_IOD, .credits = 16 };
	struct pvfs_nonces n;
	struct pvfs_head h;
	unsigned int i = 0;
	u8 body[512];
	int len;

	if (!recv_msg(x, &h, n.client, sizeof(n.client)))
		return 0;
	memset(n.server, 2, sizeof(n.server));
	if (!send_msg(x, PVFS_OP_HELLO, PVFS_HF_REPLY, h.tag, n.server, sizeof(n.server)) ||
	    !recv_msg(x, &h, body, sizeof(body)))
		return 0;
	len = pvfs_auth_rep_encode(&rep, body, sizeof(body));
	pvfs_auth_seal(&cluster_key, &n, true, body, len);
	send_msg(x, PVFS_OP_AUTH, PVFS_HF_REPLY, h.tag, body, len);
	/* The last may have run out of time before it could be sent. */
	while (i < max && ready(x, POLLIN, i < max - 1 ? 10000 : 10) && recv_msg(x, &h, body, sizeof(body)))
		tags[i++] = h.tag;
	return i;
}

static void at_peer(u8 flags, u8 *p, size_t n)
{
	enum { N = 4 };
	struct pvfs_peer_params pp = {
		.addr = fake_addr, .key = &cluster_key, .my_role = PVFS_ROLE_CLIENT, .its_role = PVFS_ROLE_IOD,
		.volume = "vol", .nconnect = 1, .hard = 1,
	};
	struct pvfs_read_req req = { .len = 100 };
	struct pvfs_rpc rpc[N];
	struct iovec in[N][2];
	u8 body[64], rep[N][16], data[N][300];
	atomic_uint done = 0;
	struct pvfs_peer *peer;
	struct pvfs_xprt *x;
	u32 tags[N];
	int i, len;

	len = pvfs_read_req_encode(&req, body, sizeof(body));
	if (pvfs_peer_new(engine, &pp, &peer))
		die("no peer");
	for (i = 0; i < N; i++) {
		in[i][0] = (struct iovec){ data[i], 33 };
		in[i][1] = (struct iovec){ data[i] + 33, 267 };
		rpc[i] = (struct pvfs_rpc){ .op = i & 1 ? PVFS_OP_READ : PVFS_OP_PING, .rep = rep[i], .rep_room = 16,
					    .done = count_done, .arg = &done, .in = in[i], .nin = i & 1 ? 2 : 0,
					    .body = body, .body_len = i & 1 ? len : 0, .timeout_ms = i == 3 ? 5 : 0 };
		pvfs_peer_submit(peer, &rpc[i]);
	}
	while (pvfs_loop_ops.accept(fake_listener, &x))
		poll(NULL, 0, 1);
	if (flags & 0x01)
		mend_stream(p, n, flags, tags, serve_peer(x, tags, N));
	else
		mend_stream(p, n, flags, NULL, 0);
	send_all(x, p, n);
	ready(x, POLLIN, 2);
	drain(x);
	pvfs_peer_free(peer);
	x->ops->close(x);
	/* It may have come back already. */
	while (!pvfs_loop_ops.accept(fake_listener, &x))
		x->ops->close(x);
	if (done != N)
		die("a request was not completed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int count;
	u8 *copy;

	if (size < 2 || size > FUZZ_INPUT_MAX)
		return 0;
	copy = malloc(size - 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size - 1);
	if ((data[0] & 0x60) == 0x60)
		at_peer(data[0], copy, size - 1);
	else
		at_server(data[0], copy, size - 1);
	free(copy);
	if (++count % 32 == 0)
		check_witness(count / 32 % 2);
	return 0;
}
