// SPDX-License-Identifier: LGPL-2.1
/*
 * attr.c - attributes: asking for them, changing them, and turning them into what a program knows.
 *
 * Whatever asks the mgr about a file that is open here carries along the report of our own writes,
 * so that the answer has them in it.
 */
#include "lib.h"
#include <fcntl.h>
#include <sys/sysmacros.h>

static struct timespec ts_of(const struct pvfs_ts *t)
{
	return (struct timespec){ .tv_sec = t->sec, .tv_nsec = t->nsec };
}

/**
 * lib_attr_to_stat - attributes as programs know them
 */
void lib_attr_to_stat(const struct pvfs_attr *a, struct pvfs_stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->st.st_ino = a->fid.ino;
	ret->st.st_mode = a->mode;
	ret->st.st_nlink = a->nlink;
	ret->st.st_uid = a->uid;
	ret->st.st_gid = a->gid;
	ret->st.st_rdev = makedev(a->rdev >> 32, a->rdev & 0xffffffffu);
	ret->st.st_size = min(a->size, (u64)PVFS_FILE_MAX);
	ret->st.st_blocks = min(a->blocks, (u64)INT64_MAX);
	ret->st.st_blksize = a->layout.ssize ? min(a->layout.ssize, 1u << 20) : 4096;
	ret->st.st_atim = ts_of(&a->atime);
	ret->st.st_mtim = ts_of(&a->mtime);
	ret->st.st_ctim = ts_of(&a->ctime);
	ret->btime = ts_of(&a->btime);
	ret->fh = (struct pvfs_fh){ .ino = a->fid.ino, .gen = a->fid.gen };
	ret->striping = lib_striping(&a->layout);
	ret->version = a->version;
	ret->flags = (a->flags & PVFS_AF_SIZE_UNKNOWN ? PVFS_ST_SIZE_UNKNOWN : 0) |
		     (a->flags & PVFS_AF_WRITERS ? PVFS_ST_WRITERS : 0) |
		     (a->flags & PVFS_AF_STUFFED ? PVFS_ST_STUFFED : 0);
}

/**
 * lib_attr_get - GETATTR
 * @fid: whose
 * @ino: the same inode if it is open here, else NULL
 * @ret: the attributes
 */
int lib_attr_get(struct pvfs_fs *fs, const struct pvfs_fid *fid, struct inode *ino,
		 struct pvfs_attr *ret)
{
	struct pvfs_getattr_req req = { .fid = *fid };
	struct pvfs_getattr_rep rep;
	u8 buf[REP_MAX];
	int err;

	if (ino)
		lib_inode_report_take(ino, &req.report);
	err = MGR_CALL(fs, GETATTR, getattr, &req, &rep, buf);
	if (err)
		return err;
	if (ino) {
		lib_inode_update(ino, &rep.attr);
		lib_inode_report_done(ino, &req.report);
	}
	*ret = rep.attr;
	return 0;
}

/**
 * lib_attr_refresh - attributes that came without our report: ask again if there is one, or if the
 * mgr did not know the size
 * @attr: from a LOOKUP or the like; replaced if need be
 */
int lib_attr_refresh(struct pvfs_fs *fs, struct pvfs_attr *attr)
{
	bool ask = attr->flags & PVFS_AF_SIZE_UNKNOWN;
	struct inode *ino;
	int err = 0;

	if (!S_ISREG(attr->mode))
		return 0;
	ino = lib_inode_find(fs, &attr->fid);
	if (ino) {
		pthread_mutex_lock(&ino->lock);
		ask |= ino->reporting || ino->atime_due.sec;
		pthread_mutex_unlock(&ino->lock);
	}
	if (ask)
		err = lib_attr_get(fs, &attr->fid, ino, attr);
	else if (ino)
		lib_inode_update(ino, attr);
	lib_inode_put(fs, ino);
	return err;
}

/**
 * lib_attr_set - SETATTR
 * @fid: whose
 * @ino: the same inode if it is open here, else NULL (it is looked for)
 * @req: valid and the values it names; the rest is filled in here
 * @ret: the attributes afterwards
 */
int lib_attr_set(struct pvfs_fs *fs, const struct pvfs_fid *fid, struct inode *ino,
		 struct pvfs_setattr_req *req, struct pvfs_attr *ret)
{
	struct inode *found = ino ? NULL : lib_inode_find(fs, fid);
	struct pvfs_setattr_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	ino = ino ?: found;
	req->fid = *fid;
	lib_fs_cred_get(fs, &cred, &req->cred);
	if (ino)
		lib_inode_report_take(ino, &req->report);
	err = MGR_CALL(fs, SETATTR, setattr, req, &rep, buf);
	if (!err) {
		*ret = rep.attr;
		if (ino) {
			lib_inode_update(ino, &rep.attr);
			lib_inode_report_done(ino, &req->report);
		}
	}
	lib_inode_put(fs, found);
	return err;
}

/* ---------------------------------------------------------------- requests by kind */

static void req_chown(struct pvfs_setattr_req *req, uid_t uid, gid_t gid)
{
	*req = (struct pvfs_setattr_req){ .uid = uid, .gid = gid };
	req->valid = (uid != (uid_t)-1 ? PVFS_SA_UID : 0) | (gid != (gid_t)-1 ? PVFS_SA_GID : 0);
	/* Also to change neither takes set-id bits away. */
	if (!req->valid)
		req->valid = PVFS_SA_KILL_PRIV | PVFS_SA_KILL_CAPS;
}

static int req_time(const struct timespec *t, u32 set, u32 now, u32 *valid, struct pvfs_ts *ret)
{
	if (!t || t->tv_nsec == UTIME_NOW) {
		*valid |= now;
	} else if (t->tv_nsec != UTIME_OMIT) {
		if (t->tv_nsec < 0 || t->tv_nsec >= 1000000000)
			return -EINVAL;
		*valid |= set;
		*ret = (struct pvfs_ts){ .sec = t->tv_sec, .nsec = t->tv_nsec };
	}
	return 0;
}

static int req_utimens(struct pvfs_setattr_req *req, const struct timespec *ts)
{
	*req = (struct pvfs_setattr_req){ 0 };
	return req_time(ts, PVFS_SA_ATIME, PVFS_SA_ATIME_NOW, &req->valid, &req->atime) ?:
	       req_time(ts ? ts + 1 : NULL, PVFS_SA_MTIME, PVFS_SA_MTIME_NOW, &req->valid,
			&req->mtime);
}

static int req_size(struct pvfs_setattr_req *req, off_t size)
{
	*req = (struct pvfs_setattr_req){ .valid = PVFS_SA_SIZE, .size = size };
	return size < 0 ? -EINVAL : 0;
}

/* ---------------------------------------------------------------- by handle */

static int set_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, struct pvfs_setattr_req *req,
		  struct pvfs_stat *ret)
{
	struct pvfs_fid fid = fid_of(fh);
	struct pvfs_attr attr;
	int err = lib_fs_check(fs);

	if (!err)
		err = req->valid ? lib_attr_set(fs, &fid, NULL, req, &attr) :
				   lib_attr_get(fs, &fid, NULL, &attr);
	if (!err && ret)
		lib_attr_to_stat(&attr, ret);
	return err;
}

int pvfs_stat_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, struct pvfs_stat *ret)
{
	struct pvfs_fid fid = fid_of(fh);
	struct pvfs_attr attr;
	struct inode *ino;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	ino = lib_inode_find(fs, &fid);
	err = lib_attr_get(fs, &fid, ino, &attr);
	lib_inode_put(fs, ino);
	if (!err)
		lib_attr_to_stat(&attr, ret);
	return err;
}

int pvfs_truncate_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, off_t size,
		     struct pvfs_stat *ret)
{
	struct pvfs_setattr_req req;

	return req_size(&req, size) ?: set_fh(fs, fh, &req, ret);
}

int pvfs_chmod_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, mode_t mode, struct pvfs_stat *ret)
{
	struct pvfs_setattr_req req = { .valid = PVFS_SA_MODE, .mode = mode & 07777 };

	return set_fh(fs, fh, &req, ret);
}

int pvfs_chown_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, uid_t uid, gid_t gid,
		  struct pvfs_stat *ret)
{
	struct pvfs_setattr_req req;

	req_chown(&req, uid, gid);
	return set_fh(fs, fh, &req, ret);
}

int pvfs_utimens_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct timespec ts[2],
		    struct pvfs_stat *ret)
{
	struct pvfs_setattr_req req;

	return req_utimens(&req, ts) ?: set_fh(fs, fh, &req, ret);
}

/* ---------------------------------------------------------------- by path */

/* What @path names; with @follow what a link at its end leads to. @ret has our own writes in it. */
static int path_attr(struct pvfs_fs *fs, const char *path, bool follow, struct pvfs_attr *ret)
{
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_full(fs, path, follow, &w);
	if (!err) {
		*ret = w.attr;
		err = lib_attr_refresh(fs, ret);
	}
	lib_walk_free(&w);
	return err;
}

static int path_stat(struct pvfs_fs *fs, const char *path, bool follow, struct pvfs_stat *ret)
{
	struct pvfs_attr attr;
	int err = path_attr(fs, path, follow, &attr);

	if (!err)
		lib_attr_to_stat(&attr, ret);
	return err;
}

static int path_set(struct pvfs_fs *fs, const char *path, bool follow, struct pvfs_setattr_req *req)
{
	struct pvfs_attr attr;
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_full(fs, path, follow, &w);
	if (!err && req->valid)
		err = lib_attr_set(fs, &w.attr.fid, NULL, req, &attr);
	lib_walk_free(&w);
	return err;
}

int pvfs_stat(struct pvfs_fs *fs, const char *path, struct pvfs_stat *ret)
{
	return path_stat(fs, path, true, ret);
}

int pvfs_lstat(struct pvfs_fs *fs, const char *path, struct pvfs_stat *ret)
{
	return path_stat(fs, path, false, ret);
}

int pvfs_access(struct pvfs_fs *fs, const char *path, int mode)
{
	struct pvfs_attr attr;
	int err;

	if (mode & ~(R_OK | W_OK | X_OK))
		return -EINVAL;
	err = path_attr(fs, path, true, &attr);
	return err ?: lib_acl_may(fs, &attr, mode);
}

int pvfs_truncate(struct pvfs_fs *fs, const char *path, off_t size)
{
	struct pvfs_setattr_req req;

	return req_size(&req, size) ?: path_set(fs, path, true, &req);
}

int pvfs_chmod(struct pvfs_fs *fs, const char *path, mode_t mode)
{
	struct pvfs_setattr_req req = { .valid = PVFS_SA_MODE, .mode = mode & 07777 };

	return path_set(fs, path, true, &req);
}

int pvfs_chown(struct pvfs_fs *fs, const char *path, uid_t uid, gid_t gid)
{
	struct pvfs_setattr_req req;

	req_chown(&req, uid, gid);
	return path_set(fs, path, true, &req);
}

int pvfs_lchown(struct pvfs_fs *fs, const char *path, uid_t uid, gid_t gid)
{
	struct pvfs_setattr_req req;

	req_chown(&req, uid, gid);
	return path_set(fs, path, false, &req);
}

int pvfs_utimens(struct pvfs_fs *fs, const char *path, const struct timespec ts[2])
{
	struct pvfs_setattr_req req;

	return req_utimens(&req, ts) ?: path_set(fs, path, true, &req);
}

int pvfs_lutimens(struct pvfs_fs *fs, const char *path, const struct timespec ts[2])
{
	struct pvfs_setattr_req req;

	return req_utimens(&req, ts) ?: path_set(fs, path, false, &req);
}

/* ---------------------------------------------------------------- of an open file */

static int file_set(struct pvfs_file *f, struct pvfs_setattr_req *req)
{
	struct pvfs_attr attr;
	struct pvfs_fid fid;
	int err = lib_fs_check(f->fs);

	if (err || !req->valid)
		return err;
	fid = f->inode->fid;
	return lib_attr_set(f->fs, &fid, f->inode, req, &attr);
}

int pvfs_fstat(struct pvfs_file *f, struct pvfs_stat *ret)
{
	struct pvfs_attr attr;
	int err = lib_fs_check(f->fs) ?: lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);

	if (!err)
		lib_attr_to_stat(&attr, ret);
	return err;
}

int pvfs_ftruncate(struct pvfs_file *f, off_t size)
{
	struct pvfs_setattr_req req;

	if (!(f->rights & PVFS_CAP_WRITE))
		return -EINVAL;
	if (req_size(&req, size))
		return -EINVAL;
	req.valid |= PVFS_SA_OPENED;
	return file_set(f, &req);
}

int pvfs_fchmod(struct pvfs_file *f, mode_t mode)
{
	struct pvfs_setattr_req req = { .valid = PVFS_SA_MODE, .mode = mode & 07777 };

	return file_set(f, &req);
}

int pvfs_fchown(struct pvfs_file *f, uid_t uid, gid_t gid)
{
	struct pvfs_setattr_req req;

	req_chown(&req, uid, gid);
	return file_set(f, &req);
}

int pvfs_futimens(struct pvfs_file *f, const struct timespec ts[2])
{
	struct pvfs_setattr_req req;

	return req_utimens(&req, ts) ?: file_set(f, &req);
}

/* ---------------------------------------------------------------- layout and space */

/**
 * lib_layout_of - a caller's striping as the protocol has it, checked
 * @s: 0 in it means the default
 *
 * Return: 0 or -EINVAL.
 */
int lib_layout_of(struct pvfs_fs *fs, const struct pvfs_striping *s, struct pvfs_layout *ret)
{
	struct pvfs_layout check;

	ret->base = s->base;
	ret->pcount = s->pcount ?: min(fs->niods, 65535u);
	ret->ssize = s->ssize ?: fs->root_layout.ssize ?: PVFS_SSIZE_DEFAULT;
	ret->stuff_max = s->stuff_max == PVFS_STUFF_NONE ? 0 : s->stuff_max ?: PVFS_STUFF_KEEP;
	check = *ret;
	if (!s->stuff_max)
		check.stuff_max = 0;
	if (check.base == PVFS_BASE_ANY)
		check.base = 0;
	return pvfs_layout_valid(&check, fs->niods) ? 0 : -EINVAL;
}

static int set_layout(struct pvfs_fs *fs, struct inode *ino, struct pvfs_setlayout_req *req)
{
	struct pvfs_setlayout_rep rep;
	struct pvfs_attr attr;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	lib_fs_cred_get(fs, &cred, &req->cred);
	err = MGR_CALL(fs, SETLAYOUT, setlayout, req, &rep, buf);
	if (!ino)
		return err;
	if (!err)
		lib_inode_update(ino, &rep.attr);
	else if (err == -EIO || err == -ETIMEDOUT)
		lib_attr_get(fs, &req->fid, ino, &attr);	/* it may have been done */
	return err;
}

/**
 * lib_layout_set - SETLAYOUT
 * @fid: a directory, or a file that was never written
 * @layout: as the protocol has it, checked
 *
 * The manager learns late of what this process writes: a file that it may have written to is
 * refused here.
 *
 * Return: 0, -EEXIST (written already), -EBUSY (open elsewhere), or another -errno.
 */
int lib_layout_set(struct pvfs_fs *fs, const struct pvfs_fid *fid, const struct pvfs_layout *layout)
{
	struct pvfs_setlayout_req req = { .fid = *fid, .layout = *layout };
	struct inode *ino = lib_inode_find(fs, fid);
	bool written;
	int err;

	if (!ino)
		return set_layout(fs, NULL, &req);
	pthread_mutex_lock(&ino->relayout);
	pthread_mutex_lock(&ino->lock);
	written = ino->verifiers;
	pthread_mutex_unlock(&ino->lock);
	err = written ? -EEXIST : set_layout(fs, ino, &req);
	pthread_mutex_unlock(&ino->relayout);
	lib_inode_put(fs, ino);
	return err;
}

int pvfs_setlayout(struct pvfs_fs *fs, const char *path, const struct pvfs_striping *s)
{
	struct pvfs_layout layout;
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_layout_of(fs, s, &layout);
	if (err)
		return err;
	err = lib_walk_full(fs, path, true, &w);
	if (!err)
		err = lib_layout_set(fs, &w.attr.fid, &layout);
	lib_walk_free(&w);
	return err;
}

int pvfs_setlayout_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct pvfs_striping *s)
{
	struct pvfs_fid fid = fid_of(fh);
	struct pvfs_layout layout;
	int err = lib_fs_check(fs);

	err = err ?: lib_layout_of(fs, s, &layout);
	return err ?: lib_layout_set(fs, &fid, &layout);
}

int pvfs_getlayout(struct pvfs_fs *fs, const char *path, struct pvfs_striping *ret)
{
	struct pvfs_attr attr;
	int err = path_attr(fs, path, true, &attr);

	if (!err)
		*ret = lib_striping(&attr.layout);
	return err;
}

int pvfs_fgetlayout(struct pvfs_file *f, struct pvfs_striping *ret)
{
	struct pvfs_layout layout;
	u64 size;
	int err = lib_fs_check(f->fs);

	if (err)
		return err;
	lib_size_known(f->inode, &size, &layout);
	*ret = lib_striping(&layout);
	return 0;
}

int pvfs_statfs(struct pvfs_fs *fs, struct pvfs_fsstat *ret)
{
	struct pvfs_statfs_req req = { };
	struct pvfs_statfs_rep rep;
	u8 buf[REP_MAX];
	int err = lib_fs_check(fs) ?: MGR_CALL(fs, STATFS, statfs, &req, &rep, buf);

	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->vfs.f_bsize = rep.bsize;
	ret->vfs.f_frsize = rep.bsize;
	ret->vfs.f_blocks = rep.blocks;
	ret->vfs.f_bfree = rep.bfree;
	ret->vfs.f_bavail = rep.bavail;
	ret->vfs.f_files = rep.files;
	ret->vfs.f_ffree = rep.ffree;
	ret->vfs.f_favail = rep.ffree;
	ret->vfs.f_namemax = rep.namelen;
	ret->iods = rep.iods;
	ret->iods_up = rep.iods_up;
	return 0;
}
