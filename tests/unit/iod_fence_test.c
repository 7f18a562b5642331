// SPDX-License-Identifier: GPL-2.0
/*
 * iod_fence_test.c - the sessions that an iod refuses: any number of them, and after a restart.
 */
#include "iod/fence.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MANY 70000u	/* there was once room for 65536 */

static void many(void **state)
{
	u64 *id = calloc(MANY, sizeof(*id));
	char dir[64], path[128];
	struct iod_fence *f;
	struct stat st;
	u32 i;

	snprintf(dir, sizeof(dir), "%s/pvfs-fence-XXXXXX", "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(iod_fence_open(dir, &f), 0);
	/* Not in order, and some twice. */
	for (i = 0; i < MANY; i++)
		id[i] = 1 + (i * 7919ull) % MANY;
	assert_int_equal(iod_fence_add(f, id, MANY / 2), 0);
	assert_int_equal(iod_fence_add(f, id + MANY / 2 - 10, MANY - MANY / 2 + 10), 0);
	assert_int_equal(iod_fence_save(f), 0);
	for (i = 1; i <= MANY; i++)
		assert_true(iod_fence_has(f, i));
	iod_fence_close(f);
	assert_int_equal(iod_fence_open(dir, &f), 0);
	for (i = 1; i <= MANY; i++)
		assert_true(iod_fence_has(f, i));
	assert_false(iod_fence_has(f, 0));
	assert_false(iod_fence_has(f, MANY + 1));
	iod_fence_close(f);
	snprintf(path, sizeof(path), "%s/pvfs.evicted", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, MANY * 8);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	free(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(many) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
