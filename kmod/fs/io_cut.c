// SPDX-License-Identifier: GPL-2.0
/*
 * io_cut.c - which bytes of a transfer are whose: its parts, each for one request to one iod.
 *
 * A range of a file touches each datafile in one contiguous run, whose bytes are spread over the
 * memory in pieces of a stripe unit. A part is such a run, or as much of it as one request may
 * carry:
 *
 *   memory (file order)   |u0  |u1  |u2  |u3  |u4  |u5  |      3 datafiles
 *   part 0 (datafile 0)    u0             u3                   one request, bio_vecs in that order
 *   part 1 (datafile 1)         u1             u4
 *   part 2 (datafile 2)              u2             u5
 *
 * Dirty pages from all over the file are a list: what a datafile has of them is a part.
 */
#include "io_part.h"

/* bytes of a part of a list, so that its runs fit, a page each (PVFS_RUNS_MAX) */
#define LIST_PART (1u << 20)

unsigned int pvfs_io_advance(struct pvfs_io_cursor *c, u32 n, struct bio_vec *out)
{
	unsigned int count = 0;

	while (n) {
		u32 here = min(n, c->bv->bv_len - c->skip);

		if (out)
			out[count] = (struct bio_vec){
				.bv_page = c->bv->bv_page,
				.bv_offset = c->bv->bv_offset + c->skip,
				.bv_len = here,
			};
		count++;
		n -= here;
		c->skip += here;
		if (c->skip == c->bv->bv_len) {
			c->bv++;
			c->skip = 0;
		}
	}
	return count;
}

/*
 * Finds the parts; if there is no room for all, the transfer becomes shorter. Two walks over the
 * stripe units, first to count, then to fill: @fill. They go the same way because the second stops
 * where the first did.
 */
static void io_cut(struct pvfs_io *io, u32 xsize, bool fill)
{
	struct pvfs_io_cursor c = { .bv = io->mem };
	unsigned int nbv = 0, unit = 0, seen = 0;
	u32 done = 0;

	memset(io->last_part, 0xff, io->part_room * sizeof(*io->last_part));
	while (done < io->len) {
		unsigned int turn = unit++ % io->layout.pcount;
		struct pvfs_extent e;

		if (turn >= io->part_room)
			goto out;
		pvfs_stripe_map(&io->layout, io->pos + done, io->len - done, &e);
		while (e.len) {
			unsigned int at = io->last_part[turn];
			struct pvfs_io_cursor before = c;
			struct pvfs_io_part *p;
			unsigned int count;
			u32 n;

			if (at == U16_MAX || io->part[at].filled == xsize)
				at = seen;
			if (at == io->part_room)
				goto out;
			p = &io->part[at];
			if (at == seen) {
				if (!fill)
					*p = (struct pvfs_io_part){ .io = io, .df = e.df,
								    .off = e.off,
								    .first = done };
				p->filled = 0;
				p->bv = fill ? io->bv + nbv : NULL;
				nbv += fill ? p->nbv : 0;
			}
			n = min_t(u64, e.len, xsize - p->filled);
			if (fill) {
				p->bv += pvfs_io_advance(&c, n, p->bv);
			} else {
				count = pvfs_io_advance(&c, n, NULL);
				if (nbv + count > io->bv_room) {
					c = before;
					goto out;
				}
				nbv += count;
				p->nbv += count;
				p->len += n;
			}
			if (at == seen) {
				io->last_part[turn] = at;
				seen++;
			}
			p->filled += n;
			e.len -= n;
			e.off += n;
			done += n;
		}
	}
out:
	io->nparts = seen;
	io->len = done;
}

/* The same, of a list: a part is what a datafile has of it, or as much of that as one request may carry. */
static void io_cut_list(struct pvfs_io *io, u32 xsize, bool fill)
{
	unsigned int nbv = 0, seen = 0, i, at;
	struct pvfs_io_part *p;
	struct pvfs_extent e;
	u32 done = 0;

	for (i = 0; i < io->nmem; i++) {
		const struct bio_vec *mem = &io->mem[i];

		pvfs_stripe_map(&io->layout, page_offset(mem->bv_page), mem->bv_len, &e);
		for (at = seen; at && io->part[at - 1].df != e.df; at--)
			;
		if (!at || io->part[at - 1].filled + e.len > min(xsize, LIST_PART)) {
			if (seen == io->part_room)
				break;
			p = &io->part[seen++];
			if (!fill)
				*p = (struct pvfs_io_part){ .io = io, .df = e.df, .first = done };
			p->filled = 0;
			p->bv = fill ? io->bv + nbv : NULL;
			nbv += fill ? p->nbv : 0;
		} else {
			p = &io->part[at - 1];
		}
		if (fill) {
			*p->bv++ = *mem;
		} else {
			p->nbv++;
			p->len += mem->bv_len;
		}
		p->filled += mem->bv_len;
		done += mem->bv_len;
	}
	io->nparts = seen;
	io->len = done;
}

/*
 * How many pages may a list have, so that each is whole in a request, and it is no more than PVFS_IO_LIST_PARTS of these,
 * which have to be had all at once? A datafile has one that is not full.
 */
unsigned int pvfs_io_list_room(unsigned int pcount, u32 ssize, u32 xsize)
{
	unsigned int whole = min(xsize, LIST_PART) >> PAGE_SHIFT;

	if (ssize < PAGE_SIZE || !whole)
		return 0;
	return pcount > PVFS_IO_LIST_PARTS / 2 ? PVFS_IO_LIST_PARTS : PVFS_IO_LIST_PARTS / 2 * whole;
}

void pvfs_io_plan(struct pvfs_io *io, u32 xsize)
{
	void (*cut)(struct pvfs_io *io, u32 xsize, bool fill) = io->list ? io_cut_list : io_cut;
	unsigned int i;

	cut(io, xsize, false);
	cut(io, xsize, true);
	for (i = 0; i < io->nparts; i++)
		io->part[i].bv -= io->part[i].nbv;
}
