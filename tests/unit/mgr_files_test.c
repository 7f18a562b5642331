// SPDX-License-Identifier: GPL-2.0
/* mgr_files_test.c - FILES_READ, FILES_WRITE, OPEN_SHARED, on both stores of heads. */
#include "mgr_head_fixture.h"

/* A list of files, and what was answered about them. */
struct many {
	u8 list[PVFS_FILES_LIST];
	struct pvfs_wire w;
	u8 data[PVFS_FILES_BYTES + 1];
	u32 sum, n;
	u32 got;			/* results */
	struct pvfs_file_result r[PVFS_FILES_MAX];
};

static struct many m;

static void none(void)
{
	m.n = m.sum = 0;
	pvfs_wire_init(&m.w, m.list, sizeof(m.list));
}

static void want(const char *name, u32 mode, const void *bytes, u32 len)
{
	struct pvfs_file_wanted f = { .name = PVFS_STR(name), .mode = mode, .len = len };

	pvfs_put_file_wanted(&m.w, &f);
	assert_int_equal(m.w.err, 0);
	if (bytes) {
		memcpy(m.data + m.sum, bytes, len);
		m.sum += len;
	}
	m.n++;
}

static struct pvfs_str list(void)
{
	return (struct pvfs_str){ .p = m.list, .len = m.w.p - m.list };
}

static void results(const struct pvfs_str *s)
{
	struct pvfs_wire w;

	pvfs_wire_init(&w, s->p, s->len);
	for (m.got = 0; pvfs_wire_left(&w); m.got++)
		pvfs_get_file_result(&w, &m.r[m.got]);
	assert_int_equal(w.err, 0);
}

static int write_them(struct fx_client *c, struct pvfs_fid dir)
{
	struct pvfs_files_write_req rq = { .cred = fx_cred(c), .dir = dir, .umask = 022,
					   .files = list() };
	struct pvfs_files_write_rep rp;
	int err;

	c->data = m.data;
	c->data_len = m.sum;
	err = fx_files_write(c, &rq, &rp);
	if (!err)
		results(&rp.results);
	return err;
}

static int read_them(struct fx_client *c, struct pvfs_fid dir, u32 room)
{
	struct pvfs_files_read_req rq = { .cred = fx_cred(c), .dir = dir, .room = room,
					  .files = list() };
	struct pvfs_files_read_rep rp;
	int err = fx_files_read(c, &rq, &rp);

	if (!err)
		results(&rp.results);
	return err;
}

/* One file, made or read. Return: what became of it. */
static int write_one(struct fx_client *c, struct pvfs_fid dir, const char *name, u32 mode,
		     const void *p, u32 n)
{
	int err;

	none();
	want(name, mode, p, n);
	err = write_them(c, dir);
	return err ? err : -pvfs_errno_from_wire(m.r[0].status);
}

static int read_one(struct fx_client *c, const char *name, u32 n)
{
	int err;

	none();
	want(name, 0, NULL, n);
	err = read_them(c, fx_root, PVFS_FILES_BYTES);
	return err ? err : -pvfs_errno_from_wire(m.r[0].status);
}

static struct pvfs_attr attr_of(struct fx_client *c, struct pvfs_fid dir, const char *name)
{
	struct pvfs_attr at;

	assert_int_equal(do_lookup(c, dir, name, &at), 0);
	return at;
}

static void both(void **state)
{
	struct hs *t = *state;
	struct pvfs_attr at, dir, now;
	struct pvfs_fid d;

	assert_int_equal(do_mkdir(&t->a, fx_root, "d", 0755, &dir), 0);
	d = dir.fid;
	assert_int_equal(write_one(&t->a, d, "some", 0666, t->bytes, 777), 0);
	assert_int_equal(write_one(&t->a, d, "none", 0600, "", 0), 0);
	assert_int_equal(write_one(&t->a, d, "full", 0777, t->bytes, STUFF), 0);
	assert_int_equal(do_getattr(&t->a, d, NULL, &now), 0);
	assert_true(pvfs_ts_after(&now.mtime, &dir.mtime) && now.version > dir.version);
	at = attr_of(&t->b, d, "some");
	assert_int_equal(at.size, 777);
	assert_int_equal(at.blocks, 8);
	assert_int_equal(at.mode, S_IFREG | 0644);
	assert_int_equal(at.nlink, 1);
	assert_true(at.flags & PVFS_AF_STUFFED);
	assert_int_equal(t->f->m->opens.files, 0);
	fx_reopen(t->f);
	/* In one answer, in order; as much of each as is wanted, at most. */
	none();
	want("full", 0, NULL, PVFS_FILES_BYTES);
	want("missing", 0, NULL, 5);
	want("none", 0, NULL, 5);
	want("some", 0, NULL, 700);
	assert_int_equal(read_them(&t->b, d, PVFS_FILES_BYTES), 0);
	assert_int_equal(m.got, 4);
	assert_int_equal(m.r[0].status, 0);
	assert_int_equal(m.r[0].len, STUFF);
	assert_int_equal(pvfs_errno_from_wire(m.r[1].status), ENOENT);
	assert_int_equal(m.r[1].len, 0);
	assert_int_equal(m.r[2].status | m.r[2].len, 0);
	assert_int_equal(m.r[3].len, 700);
	assert_int_equal(fx_op.payload_len, STUFF + 700);
	assert_memory_equal(fx_op.payload, t->bytes, STUFF);
	assert_memory_equal(fx_op.payload + STUFF, t->bytes, 700);
}

/* What one request makes, in one transaction: some are refused, and the others are there. */
static void mixed(void **state)
{
	struct hs *t = *state;
	bool files = t->f->conf.stuff_store == PVFS_STUFF_FILE;
	u64 before = t->f->m->files;

	none();
	want("a", 0644, "aaa", 3);
	want("a", 0644, "bb", 2);
	want("x/y", 0644, "", 0);
	want("..", 0644, "", 0);
	want("long", 0644, t->bytes, STUFF + 1);
	want("b", 0644, "bbbb", 4);
	assert_int_equal(write_them(&t->a, fx_root), 0);
	/* With heads in files a transaction makes one; the others are asked for again. */
	assert_int_equal(m.got, files ? 1 : 6);
	assert_int_equal(m.r[0].status, 0);
	assert_int_equal(m.r[0].len, 3);
	if (files) {
		assert_int_equal(t->f->m->files, before + 1);
		return;
	}
	assert_int_equal(pvfs_errno_from_wire(m.r[1].status), EEXIST);
	assert_int_equal(pvfs_errno_from_wire(m.r[2].status), EINVAL);
	assert_int_equal(pvfs_errno_from_wire(m.r[3].status), EINVAL);
	assert_int_equal(pvfs_errno_from_wire(m.r[4].status), EFBIG);
	assert_int_equal(m.r[5].status, 0);
	assert_int_equal(t->f->m->files, before + 2);
	assert_int_equal(read_one(&t->b, "a", 10), 0);
	assert_memory_equal(fx_op.payload, "aaa", 3);
	assert_int_equal(read_one(&t->b, "b", 10), 0);
	assert_int_equal(fx_op.payload_len, 4);
	assert_int_equal(do_lookup(&t->a, fx_root, "long", NULL), -ENOENT);
}

static void kinds(void **state)
{
	struct hs *t = *state;
	struct fx_client user = fx_thread(&t->a, 1);
	struct pvfs_mknod_req fifo = { .cred = fx_cred(&t->a), .dir = fx_root,
				       .name = PVFS_STR("fifo"), .mode = S_IFIFO | 0644 };
	struct pvfs_mknod_rep made;
	struct pvfs_attr dir;
	struct hf h;

	assert_int_equal(do_mkdir(&t->a, fx_root, "dir", 0755, &dir), 0);
	assert_int_equal(do_symlink(&t->a, fx_root, "link", "f", NULL), 0);
	assert_int_equal(fx_mknod(&t->a, &fifo, &made), 0);
	h = make(&t->a, "striped", PVFS_O_STRIPED);
	assert_int_equal(read_one(&t->a, "dir", 9), -EISDIR);
	assert_int_equal(read_one(&t->a, "link", 9), -ELOOP);
	assert_int_equal(read_one(&t->a, "fifo", 9), -ENXIO);
	assert_int_equal(read_one(&t->a, "striped", 9), -EFBIG);
	assert_int_equal(read_one(&t->a, ".", 9), -EINVAL);
	/* Rights: of the file, of the directory to be searched, and to be written. */
	user.uid = user.gid = 1000;
	assert_int_equal(write_one(&t->a, fx_root, "mine", 0600, "1", 1), 0);
	assert_int_equal(read_one(&user, "mine", 9), -EACCES);
	assert_int_equal(write_one(&user, dir.fid, "f", 0644, "1", 1), -EACCES);
	assert_int_equal(do_mkdir(&t->a, fx_root, "secret", 0700, &dir), 0);
	assert_int_equal(write_one(&user, dir.fid, "f", 0644, "1", 1), -EACCES);
	none();
	want("f", 0, NULL, 9);
	assert_int_equal(read_them(&user, dir.fid, PVFS_FILES_BYTES), 0);
	assert_int_equal(pvfs_errno_from_wire(m.r[0].status), EACCES);
	/* Not a directory, and gone. */
	assert_int_equal(write_one(&t->a, h.at.fid, "f", 0644, "1", 1), -ENOTDIR);
	assert_int_equal(do_rmdir(&t->a, fx_root, "secret"), 0);
	assert_int_equal(write_one(&t->a, dir.fid, "f", 0644, "1", 1), -ESTALE);
	assert_int_equal(read_them(&t->a, dir.fid, PVFS_FILES_BYTES), -ESTALE);
	/* Set-id bits of who may not keep them on what he writes to. */
	assert_int_equal(do_mkdir(&t->a, fx_root, "open", 0777, &dir), 0);
	t->a.umask = 0;
	assert_int_equal(write_one(&user, dir.fid, "s", 04755, "1", 1), 0);
	assert_int_equal(attr_of(&t->a, dir.fid, "s").mode & 07777, 0755);
	assert_int_equal(attr_of(&t->a, dir.fid, "s").uid, 1000);
	assert_int_equal(write_one(&user, dir.fid, "e", 04755, "", 0), 0);
	assert_int_equal(attr_of(&t->a, dir.fid, "e").mode & 07777, 04755);
}

static void exactly_once(void **state)
{
	struct hs *t = *state;
	struct pvfs_file_result first;

	assert_int_equal(write_one(&t->a, fx_root, "f", 0644, "abc", 3), 0);
	first = m.r[0];
	t->a.seq--;
	assert_int_equal(write_them(&t->a, fx_root), 0);
	assert_int_equal(t->f->m->count.replays, 1);
	assert_memory_equal(&first, &m.r[0], sizeof(first));
	fx_reopen(t->f);
	t->a.seq--;
	assert_int_equal(write_them(&t->a, fx_root), 0);
	assert_int_equal(t->f->m->count.replays, 1);
	assert_int_equal(m.r[0].status, 0);
	assert_int_equal(write_one(&t->a, fx_root, "f", 0644, "abc", 3), -EEXIST);
}

/* What does not fit is left to be asked for again; a file that fits nowhere there is not. */
static void room(void **state)
{
	struct hs *t = *state;
	char name[8];
	u32 i;

	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(write_one(&t->a, fx_root, name, 0644, t->bytes, STUFF), 0);
	}
	none();
	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "%u", i);
		want(name, 0, NULL, i == 4 ? 0 : STUFF);
	}
	assert_int_equal(read_them(&t->a, fx_root, 4 * STUFF), 0);
	assert_int_equal(m.got, 5);
	assert_int_equal(fx_op.payload_len, 4 * STUFF);
	assert_int_equal(m.r[4].len, 0);
	for (i = 0; i < 4; i++)
		assert_memory_equal(fx_op.payload + i * STUFF, t->bytes, STUFF);
}

static void refused(void **state)
{
	struct hs *t = *state;
	u32 i;

	none();
	assert_int_equal(read_them(&t->a, fx_root, PVFS_FILES_BYTES), -EINVAL);
	assert_int_equal(write_them(&t->a, fx_root), -EINVAL);
	want("f", 0, NULL, 1);
	assert_int_equal(read_them(&t->a, fx_root, PVFS_STUFF_MAX - 1), -EINVAL);
	assert_int_equal(read_them(&t->a, fx_root, PVFS_FILES_BYTES + 1), -EINVAL);
	/* Sums that are not the payload's. */
	assert_int_equal(write_them(&t->a, fx_root), -EINVAL);
	m.sum = 2;
	assert_int_equal(write_them(&t->a, fx_root), -EINVAL);
	none();
	want("f", 0, NULL, 0xffffffff);
	want("g", 0, NULL, 2);
	m.sum = 1;
	assert_int_equal(write_them(&t->a, fx_root), -EINVAL);
	/* Half a file, and one too many. */
	m.w.p--;
	assert_int_equal(read_them(&t->a, fx_root, PVFS_FILES_BYTES), -EINVAL);
	none();
	for (i = 0; i <= PVFS_FILES_MAX; i++)
		want("f", 0, NULL, 0);
	assert_int_equal(read_them(&t->a, fx_root, PVFS_FILES_BYTES), -EINVAL);
	assert_int_equal(write_them(&t->a, fx_root), -EINVAL);
	assert_int_equal(do_lookup(&t->a, fx_root, "f", NULL), -ENOENT);
}

static void times(void **state)
{
	struct hs *t = *state;
	struct pvfs_attr made, once, twice;

	assert_int_equal(write_one(&t->a, fx_root, "f", 0644, "abc", 3), 0);
	made = attr_of(&t->a, fx_root, "f");
	assert_int_equal(read_one(&t->a, "f", 9), 0);
	once = attr_of(&t->a, fx_root, "f");
	assert_true(pvfs_ts_after(&once.atime, &made.atime));
	assert_int_equal(once.version, made.version);
	assert_int_equal(read_one(&t->a, "f", 9), 0);
	twice = attr_of(&t->a, fx_root, "f");
	assert_attr_equal(&once, &twice);
}

/* Another's draft is waited for, but not with the answer about those before it. */
static void drafts(void **state)
{
	struct hs *t = *state;
	struct fx_client c;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	assert_int_equal(write_one(&t->a, fx_root, "done", 0644, "abc", 3), 0);
	assert_int_equal(read_one(&t->a, "done", 9), 0);
	make(&c, "draft", PVFS_O_DRAFT);
	t->b.park = true;
	none();
	want("done", 0, NULL, 9);
	want("draft", 0, NULL, 9);
	assert_int_equal(read_them(&t->b, fx_root, PVFS_FILES_BYTES), 0);
	assert_int_equal(m.got, 1);
	assert_int_equal(read_one(&t->b, "draft", 9), -EINPROGRESS);
	assert_int_equal(fx_op.nnoted, 1);
}

/* Who has a lease on the directory is told before it gets more files. */
static void leases(void **state)
{
	struct hs *t = *state;
	struct fx_client c;

	fx_client_open(&c, t->f, 3, PVFS_SO_LEASES);
	assert_int_equal(do_lookup(&c, fx_root, "f", NULL), 0);	/* it is not there, and stays so */
	t->a.park = true;
	assert_int_equal(write_one(&t->a, fx_root, "f", 0644, "abc", 3), -EINPROGRESS);
	assert_int_equal(fx_op.noted[0].ino, fx_root.ino);
	mgr_leases_drop(&t->f->m->leases, fx_root.ino, c.session);
	t->a.seq--;
	assert_int_equal(write_them(&t->a, fx_root), 0);
	assert_int_equal(m.r[0].status, 0);
}

/* Many of them, each with an ACL of its directory's, and what changes is noted for those with leases. */
static void acls(void **state)
{
	static const u8 acl[] = {
		2, 0, 0, 0,
		0x01, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,	/* owner */
		0x02, 0, 6, 0, 0xe8, 0x03, 0, 0,	/* 1000 */
		0x04, 0, 5, 0, 0xff, 0xff, 0xff, 0xff,	/* group */
		0x10, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,	/* mask */
		0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,	/* others */
	};
	struct hs *t = *state;
	struct fx_client user = fx_thread(&t->a, 1);
	struct pvfs_attr dir, at;
	char name[8];
	u32 i;

	assert_int_equal(do_mkdir(&t->a, fx_root, "d", 0755, &dir), 0);
	assert_int_equal(do_setxattr(&t->a, dir.fid, "system.posix_acl_default", acl, sizeof(acl), 0, NULL), 0);
	t->a.park = true;
	none();
	for (i = 0; i < 3 * MGR_NOTED_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		want(name, 0666, "abc", 3);
	}
	assert_int_equal(write_them(&t->a, dir.fid), 0);
	assert_int_equal(m.got, t->f->conf.stuff_store == PVFS_STUFF_FILE ? 1 : m.n);
	at = attr_of(&t->a, dir.fid, "0");
	assert_true(at.flags & PVFS_AF_ACL);
	assert_int_equal(at.mode & 0777, 0660);
	/* Who is named in it may read, and no other. */
	none();
	want("0", 0, NULL, 3);
	user.uid = user.gid = 1000;
	assert_int_equal(read_them(&user, dir.fid, PVFS_FILES_BYTES), 0);
	assert_int_equal(m.r[0].len, 3);
	user.uid = user.gid = 2000;
	assert_int_equal(read_them(&user, dir.fid, PVFS_FILES_BYTES), 0);
	assert_int_equal(m.r[0].status, pvfs_errno_to_wire(EACCES));
}

/* ---- OPEN_SHARED ---- */

static int open_shared(struct fx_client *c, const char *name, u32 flags, const u64 *session,
		       const u8 *client, u32 n, struct pvfs_open_shared_rep *rp)
{
	u8 raw[8 * PVFS_SHARER_LEN];
	struct pvfs_open_shared_req rq = { .cred = fx_cred(c), .dir = fx_root,
					   .name = PVFS_STR(name), .flags = flags, .mode = 0640 };
	struct pvfs_sharer s;
	struct pvfs_wire w;
	u32 i;

	pvfs_wire_init(&w, raw, sizeof(raw));
	for (i = 0; i < n; i++) {
		s.session = session[i];
		memset(s.client, client[i], sizeof(s.client));
		pvfs_put_sharer(&w, &s);
	}
	rq.sharers = (struct pvfs_str){ .p = raw, .len = w.p - raw };
	return fx_open_shared(c, &rq, rp);
}

#define RW (PVFS_O_READ | PVFS_O_WRITE)

static void shared(void **state)
{
	struct hs *t = *state;
	u64 sessions[] = { t->b.session, t->a.session + t->b.session, t->b.session };
	u8 clients[] = { 2, 2, 1 }, macs[3 * PVFS_CAP_MAC_LEN];
	static const u8 zeros[PVFS_CAP_MAC_LEN];
	struct pvfs_open_shared_rep rp, again;
	struct pvfs_attr at;
	struct hf h;

	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_CREAT, sessions, clients, 3, &rp), 0);
	assert_int_equal(rp.created, 1);
	assert_int_equal(rp.epoch, t->f->m->epoch);
	assert_int_equal(fx_op.payload_len, sizeof(macs));
	memcpy(macs, fx_op.payload, sizeof(macs));
	/* A session that there is not, and one whose client is another, get nothing. */
	assert_memory_equal(macs + PVFS_CAP_MAC_LEN, zeros, sizeof(zeros));
	assert_memory_equal(macs + 2 * PVFS_CAP_MAC_LEN, zeros, sizeof(zeros));
	/* The same request again: the same answer, and open as often. */
	t->a.seq--;
	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_CREAT, sessions, clients, 3, &again), 0);
	assert_int_equal(t->f->m->count.replays, 1);
	assert_attr_equal(&rp.attr, &again.attr);
	assert_int_equal(fx_op.payload_len, sizeof(macs));
	assert_memory_equal(fx_op.payload, macs, sizeof(macs));
	/* It is the capability that the other would have got itself. */
	h = open_it(&t->b, rp.attr.fid, RW);
	assert_memory_equal(h.cap.mac, macs, PVFS_CAP_MAC_LEN);
	assert_memory_not_equal(rp.cap.mac, macs, PVFS_CAP_MAC_LEN);
	assert_int_equal(do_close(&t->b, rp.attr.fid, RW, NULL), 0);
	/* And it has the file open: unlinked, and closed by who asked, it stays. */
	assert_int_equal(do_unlink(&t->a, fx_root, "f"), 0);
	assert_int_equal(do_close(&t->a, rp.attr.fid, RW, NULL), 0);
	assert_int_equal(do_getattr(&t->b, rp.attr.fid, NULL, &at), 0);
	assert_int_equal(do_close(&t->b, rp.attr.fid, RW, NULL), 0);
	assert_int_equal(do_getattr(&t->b, rp.attr.fid, NULL, &at), -ESTALE);
	assert_int_equal(t->f->m->opens.files, 0);
}

static void shared_replayed(void **state)
{
	struct hs *t = *state;
	struct pvfs_open_shared_rep rp;
	u64 session = t->b.session;
	u8 client = 2, mac[PVFS_CAP_MAC_LEN];

	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_CREAT, &session, &client, 1, &rp), 0);
	memcpy(mac, fx_op.payload, sizeof(mac));
	fx_reopen(t->f);
	assert_int_equal(t->f->m->opens.files, 0);
	t->a.seq--;
	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_CREAT, &session, &client, 1, &rp), 0);
	assert_memory_equal(fx_op.payload, mac, sizeof(mac));
	assert_int_equal(do_close(&t->a, rp.attr.fid, RW, NULL), 0);
	assert_int_equal(t->f->m->opens.files, 1);
	assert_int_equal(do_close(&t->b, rp.attr.fid, RW, NULL), 0);
	assert_int_equal(t->f->m->opens.files, 0);
}

/* Who is silent for its lease is not kept alive by others that name it. */
static void shared_silent(void **state)
{
	struct hs *t = *state;
	struct pvfs_session_renew_req rq = { };
	struct pvfs_session_renew_rep rn;
	struct pvfs_open_shared_rep rp;
	u64 session = t->b.session;
	u8 client = 2;

	t->f->conf.lease_ms = 200;
	usleep(150000);
	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_CREAT, &session, &client, 1, &rp), 0);
	usleep(100000);
	mgr_sessions_expire(t->f->m);
	assert_int_equal(t->f->m->count.evicted, 1);
	assert_int_equal(fx_session_renew(&t->b, &rq, &rn), -ESTALE);
	assert_int_equal(do_close(&t->a, rp.attr.fid, RW, NULL), 0);
	assert_int_equal(t->f->m->opens.files, 0);
}

static void shared_refused(void **state)
{
	struct hs *t = *state;
	struct pvfs_open_shared_rep rp;
	u64 session = t->b.session;
	u8 client = 2;

	assert_int_equal(open_shared(&t->a, "f", RW, &session, &client, 1, &rp), -ENOENT);
	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_TMPFILE, &session, &client, 1, &rp), -EINVAL);
	assert_int_equal(open_shared(&t->a, "f", RW | PVFS_O_DRAFT, &session, &client, 1, &rp), -EINVAL);
	assert_int_equal(do_mkdir(&t->a, fx_root, "d", 0755, NULL), 0);
	assert_int_equal(open_shared(&t->a, "d", PVFS_O_READ, &session, &client, 1, &rp), -EISDIR);
	assert_int_equal(do_symlink(&t->a, fx_root, "l", "d", NULL), 0);
	assert_int_equal(open_shared(&t->a, "l", RW, &session, &client, 1, &rp), -ELOOP);
	assert_int_equal(do_mkfile(&t->a, fx_root, "mine", 0600, NULL), 0);
	t->a.uid = 1000;
	assert_int_equal(open_shared(&t->a, "mine", RW, &session, &client, 1, &rp), -EACCES);
	t->a.uid = 0;
	assert_int_equal(open_shared(&t->a, "mine", RW | PVFS_O_CREAT | PVFS_O_EXCL, &session, &client,
				     1, &rp), -EEXIST);
	assert_int_equal(t->f->m->opens.files, 0);
	/* Nobody else is fine. */
	assert_int_equal(open_shared(&t->a, "mine", RW, NULL, NULL, 0, &rp), 0);
	assert_int_equal(fx_op.payload_len, 0);
	assert_int_equal(do_close(&t->a, rp.attr.fid, RW, NULL), 0);
}

int main(void)
{
#define T(name) \
	{ #name, name, hs_setup_db, hs_teardown, NULL }, \
	{ #name ", files", name, hs_setup_file, hs_teardown, NULL }
#define T1(name) { #name, name, hs_setup_db, hs_teardown, NULL }
	const struct CMUnitTest tests[] = {
		T(both), T(mixed), T(kinds), T(exactly_once), T(room), T(refused), T(times), T(drafts),
		T(leases), T(acls), T1(shared), T1(shared_replayed), T1(shared_silent), T1(shared_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_files", tests, NULL, NULL);
}
