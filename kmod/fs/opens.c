// SPDX-License-Identifier: GPL-2.0
/*
 * opens.c - what is open here, as the mgr counts it: the capabilities that come with an open, and what a new
 * mgr, or a new session, is told.
 */
#include <linux/sched/signal.h>
#include "vfs.h"

#define RECOVERY_POLL_MS 20		/* while a capability waits for the session to come back */

/**
 * pvfs_session_sample - which session of which mgr an open is about to be made in
 * @vol: the volume
 * @session: filled with its number, 0: none
 * @epoch: filled with the mgr's
 */
void pvfs_session_sample(struct pvfs_volume *vol, u64 *session, u64 *epoch)
{
	spin_lock(&vol->lock);
	*session = vol->session;
	*epoch = vol->epoch;
	spin_unlock(&vol->lock);
}

static int opens_keep_cap(struct inode *inode, const struct pvfs_cap *cap, u32 class)
{
	u64 now = READ_ONCE(PVFS_VOL(inode)->session);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_cap *have;

	if (cap->rights >= ARRAY_SIZE(pi->opens.cap) || (cap->rights & class) != class)
		return pvfs_bogus(PVFS_VOL(inode), "a capability", pi->fid.ino);
	have = &pi->opens.cap[cap->rights];
	spin_lock(&pi->lock);
	/* An answer from a session that is over may come after recovery has been here. */
	if (!have->rights || have->session != now || cap->session == now)
		*have = *cap;
	spin_unlock(&pi->lock);
	return 0;
}

/*
 * What was open for @class the mgr does not take for open any more. Its capability may have come with more
 * rights, which those of another class still show.
 */
static void opens_drop_cap(struct pvfs_inode *pi, u32 class)
{
	u32 i;

	spin_lock(&pi->lock);
	for (i = class; i < ARRAY_SIZE(pi->opens.cap); i++)
		if ((i & class) == class && (i == class || !READ_ONCE(pi->opens.n[i])))
			pi->opens.cap[i].rights = 0;
	spin_unlock(&pi->lock);
}

/*
 * One that was given for an open of that class, by whichever mgr; in this session, if there is one: only
 * what was leased in it can still be.
 */
static void opens_old_cap(struct inode *inode, u32 class, struct pvfs_cap *ret)
{
	u64 now = READ_ONCE(PVFS_VOL(inode)->session);
	struct pvfs_inode *pi = PVFS_I(inode);
	u32 i;

	memset(ret, 0, sizeof(*ret));
	spin_lock(&pi->lock);
	for (i = class; i < ARRAY_SIZE(pi->opens.cap); i++)
		if ((i & class) == class && pi->opens.cap[i].rights &&
		    (!ret->rights || (ret->session != now && pi->opens.cap[i].session == now)))
			*ret = pi->opens.cap[i];
	spin_unlock(&pi->lock);
}

/* The mgr knows all opens of an inode since the volume's recovery number @told. */
static void opens_told(struct inode *inode, u32 told)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_use *use = PVFS_I(inode)->use;

	if (READ_ONCE(use->told) == told)
		return;
	spin_lock(&vol->open_lock);
	if ((s32)(told - use->told) > 0)
		WRITE_ONCE(use->told, told);
	spin_unlock(&vol->open_lock);
}

/* Tells the mgr all opens of an inode. */
static int opens_reclaim_inode(struct inode *inode, bool recovery)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_reclaim_rep rep;
	u32 class, flags, n, also, out;
	u32 told = READ_ONCE(vol->recoveries);
	struct pvfs_cap cap;
	bool wlease;
	int err;
	u64 gen;

	/* Before there is a capability of another session. */
	wlease = pvfs_wlease_reclaims(inode, &gen);
	if (!wlease)
		pvfs_turn_unshow(inode);
	also = pvfs_draft_reclaims(inode) | (wlease ? PVFS_O_WLEASE : 0);
	out = pvfs_turn_reclaims(inode, also) ? PVFS_O_OUT : 0;
	for (class = 1; class < ARRAY_SIZE(pi->opens.n); class++) {
		spin_lock(&vol->open_lock);
		n = pi->opens.n[class];
		spin_unlock(&vol->open_lock);
		if (!n)
			continue;
		flags = class | out;
		if (class & PVFS_O_WRITE)
			flags |= also;
		opens_old_cap(inode, class, &cap);
		err = pvfs_meta_reclaim(inode, &cap, flags, n, recovery, &rep);
		if (err == -ESTALE || err == -EACCES || err == -EREMOTEIO)
			pr_warn_ratelimited("%s: inode %llu was open here, and %s\n",
					    vol->opts.volume, pi->fid.ino,
					    err == -ESTALE ? "was removed meanwhile" :
					    err == -EACCES ? "the mgr does not believe it" :
							     "the mgr can't read it (EIO): I/O on it fails");
		if (err == -ESTALE) {
			pvfs_inode_stale(inode);
			return 0;
		}
		if (err == -EACCES || err == -EREMOTEIO) {
			opens_drop_cap(pi, class);
			continue;
		}
		if (!err && wlease && (class & PVFS_O_WRITE))
			pvfs_wlease_reclaimed(inode, rep.attr.flags, gen);
		if (!err)
			err = opens_keep_cap(inode, &rep.cap, class);
		if (err)
			return err;
	}
	opens_told(inode, told);
	return 0;
}

/**
 * pvfs_files_reclaim - tell a new mgr, or a new session, what is open
 * @vol: the volume
 *
 * As pvfs_volume_ops.reclaim: other requests to the mgr are held. Opens that are made while this runs
 * see by themselves that the session is another: pvfs_file_opened().
 *
 * Return: 0 or -errno.
 */
int pvfs_files_reclaim(struct pvfs_volume *vol)
{
	struct inode *inode;
	struct pvfs_walk w;
	int err = 0;

	pvfs_deferred_forget(vol);
	pvfs_walk_begin(&w, &vol->open_lock, &vol->open_list, offsetof(struct pvfs_inode, opens.listed));
	while (!err) {
		inode = pvfs_walk_next(&w);
		if (!inode)
			break;
		err = opens_reclaim_inode(inode, true);
		pvfs_iput_later(inode);
	}
	pvfs_walk_end(&w);
	return err;
}

/**
 * pvfs_file_opened - the mgr has opened an inode for us
 * @inode: the inode
 * @cap: from the answer
 * @pf: with flags as opened
 * @session: what pvfs_session_sample() said before the request was made
 * @epoch: the same
 *
 * Return: 0; on failure the open has been given back to the mgr.
 */
int pvfs_file_opened(struct inode *inode, struct pvfs_file *pf, const struct pvfs_cap *cap,
		     u64 session, u64 epoch)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	u32 class = pvfs_open_class(pf->flags);
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 session_now, epoch_now;
	u32 told;
	int err;

	err = pvfs_use_init(inode);
	if (err) {
		pvfs_close_at_mgr(vol, &pi->fid, pf->flags, NULL);
		return err;
	}
	/* Before it is counted: who finds that it is open tells the mgr so with the capability. */
	err = opens_keep_cap(inode, cap, class);
	spin_lock(&vol->open_lock);
	pi->opens.n[class]++;
	atomic_inc(&pi->opens.live);
	if (list_empty(&pi->opens.listed.link))
		list_add_tail(&pi->opens.listed.link, &vol->open_list);
	spin_unlock(&vol->open_lock);
	if (class & PVFS_O_WRITE)
		pvfs_wlease_opened(inode);
	/*
	 * Was it another mgr, or another session, that opened it, or is it another by now? Then
	 * recovery may have passed before this open was on the list. A RECLAIM sets the count, so
	 * one too many does no harm.
	 */
	told = READ_ONCE(vol->recoveries);
	smp_rmb();	/* which changes with the session, or the epoch, but is not read with them */
	pvfs_session_sample(vol, &session_now, &epoch_now);
	if (session_now == session && epoch_now == epoch)
		opens_told(inode, told);
	else if (!err)
		err = opens_reclaim_inode(inode, false);
	if (err)
		pvfs_close_at_mgr(vol, &pi->fid, pf->flags, inode);
	return err;
}

/**
 * pvfs_open_uncount - the mgr has closed an open of ours, or does not know of it
 * @pi: whose; vol->open_lock is held
 * @class: pvfs_open_class(), as it was counted
 */
void pvfs_open_uncount(struct pvfs_inode *pi, u32 class)
{
	pi->opens.n[class]--;
	if (!(pi->opens.n[1] | pi->opens.n[2] | pi->opens.n[3]))
		list_del_init(&pi->opens.listed.link);
}

/* Is it open here so that a capability with these rights comes with it? */
static bool opens_for(const struct pvfs_inode *pi, u32 rights)
{
	u32 class;

	for (class = 1; class < ARRAY_SIZE(pi->opens.n); class++)
		if ((class & rights) == rights && READ_ONCE(pi->opens.n[class]))
			return true;
	return false;
}

/* Return: 0; -EAGAIN: it is of a former session; -EBADF: there is none; -ESTALE. */
static int opens_cap_now(struct inode *inode, u32 rights, struct pvfs_cap *cap, u64 *session)
{
	u64 now = READ_ONCE(PVFS_VOL(inode)->session);
	struct pvfs_inode *pi = PVFS_I(inode);
	int err = -EBADF;
	u32 i;

	spin_lock(&pi->lock);
	/* The narrowest first. */
	for (i = 1; i < ARRAY_SIZE(pi->opens.cap) && err; i++) {
		if (!pi->opens.cap[i].rights || (i & rights) != rights)
			continue;
		*cap = pi->opens.cap[i];
		*session = cap->session;
		err = cap->session == now ? 0 : -EAGAIN;
	}
	if (pi->attr.stale)
		err = -ESTALE;
	spin_unlock(&pi->lock);
	return err;
}

/**
 * pvfs_cap_current - has this session a capability?
 * @inode: the inode
 * @rights: PVFS_CAP_* that it must have
 */
bool pvfs_cap_current(struct inode *inode, u32 rights)
{
	struct pvfs_cap cap;
	u64 session;

	return !opens_cap_now(inode, rights, &cap, &session);
}

/**
 * pvfs_file_cap - a capability that is good now
 * @inode: the inode
 * @rights: PVFS_CAP_* that it must have, one of them or none
 * @cap: copied to
 * @session: in which it is good
 *
 * Waits, killably, while a lost session is being replaced.
 *
 * Return: 0, -ESTALE (the inode is gone), -EBADF (not open for that), -EINTR, -EIO (soft, or umount
 * -f).
 */
int pvfs_file_cap(struct inode *inode, u32 rights, struct pvfs_cap *cap, u64 *session)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	u32 aborts = READ_ONCE(vol->aborts);
	unsigned int waited = 0;
	int err;

	for (;;) {
		err = opens_cap_now(inode, rights, cap, session);
		if (err != -EAGAIN)
			return err;
		/* Nobody would ever bring another for what is not open any more. */
		if (!opens_for(pi, rights))
			return -EBADF;
		if (READ_ONCE(vol->aborts) != aborts)
			return -EIO;
		if (vol->opts.soft && waited >= vol->opts.timeo_ms)
			return -EIO;
		pvfs_pause_ms(RECOVERY_POLL_MS);
		waited += RECOVERY_POLL_MS;
		if (waited >= PVFS_EXIT_MS)
			pvfs_exit_hurry();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
}

void pvfs_opens_init(struct pvfs_volume *vol)
{
	spin_lock_init(&vol->open_lock);
	INIT_LIST_HEAD(&vol->open_list);
}
