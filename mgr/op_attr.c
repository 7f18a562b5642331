// SPDX-License-Identifier: GPL-2.0
/*
 * op_attr.c - GETATTR, SETATTR, STATFS.
 *
 * SETATTR follows notify_change() and setattr_prepare() of Linux: who may change what, and what a
 * change of owner or size does to the set-id bits. A change of size is a truncation (size.c) whose
 * first transaction makes the other changes too.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define STATFS_MS	2000u
#define STATFS_BSIZE	4096u
#define BYTES_PER_INODE	1024u	/* of the store, all included: an estimate for df -i */

struct getattr {
	const struct pvfs_fid *fid;
	struct mgr_inode in;
};

static int getattr_fn(struct mgr_op *op, void *arg)
{
	struct getattr *g = arg;

	return ns_fid_get(op, g->fid, 0, &g->in);
}

struct atime {
	const struct pvfs_fid *fid;
	struct pvfs_ts ts;
};

int mgr_atime_set(struct mgr_op *op, const struct pvfs_fid *fid, const struct pvfs_ts *ts)
{
	struct mgr_inode in;
	int err;

	err = ns_fid_get(op, fid, MDB_RMW, &in);
	/* It was read before the last change, which may have been that somebody set the time. */
	if (err || !pvfs_ts_after(ts, &in.atime) || !pvfs_ts_after(ts, &in.ctime))
		return err;
	/* No new version: nothing that anyone keeps has become another by being read. */
	in.atime = *ts;
	return ns_inode_put(op, &in);
}

static int atime_fn(struct mgr_op *op, void *arg)
{
	struct atime *a = arg;

	return mgr_atime_set(op, a->fid, &a->ts);
}

int mgr_atime(struct mgr_op *op, const struct pvfs_fid *fid, const struct pvfs_wreport *report)
{
	struct atime a = { .fid = fid, .ts = report->atime };
	struct pvfs_ts now;
	int err;

	if (mgr_ts_zero(&a.ts) || a.ts.nsec >= 1000000000u)
		return 0;
	mgr_wall_now(&now);
	if (pvfs_ts_after(&a.ts, &now))
		a.ts = now;
	err = mgr_run_now(op, atime_fn, &a, 0);
	return err == -ERESTART || err == -EINPROGRESS ? err : 0;
}

int mgr_op_getattr(struct mgr_op *op, const struct pvfs_getattr_req *req,
		   struct pvfs_getattr_rep *rep)
{
	struct getattr g = { .fid = &req->fid };
	bool lease;
	int err;

	err = mgr_atime(op, &req->fid, &req->report);
	if (err)
		return err;
	lease = mgr_lease_begin(op, req->fid.ino);
	err = mgr_run(op, getattr_fn, &g, MGR_RUN_READ);
	err = err ?: mgr_size_attr(op, &g.in, &req->report, &rep->attr);
	if (!err)
		mgr_lease_attr(op, lease, &g.in, &rep->attr);
	/* Who asks this way believes the size: a file that seems shorter than it is is copied short. */
	return err ?: rep->attr.flags & PVFS_AF_SIZE_UNKNOWN ? -EAGAIN : 0;
}

/* ---- setattr ---- */

#define SA_TIMES (PVFS_SA_ATIME | PVFS_SA_MTIME | PVFS_SA_ATIME_NOW | PVFS_SA_MTIME_NOW)
#define SA_NOW (PVFS_SA_ATIME_NOW | PVFS_SA_MTIME_NOW)
#define SA_KILL (PVFS_SA_KILL_PRIV | PVFS_SA_KILL_CAPS | PVFS_SA_KILL_SGID)
#define SA_ALL (PVFS_SA_MODE | PVFS_SA_UID | PVFS_SA_GID | PVFS_SA_SIZE | SA_TIMES | \
		PVFS_SA_OPENED | SA_KILL)

struct setattr {
	const struct pvfs_setattr_req *req;
	struct pvfs_setattr_rep *rep;
	struct pvfs_ts wtime;		/* write time the iods told just before */
	struct mgr_inode in;
};

static bool ts_valid(const struct pvfs_ts *t)
{
	return t->nsec < 1000000000u;
}

/* Is the file open for writing by the asking session? */
static bool writes(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_opens_view v;

	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	return v.self;
}

/* Who may not write to @in is told @refused. */
static int must_write(struct mgr_op *op, const struct pvfs_cred *c, const struct mgr_inode *in,
		      int refused)
{
	int err = ns_may(op, c, in, MGR_MAY_WRITE);

	return err == -EACCES ? refused : err;
}

static void kill_bits(struct mgr_inode *in, const struct pvfs_setattr_req *req)
{
	ns_kill_priv(in, &req->cred);
	if (req->valid & PVFS_SA_KILL_SGID)
		in->mode &= ~S_ISGID;
}

/* Does a KILL take anything away? */
static bool kills(const struct mgr_inode *in, const struct pvfs_setattr_req *req)
{
	struct mgr_inode after = *in;

	if (S_ISDIR(in->mode))
		return false;
	kill_bits(&after, req);
	return ((req->valid & PVFS_SA_KILL_PRIV) && after.mode != in->mode) ||
	       ((req->valid & PVFS_SA_KILL_CAPS) && (in->flags & MGR_IF_CAPS));
}

/* May @req be done to @in? */
static int setattr_check(struct mgr_op *op, const struct pvfs_setattr_req *req,
			 const struct mgr_inode *in)
{
	const struct pvfs_cred *c = &req->cred;
	bool all = ns_all_powerful(c), owner = all || c->uid == in->uid;
	u32 v = req->valid;
	int err = 0;

	if ((v & PVFS_SA_UID) && !all && !(owner && req->uid == in->uid))
		return -EPERM;
	if ((v & PVFS_SA_GID) && !all &&
	    !(owner && (req->gid == in->gid || ns_in_group(c, req->gid))))
		return -EPERM;
	if ((v & PVFS_SA_MODE) && !owner)
		return -EPERM;
	if ((v & PVFS_SA_MODE) && S_ISLNK(in->mode))
		return -EOPNOTSUPP;
	if ((((v & PVFS_SA_ATIME) && !(v & PVFS_SA_ATIME_NOW)) ||
	     ((v & PVFS_SA_MTIME) && !(v & PVFS_SA_MTIME_NOW))) && !owner)
		return -EPERM;
	/* One of the two, and it is for the owner to say; both is what a write would do. */
	if ((v & SA_NOW) && (v & SA_NOW) != SA_NOW && !owner)
		return -EPERM;
	if ((v & SA_NOW) && !owner)
		err = must_write(op, c, in, -EACCES);
	if (!err && (v & PVFS_SA_SIZE) && !((v & PVFS_SA_OPENED) && writes(op, in)))
		err = must_write(op, c, in, -EACCES);
	/* By who writes or cuts; else as chmod, which it is. */
	if (!err && kills(in, req) && !owner) {
		if (!(v & (PVFS_SA_OPENED | PVFS_SA_SIZE)))
			err = -EPERM;
		else if (!writes(op, in))
			err = must_write(op, c, in, -EPERM);
	}
	return err;
}

int mgr_setattr_apply(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_setattr_req *req,
		      const struct pvfs_ts *wtime)
{
	u32 v = req->valid;
	int err;

	err = setattr_check(op, req, in);
	if (err)
		return err;
	/* Before it belongs to another group: it is the old one's members who may keep a bit. */
	if (!(v & PVFS_SA_MODE) && (v & (PVFS_SA_UID | PVFS_SA_GID)) && !S_ISDIR(in->mode))
		kill_bits(in, req);
	if (v & PVFS_SA_UID)
		in->uid = req->uid;
	if (v & PVFS_SA_GID)
		in->gid = req->gid;
	if (v & PVFS_SA_MODE) {
		in->mode = (in->mode & S_IFMT) | (req->mode & 07777);
		if (!ns_all_powerful(&req->cred) && !ns_in_group(&req->cred, in->gid))
			in->mode &= ~S_ISGID;
		err = mgr_acl_chmod(op, in);
	}
	if (((v & PVFS_SA_KILL_PRIV) && !S_ISDIR(in->mode)) ||
	    ((v & PVFS_SA_SIZE) && !ns_all_powerful(&req->cred)))
		kill_bits(in, req);
	/* What a program may do goes whoever changes it, root too. */
	if (!err && (v & (SA_KILL | PVFS_SA_SIZE | PVFS_SA_UID | PVFS_SA_GID)))
		err = mgr_xattr_kill_caps(op, in);
	if (err)
		return err;
	/*
	 * Writes that happened are accounted for before a time is set, so that only later ones move
	 * it again.
	 */
	if (pvfs_ts_after(wtime, &in->wtime))
		in->wtime = *wtime;
	if (v & PVFS_SA_ATIME_NOW)
		in->atime = op->now;
	else if (v & PVFS_SA_ATIME)
		in->atime = req->atime;
	if (v & PVFS_SA_MTIME_NOW)
		in->mtime = op->now;
	else if (v & PVFS_SA_MTIME)
		in->mtime = req->mtime;
	ns_touch_ctime(op, in);
	return 0;
}

/* Also the @change of a truncation. */
static int setattr_apply(struct mgr_op *op, struct mgr_inode *in, void *arg)
{
	struct setattr *s = arg;

	return mgr_setattr_apply(op, in, s->req, &s->wtime);
}

static int setattr_fn(struct mgr_op *op, void *arg)
{
	struct setattr *s = arg;
	int err;

	err = ns_fid_get(op, &s->req->fid, MDB_RMW, &s->in);
	if (err)
		return err;
	mgr_size_fold(op, &s->in);
	err = setattr_apply(op, &s->in, s);
	if (err)
		return err;
	ns_attr(&s->in, &s->rep->attr);
	return ns_inode_put(op, &s->in);
}

static void setattr_finish(struct mgr_op *op, const struct mgr_inode *in, void *arg)
{
	struct setattr *s = arg;

	ns_attr(in, &s->rep->attr);
}

int mgr_op_setattr(struct mgr_op *op, const struct pvfs_setattr_req *req,
		   struct pvfs_setattr_rep *rep)
{
	struct setattr s = { .req = req, .rep = rep };
	struct mgr_truncate t = {
		.fid = req->fid, .size = req->size, .change = setattr_apply,
		.finish = setattr_finish, .arg = &s,
	};
	struct getattr g = { .fid = &req->fid };
	int err;

	if ((req->valid & ~SA_ALL) || !ts_valid(&req->atime) || !ts_valid(&req->mtime))
		return -EINVAL;
	if ((req->valid & PVFS_SA_SIZE) && req->size > PVFS_FILE_MAX)
		return -EFBIG;
	err = mgr_atime(op, &req->fid, &req->report);
	err = err ?: mgr_run(op, getattr_fn, &g, MGR_RUN_READ);
	if (err)
		return err;
	/*
	 * To set a time or cut, know first what was written so far: from the report, or from the
	 * iods.
	 */
	if (req->valid & (SA_TIMES | PVFS_SA_SIZE)) {
		err = mgr_size_attr(op, &g.in, &req->report, &rep->attr);
		if (err)
			return err;
		s.wtime = g.in.wtime;
	} else {
		mgr_opens_report(&op->m->opens, mgr_op_session(op), req->fid.ino, &req->report);
	}
	if (req->valid & PVFS_SA_SIZE) {
		err = mgr_truncate(op, &t);
		s.in = t.in;
	} else {
		err = mgr_run(op, setattr_fn, &s, MGR_RUN_SYNC | MGR_RUN_FINAL);
	}
	return err ?: mgr_size_attr_after(op, &s.in, &rep->attr);
}

/* ---- statfs ---- */

/* Is it on a disk that an iod before it has counted? */
static bool counted(const struct mgr_iocall *calls, u32 i)
{
	u64 disk = calls[i].statfs.disk;

	while (disk && i--)
		if (!calls[i].err && calls[i].statfs.disk == disk)
			return true;
	return false;
}

int mgr_op_statfs(struct mgr_op *op, const struct pvfs_statfs_req *req, struct pvfs_statfs_rep *rep)
{
	struct mgr *m = op->m;
	struct mgr_iocall *calls;
	u32 i;

	calls = calloc(m->niods, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	for (i = 0; i < m->niods; i++) {
		calls[i].iod = i;
		calls[i].op = PVFS_OP_IOD_STATFS;
	}
	mgr_iods_call(op, calls, m->niods, STATFS_MS);
	rep->bsize = STATFS_BSIZE;
	rep->namelen = PVFS_NAME_MAX;
	rep->iods = m->niods;
	for (i = 0; i < m->niods; i++) {
		const struct pvfs_iod_statfs_rep *s = &calls[i].statfs;

		if (calls[i].err)
			continue;
		rep->iods_up++;
		if (counted(calls, i))
			continue;
		/* Sums of bytes could overflow where sums of blocks do not. */
		rep->blocks += (u64)((unsigned __int128)s->blocks * s->bsize / STATFS_BSIZE);
		rep->bfree += (u64)((unsigned __int128)s->bfree * s->bsize / STATFS_BSIZE);
		rep->bavail += (u64)((unsigned __int128)s->bavail * s->bsize / STATFS_BSIZE);
	}
	free(calls);
	/* None when the manager's disk is full. */
	rep->ffree = mgr_space_left(m) / BYTES_PER_INODE;
	rep->files = mgr_files(m) + rep->ffree;
	return 0;
}
