// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_shown_test.c - who reads a file through a mapping (TURN with READ): who has to go out for that, how long
 * its lease lasts, and who waits for it.
 */
#include "mgr_turn_fixture.h"

static bool lasts(struct wl *t, const struct fx_client *c, u64 ino)
{
	return mgr_leases_lasts(&t->f->m->leases, ino, c->session);
}

static int shown(struct fx_client *c, struct pvfs_fid fid, u64 seq, struct pvfs_attr *at)
{
	return turn(c, fid, PVFS_TN_READ, seq, at);
}

/* Nobody writes: it is answered at once, to as many as ask. */
static void shows(struct wl *t, struct fx_client *c, const struct hf *h, u64 seq)
{
	struct pvfs_attr at;

	assert_int_equal(shown(c, h->at.fid, seq, &at), 0);
	assert_true(at.flags & PVFS_AF_LASTS);
	assert_true(lasts(t, c, h->at.fid.ino) && in(t, c, h->at.fid.ino));
}

/* A file that a and b have open to read, and both read it through mappings. */
static struct hf two_read(struct wl *t, const char *name)
{
	struct hf h = make_striped(&t->plain, name, 0);

	assert_int_equal(do_close(&t->plain, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	shows(t, &t->a, &h, 1);
	shows(t, &t->b, &h, 1);
	assert_int_equal(seen.n + seen.nyields, 0);
	return h;
}

/* It is recalled, has no end of its own, and may be answered EAGAIN. */
static void recalled(struct wl *t, u64 ino)
{
	struct mgr *m = t->f->m;
	u64 now = mgr_mono_ms();

	assert_int_equal(seen.n, 2);
	assert_true(seen.session[0] != seen.session[1]);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	mgr_recall_tick(m, now);
	mgr_recall_tick(m, now + 100 * LEASE_MS);
	assert_int_equal(seen.nresumed, 0);
	assert_true(lasts(t, &t->a, ino) && lasts(t, &t->b, ino));
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	assert_false(lasts(t, &t->b, ino));
	assert_int_equal(seen.nresumed, 0);
}

static void opened(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h = two_read(t, "f");
	u64 ino = h.at.fid.ino;

	/* To read it others need not wait. */
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->plain, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&t->plain, h.at.fid, RW, &at), -EINPROGRESS);
	park(&t->plain, ino);
	recalled(t, ino);
	/* Barred: it does not come back to the one that has given it up, or is just being asked. */
	assert_int_equal(shown(&t->b, h.at.fid, 2, &at), -EAGAIN);
	assert_false(lasts(t, &t->b, ino));
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_false(lasts(t, &t->a, ino));
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(do_open(&t->plain, h.at.fid, RW, &at), 0);
	over(t);
	assert_true(in(t, &t->a, ino) && !in(t, &t->b, ino));
	assert_int_equal(shown(&t->b, h.at.fid, 2, &at), 0);
	assert_false(at.flags & PVFS_AF_LASTS);
	/* Who takes no leases cannot be asked to go out. */
	assert_int_equal(shown(&t->a, h.at.fid, 2, &at), 0);
	assert_false(at.flags & PVFS_AF_LASTS);
	assert_true(in(t, &t->a, ino) && in(t, &t->plain, ino));
	assert_int_equal(do_close(&t->plain, h.at.fid, RW, NULL), 0);
	shows(t, &t->a, &h, 3);
	assert_int_equal(seen.nyields, 0);
}

/* Also of a file that somebody has open for writing already, and is out of; and whose own session writes. */
static void comes_in(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct fx_client c;
	struct pvfs_attr at;
	struct hf h = make_striped(&t->a, "f", 0);
	u64 ino = h.at.fid.ino;

	fx_client_open(&c, t->f, 4, PVFS_SO_LEASES);
	c.park = true;
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_open(&c, h.at.fid, PVFS_O_READ, NULL), 0);
	/* Only who writes goes out. */
	gets_from(t, &t->b, &t->a, h.at.fid, PVFS_TN_READ, 1, &at);
	assert_true((at.flags & PVFS_AF_LASTS) && (at.flags & PVFS_AF_WRITERS));
	assert_true(in(t, &c, ino));
	/* Who reads beside it is in nobody's way. */
	shows(t, &c, &h, 1);
	assert_true(lasts(t, &t->b, ino));
	assert_int_equal(turn(&c, h.at.fid, 0, 2, &at), 0);
	assert_false(lasts(t, &c, ino));
	assert_true(lasts(t, &t->b, ino));
	shows(t, &c, &h, 3);
	assert_int_equal(seen.n, 0);
	/* The writer comes in. */
	assert_int_equal(turn(&t->a, h.at.fid, 0, 1, &at), -EINPROGRESS);
	assert_false(in(t, &t->a, ino));
	park(&t->a, ino);
	assert_int_equal(seen.n, 2);
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	/* It asks again, and is behind him. */
	assert_int_equal(shown(&c, h.at.fid, 4, &at), -EINPROGRESS);
	assert_false(lasts(t, &c, ino));
	assert_int_equal(mgr_recall_park(m, &fx_op, c.session, (void *)&c), 0);
	mgr_recall_told(m, c.session, &ino, 1, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(again(&t->a, 0, h.at.fid, 0, 1, &at), 0);
	assert_true(in(t, &t->a, ino) && !in(t, &c, ino));
	mgr_recall_over(m, seen.resumed[0]);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(again(&c, 1, h.at.fid, PVFS_TN_READ, 4, &at), -EINPROGRESS);
	mgr_recall_over(m, seen.resumed[1]);
	seen.nresumed = 0;
	/* Two that write: what one reads through a mapping the other does not write beside. */
	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), 0);
	gets_from(t, &t->b, &t->a, h.at.fid, PVFS_TN_READ, 2, &at);
	assert_true(at.flags & PVFS_AF_LASTS);
	gets_from(t, &t->a, &t->b, h.at.fid, PVFS_TN_READ, 2, &at);
	assert_true((at.flags & PVFS_AF_LASTS) && !lasts(t, &t->b, ino));
	assert_int_equal(m->recalls.n, 0);
}

/* Who wants to be alone has all go out; and who has a WRITE lease gives it up. */
static void beside_alone(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = both(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	give(t, &h, 1);
	gets_from(t, &t->a, &t->b, h.at.fid, PVFS_TN_READ, 1, &at);
	assert_true((at.flags & PVFS_AF_LASTS) && !writes(t, &t->b, ino));
	gets_from(t, &t->b, &t->a, h.at.fid, PVFS_TN_ALONE, 2, &at);
	assert_true(granted(&at) && !lasts(t, &t->a, ino));
	assert_int_equal(m->recalls.n + atomic_load(&m->leases.lasting), 0);
}

/* With the last close, the session, or what it says at an open. */
static void ends(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h = two_read(t, "f");
	u64 ino = h.at.fid.ino;

	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_true(lasts(t, &t->a, ino));
	/* What a RECALL waits for ends with it. */
	assert_int_equal(do_truncate(&t->plain, h.at.fid, 5, NULL, &at), -EINPROGRESS);
	park(&t->plain, ino);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_false(lasts(t, &t->a, ino));
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	/* The lease of its open is left, and ends. */
	assert_int_equal(seen.nresumed, 0);
	mgr_recall_tick(m, mgr_mono_ms() + LEASE_MS + 1);
	assert_int_equal(seen.nresumed, 1);
	over(t);
	shows(t, &t->b, &h, 2);
	/* It opens it to write, and says that it believes nothing any more. */
	mgr_leases_drop_read(&m->leases, ino, t->b.session);
	assert_false(lasts(t, &t->b, ino));
	shows(t, &t->b, &h, 3);
	mgr_recall_session_end(m, t->b.session);
	assert_int_equal(atomic_load(&m->leases.lasting), 0);
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 0);
}

/* After a restart nobody knows who reads it so: who is not in it to write already does not come in to. */
static void restart(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h = make_striped(&t->plain, "f", 0), mine = open_it(&t->b, h.at.fid, PVFS_O_READ);

	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	fx_reopen(t->f);
	hook(t);
	t->a.no_retry = t->b.no_retry = t->plain.no_retry = true;
	assert_int_equal(reclaim(&t->b, &mine, PVFS_O_READ, &at), 0);
	assert_int_equal(come_back(&t->b), 0);
	assert_int_equal(reclaim(&t->plain, &h, RW, &at), 0);
	assert_int_equal(come_back(&t->plain), 0);
	assert_int_equal(do_open(&t->plain, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	t->b.wait = true;
	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), -EINPROGRESS);
	assert_int_equal(fx_op.grace, MGR_GRACE_LEASES);
	t->b.wait = false;
	assert_int_equal(come_back(&t->a), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, RW, NULL), 0);
}

/* A lease that runs out while its holder is taking pages away: it has answered, and gets others. */
static void takes_long(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct mgr_session *s;
	struct pvfs_attr at;
	struct hf h = make_striped(&t->plain, "f", 0);
	u64 ino = h.at.fid.ino;
	int i;

	assert_int_equal(do_close(&t->plain, h.at.fid, RW, NULL), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, &at), 0);
		assert_true(at.flags & PVFS_AF_LEASE);
		assert_int_equal(do_truncate(&t->plain, h.at.fid, 5 + i, NULL, &at), -EINPROGRESS);
		park(&t->plain, ino);
		mgr_recall_told(m, t->a.session, &ino, 1, i ? -ENOTCONN : -EAGAIN);
		mgr_recall_tick(m, mgr_mono_ms() + LEASE_MS + 1);
		assert_int_equal(seen.nresumed, 1);
		over(t);
		s = mgr_session_lookup(m, t->a.session);
		assert_int_equal(atomic_load(&s->leases), !i);
		mgr_session_put(s);
	}
}

static bool yes(void *arg)
{
	return true;
}

static bool no(void *arg)
{
	return false;
}

/* One lease of two kinds: what ends one leaves the other. */
static void kinds(void **state)
{
	struct wl *t = *state;
	struct mgr_leases *l = &t->f->m->leases;
	u64 now = mgr_mono_ms();

	assert_true(mgr_leases_grant(l, 99, 7, now, now + 10));
	assert_int_equal(mgr_leases_end(l, 99, 7), now + 10);
	assert_false(mgr_leases_lasting(l, 99, 0));
	assert_true(mgr_leases_last(l, 99, 7, now, yes, NULL));
	assert_true(mgr_leases_end(l, 99, 7) == MGR_LEASE_NEVER);
	assert_true(mgr_leases_lasting(l, 99, 0) && !mgr_leases_lasting(l, 99, 7));
	assert_int_equal(mgr_leases_held(l, 99, 0, now + 1000, NULL, 0), 1);
	assert_false(mgr_leases_unlast(l, 99, 7, now, NULL, NULL));
	assert_int_equal(mgr_leases_end(l, 99, 7), now + 10);
	assert_true(mgr_leases_last(l, 99, 7, now, yes, NULL));
	assert_true(mgr_leases_unlast(l, 99, 7, now + 10, NULL, NULL));
	assert_int_equal(mgr_leases_end(l, 99, 7), 0);
	assert_false(mgr_leases_last(l, 99, 7, now, no, NULL));
	assert_int_equal(mgr_leases_end(l, 99, 7), 0);
	assert_int_equal(atomic_load(&l->lasting), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(opened), T(comes_in), T(beside_alone), T(ends), T(restart), T(takes_long), T(kinds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
