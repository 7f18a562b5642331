// SPDX-License-Identifier: GPL-2.0
/*
 * space.c - where the bytes of a file are, and where they will be: fallocate(2), SEEK_DATA and
 * SEEK_HOLE, and copy_file_range(2) by the iods.
 *
 * A range of the file is one run in each datafile, so an operation is one request to each that has
 * a share, all at once.
 */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "vfs.h"

#define BATCH 32			/* datafiles asked at once */
#define SESSION_TRIES 5
#define COPY_MIN (256u << 10)		/* less is as soon read and written */
#define COPY_STEP (16u << 20)		/* bytes that one iod copies at a time */

/* One datafile's share, and what it answered. */
struct share {
	struct pvfs_request *req;
	struct pvfs_extent e;
	u64 off;			/* SEEK: what was found */
	int err;
};

/* What is asked of all. */
struct job {
	struct inode *inode;
	u16 op;				/* PVFS_OP_SPACE, SEEK or COPY */
	struct inode *src;		/* COPY: from there to @inode */
	s64 shift;			/* COPY: what to add to an offset in a datafile of @src */
	struct pvfs_cap src_cap;
	u32 mode;			/* SPACE: PVFS_SP_* */
	bool hole;			/* SEEK */
	struct pvfs_layout layout;
	struct pvfs_cap cap;
	u64 session;			/* the capability's */
	struct pvfs_ts wtime;		/* SPACE, COPY: the latest */
};

static void space_share_ask(struct job *j, struct share *s)
{
	struct pvfs_fid fid = PVFS_I(j->inode)->fid;
	struct pvfs_request *req;

	req = pvfs_req_alloc(pvfs_io_iod(PVFS_VOL(j->inode), &j->layout, s->e.df), j->op, 0);
	s->req = req;
	if (IS_ERR(req))
		return;
	if (j->op == PVFS_OP_SPACE) {
		struct pvfs_space_req m = {
			.fid = fid,
			.mode = j->mode,
			.off = s->e.off,
			.len = s->e.len,
			.cap = j->cap,
		};

		req->body_len = pvfs_space_req_encode(&m, req->body, req->body_room);
	} else if (j->op == PVFS_OP_COPY) {
		struct pvfs_copy_req m = {
			.src = PVFS_I(j->src)->fid,
			.src_off = s->e.off,
			.src_cap = j->src_cap,
			.dst = fid,
			.dst_off = s->e.off + j->shift,
			.dst_cap = j->cap,
			.len = s->e.len,
		};

		req->body_len = pvfs_copy_req_encode(&m, req->body, req->body_room);
	} else {
		struct pvfs_seek_req m = { .fid = fid,
					   .off = s->e.off,
					   .hole = j->hole,
					   .cap = j->cap };

		req->body_len = pvfs_seek_req_encode(&m, req->body, req->body_room);
	}
	pvfs_req_submit(req);
}

/* COPY's has the same fields. */
static int space_answer(struct job *j, struct share *s)
{
	struct pvfs_space_rep rep;

	if (pvfs_space_rep_decode(&rep, s->req->rep, s->req->rep_len) ||
	    rep.wtime.nsec >= NSEC_PER_SEC)
		return pvfs_bogus(PVFS_VOL(j->inode), "SPACE or COPY", PVFS_I(j->inode)->fid.ino);
	pvfs_iod_tells_room(pvfs_io_iod(PVFS_VOL(j->inode), &j->layout, s->e.df), rep.room);
	pvfs_unstable_note(j->inode, &j->layout, s->e.df, rep.verifier, &j->cap, j->session,
			   false);
	if (pvfs_ts_after(&rep.wtime, &j->wtime))
		j->wtime = rep.wtime;
	return 0;
}

static int space_seek_answer(struct job *j, struct share *s)
{
	struct pvfs_seek_rep rep;

	if (pvfs_seek_rep_decode(&rep, s->req->rep, s->req->rep_len) || rep.off < s->e.off)
		return pvfs_bogus(PVFS_VOL(j->inode), "SEEK", PVFS_I(j->inode)->fid.ino);
	s->off = rep.off;
	return 0;
}

static void space_share_wait(struct job *j, struct share *s)
{
	if (IS_ERR(s->req)) {
		s->err = PTR_ERR(s->req);
		return;
	}
	s->err = pvfs_req_wait(s->req);
	if (!s->err)
		s->err = j->op == PVFS_OP_SEEK ? space_seek_answer(j, s) : space_answer(j, s);
	pvfs_req_put(s->req);
	if (s->err == -EACCES && pvfs_session_over(PVFS_VOL(j->inode), j->session))
		s->err = -EAGAIN;	/* the capability was a former session's */
	else if (s->err == -ESHUTDOWN)
		s->err = -EIO;
}

/* The capabilities, of the present session. */
static int space_get_caps(struct job *j)
{
	u64 session;
	int err = 0;

	do {
		session = 0;
		if (j->src)
			err = pvfs_file_cap(j->src, PVFS_CAP_READ, &j->src_cap, &session);
		/* To look for holes it need not be open for reading. */
		err = err ?: pvfs_file_cap(j->inode, j->op == PVFS_OP_SEEK ? 0 : PVFS_CAP_WRITE,
					   &j->cap, &j->session);
	} while (!err && session && session != j->session);
	return err;
}

static int space_ask_batch(struct job *j, struct share *shares, unsigned int n)
{
	unsigned int i, tries;
	int err;

	for (tries = 0; tries < SESSION_TRIES; tries++) {
		err = space_get_caps(j) ?: pvfs_io_permits_get(PVFS_VOL(j->inode), n, false);
		if (err)
			return err;
		for (i = 0; i < n; i++)
			space_share_ask(j, &shares[i]);
		for (i = 0; i < n; i++) {
			space_share_wait(j, &shares[i]);
			err = err ?: shares[i].err;
		}
		pvfs_io_permits_put(PVFS_VOL(j->inode), n, false);
		/* All of it may be done twice. */
		if (err != -EAGAIN)
			return err;
	}
	return -EIO;
}

/*
 * Asks all that have a share of the range. For SEEK *@found is the nearest of what was found, in
 * the file.
 */
static int space_ask_all(struct job *j, u64 pos, u64 len, u64 *found)
{
	struct share *shares;
	unsigned int n = 0, i;
	u32 df = 0;
	int err;

	err = pvfs_layout_get(j->inode, j->op != PVFS_OP_SEEK, &j->layout);
	if (err)
		return err;
	shares = kcalloc(BATCH, sizeof(*shares), GFP_KERNEL);
	if (!shares)
		return -ENOMEM;
	while (!err && df < j->layout.pcount) {
		for (n = 0; n < BATCH && df < j->layout.pcount; df++) {
			pvfs_stripe_share(&j->layout, df, pos, len, &shares[n].e);
			n += !!shares[n].e.len;
		}
		err = n ? space_ask_batch(j, shares, n) : 0;
		for (i = 0; !err && found && i < n; i++) {
			struct share *s = &shares[i];

			/* Not where the run is over: that is another datafile's to say. */
			if (s->off < s->e.off + s->e.len)
				*found = min(*found,
					     max(pos, pvfs_stripe_file_off(&j->layout, s->e.df,
									   s->off)));
		}
	}
	kfree(shares);
	/* Of a COPY's two files nobody knows which. */
	if (err == -ESTALE && !j->src)
		pvfs_inode_stale(j->inode);
	return err;
}

/*
 * The next data or @hole at or behind @pos of a file whose attributes are fresh. What other clients have stored through
 * mappings is with the iods when they are out. Return: its offset, -ENXIO when @pos is not in the file or there is no
 * data, or another -errno.
 */
static loff_t space_seek(struct inode *inode, loff_t pos, bool hole)
{
	struct job j = { .inode = inode, .op = PVFS_OP_SEEK, .hole = hole };
	loff_t size = pvfs_size_told(inode);
	u64 found = size;
	int err;

	if (pos < 0 || pos >= size)
		return -ENXIO;
	err = pvfs_cache_flush(inode, pos, size - pos);
	if (!err && pvfs_stuffed(inode))	/* it has no holes */
		return hole ? size : pos;
	err = err ?: pvfs_turn_enter(inode);
	if (err)
		return err;
	err = space_ask_all(&j, pos, size - pos, &found);
	pvfs_turn_leave(inode);
	if (err)
		return err;
	return !hole && found >= size ? -ENXIO : found;
}

loff_t pvfs_file_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);
	/* Under a WRITE lease it ends where we know. */
	bool known = whence == SEEK_END && pvfs_wlease_token(inode);
	loff_t size = i_size_read(inode);
	int err;

	/* All but these depend on where the end is. */
	if (whence != SEEK_SET && whence != SEEK_CUR && !known) {
		err = pvfs_revalidate(inode);
		if (err)
			return err;
		size = pvfs_size_told(inode);
	}
	if (whence == SEEK_DATA || whence == SEEK_HOLE) {
		offset = space_seek(inode, offset, whence == SEEK_HOLE);
		return offset < 0 ? offset : vfs_setpos(file, offset, inode->i_sb->s_maxbytes);
	}
	return generic_file_llseek_size(file, offset, whence, inode->i_sb->s_maxbytes, size);
}

/* Under invalidate_lock. */
static int space_change(struct inode *inode, u32 mode, loff_t pos, loff_t len, bool grow)
{
	struct job j = { .inode = inode, .op = PVFS_OP_SPACE, .mode = mode };
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 end = pos + len;
	u32 trunc_gen;
	int err;

	spin_lock(&pi->lock);
	trunc_gen = pi->attr.trunc_gen;
	spin_unlock(&pi->lock);
	if (grow) {
		/*
		 * Only when all have their space does the last page make the file as long as that.
		 * Not asked for twice: tmpfs takes a page for data that is allocated once more.
		 */
		u64 last = max_t(u64, round_down(end - 1, SZ_4K), pos);

		err = last > pos ? space_ask_all(&j, pos, last - pos, NULL) : 0;
		j.mode &= ~PVFS_SP_KEEP_SIZE;
		err = err ?: space_ask_all(&j, last, end - last, NULL);
	} else {
		err = space_ask_all(&j, pos, len, NULL);
	}
	if (!grow)
		end = min_t(u64, end, i_size_read(inode));
	/*
	 * As a write: see pvfs_io_finish(). Also when no byte is written: there has to be something
	 * in a report.
	 */
	pvfs_writes_note(inode, max_t(u64, end, 1), &j.wtime,
			 err || !end ? PVFS_GEN_ASK : trunc_gen, true);
	return err;
}

static u32 space_wire_mode(int mode)
{
	if (mode & FALLOC_FL_PUNCH_HOLE)
		return PVFS_SP_PUNCH | PVFS_SP_KEEP_SIZE;
	return (mode & FALLOC_FL_ZERO_RANGE ? PVFS_SP_ZERO : 0) | PVFS_SP_KEEP_SIZE;
}

/**
 * pvfs_fallocate - allocate, punch a hole, make zeros
 * @file: open for writing
 * @mode: 0 or FALLOC_FL_ZERO_RANGE, with or without KEEP_SIZE; or PUNCH_HOLE with it
 * @offset: bytes, as the VFS has checked
 * @len: bytes, > 0
 *
 * Return: 0, -EOPNOTSUPP for other modes or where an iod's store cannot, or another -errno.
 */
long pvfs_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	struct inode *inode = file_inode(file);
	struct address_space *mapping = inode->i_mapping;
	loff_t end = offset + len, size;
	bool grow;
	long err;

	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		return -EOPNOTSUPP;
	if (down_write_killable(&inode->i_rwsem))
		return -EINTR;
	/* Where the end is now. */
	err = pvfs_meta_getattr(inode);
	if (err)
		goto out;
	size = i_size_read(inode);
	grow = !(mode & FALLOC_FL_KEEP_SIZE) && end > size;
	if (grow)
		err = inode_newsize_ok(inode, end);
	err = err ?: file_remove_privs(file);
	err = err ?: pvfs_unstuff(inode, 0);
	if (err)
		goto out;
	if (!(mode & FALLOC_FL_PUNCH_HOLE))
		err = pvfs_full_settle(inode, offset, len);
	err = err ?: pvfs_cache_prepare(inode, offset, len);
	err = err ?: pvfs_turn_enter(inode);
	if (err)
		goto out;
	err = down_write_killable(&mapping->invalidate_lock);
	if (err)
		goto out_turn;
	err = pvfs_cache_drop(inode, offset, len) ?:
	      space_change(inode, space_wire_mode(mode), offset, len, grow);
	pvfs_cache_drop(inode, offset, len);
	filemap_invalidate_unlock(mapping);
out_turn:
	pvfs_turn_leave(inode);
out:
	up_write(&inode->i_rwsem);
	return err;
}

/* ---------------------------------------------------------------- copy_file_range */

static void space_layout_of(struct inode *inode, struct pvfs_layout *ret)
{
	spin_lock(&PVFS_I(inode)->lock);
	*ret = PVFS_I(inode)->layout;
	spin_unlock(&PVFS_I(inode)->lock);
}

/*
 * Are the bytes from @pos_in on with the same iods as those from @pos_out on will be? A file that
 * was never written is laid out so that they are, where that may be. Return: what to add to offsets
 * in datafiles in *@shift.
 */
static bool space_alike(struct inode *src, loff_t pos_in, struct inode *dst, loff_t pos_out,
			s64 *shift)
{
	struct pvfs_layout from, to;

	space_layout_of(src, &from);
	if (!pvfs_stripe_shift(&from, pos_out - pos_in, shift))
		return false;
	space_layout_of(dst, &to);
	if (!pvfs_layout_alike(&from, &to) && !i_size_read(dst)) {
		pvfs_meta_setlayout(dst, &from);
		space_layout_of(dst, &to);
	}
	return pvfs_layout_alike(&from, &to);
}

/* Under invalidate_lock of @dst. Return: bytes copied, or -errno. */
static ssize_t space_copy(struct job *j, loff_t pos_in, loff_t pos_out, size_t len)
{
	struct pvfs_inode *pi = PVFS_I(j->inode);
	ssize_t done = 0;
	u32 trunc_gen;
	size_t step;
	int err = 0;
	u64 round;

	spin_lock(&pi->lock);
	trunc_gen = pi->attr.trunc_gen;
	round = pvfs_stripe_rounds(&pi->layout, COPY_STEP);
	spin_unlock(&pi->lock);
	for (; done < len; done += step) {
		step = min_t(u64, len - done, round);
		err = space_ask_all(j, pos_in + done, step, NULL);
		if (err)
			break;
		cond_resched();
		if (fatal_signal_pending(current)) {
			done += step;
			break;
		}
	}
	/* As a write: see pvfs_io_finish(). Part of a step may have been copied when it failed. */
	if (done || err)
		pvfs_writes_note(j->inode, pos_out + done, &j->wtime,
				 err ? PVFS_GEN_ASK : trunc_gen, true);
	return done ?: err;
}

/* Return: bytes copied; -EOPNOTSUPP: it has to go through here. */
static ssize_t space_copy_by_iods(struct inode *src, loff_t pos_in, struct file *file_out,
				  loff_t pos_out, size_t len)
{
	struct inode *dst = file_inode(file_out);
	struct job j = { .inode = dst, .op = PVFS_OP_COPY, .src = src };
	struct address_space *mapping = dst->i_mapping;
	ssize_t ret;

	/* Small ones are read and written. */
	if (pvfs_stuffed(src))
		return -EOPNOTSUPP;
	ret = down_write_killable(&dst->i_rwsem);
	if (ret)
		return ret;
	/* Where the ends are now. */
	ret = pvfs_meta_getattr(dst);
	if (!ret && src != dst)
		ret = pvfs_meta_getattr(src);
	if (ret)
		goto out;
	ret = -EOPNOTSUPP;
	len = pos_in < i_size_read(src) ? min_t(u64, len, i_size_read(src) - pos_in) : 0;
	if (len < COPY_MIN)
		goto out;
	/* It would not fit a head; and what is laid out anew has to be striped. */
	ret = pvfs_unstuff(dst, 0);
	if (ret)
		goto out;
	ret = -EOPNOTSUPP;
	if (!space_alike(src, pos_in, dst, pos_out, &j.shift))
		goto out;
	ret = file_remove_privs(file_out);
	ret = ret ?: pvfs_cache_flush(src, pos_in, len);
	ret = ret ?: pvfs_full_settle(dst, pos_out, len);
	if (ret)
		goto out;
	ret = pvfs_cache_prepare(dst, pos_out, len);
	ret = ret ?: pvfs_turn_enter_both(dst, src);
	if (ret)
		goto out;
	ret = down_write_killable(&mapping->invalidate_lock);
	if (ret)
		goto out_turn;
	ret = pvfs_cache_drop(dst, pos_out, len) ?: space_copy(&j, pos_in, pos_out, len);
	pvfs_cache_drop(dst, pos_out, len);
	filemap_invalidate_unlock(mapping);
out_turn:
	pvfs_turn_leave(src);
	pvfs_turn_leave(dst);
out:
	up_write(&dst->i_rwsem);
	return ret;
}

/**
 * pvfs_copy_file_range - copy_file_range(2)
 * @file_in: from
 * @pos_in: bytes
 * @file_out: to
 * @pos_out: bytes
 * @len: bytes, as the VFS has cut it
 * @flags: 0
 *
 * The iods do it where both files are on one volume and striped alike. Else, and for little, the
 * bytes come and go.
 */
ssize_t pvfs_copy_file_range(struct file *file_in, loff_t pos_in, struct file *file_out,
			     loff_t pos_out, size_t len, unsigned int flags)
{
	ssize_t ret = -EOPNOTSUPP;

	if (file_inode(file_in)->i_sb == file_inode(file_out)->i_sb && len >= COPY_MIN) {
		ret = space_copy_by_iods(file_inode(file_in), pos_in, file_out, pos_out, len);
		if (ret > 0)
			file_accessed(file_in);
		if (ret > 0 && (iocb_flags(file_out) & IOCB_DSYNC)) {
			int err = vfs_fsync_range(file_out, pos_out, pos_out + ret - 1, 1);

			ret = err ?: ret;
		}
	}
	if (ret == -EOPNOTSUPP)
		ret = pvfs_copy_through(file_in, pos_in, file_out, pos_out, len);
	return ret;
}
