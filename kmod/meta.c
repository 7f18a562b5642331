// SPDX-License-Identifier: GPL-2.0
/*
 * meta.c - the operations of the manager as functions: encode, exchange, decode, check. No state, no policy.
 *
 * Bodies and replies are in common/msg.def. Whatever comes back is checked here before anyone uses it.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "vfs.h"

#define AGAIN_MS 50	/* pause before a request that was answered EAGAIN is made again */

/* Room for any body but its groups and a symbolic link's target. */
#define META_ROOM 768

/* ---------------------------------------------------------------- who asks */

/* The caller's credentials as they travel. */
struct who {
	struct pvfs_cred cred;
	u8 *heap;
	u8 small[4 * 32];
};

/*
 * More groups than the protocol carries are left out: that can refuse, but never grant. Who has to be checked here has
 * been; then only the ids matter, and only for what is made.
 */
static int who_get(struct who *w, struct inode *inode, struct pvfs_idmap *idmap, struct pvfs_cred *ret)
{
	bool checked = pvfs_checked_here(PVFS_VOL(inode), idmap);
	const struct cred *cred = current_cred();
	const struct group_info *gi = cred->group_info;
	u32 i, n = checked ? 0 : min_t(u32, gi->ngroups, PVFS_NGROUPS_MAX);
	u8 *p = w->small;

	w->heap = NULL;
	if (n * 4 > sizeof(w->small)) {
		p = w->heap = kmalloc(n * 4, GFP_KERNEL);
		if (!p)
			return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		put_unaligned_le32(from_kgid_munged(&init_user_ns, gi->gid[i]), p + 4 * i);
	w->cred.uid = from_kuid_munged(&init_user_ns, mapped_fsuid(idmap, &init_user_ns));
	w->cred.gid = from_kgid_munged(&init_user_ns, mapped_fsgid(idmap, &init_user_ns));
	w->cred.flags = checked ? PVFS_CRED_CHECKED : 0;
	w->cred.groups = (struct pvfs_str){ .p = p, .len = n * 4 };
	*ret = w->cred;
	return 0;
}

static void who_put(struct who *w)
{
	kfree(w->heap);
}

/* ---------------------------------------------------------------- one exchange */

/*
 * EAGAIN: the mgr can't do it now (a truncation that waits for an iod). Hard mounts ask until it can, soft ones until
 * their time is up.
 */
static int ask_again(struct pvfs_volume *vol, unsigned int *tries)
{
	if (vol->opts.soft && ++*tries > vol->opts.timeo_ms / AGAIN_MS)
		return -EIO;
	schedule_timeout_killable(msecs_to_jiffies(AGAIN_MS));
	return fatal_signal_pending(current) ? -EINTR : -EAGAIN;
}

/* An answer's error, as the VFS may see it. */
static int final_error(struct pvfs_volume *vol, enum pvfs_op op, int err)
{
	switch (err) {
	case -EBADMSG:
		return pvfs_bogus(vol, pvfs_op_name(op), 0);
	case -EMSGSIZE:		/* a name that can't be sent */
		return -ENAMETOOLONG;
	case -ESHUTDOWN:
		return -EIO;
	default:
		return err;
	}
}

/* What goes along with a request, or comes with its answer. */
struct payload {
	const struct bio_vec *bv;
	unsigned int nbv;
	u32 len;		/* bytes to send, or room */
	bool write;
	u32 got;		/* bytes received */
	char *text;		/* room for a string of the answer, and its NUL; it stays empty when there is none */
	u32 text_room;
};

static void keep_text(struct payload *p, const struct pvfs_str *s)
{
	if (s->len >= p->text_room)
		return;
	memcpy(p->text, s->p, s->len);
	p->text[s->len] = 0;
}

/*
 * meta_<name>(vol, room, m, r): sends pvfs_<name>_req and decodes pvfs_<name>_rep, whose strings must not outlive the
 * request: for replies without any. data_<name>() has a payload too. @keep: what to do with a string.
 */
#define META_TEXT(OP, name, keep) \
static int data_##name(struct pvfs_volume *vol, u32 room, const struct pvfs_##name##_req *m, \
		       struct pvfs_##name##_rep *r, struct payload *p) \
{ \
	struct pvfs_request *req; \
	unsigned int tries = 0; \
	int err; \
	\
	do { \
		req = pvfs_req_alloc(vol->mgr, PVFS_OP_##OP, room); \
		if (IS_ERR(req)) \
			return final_error(vol, PVFS_OP_##OP, PTR_ERR(req)); \
		err = pvfs_##name##_req_encode(m, req->body, req->body_room); \
		if (err >= 0) { \
			req->body_len = err; \
			if (p) { \
				req->bv = p->bv; \
				req->nbv = p->nbv; \
				req->bv_len = p->len; \
				req->write = p->write; \
			} \
			err = pvfs_req_run(req); \
			if (!err) \
				err = pvfs_##name##_rep_decode(r, req->rep, req->rep_len); \
			if (p) \
				p->got = req->in_len; \
			if (!err) \
				keep; \
		} \
		pvfs_req_put(req); \
		if (err == -EAGAIN) \
			err = ask_again(vol, &tries); \
	} while (err == -EAGAIN); \
	return final_error(vol, PVFS_OP_##OP, err); \
}

#define META_DATA(OP, name) META_TEXT(OP, name, (void)0)

#define META(OP, name) \
META_DATA(OP, name) \
static int meta_##name(struct pvfs_volume *vol, u32 room, const struct pvfs_##name##_req *m, \
		       struct pvfs_##name##_rep *r) \
{ \
	return data_##name(vol, room, m, r, NULL); \
}

META_TEXT(LOOKUP, lookup, keep_text(p, &r->target))
META(GETATTR, getattr)
META(SETATTR, setattr)
META(CREATE, create)
META(MKNOD, mknod)
META(MKDIR, mkdir)
META(SYMLINK, symlink)
META(LINK, link)
META(UNLINK, unlink)
META(RMDIR, rmdir)
META(RENAME, rename)
META(OPEN, open)
META(REPORT, report)
META(STATFS, statfs)
META_DATA(GETXATTR, getxattr)
META_DATA(SETXATTR, setxattr)
META_DATA(LISTXATTR, listxattr)
META(REMOVEXATTR, removexattr)
META(GETLK, getlk)

static int attr_check(struct pvfs_volume *vol, const struct pvfs_attr *attr)
{
	return pvfs_attr_sane(vol, attr) ? 0 : pvfs_bogus(vol, "attributes", attr->fid.ino);
}

/* Of an inode that we asked about: they must be its own. */
static int own_attr_check(struct inode *inode, const struct pvfs_attr *attr)
{
	const struct pvfs_fid *fid = &PVFS_I(inode)->fid;

	if (attr->fid.ino != fid->ino || attr->fid.gen != fid->gen)
		return pvfs_bogus(PVFS_VOL(inode), "another inode's attributes", fid->ino);
	return attr_check(PVFS_VOL(inode), attr);
}

/* Takes in what the mgr says of an inode after we asked about it by its number. */
static int own_attr_result(struct inode *inode, int err, const struct pvfs_attr *attr)
{
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err)
		err = own_attr_check(inode, attr);
	if (!err)
		err = pvfs_inode_update(inode, attr);
	return err;
}

/* ---------------------------------------------------------------- names */

/* The inode's identity on the wire. */
static struct pvfs_fid fid_of(const struct inode *inode)
{
	return PVFS_I(inode)->fid;
}

/* Room for a body with these credentials. */
static u32 room(const struct who *w)
{
	return META_ROOM + w->cred.groups.len;
}

/**
 * pvfs_meta_lookup - find a name in a directory
 * @dir: the directory
 * @name: the name
 * @attr: filled with the inode's attributes
 * @target: room for PVFS_SYMLINK_EAGER + 1 bytes: a symbolic link's target, if it came along; else empty
 *
 * Return: 0, -ENOENT, -EACCES, -ENOTDIR, -ESTALE (no such directory any more), -EINTR, -EIO.
 */
int pvfs_meta_lookup(struct inode *dir, const struct qstr *name, struct pvfs_attr *attr, char *target)
{
	struct pvfs_lookup_req m = { .dir = fid_of(dir), .name = pvfs_qstr(name) };
	struct payload p = { .text = target, .text_room = PVFS_SYMLINK_EAGER + 1 };
	struct pvfs_lookup_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	*target = 0;
	err = data_lookup(PVFS_VOL(dir), room(&w), &m, &r, &p);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(PVFS_VOL(dir), attr);
}

/**
 * pvfs_meta_create - open by name, creating as @flags say
 * @idmap: of the mount
 * @dir: the directory
 * @name: the name in it
 * @flags: PVFS_O_*
 * @mode: permission bits, the mgr applies the umask
 * @rep: filled
 *
 * On success the file is open at the mgr, once, if it is a regular one.
 */
int pvfs_meta_create(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name, u32 flags, umode_t mode,
		     struct pvfs_create_rep *rep)
{
	struct pvfs_create_req m = {
		.dir = fid_of(dir), .name = pvfs_qstr(name), .flags = flags, .mode = mode & S_IALLUGO,
		.umask = current_umask(),
	};
	struct who w;
	int err;

	err = who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_create(PVFS_VOL(dir), room(&w), &m, rep);
	who_put(&w);
	return err ?: attr_check(PVFS_VOL(dir), &rep->attr);
}

/**
 * pvfs_meta_mknod - make a fifo, socket, device or an empty regular file
 * @idmap: of the mount
 * @dir: the directory
 * @name: the name in it
 * @rdev: device number, of a device
 * @attr: filled with attributes, checked
 * @mode: type and permission bits
 */
int pvfs_meta_mknod(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name, umode_t mode, dev_t rdev, struct pvfs_attr *attr)
{
	struct pvfs_mknod_req m = {
		.dir = fid_of(dir), .name = pvfs_qstr(name), .mode = mode, .umask = current_umask(),
		.rdev = (u64)MAJOR(rdev) << 32 | MINOR(rdev),
	};
	struct pvfs_mknod_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_mknod(PVFS_VOL(dir), room(&w), &m, &r);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(PVFS_VOL(dir), attr);
}

/**
 * pvfs_meta_mkdir - make a directory
 * @idmap: of the mount
 * @dir: the directory
 * @name: the name in it
 * @mode: permission bits, the mgr applies the umask
 * @attr: filled with attributes, checked
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_mkdir(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name, umode_t mode, struct pvfs_attr *attr)
{
	struct pvfs_mkdir_req m = {
		.dir = fid_of(dir), .name = pvfs_qstr(name), .mode = mode & S_IALLUGO, .umask = current_umask(),
	};
	struct pvfs_mkdir_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_mkdir(PVFS_VOL(dir), room(&w), &m, &r);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(PVFS_VOL(dir), attr);
}

/**
 * pvfs_meta_symlink - make a symbolic link to @target (1 .. PVFS_SYMLINK_MAX bytes)
 * @idmap: of the mount
 * @dir: the directory
 * @name: the name in it
 * @target: 1 .. PVFS_SYMLINK_MAX bytes, NUL-terminated
 * @attr: filled with attributes, checked
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_symlink(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name, const char *target, struct pvfs_attr *attr)
{
	struct pvfs_symlink_req m = { .dir = fid_of(dir), .name = pvfs_qstr(name), .target = PVFS_STR(target) };
	struct pvfs_symlink_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_symlink(PVFS_VOL(dir), room(&w) + m.target.len, &m, &r);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(PVFS_VOL(dir), attr);
}

/**
 * pvfs_meta_link - one more name for @inode
 * @inode: the inode
 * @dir: the directory
 * @name: the name in it
 * @attr: its attributes after
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_link(struct inode *inode, struct inode *dir, const struct qstr *name, struct pvfs_attr *attr)
{
	struct pvfs_link_req m = { .fid = fid_of(inode), .dir = fid_of(dir), .name = pvfs_qstr(name) };
	struct pvfs_link_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_link(PVFS_VOL(dir), room(&w), &m, &r);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return own_attr_check(inode, attr);
}

/**
 * pvfs_meta_unlink - take a name away
 * @dir: the directory
 * @name: the name in it
 * @attr: what it named, as that is after
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_unlink(struct inode *dir, const struct qstr *name, struct pvfs_attr *attr)
{
	struct pvfs_unlink_req m = { .dir = fid_of(dir), .name = pvfs_qstr(name) };
	struct pvfs_unlink_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_unlink(PVFS_VOL(dir), room(&w), &m, &r);
	who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(PVFS_VOL(dir), attr);
}

/**
 * pvfs_meta_rmdir - remove an empty directory
 * @dir: the directory
 * @name: the name in it
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_rmdir(struct inode *dir, const struct qstr *name)
{
	struct pvfs_rmdir_req m = { .dir = fid_of(dir), .name = pvfs_qstr(name) };
	struct pvfs_rmdir_rep r;
	struct who w;
	int err;

	err = who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_rmdir(PVFS_VOL(dir), room(&w), &m, &r);
	who_put(&w);
	return err;
}

/**
 * pvfs_meta_rename - move a name, replacing another
 * @sdir: the directory that has the name
 * @sname: the name
 * @ddir: the directory to move it to
 * @dname: the name it gets
 * @flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT: PVFS_RN_* have the same values
 * @rep: what moved, and what was replaced
 */
int pvfs_meta_rename(struct inode *sdir, const struct qstr *sname, struct inode *ddir, const struct qstr *dname,
		     unsigned int flags, struct pvfs_rename_rep *rep)
{
	struct pvfs_rename_req m = {
		.sdir = fid_of(sdir), .sname = pvfs_qstr(sname),
		.ddir = fid_of(ddir), .dname = pvfs_qstr(dname), .flags = flags,
	};
	struct who w;
	int err;

	err = who_get(&w, sdir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_rename(PVFS_VOL(sdir), room(&w), &m, rep);
	who_put(&w);
	if (err)
		return err;
	err = attr_check(PVFS_VOL(sdir), &rep->attr);
	if (!err && rep->replaced)
		err = attr_check(PVFS_VOL(sdir), &rep->old);
	return err;
}

/**
 * pvfs_meta_readlink - read a symbolic link
 * @inode: the inode
 * @target: room for PVFS_SYMLINK_MAX + 1 bytes; NUL-terminated
 */
int pvfs_meta_readlink(struct inode *inode, char *target)
{
	struct pvfs_readlink_req m = { .fid = fid_of(inode) };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	u32 rep_room = PVFS_SYMLINK_MAX + 64;
	struct pvfs_readlink_rep r;
	struct pvfs_request *req;
	u8 *rep;
	int err;

	rep = kmalloc(rep_room, GFP_KERNEL);
	if (!rep)
		return -ENOMEM;
	req = pvfs_req_alloc(vol->mgr, PVFS_OP_READLINK, 0);
	if (IS_ERR(req)) {
		kfree(rep);
		return final_error(vol, PVFS_OP_READLINK, PTR_ERR(req));
	}
	req->rep = rep;
	req->rep_room = rep_room;
	req->body_len = pvfs_readlink_req_encode(&m, req->body, req->body_room);
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_readlink_rep_decode(&r, req->rep, req->rep_len);
	/* A target is never empty, and a NUL would end it early for whoever follows it. */
	if (!err && (!r.target.len || memchr(r.target.p, 0, r.target.len)))
		err = -EBADMSG;
	if (!err) {
		memcpy(target, r.target.p, r.target.len);
		target[r.target.len] = 0;
	}
	pvfs_req_put(req);
	kfree(rep);
	return final_error(vol, PVFS_OP_READLINK, err);
}

/**
 * pvfs_meta_readdir - a part of a directory
 * @dir: the directory
 * @cookie: of the last entry that was used; 0: from the start
 * @attrs: with attributes
 * @bv: memory for the entries
 * @nbv: bio_vecs of it
 * @bytes: its size
 * @rep: filled
 * @ret_len: bytes of entries
 */
int pvfs_meta_readdir(struct inode *dir, u64 cookie, bool attrs, const struct bio_vec *bv, unsigned int nbv,
		      u32 bytes, struct pvfs_readdir_rep *rep, u32 *ret_len)
{
	struct pvfs_readdir_req m = {
		.dir = fid_of(dir), .cookie = cookie, .bytes = bytes, .flags = attrs ? PVFS_RD_ATTRS : 0,
	};
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_request *req;
	int err;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_READDIR, 0);
	if (IS_ERR(req))
		return final_error(vol, PVFS_OP_READDIR, PTR_ERR(req));
	req->bv = bv;
	req->nbv = nbv;
	req->bv_len = bytes;
	req->body_len = pvfs_readdir_req_encode(&m, req->body, req->body_room);
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_readdir_rep_decode(rep, req->rep, req->rep_len);
	/* Nothing, but not the end either, would keep us asking for ever. */
	if (!err && !rep->count && !rep->eof)
		err = -EBADMSG;
	*ret_len = req->in_len;
	pvfs_req_put(req);
	if (err == -ESTALE)
		pvfs_inode_stale(dir);
	return final_error(vol, PVFS_OP_READDIR, err);
}

/* ---------------------------------------------------------------- inodes */

/**
 * pvfs_meta_getattr_start - begin to ask for an inode's attributes
 * @inode: the inode
 * @sent: filled with the report of our writes that goes along
 *
 * Return: a submitted request, for pvfs_meta_getattr_finish(); or ERR_PTR.
 */
struct pvfs_request *pvfs_meta_getattr_start(struct inode *inode, struct pvfs_wreport *sent)
{
	struct pvfs_getattr_req m = { .fid = fid_of(inode) };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_request *req;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_GETATTR, 0);
	if (IS_ERR(req))
		return ERR_PTR(final_error(vol, PVFS_OP_GETATTR, PTR_ERR(req)));
	pvfs_writes_report(inode, sent);
	m.report = *sent;
	req->body_len = pvfs_getattr_req_encode(&m, req->body, req->body_room);
	pvfs_req_submit(req);
	return req;
}

/**
 * pvfs_meta_getattr_finish - wait for the answer and take it in
 * @inode: the inode
 * @sent: what pvfs_meta_getattr_start() said went along
 * @req: from pvfs_meta_getattr_start(); taken
 */
int pvfs_meta_getattr_finish(struct inode *inode, struct pvfs_request *req, const struct pvfs_wreport *sent)
{
	struct pvfs_getattr_rep r;
	int err;

	err = pvfs_req_wait(req);
	if (!err)
		err = pvfs_getattr_rep_decode(&r, req->rep, req->rep_len);
	pvfs_req_put(req);
	err = own_attr_result(inode, final_error(PVFS_VOL(inode), PVFS_OP_GETATTR, err), &r.attr);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, sent);
	return err;
}

/**
 * pvfs_meta_atime - tell the mgr that an inode was read, if it was; without waiting
 * @inode: one that has no CLOSE which would tell it
 */
void pvfs_meta_atime(struct inode *inode)
{
	struct pvfs_getattr_req m = { .fid = fid_of(inode) };
	struct pvfs_request *req;

	if (!pvfs_atime_report(inode, &m.report))
		return;
	req = pvfs_req_alloc(PVFS_VOL(inode)->mgr, PVFS_OP_GETATTR, 0);
	if (IS_ERR(req))
		return;
	req->flags = PVFS_RF_ASYNC;
	req->body_len = pvfs_getattr_req_encode(&m, req->body, req->body_room);
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

/**
 * pvfs_meta_getattr_fid - attributes of an inode that we have only the number of: the root
 * @vol: the volume
 * @fid: the inode's number
 * @attr: filled with attributes, checked
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getattr_fid(struct pvfs_volume *vol, const struct pvfs_fid *fid, struct pvfs_attr *attr)
{
	struct pvfs_getattr_req m = { .fid = *fid };
	struct pvfs_getattr_rep r;
	int err;

	err = meta_getattr(vol, META_ROOM, &m, &r);
	if (err)
		return err;
	*attr = r.attr;
	return attr_check(vol, attr);
}

/**
 * pvfs_meta_getattr - ask for an inode's attributes, telling what we wrote; -EAGAIN is asked again
 * @inode: the inode
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getattr(struct inode *inode)
{
	struct pvfs_request *req;
	struct pvfs_wreport sent;
	unsigned int tries = 0;
	int err;

	do {
		req = pvfs_meta_getattr_start(inode, &sent);
		if (IS_ERR(req))
			return PTR_ERR(req);
		err = pvfs_meta_getattr_finish(inode, req, &sent);
		if (err == -EAGAIN)
			err = ask_again(PVFS_VOL(inode), &tries);
	} while (err == -EAGAIN);
	return err;
}

/**
 * pvfs_meta_setattr - change attributes
 * @inode: the inode
 * @m: all but cred, fid and report are the caller's
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setattr(struct inode *inode, struct pvfs_setattr_req *m)
{
	struct pvfs_setattr_rep r;
	struct who w;
	int err;

	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m->cred);
	if (err)
		return err;
	m->fid = fid_of(inode);
	pvfs_writes_report(inode, &m->report);
	err = meta_setattr(PVFS_VOL(inode), room(&w), m, &r);
	who_put(&w);
	err = own_attr_result(inode, err, &r.attr);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, &m->report);
	return err;
}

/**
 * pvfs_meta_report - fsync: what we wrote is recorded at the mgr when this returns
 * @inode: the inode
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_report(struct inode *inode)
{
	struct pvfs_report_req m = { .fid = fid_of(inode) };
	struct pvfs_report_rep r;
	int err;

	pvfs_writes_report(inode, &m.report);
	err = meta_report(PVFS_VOL(inode), META_ROOM, &m, &r);
	err = own_attr_result(inode, err, &r.attr);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, &m.report);
	return err;
}

/**
 * pvfs_meta_open - open by inode
 * @inode: the inode
 * @flags: PVFS_O_*
 * @rep: attributes (taken in already) and capability
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_open(struct inode *inode, u32 flags, struct pvfs_open_rep *rep)
{
	struct pvfs_open_req m = { .fid = fid_of(inode), .flags = flags };
	struct who w;
	int err;

	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_open(PVFS_VOL(inode), room(&w), &m, rep);
	who_put(&w);
	return own_attr_result(inode, err, &rep->attr);
}

/**
 * pvfs_meta_reclaim - tell a new mgr, or a new session, what we have open
 * @inode: the inode
 * @rep: filled with the answer
 * @flags: PVFS_O_READ | PVFS_O_WRITE
 * @count: how many opens of this kind there are
 * @recovery: part of recovery: passes while other requests are held
 */
int pvfs_meta_reclaim(struct inode *inode, u32 flags, u32 count, bool recovery, struct pvfs_reclaim_rep *rep)
{
	struct pvfs_reclaim_req m = { .fid = fid_of(inode), .flags = flags, .count = count };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_request *req;
	int err;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_RECLAIM, 0);
	if (IS_ERR(req))
		return PTR_ERR(req);
	if (recovery)
		req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_reclaim_req_encode(&m, req->body, req->body_room);
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_reclaim_rep_decode(rep, req->rep, req->rep_len);
	pvfs_req_put(req);
	return own_attr_result(inode, final_error(vol, PVFS_OP_RECLAIM, err), &rep->attr);
}

/**
 * pvfs_meta_statfs - how much there is, and how much is left
 * @vol: the volume
 * @rep: filled with the answer
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_statfs(struct pvfs_volume *vol, struct pvfs_statfs_rep *rep)
{
	struct pvfs_statfs_req m = {};

	return meta_statfs(vol, META_ROOM, &m, rep);
}

/* A SETLAYOUT on its way. */
struct relayout {
	refcount_t ref;			/* the caller's, and the request's */
	struct pvfs_use *use;
	bool done;
	int err;
};

static void relayout_put(struct relayout *r)
{
	if (refcount_dec_and_test(&r->ref))
		kfree(r);
}

static void relayout_done(struct pvfs_request *req)
{
	struct relayout *r = req->priv;
	struct inode *inode = &r->use->pi->vfs_inode;
	struct pvfs_inode *pi = PVFS_I(inode);
	wait_queue_head_t *wait = &PVFS_VOL(inode)->async_wait;
	struct pvfs_setlayout_rep rep;
	int err;

	err = req->err ?: pvfs_setlayout_rep_decode(&rep, req->rep, req->rep_len);
	r->err = own_attr_result(inode, err, &rep.attr);
	if (r->err)
		WRITE_ONCE(pi->relayouts_lost, pi->relayouts_lost + 1);
	/* Pairs with pvfs_layout_settled(). */
	smp_store_release(&pi->relayout, false);
	pvfs_use_iput(r->use);		/* also counts vol->closing down */
	/* Pairs with relayout(). */
	smp_store_release(&r->done, true);
	wake_up_all(wait);
	relayout_put(r);
}

/* Not safe to run twice for one inode at once. */
static int relayout(struct inode *inode, const struct pvfs_setlayout_req *m, u32 body_room)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_request *req;
	struct relayout *r;
	int err;

	err = pvfs_use_init(inode);
	if (err)
		return err;
	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SETLAYOUT, body_room);
	if (IS_ERR(req))
		return PTR_ERR(req);
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	err = r ? pvfs_setlayout_req_encode(m, req->body, req->body_room) : -ENOMEM;
	if (err < 0) {
		kfree(r);
		pvfs_req_put(req);
		return err;
	}
	req->body_len = err;
	refcount_set(&r->ref, 2);
	r->use = pi->use;
	req->flags = PVFS_RF_ASYNC;
	req->done = relayout_done;
	req->priv = r;
	ihold(inode);
	atomic_inc(&vol->closing);
	WRITE_ONCE(pi->relayout, true);
	pvfs_req_submit(req);
	pvfs_req_put(req);
	err = wait_event_killable(vol->async_wait, smp_load_acquire(&r->done)) ? -EINTR : r->err;
	relayout_put(r);
	return err;
}

/**
 * pvfs_meta_setlayout - layout of a file that was never written, or of a directory's new files
 * @inode: the inode; the caller holds its i_rwsem
 * @layout: pcount 1 or more, base 0xffff for any
 *
 * Whoever is killed waiting leaves the request to itself: nobody here reads or writes the file before it is known which
 * layout it has, see pvfs_layout_settled().
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setlayout(struct inode *inode, const struct pvfs_layout *layout)
{
	struct pvfs_setlayout_req m = { .fid = fid_of(inode), .layout = *layout };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	unsigned int tries = 0;
	struct who w;
	int err;

	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	do {
		err = pvfs_layout_settled(inode);
		err = err ?: relayout(inode, &m, room(&w));
		if (err == -EAGAIN)
			err = ask_again(vol, &tries);
	} while (err == -EAGAIN);
	who_put(&w);
	return final_error(vol, PVFS_OP_SETLAYOUT, err);
}

/**
 * pvfs_layout_settled - wait until no SETLAYOUT is under way, and learn what came of those that failed
 * @inode: the inode
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_layout_settled(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	u32 lost;
	int err;

	if (wait_event_killable(PVFS_VOL(inode)->async_wait, !smp_load_acquire(&pi->relayout)))
		return -EINTR;
	lost = READ_ONCE(pi->relayouts_lost);
	if (likely(lost == READ_ONCE(pi->relayouts_known)))
		return 0;
	err = pvfs_meta_getattr(inode);
	if (err)
		return err;
	WRITE_ONCE(pi->relayouts_known, lost);
	return 0;
}

/* ---------------------------------------------------------------- extended attributes */

/*
 * Memory for a value or a list on its way. The caller's own could be anywhere, the stack or a module's constants, where
 * its pages can't be had.
 */
struct bounce {
	void *mem;
	struct bio_vec bv[PVFS_XATTR_VALUE_MAX / PAGE_SIZE + 1];
	struct payload p;
};

static int bounce_init(struct bounce *b, u32 size, bool write)
{
	u32 done, n;

	b->p = (struct payload){ .bv = b->bv, .len = size, .write = write };
	b->mem = NULL;
	if (!size)
		return 0;
	b->mem = kvmalloc(size, GFP_KERNEL);
	if (!b->mem)
		return -ENOMEM;
	if (!is_vmalloc_addr(b->mem)) {
		b->bv[b->p.nbv++] = (struct bio_vec){
			.bv_page = virt_to_page(b->mem), .bv_len = size, .bv_offset = offset_in_page(b->mem),
		};
		return 0;
	}
	for (done = 0; done < size; done += n) {
		n = min_t(u32, size - done, PAGE_SIZE);
		b->bv[b->p.nbv++] = (struct bio_vec){ .bv_page = vmalloc_to_page(b->mem + done), .bv_len = n };
	}
	return 0;
}

/* What came, @size bytes as the answer says, to the caller, who has @room (0: wants only the size). */
static int bounce_take(struct bounce *b, struct inode *inode, void *to, u32 size, u32 room)
{
	if (size > PVFS_XATTR_VALUE_MAX || (room && (size > room || b->p.got != size)))
		return pvfs_bogus(PVFS_VOL(inode), "an extended attribute's size", PVFS_I(inode)->fid.ino);
	if (room)
		memcpy(to, b->mem, size);
	return size;
}

static void bounce_fini(struct bounce *b)
{
	kvfree(b->mem);
}

/**
 * pvfs_meta_getxattr - read an extended attribute
 * @inode: the inode
 * @name: with its prefix
 * @value: room for it
 * @size: bytes of @value; 0: only its size is wanted
 * @acl_version: of the inode, when the value was read; may be NULL
 *
 * Return: bytes of the value, or -errno: -ENODATA, -ERANGE, and as all here.
 */
int pvfs_meta_getxattr(struct inode *inode, const char *name, void *value, size_t size, u64 *acl_version)
{
	struct pvfs_getxattr_req m = {
		.fid = fid_of(inode), .name = PVFS_STR(name), .size = min_t(size_t, size, PVFS_XATTR_VALUE_MAX),
	};
	struct pvfs_getxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = bounce_init(&b, m.size, false);
	if (!err)
		err = data_getxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
	who_put(&w);
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err && acl_version)
		*acl_version = r.acl_version;
	if (!err)
		err = bounce_take(&b, inode, value, r.size, m.size);
	bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_setxattr - set an extended attribute
 * @inode: the inode
 * @name: with its prefix
 * @value: what to
 * @size: bytes of it
 * @flags: XATTR_CREATE, XATTR_REPLACE, which are the protocol's 1 and 2
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setxattr(struct inode *inode, const char *name, const void *value, size_t size, int flags)
{
	struct pvfs_setxattr_req m = { .fid = fid_of(inode), .name = PVFS_STR(name), .flags = flags };
	struct pvfs_setxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	if (size > PVFS_XATTR_VALUE_MAX)
		return -E2BIG;
	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = bounce_init(&b, size, true);
	if (!err) {
		if (size)
			memcpy(b.mem, value, size);
		err = data_setxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
		err = own_attr_result(inode, err, &r.attr);
	}
	who_put(&w);
	bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_listxattr - names of the extended attributes that the mgr keeps
 * @inode: the inode
 * @list: room for them, a NUL behind each
 * @size: bytes of @list; 0: only the size is wanted
 *
 * Return: bytes of the list, or -errno: -ERANGE, and as all here.
 */
int pvfs_meta_listxattr(struct inode *inode, char *list, size_t size)
{
	struct pvfs_listxattr_req m = { .fid = fid_of(inode), .size = min_t(size_t, size, PVFS_XATTR_LIST_MAX) };
	struct pvfs_listxattr_rep r;
	struct bounce b;
	struct who w;
	int err;

	BUILD_BUG_ON(PVFS_XATTR_LIST_MAX > PVFS_XATTR_VALUE_MAX);
	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	/* Whom trusted.* is shown to is not a matter of the inode. */
	if ((m.cred.flags & PVFS_CRED_CHECKED) && !capable(CAP_SYS_ADMIN)) {
		m.cred.flags = 0;
		m.cred.uid = from_kuid_munged(&init_user_ns, INVALID_UID);
	}
	err = bounce_init(&b, m.size, false);
	if (!err)
		err = data_listxattr(PVFS_VOL(inode), room(&w), &m, &r, &b.p);
	who_put(&w);
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err)
		err = bounce_take(&b, inode, list, r.size, m.size);
	bounce_fini(&b);
	return err;
}

/**
 * pvfs_meta_removexattr - remove an extended attribute
 * @inode: the inode
 * @name: with its prefix
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_removexattr(struct inode *inode, const char *name)
{
	struct pvfs_removexattr_req m = { .fid = fid_of(inode), .name = PVFS_STR(name) };
	struct pvfs_removexattr_rep r;
	struct who w;
	int err;

	err = who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_removexattr(PVFS_VOL(inode), room(&w), &m, &r);
	who_put(&w);
	return own_attr_result(inode, err, &r.attr);
}

/**
 * pvfs_meta_getlk - what is in the way of a lock
 * @inode: the inode
 * @m: the question
 * @rep: filled with the answer, checked; type PVFS_LK_UNLOCK: nothing
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getlk(struct inode *inode, const struct pvfs_getlk_req *m, struct pvfs_getlk_rep *rep)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	int err = meta_getlk(vol, META_ROOM, m, rep);

	if (!err && (rep->type > PVFS_LK_WRITE || rep->start > rep->end || rep->end > PVFS_FILE_MAX ||
		     rep->pid > S32_MAX))
		err = pvfs_bogus(vol, "a lock", m->fid.ino);
	return err;
}

/**
 * pvfs_meta_lock_reclaim - tell a new mgr of a lock; part of recovery
 * @vol: the volume
 * @m: the lock
 * @state: filled with PVFS_LK_*
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_lock_reclaim(struct pvfs_volume *vol, const struct pvfs_lock_req *m, u8 *state)
{
	struct pvfs_request *req = pvfs_req_alloc(vol->mgr, PVFS_OP_LOCK, 0);
	struct pvfs_lock_rep rep;
	int err;

	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_lock_req_encode(m, req->body, req->body_room);
	err = pvfs_req_run(req);
	if (!err)
		err = pvfs_lock_rep_decode(&rep, req->rep, req->rep_len);
	if (!err)
		*state = rep.state;
	pvfs_req_put(req);
	return final_error(vol, PVFS_OP_LOCK, err);
}

/**
 * pvfs_meta_reclaim_done - all was told that a new mgr has to know; part of recovery
 * @vol: the volume
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_reclaim_done(struct pvfs_volume *vol)
{
	struct pvfs_request *req = pvfs_req_alloc(vol->mgr, PVFS_OP_RECLAIM_DONE, 0);
	struct pvfs_reclaim_done_req m = {};
	int err;

	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_reclaim_done_req_encode(&m, req->body, req->body_room);
	err = pvfs_req_run(req);
	pvfs_req_put(req);
	return final_error(vol, PVFS_OP_RECLAIM_DONE, err);
}
