// SPDX-License-Identifier: LGPL-2.1
/*
 * list.c - many places of a file in one call: pvfs_read_list() and its like.
 *
 * What the caller names becomes runs (common/runs.h): pieces that touch are one block, pieces of
 * equal length and distance are one run, runs that repeat are another dimension of it. So a list
 * that enumerates a regular pattern is described on the wire all the same.
 *
 * The stream of these runs is cut into windows. A window is one request at most to each I/O daemon,
 * as much as fits; each request has the runs that have something for its daemon, which finds its
 * part by itself. Two windows are under way at once, but for writes that may overlap: what comes
 * later in the list is to win, and one daemon does one request from its first block to its last.
 *
 * Nothing is copied here unless pieces are so many and small that copying is cheaper.
 */
#include "lib.h"
#include "../common/runs.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#define DEPTH		2u	/* windows under way */
#define FEW_IOV		1024u	/* more pieces of memory than these are copied */
#define NAP_MS		4u	/* before a daemon that had no memory is asked again */

/* ---------------------------------------------------------------- what the caller names */

/* Where runs come from: pieces, or patterns. */
struct source {
	const struct pvfs_piece *pieces;
	const struct pvfs_pattern *patterns;
	size_t n, next;
	/* what was looked at already; len 0: nothing */
	struct pvfs_piece piece;	/* pieces that touch, so far */
	struct pvfs_piece block;
	struct pvfs_run run;
};

/* What there is in it. */
struct extent {
	u64 bytes;		/* of the stream */
	u64 start, end;		/* in the file */
	bool one;		/* block */
	bool ascends;		/* without overlap */
};

/* The next block of a list, to be taken by making its len 0: pieces, those that touch merged. */
static bool look_at_block(struct source *s)
{
	const struct pvfs_piece *p;

	while (!s->block.len && s->next < s->n) {
		p = &s->pieces[s->next++];
		if (!p->len)
			continue;
		if (s->piece.len && s->piece.off + (off_t)s->piece.len == p->off) {
			s->piece.len += p->len;
			continue;
		}
		s->block = s->piece;
		s->piece = *p;
	}
	if (!s->block.len) {
		s->block = s->piece;
		s->piece.len = 0;
	}
	return s->block.len;
}

/* May @off be where dimension @i goes on? It begins with its second block. */
static bool goes_on(struct pvfs_run *r, u32 i, u64 off)
{
	if (r->dim[i].count == 1 && off > r->off)
		r->dim[i].stride = off - r->off;
	else if (off != r->off + r->dim[i].count * r->dim[i].stride ||
		 r->dim[i].count == 1 || r->dim[i].count == UINT32_MAX)
		return false;
	r->dim[i].count++;
	return true;
}

/* The next row of a list, likewise: blocks of equal length and distance. A dimension, or none. */
static bool look_at_row(struct source *s)
{
	struct pvfs_run *r = &s->run;

	if (r->len || !look_at_block(s))
		return r->len;
	*r = (struct pvfs_run){ .off = s->block.off, .len = s->block.len, .dim[0].count = 1 };
	do {
		s->block.len = 0;
	} while (look_at_block(s) && s->block.len == r->len && goes_on(r, 0, s->block.off));
	r->ndims = r->dim[0].count > 1;
	return true;
}

/* The next run of a list: rows that repeat. */
static bool next_of_list(struct source *s, struct pvfs_run *ret)
{
	struct pvfs_run row;

	if (!look_at_row(s))
		return false;
	row = s->run;
	*ret = row;
	ret->dim[1] = row.dim[0];
	ret->dim[0].count = 1;
	do {
		s->run.len = 0;
	} while (row.ndims && look_at_row(s) && s->run.len == row.len &&
		 s->run.dim[0].count == row.dim[0].count &&
		 s->run.dim[0].stride == row.dim[0].stride && goes_on(ret, 0, s->run.off));
	if (ret->dim[0].count > 1)
		ret->ndims = 2;
	else
		*ret = row;
	return true;
}

/* Return: 0; 1: it has nothing; -EINVAL. */
static int run_of_pattern(const struct pvfs_pattern *p, struct pvfs_run *ret)
{
	u32 i;

	*ret = (struct pvfs_run){ .off = p->off, .len = p->len, .ndims = p->ndims };
	if (p->off < 0 || p->ndims > PVFS_DIMS_MAX)
		return -EINVAL;
	for (i = 0; i < p->ndims; i++) {
		if (p->dim[i].stride < 0)
			return -EINVAL;
		if (!p->dim[i].count)
			return 1;
		ret->dim[i].count = p->dim[i].count;
		ret->dim[i].stride = p->dim[i].stride;
	}
	return !p->len;
}

static bool next_run(struct source *s, struct pvfs_run *ret)
{
	if (s->pieces)
		return next_of_list(s, ret);
	while (s->next < s->n)
		if (!run_of_pattern(&s->patterns[s->next++], ret))
			return true;
	return false;
}

/* A source from its start. */
static struct source again(const struct source *s)
{
	return (struct source){ .pieces = s->pieces, .patterns = s->patterns, .n = s->n };
}

static int measure(const struct source *from, struct extent *ret)
{
	struct source s = again(from);
	u64 bytes, end, inner;
	struct pvfs_run r;
	size_t i;

	*ret = (struct extent){ .start = UINT64_MAX, .one = true, .ascends = true };
	/* Before they are merged: a sum must not hide what is not sound. */
	for (i = 0; s.pieces && i < s.n; i++)
		if (s.pieces[i].off < 0 || s.pieces[i].len > PVFS_FILE_MAX - (u64)s.pieces[i].off)
			return -EINVAL;
	for (i = 0; s.patterns && i < s.n; i++)
		if (run_of_pattern(&s.patterns[i], &r) < 0)
			return -EINVAL;
	while (next_run(&s, &r)) {
		if (pvfs_run_check(&r, &bytes, &end) || ret->bytes + bytes > SSIZE_MAX)
			return -EINVAL;
		ret->one = ret->one && !ret->bytes && bytes == r.len;
		ret->ascends = ret->ascends && r.off >= ret->end;
		for (i = r.ndims, inner = r.len; i--; inner += (r.dim[i].count - 1) * r.dim[i].stride)
			ret->ascends = ret->ascends && (r.dim[i].stride >= inner || r.dim[i].count == 1);
		ret->bytes += bytes;
		ret->start = min(ret->start, r.off);
		ret->end = max(ret->end, end);
	}
	return 0;
}

/* How much of the stream is below @size: a read ends where the first block that crosses it does. */
static u64 below(const struct source *from, u64 size)
{
	struct source s = again(from);
	struct pvfs_run_at at;
	u64 bytes, end, sum = 0, n;
	struct pvfs_run r;
	bool more;

	while (next_run(&s, &r)) {
		pvfs_run_check(&r, &bytes, &end);
		if (end <= size) {
			sum += bytes;
			continue;
		}
		pvfs_run_seek(&at, &r, 0);
		do {
			n = at.off < size ? min(r.len, size - at.off) : 0;
			sum += n;
			if (n < r.len)
				return sum;
			more = pvfs_run_advance(&at, n);
		} while (more);
	}
	return sum;
}

/* ---------------------------------------------------------------- requests */

/* A window's request to one I/O daemon. */
struct msg {
	struct pvfs_rpc rpc;
	bool used;
	u64 at;			/* of the job's stream: where its first byte is */
	u64 first, len;		/* of its own runs' stream */
	u64 bytes, max;		/* in the datafile */
	u64 end;		/* in the file, behind its last */
	u64 row;		/* the latest of its runs, by number */
	u8 runs[PVFS_RUNS_MAX];
	u32 runs_len;
	struct iovec *iov;
	u32 niov, room;
	struct iovec copy;	/* of the bytes, in place of @iov; or iov_base is NULL */
	u8 body[PVFS_BODY_MAX], rep[64];
};

struct window {
	struct pvfs_rpc_set set;
	struct msg **msgs;	/* by datafile; made when needed */
	bool busy;
};

struct list_job {
	struct pvfs_file *f;
	bool write;
	struct memory mem;
	struct source from;
	u64 limit;		/* so much of the stream */
	bool ascends;
	struct pvfs_layout layout;
	struct pvfs_cap cap;
	struct window win[DEPTH];

	/* where the next window begins */
	struct source s;
	struct pvfs_run run;
	struct pvfs_run_at in;
	bool have_run;
	u64 row;		/* number of the run, counted in each window anew */
	u64 run_at;		/* where it began, in the stream */
	u64 at;

	/* result */
	bool is_short;
	int err;		/* of the failure that is first in the stream */
	u64 bad;		/* where that is */
	u64 end;		/* write: in the file, behind what was taken */
	struct pvfs_ts wtime;
};

static void job_fail(struct list_job *j, u64 at, int err)
{
	if (!j->err || at < j->bad) {
		j->err = err;
		j->bad = at;
	}
}

static struct fs_iod *iod_of(const struct list_job *j, u32 df)
{
	return &j->f->fs->iods[pvfs_stripe_iod(&j->layout, df, j->f->fs->niods)];
}

static int iov_grow(struct msg *m)
{
	u32 room = m->room ? m->room * 2 : 64;
	struct iovec *iov = realloc(m->iov, room * sizeof(*iov));

	if (!iov)
		return -ENOMEM;
	m->iov = iov;
	m->room = room;
	return 0;
}

/*
 * The window's request to datafile @df, with room for a piece of memory. Return: 0, -ENOMEM, or what
 * there is to say of its daemon, which is asked here for the first time when it was never needed.
 */
static int msg_get(struct list_job *j, struct window *w, u32 df, struct msg **ret)
{
	struct msg *m = w->msgs[df];
	int err;

	if (!m) {
		m = w->msgs[df] = malloc(sizeof(*m));
		if (!m)
			return -ENOMEM;
		m->iov = NULL;
		m->room = 0;
		m->used = false;
	}
	*ret = m;
	if (!m->used) {
		err = lib_fs_iods_ready(j->f->fs, &iod_of(j, df)->index, 1);
		if (err)
			return err;
		m->used = true;
		m->copy.iov_base = NULL;
		m->at = j->at;
		m->max = min(atomic_load(&iod_of(j, df)->payload_max), PVFS_PAYLOAD_MAX);
		m->bytes = m->len = m->end = m->row = 0;
		m->runs_len = m->niov = 0;
	}
	return m->niov < m->room ? 0 : iov_grow(m);
}

static bool msg_full(const struct msg *m)
{
	return m->bytes == m->max || m->niov >= PVFS_BLOCKS_MAX ||
	       m->runs_len + PVFS_RUN_BYTES_MAX > PVFS_RUNS_MAX;
}

/* It has something of the run, which the window has from @from on. */
static void msg_name_run(const struct list_job *j, struct msg *m, u64 from)
{
	struct pvfs_wire wire;

	if (m->row == j->row)
		return;
	if (!m->runs_len)
		m->first = from - j->run_at;
	pvfs_wire_init(&wire, m->runs + m->runs_len, PVFS_RUNS_MAX - m->runs_len);
	pvfs_put_run(&wire, &j->run);
	m->runs_len = wire.p - m->runs;
	m->row = j->row;
}

/* The window has the run from @from to here: those that name it are told how much that is. */
static void run_over(struct list_job *j, struct window *w, u64 from)
{
	u32 df;

	for (df = 0; df < j->layout.pcount; df++)
		if (w->msgs[df] && w->msgs[df]->used && w->msgs[df]->row == j->row)
			w->msgs[df]->len += j->at - from;
}

/*
 * As much as one request to each daemon may be. Return: 0; or -errno, with a window that ends before.
 */
static int window_fill(struct list_job *j, struct window *w)
{
	u64 from = j->at, off, got;
	struct pvfs_extent e;
	u32 blocks = 0;
	struct msg *m;
	int err = 0;

	for (j->row = 1; j->at < j->limit; ) {
		if (!j->have_run) {
			if (!next_run(&j->s, &j->run))
				break;
			pvfs_run_seek(&j->in, &j->run, 0);
			j->have_run = true;
			j->run_at = from = j->at;
			j->row++;
		}
		off = pvfs_run_off(&j->in);
		pvfs_stripe_map(&j->layout, off, min(pvfs_run_left(&j->in), j->limit - j->at), &e);
		err = msg_get(j, w, e.df, &m);
		if (err || msg_full(m))
			break;
		msg_name_run(j, m, from);
		m->niov += lib_mem_slice(&j->mem, j->at, min(e.len, m->max - m->bytes),
					 m->iov + m->niov, m->room - m->niov, &got);
		m->bytes += got;
		m->end = max(m->end, off + got);
		j->at += got;
		if (!pvfs_run_advance(&j->in, got)) {
			run_over(j, w, from);
			j->have_run = false;
		}
		/* Each step is of one block: there are not more of these. */
		if (++blocks == PVFS_BLOCKS_MAX)
			break;
	}
	if (j->have_run)
		run_over(j, w, from);
	return err;
}

/* Between the memory and the copy of it. */
static void copy(const struct msg *m, bool out)
{
	u8 *p = m->copy.iov_base;
	u32 i;

	for (i = 0; i < m->niov; p += m->iov[i++].iov_len) {
		if (out)
			memcpy(p, m->iov[i].iov_base, m->iov[i].iov_len);
		else
			memcpy(m->iov[i].iov_base, p, m->iov[i].iov_len);
	}
}

static int msg_send(struct list_job *j, struct window *w, u32 df)
{
	struct msg *m = w->msgs[df];
	struct pvfs_str runs = { .p = m->runs, .len = m->runs_len };
	struct iovec *iov = m->iov;
	int n = m->niov, len;

	if (m->niov > FEW_IOV) {
		m->copy = (struct iovec){ .iov_base = malloc(m->bytes), .iov_len = m->bytes };
		if (!m->copy.iov_base)
			return -ENOMEM;
		if (j->write)
			copy(m, true);
		iov = &m->copy;
		n = 1;
	}
	m->rpc = (struct pvfs_rpc){
		.op = j->write ? PVFS_OP_WRITE_LIST : PVFS_OP_READ_LIST, .body = m->body,
		.rep = m->rep, .rep_room = sizeof(m->rep),
		.timeout_ms = j->f->fs->soft ? (int)j->f->fs->timeo_ms : 0,
	};
	if (j->write) {
		struct pvfs_write_list_req req = {
			.fid = j->f->inode->fid, .df = df, .pcount = j->layout.pcount,
			.ssize = j->layout.ssize, .first = m->first, .len = m->len,
			.cap = j->cap, .runs = runs,
		};

		len = pvfs_write_list_req_encode(&req, m->body, sizeof(m->body));
		m->rpc.out = iov;
		m->rpc.nout = n;
	} else {
		struct pvfs_read_list_req req = {
			.fid = j->f->inode->fid, .df = df, .pcount = j->layout.pcount,
			.ssize = j->layout.ssize, .first = m->first, .len = m->len,
			.cap = j->cap, .runs = runs,
		};

		len = pvfs_read_list_req_encode(&req, m->body, sizeof(m->body));
		m->rpc.in = iov;
		m->rpc.nin = n;
	}
	if (len < 0)
		return len;
	m->rpc.body_len = len;
	pvfs_rpc_set_submit(&w->set, iod_of(j, df)->peer, &m->rpc);
	return 0;
}

static void msg_end(struct msg *m)
{
	free(m->copy.iov_base);
	m->copy.iov_base = NULL;
	m->used = false;
}

static void window_send(struct list_job *j, struct window *w)
{
	u32 df;
	int err;

	w->set = (struct pvfs_rpc_set)PVFS_RPC_SET;
	w->busy = true;
	for (df = 0; df < j->layout.pcount; df++) {
		struct msg *m = w->msgs[df];

		if (!m || !m->used)
			continue;
		err = m->bytes ? msg_send(j, w, df) : 0;
		if (err)
			job_fail(j, m->at, err);
		if (err || !m->bytes)
			msg_end(m);
	}
}

static void read_done(struct list_job *j, struct msg *m, const struct pvfs_read_list_rep *rep)
{
	if (m->copy.iov_base) {
		memset((u8 *)m->copy.iov_base + m->rpc.in_len, 0, m->bytes - m->rpc.in_len);
		copy(m, false);
	} else {
		lib_mem_zero(m->iov, m->niov, m->rpc.in_len);
	}
	j->is_short = j->is_short || rep->beyond || m->rpc.in_len < m->bytes;
}

static void msg_finish(struct list_job *j, u32 df, struct msg *m)
{
	struct pvfs_write_list_rep w;
	struct pvfs_read_list_rep r;
	int err = lib_fs_rpc_error(j->f->fs, m->rpc.err);

	if (!err && j->write)
		err = pvfs_write_list_rep_decode(&w, m->rep, m->rpc.rep_len);
	else if (!err)
		err = pvfs_read_list_rep_decode(&r, m->rep, m->rpc.rep_len);
	if (err) {
		job_fail(j, m->at, err);
	} else if (j->write) {
		lib_inode_verify(j->f->inode, df, w.verifier, 0);
		j->end = max(j->end, m->end);
		if (pvfs_ts_after(&w.wtime, &j->wtime))
			j->wtime = w.wtime;
	} else {
		read_done(j, m, &r);
	}
	msg_end(m);
}

/*
 * Those that had no memory for a reply are asked again; of a soft mount, for as long as a server may
 * be away. Return: somebody was.
 */
static bool window_again(struct list_job *j, struct window *w, u32 tries)
{
	bool some = false;
	u32 df;

	if (j->f->fs->soft && tries * NAP_MS > j->f->fs->timeo_ms)
		return false;
	for (df = 0; df < j->layout.pcount; df++) {
		struct msg *m = w->msgs[df];

		if (!m || !m->used || m->rpc.err != -EAGAIN)
			continue;
		if (!some) {
			usleep(NAP_MS * 1000);
			w->set = (struct pvfs_rpc_set)PVFS_RPC_SET;
		}
		some = true;
		pvfs_rpc_set_submit(&w->set, iod_of(j, df)->peer, &m->rpc);
	}
	return some;
}

static void window_wait(struct list_job *j, struct window *w)
{
	u32 df, tries = 0;

	if (!w->busy)
		return;
	do {
		pvfs_rpc_set_wait(&w->set);
	} while (window_again(j, w, tries++));
	for (df = 0; df < j->layout.pcount; df++)
		if (w->msgs[df] && w->msgs[df]->used)
			msg_finish(j, df, w->msgs[df]);
	w->busy = false;
}

static void windows_free(struct list_job *j)
{
	u32 i, df;

	for (i = 0; i < DEPTH; i++) {
		for (df = 0; j->win[i].msgs && df < j->layout.pcount; df++) {
			if (j->win[i].msgs[df])
				free(j->win[i].msgs[df]->iov);
			free(j->win[i].msgs[df]);
		}
		free(j->win[i].msgs);
		j->win[i].msgs = NULL;
	}
}

/* Return: bytes from the start of the stream that were moved, or -errno when there are none. */
static ssize_t job_run(struct list_job *j)
{
	u32 depth = j->write && !j->ascends ? 1 : DEPTH, i;
	struct window *w;
	int err = 0;

	j->s = again(&j->from);
	j->at = j->bad = 0;
	j->err = 0;
	j->is_short = j->have_run = false;
	for (i = 0; i < DEPTH; i++) {
		j->win[i].msgs = calloc(j->layout.pcount, sizeof(*j->win[i].msgs));
		if (!j->win[i].msgs)
			err = -ENOMEM;
	}
	for (i = 0; !err && !j->err && j->at < j->limit; i++) {
		u64 at = j->at;

		w = &j->win[i % depth];
		window_wait(j, w);
		err = window_fill(j, w);
		if (!err && j->at == at)
			err = -EINVAL;	/* the list was changed under our feet */
		if (err)
			job_fail(j, j->at, err);
		window_send(j, w);
	}
	for (i = 0; i < DEPTH; i++)
		window_wait(j, &j->win[i]);
	windows_free(j);
	if (err && !j->err)
		return err;
	if (!j->err)
		return j->limit;
	return j->bad ? (ssize_t)j->bad : j->err;
}

/* job_run(); and once more when the capability was an old session's. */
static ssize_t job_run_cap(struct list_job *j)
{
	u32 generation = lib_file_cap(j->f, &j->cap);
	ssize_t rc = job_run(j);

	if (lib_session_refused(j->f->fs, rc, generation) &&
	    lib_file_cap(j->f, &j->cap) != generation)
		rc = job_run(j);
	return rc;
}

/* ---------------------------------------------------------------- reading */

/* From a file that is stuffed. Return: as lib_head_read(). */
static ssize_t read_head(struct list_job *j)
{
	u8 *head = malloc(PVFS_STUFF_MAX);
	struct iovec iov = { .iov_base = head, .iov_len = PVFS_STUFF_MAX }, to[16];
	struct source s = again(&j->from);
	u64 at = 0, n, got;
	struct pvfs_run_at in;
	struct pvfs_run r;
	ssize_t size;
	bool more;
	u32 i, k;

	if (!head)
		return -ENOMEM;
	size = lib_head_read(j->f, &iov, 1, 0);
	if (size < 0)
		goto out;
	j->limit = below(&j->from, size);
	while (at < j->limit && next_run(&s, &r)) {
		pvfs_run_seek(&in, &r, 0);
		do {
			n = min(pvfs_run_left(&in), j->limit - at);
			k = lib_mem_slice(&j->mem, at, n, to, ARRAY_SIZE(to), &got);
			for (i = 0, n = pvfs_run_off(&in); i < k; n += to[i++].iov_len)
				memcpy(to[i].iov_base, head + n, to[i].iov_len);
			at += got;
			more = pvfs_run_advance(&in, got);
		} while (more && at < j->limit);
	}
	size = at;
out:
	free(head);
	return size;
}

static ssize_t do_read(struct list_job *j, const struct extent *x)
{
	struct inode *ino = j->f->inode;
	struct pvfs_attr attr;
	ssize_t rc = 0;
	u64 size;
	u32 gen;
	int err;

	if (lib_head_is(ino)) {
		rc = read_head(j);
		if (rc != -EREMCHG)
			return rc;
	}
	for (;;) {
		gen = lib_size_known(ino, &size, &j->layout);
		if (x->end > size) {
			err = lib_attr_get(j->f->fs, &ino->fid, ino, &attr);
			if (err)
				return err;
			gen = lib_size_known(ino, &size, &j->layout);
		}
		j->limit = x->end > size ? below(&j->from, size) : x->bytes;
		if (!j->limit)
			return 0;
		rc = job_run_cap(j);
		if (rc <= 0 || !j->is_short)
			return rc;
		/* As pvfs_preadv(): were these zeros in the file when the daemon was asked? */
		err = lib_attr_get(j->f->fs, &ino->fid, ino, &attr);
		if (err)
			return err;
		if (lib_size_known(ino, &size, &j->layout) == gen)
			return rc;
	}
}

/* ---------------------------------------------------------------- writing */

static ssize_t do_write(struct list_job *j, const struct extent *x)
{
	struct inode *ino = j->f->inode;
	struct pvfs_layout unused;
	u32 trunc_gen = 0;
	u64 size;
	ssize_t rc;
	bool hole;

	rc = lib_write_prepare(j->f, &j->layout, &trunc_gen);
	if (rc)
		return rc;
	lib_size_known(ino, &size, &unused);
	hole = x->end > size && (!x->one || lib_inode_leaves_hole(ino, x->start));
	j->limit = x->bytes;
	rc = job_run_cap(j);
	/* As after any write: what only the daemons know is asked of them. */
	if (j->err)
		lib_inode_wrote(ino, max(j->end, (u64)1), &j->wtime, PVFS_GEN_ASK);
	else if (j->end)
		lib_inode_wrote(ino, j->end, &j->wtime, hole ? PVFS_GEN_ASK : trunc_gen);
	return rc > 0 ? lib_write_sync(j->f) ?: rc : rc;
}

/* ---------------------------------------------------------------- the calls */

static ssize_t list_io(struct pvfs_file *f, bool write, const struct iovec *mem, size_t nmem,
		       const struct source *from)
{
	struct list_job j = { .f = f, .write = write, .from = *from };
	ssize_t rc = lib_fs_check(f->fs);
	struct extent x;
	u64 len;

	if (rc)
		return rc;
	if (!(f->rights & (write ? PVFS_CAP_WRITE : PVFS_CAP_READ)))
		return -EBADF;
	rc = measure(from, &x);
	rc = rc ?: lib_mem_init(&j.mem, mem, nmem, &len);
	if (rc)
		return rc;
	j.ascends = x.ascends;
	if (len != x.bytes || (write && (f->flags & O_APPEND)))
		rc = -EINVAL;
	else if (!len)
		rc = 0;
	else if (x.one && nmem <= IOV_MAX)
		rc = write ? pvfs_pwritev(f, mem, nmem, x.start) : pvfs_preadv(f, mem, nmem, x.start);
	else if (write)
		rc = do_write(&j, &x);
	else if ((rc = do_read(&j, &x)) >= 0)
		lib_inode_accessed(f->inode);
	lib_mem_free(&j.mem);
	return rc;
}

ssize_t pvfs_read_list(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
		       const struct pvfs_piece *file, size_t nfile)
{
	struct source s = { .pieces = file, .n = file ? nfile : 0 };

	return list_io(f, false, mem, nmem, &s);
}

ssize_t pvfs_write_list(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			const struct pvfs_piece *file, size_t nfile)
{
	struct source s = { .pieces = file, .n = file ? nfile : 0 };

	return list_io(f, true, mem, nmem, &s);
}

ssize_t pvfs_read_pattern(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			  const struct pvfs_pattern *file, size_t nfile)
{
	struct source s = { .patterns = file, .n = file ? nfile : 0 };

	return list_io(f, false, mem, nmem, &s);
}

ssize_t pvfs_write_pattern(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			   const struct pvfs_pattern *file, size_t nfile)
{
	struct source s = { .patterns = file, .n = file ? nfile : 0 };

	return list_io(f, true, mem, nmem, &s);
}
