// SPDX-License-Identifier: GPL-2.0
/*
 * lock.c - flock(2), fcntl(2)'s record locks and open file description locks, which hold on all
 * clients: the mgr keeps them ("Locks" in docs/protocol.md). With locks=local only this node's
 * kernel does.
 *
 * The kernel's own lists (/proc/locks, what close unlocks) follow: a lock is entered there when the
 * mgr has granted it and taken out before the mgr is asked to unlock it, so they never say more
 * than the mgr does. What is in them is what a restarted mgr is told.
 *
 * Owners are pointers to the VFS, which are used again; the mgr knows them by numbers that are not.
 * An owner's requests go one after the other, each when the one before was answered: which of two
 * calls came last does then not depend on the channels they took. They are ASYNC, so that a killed
 * task can leave at once and what it asked for is still answered, and undone if it was a lock.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/pagemap.h>
#include "lock.h"

#define UMOUNT_WAIT_MS 5000

struct workqueue_struct *pvfs_lock_wq;

static bool lock_local(const struct inode *inode)
{
	return PVFS_VOL(inode)->opts.locks_local;
}

/* ---------------------------------------------------------------- the kernel's lists */

/* A lock as the kernel has it. */
struct held {
	const void *key;
	u8 kind, type;
	u32 pid;
	u64 start, end;
};

/*
 * flc_lock held. Those of one list; @at < @room are filled in. Return: the number with those
 * before.
 */
static unsigned int lock_held_list(struct list_head *list, struct held *held, unsigned int at,
				   unsigned int room)
{
	struct file_lock *fl;

	list_for_each_entry(fl, list, PVFS_FL_LIST) {
		if (at < room)
			held[at] = (struct held){
				.key = pvfs_fl(fl, owner),
				.kind = pvfs_lock_kind(fl),
				.type = pvfs_lock_type(fl),
				.pid = pvfs_fl(fl, pid),
				.start = fl->fl_start,
				.end = fl->fl_end,
			};
		at++;
	}
	return at;
}

/* The lock on appending, as the others. Return: the number with the @at before. */
static unsigned int lock_held_append(struct inode *inode, struct held *held, unsigned int at,
				     unsigned int room)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct lock_owner *o;

	spin_lock(&PVFS_VOL(inode)->locks_lock);
	o = pvfs_lock_owner_find(pi, pi, PVFS_LK_APPEND);
	if (o && o->appends) {
		if (at < room)
			held[at] = (struct held){
				.key = pi,
				.kind = PVFS_LK_APPEND,
				.type = PVFS_LK_WRITE,
				.end = PVFS_FILE_MAX,
			};
		at++;
	}
	spin_unlock(&PVFS_VOL(inode)->locks_lock);
	return at;
}

static unsigned int lock_held_fill(struct inode *inode, struct held *held, unsigned int room)
{
	/* Pairs with the VFS's publishing of it. */
	struct file_lock_context *ctx = smp_load_acquire(&inode->i_flctx);
	unsigned int n = 0;

	if (ctx) {
		spin_lock(&ctx->flc_lock);
		n = lock_held_list(&ctx->flc_flock, held, n, room);
		n = lock_held_list(&ctx->flc_posix, held, n, room);
		spin_unlock(&ctx->flc_lock);
	}
	return lock_held_append(inode, held, n, room);
}

/* All locks of an inode, to be freed by kvfree(). Return: how many, or -ENOMEM. */
static int lock_held_get(struct inode *inode, struct held **ret)
{
	unsigned int n, room = 16;
	struct held *held;

	for (;;) {
		held = kvmalloc_array(room, sizeof(*held), GFP_KERNEL);
		if (!held)
			return -ENOMEM;
		n = lock_held_fill(inode, held, room);
		if (n <= room)
			break;
		kvfree(held);
		room = n + 16;
	}
	*ret = held;
	return n;
}

/* locks_lock held. Has the kernel any lock of this owner? */
bool pvfs_lock_owner_holds(const struct lock_owner *o)
{
	/* Pairs with the VFS's publishing of it. */
	struct file_lock_context *ctx = smp_load_acquire(&o->pi->vfs_inode.i_flctx);
	struct file_lock *fl;
	bool ret = false;

	if (!ctx || o->kind == PVFS_LK_APPEND)
		return false;
	spin_lock(&ctx->flc_lock);
	list_for_each_entry(fl, o->kind == PVFS_LK_FLOCK ? &ctx->flc_flock : &ctx->flc_posix,
			    PVFS_FL_LIST)
		ret |= pvfs_fl(fl, owner) == o->key && pvfs_lock_kind(fl) == o->kind;
	spin_unlock(&ctx->flc_lock);
	return ret;
}

/* Takes a lock, all of it or @fl's range, out of the kernel's lists. */
static void lock_unlock_here(struct inode *inode, const void *key, u8 kind, u64 start, u64 end)
{
	struct file_lock fl;

	locks_init_lock(&fl);
	pvfs_fl(&fl, type) = F_UNLCK;
	pvfs_fl(&fl, owner) = (fl_owner_t)key;
	pvfs_fl(&fl, flags) = kind == PVFS_LK_FLOCK ? FL_FLOCK : FL_POSIX;
	if (kind == PVFS_LK_OFD)
		pvfs_fl(&fl, flags) |= FL_OFDLCK;
	/* The VFS compares it; for flock it is the owner. */
	pvfs_fl(&fl, file) = kind == PVFS_LK_FLOCK ? (struct file *)key : NULL;
	fl.fl_start = start;
	fl.fl_end = end;
	locks_lock_inode_wait(inode, &fl);
}

/* ---------------------------------------------------------------- lock and unlock */

/*
 * The lock is ours: enter it into the kernel's lists. Another owner of this node may just be
 * leaving them.
 */
static int lock_enter_here(struct file *file, struct file_lock *fl)
{
	unsigned int flags = pvfs_fl(fl, flags);
	int err;

	pvfs_fl(fl, flags) |= FL_SLEEP;
	err = locks_lock_file_wait(file, fl);
	pvfs_fl(fl, flags) = flags;
	return err;
}

/*
 * Waits until it is time to ask again. Return: 0; -ERESTARTSYS a signal came: *@granted says
 * whether the lock had come first and is kept; -EIO umount -f.
 */
static int lock_call_pause(struct lock_call *call, bool *granted)
{
	u8 state = call->state;
	long left;
	int err;

	*granted = false;
	left = wait_event_interruptible_timeout(call->wait, pvfs_lock_call_stirred(call),
						msecs_to_jiffies(state == PVFS_LK_QUEUED ?
									 PVFS_LOCK_ASK_MS :
									 PVFS_LOCK_GRACE_MS));
	if (pvfs_lock_call_aborted(call)) {
		pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
		return -EIO;
	}
	if (left >= 0 || state != PVFS_LK_QUEUED)
		return left < 0 ? -ERESTARTSYS : 0;
	if (fatal_signal_pending(current)) {
		pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
		return -EINTR;
	}
	pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, PVFS_LK_KEEP, false);
	err = pvfs_lock_call_wait(call);
	*granted = !err && !call->err && call->state;
	return *granted ? 0 : -ERESTARTSYS;
}

/* What was cached may be older than the lock. */
static void lock_refresh(struct inode *inode)
{
	if (!S_ISREG(inode->i_mode))
		return;
	pvfs_attr_distrust(inode);
	if (!inode->i_mapping->nrpages)
		return;
	if (pvfs_meta_getattr(inode))
		pvfs_cache_forget(inode, 0, LLONG_MAX);
	else
		pvfs_cache_check(inode);
}

static void lock_owner_lost(struct inode *inode, const struct held *h);

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

	o = pvfs_lock_owner_get(inode, pvfs_fl(fl, owner), kind, true);
	if (!o)
		return -ENOLCK;
	call = pvfs_lock_call_new(o, fl, wait);
	flags = call->m.flags;
	for (;;) {
		err = -EIO;
		if (READ_ONCE(o->lost)) {
			/* The new session may have been granted it. */
			if (entered)
				pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			break;
		}
		pvfs_session_sample(vol, &session, &epoch);
		err = pvfs_lock_call_ask(call, flags);
		if (err)
			break;
		granted = call->state == PVFS_LK_GRANTED;
		/*
		 * It was entered, but a restarted mgr had given it to another meanwhile. We had not
		 * used it; but what the owner had before can't be told from it any more.
		 */
		if (!granted && entered && held) {
			lock_owner_lost(inode, &(struct held){ .key = o->key,
							       .kind = kind,
							       .pid = call->m.pid });
			if (call->state == PVFS_LK_QUEUED)
				pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			err = -EIO;
			break;
		}
		if (!granted && entered) {
			lock_unlock_here(inode, o->key, kind, call->m.start, call->m.end);
			entered = false;
		}
		if (call->state == PVFS_LK_CONFLICT || call->state == PVFS_LK_DEADLOCK) {
			err = call->state == PVFS_LK_CONFLICT ? -EAGAIN : -EDEADLK;
			break;
		}
		if (!granted) {
			queued |= call->state == PVFS_LK_QUEUED;
			err = lock_call_pause(call, &granted);
			if (err)
				break;
			if (!granted)
				continue;
		}
		if (!entered) {
			spin_lock(&vol->locks_lock);
			held = pvfs_lock_owner_holds(o);
			spin_unlock(&vol->locks_lock);
			err = lock_enter_here(file, fl);
		}
		if (err) {
			pvfs_lock_call_submit(call, PVFS_OP_LOCK_CANCEL, 0, true);
			break;
		}
		entered = true;
		/*
		 * If the mgr is a new one, it may have been told what we hold before this was in
		 * the lists: ask again. If not, it will be told of this one too.
		 */
		pvfs_session_sample(vol, &session_now, &epoch_now);
		if (session_now == session && epoch_now == epoch)
			break;
	}
	/*
	 * As the kernel's own flock: what was held goes when one begins to wait for another type.
	 */
	if (err && queued && kind == PVFS_LK_FLOCK)
		lock_unlock_here(inode, o->key, kind, 0, OFFSET_MAX);
	else if (err && entered)
		lock_unlock_here(inode, o->key, kind, call->m.start, call->m.end);
	pvfs_lock_call_put(call);
	pvfs_lock_owner_put(o);
	if (!err)
		lock_refresh(inode);
	return err == -ESHUTDOWN ? -EIO : err;
}

static int lock_unset(struct file *file, struct file_lock *fl, u8 kind)
{
	struct inode *inode = file_inode(file);
	struct lock_owner *o;
	/* The kernel's threads let go of files for everybody: they wait for nobody. */
	bool waits = !(current->flags & PF_KTHREAD);
	struct lock_call *call;
	int err;

	/*
	 * Who locks it next is to see what we wrote: data is with the iods, size and time are told
	 * now. (Else the mgr asks the iods, until the close has told it.)
	 */
	if (waits && S_ISREG(inode->i_mode) && pvfs_writes_pending(inode))
		pvfs_meta_report(inode, 0, 0);
	o = pvfs_lock_owner_get(inode, pvfs_fl(fl, owner), kind, false);
	/*
	 * At close the VFS unlocks an open file description's without saying that it is one; no
	 * process has that owner.
	 */
	if (!o && kind == PVFS_LK_RECORD)
		o = pvfs_lock_owner_get(inode, pvfs_fl(fl, owner), PVFS_LK_OFD, false);
	err = locks_lock_file_wait(file, fl);
	if (!o)
		return err;
	if (!READ_ONCE(o->lost)) {
		call = pvfs_lock_call_new(o, fl, false);
		pvfs_lock_call_submit(call, PVFS_OP_LOCK, 0, false);
		/* Killed: it is unlocked all the same. */
		if (waits && !pvfs_lock_call_wait(call) && !err && call->err)
			err = call->err == -ENOLCK ? -ENOLCK : -EIO;
		pvfs_lock_call_put(call);
	} else if (!err) {
		err = -EIO;		/* it has not been ours all the while */
	}
	pvfs_lock_owner_put(o);
	return err;
}

static int lock_get(struct file *file, struct file_lock *fl, u8 kind)
{
	struct inode *inode = file_inode(file);
	struct pvfs_getlk_req m = {
		.fid = PVFS_I(inode)->fid,
		.kind = kind,
		.type = pvfs_lock_type(fl),
		.start = fl->fl_start,
		.end = fl->fl_end,
	};
	struct lock_owner *o = pvfs_lock_owner_get(inode, pvfs_fl(fl, owner), kind, false);
	struct pvfs_getlk_rep r;
	int err;

	if (o) {
		m.owner = o->id;	/* else 0, which is nobody's */
		pvfs_lock_owner_put(o);
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
	/*
	 * An open file description's is told as -1; of another node's process the number is
	 * negative, as usual.
	 */
	pvfs_fl(fl, flags) &= ~FL_OFDLCK;
	if (r.kind == PVFS_LK_OFD)
		pvfs_fl(fl, flags) |= FL_OFDLCK;
	pvfs_fl(fl, pid) = r.own ? (pid_t)r.pid : -(pid_t)r.pid;
	return 0;
}

/**
 * pvfs_file_lock - fcntl(2): F_GETLK, F_SETLK, F_SETLKW and their OFD kin; and the unlock of all at
 * close
 * @file: the file
 * @cmd: F_GETLK, F_SETLK or F_SETLKW; FL_OFDLCK in @fl tells the kinds apart
 * @fl: the lock
 */
int pvfs_file_lock(struct file *file, int cmd, struct file_lock *fl)
{
	if (!(pvfs_fl(fl, flags) & FL_POSIX))
		return -ENOLCK;
	if (cmd == F_GETLK) {
		if (!lock_local(file_inode(file)))
			return lock_get(file, fl, pvfs_lock_kind(fl));
		posix_test_lock(file, fl);
		return 0;
	}
	if (lock_local(file_inode(file)))
		return locks_lock_file_wait(file, fl);
	if (pvfs_fl(fl, type) == F_UNLCK)
		return lock_unset(file, fl, pvfs_lock_kind(fl));
	return lock_set(file, fl, pvfs_lock_kind(fl), cmd == F_SETLKW);
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
	if (lock_local(file_inode(file)))
		return locks_lock_file_wait(file, fl);
	if (pvfs_fl(fl, type) == F_UNLCK)
		return lock_unset(file, fl, PVFS_LK_FLOCK);
	return lock_set(file, fl, PVFS_LK_FLOCK, cmd == F_SETLKW);
}

/* ---------------------------------------------------------------- close */

static void lock_forget_lost(struct inode *inode, const void *key, u8 kind)
{
	struct lock_owner *o = pvfs_lock_owner_get(inode, key, kind, false);
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
		call = pvfs_lock_call_new(o, &all, false);
		pvfs_lock_call_submit(call, PVFS_OP_LOCK, 0, true);
		pvfs_lock_call_put(call);
	}
	pvfs_lock_owner_put(o);
}

/**
 * pvfs_locks_flushed - a descriptor is closed: a process that lost its locks may begin anew
 * @file: the file
 * @id: the owner of the record locks
 */
void pvfs_locks_flushed(struct file *file, fl_owner_t id)
{
	struct inode *inode = file_inode(file);

	if (!list_empty_careful(&PVFS_I(inode)->locks.owners))
		lock_forget_lost(inode, id, PVFS_LK_RECORD);
}

/**
 * pvfs_locks_released - the last descriptor of an open file is closed
 * @inode: the inode
 * @file: the file
 */
void pvfs_locks_released(struct inode *inode, struct file *file)
{
	if (list_empty_careful(&PVFS_I(inode)->locks.owners))
		return;
	lock_forget_lost(inode, file, PVFS_LK_OFD);
	lock_forget_lost(inode, file, PVFS_LK_FLOCK);
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

	if (list_empty_careful(&pi->locks.owners))
		return;
	spin_lock(&vol->locks_lock);
	list_for_each_entry_safe(o, next, &pi->locks.owners, link) {
		pvfs_lock_owner_unlink(o);
		if (!o->users)
			list_add(&o->link, &unused);
	}
	spin_unlock(&vol->locks_lock);
	list_for_each_entry_safe(o, next, &unused, link)
		kfree(o);
}

/* ---------------------------------------------------------------- another mgr, another session */

static void lock_owner_lost(struct inode *inode, const struct held *h)
{
	struct lock_owner *o = pvfs_lock_owner_get(inode, h->key, h->kind, false);
	bool tell = false;

	if (h->kind == PVFS_LK_APPEND) {
		/* The next append asks for it anew. */
		pvfs_lock_append_drop(o);
		if (o)
			pvfs_lock_owner_put(o);
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
	lock_unlock_here(inode, h->key, h->kind, 0, OFFSET_MAX);
	if (o)
		pvfs_lock_owner_put(o);
}

/* Tells a new mgr of one lock. 0 also when it would not have it. */
static int lock_reclaim_one(struct inode *inode, const struct held *h)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct lock_owner *o = pvfs_lock_owner_get(inode, h->key, h->kind, false);
	struct pvfs_lock_req m;
	u8 state = PVFS_LK_CONFLICT;
	int err = -ENOLCK;

	if (o) {
		m = (struct pvfs_lock_req){
			.fid = o->fid,
			.kind = o->kind,
			.type = h->type,
			.flags = PVFS_LK_RECLAIM,
			.owner = o->id,
			.pid = h->pid,
			.start = h->start,
			.end = h->end,
		};
		if (h->kind == PVFS_LK_FLOCK) {
			m.start = 0;
			m.end = PVFS_FILE_MAX;
		}
		spin_lock(&vol->locks_lock);
		m.ticket = ++vol->lock_ids;
		spin_unlock(&vol->locks_lock);
		err = pvfs_meta_lock_reclaim(vol, &m, &state);
		pvfs_lock_owner_put(o);
	}
	if (!err && state == PVFS_LK_GRANTED)
		return 0;
	if (err && err != -ENOLCK && err != -ESTALE && err != -EINVAL && err != -ENOENT && err != -EREMOTEIO)
		return err;
	if (err == -EREMOTEIO)
		pr_warn_ratelimited("%s: inode %llu was locked here, and the mgr can't read it (EIO)\n",
				    vol->opts.volume, PVFS_I(inode)->fid.ino);
	lock_owner_lost(inode, h);
	return 0;
}

static int lock_each_held(struct inode *inode, int (*fn)(struct inode *inode, const struct held *h))
{
	struct held *held;
	int n, i, err = 0;

	n = lock_held_get(inode, &held);
	if (n < 0)
		return n;
	for (i = 0; i < n && !err; i++)
		err = fn(inode, &held[i]);
	kvfree(held);
	return err;
}

static int lock_lose_one(struct inode *inode, const struct held *h)
{
	lock_owner_lost(inode, h);
	return 0;
}

static int lock_each_inode(struct pvfs_volume *vol,
			   int (*fn)(struct inode *inode, const struct held *h))
{
	struct inode *inode;
	struct pvfs_walk w;
	int err = 0;

	pvfs_walk_begin(&w, &vol->locks_lock, &vol->lock_inodes, offsetof(struct pvfs_inode, locks.listed));
	while (!err) {
		inode = pvfs_walk_next(&w);
		if (!inode)
			break;
		err = lock_each_held(inode, fn);
		pvfs_iput_later(inode);
	}
	pvfs_walk_end(&w);
	return err;
}

/**
 * pvfs_locks_lost - our session was ended, and the locks with it; others may have had them since
 * @vol: the volume
 *
 * As pvfs_volume_ops.locks_lost: part of recovery, before pvfs_files_reclaim().
 *
 * Return: 0 or -ENOMEM.
 */
int pvfs_locks_lost(struct pvfs_volume *vol)
{
	return lock_each_inode(vol, lock_lose_one);
}

/**
 * pvfs_locks_are_lost - has the caller lost locks of a file with a session, and not closed it since?
 * @file: the file, through which he writes
 *
 * Others may have had the lock, and written what it was to keep: nothing may be written that was to be under it. Of a session
 * that has ended it is known before there is a capability of the next.
 */
bool pvfs_locks_are_lost(const struct file *file)
{
	struct pvfs_inode *pi = PVFS_I(file_inode(file));
	struct lock_owner *o;
	bool ret = false;

	if (list_empty(&pi->locks.owners))
		return false;
	spin_lock(&PVFS_VOL(file_inode(file))->locks_lock);
	list_for_each_entry(o, &pi->locks.owners, link)
		ret |= o->lost && (o->key == file || o->key == current->files);
	spin_unlock(&PVFS_VOL(file_inode(file))->locks_lock);
	return ret;
}

/**
 * pvfs_locks_reclaim - tell a new mgr what is locked
 * @vol: the volume
 *
 * Part of recovery, after pvfs_files_reclaim(). A call that is granted while this runs finds out
 * by itself that the mgr is another: lock_set().
 *
 * Return: 0 or -errno: to be tried again.
 */
int pvfs_locks_reclaim(struct pvfs_volume *vol)
{
	return lock_each_inode(vol, lock_reclaim_one);
}

/* ---------------------------------------------------------------- start and end */

/**
 * pvfs_locks_wait - before unmounting: until what nobody waits for has been answered, for some
 * seconds; then see to it
 * @vol: the volume, which nobody can use any more
 */
void pvfs_locks_wait(struct pvfs_volume *vol)
{
	unsigned int ms = UMOUNT_WAIT_MS;

	/* Again, because one may have been on its way to the queue. */
	while (!wait_event_timeout(vol->async_wait, !atomic_read(&vol->lock_calls),
				   msecs_to_jiffies(ms))) {
		WRITE_ONCE(vol->locks_dead, true);
		pvfs_volume_abort(vol);
		ms = 200;
	}
	/* The one that was last may still be looking at the volume. */
	flush_workqueue(pvfs_lock_wq);
}

int pvfs_locks_init(void)
{
	pvfs_lock_wq = alloc_workqueue("pvfs_lock", WQ_UNBOUND, 0);
	return pvfs_lock_wq ? 0 : -ENOMEM;
}

void pvfs_locks_exit(void)
{
	destroy_workqueue(pvfs_lock_wq);
}
