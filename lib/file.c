// SPDX-License-Identifier: LGPL-2.1
/*
 * file.c - opening and closing. What is done with an open file is in io.c and attr.c.
 *
 * A file is opened by name with one CREATE, also when nothing may be created; only a symbolic link
 * at the end of the path (-ELOOP) takes more.
 */
#include "lib.h"
#include <fcntl.h>
#include <stdlib.h>

static u32 rights_of(int flags)
{
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return PVFS_CAP_READ;
	case O_WRONLY:
		return PVFS_CAP_WRITE;
	default:
		return PVFS_CAP_READ | PVFS_CAP_WRITE;
	}
}

/**
 * lib_file_wire_flags - O_* as the protocol has them
 */
u32 lib_file_wire_flags(int flags)
{
	u32 r = rights_of(flags);

	return (r & PVFS_CAP_READ ? PVFS_O_READ : 0) | (r & PVFS_CAP_WRITE ? PVFS_O_WRITE : 0) |
	       (flags & O_CREAT ? PVFS_O_CREAT : 0) | (flags & O_EXCL ? PVFS_O_EXCL : 0) |
	       (flags & O_TRUNC ? PVFS_O_TRUNC : 0);
}

/*
 * CLOSE of a file that was opened with @rights. Writers wait for the answer, and who tells that it was read: then everyone
 * sees size and times, also who asks by name, which may overtake a CLOSE that nobody waits for.
 */
static int send_close(struct pvfs_fs *fs, struct inode *ino, u32 rights)
{
	struct pvfs_closing c = { .fid = ino->fid };
	u8 raw[PVFS_CLOSING_LEN], buf[REP_MAX];
	struct pvfs_close_req req;
	struct pvfs_close_rep rep;
	int err;

	c.flags = (rights & PVFS_CAP_READ ? PVFS_O_READ : 0) |
		  (rights & PVFS_CAP_WRITE ? PVFS_O_WRITE : 0);
	if (rights & PVFS_CAP_WRITE) {
		lib_inode_report_take(ino, &c.report);
	} else {
		pthread_mutex_lock(&ino->lock);
		c.report.trunc_gen = ino->trunc_gen;
		pthread_mutex_unlock(&ino->lock);
		lib_inode_atime_take(ino, &c.report.atime);
	}
	pvfs_close_req_one(&req, &c, raw);
	if (!(rights & PVFS_CAP_WRITE) && !c.report.atime.sec && !lib_fs_close_async(fs, &req))
		return 0;
	err = MGR_CALL(fs, CLOSE, close, &req, &rep, buf);
	if (!err)
		lib_inode_report_done(ino, &c.report);
	lib_session_opens_end(fs);
	return err;
}

/**
 * lib_file_from_attr - the struct for what an OPEN or CREATE has opened
 * @attr: it brought
 * @cap: it brought
 * @flags: O_*
 * @ret: the file
 *
 * Between lib_session_opens_begin() and _end(). On failure the CLOSE is the caller's.
 */
int lib_file_from_attr(struct pvfs_fs *fs, const struct pvfs_attr *attr, const struct pvfs_cap *cap,
		       int flags, struct pvfs_file **ret)
{
	struct pvfs_file *f;
	u32 generation;

	if (!S_ISREG(attr->mode))
		return S_ISDIR(attr->mode) ? -EISDIR : -ENXIO;
	if (!pvfs_layout_valid(&attr->layout, fs->niods))
		return -EIO;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->inode = lib_inode_get(fs, attr);
	if (!f->inode) {
		free(f);
		return -ENOMEM;
	}
	f->fs = fs;
	f->flags = flags;
	f->rights = rights_of(flags);
	pthread_mutex_lock(&fs->lock);
	generation = fs->generation;
	pthread_mutex_unlock(&fs->lock);
	pthread_mutex_lock(&f->inode->lock);
	f->inode->open[f->rights].count++;
	f->inode->open[f->rights].cap = *cap;
	f->inode->open[f->rights].generation = generation;
	pthread_mutex_unlock(&f->inode->lock);
	atomic_fetch_add(&fs->nfiles, 1);
	*ret = f;
	return 0;
}

/* What was opened at the mgr, but can't be used here. */
static void undo_open(struct pvfs_fs *fs, const struct pvfs_fid *fid, int flags)
{
	struct pvfs_closing c = { .fid = *fid };
	u8 raw[PVFS_CLOSING_LEN], buf[REP_MAX];
	struct pvfs_close_req req;
	struct pvfs_close_rep rep;

	c.flags = lib_file_wire_flags(flags) & (PVFS_O_READ | PVFS_O_WRITE);
	pvfs_close_req_one(&req, &c, raw);
	MGR_CALL(fs, CLOSE, close, &req, &rep, buf);
}

/* ---------------------------------------------------------------- for others, too */

struct sharing {
	const struct pvfs_mount_id *sharers;
	size_t n;
	struct pvfs_shared *given;
};

int pvfs_mount_id(struct pvfs_fs *fs, struct pvfs_mount_id *ret)
{
	int err = lib_fs_check(fs);

	if (err)
		return err;
	pthread_mutex_lock(&fs->lock);
	ret->session = fs->session;
	pthread_mutex_unlock(&fs->lock);
	memcpy(ret->client, fs->client, sizeof(ret->client));
	return 0;
}

/*
 * @rep: what the manager said; the first macs, of @n of them, or none. To whom it was not opened goes
 * one of zeros.
 */
static void give(const struct sharing *sh, const struct pvfs_open_shared_rep *rep, const u8 *macs,
		 size_t n)
{
	static const u8 none[PVFS_CAP_MAC_LEN];
	struct pvfs_wire w;
	size_t i;

	for (i = 0; i < sh->n; i++) {
		struct pvfs_shared *to = &sh->given[i];

		memset(to, 0, sizeof(*to));
		pvfs_wire_init(&w, to->bytes, sizeof(to->bytes));
		pvfs_put_u64(&w, rep->epoch);
		pvfs_put_u64(&w, sh->sharers[i].session);
		pvfs_put_u32(&w, rep->cap.rights);
		pvfs_put_fix(&w, i < n ? macs + i * PVFS_CAP_MAC_LEN : none, PVFS_CAP_MAC_LEN);
		pvfs_put_attr(&w, &rep->attr);
	}
}

/*
 * Those that one request has no room for open it by themselves. Return: 0 and @rep; -EOPNOTSUPP: the
 * manager does not know how; or -errno.
 */
static int do_open_shared(struct pvfs_fs *fs, const struct pvfs_create_req *create,
			  const struct sharing *sh, struct pvfs_create_rep *ret)
{
	u32 n = min(sh->n, (size_t)PVFS_SHARERS_MAX), got = 0;
	u8 list[PVFS_SHARERS_MAX * PVFS_SHARER_LEN], buf[REP_MAX];
	u8 macs[PVFS_SHARERS_MAX * PVFS_CAP_MAC_LEN];
	struct iovec in = { .iov_base = macs, .iov_len = n * PVFS_CAP_MAC_LEN };
	struct pvfs_open_shared_req req = {
		.cred = create->cred, .dir = create->dir, .name = create->name,
		.flags = create->flags, .mode = create->mode, .umask = create->umask,
		.layout = create->layout, .sharers = { .p = list, .len = n * PVFS_SHARER_LEN },
	};
	struct pvfs_open_shared_rep rep;
	struct pvfs_wire w;
	size_t i;
	int err;

	pvfs_wire_init(&w, list, sizeof(list));
	for (i = 0; i < n; i++) {
		pvfs_put_u64(&w, sh->sharers[i].session);
		pvfs_put_fix(&w, sh->sharers[i].client, PVFS_UUID_LEN);
	}
	err = MGR_CALL_IN(fs, OPEN_SHARED, open_shared, &req, &rep, buf, n ? &in : NULL, &got);
	if (err)
		return err;
	give(sh, &rep, macs, got / PVFS_CAP_MAC_LEN);
	*ret = (struct pvfs_create_rep){ .attr = rep.attr, .cap = rep.cap, .created = rep.created };
	return 0;
}

/* The same of a manager that opens for one at a time. */
static void give_names(const struct sharing *sh, const struct pvfs_create_rep *rep)
{
	struct pvfs_open_shared_rep none = { .attr = rep->attr, .cap = rep->cap };

	give(sh, &none, NULL, 0);
}

int pvfs_open_shared(struct pvfs_fs *fs, const struct pvfs_shared *given, int flags,
		     struct pvfs_file **ret)
{
	static const u8 none[PVFS_CAP_MAC_LEN];
	struct pvfs_attr attr;
	struct pvfs_cap cap;
	struct pvfs_wire w;
	struct pvfs_fh fh;
	int err = lib_fs_check(fs);
	u64 epoch, session;
	bool same;

	if (err)
		return err;
	pvfs_wire_init(&w, given->bytes, sizeof(given->bytes));
	epoch = pvfs_get_u64(&w);
	session = pvfs_get_u64(&w);
	cap.rights = pvfs_get_u32(&w);
	cap.session = session;
	pvfs_get_fix(&w, cap.mac, sizeof(cap.mac));
	pvfs_get_attr(&w, &attr);
	if (w.err || !S_ISREG(attr.mode))
		return -EINVAL;
	if (memcmp(cap.mac, none, sizeof(none)) && cap.rights == rights_of(flags)) {
		lib_session_opens_begin(fs);
		/*
		 * Another mgr does not know of it; and if that one is yet to be met, it will be
		 * told. To another session the capability is no use.
		 */
		pthread_mutex_lock(&fs->lock);
		same = fs->epoch == epoch && fs->session == session;
		pthread_mutex_unlock(&fs->lock);
		err = same ? lib_file_from_attr(fs, &attr, &cap, flags, ret) : -ESTALE;
		lib_session_opens_end(fs);
		if (err != -ESTALE)
			return err;
	}
	fh = (struct pvfs_fh){ .ino = attr.fid.ino, .gen = attr.fid.gen };
	return pvfs_open_fh(fs, &fh, flags & ~(O_CREAT | O_EXCL | O_TRUNC), ret);
}

/* ---------------------------------------------------------------- opening by name */

/* CREATE in the directory @dir. @attr gets the file's attributes; @sh may be NULL. */
static int do_create(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name, int flags,
		     mode_t mode, const struct pvfs_striping *s, const struct sharing *sh,
		     struct pvfs_file **ret, struct pvfs_attr *attr)
{
	struct pvfs_create_req req = { .dir = *dir,
				       .name = PVFS_STR(name),
				       .flags = lib_file_wire_flags(flags) };
	struct pvfs_create_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	req.mode = mode & 07777;
	req.umask = lib_fs_umask(fs);
	err = s ? lib_layout_of(fs, s, &req.layout) : 0;
	if (err)
		return err;
	lib_fs_cred_get(fs, &cred, &req.cred);
	lib_session_opens_begin(fs);
	err = sh ? do_open_shared(fs, &req, sh, &rep) : -EOPNOTSUPP;
	if (err == -EOPNOTSUPP) {
		err = MGR_CALL(fs, CREATE, create, &req, &rep, buf);
		if (!err && sh)
			give_names(sh, &rep);
	}
	if (!err) {
		*attr = rep.attr;
		err = lib_file_from_attr(fs, &rep.attr, &rep.cap, flags, ret);
		if (err && S_ISREG(rep.attr.mode))
			undo_open(fs, &rep.attr.fid, flags);
	}
	lib_session_opens_end(fs);
	return err;
}

static int open_path(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		     const struct pvfs_striping *s, const struct sharing *sh,
		     struct pvfs_file **ret)
{
	bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	struct walk w;
	int err = lib_fs_check(fs), tries = 0;

	if (err)
		return err;
	err = lib_walk_parent(fs, path, &w);
	while (!err) {
		if (!*w.name || (w.must_dir && (flags & O_CREAT))) {
			err = -EISDIR;
			if (w.dot != DOT_NONE && (flags & O_CREAT) && (flags & O_EXCL))
				err = -EEXIST;
			break;
		}
		if (!w.must_dir) {
			err = do_create(fs, lib_walk_dir(&w), w.name, flags, mode, s, sh, ret,
					&w.attr);
			if (err != -ELOOP || !follow || ++tries > SYMLINKS_MAX)
				break;
		}
		/* A symbolic link, or was one a moment ago. */
		err = lib_walk_lookup(fs, &w);
		if (err == -ENOENT && !w.must_dir && (flags & O_CREAT)) {
			err = 0;
			continue;
		}
		if (!err && S_ISLNK(w.attr.mode))
			err = lib_walk_follow(fs, &w);
		else if (!err && w.must_dir)
			err = S_ISDIR(w.attr.mode) ? -EISDIR : -ENOTDIR;
	}
	lib_walk_free(&w);
	return err;
}

int pvfs_open(struct pvfs_fs *fs, const char *path, int flags, mode_t mode, struct pvfs_file **ret)
{
	return open_path(fs, path, flags, mode, NULL, NULL, ret);
}

int pvfs_open_striped(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		      const struct pvfs_striping *s, struct pvfs_file **ret)
{
	return open_path(fs, path, flags, mode, s, NULL, ret);
}

int pvfs_open_for(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		  const struct pvfs_striping *s, const struct pvfs_mount_id *sharers, size_t n,
		  struct pvfs_shared *given, struct pvfs_file **ret)
{
	struct sharing sh = { .sharers = sharers, .n = n, .given = given };

	return open_path(fs, path, flags, mode, s, &sh, ret);
}

int pvfs_create_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, int flags,
		   mode_t mode, const struct pvfs_striping *s, struct pvfs_file **ret,
		   struct pvfs_stat *st)
{
	struct pvfs_fid fid = fid_of(dir);
	struct pvfs_attr attr;
	int err = lib_fs_check(fs) ?: lib_name_check(name) ?:
		  do_create(fs, &fid, name, flags, mode, s, NULL, ret, &attr);

	if (!err && st)
		lib_attr_to_stat(&attr, st);
	return err;
}

int pvfs_open_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, int flags, struct pvfs_file **ret)
{
	struct pvfs_open_req req = { .fid = fid_of(fh) };
	struct pvfs_open_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err = lib_fs_check(fs);

	if (err)
		return err;
	req.flags = lib_file_wire_flags(flags) & ~(PVFS_O_CREAT | PVFS_O_EXCL);
	lib_fs_cred_get(fs, &cred, &req.cred);
	lib_session_opens_begin(fs);
	err = MGR_CALL(fs, OPEN, open, &req, &rep, buf);
	if (!err) {
		err = lib_file_from_attr(fs, &rep.attr, &rep.cap, flags, ret);
		if (err && S_ISREG(rep.attr.mode))
			undo_open(fs, &req.fid, flags);
	}
	lib_session_opens_end(fs);
	return err;
}

int pvfs_close(struct pvfs_file *f)
{
	struct pvfs_fs *fs = f->fs;
	struct inode *ino = f->inode;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	lib_session_opens_begin(fs);
	lib_locks_close(f);
	pthread_mutex_lock(&ino->lock);
	ino->open[f->rights].count--;
	pthread_mutex_unlock(&ino->lock);
	err = send_close(fs, ino, f->rights);
	lib_inode_put(fs, ino);
	free(f);
	atomic_fetch_sub(&fs->nfiles, 1);
	return err;
}
