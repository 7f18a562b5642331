// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_turns.c - checks of shared mappings of one file through two mounts: they are one memory. Neither
 * msync nor opening it anew is needed for what one side stores to be seen by the other, and two that
 * store to one page lose nothing.
 */
#include "ops.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define PAGE 4096
#define PATIENCE 60			/* seconds that something may take that has no time of its own */

static const char *theirs(const char *name)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/%s", ops_other, name);
	return path;
}

static unsigned char *map(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	WANT(p != MAP_FAILED);
	return p;
}

/* Through this mount, or (@other) the second. */
static unsigned char *map_path(const char *name, bool other, size_t len, int *fd)
{
	*fd = ops_open(other ? theirs(name) : name, O_RDWR, 0);
	return map(*fd, len);
}

static void ended(pid_t pid)
{
	int status;

	WANT(waitpid(pid, &status, 0) == pid);
	EQ(status, 0);
}

/* Until *@p is @want. */
static void await(const volatile uint32_t *p, uint32_t want)
{
	time_t end = time(NULL) + PATIENCE;

	while (*p != want)
		if (time(NULL) > end)
			FAIL("it is %u, and should be %u by now", *p, want);
}

/* What one stores the other loads, at once, and the other way round. */
static void loads(size_t len)
{
	volatile uint32_t *p, *q;
	struct stat st;
	int a, b, i;

	/* Both know it, and have read it. */
	a = ops_open("f", O_RDWR, 0);
	b = ops_open(theirs("f"), O_RDWR, 0);
	for (i = 0; i < 2; i++) {
		OK(fstat(i ? b : a, &st));
		EQ(st.st_size, len);
		EQ(pread(i ? b : a, &st, 100, 0), 100);
	}
	p = (void *)map(a, len);
	q = (void *)map(b, len);
	for (i = 1; i <= 40; i++) {
		uint32_t at = ops_random() % (len / 4), at2 = ops_random() % (len / 4);

		p[at] = i;
		EQ(q[at], i);
		q[at2] = 1000 + i;
		EQ(p[at2], 1000 + i);
		q[at] = 2000 + i;
		EQ(p[at], 2000 + i);
	}
	OK(munmap((void *)p, len));
	OK(munmap((void *)q, len));
	OK(close(a));
	OK(close(b));
}

static void loads_striped(void)
{
	ops_make("f", ROUND, 1);
	loads(ROUND);
}

static void loads_small(void)
{
	ops_make("f", 3000, 1);
	loads(3000);
}

static void loads_grown(void)
{
	int fd = ops_open("f", O_RDWR | O_CREAT, 0644);

	OK(ftruncate(fd, PAGE));
	OK(close(fd));
	loads(PAGE);
}

/* What is stored through a mapping is no hole, whoever seeks. */
static void seen_by_seek(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b, i;
	volatile uint32_t *p, *q;

	OK(ftruncate(a, ROUND));
	b = ops_open(theirs("f"), O_RDWR, 0);
	p = (void *)map(a, ROUND);
	q = (void *)map(b, ROUND);
	for (i = ROUND / PAGE - 1; i >= 0; i -= 3) {
		(i % 2 ? p : q)[i * (PAGE / 4)] = 1;
		EQ(lseek(i % 2 ? b : a, 0, SEEK_DATA), (off_t)i * PAGE);
	}
	OK(munmap((void *)p, ROUND));
	OK(munmap((void *)q, ROUND));
	OK(close(a));
	OK(close(b));
}

/* Who appends waits for a turn, and for who cuts; who cuts waits for who appends. */
static void beside_appends(void)
{
	volatile unsigned char *p;
	pid_t pid[2];
	int fd, i;

	ops_make("f", ROUND, 1);
	pid[0] = ops_fork();
	if (!pid[0]) {
		fd = ops_open(theirs("f"), O_WRONLY | O_APPEND, 0);
		for (i = 0; i < 25; i++)
			EQ(write(fd, "record\n", 7), 7);
		exit(0);
	}
	pid[1] = ops_fork();
	if (!pid[1]) {
		fd = ops_open("f", O_RDWR, 0);
		for (i = 0; i < 12; i++)
			OK(ftruncate(fd, ROUND + i));
		exit(0);
	}
	p = map_path("f", false, ROUND, &fd);
	for (i = 0; i < 100; i++) {
		p[i % 64 * PAGE] = i;
		if (i % 16 == 15)
			OK(madvise((void *)p, ROUND, MADV_DONTNEED));
		usleep(5000);
	}
	ended(pid[0]);
	ended(pid[1]);
}

/* read(2) and write(2) through one mount, a mapping through the other. */
static void beside_calls(void)
{
	unsigned char *p, buf[3 * PAGE], *model = calloc(1, ROUND), c;
	int a, b, i;
	size_t k;

	a = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(a, ROUND));
	p = map(a, ROUND);
	b = ops_open(theirs("f"), O_RDWR, 0);
	for (i = 1; i <= 60; i++) {
		off_t at = ops_random() % (ROUND - sizeof(buf));
		size_t n = 1 + ops_random() % sizeof(buf);

		switch (ops_random() % 4) {
		case 0:
			ops_fill(buf, n, at, i);
			memcpy(model + at, buf, n);
			ops_pwrite(b, buf, n, at);
			break;
		case 1:
			memset(p + at, i, n);
			memset(model + at, i, n);
			break;
		case 2:
			EQ(ops_pread(b, buf, n, at), n);
			WANT(!memcmp(buf, model + at, n));
			break;
		default:
			for (k = 0; k < n; k++)
				if (p[at + k] != model[at + k])
					FAIL("byte %zu is %u, should be %u", at + k, p[at + k], model[at + k]);
		}
	}
	WANT(!memcmp(p, model, ROUND));
	/* And sizes: who writes behind the end, the other may map that. */
	ops_pwrite(b, "x", 1, ROUND + 10);
	OK(munmap(p, ROUND));
	p = map(a, ROUND + PAGE);
	EQ(p[ROUND + 10], 'x');
	p[ROUND + 11] = 'y';		/* behind the end: not in the file */
	EQ(pread(b, &c, 1, ROUND + 11), 0);
	OK(munmap(p, ROUND + PAGE));
	OK(close(a));
	OK(close(b));
	free(model);
}

#define TIMES 3000u

/* Counters in one page: one of all, and one of each, which is in the same page. */
static void counters(void)
{
	uint32_t *p, i, k, me;
	pid_t pid[3];
	int fd;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, ROUND));
	OK(close(fd));
	for (k = 0; k < 3; k++) {
		pid[k] = ops_fork();
		if (pid[k])
			continue;
		/* Two through one mount, one through the other. */
		p = (void *)map_path("f", k == 1, PAGE, &fd);
		me = 100 + k;
		for (i = 1; i <= TIMES; i++) {
			__atomic_add_fetch(&p[7], 1, __ATOMIC_SEQ_CST);
			if (p[me]++ != i - 1)
				FAIL("counter %u is %u, should be %u", k, p[me], i);
			if (i % 300 == 0)
				usleep(1000);
		}
		exit(0);
	}
	for (k = 0; k < 3; k++)
		ended(pid[k]);
	for (k = 0; k < 2; k++) {
		p = (void *)map_path("f", k, PAGE, &fd);
		EQ(p[7], 3 * TIMES);
		EQ(p[100], TIMES);
		EQ(p[101], TIMES);
		EQ(p[102], TIMES);
		OK(munmap(p, PAGE));
		OK(close(fd));
	}
}

/* A word that goes to and fro, in memory: each waits for the other's. */
static void to_and_fro(void)
{
	volatile uint32_t *p;
	pid_t pid;
	uint32_t i;
	int fd;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, PAGE));
	p = (void *)map(fd, PAGE);
	pid = ops_fork();
	if (!pid) {
		p = (void *)map_path("f", true, PAGE, &fd);
		for (i = 0; i < 30; i++) {
			await(p, 2 * i + 1);
			*p = 2 * i + 2;
		}
		exit(0);
	}
	for (i = 0; i < 30; i++) {
		*p = 2 * i + 1;
		await(p, 2 * i + 2);
	}
	ended(pid);
}

/* The same, but one of them looks with read, again and again, and answers with write. */
static void to_and_fro_calls(void)
{
	time_t end = time(NULL) + PATIENCE;
	volatile uint32_t *p;
	uint32_t i, got;
	pid_t pid;
	int fd;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, ROUND));
	p = (void *)map(fd, PAGE);
	pid = ops_fork();
	if (!pid) {
		fd = ops_open(theirs("f"), O_RDWR, 0);
		for (i = 0; i < 20; i++) {
			do {
				EQ(pread(fd, &got, 4, 0), 4);
				WANT(time(NULL) < end);
			} while (got != 2 * i + 1);
			got++;
			ops_pwrite(fd, &got, 4, 0);
		}
		exit(0);
	}
	for (i = 0; i < 20; i++) {
		*p = 2 * i + 1;
		await(p, 2 * i + 2);
	}
	ended(pid);
}

/* What is read into a mapping is there when read returns, though others take the file meanwhile. */
static void read_into(void)
{
	unsigned char *p, want[4 * PAGE];
	volatile uint32_t *q;
	int fd, g, other, i;
	pid_t pid;

	ops_make("g", ROUND, 9);
	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, ROUND));
	pid = ops_fork();
	if (!pid) {
		q = (void *)map_path("f", true, PAGE, &fd);
		while (!q[1])
			__atomic_add_fetch(&q[0], 1, __ATOMIC_SEQ_CST);
		exit(0);
	}
	/* Somebody writes it: each read asks for its bytes. */
	other = ops_open(theirs("g"), O_RDWR, 0);
	g = ops_open("g", O_RDONLY, 0);
	p = map(fd, ROUND);
	for (i = 0; i < 60; i++) {
		off_t at = i * PAGE % (ROUND - (off_t)sizeof(want));

		ops_fill(want, sizeof(want), at, 9);
		memset(p + UNIT, 0, sizeof(want));
		EQ(ops_pread(g, p + UNIT, sizeof(want), at), sizeof(want));
		if (memcmp(p + UNIT, want, sizeof(want)))
			FAIL("what was read is not there, the %dth time", i);
	}
	((volatile uint32_t *)p)[1] = 1;
	ended(pid);
	OK(close(other));
}

struct copying {
	const char *path;
	int rounds;
};

/* Transfers from and to a mapping of the file itself, while others store: nobody waits for himself. */
static void *copy_about(void *arg)
{
	struct copying *c = arg;
	unsigned char *p;
	int fd, i;

	fd = ops_open(c->path, O_RDWR, 0);
	p = map(fd, ROUND);
	for (i = 0; i < c->rounds; i++) {
		EQ(ops_pread(fd, p + UNIT, 2 * PAGE, 2 * UNIT), 2 * PAGE);
		ops_pwrite(fd, p + 3 * UNIT, 2 * PAGE, UNIT + PAGE * (i % 4));
		p[i] = i;
	}
	OK(munmap(p, ROUND));
	OK(close(fd));
	return NULL;
}

static void to_itself(void)
{
	struct copying a = { "f", 25 }, b = { strdup(theirs("f")), 25 };
	pthread_t t[2];
	pid_t pid;
	int fd;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, ROUND));
	OK(close(fd));
	pid = ops_fork();
	if (!pid) {
		copy_about(&b);
		exit(0);
	}
	EQ(pthread_create(&t[0], NULL, copy_about, &a), 0);
	EQ(pthread_create(&t[1], NULL, copy_about, &a), 0);
	EQ(pthread_join(t[0], NULL), 0);
	EQ(pthread_join(t[1], NULL), 0);
	ended(pid);
}

/* One cuts, allocates and copies, the other stores and loads below where it is cut. */
static void beside_changes(void)
{
	volatile unsigned char *p;
	pid_t pid;
	int fd, i;

	fd = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(fd, 4 * ROUND));
	pid = ops_fork();
	if (!pid) {
		p = map_path("f", true, PAGE, &fd);
		for (i = 1; i <= 150; i++) {
			p[i] = i;
			EQ(p[i], i & 255);
			EQ(p[i - 1], (i - 1) & 255);
		}
		exit(0);
	}
	for (i = 0; i < 12; i++) {
		off_t from = 2 * ROUND, to = 3 * ROUND;

		OK(ftruncate(fd, PAGE + i));
		OK(ftruncate(fd, 4 * ROUND));
		OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, ROUND, ROUND));
		EQ(copy_file_range(fd, &from, fd, &to, ROUND, 0), ROUND);
	}
	ended(pid);
	p = map(fd, PAGE);
	for (i = 1; i <= 150; i++)
		EQ(p[i], i & 255);
}

/* Who stored and was killed has stored. */
static void killed(void)
{
	volatile uint32_t *p, *q;
	pid_t pid;
	int a, b;

	a = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(a, ROUND));
	q = (void *)map_path("f", true, ROUND, &b);
	pid = ops_fork();
	if (!pid) {
		p = (void *)map(a, ROUND);
		p[5000] = 77;
		p[0] = 1;
		for (;;)
			pause();
	}
	await(q, 1);
	EQ(q[5000], 77);
	q[5001] = 78;
	OK(kill(pid, SIGKILL));
	WANT(waitpid(pid, NULL, 0) == pid);
	p = (void *)map(a, ROUND);
	EQ(p[5000], 77);
	EQ(p[5001], 78);
	EQ(q[5000], 77);
}

static const unsigned char *map_only_read(const char *path, size_t len, int *fd)
{
	void *p;

	*fd = ops_open(path, O_RDONLY, 0);
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, *fd, 0);
	WANT(p != MAP_FAILED);
	return p;
}

static void same_bytes(const volatile unsigned char *p, const unsigned char *model, off_t at, size_t n)
{
	for (; n; at++, n--)
		if (p[at] != model[at])
			FAIL("byte %lld is %u, should be %u", (long long)at, p[at], model[at]);
}

/* Who may not store looks on: he sees what anybody writes, stores or cuts, through either mount, at once. */
static void looks_on(size_t len)
{
	unsigned char *model = malloc(len), *stored, buf[2 * PAGE];
	int look[2], write[2] = { -1, -1 }, i, k;
	const unsigned char *p[2];

	ops_make("f", len, 1);
	p[0] = map_only_read("f", len, &look[0]);
	p[1] = map_only_read(theirs("f"), len, &look[1]);
	ops_fill(model, len, 0, 1);
	for (i = 1; i <= 50; i++) {
		size_t n = 1 + ops_random() % (len < sizeof(buf) ? len : sizeof(buf));
		off_t at = ops_random() % (len - n + 1);
		int by = ops_random() % 2;

		if (write[by] < 0)
			write[by] = ops_open(by ? theirs("f") : "f", O_RDWR, 0);
		switch (ops_random() % 3) {
		case 0:
			stored = map(write[by], len);
			memset(stored + at, i, n);
			memset(model + at, i, n);
			OK(munmap(stored, len));
			break;
		default:
			ops_fill(buf, n, at, i);
			ops_pwrite(write[by], buf, n, at);
			memcpy(model + at, buf, n);
		}
		for (k = 0; k < 2; k++) {
			same_bytes(p[k], model, at, n);
			same_bytes(p[k], model, ops_random() % len, 1);
		}
		/* Mostly one of them has it open, or none. */
		if (ops_random() % 2) {
			OK(close(write[by]));
			write[by] = -1;
		}
	}
	OK(truncate(theirs("f"), len / 2));
	OK(truncate(theirs("f"), len));
	memset(model + len / 2, 0, len - len / 2);
	for (k = 0; k < 2; k++)
		same_bytes(p[k], model, 0, len);
	free(model);
}

static void looks_on_striped(void)
{
	looks_on(ROUND);
}

static void looks_on_small(void)
{
	looks_on(3000);
}

/* He maps it anew, and knows nothing from the last time, whether he has had it open since or not. */
static void looks_anew(void)
{
	const volatile unsigned char *p;
	int w, fd = -1, i, k;
	unsigned char c;

	ops_make("f", ROUND, 1);
	w = ops_open(theirs("f"), O_RDWR, 0);
	for (i = 0; i < 8; i++) {
		for (k = 1; k <= 2; k++) {
			c = 10 * i + k;
			ops_pwrite(w, &c, 1, 5);
			if (k == 1) {
				if (fd < 0)
					p = map_only_read("f", PAGE, &fd);
				else
					p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
				WANT(p != MAP_FAILED);
			}
			EQ(p[5], c);
		}
		OK(munmap((void *)p, PAGE));
		if (i % 2) {
			OK(close(fd));
			fd = -1;
		}
	}
}

/* Who cuts a file waits for who maps it, on either client, and not the other way round. */
static void looks_beside_cuts(void)
{
	const volatile unsigned char *p;
	unsigned int sum = 0;
	pid_t pid[2];
	int fd, i, k;

	ops_make("f", ROUND, 1);
	for (k = 0; k < 2; k++) {
		pid[k] = ops_fork();
		if (pid[k])
			continue;
		for (i = 0; i < 40; i++)
			OK(truncate(k ? theirs("f") : "f", ROUND + 1 + i));
		exit(0);
	}
	p = map_only_read("f", ROUND, &fd);
	for (i = 0; i < 400; i++) {
		sum += p[i * 997 % ROUND / PAGE * PAGE];
		if (i % 16 == 15)
			OK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
		if (i % 8 == 7)
			OK(madvise((void *)p, ROUND, MADV_DONTNEED));
	}
	ended(pid[0]);
	ended(pid[1]);
	WANT(sum);
}

/* One waits in such a mapping, the other in a read, and each answers with a write; the file stays open. */
static void looks_and_writes(void)
{
	time_t end = time(NULL) + PATIENCE;
	const volatile uint32_t *p;
	uint32_t i, got;
	pid_t pid;
	int fd, w;

	w = ops_open("f", O_RDWR | O_CREAT, 0644);
	OK(ftruncate(w, ROUND));
	pid = ops_fork();
	if (!pid) {
		w = ops_open(theirs("f"), O_RDWR, 0);
		for (i = 0; i < 20; i++) {
			do {
				EQ(pread(w, &got, 4, 0), 4);
				WANT(time(NULL) < end);
			} while (got != 2 * i + 1);
			got++;
			ops_pwrite(w, &got, 4, 0);
		}
		exit(0);
	}
	p = (const void *)map_only_read("f", PAGE, &fd);
	for (i = 0; i < 20; i++) {
		got = 2 * i + 1;
		ops_pwrite(w, &got, 4, 0);
		await(p, 2 * i + 2);
	}
	ended(pid);
}

const struct ops_check ops_turns[] = {
	{ "two mounts: what one maps, the other sees: striped", loads_striped },
	{ "two mounts: what one maps, the other sees: small", loads_small },
	{ "two mounts: what one maps, the other sees: grown", loads_grown },
	{ "two mounts: maps, and a seek for data", seen_by_seek },
	{ "two mounts: maps beside appending and cutting", beside_appends },
	{ "two mounts: maps beside read and write", beside_calls },
	{ "two mounts: counters in one page", counters },
	{ "two mounts: a word to and fro", to_and_fro },
	{ "two mounts: a word to and fro, by a map and by calls", to_and_fro_calls },
	{ "two mounts: reads into a map", read_into },
	{ "two mounts: transfers from and to the file's own pages", to_itself },
	{ "two mounts: maps beside truncation, allocation, copies", beside_changes },
	{ "two mounts: maps of who is killed", killed },
	{ "two mounts: maps of who may only read: striped", looks_on_striped },
	{ "two mounts: maps of who may only read: small", looks_on_small },
	{ "two mounts: maps of who may only read: anew", looks_anew },
	{ "two mounts: maps of who may only read: beside truncation", looks_beside_cuts },
	{ "two mounts: a word to and fro, by a map of who may only read", looks_and_writes },
	{ NULL, NULL }
};
