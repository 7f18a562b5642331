// SPDX-License-Identifier: GPL-2.0
/*
 * fake_peer.c - a server that is not what a client expects, for errors.t, locks.t and the guests' bad.sh.
 *
 *   fake_peer mute            accepts connections and says nothing
 *   fake_peer noise           answers with what is not our protocol
 *   fake_peer version KEY     knows the key, but is of a version that does not fit
 *   fake_peer refuse PORT     does not know it, and says in turn that the client's session, and the volume, are
 *                             not known; prints "refused" each time
 *
 * Prints the port it listens on (127.0.0.1), and runs until it is killed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "transport/transport.h"

#define OTHER_VERSION 99

static bool read_all(int fd, void *buf, size_t n)
{
	size_t sum = 0;
	ssize_t k;

	while (sum < n) {
		k = read(fd, (char *)buf + sum, n - sum);
		if (k <= 0)
			return false;
		sum += k;
	}
	return true;
}

static bool read_msg(int fd, struct pvfs_header *h, u8 *body)
{
	struct pvfs_hdr hdr;

	return read_all(fd, &hdr, sizeof(hdr)) && !pvfs_header_decode(&hdr, h) && read_all(fd, body, h->body_len);
}

static void reply(int fd, const struct pvfs_header *req, u32 status, const u8 *body, int n)
{
	struct pvfs_header h = { .op = req->op, .flags = PVFS_HF_REPLY, .tag = req->tag, .status = status, .credits = 1,
			       .body_len = n, .body_crc = n ? pvfs_crc32c(0, body, n) : 0 };
	struct pvfs_hdr hdr;

	pvfs_header_encode(&h, &hdr);
	if (write(fd, &hdr, sizeof(hdr)) != sizeof(hdr) || write(fd, body, n) != n)
		perror("fake_peer: write");
}

/* HELLO and AUTH as a server does them, but with EPROTO and another version in the end. */
static void serve_version(int fd, const struct pvfs_key *key)
{
	static const char label[] = "pvfs-auth-server";
	struct pvfs_hello_req hello;
	struct pvfs_hello_rep hello_rep;
	struct pvfs_auth_req auth;
	struct pvfs_auth_rep rep = { .version = OTHER_VERSION, .role = PVFS_ROLE_MGR,
				     .status = pvfs_errno_to_wire(EPROTO) };
	u8 body[PVFS_BODY_MAX], out[1024];
	struct pvfs_header h;
	struct iovec iov[4];
	int n;

	if (!read_msg(fd, &h, body) || h.op != PVFS_OP_HELLO || pvfs_hello_req_decode(&hello, body, h.body_len))
		return;
	if (getrandom(hello_rep.nonce, sizeof(hello_rep.nonce), 0) < 0)
		return;
	n = pvfs_hello_rep_encode(&hello_rep, out, sizeof(out));
	reply(fd, &h, 0, out, n);
	if (!read_msg(fd, &h, body) || h.op != PVFS_OP_AUTH || pvfs_auth_req_decode(&auth, body, h.body_len))
		return;
	n = pvfs_auth_rep_encode(&rep, out, sizeof(out));
	iov[0] = (struct iovec){ (void *)label, sizeof(label) - 1 };
	iov[1] = (struct iovec){ hello_rep.nonce, PVFS_NONCE_LEN };
	iov[2] = (struct iovec){ hello.nonce, PVFS_NONCE_LEN };
	iov[3] = (struct iovec){ out + PVFS_MAC_LEN, n - PVFS_MAC_LEN };
	pvfs_hmac(key->bytes, iov, 4, rep.mac);
	n = pvfs_auth_rep_encode(&rep, out, sizeof(out));
	reply(fd, &h, pvfs_errno_to_wire(EPROTO), out, n);
	read_all(fd, body, 1);
}

/* HELLO, and then a refusal that nothing stands behind. */
static void serve_refuse(int fd, unsigned int nth)
{
	u8 nonce[PVFS_NONCE_LEN] = { 0 }, body[PVFS_BODY_MAX];
	struct pvfs_header h;

	if (!read_msg(fd, &h, body) || h.op != PVFS_OP_HELLO)
		return;
	reply(fd, &h, 0, nonce, sizeof(nonce));
	if (!read_msg(fd, &h, body) || h.op != PVFS_OP_AUTH)
		return;
	reply(fd, &h, pvfs_errno_to_wire(nth % 2 ? ENOENT : ESTALE), NULL, 0);
	printf("refused\n");
	fflush(stdout);
	read_all(fd, body, 1);
}

static void serve(int fd, const char *kind, const struct pvfs_key *key, unsigned int nth)
{
	static const char noise[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nno\n";
	u8 buf[4096];

	if (!strcmp(kind, "version")) {
		serve_version(fd, key);
	} else if (!strcmp(kind, "refuse")) {
		serve_refuse(fd, nth);
	} else if (!strcmp(kind, "noise")) {
		if (read(fd, buf, sizeof(buf)) > 0 && write(fd, noise, sizeof(noise) - 1) < 0)
			perror("fake_peer: write");
	} else {
		while (read(fd, buf, sizeof(buf)) > 0)
			;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(sin);
	struct pvfs_key key = { 0 };
	const char *why = "";
	unsigned int nth = 0;
	int fd, c, on = 1;
	bool refuse;

	if (argc < 2 || ((!strcmp(argv[1], "version") || !strcmp(argv[1], "refuse")) && argc < 3)) {
		fprintf(stderr, "Usage: fake_peer mute | noise | version KEY | refuse PORT\n");
		return 2;
	}
	refuse = !strcmp(argv[1], "refuse");
	if (refuse)
		sin.sin_port = htons(atoi(argv[2]));
	else if (argc > 2 && pvfs_key_load(argv[2], &key, &why)) {
		fprintf(stderr, "fake_peer: %s: %s\n", argv[2], why);
		return 1;
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) || bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len)) {
		perror("fake_peer");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	printf("%d\n", ntohs(sin.sin_port));
	fflush(stdout);
	for (;;) {
		c = accept(fd, NULL, NULL);
		if (c < 0)
			continue;
		/*
		 * One process a connection: a mute one must not keep the next from being accepted.
		 */
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(fd);
			alarm(60);
			serve(c, argv[1], &key, nth);
			_exit(0);
		}
		close(c);
		nth++;
	}
}
