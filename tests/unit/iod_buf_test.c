// SPDX-License-Identifier: GPL-2.0
/*
 * iod_buf_test.c - the buffer manager: the bound holds, shares are fair, nobody waits for ever.
 */
#include "transport/bufmgr.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1u << 20)

static struct pvfs_bufs *m;
static int calls;

static void ready(void *arg)
{
	calls++;
}

static int setup(void **state)
{
	calls = 0;
	return pvfs_bufs_new(16 * MIB, MIB, ready, NULL, &m);
}

static int teardown(void **state)
{
	pvfs_bufs_free(m);
	return 0;
}

static u64 used(void)
{
	u64 u, a;
	u32 w;

	pvfs_bufs_usage(m, &u, &a, &w);
	assert_true(u <= a && a <= 16 * MIB);
	return u;
}

static u32 waiting(void)
{
	u64 u, a;
	u32 w;

	pvfs_bufs_usage(m, &u, &a, &w);
	return w;
}

static void test_zones(void **state)
{
	static const struct { u32 len, size; } t[] = {
		{ 1, 4096 }, { 4096, 4096 }, { 4097, 16384 }, { 65536, 65536 }, { 65537, 262144 },
		{ MIB, MIB },
	};
	struct pvfs_buf *b, *c;
	u8 *mem, *mem2;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		b = pvfs_bufs_get(m, 1, t[i].len, NULL, &mem);
		assert_non_null(b);
		assert_int_equal((uintptr_t)mem % 4096, 0);
		memset(mem, 0x5a, t[i].size);
		assert_int_equal(used(), t[i].size);
		pvfs_bufs_put(b);
		/* the warm one comes back */
		c = pvfs_bufs_get(m, 2, t[i].len, NULL, &mem2);
		assert_ptr_equal(mem, mem2);
		pvfs_bufs_put(c);
	}
	assert_null(pvfs_bufs_get(m, 1, MIB + 1, NULL, &mem));
	assert_int_equal(used(), 0);
}

static void test_sizes_refused(void **state)
{
	struct pvfs_bufs *x;

	assert_int_equal(pvfs_bufs_new(16 * MIB, 3000, NULL, NULL, &x), -EINVAL);
	assert_int_equal(pvfs_bufs_new(16 * MIB, 2048, NULL, NULL, &x), -EINVAL);
	assert_int_equal(pvfs_bufs_new(16 * MIB, 4 * MIB, NULL, NULL, &x), -EINVAL);
	assert_int_equal(pvfs_bufs_new(128 * MIB, 8 * MIB, NULL, NULL, &x), -EINVAL);
	assert_int_equal(pvfs_bufs_new(32 * MIB, 4 * MIB, NULL, NULL, &x), 0);
	pvfs_bufs_free(x);
	/* the largest need not be a power of four */
	assert_int_equal(pvfs_bufs_new(32 * MIB, 128 << 10, NULL, NULL, &x), 0);
	pvfs_bufs_free(x);
	pvfs_bufs_free(NULL);
}

/* One client alone may have everything; not a byte more is allocated. */
static void test_bound(void **state)
{
	struct pvfs_bufwait w = { .queued = false };
	struct pvfs_buf *b[16], *small;
	u8 *mem;
	int i;

	for (i = 0; i < 16; i++) {
		b[i] = pvfs_bufs_get(m, 1, MIB, NULL, &mem);
		assert_non_null(b[i]);
	}
	assert_int_equal(used(), 16 * MIB);
	assert_null(pvfs_bufs_get(m, 1, 1, &w, &mem));
	assert_null(pvfs_bufs_get(m, 1, 1, &w, &mem));
	assert_int_equal(waiting(), 1);
	pvfs_bufs_put(b[0]);
	assert_true(calls > 0);
	small = pvfs_bufs_get(m, 1, 1, &w, &mem);
	assert_non_null(small);
	assert_int_equal(waiting(), 0);
	pvfs_bufs_put(small);
	for (i = 1; i < 16; i++)
		pvfs_bufs_put(b[i]);
	assert_int_equal(used(), 0);
}

/* What one zone keeps makes room for another. */
static void test_zones_share(void **state)
{
	struct pvfs_buf *big[16], *small[4096];
	u8 *mem;
	int i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 16; i++) {
			big[i] = pvfs_bufs_get(m, 1, MIB, NULL, &mem);
			assert_non_null(big[i]);
			mem[0] = mem[MIB - 1] = 1;
		}
		used();
		for (i = 0; i < 16; i++)
			pvfs_bufs_put(big[i]);
		for (i = 0; i < 4096; i++) {
			small[i] = pvfs_bufs_get(m, 1, 4096, NULL, &mem);
			assert_non_null(small[i]);
			mem[0] = mem[4095] = 1;
		}
		assert_int_equal(used(), 16 * MIB);
		for (i = 0; i < 4096; i++)
			pvfs_bufs_put(small[i]);
	}
}

/* A big client leaves a quarter once another is there, and drops to its share. */
static void test_fair(void **state)
{
	struct pvfs_bufwait wb = { .queued = false }, ws = { .queued = false };
	struct pvfs_buf *b[16], *s[8], *x;
	int nb = 0, ns = 0, i;
	u8 *mem;

	s[ns++] = pvfs_bufs_get(m, 2, MIB, NULL, &mem);
	while ((x = pvfs_bufs_get(m, 1, MIB, &wb, &mem)) != NULL)
		b[nb++] = x;
	/* 1 + 11 fill three quarters; above that it is over its half */
	assert_int_equal(nb, 11);
	/* the small one goes on up to its half, though the big one waits longer */
	while (ns < 8 && (x = pvfs_bufs_get(m, 2, MIB, &ws, &mem)) != NULL)
		s[ns++] = x;
	assert_int_equal(ns, 4);	/* room for the one that waits longest is left */
	pvfs_bufs_put(b[--nb]);
	assert_true(calls > 0);
	assert_null(pvfs_bufs_get(m, 1, MIB, &wb, &mem));
	x = pvfs_bufs_get(m, 2, MIB, &ws, &mem);
	assert_non_null(x);
	s[ns++] = x;
	for (i = 0; i < nb; i++)
		pvfs_bufs_put(b[i]);
	x = pvfs_bufs_get(m, 1, MIB, &wb, &mem);
	assert_non_null(x);
	pvfs_bufs_put(x);
	for (i = 0; i < ns; i++)
		pvfs_bufs_put(s[i]);
	assert_int_equal(waiting(), 0);
	assert_int_equal(used(), 0);
}

/* More clients than buffers: each has one at most when memory is short, and each gets its turn. */
static void test_thousand(void **state)
{
	static struct pvfs_bufwait w[1000];
	static struct pvfs_buf *b[1000];
	static int turns[1000];
	int i, round, done = 0;
	u8 *mem;

	memset(w, 0, sizeof(w));
	for (round = 0; round < 200 && done < 1000; round++) {
		for (i = 0; i < 1000; i++) {
			if (b[i] || turns[i])
				continue;
			b[i] = pvfs_bufs_get(m, 100 + i, MIB, &w[i], &mem);
		}
		used();
		for (i = 0; i < 1000; i++) {
			if (b[i]) {
				pvfs_bufs_put(b[i]);
				b[i] = NULL;
				turns[i]++;
				done++;
			}
		}
	}
	assert_int_equal(done, 1000);
	assert_int_equal(waiting(), 0);
	assert_int_equal(used(), 0);
}

static void test_forget(void **state)
{
	struct pvfs_bufwait w = { .queued = false }, v = { .queued = false };
	struct pvfs_buf *b[16];
	int i, before;
	u8 *mem;

	for (i = 0; i < 16; i++)
		b[i] = pvfs_bufs_get(m, 1, MIB, NULL, &mem);
	assert_null(pvfs_bufs_get(m, 2, MIB, &w, &mem));
	assert_null(pvfs_bufs_get(m, 3, 4096, &v, &mem));
	assert_int_equal(waiting(), 2);
	before = calls;
	pvfs_bufs_kick(m);
	assert_int_equal(calls, before + 1);
	pvfs_bufs_forget(m, &w);
	assert_int_equal(waiting(), 1);
	assert_int_equal(calls, before + 2);
	pvfs_bufs_forget(m, &w);
	pvfs_bufs_forget(m, &v);
	assert_int_equal(waiting(), 0);
	pvfs_bufs_kick(m);
	assert_int_equal(calls, before + 2);
	for (i = 0; i < 16; i++)
		pvfs_bufs_put(b[i]);
}

/* A wait begun under one session may end under another. */
static void test_wait_moves(void **state)
{
	struct pvfs_bufwait w = { .queued = false };
	struct pvfs_buf *b[16];
	u8 *mem;
	int i;

	for (i = 0; i < 16; i++)
		b[i] = pvfs_bufs_get(m, 1, MIB, NULL, &mem);
	assert_null(pvfs_bufs_get(m, 0, MIB, &w, &mem));
	pvfs_bufs_put(b[0]);
	b[0] = pvfs_bufs_get(m, 7, MIB, &w, &mem);
	assert_non_null(b[0]);
	for (i = 0; i < 16; i++)
		pvfs_bufs_put(b[i]);
	assert_int_equal(used(), 0);
}

static _Atomic int over;

static void *hammer(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct pvfs_bufwait w = { .queued = false };
	struct pvfs_buf *b[4] = { NULL };
	int i, k;
	u8 *mem;

	for (i = 0; i < 20000; i++) {
		k = rand_r(&seed) & 3;
		if (b[k]) {
			pvfs_bufs_put(b[k]);
			b[k] = NULL;
		} else {
			u32 len = 1u << (rand_r(&seed) % 21);

			b[k] = pvfs_bufs_get(m, (uintptr_t)arg & 3, len, &w, &mem);
			if (b[k])
				mem[0] = mem[len - 1] = 1;
		}
		if (i % 64 == 0) {
			u64 u, a;
			u32 n;

			pvfs_bufs_usage(m, &u, &a, &n);
			if (u > a || a > 16 * MIB)
				atomic_fetch_add(&over, 1);
		}
	}
	pvfs_bufs_forget(m, &w);
	for (k = 0; k < 4; k++) {
		if (b[k])
			pvfs_bufs_put(b[k]);
	}
	return NULL;
}

static void test_threads(void **state)
{
	char *text = NULL;
	pthread_t t[8];
	size_t i, n = 0;
	FILE *f;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, (void *)(uintptr_t)(i + 1)),
				 0);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&over), 0);
	assert_int_equal(used(), 0);
	assert_int_equal(waiting(), 0);
	f = open_memstream(&text, &n);
	pvfs_bufs_stats(m, f);
	fclose(f);
	assert_non_null(strstr(text, "\"limit\":16777216,\"used\":0,"));
	assert_non_null(strstr(text, "\"clients\":0,\"waiting\":0"));
	free(text);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_zones), cmocka_unit_test(test_sizes_refused), TEST(test_bound),
		TEST(test_zones_share),
		TEST(test_fair), TEST(test_thousand), TEST(test_forget), TEST(test_wait_moves),
		TEST(test_threads),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("pvfs_buf", tests, NULL, NULL);
}
