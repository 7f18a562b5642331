// SPDX-License-Identifier: GPL-2.0
/*
 * listing.c - listings that are kept: what READDIR brought of a directory, while its names are
 * leased.
 *
 * One is kept when it was read from the first entry to the last under one lease of the directory,
 * and this node began no change of it meanwhile. It is good until either is so no more; what others
 * change ends the lease before it is made. What it says of the entries is their names, inodes and
 * types, which a change of the directory alone can change. Their attributes are in the inodes.
 *
 * All of a volume share a bounded amount of memory: those that nobody listed for the longest time
 * go.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "vfs.h"

/* Longer ones are asked for each time: some 30,000 entries. */
#define LISTING_MAX (4u << 20)

void pvfs_listings_init(struct pvfs_volume *vol)
{
	spin_lock_init(&vol->listings.lock);
	INIT_LIST_HEAD(&vol->listings.list);
	/* 1/256 of the memory */
	vol->listings.max = (u64)totalram_pages() << PAGE_SHIFT >> 8;
}

/**
 * pvfs_listing_begin - a directory is about to be read
 * @dir: the directory
 * @owns: set to how many changes of our own have begun; for pvfs_listing_add()
 */
void pvfs_listing_begin(struct inode *dir, u64 *owns)
{
	struct pvfs_inode *pi = PVFS_I(dir);

	spin_lock(&pi->lock);
	*owns = pi->own.begun;
	spin_unlock(&pi->lock);
}

/**
 * pvfs_listing_add - put an answer behind those that came before it
 * @l: those; given up; NULL: it is the first
 * @owns: from pvfs_listing_begin()
 * @token: of the lease under which the answer may be believed
 * @raw: the entries, as they came
 * @len: bytes of them
 * @count: how many
 *
 * Return: all of them, with a reference; NULL: it is not to be kept.
 */
struct pvfs_listing *pvfs_listing_add(struct pvfs_listing *l, u64 owns, unsigned long token,
				      const u8 *raw, u32 len, u32 count)
{
	struct pvfs_listing *ret = NULL;
	u32 had = l ? l->len : 0, room;

	if (!token || (l && l->token != token) || len > LISTING_MAX - had)
		goto out;
	if (!l || len > l->room - had) {
		/* So that each byte is moved twice at most; most directories are one answer. */
		room = l ? min(2 * (had + len), LISTING_MAX) : len;
		ret = kvmalloc(struct_size(ret, raw, room), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!ret)
			goto out;
		refcount_set(&ret->ref, 1);
		INIT_LIST_HEAD(&ret->link);
		ret->pi = NULL;
		ret->token = token;
		ret->owns = owns;
		ret->room = room;
		ret->count = l ? l->count : 0;
		ret->len = had;
		if (l)
			memcpy(ret->raw, l->raw, had);
	} else {
		swap(ret, l);
	}
	memcpy(ret->raw + had, raw, len);
	ret->len += len;
	ret->count += count;
out:
	pvfs_listing_put(l);
	return ret;
}

void pvfs_listing_put(struct pvfs_listing *l)
{
	if (l && refcount_dec_and_test(&l->ref))
		kvfree(l);
}

/* Takes one out, whose reference is the caller's then. vol->listings.lock is held. */
static void listing_unlink(struct pvfs_volume *vol, struct pvfs_listing *l)
{
	list_del_init(&l->link);
	vol->listings.bytes -= l->room;
	WRITE_ONCE(l->pi->listing, NULL);
	l->pi = NULL;
}

/* The first of @gone, taken off; NULL: there is none. */
static struct pvfs_listing *listing_pop(struct list_head *gone)
{
	struct pvfs_listing *l = list_first_entry_or_null(gone, struct pvfs_listing, link);

	if (l)
		list_del_init(&l->link);
	return l;
}

/**
 * pvfs_listing_keep - a listing is complete
 * @dir: the directory
 * @l: the listing; the reference stays the caller's
 */
void pvfs_listing_keep(struct inode *dir, struct pvfs_listing *l)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_listings *all = &vol->listings;
	struct pvfs_inode *pi = PVFS_I(dir);
	LIST_HEAD(gone);
	struct pvfs_listing *old;

	if (l->room > all->max)
		return;
	refcount_inc(&l->ref);
	spin_lock(&all->lock);
	while ((old = pi->listing) ||
	       (all->bytes + l->room > all->max &&
		(old = list_first_entry(&all->list, struct pvfs_listing, link)))) {
		listing_unlink(vol, old);
		list_add(&old->link, &gone);
	}
	l->pi = pi;
	WRITE_ONCE(pi->listing, l);
	all->bytes += l->room;
	list_add_tail(&l->link, &all->list);
	spin_unlock(&all->lock);
	while ((old = listing_pop(&gone)))
		pvfs_listing_put(old);
}

/**
 * pvfs_listing_get - the names of a directory, if they are known
 * @dir: the directory
 *
 * Return: a complete listing that is true now, with a reference; NULL: the mgr is to be asked.
 */
struct pvfs_listing *pvfs_listing_get(struct inode *dir)
{
	struct pvfs_listings *all = &PVFS_VOL(dir)->listings;
	struct pvfs_inode *pi = PVFS_I(dir);
	struct pvfs_listing *l;
	bool good;

	if (!READ_ONCE(pi->listing))
		return NULL;
	spin_lock(&all->lock);
	l = pi->listing;
	if (l) {
		refcount_inc(&l->ref);
		list_move_tail(&l->link, &all->list);
	}
	spin_unlock(&all->lock);
	if (!l)
		return NULL;
	spin_lock(&pi->lock);
	good = pi->own.begun == l->owns && pvfs_lease_token(dir) == l->token;
	spin_unlock(&pi->lock);
	if (good)
		return l;
	pvfs_listing_drop(dir, l);
	pvfs_listing_put(l);
	return NULL;
}

/**
 * pvfs_listing_drop - a listing is of no use any more
 * @dir: its directory
 * @l: the listing, of which the caller has a reference; NULL: whichever is kept
 */
void pvfs_listing_drop(struct inode *dir, const struct pvfs_listing *l)
{
	struct pvfs_volume *vol = PVFS_VOL(dir);
	struct pvfs_inode *pi = PVFS_I(dir);
	struct pvfs_listing *old;

	if (!READ_ONCE(pi->listing))
		return;
	spin_lock(&vol->listings.lock);
	old = pi->listing;
	if (old && (!l || old == l))
		listing_unlink(vol, old);
	else
		old = NULL;
	spin_unlock(&vol->listings.lock);
	pvfs_listing_put(old);
}
