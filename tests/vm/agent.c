// SPDX-License-Identifier: GPL-2.0
/*
 * Process 1 of the test guest: runs one command, carries its output and its
 * exit status to the host, reaps orphans. tests/vm/initramfs.sh builds it
 * (static) and its init switches to it; nothing else calls it.
 *
 * The command's stdout and stderr are one pipe, so that order is kept,
 * /dev/stdout can be opened again, and a daemon left behind that still holds it
 * does not keep the guest alive. What arrives goes to the host in frames over a
 * virtio-serial port (tests/vm/run has the other end):
 *
 *	D <n>\n<n bytes>	output
 *	X <status>\n		the command ended, all its output was sent
 *
 * With a tty as argument (--shell) the command gets that instead of the pipe.
 * The agent then waits: the host ends the guest, there is nothing to save.
 * A byte from the host means "time is up": log what every blocked task does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number of the device depends on what else the guest has. */
#define PORT	"/dev/vport*p1"

/* Output chunk; virtio-serial takes 32 KiB at a time. */
#define CHUNK	32768

/* After the end of the command, output of those it left behind is sent up to
 * this many bytes: one that never stops writing must not keep the guest up.
 */
#define DRAIN_MAX	(1 << 20)

static int port = -1;

/* Says why in the kernel log, where the host looks, and waits for the host to
 * end the guest.
 */
static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	int fd, n;

	n = snprintf(buf, sizeof(buf), "pvfs-vm: agent: ");
	va_start(ap, fmt);
	vsnprintf(buf + n, sizeof(buf) - n - 1, fmt, ap);
	va_end(ap);
	n = strlen(buf);
	buf[n++] = '\n';
	fd = open("/dev/kmsg", O_WRONLY);
	if (fd < 0 || write(fd, buf, n) < 0)
		perror("/dev/kmsg");
	if (port >= 0)
		dprintf(port, "E %s", buf);
	for (;;)
		pause();
}

/* One line into the kernel log. One write() makes one record. */
static void log_line(const char *text, int n)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char buf[128];
	int len = snprintf(buf, sizeof(buf), "<6>pvfs-vm: %s %d\n", text, n);

	if (fd < 0 || write(fd, buf, len) != len)
		die("cannot write /dev/kmsg: %s", strerror(errno));
	close(fd);
}

static int open_port(void)
{
	glob_t g;
	int fd;

	if (glob(PORT, 0, NULL, &g) || g.gl_pathc != 1)
		die("%zu ports %s, wanted 1", g.gl_pathc, PORT);
	fd = open(g.gl_pathv[0], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("cannot open %s: %s", g.gl_pathv[0], strerror(errno));
	globfree(&g);
	return fd;
}

static void write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			die("cannot write to the host: %s", strerror(errno));
		p += r;
		n -= r;
	}
}

/* Moves what can be read now, at most one chunk. Returns what read() did. */
static ssize_t forward(int from)
{
	char buf[32 + CHUNK];
	ssize_t n = read(from, buf + 32, CHUNK);
	int h;

	if (n > 0) {
		/* Header and data in one write, header right before the data. */
		char head[32];

		h = snprintf(head, sizeof(head), "D %zd\n", n);
		memcpy(buf + 32 - h, head, h);
		write_all(port, buf + 32 - h, h + n);
	}
	return n;
}

/*
 * Reads the command file: NUL-terminated strings, first the working directory,
 * then the arguments. Returns a NULL-terminated vector, never freed.
 */
static char **read_command(const char *path)
{
	struct stat st;
	char *buf, *p, **argv;
	size_t got = 0, n = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		die("cannot open %s: %s", path, strerror(errno));
	buf = malloc(st.st_size + 1);
	if (!buf)
		die("no memory");
	while (got < (size_t)st.st_size) {
		ssize_t r = read(fd, buf + got, st.st_size - got);

		if (r <= 0)
			die("cannot read %s: %s", path, strerror(errno));
		got += r;
	}
	close(fd);
	if (!got || buf[got - 1])
		die("%s is cut off", path);
	for (p = buf; p < buf + got; p += strlen(p) + 1)
		n++;
	if (n < 2)
		die("%s holds no command", path);
	argv = calloc(n + 1, sizeof(*argv));
	if (!argv)
		die("no memory");
	for (n = 0, p = buf; p < buf + got; p += strlen(p) + 1)
		argv[n++] = p;
	return argv;
}

/* In the child: never returns. Errors go where the command's output goes. */
static void __attribute__((noreturn)) run_command(char **argv, int out, const char *tty)
{
	const char *dir = argv[0];
	sigset_t none;
	int in, err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (tty) {
		in = open(tty, O_RDWR);
		if (in < 0 || ioctl(in, TIOCSCTTY, 0) < 0)
			die("%s: %s", tty, strerror(errno));
		out = in;
	} else {
		in = open("/dev/null", O_RDONLY);
	}
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	closefrom(3);
	if (chdir(dir) < 0) {
		dprintf(2, "vm/run: guest: cannot enter %s: %s\n", dir, strerror(errno));
		_exit(126);
	}
	argv++;
	execvp(argv[0], argv);
	err = errno;
	dprintf(2, "vm/run: guest: cannot run %s: %s\n", argv[0], strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

static void set_limit(int what, rlim_t soft, rlim_t hard)
{
	struct rlimit r = { soft, hard };

	if (setrlimit(what, &r) < 0)
		die("setrlimit %d: %s", what, strerror(errno));
}

/* Reaps whoever ended. Returns the exit status of @child if it did, else -1. */
static int reap(pid_t child)
{
	int status, ret = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != child)
			continue;
		ret = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return ret;
}

int main(int argc, char **argv)
{
	const char *tty = argc > 2 ? argv[2] : NULL;
	int out[2], sigs, status = -1;
	struct signalfd_siginfo si;
	size_t drained = 0;
	char **command;
	sigset_t chld;
	pid_t child;
	char c;

	if (argc < 2)
		die("usage: agent COMMAND-FILE [TTY]");
	port = open_port();
	command = read_command(argv[1]);
	set_limit(RLIMIT_NOFILE, 1024, 524288);
	set_limit(RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigs = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigs < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("cannot set up: %s", strerror(errno));

	child = fork();
	if (child < 0)
		die("cannot fork: %s", strerror(errno));
	if (!child)
		run_command(command, out[1], tty);
	/* The write end stays open: the end is told by the child, not by EOF. */
	fcntl(out[0], F_SETFL, O_NONBLOCK);

	while (status < 0) {
		struct pollfd fds[] = {
			{ .fd = out[0], .events = POLLIN },
			{ .fd = sigs, .events = POLLIN },
			{ .fd = port, .events = POLLIN },
		};

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		if (fds[0].revents & POLLIN)
			forward(out[0]);
		if (fds[2].revents & POLLIN && read(port, &c, 1) == 1) {
			int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

			log_line("time is up, blocked tasks follow; agent is", getpid());
			if (fd >= 0)
				write_all(fd, "w", 1);
			log_line("blocked tasks end; agent is", getpid());
			if (fd >= 0)
				close(fd);
		}
		if (fds[1].revents & POLLIN) {
			while (read(sigs, &si, sizeof(si)) > 0)
				;
			status = reap(child);
		}
	}

	while (drained < DRAIN_MAX) {
		ssize_t n = forward(out[0]);

		if (n <= 0)
			break;
		drained += n;
	}
	/* The host waits for this line, so that the kernel log is complete. */
	log_line("command ended with status", status);
	dprintf(port, "X %d\n", status);
	for (;;) {
		pause();
		reap(0);
	}
}
