// SPDX-License-Identifier: LGPL-2.1
/*
 * sync.c - fsync: the datafiles first, all at once, then the mgr is told size and time.
 *
 * A daemon that was restarted since it acknowledged a write answers with another verifier: what it
 * had not on disk is lost, and the caller is told so, once.
 */
#include "lib.h"
#include <stdlib.h>

/*
 * Every datafile that has bytes, not only those that we wrote: another descriptor of this process,
 * closed since, may have written the rest.
 */
static u32 sync_list(struct inode *ino, u32 *df, struct pvfs_layout *ret)
{
	u32 i, n = 0;

	pthread_mutex_lock(&ino->lock);
	*ret = ino->layout;
	for (i = 0; i < ino->layout.pcount; i++) {
		if (pvfs_stripe_df_size(&ino->layout, i, ino->size) ||
		    (ino->verifiers && ino->verifiers[i].dirty))
			df[n++] = i;
	}
	pthread_mutex_unlock(&ino->lock);
	return n;
}

static int sync_data(struct pvfs_file *f, u32 flags, u32 *ret_generation)
{
	struct pvfs_fsync_req req = { .fid = f->inode->fid, .flags = flags };
	u64 seq = lib_inode_sync_begin(f->inode);
	struct pvfs_layout layout;
	struct lib_ask *asks;
	u32 *df, n, i;
	int err, rc;

	*ret_generation = lib_file_cap(f, &req.cap);
	df = malloc(PVFS_IOD_MAX * sizeof(*df));
	if (!df)
		return -ENOMEM;
	n = sync_list(f->inode, df, &layout);
	asks = calloc(n + 1, sizeof(*asks));
	err = asks ? 0 : -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		asks[i].df = df[i];
		asks[i].body_len = pvfs_fsync_req_encode(&req, asks[i].body, sizeof(asks[i].body));
	}
	err = err ?: lib_ask_all(f->fs, &layout, PVFS_OP_FSYNC, asks, n);
	if (err)
		goto out;
	for (i = 0; i < n; i++) {
		struct pvfs_fsync_rep rep;

		rc = asks[i].err ?: pvfs_fsync_rep_decode(&rep, asks[i].rep, asks[i].rep_len);
		if (!rc)
			lib_inode_verify(f->inode, asks[i].df, rep.verifier, seq);
		err = err ?: rc;
	}
out:
	free(asks);
	free(df);
	return err;
}

static int do_fsync(struct pvfs_file *f, u32 flags)
{
	struct inode *ino = f->inode;
	struct pvfs_report_req req = { .fid = ino->fid };
	struct pvfs_report_rep rep;
	u8 buf[REP_MAX];
	u32 generation;
	bool lost;
	int err;

	/* What is written to a head is on stable storage when that is answered. */
	if (lib_head_is(ino))
		return 0;
	err = sync_data(f, flags, &generation);
	if (lib_session_refused(f->fs, err, generation))
		err = sync_data(f, flags, &generation);
	if (!err && lib_inode_report_take(ino, &req.report)) {
		err = MGR_CALL(f->fs, REPORT, report, &req, &rep, buf);
		if (!err) {
			lib_inode_update(ino, &rep.attr);
			lib_inode_report_done(ino, &req.report);
		}
	}
	pthread_mutex_lock(&ino->lock);
	lost = ino->lost;
	if (!err)
		ino->lost = false;
	pthread_mutex_unlock(&ino->lock);
	return err ?: lost ? -EIO : 0;
}

/**
 * pvfs_fsync - wait until what was written is on stable storage
 *
 * Return: 0; -EIO, once, when a daemon was restarted in a way that may have lost bytes written
 * since the last fsync; -errno.
 */
int pvfs_fsync(struct pvfs_file *f)
{
	return lib_fs_check(f->fs) ?: do_fsync(f, 0);
}

int pvfs_fdatasync(struct pvfs_file *f)
{
	return lib_fs_check(f->fs) ?: do_fsync(f, PVFS_FS_DATASYNC);
}
