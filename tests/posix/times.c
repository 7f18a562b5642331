// SPDX-License-Identifier: GPL-2.0-only
/*
 * times.c - which of atime, mtime and ctime each call marks, of the file and of the directory it is
 * in, and which it must leave alone (1003.1, by call). One row for each of the six.
 */
#include "conform.h"
#include <linux/fs.h>
#include <sys/mman.h>

/*
 * A row's file is "d/f", its directory "d". All begin with times in the past, and a ctime before
 * now.
 */
#define F "d/f"
#define D "d"

#define A 1
#define M 2
#define C 4
#define FILE_(x) (x)
#define DIR_(x) ((x) << 3)
#define MAY(x) ((x) << 6)	/* it may or may not mark the file's */

static int opened(int h)
{
	return h < 0 ? h : fs->close(h);
}

static int with(int flags, int (*what)(int h))
{
	int h = fs->open(F, flags, 0), r;

	if (h < 0)
		return h;
	r = what(h);
	fs->close(h);
	return r;
}

static int w_read(int h)
{
	char c;

	return fs->pread(h, &c, 1, 0);
}

static int w_write(int h)
{
	return fs->pwrite(h, "x", 1, 0);
}

static int w_write_none(int h)
{
	return fs->pwrite(h, "x", 0, 0);
}

static int w_extend(int h)
{
	return fs->pwrite(h, "x", 1, 100);
}

static int w_truncate_same(int h)
{
	return fs->ftruncate(h, 5);
}

static int w_truncate(int h)
{
	return fs->ftruncate(h, 3);
}

static int w_fchmod(int h)
{
	return fs->fchmod(h, 0600);
}

static int w_fchown(int h)
{
	return fs->fchown(h, 1, 1);
}

static int w_fsync(int h)
{
	return fs->fsync(h);
}

static int w_fsetxattr(int h)
{
	return fs->fsetxattr(h, "user.b", "c", 1, 0);
}

static int w_fallocate(int h)
{
	return fs->fallocate(h, 0, 0, 100);
}

static int w_punch(int h)
{
	return fs->fallocate(h, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5);
}

static int w_copy_to(int h)
{
	off_t from = 0, to = 0;
	int in = fs->open("other", O_RDONLY, 0), r = fs->copy_file_range(in, &from, h, &to, 5, 0);

	fs->close(in);
	return r;
}

static int w_store(int h)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h, 0);

	if (p == MAP_FAILED)
		return -errno;
	*p = 'y';
	if (msync(p, 4096, MS_SYNC))
		return -errno;
	return sys(munmap(p, 4096));
}

static int t_open(void)
{
	return opened(fs->open(F, O_RDWR, 0));
}

static int t_open_creat(void)
{
	return opened(fs->open(F, O_RDWR | O_CREAT, 0644));
}

static int t_open_trunc(void)
{
	return opened(fs->open(F, O_RDWR | O_TRUNC, 0644));
}

static int t_open_excl(void)
{
	return opened(fs->open(F, O_RDWR | O_CREAT | O_EXCL, 0644));
}

static int t_creat(void)
{
	return opened(fs->open("d/new", O_RDWR | O_CREAT, 0644));
}

static int t_read(void)
{
	return with(O_RDONLY, w_read);
}

static int t_write(void)
{
	return with(O_RDWR, w_write);
}

static int t_write_none(void)
{
	return with(O_RDWR, w_write_none);
}

static int t_extend(void)
{
	return with(O_RDWR, w_extend);
}

static int t_append(void)
{
	return with(O_RDWR | O_APPEND, w_write);
}

static int t_ftruncate_same(void)
{
	return with(O_RDWR, w_truncate_same);
}

static int t_ftruncate(void)
{
	return with(O_RDWR, w_truncate);
}

static int t_ftruncate_rdonly(void)
{
	return with(O_RDONLY, w_truncate);
}

static int t_truncate(void)
{
	return fs->truncate(F, 3);
}

static int t_truncate_up(void)
{
	return fs->truncate(F, 300);
}

static int t_truncate_bad(void)
{
	return fs->truncate(F, -1);
}

static int t_fchmod(void)
{
	return with(O_RDONLY, w_fchmod);
}

static int t_fchown(void)
{
	return with(O_RDONLY, w_fchown);
}

static int t_fsync(void)
{
	return with(O_RDWR, w_fsync);
}

static int t_fsetxattr(void)
{
	return with(O_RDWR, w_fsetxattr);
}

static int t_fallocate(void)
{
	return with(O_RDWR, w_fallocate);
}

static int t_punch(void)
{
	return with(O_RDWR, w_punch);
}

static int t_copy_to(void)
{
	return with(O_RDWR, w_copy_to);
}

static int t_store(void)
{
	return with(O_RDWR, w_store);
}

static int t_stat(void)
{
	struct stat st;

	return fs->stat(F, &st);
}

static int t_access(void)
{
	return fs->access(F, R_OK);
}

static int t_chmod(void)
{
	return fs->chmod(F, 0600);
}

static int t_chmod_same(void)
{
	return fs->chmod(F, 0644);
}

static int t_chown(void)
{
	return fs->chown(F, 1, 1);
}

static int t_chown_same(void)
{
	return fs->chown(F, 0, 0);
}

static int t_link(void)
{
	return fs->link(F, "d/new");
}

static int t_link_out(void)
{
	return fs->link(F, "new");
}

static int t_link_existing(void)
{
	return fs->link(F, "d/g");
}

static int t_unlink_other_name(void)
{
	return fs->unlink("d/second");
}

static int t_unlink(void)
{
	return fs->unlink("d/g");
}

static int t_unlink_missing(void)
{
	return fs->unlink("d/missing");
}

static int t_mkdir(void)
{
	return fs->mkdir("d/new", 0755);
}

static int t_mkdir_existing(void)
{
	return fs->mkdir(F, 0755);
}

static int t_rmdir(void)
{
	return fs->rmdir("d/sub");
}

static int t_rmdir_file(void)
{
	return fs->rmdir(F);
}

static int t_rename(void)
{
	return fs->rename("d/g", "d/new", 0);
}

static int t_rename_itself(void)
{
	/* And back: it is looked at by its old name. */
	int r = fs->rename(F, "d/new", 0);

	return r ? r : fs->rename("d/new", F, 0);
}

static int t_rename_in(void)
{
	return fs->rename("other", "d/new", 0);
}

static int t_rename_out(void)
{
	return fs->rename("d/g", "new", 0);
}

static int t_rename_same(void)
{
	return fs->rename(F, F, 0);
}

static int t_rename_bad(void)
{
	return fs->rename(F, "d/sub", 0);
}

static int t_rename_noreplace(void)
{
	return fs->rename(F, "d/g", RENAME_NOREPLACE);
}

static int t_exchange(void)
{
	int r = fs->rename(F, "d/g", RENAME_EXCHANGE);

	return r ? r : fs->rename(F, "d/g", RENAME_EXCHANGE);
}

static int t_symlink(void)
{
	return fs->symlink("x", "d/new");
}

static int t_mknod(void)
{
	return fs->mknod("d/new", S_IFIFO | 0644, 0);
}

static int t_readlink(void)
{
	char c[8];

	return fs->readlink("d/l", c, sizeof(c));
}

static int t_readdir(void)
{
	struct entry e;
	int h = fs->opendir("d"), r;

	if (h < 0)
		return h;
	do {
		r = fs->readdir(h, &e);
	} while (r == 1);
	fs->closedir(h);
	return r;
}

static int t_setxattr(void)
{
	return fs->setxattr(F, "user.b", "c", 1, 0);
}

static int t_setxattr_bad(void)
{
	return fs->setxattr(F, "user.missing", "c", 1, 2);
}

static int t_removexattr(void)
{
	return fs->removexattr(F, "user.a");
}

static int t_getxattr(void)
{
	char c[8];

	return fs->getxattr(F, "user.a", c, 8);
}

static int t_listxattr(void)
{
	char c[200];

	return fs->listxattr(F, c, 200);
}

static const struct timespec future[2] = { { 1700000000, 0 }, { 1700000001, 0 } };
static const struct timespec atime_only[2] = { { 1700000000, 0 }, { 0, UTIME_OMIT } };
static const struct timespec mtime_only[2] = { { 0, UTIME_OMIT }, { 1700000000, 0 } };
static const struct timespec nothing[2] = { { 0, UTIME_OMIT }, { 0, UTIME_OMIT } };

static int t_utimens(void)
{
	return fs->utimens(F, future);
}

static int t_utimens_atime(void)
{
	return fs->utimens(F, atime_only);
}

static int t_utimens_mtime(void)
{
	return fs->utimens(F, mtime_only);
}

static int t_utimens_nothing(void)
{
	return fs->utimens(F, nothing);
}

static int t_utimens_now(void)
{
	return fs->utimens(F, NULL);
}

static int t_acl(void)
{
	struct {
		uint32_t version;
		struct { uint16_t tag, perm; uint32_t id; } e[3];
	} acl = { 2, { { 1, 6, -1 }, { 4, 0, -1 }, { 0x20, 0, -1 } } };

	return fs->setxattr(F, "system.posix_acl_access", &acl, sizeof(acl), 0);
}

static const struct {
	const char *name;
	int (*run)(void);
	int marks;
	int err;
	bool vfs_only;
} calls[] = {
	{ "open", t_open, 0 },
	{ "open O_CREAT of a file that is there", t_open_creat, 0 },
	{ "open O_TRUNC", t_open_trunc, FILE_(M | C) },
	{ "open O_CREAT|O_EXCL that fails", t_open_excl, 0, EEXIST },
	{ "open O_CREAT of another", t_creat, DIR_(M | C) },
	{ "read", t_read, FILE_(A) },
	{ "write", t_write, FILE_(M | C) },
	{ "write of no bytes", t_write_none, 0 },
	{ "write beyond the end", t_extend, FILE_(M | C) },
	{ "write O_APPEND", t_append, FILE_(M | C) },
	{ "ftruncate to its size", t_ftruncate_same, FILE_(M | C) },
	{ "ftruncate", t_ftruncate, FILE_(M | C) },
	{ "ftruncate that fails", t_ftruncate_rdonly, 0, EINVAL },
	{ "truncate", t_truncate, FILE_(M | C) },
	{ "truncate up", t_truncate_up, FILE_(M | C) },
	{ "truncate that fails", t_truncate_bad, 0, EINVAL },
	{ "fchmod", t_fchmod, FILE_(C) },
	{ "fchown", t_fchown, FILE_(C) },
	{ "fsync", t_fsync, 0 },
	{ "fsetxattr", t_fsetxattr, FILE_(C) },
	{ "fallocate that makes it longer", t_fallocate, FILE_(M | C) },
	{ "fallocate of a hole", t_punch, FILE_(M | C) },
	{ "copy_file_range to it", t_copy_to, FILE_(M | C) },
	{ "a store to a mapping and msync", t_store, FILE_(M | C) | MAY(A), 0, true },
	{ "stat", t_stat, 0 },
	{ "access", t_access, 0 },
	{ "chmod", t_chmod, FILE_(C) },
	{ "chmod to its mode", t_chmod_same, FILE_(C) },
	{ "chown", t_chown, FILE_(C) },
	{ "chown to its owner", t_chown_same, FILE_(C) },
	{ "link", t_link, FILE_(C) | DIR_(M | C) },
	{ "link to elsewhere", t_link_out, FILE_(C) },
	{ "link that fails", t_link_existing, 0, EEXIST },
	{ "unlink of another of its names", t_unlink_other_name, FILE_(C) | DIR_(M | C) },
	{ "unlink of another file", t_unlink, DIR_(M | C) },
	{ "unlink that fails", t_unlink_missing, 0, ENOENT },
	{ "mkdir", t_mkdir, DIR_(M | C) },
	{ "mkdir that fails", t_mkdir_existing, 0, EEXIST },
	{ "rmdir", t_rmdir, DIR_(M | C) },
	{ "rmdir that fails", t_rmdir_file, 0, ENOTDIR },
	{ "rename of another within", t_rename, DIR_(M | C) },
	{ "rename of itself", t_rename_itself, FILE_(C) | DIR_(M | C) },
	{ "rename into the directory", t_rename_in, DIR_(M | C) },
	{ "rename out of the directory", t_rename_out, DIR_(M | C) },
	{ "rename to its own name", t_rename_same, 0 },
	{ "rename that fails", t_rename_bad, 0, EISDIR },
	{ "RENAME_NOREPLACE that fails", t_rename_noreplace, 0, EEXIST },
	{ "RENAME_EXCHANGE", t_exchange, FILE_(C) | DIR_(M | C) },
	{ "symlink", t_symlink, DIR_(M | C) },
	{ "mknod", t_mknod, DIR_(M | C) },
	{ "readlink of another", t_readlink, 0 },
	{ "readdir", t_readdir, DIR_(A) },
	{ "setxattr", t_setxattr, FILE_(C) },
	{ "setxattr that fails", t_setxattr_bad, 0, ENODATA },
	{ "removexattr", t_removexattr, FILE_(C) },
	{ "getxattr", t_getxattr, 0 },
	{ "listxattr", t_listxattr, 0 },
	{ "utimensat", t_utimens, FILE_(A | M | C) },
	{ "utimensat of the atime", t_utimens_atime, FILE_(A | C) },
	{ "utimensat of the mtime", t_utimens_mtime, FILE_(M | C) },
	{ "utimensat of nothing", t_utimens_nothing, 0 },
	{ "utimensat now", t_utimens_now, FILE_(A | M | C) },
	{ "setxattr of an ACL", t_acl, FILE_(C) },
};

static void prepare(void)
{
	static const struct timespec past[2] = { { 1000000000, 5 }, { 1100000000, 6 } };

	wipe("new");
	wipe("other");
	wipe("d");
	OK(fs->mkdir(D, 0755));
	OK(fs->mkdir("d/sub", 0755));
	make_file(F, 5, 0644);
	make_file("d/g", 5, 0644);
	make_file("other", 5, 0644);
	OK(fs->link(F, "d/second"));
	OK(fs->symlink("x", "d/l"));
	OK(fs->setxattr(F, "user.a", "b", 1, 0));
	OK(fs->utimens(F, past));
	OK(fs->utimens(D, past));
	later_than(F);
	later_than(D);
}

static bool later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static bool differ(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec || a->tv_nsec != b->tv_nsec;
}

static void marks(void)
{
	static const char *const which[] = {
		"file's atime", "file's mtime", "file's ctime", "directory's atime", "directory's mtime",
		"directory's ctime"
	};
	struct timespec was[6], is[6];
	struct stat st;
	size_t i;
	int k, r = 0;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].vfs_only && !on_vfs())
			continue;
		if (row("times/%s: %s", calls[i].name, err_name(calls[i].err))) {
			prepare();
			OK(fs->stat(F, &st));
			was[0] = st.st_atim;
			was[1] = st.st_mtim;
			was[2] = st.st_ctim;
			OK(fs->stat(D, &st));
			was[3] = st.st_atim;
			was[4] = st.st_mtim;
			was[5] = st.st_ctim;
			r = calls[i].run();
			GIVES(r, calls[i].err);
			OK(fs->stat(F, &st));
			is[0] = st.st_atim;
			is[1] = st.st_mtim;
			is[2] = st.st_ctim;
			OK(fs->stat(D, &st));
			is[3] = st.st_atim;
			is[4] = st.st_mtim;
			is[5] = st.st_ctim;
		}
		for (k = 0; k < 6; k++) {
			bool marked = calls[i].marks & (1 << k);

			if ((calls[i].marks & MAY(1 << k)) ||
			    !row("times/%s %s the %s", calls[i].name, marked ? "marks" : "leaves", which[k]))
				continue;
			if (!marked)
				WANT(!differ(&is[k], &was[k]));
			else
				WANT(later(&is[k], &was[k]));
		}
	}
	/* A new file has all three alike, and they are now. */
	for (k = T_FILE; k < T_MAX; k++) {
		if (!row("times/a new %s is of now", type_name[k]))
			continue;
		wipe("new");
		later_than(".");
		OK(fs->stat(".", &st));
		was[0] = st.st_ctim;
		make("new", k);
		OK(fs->lstat("new", &st));
		WANT(later(&st.st_atim, &was[0]));
		WANT(later(&st.st_mtim, &was[0]));
		WANT(later(&st.st_ctim, &was[0]));
	}
}

const struct table tables_times[] = {
	{ "times", marks },
	{ NULL },
};
