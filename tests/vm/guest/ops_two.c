// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_two.c - checks that need two mounts of one file system: what one did, the other sees at once.
 *
 * The current directory is through the first mount; o("name") is the same name through the second.
 */
#include "ops.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Up to four results are usable at a time. */
static const char *o(const char *name)
{
	static char path[4][4200];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", ops_other, name);
	return path[n];
}

static off_t size_of(const char *path)
{
	struct stat st;

	OK(stat(path, &st));
	return st.st_size;
}

static void writes(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b = ops_open(o("f"), O_RDWR, 0), i;
	char *want = malloc(ROUND), *got = malloc(ROUND);

	for (i = 0; i < 20; i++) {
		size_t n = 1 + ops_random() % ROUND;
		off_t off = ops_random() % (1 << 20);

		ops_fill(want, n, off, i);
		ops_pwrite(i & 1 ? a : b, want, n, off);
		EQ(ops_pread(i & 1 ? b : a, got, n, off), n);
		WANT(!memcmp(want, got, n));
	}
}

/* The end of a file that others have open for writing. */
static void sizes(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b = ops_open(o("f"), O_RDWR, 0), i;
	struct stat st;
	off_t end = 0;
	char c;

	for (i = 1; i < 12; i++) {
		end = (off_t)i * 50001;
		ops_pwrite(i & 1 ? a : b, "x", 1, end - 1);
		EQ(size_of("f"), end);
		EQ(size_of(o("f")), end);
		OK(fstat(a, &st));
		EQ(st.st_size, end);
		OK(fstat(b, &st));
		EQ(st.st_size, end);
		EQ(lseek(i & 1 ? b : a, 0, SEEK_END), end);
		EQ(pread(i & 1 ? b : a, &c, 1, end), 0);
		EQ(pread(i & 1 ? b : a, &c, 1, end - 1), 1);
	}
	OK(close(a));
	EQ(size_of(o("f")), end);
	OK(close(b));
	EQ(size_of("f"), end);
	EQ(size_of(o("f")), end);
}

static void truncations(void)
{
	int a, b;
	char c = 0;

	ops_make("f", 2 * ROUND, 1);
	a = ops_open("f", O_RDWR, 0);
	b = ops_open(o("f"), O_RDWR, 0);
	OK(ftruncate(a, 1000));
	EQ(size_of(o("f")), 1000);
	EQ(pread(b, &c, 1, 1000), 0);
	/* The writer that did not know appends where the end is now. */
	ops_pwrite(b, "y", 1, 1000);
	EQ(size_of("f"), 1001);
	OK(ftruncate(b, ROUND));
	EQ(size_of("f"), ROUND);
	EQ(pread(a, &c, 1, 5000), 1);
	EQ(c, 0);
	OK(close(a));
	OK(close(b));
	EQ(size_of("f"), ROUND);
	EQ(size_of(o("f")), ROUND);
}

static void appends(void)
{
	int a = ops_open("f", O_WRONLY | O_CREAT | O_APPEND, 0644), b = ops_open(o("f"), O_WRONLY | O_APPEND, 0), i;
	char got[100], want[100] = "";

	for (i = 0; i < 20; i++) {
		char piece[8];

		snprintf(piece, sizeof(piece), "%02d,", i);
		strcat(want, piece);
		EQ(write(i & 1 ? a : b, piece, 3), 3);
	}
	OK(close(a));
	OK(close(b));
	a = ops_open(o("f"), O_RDONLY, 0);
	EQ(ops_pread(a, got, sizeof(got), 0), 60);
	WANT(!memcmp(got, want, 60));
}

/* A record: how long it is, who wrote it, and that all over. */
static void append_records(const char *path, int who, int n)
{
	int fd = ops_open(path, O_WRONLY | O_APPEND, 0), i;
	unsigned char rec[256];

	for (i = 0; i < n; i++) {
		size_t len = 8 + (i * 37 + who * 11) % 240;

		memset(rec, who, len);
		rec[0] = len;
		EQ(write(fd, rec, len), (long long)len);
	}
	OK(close(fd));
}

/* Return: how many whole records of each of two writers there are. */
static void count_records(const char *path, int n[2])
{
	static unsigned char buf[1 << 20];
	int fd = ops_open(path, O_RDONLY, 0);
	size_t len = ops_pread(fd, buf, sizeof(buf), 0), at, i;

	n[0] = n[1] = 0;
	for (at = 0; at < len; at += buf[at]) {
		int who = buf[at + 1];

		if (buf[at] < 8 || at + buf[at] > len || who < 1 || who > 2)
			FAIL("no record at %zu of %zu", at, len);
		for (i = 1; i < buf[at]; i++)
			if (buf[at + i] != who)
				FAIL("record at %zu is torn at byte %zu", at, i);
		n[who - 1]++;
	}
	OK(close(fd));
}

static void appends_race(void)
{
	int status, n[2];
	pid_t pid;

	ops_touch("f", 0644);
	pid = fork();
	WANT(pid >= 0);
	if (!pid) {
		append_records(o("f"), 2, 300);
		_exit(0);
	}
	append_records("f", 1, 300);
	WANT(waitpid(pid, &status, 0) == pid);
	EQ(status, 0);
	count_records("f", n);
	EQ(n[0], 300);
	EQ(n[1], 300);
	count_records(o("f"), n);
	EQ(n[0] + n[1], 600);
}

/* What is appended goes before a cut or after it, whole. */
static void appends_and_cuts(void)
{
	int status, n[2], i;
	pid_t pid;

	ops_touch("f", 0644);
	pid = fork();
	WANT(pid >= 0);
	if (!pid) {
		append_records(o("f"), 2, 200);
		_exit(0);
	}
	for (i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		if (i & 1)
			OK(truncate("f", 0));
		else
			append_records("f", 1, 3);
	}
	EQ(status, 0);
	append_records("f", 1, 3);
	count_records("f", n);
	WANT(n[0] >= 3);
}

static void names(void)
{
	struct stat st;

	/* Asked for before it is there: "no" is not remembered. */
	ERR(stat(o("n"), &st), ENOENT);
	ops_make("n", 10, 1);
	ops_verify(o("n"), 10, 1);
	OK(rename(o("n"), o("m")));
	ERR(stat("n", &st), ENOENT);
	OK(stat("m", &st));
	ops_make(o("n"), 20, 2);
	ops_verify("n", 20, 2);
	OK(rename("m", "n"));
	ops_verify(o("n"), 10, 1);
	OK(unlink("n"));
	ERR(stat(o("n"), &st), ENOENT);
	ERR(open(o("n"), O_RDONLY), ENOENT);
	OK(mkdir("d", 0755));
	ops_touch(o("d/f"), 0644);
	ERR(rmdir("d"), ENOTEMPTY);
	OK(rename(o("d"), o("e")));
	OK(stat("e/f", &st));
	ERR(stat("d/f", &st), ENOENT);
	OK(symlink("one", "s"));
	OK(unlink(o("s")));
	OK(symlink("two", o("s")));
	{
		char t[10] = "";

		EQ(readlink("s", t, sizeof(t)), 3);
		WANT(!strcmp(t, "two"));
	}
	ERR(open("e/f", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
	OK(unlink(o("e/f")));
	OK(close(ops_open("e/f", O_CREAT | O_EXCL | O_WRONLY, 0644)));
}

static int entries(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	WANT(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void listings(void)
{
	char name[32];
	int i;

	OK(mkdir("d", 0755));
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "d/x%d", i);
		ops_touch(i & 1 ? name : o(name), 0644);
		EQ(entries("d"), i + 1);
		EQ(entries(o("d")), i + 1);
	}
	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "d/x%d", i);
		OK(unlink(i & 1 ? o(name) : name));
		EQ(entries("d"), 49 - i);
		EQ(entries(o("d")), 49 - i);
	}
	OK(rmdir(o("d")));
	EQ(entries("."), 0);
}

static void attributes(void)
{
	struct timespec t[2] = { { 11, 12 }, { 13, 14 } };
	struct stat st, before;
	int fd;

	ops_touch("f", 0600);
	OK(stat(o("f"), &st));
	OK(chmod("f", 0640));
	OK(chown(o("f"), 12, 34));
	OK(stat("f", &st));
	EQ(st.st_uid, 12);
	OK(stat(o("f"), &st));
	EQ(st.st_mode & 0777, 0640);
	OK(utimensat(AT_FDCWD, "f", t, 0));
	OK(stat(o("f"), &st));
	EQ(st.st_mtim.tv_sec, 13);
	EQ(st.st_mtim.tv_nsec, 14);
	OK(link("f", "g"));
	OK(stat(o("f"), &st));
	EQ(st.st_nlink, 2);
	/* The time of a write shows while the writer still has it open. */
	fd = ops_open("f", O_WRONLY, 0);
	OK(stat(o("f"), &before));
	usleep(20000);
	ops_pwrite(fd, "x", 1, 0);
	OK(stat(o("f"), &st));
	WANT(st.st_mtim.tv_sec > before.st_mtim.tv_sec);
	EQ(st.st_size, 1);
}

/* Open through one mount, unlinked through the other: lives on. */
static void unlinked(void)
{
	char *want = malloc(ROUND), *got = malloc(ROUND);
	int fd, i;

	ops_fill(want, ROUND, 0, 9);
	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	ops_pwrite(fd, want, ROUND, 0);
	OK(unlink(o("f")));
	for (i = 0; i < 50; i++) {
		ops_touch(o("f"), 0644);
		OK(unlink(o("f")));
	}
	EQ(ops_pread(fd, got, ROUND, 0), ROUND);
	WANT(!memcmp(want, got, ROUND));
	ops_pwrite(fd, want, 100, ROUND);
	ERR(open("f", O_RDONLY), ENOENT);
	/* Replaced by rename as well. */
	OK(close(fd));
	ops_make("a", ROUND, 9);
	ops_make("b", 10, 1);
	fd = ops_open("a", O_RDONLY, 0);
	OK(rename(o("b"), o("a")));
	EQ(ops_pread(fd, got, ROUND, 0), ROUND);
	WANT(!memcmp(want, got, ROUND));
	ops_verify("a", 10, 1);
}

static void maps(void)
{
	unsigned char *p, *want = malloc(ROUND);
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b, i;

	for (i = 0; i < 6; i++) {
		ops_fill(want, ROUND, 0, i);
		ops_pwrite(a, want, ROUND, 0);
		b = ops_open(o("f"), O_RDONLY, 0);
		p = mmap(NULL, ROUND, PROT_READ, MAP_PRIVATE, b, 0);
		WANT(p != MAP_FAILED);
		WANT(!memcmp(p, want, ROUND));
		OK(munmap(p, ROUND));
		OK(close(b));
	}
}

/* Both mounts make names in one directory at once: each name has one winner. */
static void race_create(void)
{
	int status, won = 0, i;
	char name[32];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	OK(pid);
	for (i = 0; i < 200; i++) {
		int fd;

		snprintf(name, sizeof(name), "r%d", i);
		fd = open(pid ? name : o(name), O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			EQ(errno, EEXIST);
		else
			won++, close(fd);
	}
	if (!pid) {
		ops_pwrite(ops_open("won", O_WRONLY | O_CREAT, 0600), &won, sizeof(won), 0);
		_exit(0);
	}
	WANT(waitpid(pid, &status, 0) == pid && !status);
	EQ(ops_pread(ops_open(o("won"), O_RDONLY, 0), &i, sizeof(i), 0), sizeof(i));
	EQ(won + i, 200);
	OK(unlink("won"));
	EQ(entries("."), 200);
}

/* Two directories renamed into each other at once: never a loop, never both gone. */
static void race_rename(void)
{
	int status, i;
	pid_t pid;

	for (i = 0; i < 30; i++) {
		OK(mkdir("a", 0755));
		OK(mkdir("b", 0755));
		fflush(stdout);
		pid = fork();
		OK(pid);
		if (!pid) {
			int r = rename(o("a"), o("b/a"));

			_exit(r < 0 && errno != EINVAL && errno != ENOENT);
		}
		if (rename("b", "a/b") < 0)
			WANT(errno == EINVAL || errno == ENOENT);
		WANT(waitpid(pid, &status, 0) == pid);
		EQ(status, 0);
		if (!rmdir("a/b"))
			OK(rmdir("a"));
		else if (!rmdir("b/a"))
			OK(rmdir("b"));
		else
			FAIL("neither directory is below the other: %s", strerror(errno));
	}
}

/* A file that has one of two names at any time: who renames it and must not replace finds it, or not; never both. */
static void race_noreplace(void)
{
	static const char *const name[] = { "n0", "n1" };
	unsigned int i, done = 0;
	int status, err;
	pid_t pid;

	ops_make("n0", 10, 1);
	fflush(stdout);
	pid = fork();
	OK(pid);
	if (!pid) {
		for (i = 0; i < 400; i++)
			if (rename(o(name[i % 2]), o(name[!(i % 2)])) && errno != ENOENT)
				_exit(errno);
		_exit(0);
	}
	for (i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		err = renameat2(AT_FDCWD, name[i % 2], AT_FDCWD, name[!(i % 2)], RENAME_NOREPLACE) ? errno : 0;
		if (err && err != ENOENT)
			FAIL("rename %u says that it is there: %s", i, strerror(err));
		done += !err;
	}
	EQ(status, 0);
	WANT(done);
}

const struct ops_check ops_two[] = {
	{ "two mounts: writes", writes },
	{ "two mounts: sizes while both write", sizes },
	{ "two mounts: truncation", truncations },
	{ "two mounts: appending in turns", appends },
	{ "two mounts: appending at once", appends_race },
	{ "two mounts: appending and cutting", appends_and_cuts },
	{ "two mounts: names", names },
	{ "two mounts: listings", listings },
	{ "two mounts: attributes", attributes },
	{ "two mounts: unlinked while open", unlinked },
	{ "two mounts: maps", maps },
	{ "two mounts: exclusive creates race", race_create },
	{ "two mounts: renames race", race_rename },
	{ "two mounts: renames race, which must not replace", race_noreplace },
	{ NULL, NULL }
};
