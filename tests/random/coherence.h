/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * coherence.h - what the workers of coherence write down, and the checks of it.
 */
#ifndef COHERENCE_H
#define COHERENCE_H

#include "far.h"
#include "lin.h"
#include "rnd.h"

#define CO_SIDES	3

#define CO_FILES	2
#define CO_BLOCKS	4
#define CO_STRIDE	65536		/* from block to block: another server each */
#define CO_BLOCK	4096		/* all words of a write are its version */
#define CO_SETS		2		/* of names: files, symbolic links */
#define CO_NAMES	3		/* in a set */

enum co_kind {
	/* obj: file */
	CO_WRITE,		/* a: block, b: version */
	CO_READ,		/* a: block; result: bytes, first, last: the words at its ends */
	CO_TRUNC,		/* a: size */
	CO_EXTEND,		/* a: block; the file is at least as long, by fallocate */
	CO_ZERO,		/* a: block; it is zeros, if it is there: punched, or a range of zeros */
	CO_STORE,		/* a: block, b: version; through a mapping: if it is there */
	CO_FSTAT,		/* result: size */
	/* The one file that is appended to. */
	CO_APPEND,		/* a: id, b: bytes */
	/* result: bytes from 0 on, hash of them, a: where there are eight zeros, or -1 */
	CO_APPEND_READ,
	CO_APPEND_STAT,		/* result: size */
	/* obj: set; a: name; result: errno */
	CO_CREATE,		/* b: what it now stands for */
	CO_UNLINK,
	CO_LOOK,		/* b: what it stands for */
	CO_RENAME,		/* b: to; the next two as well */
	CO_RENAME_NEW,
	CO_EXCHANGE,
};

/* One operation of one worker. */
struct co_rec {
	int64_t call, ret;	/* CLOCK_MONOTONIC, ns */
	int who, kind, obj;
	int64_t a, b, result, first, last;
	uint64_t hash;
};

/* What a process is at: a worker, or the parent, which changes sides. */
struct co_worker {
	int me;			/* worker, or the number of them: the parent */
	struct rnd rnd;
	struct far *at;		/* NULL: its side is here */
	bool mapped;		/* mappings are stored to */
	/* in this round */
	int dir_fd, file_fd[CO_FILES];
	bool shut;		/* file_fd is open for reading only */
};
extern struct co_worker co;

/* Begins to write down an operation, and ends it. */
struct co_rec *co_start(int kind, int obj, int64_t a, int64_t b);
void co_end(struct co_rec *r);
/* A call failed as none may (errno): the round is lost. */
void co_broken(const char *what);
/* That nobody else writes, from co_start() to co_end(). */
uint64_t co_version(void);

/*
 * coherence_files.c: what is to be had in @dir, which is here; something with one of the files; what all of @file
 * is in the end.
 */
void co_files_probe(const char *dir);
void co_files_op(void);
void co_files_look(int file);
void co_files_end(void);

/*
 * An appended record: this, then bytes that depend on the id. Its length is a multiple of 8; no 8
 * bytes of it are 0.
 */
struct co_append {
	uint64_t magic, id, len;
};
#define CO_MAGIC 0x5056465361707064ull

void co_append_fill(void *buf, uint64_t id, size_t len);
uint64_t co_hash(const void *buf, size_t n);

/*
 * What was found wrong in the @n operations of one round; they say so on @out, and count what they
 * could not decide.
 */
int co_check_files(const struct co_rec *r, size_t n, FILE *out, int *undecided);
int co_check_names(const struct co_rec *r, size_t n, FILE *out, int *undecided);
/* @bytes: what the appended file held in the end. */
int co_check_appends(const struct co_rec *r, size_t n, const unsigned char *bytes, size_t len,
		     FILE *out);

#endif
