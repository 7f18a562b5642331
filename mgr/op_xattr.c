// SPDX-License-Identifier: GPL-2.0
/*
 * op_xattr.c - GETXATTR, SETXATTR, LISTXATTR, REMOVEXATTR: who may do what with which names, as
 * Linux has it.
 *
 *   names                       read                            write
 *   user.*                      r; files and directories only   w; of a sticky directory: its owner
 *   trusted.*                   root; others don't see them     root
 *   security.*                  all                             root
 *   system.posix_acl_access     all                             owner; not of a symbolic link
 *   system.posix_acl_default    all                             owner; of directories
 *
 * Other names are not supported. A list has all names that its reader may know of.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define XA_ALL (PVFS_XA_CREATE | PVFS_XA_REPLACE)

enum space { XA_USER, XA_TRUSTED, XA_SECURITY, XA_ACCESS, XA_DEFAULT };

static bool has_prefix(const struct pvfs_str *name, const char *prefix)
{
	return name->len >= strlen(prefix) && !memcmp(name->p, prefix, strlen(prefix));
}

/* Which kind of name is it? -EINVAL: none at all, -EOPNOTSUPP: none of ours. */
static int space_of(const struct pvfs_str *name, enum space *ret)
{
	static const char *const prefix[] = {
		[XA_USER] = "user.", [XA_TRUSTED] = "trusted.", [XA_SECURITY] = "security.",
	};
	unsigned int i;

	if (!name->len || memchr(name->p, 0, name->len))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(prefix); i++) {
		if (has_prefix(name, prefix[i])) {
			*ret = i;
			return name->len > strlen(prefix[i]) ? 0 : -EINVAL;
		}
	}
	*ret = ns_str_is(name, PVFS_ACL_ACCESS) ? XA_ACCESS : XA_DEFAULT;
	return *ret == XA_ACCESS || ns_str_is(name, PVFS_ACL_DEFAULT) ? 0 : -EOPNOTSUPP;
}

static bool is_acl(enum space s)
{
	return s == XA_ACCESS || s == XA_DEFAULT;
}

static int may(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *in,
	       enum space s, bool write)
{
	bool all = ns_all_powerful(cred), owner = all || cred->uid == in->uid;

	switch (s) {
	case XA_USER:
		if (!S_ISREG(in->mode) && !S_ISDIR(in->mode))
			return write ? -EPERM : -ENODATA;
		if (write && S_ISDIR(in->mode) && (in->mode & S_ISVTX) && !owner)
			return -EPERM;
		return ns_may(op, cred, in, write ? MGR_MAY_WRITE : MGR_MAY_READ);
	case XA_TRUSTED:
		return all ? 0 : write ? -EPERM : -ENODATA;
	case XA_SECURITY:
		return write && !all ? -EPERM : 0;
	default:
		if (S_ISLNK(in->mode))
			return -EOPNOTSUPP;
		return write && !owner ? -EPERM : 0;
	}
}

/* ---- reading ---- */

struct getxattr {
	const struct pvfs_getxattr_req *req;
	struct pvfs_getxattr_rep *rep;
	enum space space;
	u8 *room, *value;
};

static int getxattr_fn(struct mgr_op *op, void *arg)
{
	struct getxattr *g = arg;
	const struct pvfs_getxattr_req *req = g->req;
	struct mgr_inode in, after;
	unsigned int tries;
	int n, err;

	for (tries = 0; tries < 10; tries++) {
		err = ns_fid_get(op, &req->fid, 0, &in);
		err = err ?: may(op, &req->cred, &in, g->space, false);
		if (err)
			return err;
		n = mgr_xattr_read(op, &in, &req->name, g->room, MGR_XATTR_MAX, &g->value);
		if (n < 0 && n != -ENODATA)
			return n;
		/* An ACL is good as long as acl_version stays: the two must belong together. */
		if (is_acl(g->space)) {
			err = ns_fid_get(op, &req->fid, 0, &after);
			if (err)
				return err;
			if (after.acl_version != in.acl_version)
				continue;
		}
		if (n < 0)
			return n;
		g->rep->size = n;
		g->rep->acl_version = in.acl_version;
		return 0;
	}
	return -EAGAIN;
}

int mgr_op_getxattr(struct mgr_op *op, const struct pvfs_getxattr_req *req,
		    struct pvfs_getxattr_rep *rep)
{
	struct getxattr g = { .req = req, .rep = rep };
	int err;

	err = space_of(&req->name, &g.space);
	if (err)
		return err;
	g.room = malloc(MGR_XATTR_MAX);
	if (!g.room)
		return -ENOMEM;
	err = mgr_run(op, getxattr_fn, &g, MGR_RUN_READ);
	if (!err && req->size && rep->size > req->size)
		err = -ERANGE;
	if (err || !req->size || !rep->size) {
		free(g.room);
		return err;
	}
	memmove(g.room, g.value, rep->size);
	op->payload = g.room;
	op->payload_len = rep->size;
	return 0;
}

struct listxattr {
	const struct pvfs_listxattr_req *req;
	u8 *list;
	u32 len;
};

static int list_add(void *arg, const struct pvfs_str *name)
{
	struct listxattr *l = arg;

	if (!ns_all_powerful(&l->req->cred) && has_prefix(name, "trusted."))
		return 0;
	/* More than is ever set; a list that grows while it is read could come here. */
	if (l->len + name->len + 1 > PVFS_XATTR_LIST_MAX)
		return -E2BIG;
	memcpy(l->list + l->len, name->p, name->len);
	l->len += name->len;
	l->list[l->len++] = 0;
	return 0;
}

static int listxattr_fn(struct mgr_op *op, void *arg)
{
	struct listxattr *l = arg;
	struct mgr_inode in;
	int err;

	l->len = 0;
	err = ns_fid_get(op, &l->req->fid, 0, &in);
	return err ?: mgr_xattr_walk(op, &in, list_add, l);
}

int mgr_op_listxattr(struct mgr_op *op, const struct pvfs_listxattr_req *req,
		     struct pvfs_listxattr_rep *rep)
{
	struct listxattr l = { .req = req, .list = malloc(PVFS_XATTR_LIST_MAX) };
	int err;

	if (!l.list)
		return -ENOMEM;
	err = mgr_run(op, listxattr_fn, &l, MGR_RUN_READ);
	if (!err && req->size && l.len > req->size)
		err = -ERANGE;
	rep->size = l.len;
	if (err || !req->size || !l.len) {
		free(l.list);
		return err;
	}
	op->payload = l.list;
	op->payload_len = l.len;
	return 0;
}

/* ---- changing ---- */

struct change {
	const struct pvfs_cred *cred;
	const struct pvfs_fid *fid;
	const struct pvfs_str *name;
	enum space space;
	bool remove;
	u32 flags;
	struct pvfs_acl acl;		/* to set; no entries: to remove */
	struct pvfs_attr *attr;
	struct mgr_inode in;
};

static int change_acl(struct mgr_op *op, struct change *c)
{
	struct mgr_inode *in = &c->in;
	int err;

	if (c->space == XA_DEFAULT && !S_ISDIR(in->mode))
		return c->acl.n ? -EACCES : 0;
	err = mgr_acl_set(op, in, c->space == XA_ACCESS ? PVFS_ACL_ACCESS : PVFS_ACL_DEFAULT,
			  &c->acl);
	/* The mode is changed: the same rule as for chmod. */
	if (!err && c->space == XA_ACCESS && c->acl.n && !ns_all_powerful(c->cred) &&
	    !ns_in_group(c->cred, in->gid))
		in->mode &= ~S_ISGID;
	return err;
}

static int change_fn(struct mgr_op *op, void *arg)
{
	struct change *c = arg;
	int err;

	err = ns_fid_get(op, c->fid, MDB_RMW, &c->in);
	err = err ?: may(op, c->cred, &c->in, c->space, true);
	if (err)
		return err;
	mgr_size_fold(op, &c->in);
	if (is_acl(c->space))
		err = change_acl(op, c);
	else if (c->remove)
		err = mgr_xattr_del(op, &c->in, c->name);
	else
		err = mgr_xattr_put(op, &c->in, c->name, op->data, op->data_len, c->flags);
	if (err)
		return err;
	ns_touch_ctime(op, &c->in);
	ns_attr(&c->in, c->attr);
	return ns_inode_put(op, &c->in);
}

int mgr_op_setxattr(struct mgr_op *op, const struct pvfs_setxattr_req *req,
		    struct pvfs_setxattr_rep *rep)
{
	struct change c = {
		.cred = &req->cred,
		.fid = &req->fid,
		.name = &req->name,
		.flags = req->flags,
		.attr = &rep->attr,
	};
	int err;

	if (req->flags & ~XA_ALL)
		return -EINVAL;
	if (op->data_len > PVFS_XATTR_VALUE_MAX)
		return -E2BIG;
	err = space_of(&req->name, &c.space);
	if (!err && is_acl(c.space))
		err = pvfs_acl_decode(&c.acl, op->data, op->data_len);
	err = err ?: mgr_run(op, change_fn, &c, MGR_RUN_SYNC | MGR_RUN_FINAL | MGR_RUN_GROWS);
	return err ?: mgr_size_attr_after(op, &c.in, &rep->attr);
}

int mgr_op_removexattr(struct mgr_op *op, const struct pvfs_removexattr_req *req,
		       struct pvfs_removexattr_rep *rep)
{
	struct change c = {
		.cred = &req->cred,
		.fid = &req->fid,
		.name = &req->name,
		.remove = true,
		.attr = &rep->attr,
	};
	int err;

	err = space_of(&req->name, &c.space);
	err = err ?: mgr_run(op, change_fn, &c, MGR_RUN_SYNC | MGR_RUN_FINAL);
	return err ?: mgr_size_attr_after(op, &c.in, &rep->attr);
}
