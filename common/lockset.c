// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * lockset.c - see lockset.h. A sorted array: owners have few ranges, and those that have many are
 * looked up by halving.
 */
#include <stdlib.h>
#include "lockset.h"

/* Index of the first range that ends at or behind @start. */
static u32 first_at(const struct pvfs_lockset *s, u64 start)
{
	u32 lo = 0, hi = s->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (s->r[mid].end < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Is @a directly in front of @b, and the same? The later call's ticket is the one that may still be
 * taken back.
 */
static bool joins(const struct pvfs_lockrange *a, const struct pvfs_lockrange *b)
{
	return a->type == b->type && a->pid == b->pid && a->end + 1 == b->start;
}

/* In place of @old ranges from index @at: those of @new. Room was made. */
static void replace(struct pvfs_lockset *s, u32 at, u32 old, const struct pvfs_lockrange *new,
		    u32 n)
{
	memmove(s->r + at + n, s->r + at + old, (s->n - at - old) * sizeof(*s->r));
	if (n)
		memcpy(s->r + at, new, n * sizeof(*new));
	s->n += n - old;
}

int pvfs_lockset_set(struct pvfs_lockset *s, const struct pvfs_lockrange *want)
{
	struct pvfs_lockrange piece[3], mid = *want, *more;
	u32 at, end, n = 0, room;

	/* A split adds two at most. */
	if (s->n + 2 > s->room) {
		room = s->room ? 2 * s->room : 4;
		more = realloc(s->r, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->r = more;
		s->room = room;
	}
	at = first_at(s, want->start);
	for (end = at; end < s->n && s->r[end].start <= want->end; end++)
		;
	if (at < end && s->r[at].start < want->start) {
		piece[n] = s->r[at];
		piece[n++].end = want->start - 1;
	}
	if (mid.type != PVFS_LK_UNLOCK)
		piece[n++] = mid;
	if (at < end && s->r[end - 1].end > want->end) {
		piece[n] = s->r[end - 1];
		piece[n++].start = want->end + 1;
	}
	replace(s, at, end - at, piece, n);
	if (mid.type == PVFS_LK_UNLOCK)
		return 0;
	/* The new one, at @at or behind it, may have become one with its neighbours. */
	if (at < s->n && s->r[at].start != want->start)
		at++;
	if (at + 1 < s->n && joins(&s->r[at], &s->r[at + 1])) {
		s->r[at].end = s->r[at + 1].end;
		replace(s, at + 1, 1, NULL, 0);
	}
	if (at && joins(&s->r[at - 1], &s->r[at])) {
		s->r[at].start = s->r[at - 1].start;
		replace(s, at - 1, 1, NULL, 0);
	}
	return 0;
}

bool pvfs_lockset_covers(const struct pvfs_lockset *s, u64 start, u64 end, u8 type, bool at_least)
{
	u32 i;

	for (i = first_at(s, start); i < s->n && s->r[i].start <= start; i++) {
		if (at_least ? s->r[i].type < type : s->r[i].type != type)
			return false;
		if (s->r[i].end >= end)
			return true;
		start = s->r[i].end + 1;
	}
	return false;
}

const struct pvfs_lockrange *pvfs_lockset_conflict(const struct pvfs_lockset *s, u64 start, u64 end,
						   u8 type)
{
	u32 i;

	for (i = first_at(s, start); i < s->n && s->r[i].start <= end; i++)
		if (type == PVFS_LK_WRITE || s->r[i].type == PVFS_LK_WRITE)
			return &s->r[i];
	return NULL;
}

bool pvfs_lockset_drop_ticket(struct pvfs_lockset *s, u64 start, u64 end, u64 ticket)
{
	struct pvfs_lockrange cut;
	bool any = false;
	u32 i = 0;

	while (i < s->n) {
		cut = s->r[i];
		if (cut.ticket != ticket || cut.end < start || cut.start > end) {
			i++;
			continue;
		}
		cut.start = cut.start > start ? cut.start : start;
		cut.end = cut.end < end ? cut.end : end;
		cut.type = PVFS_LK_UNLOCK;
		/* Without memory for a split it stays locked, until its owner unlocks it. */
		if (pvfs_lockset_set(s, &cut))
			break;
		any = true;
		i = 0;
	}
	return any;
}

void pvfs_lockset_free(struct pvfs_lockset *s)
{
	free(s->r);
	memset(s, 0, sizeof(*s));
}
