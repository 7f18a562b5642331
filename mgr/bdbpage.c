// SPDX-License-Identifier: GPL-2.0
/*
 * bdbpage.c - see bdbpage.h.
 *
 *   every page    0 lsn.file  4 lsn.offset  8 pgno  16 next  20 entries  22 used from here  25 type
 *                 28 checksum, of the page with zeros in its place  32 offsets of the items
 *   meta page     26 flags  32 last page  492 checksum, of the first 512 bytes
 *   item          0 length  2 kind, 0x80: deleted  3 bytes
 *   long item     2 kind  4 first overflow page  8 length
 */
#include "bdbpage.h"
#include <string.h>

#define META_SUM_LEN 512u
#define META_SUM_AT 492u
#define SUM_AT 28u
#define SUM_LEN 4u
#define ITEMS_AT 32u
#define KIND_PLAIN 1u
#define KIND_LONG 3u
#define KIND_DELETED 0x80u

static u16 get16(const u8 *p)
{
	u16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static u32 get32(const u8 *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put32(u8 *p, u32 v)
{
	memcpy(p, &v, sizeof(v));
}

static u32 hash(u32 h, const u8 *p, u32 len)
{
	while (len--)
		h = h * 33 + *p++;
	return h;
}

/* Of @len bytes, those at @at taken for zeros. */
static u32 checksum(const u8 *page, u32 len, u32 at)
{
	static const u8 zeros[SUM_LEN];
	u32 h = hash(0, page, at);

	h = hash(h, zeros, SUM_LEN);
	return hash(h, page + at + SUM_LEN, len - at - SUM_LEN);
}

bool bdb_page_sound(const u8 *page, u32 pgno)
{
	bool meta = bdb_page_type(page) == BDB_PAGE_META;
	u32 len = meta ? META_SUM_LEN : BDB_PAGE, at = meta ? META_SUM_AT : SUM_AT;

	/* One that was allocated and not filled before a crash, to the library. The first never is. */
	if (pgno && bdb_page_type(page) == BDB_PAGE_FREE && !bdb_page_lsn(page) && !get32(page + 8))
		return true;
	return get32(page + at) == checksum(page, len, at) && get32(page + 8) == pgno;
}

u32 bdb_meta_last(const u8 *page)
{
	return get32(page + 32);
}

u64 bdb_page_lsn(const u8 *page)
{
	return (u64)get32(page) << 32 | get32(page + 4);
}

void bdb_page_stand_in(u8 *page, u32 pgno)
{
	u16 end = BDB_PAGE;

	memset(page, 0, BDB_PAGE);
	put32(page + 4, 1);	/* lsn 0/1: not logged */
	put32(page + 8, pgno);
	memcpy(page + 22, &end, sizeof(end));
	page[24] = 1;		/* level of a leaf */
	page[25] = BDB_PAGE_LEAF;
	put32(page + SUM_AT, checksum(page, BDB_PAGE, SUM_AT));
}

u32 bdb_leaf_pairs(const u8 *page)
{
	return min((u32)get16(page + 20), (BDB_PAGE - ITEMS_AT) / 2) / 2;
}

static bool item(const u8 *page, u32 i, struct bdb_item *ret, bool *ret_deleted)
{
	u32 at = get16(page + ITEMS_AT + 2 * i), len;
	const u8 *p = page + at;

	if (at < ITEMS_AT || at > BDB_PAGE - 3)
		return false;
	*ret_deleted = p[2] & KIND_DELETED;
	switch (p[2] & ~KIND_DELETED) {
	case KIND_PLAIN:
		len = get16(p);
		if (len > BDB_PAGE - 3 - at)
			return false;
		*ret = (struct bdb_item){ .p = p + 3, .len = len };
		return true;
	case KIND_LONG:
		if (at > BDB_PAGE - 12)
			return false;
		*ret = (struct bdb_item){ .pgno = get32(p + 4), .len = get32(p + 8) };
		return ret->pgno;
	default:
		return false;
	}
}

int bdb_leaf_pair(const u8 *page, u32 i, struct bdb_item *key, struct bdb_item *val)
{
	bool gone, val_gone;

	if (!item(page, 2 * i, key, &gone) || !item(page, 2 * i + 1, val, &val_gone))
		return -EUCLEAN;
	return gone || val_gone ? -ENOENT : 0;
}

bool bdb_overflow_part(const u8 *page, struct bdb_item *ret, u32 *ret_next)
{
	u32 len = get16(page + 22);

	if (bdb_page_type(page) != BDB_PAGE_OVERFLOW || len > BDB_PAGE - ITEMS_AT)
		return false;
	*ret = (struct bdb_item){ .p = page + ITEMS_AT, .len = len };
	*ret_next = get32(page + 16);
	return true;
}
