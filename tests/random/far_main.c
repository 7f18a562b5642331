// SPDX-License-Identifier: GPL-2.0-only
/*
 * far_main.c - the far end of far.h, and commands for it.
 *
 *	far serve HOST:PORT		serves connections there, a process each, until SIGTERM; the
 *					connections that it then has may end first
 *	far run HOST:PORT COMMAND...	runs the words there as bash would, stdin empty; prints stdout
 *					and stderr, exits with the status; 255 when that failed
 *
 * A command ends when nobody has its output open any more; it is killed with all its processes when
 * who asked goes away. It finds the server's process in FAR_SERVER.
 *
 * Whoever reaches the port is root here. So it serves in the test guest only.
 */
#include "far.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GOODBYE_S 20	/* for connections to end in */

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	fputs("far: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(255);
}

/* ------------------------------------------------------------------ calls */

static const struct {
	int names;		/* that come with it */
	bool data;		/* bytes come with it */
	bool sized;		/* the second argument is how many bytes are to come back */
} shape[FAR_CALLS] = {
	[FAR_OPENAT] = { .names = 1 },
	[FAR_PREAD] = { .sized = true },
	[FAR_PWRITE] = { .data = true },
	[FAR_WRITE] = { .data = true },
	[FAR_FSTATAT] = { .names = 1 },
	[FAR_SYMLINKAT] = { .names = 2 },
	[FAR_READLINKAT] = { .names = 1, .sized = true },
	[FAR_UNLINKAT] = { .names = 1 },
	[FAR_RENAMEAT2] = { .names = 2 },
	[FAR_MKDIRAT] = { .names = 1 },
	[FAR_RUN] = { .names = 1 },
};

/* Is @q with @data a call that can be made? Then @name[] point into @data. */
static bool fits(const struct far_ask *q, const char *data, const char *name[2])
{
	size_t left = q->len;
	int i;

	if (shape[q->call].sized && (q->arg[1] < 0 || q->arg[1] > FAR_DATA_MAX))
		return false;
	if (shape[q->call].data)
		return true;
	for (i = 0; i < shape[q->call].names; i++) {
		const char *end = memchr(data, 0, left);

		if (!end)
			return false;
		name[i] = data;
		left -= end + 1 - data;
		data = end + 1;
	}
	return !left;
}

/*
 * What comes back goes to @back, and its length to @ret_len. Return: -1, and errno, or the result.
 */
static int64_t make_call(const struct far_ask *q, const char *data, const char *const name[2],
			 void *back, uint32_t *ret_len)
{
	const int64_t *a = q->arg;
	int64_t n;

	switch (q->call) {
	case FAR_OPENAT:
		return openat(a[0], name[0], a[1], (mode_t)a[2]);
	case FAR_CLOSE:
		return close(a[0]);
	case FAR_PWRITE:
		return pwrite(a[0], data, q->len, a[2]);
	case FAR_WRITE:
		return write(a[0], data, q->len);
	case FAR_FTRUNCATE:
		return ftruncate(a[0], a[1]);
	case FAR_SYMLINKAT:
		return symlinkat(name[0], a[0], name[1]);
	case FAR_UNLINKAT:
		return unlinkat(a[0], name[0], a[1]);
	case FAR_RENAMEAT2:
		return renameat2(a[0], name[0], a[1], name[1], a[2]);
	case FAR_MKDIRAT:
		return mkdirat(a[0], name[0], (mode_t)a[1]);
	case FAR_PREAD:
		n = pread(a[0], back, a[1], a[2]);
		break;
	case FAR_READLINKAT:
		n = readlinkat(a[0], name[0], back, a[1]);
		break;
	case FAR_FSTAT:
		n = fstat(a[0], back) < 0 ? -1 : (int64_t)sizeof(struct stat);
		break;
	case FAR_FSTATAT:
		n = fstatat(a[0], name[0], back, a[1]) < 0 ? -1 : (int64_t)sizeof(struct stat);
		break;
	default:
		errno = ENOSYS;
		return -1;
	}
	*ret_len = n > 0 ? n : 0;
	return n;
}

/* ------------------------------------------------------------------ commands */

static void answer(int sock, int64_t result, int err, const void *data, uint32_t len)
{
	struct far_answer a = { .result = result, .err = err, .len = len };

	if (!far_send(sock, &a, sizeof(a), data, len))
		exit(0);
}

/* @command in a session of its own, so that it can be killed with all that it started. */
static pid_t start_command(const char *command, int out)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (dup2(open("/dev/null", O_RDONLY), 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(126);
	execl("/bin/bash", "bash", "-c", command, NULL);
	_exit(127);
}

static void run_command(int sock, const char *command)
{
	struct pollfd p[2];
	int out[2], status;
	char buf[32768];
	ssize_t n;
	pid_t pid;

	signal(SIGCHLD, SIG_DFL);
	if (pipe2(out, O_CLOEXEC) < 0)
		return answer(sock, -1, errno, NULL, 0);
	pid = start_command(command, out[1]);
	close(out[1]);
	if (pid < 0)
		return answer(sock, -1, errno, NULL, 0);
	p[0] = (struct pollfd){ .fd = out[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = sock, .events = POLLIN | POLLRDHUP };
	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		/* Nothing is to come from there but the end. */
		if (p[1].revents) {
			kill(-pid, SIGKILL);
			exit(0);
		}
		if (!p[0].revents)
			continue;
		n = read(out[0], buf, sizeof(buf));
		if (n <= 0)
			break;
		answer(sock, FAR_OUTPUT, 0, buf, n);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	answer(sock, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), 0, NULL, 0);
}

/* ------------------------------------------------------------------ serve */

static void *room(void)
{
	void *mem = mmap(NULL, FAR_DATA_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (mem == MAP_FAILED)
		die("no memory");
	return mem;
}

/* One connection, to its end. */
static void __attribute__((noreturn)) serve_one(int sock)
{
	char *data = room(), *back = room();
	const char *name[2] = { NULL };
	struct far_ask q;
	uint32_t len;
	int64_t result;

	while (far_receive(sock, &q, sizeof(q))) {
		if (q.call >= FAR_CALLS || q.len > FAR_DATA_MAX)
			die("bad call");
		if (!far_receive(sock, data, q.len))
			break;
		if (!fits(&q, data, name))
			die("call %u does not fit", q.call);
		if (q.call == FAR_RUN) {
			run_command(sock, name[0]);
			break;
		}
		len = 0;
		result = make_call(&q, data, name, back, &len);
		answer(sock, result, result < 0 ? errno : 0, back, len);
	}
	exit(0);
}

static volatile sig_atomic_t ending;

static void on_term(int sig)
{
	ending = 1;
}

static int serve(const char *where)
{
	struct sigaction term = { .sa_handler = on_term }, none = { .sa_handler = SIG_IGN };
	struct addrinfo *ai = far_resolve(where, AI_PASSIVE);
	int sock, one = 1;
	sigset_t set, before;
	struct pollfd p;
	char number[24];

	if (!getenv("PVFS_GUEST"))
		die("serves in the test guest only: a shell for everybody");
	if (!ai)
		die("'%s' is not HOST:PORT", where);
	sock = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(sock, ai->ai_addr, ai->ai_addrlen) < 0 || listen(sock, 64) < 0)
		die("%s: %s", where, strerror(errno));
	freeaddrinfo(ai);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("FAR_SERVER", number, 1);
	/* It arrives in ppoll() only. Children that end leave nothing to wait for. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGCHLD, &none, NULL);
	p = (struct pollfd){ .fd = sock, .events = POLLIN };
	while (!ending) {
		int conn;

		if (ppoll(&p, 1, NULL, &before) < 0)
			continue;
		conn = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0)
			continue;
		setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		switch (fork()) {
		case 0:
			close(sock);
			signal(SIGTERM, SIG_DFL);
			sigprocmask(SIG_SETMASK, &before, NULL);
			serve_one(conn);
		case -1:
			die("fork: %s", strerror(errno));
		}
		close(conn);
	}
	close(sock);
	alarm(GOODBYE_S);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}

/* ------------------------------------------------------------------ run */

static int run(const char *where, char **words, int n)
{
	char *command = NULL;
	struct far *f;
	size_t size;
	FILE *text = open_memstream(&command, &size);
	int i, status;

	for (i = 0; text && i < n; i++)
		fprintf(text, "%s%s", i ? " " : "", words[i]);
	if (!text || fclose(text))
		die("no memory");
	f = far_connect(where);
	if (!f)
		die("%s: %s", where, strerror(errno));
	status = far_run(f, command);
	if (status < 0)
		die("%s: %s", where, strerror(errno));
	return status;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc > 3 && !strcmp(argv[1], "run"))
		return run(argv[2], argv + 3, argc - 3);
	fprintf(stderr, "usage: far serve HOST:PORT\n       far run HOST:PORT COMMAND...\n");
	return 2;
}
