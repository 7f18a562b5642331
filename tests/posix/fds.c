// SPDX-License-Identifier: GPL-2.0-only
/*
 * fds.c - the ...at calls: every call by a path that is relative to a descriptor of every kind.
 * What the file system gives for a directory that is searched, a file, O_PATH, a removed directory,
 * none at all.
 */
#include "conform.h"
#include <sys/stat.h>
#include <sys/syscall.h>

static int at_open(int d)
{
	int h = sys(openat(d, "in", O_RDONLY));

	if (h >= 0)
		close(h);
	return h < 0 ? h : 0;
}

static int at_creat(int d)
{
	int h = sys(openat(d, "new", O_RDWR | O_CREAT | O_EXCL, 0644));

	if (h < 0)
		return h;
	close(h);
	return sys(unlinkat(d, "new", 0));
}

static int at_stat(int d)
{
	struct stat st;

	return sys(fstatat(d, "in", &st, 0));
}

static int at_statx(int d)
{
	struct statx st;

	return sys(statx(d, "in", 0, STATX_SIZE, &st));
}

static int at_access(int d)
{
	return sys(faccessat(d, "in", R_OK, 0));
}

static int at_chmod(int d)
{
	return sys(fchmodat(d, "in", 0644, 0));
}

static int at_chown(int d)
{
	return sys(fchownat(d, "in", 0, 0, 0));
}

static int at_utimens(int d)
{
	return sys(utimensat(d, "in", NULL, 0));
}

static int at_mkdir(int d)
{
	int r = sys(mkdirat(d, "new", 0755));

	return r ? r : sys(unlinkat(d, "new", AT_REMOVEDIR));
}

static int at_mknod(int d)
{
	int r = sys(mknodat(d, "new", S_IFIFO | 0644, 0));

	return r ? r : sys(unlinkat(d, "new", 0));
}

static int at_symlink(int d)
{
	int r = sys(symlinkat("to", d, "new"));

	return r ? r : sys(unlinkat(d, "new", 0));
}

static int at_link_from(int d)
{
	int r = sys(linkat(d, "in", AT_FDCWD, "linked", 0));

	return r ? r : fs->unlink("linked");
}

static int at_link_to(int d)
{
	int r = sys(linkat(AT_FDCWD, "file", d, "new", 0));

	return r ? r : sys(unlinkat(d, "new", 0));
}

static int at_readlink(int d)
{
	char c[16];
	int r = sys(readlinkat(d, "l", c, sizeof(c)));

	return r < 0 ? r : 0;
}

static int at_unlink(int d)
{
	int r = sys(unlinkat(d, "missing", 0));

	/* That is what a directory with other names gives. */
	return r == -ENOENT && !faccessat(d, "in", F_OK, 0) ? 0 : r;
}

static int at_rename_from(int d)
{
	int r = sys(renameat(d, "in", AT_FDCWD, "moved"));

	return r ? r : sys(renameat(AT_FDCWD, "moved", d, "in"));
}

static int at_rename_to(int d)
{
	int r = sys(renameat(AT_FDCWD, "file", d, "moved"));

	return r ? r : sys(renameat(d, "moved", AT_FDCWD, "file"));
}

static const struct {
	const char *name;
	int (*run)(int dir);
} calls[] = {
	{ "openat", at_open }, { "openat O_CREAT", at_creat }, { "fstatat", at_stat }, { "statx", at_statx },
	{ "faccessat", at_access }, { "fchmodat", at_chmod }, { "fchownat", at_chown }, { "utimensat", at_utimens },
	{ "mkdirat", at_mkdir }, { "mknodat", at_mknod }, { "symlinkat", at_symlink }, { "linkat from", at_link_from },
	{ "linkat to", at_link_to }, { "readlinkat", at_readlink }, { "unlinkat", at_unlink },
	{ "renameat from", at_rename_from }, { "renameat to", at_rename_to },
};

static int a_dir(void)
{
	return open("d", O_RDONLY | O_DIRECTORY);
}

static int a_path(void)
{
	return open("d", O_PATH);
}

static int renamed(void)
{
	int h = open("d", O_RDONLY);

	OK(fs->rename("d", "e", 0));
	OK(fs->rename("e", "d", 0));
	return h;
}

static int removed(void)
{
	int h;

	OK(fs->mkdir("gone", 0755));
	h = open("gone", O_RDONLY);
	OK(fs->rmdir("gone"));
	return h;
}

static int a_file(void)
{
	return open("file", O_RDONLY);
}

static int a_file_path(void)
{
	return open("file", O_PATH);
}

static int a_link_path(void)
{
	return open("link", O_PATH | O_NOFOLLOW);
}

static int a_fifo(void)
{
	return open("fifo", O_RDONLY | O_NONBLOCK);
}

static int a_device(void)
{
	return open("chr", O_RDONLY);
}

static int a_pipe(void)
{
	int p[2];

	OK(sys(pipe(p)));
	close(p[1]);
	return p[0];
}

static int closed(void)
{
	int h = open("d", O_RDONLY);

	close(h);
	return h;
}

static const struct {
	const char *name;
	int (*get)(void);
	int err;
} fds[] = {
	{ "a directory", a_dir, 0 },
	{ "a directory by O_PATH", a_path, 0 },
	{ "a directory that was renamed", renamed, 0 },
	{ "a removed directory", removed, ENOENT },
	{ "a file", a_file, ENOTDIR },
	{ "a file by O_PATH", a_file_path, ENOTDIR },
	{ "a link by O_PATH", a_link_path, ENOTDIR },
	{ "a fifo", a_fifo, ENOTDIR },
	{ "a device", a_device, ENOTDIR },
	{ "a pipe", a_pipe, ENOTDIR },
	{ "a closed descriptor", closed, EBADF },
};

static void at_calls(void)
{
	size_t c, f;

	if (live()) {
		OK(fs->mkdir("d", 0755));
		make_file("d/in", 5, 0644);
		OK(fs->symlink("in", "d/l"));
		make_file("file", 5, 0644);
		OK(fs->symlink("d", "link"));
		make("fifo", T_FIFO);
		make("chr", T_CHR);
	}
	for (f = 0; f < ARRAY_SIZE(fds); f++) {
		for (c = 0; c < ARRAY_SIZE(calls); c++) {
			int h, r;

			if (!row("at/%s by %s: %s", calls[c].name, fds[f].name, err_name(fds[f].err)))
				continue;
			h = fds[f].get();
			r = calls[c].run(h);
			GIVES(r, fds[f].err);
			if (fds[f].get != closed)
				close(h);
			WANT(exists("d/in") && exists("file") && !exists("d/new"));
		}
	}
	/* An absolute path needs no descriptor. */
	for (c = 0; c < 2; c++) {
		struct stat st;

		if (row("at/an absolute path by %s", c ? "a file" : "no descriptor")) {
			int h = c ? a_file() : -77;

			OK(sys(fstatat(h, "/", &st, 0)));
			if (c)
				close(h);
		}
	}
}

const struct table tables_fds[] = {
	{ "at", at_calls, true },
	{ NULL },
};
