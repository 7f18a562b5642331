// SPDX-License-Identifier: GPL-2.0
/*
 * volume.c - a mounted volume: opening and closing it, its session with the mgr, heartbeat, and
 * coming back after the mgr or the session was lost.
 *
 * Recovery: while vol->recovering is set only RECOVERY requests go to the mgr; they use channel 0.
 * It is set when a connection finds a mgr with another epoch (it restarted: our opens must be told
 * again) or no session of ours (it expired: a new one is opened first). recover_work does both and
 * clears it.
 */
#include <linux/bitmap.h>
#include <linux/inet.h>
#include <linux/nsproxy.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include "conn.h"

#define SLOTS_KEPT 8u		/* of a session: see volume_slot_try() */
#define OVERTAKES (HZ / 10)	/* how long a reply may be on its way beside later ones */
#define CLOSE_WAIT_MS 10000	/* for closes that are on their way at unmount */
#define LEAVE_MS msecs_to_jiffies(200)	/* that unmounting leaves to recovery at a time */
#define IODTAB_MAX (512u << 10)	/* bytes of the iod table */
#define LEASE_MS_MIN 1000		/* any mgr has */
#define NCONNECT_DEFAULT 8	/* at most; never more than there are kpvfsd threads */

/* ---------------------------------------------------------------- slots */

/* Of the slots some are kept for what ends others' waiting, as of a connection's credits: see conn_may_send(). */
static int volume_slot_try(struct pvfs_volume *vol, struct pvfs_request *req)
{
	u32 n, all = vol->nslots;

	if (READ_ONCE(vol->dead))
		return -ESHUTDOWN;
	if (req->op != PVFS_OP_CLOSE && !(req->flags & PVFS_RF_GIVES))
		all -= min_t(u32, SLOTS_KEPT, all / 2);
	spin_lock(&vol->lock);
	n = find_first_zero_bit(vol->slot_busy, all);
	if (n < all) {
		__set_bit(n, vol->slot_busy);
		req->slot = n;
		req->slot_seq = ++vol->slot_seq[n];
		req->has_slot = true;
	}
	spin_unlock(&vol->lock);
	return n < all ? 0 : -EAGAIN;
}

int pvfs_slot_get(struct pvfs_volume *vol, struct pvfs_request *req)
{
	int err = volume_slot_try(vol, req), killed;

	if (err != -EAGAIN)
		return err;
	killed = pvfs_wait_event(vol->slot_wait, (err = volume_slot_try(vol, req)) != -EAGAIN);
	if (!killed)
		return err;
	/*
	 * A close is made by dying tasks too, and a little patience saves the mgr from thinking the
	 * file open.
	 */
	if (req->op != PVFS_OP_CLOSE)
		return -EINTR;
	wait_event_idle_timeout(vol->slot_wait, (err = volume_slot_try(vol, req)) != -EAGAIN,
				5 * HZ);
	return err == -EAGAIN ? -EINTR : err;
}

void pvfs_slot_put(struct pvfs_volume *vol, struct pvfs_request *req)
{
	spin_lock(&vol->lock);
	__clear_bit(req->slot, vol->slot_busy);
	/* Never sent: the number was not used up, but a gap does no harm. */
	spin_unlock(&vol->lock);
	req->has_slot = false;
	if (wq_has_sleeper(&vol->slot_wait))
		wake_up(&vol->slot_wait);
}

/* ---------------------------------------------------------------- session */

u64 pvfs_boot_ns(void)
{
	return ktime_get_coarse_boottime_ns();
}

/* The mgr has answered what renews the session, and was asked at @asked: as pvfs_boot_ns(). */
static void volume_session_renewed(struct pvfs_volume *vol, u64 asked)
{
	WRITE_ONCE(vol->renewed, asked);
}

/* Memory that a reply's payload can land in, page by page. */
struct landing {
	void *mem;
	struct bio_vec *bv;
	unsigned int nbv;
};

static void volume_landing_free(struct landing *l)
{
	vfree(l->mem);
	kfree(l->bv);
}

static int volume_landing_alloc(struct landing *l, u32 bytes)
{
	unsigned int i;

	l->nbv = DIV_ROUND_UP(bytes, PAGE_SIZE);
	l->mem = vmalloc(l->nbv * PAGE_SIZE);
	l->bv = kcalloc(l->nbv, sizeof(*l->bv), GFP_KERNEL);
	if (!l->mem || !l->bv) {
		volume_landing_free(l);
		return -ENOMEM;
	}
	for (i = 0; i < l->nbv; i++)
		l->bv[i] = (struct bio_vec){
			.bv_page = vmalloc_to_page(l->mem + i * PAGE_SIZE),
			.bv_len = PAGE_SIZE,
		};
	return 0;
}

/*
 * SESSION_OPEN; the iod table is left in @table, @ret_len bytes of it. @ret_on: which of channel
 * 0's connections has the session now.
 */
static int volume_session_open(struct pvfs_volume *vol, struct pvfs_session_open_rep *ret,
			       struct landing *table, u32 *ret_len, u64 *ret_on)
{
	char who[sizeof(vol->client_host) + 16];
	struct pvfs_session_open_req m = {
		.flags = vol->opts.lease ? PVFS_SO_LEASES : 0,
	};
	struct pvfs_request *req;
	u64 asked;
	int err;

	/* For the manager's log: host, user and program. */
	snprintf(who, sizeof(who), "%s, the kernel", vol->client_host);
	m.host = PVFS_STR(who);
	memcpy(m.client, vol->client_id, sizeof(m.client));
	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SESSION_OPEN, 0);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags = PVFS_RF_RECOVERY;
	req->body_len = pvfs_session_open_req_encode(&m, req->body, req->body_room);
	req->bv = table->bv;
	req->nbv = table->nbv;
	req->bv_len = table->nbv * PAGE_SIZE;
	asked = pvfs_boot_ns();
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_session_open_rep_decode(ret, req->rep, req->rep_len);
	if (!err && (!ret->session || !ret->nslots || ret->nslots > PVFS_SLOTS_MAX || !ret->niods ||
		     ret->niods > PVFS_IOD_MAX || ret->lease_ms < LEASE_MS_MIN))
		err = -EBADMSG;
	if (!err)
		volume_session_renewed(vol, asked);
	*ret_len = req->in_len;
	*ret_on = req->connect;
	pvfs_req_put(req);
	return err;
}

static void volume_set_session(struct pvfs_volume *vol, const struct pvfs_session_open_rep *rep,
			       u64 opened)
{
	spin_lock(&vol->lock);
	vol->session = rep->session;
	memcpy(vol->ticket, rep->ticket, sizeof(vol->ticket));
	vol->epoch = rep->epoch;
	spin_unlock(&vol->lock);
	vol->ops->leases_void(vol);
	pvfs_server_session(vol->mgr, rep->session, opened);
}

/* vol->lock held: nobody finds the new epoch, or no session, and recovery not begun. */
static void volume_start_recovery(struct pvfs_volume *vol)
{
	WRITE_ONCE(vol->recoveries, vol->recoveries + 1);
	WRITE_ONCE(vol->recovering, true);
	queue_work(vol->recover_wq, &vol->recover_work);
}

void pvfs_volume_mgr_up(struct pvfs_volume *vol, u64 epoch)
{
	bool other;

	spin_lock(&vol->lock);
	other = vol->session && vol->epoch != epoch && !vol->dead;
	if (other) {
		vol->epoch = epoch;
		volume_start_recovery(vol);
	}
	spin_unlock(&vol->lock);
	if (other)
		vol->ops->leases_void(vol);
}

void pvfs_volume_session_lost(struct pvfs_volume *vol, u64 session)
{
	bool ours;

	spin_lock(&vol->lock);
	ours = session && session == vol->session && !vol->dead;
	if (ours) {
		vol->session = 0;	/* channel 0 comes back without one */
		volume_start_recovery(vol);
	}
	spin_unlock(&vol->lock);
	if (ours) {
		vol->ops->leases_void(vol);
		pr_warn("%s: session expired at the mgr, opening a new one\n", vol->opts.volume);
	}
}

static int volume_new_session(struct pvfs_volume *vol)
{
	struct pvfs_session_open_rep rep;
	struct landing table;
	u64 opened;
	u32 i, len;
	int err;

	err = volume_landing_alloc(&table, IODTAB_MAX);
	if (err)
		return err;
	/* What is left of the dead session's requests ends before another is opened. */
	pvfs_server_session(vol->mgr, 0, 0);
	err = volume_session_open(vol, &rep, &table, &len, &opened);
	volume_landing_free(&table);
	if (err)
		return err;
	if (rep.niods != vol->niods || rep.nslots < vol->nslots ||
	    memcmp(rep.volume_uuid, vol->uuid, sizeof(vol->uuid))) {
		pr_err("%s: the mgr serves another volume now; unmount\n", vol->opts.volume);
		return -EPROTO;
	}
	WRITE_ONCE(vol->lease_ms, rep.lease_ms);
	volume_set_session(vol, &rep, opened);
	for (i = 0; i < vol->niods; i++)
		pvfs_server_reconnect(vol->iods[i]);
	return 0;
}

/*
 * A mgr that was started anew may have another lease time, and what it promises lasts as long as
 * that.
 */
static int volume_learn_lease(struct pvfs_volume *vol)
{
	struct pvfs_session_renew_req m = {};
	struct pvfs_session_renew_rep rep;
	struct pvfs_request *req;
	u64 asked;
	int err;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SESSION_RENEW, 0);
	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags = PVFS_RF_RECOVERY;
	req->body_len = pvfs_session_renew_req_encode(&m, req->body, req->body_room);
	asked = pvfs_boot_ns();
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_session_renew_rep_decode(&rep, req->rep, req->rep_len);
	pvfs_req_put(req);
	if (!err && rep.lease_ms < LEASE_MS_MIN)
		err = -EBADMSG;
	if (!err && rep.lease_ms != vol->lease_ms) {
		WRITE_ONCE(vol->lease_ms, rep.lease_ms);
		vol->ops->leases_void(vol);
	}
	if (!err)
		volume_session_renewed(vol, asked);
	return err;
}

/* May recovery hold inodes? Until volume_walk_end(). */
static bool volume_walk_begin(struct pvfs_volume *vol)
{
	bool may;

	spin_lock(&vol->lock);
	may = !vol->leaving;
	vol->walking = may;
	spin_unlock(&vol->lock);
	return may;
}

static void volume_walk_end(struct pvfs_volume *vol)
{
	spin_lock(&vol->lock);
	vol->walking = false;
	/* Under the lock: who waits for it goes on to free the volume. */
	wake_up_all(&vol->async_wait);
	spin_unlock(&vol->lock);
}

/*
 * Tells the mgr with that epoch what is open and locked. Another one may have come meanwhile, and
 * been told the rest: then RECLAIM_DONE fails, and all is told anew. @lost: the locks are.
 */
static int volume_tell_all(struct pvfs_volume *vol, u64 epoch, bool *lost)
{
	int err = 0;

	if (volume_walk_begin(vol)) {
		if (*lost)
			err = vol->ops->locks_lost(vol);
		if (!err) {
			*lost = false;
			err = vol->ops->reclaim(vol);
		}
		volume_walk_end(vol);
	}
	err = err ?: vol->ops->reclaim_done(vol, epoch);
	/* That it is another is known to who shakes hands with it. */
	if (err == -EAGAIN)
		pvfs_server_reconnect(vol->mgr);
	return err;
}

static void volume_recover_work(struct work_struct *work)
{
	struct pvfs_volume *vol = container_of(work, struct pvfs_volume, recover_work);
	unsigned int noio = memalloc_noio_save();	/* as conn_connect_work() */
	bool lost = false, over = false;
	u64 session, epoch;
	int err;

	while (!READ_ONCE(vol->dead) && !over) {
		spin_lock(&vol->lock);
		session = vol->session;
		spin_unlock(&vol->lock);
		lost |= !session;
		err = session ? volume_learn_lease(vol) : volume_new_session(vol);
		spin_lock(&vol->lock);
		session = vol->session;
		epoch = vol->epoch;
		spin_unlock(&vol->lock);
		err = err ?: volume_tell_all(vol, epoch, &lost);
		if (err) {
			schedule_timeout_idle(HZ / 5);
			continue;
		}
		spin_lock(&vol->lock);
		over = session && vol->session == session && vol->epoch == epoch;
		if (over)
			WRITE_ONCE(vol->recovering, false);
		spin_unlock(&vol->lock);
	}
	pvfs_server_push(vol->mgr);
	memalloc_noio_restore(noio);
}

static void volume_renew_done(struct pvfs_request *req)
{
	struct pvfs_volume *vol = req->server->vol;

	if (!req->err)
		volume_session_renewed(vol, vol->renew_asked);
	else if (req->err == -ESTALE)
		pvfs_volume_session_lost(vol, req->session);
	if (!READ_ONCE(vol->dead))
		queue_delayed_work(vol->recover_wq, &vol->renew_work,
				   msecs_to_jiffies(READ_ONCE(vol->lease_ms) / 3));
}

static void volume_renew_work(struct work_struct *work)
{
	struct pvfs_volume *vol = container_of(to_delayed_work(work), struct pvfs_volume,
					       renew_work);
	struct pvfs_session_renew_req m = {};
	struct pvfs_request *req;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SESSION_RENEW, 0);
	if (IS_ERR(req))
		return;
	req->flags = PVFS_RF_RECOVERY | PVFS_RF_ASYNC;
	req->body_len = pvfs_session_renew_req_encode(&m, req->body, req->body_room);
	req->done = volume_renew_done;
	vol->renew_asked = pvfs_boot_ns();
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

/* ---------------------------------------------------------------- open and close */

static int volume_add_iods(struct pvfs_volume *vol, const void *table, u32 len)
{
	struct pvfs_wire w;
	u32 i;

	pvfs_wire_init(&w, table, len);
	for (i = 0; i < vol->niods; i++) {
		struct sockaddr_storage ss = {};
		struct pvfs_iodent e;
		char host[PVFS_HOST_MAX + 1];

		pvfs_get_iodent(&w, &e);
		if (w.err || e.index != i || (e.family != 4 && e.family != 6))
			return -EBADMSG;
		if (e.family == 4) {
			struct sockaddr_in *in = (struct sockaddr_in *)&ss;

			in->sin_family = AF_INET;
			in->sin_port = htons(e.port);
			memcpy(&in->sin_addr, e.addr, 4);
		} else {
			struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

			in6->sin6_family = AF_INET6;
			in6->sin6_port = htons(e.port);
			memcpy(&in6->sin6_addr, e.addr, 16);
		}
		memcpy(host, e.host.p, e.host.len);
		host[e.host.len] = 0;
		vol->iods[i] = pvfs_server_new(vol, PVFS_ROLE_IOD, i, &ss, host);
		if (!vol->iods[i])
			return -ENOMEM;
	}
	return pvfs_wire_left(&w) ? -EBADMSG : 0;
}

static void volume_free(struct pvfs_volume *vol)
{
	u32 i;

	for (i = 0; vol->iods && i < vol->niods; i++)
		pvfs_server_free(vol->iods[i]);
	kvfree(vol->iods);
	pvfs_server_free(vol->mgr);
	/* No request is left that would have a heartbeat follow it. */
	cancel_delayed_work_sync(&vol->renew_work);
	if (vol->connect_wq)
		destroy_workqueue(vol->connect_wq);
	if (vol->recover_wq)
		destroy_workqueue(vol->recover_wq);
	vol->ops->fini(vol);
	pvfs_kreq_room_fini(vol);
	bitmap_free(vol->slot_busy);
	kvfree(vol->slot_seq);
	free_percpu(vol->stats);
	put_net(vol->net);
	kfree_sensitive(vol);
}

static void volume_explain(char *why, const struct pvfs_volume *vol, int err)
{
	const char *host = vol->opts.host, *volume = vol->opts.volume;

	switch (err) {
	case -EACCES:
		snprintf(why, 160, "mgr %.60s refused the cluster key (or does not know it itself)",
			 host);
		break;
	case -ENOENT:
		snprintf(why, 160, "mgr %.60s has no volume %.40s", host, volume);
		break;
	case -EPROTO:
		snprintf(why, 160, "mgr %.60s speaks another protocol version", host);
		break;
	default:
		snprintf(why, 160, "mgr %.60s (%pISpc) does not answer: error %d", host,
			 &vol->opts.addr, err);
	}
}

int pvfs_volume_open(const struct pvfs_opts *opts, const struct pvfs_volume_ops *ops,
		     unsigned int timeout_ms, struct pvfs_volume **ret, char *why)
{
	struct pvfs_session_open_rep rep;
	struct pvfs_volume *vol;
	struct landing table;
	u64 opened;
	u32 len;
	int err;

	if (!opts->volume[0] || opts->volume[0] == '.' || strchr(opts->volume, '/')) {
		snprintf(why, 160, "\"%.63s\" can't be a volume's name", opts->volume);
		return -EINVAL;
	}
	vol = kzalloc(sizeof(*vol), GFP_KERNEL);
	if (!vol)
		return -ENOMEM;
	vol->opts = *opts;
	vol->ops = ops;
	vol->net = get_net(current->nsproxy->net_ns);
	if (!vol->opts.nconnect)
		vol->opts.nconnect = min_t(unsigned int, pvfs_kpvfsd_count(), NCONNECT_DEFAULT);
	strscpy(vol->client_host, utsname()->nodename, sizeof(vol->client_host));
	get_random_bytes(vol->client_id, sizeof(vol->client_id));
	spin_lock_init(&vol->lock);
	INIT_LIST_HEAD(&vol->volumes);
	init_waitqueue_head(&vol->slot_wait);
	init_waitqueue_head(&vol->async_wait);
	INIT_DELAYED_WORK(&vol->renew_work, volume_renew_work);
	INIT_WORK(&vol->recover_work, volume_recover_work);
	strscpy(why, "out of memory", 160);

	err = -ENOMEM;
	vol->stats = alloc_percpu(struct pvfs_stats);
	vol->connect_wq = alloc_workqueue("pvfs_connect", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	vol->recover_wq = alloc_workqueue("pvfs_recover", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!vol->stats || !vol->connect_wq || !vol->recover_wq || pvfs_kreq_room_init(vol) ||
	    ops->init(vol))
		goto out_free;
	err = volume_landing_alloc(&table, IODTAB_MAX);
	if (err)
		goto out_free;
	vol->mgr = pvfs_server_new(vol, PVFS_ROLE_MGR, 0, &opts->addr, opts->host);
	if (!vol->mgr) {
		err = -ENOMEM;
		goto out_table;
	}
	err = pvfs_server_wait_up(vol->mgr, timeout_ms);
	if (!err)
		err = volume_session_open(vol, &rep, &table, &len, &opened);
	if (err) {
		volume_explain(why, vol, err);
		goto out_table;
	}
	memcpy(vol->uuid, rep.volume_uuid, sizeof(vol->uuid));
	vol->root = rep.root;
	vol->lease_ms = rep.lease_ms;
	vol->nslots = rep.nslots;
	vol->niods = rep.niods;
	vol->rsize = vol->opts.rsize;
	vol->wsize = vol->opts.wsize;
	vol->slot_busy = bitmap_zalloc(vol->nslots, GFP_KERNEL);
	vol->slot_seq = kvcalloc(vol->nslots, sizeof(u32), GFP_KERNEL);
	vol->iods = kvcalloc(vol->niods, sizeof(*vol->iods), GFP_KERNEL);
	if (!vol->slot_busy || !vol->slot_seq || !vol->iods) {
		err = -ENOMEM;
		goto out_table;
	}
	err = volume_add_iods(vol, table.mem, len);
	if (err) {
		snprintf(why, 160, "mgr %.60s sent a table of iods that makes no sense",
			 opts->host);
		goto out_table;
	}
	err = pvfs_stats_add_volume(vol);
	if (err)
		goto out_table;
	volume_set_session(vol, &rep, opened);
	queue_delayed_work(vol->recover_wq, &vol->renew_work,
			   msecs_to_jiffies(READ_ONCE(vol->lease_ms) / 3));
	volume_landing_free(&table);
	*ret = vol;
	return 0;

out_table:
	volume_landing_free(&table);
out_free:
	WRITE_ONCE(vol->dead, true);
	volume_free(vol);
	return err;
}

/* Tells the mgr that we go; its answer is one of the ASYNC requests that close waits for. */
static void volume_session_close(struct pvfs_volume *vol)
{
	struct pvfs_session_close_req m = {};
	struct pvfs_request *req;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SESSION_CLOSE, 0);
	if (IS_ERR(req))
		return;
	req->flags = PVFS_RF_RECOVERY | PVFS_RF_ASYNC;
	req->body_len = pvfs_session_close_req_encode(&m, req->body, req->body_room);
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

void pvfs_volume_leave(struct pvfs_volume *vol)
{
	bool walking;

	spin_lock(&vol->lock);
	vol->leaving = true;
	walking = vol->walking;
	spin_unlock(&vol->lock);
	/* Again, because what it asks next may have been on its way to the queue. */
	while (walking) {
		wait_event_timeout(vol->async_wait, !READ_ONCE(vol->walking), LEAVE_MS);
		spin_lock(&vol->lock);
		walking = vol->walking;
		spin_unlock(&vol->lock);
		if (!walking)
			break;
		pvfs_server_interrupt(vol->mgr);
		/* Else it would wait for the session to expire: see pvfs_volume_close(). */
		wait_event_timeout(vol->mgr->wait, READ_ONCE(vol->mgr->nup), HZ);
	}
}

static void volume_wait_async(struct pvfs_volume *vol, unsigned int ms)
{
	if (!READ_ONCE(vol->mgr->nup))
		ms = min(ms, 1000u);
	wait_event_timeout(vol->async_wait, !atomic_read(&vol->async), msecs_to_jiffies(ms));
}

void pvfs_volume_close(struct pvfs_volume *vol)
{
	u32 i;

	cancel_delayed_work_sync(&vol->renew_work);
	vol->ops->flush(vol);
	volume_wait_async(vol, CLOSE_WAIT_MS);
	/*
	 * Requests may have been aborted a moment ago, and the connection with them: it comes back at once, or
	 * the mgr is away. A session that is not closed keeps its leases and locks until it is evicted.
	 */
	if (wait_event_timeout(vol->mgr->wait, READ_ONCE(vol->mgr->nup), vol->cut ? 5 * HZ : HZ)) {
		volume_session_close(vol);
		volume_wait_async(vol, CLOSE_WAIT_MS / 3);
	}
	spin_lock(&vol->lock);
	vol->dead = true;
	spin_unlock(&vol->lock);
	wake_up_all(&vol->slot_wait);
	pvfs_server_abort(vol->mgr);
	for (i = 0; i < vol->niods; i++)
		pvfs_server_abort(vol->iods[i]);
	vol->ops->end(vol);
	cancel_work_sync(&vol->recover_work);
	cancel_delayed_work_sync(&vol->renew_work);
	pvfs_stats_del_volume(vol);
	volume_free(vol);
}

void pvfs_volume_abort(struct pvfs_volume *vol)
{
	u32 i;

	if (READ_ONCE(vol->mgr->nup))
		WRITE_ONCE(vol->cut, true);
	pvfs_server_abort(vol->mgr);
	for (i = 0; i < vol->niods; i++)
		pvfs_server_abort(vol->iods[i]);
}

bool pvfs_volume_mgr_there(const struct pvfs_volume *vol)
{
	return READ_ONCE(vol->mgr->nup) && !READ_ONCE(vol->recovering);
}

bool pvfs_volume_up(const struct pvfs_volume *vol)
{
	bool up = READ_ONCE(vol->mgr->nup);
	u32 i;

	for (i = 0; i < vol->niods && up; i++)
		up = READ_ONCE(vol->iods[i]->nup);
	return up;
}

void pvfs_iod_tells_room(struct pvfs_server *s, u64 room)
{
	u64 now = get_jiffies_64();
	s64 old = atomic64_read(&s->room);

	/* Replies overtake each other: if it is more than a moment ago, it may be from before that. */
	do {
		if (room > (u64)old && now - READ_ONCE(s->room_told) < OVERTAKES)
			return;
	} while (!atomic64_try_cmpxchg(&s->room, &old, room));
	WRITE_ONCE(s->room_told, now);
}

u64 pvfs_iod_room(const struct pvfs_server *s, u64 *when)
{
	*when = READ_ONCE(s->room_told);
	return atomic64_read(&s->room);
}
