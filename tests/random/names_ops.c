// SPDX-License-Identifier: GPL-2.0-only
/*
 * names_ops.c - the operations of nameops. Each draws its arguments, works out from the model what the kernel must
 * answer, in the order in which Linux looks at things, asks, compares, and changes the model. As root, so that no
 * permission is in the way: those have their own tests.
 */
#include "nameops.h"
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <linux/fs.h>

const char *const name_xattrs[XATTRS] = { "user.one", "user.second", "trusted.third" };

#define U(x) ((unsigned long long)(x))

/* What was tried must have ended with @err, 0 for well. */
static bool outcome(long r, int err)
{
	int got = r < 0 ? errno : 0;

	if (got != err)
		rnd_fail("is %s, should be %s", got ? strerror(got) : "done", err ? strerror(err) : "done");
	rnd_note_more(" = %s", err ? strerror(err) : "done");
	names.refused = err;
	return !err;
}

#define NOTE(side, fmt, ...) rnd_note("%llu side %d: " fmt, U(names.op), side, ##__VA_ARGS__)

/* Along what is there, mostly; with @fresh to what is not there, as often as not. */
static void draw_path_to(char *path, bool fresh)
{
	struct node *dir = names.root;
	int n = 0, i;

	fresh = fresh && rnd_one_in(&name_rnd, 2);

	for (;;) {
		struct node *next = NULL;
		int name = rnd_below(&name_rnd, NAMES);

		if (!rnd_one_in(&name_rnd, 4))
			for (i = 0; i < NAMES && !dir->entry[name]; i++)
				name = (name + 1) % NAMES;
		if (fresh && rnd_one_in(&name_rnd, 3))
			for (i = 0; i < NAMES && dir->entry[name]; i++)
				name = (name + 1) % NAMES;
		path[2 * n] = 'a' + name;
		path[2 * n + 1] = 0;
		next = dir->entry[name];
		if (fresh && !next)
			return;
		if (++n == DEPTH_MAX)
			return;
		if (next && S_ISDIR(next->mode) ? rnd_one_in(&name_rnd, 3) : !rnd_one_in(&name_rnd, 10))
			return;
		path[2 * n - 1] = '/';
		if (next && S_ISDIR(next->mode)) {
			dir = next;
		} else {
			path[2 * n] = 'a' + rnd_below(&name_rnd, NAMES);
			path[2 * n + 1] = 0;
			return;
		}
	}
}

static void draw_path(char *path)
{
	draw_path_to(path, false);
}

static bool too_deep(const struct walk *w, int height)
{
	return w->dir && node_depth(w->dir) + 1 + height > DEPTH_MAX - 1;
}

/* Walks to what is to be made anew: EEXIST when it is there. */
static int walk_new(const char *path, struct walk *w)
{
	int err = walk_path(path, false, w);

	return err ? err : w->node || w->name < 0 ? EEXIST : 0;
}

/* Walks to what must be there. */
static int walk_old(const char *path, bool follow, struct walk *w)
{
	int err = walk_path(path, follow, w);

	return err ? err : w->node ? 0 : ENOENT;
}

static mode_t draw_mode(bool dir)
{
	static const mode_t modes[] = { 0755, 0700, 0644, 0666, 0, 0777, 04755, 02755, 06711, 02644, 0421 };
	mode_t m = modes[rnd_below(&name_rnd, sizeof(modes) / sizeof(modes[0]))];

	/* With the sticky bit on directories fs.protected_* would have a say. */
	return !dir && rnd_one_in(&name_rnd, 8) ? m | S_ISVTX : m;
}

static struct node *add_node(struct walk *w, mode_t mode)
{
	struct node *n = node_new(mode, w->dir);

	n->links = 1;
	dir_set(w->dir, w->name, n);
	return n;
}

static void handle_drop(struct handle *h)
{
	struct node *n = h->node;

	if (!n)
		return;
	if (close(h->fd) < 0)
		rnd_fail("close: %s", strerror(errno));
	h->node = NULL;
	n->handles--;
	node_settle(n);
}

void handles_close(void)
{
	int i;

	for (i = 0; i < HANDLES; i++)
		handle_drop(&names.handle[i]);
}

static void handle_keep(struct node *n, int fd, int side, bool readable, bool writable)
{
	struct handle *h = &names.handle[rnd_below(&name_rnd, HANDLES)];

	/* First: dropping the old one could be what frees the node. */
	n->handles++;
	handle_drop(h);
	*h = (struct handle){ .node = n, .fd = fd, .side = side, .readable = readable, .writable = writable };
}

/* An open file, or NULL. */
static struct handle *draw_handle(bool want_dir)
{
	int at = rnd_below(&name_rnd, HANDLES), i;

	for (i = 0; i < HANDLES; i++) {
		struct handle *h = &names.handle[(at + i) % HANDLES];

		if (h->node && !!S_ISDIR(h->node->mode) == want_dir)
			return h;
	}
	return NULL;
}

/* ------------------------------------------------------------------ making */

static bool op_open(int side)
{
	static const int variants[] = { O_CREAT | O_EXCL, O_CREAT | O_EXCL, O_CREAT, O_CREAT, O_CREAT | O_TRUNC, O_TRUNC, 0,
					O_NOFOLLOW, O_CREAT | O_NOFOLLOW, O_DIRECTORY, O_DIRECTORY | O_NOFOLLOW, 0 };
	int flags = variants[rnd_below(&name_rnd, sizeof(variants) / sizeof(variants[0]))], err, fd;
	bool write = !(flags & O_DIRECTORY) && !rnd_one_in(&name_rnd, 4), made = false;
	mode_t mode = draw_mode(false);
	char path[32];
	struct walk w;
	struct node *n;

	draw_path_to(path, flags & O_CREAT);
	if (names.nodes >= NODES_MAX)
		flags &= ~O_CREAT;
	if (flags & O_TRUNC)
		write = true;
	flags |= (write ? O_RDWR : O_RDONLY) | O_NONBLOCK;
	err = walk_path(path, !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL), &w);
	n = w.node;
	/* Devices are not this test's, and a fifo waits for its other end. */
	if (w.escaped || (!err && n && (S_ISCHR(n->mode) || S_ISFIFO(n->mode))))
		return false;
	if (err) {
		;
	} else if (!n) {
		made = flags & O_CREAT;
		err = made ? 0 : ENOENT;
		if (made && too_deep(&w, 0))
			return false;
	} else if (flags & O_CREAT && flags & O_EXCL) {
		err = EEXIST;
	} else if (flags & O_CREAT && S_ISDIR(n->mode)) {
		err = EISDIR;
	} else if (flags & O_DIRECTORY && !S_ISDIR(n->mode)) {
		err = ENOTDIR;
	} else if (S_ISLNK(n->mode)) {
		err = ELOOP;
	} else if (S_ISDIR(n->mode) && write) {
		err = EISDIR;
	} else if (S_ISSOCK(n->mode)) {
		err = ENXIO;
	}
	NOTE(side, "open %s flags %#o mode %#o", path, flags, mode);
	fd = openat(names.root_fd[side], path, flags, mode);
	if (!outcome(fd, err)) {
		check_path(path);
		return true;
	}
	if (made)
		n = add_node(&w, S_IFREG | mode);
	else if (flags & O_TRUNC && S_ISREG(n->mode)) {
		file_resize(n, 0);
		n->mtime_state = MTIME_RECENT;
	}
	handle_keep(n, fd, side, true, write);
	check_path(path);
	return true;
}

static bool op_mkdir(int side)
{
	mode_t mode = draw_mode(true);
	char path[32];
	struct walk w;
	int err;

	draw_path_to(path, true);
	err = walk_new(path, &w);
	if (w.escaped || (!err && too_deep(&w, 0)))
		return false;
	/* mkdir takes no set-id bits. */
	NOTE(side, "mkdir %s mode %#o", path, mode);
	if (outcome(mkdirat(names.root_fd[side], path, mode & 01777), err))
		add_node(&w, S_IFDIR | (mode & 01777));
	check_path(path);
	return true;
}

static bool op_mknod(int side)
{
	static const mode_t types[] = { S_IFIFO, S_IFSOCK, S_IFCHR, S_IFREG };
	mode_t mode = types[rnd_below(&name_rnd, 4)] | draw_mode(false);
	dev_t rdev = S_ISCHR(mode) ? makedev(1 + rnd_below(&name_rnd, 200), rnd_below(&name_rnd, 70000)) : 0;
	char path[32];
	struct walk w;
	int err;

	draw_path_to(path, true);
	err = walk_new(path, &w);
	if (w.escaped || (!err && too_deep(&w, 0)))
		return false;
	NOTE(side, "mknod %s mode %#o", path, mode);
	if (outcome(mknodat(names.root_fd[side], path, mode, rdev), err))
		add_node(&w, mode)->rdev = rdev;
	check_path(path);
	return true;
}

static bool op_symlink(int side)
{
	static const char *const shapes[] = { "%c", "%c", "%c/%c", "../%c", "./%c", "..", ".", "../%c/%c" };
	char path[32], target[32];
	struct walk w;
	int err;

	draw_path_to(path, true);
	snprintf(target, sizeof(target), shapes[rnd_below(&name_rnd, 8)], 'a' + (int)rnd_below(&name_rnd, NAMES),
		 'a' + (int)rnd_below(&name_rnd, NAMES));
	err = walk_new(path, &w);
	if (w.escaped || (!err && too_deep(&w, 0)))
		return false;
	NOTE(side, "symlink %s to %s", path, target);
	if (outcome(symlinkat(target, names.root_fd[side], path), err))
		strcpy(add_node(&w, S_IFLNK | 0777)->target, target);
	check_path(path);
	return true;
}

static bool op_link(int side)
{
	int flags = rnd_one_in(&name_rnd, 3) ? AT_SYMLINK_FOLLOW : 0, err;
	char from[32], to[32];
	struct walk old, new;

	draw_path(from);
	draw_path_to(to, true);
	err = walk_old(from, flags, &old);
	if (old.escaped)
		return false;
	if (!err) {
		err = walk_new(to, &new);
		if (new.escaped || (!err && too_deep(&new, 0)))
			return false;
		if (!err && S_ISDIR(old.node->mode))
			err = EPERM;
	}
	NOTE(side, "link %s to %s%s", from, to, flags ? " (follow)" : "");
	if (outcome(linkat(names.root_fd[side], from, names.root_fd[side], to, flags), err)) {
		old.node->links++;
		dir_set(new.dir, new.name, old.node);
	}
	check_path(from);
	check_path(to);
	return true;
}

static bool op_tmpfile(int side)
{
	bool excl = rnd_one_in(&name_rnd, 3);
	mode_t mode = draw_mode(false);
	struct node *n;
	struct stat st;
	char path[32];
	struct walk w;
	int err, fd;

	draw_path(path);
	err = walk_old(path, true, &w);
	if (w.escaped)
		return false;
	if (!err && !S_ISDIR(w.node->mode))
		err = ENOTDIR;
	if (!err && !names.have_tmpfile)
		err = EOPNOTSUPP;
	NOTE(side, "open %s O_TMPFILE%s mode %#o", path, excl ? " O_EXCL" : "", mode);
	fd = openat(names.root_fd[side], path, O_TMPFILE | O_RDWR | (excl ? O_EXCL : 0), mode);
	if (!outcome(fd, err))
		return true;
	n = node_new(S_IFREG | mode, w.node);
	n->linkable = !excl;
	if (fstat(fd, &st) < 0)
		rnd_fail("fstat: %s", strerror(errno));
	check_stat(n, &st, "then fstat");
	handle_keep(n, fd, side, true, true);
	return true;
}

static bool op_link_handle(int side)
{
	struct handle *h = draw_handle(false);
	char to[32], by[64] = "";
	struct walk w;
	struct node *n;
	int err, flags = AT_EMPTY_PATH, from;

	if (!h)
		return false;
	side = h->side;
	n = h->node;
	from = h->fd;
	draw_path_to(to, true);
	err = walk_new(to, &w);
	if (w.escaped || (!err && too_deep(&w, 0)))
		return false;
	if (!err && !n->links && !n->linkable)
		err = ENOENT;
	if (rnd_one_in(&name_rnd, 2)) {
		snprintf(by, sizeof(by), "/proc/self/fd/%d", h->fd);
		from = AT_FDCWD;
		flags = AT_SYMLINK_FOLLOW;
	}
	NOTE(side, "link open file %td, of %d links, to %s%s", h - names.handle, n->links, to, *by ? " by /proc" : "");
	if (outcome(linkat(from, by, names.root_fd[side], to, flags), err)) {
		n->links++;
		n->linkable = false;
		dir_set(w.dir, w.name, n);
	}
	check_path(to);
	return true;
}

/* ------------------------------------------------------------------ moving and removing */

/* In the order of do_renameat2() and vfs_rename(). */
static int rename_error(const struct walk *old, const struct walk *new, unsigned int flags)
{
	if (!old->node)
		return ENOENT;
	if (flags & RENAME_NOREPLACE && new->node)
		return EEXIST;
	if (flags & RENAME_EXCHANGE && !new->node)
		return ENOENT;
	if (S_ISDIR(old->node->mode) && is_above(old->node, new->dir))
		return EINVAL;
	if (new->node && S_ISDIR(new->node->mode) && is_above(new->node, old->dir))
		return flags & RENAME_EXCHANGE ? EINVAL : ENOTEMPTY;
	if (old->node == new->node || !new->node || flags & RENAME_EXCHANGE)
		return 0;
	if (S_ISDIR(old->node->mode) && !S_ISDIR(new->node->mode))
		return ENOTDIR;
	if (!S_ISDIR(old->node->mode) && S_ISDIR(new->node->mode))
		return EISDIR;
	return S_ISDIR(new->node->mode) && !dir_empty(new->node) ? ENOTEMPTY : 0;
}

static void lose_link(struct node *n)
{
	if (S_ISDIR(n->mode))
		n->parent = NULL;
	n->links--;
	node_settle(n);
}

static bool op_rename(int side)
{
	static const unsigned int variants[] = { 0, 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE };
	unsigned int flags = variants[rnd_below(&name_rnd, 7)];
	struct walk old, new;
	char from[32], to[32];
	int err;

	draw_path(from);
	draw_path_to(to, true);
	/* Into its own subtree. */
	if (rnd_one_in(&name_rnd, 12) && strlen(from) < 12)
		snprintf(to, sizeof(to), "%.20s/%c", from, 'a' + (int)rnd_below(&name_rnd, NAMES));
	if (rnd_one_in(&name_rnd, 50))
		flags = RENAME_NOREPLACE | RENAME_EXCHANGE;
	err = walk_path(from, false, &old);
	if (old.escaped)
		return false;
	if (!err)
		err = walk_path(to, false, &new);
	else
		new.escaped = false;
	if (new.escaped)
		return false;
	if (flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		err = EINVAL;
	if (!err)
		err = rename_error(&old, &new, flags);
	if (!err && (too_deep(&new, node_height(old.node)) ||
		     (flags & RENAME_EXCHANGE && too_deep(&old, node_height(new.node)))))
		return false;
	NOTE(side, "rename %s to %s%s%s", from, to, flags & RENAME_NOREPLACE ? " NOREPLACE" : "",
	     flags & RENAME_EXCHANGE ? " EXCHANGE" : "");
	if (outcome(renameat2(names.root_fd[side], from, names.root_fd[side], to, flags), err) &&
	    old.node != new.node) {
		dir_set(old.dir, old.name, flags & RENAME_EXCHANGE ? new.node : NULL);
		dir_set(new.dir, new.name, old.node);
		if (new.node && !(flags & RENAME_EXCHANGE))
			lose_link(new.node);
	}
	check_path(from);
	check_path(to);
	return true;
}

static bool op_unlink(int side)
{
	char path[32];
	struct walk w;
	int err;

	draw_path(path);
	err = walk_old(path, false, &w);
	if (w.escaped)
		return false;
	if (!err && S_ISDIR(w.node->mode))
		err = EISDIR;
	NOTE(side, "unlink %s", path);
	if (outcome(unlinkat(names.root_fd[side], path, 0), err)) {
		dir_set(w.dir, w.name, NULL);
		lose_link(w.node);
	}
	check_path(path);
	return true;
}

static bool op_rmdir(int side)
{
	char path[32];
	struct walk w;
	int err;

	draw_path(path);
	err = walk_old(path, false, &w);
	if (w.escaped)
		return false;
	if (!err && !S_ISDIR(w.node->mode))
		err = ENOTDIR;
	if (!err && !dir_empty(w.node))
		err = ENOTEMPTY;
	NOTE(side, "rmdir %s", path);
	if (outcome(unlinkat(names.root_fd[side], path, AT_REMOVEDIR), err)) {
		dir_set(w.dir, w.name, NULL);
		lose_link(w.node);
	}
	check_path(path);
	return true;
}

/* ------------------------------------------------------------------ attributes */

static bool op_chmod(int side)
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

static bool op_chown(int side)
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
	if (outcome(fchownat(names.root_fd[side], path, uid, gid, follow ? 0 : AT_SYMLINK_NOFOLLOW), err)) {
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

static bool op_utimens(int side)
{
	bool follow = rnd_one_in(&name_rnd, 2);
	static const time_t seconds[] = { 1000000000, 1100000000, 0, -1000000, 4500000000 };
	struct timespec t[2] = { { .tv_sec = 1050000000, .tv_nsec = rnd_below(&name_rnd, 1000000000) },
				 { .tv_sec = seconds[rnd_below(&name_rnd, 5)], .tv_nsec = rnd_below(&name_rnd, 1000000000) } };
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
	NOTE(side, "utimens %s%s mtime %lld.%09ld", path, follow ? "" : " (no follow)", (long long)t[1].tv_sec,
	     t[1].tv_nsec);
	if (!outcome(utimensat(names.root_fd[side], path, t, follow ? 0 : AT_SYMLINK_NOFOLLOW), err)) {
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
				 (long long)st.st_atim.tv_sec, st.st_atim.tv_nsec, (long long)t[0].tv_sec, t[0].tv_nsec);
	}
	return true;
}

static bool xattr_have(int which)
{
	return strncmp(name_xattrs[which], "user.", 5) ? names.have_trusted_xattr : names.have_user_xattr;
}

/* Attributes of users are for files and directories. */
static bool xattr_misplaced(int which, const struct node *n)
{
	return !strncmp(name_xattrs[which], "user.", 5) && !S_ISREG(n->mode) && !S_ISDIR(n->mode);
}

static bool op_setxattr(int side)
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
	NOTE(side, "%ssetxattr %s %s, %d bytes, flags %d", follow ? "" : "l", path, name_xattrs[which], len, flags);
	if (outcome((follow ? setxattr : lsetxattr)(proc_path(side, path), name_xattrs[which], val, len, flags), err)) {
		x->there = true;
		x->len = len;
		memcpy(x->val, val, len);
	}
	check_path(path);
	return true;
}

static bool op_removexattr(int side)
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

static bool op_getxattr(int side)
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
	size = err || rnd_one_in(&name_rnd, 2) ? XATTR_MAX : (int)rnd_below(&name_rnd, w.node->xattr[which].len + 2);
	if (!err && size && size < w.node->xattr[which].len)
		err = ERANGE;
	NOTE(side, "getxattr %s %s to %d bytes", path, name_xattrs[which], size);
	r = getxattr(proc_path(side, path), name_xattrs[which], val, size);
	if (outcome(r, err)) {
		if (r != w.node->xattr[which].len || (size && memcmp(val, w.node->xattr[which].val, r)))
			rnd_fail("gives %zd bytes, not the right %d", r, w.node->xattr[which].len);
		check_path(path);
	}
	return true;
}

/* ------------------------------------------------------------------ content */

static bool op_truncate(int side)
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

static bool op_write_handle(int side)
{
	struct handle *h = draw_handle(false);
	int off = rnd_below(&name_rnd, DATA_MAX), len = 1 + rnd_below(&name_rnd, 600);
	unsigned char buf[608];

	if (!h || !h->writable || !S_ISREG(h->node->mode))
		return false;
	len = len < DATA_MAX - off ? len : DATA_MAX - off;
	NOTE(h->side, "write %d bytes at %d of open file %td, of %d links", len, off, h - names.handle, h->node->links);
	rnd_fill(buf, len, off, names.op);
	outcome(pwrite(h->fd, buf, len, off), 0);
	if (off + len > h->node->size)
		file_resize(h->node, off + len);
	memcpy(h->node->bytes + off, buf, len);
	h->node->mtime_state = MTIME_RECENT;
	check_handle(h);
	return true;
}

static bool op_read_handle(int side)
{
	struct handle *h = draw_handle(false);

	if (!h || !S_ISREG(h->node->mode))
		return false;
	NOTE(h->side, "read open file %td, of %d links", h - names.handle, h->node->links);
	check_handle(h);
	check_content(h->node, h->fd, "an open file");
	return true;
}

static bool op_truncate_handle(int side)
{
	struct handle *h = draw_handle(false);
	int size = rnd_below(&name_rnd, DATA_MAX);

	if (!h || !h->writable || !S_ISREG(h->node->mode))
		return false;
	NOTE(h->side, "truncate open file %td, of %d links, to %d", h - names.handle, h->node->links, size);
	outcome(ftruncate(h->fd, size), 0);
	h->node->mtime_state = size == h->node->size ? MTIME_ANY : MTIME_RECENT;
	file_resize(h->node, size);
	check_handle(h);
	return true;
}

static bool op_close(int side)
{
	struct handle *h = draw_handle(rnd_one_in(&name_rnd, 4));

	if (!h)
		return false;
	NOTE(h->side, "close open file %td, of %d links", h - names.handle, h->node->links);
	handle_drop(h);
	return true;
}

/* A directory that is open may have been moved, or be gone: then it is empty, and nothing can be made in it. */
static bool op_open_dir(int side)
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
		rnd_fail("create in a removed directory: should be ENOENT, is %s", fd < 0 ? strerror(errno) : "done");
	if (mkdirat(h->fd, what, 0755) == 0 || errno != ENOENT)
		rnd_fail("mkdir in a removed directory: should be ENOENT, is %s", strerror(errno));
	return true;
}

static bool op_list(int side)
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

static bool op_stat(int side)
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

static bool op_readlink(int side)
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
	if (outcome(r, err) && (r != (ssize_t)strlen(w.node->target) || memcmp(target, w.node->target, r)))
		rnd_fail("gives %.*s, should be %s", (int)r, target, w.node->target);
	return true;
}

void names_probe(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s", proc_path(0, "a"));
	fd = openat(names.root_fd[0], "a", O_CREAT | O_EXCL | O_RDWR, 0644);
	if (fd < 0)
		rnd_die("cannot create: %s", strerror(errno));
	close(fd);
	names.have_user_xattr = setxattr(path, name_xattrs[0], "", 0, 0) == 0;
	if (!names.have_user_xattr && errno != EOPNOTSUPP)
		rnd_fail("setxattr %s: %s", name_xattrs[0], strerror(errno));
	names.have_trusted_xattr = setxattr(path, name_xattrs[2], "", 0, 0) == 0;
	if (!names.have_trusted_xattr && errno != EOPNOTSUPP)
		rnd_fail("setxattr %s: %s", name_xattrs[2], strerror(errno));
	fd = openat(names.root_fd[0], ".", O_TMPFILE | O_RDWR, 0644);
	names.have_tmpfile = fd >= 0;
	if (fd < 0 && errno != EOPNOTSUPP)
		rnd_fail("O_TMPFILE: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (unlinkat(names.root_fd[0], "a", 0) < 0)
		rnd_die("cannot unlink: %s", strerror(errno));
	if (!names.have_user_xattr)
		printf("# LEFT OUT, the file system does not have it: attributes user.*\n");
	if (!names.have_trusted_xattr)
		printf("# LEFT OUT, the file system does not have it: attributes trusted.*\n");
	if (!names.have_tmpfile)
		printf("# LEFT OUT, the file system does not have it: O_TMPFILE\n");
}

struct name_op name_ops[] = {
	{ .name = "open", .weight = 16, .run = op_open },
	{ .name = "mkdir", .weight = 9, .makes = true, .run = op_mkdir },
	{ .name = "mknod", .weight = 3, .makes = true, .run = op_mknod },
	{ .name = "symlink", .weight = 5, .makes = true, .run = op_symlink },
	{ .name = "link", .weight = 8, .run = op_link },
	{ .name = "tmpfile", .weight = 3, .makes = true, .run = op_tmpfile },
	{ .name = "link-handle", .weight = 5, .run = op_link_handle },
	{ .name = "rename", .weight = 20, .run = op_rename },
	{ .name = "unlink", .weight = 12, .run = op_unlink },
	{ .name = "rmdir", .weight = 6, .run = op_rmdir },
	{ .name = "chmod", .weight = 3, .run = op_chmod },
	{ .name = "chown", .weight = 3, .run = op_chown },
	{ .name = "utimens", .weight = 4, .run = op_utimens },
	{ .name = "setxattr", .weight = 5, .run = op_setxattr },
	{ .name = "removexattr", .weight = 2, .run = op_removexattr },
	{ .name = "getxattr", .weight = 3, .run = op_getxattr },
	{ .name = "truncate", .weight = 3, .run = op_truncate },
	{ .name = "write-handle", .weight = 5, .run = op_write_handle },
	{ .name = "read-handle", .weight = 4, .run = op_read_handle },
	{ .name = "truncate-handle", .weight = 2, .run = op_truncate_handle },
	{ .name = "close", .weight = 4, .run = op_close },
	{ .name = "open-dir", .weight = 4, .run = op_open_dir },
	{ .name = "list", .weight = 4, .run = op_list },
	{ .name = "stat", .weight = 4, .run = op_stat },
	{ .name = "readlink", .weight = 2, .run = op_readlink },
	{ .name = NULL },
};
