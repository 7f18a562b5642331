// SPDX-License-Identifier: GPL-2.0
/*
 * claim.c - a client that knows the cluster key and says that a session is his, for identity.t.
 *
 *   claim ADDRESS VOLUME KEY SESSION [SERVER_KEY UUID]
 *
 * Shakes hands with the server at ADDRESS as SESSION's connection 9, with a ticket of zeros, or with the right one, which is
 * made with the server key. Prints what it was answered, as "EPERM" or "0"; "unproved" when there was no mac, or a wrong one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "common/storeid.h"
#include "transport/auth.h"
#include "transport/transport.h"

#define CHANNEL 9

static void die(const char *what)
{
	fprintf(stderr, "claim: %s\n", what);
	exit(1);
}

#include "tests/by_hand.h"

static void call(struct pvfs_xprt *x, u16 op, const u8 *body, u32 len, struct pvfs_header *rep, u8 rep_body[PVFS_BODY_MAX])
{
	if (!send_msg(x, op, 0, 1, body, len) || !recv_msg(x, rep, rep_body, PVFS_BODY_MAX) || rep->op != op)
		die("not our protocol");
}

int main(int argc, char **argv)
{
	struct pvfs_auth_req req = { .version = PVFS_PROTO_VERSION, .role = PVFS_ROLE_CLIENT, .channel = CHANNEL,
				     .host = PVFS_STR("claim") };
	static u8 body[PVFS_BODY_MAX], rep_body[PVFS_BODY_MAX];
	struct pvfs_key key = { 0 }, server_key = { 0 };
	u8 uuid[PVFS_UUID_LEN];
	struct pvfs_auth_rep rep;
	struct pvfs_header h;
	struct pvfs_nonces n;
	struct pvfs_xprt *x;
	struct pvfs_addr a;
	const char *why = "";
	int len, err;

	if (argc != 5 && argc != 7) {
		fprintf(stderr, "Usage: claim ADDRESS VOLUME KEY SESSION [SERVER_KEY UUID]\n");
		return 2;
	}
	req.volume = PVFS_STR(argv[2]);
	req.session = strtoull(argv[4], NULL, 10);
	if (pvfs_addr_resolve(argv[1], 0, &a, &why) || pvfs_key_load(argv[3], &key, &why))
		die(why);
	if (argc == 7) {
		if (pvfs_key_load(argv[5], &server_key, &why))
			die(why);
		if (pvfs_uuid_parse(argv[6], uuid))
			die("not a uuid");
		pvfs_ticket_make(&server_key, uuid, req.session, req.ticket);
	}
	if (pvfs_xprt_for(&a)->connect(&a, &x))
		die("can't connect");
	if (!ready(x, POLLOUT, 20000) || x->ops->connected(x))
		die("can't connect");
	if (getrandom(n.client, sizeof(n.client), 0) < 0)
		die("no random numbers");
	call(x, PVFS_OP_HELLO, n.client, sizeof(n.client), &h, rep_body);
	if (h.status || h.body_len != sizeof(n.server))
		die("not our protocol");
	memcpy(n.server, rep_body, sizeof(n.server));
	len = pvfs_auth_req_encode(&req, body, sizeof(body));
	if (len < 0)
		die("can't be asked for");
	pvfs_auth_seal(&key, &n, false, body, len);
	call(x, PVFS_OP_AUTH, body, len, &h, rep_body);
	err = pvfs_errno_from_wire(h.status);
	if (!pvfs_auth_verify(&key, &n, true, rep_body, h.body_len) || pvfs_auth_rep_decode(&rep, rep_body, h.body_len) ||
	    rep.status != h.status || rep.session != req.session)
		printf("unproved\n");
	else
		printf("%s\n", err ? strerrorname_np(err) : "0");
	x->ops->close(x);
	return 0;
}
