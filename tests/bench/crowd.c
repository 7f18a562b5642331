// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowd.c - many clients, and many files, in one directory: through libpvfs, each client with a
 * session and a connection of its own.
 *
 *	crowd [-c CLIENTS] [-n FILES] [-p PID] HOST:PORT/VOLUME KEY-FILE
 *
 * They make empty files, one lists them, they stat them, and remove them. A line for each: what,
 * clients, files, files a second, the slowest tenth's rate by the fastest's, and MiB of memory of
 * process PID, the manager, at the end of the first tenth and of the last.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/pvfs.h"

#define DIR_NAME "/crowd"
#define PARTS 10

enum phase { CREATE, LIST, STAT, REMOVE };
static const char *const phase_name[] = { "create", "list", "stat", "remove" };

static long clients = 1, files = 10000, mgr_pid;
static struct pvfs_fs **client;
static pthread_barrier_t barrier;
static enum phase phase;
static atomic_long done;
static double part_end[PARTS];		/* when the tenths were done */
static double part_mib[PARTS];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double mgr_mib(void)
{
	char path[64], line[128];
	double kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/status", mgr_pid);
	f = mgr_pid ? fopen(path, "r") : NULL;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %lf", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib / 1024;
}

static void one_done(void)
{
	long n = atomic_fetch_add(&done, 1) + 1;

	if (n % (files / PARTS) == 0 && n / (files / PARTS) <= PARTS) {
		part_end[n / (files / PARTS) - 1] = now();
		part_mib[n / (files / PARTS) - 1] = mgr_mib();
	}
}

static void list(struct pvfs_fs *fs)
{
	struct pvfs_dirent e;
	struct pvfs_dir *d;
	long n = 0;
	int rc = pvfs_opendir(fs, DIR_NAME, &d);

	if (rc)
		errx(1, "opendir: %s", strerror(-rc));
	while ((rc = pvfs_readdir(d, &e)) > 0)
		if (e.name[0] != '.') {
			n++;
			one_done();
		}
	if (rc || n != files)
		errx(1, "%ld of %ld files are listed: %s", n, files, strerror(-rc));
	pvfs_closedir(d);
}

static void share(struct pvfs_fs *fs, long from, long to)
{
	struct pvfs_file *f;
	struct pvfs_stat st;
	char path[64];
	int rc = 0;
	long i;

	for (i = from; i < to; i++) {
		snprintf(path, sizeof(path), DIR_NAME "/file-%08ld", i);
		if (phase == CREATE) {
			rc = pvfs_open(fs, path, O_WRONLY | O_CREAT | O_EXCL, 0644, &f);
			if (!rc)
				rc = pvfs_close(f);
		} else {
			rc = phase == STAT ? pvfs_stat(fs, path, &st) : pvfs_unlink(fs, path);
		}
		if (rc)
			errx(1, "%s %s: %s", phase_name[phase], path, strerror(-rc));
		one_done();
	}
}

static void *run(void *arg)
{
	long i = (long)arg;

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (phase != LIST)
			share(client[i], files * i / clients, files * (i + 1) / clients);
		else if (!i)
			list(client[0]);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void measure(enum phase p)
{
	double t = now(), before = t, slow = 0, fast = 1e9;
	int i;

	phase = p;
	done = 0;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	t = now() - t;
	for (i = 0; i < PARTS; i++) {
		double s = part_end[i] - before;

		slow = s > slow ? s : slow;
		fast = s < fast ? s : fast;
		before = part_end[i];
	}
	printf("%s %ld %ld %.0f %.2f %.0f %.0f\n", phase_name[p], clients, files, files / t, fast / slow, part_mib[0],
	       part_mib[PARTS - 1]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	char *slash, why[200];
	pthread_t thread;
	int opt, rc;
	long i;

	while ((opt = getopt(argc, argv, "c:n:p:")) != -1) {
		if (opt == 'c')
			clients = atol(optarg);
		else if (opt == 'n')
			files = atol(optarg);
		else if (opt == 'p')
			mgr_pid = atol(optarg);
		else
			return 2;
	}
	if (argc - optind != 2 || !(slash = strrchr(argv[optind], '/')) || clients < 1 || files < PARTS || files % PARTS)
		errx(2, "usage: crowd [-c CLIENTS] [-n FILES, a multiple of %d] [-p PID] HOST:PORT/VOLUME KEY-FILE", PARTS);
	*slash = 0;
	o.mgr = argv[optind];
	o.volume = slash + 1;
	o.key_file = argv[optind + 1];
	o.nconnect = o.threads = 1;
	client = calloc(clients, sizeof(*client));
	if (!client || pthread_barrier_init(&barrier, NULL, clients + 1))
		errx(1, "memory");
	for (i = 0; i < clients; i++) {
		rc = pvfs_mount(&o, &client[i], why, sizeof(why));
		if (rc)
			errx(1, "client %ld: %s", i, why);
	}
	rc = pvfs_mkdir(client[0], DIR_NAME, 0755);
	if (rc)
		errx(1, "mkdir: %s", strerror(-rc));
	for (i = 0; i < clients; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			err(1, "thread %ld", i);
	for (i = CREATE; i <= REMOVE; i++)
		measure(i);
	rc = pvfs_rmdir(client[0], DIR_NAME);
	if (rc)
		errx(1, "rmdir: %s", strerror(-rc));
	return 0;
}
