// SPDX-License-Identifier: GPL-2.0-only
/*
 * md.c - mdtest's patterns. Easy: empty files, in a directory of each process. Hard: files of 3,901
 * bytes, all in one. Each phase goes to the files that another process has made.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "api.h"
#include "pbench.h"

#define HARD_BYTES 3901

enum phase { CREATE, STAT, READ, REMOVE, PHASES };
static const char *const phase_name[PHASES] = { "create", "stat", "read", "remove" };

static void one(enum phase phase, const char *name, size_t bytes, uint64_t seed)
{
	char buf[HARD_BYTES];
	struct file *f;

	switch (phase) {
	case CREATE:
		fill(buf, bytes, 0, seed);
		f = opt.api->open(name, O_WRONLY | O_CREAT | O_EXCL, false, LIST);
		if (bytes)
			opt.api->write(f, buf, bytes, 0);
		opt.api->close(f);
		return;
	case STAT:
		if (opt.api->size(name) != (off_t)bytes)
			fail("%s: wrong size", name);
		return;
	case READ:
		f = opt.api->open(name, O_RDONLY, false, LIST);
		memset(buf, 0, bytes);
		opt.api->read(f, buf, bytes, 0);
		opt.api->close(f);
		check(buf, bytes, 0, seed, name);
		return;
	default:
		opt.api->remove(name);
	}
}

static void pattern(bool hard)
{
	struct part part[PHASES] = { 0 };
	size_t bytes = hard ? HARD_BYTES : 0;
	char dir[64], name[128];
	enum phase p;
	long r, k;
	int i;

	for (i = 0; i < nprocs && !rank; i++) {
		snprintf(dir, sizeof(dir), hard ? "pbench.hard" : "pbench.easy.%d", i);
		if (!i || !hard)
			opt.api->mkdir(dir);
	}
	for (r = 0; r < opt.rounds; r++) {
		for (p = CREATE; p < PHASES; p++) {
			int who = (rank + p) % nprocs;

			if (p == READ && !hard)
				continue;
			part_begin(&part[p]);
			for (k = 0; k < opt.count; k++) {
				if (hard)
					snprintf(name, sizeof(name), "pbench.hard/file.%d.%ld", who, k);
				else
					snprintf(name, sizeof(name), "pbench.easy.%d/file.%ld", who, k);
				one(p, name, bytes, r + k * opt.rounds + who * opt.count * opt.rounds);
			}
			part_end(&part[p]);
		}
	}
	for (i = 0; i < nprocs && !rank; i++) {
		snprintf(dir, sizeof(dir), hard ? "pbench.hard" : "pbench.easy.%d", i);
		if (!i || !hard)
			opt.api->rmdir(dir);
	}
	for (p = CREATE; p < PHASES; p++)
		if (part[p].rounds) {
			snprintf(name, sizeof(name), "md %s-%s", hard ? "hard" : "easy", phase_name[p]);
			report(&part[p], name, "files", (double)opt.count * nprocs,
			       "count=%ld bytes=%zu", opt.count, bytes);
		}
}

static void run(void)
{
	if (mode("easy"))
		pattern(false);
	if (mode("hard"))
		pattern(true);
}

const struct bench bench_md = { .name = "md", .run = run, .letters = "cm", .modes = "easy,hard" };
