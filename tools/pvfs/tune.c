// SPDX-License-Identifier: GPL-2.0
/*
 * tune.c - `pvfs tune`: up to what size files are better off with the manager.
 *
 * Files of several sizes are made and read, stuffed and striped, and the two lines time = fixed +
 * size * per byte are drawn through what that took. A stuffed file saves the round trips to the I/O
 * daemons, which is the difference of the fixed parts, and pays for it with every byte that the
 * manager writes to its store as well: where the lines cross, it is not worth it any more. The
 * small-file paper chose its limit by trial, and wished for such a rule.
 */
#include "tool.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIZES 7				/* 1 KiB .. 64 KiB */
#define FILES_MAX 1000ul
#define END_SECONDS 20	/* from a signal to the end, whatever the servers do */

enum { STUFFED, STRIPED, KINDS };

struct tune {
	struct pvfs_fs *fs;
	char dir[KINDS + 1][4096];	/* of each kind, and the one they are in */
	u32 files;
	u8 *data;			/* PVFS_STUFF_MAX bytes */
	u64 *ns;			/* files */
	u64 put[SIZES][KINDS], get[SIZES][KINDS];	/* medians, ns */
};

static u32 size_of(int i)
{
	return 1024u << i;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u64 median(struct tune *t)
{
	qsort(t->ns, t->files, sizeof(*t->ns), by_value);
	return t->ns[t->files / 2];
}

/* Made with @size bytes in it, or read whole. */
static int one_file(struct tune *t, const char *path, u32 size, bool put)
{
	struct pvfs_file *f;
	ssize_t n;
	int rc, rc2;

	rc = pvfs_open(t->fs, path, put ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY, 0600, &f);
	if (rc)
		return rc;
	n = put ? pvfs_pwrite(f, t->data, size, 0) : pvfs_pread(f, t->data, PVFS_STUFF_MAX, 0);
	rc = n < 0 ? n : n != size ? -EIO : 0;
	rc2 = pvfs_close(f);
	return rc ?: rc2;
}

/* All files of one size and kind. @op: 'p'ut, 'g'et or 'r'emove. */
static int all_files(struct tune *t, int kind, u32 size, char op, u64 *ret_median)
{
	char path[4096 + 32];
	u64 start;
	int rc = 0;
	u32 i;

	for (i = 0; i < t->files && !rc; i++) {
		snprintf(path, sizeof(path), "%s/%u.%u", t->dir[kind], size, i);
		start = now_ns();
		rc = op == 'r' ? pvfs_unlink(t->fs, path) : one_file(t, path, size, op == 'p');
		t->ns[i] = now_ns() - start;
		if (interrupted())
			return -EINTR;
	}
	if (rc)
		fail("pvfs:%s: %s", path, strerror(-rc));
	else if (ret_median)
		*ret_median = median(t);
	return rc;
}

/* In turns, so that both kinds have the same weather. */
static int measure(struct tune *t)
{
	int i, kind, rc = 0;

	for (i = 0; i < SIZES && !rc; i++) {
		for (kind = 0; kind < KINDS && !rc; kind++)
			rc = all_files(t, kind, size_of(i), 'p', &t->put[i][kind]);
		for (kind = 0; kind < KINDS && !rc; kind++)
			rc = all_files(t, kind, size_of(i), 'g', &t->get[i][kind]);
		for (kind = 0; kind < KINDS && !rc; kind++)
			rc = all_files(t, kind, size_of(i), 'r', NULL);
	}
	return rc;
}

/* The line through put and get together, least squares: ns, and ns a byte. */
static void line(const struct tune *t, int kind, double *fixed, double *per_byte)
{
	double x, y, sx = 0, sy = 0, sxx = 0, sxy = 0;
	int i;

	for (i = 0; i < SIZES; i++) {
		x = size_of(i);
		y = t->put[i][kind] + t->get[i][kind];
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	*per_byte = (SIZES * sxy - sx * sy) / (SIZES * sxx - sx * sx);
	*fixed = (sy - *per_byte * sx) / SIZES;
}

/* What the lines say, in words; return: the limit, bytes. */
static u32 rule(const struct tune *t, char *text, size_t n)
{
	double fixed[KINDS], per_byte[KINDS], saves, costs, cross;
	u32 limit = PVFS_STUFF_MAX;

	line(t, STUFFED, &fixed[STUFFED], &per_byte[STUFFED]);
	line(t, STRIPED, &fixed[STRIPED], &per_byte[STRIPED]);
	saves = fixed[STRIPED] - fixed[STUFFED];
	costs = per_byte[STUFFED] - per_byte[STRIPED];
	if (saves <= 0) {
		snprintf(text, n, "A stuffed file saves nothing here");
		return 0;
	}
	if (costs <= 0) {
		snprintf(text, n, "A stuffed file saves %.0f us, and its bytes cost no more",
			 saves / 1e3);
		return limit;
	}
	cross = saves / costs;
	while (limit > 1024 && limit > cross)
		limit /= 2;
	snprintf(text, n, "A stuffed file saves %.0f us, and costs %.2f us more a KiB: worth it up to %.1f KiB",
		 saves / 1e3, costs * 1024 / 1e3, cross / 1024);
	return limit > cross ? 0 : limit;
}

static void print(const struct tune *t)
{
	static const struct out_col cols[] = {
		{ "size", "SIZE", OUT_NUMBER },
		{ "put_stuffed_ns", "PUT STUFFED", OUT_NUMBER },
		{ "put_striped_ns", "STRIPED", OUT_NUMBER },
		{ "get_stuffed_ns", "GET STUFFED", OUT_NUMBER },
		{ "get_striped_ns", "STRIPED", OUT_NUMBER },
	};
	struct out *o = out_new("sizes", cols, ARRAY_SIZE(cols));
	char text[160], shown[32];
	u32 limit;
	int i, k;

	for (i = 0; i < SIZES; i++) {
		const u64 v[] = { t->put[i][STUFFED], t->put[i][STRIPED], t->get[i][STUFFED],
				  t->get[i][STRIPED] };

		out_row(o);
		out_number(o, 0, size_of(i), human(size_of(i), shown));
		for (k = 0; k < 4; k++) {
			snprintf(shown, sizeof(shown), "%.0f us", v[k] / 1e3);
			out_number(o, k + 1, v[k], shown);
		}
	}
	out_print(o);
	if (tool.json)			/* that is for who computes by himself */
		return;
	limit = rule(t, text, sizeof(text));
	printf("%s.\nstuff_max = %uk\n", text, limit >> 10);
}

static int make_dirs(struct tune *t, const char *where)
{
	struct pvfs_striping s[KINDS] = {
		{ .base = PVFS_BASE_ANY, .stuff_max = PVFS_STUFF_MAX },
		{ .base = PVFS_BASE_ANY, .stuff_max = PVFS_STUFF_NONE },
	};
	int rc, kind;

	snprintf(t->dir[KINDS], sizeof(t->dir[0]), "%s/.pvfs-tune.%d", strcmp(where, "/") ? where : "",
		 (int)getpid());
	rc = pvfs_mkdir(t->fs, t->dir[KINDS], 0700);
	for (kind = 0; kind < KINDS && !rc; kind++) {
		if (snprintf(t->dir[kind], sizeof(t->dir[0]), "%s/%s", t->dir[KINDS],
			     kind == STUFFED ? "stuffed" : "striped") >= (int)sizeof(t->dir[0]))
			return -ENAMETOOLONG;
		rc = pvfs_mkdir(t->fs, t->dir[kind], 0700);
		rc = rc ?: pvfs_setlayout(t->fs, t->dir[kind], &s[kind]);
	}
	return rc;
}

/* What a failure has left, too. */
static void remove_dirs(struct tune *t)
{
	char path[4096 + 32];
	int kind, i;
	u32 k;

	for (kind = 0; kind < KINDS; kind++) {
		if (pvfs_rmdir(t->fs, t->dir[kind]) != -ENOTEMPTY)
			continue;
		for (i = 0; i < SIZES; i++)
			for (k = 0; k < t->files; k++) {
				snprintf(path, sizeof(path), "%s/%u.%u", t->dir[kind], size_of(i), k);
				pvfs_unlink(t->fs, path);
			}
		pvfs_rmdir(t->fs, t->dir[kind]);
	}
	pvfs_rmdir(t->fs, t->dir[KINDS]);
}

int cmd_tune(int argc, char **argv)
{
	static const struct option longopts[] = { { "files", required_argument, NULL, 'n' },
						  TOOL_LONG };
	unsigned long files = 50;
	const char *where = "/";
	struct tune *t;
	int c, rc;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "n:", longopts, NULL)) != -1) {
		if (c == 'n') {
			if (parse_number(optarg, 1, FILES_MAX, &files))
				return EXIT_USAGE;
			continue;
		}
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (argc - optind > 1)
		return tool_usage("in one directory");
	if (optind < argc) {
		where = path_of(argv[optind]);
		if (strlen(where) > 3000)
			return tool_usage("'%s': too long", where);
	}
	t = calloc(1, sizeof(*t));
	if (t) {
		t->files = files;
		t->data = calloc(1, PVFS_STUFF_MAX);
		t->ns = calloc(files, sizeof(*t->ns));
	}
	rc = t && t->data && t->ns ? 0 : -ENOMEM;
	if (rc)
		fail("%s", strerror(-rc));
	else
		rc = tool_connect(&t->fs);
	if (!rc) {
		/* Time to remove what was made. */
		interrupt_begin("pvfs tune: interrupted: a server does not answer, so that .pvfs-tune.PID stays\n",
				END_SECONDS);
		rc = make_dirs(t, where);
		if (rc)
			fail("pvfs:%s: %s", t->dir[KINDS], strerror(-rc));
		rc = rc ?: measure(t);
		remove_dirs(t);
		tool_disconnect(t->fs);
		if (!rc)
			print(t);
	}
	if (t) {
		free(t->data);
		free(t->ns);
	}
	free(t);
	return interrupted() ? EXIT_INTERRUPTED : rc ? EXIT_FAILURE : 0;
}
