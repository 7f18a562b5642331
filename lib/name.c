// SPDX-License-Identifier: LGPL-2.1
/*
 * name.c - names: walking a path, and the calls that make, remove and move names.
 *
 * A path costs one LOOKUP for each directory on the way, and the operation at its end. Where ".."
 * leads the walk knows: it remembers where it came from, and as it starts at the root that is the
 * truth.
 */
#include "lib.h"
#include <stdlib.h>
#include <sys/sysmacros.h>

/* ---------------------------------------------------------------- walking */

/**
 * lib_name_check - may this be one component of a path?
 *
 * Return: 0, -ENOENT (empty), -EINVAL (a slash in it), -ENAMETOOLONG.
 */
int lib_name_check(const char *name)
{
	size_t n = strlen(name);

	if (!n)
		return -ENOENT;
	if (n > PVFS_NAME_MAX)
		return -ENAMETOOLONG;
	return strchr(name, '/') ? -EINVAL : 0;
}

/*
 * @target: room for PVFS_SYMLINK_EAGER + 1 bytes: a symbolic link's, if it came along; else empty.
 * NULL is fine.
 */
static int lookup(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name,
		  struct pvfs_attr *ret, char *target)
{
	struct pvfs_lookup_req req = { .dir = *dir, .name = PVFS_STR(name) };
	struct pvfs_lookup_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, LOOKUP, lookup, &req, &rep, buf);
	if (err)
		return err;
	*ret = rep.attr;
	if (target) {
		memcpy(target, rep.target.p, rep.target.len);
		target[rep.target.len] = '\0';
	}
	return 0;
}

/**
 * lib_name_lookup - LOOKUP
 * @dir: a directory
 * @name: a component
 * @ret: attributes of what it names
 */
int lib_name_lookup(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name,
		    struct pvfs_attr *ret)
{
	return lookup(fs, dir, name, ret, NULL);
}

/**
 * lib_walk_lookup - what a walk leads to: w->name in its directory
 * @w: w->attr is filled, and w->target
 */
int lib_walk_lookup(struct pvfs_fs *fs, struct walk *w)
{
	int err = lookup(fs, lib_walk_dir(w), w->name, &w->attr, w->target);

	if (!err)
		w->target_of = w->attr.fid;
	return err;
}

static int push(struct walk *w, const struct pvfs_fid *fid)
{
	struct pvfs_fid *more;

	if (w->depth == w->room) {
		more = malloc(2 * w->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		memcpy(more, w->stack, w->room * sizeof(*more));
		if (w->stack != w->few)
			free(w->stack);
		w->stack = more;
		w->room *= 2;
	}
	w->stack[w->depth++] = *fid;
	return 0;
}

/*
 * Takes the first component off w->path into w->name: -ENAMETOOLONG, or 0. @ret_last: nothing but
 * slashes follows. w->name is "" when there was nothing but slashes.
 */
static int component(struct walk *w, bool *ret_last)
{
	char *p = w->path + strspn(w->path, "/"), *rest;
	size_t n = strcspn(p, "/");

	if (n > PVFS_NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(w->name, p, n);
	w->name[n] = '\0';
	rest = p + n;
	*ret_last = !rest[strspn(rest, "/")];
	w->must_dir = *rest == '/';
	memmove(w->path, rest, strlen(rest) + 1);
	return 0;
}

static ssize_t do_readlink(struct pvfs_fs *fs, const struct pvfs_fid *fid, char *out, size_t n)
{
	struct pvfs_readlink_req req = { .fid = *fid };
	struct pvfs_readlink_rep rep;
	u8 buf[PVFS_SYMLINK_MAX + 16];
	int err = MGR_CALL(fs, READLINK, readlink, &req, &rep, buf);

	if (err)
		return err;
	n = min(n, (size_t)rep.target.len);
	memcpy(out, rep.target.p, n);
	return n;
}

/* The target of the symbolic link w->attr. Return: its length, or -errno. */
static ssize_t walk_target(struct pvfs_fs *fs, struct walk *w, char *out, size_t n)
{
	size_t len = strlen(w->target);

	if (!len || len != w->attr.size ||
	    memcmp(&w->target_of, &w->attr.fid, sizeof(w->target_of)))
		return do_readlink(fs, &w->attr.fid, out, n);
	len = min(n, len);
	memcpy(out, w->target, len);
	return len;
}

/* Puts the target of the link w->attr in front of what is left to walk. */
static int splice_link(struct pvfs_fs *fs, struct walk *w)
{
	char target[PVFS_SYMLINK_MAX], *path;
	ssize_t n;

	if (++w->links > SYMLINKS_MAX)
		return -ELOOP;
	n = walk_target(fs, w, target, sizeof(target));
	if (n < 0)
		return n;
	if (!n || memchr(target, '\0', n))
		return -ENOENT;
	if (asprintf(&path, "%.*s%s", (int)n, target, w->path) < 0)
		return -ENOMEM;
	free(w->path);
	w->path = path;
	if (*path == '/')
		w->depth = 1;
	return 0;
}

/* Walks w->path from the directory on top of the stack up to its last component. */
static int walk_on(struct pvfs_fs *fs, struct walk *w)
{
	bool last;
	int err;

	w->have_attr = false;
	for (;;) {
		err = component(w, &last);
		if (err)
			return err;
		w->dot = DOT_NONE;
		if (!strcmp(w->name, ".") || !strcmp(w->name, "..")) {
			/*
			 * They cost a question all the same: the directory must be one that may be
			 * searched.
			 */
			err = lib_name_lookup(fs, lib_walk_dir(w), ".", &w->attr);
			if (err)
				return err;
			w->dot = w->name[1] ? DOT_DOT : DOT;
			if (w->dot == DOT_DOT && w->depth > 1)
				w->depth--;
			w->name[0] = '\0';
		}
		if (!*w->name) {
			if (last)
				return 0;
			continue;
		}
		if (last)
			return 0;
		err = lib_walk_lookup(fs, w);
		if (!err && S_ISLNK(w->attr.mode))
			err = splice_link(fs, w);
		else if (!err)
			err = S_ISDIR(w->attr.mode) ? push(w, &w->attr.fid) : -ENOTDIR;
		if (err)
			return err;
	}
}

/**
 * lib_walk_parent - all of a path but its last component
 * @w: where it leads; lib_walk_free() it in all cases
 *
 * Return: 0, -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EACCES, ...
 */
int lib_walk_parent(struct pvfs_fs *fs, const char *path, struct walk *w)
{
	memset(w, 0, sizeof(*w));
	w->stack = w->few;
	w->room = ARRAY_SIZE(w->few);
	if (!path || !*path)
		return -ENOENT;
	w->path = strdup(path);
	if (!w->path)
		return -ENOMEM;
	w->stack[w->depth++] = fs->root;
	return walk_on(fs, w);
}

/**
 * lib_walk_follow - the last component is the symbolic link w->attr: walk on through it
 */
int lib_walk_follow(struct pvfs_fs *fs, struct walk *w)
{
	bool must_dir = w->must_dir;
	int err;

	/* What followed the name were slashes at most, and w->path still has them. */
	err = splice_link(fs, w) ?: walk_on(fs, w);
	w->must_dir |= must_dir;
	return err;
}

/**
 * lib_walk_full - all of a path
 * @follow: a link at the end is followed too (one with a slash behind it always is)
 * @w: w->attr is of what it leads to; lib_walk_free() it in all cases
 */
int lib_walk_full(struct pvfs_fs *fs, const char *path, bool follow, struct walk *w)
{
	int err = lib_walk_parent(fs, path, w);

	while (!err && !w->have_attr) {
		if (!*w->name)
			err = lib_attr_get(fs, lib_walk_dir(w), NULL, &w->attr);
		else
			err = lib_walk_lookup(fs, w);
		if (!err && S_ISLNK(w->attr.mode) && (follow || w->must_dir)) {
			err = lib_walk_follow(fs, w);
			continue;
		}
		if (!err && w->must_dir && !S_ISDIR(w->attr.mode))
			err = -ENOTDIR;
		w->have_attr = !err;
	}
	return err;
}

void lib_walk_free(struct walk *w)
{
	if (w->stack != w->few)
		free(w->stack);
	free(w->path);
}

/* ---------------------------------------------------------------- by handle */

int pvfs_lookup_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name,
		   struct pvfs_stat *ret)
{
	char target[PVFS_TARGET_ROOM];

	return pvfs_lookup_target_fh(fs, dir, name, ret, target);
}

int pvfs_lookup_target_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name,
			  struct pvfs_stat *ret, char *target)
{
	struct pvfs_fid fid = fid_of(dir);
	struct pvfs_attr attr;
	int err = lib_fs_check(fs) ?: lib_name_check(name) ?:
		  lookup(fs, &fid, name, &attr, target);

	_Static_assert(PVFS_TARGET_ROOM == PVFS_SYMLINK_EAGER + 1, "as the protocol has it");

	if (!err)
		err = lib_attr_refresh(fs, &attr);
	if (!err)
		lib_attr_to_stat(&attr, ret);
	return err;
}

int pvfs_resolve(struct pvfs_fs *fs, const char *path, int follow, struct pvfs_fh *ret)
{
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_full(fs, path, follow, &w);
	if (!err)
		*ret = (struct pvfs_fh){ .ino = w.attr.fid.ino, .gen = w.attr.fid.gen };
	lib_walk_free(&w);
	return err;
}

static int do_mkdir(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name, mode_t mode,
		    struct pvfs_attr *ret)
{
	struct pvfs_mkdir_req req = { .dir = *dir, .name = PVFS_STR(name), .mode = mode & 07777,
				      .umask = lib_fs_umask(fs) };
	struct pvfs_mkdir_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, MKDIR, mkdir, &req, &rep, buf);
	if (!err)
		*ret = rep.attr;
	return err;
}

static int do_mknod(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name, mode_t mode,
		    dev_t dev, struct pvfs_attr *ret)
{
	struct pvfs_mknod_req req = { .dir = *dir,
				      .name = PVFS_STR(name),
				      .mode = mode & (S_IFMT | 07777),
				      .umask = lib_fs_umask(fs),
				      .rdev = (u64)gnu_dev_major(dev) << 32 | gnu_dev_minor(dev) };
	struct pvfs_mknod_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	if (!(mode & S_IFMT))
		req.mode |= S_IFREG;
	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, MKNOD, mknod, &req, &rep, buf);
	if (!err)
		*ret = rep.attr;
	return err;
}

static int do_symlink(struct pvfs_fs *fs, const char *target, const struct pvfs_fid *dir,
		      const char *name, struct pvfs_attr *ret)
{
	struct pvfs_symlink_req req = { .dir = *dir,
					.name = PVFS_STR(name),
					.target = PVFS_STR(target) };
	struct pvfs_symlink_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	if (!*target)
		return -ENOENT;
	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, SYMLINK, symlink, &req, &rep, buf);
	if (!err)
		*ret = rep.attr;
	return err;
}

static int do_link(struct pvfs_fs *fs, const struct pvfs_fid *fid, const struct pvfs_fid *dir,
		   const char *name, struct pvfs_attr *ret)
{
	struct pvfs_link_req req = { .fid = *fid, .dir = *dir, .name = PVFS_STR(name) };
	struct pvfs_link_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];
	int err;

	lib_fs_cred_get(fs, &cred, &req.cred);
	err = MGR_CALL(fs, LINK, link, &req, &rep, buf);
	if (!err)
		*ret = rep.attr;
	return err;
}

static int do_unlink(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name)
{
	struct pvfs_unlink_req req = { .dir = *dir, .name = PVFS_STR(name) };
	struct pvfs_unlink_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];

	lib_fs_cred_get(fs, &cred, &req.cred);
	return MGR_CALL(fs, UNLINK, unlink, &req, &rep, buf);
}

static int do_rmdir(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name)
{
	struct pvfs_rmdir_req req = { .dir = *dir, .name = PVFS_STR(name) };
	struct pvfs_rmdir_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];

	lib_fs_cred_get(fs, &cred, &req.cred);
	return MGR_CALL(fs, RMDIR, rmdir, &req, &rep, buf);
}

static int do_rename(struct pvfs_fs *fs, const struct pvfs_fid *sdir, const char *sname,
		     const struct pvfs_fid *ddir, const char *dname, unsigned int flags)
{
	struct pvfs_rename_req req = { .sdir = *sdir, .sname = PVFS_STR(sname), .ddir = *ddir,
				       .dname = PVFS_STR(dname), .flags = flags };
	struct pvfs_rename_rep rep;
	struct fs_cred cred;
	u8 buf[REP_MAX];

	lib_fs_cred_get(fs, &cred, &req.cred);
	return MGR_CALL(fs, RENAME, rename, &req, &rep, buf);
}

/* The part that all calls by handle that make something have in common. */
#define MAKE_FH(call) ({ \
		struct pvfs_fid fid_ = fid_of(dir); \
		struct pvfs_attr attr; \
		int err_ = lib_fs_check(fs) ?: lib_name_check(name) ?: (call); \
		if (!err_ && ret) \
			lib_attr_to_stat(&attr, ret); \
		err_; })

int pvfs_mkdir_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, mode_t mode,
		  struct pvfs_stat *ret)
{
	return MAKE_FH(do_mkdir(fs, &fid_, name, mode, &attr));
}

int pvfs_mknod_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, mode_t mode,
		  dev_t dev, struct pvfs_stat *ret)
{
	return MAKE_FH(do_mknod(fs, &fid_, name, mode, dev, &attr));
}

int pvfs_symlink_fh(struct pvfs_fs *fs, const char *target, const struct pvfs_fh *dir,
		    const char *name, struct pvfs_stat *ret)
{
	return MAKE_FH(do_symlink(fs, target, &fid_, name, &attr));
}

int pvfs_link_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct pvfs_fh *dir,
		 const char *name, struct pvfs_stat *ret)
{
	struct pvfs_fid what = fid_of(fh);

	return MAKE_FH(do_link(fs, &what, &fid_, name, &attr));
}

int pvfs_unlink_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name)
{
	struct pvfs_fid fid = fid_of(dir);

	return lib_fs_check(fs) ?: lib_name_check(name) ?: do_unlink(fs, &fid, name);
}

int pvfs_rmdir_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name)
{
	struct pvfs_fid fid = fid_of(dir);

	return lib_fs_check(fs) ?: lib_name_check(name) ?: do_rmdir(fs, &fid, name);
}

int pvfs_rename_fh(struct pvfs_fs *fs, const struct pvfs_fh *sdir, const char *sname,
		   const struct pvfs_fh *ddir, const char *dname, unsigned int flags)
{
	struct pvfs_fid s = fid_of(sdir), d = fid_of(ddir);

	return lib_fs_check(fs) ?: lib_name_check(sname) ?: lib_name_check(dname) ?:
	       do_rename(fs, &s, sname, &d, dname, flags);
}

ssize_t pvfs_readlink_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, char *buf, size_t n)
{
	struct pvfs_fid fid = fid_of(fh);
	int err = lib_fs_check(fs);

	return err ? err : do_readlink(fs, &fid, buf, n);
}

/* ---------------------------------------------------------------- by path */

/*
 * The directory and the name for something new. @dir_ok: a slash behind the name is fine. A name
 * that can't be new ("/", "a/..") is -EEXIST.
 */
static int walk_new(struct pvfs_fs *fs, const char *path, bool dir_ok, struct walk *w)
{
	int err = lib_walk_parent(fs, path, w);

	if (!err && !*w->name)
		err = -EEXIST;
	if (!err && w->must_dir && !dir_ok)
		err = lib_walk_lookup(fs, w) ?: -EEXIST;
	return err;
}

int pvfs_mkdir(struct pvfs_fs *fs, const char *path, mode_t mode)
{
	struct pvfs_attr attr;
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = walk_new(fs, path, true, &w) ?: do_mkdir(fs, lib_walk_dir(&w), w.name, mode, &attr);
	lib_walk_free(&w);
	return err;
}

int pvfs_mknod(struct pvfs_fs *fs, const char *path, mode_t mode, dev_t dev)
{
	struct pvfs_attr attr;
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = walk_new(fs, path, false, &w) ?:
		      do_mknod(fs, lib_walk_dir(&w), w.name, mode, dev, &attr);
	lib_walk_free(&w);
	return err;
}

int pvfs_symlink(struct pvfs_fs *fs, const char *target, const char *path)
{
	struct pvfs_attr attr;
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = walk_new(fs, path, false, &w) ?:
					      do_symlink(fs, target, lib_walk_dir(&w), w.name, &attr);
	lib_walk_free(&w);
	return err;
}

int pvfs_link(struct pvfs_fs *fs, const char *from, const char *to)
{
	struct pvfs_attr attr;
	struct walk w, v;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	memset(&v, 0, sizeof(v));
	err = lib_walk_full(fs, from, false, &w) ?: walk_new(fs, to, false, &v) ?:
	      do_link(fs, &w.attr.fid, lib_walk_dir(&v), v.name, &attr);
	lib_walk_free(&w);
	lib_walk_free(&v);
	return err;
}

int pvfs_unlink(struct pvfs_fs *fs, const char *path)
{
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_parent(fs, path, &w);
	if (!err && !*w.name)
		err = -EISDIR;
	if (!err && w.must_dir)		/* whatever it is, it is not to be unlinked by this name */
		err = lib_walk_lookup(fs, &w) ?: (S_ISDIR(w.attr.mode) ? -EISDIR : -ENOTDIR);
	if (!err)
		err = do_unlink(fs, lib_walk_dir(&w), w.name);
	lib_walk_free(&w);
	return err;
}

int pvfs_rmdir(struct pvfs_fs *fs, const char *path)
{
	struct walk w;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	err = lib_walk_parent(fs, path, &w);
	if (!err && !*w.name)
		err = w.dot == DOT_DOT ? -ENOTEMPTY : w.dot == DOT ? -EINVAL : -EBUSY;
	if (!err)
		err = do_rmdir(fs, lib_walk_dir(&w), w.name);
	lib_walk_free(&w);
	return err;
}

int pvfs_rename(struct pvfs_fs *fs, const char *from, const char *to, unsigned int flags)
{
	struct walk w, v;
	int err = lib_fs_check(fs);

	if (err)
		return err;
	memset(&v, 0, sizeof(v));
	err = lib_walk_parent(fs, from, &w) ?: lib_walk_parent(fs, to, &v);
	if (!err && (!*w.name || !*v.name))
		err = -EBUSY;
	if (!err && (w.must_dir || v.must_dir)) {
		err = lib_walk_lookup(fs, &w);
		if (!err && !S_ISDIR(w.attr.mode))
			err = -ENOTDIR;
		if (!err && v.must_dir && (flags & PVFS_RN_EXCHANGE)) {
			err = lib_walk_lookup(fs, &v);
			if (!err && !S_ISDIR(v.attr.mode))
				err = -ENOTDIR;
		}
	}
	if (!err)
		err = do_rename(fs, lib_walk_dir(&w), w.name, lib_walk_dir(&v), v.name, flags);
	lib_walk_free(&w);
	lib_walk_free(&v);
	return err;
}

ssize_t pvfs_readlink(struct pvfs_fs *fs, const char *path, char *buf, size_t n)
{
	struct walk w;
	ssize_t rc = lib_fs_check(fs);

	if (rc)
		return rc;
	rc = lib_walk_full(fs, path, false, &w);
	if (!rc)
		rc = S_ISLNK(w.attr.mode) ? walk_target(fs, &w, buf, n) : -EINVAL;
	lib_walk_free(&w);
	return rc;
}
