// SPDX-License-Identifier: GPL-2.0
/*
 * op_list.c - READ_LIST and WRITE_LIST: many places of a file in one request (list I/O), each known
 * by itself or described as a regular pattern (datatype I/O).
 *
 *   operation   needs       answers
 *   READ_LIST   CAP_READ    payload: the bytes of all places, in order; zeros at its end may be left
 *                           out. EAGAIN: no memory for them now.
 *   WRITE_LIST  CAP_WRITE   as WRITE
 *
 * A request names places in the file and says how the file is laid out: every I/O daemon is sent
 * the same description, and takes of each block what lies in its datafile, which is in one row
 * there. What a request may cost is bounded before anything is done: its bytes by io_max, its
 * blocks by PVFS_BLOCKS_MAX, whether they have something here or not.
 */
#include "iod.h"
#include "../common/log.h"
#include "../common/runs.h"
#include "../common/stripe.h"

#define QUICK 64u	/* blocks that the engine thread does by itself */

/* What a request names. */
struct list {
	struct pvfs_layout layout;
	u32 df;
	struct pvfs_runs runs;
	u64 blocks;
	u64 off, len;		/* a row that was looked at already; @len 0: none */
};

/* The next row of bytes in the datafile; blocks that touch there are one. */
static bool list_next(struct list *l, u64 *ret_off, u64 *ret_len)
{
	struct pvfs_extent e;
	u64 off, len;

	while (pvfs_runs_next(&l->runs, &off, &len)) {
		pvfs_stripe_share(&l->layout, l->df, off, len, &e);
		if (!e.len)
			continue;
		if (l->len && l->off + l->len == e.off) {
			l->len += e.len;
			continue;
		}
		*ret_off = l->off;
		*ret_len = l->len;
		l->off = e.off;
		l->len = e.len;
		if (*ret_len)
			return true;
	}
	*ret_off = l->off;
	*ret_len = l->len;
	l->len = 0;
	return *ret_len;
}

/* Return: 0, or -EINVAL: not sound, or too many blocks. */
static int list_begin(struct list *l, const struct pvfs_layout *layout, u32 df,
		      const struct pvfs_str *runs, u64 first, u64 n)
{
	*l = (struct list){ .layout = *layout, .df = df };
	if (!pvfs_layout_valid(layout, PVFS_IOD_MAX) || df >= layout->pcount ||
	    pvfs_runs_begin(&l->runs, runs->p, runs->len, first, n, &l->blocks))
		return -EINVAL;
	return l->blocks > PVFS_BLOCKS_MAX ? -EINVAL : 0;
}

/* How many bytes it is in this datafile; it is at its end then. Return: 0, or -EINVAL: more than @max. */
static int list_bytes(struct list *l, u32 max, u32 *ret)
{
	u64 off, len, sum = 0;

	while (list_next(l, &off, &len)) {
		sum += len;
		if (sum > max)
			return -EINVAL;
	}
	*ret = sum;
	return 0;
}

/* READ_LIST's and WRITE_LIST's fields are the same. */
#define LIST_BEGIN(l, req) \
	list_begin(l, &(struct pvfs_layout){ .pcount = min((req)->pcount, 0xffffu), .ssize = (req)->ssize }, \
		   (req)->df, &(req)->runs, (req)->first, (req)->len)

/* ---------------------------------------------------------------- READ_LIST */

static void release_buf(void *arg)
{
	pvfs_bufs_put(arg);
}

/*
 * Fills @mem; @ret_end is where the last byte lies, the end of the world if a row was cut while it was
 * read. Return: 0, -EAGAIN (not without waiting), or -errno.
 */
static int read_rows(struct iod *iod, struct iod_fdent *e, struct list *l, u8 *mem, u64 size,
		     bool may_wait, u64 *ret_end)
{
	u64 off, len, here, done;
	struct iovec iov;
	ssize_t r;

	*ret_end = 0;
	while (list_next(l, &off, &len)) {
		*ret_end = max(*ret_end, off + len);
		here = off < size ? min(len, size - off) : 0;
		for (done = 0; done < here; done += r) {
			iov = (struct iovec){ .iov_base = mem + done, .iov_len = here - done };
			r = iod->store->ops->preadv(iod->store, &e->file, &iov, 1, off + done, !may_wait);
			if (r < 0)
				return r;
			if (!r)
				break;
		}
		if (done < here)
			*ret_end = UINT64_MAX;	/* it was cut */
		memset(mem + done, 0, len - done);
		mem += len;
	}
	return 0;
}

static void do_read_list(struct iod *iod, struct pvfs_call *call, bool may_wait);

static void read_list_slow(struct iod *iod, struct pvfs_call *call)
{
	do_read_list(iod, call, true);
}

static void do_read_list(struct iod *iod, struct pvfs_call *call, bool may_wait)
{
	struct pvfs_read_list_req req;
	struct pvfs_read_list_rep rep = { 0 };
	struct pvfs_out out = { .fd = -1, .release = release_buf };
	struct iod_fdent *e = NULL;
	struct pvfs_buf *buf = NULL;
	struct iod_stat st;
	struct list l;
	u8 body[8], *mem;
	u64 end = 0, size;
	u32 bytes = 0;
	int err;

	err = pvfs_read_list_req_decode(&req, call->body, call->head.body_len);
	err = err ?: LIST_BEGIN(&l, &req);
	err = err ?: list_bytes(&l, iod->io_max, &bytes);
	err = err ?: iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_READ);
	if (err)
		goto fail;
	if (iod_hold_wait(iod->holds, &req.fid, call, iod_op_read_list))
		return;
	if (!may_wait && l.blocks > QUICK) {
		iod_hand_over(iod, call, read_list_slow);
		return;
	}
	err = iod_fds_get(iod->files, &req.fid, false, &e);
	if (err == -ENOENT || (!err && !bytes)) {
		rep.beyond = bytes > 0;
		goto reply;
	}
	if (err)
		goto fail;
	err = iod->store->ops->stat(iod->store, &req.fid, &e->file, &st);
	if (err)
		goto fail_put;
	buf = pvfs_bufs_get(iod->bufs, call->peer->session, bytes, NULL, &mem);
	if (!buf) {
		iod_fds_put(e);
		iod_fail(call, -EAGAIN);
		return;
	}
	LIST_BEGIN(&l, &req);
	size = st.size;
	err = read_rows(iod, e, &l, mem, size, may_wait, &end);
	if (err == -EAGAIN && !may_wait) {
		pvfs_bufs_put(buf);
		iod_fds_put(e);
		iod_hand_over(iod, call, read_list_slow);
		return;
	}
	/*
	 * Asked behind the reads, too: zeros of a file that was cut meanwhile are not the file's. Nor are
	 * those that stand for what was not there before, though it be there now.
	 */
	err = err ?: iod->store->ops->stat(iod->store, &req.fid, &e->file, &st);
	if (err)
		goto fail_put;
	rep.beyond = end > min(size, st.size);
	iod_count(iod->counts.bytes_read, bytes);
	iod_count(iod->counts.by_copy, 1);
	out.mem = mem;
	out.len = bytes;
	out.arg = buf;
reply:
	if (e)
		iod_fds_put(e);
	pvfs_call_reply(call, 0, body, pvfs_read_list_rep_encode(&rep, body, sizeof(body)),
			buf ? &out : NULL);
	return;
fail_put:
	if (buf)
		pvfs_bufs_put(buf);
	iod_fds_put(e);
	pvfs_log_limited(PVFS_LOG_ERROR, "%s (%s): READ_LIST tag %u ino %llu, %u bytes: %s",
			 call->peer->addr, call->peer->host, call->head.tag,
			 (unsigned long long)req.fid.ino, bytes, strerror(-err));
fail:
	iod_fail(call, err);
}

void iod_op_read_list(struct iod *iod, struct pvfs_call *call)
{
	do_read_list(iod, call, false);
}

/* ---------------------------------------------------------------- WRITE_LIST */

static void write_list_now(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_write_list_req req;
	u8 *p = call->payload;
	struct iod_fdent *e;
	u64 off = 0, len, verifier;
	struct list l;
	int err;

	/* Checked by iod_op_write_list(). */
	pvfs_write_list_req_decode(&req, call->body, call->head.body_len);
	LIST_BEGIN(&l, &req);
	err = iod_fds_get(iod->files, &req.fid, true, &e);
	if (err)
		goto fail;
	verifier = iod_verifier(iod);	/* before, as for a write */
	while (!err && list_next(&l, &off, &len)) {
		err = iod_write_all(iod, e, p, len, off);
		p += len;
	}
	iod_fds_wrote(e, err);
	iod_fds_put(e);
	if (err)
		goto fail;
	iod_count(iod->counts.bytes_written, call->head.payload_len);
	iod_reply_write(iod, call, verifier);
	return;
fail:
	iod_write_failed(iod, call, &req.fid, off, err);
}

void iod_op_write_list(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_write_list_req req;
	struct list l;
	u32 bytes = 0;
	int err;

	err = pvfs_write_list_req_decode(&req, call->body, call->head.body_len);
	err = err ?: LIST_BEGIN(&l, &req);
	err = err ?: list_bytes(&l, iod->io_max, &bytes);
	if (!err && bytes != call->head.payload_len)
		err = -EINVAL;
	err = err ?: iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_WRITE);
	if (err) {
		iod_fail(call, err);
		return;
	}
	if (!bytes) {
		iod_reply_write(iod, call, iod_verifier(iod));
		return;
	}
	if (iod_hold_wait(iod->holds, &req.fid, call, iod_op_write_list))
		return;
	if (l.blocks > QUICK || !iod_enter(iod, iod->write_max)) {
		iod_hand_over(iod, call, write_list_now);
		return;
	}
	write_list_now(iod, call);
	iod_leave(iod);
}
