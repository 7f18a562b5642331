// SPDX-License-Identifier: GPL-2.0
/*
 * recover.c - from a store to a running manager, and back.
 *
 * The database recovers itself when it is opened. On top of that the tables are in order by
 * construction, as each operation is one transaction; what an interrupted process leaves is work:
 * sessions that may come back (they get a lease's time, the grace), orphans of sessions that do not
 * exist any more, stored replies of such sessions, trim records and the reap queue, which the
 * reaper takes up, files of heads that no record names (heads.c), and files whose size only the
 * iods know (settle.c).
 *
 * Also here: the checkpoint thread, and the watch over the space on the store's disk.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <time.h>

/*
 * The log must never hit the wall: a failed write of it costs a recovery. So what grows the tables
 * stops while space_reserve is left; what shrinks them goes on down to a quarter of that. Below the
 * reserve a checkpoint follows every megabyte of log: it claims the tables' space for pages that
 * are in memory only, and lets old log files go. What those pages may take counts as gone before:
 * else the checkpoint itself could find the disk full, and then nothing goes on, not even a start.
 */
#define RESERVE_MIN ((u64)16 << 20)
#define SPACE_CHECK_MS 100u	/* between two looks at the disk */
#define SPACE_CHECK_LOW_MS 5u	/* while less than four times the reserve is free */
#define LOW_CHECKPOINT_KB 1024u
/* What a draft may come to take, of the tables or files and of the log. */
#define DRAFT_SPACE (4 * (u64)PVFS_STUFF_MAX)

static u64 space_free(const struct mgr *m, u64 otherwise)
{
	struct statvfs vfs;

	return statvfs(m->conf->mgr_store, &vfs) ? otherwise : (u64)vfs.f_bavail * vfs.f_frsize;
}

static u64 space_drafts(const struct mgr *m)
{
	return atomic_load(&m->leases.drafts) * DRAFT_SPACE;
}

/* What can still be written to the disk, when all is that is in memory only. Between mdb_enter() and leave. */
static u64 space_look(struct mgr *m)
{
	u64 now = mgr_mono_ms(), last = atomic_load_explicit(&m->space_checked,
							     memory_order_relaxed);
	u64 avail = atomic_load_explicit(&m->space_avail, memory_order_relaxed);

	if (last && now < last + (avail < 4 * m->space_reserve ? SPACE_CHECK_LOW_MS :
				  SPACE_CHECK_MS))
		return avail;
	if (!atomic_compare_exchange_strong(&m->space_checked, &last, now))
		return avail;
	avail = space_free(m, avail);
	/* All of the cache may be; it is not worth looking while there is room for that, and for drafts twice. */
	if (avail < m->conf->db_cache + 4 * m->space_reserve + 2 * space_drafts(m))
		avail -= min(avail, mdb_unclaimed(m->db));
	atomic_store_explicit(&m->space_avail, avail, memory_order_relaxed);
	return avail;
}

u64 mgr_space_left(struct mgr *m)
{
	u64 avail;

	mdb_enter(m->db);
	avail = space_look(m);
	mdb_leave(m->db);
	return avail - min(avail, m->space_reserve + space_drafts(m));
}

bool mgr_space_for_draft(struct mgr *m)
{
	u64 avail = space_look(m);

	/* Half of what there is: the other is for who waits to be told. */
	return avail >= m->space_reserve + 2 * (space_drafts(m) + DRAFT_SPACE);
}

static int space_none(const struct mgr *m, u64 drafts)
{
	pvfs_log_limited(PVFS_LOG_WARNING, "%s: less than %llu MiB free: nothing new can be made",
			 m->conf->mgr_store, (unsigned long long)((m->space_reserve + drafts) >> 20));
	return -ENOSPC;
}

int mgr_space_check(struct mgr *m, bool grows)
{
	s64 files, full = atomic_load_explicit(&m->full_files, memory_order_relaxed);
	/* Whoever keeps a draft back has told a program that its bytes are written. */
	u64 avail = space_look(m), drafts = grows ? space_drafts(m) : 0;
	int err;

	if (likely(avail >= m->space_reserve)) {
		/*
		 * Not as soon as a log file has gone: the next takes its place, and the tables are
		 * as large as before.
		 */
		if (full && avail >= 2 * m->space_reserve)
			atomic_store_explicit(&m->full_files, 0, memory_order_relaxed);
		if (avail >= m->space_reserve + drafts)
			return 0;
		/* What is kept for them no checkpoint claims. */
		if (space_free(m, 0) < m->space_reserve + drafts)
			return space_none(m, drafts);
	}
	/* If it is only what is in memory, when that is claimed it is known how much there is. */
	err = mdb_checkpoint(m->db, space_free(m, 0) >= m->space_reserve ? 0 : LOW_CHECKPOINT_KB, false);
	if (err)
		return err;
	atomic_store_explicit(&m->space_checked, 0, memory_order_relaxed);
	avail = space_look(m);
	if (avail >= m->space_reserve + drafts)
		return 0;
	if (!grows)
		return avail < m->space_reserve / 4 ? -ENOSPC : 0;
	if (avail >= m->space_reserve)
		return space_none(m, drafts);
	/*
	 * The tables' files never get smaller, but what was deleted leaves room in them: a tenth
	 * fewer files than when the disk was first found full, and new ones may come, as long as
	 * the log has room.
	 */
	files = atomic_load_explicit(&m->files, memory_order_relaxed);
	if (!full) {
		full = files;
		atomic_store_explicit(&m->full_files, full, memory_order_relaxed);
	}
	if (avail >= m->space_reserve / 2 + drafts && files < full - full / 10)
		return 0;
	return space_none(m, drafts);
}

/* ---- background ---- */

bool mgr_bg_wait(struct mgr *m, u64 deadline)
{
	struct timespec until = { .tv_sec = deadline / 1000,
		.tv_nsec = deadline % 1000 * 1000000l };
	bool stop;

	pthread_mutex_lock(&m->bg_lock);
	while (!m->bg_stop)
		if (pthread_cond_timedwait(&m->bg_cond, &m->bg_lock, &until) == ETIMEDOUT)
			break;
	stop = m->bg_stop;
	pthread_mutex_unlock(&m->bg_lock);
	return stop;
}

bool mgr_bg_wait_kick(struct mgr *m, bool *kicked, bool left)
{
	struct timespec until;
	bool stop;

	pthread_mutex_lock(&m->bg_lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	while (!m->bg_stop && !*kicked) {
		if (!left)
			pthread_cond_wait(&m->bg_cond, &m->bg_lock);
		else if (pthread_cond_timedwait(&m->bg_cond, &m->bg_lock, &until) == ETIMEDOUT)
			break;
	}
	*kicked = false;
	stop = m->bg_stop;
	pthread_mutex_unlock(&m->bg_lock);
	return stop;
}

void mgr_bg_kick(struct mgr *m, bool *kicked)
{
	pthread_mutex_lock(&m->bg_lock);
	if (!*kicked) {
		*kicked = true;
		pthread_cond_broadcast(&m->bg_cond);
	}
	pthread_mutex_unlock(&m->bg_lock);
}

u64 mgr_files(struct mgr *m)
{
	return max(atomic_load_explicit(&m->files, memory_order_relaxed), 0ll);
}

static int meta_put(struct mgr_op *op, const char *name, u64 value)
{
	__le64 v = cpu_to_le64(value);

	return mdb_put(op->m->db, op->txn, MDB_META, name, strlen(name), &v, sizeof(v));
}

static bool meta_get(struct mgr *m, const char *name, u64 *ret)
{
	__le64 v;

	if (mdb_get(m->db, NULL, MDB_META, name, strlen(name), &v, sizeof(v), 0) != sizeof(v))
		return false;
	*ret = le64_to_cpu(v);
	return true;
}

/* No file can be UNCERTAIN: nobody has any open, and none is left to be found out about. */
static bool all_settled(struct mgr *m)
{
	bool walk;

	return !mgr_settle_left(m, &walk) && !walk &&
	       !atomic_load_explicit(&m->opens.files, memory_order_relaxed);
}

/*
 * "clean" says that "files" is exact, as nothing happens after it any more, and that every head's
 * file is named by its record. @arg: bool, is it so?
 */
static int files_put_fn(struct mgr_op *op, void *arg)
{
	bool clean = *(bool *)arg && !op->m->files_stale;
	int err;

	err = meta_put(op, "files", mgr_files(op->m));
	err = err ?: meta_put(op, "full", atomic_load(&op->m->full_files));
	err = err ?: meta_put(op, "settled", clean && all_settled(op->m));
	return err ?: meta_put(op, "clean", clean);
}

struct inode_count {
	u64 after, n;
	bool end;
};

/* Some of the inodes; few enough to let a recovery in between. */
static int count_fn(struct mgr_op *op, void *arg)
{
	struct inode_count *c = arg;
	struct mgr_inode_disk d;
	struct mdb_rec rec = { .val = &d, .room = sizeof(d) };
	u8 key[MGR_INO_KEY];
	struct mdb_cursor cur;
	u64 after = c->after;
	u32 n = 0;
	int err;

	err = mdb_cursor_open(op->m->db, NULL, MDB_INODE, 0, &cur);
	if (err)
		return err;
	mgr_ino_key(key, c->after + 1);
	err = mdb_cursor_seek(&cur, key, sizeof(key), &rec);
	for (; !err && n < 10000; n++) {
		after = mgr_get_be64(rec.key);
		err = mdb_cursor_next(&cur, &rec);
	}
	mdb_cursor_close(&cur);
	if (err && err != -ENOENT)
		return err;
	c->end = err == -ENOENT;
	c->after = after;
	c->n += n;
	return 0;
}

static int count_some(struct mgr_op *op, void *arg)
{
	return mgr_run(op, count_fn, arg, MGR_RUN_READ);
}

/*
 * Counts the inodes while others make and remove some: what they do is added to the result, so it
 * is off only by changes that the count has seen as well.
 */
static void count_files(struct mgr *m, struct mgr_op *op)
{
	s64 before = atomic_load(&m->files);
	struct inode_count c = { 0 };

	while (!c.end && !mgr_bg_wait(m, 0)) {
		mgr_op_init_bg(op, m);
		if (mgr_bg_run(op, count_some, &c))
			return;
	}
	if (!c.end)
		return;
	atomic_fetch_add(&m->files, (s64)c.n - before);
	m->files_stale = false;
}

static int checkpoint(struct mgr_op *op, void *arg)
{
	u64 files = mgr_files(op->m), *last = arg;
	bool clean = false;

	if (files != *last && !mgr_run(op, files_put_fn, &clean, 0))
		*last = files;
	return mdb_checkpoint(op->m->db, 0, false);
}

static void *checkpoint_thread(void *arg)
{
	struct mgr *m = arg;
	struct mgr_op *op = malloc(sizeof(*op));
	u64 files = ~0ull;
	u32 ms;
	int err;

	if (!op)
		return NULL;
	if (m->files_stale)
		count_files(m, op);
	do {
		/* When space runs low, tables must claim theirs and old log files must go, soon. */
		ms = max(m->conf->checkpoint_ms, 10u);
		if (space_free(m, ~0ull) < 4 * m->space_reserve)
			ms = min(ms, 500u);
		if (mgr_bg_wait(m, mgr_mono_ms() + ms))
			break;
		mgr_op_init_bg(op, m);
		err = mgr_bg_run(op, checkpoint, &files);
		if (err)
			pvfs_log_limited(PVFS_LOG_WARNING, "checkpoint: %s", strerror(-err));
	} while (1);
	free(op);
	return NULL;
}

/* ---- opening ---- */

static int get_super(struct mgr *m, struct mgr_super *s)
{
	struct mgr_super_disk d;
	int n = mdb_get(m->db, NULL, MDB_META, "super", 5, &d, sizeof(d), 0);

	return n < 0 ? n : mgr_super_decode(s, &d, n);
}

static int load_meta(struct mgr *m, char *err, size_t errlen)
{
	char mine[37], its[37];
	struct mgr_super s;
	u64 v = 0;
	int e;

	e = get_super(m, &s);
	if (e) {
		snprintf(err, errlen, "%s: %s", m->conf->mgr_store,
			 e == -ENOENT ? "mkfs did not finish here; run it again" :
				 "the super record is unreadable");
		return e == -ENOENT ? -ENOENT : -EIO;
	}
	if (memcmp(s.uuid, m->conf->uuid, sizeof(s.uuid))) {
		pvfs_uuid_text(s.uuid, its);
		pvfs_uuid_text(m->conf->uuid, mine);
		snprintf(err, errlen, "%s: the database is of volume %s, the configuration says %s",
			 m->conf->mgr_store, its, mine);
		return -ESTALE;
	}
	if (s.niods != m->conf->niods) {
		snprintf(err, errlen,
			 "%s: the volume was made with %u iods, the configuration lists %u",
			 m->conf->mgr_store, s.niods, m->conf->niods);
		return -EINVAL;
	}
	memcpy(m->uuid, s.uuid, sizeof(m->uuid));
	memcpy(m->hash_key, s.hash_key, sizeof(m->hash_key));
	m->niods = s.niods;
	atomic_store(&m->files, meta_get(m, "files", &v) ? (s64)v : 1);
	atomic_store(&m->full_files, meta_get(m, "full", &v) ? (s64)v : 0);
	m->files_stale = !meta_get(m, "clean", &v) || !v;
	m->settle.walk = !meta_get(m, "settled", &v) || !v;
	return 0;
}

static int load_root(struct mgr_op *op)
{
	struct mgr *m = op->m;
	struct mgr_inode root;
	int err;

	err = ns_inode_get(op, PVFS_ROOT_INO, 0, &root);
	if (err)
		return err;
	m->root.ino = root.ino;
	m->root.gen = root.gen;
	m->root_layout = root.layout;
	return 0;
}

/* ---- leftovers ---- */

struct leftover {
	enum mdb_table tab;
	u8 from[MDB_KEY_MAX];	/* go on here */
	u32 fromlen;
	u64 ino[256], session[256];
	u32 n;
	bool end;
};

static bool session_known(struct mgr *m, u64 id)
{
	struct mgr_session *s = mgr_session_peek(m, id);

	if (s)
		mgr_session_put(s);
	return s;
}

/* Records whose session is gone: orphans (ino, session) or replies (session, slot). */
static int leftover_fn(struct mgr_op *op, void *arg)
{
	struct leftover *l = arg;
	u8 val[sizeof(struct mgr_slot_disk) + MGR_BODY_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	u64 session, known = 0;
	int err;

	l->n = 0;
	l->end = false;
	err = mdb_cursor_open(op->m->db, op->txn, l->tab, 0, &c);
	if (err)
		return err;
	err = mdb_cursor_seek(&c, l->from, l->fromlen, &rec);
	for (; !err && l->n < ARRAY_SIZE(l->ino); err = mdb_cursor_next(&c, &rec)) {
		session = mgr_get_be64(l->tab == MDB_ORPHAN ? rec.key + 8 : rec.key);
		memcpy(l->from, rec.key, rec.klen);
		l->fromlen = rec.klen;
		if (session == known)
			continue;
		if (session_known(op->m, session)) {
			known = session;
			continue;
		}
		if (l->tab == MDB_SLOT && l->n && l->session[l->n - 1] == session)
			continue;
		l->session[l->n] = session;
		l->ino[l->n++] = mgr_get_be64(rec.key);
	}
	mdb_cursor_close(&c);
	l->end = err == -ENOENT;
	return err == -ENOENT ? 0 : err;
}

static int slots_del_fn(struct mgr_op *op, void *arg)
{
	return mgr_slots_del(op, *(u64 *)arg);
}

static int clear_leftovers(struct mgr_op *op, enum mdb_table tab)
{
	struct leftover *l = calloc(1, sizeof(*l));
	int err;
	u32 i;

	if (!l)
		return -ENOMEM;
	l->tab = tab;
	l->fromlen = tab == MDB_ORPHAN ? MGR_PAIR_KEY : MGR_SLOT_KEY;
	do {
		err = mgr_run(op, leftover_fn, l, MGR_RUN_READ);
		for (i = 0; i < l->n && !err; i++) {
			if (tab == MDB_ORPHAN)
				err = mgr_orphan_release(op, l->ino[i], l->session[i]);
			else
				err = mgr_run(op, slots_del_fn, &l->session[i], 0);
		}
	} while (!err && !l->end);
	free(l);
	return err;
}

static int recover(struct mgr_op *op, void *arg)
{
	bool clean = false;
	int err;

	err = load_root(op);
	/* A full disk must not keep us from starting: then the next start counts once more. */
	if (!err && !op->m->files_stale && mgr_run(op, files_put_fn, &clean, MGR_RUN_SYNC))
		op->m->files_stale = true;
	if (!err && op->m->db->sessions_lost) {
		op->m->sessions_lost = true;
		err = mgr_sessions_lost(op);
	}
	/* A full disk must not keep us from starting here either. */
	if (!err && mgr_sessions_advance(op, time(NULL)) == -EUCLEAN)
		err = -EUCLEAN;
	err = err ?: mgr_sessions_load(op);
	if (err)
		return err;
	if (op->m->sessions.n)
		atomic_store(&op->m->grace_until, mgr_mono_ms() + op->m->conf->lease_ms);
	err = clear_leftovers(op, MDB_SLOT);
	err = err ?: clear_leftovers(op, MDB_ORPHAN);
	/* What is on a damaged page stays; it is in nobody's way. */
	if (err == -EIO) {
		pvfs_warn("not all that dead sessions have left can be cleared");
		err = 0;
	}
	return err;
}

static u64 make_epoch(void)
{
	u64 v;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v) || !v)
		v = mgr_version_after(0);
	return v;
}

static void locks_init(struct mgr *m)
{
	pthread_mutex_init(&m->ino_lock, NULL);
	pthread_mutex_init(&m->rename_lock, NULL);
	pthread_mutex_init(&m->iodents_lock, NULL);
	pthread_mutex_init(&m->bg_lock, NULL);
	pthread_mutex_init(&m->settle.lock, NULL);
	mgr_cond_init(&m->bg_cond);
	mgr_tasks_init(&m->tasks);
	mgr_log_init(&m->log);
	mgr_grace_init(&m->grace);
}

int mgr_core_open(struct pvfs_conf *conf, const struct pvfs_key *server_key,
		  const struct mgr_iod_ops *iod_ops,
		  void *iod_arg, struct mgr **ret, char *err, size_t errlen)
{
	struct mdb_params p = { .cache = conf->db_cache, .durability = conf->durability };
	struct mgr *m = calloc(1, sizeof(*m));
	struct mgr_op *op = malloc(sizeof(*op));
	char dir[4200];
	int e = -ENOMEM;

	err[0] = 0;
	if (!m || !op)
		goto fail_alloc;
	m->conf = conf;
	m->server_key = *server_key;
	m->iod_ops = iod_ops;
	m->iod_arg = iod_arg;
	m->epoch = make_epoch();
	m->base_next = m->epoch;
	m->space_reserve = RESERVE_MIN;
	atomic_store(&m->space_avail, ~0ull >> 8);
	locks_init(m);
	e = mgr_sessions_init(m);
	if (e)
		goto fail_alloc;
	e = mgr_opens_init(&m->opens);
	if (e)
		goto fail_sessions;
	e = mgr_locks_init(&m->locks, conf->locks_max, conf->session_locks_max);
	if (e)
		goto fail_opens;
	e = mgr_leases_init(&m->leases, conf->leases_max);
	if (e)
		goto fail_locks;
	mgr_recalls_init(&m->recalls, m->epoch);
	e = mgr_db_dir(conf, dir, sizeof(dir));
	if (e)
		goto fail_leases;
	p.dir = dir;
	e = mdb_bdb_open(&p, &m->db);
	if (e) {
		snprintf(err, errlen, "%s: %s", dir,
			 e == -ENOENT ? "no database here; make the volume with mkfs" :
				 strerror(-e));
		goto fail_leases;
	}
	e = load_meta(m, err, errlen);
	if (e)
		goto fail_db;
	e = mgr_iodents_make(m);
	if (e)
		goto fail_db;
	e = mgr_heads_open(m, err, errlen);
	if (e)
		goto fail_db;
	mgr_op_init_bg(op, m);
	e = mgr_bg_run(op, recover, NULL);
	if (e) {
		snprintf(err, errlen, "%s: cannot be taken up: %s%s", dir, strerror(-e), e == -EIO || e == -EUCLEAN ?
			 "; restore the store from a backup, or get out what is readable with pvfs-mgr --salvage" : "");
		goto fail_heads;
	}
	if (m->files_stale)
		mgr_heads_suspect(m);
	free(op);
	*ret = m;
	return 0;

fail_heads:
	mgr_heads_close(m);
fail_db:
	mgr_evict_fini(m);
	mdb_close(m->db);
	free(m->iodents);
fail_leases:
	mgr_recalls_fini(&m->recalls);
	mgr_leases_fini(&m->leases);
fail_locks:
	mgr_locks_fini(&m->locks);
fail_opens:
	mgr_opens_fini(&m->opens);
fail_sessions:
	mgr_sessions_fini(m);
fail_alloc:
	if (!err[0])
		snprintf(err, errlen, "%s: %s", conf->mgr_store, strerror(-e));
	free(m);
	free(op);
	return e;
}

int mgr_core_start(struct mgr *m)
{
	static void *(*const threads[MGR_BG_MAX])(void *) = {
		mgr_reap_thread, mgr_heads_thread, mgr_expire_thread, checkpoint_thread, mgr_settle_thread,
	};
	int err;

	m->bg_stop = false;
	for (m->nbg = 0; m->nbg < MGR_BG_MAX; m->nbg++) {
		err = pthread_create(&m->bg[m->nbg], NULL, threads[m->nbg], m);
		if (err) {
			mgr_core_stop(m);
			return -err;
		}
	}
	return 0;
}

void mgr_core_stop(struct mgr *m)
{
	if (!m->nbg)
		return;
	pthread_mutex_lock(&m->bg_lock);
	m->bg_stop = true;
	pthread_cond_broadcast(&m->bg_cond);
	pthread_mutex_unlock(&m->bg_lock);
	while (m->nbg)
		pthread_join(m->bg[--m->nbg], NULL);
}

static int last_words(struct mgr_op *op, void *arg)
{
	return mgr_run(op, files_put_fn, arg, 0);
}

void mgr_core_close(struct mgr *m)
{
	bool clean;

	if (!m)
		return;
	mgr_core_stop(m);
	clean = mgr_heads_settle(m);
	mgr_bg_do(m, last_words, &clean);
	mgr_heads_close(m);
	mdb_close(m->db);
	mgr_recalls_fini(&m->recalls);
	mgr_leases_fini(&m->leases);
	mgr_locks_fini(&m->locks);
	mgr_opens_fini(&m->opens);
	mgr_evict_fini(m);
	mgr_sessions_fini(m);
	mgr_tasks_fini(&m->tasks);
	mgr_log_fini(&m->log);
	mgr_grace_fini(&m->grace);
	free(m->iodents);
	free(m);
}
