// SPDX-License-Identifier: GPL-2.0
/*
 * inode.c - inodes: the cache of them, walks over lists of them, and references that outlive them or are dropped
 * by who must not wait. What is known of their attributes is attr.c's.
 */
#include <linux/slab.h>
#include "vfs.h"

#define CLOSE_WAIT_MS 5000		/* at unmount, for what the mgr has to be told */
#define WRITE_WAIT_MS 90000		/* the same, while no byte gets on of what was written and closed */
#define CLOSE_ABORT_MS 200		/* then requests fail, as often as that */

static struct kmem_cache *inode_cache;

/* ---------------------------------------------------------------- the cache */

static void pvfs_inode_init_once(void *p)
{
	struct pvfs_inode *pi = p;

	inode_init_once(&pi->vfs_inode);
}

int pvfs_inode_cache_init(void)
{
	inode_cache = kmem_cache_create("pvfs_inode", sizeof(struct pvfs_inode), 0,
					SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, pvfs_inode_init_once);
	return inode_cache ? 0 : -ENOMEM;
}

void pvfs_inode_cache_exit(void)
{
	/* Inodes are freed by RCU callbacks of ours. */
	rcu_barrier();
	kmem_cache_destroy(inode_cache);
}

struct inode *pvfs_alloc_inode(struct super_block *sb)
{
	struct pvfs_inode *pi = alloc_inode_sb(sb, inode_cache, GFP_KERNEL);

	if (!pi)
		return NULL;
	/* All but the inode itself, which was made once. */
	memset(pi, 0, offsetof(struct pvfs_inode, vfs_inode));
	INIT_LIST_HEAD(&pi->opens.listed.link);
	INIT_LIST_HEAD(&pi->opens.idle);
	INIT_LIST_HEAD(&pi->locks.owners);
	INIT_LIST_HEAD(&pi->locks.listed.link);
	spin_lock_init(&pi->lock);
	mutex_init(&pi->draft.mutex);
	sema_init(&pi->wb.head_turn, 1);
	INIT_WORK(&pi->wb.early, pvfs_behind_early_work);
	INIT_DELAYED_WORK(&pi->wl.work, pvfs_wlease_work);
	pvfs_turn_init(&pi->turn);
	INIT_WORK(&pi->wl.ask, pvfs_wlease_ask_work);
	INIT_WORK(&pi->wl.settle_work, pvfs_wlease_settle_work);
	INIT_WORK(&pi->resend.work, pvfs_unstable_work);
	INIT_WORK(&pi->draft.recalled_work, pvfs_draft_recalled_work);
	return &pi->vfs_inode;
}

void pvfs_free_inode(struct inode *inode)
{
	/* Here, behind RCU: path walks read it without a reference. */
	if (S_ISLNK(inode->i_mode))
		kfree(inode->i_link);
	kmem_cache_free(inode_cache, PVFS_I(inode));
}

void pvfs_evict_inode(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);

	pvfs_turn_evict(inode);
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	pvfs_locks_evict(inode);
	pvfs_listing_drop(inode, NULL);
	spin_lock(&pi->lock);
	pvfs_leasestat_drop(pi);
	spin_unlock(&pi->lock);
	if (pi->use) {
		/* What is left are closes of readers that the mgr has not answered. */
		spin_lock(&vol->open_lock);
		pvfs_deferred_evict(pi);
		pi->use->pi = NULL;
		list_del_init(&pi->opens.listed.link);
		spin_unlock(&vol->open_lock);
		pvfs_use_put(pi->use);
		pi->use = NULL;
	}
	pvfs_unstable_evict(inode);
	pvfs_acl_inode_evict(inode);
}

static int inode_test(struct inode *inode, void *data)
{
	return pvfs_inode_is(inode, data);
}

static int inode_set(struct inode *inode, void *data)
{
	const struct pvfs_fid *fid = data;

	PVFS_I(inode)->fid = *fid;
	inode->i_ino = fid->ino;
	return 0;
}

const struct inode_operations pvfs_special_inode_operations = {
	PVFS_INODE_OPERATIONS,
	PVFS_ACL_OPERATIONS,
};

/* The parts that never change. */
static void inode_setup(struct inode *inode, const struct pvfs_attr *attr)
{
	/* Times are the servers' business. */
	inode->i_flags |= S_NOCMTIME;
	inode->i_mode = attr->mode;
	pvfs_acl_inode_setup(inode);
	switch (attr->mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &pvfs_file_inode_operations;
		inode->i_fop = &pvfs_file_operations;
		inode->i_mapping->a_ops = &pvfs_aops;
		break;
	case S_IFDIR:
		inode->i_op = &pvfs_dir_inode_operations;
		inode->i_fop = &pvfs_dir_operations;
		break;
	case S_IFLNK:
		inode->i_op = &pvfs_symlink_inode_operations;
		break;
	default:
		inode->i_op = &pvfs_special_inode_operations;
		init_special_inode(inode, attr->mode,
				   MKDEV(attr->rdev >> 32, attr->rdev & MINORMASK));
		break;
	}
}

/**
 * pvfs_iget - the inode that attributes belong to
 * @sb: the super block
 * @attr: checked by pvfs_attr_sane(); taken in
 * @ask: as for pvfs_inode_update()
 *
 * Return: a reference to it, or ERR_PTR.
 */
struct inode *pvfs_iget(struct super_block *sb, const struct pvfs_attr *attr,
			const struct pvfs_ask *ask)
{
	struct pvfs_fid fid = attr->fid;
	struct inode *inode;
	int err;

	inode = iget5_locked(sb, fid.ino, inode_test, inode_set, &fid);
	if (!inode)
		return ERR_PTR(-ENOMEM);
	if (inode->i_state & I_NEW) {
		inode_setup(inode, attr);
		err = pvfs_inode_update(inode, attr, ask);
		if (err) {
			iget_failed(inode);
			return ERR_PTR(err);
		}
		PVFS_I(inode)->cache_version = attr->version;
		unlock_new_inode(inode);
		return inode;
	}
	err = pvfs_inode_update(inode, attr, ask);
	if (err) {
		iput(inode);
		return ERR_PTR(err);
	}
	return inode;
}

/**
 * pvfs_inode_update_cached - take in attributes if the inode is one that we hold
 * @sb: the super block
 * @attr: checked by pvfs_attr_sane()
 */
void pvfs_inode_update_cached(struct super_block *sb, const struct pvfs_attr *attr)
{
	struct pvfs_fid fid = attr->fid;
	struct inode *inode = ilookup5(sb, fid.ino, inode_test, &fid);

	if (!inode)
		return;
	pvfs_inode_update(inode, attr, NULL);
	iput(inode);
}

/* ---------------------------------------------------------------- walks over a list of inodes */

/**
 * pvfs_walk_begin - before a walk over a list that changes meanwhile; others may walk there too
 * @w: to be ended by pvfs_walk_end()
 * @lock: the list's
 * @list: of struct pvfs_walked
 * @offset: of that in struct pvfs_inode
 */
void pvfs_walk_begin(struct pvfs_walk *w, spinlock_t *lock, struct list_head *list, size_t offset)
{
	w->lock = lock;
	w->offset = offset;
	w->at.mark = w->end.mark = true;
	spin_lock(lock);
	list_add(&w->at.link, list);
	list_add_tail(&w->end.link, list);
	spin_unlock(lock);
}

/**
 * pvfs_walk_next - the next inode
 * @w: the walk
 *
 * Each that is on the list from the beginning to the end comes once; those on their way out don't.
 *
 * Return: the inode, with a reference; NULL: that was all.
 */
struct inode *pvfs_walk_next(struct pvfs_walk *w)
{
	struct inode *inode = NULL;
	struct pvfs_walked *next;

	spin_lock(w->lock);
	while (!inode) {
		next = list_next_entry(&w->at, link);
		if (next == &w->end)
			break;
		list_move(&w->at.link, &next->link);
		if (!next->mark)
			inode = igrab(&((struct pvfs_inode *)((char *)next - w->offset))->vfs_inode);
	}
	spin_unlock(w->lock);
	return inode;
}

/**
 * pvfs_walk_end - after a walk, whether it came to its end or not
 * @w: the walk
 */
void pvfs_walk_end(struct pvfs_walk *w)
{
	spin_lock(w->lock);
	list_del(&w->at.link);
	list_del(&w->end.link);
	spin_unlock(w->lock);
}

/* ---------------------------------------------------------------- what a CLOSE leaves behind */

static void inode_use_put_work(struct work_struct *work)
{
	struct pvfs_use *use = container_of(work, struct pvfs_use, put_work);
	int n = atomic_xchg(&use->puts, 0), i;
	struct pvfs_volume *vol = use->vol;

	/* While one of these references is left, so is the inode. */
	for (i = 0; i < n; i++)
		iput(&use->pi->vfs_inode);
	if (n && atomic_sub_and_test(n, &vol->closing))
		wake_up_all(&vol->async_wait);
	pvfs_use_put(use);
}

/**
 * pvfs_use_iput - drop a reference to the inode from where nothing may be waited for
 * @use: the inode's
 *
 * The last reference to an inode waits for its pages, which may be on their way from an iod: the
 * threads that complete requests must not.
 */
void pvfs_use_iput(struct pvfs_use *use)
{
	atomic_inc(&use->puts);
	refcount_inc(&use->ref);
	if (!queue_work(use->vol->put_wq, &use->put_work))
		pvfs_use_put(use);
}

/**
 * pvfs_iput_later - the same, for a reference that was taken by who must not wait for pages
 * @inode: the inode
 *
 * Recovery: pages that are being written may be waiting for it.
 */
void pvfs_iput_later(struct inode *inode)
{
	/* Pairs with pvfs_use_init(). What was never opened has no pages that are written. */
	struct pvfs_use *use = smp_load_acquire(&PVFS_I(inode)->use);

	if (!use) {
		iput(inode);
		return;
	}
	if (atomic_add_unless(&inode->i_count, -1, 1))
		return;
	atomic_inc(&use->vol->closing);
	pvfs_use_iput(use);
}

/*
 * Has an unmount waited long enough? Not while files that were written and closed get on, or for long enough: that is worth
 * more than what the mgr would hear.
 */
static bool closes_give_up(struct pvfs_volume *vol, int *wrote, unsigned int *waited)
{
	/* umount -f was just asked for: that is who says so. */
	unsigned long when = READ_ONCE(vol->forced);
	bool forced = when && time_before(jiffies, when + msecs_to_jiffies(2 * CLOSE_WAIT_MS));
	/* Of a draft a page, or so. */
	u64 dirty = pvfs_full_dirty(vol, true) + (u64)atomic_read(&vol->drafts_due) * PAGE_SIZE;
	int now = atomic_read(&vol->wrote);

	*waited = now == *wrote ? *waited + CLOSE_WAIT_MS : 0;
	*wrote = now;
	if (!dirty)
		return true;
	if (*waited < WRITE_WAIT_MS && !forced)
		return false;
	pr_err("%s: unmounted although a server does not answer: about %llu KiB that were written and not synced are lost\n",
	       vol->opts.volume, dirty >> 10);
	return true;
}

/**
 * pvfs_closes_wait - wait until no CLOSE holds an inode, and no file that was closed is being written; then see to it
 * @vol: the volume, which nobody can use any more
 */
void pvfs_closes_wait(struct pvfs_volume *vol)
{
	unsigned int ms = CLOSE_WAIT_MS, waited = 0;
	int wrote = atomic_read(&vol->wrote);
	bool given_up = false;

	/* Again: what failed may be followed by another request, as of a draft that is due. */
	while (!wait_event_timeout(vol->async_wait, !atomic_read(&vol->closing),
				   msecs_to_jiffies(ms))) {
		given_up = given_up || closes_give_up(vol, &wrote, &waited);
		if (!given_up)
			continue;
		pvfs_umount_begin(vol->sb);
		ms = CLOSE_ABORT_MS;
	}
	/* The one that was last may still be looking at the volume. */
	flush_workqueue(vol->put_wq);
}

/**
 * pvfs_use_init - for the first open
 * @inode: the inode
 */
int pvfs_use_init(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_use *use;

	if (READ_ONCE(pi->use))
		return 0;
	use = kzalloc(sizeof(*use), GFP_KERNEL_ACCOUNT);
	if (!use)
		return -ENOMEM;
	refcount_set(&use->ref, 1);
	use->vol = PVFS_VOL(inode);
	use->pi = pi;
	spin_lock_init(&use->lock);
	INIT_WORK(&use->put_work, inode_use_put_work);
	INIT_LIST_HEAD(&use->gone);
	spin_lock(&pi->lock);
	if (!pi->use) {
		/* Pairs with smp_load_acquire() of those who do not take the lock. */
		smp_store_release(&pi->use, use);
		use = NULL;
	}
	spin_unlock(&pi->lock);
	kfree(use);
	return 0;
}

/**
 * pvfs_use_put - drops a reference; NULL is fine
 * @use: whose; may be NULL
 */
void pvfs_use_put(struct pvfs_use *use)
{
	if (use && refcount_dec_and_test(&use->ref))
		kfree(use);
}
