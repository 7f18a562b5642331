/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * far.h - system calls made here or on another machine, where `far serve` (far_main.c) makes them.
 *
 * Each takes a connection first; with NULL it is the system call itself. Results and errno are
 * those of the call. When the connection is lost all calls fail, with ECONNRESET or what send and
 * receive said; EPROTO: the far side does not keep to the protocol. One thread, one call at a time.
 */
#ifndef FAR_H
#define FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FAR_DATA_MAX (32u << 20)	/* of one call, each way */

/*
 * What is asked: this and @len bytes. Both ends are the same program on the same kind of machine.
 */
struct far_ask {
	uint32_t call, len;
	int64_t arg[4];
};

/* What comes back: this and @len bytes. */
struct far_answer {
	int64_t result;		/* -1: see err */
	int32_t err;
	uint32_t len;
};

/* Arguments as those of the system call; names follow, each with its 0. */
enum far_call {
	FAR_OPENAT,		/* dir, flags, mode */
	FAR_CLOSE,		/* fd */
	FAR_PREAD,		/* fd, bytes, offset */
	FAR_PWRITE,		/* fd, -, offset */
	FAR_WRITE,		/* fd */
	FAR_FTRUNCATE,		/* fd, size */
	FAR_FSTAT,		/* fd; comes back: struct stat */
	FAR_FSTATAT,		/* dir, flags; comes back: struct stat */
	FAR_SYMLINKAT,		/* dir; target, name */
	FAR_READLINKAT,		/* dir, bytes */
	FAR_UNLINKAT,		/* dir, flags */
	FAR_RENAMEAT2,		/* dir, dir, flags; from, to */
	FAR_MKDIRAT,		/* dir, mode */
	/*
	 * A command for the shell. Any number of answers with result FAR_OUTPUT and some of its
	 * output, then one with its exit status; there are no other calls on that connection.
	 */
	FAR_RUN,
	FAR_CALLS,
};

#define FAR_OUTPUT (-2)

struct far;

/* To "HOST:PORT". Return: NULL, errno says why (EINVAL: it is not one). */
struct far *far_connect(const char *where);
void far_close_connection(struct far *f);

int far_openat(struct far *f, int dir, const char *name, int flags, mode_t mode);
int far_close(struct far *f, int fd);
ssize_t far_pread(struct far *f, int fd, void *buf, size_t n, off_t off);
ssize_t far_pwrite(struct far *f, int fd, const void *buf, size_t n, off_t off);
ssize_t far_write(struct far *f, int fd, const void *buf, size_t n);
int far_ftruncate(struct far *f, int fd, off_t size);
int far_fstat(struct far *f, int fd, struct stat *st);
int far_fstatat(struct far *f, int dir, const char *name, struct stat *st, int flags);
int far_symlinkat(struct far *f, const char *target, int dir, const char *name);
ssize_t far_readlinkat(struct far *f, int dir, const char *name, char *buf, size_t n);
int far_unlinkat(struct far *f, int dir, const char *name, int flags);
int far_renameat2(struct far *f, int dir, const char *from, int to_dir, const char *to,
		  unsigned int flags);
int far_mkdirat(struct far *f, int dir, const char *name, mode_t mode);

/*
 * Runs @command in the far shell and copies its output to our stdout. Return: the exit status
 * (128 + N: signal N ended it), or -1. The connection is of no further use.
 */
int far_run(struct far *f, const char *command);

/* For both ends. Return: all was sent, or read; errno is 0 when the other end just closed. */
bool far_send(int fd, const void *head, size_t head_len, const void *data, size_t len);
bool far_receive(int fd, void *buf, size_t n);
/* The socket addresses of "HOST:PORT"; for freeaddrinfo. NULL: errno is set. */
struct addrinfo *far_resolve(const char *where, int flags);

#endif
