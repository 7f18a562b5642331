/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dataops.h - the state of dataops: two files, each with its model, through one or two mounts.
 *
 * dataops.c draws operations and compares; dataops_exec.c carries them out on file and model.
 */
#ifndef DATAOPS_H
#define DATAOPS_H

#include "rnd.h"

#define DATA_FILES	2
#define PAGE		4096

/* What files are opened for, at the same time. */
enum data_fd { FD_RW, FD_APPEND, FD_DIRECT, FD_NR };

enum data_kind {
	OP_READ, OP_WRITE, OP_APPEND, OP_DREAD, OP_DWRITE, OP_MAPREAD, OP_MAPWRITE, OP_MSYNC,
	OP_MUNMAP, OP_TRUNC, OP_ALLOC, OP_ALLOC_KEEP, OP_PUNCH, OP_ZERO, OP_ZERO_KEEP, OP_COPY,
	OP_COPY_TO, OP_SYNC, OP_REOPEN, OP_SEEK, OP_FADVISE, OP_STAT, OP_NR
};

/* One operation, whole: carried out again from its line in the log it does the same. */
struct data_op {
	uint64_t n;		/* its number; the bytes written depend on it */
	enum data_kind kind;
	int side, file;
	int64_t off, len;	/* bytes */
	int64_t off2;		/* of a copy: where to */
	uint64_t arg;		/* picks variants: the call, how it is cut up */
};

struct data_file {
	unsigned char *model;	/* data.max bytes, zero from size on */
	int64_t size;
	char path[RND_SIDES][512];
	int fd[RND_SIDES][FD_NR];	/* FD_DIRECT may be -1 */
	unsigned char *map[RND_SIDES];	/* of all the file may become, or NULL */
	bool dirty[RND_SIDES];	/* stores that the other side need not see yet */
	bool stale[RND_SIDES];	/* the other side changed the file since it was mapped */
};

struct data_state {
	int sides;
	int64_t max;		/* no file gets longer; a multiple of PAGE */
	uint64_t seed;
	bool one_memory;	/* mappings through all sides are */
	bool have[OP_NR];	/* what the file system knows, by asking it */
	struct data_file file[DATA_FILES];
	unsigned char *buf, *want;	/* max + PAGE bytes, aligned for O_DIRECT */
	const struct data_op *now;	/* for reports */
	uint64_t done[OP_NR];
};

extern struct data_state data;
extern const char *const data_names[OP_NR];

/* Opens what is to be open of @f on @side, with @flags on top; fails the run when that fails. */
void data_open(struct data_file *f, int side, int flags);
void data_close(struct data_file *f, int side);
/* Fills data.have. */
void data_probe(void);
/* Carries out @op on file and model, and checks what it returns. */
void data_exec(const struct data_op *op);
/* What all sides may see of @f, they see from here on; @how picks one of the ways. */
void data_settle(struct data_file *f, int side, uint64_t how);
/* Compares @n bytes at @off of the file, just read by @what, with the model. */
void data_compare(struct data_file *f, const unsigned char *got, int64_t off, int64_t n,
		  const char *what);

#endif
