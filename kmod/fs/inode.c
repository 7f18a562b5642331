// SPDX-License-Identifier: GPL-2.0
/*
 * inode.c - inodes: the cache of them, what we know of their attributes and how fresh that is,
 * stat, chmod and the like, permissions.
 *
 * Attributes come with nearly every answer of the mgr. They carry a version; older ones never
 * replace newer ones, in whatever order answers arrive.
 */
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <linux/iversion.h>
#include <linux/pagemap.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include "vfs.h"

/* Longest time between a LOOKUP's answer and its use by the same system call. */
#define FRESH_NS (50 * NSEC_PER_MSEC)
#define CLOSE_WAIT_MS 5000		/* at unmount, for what the mgr has to be told */
#define CLOSE_ABORT_MS 200		/* then requests fail, as often as that */

static struct kmem_cache *inode_cache;

/* ---------------------------------------------------------------- what comes from outside */

/**
 * pvfs_bogus - a server sent something that makes no sense
 * @vol: the volume
 * @what: what it was
 * @ino: of which inode; 0: none
 *
 * The one exit for all such values: one line in the log, limited, and -EIO.
 */
int pvfs_bogus(struct pvfs_volume *vol, const char *what, u64 ino)
{
	pr_warn_ratelimited("%s: the mgr sent nonsense: %s (ino %llu)\n", vol->opts.volume, what,
			    ino);
	return -EIO;
}

/* pvfs_mode_sane - does @mode name a type of file? */
bool pvfs_mode_sane(u32 mode)
{
	if (mode & ~(u32)(S_IFMT | S_IALLUGO))
		return false;
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
	       S_ISFIFO(mode) || S_ISSOCK(mode);
}

static bool inode_ts_sane(const struct pvfs_ts *t)
{
	return t->nsec < NSEC_PER_SEC;
}

/**
 * pvfs_attr_sane - can these attributes be an inode's?
 * @vol: the volume
 * @attr: from the wire
 */
bool pvfs_attr_sane(struct pvfs_volume *vol, const struct pvfs_attr *attr)
{
	if (!attr->fid.ino || !pvfs_mode_sane(attr->mode) || attr->size > PVFS_FILE_MAX)
		return false;
	if (!inode_ts_sane(&attr->atime) || !inode_ts_sane(&attr->mtime) ||
	    !inode_ts_sane(&attr->ctime) || !inode_ts_sane(&attr->btime))
		return false;
	if (S_ISREG(attr->mode) && !pvfs_layout_valid(&attr->layout, vol->niods))
		return false;
	if ((attr->flags & PVFS_AF_STUFFED) && attr->size > PVFS_STUFF_MAX)
		return false;
	return uid_valid(make_kuid(&init_user_ns, attr->uid)) &&
	       gid_valid(make_kgid(&init_user_ns, attr->gid));
}

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
	INIT_LIST_HEAD(&pi->opened.link);
	INIT_LIST_HEAD(&pi->idle);
	INIT_LIST_HEAD(&pi->lock_owners);
	INIT_LIST_HEAD(&pi->locked.link);
	spin_lock_init(&pi->lock);
	mutex_init(&pi->draft_mutex);
	sema_init(&pi->head_turn, 1);
	INIT_DELAYED_WORK(&pi->wl.work, pvfs_wlease_work);
	pvfs_turn_init(&pi->turn);
	INIT_WORK(&pi->wl.ask, pvfs_wlease_ask_work);
	INIT_WORK(&pi->wl.settle_work, pvfs_wlease_settle_work);
	INIT_WORK(&pi->resend_work, pvfs_unstable_work);
	INIT_WORK(&pi->draft_recalled_work, pvfs_draft_recalled_work);
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
		list_del_init(&pi->opened.link);
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

/**
 * pvfs_inode_update - take in attributes that came from the mgr
 * @inode: the inode
 * @attr: checked by pvfs_attr_sane(), and this inode's
 * @ask: from before the question, if the answer may bring a lease; else NULL
 *
 * Older ones than we have are left alone. A file is never made shorter than our own writes have
 * made it, unless it was truncated since: the mgr may not know of them yet. Those without the true
 * size do for all but that: who needs it asks with GETATTR, which waits until the mgr knows.
 *
 * Return: 0, or -EIO when the type is another than it was.
 */
int pvfs_inode_update(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct timespec64 atime, ctime;
	u64 size = attr->size;

	if ((attr->mode ^ inode->i_mode) & S_IFMT)
		return pvfs_bogus(PVFS_VOL(inode), "another type for an inode", attr->fid.ino);
	spin_lock(&pi->lock);
	if (!(attr->flags & PVFS_AF_STUFFED) && !pi->striped) {
		WRITE_ONCE(pi->striped, true);
		/*
		 * What is written from here on the mgr hears of later. It leases no striped file that
		 * somebody writes; this one it may have leased as a stuffed one.
		 */
		if (pi->version)
			pvfs_own_change(inode);
	}
	/* What we have may be as old as it was: also if the rest of it is newer than this. */
	if (attr->flags & PVFS_AF_SIZE_UNKNOWN) {
		pi->attr_valid = false;
	} else if (attr->version >= pi->told_version) {
		pi->told = size;
		pi->told_version = attr->version;
	}
	/* Nor does a lease come with them: it would be taken for one on what we have. */
	if (attr->version < pi->version) {
		spin_unlock(&pi->lock);
		return 0;
	}
	if (S_ISREG(attr->mode) && pi->floor_gen == attr->trunc_gen)
		size = max(size, pi->floor);
	if ((attr->flags & PVFS_AF_SIZE_UNKNOWN) && pi->trunc_gen == attr->trunc_gen)
		size = max_t(u64, size, i_size_read(inode));
	/* What the mgr says of it is from before what was written. */
	if (READ_ONCE(pi->draft))
		size = max_t(u64, size, i_size_read(inode));
	inode->i_mode = attr->mode;
	i_uid_write(inode, attr->uid);
	i_gid_write(inode, attr->gid);
	set_nlink(inode, attr->nlink);
	i_size_write(inode, size);
	inode->i_blocks = attr->blocks;
	atime = pvfs_ts_to_kernel(&attr->atime);
	ctime = pvfs_ts_to_kernel(&attr->ctime);
	/* The mgr will do the same with it. */
	if (timespec64_compare(&pi->atime_due, &atime) > 0 &&
	    timespec64_compare(&pi->atime_due, &ctime) > 0)
		atime = pi->atime_due;
	pvfs_set_atime(inode, atime);
	pvfs_set_mtime(inode, pvfs_ts_to_kernel(&attr->mtime));
	pvfs_set_ctime(inode, ctime);
	inode_set_iversion_raw(inode, attr->version);
	pi->btime = pvfs_ts_to_kernel(&attr->btime);
	pi->layout = attr->layout;
	if (pvfs_wlease_keeps_step(pi, attr))
		pi->cache_version = attr->version;
	pi->version = attr->version;
	pi->trunc_gen = attr->trunc_gen;
	WRITE_ONCE(pi->has,
		   attr->flags & (PVFS_AF_XATTR | PVFS_AF_ACL | PVFS_AF_DEFACL | PVFS_AF_CAPS));
	pi->acl_version = attr->acl_version;
	pi->attr_time = jiffies;
	pi->attr_valid = !(attr->flags & PVFS_AF_SIZE_UNKNOWN);
	if (pi->stale && attr->nlink)	/* it was taken for removed */
		inode_set_flags(inode, 0, S_DEAD);
	pi->stale = false;
	pvfs_lease_take(inode, attr, ask);
	pvfs_wlease_closed(inode, attr, ask);
	spin_unlock(&pi->lock);
	return 0;
}

/**
 * pvfs_dir_told - take in a directory's attributes that came, with a lease, along with its names
 * @dir: the directory
 * @attr: checked
 * @ask: from before the question
 * @token: set to that of the lease under which the names may be believed; 0: they may not
 *
 * Return: as pvfs_inode_update().
 */
int pvfs_dir_told(struct inode *dir, const struct pvfs_attr *attr, const struct pvfs_ask *ask,
		  unsigned long *token)
{
	int err = pvfs_inode_update(dir, attr, ask);

	*token = err ? 0 : pvfs_lease_since(dir, ask);
	return err;
}

/**
 * pvfs_inode_stale - the mgr said that there is no such inode (any more)
 * @inode: the inode
 */
void pvfs_inode_stale(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->stale = true;
	pi->attr_valid = false;
	pvfs_own_change(inode);
	spin_unlock(&pi->lock);
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

/* ---------------------------------------------------------------- how fresh attributes are */

/**
 * pvfs_syscall_nr - the system call that this task is in
 *
 * Return: its number; -1 for threads that do other tasks' work.
 */
int pvfs_syscall_nr(void)
{
	if (pvfs_task_is_worker(current))
		return -1;
	return syscall_get_nr(current, task_pt_regs(current));
}

/**
 * pvfs_fresh_leave - a LOOKUP of this task, for the last component of a path, has just brought
 * attributes
 * @inode: whose
 * @ask: from before the LOOKUP
 *
 * The kernel makes stat(path) of two calls to us: one that finds the name, one that reads the
 * attributes. To ask the mgr in both would double the price of stat. But attributes may be used
 * without asking only if they are not older than the system call they are used in: otherwise a
 * change that was complete before the call could be missed. So the first call leaves leave for the
 * second: good once, for the same task, in a system call of the same number.
 *
 * That this is the same system call, and not a later one of the same number, follows from who
 * takes: in a call that stats a path, the taking follows the leaving, so a leave that is found was
 * left in this call; a call that stats a descriptor leaves none, and would find one only if a call
 * of the same number, on a path, had failed between the two. For that case alone there is the limit
 * of some milliseconds.
 *
 * What we wrote goes along with GETATTR, not with LOOKUP. So there is none when the mgr may have
 * answered before it was told of all that was written before the question, or while some of that is in
 * the page cache only.
 */
void pvfs_fresh_leave(struct inode *inode, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	int nr = pvfs_syscall_nr();

	if (nr < 0 || !pvfs_writes_reported(inode, ask) || pvfs_unwritten(inode))
		return;
	spin_lock(&pi->lock);
	pi->fresh.task = current;
	pi->fresh.nr = nr;
	pi->fresh.when = ktime_get_ns();
	spin_unlock(&pi->lock);
}

/**
 * pvfs_fresh_take - may the attributes we have be used without asking?
 * @inode: whose
 *
 * Takes the leave: the next question gets no.
 */
bool pvfs_fresh_take(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	spin_lock(&pi->lock);
	ret = pi->fresh.task == current && ktime_get_ns() - pi->fresh.when < FRESH_NS &&
	      pi->attr_valid && pi->fresh.nr == pvfs_syscall_nr();
	pi->fresh.task = NULL;
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_attr_trusted - with actimeo: are the attributes we have young enough?
 * @inode: the inode
 */
bool pvfs_attr_trusted(struct inode *inode)
{
	unsigned int ms = PVFS_VOL(inode)->opts.actimeo_ms;
	struct pvfs_inode *pi = PVFS_I(inode);

	return ms && READ_ONCE(pi->attr_valid) &&
	       time_before(jiffies, READ_ONCE(pi->attr_time) + msecs_to_jiffies(ms));
}

/**
 * pvfs_size_told - how long a file is, for who has just made sure that the attributes are fresh
 * @inode: the inode
 *
 * i_size is also what writes make it that end on this node between the mgr's answer and now, but not
 * what those of other nodes did that ended before them: together it may have been no size ever. The
 * answer alone was one.
 */
loff_t pvfs_size_told(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	loff_t size;

	if (!S_ISREG(inode->i_mode) || PVFS_VOL(inode)->opts.actimeo_ms)
		return i_size_read(inode);
	spin_lock(&pi->lock);
	size = pi->told;
	spin_unlock(&pi->lock);
	return size;
}

/**
 * pvfs_attr_distrust - we have changed something: what we know is old, whatever actimeo says
 * @inode: the inode
 */
void pvfs_attr_distrust(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->attr_valid = false;
	pi->fresh.task = NULL;
	pvfs_own_change(inode);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_dir_removed - the mgr does not know a directory any more: another client has removed it
 * @dir: open here, or somebody's current directory
 *
 * From now on it has no links and no entries, and the VFS lets nobody make any; unless it turns out
 * to be there, see pvfs_inode_update().
 *
 * Return: false: it is the volume's root, which nobody removes.
 */
bool pvfs_dir_removed(struct inode *dir)
{
	if (d_inode(dir->i_sb->s_root) == dir)
		return false;
	spin_lock(&PVFS_I(dir)->lock);
	clear_nlink(dir);
	spin_unlock(&PVFS_I(dir)->lock);
	inode_set_flags(dir, S_DEAD, S_DEAD);
	return true;
}

/**
 * pvfs_revalidate - make sure that the attributes are not older than this call (or than actimeo
 * allows)
 * @inode: the inode
 */
int pvfs_revalidate(struct inode *inode)
{
	int err = pvfs_draft_show(inode) ?: pvfs_behind_settle(inode);

	if (err)
		return err;
	if (pvfs_fresh_take(inode) || pvfs_attr_trusted(inode) || pvfs_attrs_leased(inode))
		return 0;
	/*
	 * Removed, and still open or somebody's current directory: the mgr has forgotten it, nothing
	 * changes any more.
	 */
	if (S_ISDIR(inode->i_mode) && !inode->i_nlink)
		return 0;
	err = pvfs_meta_getattr(inode);
	if (err == -ESTALE && S_ISDIR(inode->i_mode) && pvfs_dir_removed(inode))
		return 0;
	return err;
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
	atomic_inc(&use->vol->closing);
	pvfs_use_iput(use);
}

/**
 * pvfs_closes_wait - wait until no CLOSE holds an inode, for some seconds; then see to it
 * @vol: the volume, which nobody can use any more
 */
void pvfs_closes_wait(struct pvfs_volume *vol)
{
	unsigned int ms = CLOSE_WAIT_MS;

	/* Again: what failed may be followed by another request, as of a draft that is due. */
	while (!wait_event_timeout(vol->async_wait, !atomic_read(&vol->closing),
				   msecs_to_jiffies(ms))) {
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

/* ---------------------------------------------------------------- what the VFS calls */

/*
 * A truncation, among other things maybe. Nobody stores through a mapping meanwhile, and what is
 * behind the new end goes to the iods first, so that nothing comes after the cut. What a mapping
 * holds behind the end of the last page becomes zeros when the file grows.
 */
static int inode_set_size(struct inode *inode, struct pvfs_setattr_req *m)
{
	struct address_space *mapping = inode->i_mapping;
	loff_t from = min_t(loff_t, m->size, i_size_read(inode));
	int err;

	err = down_write_killable(&mapping->invalidate_lock);
	if (err)
		return err;
	if (mapping->nrpages) {
		loff_t page = round_down(from, PAGE_SIZE);

		unmap_mapping_range(mapping, page, 0, 1);
		err = pvfs_cache_write(inode, page, LLONG_MAX);
		if (err == -EINTR)
			goto out;
	}
	err = pvfs_cache_wait(inode, from) ?: pvfs_meta_setattr(inode, m);
	if (!err)
		truncate_pagecache(inode, from);
out:
	filemap_invalidate_unlock(mapping);
	return err;
}

int pvfs_getattr(struct pvfs_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ask = (flags & AT_STATX_SYNC_TYPE) != AT_STATX_DONT_SYNC;
	int err = 0;

	if ((flags & AT_STATX_SYNC_TYPE) == AT_STATX_FORCE_SYNC)
		err = pvfs_behind_settle(inode) ?: pvfs_fresh_take(inode) ? 0 : pvfs_meta_getattr(inode);
	else if (ask)
		err = pvfs_revalidate(inode);
	if (err)
		return err;
	spin_lock(&pi->lock);
	pvfs_fillattr(idmap, mask, inode, stat);
	stat->ino = pi->fid.ino;	/* i_ino has 32 bits on a machine of 32 bits */
	stat->btime = pi->btime;
	spin_unlock(&pi->lock);
	if (ask)
		stat->size = pvfs_size_told(inode);
	stat->result_mask |= STATX_BTIME;
	/* Asking the iods for as much as fits one request is what reads and writes do best. */
	if (S_ISREG(inode->i_mode))
		stat->blksize = PVFS_VOL(inode)->rsize;
	return 0;
}

int pvfs_setattr(struct pvfs_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	unsigned int valid = attr->ia_valid;
	struct pvfs_setattr_req m = {};
	bool draft = false;
	int err;

	if (S_ISREG(inode->i_mode) && (valid & ATTR_OPEN) && (valid & ATTR_FILE)) {
		struct pvfs_file *pf = attr->ia_file->private_data;

		if (pf && pf->truncated) {
			pf->truncated = false;
			return 0;
		}
	}
	/* What was written comes before times that are set. A truncation sees to that by itself. */
	if (!(valid & ATTR_SIZE)) {
		err = pvfs_behind_settle(inode);
		if (err)
			return err;
	}
	/* Nobody else has changed a draft, and its owner may do all that goes into it. */
	if (READ_ONCE(PVFS_I(inode)->draft)) {
		struct iattr copy = *attr;

		draft = !setattr_prepare(idmap, dentry, &copy);
	}
	if (!draft && pvfs_checked_here(PVFS_VOL(inode), idmap)) {
		err = pvfs_revalidate(inode) ?: setattr_prepare(idmap, dentry, attr);
		if (err)
			return err;
	}
	if (valid & ATTR_SIZE) {
		err = inode_newsize_ok(inode, attr->ia_size);
		if (err)
			return err;
		m.valid |= PVFS_SA_SIZE;
		m.size = attr->ia_size;
		if ((valid & ATTR_FILE) && (attr->ia_file->f_mode & FMODE_WRITE))
			m.valid |= PVFS_SA_OPENED;
		/* A truncation moves them anyway. */
		if (!(valid & ATTR_MTIME_SET))
			valid &= ~ATTR_MTIME;
	}
	/*
	 * With a KILL flag the mode is the VFS's guess from attributes that may be old; the mgr
	 * knows better.
	 */
	if (valid & (ATTR_KILL_SUID | ATTR_KILL_SGID | ATTR_KILL_PRIV)) {
		valid &= ~ATTR_MODE;
		/* But not whether this caller may keep the bit that is of no use to the group. */
		if ((valid & ATTR_KILL_SGID) && pvfs_checked_here(PVFS_VOL(inode), idmap))
			m.valid |= PVFS_SA_KILL_SGID;
		if (!(valid & (ATTR_UID | ATTR_GID))) {	/* a chown does it by itself */
			if (valid & (ATTR_KILL_SUID | ATTR_KILL_SGID))
				m.valid |= PVFS_SA_KILL_PRIV;
			if (valid & ATTR_KILL_PRIV)
				m.valid |= PVFS_SA_KILL_CAPS;
			/* For a write, not for a chown to whom it belongs to. */
			if (valid & ATTR_FORCE)
				m.valid |= PVFS_SA_OPENED;
		}
	}
	if (valid & ATTR_MODE) {
		m.valid |= PVFS_SA_MODE;
		m.mode = attr->ia_mode & S_IALLUGO;
	}
	if (valid & ATTR_UID) {
		m.valid |= PVFS_SA_UID;
		m.uid = from_kuid(&init_user_ns,
				  from_vfsuid(idmap, &init_user_ns, attr->ia_vfsuid));
	}
	if (valid & ATTR_GID) {
		m.valid |= PVFS_SA_GID;
		m.gid = from_kgid(&init_user_ns,
				  from_vfsgid(idmap, &init_user_ns, attr->ia_vfsgid));
	}
	if (valid & ATTR_ATIME) {
		m.valid |= valid & ATTR_ATIME_SET ? PVFS_SA_ATIME : PVFS_SA_ATIME_NOW;
		m.atime = pvfs_ts_from_kernel(&attr->ia_atime);
	}
	if (valid & ATTR_MTIME) {
		m.valid |= valid & ATTR_MTIME_SET ? PVFS_SA_MTIME : PVFS_SA_MTIME_NOW;
		m.mtime = pvfs_ts_from_kernel(&attr->ia_mtime);
	}
	if (!m.valid || (draft && pvfs_draft_setattr(inode, &m)))
		return 0;
	return m.valid & PVFS_SA_SIZE ? inode_set_size(inode, &m) : pvfs_meta_setattr(inode, &m);
}

/* Is root less than all-powerful, or another more than its uid says? */
static bool inode_unusual_caps(const struct cred *cred)
{
	kernel_cap_t caps = cred->cap_effective;
	/* Up to Linux 6.2 cap_raised() gives a mask. */
	unsigned int n = !!cap_raised(caps, CAP_DAC_OVERRIDE) + !!cap_raised(caps, CAP_DAC_READ_SEARCH) +
			 !!cap_raised(caps, CAP_FOWNER) + !!cap_raised(caps, CAP_CHOWN) +
			 !!cap_raised(caps, CAP_FSETID);

	return n != (uid_eq(cred->fsuid, GLOBAL_ROOT_UID) ? 5 : 0);
}

/**
 * pvfs_checked_here - is it the VFS that says what the caller may, not the mgr?
 * @vol: the volume
 * @idmap: of the mount, or PVFS_NOP_IDMAP where the VFS does not tell
 *
 * The mgr knows uids and gids. What goes beyond them - capabilities, user name spaces, mounts that
 * map ids - only the caller's kernel can judge: then every check is made here, against fresh
 * attributes, and the mgr is told so. As the VFS doesn't say for all operations through which mount
 * they come, one mount that maps ids makes it so for all of a volume.
 */
bool pvfs_checked_here(struct pvfs_volume *vol, struct pvfs_idmap *idmap)
{
	const struct cred *cred = current_cred();

	if (unlikely(idmap != PVFS_NOP_IDMAP))
		WRITE_ONCE(vol->idmapped, true);
	return READ_ONCE(vol->idmapped) || cred->user_ns != &init_user_ns ||
	       inode_unusual_caps(cred);
}

/*
 * The mgr checks every request by itself, against attributes that are not old. So what is asked
 * here on behalf of a request that follows may be granted by old attributes; it must not be refused
 * by them. The same goes for ACLs: pvfs_acl_for_check() has the one that belongs to the attributes
 * we have, and knows when it must ask.
 */
int pvfs_permission(struct pvfs_idmap *idmap, struct inode *inode, int mask)
{
	bool here = pvfs_checked_here(PVFS_VOL(inode), idmap), followed;
	int err;

	/* An OPEN follows. */
	if (!here && S_ISREG(inode->i_mode) && (mask & MAY_OPEN))
		return 0;
	/*
	 * A LOOKUP, or a change of the directory, follows; but nothing on access(), chdir() and
	 * opening it.
	 */
	followed = !here && S_ISDIR(inode->i_mode) && !(mask & (MAY_ACCESS | MAY_CHDIR | MAY_OPEN));
	if (mask & MAY_NOT_BLOCK) {
		if (followed && !generic_permission(idmap, inode, mask))
			return 0;
		return -ECHILD;
	}
	if (followed && !generic_permission(idmap, inode, mask))
		return 0;
	err = pvfs_revalidate(inode);
	return err ?: generic_permission(idmap, inode, mask);
}

const struct inode_operations pvfs_special_inode_operations = {
	PVFS_INODE_OPERATIONS,
	PVFS_ACL_OPERATIONS,
};
