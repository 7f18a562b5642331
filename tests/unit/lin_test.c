// SPDX-License-Identifier: GPL-2.0-only
/*
 * lin_test.c - the checks of the coherence tester (tests/random/): a checker that cannot say no
 * would make every run of it look well. Small histories are judged a second time by trying all
 * orders; large ones are made true, then false.
 */
#include "tests/random/coherence_check.c"
#include "tests/random/lin.c"
#include "tests/random/rnd.c"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct rnd rng;
static FILE *null;
static const struct lin_state none;

static enum lin_verdict check(const struct lin_model *m, const struct lin_op *ops, size_t n)
{
	return lin_check(m, &none, ops, n, null);
}

/* The definition, without any idea: every order that keeps who was over before whom. */
static bool any_order(const struct lin_model *m, const struct lin_op *ops, size_t n,
		      unsigned int done,
		      const struct lin_state *s)
{
	size_t i, k;

	if (done == (1u << n) - 1)
		return true;
	for (i = 0; i < n; i++) {
		struct lin_state after = *s;

		if (done & 1u << i)
			continue;
		for (k = 0; k < n; k++)
			if (!(done & 1u << k) && ops[k].ret < ops[i].call)
				break;
		if (k == n && m->step(&ops[i], &after) &&
		    any_order(m, ops, n, done | 1u << i, &after))
			return true;
	}
	return false;
}

static struct lin_op any_op(const struct lin_model *m)
{
	struct lin_op op = { 0 };

	if (m == &lin_names) {
		op.kind = rnd_below(&rng, 6);
		op.arg = rnd_below(&rng, 2);
		op.arg2 = op.kind >= NAME_RENAME ? 1 - op.arg : 1 + (int64_t)rnd_below(&rng, 2);
		if (rnd_one_in(&rng, 3))
			op.result = op.kind == NAME_CREATE ||
				(op.kind == NAME_RENAME_NEW && rnd_one_in(&rng, 2)) ? EEXIST :
				    ENOENT;
		return op;
	}
	op.kind = rnd_below(&rng, m == &lin_block ? 6 : 4);
	op.arg = 1 + rnd_below(&rng, 2);
	op.result = (int64_t)rnd_below(&rng, 4) - (m == &lin_block);
	return op;
}

static const struct lin_model *const models[] = { &lin_block, &lin_size, &lin_names };

static void test_against_all_orders(void **state)
{
	int i, verdicts[2] = { 0, 0 };

	for (i = 0; i < 30000; i++) {
		const struct lin_model *m = models[i % 3];
		size_t n = 2 + rnd_below(&rng, 6), k;
		struct lin_op ops[8];
		bool good;

		for (k = 0; k < n; k++) {
			ops[k] = any_op(m);
			ops[k].call = rnd_below(&rng, 20);
			ops[k].ret = ops[k].call + rnd_below(&rng, 12);
		}
		good = any_order(m, ops, n, 0, &none);
		verdicts[good]++;
		assert_int_equal(check(m, ops, n), good ? LIN_OK : LIN_BAD);
	}
	/* Both answers were asked for. */
	assert_true(verdicts[0] > 3000 && verdicts[1] > 3000);
}

/* What really happens at instants within the calls, of @width at a time. */
static void make_true(const struct lin_model *m, struct lin_op *ops, size_t n, int width)
{
	struct lin_state s = none, after;
	size_t i;

	for (i = 0; i < n; i++) {
		do {
			after = s;
			ops[i] = any_op(m);
			/* Versions are written once. */
			if (m == &lin_block && (ops[i].kind == BLOCK_WRITE || ops[i].kind == BLOCK_STORE))
				ops[i].arg = i + 1;
			if (m != &lin_names && ops[i].kind == 3)
				ops[i].result = s.v[0];
			if (m == &lin_names && ops[i].kind == NAME_CREATE)
				ops[i].arg2 = i + 1;
			if (m == &lin_names && ops[i].kind == NAME_LOOK && !ops[i].result)
				ops[i].arg2 = s.v[ops[i].arg];
			if (m == &lin_size && s.v[0] > 1000)
				ops[i].kind = SIZE_SET;
		} while (!m->step(&ops[i], &after));
		s = after;
		ops[i].call = (int64_t)i * 100 - rnd_below(&rng, 100 * width);
		ops[i].ret = (int64_t)i * 100 + rnd_below(&rng, 100 * width);
		ops[i].who = i % width;
	}
}

static void test_true_histories(void **state)
{
	static struct lin_op ops[600];
	int i;

	for (i = 0; i < 60; i++) {
		make_true(models[i % 3], ops, 600, 1 + i % 6);
		assert_int_equal(check(models[i % 3], ops, 600), LIN_OK);
	}
}

/* One result of many falsified: a read of what was not there any more when it was called. */
static void test_stale_read(void **state)
{
	static struct lin_op ops[303];
	int i;

	for (i = 0; i < 30; i++) {
		int64_t t;

		make_true(&lin_block, ops, 300, 4);
		t = 300 * 100 + 1000;
		ops[300] = (struct lin_op){ .kind = BLOCK_WRITE, .arg = 1001, .call = t,
					    .ret = t + 10 };
		ops[301] = (struct lin_op){ .kind = BLOCK_WRITE, .arg = 1002, .call = t + 20,
					    .ret = t + 40 };
		ops[302] = (struct lin_op){ .kind = BLOCK_READ, .result = 1001, .call = t + 50,
					    .ret = t + 60 };
		assert_int_equal(check(&lin_block, ops, 303), LIN_BAD);
		/* While the second write was under way it would have been right. */
		ops[302].call = t + 40;
		assert_int_equal(check(&lin_block, ops, 303), LIN_OK);
		ops[302].result = 1002;
		ops[302].call = t + 50;
		assert_int_equal(check(&lin_block, ops, 303), LIN_OK);
	}
}

static void test_new_then_old(void **state)
{
	/* Two readers during one write: who is later must not see less. */
	struct lin_op ops[] = {
		{ .kind = BLOCK_WRITE, .arg = 1, .call = 0, .ret = 5 },
		{ .kind = BLOCK_WRITE, .arg = 2, .call = 10, .ret = 100 },
		{ .kind = BLOCK_READ, .result = 2, .call = 20, .ret = 30 },
		{ .kind = BLOCK_READ, .result = 1, .call = 40, .ret = 50 },
	};

	assert_int_equal(check(&lin_block, ops, 4), LIN_BAD);
	ops[3].call = 25;
	assert_int_equal(check(&lin_block, ops, 4), LIN_OK);
}

static void test_blocks_and_ends(void **state)
{
	struct lin_op ops[] = {
		{ .kind = BLOCK_WRITE, .arg = 1, .call = 0, .ret = 5 },
		{ .kind = BLOCK_CUT, .call = 10, .ret = 15 },
		{ .kind = BLOCK_EXTEND, .call = 20, .ret = 25 },
		{ .kind = BLOCK_READ, .result = 1, .call = 30, .ret = 35 },
	};

	/* What was cut off does not come back. */
	assert_int_equal(check(&lin_block, ops, 4), LIN_BAD);
	ops[3].result = 0;
	assert_int_equal(check(&lin_block, ops, 4), LIN_OK);
	ops[3].result = -1;
	assert_int_equal(check(&lin_block, ops, 4), LIN_BAD);
}

static void test_sizes(void **state)
{
	struct lin_op ops[] = {
		{ .kind = SIZE_EXTEND, .arg = 10, .call = 0, .ret = 100 },
		{ .kind = SIZE_EXTEND, .arg = 20, .call = 0, .ret = 100 },
		{ .kind = SIZE_STAT, .result = 20, .call = 10, .ret = 20 },
		{ .kind = SIZE_STAT, .result = 10, .call = 30, .ret = 40 },
	};

	assert_int_equal(check(&lin_size, ops, 4), LIN_BAD);
	ops[0].kind = SIZE_SET;
	assert_int_equal(check(&lin_size, ops, 4), LIN_OK);
	ops[0].kind = SIZE_ADD;
	ops[3].result = 30;
	assert_int_equal(check(&lin_size, ops, 4), LIN_OK);
	ops[3].result = 40;
	assert_int_equal(check(&lin_size, ops, 4), LIN_BAD);
}

static void test_names(void **state)
{
	struct lin_op twice[] = {
		{ .kind = NAME_CREATE, .arg = 0, .arg2 = 7, .call = 0, .ret = 10 },
		{ .kind = NAME_CREATE, .arg = 0, .arg2 = 8, .call = 0, .ret = 10 },
	};
	struct lin_op moved[] = {
		{ .kind = NAME_CREATE, .arg = 0, .arg2 = 7, .call = 0, .ret = 5 },
		{ .kind = NAME_RENAME, .arg = 0, .arg2 = 1, .call = 10, .ret = 100 },
		{ .kind = NAME_LOOK, .arg = 0, .result = ENOENT, .call = 20, .ret = 30 },
		{ .kind = NAME_LOOK, .arg = 1, .result = ENOENT, .call = 40, .ret = 50 },
	};
	struct lin_op gone[] = {
		{ .kind = NAME_CREATE, .arg = 0, .arg2 = 7, .call = 0, .ret = 5 },
		{ .kind = NAME_UNLINK, .arg = 0, .call = 10, .ret = 15 },
		{ .kind = NAME_LOOK, .arg = 0, .arg2 = 7, .call = 20, .ret = 25 },
	};

	assert_int_equal(check(&lin_names, twice, 2), LIN_BAD);
	twice[1].result = EEXIST;
	assert_int_equal(check(&lin_names, twice, 2), LIN_OK);
	/* Neither under the old nor under the new name: a rename is one step. */
	assert_int_equal(check(&lin_names, moved, 4), LIN_BAD);
	moved[3].call = 25;
	assert_int_equal(check(&lin_names, moved, 4), LIN_OK);
	assert_int_equal(check(&lin_names, gone, 3), LIN_BAD);
	gone[2].call = 12;
	assert_int_equal(check(&lin_names, gone, 3), LIN_OK);
}

static void test_counterexample(void **state)
{
	static struct lin_op ops[203];
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int i, reads = 0;
	char *p, *all;

	make_true(&lin_block, ops, 200, 3);
	ops[200] = (struct lin_op){ .kind = BLOCK_WRITE, .arg = 1001, .call = 30000, .ret = 30010 };
	ops[201] = (struct lin_op){ .kind = BLOCK_READ, .result = 1001, .call = 30020,
				    .ret = 30030 };
	ops[202] = (struct lin_op){ .kind = BLOCK_READ, .result = 3, .call = 30040, .ret = 30050 };
	assert_int_equal(lin_check(&lin_block, &none, ops, 203, out), LIN_BAD);
	fclose(out);
	/* Of all the reads only the false one is left; then they come as they were. */
	all = strstr(text, "with all that was called then:");
	assert_non_null(all);
	assert_non_null(strstr(all, "  read "));
	*all = 0;
	for (p = text; (p = strstr(p, "  read ")); p++)
		reads++;
	assert_int_equal(reads, 1);
	assert_non_null(strstr(text, "read version 3"));
	for (i = 0, p = text; *p; p++)
		i += *p == '\n';
	assert_in_range(i, 2, 30);
	free(text);
}

/* ------------------------------------------------------------------ whole rounds */

static void test_files(void **state)
{
	struct co_rec r[] = {
		{ .kind = CO_WRITE, .obj = 1, .a = 2, .b = 100, .call = 0, .ret = 10 },
		{ .kind = CO_FSTAT, .obj = 1, .result = 2 * CO_STRIDE + CO_BLOCK, .call = 20,
		  .ret = 30 },
		{ .kind = CO_READ, .obj = 1, .a = 2, .result = CO_BLOCK, .first = 100, .last = 100,
		  .call = 20, .ret = 30 },
		/* A hole. */
		{ .kind = CO_READ, .obj = 1, .a = 0, .result = CO_BLOCK, .call = 20, .ret = 30 },
		{ .kind = CO_TRUNC, .obj = 1, .a = CO_STRIDE, .call = 40, .ret = 50 },
		{ .kind = CO_READ, .obj = 1, .a = 2, .result = 0, .call = 60, .ret = 70 },
		{ .kind = CO_READ, .obj = 1, .a = 0, .result = CO_BLOCK, .call = 60, .ret = 70 },
		{ .kind = CO_FSTAT, .obj = 1, .result = CO_STRIDE, .call = 60, .ret = 70 },
		/* The other file is empty still. */
		{ .kind = CO_READ, .obj = 0, .a = 0, .result = 0, .call = 60, .ret = 70 },
	};
	int undecided = 0, n = sizeof(r) / sizeof(r[0]);

	assert_int_equal(co_check_files(r, n, null, &undecided), 0);
	r[2].last = 0;		/* torn after the write returned */
	assert_int_equal(co_check_files(r, n, null, &undecided), 1);
	r[2].last = 100;
	r[6].result = 100;	/* half a block */
	assert_int_equal(co_check_files(r, n, null, &undecided), 1);
	r[6].result = CO_BLOCK;
	r[7].result = 2 * CO_STRIDE + CO_BLOCK;
	assert_int_equal(co_check_files(r, n, null, &undecided), 1);
	r[7].result = CO_STRIDE;
	r[8].result = CO_BLOCK;
	assert_int_equal(co_check_files(r, n, null, &undecided), 2);
	assert_int_equal(undecided, 0);
}

static void test_name_rounds(void **state)
{
	struct co_rec r[] = {
		{ .kind = CO_CREATE, .obj = 0, .a = 1, .b = 55, .call = 0, .ret = 10 },
		{ .kind = CO_CREATE, .obj = 1, .a = 1, .b = 66, .call = 0, .ret = 10 },
		{ .kind = CO_EXCHANGE, .obj = 0, .a = 1, .b = 2, .result = ENOENT, .call = 20,
		  .ret = 30 },
		{ .kind = CO_RENAME_NEW, .obj = 1, .a = 1, .b = 2, .call = 20, .ret = 30 },
		{ .kind = CO_LOOK, .obj = 0, .a = 1, .b = 55, .call = 40, .ret = 50 },
		{ .kind = CO_LOOK, .obj = 1, .a = 2, .b = 66, .call = 40, .ret = 50 },
	};
	int undecided = 0;

	assert_int_equal(co_check_names(r, 6, null, &undecided), 0);
	r[4].obj = 1;
	assert_int_equal(co_check_names(r, 6, null, &undecided), 1);
}

#define APPENDS 5
static unsigned char bytes[4096];
static size_t nbytes;

/* Five appends in this order, and a reader between the third and the fourth. */
static void make_appends(struct co_rec *r)
{
	size_t i, at = 0, len;

	for (i = 0; i < APPENDS; i++) {
		len = sizeof(struct co_append) + 8 * (i + 3);
		co_append_fill(bytes + at, i + 1, len);
		r[i] = (struct co_rec){ .kind = CO_APPEND, .obj = -1, .a = i + 1, .b = len,
					.call = i * 100, .ret = i * 100 + 50 };
		at += len;
		if (i == 2)
			r[APPENDS] = (struct co_rec){ .kind = CO_APPEND_READ, .obj = -1, .a = -1,
						      .result = at,
						      .hash = co_hash(bytes, at), .call = 260,
							      .ret = 290 };
	}
	nbytes = at;
}

static int judge_appends(const struct co_rec *r)
{
	return co_check_appends(r, APPENDS + 1, bytes, nbytes, null);
}

static void test_appends(void **state)
{
	struct co_rec r[APPENDS + 1], saved;
	size_t first;

	make_appends(r);
	first = r[0].b;
	assert_int_equal(judge_appends(r), 0);
	/* Damaged; a hole; cut short; lost; one that nobody wrote. */
	bytes[r[0].b + 30] ^= 1;
	assert_int_not_equal(judge_appends(r), 0);
	make_appends(r);
	memset(bytes, 0, first);
	assert_int_not_equal(judge_appends(r), 0);
	make_appends(r);
	nbytes -= 8;
	assert_int_not_equal(judge_appends(r), 0);
	make_appends(r);
	nbytes -= r[APPENDS - 1].b;
	assert_int_equal(judge_appends(r), 1);
	make_appends(r);
	r[3].a = 77;
	assert_int_not_equal(judge_appends(r), 0);
	/* The first one again at the end. */
	make_appends(r);
	memcpy(bytes + nbytes, bytes, first);
	nbytes += first;
	assert_int_not_equal(judge_appends(r), 0);
	/* In the file before one that was over when it began. */
	make_appends(r);
	r[0].call = 1000;
	r[0].ret = 1010;
	assert_int_not_equal(judge_appends(r), 0);
	/* Concurrent: either order. */
	make_appends(r);
	r[0].ret = 5000;
	assert_int_equal(judge_appends(r), 0);
	/* A reader that saw less than was there, more, or other bytes. */
	make_appends(r);
	r[APPENDS].result = r[0].b;
	r[APPENDS].hash = co_hash(bytes, r[0].b);
	assert_int_equal(judge_appends(r), 2);
	make_appends(r);
	r[APPENDS].result += 8;
	r[APPENDS].hash = co_hash(bytes, r[APPENDS].result);
	assert_int_equal(judge_appends(r), 1);
	make_appends(r);
	r[APPENDS].hash++;
	assert_int_equal(judge_appends(r), 1);
	/* One who asked for the size. */
	make_appends(r);
	saved = r[APPENDS];
	r[APPENDS].kind = CO_APPEND_STAT;
	r[APPENDS].hash = 0;
	assert_int_equal(judge_appends(r), 0);
	r[APPENDS].result = saved.result - 1;
	assert_int_equal(judge_appends(r), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_all_orders),
		cmocka_unit_test(test_true_histories),
		cmocka_unit_test(test_stale_read),
		cmocka_unit_test(test_new_then_old),
		cmocka_unit_test(test_blocks_and_ends),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_counterexample),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_name_rounds),
		cmocka_unit_test(test_appends),
	};

	null = fopen("/dev/null", "w");
	rnd_seed(&rng, 4711, 0);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lin", tests, NULL, NULL);
}
