// SPDX-License-Identifier: GPL-2.0 OR LGPL-2.1
/*
 * storeid_test.c - a store is served only by the daemon it belongs to, and by one at a time.
 */
#include "common/storeid.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char top[64], dir[96], msg[1024];
static const struct pvfs_storeid iod3 = {
	.format = PVFS_STORE_FORMAT, .uuid = { 1, 2, 3, [15] = 0xfe }, .name = "vol",
	.role = PVFS_ROLE_IOD, .index = 3,
};

static int fresh(void **state)
{
	char cmd[128];

	if (*top) {
		snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
		if (system(cmd))
			return -1;
	}
	strcpy(top, "/tmp/pvfs-storeid-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(dir, sizeof(dir), "%s/a/b/store", top);
	return 0;
}

static int cleanup(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	*top = '\0';
	return system(cmd) ? -1 : 0;
}

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_create_check(void **state)
{
	struct pvfs_storeid other;
	struct stat st;

	assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), -ENOENT);
	assert_non_null(strstr(msg, "is not a PVFS store"));
	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), 0);
	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), -EEXIST);

	other = iod3;
	other.index = 4;
	assert_int_equal(pvfs_storeid_check(dir, &other, msg, sizeof(msg)), -ESTALE);
	assert_non_null(strstr(msg,
			       "belongs to iod 3 of volume 'vol' (01020300-0000-0000-0000-0000000000fe), "
			       "expected iod 4"));
	other = iod3;
	other.uuid[0]++;
	assert_int_equal(pvfs_storeid_check(dir, &other, msg, sizeof(msg)), -ESTALE);
	other = iod3;
	other.role = PVFS_ROLE_MGR;
	assert_int_equal(pvfs_storeid_check(dir, &other, msg, sizeof(msg)), -ESTALE);
	/* a volume may be renamed; its uuid is what counts */
	other = iod3;
	strcpy(other.name, "renamed");
	assert_int_equal(pvfs_storeid_check(dir, &other, msg, sizeof(msg)), 0);
}

static void test_not_empty(void **state)
{
	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	strcat(dir, "2");
	assert_int_equal(mkdir(dir, 0755), 0);
	put("precious", "x");
	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), -ENOTEMPTY);
	assert_non_null(strstr(msg, "precious"));
}

static void test_leftover(void **state)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "mkdir -p %s/lost+found", dir);
	assert_int_equal(system(cmd), 0);
	put("pvfs.store.new", "half a ma");
	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), 0);
}

static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"", "format\n", "format x\n", "format 2\n", "format 99999999999\n",
		"format 2\nvolume zz\nname v\nrole iod\nindex 3\n",
		"format 2\nvolume 01020300-0000-0000-0000-0000000000fe\nname v\nrole cook\nindex 3\n",
		"format 2\nvolume 01020300-0000-0000-0000-0000000000fe\nname v\nrole iod\nindex -3\n",
		"format 2\nvolume 01020300-0000-0000-0000-0000000000fe\nname v\nrole iod\n",
	};
	size_t i;

	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		put("pvfs.store", bad[i]);
		assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), -EINVAL);
		assert_non_null(strstr(msg, "damaged"));
	}
	put("pvfs.store", "format 3\nwhatever else\n");
	assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), -EPROTONOSUPPORT);
	assert_non_null(strstr(msg, "has format 3, newer than this program's"));
	put("pvfs.store", "format 1\nwhatever else\n");
	assert_int_equal(pvfs_storeid_check(dir, &iod3, msg, sizeof(msg)), -EPROTONOSUPPORT);
	assert_non_null(strstr(msg, "has format 1, older than this program's"));
}

static void test_lock(void **state)
{
	int fd, status;
	pid_t pid;

	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	fd = pvfs_store_lock(dir, msg, sizeof(msg));
	assert_true(fd >= 0);
	pid = fork();
	if (!pid) {
		char want[64];

		snprintf(want, sizeof(want), "in use by another daemon, process %d:",
			 (int)getppid());
		_exit(pvfs_store_lock(dir, msg, sizeof(msg)) == -EWOULDBLOCK &&
		      strstr(msg, want) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	fd = pvfs_store_lock(dir, msg, sizeof(msg));
	assert_true(fd >= 0);
	close(fd);
}

/* A daemon that was killed has not let go of its store yet: who is next waits for that. */
static void test_lock_of_the_dead(void **state)
{
	int held[2], ready[2], status, i;
	pid_t owner, next;
	char c;

	assert_int_equal(pvfs_storeid_create(dir, &iod3, msg, sizeof(msg)), 0);
	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(ready), 0);
	owner = fork();
	if (!owner) {
		close(held[1]);
		if (pvfs_store_lock(dir, msg, sizeof(msg)) < 0)
			_exit(1);
		/* What keeps the lock when its owner is dead, until the pipe is closed. */
		if (!fork()) {
			while (write(ready[1], "", 1) != 1)
				;
			_exit(read(held[0], &c, 1));
		}
		pause();
	}
	close(held[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	/* It stays a zombie. */
	kill(owner, SIGKILL);
	next = fork();
	if (!next) {
		close(held[1]);
		_exit(pvfs_store_lock(dir, msg, sizeof(msg)) >= 0 ? 0 : 1);
	}
	for (i = 0; i < 100; i++) {
		assert_int_equal(waitpid(next, &status, WNOHANG), 0);
		usleep(1000);
	}
	close(held[1]);
	assert_int_equal(waitpid(next, &status, 0), next);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_true(WIFSIGNALED(status));
	close(ready[0]);
	close(ready[1]);
}

static void test_uuid(void **state)
{
	u8 u[PVFS_UUID_LEN] = { 0 };
	char text[37];

	assert_int_equal(pvfs_uuid_parse("00112233-4455-6677-8899-aABBccddeeff", u), 0);
	pvfs_uuid_text(u, text);
	assert_string_equal(text, "00112233-4455-6677-8899-aabbccddeeff");
	assert_int_equal(pvfs_uuid_parse("", u), -EINVAL);
	assert_int_equal(pvfs_uuid_parse("00112233-4455-6677-8899-aabbccddeef", u), -EINVAL);
	assert_int_equal(pvfs_uuid_parse("00112233-4455-6677-8899-aabbccddeeff0", u), -EINVAL);
	assert_int_equal(pvfs_uuid_parse("00112233x4455-6677-8899-aabbccddeeff", u), -EINVAL);
	assert_int_equal(pvfs_uuid_parse("0x112233-4455-6677-8899-aabbccddeeff", u), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_create_check, fresh, cleanup),
		cmocka_unit_test_setup_teardown(test_not_empty, fresh, cleanup),
		cmocka_unit_test_setup_teardown(test_leftover, fresh, cleanup),
		cmocka_unit_test_setup_teardown(test_damaged, fresh, cleanup),
		cmocka_unit_test_setup_teardown(test_lock, fresh, cleanup),
		cmocka_unit_test_setup_teardown(test_lock_of_the_dead, fresh, cleanup),
		cmocka_unit_test(test_uuid),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("storeid", tests, NULL, NULL);
}
