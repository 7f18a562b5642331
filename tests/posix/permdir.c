// SPDX-License-Identifier: GPL-2.0-only
/*
 * permdir.c - what a directory's permissions allow: every call that looks a name up, adds, removes
 * or lists one, by owner, group, supplementary group, others and root, with each of the eight
 * permissions; and the sticky bit.
 */
#include "conform.h"
#include <linux/fs.h>
#include <sys/statvfs.h>

#define WX (W_OK | X_OK)
#define IS_OWNER 8
#define W_OR_OWNER 16

static char dir[16];		/* the directory that is asked about */
static mode_t mode_now;

/* A path in it; a few may be in use. */
static const char *in(const char *name)
{
	static char buf[4][64];
	static int turn;

	turn = (turn + 1) & 3;
	snprintf(buf[turn], sizeof(buf[0]), "%s/%s", dir, name);
	return buf[turn];
}

static int opened(int h)
{
	return h < 0 ? h : fs->close(h);
}

static int listed(int h)
{
	return h < 0 ? h : fs->closedir(h);
}

static int c_stat(void)
{
	struct stat st;

	return fs->stat(in("f"), &st);
}

static int c_lstat_link(void)
{
	struct stat st;

	return fs->lstat(in("s"), &st);
}

static int c_stat_link(void)
{
	struct stat st;

	return fs->stat(in("s"), &st);
}

static int c_stat_itself(void)
{
	struct stat st;

	return fs->stat(dir, &st);
}

static int c_stat_dot(void)
{
	struct stat st;

	return fs->stat(in("."), &st);
}

static int c_stat_dotdot(void)
{
	struct stat st;

	return fs->stat(in("../pub"), &st);
}

static int c_stat_missing(void)
{
	struct stat st;

	return fs->stat(in("missing"), &st);
}

static int c_access(void)
{
	return fs->access(in("f"), F_OK);
}

static int c_access_r(void)
{
	return fs->access(dir, R_OK);
}

static int c_access_w(void)
{
	return fs->access(dir, W_OK);
}

static int c_access_x(void)
{
	return fs->access(dir, X_OK);
}

static int c_access_rwx(void)
{
	return fs->access(dir, R_OK | W_OK | X_OK);
}

static int c_open(void)
{
	return opened(fs->open(in("f"), O_RDWR, 0));
}

static int c_open_path(void)
{
	return opened(fs->open(in("f"), O_PATH, 0));
}

static int c_open_missing(void)
{
	return opened(fs->open(in("missing"), O_RDWR, 0));
}

static int c_creat(void)
{
	return opened(fs->open(in("new"), O_RDWR | O_CREAT, 0644));
}

static int c_creat_excl(void)
{
	return opened(fs->open(in("new"), O_RDWR | O_CREAT | O_EXCL, 0644));
}

static int c_creat_existing(void)
{
	return opened(fs->open(in("f"), O_RDWR | O_CREAT, 0644));
}

static int c_creat_excl_existing(void)
{
	return opened(fs->open(in("f"), O_RDWR | O_CREAT | O_EXCL, 0644));
}

static int c_tmpfile(void)
{
	return opened(fs->open(dir, O_RDWR | O_TMPFILE, 0644));
}

static int c_open_dir(void)
{
	return opened(fs->open(dir, O_RDONLY | O_DIRECTORY, 0));
}

static int c_opendir(void)
{
	return listed(fs->opendir(dir));
}

static int c_opendir_below(void)
{
	return listed(fs->opendir(in("d")));
}

static int c_chdir(void)
{
	int r = sys(chdir(dir));

	return r ? r : sys(chdir(".."));
}

static int c_chdir_below(void)
{
	int r = sys(chdir(in("d")));

	be(&ROOT);
	return r ? r : sys(chdir("../.."));
}

static int c_truncate(void)
{
	return fs->truncate(in("f"), 5);
}

static int c_utimes(void)
{
	return fs->utimens(in("f"), NULL);
}

static int c_utimes_itself(void)
{
	return fs->utimens(dir, NULL);
}

static int c_chmod_itself(void)
{
	return fs->chmod(dir, mode_now);
}

static int c_chown_itself(void)
{
	return fs->chown(dir, OWNER.uid, OWNER.gid);
}

static int c_setxattr(void)
{
	return fs->setxattr(in("f"), "user.a", "b", 1, 0);
}

static int c_getxattr(void)
{
	return fs->getxattr(in("f"), "user.none", NULL, 0);
}

static int c_listxattr(void)
{
	return fs->listxattr(in("f"), NULL, 0) < 0 ? -EACCES : 0;
}

static int c_removexattr(void)
{
	return fs->removexattr(in("f"), "user.none");
}

static int c_setxattr_itself(void)
{
	return fs->setxattr(dir, "user.a", "b", 1, 0);
}

static int c_getxattr_itself(void)
{
	return fs->getxattr(dir, "user.none", NULL, 0);
}

static int c_statvfs(void)
{
	struct statvfs st;

	return sys(statvfs(in("f"), &st));
}

static int c_readlink(void)
{
	char buf[64];

	return fs->readlink(in("s"), buf, sizeof(buf));
}

static int c_mkdir(void)
{
	return fs->mkdir(in("new"), 0755);
}

static int c_mkdir_existing(void)
{
	return fs->mkdir(in("d"), 0755);
}

static int c_mkfifo(void)
{
	return fs->mknod(in("new"), S_IFIFO | 0644, 0);
}

static int c_mksock(void)
{
	return fs->mknod(in("new"), S_IFSOCK | 0644, 0);
}

static int c_mkreg(void)
{
	return fs->mknod(in("new"), S_IFREG | 0644, 0);
}

static int c_mknod_existing(void)
{
	return fs->mknod(in("f"), S_IFIFO | 0644, 0);
}

static int c_symlink(void)
{
	return fs->symlink("to", in("new"));
}

static int c_symlink_existing(void)
{
	return fs->symlink("to", in("s"));
}

static int c_link_in(void)
{
	return fs->link("pub/own", in("new"));
}

static int c_link_out(void)
{
	return fs->link(in("f"), "pub/new");
}

static int c_link_existing(void)
{
	return fs->link("pub/own", in("f"));
}

static int c_unlink(void)
{
	return fs->unlink(in("f"));
}

static int c_unlink_missing(void)
{
	return fs->unlink(in("missing"));
}

static int c_unlink_dir(void)
{
	return fs->unlink(in("d"));
}

static int c_rmdir(void)
{
	return fs->rmdir(in("d"));
}

static int c_rmdir_missing(void)
{
	return fs->rmdir(in("missing"));
}

static int c_rename(void)
{
	return fs->rename(in("f"), in("new"), 0);
}

static int c_rename_over(void)
{
	return fs->rename(in("f"), in("s"), 0);
}

static int c_rename_out(void)
{
	return fs->rename(in("f"), "pub/new", 0);
}

static int c_rename_dir_out(void)
{
	return fs->rename(in("d"), "pub/new", 0);
}

static int c_rename_in(void)
{
	return fs->rename("pub/own", in("new"), 0);
}

static int c_rename_in_over(void)
{
	return fs->rename("pub/own", in("f"), 0);
}

static int c_rename_missing(void)
{
	return fs->rename(in("missing"), in("new"), 0);
}

static int c_noreplace(void)
{
	return fs->rename(in("f"), in("new"), RENAME_NOREPLACE);
}

static int c_noreplace_existing(void)
{
	return fs->rename(in("f"), in("s"), RENAME_NOREPLACE);
}

static int c_exchange(void)
{
	return fs->rename(in("f"), in("s"), RENAME_EXCHANGE);
}

static int c_exchange_out(void)
{
	return fs->rename(in("f"), "pub/own", RENAME_EXCHANGE);
}

static const struct {
	const char *name;
	int (*run)(void);
	int need;	/* of the directory; else EACCES */
	int done;
	bool vfs_only, changes;
} calls[] = {
	{ "stat of a name", c_stat, X_OK },
	{ "lstat of a link", c_lstat_link, X_OK },
	{ "stat through a link", c_stat_link, X_OK },
	{ "stat of itself", c_stat_itself, 0 },
	{ "stat of its dot", c_stat_dot, X_OK },
	{ "stat through its dotdot", c_stat_dotdot, X_OK },
	{ "stat of nothing", c_stat_missing, X_OK, ENOENT },
	{ "access F_OK of a name", c_access, X_OK },
	{ "access R_OK of itself", c_access_r, R_OK },
	{ "access W_OK of itself", c_access_w, W_OK },
	{ "access X_OK of itself", c_access_x, X_OK },
	{ "access R_OK|W_OK|X_OK of itself", c_access_rwx, R_OK | W_OK | X_OK },
	{ "open of a file", c_open, X_OK },
	{ "open O_PATH of a file", c_open_path, X_OK, 0, true },
	{ "open of nothing", c_open_missing, X_OK, ENOENT },
	{ "open O_CREAT", c_creat, WX, 0, false, true },
	{ "open O_CREAT|O_EXCL", c_creat_excl, WX, 0, false, true },
	{ "open O_CREAT of a file that is there", c_creat_existing, X_OK },
	{ "open O_CREAT|O_EXCL of a file that is there", c_creat_excl_existing, X_OK, EEXIST },
	{ "open O_TMPFILE", c_tmpfile, WX, 0, true },
	{ "open O_DIRECTORY of itself", c_open_dir, R_OK, 0, true },
	{ "opendir of itself", c_opendir, R_OK },
	{ "opendir of one below", c_opendir_below, X_OK },
	{ "chdir to it", c_chdir, X_OK, 0, true },
	{ "chdir to one below", c_chdir_below, X_OK, 0, true },
	{ "truncate of a file", c_truncate, X_OK },
	{ "utimensat now of a file", c_utimes, X_OK },
	{ "utimensat now of itself", c_utimes_itself, W_OR_OWNER },
	{ "chmod of itself", c_chmod_itself, IS_OWNER },
	{ "chown of itself", c_chown_itself, IS_OWNER },
	{ "setxattr of a file", c_setxattr, X_OK },
	{ "getxattr of a file", c_getxattr, X_OK, ENODATA },
	{ "listxattr of a file", c_listxattr, X_OK },
	{ "removexattr of a file", c_removexattr, X_OK, ENODATA },
	{ "setxattr of itself", c_setxattr_itself, W_OK },
	{ "getxattr of itself", c_getxattr_itself, R_OK, ENODATA },
	{ "statvfs of a file", c_statvfs, X_OK, 0, true },
	{ "readlink", c_readlink, X_OK },
	{ "mkdir", c_mkdir, WX, 0, false, true },
	{ "mkdir of one that is there", c_mkdir_existing, X_OK, EEXIST },
	{ "mknod of a fifo", c_mkfifo, WX, 0, false, true },
	{ "mknod of a socket", c_mksock, WX, 0, false, true },
	{ "mknod of a file", c_mkreg, WX, 0, false, true },
	{ "mknod over a name", c_mknod_existing, X_OK, EEXIST },
	{ "symlink", c_symlink, WX, 0, false, true },
	{ "symlink over a name", c_symlink_existing, X_OK, EEXIST },
	{ "link into it", c_link_in, WX, 0, false, true },
	{ "link out of it", c_link_out, X_OK, 0, false, true },
	{ "link over a name", c_link_existing, X_OK, EEXIST },
	{ "unlink", c_unlink, WX, 0, false, true },
	{ "unlink of nothing", c_unlink_missing, X_OK, ENOENT },
	{ "unlink of a directory", c_unlink_dir, WX, EISDIR },
	{ "rmdir", c_rmdir, WX, 0, false, true },
	{ "rmdir of nothing", c_rmdir_missing, X_OK, ENOENT },
	{ "rename within", c_rename, WX, 0, false, true },
	{ "rename over a name", c_rename_over, WX, 0, false, true },
	{ "rename out of it", c_rename_out, WX, 0, false, true },
	{ "rename of a directory out of it", c_rename_dir_out, WX, 0, false, true },
	{ "rename into it", c_rename_in, WX, 0, false, true },
	{ "rename into it over a name", c_rename_in_over, WX, 0, false, true },
	{ "rename of nothing", c_rename_missing, X_OK, ENOENT },
	{ "rename RENAME_NOREPLACE", c_noreplace, WX, 0, false, true },
	{ "rename RENAME_NOREPLACE over a name", c_noreplace_existing, X_OK, EEXIST },
	{ "rename RENAME_EXCHANGE within", c_exchange, WX, 0, false, true },
	{ "rename RENAME_EXCHANGE with one elsewhere", c_exchange_out, WX, 0, false, true },
};

/* What there is in each: a file and a directory that all may use, and a link to the file. */
static void restore(void)
{
	struct stat st;

	wipe(in("new"));
	wipe("pub/new");
	if (fs->lstat(in("f"), &st) || !S_ISREG(st.st_mode)) {
		wipe(in("f"));
		make_file(in("f"), 5, 0666);
	}
	if (!exists(in("d")))
		OK(fs->mkdir(in("d"), 0777));
	if (fs->lstat(in("s"), &st) || !S_ISLNK(st.st_mode)) {
		wipe(in("s"));
		OK(fs->symlink("f", in("s")));
	}
	if (!exists("pub/own"))
		make_file("pub/own", 5, 0666);
	OK(fs->chmod(in("d"), 0777));
}

static int expected(const struct who *w, int need, int done)
{
	bool owner = !w->uid || w->uid == OWNER.uid;
	mode_t mode = S_IFDIR | mode_now;

	if (need == IS_OWNER)
		return owner ? done : EPERM;
	if (need == W_OR_OWNER)
		return owner || may(w, mode, OWNER.uid, OWNER.gid, W_OK) ? done : EACCES;
	/* A name that is there is told before the right to replace it is asked for: link, mkdir and so on give
	 * EEXIST to whoever may search. */
	return may(w, mode, OWNER.uid, OWNER.gid, need) ? done : EACCES;
}

static void directories(void)
{
	static const struct who *const all[] = { &ROOT, &OWNER, &MEMBER, &SUPPL, &OTHER };
	struct snap snap;
	char letter;
	size_t i, w;
	int bits;

	if (live()) {
		OK(fs->mkdir("pub", 0777));
		for (w = 0; w < ARRAY_SIZE(all); w++) {
			for (bits = 0; bits < 8; bits++) {
				mode_now = class_mode(all[w], bits, &letter);
				snprintf(dir, sizeof(dir), "%c%d", letter, bits);
				if (exists(dir))
					continue;
				OK(fs->mkdir(dir, mode_now));
				OK(fs->chown(dir, OWNER.uid, OWNER.gid));
				restore();
			}
		}
	}
	for (w = 0; w < ARRAY_SIZE(all); w++) {
		for (bits = 0; bits < 8; bits++) {
			mode_now = class_mode(all[w], bits, &letter);
			snprintf(dir, sizeof(dir), "%c%d", letter, bits);
			for (i = 0; i < ARRAY_SIZE(calls); i++) {
				int want = expected(all[w], calls[i].need, calls[i].done);
				int r;

				if ((calls[i].vfs_only && !on_vfs()) ||
				    !row("permdir/%04o, %s by %s: %s", mode_now, calls[i].name, all[w]->name,
					 err_name(want)))
					continue;
				if (want)
					snap_take(&snap, dir, in("f"), "pub", NULL);
				be(all[w]);
				r = calls[i].run();
				be(&ROOT);
				GIVES(r, want);
				if (want)
					SAME(&snap);
				if (calls[i].changes && (!want || !fine()))
					restore();
			}
		}
	}
}

/*
 * ---- the sticky bit: names are the file's owner's, the directory's owner's, or root's to remove
 * ----
 */

static const struct {
	const char *name;
	int (*run)(void);
	enum type type;
} removals[] = {
	{ "unlink of a file", c_unlink, T_FILE },
	{ "unlink of a fifo", c_unlink, T_FIFO },
	{ "unlink of a link", c_unlink, T_DANGLING },
	{ "rmdir", c_rmdir, T_DIR },
	{ "rename within", c_rename, T_FILE },
	{ "rename out", c_rename_out, T_FILE },
	{ "rename over", c_rename_in_over, T_FILE },
	{ "RENAME_NOREPLACE", c_noreplace, T_FILE },
	{ "RENAME_EXCHANGE", c_exchange_out, T_FILE },
};

static void sticky(void)
{
	static const struct who *const callers[] = { &ROOT, &OWNER, &MEMBER, &OTHER };
	static const struct who *const owners[] = { &ROOT, &OWNER, &MEMBER, &OTHER };
	static const mode_t modes[] = { 01777, 0777, 01775, 01755 };
	size_t i, m, c, o;

	if (live())
		OK(fs->mkdir("pub", 0777));
	strcpy(dir, "sticky");
	for (m = 0; m < ARRAY_SIZE(modes); m++) {
		mode_now = modes[m];
		for (i = 0; i < ARRAY_SIZE(removals); i++) {
			for (c = 0; c < ARRAY_SIZE(callers); c++) {
				for (o = 0; o < ARRAY_SIZE(owners); o++) {
					const struct who *w = callers[c];
					const char *name = removals[i].type == T_DIR ? "d" : "f";
					bool own = !w->uid || w == owners[o] || w == &OWNER;
					int want = 0, r;
					struct snap snap;

					if (!may(w, S_IFDIR | mode_now, OWNER.uid, OWNER.gid, WX))
						want = EACCES;
					else if ((mode_now & S_ISVTX) && !own)
						want = EPERM;
					if (!row("sticky/%04o of owner, %s of %s by %s: %s", mode_now,
						 removals[i].name, owners[o]->name, w->name, err_name(want)))
						continue;
					OK(fs->mkdir(dir, mode_now));
					OK(fs->chown(dir, OWNER.uid, OWNER.gid));
					make(in(name), removals[i].type);
					OK(fs->lchown(in(name), owners[o]->uid, owners[o]->gid));
					make_file("pub/own", 5, 0666);
					OK(fs->chown("pub/own", w->uid, w->gid));
					snap_take(&snap, dir, in(name), "pub/own", NULL);
					be(w);
					r = removals[i].run();
					be(&ROOT);
					GIVES(r, want);
					if (want)
						SAME(&snap);
					wipe("pub/new");
					wipe("pub/own");
					wipe(dir);
				}
			}
		}
	}
}

const struct table tables_permdir[] = {
	{ "permdir", directories },
	{ "sticky", sticky },
	{ NULL },
};
