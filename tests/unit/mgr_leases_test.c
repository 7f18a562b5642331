// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_leases_test.c - leases: the table, which replies bring one, what is in the way of whom, and
 * requests that wait for RECALLs: answered, lost, expired, ended with the session.
 */
#include "mgr_fixture.h"

#define LEASE_MS 30000u

/* What was sent, instead of a server. */
static struct {
	u32 n;
	u64 session[16], ino[16];
	int err;
	struct mgr_parked *resumed[4];
	void *call[4];
	u32 nresumed;
} seen;

static int fake_send(struct mgr *m, u64 session, const u64 *inos, u32 n)
{
	u32 i;

	if (seen.err)
		return seen.err;
	for (i = 0; i < n; i++) {
		seen.session[seen.n] = session;
		seen.ino[seen.n++] = inos[i];
	}
	return 0;
}

static void fake_resume(struct mgr *m, struct pvfs_call *call, struct mgr_parked *p)
{
	seen.call[seen.nresumed] = call;
	seen.resumed[seen.nresumed++] = p;
}

/* Two clients that take leases, and one that takes none; a file and a directory. */
struct ls {
	struct fx *f;
	struct fx_client a, b, plain;
	struct pvfs_fid file, dir;
};

static void hook(struct ls *t)
{
	memset(&seen, 0, sizeof(seen));
	t->f->m->recalls.send = fake_send;
	t->f->m->recalls.resume = fake_resume;
}

static int setup(void **state)
{
	struct ls *t = calloc(1, sizeof(*t));
	struct pvfs_attr a;

	t->f = fx_new();
	fx_lease_clients(t->f, &t->a, &t->b, &t->plain);
	assert_int_equal(do_mkfile(&t->plain, fx_root, "file", 0644, &a), 0);
	t->file = a.fid;
	assert_int_equal(do_mkdir(&t->plain, fx_root, "dir", 0755, &a), 0);
	t->dir = a.fid;
	hook(t);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct ls *t = *state;

	fx_free(t->f);
	free(t);
	return 0;
}

static int lookup(struct fx_client *c, struct pvfs_fid dir, const char *name,
		  struct pvfs_lookup_rep *rp)
{
	struct pvfs_lookup_req rq = { .cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name) };

	return fx_lookup(c, &rq, rp);
}

static bool leased(struct fx_client *c, struct pvfs_fid fid)
{
	struct pvfs_attr a;

	assert_int_equal(do_getattr(c, fid, NULL, &a), 0);
	return a.flags & PVFS_AF_LEASE;
}

static int chmod_to(struct fx_client *c, struct pvfs_fid fid, u32 mode)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_MODE,
				       .mode = mode };
	struct pvfs_setattr_rep rp;

	return fx_setattr(c, &rq, &rp);
}

/* Its last request waits for these inodes, and for nothing else. */
static void waits_for(u64 ino, u64 ino2)
{
	assert_int_equal(fx_op.nnoted, ino2 ? 2 : 1);
	assert_true(fx_op.noted[0].ino == ino || fx_op.noted[0].ino == ino2);
	if (ino2)
		assert_true(fx_op.noted[1].ino == ino || fx_op.noted[1].ino == ino2);
}

static void park(struct fx_client *c, void *call)
{
	assert_int_equal(mgr_recall_park(c->f->m, &fx_op, c->session, call), 0);
}

static void table(void **state)
{
	struct mgr_lease_holder h[4];
	struct mgr_leases l = { .max = 0 };
	u64 i;

	assert_int_equal(mgr_leases_init(&l, 1000), 0);
	assert_int_equal(mgr_leases_held(&l, 7, 0, 0, NULL, 0), 0);
	assert_true(mgr_leases_grant(&l, 7, 1, 100, 200));
	assert_true(mgr_leases_grant(&l, 7, 2, 100, 300));
	assert_true(mgr_leases_grant(&l, 7, 1, 150, 250));	/* the same, longer */
	assert_int_equal(atomic_load(&l.count), 2);
	assert_int_equal(mgr_leases_held(&l, 7, 0, 240, h, 4), 2);
	assert_int_equal(mgr_leases_held(&l, 7, 1, 240, h, 4), 1);
	assert_int_equal(h[0].session, 2);
	assert_int_equal(h[0].end, 300);
	assert_int_equal(mgr_leases_held(&l, 7, 0, 250, h, 4), 1);
	assert_int_equal(mgr_leases_held(&l, 7, 0, 300, h, 4), 0);
	mgr_leases_drop(&l, 7, 2);
	mgr_leases_drop(&l, 8, 2);
	assert_int_equal(mgr_leases_held(&l, 7, 0, 240, h, 4), 1);
	/* Full: nothing is given until some have expired. */
	for (i = 1; i < 1000; i++)
		assert_true(mgr_leases_grant(&l, 1000 + i, 3, 240, 1000));
	assert_false(mgr_leases_grant(&l, 5000, 3, 240, 1000));
	assert_int_equal(atomic_load(&l.refused), 1);
	assert_true(mgr_leases_grant(&l, 1001, 3, 240, 1001));	/* has it already */
	for (i = 0; i < 300 && !mgr_leases_grant(&l, 5000, 3, 1000, 2000); i++)
		;
	assert_true(i < 300);
	mgr_leases_sweep(&l, 3);
	assert_int_equal(mgr_leases_held(&l, 5000, 0, 1000, h, 4), 0);
	assert_true(atomic_load(&l.count) <= 1);
	mgr_leases_fini(&l);
}

/* The end of a session looks at what it had: all locks but that one's may be taken meanwhile. */
static void sweep(void **state)
{
	struct mgr_leases l = { .max = 0 };
	u64 ino, mine = 42;
	u32 i, at, ends = 0;

	assert_int_equal(mgr_leases_init(&l, 10000), 0);
	for (ino = 1; ino < 3000; ino++)
		assert_true(mgr_leases_grant(&l, ino, ino % 7 + 1, 1, 1000 + ino % 11));
	assert_true(mgr_leases_grant(&l, mine, 99, 1, 900));
	for (i = 0; i < 200; i++)
		mgr_leases_grant(&l, mine, 1000 + i, 1, 2000 - i * 37 % 500);
	at = (mine * 0x9e3779b97f4a7c15ull >> 58) % MGR_LEASE_STRIPES;
	for (i = 0; i < MGR_LEASE_STRIPES; i++)
		if (i != at)
			pthread_mutex_lock(&l.stripe[i].lock);
	mgr_leases_sweep(&l, 99);
	mgr_leases_sweep(&l, 98);	/* has nothing */
	assert_int_equal(mgr_leases_held(&l, mine, 0, 1, NULL, 0), 201);
	for (i = 0; i < MGR_LEASE_STRIPES; i++)
		if (i != at)
			pthread_mutex_unlock(&l.stripe[i].lock);
	/* A thousand leases of one session are more than are taken at a time. */
	for (ino = 10000; ino < 11000; ino++)
		assert_true(mgr_leases_grant(&l, ino, 99, 1, 900));
	mgr_leases_sweep(&l, 99);
	for (ino = 10000; ino < 11000; ino++)
		assert_int_equal(mgr_leases_held(&l, ino, 0, 1, NULL, 0), 0);
	assert_int_equal(atomic_load(&l.count), 2999 + 200);
	/* Those of an inode that have ended go, whoever's they are, when one more comes. */
	for (i = 0; i < 200; i++)
		ends += 2000 - i * 37 % 500 <= 1800;
	assert_true(mgr_leases_grant(&l, mine, 7, 1800, 3000));
	assert_int_equal(atomic_load(&l.count), 2999 + 200 - ends - 1 + 1);
	mgr_leases_fini(&l);
	assert_int_equal(atomic_load(&l.count), 0);
}

static void granted(void **state)
{
	struct ls *t = *state;
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rp;
	struct pvfs_lookup_rep l;
	struct pvfs_wire w;
	struct pvfs_dent d;
	struct pvfs_attr a;
	u32 i;

	assert_int_equal(lookup(&t->a, fx_root, "file", &l), 0);
	assert_true(l.attr.flags & PVFS_AF_LEASE);
	assert_true(l.dir.flags & PVFS_AF_LEASE);
	assert_int_equal(l.dir.fid.ino, fx_root.ino);
	/* That a name is not there is told like one that is. */
	assert_int_equal(lookup(&t->a, fx_root, "none", &l), 0);
	assert_int_equal(l.attr.fid.ino, 0);
	assert_true(l.dir.flags & PVFS_AF_LEASE);
	assert_int_equal(lookup(&t->plain, fx_root, "none", &l), -ENOENT);
	assert_int_equal(lookup(&t->plain, fx_root, "file", &l), 0);
	assert_false(l.attr.flags & PVFS_AF_LEASE);
	assert_int_equal(l.dir.fid.ino, 0);

	assert_int_equal(fx_readdir(&t->b, &rd, &rp), 0);
	assert_true(rp.dir.flags & PVFS_AF_LEASE);
	assert_int_equal(rp.count, 2);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	for (i = 0; i < rp.count; i++) {
		pvfs_get_dent(&w, &d);
		assert_true(d.attr.flags & PVFS_AF_LEASE);
	}
	assert_int_equal(w.err, 0);
	/* A file that somebody writes has none, whoever it is. */
	assert_int_equal(do_open(&t->plain, t->file, PVFS_O_READ, &a), 0);
	assert_false(a.flags & PVFS_AF_LEASE);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, &a), 0);
	assert_true(a.flags & PVFS_AF_LEASE);
	t->plain.park = false;
	assert_int_equal(do_open(&t->plain, t->file, PVFS_O_WRITE, &a), 0);
	assert_false(leased(&t->a, t->file));
	assert_int_equal(lookup(&t->a, fx_root, "file", &l), 0);
	assert_false(l.attr.flags & PVFS_AF_LEASE);
	assert_true(l.dir.flags & PVFS_AF_LEASE);
	assert_int_equal(do_close(&t->plain, t->file, PVFS_O_WRITE, NULL), 0);
	assert_true(leased(&t->a, t->file));
}

static void in_the_way(void **state)
{
	struct ls *t = *state;
	struct pvfs_open_req rq = { .cred = fx_cred(&t->a), .fid = t->file, .flags = PVFS_O_WRITE };
	struct pvfs_wreport r = { .atime = { .sec = 1 } };
	struct pvfs_open_rep rp;
	struct pvfs_attr a;

	assert_true(leased(&t->a, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	/* One's own is not. */
	assert_int_equal(chmod_to(&t->a, t->file, 0600), 0);
	assert_int_equal(chmod_to(&t->plain, t->file, 0644), -EINPROGRESS);
	assert_int_equal(do_getattr(&t->plain, t->file, NULL, &a), 0);
	assert_int_equal(a.mode & 07777, 0600);
	/* But to open it for writing is, unless the client has given it up; nobody is told of B's. */
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, &a), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	rq.unleased = t->dir.ino;
	assert_int_equal(fx_open(&t->a, &rq, &rp), -EINPROGRESS);
	rq.unleased = t->file.ino;
	assert_int_equal(fx_open(&t->a, &rq, &rp), 0);
	assert_int_equal(do_close(&t->a, t->file, PVFS_O_WRITE, NULL), 0);
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);	/* the CLOSE brought one */
	assert_int_equal(chmod_to(&t->plain, t->file, 0644), 0);
	/* Names: whatever changes the directory. */
	assert_true(leased(&t->a, fx_root));
	assert_int_equal(do_mkfile(&t->b, fx_root, "new", 0644, &a), -EINPROGRESS);
	waits_for(fx_root.ino, 0);
	assert_int_equal(do_unlink(&t->b, fx_root, "file"), -EINPROGRESS);
	assert_int_equal(do_rmdir(&t->b, fx_root, "dir"), -EINPROGRESS);
	assert_true(leased(&t->a, t->dir));
	assert_int_equal(do_rename(&t->b, fx_root, "file", t->dir, "file", 0), -EINPROGRESS);
	waits_for(fx_root.ino, t->dir.ino);
	assert_int_equal(lookup(&t->plain, fx_root, "file", &(struct pvfs_lookup_rep){ 0 }), 0);
	/* To have been read is a change too; to be refused is none. */
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);
	assert_true(leased(&t->a, t->file));
	r.atime.sec = time(NULL) + 2;	/* behind the last change, too, which a finer clock told */
	usleep(2000);
	assert_int_equal(do_getattr(&t->b, t->file, &r, &a), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	t->b.uid = 1000;
	assert_int_equal(chmod_to(&t->b, t->file, 0777), -EPERM);
}

/* Whose session ended comes back to a file that others have been told since nobody writes. */
static void comes_back_to_write(void **state)
{
	struct ls *t = *state;
	struct pvfs_reclaim_req rq = { .fid = t->file, .flags = PVFS_O_WRITE, .count = 1 };
	struct pvfs_reclaim_rep rp;
	struct pvfs_attr a;

	rq.cred = fx_cred(&t->b);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, &a), 0);
	assert_true(a.flags & PVFS_AF_LEASE);
	assert_int_equal(fx_reclaim(&t->b, &rq, &rp), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);
	assert_int_equal(fx_reclaim(&t->b, &rq, &rp), 0);
	assert_false(leased(&t->a, t->file));
}

/* A lease that was given for longer while it was being recalled is not over before its end. */
static void extended_meanwhile(void **state)
{
	struct ls *t = *state;
	struct mgr *m = t->f->m;
	u64 ino = t->file.ino, now;

	assert_true(leased(&t->a, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	park(&t->plain, "one");
	now = mgr_mono_ms();
	assert_true(mgr_leases_grant(&m->leases, ino, t->a.session, now, now + 2 * LEASE_MS));
	mgr_recall_tick(m, now + LEASE_MS + 1000);
	assert_int_equal(seen.nresumed, 0);
	assert_int_equal(mgr_leases_end(&m->leases, ino, t->a.session), now + 2 * LEASE_MS);
	mgr_recall_tick(m, now + 2 * LEASE_MS);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(mgr_leases_end(&m->leases, ino, t->a.session), 0);
	mgr_recall_over(m, seen.resumed[0]);
}

/* A CLOSE of these, and what it says of the file. */
static void close_it(struct fx_client *c, struct pvfs_fid fid, u32 flags, u32 n,
		     const struct pvfs_wreport *r, struct pvfs_attr *ret)
{
	struct pvfs_closing cl = { .fid = fid, .flags = flags };
	u8 raw[2 * PVFS_CLOSING_LEN];
	struct pvfs_close_req rq = { .closings.p = raw };
	struct pvfs_close_rep rp;
	struct pvfs_wire w;
	u32 i;

	if (r)
		cl.report = *r;
	pvfs_wire_init(&w, raw, sizeof(raw));
	for (i = 0; i < n; i++)
		pvfs_put_closing(&w, &cl);
	rq.closings.len = w.p - raw;
	assert_int_equal(fx_close(c, &rq, &rp), 0);
	*ret = rp.attr;
}

static bool has_lease(struct ls *t, const struct fx_client *c, struct pvfs_fid fid)
{
	return mgr_leases_end(&t->f->m->leases, fid.ino, c->session) > mgr_mono_ms();
}

/* Who has written a file, and closed it, is told what it is now. */
static void closed(void **state)
{
	struct ls *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a, now;

	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, &a), 0);
	fx_write(&t->f->x, &a, 0, 100000, &r.wtime);
	r.end = 100000;
	r.trunc_gen = a.trunc_gen;
	close_it(&t->a, t->file, PVFS_O_WRITE, 1, &r, &now);
	assert_int_equal(now.fid.ino, t->file.ino);
	assert_int_equal(now.size, 100000);
	assert_true(now.version > a.version);
	assert_int_equal(now.mtime.sec, r.wtime.sec);
	assert_true(now.flags & PVFS_AF_LEASE);
	assert_true(has_lease(t, &t->a, t->file));
	assert_int_equal(do_getattr(&t->plain, t->file, NULL, &a), 0);
	assert_true(a.size == now.size && a.version == now.version && a.mtime.sec == now.mtime.sec &&
		    a.mtime.nsec == now.mtime.nsec && a.blocks == now.blocks);
	/* Others' changes wait for it, also to write. */
	assert_int_equal(chmod_to(&t->b, t->file, 0600), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_WRITE, NULL), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);
	/* Who takes none is told nothing. */
	assert_int_equal(do_open(&t->plain, t->file, PVFS_O_WRITE, NULL), 0);
	close_it(&t->plain, t->file, PVFS_O_WRITE, 1, NULL, &now);
	assert_int_equal(now.fid.ino, 0);
	/* Nor who has read. */
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, NULL), 0);
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);
	close_it(&t->a, t->file, PVFS_O_READ, 1, NULL, &now);
	assert_int_equal(now.fid.ino, 0);
	assert_false(has_lease(t, &t->a, t->file));
}

/* While anybody writes nothing is told, and nobody need be asked to give it back. */
static void closed_beside_writers(void **state)
{
	struct ls *t = *state;
	struct pvfs_attr a;

	/* Another session does. */
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_WRITE, NULL), 0);
	close_it(&t->a, t->file, PVFS_O_WRITE, 1, NULL, &a);
	assert_int_equal(a.fid.ino, 0);
	assert_false(has_lease(t, &t->a, t->file));
	/* The same one does, in another process; also when both go in one message. */
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	close_it(&t->b, t->file, PVFS_O_WRITE, 1, NULL, &a);
	assert_int_equal(a.fid.ino, 0);
	assert_false(has_lease(t, &t->b, t->file));
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	close_it(&t->b, t->file, PVFS_O_READ | PVFS_O_WRITE, 2, NULL, &a);
	assert_int_equal(a.fid.ino, 0);
	assert_false(has_lease(t, &t->b, t->file));
	/* It has no name any more, and goes with the close. */
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(&t->plain, fx_root, "file"), 0);
	close_it(&t->b, t->file, PVFS_O_WRITE, 1, NULL, &a);
	assert_int_equal(a.fid.ino, 0);
}

/* Nor when nobody knows how long it is, or somebody waits to change it. */
static void closed_unsettled(void **state)
{
	struct ls *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a;

	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, &a), 0);
	fx_write(&t->f->x, &a, 0, 100000, &r.wtime);
	r.end = 100000;
	r.trunc_gen = PVFS_GEN_ASK;
	t->f->x.down = ~0u;
	close_it(&t->a, t->file, PVFS_O_WRITE, 1, &r, &a);
	assert_int_equal(a.fid.ino, 0);
	t->f->x.down = 0;
	assert_true(leased(&t->a, t->file));
	/* B's chmod is parked: the lease is recalled, and none is given before it is through. */
	assert_int_equal(chmod_to(&t->b, t->file, 0600), -EINPROGRESS);
	park(&t->b, "chmod");
	mgr_recall_told(t->f->m, t->a.session, &t->file.ino, 1, 0);
	assert_int_equal(seen.nresumed, 1);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, NULL), 0);
	close_it(&t->a, t->file, PVFS_O_WRITE, 1, NULL, &a);
	assert_int_equal(a.fid.ino, 0);
	assert_false(has_lease(t, &t->a, t->file));
	mgr_recall_over(t->f->m, seen.resumed[0]);
	assert_int_equal(do_open(&t->a, t->file, PVFS_O_WRITE, NULL), 0);
	close_it(&t->a, t->file, PVFS_O_WRITE, 1, NULL, &a);
	assert_int_equal(a.fid.ino, t->file.ino);
}

static void recalling(void **state)
{
	struct ls *t = *state;
	struct mgr *m = t->f->m;
	u64 ino = t->file.ino;

	assert_true(leased(&t->a, t->file));
	assert_true(leased(&t->b, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	park(&t->plain, "one");
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.ino[0], ino);
	assert_int_equal(seen.session[0] + seen.session[1], t->a.session + t->b.session);
	/* Another waits for the same: nobody is asked twice. Meanwhile nobody gets one. */
	assert_int_equal(chmod_to(&t->plain, t->file, 0640), -EINPROGRESS);
	park(&t->plain, "two");
	assert_int_equal(seen.n, 2);
	mgr_recall_told(m, t->a.session, &ino, 1, 0);
	assert_int_equal(seen.nresumed, 0);
	assert_false(leased(&t->a, t->file));
	/* Not heard: sent again. */
	mgr_recall_told(m, t->b.session, &ino, 1, -ENOTCONN);
	assert_int_equal(seen.nresumed, 0);
	seen.err = -ENOTCONN;
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.n, 2);
	seen.err = 0;
	mgr_recall_tick(m, mgr_mono_ms());
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.session[2], t->b.session);
	mgr_recall_told(m, t->b.session, &ino, 1, 0);
	assert_int_equal(seen.nresumed, 2);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), 0);
	mgr_recall_over(m, seen.resumed[0]);
	assert_false(leased(&t->a, t->file));
	mgr_recall_over(m, seen.resumed[1]);
	assert_int_equal(atomic_load(&m->recalls.barred), 0);
	assert_true(leased(&t->a, t->file));
	/* Nothing is left to wait for when it comes to that. */
	assert_int_equal(chmod_to(&t->plain, t->file, 0644), -EINPROGRESS);
	mgr_leases_drop(&m->leases, ino, t->a.session);
	park(&t->plain, "three");
	assert_int_equal(seen.nresumed, 3);
	assert_string_equal(seen.call[2], "three");
	mgr_recall_over(m, seen.resumed[2]);
}

static void silent(void **state)
{
	struct ls *t = *state;
	struct mgr *m = t->f->m;

	assert_true(leased(&t->a, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	park(&t->plain, "one");
	mgr_recall_tick(m, mgr_mono_ms() + LEASE_MS - 1000);
	assert_int_equal(seen.nresumed, 0);
	mgr_recall_tick(m, mgr_mono_ms() + LEASE_MS);
	assert_int_equal(seen.nresumed, 1);
	mgr_recall_over(m, seen.resumed[0]);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), 0);
	/* Once is enough. */
	assert_false(leased(&t->a, t->file));
	assert_true(leased(&t->b, t->file));
	/* An answer that comes too late is nobody's. */
	mgr_recall_told(m, t->a.session, &t->file.ino, 1, 0);
	assert_int_equal(atomic_load(&m->recalls.expired), 1);
}

static void session_end(void **state)
{
	struct ls *t = *state;
	struct pvfs_session_close_req rq = {};
	struct pvfs_session_close_rep rp;

	assert_true(leased(&t->a, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	park(&t->plain, "one");
	assert_int_equal(fx_session_close(&t->a, &rq, &rp), 0);
	assert_int_equal(seen.nresumed, 1);
	mgr_recall_over(t->f->m, seen.resumed[0]);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), 0);
}

static void restart(void **state)
{
	struct ls *t = *state;
	struct pvfs_reclaim_done_req rq = { .epoch = t->f->m->epoch };
	struct pvfs_reclaim_done_rep rp;

	assert_true(leased(&t->a, t->file));
	fx_reopen(t->f);
	hook(t);
	t->plain.no_retry = true;
	/* Nobody knows who believes what; those who took none are not waited for. */
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EAGAIN);
	/* What they told an earlier process, or began to, does not count. */
	assert_int_equal(fx_reclaim_done(&t->a, &rq, &rp), -EAGAIN);
	assert_int_equal(fx_reclaim_done(&t->b, &rq, &rp), -EAGAIN);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EAGAIN);
	rq.epoch = t->f->m->epoch;
	assert_int_equal(fx_reclaim_done(&t->a, &rq, &rp), 0);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EAGAIN);
	assert_int_equal(fx_reclaim_done(&t->b, &rq, &rp), 0);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), 0);
	/* The sessions are the same, and so is what they may have. */
	assert_true(leased(&t->a, t->file));
	assert_false(leased(&t->plain, t->file));
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	fx_reopen(t->f);
	hook(t);
	assert_int_equal(chmod_to(&t->plain, t->file, 0644), -EAGAIN);
	fx_end_grace(t->f);
	assert_int_equal(chmod_to(&t->plain, t->file, 0644), 0);
}

/* ---- requests that wait for the end of the grace ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	u32 n;
	void *call[100];
} back = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static void grace_resume(struct mgr *m, struct pvfs_call *call)
{
	pthread_mutex_lock(&back.lock);
	back.call[back.n++] = call;
	pthread_cond_broadcast(&back.cond);
	pthread_mutex_unlock(&back.lock);
}

static void await_back(u32 n)
{
	pthread_mutex_lock(&back.lock);
	while (back.n < n)
		pthread_cond_wait(&back.cond, &back.lock);
	assert_int_equal(back.n, n);
	pthread_mutex_unlock(&back.lock);
}

static void reopen_waiting(struct ls *t, u32 wait_ms)
{
	fx_reopen(t->f);
	hook(t);
	back.n = 0;
	t->f->m->grace.resume = grace_resume;
	t->f->m->grace.wait_ms = wait_ms;
	assert_int_equal(mgr_grace_start(t->f->m), 0);
	t->a.wait = t->b.wait = t->plain.wait = true;
	t->a.no_retry = t->b.no_retry = t->plain.no_retry = true;
}

static int come_back(struct fx_client *c)
{
	struct pvfs_reclaim_done_req rq = { .epoch = c->f->m->epoch };
	struct pvfs_reclaim_done_rep rp;

	return fx_reclaim_done(c, &rq, &rp);
}

/* A change and a lock, each asked for once: done when the last client has told what it had. */
static void grace_waits(void **state)
{
	struct ls *t = *state;
	struct pvfs_lock_req lk = { .fid = t->file, .kind = PVFS_LK_RECORD, .type = PVFS_LK_WRITE,
				    .owner = 1, .ticket = 7 };
	struct pvfs_lock_rep lr;
	struct pvfs_getlk_req g = { .fid = t->file, .kind = PVFS_LK_RECORD, .type = PVFS_LK_WRITE };
	struct pvfs_getlk_rep gr;
	struct fx_client late;
	u32 i;

	assert_true(leased(&t->a, t->file));
	reopen_waiting(t, 3600000);
	/* Who has yet to tell its own files is not kept. */
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EAGAIN);
	assert_int_equal(come_back(&t->plain), 0);
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), -EINPROGRESS);
	assert_int_equal(fx_op.grace, MGR_GRACE_LEASES);
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, t->plain.session, (void *)"chmod"), 0);
	assert_int_equal(fx_lock(&t->plain, &lk, &lr), -EINPROGRESS);
	assert_int_equal(fx_op.grace, MGR_GRACE_LOCKS);
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, t->plain.session, (void *)"lock"), 0);
	assert_int_equal(fx_getlk(&t->plain, &g, &gr), -EINPROGRESS);
	/* To have been read is not worth waiting for. */
	{
		struct pvfs_wreport r = { .atime = { .sec = 1 } };

		assert_int_equal(do_getattr(&t->plain, t->file, &r, NULL), 0);
	}
	/* Nobody fills it up: neither one session nor many. */
	fx_op.grace = MGR_GRACE_LOCKS;
	for (i = 0; !mgr_grace_park(t->f->m, &fx_op, 99, (void *)"many"); i++)
		assert_in_range(i, 0, 63);
	assert_int_equal(i, 64);
	assert_int_equal(come_back(&t->a), 0);
	assert_int_equal(t->f->m->grace.n, 66);
	assert_int_equal(back.n, 0);
	assert_int_equal(come_back(&t->b), 0);
	await_back(66);
	assert_string_equal(back.call[0], "chmod");
	assert_string_equal(back.call[1], "lock");
	assert_int_equal(chmod_to(&t->plain, t->file, 0600), 0);
	assert_int_equal(fx_lock(&t->plain, &lk, &lr), 0);
	assert_int_equal(lr.state, PVFS_LK_GRANTED);
	lk.type = PVFS_LK_UNLOCK;
	lk.ticket = 0;
	assert_int_equal(fx_lock(&t->plain, &lk, &lr), 0);
	mgr_grace_stop(t->f->m);
	/* Or when the grace's time is over, or its own, or the manager stops. */
	reopen_waiting(t, 3600000);
	fx_client_open(&late, t->f, 4, 0);
	late.park = late.wait = late.no_retry = true;
	assert_int_equal(chmod_to(&late, t->file, 0644), -EINPROGRESS);
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, late.session, (void *)"late"), 0);
	atomic_store(&t->f->m->grace_until, mgr_mono_ms() + 20);
	mgr_grace_kick(t->f->m);
	await_back(1);
	mgr_grace_stop(t->f->m);
	reopen_waiting(t, 20);
	fx_op.grace = MGR_GRACE_LEASES;
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, late.session, (void *)"late"), 0);
	await_back(1);
	assert_true(mgr_leases_in_grace(t->f->m));
	t->f->m->grace.wait_ms = 3600000;
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, late.session, (void *)"late"), 0);
	mgr_grace_stop(t->f->m);
	await_back(2);
	assert_int_equal(mgr_grace_park(t->f->m, &fx_op, late.session, (void *)"late"), -EAGAIN);
	fx_end_grace(t->f);
}

/* Who takes back an open of what may be an orphan still knows for whom it waits. */
static void open_beside_removal(void **state)
{
	struct ls *t = *state;
	struct pvfs_attr a;

	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, &a), 0);
	assert_true(a.flags & PVFS_AF_LEASE);
	assert_int_equal(do_unlink(&t->b, fx_root, "file"), -EINPROGRESS);
	assert_int_equal(do_open(&t->b, t->file, PVFS_O_WRITE, &a), -EINPROGRESS);
	waits_for(t->file.ino, 0);
	assert_int_equal(do_close(&t->a, t->file, PVFS_O_READ, NULL), 0);
}

/* A client keeps a file open that nobody there uses any more, and tells when it was read. */
static void read_not_closed(void **state)
{
	struct ls *t = *state;
	struct pvfs_wreport r = { .atime = { .sec = time(NULL) + 2 } };	/* as in in_the_way() */
	struct pvfs_attr a;

	assert_int_equal(do_open(&t->a, t->file, PVFS_O_READ, &a), 0);
	usleep(2000);
	assert_int_equal(do_close(&t->a, t->file, 0, &r), 0);
	assert_int_equal(do_getattr(&t->plain, t->file, NULL, &a), 0);
	assert_true(a.atime.sec > a.mtime.sec || (a.atime.sec == a.mtime.sec && a.atime.nsec > a.mtime.nsec));
	mgr_leases_drop(&t->f->m->leases, t->file.ino, t->a.session);
	assert_int_equal(do_unlink(&t->plain, fx_root, "file"), 0);
	/* It is open, and so still there; then it is not. */
	assert_int_equal(do_getattr(&t->a, t->file, NULL, &a), 0);
	assert_int_equal(a.nlink, 0);
	assert_int_equal(do_close(&t->a, t->file, 0, NULL), 0);
	assert_int_equal(do_getattr(&t->a, t->file, NULL, &a), 0);
	assert_int_equal(do_close(&t->a, t->file, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_getattr(&t->a, t->file, NULL, &a), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(sweep),
		cmocka_unit_test_setup_teardown(granted, setup, teardown),
		cmocka_unit_test_setup_teardown(in_the_way, setup, teardown),
		cmocka_unit_test_setup_teardown(comes_back_to_write, setup, teardown),
		cmocka_unit_test_setup_teardown(extended_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(closed, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_beside_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_unsettled, setup, teardown),
		cmocka_unit_test_setup_teardown(recalling, setup, teardown),
		cmocka_unit_test_setup_teardown(silent, setup, teardown),
		cmocka_unit_test_setup_teardown(session_end, setup, teardown),
		cmocka_unit_test_setup_teardown(restart, setup, teardown),
		cmocka_unit_test_setup_teardown(grace_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(open_beside_removal, setup, teardown),
		cmocka_unit_test_setup_teardown(read_not_closed, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
