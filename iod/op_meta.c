// SPDX-License-Identifier: GPL-2.0
/*
 * op_meta.c - what is done to a datafile beside reading and writing it.
 *
 *   operation   needs        a datafile that does not exist
 *   FSYNC       any right    is synced
 *   HOLD        server key   is held as well: what would make it waits
 *   TRIM        server key   is made, unless it is to be empty; durable when answered
 *   FILL        server key   is made of the payload; one that does exist stays as it is
 *   GLIMPSE     server key   is all 0
 *   REMOVE      server key   is removed, and will not come back; durable when answered
 *   EVICT       server key   -
 *   IOD_STATFS  server key   -
 *
 * All may come twice (the mgr replays after a crash) and mean the same then. The mgr forgets a TRIM
 * or REMOVE that was answered: it must outlast the machine's crash.
 */
#include "iod.h"
#include "../common/log.h"
#include <stdlib.h>

void iod_op_fsync(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_fsync_req req;
	struct pvfs_fsync_rep rep;
	struct iod_fdent *e;
	u8 body[16];
	int err, n;

	err = pvfs_fsync_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	err = iod_caps_check(iod->caps, call->peer->session, &req.fid, &req.cap,
			     PVFS_CAP_READ | PVFS_CAP_WRITE);
	if (err) {
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "%s (%s): FSYNC tag %u ino %llu: no right to do this",
				 call->peer->addr, call->peer->host, call->head.tag,
				 (unsigned long long)req.fid.ino);
		goto fail;
	}
	err = iod_fds_get(iod->files, &req.fid, false, &e);
	if (!err) {
		err = iod_sync(iod, e, req.flags & PVFS_FS_DATASYNC);
		iod_fds_put(e);
	} else if (err == -ENOENT || err == -ESTALE) {
		err = 0;	/* nothing was written to it, or nobody will miss it */
	}
	if (err)
		goto fail;
	rep.verifier = iod_verifier(iod);
	n = pvfs_fsync_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
	return;
fail:
	iod_fail(call, err);
}

void iod_op_hold(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_hold_req req;
	int err;

	err = pvfs_hold_req_decode(&req, call->body, call->head.body_len);
	err = err ?: iod_hold(iod->holds, &req.fid, req.ms);
	iod_fail(call, err);
}

/*
 * TRIM. The mgr does not wait for one for ever: it sends another one, when that was answered others
 * write behind the cut, and only then may the disk let the first one go on. So they are ordered as
 * they came: one that is done puts an end to those of its datafile that began before it.
 */

/* Ends the datafile there, or that it has none. Call with its cut_lock. Return: 0 or -errno. */
static int cut(struct iod *iod, struct iod_trim *t, struct iod_fdent *e)
{
	struct iod_trim *older;
	bool over;
	int err;

	pthread_mutex_lock(&iod->trim_lock);
	over = t->over;
	pthread_mutex_unlock(&iod->trim_lock);
	if (over)
		return -EAGAIN;
	err = e ? iod->store->ops->truncate(iod->store, &e->file, t->size) : 0;
	if (err)
		return err;
	pthread_mutex_lock(&iod->trim_lock);
	for (older = LIST_NEXT(t, link); older; older = LIST_NEXT(older, link))
		if (older->fid.ino == t->fid.ino && older->fid.gen == t->fid.gen)
			older->over = true;
	pthread_mutex_unlock(&iod->trim_lock);
	return 0;
}

static void trim_now(struct iod *iod, struct pvfs_call *call)
{
	pthread_mutex_t *lock;
	struct iod_fdent *e = NULL;
	struct iod_trim *t;
	bool over;
	int err;

	pthread_mutex_lock(&iod->trim_lock);
	LIST_FOREACH(t, &iod->trims, link)
		if (t->call == call)
			break;
	pthread_mutex_unlock(&iod->trim_lock);
	err = iod_fds_get(iod->files, &t->fid, t->size > 0, &e);
	if (!t->size && (err == -ENOENT || err == -ESTALE))
		err = 0;
	if (!err) {
		lock = &iod->cut_lock[t->fid.ino % IOD_SYNC_LOCKS];
		pthread_mutex_lock(lock);
		err = cut(iod, t, e);
		pthread_mutex_unlock(lock);
	}
	/* Also when it had that size: it may have been cut by one that was not answered. */
	if (e) {
		err = err ?: iod_sync(iod, e, false);
		iod_fds_put(e);
	}
	pthread_mutex_lock(&iod->trim_lock);
	LIST_REMOVE(t, link);
	over = t->over;
	pthread_mutex_unlock(&iod->trim_lock);
	if (err && err != -ESTALE && !over)
		pvfs_log_limited(PVFS_LOG_ERROR, "TRIM of ino %llu to %llu: %s",
				 (unsigned long long)t->fid.ino,
				 (unsigned long long)t->size, strerror(-err));
	/* What is held by now waits for a later one. */
	if (!over)
		iod_hold_end(iod->holds, &t->fid);
	free(t);
	iod_fail(call, err);
}

/*
 * In the order in which they came, on the thread that reads the connection. trim_now() frees what is noted
 * here, and always runs: a server's call is of no session that could be evicted.
 */
void iod_op_trim(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_trim_req req;
	struct iod_trim *t = NULL;
	int err;

	err = pvfs_trim_req_decode(&req, call->body, call->head.body_len);
	if (!err && req.size > PVFS_FILE_MAX)
		err = -EFBIG;
	if (!err) {
		t = malloc(sizeof(*t));
		err = t ? 0 : -ENOMEM;
	}
	if (err) {
		iod_fail(call, err);
		return;
	}
	*t = (struct iod_trim){ .call = call, .fid = req.fid, .size = req.size };
	pthread_mutex_lock(&iod->trim_lock);
	LIST_INSERT_HEAD(&iod->trims, t, link);
	pthread_mutex_unlock(&iod->trim_lock);
	iod_hand_over(iod, call, trim_now);
}

void iod_op_fill(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_fill_req req;
	int err;

	err = pvfs_fill_req_decode(&req, call->body, call->head.body_len);
	if (!err && !call->head.payload_len)
		err = -EINVAL;
	if (!err) {
		err = iod_fds_fill(iod->files, &req.fid, call->payload, call->head.payload_len);
		if (err)
			pvfs_log_limited(PVFS_LOG_ERROR, "FILL of ino %llu with %u bytes: %s",
					 (unsigned long long)req.fid.ino, call->head.payload_len,
					 strerror(-err));
	}
	iod_fail(call, err);
}

void iod_op_glimpse(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_glimpse_req req;
	struct pvfs_glimpse_rep rep = { 0 };
	struct iod_stat st;
	struct iod_fdent *e;
	u8 body[64];
	int err, n;

	err = pvfs_glimpse_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	/* Not into the cache if it is closed: looking at many must not close what is in use. */
	e = iod_fds_lookup(iod->files, &req.fid);
	err = iod->store->ops->stat(iod->store, &req.fid, e ? &e->file : NULL, &st);
	if (!err)
		rep.wtime = iod_fds_wtime(e, &st.mtime);
	if (e)
		iod_fds_put(e);
	if (!err) {
		rep.size = st.size;
		rep.blocks = st.blocks;
	} else if (err != -ENOENT) {
		pvfs_log_limited(PVFS_LOG_ERROR, "GLIMPSE of ino %llu: %s",
				 (unsigned long long)req.fid.ino,
				 strerror(-err));
		goto fail;
	}
	n = pvfs_glimpse_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
	return;
fail:
	iod_fail(call, err);
}

void iod_op_evict(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_evict_req req;
	int err;

	err = pvfs_evict_req_decode(&req, call->body, call->head.body_len);
	if (!err && !req.session)
		err = -EINVAL;
	if (err)
		iod_fail(call, err);
	else
		iod_evict(iod->evictor, call, req.session);
}

void iod_op_remove(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_remove_req req;
	int err;

	err = pvfs_remove_req_decode(&req, call->body, call->head.body_len);
	if (!err) {
		err = iod_fds_remove(iod->files, &req.fid);
		if (err)
			pvfs_log_limited(PVFS_LOG_ERROR, "REMOVE of ino %llu: %s",
					 (unsigned long long)req.fid.ino, strerror(-err));
	}
	if (err)
		iod_fail(call, err);
	else
		iod_removed(iod, call, &req.fid);
}

void iod_op_iod_statfs(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_iod_statfs_req req;
	struct pvfs_iod_statfs_rep rep;
	u8 body[64];
	int err, n;

	err = pvfs_iod_statfs_req_decode(&req, call->body, call->head.body_len);
	if (!err)
		err = iod->store->ops->statfs(iod->store, &rep);
	if (err) {
		iod_fail(call, err);
		return;
	}
	n = pvfs_iod_statfs_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
}
