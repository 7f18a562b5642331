// SPDX-License-Identifier: GPL-2.0
/*
 * ns.c - the name space's parts: inodes, entries, permissions. The handlers in op_*.c put them
 * together.
 *
 * Functions that take a struct mgr_op use op->txn, which may be NULL for reading. Rules are those
 * of Linux' VFS and ext4. None of this waits for anything but database locks.
 */
#include "mgr.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/**
 * ns_name_check - may this be the name of an entry?
 * @name: any bytes
 *
 * Return: 0, -ENAMETOOLONG, or -EINVAL for an empty one, ".", "..", and names with a slash or NUL.
 */
int ns_name_check(const struct pvfs_str *name)
{
	if (name->len > PVFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (!name->len || memchr(name->p, '/', name->len) || memchr(name->p, 0, name->len))
		return -EINVAL;
	if (name->p[0] == '.' && (name->len == 1 || (name->len == 2 && name->p[1] == '.')))
		return -EINVAL;
	return 0;
}

/* ---- inodes ---- */

/**
 * ns_inode_get - read an inode
 * @flags: MDB_RMW when it will be written in this transaction
 * @in: filled
 *
 * Return: 0, -ESTALE when there is none, -EUCLEAN, or the database's error.
 */
int ns_inode_get(struct mgr_op *op, u64 ino, u32 flags, struct mgr_inode *in)
{
	struct mgr_inode_disk d;
	u8 key[MGR_INO_KEY];
	int n, err;

	mgr_ino_key(key, ino);
	n = mdb_get(op->m->db, op->txn, MDB_INODE, key, sizeof(key), &d, sizeof(d), flags);
	if (n < 0)
		return n == -ENOENT ? -ESTALE : n == -EMSGSIZE ? -EUCLEAN : n;
	err = mgr_inode_decode(in, ino, &d, n);
	if (err)
		pvfs_log_limited(PVFS_LOG_ERROR, "database: inode %llu: damaged record",
				 (unsigned long long)ino);
	else
		mgr_draft_note(op, in);
	return err;
}

/**
 * ns_fid_get - read the inode a client named
 *
 * Return: 0; -ESTALE when it is gone, is another generation, or waits to be reaped; or as
 * ns_inode_get().
 */
int ns_fid_get(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags, struct mgr_inode *in)
{
	int err = ns_inode_get(op, fid->ino, flags, in);

	if (!err && (in->gen != fid->gen || (in->flags & MGR_IF_REAP)))
		err = -ESTALE;
	return err;
}

/* The same, and it must be a directory. */
int ns_dir_get(struct mgr_op *op, const struct pvfs_fid *fid, u32 flags, struct mgr_inode *in)
{
	int err = ns_fid_get(op, fid, flags, in);

	if (!err && !S_ISDIR(in->mode))
		err = -ENOTDIR;
	return err;
}

int ns_inode_put(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_inode_disk d;
	u8 key[MGR_INO_KEY];
	u32 n = mgr_inode_encode(in, &d);

	mgr_ino_key(key, in->ino);
	mgr_lease_note(op, in->ino, in->flags & (MGR_IF_UNCERTAIN | MGR_IF_TRIM | MGR_IF_SPILL));
	return mdb_put(op->m->db, op->txn, MDB_INODE, key, sizeof(key), &d, n);
}

/* A new inode. The number was never used, so one that is found is damage. */
int ns_inode_insert(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_inode_disk d;
	u8 key[MGR_INO_KEY];
	u32 n = mgr_inode_encode(in, &d);
	int err;

	mgr_ino_key(key, in->ino);
	err = mdb_put_new(op->m->db, op->txn, MDB_INODE, key, sizeof(key), &d, n);
	return err == -EEXIST ? -EUCLEAN : err;
}

/* Removes the inode and what belongs to it in other tables. */
int ns_inode_del(struct mgr_op *op, const struct mgr_inode *in)
{
	u8 key[MGR_INO_KEY];
	int err;

	mgr_ino_key(key, in->ino);
	mgr_lease_note(op, in->ino, false);
	err = mdb_del(op->m->db, op->txn, MDB_INODE, key, sizeof(key));
	err = err ?: mgr_xattr_del_all(op, in);
	if (!err && S_ISLNK(in->mode))
		err = mdb_del(op->m->db, op->txn, MDB_SYMLINK, key, sizeof(key));
	if (!err && (in->flags & MGR_IF_TRIM)) {
		err = mdb_del(op->m->db, op->txn, MDB_TRIM, key, sizeof(key));
		if (err == -ENOENT)
			err = 0;
	}
	if (!err && (in->flags & MGR_IF_STUFFED) && in->size)
		err = mgr_heads_del(op, in);
	return err == -ENOENT ? -EUCLEAN : err;
}

/**
 * ns_ino_alloc - an inode number and generation for a new inode
 *
 * Numbers are reserved durably in batches before the first of a batch is used, so that none is ever
 * given twice; what is left of a batch when the process ends is lost. Context: outside of
 * transactions.
 *
 * Return: 0 or the database's error.
 */
#define INO_BATCH 4096u

static int reserve_fn(struct mgr_op *op, void *arg)
{
	u64 *next = arg;
	__le64 v;
	int n;

	n = mdb_get(op->m->db, op->txn, MDB_META, "next_ino", 8, &v, sizeof(v), MDB_RMW);
	if (n < 0)
		return n == -ENOENT ? -EUCLEAN : n;
	if (n != sizeof(v))
		return -EUCLEAN;
	*next = le64_to_cpu(v);
	v = cpu_to_le64(*next + INO_BATCH);
	return mdb_put(op->m->db, op->txn, MDB_META, "next_ino", 8, &v, sizeof(v));
}

int ns_ino_alloc(struct mgr_op *op, struct pvfs_fid *ret)
{
	struct mgr *m = op->m;
	int err = 0;
	u64 first;

	pthread_mutex_lock(&m->ino_lock);
	if (m->ino_next == m->ino_end) {
		/*
		 * Not flushed here: whatever uses these numbers is committed later, and the log is
		 * flushed in order, so it is durable only after this.
		 */
		err = mgr_run(op, reserve_fn, &first, 0);
		if (!err) {
			m->ino_next = first;
			m->ino_end = first + INO_BATCH;
		}
	}
	if (!err)
		ret->ino = m->ino_next++;
	pthread_mutex_unlock(&m->ino_lock);
	if (!err) {
		/* Any value will do; one that differs after a restored backup is best. */
		u64 seed[2] = { ret->ino, m->epoch };

		ret->gen = (u32)mgr_siphash(m->hash_key, seed, sizeof(seed)) | 1;
	}
	return err;
}

bool ns_in_group(const struct pvfs_cred *cred, u32 gid)
{
	return pvfs_cred_in_group(cred, gid);
}

/**
 * ns_inode_init - a new inode's first contents
 * @dir: the directory it will be in
 * @mode: type and permission bits as asked for
 *
 * Owner, group and set-group-id bit follow the directory as on ext4. Layout, rdev and what ACLs or
 * a mask leave of @mode are the caller's.
 */
void ns_inode_init(struct mgr_op *op, struct mgr_inode *in, const struct pvfs_fid *fid,
		   const struct mgr_inode *dir, const struct pvfs_cred *cred, u32 mode)
{
	memset(in, 0, sizeof(*in));
	in->ino = fid->ino;
	in->gen = fid->gen;
	in->mode = mode;
	in->uid = cred->uid;
	in->gid = cred->gid;
	in->nlink = 1;
	if (dir->mode & S_ISGID) {
		in->gid = dir->gid;
		if (S_ISDIR(mode))
			in->mode |= S_ISGID;
		else if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
			 !ns_all_powerful(cred) && !ns_in_group(cred, dir->gid))
			in->mode &= ~S_ISGID;
	}
	in->atime = in->mtime = in->ctime = in->btime = op->now;
	in->version = mgr_version_after(0);
	if (S_ISDIR(mode)) {
		in->nlink = 2;
		in->parent.ino = dir->ino;
		in->parent.gen = dir->gen;
		in->layout = dir->layout;
	}
}

bool ns_layout_ok(const struct pvfs_layout *l, u32 niods)
{
	struct pvfs_layout concrete = *l;

	if (concrete.base == MGR_BASE_ANY)
		concrete.base = 0;
	return pvfs_layout_valid(&concrete, niods);
}

int ns_layout_pick(struct mgr *m, const struct mgr_inode *dir, const struct pvfs_layout *want,
		   struct pvfs_layout *ret)
{
	*ret = want->pcount ? *want : dir->layout;
	if (ret->stuff_max == PVFS_STUFF_KEEP)
		ret->stuff_max = dir->layout.stuff_max;
	if (!ns_layout_ok(ret, m->niods))
		return -EINVAL;
	if (ret->base == MGR_BASE_ANY)
		ret->base = atomic_fetch_add_explicit(&m->base_next, 1,
						      memory_order_relaxed) % m->niods;
	return 0;
}

void ns_touch_ctime(struct mgr_op *op, struct mgr_inode *in)
{
	if (pvfs_ts_after(&op->now, &in->ctime))
		in->ctime = op->now;
	in->version = mgr_version_after(in->version);
}

void ns_touch_mtime(struct mgr_op *op, struct mgr_inode *in)
{
	in->mtime = op->now;
	ns_touch_ctime(op, in);
}

/**
 * ns_kill_priv - what a change takes away from the mode
 * @in: the inode, no directory
 * @cred: who changes it, and has not been found to be privileged
 *
 * As Linux' setattr_should_drop_sgid(): set-group-id without execution for the group is left to the
 * group's members.
 */
void ns_kill_priv(struct mgr_inode *in, const struct pvfs_cred *cred)
{
	in->mode &= ~S_ISUID;
	if ((in->mode & S_IXGRP) || (!ns_all_powerful(cred) && !ns_in_group(cred, in->gid)))
		in->mode &= ~S_ISGID;
}

/* Can there be no datafile of it? */
static bool never_written(const struct mgr_inode *in)
{
	if (in->flags & MGR_IF_STUFFED)
		return !(in->flags & MGR_IF_SPILL);
	return !in->size && !in->trunc_gen && mgr_ts_zero(&in->wtime) &&
	       !(in->flags & (MGR_IF_UNCERTAIN | MGR_IF_TRIM));
}

static int put_mark(struct mgr_op *op, enum mdb_table tab, const u8 *key, u32 klen, u32 gen)
{
	struct mgr_mark_disk d;
	u32 n = mgr_mark_encode(gen, &d);

	return mdb_put(op->m->db, op->txn, tab, key, klen, &d, n);
}

/**
 * ns_inode_unlinked - decide what becomes of an inode that lost a name
 * @in: read with MDB_RMW in this transaction, nlink already adjusted, times touched
 * @ret_gone: set when the inode is not in the table any more
 *
 * With names left it is written back. Without: open files become orphans of the sessions that have
 * them open, files that may have datafiles go to the reaper, all else goes at once. While clients
 * may still reclaim what they had open (grace), everything regular waits in the reap queue, which
 * stands still then.
 *
 * Opens are looked at while we hold the inode's page lock: see mgr_opens_add() for why none is
 * missed.
 */
int ns_inode_unlinked(struct mgr_op *op, struct mgr_inode *in, bool *ret_gone)
{
	u64 *ids = NULL;
	int i, n, err = 0;

	*ret_gone = false;
	if (in->nlink)
		return ns_inode_put(op, in);
	if (!S_ISREG(in->mode)) {
		*ret_gone = true;
		return ns_inode_del(op, in);
	}
	n = mgr_opens_who(&op->m->opens, in->ino, &ids);
	if (n < 0)
		return n;
	if (n) {
		mgr_opens_orphan(&op->m->opens, in->ino);
		in->flags |= MGR_IF_ORPHAN;
		for (i = 0; i < n && !err; i++) {
			u8 key[MGR_PAIR_KEY];

			mgr_pair_key(key, in->ino, ids[i]);
			err = put_mark(op, MDB_ORPHAN, key, sizeof(key), in->gen);
		}
		err = err ?: ns_inode_put(op, in);
	} else if (never_written(in) && !mgr_in_grace(op->m)) {
		*ret_gone = true;
		err = ns_inode_del(op, in);
	} else {
		u8 key[MGR_INO_KEY];

		mgr_ino_key(key, in->ino);
		in->flags |= MGR_IF_REAP;
		err = put_mark(op, MDB_REAP, key, sizeof(key), in->gen);
		err = err ?: ns_inode_put(op, in);
	}
	free(ids);
	return err;
}

/**
 * ns_orphan_end - an inode that was made without a name gets one
 * @in: read with MDB_RMW in this transaction; the caller puts it
 */
int ns_orphan_end(struct mgr_op *op, struct mgr_inode *in)
{
	u8 key[MGR_PAIR_KEY], val[sizeof(struct mgr_mark_disk)];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	int err;

	do {
		err = mdb_cursor_open(op->m->db, op->txn, MDB_ORPHAN, MDB_RMW, &c);
		if (err)
			return err;
		mgr_pair_key(key, in->ino, 0);
		err = mdb_cursor_seek(&c, key, sizeof(key), &rec);
		mdb_cursor_close(&c);
		if (!err && mgr_get_be64(rec.key) != in->ino)
			err = -ENOENT;
		if (!err)
			err = mdb_del(op->m->db, op->txn, MDB_ORPHAN, rec.key, rec.klen);
	} while (!err);
	in->flags &= ~(MGR_IF_ORPHAN | MGR_IF_LINKABLE);
	return err == -ENOENT ? 0 : err;
}

/**
 * ns_blocks - the space that a file takes
 * @in: any inode
 *
 * A file without holes takes what its size says, in blocks of 4 KiB: stripe units are multiples of
 * that, so all datafiles but one end at such a block's end.
 *
 * Return: 512-byte units.
 */
u64 ns_blocks(const struct mgr_inode *in)
{
	if (!S_ISREG(in->mode))
		return S_ISDIR(in->mode) ? ((in->entries * 64 + 4096) & ~4095ull) / 512 : 0;
	return in->flags & MGR_IF_SPARSE ? in->blocks : (in->size + 4095) / 4096 * 8;
}

void ns_attr(const struct mgr_inode *in, struct pvfs_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->fid.ino = in->ino;
	attr->fid.gen = in->gen;
	attr->mode = in->mode;
	attr->nlink = in->nlink;
	attr->uid = in->uid;
	attr->gid = in->gid;
	attr->rdev = in->rdev;
	/*
	 * A directory's size means nothing; this looks like what people are used to and grows with
	 * the entries.
	 */
	attr->size = S_ISDIR(in->mode) ? (in->entries * 64 + 4096) & ~4095ull : in->size;
	attr->blocks = ns_blocks(in);
	attr->atime = in->atime;
	attr->mtime = in->mtime;
	attr->ctime = in->ctime;
	attr->btime = in->btime;
	attr->version = in->version;
	attr->trunc_gen = in->trunc_gen;
	attr->layout = in->layout;
	attr->acl_version = in->acl_version;
	attr->flags = (in->xattr_names ? PVFS_AF_XATTR : 0) |
		      (in->flags & MGR_IF_STUFFED ? PVFS_AF_STUFFED : 0) |
		      (in->flags & MGR_IF_ACL ? PVFS_AF_ACL : 0) |
		      (in->flags & MGR_IF_DEFACL ? PVFS_AF_DEFACL : 0) |
		      (in->flags & MGR_IF_CAPS ? PVFS_AF_CAPS : 0);
}

/* ---- permissions ---- */

/* May @victim's name be removed from @dir? Permission on the directory and its sticky bit. */
int ns_may_delete(struct mgr_op *op, const struct pvfs_cred *cred, const struct mgr_inode *dir,
		  const struct mgr_inode *victim)
{
	int err = ns_may(op, cred, dir, MGR_MAY_WRITE | MGR_MAY_EXEC);

	if (!err && (dir->mode & S_ISVTX) && !ns_all_powerful(cred) && cred->uid != victim->uid &&
	    cred->uid != dir->uid)
		err = -EPERM;
	return err;
}

/* ---- entries ---- */

/**
 * ns_entry_find - look a name up
 * @flags: MDB_RMW when the answer decides about a change
 * @e: filled; on -ENOENT @e->cookie is the place for a new entry of this name
 *
 * All entries whose names have one hash lie side by side: one seek finds the first, nearly always
 * the only one. Inside a transaction the range stays locked, so that "not there" stays true until
 * the commit.
 *
 * Return: 0, -ENOENT, -ENOSPC (256 names with this hash: cannot happen unless the hash key leaked),
 * or the database's.
 */
int ns_entry_find(struct mgr_op *op, u64 dir, const struct pvfs_str *name, u32 flags,
		  struct ns_entry *e)
{
	u64 base = mgr_name_cookie(op->m->hash_key, name), unused = max(base, MGR_COOKIE_MIN);
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	struct mgr_dirent de;
	int err;

	err = mdb_cursor_open(op->m->db, op->txn, MDB_DIRENT, flags, &c);
	if (err)
		return err;
	mgr_pair_key(key, dir, base);
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		err = mgr_dirent_decode(&de, rec.key, rec.klen, val, rec.vlen);
		if (err)
			goto out;
		if (de.dir != dir || de.cookie > base + 255)
			break;
		if (de.name.len == name->len && !memcmp(de.name.p, name->p, name->len)) {
			e->cookie = de.cookie;
			e->fid.ino = de.ino;
			e->fid.gen = de.gen;
			e->type = de.type;
			goto out;
		}
		if (de.cookie == unused)
			unused++;
	}
	if (err && err != -ENOENT)
		goto out;
	memset(e, 0, sizeof(*e));
	e->cookie = unused;
	err = unused > base + 255 ? -ENOSPC : -ENOENT;
out:
	mdb_cursor_close(&c);
	if (err == -EUCLEAN || err == -EMSGSIZE) {
		pvfs_log_limited(PVFS_LOG_ERROR, "database: directory %llu: damaged entry",
				 (unsigned long long)dir);
		err = -EUCLEAN;
	}
	return err;
}

static u32 entry_make(void *room, u64 cookie, const struct pvfs_str *name,
		      const struct mgr_inode *in)
{
	struct mgr_dirent de = {
		.cookie = cookie, .ino = in->ino, .gen = in->gen, .type = in->mode >> 12,
		.name = *name,
	};

	return mgr_dirent_encode(&de, room);
}

/**
 * ns_entry_add - add an entry where ns_entry_find() said it goes, in the same transaction
 */
int ns_entry_add(struct mgr_op *op, u64 dir, const struct ns_entry *e, const struct pvfs_str *name,
		 const struct mgr_inode *in)
{
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX];
	u32 n = entry_make(val, e->cookie, name, in);
	int err;

	mgr_pair_key(key, dir, e->cookie);
	err = mdb_put_new(op->m->db, op->txn, MDB_DIRENT, key, sizeof(key), val, n);
	/*
	 * The place was free under our lock; if not, somebody was faster in a way we do not know:
	 * look again.
	 */
	return err == -EEXIST ? -EDEADLK : err;
}

int ns_entry_set(struct mgr_op *op, u64 dir, u64 cookie, const struct pvfs_str *name,
		 const struct mgr_inode *in)
{
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX];
	u32 n = entry_make(val, cookie, name, in);

	mgr_pair_key(key, dir, cookie);
	return mdb_put(op->m->db, op->txn, MDB_DIRENT, key, sizeof(key), val, n);
}

int ns_entry_del(struct mgr_op *op, u64 dir, u64 cookie)
{
	u8 key[MGR_PAIR_KEY];
	int err;

	mgr_pair_key(key, dir, cookie);
	err = mdb_del(op->m->db, op->txn, MDB_DIRENT, key, sizeof(key));
	return err == -ENOENT ? -EUCLEAN : err;
}

/* Return: 0, -ENOTEMPTY, or the database's error. The directory's inode is locked by the caller. */
int ns_dir_empty(struct mgr_op *op, u64 dir)
{
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mdb_cursor c;
	int err;

	err = mdb_cursor_open(op->m->db, op->txn, MDB_DIRENT, 0, &c);
	if (err)
		return err;
	mgr_pair_key(key, dir, 0);
	err = mdb_cursor_seek(&c, key, sizeof(key), &rec);
	mdb_cursor_close(&c);
	if (err == -ENOENT)
		return 0;
	if (err)
		return err;
	return rec.klen == MGR_PAIR_KEY && mgr_get_be64(rec.key) == dir ? -ENOTEMPTY : 0;
}

/**
 * ns_loop_check - may directory @moved go below @ddir?
 *
 * Walks from @ddir to the root. Context: m->rename_lock is held, so no directory above changes its
 * parent meanwhile.
 *
 * Return: 0, -EINVAL when @moved is @ddir or above it.
 */
int ns_loop_check(struct mgr_op *op, const struct mgr_inode *moved, const struct mgr_inode *ddir)
{
	struct mgr_inode cur = *ddir;
	int err;

	for (;;) {
		if (cur.ino == moved->ino)
			return -EINVAL;
		if (cur.ino == PVFS_ROOT_INO)
			return 0;
		err = ns_inode_get(op, cur.parent.ino, 0, &cur);
		if (err)
			return err;
	}
}
