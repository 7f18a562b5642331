// SPDX-License-Identifier: GPL-2.0
/*
 * mgr_torture_test.c - many threads in few directories, with the invariants checked afterwards; and
 * a manager that is killed in the middle, recovered, and asked the same things again.
 *
 * PVFS_TORTURE scales the work (default 1).
 */
#include "mgr_fixture.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MKW (PVFS_O_CREAT | PVFS_O_WRITE)
#define NTHREADS 6u
#define PANIC_STEPS 2000u
#define NDIRS 6u
#define NNAMES 150u

static unsigned int scale(void)
{
	const char *s = getenv("PVFS_TORTURE");

	return s ? max(atoi(s), 1) : 1;
}

struct worker {
	struct fx_client c;
	pthread_t thread;
	unsigned int seed, steps;
	struct pvfs_fid *dir;
	atomic_bool *stop;
	const char *wrong;		/* what must not happen */
	int wrong_err;
};

static bool one_of(int err, const int *ok)
{
	for (; *ok; ok++)
		if (err == *ok)
			return true;
	return err == 0;
}

#define EXPECT(w, err, ...) do { \
		int err_ = (err); \
		static const int ok_[] = { __VA_ARGS__, 0 }; \
		if (!one_of(err_, ok_) && !(w)->wrong) { \
			(w)->wrong = #err; \
			(w)->wrong_err = err_; \
		} \
	} while (0)

static unsigned int rnd(struct worker *w, unsigned int n)
{
	return rand_r(&w->seed) % n;
}

static void step_xattr(struct worker *w, struct pvfs_fid fid)
{
	static const char *const name[] = { "user.a", "user.b", "security.capability" };
	static const u8 value[9000];
	const char *n = name[rnd(w, ARRAY_SIZE(name))];

	if (rnd(w, 3))
		EXPECT(w, do_setxattr(&w->c, fid, n, value, rnd(w, sizeof(value)), 0, NULL), -ESTALE);
	else
		EXPECT(w, do_removexattr(&w->c, fid, n, NULL), -ESTALE, -ENODATA);
}

/* Sets an ACL, removes it, or changes a mode that it has to agree with. */
static void step_acl(struct worker *w, struct pvfs_fid fid, const char *name)
{
	static const struct pvfs_acl acl = { .n = 5, .e = {
		{ PVFS_ACL_USER_OBJ, 7, 0xffffffff }, { PVFS_ACL_USER, 6, 1000 }, { PVFS_ACL_GROUP_OBJ, 5, 0xffffffff },
		{ PVFS_ACL_MASK, 7, 0xffffffff }, { PVFS_ACL_OTHER, 1, 0xffffffff },
	} };
	struct pvfs_setattr_req rq = { .cred = fx_cred(&w->c), .fid = fid, .valid = PVFS_SA_MODE,
				       .mode = rnd(w, 01000) };
	struct pvfs_setattr_rep rp;
	u8 buf[PVFS_ACL_BYTES_MAX];

	switch (rnd(w, 3)) {
	case 0:
		EXPECT(w, do_setxattr(&w->c, fid, name, buf, pvfs_acl_encode(&acl, buf), 0, NULL), -ESTALE);
		break;
	case 1:
		EXPECT(w, do_removexattr(&w->c, fid, name, NULL), -ESTALE);
		break;
	default:
		EXPECT(w, fx_setattr(&w->c, &rq, &rp), -ESTALE);
	}
}

static void step(struct worker *w)
{
	struct pvfs_fid da = w->dir[rnd(w, NDIRS)], db = w->dir[rnd(w, NDIRS)];
	struct pvfs_readdir_req rd = { .dir = da, .bytes = 65536, .flags = PVFS_RD_ATTRS };
	struct pvfs_readdir_rep rr;
	char a[16], b[16];
	struct pvfs_attr at;

	snprintf(a, sizeof(a), "n%u", rnd(w, NNAMES));
	snprintf(b, sizeof(b), "n%u", rnd(w, NNAMES));
	switch (rnd(w, 14)) {
	case 0:
	case 1:
		if (do_create(&w->c, da, a, MKW, 0644, &at) == 0) {
			EXPECT(w, do_getattr(&w->c, at.fid, NULL, NULL), -ESTALE);
			if (rnd(w, 2))
				do_truncate(&w->c, at.fid, rnd(w, 1000), NULL, NULL);
			EXPECT(w, do_close(&w->c, at.fid, PVFS_O_WRITE, NULL), 0);
		}
		break;
	case 2:
		EXPECT(w, do_mkdir(&w->c, da, a, 0755, NULL), -EEXIST);
		break;
	case 3:
		EXPECT(w, do_unlink(&w->c, da, a), -ENOENT, -EISDIR);
		break;
	case 4:
		EXPECT(w, do_rmdir(&w->c, da, a), -ENOENT, -ENOTDIR, -ENOTEMPTY);
		break;
	case 5:
	case 6:
		EXPECT(w, do_rename(&w->c, da, a, db, b, rnd(w, 2)), -ENOENT, -EEXIST, -EISDIR,
		       -ENOTDIR,
		       -ENOTEMPTY, -EINVAL);
		break;
	case 7:
		if (do_lookup(&w->c, da, a, &at) == 0)
			EXPECT(w, do_link(&w->c, at.fid, db, b), -EEXIST, -EPERM, -ESTALE, -ENOENT);
		break;
	case 8:
		EXPECT(w, do_symlink(&w->c, da, a, "target", NULL), -EEXIST);
		break;
	case 9:
		EXPECT(w, fx_readdir(&w->c, &rd, &rr), 0);
		break;
	case 10:
		/* Directories within directories, that move about. */
		if (do_lookup(&w->c, da, a, &at) == 0 && S_ISDIR(at.mode)) {
			EXPECT(w, do_mkdir(&w->c, at.fid, b, 0755, NULL), -EEXIST, -ESTALE);
			EXPECT(w, do_rename(&w->c, db, b, at.fid, a, 0), -ENOENT, -EEXIST, -EISDIR,
			       -ENOTDIR,
			       -ENOTEMPTY, -EINVAL, -ESTALE);
			EXPECT(w, do_rename(&w->c, at.fid, b, db, a, 0), -ENOENT, -EEXIST, -EISDIR,
			       -ENOTDIR,
			       -ENOTEMPTY, -EINVAL, -ESTALE);
		}
		break;
	case 11:
		if (do_lookup(&w->c, da, a, &at) == 0 && !S_ISLNK(at.mode))
			step_xattr(w, at.fid);
		break;
	case 12:
		step_acl(w, da, PVFS_ACL_DEFAULT);
		if (do_lookup(&w->c, da, a, &at) == 0 && !S_ISLNK(at.mode))
			step_acl(w, at.fid, PVFS_ACL_ACCESS);
		break;
	default:
		if (do_lookup(&w->c, da, a, &at) == 0 && S_ISREG(at.mode) &&
		    do_open(&w->c, at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL) == 0)
			EXPECT(w, do_close(&w->c, at.fid, PVFS_O_READ | PVFS_O_WRITE, NULL), 0);
	}
}

static void *torture_thread(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	for (i = 0; i < w->steps && !w->wrong; i++)
		step(w);
	free(fx_op.payload);
	fx_op.payload = NULL;
	return NULL;
}

/* A name that always exists is always found, though what it names changes all the time. */
static void *swap_thread(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(w->stop) && !w->wrong) {
		EXPECT(w, do_mkfile(&w->c, w->dir[0], "swap.new", 0644, NULL), 0);
		EXPECT(w, do_rename(&w->c, w->dir[0], "swap.new", w->dir[1], "always", 0), 0);
	}
	return NULL;
}

static void *look_thread(void *arg)
{
	struct worker *w = arg;

	while (!atomic_load(w->stop) && !w->wrong)
		EXPECT(w, do_lookup(&w->c, w->dir[1], "always", NULL), 0);
	return NULL;
}

static void torture(void **state)
{
	struct fx *f = fx_new();
	struct worker w[NTHREADS + 2];
	struct fx_client c[2];
	struct pvfs_fid dir[NDIRS];
	struct mgr_check_result r;
	struct pvfs_attr at;
	atomic_bool stop = false;
	unsigned int i;

	fx_client_init(&c[0], f, 1);
	fx_client_init(&c[1], f, 2);
	for (i = 0; i < NDIRS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(do_mkdir(&c[0], fx_root, name, 0755, &at), 0);
		dir[i] = at.fid;
	}
	assert_int_equal(do_mkfile(&c[0], dir[1], "always", 0644, NULL), 0);
	assert_int_equal(mgr_core_start(f->m), 0);
	for (i = 0; i < NTHREADS + 2; i++) {
		w[i] = (struct worker){
			.c = fx_thread(&c[i % 2], 1 + i), .seed = 100 + i, .steps = 4000 * scale(),
			.dir = dir,
			.stop = &stop,
		};
		assert_int_equal(pthread_create(&w[i].thread, NULL, i < NTHREADS ? torture_thread :
						i == NTHREADS ? swap_thread : look_thread, &w[i]),
							0);
	}
	for (i = 0; i < NTHREADS + 2; i++) {
		if (i == NTHREADS)
			atomic_store(&stop, true);
		pthread_join(w[i].thread, NULL);
		if (w[i].wrong)
			print_error("%s: %s\n", w[i].wrong, strerror(-w[i].wrong_err));
	}
	for (i = 0; i < NTHREADS + 2; i++)
		assert_null(w[i].wrong);
	mgr_core_stop(f->m);
	fx_check(f);
	print_message("# %llu retries, %llu reaped\n", (unsigned long long)f->m->count.retries,
		      (unsigned long long)f->m->count.reaped);
	assert_int_equal(f->m->opens.files, 0);
	/* And once more after all of it went through the log. */
	fx_reopen(f);
	fx_end_grace(f);
	fx_check(f);
	assert_int_equal(mgr_reap_pass(f->m), 0);
	assert_int_equal(mgr_check(f->m, stderr, &r), 0);
	assert_int_equal(r.reap + r.orphans, 0);
	fx_free(f);
}

/* ---- killed ---- */

/* What the child was about to do, and what it was told; shared with the parent. */
struct journal {
	atomic_uint started[NTHREADS], acked[NTHREADS];
	atomic_ullong session;
};

static void job_name(char *buf, size_t n, unsigned int thread, unsigned int seq)
{
	snprintf(buf, n, "t%u-%u", thread, seq);
}

/*
 * Request number @seq of a thread: odd ones make a directory, even ones rename it. Never right
 * twice.
 */
static int job(struct fx_client *c, unsigned int thread, unsigned int seq)
{
	char name[32], to[40];

	job_name(name, sizeof(name), thread, (seq - 1) | 1);
	snprintf(to, sizeof(to), "%s-done", name);
	c->seq = seq - 1;
	if (seq % 2)
		return do_mkdir(c, fx_root, name, 0755, NULL);
	return do_rename(c, fx_root, name, fx_root, to, 0);
}

struct killed {
	struct fx_client c;
	struct journal *j;
	unsigned int thread;
	unsigned int from;
};

static void *killed_thread(void *arg)
{
	struct killed *k = arg;
	unsigned int seq;

	for (seq = k->from;; seq++) {
		atomic_store(&k->j->started[k->thread], seq);
		if (job(&k->c, k->thread, seq)) {
			fprintf(stderr, "# request %u of thread %u failed\n", seq, k->thread);
			_exit(1);
		}
		atomic_store(&k->j->acked[k->thread], seq);
	}
	return NULL;
}

static void child(struct fx *f, struct journal *j)
{
	struct killed k[NTHREADS];
	struct fx_client c;
	pthread_t t;
	unsigned int i;

	if (fx_try_open(f) || mgr_core_start(f->m))
		_exit(1);
	fx_client_init(&c, f, 1);
	atomic_store(&j->session, c.session);
	for (i = 0; i < NTHREADS; i++) {
		k[i] = (struct killed){
			.c = fx_thread(&c, i), .j = j, .thread = i,
			.from = atomic_load(&j->acked[i]) + 1,
		};
		if (pthread_create(&t, NULL, killed_thread, &k[i]))
			_exit(1);
	}
	pause();
	_exit(1);
}

/*
 * The parent asks again what was under way, then looks whether all that was acknowledged is there.
 */
static void after_kill(struct fx *f, struct journal *j)
{
	struct fx_client c = { .f = f, .session = atomic_load(&j->session) };
	unsigned int i, seq, names = 0;
	struct mgr_check_result r;
	char name[32], to[40];

	fx_start(f);
	fx_check(f);
	assert_true(f->m->files_stale);
	assert_int_equal(mgr_core_start(f->m), 0);
	for (i = 0; i < 6000 && f->m->files_stale; i++)
		usleep(10000);
	assert_false(f->m->files_stale);
	mgr_core_stop(f->m);
	assert_int_equal(mgr_check(f->m, stderr, &r), 0);
	assert_int_equal(mgr_files(f->m), r.inodes);
	for (i = 0; i < NTHREADS; i++) {
		struct fx_client t = fx_thread(&c, i);
		unsigned int started = atomic_load(&j->started[i]);

		/* Done or not when the process died: done once now, and successful. */
		if (started) {
			assert_int_equal(job(&t, i, started), 0);
			assert_int_equal(job(&t, i, started), 0);
			atomic_store(&j->acked[i], started);
		}
		for (seq = 1; seq <= started; seq += 2) {
			job_name(name, sizeof(name), i, seq);
			snprintf(to, sizeof(to), "%s-done", name);
			assert_int_equal(do_lookup(&t, fx_root, seq + 1 <= started ? to : name,
						   NULL), 0);
			names++;
		}
	}
	assert_int_equal(mgr_check(f->m, stderr, &r), 0);
	assert_int_equal(r.problems, 0);
	assert_int_equal(r.entries, names);
	print_message("# %u names, %llu replays\n", names, (unsigned long long)f->m->count.replays);
	fx_stop(f);
}

static void kill_and_recover(enum pvfs_durability how)
{
	struct fx *f = fx_new();
	struct journal *j = mmap(NULL, sizeof(*j), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int round, i;
	int status;
	pid_t pid;

	assert_ptr_not_equal(j, MAP_FAILED);
	fx_stop(f);
	f->conf.durability = how;
	for (round = 0; round < 4 * scale(); round++) {
		fflush(NULL);
		atomic_store(&j->session, 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			child(f, j);
		/* Not before it is at work, however busy the machine is. */
		for (i = 0; i < 30000 && !atomic_load(&j->session); i++)
			usleep(1000);
		usleep(100000 + round * 37000);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		after_kill(f, j);
	}
	munmap(j, sizeof(*j));
	fx_start(f);
	fx_free(f);
}

static void killed_sync(void **state)
{
	kill_and_recover(PVFS_DURABLE_SYNC);
}

static void killed_write(void **state)
{
	kill_and_recover(PVFS_DURABLE_WRITE);
}

/* ---- recovery in place under load ---- */

static void *panic_thread(void *arg)
{
	struct worker *w = arg;

	fx_panic_until(w->c.f, w->stop);
	return NULL;
}

static void *mkdir_thread(void *arg)
{
	struct worker *w = arg;
	unsigned int i;
	char name[32];

	for (i = 0; i < w->steps && !w->wrong; i++) {
		snprintf(name, sizeof(name), "m%u-%u", w->seed, i);
		EXPECT(w, do_mkdir(&w->c, w->dir[0], name, 0755, NULL), 0);
		EXPECT(w, do_lookup(&w->c, w->dir[0], name, NULL), 0);
	}
	return NULL;
}

static void panics_under_load(void **state)
{
	struct fx *f = fx_new();
	struct pvfs_fid dir = fx_root;
	atomic_bool stop = false;
	struct mgr_check_result r;
	struct worker w[5];
	struct fx_client c;
	unsigned int i;

	fx_stop(f);
	f->conf.durability = PVFS_DURABLE_SYNC;
	fx_start(f);
	fx_client_init(&c, f, 1);
	for (i = 0; i < 5; i++) {
		w[i] = (struct worker){
			.c = fx_thread(&c, i), .seed = i, .steps = PANIC_STEPS, .dir = &dir,
			.stop = &stop,
		};
		assert_int_equal(pthread_create(&w[i].thread, NULL, i < 4 ? mkdir_thread :
						panic_thread, &w[i]), 0);
	}
	for (i = 0; i < 5; i++) {
		if (i == 4)
			atomic_store(&stop, true);
		pthread_join(w[i].thread, NULL);
		if (w[i].wrong)
			print_error("%s: %s\n", w[i].wrong, strerror(-w[i].wrong_err));
		assert_null(w[i].wrong);
	}
	print_message("# %llu restarts of requests\n", (unsigned long long)f->m->count.restarts);
	assert_int_equal(mgr_check(f->m, stderr, &r), 0);
	assert_int_equal(r.entries, 4 * PANIC_STEPS);
	fx_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torture),
		cmocka_unit_test(killed_write),
		cmocka_unit_test(killed_sync),
		cmocka_unit_test(panics_under_load),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
