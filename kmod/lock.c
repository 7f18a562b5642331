// SPDX-License-Identifier: GPL-2.0
/*
 * lock.c - flock(2), fcntl(2)'s record locks and open file description locks, which hold on all clients: the mgr keeps
 * them ("Locks" in docs/protocol.md). With locks=local only this node's kernel does.
 *
 * The kernel's own lists (/proc/locks, what close unlocks) follow: a lock is entered there when the mgr has granted it
 * and taken out before the mgr is asked to unlock it, so they never say more than the mgr does. What is in them is what
 * a restarted mgr is told.
 *
 * Owners are pointers to the VFS, which are used again; the mgr knows them by numbers that are not. An owner's requests
 * go one after the other, each when the one before was answered: which of two calls came last does then not depend on
 * the channels they took. They are ASYNC, so that a killed task can leave at once and what it asked for is still
 * answered, and undone if it was a lock.
 *
 * Appending to a file is a lock of its own kind, whose owner is the inode and which no list of the kernel has; it is kept
 * for a moment after a write, for the next one.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/pagemap.h>
#include "vfs.h"

#define ASK_MS 3000		/* while queued: ask again, if no LOCK_GRANT came */
#define GRACE_MS 200		/* while others tell a restarted mgr what they have */
#define UMOUNT_WAIT_MS 5000
#define APPEND_MS 50		/* to be kept by one append after the other, when others may wait for it */

static struct workqueue_struct *lock_wq;

/*
 * An owner of locks of one inode; vol->locks_lock protects what is not constant.
 *
 * Exists while it has users (calls, and whoever looks at it), locks in the kernel's lists, or was told that it lost
 * them.
 */
struct lock_owner {
	struct list_head link;		/* pi->lock_owners */
	struct pvfs_volume *vol;
	struct pvfs_inode *pi;		/* NULL: gone, and it is on no list */
	struct pvfs_fid fid;
	const void *key;		/* the VFS's owner; compared, never followed */
	u64 id;				/* for the mgr */
	u8 kind;			/* PVFS_LK_FLOCK .. APPEND */
	bool lost;			/* the session that had its locks is gone */
	bool appends;			/* of kind APPEND: it has the lock, and is a user of itself */
	unsigned long since;		/* jiffies when it got that; i_rwsem */
	struct delayed_work append_work;	/* gives it back */
	bool busy;			/* the first of its calls is on its way */
	unsigned int users;
	struct list_head calls;
	struct work_struct work;	/* sends the next; a user while it is queued */
};

/*
 * One lock, from the first question to the last answer.
 *
 * A reference is the caller's, another the owner's while the call is on its list.
 */
struct lock_call {
	struct list_head link;		/* owner's calls; vol->locks_lock */
	struct list_head wait_link;	/* vol->lock_waits; the same */
	struct lock_owner *o;
	refcount_t ref;
	u16 op;				/* LOCK or LOCK_CANCEL */
	struct pvfs_lock_req m;
	bool left;			/* locks_lock: nobody waits: a lock that comes now is undone */
	bool sent;			/* locks_lock */
	bool done;			/* answered: err and state are final */
	bool hinted;			/* a LOCK_GRANT named it */
	int err;
	u8 state;			/* of LOCK: PVFS_LK_*; of LOCK_CANCEL: was it granted? */
	wait_queue_head_t wait;
};

static bool locks_local(const struct inode *inode)
{
	return PVFS_VOL(inode)->opts.locks_local;
}

/* ---------------------------------------------------------------- the kernel's lists */

static u8 kind_of(const struct file_lock *fl)
{
	if (pvfs_fl(fl, flags) & FL_FLOCK)
		return PVFS_LK_FLOCK;
	return pvfs_fl(fl, flags) & FL_OFDLCK ? PVFS_LK_OFD : PVFS_LK_RECORD;
}

static u8 type_of(const struct file_lock *fl)
{
	return pvfs_fl(fl, type) == F_WRLCK ? PVFS_LK_WRITE : PVFS_LK_READ;
}

/* A lock as the kernel has it. */
struct held {
	const void *key;
	u8 kind, type;
	u32 pid;
	u64 start, end;
};

/* flc_lock held. Those of one list; @at < @room are filled in. Return: the number with those before. */
static unsigned int held_list(struct list_head *list, struct held *held, unsigned int at, unsigned int room)
{
	struct file_lock *fl;

	list_for_each_entry(fl, list, PVFS_FL_LIST) {
		if (at < room)
			held[at] = (struct held){
				.key = pvfs_fl(fl, owner), .kind = kind_of(fl), .type = type_of(fl),
				.pid = pvfs_fl(fl, pid), .start = fl->fl_start, .end = fl->fl_end,
			};
		at++;
	}
	return at;
}

/* locks_lock held. */
static struct lock_owner *owner_find(struct pvfs_inode *pi, const void *key, u8 kind)
{
	struct lock_owner *o;

	list_for_each_entry(o, &pi->lock_owners, link)
		if (o->key == key && o->kind == kind)
			return o;
	return NULL;
}

/* The lock on appending, as the others. Return: the number with the @at before. */
static unsigned int held_append(struct inode *inode, struct held *held, unsigned int at, unsigned int room)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o;

	spin_lock(&PVFS_VOL(inode)->locks_lock);
	o = owner_find(pi, pi, PVFS_LK_APPEND);
	if (o && o->appends) {
		if (at < room)
			held[at] = (struct held){
				.key = pi, .kind = PVFS_LK_APPEND, .type = PVFS_LK_WRITE, .end = PVFS_FILE_MAX,
			};
		at++;
	}
	spin_unlock(&PVFS_VOL(inode)->locks_lock);
	return at;
}

static unsigned int held_fill(struct inode *inode, struct held *held, unsigned int room)
{
	/* Pairs with the VFS's publishing of it. */
	struct file_lock_context *ctx = smp_load_acquire(&inode->i_flctx);
	unsigned int n = 0;

	if (ctx) {
		spin_lock(&ctx->flc_lock);
		n = held_list(&ctx->flc_flock, held, n, room);
		n = held_list(&ctx->flc_posix, held, n, room);
		spin_unlock(&ctx->flc_lock);
	}
	return held_append(inode, held, n, room);
}

/* All locks of an inode, to be freed by kvfree(). Return: how many, or -ENOMEM. */
static int held_get(struct inode *inode, struct held **ret)
{
	unsigned int n, room = 16;
	struct held *held;

	for (;;) {
		held = kvmalloc_array(room, sizeof(*held), GFP_KERNEL);
		if (!held)
			return -ENOMEM;
		n = held_fill(inode, held, room);
		if (n <= room)
			break;
		kvfree(held);
		room = n + 16;
	}
	*ret = held;
	return n;
}

/* locks_lock held. Has the kernel any lock of this owner? */
static bool owner_holds(const struct lock_owner *o)
{
	/* Pairs with the VFS's publishing of it. */
	struct file_lock_context *ctx = smp_load_acquire(&o->pi->vfs_inode.i_flctx);
	struct file_lock *fl;
	bool ret = false;

	if (!ctx || o->kind == PVFS_LK_APPEND)
		return false;
	spin_lock(&ctx->flc_lock);
	list_for_each_entry(fl, o->kind == PVFS_LK_FLOCK ? &ctx->flc_flock : &ctx->flc_posix, PVFS_FL_LIST)
		ret |= pvfs_fl(fl, owner) == o->key && kind_of(fl) == o->kind;
	spin_unlock(&ctx->flc_lock);
	return ret;
}

/* Takes a lock, all of it or @fl's range, out of the kernel's lists. */
static void unlock_here(struct inode *inode, const void *key, u8 kind, u64 start, u64 end)
{
	struct file_lock fl;

	locks_init_lock(&fl);
	pvfs_fl(&fl, type) = F_UNLCK;
	pvfs_fl(&fl, owner) = (fl_owner_t)key;
	pvfs_fl(&fl, flags) = kind == PVFS_LK_FLOCK ? FL_FLOCK : kind == PVFS_LK_OFD ? FL_POSIX | FL_OFDLCK : FL_POSIX;
	/* The VFS compares it; for flock it is the owner. */
	pvfs_fl(&fl, file) = kind == PVFS_LK_FLOCK ? (struct file *)key : NULL;
	fl.fl_start = start;
	fl.fl_end = end;
	locks_lock_inode_wait(inode, &fl);
}

/* ---------------------------------------------------------------- owners */

static void owner_unlink(struct lock_owner *o)
{
	list_del_init(&o->link);
	if (list_empty(&o->pi->lock_owners))
		list_del_init(&o->pi->locked.link);
	o->pi = NULL;
}

static void owner_put(struct lock_owner *o)
{
	struct pvfs_volume *vol = o->vol;
	bool last;

	spin_lock(&vol->locks_lock);
	last = !--o->users && (!o->pi || (!o->lost && !owner_holds(o)));
	if (last && o->pi)
		owner_unlink(o);
	spin_unlock(&vol->locks_lock);
	if (last)
		kfree(o);
}

static void owner_work(struct work_struct *work);
static void append_late(struct work_struct *work);

/* @make: if there is none. Return: a user, or NULL. */
static struct lock_owner *owner_get(struct inode *inode, const void *key, u8 kind, bool make)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o, *new = NULL;

	if (make) {
		new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
		if (!new)
			return NULL;
		INIT_LIST_HEAD(&new->link);
		INIT_LIST_HEAD(&new->calls);
		INIT_WORK(&new->work, owner_work);
		INIT_DELAYED_WORK(&new->append_work, append_late);
		new->vol = vol;
		new->pi = pi;
		new->fid = pi->fid;
		new->key = key;
		new->kind = kind;
	}
	spin_lock(&vol->locks_lock);
	o = owner_find(pi, key, kind);
	if (!o && new) {
		o = new;
		new = NULL;
		o->id = ++vol->lock_ids;
		if (list_empty(&pi->lock_owners)) {
			pi->locked.pass = 0;
			list_add_tail(&pi->locked.link, &vol->lock_inodes);
		}
		list_add_tail(&o->link, &pi->lock_owners);
	}
	if (o)
		o->users++;
	spin_unlock(&vol->locks_lock);
	kfree(new);
	return o;
}

/* ---------------------------------------------------------------- calls */

static struct lock_call *call_new(struct lock_owner *o, const struct file_lock *fl, bool wait)
{
	struct pvfs_volume *vol = o->vol;
	/* An unlock must not fail for want of it. */
	struct lock_call *call = kzalloc(sizeof(*call), GFP_KERNEL | __GFP_NOFAIL);
	bool unlock = pvfs_fl(fl, type) == F_UNLCK;

	call->o = o;
	call->op = PVFS_OP_LOCK;
	refcount_set(&call->ref, 1);
	INIT_LIST_HEAD(&call->link);
	INIT_LIST_HEAD(&call->wait_link);
	init_waitqueue_head(&call->wait);
	call->m = (struct pvfs_lock_req){
		.fid = o->fid, .kind = o->kind, .owner = o->id, .pid = pvfs_fl(fl, pid),
		.type = unlock ? PVFS_LK_UNLOCK : type_of(fl), .start = fl->fl_start, .end = fl->fl_end,
		.flags = wait && !unlock ? PVFS_LK_WAIT : 0,
	};
	if (o->kind == PVFS_LK_FLOCK || o->kind == PVFS_LK_APPEND) {
		call->m.start = 0;
		call->m.end = PVFS_FILE_MAX;
	}
	atomic_inc(&vol->lock_calls);
	spin_lock(&vol->locks_lock);
	o->users++;
	if (!unlock) {
		call->m.ticket = ++vol->lock_ids;
		list_add_tail(&call->wait_link, &vol->lock_waits);
	}
	spin_unlock(&vol->locks_lock);
	return call;
}

static void call_put(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;

	if (!refcount_dec_and_test(&call->ref))
		return;
	spin_lock(&vol->locks_lock);
	list_del(&call->wait_link);
	spin_unlock(&vol->locks_lock);
	owner_put(call->o);
	kfree(call);
	if (atomic_dec_and_test(&vol->lock_calls))
		wake_up_all(&vol->async_wait);
}

/*
 * It was answered, or could not be sent. A lock that nobody waits for any more is taken back: the answer to the LOCK
 * has come, so the LOCK_CANCEL can't be overtaken by it.
 */
static void call_answered(struct lock_call *call, int err, u8 state)
{
	struct lock_owner *o = call->o;
	struct pvfs_volume *vol = o->vol;
	bool undo, more;

	spin_lock(&vol->locks_lock);
	list_del_init(&call->link);
	o->busy = false;
	call->err = err;
	call->state = state;
	undo = call->left && !err && call->m.type != PVFS_LK_UNLOCK && !READ_ONCE(vol->locks_dead) &&
	       (call->op == PVFS_OP_LOCK ? state == PVFS_LK_GRANTED || state == PVFS_LK_QUEUED :
					   (call->m.flags & PVFS_LK_KEEP) && state);
	if (undo) {
		call->op = PVFS_OP_LOCK_CANCEL;
		call->m.flags = 0;
		call->sent = false;
		list_add(&call->link, &o->calls);
	}
	more = !list_empty(&o->calls);
	if (more) {
		o->busy = true;
		o->users++;
	}
	if (!undo) {
		/* Pairs with call_done(). */
		smp_store_release(&call->done, true);
		wake_up(&call->wait);
	}
	spin_unlock(&vol->locks_lock);
	if (more)
		queue_work(lock_wq, &o->work);
	if (!undo)
		call_put(call);
}

static void call_request_done(struct pvfs_request *req)
{
	struct lock_call *call = req->priv;
	struct pvfs_lock_cancel_rep cancelled = {};
	struct pvfs_lock_rep rep = {};
	int err = req->err;

	if (!err && req->op == PVFS_OP_LOCK)
		err = pvfs_lock_rep_decode(&rep, req->rep, req->rep_len);
	else if (!err)
		err = pvfs_lock_cancel_rep_decode(&cancelled, req->rep, req->rep_len);
	if (err == -EBADMSG || rep.state > PVFS_LK_DEADLOCK)
		err = pvfs_bogus(call->o->vol, "an answer about locks", call->m.fid.ino);
	if (err && call->m.type == PVFS_LK_UNLOCK)
		pr_warn_ratelimited("%s: inode %llu: cannot unlock at the mgr: error %d\n", call->o->vol->opts.volume,
				    call->m.fid.ino, err);
	call_answered(call, err, req->op == PVFS_OP_LOCK ? rep.state : cancelled.granted);
}

/* It is the first of its owner's calls, which is busy with it. */
static void call_send(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;
	struct pvfs_request *req;

	req = READ_ONCE(vol->locks_dead) ? ERR_PTR(-ESHUTDOWN) : pvfs_req_alloc(vol->mgr, call->op, 0);
	if (IS_ERR(req)) {
		call_answered(call, PTR_ERR(req), 0);
		return;
	}
	if (call->op == PVFS_OP_LOCK) {
		req->body_len = pvfs_lock_req_encode(&call->m, req->body, req->body_room);
	} else {
		struct pvfs_lock_cancel_req m = {
			.fid = call->m.fid, .kind = call->m.kind, .type = call->m.type, .flags = call->m.flags,
			.owner = call->m.owner, .start = call->m.start, .end = call->m.end, .ticket = call->m.ticket,
		};

		req->body_len = pvfs_lock_cancel_req_encode(&m, req->body, req->body_room);
	}
	req->flags = PVFS_RF_ASYNC;
	req->done = call_request_done;
	req->priv = call;
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

static void owner_work(struct work_struct *work)
{
	struct lock_owner *o = container_of(work, struct lock_owner, work);
	struct lock_call *call;

	spin_lock(&o->vol->locks_lock);
	call = list_first_entry_or_null(&o->calls, struct lock_call, link);
	if (call)
		call->sent = true;
	else
		o->busy = false;	/* its caller left */
	spin_unlock(&o->vol->locks_lock);
	if (call)
		call_send(call);
	owner_put(o);
}

/* Asks, after what its owner asked before. */
static void call_submit(struct lock_call *call, u16 op, u32 flags, bool left)
{
	struct lock_owner *o = call->o;
	bool send;

	refcount_inc(&call->ref);
	spin_lock(&o->vol->locks_lock);
	call->op = op;
	call->m.flags = flags;
	call->left = left;
	call->done = false;
	call->hinted = false;
	list_add_tail(&call->link, &o->calls);
	send = !o->busy;
	call->sent = send;
	o->busy = true;
	spin_unlock(&o->vol->locks_lock);
	if (send)
		call_send(call);
}

static bool call_done(struct lock_call *call)
{
	return smp_load_acquire(&call->done);	/* pairs with call_answered() */
}

/*
 * Waits for the answer. Return: 0: it is there; -EINTR killed, -EIO time is up (soft): it will be dealt with when it
 * comes. An unlock is made in every case.
 */
static int call_wait(struct lock_call *call)
{
	struct pvfs_volume *vol = call->o->vol;
	bool withdrawn = false, done;
	long left;

	left = wait_event_killable_timeout(call->wait, call_done(call), vol->opts.soft ?
					   msecs_to_jiffies(vol->opts.timeo_ms) : MAX_SCHEDULE_TIMEOUT);
	if (left > 0)
		return 0;
	spin_lock(&vol->locks_lock);
	done = call->done;
	if (!done && !call->sent && call->op == PVFS_OP_LOCK && call->m.type != PVFS_LK_UNLOCK) {
		list_del_init(&call->link);
		withdrawn = true;
	}
	call->left = !done;
	spin_unlock(&vol->locks_lock);
	if (withdrawn)
		call_put(call);
	if (done)
		return 0;
	return left ? -EINTR : -EIO;
}

/**
 * pvfs_locks_granted - the mgr says that calls would be granted if they asked now
 * @vol: the volume
 * @req: the message; borrowed
 *
 * Called by conn_rx.c. It is a hint: one that is wrong costs a question.
 *
 * Return: 0 or -EBADMSG.
 */
int pvfs_locks_granted(struct pvfs_volume *vol, const struct pvfs_lock_grant_req *req)
{
	struct lock_call *call;
	u32 i;

	if (req->tickets.len % 8)
		return -EBADMSG;
	for (i = 0; i < req->tickets.len / 8; i++) {
		u64 ticket = get_unaligned_le64(req->tickets.p + 8 * i);

		spin_lock(&vol->locks_lock);
		list_for_each_entry(call, &vol->lock_waits, wait_link) {
			if (call->m.ticket == ticket) {
				WRITE_ONCE(call->hinted, true);
				wake_up(&call->wait);
				break;
			}
		}
		spin_unlock(&vol->locks_lock);
	}
	return 0;
}

/* ---------------------------------------------------------------- lock and unlock */

/* The lock is ours: enter it into the kernel's lists. Another owner of this node may just be leaving them. */
static int enter_here(struct file *file, struct file_lock *fl)
{
	unsigned int flags = pvfs_fl(fl, flags);
	int err;

	pvfs_fl(fl, flags) |= FL_SLEEP;
	err = locks_lock_file_wait(file, fl);
	pvfs_fl(fl, flags) = flags;
	return err;
}

/*
 * Waits until it is time to ask again. Return: 0; -ERESTARTSYS a signal came: *@granted says whether the lock had come
 * first and is kept.
 */
static int call_pause(struct lock_call *call, bool *granted)
{
	u8 state = call->state;
	long left;
	int err;

	*granted = false;
	left = wait_event_interruptible_timeout(call->wait, READ_ONCE(call->hinted),
						msecs_to_jiffies(state == PVFS_LK_QUEUED ? ASK_MS : GRACE_MS));
	if (left >= 0 || state != PVFS_LK_QUEUED)
		return left < 0 ? -ERESTARTSYS : 0;
	if (fatal_signal_pending(current)) {
		call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
		return -EINTR;
	}
	call_submit(call, PVFS_OP_LOCK_CANCEL, PVFS_LK_KEEP, false);
	err = call_wait(call);
	*granted = !err && !call->err && call->state;
	return *granted ? 0 : -ERESTARTSYS;
}

/* What was cached may be older than the lock. */
static void refresh(struct inode *inode)
{
	if (!S_ISREG(inode->i_mode))
		return;
	pvfs_attr_distrust(inode);
	if (!inode->i_mapping->nrpages)
		return;
	if (pvfs_meta_getattr(inode))
		invalidate_inode_pages2(inode->i_mapping);
	else
		pvfs_cache_check(inode);
}

static void owner_lost(struct inode *inode, const struct held *h);

static int lock_set(struct file *file, struct file_lock *fl, u8 kind, bool wait)
{
	struct inode *inode = file_inode(file);
	struct pvfs_volume *vol = PVFS_VOL(inode);
	u64 session, epoch, session_now, epoch_now;
	bool entered = false, held = false, queued = false, granted;
	struct lock_owner *o;
	struct lock_call *call;
	u32 flags;
	int err;

	o = owner_get(inode, pvfs_fl(fl, owner), kind, true);
	if (!o)
		return -ENOLCK;
	call = call_new(o, fl, wait);
	flags = call->m.flags;
	for (;;) {
		err = -EIO;
		if (READ_ONCE(o->lost)) {
			/* The new session may have been granted it. */
			if (entered)
				call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			break;
		}
		pvfs_session_sample(vol, &session, &epoch);
		call_submit(call, PVFS_OP_LOCK, flags, false);
		err = call_wait(call);
		if (!err)
			err = call->err;
		if (err)
			break;
		granted = call->state == PVFS_LK_GRANTED;
		/*
		 * It was entered, but a restarted mgr had given it to another meanwhile. We had not used it; but what
		 * the owner had before can't be told from it any more.
		 */
		if (!granted && entered && held) {
			owner_lost(inode, &(struct held){ .key = o->key, .kind = kind, .pid = call->m.pid });
			if (call->state == PVFS_LK_QUEUED)
				call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			err = -EIO;
			break;
		}
		if (!granted && entered) {
			unlock_here(inode, o->key, kind, call->m.start, call->m.end);
			entered = false;
		}
		if (call->state == PVFS_LK_CONFLICT || call->state == PVFS_LK_DEADLOCK) {
			err = call->state == PVFS_LK_CONFLICT ? -EAGAIN : -EDEADLK;
			break;
		}
		if (!granted) {
			queued |= call->state == PVFS_LK_QUEUED;
			err = call_pause(call, &granted);
			if (err)
				break;
			if (!granted)
				continue;
		}
		if (!entered) {
			spin_lock(&vol->locks_lock);
			held = owner_holds(o);
			spin_unlock(&vol->locks_lock);
			err = enter_here(file, fl);
		}
		if (err) {
			call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			break;
		}
		entered = true;
		/*
		 * If the mgr is a new one, it may have been told what we hold before this was in the lists: ask again.
		 * If not, it will be told of this one too.
		 */
		pvfs_session_sample(vol, &session_now, &epoch_now);
		if (session_now == session && epoch_now == epoch)
			break;
	}
	/* As the kernel's own flock: what was held goes when one begins to wait for another type. */
	if (err && queued && kind == PVFS_LK_FLOCK)
		unlock_here(inode, o->key, kind, 0, OFFSET_MAX);
	else if (err && entered)
		unlock_here(inode, o->key, kind, call->m.start, call->m.end);
	call_put(call);
	owner_put(o);
	if (!err)
		refresh(inode);
	return err == -ESHUTDOWN ? -EIO : err;
}

static int lock_unset(struct file *file, struct file_lock *fl, u8 kind)
{
	struct inode *inode = file_inode(file);
	struct lock_owner *o;
	struct lock_call *call;
	int err;

	/* Who locks it next is to see what we wrote: data is with the iods, size and time are told now. */
	if (S_ISREG(inode->i_mode) && pvfs_writes_pending(inode))
		pvfs_meta_report(inode);
	o = owner_get(inode, pvfs_fl(fl, owner), kind, false);
	/* At close the VFS unlocks an open file description's without saying that it is one; no process has that owner. */
	if (!o && kind == PVFS_LK_RECORD)
		o = owner_get(inode, pvfs_fl(fl, owner), PVFS_LK_OFD, false);
	err = locks_lock_file_wait(file, fl);
	if (!o)
		return err;
	if (!READ_ONCE(o->lost)) {
		call = call_new(o, fl, false);
		call_submit(call, PVFS_OP_LOCK, 0, false);
		/* Killed: it is unlocked all the same. */
		if (!call_wait(call) && !err && call->err)
			err = call->err == -ENOLCK ? -ENOLCK : -EIO;
		call_put(call);
	}
	owner_put(o);
	return err;
}

static int lock_get(struct file *file, struct file_lock *fl, u8 kind)
{
	struct inode *inode = file_inode(file);
	struct pvfs_getlk_req m = {
		.fid = PVFS_I(inode)->fid, .kind = kind, .type = type_of(fl), .start = fl->fl_start, .end = fl->fl_end,
	};
	struct lock_owner *o = owner_get(inode, pvfs_fl(fl, owner), kind, false);
	struct pvfs_getlk_rep r;
	int err;

	if (o) {
		m.owner = o->id;	/* else 0, which is nobody's */
		owner_put(o);
	}
	err = pvfs_meta_getlk(inode, &m, &r);
	if (err)
		return err;
	pvfs_fl(fl, type) = F_UNLCK;
	if (r.type == PVFS_LK_UNLOCK)
		return 0;
	pvfs_fl(fl, type) = r.type == PVFS_LK_WRITE ? F_WRLCK : F_RDLCK;
	fl->fl_start = r.start;
	fl->fl_end = r.end;
	/* An open file description's is told as -1; of another node's process the number is negative, as usual. */
	pvfs_fl(fl, flags) &= ~FL_OFDLCK;
	if (r.kind == PVFS_LK_OFD)
		pvfs_fl(fl, flags) |= FL_OFDLCK;
	pvfs_fl(fl, pid) = r.own ? (pid_t)r.pid : -(pid_t)r.pid;
	return 0;
}

/**
 * pvfs_file_lock - fcntl(2): F_GETLK, F_SETLK, F_SETLKW and their OFD kin; and the unlock of all at close
 * @file: the file
 * @cmd: F_GETLK, F_SETLK or F_SETLKW; FL_OFDLCK in @fl tells the kinds apart
 * @fl: the lock
 */
int pvfs_file_lock(struct file *file, int cmd, struct file_lock *fl)
{
	if (!(pvfs_fl(fl, flags) & FL_POSIX))
		return -ENOLCK;
	if (cmd == F_GETLK) {
		if (!locks_local(file_inode(file)))
			return lock_get(file, fl, kind_of(fl));
		posix_test_lock(file, fl);
		return 0;
	}
	if (locks_local(file_inode(file)))
		return locks_lock_file_wait(file, fl);
	if (pvfs_fl(fl, type) == F_UNLCK)
		return lock_unset(file, fl, kind_of(fl));
	return lock_set(file, fl, kind_of(fl), cmd == F_SETLKW);
}

/**
 * pvfs_file_flock - flock(2), and the unlock at close
 * @file: the file
 * @cmd: F_SETLK or F_SETLKW
 * @fl: the lock
 */
int pvfs_file_flock(struct file *file, int cmd, struct file_lock *fl)
{
	if (!(pvfs_fl(fl, flags) & FL_FLOCK))
		return -ENOLCK;
	if (locks_local(file_inode(file)))
		return locks_lock_file_wait(file, fl);
	if (pvfs_fl(fl, type) == F_UNLCK)
		return lock_unset(file, fl, PVFS_LK_FLOCK);
	return lock_set(file, fl, PVFS_LK_FLOCK, cmd == F_SETLKW);
}

/* ---------------------------------------------------------------- appending */

/* The lock is not ours any more. Return: it was. */
static bool append_drop(struct lock_owner *o)
{
	bool had;

	if (!o)
		return false;
	spin_lock(&o->vol->locks_lock);
	had = o->appends;
	o->appends = false;
	spin_unlock(&o->vol->locks_lock);
	return had;
}

static void append_lock_init(struct file_lock *fl, int type)
{
	locks_init_lock(fl);
	pvfs_fl(fl, type) = type;
	fl->fl_start = 0;
	fl->fl_end = OFFSET_MAX;
}

/* Gives the lock back. @o: a user, which is put. */
static void append_unlock(struct lock_owner *o)
{
	struct pvfs_volume *vol = o->vol;
	struct lock_call *call;
	struct file_lock fl;

	if (append_drop(o)) {
		append_lock_init(&fl, F_UNLCK);
		call = call_new(o, &fl, false);
		call_submit(call, PVFS_OP_LOCK, 0, true);
		call_put(call);
	}
	owner_put(o);
	if (atomic_dec_and_test(&vol->lock_calls))
		wake_up_all(&vol->async_wait);
}

static void append_late(struct work_struct *work)
{
	append_unlock(container_of(to_delayed_work(work), struct lock_owner, append_work));
}

/* Until it is time to ask again. */
static int append_pause(struct lock_call *call)
{
	long left = wait_event_killable_timeout(call->wait, READ_ONCE(call->hinted),
						msecs_to_jiffies(call->state == PVFS_LK_QUEUED ? ASK_MS : GRACE_MS));

	return left < 0 ? -EINTR : 0;
}

static int append_ask(struct lock_owner *o, struct lock_call *call)
{
	struct pvfs_volume *vol = o->vol;
	u64 session, epoch, session_now, epoch_now;
	int err;

	for (;;) {
		pvfs_session_sample(vol, &session, &epoch);
		call_submit(call, PVFS_OP_LOCK, PVFS_LK_WAIT, false);
		err = call_wait(call) ?: call->err;
		if (err)
			return err;
		if (call->state != PVFS_LK_GRANTED) {
			err = append_pause(call);
			if (err) {
				call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
				return err;
			}
			continue;
		}
		spin_lock(&vol->locks_lock);
		o->appends = true;
		spin_unlock(&vol->locks_lock);
		/* As in lock_set(): a new mgr is told of it, or asked again. */
		pvfs_session_sample(vol, &session_now, &epoch_now);
		if (session_now == session && epoch_now == epoch)
			return 0;
	}
}

/**
 * pvfs_append_begin - no other client appends to a file, or cuts it, until pvfs_append_end()
 * @inode: the file; i_rwsem held exclusively until then
 * @ret: for pvfs_append_end()
 *
 * Return: 0, -EINTR killed, or -errno.
 */
int pvfs_append_begin(struct inode *inode, struct lock_owner **ret)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o = owner_get(inode, pi, PVFS_LK_APPEND, true);
	struct lock_call *call;
	struct file_lock fl;
	int err;

	if (!o)
		return -ENOMEM;
	if (cancel_delayed_work_sync(&o->append_work)) {
		owner_put(o);			/* the work's: ours is another */
		if (READ_ONCE(o->appends))
			goto out;
	} else {
		atomic_inc(&vol->lock_calls);	/* from here to append_unlock() */
	}
	append_lock_init(&fl, F_WRLCK);
	call = call_new(o, &fl, true);
	err = append_ask(o, call);
	call_put(call);
	if (err) {
		append_unlock(o);
		return err == -ESHUTDOWN || err == -ENOLCK ? -EIO : err;
	}
	o->since = jiffies;
out:
	*ret = o;
	return 0;
}

/**
 * pvfs_append_end - others may append: at once if they have waited for long, else soon
 * @o: from pvfs_append_begin()
 */
void pvfs_append_end(struct lock_owner *o)
{
	if (time_before(jiffies, o->since + msecs_to_jiffies(APPEND_MS)))
		queue_delayed_work(lock_wq, &o->append_work, 1);
	else
		append_unlock(o);
}

/* ---------------------------------------------------------------- close */

static void forget_lost(struct inode *inode, const void *key, u8 kind)
{
	struct lock_owner *o = owner_get(inode, key, kind, false);
	struct lock_call *call;
	struct file_lock all;
	bool lost;

	if (!o)
		return;
	spin_lock(&o->vol->locks_lock);
	lost = o->lost;
	o->lost = false;
	spin_unlock(&o->vol->locks_lock);
	if (lost) {
		/* A call that was under way may have got something in the new session. */
		locks_init_lock(&all);
		pvfs_fl(&all, type) = F_UNLCK;
		all.fl_start = 0;
		all.fl_end = OFFSET_MAX;
		call = call_new(o, &all, false);
		call_submit(call, PVFS_OP_LOCK, 0, true);
		call_put(call);
	}
	owner_put(o);
}

/**
 * pvfs_locks_flushed - a descriptor is closed: a process that lost its locks may begin anew
 * @file: the file
 * @id: the owner of the record locks
 */
void pvfs_locks_flushed(struct file *file, fl_owner_t id)
{
	struct inode *inode = file_inode(file);

	if (!list_empty_careful(&PVFS_I(inode)->lock_owners))
		forget_lost(inode, id, PVFS_LK_RECORD);
}

/**
 * pvfs_locks_released - the last descriptor of an open file is closed
 * @inode: the inode
 * @file: the file
 */
void pvfs_locks_released(struct inode *inode, struct file *file)
{
	if (list_empty_careful(&PVFS_I(inode)->lock_owners))
		return;
	forget_lost(inode, file, PVFS_LK_OFD);
	forget_lost(inode, file, PVFS_LK_FLOCK);
}

/**
 * pvfs_locks_evict - the inode goes; calls that nobody waits for may still be on their way
 * @inode: the inode
 */
void pvfs_locks_evict(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o, *next;
	LIST_HEAD(unused);

	if (list_empty_careful(&pi->lock_owners))
		return;
	spin_lock(&vol->locks_lock);
	list_for_each_entry_safe(o, next, &pi->lock_owners, link) {
		owner_unlink(o);
		if (!o->users)
			list_add(&o->link, &unused);
	}
	spin_unlock(&vol->locks_lock);
	list_for_each_entry_safe(o, next, &unused, link)
		kfree(o);
}

/* ---------------------------------------------------------------- another mgr, another session */

static void owner_lost(struct inode *inode, const struct held *h)
{
	struct lock_owner *o = owner_get(inode, h->key, h->kind, false);
	bool tell = false;

	if (h->kind == PVFS_LK_APPEND) {
		/* The next append asks for it anew. */
		append_drop(o);
		if (o)
			owner_put(o);
		return;
	}
	if (o) {
		spin_lock(&o->vol->locks_lock);
		tell = !o->lost;
		o->lost = true;
		spin_unlock(&o->vol->locks_lock);
	}
	if (tell)
		pr_warn_ratelimited("%s: inode %llu: locks of process %u are lost: it gets EIO for them until it closes the file\n",
				    PVFS_VOL(inode)->opts.volume, PVFS_I(inode)->fid.ino, h->pid);
	unlock_here(inode, h->key, h->kind, 0, OFFSET_MAX);
	if (o)
		owner_put(o);
}

/* Tells a new mgr of one lock. 0 also when it would not have it. */
static int reclaim_one(struct inode *inode, const struct held *h)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct lock_owner *o = owner_get(inode, h->key, h->kind, false);
	struct pvfs_lock_req m;
	u8 state = PVFS_LK_CONFLICT;
	int err = -ENOLCK;

	if (o) {
		m = (struct pvfs_lock_req){
			.fid = o->fid, .kind = o->kind, .type = h->type, .flags = PVFS_LK_RECLAIM, .owner = o->id,
			.pid = h->pid, .start = h->start, .end = h->end,
		};
		if (h->kind == PVFS_LK_FLOCK) {
			m.start = 0;
			m.end = PVFS_FILE_MAX;
		}
		spin_lock(&vol->locks_lock);
		m.ticket = ++vol->lock_ids;
		spin_unlock(&vol->locks_lock);
		err = pvfs_meta_lock_reclaim(vol, &m, &state);
		owner_put(o);
	}
	if (!err && state == PVFS_LK_GRANTED)
		return 0;
	if (err && err != -ENOLCK && err != -ESTALE && err != -EINVAL && err != -ENOENT)
		return err;
	owner_lost(inode, h);
	return 0;
}

static int each_held(struct inode *inode, int (*fn)(struct inode *inode, const struct held *h))
{
	struct held *held;
	int n, i, err = 0;

	n = held_get(inode, &held);
	if (n < 0)
		return n;
	for (i = 0; i < n && !err; i++)
		err = fn(inode, &held[i]);
	kvfree(held);
	return err;
}

static int lose_one(struct inode *inode, const struct held *h)
{
	owner_lost(inode, h);
	return 0;
}

static int each_inode(struct pvfs_volume *vol, int (*fn)(struct inode *inode, const struct held *h))
{
	u64 walk = pvfs_walk_begin();
	struct inode *inode;
	int err = 0;

	while (!err) {
		inode = pvfs_walk_next(walk, &vol->locks_lock, &vol->lock_inodes, offsetof(struct pvfs_inode, locked));
		if (!inode)
			break;
		err = each_held(inode, fn);
		iput(inode);
	}
	return err;
}

/**
 * pvfs_locks_lost - our session was ended, and the locks with it; others may have had them since
 * @vol: the volume
 *
 * Called by volume.c as pvfs_files_reclaim(), before it.
 *
 * Return: 0 or -ENOMEM.
 */
int pvfs_locks_lost(struct pvfs_volume *vol)
{
	return each_inode(vol, lose_one);
}

/**
 * pvfs_locks_reclaim - tell a new mgr what is locked
 * @vol: the volume
 *
 * Called by volume.c, after pvfs_files_reclaim(). A call that is granted while this runs finds out by itself that the
 * mgr is another: lock_set().
 *
 * Return: 0 or -errno: to be tried again.
 */
int pvfs_locks_reclaim(struct pvfs_volume *vol)
{
	int err = each_inode(vol, reclaim_one);

	return err ?: pvfs_meta_reclaim_done(vol);
}

/* ---------------------------------------------------------------- start and end */

/**
 * pvfs_locks_wait - before unmounting: until what nobody waits for has been answered, for some seconds; then see to it
 * @vol: the volume, which nobody can use any more
 */
void pvfs_locks_wait(struct pvfs_volume *vol)
{
	unsigned int ms = UMOUNT_WAIT_MS;

	/* Again, because one may have been on its way to the queue. */
	while (!wait_event_timeout(vol->async_wait, !atomic_read(&vol->lock_calls), msecs_to_jiffies(ms))) {
		WRITE_ONCE(vol->locks_dead, true);
		pvfs_volume_abort(vol);
		ms = 200;
	}
	/* The one that was last may still be looking at the volume. */
	flush_workqueue(lock_wq);
}

int pvfs_locks_init(void)
{
	lock_wq = alloc_workqueue("pvfs_lock", WQ_UNBOUND, 0);
	return lock_wq ? 0 : -ENOMEM;
}

void pvfs_locks_exit(void)
{
	destroy_workqueue(lock_wq);
}
