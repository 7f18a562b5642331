// SPDX-License-Identifier: GPL-2.0
/*
 * head.c - files whose bytes are with the manager: a transfer is one exchange with it.
 *
 * Whether a file is stuffed is known from its attributes, and may be out of date: what was stuffed
 * may have been striped since, by anyone; never the other way round. The answer tells, and the
 * transfer then goes to the iods. -EREMCHG says so here.
 *
 * Under a lease a version of the file has the same bytes for as long as the lease is good: what comes
 * goes into the page cache, and reads are served from there.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include "meta.h"

#define SESSION_TRIES 5

META_DATA(HEAD_READ, head_read)
META_DATA(HEAD_WRITE, head_write)
META(UNSTUFF, unstuff)

/* ---------------------------------------------------------------- reading */

void pvfs_head_free(struct pvfs_head_mem *h)
{
	if (!h)
		return;
	while (h->n)
		put_page(h->bv[--h->n].bv_page);
	kfree(h);
}

/**
 * pvfs_head_alloc - memory for a head that is about to be asked for
 * @len: bytes
 * @gfp: how
 *
 * Return: for pvfs_head_free(), or NULL.
 */
struct pvfs_head_mem *pvfs_head_alloc(u32 len, gfp_t gfp)
{
	struct pvfs_head_mem *h = kzalloc(sizeof(*h), gfp);
	struct page *page;

	while (h && h->n * PAGE_SIZE < len) {
		page = alloc_page(gfp);
		if (!page) {
			pvfs_head_free(h);
			return NULL;
		}
		h->bv[h->n++] = (struct bio_vec){ .bv_page = page, .bv_len = PAGE_SIZE };
	}
	return h;
}

/* May they go into the page cache? mapping->invalidate_lock is held exclusively. */
static bool head_may_keep(struct inode *inode, const struct pvfs_attr *attr)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	spin_lock(&pi->lock);
	ret = !pi->striped && pi->attr.version == attr->version && pvfs_inode_leased(inode);
	if (ret && pi->cache_version != pi->attr.version) {
		ret = !inode->i_mapping->nrpages;
		if (ret)
			pi->cache_version = pi->attr.version;
	}
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_head_keep - a head has come: its pages become the file's, for reads to come
 * @inode: the file; the attributes have been taken in
 * @h: the head; its pages are not to be written to any more
 * @attr: what came with it
 *
 * Only under a lease on this version of the file, and not beside writes of our own: they hold
 * invalidate_lock while they throw pages away and are under way.
 */
void pvfs_head_keep(struct inode *inode, struct pvfs_head_mem *h, const struct pvfs_attr *attr)
{
	struct address_space *mapping = inode->i_mapping;
	u32 size = attr->size, i, end;

	if (!(attr->flags & PVFS_AF_LEASE) || !size || h->got != size)
		return;
	if (!down_write_trylock(&mapping->invalidate_lock))
		return;
	if (!head_may_keep(inode, attr))
		goto out;
	for (i = 0; i * PAGE_SIZE < size; i++) {
		struct folio *folio = page_folio(h->bv[i].bv_page);

		end = min_t(u32, size - i * PAGE_SIZE, PAGE_SIZE);
		folio_zero_segment(folio, end, PAGE_SIZE);
		if (filemap_add_folio(mapping, folio, i, GFP_NOFS))
			continue;	/* there is one */
		folio_mark_uptodate(folio);
		folio_unlock(folio);
	}
out:
	up_write(&mapping->invalidate_lock);
}

/**
 * pvfs_head_kept - can the file be read from the page cache, and is all of it there?
 * @inode: the file
 *
 * If a page goes before it is read, it is asked for.
 */
bool pvfs_head_kept(struct inode *inode)
{
	if (!pvfs_stuffed(inode) || !pvfs_inode_leased(inode))
		return false;
	return pvfs_cache_check(inode) &&
	       inode->i_mapping->nrpages >= DIV_ROUND_UP(i_size_read(inode), PAGE_SIZE);
}

/* Bytes of the head from io->pos on, @len of them, to the transfer's memory. */
static void head_copy(const struct pvfs_io *io, const struct pvfs_head_mem *h, u32 len)
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

/*
 * Pages of a file under a WRITE lease: another client may be waiting until they are written, and the mgr asks
 * nobody about the file.
 */
static bool head_gives(const struct pvfs_io *io)
{
	return io->fill && READ_ONCE(PVFS_I(io->inode)->wl.state) != PVFS_WL_NONE;
}

static int head_read_head(struct pvfs_io *io, const struct pvfs_cap *cap)
{
	struct pvfs_head_read_req m = { .fid = fid_of(io->inode), .cap = *cap };
	struct pvfs_volume *vol = PVFS_VOL(io->inode);
	struct pvfs_head_read_rep r;
	struct pvfs_head_mem *h;
	struct payload p = { };
	struct pvfs_ask ask;
	u64 size;
	int err;

	h = pvfs_head_alloc(PVFS_STUFF_MAX, GFP_NOFS);
	if (!h)
		return -ENOMEM;
	p.gives = head_gives(io);
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
		h->got = p.got;
		if (io->keep)
			pvfs_head_keep(io->inode, h, &r.attr);
	}
out:
	pvfs_head_free(h);
	return err;
}

/* ---------------------------------------------------------------- writing */

static int head_write_head(struct pvfs_io *io, const struct pvfs_cap *cap)
{
	struct pvfs_head_write_req m = {
		.fid = fid_of(io->inode), .off = io->append ? 0 : io->pos, .cap = *cap,
		.flags = io->append ? PVFS_HW_APPEND : 0,
	};
	struct payload p = {
		.bv = io->mem, .nbv = io->nmem, .len = io->len, .write = true, .gives = head_gives(io),
	};
	struct pvfs_head_write_rep r;
	struct pvfs_ask ask;
	int err;

	/* From the page cache: it stays what it is meanwhile. */
	if (io->fill)
		pvfs_flush_begin(io->inode);
	else
		pvfs_own_begin(io->inode);
	if (!io->fill && pvfs_wlease_wanted(io->inode))
		m.flags |= PVFS_HW_WLEASE;
	pvfs_lease_ask(PVFS_VOL(io->inode), &ask);
	err = data_head_write(PVFS_VOL(io->inode), META_ROOM, &m, &r, &p);
	err = pvfs_own_attr_result(io->inode, err, &r.attr, NULL);
	if (err)	/* it may have been made */
		pvfs_attr_distrust(io->inode);
	if (io->fill)
		pvfs_flush_end(io->inode);
	else
		pvfs_own_end(io->inode);
	if (err)
		return err;
	pvfs_wlease_take(io->inode, r.attr.flags, &ask);
	if (!r.done)
		return -EREMCHG;
	if (io->append && r.attr.size < io->len)
		return pvfs_bogus(PVFS_VOL(io->inode), "an append behind the end", m.fid.ino);
	if (io->append)
		io->pos = r.attr.size - io->len;
	io->good = io->len;
	return 0;
}

/* ---------------------------------------------------------------- either */

/**
 * pvfs_with_cap - an exchange with the mgr about a head
 * @inode: the file
 * @rights: PVFS_CAP_READ or PVFS_CAP_WRITE
 * @twice: it may be done twice: when its session ended under it nobody can say whether it was
 * @once: makes it, with the capability; again in a new session
 * @arg: for it
 *
 * Return: what @once returned; -EIO: nobody knows, or sessions keep ending.
 */
int pvfs_with_cap(struct inode *inode, u32 rights, bool twice,
		  int (*once)(struct inode *inode, const struct pvfs_cap *cap, void *arg), void *arg)
{
	struct pvfs_cap cap;
	unsigned int tries;
	u64 session;
	int err;

	for (tries = 0; tries < SESSION_TRIES; tries++) {
		err = pvfs_file_cap(inode, rights, &cap, &session);
		if (err)
			return err;
		err = once(inode, &cap, arg);
		if (err == -EIO && twice && READ_ONCE(PVFS_VOL(inode)->session) != session)
			continue;
		if (err != -EACCES || !pvfs_session_over(PVFS_VOL(inode), session))
			return err;
	}
	return -EIO;
}

/* @arg: u32, PVFS_US_* */
static int head_unstuff(struct inode *inode, const struct pvfs_cap *cap, void *arg)
{
	struct pvfs_unstuff_req m = { .fid = fid_of(inode), .cap = *cap, .flags = *(u32 *)arg };
	struct pvfs_unstuff_rep r;
	struct pvfs_ask ask;
	int err;

	if (!pvfs_stuffed(inode))
		return 0;
	pvfs_lease_ask(PVFS_VOL(inode), &ask);
	pvfs_own_begin(inode);
	err = meta_unstuff(PVFS_VOL(inode), META_ROOM, &m, &r);
	err = pvfs_own_changed(inode, err, &r.attr);
	if (!err)
		pvfs_wlease_take(inode, r.attr.flags, &ask);
	return err;
}

/**
 * pvfs_unstuff - what comes next needs datafiles
 * @inode: a file that is open for writing
 * @flags: PVFS_US_*
 *
 * Return: 0 (also when it is striped already) or -errno, with the file as it was.
 */
int pvfs_unstuff(struct inode *inode, u32 flags)
{
	if (!pvfs_stuffed(inode))
		return 0;
	return pvfs_with_cap(inode, PVFS_CAP_WRITE, true, head_unstuff, &flags);
}

static int head_transfer(struct inode *inode, const struct pvfs_cap *cap, void *arg)
{
	struct pvfs_io *io = arg;
	u32 none = 0;

	/* In a new session the lock is gone; and which end was asked for another's. */
	if (io->appender && !pvfs_append_holds(io->appender))
		return -EAGAIN;
	if (!io->write)
		return head_read_head(io, cap);
	/* Pages from before the session that @cap is of: others have gone on without them. */
	if (io->fill && pvfs_wlease_lost(inode))
		return -EIO;
	if (io->file && pvfs_locks_are_lost(io->file))
		return -EIO;
	if (io->pos + io->len > READ_ONCE(PVFS_I(inode)->layout.stuff_max))
		return head_unstuff(inode, cap, &none) ?: -EREMCHG;
	return head_write_head(io, cap);
}

/**
 * pvfs_head_run - a transfer of a file that may be stuffed
 * @io: filled. len may become smaller, when it is an append pos another
 *
 * Return: 0 with io->good filled; -EREMCHG: the iods are to be asked; or -errno.
 */
int pvfs_head_run(struct pvfs_io *io)
{
	int err = pvfs_with_cap(io->inode, io->write ? PVFS_CAP_WRITE : PVFS_CAP_READ,
				!io->append, head_transfer, io);

	/* The end that was asked for may have been moved by appends to the head. */
	return err == -EREMCHG && io->append ? -EAGAIN : err;
}
