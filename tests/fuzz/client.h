/* SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1 */
/*
 * client.h - a client by hand for the targets that fuzz servers: shakes hands rightly or not at
 * all, then sends what it is given. Included by one C file of a program.
 *
 * The flags of an input, its first byte:
 *   01 prove ourselves first (else the stream is the first thing the server hears)
 *   02 mend the headers   04 mend the checksums of bodies and payloads
 *   08 pass for a server, with the server key
 *   80 go away without waiting for the server to have read it all
 * The others are the target's.
 */
#ifndef PVFS_FUZZ_CLIENT_H
#define PVFS_FUZZ_CLIENT_H

#include "driver.h"
#include "common/log.h"
#include "transport/auth.h"
#include "transport/transport.h"
#include <pthread.h>
#include <stdatomic.h>

#define F_LOGIN 0x01
#define F_MEND 0x02
#define F_MEND_BODY 0x04
#define F_AS_SERVER 0x08
#define F_HASTE 0x80

static struct pvfs_key cluster_key = { .bytes = "cluster key", .present = true };
static struct pvfs_key server_key = { .bytes = "server key", .present = true };

static inline void die(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

#include "tests/by_hand.h"

/* The stream, message by message as far as it has any, mended as @flags say. */
static inline void mend_stream(u8 *p, size_t n, u8 flags, const u32 *tags, unsigned int ntags)
{
	struct pvfs_hdr h;
	size_t at = 0, len;

	if (!(flags & F_MEND))
		return;
	while (n - at >= PVFS_HDR_LEN) {
		if (ntags) {
			memcpy(&h, p + at, sizeof(h));
			if (h.tag & cpu_to_le32(7)) {
				h.tag = cpu_to_le32(tags[le32_to_cpu(h.tag) % ntags]);
				h.op = cpu_to_le16(le32_to_cpu(h.tag) & 1 ? PVFS_OP_READ : PVFS_OP_PING);
				h.flags |= cpu_to_le32(PVFS_HF_REPLY);
			}
			memcpy(p + at, &h, sizeof(h));
		}
		fuzz_mend(p + at, n - at - PVFS_HDR_LEN, flags & F_MEND_BODY);
		memcpy(&h, p + at, sizeof(h));
		len = PVFS_HDR_LEN + le32_to_cpu(h.body_len) + le32_to_cpu(h.payload_len);
		at += len;
	}
}

/* Of the volume that tickets are made for. */
static u8 volume_uuid[PVFS_UUID_LEN];

static inline bool login(struct pvfs_xprt *x, const char *volume, u64 session, bool as_server, u32 channel)
{
	struct pvfs_auth_req req = { .version = PVFS_PROTO_VERSION, .volume = PVFS_STR(volume), .host = PVFS_STR("fuzz"),
				     .session = as_server ? 0 : session, .channel = channel,
				     .role = as_server ? PVFS_ROLE_MGR : PVFS_ROLE_CLIENT };
	struct pvfs_nonces n;
	struct pvfs_header h;
	u8 body[512];
	int len;

	pvfs_ticket_make(&server_key, volume_uuid, req.session, req.ticket);
	memset(n.client, 1, sizeof(n.client));
	if (!send_msg(x, PVFS_OP_HELLO, 0, 1, n.client, sizeof(n.client)) || !recv_msg(x, &h, body, sizeof(body)))
		return false;
	memcpy(n.server, body, sizeof(n.server));
	len = pvfs_auth_req_encode(&req, body, sizeof(body));
	pvfs_auth_seal(as_server ? &server_key : &cluster_key, &n, false, body, len);
	return send_msg(x, PVFS_OP_AUTH, 0, 2, body, len) && recv_msg(x, &h, body, sizeof(body)) && !h.status;
}

/* What a target does when it is let in, to the stream too. */
typedef void (*inside_fn)(struct pvfs_xprt *x, u8 flags, u8 *p, size_t n);

/* Connects to @addr and does what @flags say with the stream. @volume and @session are for AUTH. */
static inline void at_server(const struct pvfs_addr *addr, const char *volume, u64 session, inside_fn inside, u8 flags,
			     u8 *p, size_t n)
{
	struct pvfs_xprt *x;
	int i;

	for (i = 0; pvfs_xprt_for(addr)->connect(addr, &x); i++) {
		if (i > 10000)
			die("takes no connections");
		poll(NULL, 0, 1);
	}
	if (!ready(x, POLLOUT, 10000))
		die("takes no connections");
	/* One that is refused because there are too many is no failure. */
	if (!(flags & F_LOGIN) || login(x, volume, session, flags & F_AS_SERVER, n % 4)) {
		mend_stream(p, n, flags, NULL, 0);
		if (inside && (flags & F_LOGIN))
			inside(x, flags, p, n);
		send_all(x, p, n);
		if (!(flags & F_HASTE))
			ready(x, POLLIN, 2);
		drain(x);
	}
	x->ops->close(x);
}

/* A client that keeps to the rules must be served all the while. */
static inline void check_witness(struct pvfs_peer *peer)
{
	u8 rep[16];
	struct pvfs_rpc rpc = { .op = PVFS_OP_PING, .rep = rep, .rep_room = sizeof(rep), .timeout_ms = 20000 };

	if (pvfs_peer_call(peer, &rpc))
		die("a client that keeps to the rules is not served");
}

static inline struct pvfs_peer *witness_new(struct pvfs_engine *e, const struct pvfs_addr *addr, const char *volume,
					    u8 role)
{
	struct pvfs_peer_params pp = { .addr = *addr, .key = &cluster_key, .my_role = PVFS_ROLE_CLIENT, .its_role = role,
				       .nconnect = 1, .hard = 1 };
	struct pvfs_peer *peer;

	snprintf(pp.volume, sizeof(pp.volume), "%s", volume);
	if (pvfs_peer_new(e, &pp, &peer))
		die("no witness");
	return peer;
}

#endif
