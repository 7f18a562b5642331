// SPDX-License-Identifier: GPL-2.0-only
/*
 * names_model.c - the tree of nameops, and how the kernel walks a path through it.
 */
#include "nameops.h"

struct name_state names;
struct rnd name_rnd;

struct node *node_new(mode_t mode, struct node *dir)
{
	struct node *n = rnd_alloc(sizeof(*n));

	n->mode = mode;
	if (dir && dir->mode & S_ISGID) {
		n->gid = dir->gid;
		if (S_ISDIR(mode))
			n->mode |= S_ISGID;
	}
	if (S_ISREG(mode))
		n->bytes = rnd_alloc(DATA_MAX);
	n->mtime_state = MTIME_RECENT;
	n->next = names.all;
	names.all = n;
	names.nodes++;
	return n;
}

void node_settle(struct node *n)
{
	struct node **p;

	if (n->links || n->handles)
		return;
	for (p = &names.all; *p != n; p = &(*p)->next)
		;
	*p = n->next;
	names.nodes--;
	free(n->bytes);
	free(n);
}

/* The part of a walk from @dir on; links count through all of it. */
static int walk_from(struct node *dir, const char *path, bool follow, struct walk *w)
{
	struct node *cur = dir, *n;

	for (;;) {
		size_t len = strcspn(path, "/");
		bool last = !path[len];

		if (!S_ISDIR(cur->mode))
			return ENOTDIR;
		w->dir = cur;
		w->name = -1;
		if (len == 1 && path[0] == '.') {
			n = cur;
		} else if (len == 2 && path[0] == '.') {
			if (cur == names.root)
				w->escaped = true;
			n = cur == names.root ? cur : cur->parent;
		} else {
			w->name = path[0] - 'a';
			n = cur->entry[w->name];
		}
		w->node = n;
		if (n && S_ISLNK(n->mode) && (!last || follow)) {
			int err;

			if (++w->links > LINKS_MAX)
				return ELOOP;
			err = walk_from(cur, n->target, true, w);
			if (err)
				return err;
			n = w->node;
		}
		if (last)
			return 0;
		if (!n)
			return ENOENT;
		cur = n;
		path += len + 1;
	}
}

int walk_path(const char *path, bool follow, struct walk *w)
{
	memset(w, 0, sizeof(*w));
	return walk_from(names.root, path, follow, w);
}

void dir_changed(struct node *dir)
{
	dir->mtime_state = MTIME_RECENT;
}

void dir_set(struct node *dir, int name, struct node *n)
{
	dir->entry[name] = n;
	if (n && S_ISDIR(n->mode))
		n->parent = dir;
	dir_changed(dir);
}

bool dir_empty(const struct node *dir)
{
	int i;

	for (i = 0; i < NAMES; i++)
		if (dir->entry[i])
			return false;
	return true;
}

bool is_above(const struct node *a, const struct node *n)
{
	for (; n; n = n->parent)
		if (n == a)
			return true;
	return false;
}

int node_depth(const struct node *n)
{
	int d = 0;

	for (; n != names.root; n = n->parent)
		d++;
	return d;
}

int node_height(const struct node *n)
{
	int i, h = 0;

	if (!S_ISDIR(n->mode))
		return 0;
	for (i = 0; i < NAMES; i++)
		if (n->entry[i] && node_height(n->entry[i]) >= h)
			h = node_height(n->entry[i]) + 1;
	return h;
}

int node_nlink(const struct node *n)
{
	int i, links = 2;

	if (!S_ISDIR(n->mode))
		return n->links;
	if (!n->links)
		return 0;
	for (i = 0; i < NAMES; i++)
		if (n->entry[i] && S_ISDIR(n->entry[i]->mode))
			links++;
	return links;
}

void file_resize(struct node *n, int size)
{
	if (size < n->size)
		memset(n->bytes + size, 0, n->size - size);
	n->size = size;
}
