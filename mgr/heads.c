// SPDX-License-Identifier: GPL-2.0
/*
 * heads.c - the two places where the bytes of stuffed files may be, and what becomes of files whose
 * transaction has ended; see heads.h.
 *
 * A change of a head that is to be a file makes a new one, under a name that was never used, and
 * its transaction makes the record name it. What crashes in between leaves the old head or the new
 * one, and a file that no record names.
 *
 * No database lock is held while the disk is waited for: a transaction that comes to the point asks
 * for its file (-ENOLINK) and ends; mgr_run() has it written and runs the transaction again, which
 * takes the file when it still would write the same bytes. A task is a worker's for that: no thread of
 * the network waits for the disk then. After WRITES_MAX that were not wanted
 * it writes with locks held, so that those who change one file all the time let each other go on.
 *
 * Whoever may have left a file that no record names says so, and a thread removes it behind the
 * replies: the file that was replaced, the one whose transaction failed, or might have. It goes by
 * the record and nothing else: since names are not used again, a file that is of no transaction and
 * that no record names, durably, is never wanted again. After a crash, and after recovery in place,
 * which may undo what was committed, all directories are looked through.
 *
 * Who reads outside of transactions may find the file gone that the record named a moment ago, and
 * reads again (-EAGAIN). In a transaction the record is locked, and its file there.
 */
#include "mgr.h"
#include <stdlib.h>
#include <unistd.h>

#define WRITES_MAX 3u
#define BATCH 256u		/* files that one look at the database decides on */
#define PASS_MIN 8192u		/* files that the sweep looks at before it lets others go on */
#define NAMING_MS 10000u	/* between two searches for the names of damaged files */

/* ---- damage ---- */

/*
 * Says so, and remembers who it was, for the thread to find out its name; of who is remembered
 * already nothing more is said.
 */
static int damaged(struct mgr *m, u64 ino, const char *why)
{
	struct mgr_heads *h = &m->heads;
	bool known = false;
	u32 i;

	pthread_mutex_lock(&h->lock);
	for (i = 0; i < h->ndamaged && !known; i++)
		known = h->damaged[i] == ino;
	if (!known && h->ndamaged < MGR_DAMAGED_MAX)
		h->damaged[h->ndamaged++] = ino;
	pthread_mutex_unlock(&h->lock);
	if (!known)
		pvfs_log_limited(PVFS_LOG_ERROR, "the head of inode %llu is damaged: %s",
				 (unsigned long long)ino, why);
	mgr_bg_kick(m, &h->kicked);
	return -EUCLEAN;
}

/* Return: it is too early, come again. */
static bool name_damaged(struct mgr *m)
{
	struct mgr_heads *h = &m->heads;
	struct mgr_found found[MGR_DAMAGED_MAX];
	char path[MGR_PATH_ROOM];
	bool early;
	u32 i, n;

	pthread_mutex_lock(&h->lock);
	early = h->named_at && mgr_mono_ms() < h->named_at + NAMING_MS;
	n = early ? 0 : h->ndamaged;
	for (i = 0; i < n; i++)
		found[i] = (struct mgr_found){ .ino = h->damaged[i] };
	early = early && h->ndamaged;
	pthread_mutex_unlock(&h->lock);
	if (!n)
		return early;
	if (!mgr_find_names(m, found, n))
		for (i = 0; i < n; i++)
			if (!mgr_path(m, &found[i], path))
				pvfs_error("the head of inode %llu is damaged: it is %s",
					   (unsigned long long)found[i].ino, path);
	pthread_mutex_lock(&h->lock);
	h->ndamaged -= n;
	memmove(h->damaged, h->damaged + n, h->ndamaged * sizeof(h->damaged[0]));
	h->named_at = mgr_mono_ms();
	pthread_mutex_unlock(&h->lock);
	return false;
}

/* ---- reading ---- */

/* The file that the record names, into its place. */
static int get_file(struct mgr_op *op, const struct mgr_inode *in, struct mgr_head_disk *rec,
		    u32 reclen)
{
	char why[MGR_HEADFILE_NAME + 100], path[MGR_HEADFILE_NAME];
	struct mgr_headfile f;
	int err;

	if (mgr_headfile_decode(&f, in->ino, rec, reclen))
		return damaged(op->m, in->ino, "so is its record");
	if (f.len != in->size)
		return op->txn ? damaged(op->m, in->ino, "its length is wrong") : -EAGAIN;
	err = mgr_headfile_read(&op->m->heads.dir, &f, rec + 1);
	if (!err || (err == -ENOENT && !op->txn))
		return err ? -EAGAIN : 0;
	mgr_headfile_path(&f, path);
	snprintf(why, sizeof(why), "heads/%s %s", path, err == -ENOENT ? "is missing" :
		 err == -EUCLEAN ? "has other bytes" : strerror(-err));
	if (err == -ENOENT || err == -EUCLEAN || err == -EBADF)
		return damaged(op->m, in->ino, why);
	pvfs_log_limited(PVFS_LOG_ERROR, "the head of inode %llu: %s", (unsigned long long)in->ino,
			 why);
	return -EIO;
}

int mgr_heads_get(struct mgr_op *op, const struct mgr_inode *in, u32 flags,
		  struct mgr_head_disk *rec)
{
	u8 key[MGR_INO_KEY];
	u32 len = 0;
	int n, err;

	if (!in->size)
		return 0;
	mgr_ino_key(key, in->ino);
	n = mdb_get(op->m->db, op->txn, MDB_HEAD, key, sizeof(key), rec, mgr_head_room(in->size),
		    flags);
	if ((n == -ENOENT || n == -EMSGSIZE) && !op->txn)
		return -EAGAIN;
	if (n < 0 && n != -ENOENT && n != -EMSGSIZE)
		return n;
	if (n > 0 && rec->format == MGR_HEADFILE_FORMAT)
		return get_file(op, in, rec, n);
	err = n < 0 ? -EUCLEAN : mgr_head_decode(rec, n, &len);
	if (!err && len == in->size)
		return 0;
	if (!err && !op->txn)
		return -EAGAIN;
	return damaged(op->m, in->ino, "its bytes are lost");
}

/* ---- changing ---- */

static int record_put(struct mgr_op *op, u64 ino, const void *rec, u32 len)
{
	u8 key[MGR_INO_KEY];

	mgr_ino_key(key, ino);
	return mdb_put(op->m->db, op->txn, MDB_HEAD, key, sizeof(key), rec, len);
}

/*
 * The file that the record of @ino names. Return: 0, -ENOENT (none), -EUCLEAN (it cannot be told),
 * or the database's error.
 */
static int record_file(struct mgr_op *op, u64 ino, u32 flags, struct mgr_headfile *ret)
{
	union {
		struct mgr_head_disk head;
		struct mgr_headfile_disk file;
	} d;
	u8 key[MGR_INO_KEY];
	int n;

	mgr_ino_key(key, ino);
	n = mdb_get(op->m->db, op->txn, MDB_HEAD, key, sizeof(key), &d, sizeof(d), flags);
	if (n < 0)	/* a longer one has the bytes itself */
		return n == -EMSGSIZE ? -ENOENT : n;
	if (n && d.head.format == MGR_HEAD_FORMAT)
		return -ENOENT;
	return mgr_headfile_decode(ret, ino, &d, n);
}

/* The file that the record names, if it names one, is to go when the transaction is committed. */
static int drop_file(struct mgr_op *op, u64 ino)
{
	struct mgr_headgone *g;
	struct mgr_headfile f;
	int err;

	if (op->m->heads.dir.dfd < 0)
		return 0;
	err = record_file(op, ino, MDB_RMW, &f);
	if (err)
		return err == -ENOENT || err == -EUCLEAN ? 0 : err;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct mgr_headgone){ .next = op->dropped, .f = f };
	op->dropped = g;
	return 0;
}

/* With the lock held: has the database been recovered since we looked last? */
static void note_generation(struct mgr_heads *h, u64 db_gen)
{
	if (h->db_gen == db_gen)
		return;
	h->db_gen = db_gen;
	h->floor = h->nr;
	h->sweep = 0;
}

static struct mgr_headnew *new_make(struct mgr_op *op, const struct mgr_inode *in,
				       const void *bytes, u32 len, u32 tries)
{
	struct mgr_headnew *d = malloc(sizeof(*d) + len);
	struct mgr_heads *h = &op->m->heads;

	if (!d)
		return NULL;
	*d = (struct mgr_headnew){ .file = malloc(sizeof(*d->file)), .tries = tries };
	if (!d->file) {
		free(d);
		return NULL;
	}
	memcpy(d->bytes, bytes, len);
	d->file->f = (struct mgr_headfile){
		.ino = in->ino, .gen = in->gen, .epoch = op->m->epoch, .len = len,
		.crc = pvfs_crc32c(0, bytes, len),
	};
	pthread_mutex_lock(&h->lock);
	note_generation(h, op->db_gen);
	d->file->f.nr = h->nr++;
	pthread_mutex_unlock(&h->lock);
	return d;
}

static int new_write(struct mgr_op *op)
{
	struct mgr_heads *h = &op->m->heads;
	struct mgr_headnew *d = op->headnew;
	int err = mgr_headfile_write(&h->dir, &d->file->f, d->bytes);

	d->written = !err;
	if (!err || err == -ENOSPC || err == -EDQUOT)
		return err == -EDQUOT ? -ENOSPC : err;
	pvfs_log_limited(PVFS_LOG_ERROR, "the head of inode %llu cannot be written: %s",
			 (unsigned long long)d->file->f.ino, strerror(-err));
	return -EIO;
}

/* For the thread. */
static void gone_add(struct mgr *m, struct mgr_headgone *first)
{
	struct mgr_headgone **end = &first;

	if (!first)
		return;
	while (*end)
		end = &(*end)->next;
	pthread_mutex_lock(&m->heads.lock);
	*end = m->heads.gone;
	m->heads.gone = first;
	pthread_mutex_unlock(&m->heads.lock);
	mgr_bg_kick(m, &m->heads.kicked);
}

static void gone_free(struct mgr_headgone *g)
{
	struct mgr_headgone *next;

	for (; g; g = next) {
		next = g->next;
		free(g);
	}
}

/* The transaction has no use for its file any more. */
static void new_end(struct mgr_op *op, bool keep)
{
	struct mgr_headnew *d = op->headnew;

	op->headnew = NULL;
	if (d->written && !keep) {
		d->file->next = NULL;
		gone_add(op->m, d->file);
	} else {
		free(d->file);
	}
	free(d);
}

/* The file with these bytes, on the disk, is in op->headnew. */
static int new_get(struct mgr_op *op, const struct mgr_inode *in, const void *bytes, u32 len)
{
	struct mgr_headnew *d = op->headnew;
	u32 tries = d ? d->tries : 0;

	if (d && d->written && d->file->f.ino == in->ino && d->file->f.len == len &&
	    !memcmp(d->bytes, bytes, len))
		return 0;
	if (d)
		new_end(op, false);
	op->headnew = new_make(op, in, bytes, len, tries + 1);
	if (!op->headnew)
		return -ENOMEM;
	if (tries >= WRITES_MAX)
		return new_write(op);
	/* Whose lease is in the way may be in the way of the disk too. */
	mgr_lease_note(op, in->ino, false);
	return -ENOLINK;
}

int mgr_heads_put(struct mgr_op *op, const struct mgr_inode *in, struct mgr_head_disk *rec,
		  u32 size)
{
	struct mgr_headfile_disk d;
	int err;

	err = op->m->heads.files ? new_get(op, in, rec + 1, size) : 0;
	if (!err && in->size)
		err = drop_file(op, in->ino);
	if (err)
		return err;
	if (!op->m->heads.files)
		return record_put(op, in->ino, rec, mgr_head_encode(rec, size));
	op->headnew->used = true;
	return record_put(op, in->ino, &d, mgr_headfile_encode(&op->headnew->file->f, &d));
}

int mgr_heads_del(struct mgr_op *op, const struct mgr_inode *in)
{
	u8 key[MGR_INO_KEY];
	int err;

	mgr_ino_key(key, in->ino);
	err = drop_file(op, in->ino);
	return err ?: mdb_del(op->m->db, op->txn, MDB_HEAD, key, sizeof(key));
}

int mgr_heads_ended(struct mgr_op *op, int err)
{
	bool again = err == -EDEADLK || err == -ENOLINK;

	/* A commit that failed may have been one: the record tells. */
	if (again)
		gone_free(op->dropped);
	else
		gone_add(op->m, op->dropped);
	op->dropped = NULL;
	if (!op->headnew)
		return err;
	if (err == -ENOLINK) {
		err = mgr_disk_begin(op);
		if (!err) {
			err = new_write(op) ?: -ENOLINK;
			mgr_disk_end();
		}
		again = err == -ENOLINK;
	}
	if (again)
		op->headnew->used = false;
	else
		new_end(op, !err && op->headnew->used);
	return err;
}

int mgr_heads_check(struct mgr *m, u64 ino, const void *rec, u32 reclen, u32 *ret_len)
{
	const struct mgr_head_disk *d = rec;
	struct mgr_headfile f;
	void *bytes;
	int err;

	if (!reclen || d->format != MGR_HEADFILE_FORMAT)
		return mgr_head_decode(d, reclen, ret_len);
	err = mgr_headfile_decode(&f, ino, rec, reclen);
	if (err)
		return err;
	bytes = malloc(f.len);
	err = bytes ? mgr_headfile_read(&m->heads.dir, &f, bytes) : -ENOMEM;
	free(bytes);
	*ret_len = f.len;
	return err;
}

/* ---- removing ---- */

struct head_batch {
	struct mgr_headfile f[BATCH];
	bool unnamed[BATCH];
	u32 n;
};

static bool same(const struct mgr_headfile *a, const struct mgr_headfile *b)
{
	return a->gen == b->gen && a->epoch == b->epoch && a->nr == b->nr;
}

static int unnamed_fn(struct mgr_op *op, void *arg)
{
	struct head_batch *b = arg;
	struct mgr_headfile now;
	int err;
	u32 i;

	for (i = 0; i < b->n; i++) {
		err = record_file(op, b->f[i].ino, 0, &now);
		if (err && err != -ENOENT && err != -EUCLEAN)
			return err;
		b->unnamed[i] = err == -ENOENT || (!err && !same(&now, &b->f[i]));
	}
	return 0;
}

/* Removes those of the batch that are of no transaction and that no record names. */
static int remove_unnamed(struct mgr_op *op, void *arg)
{
	struct mgr_heads *h = &op->m->heads;
	struct head_batch *b = arg;
	int err, err2;
	u32 i;

	err = mgr_run(op, unnamed_fn, b, MGR_RUN_READ);
	/* What does not name it any more may be undone, until it is durable. */
	err = err ?: mdb_sync(op->m->db);
	for (i = 0; i < b->n && !err; i++) {
		err2 = b->unnamed[i] ? mgr_headfile_remove(&h->dir, &b->f[i]) : 0;
		if (!err2)
			continue;
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "a head's file cannot be removed: %s; the next start tries again",
				 strerror(-err2));
		h->left = true;
	}
	return err;
}

/* What others said they may have left. */
static int remove_gone(struct mgr *m, struct head_batch *b)
{
	struct mgr_headgone *list, *g;
	int err = 0;

	pthread_mutex_lock(&m->heads.lock);
	list = m->heads.gone;
	m->heads.gone = NULL;
	pthread_mutex_unlock(&m->heads.lock);
	while (list && !err) {
		b->n = 0;
		for (g = list; g && b->n < BATCH; g = g->next)
			b->f[b->n++] = g->f;
		err = mgr_bg_do(m, remove_unnamed, b);
		while (!err && list != g) {
			struct mgr_headgone *done = list;

			list = list->next;
			free(done);
		}
	}
	gone_add(m, list);
	return err;
}

static int look_fn(struct mgr_op *op, void *arg)
{
	struct mgr_heads *h = &op->m->heads;

	pthread_mutex_lock(&h->lock);
	note_generation(h, op->db_gen);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

static int sweep_fn(struct mgr_op *op, void *arg)
{
	struct head_batch *b = arg;
	u32 i, n = 0;

	look_fn(op, NULL);
	for (i = 0; i < b->n; i++)
		if (b->f[i].epoch != op->m->epoch || b->f[i].nr < op->m->heads.floor)
			b->f[n++] = b->f[i];
	b->n = n;
	return n ? remove_unnamed(op, b) : 0;
}

static int sweep_dir(struct mgr *m, u32 i, struct head_batch *b, u32 *seen)
{
	DIR *d = mgr_headfile_opendir(&m->heads.dir, i);
	bool more = true;
	int err = 0;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (more && !err) {
		for (b->n = 0; b->n < BATCH && more; b->n += more)
			more = mgr_headfile_next(d, &b->f[b->n]);
		*seen += b->n;
		if (b->n)
			err = mgr_bg_do(m, sweep_fn, b);
	}
	closedir(d);
	return err;
}

/* Return: there are directories left, or -errno. */
static int sweep(struct mgr *m, struct head_batch *b)
{
	struct mgr_heads *h = &m->heads;
	u32 at, seen = 0;
	u64 db_gen;
	int err;

	for (;;) {
		pthread_mutex_lock(&h->lock);
		at = h->sweep;
		db_gen = h->db_gen;
		pthread_mutex_unlock(&h->lock);
		if (at == MGR_HEADDIRS)
			return 0;
		if (seen >= PASS_MIN || mgr_bg_wait(m, 0))
			break;
		err = sweep_dir(m, at, b, &seen);
		if (err)
			return err;
		pthread_mutex_lock(&h->lock);
		if (h->db_gen == db_gen)	/* else it begins anew */
			h->sweep++;
		pthread_mutex_unlock(&h->lock);
	}
	mgr_bg_kick(m, &h->kicked);
	return 1;
}

int mgr_heads_pass(struct mgr *m)
{
	bool early = name_damaged(m);
	struct head_batch *b;
	int left;

	if (m->heads.dir.dfd < 0)
		return early;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	left = mgr_bg_do(m, look_fn, NULL);
	left = left ?: remove_gone(m, b);
	left = left ?: sweep(m, b);
	free(b);
	return left ?: early;
}

void *mgr_heads_thread(void *arg)
{
	struct mgr *m = arg;
	int left;

	do {
		left = mgr_heads_pass(m);
		if (left < 0)
			pvfs_log_limited(PVFS_LOG_WARNING, "removing heads: %s; trying again",
					 strerror(-left));
	} while (!mgr_bg_wait(m, mgr_mono_ms() + 20) &&
		 !mgr_bg_wait_kick(m, &m->heads.kicked, left));
	return NULL;
}

/* ---- start and stop ---- */

int mgr_heads_open(struct mgr *m, char *err, size_t errlen)
{
	struct mgr_heads *h = &m->heads;
	int e;

	h->files = m->conf->stuff_store == PVFS_STUFF_FILE;
	h->sweep = MGR_HEADDIRS;
	h->db_gen = mdb_enter(m->db);
	mdb_leave(m->db);
	e = mgr_headfiles_open(&h->dir, m->conf->mgr_store, h->files,
			       m->conf->durability == PVFS_DURABLE_SYNC);
	if (e) {
		snprintf(err, errlen, "%s/heads: %s", m->conf->mgr_store, strerror(-e));
		return e;
	}
	pthread_mutex_init(&h->lock, NULL);
	return 0;
}

void mgr_heads_suspect(struct mgr *m)
{
	if (m->heads.dir.dfd >= 0)
		m->heads.sweep = 0;
}

bool mgr_heads_settle(struct mgr *m)
{
	struct mgr_heads *h = &m->heads;
	struct head_batch *b;

	if (h->dir.dfd < 0)
		return true;
	b = malloc(sizeof(*b));
	if (!b)
		return false;
	if (!remove_gone(m, b) && syncfs(h->dir.dfd))
		h->left = true;
	free(b);
	return !h->gone && h->sweep == MGR_HEADDIRS && !h->left;
}

void mgr_heads_close(struct mgr *m)
{
	struct mgr_heads *h = &m->heads;

	gone_free(h->gone);
	mgr_headfiles_close(&h->dir);
	pthread_mutex_destroy(&h->lock);
}
