// SPDX-License-Identifier: LGPL-2.1
/*
 * inode.c - what is known of the inodes that are open in this process.
 *
 * Not a cache of attributes: those are asked for each time. Kept here is what only we know (writes
 * that the mgr has not been told of, what the iods promised about them), what lets a read do
 * without the mgr (a lower bound of the size, good enough because a short reply is always followed
 * up), and the capabilities.
 */
#include "lib.h"
#include <stdlib.h>

static struct inode **bucket(struct pvfs_fs *fs, const struct pvfs_fid *fid)
{
	return &fs->inodes[fid->ino % INODE_BUCKETS];
}

/**
 * lib_inode_find - the inode, if it is open here
 *
 * Return: a reference for lib_inode_put(), or NULL.
 */
struct inode *lib_inode_find(struct pvfs_fs *fs, const struct pvfs_fid *fid)
{
	struct inode *ino;

	pthread_mutex_lock(&fs->inode_lock);
	for (ino = *bucket(fs, fid); ino; ino = ino->next) {
		if (fid_eq(&ino->fid, fid)) {
			ino->refs++;
			break;
		}
	}
	pthread_mutex_unlock(&fs->inode_lock);
	return ino;
}

/**
 * lib_inode_get - the inode for attributes that an OPEN or CREATE has brought
 *
 * Return: a reference for lib_inode_put(), or NULL: out of memory.
 */
struct inode *lib_inode_get(struct pvfs_fs *fs, const struct pvfs_attr *attr)
{
	struct inode *ino, *new = calloc(1, sizeof(*new)), **b = bucket(fs, &attr->fid);

	if (!new)
		return NULL;
	pthread_mutex_lock(&fs->inode_lock);
	for (ino = *b; ino && !fid_eq(&ino->fid, &attr->fid); ino = ino->next)
		;
	if (!ino) {
		ino = new;
		new = NULL;
		ino->fid = attr->fid;
		ino->layout = attr->layout;
		pthread_mutex_init(&ino->append, NULL);
		pthread_mutex_init(&ino->relayout, NULL);
		pthread_mutex_init(&ino->locking, NULL);
		pthread_mutex_init(&ino->lock, NULL);
		ino->next = *b;
		*b = ino;
	}
	ino->refs++;
	pthread_mutex_unlock(&fs->inode_lock);
	free(new);
	lib_inode_update(ino, attr);
	return ino;
}

void lib_inode_put(struct pvfs_fs *fs, struct inode *ino)
{
	struct inode **pp;

	if (!ino)
		return;
	pthread_mutex_lock(&fs->inode_lock);
	if (--ino->refs) {
		ino = NULL;
	} else {
		for (pp = bucket(fs, &ino->fid); *pp != ino; pp = &(*pp)->next)
			;
		*pp = ino->next;
	}
	pthread_mutex_unlock(&fs->inode_lock);
	if (!ino)
		return;
	pvfs_lockset_free(&ino->appender.set);
	pthread_mutex_destroy(&ino->append);
	pthread_mutex_destroy(&ino->relayout);
	pthread_mutex_destroy(&ino->locking);
	pvfs_lockset_free(&ino->records.set);
	pthread_mutex_destroy(&ino->lock);
	free(ino->verifiers);
	free(ino);
}

/**
 * lib_inode_update - newer attributes have come
 *
 * Answers may overtake one another: the older one is left out.
 */
void lib_inode_update(struct inode *ino, const struct pvfs_attr *attr)
{
	pthread_mutex_lock(&ino->lock);
	if (!(attr->flags & PVFS_AF_STUFFED))
		ino->striped = true;
	if (attr->version >= ino->version) {
		ino->version = attr->version;
		ino->mode = attr->mode;
		ino->uid = attr->uid;
		ino->gid = attr->gid;
		ino->caps = attr->flags & PVFS_AF_CAPS;
		/* Unknown: not less than we know. What needs it asks with GETATTR. */
		if (!(attr->flags & PVFS_AF_SIZE_UNKNOWN) || attr->trunc_gen != ino->trunc_gen)
			ino->size = attr->size;
		else
			ino->size = max(ino->size, attr->size);
		ino->trunc_gen = attr->trunc_gen;
		ino->atime = attr->atime;
		ino->mtime = attr->mtime;
		ino->ctime = attr->ctime;
		/* Of an empty file the layout may still be changed. */
		if (!ino->verifiers)
			ino->layout = attr->layout;
		if (ino->reporting && ino->report.trunc_gen == attr->trunc_gen)
			ino->size = max(ino->size, ino->report.end);
	}
	pthread_mutex_unlock(&ino->lock);
}

void lib_now(struct pvfs_ts *ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	*ret = (struct pvfs_ts){ .sec = ts.tv_sec, .nsec = ts.tv_nsec };
}

/**
 * lib_atime_due - is the time of a read, now, to be kept?
 * @now: filled
 */
bool lib_atime_due(const struct pvfs_ts *atime, const struct pvfs_ts *mtime,
		   const struct pvfs_ts *ctime, struct pvfs_ts *now)
{
	lib_now(now);
	return pvfs_relatime(atime, mtime, ctime, now);
}

/**
 * lib_inode_accessed - a file was read
 */
void lib_inode_accessed(struct inode *ino)
{
	struct pvfs_ts now;

	pthread_mutex_lock(&ino->lock);
	if (lib_atime_due(&ino->atime, &ino->mtime, &ino->ctime, &now))
		ino->atime = ino->atime_due = now;
	pthread_mutex_unlock(&ino->lock);
}

static bool atime_take(struct inode *ino, struct pvfs_ts *ret)
{
	*ret = ino->atime_due;
	ino->atime_due = (struct pvfs_ts){ 0 };
	return ret->sec;
}

/**
 * lib_inode_report_take - what the mgr has to be told
 * @ret: always valid; nothing (all 0 but trunc_gen) when there is nothing to tell
 *
 * It stays due until a request that carried it was answered, and lib_inode_report_done() said so:
 * what another thread asks meanwhile may overtake that request, and is to carry it too. Only that
 * the file was read is told once, and forgotten if the request fails.
 *
 * Return: is there something in it?
 */
bool lib_inode_report_take(struct inode *ino, struct pvfs_wreport *ret)
{
	bool any;

	pthread_mutex_lock(&ino->lock);
	any = ino->reporting;
	*ret = any ? ino->report : (struct pvfs_wreport){ .trunc_gen = ino->trunc_gen };
	any |= atime_take(ino, &ret->atime);
	pthread_mutex_unlock(&ino->lock);
	return any;
}

/**
 * lib_inode_atime_take - the same, but only that it was read
 */
void lib_inode_atime_take(struct inode *ino, struct pvfs_ts *ret)
{
	pthread_mutex_lock(&ino->lock);
	atime_take(ino, ret);
	pthread_mutex_unlock(&ino->lock);
}

static void report_merge(struct inode *ino, const struct pvfs_wreport *r)
{
	if (!ino->reporting) {
		ino->report = *r;
		ino->reporting = true;
		return;
	}
	ino->report.end = max(ino->report.end, r->end);
	if (pvfs_ts_after(&r->wtime, &ino->report.wtime))
		ino->report.wtime = r->wtime;
	/*
	 * A truncation in between: the older number makes the mgr ask the iods instead of believing
	 * us.
	 */
	if ((s32)(r->trunc_gen - ino->report.trunc_gen) < 0)
		ino->report.trunc_gen = r->trunc_gen;
}

/**
 * lib_inode_report_done - the mgr has been told
 * @r: of lib_inode_report_take()
 */
void lib_inode_report_done(struct inode *ino, const struct pvfs_wreport *r)
{
	const struct pvfs_wreport *due = &ino->report;

	pthread_mutex_lock(&ino->lock);
	/* Unless more was written since. */
	if (due->end == r->end && due->trunc_gen == r->trunc_gen && due->wtime.sec == r->wtime.sec &&
	    due->wtime.nsec == r->wtime.nsec)
		ino->reporting = false;
	pthread_mutex_unlock(&ino->lock);
}

/**
 * lib_inode_leaves_hole - does a write at @off leave a hole behind the end of the file, as far as
 * we know that?
 */
bool lib_inode_leaves_hole(struct inode *ino, u64 off)
{
	bool ret;

	pthread_mutex_lock(&ino->lock);
	ret = off > (ino->size + 4095) / 4096 * 4096;
	pthread_mutex_unlock(&ino->lock);
	return ret;
}

/**
 * lib_inode_wrote - iods have taken bytes
 * @end: end of what was written, file offset
 * @wtime: latest time an iod gave
 * @trunc_gen: the inode's when the write began, or PVFS_GEN_ASK
 */
void lib_inode_wrote(struct inode *ino, u64 end, const struct pvfs_ts *wtime, u32 trunc_gen)
{
	struct pvfs_wreport r = { .end = end, .wtime = *wtime, .trunc_gen = trunc_gen };

	pthread_mutex_lock(&ino->lock);
	report_merge(ino, &r);
	if (trunc_gen == ino->trunc_gen)
		ino->size = max(ino->size, end);
	pthread_mutex_unlock(&ino->lock);
}

/**
 * lib_inode_verify - an iod's verifier came with the answer to a WRITE or FSYNC
 * @df: datafile
 * @sync_seq: 0: of a WRITE. Else of an FSYNC, and what lib_inode_sync_begin() returned: writes
 *	answered up to then are
 *            durable now, or lost when the verifier changed
 */
void lib_inode_verify(struct inode *ino, u32 df, u64 verifier, u64 sync_seq)
{
	struct inode_verifier *v;

	pthread_mutex_lock(&ino->lock);
	if (!ino->verifiers)
		goto out;
	v = &ino->verifiers[df];
	if (v->dirty && v->verifier != verifier)
		ino->lost = true;
	v->verifier = verifier;
	if (!sync_seq) {
		v->dirty = true;
		v->seq = ++ino->write_seq;
	} else if (v->seq < sync_seq) {
		v->dirty = false;
	}
out:
	pthread_mutex_unlock(&ino->lock);
}

/* An fsync begins; see lib_inode_verify(). */
u64 lib_inode_sync_begin(struct inode *ino)
{
	u64 seq;

	pthread_mutex_lock(&ino->lock);
	seq = ino->write_seq + 1;
	pthread_mutex_unlock(&ino->lock);
	return seq;
}

/**
 * lib_inode_reclaim - tell the mgr how an inode is open here, and get capabilities for the session
 * there is now
 *
 * No OPEN or CLOSE may be under way; see session.c.
 *
 * Return: 0 (also when the mgr does not know the inode any more), or -errno: to be tried again.
 */
int lib_inode_reclaim(struct pvfs_fs *fs, struct inode *ino)
{
	struct pvfs_reclaim_req req = {
		.cred = { .uid = (u32)-1, .gid = (u32)-1 },	/* nobody's: the capability says it */
		.fid = ino->fid,
	};
	struct pvfs_reclaim_rep rep;
	u8 body[128], rep_buf[REP_MAX];
	struct pvfs_rpc rpc;
	u32 generation;
	unsigned int r;
	int n, err;

	for (r = 1; r < ARRAY_SIZE(ino->open); r++) {
		pthread_mutex_lock(&ino->lock);
		req.count = ino->open[r].count;
		req.cap = ino->open[r].cap;
		pthread_mutex_unlock(&ino->lock);
		if (!req.count)
			continue;
		req.flags = (r & PVFS_CAP_READ ? PVFS_O_READ : 0) |
			    (r & PVFS_CAP_WRITE ? PVFS_O_WRITE : 0);
		n = pvfs_reclaim_req_encode(&req, body, sizeof(body));
		if (n < 0)
			return n;
		pthread_mutex_lock(&fs->lock);
		generation = fs->generation;
		pthread_mutex_unlock(&fs->lock);
		rpc = (struct pvfs_rpc){ .op = PVFS_OP_RECLAIM,
					 .body = body,
					 .body_len = n,
					 .rep = rep_buf,
					 .rep_room = sizeof(rep_buf),
					 .timeout_ms = 5000 };
		err = pvfs_peer_call(fs->mgr, &rpc);
		if (!err)
			err = pvfs_reclaim_rep_decode(&rep, rep_buf, rpc.rep_len);
		if (err == -ESTALE || err == -ENOENT) {
			pvfs_warn("libpvfs: %s: inode %llu was open here, but is gone: was the session away too long?",
				  fs->mgr_name, (unsigned long long)ino->fid.ino);
			continue;
		}
		/* For ever: what is done with it is refused, and all else goes on. */
		if (err == -EACCES) {
			pvfs_warn("libpvfs: %s: inode %llu was open here, and the manager does not believe it",
				  fs->mgr_name, (unsigned long long)ino->fid.ino);
			continue;
		}
		if (err)
			return err;
		pthread_mutex_lock(&ino->lock);
		ino->open[r].cap = rep.cap;
		ino->open[r].generation = generation;
		pthread_mutex_unlock(&ino->lock);
		lib_inode_update(ino, &rep.attr);
	}
	return lib_locks_reclaim(fs, ino);
}

/**
 * lib_inodes_reclaim - lib_inode_reclaim() of all there are
 */
int lib_inodes_reclaim(struct pvfs_fs *fs)
{
	struct inode **all, *ino;
	size_t n = 0, i = 0;
	unsigned int b;
	int err = 0;

	pthread_mutex_lock(&fs->inode_lock);
	for (b = 0; b < INODE_BUCKETS; b++) {
		for (ino = fs->inodes[b]; ino; ino = ino->next)
			n++;
	}
	all = calloc(n + 1, sizeof(void *));
	for (b = 0; all && b < INODE_BUCKETS; b++) {
		for (ino = fs->inodes[b]; ino; ino = ino->next) {
			ino->refs++;
			all[i++] = ino;
		}
	}
	pthread_mutex_unlock(&fs->inode_lock);
	if (!all)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (!err)
			err = lib_inode_reclaim(fs, all[i]);
		lib_inode_put(fs, all[i]);
	}
	free(all);
	return err;
}
