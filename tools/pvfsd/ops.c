// SPDX-License-Identifier: GPL-2.0
/*
 * ops.c - what the kernel asks, and what is answered. Any thread of libfuse.
 */
#include "pvfsd.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 1024

/* ---- who asks, and what is answered ---- */

void as(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	gid_t groups[GROUPS_MAX];
	int n = ctx->uid ? fuse_req_getgroups(req, GROUPS_MAX, groups) : 0;

	if (pvfs_setcred_thread(fs, ctx->uid, ctx->gid, groups, n < 0 ? 0 : n > GROUPS_MAX ? GROUPS_MAX : n,
				ctx->umask))
		pvfs_setcred_thread(fs, ctx->uid, ctx->gid, NULL, 0, ctx->umask);
	ask_begin(req, ctx->pid);
}

void reply(fuse_req_t req, int err)
{
	if (ask_end())
		fuse_reply_err(req, -err);
}

static void reply_buf(fuse_req_t req, const char *buf, size_t n)
{
	if (ask_end())
		fuse_reply_buf(req, buf, n);
}

/* Return: 0, the kernel has taken it, and will tell when it is closed. */
static int reply_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	return ask_end() ? fuse_reply_open(req, fi) : -ENOENT;
}

/* Of a name: there is nothing in a directory that is gone. */
static void reply_name(fuse_req_t req, int err)
{
	reply(req, err == -ESTALE ? -ENOENT : err);
}

static void reply_size(fuse_req_t req, ssize_t n)
{
	if (n < 0)
		reply(req, n);
	else if (ask_end())
		fuse_reply_write(req, n);
}

/* A name, with what it names. */
static int fill_entry(struct fuse_entry_param *e, const struct pvfs_stat *st, const char *target)
{
	*e = (struct fuse_entry_param){ .ino = st->fh.ino == root.ino ? FUSE_ROOT_ID : st->fh.ino,
					.generation = st->fh.gen, .attr = st->st };
	return e->ino == FUSE_ROOT_ID ? 0 : node_remember(st, target);
}

/* @err: of the call that found it */
static void reply_target(fuse_req_t req, int err, const struct pvfs_stat *st, const char *target)
{
	struct fuse_entry_param e;

	err = err ? err : fill_entry(&e, st, target);
	if (err)
		reply_name(req, err);
	else if (!ask_end() || fuse_reply_entry(req, &e))
		node_forget(e.ino, 1);
}

static void reply_entry(fuse_req_t req, int err, const struct pvfs_stat *st)
{
	reply_target(req, err, st, NULL);
}

static void reply_attr(fuse_req_t req, int err, const struct pvfs_stat *st)
{
	if (err)
		reply(req, err);
	else if (ask_end())
		fuse_reply_attr(req, &st->st, 0);
}

/* ---- names ---- */

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = node_fh(parent);
	char target[PVFS_TARGET_ROOM];
	struct pvfs_stat st;

	as(req);
	reply_target(req, pvfs_lookup_target_fh(fs, &dir, name, &st, target), &st, target);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	node_forget(ino, nlookup);
	fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *f)
{
	size_t i;

	for (i = 0; i < count; i++)
		node_forget(f[i].ino, f[i].nlookup);
	fuse_reply_none(req);
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct pvfs_fh dir = node_fh(parent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_mknod_fh(fs, &dir, name, mode, rdev, &st), &st);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct pvfs_fh dir = node_fh(parent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_mkdir_fh(fs, &dir, name, mode, &st), &st);
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = node_fh(parent);
	struct pvfs_stat st;

	as(req);
	reply_target(req, pvfs_symlink_fh(fs, target, &dir, name, &st), &st,
		     strlen(target) < PVFS_TARGET_ROOM ? target : NULL);
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *name)
{
	struct pvfs_fh fh = node_fh(ino), dir = node_fh(newparent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_link_fh(fs, &fh, &dir, name, &st), &st);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = node_fh(parent);

	as(req);
	reply_name(req, pvfs_unlink_fh(fs, &dir, name));
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = node_fh(parent);

	as(req);
	reply_name(req, pvfs_rmdir_fh(fs, &dir, name));
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		      const char *newname, unsigned int flags)
{
	struct pvfs_fh from = node_fh(parent), to = node_fh(newparent);

	as(req);
	reply_name(req, pvfs_rename_fh(fs, &from, name, &to, newname, flags));
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct pvfs_fh fh = node_fh(ino);
	char target[4097];
	ssize_t n;

	as(req);
	/* The link may be gone by now, and its name be another's all the time. */
	if (node_target(ino, target)) {
		if (ask_end())
			fuse_reply_readlink(req, target);
		return;
	}
	n = pvfs_readlink_fh(fs, &fh, target, sizeof(target) - 1);
	if (n < 0) {
		reply(req, n);
		return;
	}
	target[n] = '\0';
	if (ask_end())
		fuse_reply_readlink(req, target);
}

/* ---- attributes ---- */

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct pvfs_fh fh = node_fh(ino);
	struct pvfs_stat st;
	int err;

	as(req);
	err = pvfs_stat_fh(fs, &fh, &st);
	if (err == -ESTALE && node_gone_directory(ino, &st.st))
		err = 0;
	reply_attr(req, err, &st);
}

static void set_times(int to_set, const struct stat *attr, struct timespec ts[2])
{
	ts[0].tv_nsec = to_set & FUSE_SET_ATTR_ATIME_NOW ? UTIME_NOW : UTIME_OMIT;
	ts[1].tv_nsec = to_set & FUSE_SET_ATTR_MTIME_NOW ? UTIME_NOW : UTIME_OMIT;
	if ((to_set & FUSE_SET_ATTR_ATIME) && !(to_set & FUSE_SET_ATTR_ATIME_NOW))
		ts[0] = attr->st_atim;
	if ((to_set & FUSE_SET_ATTR_MTIME) && !(to_set & FUSE_SET_ATTR_MTIME_NOW))
		ts[1] = attr->st_mtim;
}

/*
 * Before a write or the like by one who is not the owner the kernel takes set-id bits away, for the
 * same user: that is no chmod of theirs. The write itself does it, in libpvfs and the manager.
 */
static int only_drops_set_id(const struct pvfs_fh *fh, mode_t mode)
{
	struct pvfs_stat st;

	return !pvfs_stat_fh(fs, fh, &st) && !(mode & ~st.st.st_mode & 07777) &&
	       !((mode ^ st.st.st_mode) & 07777 & ~(S_ISUID | S_ISGID));
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
			  FUSE_SET_ATTR_MTIME_NOW;
	struct pvfs_fh fh = node_fh(ino);
	struct timespec ts[2] = { 0 };
	struct pvfs_stat st;
	int err = 0;

	as(req);
	if (to_set & FUSE_SET_ATTR_MODE)
		err = pvfs_chmod_fh(fs, &fh, attr->st_mode, &st);
	if (err == -EPERM && only_drops_set_id(&fh, attr->st_mode))
		err = 0;
	if (!err && (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		err = pvfs_chown_fh(fs, &fh, to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
				    to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1, &st);
	if (!err && (to_set & FUSE_SET_ATTR_SIZE))
		err = fi ? pvfs_ftruncate(file_of(fi), attr->st_size) :
			   pvfs_truncate_fh(fs, &fh, attr->st_size, &st);
	if (!err && (to_set & times)) {
		set_times(to_set, attr, ts);
		err = pvfs_utimens_fh(fs, &fh, ts, &st);
	}
	err = err ? err : pvfs_stat_fh(fs, &fh, &st);
	reply_attr(req, err, &st);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct pvfs_fsstat st;
	int err;

	as(req);
	err = pvfs_statfs(fs, &st);
	if (err)
		reply(req, err);
	else if (ask_end())
		fuse_reply_statfs(req, &st.vfs);
}

static void do_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
			int flags)
{
	struct pvfs_fh fh = node_fh(ino);

	as(req);
	if (!strcmp(name, LAYOUT_XATTR))
		reply(req, layout_set(&fh, value, size, flags));
	else
		reply(req, pvfs_setxattr_fh(fs, &fh, name, value, size, flags));
}

static void reply_list(fuse_req_t req, ssize_t n, size_t size, const char *buf)
{
	if (n < 0)
		reply(req, n);
	else if (size)
		reply_buf(req, buf, n);
	else if (ask_end())
		fuse_reply_xattr(req, n);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct pvfs_fh fh = node_fh(ino);
	char *buf = malloc(size ? size : 1);

	as(req);
	if (buf && !strcmp(name, LAYOUT_XATTR))
		reply_list(req, layout_get(&fh, buf, size), size, buf);
	else
		reply_list(req, buf ? pvfs_getxattr_fh(fs, &fh, name, buf, size) : -ENOMEM, size, buf);
	free(buf);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct pvfs_fh fh = node_fh(ino);
	char *buf = malloc(size ? size : 1);

	as(req);
	reply_list(req, buf ? pvfs_listxattr_fh(fs, &fh, buf, size) : -ENOMEM, size, buf);
	free(buf);
}

static void do_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct pvfs_fh fh = node_fh(ino);

	as(req);
	reply(req, strcmp(name, LAYOUT_XATTR) ? pvfs_removexattr_fh(fs, &fh, name) : -EPERM);
}

/* ---- files ---- */

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct pvfs_fh fh = node_fh(ino);
	struct pvfs_file *f;
	int err;

	as(req);
	/* Where an append goes is libpvfs' affair: nobody else knows the end. */
	err = pvfs_open_fh(fs, &fh, fi->flags & ~(O_CREAT | O_EXCL), &f);
	err = err ? err : open_begin(fi, f, ino);
	if (err) {
		reply(req, err);
		return;
	}
	if (reply_open(req, fi))
		open_end(fi);
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct pvfs_fh dir = node_fh(parent);
	struct fuse_entry_param e;
	struct pvfs_file *f;
	struct pvfs_stat st;
	int err;

	as(req);
	err = pvfs_create_fh(fs, &dir, name, fi->flags | O_CREAT, mode, NULL, &f, &st);
	err = err ? err : open_begin(fi, f, st.fh.ino);
	if (err) {
		reply_name(req, err);
		return;
	}
	err = fill_entry(&e, &st, NULL);
	if (err) {
		open_end(fi);
		reply_name(req, err);
	} else if (!ask_end() || fuse_reply_create(req, &e, fi)) {
		node_forget(e.ino, 1);
		open_end(fi);
	}
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	char *buf = malloc(size ? size : 1);
	ssize_t n;

	as(req);
	n = buf ? pvfs_pread(file_of(fi), buf, size, off) : -ENOMEM;
	if (n < 0)
		reply(req, n);
	else
		reply_buf(req, buf, n);
	free(buf);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	as(req);
	reply_size(req, pvfs_pwrite(file_of(fi), buf, size, off));
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	as(req);
	reply(req, open_end(fi));
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	as(req);
	reply(req, datasync ? pvfs_fdatasync(file_of(fi)) : pvfs_fsync(file_of(fi)));
}

static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	as(req);
	reply(req, pvfs_fallocate(file_of(fi), mode, off, len));
}

static void do_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	off_t at;

	as(req);
	at = pvfs_lseek(file_of(fi), off, whence);
	if (at < 0)
		reply(req, at);
	else if (ask_end())
		fuse_reply_lseek(req, at);
}

static void do_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			       fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out, size_t len,
			       int flags)
{
	as(req);
	reply_size(req, pvfs_copy_file_range(file_of(fi_in), off_in, file_of(fi_out), off_out, len, flags));
}

/* ---- directories ---- */

/* An open directory. */
struct listing {
	struct held held;
	struct pvfs_dir *d;
	off_t at;			/* behind what the kernel was told last */
	struct pvfs_dirent next;	/* it comes there: there was no room for it */
	int have_next;
};

static int listing_free(struct held *h)
{
	struct listing *l = (struct listing *)h;	/* its first member */

	pvfs_closedir(l->d);
	free(l);
	return 0;
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct pvfs_fh fh = node_fh(ino);
	int err;

	as(req);
	err = l ? pvfs_opendir_fh(fs, &fh, &l->d) : -ENOMEM;
	if (err) {
		free(l);
		reply(req, err);
		return;
	}
	held_init(&l->held, listing_free);
	fi->fh = (uintptr_t)l;
	if (reply_open(req, fi))
		held_put(&l->held);
}

/*
 * The entry after @l->at. One whose attributes can't be had is listed all the same: who looks at it is told, and a
 * copy of the directory must not go without it. Return: 1, 0 at the end, or -errno.
 */
static int look(struct listing *l)
{
	int rc = l->have_next ? 1 : pvfs_readdir(l->d, &l->next);

	if (rc < 0 && rc != -EINTR && l->next.name[0]) {
		pvfs_seekdir(l->d, l->next.off);
		rc = 1;
	}
	l->have_next = rc > 0;
	return rc;
}

/*
 * @plus: with what the names name, which the kernel then knows. One open directory is read by one
 * request at a time.
 */
static void list(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, int plus)
{
	struct listing *l = (struct listing *)(uintptr_t)fi->fh;
	const struct pvfs_dirent *de = &l->next;
	struct fuse_entry_param e;
	char *buf = malloc(size);
	size_t used = 0, n;
	int rc = 0;

	as(req);
	ask_hold(&l->held);
	if (!buf) {
		reply(req, -ENOMEM);
		return;
	}
	if (off != l->at) {
		pvfs_seekdir(l->d, off);
		l->at = off;
		l->have_next = 0;
	}
	while ((rc = look(l)) > 0) {
		int dots = !strcmp(de->name, ".") || !strcmp(de->name, "..");

		e = (struct fuse_entry_param){ .attr = de->stat.st };
		/* How much would it take? The kernel is told of it only when there is room. */
		n = plus ? fuse_add_direntry_plus(req, NULL, 0, de->name, NULL, 0) :
			   fuse_add_direntry(req, NULL, 0, de->name, NULL, 0);
		if (used + n > size)
			break;
		/* A size that is not known must not be believed: the kernel asks when it looks. */
		if (plus && !dots && de->stat.st.st_mode && !(de->stat.flags & PVFS_ST_SIZE_UNKNOWN) && fill_entry(&e, &de->stat, NULL))
			e = (struct fuse_entry_param){ .attr = de->stat.st };
		used += plus ? fuse_add_direntry_plus(req, buf + used, size - used, de->name, &e, de->off) :
			       fuse_add_direntry(req, buf + used, size - used, de->name, &e.attr, de->off);
		l->at = de->off;
		l->have_next = 0;
	}
	if (rc < 0 && !used)
		reply(req, rc);
	else
		reply_buf(req, buf, used);
	free(buf);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	list(req, size, off, fi, 0);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	list(req, size, off, fi, 1);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	held_put(&((struct listing *)(uintptr_t)fi->fh)->held);
	reply(req, 0);
}

static void do_init(void *unused, struct fuse_conn_info *conn)
{
	conn->want |= conn->capable & (FUSE_CAP_DONT_MASK | FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_PARALLEL_DIROPS |
				       FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_READDIRPLUS |
				       FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_POSIX_ACL | FUSE_CAP_EXPORT_SUPPORT);
	conn->want &= ~(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA);
	conn->max_write = 1 << 20;
	conn->max_background = 64;
}

/*
 * What is not here the kernel asks for once: ->fsyncdir has nothing to do, since a change of a name that
 * was answered is kept by the manager; ->access is default_permissions'.
 */
const struct fuse_lowlevel_ops ops = {
	.init = do_init, .lookup = do_lookup, .forget = do_forget, .forget_multi = do_forget_multi,
	.getattr = do_getattr, .setattr = do_setattr, .readlink = do_readlink, .mknod = do_mknod,
	.mkdir = do_mkdir, .unlink = do_unlink, .rmdir = do_rmdir, .symlink = do_symlink,
	.rename = do_rename, .link = do_link, .open = do_open, .read = do_read, .write = do_write,
	.release = do_release, .fsync = do_fsync, .opendir = do_opendir,
	.readdir = do_readdir, .readdirplus = do_readdirplus, .releasedir = do_releasedir,
	.statfs = do_statfs, .setxattr = do_setxattr, .getxattr = do_getxattr,
	.listxattr = do_listxattr, .removexattr = do_removexattr,
	.create = do_create, .fallocate = do_fallocate, .lseek = do_lseek,
	.copy_file_range = do_copy_file_range, .flock = do_flock, .setlk = do_setlk, .getlk = do_getlk,
	.flush = do_flush,
};
