// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_space_test.c - the disk under the manager fills up: with its own records, and with somebody
 * else's bytes down to the last one. Needs to mount a small tmpfs; skipped where that is not
 * allowed.
 */
#include "mgr_head_fixture.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

static char small[] = "/tmp/pvfs-mgr-small-XXXXXX";

static bool mounted;

static int setup_small(void **state)
{
	assert_non_null(mkdtemp(small));
	/* A mount name space of our own: nothing to clean up. */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", small, "tmpfs", 0, "size=56m"))
		return 0;
	setenv("TMPDIR", small, 1);
	mounted = true;
	return 0;
}

static int teardown_small(void **state)
{
	if (mounted)
		umount(small);
	rmdir(small);
	return 0;
}

static const char *in_small(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s%s", small, name);
	return path;
}

static void eat_all(int fd)
{
	static char block[65536];
	size_t n;

	for (n = sizeof(block); n >= 1; n /= 2)
		while (write(fd, block, n) == (ssize_t)n)
			;
}

static void fills_itself(void **state)
{
	struct fx_client c;
	struct fx *f;
	char name[256];
	u32 i, made = 0;
	int err = 0;

	if (!mounted)
		skip();
	f = fx_new();
	fx_client_init(&c, f, 1);
	assert_int_equal(mgr_core_start(f->m), 0);
	memset(name, 'n', 240);
	for (i = 0; i < 200000; i++) {
		snprintf(name + 200, sizeof(name) - 200, "%u", i);
		err = do_mkfile(&c, fx_root, name, 0644, NULL);
		if (err)
			break;
		made++;
	}
	print_message("# %u files fit\n", made);
	assert_int_equal(err, -ENOSPC);
	assert_true(made > 1000);
	assert_int_equal(do_lookup(&c, fx_root, name, NULL), -ENOENT);
	/* What was made is all there; deleting works, to the end, and then there is room again. */
	fx_check(f);
	print_message("# %llu KiB free when full\n", (unsigned long long)f->m->space_avail >> 10);
	for (i = 0; i < made; i++) {
		snprintf(name + 200, sizeof(name) - 200, "%u", i);
		err = do_unlink(&c, fx_root, name);
		if (err)
			print_message("# unlink %u: %llu KiB free\n", i,
				      (unsigned long long)f->m->space_avail >> 10);
		assert_int_equal(err, 0);
	}
	print_message("# %llu KiB free when empty\n", (unsigned long long)f->m->space_avail >> 10);
	for (i = 0; i < 100; i++) {
		err = do_mkdir(&c, fx_root, "d", 0755, NULL);
		if (err != -ENOSPC)
			break;
		usleep(50000);
	}
	assert_int_equal(err, 0);
	mgr_core_stop(f->m);
	fx_free(f);
}

static void filled_by_others(void **state)
{
	struct fx_client c;
	struct fx *f;
	char name[32], target[4001];
	u32 i, made = 0, refused = 0;
	int err = 0, fd;

	if (!mounted)
		skip();
	f = fx_new();
	f->conf.durability = PVFS_DURABLE_SYNC;
	fx_reopen(f);
	fx_client_init(&c, f, 1);
	assert_int_equal(do_mkdir(&c, fx_root, "before", 0755, NULL), 0);
	memset(target, 't', sizeof(target) - 1);
	target[sizeof(target) - 1] = 0;
	/* The watch is blind, so that the log hits the wall. */
	f->m->space_checked = mgr_mono_ms() + 10000000;
	fd = open(in_small("/filler"), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	eat_all(fd);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		/* A checkpoint may have given some back. */
		eat_all(fd);
		err = do_symlink(&c, fx_root, name, target, NULL);
		made += !err;
		refused += !!err;
		if (err)
			assert_true(err == -ENOSPC || err == -EIO || err == -EAGAIN);
		if (refused > 3)
			break;
		/* Those that were refused have no number: the ones made are consecutive. */
		i -= !!err;
	}
	print_message("# %u made, then refused with %s\n", made, strerror(-err));
	assert_true(refused > 0);
	/* Room again: it goes on by itself, and nothing that was acknowledged is missing. */
	assert_int_equal(ftruncate(fd, 0), 0);
	for (i = 0; i < 100; i++) {
		err = do_mkdir(&c, fx_root, "after", 0755, NULL);
		if (!err)
			break;
		usleep(50000);
	}
	assert_int_equal(err, 0);
	assert_int_equal(do_lookup(&c, fx_root, "before", NULL), 0);
	for (i = 0; i < made; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(do_lookup(&c, fx_root, name, NULL), 0);
	}
	close(fd);
	unlink(in_small("/filler"));
	fx_free(f);
}

/* Heads that are files: what was answered is there, and what was not is as before. */
static void heads_fill_it(void **state)
{
	static u8 bytes[PVFS_STUFF_MAX];
	struct pvfs_layout l = small_units;
	bool done = false;
	struct hf h, first;
	u32 made = 0, last;
	char name[32];
	struct hs *t;
	int err, fd;

	if (!mounted)
		skip();
	t = hs_new(PVFS_STUFF_FILE);
	l.stuff_max = PVFS_STUFF_MAX;
	assert_int_equal(set_layout(&t->a, fx_root, l), 0);
	first = make(&t->a, "first", 0);
	put(&t->a, &first, 0, 0, bytes, sizeof(bytes));
	memset(bytes, 1, sizeof(bytes));
	do {
		snprintf(name, sizeof(name), "f%u", made);
		err = do_create(&t->a, fx_root, name, MKRW, 0644, &h.at);
		if (err)
			break;
		h = open_it(&t->a, h.at.fid, PVFS_O_WRITE);
		err = head_write(&t->a, &h, 0, 0, bytes, sizeof(bytes), &done);
		made += !err;
	} while (!err && made < 10000);
	print_message("# %u heads fit\n", made);
	assert_int_equal(err, -ENOSPC);
	assert_true(made > 100 && made < 10000);
	assert_int_equal(head_write(&t->a, &first, 0, 0, bytes, 1, &done), -ENOSPC);
	/* The watch is blind, so that files hit the wall. */
	t->f->m->space_checked = mgr_mono_ms() + 10000000;
	t->f->m->space_avail = ~0ull >> 8;
	fd = open(in_small("/filler"), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	eat_all(fd);
	last = hs_files(t);
	assert_int_equal(head_write(&t->a, &first, 0, 0, bytes, 1, &done), -ENOSPC);
	assert_int_equal(hs_files(t), last);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	memset(bytes, 0, sizeof(bytes));
	is(&t->a, &first, bytes, sizeof(bytes));
	put(&t->a, &first, 0, 0, "x", 1);
	t->f->m->space_checked = 0;
	hs_clean(t);
	unlink(in_small("/filler"));
	fx_free(t->f);
	free(t);
}

/* @blind: the log hits the wall, and the database may have to be recovered. */
static bool full_error(int err, bool blind)
{
	return err == -ENOSPC || (blind && (err == -EIO || err == -EAGAIN));
}

/*
 * A file that does not fit any more, and no room to write down that it is striped: it is whole, and
 * goes to the iods when there is room.
 */
static void unstuffed_when_full(void **state)
{
	static const u8 x[100];
	enum pvfs_stuff_store store;
	int err, fd, blind;
	struct pvfs_attr at;
	struct hs *t;
	struct hf h;
	bool done, moved;

	if (!mounted)
		skip();
	for (store = PVFS_STUFF_DB; store <= PVFS_STUFF_FILE; store++) {
		t = hs_new(store);
		t->f->conf.durability = PVFS_DURABLE_SYNC;
		fx_reopen(t->f);
		for (blind = 0; blind < 2; blind++) {
			h = make(&t->a, blind ? "blind" : "seeing", 0);
			put(&t->a, &h, 0, 0, t->bytes, STUFF - 10);
			fd = open(in_small("/filler"), O_WRONLY | O_CREAT, 0600);
			assert_true(fd >= 0);
			/* What the log has in reserve is used up, too. */
			do {
				eat_all(fd);
				t->f->m->space_checked = blind ? mgr_mono_ms() + 10000000 : 0;
				t->f->m->space_avail = blind ? ~0ull >> 8 : 0;
				err = head_write(&t->a, &h, 0, 0, t->bytes, STUFF - 10, &done);
			} while (!err);
			assert_true(full_error(err, blind));
			eat_all(fd);
			err = head_write(&t->a, &h, 0, STUFF - 10, x, sizeof(x), &done);
			/* Files need room where the log has some left in its own. */
			moved = blind && store == PVFS_STUFF_FILE && !err;
			assert_true(moved || full_error(err, blind));
			if (!moved)
				assert_true(full_error(do_truncate(&t->a, h.at.fid, 10 * STUFF, NULL, &at),
						       blind));
			assert_int_equal(ftruncate(fd, 0), 0);
			close(fd);
			unlink(in_small("/filler"));
			t->f->m->space_checked = 0;
			fx_reopen(t->f);
			h = open_it(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE);
			if (!moved)
				is(&t->a, &h, t->bytes, STUFF - 10);
			assert_int_equal(head_write(&t->a, &h, 0, STUFF - 10, x, sizeof(x), &done), 0);
			assert_false(done);
			is_striped(t, &h.at, t->bytes, STUFF - 10);
		}
		hs_clean(t);
		fx_free(t->f);
		free(t);
	}
}

static bool fill_file(struct hs *t, struct hf *h, const u8 *bytes)
{
	bool done;
	int err = head_write(&t->a, h, 0, 0, bytes, PVFS_STUFF_MAX, &done);

	assert_true(!err || err == -ENOSPC);
	return !err;
}

/* Files of 64 KiB, as long as there is more room than that. Return: whether the disk took one. */
static bool fill_to(struct hs *t, u64 left, const u8 *bytes)
{
	static u32 n;
	char name[32];
	struct hf h;
	bool fits;

	do {
		t->f->m->space_checked = 0;
		if (mgr_space_left(t->f->m) < left)
			return true;
		snprintf(name, sizeof(name), "fill%u", n++);
		if (do_create(&t->a, fx_root, name, MKRW, 0644, &h.at))
			return false;
		h = open_it(&t->a, h.at.fid, PVFS_O_WRITE);
		fits = fill_file(t, &h, bytes);
	} while (fits);
	return false;
}

/* Who keeps a draft back was told that its bytes are written: there is room for them, whatever others write. */
static void drafts_have_room(void **state)
{
	static u8 bytes[PVFS_STUFF_MAX];
	struct pvfs_layout l = small_units;
	struct pvfs_flush_rep rp;
	enum pvfs_stuff_store store;
	struct hf draft[64], h;
	struct fx_client c;
	struct hs *t;
	char name[32];
	u32 i, n;

	if (!mounted)
		skip();
	l.stuff_max = PVFS_STUFF_MAX;
	for (store = PVFS_STUFF_DB; store <= PVFS_STUFF_FILE; store++) {
		t = hs_new(store);
		fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
		assert_int_equal(set_layout(&t->a, fx_root, l), 0);
		assert_true(fill_to(t, 6 << 20, bytes));
		for (n = 0; n < 64; n++) {
			snprintf(name, sizeof(name), "draft%u", n);
			t->f->m->space_checked = 0;
			draft[n] = make(&c, name, PVFS_O_DRAFT);
			if (!(draft[n].at.flags & PVFS_AF_DRAFT))
				break;
		}
		print_message("# %u drafts\n", n);
		assert_true(n > 4 && n < 40);
		assert_false(fill_to(t, 0, bytes));
		memset(bytes, 1, sizeof(bytes));
		for (i = 0; i < n; i++) {
			assert_int_equal(flush(&c, &draft[i], (struct pvfs_flush_req){ }, bytes, sizeof(bytes), &rp), 0);
			assert_true(rp.done);
		}
		/* What is left of their room is anybody's. */
		assert_int_equal(atomic_load(&t->f->m->leases.drafts), 0);
		t->f->m->space_checked = 0;
		assert_int_equal(do_mkfile(&t->a, fx_root, "more", 0644, NULL), 0);
		fx_reopen(t->f);
		for (i = 0; i < n; i++) {
			h = open_it(&t->a, draft[i].at.fid, PVFS_O_READ);
			is(&t->a, &h, bytes, sizeof(bytes));
		}
		hs_clean(t);
		fx_free(t->f);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_itself),
		cmocka_unit_test(filled_by_others),
		cmocka_unit_test(heads_fill_it),
		cmocka_unit_test(unstuffed_when_full),
		cmocka_unit_test(drafts_have_room),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup_small, teardown_small);
}
