// SPDX-License-Identifier: GPL-2.0-only
/*
 * names_check.c - compares the model of nameops with what each side shows of the tree.
 */
#include "nameops.h"
#include <dirent.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

static bool before(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

void check_stat(struct node *n, const struct stat *st, const char *what)
{
	const struct node *m;

	if (st->st_mode != n->mode)
		rnd_fail("%s: the mode is %#o, should be %#o", what, st->st_mode, n->mode);
	if ((int)st->st_nlink != node_nlink(n))
		rnd_fail("%s: has %d links, should be %d", what, (int)st->st_nlink, node_nlink(n));
	if (st->st_uid != n->uid || st->st_gid != n->gid)
		rnd_fail("%s: belongs to %u:%u, should be %u:%u", what, st->st_uid, st->st_gid,
			 n->uid, n->gid);
	if (S_ISREG(n->mode) && st->st_size != n->size)
		rnd_fail("%s: the size is %lld, should be %d", what, (long long)st->st_size,
			 n->size);
	if (S_ISLNK(n->mode) && st->st_size != (off_t)strlen(n->target))
		rnd_fail("%s: the size is %lld, should be %zu", what, (long long)st->st_size,
			 strlen(n->target));
	if ((S_ISCHR(n->mode) || S_ISBLK(n->mode)) && st->st_rdev != n->rdev)
		rnd_fail("%s: is device %#llx, should be %#llx", what, (long long)st->st_rdev,
			 (long long)n->rdev);
	if (!n->ino) {
		for (m = names.all; m; m = m->next)
			if (m->ino == st->st_ino)
				rnd_fail("%s: inode %llu is another's too", what,
					 (unsigned long long)st->st_ino);
		n->ino = st->st_ino;
	}
	if (st->st_ino != n->ino)
		rnd_fail("%s: is inode %llu, was %llu", what, (unsigned long long)st->st_ino,
			 (unsigned long long)n->ino);
	if (before(st->st_ctim, n->ctime))
		rnd_fail("%s: ctime went back from %lld.%09ld to %lld.%09ld", what,
			 (long long)n->ctime.tv_sec,
			 n->ctime.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	n->ctime = st->st_ctim;
	if (n->mtime_state == MTIME_RECENT && st->st_mtim.tv_sec < names.start)
		rnd_fail("%s: mtime %lld.%09ld is of before the last change", what,
			 (long long)st->st_mtim.tv_sec,
			 st->st_mtim.tv_nsec);
	if (n->mtime_state == MTIME_EXACT &&
	    (before(st->st_mtim, n->mtime) || before(n->mtime, st->st_mtim)))
		rnd_fail("%s: mtime is %lld.%09ld, should be %lld.%09ld", what,
			 (long long)st->st_mtim.tv_sec,
			 st->st_mtim.tv_nsec, (long long)n->mtime.tv_sec, n->mtime.tv_nsec);
}

void check_path(const char *path)
{
	struct walk w;
	struct stat st;
	char what[256];
	int i, err = walk_path(path, false, &w);

	if (w.escaped)
		return;
	if (!err && !w.node)
		err = ENOENT;
	for (i = 0; i < names.sides; i++) {
		int r = fstatat(names.root_fd[i], path, &st, AT_SYMLINK_NOFOLLOW);

		if (r < 0 ? errno != err : err)
			rnd_fail("then lstat %s, side %d: is %s, should be %s", path, i,
				 r < 0 ? strerror(errno) : "there",
				 err ? strerror(err) : "there");
		if (err)
			continue;
		snprintf(what, sizeof(what), "then lstat %s, side %d", path, i);
		check_stat(w.node, &st, what);
	}
}

static unsigned char dirent_type(mode_t mode)
{
	return IFTODT(mode);
}

/* Lists the directory open as @fd, which this closes. */
void check_list(int fd, struct node *dir, const char *what)
{
	bool seen[NAMES] = { 0 }, dot = false, dotdot = false;
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int i;

	if (!d)
		rnd_fail("%s: fdopendir: %s", what, strerror(errno));
	for (rewinddir(d), errno = 0; (e = readdir(d)); errno = 0) {
		struct node *n;
		bool *s;

		if (!strcmp(e->d_name, ".")) {
			s = &dot;
			n = dir;
		} else if (!strcmp(e->d_name, "..")) {
			s = &dotdot;
			n = dir->parent;
		} else {
			i = e->d_name[0] - 'a';
			if (i < 0 || i >= NAMES || e->d_name[1])
				rnd_fail("%s: has a name %s", what, e->d_name);
			s = &seen[i];
			n = dir->entry[i];
			if (!n)
				rnd_fail("%s: has %s, which is not there", what, e->d_name);
		}
		if (*s)
			rnd_fail("%s: has %s twice", what, e->d_name);
		*s = true;
		if (n && n->ino && e->d_ino != n->ino)
			rnd_fail("%s: %s has inode %llu, should be %llu", what, e->d_name,
				 (unsigned long long)e->d_ino,
				 (unsigned long long)n->ino);
		if (n && e->d_type != DT_UNKNOWN && e->d_type != dirent_type(n->mode))
			rnd_fail("%s: %s has type %d, should be %d", what, e->d_name, e->d_type,
				 dirent_type(n->mode));
	}
	if (errno)
		rnd_fail("%s: readdir: %s", what, strerror(errno));
	for (i = 0; i < NAMES; i++)
		if (dir->entry[i] && !seen[i])
			rnd_fail("%s: %c is missing", what, 'a' + i);
	if (dir->links && (!dot || !dotdot))
		rnd_fail("%s: no . or ..", what);
	closedir(d);
}

const char *proc_path(int side, const char *path)
{
	static char buf[4][512];
	static int n;

	n = (n + 1) % 4;
	snprintf(buf[n], sizeof(buf[n]), "/proc/self/fd/%d/%s", names.root_fd[side], path);
	return buf[n];
}

void check_xattrs(struct node *n, int side, const char *path)
{
	const char *full = proc_path(side, path);
	unsigned char val[XATTR_MAX + 1];
	char list[4096], *p;
	ssize_t len = llistxattr(full, list, sizeof(list));
	bool seen[XATTRS] = { 0 };
	int i;

	if (len < 0) {
		if (errno == EOPNOTSUPP && !names.have_trusted_xattr)
			return;
		rnd_fail("llistxattr %s, side %d: %s", path, side, strerror(errno));
	}
	for (p = list; p < list + len; p += strlen(p) + 1) {
		for (i = 0; i < XATTRS && strcmp(p, name_xattrs[i]); i++)
			;
		/* Others may have what we did not set, but not of these. */
		if (i == XATTRS && (!strncmp(p, "user.", 5) || !strncmp(p, "trusted.", 8)))
			rnd_fail("%s, side %d: has an attribute %s", path, side, p);
		if (i < XATTRS)
			seen[i] = true;
	}
	for (i = 0; i < XATTRS; i++) {
		const struct xattr_val *x = &n->xattr[i];

		if (x->there != seen[i])
			rnd_fail("%s, side %d: %s is %slisted", path, side, name_xattrs[i],
				 seen[i] ? "" : "not ");
		if (!x->there)
			continue;
		len = lgetxattr(full, name_xattrs[i], val, sizeof(val));
		if (len != x->len || memcmp(val, x->val, len))
			rnd_fail("%s, side %d: %s has %zd bytes, not the right %d", path, side,
				 name_xattrs[i], len, x->len);
	}
}

void check_content(struct node *n, int fd, const char *what)
{
	unsigned char buf[DATA_MAX + 1];
	ssize_t r = pread(fd, buf, sizeof(buf), 0);
	int i;

	if (r < 0)
		rnd_fail("%s: read: %s", what, strerror(errno));
	if (r != n->size)
		rnd_fail("%s: read gives %zd bytes, should be %d", what, r, n->size);
	for (i = 0; i < r; i++)
		if (buf[i] != n->bytes[i])
			rnd_fail("%s: byte %d of %d is %#x, should be %#x", what, i, n->size,
				 buf[i], n->bytes[i]);
}

static void check_node(struct node *n, int side, const char *path, const char *what)
{
	char target[64];
	struct stat st;
	ssize_t len;
	int fd;

	if (fstatat(names.root_fd[side], path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		rnd_fail("%s: lstat: %s", what, strerror(errno));
	check_stat(n, &st, what);
	check_xattrs(n, side, path);
	if (S_ISLNK(n->mode)) {
		len = readlinkat(names.root_fd[side], path, target, sizeof(target));
		if (len != (ssize_t)strlen(n->target) || memcmp(target, n->target, len))
			rnd_fail("%s: readlink gives %.*s, should be %s", what, (int)len, target,
				 n->target);
	}
	if (S_ISREG(n->mode)) {
		fd = openat(names.root_fd[side], path, O_RDONLY);
		if (fd < 0)
			rnd_fail("%s: open: %s", what, strerror(errno));
		check_content(n, fd, what);
		close(fd);
	}
}

static void check_below(struct node *dir, int side, const char *path)
{
	char below[256], what[300];
	int i, fd;

	snprintf(what, sizeof(what), "the whole tree, side %d, %s", side, path);
	fd = openat(names.root_fd[side], path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		rnd_fail("%s: open: %s", what, strerror(errno));
	/* First: a listing must be right before anything else was asked of what it lists. */
	check_list(fd, dir, what);
	for (i = 0; i < NAMES; i++) {
		struct node *n = dir->entry[i];

		if (!n)
			continue;
		if (!strcmp(path, "."))
			snprintf(below, sizeof(below), "%c", 'a' + i);
		else
			snprintf(below, sizeof(below), "%s/%c", path, 'a' + i);
		snprintf(what, sizeof(what), "the whole tree, side %d, %s", side, below);
		check_node(n, side, below, what);
		if (S_ISDIR(n->mode))
			check_below(n, side, below);
	}
}

void check_tree(void)
{
	int side, i;

	for (side = 0; side < names.sides; side++)
		check_below(names.root, side, ".");
	for (i = 0; i < HANDLES; i++) {
		struct handle *h = &names.handle[i];
		struct stat st;

		if (!h->node)
			continue;
		if (fstat(h->fd, &st) < 0)
			rnd_fail("fstat of handle %d, side %d: %s", i, h->side, strerror(errno));
		check_stat(h->node, &st, "an open file");
		if (S_ISREG(h->node->mode) && h->readable)
			check_content(h->node, h->fd, "an open file");
	}
}
