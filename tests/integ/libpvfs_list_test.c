// SPDX-License-Identifier: GPL-2.0
/*
 * libpvfs_list_test.c - libpvfs against a real cluster: many places of a file in one call, against a
 * copy in memory, and how many requests they take.
 */
#include "libpvfs_test.h"
#include <limits.h>

#define SIZE (3u * NIODS * SSIZE)	/* of the files */
#define MOST 4000u			/* places in a list */

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* ---- lists and their memory ---- */

struct list {
	struct pvfs_piece at[MOST];
	size_t n, bytes;
	struct iovec mem[MOST];
	size_t nmem;
	uint8_t *room;		/* the memory's, with gaps, and ... */
	uint8_t *buf;		/* the bytes in their order */
};

static void add(struct list *l, uint64_t off, size_t len)
{
	if (l->n == MOST || off >= SIZE)
		return;
	len = off + len > SIZE ? SIZE - off : len;
	l->at[l->n++] = (struct pvfs_piece){ .off = off, .len = len };
	l->bytes += len;
}

/* Places of all kinds. */
static void make_list(struct list *l)
{
	uint64_t off = rnd(SIZE / 2), n = 1 + rnd(rnd(2) ? 20 : MOST), kind = rnd(6);
	size_t len = 1 + rnd(n > 50 ? 600 : 60000), i, k;

	l->n = l->bytes = 0;
	for (i = 0; i < n; i++) {
		switch (kind) {
		case 0:		/* anywhere: in no order, over each other */
			add(l, rnd(SIZE), 1 + rnd(len));
			break;
		case 1:		/* forward, with gaps and without */
			add(l, off, k = rnd(len));
			off += k + (rnd(3) ? rnd(len) : 0);
			break;
		case 2:		/* a vector */
			add(l, off + i * (len + 17), len);
			break;
		case 3:		/* rows of tiles */
			add(l, off + i / 7 * 20011 + i % 7 * (len % 97 + 31), len % 97 + 1);
			break;
		case 4:		/* backward */
			add(l, SIZE - 1 - i * (len + 3) % SIZE, len);
			break;
		default:	/* the same place again and again, and steps that overlap */
			add(l, off + i % 5 * (len / 2), len);
		}
	}
}

/* Memory of the list's length, in pieces. */
static void make_memory(struct list *l)
{
	size_t left = l->bytes, at = 0, n, most = rnd(2) ? 100000 : 300;

	l->room = malloc(2 * l->bytes + 2 * MOST);
	l->buf = malloc(l->bytes + 1);
	assert_non_null(l->room);
	assert_non_null(l->buf);
	for (l->nmem = 0; left; l->nmem++) {
		n = l->nmem == MOST - 1 ? left : rnd(left < most ? left + 1 : most);
		l->mem[l->nmem] = (struct iovec){ .iov_base = l->room + at, .iov_len = n };
		at += n + (at + n + 1 < 2 * l->bytes - left ? rnd(2) : 0);
		left -= n;
	}
}

static void drop_memory(struct list *l)
{
	free(l->room);
	free(l->buf);
}

static void scatter(const struct list *l)
{
	size_t i, at = 0;

	for (i = 0; i < l->nmem; at += l->mem[i++].iov_len)
		memcpy(l->mem[i].iov_base, l->buf + at, l->mem[i].iov_len);
}

static void gather(const struct list *l)
{
	size_t i, at = 0;

	for (i = 0; i < l->nmem; at += l->mem[i++].iov_len)
		memcpy(l->buf + at, l->mem[i].iov_base, l->mem[i].iov_len);
}

static void fill(uint8_t *p, size_t n)
{
	static uint8_t next;
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = next++ * 37 + (i >> 8);
}

/* What a list says, done to a copy in memory, or found in it. */
static void put(uint8_t *model, const struct list *l)
{
	size_t i, at = 0;

	for (i = 0; i < l->n; at += l->at[i++].len)
		memcpy(model + l->at[i].off, l->buf + at, l->at[i].len);
}

static void is(const uint8_t *model, const struct list *l)
{
	size_t i, at = 0;

	for (i = 0; i < l->n; at += l->at[i++].len)
		assert_memory_equal(l->buf + at, model + l->at[i].off, l->at[i].len);
}

static void test_lists(void **state)
{
	uint8_t *model = pattern(0, SIZE), *all = malloc(SIZE);
	struct list *l = calloc(1, sizeof(*l));
	struct pvfs_file *f = open_new("/lists"), *g;
	uint64_t first = seed;
	int round;

	write_at(f, 0, SIZE);
	OK(pvfs_open(other, "/lists", O_RDWR, 0, &g));
	for (round = 0; round < 300; round++) {
		struct pvfs_file *h = rnd(2) ? f : g;

		make_list(l);
		make_memory(l);
		if (rnd(2)) {
			fill(l->buf, l->bytes);
			scatter(l);
			assert_int_equal(pvfs_write_list(h, l->mem, l->nmem, l->at, l->n), l->bytes);
			put(model, l);
			assert_int_equal(pvfs_pread(h == f ? g : f, all, SIZE, 0), SIZE);
			if (memcmp(all, model, SIZE))
				print_error("seed %llu, round %d\n", (unsigned long long)first, round);
			assert_memory_equal(all, model, SIZE);
		} else {
			assert_int_equal(pvfs_read_list(h, l->mem, l->nmem, l->at, l->n), l->bytes);
			gather(l);
			is(model, l);
		}
		drop_memory(l);
	}
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/lists"));
	free(model);
	free(all);
	free(l);
}

/* ---- patterns ---- */

/* As loops spell it out. Return: bytes. */
static size_t spell(const struct pvfs_pattern *p, unsigned int dim, uint64_t off, struct list *l)
{
	size_t sum = 0;
	uint32_t i;

	if (dim == p->ndims) {
		l->at[l->n++] = (struct pvfs_piece){ .off = off, .len = p->len };
		return p->len;
	}
	for (i = 0; i < p->dim[dim].count; i++)
		sum += spell(p, dim + 1, off + i * p->dim[dim].stride, l);
	return sum;
}

static void test_patterns(void **state)
{
	uint8_t *model = pattern(0, SIZE), *all = malloc(SIZE);
	struct list *l = calloc(1, sizeof(*l));
	struct pvfs_file *f = open_new("/patterns");
	int round, k;

	write_at(f, 0, SIZE);
	for (round = 0; round < 300; round++) {
		struct pvfs_pattern p[3];
		int n = 1 + rnd(3);

		l->n = l->bytes = 0;
		for (k = 0; k < n; k++) {
			uint64_t reach = SIZE / 2;
			unsigned int i;

			memset(&p[k], 0, sizeof(p[k]));
			p[k].off = rnd(SIZE / 2 - 5000);
			p[k].len = rnd(rnd(2) ? 5000 : 50);
			p[k].ndims = rnd(5);
			for (i = 0; i < p[k].ndims; i++) {
				p[k].dim[i].count = rnd(20) ? 1 + rnd(5) : 0;
				reach /= 8;
				p[k].dim[i].stride = rnd(reach);
			}
			l->bytes += spell(&p[k], 0, p[k].off, l);
		}
		make_memory(l);
		fill(l->buf, l->bytes);
		scatter(l);
		assert_int_equal(pvfs_write_pattern(f, l->mem, l->nmem, p, n), l->bytes);
		put(model, l);
		memset(l->buf, 0, l->bytes);
		scatter(l);
		assert_int_equal(pvfs_read_pattern(f, l->mem, l->nmem, p, n), l->bytes);
		gather(l);
		is(model, l);
		drop_memory(l);
	}
	assert_int_equal(pvfs_pread(f, all, SIZE, 0), SIZE);
	assert_memory_equal(all, model, SIZE);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/patterns"));
	free(model);
	free(all);
	free(l);
}

/* ---- how many requests ---- */

#define IODS_COST(op, n, call) COSTS(PVFS_SERVER_ALL, op, n, call)

/* At least one for each MiB. The daemons' shares are not full at once: one more for each, at most. */
#define COSTS_MIBS(op, n, call) do { \
		uint64_t before_ = count(PVFS_SERVER_ALL, op), cost_; \
		call; \
		cost_ = count(PVFS_SERVER_ALL, op) - before_; \
		assert_in_range(cost_, n, (n) + NIODS); \
	} while (0)

static void test_requests(void **state)
{
	struct pvfs_pattern rows = { .len = 24 * 1024, .ndims = 1, .dim = { { 1024, 2 * 24 * 1024 } } };
	size_t bytes = rows.len * 1024, i;
	struct iovec mem = { .iov_base = calloc(1, bytes), .iov_len = bytes };
	struct pvfs_piece *p = calloc(1024, sizeof(*p));
	struct pvfs_file *f = open_new("/requests");

	write_at(f, 0, 1);
	OK(pvfs_ftruncate(f, 2 * bytes));

	/* A tile of 24 MiB, of which each daemon has a quarter. */
	for (i = 0; i < 1024; i++)
		p[i] = (struct pvfs_piece){ .off = i * rows.dim[0].stride, .len = rows.len };
	COSTS_MIBS("WRITE_LIST", 24, assert_int_equal(pvfs_write_pattern(f, &mem, 1, &rows, 1), bytes));
	COSTS_MIBS("WRITE_LIST", 24, assert_int_equal(pvfs_write_list(f, &mem, 1, p, 1024), bytes));
	COSTS_MIBS("READ_LIST", 24, assert_int_equal(pvfs_read_list(f, &mem, 1, p, 1024), bytes));

	/* Small places, regular ones and others: one to each daemon. */
	for (i = 0; i < 1024; i++)
		p[i] = (struct pvfs_piece){ .off = i * 1000, .len = 100 };
	mem.iov_len = 102400;
	IODS_COST(NULL, NIODS, assert_int_equal(pvfs_read_list(f, &mem, 1, p, 1024), 102400));
	for (i = 0; i < 1024; i++)
		p[i].off = i * 1000 + i % 7;
	IODS_COST(NULL, NIODS, assert_int_equal(pvfs_write_list(f, &mem, 1, p, 1024), 102400));
	IODS_COST(NULL, NIODS, assert_int_equal(pvfs_read_list(f, &mem, 1, p, 1024), 102400));
	/* All on one daemon: nobody else is asked. */
	for (i = 0; i < 50; i++)
		p[i] = (struct pvfs_piece){ .off = SSIZE + i * 3 % 47 * 100, .len = 10 };
	mem.iov_len = 500;
	IODS_COST(NULL, 1, assert_int_equal(pvfs_read_list(f, &mem, 1, p, 50), 500));
	/* The manager is asked for nothing: the size is known. */
	MGR_COSTS(0, assert_int_equal(pvfs_read_list(f, &mem, 1, p, 50), 500));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/requests"));
	free(mem.iov_base);
	free(p);
}

/* A client that is new asks nobody who has nothing of it: that daemon may be away. */
static void test_others_not_asked(void **state)
{
	struct pvfs_piece p[2];
	char buf[20];
	struct iovec mem = { buf, sizeof(buf) };
	struct pvfs_file *f = open_new("/others"), *g;
	struct pvfs_fs *fresh = mount_one();
	struct pvfs_opcount c;
	struct pvfs_stat st;
	uint64_t i, asked = 0;

	write_at(f, 0, SIZE);
	OK(pvfs_fstat(f, &st));
	p[0] = (struct pvfs_piece){ .off = 5, .len = 10 };
	p[1] = (struct pvfs_piece){ .off = NIODS * SSIZE + 5, .len = 10 };
	OK(pvfs_open(fresh, "/others", O_RDONLY, 0, &g));
	assert_int_equal(pvfs_read_list(g, &mem, 1, p, 2), 20);
	for (i = 0; i < NIODS; i++) {
		OK(pvfs_counters(fresh, i, NULL, &c));
		asked += c.count > 0;
		assert_true(!c.count || i == st.striping.base);
	}
	assert_int_equal(asked, 1);
	OK(pvfs_close(g));
	OK(pvfs_close(f));
	assert_int_equal(pvfs_umount(fresh), 0);
	OK(pvfs_unlink(fs, "/others"));
}

/* ---- small files, ends, holes ---- */

static void test_stuffed(void **state)
{
	static const struct pvfs_piece in[] = { { 900, 100 }, { 0, 300 }, { 500, 0 }, { 450, 50 } },
				       out[] = { { 4000, 10 }, { 100, 20 } };
	uint8_t *model = pattern(0, 5000), buf[600];
	struct iovec mem[] = { { buf, 120 }, { buf + 200, 330 } };
	struct pvfs_file *f = open_new("/small");
	struct pvfs_stat st;

	write_at(f, 0, 1000);
	assert_int_equal(pvfs_read_list(f, mem, 2, in, 4), 450);
	memmove(buf + 120, buf + 200, 330);
	assert_memory_equal(buf, model + 900, 100);
	assert_memory_equal(buf + 100, model, 300);
	assert_memory_equal(buf + 400, model + 450, 50);
	/* The end is in the second place: what comes behind is not read. */
	memset(buf, 0xee, sizeof(buf));
	mem[0].iov_len = 600;
	assert_int_equal(pvfs_read_list(f, mem, 1, (struct pvfs_piece[]){ { 10, 100 }, { 950, 400 }, { 0, 100 } },
					3), 150);
	assert_memory_equal(buf, model + 10, 100);
	assert_memory_equal(buf + 100, model + 950, 50);
	/* To places that it does not have yet. */
	mem[0] = (struct iovec){ buf, 30 };
	assert_int_equal(pvfs_write_list(f, mem, 1, out, 2), 30);
	OK(pvfs_stat(other, "/small", &st));
	assert_int_equal(st.st.st_size, 4010);
	memset(model + 1000, 0, 4000);
	memcpy(model + 4000, buf, 10);
	memcpy(model + 100, buf + 10, 20);
	{
		uint8_t got[5000];

		assert_int_equal(pvfs_pread(f, got, 5000, 0), 4010);
		assert_memory_equal(got, model, 4010);
	}
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/small"));
	free(model);
}

static void test_ends(void **state)
{
	uint8_t *zero = calloc(1, 3 * SSIZE), *buf = malloc(3 * SSIZE);
	struct iovec mem = { buf, 3 * SSIZE };
	struct pvfs_file *f = open_new("/ends"), *g;

	/* Two bytes far apart: all else is hole, on daemons without a datafile too. */
	assert_int_equal(pvfs_write_list(f, &(struct iovec){ (void *)"ab", 2 }, 1,
					 (struct pvfs_piece[]){ { 9 * SSIZE + 5, 1 }, { 3, 1 } }, 2), 2);
	memset(buf, 0xee, 3 * SSIZE);
	assert_int_equal(pvfs_read_list(f, &mem, 1, (struct pvfs_piece[]){ { SSIZE, SSIZE }, { 0, SSIZE },
					{ 9 * SSIZE, SSIZE } }, 3), 2 * SSIZE + 6);
	assert_memory_equal(buf, zero, SSIZE + 3);
	assert_int_equal(buf[SSIZE + 3], 'b');
	assert_memory_equal(buf + SSIZE + 4, zero, SSIZE + 1);
	assert_int_equal(buf[2 * SSIZE + 5], 'a');
	assert_int_equal(buf[2 * SSIZE + 6], 0xee);
	/* Cut by the other client: what it was read before is not believed. */
	OK(pvfs_open(other, "/ends", O_RDWR, 0, &g));
	OK(pvfs_ftruncate(g, SSIZE + 10));
	mem.iov_len = 2 * SSIZE;
	assert_int_equal(pvfs_read_list(f, &mem, 1, (struct pvfs_piece[]){ { SSIZE + 5, SSIZE }, { 0, SSIZE } }, 2), 5);
	mem.iov_len = 20;
	assert_int_equal(pvfs_read_list(f, &mem, 1, (struct pvfs_piece[]){ { 5 * SSIZE, 10 }, { 0, 10 } }, 2), 0);
	OK(pvfs_close(g));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/ends"));
	free(zero);
	free(buf);
}

/* ---- bad input ---- */

static void test_bad(void **state)
{
	static const struct pvfs_piece bad[][2] = {
		{ { 0, 1 }, { -1, 9 } }, { { -5, 4 }, { 0, 6 } }, { { INT64_MAX, 1 }, { 0, 9 } },
		{ { INT64_MAX - 4, 9 }, { 0, 1 } }, { { 0, SIZE_MAX }, { 0, 11 } }, { { 0, 5 }, { 0, 6 } },
		{ { 0, 5 }, { 0, 4 } }, { { 1, SSIZE_MAX }, { 0, 1 } },
	};
	static const struct pvfs_pattern unsound[] = {
		{ .off = 0, .len = 2, .ndims = 5, .dim = { { 5, 2 } } },
		{ .off = -1, .len = 10 },
		{ .off = 100, .len = 2, .ndims = 1, .dim = { { 5, -2 } } },
		{ .off = 0, .len = 2, .ndims = 1, .dim = { { 5, INT64_MAX / 2 } } },
		{ .off = 0, .len = 1u << 31, .ndims = 2, .dim = { { UINT32_MAX, 0 }, { UINT32_MAX, 0 } } },
		{ .off = 0, .len = 2, .ndims = 1, .dim = { { 4, 2 } } },
	};
	struct pvfs_file *f = open_new("/bad"), *r, *a;
	uint8_t buf[10] = "0123456789", got[10];
	struct iovec mem = { buf, 10 }, huge[2] = { { buf, SSIZE_MAX }, { buf, 11 } };
	static const struct pvfs_piece good[] = { { 0, 5 }, { 7, 5 } };
	size_t i;

	assert_int_equal(pvfs_write_list(f, &mem, 1, good, 2), 10);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(pvfs_write_list(f, &mem, 1, bad[i], 2), -EINVAL);
		assert_int_equal(pvfs_read_list(f, &mem, 1, bad[i], 2), -EINVAL);
	}
	for (i = 0; i < sizeof(unsound) / sizeof(*unsound); i++) {
		assert_int_equal(pvfs_write_pattern(f, &mem, 1, &unsound[i], 1), -EINVAL);
		assert_int_equal(pvfs_read_pattern(f, &mem, 1, &unsound[i], 1), -EINVAL);
	}
	assert_int_equal(pvfs_read_list(f, huge, 2, good, 2), -EINVAL);
	assert_int_equal(pvfs_read_list(f, NULL, 0, good, 2), -EINVAL);
	assert_int_equal(pvfs_read_list(f, &mem, 1, NULL, 0), -EINVAL);
	/* Nothing is fine. */
	assert_int_equal(pvfs_read_list(f, NULL, 0, NULL, 0), 0);
	assert_int_equal(pvfs_write_list(f, NULL, 0, NULL, 0), 0);
	assert_int_equal(pvfs_write_list(f, &(struct iovec){ buf, 0 }, 1,
					 (struct pvfs_piece[]){ { 5, 0 }, { 1000, 0 } }, 2), 0);
	assert_int_equal(pvfs_read_pattern(f, NULL, 0, &(struct pvfs_pattern){
					   .len = 5, .ndims = 2, .dim = { { 3, 9 }, { 0, 2 } } }, 1), 0);
	/* Not what the file was opened for. */
	OK(pvfs_open(fs, "/bad", O_RDONLY, 0, &r));
	OK(pvfs_open(fs, "/bad", O_RDWR | O_APPEND, 0, &a));
	assert_int_equal(pvfs_write_list(r, &mem, 1, good, 2), -EBADF);
	assert_int_equal(pvfs_write_list(a, &mem, 1, good, 2), -EINVAL);
	assert_int_equal(pvfs_read_list(a, &(struct iovec){ got, 10 }, 1, good, 2), 10);
	/* And nothing of it all was done. */
	assert_memory_equal(got, "0123456789", 10);
	OK(pvfs_close(a));
	OK(pvfs_close(r));
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/bad"));
}

/* Ten million places that nothing describes, and as many in a row. */
static void test_ten_million(void **state)
{
	const size_t n = 10000000, size = 5 * n;
	struct pvfs_piece *p = malloc(n * sizeof(*p));
	uint8_t *model = pattern(0, size), *got = malloc(n);
	struct iovec mem = { got, n };
	struct pvfs_file *f = open_new("/million");
	size_t i;

	write_at(f, 0, size);
	for (i = 0; i < n; i++)
		p[i] = (struct pvfs_piece){ .off = i * 4, .len = 1 };
	assert_int_equal(pvfs_read_list(f, &mem, 1, p, n), n);
	for (i = 0; i < n && got[i] == model[p[i].off]; i++)
		;
	assert_int_equal(i, n);
	for (i = 0; i < n; i++)
		p[i].off = i * 5 + i * 2654435761u % 4;
	memset(got, 0, n);
	assert_int_equal(pvfs_read_list(f, &mem, 1, p, n), n);
	for (i = 0; i < n && got[i] == model[p[i].off]; i++)
		;
	assert_int_equal(i, n);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/million"));
	free(p);
	free(model);
	free(got);
}

/* ---- many at once, and daemons that go ---- */

/* Each has every eighth record, in an order of its own, and reads them back. */
static void *records(void *arg)
{
	struct worker *w = arg;
	enum { RECORD = 4703, PER = 100 };
	struct pvfs_piece p[PER];
	uint8_t *out = malloc(PER * RECORD), *in = malloc(PER * RECORD);
	struct iovec mo = { out, PER * RECORD }, mi = { in, PER * RECORD };
	int i, r;

	for (r = 0; r < ROUNDS / 4; r++) {
		for (i = 0; i < PER; i++)
			p[i] = (struct pvfs_piece){ .off = ((i * 37 + r) % PER * THREADS + w->n) * RECORD, .len = RECORD };
		memset(out, w->n * 16 + r, PER * RECORD);
		if (pvfs_write_list(w->f, &mo, 1, p, PER) != PER * RECORD ||
		    pvfs_read_list(w->f, &mi, 1, p, PER) != PER * RECORD || memcmp(in, out, PER * RECORD))
			w->errors++;
	}
	free(out);
	free(in);
	return NULL;
}

static void test_together(void **state)
{
	struct pvfs_file *f = open_new("/records"), *g;

	OK(pvfs_open(other, "/records", O_RDWR, 0, &g));
	work_all(records, f, g);
	OK(pvfs_close(f));
	OK(pvfs_close(g));
	OK(pvfs_unlink(fs, "/records"));
}

static void *restarts(void *arg)
{
	int i;

	for (i = 0; i < 3; i++) {
		restart("iod0");
		restart("iod2");
	}
	return arg;
}

static void test_restarts(void **state)
{
	struct pvfs_file *f = open_new("/records");
	pthread_t t;

	OK(pthread_create(&t, NULL, restarts, NULL));
	work_all(records, f, f);
	pthread_join(t, NULL);
	work_all(records, f, f);
	OK(pvfs_close(f));
	OK(pvfs_unlink(fs, "/records"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_others_not_asked),
		cmocka_unit_test(test_stuffed),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_ten_million),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_restarts),
	};

	return cmocka_run_group_tests_name("list", tests, setup, teardown);
}
