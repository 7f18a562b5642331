// SPDX-License-Identifier: GPL-2.0
/*
 * close.c - giving opens back to the mgr.
 *
 * Nobody waits for a CLOSE. One that tells of writes, or ends the last write open of a striped file,
 * goes at once: until it is there, others have to ask the iods how long the file is. The others wait a
 * moment for more of them: small files are opened and closed by the thousand, and one message tells of
 * many.
 *
 * The answer to one that goes alone brings the file's attributes, with a lease, when nobody writes the
 * file any more: who has made a file is likely to look at it. If it says that nobody has come between that
 * and the WRITE lease, what was written stays in the page cache, too.
 */
#include <linux/slab.h>
#include "vfs.h"

#define CLOSE_DELAY_MS 10		/* that one may wait for others */

/* Opens that one CLOSE ends. */
struct batch {
	struct pvfs_volume *vol;
	struct pvfs_ask ask;		/* from before it was sent */
	u32 n;
	struct pvfs_ending end[PVFS_CLOSE_MAX];
};

static void close_ended(struct pvfs_volume *vol, const struct pvfs_ending *e, int err)
{
	struct pvfs_use *use = e->use;

	if (!use)
		return;
	if (!err)
		pvfs_writes_ack(use, &e->c.report);
	spin_lock(&vol->open_lock);
	if (use->pi && e->c.flags)
		pvfs_open_uncount(use->pi, e->c.flags);
	spin_unlock(&vol->open_lock);
	if (e->c.report.end)		/* see pvfs_close_at_mgr() */
		pvfs_use_iput(use);
	pvfs_use_put(use);
}

static void close_batch_ended(struct batch *b, int err)
{
	u32 i;

	for (i = 0; i < b->n; i++)
		close_ended(b->vol, &b->end[i], err);
	kfree(b);
}

/*
 * The answer to one close may bring the file's attributes, with a lease: what it is from then on is
 * known, as by a GETATTR that was sent when the CLOSE was. What came between, a RECALL or an open for
 * writing, pvfs_lease_take() finds by the clocks. Where replies are received: does not sleep. The inode
 * may be on its way out, or gone: under open_lock it is there if @use says so.
 */
static void close_told(struct pvfs_request *req, const struct batch *b)
{
	struct pvfs_use *use = b->end[0].use;
	struct pvfs_volume *vol = b->vol;
	struct pvfs_close_rep rep;
	struct inode *inode;

	if (b->n > 1 || !use || pvfs_close_rep_decode(&rep, req->rep, req->rep_len) ||
	    !rep.attr.fid.ino)
		return;
	spin_lock(&vol->open_lock);
	inode = use->pi ? &use->pi->vfs_inode : NULL;
	if (inode && (!pvfs_inode_is(inode, &rep.attr.fid) || !pvfs_attr_sane(vol, &rep.attr)))
		pvfs_bogus(vol, "attributes with a CLOSE", PVFS_I(inode)->fid.ino);
	else if (inode)
		pvfs_inode_update(inode, &rep.attr, &b->ask);
	spin_unlock(&vol->open_lock);
}

static void close_done(struct pvfs_request *req)
{
	if (!req->err)
		close_told(req, req->priv);
	close_batch_ended(req->priv, req->err);
}

/**
 * pvfs_close_current - a CLOSE is about to be sent, maybe to another mgr, or in another session, than it was made for
 * @req: it
 *
 * That one was told what is open here. Of a file whose inode was gone by then it was told nothing; if the file was opened
 * again since, our CLOSE would end that open. So what the mgr does not know is not closed.
 */
void pvfs_close_current(struct pvfs_request *req)
{
	struct batch *b = req->priv;
	struct pvfs_volume *vol = b->vol;
	u32 now = READ_ONCE(vol->recoveries), i;
	struct pvfs_wire w;

	if (!now)
		return;
	spin_lock(&vol->open_lock);
	for (i = 0; i < b->n; i++) {
		struct pvfs_ending *e = &b->end[i];

		if (!e->c.flags || (e->use && e->use->pi) || (e->use ? e->use->told : e->told) == now)
			continue;
		e->c.flags = 0;		/* as of who only tells that it was read */
		pvfs_wire_init(&w, req->body + sizeof(u32) + i * PVFS_CLOSING_LEN, PVFS_CLOSING_LEN);
		pvfs_put_closing(&w, &e->c);
	}
	spin_unlock(&vol->open_lock);
}

/* Takes @b. */
static void close_batch_send(struct batch *b)
{
	struct pvfs_volume *vol = b->vol;
	u32 i, room = b->n * PVFS_CLOSING_LEN;
	/* Not one with @b: more than two pages in a row are not to be had without fail. */
	u8 *raw = kmalloc(room, GFP_NOFS | __GFP_NOFAIL);
	struct pvfs_close_req m = { .closings.p = raw };
	struct pvfs_request *req;
	struct pvfs_wire w;

	pvfs_wire_init(&w, raw, room);
	for (i = 0; i < b->n; i++)
		pvfs_put_closing(&w, &b->end[i].c);
	m.closings.len = w.p - raw;
	req = pvfs_req_alloc(vol->mgr, PVFS_OP_CLOSE, sizeof(u32) + m.closings.len);
	if (IS_ERR(req)) {		/* every slot is taken, and none comes free */
		pr_warn_ratelimited("%s: cannot close inode %llu at the mgr\n", vol->opts.volume,
				    b->end[0].c.fid.ino);
		close_batch_ended(b, PTR_ERR(req));
		kfree(raw);
		return;
	}
	req->flags = PVFS_RF_ASYNC;
	req->done = close_done;
	req->priv = b;
	req->body_len = pvfs_close_req_encode(&m, req->body, req->body_room);
	kfree(raw);
	pvfs_lease_ask(vol, &b->ask);
	b->ask.kept = b->n == 1 ? b->end[0].kept : 0;
	pvfs_req_submit(req);
	pvfs_req_put(req);
}

static struct batch *close_batch_alloc(struct pvfs_volume *vol)
{
	struct batch *b = kmalloc(sizeof(*b), GFP_NOFS | __GFP_NOFAIL);

	b->vol = vol;
	return b;
}

/* Sends the CLOSE of what waits for more of its kind. */
static void closes_send(struct pvfs_volume *vol)
{
	struct pvfs_closes *w = &vol->closes;
	struct batch *b;

	if (!READ_ONCE(w->n))
		return;
	b = close_batch_alloc(vol);
	spin_lock(&w->lock);
	b->n = w->n;
	memcpy(b->end, w->end, b->n * sizeof(b->end[0]));
	w->n = 0;
	spin_unlock(&w->lock);
	if (!b->n) {
		kfree(b);
		return;
	}
	close_batch_send(b);
	/* They counted as one from the first on. */
	if (atomic_dec_and_test(&vol->async))
		wake_up_all(&vol->async_wait);
}

static void closes_work(struct work_struct *work)
{
	closes_send(container_of(work, struct pvfs_volume, closes.work.work));
}

/* Return: false: there is no room. */
static bool closes_add(struct pvfs_volume *vol, const struct pvfs_ending *e)
{
	struct pvfs_closes *w = &vol->closes;
	u32 n;

	spin_lock(&w->lock);
	n = w->n;
	if (n < ARRAY_SIZE(w->end)) {
		w->end[n] = *e;
		WRITE_ONCE(w->n, n + 1);
		if (!n)
			atomic_inc(&vol->async);
	}
	spin_unlock(&w->lock);
	if (!n)
		schedule_delayed_work(&w->work, msecs_to_jiffies(CLOSE_DELAY_MS));
	return n < ARRAY_SIZE(w->end);
}

/* Is it the last write open of a striped file here, so that its answer may bring a lease? */
static bool close_leases(struct inode *inode, u32 flags)
{
	const struct pvfs_inode *pi = PVFS_I(inode);

	return (flags & PVFS_O_WRITE) && PVFS_VOL(inode)->opts.lease && !pvfs_stuffed(inode) &&
	       inode->i_nlink && READ_ONCE(pi->opens.n[PVFS_O_WRITE]) +
	       READ_ONCE(pi->opens.n[PVFS_O_READ | PVFS_O_WRITE]) == 1;
}

/**
 * pvfs_close_queue - what goes to the mgr with the next CLOSE
 * @vol: the volume
 * @e: an open that ends; or, with no flags, only that the file was read. Its use's reference is taken
 *
 * Context: sends when there is no more room, which may sleep.
 */
void pvfs_close_queue(struct pvfs_volume *vol, const struct pvfs_ending *e)
{
	while (!closes_add(vol, e))
		closes_send(vol);
}

/**
 * pvfs_close_at_mgr - give an open back, without waiting
 * @vol: the volume
 * @fid: which inode
 * @flags: as opened
 * @inode: if the open was counted by pvfs_file_opened(); it counts until the mgr has answered. Else
 *	NULL
 *
 * A CLOSE that tells of writes holds the inode until it is answered: what else is asked about it
 * meanwhile must carry the same report, because the mgr may deal with it before the CLOSE.
 * pvfs_closes_wait() is for unmounting.
 */
void pvfs_close_at_mgr(struct pvfs_volume *vol, const struct pvfs_fid *fid, u32 flags,
		       struct inode *inode)
{
	struct pvfs_ending e = {
		.told = READ_ONCE(vol->recoveries),
		.c = { .fid = *fid, .flags = pvfs_open_class(flags) },
	};
	struct batch *b;

	if (inode && (flags & PVFS_O_WRITE) && !pvfs_wlease_closing(inode, &e.kept)) {
		pvfs_late_write(inode, flags, false);
		return;
	}
	if (inode) {
		atomic_dec(&PVFS_I(inode)->opens.live);
		e.use = PVFS_I(inode)->use;
	}
	if (e.use) {
		if (flags & PVFS_O_WRITE)
			pvfs_writes_report(inode, &e.c.report);
		else
			pvfs_atime_report(inode, &e.c.report);
		refcount_inc(&e.use->ref);
	}
	if (!e.c.report.end && !(e.use && close_leases(inode, flags))) {
		pvfs_close_queue(vol, &e);
		return;
	}
	if (e.c.report.end) {
		ihold(inode);
		atomic_inc(&vol->closing);
	}
	b = close_batch_alloc(vol);
	b->n = 1;
	b->end[0] = e;
	close_batch_send(b);
}

/**
 * pvfs_closes_hurry - a name of a file is about to be removed
 * @inode: the file
 *
 * If it is the last one, and the mgr takes the file for open only because nobody has told it, tell
 * it: it need not make an orphan of it then.
 */
void pvfs_closes_hurry(struct inode *inode)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_inode *pi = PVFS_I(inode);

	if (inode->i_nlink != 1 || atomic_read(&pi->opens.live))
		return;
	if (pvfs_deferred_hurry(inode)) {
		closes_send(vol);
		return;
	}
	if (!READ_ONCE(vol->closes.n))
		return;
	if (READ_ONCE(pi->opens.n[1]) | READ_ONCE(pi->opens.n[2]) | READ_ONCE(pi->opens.n[3]))
		closes_send(vol);
}

void pvfs_closes_init(struct pvfs_volume *vol)
{
	spin_lock_init(&vol->closes.lock);
	INIT_DELAYED_WORK(&vol->closes.work, closes_work);
}

/* Unmounting: what waits is sent, by somebody else if it takes long. It counts as ASYNC. */
void pvfs_closes_flush(struct pvfs_volume *vol)
{
	mod_delayed_work(system_wq, &vol->closes.work, 0);
}

/* Nothing is sent any more. */
void pvfs_closes_end(struct pvfs_volume *vol)
{
	cancel_delayed_work_sync(&vol->closes.work);
	closes_send(vol);
}
