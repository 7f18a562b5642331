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
#include <time.h>
#include <unistd.h>

/*
 * Others take from the file system too, daemons like this one among them: what is granted without
 * asking is little beside the reserve, and for a moment only.
 */
#define CREDIT_SHARE 64u	/* of what is left, or of a quarter of the reserve */
#define CREDIT_MS 100u
#define SHARE_MAX 16u		/* of a file system, that is the reserve at most */
#define SLACK_SHARE 64u		/* of a file system, that nobody is told of, */
#define SLACK_MAX (1ull << 30)	/* or so much */
#define EXTENTS 32u

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

int iod_room_init(struct iod_room *r, int dfd, u64 reserve)
{
	struct statvfs sv;
	u64 size;

	if (fstatvfs(dfd, &sv))
		return -errno;
	size = (u64)sv.f_blocks * sv.f_frsize;
	r->dfd = dfd;
	r->reserve = min(reserve, size / SHARE_MAX);
	r->slack = min(size / SLACK_SHARE, SLACK_MAX);
	r->endless = !size;
	atomic_init(&r->credit, 0);
	atomic_init(&r->beyond, 0);
	atomic_init(&r->asked, 0);
	return 0;
}

u64 iod_room_left(const struct iod_room *r, const struct statvfs *sv)
{
	u64 keep = sv->f_frsize ? (r->reserve + sv->f_frsize - 1) / sv->f_frsize : 0;

	return sv->f_bavail > keep ? sv->f_bavail - keep : 0;
}

/* Where there is no FIEMAP, what fallocate(2) has got counts as missing. Return: bytes of holes. */
static u64 holes(int fd, u64 off, u64 len)
{
	u64 at = off, end = off + len, ret = 0;
	off_t hole, data;

	while (at < end) {
		hole = lseek(fd, at, SEEK_HOLE);
		if (hole < 0 || (u64)hole >= end)
			return hole < 0 ? ret + (end - at) : ret;
		data = lseek(fd, hole, SEEK_DATA);
		at = data < 0 || (u64)data > end ? end : (u64)data;
		ret += at - hole;
	}
	return ret;
}

/* What of the range the file has no space of its own for, bytes. Shared extents are written anew. */
static u64 missing(int fd, u64 off, u64 len)
{
	u8 mem[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)] __attribute__((aligned(8)));
	struct fiemap *map = (struct fiemap *)mem;
	const struct fiemap_extent *e = map->fm_extents;
	u64 at = off, end = off + len, ret = 0, stop;
	u32 i;

	if (fd < 0)
		return len;
	while (at < end) {
		memset(map, 0, sizeof(*map));
		map->fm_start = at;
		map->fm_length = end - at;
		map->fm_extent_count = EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, map))
			return ret + holes(fd, at, end - at);
		for (i = 0; i < map->fm_mapped_extents && at < end; i++) {
			if (e[i].fe_logical > at)
				ret += min(e[i].fe_logical, end) - at;
			stop = min(e[i].fe_logical + e[i].fe_length, end);
			if (stop <= at)
				continue;
			if (e[i].fe_flags & FIEMAP_EXTENT_SHARED)
				ret += stop - max(at, (u64)e[i].fe_logical);
			at = stop;
		}
		/* Nothing behind them. */
		if (i < EXTENTS || !map->fm_mapped_extents)
			return at < end ? ret + (end - at) : ret;
	}
	return ret;
}

/* Is what the file system said still to be gone by? */
static bool fresh(struct iod_room *r, u64 now)
{
	return now - atomic_load_explicit(&r->asked, memory_order_relaxed) < CREDIT_MS;
}

/* Asks the file system, for @len bytes. Return: false: it does not say; else what is left, with them, in *@ret. */
static bool ask(struct iod_room *r, u64 now, u64 len, u64 *ret)
{
	struct statvfs sv;
	u64 left, most;

	if (fstatvfs(r->dfd, &sv))
		return false;
	left = iod_room_left(r, &sv) * sv.f_frsize;
	most = min(left, r->reserve / 4) / CREDIT_SHARE;
	/* Of plenty more, as the reserve is far. */
	if (left > 64 * r->reserve)
		most = r->reserve;
	atomic_store(&r->beyond, left > most + len ? left - most - len : 0);
	atomic_store(&r->credit, (s64)most);
	atomic_store_explicit(&r->asked, now, memory_order_relaxed);
	*ret = left;
	return true;
}

int iod_room_take(struct iod_room *r, int fd, u64 off, u64 len)
{
	u64 now, left;

	if (!r->reserve) {
		/* Nothing is refused here, but it is known how much was taken since. */
		atomic_fetch_sub(&r->credit, (s64)len);
		return 0;
	}
	now = now_ms();
	/* More than that is never granted. */
	if (len <= r->reserve && fresh(r, now) && atomic_fetch_sub(&r->credit, (s64)len) >= (s64)len)
		return 0;
	/* Not to be told is no reason to refuse: the write itself will tell. */
	if (!ask(r, now, len, &left))
		return 0;
	if (left >= len || left >= missing(fd, off, len))
		return 0;
	atomic_store(&r->credit, 0);
	pvfs_log_limited(PVFS_LOG_WARNING,
			 "store: full: the last %llu MiB of its file system are left free ('iod.reserve')",
			 (unsigned long long)r->reserve >> 20);
	return -ENOSPC;
}

u64 iod_room_told(struct iod_room *r)
{
	u64 now = now_ms(), left;
	s64 told;

	if (r->endless || (!fresh(r, now) && !ask(r, now, 0, &left)))
		return UINT64_MAX;
	/* Credit is less than none where somebody is about to ask, and without a reserve. */
	told = (s64)atomic_load(&r->beyond) + atomic_load(&r->credit) - (s64)r->slack;
	return max(told, (s64)0);
}
