// SPDX-License-Identifier: GPL-2.0
/*
 * check.c - do the tables agree with each other? Used by `pvfs-mgr --check` and by the tests after
 * they tried to break them. Reads everything, changes nothing; nothing else may run.
 *
 *   every entry names an inode of the same generation and type
 *   every inode's link count is the number of its names (directories: 2 + subdirectories)
 *   every directory has one name, its parent is where that name is, its entry count is right, and
 *   it hangs off the root
 *   an inode without names is an orphan or in the reap queue, and has the record that goes with it;
 *   and only then
 *   extended attributes belong to an inode, which counts them rightly and has flags for those it
 *   should; ACLs are such and agree with the mode
 *   every stuffed file that is not empty has a head of its size, and nothing else has one
 *   every symbolic link has a target, every TRIM flag its record, and the other way round
 */
#include "mgr.h"
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

/* What is found out about one inode. */
struct node {
	u64 ino, parent, named_in;
	u64 entries_want, entries;
	u32 gen, flags, mode, nlink;
	u32 names, subdirs;
	u32 xattr_names_want, xattr_names, xattr_bytes_want, xattr_bytes, xattr_flags;
	bool target, trim, reap, orphan;
	u64 size;
	bool head;
	bool rooted;
};

struct check {
	struct mgr *m;
	FILE *f;
	struct mgr_check_result *res;
	struct node *node;	/* ascending by ino */
	u64 n, room;
};

static void problem(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct check *c, const char *fmt, ...)
{
	va_list ap;

	c->res->problems++;
	if (!c->f)
		return;
	va_start(ap, fmt);
	vfprintf(c->f, fmt, ap);
	va_end(ap);
	fputc('\n', c->f);
}

static struct node *find(struct check *c, u64 ino)
{
	u64 lo = 0, hi = c->n;

	while (lo < hi) {
		u64 mid = lo + (hi - lo) / 2;

		if (c->node[mid].ino < ino)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n && c->node[lo].ino == ino ? &c->node[lo] : NULL;
}

/* Calls @fn for every record of a table. */
static int walk(struct check *c, enum mdb_table tab,
		int (*fn)(struct check *c, const struct mdb_rec *rec))
{
	u8 key[1] = { 0 };
	struct mdb_rec rec = { .room = MGR_HEAD_MAX };	/* the largest */
	struct mdb_cursor cur;
	int err;

	rec.val = malloc(rec.room);
	if (!rec.val)
		return -ENOMEM;
	err = mdb_cursor_open(c->m->db, NULL, tab, 0, &cur);
	if (err)
		goto out;
	for (err = mdb_cursor_seek(&cur, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&cur, &rec)) {
		err = fn(c, &rec);
		if (err)
			break;
	}
	mdb_cursor_close(&cur);
	if (err == -ENOENT)
		err = 0;
out:
	free(rec.val);
	return err;
}

static int on_inode(struct check *c, const struct mdb_rec *rec)
{
	struct mgr_inode in;
	struct node *nd;

	if (rec->klen != MGR_INO_KEY || mgr_inode_decode(&in, mgr_get_be64(rec->key), rec->val,
							 rec->vlen)) {
		problem(c, "inode %llu: damaged record",
			(unsigned long long)mgr_get_be64(rec->key));
		return 0;
	}
	if (c->n == c->room) {
		nd = realloc(c->node, (c->room * 2 + 1024) * sizeof(*nd));
		if (!nd)
			return -ENOMEM;
		c->node = nd;
		c->room = c->room * 2 + 1024;
	}
	nd = &c->node[c->n++];
	memset(nd, 0, sizeof(*nd));
	nd->ino = in.ino;
	nd->gen = in.gen;
	nd->flags = in.flags;
	nd->mode = in.mode;
	nd->nlink = in.nlink;
	nd->parent = in.parent.ino;
	nd->entries_want = in.entries;
	nd->size = in.size;
	nd->xattr_names_want = in.xattr_names;
	nd->xattr_bytes_want = in.xattr_bytes;
	c->res->inodes++;
	c->res->dirs += S_ISDIR(in.mode);
	if (S_ISREG(in.mode) && !pvfs_layout_valid(&in.layout, c->m->niods))
		problem(c, "inode %llu: impossible layout", (unsigned long long)in.ino);
	if (S_ISDIR(in.mode) && !ns_layout_ok(&in.layout, c->m->niods))
		problem(c, "directory %llu: impossible layout", (unsigned long long)in.ino);
	return 0;
}

static int on_entry(struct check *c, const struct mdb_rec *rec)
{
	struct mgr_dirent de;
	struct node *dir, *nd;
	u64 base;

	if (mgr_dirent_decode(&de, rec->key, rec->klen, rec->val, rec->vlen)) {
		problem(c, "directory %llu: damaged entry",
			(unsigned long long)mgr_get_be64(rec->key));
		return 0;
	}
	c->res->entries++;
	base = mgr_name_cookie(c->m->hash_key, &de.name);
	if (de.cookie < max(base, MGR_COOKIE_MIN) || de.cookie > base + 255)
		problem(c, "directory %llu: entry %.*s is at the wrong place",
			(unsigned long long)de.dir,
			(int)de.name.len, (const char *)de.name.p);
	dir = find(c, de.dir);
	if (!dir || !S_ISDIR(dir->mode))
		problem(c, "entry %.*s: its directory %llu does not exist", (int)de.name.len,
			(const char *)de.name.p, (unsigned long long)de.dir);
	nd = find(c, de.ino);
	if (!nd || nd->gen != de.gen || nd->mode >> 12 != de.type) {
		problem(c, "directory %llu: entry %.*s names inode %llu, which is not there",
			(unsigned long long)de.dir, (int)de.name.len, (const char *)de.name.p,
			(unsigned long long)de.ino);
		return 0;
	}
	nd->names++;
	nd->named_in = de.dir;
	if (dir) {
		dir->entries++;
		dir->subdirs += S_ISDIR(nd->mode);
	}
	return 0;
}

#define MARK(field, what) \
	static int on_##field(struct check *c, const struct mdb_rec *rec) \
	{ \
		struct node *nd = find(c, mgr_get_be64(rec->key)); \
		if (nd) \
			nd->field = true; \
		else \
			problem(c, what " record of inode %llu, which does not exist", \
				(unsigned long long)mgr_get_be64(rec->key)); \
		return 0; \
	}
MARK(target, "symbolic link")
MARK(trim, "trim")
MARK(reap, "reap")
MARK(orphan, "orphan")

static int on_head(struct check *c, const struct mdb_rec *rec)
{
	unsigned long long ino = mgr_get_be64(rec->key);
	struct node *nd = find(c, ino);
	u32 len = 0;

	if (!nd || !(nd->flags & MGR_IF_STUFFED)) {
		problem(c, "a head of inode %llu, which is not stuffed", ino);
		return 0;
	}
	nd->head = true;
	if (mgr_heads_check(c->m, ino, rec->val, rec->vlen, &len))
		problem(c, "inode %llu: damaged head", ino);
	else if (len != nd->size)
		problem(c, "inode %llu: %llu bytes long, and its head %u", ino,
			(unsigned long long)nd->size, len);
	return 0;
}

/* An ACL that is what it should be, and where. */
static void check_acl(struct check *c, const struct node *nd, u32 flag, const u8 *value, u32 len)
{
	unsigned long long ino = nd->ino;
	u32 mode = nd->mode;
	struct pvfs_acl a;
	bool minimal;

	if (pvfs_acl_decode(&a, value, len) || !a.n) {
		problem(c, "inode %llu: damaged ACL", ino);
		return;
	}
	minimal = pvfs_acl_minimal(&a, &mode);
	if (flag == MGR_IF_ACL && (minimal || mode != nd->mode))
		problem(c, "inode %llu: ACL and mode 0%o do not go together", ino, nd->mode);
	if (flag == MGR_IF_DEFACL && !S_ISDIR(nd->mode))
		problem(c, "inode %llu: a default ACL, but it is no directory", ino);
}

static int on_xattr(struct check *c, const struct mdb_rec *rec)
{
	const struct mgr_xattr_disk *d = rec->val;
	struct pvfs_str name;
	struct node *nd;
	u32 flag = 0;
	u64 ino;

	if (rec->klen <= MGR_INO_KEY || rec->klen > MGR_XATTR_KEY_MAX || rec->vlen < sizeof(*d) ||
	    d->format != MGR_XATTR_FORMAT) {
		problem(c, "damaged extended attribute");
		return 0;
	}
	ino = mgr_get_be64(rec->key);
	name.p = rec->key + MGR_INO_KEY;
	name.len = rec->klen - MGR_INO_KEY;
	nd = find(c, ino);
	if (!nd) {
		problem(c, "extended attribute %.*s of inode %llu, which does not exist",
			(int)name.len, (const char *)name.p, (unsigned long long)ino);
		return 0;
	}
	nd->xattr_names += name.len + 1;
	nd->xattr_bytes += rec->vlen - sizeof(*d);
	if (ns_str_is(&name, PVFS_ACL_ACCESS))
		flag = MGR_IF_ACL;
	else if (ns_str_is(&name, PVFS_ACL_DEFAULT))
		flag = MGR_IF_DEFACL;
	else if (ns_str_is(&name, MGR_XATTR_CAPS))
		flag = MGR_IF_CAPS;
	nd->xattr_flags |= flag;
	if (flag & (MGR_IF_ACL | MGR_IF_DEFACL))
		check_acl(c, nd, flag, (const u8 *)(d + 1), rec->vlen - sizeof(*d));
	return 0;
}

/* Follows the parents up; marks what is on the way. */
static void check_rooted(struct check *c, struct node *nd)
{
	struct node *up = nd;
	u64 steps = 0;

	while (up && !up->rooted && up->ino != PVFS_ROOT_INO && steps++ <= c->n)
		up = find(c, up->parent);
	if (!up || steps > c->n) {
		problem(c, "directory %llu does not hang off the root",
			(unsigned long long)nd->ino);
		return;
	}
	for (; nd != up; nd = find(c, nd->parent))
		nd->rooted = true;
}

static void check_dir(struct check *c, struct node *nd)
{
	unsigned long long ino = nd->ino;

	if (nd->ino == PVFS_ROOT_INO) {
		if (nd->names)
			problem(c, "the root has a name");
	} else if (nd->names != 1) {
		problem(c, "directory %llu has %u names", ino, nd->names);
	} else if (nd->named_in != nd->parent) {
		problem(c, "directory %llu is in %llu, but thinks it is in %llu", ino,
			(unsigned long long)nd->named_in, (unsigned long long)nd->parent);
	}
	if (nd->nlink != 2 + nd->subdirs)
		problem(c, "directory %llu: %u links, should be %u", ino, nd->nlink,
			2 + nd->subdirs);
	if (nd->entries != nd->entries_want)
		problem(c, "directory %llu: counts %llu entries, has %llu", ino,
			(unsigned long long)nd->entries_want, (unsigned long long)nd->entries);
	check_rooted(c, nd);
}

static void check_node(struct check *c, struct node *nd)
{
	unsigned long long ino = nd->ino;

	if (S_ISDIR(nd->mode)) {
		check_dir(c, nd);
	} else if (nd->nlink != nd->names) {
		problem(c, "inode %llu: %u links, %u names", ino, nd->nlink, nd->names);
	}
	if (nd->orphan != !!(nd->flags & MGR_IF_ORPHAN) ||
	    nd->reap != !!(nd->flags & MGR_IF_REAP) ||
	    (nd->orphan && nd->reap))
		problem(c, "inode %llu: flags 0x%x do not fit its records", ino, nd->flags);
	if (!S_ISDIR(nd->mode) && (nd->nlink == 0) != (nd->orphan || nd->reap))
		problem(c, "inode %llu: %u links, and %s waiting for removal", ino, nd->nlink,
			nd->orphan || nd->reap ? "is" : "is not");
	if (nd->target != !!S_ISLNK(nd->mode))
		problem(c, "inode %llu: symbolic link and target do not go together", ino);
	if ((nd->flags & MGR_IF_STUFFED) && nd->size && !nd->head)
		problem(c, "inode %llu: stuffed, and without its head", ino);
	if (nd->trim != !!(nd->flags & MGR_IF_TRIM))
		problem(c, "inode %llu: flag and record of its truncation do not go together", ino);
	if (nd->xattr_names != nd->xattr_names_want || nd->xattr_bytes != nd->xattr_bytes_want ||
	    nd->xattr_flags != (nd->flags & (MGR_IF_ACL | MGR_IF_DEFACL | MGR_IF_CAPS)))
		problem(c, "inode %llu: counts and flags do not fit its extended attributes", ino);
	c->res->orphans += nd->orphan;
	c->res->reap += nd->reap;
}

static int walk_all(struct mgr_op *op, void *arg)
{
	struct check *c = arg;
	int err;

	memset(c->res, 0, sizeof(*c->res));
	c->n = 0;
	err = walk(c, MDB_INODE, on_inode);
	err = err ?: walk(c, MDB_DIRENT, on_entry);
	err = err ?: walk(c, MDB_SYMLINK, on_target);
	err = err ?: walk(c, MDB_XATTR, on_xattr);
	err = err ?: walk(c, MDB_HEAD, on_head);
	err = err ?: walk(c, MDB_TRIM, on_trim);
	err = err ?: walk(c, MDB_REAP, on_reap);
	return err ?: walk(c, MDB_ORPHAN, on_orphan);
}

int mgr_check(struct mgr *m, FILE *f, struct mgr_check_result *ret)
{
	struct check c = { .m = m, .f = f, .res = ret };
	u64 i;
	int err;

	err = mgr_bg_do(m, walk_all, &c);
	if (!err && !find(&c, PVFS_ROOT_INO))
		problem(&c, "there is no root");
	for (i = 0; i < c.n && !err; i++)
		check_node(&c, &c.node[i]);
	free(c.node);
	return err;
}
