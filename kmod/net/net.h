/* SPDX-License-Identifier: GPL-2.0 */
/*
 * net.h - the seam between the module's two halves: what the lower one has for the VFS half.
 *
 *   ../fs/  VFS half: super.c inode.c namei.c file.c cache.c lock.c ...: see vfs.h there; knows nothing of sockets
 *           meta*.c (one function per mgr operation), io.c (split over iods, gather);
 *           upcall.c has what the lower half may call: struct pvfs_volume_ops
 *   ---------------------------------------------------------------------- this file
 *   ./      lower half: kreq.c (a request's life), conn.c and conn_rx.c (a channel's life), tcp_kern.c,
 *           auth_kern.c, kpvfsd.c (threads), volume.c (mount, session, heartbeat), stats.c,
 *           trace.[ch]. They share conn.h, and include nothing of ../fs/
 */
#ifndef PVFS_NET_H
#define PVFS_NET_H

#include <linux/atomic.h>
#include <linux/bvec.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/utsname.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "../../common/msg.h"
#include "../../common/stripe.h"
#include "../fs_state.h"
#include "../kcompat.h"

#undef pr_fmt
#define pr_fmt(fmt) "pvfs: " fmt

/* ---------------------------------------------------------------- options */

/* Mount options, parsed; lives in the volume. */
struct pvfs_opts {
	char host[PVFS_HOST_MAX + 1];	/* mgr's name as the user wrote it, for messages */
	char volume[PVFS_VOLUME_MAX + 1];
	struct sockaddr_storage addr;	/* mgr's address and port */
	u8 key[PVFS_KEY_LEN];		/* cluster key */
	bool soft;			/* else hard: wait for a lost server for ever */
	unsigned int timeo_ms;		/* soft: a request fails with -EIO after so long */
	unsigned int nconnect;		/* channels per server; 0: default */
	/* largest payload of one request, bytes; power of two, 4 KiB .. PVFS_PAYLOAD_MAX */
	u32 rsize, wsize;
	bool readdir_one;		/* one entry a READDIR, as the papers compare */
	bool locks_local;		/* file locks hold among this node's processes only */
	/* attributes and names may be this old; 0 (default): always asked */
	unsigned int actimeo_ms;
	bool lease;	/* take leases on attributes and names; not with actimeo */
	bool cache;	/* and read striped files through the page cache under them */
	bool flush_close;	/* close waits until what was written under them is with the iods */
};

/* ---------------------------------------------------------------- requests */

/*
 * NEW --submit--> QUEUED --post--> POSTED --reply--> DONE
 *                   ^                 |
 *                   +---- fault ------+   connection lost: sent again on the same channel
 * and from QUEUED or POSTED --abandon--> DONE (killed, timed out, unmounted).
 * Moved and traced by req_set_state() in kreq.c only.
 */
enum pvfs_req_state {
	PVFS_REQ_NEW,		/* being built by its owner */
	/* on its channel's queue: wants a connection, a credit or the socket */
	PVFS_REQ_QUEUED,
	PVFS_REQ_POSTED,	/* given to the socket, at least in part; its tag is taken */
	PVFS_REQ_DONE,		/* err, rep and payload are final; completed */
};

/* inline room for a request's body; longer ones get memory of their own */
#define PVFS_REQ_BODY 1024
#define PVFS_REQ_REP 640	/* inline room for a reply's body */

/* req->flags */
/* part of (re)establishing a session: passes while others are held */
#define PVFS_RF_RECOVERY	0x1
#define PVFS_RF_ASYNC		0x2	/* nobody waits; ->done is called */
#define PVFS_RF_GIVES		0x4	/* others may be waiting for what it does, and it waits for nobody */

struct pvfs_server;
struct pvfs_conn;
struct pvfs_volume;

/**
 * struct pvfs_request - one exchange with a server
 *
 * Made by pvfs_req_alloc() with one reference (the owner's); pvfs_req_submit() takes another that
 * the lower half drops at DONE. The owner fills body and payload before submit and reads err, rep,
 * in_len after pvfs_req_wait() returned.
 *
 * Payload memory belongs to the owner. When pvfs_req_wait() has returned - whatever it returned -
 * nothing below touches it any more.
 */
struct pvfs_request {
	/* owner's, set between alloc and submit */
	u16 op;
	u16 flags;			/* PVFS_RF_* */
	u8 *body;			/* encode here; body_room bytes */
	u32 body_room, body_len;
	u8 *rep;	/* reply's body; inline, or the owner's memory set before submit */
	u32 rep_room;
	const struct bio_vec *bv;	/* payload, sent or received */
	unsigned int nbv;
	u32 bv_len;			/* its bytes, sent all; or room for the reply's */
	bool write;			/* payload goes out; else comes in */
	/* ASYNC: at DONE, on a kpvfsd thread or wherever it failed; must not sleep on requests */
	void (*done)(struct pvfs_request *req);
	void *priv;			/* ASYNC: for done() */

	/* result, valid at DONE */
	/* 0 or -errno: the server's, -EINTR killed, -EIO timed out (soft), -ESHUTDOWN unmounting */
	int err;
	bool answered;			/* that the server has said itself */
	u32 rep_len;
	u32 in_len;			/* payload bytes received */

	/* lower half's */
	enum pvfs_req_state state;	/* conn->lock */
	bool resend;			/* conn->lock: was on a connection that was lost */
	u64 session;			/* conn->lock: in which it was posted last */
	u64 connect;			/* conn->lock: on which of the channel's connections */
	refcount_t ref;
	struct pvfs_server *server;
	struct pvfs_conn *conn;		/* its channel, from submit on */
	/* conn->rx_mutex: nobody waits any more; the reply is read and thrown away */
	bool detached;
	struct list_head link;		/* conn->queue or conn->posted, conn->lock */
	u32 tag;
	u16 slot;			/* ONCE only; held until DONE */
	bool has_slot;
	u32 slot_seq;
	wait_queue_head_t wait;		/* not ASYNC: the owner sleeps here until `ended' */
	bool ended;
	u64 t_submit, t_post;		/* ns */
	u8 inline_body[PVFS_REQ_BODY];
	u8 inline_rep[PVFS_REQ_REP];
};

/**
 * pvfs_req_alloc - a new request to @server
 * @body_room: bytes its body may need; up to PVFS_BODY_MAX
 *
 * Memory comes from a bounded pool: may sleep until another request is done, killably. For an ONCE
 * operation this also takes a slot of the session (killable wait). Do not hold one ONCE request
 * while allocating another.
 *
 * Return: the request, or ERR_PTR(-EINTR | -ENOMEM | -ESHUTDOWN).
 */
struct pvfs_request *pvfs_req_alloc(struct pvfs_server *server, enum pvfs_op op, u32 body_room);
struct pvfs_request *pvfs_req_alloc_giving(struct pvfs_server *server, enum pvfs_op op, u32 body_room);
void pvfs_req_put(struct pvfs_request *req);

/* Starts it. Sends from the caller when the channel is idle; never blocks on the network. */
void pvfs_req_submit(struct pvfs_request *req);

/**
 * pvfs_req_wait - wait until it is done, killed, or (soft) timed out
 *
 * Once per submitted request that is not ASYNC. After it returned the payload memory is the owner's
 * again.
 *
 * Return: req->err.
 */
int pvfs_req_wait(struct pvfs_request *req);

/* Submit and wait. */
static inline int pvfs_req_run(struct pvfs_request *req)
{
	pvfs_req_submit(req);
	return pvfs_req_wait(req);
}

/* ---------------------------------------------------------------- volume */

struct pvfs_stats;	/* stats.h */
struct net;

/*
 * What a volume's requests may use at once. Each has its own: those that wait for one volume's server
 * leave the others' alone.
 */
struct pvfs_room {
	mempool_t *reqs;		/* kreq.c; ready when memory is short */
	atomic_t requests;		/* that may be made yet */
	wait_queue_head_t requests_wait;	/* `requests' grew */
	mempool_t *ios;			/* io.c: small transfers that never fail */
	atomic_t big;			/* big transfers that may begin yet */
	atomic_t ahead;			/* transfers that may go on alone yet */
	unsigned long lists;		/* no list before that, jiffies: there was no memory for one */
	atomic_t permits[2];		/* requests that transfers may make yet; and those that give */
	wait_queue_head_t io_wait;	/* big, or one of the permits, grew */
};

/**
 * struct pvfs_volume_ops - all that the lower half tells the VFS half
 * @init: Makes the VFS half's part of @vol, which is zero. Before there is a connection; may sleep; no
 *	locks are held. Return: 0 or -ENOMEM; @fini follows in either case.
 * @fini: Frees it. Nothing is on its way any more, and all inodes are gone; may sleep; no locks are
 *	held. Also after an @init that failed, or was not called.
 * @lock_granted: LOCK_GRANT has come: some locks would be granted now. Where replies are received, by a
 *	task that waits for one or a kpvfsd thread, with conn->rx_mutex held: must not sleep. @req is
 *	borrowed. Return: 0 or -errno, for the answer.
 * @recall: RECALL has come: leases on some inodes are over. As @lock_granted. Return: 0; -EAGAIN: not of
 *	all of them yet, the mgr is told later; or -EBADMSG.
 * @settle: SETTLE has come: another client wants to know what a file is like. As @lock_granted. Return: 0:
 *	all that was written to it is with the iods; -EAGAIN: not yet, the mgr is told later.
 * @yield: YIELD has come: another client wants to be alone with a file. As @lock_granted. Return: 0: nothing of
 *	it is here, or under way; -EAGAIN: not yet, the mgr is told later; or -EBADMSG.
 * @leases_void: Nothing that was told so far is believed any more: the session or the mgr is another, or
 *	nobody knows what became of a change. May be called under conn->lock (bottom halves off): must not
 *	sleep, nor take a lock.
 * @leases_unsure: @delta 1: a change that we asked for may be made at any time, and nobody will tell
 *	us; -1: one of these is over. As @leases_void.
 * @close_current: @req, a CLOSE, is about to be sent, maybe to another mgr, or in another session, than
 *	it was made for; its body may still be changed, not its length. Its sender, any task, holds
 *	conn->tx_mutex: must not sleep.
 * @locks_lost: The session is gone, and file locks with it. First part of recovery, a work item; may
 *	sleep, not send; no locks are held. Memory is taken without I/O. It is over before
 *	pvfs_volume_leave() returns. Return: 0 or -errno: tried again after a pause.
 * @reclaim: The mgr or the session is new: tells it what is open, and locked. As @locks_lost, but sends
 *	requests, with PVFS_RF_RECOVERY, and waits for them.
 * @reclaim_done: All was told to the mgr with that @epoch: tells that, too. As @reclaim, but may be called
 *	when inodes are gone: it holds none. Return: 0, -EAGAIN: the mgr is another by now; or -errno.
 * @flush: Unmounting: what is kept back (closes) is to be sent now, with ASYNC requests that are waited
 *	for afterwards. No inodes are left; may sleep; no locks are held.
 * @end: Unmounting: requests fail from now on. When it returns the VFS half makes none, and has no work
 *	queued that does. May sleep; no locks are held.
 * @show_leases: Writes the lines of /proc/fs/pvfs/<volume>/leases to @m. A read(2) of it; may sleep; only
 *	the seq_file's lock is held.
 * @reset_leases: Counters begin anew: what it has of them, too. A write(2); may sleep; no locks are held.
 *
 * Constant; given with pvfs_volume_open(). Every member is there. None may wait for a request but where
 * it says so, nor take a lock under which one is made.
 */
struct pvfs_volume_ops {
	int (*init)(struct pvfs_volume *vol);
	void (*fini)(struct pvfs_volume *vol);

	int (*lock_granted)(struct pvfs_volume *vol, const struct pvfs_lock_grant_req *req);
	int (*recall)(struct pvfs_volume *vol, const struct pvfs_recall_req *req);
	int (*settle)(struct pvfs_volume *vol, const struct pvfs_settle_req *req);
	int (*yield)(struct pvfs_volume *vol, const struct pvfs_yield_req *req);

	void (*leases_void)(struct pvfs_volume *vol);
	void (*leases_unsure)(struct pvfs_volume *vol, int delta);
	void (*close_current)(struct pvfs_request *req);

	int (*locks_lost)(struct pvfs_volume *vol);
	int (*reclaim)(struct pvfs_volume *vol);
	int (*reclaim_done)(struct pvfs_volume *vol, u64 epoch);

	void (*flush)(struct pvfs_volume *vol);
	void (*end)(struct pvfs_volume *vol);

	void (*show_leases)(struct seq_file *m, struct pvfs_volume *vol);
	void (*reset_leases)(struct pvfs_volume *vol);
};

/**
 * struct pvfs_volume - one mounted volume: session, servers, counters; sb->s_fs_info
 *
 * Fields without a remark are constant after pvfs_volume_open().
 */
struct pvfs_volume {
	struct pvfs_opts opts;
	const struct pvfs_volume_ops *ops;
	struct net *net;		/* the mounter's network namespace */
	char client_host[__NEW_UTS_LEN + 1];
	u8 client_id[PVFS_UUID_LEN];	/* random; finds our session again */
	u8 uuid[PVFS_UUID_LEN];
	struct pvfs_fid root;
	struct pvfs_server *mgr;
	u32 niods;
	struct pvfs_server **iods;
	u32 rsize, wsize;		/* opts' cut down to what the iods take */
	u32 lease_ms;			/* changed by recover_work only */
	u64 renew_asked;		/* boot time, ns: of the heartbeat under way */
	u64 renewed;			/* of the last that was answered. Without a lock */

	/* session: volume.c */
	/* protects session, epoch, slots, recovering, dead, leaving, walking */
	spinlock_t lock;
	u64 session;
	u8 ticket[PVFS_TICKET_LEN];	/* for AUTH in it */
	u64 epoch;			/* of the mgr */
	bool recovering;		/* only RECOVERY requests go to the mgr */
	u32 recoveries;			/* that have begun. Read without the lock */
	bool dead;			/* unmounting: requests fail with -ESHUTDOWN */
	bool cut;			/* the mgr was up when requests were aborted. No lock */
	bool leaving;			/* unmounting: recovery may not hold inodes any more */
	bool walking;			/* recovery may hold some; false wakes async_wait */
	u32 nslots;
	unsigned long *slot_busy;
	u32 *slot_seq;
	wait_queue_head_t slot_wait;
	struct delayed_work renew_work;
	struct work_struct recover_work;
	atomic_t async;			/* ASYNC requests in flight */
	wait_queue_head_t async_wait;

	struct pvfs_room room;
	/*
	 * Both with a rescuer of this volume's, so that it comes back when memory is short, whatever
	 * others wait for. Apart, as recovery waits for connections.
	 */
	struct workqueue_struct *connect_wq;
	struct workqueue_struct *recover_wq;	/* and heartbeats, which wait for nobody */

	struct pvfs_stats __percpu *stats;
	struct proc_dir_entry *proc;
	char proc_name[PVFS_VOLUME_MAX + 16];
	struct list_head volumes;	/* stats.c's list of all, its mutex */

	/*
	 * The VFS half's; the lower one looks at nothing that follows. Open files, walked by
	 * pvfs_files_reclaim().
	 */
	spinlock_t open_lock;		/* protects open_list, each inode's link on it, deferred */
	struct list_head open_list;
	/* CLOSEs and transfers on their way that hold an inode; 0 wakes async_wait */
	atomic_t closing;
	atomic_t wrote;		/* pages that were written back so far, about */
	atomic_t drafts_due;	/* drafts with something in them */
	atomic_t late;		/* files that work items write with nobody waiting, see late.c */
	atomic_t redirtied;	/* pages that were given back dirty by who was to write them */
	int rewritten;		/* the same, when all that was dirty was written the last time for that */
	atomic64_t reports;	/* of writes that the mgr has taken in, so far */

	/* file locks: lock.c */
	spinlock_t locks_lock;		/* protects the next three, and all owners and calls */
	struct list_head lock_inodes;	/* those with locks.owners */
	struct list_head lock_waits;	/* calls that LOCK_GRANT may name */
	u64 lock_ids;			/* the last owner's or ticket's number */
	atomic_t lock_calls;		/* that exist; 0 wakes async_wait */
	u32 aborts;	/* umount -f came so often, or umount has no patience; under locks_lock */
	unsigned long forced;		/* when umount -f came the last time, jiffies; 0: never */
	bool locks_dead;		/* unmounting, and the mgr does not answer: they fail */
	bool idmapped;			/* was seen through a mount that maps ids; never reset */

	/* What the VFS half leaves to others, and may take as long as a server is away. */
	struct workqueue_struct *vfs_wq;
	struct workqueue_struct *late_wq;	/* pages that nobody waits for are written */
	struct workqueue_struct *put_wq;	/* last references to inodes: they wait for pages */
	struct workqueue_struct *io_wq;	/* transfers that failed: pages wait for them */
	/* Pages that are written back where somebody has to wait for the answer: the same. */
	struct workqueue_struct *back_wq;

	struct pvfs_leases leases;
	struct pvfs_listings listings;
	struct pvfs_closes closes;
	struct pvfs_deferred deferred;
	struct pvfs_unstables unstable;

	struct super_block *sb;		/* NULL until there is one */
};

/**
 * pvfs_volume_open - connect to the mgr, open a session, learn the iods
 * @opts: copied; the key too
 * @ops: the VFS half's; constant
 * @ret: the volume on success
 * @why: on failure one line for the user (host's name included), room 160
 *
 * Bounded: gives up after @timeout_ms; killable.
 *
 * Return: 0; -EHOSTUNREACH/-ECONNREFUSED/-ETIMEDOUT (no mgr), -EACCES (key), -ENOENT (volume),
 * -EPROTO (version).
 */
int pvfs_volume_open(const struct pvfs_opts *opts, const struct pvfs_volume_ops *ops,
		     unsigned int timeout_ms, struct pvfs_volume **ret, char *why);

/*
 * Unmount, before the inodes go: when it returns recovery holds none, and never will again. What it
 * has under way fails; it goes on without telling what is open, which is nothing.
 */
void pvfs_volume_leave(struct pvfs_volume *vol);

/*
 * Unmount: waits for ASYNC requests (bounded), closes the session, fails what is left, frees all.
 */
void pvfs_volume_close(struct pvfs_volume *vol);

/*
 * umount -f: fails everything in flight with -EIO; the volume stays mounted and reconnects for new
 * requests.
 */
void pvfs_volume_abort(struct pvfs_volume *vol);
/* Is there a connection to each server? */
bool pvfs_volume_up(const struct pvfs_volume *vol);
/* Is there one to the mgr, which has been told what is open? */
bool pvfs_volume_mgr_there(const struct pvfs_volume *vol);

/*
 * The time that goes on while the machine is suspended: the manager's does. As of the last tick,
 * which an eighth of a lease makes good.
 */
u64 pvfs_boot_ns(void);

/* ---------------------------------------------------------------- what iods tell */

/**
 * pvfs_iod_tells_room - a reply of an iod says what room it has
 * @s: the iod
 * @room: bytes, any number
 */
void pvfs_iod_tells_room(struct pvfs_server *s, u64 room);

/**
 * pvfs_iod_room - what it has told the last time
 * @s: the iod
 * @when: jiffies64 then; 0: never
 *
 * Return: bytes; U64_MAX: it has told nothing, or does not know.
 */
u64 pvfs_iod_room(const struct pvfs_server *s, u64 *when);

/* ---------------------------------------------------------------- waiting */

/*
 * What a system call that asks a server waits in: it can be killed, and it can be frozen, so that a
 * machine whose server is away can suspend. It may hold an inode's locks meanwhile; those who wait for
 * them are the ones that cannot be frozen.
 */
#define PVFS_WAIT (TASK_KILLABLE | TASK_FREEZABLE_UNSAFE)

/*
 * No signal reaches a task that is exiting. It waits for so long instead; then it counts as killed,
 * for all that it does on its way out.
 */
#define PVFS_EXIT_MS 5000u

/* Marks this task as killed, if it is exiting; it has waited long enough. */
void pvfs_exit_hurry(void);

/* Jiffies that this task may wait, if others may for @timeout. */
static inline long pvfs_patience(long timeout)
{
	return current->flags & PF_EXITING ? min_t(long, timeout, msecs_to_jiffies(PVFS_EXIT_MS)) : timeout;
}

/* What a wait for pvfs_patience(@timeout) that returned @left is to return for one of @timeout. */
static inline long pvfs_patience_left(long left, long timeout)
{
	if (left || timeout == pvfs_patience(timeout))
		return left;
	pvfs_exit_hurry();
	return -ERESTARTSYS;
}

/* as wait_event_killable_timeout() */
#define pvfs_wait_event_timeout(wq, condition, timeout)				\
({										\
	long __all = timeout, __most = pvfs_patience(__all), __ret = __most;	\
	might_sleep();								\
	if (!___wait_cond_timeout(condition))					\
		__ret = ___wait_event(wq, ___wait_cond_timeout(condition),	\
				      PVFS_WAIT, 0, __most,			\
				      __ret = schedule_timeout(__ret));		\
	pvfs_patience_left(__ret, __all);					\
})

/* 0, or -ERESTARTSYS: killed */
#define pvfs_wait_event(wq, condition)						\
({										\
	long __left = pvfs_wait_event_timeout(wq, condition, MAX_SCHEDULE_TIMEOUT); \
	__left < 0 ? (int)__left : 0;						\
})

static inline void pvfs_pause_ms(unsigned int ms)
{
	set_current_state(PVFS_WAIT);
	schedule_timeout(msecs_to_jiffies(ms));
}

/* ---------------------------------------------------------------- counters */

/* Things that are counted beside the operations. */
enum pvfs_counter {
	/* bytes copied by the CPU in the module between buffers (not socket to page) */
	PVFS_CNT_COPIED,
	PVFS_CNT_WAKEUPS,	/* waiters woken */
	PVFS_CNT_DIRECT_SENDS,	/* requests sent by their submitter */
	PVFS_CNT_THREAD_SENDS,	/* requests sent by kpvfsd */
	PVFS_CNT_RECONNECTS,
	PVFS_CNT_RESENDS,
	PVFS_CNT_ABANDONED,
	PVFS_CNT_LEASES,	/* taken */
	PVFS_CNT_RECALLED,	/* inodes named by RECALLs */
	PVFS_CNT_LATE,		/* those of them that are drafts: not yet, was the answer */
	PVFS_CNT_SETTLES,	/* SETTLEs: what others write, told without taking their leases */
	PVFS_CNT_TURNS,		/* TURNs: a file that others have open is asked for */
	PVFS_CNT_YIELDS,	/* YIELDs: others ask for it */
	PVFS_CNT_JOINED,	/* opens without a message */
	PVFS_CNT_WLEASES,	/* WRITE leases taken */
	PVFS_CNT_BEHIND,	/* bytes that were written to the page cache, and left there */
	PVFS_CNT_AHEAD,		/* bytes that were asked for ahead of who reads by steps */
	PVFS_CNT_RESENT,	/* bytes that an iod may have lost, written once more */
	PVFS_CNT_MAX,
};
void pvfs_count(struct pvfs_volume *vol, enum pvfs_counter c, u64 n);
u64 pvfs_counted(struct pvfs_volume *vol, enum pvfs_counter c);

/* ---------------------------------------------------------------- module init ladder */
int pvfs_kreq_init(void);
void pvfs_kreq_exit(void);
int pvfs_kpvfsd_init(void);
void pvfs_kpvfsd_exit(void);
int pvfs_auth_init(void);
void pvfs_auth_exit(void);
int pvfs_stats_init(void);
void pvfs_stats_exit(void);

#endif
