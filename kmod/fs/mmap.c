// SPDX-License-Identifier: GPL-2.0
/*
 * mmap.c - mappings of files: made, stored to for the first time, closed. What is in their pages is the page
 * cache's (cache.c); who may have such pages while others have the file open, too, is turn.c's.
 *
 * A private one is the kernel's own. Of the others it is known how many there are, and which of their pages were
 * stored to: page_mkwrite makes those dirty, see cache.c for when it may.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include "vfs.h"

/* A page that was mapped for reading is stored to. */
static vm_fault_t pvfs_page_mkwrite(struct vm_fault *vmf)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct address_space *mapping = inode->i_mapping;
	struct folio *folio = page_folio(vmf->page);
	vm_fault_t ret = VM_FAULT_LOCKED;

	sb_start_pagefault(inode->i_sb);
	/* Killed: the fault is not to come again, which it would at once if the kernel has it. */
	if (down_write_killable(&mapping->invalidate_lock)) {
		sb_end_pagefault(inode->i_sb);
		return VM_FAULT_SIGBUS;
	}
	folio_lock(folio);
	if (folio->mapping != mapping)
		ret = VM_FAULT_NOPAGE;		/* thrown away meanwhile: the fault comes again */
	else if (folio_pos(folio) >= i_size_read(inode))
		ret = VM_FAULT_SIGBUS;
	else if (folio_wait_writeback_killable(folio))
		ret = VM_FAULT_SIGBUS;		/* killed, as above */
	if (ret == VM_FAULT_LOCKED) {
		pvfs_resend_news(folio);
		folio_mark_dirty(folio);
	} else {
		folio_unlock(folio);
	}
	filemap_invalidate_unlock(mapping);
	sb_end_pagefault(inode->i_sb);
	return ret;
}

/* munmap, exec, exit. Errors are kept for fsync and close. The open outlives it: that close comes later. */
static void pvfs_vma_close(struct vm_area_struct *vma)
{
	struct inode *inode = file_inode(vma->vm_file);
	/* Else an exiting task, or another's memory: see late.c. */
	bool lives = vma->vm_mm == current->mm || current->in_execve;

	if ((vma->vm_flags & VM_MAYWRITE) && !pvfs_late_behind(inode)) {
		if (lives && !pvfs_dying())
			pvfs_cache_write(inode, 0, LLONG_MAX);
		else if (pvfs_late_due(inode))
			pvfs_late_write(inode, 0, pvfs_dying());
	}
	pvfs_turn_unmapped(inode);
}

static void pvfs_vma_open(struct vm_area_struct *vma)
{
	pvfs_turn_mapped(file_inode(vma->vm_file));
}

static const struct vm_operations_struct pvfs_vm_ops = {
	.open = pvfs_vma_open,
	.close = pvfs_vma_close,
	.fault = pvfs_turn_fault,
	.map_pages = pvfs_turn_map_pages,
	.page_mkwrite = pvfs_page_mkwrite,
};

/**
 * pvfs_file_mmap - mmap(2)
 * @file: the open file
 * @vma: the mapping to be
 *
 * Return: 0 or -errno.
 */
int pvfs_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	int err = pvfs_draft_settle(file_inode(file));

	if (err)
		return err;
	if (!(vma->vm_flags & VM_MAYSHARE))
		return generic_file_readonly_mmap(file, vma);
	file_accessed(file);
	vma->vm_ops = &pvfs_vm_ops;
	pvfs_vma_open(vma);
	return 0;
}
