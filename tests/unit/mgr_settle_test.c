// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_settle_test.c - attributes of files under WRITE leases: the holder settles them, and keeps the lease;
 * who waits for that, for which round, and what ends it.
 */
#include "mgr_wlease_fixture.h"

static int settled(struct fx_client *c, struct pvfs_fid fid, const struct pvfs_wreport *r, u64 round)
{
	struct pvfs_report_req rq = { .fid = fid, .settled = round };
	struct pvfs_report_rep rp;

	if (r)
		rq.report = *r;
	return fx_report(c, &rq, &rp);
}

/* The request that was resumed as number @i is executed again. */
static int getattr_again(struct fx_client *c, u32 i, struct pvfs_fid fid, struct pvfs_attr *at)
{
	int err;

	assert_true(i < seen.nresumed);
	c->parked = seen.resumed[i];
	err = do_getattr(c, fid, NULL, at);
	c->parked = NULL;
	return err;
}

/* Who is only told what it is like waits until all was written back, and takes the lease away from nobody. */
static void settles(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nsettles, 1);
	assert_int_equal(seen.n, 0);
	assert_int_equal(seen.of[0], t->a.session);
	assert_int_equal(seen.settled[0], ino);
	assert_true(seen.round[0]);
	mgr_round_told(m, t->a.session, ino, seen.round[0], -EAGAIN);
	/* Meanwhile the holder keeps it, and is told so: nothing is barred. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	/* Asked again with the same number, if the answer gets lost. */
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.nsettles, 2);
	assert_true(seen.round[1] == seen.round[0]);
	mgr_round_told(m, t->a.session, ino, seen.round[0], -ENOTCONN);
	/* Another report, another number, another inode, or another session says nothing. */
	r = wrote(t, &h.at, 0, 5000);
	assert_int_equal(report(&t->a, h.at.fid, &r, 0), 0);
	assert_int_equal(settled(&t->a, h.at.fid, NULL, seen.round[0] + 1), 0);
	assert_int_equal(settled(&t->a, h.at.fid, NULL, seen.round[0] - 1), 0);
	assert_int_equal(settled(&t->a, fx_root, NULL, seen.round[0]), 0);
	mgr_round_told(m, t->b.session, ino, seen.round[0], 0);
	assert_int_equal(seen.nresumed, 0);
	/* Only that it takes one more; so what got lost is sent. */
	assert_int_equal(seen.nsettles, 3);
	assert_true(seen.round[2] == seen.round[0]);
	r = wrote(t, &h.at, 5000, 70000);
	assert_int_equal(settled(&t->a, h.at.fid, &r, seen.round[0]), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_true(writes(t, &t->a, ino));
	/* Executed again, it is told as of any file that another writes, without a lease. */
	assert_int_equal(getattr_again(&t->b, 0, h.at.fid, &at), 0);
	assert_int_equal(at.size, 75000);
	assert_true(at.flags & PVFS_AF_WRITERS);
	assert_false(at.flags & (PVFS_AF_LEASE | PVFS_AF_WLEASE));
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 1);
	over(t);
	/* Twice is as once. */
	assert_int_equal(settled(&t->a, h.at.fid, &r, seen.round[0]), 0);
	assert_int_equal(seen.nresumed, 0);
	/* The next one waits anew. Answered at once it need not wait for a report: size and time the iods know. */
	r = wrote(t, &h.at, 75000, 1000);
	assert_int_equal(do_lookup(&t->plain, fx_root, "f", &at), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(seen.nsettles, 4);
	assert_true(seen.round[3] != seen.round[0]);
	mgr_round_told(m, t->a.session, ino, seen.round[3], 0);
	assert_int_equal(seen.nresumed, 1);
	t->plain.parked = seen.resumed[0];
	assert_int_equal(do_lookup(&t->plain, fx_root, "f", &at), 0);
	assert_int_equal(at.size, 76000);
	t->plain.parked = NULL;
	over(t);
	/* The holder's own word is the same. */
	assert_int_equal(do_getattr(&t->a, h.at.fid, &r, &at), 0);
	assert_int_equal(at.size, 76000);
	assert_int_equal(seen.n, 0);
	assert_int_equal(atomic_load(&m->recalls.write_settled), 2);
	assert_int_equal(atomic_load(&m->recalls.write_recalled), 0);
	assert_int_equal(m->recalls.n, 0);
	assert_int_equal(m->recalls.unsent, 0);
	assert_int_equal(atomic_load(&m->recalls.settles), 0);
	assert_true(writes(t, &t->a, ino));
}

/* Who comes when it was sent waits for the next; those who come meanwhile for one. */
static void settles_again(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nsettles, 1);
	/* Nor for this one when it is yet to be sent again. */
	mgr_round_told(m, t->a.session, ino, seen.round[0], -EAGAIN);
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(seen.nsettles, 1);
	r = wrote(t, &h.at, 0, 100);
	assert_int_equal(settled(&t->a, h.at.fid, &r, seen.round[0]), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(getattr_again(&t->b, 0, h.at.fid, &at), 0);
	assert_int_equal(at.size, 100);
	/* The next is sent at once; a late answer to the one before is none to it. */
	assert_int_equal(seen.nsettles, 2);
	assert_true(seen.round[1] != seen.round[0]);
	mgr_round_told(m, t->a.session, ino, seen.round[0], 0);
	assert_int_equal(settled(&t->a, h.at.fid, NULL, seen.round[0]), 0);
	mgr_round_told(m, t->a.session, ino, seen.round[0], -EAGAIN);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(seen.nsettles, 2);
	r = wrote(t, &h.at, 100, 100);
	assert_int_equal(settled(&t->a, h.at.fid, &r, seen.round[1]), 0);
	assert_int_equal(seen.nresumed, 4);
	assert_int_equal(getattr_again(&t->plain, 1, h.at.fid, &at), 0);
	assert_int_equal(at.size, 200);
	/* What was settled for one request was not for another. */
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
	over(t);
	assert_int_equal(seen.nsettles, 2);
	assert_int_equal(m->recalls.n, 0);
	/* One that did not get through goes with a new question, but is still the first. */
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->b, ino);
	mgr_round_told(m, t->a.session, ino, seen.round[2], -EBUSY);
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->plain, ino);
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.nsettles, 4);
	assert_true(seen.round[3] == seen.round[2]);
	mgr_round_told(m, t->a.session, ino, seen.round[3], 0);
	assert_int_equal(seen.nresumed, 1);
	mgr_round_told(m, t->a.session, ino, seen.round[4], 0);
	assert_int_equal(seen.nresumed, 2);
	over(t);
	assert_int_equal(seen.n, 0);
	assert_int_equal(m->recalls.n, 0);
	assert_int_equal(m->recalls.unsent, 0);
}

/* Whatever ends the lease ends that: its CLOSE, also if it may go on reading; giving it up; its session. */
static void settles_ended(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;
	u32 i;

	for (i = 0; i < 5; i++) {
		h = i ? open_it(&t->a, at.fid, WL) : make_striped(&t->a, "f", PVFS_O_WLEASE);
		ino = h.at.fid.ino;
		assert_true(granted(&h.at));
		if (i == 1)
			assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
		assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
		park(&t->b, ino);
		assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, &at), -EINPROGRESS);
		park(&t->plain, ino);
		assert_int_equal(m->recalls.n, 1);
		r = wrote(t, &h.at, 100 * i, 100);
		switch (i) {
		case 0:
		case 1:
			assert_int_equal(do_close(&t->a, h.at.fid, RW, &r), 0);
			break;
		case 2:
			assert_int_equal(report(&t->a, h.at.fid, &r, PVFS_RP_RECALLED), 0);
			assert_int_equal(do_close(&t->a, h.at.fid, RW, &r), 0);
			break;
		case 3:
			/* Seen late, if nobody says. */
			mgr_leases_drop(&m->leases, ino, t->a.session);
			assert_int_equal(seen.nresumed, 0);
			mgr_recall_tick(m, mgr_mono_ms());
			assert_int_equal(do_close(&t->a, h.at.fid, RW, &r), 0);
			break;
		default:
			/* However late it answers, as long as it is there. */
			mgr_recall_tick(m, mgr_mono_ms() + 10 * LEASE_MS);
			assert_int_equal(seen.nresumed, 0);
			mgr_recall_session_end(m, t->a.session);
		}
		assert_int_equal(seen.nresumed, 2);
		assert_int_equal(m->recalls.n, 0);
		assert_int_equal(m->recalls.unsent, 0);
		assert_int_equal(atomic_load(&m->recalls.settles), 0);
		assert_int_equal(getattr_again(&t->plain, 1, h.at.fid, &at), 0);
		assert_int_equal(at.size, 100 * (i + 1));
		over(t);
		mgr_leases_drop(&m->leases, ino, t->a.session);
		mgr_leases_drop(&m->leases, ino, t->b.session);
	}
	assert_int_equal(seen.n, 0);
}

/* The two beside each other. */
static void settles_and_recalls(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rdp;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct pvfs_ts past = { .sec = 1 };
	struct pvfs_getattr_req ga;
	struct pvfs_getattr_rep gp;
	struct hf h;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	/* A settle, and then a RECALL: who waits for the first may be told when either is answered. */
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->plain, ino);
	assert_int_equal(seen.nsettles, 1);
	assert_int_equal(seen.n, 1);
	mgr_round_told(m, t->a.session, ino, seen.round[0], -EAGAIN);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	/* From then on a RECALL does for both. */
	assert_int_equal(do_lookup(&t->b, fx_root, "f", &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(m->recalls.n, 2);
	assert_int_equal(seen.nsettles, 1);
	r = wrote(t, &h.at, 0, 100);
	assert_int_equal(settled(&t->a, h.at.fid, &r, seen.round[0]), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(getattr_again(&t->b, 0, h.at.fid, &at), 0);
	assert_int_equal(at.size, 100);
	r = wrote(t, &h.at, 100, 100);
	assert_int_equal(report(&t->a, h.at.fid, &r, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 3);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 200);
	over(t);
	assert_int_equal(atomic_load(&m->recalls.write_recalled), 1);
	/* What changes it, if only that it was read, or tells of its bytes, recalls it. */
	mgr_leases_drop(&m->leases, fx_root.ino, t->b.session);
	h = make_striped(&t->a, "g", PVFS_O_WLEASE);
	ga = (struct pvfs_getattr_req){ .fid = h.at.fid };
	mgr_wall_now(&ga.report.atime);
	assert_int_equal(fx_getattr(&t->b, &ga, &gp), -EINPROGRESS);
	assert_false(fx_op.noted[0].settle);
	ga.report.atime = past;
	assert_int_equal(fx_getattr(&t->b, &ga, &gp), -EINPROGRESS);
	assert_true(fx_op.noted[0].settle);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 0, NULL, NULL), -EINPROGRESS);
	assert_false(fx_op.noted[0].settle);
	t->b.data_len = 0;
	assert_int_equal(do_listxattr(&t->b, h.at.fid, 0), -EINPROGRESS);
	assert_true(fx_op.noted[0].settle);
	/* A listing waits for neither. */
	mgr_leases_drop(&m->leases, fx_root.ino, t->b.session);
	assert_int_equal(fx_readdir(&t->b, &rd, &rdp), 0);
	assert_int_equal(rdp.count, 2);
	assert_int_equal(seen.nsettles, 1);
	assert_int_equal(seen.n, 1);
	assert_int_equal(m->recalls.n, 0);
	/* A draft is recalled, as ever. */
	assert_int_equal(set_layout(&t->plain, fx_root, small_units), -EINPROGRESS);
	mgr_leases_drop(&m->leases, fx_root.ino, t->a.session);
	mgr_leases_drop(&m->leases, fx_root.ino, t->b.session);
	assert_int_equal(set_layout(&t->plain, fx_root, small_units), 0);
	h = make(&t->a, "draft", PVFS_O_DRAFT);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	assert_false(fx_op.noted[0].settle);
}

/* Of a small file. */
static void settles_heads(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 0, "one "));
	assert_true(granted(&h.at));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.nsettles, 1);
	mgr_round_told(m, t->a.session, ino, seen.round[0], -EAGAIN);
	assert_true(head_put(&t->a, &h, 0, 4, "two "));
	assert_int_equal(seen.nresumed, 0);
	assert_int_equal(settled(&t->a, h.at.fid, NULL, seen.round[0]), 0);
	assert_int_equal(getattr_again(&t->b, 0, h.at.fid, &at), 0);
	assert_int_equal(at.size, 8);
	/* Its size is known, but that is not to be believed: there is a WRITE lease. */
	assert_false(at.flags & PVFS_AF_LEASE);
	assert_true(writes(t, &t->a, ino));
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 1);
	over(t);
	/* Nor does it make its writes wait. */
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 8, "three "));
	assert_true(granted(&h.at));
	assert_int_equal(seen.n, 0);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 14);
	assert_true(at.flags & PVFS_AF_LEASE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(settles), T(settles_again), T(settles_ended), T(settles_and_recalls), T(settles_heads),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
