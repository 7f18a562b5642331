// SPDX-License-Identifier: GPL-2.0-only
/*
 * util.c - measured parts, reports, and data that can be checked.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "api.h"
#include "pbench.h"

void fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fprintf(stderr, "pbench: process %d: ", rank);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

bool mode(const char *word)
{
	const char *p = opt.modes;
	size_t n = strlen(word);

	while (p) {
		if (!strncmp(p, word, n) && (!p[n] || p[n] == ','))
			return true;
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	return false;
}

void *memory(size_t n)
{
	void *p;

	if (posix_memalign(&p, 4096, n ? n : 1))
		fail("no memory for %zu bytes", n);
	/* So that the first to use it does not pay for its pages. */
	memset(p, 0, n);
	return p;
}

static uint64_t word_of(uint64_t i, uint64_t seed)
{
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xd1342543de82ef95ull;

	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93ull;
}

void fill(void *buf, size_t n, off_t off, uint64_t seed)
{
	char *p = buf;

	while (n) {
		uint64_t w = word_of(off / 8, seed);
		size_t skip = off % 8, len = 8 - skip < n ? 8 - skip : n;

		memcpy(p, (char *)&w + skip, len);
		p += len;
		off += len;
		n -= len;
	}
}

void check(const void *buf, size_t n, off_t off, uint64_t seed, const char *name)
{
	const char *p = buf;

	while (opt.verify && n) {
		uint64_t w = word_of(off / 8, seed);
		size_t skip = off % 8, len = 8 - skip < n ? 8 - skip : n;

		if (memcmp(p, (char *)&w + skip, len))
			fail("%s: wrong data at offset %lld or the %zu bytes behind it", name,
			     (long long)off, len - 1);
		p += len;
		off += len;
		n -= len;
	}
}

/*
 * MPI's own barrier spins, on processors that the daemons and the processes that are still at work
 * need on a machine with few.
 */
void barrier(void)
{
	MPI_Request req;
	int done = 0;

	MPI_Ibarrier(MPI_COMM_WORLD, &req);
	for (;;) {
		MPI_Test(&req, &done, MPI_STATUS_IGNORE);
		if (done)
			return;
		usleep(50);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_utime.tv_sec + r.ru_stime.tv_sec +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Of all their threads. */
static double cpu_of_daemons(void)
{
	const char *pid = rank ? NULL : opt.pids;
	double ticks = 0, user, sys;
	char path[64];
	FILE *f;

	while (pid && *pid) {
		snprintf(path, sizeof(path), "/proc/%ld/stat", atol(pid));
		f = fopen(path, "r");
		if (!f || fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lf %lf",
				 &user, &sys) != 2)
			fail("%s: no such process", path);
		fclose(f);
		ticks += user + sys;
		pid += strcspn(pid, ",");
		pid += *pid == ',';
	}
	return ticks / sysconf(_SC_CLK_TCK);
}

void part_begin(struct part *p)
{
	p->d = cpu_of_daemons();
	barrier();
	p->c = cpu();
	p->t = now();
}

void part_end(struct part *p)
{
	p->secs[p->rounds++] = now() - p->t;
	p->cpu += cpu() - p->c;
	/* Whoever is done early should not begin with what comes next beside the others. */
	barrier();
	p->daemons += cpu_of_daemons() - p->d;
}

double report(const struct part *p, const char *what, const char *key, double amount,
	      const char *fmt, ...)
{
	double mean = 0, worst, all_cpu, each[MAX_ROUNDS], scale = strcmp(key, "mbs") ? 1 : 1e6;
	va_list ap;
	int i;

	for (i = 0; i < p->rounds; i++)
		mean += p->secs[i] / p->rounds;
	MPI_Allreduce(&mean, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(p->secs, each, p->rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&p->cpu, &all_cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (!rank) {
		printf("%s api=%s procs=%d ", what, opt.api->name, nprocs);
		va_start(ap, fmt);
		vprintf(fmt, ap);
		va_end(ap);
		printf(" %s=%.2f", key, amount / worst / scale);
		if (scale > 1)
			printf(" cpu_ms_mib=%.3f", all_cpu * 1e3 / p->rounds / (amount / 1048576));
		if (scale > 1 && opt.pids)
			printf(" daemons_ms_mib=%.3f",
			       p->daemons * 1e3 / p->rounds / (amount / 1048576));
		for (i = 0; i < p->rounds; i++)
			printf("%s%.2f", i ? "," : " each=", amount / each[i] / scale);
		printf("\n");
		fflush(stdout);
	}
	return amount / worst / scale;
}
