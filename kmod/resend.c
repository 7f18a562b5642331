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
 * to the iods as any others do. They are all here unless one was thrown away when it was not stable,
 * for want of memory or because it was of another version of the file, or something was written past
 * the page cache. A page that was cut off by a truncation nobody needs. And the page cache has to be
 * the file, which it is under a WRITE lease only; as for who writes to it, a RECALL, and the last
 * close, wait until the pages are dirty (wlease.c).
 *
 * A stamp is set when the WRITE was answered, while the page is under writeback, and taken away under
 * the page's lock. So who has a page locked, and not under writeback, sees what it is.
 */
#include <linux/migrate.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include "vfs.h"

#define RESEND_TRIES 20			/* for a lease that is doubtful */
#define RESEND_PAUSE (HZ / 10)		/* between two of them */

static unsigned long resend_stamp(struct folio *folio)
{
	return folio_test_private(folio) ? (unsigned long)folio_get_private(folio) : 0;
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
		pvfs_unstable_gone(folio->mapping->host, resend_stamp(folio));
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

static int resend_folio(struct address_space *mapping, struct folio *folio, unsigned long stable,
			u64 *bytes)
{
	int err;

	if (!folio_test_locked(folio) && !folio_test_writeback(folio)) {
		/* It is stamped before writeback ends; or unlocked, if it was moved in memory. */
		smp_rmb();
		if (!folio_test_private(folio))
			return 0;
	}
	err = folio_lock_killable(folio);
	if (err)
		return err;
	err = folio_wait_writeback_killable(folio);
	if (!err && folio->mapping == mapping && resend_stamp(folio) > stable &&
	    !folio_test_dirty(folio)) {
		folio_mark_dirty(folio);
		*bytes += folio_size(folio);
	}
	folio_unlock(folio);
	return err;
}

/* Between pvfs_wlease_begin() and end. Return: 0 or -EINTR. */
static int resend_walk(struct inode *inode, unsigned long stable)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct folio_batch batch;
	pgoff_t index = 0;
	unsigned int i;
	u64 bytes = 0;
	int err = 0;

	folio_batch_init(&batch);
	while (!err && filemap_get_folios(inode->i_mapping, &index, ULONG_MAX, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && !err; i++)
			err = resend_folio(inode->i_mapping, batch.folios[i], stable, &bytes);
		folio_batch_release(&batch);
		cond_resched();
	}
	pvfs_count(vol, PVFS_CNT_RESENT, bytes);
	if (bytes)
		pr_notice_ratelimited("%s: inode %llu: %llu KiB that an iod may have lost are written once more\n",
				      vol->opts.volume, PVFS_I(inode)->fid.ino, bytes >> 10);
	return err;
}

/**
 * pvfs_resend - make the pages of a file dirty that are not stable
 * @inode: the file; the caller has claimed what is remembered of it (unstable.c)
 * @stable: pages with stamps up to this one are stable
 *
 * Context: waits for who reads or writes pages, and for the mgr if the lease is doubtful.
 *
 * Return: 0; -EIO: there is no WRITE lease, or none that can be used; -EINTR: killed, some may be dirty.
 */
int pvfs_resend(struct inode *inode, unsigned long stable)
{
	struct address_space *mapping = inode->i_mapping;
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_attr attr;
	unsigned long token;
	unsigned int tries;
	int err;

	for (tries = 0; tries < RESEND_TRIES; tries++) {
		token = pvfs_wlease_token(inode);
		if (token) {
			/* As page_mkwrite: no write of this client that goes past the cache is under way. */
			if (down_write_killable(&mapping->invalidate_lock))
				return -EINTR;
			err = -EAGAIN;
			if (pvfs_wlease_begin(inode, token)) {
				err = resend_walk(inode, stable);
				pvfs_wlease_end(inode);
			}
			filemap_invalidate_unlock(mapping);
			if (err != -EAGAIN)
				return err;
		}
		if (READ_ONCE(PVFS_I(inode)->wl.state) != PVFS_WL_HELD)
			break;
		/*
		 * The mgr was not heard of for a while, or is another, to which the lease is told
		 * before it answers anything; or a change of our own is under way.
		 */
		err = pvfs_meta_getattr_fid(vol, &vol->root, &attr);
		if (err && err != -EINTR)
			break;
		schedule_timeout_killable(RESEND_PAUSE);
		if (err || fatal_signal_pending(current))
			return -EINTR;
	}
	return fatal_signal_pending(current) ? -EINTR : -EIO;
}
