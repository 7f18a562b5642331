// SPDX-License-Identifier: GPL-2.0
/*
 * session.c - sessions: made durably, found by id and by client, kept alive by any request, ended
 * by the client or by the expiry of their lease.
 *
 *            mgr_session_open()          mgr_sessions_expire(): no answer to PING
 *   (none) ----------------------> alive --------------------------------------> evict.c
 *                                   |  SESSION_CLOSE                               |
 *                                   +-------------> mgr_session_end(): dead -> swept -> forgotten
 *
 * The record survives restarts: a client that comes back within its lease finds its session, its
 * stored replies and its orphans. Until then (grace) nothing is reaped and no uncertain size is
 * settled, as it may yet say what it has open. And while there is one that has not been heard of
 * since, and was not ended either, the grace goes on, as it may still write to what it had.
 */
#include "mgr.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PING_MS 2000u
#define LATE_MAX 256u	/* sessions that are asked at once */

static struct mgr_session **id_head(struct mgr *m, u64 id)
{
	return &m->sessions.by_id[id % ARRAY_SIZE(m->sessions.by_id)];
}

static struct mgr_session **client_head(struct mgr *m, const u8 client[PVFS_UUID_LEN])
{
	u32 hash = get_unaligned_le32(client);

	return &m->sessions.by_client[hash % ARRAY_SIZE(m->sessions.by_client)];
}

static struct mgr_session *session_new(u64 id, const struct mgr_session_rec *rec)
{
	struct mgr_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->id = id;
	memcpy(s->client, rec->client, sizeof(s->client));
	memcpy(s->host, rec->host, sizeof(s->host));
	atomic_init(&s->refs, 1);
	atomic_init(&s->dead, false);
	s->seen = mgr_mono_ms();
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void mgr_session_put(struct mgr_session *s)
{
	u32 i;

	if (atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	for (i = 0; i < MGR_NSLOTS; i++)
		free(s->slots[i].body);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* The table takes over the caller's reference. */
static void session_hash(struct mgr *m, struct mgr_session *s)
{
	struct mgr_session **id = id_head(m, s->id), **client = client_head(m, s->client);

	pthread_rwlock_wrlock(&m->sessions.lock);
	s->next_id = *id;
	*id = s;
	s->next_client = *client;
	*client = s;
	m->sessions.n++;
	pthread_rwlock_unlock(&m->sessions.lock);
}

/* Return: it was in the table, whose reference is the caller's now. */
static bool session_unhash(struct mgr *m, struct mgr_session *s)
{
	struct mgr_session **pp;
	bool found;

	pthread_rwlock_wrlock(&m->sessions.lock);
	for (pp = id_head(m, s->id); *pp && *pp != s; pp = &(*pp)->next_id)
		;
	found = *pp;
	if (found) {
		*pp = s->next_id;
		for (pp = client_head(m, s->client); *pp != s; pp = &(*pp)->next_client)
			;
		*pp = s->next_client;
		m->sessions.n--;
	}
	pthread_rwlock_unlock(&m->sessions.lock);
	return found;
}

void mgr_session_back(struct mgr *m, struct mgr_session *s)
{
	if (atomic_load_explicit(&s->absent, memory_order_relaxed) &&
	    atomic_exchange(&s->absent, false)) {
		atomic_fetch_sub(&m->sessions.absent, 1);
		mgr_grace_kick(m);
	}
}

/*
 * Of one that is looked up, with the table locked: so it is seen by who ends those that are late, or
 * finds it dead.
 */
static void session_seen(struct mgr *m, struct mgr_session *s)
{
	atomic_store_explicit(&s->seen, mgr_mono_ms(), memory_order_relaxed);
	mgr_session_back(m, s);
}

static struct mgr_session *lookup(struct mgr *m, u64 id, bool sign_of_life)
{
	struct mgr_session *s;

	pthread_rwlock_rdlock(&m->sessions.lock);
	for (s = *id_head(m, id); s && s->id != id; s = s->next_id)
		;
	if (s && !atomic_load(&s->dead))
		atomic_fetch_add(&s->refs, 1);
	else
		s = NULL;
	if (s && sign_of_life)
		session_seen(m, s);
	pthread_rwlock_unlock(&m->sessions.lock);
	return s;
}

struct mgr_session *mgr_session_peek(struct mgr *m, u64 id)
{
	return lookup(m, id, false);
}

struct mgr_session *mgr_session_lookup(struct mgr *m, u64 id)
{
	return lookup(m, id, true);
}

static struct mgr_session *lookup_client(struct mgr *m, const u8 client[PVFS_UUID_LEN])
{
	struct mgr_session *s;

	pthread_rwlock_rdlock(&m->sessions.lock);
	for (s = *client_head(m, client); s; s = s->next_client)
		if (!atomic_load(&s->dead) && !memcmp(s->client, client, sizeof(s->client)))
			break;
	if (s) {
		atomic_fetch_add(&s->refs, 1);
		session_seen(m, s);
	}
	pthread_rwlock_unlock(&m->sessions.lock);
	return s;
}

/* ---- open ---- */

struct session_record {
	struct mgr_session_rec rec;
	u64 id;			/* 0: take the next */
};

static int session_put_fn(struct mgr_op *op, void *arg)
{
	struct session_record *r = arg;
	u8 key[MGR_INO_KEY], val[MGR_SESSION_MAX];
	__le64 v;
	int n, err;

	if (!r->id) {
		n = mdb_get(op->m->db, op->txn, MDB_META, "next_session", 12, &v, sizeof(v),
			    MDB_RMW);
		if (n < 0)
			return n == -ENOENT ? -EUCLEAN : n;
		if (n != sizeof(v))
			return -EUCLEAN;
		r->id = le64_to_cpu(v);
		v = cpu_to_le64(r->id + 1);
		err = mdb_put(op->m->db, op->txn, MDB_META, "next_session", 12, &v, sizeof(v));
		if (err) {
			r->id = 0;
			return err;
		}
		mgr_ino_key(key, r->id);
		err = mdb_put(op->m->db, op->txn, MDB_SESSION, key, sizeof(key), val,
			      mgr_session_encode(&r->rec, val));
		if (err)
			r->id = 0;
		return err;
	}
	mgr_ino_key(key, r->id);
	return mdb_put(op->m->db, op->txn, MDB_SESSION, key, sizeof(key), val,
		       mgr_session_encode(&r->rec, val));
}

int mgr_session_open(struct mgr_op *op, const struct pvfs_session_open_req *req,
		     struct mgr_session **ret)
{
	struct session_record r = { .id = 0 };
	struct mgr *m = op->m;
	struct mgr_session *s;
	struct timespec now;
	int err = 0;

	pthread_mutex_lock(&m->sessions.open_lock);
	s = lookup_client(m, req->client);
	/*
	 * Recovery may have undone a record that was not flushed; and the one who made it may still
	 * be flushing.
	 */
	op->need_sync = true;
	if (s && s->recorded == op->db_gen)
		goto out;
	clock_gettime(CLOCK_REALTIME, &now);
	memcpy(r.rec.client, req->client, sizeof(r.rec.client));
	r.rec.opened = now.tv_sec;
	r.rec.leases = req->flags & PVFS_SO_LEASES;
	/* Who it is, and from where: what each line about it says. */
	snprintf(r.rec.host, sizeof(r.rec.host), "%.*s%s%s%s", (int)min(req->host.len, 150u),
		 req->host.p, op->from ? " (" : "", op->from ?: "", op->from ? ")" : "");
	if (s)
		r.id = s->id;
	err = mgr_run(op, session_put_fn, &r, MGR_RUN_SYNC);
	if (err) {
		if (s)
			mgr_session_put(s);
		goto out;
	}
	if (!s) {
		s = session_new(r.id, &r.rec);
		if (!s) {
			/* The record is found at the next start and expires. */
			err = -ENOMEM;
			goto out;
		}
		atomic_fetch_add(&s->refs, 1);
		session_hash(m, s);
		pvfs_info("session %llu: %s", (unsigned long long)s->id, s->host);
	}
	s->recorded = op->db_gen;
out:
	pthread_mutex_unlock(&m->sessions.open_lock);
	if (err)
		return err;
	atomic_store(&s->leases, req->flags & PVFS_SO_LEASES);
	*ret = s;
	return err;
}

/* ---- end ---- */

struct orphan_list {
	u64 session;
	u64 *ino;
	u32 n, room;
};

/*
 * Finds the orphans of one session. The table is small: it holds only what is open and has no name.
 */
static int orphans_fn(struct mgr_op *op, void *arg)
{
	struct orphan_list *l = arg;
	u8 key[MGR_PAIR_KEY] = { 0 }, val[sizeof(struct mgr_mark_disk)];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	int err;

	l->n = 0;
	err = mdb_cursor_open(op->m->db, op->txn, MDB_ORPHAN, 0, &c);
	if (err)
		return err;
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		if (rec.klen != MGR_PAIR_KEY || mgr_get_be64(rec.key + 8) != l->session)
			continue;
		if (l->n == l->room) {
			u64 *more = realloc(l->ino, (l->room + 64) * sizeof(*more));

			if (!more) {
				err = -ENOMEM;
				break;
			}
			l->ino = more;
			l->room += 64;
		}
		l->ino[l->n++] = mgr_get_be64(rec.key);
	}
	mdb_cursor_close(&c);
	return err == -ENOENT ? 0 : err;
}

int mgr_session_mark(struct mgr_op *op, u64 id, bool fenced)
{
	u8 key[MGR_INO_KEY], val[MGR_SESSION_MAX];
	struct mgr_session_rec rec;
	int n, err;

	mgr_ino_key(key, id);
	n = mdb_get(op->m->db, op->txn, MDB_SESSION, key, sizeof(key), val, sizeof(val), MDB_RMW);
	if (n == -ENOENT)
		return 0;
	err = n < 0 ? n : mgr_session_decode(&rec, val, n);
	if (err)
		return err;
	rec.evicted = true;
	rec.fenced = fenced;
	return mdb_put(op->m->db, op->txn, MDB_SESSION, key, sizeof(key), val,
		       mgr_session_encode(&rec, val));
}

/*
 * It has told all that it had open before the restart, and asked again for what it had asked for.
 * Orphans of its own that are not open were closed, and we have forgotten that we had answered.
 */
static int drop_unclaimed(struct mgr_op *op, void *arg)
{
	struct mgr_session *s = arg;
	struct orphan_list l = { .session = s->id };
	int err;
	u32 i;

	err = mgr_run(op, orphans_fn, &l, MGR_RUN_READ);
	/* Those that it has open stay. */
	for (i = 0; i < l.n && !err; i++)
		err = mgr_orphan_release(op, l.ino[i], s->id);
	free(l.ino);
	return err;
}

struct forget {
	u64 id;
	bool keep;		/* its record, as that of one that was fenced */
	const struct mgr_session *leaving;	/* by its own wish, or NULL */
};

static int forget_fn(struct mgr_op *op, void *arg)
{
	const struct forget *f = arg;
	u8 key[MGR_INO_KEY];
	int err;

	err = mgr_slots_del(op, f->id);
	if (err)
		return err;
	/* What evict.c has is its affair. */
	if (f->leaving && atomic_load(&f->leaving->evicting))
		return 0;
	if (f->keep)
		return mgr_session_mark(op, f->id, true);
	mgr_ino_key(key, f->id);
	err = mdb_del(op->m->db, op->txn, MDB_SESSION, key, sizeof(key));
	return err == -ENOENT ? 0 : err;
}

static int forget_txn(struct mgr_op *op, void *arg)
{
	return mgr_run(op, forget_fn, arg, 0);
}

int mgr_session_forget(struct mgr *m, u64 id)
{
	struct forget f = { .id = id };

	return mgr_bg_do(m, forget_txn, &f);
}

static void left_uncertain(void *arg, u64 ino)
{
	mgr_settle_add(arg, ino);
}

int mgr_session_end(struct mgr_op *op, struct mgr_session *s, bool keep)
{
	struct forget f = { .id = s->id, .keep = keep, .leaving = op->s };
	struct orphan_list l = { .session = s->id };
	u64 id = s->id;
	int err;
	u32 i;

	/* Each step may be done again: the caller runs once more after a recovery. */
	atomic_store(&s->dead, true);
	if (session_unhash(op->m, s))
		mgr_session_put(s);
	mgr_opens_sweep(&op->m->opens, id, left_uncertain, op->m);
	mgr_locks_sweep(&op->m->locks, id);
	mgr_recall_session_end(op->m, id);
	mgr_session_returned(op->m, s);
	err = mgr_run(op, orphans_fn, &l, MGR_RUN_READ);
	for (i = 0; i < l.n && !err; i++)
		err = mgr_orphan_release(op, l.ino[i], id);
	free(l.ino);
	return err ?: mgr_run(op, forget_fn, &f, MGR_RUN_SYNC);
}

/* ---- start and stop ---- */

int mgr_sessions_init(struct mgr *m)
{
	int err = pthread_rwlock_init(&m->sessions.lock, NULL);

	if (err)
		return -err;
	pthread_mutex_init(&m->sessions.open_lock, NULL);
	return 0;
}

/**
 * mgr_sessions_load - the sessions of the process before us, each with a whole lease to come back
 *
 * Context: start, nothing else runs.
 */
int mgr_sessions_load(struct mgr_op *op)
{
	u8 key[MGR_INO_KEY] = { 0 }, val[MGR_SESSION_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mgr_session_rec sr;
	struct mgr_session *s;
	struct mdb_cursor c;
	int err;

	err = mdb_cursor_open(op->m->db, NULL, MDB_SESSION, 0, &c);
	if (err)
		return err;
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		err = rec.klen == MGR_INO_KEY ? mgr_session_decode(&sr, val, rec.vlen) : -EUCLEAN;
		if (err)
			break;
		s = session_new(mgr_get_be64(rec.key), &sr);
		if (!s) {
			err = -ENOMEM;
			break;
		}
		if (!sr.evicted || !sr.fenced) {
			atomic_store(&s->absent, true);
			atomic_fetch_add(&op->m->sessions.absent, 1);
		}
		if (sr.evicted) {
			/* What it had is nobody's before it is fenced: it counts as absent. */
			atomic_store(&s->dead, true);
			atomic_store(&s->evicting, true);
			err = mgr_evict_resume(op->m, s, sr.fenced);
			if (!err)
				continue;
			mgr_session_put(s);
			break;
		}
		s->recorded = op->db_gen;
		atomic_store(&s->returning, true);
		atomic_fetch_add(&op->m->sessions.returning, 1);
		s->had_leases = sr.leases;
		atomic_store(&s->leases, sr.leases);
		if (sr.leases)
			atomic_fetch_add(&op->m->sessions.returning_leases, 1);
		session_hash(op->m, s);
	}
	mdb_cursor_close(&c);
	return err == -ENOENT ? 0 : err;
}

static int lost_fn(struct mgr_op *op, void *arg)
{
	struct mgr_session_rec all = { .evicted = true };
	u8 key[MGR_INO_KEY], val[MGR_SESSION_MAX];
	__le64 next;
	int n;

	n = mdb_get(op->m->db, op->txn, MDB_META, "next_session", 12, &next, sizeof(next), 0);
	if (n != sizeof(next))
		return n < 0 ? n : -EUCLEAN;
	mgr_ino_key(key, PVFS_SESSION_ALL | (le64_to_cpu(next) - 1));
	return mdb_put(op->m->db, op->txn, MDB_SESSION, key, sizeof(key), val,
		       mgr_session_encode(&all, val));
}

/**
 * mgr_sessions_lost - nobody knows any more who had a session: all are evicted
 *
 * One record stands for them, as that of one session that was evicted.
 *
 * Context: start, before mgr_sessions_load().
 */
int mgr_sessions_lost(struct mgr_op *op)
{
	int err = mgr_run(op, lost_fn, NULL, 0);

	err = err ?: mdb_sync(op->m->db);
	err = err ?: mdb_checkpoint(op->m->db, 0, true);
	return err ?: op->m->db->ops->sessions_evicted(op->m->db);
}

/* Numbers of one second; more are not opened in one. From 2026 on. */
#define SESSIONS_A_SECOND	1024u
#define SESSIONS_SINCE		1767225600ll

static int advance_fn(struct mgr_op *op, void *arg)
{
	u64 next, by_clock;
	__le64 v;
	int n;

	n = mdb_get(op->m->db, op->txn, MDB_META, "next_session", 12, &v, sizeof(v), MDB_RMW);
	if (n != sizeof(v))
		return n < 0 ? n : -EUCLEAN;
	next = le64_to_cpu(v);
	by_clock = *(s64 *)arg > SESSIONS_SINCE ? (*(s64 *)arg - SESSIONS_SINCE) * SESSIONS_A_SECOND : 0;
	if (by_clock <= next)
		return 0;
	v = cpu_to_le64(by_clock);
	return mdb_put(op->m->db, op->txn, MDB_META, "next_session", 12, &v, sizeof(v));
}

/**
 * mgr_sessions_advance - no session gets a number that another one had, after whatever restart
 * @op: its
 * @now: the time of day, seconds
 *
 * The store may be a copy, older than what happened since: the iods know sessions that were evicted after it
 * was made, and would refuse others of these numbers for ever.
 *
 * Context: start, after mgr_sessions_lost().
 */
int mgr_sessions_advance(struct mgr_op *op, s64 now)
{
	return mgr_run(op, advance_fn, &now, MGR_RUN_SYNC);
}

void mgr_sessions_fini(struct mgr *m)
{
	struct mgr_session *s, *next;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(m->sessions.by_id); i++) {
		for (s = m->sessions.by_id[i]; s; s = next) {
			next = s->next_id;
			mgr_session_put(s);
		}
	}
	pthread_rwlock_destroy(&m->sessions.lock);
	pthread_mutex_destroy(&m->sessions.open_lock);
}

static bool grace_time(struct mgr *m)
{
	u64 until = atomic_load_explicit(&m->grace_until, memory_order_relaxed);

	return until && mgr_mono_ms() < until;
}

bool mgr_in_grace(struct mgr *m)
{
	return atomic_load_explicit(&m->sessions.absent, memory_order_relaxed) || grace_time(m);
}

void mgr_session_returned(struct mgr *m, struct mgr_session *s)
{
	mgr_session_back(m, s);
	if (!atomic_exchange(&s->returning, false))
		return;
	atomic_fetch_sub(&m->sessions.returning, 1);
	if (s->had_leases)
		atomic_fetch_sub(&m->sessions.returning_leases, 1);
	mgr_grace_kick(m);
}

bool mgr_locks_in_grace(struct mgr *m)
{
	return atomic_load(&m->sessions.absent) ||
	       (atomic_load(&m->sessions.returning) && grace_time(m));
}

bool mgr_leases_in_grace(struct mgr *m)
{
	/* Leases end by themselves, whoever had them. */
	return atomic_load(&m->sessions.returning_leases) && grace_time(m);
}

/* ---- expiry ---- */

/* Asks all of them whether they are there, at once: as many may have lost their power together. */
static void ask_all(struct mgr *m, struct mgr_session **late, u32 n)
{
	struct srv_callback *cb[LATE_MAX];
	bool asked[LATE_MAX];
	u8 rep[64];
	u32 i, len;

	for (i = 0; i < n; i++)
		asked[i] = m->server &&
			   !pvfs_server_callback_begin(m->server, late[i]->id, PVFS_OP_PING, NULL,
						       0, PING_MS, &cb[i]);
	for (i = 0; i < n; i++)
		if (asked[i] &&
		    !pvfs_server_callback_end(m->server, cb[i], rep, sizeof(rep), &len))
			session_seen(m, late[i]);
}

/*
 * It is dead, unless it was heard of meanwhile: requests give their sign of life with the table
 * locked.
 * Return: it is, and evict.c has it.
 */
static bool end_late(struct mgr *m, struct mgr_session *s)
{
	u64 lease = m->conf->lease_ms;
	bool late;

	pthread_rwlock_wrlock(&m->sessions.lock);
	late = mgr_mono_ms() >= atomic_load_explicit(&s->seen, memory_order_relaxed) + lease &&
	       !atomic_load(&s->dead);
	if (late) {
		atomic_fetch_add(&s->refs, 1);
		late = !mgr_evict_add(m, s);
		if (late) {
			atomic_store(&s->evicting, true);
			atomic_store(&s->dead, true);
		} else {
			atomic_fetch_sub(&s->refs, 1);
		}
	}
	pthread_rwlock_unlock(&m->sessions.lock);
	return late;
}

/* Some at a time: the others in the next round. */
static void drop_all_unclaimed(struct mgr *m)
{
	struct mgr_session *s, *due[16];
	u32 i, n = 0;

	pthread_rwlock_rdlock(&m->sessions.lock);
	for (i = 0; i < ARRAY_SIZE(m->sessions.by_id); i++) {
		for (s = m->sessions.by_id[i]; s && n < ARRAY_SIZE(due); s = s->next_id) {
			u64 at = atomic_load_explicit(&s->unclaimed, memory_order_relaxed);

			if (!at || mgr_mono_ms() < at || atomic_load(&s->dead))
				continue;
			atomic_fetch_add(&s->refs, 1);
			due[n++] = s;
		}
	}
	pthread_rwlock_unlock(&m->sessions.lock);
	for (i = 0; i < n; i++) {
		if (!mgr_bg_do(m, drop_unclaimed, due[i]))
			atomic_store(&due[i]->unclaimed, 0);
		mgr_session_put(due[i]);
	}
}

void mgr_sessions_expire(struct mgr *m)
{
	struct mgr_session *s, *late[LATE_MAX];
	u64 lease = m->conf->lease_ms;
	u32 i, n = 0;

	pthread_rwlock_rdlock(&m->sessions.lock);
	for (i = 0; i < ARRAY_SIZE(m->sessions.by_id) && n < ARRAY_SIZE(late); i++) {
		for (s = m->sessions.by_id[i]; s && n < ARRAY_SIZE(late); s = s->next_id) {
			u64 seen = atomic_load_explicit(&s->seen, memory_order_relaxed);

			/* @seen may be newer than any clock we read before. */
			if (mgr_mono_ms() < seen + lease || atomic_load(&s->dead))
				continue;
			atomic_fetch_add(&s->refs, 1);
			late[n++] = s;
		}
	}
	pthread_rwlock_unlock(&m->sessions.lock);
	ask_all(m, late, n);
	for (i = 0; i < n; i++) {
		s = late[i];
		if (end_late(m, s))
			pvfs_warn("session %llu of %s: no sign of life for its lease of %u ms: ended",
				  (unsigned long long)s->id, s->host, m->conf->lease_ms);
		mgr_session_put(s);
	}
	mgr_evict_round(m);
	drop_all_unclaimed(m);
}

void *mgr_expire_thread(void *arg)
{
	struct mgr *m = arg;
	u32 ms = max(m->conf->lease_ms / 4, 50u);

	/* What the process before us had begun with comes first: others wait for it. */
	do
		mgr_sessions_expire(m);
	while (!mgr_bg_wait(m, mgr_mono_ms() + ms));
	return NULL;
}
