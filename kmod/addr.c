// SPDX-License-Identifier: GPL-2.0
/*
 * addr.c - the page cache, which serves mmap and exec only: filling it, and throwing it away when the file is another.
 *
 * Pages are never dirty: a mapping is private, or shared and read-only. They are right when the file is opened
 * (pvfs_cache_check()) and after a write of this client (pvfs_cache_drop()); a write of another client shows in a
 * mapping at the next open.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include "vfs.h"

/* Reads @io, whose memory is pages of the cache, whole; what is not in the file is zeros. */
static int fill(struct pvfs_io *io)
{
	int err = pvfs_io_run(io);

	if (!err)
		pvfs_io_zero(io, U64_MAX);
	return err;
}

static int pvfs_read_folio(struct file *file, struct folio *folio)
{
	struct inode *inode = folio->mapping->host;
	struct pvfs_io *io;
	int err;

	io = pvfs_io_get(inode, false, folio_pos(folio), folio_size(folio), true);
	if (IS_ERR(io)) {
		err = PTR_ERR(io);
		goto out;
	}
	io->mem[0] = (struct bio_vec){ .bv_page = folio_page(folio, 0), .bv_len = folio_size(folio) };
	io->nmem = 1;
	err = fill(io);
	pvfs_io_put(io);
	if (!err)
		folio_mark_uptodate(folio);
out:
	folio_unlock(folio);
	return err;
}

/* Folios are single pages here: large ones were not asked for. */
static void pvfs_readahead(struct readahead_control *rac)
{
	struct inode *inode = rac->mapping->host;
	struct folio *folio;

	while (readahead_count(rac)) {
		struct pvfs_io *io;
		unsigned int i;
		u32 len = 0;
		int err;

		io = pvfs_io_get(inode, false, readahead_pos(rac), readahead_length(rac), true);
		if (IS_ERR(io))
			return;
		while (io->nmem < io->mem_room && len + PAGE_SIZE <= io->len && (folio = readahead_folio(rac))) {
			io->mem[io->nmem++] = (struct bio_vec){
				.bv_page = folio_page(folio, 0), .bv_len = PAGE_SIZE,
			};
			len += PAGE_SIZE;
		}
		io->len = len;
		err = len ? fill(io) : -EIO;
		for (i = 0; i < io->nmem; i++) {
			struct folio *f = page_folio(io->mem[i].bv_page);

			/* What the transfer was cut down by is read one by one, if it is wanted. */
			if (!err && (i + 1) * PAGE_SIZE <= io->len)
				folio_mark_uptodate(f);
			folio_unlock(f);
		}
		pvfs_io_put(io);
		if (err)
			return;
	}
}

const struct address_space_operations pvfs_aops = {
	.read_folio = pvfs_read_folio,
	.readahead = pvfs_readahead,
	.direct_IO = noop_direct_IO,	/* tells the VFS that O_DIRECT is fine; file.c does it */
};

/**
 * pvfs_cache_check - at open, with fresh attributes: throw the pages away if they are of another version
 * @inode: the inode
 */
void pvfs_cache_check(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool changed;

	spin_lock(&pi->lock);
	changed = pi->cache_version != pi->version;
	pi->cache_version = pi->version;
	spin_unlock(&pi->lock);
	if (changed && inode->i_mapping->nrpages)
		invalidate_inode_pages2(inode->i_mapping);
}

/**
 * pvfs_cache_drop - a range of the file is (about to be) written: throw its pages away
 * @inode: the inode
 * @pos: first byte
 * @len: bytes
 */
void pvfs_cache_drop(struct inode *inode, loff_t pos, u64 len)
{
	if (len && inode->i_mapping->nrpages)
		invalidate_inode_pages2_range(inode->i_mapping, pos >> PAGE_SHIFT, (pos + len - 1) >> PAGE_SHIFT);
}

int pvfs_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_SHARED) {
		if (vma->vm_flags & VM_WRITE)
			return -ENODEV;		/* nothing here writes pages back */
		pvfs_vm_flags_clear(vma, VM_MAYWRITE);
	}
	return generic_file_readonly_mmap(file, vma);
}
