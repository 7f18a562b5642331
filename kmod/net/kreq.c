// SPDX-License-Identifier: GPL-2.0
/*
 * kreq.c - the life of a request: memory, references, states, waiting, giving up.
 *
 * Who holds a reference: the owner, from pvfs_req_alloc() to pvfs_req_put(); the lower half, from
 * pvfs_req_submit() to pvfs_req_complete() or, when the owner left earlier, to pvfs_req_forget().
 *
 * The number of requests that a volume has is bounded by its `room'; who wants one more sleeps
 * until one is freed. What gives something back is never behind that bound, nor stopped by a kill: see
 * kreq_unbounded().
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "conn.h"
#include "trace.h"

#define POOL_MAX 2048		/* requests in existence, of a volume */
#define POOL_RESERVED 16	/* ready when memory is short */

static struct kmem_cache *req_cache;

int pvfs_kreq_init(void)
{
	req_cache = KMEM_CACHE(pvfs_request, SLAB_HWCACHE_ALIGN);
	return req_cache ? 0 : -ENOMEM;
}

void pvfs_kreq_exit(void)
{
	kmem_cache_destroy(req_cache);
}

int pvfs_kreq_room_init(struct pvfs_volume *vol)
{
	atomic_set(&vol->room.requests, POOL_MAX);
	init_waitqueue_head(&vol->room.requests_wait);
	vol->room.reqs = mempool_create_slab_pool(POOL_RESERVED, req_cache);
	return vol->room.reqs ? 0 : -ENOMEM;
}

void pvfs_kreq_room_fini(struct pvfs_volume *vol)
{
	mempool_destroy(vol->room.reqs);
}

/*
 * Closes, reports, locks, heartbeat and recovery. A close that were lost would keep the file open at the
 * mgr; there are at most as many of them as files were open. Who gives up a lease reports what was written
 * for others, who may be what all else waits for. Of locks there are at most as many as
 * tasks ask for one, and a few that were left.
 */
static bool kreq_unbounded(enum pvfs_op op)
{
	switch (op) {
	case PVFS_OP_CLOSE:
	case PVFS_OP_REPORT:
	case PVFS_OP_LOCK:
	case PVFS_OP_LOCK_CANCEL:
	case PVFS_OP_RECLAIM:
	case PVFS_OP_RECLAIM_DONE:
	case PVFS_OP_SESSION_OPEN:
	case PVFS_OP_SESSION_RENEW:
	case PVFS_OP_SESSION_CLOSE:
		return true;
	default:
		return false;
	}
}

static struct pvfs_request *kreq_alloc(struct pvfs_server *server, enum pvfs_op op, u32 body_room, u16 flags)
{
	struct pvfs_room *room = &server->vol->room;
	struct pvfs_request *req;
	int err;

	if (kreq_unbounded(op))
		atomic_dec(&room->requests);
	else if (!(flags & PVFS_RF_GIVES) &&
		 pvfs_wait_event(room->requests_wait, atomic_dec_if_positive(&room->requests) >= 0))
		return ERR_PTR(-EINTR);
	req = mempool_alloc(room->reqs, GFP_NOFS);
	/* Not zeroed whole: the inline buffers are two thirds of it. */
	memset(req, 0, offsetof(struct pvfs_request, inline_body));
	req->op = op;
	req->flags = flags;
	req->server = server;
	req->body = req->inline_body;
	req->body_room = PVFS_REQ_BODY;
	req->rep = req->inline_rep;
	req->rep_room = PVFS_REQ_REP;
	req->err = -EIO;
	refcount_set(&req->ref, 1);
	INIT_LIST_HEAD(&req->link);
	init_waitqueue_head(&req->wait);
	if (body_room > PVFS_REQ_BODY) {
		req->body = kmalloc(body_room, flags & PVFS_RF_GIVES ? GFP_NOFS | __GFP_NORETRY | __GFP_NOWARN : GFP_NOFS);
		req->body_room = body_room;
		if (!req->body) {
			err = -ENOMEM;
			goto out_put;
		}
	}
	if (pvfs_op_info(op)->flags & PVFS_OPF_ONCE) {
		err = pvfs_slot_get(server->vol, req);
		if (err)
			goto out_put;
	}
	return req;

out_put:
	pvfs_req_put(req);
	return ERR_PTR(err);
}

struct pvfs_request *pvfs_req_alloc(struct pvfs_server *server, enum pvfs_op op, u32 body_room)
{
	return kreq_alloc(server, op, body_room, 0);
}

/*
 * PVFS_RF_GIVES: what has all else at this end for its bound can't hold it up. To the mgr there are a few
 * of a file at most, to the iods as many as io.c has permits for.
 */
struct pvfs_request *pvfs_req_alloc_giving(struct pvfs_server *server, enum pvfs_op op, u32 body_room)
{
	return kreq_alloc(server, op, body_room, PVFS_RF_GIVES);
}

void pvfs_req_put(struct pvfs_request *req)
{
	struct pvfs_room *room = &req->server->vol->room;
	bool gives;

	if (!refcount_dec_and_test(&req->ref))
		return;
	if (req->has_slot)	/* made, but never submitted */
		pvfs_slot_put(req->server->vol, req);
	if (req->body != req->inline_body)
		kfree(req->body);
	gives = req->flags & PVFS_RF_GIVES;
	mempool_free(req, room->reqs);
	if (gives)
		return;
	atomic_inc(&room->requests);
	wake_up(&room->requests_wait);
}

static bool kreq_may_move(enum pvfs_req_state from, enum pvfs_req_state to)
{
	switch (from) {
	case PVFS_REQ_NEW:
		return to == PVFS_REQ_QUEUED || to == PVFS_REQ_DONE;
	case PVFS_REQ_QUEUED:
		return to == PVFS_REQ_POSTED || to == PVFS_REQ_DONE;
	case PVFS_REQ_POSTED:
		return to == PVFS_REQ_QUEUED || to == PVFS_REQ_DONE;
	default:
		return false;
	}
}

void pvfs_req_set_state(struct pvfs_request *req, enum pvfs_req_state state)
{
	WARN_ONCE(!kreq_may_move(req->state, state), "pvfs: %s moves from state %d to %d\n",
		  pvfs_op_name(req->op), req->state, state);
	req->state = state;
	switch (state) {
	case PVFS_REQ_QUEUED:
		if (!req->t_submit) {
			req->t_submit = ktime_get_ns();
			trace_pvfs_submit(req);
		}
		break;
	case PVFS_REQ_POSTED:
		req->t_post = ktime_get_ns();
		trace_pvfs_post(req);
		break;
	default:
		break;
	}
}

void pvfs_req_submit(struct pvfs_request *req)
{
	struct pvfs_volume *vol = req->server->vol;

	if (req->flags & PVFS_RF_ASYNC)
		atomic_inc(&vol->async);
	refcount_inc(&req->ref);
	pvfs_conn_submit(req->server, req);
}

static void kreq_end(struct pvfs_request *req)
{
	struct pvfs_volume *vol = req->server->vol;

	if (req->has_slot)
		pvfs_slot_put(vol, req);
	pvfs_stats_request(vol, req, ktime_get_ns());
	trace_pvfs_done(req);
}

void pvfs_req_complete(struct pvfs_request *req, int err)
{
	struct pvfs_volume *vol = req->server->vol;

	req->err = err;
	kreq_end(req);
	if (req->flags & PVFS_RF_ASYNC) {
		if (req->done)
			req->done(req);
		pvfs_req_put(req);
		if (atomic_dec_and_test(&vol->async))
			wake_up_all(&vol->async_wait);
		return;
	}
	/* Pairs with pvfs_req_ended(). */
	smp_store_release(&req->ended, true);
	if (wq_has_sleeper(&req->wait)) {
		pvfs_count(vol, PVFS_CNT_WAKEUPS, 1);
		wake_up(&req->wait);
	}
	pvfs_req_put(req);
}

void pvfs_req_forget(struct pvfs_request *req)
{
	kreq_end(req);
	pvfs_req_put(req);
}

void pvfs_exit_hurry(void)
{
	struct sighand_struct *hand;

	if (!(current->flags & PF_EXITING))
		return;
	hand = rcu_access_pointer(current->sighand);	/* our own: it stays */
	/* send_sig() would drop it, as the process is dying already. */
	spin_lock_irq(&hand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	set_tsk_thread_flag(current, TIF_SIGPENDING);
	spin_unlock_irq(&hand->siglock);
}

int pvfs_req_wait(struct pvfs_request *req)
{
	struct pvfs_opts *o = &req->server->vol->opts;
	long most = o->soft ? msecs_to_jiffies(o->timeo_ms) : MAX_SCHEDULE_TIMEOUT, left;

	left = pvfs_patience_left(pvfs_conn_wait(req, pvfs_patience(most)), most);
	if (left > 0)
		return req->err;
	if (!left)
		pr_warn_ratelimited("%s: %s not answered within %u ms, failed (soft)\n",
				    req->server->name, pvfs_op_name(req->op), o->timeo_ms);
	pvfs_conn_abandon(req, left ? -EINTR : -EIO);
	/* It may have been completed before it could be abandoned: then the result stands. */
	return req->err;
}
