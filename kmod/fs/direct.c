// SPDX-License-Identifier: GPL-2.0
/*
 * direct.c - bytes between a program's memory and the iods, past the page cache: the memory of a transfer, and the
 * transfer. What goes this way, and under which locks, rw.c says.
 *
 * They move between the socket and the user's pages. Where the pages of the memory can't be had (a pipe,
 * kernel memory) they go through pages of ours.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include "vfs.h"

#define PIN_BATCH 32			/* pages taken from an iterator at a time */
#define BOUNCE_MAX (256u << 10)		/* bytes that go through pages of ours at a time */

/* ---------------------------------------------------------------- memory for a transfer */

/* Takes the iterator's own pages. Return: 0 with io->len what could be had, or -errno. */
static int direct_mem_pin(struct pvfs_io *io, struct iov_iter *iter)
{
	struct page *pages[PIN_BATCH];
	u32 got = 0;

	while (got < io->len && io->nmem < io->mem_room) {
		unsigned int i, max = min_t(unsigned int, PIN_BATCH, io->mem_room - io->nmem);
		size_t off;
		ssize_t n = pvfs_iter_pages(iter, pages, io->len - got, max, &off);

		if (n <= 0) {
			if (!got)
				return n ?: -EFAULT;
			break;
		}
		got += n;
		for (i = 0; n; i++) {
			u32 here = min_t(size_t, n, PAGE_SIZE - off);

			io->mem[io->nmem++] = (struct bio_vec){
				.bv_page = pages[i], .bv_offset = off, .bv_len = here,
			};
			n -= here;
			off = 0;
		}
	}
	io->len = got;
	return 0;
}

static void direct_mem_unpin(struct pvfs_io *io, bool user)
{
	unsigned int i;

	for (i = 0; i < io->nmem; i++)
		pvfs_iter_page_put(io->mem[i].bv_page, user);
}

/*
 * A program's pages were filled: they are dirty. Return: whether some of them may have been taken away from their
 * mapping meanwhile, as others have asked for it: what is in those the program would never see. Who takes the others away
 * from here on writes them.
 */
static bool direct_mem_filled(struct pvfs_io *io)
{
	struct folio *folio;
	bool left = false;
	unsigned int i;

	for (i = 0; i < io->nmem; i++) {
		folio = page_folio(io->mem[i].bv_page);
		if (!folio_test_dirty(folio))
			set_page_dirty_lock(io->mem[i].bv_page);
		left |= !folio_test_anon(folio) && !READ_ONCE(folio->mapping);
	}
	return left;
}

/* To where the iterator is, as the program would. Return: bytes. */
static u32 direct_mem_copy(struct pvfs_io *io, u32 len, struct iov_iter *to)
{
	u32 done = 0, here, did;
	unsigned int i;

	for (i = 0; i < io->nmem && done < len; i++) {
		here = min(io->mem[i].bv_len, len - done);
		did = copy_page_to_iter(io->mem[i].bv_page, io->mem[i].bv_offset, here, to);
		done += did;
		if (did < here)
			break;
	}
	pvfs_count(io->vol, PVFS_CNT_COPIED, done);
	return done;
}

static void direct_mem_free(struct pvfs_io *io)
{
	unsigned int i;

	for (i = 0; i < io->nmem; i++)
		put_page(io->mem[i].bv_page);
}

/* Pages of our own, filled from the iterator for a write. */
static int direct_mem_bounce(struct pvfs_io *io, struct iov_iter *from)
{
	u32 got = 0;

	while (got < io->len && io->nmem < io->mem_room) {
		u32 here = min_t(u32, io->len - got, PAGE_SIZE);
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			break;
		if (from)
			here = copy_page_from_iter(page, 0, here, from);
		/* on 6.1 splice may put the page itself into a pipe, whose reader looks at this */
		else
			SetPageUptodate(page);
		if (!here) {
			put_page(page);
			return got ? 0 : -EFAULT;
		}
		io->mem[io->nmem++] = (struct bio_vec){ .bv_page = page, .bv_len = here };
		got += here;
		io->len = max(io->len, got);
		if (from && here < PAGE_SIZE)
			break;
	}
	io->len = got;
	return got ? 0 : -ENOMEM;
}

/* Can the pages behind this iterator be had? */
static bool direct_can_pin(const struct iov_iter *iter)
{
	return user_backed_iter(iter) || iov_iter_is_bvec(iter);
}

/* ---------------------------------------------------------------- read */

/**
 * pvfs_read_is_hole - a read was answered, and a datafile does not have all that was asked of it: are
 * those bytes a hole?
 * @io: the transfer
 * @ask: the mgr may be asked; else, where that would be needed, the answer is no
 *
 * They are when the file was that long at the moment the datafile was asked. That it was before we
 * know; if it was not cut until after, it was. That it is now would say nothing: the bytes may have
 * been written since.
 *
 * Return: 0, -EAGAIN when it has to be read again (nothing else here is answered by that), or
 * another -errno.
 */
int pvfs_read_is_hole(struct pvfs_io *io, bool ask)
{
	struct pvfs_inode *pi = PVFS_I(io->inode);
	int err = 0;

	if (pvfs_attr_trusted(io->inode))
		return 0;
	if (!pvfs_cache_token(io->inode))
		err = ask ? pvfs_meta_getattr(io->inode) : -EAGAIN;
	if (err)
		return err;
	spin_lock(&pi->lock);
	if (pi->attr.trunc_gen != io->trunc_gen || (!io->fill && io->size < io->pos + io->good))
		err = -EAGAIN;
	spin_unlock(&pi->lock);
	return err;
}

/*
 * One transfer of a read, with io->mem filled, that begins below the size that we know. @past: the
 * caller wants more than that, so the mgr is asked for the size beside it.
 */
static int direct_read_transfer(struct pvfs_io *io, bool past)
{
	struct pvfs_request *req = NULL;
	struct pvfs_getattr_ask ask;
	int err, err2;

	err = pvfs_io_start(io);
	if (err)
		return err;
	if (past && !io->head) {
		req = pvfs_meta_getattr_start(io->inode, &ask);
		if (IS_ERR(req)) {
			pvfs_io_finish(io);
			return PTR_ERR(req);
		}
	}
	err = pvfs_io_finish(io);
	if (req) {
		err2 = pvfs_meta_getattr_finish(io->inode, req, &ask);
		if (err2 == -EAGAIN)	/* not now: wait until it can */
			err2 = pvfs_meta_getattr(io->inode);
		if (err2)
			return err2;
	}
	if (err && !io->good)
		return err;
	err = io->is_short ? pvfs_read_is_hole(io, true) : 0;
	if (!err)
		pvfs_io_zero(io, io->pos + io->good);
	return err;
}

/**
 * pvfs_direct_read - one transfer of a read
 * @inode: the file
 * @pos: from there on
 * @to: where to; goes on by what was read
 * @keep: for the page cache, too
 * @eof: set when that was all
 *
 * Return: bytes read, 0 at the end, or -errno; -EAGAIN: once more.
 */
ssize_t pvfs_direct_read(struct inode *inode, loff_t pos, struct iov_iter *to, bool keep, bool *eof)
{
	/* Under a lease nobody writes to it: it ends where we know. */
	bool trusted = pvfs_attr_trusted(inode) || pvfs_inode_leased(inode), past;
	bool pin = direct_can_pin(to), user = user_backed_iter(to);
	size_t want = iov_iter_count(to);
	loff_t size = i_size_read(inode);
	struct pvfs_io *io;
	u32 n = 0;
	int err;

	if (pos >= size && !trusted) {
		err = pvfs_meta_getattr(inode);
		if (err)
			return err;
		size = i_size_read(inode);
		trusted = true;		/* as fresh as can be */
	}
	if (pos >= size)
		return 0;
	want = min_t(u64, want, size - pos);
	/*
	 * Now that it is known where the file ends: what is before that is dirty, if it is not with the iods (see
	 * behind_copy()). Else somebody's write could have moved the end, and its bytes be here only. An error
	 * is told by fsync; what could be had is read all the same.
	 */
	smp_rmb();
	if (pvfs_cache_flush(inode, pos, want) == -EINTR)
		return -EINTR;
	io = pvfs_io_get(inode, false, pos, want, false);
	if (IS_ERR(io))
		return PTR_ERR(io);
	io->keep = keep;
	err = -EFAULT;
	if (pin)
		err = direct_mem_pin(io, to);
	if (err == -EFAULT) {
		/* No pages to be had; perhaps it can be copied to all the same. */
		pin = false;
		io->len = min(io->len, BOUNCE_MAX);
		err = direct_mem_bounce(io, NULL);
	}
	if (err)
		goto out_io;
	want = io->len;
	past = !trusted && iov_iter_count(to) + (pin ? want : 0) > size - pos && pos + want == size;
	err = pvfs_turn_enter(inode);
	if (!err) {
		err = direct_read_transfer(io, past);
		pvfs_turn_leave(inode);
	}
	n = err ? 0 : io->good;
	*eof = past && n == want && pos + want >= i_size_read(inode);
	if (pin) {
		iov_iter_revert(to, want - n);
		if (user && direct_mem_filled(io) && n) {
			iov_iter_revert(to, n);
			n = direct_mem_copy(io, n, to);
			err = n ? 0 : -EFAULT;
		}
		direct_mem_unpin(io, user);
	} else {
		want = n;
		n = direct_mem_copy(io, want, to);
		if (want && !n)
			err = -EFAULT;
		direct_mem_free(io);
	}
out_io:
	pvfs_io_put(io);
	return err ?: (ssize_t)n;	/* not of type u32: that would make errors long counts */
}

/* ---------------------------------------------------------------- write */

/**
 * pvfs_direct_write - one transfer of a write
 * @file: the open file; i_rwsem of its inode is held
 * @ppos: where to; where it went, when it was to go to the end
 * @from: what; goes on by what was written
 * @most: bytes
 * @append: to the end
 * @appender: who holds the lock then, if that is needed; else NULL
 *
 * Return: bytes written, or -errno; -EAGAIN: the lock was lost, or is needed, or the end has to be
 * asked for again, and nothing was written.
 */
ssize_t pvfs_direct_write(struct file *file, loff_t *ppos, struct iov_iter *from, size_t most,
			  bool append, struct lock_owner *appender)
{
	struct inode *inode = file_inode(file);
	loff_t pos = *ppos;
	bool pin = direct_can_pin(from), user = user_backed_iter(from);
	struct pvfs_io *io;
	size_t want = min(iov_iter_count(from), most);
	u32 n = 0, had;
	int err;

	io = pvfs_io_get(inode, true, pos, want, false);
	if (IS_ERR(io))
		return PTR_ERR(io);
	io->append = append;
	io->appender = appender;
	io->file = file;
	err = -EFAULT;
	if (pin)
		err = direct_mem_pin(io, from);
	if (err == -EFAULT) {
		pin = false;
		io->len = min(io->len, BOUNCE_MAX);
		err = direct_mem_bounce(io, from);
		if (!err)
			pvfs_count(PVFS_VOL(inode), PVFS_CNT_COPIED, io->len);
	}
	if (err)
		goto out_io;
	had = io->len;
	/* One part after the other: nobody else's may come between. */
	if (append && !appender && had < want) {
		err = -EAGAIN;
		goto out_mem;
	}
	/*
	 * The memory is there already: it may be a mapping of this file, whose pages take the same
	 * lock to come in. Who has the lock on appending waits for no other client: a truncation of his may be
	 * waiting for that.
	 */
	if (appender)
		err = pvfs_turn_try(inode) ? 0 : -EAGAIN;
	else
		err = pvfs_turn_enter(inode);
	if (err)
		goto out_mem;
	err = down_read_killable(&inode->i_mapping->invalidate_lock);
	if (err)
		goto out_turn;
	err = pvfs_cache_drop(inode, pos, had) ?: pvfs_io_run(io);
	/* A page may have been filled meanwhile, from before the write or from its middle. */
	pvfs_cache_drop(inode, pos, had);
	filemap_invalidate_unlock_shared(inode->i_mapping);
	if (io->pos != pos) {		/* it went to the end of the file, which was elsewhere */
		*ppos = pos = io->pos;
		pvfs_cache_drop(inode, pos, had);
	}
out_turn:
	pvfs_turn_leave(inode);
out_mem:
	if (!err || io->nparts)
		n = err ? io->good : io->len;
	if (pin)
		direct_mem_unpin(io, user);
	else
		direct_mem_free(io);
	iov_iter_revert(from, had - n);
	if (n)
		err = 0;
out_io:
	pvfs_io_put(io);
	return err ?: (ssize_t)n;	/* not of type u32: that would make errors long counts */
}
