// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.c - the four measures of ROMIO's perf: every process has one contiguous block in a file of
 * all, and writes it, reads it, writes it with a sync that counts, and reads it after that.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "pbench.h"

#define NAME "pbench.perf"

static void phase(struct part *p, bool write, bool sync, char *buf, size_t size, uint64_t seed)
{
	struct file *f;

	if (write)
		fill(buf, size, (off_t)rank * size, seed);
	else
		memset(buf, 0, size);
	f = opt.api->open(NAME, write ? O_RDWR | O_CREAT : O_RDONLY, true, LIST);
	part_begin(p);
	if (write)
		opt.api->write(f, buf, size, (off_t)rank * size);
	else
		opt.api->read(f, buf, size, (off_t)rank * size);
	if (sync)
		opt.api->sync(f);
	part_end(p);
	opt.api->close(f);
	if (!write)
		check(buf, size, (off_t)rank * size, seed, NAME);
	barrier();
}

static void one_size(size_t size)
{
	static const char *const name[] = {
		"perf write", "perf read", "perf write-sync", "perf read-after-sync"
	};
	struct part part[4] = { 0 };
	char *buf = memory(size);
	long r;
	int i;

	for (r = 0; r < opt.rounds; r++) {
		for (i = 0; i < 4; i++) {
			phase(&part[i], i % 2 == 0, i == 2, buf, size, r * 2 + i / 2);
			/* A write that makes the file, each time. */
			if (i % 2 && !rank)
				opt.api->remove(NAME);
			barrier();
		}
	}
	for (i = 0; i < 4; i++)
		report(&part[i], name[i], "mbs", (double)size * nprocs, "block=%zu factor=%ld", size,
		       opt.factor);
	free(buf);
}

static void run(void)
{
	int i;

	for (i = 0; i < opt.nsizes; i++)
		one_size(opt.size[i]);
}

const struct bench bench_perf = { .name = "perf", .run = run, .letters = "b" };
