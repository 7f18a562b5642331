// SPDX-License-Identifier: LGPL-2.1
/*
 * small.c - ten thousand small files, made and read in some eighty messages each.
 *
 *	cc small.c $(pkg-config --cflags --libs pvfs) -o small
 *	./small host:7100 volume
 */
#include <pvfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES 10000

static struct pvfs_small files[FILES];
static char paths[FILES][32], bytes[FILES][64], back[FILES][64];

/* Says what became of those that failed. */
static int failed(ssize_t ok, const char *what)
{
	int i;

	if (ok == FILES)
		return 0;
	if (ok < 0)
		fprintf(stderr, "%s: %s\n", what, strerror(-ok));
	for (i = 0; ok >= 0 && i < FILES; i++)
		if (files[i].result < 0)
			fprintf(stderr, "%s: %s\n", paths[i], strerror(-files[i].result));
	return 1;
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_opcount asked;
	struct pvfs_fs *fs;
	char why[256] = "";
	int i;

	if (argc != 3) {
		fprintf(stderr, "usage: %s HOST[:PORT] VOLUME\n", argv[0]);
		return 2;
	}
	opts.mgr = argv[1];
	opts.volume = argv[2];
	opts.key_file = getenv("PVFS_KEY");
	if (pvfs_mount(&opts, &fs, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	pvfs_mkdir(fs, "/small", 0755);
	for (i = 0; i < FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/small/%d", i);
		snprintf(bytes[i], sizeof(bytes[i]), "this is file %d", i);
		files[i] = (struct pvfs_small){ .path = paths[i], .buf = bytes[i],
						.len = strlen(bytes[i]), .mode = 0644 };
	}
	if (failed(pvfs_write_files(fs, files, FILES, 0), "write"))
		return 1;
	for (i = 0; i < FILES; i++) {
		files[i].buf = back[i];
		files[i].len = sizeof(back[i]);
	}
	if (failed(pvfs_read_files(fs, files, FILES), "read"))
		return 1;
	for (i = 0; i < FILES; i++) {
		if (files[i].result != (ssize_t)strlen(bytes[i]) ||
		    memcmp(back[i], bytes[i], files[i].result)) {
			fprintf(stderr, "%s: not what was written\n", paths[i]);
			return 1;
		}
	}
	pvfs_counters(fs, PVFS_SERVER_MGR, NULL, &asked);
	printf("%d files, %llu messages\n", FILES, (unsigned long long)asked.count);
	return pvfs_umount(fs) ? 1 : 0;
}
