// SPDX-License-Identifier: LGPL-2.1
/*
 * tile.c - one of the tiles that a file of rows is made of, written in one call and read back.
 *
 * The file is a picture of 4 x 4 tiles, row by row: a tile is everywhere in it. As a pattern it is a
 * few numbers on the wire, and one message to each I/O daemon; row by row it would be 256.
 *
 *	cc tile.c $(pkg-config --cflags --libs pvfs) -o tile
 *	./tile host:7100 volume X Y
 */
#include <fcntl.h>
#include <pvfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 256	/* pixels of a tile */
#define TILES 4		/* in a row, and rows */
#define PIXEL 4		/* bytes */

static char out[SIDE * SIDE * PIXEL], in[SIDE * SIDE * PIXEL];

int main(int argc, char **argv)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	const size_t width = SIDE * PIXEL, row = TILES * width;
	struct iovec mem = { out, sizeof(out) }, back = { in, sizeof(in) };
	struct pvfs_pattern tile;
	struct pvfs_file *f;
	struct pvfs_fs *fs;
	char why[256] = "";
	ssize_t n;
	int x, y;

	if (argc != 5) {
		fprintf(stderr, "usage: %s HOST[:PORT] VOLUME X Y\n", argv[0]);
		return 2;
	}
	x = atoi(argv[3]);
	y = atoi(argv[4]);
	if (x < 0 || x >= TILES || y < 0 || y >= TILES) {
		fprintf(stderr, "%s: X and Y are 0 to %d\n", argv[0], TILES - 1);
		return 2;
	}
	opts.mgr = argv[1];
	opts.volume = argv[2];
	opts.key_file = getenv("PVFS_KEY");
	if (pvfs_mount(&opts, &fs, why, sizeof(why)) ||
	    pvfs_open(fs, "/picture", O_RDWR | O_CREAT, 0644, &f)) {
		fprintf(stderr, "%s\n", *why ? why : "/picture cannot be opened");
		return 1;
	}
	memset(out, 'a' + y * TILES + x, sizeof(out));
	/* SIDE blocks of @width bytes, a row apart. */
	tile = (struct pvfs_pattern){
		.off = y * SIDE * row + x * width, .len = width, .ndims = 1,
		.dim = { { .count = SIDE, .stride = row } },
	};
	n = pvfs_write_pattern(f, &mem, 1, &tile, 1);
	if (n == sizeof(out))
		n = pvfs_read_pattern(f, &back, 1, &tile, 1);
	if (n != sizeof(in) || memcmp(in, out, sizeof(in))) {
		fprintf(stderr, "tile: %s\n", n < 0 ? strerror(-n) : "not what was written");
		return 1;
	}
	printf("tile %d,%d: %zd bytes\n", x, y, n);
	if (pvfs_close(f) || pvfs_umount(fs))
		return 1;
	return 0;
}
