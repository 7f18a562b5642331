// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_session_test.c - exactly once, sessions and their ends, orphans, the reap queue, restarts.
 */
#include "mgr_fixture.h"
#include <sys/wait.h>

#define RW (PVFS_O_READ | PVFS_O_WRITE)
#define MKW (PVFS_O_CREAT | PVFS_O_WRITE)

/* As on the wire: the structures have padding. */
/* Executes a MKDIR under a chosen sequence number. */
static int mkdir_seq(struct fx_client *c, const char *name, u32 seq, struct pvfs_attr *a)
{
	c->seq = seq - 1;
	return do_mkdir(c, fx_root, name, 0755, a);
}

static void slots(void **state)
{
	struct fx_client *c = *state, other;
	struct pvfs_attr a, b;

	assert_int_equal(mkdir_seq(c, "a", 1, &a), 0);
	/* The same request again: the same answer, though the name exists. */
	assert_int_equal(mkdir_seq(c, "a", 1, &b), 0);
	assert_attr_equal(&a, &b);
	assert_int_equal(mkdir_seq(c, "a", 2, NULL), -EEXIST);
	/* That failed and left no trace: the number is still good. */
	assert_int_equal(mkdir_seq(c, "b", 2, NULL), 0);
	assert_int_equal(mkdir_seq(c, "a", 1, NULL), -EINVAL);
	/* Another operation under a number that is used up. */
	c->seq = 1;
	assert_int_equal(do_rmdir(c, fx_root, "b"), -EINVAL);
	/* Other slots and other sessions have their own. */
	other = fx_thread(c, MGR_NSLOTS - 1);
	assert_int_equal(mkdir_seq(&other, "c", 1, NULL), 0);
	other.slot = MGR_NSLOTS;
	assert_int_equal(mkdir_seq(&other, "d", 1, NULL), -EINVAL);
	/* A request that must have a slot and has none. */
	{
		struct pvfs_rmdir_req rq = { .cred = fx_cred(c), .dir = fx_root,
			.name = PVFS_STR("b") };
		u8 body[512];
		int n = pvfs_rmdir_req_encode(&rq, body, sizeof(body));

		assert_int_equal(fx_execute(c, PVFS_OP_RMDIR, 0, body, n, &fx_op), -EINVAL);
	}
	fx_reopen(c->f);
	assert_int_equal(mkdir_seq(c, "b", 2, NULL), 0);
	assert_int_equal(c->f->m->count.replays, 1);
	assert_int_equal(mkdir_seq(c, "a", 1, NULL), -EINVAL);
	assert_int_equal(mkdir_seq(c, "e", 3, NULL), 0);
	assert_int_equal(mkdir_seq(c, "f", 100, NULL), 0);
}

/* An operation that changes memory only, with a slot: the reply is kept in memory. */
static void slots_in_memory(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_open_req rq = { .cred = fx_cred(c), .flags = RW };
	struct pvfs_closing cl = { .flags = RW };
	u8 raw[PVFS_CLOSING_LEN];
	struct pvfs_close_req crq;
	struct pvfs_open_rep rp;
	struct pvfs_attr a;
	u8 body[512];
	int n, i;

	do_mkfile(c, fx_root, "f", 0644, &a);
	rq.fid = cl.fid = a.fid;
	n = pvfs_open_req_encode(&rq, body, sizeof(body));
	for (i = 0; i < 3; i++) {
		assert_int_equal(fx_execute(c, PVFS_OP_OPEN, 10, body, n, &fx_op), 0);
		assert_int_equal(pvfs_open_rep_decode(&rp, fx_op.body, fx_op.body_len), 0);
		assert_int_equal(rp.attr.fid.ino, a.fid.ino);
	}
	assert_int_equal(c->f->m->count.replays, 2);
	assert_int_equal(fx_execute(c, PVFS_OP_OPEN, 11, body, n, &fx_op), 0);
	/* Open twice; closed once, however often that is said. */
	pvfs_close_req_one(&crq, &cl, raw);
	n = pvfs_close_req_encode(&crq, body, sizeof(body));
	for (i = 0; i < 3; i++)
		assert_int_equal(fx_execute(c, PVFS_OP_CLOSE, 12, body, n, &fx_op), 0);
	assert_int_equal(c->f->m->opens.files, 1);
	assert_int_equal(fx_execute(c, PVFS_OP_CLOSE, 13, body, n, &fx_op), 0);
	assert_int_equal(c->f->m->opens.files, 0);
	/* A recovery in place does not forget it, a restart does. */
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(fx_execute(c, PVFS_OP_CLOSE, 13, body, n, &fx_op), 0);
	assert_int_equal(c->f->m->count.replays, 5);
	c->seq = 13;
	assert_int_equal(do_mkdir(c, fx_root, "d", 0755, NULL), 0);
}

static u32 put_closings(const struct pvfs_closing *c, u32 n, u8 *raw, size_t room)
{
	struct pvfs_wire w;

	pvfs_wire_init(&w, raw, room);
	while (n--)
		pvfs_put_closing(&w, c++);
	assert_int_equal(w.err, 0);
	return w.p - raw;
}

/* One CLOSE ends many opens: each of them once, also of one file, also of one without a name. */
static void many_closed(void **state)
{
	struct fx_client *c = *state;
	u8 raw[PVFS_CLOSE_MAX * PVFS_CLOSING_LEN];
	struct pvfs_closing cl[PVFS_CLOSE_MAX];
	struct pvfs_close_req rq = { .closings.p = raw };
	struct pvfs_close_rep rp;
	struct pvfs_attr a;
	char name[8];
	u32 i;

	for (i = 0; i < PVFS_CLOSE_MAX; i++) {
		sprintf(name, "f%u", i / 2);
		if (i % 2 == 0)
			do_mkfile(c, fx_root, name, 0644, &a);
		cl[i] = (struct pvfs_closing){ .fid = a.fid, .flags = i % 4 ? PVFS_O_READ : RW };
		assert_int_equal(do_open(c, a.fid, cl[i].flags, NULL), 0);
	}
	assert_int_equal(do_unlink(c, fx_root, "f0"), 0);
	assert_int_equal(c->f->m->opens.files, PVFS_CLOSE_MAX / 2);
	/* Of what is no whole number of them nothing is done. */
	rq.closings.len = put_closings(cl, PVFS_CLOSE_MAX, raw, sizeof(raw)) - 1;
	assert_int_equal(fx_close(c, &rq, &rp), -EINVAL);
	rq.closings.len = 0;
	assert_int_equal(fx_close(c, &rq, &rp), -EINVAL);
	assert_int_equal(c->f->m->opens.files, PVFS_CLOSE_MAX / 2);
	/* All but the last two, which are one file's. */
	rq.closings.len = put_closings(cl, PVFS_CLOSE_MAX - 2, raw, sizeof(raw));
	assert_int_equal(fx_close(c, &rq, &rp), 0);
	assert_int_equal(c->f->m->opens.files, 1);
	assert_int_equal(do_getattr(c, cl[0].fid, NULL, &a), -ESTALE);
	for (i = PVFS_CLOSE_MAX - 2; i < PVFS_CLOSE_MAX; i++) {
		assert_int_equal(c->f->m->opens.files, 1);
		rq.closings.len = put_closings(&cl[i], 1, raw, sizeof(raw));
		assert_int_equal(fx_close(c, &rq, &rp), 0);
	}
	assert_int_equal(c->f->m->opens.files, 0);
}

/* Two copies at once: one runs, the other is told to wait. */
static void slot_busy(void **state)
{
	struct fx_client *c = *state;
	struct mgr_session *s = mgr_session_lookup(c->f->m, c->session);

	c->no_retry = true;
	s->slots[0].busy = true;
	assert_int_equal(mkdir_seq(c, "a", 1, NULL), -EAGAIN);
	s->slots[0].busy = false;
	assert_int_equal(mkdir_seq(c, "a", 1, NULL), 0);
	mgr_session_put(s);
}

/* The reply of a CREATE was lost with the manager: replayed, the file is open again. */
static void create_replayed(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a, b;

	assert_int_equal(do_create(c, fx_root, "f", MKW, 0644, &a), 0);
	fx_reopen(c->f);
	assert_int_equal(c->f->m->opens.files, 0);
	c->seq--;
	assert_int_equal(do_create(c, fx_root, "f", MKW, 0644, &b), 0);
	assert_attr_equal(&a, &b);
	assert_int_equal(c->f->m->opens.files, 1);
	/* And again: still open once. */
	c->seq--;
	assert_int_equal(do_create(c, fx_root, "f", MKW, 0644, &b), 0);
	fx_write(&c->f->x, &a, 0, 777, &r.wtime);
	r.end = 777;
	assert_int_equal(do_close(c, a.fid, PVFS_O_WRITE, &r), 0);
	assert_int_equal(c->f->m->opens.files, 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, &b), 0);
	assert_int_equal(b.size, 777);
}

static void same_client(void **state)
{
	struct fx_client *c = *state, again, other;

	fx_client_init(&again, c->f, 1);
	assert_int_equal(again.session, c->session);
	fx_client_init(&other, c->f, 2);
	assert_int_not_equal(other.session, c->session);
	fx_reopen(c->f);
	fx_client_init(&again, c->f, 1);
	assert_int_equal(again.session, c->session);
	{
		struct pvfs_session_open_req rq = { .host = PVFS_STR("h") };
		struct pvfs_session_open_rep rp;
		struct pvfs_iodent e;
		struct pvfs_wire w;
		u32 i;

		memset(rq.client, 9, sizeof(rq.client));
		assert_int_equal(fx_session_open(&again, &rq, &rp), 0);
		assert_true(rp.session > other.session);
		assert_int_equal(rp.nslots, MGR_NSLOTS);
		assert_int_equal(rp.niods, FX_NIODS);
		assert_int_equal(rp.root.ino, 1);
		pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
		for (i = 0; i < rp.niods; i++) {
			pvfs_get_iodent(&w, &e);
			assert_int_equal(e.index, i);
			assert_int_equal(e.port, 7101 + i);
			assert_int_equal(e.host.len, 9);
		}
		assert_int_equal(w.err, 0);
		assert_int_equal(pvfs_wire_left(&w), 0);
	}
	/* Closed, it is gone, with its replies. */
	{
		struct pvfs_session_close_req rq;
		struct pvfs_session_close_rep rp;
		u64 old = other.session;

		assert_int_equal(mkdir_seq(&other, "x", 1, NULL), 0);
		assert_int_equal(fx_session_close(&other, &rq, &rp), 0);
		assert_int_equal(do_lookup(&other, fx_root, "x", NULL), -ESTALE);
		fx_client_init(&other, c->f, 2);
		assert_true(other.session > old);
		assert_int_equal(mkdir_seq(&other, "y", 1, NULL), 0);
	}
}

static void reaping(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a;

	/* Never written: nothing to be removed, gone at once. */
	do_mkfile(c, fx_root, "f", 0644, &a);
	assert_int_equal(do_unlink(c, fx_root, "f"), 0);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(c->f->x.removes, 0);
	do_create(c, fx_root, "g", MKW, 0644, &a);
	fx_write(&c->f->x, &a, 0, 1000000, &r.wtime);
	r.end = 1000000;
	do_close(c, a.fid, PVFS_O_WRITE, &r);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), FX_NIODS);
	c->f->x.down = 1;
	assert_int_equal(do_unlink(c, fx_root, "g"), 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	assert_int_equal(do_open(c, a.fid, PVFS_O_READ, NULL), -ESTALE);
	assert_int_equal(mgr_reap_pass(c->f->m), 1);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), 1);
	/* The queue survives; the iod comes back. */
	fx_reopen(c->f);
	fx_end_grace(c->f);
	assert_int_equal(mgr_reap_pass(c->f->m), 1);
	c->f->x.down = 0;
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), 0);
	assert_int_equal(c->f->m->count.reaped, 1);
}

static void many_reaped(void **state)
{
	struct fx_client *c = *state;
	struct mgr_check_result r;
	struct pvfs_attr a;
	char name[16];
	u32 i;

	for (i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%u", i);
		do_create(c, fx_root, name, MKW, 0644, &a);
		do_truncate(c, a.fid, i, NULL, NULL);
		do_close(c, a.fid, PVFS_O_WRITE, NULL);
		assert_int_equal(do_unlink(c, fx_root, name), 0);
	}
	assert_int_equal(mgr_check(c->f->m, stderr, &r), 0);
	assert_int_equal(r.reap, 499);	/* the one of size 0 was never written */
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(mgr_check(c->f->m, stderr, &r), 0);
	assert_int_equal(r.reap, 0);
	assert_int_equal(r.inodes, 1);
	assert_int_equal(c->f->m->files, 1);
}

static void orphans(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a, x;

	fx_client_init(&d, c->f, 2);
	do_create(c, fx_root, "f", MKW, 0644, &a);
	do_open(&d, a.fid, PVFS_O_READ, NULL);
	assert_int_equal(do_unlink(&d, fx_root, "f"), 0);
	/* No name, but there for those who have it open. */
	assert_int_equal(do_getattr(c, a.fid, NULL, &x), 0);
	assert_int_equal(x.nlink, 0);
	assert_int_equal(do_open(c, a.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(c, a.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_link(c, a.fid, fx_root, "g"), -ENOENT);
	fx_write(&c->f->x, &a, 0, 5000, &r.wtime);
	r.end = 5000;
	assert_int_equal(do_getattr(c, a.fid, &r, &x), 0);
	assert_int_equal(x.size, 5000);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	do_close(c, a.fid, PVFS_O_WRITE, &r);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), 1);
	assert_int_equal(do_open(c, a.fid, PVFS_O_READ, NULL), -ESTALE);
	do_close(&d, a.fid, PVFS_O_READ, NULL);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), 0);
	fx_check(c->f);

	/* Replaced by rename while open; the holder's session ends. */
	do_create(&d, fx_root, "p", MKW, 0644, &a);
	do_mkfile(c, fx_root, "q", 0644, NULL);
	assert_int_equal(do_rename(c, fx_root, "q", fx_root, "p", 0), 0);
	assert_int_equal(do_getattr(&d, a.fid, NULL, &x), 0);
	assert_int_equal(x.nlink, 0);
	{
		struct pvfs_session_close_req rq;
		struct pvfs_session_close_rep rp;

		assert_int_equal(fx_session_close(&d, &rq, &rp), 0);
	}
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	fx_check(c->f);
}

#define NAMELESS (PVFS_O_CREAT | PVFS_O_WRITE | PVFS_O_TMPFILE)

/* Made without a name: as an orphan, until it gets one. */
static void nameless(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_reclaim_req rq = { .flags = PVFS_O_WRITE, .count = 1 };
	struct pvfs_reclaim_rep rp;
	struct pvfs_attr a, x;

	fx_client_init(&d, c->f, 2);
	assert_int_equal(do_create(c, fx_root, "x", NAMELESS, 0644, &a), -EINVAL);
	assert_int_equal(do_create(c, fx_root, "", NAMELESS & ~PVFS_O_WRITE, 0644, &a), -EINVAL);
	assert_int_equal(do_create(c, fx_root, "", NAMELESS & ~PVFS_O_CREAT, 0644, &a), -EINVAL);
	assert_int_equal(c->f->m->files, 1);
	assert_int_equal(do_create(c, fx_root, "", NAMELESS, 0644, &a), 0);
	assert_int_equal(a.nlink, 0);
	assert_int_equal(c->f->m->files, 2);
	fx_check(c->f);
	/* It is its maker's alone. */
	assert_int_equal(do_open(&d, a.fid, PVFS_O_READ, NULL), -ESTALE);
	assert_int_equal(do_link(c, a.fid, fx_root, "f"), 0);
	assert_int_equal(do_lookup(&d, fx_root, "f", &x), 0);
	assert_int_equal(x.fid.ino, a.fid.ino);
	assert_int_equal(x.nlink, 1);
	fx_check(c->f);
	do_close(c, a.fid, PVFS_O_WRITE, NULL);
	assert_int_equal(do_getattr(&d, a.fid, NULL, NULL), 0);
	/* A second time it is an orphan as any other. */
	do_open(c, a.fid, PVFS_O_READ, NULL);
	do_unlink(&d, fx_root, "f");
	assert_int_equal(do_link(c, a.fid, fx_root, "f"), -ENOENT);
	do_close(c, a.fid, PVFS_O_READ, NULL);
	mgr_reap_pass(c->f->m);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	/* Not to be linked at all. */
	do_create(c, fx_root, "", NAMELESS | PVFS_O_EXCL, 0644, &a);
	assert_int_equal(do_link(c, a.fid, fx_root, "f"), -ENOENT);
	do_close(c, a.fid, PVFS_O_WRITE, NULL);
	mgr_reap_pass(c->f->m);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	/* Through a restart. */
	do_create(c, fx_root, "", NAMELESS, 0644, &a);
	fx_reopen(c->f);
	rq.fid = a.fid;
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	fx_end_grace(c->f);
	assert_int_equal(do_link(c, a.fid, fx_root, "f"), 0);
	fx_check(c->f);
	do_close(c, a.fid, PVFS_O_WRITE, NULL);
	do_unlink(c, fx_root, "f");
	/* Its maker leaves. */
	do_create(&d, fx_root, "", NAMELESS, 0644, &a);
	{
		struct pvfs_session_close_req crq;
		struct pvfs_session_close_rep crp;

		assert_int_equal(fx_session_close(&d, &crq, &crp), 0);
	}
	mgr_reap_pass(c->f->m);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	assert_int_equal(c->f->m->files, 1);
	fx_check(c->f);
}

/* A lease time after RECLAIM_DONE. */
static void drop_now(struct fx_client *c)
{
	struct mgr_session *s = mgr_session_peek(c->f->m, c->session);

	assert_true(s->unclaimed > mgr_mono_ms());
	s->unclaimed = 1;
	mgr_sessions_expire(c->f->m);
	assert_int_equal(s->unclaimed, 0);
	mgr_session_put(s);
}

static void give_mode(struct fx_client *c, struct pvfs_fid fid, u32 mode)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_MODE, .mode = mode };
	struct pvfs_setattr_rep rp;

	assert_int_equal(fx_setattr(c, &rq, &rp), 0);
}

/* Nobody gets by RECLAIM what he was not given by OPEN; and who was, gets it whatever the mode is now. */
static void reclaim_proved(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_create_req crq = {
		.dir = fx_root, .name = PVFS_STR("f"), .flags = MKW | PVFS_O_READ, .mode = 0600,
	};
	struct pvfs_open_req orq = { .flags = PVFS_O_READ };
	struct pvfs_reclaim_req rq = { .flags = PVFS_O_READ | PVFS_O_WRITE, .count = 1 };
	struct pvfs_create_rep crp;
	struct pvfs_reclaim_rep rp;
	struct pvfs_open_rep orp;
	struct pvfs_cap own, weak;
	struct pvfs_attr other;
	unsigned int i;

	fx_client_init(&d, c->f, 2);
	give_mode(c, fx_root, 0777);
	c->uid = c->gid = 1000;
	d.uid = d.gid = 2000;
	crq.cred = fx_cred(c);
	assert_int_equal(fx_create(c, &crq, &crp), 0);
	own = crp.cap;
	assert_int_equal(own.session, c->session);
	rq.fid = orq.fid = crp.attr.fid;
	orq.cred = fx_cred(c);
	assert_int_equal(fx_open(c, &orq, &orp), 0);
	weak = orp.cap;
	assert_int_equal(do_create(&d, fx_root, "g", MKW | PVFS_O_READ, 0644, &other), 0);
	give_mode(c, rq.fid, 0);
	fx_reopen(c->f);
	/* Without a capability it is as OPEN. */
	rq.cred = fx_cred(&d);
	assert_int_equal(fx_reclaim(&d, &rq, &rp), -EACCES);
	rq.cred = fx_cred(c);
	assert_int_equal(fx_reclaim(c, &rq, &rp), -EACCES);
	/* Made up; for less; for another file, session, or more rights than it was signed for. */
	for (i = 0; i < 5; i++) {
		rq.cap = own;
		rq.cred = (struct pvfs_cred){ };	/* even root's word does not count beside it */
		if (i == 0)
			rq.cap.mac[3] ^= 1;
		else if (i == 1)
			rq.cap = weak;
		else if (i == 2)
			rq.fid = other.fid;
		else if (i == 3)
			rq.cap.session = d.session;
		else {
			rq.cap = weak;
			rq.cap.rights = own.rights;
		}
		assert_int_equal(fx_reclaim(&d, &rq, &rp), -EACCES);
		rq.fid = crp.attr.fid;
	}
	assert_int_equal(c->f->m->opens.files, 0);
	/* No other flags, and no draft of who does not write. */
	rq.cap = own;
	rq.flags = PVFS_O_READ | PVFS_O_CREAT;
	assert_int_equal(fx_reclaim(c, &rq, &rp), -EINVAL);
	rq.flags = PVFS_O_READ | PVFS_O_DRAFT;
	assert_int_equal(fx_reclaim(c, &rq, &rp), -EINVAL);
	/* The descriptor is good, whatever the mode has become; also in a later session of its client. */
	rq.flags = PVFS_O_READ | PVFS_O_WRITE;
	rq.cred = (struct pvfs_cred){ .uid = (u32)-1, .gid = (u32)-1 };
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	assert_int_equal(rp.cap.rights, own.rights);
	assert_memory_equal(rp.cap.mac, own.mac, sizeof(own.mac));
	rq.flags = PVFS_O_READ;
	rq.cap = weak;
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	{
		struct pvfs_session_close_req srq;
		struct pvfs_session_close_rep srp;

		assert_int_equal(fx_session_close(c, &srq, &srp), 0);
	}
	fx_client_init(c, c->f, 3);
	assert_int_not_equal(c->session, own.session);
	rq.cap = own;
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	assert_int_equal(rp.cap.session, c->session);
	assert_int_equal(rp.cap.rights, PVFS_CAP_READ);
	fx_end_grace(c->f);
}

static void orphans_and_restarts(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_reclaim_req rq = { .flags = PVFS_O_READ, .count = 1 };
	struct pvfs_reclaim_rep rp;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a, b, x;

	fx_client_init(&d, c->f, 2);
	do_create(c, fx_root, "a", MKW | PVFS_O_READ, 0644, &a);
	do_create(c, fx_root, "b", MKW | PVFS_O_READ, 0644, &b);
	fx_write(&c->f->x, &a, 0, 10, &r.wtime);
	fx_write(&c->f->x, &b, 0, 10, &r.wtime);
	do_unlink(&d, fx_root, "a");
	fx_reopen(c->f);
	/* b is unlinked when the manager does not know yet that it is open. */
	assert_int_equal(do_unlink(&d, fx_root, "b"), 0);
	assert_true(mgr_reap_pass(c->f->m) > 0);
	rq.fid = b.fid;
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	assert_int_equal(rp.attr.nlink, 0);
	rq.fid = a.fid;
	assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
	fx_end_grace(c->f);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(do_getattr(c, b.fid, NULL, &x), 0);
	assert_int_equal(x.size, 10);
	fx_check(c->f);
	do_close(c, a.fid, PVFS_O_READ, NULL);
	do_close(c, b.fid, PVFS_O_READ, NULL);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(fx_datafiles(&c->f->x, a.fid.ino), 0);
	assert_int_equal(fx_datafiles(&c->f->x, b.fid.ino), 0);
	/* After the grace it is too late. */
	do_create(c, fx_root, "a", MKW, 0644, &a);
	fx_reopen(c->f);
	fx_end_grace(c->f);
	do_unlink(&d, fx_root, "a");
	rq.fid = a.fid;
	assert_int_equal(fx_reclaim(c, &rq, &rp), -ESTALE);
	rq.fid.ino = 999999;
	assert_int_equal(fx_reclaim(c, &rq, &rp), -ESTALE);
	assert_int_equal(c->f->m->opens.files, 0);
	/* A close that was answered, and lost with the machine's memory: it is not among what is told. */
	{
		struct pvfs_reclaim_done_req drq = { };
		struct pvfs_reclaim_done_rep drp;

		do_create(c, fx_root, "x", PVFS_O_CREAT | PVFS_O_READ, 0644, &a);
		do_create(c, fx_root, "y", PVFS_O_CREAT | PVFS_O_READ, 0644, &b);
		do_unlink(c, fx_root, "x");
		do_unlink(c, fx_root, "y");
		fx_reopen(c->f);
		rq.fid = b.fid;
		assert_int_equal(fx_reclaim(c, &rq, &rp), 0);
		drq.epoch = c->f->m->epoch;
		assert_int_equal(fx_reclaim_done(c, &drq, &drp), 0);
		fx_end_grace(c->f);
		drop_now(c);
		assert_int_equal(mgr_reap_pass(c->f->m), 0);
		assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
		assert_int_equal(do_getattr(c, b.fid, NULL, NULL), 0);
		do_close(c, b.fid, PVFS_O_READ, NULL);
		assert_int_equal(do_getattr(c, b.fid, NULL, NULL), -ESTALE);
		/* Nor is one that is made without a name, and asked for again: but that is open then. */
		do_create(c, fx_root, "", NAMELESS, 0644, &a);
		fx_reopen(c->f);
		drq.epoch = c->f->m->epoch;
		assert_int_equal(fx_reclaim_done(c, &drq, &drp), 0);
		fx_end_grace(c->f);
		c->seq--;
		assert_int_equal(do_create(c, fx_root, "", NAMELESS, 0644, &b), 0);
		assert_int_equal(b.fid.ino, a.fid.ino);
		drop_now(c);
		mgr_reap_pass(c->f->m);
		assert_int_equal(do_getattr(c, a.fid, NULL, NULL), 0);
		do_close(c, a.fid, PVFS_O_WRITE, NULL);
		mgr_reap_pass(c->f->m);
		assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
		fx_check(c->f);
	}
	/* A close that a restart overtook still releases the orphan. */
	do_create(c, fx_root, "z", PVFS_O_CREAT | PVFS_O_READ, 0644, &a);
	do_unlink(c, fx_root, "z");
	fx_reopen(c->f);
	assert_int_equal(do_close(c, a.fid, PVFS_O_READ, NULL), 0);
	fx_end_grace(c->f);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
}

static void expiry(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;
	struct pvfs_attr a;

	fx_client_init(&d, c->f, 2);
	do_create(&d, fx_root, "f", MKW, 0644, &a);
	do_unlink(c, fx_root, "f");
	c->f->conf.lease_ms = 200;
	usleep(150000);
	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
	assert_int_equal(rp.lease_ms, 200);
	usleep(100000);
	mgr_sessions_expire(c->f->m);
	assert_int_equal(c->f->m->count.evicted, 1);
	assert_int_equal(fx_session_renew(&d, &rq, &rp), -ESTALE);
	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), -ESTALE);
	c->f->conf.lease_ms = 30000;
	fx_reopen(c->f);
	assert_int_equal(fx_session_renew(&d, &rq, &rp), -ESTALE);
	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
}

/* An iod that was away is told of an eviction when it is back, also by an mgr that was restarted. */
static void eviction_told(void **state)
{
	struct fx_client *c = *state, d, e;
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;
	struct fx *f = c->f;
	u32 niods = f->m->niods;
	unsigned int i;

	fx_client_init(&d, f, 2);
	f->conf.lease_ms = 1000;
	f->x.down = 2;
	usleep(700000);
	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
	usleep(400000);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->m->count.evicted, 1);
	assert_int_equal(f->x.evicts, niods - 1);
	f->conf.lease_ms = 30000;
	for (i = 0; i < 2; i++) {
		fx_reopen(f);
		assert_int_equal(fx_session_renew(&d, &rq, &rp), -ESTALE);
		assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
		/* The client has a new session, which nobody refuses. */
		fx_client_init(&e, f, 2);
		assert_int_not_equal(e.session, d.session);
		f->x.evicts = 0;
		f->x.evicted = 0;
		mgr_sessions_expire(f->m);
		assert_int_equal(f->x.evicts, niods - 1);
		assert_int_equal(f->x.evicted, d.session);
	}
	f->x.down = 0;
	f->x.evicts = 0;
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, 1);
	/* All know: nothing is left of it. */
	mgr_sessions_expire(f->m);
	fx_reopen(f);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, 1);
	assert_int_equal(fx_session_renew(&e, &rq, &rp), 0);
}

static int lock_all(struct fx_client *c, struct pvfs_fid fid, u64 ticket)
{
	struct pvfs_lock_req rq = {
		.fid = fid, .kind = PVFS_LK_RECORD, .type = PVFS_LK_WRITE, .owner = 1, .pid = 1,
		.end = PVFS_FILE_MAX, .ticket = ticket,
	};
	struct pvfs_lock_rep rp;
	int err = fx_lock(c, &rq, &rp);

	return err ? err : rp.state;
}

/* Its last sign of life was before its lease. */
static void make_late(struct fx *f, u64 session)
{
	struct mgr_session *s = mgr_session_peek(f->m, session);

	atomic_store(&s->seen, mgr_mono_ms() - 2 * f->conf.lease_ms);
	mgr_session_put(s);
}

struct during {
	struct fx_client *c, *d, e;
	struct pvfs_fid fid;
	int lock, renew;
	unsigned int n;
};

static void during_eviction(void *arg)
{
	struct during *t = arg;
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;

	t->n++;
	t->renew = fx_session_renew(t->d, &rq, &rp);
	t->lock = lock_all(t->c, t->fid, 2);
	fx_client_init(&t->e, t->c->f, 2);
}

/* Marked, fenced, and only then its locks are given away; its client comes back as another. */
static void eviction_in_order(void **state)
{
	struct fx_client *c = *state, d;
	struct fx *f = c->f;
	struct during t = { .c = c, .d = &d };
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;
	struct pvfs_attr a;

	fx_client_init(&d, f, 2);
	assert_int_equal(do_create(&d, fx_root, "f", MKW, 0644, &a), 0);
	t.fid = a.fid;
	assert_int_equal(lock_all(&d, a.fid, 1), PVFS_LK_GRANTED);
	make_late(f, d.session);
	f->x.on_evict = during_eviction;
	f->x.on_evict_arg = &t;
	mgr_sessions_expire(f->m);
	f->x.on_evict = NULL;
	assert_int_equal(t.n, 1);
	assert_int_equal(t.renew, -ESTALE);
	assert_int_equal(t.lock, PVFS_LK_CONFLICT);
	assert_int_not_equal(t.e.session, d.session);
	assert_int_equal(lock_all(c, a.fid, 3), PVFS_LK_GRANTED);
	assert_int_equal(fx_session_renew(&t.e, &rq, &rp), 0);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->m->count.evicted, 1);
	/* One that was heard of just before it was to be ended is not. */
	make_late(f, t.e.session);
	assert_int_equal(fx_session_renew(&t.e, &rq, &rp), 0);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->m->count.evicted, 1);
}

static void die(void *arg)
{
	_exit(0);
}

/* The manager dies while the iods are told: the next one goes on there, and gives nothing away before. */
static void eviction_resumed(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;
	struct pvfs_reclaim_done_req drq = { };
	struct pvfs_reclaim_done_rep drp;
	struct fx *f = c->f;
	struct pvfs_attr a;
	int status;
	pid_t pid;

	fx_client_init(&d, f, 2);
	assert_int_equal(do_create(c, fx_root, "f", MKW, 0644, &a), 0);
	fx_stop(f);
	pid = fork();
	if (!pid) {
		fx_start(f);
		fx_session_renew(c, &rq, &rp);
		make_late(f, d.session);
		f->x.on_evict = die;
		mgr_sessions_expire(f->m);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fx_start(f);
	assert_int_equal(fx_session_renew(&d, &rq, &rp), -ESTALE);
	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
	drq.epoch = c->f->m->epoch;
	assert_int_equal(fx_reclaim_done(c, &drq, &drp), 0);
	atomic_store(&f->m->grace_until, 0);
	assert_true(mgr_in_grace(f->m));
	assert_int_equal(lock_all(c, a.fid, 1), PVFS_LK_GRACE);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, f->m->niods);
	assert_int_equal(f->x.evicted, d.session);
	assert_false(mgr_in_grace(f->m));
	assert_int_equal(lock_all(c, a.fid, 2), PVFS_LK_GRANTED);
	fx_reopen(f);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, f->m->niods);
}

/* Locks are not given away before a holder that has not come back is fenced, however long it takes. */
static void absent_holder(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_reclaim_done_req drq = { };
	struct pvfs_reclaim_done_rep drp;
	struct fx *f = c->f;
	struct pvfs_attr a;

	fx_client_init(&d, f, 2);
	assert_int_equal(do_create(&d, fx_root, "f", MKW, 0644, &a), 0);
	assert_int_equal(lock_all(&d, a.fid, 1), PVFS_LK_GRANTED);
	fx_reopen(f);
	drq.epoch = c->f->m->epoch;
	assert_int_equal(fx_reclaim_done(c, &drq, &drp), 0);
	/* Its time is over, but nobody has been through it yet. */
	atomic_store(&f->m->grace_until, 1);
	assert_int_equal(lock_all(c, a.fid, 1), PVFS_LK_GRACE);
	make_late(f, d.session);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->m->count.evicted, 1);
	assert_int_equal(lock_all(c, a.fid, 2), PVFS_LK_GRANTED);
}

/* A hall that loses its power, and an iod that is silent: all of them take one time-out together. */
static void many_evicted(void **state)
{
	struct fx_client *c = *state, *many = calloc(200, sizeof(*many));
	struct fx *f = c->f;
	u32 i;

	for (i = 0; i < 200; i++)
		fx_client_init(&many[i], f, 10 + i);
	for (i = 0; i < 200; i++)
		make_late(f, many[i].session);
	f->x.down = 4;
	mgr_sessions_expire(f->m);
	assert_int_equal(f->m->count.evicted, 200);
	assert_int_equal(f->x.evict_calls, 1);
	assert_int_equal(f->x.evicts, 200 * (f->m->niods - 1));
	f->x.down = 0;
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, 200 * f->m->niods);
	assert_null(f->m->evictions);
	free(many);
}

/* The background threads, for real: they reap, expire and stop. */
static void threads(void **state)
{
	struct fx_client *c = *state, d;
	struct pvfs_attr a;
	u32 i;

	fx_client_init(&d, c->f, 2);
	c->f->conf.lease_ms = 1500;	/* a busy machine holds us up, too */
	assert_int_equal(mgr_core_start(c->f->m), 0);
	for (i = 0; i < 40; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(do_create(c, fx_root, name, MKW, 0644, &a), 0);
		do_truncate(c, a.fid, 100, NULL, NULL);
		do_close(c, a.fid, PVFS_O_WRITE, NULL);
		assert_int_equal(do_unlink(c, fx_root, name), 0);
		usleep(20000);
	}
	for (i = 0; i < 2000 && (c->f->m->count.reaped < 40 || !c->f->m->count.evicted); i++) {
		do_lookup(c, fx_root, "x", NULL);
		usleep(10000);
	}
	assert_int_equal(c->f->m->count.reaped, 40);
	assert_int_equal(c->f->m->count.evicted, 1);
	mgr_core_stop(c->f->m);
	c->f->conf.lease_ms = 30000;
}

/* Recovery in place: what was acknowledged is there, handlers never notice. */
static void recovery_in_place(void **state)
{
	struct fx_client *c = *state;
	struct pvfs_attr a, x;

	do_create(c, fx_root, "f", MKW, 0644, &a);
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(do_lookup(c, fx_root, "f", &x), 0);
	assert_int_equal(x.fid.ino, a.fid.ino);
	assert_int_equal(c->f->m->count.restarts, 1);
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(do_mkdir(c, fx_root, "d", 0755, NULL), 0);
	c->seq--;
	assert_int_equal(do_mkdir(c, fx_root, "d", 0755, NULL), 0);
	mdb_bdb_panic(c->f->m->db);
	c->seq--;
	assert_int_equal(do_mkdir(c, fx_root, "d", 0755, NULL), 0);
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(do_close(c, a.fid, PVFS_O_WRITE, NULL), 0);
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(do_unlink(c, fx_root, "f"), 0);
	mdb_bdb_panic(c->f->m->db);
	assert_int_equal(mgr_reap_pass(c->f->m), 0);
}

/*
 * The store's disk is nearly full: nothing new, but deleting goes on. mgr_space_test.c does it for
 * real.
 */
static void full_disk(void **state)
{
	struct fx_client *c = *state;
	struct mgr *m = c->f->m;
	u64 reserve = m->space_reserve;
	struct pvfs_statfs_req rq;
	struct pvfs_statfs_rep rp;

	do_mkfile(c, fx_root, "f", 0644, NULL);
	m->space_checked = 0;
	assert_int_equal(mgr_space_check(m, true), 0);
	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_true(rp.ffree > 0);
	m->space_reserve = m->space_avail + m->space_avail / 2;
	assert_int_equal(fx_statfs(c, &rq, &rp), 0);
	assert_int_equal(rp.ffree, 0);
	assert_true(rp.files > 0);
	assert_int_equal(do_mkfile(c, fx_root, "g", 0644, NULL), -ENOSPC);
	assert_int_equal(do_create(c, fx_root, "g", MKW, 0644, NULL), -ENOSPC);
	assert_int_equal(do_lookup(c, fx_root, "f", NULL), 0);
	assert_int_equal(do_unlink(c, fx_root, "f"), 0);
	m->space_reserve = m->space_avail * 6;
	assert_int_equal(do_rmdir(c, fx_root, "f"), -ENOSPC);
	m->space_reserve = reserve;
	assert_int_equal(do_mkfile(c, fx_root, "g", 0644, NULL), 0);
}

static void statistics(void **state)
{
	struct fx_client *c = *state;
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	do_mkfile(c, fx_root, "f", 0644, NULL);
	mgr_stats(c->f->m, f);
	fclose(f);
	assert_non_null(strstr(text, "\"sessions\":1"));
	assert_non_null(strstr(text, "\"MKNOD\":{\"n\":1,\"errors\":0}"));
	assert_non_null(strstr(text, "\"cache_hits\""));
	free(text);
}

static void wrong_stores(void **state)
{
	struct fx_client *c = *state;
	struct fx *f = c->f;
	char err[256];

	assert_int_equal(mgr_mkfs(&f->conf, err, sizeof(err)), -EEXIST);
	fx_stop(f);
	f->conf.uuid[0] ^= 1;
	assert_int_equal(fx_try_open(f), -ESTALE);
	assert_true(mgr_mkfs(&f->conf, err, sizeof(err)) < 0);
	f->conf.uuid[0] ^= 1;
	f->conf.niods = 3;
	assert_int_equal(fx_try_open(f), -EINVAL);
	f->conf.niods = FX_NIODS;
	fx_start(f);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fx_setup, fx_teardown)
	const struct CMUnitTest tests[] = {
		T(slots), T(slots_in_memory), T(many_closed), T(slot_busy), T(create_replayed), T(same_client), T(reaping),
		T(many_reaped), T(orphans), T(nameless),
		T(reclaim_proved), T(orphans_and_restarts), T(expiry), T(eviction_told), T(eviction_in_order),
		T(eviction_resumed), T(absent_holder), T(many_evicted), T(threads), T(recovery_in_place), T(full_disk),
		T(statistics),
		T(wrong_stores),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
