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

static void filled_to_the_reserve(void **state)
{
	struct pvfs_fid fid = { .ino = 1, .gen = 1 }, other = { .ino = 2, .gen = 1 };
	struct pvfs_iod_statfs_rep sf;
	struct iod_file f, g, draft;
	static u8 bytes[2 * MIB];
	struct iod_store *s;
	u64 n, reserve = 4 * MIB;
	ssize_t r;

	if (!mounted)
		skip();
	/* A sixteenth of it, that is, however much is asked for. */
	assert_int_equal(iod_store_posix_open(dir, 1024ull * MIB, &s), 0);
	assert_int_equal(s->ops->open(s, &fid, true, &f), 0);
	for (n = 0; (r = put(s, &f, n * MIB)) == MIB; n++)
		assert_true(n < 64);
	assert_int_equal(r, -ENOSPC);
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
	/* A draft, when it is full again. */
	for (; (r = put(s, &f, n * MIB)) == MIB; n++)
		assert_true(n < 64);
	fid.ino = 3;
	assert_int_equal(s->ops->draft(s, &fid, bytes, sizeof(bytes), &draft), -ENOSPC);
	s->ops->close(s, &f);
	s->ops->close(s, &g);
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
		;
	assert_int_equal(r, -ENOSPC);
	assert_true(free_bytes() < MIB);
	s->ops->close(s, &f);
	assert_int_equal(s->ops->remove(s, &fid), 0);
	s->ops->free(s);
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
		cmocka_unit_test(what_is_allocated),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_room", tests, setup, teardown);
}
