/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lock.h - what lock.c, lock_calls.c and lock_append.c share: owners of locks, and what they ask of
 * the mgr.
 */
#ifndef PVFS_LOCK_H
#define PVFS_LOCK_H

#include "vfs.h"

#define PVFS_LOCK_ASK_MS 3000		/* while queued: ask again, if no LOCK_GRANT came */
#define PVFS_LOCK_GRACE_MS 200		/* while others tell a restarted mgr what they have */

extern struct workqueue_struct *pvfs_lock_wq;

/*
 * An owner of locks of one inode; vol->locks_lock protects what is not constant.
 *
 * Exists while it has users (calls, and whoever looks at it), locks in the kernel's lists, or was
 * told that it lost them.
 */
struct lock_owner {
	struct list_head link;		/* pi->locks.owners */
	struct pvfs_volume *vol;
	struct pvfs_inode *pi;		/* NULL: gone, and it is on no list */
	struct pvfs_fid fid;
	const void *key;		/* the VFS's owner; compared, never followed */
	u64 id;				/* for the mgr */
	u8 kind;			/* PVFS_LK_FLOCK .. APPEND */
	bool lost;			/* the session that had its locks is gone */
	bool appends;	/* of kind APPEND: it has the lock, and is a user of itself */
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
	bool left;	/* locks_lock: nobody waits: a lock that comes now is undone */
	bool sent;			/* locks_lock */
	bool done;			/* answered: err and state are final */
	bool hinted;			/* a LOCK_GRANT named it */
	u32 aborts;			/* vol->aborts when it was begun */
	int err;
	u8 state;			/* of LOCK: PVFS_LK_*; of LOCK_CANCEL: was it granted? */
	wait_queue_head_t wait;
};

static inline u8 pvfs_lock_kind(const struct file_lock *fl)
{
	if (pvfs_fl(fl, flags) & FL_FLOCK)
		return PVFS_LK_FLOCK;
	return pvfs_fl(fl, flags) & FL_OFDLCK ? PVFS_LK_OFD : PVFS_LK_RECORD;
}

static inline u8 pvfs_lock_type(const struct file_lock *fl)
{
	return pvfs_fl(fl, type) == F_WRLCK ? PVFS_LK_WRITE : PVFS_LK_READ;
}

/* lock.c */
bool pvfs_lock_owner_holds(const struct lock_owner *o);

/* lock_calls.c */
struct lock_owner *pvfs_lock_owner_find(struct pvfs_inode *pi, const void *key, u8 kind);
void pvfs_lock_owner_unlink(struct lock_owner *o);
void pvfs_lock_owner_put(struct lock_owner *o);
struct lock_owner *pvfs_lock_owner_get(struct inode *inode, const void *key, u8 kind, bool make);
struct lock_call *pvfs_lock_call_new(struct lock_owner *o, const struct file_lock *fl, bool wait);
void pvfs_lock_call_put(struct lock_call *call);
void pvfs_lock_call_submit(struct lock_call *call, u16 op, u32 flags, bool left);
int pvfs_lock_call_wait(struct lock_call *call);
int pvfs_lock_call_ask(struct lock_call *call, u32 flags);
bool pvfs_lock_call_aborted(const struct lock_call *call);
bool pvfs_lock_call_stirred(const struct lock_call *call);

/* lock_append.c */
bool pvfs_lock_append_drop(struct lock_owner *o);
void pvfs_lock_append_late(struct work_struct *work);

#endif
