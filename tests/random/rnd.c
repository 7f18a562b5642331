// SPDX-License-Identifier: GPL-2.0-only
/*
 * rnd.c - what the random testers share; see rnd.h. One thread only.
 */
#include "rnd.h"

#define NOTE_MAX 320

static char notes[RND_LAST][NOTE_MAX];
static uint64_t nr_notes;
static FILE *log_file;

void (*rnd_report)(void);

/* splitmix64: any seed will do, 0 too. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

void rnd_seed(struct rnd *r, uint64_t seed, uint64_t stream)
{
	r->s = mix(mix(seed) ^ stream);
}

uint64_t rnd_next(struct rnd *r)
{
	r->s += 0x9e3779b97f4a7c15ull;
	return mix(r->s);
}

uint64_t rnd_below(struct rnd *r, uint64_t n)
{
	return n ? rnd_next(r) % n : 0;
}

bool rnd_one_in(struct rnd *r, unsigned int n)
{
	return rnd_below(r, n) == 0;
}

void rnd_fill(void *buf, size_t n, uint64_t off, uint64_t stamp)
{
	unsigned char *p = buf;
	uint64_t base = mix(stamp), word;

	while (n) {
		size_t skip = off & 7, k = 8 - skip;

		word = base ^ ((off >> 3) * 0x9e3779b97f4a7c15ull);
		word ^= word >> 31;
		/* No zero bytes: those are what holes have. */
		word |= 0x0101010101010101ull;
		k = k < n ? k : n;
		memcpy(p, (char *)&word + skip, k);
		p += k;
		off += k;
		n -= k;
	}
}

void rnd_log_to(const char *path)
{
	log_file = fopen(path, "w");
	if (!log_file)
		rnd_die("%s: %s", path, strerror(errno));
}

void rnd_note(const char *fmt, ...)
{
	char *line = notes[nr_notes++ % RND_LAST];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, NOTE_MAX, fmt, ap);
	va_end(ap);
	if (log_file)
		fprintf(log_file, "%s\n", line);
}

void rnd_note_more(const char *fmt, ...)
{
	char *line = notes[(nr_notes - 1) % RND_LAST];
	size_t n = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, NOTE_MAX - n, fmt, ap);
	va_end(ap);
}

void rnd_show_last(void)
{
	uint64_t i = nr_notes > RND_LAST ? nr_notes - RND_LAST : 0;

	printf("the last %llu operations:\n", (unsigned long long)(nr_notes - i));
	for (; i < nr_notes; i++)
		printf("  %s\n", notes[i % RND_LAST]);
}

void rnd_fail(const char *fmt, ...)
{
	static bool failing;
	va_list ap;

	if (log_file)
		fflush(log_file);
	va_start(ap, fmt);
	printf("FAILED: ");
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	fflush(stdout);
	/* The report may fail in its turn. */
	if (!failing) {
		failing = true;
		rnd_show_last();
		fflush(stdout);
		if (rnd_report)
			rnd_report();
	}
	fflush(stdout);
	_exit(1);
}

void rnd_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

uint64_t rnd_number(const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || v < min || v > max)
		rnd_die("'%s' is not a number from %llu to %llu", text, (unsigned long long)min,
			(unsigned long long)max);
	return v;
}

double rnd_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void *rnd_alloc(size_t n)
{
	void *p = calloc(1, n ? n : 1);

	if (!p)
		rnd_die("no memory for %zu bytes", n);
	return p;
}
