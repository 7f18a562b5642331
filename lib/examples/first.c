// SPDX-License-Identifier: LGPL-2.1
/*
 * first.c - a file in a volume, without a mount: made, written, read, listed with its directory.
 *
 *	cc first.c $(pkg-config --cflags --libs pvfs) -o first
 *	./first host:7100 volume
 */
#include <fcntl.h>
#include <pvfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	static const char text[] = "Hello, iods!\n";
	char why[256] = "", back[sizeof(text)];
	struct pvfs_dirent e;
	struct pvfs_file *f;
	struct pvfs_dir *d;
	struct pvfs_fs *fs;

	if (argc != 3) {
		fprintf(stderr, "usage: %s HOST[:PORT] VOLUME\n", argv[0]);
		return 2;
	}
	opts.mgr = argv[1];
	opts.volume = argv[2];
	opts.key_file = getenv("PVFS_KEY");	/* NULL: /etc/pvfs/cluster.key */
	if (pvfs_mount(&opts, &fs, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	check(pvfs_open(fs, "/hello", O_RDWR | O_CREAT | O_TRUNC, 0644, &f), "/hello");
	check(pvfs_pwrite(f, text, strlen(text), 0), "write");
	check(pvfs_pread(f, back, sizeof(back), 0), "read");
	check(pvfs_close(f), "close");
	fwrite(back, 1, strlen(text), stdout);
	check(pvfs_opendir(fs, "/", &d), "/");
	/* Attributes come with the names. */
	while (pvfs_readdir(d, &e) > 0)
		printf("%10lld %s\n", (long long)e.stat.st.st_size, e.name);
	check(pvfs_closedir(d), "closedir");
	check(pvfs_umount(fs), "umount");
	return 0;
}
