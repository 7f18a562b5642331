// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_park_test.c - requests that wait hold no thread: for iods that are silent, for a truncation
 * before theirs, for the log, for a disk. All of them are begun on the test's own thread, which
 * would hang if one of them blocked it.
 */
#include "mgr_fixture.h"
#include <semaphore.h>
#include <sys/syscall.h>

#define MANY	300u		/* more than there are threads by far */
#define WORKERS	2u
#define RW	(PVFS_O_READ | PVFS_O_WRITE)

/* ---- a disk that is slow with heads that are files ---- */

static pthread_t main_thread;
static atomic_bool slow, on_main;
static atomic_uint syncing;
static sem_t disk;

int fdatasync(int fd)
{
	char link[64], path[256];
	ssize_t n;

	if (slow) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = 0;
		if (strstr(path, "/heads/")) {
			if (pthread_equal(pthread_self(), main_thread))
				on_main = true;
			syncing++;
			while (!on_main && sem_wait(&disk))
				;
			syncing--;
		}
	}
	return syscall(SYS_fdatasync, fd);
}

static int setup(void **state)
{
	struct fx_client *c = malloc(sizeof(*c));

	fx_client_init(c, fx_new(), 1);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct fx_client *c = *state;

	mgr_workers_stop(c->f->m);
	fx_free(c->f);
	free(c);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return 0;
}

/* A request on a task of its own. */
struct later {
	struct mgr_job job;
	struct fx_client c;
	u16 nr;
	u32 seq, len, runs;
	int err;
	sem_t done;
	struct mgr_op op;
	u8 body[1024];
};

static void later_fn(struct mgr_job *job)
{
	struct later *l = container_of(job, struct later, job);

	l->err = fx_execute(&l->c, l->nr, l->seq, l->body, l->len, &l->op);
	free(l->op.payload);
	sem_post(&l->done);
}

static struct later *later_new(const struct fx_client *c, u16 nr, u32 i)
{
	struct later *l = calloc(1, sizeof(*l));

	l->job.fn = later_fn;
	l->c = fx_thread(c, i % MGR_NSLOTS);
	l->nr = nr;
	l->seq = pvfs_op_info(nr)->flags & PVFS_OPF_ONCE ? 1 : 0;
	sem_init(&l->done, 0, 0);
	return l;
}

static void later_begin(struct later *l)
{
	mgr_task_begin(&l->c.f->m->tasks, &l->job);
}

static bool later_ended(struct later *l)
{
	int n;

	sem_getvalue(&l->done, &n);
	return n;
}

static int later_end(struct later *l)
{
	int err;

	while (sem_wait(&l->done))
		;
	err = l->err;
	/* The task posts before it is through with its job, but does not look at it any more. */
	sem_destroy(&l->done);
	free(l);
	return err;
}

static struct later *later_truncate(const struct fx_client *c, u32 i, struct pvfs_fid fid, u64 size)
{
	struct later *l = later_new(c, PVFS_OP_SETATTR, i);
	struct pvfs_setattr_req rq = {
		.cred = fx_cred(c), .fid = fid, .valid = PVFS_SA_SIZE, .size = size,
	};

	l->len = pvfs_setattr_req_encode(&rq, l->body, sizeof(l->body));
	later_begin(l);
	return l;
}

static struct later *later_statfs(const struct fx_client *c, u32 i)
{
	struct later *l = later_new(c, PVFS_OP_STATFS, i);
	struct pvfs_statfs_req rq;

	l->len = pvfs_statfs_req_encode(&rq, l->body, sizeof(l->body));
	later_begin(l);
	return l;
}

static struct later *later_mkdir(const struct fx_client *c, u32 i)
{
	struct later *l = later_new(c, PVFS_OP_MKDIR, i);
	struct pvfs_mkdir_req rq = { .cred = fx_cred(c), .dir = fx_root, .mode = 0755 };
	char name[16];

	snprintf(name, sizeof(name), "d%u", i);
	rq.name = PVFS_STR(name);
	l->len = pvfs_mkdir_req_encode(&rq, l->body, sizeof(l->body));
	later_begin(l);
	return l;
}

static void start(struct fx *f)
{
	assert_int_equal(mgr_tasks_start(&f->m->tasks, WORKERS), 0);
}

static void stop(struct fx *f)
{
	mgr_workers_stop(f->m);
	assert_int_equal(f->m->tasks.now, 0);
	assert_int_equal(f->m->tasks.n, 0);
}

static struct pvfs_fid striped_file(struct fx_client *c, const char *name, u64 size)
{
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a;

	assert_int_equal(do_create(c, fx_root, name, PVFS_O_CREAT | PVFS_O_STRIPED | RW, 0644, &a), 0);
	fx_write(&c->f->x, &a, 0, size, &r.wtime);
	r.end = size;
	r.trunc_gen = a.trunc_gen;
	assert_int_equal(do_close(c, a.fid, RW, &r), 0);
	return a.fid;
}

/* What needs no iod goes on. */
static void others_go_on(struct fx_client *c, const char *name)
{
	struct pvfs_session_renew_req rq;
	struct pvfs_session_renew_rep rp;
	struct later *l = later_mkdir(c, MANY + c->seq);
	struct pvfs_attr a;

	assert_int_equal(fx_session_renew(c, &rq, &rp), 0);
	assert_int_equal(do_create(c, fx_root, name, PVFS_O_CREAT | PVFS_O_WRITE, 0644, &a), 0);
	assert_int_equal(do_getattr(c, a.fid, NULL, NULL), 0);
	assert_int_equal(do_close(c, a.fid, PVFS_O_WRITE, NULL), 0);
	assert_int_equal(do_unlink(c, fx_root, name), 0);
	assert_int_equal(later_end(l), 0);
}

/* Silent iods: df and truncations in any number wait, and nobody waits for them. */
static void silent_iods(void **state)
{
	struct fx_client *c = *state, many[3];
	struct fx *f = c->f;
	struct pvfs_fid fid[100];
	struct later *l[MANY];
	struct pvfs_attr a;
	char name[16];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fid); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		fid[i] = striped_file(c, name, 1000000);
	}
	for (i = 0; i < ARRAY_SIZE(many); i++)
		fx_client_init(&many[i], f, 10 + i);
	start(f);
	f->x.silent = true;
	for (i = 0; i < MANY; i++)
		l[i] = i % 3 ? later_statfs(&many[i % 3], i) :
			       later_truncate(&many[0], i / 3, fid[i / 3], 10 + i / 3);
	assert_int_equal(f->m->tasks.now, MANY);
	assert_int_equal(f->x.nheld, MANY);
	others_go_on(c, "x");
	/* Recovery in place does not wait for them either. */
	mdb_bdb_panic(f->m->db);
	others_go_on(c, "y");
	for (i = 0; i < MANY; i++)
		assert_false(later_ended(l[i]));
	fx_iods_answer(&f->x);
	for (i = 0; i < MANY; i++)
		assert_int_equal(later_end(l[i]), 0);
	for (i = 0; i < ARRAY_SIZE(fid); i++) {
		assert_int_equal(do_getattr(c, fid[i], NULL, &a), 0);
		assert_int_equal(a.size, 10 + i);
	}
	stop(f);
}

/* The second truncation of a file waits for the first one, as a task too. */
static void one_after_the_other(void **state)
{
	struct fx_client *c = *state;
	struct fx *f = c->f;
	struct pvfs_fid fid = striped_file(c, "f", 1000000);
	struct later *l[8];
	struct pvfs_attr a;
	u32 i;

	start(f);
	f->x.silent = true;
	for (i = 0; i < ARRAY_SIZE(l); i++)
		l[i] = later_truncate(c, 1 + i, fid, 100 + i);
	assert_int_equal(f->m->tasks.now, ARRAY_SIZE(l));
	assert_int_equal(f->x.nheld, 1);
	others_go_on(c, "x");
	fx_iods_answer(&f->x);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		assert_int_equal(later_end(l[i]), 0);
	assert_int_equal(do_getattr(c, fid, NULL, &a), 0);
	assert_in_range(a.size, 100, 100 + ARRAY_SIZE(l) - 1);
	stop(f);
}

/* A stuffed file that is unstuffed, and a file whose last writer has not said how long it is. */
static void unstuff_and_close(void **state)
{
	struct fx_client *c = *state;
	struct fx *f = c->f;
	struct pvfs_create_req rq = {
		.cred = fx_cred(c), .dir = fx_root, .name = PVFS_STR("s"),
		.flags = PVFS_O_CREAT | PVFS_O_WRITE, .mode = 0644,
		.layout = { .base = 0, .pcount = FX_NIODS, .ssize = 65536, .stuff_max = 16384 },
	};
	struct pvfs_create_rep rp;
	struct pvfs_head_write_req wr = { 0 };
	struct pvfs_head_write_rep wp;
	struct pvfs_unstuff_req ur = { 0 };
	struct pvfs_wreport r = { 0 };
	struct pvfs_attr a, b;
	struct later *l[2];

	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_true(rp.attr.flags & PVFS_AF_STUFFED);
	wr.fid = ur.fid = rp.attr.fid;
	wr.cap = ur.cap = rp.cap;
	c->data = "bytes";
	c->data_len = 5;
	assert_int_equal(fx_head_write(c, &wr, &wp), 0);
	c->data_len = 0;
	assert_int_equal(do_create(c, fx_root, "w", PVFS_O_CREAT | PVFS_O_STRIPED | RW, 0644, &a), 0);
	fx_write(&f->x, &a, 0, 5000, &r.wtime);
	start(f);
	f->x.silent = true;
	l[0] = later_new(c, PVFS_OP_UNSTUFF, 1);
	l[0]->len = pvfs_unstuff_req_encode(&ur, l[0]->body, sizeof(l[0]->body));
	later_begin(l[0]);
	l[1] = later_new(c, PVFS_OP_GETATTR, 2);
	{
		struct fx_client d;
		struct pvfs_getattr_req gr = { .fid = a.fid };

		fx_client_init(&d, f, 2);
		l[1]->c = d;
		l[1]->len = pvfs_getattr_req_encode(&gr, l[1]->body, sizeof(l[1]->body));
	}
	later_begin(l[1]);
	assert_int_equal(f->m->tasks.now, 2);
	others_go_on(c, "x");
	fx_iods_answer(&f->x);
	assert_int_equal(later_end(l[0]), 0);
	assert_int_equal(later_end(l[1]), 0);
	assert_int_equal(do_getattr(c, rp.attr.fid, NULL, &b), 0);
	assert_false(b.flags & PVFS_AF_STUFFED);
	assert_int_equal(b.size, 5);
	stop(f);
}

/* Who waits for a truncation that does not end gives up in its time. */
struct locker {
	struct mgr_job job;
	struct mgr *m;
	u64 ino;
	int err;
	sem_t done;
};

static void locker_fn(struct mgr_job *job)
{
	struct locker *l = container_of(job, struct locker, job);

	l->err = mgr_opens_lock(&l->m->opens, l->ino, 20);
	sem_post(&l->done);
}

static void lock_times_out(void **state)
{
	struct fx_client *c = *state;
	struct locker l = { .job.fn = locker_fn, .m = c->f->m, .ino = 77 };
	u32 i;

	start(c->f);
	sem_init(&l.done, 0, 0);
	assert_int_equal(mgr_opens_lock(&l.m->opens, l.ino, 0), 0);
	for (i = 0; i < 3; i++) {
		mgr_task_begin(&l.m->tasks, &l.job);
		while (sem_wait(&l.done))
			;
		assert_int_equal(l.err, -EAGAIN);
	}
	mgr_opens_unlock(&l.m->opens, l.ino);
	mgr_task_begin(&l.m->tasks, &l.job);
	while (sem_wait(&l.done))
		;
	assert_int_equal(l.err, 0);
	mgr_opens_unlock(&l.m->opens, l.ino);
	sem_destroy(&l.done);
	stop(c->f);
}

/* One flush of the log answers all that stand in line, many times as many as there are threads. */
static void group_commit(void **state)
{
	struct fx_client *c = *state;
	struct fx *f = c->f;
	struct later *l[100], *late;
	u32 i;

	/* The line is there before its thread is; and the disk is slow. */
	f->conf.durability = PVFS_DURABLE_SYNC;
	start(f);
	f->m->log.running = true;
	f->m->log.took_us = 1000000;
	for (i = 0; i < ARRAY_SIZE(l); i++)
		l[i] = later_mkdir(c, i);
	assert_int_equal(f->m->tasks.now, ARRAY_SIZE(l));
	for (i = 0; i < ARRAY_SIZE(l); i++)
		assert_false(later_ended(l[i]));
	/* Committed and seen, but not answered. */
	assert_int_equal(do_lookup(c, fx_root, "d99", NULL), 0);
	assert_int_equal(mgr_log_start(f->m), 0);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		assert_int_equal(later_end(l[i]), 0);
	assert_int_equal(f->m->log.flushes, 1);
	assert_int_equal(f->m->log.released, ARRAY_SIZE(l));
	assert_int_equal(f->m->log.most, ARRAY_SIZE(l));
	mgr_log_stop(f->m);
	/* Who stands in line while the database is recovered is executed again before it is answered. */
	f->m->log.running = true;
	late = later_mkdir(c, 100);
	assert_int_equal(f->m->tasks.now, 1);
	mdb_bdb_panic(f->m->db);
	assert_int_equal(do_lookup(c, fx_root, "d99", NULL), 0);
	assert_int_equal(mgr_log_start(f->m), 0);
	assert_int_equal(later_end(late), 0);
	assert_int_equal(do_lookup(c, fx_root, "d100", NULL), 0);
	assert_int_equal(f->m->log.flushes, 2);
	/* On a disk that is quick, who is alone waits for no thread; who is second does. */
	f->m->log.took_us = 0;
	late = later_mkdir(c, 101);
	assert_true(later_ended(late));
	assert_int_equal(later_end(late), 0);
	assert_int_equal(f->m->log.released, ARRAY_SIZE(l) + 1);
	f->m->log.took_us = 0;
	f->m->log.alone = true;
	late = later_mkdir(c, 102);
	assert_int_equal(later_end(late), 0);
	assert_int_equal(f->m->log.released, ARRAY_SIZE(l) + 2);
	f->m->log.alone = false;
	stop(f);
}

static struct pvfs_fid stuffed_file(struct fx_client *c, const char *name, struct pvfs_cap *cap)
{
	struct pvfs_create_req rq = {
		.cred = fx_cred(c), .dir = fx_root, .name = PVFS_STR(name),
		.flags = PVFS_O_CREAT | RW, .mode = 0644,
		.layout = { .base = 0, .pcount = FX_NIODS, .ssize = 65536, .stuff_max = 16384 },
	};
	struct pvfs_create_rep rp;

	assert_int_equal(fx_create(c, &rq, &rp), 0);
	assert_true(rp.attr.flags & PVFS_AF_STUFFED);
	*cap = rp.cap;
	return rp.attr.fid;
}

/* Heads in files: the disk that they are synced on holds up a worker, and nobody else. */
static void slow_disk(void **state)
{
	static const char bytes[] = "abcdef";
	struct pvfs_files_write_req fr = { .dir = fx_root, .umask = 022 };
	struct pvfs_file_result result;
	struct pvfs_files_write_rep fp;
	struct pvfs_head_write_req wr = { 0 };
	struct pvfs_setlayout_rep lp;
	struct pvfs_setlayout_req lr = {
		.fid = fx_root,
		.layout = { .base = MGR_BASE_ANY, .pcount = FX_NIODS, .ssize = 65536, .stuff_max = 16384 },
	};
	struct fx_client *c = *state;
	struct later *l[4], *mk;
	struct pvfs_wire w;
	struct pvfs_attr a;
	struct fx *f = c->f;
	char name[16];
	u8 list[200];
	u32 i;

	main_thread = pthread_self();
	f->conf.stuff_store = PVFS_STUFF_FILE;
	f->conf.durability = PVFS_DURABLE_SYNC;
	fx_reopen(f);
	lr.cred = fx_cred(c);
	assert_int_equal(fx_setlayout(c, &lr, &lp), 0);
	sem_init(&disk, 0, 0);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		wr.fid = stuffed_file(c, name, &wr.cap);
		l[i] = later_new(c, PVFS_OP_HEAD_WRITE, 1 + i);
		l[i]->c.data = bytes;
		l[i]->c.data_len = 5;
		l[i]->len = pvfs_head_write_req_encode(&wr, l[i]->body, sizeof(l[i]->body));
	}
	pvfs_wire_init(&w, list, sizeof(list));
	pvfs_put_file_wanted(&w, &(struct pvfs_file_wanted){ .name = PVFS_STR("m0"), .mode = 0644,
							     .len = 6 });
	fr.cred = fx_cred(c);
	fr.files = (struct pvfs_str){ .p = list, .len = w.p - list };
	l[3] = later_new(c, PVFS_OP_FILES_WRITE, 5);
	l[3]->c.data = bytes;
	l[3]->c.data_len = 6;
	l[3]->len = pvfs_files_write_req_encode(&fr, l[3]->body, sizeof(l[3]->body));
	start(f);
	assert_int_equal(mgr_log_start(f->m), 0);
	slow = true;
	for (i = 0; i < ARRAY_SIZE(l); i++)
		later_begin(l[i]);
	assert_false(on_main);
	for (i = 0; syncing < WORKERS - 1 && i < 20000; i++)
		usleep(1000);
	assert_int_equal(syncing, WORKERS - 1);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		assert_false(later_ended(l[i]));
	/* Reading, and what changes no head. */
	assert_int_equal(do_lookup(c, fx_root, "s0", &a), 0);
	/* ... also what parks for the log's flush, and needs a worker to go on. */
	f->m->log.took_us = 1000000;
	mk = later_mkdir(c, 6);
	assert_int_equal(later_end(mk), 0);
	assert_int_equal(syncing, WORKERS - 1);
	slow = false;
	for (i = 0; i < WORKERS; i++)
		sem_post(&disk);
	while (sem_wait(&l[3]->done))
		;
	assert_int_equal(l[3]->err, 0);
	assert_int_equal(pvfs_files_write_rep_decode(&fp, l[3]->op.body, l[3]->op.body_len), 0);
	pvfs_wire_init(&w, fp.results.p, fp.results.len);
	pvfs_get_file_result(&w, &result);
	assert_int_equal(w.err, 0);
	assert_int_equal(pvfs_wire_left(&w), 0);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.len, 6);
	sem_post(&l[3]->done);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		assert_int_equal(later_end(l[i]), 0);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(do_lookup(c, fx_root, name, &a), 0);
		assert_int_equal(a.size, 5);
	}
	assert_int_equal(do_lookup(c, fx_root, "m0", &a), 0);
	assert_int_equal(a.size, 6);
	assert_false(on_main);
	sem_destroy(&disk);
	stop(f);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(silent_iods), T(one_after_the_other), T(unstuff_and_close), T(lock_times_out),
		T(group_commit), T(slow_disk),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
