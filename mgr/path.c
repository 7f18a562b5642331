// SPDX-License-Identifier: GPL-2.0
/*
 * path.c - what an inode is called, for the log: "inode 4711" helps nobody to find a file.
 *
 * Only directories know where they are, so the names of a file are looked for in all of them. That
 * takes long on a large volume: for threads in the background, seldom, and for several inodes at
 * once. Nothing is locked, and names may change meanwhile.
 */
#include "mgr.h"

#define CHUNK 10000u		/* entries; few enough to let a recovery in between */

/* Entries from @key on, to the end of directory @last. */
struct path_search {
	u8 key[MGR_PAIR_KEY];
	u64 last;
	struct mgr_found *f;
	u32 n;
	u32 left;		/* of @f, not found yet */
	bool end;
};

static void match(struct path_search *s, const struct mgr_dirent *de)
{
	u32 i;

	for (i = 0; i < s->n; i++) {
		if (s->f[i].ino != de->ino || s->f[i].dir)
			continue;
		s->f[i].dir = de->dir;
		memcpy(s->f[i].name, de->name.p, de->name.len);
		s->f[i].name[de->name.len] = 0;
		s->left--;
	}
}

static int search_fn(struct mgr_op *op, void *arg)
{
	struct path_search *s = arg;
	u8 val[MGR_DIRENT_MAX];
	struct mdb_rec rec = { .val = val, .room = sizeof(val) };
	struct mgr_dirent de;
	struct mdb_cursor c;
	u32 n = 0;
	int err;

	err = mdb_cursor_open(op->m->db, NULL, MDB_DIRENT, 0, &c);
	if (err)
		return err;
	err = mdb_cursor_seek(&c, s->key, sizeof(s->key), &rec);
	for (; !err && s->left && n < CHUNK; n++, err = mdb_cursor_next(&c, &rec)) {
		if (mgr_get_be64(rec.key) > s->last)
			break;
		if (!mgr_dirent_decode(&de, rec.key, rec.klen, rec.val, rec.vlen))
			match(s, &de);
	}
	mdb_cursor_close(&c);
	if (err && err != -ENOENT)
		return err;
	s->end = n < CHUNK || err;
	if (!s->end)
		memcpy(s->key, rec.key, sizeof(s->key));
	return 0;
}

static int search_some(struct mgr_op *op, void *arg)
{
	return mgr_run(op, search_fn, arg, MGR_RUN_READ);
}

static int search(struct mgr *m, u64 first, u64 last, struct mgr_found *f, u32 n)
{
	struct path_search s = { .last = last, .f = f, .n = n, .left = n };
	int err;

	mgr_pair_key(s.key, first, 0);
	do {
		err = mgr_bg_wait(m, 0) ? -ECANCELED : mgr_bg_do(m, search_some, &s);
	} while (!err && !s.end);
	return err;
}

int mgr_find_names(struct mgr *m, struct mgr_found *f, u32 n)
{
	return search(m, 0, ~0ull, f, n);
}

static int parent_fn(struct mgr_op *op, void *arg)
{
	struct mgr_found *f = arg;
	struct mgr_inode in;
	int err = ns_inode_get(op, f->ino, 0, &in);

	f->dir = err ? 0 : in.parent.ino;
	return err == -ESTALE ? 0 : err;
}

static int parent_of(struct mgr_op *op, void *arg)
{
	return mgr_run(op, parent_fn, arg, MGR_RUN_READ);
}

/* Puts "/name" in front of what is in @path from @at on. Return: where that begins. */
static u32 prepend(char *path, u32 at, const char *name)
{
	u32 n = strlen(name), i;

	at -= n + 1;
	path[at] = '/';
	for (i = 0; i < n; i++)
		path[at + 1 + i] = (u8)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
	return at;
}

int mgr_path(struct mgr *m, const struct mgr_found *f, char path[MGR_PATH_ROOM])
{
	struct mgr_found up = *f;
	u32 at = MGR_PATH_ROOM - 1;
	u64 parent;
	int err;

	path[at] = 0;
	if (!f->dir)
		strcpy(path, "without a name");
	while (up.dir) {
		at = prepend(path, at, up.name);
		if (up.dir == PVFS_ROOT_INO)
			break;
		if (at < PVFS_NAME_MAX + 5) {	/* no room for another */
			at -= 3;
			memcpy(path + at, "...", 3);
			break;
		}
		up = (struct mgr_found){ .ino = up.dir };
		err = mgr_bg_do(m, parent_of, &up);
		parent = up.dir;
		up.dir = 0;
		if (!err && parent)
			err = search(m, parent, parent, &up, 1);
		if (err)
			return err;
	}
	if (f->dir)
		memmove(path, path + at, MGR_PATH_ROOM - at);
	return 0;
}
