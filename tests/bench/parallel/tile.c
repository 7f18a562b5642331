// SPDX-License-Identifier: GPL-2.0-only
/*
 * tile.c - mpi-tile-io: a picture in one file, of which each process writes and reads a tile that is
 * contiguous in its memory. Tiles may overlap.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "pbench.h"

#define NAME "pbench.tile"

static void rows(const struct tile *t, char *buf, uint64_t seed, bool verify)
{
	size_t len = row_length(t);
	int i;

	for (i = 0; i < t->sub[0]; i++)
		if (verify)
			check(buf + i * len, len, row_offset(t, i), seed, NAME);
		else
			fill(buf + i * len, len, row_offset(t, i), seed);
}

/* Of all processes in a round; -1: not known. */
static long messages(long before, long rounds)
{
	long mine = opt.api->messages(), all;

	mine -= before;
	MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	return before < 0 ? -1 : all / rounds;
}

static void one_way(const struct tile *t, enum how how)
{
	static const char *const sort[HOWS] = {
		[LIST] = "independent", [PIECES] = "independent", [COLLECTIVE] = "collective"
	};
	size_t len = t->sub[0] * row_length(t);
	struct part wr = { 0 }, rd = { 0 };
	char *out = memory(len), *in = memory(len);
	long r, at, msgs[2] = { 0, 0 };
	struct file *f;
	int i;

	for (r = 0; r < opt.rounds; r++) {
		rows(t, out, r, false);
		memset(in, 0, len);
		f = opt.api->open(NAME, O_RDWR | O_CREAT | O_EXCL, true, how);
		opt.api->view(f, t);
		at = opt.api->messages();
		part_begin(&wr);
		opt.api->tile_write(f, out);
		part_end(&wr);
		msgs[0] += messages(at, 1);
		opt.api->close(f);
		f = opt.api->open(NAME, O_RDONLY, true, how);
		opt.api->view(f, t);
		at = opt.api->messages();
		part_begin(&rd);
		opt.api->tile_read(f, in);
		part_end(&rd);
		msgs[1] += messages(at, 1);
		opt.api->close(f);
		rows(t, in, r, true);
		barrier();
		if (!rank)
			opt.api->remove(NAME);
	}
	for (i = 0; i < 2; i++)
		report(i ? &rd : &wr, i ? "tile read" : "tile write", "mbs", (double)len * nprocs,
		       "tiles=%dx%d size=%dx%d element=%ld overlap=%dx%d how=%s mode=%s factor=%ld messages=%ld",
		       opt.tiles[0], opt.tiles[1], opt.tile[0], opt.tile[1], opt.element,
		       opt.overlap[0], opt.overlap[1], how_name[how], sort[how], opt.factor,
		       msgs[i] / opt.rounds);
	free(out);
	free(in);
}

static void run(void)
{
	struct tile t = { .element = opt.element, .header = opt.header };
	int at[2], i;
	enum how how;

	if (!opt.tiles[0]) {
		MPI_Dims_create(nprocs, 2, opt.tiles);
	} else if (opt.tiles[0] * opt.tiles[1] != nprocs) {
		fail("%dx%d tiles are for %d processes, not for %d", opt.tiles[0], opt.tiles[1],
		     opt.tiles[0] * opt.tiles[1], nprocs);
	}
	at[0] = rank / opt.tiles[0];
	at[1] = rank % opt.tiles[0];
	/* Options say across and down, arrays are rows and columns. */
	for (i = 0; i < 2; i++) {
		int k = 1 - i;

		if (opt.overlap[k] >= opt.tile[k])
			fail("tiles that overlap by %dx%d must be larger", opt.overlap[0], opt.overlap[1]);
		t.sub[i] = opt.tile[k];
		t.start[i] = at[i] * (opt.tile[k] - opt.overlap[k]);
		t.array[i] = opt.tiles[k] * (opt.tile[k] - opt.overlap[k]) + opt.overlap[k];
	}
	for (how = LIST; how < HOWS; how++)
		if (opt.api->can[how] && mode(how_name[how]))
			one_way(&t, how);
}

const struct bench bench_tile = {
	.name = "tile", .run = run, .letters = "tzeodm", .modes = "list,pieces,collective"
};
