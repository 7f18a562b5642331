// SPDX-License-Identifier: GPL-2.0
/*
 * size.c - how long a file is, when it was last written, and how it is cut.
 *
 * The database knows, unless the inode is marked UNCERTAIN, which it is (durably) before anyone may
 * write. Then
 *
 *   asker is the only writer, all is tracked    what it reported, no message
 *   others write, or something was missed       glimpse: ask all its iods at once, until it holds
 *                                               still
 *   nobody writes (a writer or we died)         glimpse once, record, UNCERTAIN is gone; soon it
 *                                               is us who ask (settle.c)
 *   last writer closes                          record the reports or a glimpse, UNCERTAIN is gone
 *
 * A size never shrinks but by truncation, so several sources combine by taking the largest, as long
 * as they belong to one truncation generation. Write times come from the iods' clocks: a write time
 * later than all accounted for (inode.wtime) moves mtime and ctime; so a time set by hand stays
 * until something is written after it.
 *
 * The space that a file takes follows from its size until a client says that it made a hole or the
 * like, which it does by a report that makes us ask the iods. What they say is recorded when it is
 * another than the size's (SPARSE), and from then on each report does.
 *
 * A truncation commits the new size and a trim record first, then has the datafiles cut, then drops
 * the record; while the record is there (inode flag TRIM) the size is the database's and the iods
 * are not asked. Who asks for the size meanwhile waits for the end, unless an iod is not there: to
 * know of a cut before it is made is to write what it then takes away.
 *
 * When others have the file open for writing its datafiles are HELD before the first one is cut.
 * Else a write to one that was cut already would stay, and a later one to one that was not yet would
 * go.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define GLIMPSE_MS	3000u		/* for all iods to answer */
#define GLIMPSE_TRIES	8
#define HOLD_MS		2000u
#define TRIM_MS		5000u
#define TRIM_PAUSE_MS	50u
#define CALLS_MAX	1024u		/* calls to iods made at once */

/* ---- asking the iods ---- */

static void glimpse_result(struct mgr_glimpse *g, const struct mgr_iocall *calls)
{
	u32 df;

	g->end = g->blocks = 0;
	g->wtime = (struct pvfs_ts){ 0 };
	g->complete = true;
	for (df = 0; df < g->layout.pcount; df++) {
		const struct mgr_iocall *c = &calls[df];

		if (c->err || c->glimpse.size > PVFS_FILE_MAX) {
			g->complete = false;
			continue;
		}
		g->end = max(g->end, pvfs_stripe_file_size(&g->layout, df, c->glimpse.size));
		g->blocks += min(c->glimpse.blocks, (u64)PVFS_FILE_MAX / 512);
		if (pvfs_ts_after(&c->glimpse.wtime, &g->wtime))
			g->wtime = c->glimpse.wtime;
	}
	g->end = min(g->end, (u64)PVFS_FILE_MAX);
}

/**
 * mgr_glimpse - ask the iods for ends and write times of files
 * @g: fid and layout are given
 * @n: how many
 *
 * As many as possible at once. Waits up to some seconds per thousand datafiles.
 *
 * Return: 0 (look at @g[].complete) or -ENOMEM.
 */
int mgr_glimpse(struct mgr_op *op, struct mgr_glimpse *g, u32 n)
{
	struct mgr *m = op->m;
	struct mgr_iocall few[16], *calls = few;
	u32 i, k, df, first, room = ARRAY_SIZE(few), total = 0;
	struct mgr_opens_view v;

	for (i = 0; i < n; i++) {
		mgr_opens_view(&m->opens, g[i].fid.ino, 0, &v);
		g[i].doubt = v.doubt;
		g[i].writers = v.writers;
		total += g[i].layout.pcount;
	}
	if (total > room) {
		/* A file's calls go together; one file has at most PVFS_IOD_MAX = CALLS_MAX. */
		room = min(total, CALLS_MAX);
		calls = malloc(room * sizeof(*calls));
		if (!calls)
			return -ENOMEM;
	}
	for (first = i = 0; i < n; first = i) {
		for (k = 0; i < n && k + g[i].layout.pcount <= room; i++) {
			for (df = 0; df < g[i].layout.pcount; df++, k++) {
				calls[k].iod = pvfs_stripe_iod(&g[i].layout, df, m->niods);
				calls[k].op = PVFS_OP_GLIMPSE;
				calls[k].fid = g[i].fid;
			}
		}
		if (i == first) {
			/* More datafiles than a volume can have iods: a damaged layout. */
			g[i++].complete = false;
			continue;
		}
		mgr_iods_call(op, calls, k, GLIMPSE_MS);
		for (k = 0; first < i; k += g[first].layout.pcount, first++)
			glimpse_result(&g[first], calls + k);
	}
	atomic_fetch_add_explicit(&m->count.glimpses, n, memory_order_relaxed);
	if (calls != few)
		free(calls);
	return 0;
}

/*
 * As mgr_glimpse(), until no file became longer while its iods were asked. They are not all asked
 * at one moment: what they say was perhaps never the size, because one answered before a write that
 * came before what another saw. But a size only grows, so when two glimpses say the same it was
 * that between them. Who is written without a pause gets a size that is as good as any after some
 * tries.
 * @g: known is what the size was at least before.
 */
static int glimpse_still(struct mgr_op *op, struct mgr_glimpse *g, u32 n)
{
	struct mgr_glimpse one, *again = n == 1 ? &one : malloc(n * sizeof(*again));
	u32 first, *which = n == 1 ? &first : malloc(n * sizeof(*which)), i, moved;
	unsigned int tries;
	int err = -ENOMEM;

	if (!again || !which)
		goto out;
	err = mgr_glimpse(op, g, n);
	for (tries = 0; !err && tries < GLIMPSE_TRIES; tries++) {
		for (i = moved = 0; i < n; i++) {
			if (!g[i].complete || !g[i].writers || g[i].layout.pcount == 1 ||
			    g[i].end <= g[i].known)
				continue;
			g[i].known = g[i].end;
			again[moved] = g[i];
			which[moved++] = i;
		}
		if (!moved)
			break;
		err = mgr_glimpse(op, again, moved);
		for (i = 0; i < moved; i++)
			g[which[i]] = again[i];
	}
out:
	if (again != &one)
		free(again);
	if (which != &first)
		free(which);
	return err;
}

/* ---- combining ---- */

/* Return: something was news. */
static bool account(struct mgr_inode *in, u64 end, const struct pvfs_ts *wtime)
{
	bool news = false;

	if (end > in->size) {
		in->size = end;
		news = true;
	}
	if (pvfs_ts_after(wtime, &in->wtime)) {
		in->wtime = in->mtime = *wtime;
		if (pvfs_ts_after(wtime, &in->ctime))
			in->ctime = *wtime;
		news = true;
	}
	return news;
}

static void set_blocks(struct mgr_inode *in, u64 blocks)
{
	in->flags &= ~MGR_IF_SPARSE;
	in->blocks = 0;
	if (blocks == ns_blocks(in))
		return;
	in->flags |= MGR_IF_SPARSE;
	in->blocks = blocks;
}

/* Takes in what all iods said. Return: something was news. */
static bool account_glimpse(struct mgr_inode *in, const struct mgr_glimpse *g)
{
	u64 before = ns_blocks(in);
	bool news = account(in, g->end, &g->wtime);

	set_blocks(in, g->blocks);
	return news || ns_blocks(in) != before;
}

static bool uncertain(const struct mgr_inode *in)
{
	return S_ISREG(in->mode) && (in->flags & MGR_IF_UNCERTAIN) && !(in->flags & MGR_IF_TRIM);
}

/* What is known in memory. Return: news. */
static bool fold_blocks(struct mgr_inode *in, const struct mgr_opens_view *v)
{
	u64 before = ns_blocks(in);

	if (!v->sparse)
		in->flags &= ~MGR_IF_SPARSE;
	else
		set_blocks(in, v->blocks);
	return ns_blocks(in) != before;
}

static void fold_view(struct mgr_inode *in, const struct mgr_opens_view *v)
{
	if (!uncertain(in) || !v->writers || v->gen != in->trunc_gen)
		return;
	if (account(in, v->end, &v->wtime))
		in->version = max(in->version, v->version);
	fold_blocks(in, v);
}

void mgr_size_fold(struct mgr_op *op, struct mgr_inode *in)
{
	struct mgr_opens_view v;

	if (!uncertain(in))
		return;
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	fold_view(in, &v);
}

/* Does the asking session's word settle it? */
static bool sole_writer(const struct mgr_inode *in, const struct mgr_opens_view *v)
{
	return v->self && !v->others && v->tracked && v->gen == in->trunc_gen;
}

/*
 * Writes back an inode that was UNCERTAIN or had TRIM: nobody was told that what is known of it may
 * be believed.
 */
static int put_unleased(struct mgr_op *op, const struct mgr_inode *in)
{
	bool recalls = op->recalls;
	int err;

	op->recalls = false;
	err = ns_inode_put(op, in);
	op->recalls = recalls;
	return err;
}

struct record {
	const struct mgr_glimpse *g;	/* complete; NULL: what is known in memory */
	struct pvfs_fid fid;
	u32 gen;			/* trunc_gen the glimpse belongs to */
	bool settle;			/* clear UNCERTAIN when no writer is left */
	struct mgr_inode in;
};

static int record_fn(struct mgr_op *op, void *arg)
{
	struct record *r = arg;
	struct mgr_opens_view v;
	bool news = false;
	int err;

	err = ns_fid_get(op, &r->fid, MDB_RMW, &r->in);
	if (err || !uncertain(&r->in))
		return err;
	mgr_opens_view(&op->m->opens, r->fid.ino, mgr_op_session(op), &v);
	if (r->g) {
		if (r->in.trunc_gen != r->gen)
			return 0;
		news = account_glimpse(&r->in, r->g);
		/* Somebody came after the glimpse: its writes will be told in their own time. */
		if (r->settle && !v.writers && !mgr_in_grace(op->m)) {
			r->in.flags &= ~MGR_IF_UNCERTAIN;
			news = true;
		}
	} else if (v.writers && v.gen == r->in.trunc_gen) {
		news = account(&r->in, v.end, &v.wtime);
		news |= fold_blocks(&r->in, &v);
		if (r->settle && v.last && v.tracked && !mgr_in_grace(op->m)) {
			r->in.flags &= ~MGR_IF_UNCERTAIN;
			news = true;
		}
	}
	if (!news)
		return 0;
	r->in.version = mgr_version_after(max(r->in.version, v.version));
	return put_unleased(op, &r->in);
}

struct reread {
	struct pvfs_fid fid;
	struct mgr_inode in;
};

static int reread_fn(struct mgr_op *op, void *arg)
{
	struct reread *r = arg;

	return ns_fid_get(op, &r->fid, 0, &r->in);
}

/* A complete glimpse of @in, into memory. */
static void learn(struct mgr_op *op, const struct mgr_inode *in, const struct mgr_glimpse *g)
{
	struct mgr_inode as_seen = *in;

	as_seen.size = g->end;
	set_blocks(&as_seen, g->blocks);
	mgr_opens_learn(&op->m->opens, &as_seen, &g->wtime, g->doubt);
}

/*
 * What a glimpse of @in says. Return: 0 with @in as it is now, 1 when the file was cut meanwhile
 * (@in is fresh: look again), or -errno.
 */
static int after_glimpse(struct mgr_op *op, struct mgr_inode *in, const struct mgr_glimpse *g,
			 u32 *ret_flags)
{
	struct reread rr = { .fid = { .ino = in->ino, .gen = in->gen } };
	u32 gen = in->trunc_gen;
	struct mgr_opens_view v;
	u64 version;
	int err;

	/*
	 * Of what is recorded from here on the version is higher than that of what we are about to
	 * tell.
	 */
	version = mgr_version_after(0);
	err = mgr_run(op, reread_fn, &rr, MGR_RUN_READ);
	if (err)
		return err;
	*in = rr.in;
	if (!uncertain(in))
		return in->flags & MGR_IF_TRIM ? 1 : 0;
	if (in->trunc_gen != gen)
		return 1;
	if (!g->complete) {
		*ret_flags |= PVFS_AF_SIZE_UNKNOWN;
		mgr_size_fold(op, in);
		if (account(in, g->end, &g->wtime))
			in->version = max(in->version + 1, version);
		return 0;
	}
	learn(op, in, g);
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	if (!v.writers && !mgr_in_grace(op->m)) {
		struct record r = { .g = g, .fid = rr.fid, .gen = gen, .settle = true };

		err = mgr_run(op, record_fn, &r, 0);
		if (!err) {
			*in = r.in;
			return 0;
		}
		/* A full disk or the like: the answer is good all the same, only not recorded. */
		if (err == -ERESTART || err == -ESTALE)
			return err;
	}
	fold_view(in, &v);
	if (account_glimpse(in, g))
		in->version = max(in->version + 1, version);
	return 0;
}

/*
 * Everything that needs no question. Return: 0 done, 1 ask the iods, or wait for a truncation. In
 * *@known how long the file is at least.
 */
static int attr_certain(struct mgr_op *op, struct mgr_inode *in, struct pvfs_attr *attr,
			u32 *ret_flags, u64 *known)
{
	struct mgr_opens_view v;

	*ret_flags = 0;
	*known = in->size;
	if (S_ISREG(in->mode) && (in->flags & (MGR_IF_UNCERTAIN | MGR_IF_TRIM))) {
		mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
		if (v.others)
			*ret_flags |= PVFS_AF_WRITERS;
		if (v.gen == in->trunc_gen)
			*known = max(*known, v.end);
		if ((in->flags & MGR_IF_TRIM) || !sole_writer(in, &v))
			return 1;
		fold_view(in, &v);
	}
	ns_attr(in, attr);
	attr->flags |= *ret_flags;
	return 0;
}

/*
 * @in is being cut, or was while its iods were asked: asks when that is over, and nobody cuts it
 * meanwhile. However often it is cut, this ends. An iod that is not there is not waited for.
 * Return: 0 with @in as it is now, or -errno.
 */
static int ask_uncut(struct mgr_op *op, struct mgr_inode *in, u32 *ret_flags)
{
	struct reread rr = { .fid = { .ino = in->ino, .gen = in->gen } };
	struct mgr_glimpse g = { .fid = rr.fid, .layout = in->layout };
	bool locked = !mgr_file_lock(op, in->ino, GLIMPSE_MS);
	struct pvfs_attr attr;
	int err;

	err = mgr_run(op, reread_fn, &rr, MGR_RUN_READ);
	if (err)
		goto out;
	*in = rr.in;
	if (!attr_certain(op, in, &attr, ret_flags, &g.known))
		goto out;
	err = 1;
	if (locked && !(in->flags & MGR_IF_TRIM)) {
		err = glimpse_still(op, &g, 1);
		err = err ?: after_glimpse(op, in, &g, ret_flags);
	}
	if (err == 1) {
		*ret_flags |= PVFS_AF_SIZE_UNKNOWN;
		err = 0;
	}
out:
	if (locked)
		mgr_opens_unlock(&op->m->opens, in->ino);
	return err;
}

int mgr_size_attr(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_wreport *report,
		  struct pvfs_attr *attr)
{
	struct mgr_glimpse g = { .fid = { .ino = in->ino, .gen = in->gen },
		.layout = in->layout };
	u32 flags = 0;
	int err = 1;

	if (report)
		mgr_opens_report(&op->m->opens, mgr_op_session(op), in->ino, report);
	if (!attr_certain(op, in, attr, &flags, &g.known))
		return 0;
	if (!op->can_block)
		return -EINPROGRESS;
	if (!(in->flags & MGR_IF_TRIM)) {
		err = glimpse_still(op, &g, 1);
		err = err ?: after_glimpse(op, in, &g, &flags);
	}
	if (err == 1)
		err = ask_uncut(op, in, &flags);
	if (err)
		return err;
	ns_attr(in, attr);
	attr->flags |= flags;
	return 0;
}

int mgr_size_attr_after(struct mgr_op *op, struct mgr_inode *in, struct pvfs_attr *attr)
{
	int err = mgr_size_attr(op, in, NULL, attr);

	return err == -ERESTART ? err : 0;
}

int mgr_size_attrs(struct mgr_op *op, struct mgr_inode *in, struct pvfs_attr *attrs, u32 n)
{
	struct mgr_glimpse *g = NULL;
	u32 i, k, asked = 0, *which = NULL, flags;
	u64 known;
	int err = 0;

	for (i = 0; i < n; i++) {
		if (!attr_certain(op, &in[i], &attrs[i], &flags, &known))
			continue;
		if (!op->can_block) {
			err = -EINPROGRESS;
			goto out;
		}
		if (!which) {
			which = malloc((n - i) * sizeof(*which));
			g = malloc((n - i) * sizeof(*g));
			if (!which || !g) {
				err = -ENOMEM;
				goto out;
			}
		}
		which[asked] = i;
		g[asked].fid.ino = in[i].ino;
		g[asked].fid.gen = in[i].gen;
		g[asked].known = known;
		g[asked++].layout = in[i].layout;
	}
	if (!asked)
		goto out;
	err = glimpse_still(op, g, asked);
	for (k = 0; k < asked && !err; k++) {
		i = which[k];
		attr_certain(op, &in[i], &attrs[i], &flags, &known);
		err = after_glimpse(op, &in[i], &g[k], &flags);
		if (err == 1) {
			err = mgr_size_attr(op, &in[i], NULL, &attrs[i]);
		} else if (!err) {
			ns_attr(&in[i], &attrs[i]);
			attrs[i].flags |= flags;
		}
		if (err == -ESTALE) {
			/* Unlinked since the directory was read: the caller leaves it out. */
			attrs[i].fid.ino = 0;
			err = 0;
		}
	}
out:
	free(which);
	free(g);
	return err;
}

int mgr_size_settle(struct mgr_op *op, const struct pvfs_fid *fid)
{
	struct reread rr = { .fid = *fid };
	struct record r = { .fid = *fid, .settle = true };
	struct mgr_opens_view v;
	struct mgr_glimpse g;
	int err;

	err = mgr_run(op, reread_fn, &rr, MGR_RUN_READ);
	if (err || !uncertain(&rr.in))
		return err;
	mgr_opens_view(&op->m->opens, fid->ino, mgr_op_session(op), &v);
	if (!v.last)
		return 0;
	if (!v.tracked || v.gen != rr.in.trunc_gen) {
		g = (struct mgr_glimpse){ .fid = *fid, .layout = rr.in.layout };
		err = mgr_glimpse(op, &g, 1);
		if (err || !g.complete)
			goto later;
		learn(op, &rr.in, &g);
	}
	/*
	 * Not flushed: if a power failure takes it, the file is uncertain and found out about after
	 * the start.
	 */
	err = mgr_run(op, record_fn, &r, 0);
	if (!err && !uncertain(&r.in))
		return 0;
later:
	mgr_settle_add(op->m, fid->ino);
	return err;
}

int mgr_size_record(struct mgr_op *op, const struct pvfs_fid *fid)
{
	struct record r = { .fid = *fid };
	struct reread rr = { .fid = *fid };
	int err;

	err = mgr_run(op, reread_fn, &rr, MGR_RUN_READ);
	if (err || !uncertain(&rr.in))
		return err;
	r.in = rr.in;
	mgr_size_fold(op, &r.in);
	if (r.in.size == rr.in.size && !pvfs_ts_after(&r.in.wtime, &rr.in.wtime))
		return 0;
	return mgr_run(op, record_fn, &r, 0);
}

/* ---- truncation ---- */

/* An iod that is full, or whose file system has no files so long: waiting does not help. */
static bool hopeless(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/*
 * @n datafiles are about to be cut: who writes them meanwhile waits. One that does not answer is
 * not held, and will be cut late anyway.
 */
static void hold_datafiles(struct mgr_op *op, struct mgr_iocall *calls, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		calls[i].op = PVFS_OP_HOLD;
		calls[i].hold_ms = TRIM_MS;
	}
	mgr_iods_call(op, calls, n, HOLD_MS);
	for (i = 0; i < n; i++)
		calls[i].op = PVFS_OP_TRIM;
}

/*
 * Has the datafiles end where a file of @in->size bytes ends. @old: the exact size it had, or
 * unknown when !@exact. @shared: for others it is to be one moment. Tries for TRIM_MS, or @once.
 */
static int trim_datafiles(struct mgr_op *op, const struct mgr_inode *in, bool exact, u64 old,
			  bool shared, bool once)
{
	struct mgr *m = op->m;
	u64 stop = once ? 0 : mgr_mono_ms() + TRIM_MS;
	u32 df, i, n = 0, left;
	struct mgr_iocall *calls;
	int err = 0;

	calls = calloc(in->layout.pcount, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	for (df = 0; df < in->layout.pcount; df++) {
		u64 want = pvfs_stripe_df_size(&in->layout, df, in->size);

		if (exact && old >= in->size && pvfs_stripe_df_size(&in->layout, df, old) == want)
			continue;	/* shrinking: it ends before the cut */
		if (exact && old < in->size && pvfs_stripe_file_size(&in->layout, df,
								     want) != in->size)
			continue;	/* growing: only the one that holds the last byte */
		calls[n].iod = pvfs_stripe_iod(&in->layout, df, m->niods);
		calls[n].op = PVFS_OP_TRIM;
		calls[n].fid.ino = in->ino;
		calls[n].fid.gen = in->gen;
		calls[n++].size = want;
	}
	if (shared && n > 1)
		hold_datafiles(op, calls, n);
	atomic_fetch_add_explicit(&m->count.trims, 1, memory_order_relaxed);
	for (left = n; left;) {
		mgr_iods_call(op, calls, left, TRIM_MS);
		for (i = n = 0; i < left; i++)
			if (calls[i].err) {
				err = calls[i].err;
				calls[n++] = calls[i];
			}
		left = n;
		if (!left || hopeless(err) || mgr_mono_ms() >= stop)
			break;
		mgr_pause(op, TRIM_PAUSE_MS);
	}
	free(calls);
	return left ? err : 0;
}

static int trim_record_put(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_trim_rec t = { .gen = in->gen, .trunc_gen = in->trunc_gen, .size = in->size };
	struct mgr_trim_disk d;
	u8 key[MGR_INO_KEY];
	u32 n = mgr_trim_encode(&t, &d);

	mgr_ino_key(key, in->ino);
	return mdb_put(op->m->db, op->txn, MDB_TRIM, key, sizeof(key), &d, n);
}

/*
 * The new size, and with it the space: growing takes none, and what a cut frees of a file with
 * holes has to be asked for. Return: both are certain.
 */
static bool set_size(struct mgr_inode *in, u64 size, bool exact)
{
	u64 blocks = ns_blocks(in), old = in->size;
	bool sparse = in->flags & MGR_IF_SPARSE;

	in->size = size;
	if (!size || (exact && !sparse && size <= old)) {
		in->flags &= ~MGR_IF_SPARSE;
		in->blocks = 0;
		return true;
	}
	if (exact && size > old) {
		set_blocks(in, blocks);
		return true;
	}
	in->flags |= MGR_IF_UNCERTAIN;
	return false;
}

/* Can a STUFFED file stay so when it is made @size bytes long? Blocks that are added are holes. */
static bool cut_fits(const struct mgr_inode *in, u64 size)
{
	return size <= in->size || (size <= in->layout.stuff_max && in->size &&
				    (size - 1) / 4096 == (in->size - 1) / 4096);
}

/* First transaction: the new size, and a note that the datafiles have to follow. */
static int truncate_fn(struct mgr_op *op, void *arg)
{
	struct mgr_truncate *t = arg;
	struct mgr_inode *in = &t->in;
	struct mgr_opens_view v;
	int err;

	err = ns_fid_get(op, &t->fid, MDB_RMW, in);
	if (err)
		return err;
	if (!S_ISREG(in->mode))
		return S_ISDIR(in->mode) ? -EISDIR : -EINVAL;
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	t->exact = !(in->flags & (MGR_IF_UNCERTAIN | MGR_IF_TRIM)) ||
		   (!(in->flags & MGR_IF_TRIM) && sole_writer(in, &v));
	t->shared = v.others;
	fold_view(in, &v);
	t->old_mtime = in->mtime;
	t->old_ctime = in->ctime;
	ns_touch_mtime(op, in);
	err = t->change(op, in, t->arg);
	if (err)
		return err;
	t->old_size = in->size;
	if (in->flags & MGR_IF_STUFFED) {
		if ((in->flags & MGR_IF_SPILL) || !cut_fits(in, t->size))
			return -EREMCHG;
		t->need_trim = false;
		/* Who remembers how long it was at least is told that it is not. */
		in->trunc_gen += t->size < in->size;
		err = mgr_head_change(op, in, t->size, NULL, 0, 0);
		if (err)
			return err;
		t->finish(op, in, t->arg);
		op->final = true;
		return ns_inode_put(op, in);
	}
	/* A file that takes other space than its size says may have some behind its end. */
	if ((in->flags & MGR_IF_SPARSE) && t->size <= in->size)
		t->exact = false;
	t->need_trim = !t->exact || in->size != t->size;
	if (t->need_trim) {
		bool certain = set_size(in, t->size, t->exact);

		in->trunc_gen++;
		in->flags |= MGR_IF_TRIM;
		/*
		 * The end is exactly known from here on, whoever writes: reports of writes from
		 * before name the old generation, and send us to the iods.
		 */
		mgr_opens_reset(&op->m->opens, in, certain);
		err = trim_record_put(op, in);
		if (err)
			return err;
	} else {
		t->finish(op, in, t->arg);
		op->final = true;
	}
	return ns_inode_put(op, in);
}

/*
 * Last transaction: the datafiles have followed. @arg: struct mgr_truncate, whose finish may be
 * NULL.
 */
static int trimmed_fn(struct mgr_op *op, void *arg)
{
	struct mgr_truncate *t = arg;
	struct mgr_inode *in = &t->in;
	u8 key[MGR_INO_KEY];
	struct pvfs_ts now;
	int err;

	err = ns_inode_get(op, t->fid.ino, MDB_RMW, in);
	if (err)
		return err;
	in->flags &= ~MGR_IF_TRIM;
	/* The iods took the cut for a write; it is accounted for. */
	mgr_wall_now(&now);
	if (pvfs_ts_after(&now, &in->wtime))
		in->wtime = now;
	in->version = mgr_version_after(in->version);
	mgr_ino_key(key, in->ino);
	err = mdb_del(op->m->db, op->txn, MDB_TRIM, key, sizeof(key));
	if (err && err != -ENOENT)
		return err;
	if (t->finish) {
		t->finish(op, in, t->arg);
		op->final = true;
	}
	return put_unleased(op, in);
}

/* A growth that an iod cannot follow is taken back. What others wrote meanwhile, the iods know. */
static int untruncate_fn(struct mgr_op *op, void *arg)
{
	struct mgr_truncate *t = arg;
	struct mgr_inode *in = &t->in;
	u8 key[MGR_INO_KEY];
	int err;

	err = ns_inode_get(op, t->fid.ino, MDB_RMW, in);
	if (err)
		return err;
	in->flags = (in->flags & ~MGR_IF_TRIM) | MGR_IF_UNCERTAIN;
	in->size = min(t->old_size, in->size);
	in->mtime = t->old_mtime;
	in->ctime = t->old_ctime;
	in->trunc_gen++;
	in->version = mgr_version_after(in->version);
	mgr_opens_reset(&op->m->opens, in, false);
	mgr_ino_key(key, in->ino);
	err = mdb_del(op->m->db, op->txn, MDB_TRIM, key, sizeof(key));
	if (err && err != -ENOENT)
		return err;
	return put_unleased(op, in);
}

int mgr_truncate(struct mgr_op *op, struct mgr_truncate *t)
{
	int err;

	err = mgr_file_lock(op, t->fid.ino, TRIM_MS);
	if (err)
		return err;
	/* Who appends has asked where the end is, and is about to write there. */
	err = mgr_locks_truncate_begin(&op->m->locks, op->s, &t->fid);
	if (err)
		goto unlock_opens;
	err = mgr_run(op, truncate_fn, t, MGR_RUN_SYNC);
	if (err == -EREMCHG) {
		err = mgr_unstuff(op, &t->fid, &t->in);
		err = err ?: mgr_run(op, truncate_fn, t, MGR_RUN_SYNC);
	}
	if (err || !t->need_trim)
		goto unlock;
	/* Nothing is cut before it is certain that the cut will be finished. */
	err = mgr_log_wait(op);
	if (err)
		goto unlock;
	err = trim_datafiles(op, &t->in, t->exact, t->old_size, t->shared, false);
	if (err) {
		pvfs_log_limited(PVFS_LOG_WARNING, "truncate of inode %llu: an iod %s: %s",
				 (unsigned long long)t->fid.ino, hopeless(err) ? "refuses" :
				 "is waited for",
				 strerror(-err));
		if (hopeless(err)) {
			int err2 = mgr_run(op, untruncate_fn, t, MGR_RUN_SYNC);

			mgr_settle_add(op->m, t->fid.ino);
			err = err2 ? err2 : err;
		} else {
			mgr_reap_kick(op->m);
			err = -EAGAIN;
		}
		goto unlock;
	}
	err = mgr_run(op, trimmed_fn, t, MGR_RUN_SYNC);
unlock:
	mgr_locks_truncate_end(&op->m->locks, op->s, &t->fid);
unlock_opens:
	mgr_opens_unlock(&op->m->opens, t->fid.ino);
	return err;
}

static int trim_look_fn(struct mgr_op *op, void *arg)
{
	struct mgr_truncate *t = arg;

	return ns_inode_get(op, t->fid.ino, 0, &t->in);
}

int mgr_trim_finish(struct mgr_op *op, u64 ino)
{
	struct mgr_truncate t = { .fid = { .ino = ino } };
	int err;

	err = mgr_file_lock(op, ino, TRIM_MS);
	if (err)
		return err;
	err = mgr_run(op, trim_look_fn, &t, MGR_RUN_READ);
	if (err || !(t.in.flags & MGR_IF_TRIM))
		goto unlock;
	t.fid.gen = t.in.gen;
	/* Removal takes the datafiles altogether. */
	if (!(t.in.flags & MGR_IF_REAP))
		err = trim_datafiles(op, &t.in, false, 0, true, true);
	if (!err)
		err = mgr_run(op, trimmed_fn, &t, 0);
unlock:
	mgr_opens_unlock(&op->m->opens, ino);
	return err;
}
