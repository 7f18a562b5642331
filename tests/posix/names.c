// SPDX-License-Identifier: GPL-2.0-only
/*
 * names.c - paths: every call that takes one, with every way in which one can be wrong or odd. What
 * a call gives is worked out from the kind of call and the kind of path; none of those that fail
 * may change anything.
 */
#include "conform.h"
#include <limits.h>
#include <sys/inotify.h>
#include <sys/statvfs.h>

/* ---- calls ---- */

static int opened(int h)
{
	return h < 0 ? h : fs->close(h);
}

static int p_open(const char *p)
{
	return opened(fs->open(p, O_RDONLY | O_NONBLOCK, 0));
}

static int p_creat(const char *p)
{
	return opened(fs->open(p, O_RDWR | O_CREAT, 0644));
}

static int p_excl(const char *p)
{
	return opened(fs->open(p, O_RDWR | O_CREAT | O_EXCL, 0644));
}

static int p_opath(const char *p)
{
	return opened(fs->open(p, O_PATH, 0));
}

static int p_nofollow(const char *p)
{
	return opened(fs->open(p, O_PATH | O_NOFOLLOW, 0));
}

static int p_stat(const char *p)
{
	struct stat st;

	return fs->stat(p, &st);
}

static int p_lstat(const char *p)
{
	struct stat st;

	return fs->lstat(p, &st);
}

static int p_access(const char *p)
{
	return fs->access(p, F_OK);
}

static int p_truncate(const char *p)
{
	return fs->truncate(p, 5);
}

static int p_chmod(const char *p)
{
	return fs->chmod(p, 0755);
}

static int p_chown(const char *p)
{
	return fs->chown(p, 0, 0);
}

static int p_lchown(const char *p)
{
	return fs->lchown(p, 0, 0);
}

static const struct timespec when[2] = { { 1000000000, 0 }, { 1000000000, 0 } };

static int p_utimens(const char *p)
{
	return fs->utimens(p, when);
}

static int p_lutimens(const char *p)
{
	return fs->lutimens(p, when);
}

static int p_mkdir(const char *p)
{
	return fs->mkdir(p, 0755);
}

static int p_mkfifo(const char *p)
{
	return fs->mknod(p, S_IFIFO | 0644, 0);
}

static int p_mkreg(const char *p)
{
	return fs->mknod(p, S_IFREG | 0644, 0);
}

static int p_rmdir(const char *p)
{
	return fs->rmdir(p);
}

static int p_unlink(const char *p)
{
	return fs->unlink(p);
}

static int p_rename_from(const char *p)
{
	return fs->rename(p, "spare", 0);
}

static int p_rename_to(const char *p)
{
	return fs->rename("own", p, 0);
}

static int p_rename_dir_to(const char *p)
{
	return fs->rename("owndir", p, 0);
}

static int p_link_from(const char *p)
{
	return fs->link(p, "spare");
}

static int p_link_to(const char *p)
{
	return fs->link("own", p);
}

static int p_symlink(const char *p)
{
	return fs->symlink("somewhere", p);
}

static int p_readlink(const char *p)
{
	char buf[300];

	return fs->readlink(p, buf, sizeof(buf));
}

static int p_getxattr(const char *p)
{
	return fs->getxattr(p, "trusted.none", NULL, 0);
}

static int p_lgetxattr(const char *p)
{
	return fs->lgetxattr(p, "trusted.none", NULL, 0);
}

static int p_setxattr(const char *p)
{
	return fs->setxattr(p, "trusted.a", "b", 1, 0);
}

static int p_lsetxattr(const char *p)
{
	return fs->lsetxattr(p, "trusted.a", "b", 1, 0);
}

static int p_listxattr(const char *p)
{
	return fs->listxattr(p, NULL, 0);
}

static int p_llistxattr(const char *p)
{
	return fs->llistxattr(p, NULL, 0);
}

static int p_removexattr(const char *p)
{
	return fs->removexattr(p, "trusted.none");
}

static int p_opendir(const char *p)
{
	int h = fs->opendir(p);

	return h < 0 ? h : fs->closedir(h);
}

static int p_chdir(const char *p)
{
	int r, here = open(".", O_PATH);

	r = sys(chdir(p));
	if (!r && fchdir(here))
		r = -EIO;
	close(here);
	return r;
}

static int p_statvfs(const char *p)
{
	struct statvfs st;

	return sys(statvfs(p, &st));
}

static int p_execve(const char *p)
{
	char *none[] = { NULL };

	return sys(execve(p, none, none));
}

static int p_watch(const char *p)
{
	int h = inotify_init1(IN_CLOEXEC), r = sys(inotify_add_watch(h, p, IN_ATTRIB));

	close(h);
	return r;
}

enum kind {
	LOOKS,		/* at something that is there; follows a link at the end */
	LOOKS_AT_LINK,	/* the same, without following */
	MAKES,		/* what must not be there */
	MAKES_DIR,
	MAKES_OPEN,	/* opens, or makes a file; follows */
	REMOVES,	/* a file */
	REMOVES_DIR,
	MOVES,		/* from here */
	REPLACES,	/* with a file */
	REPLACES_DIR,	/* with a directory */
};

static const struct {
	const char *name;
	int (*run)(const char *path);
	enum kind kind;
	bool vfs_only;
} calls[] = {
	{ "open", p_open, LOOKS },
	{ "open O_CREAT", p_creat, MAKES_OPEN },
	{ "open O_CREAT|O_EXCL", p_excl, MAKES },
	{ "open O_PATH", p_opath, LOOKS, true },
	{ "open O_PATH|O_NOFOLLOW", p_nofollow, LOOKS_AT_LINK, true },
	{ "stat", p_stat, LOOKS },
	{ "lstat", p_lstat, LOOKS_AT_LINK },
	{ "access", p_access, LOOKS },
	{ "truncate", p_truncate, LOOKS },
	{ "chmod", p_chmod, LOOKS },
	{ "chown", p_chown, LOOKS },
	{ "lchown", p_lchown, LOOKS_AT_LINK },
	{ "utimensat", p_utimens, LOOKS },
	{ "utimensat nofollow", p_lutimens, LOOKS_AT_LINK },
	{ "mkdir", p_mkdir, MAKES_DIR },
	{ "mknod of a fifo", p_mkfifo, MAKES },
	{ "mknod of a file", p_mkreg, MAKES },
	{ "rmdir", p_rmdir, REMOVES_DIR },
	{ "unlink", p_unlink, REMOVES },
	{ "rename from", p_rename_from, MOVES },
	{ "rename of a file to", p_rename_to, REPLACES },
	{ "rename of a directory to", p_rename_dir_to, REPLACES_DIR },
	{ "link from", p_link_from, LOOKS_AT_LINK },
	{ "link to", p_link_to, MAKES },
	{ "symlink", p_symlink, MAKES },
	{ "readlink", p_readlink, LOOKS_AT_LINK },
	{ "getxattr", p_getxattr, LOOKS },
	{ "lgetxattr", p_lgetxattr, LOOKS_AT_LINK },
	{ "setxattr", p_setxattr, LOOKS },
	{ "lsetxattr", p_lsetxattr, LOOKS_AT_LINK },
	{ "listxattr", p_listxattr, LOOKS },
	{ "llistxattr", p_llistxattr, LOOKS_AT_LINK },
	{ "removexattr", p_removexattr, LOOKS },
	{ "opendir", p_opendir, LOOKS },
	{ "chdir", p_chdir, LOOKS, true },
	{ "statvfs", p_statvfs, LOOKS, true },
	{ "execve", p_execve, LOOKS, true },
	{ "inotify_add_watch", p_watch, LOOKS, true },
};

/* ---- paths that no call can use ---- */

static char long_255[256], long_256[257], max_path[PATH_MAX + 1], through_long[300], to_long[300];

static const struct {
	const char *name, *path;
	int err;		/* for all calls, but: */
	int at_link;		/* for those that look at a link itself, if not -1 */
	bool vfs_only;
} bad[] = {
	{ "a name of 256 bytes", long_256, ENAMETOOLONG, -1 },
	{ "a directory of 256 bytes", through_long, ENAMETOOLONG, -1 },
	{ "a name of 256 bytes in a directory", to_long, ENAMETOOLONG, -1 },
	{ "a path of PATH_MAX bytes", max_path, ENAMETOOLONG, -1, true },
	{ "an empty path", "", ENOENT, -1, true },
	{ "a missing directory", "missing/x", ENOENT, -1 },
	{ "a missing directory's dot", "missing/.", ENOENT, -1 },
	{ "a missing directory's dotdot", "missing/../tfile", ENOENT, -1 },
	{ "two missing directories", "missing/missing/x", ENOENT, -1 },
	{ "a name below a file", "tfile/x", ENOTDIR, -1 },
	{ "a dot below a file", "tfile/.", ENOTDIR, -1 },
	{ "a dotdot below a file", "tfile/..", ENOTDIR, -1 },
	{ "a dotdot through a file", "tfile/../tfile", ENOTDIR, -1 },
	{ "two names below a file", "tdir/../tfile/x/y", ENOTDIR, -1 },
	{ "a name below a fifo", "fifo/x", ENOTDIR, -1 },
	{ "a name below a socket", "sock/x", ENOTDIR, -1 },
	{ "a name below a device", "chr/x", ENOTDIR, -1 },
	{ "a name below a link to a file", "lfile/x", ENOTDIR, -1 },
	{ "a name below a dangling link", "dangling/x", ENOENT, -1 },
	{ "a name below a link to itself", "loop/x", ELOOP, -1 },
	{ "a name below one of two links to each other", "ping/x", ELOOP, -1 },
	{ "a name below 41 links", "c41/x", ELOOP, -1 },
};

static void build(void)
{
	char name[16], to[16];
	int i;

	make_targets(".");
	make("fifo", T_FIFO);
	make("sock", T_SOCK);
	make("chr", T_CHR);
	make("lfile", T_SYMFILE);
	make("ldir", T_SYMDIR);
	make("dangling", T_DANGLING);
	make("loop", T_LOOP);
	OK(fs->symlink("pong", "ping"));
	OK(fs->symlink("ping", "pong"));
	make_file("own", 5, 0644);
	OK(fs->mkdir("owndir", 0755));
	/* cN is a chain of N links to the directory, fN to the file. */
	for (i = 1; i <= 41; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(to, sizeof(to), i > 1 ? "c%d" : "tdir", i - 1);
		OK(fs->symlink(to, name));
		snprintf(name, sizeof(name), "f%d", i);
		snprintf(to, sizeof(to), i > 1 ? "f%d" : "tfile", i - 1);
		OK(fs->symlink(to, name));
	}
}

static void spell(void)
{
	memset(long_255, 'n', 255);
	memset(long_256, 'n', 256);
	snprintf(through_long, sizeof(through_long), "%s/x", long_256);
	snprintf(to_long, sizeof(to_long), "tdir/%s", long_256);
	memset(max_path, '/', PATH_MAX);
	memcpy(max_path, "tdir", 4);
	max_path[PATH_MAX - 1] = 'x';
}

static void bad_paths(void)
{
	struct snap snap;
	size_t c, b;

	spell();
	if (live())
		build();
	for (b = 0; b < ARRAY_SIZE(bad); b++) {
		if (bad[b].vfs_only && !on_vfs())
			continue;
		for (c = 0; c < ARRAY_SIZE(calls); c++) {
			if (calls[c].vfs_only && !on_vfs())
				continue;
			if (!row("names/%s of %s: %s", calls[c].name, bad[b].name, err_name(bad[b].err)))
				continue;
			snap_take(&snap, ".", "own", "tfile", "tdir", NULL);
			GIVES(calls[c].run(bad[b].path), bad[b].err);
			SAME(&snap);
		}
	}
}

/* ---- odd paths, which some calls can use ---- */

enum odd {
	LOOP, CHAIN_41, DANGLING, FILE_SLASH, FILE_LINK_SLASH, DOT, DOTDOT, DIR_DOT, DIR_DOTDOT, MISSING_SLASH, ODDS
};
static const struct {
	const char *name, *path;
} odds[ODDS] = {
	[LOOP] = { "a link to itself", "loop" },
	[CHAIN_41] = { "a chain of 41 links", "f41" },
	[DANGLING] = { "a dangling link", "dangling" },
	[FILE_SLASH] = { "a file and a slash", "tfile/" },
	[FILE_LINK_SLASH] = { "a link to a file and a slash", "lfile/" },
	[DOT] = { "dot", "." },
	[DOTDOT] = { "dotdot", ".." },
	[DIR_DOT] = { "a directory's dot", "tdir/." },
	[DIR_DOTDOT] = { "a directory's dotdot", "tdir/.." },
	[MISSING_SLASH] = { "a missing name and a slash", "missing/" },
};

/* What the path alone decides; -1 where that depends on the call or it succeeds. */
static int odd_result(enum odd odd, enum kind kind, int (*run)(const char *))
{
	bool looks = kind == LOOKS || kind == LOOKS_AT_LINK;

	switch (odd) {
	case LOOP:
	case CHAIN_41:
		if (kind == LOOKS || kind == MAKES_OPEN)
			return ELOOP;
		return kind == MAKES || kind == MAKES_DIR ? EEXIST : kind == REMOVES_DIR ? ENOTDIR : -1;
	case DANGLING:
		if (kind == LOOKS)
			return ENOENT;
		return kind == MAKES || kind == MAKES_DIR ? EEXIST : kind == REMOVES_DIR ? ENOTDIR : -1;
	case FILE_SLASH:
	case FILE_LINK_SLASH:
		/*
		 * A slash asks for a directory. A name to be made that is there is told before
		 * that.
		 */
		if (run == p_excl || run == p_creat)
			return EISDIR;
		if (kind == MAKES || kind == MAKES_DIR)
			return EEXIST;
		return ENOTDIR;
	case DOT:
	case DIR_DOT:
		if (kind == MAKES_DIR || kind == MAKES)
			return EEXIST;
		if (kind == MAKES_OPEN || kind == REMOVES)
			return EISDIR;
		if (kind == REMOVES_DIR)
			return EINVAL;
		return looks ? -1 : EBUSY;
	case DOTDOT:
	case DIR_DOTDOT:
		if (kind == MAKES_DIR || kind == MAKES)
			return EEXIST;
		if (kind == MAKES_OPEN || kind == REMOVES)
			return EISDIR;
		if (kind == REMOVES_DIR)
			return ENOTEMPTY;
		return looks ? -1 : EBUSY;
	case MISSING_SLASH:
		if (run == p_excl || run == p_creat)
			return EISDIR;
		if (kind == MAKES_DIR || kind == REPLACES_DIR)
			return -1;
		return kind == REPLACES ? ENOTDIR : ENOENT;
	default:
		return -1;
	}
}

static void odd_paths(void)
{
	struct snap snap;
	size_t c;
	int o;

	if (live())
		build();
	for (o = 0; o < ODDS; o++) {
		for (c = 0; c < ARRAY_SIZE(calls); c++) {
			int want = odd_result(o, calls[c].kind, calls[c].run);

			if (want == -1 || (calls[c].vfs_only && !on_vfs()) ||
			    !row("odd-names/%s of %s: %s", calls[c].name, odds[o].name, err_name(want)))
				continue;
			snap_take(&snap, ".", "own", "tfile", "tdir", NULL);
			GIVES(calls[c].run(odds[o].path), want);
			SAME(&snap);
		}
	}
}

/* ---- good paths ---- */

static void good_paths(void)
{
	static const struct { const char *name, *path; bool dir; } t[] = {
		{ "dots", "./././tfile" },
		{ "dotdots", "tdir/../tdir/../tfile" },
		{ "many slashes", "tdir////..//////tfile" },
		{ "a chain of 40 links", "f40" },
		{ "a directory by 39 links", "c39/../tfile" },
		{ "a directory and a slash", "tdir/", true },
		{ "a directory and slashes", "tdir///", true },
		{ "a link to a directory and a slash", "ldir/", true },
		{ "a directory's dot", "tdir/.", true },
		{ "a link to a directory's dot", "ldir/.", true },
		{ "a chain of 40 links to a directory", "c40", true },
		{ "dot", ".", true },
		{ "dotdot", "..", true },
	};
	struct stat st;
	size_t i, k;
	int h;

	if (live())
		build();
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		if (row("good-names/stat of %s", t[i].name)) {
			OK(fs->stat(t[i].path, &st));
			EQ(st.st_mode & S_IFMT, t[i].dir ? S_IFDIR : S_IFREG);
		}
		if (row("good-names/access of %s", t[i].name))
			OK(fs->access(t[i].path, R_OK));
		if (row("good-names/chmod of %s", t[i].name))
			OK(fs->chmod(t[i].path, 0755));
		if (row("good-names/utimensat of %s", t[i].name))
			OK(fs->utimens(t[i].path, when));
		if (row("good-names/setxattr of %s", t[i].name))
			OK(fs->setxattr(t[i].path, "user.name", "v", 1, 0));
		if (t[i].dir && row("good-names/opendir of %s", t[i].name)) {
			h = fs->opendir(t[i].path);
			OK(h);
			if (h >= 0)
				OK(fs->closedir(h));
		}
		if (!t[i].dir && row("good-names/open of %s", t[i].name)) {
			h = fs->open(t[i].path, O_RDWR, 0);
			OK(h);
			if (h >= 0)
				OK(fs->close(h));
		}
	}
	/* All bytes but two are good in a name. */
	for (k = 1; k < 256; k++) {
		char name[8] = { 'b', (char)k, 'e', 0 };
		struct snap snap;

		if (k == '/' || !row("good-names/a name with byte %#04zx", k))
			continue;
		snap_take(&snap, "tfile", NULL);
		h = fs->open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
		OK(h);
		if (h >= 0)
			OK(fs->close(h));
		WANT(exists(name));
		OK(fs->unlink(name));
		WANT(!exists(name));
		SAME(&snap);
	}
	/* The longest name, by everything that makes one. */
	for (k = 0; k < ARRAY_SIZE(calls); k++) {
		enum kind kind = calls[k].kind;

		if ((kind != MAKES && kind != MAKES_DIR && kind != MAKES_OPEN && kind != REPLACES &&
		     kind != REPLACES_DIR) || !row("good-names/%s of a name of 255 bytes", calls[k].name))
			continue;
		spell();
		OK(calls[k].run(long_255));
		WANT(exists(long_255));
		OK(fs->lstat(long_255, &st));
		if (kind == REPLACES)
			OK(fs->rename(long_255, "own", 0));
		else if (kind == REPLACES_DIR)
			OK(fs->rename(long_255, "owndir", 0));
		else
			wipe(long_255);
		WANT(!exists(long_255));
	}
	for (k = 0; k < ARRAY_SIZE(calls); k++) {
		enum kind kind = calls[k].kind;

		if ((kind != LOOKS && kind != LOOKS_AT_LINK && kind != REMOVES && kind != REMOVES_DIR && kind != MOVES) ||
		    (calls[k].vfs_only && !on_vfs()) ||
		    !row("good-names/%s of a missing name of 255 bytes: ENOENT", calls[k].name))
			continue;
		spell();
		GIVES(calls[k].run(long_255), ENOENT);
	}
	/* The longest path that fits with its NUL. */
	for (k = 0; k < ARRAY_SIZE(calls); k++) {
		static char path[PATH_MAX];

		if (!on_vfs() || (calls[k].kind != LOOKS && calls[k].kind != LOOKS_AT_LINK) ||
		    calls[k].run == p_execve || calls[k].run == p_chdir || calls[k].run == p_opendir ||
		    calls[k].run == p_readlink || calls[k].run == p_link_from ||
		    !row("good-names/%s of a path of PATH_MAX - 1 bytes", calls[k].name))
			continue;
		memset(path, '/', PATH_MAX - 1);
		memcpy(path, "tdir", 4);
		memcpy(path + PATH_MAX - 1 - 8, "../tfile", 8);
		path[PATH_MAX - 1] = 0;
		if (calls[k].run == p_getxattr || calls[k].run == p_lgetxattr || calls[k].run == p_removexattr)
			GIVES(calls[k].run(path), ENODATA);
		else
			OK(calls[k].run(path));
	}
	if (row("good-names/mkdir of a name and a slash")) {
		OK(fs->mkdir("withslash/", 0755));
		OK(fs->stat("withslash", &st));
		OK(fs->rmdir("withslash/"));
		WANT(!exists("withslash"));
	}
	if (row("good-names/rename of a directory to a name and a slash")) {
		OK(fs->rename("owndir", "moved/", 0));
		OK(fs->rename("moved/", "owndir", 0));
		WANT(exists("owndir"));
	}
	if (row("good-names/open O_CREAT through a dangling link makes what it points to")) {
		h = fs->open("dangling", O_RDWR | O_CREAT, 0644);
		OK(h);
		if (h >= 0)
			OK(fs->close(h));
		WANT(exists("tnothing"));
		OK(fs->unlink("tnothing"));
	}
	if (row("good-names/names that differ by case only are two")) {
		make_file("CaSe", 1, 0644);
		make_file("cAsE", 2, 0644);
		OK(fs->stat("CaSe", &st));
		EQ(st.st_size, 1);
		OK(fs->unlink("CaSe"));
		OK(fs->unlink("cAsE"));
	}
}

/* Symbolic links' contents. */
static void targets(void)
{
	static const size_t sizes[] = { 1, 2, 59, 60, 61, 127, 128, 255, 256, 1000, 2047, 2048, 4000, 4094, 4095 };
	char to[PATH_MAX + 2], back[PATH_MAX + 2];
	struct stat st;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (!row("symlink/a target of %zu bytes", sizes[i]))
			continue;
		memset(to, 't', sizes[i]);
		to[sizes[i]] = 0;
		OK(fs->symlink(to, "l"));
		OK(fs->lstat("l", &st));
		EQ(st.st_size, sizes[i]);
		EQ(st.st_mode, S_IFLNK | 0777);
		EQ(fs->readlink("l", back, sizeof(back)), sizes[i]);
		WANT(!memcmp(to, back, sizes[i]));
		wipe("l");
	}
	if (row("symlink/a target of 4096 bytes: ENAMETOOLONG")) {
		memset(to, 't', 4096);
		to[4096] = 0;
		GIVES(fs->symlink(to, "l"), ENAMETOOLONG);
		WANT(!exists("l"));
	}
	if (row("symlink/an empty target: ENOENT")) {
		GIVES(fs->symlink("", "l"), ENOENT);
		WANT(!exists("l"));
	}
	if (live()) {
		OK(fs->symlink("0123456789", "ten"));
		make_targets(".");
	}
	for (i = 1; i <= 12; i++) {
		if (!row("readlink/a buffer of %zu bytes for 10", i))
			continue;
		memset(back, '!', sizeof(back));
		EQ(fs->readlink("ten", back, i), i < 10 ? i : 10);
		WANT(!memcmp(back, "0123456789", i < 10 ? i : 10));
		EQ(back[i < 10 ? i : 10], '!');
	}
	if (on_vfs() && row("readlink/a buffer of 0 bytes: EINVAL"))
		GIVES(sys(readlinkat(AT_FDCWD, "ten", back, 0)), EINVAL);
	if (row("readlink/a file: EINVAL"))
		GIVES(fs->readlink("tfile", back, 10), EINVAL);
	if (row("readlink/a directory: EINVAL"))
		GIVES(fs->readlink("tdir", back, 10), EINVAL);
	if (row("readlink/the mode of a link is 0777 under any umask")) {
		fs->umask(0777);
		OK(fs->symlink("x", "u"));
		fs->umask(0);
		OK(fs->lstat("u", &st));
		EQ(st.st_mode, S_IFLNK | 0777);
	}
}

const struct table tables_names[] = {
	{ "names", bad_paths },
	{ "odd-names", odd_paths },
	{ "good-names", good_paths },
	{ "symlink", targets },
	{ NULL },
};
