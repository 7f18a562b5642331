// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * runs_test.c - runs against a model that enumerates them byte by byte, and what comes from outside.
 */
#include "common/runs.h"
#include "common/proto.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define BYTES 4096u	/* of a stream, at most */

static u64 seed = 0x9e3779b97f4a7c15ull;

static u64 rnd(u64 n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

static struct pvfs_run any_run(void)
{
	struct pvfs_run r = { .off = rnd(2) ? rnd(100) : rnd(PVFS_FILE_MAX / 2), .len = 1 + rnd(8) };
	u32 i;

	r.ndims = rnd(PVFS_DIMS_MAX + 1);
	for (i = 0; i < r.ndims; i++) {
		r.dim[i].count = 1 + rnd(4);
		r.dim[i].stride = rnd(4) ? rnd(100) : rnd(PVFS_FILE_MAX / 64);
	}
	return r;
}

/* The model: where each byte of a run lies, by as many loops as it has. Return: bytes. */
static u32 spell(const struct pvfs_run *r, u32 dim, u64 off, u64 *out)
{
	u32 i, n = 0;

	if (dim == r->ndims) {
		for (i = 0; i < r->len; i++)
			out[i] = off + i;
		return i;
	}
	for (i = 0; i < r->dim[dim].count; i++)
		n += spell(r, dim + 1, off + i * r->dim[dim].stride, out + n);
	return n;
}

static void test_stream(void **state)
{
	static u64 want[4 * BYTES];
	u8 raw[4 * PVFS_RUN_BYTES_MAX];
	u64 bytes, end, off, len, blocks, counted, i;
	struct pvfs_wire w;
	struct pvfs_runs it;
	u32 round;

	for (round = 0; round < 20000; round++) {
		u32 nruns = 1 + rnd(3), k, n = 0, last = 0, one = 0, first, part, at;

		pvfs_wire_init(&w, raw, sizeof(raw));
		for (k = 0; k < nruns; k++) {
			struct pvfs_run r = any_run();
			u64 most = 0;

			last = n;
			n += spell(&r, 0, r.off, want + n);
			one = k ? one : n;
			assert_int_equal(pvfs_run_check(&r, &bytes, &end), 0);
			assert_int_equal(bytes, n - last);
			for (i = last; i < n; i++)
				most = max(most, want[i] + 1);
			assert_int_equal(end, most);
			pvfs_put_run(&w, &r);
		}
		assert_int_equal(w.err, 0);
		/* Any part that begins in the first run and ends in the last. */
		first = rnd(one);
		part = last + 1 + rnd(n - last) - min(first, last);
		part = min(part, n - first);
		if (first + part <= last)
			part = last + 1 - first;
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, first, part, &blocks), 0);
		for (at = first, counted = 0; pvfs_runs_next(&it, &off, &len); counted++) {
			assert_true(len > 0);
			for (i = 0; i < len; i++)
				assert_int_equal(off + i, want[at++]);
		}
		assert_int_equal(at, first + part);
		assert_int_equal(counted, blocks);
		/* One that does not. */
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, one, 1, &blocks), -EINVAL);
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, first, n - first + 1, &blocks), -EINVAL);
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, first, 0, &blocks), -EINVAL);
		if (last > first)
			assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, first, last - first, &blocks),
					 -EINVAL);
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw - 1, first, part, &blocks), -EINVAL);
	}
}

static void test_unsound(void **state)
{
	static const struct pvfs_run bad[] = {
		{ .off = 0, .len = 0 },
		{ .off = PVFS_FILE_MAX, .len = 1 },
		{ .off = ~0ull, .len = 2 },
		{ .off = 1, .len = ~0ull },
		{ .off = 0, .len = 1, .ndims = 1, .dim = { { .count = 0, .stride = 1 } } },
		{ .off = 0, .len = 1, .ndims = 1, .dim = { { .count = 2, .stride = PVFS_FILE_MAX } } },
		{ .off = 0, .len = 1, .ndims = 1, .dim = { { .count = ~0u, .stride = 1ull << 40 } } },
		/* The product of the counts wraps. */
		{ .off = 0, .len = 1ull << 33, .ndims = 1, .dim = { { .count = 1u << 31 } } },
		{ .off = 0, .len = 4, .ndims = 2, .dim = { { .count = 1u << 31 }, { .count = 1u << 31 } } },
	};
	u8 raw[PVFS_RUN_BYTES_MAX + 12];
	u64 bytes, end, blocks;
	struct pvfs_runs it;
	struct pvfs_wire w;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(pvfs_run_check(&bad[i], &bytes, &end), -EINVAL);
		memset(raw, 1, sizeof(raw));
		pvfs_wire_init(&w, raw, sizeof(raw));
		pvfs_put_run(&w, &bad[i]);
		assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, 0, 1, &blocks), -EINVAL);
	}
	/* More dimensions than there may be, and bytes for them. */
	raw[16] = PVFS_DIMS_MAX + 1;
	assert_int_equal(pvfs_runs_begin(&it, raw, sizeof(raw), 0, 1, &blocks), -EINVAL);
	assert_int_equal(pvfs_runs_begin(&it, raw, 0, 0, 1, &blocks), -EINVAL);
	assert_int_equal(pvfs_runs_begin(&it, raw, 0, 0, 0, &blocks), -EINVAL);
}

/* What looks at places of a stream of 2^63 bytes does not go there step by step. */
static void test_far(void **state)
{
	struct pvfs_run r = { .off = 7, .len = 3, .ndims = 2,
			      .dim = { { .count = 1u << 30, .stride = 1ull << 32 },
				       { .count = 1u << 29, .stride = 5 } } };
	u64 bytes, end, off, len, blocks, block = (1ull << 58) + 12345;
	u8 raw[PVFS_RUN_BYTES_MAX];
	struct pvfs_runs it;
	struct pvfs_wire w;

	assert_int_equal(pvfs_run_check(&r, &bytes, &end), 0);
	assert_int_equal(bytes, 3ull << 59);
	pvfs_wire_init(&w, raw, sizeof(raw));
	pvfs_put_run(&w, &r);
	assert_int_equal(pvfs_runs_begin(&it, raw, w.p - raw, 3 * block + 2, 3, &blocks), 0);
	assert_int_equal(blocks, 2);
	assert_true(pvfs_runs_next(&it, &off, &len));
	assert_int_equal(off, 7 + ((block >> 29) << 32) + 12345 * 5 + 2);
	assert_int_equal(len, 1);
	assert_true(pvfs_runs_next(&it, &off, &len));
	assert_int_equal(off, 7 + ((block >> 29) << 32) + 12346 * 5);
	assert_int_equal(len, 2);
	assert_false(pvfs_runs_next(&it, &off, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_unsound),
		cmocka_unit_test(test_far),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
