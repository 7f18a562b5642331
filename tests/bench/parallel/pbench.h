/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pbench.h - what the benchmarks of parallel programs share: options, measured parts, data that
 * tells where in which file it belongs.
 */
#ifndef PBENCH_H
#define PBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_SIZES 32
#define MAX_ROUNDS 100

struct options {
	const struct api *api;
	const char *dir;	/* what the interface calls it */
	long rounds;
	long iterations;	/* blocks of a process */
	long count;		/* records or files of a process */
	bool verify;
	bool sync;		/* counts as part of a write */
	bool keep;		/* the file: what makes it does not count */
	long factor;		/* I/O daemons of a file; 0: as its directory says */
	long unit;		/* stripe unit, bytes; 0: the same */
	size_t size[MAX_SIZES];
	int nsizes;
	int tiles[2];		/* tile: how many, and of how many elements, across and down */
	int tile[2];
	int overlap[2];
	long element;		/* bytes */
	long header;		/* bytes before the first element */
	const char *modes;	/* a list of words */
	const char *pids;	/* the same, of daemons whose CPU is noted */
};

extern struct options opt;
extern int rank, nprocs;

/* A benchmark: @modes are the words it knows, @letters the options beside the common ones. */
struct bench {
	const char *name;
	void (*run)(void);
	const char *letters;
	const char *modes;
};
extern const struct bench bench_test, bench_perf, bench_tile, bench_records, bench_md;

/* Ends all processes, with a message. */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
bool mode(const char *word);
void *memory(size_t n);

/* The bytes from @off on of what @seed names. */
void fill(void *buf, size_t n, off_t off, uint64_t seed);
/* Ends all when @buf is something else, unless it was not to be verified. */
void check(const void *buf, size_t n, off_t off, uint64_t seed, const char *name);

void barrier(void);

/* What is measured, round by round, on each process by itself. */
struct part {
	int rounds;
	double secs[MAX_ROUNDS];
	double cpu;		/* seconds of all rounds */
	double daemons;		/* the same of opt.pids, on the first process */
	double t, c, d;
};
void part_begin(struct part *p);	/* together */
void part_end(struct part *p);

/*
 * One line: @what, then "api=", "procs=", what @fmt makes, and the value, @amount being what all
 * processes did in a round: the worst process' mean over the rounds counts. Beside it the rounds
 * each by itself. @key: "mbs", of bytes, with the CPU of processes and daemons; else so many a second. Returns
 * the value, on all processes.
 */
double report(const struct part *p, const char *what, const char *key, double amount,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
