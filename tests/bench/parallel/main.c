// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - pbench: benchmarks of parallel programs, by MPI, through MPI-IO, libpvfs or the system.
 */
#include <ctype.h>
#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api.h"
#include "pbench.h"

struct options opt = {
	.rounds = 3, .iterations = 1, .verify = true,
	.tile = { 1024, 768 }, .element = 24,
};
int rank, nprocs;

static const struct bench *const benches[] = {
	&bench_test, &bench_perf, &bench_tile, &bench_records, &bench_md
};
static const struct api *const apis[] = { &api_mpi, &api_lib, &api_posix };

static const char usage[] =
"usage: mpiexec -n N pbench BENCHMARK -a mpi|lib|posix [options] DIRECTORY\n"
"  DIRECTORY  mpi: what MPI_File_open() takes before a slash; lib: pvfs:HOST:PORT:/VOLUME[/DIR],\n"
"             with the key in $PVFS_KEY; posix: a path\n"
"  -r ROUNDS  the mean of the worst process counts (3)\n"
"  -n         don't verify what is read\n"
"  -p PID,... CPU of these daemons is noted beside that of the processes\n"
"  -f FACTOR  I/O daemons of a new file, -u UNIT: its stripe unit (mpi, lib)\n"
"  test       blocks of one file: -b SIZE,... (64k,256k,1m,4m), -i BLOCKS of a process (1), in turn;\n"
"             -s: a sync counts as part of the write; -k: each round writes over the same file, which\n"
"             a round that does not count has made\n"
"  perf       one block a process: write, read, write and sync, read after that: -b SIZE,... (4m,16m,64m)\n"
"  tile       -t XxY tiles (of N), -z WIDTHxHEIGHT (1024x768) elements of -e BYTES (24), -o XxY overlap,\n"
"             -d BYTES before the first; -m list,pieces,collective\n"
"  records    interleaved in one file, and in a file for each: -b SIZE,... (47008), -c RECORDS (1000);\n"
"             -m shared,own\n"
"  md         -c FILES of a process (1000), -m easy,hard: empty in a directory for each; in one with 3,901 bytes\n"
"A line for each measure. MB are 10^6 bytes.\n";

static void misuse(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* All processes find the same; one says it. */
static void misuse(const char *fmt, ...)
{
	va_list ap;

	if (!rank) {
		va_start(ap, fmt);
		fprintf(stderr, "pbench: ");
		vfprintf(stderr, fmt, ap);
		fprintf(stderr, " (see pbench -h)\n");
		va_end(ap);
	}
	MPI_Finalize();
	exit(2);
}

/* With k, m or g behind it; up to what one call of MPI-IO can move. */
static long number(const char *s, int letter, long least, const char **end)
{
	static const char units[] = "kmg";
	const char *unit;
	char *p;
	long n;

	errno = 0;
	n = strtol(s, &p, 10);
	unit = *p ? strchr(units, tolower(*p)) : NULL;
	if (p != s && !errno && unit && n < 1l << 31) {
		n <<= 10 * (unit - units + 1);
		p++;
	}
	if (p == s || errno || n < least || n >= 1l << 31 || (*p && !end))
		misuse("-%c %s: a number from %ld on was expected", letter, s, least);
	if (end)
		*end = p;
	return n;
}

static void pair(const char *s, int letter, int least, int *ret)
{
	const char *p;

	ret[0] = number(s, letter, least, &p);
	if (*p != 'x')
		misuse("-%c %s: something like 2x2 was expected", letter, s);
	ret[1] = number(p + 1, letter, least, NULL);
}

static void sizes(const char *s)
{
	for (opt.nsizes = 0;; s++) {
		if (opt.nsizes == MAX_SIZES)
			misuse("-b: more than %d sizes", MAX_SIZES);
		opt.size[opt.nsizes++] = number(s, 'b', 1, &s);
		if (!*s)
			return;
		if (*s != ',')
			misuse("-b: '%s' is no size", s);
	}
}

static void modes(const char *s, const struct bench *b)
{
	char *words = strdup(s), *word, *save = NULL;

	for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		opt.modes = b->modes;
		if (!mode(word))
			misuse("-m %s: %s knows %s", word, b->name, b->modes);
	}
	free(words);
	opt.modes = s;
}

static void take(const struct bench *b, int c, const char *arg)
{
	size_t i;

	switch (c) {
	case 'a':
		for (i = 0; i < sizeof(apis) / sizeof(*apis); i++)
			if (!strcmp(apis[i]->name, arg))
				opt.api = apis[i];
		if (!opt.api)
			misuse("-a %s: mpi, lib or posix", arg);
		break;
	case 'r':
		opt.rounds = number(arg, c, 1, NULL);
		if (opt.rounds > MAX_ROUNDS)
			misuse("-r %s: at most %d", arg, MAX_ROUNDS);
		break;
	case 'n':
		opt.verify = false;
		break;
	case 'f':
		opt.factor = number(arg, c, 1, NULL);
		break;
	case 'u':
		opt.unit = number(arg, c, 4096, NULL);
		break;
	case 'p':
		opt.pids = arg;
		break;
	case 'b':
		sizes(arg);
		break;
	case 'i':
		opt.iterations = number(arg, c, 1, NULL);
		break;
	case 's':
		opt.sync = true;
		break;
	case 'k':
		opt.keep = true;
		break;
	case 'c':
		opt.count = number(arg, c, 1, NULL);
		break;
	case 't':
		pair(arg, c, 1, opt.tiles);
		break;
	case 'z':
		pair(arg, c, 1, opt.tile);
		break;
	case 'o':
		pair(arg, c, 0, opt.overlap);
		break;
	case 'e':
		opt.element = number(arg, c, 1, NULL);
		break;
	case 'd':
		opt.header = number(arg, c, 0, NULL);
		break;
	case 'm':
		modes(arg, b);
		break;
	}
}

int main(int argc, char **argv)
{
	const struct bench *b = NULL;
	size_t i;
	int c;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nprocs);
	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		if (!rank)
			fputs(usage, stdout);
		MPI_Finalize();
		return 0;
	}
	for (i = 0; argc > 1 && i < sizeof(benches) / sizeof(*benches); i++)
		if (!strcmp(benches[i]->name, argv[1]))
			b = benches[i];
	if (!b)
		misuse(argc > 1 ? "%s: no such benchmark" : "which benchmark?", argv[1]);
	opt.modes = b->modes;
	opt.count = 1000;
	sizes(b == &bench_perf ? "4m,16m,64m" : b == &bench_records ? "47008" : "64k,256k,1m,4m");
	opterr = 0;
	optind = 2;
	while ((c = getopt(argc, argv, ":a:r:nf:u:p:b:i:skc:t:z:o:e:d:m:")) != -1) {
		if (c == '?')
			misuse("-%c: no such option", optopt);
		if (c == ':')
			misuse("-%c wants a value", optopt);
		if (!strchr("arnfup", c) && !strchr(b->letters, c))
			misuse("%s takes no -%c", b->name, c);
		take(b, c, optarg);
	}
	if (!opt.api)
		misuse("which interface? -a mpi, lib or posix");
	if (optind != argc - 1)
		misuse("which directory? One");
	if (opt.api == &api_posix && (opt.factor || opt.unit))
		misuse("posix cannot stripe: see pvfs setstripe");
	for (i = 0; i < (size_t)opt.nsizes; i++)
		if (b == &bench_test && opt.size[i] * opt.iterations > 1l << 32)
			misuse("a process has its blocks in memory: %ld of %zu are too many",
			       opt.iterations, opt.size[i]);
	opt.dir = argv[optind];
	opt.api->begin();
	b->run();
	barrier();
	opt.api->end();
	MPI_Finalize();
	return 0;
}
