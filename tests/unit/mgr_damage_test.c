// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_damage_test.c - bits flip in the manager's store: in pages of every table, in the log, before
 * the start and in the middle of serving; a table is cut short. What is on a damaged page gives EIO,
 * all the rest is served; and a new store can be made of what is left.
 */
#include "mgr_fixture.h"
#include "mgr/bdbio.h"
#include "mgr/bdbpage.h"
#include "common/log.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define RECS 1000u
#define VAL 100u

static char top[64], dbdir[80];
static struct mdb *db;
static u64 cache = 1 << 20;

/* ---- a database of its own ---- */

static int open_db(bool create)
{
	struct mdb_params p = { .dir = dbdir, .cache = cache, .durability = PVFS_DURABLE_WRITE,
				.create = create };

	return mdb_bdb_open(&p, &db);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/pvfs-damage-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(dbdir, sizeof(dbdir), "%s/db", top);
	return mkdir(dbdir, 0700);
}

static int teardown(void **state)
{
	char cmd[128];

	mdb_close(db);
	db = NULL;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	return system(cmd);
}

static void value(u32 i, u32 round, u8 val[VAL])
{
	memset(val, i * 7 + round, VAL);
	memcpy(val, &i, sizeof(i));
}

static void fill(enum mdb_table tab, u32 from, u32 to, u32 round)
{
	struct mdb_txn *t;
	u8 key[8], val[VAL];
	u32 i;

	assert_int_equal(mdb_begin(db, &t), 0);
	for (i = from; i < to; i++) {
		mgr_ino_key(key, i);
		value(i, round, val);
		assert_int_equal(mdb_put(db, t, tab, key, sizeof(key), val, sizeof(val)), 0);
	}
	assert_int_equal(mdb_commit(db, t), 0);
}

/* How many of [@from, @to) give EIO; all others must be as they were written in @round. */
static u32 unreadable(enum mdb_table tab, u32 from, u32 to, u32 round)
{
	u8 key[8], val[VAL], want[VAL];
	u32 i, bad = 0;
	int n;

	for (i = from; i < to; i++) {
		mgr_ino_key(key, i);
		n = mdb_get(db, NULL, tab, key, sizeof(key), val, sizeof(val), 0);
		if (n == -EIO) {
			bad++;
			continue;
		}
		assert_int_equal(n, VAL);
		value(i, round, want);
		assert_memory_equal(val, want, VAL);
	}
	return bad;
}

static void table_path(enum mdb_table tab, char path[128])
{
	snprintf(path, 128, "%s/%s", dbdir, mdb_bdb_file(tab));
}

/* Flips a bit in the middle of a page. */
static void flip(const char *path, u32 pgno)
{
	int fd = open(path, O_RDWR);
	u8 byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)pgno * BDB_PAGE + 300), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)pgno * BDB_PAGE + 300), 1);
	close(fd);
}

static u32 pages(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size % BDB_PAGE, 0);
	return st.st_size / BDB_PAGE;
}

static u8 page_type(const char *path, u32 pgno)
{
	int fd = open(path, O_RDONLY);
	u8 page[BDB_PAGE];

	assert_int_equal(pread(fd, page, BDB_PAGE, (off_t)pgno * BDB_PAGE), BDB_PAGE);
	assert_true(bdb_page_sound(page, pgno));
	close(fd);
	return bdb_page_type(page);
}

static u32 find_page(const char *path, u8 type, u32 from)
{
	while (from < pages(path) && page_type(path, from) != type)
		from++;
	assert_true(from < pages(path));
	return from;
}

static bool of_sessions(enum mdb_table tab)
{
	return tab == MDB_SESSION || tab == MDB_SLOT;
}

/* One damaged leaf of each table, and then its first page. */
static void test_every_table(void **state)
{
	char path[128], cmd[300];
	enum mdb_table tab, other;
	u32 leaf, bad;

	assert_int_equal(open_db(true), 0);
	for (tab = 0; tab < MDB_NTABLES; tab++)
		fill(tab, 0, RECS, 0);
	mdb_close(db);
	for (tab = 0; tab < MDB_NTABLES; tab++) {
		table_path(tab, path);
		snprintf(cmd, sizeof(cmd), "cp -a %s %s.good", path, path);
		assert_int_equal(system(cmd), 0);
		leaf = find_page(path, BDB_PAGE_LEAF, pages(path) / 2);
		flip(path, leaf);
		assert_int_equal(open_db(false), 0);
		if (of_sessions(tab)) {
			/* All of both are put aside. */
			assert_true(db->sessions_lost);
			fill(tab, 0, 10, 0);
			assert_int_equal(unreadable(tab, 0, 10, 0), 0);
			mdb_close(db);
			assert_int_equal(open_db(false), 0);
			assert_true(db->sessions_lost);	/* until it was dealt with */
			assert_int_equal(db->ops->sessions_evicted(db), 0);
			assert_false(db->sessions_lost);
			fill(MDB_SESSION, 0, RECS, 0);
			fill(MDB_SLOT, 0, RECS, 0);
		} else {
			assert_false(db->sessions_lost);
			bad = unreadable(tab, 0, RECS, 0);
			assert_in_range(bad, 1, BDB_PAGE / VAL);
			/* What is beside it can be changed; the tables beside it are as they were. */
			fill(tab, 0, 10, 0);
			for (other = 0; other < MDB_NTABLES; other++)
				if (other != tab)
					assert_int_equal(unreadable(other, 0, RECS, 0), 0);
		}
		mdb_close(db);
		if (!of_sessions(tab)) {
			flip(path, leaf);
			assert_int_equal(open_db(false), 0);
			assert_int_equal(unreadable(tab, 0, RECS, 0), 0);
			mdb_close(db);
			flip(path, 0);
			assert_int_equal(open_db(false), -EIO);
			flip(path, 0);
		}
		db = NULL;
	}
	assert_int_equal(open_db(false), 0);
	for (tab = 0; tab < MDB_NTABLES; tab++)
		assert_int_equal(unreadable(tab, 0, RECS, 0), 0);
}

/*
 * The pages of a table larger than the cache, while others use it; then a panic, with pages damaged
 * that the log is about.
 */
static void test_while_serving(void **state)
{
	enum { MANY = 30000 };
	struct mdb_txn *t;
	char path[128];
	u8 key[8], val[VAL];
	u32 leaf, bad, i;
	u64 gen;
	int err;

	assert_int_equal(open_db(true), 0);
	table_path(MDB_INODE, path);
	for (i = 0; i < MANY; i += 1000)
		fill(MDB_INODE, i, i + 1000, 0);
	assert_int_equal(mdb_checkpoint(db, 0, true), 0);
	/* Out of the cache by what is read behind it. */
	assert_int_equal(unreadable(MDB_INODE, MANY / 2, MANY, 0), 0);
	for (leaf = 2, i = 0; i < 3; i++, leaf++) {
		leaf = find_page(path, BDB_PAGE_LEAF, leaf);
		flip(path, leaf);
	}
	bad = unreadable(MDB_INODE, 0, MANY, 0);
	assert_in_range(bad, 3, 3 * BDB_PAGE / VAL);
	/* A transaction that meets one ends, and is undone. */
	assert_int_equal(mdb_begin(db, &t), 0);
	err = 0;
	for (i = 0; i < MANY && !err; i += 10) {
		mgr_ino_key(key, i);
		value(i, 9, val);
		err = mdb_put(db, t, MDB_INODE, key, sizeof(key), val, sizeof(val));
	}
	assert_int_equal(err, -EIO);
	mdb_abort(db, t);
	assert_int_equal(unreadable(MDB_INODE, 0, MANY, 0), bad);

	/* All pages have been changed since the last checkpoint when some turn out to be damaged. */
	flip(path, leaf - 1);
	for (i = 0; i < MANY; i += 1000)
		if (unreadable(MDB_INODE, i, i + 1000, 0) == 0)
			fill(MDB_INODE, i, i + 1000, 1);
	assert_int_equal(mdb_sync(db), 0);
	flip(path, leaf - 1);
	gen = mdb_enter(db);
	mdb_bdb_panic(db);
	mgr_ino_key(key, 1);
	assert_int_equal(mdb_get(db, NULL, MDB_INODE, key, sizeof(key), val, sizeof(val), 0),
			 -ERESTART);
	mdb_leave(db);
	assert_int_equal(mdb_restart(db, gen), 0);
	bad = 0;
	for (i = 0; i < MANY; i++) {
		mgr_ino_key(key, i);
		err = mdb_get(db, NULL, MDB_INODE, key, sizeof(key), val, sizeof(val), 0);
		bad += err == -EIO;
		if (err != -EIO)
			assert_int_equal(err, VAL);
	}
	assert_in_range(bad, 3, 4 * BDB_PAGE / VAL);
	/* And after a start, which recovers too. */
	mdb_close(db);
	assert_int_equal(open_db(false), 0);
	assert_true(bdbio_damaged() >= 3);
}

/* The last log file: what is behind the place may be lost, and nothing worse happens. */
static void test_log(void **state)
{
	char path[400], last[256] = "", cmd[1000];
	struct dirent *d;
	struct stat st;
	DIR *dir;
	u32 at;
	int fd, err;
	u8 byte;

	assert_int_equal(open_db(true), 0);
	fill(MDB_INODE, 0, RECS, 0);
	assert_int_equal(mdb_checkpoint(db, 0, true), 0);
	fill(MDB_INODE, 0, RECS, 1);
	assert_int_equal(mdb_sync(db), 0);
	/* As after kill -9. */
	snprintf(cmd, sizeof(cmd), "cp -a %s %s/killed", dbdir, top);
	assert_int_equal(system(cmd), 0);
	mdb_close(db);
	db = NULL;
	dir = opendir(dbdir);
	while ((d = readdir(dir)))
		if (!strncmp(d->d_name, "log.", 4) && strcmp(d->d_name, last) > 0)
			strcpy(last, d->d_name);
	closedir(dir);
	for (at = 1; at < 10; at++) {
		snprintf(cmd, sizeof(cmd), "rm -rf %s && cp -a %s/killed %s", dbdir, top, dbdir);
		assert_int_equal(system(cmd), 0);
		snprintf(path, sizeof(path), "%s/%s", dbdir, last);
		assert_int_equal(stat(path, &st), 0);
		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, st.st_size / 10 * at), 1);
		byte ^= 16;
		assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 10 * at), 1);
		close(fd);
		err = open_db(false);
		if (err) {
			assert_int_equal(err, -EIO);
			db = NULL;
			continue;
		}
		mgr_ino_key((u8 *)cmd, 5);
		assert_int_equal(mdb_get(db, NULL, MDB_INODE, cmd, 8, path, VAL, 0), VAL);
		mdb_close(db);
		db = NULL;
	}
}

/* A database with some records in table @tab, closed. */
static void make_db(enum mdb_table tab, u32 recs)
{
	assert_int_equal(open_db(true), 0);
	fill(tab, 0, recs, 0);
	mdb_close(db);
	db = NULL;
}

/* The start, in a process of its own that @prepare may change. Return: its result; @text: what it logged. */
static int started(void (*prepare)(void), char text[4096])
{
	char log[128];
	int status, err;
	pid_t pid;
	FILE *f;

	snprintf(log, sizeof(log), "%s/said", top);
	pid = fork();
	if (!pid) {
		if (prepare)
			prepare();
		if (pvfs_log_init("test", PVFS_LOG_INFO, log))
			_exit(255);
		err = open_db(false);
		if (!err)
			mdb_close(db);
		_exit(-err);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	memset(text, 0, 4096);
	f = fopen(log, "r");
	assert_non_null(f);
	err = fread(text, 1, 4095, f);
	fclose(f);
	unlink(log);
	return -WEXITSTATUS(status);
}

/* @text says what, where, and what to do. */
static void says(const char *text, const char *what, const char *where)
{
	if (!strstr(text, where) || !strstr(text, what) ||
	    !strstr(text, "restore the store from a backup") || !strstr(text, "--salvage"))
		fail_msg("%s", text);
}

static void test_half_a_page_short(void **state)
{
	char path[128], text[4096];

	make_db(MDB_DIRENT, RECS);
	table_path(MDB_DIRENT, path);
	assert_int_equal(truncate(path, (off_t)pages(path) * BDB_PAGE - BDB_PAGE / 2), 0);
	assert_int_equal(started(NULL, text), -EIO);
	says(text, "2048 bytes short", path);
}

/* At the end of a page: only the first one tells how long the table should be. */
static void test_pages_short(void **state)
{
	char path[128], text[4096];
	u32 n;

	make_db(MDB_INODE, RECS);
	table_path(MDB_INODE, path);
	n = pages(path);
	assert_int_equal(truncate(path, (off_t)(n - 1) * BDB_PAGE), 0);
	assert_int_equal(started(NULL, text), -EIO);
	says(text, "4096 bytes short", path);
	assert_int_equal(truncate(path, (off_t)3 * BDB_PAGE), 0);
	assert_int_equal(started(NULL, text), -EIO);
	says(text, "ends after page 2", path);
}

/* Of sessions only they are lost. */
static void test_sessions_short(void **state)
{
	char path[128];

	make_db(MDB_SLOT, RECS);
	table_path(MDB_SLOT, path);
	assert_int_equal(truncate(path, (off_t)(pages(path) - 2) * BDB_PAGE), 0);
	assert_int_equal(open_db(false), 0);
	assert_true(db->sessions_lost);
	assert_int_equal(unreadable(MDB_SLOT, 0, 0, 0), 0);
	fill(MDB_SLOT, 0, 10, 0);
}

/* A crash leaves tables that are shorter than their log says: no less than they should be, when it is applied. */
static void test_crash_is_not_short(void **state)
{
	char cmd[300], path[128];
	struct mdb_txn *t;
	u8 key[8], val[VAL];
	u32 i, before;

	assert_int_equal(open_db(true), 0);
	fill(MDB_INODE, 0, 100, 0);
	assert_int_equal(mdb_checkpoint(db, 0, true), 0);
	table_path(MDB_INODE, path);
	before = pages(path);
	fill(MDB_INODE, 100, RECS, 0);
	/* And one that was taking pages, and is undone; and one that did not come to its end. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(mdb_begin(db, &t), 0);
		for (u32 k = 0; k < RECS; k++) {
			mgr_ino_key(key, (i + 1) * 100000 + k);
			value(k, 0, val);
			assert_int_equal(mdb_put(db, t, MDB_DIRENT + i, key, sizeof(key), val, sizeof(val)), 0);
		}
		if (!i)
			mdb_abort(db, t);
	}
	assert_int_equal(mdb_sync(db), 0);
	snprintf(cmd, sizeof(cmd), "cp -a %s %s/killed", dbdir, top);
	assert_int_equal(system(cmd), 0);
	mdb_abort(db, t);
	mdb_close(db);
	db = NULL;
	snprintf(cmd, sizeof(cmd), "rm -rf %s && mv %s/killed %s", dbdir, top, dbdir);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(pages(path), before);
	assert_int_equal(open_db(false), 0);
	assert_int_equal(unreadable(MDB_INODE, 0, RECS, 0), 0);
}

static void test_no_log(void **state)
{
	char text[4096], cmd[300];

	make_db(MDB_INODE, RECS);
	snprintf(cmd, sizeof(cmd), "mkdir %s/logs && mv %s/log.* %s/logs", top, dbdir, top);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(started(NULL, text), -EIO);
	says(text, "log (log.*) is missing: put it back", dbdir);
	/* That is possible: none was begun. */
	snprintf(cmd, sizeof(cmd), "! ls %s/log.* 2>/dev/null && mv %s/logs/* %s", dbdir, top, dbdir);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(started(NULL, text), 0);
}

/* One that was begun with the tables there, by whatever did that. */
static void test_young_log(void **state)
{
	char text[4096], cmd[300], path[128];

	/* The tables' first pages were changed late in their log. */
	make_db(MDB_INODE, 10 * RECS);
	snprintf(cmd, sizeof(cmd), "mv %s %s/old && mkdir %s", dbdir, top, dbdir);
	assert_int_equal(system(cmd), 0);
	make_db(MDB_INODE, 1);
	snprintf(cmd, sizeof(cmd), "cp %s/old/inode.db %s", top, dbdir);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(started(NULL, text), -EIO);
	table_path(MDB_INODE, path);
	says(text, "put", dbdir);
	says(text, "log (log.*)", "");
}

/* As the user whose the rest of the store is. */
static void be_nobody(void)
{
	if (!geteuid() && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		_exit(255);
}

static void test_no_rights(void **state)
{
	const char *const files[] = { "log.0000000001", "inode.db", "session.db" };
	char text[4096], cmd[300], path[200];
	u32 i;

	make_db(MDB_INODE, RECS);
	snprintf(cmd, sizeof(cmd), "chown -R 65534:65534 %s || ! [ $(id -u) = 0 ]", top);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(started(be_nobody, text), 0);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dbdir, files[i]);
		/* As a run of root's would leave it; whoever is not root is kept out by the mode. */
		assert_int_equal(chmod(path, 0), 0);
		assert_true(geteuid() || !chown(path, 0, 0));
		assert_int_equal(started(be_nobody, text), -EACCES);
		if (!strstr(text, path) || !strstr(text, "Permission denied") || !strstr(text, "chown") ||
		    strstr(text, "backup") || strstr(text, "--salvage"))
			fail_msg("%s", text);
		assert_true(geteuid() || !chown(path, 65534, 65534));
		assert_int_equal(chmod(path, 0600), 0);
	}
	assert_int_equal(started(be_nobody, text), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void little_memory(void)
{
	struct rlimit rl = { .rlim_cur = 1 << 30, .rlim_max = 1 << 30 };

	cache = (u64)1 << 40;
	if (setrlimit(RLIMIT_AS, &rl))
		_exit(255);
}

static void test_no_memory(void **state)
{
	char text[4096];

	make_db(MDB_INODE, 1);
	assert_int_equal(started(little_memory, text), -ENOMEM);
	if (!strstr(text, "not enough memory for a cache of 1048576 MiB: make 'db_cache' smaller") ||
	    strstr(text, "backup") || strstr(text, "--salvage"))
		fail_msg("%s", text);
}
#endif

/* ---- a whole manager ---- */

static void store_path(const struct fx *f, enum mdb_table tab, char path[4200])
{
	snprintf(path, 4200, "%s/db/%s", f->conf.mgr_store, mdb_bdb_file(tab));
}

static struct pvfs_attr make(struct fx_client *c, const struct pvfs_fid *dir, const char *name,
			     u32 type)
{
	struct pvfs_mkdir_req md = { .cred = fx_cred(c), .dir = *dir, .name = PVFS_STR(name),
				     .mode = 0755 };
	struct pvfs_mknod_req mk = { .cred = fx_cred(c), .dir = *dir, .name = PVFS_STR(name),
				     .mode = S_IFREG | 0644 };
	struct pvfs_mkdir_rep mdr;
	struct pvfs_mknod_rep mkr;

	if (type == S_IFDIR) {
		assert_int_equal(fx_mkdir(c, &md, &mdr), 0);
		return mdr.attr;
	}
	assert_int_equal(fx_mknod(c, &mk, &mkr), 0);
	return mkr.attr;
}

static int look(struct fx_client *c, const struct pvfs_fid *dir, const char *name,
		struct pvfs_attr *ret)
{
	struct pvfs_lookup_req rq = { .cred = fx_cred(c), .dir = *dir, .name = PVFS_STR(name) };
	struct pvfs_lookup_rep rp;
	int err = fx_lookup(c, &rq, &rp);

	if (!err)
		*ret = rp.attr;
	return err;
}

/* Whoever had a session is evicted, also at the iods, and the volume is served. */
static void test_sessions(void **state)
{
	struct fx *f = fx_new();
	struct pvfs_fid root = { .ino = PVFS_ROOT_INO, .gen = 1 };
	struct fx_client c, d;
	struct pvfs_attr a;
	char path[4200];

	fx_client_open(&c, f, 1, 0);
	make(&c, &root, "file", S_IFREG);
	fx_stop(f);
	store_path(f, MDB_SESSION, path);
	flip(path, 1);
	fx_start(f);
	assert_int_equal(look(&c, &root, "file", &a), -ESTALE);
	assert_int_equal(f->x.evicts, 0);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, FX_NIODS);
	assert_true(f->x.evicted == (PVFS_SESSION_ALL | c.session));
	fx_client_open(&d, f, 2, 0);
	assert_true(d.session > c.session);
	assert_int_equal(look(&d, &root, "file", &a), 0);
	/* It is over: the session made since is there after the next start. */
	fx_reopen(f);
	mgr_sessions_expire(f->m);
	assert_int_equal(f->x.evicts, FX_NIODS);
	assert_int_equal(look(&d, &root, "file", &a), 0);
	fx_free(f);
}

/* @damage pages of the tables before it is salvaged. */
static struct fx *salvaged(bool meta, bool log)
{
	enum { DIRS = 20, FILES = 60 };
	struct fx *f = fx_new();
	struct pvfs_fid root = { .ino = PVFS_ROOT_INO, .gen = 1 };
	struct pvfs_attr dir, a;
	char path[4200], newdir[200], err[256] = "", name[4300];
	struct fx_client c;
	u32 i, k, found = 0;
	FILE *out;

	fx_client_open(&c, f, 1, 0);
	for (i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		dir = make(&c, &root, name, S_IFDIR);
		for (k = 0; k < FILES; k++) {
			snprintf(name, sizeof(name), "file%u", k);
			make(&c, &dir.fid, name, S_IFREG);
		}
	}
	fx_stop(f);
	store_path(f, MDB_INODE, path);
	flip(path, find_page(path, BDB_PAGE_LEAF, pages(path) / 2));
	store_path(f, MDB_DIRENT, path);
	flip(path, find_page(path, BDB_PAGE_LEAF, pages(path) / 2));
	flip(path, find_page(path, BDB_PAGE_INTERNAL, 1));
	flip(path, 0);
	if (meta) {
		store_path(f, MDB_META, path);
		flip(path, find_page(path, BDB_PAGE_LEAF, 1));
	}
	if (log) {
		snprintf(name, sizeof(name), "cd %s/db && for f in log.*; do echo x >$f; done",
			 f->conf.mgr_store);
		assert_int_equal(system(name), 0);
	}
	assert_true(fx_try_open(f) < 0);
	f->m = NULL;
	snprintf(newdir, sizeof(newdir), "%s/new", f->dir);
	out = fopen("/dev/null", "w");
	if (mgr_salvage(&f->conf, newdir, out, err, sizeof(err)))
		fail_msg("%s", err);
	fclose(out);
	strcpy(f->conf.mgr_store, newdir);
	fx_start(f);
	fx_check(f);
	fx_client_open(&c, f, 2, 0);
	for (i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "dir%u", i);
		if (look(&c, &root, name, &dir))
			continue;
		for (k = 0; k < FILES; k++) {
			snprintf(name, sizeof(name), "file%u", k);
			found += !look(&c, &dir.fid, name, &a);
		}
	}
	/* Two pages of some tens of records are gone. */
	assert_in_range(found, DIRS * FILES / 2, DIRS * FILES - 1);
	make(&c, &root, "new", S_IFREG);
	return f;
}

static void test_salvage(void **state)
{
	fx_free(salvaged(false, false));
}

static void test_salvage_without_meta(void **state)
{
	fx_free(salvaged(true, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_while_serving, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_half_a_page_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pages_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sessions_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash_is_not_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_young_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_rights, setup, teardown),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
#endif
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_salvage),
		cmocka_unit_test(test_salvage_without_meta),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_damage", tests, NULL, NULL);
}
