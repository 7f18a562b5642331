// SPDX-License-Identifier: GPL-2.0
/*
 * meta_names.c - the operations of the manager on names and directories.
 */
#include <linux/mm.h>
#include "meta.h"

META_TEXT(LOOKUP, lookup, keep_text(p, &r->target))
META_DATA(CREATE, create)
META(MKNOD, mknod)
META(MKDIR, mkdir)
META(SYMLINK, symlink)
META(LINK, link)
META(UNLINK, unlink)
META(RMDIR, rmdir)
META(RENAME, rename)

/**
 * pvfs_meta_lookup - find a name in a directory
 * @dir: the directory; its attributes may come along with a lease, and are taken in then
 * @name: the name
 * @found: filled, its token also when there is no such name
 *
 * Return: 0, -ENOENT, -EACCES, -ENOTDIR, -ESTALE (no such directory any more), -EINTR, -EIO.
 */
int pvfs_meta_lookup(struct inode *dir, const struct qstr *name, struct pvfs_found *found)
{
	struct pvfs_lookup_req m = { .dir = fid_of(dir), .name = pvfs_qstr(name) };
	struct payload p = { .text = found->target, .text_room = sizeof(found->target) };
	struct pvfs_lookup_rep r;
	struct who w;
	int err;

	found->target[0] = 0;
	found->token = 0;
	err = pvfs_who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	pvfs_lease_ask(PVFS_VOL(dir), &found->ask);
	err = data_lookup(PVFS_VOL(dir), room(&w), &m, &r, &p);
	pvfs_who_put(&w);
	if (err)
		return err;
	if (r.dir.flags & PVFS_AF_LEASE) {
		err = pvfs_own_attr_check(dir, &r.dir) ?:
		      pvfs_dir_told(dir, &r.dir, &found->ask, &found->token);
		if (err)
			return err;
		if (!r.attr.fid.ino)
			return -ENOENT;
	}
	found->attr = r.attr;
	return pvfs_attr_check(PVFS_VOL(dir), &found->attr);
}

/**
 * pvfs_meta_create - open by name, creating as @flags say
 * @idmap: of the mount
 * @dir: the directory
 * @name: the name in it
 * @flags: PVFS_O_*
 * @mode: permission bits, the mgr applies the umask
 * @unleased: see struct pvfs_create_req
 * @rep: filled
 * @ask: filled
 * @head: room for PVFS_EAGER_MAX bytes of a stuffed file, if it is to come along; or NULL
 *
 * On success the file is open at the mgr, once, if it is a regular one.
 */
int pvfs_meta_create(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		     u32 flags, umode_t mode, u64 unleased, struct pvfs_create_rep *rep,
		     struct pvfs_ask *ask, struct pvfs_head_mem *head)
{
	struct pvfs_create_req m = {
		.dir = fid_of(dir),
		.name = pvfs_qstr(name),
		.flags = flags | (head ? PVFS_O_EAGER : 0),
		.mode = mode & S_IALLUGO,
		.umask = current_umask(),
		.unleased = unleased,
	};
	struct payload p = { };
	struct who w;
	int err;

	err = pvfs_who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	pvfs_lease_ask(PVFS_VOL(dir), ask);
	if (head) {
		p.bv = head->bv;
		p.nbv = head->n;
		p.len = head->n * PAGE_SIZE;
	}
	err = data_create(PVFS_VOL(dir), room(&w), &m, rep, head ? &p : NULL);
	if (head)
		head->got = p.got;
	pvfs_who_put(&w);
	return err ?: pvfs_attr_check(PVFS_VOL(dir), &rep->attr);
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
int pvfs_meta_mknod(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		    umode_t mode, dev_t rdev, struct pvfs_attr *attr)
{
	struct pvfs_mknod_req m = {
		.dir = fid_of(dir), .name = pvfs_qstr(name), .mode = mode, .umask = current_umask(),
		.rdev = (u64)MAJOR(rdev) << 32 | MINOR(rdev),
	};
	struct pvfs_mknod_rep r;
	struct who w;
	int err;

	err = pvfs_who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_mknod(PVFS_VOL(dir), room(&w), &m, &r);
	pvfs_who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_attr_check(PVFS_VOL(dir), attr);
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
int pvfs_meta_mkdir(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		    umode_t mode, struct pvfs_attr *attr)
{
	struct pvfs_mkdir_req m = {
		.dir = fid_of(dir),
		.name = pvfs_qstr(name),
		.mode = mode & S_IALLUGO,
		.umask = current_umask(),
	};
	struct pvfs_mkdir_rep r;
	struct who w;
	int err;

	err = pvfs_who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_mkdir(PVFS_VOL(dir), room(&w), &m, &r);
	pvfs_who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_attr_check(PVFS_VOL(dir), attr);
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
int pvfs_meta_symlink(struct pvfs_idmap *idmap, struct inode *dir, const struct qstr *name,
		      const char *target, struct pvfs_attr *attr)
{
	struct pvfs_symlink_req m = { .dir = fid_of(dir),
				      .name = pvfs_qstr(name),
				      .target = PVFS_STR(target) };
	struct pvfs_symlink_rep r;
	struct who w;
	int err;

	err = pvfs_who_get(&w, dir, idmap, &m.cred);
	if (err)
		return err;
	err = meta_symlink(PVFS_VOL(dir), room(&w) + m.target.len, &m, &r);
	pvfs_who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_attr_check(PVFS_VOL(dir), attr);
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
int pvfs_meta_link(struct inode *inode, struct inode *dir, const struct qstr *name,
		   struct pvfs_attr *attr)
{
	struct pvfs_link_req m = { .fid = fid_of(inode),
				   .dir = fid_of(dir),
				   .name = pvfs_qstr(name) };
	struct pvfs_link_rep r;
	struct who w;
	int err;

	err = pvfs_who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_link(PVFS_VOL(dir), room(&w), &m, &r);
	pvfs_who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_own_attr_check(inode, attr);
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

	err = pvfs_who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_unlink(PVFS_VOL(dir), room(&w), &m, &r);
	pvfs_who_put(&w);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_attr_check(PVFS_VOL(dir), attr);
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

	err = pvfs_who_get(&w, dir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_rmdir(PVFS_VOL(dir), room(&w), &m, &r);
	pvfs_who_put(&w);
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
int pvfs_meta_rename(struct inode *sdir, const struct qstr *sname, struct inode *ddir,
		     const struct qstr *dname, unsigned int flags, struct pvfs_rename_rep *rep)
{
	struct pvfs_rename_req m = {
		.sdir = fid_of(sdir), .sname = pvfs_qstr(sname),
		.ddir = fid_of(ddir), .dname = pvfs_qstr(dname), .flags = flags,
	};
	struct who w;
	int err;

	err = pvfs_who_get(&w, sdir, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	err = meta_rename(PVFS_VOL(sdir), room(&w), &m, rep);
	pvfs_who_put(&w);
	if (err)
		return err;
	err = pvfs_attr_check(PVFS_VOL(sdir), &rep->attr);
	if (!err && rep->replaced)
		err = pvfs_attr_check(PVFS_VOL(sdir), &rep->old);
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
		return pvfs_final_error(vol, PVFS_OP_READLINK, PTR_ERR(req));
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
	return pvfs_final_error(vol, PVFS_OP_READLINK, err);
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
 * @ask: filled
 * @token: of the lease under which the names may be believed; 0: there is none
 */
int pvfs_meta_readdir(struct inode *dir, u64 cookie, bool attrs, const struct bio_vec *bv,
		      unsigned int nbv, u32 bytes, struct pvfs_readdir_rep *rep, u32 *ret_len,
		      struct pvfs_ask *ask, unsigned long *token)
{
	struct pvfs_readdir_req m = {
		.dir = fid_of(dir),
		.cookie = cookie,
		.bytes = bytes,
		.flags = (attrs ? PVFS_RD_ATTRS : 0) |
			 (PVFS_VOL(dir)->opts.readdir_one ? PVFS_RD_ONE : 0),
	};
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_request *req;
	int err;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_READDIR, 0);
	if (IS_ERR(req))
		return pvfs_final_error(vol, PVFS_OP_READDIR, PTR_ERR(req));
	req->bv = bv;
	req->nbv = nbv;
	req->bv_len = bytes;
	req->body_len = pvfs_readdir_req_encode(&m, req->body, req->body_room);
	pvfs_lease_ask(vol, ask);
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
	*token = 0;
	if (!err && (rep->dir.flags & PVFS_AF_LEASE))
		return pvfs_own_attr_check(dir, &rep->dir) ?:
		       pvfs_dir_told(dir, &rep->dir, ask, token);
	return pvfs_final_error(vol, PVFS_OP_READDIR, err);
}
