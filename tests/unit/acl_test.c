// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * acl_test.c - ACLs as bytes and what they mean: any bytes are read safely, what is accepted comes
 * out as it went in, modes go in and out.
 */
#include "common/acl.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void add(struct pvfs_acl *a, u16 tag, u16 perm, u32 id)
{
	a->e[a->n++] = (struct pvfs_acl_entry){ .tag = tag, .perm = perm, .id = id };
}

static struct pvfs_acl extended(u16 mask)
{
	struct pvfs_acl a = { 0 };

	add(&a, PVFS_ACL_USER_OBJ, 7, 0xffffffff);
	add(&a, PVFS_ACL_USER, 6, 5);
	add(&a, PVFS_ACL_GROUP_OBJ, 5, 0xffffffff);
	add(&a, PVFS_ACL_GROUP, 2, 8);
	add(&a, PVFS_ACL_MASK, mask, 0xffffffff);
	add(&a, PVFS_ACL_OTHER, 1, 0xffffffff);
	return a;
}

static void round_trip(void **state)
{
	static struct pvfs_acl a, b;
	u8 buf[PVFS_ACL_BYTES_MAX], *cut;
	u32 n, i;

	a = extended(7);
	n = pvfs_acl_encode(&a, buf);
	assert_int_equal(n, 4 + 6 * 8);
	assert_int_equal(pvfs_acl_decode(&b, buf, n), 0);
	assert_int_equal(b.n, a.n);
	assert_memory_equal(a.e, b.e, a.n * sizeof(a.e[0]));
	/* In memory of exactly that size, so that a sanitizer sees a step beyond it. */
	for (i = 0; i < n; i++) {
		cut = malloc(i ?: 1);
		memcpy(cut, buf, i);
		if (i == 4)
			assert_int_equal(pvfs_acl_decode(&b, cut, i), 0);
		else
			assert_int_equal(pvfs_acl_decode(&b, cut, i), -EINVAL);
		free(cut);
	}
	buf[0] = 1;
	assert_int_equal(pvfs_acl_decode(&b, buf, n), -EOPNOTSUPP);
	/* The longest there is. */
	a = (struct pvfs_acl){ 0 };
	add(&a, PVFS_ACL_USER_OBJ, 7, 0xffffffff);
	while (a.n < PVFS_ACL_MAX - 3)
		add(&a, PVFS_ACL_USER, 7, a.n);
	add(&a, PVFS_ACL_GROUP_OBJ, 7, 0xffffffff);
	add(&a, PVFS_ACL_MASK, 7, 0xffffffff);
	add(&a, PVFS_ACL_OTHER, 7, 0xffffffff);
	n = pvfs_acl_encode(&a, buf);
	assert_int_equal(n, PVFS_ACL_BYTES_MAX);
	assert_int_equal(pvfs_acl_decode(&b, buf, n), 0);
	assert_memory_equal(a.e, b.e, a.n * sizeof(a.e[0]));
}

/* Whatever is accepted can be used, and is what it is when it is read again. */
static void any_bytes(void **state)
{
	static const u8 tag[] = { 1, 2, 4, 8, 16, 32 };
	static struct pvfs_acl a, b;
	struct pvfs_cred cred = { .uid = 5, .gid = 8 };
	u8 buf[4 + 8 * 8] = { 2 }, again[PVFS_ACL_BYTES_MAX];
	unsigned int good = 0, seed = 4711;
	u32 i, k, n, mode;

	for (i = 0; i < 300000; i++) {
		n = rand_r(&seed) % 9;
		for (k = 0; k < n; k++) {
			u8 *e = buf + 4 + 8 * k;
			u32 t = min(k, 5u);

			/* Mostly in order, so that some are good. */
			if (n == 3)
				t = k == 2 ? 5 : k == 1 ? 2 : 0;
			put_unaligned_le16(rand_r(&seed) % 8 ? tag[t] : rand_r(&seed) % 70, e);
			put_unaligned_le16(rand_r(&seed) % 8, e + 2);
			put_unaligned_le32(rand_r(&seed) % 10, e + 4);
		}
		if (pvfs_acl_decode(&a, buf, 4 + 8 * n) || !a.n)
			continue;
		good++;
		assert_int_equal(pvfs_acl_encode(&a, again), 4 + 8 * n);
		assert_int_equal(pvfs_acl_decode(&b, again, 4 + 8 * n), 0);
		assert_memory_equal(a.e, b.e, a.n * sizeof(a.e[0]));
		mode = rand_r(&seed) % 01000;
		pvfs_acl_chmod(&a, mode);
		k = 0;
		pvfs_acl_minimal(&a, &k);
		assert_int_equal(k, mode);
		pvfs_acl_may(&a, &cred, 1, 2, 7);
	}
	assert_true(good > 1000);
}

static void inherit(void **state)
{
	struct pvfs_acl a = extended(7), m = { 0 };
	u32 mode = 0100000 | 0640;

	assert_true(pvfs_acl_inherit(&a, &mode));
	assert_int_equal(mode, 0100000 | 0640);
	assert_int_equal(a.e[0].perm, 6);
	assert_int_equal(a.e[1].perm, 6);
	assert_int_equal(a.e[2].perm, 5);
	assert_int_equal(a.e[4].perm, 4);
	assert_int_equal(a.e[5].perm, 0);
	add(&m, PVFS_ACL_USER_OBJ, 7, 0xffffffff);
	add(&m, PVFS_ACL_GROUP_OBJ, 5, 0xffffffff);
	add(&m, PVFS_ACL_OTHER, 4, 0xffffffff);
	mode = 02666;
	assert_false(pvfs_acl_inherit(&m, &mode));
	assert_int_equal(mode, 02644);
}

static void granted(void **state)
{
	u8 groups[8];
	struct pvfs_cred cred = { .uid = 9, .gid = 9, .groups = { .p = groups, .len = 8 } };
	struct pvfs_acl a = extended(7), few = extended(2);

	put_unaligned_le32(100, groups);
	put_unaligned_le32(101, groups + 4);
	assert_true(pvfs_acl_may(&a, &cred, 1, 2, 1));
	assert_false(pvfs_acl_may(&a, &cred, 1, 2, 2));
	assert_true(pvfs_acl_may(&a, &cred, 9, 2, 7));
	assert_true(pvfs_acl_may(&a, &cred, 1, 9, 5));
	assert_false(pvfs_acl_may(&a, &cred, 1, 9, 2));
	/* By a supplementary group, and by both: either grants what it grants, none both. */
	put_unaligned_le32(8, groups + 4);
	assert_true(pvfs_acl_may(&a, &cred, 1, 2, 2));
	assert_false(pvfs_acl_may(&a, &cred, 1, 2, 1));
	assert_true(pvfs_acl_may(&a, &cred, 1, 9, 2));
	assert_true(pvfs_acl_may(&a, &cred, 1, 9, 5));
	assert_false(pvfs_acl_may(&a, &cred, 1, 9, 6));
	cred.uid = 5;
	assert_true(pvfs_acl_may(&a, &cred, 1, 9, 6));
	assert_false(pvfs_acl_may(&a, &cred, 1, 9, 1));
	assert_true(pvfs_acl_may(&few, &cred, 1, 9, 2));
	assert_false(pvfs_acl_may(&few, &cred, 1, 9, 4));
	assert_true(pvfs_acl_may(&few, &cred, 5, 9, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(any_bytes), cmocka_unit_test(inherit),
		cmocka_unit_test(granted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("acl", tests, NULL, NULL);
}
