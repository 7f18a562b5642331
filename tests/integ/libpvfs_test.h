/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libpvfs_test.h - two clients of a real cluster, and bytes that say where they are, for the tests
 * of libpvfs.
 *
 * lib.sh's libpvfs_test starts the cluster (4 iods) and gives PVFS_TEST_MGR, PVFS_TEST_VOLUME,
 * PVFS_TEST_KEY, and PVFS_TEST_RESTART: a command that kills the daemon it is given and starts it
 * again. Included by one source file per program.
 */
#ifndef PVFS_LIBPVFS_TEST_H
#define PVFS_LIBPVFS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/pvfs.h"

#define MIB (1u << 20)
#define NIODS 4
#define SSIZE 65536u

static struct pvfs_fs *fs, *other;	/* two clients */

static inline struct pvfs_fs *mount_one(void)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_fs *ret = NULL;
	char err[512] = "";
	int rc;

	o.mgr = getenv("PVFS_TEST_MGR");
	o.volume = getenv("PVFS_TEST_VOLUME");
	o.key_file = getenv("PVFS_TEST_KEY");
	rc = pvfs_mount(&o, &ret, err, sizeof(err));
	if (rc)
		print_error("mount: %s\n", err);
	assert_int_equal(rc, 0);
	return ret;
}

static inline int setup(void **state)
{
	fs = mount_one();
	other = mount_one();
	pvfs_umask(fs, 022);
	pvfs_umask(other, 022);
	return 0;
}

static inline int teardown(void **state)
{
	assert_int_equal(pvfs_umount(fs), 0);
	assert_int_equal(pvfs_umount(other), 0);
	return 0;
}

static inline uint64_t count(int server, const char *op)
{
	struct pvfs_opcount c;

	assert_int_equal(pvfs_counters(fs, server, op, &c), 0);
	return c.count;
}

/* Requests to the mgr that an operation was, heartbeats aside. */
static inline uint64_t mgr_total(void)
{
	return count(PVFS_SERVER_MGR, NULL) - count(PVFS_SERVER_MGR, "SESSION_RENEW") -
	       count(PVFS_SERVER_MGR, "CLOSE");
}

#define COSTS(server, op, n, call) do { \
		uint64_t before_ = count(server, op); \
		call; \
		assert_int_equal(count(server, op) - before_, n); \
	} while (0)
#define MGR_COSTS(n, call) do { \
		uint64_t before_ = mgr_total(); \
		call; \
		assert_int_equal(mgr_total() - before_, n); \
	} while (0)
#define OK(call) assert_int_equal(call, 0)

/* Byte @i of the test's files: no stripe unit is like another. */
static inline uint8_t byte_at(uint64_t i)
{
	return (i * 2654435761u >> 13) ^ (i >> 16) * 31 ^ i;
}

static inline uint8_t *pattern(uint64_t off, size_t n)
{
	uint8_t *p = malloc(n ? n : 1);
	size_t i;

	assert_non_null(p);
	for (i = 0; i < n; i++)
		p[i] = byte_at(off + i);
	return p;
}

static inline void write_at(struct pvfs_file *f, uint64_t off, size_t n)
{
	uint8_t *p = pattern(off, n);

	assert_int_equal(pvfs_pwrite(f, p, n, off), n);
	free(p);
}

/* Bytes that were written at @from are at @off. */
static inline void check_moved(struct pvfs_file *f, uint64_t off, uint64_t from, size_t n)
{
	uint8_t *p = pattern(from, n), *q = malloc(n ? n : 1);

	assert_int_equal(pvfs_pread(f, q, n, off), n);
	assert_memory_equal(p, q, n);
	free(p);
	free(q);
}

static inline void check_at(struct pvfs_file *f, uint64_t off, size_t n)
{
	check_moved(f, off, off, n);
}

static inline struct pvfs_file *open_new(const char *path)
{
	struct pvfs_file *f;

	OK(pvfs_open(fs, path, O_RDWR | O_CREAT | O_EXCL, 0644, &f));
	return f;
}

/* ---- many at once ---- */

enum { THREADS = 8, ROUNDS = 60 };

struct worker {
	pthread_t thread;
	struct pvfs_file *f;
	int n;
	int errors;		/* counted: what asserts in a thread ends nothing */
};

/* THREADS of @fn; those of odd number have @odd, the others @even. */
static inline void work_all(void *(*fn)(void *arg), struct pvfs_file *odd, struct pvfs_file *even)
{
	struct worker w[THREADS] = { 0 };
	int i;

	for (i = 0; i < THREADS; i++) {
		w[i].n = i;
		w[i].f = i % 2 ? odd : even;
		assert_int_equal(pthread_create(&w[i].thread, NULL, fn, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].errors, 0);
	}
}

/* kill -9 of a daemon, and another start. */
static inline void restart(const char *daemon)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd), "%s %s", getenv("PVFS_TEST_RESTART"), daemon);
	assert_int_equal(system(cmd), 0);
}

#endif
