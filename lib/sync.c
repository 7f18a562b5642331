// SPDX-License-Identifier: LGPL-2.1
/*
 * sync.c - fsync: the datafiles first, all at once, then the mgr is told size and time.
 *
 * A daemon that was restarted since it acknowledged a write answers with another verifier: what it had not on disk is
 * lost, and the caller is told so, once.
 */
#include "lib.h"
#include <stdlib.h>

struct sync_piece {
	struct pvfs_rpc rpc;
	struct syncs *syncs;
	u32 df;
	u8 body[96], rep[64];
};

struct syncs {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	u32 left;
};

static void sync_done(struct pvfs_rpc *rpc)
{
	struct sync_piece *p = rpc->arg;
	struct syncs *s = p->syncs;

	pthread_mutex_lock(&s->lock);
	if (!--s->left)
		pthread_cond_signal(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

/*
 * Every datafile that has bytes, not only those that we wrote: another descriptor of this process, closed since, may
 * have written the rest.
 */
static u32 sync_list(struct inode *ino, u32 *df, struct pvfs_layout *ret)
{
	u32 i, n = 0;

	pthread_mutex_lock(&ino->lock);
	*ret = ino->layout;
	for (i = 0; i < ino->layout.pcount; i++) {
		if (pvfs_stripe_df_size(&ino->layout, i, ino->size) || (ino->verifiers && ino->verifiers[i].dirty))
			df[n++] = i;
	}
	pthread_mutex_unlock(&ino->lock);
	return n;
}

static int sync_data(struct pvfs_file *f, u32 flags, u32 *ret_generation)
{
	struct syncs s = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	struct pvfs_fsync_req req = { .fid = f->inode->fid, .flags = flags };
	u64 seq = lib_inode_sync_begin(f->inode);
	struct sync_piece *p = NULL;
	struct pvfs_layout layout;
	u32 *df, *iods, n, i;
	int err = -ENOMEM, rc;

	*ret_generation = lib_file_cap(f, &req.cap);
	df = malloc(2 * PVFS_IOD_MAX * sizeof(*df));
	if (!df)
		return -ENOMEM;
	iods = df + PVFS_IOD_MAX;
	n = sync_list(f->inode, df, &layout);
	if (!n) {
		err = 0;
		goto out;
	}
	p = calloc(n, sizeof(*p));
	if (!p)
		goto out;
	for (i = 0; i < n; i++)
		iods[i] = pvfs_stripe_iod(&layout, df[i], f->fs->niods);
	err = lib_fs_iods_ready(f->fs, iods, n);
	if (err)
		goto out;
	s.left = n;
	for (i = 0; i < n; i++) {
		rc = pvfs_fsync_req_encode(&req, p[i].body, sizeof(p[i].body));
		p[i].syncs = &s;
		p[i].df = df[i];
		p[i].rpc = (struct pvfs_rpc){ .op = PVFS_OP_FSYNC, .body = p[i].body, .body_len = rc,
					      .rep = p[i].rep, .rep_room = sizeof(p[i].rep), .done = sync_done,
					      .arg = &p[i], .timeout_ms = f->fs->soft ? (int)f->fs->timeo_ms : 0 };
		pvfs_peer_submit(f->fs->iods[iods[i]].peer, &p[i].rpc);
	}
	pthread_mutex_lock(&s.lock);
	while (s.left)
		pthread_cond_wait(&s.cond, &s.lock);
	pthread_mutex_unlock(&s.lock);
	for (i = 0; i < n; i++) {
		struct pvfs_fsync_rep rep;

		rc = lib_fs_rpc_error(f->fs, p[i].rpc.err) ?: pvfs_fsync_rep_decode(&rep, p[i].rep, p[i].rpc.rep_len);
		if (!rc)
			lib_inode_verify(f->inode, p[i].df, rep.verifier, seq);
		err = err ?: rc;
	}
out:
	free(p);
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

	err = sync_data(f, flags, &generation);
	if (lib_session_refused(f->fs, err, generation))
		err = sync_data(f, flags, &generation);
	if (!err && lib_inode_report_take(ino, &req.report)) {
		err = MGR_CALL(f->fs, REPORT, report, &req, &rep, buf);
		if (err)
			lib_inode_report_restore(ino, &req.report);
		else
			lib_inode_update(ino, &rep.attr);
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
 * Return: 0; -EIO, once, when a daemon was restarted in a way that may have lost bytes written since the last fsync;
 * -errno.
 */
int pvfs_fsync(struct pvfs_file *f)
{
	return lib_fs_check(f->fs) ?: do_fsync(f, 0);
}

int pvfs_fdatasync(struct pvfs_file *f)
{
	return lib_fs_check(f->fs) ?: do_fsync(f, PVFS_FS_DATASYNC);
}
