// SPDX-License-Identifier: GPL-2.0-only
/*
 * churn.c - many processes, each with some small files of its own in one directory, which it makes,
 * writes, reads back, renames and removes through one mount and looks at through the other; beside
 * whatever the caller does to the servers.
 *
 *	churn [-s SEED] [-n OPS] [-p PROCS] [-l BYTES] [-x] DIR [DIR2]
 *
 *	-n	operations of each process (default 300)
 *	-p	processes (default 16)
 *	-l	files are up to so long (default 40000)
 *	-x	a byte is changed behind the model's back at the end: the run must fail
 *
 * Nobody touches another's files, so each owner knows what is in them: every byte, and every name,
 * is compared. Exits with 1 when one differs, and leaves the directory.
 */
#include "rnd.h"
#include <sys/wait.h>

#define FILES	6		/* of a process */

struct file {
	bool there;
	size_t size;
	unsigned char *data;	/* longest bytes */
};

static size_t longest = 40000;
static int sides, me;
static char dir[RND_SIDES][512];
static struct file files[FILES];
static struct rnd rnd;
static uint64_t op, stamp;
static unsigned char *scratch;

static void path_of(char *p, size_t n, int side, int i)
{
	snprintf(p, n, "%s/p%d.%d", dir[side], me, i);
}

static int other_side(int side)
{
	return sides - 1 - side;
}

static void compare(int side, int i)
{
	struct file *f = &files[i];
	char path[600];
	struct stat st;
	ssize_t n;
	int fd;

	path_of(path, sizeof(path), side, i);
	rnd_note("process %d, %llu: compare %s", me, (unsigned long long)op, path);
	fd = open(path, O_RDONLY);
	if (!f->there) {
		if (fd >= 0 || errno != ENOENT)
			rnd_fail("%s: it was removed: %s", path, fd >= 0 ? "there" : strerror(errno));
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		rnd_fail("%s: %s", path, strerror(errno));
	if ((size_t)st.st_size != f->size)
		rnd_fail("%s: %lld bytes, not %zu", path, (long long)st.st_size, f->size);
	n = read(fd, scratch, longest + 1);
	if (n != (ssize_t)f->size)
		rnd_fail("%s: read %zd of %zu: %s", path, n, f->size, n < 0 ? strerror(errno) : "");
	for (n = 0; n < (ssize_t)f->size; n++)
		if (scratch[n] != f->data[n])
			rnd_fail("%s: byte %zd of %zu is %d, not %d", path, n, f->size, scratch[n],
				 f->data[n]);
	close(fd);
}

/* @n bytes at @off, in some writes through a descriptor that is open. */
static void put(struct file *f, int fd, const char *path, size_t off, size_t n)
{
	struct stat st;
	size_t part;
	ssize_t r;

	if (off > f->size)
		memset(f->data + f->size, 0, off - f->size);
	rnd_fill(f->data + off, n, off, ++stamp);
	while (n) {
		part = rnd_one_in(&rnd, 3) ? 1 + rnd_below(&rnd, n) : n;
		r = pwrite(fd, f->data + off, part, off);
		if (r <= 0)
			rnd_fail("%s: write of %zu at %zu: %s", path, part, off, strerror(errno));
		off += r;
		n -= r;
		if (off > f->size)
			f->size = off;
	}
	if (rnd_one_in(&rnd, 2)) {
		if (fstat(fd, &st) < 0 || (size_t)st.st_size != f->size)
			rnd_fail("%s: written to %zu, and fstat says %lld", path, f->size, (long long)st.st_size);
	}
}

static void make(int side, int i)
{
	struct file *f = &files[i];
	char path[600];
	int fd;

	path_of(path, sizeof(path), side, i);
	rnd_note("process %d, %llu: make %s", me, (unsigned long long)op, path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		rnd_fail("%s: %s", path, strerror(errno));
	f->there = true;
	f->size = 0;
	put(f, fd, path, 0, rnd_below(&rnd, longest + 1));
	if (rnd_one_in(&rnd, 2) && fchmod(fd, 0640) < 0)
		rnd_fail("%s: fchmod: %s", path, strerror(errno));
	if (rnd_one_in(&rnd, 4))
		compare(other_side(side), i);
	if (close(fd) < 0)
		rnd_fail("%s: close: %s", path, strerror(errno));
}

static void change(int side, int i)
{
	struct file *f = &files[i];
	size_t off, n;
	char path[600];
	int fd, what = rnd_below(&rnd, 4);

	path_of(path, sizeof(path), side, i);
	rnd_note("process %d, %llu: change %d %s", me, (unsigned long long)op, what, path);
	fd = open(path, O_RDWR | (what == 1 ? O_TRUNC : what == 3 ? O_APPEND : 0));
	if (fd < 0)
		rnd_fail("%s: %s", path, strerror(errno));
	if (what == 1)
		f->size = 0;
	if (what == 2) {
		n = rnd_below(&rnd, longest + 1);
		if (ftruncate(fd, n) < 0)
			rnd_fail("%s: ftruncate to %zu: %s", path, n, strerror(errno));
		if (n > f->size)
			memset(f->data + f->size, 0, n - f->size);
		f->size = n;
	} else {
		off = what == 3 ? f->size : rnd_below(&rnd, f->size + 1);
		put(f, fd, path, off, rnd_below(&rnd, (longest - off) / 2 + 1));
	}
	if (rnd_one_in(&rnd, 8) && fsync(fd) < 0)
		rnd_fail("%s: fsync: %s", path, strerror(errno));
	if (close(fd) < 0)
		rnd_fail("%s: close: %s", path, strerror(errno));
}

static void move(int side, int i)
{
	char from[600], to[600];
	int j = rnd_below(&rnd, FILES);
	struct file old;

	path_of(from, sizeof(from), side, i);
	path_of(to, sizeof(to), side, j);
	rnd_note("process %d, %llu: rename %s to %s", me, (unsigned long long)op, from, to);
	if (rename(from, to) < 0)
		rnd_fail("%s to %s: %s", from, to, strerror(errno));
	if (i == j)
		return;
	old = files[j];
	files[j] = files[i];
	files[i] = (struct file){ .data = old.data };
}

static void drop(int side, int i)
{
	char path[600];

	path_of(path, sizeof(path), side, i);
	rnd_note("process %d, %llu: remove %s", me, (unsigned long long)op, path);
	if (unlink(path) < 0)
		rnd_fail("%s: %s", path, strerror(errno));
	files[i].there = false;
}

/* A byte that the model does not know of. */
static void lie(void)
{
	char path[600];
	unsigned char c;
	int fd, i = 0;

	while (i < FILES && (!files[i].there || !files[i].size))
		if (++i == FILES && !files[0].there) {
			make(0, 0);
			i = 0;
		}
	if (i == FILES)
		rnd_die("no byte to change");
	path_of(path, sizeof(path), 0, i);
	fd = open(path, O_WRONLY);
	c = files[i].data[0] + 1;
	if (fd < 0 || pwrite(fd, &c, 1, 0) != 1)
		rnd_die("%s: %s", path, strerror(errno));
	close(fd);
}

static void run(uint64_t seed, uint64_t ops, bool lies)
{
	int i, side;

	rnd_seed(&rnd, seed, me + 1);
	stamp = (uint64_t)(me + 1) << 32;
	scratch = malloc(longest + 1);
	for (i = 0; i < FILES; i++)
		files[i].data = malloc(longest);
	for (op = 0; op < ops; op++) {
		i = rnd_below(&rnd, FILES);
		side = rnd_below(&rnd, sides);
		if (!files[i].there) {
			make(side, i);
			continue;
		}
		switch (rnd_below(&rnd, 8)) {
		case 0:
			drop(side, i);
			break;
		case 1:
			move(side, i);
			break;
		case 2: case 3: case 4:
			change(side, i);
			break;
		default:
			compare(side, i);
		}
	}
	if (lies)
		lie();
	for (i = 0; i < FILES; i++)
		for (side = 0; side < sides; side++)
			compare(side, i);
	exit(0);
}

static void remove_all(int procs)
{
	char path[600];
	int i;

	for (me = 0; me < procs; me++)
		for (i = 0; i < FILES; i++) {
			path_of(path, sizeof(path), 0, i);
			unlink(path);
		}
	if (rmdir(dir[0]) < 0)
		rnd_fail("rmdir %s: %s", dir[0], strerror(errno));
}

int main(int argc, char **argv)
{
	uint64_t seed = time(NULL), ops = 300;
	int c, i, status, procs = 16, failed = 0;
	bool false_byte = false;
	pid_t pid[64];

	while ((c = getopt(argc, argv, "s:n:p:l:x")) != -1) {
		switch (c) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'n': ops = strtoull(optarg, NULL, 0); break;
		case 'p': procs = atoi(optarg); break;
		case 'l': longest = strtoull(optarg, NULL, 0); break;
		case 'x': false_byte = true; break;
		default: rnd_die("see the top of churn.c");
		}
	}
	sides = argc - optind;
	if (sides < 1 || sides > RND_SIDES || procs < 1 || procs > 64 || longest < 1)
		rnd_die("see the top of churn.c");
	for (i = 0; i < sides; i++)
		snprintf(dir[i], sizeof(dir[i]), "%s/churn-%llu", argv[optind + i],
			 (unsigned long long)seed);
	if (mkdir(dir[0], 0755) < 0)
		rnd_die("mkdir %s: %s", dir[0], strerror(errno));
	fflush(stdout);
	for (me = 0; me < procs; me++) {
		pid[me] = fork();
		if (pid[me] < 0)
			rnd_die("fork: %s", strerror(errno));
		if (!pid[me])
			run(seed, ops, false_byte && !me);
	}
	for (i = 0; i < procs; i++) {
		if (waitpid(pid[i], &status, 0) < 0)
			rnd_die("wait: %s", strerror(errno));
		failed |= status;
	}
	if (failed)
		return 1;
	remove_all(procs);
	printf("# churn: seed %llu, %d processes, %llu operations each, files of up to %zu bytes\n",
	       (unsigned long long)seed, procs, (unsigned long long)ops, longest);
	return 0;
}
