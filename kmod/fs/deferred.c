// SPDX-License-Identifier: GPL-2.0
/*
 * deferred.c - opens for reading that cost no message: they are shared, and their close is deferred.
 *
 * Under a lease on a file the first open for reading stands for all here. Who opens the file too joins
 * it, and when the last has closed it the mgr is not told: who comes next finds it open. To the mgr the
 * file is open all the time. So whatever happens to it elsewhere, and whatever message is lost
 * meanwhile, it is there for who has it open here, and recovery tells of it as of any other.
 *
 * One that nobody uses is idle. It is given back when the lease is recalled or has run out, when the
 * file's last name is removed here, when the inode goes, and the oldest when there are too many. A
 * new mgr, or session, does not know of it, and is not told.
 *
 * Of an inode that goes its pvfs_use stays, on a list, until the CLOSE is sent: who takes inodes away for
 * their memory allocates and sends nothing. And a CLOSE that waited for a mgr that is away could reach
 * the next one behind a new open of the same file, which it would end: recovery drops that list.
 *
 * vol->open_lock protects all of it.
 */
#include <linux/moduleparam.h>
#include "vfs.h"

#define LIMIT_MAX 65536u		/* they are looked through with the lock held */

static unsigned int deferred_max = 4096;
module_param(deferred_max, uint, 0644);
MODULE_PARM_DESC(deferred_max,
		 "files of a volume, closed after reading, that the manager takes for open; 0: none");

static unsigned int deferred_limit(void)
{
	return min(READ_ONCE(deferred_max), LIMIT_MAX);
}

/* How often those whose lease has run out are looked for. */
static unsigned long deferred_pause(const struct pvfs_volume *vol)
{
	return msecs_to_jiffies(READ_ONCE(vol->lease_ms) / 8) ?: 1;
}

static bool deferred_idle(const struct pvfs_inode *pi)
{
	return !list_empty(&pi->opens.idle);
}

/*
 * Is one to be kept when nobody uses it? Not of an empty file: as long as it is open here, its layout
 * is not another client's to set.
 */
static bool deferred_worth(const struct inode *inode)
{
	return pvfs_lease_lasts(inode) && deferred_limit() && inode->i_nlink &&
	       i_size_read(inode) && (inode->i_sb->s_flags & SB_ACTIVE);
}

/* It is to be given back: @e is filled for pvfs_close_queue(). */
static void deferred_take(struct pvfs_inode *pi, struct pvfs_ending *e)
{
	list_del_init(&pi->opens.idle);
	PVFS_VOL(&pi->vfs_inode)->deferred.n--;
	*e = (struct pvfs_ending){
		.use = pi->use, .c = { .fid = pi->fid, .flags = PVFS_O_READ },
	};
	refcount_inc(&e->use->ref);
}

static struct pvfs_inode *deferred_first(struct list_head *list)
{
	return list_first_entry_or_null(list, struct pvfs_inode, opens.idle);
}

/* ---------------------------------------------------------------- from open and close */

/**
 * pvfs_open_joinable - is a file open at the mgr so that others here may join?
 * @inode: the file
 */
bool pvfs_open_joinable(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);

	return (READ_ONCE(pi->opens.shared) || deferred_idle(pi)) && pvfs_inode_leased(inode);
}

/**
 * pvfs_open_join - open a file for reading without a message
 * @inode: the file
 * @token: of the lease under which the caller was found to have leave to
 *
 * Return: whether it is open; else the mgr is to be asked. To be closed by pvfs_open_leave().
 */
bool pvfs_open_join(struct inode *inode, unsigned long token)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	bool joined;

	/* One of a session that ends now does no harm: with it ends the lease. */
	if (!pvfs_open_joinable(inode) || !pvfs_cap_current(inode, PVFS_CAP_READ))
		return false;
	spin_lock(&vol->open_lock);
	joined = token && pvfs_open_joinable(inode) && pvfs_lease_token(inode) == token;
	if (joined) {
		if (deferred_idle(pi)) {
			list_del_init(&pi->opens.idle);
			vol->deferred.n--;
		}
		WRITE_ONCE(pi->opens.shared, pi->opens.shared + 1);
		atomic_inc(&pi->opens.live);
	}
	spin_unlock(&vol->open_lock);
	if (joined)
		pvfs_count(vol, PVFS_CNT_JOINED, 1);
	return joined;
}

/**
 * pvfs_open_share - others may join an open that the mgr was asked for
 * @inode: the file
 * @pf: the open; pvfs_file_opened() has counted it, and nobody closes it yet
 */
void pvfs_open_share(struct inode *inode, struct pvfs_file *pf)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);

	if (pvfs_open_class(pf->flags) != PVFS_O_READ || !pvfs_inode_leased(inode))
		return;
	spin_lock(&vol->open_lock);
	if (!pi->opens.shared && !deferred_idle(pi)) {
		WRITE_ONCE(pi->opens.shared, 1);
		pf->shared = true;
	}
	spin_unlock(&vol->open_lock);
}

/* That it was read the mgr is to hear all the same. */
static void deferred_tell_atime(struct inode *inode)
{
	struct pvfs_ending e = { .use = PVFS_I(inode)->use, .c = { .fid = PVFS_I(inode)->fid } };

	if (!pvfs_atime_report(inode, &e.c.report))
		return;
	refcount_inc(&e.use->ref);
	pvfs_close_queue(PVFS_VOL(inode), &e);
}

/**
 * pvfs_open_leave - close what pvfs_open_join() or pvfs_open_share() has made
 * @inode: the file
 */
void pvfs_open_leave(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_deferred *d = &vol->deferred;
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_ending oldest = { };
	bool last, keep = false;

	spin_lock(&vol->open_lock);
	WRITE_ONCE(pi->opens.shared, pi->opens.shared - 1);
	last = !pi->opens.shared;
	if (last && deferred_worth(inode)) {
		keep = true;
		pi->opens.idle_since = jiffies;
		list_add_tail(&pi->opens.idle, &d->list);
		if (++d->n > deferred_limit())
			deferred_take(deferred_first(!list_empty(&d->due) ? &d->due : &d->list),
				      &oldest);
	}
	spin_unlock(&vol->open_lock);
	if (last && !keep) {
		pvfs_close_at_mgr(vol, &pi->fid, PVFS_O_READ, inode);
		return;
	}
	atomic_dec(&pi->opens.live);
	if (!keep)
		return;
	deferred_tell_atime(inode);
	if (oldest.use)
		pvfs_close_queue(vol, &oldest);
	/* Does nothing if it is due already. */
	queue_delayed_work(vol->vfs_wq, &d->work, deferred_pause(vol));
}

/* ---------------------------------------------------------------- giving back */

/* One whose inode has gone. Return: false: there is none. */
static bool deferred_take_gone(struct pvfs_deferred *d, struct pvfs_ending *e)
{
	struct pvfs_use *use = list_first_entry_or_null(&d->gone, struct pvfs_use, gone);

	if (!use)
		return false;
	list_del_init(&use->gone);
	*e = (struct pvfs_ending){ .use = use, .c = { .fid = use->fid, .flags = PVFS_O_READ } };
	return true;
}

/* Gives back what is due. */
static void deferred_send(struct pvfs_volume *vol)
{
	struct pvfs_inode *pi;
	struct pvfs_ending e;
	bool any;

	for (;;) {
		spin_lock(&vol->open_lock);
		pi = deferred_first(&vol->deferred.due);
		any = pi;
		if (pi)
			deferred_take(pi, &e);
		else if (pvfs_volume_mgr_there(vol))
			any = deferred_take_gone(&vol->deferred, &e);
		spin_unlock(&vol->open_lock);
		if (!any)
			return;
		pvfs_close_queue(vol, &e);
	}
}

static void deferred_work(struct work_struct *work)
{
	struct pvfs_volume *vol = container_of(work, struct pvfs_volume, deferred.work.work);
	struct pvfs_deferred *d = &vol->deferred;
	struct pvfs_inode *pi, *next;
	unsigned int limit, over;
	bool more;

	deferred_send(vol);
	spin_lock(&vol->open_lock);
	if (jiffies - d->looked >= deferred_pause(vol)) {
		d->looked = jiffies;
		list_for_each_entry_safe(pi, next, &d->list, opens.idle)
			if (!pvfs_lease_lasts(&pi->vfs_inode))
				list_move_tail(&pi->opens.idle, &d->due);
	}
	/* It may have been lowered. */
	limit = deferred_limit();
	for (over = d->n > limit ? d->n - limit : 0; over && !list_empty(&d->list); over--)
		list_move_tail(&deferred_first(&d->list)->opens.idle, &d->due);
	more = d->n || !list_empty(&d->gone);
	spin_unlock(&vol->open_lock);
	deferred_send(vol);
	if (more)
		queue_delayed_work(vol->vfs_wq, &d->work, deferred_pause(vol));
}

/**
 * pvfs_deferred_recalled - the lease on a file has been given up: nobody joins what is open here
 * @inode: the file
 *
 * What is idle goes; the answer to the RECALL does not wait for that. The mgr takes the file for open
 * a moment longer than it is, as it would with a CLOSE on its way.
 *
 * Context: where replies are received; does not sleep.
 */
void pvfs_deferred_recalled(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	bool due;

	if (!READ_ONCE(pi->use))	/* was never open */
		return;
	/* Who makes it idle does so before, or finds no lease. */
	spin_lock(&vol->open_lock);
	due = deferred_idle(pi);
	if (due)
		list_move_tail(&pi->opens.idle, &vol->deferred.due);
	spin_unlock(&vol->open_lock);
	if (due)
		mod_delayed_work(vol->vfs_wq, &vol->deferred.work, 0);
}

/*
 * How many others are given back with one whose last name is removed: none, unless one was a moment ago;
 * then more each time. Who removes a tree that was read comes to them next, who makes and removes a
 * temporary file does not.
 */
static unsigned int deferred_others(struct pvfs_deferred *d)
{
	d->others = jiffies - d->hurried > HZ ? 0 :
		    min(d->others ? d->others * 4 : 4, PVFS_CLOSE_MAX - 1);
	d->hurried = jiffies;
	return d->others;
}

/**
 * pvfs_deferred_hurry - the last name of a file is about to be removed
 * @inode: the file
 *
 * It is given back if it is idle; with it, in one message, some of those that nobody has used for a
 * second.
 *
 * Return: it was, and the message is to be sent: pvfs_closes_hurry().
 */
bool pvfs_deferred_hurry(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_deferred *d = &vol->deferred;
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_ending e;
	unsigned int n, others = 0;

	for (n = 0; n <= others; n++) {
		spin_lock(&vol->open_lock);
		if (n)
			pi = deferred_first(&d->list);
		else if (deferred_idle(pi))
			others = deferred_others(d);
		if (!pi || !deferred_idle(pi) || (n && time_before(jiffies, pi->opens.idle_since + HZ)))
			pi = NULL;
		else
			deferred_take(pi, &e);
		spin_unlock(&vol->open_lock);
		if (!pi)
			break;
		pvfs_close_queue(vol, &e);
	}
	return n;
}

/**
 * pvfs_deferred_evict - the inode goes
 * @pi: its, which was open; vol->open_lock is held
 */
void pvfs_deferred_evict(struct pvfs_inode *pi)
{
	struct super_block *sb = pi->vfs_inode.i_sb;
	struct pvfs_volume *vol = sb->s_fs_info;
	struct pvfs_deferred *d = &vol->deferred;

	if (!deferred_idle(pi))
		return;
	list_del_init(&pi->opens.idle);
	d->n--;
	/* Unmounting: the session's end closes all. */
	if (!(sb->s_flags & SB_ACTIVE))
		return;
	pi->use->fid = pi->fid;
	refcount_inc(&pi->use->ref);
	list_add_tail(&pi->use->gone, &d->gone);
	mod_delayed_work(vol->vfs_wq, &d->work, 0);
}

/**
 * pvfs_deferred_forget - the mgr, or the session, is another
 * @vol: the volume
 */
void pvfs_deferred_forget(struct pvfs_volume *vol)
{
	struct pvfs_deferred *d = &vol->deferred;
	struct pvfs_inode *pi;
	struct pvfs_ending e;
	bool any;

	for (;;) {
		spin_lock(&vol->open_lock);
		pi = deferred_first(&d->list) ?: deferred_first(&d->due);
		any = pi;
		if (pi) {
			deferred_take(pi, &e);
			pvfs_open_uncount(pi, PVFS_O_READ);
		} else {
			any = deferred_take_gone(d, &e);
		}
		spin_unlock(&vol->open_lock);
		if (!any)
			return;
		pvfs_use_put(e.use);
	}
}

void pvfs_deferred_init(struct pvfs_volume *vol)
{
	INIT_LIST_HEAD(&vol->deferred.list);
	INIT_LIST_HEAD(&vol->deferred.due);
	INIT_LIST_HEAD(&vol->deferred.gone);
	INIT_DELAYED_WORK(&vol->deferred.work, deferred_work);
}

/* There are no inodes any more, and nothing is sent. */
void pvfs_deferred_end(struct pvfs_volume *vol)
{
	cancel_delayed_work_sync(&vol->deferred.work);
	pvfs_deferred_forget(vol);
}
