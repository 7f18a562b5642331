// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * runs.c - places in a file that are described, not enumerated; see runs.h.
 */
#include "runs.h"
#include "proto.h"

int pvfs_run_check(const struct pvfs_run *r, u64 *ret_bytes, u64 *ret_end)
{
	u64 bytes = r->len, end, span;
	u32 i;

	if (!r->len || r->ndims > PVFS_DIMS_MAX || __builtin_add_overflow(r->off, r->len, &end))
		return -EINVAL;
	for (i = 0; i < r->ndims; i++)
		if (!r->dim[i].count || __builtin_mul_overflow(bytes, r->dim[i].count, &bytes) ||
		    __builtin_mul_overflow(r->dim[i].stride, (u64)r->dim[i].count - 1, &span) ||
		    __builtin_add_overflow(end, span, &end))
			return -EINVAL;
	if (end > PVFS_FILE_MAX || bytes > PVFS_FILE_MAX)
		return -EINVAL;
	*ret_bytes = bytes;
	*ret_end = end;
	return 0;
}

void pvfs_put_run(struct pvfs_wire *w, const struct pvfs_run *r)
{
	u32 i;

	pvfs_put_u64(w, r->off);
	pvfs_put_u64(w, r->len);
	pvfs_put_u8(w, r->ndims);
	for (i = 0; i < r->ndims; i++) {
		pvfs_put_u32(w, r->dim[i].count);
		pvfs_put_u64(w, r->dim[i].stride);
	}
}

void pvfs_get_run(struct pvfs_wire *w, struct pvfs_run *r)
{
	u32 i;

	memset(r, 0, sizeof(*r));
	r->off = pvfs_get_u64(w);
	r->len = pvfs_get_u64(w);
	r->ndims = pvfs_get_u8(w);
	for (i = 0; i < min(r->ndims, PVFS_DIMS_MAX); i++) {
		r->dim[i].count = pvfs_get_u32(w);
		r->dim[i].stride = pvfs_get_u64(w);
	}
}

void pvfs_run_seek(struct pvfs_run_at *at, const struct pvfs_run *r, u64 bytes)
{
	u64 block = bytes / r->len;
	u32 i;

	*at = (struct pvfs_run_at){ .run = r, .off = r->off, .done = bytes % r->len };
	for (i = r->ndims; i--; block /= r->dim[i].count) {
		at->pos[i] = block % r->dim[i].count;
		at->off += at->pos[i] * r->dim[i].stride;
	}
}

bool pvfs_run_advance(struct pvfs_run_at *at, u64 bytes)
{
	const struct pvfs_run *r = at->run;
	u32 i;

	at->done += bytes;
	if (at->done < r->len)
		return true;
	at->done = 0;
	for (i = r->ndims; i--;) {
		if (++at->pos[i] < r->dim[i].count) {
			at->off += r->dim[i].stride;
			return true;
		}
		at->off -= (r->dim[i].count - 1) * r->dim[i].stride;
		at->pos[i] = 0;
	}
	return false;
}

/* To the next run, at @bytes of its stream. All were looked at; one that is not sound ends it. */
static void next_run(struct pvfs_runs *it, u64 bytes)
{
	u64 all, end;

	pvfs_get_run(&it->w, &it->run);
	if (it->w.err || pvfs_run_check(&it->run, &all, &end))
		it->left = 0;
	else
		pvfs_run_seek(&it->at, &it->run, bytes);
}

int pvfs_runs_begin(struct pvfs_runs *it, const void *p, u32 len, u64 first, u64 n, u64 *ret_blocks)
{
	u64 bytes = 0, end, from = first, left = n, here;
	struct pvfs_run *r = &it->run;

	pvfs_wire_init(&it->w, p, len);
	*ret_blocks = 0;
	while (pvfs_wire_left(&it->w)) {
		pvfs_get_run(&it->w, r);
		if (it->w.err || pvfs_run_check(r, &bytes, &end) || from >= bytes || !left)
			return -EINVAL;
		here = min(left, bytes - from);
		*ret_blocks += (from + here - 1) / r->len - from / r->len + 1;
		left -= here;
		from = 0;
	}
	if (left || !n)
		return -EINVAL;
	pvfs_wire_init(&it->w, p, len);
	it->left = n;
	next_run(it, first);
	return 0;
}

bool pvfs_runs_next(struct pvfs_runs *it, u64 *ret_off, u64 *ret_len)
{
	if (!it->left)
		return false;
	*ret_off = pvfs_run_off(&it->at);
	*ret_len = min(pvfs_run_left(&it->at), it->left);
	it->left -= *ret_len;
	if (!pvfs_run_advance(&it->at, *ret_len) && it->left)
		next_run(it, 0);
	return true;
}
