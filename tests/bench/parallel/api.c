// SPDX-License-Identifier: GPL-2.0-only
/*
 * api.c - what the interfaces share, and that of the system: plain calls on whatever is mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api.h"
#include "pbench.h"

const char *const how_name[HOWS] = { "list", "pieces", "collective" };

const char *path_of(const char *dir, const char *name)
{
	static char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		fail("%s/%s: too long", dir, name);
	return path;
}

struct file *new_file(const char *name, enum how how)
{
	struct file *f = calloc(1, sizeof(*f));

	if (!f)
		fail("no memory");
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->how = how;
	return f;
}

bool names_volume(const char *name)
{
	return !strncmp(name, "pvfs:", 5) && name[5] != '/' && strstr(name, ":/");
}

off_t row_offset(const struct tile *t, int row)
{
	return t->header + ((off_t)(t->start[0] + row) * t->array[1] + t->start[1]) * t->element;
}

size_t row_length(const struct tile *t)
{
	return t->sub[1] * t->element;
}

/* ---- the system's calls ---- */

static void posix_begin(void)
{
	struct stat st;

	if (stat(opt.dir, &st) || !S_ISDIR(st.st_mode))
		fail("%s: no directory", opt.dir);
}

static void posix_end(void)
{
}

static struct file *posix_open(const char *name, int flags, bool all, enum how how)
{
	struct file *f = new_file(name, how);

	/* A file that all make is made by the first one. */
	if (all && rank) {
		barrier();
		flags &= ~(O_CREAT | O_EXCL);
	}
	f->fd = open(path_of(opt.dir, name), flags, 0644);
	if (f->fd < 0)
		fail("open %s: %s", name, strerror(errno));
	if (all && !rank)
		barrier();
	return f;
}

static void posix_close(struct file *f)
{
	if (close(f->fd))
		fail("close %s: %s", f->name, strerror(errno));
	free(f);
}

static void posix_write(struct file *f, const void *buf, size_t n, off_t off)
{
	ssize_t r = pwrite(f->fd, buf, n, off);

	if (r != (ssize_t)n)
		fail("write %s: %s", f->name, r < 0 ? strerror(errno) : "short");
}

static void posix_read(struct file *f, void *buf, size_t n, off_t off)
{
	ssize_t r = pread(f->fd, buf, n, off);

	if (r != (ssize_t)n)
		fail("read %s: %s", f->name, r < 0 ? strerror(errno) : "short");
}

static void posix_sync(struct file *f)
{
	if (fsync(f->fd))
		fail("fsync %s: %s", f->name, strerror(errno));
}

static void posix_view(struct file *f, const struct tile *t)
{
	f->tile = t;
}

static void posix_tile_write(struct file *f, const void *buf)
{
	size_t len = row_length(f->tile);
	int i;

	for (i = 0; i < f->tile->sub[0]; i++)
		posix_write(f, (const char *)buf + i * len, len, row_offset(f->tile, i));
}

static void posix_tile_read(struct file *f, void *buf)
{
	size_t len = row_length(f->tile);
	int i;

	for (i = 0; i < f->tile->sub[0]; i++)
		posix_read(f, (char *)buf + i * len, len, row_offset(f->tile, i));
}

static off_t posix_size(const char *name)
{
	struct stat st;

	if (stat(path_of(opt.dir, name), &st))
		fail("stat %s: %s", name, strerror(errno));
	return st.st_size;
}

static void posix_remove(const char *name)
{
	if (unlink(path_of(opt.dir, name)))
		fail("unlink %s: %s", name, strerror(errno));
}

static void posix_mkdir(const char *name)
{
	if (mkdir(path_of(opt.dir, name), 0755))
		fail("mkdir %s: %s", name, strerror(errno));
}

static void posix_rmdir(const char *name)
{
	if (rmdir(path_of(opt.dir, name)))
		fail("rmdir %s: %s", name, strerror(errno));
}

static long posix_messages(void)
{
	return -1;
}

const struct api api_posix = {
	.name = "posix",
	.can = { [PIECES] = true },
	.begin = posix_begin,
	.end = posix_end,
	.open = posix_open,
	.close = posix_close,
	.write = posix_write,
	.read = posix_read,
	.sync = posix_sync,
	.view = posix_view,
	.tile_write = posix_tile_write,
	.tile_read = posix_tile_read,
	.size = posix_size,
	.remove = posix_remove,
	.mkdir = posix_mkdir,
	.rmdir = posix_rmdir,
	.messages = posix_messages,
};
