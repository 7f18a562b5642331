// SPDX-License-Identifier: GPL-2.0-only
/*
 * records.c - ior's hard pattern: records of an odd size, of all processes in turn, in one file; and
 * the same calls on a file for each process. Each reads what another one has written.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include "api.h"
#include "pbench.h"

static void pattern(size_t size, bool shared, double *mbs)
{
	char *out = memory(size * opt.count), *in = memory(size * opt.count);
	double amount = (double)size * opt.count * nprocs;
	struct part part[2] = { 0 };
	char name[2][64];
	struct file *f;
	long r, k;
	int i;

	for (r = 0; r < opt.rounds; r++) {
		/* Whose records this process writes, and reads. */
		int who[2] = { rank, (rank + 1) % nprocs };

		for (i = 0; i < 2; i++)
			snprintf(name[i], sizeof(name[i]), shared ? "pbench.records" :
				 "pbench.records.%d", who[i]);
		for (i = 0; i < 2; i++) {
			if (!i)
				for (k = 0; k < opt.count; k++)
					fill(out + k * size, size, (k * nprocs + rank) * size, r);
			f = opt.api->open(name[i], i ? O_RDONLY : O_RDWR | O_CREAT | O_EXCL, shared, LIST);
			part_begin(&part[i]);
			for (k = 0; k < opt.count; k++) {
				off_t off = (shared ? k * nprocs + who[i] : k) * size;

				if (i)
					opt.api->read(f, in + k * size, size, off);
				else
					opt.api->write(f, out + k * size, size, off);
			}
			part_end(&part[i]);
			opt.api->close(f);
			barrier();
		}
		for (k = 0; k < opt.count; k++)
			check(in + k * size, size, (k * nprocs + who[1]) * size, r, name[1]);
		barrier();
		if (!rank || !shared)
			opt.api->remove(name[0]);
		barrier();
	}
	for (i = 0; i < 2; i++)
		mbs[i] = report(&part[i], i ? "records read" : "records write", "mbs", amount,
				"files=%s record=%zu records=%ld", shared ? "shared" : "own", size,
				opt.count);
	free(out);
	free(in);
}

static void run(void)
{
	double shared[2] = { 0 }, own[2] = { 0 };
	int i, k;

	for (i = 0; i < opt.nsizes; i++) {
		if (mode("shared"))
			pattern(opt.size[i], true, shared);
		if (mode("own"))
			pattern(opt.size[i], false, own);
		for (k = 0; k < 2 && !rank && shared[0] && own[0]; k++)
			printf("records %s api=%s procs=%d record=%zu shared_by_own=%.3f\n",
			       k ? "read" : "write", opt.api->name, nprocs, opt.size[i],
			       shared[k] / own[k]);
	}
}

const struct bench bench_records = {
	.name = "records", .run = run, .letters = "bcm", .modes = "shared,own"
};
