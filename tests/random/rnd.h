/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rnd.h - what the random testers share: random numbers that a seed repeats, a memory of the last
 * operations, and the end of a run that found something.
 *
 * The programs know nothing of PVFS: on a local file system they say whether the tester itself is
 * right.
 */
#ifndef RND_H
#define RND_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Two views of one directory at most: two mounts, or one. */
#define RND_SIDES	2

/* Operations that a report shows. */
#define RND_LAST	50

struct rnd {
	uint64_t s;
};

/* A generator whose numbers depend on @seed and @stream only. */
void rnd_seed(struct rnd *r, uint64_t seed, uint64_t stream);
uint64_t rnd_next(struct rnd *r);
/* From 0 to @n - 1; 0 when @n is 0. */
uint64_t rnd_below(struct rnd *r, uint64_t n);
/* True once in @n. */
bool rnd_one_in(struct rnd *r, unsigned int n);

/* @n bytes that no other @stamp or offset has. */
void rnd_fill(void *buf, size_t n, uint64_t off, uint64_t stamp);

/* Remembers a line about what comes next, and writes it to the log when there is one. */
void rnd_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Adds to the last line: what came out of it. */
void rnd_note_more(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Every line goes to @path as well. */
void rnd_log_to(const char *path);
/* Prints what is remembered. */
void rnd_show_last(void);

/* Called by rnd_fail before it exits: the tester's own part of the report. */
extern void (*rnd_report)(void);
/* Prints the reason, the tester's report and the last operations; exits with 1. */
void rnd_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Wrong usage, or the test cannot be run at all: exits with 2. */
void rnd_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A number from a command line, or rnd_die. */
uint64_t rnd_number(const char *text, uint64_t min, uint64_t max);
double rnd_now(void);
void *rnd_alloc(size_t n);

#endif
