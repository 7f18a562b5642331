// SPDX-License-Identifier: GPL-2.0
/*
 * iodtab.c - the volume's iods as the manager calls them: a peer each, on an engine of its own,
 * authenticated with the server key. Callers block; the peers' threads complete the calls.
 *
 * An iod that is known to be down is not waited for: its calls fail at once, and about every second
 * one of them sends a request of its own on the way that nobody waits for, to find out whether the
 * iod is back. Nor are glimpses and holds waited for at one that is connected and silent: clients
 * ask until a size is known, and each question would hold a worker for as long as it may take; and
 * what is held at the other iods waits as long.
 */
#include "mgr.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#define CALLS_AT_ONCE 1024u	/* requests in flight of one caller */
#define FAIL_MS 1500u		/* how long a request waits for a connection */
#define PROBE_MS 1000u
#define PROBE_TIMEOUT_MS 5000u

struct iod {
	struct pvfs_peer *peer;
	atomic_bool probing;	/* @probe is under way; who sets it owns the next three */
	_Atomic u64 probed;	/* monotonic ms of the last one */
	atomic_bool silent;	/* the request that ended last was not answered in its time */
	struct pvfs_rpc probe;
	u8 probe_rep[64];
	atomic_ullong calls, errors;
};

struct mgr_iodtab {
	const struct pvfs_conf *conf;
	struct pvfs_engine *engine;
	struct iod *iod;
	u32 n;
};

struct iod_rpc {
	struct pvfs_rpc rpc;
	struct mgr_iocall *call;
	u8 body[64], rep[64];
};

/* Encodes the request. Return: 0 or -errno. */
static int prepare(struct iod_rpc *r, struct mgr_iocall *c, unsigned int timeout_ms)
{
	struct pvfs_glimpse_req glimpse = { .fid = c->fid };
	struct pvfs_hold_req hold = { .fid = c->fid, .ms = c->hold_ms };
	struct pvfs_trim_req trim = { .fid = c->fid, .size = c->size };
	struct pvfs_fill_req fill = { .fid = c->fid };
	struct pvfs_remove_req remove = { .fid = c->fid };
	struct pvfs_evict_req evict = { .session = c->session };
	struct pvfs_iod_statfs_req statfs;
	int n;

	memset(&r->rpc, 0, sizeof(r->rpc));
	switch (c->op) {
	case PVFS_OP_GLIMPSE:
		n = pvfs_glimpse_req_encode(&glimpse, r->body, sizeof(r->body));
		break;
	case PVFS_OP_HOLD:
		n = pvfs_hold_req_encode(&hold, r->body, sizeof(r->body));
		break;
	case PVFS_OP_TRIM:
		n = pvfs_trim_req_encode(&trim, r->body, sizeof(r->body));
		break;
	case PVFS_OP_FILL:
		n = pvfs_fill_req_encode(&fill, r->body, sizeof(r->body));
		break;
	case PVFS_OP_REMOVE:
		n = pvfs_remove_req_encode(&remove, r->body, sizeof(r->body));
		break;
	case PVFS_OP_EVICT:
		n = pvfs_evict_req_encode(&evict, r->body, sizeof(r->body));
		break;
	case PVFS_OP_IOD_STATFS:
		n = pvfs_iod_statfs_req_encode(&statfs, r->body, sizeof(r->body));
		break;
	default:
		return -EINVAL;
	}
	if (n < 0)
		return n;
	r->rpc.op = c->op;
	r->rpc.body = r->body;
	r->rpc.body_len = n;
	r->rpc.rep = r->rep;
	r->rpc.rep_room = sizeof(r->rep);
	r->rpc.timeout_ms = timeout_ms;
	if (c->op == PVFS_OP_FILL) {
		r->rpc.out = c->data;
		r->rpc.nout = c->ndata;
	}
	r->call = c;
	return 0;
}

static int decode(const struct iod_rpc *r)
{
	struct mgr_iocall *c = r->call;

	switch (c->op) {
	case PVFS_OP_GLIMPSE:
		return pvfs_glimpse_rep_decode(&c->glimpse, r->rep, r->rpc.rep_len);
	case PVFS_OP_IOD_STATFS:
		return pvfs_iod_statfs_rep_decode(&c->statfs, r->rep, r->rpc.rep_len);
	default:
		return 0;
	}
}

/* A request has ended. To be refused is an answer, too, and who lost the connection is not silent. */
static void heard(struct iod *iod, int err)
{
	atomic_store(&iod->silent, err == -ETIMEDOUT);
}

static void probe_done(struct pvfs_rpc *rpc)
{
	struct iod *iod = rpc->arg;

	heard(iod, rpc->err);
	atomic_store(&iod->probing, false);
}

/* Makes the peer try to connect, if it is time. */
static void probe(struct iod *iod)
{
	u64 now = mgr_mono_ms();

	if (now < atomic_load(&iod->probed) + PROBE_MS || atomic_exchange(&iod->probing, true))
		return;
	atomic_store(&iod->probed, now);
	iod->probe = (struct pvfs_rpc){
		.op = PVFS_OP_IOD_STATFS, .rep = iod->probe_rep, .rep_room = sizeof(iod->probe_rep),
		.timeout_ms = PROBE_TIMEOUT_MS, .done = probe_done, .arg = iod,
	};
	pvfs_peer_submit(iod->peer, &iod->probe);
}

/* Is it worth a try? */
static bool usable(struct iod *iod, u16 op)
{
	char why[128];
	int err;

	if (pvfs_peer_state(iod->peer, &err, why, sizeof(why)) != PVFS_PEER_DOWN &&
	    ((op != PVFS_OP_GLIMPSE && op != PVFS_OP_HOLD) || !atomic_load(&iod->silent)))
		return true;
	probe(iod);
	return false;
}

static void call_some(struct mgr_iodtab *t, struct mgr_iocall *calls, u32 n, struct iod_rpc *rpcs,
		      unsigned int timeout_ms)
{
	struct pvfs_rpc_set set = PVFS_RPC_SET;
	u32 i, m = 0;

	for (i = 0; i < n; i++) {
		struct mgr_iocall *c = &calls[i];
		struct iod_rpc *r = &rpcs[m];

		if (c->iod >= t->n)
			c->err = -EINVAL;
		else if (!usable(&t->iod[c->iod], c->op))
			c->err = -EHOSTDOWN;
		else
			c->err = prepare(r, c, timeout_ms);
		if (c->err)
			continue;
		m++;
		pvfs_rpc_set_submit(&set, t->iod[c->iod].peer, &r->rpc);
	}
	/* Every request has a time-out, so this ends. */
	pvfs_rpc_set_wait(&set);
	for (i = 0; i < m; i++) {
		struct iod *iod = &t->iod[rpcs[i].call->iod];

		rpcs[i].call->err = rpcs[i].rpc.err ? rpcs[i].rpc.err : decode(&rpcs[i]);
		heard(iod, rpcs[i].rpc.err);
		atomic_fetch_add_explicit(&iod->calls, 1, memory_order_relaxed);
		if (rpcs[i].call->err)
			atomic_fetch_add_explicit(&iod->errors, 1, memory_order_relaxed);
	}
}

static void iodtab_call(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms)
{
	struct mgr_iodtab *t = arg;
	struct iod_rpc few[8], *rpcs = few;
	u32 i, part, room = ARRAY_SIZE(few);

	if (n > room) {
		rpcs = malloc(min(n, CALLS_AT_ONCE) * sizeof(*rpcs));
		/* Without memory it goes on with fewer at once. */
		if (rpcs)
			room = min(n, CALLS_AT_ONCE);
		else
			rpcs = few;
	}
	for (i = 0; i < n; i += part) {
		part = min(n - i, room);
		call_some(t, calls + i, part, rpcs, timeout_ms);
	}
	if (rpcs != few)
		free(rpcs);
}

static void iodtab_stats(void *arg, FILE *f)
{
	static const char *const state[] = { "idle", "connecting", "up", "down", "refused" };
	struct mgr_iodtab *t = arg;
	char why[128];
	u32 i;
	int err;

	fprintf(f, ",\"iods\":[");
	for (i = 0; i < t->n; i++) {
		struct iod *iod = &t->iod[i];
		unsigned int st = pvfs_peer_state(iod->peer, &err, why, sizeof(why));

		fprintf(f, "%s{\"index\":%u,\"state\":\"%s\",\"calls\":%llu,\"errors\":%llu}",
			i ? "," : "", i,
			st < ARRAY_SIZE(state) ? state[st] : "?",
			(unsigned long long)atomic_load(&iod->calls),
			(unsigned long long)atomic_load(&iod->errors));
	}
	fprintf(f, "]");
}

const struct mgr_iod_ops mgr_iodtab_ops = {
	.call = iodtab_call,
	.stats = iodtab_stats,
};

static int iod_start(struct mgr_iodtab *t, u32 i, const struct pvfs_key *key)
{
	struct pvfs_peer_params pp = {
		.key = key, .my_role = PVFS_ROLE_MGR, .its_role = PVFS_ROLE_IOD, .nconnect = 1,
		.fail_ms = FAIL_MS,
	};
	const char *why = "";
	int err;

	err = pvfs_addr_resolve(t->conf->iods[i].address, PVFS_PORT_IOD, &pp.addr, &why);
	if (err) {
		pvfs_error("iod %u: %s: %s", i, t->conf->iods[i].address, why);
		return err;
	}
	memcpy(pp.volume, t->conf->name, sizeof(pp.volume));
	return pvfs_peer_new(t->engine, &pp, &t->iod[i].peer);
}

/**
 * mgr_iodtab_open - get ready to call the iods; they need not be there yet
 * @conf: borrowed until mgr_iodtab_close()
 *
 * Return: 0 or -errno; what is wrong with an address was logged.
 */
int mgr_iodtab_open(const struct pvfs_conf *conf, const struct pvfs_key *server_key,
		    struct mgr_iodtab **ret)
{
	struct mgr_iodtab *t = calloc(1, sizeof(*t));
	u32 i;
	int err = -ENOMEM;

	if (!t)
		return -ENOMEM;
	t->conf = conf;
	t->iod = calloc(conf->niods, sizeof(*t->iod));
	if (!t->iod)
		goto fail;
	err = pvfs_engine_new("mgr-iod", 1, &t->engine);
	if (err)
		goto fail;
	for (i = 0; i < conf->niods; i++) {
		err = iod_start(t, i, server_key);
		if (err)
			goto fail;
		t->n++;
	}
	*ret = t;
	return 0;
fail:
	mgr_iodtab_close(t);
	return err;
}

void mgr_iodtab_close(struct mgr_iodtab *t)
{
	u32 i;

	if (!t)
		return;
	for (i = 0; i < t->n; i++)
		pvfs_peer_free(t->iod[i].peer);
	pvfs_engine_free(t->engine);
	free(t->iod);
	free(t);
}

/* The address as SESSION_OPEN tells it; family 0 where it must be resolved by the client. */
static void iodent_fill(struct pvfs_iodent *e, u32 i, const char *address)
{
	struct pvfs_addr a;
	const char *why, *end;

	memset(e, 0, sizeof(*e));
	e->index = i;
	e->host.p = (const u8 *)address;
	e->host.len = strlen(address);
	if (!strncmp(address, "loop:", 5))
		return;
	e->port = PVFS_PORT_IOD;
	/* "[v6]:port", "v6", "host:port", "host" */
	end = address[0] == '[' ? strchr(address, ']') : NULL;
	if (end) {
		e->host.p++;
		e->host.len = end - address - 1;
		if (end[1] == ':')
			e->port = atoi(end + 2);
	} else if (strchr(address, ':') && strchr(address, ':') == strrchr(address, ':')) {
		end = strchr(address, ':');
		e->host.len = end - address;
		e->port = atoi(end + 1);
	}
	if (pvfs_addr_resolve(address, PVFS_PORT_IOD, &a, &why))
		return;
	if (a.ss.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&a.ss;

		e->family = 4;
		e->port = ntohs(in->sin_port);
		memcpy(e->addr, &in->sin_addr, 4);
	} else if (a.ss.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a.ss;

		e->family = 6;
		e->port = ntohs(in6->sin6_port);
		memcpy(e->addr, &in6->sin6_addr, 16);
	}
}

/**
 * mgr_iodents_make - the table of iods that SESSION_OPEN hands out
 *
 * Strings point into m->conf. Resolves names once: may block.
 */
int mgr_iodents_make(struct mgr *m)
{
	u32 i;

	m->iodents = calloc(m->niods, sizeof(*m->iodents));
	if (!m->iodents)
		return -ENOMEM;
	for (i = 0; i < m->niods; i++)
		iodent_fill(&m->iodents[i], i, m->conf->iods[i].address);
	return 0;
}
