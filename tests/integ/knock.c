// SPDX-License-Identifier: GPL-2.0
/*
 * knock.c - a crowd at a server's door, for crowd.t: connections that never prove themselves.
 *
 *   knock PORT N     keeps N connections to 127.0.0.1:PORT, a third of which send a byte now and
 *                    then; those that are closed are made anew
 *
 * Prints a line when all of them were made for the first time, and how many it made in all when it
 * is ended (SIGTERM).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUND_MS 20

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	stop = 1;
}

static int knock(const struct sockaddr_in *sin)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)sin, sizeof(*sin)) && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Closed by the other end? */
static bool gone(const struct pollfd *p)
{
	char c;

	if (p->revents & (POLLERR | POLLHUP))
		return true;
	return p->revents & POLLIN && recv(p->fd, &c, 1, 0) <= 0 && errno != EAGAIN;
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int n = argc > 2 ? atoi(argv[2]) : 0, i, made;
	struct sigaction sa = { .sa_handler = on_term };
	struct pollfd *p;
	struct rlimit rl;
	unsigned long total = 0, told = 0, round;

	if (argc != 3 || n < 1) {
		fprintf(stderr, "Usage: knock PORT N\n");
		return 2;
	}
	sin.sin_port = htons(atoi(argv[1]));
	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &sa, NULL);
	p = calloc(n, sizeof(*p));
	if (!p)
		return 1;
	for (i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	for (round = 0; !stop; round++) {
		for (i = made = 0; i < n; i++) {
			if (p[i].fd < 0) {
				p[i].fd = knock(&sin);
				made += p[i].fd >= 0;
			} else if (i % 3 == 0 && round % 10 == 0) {
				send(p[i].fd, "P", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			}
		}
		total += made;
		if (!told && total >= (unsigned long)n) {
			printf("ready\n");
			fflush(stdout);
			told = 1;
		}
		if (poll(p, n, ROUND_MS) < 0 && errno != EINTR)
			break;
		for (i = 0; i < n; i++) {
			if (p[i].fd >= 0 && gone(&p[i])) {
				close(p[i].fd);
				p[i].fd = -1;
			}
		}
	}
	free(p);
	printf("%lu\n", total);
	return 0;
}
