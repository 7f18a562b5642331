// SPDX-License-Identifier: GPL-2.0
/*
 * room.c - how much a store takes in, see room.h. While much is free the file system is asked once for
 * many writes; near the reserve, for each.
 */
#include "room.h"
#include "../common/log.h"
#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CREDIT_MAX ((s64)256 << 20)
#define SHARE_MAX 16u		/* of a file system, that is the reserve at most */
#define EXTENTS 32u

int iod_room_init(struct iod_room *r, int dfd, u64 reserve)
{
	struct statvfs sv;

	if (fstatvfs(dfd, &sv))
		return -errno;
	r->dfd = dfd;
	r->reserve = min(reserve, (u64)sv.f_blocks * sv.f_frsize / SHARE_MAX);
	atomic_init(&r->credit, 0);
	return 0;
}

u64 iod_room_left(const struct iod_room *r, const struct statvfs *sv)
{
	u64 keep = sv->f_frsize ? (r->reserve + sv->f_frsize - 1) / sv->f_frsize : 0;

	return sv->f_bavail > keep ? sv->f_bavail - keep : 0;
}

/* Where there is no FIEMAP, what fallocate(2) has got counts as a hole. Return: no hole in the range? */
static bool no_hole(int fd, u64 off, u64 len)
{
	off_t at = lseek(fd, off, SEEK_HOLE);

	return at >= 0 && (u64)at >= off + len;
}

/* Has the file space for all of the range? */
static bool allocated(int fd, u64 off, u64 len)
{
	u8 mem[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)] __attribute__((aligned(8)));
	struct fiemap *map = (struct fiemap *)mem;
	const struct fiemap_extent *e = map->fm_extents;
	u64 at = off;
	u32 i;

	if (fd < 0)
		return false;
	while (at < off + len) {
		memset(map, 0, sizeof(*map));
		map->fm_start = at;
		map->fm_length = off + len - at;
		map->fm_extent_count = EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, map))
			return no_hole(fd, off, len);
		for (i = 0; i < map->fm_mapped_extents && e[i].fe_logical <= at; i++)
			at = e[i].fe_logical + e[i].fe_length;
		if (i < map->fm_mapped_extents || !i)
			return at >= off + len;
	}
	return true;
}

int iod_room_take(struct iod_room *r, int fd, u64 off, u64 len)
{
	struct statvfs sv;
	s64 left;

	if (!r->reserve || atomic_fetch_sub(&r->credit, (s64)len) >= (s64)len)
		return 0;
	/* Not to be asked is no reason to refuse: the write itself will tell. */
	if (fstatvfs(r->dfd, &sv))
		return 0;
	left = iod_room_left(r, &sv) * sv.f_frsize;
	if (left >= (s64)len) {
		/* Half, as others take from it, too. */
		atomic_store(&r->credit, min((left - (s64)len) / 2, CREDIT_MAX));
		return 0;
	}
	atomic_store(&r->credit, 0);
	if (allocated(fd, off, len))
		return 0;
	pvfs_log_limited(PVFS_LOG_WARNING,
			 "store: full: the last %llu MiB of its file system are left free ('iod.reserve')",
			 (unsigned long long)r->reserve >> 20);
	return -ENOSPC;
}
