// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * crc32c_test.c - the checksum: known answers, and both ways of computing it against the
 * definition.
 *
 * Includes the source, under another name, to reach the path that this processor does not take.
 */
#define pvfs_crc32c tested_crc32c
#include "common/crc32c.c"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* The definition, bit by bit. */
static u32 naive(u32 seed_, const u8 *p, size_t n)
{
	u32 c = ~seed_;
	int i;

	while (n--) {
		c ^= *p++;
		for (i = 0; i < 8; i++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
	}
	return ~c;
}

/* RFC 3720, B.4, and the usual check value. */
static void test_vectors(void **state)
{
	u8 buf[32];
	int i;

	assert_int_equal(pvfs_crc32c(0, "", 0), 0);
	assert_int_equal(pvfs_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(pvfs_crc32c(0, "a", 1), 0xc1d04330);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(pvfs_crc32c(0, buf, sizeof(buf)), 0x8a9136aa);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(pvfs_crc32c(0, buf, sizeof(buf)), 0x62a8ab43);
	for (i = 0; i < 32; i++)
		buf[i] = i;
	assert_int_equal(pvfs_crc32c(0, buf, sizeof(buf)), 0x46dd794e);
	for (i = 0; i < 32; i++)
		buf[i] = 31 - i;
	assert_int_equal(pvfs_crc32c(0, buf, sizeof(buf)), 0x113fdb5c);
}

static void test_paths(void **state)
{
	static u8 buf[5000];
	u32 want;
	size_t off, n, i;

	for (i = 0; i < sizeof(buf); i++)
		buf[i] = i * 37 + (i >> 8);
	for (off = 0; off < 9; off++) {
		for (n = 0; n < 200; n++) {
			want = naive(off * 77, buf + off, n);
			assert_int_equal(~crc_table(~(u32)(off * 77), buf + off, n), want);
			assert_int_equal(pvfs_crc32c(off * 77, buf + off, n), want);
		}
	}
	want = naive(0, buf, sizeof(buf));
	assert_int_equal(~crc_table(~0u, buf, sizeof(buf)), want);
	assert_int_equal(pvfs_crc32c(0, buf, sizeof(buf)), want);
}

/* The other half of what pvfs_crc32c() chooses from. */
static void test_choice(void **state)
{
	bool was = have_insn;
	u32 a, b;

	a = pvfs_crc32c(0, "the quick brown fox", 19);
	have_insn = false;
	b = pvfs_crc32c(0, "the quick brown fox", 19);
	have_insn = was;
	assert_int_equal(a, b);
}

static void test_chain(void **state)
{
	static const char text[] = "a checksum may be continued where it was left off";
	u32 want = pvfs_crc32c(0, text, sizeof(text)), c;
	size_t cut;

	for (cut = 0; cut <= sizeof(text); cut++) {
		c = pvfs_crc32c(0, text, cut);
		assert_int_equal(pvfs_crc32c(c, text + cut, sizeof(text) - cut), want);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_chain),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("crc32c", tests, NULL, NULL);
}
