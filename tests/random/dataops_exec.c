// SPDX-License-Identifier: GPL-2.0-only
/*
 * dataops_exec.c - each of dataops' operations, on the file and on the model. Whatever the state,
 * an operation has one right outcome: a range that does not fit is cut here, so that any part of a
 * log can be carried out again.
 *
 * Between the sides: a write that returned is seen by what starts after it. Stores to a mapping are
 * seen after msync, munmap, fsync or close, so one of these comes before the other side's turn
 * (data_settle). A mapping does not follow the other side's changes: it is made anew, with the file
 * opened anew, before it is used after one. But with -m none of this is needed, and not done.
 */
#include "dataops.h"
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define BAD(...) rnd_fail(__VA_ARGS__)

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void data_open(struct data_file *f, int side, int flags)
{
	static const int how[FD_NR] = { O_RDWR | O_CREAT, O_WRONLY | O_APPEND, O_RDWR | O_DIRECT };
	int i;

	for (i = 0; i < FD_NR; i++) {
		if (i == FD_DIRECT && !data.have[OP_DREAD])
			continue;
		f->fd[side][i] = open(f->path[side], how[i] | (i == FD_RW ? flags : 0), 0644);
		if (f->fd[side][i] < 0)
			BAD("open %s, flags %#x: %s", f->path[side], how[i], strerror(errno));
	}
}

void data_close(struct data_file *f, int side)
{
	int i;

	for (i = 0; i < FD_NR; i++) {
		if (f->fd[side][i] < 0)
			continue;
		if (close(f->fd[side][i]) < 0)
			BAD("close %s: %s", f->path[side], strerror(errno));
		f->fd[side][i] = -1;
	}
}

void data_compare(struct data_file *f, const unsigned char *got, int64_t off, int64_t n,
		  const char *what)
{
	const unsigned char *want = f->model + off;
	int64_t i, bad = 0, first = -1;

	if (!memcmp(got, want, n))
		return;
	for (i = 0; i < n; i++) {
		if (got[i] == want[i])
			continue;
		bad++;
		if (first < 0)
			first = i;
	}
	BAD("%s: %lld of %lld bytes at %lld differ, the first at %lld (%#llx): is %#x, should be %#x", what,
	    (long long)bad, (long long)n, (long long)off, (long long)(off + first),
	    (unsigned long long)(off + first), got[first], want[first]);
}

/* The model's half of everything that changes bytes or size. */
static void model_grow(struct data_file *f, int64_t end)
{
	if (end > f->size)
		f->size = end;
}

static void model_zero(struct data_file *f, int64_t off, int64_t end)
{
	end = min64(end, f->size);
	if (off < end)
		memset(f->model + off, 0, end - off);
}

static void model_truncate(struct data_file *f, int64_t size)
{
	if (size < f->size)
		memset(f->model + size, 0, f->size - size);
	f->size = size;
}

/* @side changed the file: the mappings of the others are of what was. */
static void changed(struct data_file *f, int side)
{
	int i;

	for (i = 0; i < data.sides; i++)
		if (i != side)
			f->stale[i] = !data.one_memory;
}

static void unmap(struct data_file *f, int side)
{
	if (!f->map[side])
		return;
	if (munmap(f->map[side], data.max) < 0)
		BAD("munmap: %s", strerror(errno));
	f->map[side] = NULL;
	f->dirty[side] = false;
}

void data_settle(struct data_file *f, int side, uint64_t how)
{
	if (!f->dirty[side])
		return;
	switch (how % 4) {
	case 0:
		if (msync(f->map[side], data.max, MS_SYNC) < 0)
			BAD("msync: %s", strerror(errno));
		break;
	case 1:
		unmap(f, side);
		break;
	case 2:
		if (fsync(f->fd[side][FD_RW]) < 0)
			BAD("fsync: %s", strerror(errno));
		break;
	default:
		data_close(f, side);
		data_open(f, side, 0);
	}
	f->dirty[side] = false;
}

static unsigned char *map_of(struct data_file *f, int side)
{
	if (f->map[side] && f->stale[side])
		unmap(f, side);
	if (!f->map[side]) {
		if (f->stale[side]) {
			data_close(f, side);
			data_open(f, side, 0);
		}
		f->map[side] = mmap(NULL, data.max, PROT_READ | PROT_WRITE, MAP_SHARED,
				    f->fd[side][FD_RW], 0);
		if (f->map[side] == MAP_FAILED) {
			f->map[side] = NULL;
			BAD("mmap: %s", strerror(errno));
		}
		f->stale[side] = false;
	}
	return f->map[side];
}

/* Cuts @n bytes at @buf in up to four, at multiples of @unit: O_DIRECT wants each piece aligned. */
static int cut(struct iovec *iov, unsigned char *buf, int64_t n, int unit, uint64_t arg)
{
	int parts = 1 + arg % 4, i;

	for (i = 0; i < parts; i++) {
		int64_t k = i == parts - 1 ? n : (int64_t)((arg >> (8 + 13 * i)) % (n + 1));

		if (i < parts - 1)
			k -= k % unit;
		iov[i].iov_base = buf;
		iov[i].iov_len = k;
		buf += k;
		n -= k;
	}
	return parts;
}

static void seek_to(int fd, int64_t off)
{
	if (lseek(fd, off, SEEK_SET) != off)
		BAD("lseek to %lld: %s", (long long)off, strerror(errno));
}

static ssize_t read_by(int fd, unsigned char *buf, int64_t n, int64_t off, int unit,
			uint64_t arg)
{
	struct iovec iov[4];
	uint64_t rest = arg >> 2;

	switch (arg & 3) {
	case 0:
		return preadv(fd, iov, cut(iov, buf, n, unit, rest), off);
	case 1:
		seek_to(fd, off);
		return rest & 1 ? read(fd, buf, n) : readv(fd, iov, cut(iov, buf, n, unit, rest));
	default:
		return pread(fd, buf, n, off);
	}
}

static ssize_t write_by(int fd, unsigned char *buf, int64_t n, int64_t off, int unit,
			uint64_t arg)
{
	struct iovec iov[4];
	uint64_t rest = arg >> 2;

	switch (arg & 3) {
	case 0:
		return pwritev(fd, iov, cut(iov, buf, n, unit, rest), off);
	case 1:
		seek_to(fd, off);
		return rest & 1 ? write(fd, buf, n) : writev(fd, iov, cut(iov, buf, n, unit, rest));
	default:
		return pwrite(fd, buf, n, off);
	}
}

static void do_read(struct data_file *f, const struct data_op *op, enum data_fd which)
{
	int64_t want = op->off < f->size ? min64(op->len, f->size - op->off) : 0;
	ssize_t r;

	memset(data.buf, 0xee, op->len);
	r = read_by(f->fd[op->side][which], data.buf, op->len, op->off,
		    which == FD_DIRECT ? PAGE : 1, op->arg);
	if (r < 0)
		BAD("read: %s", strerror(errno));
	if (r != want)
		BAD("read of %lld at %lld returned %zd, should be %lld", (long long)op->len,
		    (long long)op->off, r,
		    (long long)want);
	data_compare(f, data.buf, op->off, r, "read");
}

static void do_write(struct data_file *f, const struct data_op *op, enum data_fd which)
{
	ssize_t r;

	rnd_fill(data.buf, op->len, op->off, op->n);
	r = write_by(f->fd[op->side][which], data.buf, op->len, op->off,
		     which == FD_DIRECT ? PAGE : 1, op->arg);
	if (r < 0)
		BAD("write: %s", strerror(errno));
	if (r != op->len)
		BAD("write of %lld at %lld returned %zd", (long long)op->len, (long long)op->off,
		    r);
	if (!r)
		return;
	memcpy(f->model + op->off, data.buf, r);
	model_grow(f, op->off + r);
	changed(f, op->side);
}

static void do_append(struct data_file *f, const struct data_op *op)
{
	int64_t n = min64(op->len, data.max - f->size), at = f->size;
	int fd = f->fd[op->side][FD_APPEND];
	struct iovec iov[4];
	ssize_t r;

	if (!n)
		return;
	rnd_fill(data.buf, n, at, op->n);
	/* Wherever the descriptor stands. */
	seek_to(fd, op->off);
	if (op->arg & 1)
		r = write(fd, data.buf, n);
	else
		r = writev(fd, iov, cut(iov, data.buf, n, 1, op->arg >> 1));
	if (r != n)
		BAD("O_APPEND write of %lld returned %zd, errno %d", (long long)n, r, errno);
	memcpy(f->model + at, data.buf, n);
	model_grow(f, at + n);
	changed(f, op->side);
	if (lseek(fd, 0, SEEK_CUR) != f->size)
		BAD("after an O_APPEND write the offset is %lld, should be %lld",
		    (long long)lseek(fd, 0, SEEK_CUR),
		    (long long)f->size);
}

/* What was so at the start stays so. */
static void no_mapping(struct data_file *f, const struct data_op *op)
{
	void *p = mmap(NULL, data.max, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd[op->side][FD_RW], 0);

	if (p != MAP_FAILED || errno != ENODEV)
		BAD("mmap: should be ENODEV as it was at the start, is errno %d", p == MAP_FAILED ? errno : 0);
}

static void do_mapread(struct data_file *f, const struct data_op *op)
{
	int64_t n = op->off < f->size ? min64(op->len, f->size - op->off) : 0;
	int64_t page_end = (f->size + PAGE - 1) / PAGE * PAGE, i;
	unsigned char *p;

	if (!n)
		return;
	p = map_of(f, op->side);
	memcpy(data.buf, p + op->off, n);
	data_compare(f, data.buf, op->off, n, "mapped read");
	for (i = f->size; i < page_end; i++)
		if (p[i])
			BAD("mapped byte %lld behind the end, %lld, is %#x", (long long)i,
			    (long long)f->size, p[i]);
}

static void do_mapwrite(struct data_file *f, const struct data_op *op)
{
	int64_t n = op->off < f->size ? min64(op->len, f->size - op->off) : 0;

	if (!n)
		return;
	rnd_fill(data.buf, n, op->off, op->n);
	memcpy(map_of(f, op->side) + op->off, data.buf, n);
	memcpy(f->model + op->off, data.buf, n);
	f->dirty[op->side] = !data.one_memory;
	changed(f, op->side);
}

static void do_truncate(struct data_file *f, const struct data_op *op)
{
	int r;

	if (op->arg & 1)
		r = truncate(f->path[op->side], op->off);
	else
		r = ftruncate(f->fd[op->side][FD_RW], op->off);
	if (r < 0)
		BAD("truncate: %s", strerror(errno));
	model_truncate(f, op->off);
	changed(f, op->side);
}

static int falloc_mode(enum data_kind kind)
{
	switch (kind) {
	case OP_ALLOC_KEEP:
		return FALLOC_FL_KEEP_SIZE;
	case OP_PUNCH:
		return FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	case OP_ZERO:
		return FALLOC_FL_ZERO_RANGE;
	case OP_ZERO_KEEP:
		return FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
	default:
		return 0;
	}
}

static void do_falloc(struct data_file *f, const struct data_op *op)
{
	int mode = falloc_mode(op->kind), r;

	if (!op->len)
		return;
	r = fallocate(f->fd[op->side][FD_RW], mode, op->off, op->len);
	if (!data.have[op->kind]) {
		if (r >= 0 || errno != EOPNOTSUPP)
			BAD("fallocate mode %d: should be EOPNOTSUPP as it was at the start, is %d errno %d", mode, r,
			    errno);
		return;
	}
	if (r < 0)
		BAD("fallocate mode %d: %s", mode, strerror(errno));
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		model_zero(f, op->off, op->off + op->len);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		model_grow(f, op->off + op->len);
	changed(f, op->side);
}

static void do_copy(struct data_file *from, struct data_file *to, const struct data_op *op)
{
	int64_t n = op->off < from->size ? min64(op->len, from->size - op->off) : 0;
	bool overlap = from == to && op->off2 + n > op->off && op->off2 < op->off + n;
	loff_t in = op->off, out = op->off2;
	int64_t done = 0;
	ssize_t r = 0;

	while (done < n || !n) {
		r = copy_file_range(from->fd[op->side][FD_RW], &in, to->fd[op->side][FD_RW], &out,
				    op->len - done, 0);
		if (r <= 0)
			break;
		done += r;
		if (done > n || in != op->off + done || out != op->off2 + done)
			BAD("copy_file_range: %lld of %lld done, the offsets are %lld and %lld",
			    (long long)done,
			    (long long)n, (long long)in, (long long)out);
	}
	if (overlap) {
		if (r >= 0 || errno != EINVAL)
			BAD("copy_file_range onto itself: should be EINVAL, is %zd errno %d", r,
			    errno);
		return;
	}
	if (r < 0)
		BAD("copy_file_range: %s", strerror(errno));
	if (done != n)
		BAD("copy_file_range ended after %lld of %lld bytes", (long long)done,
		    (long long)n);
	if (!n)
		return;
	memmove(to->model + op->off2, from->model + op->off, n);
	model_grow(to, op->off2 + n);
	changed(to, op->side);
}

static void do_sync(struct data_file *f, const struct data_op *op)
{
	int fd = f->fd[op->side][FD_RW], r;

	switch (op->arg % 8) {
	case 0:
	case 1:
		r = fsync(fd);
		break;
	case 2:
	case 3:
		r = fdatasync(fd);
		break;
	case 4:
		r = syncfs(fd);
		break;
	default:
		r = sync_file_range(fd, op->off, op->len,
				    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				    SYNC_FILE_RANGE_WAIT_AFTER);
	}
	if (r < 0)
		BAD("sync, variant %d: %s", (int)(op->arg % 8), strerror(errno));
	if (op->arg % 8 < 4)
		f->dirty[op->side] = false;
}

static void do_reopen(struct data_file *f, const struct data_op *op)
{
	bool trunc = op->arg % 16 == 0;

	/* A mapping outlives the descriptor it was made of. */
	data_close(f, op->side);
	data_open(f, op->side, trunc ? O_TRUNC : 0);
	if (trunc) {
		model_truncate(f, 0);
		changed(f, op->side);
	}
}

/* Whether the model has only zeros there. */
static bool all_zero(struct data_file *f, int64_t off, int64_t end)
{
	while (off < end && !f->model[off])
		off++;
	return off >= end;
}

/* Holes may be reported as data, never data as holes. */
static void do_seek(struct data_file *f, const struct data_op *op)
{
	int fd = f->fd[op->side][FD_RW];
	off_t d = lseek(fd, op->off, SEEK_DATA), h;
	int err = errno;

	if (d < 0 && err != ENXIO)
		BAD("SEEK_DATA: %s", strerror(err));
	if (d >= 0 && (d < op->off || d >= f->size))
		BAD("SEEK_DATA from %lld is %lld, the end is %lld", (long long)op->off,
		    (long long)d,
		    (long long)f->size);
	if (!all_zero(f, op->off, d < 0 ? f->size : d))
		BAD("SEEK_DATA from %lld is %lld, but there is data before it", (long long)op->off,
		    (long long)d);
	h = lseek(fd, op->off, SEEK_HOLE);
	if (op->off >= f->size) {
		if (h >= 0 || errno != ENXIO)
			BAD("SEEK_HOLE from %lld, behind the end %lld: should be ENXIO, is %lld",
			    (long long)op->off,
			    (long long)f->size, (long long)h);
		return;
	}
	if (h < op->off || h > f->size)
		BAD("SEEK_HOLE from %lld is %lld, the end is %lld", (long long)op->off,
		    (long long)h,
		    (long long)f->size);
	if (h < f->size && f->model[h])
		BAD("SEEK_HOLE from %lld is %lld, but there is data", (long long)op->off,
		    (long long)h);
	if (d == op->off ? h == op->off : h != op->off)
		BAD("at %lld: SEEK_DATA is %lld and SEEK_HOLE is %lld", (long long)op->off,
		    (long long)d, (long long)h);
}

static void do_fadvise(struct data_file *f, const struct data_op *op)
{
	static const int advice[] = { POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED, POSIX_FADV_WILLNEED,
				      POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL, POSIX_FADV_NORMAL };
	int r = posix_fadvise(f->fd[op->side][FD_RW], op->off, op->len, advice[op->arg % 6]);

	if (r)
		BAD("posix_fadvise %d: %s", advice[op->arg % 6], strerror(r));
}

void data_exec(const struct data_op *op)
{
	struct data_file *f = &data.file[op->file], *other = &data.file[!op->file];
	int i;

	for (i = 0; i < data.sides; i++) {
		if (i == op->side)
			continue;
		data_settle(f, i, op->arg >> 40);
		if (op->kind == OP_COPY_TO)
			data_settle(other, i, op->arg >> 42);
	}
	switch (op->kind) {
	case OP_READ:
		do_read(f, op, FD_RW);
		break;
	case OP_WRITE:
		do_write(f, op, FD_RW);
		break;
	case OP_APPEND:
		do_append(f, op);
		break;
	case OP_DREAD:
		if (data.have[OP_DREAD])
			do_read(f, op, FD_DIRECT);
		break;
	case OP_DWRITE:
		if (data.have[OP_DREAD])
			do_write(f, op, FD_DIRECT);
		break;
	case OP_MAPREAD:
	case OP_MAPWRITE:
		if (!data.have[op->kind])
			no_mapping(f, op);
		else if (op->kind == OP_MAPREAD)
			do_mapread(f, op);
		else
			do_mapwrite(f, op);
		break;
	case OP_MSYNC:
		data_settle(f, op->side, 0);
		break;
	case OP_MUNMAP:
		unmap(f, op->side);
		break;
	case OP_TRUNC:
		do_truncate(f, op);
		break;
	case OP_ALLOC:
	case OP_ALLOC_KEEP:
	case OP_PUNCH:
	case OP_ZERO:
	case OP_ZERO_KEEP:
		do_falloc(f, op);
		break;
	case OP_COPY:
		do_copy(f, f, op);
		break;
	case OP_COPY_TO:
		do_copy(f, other, op);
		break;
	case OP_SYNC:
		do_sync(f, op);
		break;
	case OP_REOPEN:
		do_reopen(f, op);
		break;
	case OP_SEEK:
		do_seek(f, op);
		break;
	case OP_FADVISE:
		do_fadvise(f, op);
		break;
	case OP_STAT:
	case OP_NR:
		/* dataops.c looks at the size after every operation. */
		break;
	}
	data.done[op->kind]++;
}

void data_probe(void)
{
	struct data_file *f = &data.file[0];
	int fd = open(f->path[0], O_RDWR | O_CREAT | O_TRUNC, 0644), i;
	void *p;

	if (fd < 0 || pwrite(fd, data.buf, 2 * PAGE, 0) != 2 * PAGE)
		rnd_die("%s: %s", f->path[0], strerror(errno));
	for (i = 0; i < OP_NR; i++)
		data.have[i] = true;
	for (i = OP_ALLOC; i <= OP_ZERO_KEEP; i++) {
		if (fallocate(fd, falloc_mode(i), 0, PAGE) == 0)
			continue;
		if (errno != EOPNOTSUPP)
			rnd_fail("fallocate mode %d: %s", falloc_mode(i), strerror(errno));
		data.have[i] = false;
	}
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		munmap(p, PAGE);
	else if (errno == ENODEV)
		data.have[OP_MAPREAD] = data.have[OP_MAPWRITE] = false;
	else
		rnd_fail("mmap: %s", strerror(errno));
	close(fd);
	fd = open(f->path[0], O_RDWR | O_DIRECT);
	if (fd < 0 && errno == EINVAL)
		data.have[OP_DREAD] = data.have[OP_DWRITE] = false;
	else if (fd < 0)
		rnd_fail("open with O_DIRECT: %s", strerror(errno));
	else
		close(fd);
	for (i = 0; i < OP_NR; i++)
		if (!data.have[i])
			printf("# LEFT OUT, the file system does not have it: %s\n", data_names[i]);
}
