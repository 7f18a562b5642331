// SPDX-License-Identifier: LGPL-2.1
/*
 * space.c - where the bytes of a file are, and where they will be: allocating, punching and
 * zeroing, data and holes, and copying by the daemons that have the bytes.
 *
 * A range of the file is one run in each datafile, so an operation is one request to each that has
 * a share, all at once. How much space the file takes then, and after a failure where it ends, only
 * the iods know: the report has the manager ask them.
 */
#include "lib.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>

#define COPY_MIN	((u64)256 << 10)	/* less is as soon read and written */
#define COPY_STEP	(16u << 20)		/* bytes that one iod copies at a time */
#define COPY_BUF	((u64)4 << 20)		/* bytes that come and go at a time */

/* What is asked of all. */
struct space_job {
	struct pvfs_file *f;
	u16 op;				/* PVFS_OP_SPACE, SEEK or COPY */
	struct pvfs_file *src;		/* COPY: from there to @f */
	s64 shift;			/* COPY: what to add to an offset in a datafile of @src */
	u32 mode;			/* SPACE: PVFS_SP_* */
	bool hole;			/* SEEK */
	struct pvfs_layout layout;
	struct pvfs_cap cap, src_cap;
	struct pvfs_ts wtime;		/* SPACE, COPY: the latest */
	u64 found;			/* SEEK: the nearest, in the file */
};

/* Return: the generation of the session they belong to, the older if there are two. */
static u32 get_caps(struct space_job *j)
{
	u32 generation = lib_file_cap(j->f, &j->cap);

	return j->src ? min(generation, lib_file_cap(j->src, &j->src_cap)) : generation;
}

static int encode(const struct space_job *j, const struct pvfs_extent *e, u8 *body, size_t room)
{
	struct pvfs_fid fid = j->f->inode->fid;

	if (j->op == PVFS_OP_SPACE) {
		struct pvfs_space_req m = {
			.fid = fid, .mode = j->mode, .off = e->off, .len = e->len, .cap = j->cap,
		};

		return pvfs_space_req_encode(&m, body, room);
	}
	if (j->op == PVFS_OP_COPY) {
		struct pvfs_copy_req m = {
			.src = j->src->inode->fid, .src_off = e->off, .src_cap = j->src_cap,
			.dst = fid, .dst_off = e->off + j->shift, .dst_cap = j->cap, .len = e->len,
		};

		return pvfs_copy_req_encode(&m, body, room);
	}
	return pvfs_seek_req_encode(&(struct pvfs_seek_req){
		.fid = fid, .off = e->off, .hole = j->hole, .cap = j->cap }, body, room);
}

/* COPY's answer has the same fields. */
static int space_answer(struct space_job *j, const struct lib_ask *a)
{
	struct pvfs_space_rep rep;
	int err = pvfs_space_rep_decode(&rep, a->rep, a->rep_len);

	if (err)
		return err;
	lib_inode_verify(j->f->inode, a->df, rep.verifier, 0);
	if (pvfs_ts_after(&rep.wtime, &j->wtime))
		j->wtime = rep.wtime;
	return 0;
}

static int seek_answer(struct space_job *j, const struct lib_ask *a, const struct pvfs_extent *e, u64 pos)
{
	struct pvfs_seek_rep rep;
	int err = pvfs_seek_rep_decode(&rep, a->rep, a->rep_len);

	if (err)
		return err;
	if (rep.off < e->off)
		return -EBADMSG;
	/* Not where the run is over: that is another datafile's to say. */
	if (rep.off < e->off + e->len)
		j->found = min(j->found, max(pos, pvfs_stripe_file_off(&j->layout, e->df,
								       rep.off)));
	return 0;
}

static int ask(struct space_job *j, u64 pos, u64 len)
{
	struct lib_ask *asks = calloc(j->layout.pcount, sizeof(*asks));
	struct pvfs_extent *e = calloc(j->layout.pcount, sizeof(*e));
	int err = asks && e ? 0 : -ENOMEM, rc;
	u32 df, i, n = 0;

	for (df = 0; !err && df < j->layout.pcount; df++) {
		pvfs_stripe_share(&j->layout, df, pos, len, &e[n]);
		if (!e[n].len)
			continue;
		asks[n].df = df;
		asks[n].body_len = encode(j, &e[n], asks[n].body, sizeof(asks[n].body));
		n++;
	}
	err = err ?: lib_ask_all(j->f->fs, &j->layout, j->op, asks, n);
	if (err)
		goto out;
	for (i = 0; i < n; i++) {
		rc = asks[i].err;
		if (!rc)
			rc = j->op == PVFS_OP_SEEK ? seek_answer(j, &asks[i], &e[i], pos) :
						     space_answer(j, &asks[i]);
		err = err ?: rc;
	}
out:
	free(asks);
	free(e);
	return err;
}

/*
 * Asks all that have a share of the range; and once more when a capability was an old session's:
 * all of it may be done twice.
 */
static int ask_all(struct space_job *j, u64 pos, u64 len)
{
	u32 generation = get_caps(j);
	int err = ask(j, pos, len);

	if (lib_session_refused(j->f->fs, err, generation) && get_caps(j) != generation)
		err = ask(j, pos, len);
	return err;
}

/* ---------------------------------------------------------------- fallocate */

static u32 wire_mode(int mode)
{
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return PVFS_SP_PUNCH | PVFS_SP_KEEP_SIZE;
	return (mode & FALLOC_FL_ZERO_RANGE ? PVFS_SP_ZERO : 0) | PVFS_SP_KEEP_SIZE;
}

/* In the order in which Linux finds them. */
static int fallocate_check(const struct pvfs_file *f, int mode, off_t off, off_t len)
{
	if (off < 0 || len <= 0)
		return -EINVAL;
	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	if ((mode & FALLOC_FL_PUNCH_HOLE) && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
		return -EOPNOTSUPP;
	if (!(f->rights & PVFS_CAP_WRITE))
		return -EBADF;
	return (u64)len > PVFS_FILE_MAX - (u64)off ? -EFBIG : 0;
}

/**
 * pvfs_fallocate - allocate, punch a hole, make zeros; see pvfs.h
 */
int pvfs_fallocate(struct pvfs_file *f, int mode, off_t off, off_t len)
{
	struct space_job j = { .f = f, .op = PVFS_OP_SPACE, .mode = wire_mode(mode) };
	u64 end = (u64)off + (u64)len;
	struct pvfs_attr attr;
	u32 trunc_gen;
	bool grow;
	int err;

	err = lib_fs_check(f->fs) ?: fallocate_check(f, mode, off, len);
	if (err)
		return err;
	/* Where the end is now. */
	err = lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);
	err = err ?: lib_write_prepare(f, &j.layout, &trunc_gen);
	if (err)
		return err;
	grow = !(mode & FALLOC_FL_KEEP_SIZE) && end > attr.size;
	if (grow) {
		/*
		 * Only when all have their space does the last page make the file as long as that. Not asked
		 * for twice: tmpfs takes a page for data that is allocated once more.
		 */
		u64 last = max((end - 1) & ~4095ull, (u64)off);

		err = last > (u64)off ? ask_all(&j, off, last - off) : 0;
		j.mode &= ~PVFS_SP_KEEP_SIZE;
		err = err ?: ask_all(&j, last, end - last);
	} else {
		err = ask_all(&j, off, len);
	}
	if (!grow)
		end = min(end, attr.size);
	/* Also when no byte of the file is written: there has to be something in a report. */
	lib_inode_wrote(f->inode, max(end, (u64)1), &j.wtime, PVFS_GEN_ASK);
	return err ?: lib_write_sync(f);
}

/* ---------------------------------------------------------------- data and holes */

/**
 * pvfs_lseek - the next data or hole; see pvfs.h
 */
off_t pvfs_lseek(struct pvfs_file *f, off_t off, int whence)
{
	struct space_job j = { .f = f, .op = PVFS_OP_SEEK, .hole = whence == SEEK_HOLE };
	struct pvfs_attr attr;
	int err = lib_fs_check(f->fs);

	if (err)
		return err;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	if (off < 0)
		return -ENXIO;
	err = lib_attr_get(f->fs, &f->inode->fid, f->inode, &attr);
	if (err)
		return err;
	if ((u64)off >= attr.size)
		return -ENXIO;
	if (attr.flags & PVFS_AF_STUFFED)	/* it has no holes */
		return j.hole ? (off_t)attr.size : off;
	j.layout = attr.layout;
	j.found = attr.size;
	err = ask_all(&j, off, attr.size - off);
	if (err)
		return err;
	return !j.hole && j.found >= attr.size ? -ENXIO : (off_t)j.found;
}

/* ---------------------------------------------------------------- copying */

/* The bytes come and go. */
static ssize_t copy_through(struct pvfs_file *in, u64 off_in, struct pvfs_file *out, u64 off_out,
			    u64 len)
{
	u8 *buf = malloc(min(len, COPY_BUF));
	ssize_t n = 1, k, at;
	u64 done = 0;
	int err = 0;

	if (!buf)
		return -ENOMEM;
	while (!err && n > 0 && done < len) {
		n = pvfs_pread(in, buf, min(len - done, COPY_BUF), off_in + done);
		err = n < 0 ? n : 0;
		for (at = 0; at < n; at += k, done += k) {
			k = pvfs_pwrite(out, buf + at, n - at, off_out + done);
			if (k <= 0) {
				err = k ?: -EIO;
				break;
			}
		}
	}
	free(buf);
	return done ? (ssize_t)done : err;
}

/*
 * Are the bytes from @off_in on with the same iods as those from @off_out on will be? A file that
 * was never written is laid out so that they are, where that may be. Return: what to add to offsets
 * in datafiles in *@shift.
 */
static bool alike(const struct pvfs_attr *src, u64 off_in, struct pvfs_file *out,
		  const struct pvfs_attr *dst, u64 off_out, s64 *shift)
{
	const struct pvfs_layout *from = &src->layout;
	struct pvfs_layout to;

	if (!pvfs_stripe_shift(from, (s64)off_out - (s64)off_in, shift))
		return false;
	if (!pvfs_layout_alike(from, &dst->layout) && !dst->size)
		lib_layout_set(out->fs, &dst->fid, from);
	pthread_mutex_lock(&out->inode->lock);
	to = out->inode->layout;
	pthread_mutex_unlock(&out->inode->lock);
	return pvfs_layout_alike(from, &to);
}

/* Return: bytes copied; -EOPNOTSUPP: it has to go through here. */
static ssize_t copy_by_iods(struct pvfs_file *in, u64 off_in, const struct pvfs_attr *src,
			    struct pvfs_file *out, u64 off_out, u64 len)
{
	struct space_job j = { .f = out, .op = PVFS_OP_COPY, .src = in };
	u64 done = 0, step, round;
	struct pvfs_attr dst;
	u32 trunc_gen;
	int err;

	err = lib_attr_get(out->fs, &out->inode->fid, out->inode, &dst);
	if (err)
		return err;
	len = min(len, src->size > off_in ? src->size - off_in : 0);
	if (len < COPY_MIN || (src->flags & PVFS_AF_STUFFED))
		return -EOPNOTSUPP;
	/* It would not fit a head; and what is laid out anew has to be striped. */
	err = lib_unstuff(out);
	if (err)
		return err;
	if (!alike(src, off_in, out, &dst, off_out, &j.shift))
		return -EOPNOTSUPP;
	err = lib_write_prepare(out, &j.layout, &trunc_gen);
	if (err)
		return err;
	/* It was another when nobody had written yet. */
	if (!pvfs_layout_alike(&j.layout, &src->layout))
		return -EOPNOTSUPP;
	round = pvfs_stripe_rounds(&j.layout, COPY_STEP);
	for (; !err && done < len; done += err ? 0 : step) {
		step = min(len - done, round);
		err = ask_all(&j, off_in + done, step);
	}
	/* Part of a step may have been copied when it failed. */
	lib_inode_wrote(out->inode, max(off_out + done, (u64)1), &j.wtime, PVFS_GEN_ASK);
	if (done)
		lib_inode_accessed(in->inode);
	return done ? (ssize_t)done : err;
}

static bool same_file(const struct pvfs_file *a, const struct pvfs_file *b)
{
	return fid_eq(&a->inode->fid, &b->inode->fid) &&
	       !memcmp(a->fs->uuid, b->fs->uuid, PVFS_UUID_LEN);
}

/**
 * pvfs_copy_file_range - copy bytes from one file to another, or within one; see pvfs.h
 */
ssize_t pvfs_copy_file_range(struct pvfs_file *in, off_t off_in, struct pvfs_file *out,
			     off_t off_out, size_t len, unsigned int flags)
{
	bool same = same_file(in, out), by_iods = in->fs == out->fs && len >= COPY_MIN;
	ssize_t ret = lib_fs_check(in->fs) ?: lib_fs_check(out->fs);
	struct pvfs_attr src;

	if (ret)
		return ret;
	if (flags || off_in < 0 || off_out < 0)
		return -EINVAL;
	if (!(in->rights & PVFS_CAP_READ) || !(out->rights & PVFS_CAP_WRITE) ||
	    (out->flags & O_APPEND))
		return -EBADF;
	if (len > PVFS_FILE_MAX - (u64)max(off_in, off_out))
		return -EOVERFLOW;
	if (same || by_iods) {
		/* Where the end is now. */
		ret = lib_attr_get(in->fs, &in->inode->fid, in->inode, &src);
		if (ret)
			return ret;
	}
	if (same) {
		len = (u64)off_in < src.size ? min((u64)len, src.size - (u64)off_in) : 0;
		if (len && (u64)off_in < (u64)off_out + len && (u64)off_out < (u64)off_in + len)
			return -EINVAL;
	}
	if (!len)
		return 0;
	ret = by_iods ? copy_by_iods(in, off_in, &src, out, off_out, len) : -EOPNOTSUPP;
	if (ret == -EOPNOTSUPP)
		return copy_through(in, off_in, out, off_out, len);
	return ret > 0 ? (lib_write_sync(out) ?: ret) : ret;
}
