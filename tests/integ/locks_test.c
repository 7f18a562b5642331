// SPDX-License-Identifier: LGPL-2.1
/*
 * locks_test.c - locks through libpvfs or the kernel, for locks.t and pvfsd_locks.t: does the
 * commands of its standard input, one a line, and prints one answer for each.
 *
 *	locks_test MGR VOLUME KEYFILE PATH
 *	locks_test PATH
 *
 *	lock TYPE START LEN [MS]	TYPE r, w or u; waits so long (0: not at all, -1: for ever)
 *	ofd TYPE START LEN [MS]		the same for the open file
 *	flock TYPE [MS]
 *	get TYPE START LEN		prints the lock that is in the way
 *	write TEXT, read		at the start of the file
 *	reopen				closes and opens again
 *	quit
 *	count N				N times: lock, add 1 to the number in the file, unlock
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <unistd.h>
#include "lib/pvfs.h"

static struct pvfs_file *f;
static int fd = -1;	/* through the kernel */

static const char *name_of(int err)
{
	switch (err) {
	case 0:
		return "ok";
	case -EAGAIN:
		return "EAGAIN";
	case -EDEADLK:
		return "EDEADLK";
	case -ETIMEDOUT:
		return "ETIMEDOUT";
	case -ENOLCK:
		return "ENOLCK";
	case -EIO:
		return "EIO";
	default:
		return strerror(-err);
	}
}

static struct flock lock_of(const char *type, long long start, long long len)
{
	return (struct flock){
		.l_type = *type == 'r' ? F_RDLCK : *type == 'w' ? F_WRLCK : F_UNLCK,
		.l_whence = SEEK_SET, .l_start = start, .l_len = len,
	};
}

static void ring(int sig)
{
}

/* A wait through the kernel ends by a signal, which comes again in case it came too early. */
static void timer(int ms)
{
	struct itimerval t = { .it_value = { ms / 1000, ms % 1000 * 1000 }, .it_interval = { 0, 100000 } };
	struct sigaction sa = { .sa_handler = ring };

	if (ms <= 0)
		t = (struct itimerval){ 0 };
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

static int answer(int rc)
{
	int err = rc ? -errno : 0;

	timer(0);
	return err == -EINTR ? -ETIMEDOUT : err;
}

static int do_lock(int cmd, struct flock *fl, int ms)
{
	if (fd < 0)
		return pvfs_lock(f, cmd, fl, ms);
	timer(ms);
	return answer(fcntl(fd, cmd, fl));
}

static int do_flock(int op, int ms)
{
	if (fd < 0)
		return pvfs_flock(f, op, ms);
	timer(ms);
	return answer(flock(fd, op));
}

static ssize_t do_read(char *buf, size_t n)
{
	return fd < 0 ? pvfs_pread(f, buf, n, 0) : pread(fd, buf, n, 0);
}

static ssize_t do_write(const char *buf, size_t n)
{
	return fd < 0 ? pvfs_pwrite(f, buf, n, 0) : pwrite(fd, buf, n, 0);
}

static int count(long n)
{
	struct flock on = lock_of("w", 0, 0), off = lock_of("u", 0, 0);
	char buf[32];
	int err = 0;

	while (n-- && !err) {
		err = do_lock(F_SETLKW, &on, -1);
		memset(buf, 0, sizeof(buf));
		if (!err && do_read(buf, 15) < 0)
			err = -EIO;
		snprintf(buf, sizeof(buf), "%015ld", strtol(buf, NULL, 10) + 1);
		if (!err && do_write(buf, 15) != 15)
			err = -EIO;
		err = err ?: do_lock(F_SETLK, &off, 0);
	}
	return err;
}

static int command(struct pvfs_fs *fs, const char *path, const char *line)
{
	char what[16] = "", type[64] = "";
	long long start = 0, len = 0;
	struct flock fl;
	char buf[65] = "";
	int ms = 0, err;
	ssize_t n;

	sscanf(line, "%15s %63s %lld %lld %d", what, type, &start, &len, &ms);
	fl = lock_of(type, start, len);
	if (!strcmp(what, "lock"))
		return do_lock(ms ? F_SETLKW : F_SETLK, &fl, ms);
	if (!strcmp(what, "ofd"))
		return do_lock(ms ? F_OFD_SETLKW : F_OFD_SETLK, &fl, ms);
	if (!strcmp(what, "flock"))
		return do_flock((*type == 'r' ? LOCK_SH : *type == 'w' ? LOCK_EX : LOCK_UN) | (start ? 0 : LOCK_NB),
				start);
	if (!strcmp(what, "get")) {
		err = do_lock(F_GETLK, &fl, 0);
		if (!err)
			printf("%s %lld %lld %d ", fl.l_type == F_RDLCK ? "r" : fl.l_type == F_WRLCK ? "w" : "u",
			       (long long)fl.l_start, (long long)fl.l_len, fl.l_type == F_UNLCK ? 0 : fl.l_pid);
		return err;
	}
	if (!strcmp(what, "write")) {
		n = do_write(type, strlen(type));
		return n < 0 ? n : 0;
	}
	if (!strcmp(what, "read")) {
		n = do_read(buf, 64);
		printf("%s ", buf);
		return n < 0 ? n : 0;
	}
	if (!strcmp(what, "reopen") && fd >= 0) {
		close(fd);
		fd = open(path, O_RDWR);
		return fd < 0 ? -errno : 0;
	}
	if (!strcmp(what, "reopen")) {
		err = pvfs_close(f);
		return err ?: pvfs_open(fs, path, O_RDWR, 0, &f);
	}
	if (!strcmp(what, "count"))
		return count(atol(type));
	return -EINVAL;
}

static void commands(struct pvfs_fs *fs, const char *path)
{
	char line[256];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n")) {
		printf("%s\n", name_of(command(fs, path, line)));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_fs *fs;
	char err[256];
	int rc;

	if (argc == 2) {
		fd = open(argv[1], O_RDWR | O_CREAT, 0644);
		if (fd < 0) {
			perror(argv[1]);
			return 1;
		}
		commands(NULL, argv[1]);
		return 0;
	}
	if (argc != 5)
		return 2;
	o.mgr = argv[1];
	o.volume = argv[2];
	o.key_file = argv[3];
	if (pvfs_mount(&o, &fs, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	rc = pvfs_open(fs, argv[4], O_RDWR | O_CREAT, 0644, &f);
	if (rc) {
		fprintf(stderr, "%s: %s\n", argv[4], strerror(-rc));
		return 1;
	}
	commands(fs, argv[4]);
	pvfs_close(f);
	return pvfs_umount(fs) != 0;
}
