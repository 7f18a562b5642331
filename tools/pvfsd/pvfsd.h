/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pvfsd.h - pvfsd(8) from inside.
 *
 *   main.c    options, start and stop
 *   ops.c     what the kernel asks: names, attributes, files, directories
 *   open.c    open files, and locks
 *   node.c    the inodes that the kernel knows
 *   ask.c     what the kernel waits for, and callers that were killed
 *   layout.c  the attribute pvfs.layout
 *
 * The kernel asks, a thread of libfuse calls libpvfs for the user who asked, and the manager decides:
 * nothing is cached here or in the kernel, so this mount is as coherent as any other client.
 */
#ifndef PVFSD_H
#define PVFSD_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include "../../lib/pvfs.h"

extern struct pvfs_fs *fs;	/* main.c's, as the next: set before the first request */
extern struct pvfs_fh root;

/* ---- node.c: an inode is known to the kernel by its number; we have its generation ---- */

/* @target: of a symbolic link, NULL: not known. One lookup more. Return: 0 or -ENOMEM. */
int node_remember(const struct pvfs_stat *st, const char *target);
void node_forget(uint64_t ino, uint64_t count);
/* Generation 0, which there is not: unknown. */
struct pvfs_fh node_fh(fuse_ino_t ino);
/* Return: its length, 0: it has to be asked for. */
size_t node_target(fuse_ino_t ino, char target[PVFS_TARGET_ROOM]);
/* A directory that is gone, and still open somewhere, is one without links. Is it one? */
int node_gone_directory(fuse_ino_t ino, struct stat *ret);

/* ---- ask.c ---- */

/* What a request uses, and its end in the kernel may not take away: an open file or directory. */
struct held {
	atomic_int refs;
	int (*last)(struct held *h);	/* nobody uses it any more */
};

void held_init(struct held *h, int (*last)(struct held *h));
/* Return: what last() did, or 0. */
int held_put(struct held *h);
int held_shared(struct held *h);	/* by others than who asks */

/* This thread works on @req, and may have to wait. */
void ask_begin(fuse_req_t req, pid_t pid);
/* Until ask_end() it uses @h. Two at most. */
void ask_hold(struct held *h);
/*
 * The answer is there. Return: 1, it is to be given, by whoever asks this; 0: the caller was killed
 * and does not wait any more, and what the answer would have given it is to be undone.
 */
int ask_end(void);
int ask_start(void);

/* ---- layout.c: see pvfs(5) ---- */

#define LAYOUT_XATTR "pvfs.layout"

/* As getxattr(2) and setxattr(2), or -errno. */
ssize_t layout_get(const struct pvfs_fh *fh, char *buf, size_t size);
int layout_set(const struct pvfs_fh *fh, const char *value, size_t size, int flags);

/* ---- open.c ---- */

/* Takes @f, which is closed when there is no memory; fi->fh is the file then. Return: 0 or -ENOMEM. */
int open_begin(struct fuse_file_info *fi, struct pvfs_file *f, uint64_t ino);
int open_end(const struct fuse_file_info *fi);
/* The request that this thread works on uses it from here on. */
struct pvfs_file *file_of(const struct fuse_file_info *fi);
void do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op);
void do_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl, int sleep);
void do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl);
void do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* ---- ops.c ---- */

extern const struct fuse_lowlevel_ops ops;

/* What follows on this thread is done for who made the request. */
void as(fuse_req_t req);
void reply(fuse_req_t req, int err);

#endif
