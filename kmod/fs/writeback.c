// SPDX-License-Identifier: GPL-2.0
/*
 * writeback.c - what is written to the page cache, and how it comes to the iods.
 *
 * write(2) leaves its bytes in the page cache while there is a WRITE lease (wlease.c), a shared mapping
 * always. They go to the iods up to 4 MiB at a time, what is not next to each other as a list, several at once, nobody
 * waiting for each: when there is so much in a row, when the kernel's flusher finds them old or too many, at fsync, behind
 * close and munmap, and where cache.c says. What could not be written is told by fsync, and close as far as it is known then,
 * once to each who has the file open; from then on the file is written through, so that write(2) says why not.
 *
 * What does not go to the cache, but to the iods at once: large calls, which a copy costs more than it
 * gains; those of descriptors with O_DIRECT or O_SYNC; what would leave a hole, as only the iods know what
 * space that takes; what may find a full disk (full.c); what makes a stuffed file too long to be one; and a part of a
 * page whose rest can't be read. Of a stuffed file all that is dirty goes to the mgr at once, in one message if it is in one piece.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>
#include <linux/writeback.h>
#include "vfs.h"

#define BEHIND_MAX (4u << 20)	/* bytes of a call from which it goes to the iods at once */
#define EARLY (4u << 20)		/* bytes in a row that somebody else begins to write, up to a multiple of it */
#define BEHIND_STEP (256u << 10)	/* of that, before others, and how much is dirty, are looked at */
/* Beyond that an iod's file system may have its end, and write(2) is to say so. */
#define BEHIND_END (1ll << 40)
#define WB_MANY 1024u			/* pages that are gathered, */
#define WB_FEW (PVFS_STUFF_MAX / PAGE_SIZE)	/* if there is memory for more than that: it is a whole head */
#define WB_OUT 8			/* transfers of a file, if there are many: no more before there are so few */

/* ---------------------------------------------------------------- from write(2) */

/**
 * pvfs_may_write_behind - is it worth looking whether a write can go to the page cache?
 * @iocb: the write
 * @from: its bytes
 */
bool pvfs_may_write_behind(const struct kiocb *iocb, const struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);

	if ((iocb->ki_flags & (IOCB_DIRECT | IOCB_DSYNC | IOCB_SYNC)) || iov_iter_count(from) >= BEHIND_MAX)
		return false;
	if (pvfs_wlease_token(inode))
		return true;
	pvfs_wlease_missed(inode);
	return false;
}

/*
 * A page that is not there, of which bytes from @off on, @n of them, are about to be written: the rest is
 * read, unless there is none in the file. Return: 0; the page is up to date, or will be with those bytes;
 * -EINTR; -EAGAIN: it can't be.
 */
static int behind_ready(struct inode *inode, struct folio *folio, size_t off, size_t n)
{
	loff_t there = i_size_read(inode) - folio_pos(folio);
	int err;

	if (there > 0 && (off || n < min_t(loff_t, there, PAGE_SIZE))) {
		if (!pvfs_cap_current(inode, PVFS_CAP_READ))
			return -EAGAIN;
		err = pvfs_cache_fill(inode, folio);
		return err && err != -EINTR ? -EAGAIN : err;
	}
	folio_zero_segments(folio, 0, off, off + n, PAGE_SIZE);
	return 0;
}

/* A page to write to, locked; whoever has it locked may be waiting for an iod. Return: it, or ERR_PTR. */
static struct folio *behind_folio(struct address_space *mapping, pgoff_t index)
{
	struct folio *folio = pvfs_folio_there(mapping, index);
	struct page *page;

	if (folio && folio_lock_killable(folio)) {
		folio_put(folio);
		return ERR_PTR(-EINTR);
	}
	if (folio && folio->mapping == mapping)
		return folio;
	if (folio) {			/* thrown away meanwhile */
		folio_unlock(folio);
		folio_put(folio);
	}
	page = grab_cache_page_write_begin(mapping, index);
	return page ? page_folio(page) : ERR_PTR(-ENOMEM);
}

/*
 * Return: bytes, of @most, as far as the memory is there, and -errno in *@err. Between pvfs_wlease_begin()
 * and end.
 */
static size_t behind_copy(struct inode *inode, loff_t pos, struct iov_iter *from, size_t most, int *err)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	size_t done = 0, limit = most, n, copied;

	do {
		size_t off = offset_in_page(pos);
		struct folio *folio;
		bool fresh, again;

		n = min3(most - done, limit, PAGE_SIZE - off);
		folio = behind_folio(inode->i_mapping, pos >> PAGE_SHIFT);
		if (IS_ERR(folio)) {
			*err = PTR_ERR(folio);
			break;
		}
		fresh = !folio_test_uptodate(folio);
		*err = folio_wait_writeback_killable(folio);
		if (!*err && fresh)
			*err = behind_ready(inode, folio, off, n);
		copied = *err ? 0 : copy_page_from_iter_atomic(folio_page(folio, 0), off, n, from);
		/* Of a page that was not read the rest is not there: once more, with what there is. */
		again = copied && copied < n && fresh && !folio_test_uptodate(folio);
		if (again) {
			iov_iter_revert(from, copied);
			limit = copied;
			n = copied = 0;
		}
		if (copied) {
			folio_mark_uptodate(folio);
			pvfs_resend_news(folio);
			folio_mark_dirty(folio);
			/*
			 * Who sees the new end finds the page dirty (pvfs_direct_read()); and while it is locked nobody
			 * writes it back, who has to know how much of it is the file.
			 */
			smp_wmb();
			spin_lock(&pi->lock);
			pvfs_file_grown(inode, pos + copied);
			spin_unlock(&pi->lock);
		}
		folio_unlock(folio);
		folio_put(folio);
		pos += copied;
		done += copied;
	} while (copied == n && done < most);
	return done;
}

/* A head that becomes too long is unstuffed at the mgr before that is written. */
static bool behind_outgrows(struct inode *inode, loff_t end)
{
	return pvfs_stuffed(inode) && end > READ_ONCE(PVFS_I(inode)->layout.stuff_max);
}

void pvfs_behind_early_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, wb.early);
	struct writeback_control wbc = { .sync_mode = WB_SYNC_NONE, .nr_to_write = LONG_MAX };

	spin_lock(&pi->lock);
	wbc.range_start = pi->wb.early_from;
	wbc.range_end = pi->wb.early_to - 1;
	pi->wb.early_to = 0;
	spin_unlock(&pi->lock);
	if (wbc.range_end > wbc.range_start)
		filemap_fdatawrite_wbc(pi->vfs_inode.i_mapping, &wbc);
	atomic_dec(&PVFS_VOL(&pi->vfs_inode)->late);
	pvfs_use_iput(pi->use);			/* also counts vol->closing down */
}

/*
 * Who writes on and on will want it written: another CPU begins with that, so that the iods do their part while the
 * program does its. Of a file that is written here and there, or is short, the flusher and fsync are early enough.
 * i_rwsem is held exclusively.
 */
static void behind_early(struct inode *inode, loff_t pos, loff_t end)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_inode_wb *wb = &pi->wb;
	loff_t to = round_down(end, EARLY);

	if (pos != wb->next)
		wb->from = pos;
	wb->next = end;
	if (to - wb->from < EARLY || pvfs_stuffed(inode) || !pvfs_late_room(vol))
		return;
	ihold(inode);
	atomic_inc(&vol->closing);
	atomic_inc(&vol->late);
	spin_lock(&pi->lock);
	if (!wb->early_to)
		wb->early_from = wb->from;
	wb->early_to = to;
	spin_unlock(&pi->lock);
	wb->from = to;
	/* If it is yet to run it has its reference. */
	if (!queue_work(vol->late_wq, &wb->early)) {
		atomic_dec(&vol->closing);
		atomic_dec(&vol->late);
		iput(inode);
	}
}

/**
 * pvfs_write_behind - a write to the page cache
 * @iocb: the write, checked; its position moves
 * @from: its bytes
 * @token: of the WRITE lease
 * @err: set to why it was not all, if it was not; -EAGAIN: the rest has to go to the iods
 *
 * Context: i_rwsem is held exclusively.
 *
 * Return: bytes written.
 */
ssize_t pvfs_write_behind(struct kiocb *iocb, struct iov_iter *from, unsigned long token, int *err)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	loff_t pos = iocb->ki_pos;
	ssize_t total = 0;
	size_t want, n;

	*err = 0;
	while (iov_iter_count(from) && !*err) {
		if (iocb->ki_pos > i_size_read(inode) || iocb->ki_pos >= BEHIND_END ||
		    behind_outgrows(inode, iocb->ki_pos + iov_iter_count(from)) ||
		    pvfs_full_soon(inode, iocb->ki_pos, iov_iter_count(from))) {
			*err = -EAGAIN;
			break;
		}
		/* Not between begin and end: it may be somebody else who brings it, or a page of this file. */
		want = min_t(size_t, iov_iter_count(from), BEHIND_STEP);
		want -= fault_in_iov_iter_readable(from, want);
		if (!want) {
			*err = -EFAULT;
			break;
		}
		if (!pvfs_wlease_begin(inode, token)) {
			*err = -EAGAIN;
			break;
		}
		WRITE_ONCE(PVFS_I(inode)->wl.behind, true);
		n = behind_copy(inode, iocb->ki_pos, from, want, err);
		pvfs_wlease_end(inode);
		iocb->ki_pos += n;
		total += n;
		if (!*err && fatal_signal_pending(current))
			*err = -EINTR;
		balance_dirty_pages_ratelimited(inode->i_mapping);
	}
	if (total)
		behind_early(inode, pos, iocb->ki_pos);
	pvfs_count(PVFS_VOL(inode), PVFS_CNT_BEHIND, total);
	pvfs_count(PVFS_VOL(inode), PVFS_CNT_COPIED, total);
	return total;
}

/**
 * pvfs_unwritten - is there anything that was written to a file, and is in its page cache only?
 * @inode: the inode
 *
 * What a mapping stored in it does not count, if write(2) never did.
 */
bool pvfs_unwritten(const struct inode *inode)
{
	/* A page gets the one mark before it loses the other, to and fro: so both are looked at at once. */
	return READ_ONCE(PVFS_I(inode)->wl.behind) &&
	       (READ_ONCE(inode->i_mapping->i_pages.xa_flags) &
		(XA_FLAGS_MARK(PAGECACHE_TAG_DIRTY) | XA_FLAGS_MARK(PAGECACHE_TAG_WRITEBACK)));
}

/**
 * pvfs_behind_settle - what was written is with the iods, for who is about to ask for, or set, attributes
 * @inode: the inode
 *
 * Return: 0 or -EINTR. Errors are told by fsync and close.
 */
int pvfs_behind_settle(struct inode *inode)
{
	if (likely(!pvfs_unwritten(inode)))
		return 0;
	return pvfs_cache_write(inode, 0, LLONG_MAX) == -EINTR ? -EINTR : 0;
}

/* ---------------------------------------------------------------- to the iods */

/* Pages under writeback, in the order of the file, that are to be sent next. */
struct writeback {
	struct inode *inode;
	struct writeback_control *wbc;
	struct bio_vec *page;		/* the last may be cut off by the end of the file */
	unsigned int n, room;
	bool list;			/* they need not be next to each other */
	bool again;			/* pvfs_resend_again() of all of them */
	bool head;			/* in its turn: see wb_head() */
	int err;			/* -EINTR: killed, what is left stays dirty */
	struct bio_vec few[WB_FEW];	/* if there is no memory for more */
};

/* Who had the turn to write a head back is done, or a piece of it is. */
static void wb_head_put(struct pvfs_inode *pi)
{
	if (atomic_dec_and_test(&pi->wb.head_left))
		up(&pi->wb.head_turn);
}

/*
 * A page is dirty again, and still locked, or under writeback: who finds it so, and no longer so, finds it counted, and who
 * has seen the count finds it dirty.
 */
static void wb_redirtied(struct inode *inode)
{
	smp_mb__before_atomic();
	atomic_inc(&PVFS_I(inode)->wb.redirtied);
	atomic_inc(&PVFS_VOL(inode)->redirtied);
}

/*
 * A page is done. It stays to be written by somebody else if who wrote it was killed, or the transfer
 * became shorter. Any other error is told by fsync, and close; then what was stored is lost, as on any file
 * system.
 */
static void wb_page_end(struct inode *inode, struct folio *folio, int err)
{
	if (err == -EINTR) {
		filemap_dirty_folio(folio->mapping, folio);
		wb_redirtied(inode);
	} else if (err) {
		mapping_set_error(folio->mapping, err);
	}
	folio_end_writeback(folio);
}

/* Are pages of a former session? See wlease.c. Then @n more of them are lost. */
static bool wb_lost(struct inode *inode, unsigned int n)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!pvfs_wlease_lost(inode))
		return false;
	spin_lock(&pi->lock);
	pi->wl.lost_pages += n;
	spin_unlock(&pi->lock);
	return true;
}

/* For who waits as long as it gets on. */
static void wb_wrote(struct pvfs_inode *pi, unsigned int n)
{
	WRITE_ONCE(pi->wb.wrote, pi->wb.wrote + n);
	atomic_add(n, &PVFS_VOL(&pi->vfs_inode)->wrote);
}

/* From wherever the last answer comes. */
static void wb_done(struct pvfs_io *io)
{
	struct pvfs_inode *pi = PVFS_I(io->inode);
	bool lost = false, turn = io->turn;
	unsigned long stamp = 0;
	unsigned int full, i;
	u32 len = 0;

	for (i = 0; i < io->nmem; i++)
		len += io->mem[i].bv_len;
	full = io->len == len ? io->nmem : io->len / PAGE_SIZE;
	if (!io->err && !full)
		io->err = -EIO;			/* not even a page: can't be */
	if (io->err)
		full = io->nmem;
	else
		wb_wrote(pi, full);
	if (io->err && io->err != -EINTR) {
		lost = wb_lost(io->inode, io->nmem);	/* that has been told */
		if (!lost)
			pvfs_wlease_spoilt(io->inode);
	}
	/* Of a head nothing has to be remembered. */
	if (!io->err && !io->head)
		stamp = pvfs_unstable_stamp(io->inode);
	for (i = 0; i < io->nmem; i++) {
		struct folio *folio = page_folio(io->mem[i].bv_page);

		if (stamp && i < full)
			pvfs_resend_stamp(folio, stamp);
		wb_page_end(io->inode, folio, i >= full ? -EINTR : lost ? 0 : io->err);
	}
	pvfs_io_put(io);
	if (atomic_dec_return(&pi->wb.out) <= WB_OUT)
		wake_up_var(&pi->wb.out);
	if (turn)
		wb_head_put(pi);
}

/*
 * Waits until no more than @most of the file's transfers are on their way. Not for their pages: one of these may be
 * under writeback again meanwhile, by somebody who has it in his hands, and waits for the page that we have locked.
 * Return: 0 or -EINTR.
 */
static int wb_wait(struct inode *inode, int most)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	return wait_var_event_killable(&pi->wb.out, atomic_read(&pi->wb.out) <= most) ? -EINTR : 0;
}

/* Does what is at @pos of the file follow a page? Not if that was cut off by the end, which has moved since. */
static bool wb_follows(const struct bio_vec *page, loff_t pos)
{
	return page_offset(page->bv_page) + page->bv_len == pos;
}

/* Are pages, from one on, next to each other? Return: how many. */
static unsigned int wb_row(const struct writeback *wb, unsigned int at)
{
	unsigned int n = 1;

	while (at + n < wb->n && wb_follows(&wb->page[at + n - 1], page_offset(wb->page[at + n].bv_page)))
		n++;
	return n;
}

/* The transfer of as many pages, from one on, as it takes. It does not fail. */
static struct pvfs_io *wb_io(const struct writeback *wb, unsigned int at)
{
	unsigned int row = wb_row(wb, at), left = wb->n - at, i;
	struct pvfs_io *io = NULL;

	/* Of a list that is shorter than the first row the row is more. */
	if (wb->list && row < left)
		io = pvfs_io_get_list(wb->inode, left);
	if (!io)
		io = pvfs_io_get(wb->inode, true, page_offset(wb->page[at].bv_page), row * PAGE_SIZE, true);
	io->pos = page_offset(wb->page[at].bv_page);
	io->nmem = io->list ? min(left, io->mem_room) : min3(row, io->mem_room, (unsigned int)(io->len / PAGE_SIZE));
	memcpy(io->mem, wb->page + at, io->nmem * sizeof(*io->mem));
	for (io->len = i = 0; i < io->nmem; i++)
		io->len += io->mem[i].bv_len;
	io->kept = true;
	io->again = wb->again;
	io->turn = wb->head;
	return io;
}

/* Sends what was gathered. */
static void wb_submit(struct writeback *wb)
{
	struct pvfs_inode *pi = PVFS_I(wb->inode);
	unsigned int at;
	int err;

	for (at = 0; at < wb->n && !wb->err;) {
		/*
		 * Not waiting for others' transfers: they may be waiting for these pages. (Those of wb.out wait for none.)
		 */
		struct pvfs_io *io = wb_io(wb, at);

		at += io->nmem;
		if (io->turn)
			atomic_inc(&pi->wb.head_left);
		/* Of a head one after the other. */
		err = wb->head ? wb_wait(wb->inode, 0) : 0;
		atomic_inc(&pi->wb.out);
		err = err ?: pvfs_io_submit(io, wb_done);
		if (err < 0) {
			io->err = err;
			wb_done(io);
		}
		/* A list is all that there was. Single ones could take every request, with an iod away. */
		if (err > 0)
			err = wb_wait(wb->inode, WB_OUT);
		if (err == -EINTR)
			wb->err = err;
	}
	for (; at < wb->n; at++)
		wb_page_end(wb->inode, page_folio(wb->page[at].bv_page), -EINTR);
	wb->n = 0;
}

/* A page that is no longer dirty is not written; its mark in the mapping goes, too. It is locked. */
static void wb_skip(struct folio *folio)
{
	folio_start_writeback(folio);
	folio_end_writeback(folio);
}

/* Room for more than a few pages, if there are more, and memory. */
static void wb_grow(struct writeback *wb)
{
	struct bio_vec *page;

	if (wb->page != wb->few)
		return;
	page = kmalloc_array(WB_MANY, sizeof(*page), GFP_NOFS | __GFP_NORETRY | __GFP_NOWARN);
	if (!page)
		return;
	memcpy(page, wb->few, wb->n * sizeof(*page));
	wb->page = page;
	wb->room = WB_MANY;
}

/* @folio: locked, and no longer dirty; not locked on return. */
static void wb_add(struct writeback *wb, struct folio *folio)
{
	loff_t size = i_size_read(wb->inode), pos = folio_pos(folio);
	bool again = pvfs_resend_again(folio);
	u32 here;

	/* Cut off meanwhile, or not to be written. */
	if (pos >= size || wb_lost(wb->inode, 1)) {
		wb_skip(folio);
		folio_unlock(folio);
		return;
	}
	if (wb->n == wb->room)
		wb_grow(wb);
	if (wb->n && (wb->n == wb->room || wb->again != again ||
		      (!wb->list && !wb_follows(&wb->page[wb->n - 1], pos))))
		wb_submit(wb);
	/* Who was killed leaves the rest to others, as what he had in his hands: see wb_page_end(). */
	if (wb->err) {
		folio_redirty_for_writepage(wb->wbc, folio);
		wb_redirtied(wb->inode);
		folio_unlock(folio);
		return;
	}
	here = min_t(loff_t, PAGE_SIZE, size - pos);
	wb->again = again;
	wb->page[wb->n++] = (struct bio_vec){ .bv_page = folio_page(folio, 0), .bv_len = here };
	/* For whose cgroup this is work. */
	pvfs_wbc_account(wb->wbc, folio, here);
	folio_start_writeback(folio);
	folio_unlock(folio);
}

static int wb_page(struct pvfs_writepage_arg *arg, struct writeback_control *wbc, void *data)
{
	struct writeback *wb = data;

	wb_add(wb, pvfs_writepage_folio(arg));
	return wb->err;
}

/*
 * Of a head, all that is dirty, and one after the other: what would come behind the end that the mgr knows leaves
 * a hole, and makes the file a striped one. Who need not wait for his turn leaves it dirty, for later. Who has had
 * it does not wait for the last answer, with which it ends: so many files' heads are on their way at once, if
 * not too many.
 */
static int wb_head(struct writeback *wb, struct address_space *mapping, struct writeback_control *wbc)
{
	struct pvfs_inode *pi = PVFS_I(wb->inode);
	struct writeback_control own = *wbc;
	int err;

	if (wbc->sync_mode == WB_SYNC_NONE && down_trylock(&pi->wb.head_turn))
		return 0;
	if (wbc->sync_mode != WB_SYNC_NONE && down_killable(&pi->wb.head_turn))
		return -EINTR;
	wb->head = true;
	atomic_set(&pi->wb.head_left, 1);
	/* The caller's is for other files, too. */
	wbc->range_start = 0;
	wbc->range_end = LLONG_MAX;
	wbc->range_cyclic = false;
	err = write_cache_pages(mapping, wbc, wb_page, wb);
	wb_submit(wb);
	wbc->range_start = own.range_start;
	wbc->range_end = own.range_end;
	wbc->range_cyclic = own.range_cyclic;
	wb_head_put(pi);
	return err;
}

int pvfs_writepages(struct address_space *mapping, struct writeback_control *wbc)
{
	struct writeback wb = { .inode = mapping->host, .wbc = wbc, .room = WB_FEW };
	int err;

	wb.page = wb.few;
	if (pvfs_stuffed(wb.inode)) {
		err = wb_head(&wb, mapping, wbc);
	} else {
		wb.list = true;
		err = write_cache_pages(mapping, wbc, wb_page, &wb);
		wb_submit(&wb);
	}
	if (wb.page != wb.few)
		kfree(wb.page);
	return err ?: wb.err;
}

/*
 * A dirty page is to be thrown away. Locked. Who is killed leaves it where it is, on its way. (Of a head it does
 * not wait for its turn, which would be to wait for others' locked pages.)
 */
int pvfs_launder_folio(struct folio *folio)
{
	struct inode *inode = folio->mapping->host;
	loff_t size = i_size_read(inode), pos = folio_pos(folio);
	struct pvfs_io *io;
	int err;

	folio_wait_writeback(folio);
	if (!folio_clear_dirty_for_io(folio))
		return 0;
	if (pos >= size || wb_lost(inode, 1)) {
		wb_skip(folio);
		return 0;
	}
	folio_start_writeback(folio);
	io = pvfs_io_get(inode, true, pos, min_t(loff_t, PAGE_SIZE, size - pos), true);
	io->kept = true;
	io->again = pvfs_resend_again(folio);
	io->mem[io->nmem++] = (struct bio_vec){ .bv_page = folio_page(folio, 0), .bv_len = io->len };
	atomic_inc(&PVFS_I(inode)->wb.out);
	err = pvfs_io_submit(io, wb_done);
	if (err < 0) {
		io->err = err;
		wb_done(io);
		return err;
	}
	if (folio_wait_writeback_killable(folio))
		return -EINTR;
	/* Any other error is the mapping's to tell: it need not stay for that. */
	return folio_test_dirty(folio) ? -EINTR : 0;
}
