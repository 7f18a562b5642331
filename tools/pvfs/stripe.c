// SPDX-License-Identifier: GPL-2.0
/*
 * stripe.c - `pvfs setstripe getstripe`: how files are laid out. Also of paths on a mounted volume,
 * by its xattr.
 */
#include "tool.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#define XATTR_LAYOUT "pvfs.layout"	/* on a mounted volume */
#define WRITTEN (-ENOTEMPTY)		/* the layout of what is there says EEXIST for it, as the making of a file does */

/* The first daemon of a layout, in words. */
void base_text(const struct pvfs_striping *s, char buf[16])
{
	if (s->base == PVFS_BASE_ANY)
		strcpy(buf, "any");
	else
		snprintf(buf, 16, "%u", s->base);
}

/* Is @arg a path on a mounted volume, rather than one in the volume? */
static bool mounted_path(const char *arg, char *layout, size_t n)
{
	ssize_t len;

	if (remote_path(arg))
		return false;
	len = getxattr(arg, XATTR_LAYOUT, layout, n - 1);
	if (len < 0)
		return false;
	layout[len] = '\0';
	return true;
}

/* What was asked for. What was not given stays as it is. */
struct wish {
	struct pvfs_striping s;	/* pcount 0: all; stuff_max 0: not given */
	bool base, pcount;	/* given */
};

static int set_mounted(const char *path, const struct wish *w)
{
	char text[96] = "", base[16];
	int n = 0;

	base_text(&w->s, base);
	if (w->base)
		n += snprintf(text + n, sizeof(text) - n, "base=%s ", base);
	if (w->pcount)
		n += snprintf(text + n, sizeof(text) - n, "pcount=%u ", w->s.pcount);
	if (w->s.ssize)
		n += snprintf(text + n, sizeof(text) - n, "ssize=%u ", w->s.ssize);
	if (w->s.stuff_max)
		n += snprintf(text + n, sizeof(text) - n, "stuff_max=%u ",
			      w->s.stuff_max == PVFS_STUFF_NONE ? 0 : w->s.stuff_max);
	if (!n)
		return 0;
	if (!setxattr(path, XATTR_LAYOUT, text, n - 1, 0))
		return 0;
	return errno == EEXIST ? WRITTEN : -errno;
}

/* The directory that @path is in; owned by the caller. */
static char *parent_of(const char *path)
{
	char *dir = strdup(path), *slash;

	if (!dir)
		return NULL;
	while ((slash = strrchr(dir, '/')) != NULL && !slash[1] && slash != dir)
		*slash = '\0';
	if (!slash)
		strcpy(dir, *dir ? "." : "");
	else
		slash[slash == dir] = '\0';
	return dir;
}

/* Is @path one that does not exist, in a directory of a mounted volume? */
static bool new_mounted_path(const char *path)
{
	char layout[128], *dir = remote_path(path) ? NULL : parent_of(path);
	bool ret = dir && access(path, F_OK) && mounted_path(dir, layout, sizeof(layout));

	free(dir);
	return ret;
}

static int make_mounted(const char *path, const struct wish *w)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	return set_mounted(path, w);
}

/* @s: what is there is put where nothing was asked for. */
static void fill_in(const struct wish *w, const struct pvfs_striping *is, struct pvfs_striping *s)
{
	*s = w->s;
	if (!w->base)
		s->base = is->base;
	if (!w->pcount)
		s->pcount = is->pcount;
	if (!w->s.ssize)
		s->ssize = is->ssize;
}

static int set_remote(struct pvfs_fs *fs, const char *path, const struct wish *w)
{
	struct pvfs_striping is, s;
	struct pvfs_file *f;
	char *dir;
	int rc = pvfs_getlayout(fs, path, &is);

	if (!rc) {
		fill_in(w, &is, &s);
		rc = pvfs_setlayout(fs, path, &s);
		return rc == -EEXIST ? WRITTEN : rc;
	}
	if (rc != -ENOENT)
		return rc;
	/* A new file has of its directory what it is not given. */
	dir = parent_of(path);
	rc = dir ? pvfs_getlayout(fs, *dir == '.' ? "/" : dir, &is) : -ENOMEM;
	free(dir);
	if (rc)
		return rc;
	fill_in(w, &is, &s);
	rc = pvfs_open_striped(fs, path, O_WRONLY | O_CREAT | O_EXCL, 0666, &s, &f);
	return rc ?: pvfs_close(f);
}

static void say_why(const char *path, int rc)
{
	if (rc == WRITTEN)
		fail("%s: it was written to already: a layout can be set before the first write only", path);
	else if (rc == -EBUSY)
		fail("%s: it is open elsewhere: a layout can be set before that only", path);
	else
		fail("%s: %s%s", path, strerror(-rc), rc == -EINVAL ? " (more daemons than the volume has?)" : "");
}

int cmd_setstripe(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "size", required_argument, NULL, 'S' }, { "count", required_argument, NULL, 'n' },
		{ "base", required_argument, NULL, 'b' },
		{ "stuff-max", required_argument, NULL, 's' }, TOOL_LONG
	};
	struct wish w = { .s.base = PVFS_BASE_ANY };
	struct pvfs_fs *fs = NULL;
	int c, i, rc, failed = 0;
	unsigned long v;
	char old[128];
	u64 size;

	while ((c = getopt_long(argc, argv, TOOL_SHORT "S:n:b:s:", longopts, NULL)) != -1) {
		switch (c) {
		case 'S':
			if (pvfs_parse_size(optarg, &size) || size < PVFS_SSIZE_MIN ||
			    size > PVFS_SSIZE_MAX || (size & (size - 1)))
				return tool_usage("'%s': a stripe unit is a power of two, 4k .. 1G",
						  optarg);
			w.s.ssize = size;
			break;
		case 'n':
			if (parse_number(optarg, 0, PVFS_IOD_MAX, &v))
				return EXIT_USAGE;
			w.s.pcount = v;
			w.pcount = true;
			break;
		case 'b':
			w.base = true;
			if (strcmp(optarg, "any")) {
				if (parse_number(optarg, 0, PVFS_IOD_MAX - 1, &v))
					return EXIT_USAGE;
				w.s.base = v;
			}
			break;
		case 's':
			if (pvfs_parse_size(optarg, &size) || size > PVFS_STUFF_MAX)
				return tool_usage("'%s': the manager keeps files of at most %uk",
						  optarg, PVFS_STUFF_MAX >> 10);
			w.s.stuff_max = size ?: PVFS_STUFF_NONE;
			break;
		default:
			rc = tool_option(c);
			if (rc)
				return rc < 0 ? EXIT_USAGE : 0;
		}
	}
	if (optind >= argc)
		return tool_usage("of what?");
	for (i = optind; i < argc; i++) {
		if (mounted_path(argv[i], old, sizeof(old))) {
			rc = set_mounted(argv[i], &w);
		} else if (new_mounted_path(argv[i])) {
			rc = make_mounted(argv[i], &w);
		} else {
			if (!changing_path(argv[i]))
				return EXIT_USAGE;
			if (!fs && tool_connect(&fs))
				return EXIT_FAILURE;
			rc = set_remote(fs, path_of(argv[i]), &w);
		}
		if (rc)
			say_why(argv[i], rc);
		failed |= !!rc;
	}
	if (fs)
		tool_disconnect(fs);
	return failed ? EXIT_FAILURE : 0;
}

int cmd_getstripe(int argc, char **argv)
{
	static const struct out_col cols[] = {
		{ "name", "NAME", OUT_TEXT },
		{ "stripe_base", "BASE", OUT_TEXT },
		{ "stripe_count", "COUNT", OUT_NUMBER },
		{ "stripe_size", "UNIT", OUT_NUMBER },
		{ "stuff_max", "STUFF", OUT_NUMBER },
	};
	static const struct option longopts[] = { TOOL_LONG };
	int c, i, n, rc, failed = 0;
	struct pvfs_striping s;
	struct pvfs_fs *fs = NULL;
	char text[128], base[16];
	unsigned int count, size, stuff;
	struct out *o;

	while ((c = getopt_long(argc, argv, TOOL_SHORT, longopts, NULL)) != -1) {
		rc = tool_option(c);
		if (rc)
			return rc < 0 ? EXIT_USAGE : 0;
	}
	if (optind >= argc)
		return tool_usage("of what?");
	o = out_new("files", cols, ARRAY_SIZE(cols));
	for (i = optind; i < argc; i++) {
		if (mounted_path(argv[i], text, sizeof(text))) {
			n = sscanf(text, "base=%15s pcount=%u ssize=%u stuff_max=%u", base, &count,
				   &size, &stuff);
			if (n != 4) {
				fail("%s: its layout '%s' is not understood", argv[i], text);
				failed = 1;
				continue;
			}
		} else {
			if (!fs && tool_connect(&fs))
				return EXIT_FAILURE;
			rc = pvfs_getlayout(fs, path_of(argv[i]), &s);
			if (rc) {
				fail_path(argv[i], rc);
				failed = 1;
				continue;
			}
			base_text(&s, base);
			count = s.pcount;
			size = s.ssize;
			stuff = s.stuff_max;
		}
		out_row(o);
		out_name(o, 0, argv[i]);
		out_text(o, 1, "%s", base);
		out_number(o, 2, count, NULL);
		out_number(o, 3, size, human(size, text));
		out_number(o, 4, stuff, human(stuff, text));
	}
	out_print(o);
	if (fs)
		tool_disconnect(fs);
	return failed ? EXIT_FAILURE : 0;
}
