/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mgr_fixture.h - a manager without a transport for the mgr_*_test.c: a store in a temporary
 * directory, iods that are a table in memory, and a typed call for every operation: fx_<op>(client,
 * &req, &rep) encodes the request, executes it as the server would, and decodes the reply.
 */
#ifndef MGR_FIXTURE_H
#define MGR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "mgr/mgr.h"

#define FX_NIODS 4u

#ifdef __SANITIZE_ADDRESS__
/* Recovery in place gives the panicked environment's memory up (mdb_bdb.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdb-5.3";
}
#endif

/* ---- iods ---- */

struct fx_datafile {
	struct fx_datafile *next;
	u32 iod;
	u64 ino;
	u32 gen;
	u64 size;
	u64 hole;			/* bytes of it that take no space */
	struct pvfs_ts wtime;
	u8 *filled;			/* by FILL: @size bytes */
};

struct fx_iods {
	pthread_mutex_t lock;		/* protects all below */
	struct fx_datafile *df[256];
	u32 down;			/* bit per iod */
	int trim_error;			/* every TRIM fails with it */
	int fill_error;			/* every FILL fails with it, on all but the first iod of a file */
	u64 glimpses, holds, trims, fills, removes, statfs, evicts;
	u64 holds_before_trim;		/* the last one */
	u64 evicted;			/* the last */
	u64 disk[FX_NIODS];		/* what STATFS says of it */
	s64 clock;			/* seconds of the last write */
	void (*meanwhile)(void *arg);	/* what happens while the iods are asked for an end; not under lock */
	void *meanwhile_arg;
	void (*on_evict)(void *arg);	/* the same, while they are told of evictions */
	void *on_evict_arg;
	u32 evict_calls;		/* how often they were told, of however many */
	bool silent;			/* calls of tasks are answered when fx_iods_answer() says so */
	struct fx_held *held;
	u32 nheld;
};

/* Calls that a task made together, and that nobody answers yet. */
struct fx_held {
	struct fx_held *next;
	struct mgr_iocall *calls;
	u32 n;
	void (*done)(void *arg);
	void *arg;
};

static inline struct fx_datafile *fx_df(struct fx_iods *x, u32 iod, const struct pvfs_fid *fid,
					bool make)
{
	struct fx_datafile **head = &x->df[(fid->ino * 31 + iod) % ARRAY_SIZE(x->df)], *d;

	for (d = *head; d; d = d->next)
		if (d->iod == iod && d->ino == fid->ino && d->gen == fid->gen)
			return d;
	if (!make)
		return NULL;
	d = calloc(1, sizeof(*d));
	d->iod = iod;
	d->ino = fid->ino;
	d->gen = fid->gen;
	d->next = *head;
	*head = d;
	return d;
}

/* It ends at @end from now on; what comes between its old end and @from is a hole. */
static inline void fx_df_end(struct fx_datafile *d, u64 from, u64 end)
{
	u64 had = (d->size + 4095) & ~4095ull, space;

	if (from > had)
		d->hole += (from & ~4095ull) - had;
	/* What a cut takes away is the hole, as far as that goes. */
	space = min(max(d->size, end) - d->hole, end);
	d->hole = end - space;
	d->size = end;
}

static inline void fx_df_remove(struct fx_iods *x, u32 iod, const struct pvfs_fid *fid)
{
	struct fx_datafile **pp = &x->df[(fid->ino * 31 + iod) % ARRAY_SIZE(x->df)], *d;

	for (; (d = *pp); pp = &d->next) {
		if (d->iod == iod && d->ino == fid->ino && d->gen == fid->gen) {
			*pp = d->next;
			free(d->filled);
			free(d);
			return;
		}
	}
}

static inline void fx_df_fill(struct fx_datafile *d, const struct iovec *data, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		d->filled = realloc(d->filled, d->size + data[i].iov_len);
		memcpy(d->filled + d->size, data[i].iov_base, data[i].iov_len);
		d->size += data[i].iov_len;
	}
}

static inline void fx_iods_call(void *arg, struct mgr_iocall *calls, u32 n, unsigned int timeout_ms)
{
	struct fx_iods *x = arg;
	struct fx_datafile *d;
	u32 i;

	if (n && calls[0].op == PVFS_OP_GLIMPSE && x->meanwhile)
		x->meanwhile(x->meanwhile_arg);
	if (n && calls[0].op == PVFS_OP_EVICT) {
		x->evict_calls++;
		if (x->on_evict)
			x->on_evict(x->on_evict_arg);
	}
	pthread_mutex_lock(&x->lock);
	for (i = 0; i < n; i++) {
		struct mgr_iocall *c = &calls[i];

		c->err = x->down & (1u << c->iod) ? -EHOSTDOWN : 0;
		if (c->err)
			continue;
		d = fx_df(x, c->iod, &c->fid, false);
		switch (c->op) {
		case PVFS_OP_GLIMPSE:
			x->glimpses++;
			memset(&c->glimpse, 0, sizeof(c->glimpse));
			if (d) {
				c->glimpse.size = d->size;
				c->glimpse.blocks = (d->size - d->hole + 4095) / 4096 * 8;
				c->glimpse.wtime = d->wtime;
			}
			break;
		case PVFS_OP_HOLD:
			x->holds++;
			break;
		case PVFS_OP_TRIM:
			x->trims++;
			x->holds_before_trim = x->holds;
			c->err = x->trim_error;
			if (c->err || (!d && !c->size))
				break;
			d = fx_df(x, c->iod, &c->fid, true);
			fx_df_end(d, c->size, c->size);
			break;
		case PVFS_OP_FILL:
			x->fills++;
			c->err = i ? x->fill_error : 0;
			if (!c->err && !d)
				fx_df_fill(fx_df(x, c->iod, &c->fid, true), c->data, c->ndata);
			break;
		case PVFS_OP_REMOVE:
			x->removes++;
			fx_df_remove(x, c->iod, &c->fid);
			break;
		case PVFS_OP_EVICT:
			x->evicts++;
			x->evicted = c->session;
			break;
		case PVFS_OP_IOD_STATFS:
			x->statfs++;
			c->statfs = (struct pvfs_iod_statfs_rep){
				.bsize = 8192, .blocks = 1000, .bfree = 600, .bavail = 500,
				.files = 10, .ffree = 5, .disk = x->disk[c->iod],
			};
			break;
		default:
			c->err = -EINVAL;
		}
	}
	pthread_mutex_unlock(&x->lock);
}

static inline void fx_iods_start(void *arg, struct mgr_iocall *calls, u32 n,
				 unsigned int timeout_ms, void (*done)(void *done_arg),
				 void *done_arg)
{
	struct fx_iods *x = arg;
	struct fx_held *h = malloc(sizeof(*h));
	bool silent;

	*h = (struct fx_held){ .calls = calls, .n = n, .done = done, .arg = done_arg };
	pthread_mutex_lock(&x->lock);
	silent = x->silent;
	if (silent) {
		h->next = x->held;
		x->held = h;
		x->nheld++;
	}
	pthread_mutex_unlock(&x->lock);
	if (silent)
		return;
	fx_iods_call(x, calls, n, timeout_ms);
	free(h);
	done(done_arg);
}

/* The silent iods answer, and are silent no more. */
static inline void fx_iods_answer(struct fx_iods *x)
{
	struct fx_held *h, *next;

	pthread_mutex_lock(&x->lock);
	h = x->held;
	x->held = NULL;
	x->nheld = 0;
	x->silent = false;
	pthread_mutex_unlock(&x->lock);
	for (; h; h = next) {
		next = h->next;
		fx_iods_call(x, h->calls, h->n, 0);
		h->done(h->arg);
		free(h);
	}
}

static const struct mgr_iod_ops fx_iod_ops = { .call = fx_iods_call, .start = fx_iods_start };

/* A client writes: datafiles grow, the write time advances. Returns it in @wtime. */
static inline void fx_write(struct fx_iods *x, const struct pvfs_attr *a, u64 off, u64 len,
			    struct pvfs_ts *wtime)
{
	struct pvfs_extent e;
	struct fx_datafile *d;
	u32 df;

	pthread_mutex_lock(&x->lock);
	x->clock++;
	for (df = 0; df < a->layout.pcount; df++) {
		pvfs_stripe_share(&a->layout, df, off, len, &e);
		if (!e.len)
			continue;
		d = fx_df(x, pvfs_stripe_iod(&a->layout, df, FX_NIODS), &a->fid, true);
		fx_df_end(d, e.off, max(d->size, e.off + e.len));
		d->wtime = (struct pvfs_ts){ .sec = x->clock, .nsec = 7 };
	}
	*wtime = (struct pvfs_ts){ .sec = x->clock, .nsec = 7 };
	pthread_mutex_unlock(&x->lock);
}

static inline u32 fx_datafiles(struct fx_iods *x, u64 ino)
{
	struct fx_datafile *d;
	u32 i, n = 0;

	pthread_mutex_lock(&x->lock);
	for (i = 0; i < ARRAY_SIZE(x->df); i++)
		for (d = x->df[i]; d; d = d->next)
			n += d->ino == ino;
	pthread_mutex_unlock(&x->lock);
	return n;
}

static inline void fx_iods_free(struct fx_iods *x)
{
	struct fx_datafile *d, *next;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(x->df); i++) {
		for (d = x->df[i]; d; d = next) {
			next = d->next;
			free(d->filled);
			free(d);
		}
		x->df[i] = NULL;
	}
}

/* ---- the manager ---- */

struct fx {
	char dir[64];
	struct pvfs_conf conf;
	struct pvfs_conf_iod iods[FX_NIODS];
	struct pvfs_key key;
	struct fx_iods x;
	struct mgr *m;
};

static inline int fx_try_open(struct fx *f)
{
	char err[256] = "";
	int e = mgr_core_open(&f->conf, &f->key, &fx_iod_ops, &f->x, &f->m, err, sizeof(err));

	if (e)
		fprintf(stderr, "# open: %s\n", err);
	return e;
}

static inline void fx_start(struct fx *f)
{
	assert_int_equal(fx_try_open(f), 0);
}

static inline void fx_stop(struct fx *f)
{
	mgr_core_close(f->m);
	f->m = NULL;
}

static inline void fx_reopen(struct fx *f)
{
	fx_stop(f);
	fx_start(f);
}

/* Its time is over, and those that are absent have nothing. */
static inline void fx_end_grace(struct fx *f)
{
	struct mgr_session *s;
	u32 i;

	atomic_store(&f->m->grace_until, 0);
	for (i = 0; i < ARRAY_SIZE(f->m->sessions.by_id); i++)
		for (s = f->m->sessions.by_id[i]; s; s = s->next_id)
			mgr_session_back(f->m, s);
}

static inline struct fx *fx_new(void)
{
	struct fx *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");
	char err[256] = "";
	u32 i;

	snprintf(f->dir, sizeof(f->dir), "%s/pvfs-mgr-XXXXXX", tmp && strlen(tmp) < 40 ? tmp :
		 "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->conf.mgr_store, sizeof(f->conf.mgr_store), "%s/store", f->dir);
	strcpy(f->conf.name, "test");
	for (i = 0; i < PVFS_UUID_LEN; i++)
		f->conf.uuid[i] = i + 1;
	f->conf.durability = PVFS_DURABLE_WRITE;
	f->conf.db_cache = 16 << 20;
	f->conf.lease_ms = 30000;
	f->conf.checkpoint_ms = 200;
	f->conf.locks_max = 1000000;
	f->conf.session_locks_max = 65536;
	f->conf.leases_max = 100000;
	f->conf.mgr_threads = 4;
	f->conf.stripe_size = 65536;
	f->conf.niods = FX_NIODS;
	f->conf.iods = f->iods;
	for (i = 0; i < FX_NIODS; i++)
		snprintf(f->iods[i].address, sizeof(f->iods[i].address), "127.0.0.1:%u", 7101 + i);
	memset(f->key.bytes, 0x5a, sizeof(f->key.bytes));
	f->key.present = true;
	pthread_mutex_init(&f->x.lock, NULL);
	f->x.clock = 2000000000;	/* ahead of the manager's clock: a write is always later */
	if (mgr_mkfs(&f->conf, err, sizeof(err)))
		fail_msg("mkfs: %s", err);
	fx_start(f);
	return f;
}

/*
 * The database panics every 200 ms until @stop; not without end, as a manager that recovers too often ends (LOST_MAX in
 * mdb_bdb.c): at this cache after 39 times, which is less than slow work under a sanitizer takes.
 */
static inline void fx_panic_until(struct fx *f, atomic_bool *stop)
{
	unsigned int i;

	for (i = 0; i < 30 && !atomic_load(stop); i++) {
		usleep(200000);
		mdb_enter(f->m->db);
		mdb_bdb_panic(f->m->db);
		mdb_leave(f->m->db);
	}
}

/* The invariants, after whatever a test did. */
static inline void fx_check(struct fx *f)
{
	struct mgr_check_result r;

	assert_int_equal(mgr_check(f->m, stderr, &r), 0);
	assert_int_equal(r.problems, 0);
}

static inline void fx_free(struct fx *f)
{
	char cmd[128];

	if (f->m) {
		fx_check(f);
		fx_stop(f);
	}
	fx_iods_free(&f->x);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", f->dir);
	assert_int_equal(system(cmd), 0);
	free(f);
}

/* ---- clients ---- */

struct fx_client {
	struct fx *f;
	u64 session;
	u16 slot;
	u32 seq;
	bool no_retry;		/* give -EAGAIN to the test instead of asking again */
	bool park;		/* give -EINPROGRESS to the test when leases are in the way; fx_op has them */
	bool wait;		/* the same when it would wait for the end of the grace */
	struct mgr_parked *parked;	/* what the next request has waited for */
	u32 uid, gid;
	u8 groups[32];
	u32 ngroups;
	u32 umask;
	const void *data;	/* payload of the next SETXATTR, HEAD_WRITE, FLUSH or FILES_WRITE */
	u32 data_len;
};

static inline struct pvfs_cred fx_cred(const struct fx_client *c)
{
	return (struct pvfs_cred){
		.uid = c->uid, .gid = c->gid, .groups = { .p = c->groups, .len = c->ngroups * 4 },
	};
}

static inline bool fx_has_data(u16 nr)
{
	return nr == PVFS_OP_SETXATTR || nr == PVFS_OP_HEAD_WRITE || nr == PVFS_OP_FLUSH ||
	       nr == PVFS_OP_FILES_WRITE;
}

/* One execution, as the server makes it: again where it may block when it asks for that. */
static inline int fx_execute(struct fx_client *c, u16 nr, u32 seq, const void *body, u32 len,
			     struct mgr_op *op)
{
	struct mgr_request rq = {
		.op = nr, .slot = c->slot, .slot_seq = seq, .session = c->session, .body = body,
		.body_len = len,
		.data = fx_has_data(nr) ? c->data : NULL,
		.data_len = fx_has_data(nr) ? c->data_len : 0,
		.can_block = pvfs_op_info(nr)->flags & PVFS_OPF_SLOW, .can_park = c->park,
		.can_wait = c->wait, .parked = c->parked,
	};
	int err = mgr_execute(c->f->m, &rq, op);

	if (err == -EINPROGRESS && !op->nnoted && !op->grace) {
		rq.can_block = true;
		err = mgr_execute(c->f->m, &rq, op);
	}
	return err;
}

/* Where the last reply of this thread lies; payload too. */
static __thread struct mgr_op fx_op;

static inline int fx_call(struct fx_client *c, u16 nr, const void *body, u32 len)
{
	u32 seq = pvfs_op_info(nr)->flags & PVFS_OPF_ONCE ? ++c->seq : 0;
	unsigned int tries = 0;
	int err;

	free(fx_op.payload);
	do {
		err = fx_execute(c, nr, seq, body, len, &fx_op);
	} while (err == -EAGAIN && !c->no_retry && ++tries < 100 && !usleep(1000));
	return err;
}

#define PVFS_OP(num, NAME, name, by, flags) MGR_SERVED_##by( \
	static inline int fx_##name(struct fx_client *c, const struct pvfs_##name##_req *rq, \
				    struct pvfs_##name##_rep *rp) \
	{ \
		u8 body_[PVFS_BODY_MAX]; \
		int n_ = pvfs_##name##_req_encode(rq, body_, sizeof(body_)), err_; \
		if (n_ < 0) \
			return n_; \
		err_ = fx_call(c, num, body_, n_); \
		return err_ ? err_ : pvfs_##name##_rep_decode(rp, fx_op.body, fx_op.body_len); \
	})
#include "common/ops.def"
#undef PVFS_OP

static inline void fx_client_open(struct fx_client *c, struct fx *f, u8 id, u32 flags)
{
	struct pvfs_session_open_req rq = { .host = PVFS_STR("testhost"), .flags = flags };
	struct pvfs_session_open_rep rp;

	memset(c, 0, sizeof(*c));
	c->f = f;
	memset(rq.client, id, sizeof(rq.client));
	assert_int_equal(fx_session_open(c, &rq, &rp), 0);
	c->session = rp.session;
}

static inline void fx_client_init(struct fx_client *c, struct fx *f, u8 id)
{
	fx_client_open(c, f, id, 0);
}

/* Two that take leases, and one that takes none; a request that waits for others' is not executed again by itself. */
static inline void fx_lease_clients(struct fx *f, struct fx_client *a, struct fx_client *b, struct fx_client *plain)
{
	fx_client_open(a, f, 1, PVFS_SO_LEASES);
	fx_client_open(b, f, 2, PVFS_SO_LEASES);
	fx_client_init(plain, f, 3);
	a->park = b->park = plain->park = true;
}

/* A second thread of the same client: another slot. */
static inline struct fx_client fx_thread(const struct fx_client *c, u16 slot)
{
	struct fx_client t = *c;

	t.slot = slot;
	t.seq = 0;
	return t;
}

static inline void assert_attr_equal(const struct pvfs_attr *a, const struct pvfs_attr *b)
{
	u8 x[256] = { 0 }, y[256] = { 0 };
	struct pvfs_wire w;

	pvfs_wire_init(&w, x, sizeof(x));
	pvfs_put_attr(&w, a);
	assert_int_equal(w.err, 0);
	pvfs_wire_init(&w, y, sizeof(y));
	pvfs_put_attr(&w, b);
	assert_memory_equal(x, y, sizeof(x));
}

/* ---- short forms; each returns the operation's error ---- */

static const struct pvfs_fid fx_root __attribute__((unused)) = { .ino = 1, .gen = 1 };

static inline void fx_take(struct pvfs_attr *a, int err, const struct pvfs_attr *from)
{
	if (a && err)
		memset(a, 0, sizeof(*a));
	else if (a)
		*a = *from;
}

static inline int do_lookup(struct fx_client *c, struct pvfs_fid dir, const char *name,
			    struct pvfs_attr *a)
{
	struct pvfs_lookup_req rq = { .cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name) };
	struct pvfs_lookup_rep rp;
	int err = fx_lookup(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_getattr(struct fx_client *c, struct pvfs_fid fid, const struct pvfs_wreport *r,
			     struct pvfs_attr *a)
{
	struct pvfs_getattr_req rq = { .fid = fid };
	struct pvfs_getattr_rep rp;
	int err;

	if (r)
		rq.report = *r;
	err = fx_getattr(c, &rq, &rp);
	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_create(struct fx_client *c, struct pvfs_fid dir, const char *name, u32 flags,
			    u32 mode,
			    struct pvfs_attr *a)
{
	struct pvfs_create_req rq = {
		.cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name), .flags = flags,
		.mode = mode, .umask = c->umask,
	};
	struct pvfs_create_rep rp;
	int err = fx_create(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_open(struct fx_client *c, struct pvfs_fid fid, u32 flags, struct pvfs_attr *a)
{
	struct pvfs_open_req rq = { .cred = fx_cred(c), .fid = fid, .flags = flags };
	struct pvfs_open_rep rp;
	int err = fx_open(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

/* @rp: what the answer tells */
static inline int do_close_told(struct fx_client *c, struct pvfs_fid fid, u32 flags,
				const struct pvfs_wreport *r, struct pvfs_close_rep *rp)
{
	struct pvfs_closing cl = { .fid = fid, .flags = flags };
	u8 raw[PVFS_CLOSING_LEN];
	struct pvfs_close_req rq;

	if (r)
		cl.report = *r;
	pvfs_close_req_one(&rq, &cl, raw);
	return fx_close(c, &rq, rp);
}

static inline int do_close(struct fx_client *c, struct pvfs_fid fid, u32 flags,
			   const struct pvfs_wreport *r)
{
	struct pvfs_close_rep rp;

	return do_close_told(c, fid, flags, r, &rp);
}

/* A file, made and closed. */
static inline int do_mkfile(struct fx_client *c, struct pvfs_fid dir, const char *name, u32 mode,
			    struct pvfs_attr *a)
{
	struct pvfs_mknod_req rq = {
		.cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name), .mode = S_IFREG | mode,
		.umask = c->umask,
	};
	struct pvfs_mknod_rep rp;
	int err = fx_mknod(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_mkdir(struct fx_client *c, struct pvfs_fid dir, const char *name, u32 mode,
			   struct pvfs_attr *a)
{
	struct pvfs_mkdir_req rq = { .cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name),
		.mode = mode, .umask = c->umask };
	struct pvfs_mkdir_rep rp;
	int err = fx_mkdir(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_symlink(struct fx_client *c, struct pvfs_fid dir, const char *name,
			     const char *target,
			     struct pvfs_attr *a)
{
	struct pvfs_symlink_req rq = {
		.cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name), .target = PVFS_STR(target),
	};
	struct pvfs_symlink_rep rp;
	int err = fx_symlink(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_link(struct fx_client *c, struct pvfs_fid fid, struct pvfs_fid dir,
			  const char *name)
{
	struct pvfs_link_req rq = { .cred = fx_cred(c), .fid = fid, .dir = dir,
		.name = PVFS_STR(name) };
	struct pvfs_link_rep rp;

	return fx_link(c, &rq, &rp);
}

static inline int do_unlink(struct fx_client *c, struct pvfs_fid dir, const char *name)
{
	struct pvfs_unlink_req rq = { .cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name) };
	struct pvfs_unlink_rep rp;

	return fx_unlink(c, &rq, &rp);
}

static inline int do_rmdir(struct fx_client *c, struct pvfs_fid dir, const char *name)
{
	struct pvfs_rmdir_req rq = { .cred = fx_cred(c), .dir = dir, .name = PVFS_STR(name) };
	struct pvfs_rmdir_rep rp;

	return fx_rmdir(c, &rq, &rp);
}

static inline int do_rename(struct fx_client *c, struct pvfs_fid sdir, const char *sname,
			    struct pvfs_fid ddir,
			    const char *dname, u32 flags)
{
	struct pvfs_rename_req rq = {
		.cred = fx_cred(c), .sdir = sdir, .sname = PVFS_STR(sname), .ddir = ddir,
		.dname = PVFS_STR(dname),
		.flags = flags,
	};
	struct pvfs_rename_rep rp;

	return fx_rename(c, &rq, &rp);
}

static inline int do_setxattr(struct fx_client *c, struct pvfs_fid fid, const char *name, const void *value, u32 len,
			      u32 flags, struct pvfs_attr *a)
{
	struct pvfs_setxattr_req rq = { .cred = fx_cred(c), .fid = fid, .name = PVFS_STR(name), .flags = flags };
	struct pvfs_setxattr_rep rp;
	int err;

	c->data = value;
	c->data_len = len;
	err = fx_setxattr(c, &rq, &rp);
	fx_take(a, err, &rp.attr);
	return err;
}

/* Return: the value's length, or the error. The value is fx_op.payload. */
static inline int do_getxattr(struct fx_client *c, struct pvfs_fid fid, const char *name, u32 size)
{
	struct pvfs_getxattr_req rq = { .cred = fx_cred(c), .fid = fid, .name = PVFS_STR(name), .size = size };
	struct pvfs_getxattr_rep rp;

	return fx_getxattr(c, &rq, &rp) ?: (int)rp.size;
}

static inline int do_listxattr(struct fx_client *c, struct pvfs_fid fid, u32 size)
{
	struct pvfs_listxattr_req rq = { .cred = fx_cred(c), .fid = fid, .size = size };
	struct pvfs_listxattr_rep rp;

	return fx_listxattr(c, &rq, &rp) ?: (int)rp.size;
}

static inline int do_removexattr(struct fx_client *c, struct pvfs_fid fid, const char *name, struct pvfs_attr *a)
{
	struct pvfs_removexattr_req rq = { .cred = fx_cred(c), .fid = fid, .name = PVFS_STR(name) };
	struct pvfs_removexattr_rep rp;
	int err = fx_removexattr(c, &rq, &rp);

	fx_take(a, err, &rp.attr);
	return err;
}

static inline int do_truncate(struct fx_client *c, struct pvfs_fid fid, u64 size,
			      const struct pvfs_wreport *r,
			      struct pvfs_attr *a)
{
	struct pvfs_setattr_req rq = { .cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_SIZE,
		.size = size };
	struct pvfs_setattr_rep rp;
	int err;

	if (r)
		rq.report = *r;
	err = fx_setattr(c, &rq, &rp);
	fx_take(a, err, &rp.attr);
	return err;
}

/* ---- a test with one client ---- */

static inline int fx_setup(void **state)
{
	struct fx_client *c = malloc(sizeof(*c));

	fx_client_init(c, fx_new(), 1);
	*state = c;
	return 0;
}

static inline int fx_teardown(void **state)
{
	struct fx_client *c = *state;

	fx_free(c->f);
	free(c);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

/* The same client's user @uid, on a slot of its own. */
static inline struct fx_client fx_as(const struct fx_client *c, u32 uid, u32 gid, u16 slot)
{
	struct fx_client u = fx_thread(c, slot);

	u.uid = uid;
	u.gid = gid;
	return u;
}

#endif
