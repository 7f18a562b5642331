// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * wire_test.c - the cursor: byte order, bounds, and that the first error stays.
 */
#include "common/wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_byte_order(void **state)
{
	static const u8 want[] = { 0x11, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22,
				   0x11, 0xaa, 0xbb };
	struct pvfs_wire w;
	u8 buf[sizeof(want)], two[2];

	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_u8(&w, 0x11);
	pvfs_put_u16(&w, 0x1122);
	pvfs_put_u32(&w, 0x11223344);
	pvfs_put_u64(&w, 0x1122334455667788ull);
	pvfs_put_fix(&w, want + 15, 2);
	assert_int_equal(w.err, 0);
	assert_int_equal(pvfs_wire_left(&w), 0);
	assert_memory_equal(buf, want, sizeof(want));

	pvfs_wire_init(&w, buf, sizeof(buf));
	assert_int_equal(pvfs_get_u8(&w), 0x11);
	assert_int_equal(pvfs_get_u16(&w), 0x1122);
	assert_int_equal(pvfs_get_u32(&w), 0x11223344);
	assert_true(pvfs_get_u64(&w) == 0x1122334455667788ull);
	pvfs_get_fix(&w, two, 2);
	assert_memory_equal(two, want + 15, 2);
	assert_int_equal(w.err, 0);
}

/* Each accessor one byte short: nothing is touched, the error is there and stays. */
static void test_short(void **state)
{
	struct pvfs_wire w;
	u8 *buf, fix[8];
	int size;

	for (size = 0; size < 8; size++) {
		/* Exactly so long, so that a sanitizer sees one byte too many. */
		buf = malloc(size ?: 1);
		memset(buf, 0x5a, size ?: 1);
		pvfs_wire_init(&w, buf, size);
		assert_true(pvfs_get_u64(&w) == 0);
		assert_int_equal(w.err, -EBADMSG);
		assert_int_equal(pvfs_get_u8(&w), 0);
		assert_int_equal(w.err, -EBADMSG);

		pvfs_wire_init(&w, buf, size);
		memset(fix, 0xff, sizeof(fix));
		pvfs_get_fix(&w, fix, sizeof(fix));
		assert_int_equal(w.err, -EBADMSG);
		assert_int_equal(fix[0] | fix[7], 0);

		pvfs_wire_init(&w, buf, size);
		pvfs_put_u64(&w, 1);
		assert_int_equal(w.err, -EMSGSIZE);
		pvfs_put_u8(&w, 1);
		assert_int_equal(w.err, -EMSGSIZE);
		assert_int_equal(size ? buf[0] : 0x5a, 0x5a);
		free(buf);
	}
}

static void test_strings(void **state)
{
	struct pvfs_str s = PVFS_STR("hello"), got, empty = { 0 };
	struct pvfs_wire w;
	u8 buf[64];
	int n;

	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_str(&w, &s, 5);
	pvfs_put_blob(&w, &s, 5);
	pvfs_put_str(&w, &empty, 5);
	pvfs_put_blob(&w, &empty, 0);
	assert_int_equal(w.err, 0);
	n = w.p - buf;
	assert_int_equal(n, 2 + 5 + 4 + 5 + 2 + 4);

	pvfs_wire_init(&w, buf, n);
	pvfs_get_str(&w, &got, 5);
	assert_int_equal(got.len, 5);
	assert_memory_equal(got.p, "hello", 5);
	assert_ptr_equal(got.p, buf + 2);
	pvfs_get_blob(&w, &got, 5);
	assert_int_equal(got.len, 5);
	pvfs_get_str(&w, &got, 5);
	assert_int_equal(got.len, 0);
	pvfs_get_blob(&w, &got, 0);
	assert_int_equal(got.len, 0);
	assert_int_equal(w.err, 0);
}

static void test_string_limits(void **state)
{
	struct pvfs_str s = PVFS_STR("hello"), got;
	struct pvfs_wire w;
	u8 buf[64], huge[6] = { 0xff, 0xff, 0xff, 0xff, 1, 2 };

	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_str(&w, &s, 4);
	assert_int_equal(w.err, -EMSGSIZE);
	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_blob(&w, &s, 4);
	assert_int_equal(w.err, -EMSGSIZE);
	pvfs_wire_init(&w, buf, 6);
	pvfs_put_str(&w, &s, 5);
	assert_int_equal(w.err, -EMSGSIZE);

	pvfs_wire_init(&w, buf, sizeof(buf));
	pvfs_put_str(&w, &s, 5);
	pvfs_wire_init(&w, buf, 7);
	pvfs_get_str(&w, &got, 4);
	assert_int_equal(w.err, -EBADMSG);
	assert_int_equal(got.len, 0);
	pvfs_wire_init(&w, buf, 6);
	pvfs_get_str(&w, &got, 5);
	assert_int_equal(w.err, -EBADMSG);

	/* Lengths that would wrap. */
	pvfs_wire_init(&w, huge, sizeof(huge));
	pvfs_get_blob(&w, &got, 0xffffffff);
	assert_int_equal(w.err, -EBADMSG);
	assert_null(got.p);
	pvfs_wire_init(&w, huge, sizeof(huge));
	pvfs_get_str(&w, &got, 0xffffffff);
	assert_int_equal(w.err, -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_byte_order),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_string_limits),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
