// SPDX-License-Identifier: GPL-2.0-only
/*
 * namespace.c - link, unlink, rmdir, mkdir and mknod on every type of file: what they do, what they
 * refuse, and what they do to link counts.
 */
#include "conform.h"
#include <sys/sysmacros.h>

static bool is_dir(enum type t)
{
	return t == T_DIR || t == T_FULLDIR;
}

static nlink_t nlink_of(const char *path)
{
	struct stat st = { 0 };

	OK(fs->lstat(path, &st));
	return st.st_nlink;
}

/* Of an x of type @t: it is gone, or nothing has changed. */
static void removal(int (*call)(const char *path), enum type t, int err)
{
	struct snap snap;

	make("x", t);
	snap_take(&snap, "x", ".", NULL);
	GIVES(call("x"), err);
	if (err)
		SAME(&snap);
	else
		WANT(!exists("x"));
	wipe("x");
	WANT(exists("tfile") && exists("tdir"));
}

static void unlinks(void)
{
	enum type t;
	int err;

	if (live())
		make_targets(".");
	for (t = 0; t < T_MAX; t++) {
		err = t == T_NONE ? ENOENT : is_dir(t) ? EISDIR : 0;
		if (row("unlink/%s: %s", type_name[t], err_name(err)))
			removal(fs->unlink, t, err);
		err = t == T_NONE ? ENOENT : t == T_DIR ? 0 : t == T_FULLDIR ? ENOTEMPTY : ENOTDIR;
		if (row("rmdir/%s: %s", type_name[t], err_name(err)))
			removal(fs->rmdir, t, err);
		if (t == T_NONE || is_dir(t))
			continue;
		if (row("unlink/%s with two names keeps the other", type_name[t])) {
			make("x", t);
			OK(fs->link("x", "y"));
			EQ(nlink_of("x"), 2);
			OK(fs->unlink("x"));
			EQ(nlink_of("y"), 1);
			WANT(!exists("x"));
			OK(fs->unlink("y"));
		}
	}
	if (row("rmdir/the last entry's removal makes it empty")) {
		OK(fs->mkdir("d", 0755));
		make("d/f", T_FILE);
		make("d/s", T_SYMFILE);
		GIVES(fs->rmdir("d"), ENOTEMPTY);
		OK(fs->unlink("d/f"));
		GIVES(fs->rmdir("d"), ENOTEMPTY);
		OK(fs->unlink("d/s"));
		OK(fs->rmdir("d"));
	}
	if (row("rmdir/a directory with a directory: ENOTEMPTY")) {
		OK(fs->mkdir("d", 0755));
		OK(fs->mkdir("d/e", 0755));
		GIVES(fs->rmdir("d"), ENOTEMPTY);
		OK(fs->rmdir("d/e"));
		OK(fs->rmdir("d"));
	}
	if (on_vfs() && row("rmdir/the root of the file system: EBUSY"))
		GIVES(fs->rmdir("/"), EBUSY);
	if (on_vfs() && row("unlinkat/AT_REMOVEDIR of a file: ENOTDIR"))
		GIVES(sys(unlinkat(AT_FDCWD, "tfile", AT_REMOVEDIR)), ENOTDIR);
	if (on_vfs() && row("unlinkat/unknown flags: EINVAL"))
		GIVES(sys(unlinkat(AT_FDCWD, "tfile", 0x10000)), EINVAL);
	if (on_vfs() && row("unlinkat/of a descriptor that is no directory: ENOTDIR")) {
		int h = open("tfile", O_RDONLY);

		GIVES(sys(unlinkat(h, "x", 0)), ENOTDIR);
		close(h);
	}
	if (on_vfs() && row("unlinkat/of no descriptor: EBADF"))
		GIVES(sys(unlinkat(-5, "tfile", 0)), EBADF);
}

static void linking(void)
{
	enum type from, to;
	struct stat a, b;

	if (live())
		make_targets(".");
	for (from = 0; from < T_MAX; from++) {
		for (to = 0; to < T_MAX; to++) {
			int err = from == T_NONE ? ENOENT : to != T_NONE ? EEXIST : is_dir(from) ? EPERM : 0;
			struct snap snap;

			if (!row("link/%s to %s: %s", type_name[from], type_name[to], err_name(err)))
				continue;
			make("a", from);
			make("b", to);
			snap_take(&snap, "a", "b", ".", NULL);
			GIVES(fs->link("a", "b"), err);
			if (err) {
				SAME(&snap);
			} else {
				OK(fs->lstat("a", &a));
				OK(fs->lstat("b", &b));
				EQ(a.st_ino, b.st_ino);
				EQ(a.st_nlink, 2);
				EQ(b.st_nlink, 2);
				EQ(b.st_mode & S_IFMT, type_ifmt(from));
			}
			wipe("a");
			wipe("b");
		}
	}
	if (row("link/a name to itself: EEXIST")) {
		GIVES(fs->link("tfile", "tfile"), EEXIST);
		EQ(nlink_of("tfile"), 1);
	}
	if (row("link/what is changed by one name is seen by the other")) {
		int h;

		OK(fs->link("tfile", "tdir/other"));
		h = fs->open("tdir/other", O_RDWR, 0);
		EQ(fs->pwrite(h, "0123456789", 10, 0), 10);
		OK(fs->close(h));
		OK(fs->chmod("tdir/other", 0600));
		OK(fs->stat("tfile", &a));
		EQ(a.st_size, 10);
		EQ(a.st_mode, S_IFREG | 0600);
		OK(fs->unlink("tdir/other"));
		EQ(nlink_of("tfile"), 1);
	}
	if (row("link/100 names, and back")) {
		char name[32];
		int i;

		for (i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "tdir/n%d", i);
			OK(fs->link("tfile", name));
		}
		EQ(nlink_of("tfile"), 101);
		for (i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "tdir/n%d", i);
			OK(fs->unlink(name));
		}
		EQ(nlink_of("tfile"), 1);
	}
	if (on_vfs() && row("linkat/AT_SYMLINK_FOLLOW links the file")) {
		make("s", T_SYMFILE);
		OK(sys(linkat(AT_FDCWD, "s", AT_FDCWD, "l", AT_SYMLINK_FOLLOW)));
		EQ(ino_of("l"), ino_of("tfile"));
		wipe("s");
		wipe("l");
	}
	if (on_vfs() && row("linkat/AT_SYMLINK_FOLLOW of a dangling link: ENOENT")) {
		make("s", T_DANGLING);
		GIVES(sys(linkat(AT_FDCWD, "s", AT_FDCWD, "l", AT_SYMLINK_FOLLOW)), ENOENT);
		wipe("s");
	}
	if (on_vfs() && row("linkat/unknown flags: EINVAL"))
		GIVES(sys(linkat(AT_FDCWD, "tfile", AT_FDCWD, "l", 0x8000)), EINVAL);
	if (on_vfs() && row("linkat/a descriptor whose file has lost its names: ENOENT")) {
		char proc[64];
		int h;

		make("u", T_FILE);
		h = open("u", O_RDWR);
		OK(fs->unlink("u"));
		snprintf(proc, sizeof(proc), "/proc/self/fd/%d", h);
		GIVES(sys(linkat(AT_FDCWD, proc, AT_FDCWD, "l", AT_SYMLINK_FOLLOW)), ENOENT);
		WANT(!exists("l"));
		close(h);
	}
	if (on_vfs() && row("link/to another file system: EXDEV"))
		GIVES(fs->link("/proc/self/status", "l"), EXDEV);
}

static void making(void)
{
	static const struct { const char *name; mode_t mode; dev_t dev; int other; } nodes[] = {
		{ "fifo", S_IFIFO, 0, 0 },
		{ "socket", S_IFSOCK, 0, 0 },
		{ "file", S_IFREG, 0, 0 },
		{ "file, no type", 0, 0, 0 },
		{ "character device 1:3", S_IFCHR, 0x103, EPERM },
		{ "block device 240:77", S_IFBLK, 0xf04d, EPERM },
		{ "character device 0:0", S_IFCHR, 0, -1 },
		{ "device of large numbers", S_IFCHR, 0xabcde, EPERM },
		{ "character device, largest numbers", S_IFCHR, 0xffffffff, EPERM },
		{ "directory", S_IFDIR, 0, EPERM },
		{ "symbolic link", S_IFLNK, 0, EINVAL },
		{ "no known type", 0150000, 0, EINVAL },
	};
	static const mode_t modes[] = { 0, 0644, 0777, 07777, 01755 };
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	size_t i, m, u;
	struct stat st;
	enum type t;

	for (i = 0; i < ARRAY_SIZE(nodes); i++) {
		int err = nodes[i].mode == S_IFDIR ? EPERM : nodes[i].other == EINVAL ? EINVAL : 0;
		dev_t dev = nodes[i].dev;

		/* Numbers as the system call has them: 12 bits and 20. */
		if (dev == 0xabcde)
			dev = makedev(300, 70000);
		if (dev == 0xffffffff)
			dev = makedev(4095, 1048575);
		if (dev == 0x103 || dev == 0xf04d)
			dev = makedev(dev >> 8, dev & 0xff);
		if (row("mknod/%s by root: %s", nodes[i].name, err_name(err))) {
			GIVES(fs->mknod("n", nodes[i].mode | 0640, dev), err);
			if (err) {
				WANT(!exists("n"));
			} else {
				OK(fs->lstat("n", &st));
				EQ(st.st_mode, (nodes[i].mode ? nodes[i].mode : S_IFREG) | 0640);
				if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
					EQ(major(st.st_rdev), major(dev));
					EQ(minor(st.st_rdev), minor(dev));
				}
				EQ(st.st_size, 0);
				EQ(st.st_nlink, 1);
			}
			wipe("n");
		}
		/* A whiteout, 0:0, needs no privilege. */
		err = nodes[i].other == -1 ? 0 : nodes[i].other;
		if (row("mknod/%s by one who is not root: %s", nodes[i].name, err_name(err))) {
			OK(fs->chmod(".", 0777));
			be(&OTHER);
			GIVES(fs->mknod("n", nodes[i].mode | 0640, dev), err);
			be(&ROOT);
			EQ(exists("n"), !err);
			wipe("n");
		}
	}
	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		for (u = 0; u < ARRAY_SIZE(masks); u++) {
			mode_t want = modes[m] & ~masks[u];
			int h;

			if (row("umask/%03o, mkdir of %04o", masks[u], modes[m])) {
				fs->umask(masks[u]);
				OK(fs->mkdir("n", modes[m]));
				fs->umask(0);
				OK(fs->stat("n", &st));
				/* mkdir takes the permissions and the sticky bit. */
				EQ(st.st_mode & 07777, want & 01777);
				EQ(st.st_nlink, 2);
				wipe("n");
			}
			if (row("umask/%03o, open of %04o", masks[u], modes[m])) {
				fs->umask(masks[u]);
				h = fs->open("n", O_RDWR | O_CREAT | O_EXCL, modes[m]);
				OK(h);
				fs->umask(0);
				OK(fs->fstat(h, &st));
				EQ(st.st_mode & 07777, want);
				fs->close(h);
				wipe("n");
			}
			if (row("umask/%03o, mknod of %04o", masks[u], modes[m])) {
				fs->umask(masks[u]);
				OK(fs->mknod("n", S_IFIFO | modes[m], 0));
				fs->umask(0);
				OK(fs->stat("n", &st));
				EQ(st.st_mode & 07777, want);
				wipe("n");
			}
		}
	}
	if (row("umask/chmod does not heed it")) {
		make("n", T_FILE);
		fs->umask(0777);
		OK(fs->chmod("n", 0666));
		fs->umask(0);
		OK(fs->stat("n", &st));
		EQ(st.st_mode & 07777, 0666);
		wipe("n");
	}
	if (live())
		make_targets(".");
	for (t = 1; t < T_MAX; t++) {
		struct snap snap;

		if (row("mkdir/on %s: EEXIST", type_name[t])) {
			make("n", t);
			snap_take(&snap, "n", ".", "tfile", "tdir", NULL);
			GIVES(fs->mkdir("n", 0755), EEXIST);
			SAME(&snap);
			wipe("n");
		}
		if (row("mknod/on %s: EEXIST", type_name[t])) {
			make("n", t);
			snap_take(&snap, "n", ".", "tfile", "tdir", NULL);
			GIVES(fs->mknod("n", S_IFIFO | 0644, 0), EEXIST);
			SAME(&snap);
			wipe("n");
		}
		if (row("symlink/on %s: EEXIST", type_name[t])) {
			make("n", t);
			snap_take(&snap, "n", ".", "tfile", "tdir", NULL);
			GIVES(fs->symlink("tfile", "n"), EEXIST);
			SAME(&snap);
			wipe("n");
		}
	}
}

/* A directory has two links, and one for each directory in it. */
static void counts(void)
{
	char name[32];
	int i;

	if (live()) {
		OK(fs->mkdir("d", 0755));
		OK(fs->mkdir("e", 0755));
	}
	if (row("nlink/a new directory has 2"))
		EQ(nlink_of("d"), 2);
	if (row("nlink/files in it do not count")) {
		make("d/f", T_FILE);
		EQ(nlink_of("d"), 2);
		wipe("d/f");
	}
	if (row("nlink/20 directories in it do")) {
		for (i = 0; i < 20; i++) {
			snprintf(name, sizeof(name), "d/%d", i);
			OK(fs->mkdir(name, 0755));
			EQ(nlink_of("d"), 3 + i);
		}
		for (i = 0; i < 20; i++) {
			snprintf(name, sizeof(name), "d/%d", i);
			OK(fs->rmdir(name));
		}
		EQ(nlink_of("d"), 2);
	}
	if (row("nlink/one that is moved counts elsewhere")) {
		OK(fs->mkdir("d/x", 0755));
		OK(fs->rename("d/x", "e/x", 0));
		EQ(nlink_of("d"), 2);
		EQ(nlink_of("e"), 3);
	}
	if (row("nlink/one that is moved over another")) {
		OK(fs->mkdir("d/y", 0755));
		OK(fs->rename("d/y", "e/x", 0));
		EQ(nlink_of("d"), 2);
		EQ(nlink_of("e"), 3);
	}
	if (row("nlink/one that is exchanged with a file elsewhere")) {
		make("d/f", T_FILE);
		OK(fs->rename("d/f", "e/x", 2));
		EQ(nlink_of("d"), 3);
		EQ(nlink_of("e"), 2);
		wipe("d/f");
		wipe("e/x");
		EQ(nlink_of("d"), 2);
	}
	if (row("nlink/a removed directory that is open has none")) {
		struct stat st;
		int h;

		if (!on_vfs()) {
			GIVES(fs->rmdir("d/f"), ENOENT);
		} else {
			OK(fs->mkdir("gone", 0755));
			h = open("gone", O_RDONLY);
			OK(fs->rmdir("gone"));
			OK(fs->fstat(h, &st));
			EQ(st.st_nlink, 0);
			GIVES(sys(mkdirat(h, "x", 0755)), ENOENT);
			GIVES(sys(openat(h, "x", O_CREAT | O_RDWR, 0644)), ENOENT);
			GIVES(sys(openat(h, "x", O_RDONLY)), ENOENT);
			GIVES(sys(symlinkat("a", h, "x")), ENOENT);
			make("file", T_FILE);
			GIVES(sys(linkat(AT_FDCWD, "file", h, "x", 0)), ENOENT);
			GIVES(sys(renameat(AT_FDCWD, "file", h, "x")), ENOENT);
			EQ(nlink_of("file"), 1);
			close(h);
		}
	}
	if (row("nlink/dotdot is the new parent after a move")) {
		struct stat st;

		OK(fs->mkdir("d/m", 0755));
		OK(fs->rename("d/m", "e/m", 0));
		OK(fs->stat("e/m/..", &st));
		EQ(st.st_ino, ino_of("e"));
		wipe("e/m");
	}
}

const struct table tables_namespace[] = {
	{ "unlink", unlinks },
	{ "link", linking },
	{ "mknod", making },
	{ "nlink", counts },
	{ NULL },
};
