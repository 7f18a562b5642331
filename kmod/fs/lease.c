// SPDX-License-Identifier: GPL-2.0
/*
 * lease.c - what the manager has told and promised to recall: attributes of an inode, and of a
 * directory its names.
 *
 * A lease is taken with the answer that brings it, unless something came between the question and
 * the answer: a RECALL of that inode, a change of our own, another session, a change that nobody
 * knows whether it was made. So each question that may bring one notes the clocks before it is
 * sent (struct pvfs_ask).
 *
 * Names are believed while their directory's lease is the one under which they were told: it has a
 * token, that no lease had before, and dentries keep it in d_time. What we do to a directory
 * ourselves the VFS does to its dentries, so names outlast it; the attributes must be asked anew.
 *
 * The manager does not recall our leases for changes of our own. While one is under way we believe
 * nothing of what it changes (pvfs_own_begin()).
 *
 * Checks take no lock, so that path walks under RCU can make them. Who finds a lease just before it
 * is recalled answers from it just after: the call was under way when the recall was answered.
 */
#include "vfs.h"
#include "trace.h"

#define LEASE_ASK_NS NSEC_PER_SEC	/* between two questions for the lease on a file */

/* ---------------------------------------------------------------- the clocks */

void pvfs_leases_init(struct pvfs_volume *vol)
{
	spin_lock_init(&vol->leases.lock);
	sema_init(&vol->leases.turn_room, PVFS_TURNS_MAX);
}

/**
 * pvfs_lease_ask - before a request whose answer may bring leases
 * @vol: the volume
 * @ask: filled
 */
void pvfs_lease_ask(struct pvfs_volume *vol, struct pvfs_ask *ask)
{
	struct pvfs_leases *l = &vol->leases;

	ask->sent = pvfs_boot_ns();
	ask->gen = atomic64_read(&l->gen);
	ask->owns = atomic64_read(&l->owns);
	ask->yields = atomic64_read(&l->yields);
	smp_rmb();	/* pairs with pvfs_leases_yield() */
	ask->recalls = READ_ONCE(l->recalls);
	ask->reports = atomic64_read(&vol->reports);
	ask->kept = 0;
}

/**
 * pvfs_leases_void - nothing that was told so far is believed any more
 * @vol: the volume
 *
 * The session, or the manager, is another.
 */
void pvfs_leases_void(struct pvfs_volume *vol)
{
	atomic64_inc(&vol->leases.gen);
}

/**
 * pvfs_leases_unsure - a change that we asked for may be made at any time, and nobody will tell us;
 * or one of these is over
 * @vol: the volume
 * @delta: 1 or -1
 *
 * The manager does not recall our leases for changes of our own.
 */
void pvfs_leases_unsure(struct pvfs_volume *vol, int delta)
{
	atomic_add(delta, &vol->leases.unsure);
	pvfs_leases_void(vol);
}

/* Until when an answer may be believed: the mgr counts from when it got the question. */
static u64 lease_ask_end(const struct pvfs_volume *vol, const struct pvfs_ask *ask)
{
	u32 ms = READ_ONCE(vol->lease_ms);

	return ask->sent + (u64)(ms - ms / 8) * NSEC_PER_MSEC;
}

static bool lease_recalled_since(struct pvfs_leases *l, u64 ino, u64 since)
{
	bool ret;
	u64 i;

	spin_lock(&l->lock);
	ret = l->recalls - since > ARRAY_SIZE(l->recalled);
	for (i = since; i != l->recalls && !ret; i++)
		ret = l->recalled[i % ARRAY_SIZE(l->recalled)] == ino;
	spin_unlock(&l->lock);
	return ret;
}

/**
 * pvfs_ask_stands - has nothing come between a question about an inode and now?
 * @vol: the volume
 * @ino: the inode
 * @ask: from before the question
 *
 * Return: no other session or mgr, no change that nobody knows whether it was made, no RECALL of it.
 */
bool pvfs_ask_stands(struct pvfs_volume *vol, u64 ino, const struct pvfs_ask *ask)
{
	return atomic64_read(&vol->leases.gen) == ask->gen &&
	       !lease_recalled_since(&vol->leases, ino, ask->recalls);
}

/**
 * pvfs_recall_note - an inode is recalled, or was given up: answers to what was asked before bring no lease
 * @vol: the volume
 * @ino: the inode
 */
void pvfs_recall_note(struct pvfs_volume *vol, u64 ino)
{
	struct pvfs_leases *l = &vol->leases;

	spin_lock(&l->lock);
	l->recalled[l->recalls % ARRAY_SIZE(l->recalled)] = ino;
	WRITE_ONCE(l->recalls, l->recalls + 1);
	spin_unlock(&l->lock);
}

/**
 * pvfs_session_end - until when the mgr can't have given up on this client
 * @vol: the volume
 *
 * It counts from when it was asked to renew the session, as it is again and again.
 *
 * Return: boot time, ns.
 */
u64 pvfs_session_end(const struct pvfs_volume *vol)
{
	u32 ms = READ_ONCE(vol->lease_ms);

	return READ_ONCE(vol->renewed) + (u64)(ms - ms / 8) * NSEC_PER_MSEC;
}

bool pvfs_session_lasts(const struct pvfs_volume *vol)
{
	return pvfs_boot_ns() < pvfs_session_end(vol);
}

/* ---------------------------------------------------------------- taking */

/* Is a change of our own under way? See pvfs_own_begin() and pvfs_flush_begin(). */
static bool lease_changing(const struct pvfs_inode *pi)
{
	return READ_ONCE(pi->own.pending) || READ_ONCE(pi->own.flushes);
}

/**
 * pvfs_lease_take - an answer has come
 * @inode: whose attributes it had; pvfs_inode.lock is held, and they have been taken in
 * @attr: the attributes
 * @ask: of the question; NULL: none that could bring a lease
 */
void pvfs_lease_take(struct inode *inode, const struct pvfs_attr *attr, const struct pvfs_ask *ask)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);
	struct pvfs_leases *l = &vol->leases;
	u64 end, now;

	if (!ask || !(attr->flags & PVFS_AF_LEASE) || !vol->opts.lease || lease_changing(pi) || pi->wl.told)
		return;
	end = lease_ask_end(vol, ask);
	now = pvfs_boot_ns();
	if (now >= end || !pvfs_ask_stands(vol, pi->fid.ino, ask))
		return;
	if (!pvfs_lease_token(inode)) {
		WRITE_ONCE(pi->lease.token, 0);
		WRITE_ONCE(pi->lease.attrs, false);
		WRITE_ONCE(pi->lease.gen, ask->gen);
		WRITE_ONCE(pi->lease.end, end);
		/* Pairs with pvfs_lease_token(). */
		smp_store_release(&pi->lease.token, atomic_long_inc_return(&l->tokens));
		pvfs_count(vol, PVFS_CNT_LEASES, 1);
		pvfs_leasestat_take(inode, now);
		trace_pvfs_lease(inode->i_sb->s_dev, pi->fid.ino, inode->i_mode,
				 div_u64(end - now, NSEC_PER_MSEC));
	} else if (end > pi->lease.end) {
		WRITE_ONCE(pi->lease.end, end);
		pvfs_leasestat_take(inode, now);
	}
	if (pi->own.last <= ask->owns)
		WRITE_ONCE(pi->lease.attrs, true);
}

/**
 * pvfs_lease_token - the lease on an inode that is good now
 * @inode: the inode
 *
 * Not while a change of our own is under way: others may have seen it before we hear that it was
 * made, and this node must not see less than they did.
 *
 * Return: its token; 0: there is none.
 */
unsigned long pvfs_lease_token(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);
	unsigned long token = smp_load_acquire(&pi->lease.token);	/* pairs with take */

	if (!token || lease_changing(pi) || atomic_read(&PVFS_VOL(inode)->leases.unsure) ||
	    !pvfs_lease_lasts(inode))
		return 0;
	return token;
}

/**
 * pvfs_lease_lasts - will the mgr recall what it has told of an inode before that changes?
 * @inode: the inode
 *
 * Also while a change of our own is under way, or its attributes are to be asked anew after one.
 */
bool pvfs_lease_lasts(const struct inode *inode)
{
	const struct pvfs_inode *pi = PVFS_I(inode);

	return READ_ONCE(pi->lease.token) && pvfs_boot_ns() < READ_ONCE(pi->lease.end) &&
	       READ_ONCE(pi->lease.gen) == atomic64_read(&PVFS_VOL(inode)->leases.gen);
}

/**
 * pvfs_lease_since - the lease under which an answer about a directory's names may be believed
 * @dir: the directory; its lease has been taken with that answer, if it came with one
 * @ask: from before the question
 *
 * Return: its token; 0: it may not be, as there is none, or it is younger than the answer.
 */
unsigned long pvfs_lease_since(struct inode *dir, const struct pvfs_ask *ask)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_inode *pi = PVFS_I(dir);
	unsigned long token;

	spin_lock(&pi->lock);
	token = pvfs_lease_token(dir);
	if (pi->lease.gen != ask->gen || pvfs_boot_ns() >= lease_ask_end(vol, ask) ||
	    lease_recalled_since(&vol->leases, pi->fid.ino, ask->recalls))
		token = 0;
	spin_unlock(&pi->lock);
	return token;
}

/**
 * pvfs_inode_leased - is what we know of an inode true?
 * @inode: the inode
 *
 * All but the access time. Of a stuffed file: also its bytes, of the version that we know.
 */
bool pvfs_inode_leased(const struct inode *inode)
{
	return pvfs_lease_token(inode) && READ_ONCE(PVFS_I(inode)->lease.attrs);
}

/**
 * pvfs_attrs_leased - may the attributes that we have be used without asking?
 * @inode: the inode
 *
 * Not while the manager is to hear that it was read: the question tells it.
 */
bool pvfs_attrs_leased(const struct inode *inode)
{
	return pvfs_inode_leased(inode) && !READ_ONCE(PVFS_I(inode)->attr.atime_due.tv_sec);
}

/**
 * pvfs_lease_may_ask - is a question worth its while that is asked for the lease it may bring?
 * @inode: what it would be on
 *
 * Not again and again: somebody else may be changing it all the time.
 */
bool pvfs_lease_may_ask(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 now = pvfs_boot_ns();

	if (now - READ_ONCE(pi->lease.asked) < LEASE_ASK_NS)
		return false;
	WRITE_ONCE(pi->lease.asked, now);
	return true;
}

/**
 * pvfs_lease_wanted - pvfs_inode_leased(), for who would read a file's bytes under it
 * @inode: a regular file that is open
 *
 * One that has run out, or was not given, is asked for, but not again and again: somebody else has
 * the file open for writing, then. Nor while a server is away: the bytes may be had without the mgr.
 */
bool pvfs_lease_wanted(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	if (pvfs_inode_leased(inode))
		return true;
	if (!PVFS_VOL(inode)->opts.lease || lease_changing(pi) ||
	    (READ_ONCE(pi->opens.n[PVFS_O_WRITE]) | READ_ONCE(pi->opens.n[PVFS_O_READ | PVFS_O_WRITE])) ||
	    !pvfs_volume_up(PVFS_VOL(inode)) || !pvfs_lease_may_ask(inode))
		return false;
	return !pvfs_meta_getattr(inode) && pvfs_inode_leased(inode);
}

/* ---------------------------------------------------------------- giving up */

/* pvfs_inode.lock is held. */
static void lease_drop(struct pvfs_inode *pi)
{
	WRITE_ONCE(pi->lease.token, 0);
	WRITE_ONCE(pi->lease.attrs, false);
	pvfs_leasestat_drop(pi);
}

/**
 * pvfs_lease_gone - the mgr takes it that nothing of an inode is believed any more
 * @inode: the inode
 */
void pvfs_lease_gone(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	lease_drop(pi);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_own_change - we have changed something: attributes that were told before are old
 * @inode: whose; pvfs_inode.lock is held
 */
void pvfs_own_change(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	WRITE_ONCE(pi->lease.attrs, false);
	pi->own.last = atomic64_inc_return(&PVFS_VOL(inode)->leases.owns);
}

/**
 * pvfs_own_begin - a change of an inode, or of a directory's names, is about to be asked for
 * @inode: the inode
 *
 * What is known of it is not believed until pvfs_own_end(), and no lease on it taken.
 */
void pvfs_own_begin(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.pending, pi->own.pending + 1);
	pi->own.begun++;
	spin_unlock(&pi->lock);
}

/**
 * pvfs_own_end - the change was made or refused, and what is known here is as it is after
 * @inode: the inode
 *
 * Its attributes came with the answer, or pvfs_attr_distrust() was called; dentries that the VFS is
 * yet to change are distrusted.
 */
void pvfs_own_end(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.pending, pi->own.pending - 1);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_flush_begin - what is in the page cache of a stuffed file is about to be told to the mgr
 * @inode: the file
 *
 * As pvfs_own_begin(), but under a WRITE lease the page cache stays what the file is, and is written to.
 */
void pvfs_flush_begin(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.flushes, pi->own.flushes + 1);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_flush_end - as pvfs_own_end()
 * @inode: the file
 */
void pvfs_flush_end(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.flushes, pi->own.flushes - 1);
	spin_unlock(&pi->lock);
}

/**
 * pvfs_unlease - give up what lease there is on a file, which is about to be opened for writing
 * @inode: the file
 *
 * None is taken until pvfs_unlease_end(). So the OPEN can say UNLEASED, and nobody has to recall.
 */
void pvfs_unlease(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.pending, pi->own.pending + 1);
	lease_drop(pi);
	spin_unlock(&pi->lock);
	pvfs_turn_unshow(inode);
}

void pvfs_unlease_end(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	spin_lock(&pi->lock);
	WRITE_ONCE(pi->own.pending, pi->own.pending - 1);
	pvfs_own_change(inode);
	spin_unlock(&pi->lock);
}

static int lease_test_ino(struct inode *inode, void *data)
{
	return PVFS_I(inode)->fid.ino == *(u64 *)data;
}

/**
 * pvfs_find_ino - the inode of a number, if it is here
 * @sb: its file system
 * @ino: the number
 *
 * Context: under RCU; without a reference.
 *
 * Return: it, or NULL.
 */
struct inode *pvfs_find_ino(struct super_block *sb, u64 ino)
{
	return find_inode_rcu(sb, ino, lease_test_ino, &ino);
}

/**
 * pvfs_leases_recalled - RECALL has come
 * @vol: the volume
 * @req: names the inodes
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: 0; -EAGAIN: not of a draft, or a file that is mapped or under a WRITE lease, yet; or -EBADMSG.
 */
int pvfs_leases_recalled(struct pvfs_volume *vol, const struct pvfs_recall_req *req)
{
	struct super_block *sb = READ_ONCE(vol->sb);
	int err = 0, answer;
	struct inode *inode;
	unsigned int i;
	u64 ino;

	if (req->inos.len % 8)
		return -EBADMSG;
	for (i = 0; i < req->inos.len / 8; i++) {
		ino = get_unaligned_le64(req->inos.p + 8 * i);
		/* First, so that who is about to take one finds this, or is found by what follows. */
		pvfs_recall_note(vol, ino);
		pvfs_count(vol, PVFS_CNT_RECALLED, 1);
		if (!sb)
			continue;
		answer = 0;
		rcu_read_lock();
		inode = pvfs_find_ino(sb, ino);
		if (inode) {
			spin_lock(&PVFS_I(inode)->lock);
			lease_drop(PVFS_I(inode));
			spin_unlock(&PVFS_I(inode)->lock);
			pvfs_deferred_recalled(inode);
			if (pvfs_draft_recalled(inode) || pvfs_wlease_recalled(inode) ||
			    pvfs_turn_recalled(inode))
				answer = -EAGAIN;
		}
		rcu_read_unlock();
		trace_pvfs_recall(sb->s_dev, ino, answer);
		err = err ?: answer;
	}
	return err;
}

/**
 * pvfs_leases_settle - SETTLE has come: another client wants to know what a file is like
 * @vol: the volume
 * @req: names the inode
 *
 * Leases stay as they are.
 *
 * Context: where replies are received; does not sleep.
 *
 * Return: 0: all that was written to it is with the iods; -EAGAIN: not yet.
 */
int pvfs_leases_settle(struct pvfs_volume *vol, const struct pvfs_settle_req *req)
{
	struct super_block *sb = READ_ONCE(vol->sb);
	struct inode *inode;
	u64 ino = req->ino;
	int err = 0;

	pvfs_count(vol, PVFS_CNT_SETTLES, 1);
	if (!sb)
		return 0;
	rcu_read_lock();
	inode = pvfs_find_ino(sb, ino);
	if (inode && pvfs_wlease_settle(inode, req->round))
		err = -EAGAIN;
	rcu_read_unlock();
	trace_pvfs_settle(sb->s_dev, ino, err);
	return err;
}
