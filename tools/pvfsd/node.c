// SPDX-License-Identifier: GPL-2.0
/*
 * node.c - the inodes that the kernel knows: from the first answer that names one until it has
 * forgotten all of them.
 */
#include "pvfsd.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096u

struct node {
	struct node *next;
	struct pvfs_fh fh;
	uint64_t lookups;
	char *target;		/* of a symbolic link, if it came along; it never changes */
	struct stat last;	/* when it was looked up last */
};

static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *nodes[BUCKETS];	/* protected by it */

static struct node **find(uint64_t ino)
{
	struct node **p = &nodes[ino % BUCKETS];

	while (*p && (*p)->fh.ino != ino)
		p = &(*p)->next;
	return p;
}

int node_remember(const struct pvfs_stat *st, const char *target)
{
	struct node **p, *n;

	pthread_mutex_lock(&nodes_lock);
	p = find(st->fh.ino);
	if (!*p)
		*p = calloc(1, sizeof(**p));
	n = *p;
	if (n) {
		n->fh = st->fh;
		n->last = st->st;
		n->lookups++;
		if (!n->target && target && *target)
			n->target = strdup(target);
	}
	pthread_mutex_unlock(&nodes_lock);
	return n ? 0 : -ENOMEM;
}

void node_forget(uint64_t ino, uint64_t count)
{
	struct node **p, *n;

	pthread_mutex_lock(&nodes_lock);
	p = find(ino);
	n = *p;
	if (n && n->lookups <= count) {
		*p = n->next;
		free(n->target);
		free(n);
	} else if (n) {
		n->lookups -= count;
	}
	pthread_mutex_unlock(&nodes_lock);
}

struct pvfs_fh node_fh(fuse_ino_t ino)
{
	struct pvfs_fh fh = { .ino = ino };
	struct node *n;

	if (ino == FUSE_ROOT_ID)
		return root;
	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	if (n)
		fh = n->fh;
	pthread_mutex_unlock(&nodes_lock);
	return fh;
}

size_t node_target(fuse_ino_t ino, char target[PVFS_TARGET_ROOM])
{
	struct node *n;

	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	strcpy(target, n && n->target ? n->target : "");
	pthread_mutex_unlock(&nodes_lock);
	return strlen(target);
}

int node_gone_directory(fuse_ino_t ino, struct stat *ret)
{
	struct node *n;
	int is;

	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	is = n && S_ISDIR(n->last.st_mode);
	if (is)
		*ret = n->last;
	pthread_mutex_unlock(&nodes_lock);
	ret->st_nlink = 0;
	return is;
}
