// SPDX-License-Identifier: GPL-2.0-only
/*
 * names_attrs.c - the operations of nameops that change no name: attributes, content, open files,
 * looking. See names_ops.c.
 */
#include "nameops.h"
#include <sys/xattr.h>

bool op_chmod(int side)
{
	char path[32];
	struct walk w;
	mode_t mode;
	int err;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped)
		return false;
	mode = draw_mode(err || S_ISDIR(w.node->mode));
	NOTE(side, "chmod %s %#o", path, mode);
	if (outcome(fchmodat(names.root_fd[side], path, mode, 0), err))
		w.node->mode = (w.node->mode & S_IFMT) | mode;
	check_path(path);
	return true;
}

bool op_chown(int side)
{
	static const int ids[] = { 0, 1000, 4321, -1 };
	int uid = ids[rnd_below(&name_rnd, 4)], gid = ids[rnd_below(&name_rnd, 4)], err;
	bool follow = rnd_one_in(&name_rnd, 2);
	char path[32];
	struct walk w;

	draw_path(path);
	err = walk_old(path, follow, &w);
	if (w.escaped)
		return false;
	NOTE(side, "%schown %s %d:%d", follow ? "" : "l", path, uid, gid);
	if (outcome(fchownat(names.root_fd[side], path, uid, gid, follow ? 0 : AT_SYMLINK_NOFOLLOW),
		    err)) {
		if (uid >= 0)
			w.node->uid = uid;
		if (gid >= 0)
			w.node->gid = gid;
		if (!S_ISDIR(w.node->mode)) {
			w.node->mode &= ~S_ISUID;
			if (w.node->mode & S_IXGRP)
				w.node->mode &= ~S_ISGID;
		}
	}
	check_path(path);
	return true;
}

bool op_utimens(int side)
{
	bool follow = rnd_one_in(&name_rnd, 2);
	static const time_t seconds[] = { 1000000000, 1100000000, 0, -1000000, 4500000000 };
	struct timespec t[2] = { { .tv_sec = 1050000000,
				   .tv_nsec = rnd_below(&name_rnd, 1000000000) },
				 { .tv_sec = seconds[rnd_below(&name_rnd, 5)],
				   .tv_nsec = rnd_below(&name_rnd, 1000000000) } };
	int what = rnd_below(&name_rnd, 6), err, i;
	struct stat st;
	char path[32];
	struct walk w;

	if (what == 0)
		t[1].tv_nsec = UTIME_NOW;
	if (what == 1)
		t[1].tv_nsec = UTIME_OMIT;
	draw_path(path);
	err = walk_old(path, follow, &w);
	if (w.escaped)
		return false;
	NOTE(side, "utimens %s%s mtime %lld.%09ld", path, follow ? "" : " (no follow)",
	     (long long)t[1].tv_sec,
	     t[1].tv_nsec);
	if (!outcome(utimensat(names.root_fd[side], path, t, follow ? 0 : AT_SYMLINK_NOFOLLOW),
		     err)) {
		check_path(path);
		return true;
	}
	if (what == 0) {
		w.node->mtime_state = MTIME_RECENT;
	} else if (what > 1) {
		w.node->mtime_state = MTIME_EXACT;
		w.node->mtime = t[1];
	}
	/* Reading may change the atime, so only now. */
	for (i = 0; i < names.sides; i++) {
		if (fstatat(names.root_fd[i], path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
			rnd_fail("then stat, side %d: %s", i, strerror(errno));
		check_stat(w.node, &st, "then stat");
		/* A link that the path goes through is read by the walk itself. */
		if (S_ISLNK(w.node->mode) && w.links)
			continue;
		if (st.st_atim.tv_sec != t[0].tv_sec || st.st_atim.tv_nsec != t[0].tv_nsec)
			rnd_fail("then stat, side %d: the atime is %lld.%09ld, should be %lld.%09ld", i,
				 (long long)st.st_atim.tv_sec, st.st_atim.tv_nsec,
					 (long long)t[0].tv_sec, t[0].tv_nsec);
	}
	return true;
}

static bool xattr_have(int which)
{
	return strncmp(name_xattrs[which], "user.", 5) ? names.have_trusted_xattr :
		names.have_user_xattr;
}

/* Attributes of users are for files and directories. */
static bool xattr_misplaced(int which, const struct node *n)
{
	return !strncmp(name_xattrs[which], "user.", 5) && !S_ISREG(n->mode) && !S_ISDIR(n->mode);
}

bool op_setxattr(int side)
{
	static const int variants[] = { 0, 0, XATTR_CREATE, XATTR_REPLACE };
	int which = rnd_below(&name_rnd, XATTRS), flags = variants[rnd_below(&name_rnd, 4)], err;
	int len = rnd_below(&name_rnd, rnd_one_in(&name_rnd, 4) ? XATTR_MAX + 1 : 60);
	unsigned char val[XATTR_MAX + 8];
	bool follow = rnd_one_in(&name_rnd, 2);
	char path[32];
	struct walk w;
	struct xattr_val *x;

	draw_path(path);
	err = walk_old(path, follow, &w);
	if (w.escaped || !xattr_have(which))
		return false;
	x = err ? NULL : &w.node->xattr[which];
	if (!err && xattr_misplaced(which, w.node))
		err = EPERM;
	else if (!err && flags == XATTR_CREATE && x->there)
		err = EEXIST;
	else if (!err && flags == XATTR_REPLACE && !x->there)
		err = ENODATA;
	rnd_fill(val, len, 0, names.op);
	NOTE(side, "%ssetxattr %s %s, %d bytes, flags %d", follow ? "" : "l", path,
	     name_xattrs[which], len, flags);
	if (outcome((follow ? setxattr : lsetxattr)(proc_path(side, path), name_xattrs[which], val,
						    len, flags), err)) {
		x->there = true;
		x->len = len;
		memcpy(x->val, val, len);
	}
	check_path(path);
	return true;
}

bool op_removexattr(int side)
{
	int which = rnd_below(&name_rnd, XATTRS), err;
	char path[32];
	struct walk w;

	draw_path(path);
	err = walk_old(path, false, &w);
	if (w.escaped || !xattr_have(which))
		return false;
	if (!err && xattr_misplaced(which, w.node))
		err = EPERM;
	else if (!err && !w.node->xattr[which].there)
		err = ENODATA;
	NOTE(side, "lremovexattr %s %s", path, name_xattrs[which]);
	if (outcome(lremovexattr(proc_path(side, path), name_xattrs[which]), err))
		w.node->xattr[which].there = false;
	check_path(path);
	return true;
}

bool op_getxattr(int side)
{
	int which = rnd_below(&name_rnd, XATTRS), err, size;
	unsigned char val[XATTR_MAX + 1];
	char path[32];
	struct walk w;
	ssize_t r;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped || !xattr_have(which))
		return false;
	if (!err && !w.node->xattr[which].there)
		err = ENODATA;
	size = XATTR_MAX;
	if (!err && rnd_one_in(&name_rnd, 2))
		size = rnd_below(&name_rnd, w.node->xattr[which].len + 2);
	if (!err && size && size < w.node->xattr[which].len)
		err = ERANGE;
	NOTE(side, "getxattr %s %s to %d bytes", path, name_xattrs[which], size);
	r = getxattr(proc_path(side, path), name_xattrs[which], val, size);
	if (outcome(r, err)) {
		if (r != w.node->xattr[which].len ||
		    (size && memcmp(val, w.node->xattr[which].val, r)))
			rnd_fail("gives %zd bytes, not the right %d", r, w.node->xattr[which].len);
		check_path(path);
	}
	return true;
}

/* ------------------------------------------------------------------ content */

bool op_truncate(int side)
{
	int size = rnd_below(&name_rnd, DATA_MAX), err;
	char path[32];
	struct walk w;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped)
		return false;
	if (!err && S_ISDIR(w.node->mode))
		err = EISDIR;
	else if (!err && !S_ISREG(w.node->mode))
		err = EINVAL;
	NOTE(side, "truncate %s to %d", path, size);
	if (outcome(truncate(proc_path(side, path), size), err)) {
		w.node->mtime_state = size == w.node->size ? MTIME_ANY : MTIME_RECENT;
		file_resize(w.node, size);
	}
	check_path(path);
	return true;
}

static void check_handle(struct handle *h)
{
	struct stat st;

	if (fstat(h->fd, &st) < 0)
		rnd_fail("then fstat: %s", strerror(errno));
	check_stat(h->node, &st, "then fstat");
}

bool op_write_handle(int side)
{
	struct handle *h = draw_handle(false);
	int off = rnd_below(&name_rnd, DATA_MAX), len = 1 + rnd_below(&name_rnd, 600);
	unsigned char buf[608];

	if (!h || !h->writable || !S_ISREG(h->node->mode))
		return false;
	len = len < DATA_MAX - off ? len : DATA_MAX - off;
	NOTE(h->side, "write %d bytes at %d of open file %td, of %d links", len, off,
	     h - names.handle, h->node->links);
	rnd_fill(buf, len, off, names.op);
	outcome(pwrite(h->fd, buf, len, off), 0);
	if (off + len > h->node->size)
		file_resize(h->node, off + len);
	memcpy(h->node->bytes + off, buf, len);
	h->node->mtime_state = MTIME_RECENT;
	check_handle(h);
	return true;
}

bool op_read_handle(int side)
{
	struct handle *h = draw_handle(false);

	if (!h || !S_ISREG(h->node->mode))
		return false;
	NOTE(h->side, "read open file %td, of %d links", h - names.handle, h->node->links);
	check_handle(h);
	check_content(h->node, h->fd, "an open file");
	return true;
}

bool op_truncate_handle(int side)
{
	struct handle *h = draw_handle(false);
	int size = rnd_below(&name_rnd, DATA_MAX);

	if (!h || !h->writable || !S_ISREG(h->node->mode))
		return false;
	NOTE(h->side, "truncate open file %td, of %d links, to %d", h - names.handle,
	     h->node->links, size);
	outcome(ftruncate(h->fd, size), 0);
	h->node->mtime_state = size == h->node->size ? MTIME_ANY : MTIME_RECENT;
	file_resize(h->node, size);
	check_handle(h);
	return true;
}

bool op_close(int side)
{
	struct handle *h = draw_handle(rnd_one_in(&name_rnd, 4));

	if (!h)
		return false;
	NOTE(h->side, "close open file %td, of %d links", h - names.handle, h->node->links);
	handle_drop(h);
	return true;
}

/*
 * A directory that is open may have been moved, or be gone: then it is empty, and nothing can be
 * made in it.
 */
bool op_open_dir(int side)
{
	struct handle *h = draw_handle(true);
	struct node *n;
	int fd, name = rnd_below(&name_rnd, NAMES);
	char what[2] = { 'a' + name, 0 };

	if (!h)
		return false;
	n = h->node;
	NOTE(h->side, "list open directory %td, of %d links", h - names.handle, node_nlink(n));
	check_handle(h);
	fd = dup(h->fd);
	check_list(fd, n, "an open directory");
	if (n->links)
		return true;
	fd = openat(h->fd, what, O_CREAT | O_RDWR, 0644);
	if (fd >= 0 || errno != ENOENT)
		rnd_fail("create in a removed directory: should be ENOENT, is %s",
			 fd < 0 ? strerror(errno) : "done");
	if (mkdirat(h->fd, what, 0755) == 0 || errno != ENOENT)
		rnd_fail("mkdir in a removed directory: should be ENOENT, is %s", strerror(errno));
	return true;
}

bool op_list(int side)
{
	char path[32];
	struct walk w;
	int err, fd;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped)
		return false;
	if (!err && !S_ISDIR(w.node->mode))
		err = ENOTDIR;
	NOTE(side, "list %s", path);
	fd = openat(names.root_fd[side], path, O_RDONLY | O_DIRECTORY);
	if (outcome(fd, err))
		check_list(fd, w.node, "the list");
	return true;
}

bool op_stat(int side)
{
	char path[32];
	struct stat st;
	struct walk w;
	int err;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped)
		return false;
	NOTE(side, "stat %s", path);
	if (outcome(fstatat(names.root_fd[side], path, &st, 0), err))
		check_stat(w.node, &st, "stat");
	return true;
}

bool op_readlink(int side)
{
	char path[32], target[64];
	struct walk w;
	ssize_t r;
	int err;

	draw_path(path);
	err = walk_old(path, false, &w);
	if (w.escaped)
		return false;
	if (!err && !S_ISLNK(w.node->mode))
		err = EINVAL;
	NOTE(side, "readlink %s", path);
	r = readlinkat(names.root_fd[side], path, target, sizeof(target));
	if (outcome(r, err) &&
	    (r != (ssize_t)strlen(w.node->target) || memcmp(target, w.node->target, r)))
		rnd_fail("gives %.*s, should be %s", (int)r, target, w.node->target);
	return true;
}
