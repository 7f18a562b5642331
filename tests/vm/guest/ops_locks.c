// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops_locks.c - checks of flock(2) and fcntl(2) locks through two mounts of one file system.
 *
 * The current directory is through the first mount; o("name") is the same name through the second.
 */
#include "ops.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

/* Up to four results are usable at a time. */
static const char *o(const char *name)
{
	static char path[4][4200];
	static int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", ops_other, name);
	return path[n];
}

static int lk(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	return fcntl(fd, cmd, &fl);
}

static struct flock get(int fd, int cmd, short type, off_t start, off_t len)
{
	struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };

	OK(fcntl(fd, cmd, &fl));
	return fl;
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* The child's status, which must come in time. */
static int end(pid_t pid, double seconds)
{
	double until = now() + seconds;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		if (now() > until) {
			kill(pid, SIGKILL);
			FAIL("a process did not end within %.0f s", seconds);
		}
		nap(10);
	}
	return status;
}

/* Gets the lock sooner or later. */
static void soon(int fd, short type, off_t start, off_t len)
{
	double until = now() + 8;

	while (lk(fd, F_SETLK, type, start, len) < 0) {
		if (errno != EAGAIN || now() > until)
			FAIL("cannot lock: %s", strerror(errno));
		nap(20);
	}
}

static void flocks(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b = ops_open(o("f"), O_RDONLY, 0), a2 = ops_open("f", O_RDONLY, 0);
	pid_t pid;

	OK(flock(a, LOCK_EX));
	ERR(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	ERR(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	ERR(flock(a2, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	OK(flock(a, LOCK_SH));
	OK(flock(b, LOCK_SH | LOCK_NB));
	OK(flock(a2, LOCK_SH | LOCK_NB));
	ERR(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	OK(flock(a, LOCK_UN));
	OK(flock(a2, LOCK_UN));
	OK(flock(b, LOCK_EX | LOCK_NB));
	/* Record locks are another matter. */
	OK(lk(a, F_SETLK, F_WRLCK, 0, 0));
	pid = ops_fork();
	if (!pid) {
		/* The child's copy is the same open file: it must not be what holds it. */
		close(b);
		OK(flock(a, LOCK_EX));
		_exit(0);
	}
	nap(500);
	EQ(waitpid(pid, NULL, WNOHANG), 0);
	OK(flock(b, LOCK_UN));
	EQ(end(pid, 8), 0);
	/* It has it still: the description is ours as well. */
	ERR(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	close(a);
	OK(flock(b, LOCK_EX));
}

static void ranges(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b;
	struct flock fl;
	pid_t pid;

	OK(lk(a, F_SETLK, F_WRLCK, 0, 100));
	pid = ops_fork();
	if (!pid) {
		b = ops_open(o("f"), O_RDWR, 0);
		ERR(lk(b, F_SETLK, F_WRLCK, 50, 100), EAGAIN);
		ERR(lk(b, F_SETLK, F_RDLCK, 99, 1), EAGAIN);
		OK(lk(b, F_SETLK, F_WRLCK, 100, 100));
		fl = get(b, F_GETLK, F_RDLCK, 0, 0);
		EQ(fl.l_type, F_WRLCK);
		EQ(fl.l_start, 0);
		EQ(fl.l_len, 100);
		/* Of another node or mount it is negative; on a local file system not. */
		EQ(abs(fl.l_pid), getppid());
		fl = get(b, F_GETLK, F_WRLCK, 100, 0);
		EQ(fl.l_type, F_UNLCK);
		_exit(0);
	}
	EQ(end(pid, 20), 0);
	/* Holes and changes of type. */
	OK(lk(a, F_SETLK, F_UNLCK, 40, 20));
	OK(lk(a, F_SETLK, F_RDLCK, 0, 10));
	pid = ops_fork();
	if (!pid) {
		b = ops_open(o("f"), O_RDWR, 0);
		OK(lk(b, F_SETLK, F_WRLCK, 40, 20));
		OK(lk(b, F_SETLK, F_RDLCK, 0, 10));
		ERR(lk(b, F_SETLK, F_RDLCK, 0, 11), EAGAIN);
		ERR(lk(b, F_SETLK, F_WRLCK, 39, 2), EAGAIN);
		fl = get(b, F_GETLK, F_WRLCK, 60, 0);
		EQ(fl.l_start, 60);
		EQ(fl.l_len, 40);
		_exit(0);
	}
	EQ(end(pid, 20), 0);
	/* To the end, wherever it is; and a negative length. */
	OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
	OK(lk(a, F_SETLK, F_WRLCK, 1000, 0));
	OK(lk(a, F_SETLK, F_WRLCK, 500, -10));
	pid = ops_fork();
	if (!pid) {
		b = ops_open(o("f"), O_RDWR, 0);
		ERR(lk(b, F_SETLK, F_RDLCK, 1ll << 60, 1), EAGAIN);
		ERR(lk(b, F_SETLK, F_RDLCK, 499, 1), EAGAIN);
		OK(lk(b, F_SETLK, F_WRLCK, 500, 500));
		_exit(0);
	}
	EQ(end(pid, 20), 0);
}

static void pids(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), go[2];
	struct flock fl;
	pid_t pid;
	char c;

	OK(pipe(go));
	pid = ops_fork();
	if (!pid) {
		OK(lk(a, F_SETLK, F_WRLCK, 5, 6));
		OK(write(go[1], "x", 1));
		pause();
		_exit(1);
	}
	EQ(read(go[0], &c, 1), 1);
	fl = get(a, F_GETLK, F_WRLCK, 0, 0);
	EQ(fl.l_pid, pid);
	EQ(fl.l_start, 5);
	EQ(fl.l_len, 6);
	fl = get(ops_open(o("f"), O_RDWR, 0), F_GETLK, F_WRLCK, 0, 0);
	EQ(abs(fl.l_pid), pid);
	kill(pid, SIGKILL);
	end(pid, 8);
	soon(ops_open(o("f"), O_RDWR, 0), F_WRLCK, 0, 0);
}

static void ofds(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), a2 = ops_open("f", O_RDWR, 0), b = ops_open(o("f"), O_RDWR, 0);
	struct flock fl;

	OK(lk(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	ERR(lk(a2, F_OFD_SETLK, F_RDLCK, 5, 10), EAGAIN);
	ERR(lk(b, F_OFD_SETLK, F_RDLCK, 5, 10), EAGAIN);
	ERR(lk(b, F_SETLK, F_RDLCK, 5, 10), EAGAIN);
	OK(lk(b, F_OFD_SETLK, F_WRLCK, 10, 10));
	fl = get(b, F_OFD_GETLK, F_WRLCK, 0, 0);
	EQ(fl.l_type, F_WRLCK);
	EQ(fl.l_pid, -1);
	EQ(fl.l_len, 10);
	/* Another descriptor's close does not matter, its own does. */
	close(a2);
	ERR(lk(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
	close(a);
	OK(lk(b, F_OFD_SETLK, F_WRLCK, 0, 0));
}

static void close_releases(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b;
	pid_t pid;

	OK(lk(a, F_SETLK, F_WRLCK, 0, 10));
	OK(lk(a, F_SETLK, F_RDLCK, 50, 10));
	/* Any descriptor of the file that the process closes gives up all it had. */
	close(ops_open("f", O_RDONLY, 0));
	pid = ops_fork();
	if (!pid) {
		b = ops_open(o("f"), O_RDWR, 0);
		OK(lk(b, F_SETLK, F_WRLCK, 0, 0));
		_exit(0);
	}
	EQ(end(pid, 20), 0);
}

static void quiet(int sig)
{
	(void)sig;
}

/* A signal ends the wait and nothing else. */
static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = quiet };
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b, go[2];
	pid_t pid;
	char c;

	OK(pipe(go));
	OK(lk(a, F_SETLK, F_WRLCK, 0, 10));
	pid = ops_fork();
	if (!pid) {
		OK(sigaction(SIGALRM, &sa, NULL));
		b = ops_open(o("f"), O_RDWR, 0);
		OK(lk(b, F_SETLK, F_RDLCK, 20, 10));
		alarm(1);
		ERR(lk(b, F_SETLKW, F_WRLCK, 0, 100), EINTR);
		OK(write(go[1], "x", 1));
		pause();
		_exit(1);
	}
	EQ(read(go[0], &c, 1), 1);
	OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
	nap(300);
	OK(lk(a, F_SETLK, F_WRLCK, 0, 20));
	OK(lk(a, F_SETLK, F_RDLCK, 20, 10));
	ERR(lk(a, F_SETLK, F_WRLCK, 20, 10), EAGAIN);
	kill(pid, SIGKILL);
	end(pid, 8);
	soon(a, F_WRLCK, 0, 0);
}

/* Killed while it waits, or in the moment in which it gets the lock: nothing is left of it. */
static void waiters_killed(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b, i;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		OK(lk(a, F_SETLK, F_WRLCK, 0, 10));
		pid = ops_fork();
		if (!pid) {
			b = ops_open(o("f"), O_RDWR, 0);
			lk(b, F_SETLKW, F_WRLCK, 0, 10);
			pause();
			_exit(1);
		}
		nap(i < 3 ? 300 : 50);
		if (i & 1) {
			OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
			nap(i / 4);
		}
		kill(pid, SIGKILL);
		end(pid, 8);
		OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
		soon(a, F_WRLCK, 0, 0);
		OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
	}
}

static void deadlock(void)
{
	int a = ops_open("f", O_RDWR | O_CREAT, 0644), b, go[2], status;
	pid_t pid;
	char c;

	OK(pipe(go));
	OK(lk(a, F_SETLK, F_WRLCK, 0, 10));
	pid = ops_fork();
	if (!pid) {
		b = ops_open(o("f"), O_RDWR, 0);
		OK(lk(b, F_SETLK, F_WRLCK, 10, 10));
		OK(write(go[1], "x", 1));
		_exit(lk(b, F_SETLKW, F_WRLCK, 0, 10) < 0 ? errno : 0);
	}
	EQ(read(go[0], &c, 1), 1);
	nap(500);
	ERR(lk(a, F_SETLKW, F_RDLCK, 15, 1), EDEADLK);
	OK(lk(a, F_SETLK, F_UNLCK, 0, 0));
	status = end(pid, 8);
	EQ(status, 0);
}

/* Four processes, two on each mount, count in a file. */
static void counting(void)
{
	int i, j, n, fd;
	pid_t pid[4];

	n = 0;
	ops_pwrite(ops_open("n", O_RDWR | O_CREAT, 0644), &n, sizeof(n), 0);
	for (i = 0; i < 4; i++) {
		pid[i] = ops_fork();
		if (pid[i])
			continue;
		fd = ops_open(i & 1 ? o("n") : "n", O_RDWR, 0);
		for (j = 0; j < 40; j++) {
			OK(i & 2 ? lk(fd, F_SETLKW, F_WRLCK, 0, 0) : lk(fd, F_OFD_SETLKW, F_WRLCK, 0, 0));
			EQ(ops_pread(fd, &n, sizeof(n), 0), sizeof(n));
			n++;
			ops_pwrite(fd, &n, sizeof(n), 0);
			OK(i & 2 ? lk(fd, F_SETLK, F_UNLCK, 0, 0) : lk(fd, F_OFD_SETLK, F_UNLCK, 0, 0));
		}
		_exit(0);
	}
	for (i = 0; i < 4; i++)
		EQ(end(pid[i], 60), 0);
	EQ(ops_pread(ops_open("n", O_RDONLY, 0), &n, sizeof(n), 0), sizeof(n));
	EQ(n, 160);
}

/* A map shows what was written under the lock that was just got. */
static void maps_refreshed(void)
{
	int a = ops_open("m", O_RDWR | O_CREAT, 0644), b, i;
	char page[4096];
	volatile char *map;

	memset(page, '0', sizeof(page));
	ops_pwrite(a, page, sizeof(page), 0);
	b = ops_open(o("m"), O_RDONLY, 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, b, 0);
	WANT(map != MAP_FAILED);
	EQ(map[7], '0');
	for (i = 1; i < 6; i++) {
		page[0] = '0' + i;
		OK(flock(a, LOCK_EX));
		ops_pwrite(a, page, 1, 7);
		OK(flock(a, LOCK_UN));
		OK(flock(b, LOCK_SH));
		EQ(map[7], '0' + i);
		OK(flock(b, LOCK_UN));
	}
}

static void directories(void)
{
	int a, b;

	OK(mkdir("d", 0755));
	a = ops_open("d", O_RDONLY | O_DIRECTORY, 0);
	b = ops_open(o("d"), O_RDONLY | O_DIRECTORY, 0);
	OK(flock(a, LOCK_EX));
	ERR(flock(b, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	close(a);
	OK(flock(b, LOCK_EX | LOCK_NB));
}

/* Nobody would break them when another client opens the file; an NFS server hands them on as delegations. */
static void no_leases(void)
{
	int f = ops_open("f", O_RDONLY | O_CREAT, 0644), d;

	OK(mkdir("d", 0755));
	d = ops_open("d", O_RDONLY | O_DIRECTORY, 0);
	ERR(fcntl(f, F_SETLEASE, F_RDLCK), EINVAL);
	ERR(fcntl(f, F_SETLEASE, F_WRLCK), EINVAL);
	ERR(fcntl(d, F_SETLEASE, F_RDLCK), EINVAL);
	close(f);
	close(d);
}

const struct ops_check ops_locks[] = {
	{ "locks: flock", flocks },
	{ "locks: ranges", ranges },
	{ "locks: F_GETLK tells the process", pids },
	{ "locks: of open file descriptions", ofds },
	{ "locks: closing releases", close_releases },
	{ "locks: a signal ends the wait", interrupted },
	{ "locks: waiters are killed", waiters_killed },
	{ "locks: deadlock", deadlock },
	{ "locks: counting in turns", counting },
	{ "locks: maps are fresh", maps_refreshed },
	{ "locks: directories", directories },
	{ "locks: F_SETLEASE is refused", no_leases },
	{ NULL, NULL }
};
