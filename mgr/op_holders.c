// SPDX-License-Identifier: GPL-2.0
/*
 * op_holders.c - HOLDERS: which sessions have a lease on an inode, or have it open. For people who
 * look why something waits: it changes nothing, grants nothing, and draws in no draft.
 *
 * Opens, leases and recalls are in three tables, looked at one after the other: each is as it was at
 * some moment of the request, and what changes meanwhile may be seen half.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define ROOM_FIRST 64u		/* holders that there is room for, before it is known how many there are */

struct holders {
	const struct pvfs_holders_req *req;
	struct mgr_inode in;
};

/* Of what is meant: by who knows its number, as GETATTR; or by name, as LOOKUP. */
static int holders_fn(struct mgr_op *op, void *arg)
{
	struct holders *h = arg;
	struct mgr_inode dir;
	unsigned int tries;
	struct ns_entry e;
	int err;

	if (!h->req->name.len)
		return ns_fid_get(op, &h->req->fid, 0, &h->in);
	err = ns_dir_get(op, &h->req->fid, 0, &dir);
	err = err ?: ns_may(op, &h->req->cred, &dir, MGR_MAY_EXEC);
	if (err)
		return err;
	for (tries = 0; tries < 10; tries++) {
		err = ns_entry_find(op, dir.ino, &h->req->name, 0, &e);
		err = err ?: ns_fid_get(op, &e.fid, 0, &h->in);
		/* The entry went, or names another, since it was read: see LOOKUP. */
		if (err != -ESTALE)
			return err;
	}
	return -EAGAIN;
}

static int by_session(const void *a, const void *b)
{
	const struct mgr_holder *x = a, *y = b;

	return x->session < y->session ? -1 : x->session > y->session;
}

/* One record for each session: what the tables say of it is put together. */
static u32 merge(struct mgr_holder *h, u32 n)
{
	u32 i, k = 0;

	qsort(h, n, sizeof(*h), by_session);
	for (i = 1; i < n; i++) {
		if (h[i].session != h[k].session) {
			h[++k] = h[i];
			continue;
		}
		h[k].end = max(h[k].end, h[i].end);
		h[k].flags |= h[i].flags;
		h[k].readers += h[i].readers;
		h[k].writers += h[i].writers;
	}
	return n ? k + 1 : 0;
}

/* All of @ino behind session @after; malloc'ed array in *@ret. Return: how many or -ENOMEM. */
static s64 gather(struct mgr *m, u64 ino, u64 after, u64 now, struct mgr_holder **ret)
{
	struct mgr_holder *h;
	u32 n, room = ROOM_FIRST;

	for (;;) {
		h = malloc(room * sizeof(*h));
		if (!h)
			return -ENOMEM;
		n = mgr_leases_holders(&m->leases, ino, after, now, h, room);
		n += mgr_opens_holders(&m->opens, ino, after, h + min(n, room), room - min(n, room));
		n += mgr_recall_holders(m, ino, after, h + min(n, room), room - min(n, room));
		if (n <= room)
			break;
		free(h);
		room = n + ROOM_FIRST;
	}
	*ret = h;
	return merge(h, n);
}

/* The session's host, user, program and address: for root. */
static void put_holder(struct mgr_op *op, struct pvfs_wire *w, const struct mgr_holder *h, u64 now)
{
	struct mgr_session *s = op->req.holders.cred.uid ? NULL : mgr_session_peek(op->m, h->session);
	struct pvfs_holder out = {
		.session = h->session, .flags = h->flags, .readers = h->readers, .writers = h->writers,
		.ms = h->end > now ? min(h->end - now, (u64)~0u) : 0,
	};

	if (h->session == mgr_op_session(op))
		out.flags |= PVFS_HD_OWN;
	if (s)
		out.host = PVFS_STR(s->host);
	pvfs_put_holder(w, &out);
	if (s)
		mgr_session_put(s);
}

int mgr_op_holders(struct mgr_op *op, const struct pvfs_holders_req *req,
		   struct pvfs_holders_rep *rep)
{
	u32 room = min(req->bytes, PVFS_READDIR_MAX);
	struct holders h = { .req = req };
	struct mgr_holder *list;
	u64 now = mgr_mono_ms();
	struct pvfs_wire w;
	s64 n;
	int err;

	if (room < PVFS_HOLDER_MAX)
		return -EINVAL;
	/* A draft that is read would be recalled: this is about whose it is. */
	op->recalls = false;
	err = req->name.len ? ns_name_check(&req->name) : 0;
	err = err ?: mgr_run(op, holders_fn, &h, MGR_RUN_READ);
	if (err)
		return err;
	n = gather(op->m, h.in.ino, req->after, now, &list);
	if (n < 0)
		return n;
	room = min((u64)room, max(n, 1) * (u64)PVFS_HOLDER_MAX);
	op->payload = malloc(room);
	if (op->payload) {
		pvfs_wire_init(&w, op->payload, room);
		while (rep->count < n && pvfs_wire_left(&w) >= PVFS_HOLDER_MAX)
			put_holder(op, &w, &list[rep->count++], now);
		op->payload_len = w.p - op->payload;
	}
	free(list);
	if (!op->payload)
		return -ENOMEM;
	rep->fid = (struct pvfs_fid){ .ino = h.in.ino, .gen = h.in.gen };
	rep->mode = h.in.mode & S_IFMT;
	rep->left = n - rep->count;
	rep->flags = mgr_in_grace(op->m) || mgr_leases_in_grace(op->m) ? PVFS_HR_GRACE : 0;
	return 0;
}
