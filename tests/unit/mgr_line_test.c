// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_line_test.c - turns: who waits for a file waits in line, whatever it waits for, and only the first asks.
 */
#include "mgr_turn_fixture.h"

/* A third that has the file open, and is in. */
static void third_one(struct wl *t, struct fx_client *c, const struct hf *h)
{
	fx_client_open(c, t->f, 9, PVFS_SO_LEASES);
	c->park = true;
	assert_int_equal(do_open(c, h->at.fid, RW, NULL), 0);
}

/* The same, while another has it alone: it is out, as one that has reclaimed it so. */
static void third_one_out(struct wl *t, struct fx_client *c, const struct hf *h)
{
	struct mgr_session *s;

	fx_client_open(c, t->f, 9, PVFS_SO_LEASES);
	c->park = true;
	s = mgr_session_lookup(t->f->m, c->session);
	assert_int_equal(mgr_opens_add(&t->f->m->opens, s, h->at.fid.ino, RW | PVFS_O_OUT, 1, true), 0);
	mgr_session_put(s);
}

static u64 round_to(const struct fx_client *c)
{
	u32 i = seen.nyields;

	while (i-- && seen.yield[i].session != c->session)
		;
	assert_true(i < seen.nyields);
	return seen.yield[i].round;
}

static u32 lined(struct wl *t)
{
	return atomic_load(&t->f->m->recalls.lined);
}

/* The one that was resumed is executed. Return: what it has waited for. */
static struct mgr_parked *run(struct fx_client *c, struct pvfs_fid fid, u32 flags, u64 seq, int err,
			      struct pvfs_attr *at)
{
	struct mgr_parked *p = seen.resumed[0];

	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(c, 0, fid, flags, seq, at), err);
	seen.nresumed = 0;
	return p;
}

/* It gets it, and its place is free: then @next others go on. */
static void gets_it(struct wl *t, struct fx_client *c, struct pvfs_fid fid, u32 flags, u64 seq, u32 next)
{
	struct pvfs_attr at;
	struct mgr_parked *p = run(c, fid, flags, seq, 0, &at);

	assert_int_equal(granted(&at), flags == PVFS_TN_ALONE);
	assert_true(in(t, c, fid.ino));
	mgr_recall_over(t->f->m, p);
	assert_int_equal(seen.nresumed, next);
}

/* It has to wait for somebody, and keeps its place. */
static void waits_on(struct wl *t, struct fx_client *c, struct pvfs_fid fid, u32 flags, u64 seq)
{
	u32 places = lined(t);
	struct mgr_parked *p = run(c, fid, flags, seq, -EINPROGRESS, NULL);

	park(c, fid.ino);
	assert_int_equal(lined(t), places);
	mgr_recall_over(t->f->m, p);
	assert_int_equal(lined(t), places);
	assert_int_equal(seen.nresumed, 0);
}

/* c wants to be alone; a and b read and write all the time, and go out only to come in again. */
static void not_starved(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;
	struct fx_client c;

	third_one(t, &c, &h);
	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), 0);
	assert_int_equal(lined(t), 0);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	park(&c, ino);
	assert_int_equal(seen.nyields, 2);
	mgr_round_told(m, t->a.session, ino, round_to(&t->a), 0);
	assert_int_equal(turn(&t->a, h.at.fid, 0, 2, &at), -EINPROGRESS);
	park(&t->a, ino);
	assert_int_equal(seen.nresumed, 0);
	/* The other one asks, without a word. */
	assert_int_equal(turn(&t->b, h.at.fid, 0, 1, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_false(in(t, &t->a, ino) || in(t, &t->b, ino));
	assert_int_equal(lined(t), 3);
	gets_it(t, &c, h.at.fid, PVFS_TN_ALONE, 1, 1);
	assert_int_equal(seen.nyields, 2);
	assert_int_equal(seen.n, 0);
	/* The first of the others has the lease recalled, and then come in both. */
	waits_on(t, &t->a, h.at.fid, 0, 2);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.session[0], c.session);
	assert_int_equal(report(&c, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	gets_it(t, &t->a, h.at.fid, 0, 2, 1);
	gets_it(t, &t->b, h.at.fid, 0, 1, 0);
	assert_true(in(t, &c, ino));
	assert_int_equal(lined(t), 0);
	assert_false(barred(t));
	assert_int_equal(seen.nyields, 2);
}

/* ALONE behind one that is let in beside others, and the other way round. */
static void both_kinds(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;
	struct pvfs_attr at;
	struct fx_client c;

	third_one(t, &c, &h);
	mgr_opens_out(&m->opens, ino, c.session);
	give(t, &h, 1);
	/* b has it, and is asked for the lease, not to go out. */
	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), -EINPROGRESS);
	park(&t->a, ino);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	park(&c, ino);
	assert_int_equal(seen.nyields, 1);
	assert_int_equal(seen.n, 1);
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	gets_it(t, &t->a, h.at.fid, 0, 1, 1);
	assert_int_equal(seen.nyields, 1);
	waits_on(t, &c, h.at.fid, PVFS_TN_ALONE, 1);
	assert_int_equal(seen.nyields, 3);
	mgr_round_told(m, t->a.session, ino, round_to(&t->a), 0);
	/* Who comes now waits for it, and so does who would have the lease taken from it. */
	assert_int_equal(turn(&t->a, h.at.fid, 0, 2, &at), -EINPROGRESS);
	park(&t->a, ino);
	mgr_round_told(m, t->b.session, ino, round_to(&t->b), 0);
	gets_it(t, &c, h.at.fid, PVFS_TN_ALONE, 1, 1);
	assert_int_equal(seen.n, 1);
	waits_on(t, &t->a, h.at.fid, 0, 2);
	assert_int_equal(seen.n, 2);
	/* Nobody waits in it for what is no TURN. */
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(lined(t), 1);
	assert_int_equal(report(&c, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 2);
	over(t);
	assert_int_equal(lined(t), 0);
}

/* Of three that all want to be alone each gets it, in the order in which they asked, and asks again at once. */
static void in_order(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct hf h = both(t, "f");
	struct fx_client c, *who[3] = { &t->b, &c, &t->a };
	u64 ino = h.at.fid.ino, seq[3] = { 1, 1, 1 };
	struct pvfs_attr at;
	u32 i;

	third_one(t, &c, &h);
	for (i = 0; i < 3; i++) {
		assert_int_equal(alone(who[i], h.at.fid, 1, &at), -EINPROGRESS);
		park(who[i], ino);
		/* Those that were asked, and ask themselves, have answered so. */
		assert_int_equal(seen.nyields, 2);
	}
	for (i = 0; i < 9; i++) {
		struct fx_client *w = who[i % 3], *next = who[(i + 1) % 3];

		gets_it(t, w, h.at.fid, PVFS_TN_ALONE, seq[i % 3], 1);
		waits_on(t, next, h.at.fid, PVFS_TN_ALONE, seq[(i + 1) % 3]);
		assert_int_equal(reported(w, h.at.fid, yields(w, ino, i + 3), PVFS_RP_RECALLED), 0);
		assert_int_equal(alone(w, h.at.fid, ++seq[i % 3], &at), -EINPROGRESS);
		park(w, ino);
		assert_int_equal(lined(t), 3);
	}
	m->recalls.resume = only_over;
	over(t);
	assert_int_equal(lined(t), 0);
}

static void leave(struct fx_client *c)
{
	struct pvfs_session_close_req rq = { };
	struct pvfs_session_close_rep rp;

	assert_int_equal(fx_session_close(c, &rq, &rp), 0);
}

/* Who ends is in nobody's way, first or not; nor is who has closed it, or is overtaken by itself. */
static void goes(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;
	struct pvfs_attr at;
	struct fx_client c;

	third_one(t, &c, &h);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	park(&c, ino);
	assert_int_equal(alone(&t->b, h.at.fid, 1, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nyields, 2);
	leave(&c);
	/* The next waits for who was asked already. */
	waits_on(t, &t->b, h.at.fid, PVFS_TN_ALONE, 1);
	assert_int_equal(seen.nyields, 2);
	assert_int_equal(lined(t), 1);
	mgr_round_told(m, t->a.session, ino, round_to(&t->a), 0);
	assert_int_equal(seen.nresumed, 2);
	over(t);
	assert_int_equal(lined(t), 0);
	/* Not the first, and refused at once. */
	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), 0);
	third_one(t, &c, &h);
	assert_int_equal(alone(&t->b, h.at.fid, 2, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	park(&c, ino);
	mgr_round_told(m, t->a.session, ino, round_to(&t->a), -EAGAIN);
	assert_int_equal(seen.nresumed, 0);
	leave(&c);
	mgr_recall_over(m, run(&c, h.at.fid, PVFS_TN_ALONE, 1, -ESTALE, NULL));
	assert_int_equal(lined(t), 1);
	/* Its session has ended when it is parked: it is refused before anything is looked at, and its place goes. */
	third_one(t, &c, &h);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	leave(&c);
	fx_op.nnoted = 1;
	fx_op.noted[0] = (struct mgr_noted){ .ino = ino, .line = true };
	fx_op.line = ino;
	park(&c, ino);
	assert_int_equal(turn(&t->a, h.at.fid, 0, 2, &at), -EINPROGRESS);
	park(&t->a, ino);
	gets_it(t, &t->b, h.at.fid, PVFS_TN_ALONE, 2, 1);
	mgr_recall_over(m, run(&c, h.at.fid, PVFS_TN_ALONE, 1, -ESTALE, NULL));
	waits_on(t, &t->a, h.at.fid, 0, 2);
	/* It is closed; and another is next. */
	third_one_out(t, &c, &h);
	assert_int_equal(alone(&c, h.at.fid, 1, &at), -EINPROGRESS);
	park(&c, ino);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(report(&t->b, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	mgr_recall_over(m, run(&t->a, h.at.fid, 0, 2, -EBADF, NULL));
	waits_on(t, &c, h.at.fid, PVFS_TN_ALONE, 1);
	mgr_round_told(m, t->b.session, ino, round_to(&t->b), 0);
	gets_it(t, &c, h.at.fid, PVFS_TN_ALONE, 1, 0);
	assert_int_equal(lined(t), 0);
	assert_false(barred(t));
}

/* It has come twice, and a later one as well: those wait in line, and are told what has become of it. */
static void twice(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;
	struct pvfs_attr at;
	u32 i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(alone(&t->b, h.at.fid, 1 + i / 2, &at), -EINPROGRESS);
		park(&t->b, ino);
	}
	assert_int_equal(seen.nyields, 1);
	assert_int_equal(lined(t), 3);
	mgr_round_told(m, t->a.session, ino, round_to(&t->a), 0);
	/* The two that are overtaken go at once. */
	for (i = 0; i < 2; i++) {
		mgr_recall_over(m, run(&t->b, h.at.fid, PVFS_TN_ALONE, 1, -EINVAL, NULL));
		assert_int_equal(lined(t), 2 - i);
	}
	gets_it(t, &t->b, h.at.fid, PVFS_TN_ALONE, 2, 0);
	/* Answered, the second finds it so, and is let through what others wait for. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(alone(&t->a, h.at.fid, 1, &at), -EINPROGRESS);
		park(&t->a, ino);
	}
	assert_int_equal(reported(&t->b, h.at.fid, round_to(&t->b), PVFS_RP_RECALLED), 0);
	gets_it(t, &t->a, h.at.fid, PVFS_TN_ALONE, 1, 1);
	assert_int_equal(turn(&t->b, h.at.fid, 0, 3, &at), -EINPROGRESS);
	park(&t->b, ino);
	mgr_recall_over(m, run(&t->a, h.at.fid, PVFS_TN_ALONE, 1, 0, &at));
	assert_true(granted(&at) && writes(t, &t->a, ino));
	waits_on(t, &t->b, h.at.fid, 0, 3);
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	gets_it(t, &t->b, h.at.fid, 0, 3, 0);
	assert_int_equal(lined(t), 0);
	assert_false(barred(t));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(not_starved), T(both_kinds), T(in_order), T(goes), T(twice),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
