// SPDX-License-Identifier: GPL-2.0
/*
 * op_name.c - LOOKUP, MKNOD, SYMLINK, READLINK, LINK, UNLINK, and what every operation that makes
 * an inode shares.
 *
 *   operation  needs                                 changes
 *   LOOKUP     x on the directory                    -
 *   MKNOD      w,x; devices: root                    directory, inode, entry
 *   SYMLINK    w,x                                   directory, inode, target, entry
 *   READLINK   -                                     -
 *   LINK       w,x; not a directory                  directory, inode, entry
 *   UNLINK     w,x, sticky rule; not a directory     directory, entry, see ns_inode_unlinked()
 *
 * Order of the locks inside a transaction: directories, entries, inodes. It is not total (they
 * share pages), which is what the deadlock detector is for, but it makes deadlocks rare.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

/* ---- making inodes ---- */

static int put_target(struct mgr_op *op, u64 ino, const struct pvfs_str *target)
{
	u8 key[MGR_INO_KEY], rec[1 + PVFS_SYMLINK_MAX];

	rec[0] = MGR_SYMLINK_FORMAT;
	memcpy(rec + 1, target->p, target->len);
	mgr_ino_key(key, ino);
	return mdb_put(op->m->db, op->txn, MDB_SYMLINK, key, sizeof(key), rec, 1 + target->len);
}

/* It has been inserted as if it had a name. It lives as long as it is open, or gets one. */
static int make_nameless(struct mgr_op *op, struct mgr_make *mk)
{
	bool gone;
	int err;

	mk->in.nlink = 0;
	err = mk->made(op, mk);
	return err ?: ns_inode_unlinked(op, &mk->in, &gone);
}

/* Chosen once, however often the transaction runs. */
static int pick_layout(struct mgr_op *op, struct mgr_make *mk, const struct mgr_inode *dir)
{
	static const struct pvfs_layout none;
	int err;

	if (!S_ISREG(mk->mode) || mk->picked)
		return 0;
	err = ns_layout_pick(op->m, dir, mk->layout ? mk->layout : &none, &mk->pick);
	mk->picked = !err;
	return err;
}

/* What a new file of these bytes has of them, and of set-id bits. */
static int put_data(struct mgr_op *op, struct mgr_make *mk)
{
	if (!ns_all_powerful(mk->cred))
		ns_kill_priv(&mk->in, mk->cred);
	return mgr_head_change(op, &mk->in, mk->len, mk->data, 0, mk->len);
}

int mgr_make_in(struct mgr_op *op, struct mgr_make *mk, struct mgr_inode *dir)
{
	int err;

	if (mk->name) {
		err = ns_entry_find(op, dir->ino, mk->name, MDB_RMW, &mk->found);
		if (err != -ENOENT)
			return err ?: -EEXIST;
	}
	err = ns_may(op, mk->cred, dir, MGR_MAY_WRITE | MGR_MAY_EXEC);
	if (err)
		return err;
	if (S_ISDIR(mk->mode) && dir->nlink >= PVFS_LINK_MAX)
		return -EMLINK;
	err = pick_layout(op, mk, dir);
	if (err)
		return err;
	if (mk->len > mk->pick.stuff_max)
		return -EREMCHG;
	ns_inode_init(op, &mk->in, &mk->fid, dir, mk->cred, mk->mode);
	mk->in.flags = mk->iflags;
	err = mgr_acl_inherit(op, dir, &mk->in, mk->umask);
	if (err)
		return err;
	mk->in.rdev = mk->rdev;
	if (S_ISREG(mk->mode)) {
		mk->in.layout = mk->pick;
		if (mk->pick.stuff_max && !mk->striped)
			mk->in.flags |= MGR_IF_STUFFED;
		else if (mk->written)
			mk->in.flags |= MGR_IF_UNCERTAIN;
	}
	if (mk->target) {
		mk->in.size = mk->target->len;
		err = put_target(op, mk->in.ino, mk->target);
	}
	if (mk->len)
		err = put_data(op, mk);
	err = err ?: ns_inode_insert(op, &mk->in);
	if (err || !mk->name)
		return err;
	err = ns_entry_add(op, dir->ino, &mk->found, mk->name, &mk->in);
	if (err)
		return err;
	dir->entries++;
	if (S_ISDIR(mk->mode))
		dir->nlink++;
	return 0;
}

int mgr_make_fn(struct mgr_op *op, void *arg)
{
	struct mgr_make *mk = arg;
	struct mgr_inode dir;
	int err;

	err = ns_dir_get(op, mk->dir, mk->name ? MDB_RMW : 0, &dir);
	err = err ?: ns_may(op, mk->cred, &dir, MGR_MAY_EXEC);
	err = err ?: mgr_make_in(op, mk, &dir);
	if (err || !mk->name)
		return err ?: make_nameless(op, mk);
	ns_touch_mtime(op, &dir);
	err = ns_inode_put(op, &dir);
	if (!err && mk->made)
		err = mk->made(op, mk);
	return err;
}

int mgr_make(struct mgr_op *op, struct mgr_make *mk)
{
	int err;

	err = mk->name ? ns_name_check(mk->name) : 0;
	err = err ?: ns_ino_alloc(op, &mk->fid);
	err = err ?: mgr_run(op, mgr_make_fn, mk, MGR_RUN_SYNC | MGR_RUN_FINAL | MGR_RUN_GROWS);
	if (!err)
		atomic_fetch_add_explicit(&op->m->files, 1, memory_order_relaxed);
	return err;
}

static int made_attr(struct mgr_op *op, struct mgr_make *mk)
{
	ns_attr(&mk->in, mk->arg);
	return 0;
}

int mgr_op_mknod(struct mgr_op *op, const struct pvfs_mknod_req *req, struct pvfs_mknod_rep *rep)
{
	u32 type = req->mode & S_IFMT ? req->mode & S_IFMT : S_IFREG;
	struct mgr_make mk = {
		.cred = &req->cred, .dir = &req->dir, .name = &req->name,
		.mode = type | (req->mode & 07777), .umask = req->umask,
		.made = made_attr, .arg = &rep->attr,
	};

	switch (type) {
	case S_IFCHR:
	case S_IFBLK:
		/* 0:0 is no device but a whiteout, which anybody may make. */
		if (!ns_all_powerful(&req->cred) && (type == S_IFBLK || req->rdev))
			return -EPERM;
		mk.rdev = req->rdev;
		break;
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	case S_IFDIR:
		return -EPERM;
	default:
		return -EINVAL;
	}
	return mgr_make(op, &mk);
}

int mgr_op_symlink(struct mgr_op *op, const struct pvfs_symlink_req *req,
		   struct pvfs_symlink_rep *rep)
{
	struct mgr_make mk = {
		.cred = &req->cred, .dir = &req->dir, .name = &req->name, .mode = S_IFLNK | 0777,
		.target = &req->target, .made = made_attr, .arg = &rep->attr,
	};

	if (!req->target.len)
		return -ENOENT;
	if (memchr(req->target.p, 0, req->target.len))
		return -EINVAL;
	return mgr_make(op, &mk);
}

/* ---- reading ---- */

struct lookup {
	const struct pvfs_lookup_req *req;
	struct pvfs_lookup_rep *rep;
	u8 *room;
	struct mgr_inode in, dir;
	bool lease, dir_lease;
};

/* The directory itself: for who walks a path and has to know that it may be searched. */
static bool is_dot(const struct pvfs_str *name)
{
	return name->len == 1 && name->p[0] == '.';
}

/*
 * The target of a symbolic link, into @room of 1 + PVFS_SYMLINK_MAX bytes. Return: 0, -ESTALE: it
 * was removed since the inode was read, or -errno.
 */
static int target_get(struct mgr_op *op, const struct mgr_inode *in, u8 *room, struct pvfs_str *ret)
{
	u8 key[MGR_INO_KEY];
	int n;

	mgr_ino_key(key, in->ino);
	n = mdb_get(op->m->db, op->txn, MDB_SYMLINK, key, sizeof(key), room,
		    1 + PVFS_SYMLINK_MAX, 0);
	if (n < 0)
		return n == -ENOENT ? -ESTALE : n;
	if (n < 2 || room[0] != MGR_SYMLINK_FORMAT)
		return -EUCLEAN;
	ret->p = room + 1;
	ret->len = n - 1;
	return 0;
}

static int lookup_fn(struct mgr_op *op, void *arg)
{
	struct lookup *l = arg;
	unsigned int tries;
	struct ns_entry e;
	int err;

	l->dir_lease = mgr_lease_begin(op, l->req->dir.ino);
	err = ns_dir_get(op, &l->req->dir, 0, &l->dir);
	err = err ?: ns_may(op, &l->req->cred, &l->dir, MGR_MAY_EXEC);
	if (err)
		return err;
	if (is_dot(&l->req->name)) {
		l->in = l->dir;
		l->lease = l->dir_lease;
		return 0;
	}
	for (tries = 0; tries < 10; tries++) {
		err = ns_entry_find(op, l->dir.ino, &l->req->name, 0, &e);
		if (err)
			return err;
		l->lease = mgr_lease_begin(op, e.fid.ino);
		err = ns_fid_get(op, &e.fid, 0, &l->in);
		if (!err && S_ISLNK(l->in.mode) && l->in.size <= PVFS_SYMLINK_EAGER)
			err = target_get(op, &l->in, l->room, &l->rep->target);
		if (err != -ESTALE)
			return err;
		/*
		 * The entry was read and then, with the inode, removed or given to another: the
		 * name may well exist, so look again instead of saying that it does not.
		 */
	}
	return -EAGAIN;
}

int mgr_op_lookup(struct mgr_op *op, const struct pvfs_lookup_req *req, struct pvfs_lookup_rep *rep)
{
	/*
	 * The reply is encoded after we return, so a target needs a place that outlives this frame.
	 */
	static __thread u8 room[1 + PVFS_SYMLINK_MAX];
	struct lookup l = { .req = req, .rep = rep, .room = room };
	int err;

	rep->target.len = 0;
	err = is_dot(&req->name) ? 0 : ns_name_check(&req->name);
	err = err ?: mgr_run(op, lookup_fn, &l, MGR_RUN_READ);
	if (l.dir_lease && (!err || err == -ENOENT)) {
		ns_attr(&l.dir, &rep->dir);
		mgr_lease_attr(op, true, &l.dir, &rep->dir);
		if (err == -ENOENT)
			return 0;	/* and it stays so: ino is 0 */
	}
	err = err ?: mgr_size_attr(op, &l.in, NULL, &rep->attr);
	if (!err)
		mgr_lease_attr(op, l.lease, &l.in, &rep->attr);
	return err;
}

struct readlink {
	const struct pvfs_readlink_req *req;
	struct pvfs_readlink_rep *rep;
	u8 *room;
};

static int readlink_fn(struct mgr_op *op, void *arg)
{
	struct readlink *r = arg;
	struct mgr_inode in;
	int err;

	err = ns_fid_get(op, &r->req->fid, 0, &in);
	if (err)
		return err;
	if (!S_ISLNK(in.mode))
		return -EINVAL;
	return target_get(op, &in, r->room, &r->rep->target);
}

int mgr_op_readlink(struct mgr_op *op, const struct pvfs_readlink_req *req,
		    struct pvfs_readlink_rep *rep)
{
	static __thread u8 room[1 + PVFS_SYMLINK_MAX];
	struct readlink r = { .req = req, .rep = rep, .room = room };

	return mgr_run(op, readlink_fn, &r, MGR_RUN_READ);
}

/* ---- links ---- */

struct link {
	const struct pvfs_link_req *req;
	struct pvfs_link_rep *rep;
	struct mgr_inode in;
};

static int link_fn(struct mgr_op *op, void *arg)
{
	struct link *l = arg;
	const struct pvfs_link_req *req = l->req;
	struct mgr_inode dir;
	struct ns_entry e;
	int err;

	err = ns_dir_get(op, &req->dir, MDB_RMW, &dir);
	err = err ?: ns_may(op, &req->cred, &dir, MGR_MAY_EXEC);
	if (err)
		return err;
	err = ns_entry_find(op, dir.ino, &req->name, MDB_RMW, &e);
	if (err != -ENOENT)
		return err ?: -EEXIST;
	err = ns_may(op, &req->cred, &dir, MGR_MAY_WRITE | MGR_MAY_EXEC);
	err = err ?: ns_fid_get(op, &req->fid, MDB_RMW, &l->in);
	if (err)
		return err;
	if (S_ISDIR(l->in.mode))
		return -EPERM;
	if (!l->in.nlink && !(l->in.flags & MGR_IF_LINKABLE))
		return -ENOENT;
	if (!l->in.nlink) {
		err = ns_orphan_end(op, &l->in);
		if (err)
			return err;
	}
	if (l->in.nlink >= PVFS_LINK_MAX)
		return -EMLINK;
	l->in.nlink++;
	ns_touch_ctime(op, &l->in);
	mgr_size_fold(op, &l->in);
	err = ns_inode_put(op, &l->in);
	err = err ?: ns_entry_add(op, dir.ino, &e, &req->name, &l->in);
	if (err)
		return err;
	dir.entries++;
	ns_touch_mtime(op, &dir);
	ns_attr(&l->in, &l->rep->attr);
	return ns_inode_put(op, &dir);
}

int mgr_op_link(struct mgr_op *op, const struct pvfs_link_req *req, struct pvfs_link_rep *rep)
{
	struct link l = { .req = req, .rep = rep };
	int err;

	err = ns_name_check(&req->name);
	err = err ?: mgr_run(op, link_fn, &l, MGR_RUN_SYNC | MGR_RUN_FINAL | MGR_RUN_GROWS);
	return err ?: mgr_size_attr_after(op, &l.in, &rep->attr);
}

struct unlink {
	const struct pvfs_unlink_req *req;
	struct pvfs_unlink_rep *rep;
	struct mgr_inode in;
	bool gone;
};

static int unlink_fn(struct mgr_op *op, void *arg)
{
	struct unlink *u = arg;
	const struct pvfs_unlink_req *req = u->req;
	struct mgr_inode dir;
	struct ns_entry e;
	int err;

	err = ns_dir_get(op, &req->dir, MDB_RMW, &dir);
	err = err ?: ns_may(op, &req->cred, &dir, MGR_MAY_EXEC);
	err = err ?: ns_entry_find(op, dir.ino, &req->name, MDB_RMW, &e);
	if (err)
		return err;
	err = ns_fid_get(op, &e.fid, MDB_RMW, &u->in);
	if (err)
		return err == -ESTALE ? -EUCLEAN : err;
	err = ns_may_delete(op, &req->cred, &dir, &u->in);
	if (err)
		return err;
	if (S_ISDIR(u->in.mode))
		return -EISDIR;
	u->in.nlink -= !!u->in.nlink;
	ns_touch_ctime(op, &u->in);
	mgr_size_fold(op, &u->in);
	ns_attr(&u->in, &u->rep->attr);
	err = ns_inode_unlinked(op, &u->in, &u->gone);
	err = err ?: ns_entry_del(op, dir.ino, e.cookie);
	if (err)
		return err;
	dir.entries -= !!dir.entries;
	ns_touch_mtime(op, &dir);
	return ns_inode_put(op, &dir);
}

int mgr_op_unlink(struct mgr_op *op, const struct pvfs_unlink_req *req, struct pvfs_unlink_rep *rep)
{
	struct unlink u = { .req = req, .rep = rep };
	int err;

	err = ns_name_check(&req->name);
	err = err ?: mgr_run(op, unlink_fn, &u, MGR_RUN_SYNC | MGR_RUN_FINAL);
	if (err)
		return err;
	if (u.gone)
		atomic_fetch_sub_explicit(&op->m->files, 1, memory_order_relaxed);
	else if (u.in.flags & MGR_IF_REAP)
		mgr_reap_kick(op->m);
	return u.in.nlink ? mgr_size_attr_after(op, &u.in, &rep->attr) : 0;
}
