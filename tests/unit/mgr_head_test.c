// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_head_test.c - stuffed files: reading, writing and cutting heads, capabilities, unstuffing
 * with iods that are away or full, leases, restarts; with heads in the database, and in files.
 */
#include "mgr_head_fixture.h"

/* From its making to its end no iod hears of it. */
static void life(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), o;
	struct pvfs_attr at;

	assert_true(h.at.flags & PVFS_AF_STUFFED);
	assert_int_equal(h.at.layout.stuff_max, STUFF);
	is(&t->a, &h, "", 0);
	put(&t->a, &h, 0, 0, "hello, world", 12);
	assert_int_equal(h.at.size, 12);
	assert_int_equal(h.at.blocks, 8);
	put(&t->a, &h, 0, 7, "there, ", 7);
	o = open_it(&t->b, h.at.fid, PVFS_O_READ);
	assert_int_equal(o.at.size, 14);
	assert_int_equal(o.at.flags & (PVFS_AF_WRITERS | PVFS_AF_SIZE_UNKNOWN), 0);
	assert_true(o.at.version == h.at.version);
	is(&t->b, &o, "hello, there, ", 14);
	put(&t->a, &h, PVFS_HW_APPEND, 0, "you", 3);
	is(&t->b, &o, "hello, there, you", 17);
	/* A gap in a block is zeros. */
	put(&t->a, &h, 0, 20, "!", 1);
	is(&t->b, &o, "hello, there, you\0\0\0!", 21);
	put(&t->a, &h, 0, 0, t->bytes, STUFF);
	is(&t->b, &o, t->bytes, STUFF);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, STUFF);
	assert_int_equal(at.mtime.sec, h.at.mtime.sec);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_close(&t->b, h.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_unlink(&t->b, fx_root, "f"), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), -ESTALE);
	assert_int_equal(mgr_reap_pass(t->f->m), 0);
	assert_int_equal(t->f->x.glimpses + t->f->x.trims + t->f->x.fills + t->f->x.removes, 0);
}

static void refused(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), r = open_it(&t->b, h.at.fid, PVFS_O_READ), x = h;
	struct pvfs_unstuff_req rq = { .fid = h.at.fid, .cap = r.cap };
	struct pvfs_unstuff_rep rp;
	struct pvfs_attr at;
	bool done;

	put(&t->a, &h, 0, 0, "abc", 3);
	/* Another session's, for reading only, of another file, none. */
	assert_int_equal(head_read(&t->b, &h, &at), -EACCES);
	assert_int_equal(head_write(&t->b, &r, 0, 0, "x", 1, &done), -EACCES);
	assert_int_equal(fx_unstuff(&t->b, &rq, &rp), -EACCES);
	x.at.fid.gen++;
	assert_int_equal(head_read(&t->a, &x, &at), -EACCES);
	x = h;
	x.cap.mac[3] ^= 1;
	assert_int_equal(head_write(&t->a, &x, 0, 0, "x", 1, &done), -EACCES);
	/* Nothing, too much, flags that are none, an offset that is not wanted. */
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 0, &done), -EINVAL);
	assert_int_equal(head_write(&t->a, &h, 0, 0, t->bytes, PVFS_STUFF_MAX + 1, &done), -EINVAL);
	assert_int_equal(head_write(&t->a, &h, 4, 0, "x", 1, &done), -EINVAL);
	assert_int_equal(head_write(&t->a, &h, PVFS_HW_APPEND, 1, "x", 1, &done), -EINVAL);
	is(&t->a, &h, "abc", 3);
	/* A limit beyond the limit. */
	assert_int_equal(set_layout(&t->a, fx_root, (struct pvfs_layout){
		.base = MGR_BASE_ANY, .pcount = 1, .ssize = 4096, .stuff_max = PVFS_STUFF_MAX + 1 }),
		-EINVAL);
}

/* Bytes that are not put there, because the file is then striped; what was there is. */
static void spill(struct hs *t, const char *name, u32 had, u32 flags, u64 off, u32 len)
{
	struct hf h = make(&t->a, name, 0);
	bool done = true;

	if (had)
		put(&t->a, &h, 0, 0, t->bytes, had);
	assert_int_equal(head_write(&t->a, &h, flags, off, t->bytes, len, &done), 0);
	assert_false(done);
	is_striped(t, &h.at, t->bytes, had);
	assert_int_equal(h.at.size, had);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &h.at), 0);
	assert_int_equal(h.at.size, had);
	/* For good. */
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &done), 0);
	assert_false(done);
	assert_int_equal(head_read(&t->a, &h, &h.at), 0);
	assert_int_equal(fx_op.payload_len, 0);
	is_striped(t, &h.at, t->bytes, had);
}

static void unstuffing(void **state)
{
	struct hs *t = *state;
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr at;
	struct hf h;

	spill(t, "new", 0, 0, 1, STUFF);
	assert_int_equal(t->f->x.fills, 0);
	spill(t, "long", 100, 0, STUFF, 1);
	assert_int_equal(t->f->x.fills, 1);
	spill(t, "full", STUFF, PVFS_HW_APPEND, 0, 1);
	assert_int_equal(t->f->x.fills, 4);
	spill(t, "hole", 4096, 0, 8192, 1);
	spill(t, "hole at the start", 0, 0, 4096, 1);
	spill(t, "far", 10, 0, PVFS_FILE_MAX, 10);
	/* Who has it open may write to the datafiles from then on, and reports it. */
	h = make(&t->a, "writer", 0);
	put(&t->a, &h, 0, 0, t->bytes, 5000);
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &(bool){ 0 }), 0);
	fx_write(&t->f->x, &h.at, 5000, 100000, &r.wtime);
	r.end = 105000;
	r.trunc_gen = h.at.trunc_gen;
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE, &r), 0);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 105000);
	/* Who asks while it writes hears from the iods; and they alone know when it vanishes. */
	h = make(&t->a, "lost", 0);
	put(&t->a, &h, 0, 0, t->bytes, 5000);
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &(bool){ 0 }), 0);
	fx_write(&t->f->x, &h.at, 5000, 100000, &r.wtime);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 105000);
	fx_write(&t->f->x, &h.at, 105000, 1000, &r.wtime);
	fx_reopen(t->f);
	fx_end_grace(t->f);
	assert_int_equal(do_getattr(&t->b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 106000);
}

static void cuts(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0);
	struct pvfs_attr at;
	u8 want[5000] = { 0 };

	put(&t->a, &h, 0, 0, t->bytes, 5000);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 4500, NULL, &at), 0);
	assert_int_equal(at.size, 4500);
	is(&t->a, &h, t->bytes, 4500);
	/* Within its last block. */
	assert_int_equal(do_truncate(&t->b, h.at.fid, 5000, NULL, &at), 0);
	memcpy(want, t->bytes, 4500);
	is(&t->a, &h, want, 5000);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 0, NULL, &at), 0);
	is(&t->a, &h, "", 0);
	put(&t->a, &h, 0, 0, t->bytes, 100);
	assert_int_equal(do_open(&t->b, h.at.fid, PVFS_O_WRITE | PVFS_O_TRUNC, &at), 0);
	assert_int_equal(at.size, 0);
	is(&t->a, &h, "", 0);
	assert_int_equal(t->f->x.trims + t->f->x.fills + t->f->x.glimpses, 0);
	/* Blocks that would be holes. */
	put(&t->a, &h, 0, 0, t->bytes, 100);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 10000, NULL, &at), 0);
	assert_int_equal(at.size, 10000);
	is_striped(t, &at, t->bytes, 100);
	/* Who may not write may not have it unstuffed either. */
	h = make(&t->a, "g", 0);
	put(&t->a, &h, 0, 0, t->bytes, 100);
	t->b.uid = 1000;
	assert_int_equal(do_truncate(&t->b, h.at.fid, 10000, NULL, &at), -EACCES);
	is(&t->a, &h, t->bytes, 100);
}

static void iods_away(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), g = make(&t->a, "g", 0);
	struct pvfs_attr at;
	bool done = true;

	put(&t->a, &h, 0, 0, t->bytes, 9000);
	put(&t->a, &g, 0, 0, t->bytes, 9000);
	t->f->x.fill_error = -EHOSTDOWN;
	t->a.no_retry = true;
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &done), -EAGAIN);
	assert_int_equal(head_write(&t->a, &g, 0, STUFF, "x", 1, &done), -EAGAIN);
	t->a.no_retry = false;
	is(&t->a, &h, t->bytes, 9000);
	/* Its datafiles may be anything by now: the head does not change, nor is it cut. */
	t->f->x.fill_error = -ENOSPC;
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &done), -ENOSPC);
	assert_int_equal(do_truncate(&t->b, h.at.fid, 0, NULL, &at), -ENOSPC);
	is(&t->a, &h, t->bytes, 9000);
	fx_reopen(t->f);
	is(&t->a, &h, t->bytes, 9000);
	t->f->x.fill_error = 0;
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &done), 0);
	assert_false(done);
	is_striped(t, &h.at, t->bytes, 9000);
	/* What was half done goes with the file. */
	fx_end_grace(t->f);
	assert_true(fx_datafiles(&t->f->x, g.at.fid.ino) > 0);
	assert_int_equal(do_close(&t->a, g.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(&t->a, fx_root, "g"), 0);
	assert_int_equal(mgr_reap_pass(t->f->m), 0);
	assert_int_equal(fx_datafiles(&t->f->x, g.at.fid.ino), 0);
}

/* An answer that was lost, before and after a restart: an append is done once. */
static void once(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0);
	u32 seq;

	put(&t->a, &h, PVFS_HW_APPEND, 0, "ab", 2);
	seq = --t->a.seq;
	put(&t->a, &h, PVFS_HW_APPEND, 0, "ab", 2);
	assert_int_equal(h.at.size, 2);
	fx_reopen(t->f);
	t->a.seq = seq;
	put(&t->a, &h, PVFS_HW_APPEND, 0, "ab", 2);
	assert_int_equal(h.at.size, 2);
	put(&t->a, &h, PVFS_HW_APPEND, 0, "cd", 2);
	is(&t->a, &h, "abcd", 4);
}

/* A database whose next commit loses against another, which has meanwhile unstuffed the file. */
static struct {
	struct mdb_ops ops;
	const struct mdb_ops *real;
	struct hs *t;
	struct hf *by;			/* how the other has it open */
	bool lost;
} loser;

static void *unstuff_it(void *arg)
{
	bool done = true;

	assert_int_equal(head_write(&loser.t->b, loser.by, 0, STUFF, "x", 1, &done), 0);
	assert_false(done);
	free(fx_op.payload);
	return NULL;
}

static int losing_commit(struct mdb *db, struct mdb_txn *t)
{
	pthread_t other;

	if (loser.lost)
		return loser.real->commit(db, t);
	loser.lost = true;
	loser.real->abort(db, t);
	assert_int_equal(pthread_create(&other, NULL, unstuff_it, NULL), 0);
	pthread_join(other, NULL);
	return -EDEADLK;
}

/* What was to be written when the transaction lost is not said to be written. */
static void deadlock(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), o = open_it(&t->b, h.at.fid, PVFS_O_READ | PVFS_O_WRITE);
	struct mdb *db = t->f->m->db;
	bool done = true;

	put(&t->a, &h, 0, 0, t->bytes, 100);
	loser.real = db->ops;
	loser.ops = *db->ops;
	loser.ops.commit = losing_commit;
	loser.t = t;
	loser.by = &o;
	loser.lost = false;
	db->ops = &loser.ops;
	assert_int_equal(head_write(&t->a, &h, 0, 50, "lost?", 5, &done), 0);
	db->ops = loser.real;
	assert_true(loser.lost);
	assert_false(done);
	is_striped(t, &h.at, t->bytes, 100);
}

/* Not every file is stuffed, and not every layout says whether. */
static void which(void **state)
{
	struct hs *t = *state;
	struct pvfs_layout l = small_units;
	struct pvfs_attr at;
	struct hf h;

	h = make(&t->a, "striped", PVFS_O_STRIPED);
	assert_false(h.at.flags & PVFS_AF_STUFFED);
	assert_int_equal(do_mkfile(&t->a, fx_root, "mknod", 0644, &at), 0);
	assert_true(at.flags & PVFS_AF_STUFFED);
	l.stuff_max = PVFS_STUFF_KEEP;
	l.pcount = 2;
	assert_int_equal(set_layout(&t->a, fx_root, l), 0);
	h = make(&t->a, "kept", 0);
	assert_true(h.at.flags & PVFS_AF_STUFFED);
	assert_int_equal(h.at.layout.stuff_max, STUFF);
	assert_int_equal(h.at.layout.pcount, 2);
	l.stuff_max = 0;
	assert_int_equal(set_layout(&t->a, fx_root, l), 0);
	at = make(&t->a, "none", 0).at;
	assert_false(at.flags & PVFS_AF_STUFFED);
	/* Those that are there stay as they are. */
	put(&t->a, &h, 0, 0, t->bytes, STUFF);
	is(&t->a, &h, t->bytes, STUFF);
}

/* Who believes what the file was is told before it is written to, or unstuffed. */
static void leases(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), r;
	struct fx_client c;
	struct pvfs_attr at;
	bool done;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	put(&t->a, &h, 0, 0, t->bytes, 5000);
	r = open_it(&c, h.at.fid, PVFS_O_READ);
	assert_int_equal(head_read(&c, &r, &at), 0);
	assert_true(at.flags & PVFS_AF_LEASE);
	t->a.park = true;
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &done), -EINPROGRESS);
	assert_int_equal(fx_op.nnoted, 1);
	assert_int_equal(fx_op.noted[0].ino, h.at.fid.ino);
	is(&c, &r, t->bytes, 5000);
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &done), -EINPROGRESS);
	assert_int_equal(fx_op.nnoted, 1);
	is(&c, &r, t->bytes, 5000);
	mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, c.session);
	put(&t->a, &h, 0, 0, "x", 1);
	/* While it is being unstuffed nobody gets one. */
	t->f->x.fill_error = -EHOSTDOWN;
	t->a.no_retry = true;
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &done), -EAGAIN);
	assert_int_equal(head_read(&c, &r, &at), 0);
	assert_false(at.flags & PVFS_AF_LEASE);
	t->f->x.fill_error = 0;
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &done), 0);
	assert_false(done);
}

/* What its maker keeps back for a while, and nobody else is told of until it comes. */
static void drafts(void **state)
{
	struct hs *t = *state;
	struct pvfs_flush_req set = {
		.valid = PVFS_SA_MODE | PVFS_SA_UID | PVFS_SA_GID | PVFS_SA_MTIME,
		.mode = 04640, .uid = 7, .gid = 8, .mtime = { .sec = 1000, .nsec = 5 },
	};
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rdp;
	struct mgr_leases *l = &t->f->m->leases;
	struct pvfs_flush_rep rp;
	struct fx_client c, b;
	struct pvfs_attr at;
	struct pvfs_dent e;
	struct pvfs_wire w;
	struct hf h, g, o;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	fx_client_open(&b, t->f, 4, PVFS_SO_LEASES);
	/* Only for who answers RECALLs, of what is stuffed, and only when it is new. */
	assert_int_equal(make(&t->a, "x", PVFS_O_DRAFT).at.flags & PVFS_AF_DRAFT, 0);
	assert_int_equal(make(&c, "s", PVFS_O_DRAFT | PVFS_O_STRIPED).at.flags & PVFS_AF_DRAFT, 0);
	assert_int_equal(make(&c, "x", PVFS_O_DRAFT).at.flags & PVFS_AF_DRAFT, 0);
	h = make(&c, "f", PVFS_O_DRAFT);
	g = make(&c, "g", PVFS_O_DRAFT);
	assert_int_equal(h.at.flags & (PVFS_AF_DRAFT | PVFS_AF_LEASE), PVFS_AF_DRAFT | PVFS_AF_LEASE);
	/* Its maker asks what it likes; others wait, whatever they ask, and get no lease by asking. */
	assert_int_equal(do_lookup(&c, fx_root, "f", &at), 0);
	b.park = true;
	assert_int_equal(do_lookup(&b, fx_root, "f", &at), -EINPROGRESS);
	assert_int_equal(fx_op.nnoted, 1);
	assert_int_equal(fx_op.noted[0].ino, h.at.fid.ino);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), -EINPROGRESS);
	assert_int_equal(do_open(&b, h.at.fid, PVFS_O_READ, NULL), -EINPROGRESS);
	assert_int_equal(do_unlink(&b, fx_root, "f"), -EINPROGRESS);
	assert_int_equal(mgr_leases_held(l, h.at.fid.ino, c.session, mgr_mono_ms(), NULL, 0), 0);
	/* A listing does not wait: there it has no attributes. */
	assert_int_equal(fx_readdir(&b, &rd, &rdp), 0);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	assert_int_equal(rdp.count, 4);
	while (pvfs_wire_left(&w)) {
		bool draft;

		pvfs_get_dent(&w, &e);
		assert_int_equal(w.err, 0);
		draft = e.attr.fid.ino == h.at.fid.ino || e.attr.fid.ino == g.at.fid.ino;
		assert_int_equal(!e.attr.version, draft);
		assert_int_equal(e.attr.mode & S_IFMT, S_IFREG);
	}
	/* It comes, all of it at once. */
	assert_int_equal(flush(&c, &h, set, t->bytes, 5000, &rp), 0);
	assert_true(rp.done);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 5000);
	assert_int_equal(at.mode, S_IFREG | 04640);
	assert_int_equal(at.uid, 7);
	assert_int_equal(at.gid, 8);
	assert_int_equal(at.mtime.sec, 1000);
	assert_true(at.version == rp.attr.version && at.version > h.at.version);
	o = open_it(&b, h.at.fid, PVFS_O_READ);
	is(&b, &o, t->bytes, 5000);
	/* It is no draft any more: nothing comes of the version that was. Unless it may have come. */
	mgr_leases_drop(l, h.at.fid.ino, b.session);
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), 0);
	assert_false(rp.done);
	is(&b, &o, t->bytes, 5000);
	mgr_leases_drop(l, h.at.fid.ino, b.session);
	set.flags = PVFS_FL_AGAIN;
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), 0);
	assert_true(rp.done);
	/* Closed without any, it is none either. Nor when the session is over. */
	assert_int_equal(do_close(&c, g.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_getattr(&b, g.at.fid, NULL, &at), 0);
	h = make(&c, "h", PVFS_O_DRAFT);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), -EINPROGRESS);
	mgr_recall_session_end(t->f->m, c.session);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), 0);
	assert_int_equal(atomic_load(&l->kept), 0);
	/* Nonsense. */
	set.flags = 8;
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), -EINVAL);
	set.flags = PVFS_FL_RECALLED | PVFS_FL_WLEASE;
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), -EINVAL);
	set.flags = 0;
	assert_int_equal(flush(&c, &h, set, t->bytes, PVFS_STUFF_MAX + 1, &rp), -EINVAL);
	set.valid |= PVFS_SA_SIZE;
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), -EINVAL);
	h.cap.mac[0] ^= 1;
	set.valid = 0;
	assert_int_equal(flush(&c, &h, set, "x", 1, &rp), -EACCES);
}

static u32 drafts_of(struct hs *t)
{
	return atomic_load(&t->f->m->leases.drafts);
}

/* The mgr keeps room for each, as long as it is one, and no longer. */
static void drafts_counted(void **state)
{
	struct hs *t = *state;
	struct pvfs_create_req rq = { .dir = fx_root, .name = PVFS_STR("p"), .mode = 0644,
				      .flags = MKRW | PVFS_O_DRAFT };
	struct pvfs_create_rep rp;
	struct fx_client c, b;
	struct pvfs_attr at;
	struct hf h, same;
	bool done;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	fx_client_open(&b, t->f, 4, PVFS_SO_LEASES);
	rq.cred = fx_cred(&c);
	c.park = b.park = true;
	h = make(&c, "f", PVFS_O_DRAFT);
	assert_int_equal(drafts_of(t), 1);
	/* A CREATE that waits for others comes again, and makes another file. */
	assert_int_equal(do_getattr(&b, fx_root, NULL, &at), 0);
	assert_true(at.flags & PVFS_AF_LEASE);
	assert_int_equal(fx_create(&c, &rq, &rp), -EINPROGRESS);
	assert_int_equal(drafts_of(t), 1);
	mgr_leases_drop(&t->f->m->leases, fx_root.ino, b.session);
	assert_int_equal(fx_create(&c, &rq, &rp), 0);
	assert_int_equal(drafts_of(t), 2);
	assert_int_equal(do_close(&c, rp.attr.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(drafts_of(t), 1);
	/* It was opened once more, and that is closed: it is one all the same. */
	same = open_it(&c, h.at.fid, PVFS_O_READ);
	assert_int_equal(do_close(&c, same.at.fid, PVFS_O_READ, NULL), 0);
	same = open_it(&c, h.at.fid, PVFS_O_WRITE);
	assert_int_equal(do_close(&c, same.at.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(drafts_of(t), 1);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), -EINPROGRESS);
	/* Who writes to it at the mgr keeps nothing back. */
	assert_int_equal(head_write(&c, &h, 0, 0, "x", 1, &done), 0);
	assert_int_equal(drafts_of(t), 0);
}

/* After a restart nothing is told of what may be a draft, before all have said what they keep back. */
static void drafts_of_before(void **state)
{
	struct hs *t = *state;
	struct pvfs_readdir_req rd = { .dir = fx_root, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_reclaim_req rq = { .flags = PVFS_O_READ | PVFS_O_WRITE, .count = 1 };
	struct pvfs_reclaim_done_req done = {};
	struct pvfs_reclaim_done_rep done_rep;
	struct pvfs_flush_req set = { };
	struct pvfs_readdir_rep rdp;
	struct pvfs_reclaim_rep rp;
	struct pvfs_flush_rep frp;
	struct fx_client c, b;
	struct pvfs_attr at;
	struct pvfs_dent e;
	struct pvfs_wire w;
	struct hf h, g;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	fx_client_open(&b, t->f, 4, PVFS_SO_LEASES);
	h = make(&t->a, "full", 0);
	put(&t->a, &h, 0, 0, t->bytes, 100);
	h = make(&c, "f", PVFS_O_DRAFT);
	g = make(&c, "g", PVFS_O_DRAFT);
	fx_reopen(t->f);
	b.park = c.park = b.no_retry = c.no_retry = true;
	done.epoch = t->f->m->epoch;
	assert_int_equal(fx_reclaim_done(&b, &done, &done_rep), 0);
	assert_int_equal(do_lookup(&b, fx_root, "full", &at), 0);
	assert_int_equal(do_lookup(&b, fx_root, "f", &at), -EAGAIN);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(do_open(&b, h.at.fid, PVFS_O_READ, NULL), -EAGAIN);
	assert_int_equal(fx_readdir(&b, &rd, &rdp), 0);
	assert_int_equal(rdp.count, 3);
	pvfs_wire_init(&w, fx_op.payload, fx_op.payload_len);
	while (pvfs_wire_left(&w)) {
		pvfs_get_dent(&w, &e);
		assert_int_equal(!e.attr.version, e.attr.fid.ino == h.at.fid.ino ||
						  e.attr.fid.ino == g.at.fid.ino);
	}
	/* One of the two still is one. It comes too early, and again. */
	rq.fid = h.at.fid;
	rq.flags |= PVFS_O_DRAFT;
	assert_int_equal(fx_reclaim(&c, &rq, &rp), 0);
	h.cap = rp.cap;
	rq.fid = g.at.fid;
	rq.flags &= ~PVFS_O_DRAFT;
	assert_int_equal(fx_reclaim(&c, &rq, &rp), 0);
	assert_int_equal(flush(&c, &h, set, t->bytes, 5000, &frp), -EAGAIN);
	assert_int_equal(do_getattr(&b, g.at.fid, NULL, &at), -EAGAIN);
	assert_int_equal(fx_reclaim_done(&c, &done, &done_rep), 0);
	assert_int_equal(do_getattr(&b, g.at.fid, NULL, &at), 0);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), -EINPROGRESS);
	/* Noted when it was asked for, and never told of. */
	mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, b.session);
	assert_int_equal(flush(&c, &h, set, t->bytes, 5000, &frp), 0);
	assert_true(frp.done);
	assert_int_equal(do_getattr(&b, h.at.fid, NULL, &at), 0);
	assert_int_equal(at.size, 5000);
}

/* Who opens it to read may have it along, if it can be believed. */
static void eager(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0);
	struct fx_client c;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	put(&t->a, &h, 0, 0, t->bytes, 5000);
	open_it(&c, h.at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 5000);
	assert_memory_equal(fx_op.payload, t->bytes, 5000);
	open_it(&c, h.at.fid, PVFS_O_EXEC | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 5000);
	/* By name. */
	assert_int_equal(do_create(&c, fx_root, "f", PVFS_O_READ | PVFS_O_EAGER, 0, &h.at), 0);
	assert_int_equal(fx_op.payload_len, 5000);
	assert_memory_equal(fx_op.payload, t->bytes, 5000);
	/* Not asked for, no lease, to write, nothing in it. */
	open_it(&c, h.at.fid, PVFS_O_READ);
	assert_int_equal(fx_op.payload_len, 0);
	open_it(&t->b, h.at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 0);
	open_it(&c, h.at.fid, PVFS_O_READ | PVFS_O_WRITE | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 0);
	h = make(&t->a, "empty", 0);
	open_it(&c, h.at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 0);
	/* More than may come along. */
	assert_int_equal(set_layout(&t->a, fx_root, (struct pvfs_layout){
		.base = MGR_BASE_ANY, .pcount = 1, .ssize = 4096, .stuff_max = 2 * STUFF }), 0);
	h = make(&t->a, "long", 0);
	put(&t->a, &h, 0, 0, t->bytes, STUFF);
	open_it(&c, h.at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, PVFS_EAGER_MAX);
	mgr_leases_drop(&t->f->m->leases, h.at.fid.ino, c.session);
	put(&t->a, &h, PVFS_HW_APPEND, 0, "x", 1);
	open_it(&c, h.at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 0);
}

int main(void)
{
#define T(name) \
	{ #name, name, hs_setup_db, hs_teardown, NULL }, \
	{ #name ", files", name, hs_setup_file, hs_teardown, NULL }
	const struct CMUnitTest tests[] = {
		T(life), T(refused), T(unstuffing), T(cuts), T(iods_away), T(once), T(deadlock),
		T(which), T(leases), T(drafts), T(drafts_counted), T(drafts_of_before), T(eager),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_head", tests, NULL, NULL);
}
