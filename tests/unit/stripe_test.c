// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * stripe_test.c - striping against a model that knows nothing but "deal the units in turn", byte by
 * byte.
 */
#include "common/stripe.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static u64 seed = 0x9e3779b97f4a7c15ull;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The model: where one byte lies. 128 bits, so that nothing can wrap in here. */
static void where(const struct pvfs_layout *l, u64 off, u32 *df, u64 *df_off)
{
	unsigned __int128 unit = off / l->ssize;

	*df = unit % l->pcount;
	*df_off = (u64)(unit / l->pcount * l->ssize + off % l->ssize);
}

static struct pvfs_layout any_layout(u32 max_shift)
{
	struct pvfs_layout l;

	l.pcount = rnd() % 3 ? 1 + rnd() % 9 : 1 + rnd() % PVFS_IOD_MAX;
	l.base = rnd() % l.pcount;
	l.ssize = PVFS_SSIZE_MIN << rnd() % max_shift;
	l.stuff_max = rnd() % (PVFS_STUFF_MAX + 1);
	assert_true(pvfs_layout_valid(&l, l.pcount));
	return l;
}

/* An offset of any magnitude, often near a boundary of a unit. */
static u64 any_off(const struct pvfs_layout *l)
{
	u64 off = rnd() >> (1 + rnd() % 62);

	if (rnd() % 2)
		off = off / l->ssize * l->ssize + rnd() % 5 - 2;
	return off & PVFS_FILE_MAX;
}

static void test_map(void **state)
{
	struct pvfs_extent e;
	struct pvfs_layout l;
	u64 off, len, at;
	u32 df;
	int i;

	for (i = 0; i < 300000; i++) {
		l = any_layout(18);
		off = any_off(&l);
		len = 1 + (rnd() >> (rnd() % 64));
		len = min(len, PVFS_FILE_MAX - off + 1);
		where(&l, off, &df, &at);
		pvfs_stripe_map(&l, off, len, &e);
		assert_int_equal(e.df, df);
		assert_true(e.off == at);
		assert_true(e.len > 0 && e.len <= len);
		assert_true(pvfs_stripe_file_off(&l, df, at) == off);
		/*
		 * The last byte of the piece is in the run; the next one is not, or the range ends.
		 */
		where(&l, off + e.len - 1, &df, &at);
		assert_int_equal(df, e.df);
		assert_true(at == e.off + e.len - 1);
		if (e.len < len) {
			where(&l, off + e.len, &df, &at);
			assert_false(df == e.df && at == e.off + e.len);
		}
	}
}

/* Walking a range piece by piece gives every datafile exactly its share. */
static void test_share(void **state)
{
	u64 got[64], off, len, pos;
	struct pvfs_extent e;
	struct pvfs_layout l;
	u32 df;
	int i;

	for (i = 0; i < 20000; i++) {
		l = any_layout(6);
		l.pcount = 1 + rnd() % 64;
		off = any_off(&l);
		len = rnd() % (l.ssize * 200ull);
		len = min(len, PVFS_FILE_MAX - off);
		memset(got, 0, sizeof(got));
		for (pos = off; pos < off + len; pos += e.len) {
			pvfs_stripe_map(&l, pos, off + len - pos, &e);
			got[e.df] += e.len;
		}
		for (df = 0; df < l.pcount; df++) {
			pvfs_stripe_share(&l, df, off, len, &e);
			assert_true(e.len == got[df]);
			assert_int_equal(e.df, df);
			if (!e.len)
				continue;
			/*
			 * The run's ends are bytes of the range, and the bytes beside them are not.
			 */
			pos = pvfs_stripe_file_off(&l, df, e.off);
			assert_true(pos >= off && pos < off + len);
			pos = pvfs_stripe_file_off(&l, df, e.off + e.len - 1);
			assert_true(pos >= off && pos < off + len);
			if (e.off)
				assert_true(pvfs_stripe_file_off(&l, df, e.off - 1) < off);
			assert_true(pvfs_stripe_file_off(&l, df, e.off + e.len) >= off + len);
		}
	}
}

/* Byte by byte over small files. */
static void test_sizes(void **state)
{
	u64 have[8], size;
	struct pvfs_layout l = { .ssize = PVFS_SSIZE_MIN };
	u64 at, best;
	u32 df;

	for (l.pcount = 1; l.pcount <= 8; l.pcount += 1 + l.pcount / 2) {
		memset(have, 0, sizeof(have));
		for (size = 0; size <= 3ull * l.pcount * l.ssize + 5; size++) {
			best = 0;
			for (df = 0; df < l.pcount; df++) {
				if (size % 61 == 0 || size % l.ssize < 2)
					assert_true(pvfs_stripe_df_size(&l, df, size) == have[df]);
				best = max(best, pvfs_stripe_file_size(&l, df, have[df]));
			}
			assert_true(best == size);
			where(&l, size, &df, &at);
			have[df] = at + 1;
		}
	}
}

static void test_size_inverse(void **state)
{
	struct pvfs_layout l;
	u64 size, best;
	int i;
	u32 df;

	for (i = 0; i < 20000; i++) {
		l = any_layout(18);
		l.pcount = 1 + rnd() % 32;
		size = i % 3 ? any_off(&l) : PVFS_FILE_MAX - rnd() % (4ull * l.ssize);
		best = 0;
		for (df = 0; df < l.pcount; df++)
			best = max(best, pvfs_stripe_file_size(&l, df, pvfs_stripe_df_size(&l, df, size)));
		assert_true(best == size);
	}
	for (df = 0; df < l.pcount; df++)
		assert_true(pvfs_stripe_file_size(&l, df, 0) == 0);
}

static void test_valid(void **state)
{
	struct pvfs_layout l = { .base = 3, .pcount = 4, .ssize = 65536 };

	assert_true(pvfs_layout_valid(&l, 4));
	assert_false(pvfs_layout_valid(&l, 3));
	assert_false(pvfs_layout_valid(&l, 0));
	l.base = 4;
	assert_false(pvfs_layout_valid(&l, 4));
	l.base = 0;
	l.pcount = 0;
	assert_false(pvfs_layout_valid(&l, 4));
	l.pcount = 4;
	for (l.ssize = 0; l.ssize < 9000; l.ssize++)
		assert_int_equal(pvfs_layout_valid(&l, 4), l.ssize == 4096 || l.ssize == 8192);
	l.ssize = 4096;
	l.stuff_max = PVFS_STUFF_MAX;
	assert_true(pvfs_layout_valid(&l, 4));
	l.stuff_max++;
	assert_false(pvfs_layout_valid(&l, 4));
	l.stuff_max = 0;
	l.ssize = PVFS_SSIZE_MAX;
	assert_true(pvfs_layout_valid(&l, 4));
	l.ssize = 1u << 31;
	assert_false(pvfs_layout_valid(&l, 4));
}

static void test_iod(void **state)
{
	struct pvfs_layout l = { .base = 3, .pcount = 4, .ssize = 65536 };

	assert_int_equal(pvfs_stripe_iod(&l, 0, 5), 3);
	assert_int_equal(pvfs_stripe_iod(&l, 1, 5), 4);
	assert_int_equal(pvfs_stripe_iod(&l, 2, 5), 0);
	assert_int_equal(pvfs_stripe_iod(&l, 3, 5), 1);
}

/* Byte by byte: where a byte is before and after it moves. */
static void test_shift(void **state)
{
	static const struct pvfs_layout ls[] = {
		{ .pcount = 1, .ssize = 4096 }, { .pcount = 3, .ssize = 4096 },
		{ .pcount = 4, .ssize = 65536 },
	};
	const u64 from = 1 << 20;
	unsigned int i;
	s64 apart;

	for (i = 0; i < ARRAY_SIZE(ls); i++) {
		for (apart = -(1 << 19); apart <= 1 << 19; apart += 2048) {
			bool stay = true, said;
			s64 by = 0, shift = 0;
			u64 off;

			for (off = from; off < from + (4 << 16); off += 2048) {
				struct pvfs_extent a, b;

				pvfs_stripe_map(&ls[i], off, 1, &a);
				pvfs_stripe_map(&ls[i], off + apart, 1, &b);
				if (off == from)
					by = (s64)b.off - (s64)a.off;
				stay &= a.df == b.df && (s64)b.off - (s64)a.off == by;
			}
			said = pvfs_stripe_shift(&ls[i], apart, &shift);
			assert_int_equal(said, stay);
			if (said)
				assert_int_equal(shift, by);
		}
	}
}

static void test_rounds(void **state)
{
	struct pvfs_layout l = { .pcount = 3, .ssize = 65536 };

	assert_int_equal(pvfs_stripe_rounds(&l, 1 << 20), 3 << 20);
	assert_int_equal(pvfs_stripe_rounds(&l, (1 << 20) + 65535), 3 << 20);
	l.ssize = 1 << 30;
	assert_int_equal(pvfs_stripe_rounds(&l, 1 << 20), 1 << 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_size_inverse),
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_iod),
		cmocka_unit_test(test_shift),
		cmocka_unit_test(test_rounds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("stripe", tests, NULL, NULL);
}
