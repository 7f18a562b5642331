// SPDX-License-Identifier: GPL-2.0
/*
 * iod_room_test.c - how much a store takes in: what is new ends at the reserve, what is there can be
 * written. On a small tmpfs, and for what only other file systems have, below /tmp.
 */
#include "iod/room.h"
#include "iod/store.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1u << 20)

static char dir[64];
static bool mounted;

static int setup(void **state)
{
	strcpy(dir, "/tmp/pvfs-room-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	mounted = !mount("none", dir, "tmpfs", 0, "size=64m");
	if (!mounted)
		print_message("# can't mount a small tmpfs here\n");
	return 0;
}

static int teardown(void **state)
{
	if (mounted)
		umount2(dir, MNT_DETACH);
	return rmdir(dir);
}

static ssize_t put(struct iod_store *s, struct iod_file *f, u64 off)
{
	static char block[MIB];
	struct iovec iov = { .iov_base = block, .iov_len = sizeof(block) };

	return s->ops->pwritev(s, f, &iov, 1, off);
}

static u64 free_bytes(void)
{
	struct statvfs sv;

	assert_int_equal(statvfs(dir, &sv), 0);
	return (u64)sv.f_bavail * sv.f_frsize;
}

/*
 * What clients are told: no more than there is but for the reserve and the slack, and about that. @all: of the file system
 * they have no part in. Return: it.
 */
static u64 told(struct iod_store *s, u64 all)
{
	u64 there = free_bytes(), is = s->ops->room(s);

	there = there > all ? there - all : 0;
	assert_in_range(is, there > MIB / 4 ? there - MIB / 4 : 0, there);
	return is;
}

static void filled_to_the_reserve(void **state)
{
	struct pvfs_fid fid = { .ino = 1, .gen = 1 }, other = { .ino = 2, .gen = 1 };
	struct pvfs_iod_statfs_rep sf;
	struct iod_file f, g, draft;
	static u8 bytes[2 * MIB];
	struct iod_store *s;
	u64 n, reserve = 4 * MIB, full = 0, left;
	ssize_t r;

	if (!mounted)
		skip();
	/* A sixteenth of it, that is, however much is asked for. */
	assert_int_equal(iod_store_posix_open(dir, 1024ull * MIB, &s), 0);
	assert_int_equal(s->ops->open(s, &fid, true, &f), 0);
	/* Every 64th of it they are not told of: when there is nothing any more, there is that. */
	left = told(s, reserve + MIB);
	assert_in_range(left, 58 * MIB, 59 * MIB);
	for (n = 0; (r = put(s, &f, n * MIB)) == MIB; n++) {
		assert_true(n < 64);
		assert_true(left >= MIB || full++ < 2);
		left = told(s, reserve + MIB);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(full, 1);
	assert_int_equal(told(s, reserve + MIB), 0);
	assert_in_range(free_bytes(), reserve, reserve + MIB);
	assert_int_equal(s->ops->statfs(s, &sf), 0);
	assert_true(sf.bavail * sf.bsize < MIB);
	/* Over what is there, to the last byte; not beyond. */
	assert_int_equal(put(s, &f, 0), MIB);
	assert_int_equal(put(s, &f, (n - 1) * MIB), MIB);
	assert_int_equal(put(s, &f, (n - 1) * MIB + MIB / 2), -ENOSPC);
	/* Nor by other ways. */
	assert_int_equal(s->ops->open(s, &other, true, &g), 0);
	assert_int_equal(put(s, &g, 0), -ENOSPC);
	assert_int_equal(s->ops->space(s, &g, 0, 0, MIB), -ENOSPC);
	assert_int_equal(s->ops->space(s, &g, PVFS_SP_ZERO, 0, MIB), -ENOSPC);
	assert_int_equal(s->ops->copy(s, &f, 0, &g, 0, MIB), -ENOSPC);
	assert_in_range(free_bytes(), reserve - MIB / 4, reserve + MIB);
	/* What makes room does, and it can be had again. */
	assert_int_equal(s->ops->space(s, &f, PVFS_SP_PUNCH | PVFS_SP_KEEP_SIZE, 0, 2 * MIB), 0);
	assert_int_equal(put(s, &g, 0), MIB);
	assert_int_equal(s->ops->truncate(s, &f, 0), 0);
	for (n = 0; n < 40; n++)
		assert_int_equal(put(s, &f, n * MIB), MIB);
	assert_true(told(s, reserve + MIB) > 10 * MIB);
	/* A draft, when it is full again. */
	for (; (r = put(s, &f, n * MIB)) == MIB; n++)
		assert_true(n < 64);
	fid.ino = 3;
	assert_int_equal(s->ops->draft(s, &fid, bytes, sizeof(bytes), &draft), -ENOSPC);
	s->ops->close(s, &f);
	s->ops->close(s, &g);
	fid.ino = 1;
	assert_int_equal(s->ops->remove(s, &fid), 0);
	assert_int_equal(s->ops->remove(s, &other), 0);
	s->ops->free(s);
}

/* Without a reserve it is the file system that says so. */
static void without_reserve(void **state)
{
	struct pvfs_fid fid = { .ino = 9, .gen = 1 };
	struct iod_store *s;
	struct iod_file f;
	ssize_t r;
	u64 n;

	if (!mounted)
		skip();
	assert_int_equal(iod_store_posix_open(dir, 0, &s), 0);
	assert_int_equal(s->ops->open(s, &fid, true, &f), 0);
	for (n = 0; (r = put(s, &f, n * MIB)) > 0 && n < 64; n++)
		told(s, MIB);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(told(s, MIB), 0);
	assert_true(free_bytes() < MIB);
	s->ops->close(s, &f);
	assert_int_equal(s->ops->remove(s, &fid), 0);
	s->ops->free(s);
}

/* Others take from it, too; and it is not asked for each write. */
static void others_take(void **state)
{
	struct pvfs_fid fid = { .ino = 4, .gen = 1 };
	u64 off, is;
	struct iod_store *s, *null;
	struct iod_file f;
	struct iovec iov;
	char block[512];
	char name[96];
	int fd, n;

	if (!mounted)
		skip();
	memset(block, 1, sizeof(block));
	iov = (struct iovec){ .iov_base = block, .iov_len = sizeof(block) };
	assert_int_equal(iod_store_posix_open(dir, 1024ull * MIB, &s), 0);
	assert_int_equal(s->ops->open(s, &fid, true, &f), 0);
	/* Small writes of the same store are known at once, but for what a block takes beside them. */
	for (off = 0; off < 4 * MIB; off += sizeof(block)) {
		assert_int_equal(s->ops->pwritev(s, &f, &iov, 1, off), sizeof(block));
		is = s->ops->room(s);
		assert_true(is <= free_bytes() - 5 * MIB + 4096);
	}
	snprintf(name, sizeof(name), "%s/other", dir);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, 56 * MIB), 0);
	for (n = 0; s->ops->room(s); n++) {
		assert_true(n < 1000);
		usleep(10000);
	}
	assert_int_equal(unlink(name) | close(fd), 0);
	for (n = 0; s->ops->room(s) < 50 * MIB; n++) {
		assert_true(n < 1000);
		usleep(10000);
	}
	told(s, 5 * MIB);
	s->ops->close(s, &f);
	assert_int_equal(s->ops->remove(s, &fid), 0);
	s->ops->free(s);
	assert_int_equal(iod_store_null_open(MIB, &null), 0);
	assert_null(null->ops->room);
	null->ops->free(null);
}

/* A file system without an end, or that does not say: nobody is to think that it is full. */
static void endless(void **state)
{
	struct iod_store *s;
	struct iod_file f;
	struct pvfs_fid fid = { .ino = 5, .gen = 1 };
	char sub[96];

	if (!mounted)
		skip();
	snprintf(sub, sizeof(sub), "%s/endless", dir);
	assert_int_equal(mkdir(sub, 0700) | mount("none", sub, "tmpfs", 0, "size=0"), 0);
	assert_int_equal(iod_store_posix_open(sub, 1024ull * MIB, &s), 0);
	assert_true(s->ops->room(s) == UINT64_MAX);
	assert_int_equal(s->ops->open(s, &fid, true, &f), 0);
	assert_int_equal(put(s, &f, 0), MIB);
	assert_true(s->ops->room(s) == UINT64_MAX);
	s->ops->close(s, &f);
	s->ops->free(s);
	assert_int_equal(umount(sub) | rmdir(sub), 0);
}

/* When nothing is left: what has blocks, or was promised some, is written. */
static void what_is_allocated(void **state)
{
	static char block[65536];
	char name[80];
	struct iod_room r;
	int top = open("/tmp", O_RDONLY | O_DIRECTORY), fd, i;

	snprintf(name, sizeof(name), "/tmp/pvfs-room-file-%d", (int)getpid());
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(top >= 0 && fd >= 0);
	unlink(name);
	assert_int_equal(iod_room_init(&r, top, MIB), 0);
	r.reserve = ~0ull >> 2;
	assert_int_equal(iod_room_take(&r, -1, 0, 1), -ENOSPC);
	assert_int_equal(iod_room_take(&r, fd, 0, 1), -ENOSPC);
	/* Every other block of 200, which no single look at the extents tells. */
	for (i = 0; i < 200; i += 2)
		assert_int_equal(pwrite(fd, block, 4096, i * 65536), 4096);
	for (i = 0; i < 200; i++)
		assert_int_equal(iod_room_take(&r, fd, i * 65536, 4096), i % 2 ? -ENOSPC : 0);
	assert_int_equal(iod_room_take(&r, fd, 0, 200 * 65536), -ENOSPC);
	for (i = 0; i < 200; i++)
		assert_int_equal(pwrite(fd, block, 65536, i * 65536), 65536);
	assert_int_equal(iod_room_take(&r, fd, 0, 200 * 65536), 0);
	assert_int_equal(iod_room_take(&r, fd, 4095, 65537), 0);
	assert_int_equal(iod_room_take(&r, fd, 199 * 65536, 65536 + 1), -ENOSPC);
	close(fd);
	close(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filled_to_the_reserve),
		cmocka_unit_test(without_reserve),
		cmocka_unit_test(others_take),
		cmocka_unit_test(endless),
		cmocka_unit_test(what_is_allocated),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_room", tests, setup, teardown);
}
