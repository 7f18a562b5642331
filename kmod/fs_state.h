/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fs_state.h - what the VFS half keeps of a volume. Types only: struct pvfs_volume, which is the lower
 * half's, has room for them, and the lower half knows no more of them than their size.
 */
#ifndef PVFS_FS_STATE_H
#define PVFS_FS_STATE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "../common/msg.h"

#define PVFS_RECALLS_KEPT 64u
#define PVFS_TURNS_MAX 32	/* TURNs of a volume under way */

/* How many inodes have a lease, by the span of time in which it ends: leasestat.c. */
#define PVFS_LEASE_SPANS 64u
enum pvfs_leased { PVFS_LEASED_FILE, PVFS_LEASED_DIR, PVFS_LEASED_OTHER, PVFS_LEASED_KINDS };
struct pvfs_lease_counts {
	u64 gen;			/* of those that are counted */
	unsigned int shift;		/* of a boot time in ns: its span; 0: none was counted yet */
	u64 first;			/* the span of now, when it was looked at last */
	u32 n[PVFS_LEASED_KINDS][PVFS_LEASE_SPANS];	/* span i at i % SPANS */
};

/* From the first RECALL, of a draft or a WRITE lease, until all of it was told. */
#define PVFS_FLUSH_TIMES 5u
struct pvfs_flush_times {
	u64 n, us, us_max;
	u64 below[PVFS_FLUSH_TIMES];	/* 1, 10, 100 ms, 1 s; the last: longer */
};

/* What says whether an answer may still be believed when it comes: lease.c. */
struct pvfs_leases {
	atomic64_t gen;			/* another: nothing from before is believed */
	atomic_t unsure;		/* changes that may be made at any time; none is believed */
	atomic64_t owns;		/* counts changes of our own */
	atomic64_t yields;		/* counts YIELDs */
	atomic64_t turns;		/* counts TURNs: their numbers */
	struct semaphore turn_room;	/* for those under way */
	atomic_long_t tokens;		/* the last one */
	spinlock_t lock;		/* protects the next four */
	u64 recalls;			/* how many inodes were recalled */
	u64 recalled[PVFS_RECALLS_KEPT];	/* the last ones: number i at i % KEPT */
	struct pvfs_lease_counts counts;
	struct pvfs_flush_times told, given;	/* drafts, WRITE leases */
	atomic_t drafts, writes;	/* and WRITE leases, there are now */
};

/* Listings that are kept: listing.c. */
struct pvfs_listings {
	spinlock_t lock;		/* protects list, bytes, and what is kept of each inode */
	struct list_head list;		/* struct pvfs_listing; last used, last */
	u64 bytes, max;
};

struct pvfs_use;

#define PVFS_UNSTABLE_BITS 10

/* Files that were written to and not synced: unstable.c. */
struct pvfs_unstables {
	spinlock_t lock;		/* protects all but answers and dead */
	struct hlist_head hash[1 << PVFS_UNSTABLE_BITS];	/* by ino */
	struct list_head list;		/* with something to sync or tell; tried last: at the end */
	unsigned int n;			/* on the list; read without the lock too */
	u64 seq;			/* counts what is put on it, claimed, and asked for */
	wait_queue_head_t wait;		/* for who syncs files to be done with some */
	u64 answers;			/* FSYNCs answered, about */
	bool dead;			/* unmounting, and nobody answers */
};

/* An open that is given back. */
struct pvfs_ending {
	struct pvfs_use *use;		/* of its inode, a reference; NULL: it was not counted */
	u32 told;			/* of that: as pvfs_use.told */
	struct pvfs_closing c;
	u64 kept;			/* of what pvfs_wlease_closing() says */
};

/* Those that wait for more of them: close.c. */
struct pvfs_closes {
	spinlock_t lock;		/* protects the next two */
	u32 n;
	struct pvfs_ending end[PVFS_CLOSE_MAX];
	struct delayed_work work;
};

/* Opens for reading that nobody uses: deferred.c. vol->open_lock protects all but the work. */
struct pvfs_deferred {
	struct list_head list;		/* struct pvfs_inode, the one that was used last at the end */
	struct list_head due;		/* of those, what is to be given back at once */
	unsigned int n;			/* on both */
	struct list_head gone;		/* struct pvfs_use, whose inodes have gone */
	unsigned long looked;		/* jiffies: when their leases were looked at */
	unsigned long hurried;		/* jiffies: when one's last name was removed here, */
	unsigned int others;		/* and how many went with it */
	struct delayed_work work;
};

#endif
