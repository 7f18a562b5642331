// SPDX-License-Identifier: GPL-2.0
/*
 * upcall.c - the table through which the lower half tells the VFS half what comes from below. What is
 * done about it is with its subject: lease.c, lock*.c, opens.c, close.c ...
 */
#include "vfs.h"

static int upcall_init(struct pvfs_volume *vol)
{
	pvfs_leases_init(vol);
	pvfs_listings_init(vol);
	pvfs_opens_init(vol);
	pvfs_closes_init(vol);
	pvfs_deferred_init(vol);
	spin_lock_init(&vol->locks_lock);
	INIT_LIST_HEAD(&vol->lock_inodes);
	INIT_LIST_HEAD(&vol->lock_waits);
	vol->vfs_wq = alloc_workqueue("pvfs_vfs", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	vol->late_wq = alloc_workqueue("pvfs_late", WQ_UNBOUND | WQ_MEM_RECLAIM, PVFS_LATE_MAX);
	vol->put_wq = alloc_workqueue("pvfs_put", WQ_UNBOUND, 0);
	vol->io_wq = alloc_workqueue("pvfs_io", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	vol->back_wq = alloc_workqueue("pvfs_back", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!vol->vfs_wq || !vol->late_wq || !vol->put_wq || !vol->io_wq || !vol->back_wq)
		return -ENOMEM;
	return pvfs_io_room_init(vol);
}

static void upcall_fini(struct pvfs_volume *vol)
{
	if (vol->vfs_wq)
		destroy_workqueue(vol->vfs_wq);
	if (vol->late_wq)
		destroy_workqueue(vol->late_wq);
	if (vol->put_wq)
		destroy_workqueue(vol->put_wq);
	if (vol->io_wq)
		destroy_workqueue(vol->io_wq);
	if (vol->back_wq)
		destroy_workqueue(vol->back_wq);
	pvfs_io_room_fini(vol);
}

/* Files before their locks. */
static int upcall_reclaim(struct pvfs_volume *vol)
{
	int err = pvfs_files_reclaim(vol);

	return err ?: pvfs_locks_reclaim(vol);
}

static void upcall_end(struct pvfs_volume *vol)
{
	pvfs_deferred_end(vol);
	pvfs_closes_end(vol);
}

const struct pvfs_volume_ops pvfs_volume_ops = {
	.init = upcall_init,
	.fini = upcall_fini,
	.lock_granted = pvfs_locks_granted,
	.recall = pvfs_leases_recalled,
	.settle = pvfs_leases_settle,
	.yield = pvfs_leases_yield,
	.leases_void = pvfs_leases_void,
	.leases_unsure = pvfs_leases_unsure,
	.close_current = pvfs_close_current,
	.locks_lost = pvfs_locks_lost,
	.reclaim = upcall_reclaim,
	.reclaim_done = pvfs_meta_reclaim_done,
	.flush = pvfs_closes_flush,
	.end = upcall_end,
	.show_leases = pvfs_leasestat_show,
	.reset_leases = pvfs_leasestat_reset,
};
