// SPDX-License-Identifier: LGPL-2.1
/*
 * session.c - the session with the mgr: requests in slots, the heartbeat, and what to do when the
 * mgr was restarted, a connection was lost, or the session itself is gone.
 *
 * One thread per volume does the heartbeat and all recovery, with plain blocking calls; the
 * transport's callbacks only leave it a note. Recovery is RECLAIM of everything that is open, with
 * exact counts. So that the counts are exact, no OPEN, CREATE or CLOSE may be under way meanwhile:
 * lib_session_opens_begin() and _end() are that gate. It is also run after a connection was merely
 * lost, because an OPEN or CLOSE that was sent again may have been counted twice.
 */
#include "lib.h"
#include <stdlib.h>
#include <time.h>

#define CALL_MS		5000		/* heartbeat and recovery: one attempt */
#define RETRY_MS	500		/* pause after one that failed */
#define AGAIN_TELL_MS	5000		/* of EAGAIN, until it is said */

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/*
 * Waits on fs->cond until it is signalled or @deadline (now_ms()'s clock) has come. Return: false
 * when it has.
 */
static bool wait_until(struct pvfs_fs *fs, u64 deadline)
{
	struct timespec ts = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000 };

	return pthread_cond_timedwait(&fs->cond, &fs->lock, &ts) != ETIMEDOUT;
}

/* ---------------------------------------------------------------- one call */

/**
 * lib_fs_rpc_error - a request's error as the caller of the library should see it
 * @err: 0 or -errno of a struct pvfs_rpc
 */
int lib_fs_rpc_error(struct pvfs_fs *fs, int err)
{
	if (err == -ENOTCONN || err == -ECANCELED)
		return -EIO;
	return err;
}

/* A session's slot, and the next sequence number in it. Waits for one to be free. */
static void slot_get(struct pvfs_fs *fs, u16 *ret_slot, u32 *ret_seq)
{
	u32 i;

	pthread_mutex_lock(&fs->lock);
	for (;;) {
		for (i = 0; i < fs->nslots; i++) {
			if (!(fs->slot_busy[i / 64] & (1ull << (i % 64))))
				break;
		}
		if (i < fs->nslots)
			break;
		pthread_cond_wait(&fs->cond, &fs->lock);
	}
	fs->slot_busy[i / 64] |= 1ull << (i % 64);
	*ret_slot = i;
	*ret_seq = ++fs->slot_seq[i];
	pthread_mutex_unlock(&fs->lock);
}

static void slot_put(struct pvfs_fs *fs, u16 slot)
{
	pthread_mutex_lock(&fs->lock);
	fs->slot_busy[slot / 64] &= ~(1ull << (slot % 64));
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
}

/* While there is no session, requests that need one would be refused: hold them. */
static int session_wait(struct pvfs_fs *fs)
{
	u64 deadline = fs->soft ? now_ms() + fs->timeo_ms : 0;
	int err = 0;

	pthread_mutex_lock(&fs->lock);
	while (fs->lost && !fs->stopping && !err) {
		if (!deadline)
			pthread_cond_wait(&fs->cond, &fs->lock);
		else if (!wait_until(fs, deadline))
			err = -ETIMEDOUT;
	}
	if (fs->stopping)
		err = -EIO;
	pthread_mutex_unlock(&fs->lock);
	return err;
}

static bool session_is(struct pvfs_fs *fs, u32 generation)
{
	bool same;

	pthread_mutex_lock(&fs->lock);
	same = !fs->lost && fs->generation == generation;
	pthread_mutex_unlock(&fs->lock);
	return same;
}

static u32 session_generation(struct pvfs_fs *fs)
{
	u32 g;

	pthread_mutex_lock(&fs->lock);
	g = fs->generation;
	pthread_mutex_unlock(&fs->lock);
	return g;
}

/**
 * lib_fs_mgr_call - one exchange with the mgr, in a slot if the operation takes effect once
 * @op: a PVFS_OP_*
 * @body: encoded request
 * @body_len: its bytes, or the encoder's error
 * @rep: room for the reply's body, @rep_room bytes
 * @ret_len: its length
 * @out: payload of the request, or NULL
 * @in: memory for the reply's payload, or NULL
 * @ret_in_len: payload bytes received; may be NULL when @in is
 *
 * Return: 0 or -errno.
 */
int lib_fs_mgr_call(struct pvfs_fs *fs, u16 op, const void *body, int body_len, void *rep,
		    u32 rep_room, u32 *ret_len, const struct iovec *out, const struct iovec *in,
		    u32 *ret_in_len)
{
	bool once = pvfs_op_info(op)->flags & PVFS_OPF_ONCE, again;
	struct pvfs_rpc rpc;
	u32 seq = 0, generation;
	u64 begun = now_ms(), deadline = fs->soft ? begun + fs->timeo_ms : UINT64_MAX;
	unsigned int pause_us = 5000;
	bool told = false;
	u16 slot = 0;
	int err;

	if (body_len < 0)
		return body_len == -EMSGSIZE ? -ENAMETOOLONG : body_len;
	if (once)
		slot_get(fs, &slot, &seq);
	do {
		err = session_wait(fs);
		if (err)
			break;
		generation = session_generation(fs);
		rpc = (struct pvfs_rpc){
			.op = op,
			.slot = slot,
			.slot_seq = seq,
			.body = body,
			.body_len = body_len,
			.out = out,
			.nout = out ? 1 : 0,
			.in = in,
			.nin = in ? 1 : 0,
			.rep = rep,
			.rep_room = rep_room,
			.timeout_ms = fs->soft ? (int)fs->timeo_ms : 0,
		};
		err = lib_fs_rpc_error(fs, pvfs_peer_call(fs->mgr, &rpc));
		again = false;
		if (err == -EAGAIN && now_ms() < deadline) {
			/*
			 * The first copy of a request that was sent again is still at work, or a
			 * truncation, or a size, waits for an iod.
			 */
			if (!told && now_ms() >= begun + AGAIN_TELL_MS) {
				pvfs_warn("libpvfs: %s waits for an I/O daemon that does not answer, still trying",
					  fs->mgr_name);
				told = true;
			}
			usleep(pause_us);
			pause_us = min(pause_us * 2, 500000u);
			again = true;
		} else if (err == -ESTALE && !session_is(fs, generation)) {
			/*
			 * It may have been the session that was stale. Whether what takes effect
			 * once did so there, nobody can say any more.
			 */
			again = !once;
			err = -EIO;
		}
	} while (again);
	if (err == -EAGAIN)
		err = -EIO;	/* soft: no longer */
	if (once)
		slot_put(fs, slot);
	if (!err) {
		*ret_len = rpc.rep_len;
		if (ret_in_len)
			*ret_in_len = rpc.in_len;
	}
	return err;
}

/*
 * ---------------------------------------------------------------- opens, closes, and the gate
 * before them
 */

/**
 * lib_session_opens_begin - an OPEN, CREATE or CLOSE is about to be sent
 *
 * Waits while recovery counts what is open. No lock may be held.
 */
void lib_session_opens_begin(struct pvfs_fs *fs)
{
	pthread_mutex_lock(&fs->lock);
	while (fs->reclaiming)
		pthread_cond_wait(&fs->cond, &fs->lock);
	fs->opens++;
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_session_opens_end - it was answered, and what is open here is counted anew
 */
void lib_session_opens_end(struct pvfs_fs *fs)
{
	pthread_mutex_lock(&fs->lock);
	if (!--fs->opens)
		pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
}

struct async_close {
	struct pvfs_fs *fs;
	struct pvfs_rpc rpc;
	u16 slot;
	u8 body[128], rep[REP_MAX];
};

static void async_close_done(struct pvfs_rpc *rpc)
{
	struct async_close *a = rpc->arg;
	struct pvfs_fs *fs = a->fs;

	slot_put(fs, a->slot);
	free(a);
	pthread_mutex_lock(&fs->lock);
	fs->async--;
	fs->opens--;
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_fs_close_async - send a CLOSE that nobody waits for
 * @req: copied
 *
 * Between lib_session_opens_begin() and the answer; the latter ends the former if 0 is returned.
 *
 * Return: 0, or -ENOMEM and nothing was sent.
 */
int lib_fs_close_async(struct pvfs_fs *fs, const struct pvfs_close_req *req)
{
	struct async_close *a = malloc(sizeof(*a));
	int n;

	if (!a)
		return -ENOMEM;
	n = pvfs_close_req_encode(req, a->body, sizeof(a->body));
	if (n < 0) {
		free(a);
		return n;
	}
	a->fs = fs;
	a->rpc = (struct pvfs_rpc){ .op = PVFS_OP_CLOSE,
				    .body = a->body,
				    .body_len = n,
				    .rep = a->rep,
				    .rep_room = sizeof(a->rep),
				    .done = async_close_done,
				    .arg = a,
				    .timeout_ms = fs->soft ? (int)fs->timeo_ms : 0 };
	pthread_mutex_lock(&fs->lock);
	while (fs->async >= ASYNC_MAX)
		pthread_cond_wait(&fs->cond, &fs->lock);
	fs->async++;
	pthread_mutex_unlock(&fs->lock);
	slot_get(fs, &a->slot, &a->rpc.slot_seq);
	a->rpc.slot = a->slot;
	pvfs_peer_submit(fs->mgr, &a->rpc);
	return 0;
}

/* ---------------------------------------------------------------- opening the session */

struct session_waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
};

static void waiter_done(struct pvfs_rpc *rpc)
{
	struct session_waiter *w = rpc->arg;

	pthread_mutex_lock(&w->lock);
	w->done = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* fs->lock held. */
static void set_lease(struct pvfs_fs *fs, u32 ms)
{
	fs->lease_ms = max(ms, 300u);
	/* The mgr must hear of us in time when it is back. */
	pvfs_peer_retry_within(fs->mgr, fs->lease_ms / 4);
}

/**
 * lib_session_open - SESSION_OPEN on channel 0, and make the session known to all connections
 * @timeout_ms: > 0
 * @table: memory for the encoded table of iods, @room bytes
 * @ret_len: bytes of it
 * @ret_niods: entries of it
 *
 * Return: 0 or -errno, as the transport gave it.
 */
int lib_session_open(struct pvfs_fs *fs, unsigned int timeout_ms, void *table, size_t room,
		     u32 *ret_len, u32 *ret_niods)
{
	struct session_waiter w = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	struct iovec in = { .iov_base = table, .iov_len = room };
	u8 body[512], rep_buf[512];
	struct pvfs_session_open_req req = { .host = PVFS_STR(fs->who) };
	struct pvfs_session_open_rep rep;
	struct pvfs_rpc rpc;
	int n, err;
	u32 i;

	memcpy(req.client, fs->client, sizeof(req.client));
	n = pvfs_session_open_req_encode(&req, body, sizeof(body));
	if (n < 0)
		return n;
	rpc = (struct pvfs_rpc){ .op = PVFS_OP_SESSION_OPEN,
				 .body = body,
				 .body_len = n,
				 .in = &in,
				 .nin = 1,
				 .rep = rep_buf,
				 .rep_room = sizeof(rep_buf),
				 .timeout_ms = timeout_ms,
				 .done = waiter_done,
				 .arg = &w };
	pvfs_peer_submit_on(fs->mgr, 0, &rpc);
	pthread_mutex_lock(&w.lock);
	while (!w.done)
		pthread_cond_wait(&w.cond, &w.lock);
	pthread_mutex_unlock(&w.lock);
	err = rpc.err ?: pvfs_session_open_rep_decode(&rep, rep_buf, rpc.rep_len);
	if (err)
		return err;
	if (!rep.session || !rep.nslots || !rep.lease_ms)
		return -EBADMSG;
	if (fs->mounted &&
	    (rep.niods != fs->niods || memcmp(rep.volume_uuid, fs->uuid, PVFS_UUID_LEN))) {
		pvfs_error("libpvfs: %s: volume '%s' is not what it was when it was mounted: mount it again",
			   fs->mgr_name, fs->volume);
		return -ESTALE;
	}
	pthread_mutex_lock(&fs->lock);
	fs->session = rep.session;
	memcpy(fs->ticket, rep.ticket, sizeof(fs->ticket));
	/* fs->epoch is what lib_session_mgr_up() was told last, which may be of a later process. */
	fs->nslots = min(rep.nslots, PVFS_SLOTS_MAX);
	set_lease(fs, rep.lease_ms);
	fs->root = rep.root;
	fs->root_layout = rep.layout;
	memcpy(fs->uuid, rep.volume_uuid, PVFS_UUID_LEN);
	fs->generation++;
	pthread_mutex_unlock(&fs->lock);
	pvfs_peer_expect(fs->mgr, fs->uuid, 0);
	pvfs_peer_set_session(fs->mgr, rep.session, rep.ticket);
	for (i = 0; i < fs->niods; i++)
		pvfs_peer_set_session(fs->iods[i].peer, rep.session, rep.ticket);
	*ret_len = rpc.in_len;
	*ret_niods = rep.niods;
	return 0;
}

/* ---------------------------------------------------------------- the transport's notes */

/**
 * lib_session_mgr_up - a connection to the mgr is up; see struct pvfs_peer_params
 *
 * On an engine thread, which it keeps while there is no session: what needs one must not go out
 * before. The answer to SESSION_OPEN comes on another thread; pvfs_mount() has made one for each
 * channel.
 */
void lib_session_mgr_up(struct pvfs_peer *p, u32 channel, const struct pvfs_auth_rep *rep)
{
	struct pvfs_fs *fs = pvfs_peer_arg(p);
	u64 bit = 1ull << (channel % 64);
	u64 *seen = &fs->channels_seen[channel % PVFS_CHANNELS_MAX / 64];

	pthread_mutex_lock(&fs->lock);
	if (fs->mounted && ((*seen & bit) || rep->epoch != fs->epoch)) {
		fs->reclaim_wanted++;
		pthread_cond_broadcast(&fs->cond);
	}
	*seen |= bit;
	fs->epoch = rep->epoch;
	while (fs->mounted && fs->lost && !fs->stopping)
		pthread_cond_wait(&fs->cond, &fs->lock);
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_session_lost - the mgr does not know our session any more
 *
 * On an engine thread.
 */
void lib_session_lost(struct pvfs_fs *fs)
{
	pthread_mutex_lock(&fs->lock);
	if (!fs->lost && fs->mounted)
		pvfs_warn("libpvfs: %s: our session %llu was ended (no sign of life within its lease?): opening a new one",
			  fs->mgr_name, (unsigned long long)fs->session);
	fs->lost = true;
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_session_doubt - an iod says that our session is gone: let the mgr be asked
 *
 * On an engine thread.
 */
void lib_session_doubt(struct pvfs_fs *fs)
{
	pthread_mutex_lock(&fs->lock);
	fs->doubt = true;
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_session_refused - did an iod refuse something because our session was another's before the
 * present one?
 * @err: what it said: EACCES for a capability, ESTALE for a connection, or anything else
 * @generation: of the session in which it was asked
 *
 * Waits, some seconds at most, for a session that is being replaced, with files reclaimed.
 *
 * Return: yes, and there is a new one: it is worth being asked again.
 */
bool lib_session_refused(struct pvfs_fs *fs, int err, u32 generation)
{
	u64 deadline = now_ms() + CALL_MS;
	bool ret;

	if (err != -EACCES && err != -ESTALE)
		return false;
	pthread_mutex_lock(&fs->lock);
	while (!fs->stopping && (fs->doubt || fs->lost || fs->reclaim_done != fs->reclaim_wanted) &&
	       wait_until(fs, deadline))
		;
	ret = fs->generation != generation;
	pthread_mutex_unlock(&fs->lock);
	return ret;
}

/* ---------------------------------------------------------------- heartbeat and recovery */

/* With fs->lock held, which is dropped meanwhile. False: to be tried again after a pause. */
static bool recover_session(struct pvfs_fs *fs)
{
	size_t room = (size_t)PVFS_IOD_MAX * 300;
	u8 *table = NULL;
	u32 len, n;
	int err = -ENOMEM;

	pthread_mutex_unlock(&fs->lock);
	table = malloc(room);
	if (table)
		err = lib_session_open(fs, CALL_MS, table, room, &len, &n);
	free(table);
	pthread_mutex_lock(&fs->lock);
	if (err) {
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "libpvfs: %s: can't open a new session: %s; trying on", fs->mgr_name,
				 err == -EAGAIN ? "it waits for something, which its log tells" :
						  strerror(-err));
		return false;
	}
	fs->lost = false;
	fs->reclaim_wanted++;
	pthread_cond_broadcast(&fs->cond);
	return true;
}

/*
 * Tells the mgr that it need not wait for more from us. One that was started after that with @epoch
 * was told only part of it, and says EAGAIN.
 */
static int reclaim_done(struct pvfs_fs *fs, u64 epoch)
{
	struct pvfs_reclaim_done_req m = { .epoch = epoch };
	u8 body[16], rep[64];
	struct pvfs_rpc rpc = { .op = PVFS_OP_RECLAIM_DONE,
				.body = body,
				.body_len = pvfs_reclaim_done_req_encode(&m, body, sizeof(body)),
				.rep = rep,
				.rep_room = sizeof(rep),
				.timeout_ms = CALL_MS };

	return pvfs_peer_call(fs->mgr, &rpc);
}

static bool recover_files(struct pvfs_fs *fs)
{
	u64 epoch;
	u32 wanted;
	int err = -EAGAIN;

	fs->reclaiming = true;
	/* What is under way is answered first; it is being sent again, as all else. */
	while (fs->opens && !fs->stopping && !fs->lost)
		pthread_cond_wait(&fs->cond, &fs->lock);
	if (!fs->stopping && !fs->lost) {
		wanted = fs->reclaim_wanted;
		epoch = fs->epoch;
		pthread_mutex_unlock(&fs->lock);
		err = lib_inodes_reclaim(fs) ?: reclaim_done(fs, epoch);
		pthread_mutex_lock(&fs->lock);
		if (!err)
			fs->reclaim_done = wanted;
	}
	fs->reclaiming = false;
	pthread_cond_broadcast(&fs->cond);
	return !err;
}

/* A SESSION_RENEW on its way; fs->lock protects the flags. */
struct renewal {
	struct pvfs_rpc rpc;
	struct pvfs_fs *fs;
	bool done, left;
	u8 rep[64];
};

static void renewal_done(struct pvfs_rpc *rpc)
{
	struct renewal *r = rpc->arg;
	struct pvfs_fs *fs = r->fs;
	bool left;

	pthread_mutex_lock(&fs->lock);
	r->done = true;
	left = r->left;
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
	if (left)
		free(r);
}

/*
 * With fs->lock held, which is dropped meanwhile. Not waited for when it turns out that the session
 * is gone: then it goes nowhere before there is a new one (lib_session_mgr_up()), which is for us
 * to see to.
 */
static void renew(struct pvfs_fs *fs)
{
	struct pvfs_session_renew_rep rep;
	struct renewal *r = calloc(1, sizeof(*r));
	u32 generation = fs->generation;
	int err;

	if (!r)
		return;		/* the next one is in time too */
	r->fs = fs;
	r->rpc = (struct pvfs_rpc){ .op = PVFS_OP_SESSION_RENEW,
				    .rep = r->rep,
				    .rep_room = sizeof(r->rep),
				    .timeout_ms = CALL_MS,
				    .done = renewal_done,
				    .arg = r };
	pthread_mutex_unlock(&fs->lock);
	pvfs_peer_submit(fs->mgr, &r->rpc);
	pthread_mutex_lock(&fs->lock);
	while (!r->done && !fs->lost)
		pthread_cond_wait(&fs->cond, &fs->lock);
	err = -ESTALE;
	if (r->done) {
		err = r->rpc.err ?: pvfs_session_renew_rep_decode(&rep, r->rep, r->rpc.rep_len);
		free(r);
	} else {
		r->left = true;
	}
	if (!err && rep.lease_ms)
		set_lease(fs, rep.lease_ms);
	if (err == -ESTALE && generation == fs->generation)
		fs->lost = true;
	/* Without an answer the doubt stays, and the mgr is asked again. */
	if (!err || err == -ESTALE) {
		fs->doubt = false;
		pthread_cond_broadcast(&fs->cond);
	}
}

static void *session_thread(void *arg)
{
	struct pvfs_fs *fs = arg;
	u64 next, pause = 0;
	bool ok;

	pthread_mutex_lock(&fs->lock);
	next = now_ms() + fs->lease_ms / 3;
	while (!fs->stopping) {
		if ((fs->lost || fs->reclaim_done != fs->reclaim_wanted) && now_ms() >= pause) {
			ok = fs->lost ? recover_session(fs) : recover_files(fs);
			if (ok)
				next = 0;	/* tells the mgr at once that we are complete */
			else
				pause = now_ms() + RETRY_MS;
			continue;
		}
		if (!fs->lost && now_ms() >= (fs->doubt ? pause : next)) {
			renew(fs);
			next = now_ms() + fs->lease_ms / 3;
			pause = fs->doubt ? now_ms() + RETRY_MS : pause;
			continue;
		}
		if (fs->lost || fs->doubt)
			wait_until(fs, pause);
		else
			wait_until(fs, fs->reclaim_done != fs->reclaim_wanted ? min(next, pause) :
										next);
	}
	pthread_mutex_unlock(&fs->lock);
	return NULL;
}

/**
 * lib_session_start - from now on the session is kept alive and recovered
 */
int lib_session_start(struct pvfs_fs *fs)
{
	int err;

	pthread_mutex_lock(&fs->lock);
	fs->mounted = true;
	pthread_mutex_unlock(&fs->lock);
	err = pvfs_thread_start(&fs->thread, session_thread, fs);
	fs->have_thread = !err;
	return err;
}

/**
 * lib_session_stop - wait for what nobody waited for, and tell the mgr that we are gone
 *
 * Bounded by the mount's time-out.
 */
void lib_session_stop(struct pvfs_fs *fs)
{
	u64 deadline = now_ms() + fs->mount_timeout_ms;
	u8 rep[64];
	struct pvfs_rpc rpc = { .op = PVFS_OP_SESSION_CLOSE, .rep = rep, .rep_room = sizeof(rep),
				.timeout_ms = fs->mount_timeout_ms };

	pthread_mutex_lock(&fs->lock);
	while (fs->async && wait_until(fs, deadline))
		;
	fs->stopping = true;
	pthread_cond_broadcast(&fs->cond);
	pthread_mutex_unlock(&fs->lock);
	if (fs->have_thread)
		pthread_join(fs->thread, NULL);
	if (!fs->lost && pvfs_peer_state(fs->mgr, NULL, NULL, 0) == PVFS_PEER_UP)
		pvfs_peer_call(fs->mgr, &rpc);
}
