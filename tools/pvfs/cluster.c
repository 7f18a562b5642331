// SPDX-License-Identifier: GPL-2.0
/*
 * cluster.c - `pvfs start` and `pvfs stop`: the daemons of a one-machine cluster, in the
 * background.
 *
 * Beside pvfs.conf are run/ (process ids) and log/. A process id in a file proves nothing: before
 * anything is done to a process it is held by a pidfd, and its program, configuration and index are
 * compared with what is expected. Where the file says nothing, the lock of the daemon's store does.
 */
#include "tool.h"
#include "run.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROC_EXITING 0x4u	/* of the flags in /proc/PID/stat */
#define ENDING_MS 20000		/* that a killed daemon may take to be gone */

extern char **environ;

/* One of the cluster's daemons. */
struct daemon {
	bool mgr;
	u32 index;
	char name[16];		/* "mgr", "iod3" */
	bool wanted;
	/* being started */
	pid_t pid;
	int ready_fd;		/* -1: not, or not any more */
	off_t log_start;
	bool failed;
};

struct cluster {
	char dir[PATH_MAX];	/* of the configuration, absolute */
	struct pvfs_conf *conf;
	struct daemon *daemons;	/* the iods, then the mgr */
	u32 n;
	int lock_fd;
	char mgr_path[4096], iod_path[4096];
};

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

int sibling(const char *name, char *path, size_t n)
{
	char self[4096], *slash, *dirs, *d, *save = NULL;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int rc = -ENOENT;

	if (len > 0) {
		self[len] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			if (snprintf(path, n, "%s/%s", self, name) < (int)n && !access(path, X_OK))
				return 0;
		}
	}
	dirs = strdup(getenv("PATH") ?: "/usr/sbin:/usr/bin:/sbin:/bin");
	for (d = dirs ? strtok_r(dirs, ":", &save) : NULL; d && rc;
	     d = strtok_r(NULL, ":", &save)) {
		if (snprintf(path, n, "%s/%s", d, name) < (int)n && !access(path, X_OK))
			rc = 0;
	}
	free(dirs);
	return rc;
}

int run_wait(char *const argv[])
{
	int status, err;
	pid_t pid;

	err = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (err) {
		fail("%s: can't be run: %s", argv[0], strerror(err));
		return -err;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	if (WIFSIGNALED(status))
		fail("%s: was ended by signal %d", argv[0], WTERMSIG(status));
	return -EIO;
}

/* ---------------------------------------------------------------- which cluster, which daemons */

static void cluster_close(struct cluster *c)
{
	if (c->lock_fd >= 0)
		close(c->lock_fd);
	if (c->conf)
		pvfs_conf_free(c->conf);
	free(c->daemons);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* One pvfs start or stop at a time, so that none misses what another has just started. */
static int cluster_lock(struct cluster *c)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/run", c->dir);
	if (mkdir(path, 0755) && errno != EEXIST)
		goto bad;
	snprintf(path, sizeof(path), "%s/log", c->dir);
	if (mkdir(path, 0755) && errno != EEXIST)
		goto bad;
	snprintf(path, sizeof(path), "%s/run/lock", c->dir);
	c->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->lock_fd < 0 || flock(c->lock_fd, LOCK_EX))
		goto bad;
	return 0;
bad:
	fail("%s: %s", path, strerror(errno));
	return -errno;
}

/* @args: [DIR] [mgr | iodN]... Return: 0 or the exit status, and the user was told. */
static int cluster_open(struct cluster *c, char **args, int n)
{
	char path[PATH_MAX + 16], err[1024] = "", real[PATH_MAX];
	const char *conf = tool.conf ?: getenv("PVFS_CONF");
	int rc, i;
	u32 k;

	memset(c, 0, sizeof(*c));
	c->lock_fd = -1;
	if (n && (strchr(args[0], '/') || is_dir(args[0]))) {
		snprintf(path, sizeof(path), "%s/pvfs.conf", args[0]);
		args++;
		n--;
	} else {
		snprintf(path, sizeof(path), "%s",
			 conf ?: access("pvfs.conf", F_OK) ? CONF_DEFAULT : "pvfs.conf");
	}
	if (!realpath(path, real)) {
		fail("%s: %s: give the directory of a cluster (pvfs mkfs --dir DIR makes one)",
		     path, strerror(errno));
		return EXIT_FAILURE;
	}
	rc = pvfs_conf_load(real, &c->conf, err, sizeof(err));
	if (rc) {
		fail("%s", *err ? err : strerror(-rc));
		return EXIT_FAILURE;
	}
	*strrchr(real, '/') = '\0';
	snprintf(c->dir, sizeof(c->dir), "%s", real);
	c->n = c->conf->niods + 1;
	c->daemons = calloc(c->n, sizeof(*c->daemons));
	if (!c->daemons) {
		fail("%s", strerror(ENOMEM));
		return EXIT_FAILURE;
	}
	for (k = 0; k < c->n; k++) {
		struct daemon *d = &c->daemons[k];

		d->mgr = k == c->n - 1;
		d->index = k;
		d->ready_fd = -1;
		d->wanted = !n;
		if (d->mgr)
			strcpy(d->name, "mgr");
		else
			snprintf(d->name, sizeof(d->name), "iod%u", k);
	}
	for (i = 0; i < n; i++) {
		for (k = 0; k < c->n && strcmp(c->daemons[k].name, args[i]); k++)
			;
		if (k == c->n)
			return tool_usage("'%s' is neither a directory nor one of mgr, iod0 .. iod%u",
					  args[i], c->n - 2);
		c->daemons[k].wanted = true;
	}
	return cluster_lock(c) ? EXIT_FAILURE : 0;
}

/* ---------------------------------------------------------------- processes */

static const char *file_of(const struct cluster *c, const struct daemon *d, const char *sub,
			   const char *ext, char buf[PATH_MAX + 64])
{
	snprintf(buf, PATH_MAX + 64, "%s/%s/%s.%s", c->dir, sub, d->name, ext);
	return buf;
}

/* The words of its command line, each with its '\\0'. Return: bytes; 0: it has none, as who is ending; -errno. */
static ssize_t command_line(pid_t pid, char *buf, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, room);
	if (n < 0)
		n = -errno;
	close(fd);
	return n;
}

/* Is process @pid this daemon? By its command line: program, configuration, index. */
static bool is_daemon(const struct cluster *c, const struct daemon *d, pid_t pid)
{
	bool conf = false, index = d->mgr;
	const char *p, *base, *prev = "";
	char buf[16384], number[16];
	ssize_t n = command_line(pid, buf, sizeof(buf) - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	base = strrchr(buf, '/') ? strrchr(buf, '/') + 1 : buf;
	if (strcmp(base, d->mgr ? "pvfs-mgr" : "pvfs-iod"))
		return false;
	snprintf(number, sizeof(number), "%u", d->index);
	for (p = buf; p < buf + n; p += strlen(p) + 1) {
		if (!strcmp(prev, "-c") && !strcmp(p, c->conf->path))
			conf = true;
		if (!strcmp(prev, "-n") && !strcmp(p, number))
			index = true;
		prev = p;
	}
	return conf && index;
}

/* The process id at the beginning of @path, or 0. */
static pid_t number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	int pid = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &pid) != 1 || pid <= 1)
		pid = 0;
	fclose(f);
	return pid;
}

/* Was it killed, and is not yet gone? Then it runs no more, and has its files open still. */
static bool is_ending(pid_t pid)
{
	unsigned long long pending;
	unsigned int flags = 0;
	char path[64], line[1024], state = 0, *p;
	bool yes = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* The name, in parentheses, may have any. */
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2)
		yes = state == 'Z' || state == 'X' || (flags & PROC_EXITING);
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = yes ? NULL : fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigPnd: %llx", &pending) == 1 || sscanf(line, "ShdPnd: %llx", &pending) == 1)
			yes |= pending >> (SIGKILL - 1) & 1;
	if (f)
		fclose(f);
	return yes;
}

/* A pidfd of @pid, if that is the daemon, or -ESRCH. */
static int process_hold(const struct cluster *c, const struct daemon *d, pid_t pid)
{
	struct pollfd end = { .events = POLLIN };
	int fd;

	if (!pid)
		return -ESRCH;
	fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -ESRCH;
	/* Who starts one right after kill -9 must neither take it for running nor find its store locked. */
	if (is_ending(pid)) {
		end.fd = fd;
		poll(&end, 1, ENDING_MS);
		close(fd);
		return -ESRCH;
	}
	/* Looked at after the process is held: the number can't become another's any more. */
	if (!is_daemon(c, d, pid)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}

static bool is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool yes;

	if (fd < 0)
		return false;
	yes = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return yes;
}

/*
 * A pidfd of the daemon if it runs, or -ESRCH; its file may be stale. -EBUSY: its store is in use by process @ret_pid,
 * which is none of ours.
 */
static int daemon_hold(const struct cluster *c, const struct daemon *d, pid_t *ret_pid)
{
	const char *store = d->mgr ? c->conf->mgr_store : c->conf->iods[d->index].store;
	char path[PATH_MAX + 64], one;
	int fd;

	*ret_pid = number_in(file_of(c, d, "run", "pid", path));
	fd = process_hold(c, d, *ret_pid);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/pvfs.lock", store);
	*ret_pid = number_in(path);
	fd = process_hold(c, d, *ret_pid);
	if (fd >= 0)
		return fd;
	return *ret_pid && command_line(*ret_pid, &one, 1) && is_locked(path) ? -EBUSY : -ESRCH;
}

/* The file that will have a daemon's number, under another name. Return: a descriptor or -errno. */
static int pid_file_new(const char *tmp)
{
	int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), err;
	ssize_t n;

	if (fd < 0)
		return -errno;
	/* As long as any number: to write that takes no more space. */
	n = write(fd, "0000000000\n", 11);
	if (n == 11)
		return fd;
	err = n < 0 ? -errno : -ENOSPC;
	close(fd);
	unlink(tmp);
	return err;
}

static int pid_file_put(int fd, const char *tmp, const char *path, pid_t pid)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", (int)pid);

	errno = EIO;
	if (pwrite(fd, text, len, 0) != len || ftruncate(fd, len) || rename(tmp, path))
		return -errno;
	return 0;
}

/*
 * Forks and execs the daemon. In the child only async-signal-safe calls: this process has no
 * threads, but may get some.
 */
static int daemon_spawn(struct cluster *c, struct daemon *d)
{
	char log[PATH_MAX + 64], pid[PATH_MAX + 64], pid_tmp[PATH_MAX + 80], number[16];
	char *argv[] = { d->mgr ? c->mgr_path : c->iod_path, "-c", c->conf->path, "--ready-fd", "3",
			 "-l", log, d->mgr ? NULL : "-n", number, NULL };
	int fds[2], log_fd, null_fd = -1, pid_fd, err = 0;
	struct stat st;

	snprintf(number, sizeof(number), "%u", d->index);
	log_fd = open(file_of(c, d, "log", "log", log), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		      0640);
	if (log_fd < 0 || fstat(log_fd, &st)) {
		fail("%s: %s", log, strerror(errno));
		return -errno;
	}
	d->log_start = st.st_size;
	snprintf(pid_tmp, sizeof(pid_tmp), "%s.new", file_of(c, d, "run", "pid", pid));
	pid_fd = pid_file_new(pid_tmp);
	if (pid_fd < 0) {
		err = pid_fd;
		goto out;
	}
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd < 0 || pipe2(fds, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	d->pid = fork();
	if (!d->pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		setsid();
		if (chdir("/") || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 ||
		    dup2(log_fd, 2) < 0)
			_exit(126);
		if (fds[1] == 3)
			fcntl(3, F_SETFD, 0);
		else if (dup2(fds[1], 3) < 0)
			_exit(126);
		close_range(4, ~0u, 0);
		execv(argv[0], argv);
		_exit(127);
	}
	if (d->pid < 0)
		err = -errno;
	close(fds[1]);
	if (err)
		close(fds[0]);
	else
		d->ready_fd = fds[0];
	if (!err)
		err = pid_file_put(pid_fd, pid_tmp, pid, d->pid);
	/* Nobody would know of it. */
	if (err && d->pid > 0) {
		kill(d->pid, SIGKILL);
		waitpid(d->pid, NULL, 0);
		close(d->ready_fd);
		d->ready_fd = -1;
	}
out:
	if (err && pid_fd >= 0)
		unlink(pid_tmp);
	if (pid_fd >= 0)
		close(pid_fd);
	if (null_fd >= 0)
		close(null_fd);
	close(log_fd);
	if (err)
		fail("%s: can't be started: %s", d->name, strerror(-err));
	return err;
}

/* What a daemon that did not come up wrote since it was started, to stderr. */
static void show_log(const struct cluster *c, const struct daemon *d)
{
	char path[PATH_MAX + 64], line[1024];
	FILE *f = fopen(file_of(c, d, "log", "log", path), "re");
	int lines = 0;

	if (!f)
		return;
	if (!fseeko(f, d->log_start, SEEK_SET)) {
		while (lines++ < 20 && fgets(line, sizeof(line), f))
			fprintf(stderr, "  %s", line);
	}
	fclose(f);
}

/* A byte from a daemon means that it serves; the end without one, that it has died. */
static void ready_event(struct cluster *c, struct daemon *d)
{
	char byte;
	ssize_t n = read(d->ready_fd, &byte, 1);
	int status;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	close(d->ready_fd);
	d->ready_fd = -1;
	if (n == 1)
		return;
	d->failed = true;
	waitpid(d->pid, &status, 0);
	fail("%s: did not start; %s/log/%s.log says:", d->name, c->dir, d->name);
	show_log(c, d);
}

/* Return: 0 when all that were started serve. */
static int wait_ready(struct cluster *c, u64 deadline)
{
	struct pollfd *p = calloc(c->n + 1, sizeof(*p));
	u32 i, left;
	int rc = 0;
	u64 now;

	if (!p)
		return -ENOMEM;
	for (;;) {
		for (i = left = 0; i < c->n; i++) {
			p[i] = (struct pollfd){ .fd = c->daemons[i].ready_fd, .events = POLLIN };
			left += p[i].fd >= 0;
			if (c->daemons[i].failed)
				rc = -EIO;
		}
		now = now_ms();
		if (!left || now >= deadline)
			break;
		if (poll(p, c->n, deadline - now) < 0 && errno != EINTR)
			break;
		for (i = 0; i < c->n; i++) {
			if (p[i].fd >= 0 && p[i].revents)
				ready_event(c, &c->daemons[i]);
		}
	}
	for (i = 0; i < c->n; i++) {
		if (c->daemons[i].ready_fd >= 0) {
			fail("%s: is not ready yet; see %s/log/%s.log", c->daemons[i].name, c->dir,
			     c->daemons[i].name);
			rc = -ETIMEDOUT;
		}
	}
	free(p);
	return rc;
}

/* ---------------------------------------------------------------- stop */

/* Signals one daemon and waits. Return: 0 (it is gone; *@ret_ran: it was there), or -ETIMEDOUT. */
static int daemon_stop(struct cluster *c, struct daemon *d, int sig, u64 deadline, bool *ret_ran)
{
	char path[PATH_MAX + 64];
	struct pollfd p = { .events = POLLIN };
	pid_t pid = 0;
	int rc = 0;
	u64 now;

	p.fd = daemon_hold(c, d, &pid);
	*ret_ran = p.fd >= 0;
	if (p.fd == -EBUSY) {
		fail("%s: runs as process %d, which is not as pvfs start runs it: stop it as it was started, or kill %d",
		     d->name, (int)pid, (int)pid);
		return p.fd;
	}
	if (p.fd < 0) {
		unlink(file_of(c, d, "run", "pid", path));	/* stale, if it is there at all */
		return 0;
	}
	if (syscall(SYS_pidfd_send_signal, p.fd, sig, NULL, 0) && errno != ESRCH) {
		rc = -errno;
		fail("%s: process %d can't be signalled: %s", d->name, (int)pid, strerror(errno));
		goto out;
	}
	for (;;) {
		now = now_ms();
		if (poll(&p, 1, now < deadline ? deadline - now : 0) > 0)
			break;
		if (now_ms() >= deadline) {
			fail("%s: process %d does not end; --kill ends it at once", d->name,
			     (int)pid);
			rc = -ETIMEDOUT;
			goto out;
		}
	}
	waitpid(pid, NULL, WNOHANG);	/* ours when a start went wrong */
	unlink(file_of(c, d, "run", "pid", path));
out:
	close(p.fd);
	return rc;
}

/* The mgr first: it has work for the iods until its end. */
static int stop_wanted(struct cluster *c, int sig, u64 deadline, u32 *ret_stopped)
{
	int rc = 0, one;
	bool ran;
	u32 i;

	*ret_stopped = 0;
	for (i = c->n; i--;) {
		if (!c->daemons[i].wanted)
			continue;
		one = daemon_stop(c, &c->daemons[i], sig, deadline, &ran);
		rc = rc ?: one;
		*ret_stopped += ran && !one;
	}
	return rc;
}

int cmd_stop(int argc, char **argv)
{
	enum { WAIT = 1, KILL };
	static const struct option longopts[] = { { "wait", required_argument, NULL, WAIT },
						  { "kill", no_argument, NULL, KILL },
						  TOOL_LONG };
	unsigned long wait = 60;
	int c, rc, sig = SIGTERM;
	struct cluster cl;
	u32 stopped;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		if (c == WAIT) {
			if (parse_number(optarg, 0, 86400, &wait))
				return EXIT_USAGE;
		} else if (c == KILL) {
			sig = SIGKILL;
		} else {
			rc = tool_option(c);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	rc = cluster_open(&cl, argv + optind, argc - optind);
	if (!rc && stop_wanted(&cl, sig, now_ms() + wait * 1000, &stopped))
		rc = EXIT_FAILURE;
	else if (!rc)
		printf("%s: %u daemons stopped\n", cl.dir, stopped);
	cluster_close(&cl);
	return rc;
}

/* ---------------------------------------------------------------- start */

static int start_wanted(struct cluster *c, u64 deadline)
{
	u32 i, started = 0, running = 0, stopped;
	int rc = 0, fd;
	pid_t pid;

	if (sibling("pvfs-mgr", c->mgr_path, sizeof(c->mgr_path)) ||
	    sibling("pvfs-iod", c->iod_path, sizeof(c->iod_path))) {
		fail("pvfs-mgr and pvfs-iod are neither beside pvfs nor in PATH");
		return -ENOENT;
	}
	for (i = 0; i < c->n && !rc; i++) {
		struct daemon *d = &c->daemons[i];

		if (!d->wanted)
			continue;
		fd = daemon_hold(c, d, &pid);
		if (fd >= 0) {
			close(fd);
			running++;
			d->wanted = false;	/* not ours to stop if another one fails */
			continue;
		}
		rc = daemon_spawn(c, d);
		started += !rc;
	}
	rc = wait_ready(c, deadline) ?: rc;
	if (rc) {
		stop_wanted(c, SIGTERM, now_ms() + 35000, &stopped);
		return rc;
	}
	printf("%s: %u daemons started", c->dir, started);
	if (running)
		printf(", %u ran already", running);
	printf(". Manager: %s, volume: %s, key: %s\n", c->conf->mgr_address, c->conf->name,
	       c->conf->cluster_key);
	return 0;
}

int cmd_start(int argc, char **argv)
{
	enum { WAIT = 1 };
	static const struct option longopts[] = { { "wait", required_argument, NULL, WAIT },
						  TOOL_LONG };
	unsigned long wait = 60;
	struct cluster cl;
	int c, rc;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		if (c == WAIT) {
			if (parse_number(optarg, 1, 86400, &wait))
				return EXIT_USAGE;
		} else {
			rc = tool_option(c);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	rc = cluster_open(&cl, argv + optind, argc - optind);
	if (!rc && start_wanted(&cl, now_ms() + wait * 1000))
		rc = EXIT_FAILURE;
	cluster_close(&cl);
	return rc;
}
