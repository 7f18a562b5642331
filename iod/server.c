// SPDX-License-Identifier: GPL-2.0
/*
 * server.c - the I/O daemon as pvfs_server sees it: dispatch, payload memory, statistics, start
 * and stop.
 *
 * READ, WRITE, their LISTs, GLIMPSE and IOD_STATFS run on the engine thread that read the request;
 * op_io.c and op_list.c say when they leave it, as TRIM always does, see op_meta.c. SLOW operations
 * (the connection has been handed on before) run there too while at most half of the engine threads
 * do such things, and on sched.c's threads beyond: a light load pays for no hand-over, and any number
 * of syncs leaves threads for reads.
 */
#include "iod.h"
#include "../common/log.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define CREDITS 128		/* requests one connection may have open */
#define KICK_MS 100		/* see pvfs_bufs_kick(), iod_holds_expire() */

/* payload_get() and payload_put() are told the connection only; a process runs one iod. */
static struct iod *the_iod;

struct iod_tuning iod_tuning = {
	.sendfile_min = 64 << 10,
	.read_ahead = 2 << 20,
};

void iod_fail(struct pvfs_call *call, int err)
{
	pvfs_call_reply(call, err, NULL, 0, NULL);
}

/* ---------------------------------------------------------------- dispatch */

/* A request on its way to a thread of sched.c. */
struct handover {
	struct iod *iod;
	struct pvfs_call *call;
	iod_handler fn;
};

static void run_handover(void *arg)
{
	struct handover h = *(struct handover *)arg;

	free(arg);
	/* Evicted since: what it has not begun it does not do, others may hold the file by now. */
	if (iod_fence_has(h.iod->fence, h.call->peer->session))
		iod_fail(h.call, -ESTALE);
	else
		h.fn(h.iod, h.call);
}

void iod_hand_over(struct iod *iod, struct pvfs_call *call, iod_handler fn)
{
	struct handover *h = malloc(sizeof(*h));

	if (!h) {
		fn(iod, call);	/* this thread waits then */
		return;
	}
	*h = (struct handover){ .iod = iod, .call = call, .fn = fn };
	iod_count(iod->counts.handed_over, 1);
	iod_sched_run(iod->sched, run_handover, h);
}

static void run_op(struct iod *iod, struct pvfs_call *call)
{
	switch (call->head.op) {
	case PVFS_OP_READ:
		iod_op_read(iod, call);
		break;
	case PVFS_OP_WRITE:
		iod_op_write(iod, call);
		break;
	case PVFS_OP_READ_LIST:
		iod_op_read_list(iod, call);
		break;
	case PVFS_OP_WRITE_LIST:
		iod_op_write_list(iod, call);
		break;
	case PVFS_OP_FSYNC:
		iod_op_fsync(iod, call);
		break;
	case PVFS_OP_HOLD:
		iod_op_hold(iod, call);
		break;
	case PVFS_OP_TRIM:
		iod_op_trim(iod, call);
		break;
	case PVFS_OP_FILL:
		iod_op_fill(iod, call);
		break;
	case PVFS_OP_GLIMPSE:
		iod_op_glimpse(iod, call);
		break;
	case PVFS_OP_REMOVE:
		iod_op_remove(iod, call);
		break;
	case PVFS_OP_SPACE:
		iod_op_space(iod, call);
		break;
	case PVFS_OP_COPY:
		iod_op_copy(iod, call);
		break;
	case PVFS_OP_SEEK:
		iod_op_seek(iod, call);
		break;
	case PVFS_OP_EVICT:
		iod_op_evict(iod, call);
		break;
	case PVFS_OP_IOD_STATFS:
		iod_op_iod_statfs(iod, call);
		break;
	default:
		iod_fail(call, -EOPNOTSUPP);
		break;
	}
}

static void dispatch(struct pvfs_call *call)
{
	struct iod *iod = pvfs_server_arg(call->server);

	/* EVICT has a thread of its own, and is not to wait for what it is to end. */
	if (!(call->info->flags & PVFS_OPF_SLOW) || call->head.op == PVFS_OP_EVICT) {
		run_op(iod, call);
		return;
	}
	if (iod_enter(iod, iod->slow_max)) {
		run_op(iod, call);
		iod_leave(iod);
		return;
	}
	iod_hand_over(iod, call, run_op);
}

/* ---------------------------------------------------------------- payload memory */

static u8 *payload_get(struct pvfs_conn *conn, const struct pvfs_header *h, u32 len,
		       void **ret_handle)
{
	struct pvfs_bufwait *w = pvfs_conn_data(conn);
	struct pvfs_buf *b;
	u8 *mem;

	/* Only the thread that reads the connection gets here, so nobody else makes it. */
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w) {
			pvfs_conn_kill(conn);
			return NULL;
		}
		pvfs_conn_set_data(conn, w);
	}
	b = pvfs_bufs_get(the_iod->bufs, h->session, len, w, &mem);
	if (!b)
		return NULL;
	*ret_handle = b;
	return mem;
}

static void payload_put(struct pvfs_conn *conn, u8 *payload, void *handle)
{
	pvfs_bufs_put(handle);
}

static void closed(struct pvfs_conn *conn)
{
	struct pvfs_bufwait *w = pvfs_conn_data(conn);

	if (!w)
		return;
	pvfs_bufs_forget(the_iod->bufs, w);
	pvfs_conn_set_data(conn, NULL);
	free(w);
}

static void bufs_ready(void *arg)
{
	struct iod *iod = arg;
	struct pvfs_server *server = atomic_load(&iod->server);

	if (server)
		pvfs_server_payload_ready(server);
}

static void kick(void *arg)
{
	struct iod *iod = arg;

	pvfs_bufs_kick(iod->bufs);
	iod_holds_expire(iod->holds, false);
}

/* ---------------------------------------------------------------- statistics */

#define LOAD(counter) ((unsigned long long)atomic_load_explicit(&(counter), memory_order_relaxed))

static void stats(struct pvfs_server *s, FILE *f)
{
	struct iod *iod = pvfs_server_arg(s);
	struct iod_counts *c = &iod->counts;
	struct pvfs_iod_statfs_rep sf;

	fprintf(f, ",\"iod\":{\"index\":%u,\"store\":\"%s\"", iod->index, iod->store->ops->name);
	fprintf(f, ",\"bytes_read\":%llu,\"bytes_written\":%llu,\"bytes_copied\":%llu",
		LOAD(c->bytes_read), LOAD(c->bytes_written), LOAD(c->bytes_copied));
	fprintf(f, ",\"by_sendfile\":%llu,\"by_copy\":%llu,\"read_ahead\":%llu",
		LOAD(c->by_sendfile), LOAD(c->by_copy), LOAD(c->read_ahead));
	fprintf(f, ",\"handed_over\":%llu,\"held\":%llu,\"no_space\":%llu,\"sync_failed\":%llu",
		LOAD(c->handed_over), LOAD(c->held), LOAD(c->no_space), LOAD(c->sync_failed));
	if (!iod->store->ops->statfs(iod->store, &sf))
		fprintf(f,
			",\"space\":{\"bytes\":%llu,\"free\":%llu,\"avail\":%llu,\"files\":%llu"
			",\"files_free\":%llu,\"disk\":\"%016llx\"}",
			(unsigned long long)sf.blocks * sf.bsize,
			(unsigned long long)sf.bfree * sf.bsize,
			(unsigned long long)sf.bavail * sf.bsize, (unsigned long long)sf.files,
			(unsigned long long)sf.ffree, (unsigned long long)sf.disk);
	fputs(",\"buffers\":{", f);
	pvfs_bufs_stats(iod->bufs, f);
	fputs("},\"files\":{", f);
	iod_fds_stats(iod->files, f);
	fputs("},\"caps\":{", f);
	iod_caps_stats(iod->caps, f);
	fputs("},\"disk\":{", f);
	iod_sched_stats(iod->sched, f);
	fputs("}}", f);
}

/* Any session of its client but one that was evicted: the capabilities say the rest. */
static int session_check(struct pvfs_server *s, u64 session, const u8 *ticket)
{
	struct iod *iod = pvfs_server_arg(s);

	if (iod_fence_has(iod->fence, session))
		return -ESTALE;
	return ticket && !iod_caps_ticket(iod->caps, session, ticket) ? -EPERM : 0;
}

u64 iod_room(struct iod *iod)
{
	return iod->store->ops->room ? iod->store->ops->room(iod->store) : UINT64_MAX;
}

static u64 room(struct pvfs_server *s)
{
	return iod_room(pvfs_server_arg(s));
}

static const struct pvfs_server_ops server_ops = {
	.dispatch = dispatch,
	.session_check = session_check,
	.room = room,
	.payload_get = payload_get,
	.payload_put = payload_put,
	.closed = closed,
	.stats = stats,
};

/* ---------------------------------------------------------------- start and stop */

/* The number behind iod_verifier(): of this boot of the machine and this store. */
static int boot_number(const struct pvfs_conf *conf, u32 index, bool forgets, u64 *ret)
{
	static const u8 zero[PVFS_KEY_LEN];
	u8 boot[64] = { 0 }, mac[PVFS_MAC_LEN], idx[4];
	struct iovec iov[3];
	ssize_t n = -1;
	int fd;

	fd = forgets ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, boot, sizeof(boot));
		close(fd);
	}
	/* Without it every start of the daemon counts as one of the machine. */
	if (n <= 0) {
		n = 16;
		if (getrandom(boot, n, 0) != n)
			return -EIO;
	}
	put_unaligned_le32(index, idx);
	iov[0] = (struct iovec){ .iov_base = boot, .iov_len = n };
	iov[1] = (struct iovec){ .iov_base = (void *)conf->uuid, .iov_len = PVFS_UUID_LEN };
	iov[2] = (struct iovec){ .iov_base = idx, .iov_len = sizeof(idx) };
	pvfs_hmac(zero, iov, 3, mac);
	*ret = get_unaligned_le64(mac);
	return 0;
}

static int load_keys(const struct pvfs_conf *conf, struct pvfs_server_params *p, char *err,
		     size_t errlen)
{
	const char *why = "";
	int rc;

	rc = pvfs_key_load(conf->cluster_key, &p->cluster_key, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", conf->cluster_key, why);
		return rc;
	}
	/* Without the server key no capability could be checked. */
	rc = pvfs_key_load(conf->server_key, &p->server_key, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", conf->server_key, why);
	} else if (pvfs_key_same(&p->cluster_key, &p->server_key)) {
		snprintf(err, errlen, "%s: is the cluster key %s, with which every client were a server: make another one",
			 conf->server_key, conf->cluster_key);
		rc = -EINVAL;
	}
	return rc;
}

static int start_server(struct iod *iod, const struct pvfs_conf *conf, struct pvfs_server_params *p,
			char *err, size_t errlen)
{
	const struct pvfs_conf_iod *me = &conf->iods[iod->index];
	const char *text = *me->listen ? me->listen : me->address, *why = "";
	struct pvfs_server *server;
	struct pvfs_addr addr;
	int rc;

	rc = pvfs_addr_resolve(text, PVFS_PORT_IOD, &addr, &why);
	if (rc) {
		snprintf(err, errlen, "%s:%d: iod %u: address \"%s\": %s", conf->path, me->line,
			 iod->index, text, why);
		return rc;
	}
	p->ops = &server_ops;
	p->arg = iod;
	p->role = PVFS_ROLE_IOD;
	p->index = iod->index;
	memcpy(p->volume, conf->name, sizeof(p->volume));
	memcpy(p->uuid, conf->uuid, sizeof(p->uuid));
	if (getrandom(&p->epoch, sizeof(p->epoch), 0) != sizeof(p->epoch)) {
		snprintf(err, errlen, "no random numbers");
		return -EIO;
	}
	p->payload_max = iod->io_max;
	p->credits = CREDITS;
	p->max_conns = conf->iod_max_conns;
	rc = pvfs_server_start(iod->engine, &addr, 1, p, &server, &why);
	if (rc) {
		snprintf(err, errlen, "%s: %s", text, why);
		return rc;
	}
	atomic_store(&iod->server, server);
	return 0;
}

int iod_start(const struct pvfs_conf *conf, u32 index, struct iod_store *store,
	      struct iod **ret_iod, char *err, size_t errlen)
{
	struct pvfs_server_params p = { 0 };
	struct iod *iod;
	int rc;
	u32 i;

	*err = '\0';
	iod = calloc(1, sizeof(*iod));
	if (!iod) {
		store->ops->free(store);
		return -ENOMEM;
	}
	iod->store = store;
	for (i = 0; i < IOD_SYNC_LOCKS; i++) {
		pthread_mutex_init(&iod->sync_lock[i], NULL);
		pthread_mutex_init(&iod->cut_lock[i], NULL);
	}
	pthread_mutex_init(&iod->trim_lock, NULL);
	LIST_INIT(&iod->trims);
	pthread_mutex_init(&iod->removal_lock, NULL);
	iod->index = index;
	iod->io_max = conf->io_max;
	iod->slow_max = conf->iod_threads / 2;
	iod->write_max = conf->iod_threads > 2 ? conf->iod_threads - 2 : conf->iod_threads;
	rc = load_keys(conf, &p, err, errlen);
	if (rc)
		goto fail;
	rc = boot_number(conf, index, !strcmp(store->ops->name, "null"), &iod->boot);
	if (rc)
		goto fail;
	rc = iod_sched_new(conf->iod_threads, &iod->sched);
	if (rc)
		goto fail;
	rc = iod_fds_new(store, iod->sched, conf->fd_cache, &iod->files);
	if (rc)
		goto fail;
	rc = iod_caps_new(&p.server_key, conf->uuid, &iod->caps);
	if (rc)
		goto fail;
	rc = iod_loss_open(strcmp(store->ops->name, "null") ? conf->iods[index].store : NULL,
			   &iod->loss);
	if (rc)
		goto fail;
	store->loss = iod->loss;
	/*
	 * What the daemon before has taken and the kernel could not write, or cannot, nobody has open
	 * any more: it is told now, or never.
	 */
	rc = store->ops->sync_all(store);
	if (rc) {
		iod_loss_note(iod->loss);
		pvfs_warn("sync of the store: %s; unsynced data of an earlier run may be lost",
			  strerror(-rc));
	}
	rc = iod_fence_open(strcmp(store->ops->name, "null") ? conf->iods[index].store : NULL,
			    &iod->fence);
	if (rc)
		goto fail;
	rc = pvfs_bufs_new(conf->iod_buffers, conf->io_max, bufs_ready, iod, &iod->bufs);
	if (rc)
		goto fail;
	rc = iod_holds_new(iod, &iod->holds);
	if (rc)
		goto fail;
	rc = iod_evictor_new(iod, &iod->evictor);
	if (rc)
		goto fail;
	rc = pvfs_engine_new("pvfs-iod", conf->iod_threads, &iod->engine);
	if (rc)
		goto fail;
	rc = pvfs_engine_every(iod->engine, KICK_MS, kick, iod);
	if (rc)
		goto fail;
	the_iod = iod;
	rc = start_server(iod, conf, &p, err, errlen);
	if (rc)
		goto fail;
	explicit_bzero(&p, sizeof(p));
	*ret_iod = iod;
	return 0;
fail:
	explicit_bzero(&p, sizeof(p));
	if (!*err)
		snprintf(err, errlen, "iod %u: can't start: %s", index, strerror(-rc));
	iod_stop(iod, 0);
	return rc;
}

void iod_stop(struct iod *iod, unsigned int grace_ms)
{
	struct pvfs_server *server;
	u32 i;

	if (!iod)
		return;
	server = atomic_load(&iod->server);
	if (iod->holds)
		iod_holds_expire(iod->holds, true);
	/* It holds calls, which the server waits for. */
	iod_evictor_stop(iod->evictor);
	if (server)
		pvfs_server_stop(server, grace_ms);
	iod_sched_free(iod->sched);
	pvfs_engine_free(iod->engine);
	iod_holds_free(iod->holds);
	iod_evictor_free(iod->evictor);
	iod_caps_free(iod->caps);
	iod_fence_close(iod->fence);
	iod_fds_free(iod->files);
	pvfs_bufs_free(iod->bufs);
	if (iod->store)
		iod->store->ops->free(iod->store);
	iod_loss_close(iod->loss);
	pthread_mutex_destroy(&iod->removal_lock);
	pthread_mutex_destroy(&iod->trim_lock);
	for (i = 0; i < IOD_SYNC_LOCKS; i++) {
		pthread_mutex_destroy(&iod->cut_lock[i]);
		pthread_mutex_destroy(&iod->sync_lock[i]);
	}
	if (the_iod == iod)
		the_iod = NULL;
	free(iod);
}
