// SPDX-License-Identifier: GPL-2.0
/*
 * op_open.c - CREATE, OPEN, OPEN_SHARED, CLOSE, REPORT.
 *
 * An open is counted in memory (opens.c) before the inode is read, and taken back when anything
 * fails. Opening for writing also marks the inode UNCERTAIN, durably, before the reply: from then
 * on the database does not claim to know its size. The close of the last writer settles it
 * (size.c).
 *
 * OPEN_SHARED is a CREATE that opens for other sessions, too: each of them has the file open from
 * then on as if it had asked, and gets a capability of its own.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

#define O_ACCESS (PVFS_O_READ | PVFS_O_WRITE | PVFS_O_EXEC)
#define O_ALL \
	(O_ACCESS | PVFS_O_CREAT | PVFS_O_EXCL | PVFS_O_TRUNC | PVFS_O_DIRECTORY | \
	 PVFS_O_TMPFILE | PVFS_O_STRIPED | PVFS_O_EAGER | PVFS_O_DRAFT | \
	 PVFS_O_WLEASE)

/* Other sessions that a file is opened for; NULL for those that are not there. */
struct sharers {
	u32 n;
	struct mgr_session *s[PVFS_SHARERS_MAX];
};

struct opening {
	const struct pvfs_cred *cred;	/* NULL: no permission check (it was open before) */
	const struct sharers *sharers;	/* or NULL */
	struct pvfs_fid fid;
	u32 flags;
	u64 unleased;			/* inode that the session gave its lease up on */
	bool had;			/* the session had it open already */
	bool wrote;			/* and for writing, and was in */
	struct mgr_inode in;
	struct pvfs_attr *attr;
	struct pvfs_cap *cap;
};

u32 mgr_cap_rights(u32 flags)
{
	return (flags & (PVFS_O_READ | PVFS_O_EXEC) ? PVFS_CAP_READ : 0) |
	       (flags & PVFS_O_WRITE ? PVFS_CAP_WRITE : 0);
}

/* Who would keep what is written may have to read what is beside it: kernels, not the programs. */
static void make_cap_for(struct mgr *m, u64 session, const struct pvfs_fid *fid, u32 flags,
			 struct pvfs_cap *cap)
{
	u32 rights = mgr_cap_rights(flags);

	if ((rights & PVFS_CAP_WRITE) && (flags & PVFS_O_WLEASE))
		rights |= PVFS_CAP_READ;
	pvfs_cap_make(&m->server_key, m->uuid, session, fid, rights, cap);
}

static void make_cap(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags, struct pvfs_cap *cap)
{
	make_cap_for(op->m, mgr_op_session(op), fid, flags, cap);
}

int mgr_open_may(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *in,
		 u32 flags)
{
	u32 mask = 0;

	if (flags & PVFS_O_READ)
		mask |= MGR_MAY_READ;
	if (flags & (PVFS_O_WRITE | PVFS_O_TRUNC))
		mask |= MGR_MAY_WRITE;
	if (flags & PVFS_O_EXEC)
		mask |= MGR_MAY_EXEC;
	return ns_may(op, cred, in, mask);
}

static int open_fn(struct mgr_op *op, void *arg)
{
	struct opening *o = arg;
	struct mgr_inode *in = &o->in;
	bool write = o->flags & PVFS_O_WRITE;
	int err;

	err = ns_fid_get(op, &o->fid, write ? MDB_RMW : 0, in);
	if (err)
		return err;
	if (S_ISLNK(in->mode))
		return -ELOOP;
	if (S_ISDIR(in->mode) && (write || (o->flags & PVFS_O_TRUNC)))
		return -EISDIR;
	if (!S_ISDIR(in->mode) && (o->flags & PVFS_O_DIRECTORY))
		return -ENOTDIR;
	if (!S_ISDIR(in->mode) && !S_ISREG(in->mode))
		return -ENXIO;
	if (o->cred) {
		err = mgr_open_may(op, o->cred, in, o->flags);
		if (err)
			return err;
	}
	/* No name is left: only who has it open may open it again. */
	if (!in->nlink && !o->had)
		return -ESTALE;
	if (write) {
		mgr_lasting_note(op, in->ino);
		/* In the grace nobody has told of such yet; beside who may write already there were none. */
		op->unsure |= (in->flags & MGR_IF_UNCERTAIN) && op->recalls && !op->only_kept && !o->wrote &&
			      mgr_leases_in_grace(op->m);
	}
	if (!write || (in->flags & (MGR_IF_UNCERTAIN | MGR_IF_STUFFED)))
		return 0;
	in->flags |= MGR_IF_UNCERTAIN;
	/*
	 * Under the inode's page lock: another opener waits for it, so what it may report comes
	 * after this. If we fail, the mark is not there and the next opener comes here again.
	 */
	mgr_opens_reset(&op->m->opens, in, true);
	op->need_sync = true;
	return ns_inode_put(op, in);
}

static int no_change(struct mgr_op *op, struct mgr_inode *in, void *arg)
{
	struct opening *o = arg;

	if (o->cred && !ns_all_powerful(o->cred))
		ns_kill_priv(in, o->cred);
	return mgr_xattr_kill_caps(op, in);
}

static void open_finish(struct mgr_op *op, const struct mgr_inode *in, void *arg)
{
	struct opening *o = arg;

	ns_attr(in, o->attr);
	o->attr->flags |= mgr_yield_due(op, in->ino) ? PVFS_AF_OUT : 0;
}

static void uncount(struct mgr_op *op, u64 session, u64 ino, u32 flags)
{
	bool released = mgr_opens_del(&op->m->opens, session, ino, flags);

	if (flags & PVFS_O_WRITE)
		mgr_write_trim(op, ino, session);
	mgr_open_trim(op->m, ino, session);
	if (released)
		mgr_orphan_release(op, ino, session);
}

/* Takes a counted open back; the last one of an orphan lets it go. */
static void uncount_open(struct mgr_op *op, u64 ino, u32 flags, const struct sharers *sh)
{
	u32 i;

	if (!(flags & O_ACCESS))
		return;
	for (i = 0; sh && i < sh->n; i++)
		if (sh->s[i])
			uncount(op, sh->s[i]->id, ino, flags);
	uncount(op, mgr_op_session(op), ino, flags);
}

/* What gives no right to any data is not kept account of. */
static int count_open(struct mgr_op *op, u64 ino, u32 flags, const struct sharers *sh)
{
	struct sharers counted;
	int err;
	u32 i;

	if (!(flags & O_ACCESS))
		return 0;
	err = mgr_opens_add(&op->m->opens, op->s, ino, flags, 1, false);
	if (err || !sh)
		return err;
	for (counted.n = i = 0; !err && i < sh->n; i++) {
		if (!sh->s[i])
			continue;
		err = mgr_opens_add(&op->m->opens, sh->s[i], ino, flags, 1, false);
		if (!err)
			counted.s[counted.n++] = sh->s[i];
		else if (err == -ESTALE)
			err = 0;	/* it has just ended */
	}
	if (err)
		uncount_open(op, ino, flags, &counted);
	return err;
}

static void open_undo(struct mgr_op *op, const struct opening *o)
{
	uncount_open(op, o->fid.ino, o->flags, o->sharers);
}

static int eager_fn(struct mgr_op *op, void *arg)
{
	return mgr_head_eager(op, arg);
}

/* Of what a WRITE lease covers nobody shall change anything that we are about to tell. */
static bool write_leasable(const struct mgr_inode *in)
{
	return S_ISREG(in->mode) &&
	       !(in->flags & (MGR_IF_STUFFED | MGR_IF_SPILL | MGR_IF_TRIM));
}

static int again_fn(struct mgr_op *op, void *arg)
{
	struct opening *o = arg;

	return ns_fid_get(op, &o->fid, 0, &o->in);
}

/*
 * A WRITE lease, if one is wanted and may be had. What is told under it is read after it is noted:
 * others may have written, or cut, since it was read to open it. One that is not told after all goes
 * with the last open for writing: another open of the session may have been told of it.
 */
static int write_lease(struct mgr_op *op, struct opening *o, bool *ret)
{
	int err;

	*ret = false;
	if ((o->flags & (PVFS_O_WLEASE | PVFS_O_WRITE)) != (PVFS_O_WLEASE | PVFS_O_WRITE) ||
	    o->sharers || !write_leasable(&o->in) || !mgr_write_begin(op, o->fid.ino))
		return 0;
	err = mgr_run(op, again_fn, o, MGR_RUN_READ);
	*ret = !err && write_leasable(&o->in);
	return err;
}

/*
 * Opens an existing file. With PVFS_O_TRUNC the reply is complete when the last transaction stores
 * it, so @o->cap is filled first.
 */
static int open_existing(struct mgr_op *op, struct opening *o)
{
	struct mgr_truncate t = {
		.fid = o->fid, .change = no_change, .finish = open_finish, .arg = o,
	};
	struct mgr_opens_view v;
	bool lease = false, wlease = false;
	int err;

	if (o->unleased == o->fid.ino)
		mgr_leases_drop_read(&op->m->leases, o->fid.ino, mgr_op_session(op));
	else if (!(o->flags & (PVFS_O_WRITE | PVFS_O_TRUNC)))
		lease = mgr_lease_begin(op, o->fid.ino);
	mgr_opens_view(&op->m->opens, o->fid.ino, mgr_op_session(op), &v);
	o->had = v.open;
	o->wrote = v.self && !v.out;
	err = count_open(op, o->fid.ino, o->flags, o->sharers);
	if (err)
		return err;
	err = mgr_run(op, open_fn, o, o->flags & PVFS_O_WRITE ? 0 : MGR_RUN_READ);
	if (err)
		goto undo;
	make_cap(op, &o->fid, S_ISREG(o->in.mode) ? o->flags : 0, o->cap);
	if (S_ISDIR(o->in.mode)) {
		/* Nothing depends on directories being open. */
		open_undo(op, o);
		ns_attr(&o->in, o->attr);
		return 0;
	}
	if (o->flags & PVFS_O_TRUNC) {
		err = mgr_truncate(op, &t);
		o->in = t.in;
	} else if ((o->flags & PVFS_O_WRITE) && (o->in.flags & MGR_IF_TRIM)) {
		/* New data must not be cut by an old truncation that goes on behind it. */
		err = mgr_trim_finish(op, o->fid.ino);
		err = err == -ERESTART ? err : err ? -EAGAIN : mgr_run(op, open_fn, o, 0);
	}
	err = err ?: write_lease(op, o, &wlease);
	err = err ?: mgr_size_attr(op, &o->in, NULL, o->attr);
	if (!err) {
		o->attr->flags |= wlease ? PVFS_AF_WLEASE : 0;
		/* A YIELD that is sent from here on it gets after it has asked. */
		o->attr->flags |= mgr_yield_due(op, o->fid.ino) ? PVFS_AF_OUT : 0;
		mgr_lease_attr(op, lease, &o->in, o->attr);
		if ((o->flags & PVFS_O_EAGER) && (o->flags & (PVFS_O_READ | PVFS_O_EXEC)) &&
		    (o->attr->flags & PVFS_AF_LEASE))
			err = mgr_run(op, eager_fn, &o->in, MGR_RUN_READ);
	}
	if (!err)
		return 0;
undo:
	open_undo(op, o);
	return err;
}

static int open_again(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags,
		      const struct sharers *sh)
{
	struct opening o = { .fid = *fid, .flags = flags & O_ACCESS, .had = true, .sharers = sh };
	int err;

	err = count_open(op, fid->ino, o.flags, sh);
	if (err)
		return err;
	err = mgr_run(op, open_fn, &o, flags & PVFS_O_WRITE ? 0 : MGR_RUN_READ);
	if (err)
		open_undo(op, &o);
	else if (!o.in.nlink)
		mgr_opens_orphan(&op->m->opens, fid->ino);	/* its close has to look */
	return err;
}

int mgr_open_again(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags)
{
	return open_again(op, fid, flags, NULL);
}

int mgr_op_open(struct mgr_op *op, const struct pvfs_open_req *req, struct pvfs_open_rep *rep)
{
	struct opening o = {
		.cred = &req->cred, .fid = req->fid, .flags = req->flags, .attr = &rep->attr,
		.cap = &rep->cap, .unleased = req->unleased,
	};

	if (req->flags & ~(O_ALL & ~PVFS_O_TMPFILE))
		return -EINVAL;
	return open_existing(op, &o);
}

/* ---- create ---- */

struct creating {
	const struct pvfs_create_req *req;
	/* the reply: CREATE's, or OPEN_SHARED's */
	struct pvfs_attr *attr;
	struct pvfs_cap *cap;
	u8 *created;
	const struct sharers *sharers;
	bool counted;
};

static int made_file(struct mgr_op *op, struct mgr_make *mk)
{
	struct creating *c = mk->arg;
	int err;

	/* Before the commit: nobody can unlink it without seeing that it is open. */
	if (!c->counted) {
		err = count_open(op, mk->in.ino, c->req->flags, c->sharers);
		if (err)
			return err;
		c->counted = true;
	}
	if (c->req->flags & PVFS_O_WRITE)
		mgr_opens_reset(&op->m->opens, &mk->in, true);
	ns_attr(&mk->in, c->attr);
	/* Before the commit, too: nobody reads it without finding that it is a draft. */
	if ((c->req->flags & PVFS_O_DRAFT) && (mk->in.flags & MGR_IF_STUFFED) && mgr_space_for_draft(op->m) &&
	    mgr_lease_begin(op, mk->in.ino)) {
		mgr_leases_draft(&op->m->leases, mk->in.ino, mgr_op_session(op), true);
		c->attr->flags |= PVFS_AF_LEASE | PVFS_AF_DRAFT;
	}
	if ((c->req->flags & PVFS_O_WLEASE) && (c->req->flags & PVFS_O_WRITE) && !c->sharers &&
	    !(mk->in.flags & MGR_IF_STUFFED) && mgr_write_begin(op, mk->in.ino))
		c->attr->flags |= PVFS_AF_WLEASE;
	make_cap(op, &mk->fid, c->req->flags, c->cap);
	*c->created = 1;
	return 0;
}

struct finding {
	const struct pvfs_create_req *req;
	struct ns_entry e;
};

static int find_fn(struct mgr_op *op, void *arg)
{
	struct finding *f = arg;
	struct mgr_inode dir;
	int err;

	err = ns_dir_get(op, &f->req->dir, 0, &dir);
	err = err ?: ns_may(op, &f->req->cred, &dir, MGR_MAY_EXEC);
	return err ?: ns_entry_find(op, dir.ino, &f->req->name, 0, &f->e);
}

static int create_new(struct mgr_op *op, struct creating *c, struct pvfs_fid *ret_found)
{
	const struct pvfs_create_req *req = c->req;
	bool nameless = req->flags & PVFS_O_TMPFILE;
	struct mgr_make mk = {
		.cred = &req->cred, .dir = &req->dir, .name = nameless ? NULL : &req->name,
		.mode = S_IFREG | (req->mode & 07777), .umask = req->umask,
		.layout = &req->layout,
		.iflags = nameless && !(req->flags & PVFS_O_EXCL) ? MGR_IF_LINKABLE : 0,
		.written = req->flags & PVFS_O_WRITE, .striped = req->flags & PVFS_O_STRIPED,
		.made = made_file, .arg = c,
	};
	int err;

	c->counted = false;
	err = mgr_make(op, &mk);
	if (err && c->counted) {
		uncount_open(op, mk.fid.ino, req->flags, c->sharers);
		/* It comes again under another number. But what was stored may say that it is a draft. */
		if (err != -ERESTART)
			mgr_leases_drop(&op->m->leases, mk.fid.ino, mgr_op_session(op));
	}
	if (err)
		*c->created = 0;
	*ret_found = mk.found.fid;
	return err;
}

static int open_by_name(struct mgr_op *op, struct creating *c)
{
	const struct pvfs_create_req *req = c->req;
	struct finding f = { .req = req };
	struct opening o = {
		.cred = &req->cred,
		.sharers = c->sharers,
		.flags = req->flags & ~(PVFS_O_CREAT | PVFS_O_EXCL | PVFS_O_STRIPED),
		.attr = c->attr,
		.cap = c->cap,
		.unleased = req->unleased,
	};
	unsigned int tries;
	int err;

	if ((req->flags & ~O_ALL) || (req->flags & (PVFS_O_CREAT | PVFS_O_DIRECTORY)) ==
	    (PVFS_O_CREAT | PVFS_O_DIRECTORY))
		return -EINVAL;
	if (req->flags & PVFS_O_TMPFILE) {
		if (req->name.len || !(req->flags & PVFS_O_CREAT) || !(req->flags & PVFS_O_WRITE))
			return -EINVAL;
		return create_new(op, c, &o.fid);
	}
	err = ns_name_check(&req->name);
	if (err)
		return err;
	/*
	 * Opened by name, it can be unlinked before it is opened: then the name is free, and it all
	 * begins again.
	 */
	for (tries = 0; tries < 10; tries++) {
		if (req->flags & PVFS_O_CREAT) {
			err = create_new(op, c, &o.fid);
			if (err != -EEXIST || (req->flags & PVFS_O_EXCL))
				return err;
		} else {
			err = mgr_run(op, find_fn, &f, MGR_RUN_READ);
			if (err)
				return err;
			o.fid = f.e.fid;
		}
		err = open_existing(op, &o);
		if (!err && (req->flags & PVFS_O_CREAT) && S_ISDIR(o.in.mode))
			return -EISDIR;
		if (err != -ESTALE || atomic_load(&op->s->dead))
			return err;
	}
	return -EAGAIN;
}

int mgr_op_create(struct mgr_op *op, const struct pvfs_create_req *req, struct pvfs_create_rep *rep)
{
	struct creating c = {
		.req = req, .attr = &rep->attr, .cap = &rep->cap, .created = &rep->created,
	};

	return open_by_name(op, &c);
}

/* ---- for others, too ---- */

#define O_SHARED (PVFS_O_READ | PVFS_O_WRITE | PVFS_O_CREAT | PVFS_O_EXCL | PVFS_O_TRUNC | \
		  PVFS_O_STRIPED)

static void sharers_put(struct sharers *sh)
{
	u32 i;

	for (i = 0; i < sh->n; i++)
		if (sh->s[i])
			mgr_session_put(sh->s[i]);
}

/* Who names a session has to know more of it than its number: it was told to, by its client. */
static int sharers_get(struct mgr_op *op, const struct pvfs_str *list, struct sharers *sh)
{
	struct pvfs_sharer who;
	struct pvfs_wire w;
	u32 i;

	sh->n = list->len / PVFS_SHARER_LEN;
	if (list->len % PVFS_SHARER_LEN)
		return -EINVAL;
	pvfs_wire_init(&w, list->p, list->len);
	for (i = 0; i < sh->n; i++) {
		pvfs_get_sharer(&w, &who);
		/* Named by another it gives no sign of life itself. */
		sh->s[i] = mgr_session_peek(op->m, who.session);
		if (sh->s[i] && memcmp(sh->s[i]->client, who.client, sizeof(who.client))) {
			mgr_session_put(sh->s[i]);
			sh->s[i] = NULL;
		}
	}
	return 0;
}

/* The payload. It is made of what the reply says, so that a reply that was kept has it again. */
static int give_caps(struct mgr_op *op, const struct pvfs_attr *attr, u32 flags,
		     const struct sharers *sh)
{
	struct pvfs_cap cap;
	u32 i;

	if (!sh->n)
		return 0;
	op->payload = calloc(sh->n, PVFS_CAP_MAC_LEN);
	if (!op->payload)
		return -ENOMEM;
	op->payload_len = sh->n * PVFS_CAP_MAC_LEN;
	for (i = 0; i < sh->n; i++) {
		if (!sh->s[i])
			continue;	/* zeros: it has to ask itself */
		make_cap_for(op->m, sh->s[i]->id, &attr->fid, flags, &cap);
		memcpy(op->payload + i * PVFS_CAP_MAC_LEN, cap.mac, PVFS_CAP_MAC_LEN);
	}
	return 0;
}

int mgr_op_open_shared(struct mgr_op *op, const struct pvfs_open_shared_req *req,
		       struct pvfs_open_shared_rep *rep)
{
	struct pvfs_create_req create = {
		.cred = req->cred, .dir = req->dir, .name = req->name, .flags = req->flags,
		.mode = req->mode, .umask = req->umask, .layout = req->layout,
	};
	struct sharers sh;
	struct creating c = {
		.req = &create, .attr = &rep->attr, .cap = &rep->cap, .created = &rep->created,
		.sharers = &sh,
	};
	int err;

	if (req->flags & ~O_SHARED)
		return -EINVAL;
	err = sharers_get(op, &req->sharers, &sh);
	if (err)
		return err;
	rep->epoch = op->m->epoch;
	op->for_others = true;
	err = open_by_name(op, &c);
	/* Of a directory no open is kept. */
	if (!err && S_ISDIR(rep->attr.mode))
		err = -EISDIR;
	if (!err) {
		err = give_caps(op, &rep->attr, req->flags, &sh);
		if (err)
			uncount_open(op, rep->attr.fid.ino, req->flags, &sh);
	}
	sharers_put(&sh);
	return err;
}

int mgr_open_shared_again(struct mgr_op *op, const struct pvfs_open_shared_rep *rep, bool here)
{
	const struct pvfs_open_shared_req *req = &op->req.open_shared;
	struct sharers sh;
	int err;

	err = sharers_get(op, &req->sharers, &sh);
	if (err)
		return err;
	op->for_others = true;
	err = give_caps(op, &rep->attr, req->flags, &sh);
	if (!err && !here)
		err = open_again(op, &rep->attr.fid, req->flags, &sh);
	sharers_put(&sh);
	return err;
}

/* ---- close ---- */

struct release {
	u64 ino, session;
	bool reap, gone;
};

/* Is the session's record the last one of the orphan? Deletes it either way. */
static int orphan_del(struct mgr_op *op, const struct release *r, bool *ret_last)
{
	u8 key[MGR_PAIR_KEY], val[sizeof(struct mgr_mark_disk)];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	int err;

	mgr_pair_key(key, r->ino, r->session);
	err = mdb_del(op->m->db, op->txn, MDB_ORPHAN, key, sizeof(key));
	if (err && err != -ENOENT)
		return err;
	err = mdb_cursor_open(op->m->db, op->txn, MDB_ORPHAN, 0, &c);
	if (err)
		return err;
	mgr_pair_key(key, r->ino, 0);
	err = mdb_cursor_seek(&c, key, sizeof(key), &rec);
	mdb_cursor_close(&c);
	if (err && err != -ENOENT)
		return err;
	*ret_last = err == -ENOENT || mgr_get_be64(rec.key) != r->ino;
	return 0;
}

static int release_fn(struct mgr_op *op, void *arg)
{
	struct release *r = arg;
	struct mgr_opens_view v;
	struct mgr_inode in;
	bool last;
	int err;

	r->reap = r->gone = false;
	err = ns_inode_get(op, r->ino, MDB_RMW, &in);
	if (err)
		return err == -ESTALE ? 0 : err;
	if (in.nlink || !(in.flags & MGR_IF_ORPHAN))
		return 0;
	/* It may have been opened again meanwhile: that one's close will come here. */
	mgr_opens_view(&op->m->opens, r->ino, r->session, &v);
	if (v.open)
		return 0;
	err = orphan_del(op, r, &last);
	if (err || !last)
		return err;
	in.flags &= ~MGR_IF_ORPHAN;
	/* With nobody left that has it open, ns_inode_unlinked() decides as for any other. */
	err = ns_inode_unlinked(op, &in, &r->gone);
	r->reap = in.flags & MGR_IF_REAP;
	return err;
}

int mgr_orphan_release(struct mgr_op *op, u64 ino, u64 session)
{
	struct release r = { .ino = ino, .session = session };
	bool recalls = op->recalls;
	int err;

	/* Nobody can reach it any more; and who takes an open back does not do it twice. */
	op->recalls = false;
	err = mgr_run(op, release_fn, &r, 0);
	op->recalls = recalls;
	if (!err && r.gone)
		atomic_fetch_sub_explicit(&op->m->files, 1, memory_order_relaxed);
	if (!err && r.reap)
		mgr_reap_kick(op->m);
	return err;
}

/*
 * The last close for writing ends the session's WRITE lease. It has another one first, to read, if it may:
 * then nobody has come between the two, and all that it knows of the file's bytes is so still. *@kept is set
 * then; NULL: nobody would hear of it.
 */
static void write_lease_over(struct mgr_op *op, u64 ino, bool *kept)
{
	u64 session = mgr_op_session(op);
	bool had = mgr_leases_writes(&op->m->leases, ino, session);
	bool reads = had && kept && mgr_lease_begin(op, ino);

	mgr_write_trim(op, ino, session);
	if (!had || mgr_leases_writes(&op->m->leases, ino, session))
		return;
	mgr_head_known(op, ino);
	if (reads)
		*kept = true;
}

/* @kept: see write_lease_over() */
static int close_one(struct mgr_op *op, const struct pvfs_closing *req, bool *kept)
{
	u64 session = mgr_op_session(op), ino = req->fid.ino;
	struct mgr_opens_view v, left;
	bool released;
	int err;

	/* It was read, and is not closed. */
	if (!(req->flags & O_ACCESS))
		return 0;
	mgr_opens_view(&op->m->opens, ino, session, &v);
	if (req->flags & PVFS_O_WRITE) {
		/*
		 * A close does not fail: what could not be settled now stays uncertain and is
		 * settled by who asks.
		 */
		if (mgr_opens_close_begin(&op->m->opens, session, ino, req->flags, &req->report))
			mgr_size_settle(op, &req->fid);
		released = mgr_opens_close_end(&op->m->opens, session, ino, req->flags);
		/* Whoever else has it open there, who writes keeps it back. */
		mgr_opens_view(&op->m->opens, ino, session, &left);
		if (!left.self)
			mgr_draft_over(op, ino, false);
		write_lease_over(op, ino, kept);
	} else {
		released = mgr_opens_del(&op->m->opens, session, ino, req->flags);
	}
	mgr_open_trim(op->m, ino, session);
	/*
	 * Unknown to us (we were restarted, or this is a second run): there may be an orphan record
	 * all the same.
	 */
	if (!released && v.open && !op->again)
		return 0;
	err = mgr_orphan_release(op, ino, session);
	return err == -ERESTART ? err : 0;
}

/*
 * Who has written a file, and closed it, is likely to look at it: he is told what he may go on
 * believing, or nothing. After the open was counted down, and in the order of all leases: it is in
 * the table before the inode is read. Who opens the file for writing from here on finds it there, or
 * has marked the inode. While anybody writes not even a stuffed one is leased, and nobody need be
 * asked to give it back.
 *
 * That no draft of another session's is told of, whatever op->recalls says, mgr_lease_begin() sees to.
 */
static int closed_attr(struct mgr_op *op, const struct pvfs_closing *req, bool kept,
		       struct pvfs_attr *ret)
{
	struct opening o = { .fid = req->fid, .had = true };
	struct mgr_opens_view v;
	int err;

	mgr_opens_view(&op->m->opens, req->fid.ino, mgr_op_session(op), &v);
	if (v.writers || !mgr_lease_begin(op, req->fid.ino))
		return 0;
	err = mgr_run(op, open_fn, &o, MGR_RUN_READ);
	if (err)
		return err == -ERESTART ? err : 0;
	ns_attr(&o.in, ret);
	mgr_lease_attr(op, true, &o.in, ret);
	if (!(ret->flags & PVFS_AF_LEASE))
		memset(ret, 0, sizeof(*ret));
	else if (kept)
		ret->flags |= PVFS_AF_KEPT;
	return 0;
}

int mgr_op_close(struct mgr_op *op, const struct pvfs_close_req *req, struct pvfs_close_rep *rep)
{
	struct pvfs_closing c[PVFS_CLOSE_MAX];
	u32 i, n = req->closings.len / PVFS_CLOSING_LEN;
	struct pvfs_wire w;
	bool kept = false;
	int err;

	if (!n || req->closings.len % PVFS_CLOSING_LEN)
		return -EINVAL;
	pvfs_wire_init(&w, req->closings.p, req->closings.len);
	for (i = 0; i < n; i++) {
		pvfs_get_closing(&w, &c[i]);
		err = w.err ? -EINVAL : mgr_atime(op, &c[i].fid, &c[i].report);
		if (err)
			return err;
	}
	/*
	 * While they were open for writing nobody had a lease. And a close that was begun is not
	 * begun again: none of them is parked from here on, and after a recovery those that were
	 * through stay so.
	 */
	op->recalls = false;
	while (op->nclosed < n) {
		err = close_one(op, &c[op->nclosed], n == 1 ? &kept : NULL);
		if (err)
			return err;
		op->nclosed++;
	}
	/* Of many it would be a read each, of files that their writer has mostly a lease on: drafts. */
	return n == 1 && (c[0].flags & PVFS_O_WRITE) ? closed_attr(op, &c[0], kept, &rep->attr) : 0;
}

int mgr_op_report(struct mgr_op *op, const struct pvfs_report_req *req, struct pvfs_report_rep *rep)
{
	struct opening o = { .fid = req->fid, .had = true };
	int err;

	if (req->flags & ~PVFS_RP_RECALLED)
		return -EINVAL;
	/*
	 * Who gives something up waits for nobody: it may have been taken for done already, as RECALL or YIELD
	 * was sent again and answered meanwhile, and the next one have the file.
	 */
	if (req->settled || (req->flags & PVFS_RP_RECALLED))
		op->recalls = false;
	err = mgr_atime(op, &req->fid, &req->report);
	if (err)
		return err;
	mgr_opens_report(&op->m->opens, mgr_op_session(op), req->fid.ino, &req->report);
	err = mgr_size_record(op, &req->fid);
	if (err && err != -ENOSPC)
		return err;
	err = mgr_run(op, open_fn, &o, MGR_RUN_READ);
	err = err ?: mgr_size_attr(op, &o.in, NULL, &rep->attr);
	if (err == -EINPROGRESS || err == -ERESTART || err == -EAGAIN)
		return err;
	/* Who waited reads the size after this; all that was reported is in it. */
	if (req->flags & PVFS_RP_RECALLED) {
		mgr_lasting_over(op, req->fid.ino);
		mgr_write_over(op, req->fid.ino);
		mgr_head_known(op, req->fid.ino);
	}
	/* And who waited to be alone does not find the lease. */
	if (req->settled)
		mgr_settled(op, req->fid.ino, req->settled);
	return err;
}
