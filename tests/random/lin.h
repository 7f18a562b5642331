/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lin.h - is a history linearizable? The operations of concurrent callers on one object, each with
 * the times of call and return, are if there is an order that keeps "returned before the other was
 * called" and in which each result is the one that a lone caller would have got.
 *
 * The search is that of Wing and Gong (J. Parallel Distrib. Comput. 17, 1993) with Lowe's memory of
 * what was tried (set of operations done, state). Histories of one thread after the other take
 * linear time; the worst case is exponential in the number of callers, so there is a limit.
 */
#ifndef LIN_H
#define LIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LIN_STATE 4

/* As a result: not known, because the call is not over. */
#define LIN_OPEN (-4096)

/* One operation; what kind, arg and result are is the model's business. */
struct lin_op {
	int64_t call, ret;	/* ns; two that touch count as concurrent */
	int who;
	int kind;
	int64_t arg, arg2, result;
};

struct lin_state {
	int64_t v[LIN_STATE];
};

struct lin_model {
	const char *name;
	/*
	 * May @op come next, in @s? Then makes @s what it is afterwards. Must leave @s alone
	 * otherwise.
	 */
	bool (*step)(const struct lin_op *op, struct lin_state *s);
	/* Never changes the state: may be left out of a counterexample. */
	bool (*reads)(const struct lin_op *op);
	void (*print)(FILE *out, const struct lin_op *op);
};

enum lin_verdict { LIN_OK, LIN_BAD, LIN_UNKNOWN };

/*
 * Judges the @n operations of @ops (in any order) from state @init on. When they are not
 * linearizable and @out is given, prints a counterexample there: as few reads as make it
 * impossible, and the writes around them.
 */
enum lin_verdict lin_check(const struct lin_model *m, const struct lin_state *init,
			   const struct lin_op *ops, size_t n,
			   FILE *out);

/*
 * A block of a file. State: -1 behind the end, 0 zeros, else the version. Unlike a plain register
 * it is changed by what happens to other blocks.
 */
enum lin_block_kind {
	BLOCK_WRITE,		/* arg: version */
	BLOCK_CUT,		/* the file now ends at or before it */
	BLOCK_EXTEND,		/* the file now ends behind it */
	BLOCK_READ,		/* result: the state */
	BLOCK_STORE,		/* arg: version; where the file ends before it nothing happens */
	BLOCK_ZERO,		/* the same, with zeros */
};
extern const struct lin_model lin_block;

/* A file's size. */
enum lin_size_kind {
	SIZE_EXTEND,		/* arg: at least this */
	SIZE_SET,		/* arg */
	SIZE_ADD,		/* arg: an append of this much */
	SIZE_STAT,		/* result */
};
extern const struct lin_model lin_size;

/*
 * Up to LIN_STATE names in one directory. State: what each stands for, 0 for nothing. result: 0 or
 * an errno.
 */
enum lin_name_kind {
	NAME_CREATE,		/* arg: name, arg2: what it stands for; fails with EEXIST */
	NAME_UNLINK,		/* arg: name */
	NAME_LOOK,		/* arg: name, arg2: what was seen */
	NAME_RENAME,		/* arg: from, arg2: to */
	NAME_RENAME_NEW,	/* the same with NOREPLACE */
	NAME_EXCHANGE,
};
extern const struct lin_model lin_names;

#endif
