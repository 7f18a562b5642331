// SPDX-License-Identifier: GPL-2.0-only
/*
 * open.c - open(2): every access mode with every useful combination of flags on every type of file;
 * the errors are worked out by a model of open(2)'s page. And what the descriptor can then do.
 */
#include "conform.h"

static const struct {
	const char *name;
	int flags;
	bool vfs_only;
} combos[] = {
	{ "0", 0 },
	{ "O_CREAT", O_CREAT },
	{ "O_CREAT|O_EXCL", O_CREAT | O_EXCL },
	{ "O_TRUNC", O_TRUNC },
	{ "O_CREAT|O_TRUNC", O_CREAT | O_TRUNC },
	{ "O_CREAT|O_EXCL|O_TRUNC", O_CREAT | O_EXCL | O_TRUNC },
	{ "O_APPEND", O_APPEND },
	{ "O_CREAT|O_APPEND", O_CREAT | O_APPEND },
	{ "O_TRUNC|O_APPEND", O_TRUNC | O_APPEND },
	{ "O_NOFOLLOW", O_NOFOLLOW },
	{ "O_CREAT|O_NOFOLLOW", O_CREAT | O_NOFOLLOW },
	{ "O_TRUNC|O_NOFOLLOW", O_TRUNC | O_NOFOLLOW },
	{ "O_CREAT|O_EXCL|O_NOFOLLOW", O_CREAT | O_EXCL | O_NOFOLLOW },
	{ "O_SYNC", O_SYNC },
	{ "O_DSYNC", O_DSYNC },
	{ "O_DIRECTORY", O_DIRECTORY, true },
	{ "O_DIRECTORY|O_NOFOLLOW", O_DIRECTORY | O_NOFOLLOW, true },
	{ "O_DIRECTORY|O_TRUNC", O_DIRECTORY | O_TRUNC, true },
	{ "O_CREAT|O_DIRECTORY", O_CREAT | O_DIRECTORY, true },
	{ "O_PATH", O_PATH, true },
	{ "O_PATH|O_NOFOLLOW", O_PATH | O_NOFOLLOW, true },
	{ "O_PATH|O_DIRECTORY", O_PATH | O_DIRECTORY, true },
	{ "O_PATH|O_DIRECTORY|O_NOFOLLOW", O_PATH | O_DIRECTORY | O_NOFOLLOW, true },
	{ "O_PATH|O_CREAT", O_PATH | O_CREAT, true },
	{ "O_PATH|O_TRUNC", O_PATH | O_TRUNC, true },
	{ "O_TMPFILE", O_TMPFILE, true },
	{ "O_TMPFILE|O_EXCL", O_TMPFILE | O_EXCL, true },
	{ "O_TMPFILE|O_CREAT", O_TMPFILE | O_CREAT, true },
	{ "O_TMPFILE|O_TRUNC", O_TMPFILE | O_TRUNC, true },
};

static const char *const acc_name[] = { "O_RDONLY", "O_WRONLY", "O_RDWR" };

/* What a name leads to when links are followed. */
static enum type target(enum type t)
{
	return t == T_SYMFILE ? T_FILE : t == T_SYMDIR ? T_DIR : t == T_DANGLING ? T_NONE : t;
}

static bool is_link(enum type t)
{
	return t == T_SYMFILE || t == T_SYMDIR || t == T_DANGLING || t == T_LOOP;
}

static bool is_dir(enum type t)
{
	return t == T_DIR || t == T_FULLDIR;
}

/*
 * What open gives: 0 or an errno. *made: it creates a file; *cut: it truncates one; *opens: the
 * type of what is opened.
 */
static int model(enum type t, int acc, int flags, bool *made, bool *cut, enum type *opens)
{
	*made = *cut = false;
	*opens = t;
	if (flags & O_PATH) {
		/* All but these two are ignored. */
		flags &= O_PATH | O_NOFOLLOW | O_DIRECTORY;
		if (is_link(t) && (flags & O_NOFOLLOW))
			return flags & O_DIRECTORY ? ENOTDIR : 0;
		if (t == T_LOOP)
			return ELOOP;
		*opens = t = target(t);
		if (t == T_NONE)
			return ENOENT;
		return (flags & O_DIRECTORY) && !is_dir(t) ? ENOTDIR : 0;
	}
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		if ((flags & O_CREAT) || acc == O_RDONLY)
			return EINVAL;
		if (t == T_LOOP)
			return ELOOP;
		*opens = T_FILE;
		t = target(t);
		return t == T_NONE ? ENOENT : is_dir(t) ? 0 : ENOTDIR;
	}
	if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
		return EINVAL;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
		*made = t == T_NONE;
		*opens = T_FILE;
		return *made ? 0 : EEXIST;
	}
	if (is_link(t) && (flags & O_NOFOLLOW))
		return flags & O_DIRECTORY ? ENOTDIR : ELOOP;
	if (t == T_LOOP)
		return ELOOP;
	*opens = t = target(t);
	if (t == T_NONE) {
		*made = flags & O_CREAT;
		*opens = T_FILE;
		return *made ? 0 : ENOENT;
	}
	if (is_dir(t))
		return (flags & (O_CREAT | O_TRUNC)) || acc != O_RDONLY ? EISDIR : 0;
	if (flags & O_DIRECTORY)
		return ENOTDIR;
	if (t == T_SOCK || t == T_BLK)
		return ENXIO;
	if (t == T_FIFO)
		return acc == O_WRONLY ? ENXIO : 0;
	*cut = t == T_FILE && (flags & O_TRUNC);
	return 0;
}

/* libpvfs opens regular files: it says so of the others. */
static bool lib_asks(enum type t)
{
	t = target(t);
	return t == T_FILE || t == T_DIR || t == T_NONE || t == T_LOOP || t == T_FULLDIR;
}

static void matrix(void)
{
	static const char *const paths[T_MAX] = {
		"nothing", "tfile", "tdir", "full", "lfile", "ldir", "dangling", "loop", "fifo", "sock", "chr", "blk"
	};
	enum type t, opens;
	size_t i, a;

	if (live()) {
		make_targets(".");
		for (t = T_FULLDIR; t < T_MAX; t++)
			make(paths[t], t);
	}
	for (t = 0; t < T_MAX; t++)
	for (i = 0; i < ARRAY_SIZE(combos); i++)
	for (a = O_RDONLY; a <= O_RDWR; a++) {
		bool made, cut;
		int want = model(t, a, combos[i].flags, &made, &cut, &opens), h;
		struct snap snap;
		struct stat st;

		if (!on_vfs()) {
			if (combos[i].vfs_only || !lib_asks(t))
				continue;
			if (!want && is_dir(opens))
				want = EISDIR;
		}
		/* Until 6.4 it depended on what was there, and could make a file all the same. */
		if ((combos[i].flags & (O_CREAT | O_PATH | O_TMPFILE)) == (O_CREAT | O_DIRECTORY) &&
		    !kernel_from(6, 4))
			continue;
		if (!row("open/%s|%s on %s: %s", acc_name[a], combos[i].name, type_name[t], err_name(want)))
			continue;
		if (want)
			snap_take(&snap, ".", "tfile", paths[t], "tnothing", NULL);
		h = fs->open(paths[t], a | combos[i].flags | O_NONBLOCK | O_CLOEXEC, 0640);
		if (want || h < 0) {
			GIVES(h, want);
			if (h >= 0)
				fs->close(h);
			if (want)
				SAME(&snap);
		} else {
			OK(fs->fstat(h, &st));
			EQ(st.st_mode & S_IFMT, type_ifmt(opens));
			if (made || (combos[i].flags & O_TMPFILE) == O_TMPFILE) {
				EQ(st.st_mode & 07777, 0640);
				EQ(st.st_nlink, made ? 1 : 0);
			}
			if (opens == T_FILE)
				EQ(st.st_size, made || cut || (combos[i].flags & O_TMPFILE) == O_TMPFILE ? 0 : 5);
			if (on_vfs() && !(combos[i].flags & O_PATH))
				EQ(fcntl(h, F_GETFL) & O_ACCMODE, a);
			OK(fs->close(h));
		}
		if (cut) {
			OK(fs->truncate("tfile", 5));
		}
		if (made) {
			wipe("nothing");
			wipe("tnothing");
		}
	}
}

/* What each way of opening allows. */
static void rights(void)
{
	static const struct { const char *name; int flags; bool r, w; bool vfs_only; } ways[] = {
		{ "O_RDONLY", O_RDONLY, true, false },
		{ "O_WRONLY", O_WRONLY, false, true },
		{ "O_RDWR", O_RDWR, true, true },
		{ "O_WRONLY|O_APPEND", O_WRONLY | O_APPEND, false, true },
		{ "O_RDWR|O_APPEND", O_RDWR | O_APPEND, true, true },
		{ "O_PATH", O_PATH, false, false, true },
		{ "O_CREAT of mode 0, O_WRONLY", O_WRONLY | O_CREAT | O_EXCL, false, true },
		{ "O_CREAT of mode 0, O_RDWR", O_RDWR | O_CREAT | O_EXCL, true, true },
		{ "O_TMPFILE|O_RDWR", O_TMPFILE | O_RDWR, true, true, true },
		{ "O_TMPFILE|O_WRONLY", O_TMPFILE | O_WRONLY, false, true, true },
	};
	const struct timespec ts[2] = { { 1, 1 }, { 2, 2 } };
	struct iovec iov;
	char c = 'c';
	size_t i;

	iov.iov_base = &c;
	iov.iov_len = 1;
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		bool path = ways[i].flags & O_PATH;
		int bad_w = ways[i].w ? 0 : EBADF, bad_r = ways[i].r ? 0 : EBADF, h = -1;
		struct stat st;

		if (ways[i].vfs_only && !on_vfs())
			continue;
		if (live()) {
			wipe("f");
			if (!(ways[i].flags & O_EXCL))
				make_file("f", 5, 0644);
			h = fs->open((ways[i].flags & O_TMPFILE) == O_TMPFILE ? "." : "f", ways[i].flags, 0);
		}
		if (row("open-rights/%s: open", ways[i].name))
			OK(h);
		if (row("open-rights/%s: pread %s", ways[i].name, err_name(bad_r)))
			GIVES(fs->pread(h, &c, 1, 0), bad_r);
		if (row("open-rights/%s: preadv %s", ways[i].name, err_name(bad_r)))
			GIVES(fs->preadv(h, &iov, 1, 0), bad_r);
		if (row("open-rights/%s: pwrite %s", ways[i].name, err_name(bad_w)))
			GIVES(fs->pwrite(h, &c, 1, 0), bad_w);
		if (row("open-rights/%s: pwritev %s", ways[i].name, err_name(bad_w)))
			GIVES(fs->pwritev(h, &iov, 1, 0), bad_w);
		if (row("open-rights/%s: pread of no bytes %s", ways[i].name, err_name(bad_r)))
			GIVES(fs->pread(h, &c, 0, 0), bad_r);
		if (row("open-rights/%s: pwrite of no bytes %s", ways[i].name, err_name(bad_w)))
			GIVES(fs->pwrite(h, &c, 0, 0), bad_w);
		/* POSIX: EINVAL or EBADF when it is not open for writing; Linux says EINVAL. */
		if (row("open-rights/%s: ftruncate %s", ways[i].name, path ? "EBADF" : ways[i].w ? "0" : "EINVAL"))
			GIVES(fs->ftruncate(h, 3), path ? EBADF : ways[i].w ? 0 : EINVAL);
		if (row("open-rights/%s: fstat", ways[i].name))
			OK(fs->fstat(h, &st));
		if (row("open-rights/%s: fchmod %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(fs->fchmod(h, 0600), path ? EBADF : 0);
		if (row("open-rights/%s: fchown %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(fs->fchown(h, 1, 1), path ? EBADF : 0);
		if (row("open-rights/%s: futimens", ways[i].name))
			GIVES(fs->futimens(h, ts), path ? EBADF : 0);
		if (row("open-rights/%s: fsetxattr %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(fs->fsetxattr(h, "user.a", "b", 1, 0), path ? EBADF : 0);
		if (row("open-rights/%s: fsync %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(fs->fsync(h), path ? EBADF : 0);
		if (row("open-rights/%s: fallocate %s", ways[i].name, err_name(bad_w)))
			GIVES(fs->fallocate(h, 0, 0, 10), bad_w);
		if (row("open-rights/%s: SEEK_DATA %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(fs->lseek(h, 0, SEEK_DATA), path ? EBADF : 0);
		if (!on_vfs())
			goto next;
		if (row("open-rights/%s: read %s", ways[i].name, err_name(bad_r)))
			GIVES(sys(read(h, &c, 1)), bad_r);
		if (row("open-rights/%s: write %s", ways[i].name, err_name(bad_w)))
			GIVES(sys(write(h, &c, 1)), bad_w);
		if (row("open-rights/%s: lseek %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(sys(lseek(h, 0, SEEK_SET)), path ? EBADF : 0);
		if (row("open-rights/%s: dup", ways[i].name)) {
			int d = dup(h);

			OK(sys(d));
			close(d);
		}
		if (row("open-rights/%s: fcntl F_SETFL O_APPEND %s", ways[i].name, path ? "EBADF" : "0"))
			GIVES(sys(fcntl(h, F_SETFL, O_APPEND)), path ? EBADF : 0);
next:
		if (h >= 0)
			fs->close(h);
	}
	/* O_NOATIME is the owner's. */
	if (on_vfs()) {
		if (row("open-rights/O_NOATIME by another: EPERM")) {
			wipe("f");
			make_file("f", 5, 0666);
			be(&OTHER);
			GIVES(fs->open("f", O_RDONLY | O_NOATIME, 0), EPERM);
		}
		if (row("open-rights/O_NOATIME by the owner")) {
			int h;

			wipe("f");
			make_file("f", 5, 0666);
			OK(fs->chown("f", OWNER.uid, OWNER.gid));
			be(&OWNER);
			h = fs->open("f", O_RDONLY | O_NOATIME, 0);
			OK(h);
			fs->close(h);
		}
		if (row("open-rights/access mode 3 gives neither")) {
			int h = fs->open("f", O_ACCMODE, 0);
			char b;

			OK(h);
			GIVES(fs->pread(h, &b, 1, 0), EBADF);
			GIVES(fs->pwrite(h, &b, 1, 0), EBADF);
			fs->close(h);
		}
	}
}

/* A file without a name. */
static void tmpfiles(void)
{
	char proc[64], c[8] = "";
	struct stat st, before, after;
	int h;

	if (row("tmpfile/has no link, the mode asked for, and no name anywhere")) {
		OK(fs->stat(".", &before));
		h = fs->open(".", O_TMPFILE | O_RDWR, 04751);
		OK(h);
		OK(fs->fstat(h, &st));
		EQ(st.st_nlink, 0);
		EQ(st.st_mode, S_IFREG | 04751);
		OK(fs->stat(".", &after));
		EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
		EQ(before.st_size, after.st_size);
		fs->close(h);
	}
	if (row("tmpfile/keeps what is written")) {
		h = fs->open(".", O_TMPFILE | O_RDWR, 0600);
		EQ(fs->pwrite(h, "hello", 5, 70000), 5);
		EQ(fs->pread(h, c, 8, 70000), 5);
		WANT(!memcmp(c, "hello", 5));
		OK(fs->ftruncate(h, 1));
		OK(fs->fstat(h, &st));
		EQ(st.st_size, 1);
		fs->close(h);
	}
	if (row("tmpfile/gets a name by linkat of its descriptor")) {
		h = fs->open(".", O_TMPFILE | O_RDWR, 0600);
		EQ(fs->pwrite(h, "hello", 5, 0), 5);
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", h);
		OK(sys(linkat(AT_FDCWD, proc, AT_FDCWD, "named", AT_SYMLINK_FOLLOW)));
		OK(fs->fstat(h, &st));
		EQ(st.st_nlink, 1);
		EQ(ino_of("named"), st.st_ino);
		fs->close(h);
		OK(fs->stat("named", &st));
		EQ(st.st_size, 5);
		wipe("named");
	}
	if (row("tmpfile/gets a name by AT_EMPTY_PATH")) {
		h = fs->open(".", O_TMPFILE | O_RDWR, 0600);
		OK(sys(linkat(h, "", AT_FDCWD, "named", AT_EMPTY_PATH)));
		fs->close(h);
		WANT(exists("named"));
		wipe("named");
	}
	if (row("tmpfile/with O_EXCL never gets a name")) {
		h = fs->open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600);
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", h);
		GIVES(sys(linkat(AT_FDCWD, proc, AT_FDCWD, "named", AT_SYMLINK_FOLLOW)), ENOENT);
		fs->close(h);
		WANT(!exists("named"));
	}
	if (row("tmpfile/the umask counts")) {
		fs->umask(027);
		h = fs->open(".", O_TMPFILE | O_RDWR, 0777);
		fs->umask(0);
		OK(fs->fstat(h, &st));
		EQ(st.st_mode & 07777, 0750);
		fs->close(h);
	}
	if (row("tmpfile/in a set-group-id directory gets its group")) {
		OK(fs->mkdir("sg", 0777));
		OK(fs->chown("sg", -1, G_NONE));
		OK(fs->chmod("sg", 02777));
		be(&OTHER);
		h = fs->open("sg", O_TMPFILE | O_RDWR, 0600);
		OK(fs->fstat(h, &st));
		EQ(st.st_gid, G_NONE);
		EQ(st.st_uid, OTHER.uid);
		fs->close(h);
	}
	if (row("tmpfile/has attributes")) {
		h = fs->open(".", O_TMPFILE | O_RDWR, 0600);
		OK(fs->fsetxattr(h, "user.a", "bc", 2, 0));
		EQ(fs->fgetxattr(h, "user.a", c, 8), 2);
		fs->close(h);
	}
}

const struct table tables_open[] = {
	{ "open", matrix },
	{ "open-rights", rights },
	{ "tmpfile", tmpfiles, true },
	{ NULL },
};
