// SPDX-License-Identifier: GPL-2.0-only
/*
 * conform.c - runs the tables of the conformance suite and prints TAP, a line per row, numbered
 * through.
 *
 *	conform [-k WORD]... [-p I/N] [-b vfs|lib] [-n | -l] DIR
 *
 *	-k WORD	only rows with WORD in their name (several: with any of them)
 *	-p I/N	only every Nth table, from the Ith on: for N of them side by side
 *	-n	prints how many rows that are
 *	-l	prints their names
 *	-b lib	through libpvfs: DIR is host:port,volume,keyfile
 *
 * Over the kernel every table has a process of its own, so that one that dies or hangs costs its
 * own rows only; they are reported as failed. libpvfs is used from one process. Rows that
 * differences.c lists must fail: the line says why they may. Exits with 1 when a row failed, 2 when
 * nothing could be run.
 */
#include "conform.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/wait.h>

/* A table that takes longer hangs, whatever the machine. */
#define TABLE_SECONDS 300

static const struct table *const all_tables[] = {
	tables_perm, tables_permdir, tables_owner, tables_open, tables_names, tables_namespace, tables_rename,
	tables_times, tables_modes, tables_limits, tables_space, tables_rw, tables_xattr, tables_acl, tables_locks,
	tables_dirs, tables_special, tables_fds,
};

/* Shared with the tables' processes. */
static struct {
	unsigned int ran, failed, differ;
} *total;

const struct api *fs = &api_vfs;
static const char *file_system = "?";
static const char *words[16];
static int nwords;
static unsigned int part = 1, parts = 1;
static bool dry, list;
static unsigned int rows;	/* of the table, so far */
static bool in_row;
static char row_name[512], reason[2048];
static jmp_buf give_up;

static bool wanted(const char *name)
{
	int i;

	for (i = 0; i < nwords; i++)
		if (strstr(name, words[i]))
			return true;
	return !nwords;
}

static void end_row(void)
{
	bool luck = false;
	const char *why;

	if (!in_row)
		return;
	in_row = false;
	be(&ROOT);
	total->ran++;
	why = difference(row_name, file_system, &luck);
	if (why && *reason) {
		total->differ++;
		printf("# %s\nok %u - %s (differs on %s: %s)\n", reason, total->ran, row_name, file_system, why);
	} else if (why && !luck) {
		total->failed++;
		printf("# listed as different on %s, which it is not: %s\nnot ok %u - %s\n", file_system, why,
		       total->ran, row_name);
	} else if (*reason) {
		total->failed++;
		printf("# %s\nnot ok %u - %s\n", reason, total->ran, row_name);
	} else {
		printf("ok %u - %s\n", total->ran, row_name);
	}
}

bool row(const char *fmt, ...)
{
	va_list ap;

	end_row();
	va_start(ap, fmt);
	vsnprintf(row_name, sizeof(row_name), fmt, ap);
	va_end(ap);
	if (!wanted(row_name))
		return false;
	rows++;
	if (dry) {
		if (list)
			printf("%s\n", row_name);
		return false;
	}
	in_row = true;
	*reason = 0;
	return true;
}

bool live(void)
{
	return !dry;
}

bool fine(void)
{
	return !*reason;
}

void wrong(const char *file, int line, const char *fmt, ...)
{
	size_t at = strlen(reason);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	if (!in_row) {
		printf("# %s:%d: the table cannot be run: %s\n", file, line, text);
		fflush(stdout);
		longjmp(give_up, 1);
	}
	/* The first few say it all. */
	if (at < sizeof(reason) / 2)
		snprintf(reason + at, sizeof(reason) - at, "%s%s:%d: %s", at ? "; " : "", file, line, text);
}

void gives(const char *file, int line, const char *what, long long r, int err)
{
	if (err ? r == -err : r >= 0)
		return;
	if (!err)
		wrong(file, line, "%s: %s", what, err_name(-r));
	else
		wrong(file, line, "%s should give %s, not %s", what, err_name(err), r >= 0 ? "success" : err_name(-r));
}

void equal(const char *file, int line, const char *what, long long a, long long b)
{
	if (a != b)
		wrong(file, line, "%s is %lld (0%llo), should be %lld (0%llo)", what, a, a, b, b);
}

/* The how manieth table it is, from 1 on. */
static unsigned int number_of(const struct table *t)
{
	const struct table *u;
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all_tables); i++)
		for (u = all_tables[i]; u->name; u++) {
			n++;
			if (u == t)
				return n;
		}
	return n;
}

static bool skipped(const struct table *t)
{
	return (t->vfs_only && !on_vfs()) || (number_of(t) - part) % parts;
}

static unsigned int count(const struct table *t)
{
	rows = 0;
	if (skipped(t))
		return 0;
	dry = true;
	t->run();
	dry = false;
	return rows;
}

/* In the table's own process, over the kernel. */
static void run_table(const struct table *t)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "%s", t->name);
	fs->umask(0);
	be(&ROOT);
	in_row = false;
	if (!setjmp(give_up)) {
		OK(fs->mkdir(dir, 0755));
		OK(fs->enter(dir));
		t->run();
	}
	end_row();
	be(&ROOT);
	fflush(stdout);
}

static void run_apart(const struct table *t)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!pid) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		alarm(TABLE_SECONDS);
		run_table(t);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status)
		printf("# the table %s ended with status %#x\n", t->name, status);
}

static void run_tables(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all_tables); i++) {
		const struct table *t;

		for (t = all_tables[i]; t->name; t++) {
			unsigned int want = count(t), before = total->ran;

			if (!want)
				continue;
			if (on_vfs()) {
				run_apart(t);
			} else {
				alarm(TABLE_SECONDS);
				run_table(t);
				OK(fs->enter(NULL));
			}
			while (total->ran < before + want) {
				total->ran++;
				total->failed++;
				printf("not ok %u - row %u of %s was not run\n", total->ran, total->ran - before,
				       t->name);
			}
		}
	}
}

static const char *name_of(const char *dir)
{
	static char text[32];
	struct statfs st;

	if (!on_vfs())
		return "libpvfs";
	if (statfs(dir, &st))
		return NULL;
	switch ((unsigned int)st.f_type) {
	case 0xef53:
		return "ext4";
	case 0x53465650:
		return "pvfs";
	case 0x65735546:
		return "fuse";
	}
	snprintf(text, sizeof(text), "%#x", (unsigned int)st.f_type);
	return text;
}

static int usage(void)
{
	fprintf(stderr, "usage: conform [-k WORD]... [-p I/N] [-b vfs|lib] [-n | -l] DIR\n");
	return 2;
}

int main(int argc, char **argv)
{
	unsigned int planned = 0;
	bool number = false;
	char top[32];
	size_t i;
	int opt;

	while ((opt = getopt(argc, argv, "k:p:b:nl")) != -1) {
		if (opt == 'k' && nwords < (int)ARRAY_SIZE(words))
			words[nwords++] = optarg;
		else if (opt == 'p' && sscanf(optarg, "%u/%u", &part, &parts) == 2 && part && part <= parts)
			continue;
		else if (opt == 'b' && !strcmp(optarg, "lib"))
			fs = &api_lib;
		else if (opt == 'n')
			number = true;
		else if (opt == 'l')
			list = true;
		else if (opt != 'b' || strcmp(optarg, "vfs"))
			return usage();
	}
	for (i = 0; i < ARRAY_SIZE(all_tables); i++) {
		const struct table *t;

		for (t = all_tables[i]; t->name; t++)
			planned += count(t);
	}
	if (number)
		printf("%u\n", planned);
	if (number || list)
		return 0;
	if (optind + 1 != argc)
		return usage();
	if (geteuid()) {
		fprintf(stderr, "conform: it changes identities: run it as root\n");
		return 2;
	}
	total = mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (total == MAP_FAILED)
		return 2;
	/* Shells may have left them ignored. */
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	file_system = name_of(argv[optind]);
	if (!file_system || (on_vfs() ? chdir(argv[optind]) : api_lib_mount(argv[optind]))) {
		fprintf(stderr, "conform: cannot use %s\n", argv[optind]);
		return 2;
	}
	snprintf(top, sizeof(top), "conform.%d", (int)getpid());
	if (fs->mkdir(top, 0755) || fs->enter(top)) {
		fprintf(stderr, "conform: cannot make a directory in %s\n", argv[optind]);
		return 2;
	}
	printf("1..%u\n", planned);
	run_tables();
	if (!on_vfs() && api_lib_umount()) {
		printf("# libpvfs cannot be unmounted: a file was left open\n");
		total->failed++;
	}
	printf("# %s: %u rows, %u failed, %u differ as listed\n", file_system, total->ran, total->failed,
	       total->differ);
	if (total->ran != planned)
		printf("# planned %u\n", planned);
	return total->failed || total->ran != planned;
}
