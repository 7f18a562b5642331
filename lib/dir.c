// SPDX-License-Identifier: LGPL-2.1
/*
 * dir.c - reading directories, attributes included.
 *
 * "." and ".." are made here, at positions 1 and 2; the mgr's entries have positions from 3 on,
 * which stay good while the entry exists. A position says "after this entry".
 */
#include "lib.h"
#include <stdlib.h>

#define POS_DOT		1
#define POS_DOTDOT	2

struct pvfs_dir {
	struct pvfs_fs *fs;
	struct pvfs_fid fid, parent;
	pthread_mutex_t lock;		/* protects what follows */
	bool have_parent;
	u64 pos;			/* after which entry the reader is */
	struct pvfs_wire buf;		/* entries not yet given out */
	u32 left;			/* how many */
	bool eof;			/* and none behind them */
	bool atime_due;			/* if it is read, that is to be kept */
	struct pvfs_ts read_at;		/* first; sec 0: not yet */
	u8 data[PVFS_READDIR_MAX];
};

static int opendir_attr(struct pvfs_fs *fs, const struct pvfs_attr *attr, struct pvfs_dir **ret)
{
	struct pvfs_dir *d;
	struct pvfs_ts now;
	int err;

	if (!S_ISDIR(attr->mode))
		return -ENOTDIR;
	err = lib_acl_may(fs, attr, R_OK);
	if (err)
		return err;
	d = malloc(sizeof(*d));
	if (!d)
		return -ENOMEM;
	memset(d, 0, offsetof(struct pvfs_dir, data));
	d->fs = fs;
	d->fid = attr->fid;
	d->atime_due = lib_atime_due(&attr->atime, &attr->mtime, &attr->ctime, &now);
	pthread_mutex_init(&d->lock, NULL);
	atomic_fetch_add(&fs->ndirs, 1);
	*ret = d;
	return 0;
}

int pvfs_opendir(struct pvfs_fs *fs, const char *path, struct pvfs_dir **ret)
{
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_full(fs, path, true, &w) ?: opendir_attr(fs, &w.attr, ret);
	lib_walk_free(&w);
	return err;
}

int pvfs_opendir_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, struct pvfs_dir **ret)
{
	struct pvfs_fid fid = fid_of(fh);
	struct pvfs_attr attr;

	return lib_fs_check(fs) ?: lib_attr_get(fs, &fid, NULL, &attr) ?:
	       opendir_attr(fs, &attr, ret);
}

/* It was read; whether the manager could keep that is nobody's business. */
static void accessed(struct pvfs_dir *d)
{
	struct pvfs_getattr_req req = { .fid = d->fid };
	struct pvfs_getattr_rep rep;
	u8 buf[REP_MAX];

	if (!d->read_at.sec || !d->atime_due)
		return;
	req.report.atime = d->read_at;
	MGR_CALL(d->fs, GETATTR, getattr, &req, &rep, buf);
}

int pvfs_closedir(struct pvfs_dir *d)
{
	int err = lib_fs_check(d->fs);

	if (err)
		return err;
	accessed(d);
	atomic_fetch_sub(&d->fs->ndirs, 1);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return 0;
}

/* The next bufferful, from d->pos on. */
static int fetch(struct pvfs_dir *d)
{
	struct pvfs_readdir_req req = { .dir = d->fid, .cookie = d->pos > POS_DOTDOT ? d->pos : 0,
					.bytes = sizeof(d->data), .flags = PVFS_RD_ATTRS };
	struct iovec in = { .iov_base = d->data, .iov_len = sizeof(d->data) };
	struct pvfs_readdir_rep rep;
	u8 buf[REP_MAX];
	u32 len = 0;
	int err;

	if (!d->read_at.sec)
		lib_now(&d->read_at);
	err = MGR_CALL_IN(d->fs, READDIR, readdir, &req, &rep, buf, &in, &len);
	if (err)
		return err;
	if (!rep.count && !rep.eof)
		return -EBADMSG;
	pvfs_wire_init(&d->buf, d->data, len);
	d->left = rep.count;
	d->eof = rep.eof;
	d->parent = rep.parent;
	d->have_parent = true;
	return 0;
}

static void fill_dot(struct pvfs_dirent *ret, const char *name, const struct pvfs_fid *fid, u64 pos)
{
	memset(&ret->stat, 0, sizeof(ret->stat));
	strcpy(ret->name, name);
	ret->off = pos;
	ret->stat.st.st_ino = fid->ino;
	ret->stat.st.st_mode = S_IFDIR;
	ret->stat.fh = (struct pvfs_fh){ .ino = fid->ino, .gen = fid->gen };
}

/* What the mgr did not know of an entry, or only we do. Return: 0 or -errno. */
static int complete(struct pvfs_dir *d, struct pvfs_attr *attr)
{
	int err;

	if (!attr->version) {		/* another client's draft: who asks for it by itself is told */
		err = lib_attr_get(d->fs, &attr->fid, NULL, attr);
		if (err && err != -ESTALE)
			return err;
	}
	/*
	 * The mgr asked the iods about what others are writing; what we wrote ourselves only we
	 * know.
	 */
	err = lib_attr_refresh(d->fs, attr);
	return err == -ESTALE || err == -ENOENT ? 0 : err;
}

/* Return: 1 an entry, 0 the end, or -errno; d->lock is held. */
static int next(struct pvfs_dir *d, struct pvfs_dirent *ret)
{
	struct pvfs_wire at;
	struct pvfs_dent e;
	int err;

	ret->name[0] = '\0';
	if (d->pos < POS_DOT) {
		fill_dot(ret, ".", &d->fid, d->pos = POS_DOT);
		return 1;
	}
	if (!d->left && !(d->eof && d->have_parent)) {
		err = fetch(d);
		if (err == -ESTALE) {		/* removed: it has none */
			d->pos = max(d->pos, (u64)POS_DOTDOT);
			return 0;
		}
		if (err)
			return err;
	}
	if (d->pos < POS_DOTDOT) {
		fill_dot(ret, "..", &d->parent, d->pos = POS_DOTDOT);
		return 1;
	}
	if (!d->left)
		return 0;
	at = d->buf;
	pvfs_get_dent(&d->buf, &e);
	if (d->buf.err || !e.name.len || memchr(e.name.p, '/', e.name.len) ||
	    memchr(e.name.p, '\0', e.name.len) || e.cookie <= POS_DOTDOT || e.cookie > INT64_MAX)
		return -EBADMSG;
	memcpy(ret->name, e.name.p, e.name.len);
	ret->name[e.name.len] = '\0';
	ret->off = e.cookie;
	err = complete(d, &e.attr);
	if (err) {		/* the next call tries again */
		memset(&ret->stat, 0, sizeof(ret->stat));
		ret->stat.st.st_ino = e.attr.fid.ino;
		ret->stat.fh = (struct pvfs_fh){ .ino = e.attr.fid.ino, .gen = e.attr.fid.gen };
		d->buf = at;
		return err;
	}
	d->left--;
	d->pos = e.cookie;
	lib_attr_to_stat(&e.attr, &ret->stat);
	return 1;
}

int pvfs_readdir(struct pvfs_dir *d, struct pvfs_dirent *ret)
{
	int rc = lib_fs_check(d->fs);

	if (rc)
		return rc;
	pthread_mutex_lock(&d->lock);
	rc = next(d, ret);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void pvfs_seekdir(struct pvfs_dir *d, int64_t off)
{
	if (lib_fs_check(d->fs) || off < 0)
		return;
	pthread_mutex_lock(&d->lock);
	d->pos = off;
	d->left = 0;
	d->eof = false;
	pthread_mutex_unlock(&d->lock);
}

int64_t pvfs_telldir(struct pvfs_dir *d)
{
	int64_t pos;

	if (lib_fs_check(d->fs))
		return -EBADF;
	pthread_mutex_lock(&d->lock);
	pos = d->pos;
	pthread_mutex_unlock(&d->lock);
	return pos;
}
