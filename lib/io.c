// SPDX-License-Identifier: LGPL-2.1
/*
 * io.c - the bytes of files: one range of a file becomes one request per I/O daemon and io_max
 * bytes, all at once.
 *
 * A datafile's share of a range is contiguous there, whatever the stripe unit: a request names one
 * run of the datafile and gathers (or scatters) the user's memory, stripe unit by stripe unit.
 * Nothing is copied here.
 *
 * Reads: below the size we know of, the mgr is not asked. A reply shorter than asked means a hole,
 * or that someone has truncated the file: the mgr is asked afterwards, and if so all is read again.
 */
#include "lib.h"
#include "../common/acl.h"
#include <fcntl.h>
#include <stdlib.h>

#define PER_IOD		4u	/* requests of one call that one iod has at once */
#define WINDOW		128u	/* requests of one call in flight */
#define PIECE_IOV	1024u	/* memory pieces of one request */
#define INLINE_IOV	20u	/* that need no allocation: 1 MiB in units of 64 KiB fit */

struct io_job;

/* One request. */
struct piece {
	struct io_job *job;
	struct piece *next;	/* free or done */
	struct pvfs_rpc rpc;
	u32 df;
	u64 off;		/* in the datafile */
	u32 len;
	struct iovec *iov;
	u32 room;
	struct iovec inline_iov[INLINE_IOV];
	u8 body[128], rep[64];
};

/* One datafile's part that is not asked for yet. */
struct share {
	u64 off, left;
	u32 inflight;
};

/* One call. */
struct io_job {
	struct pvfs_fs *fs;
	struct inode *ino;
	bool write;
	bool append;			/* under the lock that keeps the end where it is */
	struct pvfs_layout layout;
	struct pvfs_cap cap;
	u64 off, len;		/* in the file */
	struct memory mem;
	struct share *shares;	/* pcount */
	u32 ndf, next_df;
	u32 inflight;
	struct piece *free;

	pthread_mutex_t lock;	/* protects done */
	pthread_cond_t cond;
	struct piece *done;

	/* result */
	bool is_short;		/* an iod had less than was asked for */
	int err;		/* of the failure that is first in the file */
	u64 bad;		/* where that is */
	u64 end;		/* write: of the bytes that were taken */
	struct pvfs_ts wtime;
};

/* ---------------------------------------------------------------- pieces */

static void piece_done(struct pvfs_rpc *rpc)
{
	struct piece *p = rpc->arg;
	struct io_job *j = p->job;

	pthread_mutex_lock(&j->lock);
	p->next = j->done;
	j->done = p;
	pthread_cond_signal(&j->cond);
	pthread_mutex_unlock(&j->lock);
}

/* The next piece of datafile @df: as much as one request to its iod may carry. */
static int piece_build(struct io_job *j, struct piece *p, u32 df)
{
	struct fs_iod *d = &j->fs->iods[pvfs_stripe_iod(&j->layout, df, j->fs->niods)];
	struct share *s = &j->shares[df];
	u32 max = min(atomic_load(&d->payload_max), PVFS_PAYLOAD_MAX), n = 0, want;
	u64 at, run, got, len = 0;
	int rc;

	max = min((u64)max, s->left);
	/* Units it touches, each of which may straddle pieces of the user's memory. */
	want = min(max / j->layout.ssize + 2 + (u32)j->mem.n, PIECE_IOV);
	if (want > p->room) {
		struct iovec *more = malloc(want * sizeof(*more));

		if (!more)
			return -ENOMEM;
		if (p->iov != p->inline_iov)
			free(p->iov);
		p->iov = more;
		p->room = want;
	}
	while (len < max && n < p->room) {
		at = pvfs_stripe_file_off(&j->layout, df, s->off + len) - j->off;
		run = max - len;
		if (j->layout.pcount > 1)
			run = min(run, j->layout.ssize - ((s->off + len) & (j->layout.ssize - 1)));
		n += lib_mem_slice(&j->mem, at, run, p->iov + n, p->room - n, &got);
		len += got;
		if (got < run)
			break;
	}
	p->df = df;
	p->off = s->off;
	p->len = len;
	p->rpc = (struct pvfs_rpc){ .op = j->write ? PVFS_OP_WRITE : PVFS_OP_READ,
				    .body = p->body,
				    .rep = p->rep,
				    .rep_room = sizeof(p->rep),
				    .done = piece_done,
				    .arg = p,
				    .timeout_ms = j->fs->soft ? (int)j->fs->timeo_ms : 0 };
	if (j->write) {
		struct pvfs_write_req req = { .fid = j->ino->fid, .off = p->off, .cap = j->cap };

		rc = pvfs_write_req_encode(&req, p->body, sizeof(p->body));
		p->rpc.out = p->iov;
		p->rpc.nout = n;
	} else {
		struct pvfs_read_req req = { .fid = j->ino->fid,
					     .off = p->off,
					     .len = len,
					     .cap = j->cap };

		rc = pvfs_read_req_encode(&req, p->body, sizeof(p->body));
		p->rpc.in = p->iov;
		p->rpc.nin = n;
	}
	if (rc < 0)
		return rc;
	p->rpc.body_len = rc;
	s->off += len;
	s->left -= len;
	return 0;
}

/* Remembers the failure that comes first in the file. */
static void job_fail(struct io_job *j, u32 df, u64 off, int err)
{
	u64 at = pvfs_stripe_file_off(&j->layout, df, off);

	if (!j->err || at < j->bad) {
		j->err = err;
		j->bad = at;
	}
}

/* A reply has come. */
static void piece_finish(struct io_job *j, struct piece *p)
{
	struct pvfs_write_rep w;
	struct pvfs_read_rep r;
	int err = lib_fs_rpc_error(j->fs, p->rpc.err);

	if (!err && j->write)
		err = pvfs_write_rep_decode(&w, p->rep, p->rpc.rep_len);
	else if (!err)
		err = pvfs_read_rep_decode(&r, p->rep, p->rpc.rep_len);
	if (err) {
		job_fail(j, p->df, p->off, err);
		return;
	}
	if (j->write) {
		lib_inode_verify(j->ino, p->df, w.verifier, 0);
		j->end = max(j->end,
			     pvfs_stripe_file_off(&j->layout, p->df, p->off + p->len - 1) + 1);
		if (pvfs_ts_after(&w.wtime, &j->wtime))
			j->wtime = w.wtime;
	} else if (p->rpc.in_len < p->len) {
		j->is_short = true;
		lib_mem_zero(p->iov, p->rpc.nin, p->rpc.in_len);
	}
}

/* ---------------------------------------------------------------- jobs */

/* The datafile to be served next: in turn, none with more than its part in flight. */
static int pick(struct io_job *j)
{
	u32 i, df;

	for (i = 0; i < j->layout.pcount; i++) {
		df = (j->next_df + i) % j->layout.pcount;
		if (j->shares[df].left && j->shares[df].inflight < PER_IOD) {
			j->next_df = df + 1;
			return df;
		}
	}
	return -1;
}

/* Waits for replies and takes them in. */
static void reap(struct io_job *j)
{
	struct piece *p, *all;

	pthread_mutex_lock(&j->lock);
	while (!j->done)
		pthread_cond_wait(&j->cond, &j->lock);
	all = j->done;
	j->done = NULL;
	pthread_mutex_unlock(&j->lock);
	while ((p = all) != NULL) {
		all = p->next;
		piece_finish(j, p);
		j->inflight--;
		j->shares[p->df].inflight--;
		p->next = j->free;
		j->free = p;
	}
}

static void job_go(struct io_job *j)
{
	struct piece *p;
	int df, err;
	u32 i;

	for (;;) {
		while (!j->err && j->free && (df = pick(j)) >= 0) {
			p = j->free;
			err = piece_build(j, p, df);
			if (err) {
				job_fail(j, df, j->shares[df].off, err);
				break;
			}
			j->free = p->next;
			j->inflight++;
			j->shares[df].inflight++;
			pvfs_peer_submit(j->fs->iods[pvfs_stripe_iod(&j->layout, df, j->fs->niods)]
						 .peer,
					 &p->rpc);
		}
		if (!j->inflight)
			break;
		reap(j);
	}
	/* What was never asked for is missing, too. */
	for (i = 0; j->err && i < j->layout.pcount; i++) {
		if (j->shares[i].left &&
		    pvfs_stripe_file_off(&j->layout, i, j->shares[i].off) < j->bad)
			job_fail(j, i, j->shares[i].off, j->err);
	}
}

/* The datafiles' shares, and the daemons that hold them ready to be asked. */
static int job_prepare(struct io_job *j)
{
	struct pvfs_extent e;
	u32 i, *iods;
	int err;

	j->shares = calloc(j->layout.pcount, sizeof(*j->shares));
	iods = malloc(j->layout.pcount * sizeof(*iods));
	if (!j->shares || !iods) {
		free(iods);
		return -ENOMEM;
	}
	j->ndf = 0;
	for (i = 0; i < j->layout.pcount; i++) {
		pvfs_stripe_share(&j->layout, i, j->off, j->len, &e);
		j->shares[i] = (struct share){ .off = e.off, .left = e.len };
		if (e.len)
			iods[j->ndf++] = pvfs_stripe_iod(&j->layout, i, j->fs->niods);
	}
	pvfs_stripe_map(&j->layout, j->off, j->len, &e);
	j->next_df = e.df;
	err = lib_fs_iods_ready(j->fs, iods, j->ndf);
	free(iods);
	return err;
}

/**
 * job_run - move j->len bytes at j->off
 * @j: fs, ino, write, layout, off, len, mem, cap are set
 *
 * Return: bytes from the start of the range that were moved, or -errno when there are none.
 */
static ssize_t job_run(struct io_job *j)
{
	struct piece one, *pieces = &one;
	u32 n, max, iod, i;
	u64 count = 0;
	int err;

	j->err = 0;
	j->bad = 0;
	j->is_short = false;
	err = job_prepare(j);
	if (err) {
		free(j->shares);
		j->shares = NULL;
		return err;
	}
	for (i = 0; i < j->layout.pcount; i++) {
		iod = pvfs_stripe_iod(&j->layout, i, j->fs->niods);
		max = atomic_load(&j->fs->iods[iod].payload_max);
		if (j->shares[i].left)
			count += min((j->shares[i].left + max - 1) / max, (u64)PER_IOD);
	}
	n = min(count, (u64)WINDOW);
	if (n > 1) {
		pieces = malloc(n * sizeof(*pieces));
		if (!pieces) {
			pieces = &one;
			n = 1;
		}
	}
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->cond, NULL);
	j->done = j->free = NULL;
	j->inflight = 0;
	for (i = n; i--;) {
		pieces[i].job = j;
		pieces[i].iov = pieces[i].inline_iov;
		pieces[i].room = INLINE_IOV;
		pieces[i].next = j->free;
		j->free = &pieces[i];
	}
	job_go(j);
	for (i = 0; i < n; i++) {
		if (pieces[i].iov != pieces[i].inline_iov)
			free(pieces[i].iov);
	}
	if (pieces != &one)
		free(pieces);
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->cond);
	free(j->shares);
	j->shares = NULL;
	if (!j->err)
		return j->len;
	return j->bad > j->off ? (ssize_t)(j->bad - j->off) : j->err;
}

/**
 * lib_file_cap - the capability for an open file
 * @ret: gets it
 *
 * Return: the generation of the session it belongs to, for lib_session_wait_new().
 */
u32 lib_file_cap(const struct pvfs_file *f, struct pvfs_cap *ret)
{
	struct inode_open *o = &f->inode->open[f->rights];
	u32 generation;

	pthread_mutex_lock(&f->inode->lock);
	*ret = o->cap;
	generation = o->generation;
	pthread_mutex_unlock(&f->inode->lock);
	return generation;
}

/* job_run(); and once more when the capability was an old session's. */
static ssize_t job_run_cap(struct io_job *j, const struct pvfs_file *f)
{
	u32 generation = lib_file_cap(f, &j->cap);
	ssize_t rc;

	/* In a new session the lock is gone, and the end may be elsewhere. */
	if (j->append && lib_append_lost(f))
		return -EAGAIN;
	rc = job_run(j);
	if (lib_session_refused(f->fs, rc, generation) && lib_file_cap(f, &j->cap) != generation)
		rc = j->append ? -EAGAIN : job_run(j);
	return rc;
}

/* ---------------------------------------------------------------- reading */

u32 lib_size_known(struct inode *ino, u64 *size, struct pvfs_layout *layout)
{
	u32 gen;

	pthread_mutex_lock(&ino->lock);
	*size = ino->size;
	*layout = ino->layout;
	gen = ino->trunc_gen;
	pthread_mutex_unlock(&ino->lock);
	return gen;
}

ssize_t pvfs_preadv(struct pvfs_file *f, const struct iovec *iov, int n, off_t off)
{
	struct io_job j = { .fs = f->fs, .ino = f->inode };
	ssize_t rc = lib_fs_check(f->fs);
	struct pvfs_attr attr;
	bool again = false;
	u32 gen;
	u64 len, size;
	int err;

	if (rc)
		return rc;
	if (!(f->rights & PVFS_CAP_READ))
		return -EBADF;
	if (off < 0)
		return -EINVAL;
	rc = n < 0 || n > IOV_MAX ? -EINVAL : lib_mem_init(&j.mem, iov, n, &len);
	if (rc)
		return rc;
	if (!len)
		goto out;
	j.off = off;
	len = min(len, PVFS_FILE_MAX - (u64)off);
	if (lib_head_is(f->inode)) {
		rc = lib_head_read(f, iov, n, off);
		if (rc != -EREMCHG)
			goto accessed;
	}
	do {
		gen = lib_size_known(f->inode, &size, &j.layout);
		if (off + len > size) {
			rc = lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);
			if (rc)
				break;
			gen = lib_size_known(f->inode, &size, &j.layout);
		}
		if ((u64)off >= size)
			break;
		j.len = min(len, size - off);
		rc = job_run_cap(&j, f);
		if (rc <= 0 || !j.is_short)
			break;
		/*
		 * Zeros where a datafile has nothing are right if the file was that long when the
		 * iod was asked: as it was before, if it was not cut until after.
		 */
		err = lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);
		if (err) {
			rc = err;
			break;
		}
		again = lib_size_known(f->inode, &size, &j.layout) != gen;
		if (again)
			rc = 0;
	} while (again);
accessed:
	if (rc >= 0)
		lib_inode_accessed(f->inode);
out:
	lib_mem_free(&j.mem);
	return rc;
}

ssize_t pvfs_pread(struct pvfs_file *f, void *buf, size_t n, off_t off)
{
	struct iovec iov = { .iov_base = buf, .iov_len = n };

	return pvfs_preadv(f, &iov, 1, off);
}

/* ---------------------------------------------------------------- writing */

/*
 * Data written by someone who may not keep the file's set-id bits takes them away, before the first
 * byte; written by anyone, they take security.capability away.
 */
static int kill_priv(struct pvfs_file *f)
{
	struct pvfs_setattr_req req = { 0 };
	struct pvfs_attr attr;
	struct pvfs_cred who;
	struct fs_cred cred;
	u32 mode, gid;
	bool caps;

	pthread_mutex_lock(&f->inode->lock);
	mode = f->inode->mode;
	gid = f->inode->gid;
	caps = f->inode->caps;
	pthread_mutex_unlock(&f->inode->lock);
	if (!caps && !(mode & (S_ISUID | S_ISGID)))
		return 0;
	lib_fs_cred_get(f->fs, &cred, &who);
	/* Without execution for the group its members may keep the one bit: see ns_kill_priv(). */
	if (cred.uid && ((mode & S_ISUID) || ((mode & S_ISGID) &&
	    ((mode & S_IXGRP) || !pvfs_cred_in_group(&who, gid)))))
		req.valid = PVFS_SA_KILL_PRIV;
	else if (caps)
		req.valid = PVFS_SA_KILL_CAPS;
	req.valid |= req.valid ? PVFS_SA_OPENED : 0;
	return req.valid ? lib_attr_set(f->fs, &f->inode->fid, f->inode, &req, &attr) : 0;
}

/* At least a byte, if the file is stuffed. Return: as lib_head_write(). */
static ssize_t write_head(struct pvfs_file *f, const struct iovec *iov, int n, u64 off, bool append)
{
	ssize_t rc;

	if (!lib_head_is(f->inode))
		return -EREMCHG;
	rc = kill_priv(f) ?: lib_head_write(f, iov, n, off, append);
	return rc > 0 ? lib_write_sync(f) ?: rc : rc;
}

static ssize_t append_head(struct pvfs_file *f, const struct iovec *iov, int n)
{
	struct memory m;
	ssize_t rc;
	u64 len;

	rc = lib_mem_init(&m, iov, n, &len);
	if (rc)
		return rc;
	lib_mem_free(&m);
	return len ? write_head(f, iov, n, 0, true) : 0;
}

/**
 * lib_write_prepare - before anything is written to datafiles: set-id bits go, the layout stays
 * @ret_layout: how the file is laid out, from here on for good
 * @ret_trunc_gen: its truncation generation now
 *
 * Return: 0 or -errno.
 */
int lib_write_prepare(struct pvfs_file *f, struct pvfs_layout *ret_layout, u32 *ret_trunc_gen)
{
	struct inode *ino = f->inode;
	bool first;
	int err = kill_priv(f) ?: lib_unstuff(f);

	if (err)
		return err;
	pthread_mutex_lock(&ino->lock);
	first = !ino->verifiers;
	if (first) {
		/* Not while the layout is changed: the manager does not know that we write. */
		pthread_mutex_unlock(&ino->lock);
		pthread_mutex_lock(&ino->relayout);
		pthread_mutex_lock(&ino->lock);
	}
	if (!ino->verifiers) {
		ino->verifiers = calloc(ino->layout.pcount, sizeof(*ino->verifiers));
		if (!ino->verifiers)
			err = -ENOMEM;
	}
	*ret_layout = ino->layout;
	*ret_trunc_gen = ino->trunc_gen;
	pthread_mutex_unlock(&ino->lock);
	if (first)
		pthread_mutex_unlock(&ino->relayout);
	return err;
}

/**
 * lib_write_sync - after a write: with O_SYNC or O_DSYNC it is to be on stable storage
 */
int lib_write_sync(struct pvfs_file *f)
{
	return f->flags & (O_SYNC | O_DSYNC) ? pvfs_fdatasync(f) : 0;
}

static ssize_t write_once(struct pvfs_file *f, const struct iovec *iov, int n, u64 off,
			  bool append)
{
	struct io_job j = {
		.fs = f->fs, .ino = f->inode, .write = true, .append = append, .off = off,
	};
	u32 trunc_gen = 0;
	ssize_t rc;

	rc = lib_mem_init(&j.mem, iov, n, &j.len);
	if (rc)
		return rc;
	if (!j.len)
		goto out;
	if (off >= PVFS_FILE_MAX) {
		rc = -EFBIG;
		goto out;
	}
	rc = append ? -EREMCHG : write_head(f, iov, n, off, false);
	if (rc != -EREMCHG)
		goto out;
	j.len = min(j.len, PVFS_FILE_MAX - off);
	rc = lib_write_prepare(f, &j.layout, &trunc_gen);
	if (rc)
		goto out;
	rc = job_run_cap(&j, f);
	/*
	 * After a failure only the iods know what they have taken (and the report has to have
	 * something in it to be looked at); after a write that left a hole, how much space the file
	 * takes.
	 */
	if (j.err)
		lib_inode_wrote(f->inode, max(j.end, (u64)1), &j.wtime, PVFS_GEN_ASK);
	else if (j.end)
		lib_inode_wrote(f->inode, j.end, &j.wtime,
				lib_inode_leaves_hole(f->inode, off) ? PVFS_GEN_ASK : trunc_gen);
	if (rc > 0)
		rc = lib_write_sync(f) ?: rc;
out:
	lib_mem_free(&j.mem);
	return rc;
}

/* @part: room for @n entries, filled with @len bytes of @iov from @skip on. Return: entries. */
static int iov_part(struct iovec *part, const struct iovec *iov, int n, size_t skip, size_t len)
{
	int i, k = 0;

	for (i = 0; i < n && len; i++) {
		size_t off = min(skip, iov[i].iov_len), here = min(iov[i].iov_len - off, len);

		skip -= off;
		len -= here;
		if (here)
			part[k++] = (struct iovec){ (u8 *)iov[i].iov_base + off, here };
	}
	return k;
}

/*
 * What fits below the largest size of the iods' file systems, which only they know, is written:
 * they refuse what crosses it whole, and what is left is tried in halves.
 */
static ssize_t do_write(struct pvfs_file *f, const struct iovec *iov, int n, u64 off, bool append)
{
	ssize_t rc = write_once(f, iov, n, off, append);
	size_t most = 0, done = 0;
	struct iovec *part;
	int i;

	if (rc != -EFBIG || n < 1)
		return rc;
	part = calloc(n, sizeof(*part));
	if (!part)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		most += iov[i].iov_len;
	for (most /= 2; most; ) {
		rc = write_once(f, part, iov_part(part, iov, n, done, most), off + done, append);
		if (rc > 0)
			done += rc;
		else if (rc == -EFBIG)
			most /= 2;
		else
			break;
	}
	free(part);
	return done ? (ssize_t)done : rc;
}

/*
 * A record that crosses into other stripe units goes unit by unit: else who reads meanwhile could find its
 * end, and zeros before it. A longer one is written all at once.
 */
static ssize_t append_in_order(struct pvfs_file *f, const struct iovec *iov, int n, u64 off)
{
	struct pvfs_layout layout;
	size_t len = 0, done = 0, step;
	struct iovec *part;
	ssize_t rc;
	u64 size;
	int i;

	lib_size_known(f->inode, &size, &layout);
	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (layout.pcount == 1 || len <= layout.ssize - off % layout.ssize ||
	    len > max(layout.ssize, PVFS_APPEND_STEPS_MAX))
		return do_write(f, iov, n, off, true);
	part = calloc(n, sizeof(*part));
	if (!part)
		return -ENOMEM;
	do {
		step = min(len - done, (size_t)(layout.ssize - (off + done) % layout.ssize));
		rc = do_write(f, part, iov_part(part, iov, n, done, step), off + done, true);
		/* What had been written of it stays where it is: it was a short write. */
		done += max(rc, (ssize_t)0);
	} while (rc == (ssize_t)step && done < len);
	free(part);
	return done ? (ssize_t)done : rc;
}

ssize_t pvfs_pwritev(struct pvfs_file *f, const struct iovec *iov, int n, off_t off)
{
	struct pvfs_attr attr;
	bool again = false;
	ssize_t rc = lib_fs_check(f->fs);

	if (rc)
		return rc;
	if (!(f->rights & PVFS_CAP_WRITE))
		return -EBADF;
	if (off < 0 || n < 0 || n > IOV_MAX)
		return -EINVAL;
	if (!(f->flags & O_APPEND))
		return do_write(f, iov, n, off, false);
	/* The manager knows where the end of a head is; of a striped file nobody does, see below. */
	rc = append_head(f, iov, n);
	if (rc != -EREMCHG)
		return rc;
	pthread_mutex_lock(&f->inode->append);
	do {
		rc = lib_append_begin(f);
		if (rc)
			break;
		rc = lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);
		if (!rc)
			rc = append_in_order(f, iov, n, attr.size);
		again = rc == -EAGAIN && lib_append_lost(f);
		lib_append_end(f);
	} while (again);
	pthread_mutex_unlock(&f->inode->append);
	return rc;
}

ssize_t pvfs_pwrite(struct pvfs_file *f, const void *buf, size_t n, off_t off)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = n };

	return pvfs_pwritev(f, &iov, 1, off);
}
