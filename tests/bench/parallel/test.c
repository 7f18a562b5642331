// SPDX-License-Identifier: GPL-2.0-only
/*
 * test.c - aggregate bandwidth, as PVFS' pvfs_test measures it: all processes make one file, write
 * disjoint blocks of it, close it, open it again and read them back. Where new memory is dear, as in
 * a guest whose host gives it page by page, -k tells the file system's cost from that of memory.
 */
#include <fcntl.h>
#include <stdlib.h>
#include "api.h"
#include "pbench.h"

#define NAME "pbench.test"

static void one_size(size_t size)
{
	struct part wr = { 0 }, rd = { 0 };
	char *out = memory(size * opt.iterations), *in = memory(size * opt.iterations);
	double amount = (double)size * opt.iterations * nprocs;
	struct file *f;
	long r, i;

	for (r = opt.keep ? -1 : 0; r < opt.rounds; r++) {
		bool first = r == -1 || !opt.keep, last = r == opt.rounds - 1 || !opt.keep;

		for (i = 0; i < opt.iterations; i++)
			fill(out + i * size, size, (i * nprocs + rank) * size, r);
		f = opt.api->open(NAME, first ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, true, LIST);
		part_begin(&wr);
		for (i = 0; i < opt.iterations; i++)
			opt.api->write(f, out + i * size, size, (i * nprocs + rank) * size);
		if (opt.sync)
			opt.api->sync(f);
		part_end(&wr);
		opt.api->close(f);
		f = opt.api->open(NAME, O_RDONLY, true, LIST);
		part_begin(&rd);
		for (i = 0; i < opt.iterations; i++)
			opt.api->read(f, in + i * size, size, (i * nprocs + rank) * size);
		part_end(&rd);
		opt.api->close(f);
		for (i = 0; i < opt.iterations; i++)
			check(in + i * size, size, (i * nprocs + rank) * size, r, NAME);
		barrier();
		if (!rank && last)
			opt.api->remove(NAME);
		if (r < 0)
			wr = rd = (struct part){ 0 };
	}
	report(&wr, "test write", "mbs", amount, "block=%zu iterations=%ld factor=%ld", size,
	       opt.iterations, opt.factor);
	report(&rd, "test read", "mbs", amount, "block=%zu iterations=%ld factor=%ld", size,
	       opt.iterations, opt.factor);
	free(out);
	free(in);
}

static void run(void)
{
	int i;

	for (i = 0; i < opt.nsizes; i++)
		one_size(opt.size[i]);
}

const struct bench bench_test = { .name = "test", .run = run, .letters = "bisk" };
