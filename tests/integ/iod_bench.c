// SPDX-License-Identifier: GPL-2.0
/*
 * iod_bench.c - what one pvfs-iod moves over loopback, and what it costs: for choosing its limits.
 *
 * Usage: iod_bench [-d DIR] [-s posix|null] [-t NAME=SIZE] [-n CONNECTIONS] [-l SECONDS]
 * PATH/TO/pvfs-iod
 *
 * One line per case: operation, bytes of a request, requests in flight, requests and MB a second,
 * mean microseconds of a request, CPU microseconds of the daemon per request.
 */
#include "iod_harness.h"
#include <getopt.h>
#include <semaphore.h>
#include <stdatomic.h>

#define FILE_BYTES (256ull << 20)
#define INO 5
#define SESSION 77
#define DEPTH_MAX 128

static struct harness h;
static struct pvfs_peer *peer;
static struct pvfs_cap cap;
static const struct pvfs_fid fid = { .ino = INO, .gen = 1 };

/* One case. The slots submit themselves again from their completion. */
struct slot {
	struct io io;
	u8 *mem;
};

static struct {
	bool write, random;
	u32 len;
	u64 end;		/* when to stop, ns */
	u64 last;		/* stop after so many; 0: no limit */
	_Atomic u64 next, done, failed;
	struct slot slot[DEPTH_MAX];
	sem_t sem;
} run_;

static void submit(struct slot *s);

static void completed(struct pvfs_rpc *rpc)
{
	struct slot *s = rpc->arg;

	if (rpc->err)
		atomic_fetch_add(&run_.failed, 1);
	atomic_fetch_add(&run_.done, 1);
	if (now_ns() < run_.end && (!run_.last || run_.next < run_.last))
		submit(s);
	else
		sem_post(&run_.sem);
}

static void submit(struct slot *s)
{
	u64 n = atomic_fetch_add(&run_.next, 1), places = FILE_BYTES / run_.len;

	if (run_.random)
		n = (n * 0x9e3779b97f4a7c15ull) >> 20;
	if (run_.write)
		prep_write(&s->io, &fid, &cap, n % places * run_.len, s->mem, run_.len);
	else
		prep_read(&s->io, &fid, &cap, n % places * run_.len, s->mem, run_.len);
	s->io.rpc.done = completed;
	s->io.rpc.arg = s;
	pvfs_peer_submit(peer, &s->io.rpc);
}

/* User and system time of the daemon, us. */
static u64 cpu_us(void)
{
	unsigned long long ut = 0, st = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)h.pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &ut,
			 &st) != 2)
		DIE("%s", path);
	fclose(f);
	return (ut + st) * 1000000 / sysconf(_SC_CLK_TCK);
}

static void one(const char *name, bool write, bool random, u32 len, int depth, double seconds)
{
	u64 t0, cpu0, n;
	double s;
	int i;

	run_.write = write;
	run_.random = random;
	run_.len = len;
	run_.next = run_.done = run_.failed = 0;
	sem_init(&run_.sem, 0, 0);
	cpu0 = cpu_us();
	t0 = now_ns();
	run_.end = t0 + (u64)(seconds * 1e9);
	for (i = 0; i < depth; i++)
		submit(&run_.slot[i]);
	for (i = 0; i < depth; i++) {
		while (sem_wait(&run_.sem))
			;
	}
	s = (now_ns() - t0) / 1e9;
	n = run_.done;
	printf("%-11s %8u B  depth %3d  %8.0f /s  %8.1f MB/s  %8.1f us  cpu %7.1f us%s\n", name,
	       len, depth,
	       n / s, n * (double)len / s / 1e6, s * 1e6 * depth / n, (double)(cpu_us() - cpu0) / n,
	       run_.failed ? "  FAILED REQUESTS" : "");
	fflush(stdout);
}

/* Whole datafile, once, from the disk. */
static void cold(u32 len, int depth)
{
	char path[160];
	u64 t0, cpu0;
	double s;
	int fd, i;

	snprintf(path, sizeof(path), "%s/data/00/00/%016x.00000001", h.store, INO);
	fd = open(path, O_RDWR);
	if (fd < 0 || fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		DIE("%s", path);
	close(fd);
	run_.write = run_.random = false;
	run_.len = len;
	run_.next = run_.done = run_.failed = 0;
	run_.last = FILE_BYTES / len;
	sem_init(&run_.sem, 0, 0);
	cpu0 = cpu_us();
	t0 = now_ns();
	run_.end = UINT64_MAX;
	for (i = 0; i < depth; i++)
		submit(&run_.slot[i]);
	for (i = 0; i < depth; i++) {
		while (sem_wait(&run_.sem))
			;
	}
	s = (now_ns() - t0) / 1e9;
	printf("cold read   %8u B  depth %3d  %8.1f MB/s  cpu %7.1f us\n", len, depth,
	       FILE_BYTES / s / 1e6,
	       (double)(cpu_us() - cpu0) / run_.done);
	fflush(stdout);
	run_.last = 0;
}

int main(int argc, char **argv)
{
	const char *dir = "/tmp", *store = "posix", *tune = "sendfile_min=64k";
	static const u32 sizes[] = { 4096, 16384, 32768, 65536, 131072, 262144, 1 << 20 };
	unsigned int nconn = 1;
	double seconds = 1;
	char a1[64];
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "d:s:t:n:l:")) != -1) {
		if (c == 'd')
			dir = optarg;
		else if (c == 's')
			store = optarg;
		else if (c == 't')
			tune = optarg;
		else if (c == 'n')
			nconn = atoi(optarg);
		else if (c == 'l')
			seconds = atof(optarg);
		else
			return 2;
	}
	if (optind != argc - 1) {
		fputs("iod_bench: name the pvfs-iod to measure\n", stderr);
		return 2;
	}
	harness_init(&h, argv[optind], dir, "buffers = \"64M\"");
	if (run(&h, "--mkfs", NULL))
		DIE("mkfs");
	snprintf(a1, sizeof(a1), "--tune=%s", tune);
	h.pid = spawn(&h, true, a1, !strcmp(store, "null") ? "--store=null" : NULL);
	peer = new_peer(&h, PVFS_ROLE_CLIENT, SESSION, nconn);
	pvfs_cap_make(&h.server_key, h.uuid, SESSION, &fid, PVFS_CAP_READ | PVFS_CAP_WRITE, &cap);
	for (i = 0; i < DEPTH_MAX; i++) {
		run_.slot[i].mem = malloc(1 << 20);
		if (!run_.slot[i].mem)
			DIE("memory");
		memset(run_.slot[i].mem, i, 1 << 20);
	}
	for (i = 0; i < FILE_BYTES >> 20; i++) {
		if (do_write(peer, &fid, &cap, i << 20, run_.slot[0].mem, 1 << 20, NULL))
			DIE("fill");
	}
	printf("# store %s in %s, %s, %u connections\n", store, dir, tune, nconn);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		one("read", false, sizes[i] < 65536, sizes[i], 1, seconds);
		one("read", false, sizes[i] < 65536, sizes[i], 16, seconds);
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		one("write", true, sizes[i] < 65536, sizes[i], 1, seconds);
		one("write", true, sizes[i] < 65536, sizes[i], 16, seconds);
	}
	if (strcmp(store, "null")) {
		for (i = 3; i < ARRAY_SIZE(sizes); i++) {
			cold(sizes[i], 1);
			cold(sizes[i], 8);
		}
	}
	pvfs_peer_free(peer);
	kill(h.pid, SIGTERM);
	c = reap(h.pid);
	harness_fini(&h);
	return c;
}
