/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * free_port.h - a port for a server of a test. Not one of those that the kernel gives to connections:
 * a server that is stopped and started again could not have it back.
 */
#ifndef PVFS_FREE_PORT_H
#define PVFS_FREE_PORT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Return: a port of 127.0.0.1 that nobody has now, or 0. */
static inline unsigned int free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned int tries, port, r;
	int fd, bound;

	for (tries = 0; tries < 1000; tries++) {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return 0;
		port = 10000 + r % 22000;
		a.sin_port = htons(port);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bound = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));
		if (fd >= 0)
			close(fd);
		if (bound)
			return port;
	}
	return 0;
}

#endif
