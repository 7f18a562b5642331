// SPDX-License-Identifier: GPL-2.0
/*
 * iod_io.c - a real pvfs-iod on loopback, every operation of it, and what it must refuse and
 * survive.
 *
 * Usage: iod_io PATH/TO/pvfs-iod. Prints TAP.
 */
#include "iod_harness.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <cmocka.h>

#define MIB (1u << 20)
#define SESSION 0x1122334455667788ull
#define BUFFERS_MIB 16u
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static struct harness h;
static struct pvfs_peer *client, *mgr;
static u8 *buf, *buf2;

static struct pvfs_fid fid(u64 ino)
{
	return (struct pvfs_fid){ .ino = ino, .gen = 7 };
}

static struct pvfs_cap cap(u64 session, u64 ino, u32 rights)
{
	struct pvfs_fid f = fid(ino);
	struct pvfs_cap c;

	pvfs_cap_make(&h.server_key, h.uuid, session, &f, rights, &c);
	return c;
}

static int rd(u64 ino, u64 off, void *p, u32 len, u64 *ret_size)
{
	struct pvfs_fid f = fid(ino);
	struct pvfs_cap c = cap(SESSION, ino, PVFS_CAP_READ);

	return do_read(client, &f, &c, off, p, len, ret_size);
}

static int wr(u64 ino, u64 off, const void *p, u32 len)
{
	struct pvfs_fid f = fid(ino);
	struct pvfs_cap c = cap(SESSION, ino, PVFS_CAP_WRITE);

	return do_write(client, &f, &c, off, p, len, NULL);
}

static int trim(u64 ino, u64 size)
{
	struct pvfs_trim_req req = { .fid = fid(ino), .size = size };
	struct pvfs_trim_rep rep;

	return CALL(mgr, trim, TRIM, &req, &rep);
}

static struct pvfs_glimpse_rep glimpse(u64 ino)
{
	struct pvfs_glimpse_req req = { .fid = fid(ino) };
	struct pvfs_glimpse_rep rep = { 0 };

	assert_int_equal(CALL(mgr, glimpse, GLIMPSE, &req, &rep), 0);
	return rep;
}

static int rm(u64 ino)
{
	struct pvfs_remove_req req = { .fid = fid(ino) };
	struct pvfs_remove_rep rep;

	return CALL(mgr, remove, REMOVE, &req, &rep);
}

/* Bytes that tell where they belong. */
static void fill(u8 *p, u32 len, u64 ino, u64 off)
{
	u64 x = 0;
	u32 i;

	for (i = 0; i < len; i++) {
		if (!i || !((off + i) & 7))
			x = (ino * 0x9e3779b97f4a7c15ull) ^ (((off + i) >> 3) * 0xd6e8feb86659fd93ull);
		p[i] = x >> (8 * ((off + i) & 7));
	}
}

static void expect(u64 ino, u64 off, u32 len)
{
	assert_int_equal(rd(ino, off, buf2, len, NULL), len);
	fill(buf, len, ino, off);
	if (memcmp(buf, buf2, len))
		fail_msg("ino %llu offset %llu length %u: wrong bytes", (unsigned long long)ino,
			 (unsigned long long)off, len);
}

static void put(u64 ino, u64 off, u32 len)
{
	fill(buf, len, ino, off);
	assert_int_equal(wr(ino, off, buf, len), 0);
}

static sem_t done_sem;

static void io_done(struct pvfs_rpc *rpc)
{
	sem_post(&done_sem);
}

/* The first number behind @key in the daemon's statistics, after @section. */
static u64 stat_of(const char *section, const char *key)
{
	static char text[65536];
	struct iovec iov = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct pvfs_rpc rpc = { .op = PVFS_OP_STATS, .in = &iov, .nin = 1, .timeout_ms = 60000 };
	const char *p;

	assert_int_equal(pvfs_peer_call(mgr, &rpc), 0);
	text[rpc.in_len] = '\0';
	p = strstr(text, section);
	assert_non_null(p);
	p = strstr(p, key);
	assert_non_null(p);
	return strtoull(p + strlen(key), NULL, 10);
}

static void start(void)
{
	h.pid = spawn(&h, true, NULL, NULL);
	client = new_peer(&h, PVFS_ROLE_CLIENT, SESSION, 2);
	mgr = new_peer(&h, PVFS_ROLE_MGR, 0, 1);
}

static int stop(int sig)
{
	pvfs_peer_free(client);
	pvfs_peer_free(mgr);
	client = mgr = NULL;
	kill(h.pid, sig);
	return reap(h.pid);
}

/* ---------------------------------------------------------------- before it serves */

static bool log_has(const char *text)
{
	char path[128], line[2048];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", h.dir);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* What a sanitizer had to say. */
static void print_log(void)
{
	char path[128], line[2048];
	bool on = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", h.dir);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		on |= strstr(line, "ERROR: ") || strstr(line, "WARNING: ");
		if (on)
			print_message("# %s", line);
	}
	if (f)
		fclose(f);
	fail_msg("a sanitizer found something");
}

static void patch_mark(const char *from, const char *to)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "sed -i 's/%s/%s/' %s/pvfs.store", from, to, h.store);
	assert_int_equal(system(cmd), 0);
}

static void test_refusals(void **state)
{
	assert_int_equal(run(&h, NULL, NULL), 1);
	assert_true(log_has("is not a PVFS store"));
	assert_int_equal(run(&h, "--mkfs", NULL), 0);
	assert_int_equal(run(&h, "--mkfs", NULL), 1);
	assert_true(log_has("is a PVFS store already"));
	patch_mark("index 0", "index 1");
	assert_int_equal(run(&h, NULL, NULL), 1);
	assert_true(log_has("belongs to iod 1 of volume"));
	patch_mark("index 1", "index 0");
	patch_mark("volume 01", "volume ff");
	assert_int_equal(run(&h, NULL, NULL), 1);
	patch_mark("volume ff", "volume 01");
	patch_mark("format 2", "format 3");
	assert_int_equal(run(&h, NULL, NULL), 1);
	assert_true(log_has("newer than this program"));
	patch_mark("format 3", "format 2");
	assert_int_equal(run(&h, "--store", "what"), 2);
	assert_int_equal(run(&h, "more", NULL), 2);
	start();
	assert_int_equal(run(&h, NULL, NULL), 1);
	assert_true(log_has("is in use by another daemon"));
}

/* ---------------------------------------------------------------- operations */

static void test_sizes_and_holes(void **state)
{
	static const u32 lens[] = { 1, 511, 4096, 4097, 65535, 65536, 65537, 300000, MIB };
	u64 size = 99, off;
	size_t i;

	assert_int_equal(rd(10, 0, buf, 4096, &size), 0);
	assert_int_equal(size, 0);
	for (i = 0, off = 12345; i < ARRAY_SIZE(lens); i++) {
		put(10, off, lens[i]);
		expect(10, off, lens[i]);
		off += lens[i];
	}
	/* the end */
	assert_int_equal(rd(10, off - 10, buf2, 100, &size), 10);
	assert_true(size == off);
	assert_int_equal(rd(10, off, buf2, 100, &size), 0);
	assert_int_equal(rd(10, off + 5000, buf2, MIB, &size), 0);
	assert_true(size == off);
	assert_int_equal(rd(10, off - 70000, buf2, MIB, &size), 70000);
	assert_int_equal(rd(10, 0, buf2, 0, &size), 0);
	/* the hole in front */
	memset(buf, 0, 12345);
	assert_int_equal(rd(10, 0, buf2, 12345, NULL), 12345);
	assert_memory_equal(buf, buf2, 12345);
	/* over 4 GiB */
	put(11, (9ull << 30) + 1, 1000);
	expect(11, (9ull << 30) + 1, 1000);
	assert_true(glimpse(11).size == (9ull << 30) + 1001);
	assert_true(glimpse(11).blocks < 1000);
}

static void test_bad_requests(void **state)
{
	struct pvfs_fid f = fid(20);
	struct pvfs_cap r = cap(SESSION, 20, PVFS_CAP_READ), w = cap(SESSION, 20, PVFS_CAP_WRITE),
	c;
	struct pvfs_trim_req treq = { .fid = f };
	struct pvfs_trim_rep trep;
	struct pvfs_rpc rpc = { .op = PVFS_OP_READ, .body = "short", .body_len = 5,
				.timeout_ms = 60000 };

	assert_int_equal(do_read(client, &f, &r, 0, buf, MIB + 1, NULL), -EINVAL);
	assert_int_equal(do_read(client, &f, &r, UINT64_MAX, buf, 1, NULL), -EINVAL);
	assert_int_equal(do_read(client, &f, &r, PVFS_FILE_MAX, buf, 1, NULL), -EINVAL);
	assert_int_equal(do_write(client, &f, &w, UINT64_MAX, buf, 1, NULL), -EFBIG);
	assert_int_equal(do_write(client, &f, &w, PVFS_FILE_MAX, buf, 1, NULL), -EFBIG);
	assert_int_equal(do_write(client, &f, &w, 0, buf, 0, NULL), 0);
	assert_int_equal(glimpse(20).size, 0);
	/* rights */
	assert_int_equal(do_write(client, &f, &r, 0, buf, 1, NULL), -EACCES);
	assert_int_equal(do_read(client, &f, &w, 0, buf, 1, NULL), -EACCES);
	c = w;
	c.rights |= PVFS_CAP_READ;
	assert_int_equal(do_read(client, &f, &c, 0, buf, 1, NULL), -EACCES);
	c = w;
	c.mac[3] ^= 1;
	assert_int_equal(do_write(client, &f, &c, 0, buf, 1, NULL), -EACCES);
	c = cap(SESSION + 1, 20, PVFS_CAP_WRITE);
	assert_int_equal(do_write(client, &f, &c, 0, buf, 1, NULL), -EACCES);
	c = cap(SESSION, 21, PVFS_CAP_WRITE);
	assert_int_equal(do_write(client, &f, &c, 0, buf, 1, NULL), -EACCES);
	/* a verified one does not let its forged twin through */
	assert_int_equal(do_write(client, &f, &w, 0, "x", 1, NULL), 0);
	c = w;
	c.mac[15] ^= 0x80;
	assert_int_equal(do_write(client, &f, &c, 0, "y", 1, NULL), -EACCES);
	/* a body that is not one */
	assert_int_equal(pvfs_peer_call(client, &rpc), -EBADMSG);
	/* servers' business */
	assert_true(CALL(client, trim, TRIM, &treq, &trep) < 0);
	assert_int_equal(glimpse(20).size, 1);
}

static void test_fsync_verifier(void **state)
{
	struct pvfs_fid f = fid(30), none = fid(31);
	struct pvfs_cap c = cap(SESSION, 30, PVFS_CAP_READ | PVFS_CAP_WRITE),
	n = cap(SESSION, 31, PVFS_CAP_READ);
	struct pvfs_fsync_req req = { .fid = f, .cap = c };
	struct pvfs_write_rep w1, w2;
	struct pvfs_fsync_rep rep;
	struct pvfs_ts wtime;
	int i;

	assert_int_equal(do_write(client, &f, &c, 0, "a", 1, &w1), 0);
	assert_true(w1.wtime.sec > 0 && w1.wtime.sec >= glimpse(30).wtime.sec);
	assert_int_equal(CALL(client, fsync, FSYNC, &req, &rep), 0);
	assert_true(rep.verifier == w1.verifier);
	req.flags = PVFS_FS_DATASYNC;
	assert_int_equal(CALL(client, fsync, FSYNC, &req, &rep), 0);
	req.fid = none;
	assert_int_equal(CALL(client, fsync, FSYNC, &req, &rep), -EACCES);
	req.cap = n;
	assert_int_equal(CALL(client, fsync, FSYNC, &req, &rep), 0);
	assert_int_equal(glimpse(31).size, 0);
	/* A write that follows another has a later time, for who asks instead of writing, too. */
	for (i = 0; i < 50; i++) {
		assert_int_equal(do_write(client, &f, &c, 0, "a", 1, &w1), 0);
		assert_int_equal(do_write(client, &f, &c, 0, "b", 1, NULL), 0);
		wtime = glimpse(30).wtime;
		assert_true(pvfs_ts_after(&wtime, &w1.wtime));
	}
	/* the daemon's death loses nothing that the kernel has */
	put(32, 0, 100000);
	stop(SIGKILL);
	start();
	expect(32, 0, 100000);
	assert_int_equal(do_write(client, &f, &c, 0, "a", 1, &w2), 0);
	assert_true(w2.verifier == w1.verifier);
}

static void test_trim_glimpse_remove(void **state)
{
	struct pvfs_glimpse_rep g;
	u64 size;

	assert_int_equal(trim(40, 0), 0);
	put(40, 0, 10000);
	g = glimpse(40);
	assert_int_equal(g.size, 10000);
	assert_true(g.blocks >= 16 && g.wtime.sec > 0);
	assert_int_equal(trim(40, 5000), 0);
	assert_int_equal(glimpse(40).size, 5000);
	assert_true(glimpse(40).wtime.sec == g.wtime.sec && glimpse(40).wtime.nsec == g.wtime.nsec);
	expect(40, 0, 5000);
	assert_int_equal(trim(40, 20000), 0);
	assert_int_equal(rd(40, 5000, buf2, 20000, &size), 15000);
	memset(buf, 0, 15000);
	assert_memory_equal(buf, buf2, 15000);
	assert_int_equal(trim(41, 1ull << 33), 0);
	assert_true(glimpse(41).size == 1ull << 33);
	assert_int_equal(glimpse(41).wtime.sec, 0);
	assert_true(trim(41, UINT64_MAX) < 0);

	assert_int_equal(rm(40), 0);
	assert_int_equal(rm(40), 0);
	assert_int_equal(rm(49), 0);
	assert_int_equal(glimpse(40).size, 0);
	assert_int_equal(wr(40, 0, buf, 10), -ESTALE);
	assert_int_equal(wr(49, 0, buf, 10), -ESTALE);
	assert_int_equal(rd(40, 0, buf, 10, NULL), -ESTALE);
	assert_int_equal(trim(40, 0), 0);
	assert_int_equal(trim(40, 1), -ESTALE);
	assert_int_equal(glimpse(40).size, 0);
}

static int hold(struct pvfs_peer *peer, u64 ino, u32 ms)
{
	struct pvfs_hold_req req = { .fid = fid(ino), .ms = ms };
	struct pvfs_hold_rep rep;

	return CALL(peer, hold, HOLD, &req, &rep);
}

/* What comes while a datafile is held is done after the cut; or after the time, if none comes. */
static void test_hold(void **state)
{
	u64 before = stat_of("\"iod\":{", "\"held\":"), t;
	struct pvfs_fid f = fid(95);
	struct pvfs_cap c = cap(SESSION, 95, PVFS_CAP_READ | PVFS_CAP_WRITE);
	static struct io w, r;
	int i;

	sem_init(&done_sem, 0, 0);
	put(95, 0, 70000);
	assert_int_equal(hold(mgr, 95, 10000), 0);
	fill(buf, 100, 95, 50);
	prep_write(&w, &f, &c, 50, buf, 100);
	prep_read(&r, &f, &c, 0, buf2, 70000);
	w.rpc.done = r.rpc.done = io_done;
	pvfs_peer_submit(client, &w.rpc);
	pvfs_peer_submit(client, &r.rpc);
	while (stat_of("\"iod\":{", "\"held\":") < before + 2)
		assert_int_equal(sem_trywait(&done_sem), -1);
	assert_int_equal(sem_trywait(&done_sem), -1);
	/* Others are not, nor is the mgr. */
	put(96, 0, 10);
	assert_int_equal(glimpse(95).size, 70000);
	assert_int_equal(trim(95, 10), 0);
	for (i = 0; i < 2; i++)
		while (sem_wait(&done_sem))
			;
	assert_int_equal(w.rpc.err, 0);
	assert_int_equal(r.rpc.err, 0);
	assert_true(r.rpc.in_len == 10 || r.rpc.in_len == 150);
	assert_int_equal(glimpse(95).size, 150);
	expect(95, 50, 100);
	/* Of one that is not there; and the time is an end. Twice is once. */
	t = now_ns();
	assert_int_equal(hold(mgr, 97, 60000), 0);
	assert_int_equal(hold(mgr, 97, 300), 0);
	put(97, 0, 10);
	assert_true(now_ns() - t >= 300000000ull);
	/* For servers only. */
	assert_true(hold(client, 95, 10000) < 0);
	put(95, 0, 10);
}

/* Bytes of @ino from offset 0 on, all of the datafile, in two pieces. */
static int fill_df(struct pvfs_peer *peer, u64 ino, u64 bytes_of, u32 len)
{
	struct pvfs_fill_req req = { .fid = fid(ino) };
	struct iovec iov[2] = { { .iov_base = buf, .iov_len = len / 3 },
				{ .iov_base = buf + len / 3, .iov_len = len - len / 3 } };
	u8 body[64], rep[64];
	struct pvfs_rpc rpc = { .op = PVFS_OP_FILL, .body = body, .out = iov, .nout = 2,
				.rep = rep, .rep_room = sizeof(rep), .timeout_ms = 60000 };

	rpc.body_len = pvfs_fill_req_encode(&req, body, sizeof(body));
	fill(buf, len, bytes_of, 0);
	return pvfs_peer_call(peer, &rpc);
}

/* A datafile is made whole, or not at all; once it is there, or was removed, nothing happens. */
static void test_fill(void **state)
{
	assert_int_equal(fill_df(mgr, 90, 90, 65536), 0);
	expect(90, 0, 65536);
	assert_int_equal(glimpse(90).size, 65536);
	/* It says that nothing was written. */
	assert_int_equal(glimpse(90).wtime.sec, 0);
	put(90, 100, 7);
	assert_int_equal(fill_df(mgr, 90, 91, 70000), 0);
	assert_int_equal(glimpse(90).size, 65536);
	expect(90, 0, 65536);
	assert_int_equal(trim(90, 0), 0);
	assert_int_equal(fill_df(mgr, 90, 90, 100), 0);
	assert_int_equal(glimpse(90).size, 0);
	put(92, 50, 10);
	assert_int_equal(fill_df(mgr, 92, 92, 100), 0);
	assert_int_equal(glimpse(92).size, 60);
	assert_int_equal(rm(93), 0);
	assert_int_equal(fill_df(mgr, 93, 93, 100), 0);
	assert_int_equal(glimpse(93).size, 0);
	assert_int_equal(fill_df(mgr, 94, 94, 0), -EINVAL);
	assert_true(fill_df(client, 94, 94, 100) < 0);
	assert_int_equal(glimpse(94).size, 0);
}

static int copy(u64 from, u64 from_off, u64 to, u64 to_off, u64 len)
{
	struct pvfs_copy_req req = {
		.src = fid(from), .src_off = from_off, .src_cap = cap(SESSION, from, PVFS_CAP_READ),
		.dst = fid(to), .dst_off = to_off, .dst_cap = cap(SESSION, to, PVFS_CAP_WRITE), .len = len,
	};
	struct pvfs_copy_rep rep;
	int err = CALL(client, copy, COPY, &req, &rep);

	assert_true(err || (rep.wtime.sec > 0 && rep.room));
	return err;
}

static void expect_copied(u64 from, u64 to, u64 off, u32 len)
{
	assert_int_equal(rd(to, off, buf2, len, NULL), len);
	fill(buf, len, from, off);
	assert_memory_equal(buf, buf2, len);
}

static void test_copy(void **state)
{
	struct pvfs_copy_req req = {
		.src = fid(50), .src_cap = cap(SESSION, 50, PVFS_CAP_WRITE), .dst = fid(51),
		.dst_cap = cap(SESSION, 51, PVFS_CAP_WRITE), .len = 1,
	};
	struct pvfs_copy_rep rep;
	u64 size;

	put(50, 0, 300001);
	assert_int_equal(copy(50, 0, 51, 0, 300001), 0);
	expect_copied(50, 51, 0, 300001);
	assert_int_equal(glimpse(51).size, 300001);
	/* In the middle, over what is there; the end stays. */
	memset(buf, 'x', 100000);
	assert_int_equal(wr(51, 100000, buf, 100000), 0);
	assert_int_equal(copy(50, 100001, 51, 100001, 99998), 0);
	expect_copied(50, 51, 100001, 99998);
	assert_int_equal(rd(51, 100000, buf2, 1, NULL), 1);
	assert_int_equal(buf2[0], 'x');
	assert_int_equal(glimpse(51).size, 300001);
	/* Holes stay holes, over data too; and the end is where it should be. */
	put(52, 64 * MIB, 4096);
	assert_int_equal(copy(52, 0, 51, 0, 64 * MIB), 0);
	assert_true(glimpse(51).size == 64ull * MIB);
	assert_true(glimpse(51).blocks < 2000);
	assert_int_equal(copy(52, 64 * MIB, 51, 64 * MIB, 2 * MIB), 0);
	expect_copied(52, 51, 64 * MIB, 4096);
	assert_int_equal(rd(51, 66ull * MIB - 1, buf2, 100, &size), 1);
	assert_true(size == 66ull * MIB && !buf2[0]);
	assert_int_equal(rd(51, 0, buf2, 300001, NULL), 300001);
	memset(buf, 0, 300001);
	assert_memory_equal(buf, buf2, 300001);
	/* From a datafile that is not there: zeros. */
	assert_int_equal(copy(59, 0, 50, 0, 4096), 0);
	assert_int_equal(rd(50, 0, buf2, 4096, NULL), 4096);
	assert_memory_equal(buf, buf2, 4096);
	/* Within one datafile. */
	put(50, 0, 100000);
	assert_int_equal(copy(50, 0, 50, 100000, 100000), 0);
	assert_int_equal(rd(50, 100000, buf2, 100000, NULL), 100000);
	fill(buf, 100000, 50, 0);
	assert_memory_equal(buf, buf2, 100000);
	assert_int_equal(copy(50, 0, 50, 99999, 100000), -EINVAL);
	assert_int_equal(copy(50, 99999, 50, 0, 100000), -EINVAL);
	/* Limits and rights. */
	assert_int_equal(copy(50, 0, 51, 0, 0), -EINVAL);
	assert_int_equal(copy(50, 0, 51, 0, PVFS_COPY_MAX + 1), -EINVAL);
	assert_int_equal(copy(50, UINT64_MAX, 51, 0, 10), -EINVAL);
	assert_int_equal(copy(50, 0, 51, PVFS_FILE_MAX, 10), -EFBIG);
	assert_int_equal(CALL(client, copy, COPY, &req, &rep), -EACCES);
	req.src_cap = cap(SESSION, 50, PVFS_CAP_READ);
	req.dst_cap = cap(SESSION, 51, PVFS_CAP_READ);
	assert_int_equal(CALL(client, copy, COPY, &req, &rep), -EACCES);
	assert_int_equal(rm(51), 0);
	assert_int_equal(copy(50, 0, 51, 0, 10), -ESTALE);
	assert_int_equal(copy(51, 0, 50, 0, 10), -ESTALE);
}

/*
 * What an evicted session's client still has in hand is good for nothing, now and after a restart.
 */
static void test_evict(void **state)
{
	struct pvfs_evict_req req = { .session = SESSION + 7 };
	struct pvfs_fid f = fid(60);
	struct pvfs_cap c = cap(SESSION + 7, 60, PVFS_CAP_WRITE);
	struct pvfs_evict_rep rep;
	struct pvfs_peer *late = new_peer(&h, PVFS_ROLE_CLIENT, SESSION + 7, 2);

	assert_int_equal(do_write(late, &f, &c, 0, "before", 6, NULL), 0);
	assert_int_equal(CALL(client, evict, EVICT, &req, &rep), -EACCES);
	assert_int_equal(do_write(late, &f, &c, 0, "as yet", 6, NULL), 0);
	assert_int_equal(CALL(mgr, evict, EVICT, &req, &rep), 0);
	assert_int_equal(CALL(mgr, evict, EVICT, &req, &rep), 0);
	assert_true(do_write(late, &f, &c, 0, "after", 5, NULL) < 0);
	pvfs_peer_free(late);
	late = new_peer(&h, PVFS_ROLE_CLIENT, SESSION + 7, 2);
	assert_true(do_write(late, &f, &c, 0, "anew", 4, NULL) < 0);
	pvfs_peer_free(late);
	stop(SIGKILL);
	start();
	late = new_peer(&h, PVFS_ROLE_CLIENT, SESSION + 7, 2);
	assert_true(do_write(late, &f, &c, 0, "again", 5, NULL) < 0);
	pvfs_peer_free(late);
	assert_int_equal(rd(60, 0, buf, 100, NULL), 6);
	assert_memory_equal(buf, "as yet", 6);
	/* Others are served as ever. */
	put(61, 0, 1000);
	expect(61, 0, 1000);
	req.session = 0;
	assert_int_equal(CALL(mgr, evict, EVICT, &req, &rep), -EINVAL);
}

/* Many more at once than the daemon has threads, each twice: all are answered, and other requests too. */
static void test_evict_many(void **state)
{
	enum { N = 200 };
	static struct pvfs_rpc rpc[N];
	static u8 body[N][16], rep[N][16];
	u32 i;

	sem_init(&done_sem, 0, 0);
	for (i = 0; i < N; i++) {
		struct pvfs_evict_req req = { .session = SESSION + 1000 + i / 2 };
		int n = pvfs_evict_req_encode(&req, body[i], sizeof(body[i]));

		rpc[i] = (struct pvfs_rpc){ .op = PVFS_OP_EVICT, .body = body[i], .body_len = n,
					    .rep = rep[i], .rep_room = sizeof(rep[i]),
					    .timeout_ms = 20000, .done = io_done };
		pvfs_peer_submit(mgr, &rpc[i]);
	}
	put(63, 0, 1000);
	expect(63, 0, 1000);
	for (i = 0; i < N; i++)
		while (sem_wait(&done_sem))
			;
	for (i = 0; i < N; i++)
		assert_int_equal(rpc[i].err, 0);
	for (i = 0; i < N; i += 66) {
		struct pvfs_cap c = cap(SESSION + 1000 + i / 2, 63, PVFS_CAP_WRITE);
		struct pvfs_peer *late = new_peer(&h, PVFS_ROLE_CLIENT, SESSION + 1000 + i / 2, 1);
		struct pvfs_fid f = fid(63);

		assert_true(do_write(late, &f, &c, 0, "late", 4, NULL) < 0);
		pvfs_peer_free(late);
	}
}

/* What an evicted session has waiting for a cut is not done, and not waited for. */
static void test_evict_held(void **state)
{
	struct pvfs_evict_req req = { .session = SESSION + 8 };
	struct pvfs_fid f = fid(62);
	struct pvfs_cap c = cap(SESSION + 8, 62, PVFS_CAP_WRITE);
	struct pvfs_evict_rep rep;
	struct pvfs_peer *late = new_peer(&h, PVFS_ROLE_CLIENT, SESSION + 8, 1);
	u64 before = stat_of("\"iod\":{", "\"held\":");
	static struct io theirs, ours;

	sem_init(&done_sem, 0, 0);
	put(62, 0, 100);
	assert_int_equal(hold(mgr, 62, 10000), 0);
	prep_write(&theirs, &f, &c, 5000, "late", 4);
	c = cap(SESSION, 62, PVFS_CAP_WRITE);
	fill(buf, 200, 62, 0);
	prep_write(&ours, &f, &c, 0, buf, 200);
	theirs.rpc.done = ours.rpc.done = io_done;
	pvfs_peer_submit(late, &theirs.rpc);
	pvfs_peer_submit(client, &ours.rpc);
	while (stat_of("\"iod\":{", "\"held\":") < before + 2)
		assert_int_equal(sem_trywait(&done_sem), -1);
	assert_int_equal(CALL(mgr, evict, EVICT, &req, &rep), 0);
	assert_int_equal(glimpse(62).size, 100);
	assert_int_equal(trim(62, 10), 0);
	while (sem_wait(&done_sem))
		;
	pvfs_peer_free(late);	/* ends its request if that has not ended */
	while (sem_wait(&done_sem))
		;
	assert_int_not_equal(theirs.rpc.err, 0);
	assert_int_equal(ours.rpc.err, 0);
	assert_int_equal(glimpse(62).size, 200);
	expect(62, 0, 200);
}

static void test_statfs(void **state)
{
	struct pvfs_iod_statfs_req req;
	struct pvfs_iod_statfs_rep rep;

	assert_int_equal(CALL(mgr, iod_statfs, IOD_STATFS, &req, &rep), 0);
	assert_true(rep.bsize >= 512 && rep.blocks >= rep.bfree && rep.blocks > 0);
}

/* ---------------------------------------------------------------- many at once */

static void test_pipelined(void **state)
{
	enum { N = 64, LEN = 128 << 10 };
	static struct io io[N];
	struct pvfs_fid f = fid(50);
	struct pvfs_cap c = cap(SESSION, 50, PVFS_CAP_READ | PVFS_CAP_WRITE);
	u8 *mem = malloc((size_t)N * LEN);
	int i, round;

	assert_non_null(mem);
	sem_init(&done_sem, 0, 0);
	fill(mem, N * LEN, 50, 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < N; i++) {
			u64 off = (u64)(i * 29 % N) * LEN;

			if (round)
				prep_read(&io[i], &f, &c, off, mem + off, LEN);
			else
				prep_write(&io[i], &f, &c, off, mem + off, LEN);
			io[i].rpc.done = io_done;
			pvfs_peer_submit(client, &io[i].rpc);
		}
		for (i = 0; i < N; i++)
			while (sem_wait(&done_sem))
				;
		for (i = 0; i < N; i++) {
			assert_int_equal(io[i].rpc.err, 0);
			if (round)
				assert_int_equal(io[i].rpc.in_len, LEN);
		}
		if (!round)
			memset(mem, 0, (size_t)N * LEN);
	}
	for (i = 0; i < N * LEN / (int)MIB; i++) {
		fill(buf, MIB, 50, (u64)i * MIB);
		assert_memory_equal(mem + (size_t)i * MIB, buf, MIB);
	}
	free(mem);
}

/*
 * 200 clients, each with 4 writes of 1 MiB at once: 800 MiB wanted, 16 MiB of buffers configured.
 * All get through, and the daemon stays within what it was told.
 */
static void test_many_clients(void **state)
{
	enum { CLIENTS = 200, EACH = 4 };
	struct pvfs_peer **p = calloc(CLIENTS, sizeof(*p));
	struct io *io = calloc(CLIENTS * EACH, sizeof(*io));
	/* A buffer to read into for each client: a connection of its own puts the bytes there. */
	u8 *in = malloc((size_t)CLIENTS * MIB);
	u64 base = proc_kib(h.pid, "VmRSS"), peak;
	int i, k, round;

	assert_non_null(p);
	assert_non_null(io);
	assert_non_null(in);
	fill(buf, MIB, 60, 0);
	sem_init(&done_sem, 0, 0);
	for (i = 0; i < CLIENTS; i++)
		p[i] = new_peer(&h, PVFS_ROLE_CLIENT, 1000 + i, 1);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < CLIENTS * EACH; i++) {
			struct pvfs_fid f = fid(60 + i % 4);
			struct pvfs_cap c = cap(1000 + i / EACH, f.ino,
						PVFS_CAP_READ | PVFS_CAP_WRITE);

			if (round)
				prep_read(&io[i], &f, &c, (u64)i % 7 * MIB, in + (size_t)(i / EACH) * MIB,
					  i & 1 ? MIB : 16 << 10);
			else
				prep_write(&io[i], &f, &c, (u64)i % 7 * MIB, buf, MIB);
			io[i].rpc.done = io_done;
			pvfs_peer_submit(p[i / EACH], &io[i].rpc);
		}
		for (i = 0; i < CLIENTS * EACH; i++)
			while (sem_wait(&done_sem))
				;
		for (i = 0; i < CLIENTS; i++) {
			for (k = 0; k < EACH; k++)
				assert_int_equal(io[i * EACH + k].rpc.err, 0);
		}
	}
	peak = proc_kib(h.pid, "VmHWM");
	print_message("# 200 clients: RSS %llu KiB before, peak %llu KiB, %u MiB of buffers\n",
		      (unsigned long long)base, (unsigned long long)peak, BUFFERS_MIB);
	for (i = 0; i < CLIENTS; i++)
		pvfs_peer_free(p[i]);
	free(p);
	free(io);
	free(in);
	/* The sanitizers' own memory is not what is meant. */
	if (!SANITIZED)
		assert_true(peak < (BUFFERS_MIB + 16) * 1024);
	assert_int_equal(stat_of("\"buffers\":{", "\"limit\":"), BUFFERS_MIB * MIB);
	assert_int_equal(stat_of("\"buffers\":{", "\"used\":"), 0);
	assert_int_equal(stat_of("\"buffers\":{", "\"waiting\":"), 0);
	assert_true(stat_of("\"buffers\":{", "\"allocated\":") <= BUFFERS_MIB * MIB);
}

/* While 16 connections of a big client keep all buffers busy, a small one gets through. */
struct big {
	struct pvfs_peer *p;
	struct io io[32];
	_Atomic bool stop;
};

static struct big big;

static void big_again(struct pvfs_rpc *rpc)
{
	if (big.stop || rpc->err) {
		sem_post(&done_sem);
		return;
	}
	pvfs_peer_submit(big.p, rpc);
}

static void test_small_not_starved(void **state)
{
	struct pvfs_fid f = fid(70);
	struct pvfs_cap c = cap(2000, 70, PVFS_CAP_WRITE);
	u64 t, worst = 0, ops = 0, end = now_ns() + 2000000000ull;
	size_t i;

	sem_init(&done_sem, 0, 0);
	fill(buf, MIB, 70, 0);
	big.p = new_peer(&h, PVFS_ROLE_CLIENT, 2000, 16);
	for (i = 0; i < ARRAY_SIZE(big.io); i++) {
		prep_write(&big.io[i], &f, &c, i * MIB, buf, MIB);
		big.io[i].rpc.done = big_again;
		pvfs_peer_submit(big.p, &big.io[i].rpc);
	}
	while (now_ns() < end) {
		t = now_ns();
		assert_int_equal(wr(71, ops % 100 * 4096, "small", 5), 0);
		t = now_ns() - t;
		worst = max(worst, t);
		ops++;
	}
	big.stop = true;
	for (i = 0; i < ARRAY_SIZE(big.io); i++)
		while (sem_wait(&done_sem))
			;
	for (i = 0; i < ARRAY_SIZE(big.io); i++)
		assert_int_equal(big.io[i].rpc.err, 0);
	pvfs_peer_free(big.p);
	print_message("# beside a big writer: %llu small writes a second, worst %llu ms\n",
		      (unsigned long long)ops / 2, (unsigned long long)worst / 1000000);
	assert_true(ops >= 20);
}

/* ---------------------------------------------------------------- a full disk, and the end */

static void test_full_disk(void **state)
{
	struct pvfs_fid f = fid(80);
	struct pvfs_cap c = cap(SESSION, 80, PVFS_CAP_WRITE);
	struct pvfs_write_rep rep = { .room = 24 * MIB };
	char text[] = "size=24m";
	u64 n, was;
	bool mounted;
	int err;

	assert_int_equal(stop(SIGTERM), 0);
	snprintf(h.store, sizeof(h.store), "%s/small", h.dir);
	assert_int_equal(mkdir(h.store, 0700), 0);
	mounted = !mount("none", h.store, "tmpfs", 0, text);
	if (!mounted) {
		print_message("# can't mount a small tmpfs here\n");
		rmdir(h.store);
	}
	write_conf(&h, "buffers = \"16M\"");
	assert_int_equal(run(&h, "--mkfs", NULL), 0);
	start();
	if (!mounted)
		skip();
	for (n = 0, err = 0; !err && n < 64; n++) {
		was = rep.room;
		fill(buf, MIB, 80, n * MIB);
		err = do_write(client, &f, &c, n * MIB, buf, MIB, &rep);
		/* It has not said that there is room for what there is not. */
		assert_true(!err || was < MIB);
		assert_true(err || rep.room < was || (!rep.room && !was));
	}
	assert_int_equal(err, -ENOSPC);
	assert_true(n > 16);
	/* what was acknowledged is right, reads and removals work, and space comes back */
	for (n--; n--;)
		expect(80, n * MIB, MIB);
	put(80, 4096, 8192);
	expect(80, 4096, 8192);
	assert_int_equal(trim(80, 4 * MIB), 0);
	expect(80, 3 * MIB, MIB);
	put(81, 0, MIB);
	expect(81, 0, MIB);
	assert_int_equal(rm(80), 0);
	for (n = 0; n < 16; n++)
		put(82, n * MIB, MIB);
	for (n = 0; n < 16; n++)
		expect(82, n * MIB, MIB);
}

static void test_graceful_stop(void **state)
{
	static struct io io[32];
	struct pvfs_fid f = fid(90);
	struct pvfs_cap c = cap(SESSION, 90, PVFS_CAP_WRITE);
	int i, ok = 0;

	sem_init(&done_sem, 0, 0);
	fill(buf, MIB, 90, 0);
	put(90, 0, 10);
	for (i = 0; i < 32; i++) {
		prep_write(&io[i], &f, &c, 0, buf, 256 << 10);
		io[i].rpc.done = io_done;
		io[i].rpc.timeout_ms = 3000;
		pvfs_peer_submit(client, &io[i].rpc);
	}
	kill(h.pid, SIGTERM);
	assert_int_equal(reap(h.pid), 0);
	for (i = 0; i < 32; i++)
		while (sem_wait(&done_sem))
			;
	for (i = 0; i < 32; i++)
		ok += !io[i].rpc.err;
	print_message("# %d of 32 writes were accepted before the end\n", ok);
	pvfs_peer_free(client);
	pvfs_peer_free(mgr);
	client = mgr = NULL;
	h.pid = 0;
	if (log_has("Sanitizer"))
		print_log();
}

static int setup(void **state)
{
	buf = malloc(2 * MIB);
	buf2 = malloc(2 * MIB);
	return buf && buf2 ? 0 : -1;
}

static int teardown(void **state)
{
	char small[128];

	if (client || mgr)
		stop(SIGKILL);
	snprintf(small, sizeof(small), "%s/small", h.dir);
	umount(small);
	free(buf);
	free(buf2);
	harness_fini(&h);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_sizes_and_holes),
		cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_fsync_verifier),
		cmocka_unit_test(test_trim_glimpse_remove), cmocka_unit_test(test_fill), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_hold), cmocka_unit_test(test_evict),
		cmocka_unit_test(test_evict_many), cmocka_unit_test(test_evict_held),
		cmocka_unit_test(test_statfs),
		cmocka_unit_test(test_pipelined), cmocka_unit_test(test_many_clients),
		cmocka_unit_test(test_small_not_starved), cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_graceful_stop),
	};

	if (argc != 2) {
		fputs("Usage: iod_io PATH/TO/pvfs-iod\n", stderr);
		return 2;
	}
	harness_init(&h, argv[1], "/tmp", "buffers = \"16M\"");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_io", tests, setup, teardown);
}
