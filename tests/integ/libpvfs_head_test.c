// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_head_test.c - stuffed files by two clients: what they cost, when they become striped,
 * appends, and daemons that are killed beside writers that cross the limit.
 */
#include <stdatomic.h>
#include "libpvfs_test.h"

#define STUFF 16384u

/* @n requests to the mgr, none to an iod. */
#define HEAD_COSTS(n, call) do { \
		uint64_t reads_ = count(PVFS_SERVER_ALL, "READ"); \
		uint64_t writes_ = count(PVFS_SERVER_ALL, "WRITE"); \
		MGR_COSTS(n, call); \
		assert_int_equal(count(PVFS_SERVER_ALL, "READ"), reads_); \
		assert_int_equal(count(PVFS_SERVER_ALL, "WRITE"), writes_); \
	} while (0)

static void test_costs(void **state)
{
	struct pvfs_file *f;
	char buf[100];

	MGR_COSTS(1, f = open_new("/small"));
	HEAD_COSTS(1, write_at(f, 0, 10000));
	OK(pvfs_close(f));
	OK(pvfs_open(fs, "/small", O_RDONLY, 0, &f));
	HEAD_COSTS(1, check_at(f, 0, 10000));
	HEAD_COSTS(1, assert_int_equal(pvfs_pread(f, buf, 100, 9950), 50));
	HEAD_COSTS(1, assert_int_equal(pvfs_pread(f, buf, 100, 10000), 0));
	OK(pvfs_close(f));
	MGR_COSTS(1, OK(pvfs_unlink(fs, "/small")));
	/* A long one: one question more, and then none but of the iods. */
	f = open_new("/long");
	COSTS(PVFS_SERVER_MGR, "UNSTUFF", 1, write_at(f, 0, MIB));
	MGR_COSTS(0, write_at(f, MIB, MIB));
	check_at(f, 0, 2 * MIB);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/long"));
	/* The unit is one daemon's, and the head goes there alone. */
	f = open_new("/grown");
	write_at(f, 0, STUFF);
	HEAD_COSTS(1, write_at(f, 100, 5));
	COSTS(PVFS_SERVER_MGR, "HEAD_WRITE", 0, write_at(f, STUFF, 1));
	MGR_COSTS(0, check_at(f, 0, STUFF + 1));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/grown"));
}

/* What one client did the other sees at once; who is the second to find out is told. */
static void test_two(void **state)
{
	struct pvfs_file *f = open_new("/two"), *g;
	struct pvfs_stat st;

	OK(pvfs_open(other, "/two", O_RDWR, 0, &g));
	write_at(f, 0, 100);
	check_at(g, 0, 100);
	write_at(g, 100, 5000);
	check_at(f, 0, 5100);
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_size, 5100);
	assert_int_equal(st.st.st_blocks, 16);
	OK(pvfs_ftruncate(g, 50));
	OK(pvfs_fstat(f, &st));
	assert_int_equal(st.st.st_size, 50);
	check_at(f, 0, 50);
	write_at(f, 50, 5000);
	/* It is striped by one, and the other does not know. */
	write_at(g, 5050, 200000);
	check_at(f, 0, 205050);
	write_at(f, 205050, 10);
	check_at(g, 0, 205060);
	OK(pvfs_fsync(f));
	OK(pvfs_ftruncate(f, 10));
	check_at(g, 0, 10);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_stat(other, "/two", &st));
	assert_int_equal(st.st.st_size, 10);
	OK(pvfs_unlink(fs, "/two"));
}

/* ---------------------------------------------------------------- appends */

#define RECORD 24
#define RECORDS 1500		/* of each of four: past the limit in the first third */

struct appender {
	struct pvfs_file *f;
	char letter;
	int errors;
};

static void *append(void *arg)
{
	struct appender *a = arg;
	char rec[RECORD + 1];
	int i;

	for (i = 0; i < RECORDS; i++) {
		snprintf(rec, sizeof(rec), "%c%0*d\n", a->letter, RECORD - 2, i);
		a->errors += pvfs_pwrite(a->f, rec, RECORD, 0) != RECORD;
	}
	return NULL;
}

/* Each record is there once, whole, and those of one appender in order. */
static void test_append(void **state)
{
	struct appender a[4] = { { .letter = 'a' }, { .letter = 'b' }, { .letter = 'c' },
				 { .letter = 'd' } };
	int next[4] = { 0 }, i, who;
	char *all = malloc(4 * RECORDS * RECORD), want[RECORD + 1];
	struct pvfs_file *f;
	pthread_t t[4];

	OK(pvfs_close(open_new("/log")));
	for (i = 0; i < 4; i++) {
		OK(pvfs_open(i % 2 ? other : fs, "/log", O_WRONLY | O_APPEND, 0, &a[i].f));
		pthread_create(&t[i], NULL, append, &a[i]);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(a[i].errors, 0);
		OK(pvfs_close(a[i].f));
	}
	OK(pvfs_open(fs, "/log", O_RDONLY, 0, &f));
	assert_int_equal(pvfs_pread(f, all, 4 * RECORDS * RECORD, 0), 4 * RECORDS * RECORD);
	assert_int_equal(pvfs_pread(f, want, 1, 4 * RECORDS * RECORD), 0);
	for (i = 0; i < 4 * RECORDS; i++) {
		who = all[i * RECORD] - 'a';
		assert_in_range(who, 0, 3);
		snprintf(want, sizeof(want), "%c%0*d\n", 'a' + who, RECORD - 2, next[who]++);
		assert_memory_equal(all + i * RECORD, want, RECORD);
	}
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/log"));
	free(all);
}

/* ---------------------------------------------------------------- restarts */

struct churner {
	struct pvfs_fs *fs;
	int id, rounds, errors;
	atomic_bool *stop;
};

/* Files whose lengths straddle the limit: made, written, grown, cut, renamed, read, removed. */
static void *churn(void *arg)
{
	struct churner *c = arg;
	uint8_t *buf = malloc(3 * STUFF), *want = pattern(0, 3 * STUFF);
	char name[64], to[64];
	struct pvfs_file *f;
	uint32_t n, m;

	for (; !atomic_load(c->stop) && !c->errors; c->rounds++) {
		snprintf(name, sizeof(name), "/churn-%d-%d", c->id, c->rounds % 7);
		snprintf(to, sizeof(to), "/moved-%d", c->id);
		n = 1 + (c->rounds * 7919u + c->id * 104729u) % (2 * STUFF);
		m = n + (c->rounds * 31u) % STUFF;
		c->errors += pvfs_open(c->fs, name, O_RDWR | O_CREAT | O_TRUNC, 0644, &f) != 0;
		if (c->errors)
			break;
		c->errors += pvfs_pwrite(f, want, n, 0) != n;
		c->errors += m > n && pvfs_pwrite(f, want + n, m - n, n) != m - n;
		c->errors += c->rounds % 3 == 0 && pvfs_fsync(f);
		c->errors += pvfs_close(f) != 0;
		c->errors += pvfs_rename(c->fs, name, to, 0) != 0;
		if (c->rounds % 2) {
			m /= 2;
			c->errors += pvfs_truncate(c->fs, to, m) != 0;
		}
		c->errors += pvfs_open(c->fs, to, O_RDONLY, 0, &f) != 0;
		if (c->errors)
			break;
		c->errors += pvfs_pread(f, buf, 3 * STUFF, 0) != m || memcmp(buf, want, m);
		c->errors += pvfs_close(f) != 0;
		if (c->rounds % 5 == 0)
			c->errors += pvfs_unlink(c->fs, to) != 0;
	}
	free(buf);
	free(want);
	return NULL;
}

static void test_restarts(void **state)
{
	static const char *const daemons[] = { "mgr", "iod1", "mgr", "iod0", "mgr", "iod3" };
	struct churner c[4];
	atomic_bool stop = false;
	struct pvfs_stat st;
	pthread_t t[4];
	char name[64];
	size_t i;
	int k;

	for (i = 0; i < 4; i++) {
		c[i] = (struct churner){ .fs = i % 2 ? other : fs, .id = i, .stop = &stop };
		pthread_create(&t[i], NULL, churn, &c[i]);
	}
	for (i = 0; i < sizeof(daemons) / sizeof(*daemons); i++) {
		usleep(300000);
		restart(daemons[i]);
	}
	usleep(300000);
	atomic_store(&stop, true);
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(c[i].errors, 0);
		assert_true(c[i].rounds > 0);
	}
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "/moved-%zu", i);
		if (!pvfs_stat(fs, name, &st))
			OK(pvfs_unlink(fs, name));
		for (k = 0; k < 7; k++) {
			snprintf(name, sizeof(name), "/churn-%zu-%d", i, k);
			assert_int_equal(pvfs_stat(fs, name, &st), -ENOENT);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_append),
		cmocka_unit_test(test_restarts),
	};

	return cmocka_run_group_tests_name("libpvfs: heads", tests, setup, teardown);
}
