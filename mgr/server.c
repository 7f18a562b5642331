// SPDX-License-Identifier: GPL-2.0
/*
 * server.c - from a request to its answer: dispatch made of ops.def, the driver of transactions,
 * counters.
 *
 * A request runs on the transport's thread that read it. Operations marked SLOW run there on a task
 * of their own (park.h), and where they have to wait they leave the thread; of the others, those
 * that find they have to ask the iods (-EINPROGRESS; nothing was done yet) are executed once more as
 * a worker's task. What waits for others' leases is put aside as the message that it was (recall.h),
 * and so is what waits for clients to come back after a restart (grace.c).
 *
 *   dispatch() -> mgr_execute(): enter -> slot -> handler -> log flushed -> slot -> leave -> reply
 *       handler: mgr_run(): begin -> fn -> [store reply] -> commit, again after a deadlock
 *
 * Commit makes changes visible and releases locks before they are durable; the flush comes before
 * the reply, and one flush serves all that wait, parked or not (early lock release, group commit). So another
 * client may see a change that a power failure then undoes, but nobody was told that it had
 * happened.
 *
 * Lock order, outermost first; a lock is taken only when nothing further down is held:
 *
 *   1. mgr_slot.busy            one copy of a ONCE request runs; never waited for (-EAGAIN)
 *   2. mgr_opens_lock(ino)      one truncation of a file at a time; held across calls to iods
 *   3. mgr.rename_lock          directories that change their parent
 *   4. mgr.ino_lock             batches of inode numbers
 *   5. database page locks      for one transaction; the loser of a deadlock starts again (mgr_run)
 *   6. leaves                   mgr_grace.lock, mgr_recalls.lock (the next two, and opens stripes, inside
 *                               it), mgr_leases stripes (opens stripes inside them),
 *                               mgr_sessions.lock, mgr_session.lock, opens stripes, mgr_locks.lock,
 *                               mgr_tasks.lock, mgr_log.lock, bg_lock, mgr_heads.lock, mgr_settle.lock:
 *                               nothing is waited for under them
 *
 * mdb_enter() is not a lock but recovery waits for its holders: who waits for an iod, the log or
 * another truncation leaves meanwhile (wait.c). mgr_sessions.lock is a leaf: session ends are worked on a referenced
 * session after it was unhashed.
 */
#include "mgr.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- the table ---- */

#define PVFS_OP(num, NAME, name, by, flags_) MGR_SERVED_##by( \
	static int decode_##name(struct mgr_op *op, const void *buf, size_t len) \
	{ \
		return pvfs_##name##_req_decode(&op->req.name, buf, len); \
	} \
	static int handle_##name(struct mgr_op *op) \
	{ \
		return mgr_op_##name(op, &op->req.name, &op->rep.name); \
	} \
	static int encode_##name(const struct mgr_op *op, void *buf, size_t room) \
	{ \
		return pvfs_##name##_rep_encode(&op->rep.name, buf, room); \
	})
#include "../common/ops.def"
#undef PVFS_OP

static const struct mgr_handler handlers[PVFS_OP_LIMIT] = {
#define PVFS_OP(num, NAME, name_, by, flags_) MGR_SERVED_##by( \
	[num] = { .name = #NAME, .flags = (flags_), .decode = decode_##name_, \
		  .handle = handle_##name_, .encode = encode_##name_ },)
#include "../common/ops.def"
#undef PVFS_OP
};

/* ---- time ---- */

u64 mgr_mono_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

void mgr_cond_init(pthread_cond_t *c)
{
	pthread_condattr_t ca;

	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(c, &ca);
	pthread_condattr_destroy(&ca);
}

void mgr_wall_now(struct pvfs_ts *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ret->sec = ts.tv_sec;
	ret->nsec = ts.tv_nsec;
}

u64 mgr_version_after(u64 old)
{
	struct pvfs_ts now;

	mgr_wall_now(&now);
	return max(old + 1, (u64)now.sec * 1000000000ull + now.nsec);
}

/* ---- the driver ---- */

static void count(atomic_ullong *c)
{
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* Random, growing, bounded: losers of a deadlock must not meet again at once. */
static void back_off(struct mgr_op *op, unsigned int attempt)
{
	static __thread unsigned int seed;
	unsigned int most = 20u << min(attempt, 8u);

	if (!seed)
		seed = (unsigned int)(uintptr_t)&seed ^ (unsigned int)mgr_mono_ms();
	usleep(1 + rand_r(&seed) % most);
}

static int encode_reply(struct mgr_op *op)
{
	int n = op->h->encode(op, op->body, sizeof(op->body));

	if (n < 0)
		return n;
	op->body_len = n;
	return 0;
}

/* One attempt. *@ret_stored: the reply went with it. */
static int run_once(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg,
		    unsigned int flags, bool *ret_stored)
{
	struct mdb *db = op->m->db;
	bool store;
	int err;

	err = mdb_begin(db, &op->txn);
	if (err)
		return mgr_heads_ended(op, err);
	op->final = flags & MGR_RUN_FINAL;
	err = fn(op, arg);
	if (!err || err == -ENOLINK)
		err = mgr_lease_check(op) ?: err;
	store = op->final && op->slot_seq;
	if (!err && store)
		err = encode_reply(op);
	if (!err && store)
		err = mgr_slot_store(op);
	if (err)
		mdb_abort(db, op->txn);
	else
		err = mdb_commit(db, op->txn);
	op->txn = NULL;
	*ret_stored = store;
	return mgr_heads_ended(op, err);
}

int mgr_run(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg,
	    unsigned int flags)
{
	unsigned int attempt = 0;
	bool store = false;
	int err;

	if (op->lost)
		return mgr_heads_ended(op, -ERESTART);
	if (!(flags & MGR_RUN_READ)) {
		err = mgr_space_check(op->m, flags & MGR_RUN_GROWS);
		if (err)
			return err;
	}
	for (;;) {
		/* What a request waits for stays noted in what it takes back: that recalls nothing. */
		if (op->recalls) {
			op->nnoted = 0;
			op->unsure = false;
			op->grace = MGR_GRACE_NONE;
			op->noted_all = true;
		}
		err = flags & MGR_RUN_READ ? fn(op, arg) ?: mgr_lease_check(op) :
					     run_once(op, fn, arg, flags, &store);
		if (err == -ENOLINK)
			continue;
		if (err != -EDEADLK)
			break;
		count(&op->m->count.retries);
		if (attempt == 1000) {
			pvfs_log_limited(PVFS_LOG_WARNING, "%s: gave up after %u deadlocks",
					 op->h ? op->h->name : "background", attempt);
			return mgr_heads_ended(op, -EAGAIN);
		}
		back_off(op, attempt++);
	}
	if (!err && (flags & MGR_RUN_SYNC))
		op->need_sync = true;
	if (!err && store)
		op->stored = true;
	return err;
}

int mgr_run_now(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg,
		unsigned int flags)
{
	bool can_wait = op->can_wait;
	int err;

	op->can_wait = false;
	err = mgr_run(op, fn, arg, flags);
	op->can_wait = can_wait;
	return err;
}

void mgr_op_init_bg(struct mgr_op *op, struct mgr *m)
{
	memset(op, 0, offsetof(struct mgr_op, body));
	op->m = m;
	op->can_block = true;
	mgr_wall_now(&op->now);
}

/* Recovery in place, and then there may be files that what it undid has left. */
static int restart(struct mgr *m, u64 generation)
{
	int err = mdb_restart(m->db, generation);

	if (!err)
		mgr_bg_kick(m, &m->heads.kicked);
	return err;
}

int mgr_bg_run(struct mgr_op *op, int (*fn)(struct mgr_op *op, void *arg), void *arg)
{
	unsigned int attempt;
	int err = 0, err2;

	for (attempt = 0; attempt < 3; attempt++) {
		op->need_sync = op->lost = false;
		op->db_gen = mdb_enter(op->m->db);
		err = fn(op, arg);
		if (op->need_sync) {
			err2 = mgr_log_wait(op);
			err = err2 ? err2 : err;
		}
		mdb_leave(op->m->db);
		if (err != -ERESTART)
			return err;
		err2 = restart(op->m, op->db_gen);
		if (err2)
			return err2 == -ERESTART ? -EIO : err2;
	}
	return err == -ERESTART ? -EIO : err;
}

int mgr_bg_do(struct mgr *m, int (*fn)(struct mgr_op *op, void *arg), void *arg)
{
	struct mgr_op *op = malloc(sizeof(*op));
	int err;

	if (!op)
		return -ENOMEM;
	mgr_op_init_bg(op, m);
	err = mgr_bg_run(op, fn, arg);
	free(op);
	return err;
}

/* What a client is told. */
static int public_error(int err)
{
	switch (err) {
	case -EUCLEAN:
	case -ERESTART:
	case -EMSGSIZE:
		return -EIO;
	case -EDEADLK:
		return -EAGAIN;
	default:
		return err;
	}
}

/* One pass inside the database. */
static int execute_inside(struct mgr_op *op)
{
	enum mgr_slot_todo todo = MGR_SLOT_EXECUTE;
	int err, err2;

	if (op->slot_seq) {
		err = mgr_slot_begin(op, &todo);
		if (err)
			return err;
		if (todo == MGR_SLOT_REPLAY) {
			count(&op->m->count.replays);
			return 0;
		}
	}
	err = op->h->handle(op);
	/* Also when it is stored: the handler may have asked the iods for sizes since. */
	if (!err)
		err = encode_reply(op);
	if (op->need_sync) {
		err2 = mgr_log_wait(op);
		err = err2 ? err2 : err;
	}
	if (op->slot_seq)
		mgr_slot_end(op, err);
	return err;
}

/* What only brings back what was, or ends it, is in the way of nobody's lease. */
static bool recalls_nothing(u16 op)
{
	return op == PVFS_OP_SESSION_OPEN || op == PVFS_OP_SESSION_CLOSE;
}

/* What tells nothing of a file's bytes but how many there are, and since when. */
static bool only_tells(u16 op)
{
	return op == PVFS_OP_GETATTR || op == PVFS_OP_LOOKUP || op == PVFS_OP_GETXATTR ||
	       op == PVFS_OP_LISTXATTR;
}

int mgr_execute(struct mgr *m, const struct mgr_request *rq, struct mgr_op *op)
{
	const struct mgr_handler *h = rq->op < PVFS_OP_LIMIT ? &handlers[rq->op] : NULL;
	unsigned int attempt;
	int err, err2;

	memset(op, 0, offsetof(struct mgr_op, body));
	if (!h || !h->handle)
		return -EOPNOTSUPP;
	op->m = m;
	op->h = h;
	op->nr = rq->op;
	op->slot = rq->slot;
	op->slot_seq = rq->slot_seq;
	op->can_block = rq->can_block;
	op->can_wait = rq->can_wait;
	op->recalls = rq->can_park && !recalls_nothing(rq->op);
	/* What was open when a manager died nobody has a lease on; see reclaim_fn(). */
	op->only_kept = rq->op == PVFS_OP_RECLAIM && mgr_leases_in_grace(m);
	op->tells = only_tells(rq->op);
	op->parked = rq->parked;
	op->data = rq->data;
	op->from = rq->from;
	op->data_len = rq->data_len;
	if (op->data_len && op->nr != PVFS_OP_SETXATTR && op->nr != PVFS_OP_HEAD_WRITE &&
	    op->nr != PVFS_OP_FLUSH && op->nr != PVFS_OP_FILES_WRITE)
		return -EINVAL;
	err = h->decode(op, rq->body, rq->body_len);
	if (err)
		return err;
	if (rq->session)
		op->s = mgr_session_lookup(m, rq->session);
	if (!op->s && !(h->flags & PVFS_OPF_NOSESS))
		return -ESTALE;
	/* Exactly once needs a slot; operations that do not need it may use one all the same. */
	if ((h->flags & PVFS_OPF_ONCE) && !op->slot_seq)
		err = -EINVAL;
	if (op->slot_seq && (!op->s || op->slot >= MGR_NSLOTS))
		err = -EINVAL;
	for (attempt = 0; !err; attempt++) {
		op->need_sync = op->stored = op->lost = false;
		op->txn = NULL;
		op->body_len = op->payload_len = 0;
		op->bind_session = 0;
		op->again = attempt > 0;
		mgr_wall_now(&op->now);
		memset(&op->rep, 0, sizeof(op->rep));

		op->db_gen = mdb_enter(m->db);
		err = execute_inside(op);
		mdb_leave(m->db);
		if (err) {
			free(op->payload);
			op->payload = NULL;
			op->payload_len = op->body_len = 0;
		}
		if (err != -ERESTART)
			break;
		count(&m->count.restarts);
		err2 = attempt < 5 ? restart(m, op->db_gen) : -EIO;
		err = err2;
	}
	if (err == -EINPROGRESS)
		goto out;
	err = public_error(err);
	count(&m->count.op[rq->op]);
	if (err)
		count(&m->count.op_err[rq->op]);
out:
	if (op->s)
		mgr_session_put(op->s);
	op->s = NULL;
	return err;
}

/* ---- between the transport and mgr_execute() ---- */

struct request_job {
	struct mgr_job job;
	struct mgr *m;
	struct pvfs_call *call;
	struct mgr_parked *parked;	/* it was; or NULL */
	bool waited;			/* for the end of the grace */
};

/* Answers, and ends what it was parked for. */
static void finish(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked, int err,
		   const struct mgr_op *op)
{
	struct pvfs_out out = { .fd = -1, .release = free };

	if (!err && op->payload) {
		out.mem = out.arg = op->payload;
		out.len = op->payload_len;
	}
	pvfs_call_reply(call, err, err ? NULL : op->body, err ? 0 : op->body_len,
			out.mem ? &out : NULL);
	if (parked)
		mgr_recall_over(m, parked);
}

static void run_job(struct mgr_job *job);

static struct request_job *job_new(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked)
{
	struct request_job *j = malloc(sizeof(*j));

	if (j)
		*j = (struct request_job){ .job.fn = run_job, .m = m, .call = call,
					   .parked = parked };
	else
		finish(m, call, parked, -ENOMEM, NULL);
	return j;
}

/* To a worker. @parked: what it waited for until now, or NULL. */
void mgr_offload(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked)
{
	struct request_job *j = job_new(m, call, parked);

	if (!j)
		return;
	count(&m->count.offloaded);
	mgr_task_queue(&m->tasks, &j->job);
}

void mgr_offload_waited(struct mgr *m, struct pvfs_call *call)
{
	struct request_job *j = job_new(m, call, NULL);

	if (!j)
		return;
	j->waited = true;
	count(&m->count.offloaded);
	mgr_task_queue(&m->tasks, &j->job);
}

/* @waited: for the end of the grace, which is done once. */
static void run_call(struct mgr *m, struct pvfs_call *call, struct mgr_parked *parked,
		     bool can_block, bool waited)
{
	struct mgr_request rq = {
		.op = call->head.op, .slot = call->head.slot, .slot_seq = call->head.slot_seq,
		.session = call->peer->session, .body = call->body, .body_len = call->head.body_len,
		.data = call->payload, .data_len = call->head.payload_len, .can_block = can_block,
		.can_park = true, .can_wait = !waited, .from = call->peer->addr,
		.parked = parked,
	};
	struct mgr_op op;
	int err;

	err = mgr_execute(m, &rq, &op);
	if (err == -EINPROGRESS && op.grace) {
		if (!mgr_grace_park(m, &op, rq.session, call)) {
			if (parked)
				mgr_recall_over(m, parked);
			return;
		}
		rq.can_wait = false;
		err = mgr_execute(m, &rq, &op);
	}
	if (err == -EINPROGRESS && op.nnoted) {
		err = mgr_recall_park(m, &op, rq.session, call);
		if (!err) {
			if (parked)
				mgr_recall_over(m, parked);
			return;
		}
	} else if (err == -EINPROGRESS) {
		mgr_offload(m, call, parked);
		return;
	}
	if (op.bind_session && !err)
		pvfs_conn_set_session(call->conn, op.bind_session);
	finish(m, call, parked, err, &op);
}

/* On a task: it parks where it has to wait. */
static void run_job(struct mgr_job *job)
{
	struct request_job j = *container_of(job, struct request_job, job);

	free(container_of(job, struct request_job, job));
	run_call(j.m, j.call, j.parked, true, j.waited);
}

static void mgr_dispatch(struct pvfs_call *call)
{
	struct mgr *m = pvfs_server_arg(call->server);
	struct request_job *j;

	if (!(call->info->flags & PVFS_OPF_SLOW)) {
		run_call(m, call, NULL, false, false);
		return;
	}
	j = job_new(m, call, NULL);
	if (j)
		mgr_task_begin(&m->tasks, &j->job);
}

/**
 * mgr_workers_start - start the threads that go on with requests that had to wait
 * @n: how many, at least 1
 *
 * Return: 0 or -errno with none running.
 */
int mgr_workers_start(struct mgr *m, u32 n)
{
	int err = mgr_log_start(m);

	err = err ?: mgr_tasks_start(&m->tasks, n);
	if (err)
		mgr_log_stop(m);
	return err;
}

/* Ends them after all that was begun is done. Fine when they were never started. */
void mgr_workers_stop(struct mgr *m)
{
	mgr_tasks_stop(&m->tasks);
	mgr_log_stop(m);
}

static int mgr_session_check(struct pvfs_server *srv, u64 session, const u8 *ticket)
{
	struct mgr *m = pvfs_server_arg(srv);
	struct mgr_session *s;
	bool its;

	if (!session)
		return 0;
	its = !ticket || pvfs_ticket_check(&m->server_key, m->uuid, session, ticket);
	/* Of a client that it is not it is no sign of life. */
	s = its ? mgr_session_lookup(m, session) : mgr_session_peek(m, session);
	if (!s)
		return -ESTALE;
	mgr_session_put(s);
	return its ? 0 : -EPERM;
}

/* ---- counters ---- */

static unsigned long long value(atomic_ullong *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static int count_queues(struct mgr_op *op, void *arg)
{
	u64 *n = arg;
	int err;

	err = mgr_count_table(op, MDB_REAP, 100000, &n[0]);
	err = err ?: mgr_count_table(op, MDB_ORPHAN, 100000, &n[1]);
	return err ?: mgr_count_table(op, MDB_TRIM, 100000, &n[2]);
}

/**
 * mgr_stats - the manager's part of the STATS answer
 * @f: gets ",\"mgr\":{...},\"db\":{...}" and the iods' table
 */
void mgr_stats(struct mgr *m, FILE *f)
{
	unsigned int i, first = 1;
	u64 n[3] = { 0 };
	bool walk;
	u32 left;

	mgr_bg_do(m, count_queues, n);
	left = mgr_settle_left(m, &walk);
	pthread_rwlock_rdlock(&m->sessions.lock);
	fprintf(f, ",\"mgr\":{\"sessions\":%u", m->sessions.n);
	pthread_rwlock_unlock(&m->sessions.lock);
	fprintf(f,
		",\"open_files\":%llu,\"files\":%llu,\"reap_queue\":%llu,\"orphans\":%llu"
		",\"trims_pending\":%llu,\"uncertain\":{\"left\":%u,\"walk\":%s,\"settled\":%llu}",
		value(&m->opens.files), (unsigned long long)mgr_files(m), (unsigned long long)n[0],
		(unsigned long long)n[1],
		(unsigned long long)n[2], left, walk ? "true" : "false", value(&m->settle.settled));
	fprintf(f,
		",\"retries\":%llu,\"restarts\":%llu,\"replays\":%llu,\"offloaded\":%llu"
		",\"glimpses\":%llu"
		",\"trims\":%llu,\"reaped\":%llu,\"evicted\":%llu,\"grace\":%s",
		value(&m->count.retries), value(&m->count.restarts), value(&m->count.replays),
		value(&m->count.offloaded), value(&m->count.glimpses), value(&m->count.trims),
		value(&m->count.reaped), value(&m->count.evicted), mgr_in_grace(m) ? "true" :
		"false");
	fprintf(f,
		",\"grace_waits\":%llu,\"tasks\":{\"parked\":%u,\"most\":%u,\"parks\":%llu}"
		",\"log_line\":{\"flushes\":%llu,\"released\":%llu,\"most\":%llu}",
		value(&m->grace.parked), atomic_load(&m->tasks.now), atomic_load(&m->tasks.most), value(&m->tasks.parked),
		value(&m->log.flushes), value(&m->log.released), value(&m->log.most));
	pthread_mutex_lock(&m->locks.lock);
	n[0] = m->locks.count;
	pthread_mutex_unlock(&m->locks.lock);
	fprintf(f,
		",\"locks\":{\"now\":%llu,\"granted\":%llu,\"queued\":%llu,\"told\":%llu"
		",\"cancelled\":%llu,\"deadlocks\":%llu,\"refused\":%llu,\"grace\":%s}",
		(unsigned long long)n[0], value(&m->locks.granted), value(&m->locks.queued),
		value(&m->locks.told), value(&m->locks.cancelled), value(&m->locks.deadlocks),
		value(&m->locks.refused), mgr_locks_in_grace(m) ? "true" : "false");
	fprintf(f,
		",\"leases\":{\"now\":%u,\"granted\":%llu,\"refused\":%llu,\"recalled\":%llu"
		",\"expired\":%llu,\"write\":%u,\"write_granted\":%llu,\"write_recalled\":%llu"
		",\"write_settled\":%llu,\"yielded\":%llu,\"parked\":%llu,\"grace\":%s}",
		atomic_load(&m->leases.count), value(&m->leases.granted),
		value(&m->leases.refused), value(&m->recalls.recalled), value(&m->recalls.expired),
		atomic_load(&m->leases.writes), value(&m->leases.write_granted),
		value(&m->recalls.write_recalled), value(&m->recalls.write_settled),
		value(&m->recalls.yielded), value(&m->recalls.parked), mgr_leases_in_grace(m) ? "true" : "false");
	fprintf(f, ",\"handled\":{");
	for (i = 0; i < PVFS_OP_LIMIT; i++) {
		if (!value(&m->count.op[i]))
			continue;
		fprintf(f, "%s\"%s\":{\"n\":%llu,\"errors\":%llu}", first ? "" : ",",
			handlers[i].name,
			value(&m->count.op[i]), value(&m->count.op_err[i]));
		first = 0;
	}
	fprintf(f, "}},");
	mdb_enter(m->db);
	mdb_stats(m->db, f);
	mdb_leave(m->db);
	if (m->iod_ops->stats)
		m->iod_ops->stats(m->iod_arg, f);
}

static void mgr_server_stats(struct pvfs_server *s, FILE *f)
{
	mgr_stats(pvfs_server_arg(s), f);
}

const struct pvfs_server_ops mgr_server_ops = {
	.dispatch = mgr_dispatch,
	.session_check = mgr_session_check,
	.stats = mgr_server_stats,
};
