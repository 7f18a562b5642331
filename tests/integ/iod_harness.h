/* SPDX-License-Identifier: GPL-2.0 */
/*
 * iod_harness.h - one real pvfs-iod on a loopback port, and requests to it, for tests and
 * benchmarks.
 *
 * Included by one source file per program. Failing calls of the harness itself end the program.
 */
#ifndef PVFS_IOD_HARNESS_H
#define PVFS_IOD_HARNESS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/storeid.h"
#include "tests/free_port.h"
#include "transport/transport.h"

#define DIE(...) do { \
		fprintf(stderr, "Bail out! " __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(99); \
	} while (0)

struct harness {
	char dir[64], conf[96], store[96];
	const char *bin;
	u16 port;
	pid_t pid;
	u8 uuid[PVFS_UUID_LEN];
	struct pvfs_key cluster_key, server_key;
	struct pvfs_engine *engine;
};

static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static inline void make_key(const char *path, struct pvfs_key *key, u8 fill)
{
	const char *why;
	FILE *f;
	int i;

	umask(077);
	f = fopen(path, "w");
	if (!f)
		DIE("%s", path);
	for (i = 0; i < PVFS_KEY_LEN; i++)
		fprintf(f, "%02x", (u8)(fill + 37 * i));
	fputc('\n', f);
	fclose(f);
	if (pvfs_key_load(path, key, &why))
		DIE("%s: %s", path, why);
}

/* Writes the configuration; @extra goes into the group iod. */
static inline void write_conf(struct harness *h, const char *extra)
{
	char uuid[37];
	FILE *f = fopen(h->conf, "w");

	if (!f)
		DIE("%s", h->conf);
	pvfs_uuid_text(h->uuid, uuid);
	fprintf(f, "volume: { name = \"test\"; uuid = \"%s\"; };\n"
		"mgr: { address = \"127.0.0.1:1\"; store = \"mgr\"; };\n"
		"iod: { %s };\n"
		"iods: ( { address = \"127.0.0.1:%u\"; store = \"%s\"; },\n"
		"        { address = \"127.0.0.1:2\"; store = \"other\"; } );\n", uuid, extra,
		h->port, h->store);
	fclose(f);
}

/*
 * Runs the daemon with more arguments; with @ready waits until it serves.
 * Return: its process id. Its messages go to the file "log" beside the configuration.
 */
static inline pid_t spawn(struct harness *h, bool ready, const char *a1, const char *a2)
{
	int p[2] = { -1, -1 };
	char fd[16], buf[8], log[128];
	pid_t pid;

	if (ready && pipe2(p, O_CLOEXEC))
		DIE("pipe");
	pid = fork();
	if (!pid) {
		/* Nothing outlives a test that crashed. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(log, sizeof(log), "%s/log", h->dir);
		if (!freopen(log, "a", stderr))
			_exit(98);
		snprintf(fd, sizeof(fd), "%d", p[1]);
		if (ready) {
			fcntl(p[1], F_SETFD, 0);
			execl(h->bin, h->bin, "-c", h->conf, "-n", "0", "--ready-fd", fd, a1, a2,
			      NULL);
		} else {
			execl(h->bin, h->bin, "-c", h->conf, "-n", "0", a1, a2, NULL);
		}
		_exit(97);
	}
	if (ready) {
		close(p[1]);
		if (read(p[0], buf, 6) != 6 || memcmp(buf, "ready\n", 6))
			DIE("the daemon did not start, see %s/log", h->dir);
		close(p[0]);
	}
	return pid;
}

static inline int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		DIE("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run(struct harness *h, const char *a1, const char *a2)
{
	return reap(spawn(h, false, a1, a2));
}

/*
 * Directory, keys, configuration, formatted store; nothing runs yet. @top: where the directory is
 * made.
 */
static inline void harness_init(struct harness *h, const char *bin, const char *top,
				const char *extra)
{
	char path[128];
	int i;

	memset(h, 0, sizeof(*h));
	h->bin = bin;
	snprintf(h->dir, sizeof(h->dir), "%s/pvfs-iod-XXXXXX", top);
	if (!mkdtemp(h->dir))
		DIE("%s", h->dir);
	snprintf(h->conf, sizeof(h->conf), "%s/pvfs.conf", h->dir);
	snprintf(h->store, sizeof(h->store), "%s/store", h->dir);
	for (i = 0; i < PVFS_UUID_LEN; i++)
		h->uuid[i] = i + 1;
	h->port = free_port();
	if (!h->port)
		DIE("no port");
	snprintf(path, sizeof(path), "%s/cluster.key", h->dir);
	make_key(path, &h->cluster_key, 1);
	snprintf(path, sizeof(path), "%s/server.key", h->dir);
	make_key(path, &h->server_key, 2);
	write_conf(h, extra);
	signal(SIGPIPE, SIG_IGN);
	if (pvfs_engine_new("client", 2, &h->engine))
		DIE("engine");
}

static inline void harness_fini(struct harness *h)
{
	char cmd[96];

	pvfs_engine_free(h->engine);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", h->dir);
	if (system(cmd))
		fprintf(stderr, "%s is left\n", h->dir);
}

/* @session 0 with a server's role. */
static inline struct pvfs_peer *new_peer(struct harness *h, u8 role, u64 session,
					 unsigned int nconnect)
{
	struct pvfs_peer_params pp = { 0 };
	u8 ticket[PVFS_TICKET_LEN];
	struct pvfs_peer *p;
	const char *why;
	char text[32];

	snprintf(text, sizeof(text), "127.0.0.1:%u", h->port);
	if (pvfs_addr_resolve(text, 0, &pp.addr, &why))
		DIE("%s: %s", text, why);
	pp.key = role == PVFS_ROLE_CLIENT ? &h->cluster_key : &h->server_key;
	pp.my_role = role;
	pp.its_role = PVFS_ROLE_IOD;
	strcpy(pp.volume, "test");
	pp.nconnect = nconnect;
	pp.fail_ms = 5000;
	if (pvfs_peer_new(h->engine, &pp, &p))
		DIE("peer");
	pvfs_ticket_make(&h->server_key, h->uuid, session, ticket);
	pvfs_peer_set_session(p, session, ticket);
	return p;
}

/* One READ or WRITE on its way. */
struct io {
	struct pvfs_rpc rpc;
	u8 body[128], rep[64];
	struct iovec iov;
};

static inline void prep_read(struct io *io, const struct pvfs_fid *fid, const struct pvfs_cap *cap,
			     u64 off,
			     void *buf, u32 len)
{
	struct pvfs_read_req req = { .fid = *fid, .off = off, .len = len, .cap = *cap };

	memset(io, 0, sizeof(*io));
	io->rpc.op = PVFS_OP_READ;
	io->rpc.body = io->body;
	io->rpc.body_len = pvfs_read_req_encode(&req, io->body, sizeof(io->body));
	io->iov = (struct iovec){ .iov_base = buf, .iov_len = len };
	io->rpc.in = &io->iov;
	io->rpc.nin = 1;
	io->rpc.rep = io->rep;
	io->rpc.rep_room = sizeof(io->rep);
	io->rpc.timeout_ms = 60000;
}

static inline void prep_write(struct io *io, const struct pvfs_fid *fid, const struct pvfs_cap *cap,
			      u64 off,
			      const void *buf, u32 len)
{
	struct pvfs_write_req req = { .fid = *fid, .off = off, .cap = *cap };

	memset(io, 0, sizeof(*io));
	io->rpc.op = PVFS_OP_WRITE;
	io->rpc.body = io->body;
	io->rpc.body_len = pvfs_write_req_encode(&req, io->body, sizeof(io->body));
	io->iov = (struct iovec){ .iov_base = (void *)buf, .iov_len = len };
	io->rpc.out = &io->iov;
	io->rpc.nout = len ? 1 : 0;
	io->rpc.rep = io->rep;
	io->rpc.rep_room = sizeof(io->rep);
	io->rpc.timeout_ms = 60000;
}

/* Return: bytes read, or -errno; *@ret_size is the datafile's. */
static inline int do_read(struct pvfs_peer *p, const struct pvfs_fid *fid,
			  const struct pvfs_cap *cap, u64 off,
			  void *buf, u32 len, u64 *ret_size)
{
	struct pvfs_read_rep rep;
	struct io io;
	int err;

	prep_read(&io, fid, cap, off, buf, len);
	err = pvfs_peer_call(p, &io.rpc);
	if (!err)
		err = pvfs_read_rep_decode(&rep, io.rep, io.rpc.rep_len);
	if (err)
		return err;
	if (ret_size)
		*ret_size = rep.size;
	return io.rpc.in_len;
}

static inline int do_write(struct pvfs_peer *p, const struct pvfs_fid *fid,
			   const struct pvfs_cap *cap, u64 off,
			   const void *buf, u32 len, struct pvfs_write_rep *rep)
{
	struct pvfs_write_rep r;
	struct io io;
	int err;

	prep_write(&io, fid, cap, off, buf, len);
	err = pvfs_peer_call(p, &io.rpc);
	if (!err)
		err = pvfs_write_rep_decode(rep ? rep : &r, io.rep, io.rpc.rep_len);
	return err;
}

/* Any other operation: @err = CALL(peer, trim, TRIM, &req, &rep). */
#define CALL(p, name, NAME, req, ret_rep) ({ \
		u8 body_[PVFS_BODY_MAX], out_[256]; \
		struct pvfs_rpc rpc_ = { .op = PVFS_OP_##NAME, .body = body_, .rep = out_, .rep_room = sizeof(out_), \
					 .timeout_ms = 60000 }; \
		int err_; \
		rpc_.body_len = pvfs_##name##_req_encode(req, body_, sizeof(body_)); \
		err_ = pvfs_peer_call(p, &rpc_); \
		if (!err_) \
			err_ = pvfs_##name##_rep_decode(ret_rep, out_, rpc_.rep_len); \
		err_; })

/* A field of /proc/PID/status, in KiB. */
static inline u64 proc_kib(pid_t pid, const char *field)
{
	char path[64], line[256];
	unsigned long long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, field, strlen(field)) && line[strlen(field)] == ':')
			v = strtoull(line + strlen(field) + 1, NULL, 10);
	}
	if (f)
		fclose(f);
	return v;
}

#endif
