// SPDX-License-Identifier: GPL-2.0-only
/*
 * rename.c - rename and renameat2: each type over each, in one directory and between two, with each
 * flag; and the names that cannot be moved or moved to.
 */
#include "conform.h"
#include <linux/fs.h>

static bool is_dir(enum type t)
{
	return t == T_DIR || t == T_FULLDIR;
}

static const struct {
	const char *name;
	unsigned int flags;
} modes[] = {
	{ "rename", 0 },
	{ "RENAME_NOREPLACE", RENAME_NOREPLACE },
	{ "RENAME_EXCHANGE", RENAME_EXCHANGE },
	{ "RENAME_WHITEOUT", RENAME_WHITEOUT },
};

static int model(enum type from, enum type to, unsigned int flags)
{
	if (from == T_NONE)
		return ENOENT;
	if (flags & RENAME_EXCHANGE)
		return to == T_NONE ? ENOENT : 0;
	if (to == T_NONE)
		return 0;
	if (flags & RENAME_NOREPLACE)
		return EEXIST;
	if (is_dir(from) && !is_dir(to))
		return ENOTDIR;
	if (!is_dir(from) && is_dir(to))
		return EISDIR;
	return to == T_FULLDIR ? ENOTEMPTY : 0;
}

static void types(void)
{
	static const enum type all[] = {
		T_NONE, T_FILE, T_DIR, T_FULLDIR, T_SYMFILE, T_SYMDIR, T_DANGLING, T_FIFO, T_SOCK, T_CHR
	};
	size_t f, t, m;
	int apart;

	if (live()) {
		OK(fs->mkdir("p", 0755));
		OK(fs->mkdir("q", 0755));
		make_targets("p");
		make_targets("q");
	}
	for (m = 0; m < ARRAY_SIZE(modes); m++)
	for (apart = 0; apart < 2; apart++)
	for (f = 0; f < ARRAY_SIZE(all); f++)
	for (t = 0; t < ARRAY_SIZE(all); t++) {
		int err = model(all[f], all[t], modes[m].flags);
		const char *from = "p/a", *to = apart ? "q/b" : "p/b";
		struct snap snap;
		ino_t a, b;

		if (!on_vfs() && modes[m].flags == RENAME_WHITEOUT)
			continue;
		if (!row("rename/%s of %s over %s, %s: %s", modes[m].name, type_name[all[f]], type_name[all[t]],
			 apart ? "elsewhere" : "here", err_name(err)))
			continue;
		make(from, all[f]);
		make(to, all[t]);
		snap_take(&snap, from, to, "p", "q", NULL);
		a = snap.st[0].st_ino;
		b = snap.st[1].st_ino;
		GIVES(fs->rename(from, to, modes[m].flags), err);
		if (err) {
			SAME(&snap);
		} else {
			struct stat st;

			EQ(ino_of(to), a);
			if (modes[m].flags & RENAME_EXCHANGE) {
				EQ(ino_of(from), b);
			} else if (modes[m].flags & RENAME_WHITEOUT) {
				OK(fs->lstat(from, &st));
				EQ(st.st_mode & S_IFMT, S_IFCHR);
				EQ(st.st_rdev, 0);
			} else {
				WANT(!exists(from));
			}
			if (all[f] == T_FULLDIR)
				WANT(exists(apart ? "q/b/inside" : "p/b/inside"));
		}
		wipe(from);
		wipe(to);
	}
}

/* Two names of one file: rename does nothing and says so; exchange too. */
static void same_file(void)
{
	static const enum type all[] = { T_FILE, T_SYMFILE, T_DANGLING, T_FIFO, T_SOCK, T_CHR };
	size_t i, m;

	for (i = 0; i < ARRAY_SIZE(all); i++) {
		for (m = 0; m < 3; m++) {
			int err = modes[m].flags == RENAME_NOREPLACE ? EEXIST : 0;
			struct stat a;

			if (row("rename-same/%s over another name of the same %s: %s", modes[m].name,
				type_name[all[i]], err_name(err))) {
				make("a", all[i]);
				OK(fs->link("a", "b"));
				GIVES(fs->rename("a", "b", modes[m].flags), err);
				OK(fs->lstat("a", &a));
				EQ(a.st_nlink, 2);
				EQ(ino_of("b"), a.st_ino);
				wipe("a");
				wipe("b");
			}
			if (row("rename-same/%s of %s to its own name: %s", modes[m].name, type_name[all[i]],
				err_name(err))) {
				struct snap snap;

				make("a", all[i]);
				snap_take(&snap, "a", ".", NULL);
				GIVES(fs->rename("a", "a", modes[m].flags), err);
				SAME(&snap);
				wipe("a");
			}
		}
	}
	for (m = 0; m < 3; m++) {
		int err = modes[m].flags == RENAME_NOREPLACE ? EEXIST : 0;

		if (row("rename-same/%s of a directory to its own name: %s", modes[m].name, err_name(err))) {
			make("d", T_FULLDIR);
			GIVES(fs->rename("d", "d", modes[m].flags), err);
			WANT(exists("d/inside"));
			wipe("d");
		}
	}
}

static void build_places(void)
{
	OK(fs->mkdir("d", 0755));
	OK(fs->mkdir("d/e", 0755));
	OK(fs->mkdir("d/e/f", 0755));
	OK(fs->mkdir("o", 0755));
	make("d/file", T_FILE);
	make("o/file", T_FILE);
	make("f", T_FILE);
	make("g", T_FILE);
	OK(fs->symlink("d", "l"));
}

static void places(void)
{
	static const struct {
		const char *name, *from, *to;
		unsigned int flags;
		int err;
	} t[] = {
		{ "a directory into itself", "d", "d/x", 0, EINVAL },
		{ "a directory into itself, no replacing", "d", "d/x", RENAME_NOREPLACE, EINVAL },
		{ "a directory to below itself", "d", "d/e/f/x", 0, EINVAL },
		{ "a directory over one below it", "d", "d/e", 0, EINVAL },
		{ "a directory over one deep below it", "d", "d/e/f", 0, EINVAL },
		{ "a directory over a file in it", "d", "d/file", 0, EINVAL },
		{ "a directory over the one it is in", "d/e", "d", 0, ENOTEMPTY },
		{ "a directory over one above that", "d/e/f", "d", 0, ENOTEMPTY },
		{ "a file over the directory it is in", "d/file", "d", 0, ENOTEMPTY },
		{ "a directory exchanged with one below it", "d", "d/e", RENAME_EXCHANGE, EINVAL },
		{ "a directory exchanged with one deep below it", "d", "d/e/f", RENAME_EXCHANGE, EINVAL },
		{ "a directory exchanged with one above it", "d/e/f", "d", RENAME_EXCHANGE, EINVAL },
		{ "a file exchanged with the directory it is in", "d/file", "d", RENAME_EXCHANGE, EINVAL },
		{ "from dot", ".", "x", 0, EBUSY },
		{ "to dot", "d", ".", 0, EBUSY },
		{ "from dotdot", "..", "x", 0, EBUSY },
		{ "to dotdot", "d", "..", 0, EBUSY },
		{ "from a directory's dot", "d/.", "x", 0, EBUSY },
		{ "to a directory's dot", "d", "o/.", 0, EBUSY },
		{ "from a directory's dotdot", "d/e/..", "x", 0, EBUSY },
		{ "to a directory's dotdot", "f", "d/e/..", 0, EBUSY },
		{ "exchanged with dot", "d", ".", RENAME_EXCHANGE, EBUSY },
		{ "from a file with a slash", "f/", "x", 0, ENOTDIR },
		{ "a file to a name with a slash", "f", "x/", 0, ENOTDIR },
		{ "a file to a file with a slash", "f", "o/file/", 0, ENOTDIR },
		{ "a file to a directory with a slash", "f", "o/", 0, ENOTDIR },
		{ "a file with a slash exchanged", "f/", "o", RENAME_EXCHANGE, ENOTDIR },
		{ "a directory exchanged with a file with a slash", "o", "f/", RENAME_EXCHANGE, ENOTDIR },
		{ "a link to a directory with a slash", "l/", "x", 0, ENOTDIR },
		{ "to a missing directory", "f", "missing/x", 0, ENOENT },
		{ "from a missing directory", "missing/x", "x", 0, ENOENT },
		{ "to below a file", "f", "g/x", 0, ENOTDIR },
		{ "from below a file", "g/x", "x", 0, ENOTDIR },
		{ "no replacing and exchanging", "f", "g", RENAME_NOREPLACE | RENAME_EXCHANGE, EINVAL },
		{ "whiteout and exchanging", "f", "g", RENAME_WHITEOUT | RENAME_EXCHANGE, EINVAL },
		{ "an unknown flag", "f", "g", 8, EINVAL },
		{ "an unknown high flag", "f", "g", 0x80000000u, EINVAL },
	};
	size_t i;

	if (live())
		build_places();
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct snap snap;

		if (!row("rename-places/%s: %s", t[i].name, err_name(t[i].err)))
			continue;
		snap_take(&snap, ".", "d", "f", "o", NULL);
		GIVES(fs->rename(t[i].from, t[i].to, t[i].flags), t[i].err);
		SAME(&snap);
		WANT(exists("d/e/f") && exists("d/file") && exists("o/file"));
		if (!fine()) {
			static const char *const left[] = { "d", "o", "f", "g", "l", "x" };
			size_t k;

			/* The rows that follow are not to blame. */
			for (k = 0; k < ARRAY_SIZE(left); k++)
				wipe(left[k]);
			build_places();
		}
	}
	if (row("rename-places/a directory over an empty one with slashes")) {
		OK(fs->mkdir("m", 0755));
		OK(fs->mkdir("n", 0755));
		OK(fs->rename("m/", "n/", 0));
		WANT(!exists("m"));
		OK(fs->rmdir("n"));
	}
	if (row("rename-places/a file that is open goes on")) {
		int h = fs->open("f", O_RDWR, 0);
		char c[5];

		OK(fs->rename("f", "f2", 0));
		EQ(fs->pread(h, c, 5, 0), 5);
		EQ(fs->pwrite(h, "12345678", 8, 0), 8);
		OK(fs->close(h));
		OK(fs->rename("f2", "f", 0));
	}
	if (row("rename-places/a file that is open is replaced and goes on")) {
		int h;
		char c[5];
		struct stat st;

		make("victim", T_FILE);
		make("over", T_FILE);
		h = fs->open("victim", O_RDWR, 0);
		OK(fs->rename("over", "victim", 0));
		EQ(fs->pread(h, c, 5, 0), 5);
		OK(fs->fstat(h, &st));
		EQ(st.st_nlink, 0);
		OK(fs->close(h));
		wipe("victim");
	}
	if (row("rename-places/a replaced file with another name loses one link")) {
		struct stat st;

		make("victim", T_FILE);
		OK(fs->link("victim", "second"));
		make("over", T_FILE);
		OK(fs->rename("over", "victim", 0));
		OK(fs->stat("second", &st));
		EQ(st.st_nlink, 1);
		wipe("victim");
		wipe("second");
	}
	if (row("rename-places/a tree keeps what is in it")) {
		OK(fs->mkdir("t1", 0755));
		OK(fs->mkdir("t1/u", 0755));
		make("t1/u/file", T_FILE);
		OK(fs->rename("t1", "o/t2", 0));
		WANT(exists("o/t2/u/file") && !exists("t1"));
		wipe("o/t2");
	}
	/* A directory whose dotdot changes has to be writable itself. */
	if (row("rename-places/a directory that is not writable, elsewhere: EACCES")) {
		struct snap snap;

		OK(fs->mkdir("pub", 0777));
		OK(fs->mkdir("pub2", 0777));
		OK(fs->mkdir("pub/mine", 0555));
		OK(fs->chown("pub/mine", OTHER.uid, OTHER.gid));
		snap_take(&snap, "pub", "pub2", "pub/mine", NULL);
		be(&OTHER);
		GIVES(fs->rename("pub/mine", "pub2/mine", 0), EACCES);
		SAME(&snap);
		be(&ROOT);
	}
	if (row("rename-places/a directory that is not writable, here")) {
		be(&OTHER);
		OK(fs->rename("pub/mine", "pub/yours", 0));
		be(&ROOT);
		wipe("pub");
		wipe("pub2");
	}
	if (on_vfs() && row("rename-places/to another file system: EXDEV")) {
		struct snap snap;

		snap_take(&snap, ".", "g", NULL);
		GIVES(fs->rename("g", "/proc/x", 0), EXDEV);
		SAME(&snap);
	}
}

const struct table tables_rename[] = {
	{ "rename", types },
	{ "rename-same", same_file },
	{ "rename-places", places },
	{ NULL },
};
