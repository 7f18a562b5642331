// SPDX-License-Identifier: GPL-2.0
/*
 * recall_send.c - RECALL, SETTLE and YIELD on their way to a client, and its answer back to recall.c.
 *
 * Nobody waits: the answer comes to sent_done(), also when the connection ends first.
 */
#include "mgr.h"
#include <stdlib.h>

#define MESSAGES_MAX 8u		/* to one client at a time: it has to keep its answers */

struct sending {
	struct mgr *m;
	struct mgr_session *s;
	u64 asked;
	u64 round;			/* of a settle or yield, or 0 */
	u32 n;
	u64 inos[PVFS_RECALL_MAX];
};

static void sent_done(void *arg, int err)
{
	struct sending *s = arg;

	atomic_fetch_sub(&s->s->recalls, 1);
	if (s->round)
		mgr_round_told(s->m, s->s->id, s->inos[0], s->round, err);
	else
		mgr_recall_answered(s->m, s->s->id, s->inos, s->n, err, s->asked);
	mgr_session_put(s->s);
	free(s);
}

/* @round: of a settle or yield, or 0; @body: @len bytes, or -errno. */
static int send_callback(struct mgr *m, u64 session, u16 op, const u64 *inos, u32 n, u64 round,
			 const u8 *body, int len)
{
	struct sending *s;
	int err;

	if (!m->server)
		return -ENOTCONN;	/* we are about to start */
	if (len < 0)
		return len;
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct sending){ .m = m, .s = mgr_session_peek(m, session), .n = n, .round = round,
			       .asked = atomic_load(&m->recalls.born) };
	if (!s->s) {
		free(s);
		return -ENOTCONN;
	}
	memcpy(s->inos, inos, n * sizeof(*inos));
	err = atomic_fetch_add(&s->s->recalls, 1) < MESSAGES_MAX ? 0 : -EBUSY;
	err = err ?: pvfs_server_callback_async(m->server, session, op, body, len, sent_done, s);
	if (!err)
		return 0;
	atomic_fetch_sub(&s->s->recalls, 1);
	mgr_session_put(s->s);
	free(s);
	return err;
}

int mgr_send_recall(struct mgr *m, u64 session, const u64 *inos, u32 n)
{
	u8 raw[8 * PVFS_RECALL_MAX], body[8 + sizeof(raw)];
	struct pvfs_recall_req req = { .inos = { .p = raw, .len = 8 * n } };
	u32 i;

	for (i = 0; i < n; i++)
		put_unaligned_le64(inos[i], raw + 8 * i);
	return send_callback(m, session, PVFS_OP_RECALL, inos, n, 0, body,
			     pvfs_recall_req_encode(&req, body, sizeof(body)));
}

int mgr_send_settle(struct mgr *m, u64 session, u64 ino, u64 round)
{
	struct pvfs_settle_req req = { .ino = ino, .round = round };
	u8 body[16];

	return send_callback(m, session, PVFS_OP_SETTLE, &ino, 1, round, body,
			     pvfs_settle_req_encode(&req, body, sizeof(body)));
}

int mgr_send_yield(struct mgr *m, u64 session, u64 ino, u64 round)
{
	struct pvfs_yield_req req = { .ino = ino, .round = round };
	u8 body[16];

	return send_callback(m, session, PVFS_OP_YIELD, &ino, 1, round, body,
			     pvfs_yield_req_encode(&req, body, sizeof(body)));
}
