/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unstable.h - what unstable.c and sync.c share: what is remembered of a file that was written to, and who
 * has claimed it to sync it.
 */
#ifndef PVFS_UNSTABLE_H
#define PVFS_UNSTABLE_H

#include "vfs.h"

#define PVFS_UNSTABLE_FILES 32		/* synced at once by one task */

/* A file that was written to. vol->unstable.lock protects what has no remark. */
struct pvfs_unstable {
	struct hlist_node hash;
	struct list_head link;	/* on vol->unstable.list while there is something to sync or tell */
	struct pvfs_fid fid;		/* constant */
	struct inode *inode;		/* that points here; NULL: none is in memory */
	u64 since;			/* when it came onto the list */
	u64 begun;			/* when who has claimed it did so, */
	u64 tried;			/* and when the last one who is done did; as since */
	bool failed;			/* that one could not sync all of it */
	bool claimed;			/* somebody is syncing it, and sees to it afterwards */
	int err;			/* what came of that so far; the claimer's */
	bool lost;			/* to be told to who opens it */
	spinlock_t lock;		/* protects the rest; inside vol->unstable.lock */
	struct pvfs_layout layout;
	struct pvfs_cap cap;		/* of the last write; any is good for FSYNC */
	u64 session;			/* in this session */
	u64 *verf;			/* by datafile: of writes since the last FSYNC, 0: none */
	u32 nverf;
	/*
	 * Generations of what is written: @gen now; what was up to @stable is on stable storage, or was
	 * told as lost; and of @gone is the latest that is not in the page cache. See resend.c.
	 */
	unsigned long gen, stable, gone;
	/* a verifier was another, which is to be dealt with; cleared under vol->unstable.lock, too */
	bool changed;
	bool resent;	/* pages were made dirty for that, and not all were written and synced since */
	/* that is being done, and pages from this one on are yet to be looked at; one of these went */
	bool resending, missing;
	pgoff_t passed;
	u32 resends;			/* how often, since a sync went well */
	unsigned long syncing;		/* the claimer's: what it will have synced */
	bool missed;			/* the same: not all of that */
	bool redo;			/* the same: it is not done with it */
};

/* A verifier as we keep it: 0 means none. */
static inline u64 pvfs_unstable_verf(u64 verifier)
{
	return verifier ?: 1;
}

/* unstable.c */
struct pvfs_unstable *pvfs_unstable_of(struct inode *inode, bool make);
bool pvfs_unstable_dirty(struct pvfs_unstable *u);
void pvfs_unstable_forget(struct pvfs_unstable *u);
void pvfs_unstable_lost(struct pvfs_volume *vol, struct pvfs_unstable *u);
void pvfs_unstable_changed(struct pvfs_volume *vol, struct pvfs_unstable *u);
void pvfs_unstable_session(struct pvfs_unstable *u, u64 session);
bool pvfs_unstable_claim(struct pvfs_volume *vol, struct pvfs_unstable *u);
unsigned int pvfs_unstable_claim_oldest(struct pvfs_volume *vol, u64 since, bool told,
					struct pvfs_unstable **us, bool *busy, bool *failed);
void pvfs_unstable_release(struct pvfs_volume *vol, struct pvfs_unstable **us, unsigned int n);
int pvfs_unstable_resend(struct pvfs_volume *vol, struct pvfs_unstable *u);
void pvfs_unstable_resent(struct inode *inode, struct pvfs_unstable *u, u32 seen);

#endif
