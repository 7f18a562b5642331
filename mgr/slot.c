// SPDX-License-Identifier: GPL-2.0
/*
 * slot.c - exactly once, as NFSv4.1 does it. A session has MGR_NSLOTS slots; a request names one
 * and a sequence number.
 *
 * The reply of the last request that succeeded on a slot is kept: in the database, committed with
 * the work, or in memory when the work changed nothing but memory. A failed request changed nothing
 * and leaves the slot as it was.
 *
 *   seq of the request     stored seq s
 *   == s                   replay the stored reply (-EINVAL when it was another operation)
 *   >  s                   execute
 *   <  s                   -EINVAL: the client got that answer long ago
 *   any, while one runs    -EAGAIN: ask again a little later
 */
#include "mgr.h"
#include <stdlib.h>

static struct mgr_slot *slot_of(struct mgr_op *op)
{
	return &op->s->slots[op->slot];
}

/*
 * Reads the database's record: its seq and op into @sl, and the reply into op->body when it is the
 * one asked for.
 */
static int load(struct mgr_op *op, struct mgr_slot *sl)
{
	u8 key[MGR_SLOT_KEY], rec[sizeof(struct mgr_slot_disk) + MGR_BODY_MAX];
	struct mgr_slot_disk d;
	int n;

	mgr_slot_key(key, op->s->id, op->slot);
	n = mdb_get(op->m->db, NULL, MDB_SLOT, key, sizeof(key), rec, sizeof(rec), 0);
	if (n == -ENOENT) {
		sl->seq = 0;
		sl->op = 0;
		return 0;
	}
	if (n < 0)
		return n;
	memcpy(&d, rec, min((size_t)n, sizeof(d)));
	if (n < (int)sizeof(d) || d.format != MGR_SLOT_FORMAT)
		return -EUCLEAN;
	sl->seq = le32_to_cpu(d.seq);
	sl->op = le16_to_cpu(d.op);
	if (sl->seq == op->slot_seq) {
		op->body_len = n - sizeof(d);
		memcpy(op->body, rec + sizeof(d), op->body_len);
	}
	return 0;
}

static int load_retry(struct mgr_op *op, void *arg)
{
	return load(op, arg);
}

/* What that process leased with its reply we know nothing of. */
static int unleased(struct mgr_op *op, struct pvfs_create_rep *rep)
{
	int n;

	rep->attr.flags &= ~(PVFS_AF_LEASE | PVFS_AF_DRAFT | PVFS_AF_WLEASE | PVFS_AF_KEPT);
	n = pvfs_create_rep_encode(rep, op->body, sizeof(op->body));
	if (n < 0)
		return n;
	op->body_len = n;
	return 0;
}

/*
 * What the replayed request opened is not known to this process when an earlier one did it; and a
 * payload is not kept.
 */
static int replay(struct mgr_op *op, struct mgr_slot *sl)
{
	struct pvfs_open_shared_rep *shared = &op->rep.open_shared;
	struct pvfs_create_rep *create = &op->rep.create;
	int err = 0;

	if (sl->op != op->nr)
		return -EINVAL;
	if (op->nr == PVFS_OP_OPEN_SHARED) {
		err = pvfs_open_shared_rep_decode(shared, op->body, op->body_len) ? -EUCLEAN : 0;
		err = err ?: mgr_open_shared_again(op, shared, sl->here);
	} else if (op->nr == PVFS_OP_CREATE && !sl->here) {
		err = pvfs_create_rep_decode(create, op->body, op->body_len) ? -EUCLEAN : 0;
		err = err ?: mgr_open_again(op, &create->attr.fid, op->req.create.flags);
		err = err ?: unleased(op, create);
	}
	if (!err)
		sl->here = true;
	return err;
}

/**
 * mgr_slot_begin - look at a request's slot before it runs
 * @ret_todo: execute (mgr_slot_end() must follow), or replay: op->body has the reply, the slot is
 * released
 *
 * Return: 0, -EAGAIN, -EINVAL, or the database's error; the slot is not held then.
 */
int mgr_slot_begin(struct mgr_op *op, enum mgr_slot_todo *ret_todo)
{
	struct mgr_slot *sl = slot_of(op);
	int err = 0;

	pthread_mutex_lock(&op->s->lock);
	if (sl->busy)
		err = -EAGAIN;
	sl->busy = true;
	pthread_mutex_unlock(&op->s->lock);
	if (err)
		return err;

	if (sl->db_gen != op->db_gen) {
		/*
		 * First use in this process, or recovery may have undone what we remember as done.
		 * A reply that is in memory only was for a change in memory only, and both are
		 * still there.
		 */
		if (sl->db_gen && !sl->body)
			sl->here = false;
		if (!sl->body)
			err = mgr_run(op, load_retry, sl, MGR_RUN_READ);
		if (!err)
			sl->db_gen = op->db_gen;
	}
	if (err)
		goto out;
	if (op->slot_seq > sl->seq) {
		*ret_todo = MGR_SLOT_EXECUTE;
		op->body_len = 0;
		return 0;
	}
	if (op->slot_seq < sl->seq) {
		err = -EINVAL;
		goto out;
	}
	if (sl->body) {
		memcpy(op->body, sl->body, sl->body_len);
		op->body_len = sl->body_len;
	} else {
		err = mgr_run(op, load_retry, sl, MGR_RUN_READ);
	}
	err = err ?: replay(op, sl);
	*ret_todo = MGR_SLOT_REPLAY;
out:
	pthread_mutex_lock(&op->s->lock);
	sl->busy = false;
	pthread_mutex_unlock(&op->s->lock);
	return err;
}

int mgr_slot_store(struct mgr_op *op)
{
	u8 key[MGR_SLOT_KEY], rec[sizeof(struct mgr_slot_disk) + MGR_BODY_MAX];
	struct mgr_slot_disk d = {
		.format = MGR_SLOT_FORMAT, .op = cpu_to_le16(op->nr),
		.seq = cpu_to_le32(op->slot_seq),
	};

	mgr_slot_key(key, op->s->id, op->slot);
	memcpy(rec, &d, sizeof(d));
	memcpy(rec + sizeof(d), op->body, op->body_len);
	return mdb_put(op->m->db, op->txn, MDB_SLOT, key, sizeof(key), rec,
		       sizeof(d) + op->body_len);
}

/**
 * mgr_slot_end - the request has run
 * @err: how it went, the flush of the log included
 *
 * When memory is short for a reply that is kept only there, the slot forgets it: the request would
 * run again.
 */
void mgr_slot_end(struct mgr_op *op, int err)
{
	struct mgr_slot *sl = slot_of(op);
	u8 *body = NULL;

	if (!err) {
		if (!op->stored && op->body_len) {
			body = malloc(op->body_len);
			if (body)
				memcpy(body, op->body, op->body_len);
		} else if (!op->stored) {
			body = calloc(1, 1);
		}
		if (op->stored || body) {
			free(sl->body);
			sl->body = body;
			sl->body_len = op->body_len;
			sl->seq = op->slot_seq;
			sl->op = op->nr;
			sl->here = true;
		}
	} else if (op->stored) {
		/* Committed, but the flush failed: only the database knows after recovery. */
		free(sl->body);
		sl->body = NULL;
		sl->db_gen = 0;
		sl->here = false;
	}
	pthread_mutex_lock(&op->s->lock);
	sl->busy = false;
	pthread_mutex_unlock(&op->s->lock);
}

int mgr_slots_del(struct mgr_op *op, u64 session)
{
	u8 key[MGR_SLOT_KEY];
	u32 i;
	int err;

	for (i = 0; i < MGR_NSLOTS; i++) {
		mgr_slot_key(key, session, i);
		err = mdb_del(op->m->db, op->txn, MDB_SLOT, key, sizeof(key));
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}
