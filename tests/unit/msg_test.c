// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * msg_test.c - every body of msg.def: what is encoded is what is decoded; one byte less or more is
 * refused. Made from the table, so that a new body is tested by being there.
 */
#include "msg_fill.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static u8 buf[PVFS_BODY_MAX + 1];

/* @len bytes in memory of exactly that size, so that a sanitizer sees a step beyond it. */
static u8 *exactly(const void *p, size_t len)
{
	u8 *m = malloc(len ?: 1);

	assert_non_null(m);
	memcpy(m, p, len);
	return m;
}

#define U8(f)
#define U16(f)
#define U32(f)
#define U64(f)
#define S64(f)
#define FIX(f, n)
#define STR(f, max)
#define BLOB(f, max)
#define SUB(type, f)
#define SUBMSG(name, fields)
#define MSG(name, fields) \
static void test_##name(void **state) \
{ \
	struct filler fl = { .state = 88172645463325252ull }; \
	static const u32 lens[] = { 0, 1, 7, 60, 0xffffffff }; \
	struct pvfs_##name a, b; \
	unsigned int i; \
	int n, cut; \
	u8 *m; \
	for (i = 0; i < ARRAY_SIZE(lens); i++) { \
		fl.len = lens[i]; \
		memset(&a, 0, sizeof(a)); \
		memset(&b, 0xa5, sizeof(b)); \
		fill_##name(&a, &fl); \
		n = pvfs_##name##_encode(&a, buf, PVFS_BODY_MAX); \
		assert_in_range(n, 0, PVFS_BODY_MAX); \
		m = exactly(buf, n); \
		assert_int_equal(pvfs_##name##_decode(&b, m, n), 0); \
		assert_true(same_##name(&a, &b)); \
		free(m); \
		buf[n] = 0; \
		assert_int_equal(pvfs_##name##_decode(&b, buf, n + 1), -EBADMSG); \
		for (cut = 0; cut < n; cut++) { \
			m = exactly(buf, cut); \
			assert_int_equal(pvfs_##name##_decode(&b, m, cut), -EBADMSG); \
			assert_int_equal(pvfs_##name##_encode(&a, m, cut), -EMSGSIZE); \
			free(m); \
		} \
	} \
}
#include "common/msg.def"
#include "common/msg_undef.h"

/* Every operation has both bodies: that this compiles is the test. */
static void test_ops_have_bodies(void **state)
{
	size_t total = 0;

#define PVFS_OP(num, NAME, name, by, flags) \
	total += sizeof(struct pvfs_##name##_req) + sizeof(struct pvfs_##name##_rep);
#include "common/ops.def"
#undef PVFS_OP
	assert_true(total > 0);
}

static void test_op_info(void **state)
{
	unsigned int op, n = 0, named = 0;

#define PVFS_OP(num, NAME, lower, who, fl) n++; \
	assert_true(num > 0 && num < PVFS_OP_LIMIT); \
	assert_non_null(pvfs_op_info(num)); \
	assert_string_equal(pvfs_op_info(num)->name, #NAME); \
	assert_int_equal(pvfs_op_info(num)->flags, fl); \
	assert_string_equal(pvfs_op_name(num), #NAME);
#include "common/ops.def"
#undef PVFS_OP
	for (op = 0; op < 70000; op++)
		named += !!pvfs_op_info(op);
	assert_int_equal(n, named);
	assert_null(pvfs_op_info(0));
	assert_null(pvfs_op_info(PVFS_OP_LIMIT));
	assert_null(pvfs_op_info(0xffffffff));
	assert_string_equal(pvfs_op_name(0xffffffff), "?");
}

/* A string over its limit is refused on both sides, wherever it is. */
static void test_over_limit(void **state)
{
	struct pvfs_lookup_req a = { 0 }, b;
	static u8 name[PVFS_NAME_MAX + 1];
	struct pvfs_wire w;
	int n;

	a.name = (struct pvfs_str){ .p = name, .len = sizeof(name) };
	assert_int_equal(pvfs_lookup_req_encode(&a, buf, sizeof(buf)), -EMSGSIZE);
	a.name.len = PVFS_NAME_MAX;
	n = pvfs_lookup_req_encode(&a, buf, sizeof(buf));
	assert_true(n > 0);
	pvfs_wire_init(&w, buf + n - PVFS_NAME_MAX - 2, 2);
	pvfs_put_u16(&w, PVFS_NAME_MAX + 1);
	assert_int_equal(pvfs_lookup_req_decode(&b, buf, n + 1), -EBADMSG);
	a.cred.groups = (struct pvfs_str){ .p = fill_bytes, .len = PVFS_NGROUPS_MAX * 4 + 4 };
	assert_int_equal(pvfs_lookup_req_encode(&a, buf, sizeof(buf)), -EMSGSIZE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops_have_bodies),
		cmocka_unit_test(test_op_info),
		cmocka_unit_test(test_over_limit),
#define U8(f)
#define U16(f)
#define U32(f)
#define U64(f)
#define S64(f)
#define FIX(f, n)
#define STR(f, max)
#define BLOB(f, max)
#define SUB(type, f)
#define SUBMSG(name, fields)
#define MSG(name, fields) cmocka_unit_test(test_##name),
#include "common/msg.def"
#include "common/msg_undef.h"
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}
