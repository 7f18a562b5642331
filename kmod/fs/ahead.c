// SPDX-License-Identifier: GPL-2.0
/*
 * ahead.c - reading ahead of who does not read on: backward, or a part of every so many bytes.
 *
 * Who reads on is known to the kernel's own read-ahead; to that all else is random, and each part of it is
 * waited for. Here the last reads of a descriptor are looked at: of who comes a third time by the same step the
 * next ones are asked for, more and more as he goes on, half of them while he is at the other half. Steps without
 * a gap are asked for in one piece.
 */
#include <linux/pagemap.h>
#include "vfs.h"

#define AHEAD_SURE 2u		/* steps alike before it is believed */
#define AHEAD_FIRST 4u		/* steps that are asked for first */
#define AHEAD_APART 32u		/* at most, where each is a request of its own */

/* What is to be asked for: @n times @len bytes, each @step behind the last. */
struct ahead {
	loff_t pos;
	loff_t step;
	size_t len;
	u64 n;
};

/* More than this is not kept for one descriptor. */
static u64 ahead_most(const struct file *file, loff_t step, size_t len)
{
	u64 bytes = (u64)file->f_ra.ra_pages * PAGE_SIZE, one = max_t(u64, len, PAGE_SIZE);

	if (abs(step) <= len)		/* in one piece */
		return div64_u64(bytes, abs(step));
	return min_t(u64, div64_u64(bytes, one), AHEAD_APART);
}

/* Return: whether there is anything. The descriptor's lock is held. */
static bool ahead_look(struct pvfs_ahead *a, const struct file *file, loff_t pos, size_t len,
		       struct ahead *ret)
{
	loff_t step = pos - a->pos, size = i_size_read(file_inode(file));
	bool alike = step == a->step && len == a->len;
	u64 most, left, room;

	a->pos = pos;
	a->len = len;
	a->step = step;
	if (!alike || !step || step == len) {
		a->alike = 0;
		return false;
	}
	if (a->alike++ < AHEAD_SURE)
		a->n = AHEAD_FIRST / 2;
	if (a->alike < AHEAD_SURE)
		return false;
	if (a->alike == AHEAD_SURE)
		a->upto = pos;			/* has been asked for, by himself */
	most = ahead_most(file, step, len);
	/* So many steps are asked for, and not yet read. */
	left = step > 0 ? max_t(loff_t, a->upto - pos, 0) : max_t(loff_t, pos - a->upto, 0);
	left = div64_u64(left, abs(step));
	if (left > a->n / 2)
		return false;
	if (!left)
		a->upto = pos;
	a->n = min(2 * a->n, most);
	room = step > 0 ? (size > a->upto ? size - 1 - a->upto : 0) : a->upto;
	*ret = (struct ahead){ .pos = a->upto + step, .step = step, .len = len,
			       .n = min(a->n > left ? a->n - left : 0, div64_u64(room, abs(step))) };
	a->upto += (loff_t)ret->n * step;
	return ret->n;
}

static void ahead_ask(struct file *file, loff_t pos, u64 len)
{
	struct address_space *mapping = file->f_mapping;
	loff_t end = min_t(loff_t, pos + len, i_size_read(mapping->host));
	pgoff_t first = pos >> PAGE_SHIFT;
	struct folio *there;

	DEFINE_READAHEAD(ractl, file, &file->f_ra, mapping, first);
	if (pos >= end)
		return;
	/* Nor is a lock taken for who reads again what is in memory. */
	there = pvfs_folio_there(mapping, first);
	if (there) {
		folio_put(there);
		return;
	}
	page_cache_ra_unbounded(&ractl, ((end - 1) >> PAGE_SHIFT) - first + 1, 0);
	pvfs_count(PVFS_VOL(mapping->host), PVFS_CNT_AHEAD, end - pos);
}

/**
 * pvfs_read_ahead - a read is about to be made from the page cache
 * @file: the file
 * @pos: where
 * @len: bytes
 */
void pvfs_read_ahead(struct file *file, loff_t pos, size_t len)
{
	struct pvfs_file *pf = file->private_data;
	struct pvfs_ahead *a = &pf->ahead;
	struct ahead next;
	bool ask = false;

	/* POSIX_FADV_RANDOM; and none was wanted at all. */
	if ((file->f_mode & FMODE_RANDOM) || !file->f_ra.ra_pages || !len)
		return;
	/* Who reads through it with several threads has no pattern that could be known. */
	if (spin_trylock(&a->lock)) {
		ask = ahead_look(a, file, pos, len, &next);
		spin_unlock(&a->lock);
	}
	if (!ask)
		return;
	WRITE_ONCE(a->asking, true);
	if (abs(next.step) <= next.len) {
		if (next.step < 0)
			next.pos += (loff_t)(next.n - 1) * next.step;
		ahead_ask(file, next.pos, (next.n - 1) * abs(next.step) + next.len);
	} else {
		for (; next.n && !fatal_signal_pending(current); next.n--, next.pos += next.step)
			ahead_ask(file, next.pos, next.len);
	}
	WRITE_ONCE(a->asking, false);
}
