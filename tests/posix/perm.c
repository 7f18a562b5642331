// SPDX-License-Identifier: GPL-2.0-only
/*
 * perm.c - what may be done with a file: every call, by its owner, a member of its group, one who
 * has the group among others, anybody else and root, with each of the eight permissions for that
 * class and the contrary for the other two. The rule is may(); what a call needs is in the table.
 */
#include "conform.h"
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define NONE 0
#define IS_OWNER 8		/* or privileged; else EPERM */
#define W_OR_OWNER 16
#define IS_ROOT 32		/* else EPERM */
#define LINKING 64		/* with protected_hardlinks: the owner, or who may read and write */

static int held = -1;		/* a descriptor that root has opened, for reading and writing */
static mode_t mode_now;

static int opened(int h)
{
	return h < 0 ? h : fs->close(h);
}

static int open_r(const char *p)
{
	return opened(fs->open(p, O_RDONLY, 0));
}

static int open_w(const char *p)
{
	return opened(fs->open(p, O_WRONLY, 0));
}

static int open_rw(const char *p)
{
	return opened(fs->open(p, O_RDWR, 0));
}

static int open_a(const char *p)
{
	return opened(fs->open(p, O_WRONLY | O_APPEND, 0));
}

static int open_creat(const char *p)
{
	return opened(fs->open(p, O_RDONLY | O_CREAT, 0777));
}

static int open_creat_w(const char *p)
{
	return opened(fs->open(p, O_WRONLY | O_CREAT, 0777));
}

static int open_trunc(const char *p)
{
	return opened(fs->open(p, O_WRONLY | O_TRUNC, 0));
}

static int open_r_trunc(const char *p)
{
	return opened(fs->open(p, O_RDONLY | O_TRUNC, 0));
}

static int open_excl(const char *p)
{
	return opened(fs->open(p, O_WRONLY | O_CREAT | O_EXCL, 0777));
}

static int open_path(const char *p)
{
	return opened(fs->open(p, O_PATH, 0));
}

static int do_stat(const char *p)
{
	struct stat st;

	return fs->stat(p, &st);
}

static int access_f(const char *p)
{
	return fs->access(p, F_OK);
}

static int access_r(const char *p)
{
	return fs->access(p, R_OK);
}

static int access_w(const char *p)
{
	return fs->access(p, W_OK);
}

static int access_x(const char *p)
{
	return fs->access(p, X_OK);
}

static int access_rw(const char *p)
{
	return fs->access(p, R_OK | W_OK);
}

static int access_rx(const char *p)
{
	return fs->access(p, R_OK | X_OK);
}

static int access_wx(const char *p)
{
	return fs->access(p, W_OK | X_OK);
}

static int access_rwx(const char *p)
{
	return fs->access(p, R_OK | W_OK | X_OK);
}

static int truncate_5(const char *p)
{
	return fs->truncate(p, 5);
}

static int chmod_same(const char *p)
{
	return fs->chmod(p, mode_now);
}

static int fchmod_same(const char *p)
{
	return fs->fchmod(held, mode_now);
}

static int chown_same(const char *p)
{
	return fs->chown(p, OWNER.uid, OWNER.gid);
}

static int chown_uid(const char *p)
{
	return fs->chown(p, OWNER.uid, -1);
}

static int lchown_gid(const char *p)
{
	return fs->lchown(p, -1, OWNER.gid);
}

static int fchown_same(const char *p)
{
	return fs->fchown(held, OWNER.uid, OWNER.gid);
}

static int chown_away(const char *p)
{
	int r = fs->chown(p, OTHER.uid, -1);

	if (!r) {
		be(&ROOT);
		OK(fs->chown(p, OWNER.uid, -1));
	}
	return r;
}

static const struct timespec past[2] = { { 1000000000, 1 }, { 1000000001, 2 } };

static int utimes_now(const char *p)
{
	return fs->utimens(p, NULL);
}

static int lutimes_now(const char *p)
{
	return fs->lutimens(p, NULL);
}

static int futimes_now(const char *p)
{
	return fs->futimens(held, NULL);
}

static int utimes_set(const char *p)
{
	return fs->utimens(p, past);
}

static int lutimes_set(const char *p)
{
	return fs->lutimens(p, past);
}

static int futimes_set(const char *p)
{
	return fs->futimens(held, past);
}

static int get_user(const char *p)
{
	return fs->getxattr(p, "user.none", NULL, 0);
}

static int set_user(const char *p)
{
	return fs->setxattr(p, "user.some", "v", 1, 0);
}

static int remove_user(const char *p)
{
	return fs->removexattr(p, "user.none");
}

static int lget_user(const char *p)
{
	return fs->lgetxattr(p, "user.none", NULL, 0);
}

static int lset_user(const char *p)
{
	return fs->lsetxattr(p, "user.some", "w", 1, 0);
}

static int fget_user(const char *p)
{
	return fs->fgetxattr(held, "user.none", NULL, 0);
}

static int fset_user(const char *p)
{
	return fs->fsetxattr(held, "user.some", "x", 1, 0);
}

static int fremove_user(const char *p)
{
	return fs->fremovexattr(held, "user.none");
}

static int list_attrs(const char *p)
{
	char list[256];

	return fs->listxattr(p, list, sizeof(list)) < 0 ? -EIO : 0;
}

static int set_trusted(const char *p)
{
	return fs->setxattr(p, "trusted.t", "v", 1, 0);
}

static int set_security(const char *p)
{
	return fs->setxattr(p, "security.t", "v", 1, 0);
}

static int get_security(const char *p)
{
	return fs->getxattr(p, "security.none", NULL, 0);
}

/* The ACL that is the mode and nothing more. */
static int set_acl(const char *p)
{
	struct {
		uint32_t version;
		struct { uint16_t tag, perm; uint32_t id; } e[3];
	} acl = { 2, { { 1, mode_now >> 6, -1 }, { 4, (mode_now >> 3) & 7, -1 }, { 0x20, mode_now & 7, -1 } } };

	return fs->setxattr(p, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

static int link_it(const char *p)
{
	int r = fs->link(p, "pub/link");

	be(&ROOT);
	if (!r)
		OK(fs->unlink("pub/link"));
	return r;
}

static int symlink_to(const char *p)
{
	int r = fs->symlink(p, "pub/symlink");

	be(&ROOT);
	if (!r)
		OK(fs->unlink("pub/symlink"));
	return r;
}

static int rename_it(const char *p)
{
	/* There and back needs nothing of the file. */
	int r = fs->rename(p, "pub/renamed", 0);

	return r ? r : fs->rename("pub/renamed", p, 0);
}

static int exec_it(const char *p)
{
	char *argv[] = { (char *)p, NULL };

	return sys(execve(p, argv, argv + 1));
}

static int statvfs_it(const char *p)
{
	struct statvfs st;

	return sys(statvfs(p, &st));
}

/* What was opened stays open, whatever the mode says now. */
static int pread_held(const char *p)
{
	char c;

	return fs->pread(held, &c, 1, 0);
}

static int pwrite_held(const char *p)
{
	return fs->pwrite(held, "x", 1, 0);
}

static int ftruncate_held(const char *p)
{
	return fs->ftruncate(held, 5);
}

static int fstat_held(const char *p)
{
	struct stat st;

	return fs->fstat(held, &st);
}

static int fsync_held(const char *p)
{
	return fs->fsync(held);
}

static const struct {
	const char *name;
	int (*run)(const char *path);
	int need;	/* R_OK | ..., else EACCES, or one of the above */
	int done;	/* what it gives when it may */
	bool vfs_only, held;
} calls[] = {
	/*
	 * Before others change its bytes, which would look like a format that a module might know.
	 */
	{ "execve", exec_it, X_OK, ENOEXEC, true },
	{ "open O_RDONLY", open_r, R_OK },
	{ "open O_WRONLY", open_w, W_OK },
	{ "open O_RDWR", open_rw, R_OK | W_OK },
	{ "open O_WRONLY|O_APPEND", open_a, W_OK },
	{ "open O_RDONLY|O_CREAT", open_creat, R_OK },
	{ "open O_WRONLY|O_CREAT", open_creat_w, W_OK },
	{ "open O_WRONLY|O_TRUNC", open_trunc, W_OK },
	{ "open O_RDONLY|O_TRUNC", open_r_trunc, R_OK | W_OK },
	{ "open O_CREAT|O_EXCL", open_excl, NONE, EEXIST },
	{ "open O_PATH", open_path, NONE, 0, true },
	{ "stat", do_stat, NONE },
	{ "access F_OK", access_f, NONE },
	{ "access R_OK", access_r, R_OK },
	{ "access W_OK", access_w, W_OK },
	{ "access X_OK", access_x, X_OK },
	{ "access R_OK|W_OK", access_rw, R_OK | W_OK },
	{ "access R_OK|X_OK", access_rx, R_OK | X_OK },
	{ "access W_OK|X_OK", access_wx, W_OK | X_OK },
	{ "access R_OK|W_OK|X_OK", access_rwx, R_OK | W_OK | X_OK },
	{ "truncate", truncate_5, W_OK },
	{ "chmod", chmod_same, IS_OWNER },
	{ "fchmod", fchmod_same, IS_OWNER, 0, false, true },
	{ "chown to what it is", chown_same, IS_OWNER },
	{ "chown to its uid", chown_uid, IS_OWNER },
	{ "lchown to its gid", lchown_gid, IS_OWNER },
	{ "fchown to what it is", fchown_same, IS_OWNER, 0, false, true },
	{ "chown to another uid", chown_away, IS_ROOT },
	{ "utimensat now", utimes_now, W_OR_OWNER },
	{ "utimensat now, nofollow", lutimes_now, W_OR_OWNER },
	{ "futimens now", futimes_now, W_OR_OWNER, 0, false, true },
	{ "utimensat set", utimes_set, IS_OWNER },
	{ "utimensat set, nofollow", lutimes_set, IS_OWNER },
	{ "futimens set", futimes_set, IS_OWNER, 0, false, true },
	{ "getxattr user", get_user, R_OK, ENODATA },
	{ "setxattr user", set_user, W_OK },
	{ "removexattr user", remove_user, W_OK, ENODATA },
	{ "lgetxattr user", lget_user, R_OK, ENODATA },
	{ "lsetxattr user", lset_user, W_OK },
	{ "fgetxattr user", fget_user, R_OK, ENODATA, false, true },
	{ "fsetxattr user", fset_user, W_OK, 0, false, true },
	{ "fremovexattr user", fremove_user, W_OK, ENODATA, false, true },
	{ "listxattr", list_attrs, NONE },
	{ "setxattr trusted", set_trusted, IS_ROOT },
	{ "setxattr security", set_security, IS_ROOT },
	{ "getxattr security", get_security, NONE, ENODATA },
	{ "setxattr access ACL", set_acl, IS_OWNER },
	{ "link", link_it, LINKING },
	{ "symlink to it", symlink_to, NONE },
	{ "rename", rename_it, NONE },
	{ "statvfs", statvfs_it, NONE, 0, true },
	{ "pread on what was opened", pread_held, NONE, 0, false, true },
	{ "pwrite on what was opened", pwrite_held, NONE, 0, false, true },
	{ "ftruncate on what was opened", ftruncate_held, NONE, 0, false, true },
	{ "fstat on what was opened", fstat_held, NONE, 0, false, true },
	{ "fsync on what was opened", fsync_held, NONE, 0, false, true },
};

static int expected(const struct who *w, int need, int done)
{
	bool owner = !w->uid || w->uid == OWNER.uid;
	mode_t mode = S_IFREG | mode_now;

	switch (need) {
	case IS_OWNER:
		return owner ? done : EPERM;
	case IS_ROOT:
		return !w->uid ? done : EPERM;
	case W_OR_OWNER:
		return owner || may(w, mode, OWNER.uid, OWNER.gid, W_OK) ? done : EACCES;
	case LINKING:
		if (on_vfs() && sysctl_fs("protected_hardlinks") > 0 && !owner &&
		    !may(w, mode, OWNER.uid, OWNER.gid, R_OK | W_OK))
			return EPERM;
		return done;
	}
	return may(w, mode, OWNER.uid, OWNER.gid, need) ? done : EACCES;
}

static void files(void)
{
	static const struct who *const all[] = { &ROOT, &OWNER, &MEMBER, &SUPPL, &OTHER };
	char path[16], letter;
	struct snap snap;
	size_t i, w;
	int bits;

	if (live()) {
		OK(fs->mkdir("dir", 0777));
		OK(fs->mkdir("pub", 0777));
		for (w = 0; w < ARRAY_SIZE(all); w++) {
			for (bits = 0; bits < 8; bits++) {
				mode_t mode = class_mode(all[w], bits, &letter);

				snprintf(path, sizeof(path), "dir/%c%d", letter, bits);
				if (exists(path))
					continue;
				make_file(path, 5, mode);
				OK(fs->chown(path, OWNER.uid, OWNER.gid));
			}
		}
	}
	for (w = 0; w < ARRAY_SIZE(all); w++) {
		for (bits = 0; bits < 8; bits++) {
			mode_now = class_mode(all[w], bits, &letter);
			snprintf(path, sizeof(path), "dir/%c%d", letter, bits);
			for (i = 0; i < ARRAY_SIZE(calls); i++) {
				int want = expected(all[w], calls[i].need, calls[i].done);
				int r;

				if ((calls[i].vfs_only && !on_vfs()) ||
				    !row("perm/file %04o, %s by %s: %s", mode_now, calls[i].name, all[w]->name,
					 err_name(want)))
					continue;
				if (calls[i].held) {
					held = fs->open(path, O_RDWR, 0);
					OK(held);
				}
				if (want)
					snap_take(&snap, path, "dir", "pub", NULL);
				be(all[w]);
				r = calls[i].run(path);
				be(&ROOT);
				GIVES(r, want);
				if (want)
					SAME(&snap);
				if (calls[i].held)
					OK(fs->close(held));
				if (calls[i].run == open_trunc || calls[i].run == open_r_trunc)
					OK(fs->truncate(path, 5));
			}
		}
	}
}

const struct table tables_perm[] = {
	{ "perm", files },
	{ NULL },
};
