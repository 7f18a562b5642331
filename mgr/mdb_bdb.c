// SPDX-License-Identifier: GPL-2.0
/*
 * mdb_bdb.c - the tables of mdb.h as Berkeley DB 5.3 B-trees in one transactional environment.
 *
 * The environment is private to the process (its regions are on the heap): nothing of it is left
 * behind by a crash but the log and the tables, and every open runs recovery from the last
 * checkpoint. Locks are on pages; the deadlock detector runs whenever a lock is waited for. Log
 * files that no recovery needs are removed at checkpoints.
 *
 * Commit writes the log to memory (durability "sync") or to the kernel ("write"); mdb_sync()
 * flushes what is in memory, and Berkeley DB merges flushes that are asked for at once. All of its
 * errors are turned into errno values here.
 *
 * A damaged page is EIO for who needs it, and nothing to the rest: see bdbio.h. Sessions and their
 * replies are worth less than the volume: where a page of theirs is damaged at the start, both tables
 * are put aside, and whoever had a session is evicted (session.c).
 */
#include "bdbfiles.h"
#include "bdbio.h"
#include "bdbpage.h"
#include "mdb.h"
#include "../common/log.h"
#include <db.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

struct bdb {
	struct mdb base;
	struct mdb_params p;
	char dir[4096];
	DB_ENV *env;			/* NULL while a restart has failed */
	DB *tab[MDB_NTABLES];
	atomic_bool panicked;		/* said so in the log already */
	atomic_bool given_up;		/* a restart is due; everything fails until then */
	u64 lost;			/* bytes of memory, see LOST_MAX; during restarts only */
	bool opened;			/* what is started now goes on with what the mgr knows */
	int cause;			/* of the first panic since env_open(), 0: none */
};

#define PAGE_BYTES 4096u	/* of a table */

/*
 * Longest wait for a page lock. Looked at when the detector runs. Transactions take far less than a
 * millisecond, so this ends only waits for locks that will never be released (bdb_give_up()).
 */
#define LOCK_TIMEOUT_US 1000000u

/*
 * A panicked environment cannot be taken apart: its memory is lost at every recovery in place. It
 * happens when the log cannot be written, which the manager's space reserve makes rare; when this
 * much is lost all the same, the process ends, to be started anew with nothing lost but time.
 */
#define LOST_MAX ((u64)1 << 30)
#define LOST_REGIONS ((u64)10 << 20)	/* of one environment, besides the cache */

#define RECOVERY_BYTES ((u64)8 << 20)	/* free before recovery is tried: it writes log */
#define FULL_BYTES ((u64)1 << 20)	/* with less free, it failed for lack of space */

static const char *const table_file[MDB_NTABLES] = {
	[MDB_INODE] = "inode.db", [MDB_DIRENT] = "dirent.db", [MDB_SYMLINK] = "symlink.db",
	[MDB_SLOT] = "slot.db", [MDB_SESSION] = "session.db", [MDB_REAP] = "reap.db",
	[MDB_ORPHAN] = "orphan.db", [MDB_TRIM] = "trim.db",
	[MDB_XATTR] = "xattr.db", [MDB_HEAD] = "head.db", [MDB_META] = "meta.db",
};

const char *mdb_bdb_file(enum mdb_table tab)
{
	return table_file[tab];
}

static struct bdb *to_bdb(struct mdb *db)
{
	return container_of(db, struct bdb, base);
}

/* Berkeley DB's result as ours. @what is for the log line of the unexpected ones. */
static int map_error(struct bdb *b, int err, const char *what)
{
	switch (err) {
	case 0:
		return 0;
	case DB_NOTFOUND:
	case DB_KEYEMPTY:
		return -ENOENT;
	case DB_KEYEXIST:
		return -EEXIST;
	case DB_LOCK_DEADLOCK:
	case DB_LOCK_NOTGRANTED:
		return -EDEADLK;
	case DB_RUNRECOVERY:
		if (!atomic_exchange(&b->panicked, true))
			pvfs_error("database: %s: recovery is needed", what);
		return -ERESTART;
	case DB_BUFFER_SMALL:
		return -EMSGSIZE;
	case ENOSPC:
	case EDQUOT:
		return -ENOSPC;
	case EIO:
		if (bdbio_refused())	/* that page was told of */
			return -EIO;
		pvfs_log_limited(PVFS_LOG_ERROR, "database: %s: %s", what, strerror(err));
		return -EIO;
	case ENOMEM:
		pvfs_log_limited(PVFS_LOG_ERROR, "database: %s: out of memory or locks", what);
		return -ENOMEM;
	case DB_PAGE_NOTFOUND:
		pvfs_log_limited(PVFS_LOG_ERROR,
				 "database in %s: %s: a table has lost its end: stop me and look at the disk; started anew I say which table, and what to do",
				 b->dir, what);
		return -EIO;
	default:
		pvfs_log_limited(PVFS_LOG_ERROR, "database: %s: %s", what, db_strerror(err));
		return -EIO;
	}
}

static void on_error(const DB_ENV *env, const char *prefix, const char *msg)
{
	const struct bdb *b = env->app_private;

	/* Every call into a panicked environment says so once more. */
	if (atomic_load(&b->panicked) || atomic_load(&b->given_up))
		return;
	/* What bdbio.c makes of a damaged page, after it has said so. */
	if (strstr(msg, " seek: "))
		return;
	pvfs_log_limited(PVFS_LOG_WARNING, "database: %s", msg);
}

/* What a panic is about; its callers only get to know that there was one. */
static void on_event(DB_ENV *env, u32 event, void *info)
{
	struct bdb *b = env->app_private;

	if (event == DB_EVENT_PANIC && info && !b->cause)
		b->cause = *(int *)info;
}

static void bdb_shut(struct bdb *b)
{
	unsigned int i;

	for (i = 0; i < MDB_NTABLES; i++) {
		if (b->tab[i])
			b->tab[i]->close(b->tab[i], 0);
		b->tab[i] = NULL;
	}
	if (b->env)
		b->env->close(b->env, 0);
	b->env = NULL;
}

static int env_configure(struct bdb *b)
{
	u64 cache = max(b->p.cache, (u64)1 << 20);
	DB_ENV *env = b->env;
	int err;

	env->app_private = b;
	env->set_errcall(env, on_error);
	env->set_event_notify(env, on_event);
	err = env->set_cachesize(env, cache >> 30, cache & ((1u << 30) - 1), 1 + (cache >> 31));
	err = err ?: env->set_lk_detect(env, DB_LOCK_DEFAULT);
	err = err ?: env->set_timeout(env, LOCK_TIMEOUT_US, DB_SET_LOCK_TIMEOUT);
	err = err ?: env->set_lk_max_locks(env, 50000);
	err = err ?: env->set_lk_max_lockers(env, 20000);
	err = err ?: env->set_lk_max_objects(env, 50000);
	err = err ?: env->set_tx_max(env, 2000);
	err = err ?: env->set_lg_bsize(env, 1u << 20);
	err = err ?: env->set_lg_max(env, 4u << 20);
	err = err ?: env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
	return err;
}

/* Of the disk; plenty when it cannot be told. */
static u64 free_bytes(const struct bdb *b)
{
	struct statvfs vfs;

	return statvfs(b->dir, &vfs) ? ~0ull : (u64)vfs.f_bavail * vfs.f_frsize;
}

/* A panic hides its cause from the caller; the usual one can be seen from here. */
static int start_error(const struct bdb *b, int err)
{
	if (err != -ERESTART && err != -EIO)
		return err;
	return free_bytes(b) < FULL_BYTES ? -ENOSPC : -EIO;
}

/* ---- damage that can be seen before anything is opened ---- */

#define ASIDE ".damaged"

static void table_path(const struct bdb *b, enum mdb_table tab, const char *suffix, char path[4200])
{
	snprintf(path, 4200, "%s/%s%s", b->dir, table_file[tab], suffix);
}

static bool of_sessions(enum mdb_table tab)
{
	return tab == MDB_SESSION || tab == MDB_SLOT;
}

static bool is_aside(const struct bdb *b)
{
	char path[4200];

	table_path(b, MDB_SESSION, ASIDE, path);
	return !access(path, F_OK);
}

static int sync_dir(const struct bdb *b)
{
	int fd = open(b->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd))
		err = -errno;
	close(fd);
	return err;
}

/* Slots first: while the sessions are there this is done again. */
static int put_sessions_aside(struct bdb *b)
{
	static const enum mdb_table tabs[] = { MDB_SLOT, MDB_SESSION };
	char from[4200], to[4200];
	int fd;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tabs); i++) {
		table_path(b, tabs[i], "", from);
		table_path(b, tabs[i], ASIDE, to);
		if (rename(from, to) && errno != ENOENT) {
			pvfs_error("%s: %s", from, strerror(errno));
			return -errno;
		}
	}
	/* The sign for is_aside(), when there was none to put there. */
	fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		pvfs_error("%s: %s", to, strerror(errno));
		return -errno;
	}
	close(fd);
	pvfs_warn("%s: sessions and their replies are put aside: all clients that were there are evicted",
		  b->dir);
	return sync_dir(b);
}

/* Those are evicted at the start, before anybody is served; not under a mgr that knows them. */
static int lose_sessions(struct bdb *b)
{
	if (b->opened) {
		pvfs_error("database in %s: session.db or slot.db is damaged; start me again: the clients are evicted then",
			   b->dir);
		_exit(1);
	}
	return put_sessions_aside(b);
}

/* Is any of the tables there? */
static bool has_tables(const struct bdb *b)
{
	char path[4200];
	unsigned int i;

	for (i = 0; i < MDB_NTABLES; i++) {
		table_path(b, i, "", path);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

/* In the words of who has to do something about it. */
static int check_tables(struct bdb *b)
{
	bool sessions = false, any = !b->p.create && has_tables(b);
	u32 logs;
	int err = bdbfiles_check_access(b->dir, &logs), e;
	char path[4200];
	struct stat st;
	unsigned int i;

	if (err)
		return err;
	/* Before the library begins a new one. */
	if (any && !logs) {
		pvfs_error("%s: the database's log (log.*) is missing: put it back, or restore the store from a backup, or get out what is readable with pvfs-mgr --salvage",
			   b->dir);
		return -EIO;
	}
	for (i = 0; i < MDB_NTABLES; i++) {
		table_path(b, i, "", path);
		if (stat(path, &st)) {
			if (errno != ENOENT || !any)
				continue;
			/* Both are made anew. */
			sessions |= of_sessions(i);
			if (of_sessions(i)) {
				pvfs_warn("%s: is missing", path);
				continue;
			}
			pvfs_error("%s: is missing: restore the store from a backup, or get out what is readable with pvfs-mgr --salvage; if the store was being made, make it again",
				   path);
			err = -EUCLEAN;
			continue;
		}
		e = bdbio_check_file(path, of_sessions(i));
		if (e && of_sessions(i) && e == -EUCLEAN) {
			sessions = true;
		} else if (e) {
			pvfs_error("%s: can't be used: restore the store from a backup, or get out what is readable with pvfs-mgr --salvage",
				   path);
			err = e;
		} else if (st.st_size % BDB_PAGE) {
			pvfs_error("%s: ends in the middle of page %llu, %llu bytes short: it was cut off; restore the store from a backup, or get out what is readable with pvfs-mgr --salvage",
				   path, (unsigned long long)st.st_size / BDB_PAGE,
				   (unsigned long long)(BDB_PAGE - st.st_size % BDB_PAGE));
			err = -EUCLEAN;
		}
	}
	if (err)
		return err == -EUCLEAN ? -EIO : err;
	return sessions ? lose_sessions(b) : 0;
}

static int env_open(struct bdb *b)
{
	u32 flags = DB_CREATE | DB_INIT_TXN | DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_MPOOL |
		    DB_THREAD | DB_PRIVATE | DB_RECOVER;
	int err;

	b->cause = 0;
	err = db_env_create(&b->env, 0);
	if (err)
		return map_error(b, err, "environment");
	err = env_configure(b);
	if (err)
		return map_error(b, err, "configure");
	err = b->env->open(b->env, b->dir, flags, 0600);
	if (!err)
		return 0;
	if (err == DB_RUNRECOVERY && b->cause > 0)
		err = b->cause;
	switch (err) {
	case ENOMEM:
		pvfs_error("database in %s: there is not enough memory for a cache of %llu MiB: make 'db_cache' smaller",
			   b->dir, (unsigned long long)(b->p.cache >> 20));
		return -ENOMEM;
	case EACCES:
	case EPERM:
	case EROFS:
	case EMFILE:
	case ENFILE:
	case ENOSPC:
	case EDQUOT:
		pvfs_error("database in %s: %s", b->dir, strerror(err));
		return -err;
	default:
		break;
	}
	pvfs_error("database in %s: %s", b->dir, db_strerror(err));
	if (free_bytes(b) >= FULL_BYTES)
		pvfs_error("database in %s: its log (log.*) can't be applied: if it is not the one of these tables, put theirs back; else restore the store from a backup, or get out what is readable with pvfs-mgr --salvage",
			   b->dir);
	return map_error(b, err, "open and recover");
}

/* Twice, if pages are damaged: the cache has stand-ins for them then. */
static int env_recover(struct bdb *b)
{
	int err;
	u32 n;

	bdbio_recovery(true);
	err = env_open(b);
	n = bdbio_recovery(false);
	if (err || !n)
		return err;
	b->env->close(b->env, 0);
	b->env = NULL;
	return env_open(b);
}

/* What only a recovery makes true; no table is open yet. */
static int check_recovered(struct bdb *b)
{
	DB_LOG_STAT *lg = NULL;
	bool sessions = false;
	char path[4200];
	unsigned int i;
	int err = b->env->log_stat(b->env, &lg, 0), e;

	if (err)
		return map_error(b, err, "log");
	/* The wrong log is so for all of them. */
	for (i = 0; i < MDB_NTABLES && err != -ESTALE; i++) {
		table_path(b, i, "", path);
		e = bdbfiles_check_log(path, (u64)lg->st_cur_file << 32 | lg->st_cur_offset);
		e = e ?: bdbfiles_check_length(path, !of_sessions(i));
		if (e == -EUCLEAN && of_sessions(i))
			sessions = true;
		else if (e)
			err = e;
	}
	free(lg);
	if (err || !sessions)
		return err == -EUCLEAN || err == -ESTALE ? -EIO : err;
	b->env->close(b->env, 0);
	b->env = NULL;
	return lose_sessions(b) ?: env_recover(b);
}

static int bdb_start(struct bdb *b)
{
	u32 db_flags = DB_THREAD | DB_AUTO_COMMIT | (b->p.create ? DB_CREATE : 0);
	unsigned int i;
	int err;

	bdbio_install();
	err = check_tables(b);
	err = err ?: env_recover(b);
	err = err ?: check_recovered(b);
	if (err)
		goto fail;
	b->base.sessions_lost = is_aside(b);
	for (i = 0; i < MDB_NTABLES; i++) {
		bool anew = b->base.sessions_lost && of_sessions(i);

		err = db_create(&b->tab[i], b->env, 0);
		if (err) {
			err = map_error(b, err, "table");
			goto fail;
		}
		err = b->tab[i]->set_flags(b->tab[i], DB_CHKSUM);
		err = err ?: b->tab[i]->set_pagesize(b->tab[i], PAGE_BYTES);
		err = err ?: b->tab[i]->open(b->tab[i], NULL, table_file[i], NULL, DB_BTREE,
					     db_flags | (anew ? DB_CREATE : 0), 0600);
		if (err == ENOENT) {
			err = -ENOENT;
			goto fail;
		}
		if (err) {
			pvfs_error("database in %s: %s: %s", b->dir, table_file[i],
				   db_strerror(err));
			err = map_error(b, err, table_file[i]);
			goto fail;
		}
	}
	atomic_store(&b->panicked, false);
	atomic_store(&b->given_up, false);
	return 0;
fail:
	bdb_shut(b);
	return start_error(b, err);
}

static bool unusable(const struct bdb *b)
{
	return !b->env || atomic_load_explicit(&b->given_up, memory_order_relaxed);
}

static int bdb_begin(struct mdb *db, struct mdb_txn **ret)
{
	struct bdb *b = to_bdb(db);
	DB_TXN *t;
	int err;

	if (unusable(b))
		return -ERESTART;
	err = b->env->txn_begin(b->env, NULL, &t, 0);
	if (err)
		return map_error(b, err, "begin");
	*ret = (struct mdb_txn *)t;
	return 0;
}

static int bdb_commit(struct mdb *db, struct mdb_txn *txn)
{
	struct bdb *b = to_bdb(db);
	DB_TXN *t = (DB_TXN *)txn;
	int err;

	if (unusable(b)) {
		t->abort(t);
		return -ERESTART;
	}
	err = t->commit(t, b->p.durability == PVFS_DURABLE_WRITE ? DB_TXN_WRITE_NOSYNC : DB_TXN_NOSYNC);
	return map_error(b, err, "commit");
}

static void bdb_abort(struct mdb *db, struct mdb_txn *txn)
{
	struct bdb *b = to_bdb(db);
	DB_TXN *t = (DB_TXN *)txn;

	map_error(b, t->abort(t), "abort");
}

static int bdb_sync(struct mdb *db)
{
	struct bdb *b = to_bdb(db);
	int err;

	if (unusable(b))
		return -ERESTART;
	if (b->p.durability == PVFS_DURABLE_WRITE)
		return 0;
	err = b->env->log_flush(b->env, NULL);
	if (!err)
		return 0;
	/*
	 * What was committed is visible but may not survive. Only recovery, which goes back to what
	 * is on disk, makes memory and disk agree again.
	 */
	map_error(b, err, "log flush");
	b->env->set_flags(b->env, DB_PANIC_ENVIRONMENT, 1);
	return -ERESTART;
}

static DBT dbt_in(const void *p, u32 len)
{
	DBT d;

	memset(&d, 0, sizeof(d));
	d.data = (void *)p;
	d.size = len;
	d.ulen = len;
	d.flags = DB_DBT_USERMEM;
	return d;
}

static DBT dbt_out(void *p, u32 room)
{
	DBT d;

	memset(&d, 0, sizeof(d));
	d.data = p;
	d.ulen = room;
	d.flags = DB_DBT_USERMEM;
	return d;
}

static int bdb_get(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen,
		   void *val, u32 room, u32 flags)
{
	struct bdb *b = to_bdb(db);
	DBT k = dbt_in(key, klen), v = dbt_out(val, room);
	DB *d = b->tab[tab];
	int err;

	if (unusable(b))
		return -ERESTART;
	err = d->get(d, (DB_TXN *)t, &k, &v, t && (flags & MDB_RMW) ? DB_RMW : 0);
	return err ? map_error(b, err, "get") : (int)v.size;
}

static int put(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen,
	       const void *val, u32 vlen, u32 flags)
{
	struct bdb *b = to_bdb(db);
	DBT k = dbt_in(key, klen), v = dbt_in(val, vlen);
	DB *d = b->tab[tab];

	if (unusable(b))
		return -ERESTART;
	return map_error(b, d->put(d, (DB_TXN *)t, &k, &v, flags), "put");
}

static int bdb_put(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen,
		   const void *val, u32 vlen)
{
	return put(db, t, tab, key, klen, val, vlen, 0);
}

static int bdb_put_new(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
		       u32 klen,
		       const void *val, u32 vlen)
{
	return put(db, t, tab, key, klen, val, vlen, DB_NOOVERWRITE);
}

static int bdb_del(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen)
{
	struct bdb *b = to_bdb(db);
	DBT k = dbt_in(key, klen);
	DB *d = b->tab[tab];

	if (unusable(b))
		return -ERESTART;
	return map_error(b, d->del(d, (DB_TXN *)t, &k, 0), "del");
}

static int bdb_cursor_open(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, u32 flags,
			   struct mdb_cursor *c)
{
	struct bdb *b = to_bdb(db);
	DB *d = b->tab[tab];
	DBC *dbc;
	int err;

	if (unusable(b))
		return -ERESTART;
	err = d->cursor(d, (DB_TXN *)t, &dbc, 0);
	if (err)
		return map_error(b, err, "cursor");
	c->db = db;
	c->impl = dbc;
	c->flags = t && (flags & MDB_RMW) ? DB_RMW : 0;
	c->keys = flags & MDB_KEYS;
	return 0;
}

static int cursor_get(struct mdb_cursor *c, struct mdb_rec *rec, u32 klen, u32 how)
{
	DBT k = dbt_in(rec->key, klen), v = dbt_out(rec->val, rec->room);
	DBC *dbc = c->impl;
	int err;

	if (unusable(to_bdb(c->db)))
		return -ERESTART;
	k.ulen = sizeof(rec->key);
	if (c->keys)		/* none of its bytes: a long value is not even read */
		v.flags |= DB_DBT_PARTIAL;
	err = dbc->get(dbc, &k, &v, how | c->flags);
	if (err)
		return map_error(to_bdb(c->db), err, "cursor get");
	rec->klen = k.size;
	rec->vlen = v.size;
	return 0;
}

static int bdb_cursor_seek(struct mdb_cursor *c, const void *key, u32 klen, struct mdb_rec *rec)
{
	memcpy(rec->key, key, klen);
	return cursor_get(c, rec, klen, DB_SET_RANGE);
}

static int bdb_cursor_next(struct mdb_cursor *c, struct mdb_rec *rec)
{
	return cursor_get(c, rec, 0, DB_NEXT);
}

static void bdb_cursor_close(struct mdb_cursor *c)
{
	DBC *dbc = c->impl;

	if (!dbc)
		return;
	c->impl = NULL;
	/*
	 * A close can report a deadlock that a get has reported already; the transaction is aborted
	 * either way.
	 */
	dbc->close(dbc);
}

static int bdb_checkpoint(struct mdb *db, u32 kbytes, bool force)
{
	struct bdb *b = to_bdb(db);

	if (unusable(b))
		return -ERESTART;
	return map_error(b, b->env->txn_checkpoint(b->env, kbytes, 0, force ? DB_FORCE : 0),
			 "checkpoint");
}

static u64 bdb_unclaimed(struct mdb *db)
{
	struct bdb *b = to_bdb(db);
	DB_MPOOL_STAT *mp = NULL;
	u64 ret = 0;

	if (!unusable(b) && !b->env->memp_stat(b->env, &mp, NULL, 0))
		ret = (u64)mp->st_page_dirty * PAGE_BYTES;
	free(mp);
	return ret;
}

/*
 * In a panicked environment nothing can be aborted, so locks stay, and those who wait for them
 * would wait for ever. Even the detector refuses to run there; so the panic is lifted while it
 * does. @given_up keeps everybody from any further use meanwhile, and what the woken ones' aborts
 * write is thrown away by recovery.
 */
static void bdb_give_up(struct mdb *db)
{
	struct bdb *b = to_bdb(db);

	atomic_store(&b->given_up, true);
	if (!b->env)
		return;
	b->env->set_flags(b->env, DB_PANIC_ENVIRONMENT, 0);
	b->env->lock_detect(b->env, 0, DB_LOCK_EXPIRE, NULL);
}

static int bdb_reopen(struct mdb *db)
{
	struct bdb *b = to_bdb(db);

	if (free_bytes(b) < RECOVERY_BYTES)
		return -ENOSPC;
	if (b->env) {
		b->lost += b->p.cache + LOST_REGIONS;
		if (b->lost > LOST_MAX) {
			pvfs_error("database: recovered in place too often; start me again");
			_exit(1);
		}
		/* An orderly close would write pages; what counts is on disk already. */
		b->env->set_flags(b->env, DB_PANIC_ENVIRONMENT, 1);
	}
	bdb_shut(b);
	return bdb_start(b);
}

static int bdb_sessions_evicted(struct mdb *db)
{
	static const enum mdb_table tabs[] = { MDB_SLOT, MDB_SESSION };
	struct bdb *b = to_bdb(db);
	char from[4200], to[4300];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tabs); i++) {
		table_path(b, tabs[i], ASIDE, from);
		snprintf(to, sizeof(to), "%s-%lld", from, (long long)time(NULL));
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	db->sessions_lost = false;
	return sync_dir(b);
}

static void bdb_stats(struct mdb *db, FILE *f)
{
	struct bdb *b = to_bdb(db);
	DB_MPOOL_STAT *mp = NULL;
	DB_LOCK_STAT *lk = NULL;
	DB_TXN_STAT *tx = NULL;
	DB_LOG_STAT *lg = NULL;

	fprintf(f, "\"db\":{\"recovered\":%llu,\"damaged_pages\":%llu",
		(unsigned long long)db->generation - 1, (unsigned long long)bdbio_damaged());
	if (!b->env)
		goto out;
	if (!b->env->memp_stat(b->env, &mp, NULL, 0))
		fprintf(f,
			",\"cache_bytes\":%llu,\"cache_hits\":%llu,\"cache_misses\":%llu"
			",\"pages_written\":%llu"
			",\"pages_dirty\":%lu,\"pages_clean\":%lu",
			(unsigned long long)mp->st_gbytes << 30 | mp->st_bytes,
			(unsigned long long)mp->st_cache_hit, (unsigned long long)mp->st_cache_miss,
			(unsigned long long)mp->st_page_out, (unsigned long)mp->st_page_dirty,
			(unsigned long)mp->st_page_clean);
	if (!b->env->txn_stat(b->env, &tx, 0))
		fprintf(f,
			",\"txn_active\":%lu,\"txn_begins\":%llu,\"txn_commits\":%llu"
			",\"txn_aborts\":%llu",
			(unsigned long)tx->st_nactive, (unsigned long long)tx->st_nbegins,
			(unsigned long long)tx->st_ncommits, (unsigned long long)tx->st_naborts);
	if (!b->env->log_stat(b->env, &lg, 0))
		fprintf(f,
			",\"log_file\":%lu,\"log_flushes\":%llu,\"log_writes\":%llu"
			",\"log_since_checkpoint\":%llu"
			",\"log_max_commits_per_flush\":%lu",
			(unsigned long)lg->st_cur_file, (unsigned long long)lg->st_scount,
			(unsigned long long)lg->st_wcount,
			(unsigned long long)lg->st_wc_mbytes << 20 | lg->st_wc_bytes,
			(unsigned long)lg->st_maxcommitperflush);
	if (!b->env->lock_stat(b->env, &lk, 0))
		fprintf(f,
			",\"lock_waits\":%llu,\"deadlocks\":%llu,\"locks\":%lu,\"locks_most\":%lu",
			(unsigned long long)lk->st_lock_wait, (unsigned long long)lk->st_ndeadlocks,
			(unsigned long)lk->st_nlocks, (unsigned long)lk->st_maxnlocks);
out:
	fprintf(f, "}");
	free(mp);
	free(lk);
	free(tx);
	free(lg);
}

static void bdb_close(struct mdb *db)
{
	struct bdb *b = to_bdb(db);

	if (b->env && !atomic_load(&b->panicked))
		bdb_checkpoint(db, 0, true);
	bdb_shut(b);
	mdb_base_fini(db);
	free(b);
}

static const struct mdb_ops bdb_ops = {
	.begin = bdb_begin,
	.commit = bdb_commit,
	.abort = bdb_abort,
	.sync = bdb_sync,
	.get = bdb_get,
	.put = bdb_put,
	.put_new = bdb_put_new,
	.del = bdb_del,
	.cursor_open = bdb_cursor_open,
	.cursor_seek = bdb_cursor_seek,
	.cursor_next = bdb_cursor_next,
	.cursor_close = bdb_cursor_close,
	.checkpoint = bdb_checkpoint,
	.unclaimed = bdb_unclaimed,
	.give_up = bdb_give_up,
	.reopen = bdb_reopen,
	.sessions_evicted = bdb_sessions_evicted,
	.stats = bdb_stats,
	.close = bdb_close,
};

int mdb_bdb_open(const struct mdb_params *p, struct mdb **ret)
{
	struct bdb *b;
	int err;

	if (strlen(p->dir) >= sizeof(b->dir))
		return -ENAMETOOLONG;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	strcpy(b->dir, p->dir);
	b->p = *p;
	b->p.dir = b->dir;
	mdb_base_init(&b->base, &bdb_ops);
	err = bdb_start(b);
	if (err) {
		mdb_base_fini(&b->base);
		free(b);
		return err;
	}
	/*
	 * A table that vanished later must not be made anew, silently empty, by recovery in place.
	 */
	b->p.create = false;
	b->opened = true;
	*ret = &b->base;
	return 0;
}

int mdb_bdb_recover(const char *dir, u64 cache)
{
	struct bdb *b = calloc(1, sizeof(*b));
	u32 logs;
	int err;

	if (!b)
		return -ENOMEM;
	snprintf(b->dir, sizeof(b->dir), "%s", dir);
	b->p = (struct mdb_params){ .dir = b->dir, .cache = cache };
	bdbio_install();
	err = bdbfiles_check_access(dir, &logs);
	/* Without one the library would begin it, in the store that is to be left as it is. */
	if (!err && !logs)
		err = -ENOENT;
	err = err ?: env_recover(b);
	bdb_shut(b);
	free(b);
	return err;
}

void mdb_bdb_panic(struct mdb *db)
{
	struct bdb *b = to_bdb(db);

	if (b->env)
		b->env->set_flags(b->env, DB_PANIC_ENVIRONMENT, 1);
}
