// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_heads_test.c - where heads are: damage, and its place in the log; the setting changed back
 * and forth; files: a manager killed at every step, transactions that fail, a full disk, leftovers,
 * many threads, recovery in place.
 */
#include "mgr_head_fixture.h"
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OLD 5000u	/* bytes of the file before */
#define NEW 9000u	/* and after */

/* ---- the calls that a head's file is made and removed with, which can fail or be the last ---- */

enum step {
	NONE, CREATED, HALF, WRITTEN, SYNCED, NAMED, COMMITTED, FLUSHED, ANSWERED, REMOVING,
	REMOVED, NSTEPS,
};

static enum step die_at;	/* the process ends there */
static int write_error, sync_error;

static void step(enum step s)
{
	if (s == die_at)
		_exit(s);
}

static bool is_head(int fd)
{
	char link[64], path[256];
	ssize_t n;

	if (!die_at && !write_error && !sync_error)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return strstr(path, "/heads/");
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	ssize_t done;

	if (!is_head(fd))
		return syscall(SYS_pwrite64, fd, p, n, off);
	step(CREATED);
	if (write_error && off) {
		errno = write_error;
		return -1;
	}
	done = syscall(SYS_pwrite64, fd, p, off ? n : n / 2, off);
	step(off ? WRITTEN : HALF);
	return done;
}

int fdatasync(int fd)
{
	bool head = is_head(fd);
	int err = syscall(SYS_fdatasync, fd);

	if (head && sync_error) {
		errno = sync_error;
		return -1;
	}
	if (head)
		step(SYNCED);
	return err;
}

int unlinkat(int dfd, const char *path, int flags)
{
	int err;

	step(REMOVING);
	err = syscall(SYS_unlinkat, dfd, path, flags);
	step(REMOVED);
	return err;
}

static struct mdb_ops ops;
static const struct mdb_ops *real_ops;
static int commit_error, sync_lost;

static int die_commit(struct mdb *db, struct mdb_txn *t)
{
	int err;

	step(NAMED);
	if (commit_error) {
		real_ops->abort(db, t);
		return commit_error;
	}
	err = real_ops->commit(db, t);
	step(COMMITTED);
	return err;
}

static int die_sync(struct mdb *db)
{
	int err;

	if (sync_lost) {
		sync_lost = 0;
		mdb_bdb_panic(db);
	}
	err = real_ops->sync(db);
	step(FLUSHED);
	return err;
}

static void hook(struct mdb *db)
{
	real_ops = db->ops;
	ops = *db->ops;
	ops.commit = die_commit;
	ops.sync = die_sync;
	db->ops = &ops;
}

/* ---- either store ---- */

/* Bytes of the file after its change. */
static void make_new(struct hs *t, u8 *p)
{
	memcpy(p, t->bytes, NEW);
	memcpy(p + 100, t->bytes, NEW - 100);
}

static char log_path[80];

static void log_to_file(struct hs *t)
{
	snprintf(log_path, sizeof(log_path), "%s/log", t->f->dir);
	assert_int_equal(pvfs_log_init("test", PVFS_LOG_INFO, log_path), 0);
}

/* So it says there; and not @not. */
static void log_says(const char *what, const char *not)
{
	char text[20000] = "";
	int fd = open(log_path, O_RDONLY);
	ssize_t n;

	assert_int_equal(pvfs_log_init("test", PVFS_LOG_INFO, NULL), 0);
	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	close(fd);
	if (!strstr(text, what))
		fail_msg("'%s' is not in the log:\n%s", what, text);
	if (not && strstr(text, not))
		fail_msg("'%s' is in the log:\n%s", not, text);
}

static void flip_record(struct mgr *m, u64 ino, u32 at)
{
	u8 rec[20000], key[MGR_INO_KEY];
	int n;

	mgr_ino_key(key, ino);
	mdb_enter(m->db);
	n = mdb_get(m->db, NULL, MDB_HEAD, key, sizeof(key), rec, sizeof(rec), 0);
	assert_true(n > (int)at);
	rec[at] ^= 4;
	assert_int_equal(mdb_put(m->db, NULL, MDB_HEAD, key, sizeof(key), rec, n), 0);
	mdb_leave(m->db);
}

/* The path of the file that has the head. */
static void head_path(struct hs *t, u64 ino, char *path, size_t room)
{
	struct mgr_headfile f;
	char name[MGR_HEADFILE_NAME];
	u8 rec[64], key[MGR_INO_KEY];
	struct mgr *m = t->f->m;
	int n;

	mgr_ino_key(key, ino);
	mdb_enter(m->db);
	n = mdb_get(m->db, NULL, MDB_HEAD, key, sizeof(key), rec, sizeof(rec), 0);
	mdb_leave(m->db);
	assert_true(n > 0);
	assert_int_equal(mgr_headfile_decode(&f, ino, rec, n), 0);
	mgr_headfile_path(&f, name);
	snprintf(path, room, "%s/store/heads/%s", t->f->dir, name);
}

/* A file that is damaged: an error for it alone, and the log has its path. */
static void is_damaged(struct hs *t, struct hf *h, struct hf *g, const char *why)
{
	struct mgr *m = t->f->m;
	struct mgr_check_result res;
	struct pvfs_attr at;
	struct hf o;

	log_to_file(t);
	assert_int_equal(head_read(&t->a, h, &at), -EIO);
	assert_int_equal(head_write(&t->a, h, 0, 0, "x", 1, &(bool){ 0 }), -EIO);
	assert_int_equal(head_write(&t->a, h, 0, STUFF, "x", 1, &(bool){ 0 }), -EIO);
	assert_int_equal(do_truncate(&t->a, h->at.fid, 50, NULL, &at), -EIO);
	o = open_it(&t->b, h->at.fid, PVFS_O_READ | PVFS_O_EAGER);
	assert_int_equal(fx_op.payload_len, 0);
	assert_int_equal(do_close(&t->b, o.at.fid, PVFS_O_READ, NULL), 0);
	assert_int_equal(do_getattr(&t->a, h->at.fid, NULL, &at), 0);
	is(&t->a, g, t->bytes, 100);
	assert_int_equal(mgr_heads_pass(m), 0);
	log_says(why, "/g\n");
	log_says("is damaged: it is /dir/sub/f\n", NULL);
	assert_int_equal(mgr_check(m, NULL, &res), 0);
	assert_int_equal(res.problems, 1);
}

static void damaged(struct hs *t, const char *why, void (*harm)(struct hs *t, u64 ino))
{
	struct pvfs_attr dir, sub;
	struct hf h, g;

	assert_int_equal(do_mkdir(&t->a, fx_root, "dir", 0755, &dir), 0);
	assert_int_equal(do_mkdir(&t->a, dir.fid, "sub", 0755, &sub), 0);
	h = make(&t->a, "f", 0);
	g = make(&t->a, "g", 0);
	assert_int_equal(do_rename(&t->a, fx_root, "f", sub.fid, "f", 0), 0);
	put(&t->a, &h, 0, 0, t->bytes, 100);
	put(&t->a, &g, 0, 0, t->bytes, 100);
	harm(t, h.at.fid.ino);
	is_damaged(t, &h, &g, why);
	/* It can still be removed. */
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(&t->a, sub.fid, "f"), 0);
}

static void flip_bytes(struct hs *t, u64 ino)
{
	flip_record(t->f->m, ino, 50);
}

static void flip_crc(struct hs *t, u64 ino)
{
	flip_record(t->f->m, ino, offsetof(struct mgr_headfile_disk, crc));
}

static void flip_format(struct hs *t, u64 ino)
{
	flip_record(t->f->m, ino, 0);
}

static void unlink_file(struct hs *t, u64 ino)
{
	char path[256];

	head_path(t, ino, path, sizeof(path));
	assert_int_equal(unlink(path), 0);
}

static void write_file(struct hs *t, u64 ino)
{
	char path[256];
	int fd;

	head_path(t, ino, path, sizeof(path));
	fd = open(path, O_WRONLY);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void cut_file(struct hs *t, u64 ino)
{
	char path[256];

	head_path(t, ino, path, sizeof(path));
	assert_int_equal(truncate(path, 99), 0);
}

static void damaged_record(void **state)
{
	damaged(*state, "its bytes are lost", flip_bytes);
}

static void damaged_crc(void **state)
{
	damaged(*state, "has other bytes", flip_crc);
}

static void damaged_format(void **state)
{
	damaged(*state, "its bytes are lost", flip_format);
	/* What it named is found when it is looked for. */
	mgr_heads_suspect(((struct hs *)*state)->f->m);
	fx_reopen(((struct hs *)*state)->f);
	mgr_heads_suspect(((struct hs *)*state)->f->m);
}

static void missing_file(void **state)
{
	damaged(*state, "is missing", unlink_file);
}

static void written_file(void **state)
{
	damaged(*state, "has other bytes", write_file);
}

static void cut_short(void **state)
{
	damaged(*state, "has other bytes", cut_file);
}

/* The file has no name any more, and the next ones are searched for a while later. */
static void nameless(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), g = make(&t->a, "g", 0);
	struct pvfs_attr at;

	put(&t->a, &h, 0, 0, t->bytes, 100);
	put(&t->a, &g, 0, 0, t->bytes, 100);
	flip_bytes(t, h.at.fid.ino);
	flip_bytes(t, g.at.fid.ino);
	assert_int_equal(do_unlink(&t->a, fx_root, "f"), 0);
	log_to_file(t);
	assert_int_equal(head_read(&t->a, &h, &at), -EIO);
	assert_int_equal(mgr_heads_pass(t->f->m), 0);
	assert_int_equal(head_read(&t->a, &g, &at), -EIO);
	assert_int_equal(mgr_heads_pass(t->f->m), 1);
	log_says("it is without a name\n", "/g\n");
	t->f->m->heads.named_at = 0;
	log_to_file(t);
	assert_int_equal(mgr_heads_pass(t->f->m), 0);
	log_says("it is /g\n", NULL);
	assert_int_equal(do_unlink(&t->a, fx_root, "g"), 0);
	assert_int_equal(do_close(&t->a, h.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_close(&t->a, g.at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
}

/* Heads stay where they are until they are written to. */
static void switched(void **state)
{
	struct hs *t = *state;
	struct hf h[4];
	char name[8];
	u32 i, n;

	for (n = 0; n < 4; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		h[n] = make(&t->a, name, 0);
		put(&t->a, &h[n], 0, 0, t->bytes, 20 + n * 100);
	}
	assert_int_equal(hs_named(t), 0);
	t->f->conf.stuff_store = PVFS_STUFF_FILE;
	fx_reopen(t->f);
	for (i = 0; i < n; i++)
		is(&t->a, &h[i], t->bytes, 20 + i * 100);
	assert_int_equal(hs_files(t), 0);
	put(&t->a, &h[0], PVFS_HW_APPEND, 0, t->bytes + 20, 30);
	put(&t->a, &h[1], 0, 0, t->bytes, 1);
	assert_int_equal(hs_files(t), 2);
	assert_int_equal(do_truncate(&t->a, h[2].at.fid, 10, NULL, &h[2].at), 0);
	assert_int_equal(hs_files(t), 3);
	hs_clean(t);
	t->f->conf.stuff_store = PVFS_STUFF_DB;
	fx_reopen(t->f);
	is(&t->a, &h[0], t->bytes, 50);
	is(&t->a, &h[1], t->bytes, 120);
	is(&t->a, &h[2], t->bytes, 10);
	is(&t->a, &h[3], t->bytes, 320);
	assert_int_equal(hs_named(t), 3);
	put(&t->a, &h[0], 0, 0, t->bytes, 60);
	assert_int_equal(hs_named(t), 2);
	hs_clean(t);
	assert_int_equal(do_unlink(&t->a, fx_root, "f1"), 0);
	assert_int_equal(do_close(&t->a, h[1].at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	fx_end_grace(t->f);
	assert_int_equal(mgr_reap_pass(t->f->m), 0);
	assert_int_equal(head_write(&t->a, &h[2], 0, STUFF, "x", 1, &(bool){ 0 }), 0);
	hs_clean(t);
	assert_int_equal(hs_files(t), 0);
	is(&t->a, &h[0], t->bytes, 60);
	is(&t->a, &h[3], t->bytes, 320);
}

/* ---- files ---- */

/* The manager ends at some step of a change, and another one starts. */
static void killed(void **state)
{
	static u8 changed[NEW];
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), o;
	enum pvfs_durability how;
	struct pvfs_attr at;
	enum step s;
	int status;
	u32 seq;
	pid_t pid;

	make_new(t, changed);
	for (how = PVFS_DURABLE_SYNC; how <= PVFS_DURABLE_WRITE; how++)
	for (s = CREATED; s < NSTEPS; s++) {
		if (how == PVFS_DURABLE_WRITE && s == SYNCED)
			continue;
		t->f->conf.durability = how;
		fx_reopen(t->f);
		assert_int_equal(do_truncate(&t->a, h.at.fid, 0, NULL, &at), 0);
		put(&t->a, &h, 0, 0, t->bytes, OLD);
		hs_clean(t);
		fx_stop(t->f);
		fflush(NULL);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			bool done;

			if (fx_try_open(t->f))
				_exit(100);
			hook(t->f->m->db);
			die_at = s;
			if (head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done))
				_exit(101);
			step(ANSWERED);
			mgr_heads_pass(t->f->m);
			_exit(102);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), s);
		fx_start(t->f);
		o = open_it(&t->b, h.at.fid, PVFS_O_READ);
		if (s < COMMITTED)
			is(&t->b, &o, t->bytes, OLD);
		else if (s > COMMITTED || how == PVFS_DURABLE_WRITE)
			is(&t->b, &o, changed, NEW);
		else
			assert_int_equal(head_read(&t->b, &o, &at), 0);
		hs_clean(t);
		assert_int_equal(hs_files(t), 1);
		/* It is asked again, and is done once. */
		seq = t->a.seq;
		put(&t->a, &h, 0, 100, t->bytes, NEW - 100);
		is(&t->b, &o, changed, NEW);
		t->a.seq = seq;
		put(&t->a, &h, 0, 100, t->bytes, NEW - 100);
		is(&t->b, &o, changed, NEW);
		assert_int_equal(do_close(&t->b, o.at.fid, PVFS_O_READ, NULL), 0);
		hs_clean(t);
	}
}

/* What does not become a commit leaves the old head, and no file. */
static void failed(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0);
	struct mdb *db = t->f->m->db;
	struct pvfs_attr at;
	bool done;

	put(&t->a, &h, 0, 0, t->bytes, OLD);
	hook(db);
	commit_error = -EIO;
	assert_int_equal(head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done), -EIO);
	commit_error = -ENOSPC;
	assert_int_equal(do_truncate(&t->a, h.at.fid, 100, NULL, &at), -ENOSPC);
	assert_int_equal(hs_files(t), 3);
	hs_clean(t);
	is(&t->a, &h, t->bytes, OLD);
	commit_error = -EDEADLK;
	t->a.no_retry = true;
	assert_int_equal(head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done), -EAGAIN);
	t->a.no_retry = false;
	hs_clean(t);
	is(&t->a, &h, t->bytes, OLD);
	commit_error = 0;
	db->ops = real_ops;
	put(&t->a, &h, PVFS_HW_APPEND, 0, t->bytes + OLD, 10);
	is(&t->a, &h, t->bytes, OLD + 10);
	/* Committed, and then undone by the recovery. */
	t->f->conf.durability = PVFS_DURABLE_SYNC;
	fx_reopen(t->f);
	db = t->f->m->db;
	hook(db);
	sync_lost = 1;
	assert_int_equal(head_write(&t->a, &h, PVFS_HW_APPEND, 0, t->bytes + OLD + 10, 10, &done),
			 0);
	assert_true(done);
	assert_true(db->generation > 1);
	db->ops = real_ops;
	is(&t->a, &h, t->bytes, OLD + 20);
	hs_clean(t);
	assert_int_equal(hs_files(t), 1);
}

static void full(void **state)
{
	struct hs *t = *state;
	struct hf h = make(&t->a, "f", 0), g = make(&t->a, "g", 0);
	u64 reserve = t->f->m->space_reserve;
	struct pvfs_attr at;
	bool done;

	put(&t->a, &h, 0, 0, t->bytes, OLD);
	write_error = ENOSPC;
	assert_int_equal(head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done), -ENOSPC);
	assert_int_equal(head_write(&t->a, &g, 0, 0, t->bytes, 100, &done), -ENOSPC);
	assert_int_equal(do_truncate(&t->a, h.at.fid, 100, NULL, &at), -ENOSPC);
	write_error = 0;
	assert_int_equal(hs_files(t), 1);
	is(&t->a, &h, t->bytes, OLD);
	is(&t->a, &g, "", 0);
	t->f->conf.durability = PVFS_DURABLE_SYNC;
	fx_reopen(t->f);
	sync_error = ENOSPC;
	assert_int_equal(head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done), -ENOSPC);
	sync_error = EIO;
	assert_int_equal(head_write(&t->a, &h, 0, 100, t->bytes, NEW - 100, &done), -EIO);
	sync_error = 0;
	assert_int_equal(hs_files(t), 1);
	is(&t->a, &h, t->bytes, OLD);
	/* Nearly full: what grows is refused, a cut is not. */
	t->f->m->space_reserve = t->f->m->space_avail + ((u64)1 << 30);
	assert_int_equal(head_write(&t->a, &h, 0, 0, "x", 1, &done), -ENOSPC);
	assert_int_equal(hs_files(t), 1);
	assert_int_equal(do_truncate(&t->a, h.at.fid, 100, NULL, &at), 0);
	t->f->m->space_reserve = reserve;
	is(&t->a, &h, t->bytes, 100);
}

static void make_dir(struct hs *t, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/store/heads/%s", t->f->dir, name);
	assert_true(!mkdir(path, 0700) || errno == EEXIST);
}

static void leave(struct hs *t, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/store/heads/%s", t->f->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "leftover", 8), 8);
	close(fd);
}

static void swept(void **state)
{
	struct hs *t = *state;
	struct hf h[10];
	char name[128];
	u32 i;

	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		h[i] = make(&t->a, name, 0);
		put(&t->a, &h[i], 0, 0, t->bytes, 100 + i);
	}
	/* Of an inode that is there, of others, of none; what is not ours stays. */
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%03x", i * 7 >> 8);
		make_dir(t, name);
		snprintf(name, sizeof(name), "%03x/%x.1.77.%x", i * 7 >> 8, i * 7, i);
		leave(t, name);
	}
	leave(t, "000/README");
	fx_stop(t->f);
	fx_start(t->f);
	/* It left in order: nothing is looked for. */
	assert_int_equal(mgr_heads_pass(t->f->m), 0);
	assert_int_equal(hs_files(t), 1010);
	mgr_heads_suspect(t->f->m);
	/* It ends before all is looked through: the next one does it. */
	fx_reopen(t->f);
	assert_int_equal(t->f->m->heads.sweep, 0);
	assert_int_equal(mgr_heads_pass(t->f->m), 0);
	assert_int_equal(hs_files(t), 10);
	for (i = 0; i < 10; i++)
		is(&t->a, &h[i], t->bytes, 100 + i);
	snprintf(name, sizeof(name), "%s/store/heads/000/README", t->f->dir);
	assert_int_equal(access(name, F_OK), 0);
}

/* ---- many at once ---- */

#define WRITERS 4u
#define APPENDS 60u

struct worker {
	struct hs *t;
	struct fx_client c;
	struct hf h;
	atomic_bool *stop;
	bool panics;
	pthread_t thread;
	u32 nr;
	int err;
};

static void *append_thread(void *arg)
{
	struct worker *w = arg;
	u8 line[16];
	bool done;
	u32 i;

	memset(line, 'a' + w->nr, sizeof(line));
	for (i = 0; i < APPENDS && !w->err; i++) {
		w->err = head_write(&w->c, &w->h, PVFS_HW_APPEND, 0, line, sizeof(line), &done);
		if (!w->err && !done)
			w->err = -EPROTO;
	}
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

/*
 * Whatever is read consists of whole lines, and is never shorter than before, unless a recovery has
 * undone what was not answered yet.
 */
static void *read_thread(void *arg)
{
	struct worker *w = arg;
	struct pvfs_attr at;
	u64 last = 0;

	while (!atomic_load(w->stop) && !w->err) {
		w->err = head_read(&w->c, &w->h, &at);
		if (!w->err && ((at.size < last && !w->panics) || at.size % 16 ||
				fx_op.payload_len != at.size))
			w->err = -EPROTO;
		last = at.size;
	}
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

static void *panic_thread(void *arg)
{
	struct worker *w = arg;

	fx_panic_until(w->t->f, w->stop);
	return NULL;
}

static void many(struct hs *t, bool panics)
{
	struct hf h = make(&t->a, "f", 0);
	struct worker w[WRITERS + 2];
	atomic_bool stop = false;
	u32 i, n[WRITERS] = { 0 };
	struct pvfs_attr at;

	t->f->conf.durability = PVFS_DURABLE_SYNC;
	fx_reopen(t->f);
	assert_int_equal(mgr_core_start(t->f->m), 0);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		w[i] = (struct worker){ .t = t, .c = fx_thread(&t->a, i + 1), .h = h, .nr = i,
					.stop = &stop, .panics = panics };
		assert_int_equal(pthread_create(&w[i].thread, NULL, i < WRITERS ? append_thread :
						panics && i == WRITERS ? panic_thread : read_thread,
						&w[i]), 0);
	}
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		if (i == WRITERS)
			atomic_store(&stop, true);
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].err, 0);
	}
	mgr_core_stop(t->f->m);
	t->f->m->bg_stop = false;
	assert_int_equal(head_read(&t->a, &h, &at), 0);
	assert_int_equal(at.size, WRITERS * APPENDS * 16);
	for (i = 0; i < at.size; i++)
		n[fx_op.payload[i] - 'a']++;
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(n[i], APPENDS * 16);
	hs_clean(t);
	assert_int_equal(hs_files(t), 1);
}

static void appends(void **state)
{
	many(*state, false);
}

static void panics(void **state)
{
	many(*state, true);
}

int main(void)
{
#define DB(name) cmocka_unit_test_setup_teardown(name, hs_setup_db, hs_teardown)
#define FILES(name) { #name ", files", name, hs_setup_file, hs_teardown, NULL }
	const struct CMUnitTest tests[] = {
		DB(damaged_record), DB(nameless), DB(switched),
		FILES(damaged_crc), FILES(damaged_format), FILES(missing_file), FILES(written_file),
		FILES(cut_short), FILES(killed), FILES(failed), FILES(full), FILES(swept),
		FILES(appends), FILES(panics),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("mgr_heads", tests, NULL, NULL);
}
