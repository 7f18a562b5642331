/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mdb.h - the seam between the name space and the database that keeps it.
 *
 * A handful of ordered tables of byte-string records, with transactions. Nothing above this file
 * names Berkeley DB. Contract of every operation:
 *   0 (or a length) or -errno;
 *   -ENOENT     no such record; cursors: no record there or later
 *   -EEXIST     put_new found one
 *   -EDEADLK    this transaction (or read) lost against another: abort it and do it again from the
 *               start
 *   -ERESTART   the environment is unusable until mdb_restart() has run recovery; never leaves mgr/
 *   -ENOSPC     the disk is full; the transaction must be aborted, nothing was changed
 *   -EMSGSIZE   the record does not fit the caller's room (a damaged database, or a caller's
 *               mistake)
 *   -EIO        anything else, also what is on a damaged page; one line was logged
 *
 * Isolation: inside a transaction reads are repeatable and free of phantoms, until commit or abort.
 * Reads with no transaction see committed records only and lock nothing afterwards. Commit makes
 * the changes visible, not durable: mdb_sync() returns when every commit that happened before it is
 * (early lock release; one flush serves many).
 *
 * Threads: any. One transaction and its cursors belong to one thread at a time. Every use lies
 * between mdb_enter() and mdb_leave(), so that recovery can wait until nobody is inside.
 */
#ifndef PVFS_MGR_MDB_H
#define PVFS_MGR_MDB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "../common/config.h"

enum mdb_table {
	MDB_INODE,	/* be64 ino -> inode */
	MDB_DIRENT,	/* be64 dir, be64 cookie -> entry */
	MDB_SYMLINK,	/* be64 ino -> target */
	MDB_SLOT,	/* be64 session, be16 slot -> reply */
	MDB_SESSION,	/* be64 session -> client */
	MDB_REAP,	/* be64 ino: datafiles to be removed */
	MDB_ORPHAN,	/* be64 ino, be64 session: no name, but open */
	MDB_TRIM,	/* be64 ino -> size: datafiles to be cut */
	MDB_XATTR,	/* be64 ino, name -> value */
	MDB_HEAD,	/* be64 ino -> bytes of a stuffed file that is not empty, or where they are */
	MDB_META,	/* name -> value */
	MDB_NTABLES,
};

#define MDB_KEY_MAX 264u	/* bytes of a key */

#define MDB_RMW 0x1u		/* the record will be written too: lock it so from the start */
#define MDB_KEYS 0x2u		/* cursors: only the keys are wanted, vlen will be 0 */

struct mdb;
struct mdb_txn;

/* One record as a cursor delivers it. @val and @room are the caller's. */
struct mdb_rec {
	u8 key[MDB_KEY_MAX];
	u32 klen;
	void *val;
	u32 room;
	u32 vlen;
};

/* A place in a table. Lives on the caller's stack; @impl is the implementation's. */
struct mdb_cursor {
	struct mdb *db;
	void *impl;
	u32 flags;
	bool keys;
};

struct mdb_ops {
	int (*begin)(struct mdb *db, struct mdb_txn **ret);
	int (*commit)(struct mdb *db, struct mdb_txn *t);	/* takes @t, in all cases */
	void (*abort)(struct mdb *db, struct mdb_txn *t);	/* takes @t */
	int (*sync)(struct mdb *db);
	int (*get)(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen,
		   void *val, u32 room, u32 flags);
	int (*put)(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key, u32 klen,
		   const void *val, u32 vlen);
	int (*put_new)(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
		       u32 klen,
		       const void *val, u32 vlen);
	int (*del)(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
		   u32 klen);
	int (*cursor_open)(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, u32 flags,
			   struct mdb_cursor *c);
	int (*cursor_seek)(struct mdb_cursor *c, const void *key, u32 klen, struct mdb_rec *rec);
	int (*cursor_next)(struct mdb_cursor *c, struct mdb_rec *rec);
	void (*cursor_close)(struct mdb_cursor *c);
	int (*checkpoint)(struct mdb *db, u32 kbytes, bool force);
	u64 (*unclaimed)(struct mdb *db);
	/*
	 * A restart is due: from now on fail with -ERESTART, and wake whoever waits for a lock.
	 * Called repeatedly.
	 */
	void (*give_up)(struct mdb *db);
	int (*reopen)(struct mdb *db);		/* nobody is inside */
	int (*sessions_evicted)(struct mdb *db);
	void (*stats)(struct mdb *db, FILE *f);
	void (*close)(struct mdb *db);
};

/* Every implementation embeds this first. */
struct mdb {
	const struct mdb_ops *ops;
	atomic_uint users;		/* threads between enter and leave */
	atomic_bool restarting;		/* enter waits */
	pthread_mutex_t lock;		/* one restart at a time; protects the next four */
	pthread_cond_t cond;		/* restarting became false */
	u64 generation;			/* successful restarts */
	/*
	 * The sessions' table was damaged, and is empty now: who had one is to be evicted, and
	 * sessions_evicted() called when that can't be forgotten any more. Until then, true again
	 * after each start.
	 */
	bool sessions_lost;
	u64 failed_at;			/* monotonic ms of the last restart that failed, 0: none */
	int failed_err;
};

struct mdb_params {
	const char *dir;		/* exists; locked by the caller for this process alone */
	u64 cache;			/* bytes */
	enum pvfs_durability durability;
	bool create;			/* make tables that are missing */
};

/**
 * mdb_bdb_open - open (after recovery) a Berkeley DB environment
 * @p: borrowed during the call
 * @ret: close with mdb_close()
 *
 * Recovery always runs: the store lock says that nobody else has it open, and a clean log makes it
 * quick.
 *
 * Return: 0, -ENOENT (no such tables and not @p->create), or -errno.
 */
int mdb_bdb_open(const struct mdb_params *p, struct mdb **ret);

/* Name of a table's file. */
const char *mdb_bdb_file(enum mdb_table tab);

/*
 * Applies the log in @dir to the tables, as far as they are readable, and uses no table. Return: 0, or
 * -errno: the log can't be applied.
 */
int mdb_bdb_recover(const char *dir, u64 cache);

/* Test hook: makes the environment demand recovery, as a failed log write does. */
void mdb_bdb_panic(struct mdb *db);

/**
 * mdb_enter - begin a stretch of database use
 *
 * Waits while recovery runs. Not recursive.
 *
 * Return: the generation, to be given to mdb_restart().
 */
u64 mdb_enter(struct mdb *db);
void mdb_leave(struct mdb *db);

/**
 * mdb_restart - run recovery, once for all who found it necessary
 * @generation: what mdb_enter() returned to the caller, who has left since
 *
 * Return: 0 when the environment is usable again; else why not (at most one attempt a second is
 * made).
 */
int mdb_restart(struct mdb *db, u64 generation);

/* Common part of open and close, for implementations. */
void mdb_base_init(struct mdb *db, const struct mdb_ops *ops);
void mdb_base_fini(struct mdb *db);

static inline int mdb_begin(struct mdb *db, struct mdb_txn **ret)
{
	return db->ops->begin(db, ret);
}

static inline int mdb_commit(struct mdb *db, struct mdb_txn *t)
{
	return db->ops->commit(db, t);
}

static inline void mdb_abort(struct mdb *db, struct mdb_txn *t)
{
	db->ops->abort(db, t);
}

static inline int mdb_sync(struct mdb *db)
{
	return db->ops->sync(db);
}

/* Return: the record's length. @t may be NULL. */
static inline int mdb_get(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
			  u32 klen,
			  void *val, u32 room, u32 flags)
{
	return db->ops->get(db, t, tab, key, klen, val, room, flags);
}

static inline int mdb_put(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
			  u32 klen,
			  const void *val, u32 vlen)
{
	return db->ops->put(db, t, tab, key, klen, val, vlen);
}

static inline int mdb_put_new(struct mdb *db, struct mdb_txn *t, enum mdb_table tab,
			      const void *key, u32 klen,
			      const void *val, u32 vlen)
{
	return db->ops->put_new(db, t, tab, key, klen, val, vlen);
}

static inline int mdb_del(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, const void *key,
			  u32 klen)
{
	return db->ops->del(db, t, tab, key, klen);
}

static inline int mdb_cursor_open(struct mdb *db, struct mdb_txn *t, enum mdb_table tab, u32 flags,
				  struct mdb_cursor *c)
{
	return db->ops->cursor_open(db, t, tab, flags, c);
}

/* The first record at or after @key. */
static inline int mdb_cursor_seek(struct mdb_cursor *c, const void *key, u32 klen,
				  struct mdb_rec *rec)
{
	return c->db->ops->cursor_seek(c, key, klen, rec);
}

static inline int mdb_cursor_next(struct mdb_cursor *c, struct mdb_rec *rec)
{
	return c->db->ops->cursor_next(c, rec);
}

static inline void mdb_cursor_close(struct mdb_cursor *c)
{
	c->db->ops->cursor_close(c);
}

/*
 * Writes what is in memory to the tables, so that older log is not needed any more. Does nothing
 * when less than @kbytes of log were written since the last one (0: any), unless @force.
 */
static inline int mdb_checkpoint(struct mdb *db, u32 kbytes, bool force)
{
	return db->ops->checkpoint(db, kbytes, force);
}

/* Bytes that a checkpoint may yet take of the disk: pages that were changed in memory only. Between enter and leave. */
static inline u64 mdb_unclaimed(struct mdb *db)
{
	return db->ops->unclaimed(db);
}

static inline void mdb_stats(struct mdb *db, FILE *f)
{
	db->ops->stats(db, f);
}

/* NULL is fine. */
static inline void mdb_close(struct mdb *db)
{
	if (db)
		db->ops->close(db);
}

#endif
