// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * client_auth.c - HELLO and AUTH as the connecting side does them, and what a refusal means in
 * words.
 */
#include "peer.h"
#include <stdlib.h>

/* A handshake message, with memory of its own. */
struct hs_send {
	struct pvfs_send send;
	u8 body[512];
};

static void hs_sent(struct pvfs_send *send, int err)
{
	free(container_of(send, struct hs_send, send));
}

static int hs_send(struct pconn *pc, u16 op, struct hs_send *m, int len)
{
	struct pvfs_header h = { .op = op, .tag = op };

	if (len < 0) {
		free(m);
		return len;
	}
	h.body_len = len;
	h.body_crc = pvfs_crc32c(0, m->body, len);
	pvfs_header_encode(&h, &m->send.hdr);
	m->send.body = m->body;
	m->send.body_len = len;
	m->send.done = hs_sent;
	pvfs_conn_send(&pc->c, &m->send);
	return 0;
}

int client_auth_begin(struct pconn *pc)
{
	struct hs_send *m = calloc(1, sizeof(*m));
	struct pvfs_hello_req req;

	if (!m)
		return -ENOMEM;
	if (pvfs_nonce_make(pc->nonces.client)) {
		free(m);
		return -EIO;
	}
	memcpy(req.nonce, pc->nonces.client, sizeof(req.nonce));
	pc->hs = HS_HELLO;
	return hs_send(pc, PVFS_OP_HELLO, m, pvfs_hello_req_encode(&req, m->body, sizeof(m->body)));
}

static int send_auth(struct pconn *pc)
{
	struct pvfs_peer *p = pc->ch->p;
	struct hs_send *m = calloc(1, sizeof(*m));
	struct pvfs_auth_req req = {
		.version = PVFS_PROTO_VERSION,
		.role = p->pp.my_role,
		.features = PVFS_FEATURES,
		.required = PVFS_FEAT_CAPS,
		.volume = PVFS_STR(p->pp.volume),
		.session = pc->session,
		.channel = pc->ch->index,
		.host = PVFS_STR(p->host),
	};
	int n;

	if (!m)
		return -ENOMEM;
	memcpy(req.ticket, pc->ticket, sizeof(req.ticket));
	n = pvfs_auth_req_encode(&req, m->body, sizeof(m->body));
	if (n > 0)
		pvfs_auth_seal(&p->key, &pc->nonces, false, m->body, n);
	pc->hs = HS_AUTH;
	return hs_send(pc, PVFS_OP_AUTH, m, n);
}

static int refusal(struct pconn *pc, int err)
{
	pc->refusal = err;
	return err;
}

static const char *role_name(u8 role)
{
	return role == PVFS_ROLE_MGR ? "a manager" :
	       role == PVFS_ROLE_IOD ? "an I/O daemon" :
				       "something else";
}

/* It knows the key, and has another version: what it says further is not for us. */
static int other_version(struct pconn *pc)
{
	snprintf(pc->why, sizeof(pc->why), "it speaks version %u of the protocol, we speak %u",
		 pvfs_auth_version(pc->small), PVFS_PROTO_VERSION);
	return refusal(pc, -EPROTO);
}

/*
 * A refusal with our key's mac. Without one it may be anybody's, who is between us and the server or
 * came to its port first: no more than a broken connection.
 */
static int auth_refused(struct pconn *pc, int err)
{
	struct pvfs_peer *p = pc->ch->p;

	switch (err) {
	case -ENOENT:
		snprintf(pc->why, sizeof(pc->why), "it does not serve volume '%s'", p->pp.volume);
		return refusal(pc, err);
	case -ESTALE:
		snprintf(pc->why, sizeof(pc->why), "it does not know our session any more");
		pc->stale = true;
		return err;
	case -EPROTO:
		snprintf(pc->why, sizeof(pc->why), "it lacks a feature that we need");
		return refusal(pc, err);
	case -EPERM:
		/* Of what the manager has given us an iod can think so by another key only. */
		snprintf(pc->why, sizeof(pc->why), "%s",
			 p->pp.its_role == PVFS_ROLE_IOD ?
				 "its server key is not the manager's: compare the files of 'server_key'" :
				 "our session is another client's, it says: was its server key changed?");
		return err;
	}
	snprintf(pc->why, sizeof(pc->why), "it answered: %s", strerror(-err));
	return err;
}

static int auth_answer(struct pconn *pc)
{
	struct pvfs_peer *p = pc->ch->p;
	int err = -pvfs_errno_from_wire(pc->c.h.status);
	u32 len = pc->c.h.body_len;
	struct pvfs_auth_rep rep;
	bool proved;

	/* Who takes us for a stranger has nothing to prove it with. */
	if (err == -EACCES && !len) {
		snprintf(pc->why, sizeof(pc->why), "it refused our key%s",
			 p->pp.my_role == PVFS_ROLE_CLIENT ?
				 "" : ", the server key: compare the files of 'server_key'");
		return refusal(pc, err);
	}
	proved = pvfs_auth_verify(&p->key, &pc->nonces, true, pc->small, len) &&
		 len >= PVFS_AUTH_HEAD_LEN;
	if (proved && pvfs_auth_version(pc->small) != PVFS_PROTO_VERSION)
		return other_version(pc);
	proved = proved && !pvfs_auth_rep_decode(&rep, pc->small, len) &&
		 rep.status == pc->c.h.status && rep.session == pc->session;
	if (!proved && !err) {
		snprintf(pc->why, sizeof(pc->why), "it could not prove that it knows our key");
		return refusal(pc, -EACCES);
	}
	if (!proved) {
		snprintf(pc->why, sizeof(pc->why), "it refused us (%s) and could not prove that it knows our key",
			 strerror(-err));
		peer_unproved(p, err);
		return -ECONNRESET;
	}
	/* One of another volume does not take our ticket: which it is says more. */
	if (err && err != -EPERM)
		return auth_refused(pc, err);
	if (rep.role != p->pp.its_role) {
		snprintf(pc->why, sizeof(pc->why), "it is %s, not %s", role_name(rep.role),
			 role_name(p->pp.its_role));
		return refusal(pc, -EPROTOTYPE);
	}
	if (peer_is_other(p, &rep, pc->why, sizeof(pc->why)))
		return p->pp.hard ? -EHOSTUNREACH : refusal(pc, -EHOSTUNREACH);
	if (err)
		return auth_refused(pc, err);
	pc->hs = HS_DONE;
	chan_auth_ok(pc, &rep);
	return 1;
}

int client_auth_head(struct pconn *pc)
{
	const struct pvfs_header *h = &pc->c.h;
	u16 op = pc->hs == HS_HELLO ? PVFS_OP_HELLO : PVFS_OP_AUTH;

	if (h->flags != PVFS_HF_REPLY || h->op != op || h->tag != op || h->payload_len ||
	    h->body_len > sizeof(pc->small)) {
		snprintf(pc->why, sizeof(pc->why), "it does not shake hands as it should");
		return -EPROTO;
	}
	pc->c.body = pc->small;
	return 0;
}

int client_auth_message(struct pconn *pc)
{
	struct pvfs_hello_rep rep;

	if (pc->hs == HS_AUTH)
		return auth_answer(pc);
	if (pc->c.h.status || pvfs_hello_rep_decode(&rep, pc->small, pc->c.h.body_len)) {
		snprintf(pc->why, sizeof(pc->why), "it does not shake hands as it should");
		return -EPROTO;
	}
	memcpy(pc->nonces.server, rep.nonce, sizeof(pc->nonces.server));
	return send_auth(pc);
}
