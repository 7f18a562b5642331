// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_mdb_test.c - the seam to the database keeps its contract: errors, ranges, isolation,
 * deadlocks, recovery; and the records of schema.h survive the way there and back, and are refused
 * when damaged.
 */
#include "mgr_fixture.h"

static int setup(void **state)
{
	*state = fx_new();
	return 0;
}

static int teardown(void **state)
{
	fx_free(*state);
	return 0;
}

static void basics(void **state)
{
	struct mdb *db = ((struct fx *)*state)->m->db;
	struct mdb_txn *t;
	u8 val[16];

	mdb_enter(db);
	assert_int_equal(mdb_begin(db, &t), 0);
	assert_int_equal(mdb_get(db, t, MDB_META, "k", 1, val, sizeof(val), MDB_RMW), -ENOENT);
	assert_int_equal(mdb_put_new(db, t, MDB_META, "k", 1, "one", 3), 0);
	assert_int_equal(mdb_put_new(db, t, MDB_META, "k", 1, "two", 3), -EEXIST);
	assert_int_equal(mdb_put(db, t, MDB_META, "k", 1, "three", 5), 0);
	assert_int_equal(mdb_get(db, t, MDB_META, "k", 1, val, sizeof(val), 0), 5);
	assert_memory_equal(val, "three", 5);
	assert_int_equal(mdb_get(db, t, MDB_META, "k", 1, val, 4, 0), -EMSGSIZE);
	assert_int_equal(mdb_del(db, t, MDB_META, "none", 4), -ENOENT);
	mdb_abort(db, t);
	assert_int_equal(mdb_get(db, NULL, MDB_META, "k", 1, val, sizeof(val), 0), -ENOENT);
	assert_int_equal(mdb_begin(db, &t), 0);
	assert_int_equal(mdb_put(db, t, MDB_META, "k", 1, "", 0), 0);
	assert_int_equal(mdb_commit(db, t), 0);
	assert_int_equal(mdb_sync(db), 0);
	assert_int_equal(mdb_get(db, NULL, MDB_META, "k", 1, val, sizeof(val), 0), 0);
	assert_int_equal(mdb_del(db, NULL, MDB_META, "k", 1), 0);
	assert_int_equal(mdb_checkpoint(db, 0, true), 0);
	mdb_leave(db);
}

static void ranges(void **state)
{
	struct mdb *db = ((struct fx *)*state)->m->db;
	u8 key[MGR_PAIR_KEY], val[8];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	struct mdb_txn *t;
	u64 i;

	mdb_enter(db);
	assert_int_equal(mdb_begin(db, &t), 0);
	for (i = 0; i < 1000; i++) {
		mgr_pair_key(key, 5, i * 10);
		assert_int_equal(mdb_put(db, t, MDB_ORPHAN, key, sizeof(key), "x", 1), 0);
	}
	assert_int_equal(mdb_commit(db, t), 0);
	assert_int_equal(mdb_cursor_open(db, NULL, MDB_ORPHAN, 0, &c), 0);
	mgr_pair_key(key, 5, 1234);
	assert_int_equal(mdb_cursor_seek(&c, key, sizeof(key), &rec), 0);
	for (i = 1240; i < 10000; i += 10) {
		assert_int_equal(rec.klen, MGR_PAIR_KEY);
		assert_int_equal(mgr_get_be64(rec.key + 8), i);
		assert_int_equal(mdb_cursor_next(&c, &rec), i == 9990 ? -ENOENT : 0);
	}
	mgr_pair_key(key, 6, 0);
	assert_int_equal(mdb_cursor_seek(&c, key, sizeof(key), &rec), -ENOENT);
	mgr_pair_key(key, 0, 0);
	assert_int_equal(mdb_cursor_seek(&c, key, sizeof(key), &rec), 0);
	assert_int_equal(mgr_get_be64(rec.key), 5);
	mdb_cursor_close(&c);
	for (i = 0; i < 1000; i++) {
		mgr_pair_key(key, 5, i * 10);
		assert_int_equal(mdb_del(db, NULL, MDB_ORPHAN, key, sizeof(key)), 0);
	}
	mdb_leave(db);
}

/* Two threads that lock two records (on different tables, so different pages) in opposite order. */
struct crossing {
	struct mgr *m;
	enum mdb_table first, second;
	pthread_barrier_t *both;
	unsigned int runs;
	int err;
};

static int crossing_fn(struct mgr_op *op, void *arg)
{
	struct crossing *x = arg;
	u8 val[64];
	int n;

	n = mdb_get(op->m->db, op->txn, x->first, "crossing", 8, val, sizeof(val), MDB_RMW);
	if (n < 0)
		return n;
	if (!x->runs++)
		pthread_barrier_wait(x->both);
	n = mdb_get(op->m->db, op->txn, x->second, "crossing", 8, val, sizeof(val), MDB_RMW);
	return n < 0 ? n : 0;
}

static int crossing_bg(struct mgr_op *op, void *arg)
{
	return mgr_run(op, crossing_fn, arg, 0);
}

static void *crossing_thread(void *arg)
{
	struct crossing *x = arg;
	struct mgr_op *op = malloc(sizeof(*op));

	mgr_op_init_bg(op, x->m);
	x->err = mgr_bg_run(op, crossing_bg, x);
	free(op);
	return NULL;
}

static void deadlocks(void **state)
{
	struct fx *f = *state;
	pthread_barrier_t both;
	struct crossing x[2];
	pthread_t t[2];
	int i;

	mdb_put(f->m->db, NULL, MDB_META, "crossing", 8, "m", 1);
	mdb_put(f->m->db, NULL, MDB_SLOT, "crossing", 8, "s", 1);
	pthread_barrier_init(&both, NULL, 2);
	for (i = 0; i < 2; i++) {
		x[i] = (struct crossing){
			.m = f->m, .first = i ? MDB_META : MDB_SLOT, .second = i ? MDB_SLOT :
			MDB_META, .both = &both,
		};
		assert_int_equal(pthread_create(&t[i], NULL, crossing_thread, &x[i]), 0);
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&both);
	assert_int_equal(x[0].err, 0);
	assert_int_equal(x[1].err, 0);
	assert_true(f->m->count.retries >= 1);
	mdb_del(f->m->db, NULL, MDB_SLOT, "crossing", 8);
}

static void recovery(void **state)
{
	struct fx *f = *state;
	struct mdb *db = f->m->db;
	struct mdb_txn *t;
	u64 gen, again;
	u8 val[8];

	gen = mdb_enter(db);
	assert_int_equal(mdb_begin(db, &t), 0);
	assert_int_equal(mdb_put(db, t, MDB_META, "lost", 4, "x", 1), 0);
	mdb_bdb_panic(db);
	assert_int_equal(mdb_commit(db, t), -ERESTART);
	assert_int_equal(mdb_get(db, NULL, MDB_META, "lost", 4, val, sizeof(val), 0), -ERESTART);
	assert_int_equal(mdb_begin(db, &t), -ERESTART);
	mdb_leave(db);
	assert_int_equal(mdb_restart(db, gen), 0);
	assert_int_equal(mdb_restart(db, gen), 0);
	again = mdb_enter(db);
	assert_int_equal(again, gen + 1);
	assert_int_equal(mdb_get(db, NULL, MDB_META, "lost", 4, val, sizeof(val), 0), -ENOENT);
	assert_true(mdb_get(db, NULL, MDB_META, "super", 5, val, 1, 0) == -EMSGSIZE);
	mdb_leave(db);
}

/* ---- records ---- */

static void inode_records(void **state)
{
	struct mgr_inode in, out;
	struct mgr_inode_disk d, bad;
	u32 n, i;

	memset(&in, 0, sizeof(in));
	in = (struct mgr_inode){
		.ino = 77, .gen = 5, .flags = MGR_IF_UNCERTAIN | MGR_IF_TRIM,
		.mode = S_IFREG | 0640, .nlink = 3,
		.uid = 1, .gid = 2, .trunc_gen = 9, .rdev = 4, .size = 1ull << 40,
		.version = 1ull << 61, .entries = 6,
		.atime = { -1, 1 }, .mtime = { 2, 999999999 }, .ctime = { 3, 3 }, .btime = { 4, 4 },
		.wtime = { 5, 5 },
		.layout = { 1, 4, 65536, 8192 }, .parent = { 8, 9 },
	};
	n = mgr_inode_encode(&in, &d);
	assert_int_equal(n, sizeof(d));
	memset(&out, 0, sizeof(out));
	assert_int_equal(mgr_inode_decode(&out, 77, &d, n), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	for (i = 0; i < n; i++)
		assert_int_equal(mgr_inode_decode(&out, 77, &d, i), -EUCLEAN);
#define BAD(change) do { \
		bad = d; \
		change; \
		assert_int_equal(mgr_inode_decode(&out, 77, &bad, n), -EUCLEAN); \
	} while (0)
	BAD(bad.format++);
	BAD(bad.flags = cpu_to_le32(MGR_IF_ALL + 1));
	BAD(bad.mode = cpu_to_le32(0640));
	BAD(bad.mode = cpu_to_le32(S_IFREG | 01000000));
	BAD(bad.pcount = 0);
	BAD(bad.ssize = cpu_to_le32(65537));
	BAD(bad.ssize = cpu_to_le32(512));
	BAD(bad.size = cpu_to_le64(1ull << 63));
	BAD(bad.stuff_max = cpu_to_le32(PVFS_STUFF_MAX + 1));
	BAD(bad.flags = cpu_to_le32(MGR_IF_STUFFED));	/* and so long */
}

static void other_records(void **state)
{
	struct mgr_dirent de = { .ino = 3, .gen = 4, .type = S_IFDIR >> 12,
		.name = PVFS_STR("name") }, de2;
	struct mgr_session_rec s = { .opened = 12, .host = "host" }, s2;
	struct mgr_trim_rec t = { .gen = 1, .trunc_gen = 2, .size = 3 }, t2;
	struct mgr_super su = { .niods = 7 }, su2;
	struct mgr_trim_disk td;
	struct mgr_super_disk sud;
	struct mgr_mark_disk md;
	u8 key[MGR_PAIR_KEY], buf[512];
	u32 n, i, gen;

	mgr_pair_key(key, 1, 2);
	n = mgr_dirent_encode(&de, buf);
	assert_int_equal(mgr_dirent_decode(&de2, key, sizeof(key), buf, n), 0);
	assert_int_equal(de2.dir, 1);
	assert_int_equal(de2.cookie, 2);
	assert_int_equal(de2.ino, 3);
	assert_int_equal(de2.name.len, 4);
	for (i = 0; i < n; i++)
		assert_int_equal(mgr_dirent_decode(&de2, key, sizeof(key), buf, i), -EUCLEAN);
	assert_int_equal(mgr_dirent_decode(&de2, key, sizeof(key) - 1, buf, n), -EUCLEAN);
	n = mgr_session_encode(&s, buf);
	assert_int_equal(mgr_session_decode(&s2, buf, n), 0);
	assert_string_equal(s2.host, "host");
	for (i = 0; i < n; i++)
		assert_int_equal(mgr_session_decode(&s2, buf, i), -EUCLEAN);
	n = mgr_trim_encode(&t, &td);
	assert_int_equal(mgr_trim_decode(&t2, &td, n), 0);
	assert_int_equal(t2.size, 3);
	assert_int_equal(mgr_trim_decode(&t2, &td, n - 1), -EUCLEAN);
	n = mgr_super_encode(&su, &sud);
	assert_int_equal(mgr_super_decode(&su2, &sud, n), 0);
	assert_int_equal(su2.niods, 7);
	sud.format = 9;
	assert_int_equal(mgr_super_decode(&su2, &sud, n), -EUCLEAN);
	n = mgr_mark_encode(6, &md);
	assert_int_equal(mgr_mark_decode(&gen, &md, n), 0);
	assert_int_equal(gen, 6);
}

/* The vectors of the reference implementation: key 00..0f, input 00..n-1. */
static void siphash(void **state)
{
	static const u64 want[] = {
		0x726fdb47dd0e0e31ull, 0x74f839c593dc67fdull, 0x0d6c8009d9a94f5aull,
		0x85676696d7fb7e2dull,
		0xcf2794e0277187b7ull, 0x18765564cd99a68dull, 0xcbc9466e58fee3ceull,
		0xab0200f58b01d137ull,
		0x93f5f5799a932462ull, 0x9e0082df0ba9e4b0ull,
	};
	u8 key[16], in[16];
	u32 i;

	for (i = 0; i < 16; i++)
		key[i] = in[i] = i;
	for (i = 0; i < ARRAY_SIZE(want); i++)
		assert_true(mgr_siphash(key, in, i) == want[i]);
}

/* A damaged record is an error for who meets it, and nothing worse. */
static void damage(void **state)
{
	struct fx *f = *state;
	struct pvfs_attr a, d;
	struct fx_client c;
	u8 key[MGR_INO_KEY], val[256];
	int n;

	fx_client_init(&c, f, 1);
	do_mkdir(&c, fx_root, "d", 0755, &d);
	do_mkfile(&c, d.fid, "f", 0644, &a);
	mgr_ino_key(key, a.fid.ino);
	n = mdb_get(f->m->db, NULL, MDB_INODE, key, sizeof(key), val, sizeof(val), 0);
	assert_true(n > 0);
	val[0] = 99;
	mdb_put(f->m->db, NULL, MDB_INODE, key, sizeof(key), val, n);
	assert_int_equal(do_getattr(&c, a.fid, NULL, NULL), -EIO);
	assert_int_equal(do_unlink(&c, d.fid, "f"), -EIO);
	assert_int_equal(do_mkfile(&c, d.fid, "g", 0644, NULL), 0);
	val[0] = MGR_INODE_FORMAT;
	mdb_put(f->m->db, NULL, MDB_INODE, key, sizeof(key), val, n);
	assert_int_equal(do_unlink(&c, d.fid, "f"), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(basics), T(ranges), T(deadlocks), T(recovery), T(damage),
		cmocka_unit_test(inode_records), cmocka_unit_test(other_records),
		cmocka_unit_test(siphash),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
