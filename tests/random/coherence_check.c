// SPDX-License-Identifier: GPL-2.0-only
/*
 * coherence_check.c - the checks of a round of coherence. Files and names become histories for
 * lin.c, one for each end of each block, each size, each set of names: an operation on several of
 * them must be in order on each. Appends need no search: the file tells their order.
 */
#include "coherence.h"

void co_append_fill(void *buf, uint64_t id, size_t len)
{
	struct co_append *a = buf;

	a->magic = CO_MAGIC;
	a->id = id;
	a->len = len;
	rnd_fill(a + 1, len - sizeof(*a), 0, id);
}

uint64_t co_hash(const void *buf, size_t n)
{
	const unsigned char *p = buf;
	uint64_t h = 0xcbf29ce484222325ull;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static struct lin_op *history(size_t n)
{
	return rnd_alloc(n * sizeof(struct lin_op));
}

static struct lin_op base(const struct co_rec *r)
{
	return (struct lin_op){ .call = r->call, .ret = r->ret, .who = r->who };
}

static int judge(const struct lin_model *m, const struct lin_op *ops, size_t n, const char *what,
		 FILE *out, int *undecided)
{
	struct lin_state empty = { { 0 } };

	/* A new file has no blocks. */
	if (m == &lin_block)
		empty.v[0] = -1;
	switch (lin_check(m, &empty, ops, n, NULL)) {
	case LIN_OK:
		return 0;
	case LIN_UNKNOWN:
		fprintf(out, "%s: too many possibilities, undecided\n", what);
		++*undecided;
		return 0;
	default:
		fprintf(out, "NOT LINEARIZABLE: %s, %zu operations\n", what, n);
		lin_check(m, &empty, ops, n, out);
		return 1;
	}
}

/* Block @block of @file, as the first word of it tells, or the last one. */
static int check_block(const struct co_rec *r, size_t n, int file, int block, bool last, FILE *out,
		       int *undecided)
{
	struct lin_op *ops = history(n), op;
	size_t i, k = 0;
	char what[80];
	int bad;

	for (i = 0; i < n; i++, r++) {
		if (r->obj != file)
			continue;
		op = base(r);
		if (r->kind == CO_WRITE && r->a >= block) {
			op.kind = r->a == block ? BLOCK_WRITE : BLOCK_EXTEND;
			op.arg = r->b;
		} else if (r->kind == CO_TRUNC) {
			op.kind = r->a <= (int64_t)block * CO_STRIDE ? BLOCK_CUT : BLOCK_EXTEND;
		} else if (r->kind == CO_EXTEND && r->a >= block) {
			op.kind = BLOCK_EXTEND;
		} else if ((r->kind == CO_STORE || r->kind == CO_ZERO) && r->a == block) {
			op.kind = r->kind == CO_STORE ? BLOCK_STORE : BLOCK_ZERO;
			op.arg = r->b;
		} else if (r->kind == CO_READ && r->a == block) {
			op.kind = BLOCK_READ;
			op.result = !r->result ? -1 : last ? r->last : r->first;
		} else {
			continue;
		}
		ops[k++] = op;
	}
	snprintf(what, sizeof(what), "file %d, block %d, its %s word", file, block,
		 last ? "last" : "first");
	bad = judge(&lin_block, ops, k, what, out, undecided);
	free(ops);
	return bad;
}

static int check_size(const struct co_rec *r, size_t n, int file, FILE *out, int *undecided)
{
	struct lin_op *ops = history(n), op;
	size_t i, k = 0;
	char what[80];
	int bad;

	for (i = 0; i < n; i++, r++) {
		if (r->obj != file)
			continue;
		op = base(r);
		if (r->kind == CO_WRITE || r->kind == CO_EXTEND) {
			op.kind = SIZE_EXTEND;
			op.arg = r->a * CO_STRIDE + CO_BLOCK;
		} else if (r->kind == CO_TRUNC) {
			op.kind = SIZE_SET;
			op.arg = r->a;
		} else if (r->kind == CO_FSTAT) {
			op.kind = SIZE_STAT;
			op.result = r->result;
		} else {
			continue;
		}
		ops[k++] = op;
	}
	snprintf(what, sizeof(what), "file %d, its size", file);
	bad = judge(&lin_size, ops, k, what, out, undecided);
	free(ops);
	return bad;
}

int co_check_files(const struct co_rec *r, size_t n, FILE *out, int *undecided)
{
	int file, block, bad = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		/* All that moves the end moves it to before or behind a block. */
		if (r[i].kind != CO_READ || !r[i].result || r[i].result == CO_BLOCK)
			continue;
		fprintf(out, "file %d, block %lld: worker %d read %lld bytes of it\n", r[i].obj,
			(long long)r[i].a,
			r[i].who, (long long)r[i].result);
		bad++;
	}
	for (file = 0; file < CO_FILES; file++) {
		bad += check_size(r, n, file, out, undecided);
		for (block = 0; block < CO_BLOCKS; block++) {
			bad += check_block(r, n, file, block, false, out, undecided);
			bad += check_block(r, n, file, block, true, out, undecided);
		}
	}
	return bad;
}

int co_check_names(const struct co_rec *r, size_t n, FILE *out, int *undecided)
{
	struct lin_op *ops = history(n);
	int set, bad = 0;
	size_t i, k;
	char what[80];

	for (set = 0; set < CO_SETS; set++) {
		for (i = k = 0; i < n; i++) {
			if (r[i].kind < CO_CREATE || r[i].obj != set)
				continue;
			ops[k] = base(&r[i]);
			ops[k].kind = NAME_CREATE + r[i].kind - CO_CREATE;
			ops[k].arg = r[i].a;
			ops[k].arg2 = r[i].b;
			ops[k++].result = r[i].result;
		}
		snprintf(what, sizeof(what), "names of %s", set ? "symbolic links" : "files");
		bad += judge(&lin_names, ops, k, what, out, undecided);
	}
	free(ops);
	return bad;
}

/* ------------------------------------------------------------------ appends */

struct placed {
	const struct co_rec *r;
	int64_t pos;		/* -1: not seen */
};

/* Takes the file apart into records. */
static int place(struct placed *p, size_t np, const unsigned char *bytes, size_t len, FILE *out)
{
	unsigned char *want = rnd_alloc(len + sizeof(struct co_append));
	size_t at = 0, i;
	int bad = 0;

	while (at < len) {
		struct co_append a = { 0 };

		if (len - at >= sizeof(a))
			memcpy(&a, bytes + at, sizeof(a));
		for (i = 0; i < np && (uint64_t)p[i].r->a != a.id; i++)
			;
		if (a.magic != CO_MAGIC || i == np || a.len != (uint64_t)p[i].r->b ||
		    a.len > len - at) {
			fprintf(out, "APPENDS: at %zu of %zu there is no record that was written\n",
				at, len);
			bad++;
			break;
		}
		co_append_fill(want, a.id, a.len);
		if (memcmp(want, bytes + at, a.len)) {
			fprintf(out, "APPENDS: record %llu at %zu is damaged\n",
				(unsigned long long)a.id, at);
			bad++;
		}
		if (p[i].pos >= 0) {
			fprintf(out, "APPENDS: record %llu is there twice, at %lld and %zu\n",
				(unsigned long long)a.id, (long long)p[i].pos, at);
			bad++;
		}
		p[i].pos = at;
		at += a.len;
	}
	for (i = 0; i < np; i++) {
		if (p[i].pos >= 0)
			continue;
		fprintf(out, "APPENDS: record %lld of worker %d, %lld bytes, is lost\n",
			(long long)p[i].r->a,
			p[i].r->who, (long long)p[i].r->b);
		bad++;
	}
	free(want);
	return bad;
}

int co_check_appends(const struct co_rec *r, size_t n, const unsigned char *bytes, size_t len,
		     FILE *out)
{
	struct placed *p = rnd_alloc(n * sizeof(*p));
	size_t np = 0, i, k;
	int bad;

	for (i = 0; i < n; i++)
		if (r[i].kind == CO_APPEND)
			p[np++] = (struct placed){ &r[i], -1 };
	bad = place(p, np, bytes, len, out);
	for (i = 0; i < np; i++) {
		for (k = 0; k < np; k++) {
			if (p[i].pos < 0 || p[k].pos < 0 || p[i].r->ret >= p[k].r->call ||
			    p[i].pos < p[k].pos)
				continue;
			fprintf(out,
				"APPENDS: record %lld at %lld was over before record %lld at %lld began\n",
				(long long)p[i].r->a, (long long)p[i].pos, (long long)p[k].r->a,
					(long long)p[k].pos);
			bad++;
		}
	}
	for (i = 0; i < n; i++) {
		const struct co_rec *s = &r[i];

		if (s->kind != CO_APPEND_READ && s->kind != CO_APPEND_STAT)
			continue;
		if (s->result > (int64_t)len ||
		    (s->kind == CO_APPEND_READ && co_hash(bytes, s->result) != s->hash)) {
			fprintf(out,
				"APPENDS: worker %d saw %lld bytes, which is not how the file begins now; zeros at %lld\n",
				s->who, (long long)s->result, (long long)s->a);
			bad++;
			continue;
		}
		for (k = 0; k < np; k++) {
			const char *wrong = NULL;

			if (p[k].pos < 0)
				continue;
			if (p[k].r->ret < s->call && s->result < p[k].pos + p[k].r->b)
				wrong = "did not see all of";
			if (p[k].r->call > s->ret && s->result > p[k].pos)
				wrong = "foresaw";
			if (!wrong)
				continue;
			fprintf(out,
				"APPENDS: worker %d, who %s %lld bytes, %s record %lld, %lld bytes at %lld\n", s->who,
				s->kind == CO_APPEND_READ ? "read" : "was told of",
					(long long)s->result, wrong,
				(long long)p[k].r->a, (long long)p[k].r->b, (long long)p[k].pos);
			bad++;
		}
	}
	free(p);
	return bad;
}
