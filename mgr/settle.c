// SPDX-License-Identifier: GPL-2.0
/*
 * settle.c - sizes that the iods know better, and that nobody asks for: found out behind the replies.
 *
 * A file that is UNCERTAIN and has no writer any more is left by a crash of ours, by a client that
 * was evicted while it wrote, or by a close that met an iod which did not answer. Who asks for its
 * attributes makes us ask all its iods (size.c), and waits when one of them is away; also who lists
 * its directory. So we ask before anybody does, as soon as the answer may be recorded, which is
 * after the grace; what an iod that is away has a part of is tried again, less and less often.
 *
 * Which files these are is known in a table, or, after a crash and when the table was full, from a
 * walk over all inodes, which stops while the table is full. A file with a writer is not in it: who
 * closes it settles it, or puts it there.
 *
 * One thread, a few files at a time. It does not wait for iods when the manager stops.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define BATCH		16u		/* files asked about at once */
#define WALK_STEP	2000u		/* inodes looked at inside the database at a time */
#define GRACE_LOOK_MS	100u
#define PAUSE_MIN_MS	1000u		/* between two tries for what could not be settled */
#define PAUSE_MAX_MS	16000u

struct batch {
	u64 ino[BATCH];
	struct mgr_inode in[BATCH];
	struct pvfs_attr attr[BATCH];
	u32 n, found;			/* of @ino; of @in */
	u64 after;			/* the walk goes on behind this inode */
	bool end;
};

static bool of_interest(const struct mgr_inode *in)
{
	return S_ISREG(in->mode) && (in->flags & MGR_IF_UNCERTAIN) && !(in->flags & MGR_IF_REAP);
}

/* ---- the table ---- */

void mgr_settle_add(struct mgr *m, u64 ino)
{
	struct mgr_settle *t = &m->settle;

	pthread_mutex_lock(&t->lock);
	if (t->n < MGR_SETTLE_MAX) {
		t->ino[t->n++] = ino;
	} else {
		t->again = true;
	}
	pthread_mutex_unlock(&t->lock);
	mgr_bg_kick(m, &t->kicked);
}

/* Return: how many. */
static u32 take(struct mgr_settle *t, u64 *ino, u32 max)
{
	u32 n;

	pthread_mutex_lock(&t->lock);
	n = min(t->n, max);
	t->n -= n;
	memcpy(ino, t->ino + t->n, n * sizeof(*ino));
	pthread_mutex_unlock(&t->lock);
	return n;
}

u32 mgr_settle_left(struct mgr *m, bool *ret_walk)
{
	u32 n;

	pthread_mutex_lock(&m->settle.lock);
	n = m->settle.n;
	*ret_walk = m->settle.walk || m->settle.again;
	pthread_mutex_unlock(&m->settle.lock);
	return n;
}

/* ---- the walk ---- */

/* The next inodes: some of interest, or few enough to let a recovery in between. */
static int walk_fn(struct mgr_op *op, void *arg)
{
	struct batch *b = arg;
	struct mgr_inode_disk d;
	struct mdb_rec rec = { .val = &d, .room = sizeof(d) };
	u64 after = b->after;
	u8 key[MGR_INO_KEY];
	struct mdb_cursor c;
	struct mgr_inode in;
	u32 seen = 0;
	int err;

	b->n = 0;
	err = mdb_cursor_open(op->m->db, NULL, MDB_INODE, 0, &c);
	if (err)
		return err;
	mgr_ino_key(key, after + 1);
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec);
	     !err && seen < WALK_STEP && b->n < BATCH; err = mdb_cursor_next(&c, &rec), seen++) {
		after = mgr_get_be64(rec.key);
		if (!mgr_inode_decode(&in, after, &d, rec.vlen) && of_interest(&in))
			b->ino[b->n++] = after;
	}
	mdb_cursor_close(&c);
	if (err && err != -ENOENT)
		return err;
	b->end = err == -ENOENT;
	b->after = after;
	return 0;
}

static int walk_some(struct mgr_op *op, void *arg)
{
	return mgr_run(op, walk_fn, arg, MGR_RUN_READ);
}

/* ---- settling ---- */

/* Those that are still uncertain and have no writer. */
static int look_fn(struct mgr_op *op, void *arg)
{
	struct batch *b = arg;
	struct mgr_opens_view v;
	struct mgr_inode in;
	u32 i;
	int err;

	b->found = 0;
	for (i = 0; i < b->n; i++) {
		err = ns_inode_get(op, b->ino[i], 0, &in);
		if (err == -ESTALE || err == -EIO || err == -EUCLEAN)
			continue;	/* removed, or damaged: who asks is told */
		if (err)
			return err;
		if (!of_interest(&in))
			continue;
		mgr_opens_view(&op->m->opens, in.ino, 0, &v);
		/* A close that is under way may have put it here. */
		if (v.writers && !v.last)
			continue;
		b->in[b->found++] = in;
	}
	return 0;
}

static int settle_some(struct mgr_op *op, void *arg)
{
	struct batch *b = arg;
	u32 i, n = 0;
	int err;

	op->gives_up = true;
	err = mgr_run(op, look_fn, b, MGR_RUN_READ);
	if (err)
		return err;
	/* In front: those that can be asked about. */
	for (i = 0; i < b->found; i++) {
		if (b->in[i].flags & MGR_IF_TRIM)
			continue;
		if (i != n) {
			struct mgr_inode in = b->in[n];

			b->in[n] = b->in[i];
			b->in[i] = in;
		}
		n++;
	}
	return n ? mgr_size_attrs(op, b->in, b->attr, n) : 0;
}

/* What is not settled goes back into the table. Return: how many these were, or -errno. */
static int settle_batch(struct mgr *m, struct mgr_op *op, struct batch *b)
{
	struct mgr_settle *t = &m->settle;
	u32 i, left = 0;
	int err;

	mgr_op_init_bg(op, m);
	err = mgr_bg_run(op, settle_some, b);
	if (err) {
		for (i = 0; i < b->n; i++)
			mgr_settle_add(m, b->ino[i]);
		return err;
	}
	for (i = 0; i < b->found; i++) {
		if (!of_interest(&b->in[i]))
			continue;
		mgr_settle_add(m, b->in[i].ino);
		left++;
	}
	atomic_fetch_add_explicit(&t->settled, b->found - left, memory_order_relaxed);
	return left;
}

/* All that were in the table when it began. Return: how many are left, or an -errno of the last. */
static int settle_table(struct mgr *m, struct mgr_op *op, struct batch *b, u64 *ino)
{
	u32 n = take(&m->settle, ino, MGR_SETTLE_MAX), i;
	int left = 0, err, ret = 0;

	for (i = 0; i < n && !mgr_bg_wait(m, 0); i += b->n) {
		b->n = min(n - i, BATCH);
		memcpy(b->ino, ino + i, b->n * sizeof(*ino));
		err = settle_batch(m, op, b);
		if (err < 0)
			ret = err;
		else
			left += err;
	}
	for (; i < n; i++, left++)
		mgr_settle_add(m, ino[i]);
	return ret ?: left;
}

/* Where the walk goes on. Return: there is something to be walked over, and room for what is found. */
static bool walk_from(struct mgr_settle *t, u64 *ret_after)
{
	bool more;

	pthread_mutex_lock(&t->lock);
	if (!t->walk && t->again) {
		t->walk = true;
		t->again = false;
		t->after = 0;
	}
	more = t->walk && t->n + BATCH <= MGR_SETTLE_MAX;
	*ret_after = t->after;
	pthread_mutex_unlock(&t->lock);
	return more;
}

/* Return: how many are left, or -errno. */
static int settle_walk(struct mgr *m, struct mgr_op *op, struct batch *b)
{
	struct mgr_settle *t = &m->settle;
	int left = 0, err;

	while (walk_from(t, &b->after) && !mgr_bg_wait(m, 0)) {
		mgr_op_init_bg(op, m);
		err = mgr_bg_run(op, walk_some, b);
		err = err ?: settle_batch(m, op, b);
		if (err < 0)
			return err;
		left += err;
		pthread_mutex_lock(&t->lock);
		t->after = b->after;
		t->walk = !b->end;
		pthread_mutex_unlock(&t->lock);
	}
	return left;
}

int mgr_settle_pass(struct mgr *m)
{
	struct mgr_op *op = malloc(sizeof(*op));
	struct batch *b = malloc(sizeof(*b));
	u64 *ino = malloc(MGR_SETTLE_MAX * sizeof(*ino));
	int left = -ENOMEM, walked;

	if (!op || !b || !ino)
		goto out;
	left = settle_table(m, op, b, ino);
	walked = settle_walk(m, op, b);
	if (left >= 0)
		left = walked < 0 ? walked : left + walked;
out:
	free(op);
	free(b);
	free(ino);
	return left;
}

void *mgr_settle_thread(void *arg)
{
	struct mgr *m = arg;
	u32 pause = PAUSE_MIN_MS;
	bool walk;
	int left;

	for (;;) {
		while (mgr_in_grace(m))
			if (mgr_bg_wait(m, mgr_mono_ms() + GRACE_LOOK_MS))
				return NULL;
		left = mgr_settle_pass(m);
		if (left < 0)
			pvfs_log_limited(PVFS_LOG_WARNING,
					 "finding out sizes of files: %s; trying again",
					 strerror(-left));
		if (!left && !mgr_settle_left(m, &walk) && !walk) {
			pause = PAUSE_MIN_MS;
			if (mgr_bg_wait_kick(m, &m->settle.kicked, false))
				return NULL;
		} else {
			if (mgr_bg_wait(m, mgr_mono_ms() + pause))
				return NULL;
			pause = min(2 * pause, PAUSE_MAX_MS);
		}
	}
}
