// SPDX-License-Identifier: GPL-2.0
/*
 * full.c - will what is written to the page cache fit, when it comes to the iods? They tell what room they have
 * (docs/protocol.md, Room); where that comes to an end write(2) is to say so, not a close later on.
 *
 * A call goes to the page cache only if each iod that gets bytes of it has room for all that is dirty, or on its way,
 * as if that were all its own. Nothing is accounted for that: what is dirty the kernel knows, of this machine in two
 * words, and if that is too much, of this volume. When it was written the iod has told anew. So all that was
 * taken fits, as far as it depends on this client.
 *
 * Else the call goes to the iods, and what was taken before for these goes first, of whatever file: it has counted on
 * the room that this call would use.
 */
#include <linux/backing-dev.h>
#include <linux/bitmap.h>
#include <linux/jiffies.h>
#include <linux/vmstat.h>
#include "vfs.h"

/*
 * What others write is not told. Who has not heard of an iod for so long takes little on its word: the next answer comes
 * soon then. It is longer than the kernel leaves a page dirty, so who writes all the time never gets there.
 */
#define FULL_OLD_S 60
#define FULL_OLD (4u << 20)
/* A call that is under way on another CPU, and what the kernel has not added up yet there, bytes. */
#define FULL_PER_CPU max(1ul << 20, 256 * PAGE_SIZE)

/* Beside what is known to be dirty there may be so much. */
static u64 full_unseen(void)
{
	return (u64)num_online_cpus() * FULL_PER_CPU;
}

/* Which iods get bytes of a range: a bit for each. */
static void full_iods(struct inode *inode, u64 pos, u64 len, unsigned long *iods)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_layout layout;
	struct pvfs_extent e;
	unsigned int i;
	u64 at;

	spin_lock(&pi->lock);
	layout = pi->layout;
	spin_unlock(&pi->lock);
	bitmap_zero(iods, vol->niods);
	for (at = round_down(pos, layout.ssize), i = 0; at < pos + len && i < layout.pcount;
	     at += layout.ssize, i++) {
		pvfs_stripe_map(&layout, at, 1, &e);
		__set_bit(pvfs_stripe_iod(&layout, e.df, vol->niods), iods);
	}
}

/* What they have told, the least of it. @aged: if that is old, it is not much. */
static u64 full_room(const struct pvfs_volume *vol, const unsigned long *iods, bool aged)
{
	u64 room = U64_MAX, when;
	unsigned long i;

	for_each_set_bit(i, iods, vol->niods) {
		room = min(room, pvfs_iod_room(vol->iods[i], &when));
		if (aged && time_after64(get_jiffies_64(), when + FULL_OLD_S * HZ))
			room = min(room, FULL_OLD + full_unseen());
	}
	return room;
}

/**
 * pvfs_full_dirty - how much of a volume is dirty or on its way?
 * @vol: the volume
 * @exact: also what its CPUs have yet to add up
 *
 * Return: bytes.
 */
u64 pvfs_full_dirty(const struct pvfs_volume *vol, bool exact)
{
	struct bdi_writeback *wb;
	u64 pages = 0;

	/* One, and one for each cgroup that writes. */
	rcu_read_lock();
	list_for_each_entry_rcu(wb, &vol->sb->s_bdi->wb_list, bdi_node) {
		if (exact)
			pages += wb_stat_sum(wb, WB_RECLAIMABLE) + wb_stat_sum(wb, WB_WRITEBACK);
		else
			pages += wb_stat(wb, WB_RECLAIMABLE) + wb_stat(wb, WB_WRITEBACK);
	}
	rcu_read_unlock();
	return pages << PAGE_SHIFT;
}

/* Is there less room than what is dirty, and @len bytes? */
static bool full_short(const struct pvfs_volume *vol, const unsigned long *iods, u64 len, bool aged)
{
	u64 more = len + full_unseen(), dirty;

	/* First what is dirty: what no longer is when that is looked at, the iod has told of by then (io.c). */
	dirty = global_node_page_state(NR_FILE_DIRTY) + global_node_page_state(NR_WRITEBACK);
	smp_rmb();
	if (full_room(vol, iods, aged) >= (dirty << PAGE_SHIFT) + more)
		return false;
	dirty = pvfs_full_dirty(vol, false);
	smp_rmb();
	return full_room(vol, iods, aged) < dirty + more;
}

/**
 * pvfs_full_soon - might bytes not fit, that are written to the page cache now?
 * @inode: the file
 * @pos: of the first of them
 * @len: how many
 *
 * Of a stuffed file the manager has them, and a disk of its own.
 */
bool pvfs_full_soon(struct inode *inode, u64 pos, u64 len)
{
	DECLARE_BITMAP(iods, PVFS_IOD_MAX);

	if (pvfs_stuffed(inode))
		return false;
	full_iods(inode, pos, len, iods);
	return full_short(PVFS_VOL(inode), iods, len, true);
}

/* Has a file, that is open, anything in the page cache that one of these iods is to get? */
static bool full_counts_on(struct inode *inode, const unsigned long *iods)
{
	DECLARE_BITMAP(own, PVFS_IOD_MAX);

	if (pvfs_stuffed(inode) || !pvfs_unwritten(inode))
		return false;
	full_iods(inode, 0, LLONG_MAX, own);
	return bitmap_intersects(own, iods, PVFS_VOL(inode)->niods);
}

/**
 * pvfs_full_settle - before bytes go to the iods at once: do they take room that others count on?
 * @inode: the file
 * @pos: of the first byte
 * @len: bytes
 *
 * Then what write(2) has left in the page cache for the same iods, of any file of the volume, is written first. That waits
 * for iods and for the manager, as fsync does, so not under the APPEND lock; and not at all while a server is away, which need
 * not be one of these: then fsync may have to tell. Nor because an iod was silent for long, as nothing is kept for so
 * long. Errors are told by fsync and close.
 *
 * Return: 0 or -EINTR (killed meanwhile).
 */
int pvfs_full_settle(struct inode *inode, u64 pos, u64 len)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	DECLARE_BITMAP(iods, PVFS_IOD_MAX);
	struct inode *each;
	struct pvfs_walk w;
	int err = 0;

	if (pvfs_stuffed(inode))
		return 0;
	full_iods(inode, pos, len, iods);
	if (!full_short(vol, iods, len, false) || !pvfs_full_dirty(vol, true) || !pvfs_volume_up(vol))
		return 0;
	/* What is closed is open until it is written: late.c. */
	pvfs_walk_begin(&w, &vol->open_lock, &vol->open_list, offsetof(struct pvfs_inode, opens.listed));
	while (!err) {
		each = pvfs_walk_next(&w);
		if (!each)
			break;
		if (full_counts_on(each, iods) && pvfs_behind_settle(each))
			err = -EINTR;
		pvfs_iput_later(each);
	}
	pvfs_walk_end(&w);
	return err;
}
