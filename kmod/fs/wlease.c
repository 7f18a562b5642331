// SPDX-License-Identifier: GPL-2.0
/*
 * wlease.c - WRITE leases: while this client alone has a file open, the manager tells nobody else
 * anything of it before we have given it up. So what is written to it may stay here for a while
 * (writeback.c), the page cache is the file, and it ends where we know.
 *
 *              take (with the answer to what is below)           recalled, or a page could not be written
 *      NONE ---------------------------------> HELD ------------------------------------------+
 *       ^  ^                                    |  ^                                           v
 *       |  |  last close for writing, RECLAIM   |  | RECLAIM, OPEN                          GIVING
 *       |  +------- new session ----------------+--+ say that it stands; or it does not: GIVING |
 *       +---------- all is with the iods, REPORT says so; or as from HELD ---------------------+
 *
 * A striped file's comes with OPEN, CREATE and UNSTUFF, a stuffed one's with the second HEAD_WRITE, which
 * the mgr has to write down anyway, or with the FLUSH of a draft.
 *
 * HELD is usable, that is something may be written under it, and read from the cache, while the session
 * was renewed lately enough that the manager can't have given up on us, nothing of it is doubtful
 * (leases.gen, as for other leases), and no change of our own is under way. When it is not, reads and writes
 * go to the iods, as without a lease; what is dirty they write first.
 *
 * A RECALL is answered EAGAIN at once while there is one. A work item waits for those who are just writing,
 * writes what is dirty, and tells the manager.
 *
 * A YIELD is the same, lease or not: the work item gives it up, and then nothing of the file is here (turn.c). What
 * came with a turn is not given up before it was used: the work item comes again, and until then it is HELD.
 *
 * A SETTLE comes for others who want to know how long the file is, and since when. It is answered EAGAIN
 * while anything is dirty; another work item writes that, and tells the manager, and the lease stays. The
 * state does not matter: what it asks for is that write(2) calls which have returned are with the iods.
 *
 * In another session pages from before never land: others have gone on without us, behind the iods' fence.
 * They are marked as lost before the new session's capability is there to write them with, thrown away, and
 * who has the file open is told EIO.
 */
#include <linux/pagemap.h>
#include "vfs.h"
#include "trace.h"

/* Between two questions for one, ns. */
#define WLEASE_PAUSE_MIN (1 * (u64)NSEC_PER_SEC)
#define WLEASE_PAUSE_MAX (32 * (u64)NSEC_PER_SEC)
#define KEPT_POLL_MS 4			/* until what was asked for has been used: turn.c */
#define WLEASE_WORTH 16u		/* small writes without one that are worth a question */

static bool wlease_mine(const struct pvfs_wlease *wl, const struct pvfs_volume *vol)
{
	return wl->gen == atomic64_read(&vol->leases.gen);
}

/* There is none, or it is doubtful for good, and told anew. */
static bool wlease_absent(const struct pvfs_wlease *wl, const struct pvfs_volume *vol)
{
	return wl->writers && (wl->state == PVFS_WL_NONE || (wl->state == PVFS_WL_HELD && !wlease_mine(wl, vol)));
}

/* pvfs_inode.lock is held. */
static void wlease_set(struct pvfs_inode *pi, enum pvfs_wlease_state state)
{
	int more = (state != PVFS_WL_NONE) - (pi->wl.state != PVFS_WL_NONE);

	if (more)
		atomic_add(more, &PVFS_VOL(&pi->vfs_inode)->leases.writes);
	/* Pairs with pvfs_wlease_token(). */
	smp_store_release(&pi->wl.state, state);
}

/**
 * pvfs_wlease_wish - what to add to the flags of an open
 * @vol: the volume
 * @flags: PVFS_O_*
 */
u32 pvfs_wlease_wish(const struct pvfs_volume *vol, u32 flags)
{
	return (flags & PVFS_O_WRITE) && vol->opts.cache ? PVFS_O_WLEASE : 0;
}

/**
 * pvfs_wlease_take - an answer may have brought a WRITE lease
 * @inode: a file that is open for writing, and counted as that by pvfs_wlease_opened()
 * @flags: of the attributes that came
 * @ask: from before the question
 */
void pvfs_wlease_take(struct inode *inode, u32 flags, const struct pvfs_ask *ask)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;

	/* Of an unknown size nobody knows where it ends. */
	if (!(flags & PVFS_AF_WLEASE) || (flags & PVFS_AF_SIZE_UNKNOWN) || !vol->opts.cache)
		return;
	spin_lock(&pi->lock);
	/* While REPORT is under way, or pages are thrown away, what it ends might be this one. */
	if (!wl->writers || wl->state == PVFS_WL_GIVING || wl->told || pi->turn.hide || wl->lost || pi->attr.stale ||
	    !pvfs_ask_stands(vol, pi->fid.ino, ask))
		goto out;
	if (wl->state == PVFS_WL_NONE || !wlease_mine(wl, vol)) {
		wl->gen = ask->gen;
		wl->session = READ_ONCE(vol->session);
		wl->failed = false;
		wl->pause = 0;
		WRITE_ONCE(wl->token, atomic_long_inc_return(&vol->leases.tokens));
		pvfs_count(vol, PVFS_CNT_WLEASES, 1);
		trace_pvfs_wlease(inode->i_sb->s_dev, pi->fid.ino, wl->token);
	}
	wlease_set(pi, PVFS_WL_HELD);
	/* What ends this ends all. */
	WRITE_ONCE(pi->turn.lasts, false);
out:
	spin_unlock(&pi->lock);
}

/* It is opened once more, for the lease that may come with that, and that open closed. */
void pvfs_wlease_ask_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, wl.ask);
	struct pvfs_file pf = { .flags = PVFS_O_WRITE };
	struct inode *inode = &pi->vfs_inode;
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_open_rep rep;
	struct pvfs_ask ask;
	u64 session, epoch;
	int err;

	pvfs_session_sample(vol, &session, &epoch);
	pvfs_unlease(inode);
	err = pvfs_meta_open_again(inode, pf.flags | PVFS_O_WLEASE, &rep, &ask);
	pvfs_unlease_end(inode);
	if (!err && !pvfs_file_opened(inode, &pf, &rep.cap, session, epoch)) {
		pvfs_wlease_take(inode, rep.attr.flags, &ask);
		pvfs_close_at_mgr(vol, &pi->fid, pf.flags, inode);
	}
	spin_lock(&pi->lock);
	pi->wl.asking = false;
	spin_unlock(&pi->lock);
	pvfs_use_iput(pi->use);			/* also counts vol->closing down */
}

/**
 * pvfs_wlease_wanted - a stuffed file is about to be written at the mgr: is a WRITE lease to come with that?
 * @inode: the file
 *
 * Not with the first: who opens a small file, writes it and closes it has nothing from it.
 */
bool pvfs_wlease_wanted(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	if (!vol->opts.cache)
		return false;
	spin_lock(&pi->lock);
	ret = wlease_absent(&pi->wl, vol) && pi->wl.missed++ && pvfs_boot_ns() >= pi->wl.again;
	spin_unlock(&pi->lock);
	return ret;
}

/* Unless it is, or was, too lately. pvfs_inode.lock is held. */
static void wlease_ask(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_wlease *wl = &PVFS_I(inode)->wl;
	u64 now = pvfs_boot_ns();

	if (!wlease_absent(wl, vol) || wl->asking || wl->lost || now < wl->again || !pvfs_volume_mgr_there(vol))
		return;
	wl->asking = true;
	wl->missed = 0;
	wl->pause = clamp(2 * wl->pause, WLEASE_PAUSE_MIN, WLEASE_PAUSE_MAX);
	wl->again = now + wl->pause;
	ihold(inode);
	atomic_inc(&vol->closing);
	queue_work(vol->vfs_wq, &wl->ask);
}

/**
 * pvfs_wlease_missed - a small write is about to go to the iods, for want of a WRITE lease
 * @inode: a file that is open for writing
 *
 * One was given up, or not given, and others may have gone meanwhile: after some such writes it is asked for,
 * by somebody else, who may have to wait for what the write need not. Not again and again: another client
 * may have the file open for long.
 */
void pvfs_wlease_missed(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;

	if (!vol->opts.cache || pvfs_stuffed(inode))
		return;
	spin_lock(&pi->lock);
	if (wlease_absent(wl, vol) && !wl->asking && !wl->lost && ++wl->missed >= WLEASE_WORTH &&
	    pvfs_volume_up(vol))
		wlease_ask(inode);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_wlease_token - the WRITE lease on a file that is usable now
 * @inode: the file
 *
 * Return: its token, which no other lease had before; 0: there is none.
 */
unsigned long pvfs_wlease_token(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);
	const struct pvfs_volume *vol = PVFS_VOL(inode);

	if (smp_load_acquire(&pi->wl.state) != PVFS_WL_HELD ||	/* pairs with wlease_set() */
	    READ_ONCE(pi->own.pending) || atomic_read(&vol->leases.unsure) ||
	    !wlease_mine(&pi->wl, vol) || !pvfs_session_lasts(vol))
		return 0;
	return READ_ONCE(pi->wl.token);
}

/**
 * pvfs_wlease_maps - is there a WRITE lease, so that pages of the file may be mapped?
 * @inode: the file
 *
 * Also while a change of our own is under way, or one that nobody knows of: the mgr takes it from us by a
 * RECALL only.
 */
bool pvfs_wlease_maps(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);
	const struct pvfs_volume *vol = PVFS_VOL(inode);

	return smp_load_acquire(&pi->wl.state) == PVFS_WL_HELD &&	/* pairs with wlease_set() */
	       READ_ONCE(pi->wl.session) == READ_ONCE(vol->session) && pvfs_session_lasts(vol);
}

/**
 * pvfs_wlease_doubted - somebody waits for a WRITE lease that is doubtful to be usable
 * @inode: the file
 *
 * If that is for good, as a change of our own was left to its fate, the mgr is asked anew, by a work item, and
 * not again and again.
 */
void pvfs_wlease_doubted(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;

	spin_lock(&pi->lock);
	if (wl->state == PVFS_WL_HELD && !atomic_read(&vol->leases.unsure))
		wlease_ask(inode);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_wlease_begin - something is about to be written to the page cache
 * @inode: the file; its i_rwsem, or the mapping's invalidate_lock, is held exclusively, but by resend.c
 * @token: of pvfs_wlease_token()
 *
 * A RECALL waits until pvfs_wlease_end(): between the two nothing is waited for but an iod, for a page that
 * is written in part.
 *
 * Return: whether it may be, as the lease is still that one, and the cache is the file as it is.
 */
bool pvfs_wlease_begin(struct inode *inode, unsigned long token)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	if (!pvfs_cache_check(inode))
		return false;
	spin_lock(&pi->lock);
	ret = token && pvfs_wlease_token(inode) == token && pi->cache_version == pi->attr.version;
	if (ret)
		pi->wl.users++;
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_wlease_stands - since pvfs_wlease_begin(), is the page cache still the file?
 * @inode: the file
 * @token: the lease that it was under then
 *
 * It may be doubtful, or being given up, which waits for us.
 */
bool pvfs_wlease_stands(struct inode *inode, unsigned long token)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;
	bool ret;

	spin_lock(&pi->lock);
	ret = wl->state != PVFS_WL_NONE && wl->token == token && !wl->lost &&
	      pi->cache_version == pi->attr.version;
	spin_unlock(&pi->lock);
	return ret;
}

void pvfs_wlease_end(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool last;

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->wl.users, pi->wl.users - 1);
	last = !pi->wl.users && (pi->wl.state != PVFS_WL_HELD || pi->wl.lost || pi->wl.leaving);
	spin_unlock(&pi->lock);
	if (last) {
		smp_mb();		/* as wake_up_var() wants it */
		wake_up_var(&pi->wl.users);
	}
}

/**
 * pvfs_wlease_busy - is somebody writing to the page cache?
 * @inode: the file; after pvfs_own_begin() or pvfs_unlease(), from which on nobody begins to
 */
bool pvfs_wlease_busy(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret;

	spin_lock(&pi->lock);
	ret = pi->wl.users;
	spin_unlock(&pi->lock);
	return ret;
}

/**
 * pvfs_wlease_keeps_step - attributes are about to be taken in: are they of what is in the cache?
 * @pi: whose; pvfs_inode.lock is held
 * @attr: they
 *
 * Under a WRITE lease another version is what we have written. A truncation is known to who made it; and
 * the last CLOSE ends the lease at the mgr, also while it is being given up here.
 */
bool pvfs_wlease_keeps_step(const struct pvfs_inode *pi, const struct pvfs_attr *attr)
{
	const struct pvfs_wlease *wl = &pi->wl;

	return wl->state != PVFS_WL_NONE && wl->writers && !wl->told && !wl->lost &&
	       wlease_mine(wl, PVFS_VOL(&pi->vfs_inode)) && pi->attr.trunc_gen == attr->trunc_gen &&
	       pi->cache_version == pi->attr.version;
}

/* ---------------------------------------------------------------- giving up */

/* What was not written is not in the file: it may be shorter than we thought, and have other bytes. */
static void wlease_forget(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->cache_version = 0;
	pi->attr.floor = 0;
	spin_unlock(&pi->lock);
	pvfs_meta_getattr(inode);
}

/* Pages were marked as lost. Nobody is writing any. */
static void wlease_throw_away(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	unsigned long pages;

	invalidate_inode_pages2(inode->i_mapping);
	wlease_forget(inode);
	/* No lease is taken before, nor on the word of what was known before. */
	pvfs_recall_note(vol, pi->fid.ino);
	spin_lock(&pi->lock);
	pages = pi->wl.lost_pages;
	pi->wl.lost_pages = 0;
	/* Stored through a mapping since. */
	if (pages && !pi->wl.lost_told)
		mapping_set_error(inode->i_mapping, -EIO);
	WRITE_ONCE(pi->wl.lost, false);
	spin_unlock(&pi->lock);
	if (pages)
		pr_warn_ratelimited("%s: inode %llu: about %lu KiB that were written here are lost: the manager had given up on this client, and others may have changed the file\n",
				    vol->opts.volume, pi->fid.ino, pages << (PAGE_SHIFT - 10));
}

void pvfs_wlease_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(to_delayed_work(work), struct pvfs_inode, wl.work);
	struct inode *inode = &pi->vfs_inode;
	struct pvfs_volume *vol = PVFS_VOL(inode);
	bool give, given, kept, lost, none, tell, hide = false;
	u64 round = 0, wanted;

	spin_lock(&pi->lock);
	kept = pi->wl.state != PVFS_WL_GIVING && pvfs_turn_kept(inode);
	if (!kept) {
		round = pvfs_turn_yield_begin(inode, &hide);
		/* Nothing is taken any more: REPORT would end it. */
		pi->wl.told |= hide;
		/* All that has begun under it, or beside it, ends; nothing new does. */
		if ((round || hide || pi->wl.recalled) && pi->wl.state == PVFS_WL_HELD)
			wlease_set(pi, PVFS_WL_GIVING);
		pi->wl.recalled = false;
	}
	give = pi->wl.state == PVFS_WL_GIVING;
	lost = pi->wl.lost;
	spin_unlock(&pi->lock);
	/* Somebody else has done it; or it comes again, unless another has come, with its own reference. */
	none = !kept && !give && !round && !lost && !hide;
	if (none || (kept && !queue_delayed_work(vol->vfs_wq, &pi->wl.work, msecs_to_jiffies(KEPT_POLL_MS))))
		pvfs_use_iput(pi->use);
	if (none || kept)
		return;
	wait_var_event(&pi->wl.users, !READ_ONCE(pi->wl.users));
	pvfs_cache_write(inode, 0, LLONG_MAX);	/* errors are kept for fsync and close */
	if (READ_ONCE(pi->wl.lost)) {
		pvfs_turn_faults_wait(inode);
		wlease_throw_away(inode);
	}
	if (hide)
		pvfs_turn_hide(inode);
	if (give || round || lost)
		pvfs_turn_yield(inode, round);
	spin_lock(&pi->lock);
	/* Who has made it so since then has this run again. */
	given = give && pi->wl.state == PVFS_WL_GIVING;
	wanted = given ? pi->wl.wanted : 0;
	pi->wl.wanted = given ? 0 : pi->wl.wanted;
	tell = given || round || hide;
	pi->wl.told |= tell;
	spin_unlock(&pi->lock);
	if (tell) {
		/* It ends what else was leased, too, and is taken for the answer to a RECALL of that. */
		pvfs_lease_gone(inode);
		pvfs_meta_report(inode, PVFS_RP_RECALLED, round);
		pvfs_turn_yield_end(inode, round);
		if (given)
			pvfs_leasestat_given(inode, wanted, READ_ONCE(pi->wl.failed));
		if (READ_ONCE(pi->wl.failed))
			wlease_forget(inode);
		/* No answer to what was asked before counts any more. */
		pvfs_recall_note(vol, pi->fid.ino);
		spin_lock(&pi->lock);
		if (given && pi->wl.state == PVFS_WL_GIVING)
			wlease_set(pi, PVFS_WL_NONE);
		/* Let others get on with it; and a full disk be told by write(2) for a while. */
		pi->wl.again = pvfs_boot_ns() + (pi->wl.failed ? WLEASE_PAUSE_MAX : WLEASE_PAUSE_MIN);
		pi->wl.told = false;
		pi->wl.failed = false;
		spin_unlock(&pi->lock);
	}
	pvfs_use_iput(pi->use);			/* also counts vol->closing down */
}

/* pvfs_inode.lock is held; the caller has a reference to the inode, and keeps one for the work if true. */
static bool wlease_queue_work(struct inode *inode, struct work_struct *work)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);

	atomic_inc(&vol->closing);
	if (queue_work(vol->vfs_wq, work))
		return true;
	/* It is yet to run, and has its reference, which counts. */
	atomic_dec(&vol->closing);
	return false;
}

static bool wlease_queue(struct inode *inode)
{
	return wlease_queue_work(inode, &PVFS_I(inode)->wl.work.work);
}

static bool wlease_give_up(struct inode *inode, bool failed)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool ret, put = true;

	if (READ_ONCE(pi->wl.state) == PVFS_WL_NONE || !igrab(inode))
		return false;
	spin_lock(&pi->lock);
	pi->wl.failed |= failed;
	ret = pi->wl.state != PVFS_WL_NONE;
	if (pi->wl.state == PVFS_WL_HELD) {
		/* It is of use until it is given up, see pvfs_turn_kept(). */
		pi->wl.recalled = true;
		if (!failed && !pi->wl.wanted)
			pi->wl.wanted = ktime_get_ns();
		if (failed || !pvfs_turn_kept(inode))
			wlease_set(pi, PVFS_WL_GIVING);
		put = !wlease_queue(inode);
	}
	spin_unlock(&pi->lock);
	if (put)
		pvfs_iput_later(inode);
	return ret;
}

/**
 * pvfs_wlease_yield - YIELD names an inode: have it given up, lease or not, and be out of it; or RECALL does, and it is
 * mapped to read: have it hidden
 * @inode: the inode, found under RCU; the round, or turn.hide, is noted
 *
 * Context: where replies are received; does not sleep.
 */
void pvfs_wlease_yield(struct inode *inode)
{
	bool put = true;

	/* On its way out: its last close says so. */
	if (!igrab(inode))
		return;
	spin_lock(&PVFS_I(inode)->lock);
	if (PVFS_I(inode)->wl.state == PVFS_WL_HELD && !PVFS_I(inode)->wl.wanted)
		PVFS_I(inode)->wl.wanted = ktime_get_ns();
	/* What was never opened has nothing to give up. */
	if (smp_load_acquire(&PVFS_I(inode)->use))
		put = !wlease_queue(inode);
	spin_unlock(&PVFS_I(inode)->lock);
	if (put)
		pvfs_iput_later(inode);
}

/**
 * pvfs_wlease_recalled - RECALL names an inode
 * @inode: the inode, found under RCU
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: there is one, which will be given up: not yet, is the answer.
 */
bool pvfs_wlease_recalled(struct inode *inode)
{
	return wlease_give_up(inode, false);
}

/* ---------------------------------------------------------------- settling */

void pvfs_wlease_settle_work(struct work_struct *work)
{
	struct pvfs_inode *pi = container_of(work, struct pvfs_inode, wl.settle_work);
	struct inode *inode = &pi->vfs_inode;
	u64 round;

	/* Before anything is written: a SETTLE that comes from here on has this run again. */
	spin_lock(&pi->lock);
	round = pi->wl.settle;
	spin_unlock(&pi->lock);
	/* Of what can't be written who wrote it is told; and it is not in the file. */
	if (pvfs_cache_write(inode, 0, LLONG_MAX) != -EINTR)
		pvfs_meta_report(inode, 0, round);
	spin_lock(&pi->lock);
	/* If the mgr was not told it asks again. */
	if (pi->wl.settle == round)
		pi->wl.settle = 0;
	spin_unlock(&pi->lock);
	pvfs_use_iput(pi->use);			/* also counts vol->closing down */
}

/**
 * pvfs_wlease_settle - SETTLE names an inode
 * @inode: the inode, found under RCU
 * @round: its number
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: something that was written is not with the iods yet; REPORT will say when it is, or the answer to
 * another SETTLE.
 */
bool pvfs_wlease_settle(struct inode *inode, u64 round)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	bool put = true;

	/* The lease came with what ends the draft, whose bytes may be on their way yet: the mgr asks again. */
	if (READ_ONCE(pi->draft.d))
		return true;
	if (!pvfs_unwritten(inode))
		return false;
	if (!igrab(inode))
		return true;			/* it is asked again */
	spin_lock(&pi->lock);
	/* Another round means that the last one was answered, or that the mgr is another. */
	if (pi->wl.settle != round) {
		pi->wl.settle = round;
		put = !wlease_queue_work(inode, &pi->wl.settle_work);
	}
	spin_unlock(&pi->lock);
	if (put)
		pvfs_iput_later(inode);
	return true;
}

/**
 * pvfs_wlease_spoilt - a page could not be written
 * @inode: the file
 *
 * What is written from here on goes to the iods at once, so that who writes is told; and what could not be
 * is not taken for the file.
 */
void pvfs_wlease_spoilt(struct inode *inode)
{
	wlease_give_up(inode, true);
}

/**
 * pvfs_wlease_opened - the file is open for writing once more
 * @inode: the file
 */
void pvfs_wlease_opened(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	pi->wl.writers++;
	spin_unlock(&pi->lock);
}

/**
 * pvfs_wlease_leave - an open for writing is about to be given back: if it is the last, wait for who makes
 * pages dirty without one (resend.c)
 * @inode: the file
 */
void pvfs_wlease_leave(struct inode *inode)
{
	struct pvfs_wlease *wl = &PVFS_I(inode)->wl;
	bool busy;

	spin_lock(&PVFS_I(inode)->lock);
	busy = wl->users && wl->writers == 1;
	wl->leaving |= busy;
	spin_unlock(&PVFS_I(inode)->lock);
	if (busy)
		wait_var_event(&wl->users, !READ_ONCE(wl->users));
}

/**
 * pvfs_wlease_closing - CLOSE of an open for writing is about to be sent; that of the last ends the lease
 * @inode: the file; what was written is with the iods
 * @kept: set to the version that the pages in the cache are of, if they are the file as the lease ends; else 0
 *
 * Return: it may be. Not the last one while there is a lease under which pages were made dirty once more: they
 * need the open.
 */
bool pvfs_wlease_closing(struct inode *inode, u64 *kept)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;
	bool ret = true, ended = false;

	*kept = 0;
	spin_lock(&pi->lock);
	if (wl->writers == 1 && wl->state != PVFS_WL_NONE && (wl->users || pvfs_late_due(inode))) {
		ret = false;
	} else if (!--wl->writers) {
		wl->missed = 0;
		wl->leaving = false;
		if (wl->state == PVFS_WL_HELD) {
			if (wlease_mine(wl, PVFS_VOL(inode)) && !wl->lost && pi->cache_version == pi->attr.version)
				*kept = pi->cache_version;
			wlease_set(pi, PVFS_WL_NONE);
			ended = true;
		}
	}
	spin_unlock(&pi->lock);
	if (ended)
		pvfs_turn_unshow(inode);
	return ret;
}

/**
 * pvfs_wlease_closed - attributes were taken in, and maybe a lease, that came with the answer to a CLOSE
 * @inode: the file; pvfs_inode.lock is held
 * @attr: they
 * @ask: of the CLOSE, or of another question, or NULL
 *
 * If the mgr has made that a lease to read before it ended the one to write, nobody else has changed the
 * file, and what we have changed since would not have let us take it: the pages are of this version.
 */
void pvfs_wlease_closed(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (ask && ask->kept && (attr->flags & PVFS_AF_KEPT) && ask->kept == pi->cache_version &&
	    pvfs_inode_leased(inode))
		pi->cache_version = attr->version;
}

/* ---------------------------------------------------------------- another mgr, another session */

/**
 * pvfs_wlease_reclaims - the mgr is about to be told that a file is open
 * @inode: the file
 * @gen: filled, for pvfs_wlease_reclaimed()
 *
 * In another session than the lease was given in, it is gone, and what is dirty as well.
 *
 * Return: is the mgr to be told that there is one?
 */
bool pvfs_wlease_reclaims(struct inode *inode, u64 *gen)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_wlease *wl = &pi->wl;
	bool queued = false, dirty, ret;

	*gen = atomic64_read(&vol->leases.gen);
	if (READ_ONCE(wl->state) == PVFS_WL_NONE)
		return false;
	ihold(inode);
	spin_lock(&pi->lock);
	if (wl->state != PVFS_WL_NONE && wl->session != READ_ONCE(vol->session)) {
		wlease_set(pi, PVFS_WL_NONE);
		pi->cache_version = 0;
		dirty = wl->users || mapping_tagged(inode->i_mapping, PAGECACHE_TAG_DIRTY) ||
			mapping_tagged(inode->i_mapping, PAGECACHE_TAG_WRITEBACK);
		/* Told here, once: who waits for them now finds it when they have ended. */
		if (dirty)
			mapping_set_error(inode->i_mapping, -EIO);
		wl->lost_told = dirty;
		if (dirty || atomic_read(&pi->turn.maps)) {
			WRITE_ONCE(wl->lost, true);
			queued = wlease_queue(inode);
		}
	}
	ret = wl->state != PVFS_WL_NONE && !wl->told;
	spin_unlock(&pi->lock);
	if (!queued)
		pvfs_iput_later(inode);
	return ret;
}

/**
 * pvfs_wlease_reclaimed - and that is what it says
 * @inode: the file
 * @flags: of the attributes that came
 * @gen: from before
 *
 * Of a lease that does not stand, in the session that had it, what is dirty is written at once: until
 * then a RECALL that may come is not answered.
 */
void pvfs_wlease_reclaimed(struct inode *inode, u32 flags, u64 gen)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (!(flags & PVFS_AF_WLEASE)) {
		wlease_give_up(inode, false);
		return;
	}
	spin_lock(&pi->lock);
	if (pi->wl.state != PVFS_WL_NONE)
		pi->wl.gen = gen;
	spin_unlock(&pi->lock);
}
