// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops.c - runs the checks of ops_*.c on a directory and prints a line for each, "ok - name" or "not
 * ok - name"; the reason of a failure comes before it.
 *
 *	ops DIR			checks that need one mount
 *	ops DIR OTHER		checks that need two: OTHER is DIR through another mount
 *	ops -n [DIR [OTHER]]	prints how many that are
 *	ops -k WORD DIR ...	only those with WORD in their name
 */
#include "ops.h"
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

/* A check that takes longer hangs, whatever the machine. */
#define CHECK_SECONDS 120

char *ops_other;

void ops_fail(const char *file, int line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%s:%d: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, text);
	fflush(stdout);
	_exit(1);
}

uint32_t ops_random(void)
{
	static uint64_t s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s >> 16;
}

void ops_fill(void *buf, size_t n, uint64_t off, uint32_t seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t at = off + i;
		uint64_t x = (at >> 3) * 0x9e3779b97f4a7c15ull + seed;

		x ^= x >> 29;
		p[i] = x >> (8 * (at & 7));
	}
}

int ops_open(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags, mode);

	if (fd < 0)
		FAIL("open %s, flags %#x: %s", path, flags, strerror(errno));
	return fd;
}

void ops_touch(const char *path, mode_t mode)
{
	OK(close(ops_open(path, O_WRONLY | O_CREAT | O_EXCL, mode)));
}

size_t ops_pread(int fd, void *buf, size_t n, off_t off)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pread(fd, (char *)buf + done, n - done, off + done);

		if (r < 0)
			FAIL("pread of %zu at %lld: %s", n - done, (long long)(off + done), strerror(errno));
		if (!r)
			break;
		done += r;
	}
	return done;
}

void ops_pwrite(int fd, const void *buf, size_t n, off_t off)
{
	ssize_t r = pwrite(fd, buf, n, off);

	if (r < 0)
		FAIL("pwrite of %zu at %lld: %s", n, (long long)off, strerror(errno));
	/* To a file with room, a write is done whole. */
	if ((size_t)r != n)
		FAIL("pwrite of %zu at %lld wrote %zd", n, (long long)off, r);
}

void ops_make(const char *path, size_t n, uint32_t seed)
{
	int fd = ops_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	char *buf = malloc(n + 1);

	WANT(buf);
	ops_fill(buf, n, 0, seed);
	if (n)
		ops_pwrite(fd, buf, n, 0);
	OK(close(fd));
	free(buf);
}

void ops_verify(const char *path, size_t n, uint32_t seed)
{
	int fd = ops_open(path, O_RDONLY, 0);
	unsigned char *got = malloc(n + 1), *want = malloc(n + 1);
	struct stat st;
	size_t i, r;

	WANT(got && want);
	OK(fstat(fd, &st));
	EQ(st.st_size, n);
	r = ops_pread(fd, got, n + 1, 0);
	EQ(r, n);
	ops_fill(want, n, 0, seed);
	for (i = 0; i < n; i++)
		if (got[i] != want[i])
			FAIL("%s: byte %zu of %zu is %#x, should be %#x", path, i, n, got[i], want[i]);
	OK(close(fd));
	free(got);
	free(want);
}

pid_t ops_fork(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	OK(pid);
	return pid;
}

void ops_as(uid_t uid, gid_t gid, const gid_t *groups, int ngroups, void (*fn)(void *), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	OK(pid);
	if (!pid) {
		OK(setgroups(ngroups, groups));
		OK(setresgid(gid, gid, gid));
		OK(setresuid(uid, uid, uid));
		fn(arg);
		fflush(stdout);
		_exit(0);
	}
	WANT(waitpid(pid, &status, 0) == pid);
	if (status)
		FAIL("as uid %u gid %u: failed, see above (status %#x)", uid, gid, status);
}

/* Runs one check in a new directory below @base; its process may do to itself what it likes. */
static bool run_one(const struct ops_check *c, const char *base, const char *other)
{
	static int n;
	char dir[PATH_MAX], second[PATH_MAX + 16];
	int status;
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/c%d", base, ++n);
	snprintf(second, sizeof(second), "%s/c%d", other ? other : "", n);
	if (mkdir(dir, 0777) < 0) {
		printf("mkdir %s: %s\n", dir, strerror(errno));
		return false;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		ops_other = other ? second : NULL;
		alarm(CHECK_SECONDS);
		if (chdir(dir) < 0)
			FAIL("chdir %s: %s", dir, strerror(errno));
		c->run();
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("killed by signal %d%s\n", WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? " (took too long)" : "");
	return !status;
}

static int run_list(const struct ops_check *list, const char *word, bool count, const char *base, const char *other)
{
	int n = 0;

	for (; list->name; list++) {
		bool good;

		if (word && !strstr(list->name, word))
			continue;
		n++;
		if (count)
			continue;
		good = run_one(list, base, other);
		printf("%s - %s\n", good ? "ok" : "not ok", list->name);
		fflush(stdout);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *word = NULL;
	bool count = false;
	int opt, n;

	while ((opt = getopt(argc, argv, "nk:")) != -1) {
		if (opt == 'n')
			count = true;
		else if (opt == 'k')
			word = optarg;
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (argc < 1 || argc > 2) {
		fprintf(stderr, "usage: ops [-n] [-k WORD] DIR [OTHER]\n");
		return 2;
	}
	umask(0);
	if (argc == 2) {
		n = run_list(ops_two, word, count, argv[0], argv[1]);
		n += run_list(ops_mmap_two, word, count, argv[0], argv[1]);
		n += run_list(ops_turns, word, count, argv[0], argv[1]);
		n += run_list(ops_xattr_two, word, count, argv[0], argv[1]);
		n += run_list(ops_locks, word, count, argv[0], argv[1]);
	} else {
		n = run_list(ops_data, word, count, argv[0], NULL);
		n += run_list(ops_names, word, count, argv[0], NULL);
		n += run_list(ops_perm, word, count, argv[0], NULL);
		n += run_list(ops_mmap, word, count, argv[0], NULL);
		n += run_list(ops_space, word, count, argv[0], NULL);
		n += run_list(ops_xattr, word, count, argv[0], NULL);
	}
	if (count)
		printf("%d\n", n);
	return 0;
}
