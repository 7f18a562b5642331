// SPDX-License-Identifier: GPL-2.0
/*
 * iodtab.c - the volume's iods as the manager calls them: a peer each, on an engine of its own,
 * authenticated with the server key. The peers' threads complete the calls, and tell who asked.
 *
 * An iod whose name does not resolve when we start is down like any other. A thread looks after them
 * every second: it asks for such an address, and the iod has a peer from then on; and it has those that
 * are down asked whether they are back, so that the log tells that soon when nobody wants anything of
 * them.
 *
 * An iod that is known to be down is not waited for: its calls fail at once. Nor are glimpses and holds waited for at one that is connected and silent: clients
 * ask until a size is known, and each question would hold a worker for as long as it may take; and
 * what is held at the other iods waits as long.
 */
#include "mgr.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdlib.h>

#define CALLS_AT_ONCE 1024u	/* requests in flight of one caller */
#define FAIL_MS 1500u		/* how long a request waits for a connection */
#define PROBE_MS 1000u
#define PROBE_TIMEOUT_MS 5000u
#define WATCH_MS 1000u		/* between two looks at those that are not up */

struct iod {
	_Atomic(struct pvfs_peer *) peer;	/* NULL: its name was not resolved yet */
	struct pvfs_addr addr;		/* once there is a peer */
	atomic_bool probing;	/* @probe is under way; who sets it owns the next three */
	_Atomic u64 probed;	/* monotonic ms of the last one */
	atomic_bool silent;	/* the request that ended last was not answered in its time */
	struct pvfs_rpc probe;
	u8 probe_rep[64];
	atomic_ullong calls, errors;
};

struct mgr_iodtab {
	const struct pvfs_conf *conf;
	struct pvfs_key key;
	struct pvfs_engine *engine;
	struct iod *iod;
	u32 n;
	/* the thread that looks after them */
	pthread_mutex_t lock;		/* protects stop */
	pthread_cond_t cond;
	bool stop, watching;
	pthread_t watcher;
};

struct iod_rpc {
	struct pvfs_rpc rpc;
	struct iod_set *set;
	struct iod *iod;
	struct mgr_iocall *call;
	u8 body[64], rep[64];
};

/* Calls that were made together. */
struct iod_set {
	atomic_uint left;		/* that have not ended; and one while they are begun */
	void (*done)(void *arg);
	void *arg;
	struct iod_rpc rpcs[];
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
	pvfs_peer_submit(atomic_load(&iod->peer), &iod->probe);
}

/* Is it worth a try? */
static bool usable(struct iod *iod, u16 op)
{
	struct pvfs_peer *peer = atomic_load(&iod->peer);
	char why[128];
	int err;

	if (!peer)
		return false;
	if (pvfs_peer_state(peer, &err, why, sizeof(why)) != PVFS_PEER_DOWN &&
	    ((op != PVFS_OP_GLIMPSE && op != PVFS_OP_HOLD) || !atomic_load(&iod->silent)))
		return true;
	probe(iod);	/* who is up and silent, too */
	return false;
}

static void set_put(struct iod_set *set)
{
	void (*done)(void *arg) = set->done;
	void *arg = set->arg;

	if (atomic_fetch_sub(&set->left, 1) != 1)
		return;
	free(set);
	done(arg);
}

static void call_ended(struct iod_rpc *r, int err)
{
	if (err)
		atomic_fetch_add_explicit(&r->iod->errors, 1, memory_order_relaxed);
	r->call->err = err;
	set_put(r->set);
}

static void rpc_done(struct pvfs_rpc *rpc)
{
	struct iod_rpc *r = container_of(rpc, struct iod_rpc, rpc);

	heard(r->iod, rpc->err);
	atomic_fetch_add_explicit(&r->iod->calls, 1, memory_order_relaxed);
	call_ended(r, rpc->err ? rpc->err : decode(r));
}

/* Every request has a time-out, so this ends. */
static void iodtab_start(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms,
			 void (*done)(void *done_arg), void *done_arg)
{
	struct mgr_iodtab *t = arg;
	struct iod_set *set = malloc(sizeof(*set) + n * sizeof(set->rpcs[0]));
	u32 i;
	int err;

	if (!set) {
		for (i = 0; i < n; i++)
			calls[i].err = -ENOMEM;
		done(done_arg);
		return;
	}
	set->done = done;
	set->arg = done_arg;
	atomic_init(&set->left, n + 1);
	for (i = 0; i < n; i++) {
		struct mgr_iocall *c = &calls[i];
		struct iod_rpc *r = &set->rpcs[i];

		/* Ours is the last of them. */
		if (c->iod >= t->n) {
			c->err = -EINVAL;
			atomic_fetch_sub(&set->left, 1);
			continue;
		}
		r->set = set;
		r->call = c;
		r->iod = &t->iod[c->iod];
		err = usable(r->iod, c->op) ? prepare(r, c, timeout_ms) : -EHOSTDOWN;
		if (err) {
			c->err = err;
			atomic_fetch_sub(&set->left, 1);
			continue;
		}
		r->rpc.done = rpc_done;
		pvfs_peer_submit(atomic_load(&r->iod->peer), &r->rpc);
	}
	set_put(set);
}

static void calls_done(void *arg)
{
	sem_post(arg);
}

static void iodtab_call(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms)
{
	u32 i, part;
	sem_t sem;

	sem_init(&sem, 0, 0);
	for (i = 0; i < n; i += part) {
		part = min(n - i, CALLS_AT_ONCE);
		iodtab_start(arg, calls + i, part, timeout_ms, calls_done, &sem);
		while (sem_wait(&sem))
			;
	}
	sem_destroy(&sem);
}

/* What pvfs_peer_state() says of one that is refused, for who asks for statistics. */
static const char *refused_why(int err)
{
	switch (err) {
	case -EACCES:
		return "its server key is not the manager's: compare the files of 'server_key'";
	case -EHOSTUNREACH:
		return "it is another daemon than should be there";
	case -EPROTO:
		return "it speaks another version of the protocol";
	}
	return "the manager's log says why";
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
		struct pvfs_peer *peer = atomic_load(&iod->peer);
		unsigned int st = peer ? pvfs_peer_state(peer, &err, why, sizeof(why)) :
					 PVFS_PEER_DOWN;

		fprintf(f,
			"%s{\"index\":%u,\"state\":\"%s\",\"why\":\"%s\",\"away_ms\":%llu,\"calls\":%llu,\"errors\":%llu}",
			i ? "," : "", i,
			st < ARRAY_SIZE(state) ? state[st] : "?",
			st == PVFS_PEER_REFUSED ? refused_why(err) : "",
			peer ? (unsigned long long)pvfs_peer_down_ms(peer) : 0ull,
			(unsigned long long)atomic_load(&iod->calls),
			(unsigned long long)atomic_load(&iod->errors));
	}
	fprintf(f, "]");
}

static bool iodtab_addr(void *arg, u32 i, struct pvfs_addr *ret)
{
	struct mgr_iodtab *t = arg;

	if (!t || i >= t->n || !atomic_load(&t->iod[i].peer))
		return false;
	*ret = t->iod[i].addr;
	return true;
}

const struct mgr_iod_ops mgr_iodtab_ops = {
	.call = iodtab_call,
	.start = iodtab_start,
	.addr = iodtab_addr,
	.stats = iodtab_stats,
};

/* ---- names ---- */

/* Return: 0; -EAGAIN when its name does not resolve, @why says it; or another error. */
static int iod_start(struct mgr_iodtab *t, u32 i, const char **why)
{
	struct pvfs_peer_params pp = {
		.key = &t->key, .my_role = PVFS_ROLE_MGR, .its_role = PVFS_ROLE_IOD, .nconnect = 1,
		.fail_ms = FAIL_MS, .watch = true,
	};
	struct pvfs_peer *peer;
	int err;

	*why = "";
	if (pvfs_addr_resolve(t->conf->iods[i].address, PVFS_PORT_IOD, &pp.addr, why))
		return -EAGAIN;
	memcpy(pp.volume, t->conf->name, sizeof(pp.volume));
	err = pvfs_peer_new(t->engine, &pp, &peer);
	if (err)
		return err;
	pvfs_peer_expect(peer, t->conf->uuid, i);
	t->iod[i].addr = pp.addr;
	atomic_store(&t->iod[i].peer, peer);
	return 0;
}

static bool watcher_wait(struct mgr_iodtab *t)
{
	u64 deadline = mgr_mono_ms() + WATCH_MS;
	struct timespec until = { .tv_sec = deadline / 1000,
				  .tv_nsec = deadline % 1000 * 1000000l };
	bool stop;

	pthread_mutex_lock(&t->lock);
	while (!t->stop && !pthread_cond_timedwait(&t->cond, &t->lock, &until))
		;
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

static void *watcher(void *arg)
{
	struct mgr_iodtab *t = arg;
	enum pvfs_peer_state state;
	struct pvfs_peer *peer;
	const char *why;
	u32 i, round = 0;

	do {
		for (i = 0; i < t->n; i++) {
			peer = atomic_load(&t->iod[i].peer);
			state = peer ? pvfs_peer_state(peer, NULL, NULL, 0) : PVFS_PEER_DOWN;
			/* mgr_iodtab_open() has just asked: who can't start need not wait for the resolver once more. */
			if (!peer && round && !iod_start(t, i, &why))
				pvfs_info("iod %u: %s: has an address now", i,
					  t->conf->iods[i].address);
			/* Who refuses us, or whom we refuse, will not think better of it soon. */
			if (peer && state != PVFS_PEER_UP &&
			    (state != PVFS_PEER_REFUSED || !(round % 10)))
				probe(&t->iod[i]);
		}
		round++;
	} while (!watcher_wait(t));
	return NULL;
}

/**
 * mgr_iodtab_open - get ready to call the iods; they need not be there yet
 * @conf: borrowed until mgr_iodtab_close()
 *
 * Return: 0 or -errno.
 */
int mgr_iodtab_open(const struct pvfs_conf *conf, const struct pvfs_key *server_key,
		    struct mgr_iodtab **ret)
{
	struct mgr_iodtab *t = calloc(1, sizeof(*t));
	const char *why;
	u32 i;
	int err = -ENOMEM;

	if (!t)
		return -ENOMEM;
	t->conf = conf;
	t->key = *server_key;
	pthread_mutex_init(&t->lock, NULL);
	mgr_cond_init(&t->cond);
	t->iod = calloc(conf->niods, sizeof(*t->iod));
	if (!t->iod)
		goto fail;
	t->n = conf->niods;
	err = pvfs_engine_new("mgr-iod", 1, &t->engine);
	if (err)
		goto fail;
	for (i = 0; i < t->n; i++) {
		err = iod_start(t, i, &why);
		if (err == -EAGAIN) {
			pvfs_warn("iod %u: %s: %s; asking again until it has an address", i,
				  conf->iods[i].address, why);
		} else if (err) {
			goto fail;
		}
	}
	err = -pthread_create(&t->watcher, NULL, watcher, t);
	if (err)
		goto fail;
	t->watching = true;
	*ret = t;
	return 0;
fail:
	mgr_iodtab_close(t);
	return err;
}

void mgr_iodtab_close(struct mgr_iodtab *t)
{
	struct pvfs_peer *peer;
	u32 i;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->cond);
	pthread_mutex_unlock(&t->lock);
	if (t->watching)
		pthread_join(t->watcher, NULL);
	for (i = 0; i < t->n; i++) {
		peer = atomic_load(&t->iod[i].peer);
		if (peer)
			pvfs_peer_free(peer);
	}
	pvfs_engine_free(t->engine);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->cond);
	free(t->iod);
	free(t);
}

/* The address as SESSION_OPEN tells it; false: of a family that it can't tell. */
static bool iodent_addr(struct pvfs_iodent *e, const struct pvfs_addr *a)
{
	if (a->ss.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&a->ss;

		e->family = 4;
		e->port = ntohs(in->sin_port);
		memcpy(e->addr, &in->sin_addr, 4);
	} else if (a->ss.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->ss;

		e->family = 6;
		e->port = ntohs(in6->sin6_port);
		memcpy(e->addr, &in6->sin6_addr, 16);
	}
	return e->family;
}

/* Family 0: it has no address that SESSION_OPEN could tell, or none yet. */
static void iodent_fill(struct mgr *m, u32 i)
{
	const char *address = m->conf->iods[i].address, *why, *end;
	struct pvfs_iodent *e = &m->iodents[i];
	struct pvfs_addr a;

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
	if (m->iod_ops->addr ? m->iod_ops->addr(m->iod_arg, i, &a) :
			       !pvfs_addr_resolve(address, PVFS_PORT_IOD, &a, &why))
		iodent_addr(e, &a);
}

/**
 * mgr_iodents_make - the table of iods that SESSION_OPEN hands out
 *
 * Strings point into m->conf.
 */
int mgr_iodents_make(struct mgr *m)
{
	u32 i;

	m->iodents = calloc(m->niods, sizeof(*m->iodents));
	if (!m->iodents)
		return -ENOMEM;
	for (i = 0; i < m->niods; i++)
		iodent_fill(m, i);
	return 0;
}

int mgr_iodents_put(struct mgr *m, struct pvfs_wire *w)
{
	struct pvfs_iodent *e;
	struct pvfs_addr a;
	u32 i;
	int err = 0;

	pthread_mutex_lock(&m->iodents_lock);
	for (i = 0; i < m->niods && !err; i++) {
		e = &m->iodents[i];
		/* One that had no address when we started. */
		if (!e->family && m->iod_ops->addr &&
		    (!m->iod_ops->addr(m->iod_arg, i, &a) || !iodent_addr(e, &a)) && e->port) {
			pvfs_log_limited(PVFS_LOG_WARNING,
					 "iod %u: %s: has no address yet: no session is opened", i,
					 m->conf->iods[i].address);
			err = -EAGAIN;
		}
		pvfs_put_iodent(w, e);
	}
	pthread_mutex_unlock(&m->iodents_lock);
	return err ? err : w->err;
}
