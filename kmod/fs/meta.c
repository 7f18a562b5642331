// SPDX-License-Identifier: GPL-2.0
/*
 * meta.c - asking the manager: whose name it is asked in, one exchange, and the operations on
 * inodes. Whatever comes back is checked here before anyone uses it.
 */
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "meta.h"

/* Pauses before a request that was answered EAGAIN is made again; when that is said in the log. */
#define AGAIN_MS 50u
#define AGAIN_MAX_MS 1000u
#define AGAIN_TELL_MS 5000u

/* ---------------------------------------------------------------- who asks */

/*
 * More groups than the protocol carries are left out: that can refuse, but never grant. Who has to
 * be checked here has been; then only the ids matter, and only for what is made.
 */
int pvfs_who_get(struct who *w, struct inode *inode, struct pvfs_idmap *idmap,
		 struct pvfs_cred *ret)
{
	bool checked = pvfs_checked_here(PVFS_VOL(inode), idmap);
	const struct cred *cred = current_cred();
	const struct group_info *gi = cred->group_info;
	u32 i, n = checked ? 0 : min_t(u32, gi->ngroups, PVFS_NGROUPS_MAX);
	u8 *p = w->small;

	w->heap = NULL;
	if (n * 4 > sizeof(w->small)) {
		p = w->heap = kmalloc(n * 4, GFP_KERNEL);
		if (!p)
			return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		put_unaligned_le32(from_kgid_munged(&init_user_ns, gi->gid[i]), p + 4 * i);
	w->cred.uid = from_kuid_munged(&init_user_ns, mapped_fsuid(idmap, &init_user_ns));
	w->cred.gid = from_kgid_munged(&init_user_ns, mapped_fsgid(idmap, &init_user_ns));
	w->cred.flags = checked ? PVFS_CRED_CHECKED : 0;
	w->cred.groups = (struct pvfs_str){ .p = p, .len = n * 4 };
	*ret = w->cred;
	return 0;
}

void pvfs_who_put(struct who *w)
{
	kfree(w->heap);
}

/* ---------------------------------------------------------------- one exchange */

/*
 * EAGAIN: the mgr can't do it now (a truncation, or a size, that waits for an iod). Hard mounts ask
 * until it can, or umount -f; soft ones until their time is up.
 */
int pvfs_ask_again(struct pvfs_volume *vol, struct again *a)
{
	unsigned int ms;

	if (!a->since) {
		a->since = jiffies ?: 1;
		a->aborts = READ_ONCE(vol->aborts);
	}
	ms = jiffies_to_msecs(jiffies - a->since);
	if (READ_ONCE(vol->aborts) != a->aborts || (vol->opts.soft && ms >= vol->opts.timeo_ms))
		return -EIO;
	if (ms >= AGAIN_TELL_MS && !a->told) {
		pr_warn_ratelimited("%s: the mgr waits for an iod that does not answer, %s\n",
				    vol->opts.volume,
				    vol->opts.soft ? "requests will fail" : "still trying");
		a->told = true;
	}
	pvfs_pause_ms(clamp(ms / 4, AGAIN_MS, AGAIN_MAX_MS));
	if (ms >= PVFS_EXIT_MS)
		pvfs_exit_hurry();
	return fatal_signal_pending(current) ? -EINTR : -EAGAIN;
}

/* An answer's error, as the VFS may see it. */
int pvfs_final_error(struct pvfs_volume *vol, enum pvfs_op op, int err)
{
	switch (err) {
	case -EBADMSG:
		return pvfs_bogus(vol, pvfs_op_name(op), 0);
	case -EMSGSIZE:		/* a name that can't be sent */
		return -ENAMETOOLONG;
	case -ESHUTDOWN:
		return -EIO;
	default:
		return err;
	}
}

int pvfs_attr_check(struct pvfs_volume *vol, const struct pvfs_attr *attr)
{
	return pvfs_attr_sane(vol, attr) ? 0 : pvfs_bogus(vol, "attributes", attr->fid.ino);
}

/* Of an inode that we asked about: they must be its own. */
int pvfs_own_attr_check(struct inode *inode, const struct pvfs_attr *attr)
{
	if (!pvfs_inode_is(inode, &attr->fid))
		return pvfs_bogus(PVFS_VOL(inode), "another inode's attributes",
				  PVFS_I(inode)->fid.ino);
	return pvfs_attr_check(PVFS_VOL(inode), attr);
}

/* Takes in what the mgr says of an inode after we asked about it by its number. @ask: or NULL. */
int pvfs_own_attr_result(struct inode *inode, int err, const struct pvfs_attr *attr,
			 const struct pvfs_ask *ask)
{
	if (err == -ESTALE)
		pvfs_inode_stale(inode);
	if (!err)
		err = pvfs_own_attr_check(inode, attr);
	if (!err)
		err = pvfs_inode_update(inode, attr, ask);
	return err;
}

/* The same for a change that pvfs_own_begin() has begun. */
int pvfs_own_changed(struct inode *inode, int err, const struct pvfs_attr *attr)
{
	err = pvfs_own_attr_result(inode, err, attr, NULL);
	if (err)	/* it may have been made */
		pvfs_attr_distrust(inode);
	pvfs_own_end(inode);
	return err;
}

META(GETATTR, getattr)
META(SETATTR, setattr)
META(OPEN, open)
META(REPORT, report)
META(TURN, turn)
META(STATFS, statfs)
META(GETLK, getlk)

/* ---------------------------------------------------------------- inodes */

/**
 * pvfs_meta_getattr_start - begin to ask for an inode's attributes
 * @inode: the inode
 * @a: filled; it has the report of our writes that goes along
 *
 * Return: a submitted request, for pvfs_meta_getattr_finish(); or ERR_PTR.
 */
struct pvfs_request *pvfs_meta_getattr_start(struct inode *inode, struct pvfs_getattr_ask *a)
{
	struct pvfs_getattr_req m = { .fid = fid_of(inode) };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_request *req;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_GETATTR, 0);
	if (IS_ERR(req))
		return ERR_PTR(pvfs_final_error(vol, PVFS_OP_GETATTR, PTR_ERR(req)));
	pvfs_writes_report(inode, &a->sent);
	m.report = a->sent;
	pvfs_lease_ask(vol, &a->ask);
	req->body_len = pvfs_getattr_req_encode(&m, req->body, req->body_room);
	pvfs_req_submit(req);
	return req;
}

/**
 * pvfs_meta_getattr_finish - wait for the answer and take it in
 * @inode: the inode
 * @a: as pvfs_meta_getattr_start() filled it
 * @req: from pvfs_meta_getattr_start(); taken
 */
int pvfs_meta_getattr_finish(struct inode *inode, struct pvfs_request *req,
			     const struct pvfs_getattr_ask *a)
{
	struct pvfs_getattr_rep r;
	int err;

	err = pvfs_req_wait(req);
	if (!err)
		err = pvfs_getattr_rep_decode(&r, req->rep, req->rep_len);
	pvfs_req_put(req);
	err = pvfs_own_attr_result(inode, pvfs_final_error(PVFS_VOL(inode), PVFS_OP_GETATTR, err),
				   &r.attr, &a->ask);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, &a->sent);
	return err;
}

/**
 * pvfs_meta_atime - tell the mgr that an inode was read, if it was; without waiting
 * @inode: one that has no CLOSE which would tell it
 */
void pvfs_meta_atime(struct inode *inode)
{
	struct pvfs_getattr_req m = { .fid = fid_of(inode) };
	struct pvfs_request *req;

	if (!pvfs_atime_report(inode, &m.report))
		return;
	req = pvfs_req_alloc(PVFS_VOL(inode)->mgr, PVFS_OP_GETATTR, 0);
	if (IS_ERR(req))
		return;
	req->flags = PVFS_RF_ASYNC;
	req->body_len = pvfs_getattr_req_encode(&m, req->body, req->body_room);
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

/**
 * pvfs_meta_getattr_fid - attributes of an inode that we have only the number of: the root
 * @vol: the volume
 * @fid: the inode's number
 * @attr: filled with attributes, checked
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getattr_fid(struct pvfs_volume *vol, const struct pvfs_fid *fid,
			  struct pvfs_attr *attr)
{
	struct pvfs_getattr_req m = { .fid = *fid };
	struct pvfs_getattr_rep r;
	int err;

	err = meta_getattr(vol, META_ROOM, &m, &r);
	if (err)
		return err;
	*attr = r.attr;
	return pvfs_attr_check(vol, attr);
}

/**
 * pvfs_meta_getattr - ask for an inode's attributes, telling what we wrote; -EAGAIN is asked again
 * @inode: the inode
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getattr(struct inode *inode)
{
	struct pvfs_request *req;
	struct pvfs_getattr_ask a;
	struct again again = { };
	int err = pvfs_draft_settle(inode);

	if (err)
		return err;
	do {
		req = pvfs_meta_getattr_start(inode, &a);
		if (IS_ERR(req))
			return PTR_ERR(req);
		err = pvfs_meta_getattr_finish(inode, req, &a);
		if (err == -EAGAIN)
			err = pvfs_ask_again(PVFS_VOL(inode), &again);
	} while (err == -EAGAIN);
	return err;
}

/**
 * pvfs_meta_setattr - change attributes
 * @inode: the inode
 * @m: all but cred, fid and report are the caller's
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setattr(struct inode *inode, struct pvfs_setattr_req *m)
{
	struct pvfs_setattr_rep r;
	struct who w;
	int err;

	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m->cred);
	if (err)
		return err;
	m->fid = fid_of(inode);
	pvfs_writes_report(inode, &m->report);
	pvfs_own_begin(inode);
	err = meta_setattr(PVFS_VOL(inode), room(&w), m, &r);
	pvfs_who_put(&w);
	err = pvfs_own_changed(inode, err, &r.attr);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, &m->report);
	return err;
}

/**
 * pvfs_meta_report - fsync: what we wrote is recorded at the mgr when this returns
 * @inode: the inode
 * @flags: PVFS_RP_*
 * @settled: the round of a SETTLE that this answers, or 0
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_report(struct inode *inode, u32 flags, u64 settled)
{
	struct pvfs_report_req m = { .fid = fid_of(inode), .flags = flags, .settled = settled };
	struct pvfs_report_rep r;
	int err;

	pvfs_writes_report(inode, &m.report);
	err = meta_report(PVFS_VOL(inode), META_ROOM, &m, &r);
	err = pvfs_own_attr_result(inode, err, &r.attr, NULL);
	if (!err)
		pvfs_writes_ack(PVFS_I(inode)->use, &m.report);
	return err;
}

/**
 * pvfs_meta_turn - ask to be let into a file
 * @inode: the file, which is open here
 * @flags: PVFS_TN_*
 * @seq: grows with each
 * @aflags: filled with the flags of the attributes that came, which are taken in already
 * @ask: filled, from before the question
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_turn(struct inode *inode, u32 flags, u64 seq, u32 *aflags, struct pvfs_ask *ask)
{
	struct pvfs_turn_req m = { .fid = fid_of(inode), .flags = flags, .seq = seq };
	struct pvfs_turn_rep r;
	int err;

	pvfs_lease_ask(PVFS_VOL(inode), ask);
	err = meta_turn(PVFS_VOL(inode), META_ROOM, &m, &r);
	err = pvfs_own_attr_result(inode, err, &r.attr, ask);
	*aflags = err ? 0 : r.attr.flags;
	return err;
}

/**
 * pvfs_meta_open - open by inode
 * @inode: the inode; to change it is to be between pvfs_unlease() and pvfs_unlease_end()
 * @flags: PVFS_O_*
 * @rep: attributes (taken in already) and capability
 * @ask: filled, from before the question
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_open(struct inode *inode, u32 flags, struct pvfs_open_rep *rep, struct pvfs_ask *ask)
{
	struct pvfs_open_req m = {
		.fid = fid_of(inode), .flags = flags,
		.unleased = pvfs_open_changes(flags) ? fid_of(inode).ino : 0,
	};
	struct who w;
	int err;

	err = pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	pvfs_lease_ask(PVFS_VOL(inode), ask);
	err = meta_open(PVFS_VOL(inode), room(&w), &m, rep);
	pvfs_who_put(&w);
	return pvfs_own_attr_result(inode, err, &rep->attr, ask);
}

/**
 * pvfs_meta_open_again - the same of what is open already: nobody's leave is asked
 * @inode: the inode
 * @flags: PVFS_O_*
 * @rep: attributes (taken in already) and capability
 * @ask: filled, from before the question
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_open_again(struct inode *inode, u32 flags, struct pvfs_open_rep *rep, struct pvfs_ask *ask)
{
	struct pvfs_open_req m = {
		.fid = fid_of(inode), .flags = flags, .unleased = fid_of(inode).ino,
		.cred = { .flags = PVFS_CRED_CHECKED },
	};
	int err;

	pvfs_lease_ask(PVFS_VOL(inode), ask);
	err = meta_open(PVFS_VOL(inode), META_ROOM, &m, rep);
	return pvfs_own_attr_result(inode, err, &rep->attr, ask);
}

/**
 * pvfs_meta_open_fid - open what may have no inode here, in the kernel's own name
 * @vol: the volume
 * @fid: which
 * @flags: PVFS_O_*, that change nothing
 * @cap: filled
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_open_fid(struct pvfs_volume *vol, const struct pvfs_fid *fid, u32 flags,
		       struct pvfs_cap *cap)
{
	struct pvfs_open_req m = {
		.fid = *fid, .flags = flags, .cred = { .flags = PVFS_CRED_CHECKED },
	};
	struct pvfs_open_rep rep;
	int err;

	err = meta_open(vol, META_ROOM, &m, &rep);
	if (!err)
		*cap = rep.cap;
	return err;
}

/*
 * What came of telling a new mgr of one inode. EIO also stands for a connection that is gone, and then all is told anew;
 * if the mgr has said it, it is of that inode alone, and would be said again.
 */
static int reclaim_error(const struct pvfs_request *req, int err)
{
	return err == -EIO && req->answered ? -EREMOTEIO : err;
}

/**
 * pvfs_meta_reclaim - tell a new mgr, or a new session, what we have open
 * @inode: the inode
 * @cap: what was given for such an open before
 * @rep: filled with the answer
 * @flags: PVFS_O_READ | PVFS_O_WRITE; PVFS_O_DRAFT: it is a draft, PVFS_O_WLEASE: there is a WRITE
 *	lease
 * @count: how many opens of this kind there are
 * @recovery: part of recovery: passes while other requests are held
 *
 * Return: 0; -EREMOTEIO: the mgr has answered EIO; or another -errno.
 */
int pvfs_meta_reclaim(struct inode *inode, const struct pvfs_cap *cap, u32 flags, u32 count,
		      bool recovery, struct pvfs_reclaim_rep *rep)
{
	struct pvfs_reclaim_req m = {
		.cred = { .uid = (u32)-1, .gid = (u32)-1 },	/* nobody's: the cap says it */
		.cap = *cap,
		.fid = fid_of(inode),
		.flags = flags,
		.count = count,
	};
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_request *req;
	int err;

	req = pvfs_req_alloc(vol->mgr, PVFS_OP_RECLAIM, 0);
	if (IS_ERR(req))
		return PTR_ERR(req);
	if (recovery)
		req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_reclaim_req_encode(&m, req->body, req->body_room);
	err = reclaim_error(req, pvfs_req_run(req));
	if (!err)
		err = pvfs_reclaim_rep_decode(rep, req->rep, req->rep_len);
	pvfs_req_put(req);
	return pvfs_own_attr_result(inode, pvfs_final_error(vol, PVFS_OP_RECLAIM, err), &rep->attr,
				    NULL);
}

/**
 * pvfs_meta_statfs - how much there is, and how much is left
 * @vol: the volume
 * @rep: filled with the answer
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_statfs(struct pvfs_volume *vol, struct pvfs_statfs_rep *rep)
{
	struct pvfs_statfs_req m = {};

	return meta_statfs(vol, META_ROOM, &m, rep);
}

static void meta_relayout_done(struct pvfs_request *req)
{
	struct pvfs_use *use = req->priv;
	struct pvfs_inode *pi = use->pi;
	struct pvfs_setlayout_rep rep;
	int err;

	err = req->err ?: pvfs_setlayout_rep_decode(&rep, req->rep, req->rep_len);
	err = pvfs_own_changed(&pi->vfs_inode, err, &rep.attr);
	if (err)
		WRITE_ONCE(pi->relayout.lost, pi->relayout.lost + 1);
	pi->relayout.err = err;
	/* Pairs with meta_relayout_wait(). */
	smp_store_release(&pi->relayout.busy, false);
	wake_up_all(&use->vol->async_wait);
	pvfs_use_iput(use);		/* also counts vol->closing down */
}

static bool meta_relayout_over(struct pvfs_inode *pi)
{
	return !smp_load_acquire(&pi->relayout.busy);	/* pairs with meta_relayout_done() */
}

/*
 * Waits until no SETLAYOUT is under way: as long as for any request. Return: 0, -EINTR, -EIO
 * (soft).
 */
static int meta_relayout_wait(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	long left = MAX_SCHEDULE_TIMEOUT;

	if (likely(meta_relayout_over(pi)))
		return 0;
	if (vol->opts.soft)
		left = msecs_to_jiffies(vol->opts.timeo_ms);
	left = pvfs_wait_event_timeout(vol->async_wait, meta_relayout_over(pi), left);
	return left > 0 ? 0 : left ? -EINTR : -EIO;
}

/* Not safe to run twice for one inode at once. */
static int meta_relayout(struct inode *inode, const struct pvfs_setlayout_req *m, u32 body_room)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_request *req;
	int err;

	err = pvfs_use_init(inode);
	if (err)
		return err;
	req = pvfs_req_alloc(vol->mgr, PVFS_OP_SETLAYOUT, body_room);
	if (IS_ERR(req))
		return PTR_ERR(req);
	err = pvfs_setlayout_req_encode(m, req->body, req->body_room);
	if (err < 0) {
		pvfs_req_put(req);
		return err;
	}
	req->body_len = err;
	req->flags = PVFS_RF_ASYNC;
	req->done = meta_relayout_done;
	/* Pairs with pvfs_use_init(). */
	req->priv = smp_load_acquire(&pi->use);
	ihold(inode);
	atomic_inc(&vol->closing);
	pvfs_own_begin(inode);
	WRITE_ONCE(pi->relayout.busy, true);
	pvfs_req_submit(req);
	pvfs_req_put(req);
	return meta_relayout_wait(inode) ?: pi->relayout.err;
}

/**
 * pvfs_meta_setlayout - layout of a file that was never written, or of a directory's new files
 * @inode: the inode; the caller holds its i_rwsem
 * @layout: pcount 1 or more, base 0xffff for any
 *
 * Whoever is killed waiting, or waited long enough (soft), leaves the request to itself: nobody
 * here reads or writes the file before it is known which layout it has, see pvfs_layout_settled().
 *
 * Return: 0; -EEXIST: it was written; or -errno, as all here: see vfs.h.
 */
int pvfs_meta_setlayout(struct inode *inode, const struct pvfs_layout *layout)
{
	struct pvfs_setlayout_req m = { .fid = fid_of(inode), .layout = *layout };
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct again again = { };
	struct who w;
	int err;

	/* What we wrote and have not told the mgr only we know. */
	if (S_ISREG(inode->i_mode) && (i_size_read(inode) || pvfs_writes_pending(inode)))
		return -EEXIST;
	err = pvfs_draft_settle(inode) ?: pvfs_who_get(&w, inode, PVFS_NOP_IDMAP, &m.cred);
	if (err)
		return err;
	do {
		err = pvfs_layout_settled(inode);
		err = err ?: meta_relayout(inode, &m, room(&w));
		if (err == -EAGAIN)
			err = pvfs_ask_again(vol, &again);
	} while (err == -EAGAIN);
	pvfs_who_put(&w);
	return pvfs_final_error(vol, PVFS_OP_SETLAYOUT, err);
}

/**
 * pvfs_layout_settled - wait until no SETLAYOUT is under way, and learn what came of those that
 * failed
 * @inode: the inode
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_layout_settled(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	u32 lost;
	int err;

	err = meta_relayout_wait(inode);
	if (err)
		return err;
	lost = READ_ONCE(pi->relayout.lost);
	if (likely(lost == READ_ONCE(pi->relayout.known)))
		return 0;
	err = pvfs_meta_getattr(inode);
	if (err)
		return err;
	WRITE_ONCE(pi->relayout.known, lost);
	return 0;
}

/* ---------------------------------------------------------------- locks, end of recovery */

/**
 * pvfs_meta_getlk - what is in the way of a lock
 * @inode: the inode
 * @m: the question
 * @rep: filled with the answer, checked; type PVFS_LK_UNLOCK: nothing
 *
 * Return: 0 or -errno, as all here: see vfs.h.
 */
int pvfs_meta_getlk(struct inode *inode, const struct pvfs_getlk_req *m, struct pvfs_getlk_rep *rep)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	int err = meta_getlk(vol, META_ROOM, m, rep);

	if (!err && (rep->type > PVFS_LK_WRITE || rep->start > rep->end ||
		     rep->end > PVFS_FILE_MAX || rep->pid > S32_MAX))
		err = pvfs_bogus(vol, "a lock", m->fid.ino);
	return err;
}

/**
 * pvfs_meta_lock_reclaim - tell a new mgr of a lock; part of recovery
 * @vol: the volume
 * @m: the lock
 * @state: filled with PVFS_LK_*
 *
 * Return: 0; -EREMOTEIO: the mgr has answered EIO; or -errno, as all here: see vfs.h.
 */
int pvfs_meta_lock_reclaim(struct pvfs_volume *vol, const struct pvfs_lock_req *m, u8 *state)
{
	struct pvfs_request *req = pvfs_req_alloc(vol->mgr, PVFS_OP_LOCK, 0);
	struct pvfs_lock_rep rep;
	int err;

	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_lock_req_encode(m, req->body, req->body_room);
	err = reclaim_error(req, pvfs_req_run(req));
	if (!err)
		err = pvfs_lock_rep_decode(&rep, req->rep, req->rep_len);
	if (!err)
		*state = rep.state;
	pvfs_req_put(req);
	return pvfs_final_error(vol, PVFS_OP_LOCK, err);
}

/**
 * pvfs_meta_reclaim_done - all was told that a new mgr has to know; part of recovery
 * @vol: the volume
 * @epoch: the mgr's that it was told to
 *
 * Return: 0, -EAGAIN: the mgr is another by now, or -errno, as all here: see vfs.h.
 */
int pvfs_meta_reclaim_done(struct pvfs_volume *vol, u64 epoch)
{
	struct pvfs_request *req = pvfs_req_alloc(vol->mgr, PVFS_OP_RECLAIM_DONE, 0);
	struct pvfs_reclaim_done_req m = { .epoch = epoch };
	int err;

	if (IS_ERR(req))
		return PTR_ERR(req);
	req->flags |= PVFS_RF_RECOVERY;
	req->body_len = pvfs_reclaim_done_req_encode(&m, req->body, req->body_room);
	err = pvfs_req_run(req);
	pvfs_req_put(req);
	return pvfs_final_error(vol, PVFS_OP_RECLAIM_DONE, err);
}
