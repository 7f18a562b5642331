/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vfs.h - what the files of the VFS half share. The lower half does not include it.
 *
 *   super.c      mount options, super block
 *   inode.c      inodes, references to them, lists of them
 *   attr.c       attributes, how fresh they are; permissions
 *   report.c     what the mgr is to be told
 *   namei.c      names                               export.c  file handles
 *   dir.c        listing                             listing.c listings that are kept
 *   xattr.c      extended attributes, pvfs.layout    acl.c     POSIX ACLs
 *
 *   file.c       open, close, fsync                  rw.c      read and write: which way they go
 *   direct.c     past the page cache                 cache.c   the page cache: mappings, exec, reads under a lease
 *   mmap.c       mappings that are stored to         ahead.c   reading ahead of who does not read on
 *   writeback.c  writing to the page cache, and from there
 *   full.c       will that fit
 *   late.c       what closes and dying tasks leave to be written
 *   space.c      fallocate, holes
 *   io.c         one transfer between memory and the iods, io_cut.c which parts it has
 *   head.c       the same for files whose bytes are with the mgr
 *   draft.c      new ones
 *   unstable.c   what is yet to be synced            sync.c    syncing it
 *   resend.c     pages that an iod may have lost
 *
 *   opens.c      what is open, as the mgr counts it; capabilities
 *   close.c      giving opens back                   deferred.c  opens for reading without a message
 *   lease.c      what may be believed, and for how long
 *   leasestat.c  how many leases and drafts there are
 *   wlease.c     leases to write without asking
 *   turn.c       files that others have open, too: shared mappings
 *   lock*.c      file locks
 *
 *   meta*.c      one function per operation of the mgr
 *   upcall.c     what the lower half tells: a table of functions of these
 *
 * What is trusted: by default nothing that was learned before the present system call began. Names
 * are asked by LOOKUP, whose answer brings the attributes along; open files' attributes by GETATTR;
 * data by READ. With actimeo names and attributes may be that old. With lease, names, attributes and,
 * unless cache=none, bytes that the mgr has promised to recall are believed until it does.
 *
 * Lock order: inode->i_rwsem, pvfs_inode.draft.mutex,
 * mapping->invalidate_lock, folio lock, then the leaves: vol->open_lock, vol->listings.lock,
 * vol->locks_lock (the VFS's flc_lock and a call's wait queue inside), vol->unstable.lock (a file's
 * pvfs_unstable.lock inside), pvfs_inode.lock,
 * pvfs_use.lock; inode->i_lock may be taken under vol->open_lock, and so may pvfs_inode.lock. No request is
 * made under a leaf.
 * Requests are made under i_rwsem (as the VFS takes it; shared by writers), draft.mutex,
 * invalidate_lock and folio locks (filling a page); nothing that completes a request takes any of
 * them.
 */
#ifndef PVFS_VFS_H
#define PVFS_VFS_H

#include <linux/semaphore.h>
#include "../net/net.h"

#define PVFS_SUPER_MAGIC 0x53465650

struct dir_context;
struct iov_iter;
struct kiocb;
struct lock_owner;
struct pvfs_head_mem;
struct pvfs_io;
struct posix_acl;

/* ---------------------------------------------------------------- structures */

/**
 * struct pvfs_use - what the answer to a CLOSE may still want of an inode
 *
 * Apart from the inode because that may be gone when the answer comes. One reference is the
 * inode's, one each CLOSE's on its way, one @put_work's while it is queued.
 */
struct pvfs_use {
	refcount_t ref;
	struct pvfs_volume *vol;
	struct pvfs_inode *pi;		/* vol->open_lock; NULL: gone */
	u32 told;	/* vol->open_lock: volume's recovery in which the mgr heard of its opens last */
	spinlock_t lock;		/* protects rep, reports */
	/* what our writes did and the mgr may not know; end 0: nothing */
	struct pvfs_wreport rep;
	u64 reports;			/* of the volume, when the mgr had taken in our last one */
	struct work_struct put_work;	/* drops @puts references to the inode */
	atomic_t puts;
	/* vol->open_lock: the inode is gone, and an open of it was not given back yet: deferred.c */
	struct list_head gone;		/* on vol->deferred.gone, with a reference */
	struct pvfs_fid fid;		/* whose it was */
};

/*
 * Leave to use attributes that came with a LOOKUP of the system call that is still running; see
 * pvfs_fresh_leave().
 */
struct pvfs_fresh {
	const struct task_struct *task;	/* NULL: none */
	u64 when;			/* ktime, ns */
	int nr;				/* of the system call */
};

/*
 * An inode's place on a list of its volume that pvfs_walk_next() walks. The list's lock protects
 * it.
 */
struct pvfs_walked {
	struct list_head link;
	bool mark;			/* no inode: where a walk is, or will end */
};

/* A walk over such a list. */
struct pvfs_walk {
	struct pvfs_walked at, end;
	spinlock_t *lock;
	size_t offset;
};

/* A WRITE lease on a file; pvfs_inode.lock protects it: wlease.c */
enum pvfs_wlease_state { PVFS_WL_NONE, PVFS_WL_HELD, PVFS_WL_GIVING };
struct pvfs_wlease {
	enum pvfs_wlease_state state;	/* these two are read without the lock too */
	unsigned long token;		/* none had it before */
	u64 gen;			/* of the volume's leases when it was taken */
	u64 session;			/* in which it was */
	u32 users;			/* writes to the page cache under way */
	u32 writers;			/* opens for writing whose close has not begun */
	bool told;			/* that it was given up the mgr is being told */
	bool failed;			/* a page could not be written */
	bool recalled;			/* @work is to give it up */
	u64 wanted;			/* ktime when it was recalled first, or yielded, ns; 0: not */
	bool lost;			/* pages from a former session are there. Without the lock, too */
	bool lost_told;			/* who wrote them was */
	bool behind;			/* it was written to the page cache, ever. Without the lock */
	bool leaving;			/* who closes it last waits for @users */
	unsigned long lost_pages;
	bool asking;			/* @ask is queued, or under way */
	u32 missed;			/* small writes without one, since it was asked for */
	u64 again;			/* boot time, ns: from then on it may be asked for */
	u64 pause;			/* until it may be once more, if it is refused, ns */
	struct work_struct ask;
	struct delayed_work work;	/* gives it up, throws away; yields, see turn.c */
	u64 settle;			/* round of the SETTLE that @settle_work is to answer; 0: none */
	struct work_struct settle_work;
};

/* A file that others have open, too; pvfs_inode.lock protects it where nothing else is said: turn.c */
struct pvfs_turn {
	bool out;			/* nothing of it is begun here. Read without the lock too */
	bool left;			/* and all that was has ended, and no page is here */
	bool asking;			/* TURN is under way */
	bool fresh;			/* let in, and nothing was begun yet. Read without the lock too */
	atomic_t ios;			/* reads and writes that go past the page cache, under way */
	atomic_t faults;		/* that find, or fill, a page */
	atomic_t maps;			/* mappings, shared. Read without the lock too */
	bool lasts;			/* who may write comes in when that was recalled. Read without the lock too */
	bool shown;			/* who may not write may have pages mapped. The same */
	atomic_t shows;			/* faults that are just mapping such pages, and do not sleep */
	bool hide;			/* recalled: these are to be taken away */
	u32 hiding;			/* they are just being */
	struct delayed_work ends;	/* does so when the lease has run out; it has no reference */
	u64 asked, hold;		/* boot time, ns: since when, and until when it is kept */
	u64 again;			/* the same: a turn that was refused. Without the lock */
	u64 round;			/* of the YIELD that is to be answered; 0: none */
	struct mutex asks;		/* one at a time */
};

/* Its file locks; vol->locks_lock protects them: lock*.c */
struct pvfs_inode_locks {
	struct list_head owners;	/* who has, wants or lost locks */
	struct pvfs_walked listed;	/* on vol->lock_inodes while there are some */
};

/* Who has it open, as the mgr counts it; vol->open_lock protects all but the last two: opens.c, deferred.c */
struct pvfs_inode_opens {
	struct pvfs_walked listed;	/* on vol->open_list while anything is open */
	u32 n[4];	/* opens by PVFS_O_READ | PVFS_O_WRITE, until their CLOSE was answered */
	u32 shared;	/* that share one of them: deferred.c. Read without the lock too */
	struct list_head idle;		/* on one of vol->deferred's lists while nobody uses that one */
	unsigned long idle_since;	/* jiffies */
	atomic_t live;	/* opens whose close has not begun */
	/* by rights; 0: there was none. Older sessions' are kept to RECLAIM. pvfs_inode.lock */
	struct pvfs_cap cap[4];
};

/* What the mgr has promised; pvfs_inode.lock protects it, and it is read without, too: lease.c */
struct pvfs_inode_lease {
	unsigned long token;		/* 0: none */
	u64 gen;			/* of the volume when it was taken */
	u64 end;			/* boot time, ns */
	u64 asked;			/* the same: when it was asked for, for its bytes. No lock */
	bool attrs;			/* the attributes too, not only the names */
	u64 span;			/* where leasestat.c counts it; 0: nowhere */
	u64 span_gen;			/* of the volume when it was counted */
};

/* Changes of our own to it, during which no lease is taken; pvfs_inode.lock protects them: lease.c */
struct pvfs_inode_own {
	u32 pending;			/* under way: none is taken, or believed */
	u32 flushes;			/* the same of what is written back to a head */
	u64 begun;			/* how many began so far. Read without the lock too */
	u64 last;			/* of the volume's own changes the last that was to it */
};

/* A new file that the mgr knows nothing of yet but its name: draft.c */
struct pvfs_inode_draft {
	struct mutex mutex;		/* protects what is in the draft */
	struct pvfs_draft *d;		/* changed under it; NULL: none. Looked for without, too */
	u64 recalled;			/* pvfs_inode.lock: ns, when it was asked for first; 0: not yet */
	struct work_struct recalled_work;	/* ends it */
};

/* Its pages that are written back; no lock, if none is named: writeback.c */
struct pvfs_inode_wb {
	atomic_t out;			/* transfers of them, on their way */
	atomic_t redirtied;		/* that were given back dirty by who was to write them */
	u32 wrote;			/* so far, about */
	struct semaphore head_turn;	/* to write those of a head: one at a time, see wb_head() */
	atomic_t head_left;		/* who has it, and pieces on their way: none, it is given up */
	loff_t next;			/* i_rwsem: where who writes on and on goes on, */
	loff_t from;			/* and what of that nobody was asked to write yet */
	loff_t early_from, early_to;	/* pvfs_inode.lock: what somebody was asked for; @early_to 0: nothing */
	struct work_struct early;	/* does it */
};

/* Pages that an iod may have lost, sent again by who has claimed the file; no lock: unstable.c, sync.c */
struct pvfs_inode_resend {
	atomic_t n;			/* how often some were made dirty for that */
	struct work_struct work;	/* does it if nobody else does */
};

/* A SETLAYOUT; one at a time, under i_rwsem: meta.c */
struct pvfs_inode_relayout {
	bool busy;			/* it is under way */
	int err;			/* what came of the last; good while @busy is false */
	u32 lost;			/* that failed, so that nobody knows what they did */
	u32 known;	/* of those, how many had ended when the attributes were asked for */
};

/*
 * What is known of its attributes beside what the VFS keeps; pvfs_inode.lock protects it: attr.c. What we
 * did ourselves, report.c.
 */
struct pvfs_inode_attr {
	u64 version;			/* of those we have, as the others up to acl_version */
	u32 trunc_gen;
	struct timespec64 btime;
	u32 has;			/* PVFS_AF_XATTR, ACL, DEFACL, CAPS. Read without the lock too */
	u64 acl_version;
	u64 told;			/* the size that the mgr has named last */
	u64 told_version;		/* of the attributes it came with */
	/* jiffies when they were asked for; with actimeo they are good for a while */
	unsigned long time;
	bool valid;			/* nothing we did since has made them stale */
	bool stale;			/* the mgr does not know the inode any more */
	struct pvfs_fresh fresh;
	/* it was read then, and the mgr is to know; 0: nothing new */
	struct timespec64 atime_due;
	u64 floor;	/* the file was at least so long with trunc_gen floor_gen: our writes */
	u32 floor_gen;
};

/* Its access ACL; pvfs_inode.lock protects it: acl.c */
struct pvfs_inode_acl {
	struct posix_acl *access;	/* freed by RCU */
	u64 version;			/* the acl_version that it came with */
};

/* An inode; read-only after pvfs_iget() where nothing else is said. */
struct pvfs_inode {
	struct pvfs_fid fid;

	struct pvfs_inode_opens opens;
	struct pvfs_inode_locks locks;
	struct pvfs_inode_relayout relayout;
	struct pvfs_inode_wb wb;
	struct pvfs_inode_resend resend;
	struct pvfs_inode_draft draft;
	struct pvfs_listing *listing;	/* vol->listings.lock. Looked for without, too */
	/* what was written and not synced; vol->unstable.lock. From the first write on, constant */
	struct pvfs_unstable *unstable;

	spinlock_t lock;	/* protects all that follows, and i_size of a regular file */
	struct pvfs_inode_attr attr;
	struct pvfs_inode_acl acl;
	struct pvfs_layout layout;
	/* it was seen so: it is not stuffed again. Read without the lock too */
	bool striped;
	/* version when the page cache was last known to be right or empty */
	u64 cache_version;
	struct pvfs_inode_lease lease;
	struct pvfs_inode_own own;
	struct pvfs_wlease wl;
	struct pvfs_turn turn;
	struct pvfs_use *use;		/* from the first open on; then constant */

	struct inode vfs_inode;
};

/* The last reads of a descriptor from the page cache: ahead.c. */
struct pvfs_ahead {
	spinlock_t lock;		/* protects all but the last */
	loff_t pos, step;
	size_t len;
	unsigned int alike;		/* so often was it that step, and len */
	u64 n;				/* steps that are asked for at once */
	loff_t upto;			/* the last that was asked for */
	bool asking;			/* what comes to readahead() is from there */
};

/* An open regular file. */
struct pvfs_file {
	u32 flags;			/* PVFS_O_READ, WRITE, EXEC as opened */
	bool truncated;	/* the open did the O_TRUNC; the VFS is about to ask for it */
	bool shared;	/* it counts in pvfs_inode.opens.shared */
	struct pvfs_ahead ahead;
};

static inline struct pvfs_inode *PVFS_I(const struct inode *inode)
{
	return container_of(inode, struct pvfs_inode, vfs_inode);
}

static inline bool pvfs_inode_is(const struct inode *inode, const struct pvfs_fid *fid)
{
	return PVFS_I(inode)->fid.ino == fid->ino && PVFS_I(inode)->fid.gen == fid->gen;
}

static inline struct pvfs_volume *PVFS_VOL(const struct inode *inode)
{
	return inode->i_sb->s_fs_info;
}

static inline struct pvfs_volume *PVFS_D_VOL(const struct dentry *dentry)
{
	return dentry->d_sb->s_fs_info;
}

static inline struct timespec64 pvfs_ts_to_kernel(const struct pvfs_ts *t)
{
	return (struct timespec64){ .tv_sec = t->sec, .tv_nsec = t->nsec };
}

static inline struct pvfs_ts pvfs_ts_from_kernel(const struct timespec64 *t)
{
	return (struct pvfs_ts){ .sec = t->tv_sec, .nsec = t->tv_nsec };
}

static inline struct pvfs_str pvfs_qstr(const struct qstr *q)
{
	return (struct pvfs_str){ .p = q->name, .len = q->len };
}

/* What PVFS_O_* opened counts as: to execute is to read. */
static inline u32 pvfs_open_class(u32 flags)
{
	return (flags & (PVFS_O_READ | PVFS_O_WRITE)) | (flags & PVFS_O_EXEC ? PVFS_O_READ : 0);
}

/* Does it end what leases there are on the file? */
static inline bool pvfs_open_changes(u32 flags)
{
	return flags & (PVFS_O_WRITE | PVFS_O_TRUNC);
}

/* ---------------------------------------------------------------- super.c */

extern const struct dentry_operations pvfs_dentry_operations;
extern const struct export_operations pvfs_export_operations;	/* export.c */
extern const struct xattr_handler *pvfs_xattr_handlers[];

void pvfs_umount_begin(struct super_block *sb);
int pvfs_vfs_init(void);	/* inode cache, register_filesystem */
void pvfs_vfs_exit(void);

/* ---------------------------------------------------------------- upcall.c */

extern const struct pvfs_volume_ops pvfs_volume_ops;

/* ---------------------------------------------------------------- lease.c */

/* The clocks before a question: see lease.c. */
struct pvfs_ask {
	u64 sent;			/* boot time, ns */
	u64 gen, owns, recalls, yields;
	u64 reports;
	u64 kept;			/* as in struct pvfs_ending, if it is a CLOSE; else 0 */
};

void pvfs_leases_init(struct pvfs_volume *vol);
void pvfs_leases_void(struct pvfs_volume *vol);
void pvfs_leases_unsure(struct pvfs_volume *vol, int delta);
int pvfs_leases_recalled(struct pvfs_volume *vol, const struct pvfs_recall_req *req);
int pvfs_leases_settle(struct pvfs_volume *vol, const struct pvfs_settle_req *req);
int pvfs_leases_yield(struct pvfs_volume *vol, const struct pvfs_yield_req *req);
void pvfs_lease_ask(struct pvfs_volume *vol, struct pvfs_ask *ask);
void pvfs_lease_take(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask);
unsigned long pvfs_lease_token(const struct inode *inode);
bool pvfs_lease_lasts(const struct inode *inode);
bool pvfs_lease_may_ask(struct inode *inode);
bool pvfs_inode_leased(const struct inode *inode);
bool pvfs_attrs_leased(const struct inode *inode);
bool pvfs_lease_wanted(struct inode *inode);
unsigned long pvfs_lease_since(struct inode *inode, const struct pvfs_ask *ask);
void pvfs_lease_gone(struct inode *inode);
void pvfs_own_change(struct inode *inode);
void pvfs_own_begin(struct inode *inode);
void pvfs_own_end(struct inode *inode);
void pvfs_flush_begin(struct inode *inode);
void pvfs_flush_end(struct inode *inode);
void pvfs_unlease(struct inode *inode);
void pvfs_unlease_end(struct inode *inode);

struct inode *pvfs_find_ino(struct super_block *sb, u64 ino);
bool pvfs_ask_stands(struct pvfs_volume *vol, u64 ino, const struct pvfs_ask *ask);
void pvfs_recall_note(struct pvfs_volume *vol, u64 ino);
u64 pvfs_session_end(const struct pvfs_volume *vol);
bool pvfs_session_lasts(const struct pvfs_volume *vol);

/* ---------------------------------------------------------------- wlease.c */

u32 pvfs_wlease_wish(const struct pvfs_volume *vol, u32 flags);
void pvfs_wlease_take(struct inode *inode, u32 flags, const struct pvfs_ask *ask);
void pvfs_wlease_ask_work(struct work_struct *work);
bool pvfs_wlease_wanted(struct inode *inode);
void pvfs_wlease_missed(struct inode *inode);
unsigned long pvfs_wlease_token(const struct inode *inode);
void pvfs_wlease_doubted(struct inode *inode);
bool pvfs_wlease_begin(struct inode *inode, unsigned long token);
bool pvfs_wlease_stands(struct inode *inode, unsigned long token);
void pvfs_wlease_end(struct inode *inode);
bool pvfs_wlease_busy(struct inode *inode);
bool pvfs_wlease_keeps_step(const struct pvfs_inode *pi, const struct pvfs_attr *attr);
void pvfs_wlease_work(struct work_struct *work);
bool pvfs_wlease_recalled(struct inode *inode);
void pvfs_wlease_yield(struct inode *inode);
bool pvfs_wlease_maps(const struct inode *inode);
bool pvfs_wlease_settle(struct inode *inode, u64 round);
void pvfs_wlease_settle_work(struct work_struct *work);
void pvfs_wlease_spoilt(struct inode *inode);
void pvfs_wlease_opened(struct inode *inode);
void pvfs_wlease_leave(struct inode *inode);
bool pvfs_wlease_closing(struct inode *inode, u64 *kept);
void pvfs_wlease_closed(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask);
bool pvfs_wlease_reclaims(struct inode *inode, u64 *gen);
void pvfs_wlease_reclaimed(struct inode *inode, u32 flags, u64 gen);

/* Are there pages of a former session, which must not be written? */
static inline bool pvfs_wlease_lost(const struct inode *inode)
{
	return READ_ONCE(PVFS_I(inode)->wl.lost);
}

/* ---------------------------------------------------------------- turn.c */

void pvfs_turn_init(struct pvfs_turn *t);
void pvfs_turn_evict(struct inode *inode);
bool pvfs_turn_reclaims(struct inode *inode, bool wlease);
bool pvfs_turn_kept(const struct inode *inode);
bool pvfs_turn_recalled(struct inode *inode);
void pvfs_turn_mapped(struct inode *inode);
void pvfs_turn_unmapped(struct inode *inode);
void pvfs_turn_hide(struct inode *inode);
void pvfs_turn_unshow(struct inode *inode);
u64 pvfs_turn_yield_begin(struct inode *inode, bool *hide);
void pvfs_turn_faults_wait(struct inode *inode);
void pvfs_turn_yield(struct inode *inode, u64 round);
void pvfs_turn_yield_end(struct inode *inode, u64 round);
bool pvfs_turn_try(struct inode *inode);
int pvfs_turn_enter(struct inode *inode);
int pvfs_turn_enter_both(struct inode *inode, struct inode *other);
void pvfs_turn_opened(struct inode *inode, u32 flags, const struct pvfs_ask *ask);
void pvfs_turn_leave(struct inode *inode);
vm_fault_t pvfs_turn_fault(struct vm_fault *vmf);
vm_fault_t pvfs_turn_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last);

/* ---------------------------------------------------------------- writeback.c */

int pvfs_writepages(struct address_space *mapping, struct writeback_control *wbc);
int pvfs_launder_folio(struct folio *folio);
bool pvfs_may_write_behind(const struct kiocb *iocb, const struct iov_iter *from);
ssize_t pvfs_write_behind(struct kiocb *iocb, struct iov_iter *from, unsigned long token, int *err);
bool pvfs_unwritten(const struct inode *inode);
int pvfs_behind_settle(struct inode *inode);
void pvfs_behind_early_work(struct work_struct *work);

/* ---------------------------------------------------------------- full.c */

u64 pvfs_full_dirty(const struct pvfs_volume *vol, bool exact);
bool pvfs_full_soon(struct inode *inode, u64 pos, u64 len);
int pvfs_full_settle(struct inode *inode, u64 pos, u64 len);

/* ---------------------------------------------------------------- resend.c */

void pvfs_resend_stamp(struct folio *folio, unsigned long stamp);
bool pvfs_resend_again(struct folio *folio);
void pvfs_resend_news(struct folio *folio);
bool pvfs_release_folio(struct folio *folio, gfp_t gfp);
void pvfs_invalidate_folio(struct folio *folio, size_t offset, size_t length);
int pvfs_resend(struct inode *inode, unsigned long stable);

/* ---------------------------------------------------------------- leasestat.c */

void pvfs_leasestat_show(struct seq_file *m, struct pvfs_volume *vol);
void pvfs_leasestat_reset(struct pvfs_volume *vol);
void pvfs_leasestat_take(struct inode *inode, u64 now);
void pvfs_leasestat_drop(struct pvfs_inode *pi);
void pvfs_leasestat_draft(struct pvfs_volume *vol, int delta);
void pvfs_leasestat_late(struct inode *inode);
void pvfs_leasestat_told(struct inode *inode, u32 bytes);
void pvfs_leasestat_given(struct inode *inode, u64 since, bool failed);

/* ---------------------------------------------------------------- listing.c */

/* Entries of a directory from the first on, as READDIR brings them; all of them when it is kept. */
struct pvfs_listing {
	refcount_t ref;
	struct list_head link;		/* on vol->listings.list while it is kept; its lock */
	struct pvfs_inode *pi;		/* whose it is then; the same lock */
	unsigned long token;		/* of the directory's lease */
	u64 owns;			/* pvfs_inode.own.begun, from before */
	u32 count, len;			/* entries, and bytes of them */
	u32 room;			/* bytes that @raw has */
	u8 raw[];
};

void pvfs_listings_init(struct pvfs_volume *vol);
void pvfs_listing_begin(struct inode *dir, u64 *owns);
struct pvfs_listing *pvfs_listing_add(struct pvfs_listing *l, u64 owns, unsigned long token,
				      const u8 *raw, u32 len, u32 count);
void pvfs_listing_put(struct pvfs_listing *l);
void pvfs_listing_keep(struct inode *dir, struct pvfs_listing *l);
struct pvfs_listing *pvfs_listing_get(struct inode *dir);
void pvfs_listing_drop(struct inode *dir, const struct pvfs_listing *l);

/* ---------------------------------------------------------------- inode.c */

void pvfs_walk_begin(struct pvfs_walk *w, spinlock_t *lock, struct list_head *list, size_t offset);
struct inode *pvfs_walk_next(struct pvfs_walk *w);
void pvfs_walk_end(struct pvfs_walk *w);

int pvfs_inode_cache_init(void);
void pvfs_inode_cache_exit(void);
struct inode *pvfs_alloc_inode(struct super_block *sb);
void pvfs_free_inode(struct inode *inode);
void pvfs_evict_inode(struct inode *inode);

struct inode *pvfs_iget(struct super_block *sb, const struct pvfs_attr *attr,
			const struct pvfs_ask *ask);
void pvfs_inode_update_cached(struct super_block *sb, const struct pvfs_attr *attr);

int pvfs_use_init(struct inode *inode);
void pvfs_use_put(struct pvfs_use *use);
void pvfs_use_iput(struct pvfs_use *use);
void pvfs_iput_later(struct inode *inode);
void pvfs_closes_wait(struct pvfs_volume *vol);

/* ---------------------------------------------------------------- attr.c */

int pvfs_bogus(struct pvfs_volume *vol, const char *what, u64 ino);
bool pvfs_attr_sane(struct pvfs_volume *vol, const struct pvfs_attr *attr);
bool pvfs_mode_sane(u32 mode);
int pvfs_inode_update(struct inode *inode, const struct pvfs_attr *attr,
		      const struct pvfs_ask *ask);
int pvfs_dir_told(struct inode *dir, const struct pvfs_attr *attr, const struct pvfs_ask *ask,
		  unsigned long *token);
void pvfs_inode_stale(struct inode *inode);

void pvfs_fresh_leave(struct inode *inode, const struct pvfs_ask *ask);
bool pvfs_fresh_take(struct inode *inode);
bool pvfs_attr_trusted(struct inode *inode);
loff_t pvfs_size_told(struct inode *inode);
void pvfs_attr_distrust(struct inode *inode);
bool pvfs_dir_removed(struct inode *dir);
int pvfs_revalidate(struct inode *inode);
int pvfs_syscall_nr(void);

int pvfs_getattr(struct pvfs_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags);
int pvfs_setattr(struct pvfs_idmap *idmap, struct dentry *dentry, struct iattr *attr);
/* What all types of inodes have. */
#define PVFS_INODE_OPERATIONS \
	.getattr = pvfs_getattr, .setattr = pvfs_setattr, .update_time = pvfs_update_time_op, \
	.permission = pvfs_permission, .listxattr = pvfs_listxattr
bool pvfs_checked_here(struct pvfs_volume *vol, struct pvfs_idmap *idmap);
int pvfs_permission(struct pvfs_idmap *idmap, struct inode *inode, int mask);

/* ---------------------------------------------------------------- report.c */

bool pvfs_atime_report(struct inode *inode, struct pvfs_wreport *ret);
void pvfs_writes_report(struct inode *inode, struct pvfs_wreport *ret);
void pvfs_writes_ack(struct pvfs_use *use, const struct pvfs_wreport *sent);
void pvfs_writes_note(struct inode *inode, u64 end, const struct pvfs_ts *wtime, u32 trunc_gen,
		      bool ask);
void pvfs_file_grown(struct inode *inode, u64 end);
bool pvfs_writes_pending(struct inode *inode);
bool pvfs_writes_reported(struct inode *inode, const struct pvfs_ask *ask);

/* ---------------------------------------------------------------- namei.c, dir.c, file.c */

extern const struct inode_operations pvfs_dir_inode_operations;
extern const struct inode_operations pvfs_file_inode_operations;
extern const struct inode_operations pvfs_symlink_inode_operations;
extern const struct inode_operations pvfs_special_inode_operations;
extern const struct file_operations pvfs_dir_operations;
extern const struct file_operations pvfs_file_operations;
extern const struct address_space_operations pvfs_aops;

bool pvfs_dentry_trusted(const struct dentry *dentry, const struct inode *dir);
void pvfs_dentry_validated(struct dentry *dentry, unsigned long token);
void pvfs_dentry_confirmed(struct dentry *dentry, const struct dentry *parent,
			   const struct qstr *name, unsigned long token);
/* d_fsdata of a dentry that is not hashed, and was reached by other ways than its name */
#define PVFS_D_NAMELESS ((void *)1)
/* ... and of one that rename(2) had to do with: the VFS may be yet to move it */
#define PVFS_D_MOVED ((void *)2)

int pvfs_file_flush(struct file *file, fl_owner_t id);
u32 pvfs_open_flags(const struct file *file, unsigned int oflags);
struct pvfs_file *pvfs_file_alloc(u32 flags);
int pvfs_open_noop(struct inode *inode, struct file *file);

/* ---------------------------------------------------------------- rw.c */

ssize_t pvfs_read_iter(struct kiocb *iocb, struct iov_iter *to);
ssize_t pvfs_write_iter(struct kiocb *iocb, struct iov_iter *from);

/* ---------------------------------------------------------------- direct.c */

int pvfs_read_is_hole(struct pvfs_io *io, bool ask);
ssize_t pvfs_direct_read(struct inode *inode, loff_t pos, struct iov_iter *to, bool keep, bool *eof);
ssize_t pvfs_direct_write(struct file *file, loff_t *ppos, struct iov_iter *from, size_t most,
			  bool append, struct lock_owner *appender);

/* ---------------------------------------------------------------- ahead.c */

void pvfs_read_ahead(struct file *file, loff_t pos, size_t len);

/* ---------------------------------------------------------------- cache.c */

bool pvfs_cache_check(struct inode *inode);
int pvfs_cache_forget(struct inode *inode, loff_t pos, loff_t last);
bool pvfs_cache_reads(struct inode *inode);
int pvfs_cache_drop(struct inode *inode, loff_t pos, u64 len);
int pvfs_cache_wait(struct inode *inode, loff_t pos);
int pvfs_cache_write(struct inode *inode, loff_t pos, loff_t last);
int pvfs_cache_flush(struct inode *inode, loff_t pos, u64 len);
int pvfs_cache_prepare(struct inode *inode, loff_t pos, u64 len);
int pvfs_cache_fill(struct inode *inode, struct folio *folio);
unsigned long pvfs_cache_token(const struct inode *inode);

/* ---------------------------------------------------------------- mmap.c */

int pvfs_file_mmap(struct file *file, struct vm_area_struct *vma);

/* ---------------------------------------------------------------- xattr.c */

ssize_t pvfs_listxattr(struct dentry *dentry, char *list, size_t size);
bool pvfs_xattr_absent(struct inode *inode, u32 flag);

/* ---------------------------------------------------------------- acl.c */

void pvfs_acl_inode_setup(struct inode *inode);
void pvfs_acl_inode_evict(struct inode *inode);
struct posix_acl *pvfs_acl_for_check(struct inode *inode, int type, bool rcu);
struct posix_acl *pvfs_get_acl(struct pvfs_idmap *idmap, struct dentry *dentry, int type);
int pvfs_set_acl(struct pvfs_idmap *idmap, struct pvfs_acl_target *target, struct posix_acl *acl,
		 int type);
#ifndef pvfs_acl_set_mapped
int pvfs_acl_set_mapped(struct pvfs_idmap *idmap, struct inode *inode, u32 flag, const void *value,
			size_t size);
#endif

/* ---------------------------------------------------------------- lock*.c */

int pvfs_locks_init(void);
void pvfs_locks_exit(void);
int pvfs_file_lock(struct file *file, int cmd, struct file_lock *fl);
int pvfs_file_flock(struct file *file, int cmd, struct file_lock *fl);
int pvfs_append_begin(struct inode *inode, struct lock_owner **ret);
bool pvfs_append_holds(const struct lock_owner *o);
void pvfs_append_end(struct lock_owner *o);
void pvfs_locks_flushed(struct file *file, fl_owner_t id);
void pvfs_locks_released(struct inode *inode, struct file *file);
void pvfs_locks_evict(struct inode *inode);
void pvfs_locks_wait(struct pvfs_volume *vol);
int pvfs_locks_reclaim(struct pvfs_volume *vol);
int pvfs_locks_lost(struct pvfs_volume *vol);
bool pvfs_locks_are_lost(const struct file *file);
void pvfs_locks_abort(struct pvfs_volume *vol);
int pvfs_locks_granted(struct pvfs_volume *vol, const struct pvfs_lock_grant_req *req);

/*
 * ---------------------------------------------------------------- meta.c, meta_names.c,
 * meta_xattr.c
 */

/* What a LOOKUP found. */
struct pvfs_found {
	struct pvfs_attr attr;
	struct pvfs_ask ask;
	unsigned long token;	/* of the directory's lease under which it may be believed; or 0 */
	char target[PVFS_SYMLINK_EAGER + 1];	/* of a symbolic link, if it came along; else empty */
};

/* A GETATTR under way. */
struct pvfs_getattr_ask {
	struct pvfs_wreport sent;
	struct pvfs_ask ask;
};

/*
 * Each sends one request to the mgr and waits. Return: 0 or -errno; -EINTR killed. An answer that
 * makes no sense is -EIO and one line in the log. Attributes returned have been checked by
 * pvfs_attr_sane().
 */
int pvfs_meta_lookup(struct inode *dir, const struct qstr *name, struct pvfs_found *found);
int pvfs_meta_getattr_fid(struct pvfs_volume *vol, const struct pvfs_fid *fid,
			  struct pvfs_attr *attr);
int pvfs_meta_getattr(struct inode *inode);
struct pvfs_request *pvfs_meta_getattr_start(struct inode *inode, struct pvfs_getattr_ask *a);
int pvfs_meta_getattr_finish(struct inode *inode, struct pvfs_request *req,
			     const struct pvfs_getattr_ask *a);
void pvfs_meta_atime(struct inode *inode);
int pvfs_meta_setattr(struct inode *inode, struct pvfs_setattr_req *m);
int pvfs_meta_create(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		     u32 flags, umode_t mode, u64 unleased, struct pvfs_create_rep *rep,
		     struct pvfs_ask *ask, struct pvfs_head_mem *head);
int pvfs_meta_mknod(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		    umode_t mode, dev_t rdev, struct pvfs_attr *attr);
int pvfs_meta_mkdir(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		    umode_t mode, struct pvfs_attr *attr);
int pvfs_meta_symlink(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		      const char *target, struct pvfs_attr *attr);
int pvfs_meta_link(struct inode *inode, struct inode *dir, const struct qstr *name,
		   struct pvfs_attr *attr);
int pvfs_meta_unlink(struct inode *dir, const struct qstr *name, struct pvfs_attr *attr);
int pvfs_meta_rmdir(struct inode *dir, const struct qstr *name);
int pvfs_meta_rename(struct inode *sdir, const struct qstr *sname, struct inode *ddir,
		     const struct qstr *dname, unsigned int flags, struct pvfs_rename_rep *rep);
int pvfs_meta_readlink(struct inode *inode, char *target);
int pvfs_meta_readdir(struct inode *dir, u64 cookie, bool attrs, const struct bio_vec *bv,
		      unsigned int nbv, u32 bytes, struct pvfs_readdir_rep *rep, u32 *ret_len,
		      struct pvfs_ask *ask, unsigned long *token);
int pvfs_meta_open(struct inode *inode, u32 flags, struct pvfs_open_rep *rep, struct pvfs_ask *ask);
int pvfs_meta_open_again(struct inode *inode, u32 flags, struct pvfs_open_rep *rep, struct pvfs_ask *ask);
int pvfs_meta_open_fid(struct pvfs_volume *vol, const struct pvfs_fid *fid, u32 flags,
		       struct pvfs_cap *cap);
int pvfs_meta_reclaim(struct inode *inode, const struct pvfs_cap *cap, u32 flags, u32 count,
		      bool recovery, struct pvfs_reclaim_rep *rep);
int pvfs_meta_report(struct inode *inode, u32 flags, u64 settled);
int pvfs_meta_turn(struct inode *inode, u32 flags, u64 seq, u32 *aflags, struct pvfs_ask *ask);
int pvfs_meta_getlk(struct inode *inode, const struct pvfs_getlk_req *m,
		    struct pvfs_getlk_rep *rep);
int pvfs_meta_lock_reclaim(struct pvfs_volume *vol, const struct pvfs_lock_req *m, u8 *state);
int pvfs_meta_reclaim_done(struct pvfs_volume *vol, u64 epoch);
int pvfs_meta_statfs(struct pvfs_volume *vol, struct pvfs_statfs_rep *rep);
int pvfs_meta_setlayout(struct inode *inode, const struct pvfs_layout *layout);
int pvfs_layout_settled(struct inode *inode);
int pvfs_meta_getxattr(struct inode *inode, const char *name, void *value, size_t size,
		       u64 *acl_version);
int pvfs_meta_setxattr(struct inode *inode, const char *name, const void *value, size_t size,
		       int flags);
int pvfs_meta_listxattr(struct inode *inode, char *list, size_t size);
int pvfs_meta_removexattr(struct inode *inode, const char *name);

/* ---------------------------------------------------------------- io.c */

#define PVFS_IO_MAX (8u << 20)		/* bytes of one transfer */
/* up to here the bookkeeping is of one size and from a pool */
#define PVFS_IO_SMALL (64u << 10)

/*
 * One transfer: a contiguous range of a file, and memory that holds it, or a list of pages. Made by
 * pvfs_io_get() or pvfs_io_get_list(), filled by the caller (mem, nmem, len), moved by pvfs_io_run() or by
 * pvfs_io_start() and pvfs_io_finish(), given back by pvfs_io_put().
 */
struct pvfs_io_part;

struct pvfs_io {
	struct inode *inode;
	bool write;
	bool fill;	/* for the page cache: it may reach beyond the end of the file */
	bool kept;	/* a write: @mem is pages of the page cache */
	bool turn;	/* the same: it counts in pvfs_inode.wb.head_left */
	bool again;	/* the same: pvfs_resend_again() of all of them */
	bool list;	/* the same: they may be anywhere in the file, and say where */
	bool big;	/* bookkeeping from kvmalloc() and counted; else from the pool */
	loff_t pos;			/* in the file */
	u32 len;			/* bytes to move; start may cut it down */
	struct bio_vec *mem;		/* the memory, in file order; room for mem_room */
	unsigned int nmem, mem_room;
	/* results, after finish */
	int err;			/* first error, 0 when all parts did it */
	u32 good;			/* bytes from pos on before the first part that failed */
	bool is_short;			/* read: of good, a datafile does not have all */
	struct pvfs_ts wtime;		/* write: the latest */
	u32 trunc_gen;			/* known when it started, */
	u64 size;			/* and that the file was at least so long in it */
	struct pvfs_cap cap;
	u64 session;			/* whose capability that is */
	u64 bound;			/* in no other one may it be made; 0: in any */
	const struct file *file;	/* who writes may have locks by it; NULL: that does not matter */
	bool append;			/* a write at the end; pos is where that seems to be */
	struct lock_owner *appender;	/* holds the lock that keeps it there; NULL: the mgr finds it */
	bool head;			/* it went to or came from the mgr */
	bool keep;			/* what comes from there may go into the page cache */
	/* io.c's */
	struct pvfs_volume *vol;	/* the inode may be gone before it is given back */
	void (*done)(struct pvfs_io *io);
	atomic_t left;			/* parts without an answer, and who submits them */
	struct work_struct work;
	struct pvfs_layout layout;
	struct bio_vec *bv;		/* the parts' memory, part after part */
	unsigned int bv_room;
	struct pvfs_io_part *part;
	u16 *last_part;			/* by stripe unit modulo pcount; room for part_room */
	unsigned int nparts, part_room;
	unsigned int permits;
};

int pvfs_io_init(void);
void pvfs_io_exit(void);
/* Its part of vol->room. 0 or -ENOMEM. */
int pvfs_io_room_init(struct pvfs_volume *vol);
void pvfs_io_room_fini(struct pvfs_volume *vol);
struct pvfs_io *pvfs_io_get(struct inode *inode, bool write, loff_t pos, size_t len, bool fill);
struct pvfs_io *pvfs_io_get_list(struct inode *inode, unsigned int n);
void pvfs_io_put(struct pvfs_io *io);
bool pvfs_session_over(struct pvfs_volume *vol, u64 session);
int pvfs_io_start(struct pvfs_io *io);
int pvfs_io_finish(struct pvfs_io *io);
int pvfs_io_submit(struct pvfs_io *io, void (*done)(struct pvfs_io *io));
void pvfs_io_zero(struct pvfs_io *io, u64 limit);
int pvfs_layout_get(struct inode *inode, bool write, struct pvfs_layout *layout);
/*
 * Room for @n requests beside each other; waits for it killably. @gives: as PVFS_RF_GIVES, to iods: only
 * for others of that kind.
 */
int pvfs_io_permits_get(struct pvfs_volume *vol, unsigned int n, bool gives);
void pvfs_io_permits_put(struct pvfs_volume *vol, unsigned int n, bool gives);
struct pvfs_server *pvfs_io_iod(const struct pvfs_volume *vol, const struct pvfs_layout *l, u32 df);

/* ---------------------------------------------------------------- unstable.c */

void pvfs_unstable_init(struct pvfs_volume *vol);
void pvfs_unstable_free(struct pvfs_volume *vol);
void pvfs_unstable_evict(struct inode *inode);
int pvfs_unstable_room(struct inode *inode, u32 n);
void pvfs_unstable_note(struct inode *inode, const struct pvfs_layout *layout, u32 df, u64 verifier,
			const struct pvfs_cap *cap, u64 session, bool kept);
unsigned long pvfs_unstable_stamp(struct inode *inode);
void pvfs_unstable_gone(struct inode *inode, unsigned long stamp, pgoff_t index);
void pvfs_unstable_passed(struct inode *inode, pgoff_t index);
u32 pvfs_unstable_resends(const struct inode *inode);
bool pvfs_unstable_unsettled(struct inode *inode);

/* ---------------------------------------------------------------- sync.c */

void pvfs_unstable_settle(struct inode *inode);
void pvfs_unstable_work(struct work_struct *work);
int pvfs_unstable_fsync(struct inode *inode, bool datasync);
int pvfs_unstable_sync(struct pvfs_volume *vol);
int pvfs_unstable_trim(struct pvfs_volume *vol);
void pvfs_unstable_unmount(struct pvfs_volume *vol);

/* ---------------------------------------------------------------- opens.c */

void pvfs_opens_init(struct pvfs_volume *vol);
int pvfs_files_reclaim(struct pvfs_volume *vol);
int pvfs_file_opened(struct inode *inode, struct pvfs_file *pf, const struct pvfs_cap *cap,
		     u64 session, u64 epoch);
void pvfs_session_sample(struct pvfs_volume *vol, u64 *session, u64 *epoch);
int pvfs_file_cap(struct inode *inode, u32 rights, struct pvfs_cap *cap, u64 *session);
bool pvfs_cap_current(struct inode *inode, u32 rights);
void pvfs_open_uncount(struct pvfs_inode *pi, u32 class);

/* ---------------------------------------------------------------- close.c */

void pvfs_closes_init(struct pvfs_volume *vol);
void pvfs_close_current(struct pvfs_request *req);
void pvfs_closes_flush(struct pvfs_volume *vol);
void pvfs_closes_end(struct pvfs_volume *vol);
void pvfs_close_at_mgr(struct pvfs_volume *vol, const struct pvfs_fid *fid, u32 flags,
		       struct inode *inode);
void pvfs_closes_hurry(struct inode *inode);
void pvfs_close_queue(struct pvfs_volume *vol, const struct pvfs_ending *e);

/* ---------------------------------------------------------------- deferred.c */

void pvfs_deferred_init(struct pvfs_volume *vol);
void pvfs_deferred_end(struct pvfs_volume *vol);
bool pvfs_open_joinable(const struct inode *inode);
bool pvfs_open_join(struct inode *inode, unsigned long token);
void pvfs_open_share(struct inode *inode, struct pvfs_file *pf);
void pvfs_open_leave(struct inode *inode);
void pvfs_deferred_recalled(struct inode *inode);
bool pvfs_deferred_hurry(struct inode *inode);
void pvfs_deferred_evict(struct pvfs_inode *pi);
void pvfs_deferred_forget(struct pvfs_volume *vol);

/* ---------------------------------------------------------------- late.c */

#define PVFS_LATE_MAX 64		/* files of a volume that are written for nobody who waits */

bool pvfs_dying(void);
bool pvfs_late_room(const struct pvfs_volume *vol);
bool pvfs_late_behind(struct inode *inode);
bool pvfs_late_due(struct inode *inode);
int pvfs_late_lost(struct inode *inode);
void pvfs_late_write(struct inode *inode, u32 flags, bool wait);

/* ---------------------------------------------------------------- draft.c */

struct pvfs_setattr_req;

void pvfs_draft_begin(struct inode *inode, const struct pvfs_attr *attr);
int pvfs_draft_settle(struct inode *inode);
int pvfs_draft_close(struct inode *inode);
bool pvfs_draft_behind(struct inode *inode);
int pvfs_draft_show(struct inode *inode);
u32 pvfs_draft_reclaims(struct inode *inode);
bool pvfs_draft_recalled(struct inode *inode);
void pvfs_draft_recalled_work(struct work_struct *work);
ssize_t pvfs_draft_write(struct kiocb *iocb, struct iov_iter *from);
bool pvfs_draft_setattr(struct inode *inode, const struct pvfs_setattr_req *m);

/* ---------------------------------------------------------------- head.c */

/* May the file's bytes be with the mgr? */
static inline bool pvfs_stuffed(const struct inode *inode)
{
	return S_ISREG(inode->i_mode) && !READ_ONCE(PVFS_I(inode)->striped);
}

/* Memory for a head that comes. */
struct pvfs_head_mem {
	struct bio_vec bv[PVFS_STUFF_MAX / PAGE_SIZE];
	unsigned int n;
	u32 got;			/* bytes that came */
};

struct pvfs_head_mem *pvfs_head_alloc(u32 len, gfp_t gfp);
void pvfs_head_free(struct pvfs_head_mem *h);
void pvfs_head_keep(struct inode *inode, struct pvfs_head_mem *h, const struct pvfs_attr *attr);
bool pvfs_head_kept(struct inode *inode);
int pvfs_head_run(struct pvfs_io *io);
int pvfs_with_cap(struct inode *inode, u32 rights, bool twice,
		  int (*once)(struct inode *inode, const struct pvfs_cap *cap, void *arg),
		  void *arg);
int pvfs_unstuff(struct inode *inode, u32 flags);

/* ---------------------------------------------------------------- space.c */

long pvfs_fallocate(struct file *file, int mode, loff_t offset, loff_t len);
ssize_t pvfs_copy_file_range(struct file *file_in, loff_t pos_in, struct file *file_out,
			     loff_t pos_out, size_t len, unsigned int flags);
loff_t pvfs_file_llseek(struct file *file, loff_t offset, int whence);

static inline int pvfs_io_run(struct pvfs_io *io)
{
	int err = pvfs_io_start(io);

	return err ?: pvfs_io_finish(io);
}

#endif
