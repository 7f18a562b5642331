// SPDX-License-Identifier: GPL-2.0-only
/*
 * api_lib.c - libpvfs. Each process mounts the volume, and so has connections of its own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "lib/pvfs.h"
#include "pbench.h"

static struct pvfs_fs *fs;
static char mgr[256], vol[64], dir[512];	/* opt.dir, taken apart */

static void lib_begin(void)
{
	struct pvfs_mount_opts o = PVFS_MOUNT_OPTS_INIT;
	char why[256];

	if (!names_volume(opt.dir) ||
	    sscanf(opt.dir, "pvfs:%255[^/]/%63[^/]%511s", mgr, vol, dir) < 2)
		fail("%s: no pvfs:HOST:PORT:/VOLUME[/DIRECTORY]", opt.dir);
	mgr[strlen(mgr) - 1] = 0;	/* the colon */
	o.mgr = mgr;
	o.volume = vol;
	o.key_file = getenv("PVFS_KEY");
	o.soft = 1;
	if (pvfs_mount(&o, &fs, why, sizeof(why)))
		fail("%s: %s", opt.dir, why);
}

static void lib_end(void)
{
	int rc = pvfs_umount(fs);

	if (rc)
		fail("umount: %s", strerror(-rc));
}

static struct file *lib_open(const char *name, int flags, bool all, enum how how)
{
	struct pvfs_striping s = { .base = PVFS_BASE_ANY, .pcount = opt.factor, .ssize = opt.unit };
	struct file *f = new_file(name, how);
	int rc;

	if (all && rank) {
		barrier();
		flags &= ~(O_CREAT | O_EXCL);
	}
	if (flags & O_CREAT && (opt.factor || opt.unit))
		rc = pvfs_open_striped(fs, path_of(dir, name), flags, 0644, &s, &f->lib);
	else
		rc = pvfs_open(fs, path_of(dir, name), flags, 0644, &f->lib);
	if (rc)
		fail("open %s: %s", name, strerror(-rc));
	if (all && !rank)
		barrier();
	return f;
}

static void lib_close(struct file *f)
{
	int rc = pvfs_close(f->lib);

	if (rc)
		fail("close %s: %s", f->name, strerror(-rc));
	free(f);
}

static void moved(const struct file *f, const char *what, ssize_t r, size_t n)
{
	if (r != (ssize_t)n)
		fail("%s %s: %s", what, f->name, r < 0 ? strerror(-r) : "short");
}

static void lib_write(struct file *f, const void *buf, size_t n, off_t off)
{
	moved(f, "write", pvfs_pwrite(f->lib, buf, n, off), n);
}

static void lib_read(struct file *f, void *buf, size_t n, off_t off)
{
	moved(f, "read", pvfs_pread(f->lib, buf, n, off), n);
}

static void lib_sync(struct file *f)
{
	int rc = pvfs_fsync(f->lib);

	if (rc)
		fail("fsync %s: %s", f->name, strerror(-rc));
}

static void lib_view(struct file *f, const struct tile *t)
{
	f->tile = t;
}

static void lib_tile(struct file *f, bool write, void *buf)
{
	const struct tile *t = f->tile;
	size_t len = row_length(t);
	struct iovec mem = { .iov_base = buf, .iov_len = t->sub[0] * len };
	struct pvfs_piece *p;
	int i;

	if (f->how == PIECES) {
		for (i = 0; i < t->sub[0]; i++)
			if (write)
				lib_write(f, (char *)buf + i * len, len, row_offset(t, i));
			else
				lib_read(f, (char *)buf + i * len, len, row_offset(t, i));
		return;
	}
	p = calloc(t->sub[0], sizeof(*p));
	if (!p)
		fail("no memory");
	for (i = 0; i < t->sub[0]; i++)
		p[i] = (struct pvfs_piece){ .off = row_offset(t, i), .len = len };
	if (write)
		moved(f, "write", pvfs_write_list(f->lib, &mem, 1, p, t->sub[0]), mem.iov_len);
	else
		moved(f, "read", pvfs_read_list(f->lib, &mem, 1, p, t->sub[0]), mem.iov_len);
	free(p);
}

static void lib_tile_write(struct file *f, const void *buf)
{
	lib_tile(f, true, (void *)buf);
}

static void lib_tile_read(struct file *f, void *buf)
{
	lib_tile(f, false, buf);
}

static off_t lib_size(const char *name)
{
	struct pvfs_stat st;
	int rc = pvfs_stat(fs, path_of(dir, name), &st);

	if (rc)
		fail("stat %s: %s", name, strerror(-rc));
	return st.st.st_size;
}

static void lib_remove(const char *name)
{
	int rc = pvfs_unlink(fs, path_of(dir, name));

	if (rc)
		fail("unlink %s: %s", name, strerror(-rc));
}

static void lib_mkdir(const char *name)
{
	int rc = pvfs_mkdir(fs, path_of(dir, name), 0755);

	if (rc)
		fail("mkdir %s: %s", name, strerror(-rc));
}

static void lib_rmdir(const char *name)
{
	int rc = pvfs_rmdir(fs, path_of(dir, name));

	if (rc)
		fail("rmdir %s: %s", name, strerror(-rc));
}

static long lib_messages(void)
{
	static const char *const op[] = { "READ", "WRITE", "READ_LIST", "WRITE_LIST" };
	struct pvfs_opcount c;
	long n = 0;
	size_t i;

	for (i = 0; i < sizeof(op) / sizeof(*op); i++)
		if (!pvfs_counters(fs, PVFS_SERVER_ALL, op[i], &c))
			n += c.count;
	return n;
}

const struct api api_lib = {
	.name = "lib",
	.can = { [LIST] = true, [PIECES] = true },
	.begin = lib_begin,
	.end = lib_end,
	.open = lib_open,
	.close = lib_close,
	.write = lib_write,
	.read = lib_read,
	.sync = lib_sync,
	.view = lib_view,
	.tile_write = lib_tile_write,
	.tile_read = lib_tile_read,
	.size = lib_size,
	.remove = lib_remove,
	.mkdir = lib_mkdir,
	.rmdir = lib_rmdir,
	.messages = lib_messages,
};
