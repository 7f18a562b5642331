// SPDX-License-Identifier: GPL-2.0
/*
 * mend.c - makes the tables of a salvaged store agree: what `pvfs-mgr --check` asks for (check.c says
 * what that is), with as little lost as can be. See salvage.h.
 *
 * One pass over the inodes makes a list of them in memory; one over each other table takes out what
 * belongs to none, and counts; then the inodes that differ are written. A loop of directories, which
 * only a mixture of old and new pages can leave, is cut where it was entered: that one goes to
 * /lost+found.
 */
#include "mgr.h"
#include "salvage.h"
#include <stdlib.h>
#include <sys/stat.h>

struct mend_node {
	u64 ino, named_in, named_at, entries;
	u32 gen, mode, flags;
	u32 names, subdirs;
	u32 xattr_names, xattr_bytes, xattr_flags;
	u64 size;
	bool target, trim, reap, orphan, head;
	bool rooted;
};

struct mend {
	struct salvage *s;
	struct mend_node *node;	/* ascending by ino */
	u64 n, room;
	u64 found;		/* the directory for what has no name, 0: none yet */
	struct mdb_rec rec;
};

#define ULL(x) ((unsigned long long)(x))

static struct mend_node *find(struct mend *m, u64 ino)
{
	u64 lo = 0, hi = m->n;

	while (lo < hi) {
		u64 mid = lo + (hi - lo) / 2;

		if (m->node[mid].ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->n && m->node[lo].ino == ino ? &m->node[lo] : NULL;
}

static int add_node(struct mend *m, const struct mgr_inode *in)
{
	size_t room = m->room * 2 + 1024;
	struct mend_node *more;

	if (m->n == m->room) {
		more = realloc(m->node, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->node = more;
		m->room = room;
	}
	m->node[m->n++] = (struct mend_node){ .ino = in->ino, .gen = in->gen, .mode = in->mode,
				  .flags = in->flags, .size = in->size };
	return 0;
}

/*
 * Calls @fn for every record of a table: 1 means that it has to go. The changes are made behind the
 * cursor, which holds no lock.
 */
static int walk(struct mend *m, enum mdb_table tab, int (*fn)(struct mend *m))
{
	u8 key[MDB_KEY_MAX] = { 0 };
	struct mdb_cursor c;
	u32 klen = 1;
	int err, verdict;

	for (;;) {
		err = salvage_commit(m->s);
		err = err ?: mdb_cursor_open(m->s->db, NULL, tab, 0, &c);
		if (err)
			return err;
		verdict = 0;
		for (err = mdb_cursor_seek(&c, key, klen, &m->rec); !err;
		     err = mdb_cursor_next(&c, &m->rec)) {
			verdict = fn(m);
			if (verdict)
				break;
		}
		mdb_cursor_close(&c);
		if (err == -ENOENT)
			return 0;
		if (err || verdict < 0)
			return err ?: verdict;
		err = salvage_put(m->s, tab, m->rec.key, m->rec.klen, NULL, 0);
		if (err)
			return err;
		/* Goes on right behind it. */
		klen = m->rec.klen;
		memcpy(key, m->rec.key, klen);
		if (klen < sizeof(key))
			key[klen++] = 0;
	}
}

static int on_inode(struct mend *m)
{
	struct mgr_inode in;

	if (mgr_inode_decode(&in, mgr_get_be64(m->rec.key), m->rec.val, m->rec.vlen))
		return 1;
	return add_node(m, &in);
}

static int on_entry(struct mend *m)
{
	struct mend_node *dir, *nd;
	struct mgr_dirent de;

	if (mgr_dirent_decode(&de, m->rec.key, m->rec.klen, m->rec.val, m->rec.vlen))
		return 1;
	dir = find(m, de.dir);
	nd = find(m, de.ino);
	if (!nd || nd->gen != de.gen || nd->mode >> 12 != de.type) {
		salvage_lost(m->s, "directory %llu: the inode of %.*s, %llu", ULL(de.dir),
			     (int)de.name.len, (const char *)de.name.p, ULL(de.ino));
		return 1;
	}
	if (!dir || !S_ISDIR(dir->mode)) {
		salvage_lost(m->s, "directory %llu, where inode %llu is %.*s", ULL(de.dir),
			     ULL(de.ino), (int)de.name.len, (const char *)de.name.p);
		return 1;
	}
	/* A directory has one name; of two versions of it the second is as good as the first. */
	if (S_ISDIR(nd->mode) && (nd->names || nd->ino == PVFS_ROOT_INO))
		return 1;
	nd->names++;
	nd->named_in = de.dir;
	nd->named_at = de.cookie;
	dir->entries++;
	dir->subdirs += S_ISDIR(nd->mode);
	return 0;
}

#define MEND_MARK(field, wanted) \
	static int on_##field(struct mend *m) \
	{ \
		struct mend_node *nd = find(m, mgr_get_be64(m->rec.key)); \
		if (!nd || !(wanted)) \
			return 1; \
		nd->field = true; \
		return 0; \
	}
MEND_MARK(target, S_ISLNK(nd->mode))
MEND_MARK(trim, nd->flags & MGR_IF_TRIM)
MEND_MARK(reap, nd->flags & MGR_IF_REAP)
MEND_MARK(orphan, (nd->flags & (MGR_IF_ORPHAN | MGR_IF_REAP)) == MGR_IF_ORPHAN)
MEND_MARK(head, nd->flags & MGR_IF_STUFFED)

static int on_xattr(struct mend *m)
{
	const struct mgr_xattr_disk *d = m->rec.val;
	struct mend_node *nd = find(m, mgr_get_be64(m->rec.key));
	struct pvfs_str name = { .p = m->rec.key + MGR_INO_KEY,
				 .len = m->rec.klen - MGR_INO_KEY };

	if (!nd || m->rec.klen <= MGR_INO_KEY || m->rec.vlen < sizeof(*d))
		return 1;
	nd->xattr_names += name.len + 1;
	nd->xattr_bytes += m->rec.vlen - sizeof(*d);
	if (ns_str_is(&name, PVFS_ACL_ACCESS))
		nd->xattr_flags |= MGR_IF_ACL;
	else if (ns_str_is(&name, PVFS_ACL_DEFAULT))
		nd->xattr_flags |= MGR_IF_DEFACL;
	else if (ns_str_is(&name, MGR_XATTR_CAPS))
		nd->xattr_flags |= MGR_IF_CAPS;
	return 0;
}

/* ---- what has no name ---- */

static int put_inode(struct mend *m, const struct mgr_inode *in)
{
	struct mgr_inode_disk d;
	u8 key[MGR_INO_KEY];
	u32 n = mgr_inode_encode(in, &d);

	mgr_ino_key(key, in->ino);
	return salvage_put(m->s, MDB_INODE, key, sizeof(key), &d, n);
}

static int get_inode(struct mend *m, u64 ino, struct mgr_inode *in)
{
	struct mgr_inode_disk d;
	u8 key[MGR_INO_KEY];
	int n;

	mgr_ino_key(key, ino);
	n = mdb_get(m->s->db, m->s->txn, MDB_INODE, key, sizeof(key), &d, sizeof(d), 0);
	return n < 0 ? n : mgr_inode_decode(in, ino, &d, n);
}

/* @name as @nd's in directory @dir: a place for its hash is free, or nearly. */
static int put_name(struct mend *m, u64 dir, const char *name, const struct mend_node *nd)
{
	struct mgr_dirent de = { .ino = nd->ino, .gen = nd->gen, .type = nd->mode >> 12,
				 .name = PVFS_STR(name) };
	u64 base = mgr_name_cookie(m->s->super.hash_key, &de.name), cookie;
	u8 key[MGR_PAIR_KEY], val[MGR_DIRENT_MAX], had[MGR_DIRENT_MAX];
	int n;

	for (cookie = max(base, MGR_COOKIE_MIN); cookie < base + 256; cookie++) {
		mgr_pair_key(key, dir, cookie);
		n = mdb_get(m->s->db, m->s->txn, MDB_DIRENT, key, sizeof(key), had, sizeof(had), 0);
		if (n >= 0)
			continue;
		if (n != -ENOENT)
			return n;
		return salvage_put(m->s, MDB_DIRENT, key, sizeof(key), val,
				   mgr_dirent_encode(&de, val));
	}
	return -ENOSPC;
}

/* /lost+found, made when it is needed; with another name if there is one. */
static int need_found(struct mend *m)
{
	struct mgr_inode root, in;
	struct mend_node *nd;
	char name[48];
	int err;

	if (m->found)
		return 0;
	err = get_inode(m, PVFS_ROOT_INO, &root);
	if (err)
		return err;
	in = root;
	in.ino = m->s->next_ino++;
	in.gen = 1;
	in.mode = S_IFDIR | 0700;
	in.uid = in.gid = 0;
	in.flags = 0;
	in.nlink = 2;
	in.entries = 0;
	in.xattr_names = in.xattr_bytes = 0;
	in.acl_version = 0;
	in.parent.ino = root.ino;
	in.parent.gen = root.gen;
	err = put_inode(m, &in);
	/* Its number is the largest: the order stays. */
	err = err ?: add_node(m, &in);
	if (err)
		return err;
	nd = &m->node[m->n - 1];
	snprintf(name, sizeof(name), "lost+found-%llx", ULL(in.ino));
	err = put_name(m, PVFS_ROOT_INO, name, nd);
	if (err)
		return err;	/* NOLINT(clang-analyzer-unix.Malloc): salvage_mend() frees m->node */
	fprintf(m->s->report, "what has no name is in /%s\n", name);
	nd->names = 1;
	nd->named_in = PVFS_ROOT_INO;
	nd->rooted = true;
	find(m, PVFS_ROOT_INO)->entries++;
	find(m, PVFS_ROOT_INO)->subdirs++;
	m->found = in.ino;
	return 0;
}

/* @i: place in m->node, which may move. */
static int to_found(struct mend *m, u64 i)
{
	char name[32];
	int err = need_found(m);
	struct mend_node *nd = &m->node[i], *found = find(m, m->found);

	if (err)
		return err;
	snprintf(name, sizeof(name), "#%llu", ULL(nd->ino));
	err = put_name(m, m->found, name, nd);
	if (err)
		return err;
	salvage_lost(m->s, "the name of inode %llu", ULL(nd->ino));
	nd->names++;
	nd->named_in = m->found;
	found->entries++;
	found->subdirs += S_ISDIR(nd->mode);
	return 0;
}

static int need_root(struct mend *m)
{
	struct mend_node *nd = find(m, PVFS_ROOT_INO);
	struct mgr_inode root;
	int err;

	if (nd && S_ISDIR(nd->mode)) {
		nd->rooted = true;
		return 0;
	}
	salvage_lost(m->s, "the root: made anew");
	mgr_mkfs_root(m->s->conf, &root);
	err = put_inode(m, &root);
	err = err ?: salvage_commit(m->s);
	m->n = 0;
	err = err ?: walk(m, MDB_INODE, on_inode);
	if (!err)
		find(m, PVFS_ROOT_INO)->rooted = true;
	return err;
}

/* Follows the directories up; one that does not end at the root is in a loop, or below one. */
static int check_rooted(struct mend *m, u64 i)
{
	struct mend_node *up = &m->node[i], *nd;
	u8 key[MGR_PAIR_KEY];
	u64 steps = 0;
	int err;

	while (up && !up->rooted && steps++ <= m->n)
		up = find(m, up->named_in);
	if (!up || !up->rooted) {
		nd = &m->node[i];
		mgr_pair_key(key, nd->named_in, nd->named_at);
		err = salvage_put(m->s, MDB_DIRENT, key, sizeof(key), NULL, 0);
		if (err)
			return err;
		up = find(m, nd->named_in);
		up->entries--;
		up->subdirs--;
		nd->names = 0;
		err = to_found(m, i);
		if (err)
			return err;
		up = find(m, m->found);
	}
	for (nd = &m->node[i]; nd != up; nd = find(m, nd->named_in))
		nd->rooted = true;
	return 0;
}

static int name_all(struct mend *m)
{
	u64 i, n = m->n;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		struct mend_node *nd = &m->node[i];

		if (nd->names || nd->ino == PVFS_ROOT_INO)
			continue;
		if (nd->flags & (MGR_IF_ORPHAN | MGR_IF_REAP))
			continue;
		err = to_found(m, i);
	}
	for (i = 0; i < n && !err; i++)
		if (S_ISDIR(m->node[i].mode) && !m->node[i].rooted)
			err = check_rooted(m, i);
	return err;
}

/* ---- the inodes ---- */

static int put_mark(struct mend *m, enum mdb_table tab, const void *key, u32 klen, u32 gen)
{
	struct mgr_mark_disk d;
	u32 n = mgr_mark_encode(gen, &d);

	return salvage_put(m->s, tab, key, klen, &d, n);
}

/* Records that belong to an inode's flags. An orphan's session is none, so that it goes at the start. */
static int put_records(struct mend *m, const struct mend_node *nd, const struct mgr_inode *in)
{
	struct mgr_trim_rec t = { .gen = in->gen, .trunc_gen = in->trunc_gen, .size = in->size };
	u8 key[MGR_PAIR_KEY];
	struct mgr_trim_disk d;
	int err = 0;

	mgr_pair_key(key, in->ino, PVFS_SESSION_ALL);
	if ((in->flags & MGR_IF_REAP) && !nd->reap)
		err = put_mark(m, MDB_REAP, key, MGR_INO_KEY, in->gen);
	else if ((in->flags & MGR_IF_ORPHAN) && !nd->orphan)
		err = put_mark(m, MDB_ORPHAN, key, MGR_PAIR_KEY, in->gen);
	if (!err && (in->flags & MGR_IF_TRIM) && !nd->trim)
		err = salvage_put(m->s, MDB_TRIM, key, MGR_INO_KEY, &d, mgr_trim_encode(&t, &d));
	return err;
}

static int mend_inode(struct mend *m, const struct mend_node *nd)
{
	const u32 xflags = MGR_IF_ACL | MGR_IF_DEFACL | MGR_IF_CAPS;
	struct mgr_inode in, was;
	struct mend_node *dir;
	int err = get_inode(m, nd->ino, &in);

	if (err)
		return err;
	was = in;
	in.nlink = S_ISDIR(in.mode) ? 2 + nd->subdirs : nd->names;
	if (S_ISDIR(in.mode)) {
		in.entries = nd->entries;
		dir = find(m, nd->named_in);
		if (dir && nd->ino != PVFS_ROOT_INO) {
			in.parent.ino = dir->ino;
			in.parent.gen = dir->gen;
		}
	}
	/* The mode's group bits were the ACL's mask: they may be more than the group had. */
	if ((in.flags & MGR_IF_ACL) && !(nd->xattr_flags & MGR_IF_ACL)) {
		salvage_lost(m->s, "the ACL of inode %llu", ULL(in.ino));
		in.mode &= ~070u;
	}
	in.flags = (in.flags & ~xflags) | nd->xattr_flags;
	in.xattr_names = nd->xattr_names;
	in.xattr_bytes = nd->xattr_bytes;
	/* A name was left that an unfinished removal had taken away, or the other way round. */
	if (nd->names)
		in.flags &= ~(MGR_IF_ORPHAN | MGR_IF_REAP);
	if (S_ISLNK(in.mode) && !nd->target)
		salvage_lost(m->s, "the target of symbolic link %llu", ULL(in.ino));
	if ((in.flags & MGR_IF_STUFFED) && in.size && !nd->head)
		salvage_lost(m->s, "the bytes of inode %llu", ULL(in.ino));
	err = put_records(m, nd, &in);
	if (!err && memcmp(&in, &was, sizeof(in)))
		err = put_inode(m, &in);
	return err;
}

/* Marks of inodes that turned out to have a name. */
static int on_stale_mark(struct mend *m)
{
	const struct mend_node *nd = find(m, mgr_get_be64(m->rec.key));

	return nd && nd->names;
}

int salvage_mend(struct salvage *s)
{
	struct mend m = { .s = s, .rec = { .room = MGR_HEAD_MAX } };
	int err;
	u64 i;

	m.rec.val = malloc(m.rec.room);
	if (!m.rec.val)
		return -ENOMEM;
	err = walk(&m, MDB_INODE, on_inode);
	err = err ?: need_root(&m);
	err = err ?: walk(&m, MDB_DIRENT, on_entry);
	err = err ?: walk(&m, MDB_SYMLINK, on_target);
	err = err ?: walk(&m, MDB_XATTR, on_xattr);
	err = err ?: walk(&m, MDB_HEAD, on_head);
	err = err ?: walk(&m, MDB_TRIM, on_trim);
	err = err ?: walk(&m, MDB_REAP, on_reap);
	err = err ?: walk(&m, MDB_ORPHAN, on_orphan);
	err = err ?: name_all(&m);
	err = err ?: walk(&m, MDB_REAP, on_stale_mark);
	err = err ?: walk(&m, MDB_ORPHAN, on_stale_mark);
	for (i = 0; i < m.n && !err; i++)
		err = mend_inode(&m, &m.node[i]);
	err = err ?: salvage_commit(s);
	free(m.node);
	free(m.rec.val);
	return err;
}
