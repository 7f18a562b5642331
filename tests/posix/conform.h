/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * conform.h - what the tables of the conformance suite share.
 *
 * A table is a function that goes through its rows; a row is one check with a name of its own, and
 * one line of TAP:
 *
 *	for (...) {
 *		if (!row("chmod/%s ...", ...))
 *			continue;
 *		GIVES(fs->chmod("f", 0600), EPERM);
 *	}
 *
 * row() ends the row before it. Every table is run dry first, to count its rows: row() is false
 * then, and what a table builds for its rows is guarded by live(). What a call should give comes
 * from POSIX, the man pages or a model written beside the table, never from what some file system
 * did.
 *
 * Tables run as root with umask 0 in an empty directory of their own, and reach files only through
 * @fs, which is the kernel or libpvfs. Those that need more than libpvfs has are for the kernel
 * only and may call it directly.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Rows of tables leave out what is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- who asks ---- */

struct who {
	const char *name;
	uid_t uid;
	gid_t gid;
	gid_t groups[3];
	int ngroups;
};

/*
 * Files of most tables belong to OWNER and its group; MEMBER has that as its group, SUPPL among its
 * other groups.
 */
extern const struct who ROOT, OWNER, MEMBER, SUPPL, OTHER;
#define G_OTHER 2909	/* a group that OWNER is in as well */
#define G_NONE 2999	/* one that nobody is in */

/* From here on all calls are made for @w. */
void be(const struct who *w);

/* ---- calls: 0 or more, or a negative errno ---- */

struct entry {
	char name[256];
	int64_t off;
	uint64_t ino;
};

struct api {
	const char *name;
	int (*open)(const char *path, int flags, mode_t mode);
	int (*close)(int h);
	ssize_t (*pread)(int h, void *buf, size_t n, off_t off);
	ssize_t (*pwrite)(int h, const void *buf, size_t n, off_t off);
	ssize_t (*preadv)(int h, const struct iovec *iov, int n, off_t off);
	ssize_t (*pwritev)(int h, const struct iovec *iov, int n, off_t off);
	int (*fsync)(int h);
	int (*fdatasync)(int h);
	int (*ftruncate)(int h, off_t size);
	int (*fallocate)(int h, int mode, off_t off, off_t len);
	off_t (*lseek)(int h, off_t off, int whence);	/* libpvfs: SEEK_DATA and SEEK_HOLE */
	/* Moves *@from and *@to, as the system call; they are NULL over the kernel only. */
	ssize_t (*copy_file_range)(int in, off_t *from, int out, off_t *to, size_t n,
				   unsigned int flags);
	int (*fstat)(int h, struct stat *st);
	int (*fchmod)(int h, mode_t mode);
	int (*fchown)(int h, uid_t uid, gid_t gid);
	int (*futimens)(int h, const struct timespec ts[2]);
	int (*stat)(const char *path, struct stat *st);
	int (*lstat)(const char *path, struct stat *st);
	int (*access)(const char *path, int mode);
	int (*truncate)(const char *path, off_t size);
	int (*chmod)(const char *path, mode_t mode);
	int (*chown)(const char *path, uid_t uid, gid_t gid);
	int (*lchown)(const char *path, uid_t uid, gid_t gid);
	int (*utimens)(const char *path, const struct timespec ts[2]);
	int (*lutimens)(const char *path, const struct timespec ts[2]);
	int (*mkdir)(const char *path, mode_t mode);
	int (*mknod)(const char *path, mode_t mode, dev_t dev);
	int (*rmdir)(const char *path);
	int (*unlink)(const char *path);
	int (*rename)(const char *from, const char *to, unsigned int flags);
	int (*link)(const char *from, const char *to);
	int (*symlink)(const char *target, const char *path);
	ssize_t (*readlink)(const char *path, char *buf, size_t n);
	ssize_t (*getxattr)(const char *path, const char *name, void *value, size_t size);
	ssize_t (*lgetxattr)(const char *path, const char *name, void *value, size_t size);
	ssize_t (*fgetxattr)(int h, const char *name, void *value, size_t size);
	int (*setxattr)(const char *path, const char *name, const void *value, size_t size, int flags);
	int (*lsetxattr)(const char *path, const char *name, const void *value, size_t size, int flags);
	int (*fsetxattr)(int h, const char *name, const void *value, size_t size, int flags);
	ssize_t (*listxattr)(const char *path, char *list, size_t size);
	ssize_t (*llistxattr)(const char *path, char *list, size_t size);
	ssize_t (*flistxattr)(int h, char *list, size_t size);
	int (*removexattr)(const char *path, const char *name);
	int (*lremovexattr)(const char *path, const char *name);
	int (*fremovexattr)(int h, const char *name);
	int (*opendir)(const char *path);
	int (*readdir)(int h, struct entry *e);		/* 1: there is one, 0: the end */
	void (*seekdir)(int h, int64_t off);
	int64_t (*telldir)(int h);
	int (*closedir)(int h);
	int (*lock)(int h, int cmd, struct flock *fl);	/* F_SETLK, F_GETLK and their OFD twins */
	int (*flock)(int h, int op);
	mode_t (*umask)(mode_t mask);
	/* Behind the tables. */
	void (*setcred)(const struct who *w);
	int (*enter)(const char *dir);			/* makes that the current directory */
};

extern const struct api api_vfs, api_lib;
extern const struct api *fs;
/* Is it the kernel? Rows for what libpvfs does not offer are asked for only then. */
static inline bool on_vfs(void)
{
	return fs == &api_vfs;
}
/* DIR is a mount spec for libpvfs: host:port,volume,keyfile. */
int api_lib_mount(const char *spec);
int api_lib_umount(void);
/* For the kernel's calls that are not in struct api: r, or -errno when r is -1. */
long sys(long r);

/* ---- rows ---- */

bool row(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Are rows being run, or only counted? */
bool live(void);
/* The row fails; without a row, what the table needs is not there and all its rows fail. */
void wrong(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Does the row go well so far? */
bool fine(void);
void gives(const char *file, int line, const char *what, long long r, int err);
void equal(const char *file, int line, const char *what, long long a, long long b);

/* The call succeeds when @err is 0, and else fails with that errno. */
#define GIVES(call, err) gives(__FILE__, __LINE__, #call, (call), err)
#define OK(call) GIVES(call, 0)
#define EQ(a, b) equal(__FILE__, __LINE__, #a, (long long)(a), (long long)(b))
#define WANT(cond) do { if (!(cond)) wrong(__FILE__, __LINE__, "%s", #cond); } while (0)

const char *err_name(int err);

/* ---- things ---- */

enum type {
	T_NONE, T_FILE, T_DIR, T_FULLDIR, T_SYMFILE, T_SYMDIR, T_DANGLING, T_LOOP, T_FIFO, T_SOCK, T_CHR, T_BLK, T_MAX
};
extern const char *const type_name[T_MAX];
/*
 * Makes one: links point to "tfile" and "tdir" beside them, which make_targets() makes. A file has
 * 5 bytes.
 */
void make(const char *path, enum type type);
void make_targets(const char *dir);
/* The S_IFMT bits that lstat() should say. */
mode_t type_ifmt(enum type type);
/* A file of @n bytes. */
void make_file(const char *path, size_t n, mode_t mode);
/* Removes what is there, if anything is; a directory with its files. */
void wipe(const char *path);
bool exists(const char *path);
ino_t ino_of(const char *path);

/* What a call that fails must leave as it was. */
struct snap {
	const char *path[4];
	struct stat st[4];
	int rc[4];
	int n;
};
/* Up to four paths, ended by NULL. */
void snap_take(struct snap *s, const char *path, ...) __attribute__((sentinel));
void snap_same(const struct snap *s, const char *file, int line);
#define SAME(s) snap_same(s, __FILE__, __LINE__)

/* Makes sure that the time stamps of what is done next are later than those of @path. */
void later_than(const char *path);
/*
 * The group and permission rule of POSIX, 1003.1 "File Access Permissions": may @w have @want (R_OK
 * | ...)?
 */
bool may(const struct who *w, mode_t mode, uid_t uid, gid_t gid, int want);
/* A mode that gives @bits to the class of @w only. *@letter: which class that is. */
mode_t class_mode(const struct who *w, int bits, char *letter);
bool in_group(const struct who *w, gid_t gid);
/* A number in /proc/sys/fs, -1 if it is not there. */
int sysctl_fs(const char *name);
/* Is the running kernel at least that? */
bool kernel_from(int major, int minor);

struct table {
	const char *name;
	void (*run)(void);
	bool vfs_only;
};
/* Lists end with a NULL name. */
extern const struct table tables_perm[], tables_permdir[], tables_owner[], tables_open[], tables_names[],
	tables_namespace[], tables_rename[], tables_times[], tables_modes[], tables_limits[], tables_space[],
	tables_rw[], tables_xattr[], tables_acl[], tables_locks[], tables_dirs[], tables_special[], tables_fds[];

/* Why @name, on file system @on, may give something else; NULL when it may not. */
const char *difference(const char *name, const char *on, bool *luck);

#endif
