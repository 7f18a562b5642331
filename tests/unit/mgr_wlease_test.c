// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_wlease_test.c - WRITE leases: who gets one, who waits for it and until when, what ends it, and
 * what becomes of it when the manager is restarted. What runs at the same time is made to.
 */
#include "mgr_wlease_fixture.h"

/* Who gets one. */
static void grants(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h, g, o;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	assert_true(granted(&h.at));
	assert_int_equal(atomic_load(&t->f->m->leases.writes), 1);
	/* It keeps it, opening again; also what does not ask leaves it. Its own requests do, too. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(open_by_name(&t->a, "f", WL | PVFS_O_TRUNC, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_WRITE, &at), 0);
	assert_false(granted(&at));
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WLEASE, &at), 0);
	assert_false(granted(&at));
	assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
	assert_int_equal(do_lookup(&t->a, fx_root, "f", &at), 0);
	assert_int_equal(do_truncate(&t->a, h.at.fid, 100, NULL, &at), 0);
	assert_int_equal(do_setxattr(&t->a, h.at.fid, "user.x", "1", 1, 0, &at), 0);
	assert_int_equal(do_rename(&t->a, fx_root, "f", fx_root, "g", 0), 0);
	assert_int_equal(do_unlink(&t->a, fx_root, "g"), 0);
	assert_true(writes(t, &t->a, h.at.fid.ino));
	assert_int_equal(atomic_load(&t->f->m->leases.write_granted), 1);
	mgr_leases_drop(&t->f->m->leases, fx_root.ino, t->a.session);
	/* Not who takes no leases, not who does not ask or write, not of what is stuffed. */
	g = make_striped(&t->plain, "p", PVFS_O_WLEASE);
	assert_false(granted(&g.at));
	g = make_striped(&t->a, "q", 0);
	assert_false(granted(&g.at));
	assert_int_equal(do_open(&t->a, g.at.fid, PVFS_O_READ | PVFS_O_WLEASE, &at), 0);
	assert_false(granted(&at));
	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	o = make(&t->a, "s", PVFS_O_WLEASE);
	assert_true(o.at.flags & PVFS_AF_STUFFED);
	assert_false(granted(&o.at));
	/* Opened later, with nobody else there. */
	assert_int_equal(do_open(&t->a, g.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(open_by_name(&t->b, "p", WL, &at), 0);
	assert_false(granted(&at));		/* the plain one has it open */
	/* One that is not made after all has none. */
	assert_int_equal(do_create(&t->a, fx_root, "q", MKRW | PVFS_O_EXCL | PVFS_O_WLEASE, 0, &at),
			 -EEXIST);
	assert_int_equal(atomic_load(&t->f->m->leases.writes), 2);
}

/* Not beside another's open, for reading or writing, of whatever client. */
static void not_beside(void **state)
{
	static const u32 how[] = { PVFS_O_READ, PVFS_O_WRITE, PVFS_O_EXEC };
	struct wl *t = *state;
	struct fx_client *who[] = { &t->b, &t->plain };
	struct pvfs_attr at;
	struct hf h;
	u32 i;

	h = make_striped(&t->a, "f", 0);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	for (i = 0; i < 6; i++) {
		/* What came with the answer to the CLOSE. */
		mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, t->a.session);
		assert_int_equal(do_open(who[i % 2], h.at.fid, how[i / 2], NULL), 0);
		mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, t->b.session);
		assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
		assert_false(granted(&at));
		/* Nor when it is gone, before it is asked for again. */
		assert_int_equal(do_close(who[i % 2], h.at.fid, how[i / 2], NULL), 0);
		assert_false(writes(t, &t->a, h.at.fid.ino));
		assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
		assert_true(granted(&at));
		assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
		assert_true(writes(t, &t->a, h.at.fid.ino));
		assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
		assert_false(writes(t, &t->a, h.at.fid.ino));
	}
	mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, t->a.session);
	/* Two that open at the same time: what counts first is in the way of the other. */
	assert_int_equal(do_open(&t->b, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), -EINPROGRESS);
	assert_true(writes(t, &t->b, h.at.fid.ino));
	assert_false(writes(t, &t->a, h.at.fid.ino));
}

/* Whoever asks for anything waits, and then sees what was reported. */
static void waits(void **state)
{
	struct wl *t = *state;
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rdp;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct pvfs_dent e;
	struct pvfs_wire w;
	struct pvfs_fid dir;
	u64 ino, glimpses;
	struct hf h;
	u32 n = 0;

	assert_int_equal(do_mkdir(&t->a, fx_root, "d", 0755, &at), 0);
	dir = at.fid;
	make_striped(&t->a, "other", 0);
	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_true(granted(&h.at));
	assert_int_equal(do_lookup(&t->b, fx_root, "f", NULL), -EINPROGRESS);
	assert_int_equal(do_getattr(&t->plain, h.at.fid, NULL, NULL), -EINPROGRESS);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	assert_int_equal(open_by_name(&t->b, "f", MKRW, NULL), -EINPROGRESS);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 0, NULL, NULL), -EINPROGRESS);
	assert_int_equal(do_unlink(&t->b, fx_root, "f"), -EINPROGRESS);
	assert_int_equal(do_rename(&t->b, fx_root, "f", dir, "f", 0), -EINPROGRESS);
	assert_int_equal(do_rename(&t->b, fx_root, "other", fx_root, "f", 0), -EINPROGRESS);
	assert_int_equal(do_link(&t->b, h.at.fid, dir, "l"), -EINPROGRESS);
	assert_int_equal(do_setxattr(&t->b, h.at.fid, "user.x", "1", 1, 0, NULL), -EINPROGRESS);
	t->b.data_len = 0;
	assert_int_equal(do_listxattr(&t->b, h.at.fid, 0), -EINPROGRESS);
	assert_int_equal(set_layout(&t->b, h.at.fid, h.at.layout), -EBUSY);
	/* A listing does not: there it is without attributes, and no iod is asked about it. */
	glimpses = t->f->x.glimpses;
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(fx_readdir(&t->b, &rd, &rdp), 0);
	assert_int_equal(rdp.count, 3);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	while (pvfs_wire_left(&w)) {
		pvfs_get_dent(&w, &e);
		assert_int_equal(w.err, 0);
		n += !e.attr.version;
		assert_true(e.attr.version || e.attr.fid.ino == ino);
	}
	assert_int_equal(n, 1);
	assert_true(t->f->x.glimpses <= glimpses + 2 * FX_NIODS);	/* about "other" */
	/* It is asked, says not yet, and is asked again; the other waits as long as it takes. */
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.session[0], t->a.session);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	/* Told nothing new of it meanwhile. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_false(granted(&at));
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.n, 2);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	mgr_recall_tick(m, mgr_mono_ms() + 100 * LEASE_MS);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.nresumed, 0);
	assert_true(writes(t, &t->a, ino));
	/* A report alone ends nothing. */
	r = wrote(t, &h.at, 0, 5000);
	assert_int_equal(report(&t->a, h.at.fid, &r, 0), 0);
	assert_int_equal(seen.nresumed, 0);
	r = wrote(t, &h.at, 5000, 70000);
	assert_int_equal(report(&t->a, h.at.fid, &r, 4), -EINVAL);
	assert_int_equal(report(&t->a, h.at.fid, &r, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 1);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 75000);
	over(t);
	assert_int_equal(atomic_load(&m->recalls.write_recalled), 1);
	assert_int_equal(atomic_load(&m->recalls.expired), 0);
	/* Asked for again it has one again. Answered at once, it is over at once. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(at.size, 75000);
	/* (The unlink that had to wait has noted that it may be an orphan: that changes nothing.) */
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	park(&t->plain, ino);
	mgr_recall_told(m, t->a.session, &ino, 1, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, &at), 0);
	over(t);
	/* Given up unasked. */
	mgr_leases_drop(&m->leases, fx_root.ino, t->b.session);
	h = make_striped(&t->a, "g", PVFS_O_WLEASE);
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_false(writes(t, &t->a, h.at.fid.ino));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(atomic_load(&m->leases.kept), 0);
}

/* Recalls that are answered EAGAIN for long do not stop another's. */
static void many(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct hf h[20];
	char name[16];
	u32 i, first, msgs;

	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		h[i] = make_striped(&t->a, name, PVFS_O_WLEASE);
	}
	for (i = 0; i < 19; i++) {
		assert_int_equal(do_open(&t->b, h[i].at.fid, PVFS_O_READ, &at), -EINPROGRESS);
		park(&t->b, h[i].at.fid.ino);
		mgr_recall_told(m, t->a.session, &h[i].at.fid.ino, 1, -EAGAIN);
	}
	/* Lost on its way: it goes before all those. */
	assert_int_equal(do_open(&t->b, h[19].at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, h[19].at.fid.ino);
	mgr_recall_told(m, t->a.session, &h[19].at.fid.ino, 1, -EBUSY);
	first = seen.n;
	msgs = seen.msgs;
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.n, first + 20);
	/* One that has nothing to give up is not to wait for those that do not get on: each has its own. */
	assert_int_equal(seen.msgs, msgs + 20);
	for (i = first; seen.ino[i] != h[19].at.fid.ino; i++)
		assert_true(i < first + PVFS_RECALL_MAX);
	/* The end of the session is the end of all. */
	memset(seen.resumed, 0, sizeof(seen.resumed));
	m->recalls.resume = only_over;
	mgr_recall_session_end(m, t->a.session);
	assert_int_equal(atomic_load(&m->leases.kept), 0);
	assert_int_equal(m->recalls.n, 0);
	assert_int_equal(atomic_load(&m->recalls.barred), 0);
}

/* It ends with the last open for writing, not with another. */
static void closes(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_WRITE, &at), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, &at), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, 0, NULL), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_true(writes(t, &t->a, ino));
	assert_int_equal(do_open(&t->a, h.at.fid, PVFS_O_READ, &at), 0);
	/* With a RECALL under way who waits goes on, as nothing is left that could be recalled. */
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	mgr_leases_drop_read(&m->leases, ino, t->a.session);
	r = wrote(t, &h.at, 0, 9000);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_WRITE, &r), 0);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 9000);
	over(t);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	/* The same for one that has been read under a lease as well: that is answered, or expires. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), -EINPROGRESS);	/* b's */
	mgr_leases_drop(&m->leases, ino, t->b.session);
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(seen.nresumed, 0);
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.nresumed, 0);
	mgr_recall_tick(m, mgr_mono_ms() + LEASE_MS);
	assert_int_equal(seen.nresumed, 1);
	over(t);
	assert_int_equal(atomic_load(&m->leases.kept) + atomic_load(&m->leases.writes), 0);
	/* Nobody takes that for a session that answers nothing. */
	assert_int_equal(atomic_load(&m->recalls.expired), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
}

/* The answer to the CLOSE of one open for writing: what is told in it. */
static struct pvfs_attr closed(struct fx_client *c, struct pvfs_fid fid, const struct pvfs_wreport *r)
{
	struct pvfs_close_rep rp;

	assert_int_equal(do_close_told(c, fid, RW, r, &rp), 0);
	return rp.attr;
}

/* The last one ends WRITE, and may be answered with READ; not while somebody waits. */
static void closed_to_read(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	at = closed(&t->a, h.at.fid, NULL);
	assert_int_equal(at.fid.ino, 0);
	assert_true(writes(t, &t->a, ino));
	r = wrote(t, &h.at, 0, 70000);
	at = closed(&t->a, h.at.fid, &r);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(at.fid.ino, ino);
	assert_int_equal(at.size, 70000);
	assert_int_equal(at.flags & (PVFS_AF_LEASE | PVFS_AF_WLEASE | PVFS_AF_WRITERS | PVFS_AF_KEPT),
			 PVFS_AF_LEASE | PVFS_AF_KEPT);
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 1);
	/* Others may read it along with that, and it is recalled as any. */
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 70000);
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_int_equal(seen.n, 0);
	assert_int_equal(do_truncate(&t->plain, h.at.fid, 5, NULL, &at), -EINPROGRESS);
	mgr_leases_drop(&m->leases, ino, t->a.session);
	mgr_leases_drop(&m->leases, ino, t->b.session);
	/* With it, or what it has become, WRITE is had again. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_false(at.flags & PVFS_AF_LEASE);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	at = closed(&t->a, h.at.fid, NULL);
	assert_int_equal(at.fid.ino, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(mgr_leases_held(&m->leases, ino, 0, mgr_mono_ms(), NULL, 0), 0);
	over(t);
	/* Given up before: somebody may have come. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	at = closed(&t->a, h.at.fid, NULL);
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_false(at.flags & PVFS_AF_KEPT);
	/* Nor is it said of what was no WRITE lease. */
	mgr_leases_drop(&m->leases, ino, t->a.session);
	assert_int_equal(do_open(&t->a, h.at.fid, RW, &at), 0);
	at = closed(&t->a, h.at.fid, NULL);
	assert_int_equal(at.flags & (PVFS_AF_LEASE | PVFS_AF_KEPT), PVFS_AF_LEASE);
	assert_int_equal(atomic_load(&m->leases.kept) + atomic_load(&m->leases.writes), 0);
}

/* The end of the session, for one that is evicted, is after the iods refuse it. */
static void end_of_session(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_attr at;
	struct mgr_session *s;
	struct hf h;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	wrote(t, &h.at, 0, 100);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, h.at.fid.ino);
	/* However late it answers, as long as it is there. */
	mgr_recall_tick(m, mgr_mono_ms() + 10 * LEASE_MS);
	assert_int_equal(seen.nresumed, 0);
	s = mgr_session_lookup(m, t->a.session);
	atomic_store(&s->seen, mgr_mono_ms() - 2 * LEASE_MS);
	mgr_session_put(s);
	mgr_sessions_expire(m);
	assert_int_equal(t->f->x.evicted, t->a.session);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 100);
	over(t);
	assert_int_equal(atomic_load(&m->leases.kept), 0);
}

/* ---- two that open ---- */

struct race {
	struct wl *t;
	struct pvfs_fid fid;
	bool look_first;
	int err;
	pthread_t thread;
};

static void *other_opens(void *arg)
{
	struct race *r = arg;

	r->err = do_open(&r->t->plain, r->fid, PVFS_O_READ, NULL);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

/* What asks who has it open, with the other's open counted before, or just after. */
static bool alone_while_other_opens(void *arg)
{
	struct race *r = arg;
	struct mgr_opens_view v, now;

	mgr_opens_view(&r->t->f->m->opens, r->fid.ino, r->t->a.session, &v);
	assert_int_equal(pthread_create(&r->thread, NULL, other_opens, r), 0);
	do {
		mgr_opens_view(&r->t->f->m->opens, r->fid.ino, r->t->a.session, &now);
	} while (!now.open_elsewhere);
	return !(r->look_first ? v : now).open_elsewhere;
}

static void races(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct race r = { .t = t };
	bool got;
	u32 i;

	for (i = 0; i < 2; i++) {
		r.look_first = i;
		r.fid = make_striped(&t->a, i ? "one" : "two", 0).at.fid;
		got = mgr_leases_write(&m->leases, r.fid.ino, t->a.session, mgr_mono_ms(),
				       alone_while_other_opens, &r);
		pthread_join(r.thread, NULL);
		/* One of the two sees the other. */
		assert_int_equal(got, r.look_first);
		assert_int_equal(r.err, r.look_first ? -EINPROGRESS : 0);
		assert_int_equal(writes(t, &t->a, r.fid.ino), got);
		/* One that is not there any more is none's. */
		mgr_leases_unwrite(&m->leases, r.fid.ino, t->a.session, mgr_mono_ms(), NULL, NULL);
	}
	assert_int_equal(atomic_load(&m->leases.kept), 0);
}

/* Opened for others, too; and what an OPEN says to have given up. */
static void for_others(void **state)
{
	struct wl *t = *state;
	struct mgr_leases *l = &t->f->m->leases;
	struct pvfs_open_shared_req rq = {
		.cred = fx_cred(&t->a), .dir = fx_root, .name = PVFS_STR("f"), .flags = PVFS_O_READ,
	};
	struct pvfs_open_shared_rep rp;
	struct pvfs_attr at;
	struct hf h;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	/* What is opened for others is nobody's alone, not even who opens it. */
	assert_int_equal(fx_open_shared(&t->a, &rq, &rp), -EINPROGRESS);
	park(&t->a, h.at.fid.ino);
	assert_int_equal(seen.session[0], t->a.session);
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(fx_open_shared(&t->a, &rq, &rp), 0);
	over(t);
	rq.flags |= PVFS_O_WRITE | PVFS_O_WLEASE;
	assert_int_equal(fx_open_shared(&t->a, &rq, &rp), -EINVAL);
	/* To believe nothing any more is not to give up what is written. */
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	mgr_leases_drop_read(l, h.at.fid.ino, t->a.session);
	assert_true(writes(t, &t->a, h.at.fid.ino));
}

/* A draft that outgrows its head. */
static void unstuffed(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_unstuff_req rq = { .flags = PVFS_US_WLEASE };
	struct pvfs_unstuff_rep rp;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct hf h;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "f", PVFS_O_DRAFT | PVFS_O_WLEASE);
	assert_true(h.at.flags & PVFS_AF_DRAFT);
	assert_false(granted(&h.at));
	rq.fid = h.at.fid;
	rq.cap = h.cap;
	rq.flags = 2;
	assert_int_equal(fx_unstuff(&t->a, &rq, &rp), -EINVAL);
	rq.flags = PVFS_US_WLEASE;
	assert_int_equal(fx_unstuff(&t->a, &rq, &rp), 0);
	assert_true(granted(&rp.attr));
	assert_false(rp.attr.flags & PVFS_AF_STUFFED);
	/* It has no end any more, and CLOSE of a reader leaves it; asked for again it is the same. */
	assert_true(mgr_leases_end(&m->leases, h.at.fid.ino, t->a.session) == MGR_LEASE_NEVER);
	assert_int_equal(fx_unstuff(&t->a, &rq, &rp), 0);
	assert_true(granted(&rp.attr));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	r = wrote(t, &rp.attr, 0, 50000);
	assert_int_equal(report(&t->a, h.at.fid, &r, PVFS_RP_RECALLED), 0);
	mgr_leases_drop(&m->leases, h.at.fid.ino, t->a.session);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 50000);
	/* One that is no draft has none; nor one that is asked for. */
	h = make(&t->a, "g", 0);
	rq.fid = h.at.fid;
	rq.cap = h.cap;
	assert_int_equal(fx_unstuff(&t->a, &rq, &rp), 0);
	assert_false(granted(&rp.attr));
	h = make(&t->a, "h", PVFS_O_DRAFT);
	rq.fid = h.at.fid;
	rq.cap = h.cap;
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, h.at.fid.ino);
	mgr_recall_told(m, t->a.session, &h.at.fid.ino, 1, -EAGAIN);
	assert_int_equal(fx_unstuff(&t->a, &rq, &rp), 0);
	assert_false(granted(&rp.attr));
	mgr_recall_told(m, t->a.session, &h.at.fid.ino, 1, 0);
	assert_int_equal(seen.nresumed, 1);
	over(t);
	assert_int_equal(atomic_load(&m->leases.kept), 0);
}

/* ---- stuffed files ---- */

static int draft_flush(struct fx_client *c, const struct hf *h, u32 flags, const char *p,
		       struct pvfs_flush_rep *rp)
{
	struct pvfs_flush_req rq = { .cred = fx_cred(c), .fid = h->at.fid, .cap = h->cap,
				     .version = h->at.version, .flags = flags };

	c->data = p;
	c->data_len = strlen(p);
	return fx_flush(c, &rq, rp);
}

/* Theirs comes with the first HEAD_WRITE, or the FLUSH of a draft. */
static void heads(void **state)
{
	struct wl *t = *state;
	struct mgr *m = t->f->m;
	struct pvfs_flush_rep fr;
	struct pvfs_attr at;
	struct hf h, other;
	bool done;
	u64 ino;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "f", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_true(h.at.flags & PVFS_AF_STUFFED);
	assert_false(granted(&h.at));
	assert_true(head_put(&t->a, &h, 0, 0, "one "));
	assert_false(granted(&h.at));
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 4, "two "));
	assert_true(granted(&h.at));
	assert_true(writes(t, &t->a, ino));
	/* Its holder goes on, and is not asked; who else wants to know anything waits. */
	assert_true(head_put(&t->a, &h, 0, 8, "three "));
	assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
	assert_int_equal(seen.n, 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(seen.n, 1);
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 14, "four"));
	/* It is being given up. */
	assert_false(granted(&h.at));
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(seen.nresumed, 1);
	over(t);
	assert_false(writes(t, &t->a, ino));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 18);
	mgr_leases_drop(&m->leases, ino, t->b.session);
	/* Not while another has it open. */
	other = open_it(&t->plain, h.at.fid, PVFS_O_READ);
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 0, "ONE"));
	assert_false(granted(&h.at));
	assert_int_equal(do_close(&t->plain, other.at.fid, PVFS_O_READ, NULL), 0);
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE | PVFS_HW_APPEND, 0, " five"));
	assert_true(granted(&h.at));
	/* Unstuffed it goes on; the last CLOSE ends it. */
	assert_int_equal(head_write(&t->a, &h, 0, h.at.layout.stuff_max, "x", 1, &done), 0);
	assert_false(done);
	assert_false(h.at.flags & PVFS_AF_STUFFED);
	assert_true(writes(t, &t->a, ino));
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_false(writes(t, &t->a, ino));
	/* A draft; one that is asked for is given up with it. */
	other = make(&t->a, "e", PVFS_O_DRAFT | PVFS_O_WLEASE);
	h = make(&t->a, "d", PVFS_O_DRAFT | PVFS_O_WLEASE);
	assert_true(h.at.flags & PVFS_AF_DRAFT);
	assert_int_equal(draft_flush(&t->a, &h, PVFS_FL_WLEASE, "draft", &fr), 0);
	assert_true(fr.done);
	assert_true(granted(&fr.attr));
	assert_int_equal(do_lookup(&t->b, fx_root, "d", &at), -EINPROGRESS);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, NULL), 0);
	assert_int_equal(do_lookup(&t->b, fx_root, "d", &at), 0);
	h = other;
	assert_int_equal(do_lookup(&t->b, fx_root, "e", &at), -EINPROGRESS);
	park(&t->b, h.at.fid.ino);
	ino = h.at.fid.ino;
	mgr_recall_told(m, t->a.session, &ino, 1, -EAGAIN);
	assert_int_equal(draft_flush(&t->a, &h, PVFS_FL_WLEASE, "draft", &fr), 0);
	assert_true(fr.done);
	assert_false(granted(&fr.attr));
	assert_false(writes(t, &t->a, ino));
	mgr_recall_told(m, t->a.session, &ino, 1, 0);
	over(t);
	assert_int_equal(atomic_load(&m->leases.kept) + atomic_load(&m->leases.writes), 0);
}

/* Cut, it is another file, to who remembers how long it was. */
static void head_cut(void **state)
{
	struct wl *t = *state;
	struct pvfs_attr at;
	struct hf h;
	u32 gen;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "f", 0);
	assert_true(head_put(&t->a, &h, 0, 0, "a few bytes"));
	gen = h.at.trunc_gen;
	assert_int_equal(do_truncate(&t->a, h.at.fid, 20, NULL, &at), 0);
	assert_int_equal(at.trunc_gen, gen);
	assert_int_equal(do_truncate(&t->a, h.at.fid, 5, NULL, &at), 0);
	assert_true(at.trunc_gen > gen);
	gen = at.trunc_gen;
	assert_true(head_put(&t->a, &h, 0, 3, "more"));
	assert_int_equal(h.at.trunc_gen, gen);
	/* Nor is what is written to it as a striped one from before. */
	assert_int_equal(do_truncate(&t->a, h.at.fid, h.at.layout.stuff_max + 1, NULL, &at), 0);
	assert_false(at.flags & PVFS_AF_STUFFED);
	assert_true(at.trunc_gen >= gen);
}

/* ---- a restart ---- */

static void restart(void **state)
{
	struct wl *t = *state;
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rdp;
	struct pvfs_wreport r;
	struct pvfs_attr at;
	struct pvfs_dent e;
	struct pvfs_wire w;
	struct hf h, g, q;
	u64 ino;

	h = make_striped(&t->a, "f", PVFS_O_WLEASE);
	g = make_striped(&t->a, "g", PVFS_O_WLEASE);
	q = make_striped(&t->a, "q", PVFS_O_WLEASE);
	ino = h.at.fid.ino;
	assert_int_equal(reclaim(&t->a, &h, PVFS_O_READ | PVFS_O_WLEASE, NULL), -EINVAL);
	fx_reopen(t->f);
	hook(t);
	t->a.no_retry = t->b.no_retry = t->plain.no_retry = true;
	assert_int_equal(come_back(&t->b), 0);
	assert_int_equal(come_back(&t->plain), 0);
	/* Nobody is told anything before all have said what they have. */
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(do_open(&t->plain, h.at.fid, PVFS_O_READ, &at), -EAGAIN);
	assert_int_equal(do_lookup(&t->b, fx_root, "g", &at), -EAGAIN);
	assert_int_equal(fx_readdir(&t->b, &rd, &rdp), 0);
	assert_int_equal(rdp.count, 3);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	while (pvfs_wire_left(&w)) {
		pvfs_get_dent(&w, &e);
		assert_int_equal(e.attr.version, 0);
	}
	assert_int_equal(t->f->x.glimpses, 0);
	assert_int_equal(reclaim(&t->a, &h, WL, &at), 0);
	assert_true(granted(&at));
	assert_true(writes(t, &t->a, ino));
	assert_int_equal(reclaim(&t->a, &h, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(reclaim(&t->a, &g, RW, &at), 0);
	assert_false(granted(&at));
	/* What it asks about those itself waits for nobody. */
	r = wrote(t, &h.at, 0, 300);
	assert_int_equal(do_getattr(&t->a, h.at.fid, &r, &at), 0);
	assert_int_equal(at.size, 300);
	r = wrote(t, &h.at, 300, 300);
	assert_int_equal(report(&t->a, h.at.fid, &r, 0), 0);
	assert_int_equal(do_getattr(&t->a, g.at.fid, NULL, &at), 0);
	assert_int_equal(do_open(&t->a, h.at.fid, WL, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(do_open(&t->a, g.at.fid, WL, &at), 0);
	assert_false(granted(&at));
	assert_int_equal(do_getattr(&t->a, q.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(do_close(&t->a, h.at.fid, RW, &r), 0);
	assert_int_equal(do_getattr(&t->b, g.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(come_back(&t->a), 0);
	assert_int_equal(do_getattr(&t->b, g.at.fid, NULL, &at), 0);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_READ, &at), -EINPROGRESS);
	park(&t->b, ino);
	assert_int_equal(report(&t->a, h.at.fid, &r, PVFS_RP_RECALLED), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 600);
	over(t);
	/* Too late: it may have been read since. */
	assert_int_equal(reclaim(&t->a, &q, WL, &at), 0);
	assert_false(granted(&at));
	fx_end_grace(t->f);
}

/* Of a head the mgr has all bytes, unless somebody may have a WRITE lease: that is written down with it. */
static void restart_heads(void **state)
{
	struct wl *t = *state;
	struct pvfs_flush_rep fr;
	struct pvfs_attr at;
	struct hf h, g, p, d;

	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	h = make(&t->a, "h", PVFS_O_WLEASE);
	assert_true(head_put(&t->a, &h, PVFS_HW_WLEASE, 0, "behind"));
	g = make(&t->a, "g", PVFS_O_WLEASE);
	assert_true(head_put(&t->a, &g, PVFS_HW_WLEASE, 0, "once"));
	assert_int_equal(report(&t->a, g.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_true(head_put(&t->a, &g, 0, 0, "at once"));
	p = make(&t->a, "p", 0);
	assert_true(head_put(&t->a, &p, 0, 0, "plain"));
	d = make(&t->a, "d", PVFS_O_DRAFT | PVFS_O_WLEASE);
	assert_int_equal(draft_flush(&t->a, &d, PVFS_FL_WLEASE, "draft", &fr), 0);
	assert_true(granted(&fr.attr));
	fx_reopen(t->f);
	hook(t);
	t->a.no_retry = t->b.no_retry = t->plain.no_retry = true;
	assert_int_equal(come_back(&t->b), 0);
	assert_int_equal(come_back(&t->plain), 0);
	assert_int_equal(do_getattr(&t->b, p.at.fid, NULL, &at), 0);
	assert_int_equal(do_getattr(&t->b, g.at.fid, NULL, &at), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(do_getattr(&t->b, d.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(reclaim(&t->a, &h, WL, &at), 0);
	assert_true(granted(&at));
	/* The answer to the FLUSH may be on its way yet. */
	assert_int_equal(reclaim(&t->a, &d, WL | PVFS_O_DRAFT, &at), 0);
	assert_true(granted(&at));
	assert_int_equal(come_back(&t->a), 0);
	/* It was noted before it was found that nothing can be told. */
	mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, t->b.session);
	assert_true(head_put(&t->a, &h, 0, 6, " it"));
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -EINPROGRESS);
	assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 9);
	fx_end_grace(t->f);
}

/* Whose session is another one by then has lost it; and comes back to what is another's by now. */
static void restart_with_others(void **state)
{
	struct wl *t = *state;
	struct pvfs_session_close_req srq = { };
	struct pvfs_session_close_rep srp;
	struct pvfs_attr at;
	struct hf h, g;

	/* b had both open; its session ended, and a writes one of them alone. */
	assert_int_equal(do_create(&t->b, fx_root, "f", MKRW, 0644, &at), 0);
	h = open_it(&t->b, at.fid, RW);
	g = make_striped(&t->b, "g", PVFS_O_WLEASE);
	assert_true(granted(&g.at));
	assert_int_equal(fx_session_close(&t->b, &srq, &srp), 0);
	fx_client_open(&t->b, t->f, 4, PVFS_SO_LEASES);
	t->b.park = true;
	{
		struct hf mine = open_it(&t->a, at.fid, WL);

		assert_true(granted(&mine.at));
		assert_int_equal(reclaim(&t->b, &h, RW, &at), -EINPROGRESS);
		assert_int_equal(reclaim(&t->b, &g, WL, &at), 0);
		assert_false(granted(&at));
		fx_reopen(t->f);
		hook(t);
		t->a.no_retry = t->b.no_retry = true;
		/* It comes first: then it is in the way. Else it waits, in the grace as well. */
		assert_int_equal(reclaim(&t->a, &mine, WL, &at), 0);
		assert_true(granted(&at));
		assert_int_equal(reclaim(&t->b, &h, RW, &at), -EINPROGRESS);
		park(&t->b, h.at.fid.ino);
		assert_int_equal(report(&t->a, h.at.fid, NULL, PVFS_RP_RECALLED), 0);
		assert_int_equal(seen.nresumed, 1);
		assert_int_equal(reclaim(&t->b, &h, RW, &at), 0);
		over(t);
		fx_reopen(t->f);
		hook(t);
		assert_int_equal(reclaim(&t->b, &h, RW, &at), 0);
		assert_int_equal(reclaim(&t->a, &mine, WL, &at), 0);
		assert_false(granted(&at));
		assert_false(writes(t, &t->a, h.at.fid.ino));
	}
	fx_end_grace(t->f);
}

/* The reply that was kept is told by a manager that knows of no lease. */
static void replayed(void **state)
{
	struct wl *t = *state;
	struct pvfs_create_req rq = {
		.cred = fx_cred(&t->a), .dir = fx_root, .name = PVFS_STR("f"),
		.flags = MKRW | PVFS_O_STRIPED | PVFS_O_WLEASE, .mode = 0644,
	};
	struct pvfs_create_rep rp;
	struct pvfs_attr at;

	assert_int_equal(fx_create(&t->a, &rq, &rp), 0);
	assert_true(granted(&rp.attr));
	fx_reopen(t->f);
	hook(t);
	fx_end_grace(t->f);
	t->a.seq--;
	assert_int_equal(fx_create(&t->a, &rq, &rp), 0);
	assert_true(rp.created);
	assert_false(granted(&rp.attr));
	assert_int_equal(do_getattr(&t->b, rp.attr.fid, NULL, &at), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(grants), T(not_beside), T(waits), T(many), T(closes), T(closed_to_read), T(end_of_session),
		T(races), T(for_others), T(unstuffed), T(heads), T(head_cut), T(restart), T(restart_heads),
		T(restart_with_others), T(replayed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
