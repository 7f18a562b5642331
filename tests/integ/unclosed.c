// SPDX-License-Identifier: GPL-2.0
/*
 * unclosed.c - a writer that does not come to its end, for lib.sh's killed_writer.
 *
 *   unclosed MGR VOLUME KEY PATH BYTES
 *
 * Writes standard input's first BYTES into PATH, a new file of the volume, says "written", and waits to be killed: nobody
 * was told how long the file is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/pvfs.h"

static void check(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "unclosed: %s: %s\n", what, strerror(-rc));
	exit(1);
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	static char buf[65536];
	struct pvfs_file *f;
	long long at, bytes;
	struct pvfs_fs *fs;
	char why[256] = "";
	size_t n;

	if (argc != 6) {
		fprintf(stderr, "Usage: unclosed MGR VOLUME KEY PATH BYTES\n");
		return 2;
	}
	opts.mgr = argv[1];
	opts.volume = argv[2];
	opts.key_file = argv[3];
	bytes = atoll(argv[5]);
	check(pvfs_mount(&opts, &fs, why, sizeof(why)), why);
	check(pvfs_open(fs, argv[4], O_WRONLY | O_CREAT | O_EXCL, 0644, &f), argv[4]);
	for (at = 0; at < bytes; at += n) {
		n = bytes - at < (long long)sizeof(buf) ? (size_t)(bytes - at) : sizeof(buf);
		if (fread(buf, 1, n, stdin) != n) {
			fprintf(stderr, "unclosed: standard input is too short\n");
			return 1;
		}
		check(pvfs_pwrite(f, buf, n, at), "write");
	}
	puts("written");
	fflush(stdout);
	pause();
	return 0;
}
