// SPDX-License-Identifier: GPL-2.0
/*
 * resend.c - pages that were written to the iods and are not known to be on stable storage: which
 * they are, and writing them once more when an iod may have lost them.
 *
 * What a WRITE of pages has brought to the iods is in the page cache as well. Such a page is stamped
 * with the file's generation (folio private), which each sync of the file ends: when all datafiles
 * were synced under the verifiers of the writes, the pages up to that generation are stable
 * (unstable.c counts, and knows). So no page has to be looked at for that.
 *
 * If a verifier is another, and all unstable pages are still here, they are made dirty again, and go
 * to the iods as any others do, a piece of the file after the other. They are all here unless one was
 * thrown away when it was not stable, for want of memory or because it was of another version of the
 * file, or something was written past the page cache. A page that was cut off by a truncation nobody
 * needs. And the page cache has to be the file, which it is under a WRITE lease only; as for who writes
 * to it, a RECALL, and the last close, wait until the pages have been sent (wlease.c).
 *
 * Who faults or reads ahead waits for invalidate_lock where he can't be killed. So nothing is waited for
 * under it.
 *
 * A stamp is set when the WRITE was answered, while the page is under writeback, and taken away under
 * the page's lock. So who has a page locked, and not under writeback, sees what it is.
 */
#include <linux/migrate.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include "vfs.h"

#define RESEND_PAUSE (HZ / 10)		/* between two looks at a lease that is doubtful */
#define RESEND_PIECE (4u << 20)		/* bytes that are made dirty before they are written, */
#define RESEND_LOOKS (RESEND_PIECE >> 8)	/* and pages that are looked at, at once */

/* In a stamp: the page was made dirty here, and has got no other bytes since. */
#define RESEND_AGAIN (1ul << (BITS_PER_LONG - 1))

/* One that is under way. */
struct resend {
	struct inode *inode;
	unsigned long stable;		/* pages with stamps up to this one are */
	unsigned long token;		/* of the lease under which the page cache is the file */
	pgoff_t index;			/* the next page to be looked at */
	u64 bytes, most;		/* made dirty so far, and before they are to be written */
	u32 aborts;			/* of the volume, when it began */
	bool counted;			/* between pvfs_wlease_begin() and end */
};

static unsigned long resend_stamp(struct folio *folio)
{
	return folio_test_private(folio) ? (unsigned long)folio_get_private(folio) & ~RESEND_AGAIN : 0;
}

/**
 * pvfs_resend_again - is what a dirty page has in the file already, as far as anybody can see?
 * @folio: the page, locked
 *
 * Then that it is written is no news, and not to be told as a time.
 */
bool pvfs_resend_again(struct folio *folio)
{
	return folio_test_private(folio) && ((unsigned long)folio_get_private(folio) & RESEND_AGAIN);
}

/**
 * pvfs_resend_news - a page gets other bytes
 * @folio: the page, locked, and not under writeback
 */
void pvfs_resend_news(struct folio *folio)
{
	if (pvfs_resend_again(folio))
		folio_change_private(folio, (void *)resend_stamp(folio));
}

/**
 * pvfs_resend_stamp - a page was written
 * @folio: the page, under writeback
 * @stamp: of pvfs_unstable_stamp(), from behind the answer
 */
void pvfs_resend_stamp(struct folio *folio, unsigned long stamp)
{
	if (folio_test_private(folio))
		folio_change_private(folio, (void *)stamp);
	else
		folio_attach_private(folio, (void *)stamp);
}

/* The kernel wants to throw a page away. Locked, not under writeback. */
bool pvfs_release_folio(struct folio *folio, gfp_t gfp)
{
	if (folio_test_dirty(folio))
		return false;
	if (folio_test_private(folio)) {
		pvfs_unstable_gone(folio->mapping->host, resend_stamp(folio), folio->index);
		folio_detach_private(folio);
	}
	return true;
}

/* It is cut off, or its inode goes. */
void pvfs_invalidate_folio(struct folio *folio, size_t offset, size_t length)
{
	if (!offset && length == folio_size(folio) && folio_test_private(folio))
		folio_detach_private(folio);
}

/* Under invalidate_lock. Return: 0; or -EAGAIN: somebody is at it, who is to be waited for first. */
static int resend_folio(struct resend *r, struct folio *folio)
{
	if (!folio_test_locked(folio) && !folio_test_writeback(folio)) {
		/* It is stamped before writeback ends; or unlocked, if it was moved in memory. */
		smp_rmb();
		if (!folio_test_private(folio))
			return 0;
	}
	if (!folio_trylock(folio))
		return -EAGAIN;
	if (folio_test_writeback(folio)) {
		folio_unlock(folio);
		return -EAGAIN;
	}
	if (folio->mapping == r->inode->i_mapping) {
		if (resend_stamp(folio) > r->stable && !folio_test_dirty(folio)) {
			folio_change_private(folio, (void *)(resend_stamp(folio) | RESEND_AGAIN));
			folio_mark_dirty(folio);
			r->bytes += folio_size(folio);
		}
		/* Before it can be written, and thrown away. */
		pvfs_unstable_passed(r->inode, folio->index);
	}
	folio_unlock(folio);
	return 0;
}

/*
 * As far as a piece goes. Return: 0; -EAGAIN: up to a page that somebody is at, *@busy, a reference; -ESTALE:
 * the page cache is not the file any more, or nobody knows.
 */
static int resend_dirty(struct resend *r, struct folio **busy)
{
	struct address_space *mapping = r->inode->i_mapping;
	unsigned int i, looks = 0;
	struct folio_batch batch;
	int err = 0;

	if (!pvfs_wlease_stands(r->inode, r->token))
		return -ESTALE;
	folio_batch_init(&batch);
	while (!err && r->bytes < r->most && looks < RESEND_LOOKS) {
		pgoff_t next = r->index;

		if (!filemap_get_folios(mapping, &next, ULONG_MAX, &batch)) {
			r->index = ULONG_MAX;
			break;
		}
		looks += folio_batch_count(&batch);
		for (i = 0; i < folio_batch_count(&batch) && !err; i++) {
			r->index = batch.folios[i]->index;
			err = resend_folio(r, batch.folios[i]);
			if (!err)
				r->index++;
		}
		if (err) {
			*busy = batch.folios[i - 1];
			folio_get(*busy);
		}
		folio_batch_release(&batch);
		cond_resched();
	}
	return err;
}

/*
 * A RECALL waits for who is counted, so he does not wait for the lock: who has that may be waiting for the mgr,
 * which may be waiting for us. Return: 0: it is held; -ESTALE: the lease was given up meanwhile; -EINTR.
 */
static int resend_lock(struct resend *r)
{
	struct address_space *mapping = r->inode->i_mapping;

	if (down_write_trylock(&mapping->invalidate_lock))
		return 0;
	pvfs_wlease_end(r->inode);
	r->counted = false;
	if (down_write_killable(&mapping->invalidate_lock))
		return -EINTR;
	/* If it does not stand, begin would throw pages away first, under the lock. */
	r->counted = pvfs_wlease_stands(r->inode, r->token) && pvfs_wlease_begin(r->inode, r->token);
	if (r->counted)
		return 0;
	filemap_invalidate_unlock(mapping);
	return -ESTALE;
}

/*
 * Counted, with nothing held. Return: 0: all was made dirty, and written but for the last piece; -ESTALE; or
 * -EINTR.
 */
static int resend_walk(struct resend *r)
{
	struct address_space *mapping = r->inode->i_mapping;
	loff_t from = (loff_t)r->index << PAGE_SHIFT;
	int err = 0;

	while (!err && r->index != ULONG_MAX) {
		struct folio *busy = NULL;
		u64 before = r->bytes;

		if (READ_ONCE(PVFS_VOL(r->inode)->aborts) != r->aborts)
			return -ESTALE;
		err = resend_lock(r);
		if (err)
			return err;
		err = resend_dirty(r, &busy);
		filemap_invalidate_unlock(mapping);
		pvfs_count(PVFS_VOL(r->inode), PVFS_CNT_RESENT, r->bytes - before);
		if (busy) {
			err = folio_wait_locked_killable(busy) || folio_wait_writeback_killable(busy) ? -EINTR : 0;
			folio_put(busy);
		} else if (!err && r->bytes >= r->most && r->index != ULONG_MAX) {
			/* Errors are the mapping's to tell. */
			if (pvfs_cache_write(r->inode, from, ((loff_t)r->index << PAGE_SHIFT) - 1) == -EINTR)
				err = -EINTR;
			from = (loff_t)r->index << PAGE_SHIFT;
			r->most = r->bytes + RESEND_PIECE;
		}
	}
	return err;
}

static int resend_run(struct resend *r)
{
	struct inode *inode = r->inode;
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_attr attr;
	int err;

	while (READ_ONCE(vol->aborts) == r->aborts) {
		r->token = pvfs_wlease_token(inode);
		if (r->token && pvfs_wlease_begin(inode, r->token)) {
			r->counted = true;
			err = resend_walk(r);
			if (r->counted)
				pvfs_wlease_end(inode);
			if (err != -ESTALE)
				return err;
		}
		if (READ_ONCE(PVFS_I(inode)->wl.state) != PVFS_WL_HELD)
			break;
		/*
		 * The mgr was not heard of for a while, or is another, to which the lease is told
		 * before it answers anything; or a change of our own is under way, or was left to
		 * its fate. That ends some time; or it is known that there is none any more.
		 */
		pvfs_wlease_doubted(inode);
		err = pvfs_meta_getattr_fid(vol, &vol->root, &attr);
		if (err && err != -EINTR)
			break;
		schedule_timeout_killable(RESEND_PAUSE);
		if (err || fatal_signal_pending(current))
			return -EINTR;
	}
	return fatal_signal_pending(current) ? -EINTR : -EIO;
}

/**
 * pvfs_resend - make the pages of a file dirty that are not stable, and write all but the last of them
 * @inode: the file; the caller has claimed what is remembered of it (unstable.c)
 * @stable: pages with stamps up to this one are stable
 *
 * Context: waits for who reads or writes pages, for the iods; and for the mgr as long as the lease is
 * doubtful, but for nothing any more when the volume is aborted.
 *
 * Return: 0; -EIO: there is no WRITE lease, or none that can be used; -EINTR: killed, some may be dirty.
 */
int pvfs_resend(struct inode *inode, unsigned long stable)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct resend r = {
		.inode = inode, .stable = stable, .most = RESEND_PIECE, .aborts = READ_ONCE(vol->aborts),
	};
	int err = resend_run(&r);

	if (r.bytes)
		pr_notice_ratelimited("%s: inode %llu: %llu KiB that an iod may have lost are written once more\n",
				      vol->opts.volume, PVFS_I(inode)->fid.ino, r.bytes >> 10);
	return err;
}
