/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mgr_head_fixture.h - stuffed files for the tests of their operations and of the two stores: made,
 * opened, written and read by two clients of mgr_fixture.h.
 */
#ifndef MGR_HEAD_FIXTURE_H
#define MGR_HEAD_FIXTURE_H

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

static inline int set_layout(struct fx_client *c, struct pvfs_fid fid, struct pvfs_layout l)
{
	struct pvfs_setlayout_req rq = { .cred = fx_cred(c), .fid = fid, .layout = l };
	struct pvfs_setlayout_rep rp;

	return fx_setlayout(c, &rq, &rp);
}

static const struct pvfs_layout small_units __attribute__((unused)) = {
	.base = MGR_BASE_ANY, .pcount = 3, .ssize = 4096, .stuff_max = STUFF,
};

static inline struct hs *hs_new(enum pvfs_stuff_store store)
{
	struct hs *t = calloc(1, sizeof(*t));
	u32 i;

	t->f = fx_new();
	t->f->conf.stuff_store = store;
	fx_reopen(t->f);
	fx_client_init(&t->a, t->f, 1);
	fx_client_init(&t->b, t->f, 2);
	for (i = 0; i < sizeof(t->bytes); i++)
		t->bytes[i] = i * 7 + i / 251;
	assert_int_equal(set_layout(&t->a, fx_root, small_units), 0);
	return t;
}

static inline int hs_setup_db(void **state)
{
	*state = hs_new(PVFS_STUFF_DB);
	return 0;
}

static inline int hs_setup_file(void **state)
{
	*state = hs_new(PVFS_STUFF_FILE);
	return 0;
}

/* Files in the store's directory of heads. */
static inline u32 hs_files(const struct hs *t)
{
	struct mgr_headfile f;
	u32 i, n = 0;
	DIR *d;

	for (i = 0; i < MGR_HEADDIRS; i++) {
		d = mgr_headfile_opendir(&t->f->m->heads.dir, i);
		while (d && mgr_headfile_next(d, &f))
			n++;
		if (d)
			closedir(d);
	}
	return n;
}

/* Records that say that their head is in one. */
static inline u32 hs_named(const struct hs *t)
{
	static u8 val[MGR_HEAD_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb *db = t->f->m->db;
	u8 key[MGR_INO_KEY] = { 0 };
	struct mdb_cursor c;
	u32 n = 0;
	int err;

	mdb_enter(db);
	assert_int_equal(mdb_cursor_open(db, NULL, MDB_HEAD, 0, &c), 0);
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec))
		n += val[0] == MGR_HEADFILE_FORMAT;
	mdb_cursor_close(&c);
	mdb_leave(db);
	assert_int_equal(err, -ENOENT);
	return n;
}

/* When all is done that goes on behind the replies, no file is left that no record names. */
static inline void hs_clean(struct hs *t)
{
	assert_int_equal(mgr_heads_pass(t->f->m), 0);
	assert_int_equal(hs_files(t), hs_named(t));
}

static inline int hs_teardown(void **state)
{
	struct hs *t = *state;

	if (t->f->m)
		hs_clean(t);
	fx_free(t->f);
	free(t);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

static inline struct hf make(struct fx_client *c, const char *name, u32 flags)
{
	struct pvfs_create_req rq = { .cred = fx_cred(c), .dir = fx_root, .name = PVFS_STR(name),
				      .flags = MKRW | flags, .mode = 0755 };
	struct pvfs_create_rep rp;

	assert_int_equal(fx_create(c, &rq, &rp), 0);
	return (struct hf){ rp.attr, rp.cap };
}

static inline struct hf open_it(struct fx_client *c, struct pvfs_fid fid, u32 flags)
{
	struct pvfs_open_req rq = { .cred = fx_cred(c), .fid = fid, .flags = flags };
	struct pvfs_open_rep rp;

	assert_int_equal(fx_open(c, &rq, &rp), 0);
	return (struct hf){ rp.attr, rp.cap };
}

static inline int flush(struct fx_client *c, const struct hf *h, struct pvfs_flush_req rq, const void *p, u32 n,
			struct pvfs_flush_rep *rp)
{
	rq.cred = fx_cred(c);
	rq.fid = h->at.fid;
	rq.cap = h->cap;
	rq.version = h->at.version;
	c->data = p;
	c->data_len = n;
	return fx_flush(c, &rq, rp);
}

static inline int head_write(struct fx_client *c, struct hf *h, u32 flags, u64 off, const void *p,
			     u32 n, bool *done)
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
static inline void put(struct fx_client *c, struct hf *h, u32 flags, u64 off, const void *p, u32 n)
{
	bool done = false;

	assert_int_equal(head_write(c, h, flags, off, p, n, &done), 0);
	assert_true(done);
	assert_true(h->at.flags & PVFS_AF_STUFFED);
}

static inline int head_read(struct fx_client *c, const struct hf *h, struct pvfs_attr *at)
{
	struct pvfs_head_read_req rq = { .fid = h->at.fid, .cap = h->cap };
	struct pvfs_head_read_rep rp;
	int err = fx_head_read(c, &rq, &rp);

	fx_take(at, err, &rp.attr);
	return err;
}

/* The file is stuffed and consists of these bytes. */
static inline void is(struct fx_client *c, const struct hf *h, const void *p, u32 n)
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
static inline void is_striped(struct hs *t, const struct pvfs_attr *at, const u8 *p, u32 n)
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

#endif
