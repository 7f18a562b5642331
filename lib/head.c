// SPDX-License-Identifier: LGPL-2.1
/*
 * head.c - files whose bytes are with the manager ("Stuffed files" in docs/protocol.md).
 *
 * Whether a file is stuffed is found out by asking: what was stuffed may have been striped since,
 * by anyone; never the other way round. -EREMCHG says so here: go to the I/O daemons.
 */
#include "lib.h"
#include <fcntl.h>
#include <stdlib.h>

/* lib_head_is - may the file be stuffed? */
bool lib_head_is(struct inode *ino)
{
	bool striped;

	pthread_mutex_lock(&ino->lock);
	striped = ino->striped;
	pthread_mutex_unlock(&ino->lock);
	return !striped;
}

/* What the manager says of the file in an answer about its head. */
static int take(struct pvfs_file *f, const struct pvfs_attr *attr)
{
	if (!pvfs_layout_valid(&attr->layout, f->fs->niods))
		return -EIO;
	lib_inode_update(f->inode, attr);
	return 0;
}

static u32 stuff_max(struct inode *ino)
{
	u32 max;

	pthread_mutex_lock(&ino->lock);
	max = ino->layout.stuff_max;
	pthread_mutex_unlock(&ino->lock);
	return max;
}

static int read_once(struct pvfs_file *f, u8 *buf, u32 room, u64 *ret_size, u32 *ret_generation)
{
	struct iovec in = { .iov_base = buf, .iov_len = room };
	struct pvfs_head_read_req req = { .fid = f->inode->fid };
	struct pvfs_head_read_rep rep;
	u8 body[REP_MAX];
	u32 got = 0;
	int err;

	*ret_generation = lib_file_cap(f, &req.cap);
	err = MGR_CALL_IN(f->fs, HEAD_READ, head_read, &req, &rep, body, &in, &got);
	err = err ?: take(f, &rep.attr);
	if (err)
		return err;
	if (!(rep.attr.flags & PVFS_AF_STUFFED))
		return -EREMCHG;
	*ret_size = rep.attr.size;
	return got == rep.attr.size ? 0 : -EIO;
}

/**
 * lib_head_read - read from a file that may be stuffed
 * @iov: @n pieces of memory
 *
 * Return: bytes read, 0 at the end, -EREMCHG: it is striped, or another -errno.
 */
ssize_t lib_head_read(struct pvfs_file *f, const struct iovec *iov, int n, u64 off)
{
	u8 *buf = malloc(PVFS_STUFF_MAX);
	u64 size = 0, at = off;
	u32 generation;
	int err, i;

	if (!buf)
		return -ENOMEM;
	err = read_once(f, buf, PVFS_STUFF_MAX, &size, &generation);
	if (lib_session_refused(f->fs, err, generation))
		err = read_once(f, buf, PVFS_STUFF_MAX, &size, &generation);
	for (i = 0; !err && i < n && at < size; i++) {
		size_t k = min((u64)iov[i].iov_len, size - at);

		memcpy(iov[i].iov_base, buf + at, k);
		at += k;
	}
	free(buf);
	return err ?: (ssize_t)(at - off);
}

static int write_once(struct pvfs_file *f, const void *buf, u32 len, u64 off, u32 flags,
		      u32 *ret_generation)
{
	struct iovec out = { .iov_base = (void *)buf, .iov_len = len };
	struct pvfs_head_write_req req = { .fid = f->inode->fid, .flags = flags, .off = off };
	struct pvfs_head_write_rep rep;
	u8 body[REP_MAX];
	int err;

	*ret_generation = lib_file_cap(f, &req.cap);
	err = MGR_CALL_DATA(f->fs, HEAD_WRITE, head_write, &req, &rep, body, &out, NULL, NULL);
	err = err ?: take(f, &rep.attr);
	return err ?: rep.done ? 0 : -EREMCHG;
}

static int unstuff_once(struct pvfs_file *f, u32 *ret_generation)
{
	struct pvfs_unstuff_req req = { .fid = f->inode->fid };
	struct pvfs_unstuff_rep rep;
	u8 body[REP_MAX];
	int err;

	*ret_generation = lib_file_cap(f, &req.cap);
	err = MGR_CALL(f->fs, UNSTUFF, unstuff, &req, &rep, body);
	return err ?: take(f, &rep.attr);
}

/**
 * lib_unstuff - what comes next needs datafiles
 * @f: open for writing
 *
 * Return: 0 (also when it is striped already) or -errno, with the file as it was.
 */
int lib_unstuff(struct pvfs_file *f)
{
	u32 generation;
	int err;

	if (!lib_head_is(f->inode))
		return 0;
	err = unstuff_once(f, &generation);
	if (lib_session_refused(f->fs, err, generation))
		err = unstuff_once(f, &generation);
	return err;
}

/**
 * lib_head_write - write to a file that may be stuffed
 * @iov: @n pieces of memory
 * @off: where; ignored with @append: the manager knows where the end is
 *
 * What does not fit a head unstuffs the file.
 *
 * Return: bytes written, all of them; -EREMCHG: it is striped, and nothing was written; or -errno.
 */
ssize_t lib_head_write(struct pvfs_file *f, const struct iovec *iov, int n, u64 off, bool append)
{
	u32 flags = append ? PVFS_HW_APPEND : 0, max, generation;
	u64 len = 0;
	bool keep;
	u8 *buf;
	int err, i;

	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (!lib_head_is(f->inode))
		return -EREMCHG;
	if (!len)
		return 0;
	max = stuff_max(f->inode);
	keep = !(f->flags & O_DIRECT) && len <= max && (append || off <= max - len);
	if (!keep)
		return lib_unstuff(f) ?: -EREMCHG;
	buf = malloc(len);
	if (!buf)
		return -ENOMEM;
	for (i = 0, len = 0; i < n; i++) {
		memcpy(buf + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	err = write_once(f, buf, len, append ? 0 : off, flags, &generation);
	/* EIO: it may have been done in a session that is over. At its place it is done again. */
	if (lib_session_refused(f->fs, err == -EIO && !append ? -ESTALE : err, generation))
		err = write_once(f, buf, len, append ? 0 : off, flags, &generation);
	free(buf);
	return err ?: (ssize_t)len;
}
