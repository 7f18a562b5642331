/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bdbpage.h - the pages of a Berkeley DB 5.3 B-tree as they are on disk, as far as it takes to tell
 * sound ones from damaged ones and to read what is on a leaf. No I/O, nothing of the library.
 *
 * Ours are native-endian, have BDB_PAGE bytes, checksums and no duplicates. All offsets and
 * lengths on a page are checked before they are used: a sound checksum does not make a page true.
 */
#ifndef PVFS_MGR_BDBPAGE_H
#define PVFS_MGR_BDBPAGE_H

#include "../common/compat.h"

#define BDB_PAGE 4096u

enum bdb_page_type {
	BDB_PAGE_FREE = 0,	/* or never written */
	BDB_PAGE_INTERNAL = 3,
	BDB_PAGE_LEAF = 5,
	BDB_PAGE_OVERFLOW = 7,	/* a part of an item that is too long for a leaf */
	BDB_PAGE_META = 9,
};

/* An item of a leaf: its bytes, or where they begin. */
struct bdb_item {
	const u8 *p;		/* NULL: on overflow pages */
	u32 len;
	u32 pgno;		/* the first of them */
};

/* Is page @pgno as it was written, or a hole in the file? */
bool bdb_page_sound(const u8 *page, u32 pgno);

static inline u8 bdb_page_type(const u8 *page)
{
	return page[25];
}

/* When it was changed last: pages are ordered by it. */
u64 bdb_page_lsn(const u8 *page);

/* Of the first page of a table: the number of the last one. */
u32 bdb_meta_last(const u8 *page);

/**
 * bdb_page_stand_in - what recovery is given in place of a page that is damaged
 * @page: BDB_PAGE bytes, overwritten
 *
 * An empty leaf that is marked as never logged: no log record applies to it, in either direction.
 */
void bdb_page_stand_in(u8 *page, u32 pgno);

/* Pairs of key and value on a leaf, those that are deleted included. */
u32 bdb_leaf_pairs(const u8 *page);

/**
 * bdb_leaf_pair - one of them
 * @i: below bdb_leaf_pairs()
 *
 * Return: 0; -ENOENT: it is deleted; -EUCLEAN: it does not lie on the page.
 */
int bdb_leaf_pair(const u8 *page, u32 i, struct bdb_item *key, struct bdb_item *val);

/* The part of an item on an overflow page. @ret_next: the page with the next, 0: none. False: bad. */
bool bdb_overflow_part(const u8 *page, struct bdb_item *ret, u32 *ret_next);

#endif
