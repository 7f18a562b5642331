/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cp.h - the parts of `pvfs cp`.
 */
#ifndef PVFS_TOOL_CP_H
#define PVFS_TOOL_CP_H

#include "tool.h"
#include <pthread.h>
#include <sys/stat.h>

/* ---- end.c: a place to copy from or to, in the volume or local ---- */

/* @fs: the volume, or NULL for the local file system. */
struct end {
	struct pvfs_fs *fs;
};

struct end_file {
	struct pvfs_file *remote;	/* or */
	int fd;
};

int end_stat(struct end e, const char *path, bool follow, struct stat *ret);
int end_open(struct end e, const char *path, int flags, mode_t mode, struct end_file *ret);
int end_close(struct end_file *f);
ssize_t end_pread(struct end_file *f, void *buf, size_t n, off_t off);
ssize_t end_pwrite(struct end_file *f, const void *buf, size_t n, off_t off);
int end_truncate(struct end_file *f, off_t size);
int end_fsync(struct end_file *f);
int end_fstat(struct end_file *f, struct stat *ret);
off_t end_next_data(struct end_file *f, off_t off, off_t end);
off_t end_next_hole(struct end_file *f, off_t off, off_t end);
ssize_t end_copy(struct end_file *from, struct end_file *to, off_t off, size_t n);
int end_mkdir(struct end e, const char *path, mode_t mode);
int end_unlink(struct end e, const char *path);
int end_rename(struct end e, const char *from, const char *to);
int end_readlink(struct end e, const char *path, char target[PVFS_SYMLINK_MAX + 1]);
int end_copy_special(struct end s, const char *from, const struct stat *st, struct end d,
		     const char *to);
int end_chmod(struct end e, const char *path, mode_t mode);
/* Calls @fn for every entry but "." and ".."; stops when it returns non-zero. */
int end_list(struct end e, const char *dir, int (*fn)(const char *name, void *arg), void *arg);

/* ---- keep.c: -p ---- */

bool keep_all(struct end s, const char *from, const struct stat *st, struct end d, const char *to);

/* ---- resume.c: the note beside a file that is being copied ---- */

/* The source as it was when the copy began. */
struct resume {
	char path[8192];	/* of the note; "" when there can't be one (the name is too long) */
	bool exists;		/* a note was written or found */
};

void resume_init(struct resume *r, const char *target);
int resume_write(struct resume *r, struct end e, const struct stat *src, off_t done);
/* How far an earlier copy of the same source is known to be good; 0: begin anew. @why: says why. */
off_t resume_find(struct resume *r, struct end e, const struct stat *src, struct end_file *from,
		  struct end_file *to, const char **ret_why);
void resume_remove(struct resume *r, struct end e);

#endif
