// SPDX-License-Identifier: GPL-2.0-only
/*
 * names_ops.c - the operations of nameops. Each draws its arguments, works out from the model what
 * the kernel must answer, in the order in which Linux looks at things, asks, compares, and changes
 * the model. As root, so that no permission is in the way: those have their own tests.
 */
#include "nameops.h"
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <linux/fs.h>

const char *const name_xattrs[XATTRS] = { "user.one", "user.second", "trusted.third" };

bool outcome(long r, int err)
{
	int got = r < 0 ? errno : 0;

	if (got != err)
		rnd_fail("is %s, should be %s", got ? strerror(got) : "done",
			 err ? strerror(err) : "done");
	rnd_note_more(" = %s", err ? strerror(err) : "done");
	names.refused = err;
	return !err;
}

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
		if (next && !S_ISDIR(next->mode))
			next = NULL;
		if (next ? rnd_one_in(&name_rnd, 3) : !rnd_one_in(&name_rnd, 10))
			return;
		path[2 * n - 1] = '/';
		if (next) {
			dir = next;
		} else {
			path[2 * n] = 'a' + rnd_below(&name_rnd, NAMES);
			path[2 * n + 1] = 0;
			return;
		}
	}
}

void draw_path(char *path)
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

int walk_old(const char *path, bool follow, struct walk *w)
{
	int err = walk_path(path, follow, w);

	return err ? err : w->node ? 0 : ENOENT;
}

mode_t draw_mode(bool dir)
{
	static const mode_t modes[] = { 0755, 0700, 0644, 0666, 0, 0777, 04755, 02755, 06711, 02644,
					0421 };
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

void handle_drop(struct handle *h)
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

struct handle *draw_handle(bool want_dir)
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
	static const int variants[] = { O_CREAT | O_EXCL, O_CREAT | O_EXCL, O_CREAT, O_CREAT,
					O_CREAT | O_TRUNC, O_TRUNC, 0, O_NOFOLLOW,
					O_CREAT | O_NOFOLLOW, O_DIRECTORY,
					O_DIRECTORY | O_NOFOLLOW, 0 };
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
	err = walk_path(path, !(flags & O_NOFOLLOW) &&
			(flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL), &w);
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
	dev_t rdev = S_ISCHR(mode) ? makedev(1 + rnd_below(&name_rnd, 200),
					     rnd_below(&name_rnd, 70000)) : 0;
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
	static const char *const shapes[] = { "%c", "%c", "%c/%c", "../%c", "./%c", "..", ".",
					      "../%c/%c" };
	char path[32], target[32];
	struct walk w;
	int err;

	draw_path_to(path, true);
	snprintf(target, sizeof(target), shapes[rnd_below(&name_rnd, 8)],
		 'a' + (int)rnd_below(&name_rnd, NAMES),
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
	NOTE(side, "link open file %td, of %d links, to %s%s", h - names.handle, n->links, to,
	     *by ? " by /proc" : "");
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
	static const unsigned int variants[] = { 0, 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE,
						 RENAME_EXCHANGE };
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
