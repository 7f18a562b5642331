/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heads.h - where the bytes of stuffed files are: records of the database (stuff_store = "db"), or
 * files beside it ("file"). Each head's record says which, so that a volume may have both.
 *
 *   head.c      operations on heads; knows nothing of where they are
 *   heads.c     the two stores, and what becomes of files whose transaction has ended
 *   headfile.c  the files; knows nothing of the database
 */
#ifndef PVFS_MGR_HEADS_H
#define PVFS_MGR_HEADS_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include "schema.h"

struct mgr;
struct mgr_op;

/* ---- headfile.c ---- */

#define MGR_HEADDIRS 1024u		/* directories that the files are spread over */
#define MGR_HEADFILE_NAME 64u		/* room for a path, from the directory of them all */

struct mgr_headfiles {
	int dfd;			/* of the directory of them all, -1: there is none */
	bool sync;			/* what is written is on stable storage when it is done */
	pthread_mutex_t lock;		/* one directory is made at a time; held across the fsync */
	atomic_bool kept[MGR_HEADDIRS];	/* the directory is there to stay */
};

/**
 * mgr_headfiles_open - the directory of the files
 * @s: filled; its @dfd is -1 when there is no directory and it is not to be made
 * @store: the manager's store
 * @make: it, if it is not there
 * @sync: see struct mgr_headfiles
 *
 * Return: 0 or -errno.
 */
int mgr_headfiles_open(struct mgr_headfiles *s, const char *store, bool make, bool sync);
void mgr_headfiles_close(struct mgr_headfiles *s);
/* Where the file is, from there. */
void mgr_headfile_path(const struct mgr_headfile *f, char path[MGR_HEADFILE_NAME]);
/**
 * mgr_headfile_write - make a file
 * @f: its name, and how many bytes
 * @bytes: these
 *
 * Return: 0; or -errno, and there is no such file.
 */
int mgr_headfile_write(struct mgr_headfiles *s, const struct mgr_headfile *f, const void *bytes);
/* Its bytes. Return: 0, -ENOENT, -EUCLEAN (they are others, more or fewer), or -errno. */
int mgr_headfile_read(struct mgr_headfiles *s, const struct mgr_headfile *f, void *bytes);
/* 0 also when there is none. */
int mgr_headfile_remove(struct mgr_headfiles *s, const struct mgr_headfile *f);
/* Directory number @i; NULL: errno says why, ENOENT: there is none. */
DIR *mgr_headfile_opendir(struct mgr_headfiles *s, u32 i);
/* The next name in it that is one of ours. */
bool mgr_headfile_next(DIR *d, struct mgr_headfile *ret);

/* ---- heads.c ---- */

#define MGR_DAMAGED_MAX 16u

/* A file that no record names, as far as is known. */
struct mgr_headgone {
	struct mgr_headgone *next;
	struct mgr_headfile f;
};

/* The file that a transaction is about to name. */
struct mgr_headnew {
	struct mgr_headgone *file;
	u32 tries;		/* it is the how manieth of this transaction */
	bool written, used;
	u8 bytes[];
};

struct mgr_heads {
	struct mgr_headfiles dir;
	bool files;		/* what is written now goes there */
	pthread_mutex_t lock;	/* protects what follows; a leaf */
	u64 nr;			/* of the next file */
	/*
	 * @nr when generation @db_gen of the database began. The files before that are of no
	 * transaction that is under way.
	 */
	u64 floor, db_gen;
	u32 sweep;		/* directories from here on may have files that no record names */
	struct mgr_headgone *gone;
	u64 damaged[MGR_DAMAGED_MAX];	/* inodes, to be named in the log */
	u32 ndamaged;
	u64 named_at;		/* monotonic ms: when that was done last */
	bool left;		/* the thread's: a file could not be removed */
	bool kicked;		/* protected by bg_lock */
};

/**
 * mgr_heads_open - at the start
 * @err: a line for the user when it fails
 *
 * Return: 0 or -errno.
 */
int mgr_heads_open(struct mgr *m, char *err, size_t errlen);
void mgr_heads_close(struct mgr *m);
/* At the start: the last process did not end in order, so there may be files that no record names. */
void mgr_heads_suspect(struct mgr *m);
/* At the end, without threads: removes what has to be removed. Return: no such file is left. */
bool mgr_heads_settle(struct mgr *m);

/**
 * mgr_heads_get - the head of @in, as long as @in->size says
 * @flags: of mdb_get()
 * @rec: the bytes come behind it; it has mgr_head_room(@in->size) bytes
 *
 * Return: 0, -EAGAIN (outside of transactions: it has changed since the inode was read), -EUCLEAN
 * (it is damaged, and the log says so), -EIO, or the database's error.
 */
int mgr_heads_get(struct mgr_op *op, const struct mgr_inode *in, u32 flags,
		  struct mgr_head_disk *rec);
/**
 * mgr_heads_put - in a transaction: the head of @in becomes another one
 * @in: as it was before: @in->size says whether there is one
 * @rec: the bytes are behind it
 * @size: how many, not 0
 *
 * Return: 0, -ENOLINK (the bytes have to be on the disk first: mgr_run() sees to that, and runs the
 * function again), -ENOMEM, -ENOSPC, or an error of the disk or the database.
 */
int mgr_heads_put(struct mgr_op *op, const struct mgr_inode *in, struct mgr_head_disk *rec,
		  u32 size);
/* In a transaction: it has none any more, and had one. */
int mgr_heads_del(struct mgr_op *op, const struct mgr_inode *in);
/**
 * mgr_heads_ended - what mgr_run() says when a transaction ended
 * @err: 0 when it was committed; -EDEADLK and -ENOLINK when it comes again
 *
 * Return: @err, or with -ENOLINK what became of the file.
 */
int mgr_heads_ended(struct mgr_op *op, int err);
/* Does the file that @rec, the record of @ino, names have its bytes? For check.c. */
int mgr_heads_check(struct mgr *m, u64 ino, const void *rec, u32 reclen, u32 *ret_len);

/* Removes files that no record names. Return: there are more, or -errno. */
int mgr_heads_pass(struct mgr *m);
void *mgr_heads_thread(void *arg);

#endif
