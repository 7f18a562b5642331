// SPDX-License-Identifier: GPL-2.0
/*
 * head.c - files whose bytes are with the manager: a transfer is one exchange with it.
 *
 * Whether a file is stuffed is known from its attributes, and may be out of date: what was stuffed
 * may have been striped since, by anyone; never the other way round. The answer tells, and the
 * transfer then goes to the iods. -EREMCHG says so here.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "meta.h"

#define HEAD_PAGES (PVFS_STUFF_MAX / PAGE_SIZE + 1)
#define SESSION_TRIES 5

META_DATA(HEAD_READ, head_read)
META_DATA(HEAD_WRITE, head_write)
META(UNSTUFF, unstuff)

/* ---------------------------------------------------------------- reading */

/* Memory for a head that comes. */
struct head {
	struct bio_vec bv[HEAD_PAGES];
	unsigned int n;
};

static void head_free(struct head *h)
{
	while (h->n)
		__free_page(h->bv[--h->n].bv_page);
	kfree(h);
}

static struct head *head_alloc(u32 len)
{
	struct head *h = kzalloc(sizeof(*h), GFP_NOFS);
	struct page *page;
	u32 done;

	for (done = 0; h && done < len; done += PAGE_SIZE) {
		page = alloc_page(GFP_NOFS);
		if (!page) {
			head_free(h);
			return NULL;
		}
		h->bv[h->n++] = (struct bio_vec){
			.bv_page = page, .bv_len = min_t(u32, PAGE_SIZE, len - done),
		};
	}
	return h;
}

/* Bytes of the head from io->pos on, @len of them, to the transfer's memory. */
static void head_copy(const struct pvfs_io *io, const struct head *h, u32 len)
{
	const struct bio_vec *to = io->mem;
	u32 done = 0, skip = 0;

	while (done < len) {
		u32 at = io->pos + done, off = at % PAGE_SIZE;
		u32 n = min3(len - done, to->bv_len - skip, (u32)PAGE_SIZE - off);

		memcpy_page(to->bv_page, to->bv_offset + skip, h->bv[at / PAGE_SIZE].bv_page, off,
			    n);
		done += n;
		skip += n;
		if (skip == to->bv_len) {
			to++;
			skip = 0;
		}
	}
}

/* The rest of the transfer's memory: behind the end of the file. */
static void zero_rest(const struct pvfs_io *io, u32 from)
{
	const struct bio_vec *to = io->mem;
	u32 at = 0;

	for (; at < io->len; at += to->bv_len, to++) {
		u32 skip = from > at ? min(from - at, to->bv_len) : 0;

		memzero_page(to->bv_page, to->bv_offset + skip, to->bv_len - skip);
	}
}

static int read_head(struct pvfs_io *io, const struct pvfs_cap *cap)
{
	struct pvfs_head_read_req m = { .fid = fid_of(io->inode), .cap = *cap };
	struct pvfs_volume *vol = PVFS_VOL(io->inode);
	struct pvfs_head_read_rep r;
	struct payload p = { };
	struct pvfs_ask ask;
	struct head *h;
	u64 size;
	int err;

	h = head_alloc(PVFS_STUFF_MAX);
	if (!h)
		return -ENOMEM;
	p.bv = h->bv;
	p.nbv = h->n;
	p.len = PVFS_STUFF_MAX;
	pvfs_lease_ask(vol, &ask);
	err = data_head_read(vol, META_ROOM, &m, &r, &p);
	err = pvfs_own_attr_result(io->inode, err, &r.attr, &ask);
	if (err)
		goto out;
	size = r.attr.size;
	if (!(r.attr.flags & PVFS_AF_STUFFED)) {
		err = -EREMCHG;
	} else if (p.got != size) {
		err = pvfs_bogus(vol, "a head of another length", m.fid.ino);
	} else {
		io->good = io->pos < size ? min_t(u64, io->len, size - io->pos) : 0;
		head_copy(io, h, io->good);
		zero_rest(io, io->good);
	}
out:
	head_free(h);
	return err;
}

/* ---------------------------------------------------------------- writing */

static int write_head(struct pvfs_io *io, const struct pvfs_cap *cap)
{
	struct pvfs_head_write_req m = {
		.fid = fid_of(io->inode), .off = io->appender ? 0 : io->pos, .cap = *cap,
		.flags = io->appender ? PVFS_HW_APPEND : 0,
	};
	struct payload p = { .bv = io->mem, .nbv = io->nmem, .len = io->len, .write = true };
	struct pvfs_head_write_rep r;
	int err;

	err = data_head_write(PVFS_VOL(io->inode), META_ROOM, &m, &r, &p);
	err = pvfs_own_attr_result(io->inode, err, &r.attr, NULL);
	if (err)
		return err;
	if (!r.done)
		return -EREMCHG;
	if (io->appender)
		io->pos = r.attr.size - io->len;
	io->good = io->len;
	return 0;
}

static int unstuff(struct inode *inode, const struct pvfs_cap *cap)
{
	struct pvfs_unstuff_req m = { .fid = fid_of(inode), .cap = *cap };
	struct pvfs_unstuff_rep r;
	int err;

	err = meta_unstuff(PVFS_VOL(inode), META_ROOM, &m, &r);
	return pvfs_own_attr_result(inode, err, &r.attr, NULL);
}

/* ---------------------------------------------------------------- either */

/**
 * pvfs_unstuff - what comes next needs datafiles
 * @inode: a file that is open for writing
 *
 * Return: 0 (also when it is striped already) or -errno, with the file as it was.
 */
int pvfs_unstuff(struct inode *inode)
{
	struct pvfs_cap cap;
	unsigned int tries;
	u64 session;
	int err;

	for (tries = 0; tries < SESSION_TRIES; tries++) {
		if (!pvfs_stuffed(inode))
			return 0;
		err = pvfs_file_cap(inode, PVFS_CAP_WRITE, &cap, &session);
		if (err)
			return err;
		pvfs_attr_distrust(inode);
		err = unstuff(inode, &cap);
		if (err != -EACCES || !pvfs_session_over(inode, session))
			return err;
	}
	return -EIO;
}

static int run_once(struct pvfs_io *io, const struct pvfs_cap *cap)
{
	struct pvfs_inode *pi = PVFS_I(io->inode);

	if (!io->write)
		return read_head(io, cap);
	/* Attributes that were asked for before are old when this is done. */
	pvfs_attr_distrust(io->inode);
	if (io->pos + io->len > READ_ONCE(pi->layout.stuff_max))
		return unstuff(io->inode, cap) ?: -EREMCHG;
	return write_head(io, cap);
}

/**
 * pvfs_head_run - a transfer of a file that may be stuffed
 * @io: filled. len may become smaller, when it is an append pos another
 *
 * Memory behind the end of the file is zeroed.
 *
 * Return: 0 with io->good filled; -EREMCHG: the iods are to be asked; or -errno.
 */
int pvfs_head_run(struct pvfs_io *io)
{
	struct pvfs_cap cap;
	unsigned int tries;
	u64 session;
	int err;

	for (tries = 0; tries < SESSION_TRIES; tries++) {
		err = pvfs_file_cap(io->inode, io->write ? PVFS_CAP_WRITE : PVFS_CAP_READ, &cap,
				    &session);
		if (err)
			return err;
		/* In a new session the lock is gone; and which end was asked for another's. */
		if (io->appender && !pvfs_append_holds(io->appender))
			return -EAGAIN;
		err = run_once(io, &cap);
		if (err != -EACCES || !pvfs_session_over(io->inode, session))
			break;
	}
	/* The end that was asked for may have been moved by appends to the head. */
	if (err == -EREMCHG && io->appender)
		return -EAGAIN;
	return err;
}
