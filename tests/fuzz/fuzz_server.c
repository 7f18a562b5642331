// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * fuzz_server.c - real servers and a real peer, over the in-process transport, fed with mutated
 * streams.
 *
 * Flags beyond those of client.h:
 *   10 to the iod, else to the mgr
 *   60 both: the stream is what a server answers to a real peer's requests
 *
 * Checked: nothing crashes, and a client that keeps to the rules is served all the while. Handlers
 * decode what they get, answer some requests at once, some later from another request's thread, and
 * run out of memory for payloads.
 */
#include "client.h"

#define HELD 8

static struct pvfs_engine *engine;
static struct pvfs_server *servers[2];
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pvfs_peer *witness[2];
static struct pvfs_addr addrs[2], fake_addr;
static void *fake_listener;
static atomic_uint tries;

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

static u8 *payload_get(struct pvfs_conn *c, const struct pvfs_header *h, u32 len, void **ret_handle)
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
	int i;

	pthread_mutex_lock(&servers_lock);
	for (i = 0; i < 2; i++)
		if (servers[i])
			pvfs_server_payload_ready(servers[i]);
	pthread_mutex_unlock(&servers_lock);
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
	struct pvfs_server *s;
	int i;

	pvfs_peer_free(witness[0]);
	pvfs_peer_free(witness[1]);
	for (i = 0; i < 2; i++) {
		pthread_mutex_lock(&servers_lock);
		s = servers[i];
		servers[i] = NULL;		/* tick() goes on */
		pthread_mutex_unlock(&servers_lock);
		pvfs_server_stop(s, 0);
	}
	pvfs_loop_ops.unlisten(fake_listener);
	pvfs_engine_free(engine);
}

static int start(int i, const char *text, u8 role)
{
	struct pvfs_server_params p = {
		.ops = &server_ops, .role = role, .volume = "vol", .cluster_key = cluster_key,
		.server_key = server_key, .payload_max = 1 << 20, .credits = 16, .max_conns = 200, .auth_ms = 1000,
	};
	const char *why;

	if (pvfs_addr_resolve(text, 0, &addrs[i], &why))
		return -1;
	witness[i] = witness_new(engine, &addrs[i], "vol", role);
	return pvfs_server_start(engine, &addrs[i], 1, &p, &servers[i], &why);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *why;
	int fd;

	pvfs_log_init("fuzz_server", PVFS_LOG_ERROR, NULL);
	if (pvfs_engine_new("fuzz", 3, &engine) || start(0, "loop:mgr", PVFS_ROLE_MGR) ||
	    start(1, "loop:iod", PVFS_ROLE_IOD) || pvfs_addr_resolve("loop:fake", 0, &fake_addr, &why) ||
	    pvfs_loop_ops.listen(&fake_addr, 16, &fake_listener, &fd) || pvfs_engine_every(engine, 3, tick, NULL))
		die("can't start");
	return 0;
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
	struct pvfs_auth_req req;
	struct pvfs_nonces n;
	struct pvfs_header h;
	unsigned int i = 0;
	u8 body[512];
	int len;

	if (!recv_msg(x, &h, n.client, sizeof(n.client)))
		return 0;
	memset(n.server, 2, sizeof(n.server));
	if (!send_msg(x, PVFS_OP_HELLO, PVFS_HF_REPLY, h.tag, n.server, sizeof(n.server)) ||
	    !recv_msg(x, &h, body, sizeof(body)))
		return 0;
	if (pvfs_auth_req_decode(&req, body, h.body_len))
		die("a peer's AUTH cannot be decoded");
	rep.session = req.session;
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
	if (flags & F_LOGIN)
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
		at_server(&addrs[!!(data[0] & 0x10)], "vol", size % 3, NULL, data[0], copy, size - 1);
	free(copy);
	if (++count % 32 == 0)
		check_witness(witness[count / 32 % 2]);
	return 0;
}
