// SPDX-License-Identifier: GPL-2.0
/*
 * salvage.c - `pvfs-mgr --salvage NEWDIR`: a new store made of what is readable in a damaged one.
 *
 * First the old database is recovered, if that is possible: its files are then as young as its log.
 * If not, they are taken as they are. Then each table's file is read page by page, without its tree:
 * a leaf that is sound gives its records wherever it hangs. Where recovery stopped in the middle of a
 * split a record may be on two leaves; the one that was changed last counts.
 *
 * Nobody has a session with the new store: all clients from before are evicted. Their replies are not
 * taken over. The old store is left as it is.
 */
#include "bdbfiles.h"
#include "bdbpage.h"
#include "mgr.h"
#include "salvage.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TXN_CHANGES 500u	/* in one transaction */
#define SESSIONS_AHEAD (1u << 20)	/* that may have been opened, if nothing tells how many were */
#define INOS_AHEAD (1u << 20)

/* A table's file while it is read. */
struct scan {
	struct salvage *s;
	enum mdb_table tab;
	char path[4300];
	int fd;
	u64 records, damaged;	/* pages */
	u8 key[MDB_KEY_MAX];
	u8 val[MGR_HEAD_MAX];
};

void salvage_lost(struct salvage *s, const char *fmt, ...)
{
	va_list ap;

	s->lost++;
	va_start(ap, fmt);
	vfprintf(s->report, fmt, ap);
	va_end(ap);
	fputc('\n', s->report);
}

int salvage_commit(struct salvage *s)
{
	struct mdb_txn *t = s->txn;

	s->txn = NULL;
	s->in_txn = 0;
	return t ? mdb_commit(s->db, t) : 0;
}

int salvage_put(struct salvage *s, enum mdb_table tab, const void *key, u32 klen, const void *val,
		u32 vlen)
{
	int err = s->txn ? 0 : mdb_begin(s->db, &s->txn);

	if (err)
		return err;
	err = val ? mdb_put(s->db, s->txn, tab, key, klen, val, vlen) :
		    mdb_del(s->db, s->txn, tab, key, klen);
	if (err == -ENOENT)
		err = 0;
	if (!err && ++s->in_txn >= TXN_CHANGES)
		err = salvage_commit(s);
	return err;
}

/* ---- records ---- */

static u64 number(const void *val, u32 len)
{
	return len == 8 ? get_unaligned_le64(val) : 0;
}

static int on_meta(struct scan *c, u32 klen, u32 vlen)
{
	struct salvage *s = c->s;
	struct mgr_super super;

	if (klen == 5 && !memcmp(c->key, "super", 5)) {
		if (mgr_super_decode(&super, c->val, vlen) ||
		    memcmp(super.uuid, s->conf->uuid, sizeof(super.uuid)))
			return -EUCLEAN;
		s->super = super;
		s->have_super = true;
	} else if (klen == 8 && !memcmp(c->key, "next_ino", 8)) {
		s->next_ino = number(c->val, vlen);
	} else if (klen == 12 && !memcmp(c->key, "next_session", 12)) {
		s->next_session = number(c->val, vlen);
	}
	return 0;
}

/* A name at its place, or with another key for the hash at another. */
static int put_entry(struct scan *c, const struct mgr_dirent *de, u32 klen, u32 vlen)
{
	u64 base = max(mgr_name_cookie(c->s->super.hash_key, &de->name), MGR_COOKIE_MIN), cookie;
	u8 key[MGR_PAIR_KEY], had[MGR_DIRENT_MAX];
	int n;

	if (c->s->have_super)
		return salvage_put(c->s, MDB_DIRENT, c->key, klen, c->val, vlen);
	for (cookie = base; cookie < (base & ~255ull) + 256; cookie++) {
		mgr_pair_key(key, de->dir, cookie);
		n = mdb_get(c->s->db, c->s->txn, MDB_DIRENT, key, sizeof(key), had, sizeof(had), 0);
		if (n >= 0 && (n != (int)vlen || memcmp((struct mgr_dirent_disk *)had + 1, de->name.p,
							de->name.len)))
			continue;	/* another name with this hash */
		return salvage_put(c->s, MDB_DIRENT, key, sizeof(key), c->val, vlen);
	}
	return -EUCLEAN;
}

/* Return: 0, -EUCLEAN: it is none of ours, or what keeps it from being written. */
static int on_record(struct scan *c, u32 klen, u32 vlen)
{
	struct salvage *s = c->s;
	struct mgr_dirent de;
	struct mgr_inode in;
	u64 first;

	if (c->tab == MDB_META)
		return on_meta(c, klen, vlen);
	if (klen < 8)
		return -EUCLEAN;
	first = mgr_get_be64(c->key);
	switch (c->tab) {
	case MDB_INODE:
		if (klen != MGR_INO_KEY || mgr_inode_decode(&in, first, c->val, vlen))
			return -EUCLEAN;
		s->max_ino = max(s->max_ino, first);
		break;
	case MDB_DIRENT:
		if (mgr_dirent_decode(&de, c->key, klen, c->val, vlen))
			return -EUCLEAN;
		s->max_ino = max(s->max_ino, de.ino);
		return put_entry(c, &de, klen, vlen);
	case MDB_SESSION:
		first &= ~PVFS_SESSION_ALL;
		/* fallthrough */
	case MDB_SLOT:
		s->max_session = max(s->max_session, first);
		return 0;
	default:
		break;
	}
	return salvage_put(s, c->tab, c->key, klen, c->val, vlen);
}

/* ---- pages ---- */

static int read_page(struct scan *c, u32 pgno, u8 page[BDB_PAGE])
{
	ssize_t n = pread(c->fd, page, BDB_PAGE, (off_t)pgno * BDB_PAGE);

	if (n < 0)
		return -errno;
	if (!n)
		return -ENOENT;
	return n == BDB_PAGE && bdb_page_sound(page, pgno) ? 0 : -EUCLEAN;
}

/* An item's bytes, wherever they are. Return: how many, or -EUCLEAN. */
static int item_bytes(struct scan *c, const struct bdb_item *it, u8 *room, u32 n)
{
	u8 page[BDB_PAGE];
	struct bdb_item part;
	u32 done, pgno = it->pgno;

	if (it->len > n)
		return -EUCLEAN;
	if (it->p) {
		memcpy(room, it->p, it->len);
		return it->len;
	}
	for (done = 0; done < it->len; done += part.len) {
		if (!pgno || read_page(c, pgno, page) || !bdb_overflow_part(page, &part, &pgno) ||
		    !part.len || part.len > it->len - done)
			return -EUCLEAN;
		memcpy(room + done, part.p, part.len);
	}
	return it->len;
}

static int on_leaf(struct scan *c, const u8 *page, u32 pgno)
{
	u32 i, n = bdb_leaf_pairs(page);
	struct bdb_item key, val;
	int err, klen, vlen;

	for (i = 0; i < n; i++) {
		err = bdb_leaf_pair(page, i, &key, &val);
		if (err == -ENOENT)
			continue;
		if (!err) {
			klen = item_bytes(c, &key, c->key, sizeof(c->key));
			vlen = item_bytes(c, &val, c->val, sizeof(c->val));
			err = klen < 0 || vlen < 0 ? -EUCLEAN : on_record(c, klen, vlen);
		}
		if (err && err != -EUCLEAN)
			return err;
		if (err)
			salvage_lost(c->s, "%s: page %u: a record is damaged", c->path, pgno);
		c->records += !err;
	}
	return 0;
}

struct leaf {
	u64 lsn;
	u32 pgno;
};

static int leaf_cmp(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	return x->lsn < y->lsn ? -1 : x->lsn > y->lsn;
}

/* The leaves that are sound, the one first that was changed first. */
static int find_leaves(struct scan *c, struct leaf **ret, u32 *ret_n)
{
	struct leaf *l = NULL, *more;
	u8 page[BDB_PAGE];
	u32 pgno, n = 0;
	int err;

	for (pgno = 0;; pgno++) {
		err = read_page(c, pgno, page);
		if (err == -ENOENT)
			break;
		if (err) {
			c->damaged++;
			salvage_lost(c->s, "%s: page %u is damaged", c->path, pgno);
			continue;
		}
		if (bdb_page_type(page) != BDB_PAGE_LEAF)
			continue;
		if (!(n & (n + 1023) & 1023)) {
			more = realloc(l, (n + 1024) * sizeof(*l));
			if (!more) {
				free(l);
				return -ENOMEM;
			}
			l = more;
		}
		l[n++] = (struct leaf){ .lsn = bdb_page_lsn(page), .pgno = pgno };
	}
	if (n)
		qsort(l, n, sizeof(*l), leaf_cmp);
	*ret = l;
	*ret_n = n;
	return 0;
}

static int scan_table(struct salvage *s, const char *dir, enum mdb_table tab)
{
	struct scan *c = calloc(1, sizeof(*c));
	struct leaf *leaves = NULL;
	u8 page[BDB_PAGE];
	u32 i, n = 0;
	int err;

	if (!c)
		return -ENOMEM;
	c->s = s;
	c->tab = tab;
	snprintf(c->path, sizeof(c->path), "%s/%s", dir, mdb_bdb_file(tab));
	c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0) {
		/* Those of sessions are put aside now and then. */
		if (tab != MDB_SESSION && tab != MDB_SLOT)
			salvage_lost(s, "%s: %s", c->path, strerror(errno));
		free(c);
		return 0;
	}
	err = find_leaves(c, &leaves, &n);
	for (i = 0; i < n && !err; i++)
		if (!read_page(c, leaves[i].pgno, page))
			err = on_leaf(c, page, leaves[i].pgno);
	fprintf(s->report, "%s: %llu records, %llu damaged pages\n", mdb_bdb_file(tab),
		(unsigned long long)c->records, (unsigned long long)c->damaged);
	free(leaves);
	close(c->fd);
	free(c);
	return err ?: salvage_commit(s);
}

/* ---- the rest of a store ---- */

static int put_number(struct salvage *s, const char *name, u64 value)
{
	__le64 v = cpu_to_le64(value);

	return salvage_put(s, MDB_META, name, strlen(name), &v, sizeof(v));
}

static int need_super(struct salvage *s)
{
	if (s->have_super)
		return 0;
	salvage_lost(s, "the super record: made anew from the configuration");
	memcpy(s->super.uuid, s->conf->uuid, sizeof(s->super.uuid));
	s->super.niods = s->conf->niods;
	return getrandom(s->super.hash_key, sizeof(s->super.hash_key), 0) ==
	       sizeof(s->super.hash_key) ? 0 : -EIO;
}

/* What comes with the first request after the start of a mgr, in the store's own words. */
static int put_meta(struct salvage *s)
{
	struct mgr_session_rec all = { .evicted = true };
	u8 key[MGR_INO_KEY], val[MGR_SESSION_MAX];
	struct mgr_super_disk d;
	int err;

	if (!s->next_session)
		s->next_session = s->max_session + SESSIONS_AHEAD;
	mgr_ino_key(key, PVFS_SESSION_ALL | (s->next_session - 1));
	err = salvage_put(s, MDB_SESSION, key, sizeof(key), val, mgr_session_encode(&all, val));
	err = err ?: salvage_put(s, MDB_META, "super", 5, &d, mgr_super_encode(&s->super, &d));
	err = err ?: put_number(s, "next_ino", s->next_ino);
	err = err ?: put_number(s, "next_session", s->next_session);
	err = err ?: put_number(s, "files", 1);
	err = err ?: put_number(s, "clean", 0);	/* they are counted at the start */
	return err ?: salvage_commit(s);
}

static int copy_file(int from, const char *path, int to)
{
	int in = openat(from, path, O_RDONLY | O_CLOEXEC), out, err = 0;
	char buf[16384];
	ssize_t n = 0;

	if (in < 0)
		return -errno;
	out = openat(to, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0)
		err = -errno;
	while (!err && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			err = -EIO;
	if (!err && (n < 0 || fsync(out)))
		err = -errno;
	if (out >= 0)
		close(out);
	close(in);
	return err;
}

/* The heads that are in files beside the database. */
static int copy_heads(struct salvage *s, const char *newdir)
{
	struct mgr_headfiles old = { .dfd = -1 }, new = { .dfd = -1 };
	char path[MGR_HEADFILE_NAME], dir[8];
	struct mdb_rec rec = { .room = MGR_HEAD_MAX, .val = malloc(MGR_HEAD_MAX) };
	struct mgr_headfile f;
	struct mdb_cursor c;
	u8 key[1] = { 0 };
	int err = rec.val ? 0 : -ENOMEM;

	err = err ?: mgr_headfiles_open(&old, s->conf->mgr_store, false, false);
	err = err ?: mgr_headfiles_open(&new, newdir, old.dfd >= 0, false);
	if (err || old.dfd < 0)
		goto out;
	err = mdb_cursor_open(s->db, NULL, MDB_HEAD, 0, &c);
	if (err)
		goto out;
	for (err = mdb_cursor_seek(&c, key, sizeof(key), &rec); !err;
	     err = mdb_cursor_next(&c, &rec)) {
		if (mgr_headfile_decode(&f, mgr_get_be64(rec.key), rec.val, rec.vlen))
			continue;	/* its bytes are in the record */
		mgr_headfile_path(&f, path);
		snprintf(dir, sizeof(dir), "%.3s", path);
		mkdirat(new.dfd, dir, 0700);
		if (linkat(old.dfd, path, new.dfd, path, 0) && errno != EEXIST &&
		    copy_file(old.dfd, path, new.dfd))
			salvage_lost(s, "inode %llu: the file with its bytes: %s",
				     (unsigned long long)f.ino, strerror(errno));
	}
	mdb_cursor_close(&c);
	if (err == -ENOENT)
		err = syncfs(new.dfd) ? -errno : 0;
out:
	mgr_headfiles_close(&old);
	mgr_headfiles_close(&new);
	free(rec.val);
	return err;
}

/* The directory may have been there, and root's. What is made in it belongs to the old store's owner anyway. */
static int give_dir(const char *newdir, const char *old, char *err, size_t errlen)
{
	struct stat st;

	if (geteuid())
		return 0;
	if (!stat(old, &st) && !chown(newdir, st.st_uid, st.st_gid))
		return 0;
	snprintf(err, errlen, "%s: can't be given to the owner of %s: %s", newdir, old, strerror(errno));
	return -errno;
}

static int make_store(const struct pvfs_conf *conf, const char *newdir, char *err, size_t errlen,
		      struct mdb **ret)
{
	struct mdb_params p = { .cache = max(conf->db_cache, (u64)16 << 20),
				.durability = PVFS_DURABLE_SYNC, .create = true };
	struct pvfs_storeid id = { .format = PVFS_STORE_FORMAT, .role = PVFS_ROLE_MGR };
	char dir[4300];
	int e;

	memcpy(id.uuid, conf->uuid, sizeof(id.uuid));
	memcpy(id.name, conf->name, sizeof(id.name));
	e = pvfs_storeid_create(newdir, &id, err, errlen);
	e = e ?: give_dir(newdir, conf->mgr_store, err, errlen);
	if (e)
		return e;
	snprintf(dir, sizeof(dir), "%s/db", newdir);
	if (mkdir(dir, 0700)) {
		snprintf(err, errlen, "%s: %s", dir, strerror(errno));
		return -errno;
	}
	p.dir = dir;
	e = mdb_bdb_open(&p, ret);
	if (e)
		snprintf(err, errlen, "%s: %s", dir, strerror(-e));
	return e;
}

int mgr_salvage(const struct pvfs_conf *conf, const char *newdir, FILE *report, char *err,
		size_t errlen)
{
	static const enum mdb_table order[] = {
		MDB_META, MDB_SESSION, MDB_SLOT, MDB_INODE, MDB_DIRENT, MDB_SYMLINK, MDB_XATTR,
		MDB_HEAD, MDB_REAP, MDB_ORPHAN, MDB_TRIM,
	};
	struct salvage s = { .conf = conf, .report = report };
	char dir[4200];
	u32 i;
	int e;

	e = mgr_db_dir(conf, dir, sizeof(dir));
	if (e)
		return e;
	/* What can't be read for want of rights is not lost. */
	e = bdbfiles_check_access(dir, NULL);
	if (e == -EACCES || e == -EPERM)
		return e;
	e = make_store(conf, newdir, err, errlen, &s.db);
	if (e)
		return e;
	if (mdb_bdb_recover(dir, conf->db_cache))
		salvage_lost(&s, "%s: the log can't be applied: the last changes may be missing", dir);
	for (i = 0; i < ARRAY_SIZE(order) && !e; i++) {
		e = scan_table(&s, dir, order[i]);
		if (order[i] == MDB_META && !e)
			e = need_super(&s);
	}
	if (!s.next_ino)
		s.next_ino = s.max_ino + INOS_AHEAD;
	s.next_ino = max(s.next_ino, s.max_ino + 1);
	e = e ?: salvage_mend(&s);
	e = e ?: put_meta(&s);
	e = e ?: copy_heads(&s, newdir);
	e = e ?: mdb_sync(s.db);
	if (e && s.txn)
		mdb_abort(s.db, s.txn);
	mdb_close(s.db);
	if (e)
		snprintf(err, errlen, "%s: %s", newdir, strerror(e == -ERESTART ? EIO : -e));
	else
		fprintf(report, "%llu things were lost; make %s the store of the manager\n",
			(unsigned long long)s.lost, newdir);
	return e == -ERESTART ? -EIO : e;
}
