// SPDX-License-Identifier: GPL-2.0
/*
 * op_session.c - SESSION_OPEN, SESSION_RENEW, SESSION_CLOSE, RECLAIM.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

int mgr_op_session_open(struct mgr_op *op, const struct pvfs_session_open_req *req,
			struct pvfs_session_open_rep *rep)
{
	struct mgr *m = op->m;
	struct mgr_session *s;
	struct pvfs_wire w;
	size_t room = m->niods * (sizeof(struct pvfs_iodent) + PVFS_HOST_MAX);
	int err;

	op->payload = malloc(room);
	if (!op->payload)
		return -ENOMEM;
	pvfs_wire_init(&w, op->payload, room);
	err = mgr_iodents_put(m, &w);
	if (err)
		return err;
	op->payload_len = w.p - op->payload;

	if (req->flags & ~PVFS_SO_LEASES)
		return -EINVAL;
	err = mgr_session_open(op, req, &s);
	if (err)
		return err;
	rep->session = s->id;
	pvfs_ticket_make(&m->server_key, m->uuid, s->id, rep->ticket);
	rep->epoch = m->epoch;
	rep->lease_ms = m->conf->lease_ms;
	rep->nslots = MGR_NSLOTS;
	rep->root = m->root;
	memcpy(rep->volume_uuid, m->uuid, sizeof(rep->volume_uuid));
	rep->layout = m->root_layout;
	rep->niods = m->niods;
	op->bind_session = s->id;
	mgr_session_put(s);
	return 0;
}

int mgr_op_session_renew(struct mgr_op *op, const struct pvfs_session_renew_req *req,
			 struct pvfs_session_renew_rep *rep)
{
	/* mgr_session_lookup() noted the sign of life. */
	rep->lease_ms = op->m->conf->lease_ms;
	return 0;
}

int mgr_op_session_close(struct mgr_op *op, const struct pvfs_session_close_req *req,
			 struct pvfs_session_close_rep *rep)
{
	pvfs_info("session %llu: %s is leaving", (unsigned long long)op->s->id, op->s->host);
	return mgr_session_end(op, op->s, false);
}

/* ---- reclaim ---- */

#define O_RECLAIM (PVFS_O_READ | PVFS_O_WRITE | PVFS_O_EXEC | PVFS_O_DRAFT | \
		   PVFS_O_WLEASE | PVFS_O_OUT)

struct reclaim {
	const struct pvfs_reclaim_req *req;
	bool proved;			/* by the capability that it has */
	struct mgr_inode in;
};

static int put_orphan(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_mark_disk d;
	u8 key[MGR_PAIR_KEY];
	u32 n = mgr_mark_encode(in->gen, &d);

	mgr_pair_key(key, in->ino, mgr_op_session(op));
	return mdb_put(op->m->db, op->txn, MDB_ORPHAN, key, sizeof(key), &d, n);
}

static int reclaim_fn(struct mgr_op *op, void *arg)
{
	struct reclaim *r = arg;
	struct mgr_inode *in = &r->in;
	bool changed = false;
	u8 key[MGR_INO_KEY];
	int err;

	err = ns_inode_get(op, r->req->fid.ino, MDB_RMW, in);
	if (err)
		return err;
	if (in->gen != r->req->fid.gen)
		return -ESTALE;
	if (!S_ISREG(in->mode))
		return -EINVAL;
	if (!r->proved) {
		err = mgr_open_may(op, &r->req->cred, in, r->req->flags);
		if (err)
			return err;
	}
	if (in->flags & MGR_IF_REAP) {
		/*
		 * Unlinked while we did not know that it was open. After the grace its data may be
		 * gone.
		 */
		if (!mgr_in_grace(op->m))
			return -ESTALE;
		mgr_ino_key(key, in->ino);
		err = mdb_del(op->m->db, op->txn, MDB_REAP, key, sizeof(key));
		if (err && err != -ENOENT)
			return err;
		in->flags = (in->flags & ~MGR_IF_REAP) | MGR_IF_ORPHAN;
		changed = true;
	}
	if (!in->nlink) {
		mgr_opens_orphan(&op->m->opens, in->ino);
		err = put_orphan(op, in);
		if (err)
			return err;
	}
	if ((r->req->flags & PVFS_O_WRITE) && !(r->req->flags & PVFS_O_OUT))
		mgr_lasting_note(op, in->ino);
	/* Of a stuffed file nothing is written that we don't hear of. */
	if ((r->req->flags & PVFS_O_WRITE) && !(in->flags & MGR_IF_STUFFED)) {
		/*
		 * Whose session ended, and whose file was settled, comes back: others may have been told
		 * since then that nobody writes it. That is recalled, as for an OPEN; in the grace, when
		 * nobody knows who they are, their leases are waited for. A session that went on all the time
		 * is one whose CLOSE settled the file, and was not answered: nobody writes.
		 */
		if (!(in->flags & MGR_IF_UNCERTAIN) && (!op->recalls || op->only_kept) &&
		    (!r->proved || r->req->cap.session != mgr_op_session(op)))
			return -EAGAIN;
		/* It may have written what no report tells us of any more. */
		mgr_opens_reset(&op->m->opens, in, false);
		changed |= !(in->flags & MGR_IF_UNCERTAIN);
		in->flags |= MGR_IF_UNCERTAIN;
	}
	return changed ? ns_inode_put(op, in) : 0;
}

/* As long as clients come back, the grace goes on. */
static void extend_grace(struct mgr *m)
{
	u64 more = mgr_mono_ms() + m->conf->lease_ms / 3;

	if (mgr_in_grace(m) && atomic_load(&m->grace_until) < more)
		atomic_store(&m->grace_until, more);
}

int mgr_op_reclaim(struct mgr_op *op, const struct pvfs_reclaim_req *req,
		   struct pvfs_reclaim_rep *rep)
{
	struct reclaim r = { .req = req, .proved = req->cap.rights };
	u32 rights = mgr_cap_rights(req->flags);
	bool same, wlease = false;
	int err;

	if (!rights || (req->flags & ~O_RECLAIM))
		return -EINVAL;
	/* Only who may write to it can have made it. */
	if ((req->flags & (PVFS_O_DRAFT | PVFS_O_WLEASE)) && !(req->flags & PVFS_O_WRITE))
		return -EINVAL;
	/* Who is out keeps nothing back, and is told nothing of that: others may have it as they had it. */
	if ((req->flags & PVFS_O_OUT) && (req->flags & (PVFS_O_DRAFT | PVFS_O_WLEASE)))
		return -EINVAL;
	op->outside = req->flags & PVFS_O_OUT;
	/* Whose session ended has lost what it had, whoever has come and gone since. */
	same = r.proved && req->cap.session == mgr_op_session(op);
	/*
	 * Who had it open has been given a capability, by this manager or one before: that proves it,
	 * whatever has become of the mode since. The key it was made with outlives us.
	 */
	if (r.proved && ((rights & ~req->cap.rights) ||
			 !pvfs_cap_check(&op->m->server_key, op->m->uuid, req->cap.session,
					 &req->fid, &req->cap))) {
		pvfs_log_limited(PVFS_LOG_WARNING,
				 "session %llu of %s: refused: it never had inode %llu open like that",
				 (unsigned long long)op->s->id, op->s->host,
				 (unsigned long long)req->fid.ino);
		return -EACCES;
	}
	err = mgr_opens_add(&op->m->opens, op->s, req->fid.ino, req->flags, req->count, true);
	if (err)
		return err;
	err = mgr_run(op, reclaim_fn, &r, MGR_RUN_SYNC);
	if (err) {
		mgr_opens_add(&op->m->opens, op->s, req->fid.ino, req->flags, 0, true);
		mgr_write_trim(op, req->fid.ino, mgr_op_session(op));
		mgr_open_trim(op->m, req->fid.ino, mgr_op_session(op));
		return err;
	}
	if (same && !op->outside)
		mgr_opens_reclaimed(&op->m->opens, mgr_op_session(op), req->fid.ino);
	extend_grace(op->m);
	/* A longer one has been flushed: only the answer to that is missing. */
	if ((req->flags & PVFS_O_DRAFT) && (r.in.flags & MGR_IF_STUFFED) && !r.in.size &&
	    mgr_lease_begin(op, r.in.ino))
		mgr_leases_draft(&op->m->leases, r.in.ino, op->s->id, true);
	else if ((req->flags & PVFS_O_WLEASE) && same && !(r.in.flags & MGR_IF_TRIM))
		wlease = mgr_write_reclaim(op, r.in.ino);
	pvfs_cap_make(&op->m->server_key, op->m->uuid, op->s->id, &req->fid, rights, &rep->cap);
	err = mgr_size_attr(op, &r.in, NULL, &rep->attr);
	if (!err && wlease)
		rep->attr.flags |= PVFS_AF_WLEASE;
	return err;
}
