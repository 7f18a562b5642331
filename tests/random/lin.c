// SPDX-License-Identifier: GPL-2.0-only
/*
 * lin.c - the linearizability checker, see lin.h, and the models of what coherence.c watches.
 */
#include "lin.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Steps before the search gives up: seconds of work. */
#define STEPS_MAX 20000000ull
#define SHOWN 24	/* operations of a history that is printed */

/* A call or a return, in order of time, in a list from which what is done is lifted. */
struct event {
	int op;
	bool call;
	int prev, next, match;
};

struct key {
	uint64_t a, b;
};

struct search {
	const struct lin_model *m;
	const struct lin_op *ops;
	size_t n;
	struct event *ev;	/* 2n, and the head, whose index is 2n */
	/* a random number per operation: a set's key is their exclusive or */
	struct key *zobrist;
	struct key *seen;	/* open addressing; {0, 0} is free */
	size_t seen_size, seen_used;
	int *stack;		/* events of the operations done, and the states before them */
	struct lin_state *states;
};

static uint64_t scramble(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static void *need(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

/* Of a set of operations and a state; 128 bits, so that no two that differ are taken for one. */
static struct key key_of(struct key set, const struct lin_state *s)
{
	struct key k = set;
	int i;

	for (i = 0; i < LIN_STATE; i++) {
		k.a = scramble(k.a + (uint64_t)s->v[i] * 0x9e3779b97f4a7c15ull + i);
		k.b = scramble(k.b ^ ((uint64_t)s->v[i] * 0xd6e8feb86659fd93ull + i + 7));
	}
	k.a |= 1;
	return k;
}

static bool seen_put(struct key *table, size_t size, struct key k)
{
	size_t i;

	for (i = k.b & (size - 1); table[i].a; i = (i + 1) & (size - 1))
		if (table[i].a == k.a && table[i].b == k.b)
			return false;
	table[i] = k;
	return true;
}

/* False when it was there. */
static bool remember(struct search *s, struct key k)
{
	if (s->seen_used * 2 >= s->seen_size) {
		size_t size = s->seen_size * 2, i;
		struct key *table = need(size, sizeof(*table));

		for (i = 0; i < s->seen_size; i++)
			if (s->seen[i].a)
				seen_put(table, size, s->seen[i]);
		free(s->seen);
		s->seen = table;
		s->seen_size = size;
	}
	if (!seen_put(s->seen, s->seen_size, k))
		return false;
	s->seen_used++;
	return true;
}

/* For qsort. */
static const struct lin_op *sort_ops;

static int by_time(const void *x, const void *y)
{
	const struct event *a = x, *b = y;
	int64_t ta = a->call ? sort_ops[a->op].call : sort_ops[a->op].ret;
	int64_t tb = b->call ? sort_ops[b->op].call : sort_ops[b->op].ret;

	if (ta != tb)
		return ta < tb ? -1 : 1;
	/* What touches is concurrent: calls first. */
	if (a->call != b->call)
		return a->call ? -1 : 1;
	return a->op - b->op;
}

static void set_up(struct search *s)
{
	int *at = need(s->n, sizeof(*at)), i, n = 2 * (int)s->n;
	uint64_t r = 12345;

	s->ev = need(n + 1, sizeof(*s->ev));
	s->zobrist = need(s->n, sizeof(*s->zobrist));
	s->stack = need(s->n, sizeof(*s->stack));
	s->states = need(s->n, sizeof(*s->states));
	s->seen_size = 1024;
	s->seen = need(s->seen_size, sizeof(*s->seen));
	for (i = 0; i < (int)s->n; i++) {
		s->ev[2 * i].op = s->ev[2 * i + 1].op = i;
		s->ev[2 * i].call = true;
		s->zobrist[i].a = scramble(r += 0x9e3779b97f4a7c15ull);
		s->zobrist[i].b = scramble(r += 0x9e3779b97f4a7c15ull);
	}
	sort_ops = s->ops;
	qsort(s->ev, n, sizeof(*s->ev), by_time);
	for (i = 0; i < n; i++) {
		s->ev[i].prev = i ? i - 1 : n;
		s->ev[i].next = i + 1;
		if (s->ev[i].call)
			at[s->ev[i].op] = i;
		else
			s->ev[at[s->ev[i].op]].match = i;
	}
	s->ev[n].next = n ? 0 : n;
	s->ev[n].prev = n ? n - 1 : n;
	free(at);
}

static void tear_down(struct search *s)
{
	free(s->ev);
	free(s->zobrist);
	free(s->stack);
	free(s->states);
	free(s->seen);
}

static void take_out(struct search *s, int e)
{
	s->ev[s->ev[e].prev].next = s->ev[e].next;
	s->ev[s->ev[e].next].prev = s->ev[e].prev;
}

static void put_back(struct search *s, int e)
{
	s->ev[s->ev[e].prev].next = e;
	s->ev[s->ev[e].next].prev = e;
}

static enum lin_verdict search(const struct lin_model *m, const struct lin_state *init,
			       const struct lin_op *ops, size_t n)
{
	struct search s = { .m = m, .ops = ops, .n = n };
	enum lin_verdict verdict = LIN_OK;
	struct lin_state state = *init;
	struct key set = { 0, 0 };
	int head = 2 * (int)n, depth = 0, e;
	uint64_t steps = 0;

	set_up(&s);
	e = s.ev[head].next;
	while (s.ev[head].next != head) {
		if (++steps > STEPS_MAX) {
			verdict = LIN_UNKNOWN;
			break;
		}
		if (e != head && s.ev[e].call) {
			int op = s.ev[e].op;
			struct lin_state after = state;
			struct key bigger = { set.a ^ s.zobrist[op].a, set.b ^ s.zobrist[op].b };

			if (!m->step(&ops[op], &after) || !remember(&s, key_of(bigger, &after))) {
				e = s.ev[e].next;
				continue;
			}
			s.stack[depth] = e;
			s.states[depth++] = state;
			state = after;
			set = bigger;
			take_out(&s, e);
			take_out(&s, s.ev[e].match);
			e = s.ev[head].next;
			continue;
		}
		/* One returned and could not be done before: what was done last was wrong. */
		if (!depth) {
			verdict = LIN_BAD;
			break;
		}
		e = s.stack[--depth];
		state = s.states[depth];
		set.a ^= s.zobrist[s.ev[e].op].a;
		set.b ^= s.zobrist[s.ev[e].op].b;
		put_back(&s, s.ev[e].match);
		put_back(&s, e);
		e = s.ev[e].next;
	}
	tear_down(&s);
	return verdict;
}

static int by_call(const void *x, const void *y)
{
	const struct lin_op *a = x, *b = y;

	return a->call < b->call ? -1 : a->call > b->call;
}

/* Leaves out the reads without which it is still impossible, many at a time first. */
static size_t reduce(const struct lin_model *m, const struct lin_state *init, struct lin_op *ops,
		     size_t n)
{
	struct lin_op *less = need(n, sizeof(*less));
	size_t chunk, i, k, kept;

	for (chunk = n / 2 + 1; chunk; chunk /= 2) {
		for (i = 0; i < n; i += chunk) {
			for (k = kept = 0; k < n; k++)
				if (k < i || k >= i + chunk || !m->reads(&ops[k]))
					less[kept++] = ops[k];
			if (kept == n || search(m, init, less, kept) != LIN_BAD)
				continue;
			memcpy(ops, less, kept * sizeof(*ops));
			n = kept;
			i -= chunk;
		}
	}
	free(less);
	return n;
}

/*
 * The part of @ops that had been called by @time, to @part. What had not returned then may have
 * taken effect, or may later; reads that had not returned tell nothing.
 */
static size_t until(const struct lin_model *m, const struct lin_op *ops, size_t n, int64_t time,
		    struct lin_op *part)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (ops[i].call > time || (ops[i].ret > time && m->reads(&ops[i])))
			continue;
		part[k] = ops[i];
		if (ops[i].ret > time) {
			part[k].ret = INT64_MAX;
			part[k].result = LIN_OPEN;
		}
		k++;
	}
	return k;
}

/* Ends the history with the first return at which it is impossible. */
static size_t shorten(const struct lin_model *m, const struct lin_state *init, struct lin_op *ops,
		      size_t n)
{
	struct lin_op *part = need(n, sizeof(*part));
	int64_t first = INT64_MAX;
	size_t i;

	for (i = 0; i < n; i++)
		if (ops[i].ret < first &&
		    search(m, init, part, until(m, ops, n, ops[i].ret, part)) == LIN_BAD)
			first = ops[i].ret;
	if (first < INT64_MAX) {
		n = until(m, ops, n, first, part);
		memcpy(ops, part, n * sizeof(*ops));
	}
	free(part);
	return n;
}

/* The last of @ops, @n in the order of their calls. */
static void list(const struct lin_model *m, const struct lin_op *ops, size_t n, FILE *out)
{
	size_t i = 0;

	/* What was long over before is only in the way. */
	if (n > SHOWN) {
		i = n - SHOWN;
		fprintf(out, "  ... %zu more before\n", i);
	}
	for (; i < n; i++) {
		fprintf(out, "  %12.3f to ", ops[i].call / 1e3);
		if (ops[i].ret < INT64_MAX)
			fprintf(out, "%12.3f", ops[i].ret / 1e3);
		else
			fprintf(out, "%12s", "later");
		fprintf(out, "  worker %2d  ", ops[i].who);
		m->print(out, &ops[i]);
		fprintf(out, "\n");
	}
}

static void explain(const struct lin_model *m, const struct lin_state *init,
		    const struct lin_op *all, size_t n, FILE *out)
{
	struct lin_op *ops = need(n, sizeof(*ops)), *reduced = need(n, sizeof(*reduced));
	size_t left;

	memcpy(ops, all, n * sizeof(*ops));
	qsort(ops, n, sizeof(*ops), by_call);
	n = shorten(m, init, ops, n);
	memcpy(reduced, ops, n * sizeof(*ops));
	left = reduce(m, init, reduced, n);
	fprintf(out,
		"%s: there is no order that explains these (times in us; a read more or less would not matter):\n",
		m->name);
	list(m, reduced, left, out);
	if (left < n) {
		fprintf(out, "with all that was called then:\n");
		list(m, ops, n, out);
	}
	free(reduced);
	free(ops);
}

enum lin_verdict lin_check(const struct lin_model *m, const struct lin_state *init,
			   const struct lin_op *ops, size_t n,
			   FILE *out)
{
	enum lin_verdict v = search(m, init, ops, n);

	if (v == LIN_BAD && out)
		explain(m, init, ops, n, out);
	return v;
}

/* ------------------------------------------------------------------ a block */

static bool block_step(const struct lin_op *op, struct lin_state *s)
{
	switch (op->kind) {
	case BLOCK_WRITE:
		s->v[0] = op->arg;
		return true;
	case BLOCK_CUT:
		s->v[0] = -1;
		return true;
	case BLOCK_EXTEND:
		if (s->v[0] < 0)
			s->v[0] = 0;
		return true;
	case BLOCK_STORE:
	case BLOCK_ZERO:
		if (s->v[0] >= 0)
			s->v[0] = op->kind == BLOCK_ZERO ? 0 : op->arg;
		return true;
	default:
		return s->v[0] == op->result;
	}
}

static bool block_reads(const struct lin_op *op)
{
	return op->kind == BLOCK_READ;
}

static void block_print(FILE *out, const struct lin_op *op)
{
	static const char *const what[] = { "write version %lld", "truncate before it",
					    "extend behind it",
					    "read version %lld",
					    "store version %lld", "make it zeros" };

	if (op->kind == BLOCK_READ && op->result <= 0)
		fprintf(out, op->result ? "read: behind the end" : "read zeros");
	else
		fprintf(out, what[op->kind],
			(long long)(op->kind == BLOCK_READ ? op->result : op->arg));
}

const struct lin_model lin_block = { "a block", block_step, block_reads, block_print };

/* ------------------------------------------------------------------ a size */

static bool size_step(const struct lin_op *op, struct lin_state *s)
{
	switch (op->kind) {
	case SIZE_EXTEND:
		if (op->arg > s->v[0])
			s->v[0] = op->arg;
		return true;
	case SIZE_SET:
		s->v[0] = op->arg;
		return true;
	case SIZE_ADD:
		s->v[0] += op->arg;
		return true;
	default:
		return s->v[0] == op->result;
	}
}

static bool size_reads(const struct lin_op *op)
{
	return op->kind == SIZE_STAT;
}

static void size_print(FILE *out, const struct lin_op *op)
{
	static const char *const what[] = { "write up to %lld", "truncate to %lld", "append %lld",
					    "stat: size %lld" };

	fprintf(out, what[op->kind], (long long)(op->kind == SIZE_STAT ? op->result : op->arg));
}

const struct lin_model lin_size = { "a size", size_step, size_reads, size_print };

/* ------------------------------------------------------------------ names */

static bool names_step(const struct lin_op *op, struct lin_state *s)
{
	int64_t *from = &s->v[op->arg], *to, old;
	int err;

	if (op->result == LIN_OPEN) {
		static const int errs[] = { 0, EEXIST, ENOENT };
		struct lin_op known = *op;

		for (err = 0; err < 3; err++) {
			known.result = errs[err];
			if (names_step(&known, s))
				break;
		}
		return true;
	}
	switch (op->kind) {
	case NAME_CREATE:
		if (op->result)
			return op->result == EEXIST && *from;
		if (*from)
			return false;
		*from = op->arg2;
		return true;
	case NAME_UNLINK:
		if (op->result)
			return op->result == ENOENT && !*from;
		if (!*from)
			return false;
		*from = 0;
		return true;
	case NAME_LOOK:
		return op->result ? op->result == ENOENT && !*from : *from == op->arg2;
	}
	to = &s->v[op->arg2];
	if (!*from)
		return op->result == ENOENT;
	if (op->kind == NAME_RENAME_NEW && *to)
		return op->result == EEXIST;
	if (op->kind == NAME_EXCHANGE && !*to)
		return op->result == ENOENT;
	if (op->result)
		return false;
	old = *to;
	*to = *from;
	*from = op->kind == NAME_EXCHANGE ? old : 0;
	return true;
}

static bool names_reads(const struct lin_op *op)
{
	return op->kind == NAME_LOOK || (op->result && op->result != LIN_OPEN);
}

static void names_print(FILE *out, const struct lin_op *op)
{
	static const char *const what[] = { "create", "unlink", "look up", "rename",
					    "rename NOREPLACE", "exchange" };

	fprintf(out, "%s n%lld", what[op->kind], (long long)op->arg);
	if (op->kind >= NAME_RENAME)
		fprintf(out, " n%lld", (long long)op->arg2);
	if (op->result == LIN_OPEN)
		fprintf(out, ": not over");
	else if (op->result)
		fprintf(out, ": %s", strerror(op->result));
	else if (op->kind < NAME_RENAME && op->kind != NAME_UNLINK)
		fprintf(out, ": is %lld", (long long)op->arg2);
	else
		fprintf(out, ": done");
}

const struct lin_model lin_names = { "names", names_step, names_reads, names_print };
