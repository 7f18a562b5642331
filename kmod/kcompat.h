/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kcompat.h - what differs between the kernels we run on, 6.1 to 6.12. No other file asks for the
 * version.
 *
 * Gated on LINUX_VERSION_CODE and under names of our own: distributions carry parts of later
 * interfaces back to earlier kernels, so the presence of a name says nothing about what is behind
 * it.
 */
#ifndef PVFS_KCOMPAT_H
#define PVFS_KCOMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <net/sock.h>

#define PVFS_KERNEL_SINCE(major, minor) (LINUX_VERSION_CODE - KERNEL_VERSION(major, minor, 0) >= 0)

#if !PVFS_KERNEL_SINCE(6, 1)
#error "pvfs needs Linux 6.1 or later"
#endif

/* ---------------------------------------------------------------- identity mapping of a mount */

#if PVFS_KERNEL_SINCE(6, 3)
#define pvfs_idmap mnt_idmap		/* as in "struct pvfs_idmap *" */
#define PVFS_NOP_IDMAP (&nop_mnt_idmap)
#else
#define pvfs_idmap user_namespace
#define PVFS_NOP_IDMAP (&init_user_ns)
#endif

static inline struct pvfs_idmap *pvfs_file_idmap(const struct file *file)
{
#if PVFS_KERNEL_SINCE(6, 3)
	return file_mnt_idmap(file);
#else
	return file_mnt_user_ns((struct file *)file);
#endif
}

static inline void pvfs_fillattr(struct pvfs_idmap *idmap, u32 mask, struct inode *inode,
				 struct kstat *stat)
{
#if PVFS_KERNEL_SINCE(6, 6)
	generic_fillattr(idmap, mask, inode, stat);
#else
	generic_fillattr(idmap, inode, stat);
#endif
}

/* ---------------------------------------------------------------- ACLs */

#ifndef CONFIG_FS_POSIX_ACL
#error "pvfs needs a kernel with CONFIG_FS_POSIX_ACL"
#endif

/*
 * What inode operations have for ACLs. Up to 6.1 one call serves permission checks and getxattr(2);
 * there our own handlers for the two attributes' names come before it.
 */
#if PVFS_KERNEL_SINCE(6, 2)
#define PVFS_ACL_OPERATIONS \
	.get_inode_acl = pvfs_acl_for_check, .get_acl = pvfs_get_acl, .set_acl = pvfs_set_acl
#define pvfs_acl_target dentry		/* as in "struct pvfs_acl_target *" */
#define pvfs_acl_target_inode d_inode
/* Never called: ACLs come to pvfs_set_acl(). */
#define pvfs_acl_set_mapped(idmap, inode, flag, value, size) (-EOPNOTSUPP)
#else
#define PVFS_ACL_OPERATIONS .get_acl = pvfs_acl_for_check, .set_acl = pvfs_set_acl
#define pvfs_acl_target inode
#define pvfs_acl_target_inode(inode) (inode)
#endif

/* ---------------------------------------------------------------- inode times */

#if PVFS_KERNEL_SINCE(6, 7)
static inline void pvfs_set_atime(struct inode *inode, struct timespec64 t)
{
	inode_set_atime_to_ts(inode, t);
}

static inline void pvfs_set_mtime(struct inode *inode, struct timespec64 t)
{
	inode_set_mtime_to_ts(inode, t);
}

static inline void pvfs_set_ctime(struct inode *inode, struct timespec64 t)
{
	inode_set_ctime_to_ts(inode, t);
}

static inline struct timespec64 pvfs_mtime(const struct inode *inode)
{
	return inode_get_mtime(inode);
}
#else
static inline void pvfs_set_atime(struct inode *inode, struct timespec64 t)
{
	inode->i_atime = t;
}

static inline void pvfs_set_mtime(struct inode *inode, struct timespec64 t)
{
	inode->i_mtime = t;
}

static inline void pvfs_set_ctime(struct inode *inode, struct timespec64 t)
{
	inode->i_ctime = t;
}

static inline struct timespec64 pvfs_mtime(const struct inode *inode)
{
	return inode->i_mtime;
}
#endif

/* ---------------------------------------------------------------- access times */

int pvfs_update_time(struct inode *inode, int flags);

#if PVFS_KERNEL_SINCE(6, 6)
#define pvfs_update_time_op pvfs_update_time
#else
static inline int pvfs_update_time_op(struct inode *inode, struct timespec64 *now, int flags)
{
	return pvfs_update_time(inode, flags);
}
#endif

/* ---------------------------------------------------------------- pages of an iterator */

/**
 * pvfs_iter_pages - take pages from an iterator over user memory or bio_vecs, and advance it past
 * them
 * @pages: room for @maxpages; filled
 * @maxsize: bytes, at most
 * @off: where the first byte is in the first page
 *
 * The pages are held as this kernel holds pages for direct I/O: pinned (6.3 and later: only those
 * of user memory; a bio_vec's are its maker's business), else referenced. Give each back with
 * pvfs_iter_page_put().
 *
 * Return: bytes, contiguous in the pages but for page borders; or -errno.
 */
static inline ssize_t pvfs_iter_pages(struct iov_iter *iter, struct page **pages, size_t maxsize,
				      unsigned int maxpages, size_t *off)
{
#if PVFS_KERNEL_SINCE(6, 3)
	return iov_iter_extract_pages(iter, &pages, maxsize, maxpages, 0, off);
#else
	return iov_iter_get_pages2(iter, pages, maxsize, maxpages, off);
#endif
}

/**
 * pvfs_iter_page_put - give back a page of pvfs_iter_pages()
 * @user: the iterator was one over user memory
 */
static inline void pvfs_iter_page_put(struct page *page, bool user)
{
#if PVFS_KERNEL_SINCE(6, 3)
	if (user)
		unpin_user_page(page);
#else
	put_page(page);
#endif
}

/* ---------------------------------------------------------------- file locks */

#if PVFS_KERNEL_SINCE(6, 3)
#include <linux/filelock.h>
#endif

/*
 * A field of a struct file_lock that other kinds of locks have too: type, flags, owner, pid, file.
 */
#if PVFS_KERNEL_SINCE(6, 9)
#define pvfs_fl(fl, field) ((fl)->c.flc_##field)
#define PVFS_FL_LIST c.flc_list
#else
#define pvfs_fl(fl, field) ((fl)->fl_##field)
#define PVFS_FL_LIST fl_list
#endif

/* ---------------------------------------------------------------- faults */

/* A fault that is about to return VM_FAULT_RETRY: what it has locked of the process's memory. */
static inline void pvfs_fault_unlock(struct vm_fault *vmf)
{
#if PVFS_KERNEL_SINCE(6, 6)
	release_fault_lock(vmf);
#else
	mmap_read_unlock(vmf->vma->vm_mm);
#endif
}

/* ---------------------------------------------------------------- the rest */

#if PVFS_KERNEL_SINCE(6, 2)
#define pvfs_timer_delete_sync timer_delete_sync
#else
#define pvfs_timer_delete_sync del_timer_sync
#endif

#if PVFS_KERNEL_SINCE(6, 5)
#define pvfs_splice_read copy_splice_read
#else
#define pvfs_splice_read generic_file_splice_read
#endif

/* copy_file_range(2) through this machine. */
#if PVFS_KERNEL_SINCE(6, 8)
#include <linux/splice.h>
#define pvfs_copy_through splice_copy_file_range
#else
#define pvfs_copy_through(in, pos_in, out, pos_out, len) generic_copy_file_range(in, pos_in, out, pos_out, len, 0)
#endif

/* What write_cache_pages() calls back with. */
#if PVFS_KERNEL_SINCE(6, 3)
#define pvfs_writepage_arg folio	/* as in "struct pvfs_writepage_arg *" */
#define pvfs_writepage_folio(arg) (arg)
#else
#define pvfs_writepage_arg page
#define pvfs_writepage_folio(arg) page_folio(arg)
#endif

/* Of a page or of a folio, in kernels of one version. */
#define pvfs_wbc_account(wbc, folio, n)						\
	wbc_account_cgroup_owner(wbc, _Generic(&wbc_account_cgroup_owner,	\
		void (*)(struct writeback_control *, struct folio *, size_t): (folio), \
		default: &(folio)->page), n)

/* As filemap_get_folios_tag(), whose batch was of pages once. */
static inline unsigned int pvfs_get_folios_tag(struct address_space *mapping, pgoff_t *start, pgoff_t end,
					       xa_mark_t tag, struct folio_batch *batch)
{
#if PVFS_KERNEL_SINCE(6, 3)
	return filemap_get_folios_tag(mapping, start, end, tag, batch);
#else
	return pagevec_lookup_range_tag((struct pagevec *)batch, mapping, start, end, tag);
#endif
}

/* The folio that is there, with a reference; or NULL. */
static inline struct folio *pvfs_folio_there(struct address_space *mapping, pgoff_t index)
{
	struct folio *folio = filemap_get_folio(mapping, index);

#if PVFS_KERNEL_SINCE(6, 4)
	return IS_ERR(folio) ? NULL : folio;
#else
	return folio;
#endif
}

/* Is the task a helper that does not run the system call that its registers show? */
static inline bool pvfs_task_is_worker(const struct task_struct *task)
{
#if PVFS_KERNEL_SINCE(6, 4)
	return !task->mm || (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
#else
	return !task->mm || (task->flags & (PF_KTHREAD | PF_IO_WORKER));
#endif
}

/*
 * A kernel's socket does not hold its network namespace; what TCP has yet to do when it has been
 * released, and when the mount that held the namespace is gone, needs it. So it is made to.
 */
static inline void pvfs_sk_hold_net(struct sock *sk)
{
#if PVFS_KERNEL_SINCE(6, 12)
	sk_net_refcnt_upgrade(sk);
#else
	struct net *net = sock_net(sk);

	sk->sk_net_refcnt = 1;
	get_net_track(net, &sk->ns_tracker, GFP_KERNEL);
	sock_inuse_add(net, 1);
#endif
}

/*
 * A socket that is used under reclaim must not use the task's page fragment: a page fault may be
 * using it.
 */
static inline void pvfs_sk_no_task_frag(struct sock *sk)
{
	sk->sk_use_task_frag = false;
}

#endif
