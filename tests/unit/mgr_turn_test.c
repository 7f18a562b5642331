// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_turn_test.c - turns: who is in a file and who is out of it, who waits for whom, what ends that, and
 * what of it outlives the manager.
 */
#include "mgr_turn_fixture.h"

/* Alone, as the other is told to go out, and says that it has, at once. */
static void asks(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	struct pvfs_fid fid = h.at.fid;
	u64 ino = h.at.fid.ino, round;

	assert_int_equal(turn(&t->b, h.at.fid, PVFS_TN_ALONE | PVFS_TN_READ, 1, NULL), -EINVAL);
	assert_int_equal(turn(&t->b, h.at.fid, 4, 1, NULL), -EINVAL);
	fid.gen++;
	assert_int_equal(alone(&t->b, fid, 7, NULL), -ESTALE);
	assert_int_equal(turn(&t->b, h.at.fid, 0, 0, NULL), -EINVAL);
	assert_int_equal(turn(&t->b, fx_root, 0, 1, NULL), -EINVAL);
	assert_true(in(t, &t->b, ino));
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), -EINPROGRESS);
	assert_false(in(t, &t->b, ino));
	park(&t->b, ino);
	round = yields(&t->a, ino, 1);
	assert_int_equal(seen.n, 0);
	/* Nobody is given a lease meanwhile. */
	assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_false(granted(&at));
	/* Of another round, session or inode it says nothing. */
	mgr_round_told(m, t->a.session, ino, round + 1, 0);
	mgr_round_told(m, t->a.session, ino, round - 1, 0);
	mgr_round_told(m, t->b.session, ino, round, 0);
	mgr_round_told(m, t->a.session, ino + 1, round, 0);
	assert_int_equal(seen.nresumed, 0);
	assert_true(in(t, &t->a, ino));
	/* Not yet, or lost: sent again, the same round. */
	mgr_round_told(m, t->a.session, ino, round, -EAGAIN);
	mgr_recall_tick(m, mgr_mono_ms());
	assert_true(yields(&t->a, ino, 2) == round);
	mgr_round_told(m, t->a.session, ino, round, -ENOTCONN);
	mgr_recall_tick(m, mgr_mono_ms() + 100 * LEASE_MS);
	assert_true(yields(&t->a, ino, 3) == round);
	assert_int_equal(seen.nresumed, 0);
	mgr_round_told(m, t->a.session, ino, round, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(atomic_load(&m->recalls.yielded), 1);
	assert_false(in(t, &t->a, ino));
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	assert_true(writes(t, &t->b, ino) && in(t, &t->b, ino));
	over(t);
	assert_int_equal(m->recalls.n + atomic_load(&m->recalls.yields), 0);
	/* Late. */
	mgr_round_told(m, t->a.session, ino, round, 0);
	/* Who is out and opens it once more stays out, is in nobody's way by that, and has no WRITE. */
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_true(in(t, &t->b, ino));
	assert_int_equal(do_close(&t->b, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_false(granted(&at));
	assert_false(in(t, &t->a, ino));
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), 0);
	assert_true(granted(&at) && in(t, &t->a, ino));
	assert_int_equal(seen.nyields, 3);
}

/* It says so by REPORT, and has been given a RECALL as well. */
static void says_later(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_report_req rq = { .flags = PVFS_RP_RECALLED };
	struct pvfs_report_rep rp;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino, round;

	rq.fid = h.at.fid;
	give(t, &h, 1);
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	/* b is in, and has the lease: it is not asked for that by itself. */
	round = yields(&t->b, ino, 2);
	assert_int_equal(seen.n, 0);
	mgr_round_told(m, t->b.session, ino, round, -EAGAIN);
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.session[0], t->b.session);
	rq.report = wrote(t, &h.at, 0, 9000);
	rq.settled = round - 1;
	rq.flags = 0;
	assert_int_equal(fx_report(&t->b, &rq, &rp), 0);
	assert_int_equal(seen.nresumed, 0);
	rq.settled = round;
	rq.flags = PVFS_RP_RECALLED;
	assert_int_equal(fx_report(&t->b, &rq, &rp), 0);
	assert_int_equal(seen.nresumed, 2);
	assert_false(writes(t, &t->b, ino) || in(t, &t->b, ino));
	/* The plain one was resumed first; a comes before it all the same. */
	assert_int_equal(again(&t->a, 1, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(at.size, 9000);
	over(t);
	/* One that comes late waits for nobody, and takes nothing from who has it now. */
	assert_int_equal(reported(&t->b, h.at.fid, round, PVFS_RP_RECALLED), 0);
	assert_true(writes(t, &t->a, ino) && in(t, &t->a, ino));
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	/* A YIELD answered 0 answers the RECALL too, and ends the lease, whatever it is. */
	park(&t->plain, ino);
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(atomic_load(&m->recalls.write_recalled), 1);
	mgr_round_told(m, t->a.session, ino, yields(&t->a, ino, 3), 0);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(atomic_load(&m->recalls.write_recalled), 2);
	assert_int_equal(m->recalls.n, 0);
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 0);
	over(t);
}

/* Both want to be alone: both are out, the first gets it, and is told to yield to the other. */
static void both_ask(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino, round;

	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->b, ino);
	round = yields(&t->a, ino, 1);
	/* a's own wish is the answer; nobody is in any more, and it is b's turn. */
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	assert_false(in(t, &t->a, ino));
	park(&t->a, ino);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at) && in(t, &t->b, ino));
	mgr_recall_over(m, seen.resumed[0]);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(again(&t->a, 1, h.at.fid, PVFS_TN_ALONE, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	mgr_recall_over(m, seen.resumed[1]);
	/* The answer to that YIELD comes too late to say anything. */
	mgr_round_told(m, t->a.session, ino, round, 0);
	assert_true(yields(&t->b, ino, 2) != round);
	mgr_round_told(m, t->b.session, ino, round, 0);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(reported(&t->b, h.at.fid, seen.yield[1].round, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 3);
	assert_true(barred(t));
	assert_int_equal(again(&t->a, 2, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	mgr_recall_over(m, seen.resumed[2]);
	assert_false(barred(t));
}

/* A TURN of who has the lease is no answer to a YIELD: it has yet to write back. */
static void has_it(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino, round;

	give(t, &h, 1);
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	round = yields(&t->b, ino, 2);
	t->b.no_retry = true;
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EAGAIN);
	/* Without ALONE it waits for nobody, and changes nothing, though a is before it. */
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), 0);
	assert_true(at.flags & PVFS_AF_OUT);
	assert_int_equal(turn(&t->b, h.at.fid, 0, 3, &at), 0);
	assert_false(granted(&at));
	/* It may not have heard of the lease, and said that it was out. */
	mgr_round_told(m, t->b.session, ino, round, 0);
	assert_int_equal(seen.nresumed, 0);
	assert_true(yields(&t->b, ino, 3) != round);
	round = seen.yield[2].round;
	assert_true(writes(t, &t->b, ino) && in(t, &t->b, ino) && !in(t, &t->a, ino));
	/* a is killed, and closes it: b goes out all the same. */
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(reported(&t->b, h.at.fid, round, PVFS_RP_RECALLED), 0);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 1, NULL), -EBADF);
	over(t);
	assert_int_equal(alone(&t->b, h.at.fid, 4, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(m->recalls.n, 0);
}

/* Beside others, as long as none has it alone. */
static void comes_in(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), 0);
	assert_false(granted(&at));
	assert_true(at.flags & PVFS_AF_WRITERS);
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	give(t, &h, 1);
	assert_int_equal(turn(&t->a, h.at.fid, 0, 2, &at), -EINPROGRESS);
	assert_false(in(t, &t->a, ino));
	park(&t->a, ino);
	assert_int_equal(seen.nyields, 1);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.session[0], t->b.session);
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, h.at.fid, 0, 2, &at), 0);
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	assert_false(writes(t, &t->a, ino) || writes(t, &t->b, ino));
	over(t);
	/* Who has WRITE has it yet. */
	give(t, &h, 2);
	assert_int_equal(turn(&t->b, h.at.fid, 0, 3, &at), 0);
	assert_true(granted(&at));
	assert_true(in(t, &t->b, ino) && writes(t, &t->b, ino));
	/* Where nothing may wait, it comes to nothing. */
	t->a.park = false;
	t->a.no_retry = true;
	assert_int_equal(turn(&t->a, h.at.fid, 0, 3, &at), -EAGAIN);
	assert_int_equal(alone(&t->a, h.at.fid, 3, &at), -EAGAIN);
	assert_false(in(t, &t->a, ino));
	assert_int_equal(m->recalls.n, 0);
}

/* Older ones, and those that come twice. */
static void numbers(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino, round;

	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(alone(&t->b, h.at.fid, 4, &at), -EINVAL);
	/* The same once more, before it was answered: it waits behind the first. */
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), -EINPROGRESS);
	park(&t->b, ino);
	round = yields(&t->a, ino, 1);
	mgr_round_told(m, t->a.session, ino, round, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 5, &at), 0);
	assert_true(granted(&at));
	/* The other is told the same, too. */
	mgr_recall_over(m, seen.resumed[0]);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(again(&t->b, 1, h.at.fid, PVFS_TN_ALONE, 5, &at), 0);
	mgr_recall_over(m, seen.resumed[1]);
	seen.nresumed = 0;
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), 0);
	assert_true(granted(&at));
	/* It has gone out since: it stays out. */
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(seen.nresumed, 0);
	mgr_round_told(m, t->b.session, ino, yields(&t->b, ino, 2), 0);
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), 0);
	assert_false(granted(&at) || in(t, &t->b, ino));
	assert_int_equal(alone(&t->b, h.at.fid, 4, &at), -EINVAL);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	over(t);
	/* What is told of a file that another has alone is settled for it; it takes nobody's turn. */
	assert_int_equal(alone(&t->b, h.at.fid, 5, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nsettles, 1);
	assert_int_equal(seen.nyields, 2);
	mgr_round_told(m, t->a.session, ino, seen.round[0], 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 5, &at), 0);
	assert_true(writes(t, &t->a, ino));
	assert_false(in(t, &t->b, ino));
	over(t);
}

/* ---- what happens while it is read ---- */

struct meanwhile {
	struct wl *t;
	struct hf h;
	enum { SAME, YIELDS, CLOSES, LATER } what;
	int err;
	bool granted;
};

static void *other_does(void *arg)
{
	struct meanwhile *w = arg;
	struct pvfs_attr at;

	if (w->what == YIELDS) {
		w->err = alone(&w->t->a, w->h.at.fid, 2, &at);
		park(&w->t->a, w->h.at.fid.ino);
		mgr_round_told(w->t->f->m, w->t->b.session, w->h.at.fid.ino, yields(&w->t->b, w->h.at.fid.ino, 1), 0);
	} else if (w->what == CLOSES) {
		w->err = do_close(&w->t->b, w->h.at.fid, RW, NULL);
	} else {
		w->err = alone(&w->t->b, w->h.at.fid, w->what == LATER ? 2 : 1, &at);
		w->granted = granted(&at);
	}
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

static void while_asked(void *arg)
{
	struct meanwhile *w = arg;
	pthread_t thread;

	w->t->f->x.meanwhile = NULL;
	assert_int_equal(pthread_create(&thread, NULL, other_does, w), 0);
	pthread_join(thread, NULL);
}

/* b asks to be alone in a new file; as a may have written, the iods are asked how long that is, and meanwhile ... */
static void asked(struct wl *t, struct meanwhile *w, const char *name, int what, int err)
{
	struct pvfs_attr at;

	w->h = both(t, name);
	w->what = what;
	mgr_opens_out(&t->f->m->opens, w->h.at.fid.ino, t->a.session);
	t->f->x.meanwhile = while_asked;
	t->f->x.meanwhile_arg = w;
	assert_int_equal(alone(&t->b, w->h.at.fid, 1, &at), err);
	assert_null(t->f->x.meanwhile);
}

/*
 * It has come twice, and the other is answered: it leaves that as it is. Or it is told to go out, and does: then
 * it asks once more, which the client knows nothing of, and is told to go out again.
 */
static void overtaken(void **state)
{
	struct wl *t = *state;
	struct meanwhile w = { .t = t };
	struct pvfs_attr at;
	u64 ino;
	u32 i;

	t->b.no_retry = true;
	for (i = 0; i < 2; i++) {
		asked(t, &w, i ? "one" : "two", i ? YIELDS : SAME, i ? 0 : -EAGAIN);
		ino = w.h.at.fid.ino;
		assert_int_equal(w.err, i ? -EINPROGRESS : 0);
		assert_true(w.granted && writes(t, &t->b, ino) && in(t, &t->b, ino));
		assert_int_equal(alone(&t->b, w.h.at.fid, 1, &at), 0);
		/* Also while another waits. */
		assert_true(granted(&at));
	}
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, w.h.at.fid, PVFS_TN_ALONE, 2, &at), -EINPROGRESS);
	park(&t->a, ino);
	yields(&t->b, ino, 2);
	t->f->m->recalls.resume = only_over;
	mgr_recall_over(t->f->m, seen.resumed[0]);
	mgr_recall_session_end(t->f->m, t->b.session);
}

/* It is closed meanwhile, or asks anew: of what comes to nothing nothing is left, and what is a later one's is its. */
static void overtakes_itself(void **state)
{
	struct wl *t = *state;
	struct meanwhile w = { .t = t };
	struct pvfs_attr at;
	u64 ino;
	u32 i;

	t->b.no_retry = true;
	for (i = 0; i < 2; i++) {
		asked(t, &w, i ? "one" : "two", i ? LATER : CLOSES, -EAGAIN);
		ino = w.h.at.fid.ino;
		assert_int_equal(w.err, 0);
		assert_int_equal(w.granted, i);
		assert_int_equal(writes(t, &t->b, ino), i);
		assert_int_equal(in(t, &t->b, ino), i);
		assert_int_equal(alone(&t->b, w.h.at.fid, 1, &at), i ? -EINVAL : -EBADF);
	}
	assert_int_equal(atomic_load(&t->f->m->leases.writes), 1);
}

/* Who takes no leases is not asked: there is no WRITE lease then. */
static void plain_ones(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct mgr_session *s;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), 0);
	assert_false(granted(&at));
	assert_true(in(t, &t->b, ino) && in(t, &t->a, ino));
	assert_int_equal(seen.nyields, 0);
	/* Nor has it one itself. */
	assert_int_equal(alone(&t->plain, h.at.fid, 1, &at), 0);
	assert_false(granted(&at));
	assert_int_equal(seen.nyields, 0);
	assert_int_equal(do_close(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	/* It comes while another is waited for, or did not answer in time: then it is found out. */
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	mgr_round_told(m, t->a.session, ino, yields(&t->a, ino, 1), 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 2, &at), 0);
	assert_false(granted(&at));
	assert_true(in(t, &t->b, ino) && !in(t, &t->a, ino));
	over(t);
	assert_int_equal(do_close(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	yields(&t->b, ino, 2);
	s = mgr_session_lookup(m, t->b.session);
	atomic_store(&s->leases, false);
	mgr_session_put(s);
	assert_int_equal(seen.nresumed, 0);
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_false(granted(&at));
	over(t);
	assert_int_equal(seen.nyields, 2);
	/* It opens just before they would be told. */
	s = mgr_session_lookup(m, t->b.session);
	atomic_store(&s->leases, true);
	mgr_session_put(s);
	assert_int_equal(alone(&t->a, h.at.fid, 2, &at), -EINPROGRESS);
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	fx_op.nnoted = 1;
	fx_op.noted[0] = (struct mgr_noted){ .ino = ino, .yield = true };
	park(&t->a, ino);
	assert_int_equal(seen.nyields, 2);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 2, &at), 0);
	assert_false(granted(&at));
	over(t);
}

/* Nobody writes: all may read. */
static void nobody_writes(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_close(&t->b, h.at.fid, RW, NULL), 0);
	mgr_leases_drop(&m->leases, ino, t->b.session);
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), 0);
	assert_false(granted(&at));
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), 0);
	assert_false(granted(&at));
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	assert_int_equal(turn(&t->b, h.at.fid, 0, 2, &at), 0);
	assert_false(at.flags & (PVFS_AF_LEASE | PVFS_AF_WLEASE));
	assert_int_equal(seen.nyields, 0);
}

/* Who has it not open any more need not go out; nor who is gone. */
static void ends(void **state)
{
	struct pvfs_session_close_req srq = { };
	struct pvfs_session_close_rep srp;
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->b, ino);
	yields(&t->a, ino, 1);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(seen.nresumed, 0);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(atomic_load(&m->recalls.yielded), 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	over(t);
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EBADF);
	/* It opens it anew: that is recalled, and it is in. */
	assert_int_equal(do_open(&t->a, h.at.fid, RW, NULL), -EINPROGRESS);
	park(&t->a, ino);
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	assert_int_equal(do_open(&t->a, h.at.fid, RW, NULL), 0);
	over(t);
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	yields(&t->b, ino, 2);
	assert_int_equal(fx_session_close(&t->b, &srq, &srp), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	over(t);
	/* The one that waits closes it. */
	fx_client_open(&t->b, t->f, 4, PVFS_SO_LEASES);
	t->b.park = true;
	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), 0);
	over(t);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(do_close(&t->b, h.at.fid, RW, NULL), 0);
	mgr_round_told(m, t->a.session, ino, yields(&t->a, ino, 3), 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), -EBADF);
	over(t);
	assert_int_equal(m->recalls.n, 0);
}

/* Who has it open to read only comes in, and has no WRITE lease; who closes what it wrote with has none any more. */
static void readers(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = make_striped(&t->a, "f", 0);
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), 0);
	assert_false(granted(&at) || writes(t, &t->b, ino));
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	assert_int_equal(seen.nyields, 0);
	/* It goes out as others do, and what it asks for has a WRITE lease recalled. */
	assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	mgr_round_told(m, t->b.session, ino, yields(&t->b, ino, 1), 0);
	assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 1, &at), 0);
	assert_true(granted(&at));
	over(t);
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_true(writes(t, &t->a, ino));
	mgr_leases_drop_read(&m->leases, ino, t->a.session);
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nyields, 1);
	assert_int_equal(seen.session[0], t->a.session);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(seen.nresumed, 1);
	/* Now nobody writes. */
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 2, &at), 0);
	assert_false(granted(&at));
	assert_true(in(t, &t->a, ino) && in(t, &t->b, ino));
	over(t);
}

/* Whoever else opens it, or changes it, has it recalled as ever. */
static void third(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;
	struct fx_client *who[] = { &t->plain, &t->a };
	u32 i;

	/* Also who has it open already, and is out. */
	for (i = 0; i < 2; i++) {
		give(t, &h, i + 1);
		seen.n = 0;
		assert_int_equal(do_open(who[i], h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
		park(who[i], ino);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.session[0], t->b.session);
		assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
		assert_int_equal(seen.nresumed, 1);
		assert_int_equal(do_open(who[i], h.at.fid, PVFS_O_READ, &at), 0);
		over(t);
		assert_int_equal(in(t, who[i], ino), i == 0);
		assert_true(in(t, &t->b, ino));
		if (!i) {
			assert_int_equal(do_close(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
			assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), 0);
		}
	}
	assert_int_equal(turn(&t->a, h.at.fid, 0, 2, &at), 0);
	give(t, &h, 3);
	assert_int_equal(do_truncate(&t->a, h.at.fid, 5, NULL, &at), -EINPROGRESS);
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
	assert_true(fx_op.noted[0].settle);
}

/* ---- stuffed files ---- */

static bool behind(struct wl *t, u64 ino)
{
	struct mgr_op *op = malloc(sizeof(*op));
	struct mgr_inode i;

	mgr_op_init_bg(op, t->f->m);
	mdb_enter(t->f->m->db);
	assert_int_equal(ns_inode_get(op, ino, 0, &i), 0);
	mdb_leave(t->f->m->db);
	free(op);
	assert_true(i.flags & MGR_IF_STUFFED);
	return i.flags & MGR_IF_BEHIND;
}

/* Of those it is written down that there may be more; and who believes what it knows has it taken back. */
static void heads(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h, other;
	u64 ino;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "f", 0);
	ino = h.at.fid.ino;
	assert_true(head_put(&t->a, &h, 0, 0, "head"));
	other = open_it(&t->b, h.at.fid, RW);
	assert_false(behind(t, ino));
	give(t, &h, 1);
	assert_true(behind(t, ino));
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_false(behind(t, ino));
	/* Others have READ: first that. */
	fx_client_open(&t->plain, t->f, 7, PVFS_SO_LEASES);
	t->plain.park = true;
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), 0);
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	assert_false(writes(t, &t->b, ino) || in(t, &t->b, ino) || behind(t, ino));
	park(&t->b, ino);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.session[0], t->plain.session);
	mgr_recall_told(m, t->plain.session, &ino, 1, 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 2, &at), 0);
	assert_true(granted(&at) && behind(t, ino));
	over(t);
	/* A RECALL answered 0 leaves the mark; the next one finds it, and READ is taken back all the same. */
	assert_int_equal(do_setxattr(&t->plain, h.at.fid, "user.x", "1", 1, 0, NULL), -EINPROGRESS);
	park(&t->plain, ino);
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	over(t);
	assert_true(behind(t, ino) && !writes(t, &t->b, ino));
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), 0);
	assert_int_equal(alone(&t->b, h.at.fid, 3, &at), -EINPROGRESS);
	park(&t->b, ino);
	mgr_recall_told(m, t->plain.session, &ino, 1, 0);
	assert_int_equal(again(&t->b, 0, h.at.fid, PVFS_TN_ALONE, 3, &at), 0);
	over(t);
	assert_true(head_put(&t->b, &other, 0, 4, " and more"));
	assert_true(behind(t, ino));
	assert_int_equal(do_close(&t->b, h.at.fid, RW, NULL), 0);
	assert_false(behind(t, ino));
	/* One that was about to be unstuffed is, first. */
	assert_int_equal(turn(&t->a, h.at.fid, 0, 9, &at), 0);
	t->f->x.fill_error = -EIO;
	t->a.no_retry = true;
	{
		struct pvfs_unstuff_req rq = { .fid = h.at.fid, .cap = h.cap };
		struct pvfs_unstuff_rep rp;
		u8 big[STUFF] = { 1 };
		bool done;

		/* So long that more than one iod has a part. */
		mgr_leases_drop(&m->leases, ino, t->plain.session);
		mgr_leases_drop(&m->leases, ino, t->b.session);
		assert_int_equal(head_write(&t->a, &h, 0, 0, big, sizeof(big), &done), 0);
		assert_int_equal(fx_unstuff(&t->a, &rq, &rp), -EAGAIN);
	}
	assert_int_equal(alone(&t->a, h.at.fid, 10, &at), -EAGAIN);
	assert_false(writes(t, &t->a, ino) || in(t, &t->a, ino));
	t->f->x.fill_error = 0;
	assert_int_equal(alone(&t->a, h.at.fid, 10, &at), 0);
	assert_true(granted(&at));
	assert_false(at.flags & PVFS_AF_STUFFED);
}

/* ---- a restart ---- */

/* Who is out says so, and the one that had it alone has it again, whoever comes first. */
static void restart(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h, mine, s, smine;
	u64 ino;
	u32 i;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make_striped(&t->a, "f", 0);
	ino = h.at.fid.ino;
	mine = open_it(&t->b, h.at.fid, RW);
	s = make(&t->a, "s", 0);
	smine = open_it(&t->b, s.at.fid, RW);
	give(t, &h, 1);
	give(t, &s, 1);
	for (i = 0; i < 4; i++) {
		fx_reopen(t->f);
		hook(t);
		t->a.no_retry = t->b.no_retry = t->plain.no_retry = true;
		assert_int_equal(turn(&t->a, h.at.fid, 0, 10, &at), -EAGAIN);
		assert_int_equal(reclaim(&t->a, &h, RW | PVFS_O_OUT | PVFS_O_WLEASE, &at), -EINVAL);
		if (i % 2) {
			assert_int_equal(reclaim(&t->b, &mine, WL, &at), 0);
			assert_true(granted(&at));
			assert_int_equal(reclaim(&t->b, &smine, WL, &at), 0);
			assert_true(granted(&at));
		}
		if (i < 2) {
			assert_int_equal(reclaim(&t->a, &h, RW | PVFS_O_OUT, &at), 0);
			assert_int_equal(reclaim(&t->a, &s, RW | PVFS_O_OUT, &at), 0);
		} else if (i == 2) {
			/* Who says nothing of it is in. */
			assert_int_equal(reclaim(&t->a, &h, RW, &at), 0);
			assert_int_equal(reclaim(&t->b, &mine, WL, &at), 0);
			assert_false(granted(&at));
			fx_end_grace(t->f);
			break;
		}
		if (!(i % 2)) {
			assert_int_equal(reclaim(&t->b, &mine, WL, &at), 0);
			assert_true(granted(&at));
			assert_int_equal(reclaim(&t->b, &smine, WL, &at), 0);
			assert_true(granted(&at));
		}
		assert_true(in(t, &t->b, ino) && !in(t, &t->a, ino));
		/* It has been out, and is told nothing: others may have kept back what they will. */
		assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), -EAGAIN);
		assert_int_equal(come_back(&t->a), 0);
		assert_int_equal(come_back(&t->plain), 0);
		t->a.wait = true;
		assert_int_equal(turn(&t->a, h.at.fid, 0, 10, &at), -EINPROGRESS);
		assert_int_equal(fx_op.grace, MGR_GRACE_LOCKS);
		t->a.wait = false;
		assert_int_equal(come_back(&t->b), 0);
		assert_int_equal(turn(&t->a, h.at.fid, PVFS_TN_ALONE, 10, &at), -EINPROGRESS);
		park(&t->a, ino);
		mgr_round_told(t->f->m, t->b.session, ino, yields(&t->b, ino, 1), 0);
		assert_int_equal(again(&t->a, 0, h.at.fid, PVFS_TN_ALONE, 10, &at), 0);
		assert_true(granted(&at));
		over(t);
		/* As it was. */
		assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
		give(t, &h, 20);
		fx_end_grace(t->f);
	}
}

/* It was read a moment ago: who has come in since the restart is in. */
static void late_out(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	give(t, &h, 1);
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), 0);
	assert_int_equal(reclaim(&t->a, &h, RW | PVFS_O_OUT, &at), 0);
	assert_true(in(t, &t->a, ino));
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	park(&t->b, ino);
	mgr_round_told(t->f->m, t->a.session, ino, yields(&t->a, ino, 2), 0);
	over(t);
}

/* An OPEN with O_TRUNC of who is out says so, also when the answer is one that was kept. */
static void truncates(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h = both(t, "f");

	give(t, &h, 1);
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, RW | PVFS_O_TRUNC, &at), 0);
	assert_true(at.flags & PVFS_AF_OUT);
	t->a.seq--;
	assert_int_equal(do_open(&t->a, h.at.fid, RW | PVFS_O_TRUNC, &at), 0);
	assert_int_equal(atomic_load(&t->f->m->count.replays), 1);
	assert_true(at.flags & PVFS_AF_OUT);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(asks), T(says_later), T(both_ask), T(has_it), T(comes_in), T(numbers), T(overtaken), T(overtakes_itself),
		T(plain_ones), T(nobody_writes), T(ends), T(readers), T(third), T(heads), T(restart), T(late_out),
		T(truncates),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
