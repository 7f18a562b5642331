// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_locks_test.c - the lock table: ranges against a model that has one byte for each byte of a
 * file, conflicts, turns, deadlocks, cancelling, the ends of sessions, limits, restarts.
 */
#include "mgr_fixture.h"

#define END PVFS_FILE_MAX

static u64 next_ticket = 1;

/* A file and clients to lock it. */
struct lk {
	struct fx *f;
	struct fx_client c[4];
	struct pvfs_fid fid, fid2;
};

static int setup(void **state)
{
	struct lk *t = calloc(1, sizeof(*t));
	struct pvfs_attr a;
	u8 i;

	t->f = fx_new();
	for (i = 0; i < ARRAY_SIZE(t->c); i++)
		fx_client_init(&t->c[i], t->f, i + 1);
	assert_int_equal(do_mkfile(&t->c[0], fx_root, "one", 0644, &a), 0);
	t->fid = a.fid;
	assert_int_equal(do_mkfile(&t->c[0], fx_root, "two", 0644, &a), 0);
	t->fid2 = a.fid;
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct lk *t = *state;

	fx_free(t->f);
	free(t);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

/* One LOCK. Return: PVFS_LK_*, or -errno. */
static int ask(struct fx_client *c, struct pvfs_fid fid, u8 kind, u8 type, u64 owner, u64 start,
	       u64 end, u32 flags, u64 ticket)
{
	struct pvfs_lock_req rq = {
		.fid = fid, .kind = kind, .type = type, .owner = owner, .pid = owner + 100,
		.start = start, .end = end, .flags = flags, .ticket = ticket,
	};
	struct pvfs_lock_rep rp;
	int err = fx_lock(c, &rq, &rp);

	return err ?: rp.state;
}

static int rec(struct fx_client *c, struct pvfs_fid fid, u8 type, u64 owner, u64 start, u64 end)
{
	return ask(c, fid, PVFS_LK_RECORD, type, owner, start, end, 0,
		   type == PVFS_LK_UNLOCK ? 0 : next_ticket++);
}

static int rec_wait(struct fx_client *c, struct pvfs_fid fid, u8 type, u64 owner, u64 start, u64 end,
		    u64 ticket)
{
	return ask(c, fid, PVFS_LK_RECORD, type, owner, start, end, PVFS_LK_WAIT, ticket);
}

static int flk(struct fx_client *c, struct pvfs_fid fid, u8 type, u64 owner, u32 flags, u64 ticket)
{
	return ask(c, fid, PVFS_LK_FLOCK, type, owner, 0, END, flags, ticket);
}

static int cancel(struct fx_client *c, struct pvfs_fid fid, u8 type, u64 owner, u64 start, u64 end,
		  u64 ticket, u32 flags)
{
	struct pvfs_lock_cancel_req rq = {
		.fid = fid, .kind = PVFS_LK_RECORD, .type = type, .owner = owner, .start = start,
		.end = end, .ticket = ticket, .flags = flags,
	};
	struct pvfs_lock_cancel_rep rp;
	int err = fx_lock_cancel(c, &rq, &rp);

	return err ?: rp.granted;
}

static void close_session(struct fx_client *c)
{
	struct pvfs_session_close_req rq;
	struct pvfs_session_close_rep rp;

	assert_int_equal(fx_session_close(c, &rq, &rp), 0);
}

/* Who is to be told next: the ticket, 0: nobody. */
static u64 told(struct lk *t, struct fx_client *c)
{
	u64 session, ticket;

	if (!mgr_locks_grants(&t->f->m->locks, &session, &ticket, 1, false))
		return 0;
	assert_int_equal(session, c->session);
	return ticket;
}

static u32 in_table(struct lk *t)
{
	return t->f->m->locks.count;
}

/* ---- appending ---- */

static int append(struct fx_client *c, struct pvfs_fid fid, u8 type, u64 ticket)
{
	return ask(c, fid, PVFS_LK_APPEND, type, 7, 0, END, type == PVFS_LK_UNLOCK ? 0 : PVFS_LK_WAIT, ticket);
}

/* One session appends at a time, whoever in it; and nobody else cuts the file meanwhile. */
static void appends(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1];
	struct pvfs_fid f = t->fid;

	assert_int_equal(ask(a, f, PVFS_LK_APPEND, PVFS_LK_READ, 7, 0, END, 0, 1), -EINVAL);
	assert_int_equal(ask(a, f, PVFS_LK_APPEND, PVFS_LK_WRITE, 7, 0, 10, 0, 1), -EINVAL);
	assert_int_equal(ask(a, f, PVFS_LK_APPEND, PVFS_LK_WRITE, 0, 0, END, 0, 1), -EINVAL);
	assert_int_equal(append(a, f, PVFS_LK_WRITE, 11), PVFS_LK_GRANTED);
	assert_int_equal(append(b, f, PVFS_LK_WRITE, 12), PVFS_LK_QUEUED);
	/* Other kinds don't mind. */
	assert_int_equal(rec(b, f, PVFS_LK_WRITE, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(flk(b, f, PVFS_LK_WRITE, 2, 0, next_ticket++), PVFS_LK_GRANTED);
	b->no_retry = true;
	assert_int_equal(do_truncate(b, f, 100, NULL, NULL), -EAGAIN);
	assert_int_equal(do_open(b, f, PVFS_O_WRITE | PVFS_O_TRUNC, NULL), -EAGAIN);
	assert_int_equal(do_truncate(a, f, 50, NULL, NULL), 0);
	assert_int_equal(append(a, f, PVFS_LK_UNLOCK, 0), PVFS_LK_GRANTED);
	assert_int_equal(told(t, b), 12);
	assert_int_equal(append(b, f, PVFS_LK_WRITE, 12), PVFS_LK_GRANTED);
	assert_int_equal(do_truncate(b, f, 100, NULL, NULL), 0);
	a->no_retry = true;
	assert_int_equal(do_truncate(a, f, 10, NULL, NULL), -EAGAIN);
	/* A session that ends takes its lock along; and truncations leave none. */
	close_session(b);
	assert_int_equal(do_truncate(a, f, 10, NULL, NULL), 0);
	assert_int_equal(in_table(t), 0);
}

/* ---- the model ---- */

#define BYTES 64u
#define OWNERS 4u

/* The type of every owner's lock on every byte. */
static u8 model[2][OWNERS][BYTES];

static bool model_conflict(u32 file, u32 owner, u8 type, u32 start, u32 end)
{
	u32 o, b;

	for (o = 0; o < OWNERS; o++) {
		if (o == owner)
			continue;
		for (b = start; b <= end; b++)
			if (model[file][o][b] == PVFS_LK_WRITE ||
			    (model[file][o][b] && type == PVFS_LK_WRITE))
				return true;
	}
	return false;
}

/* GETLK's answer must be the first maximal range of one owner that is in the way. */
static void model_check_get(struct lk *t, u32 file, u32 owner, u8 type, u32 start, u32 end)
{
	struct pvfs_getlk_req rq = {
		.fid = file ? t->fid2 : t->fid, .kind = PVFS_LK_RECORD, .type = type,
		.owner = owner / 2, .start = start, .end = end,
	};
	struct pvfs_getlk_rep rp;
	u32 o, b, from, to;
	bool found = false;

	assert_int_equal(fx_getlk(&t->c[owner % 2], &rq, &rp), 0);
	assert_int_equal(rp.type != PVFS_LK_UNLOCK, model_conflict(file, owner, type, start, end));
	if (rp.type == PVFS_LK_UNLOCK)
		return;
	assert_true(rp.type == PVFS_LK_WRITE || type == PVFS_LK_WRITE);
	for (o = 0; o < OWNERS && !found; o++) {
		if (o == owner || rp.pid != o / 2 + 100 || rp.own != (o % 2 == owner % 2))
			continue;
		b = max((u32)rp.start, start);
		if (b >= BYTES || model[file][o][b] != rp.type)
			continue;
		for (from = b; from && model[file][o][from - 1] == rp.type; from--)
			;
		for (to = b; to + 1 < BYTES && model[file][o][to + 1] == rp.type; to++)
			;
		found = rp.start == from && rp.end == to;
	}
	assert_true(found);
}

/*
 * 100,000 operations of four owners, two a session, on two files, each answered as the model says.
 */
static void ranges(void **state)
{
	struct lk *t = *state;
	u32 seed = 12345, i, file, owner, start, end, b, granted = 0, refused = 0;
	bool no;
	u8 type;
	int rc;

	memset(model, 0, sizeof(model));
	for (i = 0; i < 100000; i++) {
		file = rand_r(&seed) % 2;
		owner = rand_r(&seed) % OWNERS;
		type = rand_r(&seed) % 3;
		start = rand_r(&seed) % BYTES;
		end = start + rand_r(&seed) % min(BYTES - start, rand_r(&seed) % 8 ? 12u : BYTES);
		if (rand_r(&seed) % 4 == 0 && type) {
			model_check_get(t, file, owner, type, start, end);
			continue;
		}
		no = type && model_conflict(file, owner, type, start, end);
		rc = rec(&t->c[owner % 2], file ? t->fid2 : t->fid, type, owner / 2, start, end);
		assert_int_equal(rc, no ? PVFS_LK_CONFLICT : PVFS_LK_GRANTED);
		if (no) {
			refused++;
			continue;
		}
		granted++;
		for (b = start; b <= end; b++)
			model[file][owner][b] = type;
	}
	assert_true(granted > 20000 && refused > 10000);
	/* What is left: the ranges of the model, counted; then nothing. */
	for (i = 0, file = 0; file < 2; file++)
		for (owner = 0; owner < OWNERS; owner++)
			for (b = 0; b < BYTES; b++)
				i += model[file][owner][b] &&
				     (!b || model[file][owner][b - 1] != model[file][owner][b]);
	assert_int_equal(in_table(t), i);
	close_session(&t->c[0]);
	close_session(&t->c[1]);
	assert_int_equal(in_table(t), 0);
}

/*
 * The same with waiting: whenever something changed, every waiter that the model can let in must
 * have been, and no two owners ever hold what excludes one another.
 */
static void ranges_waiting(void **state)
{
	struct lk *t = *state;
	struct { u64 ticket; u8 type; u32 start, end; } w[OWNERS] = { 0 };
	u32 seed = 777, i, o, owner, start, end, b, waited = 0, deadlocks = 0;
	u64 session, ticket;
	u8 type;
	int rc;

	memset(model, 0, sizeof(model));
	for (i = 0; i < 30000; i++) {
		owner = rand_r(&seed) % OWNERS;
		type = rand_r(&seed) % 3;
		start = rand_r(&seed) % BYTES;
		end = start + rand_r(&seed) % min(BYTES - start, 24u);
		if (w[owner].ticket) {
			if (rand_r(&seed) % 3)
				continue;
			rc = cancel(&t->c[owner % 2], t->fid, w[owner].type, owner / 2, w[owner].start,
				    w[owner].end, w[owner].ticket, 0);
			assert_int_equal(rc, 0);
			w[owner].ticket = 0;
		} else {
			ticket = type ? next_ticket++ : 0;
			rc = ask(&t->c[owner % 2], t->fid, PVFS_LK_RECORD, type, owner / 2, start, end,
				 type ? PVFS_LK_WAIT : 0, ticket);
			if (rc == PVFS_LK_QUEUED) {
				w[owner].ticket = ticket;
				w[owner].type = type;
				w[owner].start = start;
				w[owner].end = end;
				waited++;
			} else if (rc == PVFS_LK_DEADLOCK) {
				deadlocks++;
			} else {
				assert_int_equal(rc, PVFS_LK_GRANTED);
				if (type)
					assert_false(model_conflict(0, owner, type, start, end));
				for (b = start; b <= end; b++)
					model[0][owner][b] = type;
			}
		}
		while (mgr_locks_grants(&t->f->m->locks, &session, &ticket, 1, false)) {
			for (o = 0; o < OWNERS && w[o].ticket != ticket; o++)
				;
			assert_true(o < OWNERS);
			assert_false(model_conflict(0, o, w[o].type, w[o].start, w[o].end));
			for (b = w[o].start; b <= w[o].end; b++)
				model[0][o][b] = w[o].type;
			w[o].ticket = 0;
		}
		/* Somebody can always go on: else it should have been called a deadlock. */
		for (o = 0; o < OWNERS && w[o].ticket; o++)
			;
		assert_true(o < OWNERS);
	}
	assert_true(waited > 1000 && deadlocks > 10);
}

/* ---- cases ---- */

static void kinds(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1];
	struct pvfs_getlk_req g = {
		.fid = t->fid, .kind = PVFS_LK_RECORD, .type = PVFS_LK_WRITE, .owner = 9, .end = END,
	};
	struct pvfs_getlk_rep rp;

	/* flock and record locks don't see one another; record and OFD locks do. */
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, 0, 1001), PVFS_LK_GRANTED);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(flk(b, t->fid, PVFS_LK_READ, 1, 0, 1002), PVFS_LK_CONFLICT);
	assert_int_equal(ask(a, t->fid, PVFS_LK_OFD, PVFS_LK_READ, 1, 5, 20, 0, 1003),
			 PVFS_LK_CONFLICT);
	/* The same number, another kind: another owner, in the same session too. */
	assert_int_equal(ask(b, t->fid, PVFS_LK_OFD, PVFS_LK_READ, 1, 5, 20, 0, 1004),
			 PVFS_LK_CONFLICT);
	assert_int_equal(ask(b, t->fid, PVFS_LK_OFD, PVFS_LK_READ, 1, 10, 20, 0, 1005),
			 PVFS_LK_GRANTED);
	assert_int_equal(fx_getlk(a, &g, &rp), 0);
	assert_int_equal(rp.type, PVFS_LK_WRITE);
	assert_int_equal(rp.kind, PVFS_LK_RECORD);
	assert_int_equal(rp.pid, 101);
	assert_int_equal(rp.own, 0);
	g.start = 10;
	assert_int_equal(fx_getlk(b, &g, &rp), 0);
	assert_int_equal(rp.kind, PVFS_LK_OFD);
	assert_int_equal(rp.own, 1);
	assert_int_equal(rp.start, 10);
	assert_int_equal(rp.end, 20);
	g.start = 21;
	assert_int_equal(fx_getlk(b, &g, &rp), 0);
	assert_int_equal(rp.type, PVFS_LK_UNLOCK);
}

static void bad_requests(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0];
	struct pvfs_fid none = { .ino = 999999, .gen = 1 };

	assert_int_equal(ask(a, t->fid, 0, 1, 1, 0, 1, 0, 1), -EINVAL);
	assert_int_equal(ask(a, t->fid, 4, 1, 1, 0, 1, 0, 1), -EINVAL);
	assert_int_equal(rec(a, t->fid, 3, 1, 0, 1), -EINVAL);
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 2, 1), -EINVAL);
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 2, END + 1), -EINVAL);
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 2, ~0ull), -EINVAL);
	assert_int_equal(ask(a, t->fid, PVFS_LK_FLOCK, 1, 1, 1, END, 0, 1), -EINVAL);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_READ, 1, 2, 3, 0), -EINVAL);
	assert_int_equal(ask(a, t->fid, PVFS_LK_RECORD, 1, 1, 0, 1, 0x80, 1), -EINVAL);
	assert_int_equal(cancel(a, t->fid, 1, 1, 0, 1, 0, 0), -EINVAL);
	assert_int_equal(cancel(a, t->fid, 0, 1, 0, 1, 5, 0), -EINVAL);
	assert_true(rec(a, none, PVFS_LK_READ, 1, 0, 1) < 0);
	/* Unlocking what is not there is fine. */
	assert_int_equal(rec(a, none, PVFS_LK_UNLOCK, 1, 0, 1), PVFS_LK_GRANTED);
	assert_int_equal(in_table(t), 0);
	/* A ticket that waits for one thing can't ask for another. */
	assert_int_equal(rec(&t->c[1], t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 1, 0, 9, 5000), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 1, 0, 8, 5000), -EINVAL);
	assert_int_equal(rec_wait(a, t->fid2, PVFS_LK_WRITE, 1, 0, 9, 5000), -EINVAL);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 1, 0, 9, 5000), PVFS_LK_QUEUED);
	assert_int_equal(in_table(t), 2);
}

static void fairness(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1], *c = &t->c[2], *d = &t->c[3];

	/* A reader, a writer that waits, a reader that must not overtake it. */
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 0, 99), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 99, 11), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_READ, 1, 50, 60, 12), PVFS_LK_QUEUED);
	/*
	 * But one that the writer does not want is free to all, and who does not wait asks only
	 * what is held.
	 */
	assert_int_equal(rec_wait(d, t->fid, PVFS_LK_READ, 1, 100, 110, 13), PVFS_LK_GRANTED);
	assert_int_equal(rec(d, t->fid, PVFS_LK_READ, 2, 50, 60), PVFS_LK_GRANTED);
	assert_int_equal(rec(d, t->fid, PVFS_LK_UNLOCK, 2, 0, END), PVFS_LK_GRANTED);
	/* Who holds some of it already does not queue behind who waits for that. */
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_READ, 1, 90, 105, 14), PVFS_LK_GRANTED);
	assert_int_equal(told(t, a), 0);
	/* Asking again keeps the place. */
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 99, 11), PVFS_LK_QUEUED);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(told(t, b), 11);
	assert_int_equal(told(t, b), 0);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 99, 11), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_READ, 1, 50, 60, 12), PVFS_LK_QUEUED);
	/* A downgrade is as good as an unlock for readers. */
	assert_int_equal(rec(b, t->fid, PVFS_LK_READ, 1, 0, 99), PVFS_LK_GRANTED);
	assert_int_equal(told(t, c), 12);
}

static void deadlocks(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1], *c = &t->c[2];

	/* Two, on two files, in two sessions. */
	assert_int_equal(rec(a, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec(b, t->fid2, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(a, t->fid2, PVFS_LK_READ, 1, 5, 5, 21), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_READ, 1, 5, 5, 22), PVFS_LK_DEADLOCK);
	/* Without waiting it is only a conflict, and nothing was changed by the refusal. */
	assert_int_equal(rec(b, t->fid, PVFS_LK_READ, 1, 5, 5), PVFS_LK_CONFLICT);
	/* A third in between. */
	assert_int_equal(rec(c, t->fid, PVFS_LK_WRITE, 7, 20, 29), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_READ, 1, 20, 20, 23), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_WRITE, 7, 0, 0, 24), PVFS_LK_DEADLOCK);
	/*
	 * The same in another place of the circle is one of two threads, which may go on: not c's
	 * 8.
	 */
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_WRITE, 8, 0, 0, 25), PVFS_LK_QUEUED);
	assert_int_equal(rec(b, t->fid2, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(told(t, a), 21);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(told(t, c), 25);

	/* flock and OFD: nobody knows that the owners are stuck. */
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, 0, 31), PVFS_LK_GRANTED);
	assert_int_equal(flk(b, t->fid2, PVFS_LK_WRITE, 1, 0, 32), PVFS_LK_GRANTED);
	assert_int_equal(flk(a, t->fid2, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 33), PVFS_LK_QUEUED);
	assert_int_equal(flk(b, t->fid, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 34), PVFS_LK_QUEUED);
}

/* Waiting in order may close a circle that nobody's lock makes: it is opened. */
static void turns_are_no_deadlock(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1], *c = &t->c[2];

	assert_int_equal(rec(c, t->fid, PVFS_LK_READ, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec(a, t->fid2, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 9, 41), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_READ, 1, 0, 9, 42), PVFS_LK_QUEUED);
	/* c waits for a, which waits for its turn behind b, which waits for c. */
	assert_int_equal(rec_wait(c, t->fid2, PVFS_LK_READ, 1, 0, 9, 43), PVFS_LK_QUEUED);
	assert_int_equal(told(t, a), 42);
	assert_int_equal(rec(a, t->fid2, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(told(t, c), 43);
	assert_int_equal(rec(c, t->fid, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(told(t, b), 41);
}

static void flock_upgrade(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1];

	/*
	 * Both hold it shared and want it alone: who waits has given up what it had, so the other
	 * can go on.
	 */
	assert_int_equal(flk(a, t->fid, PVFS_LK_READ, 1, 0, 51), PVFS_LK_GRANTED);
	assert_int_equal(flk(b, t->fid, PVFS_LK_READ, 1, 0, 52), PVFS_LK_GRANTED);
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, 0, 53), PVFS_LK_CONFLICT);
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 54), PVFS_LK_QUEUED);
	assert_int_equal(flk(b, t->fid, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 55), PVFS_LK_GRANTED);
	assert_int_equal(told(t, a), 0);
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 54), PVFS_LK_QUEUED);
	assert_int_equal(flk(b, t->fid, PVFS_LK_UNLOCK, 1, 0, 0), PVFS_LK_GRANTED);
	assert_int_equal(told(t, a), 54);
	assert_int_equal(flk(a, t->fid, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 54), PVFS_LK_GRANTED);
}

static void cancelling(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1], *c = &t->c[2];

	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 9, 61), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_READ, 1, 0, 9, 62), PVFS_LK_QUEUED);
	/* Those behind who leaves may come in. */
	assert_int_equal(cancel(b, t->fid, PVFS_LK_WRITE, 1, 0, 9, 61, 0), 0);
	assert_int_equal(told(t, c), 62);
	/* Granted meanwhile: taken back, or kept. Twice is as good as once. */
	assert_int_equal(cancel(c, t->fid, PVFS_LK_READ, 1, 0, 9, 62, PVFS_LK_KEEP), 1);
	assert_int_equal(cancel(c, t->fid, PVFS_LK_READ, 1, 0, 9, 62, 0), 1);
	assert_int_equal(cancel(c, t->fid, PVFS_LK_READ, 1, 0, 9, 62, 0), 0);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 0, END), PVFS_LK_GRANTED);
	assert_int_equal(in_table(t), 0);
	/* What the owner had before is not touched by a call that was not granted. */
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 0, 4), PVFS_LK_GRANTED);
	assert_int_equal(rec(b, t->fid, PVFS_LK_READ, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 1, 0, 9, 63), PVFS_LK_QUEUED);
	assert_int_equal(cancel(a, t->fid, PVFS_LK_WRITE, 1, 0, 9, 63, PVFS_LK_KEEP), 0);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 4, 4), PVFS_LK_CONFLICT);
	assert_int_equal(cancel(a, t->fid, PVFS_LK_WRITE, 1, 0, 9, 63, 0), 0);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 4, 4), PVFS_LK_CONFLICT);
}

static void session_death(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1], *c = &t->c[2];

	/* It held and waited, in several places. */
	assert_int_equal(rec(a, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(rec(a, t->fid, PVFS_LK_WRITE, 2, 20, 29), PVFS_LK_GRANTED);
	assert_int_equal(flk(a, t->fid2, PVFS_LK_WRITE, 1, 0, 70), PVFS_LK_GRANTED);
	assert_int_equal(rec(b, t->fid, PVFS_LK_READ, 1, 40, 49), PVFS_LK_GRANTED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 3, 40, 49, 71), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(a, t->fid, PVFS_LK_WRITE, 4, 40, 49, 72), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(c, t->fid, PVFS_LK_READ, 1, 40, 49, 73), PVFS_LK_QUEUED);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 29, 74), PVFS_LK_QUEUED);
	assert_int_equal(flk(c, t->fid2, PVFS_LK_READ, 1, PVFS_LK_WAIT, 75), PVFS_LK_QUEUED);
	close_session(a);
	assert_int_equal(told(t, c), 73);
	assert_int_equal(told(t, c), 75);
	assert_int_equal(told(t, b), 74);
	assert_int_equal(told(t, c), 0);
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 100, 100), -ESTALE);
	/* The same by expiry. */
	t->f->conf.lease_ms = 0;
	mgr_sessions_expire(t->f->m);
	t->f->conf.lease_ms = 30000;
	assert_int_equal(in_table(t), 0);
}

static void limits(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1];
	u32 i;

	t->f->m->locks.max_session = 10;
	for (i = 0; i < 9; i++)
		assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 10 * i, 10 * i + 5), PVFS_LK_GRANTED);
	assert_int_equal(rec(a, t->fid, PVFS_LK_READ, 1, 1000, 1000), -ENOLCK);
	assert_int_equal(flk(a, t->fid2, PVFS_LK_READ, 1, 0, 81), -ENOLCK);
	/* Others have their own; unlocking always goes, a split too. */
	assert_int_equal(flk(b, t->fid2, PVFS_LK_READ, 1, 0, 82), PVFS_LK_GRANTED);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 2, 3), PVFS_LK_GRANTED);
	assert_int_equal(in_table(t), 11);
	assert_int_equal(rec(a, t->fid, PVFS_LK_UNLOCK, 1, 0, 50), PVFS_LK_GRANTED);
	t->f->m->locks.max = in_table(t) + 1;
	assert_int_equal(rec(b, t->fid, PVFS_LK_READ, 1, 1000, 1000), -ENOLCK);
	/* A waiter counts as well. */
	assert_int_equal(flk(a, t->fid2, PVFS_LK_WRITE, 1, PVFS_LK_WAIT, 83), -ENOLCK);
}

static int done(struct fx_client *c)
{
	struct pvfs_reclaim_done_req rq = { .epoch = c->f->m->epoch };
	struct pvfs_reclaim_done_rep rp;

	return fx_reclaim_done(c, &rq, &rp);
}

static void restart(void **state)
{
	struct lk *t = *state;
	struct fx_client *a = &t->c[0], *b = &t->c[1];
	struct pvfs_getlk_req g = { .fid = t->fid, .kind = PVFS_LK_RECORD, .type = 1, .end = END };
	struct pvfs_getlk_rep rp;

	assert_int_equal(rec(a, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	/* Nothing to be reclaimed: there was no restart. What it has already it may say again. */
	assert_int_equal(ask(a, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 20, 29, PVFS_LK_RECLAIM, 91),
			 -ENOLCK);
	assert_int_equal(ask(a, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 3, 9, PVFS_LK_RECLAIM, 91),
			 PVFS_LK_GRANTED);
	fx_reopen(t->f);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRACE);
	assert_int_equal(rec_wait(b, t->fid, PVFS_LK_WRITE, 1, 0, 9, 92), PVFS_LK_GRACE);
	b->no_retry = true;
	assert_int_equal(fx_getlk(b, &g, &rp), -EAGAIN);
	assert_int_equal(ask(a, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 0, 9, PVFS_LK_RECLAIM, 93),
			 PVFS_LK_GRANTED);
	assert_int_equal(ask(b, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 0, 9, PVFS_LK_RECLAIM, 94),
			 PVFS_LK_CONFLICT);
	/* All four have told what they had: it is over, without the lease's time. */
	assert_int_equal(done(a), 0);
	assert_int_equal(done(a), 0);
	assert_int_equal(done(b), 0);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRACE);
	assert_int_equal(done(&t->c[2]), 0);
	close_session(&t->c[3]);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_CONFLICT);
	assert_int_equal(fx_getlk(b, &g, &rp), 0);
	assert_int_equal(rp.type, PVFS_LK_WRITE);
	assert_int_equal(ask(b, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 50, 59, PVFS_LK_RECLAIM, 95),
			 -ENOLCK);
	/* Or the grace runs out. */
	fx_reopen(t->f);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRACE);
	fx_end_grace(t->f);
	assert_int_equal(rec(b, t->fid, PVFS_LK_WRITE, 1, 0, 9), PVFS_LK_GRANTED);
	assert_int_equal(ask(a, t->fid, PVFS_LK_RECORD, PVFS_LK_WRITE, 1, 0, 9, PVFS_LK_RECLAIM, 96),
			 -ENOLCK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(appends, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(fairness, setup, teardown),
		cmocka_unit_test_setup_teardown(deadlocks, setup, teardown),
		cmocka_unit_test_setup_teardown(turns_are_no_deadlock, setup, teardown),
		cmocka_unit_test_setup_teardown(flock_upgrade, setup, teardown),
		cmocka_unit_test_setup_teardown(cancelling, setup, teardown),
		cmocka_unit_test_setup_teardown(session_death, setup, teardown),
		cmocka_unit_test_setup_teardown(limits, setup, teardown),
		cmocka_unit_test_setup_teardown(restart, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
