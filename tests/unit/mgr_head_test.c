// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_head_test.c - stuffed files: reading, writing and cutting heads, capabilities, unstuffing with
 * iods that are away or full, leases, restarts, damage.
 */
#include "mgr_fixture.h"

#define MKRW (PVFS_O_CREAT | PVFS_O_READ | PVFS_O_WRITE)
#define STUFF 16384u

/* A file that is open for reading and writing by a client. */
struct hf {
	struct pvfs_attr at;
	struct pvfs_cap cap;
};

struct hs {
	struct fx *f;
	struct fx_client a, b;
	u8 bytes[STUFF + 10];
};

static int set_layout(struct fx_client *c, struct pvfs_fid fid, struct pvfs_layout l)
{
	struct pvfs_setlayout_req rq = { .cred = fx_cred(c), .fid = fid, .layout = l };
	struct pvfs_setlayout_rep rp;

	return fx_setlayout(c, &rq, &rp);
}

static const struct pvfs_layout small_units = {
	.base = MGR_BASE_ANY, .pcount = 3, .ssize = 4096, .stuff_max = STUFF,
};

static int setup(void **state)
{
	struct hs *t = calloc(1, sizeof(*t));
	u32 i;

	t->f = fx_new();
	fx_client_init(&t->a, t->f, 1);
	fx_client_init(&t->b, t->f, 2);
	for (i = 0; i < sizeof(t->bytes); i++)
		t->bytes[i] = i * 7 + i / 251;
	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct hs *t = *state;

	fx_free(t->f);
	free(t);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

static struct hf make(struct fx_client *c, const char *name, u32 flags)
{
	struct pvfs_create_req rq = { .cred = fx_cred(c), .dir = fx_root, .name = PVFS_STR(name),
				      .flags = MKRW | flags, .mode = 0755 };
	struct pvfs_create_rep rp;

	assert_int_equal(fx_create(c, &rq, &rp), 0);
	return (struct hf){ rp.attr, rp.cap };
}

static struct hf open_it(struct fx_client *c, struct pvfs_fid fid, u32 flags)
{
	struct pvfs_open_req rq = { .cred = fx_cred(c), .fid = fid, .flags = flags };
	struct pvfs_open_rep rp;

	assert_int_equal(fx_open(c, &rq, &rp), 0);
	return (struct hf){ rp.attr, rp.cap };
}

static int head_write(struct fx_client *c, struct hf *h, u32 flags, u64 off, const void *p, u32 n,
		      bool *done)
{
	struct pvfs_head_write_req rq = { .fid = h->at.fid, .flags = flags, .off = off,
					  .cap = h->cap };
	struct pvfs_head_write_rep rp;
	int err;

	c->data = p;
	c->data_len = n;
	err = fx_head_write(c, &rq, &rp);
	if (!err) {
		h->at = rp.attr;
		*done = rp.done;
	}
	return err;
}

/* It is written, and stays stuffed. */
static void put(struct fx_client *c, struct hf *h, u32 flags, u64 off, const void *p, u32 n)
{
	bool done = false;

	assert_int_equal(head_write(c, h, flags, off, p, n, &done), 0);
	assert_true(done);
	assert_true(h->at.flags & PVFS_AF_STUFFED);
}

static int head_read(struct fx_client *c, const struct hf *h, struct pvfs_attr *at)
{
	struct pvfs_head_read_req rq = { .fid = h->at.fid, .cap = h->cap };
	struct pvfs_head_read_rep rp;
	int err = fx_head_read(c, &rq, &rp);

	fx_take(at, err, &rp.attr);
	return err;
}

/* The file is stuffed and consists of these bytes. */
static void is(struct fx_client *c, const struct hf *h, const void *p, u32 n)
{
	struct pvfs_attr at;

	assert_int_equal(head_read(c, h, &at), 0);
	assert_true(at.flags & PVFS_AF_STUFFED);
	assert_int_equal(at.size, n);
	assert_int_equal(fx_op.payload_len, n);
	if (n)
		assert_memory_equal(fx_op.payload, p, n);
}

/* It is striped, and its datafiles together consist of these bytes. */
static void is_striped(struct hs *t, const struct pvfs_attr *at, const u8 *p, u32 n)
{
	struct pvfs_extent e;
	u32 off;

	assert_false(at->flags & PVFS_AF_STUFFED);
	for (off = 0; off < n; off += e.len) {
		struct fx_datafile *d;

		pvfs_stripe_map(&at->layout, off, n - off, &e);
		d = fx_df(&t->f->x, pvfs_stripe_iod(&at->layout, e.df, FX_NIODS), &at->fid, false);
		assert_non_null(d);
		assert_non_null(d->filled);
		assert_true(d->size >= e.off + e.len);
		assert_memory_equal(d->filled + e.off, p + off, e.len);
		assert_true(mgr_ts_zero(&d->wtime));
	}
}

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
	assert_int_equal(head_write(&t->a, &h, 2, 0, "x", 1, &done), -EINVAL);
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

/* A head that is not what was put there: an error for it alone. */
static void damaged(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), g = make(&t->a, "g", 0);
	struct mgr *m = t->f->m;
	u8 rec[200], key[MGR_INO_KEY];
	struct mgr_check_result res;
	struct pvfs_attr at;
	int n;

	put(&t->a, &h, 0, 0, t->bytes, 100);
	put(&t->a, &g, 0, 0, t->bytes, 100);
	mgr_ino_key(key, h.at.fid.ino);
	mdb_enter(m->db);
	n = mdb_get(m->db, NULL, MDB_HEAD, key, sizeof(key), rec, sizeof(rec), 0);
	assert_int_equal(n, 108);
	rec[50] ^= 4;
	assert_int_equal(mdb_put(m->db, NULL, MDB_HEAD, key, sizeof(key), rec, n), 0);
	mdb_leave(m->db);
	assert_int_equal(head_read(&t->a, &h, &at), -EIO);
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &(bool){ 0 }), -EIO);
	assert_int_equal(head_write(&t->a, &h, 0, STUFF, "x", 1, &(bool){ 0 }), -EIO);
	assert_int_equal(do_getattr(&t->a, h.at.fid, NULL, &at), 0);
	is(&t->a, &g, t->bytes, 100);
	assert_int_equal(mgr_check(m, NULL, &res), 0);
	assert_int_equal(res.problems, 1);
	/* It can still be removed. */
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(&t->a, fx_root, "f"), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(life), T(refused), T(unstuffing), T(cuts), T(iods_away), T(once), T(which),
		T(leases), T(eager), T(damaged),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_head", tests, NULL, NULL);
}
