// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_holders_test.c - HOLDERS: who is told of, to whom, in what portions; and that it changes
 * nothing.
 */
#include "mgr_head_fixture.h"

/* Two clients that take leases, and one that takes none and asks; files and a directory. */
struct hd {
	struct fx *f;
	struct fx_client a, b, plain;
	struct pvfs_fid file, dir;
};

static u32 sent;

static int fake_send(struct mgr *m, u64 session, const u64 *inos, u32 n)
{
	sent += n;
	return 0;
}

static int fake_yield(struct mgr *m, u64 session, u64 ino, u64 round)
{
	sent++;
	return 0;
}

static void fake_resume(struct mgr *m, struct pvfs_call *call, struct mgr_parked *p)
{
	mgr_recall_over(m, p);
}

static void hook(struct hd *t)
{
	sent = 0;
	t->f->m->recalls.send = fake_send;
	t->f->m->recalls.yield = fake_yield;
	t->f->m->recalls.resume = fake_resume;
}

static int setup(void **state)
{
	struct hd *t = calloc(1, sizeof(*t));
	struct pvfs_attr a;

	t->f = fx_new();
	fx_lease_clients(t->f, &t->a, &t->b, &t->plain);
	assert_int_equal(set_layout(&t->plain, fx_root, small_units), 0);
	assert_int_equal(do_mkfile(&t->plain, fx_root, "file", 0644, &a), 0);
	t->file = a.fid;
	assert_int_equal(do_mkdir(&t->plain, fx_root, "dir", 0700, &a), 0);
	t->dir = a.fid;
	assert_int_equal(do_mkfile(&t->plain, t->dir, "inside", 0644, &a), 0);
	hook(t);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct hd *t = *state;

	fx_free(t->f);
	free(t);
	return 0;
}

static int ask(struct fx_client *c, struct pvfs_fid fid, const char *name, struct pvfs_holders_rep *rp)
{
	struct pvfs_holders_req rq = { .cred = fx_cred(c), .fid = fid, .name = PVFS_STR(name),
				       .bytes = PVFS_READDIR_MAX };

	return fx_holders(c, &rq, rp);
}

/* What the last reply said of a session; all zero: nothing. */
static struct pvfs_holder said(const struct pvfs_holders_rep *rp, u64 session)
{
	struct pvfs_holder h, ret = { 0 };
	struct pvfs_wire w;
	u64 last = 0;
	u32 i;

	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	for (i = 0; i < rp->count; i++) {
		pvfs_get_holder(&w, &h);
		assert_true(h.session > last);
		last = h.session;
		if (h.session == session)
			ret = h;
	}
	assert_int_equal(w.err, 0);
	assert_int_equal(pvfs_wire_left(&w), 0);
	return ret;
}

static void who(void **state)
{
	struct hd *t = *state;
	struct pvfs_holders_rep rp;
	struct pvfs_holder h;
	struct mgr *m = t->f->m;
	struct pvfs_attr a;
	u64 granted, count;

	assert_int_equal(ask(&t->plain, t->file, "", &rp), 0);
	assert_int_equal(rp.count, 0);
	assert_int_equal(rp.left, 0);
	assert_int_equal(rp.flags, 0);
	assert_true(rp.fid.ino == t->file.ino && rp.fid.gen == t->file.gen);
	assert_int_equal(rp.mode, S_IFREG);
	assert_int_equal(do_getattr(&t->a, t->file, NULL, &a), 0);
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_READ, &a), 0);
	assert_int_equal(do_open(&t->plain, t->file, PVFS_O_READ, &a), 0);
	assert_int_equal(do_open(&t->plain, t->file, PVFS_O_READ, &a), 0);
	granted = atomic_load(&m->leases.granted);
	count = atomic_load(&m->leases.count);

	assert_int_equal(ask(&t->plain, fx_root, "file", &rp), 0);
	assert_int_equal(rp.count, 3);
	assert_int_equal(rp.fid.ino, t->file.ino);
	h = said(&rp, t->a.session);
	assert_int_equal(h.flags, PVFS_HD_LEASE);
	assert_in_range(h.ms, 1, m->conf->lease_ms);
	assert_int_equal(h.readers + h.writers, 0);
	assert_int_equal(h.host.len, strlen("testhost"));
	assert_memory_equal(h.host.p, "testhost", h.host.len);
	h = said(&rp, t->b.session);
	assert_int_equal(h.flags, PVFS_HD_LEASE);
	assert_int_equal(h.readers, 1);
	h = said(&rp, t->plain.session);
	assert_int_equal(h.flags, PVFS_HD_OWN);
	assert_int_equal(h.ms, 0);
	assert_int_equal(h.readers, 2);
	/* It grants nothing, also to who takes leases, and recalls none. */
	assert_int_equal(ask(&t->b, fx_root, "file", &rp), 0);
	assert_int_equal(said(&rp, t->b.session).flags, PVFS_HD_LEASE | PVFS_HD_OWN);
	assert_int_equal(ask(&t->b, fx_root, "", &rp), 0);
	assert_int_equal(rp.count, 0);
	assert_int_equal(rp.mode, S_IFDIR);
	assert_int_equal(atomic_load(&m->leases.granted), granted);
	assert_int_equal(atomic_load(&m->leases.count), count);
	assert_int_equal(sent, 0);
	/* Writers; and what has expired is none. */
	mgr_leases_drop(&m->leases, t->file.ino, t->a.session);
	mgr_leases_drop(&m->leases, t->file.ino, t->b.session);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, &a), 0);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE | PVFS_O_READ, &a), 0);
	assert_true(mgr_leases_grant(&m->leases, t->file.ino, t->b.session, 1, 2));
	assert_int_equal(ask(&t->plain, t->file, "", &rp), 0);
	h = said(&rp, t->a.session);
	assert_int_equal(h.writers, 2);
	assert_int_equal(h.readers, 0);
	assert_int_equal(said(&rp, t->b.session).flags, 0);
	/* A directory's is like any. */
	assert_int_equal(do_getattr(&t->a, t->dir, NULL, &a), 0);
	assert_int_equal(ask(&t->plain, fx_root, "dir", &rp), 0);
	assert_int_equal(said(&rp, t->a.session).flags, PVFS_HD_LEASE);
}

static void may(void **state)
{
	struct hd *t = *state;
	struct pvfs_holders_req small = { .fid = t->file, .bytes = PVFS_HOLDER_MAX - 1 };
	struct pvfs_fid gone = t->file;
	struct pvfs_holders_rep rp;
	struct pvfs_attr a;

	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, &a), 0);
	assert_int_equal(ask(&t->plain, t->dir, "inside", &rp), 0);
	t->plain.uid = 1000;
	/* As LOOKUP would tell of it; hosts are for root. */
	assert_int_equal(ask(&t->plain, t->dir, "inside", &rp), -EACCES);
	assert_int_equal(ask(&t->plain, fx_root, "file", &rp), 0);
	assert_int_equal(rp.count, 1);
	assert_int_equal(said(&rp, t->a.session).readers, 1);
	assert_int_equal(said(&rp, t->a.session).host.len, 0);
	t->plain.uid = 0;
	assert_int_equal(ask(&t->plain, fx_root, "none", &rp), -ENOENT);
	assert_int_equal(ask(&t->plain, t->file, "x", &rp), -ENOTDIR);
	assert_int_equal(ask(&t->plain, fx_root, "a/b", &rp), -EINVAL);
	gone.gen++;
	assert_int_equal(ask(&t->plain, gone, "", &rp), -ESTALE);
	gone.ino += 1000;
	assert_int_equal(ask(&t->plain, gone, "", &rp), -ESTALE);
	assert_int_equal(fx_holders(&t->plain, &small, &rp), -EINVAL);
}

/* Others may learn whose it is, without its being drawn in; and that it is, when it is. */
static void draft(void **state)
{
	struct hd *t = *state;
	struct pvfs_create_req mk = { .cred = fx_cred(&t->a), .dir = fx_root, .name = PVFS_STR("new"),
				      .flags = MKRW | PVFS_O_DRAFT, .mode = 0600 };
	struct pvfs_holders_rep rp;
	struct pvfs_create_rep made;
	struct pvfs_holder h;
	struct pvfs_attr at;
	u64 ino;

	assert_int_equal(fx_create(&t->a, &mk, &made), 0);
	assert_true(made.attr.flags & PVFS_AF_DRAFT);
	ino = made.attr.fid.ino;
	assert_int_equal(ask(&t->plain, fx_root, "new", &rp), 0);
	h = said(&rp, t->a.session);
	assert_int_equal(h.flags, PVFS_HD_LEASE | PVFS_HD_DRAFT);
	assert_int_equal(h.writers, 1);
	assert_int_equal(rp.mode, S_IFREG);
	assert_int_equal(sent, 0);
	assert_int_equal(do_getattr(&t->plain, made.attr.fid, NULL, &at), -EINPROGRESS);
	assert_int_equal(mgr_recall_park(t->f->m, &fx_op, t->plain.session, (void *)"call"), 0);
	assert_int_equal(sent, 1);
	assert_int_equal(ask(&t->plain, fx_root, "new", &rp), 0);
	assert_int_equal(said(&rp, t->a.session).flags, PVFS_HD_LEASE | PVFS_HD_DRAFT | PVFS_HD_RECALL);
	mgr_recall_told(t->f->m, t->a.session, &ino, 1, 0);
	assert_int_equal(ask(&t->plain, fx_root, "new", &rp), 0);
	h = said(&rp, t->a.session);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.writers, 1);
}

/* The same of a WRITE lease, which has no end of its own. */
static void write_lease(void **state)
{
	struct hd *t = *state;
	struct pvfs_holders_rep rp;
	struct hf f = make(&t->a, "big", PVFS_O_STRIPED | PVFS_O_WLEASE);
	struct pvfs_holder h;

	assert_true(f.at.flags & PVFS_AF_WLEASE);
	assert_int_equal(ask(&t->b, fx_root, "big", &rp), 0);
	h = said(&rp, t->a.session);
	assert_int_equal(h.flags, PVFS_HD_LEASE | PVFS_HD_WRITE);
	assert_int_equal(h.ms, 0);
	assert_int_equal(h.writers, 1);
	assert_int_equal(sent, 0);
	/* It is asked to go out. */
	fx_op.nnoted = 1;
	fx_op.noted[0] = (struct mgr_noted){ .ino = f.at.fid.ino, .yield = true };
	free(fx_op.payload);
	fx_op.payload = NULL;
	assert_int_equal(mgr_recall_park(t->f->m, &fx_op, t->b.session, (void *)"call"), 0);
	assert_int_equal(sent, 1);
	assert_int_equal(ask(&t->b, fx_root, "big", &rp), 0);
	assert_int_equal(said(&rp, t->a.session).flags, PVFS_HD_LEASE | PVFS_HD_WRITE | PVFS_HD_RECALL);
	mgr_opens_out(&t->f->m->opens, f.at.fid.ino, t->a.session);
	mgr_recall_tick(t->f->m, mgr_mono_ms());
	assert_int_equal(ask(&t->b, fx_root, "big", &rp), 0);
	assert_int_equal(said(&rp, t->a.session).flags, PVFS_HD_LEASE | PVFS_HD_WRITE | PVFS_HD_OUT);
	assert_int_equal(do_close(&t->a, f.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(ask(&t->b, fx_root, "big", &rp), 0);
	h = said(&rp, t->a.session);
	assert_int_equal(h.flags, PVFS_HD_LEASE);
	assert_in_range(h.ms, 1, t->f->m->conf->lease_ms);
	assert_int_equal(h.writers, 0);
}

/* All of many, each once and in order, in portions of any size. */
static void many(void **state)
{
	static const u32 bytes[] = { PVFS_HOLDER_MAX, 4096, PVFS_READDIR_MAX, 1u << 30 };
	struct hd *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_holders_req rq = { .cred = fx_cred(&t->plain), .fid = t->file };
	u64 now = mgr_mono_ms(), seen, calls;
	struct pvfs_holders_rep rp;
	struct pvfs_holder h;
	struct pvfs_wire w;
	u32 i, k;

	/* In no order, and none with a session by now. */
	for (i = 0; i < 10000; i++)
		assert_true(mgr_leases_grant(&m->leases, t->file.ino, 1 + i * 7919 % 10000, now, now + 20000));
	for (k = 0; k < ARRAY_SIZE(bytes); k++) {
		rq.bytes = bytes[k];
		rq.after = k ? 0 : 9500;
		seen = rq.after;
		calls = 0;
		do {
			assert_int_equal(fx_holders(&t->plain, &rq, &rp), 0);
			assert_true(rp.count && fx_op.payload_len <= bytes[k]);
			pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
			for (i = 0; i < rp.count; i++) {
				pvfs_get_holder(&w, &h);
				assert_int_equal(h.session, ++seen);
				assert_int_equal(h.host.len, 0);
			}
			assert_int_equal(w.err, 0);
			assert_int_equal(rp.left, 10000 - seen);
			rq.after = seen;
			calls++;
		} while (rp.left);
		assert_int_equal(seen, 10000);
	}
	assert_int_equal(calls, 1);	/* without hosts they are short */
	/* Behind the last there are none. */
	assert_int_equal(fx_holders(&t->plain, &rq, &rp), 0);
	assert_int_equal(rp.count, 0);
	assert_int_equal(fx_op.payload_len, 0);
}

/* After a restart nobody knows who has leases: that is said. */
static void restart(void **state)
{
	struct hd *t = *state;
	struct pvfs_holders_rep rp;
	struct pvfs_attr a;

	assert_int_equal(do_getattr(&t->a, t->file, NULL, &a), 0);
	fx_reopen(t->f);
	hook(t);
	assert_int_equal(ask(&t->plain, t->file, "", &rp), 0);
	assert_int_equal(rp.count, 0);
	assert_int_equal(rp.flags, PVFS_HR_GRACE);
	fx_end_grace(t->f);
	assert_int_equal(ask(&t->plain, t->file, "", &rp), 0);
	assert_int_equal(rp.flags, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who, setup, teardown),
		cmocka_unit_test_setup_teardown(may, setup, teardown),
		cmocka_unit_test_setup_teardown(draft, setup, teardown),
		cmocka_unit_test_setup_teardown(write_lease, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
		cmocka_unit_test_setup_teardown(restart, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
