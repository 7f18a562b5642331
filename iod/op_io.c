// SPDX-License-Identifier: GPL-2.0
/*
 * op_io.c - READ and WRITE, and what else moves or places bytes.
 *
 *   operation  needs          answers
 *   READ       CAP_READ       size of the datafile; payload: the bytes, short only at its end.
 *                             A datafile that does not exist has size 0.
 *   WRITE      CAP_WRITE      verifier, time of the write, room that is left. All bytes were taken, or an error.
 *   SPACE      CAP_WRITE      as WRITE
 *   COPY       CAP_READ of one datafile, CAP_WRITE of the other; as WRITE
 *   SEEK       any right      where data or a hole begins
 *
 * The engine thread that read the request does it, when that will not wait for a disk: the bytes
 * to read are in memory, or it is a write, which memory takes. Reads that would wait go to a thread
 * of sched.c; so do writes when most engine threads are inside one, since the kernel makes writers
 * wait when too much memory is dirty. Handing over all large writes, to copy while the next request
 * comes in, was measured on two CPUs: no faster, and 40% more CPU time for 1 MiB.
 *
 * Large reads leave by sendfile, from the page cache to the socket, and need no buffer; the reply
 * holds a reference to the open datafile until the bytes are gone.
 */
#include "iod.h"
#include "../common/log.h"
#include <stdlib.h>
#include <time.h>

int iod_check_cap(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid,
		  const struct pvfs_cap *cap, u32 want)
{
	int err = iod_caps_check(iod->caps, call->peer->session, fid, cap, want);

	if (err)
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "%s (%s): %s tag %u ino %llu: no right to do this",
				 call->peer->addr, call->peer->host, call->info->name,
				 call->head.tag,
				 (unsigned long long)fid->ino);
	return err;
}

/* ---------------------------------------------------------------- READ */

static void release_file(void *arg)
{
	iod_fds_put(arg);
}

static void release_buf(void *arg)
{
	pvfs_bufs_put(arg);
}

static void reply_read(struct pvfs_call *call, u64 size, const struct pvfs_out *out)
{
	struct pvfs_read_rep rep = { .size = size };
	u8 body[16];
	int n = pvfs_read_rep_encode(&rep, body, sizeof(body));

	pvfs_call_reply(call, 0, body, n, out);
}

/*
 * By copy, through a buffer.
 * Return: 0 and the call is answered; -EAGAIN: it would wait, or there is no buffer; or an error.
 * Nothing is kept of
 * @e when it returns.
 */
static int read_copy(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid,
		     struct iod_fdent *e, u64 off, u32 len, u64 size, bool may_wait)
{
	struct pvfs_out out = { .fd = -1 };
	struct iod_stat now;
	struct pvfs_buf *buf;
	struct iovec iov;
	u32 done = 0;
	ssize_t r;
	u8 *mem;

	buf = pvfs_bufs_get(iod->bufs, call->peer->session, len, NULL, &mem);
	if (!buf)
		return -EAGAIN;
	do {
		iov = (struct iovec){ .iov_base = mem + done, .iov_len = len - done };
		r = iod->store->ops->preadv(iod->store, &e->file, &iov, 1, off + done, !may_wait);
		if (r > 0)
			done += r;
	} while (r > 0 && done < len);
	if (r < 0) {
		pvfs_bufs_put(buf);
		return r;
	}
	/*
	 * Was it cut meanwhile? Zeros must not stand for what is gone: the client takes bytes that
	 * come for bytes of the file. A file system may make zeros of a page that went while it was
	 * read, so it is asked again.
	 */
	if (!iod->store->ops->stat(iod->store, fid, &e->file, &now) && now.size < off + done)
		done = now.size > off ? now.size - off : 0;
	if (done < len)
		size = off + done;
	iod_count(iod->counts.by_copy, 1);
	iod_count(iod->counts.bytes_read, done);
	out.mem = mem;
	out.len = done;
	out.release = release_buf;
	out.arg = buf;
	reply_read(call, size, &out);
	return 0;
}

/* A stretch to be brought into memory before it is asked for. */
struct ahead {
	struct iod *iod;
	struct iod_fdent *e;	/* a reference */
	u64 off;
	u32 len;
};

static void run_ahead(void *arg)
{
	struct ahead a = *(struct ahead *)arg;

	free(arg);
	a.iod->store->ops->prefetch(a.iod->store, &a.e->file, a.off, a.len, false);
	iod_fds_put(a.e);
}

/*
 * Reads ahead of who reads one piece after the other. The kernel's own read-ahead does not see
 * that: what was not in memory is brought there before sendfile touches it. Several readers in
 * one datafile confuse the hints, and then nothing is read ahead.
 */
static void read_ahead(struct iod *iod, struct iod_fdent *e, u64 off, u32 len, u64 size)
{
	u64 window = iod_tuning.read_ahead, end = off + len, ahead,
	target = min(end + window, size);
	struct ahead *a;

	if (atomic_exchange_explicit(&e->seq_end, end, memory_order_relaxed) != off)
		return;
	ahead = atomic_load_explicit(&e->ahead_end, memory_order_relaxed);
	if (ahead < end || ahead > end + 2 * window)
		ahead = end;
	/* In large steps: when half of what was read ahead is used up. */
	if (ahead >= target || ahead - end > window / 2)
		return;
	atomic_store_explicit(&e->ahead_end, target, memory_order_relaxed);
	if (iod->store->ops->ready(iod->store, &e->file, ahead, target - ahead))
		return;
	a = malloc(sizeof(*a));
	if (!a)
		return;
	*a = (struct ahead){ .iod = iod, .e = iod_fds_ref(e), .off = ahead, .len = target - ahead };
	iod_count(iod->counts.read_ahead, 1);
	iod_sched_run(iod->sched, run_ahead, a);
}

/* Takes the reference to @e. */
static void read_sendfile(struct iod *iod, struct pvfs_call *call, struct iod_fdent *e, u64 off,
			  u32 len, u64 size)
{
	struct pvfs_out out = { .len = len, .release = release_file, .arg = e };

	out.fd = iod->store->ops->sendable(iod->store, &e->file, off, &out.off);
	iod_count(iod->counts.by_sendfile, 1);
	iod_count(iod->counts.bytes_read, len);
	reply_read(call, size, &out);
}

static void do_read(struct iod *iod, struct pvfs_call *call, bool may_wait);

static void read_slow(struct iod *iod, struct pvfs_call *call)
{
	do_read(iod, call, true);
}

static void do_read(struct iod *iod, struct pvfs_call *call, bool may_wait)
{
	struct pvfs_read_req req;
	struct iod_fdent *e;
	struct iod_stat st;
	u32 len;
	int err;

	err = pvfs_read_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	err = -EINVAL;
	if (req.len > iod->io_max || req.off > PVFS_FILE_MAX || req.len > PVFS_FILE_MAX - req.off)
		goto fail;
	err = iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_READ);
	if (err)
		goto fail;
	if (iod_hold_wait(iod->holds, &req.fid, call, iod_op_read))
		return;
	err = iod_fds_get(iod->files, &req.fid, false, &e);
	if (err == -ENOENT) {
		reply_read(call, 0, NULL);
		return;
	}
	if (err)
		goto fail;
	err = iod->store->ops->stat(iod->store, &req.fid, &e->file, &st);
	if (err)
		goto fail_put;
	len = req.off < st.size ? min((u64)req.len, st.size - req.off) : 0;
	if (!len) {
		iod_fds_put(e);
		reply_read(call, st.size, NULL);
		return;
	}
	if (!may_wait)	/* else it was here before */
		read_ahead(iod, e, req.off, len, st.size);
	if (len < iod_tuning.sendfile_min) {
		err = read_copy(iod, call, &req.fid, e, req.off, len, st.size, may_wait);
		if (!err) {
			iod_fds_put(e);
			return;
		}
		if (err != -EAGAIN)
			goto fail_put;
	}
	if (!may_wait && !iod->store->ops->ready(iod->store, &e->file, req.off, len)) {
		iod_fds_put(e);
		iod_hand_over(iod, call, read_slow);
		return;
	}
	if (may_wait)
		iod->store->ops->prefetch(iod->store, &e->file, req.off, len, true);
	read_sendfile(iod, call, e, req.off, len, st.size);
	return;
fail_put:
	iod_fds_put(e);
	pvfs_log_limited(PVFS_LOG_ERROR, "%s (%s): READ tag %u ino %llu offset %llu length %u: %s",
			 call->peer->addr, call->peer->host, call->head.tag,
			 (unsigned long long)req.fid.ino, (unsigned long long)req.off, req.len,
			 strerror(-err));
fail:
	iod_fail(call, err);
}

void iod_op_read(struct iod *iod, struct pvfs_call *call)
{
	do_read(iod, call, false);
}

/* ---------------------------------------------------------------- WRITE */

void iod_reply_write(struct iod *iod, struct pvfs_call *call, u64 verifier)
{
	struct pvfs_write_rep rep = { .verifier = verifier, .room = iod_room(iod) };
	struct timespec ts;
	u8 body[32];
	int n;

	clock_gettime(CLOCK_REALTIME, &ts);
	rep.wtime.sec = ts.tv_sec;
	rep.wtime.nsec = ts.tv_nsec;
	n = pvfs_write_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
}

int iod_write_all(struct iod *iod, struct iod_fdent *e, u8 *p, u32 len, u64 off)
{
	struct iovec iov;
	ssize_t r;

	while (len) {
		iov = (struct iovec){ .iov_base = p, .iov_len = len };
		r = iod->store->ops->pwritev(iod->store, &e->file, &iov, 1, off);
		if (r <= 0)
			return r ? r : -EIO;
		p += r;
		off += r;
		len -= r;
	}
	return 0;
}

void iod_write_failed(struct iod *iod, struct pvfs_call *call, const struct pvfs_fid *fid, u64 off,
		      int err)
{
	if (err == -ENOSPC || err == -EDQUOT) {
		iod_count(iod->counts.no_space, 1);
		pvfs_log_limited(PVFS_LOG_WARNING, "store: %s for ino %llu (%s)", strerror(-err),
				 (unsigned long long)fid->ino, call->peer->host);
	} else if (err != -ESTALE && err != -EFBIG) {
		pvfs_log_limited(PVFS_LOG_ERROR,
				 "%s (%s): %s tag %u ino %llu offset %llu length %u: %s",
				 call->peer->addr, call->peer->host, call->info->name,
				 call->head.tag, (unsigned long long)fid->ino,
				 (unsigned long long)off, call->head.payload_len, strerror(-err));
	}
	iod_fail(call, err);
}

static void write_now(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_write_req req;
	u32 len = call->head.payload_len;
	struct iod_fdent *e;
	u64 verifier;
	int err;

	/* Checked by iod_op_write(). */
	pvfs_write_req_decode(&req, call->body, call->head.body_len);
	err = iod_fds_get(iod->files, &req.fid, true, &e);
	if (err)
		goto fail;
	/*
	 * Taken before the write: a sync that fails between the two may have lost these bytes, and
	 * the client must find the verifier changed.
	 */
	verifier = iod_verifier(iod);
	err = iod_write_all(iod, e, call->payload, len, req.off);
	iod_fds_wrote(e, err);
	iod_fds_put(e);
	if (err)
		goto fail;
	iod_count(iod->counts.bytes_written, len);
	iod_reply_write(iod, call, verifier);
	return;
fail:
	iod_write_failed(iod, call, &req.fid, req.off, err);
}

void iod_op_write(struct iod *iod, struct pvfs_call *call)
{
	u32 len = call->head.payload_len;
	struct pvfs_write_req req;
	int err;

	err = pvfs_write_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	err = iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_WRITE);
	if (err)
		goto fail;
	err = -EFBIG;
	if (req.off > PVFS_FILE_MAX || len > PVFS_FILE_MAX - req.off)
		goto fail;
	if (!len) {
		iod_reply_write(iod, call, iod_verifier(iod));
		return;
	}
	if (iod_hold_wait(iod->holds, &req.fid, call, iod_op_write))
		return;
	if (!iod_enter(iod, iod->write_max)) {
		iod_hand_over(iod, call, write_now);
		return;
	}
	write_now(iod, call);
	iod_leave(iod);
	return;
fail:
	iod_fail(call, err);
}

/* ---------------------------------------------------------------- SPACE, COPY, SEEK */

void iod_op_space(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_space_req req;
	struct iod_fdent *e;
	u64 verifier;
	int err;

	err = pvfs_space_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	err = iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_WRITE);
	if (err)
		goto fail;
	err = -EINVAL;
	if (!req.len || (req.mode & ~PVFS_SP_ALL) || (req.mode & (PVFS_SP_PUNCH | PVFS_SP_ZERO)) ==
	    (PVFS_SP_PUNCH | PVFS_SP_ZERO))
		goto fail;
	err = -EFBIG;
	if (req.off > PVFS_FILE_MAX || req.len > PVFS_FILE_MAX - req.off)
		goto fail;
	if (iod_hold_wait(iod->holds, &req.fid, call, iod_op_space))
		return;
	verifier = iod_verifier(iod);	/* before, as for a write */
	err = iod_fds_get(iod->files, &req.fid, !(req.mode & PVFS_SP_PUNCH), &e);
	if (!err) {
		err = iod->store->ops->space(iod->store, &e->file, req.mode, req.off, req.len);
		iod_fds_wrote(e, err);
		iod_fds_put(e);
	} else if (err == -ENOENT) {
		err = 0;	/* nothing there to be punched */
	}
	if (err)
		goto fail;
	iod_reply_write(iod, call, verifier);
	return;
fail:
	if (err == -ENOSPC || err == -EDQUOT)
		iod_count(iod->counts.no_space, 1);
	iod_fail(call, err);
}

void iod_op_copy(struct iod *iod, struct pvfs_call *call)
{
	struct iod_fdent *src = NULL, *dst;
	struct pvfs_copy_req req;
	u64 verifier;
	int err;

	err = pvfs_copy_req_decode(&req, call->body, call->head.body_len);
	err = err ?: iod_check_cap(iod, call, &req.src, &req.src_cap, PVFS_CAP_READ);
	err = err ?: iod_check_cap(iod, call, &req.dst, &req.dst_cap, PVFS_CAP_WRITE);
	if (err)
		goto fail;
	err = -EINVAL;
	if (!req.len || req.len > PVFS_COPY_MAX || req.src_off > PVFS_FILE_MAX - req.len)
		goto fail;
	/* Within one datafile the two must be apart. */
	if (req.src.ino == req.dst.ino && req.src_off < req.dst_off + req.len &&
	    req.dst_off < req.src_off + req.len)
		goto fail;
	err = -EFBIG;
	if (req.dst_off > PVFS_FILE_MAX - req.len)
		goto fail;
	if (iod_hold_wait(iod->holds, &req.src, call, iod_op_copy) ||
	    iod_hold_wait(iod->holds, &req.dst, call, iod_op_copy))
		return;
	verifier = iod_verifier(iod);	/* before, as for a write */
	err = iod_fds_get(iod->files, &req.src, false, &src);
	if (err && err != -ENOENT)
		goto fail;
	err = iod_fds_get(iod->files, &req.dst, true, &dst);
	if (err)
		goto fail_put;
	err = iod->store->ops->copy(iod->store, src ? &src->file : NULL, req.src_off, &dst->file,
				    req.dst_off, req.len);
	iod_fds_wrote(dst, err);
	iod_fds_put(dst);
	if (err)
		goto fail_put;
	if (src)
		iod_fds_put(src);
	iod_count(iod->counts.bytes_copied, req.len);
	iod_reply_write(iod, call, verifier);
	return;
fail_put:
	if (src)
		iod_fds_put(src);
fail:
	if (err == -ENOSPC || err == -EDQUOT)
		iod_count(iod->counts.no_space, 1);
	iod_fail(call, err);
}

void iod_op_seek(struct iod *iod, struct pvfs_call *call)
{
	struct pvfs_seek_rep rep;
	struct pvfs_seek_req req;
	struct iod_fdent *e;
	u8 body[16];
	int err, n;

	err = pvfs_seek_req_decode(&req, call->body, call->head.body_len);
	if (err)
		goto fail;
	err = iod_check_cap(iod, call, &req.fid, &req.cap, PVFS_CAP_READ | PVFS_CAP_WRITE);
	if (err)
		goto fail;
	err = -EINVAL;
	if (req.off > PVFS_FILE_MAX || req.hole > 1)
		goto fail;
	rep.off = req.hole ? req.off : PVFS_SEEK_NONE;
	err = iod_fds_get(iod->files, &req.fid, false, &e);
	if (!err) {
		err = iod->store->ops->seek(iod->store, &e->file, req.off, req.hole, &rep.off);
		iod_fds_put(e);
	} else if (err == -ENOENT) {
		err = 0;
	}
	if (err)
		goto fail;
	n = pvfs_seek_rep_encode(&rep, body, sizeof(body));
	pvfs_call_reply(call, 0, body, n, NULL);
	return;
fail:
	iod_fail(call, err);
}
