// SPDX-License-Identifier: GPL-2.0
/*
 * head.c - stuffed files: HEAD_READ, HEAD_WRITE, FLUSH, UNSTUFF. See "Stuffed files" in
 * docs/protocol.md.
 *
 * The bytes of a stuffed file are its head, which changes in one transaction with the inode; where
 * they are is heads.c's affair. It has no datafiles, no writer makes it UNCERTAIN, and no iod is
 * asked about it. Blocks of it that nobody wrote to would take space here and not at the iods: a
 * stuffed file has no holes, what would leave one unstuffs it.
 *
 * Unstuffing is one way, and three steps: SPILL is recorded, durably, and from then on the head
 * does not change; the datafiles are made of it, each whole and once (FILL), whoever tries and
 * however often; the head goes, with both flags. Whatever ends in between leaves a file that is
 * whole, and is unstuffed by the next who wants to write.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define FILL_MS 10000u
#define BLOCK 4096ull

static u64 up(u64 n)
{
	return (n + BLOCK - 1) & ~(BLOCK - 1);
}

bool mgr_head_fits(const struct mgr_inode *in, u64 off, u64 end)
{
	return end <= in->layout.stuff_max && end >= off && (off & ~(BLOCK - 1)) <= up(in->size);
}

int mgr_head_change(struct mgr_op *op, struct mgr_inode *in, u64 size, const void *data, u32 off,
		    u32 len)
{
	struct mgr_head_disk *rec = malloc(mgr_head_room(max(size, in->size)));
	u8 *bytes = (u8 *)(rec + 1);
	int err;

	if (!rec)
		return -ENOMEM;
	err = mgr_heads_get(op, in, MDB_RMW, rec);
	if (err)
		goto out;
	if (size > in->size)
		memset(bytes + in->size, 0, size - in->size);
	if (len)
		memcpy(bytes + off, data, len);
	if (size)
		err = mgr_heads_put(op, in, rec, size);
	else if (in->size)
		err = mgr_heads_del(op, in);
	in->size = size;
out:
	free(rec);
	return err;
}

static bool may(struct mgr_op *op, const struct pvfs_fid *fid, const struct pvfs_cap *cap,
		u32 rights)
{
	return (cap->rights & rights) &&
	       pvfs_cap_check(&op->m->server_key, op->m->uuid, mgr_op_session(op), fid, cap);
}

/* ---- reading ---- */

struct head_read {
	const struct pvfs_fid *fid;
	struct mgr_inode in;
	struct mgr_head_disk *rec;	/* MGR_HEAD_MAX bytes */
};

static int head_read_fn(struct mgr_op *op, void *arg)
{
	struct head_read *r = arg;
	int err;

	err = ns_fid_get(op, r->fid, 0, &r->in);
	if (!err && !S_ISREG(r->in.mode))
		err = -EINVAL;
	return err || !(r->in.flags & MGR_IF_STUFFED) ? err : mgr_heads_get(op, &r->in, 0, r->rec);
}

static void give(struct mgr_op *op, struct mgr_head_disk *rec, u32 len)
{
	memmove(rec, rec + 1, len);
	op->payload = (u8 *)rec;
	op->payload_len = len;
}

int mgr_head_eager(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_head_disk *rec;
	int err;

	if (!(in->flags & MGR_IF_STUFFED) || !in->size || in->size > PVFS_EAGER_MAX)
		return 0;
	rec = malloc(mgr_head_room(in->size));
	err = rec ? mgr_heads_get(op, in, 0, rec) : 0;
	if (!rec || err) {
		free(rec);
		return err == -ERESTART || err == -EDEADLK ? err : 0;
	}
	give(op, rec, in->size);
	return 0;
}

int mgr_op_head_read(struct mgr_op *op, const struct pvfs_head_read_req *req,
		     struct pvfs_head_read_rep *rep)
{
	struct head_read r = { .fid = &req->fid };
	bool lease;
	int err;

	if (!may(op, &req->fid, &req->cap, PVFS_CAP_READ))
		return -EACCES;
	r.rec = malloc(MGR_HEAD_MAX);
	if (!r.rec)
		return -ENOMEM;
	lease = mgr_lease_begin(op, req->fid.ino);
	err = mgr_run(op, head_read_fn, &r, MGR_RUN_READ);
	if (err == -EAGAIN)	/* it is being written to */
		err = mgr_run(op, head_read_fn, &r, 0);
	err = err ?: mgr_size_attr(op, &r.in, NULL, &rep->attr);
	if (!err)
		mgr_lease_attr(op, lease, &r.in, &rep->attr);
	if (err || !(r.in.flags & MGR_IF_STUFFED) || !r.in.size) {
		free(r.rec);
		return err;
	}
	give(op, r.rec, r.in.size);
	return 0;
}

/* ---- writing ---- */

struct head_write {
	const struct pvfs_head_write_req *req;
	struct pvfs_head_write_rep *rep;
	struct mgr_inode in;
	bool unfit;
	bool wlease;		/* the session has a WRITE lease, and is to be told so */
};

/*
 * A session may have a WRITE lease on a head: its holder has bytes that we don't have. After a restart that
 * has to be known before anybody else is told of the file, so it is written down with what brings the lease;
 * and taken back when that ends (mgr_head_known()), or when somebody writes who has none.
 */
static void mark_behind(struct mgr_op *op, struct mgr_inode *in, bool wlease)
{
	if (wlease || mgr_leases_writes(&op->m->leases, in->ino, mgr_op_session(op)))
		in->flags |= MGR_IF_BEHIND;
	else
		in->flags &= ~MGR_IF_BEHIND;
}

int mgr_head_behind(struct mgr_op *op, struct mgr_inode *in)
{
	if (!(in->flags & MGR_IF_BEHIND)) {
		in->flags |= MGR_IF_BEHIND;
		return ns_inode_put(op, in);
	}
	/* From before: others may have been told of it since. */
	mgr_lease_note(op, in->ino, false);
	return 0;
}

struct head_known {
	u64 ino;
	bool look;		/* only */
	struct mgr_inode in;
};

static int head_known_fn(struct mgr_op *op, void *arg)
{
	struct head_known *k = arg;
	int err;

	err = ns_inode_get(op, k->ino, k->look ? 0 : MDB_RMW, &k->in);
	/* A lease that comes again is there before it is written down that it is. */
	if (err || k->look || !(k->in.flags & MGR_IF_BEHIND) ||
	    mgr_leases_drafted(&op->m->leases, k->ino, 0, mgr_mono_ms()))
		return err;
	k->in.flags &= ~MGR_IF_BEHIND;
	return ns_inode_put(op, &k->in);
}

/* Nobody need wait for it, and nobody who knows the file has to hear of it. Of most files it is not written down. */
void mgr_head_known(struct mgr_op *op, u64 ino)
{
	struct head_known k = { .ino = ino, .look = true };
	bool recalls = op->recalls;

	op->recalls = false;
	if (!mgr_run(op, head_known_fn, &k, MGR_RUN_READ) && (k.in.flags & MGR_IF_BEHIND)) {
		k.look = false;
		mgr_run(op, head_known_fn, &k, 0);
	}
	op->recalls = recalls;
}

static int head_write_fn(struct mgr_op *op, void *arg)
{
	struct head_write *w = arg;
	struct mgr_inode *in = &w->in;
	u64 off, end;
	int err;

	/* It may have run before, and lost what it did. */
	w->unfit = false;
	w->rep->done = 0;
	err = ns_fid_get(op, &w->req->fid, MDB_RMW, in);
	if (!err && !S_ISREG(in->mode))
		err = -EINVAL;
	if (err || !(in->flags & MGR_IF_STUFFED))
		return err;
	off = w->req->flags & PVFS_HW_APPEND ? in->size : w->req->off;
	end = off + op->data_len;
	if ((in->flags & MGR_IF_SPILL) || !mgr_head_fits(in, off, end)) {
		w->unfit = true;
		return 0;
	}
	err = mgr_head_change(op, in, max(in->size, end), op->data, off, op->data_len);
	if (err)
		return err;
	ns_touch_mtime(op, in);
	mark_behind(op, in, w->wlease);
	ns_attr(in, &w->rep->attr);
	w->rep->done = 1;
	op->final = true;
	return ns_inode_put(op, in);
}

int mgr_op_head_write(struct mgr_op *op, const struct pvfs_head_write_req *req,
		      struct pvfs_head_write_rep *rep)
{
	struct head_write w = { .req = req, .rep = rep };
	int err;

	if (!op->data_len || op->data_len > PVFS_STUFF_MAX ||
	    (req->flags & ~(PVFS_HW_APPEND | PVFS_HW_WLEASE)) ||
	    ((req->flags & PVFS_HW_APPEND) && req->off))
		return -EINVAL;
	if (!may(op, &req->fid, &req->cap, PVFS_CAP_WRITE))
		return -EACCES;
	/* Before it is read, as for an OPEN. */
	w.wlease = (req->flags & PVFS_HW_WLEASE) && mgr_write_begin(op, req->fid.ino);
	err = mgr_run(op, head_write_fn, &w, MGR_RUN_GROWS | MGR_RUN_SYNC);
	if (!err && rep->done && w.wlease)
		rep->attr.flags |= PVFS_AF_WLEASE;
	/* Who sends this keeps nothing back. */
	if (!err)
		mgr_draft_over(op, req->fid.ino, false);
	if (err || rep->done)
		return err;
	if (w.unfit) {
		err = mgr_unstuff(op, &req->fid, &w.in);
		if (err)
			return err;
	}
	return mgr_size_attr(op, &w.in, NULL, &rep->attr);
}

/* ---- drafts ---- */

struct flush {
	const struct pvfs_flush_req *req;
	struct pvfs_flush_rep *rep;
	struct pvfs_setattr_req set;
	struct mgr_inode in;
};

static int flush_fn(struct mgr_op *op, void *arg)
{
	struct flush *f = arg;
	struct mgr_inode *in = &f->in;
	int err;

	f->rep->done = 0;
	err = ns_fid_get(op, &f->req->fid, MDB_RMW, in);
	if (!err && !S_ISREG(in->mode))
		err = -EINVAL;
	if (err || !(in->flags & MGR_IF_STUFFED) || (in->flags & MGR_IF_SPILL) ||
	    (in->version != f->req->version && !(f->req->flags & PVFS_FL_AGAIN)))
		return err;
	if (op->data_len) {
		if (!mgr_head_fits(in, 0, op->data_len))
			return -EINVAL;
		err = mgr_head_change(op, in, max(in->size, (u64)op->data_len), op->data, 0,
				      op->data_len);
		if (err)
			return err;
		ns_touch_mtime(op, in);
	}
	err = f->set.valid ? mgr_setattr_apply(op, in, &f->set, &in->wtime) : 0;
	if (err)
		return err;
	mark_behind(op, in, f->req->flags & PVFS_FL_WLEASE);
	f->rep->done = 1;
	ns_attr(in, &f->rep->attr);
	op->final = true;
	return op->data_len || f->set.valid || (in->flags & MGR_IF_BEHIND) ? ns_inode_put(op, in) : 0;
}

#define FLUSH_ALL (PVFS_SA_MODE | PVFS_SA_UID | PVFS_SA_GID | PVFS_SA_ATIME | PVFS_SA_MTIME | \
		   PVFS_SA_ATIME_NOW | PVFS_SA_MTIME_NOW)

int mgr_op_flush(struct mgr_op *op, const struct pvfs_flush_req *req, struct pvfs_flush_rep *rep)
{
	struct flush f = {
		.req = req, .rep = rep,
		.set = {
			.cred = req->cred, .valid = req->valid, .mode = req->mode, .uid = req->uid,
			.gid = req->gid, .atime = req->atime, .mtime = req->mtime,
		},
	};
	unsigned int how = MGR_RUN_SYNC;
	int err;

	if (op->data_len > PVFS_STUFF_MAX || (req->valid & ~FLUSH_ALL) ||
	    (req->flags & ~(PVFS_FL_RECALLED | PVFS_FL_AGAIN | PVFS_FL_WLEASE)) ||
	    ((req->flags & PVFS_FL_RECALLED) && (req->flags & PVFS_FL_WLEASE)) ||
	    req->atime.nsec >= 1000000000u || req->mtime.nsec >= 1000000000u)
		return -EINVAL;
	if (!may(op, &req->fid, &req->cap, PVFS_CAP_WRITE))
		return -EACCES;
	/* A draft's room was kept free: see mgr_space_for_draft(). */
	if (!mgr_leases_is_draft(&op->m->leases, req->fid.ino, mgr_op_session(op)))
		how |= MGR_RUN_GROWS;
	err = mgr_run(op, flush_fn, &f, how);
	if (err == -EINPROGRESS || err == -ERESTART || err == -EAGAIN)	/* it comes again */
		return err;
	/* As a draft it was nobody else's all the time. */
	if (!err && rep->done && (req->flags & PVFS_FL_WLEASE) && mgr_write_of_draft(op, req->fid.ino))
		rep->attr.flags |= PVFS_AF_WLEASE;
	/* Whatever else came of it: the session does not keep it back any more. */
	mgr_draft_over(op, req->fid.ino, req->flags & PVFS_FL_RECALLED);
	if (err || rep->done)
		return err;
	return mgr_size_attr(op, &f.in, NULL, &rep->attr);
}

/* ---- unstuffing ---- */

struct unstuffing {
	const struct pvfs_fid *fid;
	struct mgr_inode in;
	struct mgr_head_disk *rec;	/* MGR_HEAD_MAX bytes */
};

/* From here on it is striped, for good. Those who have it open may write to its datafiles. */
static int become_striped(struct mgr_op *op, struct mgr_inode *in)
{
	bool grace = mgr_in_grace(op->m);
	struct mgr_opens_view v;

	in->flags &= ~(MGR_IF_STUFFED | MGR_IF_SPILL | MGR_IF_BEHIND);
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	if (v.writers || grace) {
		in->flags |= MGR_IF_UNCERTAIN;
		mgr_opens_reset(&op->m->opens, in, !grace);
		if (!v.writers)
			mgr_settle_add(op->m, in->ino);	/* after the grace */
	}
	in->version = mgr_version_after(in->version);
	return ns_inode_put(op, in);
}

static int spill_fn(struct mgr_op *op, void *arg)
{
	struct unstuffing *u = arg;
	struct mgr_inode *in = &u->in;
	int err;

	err = ns_fid_get(op, u->fid, MDB_RMW, in);
	if (!err && !S_ISREG(in->mode))
		err = -EINVAL;
	if (err || !(in->flags & MGR_IF_STUFFED))
		return err;
	if (!in->size && !(in->flags & MGR_IF_SPILL))
		return become_striped(op, in);
	if (!op->can_block)
		return -EINPROGRESS;
	err = mgr_heads_get(op, in, 0, u->rec);
	if (err || (in->flags & MGR_IF_SPILL))
		return err;
	in->flags |= MGR_IF_SPILL;
	return ns_inode_put(op, in);
}

static int spilled_fn(struct mgr_op *op, void *arg)
{
	struct unstuffing *u = arg;
	struct mgr_inode *in = &u->in;
	bool recalls = op->recalls;
	int err;

	err = ns_inode_get(op, u->fid->ino, MDB_RMW, in);
	if (err || !(in->flags & MGR_IF_STUFFED))
		return err;
	err = in->size ? mgr_heads_del(op, in) : 0;
	if (err)
		return err == -ENOENT ? -EUCLEAN : err;
	/* They were recalled when it got SPILL, and none was given since. */
	op->recalls = false;
	err = become_striped(op, in);
	op->recalls = recalls;
	return err;
}

/* Makes the datafiles that have bytes of it. Return: 0, -EAGAIN, or what an iod says. */
static int fill(struct mgr_op *op, const struct mgr_inode *in, const struct mgr_head_disk *rec)
{
	const struct pvfs_layout *l = &in->layout;
	u32 units = (in->size + l->ssize - 1) / l->ssize, df, i, n = 0, at = 0;
	const u8 *bytes = (const u8 *)(rec + 1);
	struct mgr_iocall *calls = calloc(min(units, (u32)l->pcount), sizeof(*calls));
	struct iovec *iov = calloc(units, sizeof(*iov));
	int err = calls && iov ? 0 : -ENOMEM;

	for (df = 0; !err && df < l->pcount && df < units; df++, n++) {
		calls[n] = (struct mgr_iocall){
			.iod = pvfs_stripe_iod(l, df, op->m->niods), .op = PVFS_OP_FILL,
			.fid = { .ino = in->ino, .gen = in->gen }, .data = &iov[at],
		};
		for (i = df; i < units; i += l->pcount, at++, calls[n].ndata++)
			iov[at] = (struct iovec){
				.iov_base = (void *)(bytes + (u64)i * l->ssize),
				.iov_len = min((u64)l->ssize, in->size - (u64)i * l->ssize),
			};
	}
	if (!err)
		mgr_iods_call(op, calls, n, FILL_MS);
	for (i = 0; !err && i < n; i++)
		err = calls[i].err;
	free(calls);
	free(iov);
	if (!err || err == -ENOMEM || err == -ENOSPC || err == -EDQUOT)
		return err;
	pvfs_log_limited(PVFS_LOG_WARNING, "unstuffing inode %llu: an iod is waited for: %s",
			 (unsigned long long)in->ino, strerror(-err));
	return -EAGAIN;
}

int mgr_unstuff(struct mgr_op *op, const struct pvfs_fid *fid, struct mgr_inode *ret)
{
	struct unstuffing u = { .fid = fid, .rec = malloc(MGR_HEAD_MAX) };
	int err;

	if (!u.rec)
		return -ENOMEM;
	err = mgr_run(op, spill_fn, &u, MGR_RUN_SYNC);
	if (!err && (u.in.flags & MGR_IF_STUFFED)) {
		/* What is removed, or found after a power failure, has to have the flag. */
		err = mgr_log_wait(op);
		err = err ?: fill(op, &u.in, u.rec);
		err = err ?: mgr_run(op, spilled_fn, &u, MGR_RUN_SYNC);
	}
	*ret = u.in;
	free(u.rec);
	return err;
}

int mgr_op_unstuff(struct mgr_op *op, const struct pvfs_unstuff_req *req,
		   struct pvfs_unstuff_rep *rep)
{
	struct mgr_inode in;
	bool wlease = false;
	int err;

	if (req->flags & ~PVFS_US_WLEASE)
		return -EINVAL;
	if (!may(op, &req->fid, &req->cap, PVFS_CAP_WRITE))
		return -EACCES;
	err = mgr_unstuff(op, &req->fid, &in);
	/* As a draft it was nobody else's all the time. */
	if (!err && (req->flags & PVFS_US_WLEASE) && !(in.flags & MGR_IF_TRIM))
		wlease = mgr_write_of_draft(op, in.ino);
	err = err ?: mgr_size_attr(op, &in, NULL, &rep->attr);
	if (!err && wlease)
		rep->attr.flags |= PVFS_AF_WLEASE;
	return err;
}
