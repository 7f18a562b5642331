/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ops.h - small checks of file system behaviour: what all ops_*.c share.
 *
 * A check is a function that runs in a process of its own, in an empty directory of its own on the
 * file system under test, as root, with umask 0. It returns when all is right; WANT() and friends
 * print what is not and end it. The programs know nothing of PVFS: run them on any local file
 * system to see whether a check is right.
 */
#ifndef OPS_H
#define OPS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct ops_check {
	const char *name;
	void (*run)(void);
};

/* Lists end with a NULL name. The two-mount checks want ops_other. */
extern const struct ops_check ops_data[], ops_names[], ops_perm[], ops_two[], ops_mmap[], ops_mmap_two[], ops_turns[],
	ops_space[], ops_xattr[], ops_xattr_two[], ops_locks[];

/* The same directory through the second mount, or NULL. */
extern char *ops_other;

void ops_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

#define FAIL(...) ops_fail(__FILE__, __LINE__, __VA_ARGS__)
#define WANT(cond) do { if (!(cond)) FAIL("%s (errno %d, %s)", #cond, errno, strerror(errno)); } while (0)
/* The call succeeds. */
#define OK(call) do { if ((call) < 0) FAIL("%s: %s", #call, strerror(errno)); } while (0)
/* The call fails with that errno. */
#define ERR(call, err) do { \
	errno = 0; \
	if ((call) >= 0) \
		FAIL("%s should fail with %s", #call, strerror(err)); \
	if (errno != (err)) \
		FAIL("%s should fail with %s, not %s", #call, strerror(err), strerror(errno)); \
} while (0)
#define EQ(a, b) do { \
	long long a_ = (long long)(a), b_ = (long long)(b); \
	if (a_ != b_) \
		FAIL("%s is %lld, should be %s = %lld", #a, a_, #b, b_); \
} while (0)

/*
 * Where the stripe units of the tests' files end: the default unit, and all of one round over four
 * iods.
 */
#define UNIT	65536
#define ROUND	(4 * UNIT)

/* Bytes that differ at any two offsets that a wrong stripe computation would mix up. */
void ops_fill(void *buf, size_t n, uint64_t off, uint32_t seed);
/* Makes a file of @n such bytes. */
void ops_make(const char *path, size_t n, uint32_t seed);
/* Fails unless the file is exactly @n such bytes. */
void ops_verify(const char *path, size_t n, uint32_t seed);
/*
 * All of a transfer, however the kernel cuts it; returns what was moved until the end of the file.
 */
size_t ops_pread(int fd, void *buf, size_t n, off_t off);
void ops_pwrite(int fd, const void *buf, size_t n, off_t off);
int ops_open(const char *path, int flags, mode_t mode);
void ops_touch(const char *path, mode_t mode);
uint32_t ops_random(void);
/* A child, which does not write what we have yet to write. Return: as fork(), which does not fail. */
pid_t ops_fork(void);
/* Runs @fn in a child with these ids and groups; its failures are ours. */
void ops_as(uid_t uid, gid_t gid, const gid_t *groups, int ngroups, void (*fn)(void *), void *arg);

#endif
