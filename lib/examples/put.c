// SPDX-License-Identifier: LGPL-2.1
/*
 * put.c - copies standard input into a file of a volume, and reads on while it writes: four blocks
 * are under way at once, and a poll loop waits for whatever comes first.
 *
 *	cc put.c $(pkg-config --cflags --libs pvfs) -o put
 *	tar c . | ./put host:7100 volume /backup.tar
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pvfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (1 << 20)
#define BLOCKS 4

static char room[BLOCKS][BLOCK];
static struct iovec mem[BLOCKS];
static struct pvfs_async calls[BLOCKS];

static void die(const char *what, long err)
{
	fprintf(stderr, "put: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* Writes that have ended make their blocks free. */
static int collect(struct pvfs_queue *q, int *busy, int wait_ms)
{
	struct pvfs_async *done[BLOCKS];
	int i, n = pvfs_wait(q, done, BLOCKS, wait_ms);

	for (i = 0; i < n; i++) {
		if (done[i]->result != (ssize_t)done[i]->mem->iov_len)
			die("write", done[i]->result < 0 ? done[i]->result : -EIO);
		busy[done[i] - calls] = 0;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	int busy[BLOCKS] = { 0 }, i, rc, eof = 0;
	struct pvfs_queue *q;
	struct pvfs_file *f;
	struct pvfs_fs *fs;
	char why[256] = "";
	off_t at = 0;
	ssize_t n;

	if (argc != 4) {
		fprintf(stderr, "usage: %s HOST[:PORT] VOLUME PATH\n", argv[0]);
		return 2;
	}
	opts.mgr = argv[1];
	opts.volume = argv[2];
	opts.key_file = getenv("PVFS_KEY");
	if (pvfs_mount(&opts, &fs, why, sizeof(why))) {
		fprintf(stderr, "put: %s\n", why);
		return 1;
	}
	rc = pvfs_open(fs, argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0644, &f);
	if (rc)
		die(argv[3], rc);
	rc = pvfs_queue_new(fs, BLOCKS, &q);
	if (rc)
		die("queue", rc);
	while (!eof) {
		struct pollfd p[2] = { { .fd = pvfs_queue_fd(q), .events = POLLIN },
				       { .fd = STDIN_FILENO, .events = POLLIN } };

		for (i = 0; i < BLOCKS && busy[i]; i++)
			;
		/* Without a free block there is nothing to be read into. */
		if (poll(p, i < BLOCKS ? 2 : 1, -1) < 0 && errno != EINTR)
			die("poll", -errno);
		if (p[0].revents)
			collect(q, busy, 0);
		if (i == BLOCKS || !p[1].revents)
			continue;
		n = read(STDIN_FILENO, room[i], BLOCK);
		if (n < 0)
			die("standard input", -errno);
		eof = !n;
		if (eof)
			break;
		mem[i] = (struct iovec){ room[i], n };
		calls[i] = (struct pvfs_async){ .op = PVFS_ASYNC_WRITE, .file = f, .mem = &mem[i],
						.nmem = 1, .off = at };
		busy[i] = 1;
		at += n;
		rc = pvfs_submit(q, &calls[i]);
		if (rc)
			die("submit", rc);
	}
	while (collect(q, busy, -1) > 0)
		;
	pvfs_queue_free(q);
	rc = pvfs_fsync(f);
	if (rc)
		die("fsync", rc);
	rc = pvfs_close(f);
	if (rc)
		die("close", rc);
	printf("%lld bytes\n", (long long)at);
	return pvfs_umount(fs) ? 1 : 0;
}
