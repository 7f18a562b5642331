// SPDX-License-Identifier: GPL-2.0
/*
 * cache.c - the page cache, which serves mmap, exec, reads while nobody else writes, and writes while
 * nobody else reads: filling it, also ahead of the reader, and throwing it away when the file is another.
 * writeback.c brings to the iods what was written to it.
 *
 * Pages are of one version of the file (pvfs_inode.cache_version). They are right when the file is opened
 * (pvfs_cache_check()), while there is a lease on that version, or to write, which is when read(2) takes
 * them (pvfs_cache_reads()), and after a write of this client (pvfs_cache_drop()); a write of another client
 * shows in a mapping at the next open. What is stored in a mapping, or written under a lease, goes to the
 * iods at msync and fsync, at or behind munmap, close and exit (late.c), before a read or write of this client that may touch
 * it and goes past the cache, and when memory is wanted.
 *
 * Without a lease, and in large calls, write(2) goes past the cache. So that a page which was filled before
 * such a write is not written back after it, a page becomes dirty only while none is under way: such writers
 * hold i_rwsem, and the mapping's invalidate_lock shared from throwing the pages away to the iods' answer;
 * page_mkwrite (mmap.c) takes this one exclusively, and who writes to the cache the other. A truncation holds both
 * exclusively.
 *
 * The kernel's own waits for pages that are being written cannot be ended; an iod may be away for long.
 * So whoever can be killed waits here first, see cache_wait_written().
 */
#include <linux/highmem.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/slab.h>
#include <linux/writeback.h>
#include "vfs.h"

/*
 * So few bytes are only wanted by who waits for them anyway: then it is cheaper to receive them here
 * than to be woken by who does.
 */
#define WAIT_BYTES 16384u

/**
 * pvfs_cache_fill - read what a page is to hold
 * @inode: the file
 * @folio: the page, locked; up to date on success, and still locked in any case
 *
 * Return: 0, -EINTR (killed), or another -errno.
 */
int pvfs_cache_fill(struct inode *inode, struct folio *folio)
{
	struct pvfs_io *io;
	int err;

	do {
		io = pvfs_io_get(inode, false, folio_pos(folio), folio_size(folio), true);
		if (IS_ERR(io)) {
			err = PTR_ERR(io);
			break;
		}
		io->mem[0] = (struct bio_vec){ .bv_page = folio_page(folio, 0),
					       .bv_len = folio_size(folio) };
		io->nmem = 1;
		err = pvfs_io_run(io);
		if (!err && io->is_short)
			err = pvfs_read_is_hole(io, true);
		if (!err)
			pvfs_io_zero(io, U64_MAX);
		pvfs_io_put(io);
		/* Somebody has cut the file: how long it is we know now. */
	} while (err == -EAGAIN && !fatal_signal_pending(current));
	if (!err)
		folio_mark_uptodate(folio);
	return err == -EAGAIN ? -EINTR : err;
}

static int pvfs_read_folio(struct file *file, struct folio *folio)
{
	int err = pvfs_cache_fill(folio->mapping->host, folio);

	folio_unlock(folio);
	return err;
}

/*
 * What could not be read, or is not known to be a hole, is read page by page, if it is wanted; so is
 * what the transfer was cut down by.
 */
static void cache_readahead_done(struct pvfs_io *io)
{
	unsigned int i;

	if (!io->err && io->is_short)
		io->err = pvfs_read_is_hole(io, false);
	if (!io->err)
		pvfs_io_zero(io, U64_MAX);
	for (i = 0; i < io->nmem; i++) {
		struct folio *folio = page_folio(io->mem[i].bv_page);

		if (!io->err && (i + 1) * PAGE_SIZE <= io->len)
			folio_mark_uptodate(folio);
		folio_unlock(folio);
	}
	pvfs_io_put(io);
}

/*
 * Asks and does not wait, so that the iods are at the next part while the program is at the last.
 * Folios are single pages here: large ones were not asked for.
 */
static void pvfs_readahead(struct readahead_control *rac)
{
	struct inode *inode = rac->mapping->host;
	const struct pvfs_file *pf = rac->file ? rac->file->private_data : NULL;
	bool wanted = !pf || !READ_ONCE(pf->ahead.asking);
	struct folio *folio;

	while ((folio = readahead_folio(rac))) {
		/* Where @rac is it says only of a page that it has just given. */
		struct pvfs_io *io = pvfs_io_get(inode, false, folio_pos(folio),
						 readahead_length(rac), true);
		u32 len = 0;
		bool wait;
		int err;

		if (IS_ERR(io)) {
			folio_unlock(folio);
			return;
		}
		do {
			io->mem[io->nmem++] = (struct bio_vec){
				.bv_page = folio_page(folio, 0), .bv_len = PAGE_SIZE,
			};
			len += PAGE_SIZE;
		} while (io->nmem < io->mem_room && len + PAGE_SIZE <= io->len &&
			 (folio = readahead_folio(rac)));
		io->len = len;
		wait = wanted && len <= WAIT_BYTES;
		if (wait)
			err = pvfs_io_run(io);
		else
			err = pvfs_io_submit(io, cache_readahead_done);
		if (err || wait) {
			io->err = err;
			cache_readahead_done(io);
		}
		if (err)
			return;
	}
}

const struct address_space_operations pvfs_aops = {
	.read_folio = pvfs_read_folio,
	.readahead = pvfs_readahead,
	.writepages = pvfs_writepages,
	.dirty_folio = filemap_dirty_folio,
	.launder_folio = pvfs_launder_folio,
	.release_folio = pvfs_release_folio,
	.invalidate_folio = pvfs_invalidate_folio,
	.migrate_folio = filemap_migrate_folio,
	.direct_IO = noop_direct_IO,	/* tells the VFS that O_DIRECT is fine; direct.c does it */
};

/*
 * Pages that are read ahead are locked until an iod has answered, whoever asked for them: who wants to
 * throw some away waits for that here, where a kill ends it. Return: 0 or -EINTR.
 */
static int cache_wait_unlocked(struct address_space *mapping, pgoff_t first, pgoff_t last)
{
	struct folio_batch batch;
	unsigned int i;
	int err = 0;

	folio_batch_init(&batch);
	while (!err && filemap_get_folios(mapping, &first, last, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && !err; i++)
			if (folio_wait_locked_killable(batch.folios[i]))
				err = -EINTR;
		folio_batch_release(&batch);
		cond_resched();
	}
	return err;
}

/*
 * Waits, killably, for those who write pages of a range: the flusher's writes nobody else can end.
 * Return: 0 or -EINTR.
 */
static int cache_wait_written(struct address_space *mapping, loff_t pos, loff_t last)
{
	pgoff_t index = pos >> PAGE_SHIFT, end = last >> PAGE_SHIFT;
	struct folio_batch batch;
	unsigned int i;
	int err = 0;

	folio_batch_init(&batch);
	while (!err && index <= end &&
	       pvfs_get_folios_tag(mapping, &index, end, PAGECACHE_TAG_WRITEBACK, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && !err; i++)
			err = folio_wait_writeback_killable(batch.folios[i]);
		folio_batch_release(&batch);
		cond_resched();
	}
	return err;
}

/**
 * pvfs_cache_forget - throw pages away, when dirty ones are written
 * @inode: the inode
 * @pos: first byte
 * @last: last byte
 *
 * Return: 0, -EINTR (killed meanwhile), or -EBUSY or another -errno if some had to stay.
 */
int pvfs_cache_forget(struct inode *inode, loff_t pos, loff_t last)
{
	struct address_space *mapping = inode->i_mapping;

	if (!mapping->nrpages)
		return 0;
	/* Many at a time, not each by itself as it is thrown away. */
	if (pvfs_cache_write(inode, pos, last) == -EINTR)
		return -EINTR;
	return cache_wait_unlocked(mapping, pos >> PAGE_SHIFT, last >> PAGE_SHIFT) ?:
	       cache_wait_written(mapping, pos, last) ?:
	       invalidate_inode_pages2_range(mapping, pos >> PAGE_SHIFT, last >> PAGE_SHIFT);
}

/**
 * pvfs_cache_check - at open, with fresh attributes: throw the pages away if they are of another
 * version
 * @inode: the inode
 *
 * Return: are those that are there, if any, of this version?
 */
bool pvfs_cache_check(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 version;
	bool right;

	spin_lock(&pi->lock);
	version = pi->attr.version;
	right = pi->cache_version == version;
	spin_unlock(&pi->lock);
	if (right)
		return true;
	if (pvfs_cache_forget(inode, 0, LLONG_MAX))
		return false;
	/* Not before they are gone: somebody else may be asking. */
	spin_lock(&pi->lock);
	pi->cache_version = max(pi->cache_version, version);
	spin_unlock(&pi->lock);
	return true;
}

/**
 * pvfs_cache_reads - may a file be read from the page cache, and what is not there come into it?
 * @inode: the file
 *
 * Under a lease, which is asked for if need be: nobody else has it open for writing then. A stuffed one only
 * under one to write: see pvfs_head_kept().
 */
bool pvfs_cache_reads(struct inode *inode)
{
	return PVFS_VOL(inode)->opts.cache &&
	       (pvfs_wlease_token(inode) || (!pvfs_stuffed(inode) && pvfs_lease_wanted(inode))) &&
	       pvfs_cache_check(inode);
}

/**
 * pvfs_cache_token - the lease under which the page cache is the file
 * @inode: the file
 *
 * Return: its token; 0: there is none.
 */
unsigned long pvfs_cache_token(const struct inode *inode)
{
	return pvfs_inode_leased(inode) ? pvfs_lease_token(inode) : pvfs_wlease_token(inode);
}

/* Pages that a killed task could not wait for. */
struct late_drop {
	struct work_struct work;
	struct inode *inode;		/* a reference, which counts in vol->closing */
	pgoff_t first, last;
};

static void cache_late_drop_work(struct work_struct *work)
{
	struct late_drop *d = container_of(work, struct late_drop, work);

	invalidate_inode_pages2_range(d->inode->i_mapping, d->first, d->last);
	pvfs_use_iput(PVFS_I(d->inode)->use);	/* also counts vol->closing down */
	kfree(d);
}

static void cache_drop_later(struct inode *inode, pgoff_t first, pgoff_t last)
{
	struct late_drop *d = kmalloc(sizeof(*d), GFP_NOFS | __GFP_NOFAIL);

	INIT_WORK(&d->work, cache_late_drop_work);
	d->inode = inode;
	d->first = first;
	d->last = last;
	ihold(inode);
	atomic_inc(&PVFS_VOL(inode)->closing);
	queue_work(PVFS_VOL(inode)->vfs_wq, &d->work);
}

/**
 * pvfs_cache_drop - a range of the file is (about to be) written: throw its pages away
 * @inode: the inode, which is open
 * @pos: first byte
 * @len: bytes
 *
 * Pages that are on their way are waited for. Who is killed meanwhile leaves them to others: if he has
 * written, a page from before must not stay, and be written back with what a mapping stores in it.
 *
 * Return: 0; -EINTR: killed, and they may still be there.
 */
int pvfs_cache_drop(struct inode *inode, loff_t pos, u64 len)
{
	pgoff_t first = pos >> PAGE_SHIFT, last = (pos + len - 1) >> PAGE_SHIFT;

	if (!len || !inode->i_mapping->nrpages)
		return 0;
	if (cache_wait_unlocked(inode->i_mapping, first, last) ||
	    cache_wait_written(inode->i_mapping, pos, pos + len - 1)) {
		cache_drop_later(inode, first, last);
		return -EINTR;
	}
	invalidate_inode_pages2_range(inode->i_mapping, first, last);
	return 0;
}

/**
 * pvfs_cache_wait - pages are about to be cut off: those that are on their way first
 * @inode: the inode
 * @pos: from there on
 *
 * Return: 0 or -EINTR.
 */
int pvfs_cache_wait(struct inode *inode, loff_t pos)
{
	return cache_wait_unlocked(inode->i_mapping, pos >> PAGE_SHIFT, ULONG_MAX);
}

/**
 * pvfs_cache_write - have what was stored in a range through a mapping written, and wait for that
 * @inode: the inode
 * @pos: first byte
 * @last: last byte
 *
 * Errors are kept for fsync and close. What another task had in its hands when it was killed is dirty
 * again, and written once more.
 *
 * Return: 0, -EINTR (killed meanwhile: it stays dirty, or is in the flusher's hands), or another -errno.
 */
int pvfs_cache_write(struct inode *inode, loff_t pos, loff_t last)
{
	struct address_space *mapping = inode->i_mapping;
	struct pvfs_inode *pi = PVFS_I(inode);
	/* If it is all, who writes on at the end meanwhile is not followed. */
	loff_t end = last == LLONG_MAX ? max(pos, i_size_read(inode)) : last;
	int err, redirtied;

	if (!mapping->nrpages)
		return 0;
	do {
		redirtied = atomic_read(&pi->wb.redirtied);
		smp_rmb();	/* pairs with wb_redirtied(), as the next one */
		err = filemap_fdatawrite_range(mapping, pos, last);
		if (cache_wait_written(mapping, pos, end) || fatal_signal_pending(current))
			return -EINTR;
		smp_rmb();	/* it is counted before the page is let go of */
	} while (!err && redirtied != atomic_read(&pi->wb.redirtied));
	return err;
}

/**
 * pvfs_cache_flush - what was stored in a range through a mapping is with the iods when this
 * returns
 * @inode: the inode
 * @pos: first byte
 * @len: bytes, > 0
 *
 * Return: 0, -EINTR (killed meanwhile), or another -errno; fsync and close tell it all the same.
 */
int pvfs_cache_flush(struct inode *inode, loff_t pos, u64 len)
{
	errseq_t since;
	int err;

	if (!inode->i_mapping->nrpages)
		return 0;
	since = filemap_sample_wb_err(inode->i_mapping);
	err = pvfs_cache_write(inode, pos, min_t(u64, pos + len - 1, LLONG_MAX));
	return err ?: filemap_check_wb_err(inode->i_mapping, since);
}

/**
 * pvfs_cache_prepare - before a write
 * @inode: the inode
 * @pos: first byte
 * @len: bytes, > 0
 *
 * Dirty pages in its way go first, while no transfer is held that they could wait for. A write that
 * goes beyond the end makes the rest of the last page part of the file, whatever a mapping holds
 * there: it reads as zeros.
 *
 * Return: 0, or -EINTR (killed meanwhile). Other errors are told by fsync.
 */
int pvfs_cache_prepare(struct inode *inode, loff_t pos, u64 len)
{
	loff_t size = i_size_read(inode);
	int err;

	if (!inode->i_mapping->nrpages)
		return 0;
	/* The mgr puts what is appended behind what it has: that is to be all. */
	if (pvfs_stuffed(inode))
		err = pvfs_cache_write(inode, 0, LLONG_MAX);
	else
		err = pvfs_cache_flush(inode, min(pos, size), max_t(loff_t, pos - size, 0) + len);
	if (err == -EINTR)
		return err;
	return pos > size ? pvfs_cache_drop(inode, size, pos - size) : 0;
}
