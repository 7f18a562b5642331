// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * log_test.c - lines, levels, and that a remote can't fill a disk with them.
 */
#include "common/log.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static char path[] = "/tmp/pvfs-log-test.XXXXXX";

static char *slurp(void)
{
	static char text[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	assert_int_equal(truncate(path, 0), 0);
	return text;
}

static int lines(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

static void test_line(void **state)
{
	char *s;

	errno = ENOENT;
	pvfs_warn("disk %d: %s", 7, "slow");
	assert_int_equal(errno, ENOENT);
	s = slurp();
	assert_int_equal(lines(s), 1);
	assert_non_null(strstr(s, "testlog["));
	assert_non_null(strstr(s, "warning: disk 7: slow\n"));
}

static void test_levels(void **state)
{
	pvfs_debug("not to be seen");
	assert_string_equal(slurp(), "");
	pvfs_info("to be seen");
	assert_non_null(strstr(slurp(), "to be seen\n"));
}

static void test_long(void **state)
{
	static char big[5000];
	char *s;

	memset(big, 'x', sizeof(big) - 1);
	pvfs_error("%s", big);
	s = slurp();
	assert_int_equal(lines(s), 1);
	assert_true(strlen(s) <= 1024);
	assert_int_equal(s[strlen(s) - 1], '\n');
}

static void test_ratelimit(void **state)
{
	struct pvfs_ratelimit r = { 0 };
	int i, passed = 0;

	for (i = 0; i < 100; i++)
		passed += pvfs_ratelimit_pass(&r, 5, 200);
	assert_int_equal(passed, 5);
	assert_string_equal(slurp(), "");
	usleep(220000);
	assert_true(pvfs_ratelimit_pass(&r, 5, 200));
	assert_non_null(strstr(slurp(), "95 lines like the next were left out\n"));
	assert_true(pvfs_ratelimit_pass(&r, 5, 200));
	assert_string_equal(slurp(), "");
}

static void test_limited(void **state)
{
	char *s;
	int i;

	for (i = 0; i < 1000; i++)
		pvfs_log_limited(PVFS_LOG_WARNING, "noise %d", i);
	s = slurp();
	assert_int_equal(lines(s), 10);
	assert_non_null(strstr(s, "noise 9\n"));
	assert_null(strstr(s, "noise 10\n"));
}

static struct pvfs_ratelimit shared;
static int total;

static void *hammer(void *arg)
{
	int i, n = 0;

	for (i = 0; i < 20000; i++)
		n += pvfs_ratelimit_pass(&shared, 50, 600000);
	__atomic_fetch_add(&total, n, __ATOMIC_SEQ_CST);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, NULL), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(total, 50);
}

#define WRITES 2000

static void *writer(void *unused)
{
	int i;

	for (i = 0; i < WRITES; i++)
		pvfs_info("line %d", i);
	return NULL;
}

static void test_bad_file(void **state)
{
	assert_int_equal(pvfs_log_init("testlog", PVFS_LOG_INFO, "/nonexistent/dir/log"), -ENOENT);
	pvfs_info("the old one is still there");
	assert_int_equal(lines(slurp()), 1);
}

/* While others write: each line is whole, and in one of the two files. */
static void test_reopen(void **state)
{
	char moved[sizeof(path) + 8];
	pthread_t t;
	FILE *f;
	int n = 0, c;

	snprintf(moved, sizeof(moved), "%s.old", path);
	assert_int_equal(pthread_create(&t, NULL, writer, NULL), 0);
	assert_int_equal(rename(path, moved), 0);
	errno = EBUSY;
	assert_int_equal(pvfs_log_reopen(), 0);
	assert_int_equal(errno, EBUSY);
	pthread_join(t, NULL);
	pvfs_info("to the new one");
	f = fopen(moved, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	unlink(moved);
	assert_int_equal(n + lines(slurp()), WRITES + 1);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_ratelimit),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_reopen),
	};
	int fd = mkstemp(path), rc;

	if (fd < 0 || pvfs_log_init("testlog", PVFS_LOG_INFO, path))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	rc = cmocka_run_group_tests_name("log", tests, NULL, NULL);
	close(fd);
	unlink(path);
	return rc;
}
