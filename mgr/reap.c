// SPDX-License-Identifier: GPL-2.0
/*
 * reap.c - what goes on behind replies: datafiles of unlinked files are removed, interrupted
 * truncations finished.
 *
 * One thread goes over both queues when it is kicked, and every second while something could not be
 * done because an iod was away. An inode leaves the queue, and the tables, when every iod of its
 * layout has answered; asking twice does no harm, so nothing here needs to be durable at once.
 * Nothing is removed during the grace after a start (session.c).
 */
#include "mgr.h"
#include <stdlib.h>

#define REAP_BATCH 128u		/* inodes asked about at once */
#define REMOVE_MS 10000u

struct reap_batch {
	enum mdb_table tab;
	u64 after;		/* go on behind this ino */
	u64 ino[REAP_BATCH];
	struct mgr_inode in[REAP_BATCH];
	bool done[REAP_BATCH];
	u32 n;
	bool end;
};

/* The next records of a queue, by ino. */
static int batch_fn(struct mgr_op *op, void *arg)
{
	struct reap_batch *b = arg;
	u8 key[MGR_INO_KEY], val[64];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	int err;

	b->n = 0;
	b->end = false;
	err = mdb_cursor_open(op->m->db, op->txn, b->tab, 0, &c);
	if (err)
		return err;
	mgr_ino_key(key, b->after + 1);
	err = mdb_cursor_seek(&c, key, sizeof(key), &rec);
	while (!err && b->n < REAP_BATCH) {
		b->ino[b->n++] = mgr_get_be64(rec.key);
		err = mdb_cursor_next(&c, &rec);
	}
	mdb_cursor_close(&c);
	b->end = err == -ENOENT;
	return err == -ENOENT ? 0 : err;
}

static int inodes_fn(struct mgr_op *op, void *arg)
{
	struct reap_batch *b = arg;
	u32 i;
	int err;

	for (i = 0; i < b->n; i++) {
		err = ns_inode_get(op, b->ino[i], 0, &b->in[i]);
		/* A record without its inode has nothing to be removed but itself. */
		if (err == -ESTALE)
			memset(&b->in[i], 0, sizeof(b->in[i]));
		else if (err)
			return err;
		b->done[i] = false;
	}
	return 0;
}

/* Asks the iods of every inode of the batch to remove its datafiles. */
static int remove_datafiles(struct mgr *m, struct reap_batch *b)
{
	struct mgr_iocall *calls;
	u32 i, k, df, n = 0;

	for (i = 0; i < b->n; i++) {
		/* In the queue because somebody could have reclaimed it; there is nothing to remove. */
		if ((b->in[i].flags & (MGR_IF_STUFFED | MGR_IF_SPILL)) == MGR_IF_STUFFED)
			b->in[i].layout.pcount = 0;
		n += b->in[i].layout.pcount;
	}
	calls = calloc(n ? n : 1, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	for (i = k = 0; i < b->n; i++) {
		for (df = 0; df < b->in[i].layout.pcount; df++, k++) {
			calls[k].iod = pvfs_stripe_iod(&b->in[i].layout, df, m->niods);
			calls[k].op = PVFS_OP_REMOVE;
			calls[k].fid.ino = b->in[i].ino;
			calls[k].fid.gen = b->in[i].gen;
		}
	}
	if (n)
		m->iod_ops->call(m->iod_arg, calls, n, REMOVE_MS);
	for (i = k = 0; i < b->n; i++) {
		b->done[i] = true;
		for (df = 0; df < b->in[i].layout.pcount; df++, k++)
			if (calls[k].err)
				b->done[i] = false;
	}
	free(calls);
	return 0;
}

static int reaped_fn(struct mgr_op *op, void *arg)
{
	struct reap_batch *b = arg;
	u8 key[MGR_INO_KEY];
	struct mgr_inode in;
	u32 i;
	int err;

	for (i = 0; i < b->n; i++) {
		if (!b->done[i])
			continue;
		err = ns_inode_get(op, b->ino[i], MDB_RMW, &in);
		if (!err) {
			if (!(in.flags & MGR_IF_REAP))
				continue;	/* reclaimed */
			err = ns_inode_del(op, &in);
		}
		if (err && err != -ESTALE)
			return err;
		mgr_ino_key(key, b->ino[i]);
		err = mdb_del(op->m->db, op->txn, MDB_REAP, key, sizeof(key));
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

static int count_done(struct mgr *m, const struct reap_batch *b)
{
	u32 i, done = 0;

	for (i = 0; i < b->n; i++)
		done += b->done[i];
	atomic_fetch_add_explicit(&m->count.reaped, done, memory_order_relaxed);
	atomic_fetch_sub_explicit(&m->files, done, memory_order_relaxed);
	return b->n - done;
}

static int next_batch(struct mgr_op *op, void *arg)
{
	int err = mgr_run(op, batch_fn, arg, MGR_RUN_READ);

	return err ?: mgr_run(op, inodes_fn, arg, MGR_RUN_READ);
}

static int commit_batch(struct mgr_op *op, void *arg)
{
	return mgr_run(op, reaped_fn, arg, 0);
}

static int trim_one(struct mgr_op *op, void *arg)
{
	return mgr_trim_finish(op, *(u64 *)arg);
}

/* Return: how many are left over, or -errno. */
static int reap_queue(struct mgr *m, struct mgr_op *op, struct reap_batch *b)
{
	int left = 0, err;

	memset(b, 0, sizeof(*b));
	b->tab = MDB_REAP;
	while (!b->end && !mgr_bg_wait(m, 0)) {
		/*
		 * The database is entered for each step, not for the batch: the calls may take
		 * long.
		 */
		err = mgr_bg_run(op, next_batch, b);
		err = err ?: remove_datafiles(m, b);
		err = err ?: mgr_bg_run(op, commit_batch, b);
		if (err)
			return err;
		left += count_done(m, b);
		if (b->n)
			b->after = b->ino[b->n - 1];
	}
	return left;
}

static int trim_queue(struct mgr *m, struct mgr_op *op, struct reap_batch *b)
{
	int left = 0, err;
	u32 i;

	memset(b, 0, sizeof(*b));
	b->tab = MDB_TRIM;
	while (!b->end && !mgr_bg_wait(m, 0)) {
		err = mgr_bg_run(op, next_batch, b);
		if (err)
			return err;
		for (i = 0; i < b->n && !mgr_bg_wait(m, 0); i++) {
			err = mgr_bg_run(op, trim_one, &b->ino[i]);
			if (err && err != -ESTALE)
				left++;
		}
		if (b->n)
			b->after = b->ino[b->n - 1];
	}
	return left;
}

int mgr_reap_pass(struct mgr *m)
{
	struct mgr_op *op = malloc(sizeof(*op));
	struct reap_batch *b = malloc(sizeof(*b));
	int trims, left = -ENOMEM;

	if (!op || !b)
		goto out;
	mgr_op_init_bg(op, m);
	trims = trim_queue(m, op, b);
	if (trims < 0) {
		left = trims;
		goto out;
	}
	if (mgr_in_grace(m))
		left = 1;	/* come back */
	else
		left = reap_queue(m, op, b);
	if (left >= 0)
		left += trims;
out:
	free(op);
	free(b);
	return left;
}

void mgr_reap_kick(struct mgr *m)
{
	mgr_bg_kick(m, &m->reap_kicked);
}

void *mgr_reap_thread(void *arg)
{
	struct mgr *m = arg;
	int left;

	do {
		left = mgr_reap_pass(m);
		if (left < 0)
			pvfs_log_limited(PVFS_LOG_WARNING, "removing datafiles: %s; trying again",
					 strerror(-left));
		/*
		 * What is unlinked together is removed together: a pass now and then, not one per
		 * file.
		 */
	} while (!mgr_bg_wait(m, mgr_mono_ms() + 20) && !mgr_bg_wait_kick(m, &m->reap_kicked, left));
	return NULL;
}

/**
 * mgr_count_table - how many records a queue has
 * @limit: stop counting there
 */
int mgr_count_table(struct mgr_op *op, enum mdb_table tab, u64 limit, u64 *ret)
{
	u8 key[MGR_INO_KEY] = { 0 }, val[64];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	u64 n = 0;
	int err;

	err = mdb_cursor_open(op->m->db, NULL, tab, 0, &c);
	if (err)
		return err;
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err && n < limit;
	     err = mdb_cursor_next(&c, &rec))
		n++;
	mdb_cursor_close(&c);
	if (err && err != -ENOENT)
		return err;
	*ret = n;
	return 0;
}
