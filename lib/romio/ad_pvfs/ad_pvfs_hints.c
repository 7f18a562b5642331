// SPDX-License-Identifier: LGPL-2.1
/*
 * ad_pvfs_hints.c - hints:
 *
 *   striping_factor, striping_unit, start_iodevice   of a file that is made: how many I/O daemons,
 *                        bytes, index of the first daemon. Of an open file they say what it has
 *   romio_pvfs_listio_read, romio_pvfs_listio_write  "enable", the default, or "disable": a request
 *                        for each contiguous piece
 *   romio_pvfs_stuff     "disable": a file that is made is striped from its first byte on; else the
 *                        manager keeps it while it is small, as others in its directory
 *   romio_pvfs_debug     "enable": say which hints are not taken
 *
 * What is no such value is left out, as MPI wants it.
 */
#include "ad_pvfs.h"
#include <limits.h>
#include <stdarg.h>

/* Into @value, of MPI_MAX_INFO_VAL + 1 bytes. */
static int get(MPI_Info info, const char *key, char *value)
{
	int there = 0;

	if (info != MPI_INFO_NULL)
		ADIOI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there);
	return there;
}

static int enabled(MPI_Info info, const char *key, int otherwise)
{
	char value[MPI_MAX_INFO_VAL + 1];

	if (!get(info, key, value))
		return otherwise;
	return !strcmp(value, "enable") || !strcmp(value, "true");
}

void ADIOI_PVFS_Warn(ADIO_File fd, const char *fmt, ...)
{
	va_list ap;
	int rank;

	MPI_Comm_rank(fd->comm, &rank);
	if (rank || !enabled(fd->info, "romio_pvfs_debug", 0))
		return;
	fprintf(stderr, "pvfs: %s: ", fd->filename);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

/* A number from @least to @most, or @otherwise. */
static long number(ADIO_File fd, const char *key, long least, long most, long otherwise)
{
	char value[MPI_MAX_INFO_VAL + 1], *end;
	long n;

	if (!get(fd->info, key, value))
		return otherwise;
	errno = 0;
	n = strtol(value, &end, 10);
	if (!errno && end != value && !*end && n >= least && n <= most)
		return n;
	ADIOI_PVFS_Warn(fd, "hint %s = \"%s\" is not taken: %ld to %ld", key, value, least, most);
	return otherwise;
}

int ADIOI_PVFS_Striping(ADIO_File fd, struct pvfs_fs *fs, const char *path, struct pvfs_striping *ret)
{
	struct pvfs_volinfo vol = { .niods = 1 };
	long factor, device, unit;
	int stuff;
	char *dir;

	pvfs_volinfo(fs, &vol);
	factor = number(fd, "striping_factor", 1, vol.niods, 0);
	device = number(fd, "start_iodevice", 0, vol.niods - 1, -1);
	unit = number(fd, "striping_unit", 4096, 1 << 30, 0);
	if (unit & (unit - 1)) {
		ADIOI_PVFS_Warn(fd, "hint striping_unit = %ld is not taken: no power of two", unit);
		unit = 0;
	}
	stuff = enabled(fd->info, "romio_pvfs_stuff", 1);
	if (!factor && device < 0 && !unit && stuff)
		return 0;
	/* What is not hinted at is as the directory says. */
	memset(ret, 0, sizeof(*ret));
	ret->base = PVFS_BASE_ANY;
	dir = strndup(path, strrchr(path, '/') - path + 1);
	if (dir)
		pvfs_getlayout(fs, dir, ret);
	free(dir);
	if (factor)
		ret->pcount = factor;
	if (device >= 0)
		ret->base = device;
	if (unit)
		ret->ssize = unit;
	if (!stuff)
		ret->stuff_max = PVFS_STUFF_NONE;
	return 1;
}

static void set_number(ADIO_File fd, const char *key, long n)
{
	char value[24];

	snprintf(value, sizeof(value), "%ld", n);
	ADIOI_Info_set(fd->info, key, value);
}

void ADIOI_PVFS_Striped(ADIO_File fd, const struct pvfs_striping *s)
{
	fd->hints->striping_factor = s->pcount;
	fd->hints->striping_unit = s->ssize;
	fd->hints->start_iodevice = s->base;
	set_number(fd, "striping_factor", s->pcount);
	set_number(fd, "striping_unit", s->ssize);
	set_number(fd, "start_iodevice", s->base);
}

void ADIOI_PVFS_SetInfo(ADIO_File fd, MPI_Info users_info, int *error_code)
{
	static const char *const at_open[] = {
		"striping_factor", "striping_unit", "start_iodevice", "romio_pvfs_stuff",
	};
	static const char *const any_time[] = {
		"romio_pvfs_listio_read", "romio_pvfs_listio_write", "romio_pvfs_debug",
	};
	char value[MPI_MAX_INFO_VAL + 1];
	size_t i;

	if (fd->info == MPI_INFO_NULL) {
		MPI_Info_create(&fd->info);
		ADIOI_Info_set(fd->info, "romio_pvfs_listio_read", "enable");
		ADIOI_Info_set(fd->info, "romio_pvfs_listio_write", "enable");
		for (i = 0; i < sizeof(at_open) / sizeof(*at_open); i++)
			if (get(users_info, at_open[i], value))
				ADIOI_Info_set(fd->info, at_open[i], value);
	}
	for (i = 0; i < sizeof(any_time) / sizeof(*any_time); i++)
		if (get(users_info, any_time[i], value))
			ADIOI_Info_set(fd->info, any_time[i], value);
	fd->hints->fs_hints.pvfs.listio_read = enabled(fd->info, "romio_pvfs_listio_read", 1);
	fd->hints->fs_hints.pvfs.listio_write = enabled(fd->info, "romio_pvfs_listio_write", 1);
	ADIOI_GEN_SetInfo(fd, users_info, error_code);
}
