// SPDX-License-Identifier: GPL-2.0
/*
 * durable.c - what has to be on stable storage before it is answered, and is shared by those who
 * wait for it.
 *
 * Syncs of one datafile go one after the other. The kernel tells of a failure once, to the first who
 * asks: if a second one could ask before the first has had the verifier changed, it would tell its
 * client that all is well. Who waited while another's sync began and ended needs none of its own.
 *
 * REMOVEs come in batches of the mgr's reaper, and those of a batch are mostly of one directory: all
 * that are done while the disk is busy are answered after one sync of it.
 */
#include "iod.h"
#include "../common/log.h"
#include <stdlib.h>

static void failed(struct iod *iod, const struct pvfs_fid *fid, int err)
{
	iod_loss_note(iod->loss);
	iod_count(iod->counts.sync_failed, 1);
	pvfs_log_limited(PVFS_LOG_ERROR, "sync of ino %llu: %s; unsynced data may be lost",
			 (unsigned long long)fid->ino, strerror(-err));
}

int iod_sync(struct iod *iod, struct iod_fdent *e, bool datasync)
{
	pthread_mutex_t *lock = &iod->sync_lock[e->file.fid.ino % IOD_SYNC_LOCKS];
	u64 mine = atomic_fetch_add(&e->sync_asked, 1) + 1, upto;
	int err = 0;

	pthread_mutex_lock(lock);
	if (mine <= (datasync ? e->synced_data : e->synced))
		goto out;
	/* Who has asked by now has written before. */
	upto = atomic_load(&e->sync_asked);
	iod_fds_syncing(e);
	err = iod->store->ops->sync(iod->store, &e->file, datasync);
	if (err) {
		failed(iod, &e->file.fid, err);
		goto out;
	}
	e->synced_data = upto;
	if (!datasync)
		e->synced = upto;
out:
	pthread_mutex_unlock(lock);
	return err;
}

/* On a thread of sched.c: until none is left. */
static void see_to_removals(void *arg)
{
	struct iod_removal *r, *next;
	struct iod *iod = arg;
	int err;

	for (;;) {
		pthread_mutex_lock(&iod->removal_lock);
		r = iod->removals;
		iod->removals = NULL;
		iod->removing = r;
		pthread_mutex_unlock(&iod->removal_lock);
		if (!r)
			return;
		for (; r; r = next) {
			next = r->next;
			/* Costs something for the first one of a directory only. */
			err = iod->store->ops->sync_name(iod->store, &r->fid);
			if (err)
				failed(iod, &r->fid, err);
			iod_fail(r->call, err);
			free(r);
		}
	}
}

void iod_removed(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid)
{
	struct iod_removal *r = malloc(sizeof(*r));
	bool start;
	int err;

	if (!r) {
		err = iod->store->ops->sync_name(iod->store, fid);
		if (err)
			failed(iod, fid, err);
		iod_fail(call, err);
		return;
	}
	*r = (struct iod_removal){ .call = call, .fid = *fid };
	pthread_mutex_lock(&iod->removal_lock);
	r->next = iod->removals;
	iod->removals = r;
	start = !iod->removing;
	iod->removing = true;
	pthread_mutex_unlock(&iod->removal_lock);
	if (start)
		iod_sched_run(iod->sched, see_to_removals, iod);
}
