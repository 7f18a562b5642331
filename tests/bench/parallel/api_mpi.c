// SPDX-License-Identifier: GPL-2.0-only
/*
 * api_mpi.c - MPI-IO, with the ROMIO that the program is linked with. MPI has neither stat nor
 * directories: a size is asked for by opening the file, and directories, which are not measured, are
 * made by libpvfs or the system.
 */
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api.h"
#include "pbench.h"

static void must(int rc, const char *what, const char *name)
{
	char why[MPI_MAX_ERROR_STRING] = "";
	int class, len;

	if (rc == MPI_SUCCESS)
		return;
	MPI_Error_class(rc, &class);
	MPI_Error_string(class, why, &len);
	fail("%s %s: %s", what, name, why);
}

static void mpi_begin(void)
{
	/* The system's functions want the path without the prefix that ROMIO takes. */
	if (!strncmp(opt.dir, "pvfs:/", 6))
		opt.dir += 5;
	if (!names_volume(opt.dir))
		api_posix.begin();
}

static void mpi_end(void)
{
}

static struct file *mpi_open(const char *name, int flags, bool all, enum how how)
{
	int amode = (flags & O_ACCMODE) == O_RDONLY ? MPI_MODE_RDONLY :
		    (flags & O_ACCMODE) == O_WRONLY ? MPI_MODE_WRONLY : MPI_MODE_RDWR;
	struct file *f = new_file(name, how);
	char number[32];
	MPI_Info info;
	MPI_File fh;

	amode |= flags & O_CREAT ? MPI_MODE_CREATE : 0;
	amode |= flags & O_EXCL ? MPI_MODE_EXCL : 0;
	MPI_Info_create(&info);
	if (opt.factor) {
		snprintf(number, sizeof(number), "%ld", opt.factor);
		MPI_Info_set(info, "striping_factor", number);
	}
	if (opt.unit) {
		snprintf(number, sizeof(number), "%ld", opt.unit);
		MPI_Info_set(info, "striping_unit", number);
	}
	if (how == PIECES) {
		/* On PVFS, and on other file systems, where ROMIO would read and write the gaps. */
		MPI_Info_set(info, "romio_pvfs_listio_read", "disable");
		MPI_Info_set(info, "romio_pvfs_listio_write", "disable");
		MPI_Info_set(info, "romio_ds_read", "disable");
		MPI_Info_set(info, "romio_ds_write", "disable");
	}
	must(MPI_File_open(all ? MPI_COMM_WORLD : MPI_COMM_SELF, path_of(opt.dir, name), amode, info,
			   &fh), "open", name);
	MPI_Info_free(&info);
	f->mpi = fh;
	return f;
}

static void mpi_close(struct file *f)
{
	MPI_File fh = f->mpi;

	must(MPI_File_close(&fh), "close", f->name);
	free(f);
}

static void moved(const struct file *f, const char *what, int rc, MPI_Status *st, size_t n)
{
	int got;

	must(rc, what, f->name);
	MPI_Get_count(st, MPI_BYTE, &got);
	if ((size_t)got != n)
		fail("%s %s: short", what, f->name);
}

static void mpi_write(struct file *f, const void *buf, size_t n, off_t off)
{
	MPI_Status st;
	int rc = MPI_File_write_at(f->mpi, off, buf, n, MPI_BYTE, &st);

	moved(f, "write", rc, &st, n);
}

static void mpi_read(struct file *f, void *buf, size_t n, off_t off)
{
	MPI_Status st;
	int rc = MPI_File_read_at(f->mpi, off, buf, n, MPI_BYTE, &st);

	moved(f, "read", rc, &st, n);
}

static void mpi_sync(struct file *f)
{
	must(MPI_File_sync(f->mpi), "sync", f->name);
}

static void mpi_view(struct file *f, const struct tile *t)
{
	MPI_Datatype element, type;

	f->tile = t;
	MPI_Type_contiguous(t->element, MPI_BYTE, &element);
	MPI_Type_commit(&element);
	MPI_Type_create_subarray(2, t->array, t->sub, t->start, MPI_ORDER_C, element, &type);
	MPI_Type_commit(&type);
	must(MPI_File_set_view(f->mpi, t->header, element, type, "native", MPI_INFO_NULL),
	     "set the view of", f->name);
	MPI_Type_free(&type);
	MPI_Type_free(&element);
}

static void mpi_tile_write(struct file *f, const void *buf)
{
	size_t n = f->tile->sub[0] * row_length(f->tile);
	MPI_Status st;
	int rc;

	if (f->how == COLLECTIVE)
		rc = MPI_File_write_at_all(f->mpi, 0, buf, n, MPI_BYTE, &st);
	else
		rc = MPI_File_write_at(f->mpi, 0, buf, n, MPI_BYTE, &st);
	moved(f, "write", rc, &st, n);
}

static void mpi_tile_read(struct file *f, void *buf)
{
	size_t n = f->tile->sub[0] * row_length(f->tile);
	MPI_Status st;
	int rc;

	if (f->how == COLLECTIVE)
		rc = MPI_File_read_at_all(f->mpi, 0, buf, n, MPI_BYTE, &st);
	else
		rc = MPI_File_read_at(f->mpi, 0, buf, n, MPI_BYTE, &st);
	moved(f, "read", rc, &st, n);
}

static off_t mpi_size(const char *name)
{
	struct file *f = mpi_open(name, O_RDONLY, false, LIST);
	MPI_Offset n;

	must(MPI_File_get_size(f->mpi, &n), "size of", name);
	mpi_close(f);
	return n;
}

static void mpi_remove(const char *name)
{
	must(MPI_File_delete(path_of(opt.dir, name), MPI_INFO_NULL), "delete", name);
}

static const struct api *directories(void)
{
	return names_volume(opt.dir) ? &api_lib : &api_posix;
}

static void mpi_mkdir(const char *name)
{
	directories()->begin();
	directories()->mkdir(name);
	directories()->end();
}

static void mpi_rmdir(const char *name)
{
	directories()->begin();
	directories()->rmdir(name);
	directories()->end();
}

static long mpi_messages(void)
{
	return -1;
}

const struct api api_mpi = {
	.name = "mpi",
	.can = { [LIST] = true, [PIECES] = true, [COLLECTIVE] = true },
	.begin = mpi_begin,
	.end = mpi_end,
	.open = mpi_open,
	.close = mpi_close,
	.write = mpi_write,
	.read = mpi_read,
	.sync = mpi_sync,
	.view = mpi_view,
	.tile_write = mpi_tile_write,
	.tile_read = mpi_tile_read,
	.size = mpi_size,
	.remove = mpi_remove,
	.mkdir = mpi_mkdir,
	.rmdir = mpi_rmdir,
	.messages = mpi_messages,
};
