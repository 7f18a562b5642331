// SPDX-License-Identifier: GPL-2.0
/*
 * turn.c - files that several clients have open, in turns: so that what is mapped, shared, by who may write is
 * one memory.
 *
 * What a program does with mapped pages nobody hears of. So they are there only while nobody else can touch
 * the file: under a lease. Where there is none, as others have the file open and somebody writes, a page fault
 * asks the manager to be alone (TURN): all others go out of the file (YIELD), and it comes with a WRITE lease.
 * Who is out asks to be let in again before it reads or writes, and is alone again before it touches a mapping.
 *
 *               YIELD, or a fault that wants to be alone: nothing is begun from here on
 *        in ------------------------------------------------------------------------> going out
 *         ^                                                                               |
 *         |  TURN answered, and no RECALL or YIELD since        ios, faults: 0; written;  |
 *         +------------------------------------------------ out <-------------------------+
 *                                                             unmapped, thrown away (left)
 *
 * A mapping that nobody may store through needs less: that nobody else may write. So its pages are there under a
 * WRITE lease; or under one to read, which comes with the open or an answer, for as long as that lasts; or when
 * the manager was asked (TURN with READ) to have those go out who may write: then until it recalls that, or may have
 * given up on this client. They are taken out of the mapping when that is over, and stay in the page cache, as they are
 * of a version.
 *
 * Reads and writes that go to the iods, and to the mgr for a head, are counted from pvfs_turn_enter() to
 * pvfs_turn_leave(); faults while they find or fill a page, which is locked from then until it is mapped.
 * Neither waits for another client, or takes a page fault, in between: a YIELD waits for them. Those of who may only
 * read are not waited for, as they may wait for an iod, or a lock: they look once more when they have the page.
 *
 * That a turn is of use, however many want one, it is not given up before it was used, or TURN_FRESH_MS are
 * over, and TURN_HOLD_MS more.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include "vfs.h"
#include "trace.h"

#define TURN_FRESH_MS 500u
#define TURN_HOLD_MS 20u
#define TURN_PAUSE_MS 1000u		/* before a turn that was refused is asked for again */
#define GIVING_POLL_MS 2
#define HELD_POLL_MS 20
#define FAULT_PAUSE_MS 1
#define UNSURE_PAUSE_MS 100
#define FORGET_TRIES 1000u		/* 10 ms each */
#define SHOWN_ON (~0ull)		/* as if there were no turns */

static void turn_ends_work(struct work_struct *work);

/**
 * pvfs_turn_init - of a new inode, which is zero
 * @t: its part
 */
void pvfs_turn_init(struct pvfs_turn *t)
{
	mutex_init(&t->asks);
	INIT_DELAYED_WORK(&t->ends, turn_ends_work);
}

/**
 * pvfs_turn_evict - an inode is on its way out: nothing of it is mapped any more
 * @inode: the inode
 */
void pvfs_turn_evict(struct inode *inode)
{
	cancel_delayed_work_sync(&PVFS_I(inode)->turn.ends);
}

/* The first use of a turn: from here on it lasts so long. */
static void turn_used(struct pvfs_inode *pi)
{
	if (!READ_ONCE(pi->turn.fresh))
		return;
	spin_lock(&pi->lock);
	if (pi->turn.fresh)
		pi->turn.hold = pvfs_boot_ns() + TURN_HOLD_MS * (u64)NSEC_PER_MSEC;
	WRITE_ONCE(pi->turn.fresh, false);
	spin_unlock(&pi->lock);
}

static bool turn_count(struct pvfs_turn *t, atomic_t *n)
{
	atomic_inc(n);
	smp_mb__after_atomic();		/* pairs with turn_close() */
	return !READ_ONCE(t->out);
}

static void turn_uncount(atomic_t *n)
{
	if (atomic_dec_and_test(n))
		wake_up_var(n);
}

/* Nothing is begun from here on. pvfs_inode.lock is held. */
static void turn_close(struct pvfs_turn *t)
{
	WRITE_ONCE(t->out, true);
	WRITE_ONCE(t->again, 0);
	WRITE_ONCE(t->lasts, false);
	smp_mb();			/* pairs with turn_count() */
}

/* ---------------------------------------------------------------- going out */

/*
 * Pages are written, unmapped and thrown away; nobody begins with others. What can't be written who wrote it
 * is told, and it is not in the file.
 */
static int turn_forget(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	unsigned int tries;
	int err = 0;

	for (tries = 0; tries < FORGET_TRIES; tries++) {
		err = pvfs_cache_forget(inode, 0, LLONG_MAX);
		if (!err || err == -EINTR)
			break;
		pvfs_pause_ms(10);
	}
	if (err && err != -EINTR)
		pr_warn_ratelimited("%s: inode %llu: pages stay mapped (%d): they may be older than the file\n",
				    PVFS_VOL(inode)->opts.volume, pi->fid.ino, err);
	if (err != -EINTR) {
		spin_lock(&pi->lock);
		pi->cache_version = 0;
		spin_unlock(&pi->lock);
	}
	return err == -EINTR ? err : 0;
}

/*
 * By itself, as who asks for a turn has to be out. What is being given up, the mgr is to have heard of: else that
 * could be taken for the turn that comes. @keeps: pages stay in the page cache. Return: 0; -EAGAIN: there is a WRITE
 * lease; or -EINTR.
 */
static int turn_go_out(struct inode *inode, bool keeps)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;
	bool held, giving, left;

	for (;;) {
		spin_lock(&pi->lock);
		held = pi->wl.state == PVFS_WL_HELD;
		giving = pi->wl.state == PVFS_WL_GIVING || pi->wl.told || t->round || t->hide;
		left = t->left;
		if (!held && !giving)
			turn_close(t);
		spin_unlock(&pi->lock);
		if (held && !giving)
			return -EAGAIN;
		if (!giving)
			break;
		pvfs_pause_ms(GIVING_POLL_MS);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	if (left)
		return 0;
	if (wait_var_event_killable(&t->ios, !atomic_read(&t->ios)) ||
	    wait_var_event_killable(&t->faults, !atomic_read(&t->faults)))
		return -EINTR;
	if (keeps) {
		pvfs_turn_hide(inode);
		return 0;
	}
	if (turn_forget(inode))
		return -EINTR;
	spin_lock(&pi->lock);
	WRITE_ONCE(t->shown, false);
	t->left = t->out;
	spin_unlock(&pi->lock);
	return 0;
}

/* There is a WRITE lease, and nobody knows whether it lasts. Return: 0: that is over; or -errno. */
static int turn_wait_held(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	u32 aborts = READ_ONCE(vol->aborts);
	unsigned int waited = 0;

	while (READ_ONCE(PVFS_I(inode)->wl.state) == PVFS_WL_HELD && !pvfs_wlease_maps(inode)) {
		if (READ_ONCE(vol->aborts) != aborts || (vol->opts.soft && waited >= vol->opts.timeo_ms))
			return -EIO;
		pvfs_pause_ms(HELD_POLL_MS);
		waited += HELD_POLL_MS;
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/**
 * pvfs_turn_reclaims - the mgr, or the session, is another: what is it to be told?
 * @inode: the file, which is open
 * @wlease: it is told of a WRITE lease
 *
 * What is yet to be left is in it. Called when no answer from before is taken any more.
 *
 * Return: are we out?
 */
bool pvfs_turn_reclaims(struct inode *inode, bool wlease)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	spin_lock(&pi->lock);
	ret = pi->turn.left && pi->wl.state == PVFS_WL_NONE && !wlease;
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_turn_kept - is a lease, or a turn, not to be given up yet?
 * @inode: the file; pvfs_inode.lock is held
 *
 * It was asked for, and not used.
 */
bool pvfs_turn_kept(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);
	const struct pvfs_turn *t = &pi->turn;
	u64 now = pvfs_boot_ns();

	return !pi->wl.lost &&
	       (now < t->hold || (t->asking && now < t->asked + TURN_FRESH_MS * (u64)NSEC_PER_MSEC));
}

/**
 * pvfs_turn_yield_begin - by who gives up what there is: is the file to be left as well?
 * @inode: the file; pvfs_inode.lock is held
 * @hide: set to whether what is mapped of it, of who may not write, is to be taken away
 *
 * Return: the round of the YIELD, from which on nothing is begun; 0: there was none.
 */
u64 pvfs_turn_yield_begin(struct inode *inode, bool *hide)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;

	*hide = t->hide;
	if (t->round)
		turn_close(t);
	return t->round;
}

/**
 * pvfs_turn_faults_wait - pages are about to be thrown away for good: what is being mapped first
 * @inode: the file
 */
void pvfs_turn_faults_wait(struct inode *inode)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;

	/* Nobody kills a work item; but it may have to wait for as long as an iod is away. */
	wait_var_event_killable(&t->faults, !atomic_read(&t->faults));
}

/* ---------------------------------------------------------------- what is shown to who may not write */

/* Until when may pages be mapped of who may not write, or longer? Boot time, ns; SHOWN_ON; 0: not any more. */
static u64 turn_shows(struct inode *inode)
{
	const struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 now = pvfs_boot_ns(), end = 0;

	if (!vol->opts.cache)
		return SHOWN_ON;
	if (pvfs_wlease_maps(inode) || READ_ONCE(pi->turn.lasts))
		end = pvfs_session_end(vol);
	if (now >= end && pvfs_inode_leased(inode))
		end = READ_ONCE(pi->lease.end);
	/* Refused: as if there were no turns, for a while. */
	if (now >= end && READ_ONCE(pi->wl.state) == PVFS_WL_NONE)
		end = READ_ONCE(pi->turn.again);
	return now < end ? end : 0;
}

/* It is looked at again then, unless it is before. */
static void turn_look_again(struct inode *inode, u64 end)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;
	u64 now = pvfs_boot_ns();

	if (end != SHOWN_ON && !delayed_work_pending(&t->ends))
		queue_delayed_work(PVFS_VOL(inode)->vfs_wq, &t->ends,
				   end > now ? nsecs_to_jiffies(end - now) + 1 : 0);
}

/* A fault is about to map some, or has found one to map. */
static bool turn_show(struct inode *inode)
{
	u64 end = turn_shows(inode);

	if (!end)
		return false;
	WRITE_ONCE(PVFS_I(inode)->turn.shown, true);
	turn_look_again(inode, end);
	return true;
}

/*
 * A fault that has found its page has that locked, until it is in the mapping, and looked for the lease when it had. It
 * does not wait for anything then. Others, which are still to be filled, find no lease.
 */
static void turn_wait_mapping(struct inode *inode)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;
	struct folio_batch batch;
	pgoff_t at = 0;
	unsigned int i;

	wait_var_event(&t->shows, !atomic_read(&t->shows));
	folio_batch_init(&batch);
	while (filemap_get_folios(inode->i_mapping, &at, ULONG_MAX, &batch)) {
		for (i = 0; i < folio_batch_count(&batch); i++)
			if (folio_test_locked(batch.folios[i]) && folio_test_uptodate(batch.folios[i]))
				folio_wait_locked(batch.folios[i]);
		folio_batch_release(&batch);
		cond_resched();
	}
}

/**
 * pvfs_turn_hide - take pages out of mappings; they stay in the page cache
 * @inode: the file; no fault that looks finds a lease any more
 *
 * Context: waits for no iod, and for no fault that does, or waits for a lock.
 */
void pvfs_turn_hide(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;

	spin_lock(&pi->lock);
	WRITE_ONCE(t->lasts, false);
	WRITE_ONCE(t->shown, false);
	WRITE_ONCE(t->again, 0);
	t->hide = false;
	t->hiding++;
	spin_unlock(&pi->lock);
	smp_mb();			/* pairs with turn_look_end(), turn_count() */
	cancel_delayed_work(&t->ends);
	unmap_mapping_range(inode->i_mapping, 0, 0, 0);
	turn_wait_mapping(inode);
	unmap_mapping_range(inode->i_mapping, 0, 0, 0);
	spin_lock(&pi->lock);
	t->hiding--;
	spin_unlock(&pi->lock);
}

/**
 * pvfs_turn_unshow - the lease under which pages are mapped has ended, by ourselves or with the mgr or the session
 * @inode: the file
 *
 * As pvfs_turn_hide(), but no page is waited for: what a fault has just found, a work item takes away.
 */
void pvfs_turn_unshow(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	/* Without a mapping there is nothing, see pvfs_turn_unmapped(); and one that is made now asks anew. */
	if (!atomic_read(&pi->turn.maps))
		return;
	spin_lock(&pi->lock);
	WRITE_ONCE(pi->turn.lasts, false);
	WRITE_ONCE(pi->turn.again, 0);
	spin_unlock(&pi->lock);
	unmap_mapping_range(inode->i_mapping, 0, 0, 0);
	mod_delayed_work(PVFS_VOL(inode)->vfs_wq, &pi->turn.ends, 0);
}

/**
 * pvfs_turn_mapped - there is one more shared mapping
 * @inode: the file, which is open
 */
void pvfs_turn_mapped(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);		/* see pvfs_turn_unmapped() */
	atomic_inc(&pi->turn.maps);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_turn_unmapped - one is gone
 * @inode: the file
 *
 * Without any nothing is believed: the next is made without the pages of this one, and asks anew.
 */
void pvfs_turn_unmapped(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	if (atomic_dec_and_test(&pi->turn.maps)) {
		WRITE_ONCE(pi->turn.lasts, false);
		WRITE_ONCE(pi->turn.again, 0);
		WRITE_ONCE(pi->turn.shown, false);
	}
	spin_unlock(&pi->lock);
}

static void turn_ends_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(to_delayed_work(work), struct pvfs_inode, turn.ends);
	struct inode *inode = &pi->vfs_inode;
	u64 end = turn_shows(inode);

	if (end)
		turn_look_again(inode, end);
	else
		pvfs_turn_hide(inode);
}

/**
 * pvfs_turn_recalled - RECALL names an inode: have taken away what is shown of it
 * @inode: the inode, found under RCU; there is no lease to read any more
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: there may be some: not yet, is the answer.
 */
bool pvfs_turn_recalled(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;
	bool ret, asks;

	spin_lock(&pi->lock);
	smp_mb();			/* pairs with turn_count() */
	asks = atomic_read(&t->maps) && (t->lasts || t->shown || atomic_read(&t->shows));
	ret = asks || t->hide || t->hiding;
	t->hide |= asks;
	spin_unlock(&pi->lock);
	if (asks)
		pvfs_wlease_yield(inode);
	return ret;
}

/**
 * pvfs_turn_yield - wait for who has begun, and take the pages away
 * @inode: the file; its WRITE lease, if it had one, is being given up
 * @round: of pvfs_turn_yield_begin(); 0: only from mappings, as the lease goes
 */
void pvfs_turn_yield(struct inode *inode, u64 round)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;

	if (!round && !atomic_read(&t->maps))
		return;
	if (round)
		wait_var_event_killable(&t->ios, !atomic_read(&t->ios));	/* as above */
	pvfs_turn_faults_wait(inode);
	turn_forget(inode);
	spin_lock(&pi->lock);
	if (round)
		t->left = t->out;
	spin_unlock(&pi->lock);
}

/**
 * pvfs_turn_yield_end - the mgr was told
 * @inode: the file
 * @round: of pvfs_turn_yield_begin()
 */
void pvfs_turn_yield_end(struct inode *inode, u64 round)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;

	spin_lock(&PVFS_I(inode)->lock);
	if (t->round == round)
		t->round = 0;		/* if it did not hear of it, it asks again */
	spin_unlock(&PVFS_I(inode)->lock);
}

/* What is to be answered. */
static int turn_yield_one(struct inode *inode, u64 round)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;
	bool left;

	pvfs_lease_gone(inode);
	pvfs_deferred_recalled(inode);
	/* It may have been told, or is about to tell. */
	if (READ_ONCE(pi->draft.d))
		return -EAGAIN;
	spin_lock(&pi->lock);
	/* Who asks may have been let in since. */
	left = !t->asking && pi->wl.state == PVFS_WL_NONE && !pi->wl.told;
	if (left && !t->left) {
		/* There may be nothing to wait for. */
		if (pvfs_boot_ns() >= t->hold)
			turn_close(t);
		left = t->out && !inode->i_mapping->nrpages && !atomic_read(&t->ios) && !atomic_read(&t->faults);
		t->left = left;
		/* A fault of who may only read may yet add a page. */
		if (left)
			pi->cache_version = 0;
	}
	if (!left)
		t->round = round;
	spin_unlock(&pi->lock);
	if (!left)
		pvfs_wlease_yield(inode);
	return left ? 0 : -EAGAIN;
}

/**
 * pvfs_leases_yield - YIELD has come: another client wants to be alone with a file
 * @vol: the volume
 * @req: names the inode
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: 0: we are out; -EAGAIN: not yet.
 */
int pvfs_leases_yield(struct pvfs_volume *vol, const struct pvfs_yield_req *req)
{
	struct super_block *sb = READ_ONCE(vol->sb);
	struct inode *inode;
	int err = 0;

	if (!req->round)
		return -EBADMSG;
	/* First, as for RECALL: an answer to what was asked before lets nobody in. */
	atomic64_inc(&vol->leases.yields);
	smp_mb__after_atomic();		/* pairs with pvfs_lease_ask() */
	pvfs_recall_note(vol, req->ino);
	pvfs_count(vol, PVFS_CNT_YIELDS, 1);
	if (!sb)
		return 0;
	rcu_read_lock();
	/* Nothing is open any more: pvfs_kill_sb() waits for us, and then takes the inodes away. */
	inode = READ_ONCE(vol->leaving) ? NULL : pvfs_find_ino(sb, req->ino);
	if (inode)
		err = turn_yield_one(inode, req->round);
	rcu_read_unlock();
	trace_pvfs_yield(sb->s_dev, req->ino, err);
	return err;
}

/**
 * pvfs_turn_opened - an open was answered: are we in?
 * @inode: the file, opened
 * @flags: of the attributes that came
 * @ask: from before the question
 *
 * A YIELD may have come before the answer, when there was nothing here to be left; or when the file was open
 * here before, which it says.
 */
void pvfs_turn_opened(struct inode *inode, u32 flags, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!(flags & PVFS_AF_OUT) && atomic64_read(&PVFS_VOL(inode)->leases.yields) == ask->yields)
		return;
	spin_lock(&pi->lock);
	/* What is held it is asked for as ever. */
	if (pi->wl.state == PVFS_WL_NONE &&
	    ((flags & PVFS_AF_OUT) || !pvfs_ask_stands(PVFS_VOL(inode), pi->fid.ino, ask)))
		turn_close(&pi->turn);
	spin_unlock(&pi->lock);
}

/* ---------------------------------------------------------------- coming in */

/*
 * May mapped pages be touched, and stored to, by who is in? Not under a lease to read: others may have one, too, of a
 * stuffed file, and the mgr hears nothing of what is stored. What is not here is for a fault to see to.
 */
static bool turn_leased(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!PVFS_VOL(inode)->opts.cache)
		return true;		/* as if there were no turns */
	/* Refused: as if there were none, for a while. */
	return pvfs_wlease_maps(inode) || (READ_ONCE(pi->wl.state) == PVFS_WL_NONE &&
					   pvfs_boot_ns() < READ_ONCE(pi->turn.again));
}

/*
 * Asks to be let in; @want: PVFS_TN_ALONE: with all others out; PVFS_TN_READ: with those out who may write. Return: 0:
 * that may be so now, and is to be looked at again; -EINTR or another -errno.
 */
static int turn_ask(struct inode *inode, u32 want)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_turn *t = &pi->turn;
	bool stands = false, own = false, keeps;
	struct pvfs_ask ask;
	u32 flags = 0;
	int err = 0;

	/* No signal would end it: what the kernel has yet to store there is lost (a robust futex, a cleared tid). */
	if (want && (current->flags & PF_EXITING))
		return -EIO;
	if (mutex_lock_killable(&t->asks))
		return -EINTR;
	/* Somebody else has asked. */
	if (!READ_ONCE(t->out) &&
	    (!want || (want == PVFS_TN_READ ? turn_shows(inode) != 0 : turn_leased(inode))))
		goto out;
	/* Without the mgr nobody can be asked to go out; what the iods have may be looked at all the same. */
	if (want == PVFS_TN_READ && !READ_ONCE(t->out) && !pvfs_volume_mgr_there(vol) &&
	    READ_ONCE(pi->wl.state) == PVFS_WL_NONE) {
		spin_lock(&pi->lock);
		pi->cache_version = 0;
		WRITE_ONCE(t->again, pvfs_boot_ns() + TURN_PAUSE_MS * (u64)NSEC_PER_MSEC);
		spin_unlock(&pi->lock);
		goto out;
	}
	/* Where somebody here may write a WRITE lease is the better one: it stays with the next open for that. */
	if (want == PVFS_TN_READ && READ_ONCE(pi->wl.writers))
		want = PVFS_TN_ALONE;
	/* What it has of the file is of a version, if nobody here writes. */
	keeps = want == PVFS_TN_READ;
	err = turn_go_out(inode, keeps);
	if (err == -EAGAIN && !READ_ONCE(t->out)) {
		err = turn_wait_held(inode);
		goto out;
	}
	/* The open that brought it said that the file was left before: it is enough to be in. */
	if (err == -EAGAIN) {
		want = 0;
		err = 0;
	}
	if (err)
		goto out;
	/* Each keeps a credit for as long as others take, who may want some of ours. */
	if (down_killable(&vol->leases.turn_room)) {
		err = -EINTR;
		goto out;
	}
	spin_lock(&pi->lock);
	t->asking = true;
	t->asked = pvfs_boot_ns();
	spin_unlock(&pi->lock);
	pvfs_count(vol, PVFS_CNT_TURNS, 1);
	err = pvfs_meta_turn(inode, want, atomic64_inc_return(&vol->leases.turns), &flags, &ask);
	up(&vol->leases.turn_room);
	spin_lock(&pi->lock);
	if (!err && pvfs_ask_stands(vol, pi->fid.ino, &ask)) {
		stands = true;
		t->left = false;
		/* While somebody may write, though he is out, the version need not say what he has written. */
		if (keeps && (flags & PVFS_AF_WRITERS))
			pi->cache_version = 0;
		/*
		 * Not if what the mgr has granted may have ended since, by what we did ourselves: an open for writing,
		 * a WRITE lease, the last mapping gone. Nor where an iod did not say how long the file is.
		 */
		own = READ_ONCE(pi->own.pending) || pi->own.last > ask.owns;
		WRITE_ONCE(t->lasts, (flags & PVFS_AF_LASTS) && !(flags & PVFS_AF_SIZE_UNKNOWN) && !own &&
				     atomic_read(&t->maps) && pi->wl.state == PVFS_WL_NONE && !pi->wl.told);
		/* Nothing is kept for what has not come. */
		WRITE_ONCE(t->fresh, !keeps || t->lasts);
		t->hold = t->fresh ? pvfs_boot_ns() + TURN_FRESH_MS * (u64)NSEC_PER_MSEC : 0;
		WRITE_ONCE(t->out, false);
	}
	spin_unlock(&pi->lock);
	if (stands)
		pvfs_wlease_take(inode, flags, &ask);
	if (stands && want && !own && !(flags & (PVFS_AF_WLEASE | PVFS_AF_LASTS)))
		WRITE_ONCE(t->again, pvfs_boot_ns() + TURN_PAUSE_MS * (u64)NSEC_PER_MSEC);
	spin_lock(&pi->lock);
	t->asking = false;
	spin_unlock(&pi->lock);
	trace_pvfs_turn(inode->i_sb->s_dev, pi->fid.ino, want, stands ? flags : 0, err);
	/* Where an iod that does not answer would know how long the file is. */
	if (stands && (flags & (PVFS_AF_WLEASE | PVFS_AF_LASTS)) && (flags & PVFS_AF_SIZE_UNKNOWN)) {
		pvfs_pause_ms(UNSURE_PAUSE_MS);
		err = vol->opts.soft ? -EIO : fatal_signal_pending(current) ? -EINTR : 0;
	}
out:
	mutex_unlock(&t->asks);
	return err;
}

/**
 * pvfs_turn_try - as pvfs_turn_enter(), by who must not wait for other clients
 * @inode: the file
 *
 * Return: whether it may begin, with pvfs_turn_leave() to follow.
 */
bool pvfs_turn_try(struct inode *inode)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;

	if (!turn_count(t, &t->ios)) {
		turn_uncount(&t->ios);
		return false;
	}
	turn_used(PVFS_I(inode));
	return true;
}

/**
 * pvfs_turn_enter - a read or write is about to go to the iods, or to the mgr for a head
 * @inode: the file
 *
 * Context: the memory is there; the mapping's invalidate_lock is not held: a fault that is counted may be
 * waiting for it.
 *
 * Return: 0, with pvfs_turn_leave() to follow; -EINTR or another -errno.
 */
int pvfs_turn_enter(struct inode *inode)
{
	int err;

	while (!pvfs_turn_try(inode)) {
		err = turn_ask(inode, 0);
		if (err)
			return err;
	}
	return 0;
}

/**
 * pvfs_turn_enter_both - the same for a copy
 * @inode: a file
 * @other: another, or the same
 *
 * One is not kept while the other is waited for: two clients could wait for each other.
 *
 * Return: 0, with pvfs_turn_leave() of each to follow; -EINTR or another -errno.
 */
int pvfs_turn_enter_both(struct inode *inode, struct inode *other)
{
	int err;

	for (;;) {
		err = pvfs_turn_enter(inode);
		if (err)
			return err;
		if (pvfs_turn_try(other))
			return 0;
		pvfs_turn_leave(inode);
		err = pvfs_turn_enter(other);
		if (err)
			return err;
		pvfs_turn_leave(other);
	}
}

/**
 * pvfs_turn_leave - it was answered
 * @inode: the file
 */
void pvfs_turn_leave(struct inode *inode)
{
	turn_uncount(&PVFS_I(inode)->turn.ios);
}

/* ---------------------------------------------------------------- faults */

/* What a fault asks for, if need be: who may store through the mapping may do so at any time. */
static u32 turn_fault_want(const struct vm_fault *vmf)
{
	return vmf->vma->vm_flags & VM_MAYWRITE ? PVFS_TN_ALONE : PVFS_TN_READ;
}

/* @wait: pages of another version may be thrown away. */
static bool turn_version(struct inode *inode, bool wait)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	return wait ? pvfs_cache_check(inode) : READ_ONCE(pi->cache_version) == READ_ONCE(pi->attr.version);
}

/* Return: true, with turn_fault_end() to follow. */
static bool turn_fault_begin(struct inode *inode, bool wait)
{
	struct pvfs_turn *t = &PVFS_I(inode)->turn;

	if (turn_count(t, &t->faults) && turn_leased(inode) && turn_version(inode, wait)) {
		turn_used(PVFS_I(inode));
		return true;
	}
	turn_uncount(&t->faults);
	return false;
}

static void turn_fault_end(struct inode *inode)
{
	turn_uncount(&PVFS_I(inode)->turn.faults);
}

/* The same of who may only read. Nobody waits until it is over, so it has to be looked once more then. */
static bool turn_look_begin(struct inode *inode, bool wait)
{
	return !READ_ONCE(PVFS_I(inode)->turn.out) && turn_show(inode) && turn_version(inode, wait);
}

/* If no page was found vmf->vma may be gone. */
static vm_fault_t turn_look_end(struct inode *inode, struct vm_fault *vmf, vm_fault_t ret)
{
	if (!(ret & VM_FAULT_LOCKED)) {
		/* It is behind the end, or can't be read: that is all that the turn was for. */
		if (!(ret & VM_FAULT_RETRY))
			turn_used(PVFS_I(inode));
		return ret;
	}
	smp_mb();			/* pairs with pvfs_turn_hide(), which finds the page locked */
	if (turn_look_begin(inode, false)) {
		turn_used(PVFS_I(inode));
		return ret;
	}
	/* It comes again. */
	unlock_page(vmf->page);
	put_page(vmf->page);
	vmf->page = NULL;
	return (ret & ~VM_FAULT_LOCKED) | VM_FAULT_NOPAGE;
}

/**
 * pvfs_turn_fault - a page of a shared mapping is wanted
 * @vmf: the fault
 *
 * Where the kernel lets it, it does not wait for other clients with the process's memory locked.
 */
vm_fault_t pvfs_turn_fault(struct vm_fault *vmf)
{
	bool nowait = fault_flag_allow_retry_first(vmf->flags) && (vmf->flags & FAULT_FLAG_RETRY_NOWAIT);
	struct inode *inode = file_inode(vmf->vma->vm_file);
	u32 want = turn_fault_want(vmf);
	struct file *file;
	vm_fault_t ret;

	/* Where it lets go of the process's memory, that may be unmapped, and the file closed. */
	file = get_file(vmf->vma->vm_file);
	for (;;) {
		if (want == PVFS_TN_READ && turn_look_begin(inode, !nowait)) {
			ret = turn_look_end(inode, vmf, filemap_fault(vmf));
			break;
		}
		if (want == PVFS_TN_ALONE && turn_fault_begin(inode, !nowait)) {
			ret = filemap_fault(vmf);
			turn_fault_end(inode);
			break;
		}
		ret = VM_FAULT_RETRY;
		if (nowait)
			break;
		if (fault_flag_allow_retry_first(vmf->flags)) {
			pvfs_fault_unlock(vmf);
			turn_ask(inode, want);	/* if that fails it does so once more */
			break;
		}
		if (turn_ask(inode, want) || fatal_signal_pending(current)) {
			ret = VM_FAULT_SIGBUS;
			break;
		}
		pvfs_pause_ms(FAULT_PAUSE_MS);	/* in case there was nothing to ask for */
	}
	fput(file);
	return ret;
}

/**
 * pvfs_turn_map_pages - pages around one that is wanted, if they are there
 * @vmf: the fault
 * @first: of them
 * @last: of them
 *
 * Context: does not sleep.
 */
vm_fault_t pvfs_turn_map_pages(struct vm_fault *vmf, pgoff_t first, pgoff_t last)
{
	struct inode *inode = file_inode(vmf->vma->vm_file);
	struct pvfs_turn *t = &PVFS_I(inode)->turn;
	vm_fault_t ret = 0;

	if (turn_fault_want(vmf) == PVFS_TN_READ) {
		if (turn_count(t, &t->shows) && turn_look_begin(inode, false))
			ret = filemap_map_pages(vmf, first, last);
		if (ret)
			turn_used(PVFS_I(inode));
		turn_uncount(&t->shows);
	} else if (turn_fault_begin(inode, false)) {
		ret = filemap_map_pages(vmf, first, last);
		turn_fault_end(inode);
	}
	return ret;
}
