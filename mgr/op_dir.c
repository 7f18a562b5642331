// SPDX-License-Identifier: GPL-2.0
/*
 * op_dir.c - MKDIR, RMDIR, READDIR, SETLAYOUT.
 *
 * READDIR reads entries in the order of their cookies, which are hashes of the names: an entry that
 * stays keeps its place whatever else comes and goes, so a reader that resumes after a cookie
 * misses none that was there all the time and sees none twice.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>

static int made_dir(struct mgr_op *op, struct mgr_make *mk)
{
	ns_attr(&mk->in, mk->arg);
	return 0;
}

int mgr_op_mkdir(struct mgr_op *op, const struct pvfs_mkdir_req *req, struct pvfs_mkdir_rep *rep)
{
	struct mgr_make mk = {
		.cred = &req->cred, .dir = &req->dir, .name = &req->name,
		/* Whether it has the set-group-id bit is its directory's matter. */
		.mode = S_IFDIR | (req->mode & 01777), .umask = req->umask,
		.made = made_dir, .arg = &rep->attr,
	};

	return mgr_make(op, &mk);
}

static int rmdir_fn(struct mgr_op *op, void *arg)
{
	const struct pvfs_rmdir_req *req = arg;
	struct mgr_inode dir, in;
	struct ns_entry e;
	int err;

	err = ns_dir_get(op, &req->dir, MDB_RMW, &dir);
	err = err ?: ns_may(op, &req->cred, &dir, MGR_MAY_EXEC);
	err = err ?: ns_entry_find(op, dir.ino, &req->name, MDB_RMW, &e);
	if (err)
		return err;
	/* Whoever adds an entry to it locks its inode first, so empty stays empty. */
	err = ns_fid_get(op, &e.fid, MDB_RMW, &in);
	if (err)
		return err == -ESTALE ? -EUCLEAN : err;
	err = ns_may_delete(op, &req->cred, &dir, &in);
	if (err)
		return err;
	if (!S_ISDIR(in.mode))
		return -ENOTDIR;
	err = ns_dir_empty(op, in.ino);
	err = err ?: ns_inode_del(op, &in);
	err = err ?: ns_entry_del(op, dir.ino, e.cookie);
	if (err)
		return err;
	dir.entries -= !!dir.entries;
	dir.nlink -= dir.nlink > 2;
	ns_touch_mtime(op, &dir);
	return ns_inode_put(op, &dir);
}

int mgr_op_rmdir(struct mgr_op *op, const struct pvfs_rmdir_req *req, struct pvfs_rmdir_rep *rep)
{
	int err;

	err = ns_name_check(&req->name);
	err = err ?: mgr_run(op, rmdir_fn, (void *)req, MGR_RUN_SYNC | MGR_RUN_FINAL);
	if (!err)
		atomic_fetch_sub_explicit(&op->m->files, 1, memory_order_relaxed);
	return err;
}

/* ---- readdir ---- */

/* One entry on its way: the name lies in the arena. */
struct rd_entry {
	u64 cookie;
	struct pvfs_fid fid;
	u32 name, namelen;
	u8 type;
};

struct readdir {
	const struct pvfs_readdir_req *req;
	struct mgr_inode dir;
	u64 after;		/* cookie to go on behind */
	u32 room;		/* bytes of the reply's payload */
	struct rd_entry *ent;	/* n of max */
	u32 n, max;
	u8 *arena;		/* @room bytes: names take less than their encoded entries */
	struct mgr_inode *in;	/* max; only with attributes */
	struct pvfs_attr *attr;	/* max */
	bool *lease;		/* max; had by the session */
	bool *draft;		/* max; another session's, to be listed without attributes */
	bool eof, dir_lease;
};

/* Bytes of an encoded entry but for its name. */
static u32 dent_fixed(void)
{
	static const struct pvfs_dent empty;
	struct pvfs_wire w;
	u8 buf[512];

	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_dent(&w, &empty);
	return w.p - buf;
}

static int readdir_start_fn(struct mgr_op *op, void *arg)
{
	struct readdir *r = arg;

	r->dir_lease = mgr_lease_begin(op, r->req->dir.ino);
	return ns_dir_get(op, &r->req->dir, 0, &r->dir);
}

/*
 * Takes as many entries as the reply has room for. The inodes are read afterwards, with no page of
 * the directory locked: else a reader could deadlock with those who lock the other way round.
 */
static int readdir_entries_fn(struct mgr_op *op, void *arg)
{
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct readdir *r = arg;
	u32 fixed = dent_fixed(), used = 0, names = 0;
	struct mgr_dirent de;
	struct mdb_cursor c;
	int err;

	r->n = 0;
	r->eof = false;
	err = mdb_cursor_open(op->m->db, op->txn, MDB_DIRENT, 0, &c);
	if (err)
		return err;
	mgr_pair_key(key, r->dir.ino, r->after + 1);
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		err = mgr_dirent_decode(&de, rec.key, rec.klen, val, rec.vlen);
		if (err)
			break;
		if (de.dir != r->dir.ino) {
			r->eof = true;
			break;
		}
		if (used + fixed + de.name.len > r->room || r->n == r->max)
			break;
		used += fixed + de.name.len;
		memcpy(r->arena + names, de.name.p, de.name.len);
		r->ent[r->n++] = (struct rd_entry){
			.cookie = de.cookie, .fid = { .ino = de.ino, .gen = de.gen },
			.name = names, .namelen = de.name.len, .type = de.type,
		};
		names += de.name.len;
	}
	mdb_cursor_close(&c);
	if (err == -ENOENT) {
		r->eof = true;
		err = 0;
	}
	return err == -EMSGSIZE ? -EUCLEAN : err;
}

/* Inodes of the entries; those that vanished since get ino 0. */
static int readdir_inodes_fn(struct mgr_op *op, void *arg)
{
	struct readdir *r = arg;
	bool recalls = op->recalls;
	int err = 0;
	u32 i;

	op->recalls = false;
	for (i = 0; i < r->n; i++) {
		r->lease[i] = mgr_lease_begin(op, r->ent[i].fid.ino);
		/*
		 * To wait for drafts could take for ever, where files are made all the while: they
		 * are listed without attributes.
		 */
		r->draft[i] = mgr_leases_drafted(&op->m->leases, r->ent[i].fid.ino,
						 mgr_op_session(op), mgr_mono_ms());
		err = ns_fid_get(op, &r->ent[i].fid, 0, &r->in[i]);
		r->draft[i] = !err && (r->draft[i] || mgr_draft_unsure(op, &r->in[i]));
		/* Nor are the iods asked about those. */
		if (err == -ESTALE || r->draft[i])
			memset(&r->in[i], 0, sizeof(r->in[i]));
		else if (err)
			break;
		err = 0;
	}
	op->recalls = recalls;
	return err;
}

/* What somebody began to keep back while the iods were asked is not told, and not waited for either. */
static int readdir_sizes(struct mgr_op *op, struct readdir *r)
{
	bool recalls = op->recalls;
	int err;
	u32 i;

	op->recalls = false;
	err = mgr_size_attrs(op, r->in, r->attr, r->n);
	op->recalls = recalls;
	for (i = 0; !err && i < r->n; i++)
		r->draft[i] |= r->in[i].ino && r->attr[i].fid.ino &&
			       mgr_leases_drafted(&op->m->leases, r->in[i].ino,
						  mgr_op_session(op), mgr_mono_ms());
	return err;
}

static int readdir_encode(struct mgr_op *op, struct readdir *r, struct pvfs_readdir_rep *rep)
{
	struct pvfs_wire w;
	u32 i;

	pvfs_wire_init(&w, op->payload, r->room);
	for (i = 0; i < r->n; i++) {
		const struct rd_entry *e = &r->ent[i];
		struct pvfs_dent d = {
			.cookie = e->cookie, .name = { .p = r->arena + e->name, .len = e->namelen },
		};

		if (r->in && !r->draft[i] && (!r->in[i].ino || !r->attr[i].fid.ino))
			continue;
		if (r->in && !r->draft[i]) {
			d.attr = r->attr[i];
			mgr_lease_attr(op, r->lease[i], &r->in[i], &d.attr);
		} else {
			d.attr.fid = e->fid;
			d.attr.mode = (u32)e->type << 12;
		}
		pvfs_put_dent(&w, &d);
		rep->count++;
	}
	op->payload_len = w.p - op->payload;
	return w.err;
}

static void readdir_free(struct readdir *r)
{
	free(r->ent);
	free(r->arena);
	free(r->in);
	free(r->attr);
	free(r->lease);
	free(r->draft);
}

int mgr_op_readdir(struct mgr_op *op, const struct pvfs_readdir_req *req,
		   struct pvfs_readdir_rep *rep)
{
	struct readdir r = {
		.req = req, .after = req->cookie, .room = min(req->bytes, PVFS_READDIR_MAX),
	};
	u32 fixed = dent_fixed();
	int err;

	if (r.room < fixed + PVFS_NAME_MAX)
		return -EINVAL;
	err = mgr_run(op, readdir_start_fn, &r, MGR_RUN_READ);
	if (err)
		return err;
	rep->parent = r.dir.parent;
	rep->version = r.dir.version;
	if (r.dir_lease) {
		ns_attr(&r.dir, &rep->dir);
		mgr_lease_attr(op, true, &r.dir, &rep->dir);
	}
	if (r.after >= 0x7fffffffffffffffull || !r.dir.entries) {
		rep->eof = 1;
		return 0;
	}
	if (r.after < MGR_COOKIE_MIN)
		r.after = MGR_COOKIE_MIN - 1;
	/*
	 * A small directory needs no large buffers. Entries that come meanwhile are for the next
	 * call.
	 */
	r.max = req->flags & PVFS_RD_ONE ? 1 :
		min((u64)r.room / (fixed + 1), r.dir.entries + 16);
	r.room = min((u64)r.room, r.max * (u64)(fixed + PVFS_NAME_MAX));
	r.ent = malloc(r.max * sizeof(*r.ent));
	r.arena = malloc(r.room);
	op->payload = malloc(r.room);
	if (req->flags & PVFS_RD_ATTRS) {
		r.in = malloc(r.max * sizeof(*r.in));
		r.attr = calloc(r.max, sizeof(*r.attr));
		r.lease = calloc(r.max, sizeof(*r.lease));
		r.draft = calloc(r.max, sizeof(*r.draft));
	}
	if (!r.ent || !r.arena || !op->payload ||
	    ((req->flags & PVFS_RD_ATTRS) && (!r.in || !r.attr || !r.lease || !r.draft))) {
		err = -ENOMEM;
		goto out;
	}
	/* Again when all that was read has vanished: an empty reply would look like the end. */
	do {
		err = mgr_run(op, readdir_entries_fn, &r, MGR_RUN_READ);
		if (err)
			goto out;
		if (r.in && r.n) {
			err = mgr_run(op, readdir_inodes_fn, &r, MGR_RUN_READ);
			err = err ?: readdir_sizes(op, &r);
			if (err)
				goto out;
		}
		err = readdir_encode(op, &r, rep);
		if (r.n)
			r.after = r.ent[r.n - 1].cookie;
	} while (!err && !rep->count && !r.eof);
	rep->eof = r.eof;
out:
	readdir_free(&r);
	return err;
}

/* ---- layout ---- */

struct setlayout {
	const struct pvfs_setlayout_req *req;
	struct pvfs_setlayout_rep *rep;
};

/*
 * May the layout of a file change? Only if no datafile of it can exist and nobody else relies on
 * the old one.
 */
static int file_untouched(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_opens_view v;

	if (in->size || !mgr_ts_zero(&in->wtime) ||
	    (in->flags & MGR_IF_STUFFED ? in->flags & MGR_IF_SPILL : in->trunc_gen))
		return -EEXIST;
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	if (v.open_elsewhere)
		return -EBUSY;
	if (!(in->flags & MGR_IF_UNCERTAIN))
		return 0;
	if (!v.self || !v.tracked || v.gen != in->trunc_gen)
		return -EBUSY;
	return v.end || !mgr_ts_zero(&v.wtime) ? -EEXIST : 0;
}

static int setlayout_fn(struct mgr_op *op, void *arg)
{
	struct setlayout *s = arg;
	const struct pvfs_layout *want = s->req->layout.pcount ? &s->req->layout :
		&op->m->root_layout;
	struct pvfs_layout l = *want;
	struct mgr_inode in;
	int err;

	err = ns_fid_get(op, &s->req->fid, MDB_RMW, &in);
	if (err)
		return err;
	if (l.stuff_max == PVFS_STUFF_KEEP)
		l.stuff_max = in.layout.stuff_max;
	if (!ns_layout_ok(&l, op->m->niods))
		return -EINVAL;
	if (!ns_all_powerful(&s->req->cred) && s->req->cred.uid != in.uid)
		return -EPERM;
	if (S_ISDIR(in.mode)) {
		in.layout = l;
	} else if (S_ISREG(in.mode)) {
		err = file_untouched(op, &in);
		err = err ?: ns_layout_pick(op->m, &in, &l, &in.layout);
		if (err)
			return err;
	} else {
		return -EINVAL;
	}
	ns_touch_ctime(op, &in);
	ns_attr(&in, &s->rep->attr);
	return ns_inode_put(op, &in);
}

int mgr_op_setlayout(struct mgr_op *op, const struct pvfs_setlayout_req *req,
		     struct pvfs_setlayout_rep *rep)
{
	struct setlayout s = { .req = req, .rep = rep };

	return mgr_run(op, setlayout_fn, &s, MGR_RUN_SYNC | MGR_RUN_FINAL);
}
