// SPDX-License-Identifier: GPL-2.0
/*
 * op_rename.c - RENAME, the one operation with four inodes.
 *
 * Inside its transaction: the two directories locked in ino order, then the two entries, then the
 * two inodes in ino order. A directory that changes its parent does so under mgr.rename_lock, so
 * that the walk to the root which looks for loops sees parents that stay. What is replaced is
 * treated as UNLINK or RMDIR would. An exchange is two moves at once, and replaces nothing. With
 * WHITEOUT a new inode gets the old name.
 */
#include "mgr.h"
#include <sys/stat.h>

struct rename {
	const struct pvfs_rename_req *req;
	struct pvfs_rename_rep *rep;
	bool cross;		/* two directories */
	bool locked;		/* rename_lock is held */
	bool need_lock;
	bool gone;
	struct mgr_inode src, dst;
	bool replaced;
	bool left;		/* a whiteout was made, with the number @whiteout */
	struct pvfs_fid whiteout;
};

/* Two inodes for writing, the one with the lower number first. */
static int get_both(struct mgr_op *op, const struct pvfs_fid *a, struct mgr_inode *ia,
		    const struct pvfs_fid *b,
		    struct mgr_inode *ib)
{
	int err;

	if (a->ino < b->ino) {
		err = ns_fid_get(op, a, MDB_RMW, ia);
		return err ?: ns_fid_get(op, b, MDB_RMW, ib);
	}
	err = ns_fid_get(op, b, MDB_RMW, ib);
	return err ?: ns_fid_get(op, a, MDB_RMW, ia);
}

static int get_dirs(struct mgr_op *op, struct rename *r, struct mgr_inode *sdir,
		    struct mgr_inode *ddir)
{
	int err;

	if (r->cross) {
		err = get_both(op, &r->req->sdir, sdir, &r->req->ddir, ddir);
	} else {
		err = ns_fid_get(op, &r->req->sdir, MDB_RMW, sdir);
		if (!err && r->req->ddir.gen != sdir->gen)
			err = -ESTALE;
		*ddir = *sdir;
	}
	if (err)
		return err;
	return S_ISDIR(sdir->mode) && S_ISDIR(ddir->mode) ? 0 : -ENOTDIR;
}

/* What may not be replaced by what. */
static int check_target(struct mgr_op *op, const struct rename *r, const struct mgr_inode *sdir,
			const struct mgr_inode *ddir)
{
	int err = ns_may_delete(op, &r->req->cred, ddir, &r->dst);

	if (err)
		return err;
	if (S_ISDIR(r->src.mode) && !S_ISDIR(r->dst.mode))
		return -ENOTDIR;
	/* As the kernel has it: what it is in is not empty, before it is of the wrong type. */
	if (!S_ISDIR(r->src.mode) && S_ISDIR(r->dst.mode))
		return ns_loop_check(op, &r->dst, sdir) == -EINVAL ? -ENOTEMPTY : -EISDIR;
	return S_ISDIR(r->dst.mode) ? ns_dir_empty(op, r->dst.ino) : 0;
}

/* Everything that can say no. Return: 0, or 1 when both names are one inode already. */
static int check(struct mgr_op *op, struct rename *r, const struct mgr_inode *sdir,
		 const struct mgr_inode *ddir,
		 bool exists)
{
	const struct pvfs_cred *cred = &r->req->cred;
	bool moves = S_ISDIR(r->src.mode) && r->cross;
	int err;

	if (exists && (r->req->flags & PVFS_RN_NOREPLACE))
		return -EEXIST;
	if (moves) {
		if (!r->locked) {
			r->need_lock = true;
			return -EAGAIN;
		}
		err = ns_loop_check(op, &r->src, ddir);
		if (err)
			return err;
	}
	if (exists && r->src.ino == r->dst.ino)
		return 1;
	err = ns_may_delete(op, cred, sdir, &r->src);
	if (!err && exists)
		err = check_target(op, r, sdir, ddir);
	else if (!err)
		err = ns_may(op, cred, ddir, MGR_MAY_WRITE | MGR_MAY_EXEC);
	/* Its ".." changes. */
	if (!err && moves)
		err = ns_may(op, cred, &r->src, MGR_MAY_WRITE);
	if (!err && moves && !exists && ddir->nlink >= PVFS_LINK_MAX)
		err = -EMLINK;
	return err;
}

/* The replaced inode loses its name. */
static int drop_target(struct mgr_op *op, struct rename *r)
{
	if (S_ISDIR(r->dst.mode))
		r->dst.nlink = 0;
	else
		r->dst.nlink -= !!r->dst.nlink;
	ns_touch_ctime(op, &r->dst);
	mgr_size_fold(op, &r->dst);
	ns_attr(&r->dst, &r->rep->old);
	r->rep->replaced = 1;
	r->replaced = true;
	return ns_inode_unlinked(op, &r->dst, &r->gone);
}

/* Moves a directory's count and parent. */
static void dir_moves(struct mgr_inode *in, struct mgr_inode *from, struct mgr_inode *to)
{
	if (!S_ISDIR(in->mode))
		return;
	from->nlink--;
	to->nlink++;
	in->parent.ino = to->ino;
	in->parent.gen = to->gen;
}

static int check_exchange(struct mgr_op *op, struct rename *r, const struct mgr_inode *sdir,
			  const struct mgr_inode *ddir)
{
	const struct pvfs_cred *cred = &r->req->cred;
	bool src_moves = r->cross && S_ISDIR(r->src.mode),
	     dst_moves = r->cross && S_ISDIR(r->dst.mode);
	int err = 0;

	if ((src_moves || dst_moves) && !r->locked) {
		r->need_lock = true;
		return -EAGAIN;
	}
	if (src_moves)
		err = ns_loop_check(op, &r->src, ddir);
	if (!err && dst_moves)
		err = ns_loop_check(op, &r->dst, sdir);
	if (err)
		return err;
	if (r->src.ino == r->dst.ino)
		return 1;
	err = ns_may_delete(op, cred, sdir, &r->src);
	err = err ?: ns_may_delete(op, cred, ddir, &r->dst);
	/* Their ".." changes. */
	if (!err && src_moves)
		err = ns_may(op, cred, &r->src, MGR_MAY_WRITE);
	if (!err && dst_moves)
		err = ns_may(op, cred, &r->dst, MGR_MAY_WRITE);
	if (!err && ((src_moves && !dst_moves && ddir->nlink >= PVFS_LINK_MAX) ||
		     (dst_moves && !src_moves && sdir->nlink >= PVFS_LINK_MAX)))
		err = -EMLINK;
	return err;
}

/* Each gets the other's name. */
static int exchange(struct mgr_op *op, struct rename *r, struct mgr_inode *sdir,
		    struct mgr_inode *ddir, const struct ns_entry *se, const struct ns_entry *de)
{
	struct mgr_inode *dd = r->cross ? ddir : sdir;
	int err;

	err = check_exchange(op, r, sdir, dd);
	if (err) {
		ns_attr(&r->src, &r->rep->attr);
		return err == 1 ? 0 : err;
	}
	err = ns_entry_set(op, sdir->ino, se->cookie, &r->req->sname, &r->dst);
	err = err ?: ns_entry_set(op, dd->ino, de->cookie, &r->req->dname, &r->src);
	dir_moves(&r->src, sdir, dd);
	dir_moves(&r->dst, dd, sdir);
	ns_touch_ctime(op, &r->src);
	ns_touch_ctime(op, &r->dst);
	mgr_size_fold(op, &r->src);
	mgr_size_fold(op, &r->dst);
	ns_attr(&r->src, &r->rep->attr);
	ns_attr(&r->dst, &r->rep->old);
	r->rep->replaced = 1;
	r->replaced = true;
	err = err ?: ns_inode_put(op, &r->src);
	err = err ?: ns_inode_put(op, &r->dst);
	ns_touch_mtime(op, sdir);
	err = err ?: ns_inode_put(op, sdir);
	if (r->cross) {
		ns_touch_mtime(op, ddir);
		err = err ?: ns_inode_put(op, ddir);
	}
	return err;
}

/* What is left under the old name. */
static int vacate(struct mgr_op *op, struct rename *r, struct mgr_inode *sdir,
		  const struct ns_entry *se)
{
	struct mgr_inode in;
	int err;

	if (!(r->req->flags & PVFS_RN_WHITEOUT)) {
		sdir->entries -= !!sdir->entries;
		return ns_entry_del(op, sdir->ino, se->cookie);
	}
	ns_inode_init(op, &in, &r->whiteout, sdir, &r->req->cred, S_IFCHR);
	r->left = true;
	err = ns_inode_insert(op, &in);
	return err ?: ns_entry_set(op, sdir->ino, se->cookie, &r->req->sname, &in);
}

static int rename_fn(struct mgr_op *op, void *arg)
{
	struct rename *r = arg;
	const struct pvfs_rename_req *req = r->req;
	struct mgr_inode sdir, ddir, *dd = r->cross ? &ddir : &sdir;
	struct ns_entry se, de;
	bool exists;
	int err;

	r->replaced = r->gone = r->need_lock = r->left = false;
	r->rep->replaced = 0;
	err = get_dirs(op, r, &sdir, &ddir);
	err = err ?: ns_may(op, &req->cred, &sdir, MGR_MAY_EXEC);
	err = err ?: ns_may(op, &req->cred, &ddir, MGR_MAY_EXEC);
	err = err ?: ns_entry_find(op, sdir.ino, &req->sname, MDB_RMW, &se);
	if (err)
		return err;
	err = ns_entry_find(op, ddir.ino, &req->dname, MDB_RMW, &de);
	if (err && err != -ENOENT)
		return err;
	exists = !err;
	if (exists && de.fid.ino != se.fid.ino) {
		err = get_both(op, &se.fid, &r->src, &de.fid, &r->dst);
	} else {
		err = ns_fid_get(op, &se.fid, MDB_RMW, &r->src);
		r->dst = r->src;
	}
	if (err)
		return err == -ESTALE ? -EUCLEAN : err;
	if (req->flags & PVFS_RN_EXCHANGE)
		return exists ? exchange(op, r, &sdir, &ddir, &se, &de) : -ENOENT;
	err = check(op, r, &sdir, &ddir, exists);
	if (err) {
		ns_attr(&r->src, &r->rep->attr);
		return err == 1 ? 0 : err;
	}

	if (exists) {
		err = drop_target(op, r);
		err = err ?: ns_entry_set(op, ddir.ino, de.cookie, &req->dname, &r->src);
	} else {
		err = ns_entry_add(op, ddir.ino, &de, &req->dname, &r->src);
		dd->entries++;
	}
	err = err ?: vacate(op, r, &sdir, &se);
	if (err)
		return err;
	dir_moves(&r->src, &sdir, dd);
	if (S_ISDIR(r->src.mode) && exists)
		dd->nlink--;
	ns_touch_ctime(op, &r->src);
	mgr_size_fold(op, &r->src);
	ns_attr(&r->src, &r->rep->attr);
	err = ns_inode_put(op, &r->src);
	ns_touch_mtime(op, &sdir);
	err = err ?: ns_inode_put(op, &sdir);
	if (r->cross) {
		ns_touch_mtime(op, &ddir);
		err = err ?: ns_inode_put(op, &ddir);
	}
	return err;
}

int mgr_op_rename(struct mgr_op *op, const struct pvfs_rename_req *req, struct pvfs_rename_rep *rep)
{
	struct rename r = { .req = req, .rep = rep, .cross = req->sdir.ino != req->ddir.ino };
	/* It makes nothing, or little, but a longer name can need a page. */
	unsigned int how = MGR_RUN_SYNC | MGR_RUN_FINAL | MGR_RUN_GROWS;
	int err;

	if ((req->flags & ~PVFS_RN_ALL) ||
	    ((req->flags & PVFS_RN_EXCHANGE) && req->flags != PVFS_RN_EXCHANGE))
		return -EINVAL;
	err = ns_name_check(&req->sname);
	err = err ?: ns_name_check(&req->dname);
	if (!err && (req->flags & PVFS_RN_WHITEOUT))
		err = ns_ino_alloc(op, &r.whiteout);
	if (err)
		return err;
	err = mgr_run(op, rename_fn, &r, how);
	if (err && r.need_lock) {
		pthread_mutex_lock(&op->m->rename_lock);
		r.locked = true;
		err = mgr_run(op, rename_fn, &r, how);
		pthread_mutex_unlock(&op->m->rename_lock);
	}
	if (err)
		return err;
	if (r.left)
		atomic_fetch_add_explicit(&op->m->files, 1, memory_order_relaxed);
	if (r.gone)
		atomic_fetch_sub_explicit(&op->m->files, 1, memory_order_relaxed);
	else if (r.replaced && (r.dst.flags & MGR_IF_REAP))
		mgr_reap_kick(op->m);
	err = mgr_size_attr_after(op, &r.src, &rep->attr);
	if (!err && r.replaced && r.dst.nlink)
		err = mgr_size_attr_after(op, &r.dst, &rep->old);
	return err;
}
