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
 * CLOSE of a file that was opened with @rights. Writers wait for the answer: then everyone sees
 * size and times.
 */
static int send_close(struct pvfs_fs *fs, struct inode *ino, u32 rights)
{
	struct pvfs_closing c = { .fid = ino->fid };
	u8 raw[PVFS_CLOSING_LEN], buf[64];
	struct pvfs_close_req req;
	struct pvfs_close_rep rep;
	int err;

	c.flags = (rights & PVFS_CAP_READ ? PVFS_O_READ : 0) |
		  (rights & PVFS_CAP_WRITE ? PVFS_O_WRITE : 0);
	if (rights & PVFS_CAP_WRITE) {
		lib_inode_report_take(ino, &c.report);
	} else {
		c.report.trunc_gen = ino->trunc_gen;
		lib_inode_atime_take(ino, &c.report.atime);
	}
	pvfs_close_req_one(&req, &c, raw);
	if (!(rights & PVFS_CAP_WRITE) && !lib_fs_close_async(fs, &req))
		return 0;
	err = MGR_CALL(fs, CLOSE, close, &req, &rep, buf);
	if (err)
		lib_inode_report_restore(ino, &c.report);
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
	u8 raw[PVFS_CLOSING_LEN], buf[64];
	struct pvfs_close_req req;
	struct pvfs_close_rep rep;

	c.flags = lib_file_wire_flags(flags) & (PVFS_O_READ | PVFS_O_WRITE);
	pvfs_close_req_one(&req, &c, raw);
	MGR_CALL(fs, CLOSE, close, &req, &rep, buf);
}

/* CREATE in the directory @dir. @attr gets the file's attributes. */
static int do_create(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name, int flags,
		     mode_t mode, const struct pvfs_striping *s, struct pvfs_file **ret,
		     struct pvfs_attr *attr)
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
	err = MGR_CALL(fs, CREATE, create, &req, &rep, buf);
	if (!err) {
		*attr = rep.attr;
		err = lib_file_from_attr(fs, &rep.attr, &rep.cap, flags, ret);
		if (err && S_ISREG(rep.attr.mode))
			undo_open(fs, &rep.attr.fid, flags);
	}
	lib_session_opens_end(fs);
	return err;
}

int pvfs_open_striped(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		      const struct pvfs_striping *s, struct pvfs_file **ret)
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
			err = do_create(fs, lib_walk_dir(&w), w.name, flags, mode, s, ret, &w.attr);
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
	return pvfs_open_striped(fs, path, flags, mode, NULL, ret);
}

int pvfs_create_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, int flags,
		   mode_t mode, const struct pvfs_striping *s, struct pvfs_file **ret,
		   struct pvfs_stat *st)
{
	struct pvfs_fid fid = fid_of(dir);
	struct pvfs_attr attr;
	int err = lib_fs_check(fs) ?: lib_name_check(name) ?:
		  do_create(fs, &fid, name, flags, mode, s, ret, &attr);

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
