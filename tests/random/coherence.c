// SPDX-License-Identifier: GPL-2.0-only
/*
 * coherence.c - are two clients as coherent as two processes? Workers, half of them on each mount,
 * work on the same few files and names at once and write down what they did and saw, with the times
 * of call and return. After each round it is checked that one order explains it all; see lin.h and
 * coherence_check.c.
 *
 *	coherence [-s SEED] [-w WORKERS] [-r ROUNDS] [-n OPS] [-p PART] [-m] [-x WHAT] DIR [DIR2 [DIR3]]
 *
 *	-w	how many workers (default 6)
 *	-r	how many rounds (default 20), each with new files
 *	-n	operations of each worker in a round (default 60)
 *	-p	files, appends or names only
 *	-m	files are stored to through mappings, too, on all sides, and looked at through those that can't be stored to
 *	-x	falsifies one result of the last round: block, size, name, append or prefix. The run must fail.
 *
 * HOST:PORT:DIR is a directory of another machine, where `far serve` runs (far_main.c). The workers
 * are here all the same, and one clock has all times: a call's lie around the exchange with the
 * other machine, so they say less of when it was made, and nothing false.
 *
 * In every second round nobody keeps a file open for writing: who writes or truncates opens it for that, and
 * fewer do. So leases on the files come and go, and what they let a client keep.
 *
 * The seed fixes who does what, not when. Exits with 1 when something is wrong.
 */
#include "coherence.h"
#include "far.h"
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

#define WORKERS_MAX 32
#define APPEND_MAX (32 << 20)

static struct {
	int sides, workers, rounds, ops;
	uint64_t seed;
	const char *part, *sabotage;
	struct {
		char dir[400];
		char *far;	/* HOST:PORT; NULL: this machine */
	} side[CO_SIDES];
} run = { .workers = 6, .rounds = 20, .ops = 60 };

/* Between the parent and its workers. */
struct shared {
	pthread_barrier_t barrier;
	bool failed;
	char why[300];
	struct {
		size_t n;
		struct co_rec *rec;
	} worker[WORKERS_MAX + 1];	/* the last: the parent itself */
};

static struct shared *sh;
struct co_worker co;
static unsigned char *scratch;	/* APPEND_MAX bytes */
static uint64_t waited;
static struct far *connection[CO_SIDES];
static int append_fd;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

struct co_rec *co_start(int kind, int obj, int64_t a, int64_t b)
{
	struct co_rec *r = &sh->worker[co.me].rec[sh->worker[co.me].n];

	*r = (struct co_rec){ .who = co.me, .kind = kind, .obj = obj, .a = a, .b = b };
	r->call = now_ns();
	return r;
}

void co_end(struct co_rec *r)
{
	r->ret = now_ns();
	sh->worker[co.me].n++;
}

/* A call failed as none may: the round is lost. */
void co_broken(const char *what)
{
	if (!__atomic_exchange_n(&sh->failed, true, __ATOMIC_SEQ_CST))
		snprintf(sh->why, sizeof(sh->why), "worker %d, side %d: %s: %s", co.me, co.me % run.sides,
			 what,
			 strerror(errno));
}

uint64_t co_version(void)
{
	return (uint64_t)(co.me + 1) * 1000000 + sh->worker[co.me].n + 1;
}

/* ------------------------------------------------------------------ appends */

static void do_append(void)
{
	int words = rnd_below(&co.rnd, rnd_one_in(&co.rnd, 16) ? 9000 : 400);
	size_t len = sizeof(struct co_append) + 8 * words;
	uint64_t id = co_version();
	struct co_rec *r;
	ssize_t n;

	co_append_fill(scratch, id, len);
	r = co_start(CO_APPEND, -1, id, len);
	n = far_write(co.at, append_fd, scratch, len);
	co_end(r);
	if (n != (ssize_t)len)
		co_broken("append");
}

static void do_append_read(bool anew)
{
	struct co_rec *r = co_start(CO_APPEND_READ, -1, -1, 0);
	int fd = anew ? far_openat(co.at, co.dir_fd, "append", O_RDONLY, 0) : append_fd;
	int64_t i;

	r->result = far_pread(co.at, fd, scratch, APPEND_MAX, 0);
	co_end(r);
	if (r->result < 0)
		co_broken("read of the appended file");
	if (anew)
		far_close(co.at, fd);
	if (r->result < 0)
		return;
	r->hash = co_hash(scratch, r->result);
	for (i = 0; i + 8 <= r->result && r->a < 0; i += 8)
		if (!memcmp(scratch + i, "\0\0\0\0\0\0\0", 8))
			r->a = i;
}

static void do_append_stat(void)
{
	struct co_rec *r = co_start(CO_APPEND_STAT, -1, 0, 0);
	struct stat st;
	int err = far_fstat(co.at, append_fd, &st);

	r->result = st.st_size;
	co_end(r);
	if (err < 0)
		co_broken("stat of the appended file");
}

static void appends_op(void)
{
	switch (rnd_below(&co.rnd, 5)) {
	case 0:
		do_append_read(rnd_one_in(&co.rnd, 2));
		break;
	case 1:
		do_append_stat();
		break;
	default:
		do_append();
	}
}

/* ------------------------------------------------------------------ names */

static const char *name_of(int set, int name)
{
	static const char *const all[CO_SETS][CO_NAMES] = { { "r0", "r1", "r2" },
							    { "l0", "l1", "l2" } };

	return all[set][name];
}

/* Made in one step with what it stands for: an inode's number, or a link's target. */
static void do_create(int set, int name)
{
	const char *n = name_of(set, name);
	struct co_rec *r;
	struct stat st;
	char target[24];
	int fd;

	snprintf(target, sizeof(target), "%llu", (unsigned long long)co_version());
	r = co_start(CO_CREATE, set, name, strtoll(target, NULL, 10));
	if (set)
		fd = far_symlinkat(co.at, target, co.dir_fd, n);
	else
		fd = far_openat(co.at, co.dir_fd, n, O_CREAT | O_EXCL | O_RDWR, 0644);
	r->result = fd < 0 ? errno : 0;
	co_end(r);
	if (r->result && r->result != EEXIST)
		co_broken("create");
	if (r->result || set)
		return;
	if (far_fstat(co.at, fd, &st) < 0)
		co_broken("fstat of what was created");
	r->b = st.st_ino;
	far_close(co.at, fd);
}

static void do_look(int set, int name, bool by_open)
{
	struct co_rec *r = co_start(CO_LOOK, set, name, 0);
	const char *n = name_of(set, name);
	char target[24];
	struct stat st;
	ssize_t len;

	if (set) {
		len = far_readlinkat(co.at, co.dir_fd, n, target, sizeof(target) - 1);
		r->result = len < 0 ? errno : 0;
		co_end(r);
		target[len < 0 ? 0 : len] = 0;
		r->b = strtoll(target, NULL, 10);
	} else if (by_open) {
		int fd = far_openat(co.at, co.dir_fd, n, O_RDONLY, 0);

		r->result = fd < 0 ? errno : 0;
		co_end(r);
		if (fd >= 0 && far_fstat(co.at, fd, &st) < 0)
			co_broken("fstat of what was opened");
		r->b = fd < 0 ? 0 : (int64_t)st.st_ino;
		if (fd >= 0)
			far_close(co.at, fd);
	} else {
		r->result = far_fstatat(co.at, co.dir_fd, n, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
		co_end(r);
		r->b = r->result ? 0 : (int64_t)st.st_ino;
	}
	if (r->result && r->result != ENOENT) {
		errno = r->result;
		co_broken("look up");
	}
}

static void names_op(void)
{
	static const unsigned int flags[] = { 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	int set = rnd_below(&co.rnd, CO_SETS), name = rnd_below(&co.rnd, CO_NAMES), to, how;
	struct co_rec *r;

	switch (rnd_below(&co.rnd, 10)) {
	case 0:
	case 1:
	case 2:
		do_create(set, name);
		return;
	case 3:
		r = co_start(CO_UNLINK, set, name, 0);
		r->result = far_unlinkat(co.at, co.dir_fd, name_of(set, name), 0) < 0 ? errno : 0;
		break;
	case 4:
	case 5:
	case 6:
		how = rnd_one_in(&co.rnd, 2) ? CO_EXCHANGE - CO_RENAME : rnd_below(&co.rnd, 3);
		to = (name + 1 + rnd_below(&co.rnd, CO_NAMES - 1)) % CO_NAMES;
		r = co_start(CO_RENAME + how, set, name, to);
		r->result = far_renameat2(co.at, co.dir_fd, name_of(set, name), co.dir_fd, name_of(set, to),
				      flags[how]) < 0 ? errno : 0;
		break;
	default:
		do_look(set, name, rnd_one_in(&co.rnd, 2));
		return;
	}
	/* Of names that others exchanged twice meanwhile: not done (docs/posix.md). */
	if (r->result == EBUSY && r->kind == CO_EXCHANGE)
		return;
	co_end(r);
	if (r->result && r->result != ENOENT && r->result != EEXIST) {
		errno = r->result;
		co_broken(r->kind == CO_UNLINK ? "unlink" : "rename");
	}
}

/* ------------------------------------------------------------------ rounds */

/* Each process has connections of its own. */
static void go_to(int side)
{
	if (run.side[side].far && !connection[side]) {
		connection[side] = far_connect(run.side[side].far);
		if (!connection[side])
			rnd_die("%s: %s", run.side[side].far, strerror(errno));
	}
	co.at = connection[side];
}

static void open_all(int side, int round, bool make)
{
	char path[480];
	int i;

	go_to(side);
	co.shut = round % 2 && !make;
	snprintf(path, sizeof(path), "%s/round%d", run.side[side].dir, round);
	if (make && far_mkdirat(co.at, AT_FDCWD, path, 0755) < 0)
		co_broken("mkdir");
	co.dir_fd = far_openat(co.at, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (co.dir_fd < 0)
		co_broken("open of the directory");
	for (i = 0; i < CO_FILES; i++) {
		snprintf(path, sizeof(path), "f%d", i);
		co.file_fd[i] = far_openat(co.at, co.dir_fd, path, (co.shut ? O_RDONLY : O_RDWR) | (make ? O_CREAT : 0),
				       0644);
		if (co.file_fd[i] < 0)
			co_broken("open");
	}
	append_fd = far_openat(co.at, co.dir_fd, "append", O_RDWR | O_APPEND | (make ? O_CREAT : 0), 0644);
	if (append_fd < 0)
		co_broken("open");
}

static void close_all(void)
{
	int i;

	for (i = 0; i < CO_FILES; i++)
		far_close(co.at, co.file_fd[i]);
	far_close(co.at, append_fd);
	co_files_end();
	far_close(co.at, co.dir_fd);
}

static void work(int round)
{
	bool files = !run.part || !strcmp(run.part, "files");
	bool appends = !run.part || !strcmp(run.part, "appends");
	bool some_names = !run.part || !strcmp(run.part, "names");
	int i;

	for (i = 0; i < run.ops && !sh->failed; ) {
		unsigned int pick = rnd_below(&co.rnd, 10);

		if (pick < 5 && files)
			co_files_op();
		else if (pick >= 5 && pick < 6 && appends)
			appends_op();
		else if (pick >= 6 && some_names)
			names_op();
		else
			continue;
		i++;
		if (rnd_one_in(&co.rnd, 8))
			sched_yield();
	}
}

static void worker(int number)
{
	int round;

	co.me = number;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rnd_seed(&co.rnd, run.seed, 100 + co.me);
	for (round = 0; round < run.rounds; round++) {
		pthread_barrier_wait(&sh->barrier);
		open_all(co.me % run.sides, round, false);
		sh->worker[co.me].n = 0;
		pthread_barrier_wait(&sh->barrier);
		work(round);
		close_all();
		pthread_barrier_wait(&sh->barrier);
		if (sh->failed)
			break;
	}
	_exit(0);
}

/* What each side shows when all is over belongs to the history. */
static void final_look(int round)
{
	int side, i, k;

	sh->worker[co.me].n = 0;
	for (side = 0; side < run.sides; side++) {
		open_all(side, round, false);
		for (i = 0; i < CO_FILES; i++) {
			co_files_look(i);
		}
		for (i = 0; i < CO_SETS; i++)
			for (k = 0; k < CO_NAMES; k++)
				do_look(i, k, false);
		do_append_stat();
		do_append_read(false);
		if (side < run.sides - 1)
			close_all();
	}
}

static void falsify(struct co_rec *all, size_t n)
{
	static const struct {
		const char *what;
		int kind;
	} kinds[] = { { "block", CO_READ }, { "size", CO_FSTAT }, { "name", CO_LOOK },
		      { "append", CO_APPEND }, { "prefix", CO_APPEND_READ } };
	int kind = CO_READ;
	size_t i = n, k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (!strcmp(run.sabotage, kinds[k].what))
			kind = kinds[k].kind;
	while (i-- && all[i].kind != kind)
		;
	if (i == (size_t)-1)
		rnd_die("nothing to falsify");
	switch (kind) {
	case CO_READ:
		/* As if the cache had an older version, if there was one. */
		for (k = 0; k < n; k++)
			if (all[k].kind == CO_WRITE && all[k].obj == all[i].obj &&
			    all[k].a == all[i].a &&
			    all[k].b != all[i].first)
				break;
		all[i].result = CO_BLOCK;
		all[i].first = all[i].last = k < n ? all[k].b : 77;
		break;
	case CO_FSTAT:
		all[i].result = all[i].result ? 0 : CO_STRIDE;
		break;
	case CO_LOOK:
		all[i].b = all[i].result ? 77 : 0;
		all[i].result = all[i].result ? 0 : ENOENT;
		break;
	case CO_APPEND:
		all[i].a++;
		break;
	default:
		all[i].hash ^= 1;
	}
}

static int check_round(int round, uint64_t *total, int *undecided)
{
	size_t n = 0, i;
	ssize_t len;
	struct co_rec *all;
	int bad = 0;

	final_look(round);
	for (i = 0; i <= (size_t)run.workers; i++)
		n += sh->worker[i].n;
	all = rnd_alloc(n * sizeof(*all));
	for (i = n = 0; i <= (size_t)run.workers; i++) {
		memcpy(all + n, sh->worker[i].rec, sh->worker[i].n * sizeof(*all));
		n += sh->worker[i].n;
	}
	*total += n;
	for (i = 0; i < n; i++)
		if (all[i].who < run.workers)
			waited += all[i].ret - all[i].call;
	if (run.sabotage && round == run.rounds - 1)
		falsify(all, n);
	len = far_pread(co.at, append_fd, scratch, APPEND_MAX, 0);
	if (len < 0)
		co_broken("read of the appended file");
	else
		bad += co_check_appends(all, n, scratch, len, stdout);
	bad += co_check_files(all, n, stdout, undecided);
	bad += co_check_names(all, n, stdout, undecided);
	close_all();
	free(all);
	return bad;
}

static void clean(int round)
{
	static const char *const names[] = { "f0", "f1", "append", "r0", "r1", "r2", "l0", "l1",
					     "l2" };
	char path[500];
	size_t i;

	go_to(0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/round%d/%s", run.side[0].dir, round, names[i]);
		far_unlinkat(co.at, AT_FDCWD, path, 0);
	}
	for (i = 0; i < (size_t)run.workers; i++) {
		snprintf(path, sizeof(path), "%s/round%d/source%zu", run.side[0].dir, round, i);
		far_unlinkat(co.at, AT_FDCWD, path, 0);
	}
	snprintf(path, sizeof(path), "%s/round%d", run.side[0].dir, round);
	if (far_unlinkat(co.at, AT_FDCWD, path, AT_REMOVEDIR) < 0)
		co_broken("rmdir");
}

/* DIR, or HOST:PORT:DIR */
static void set_side(int side, char *dir)
{
	char *sep = *dir == '/' ? NULL : strstr(dir, ":/");

	if (sep) {
		*sep = 0;
		run.side[side].far = dir;
		dir = sep + 1;
	}
	snprintf(run.side[side].dir, sizeof(run.side[side].dir), "%s/coherence-%llu", dir,
		 (unsigned long long)run.seed);
}

static void make_top(void)
{
	int side;

	go_to(0);
	if (far_mkdirat(co.at, AT_FDCWD, run.side[0].dir, 0755) < 0)
		rnd_die("mkdir %s: %s", run.side[0].dir, strerror(errno));
	for (side = 0; side < run.sides; side++)
		if (!run.side[side].far)
			co_files_probe(run.side[side].dir);
	/* The workers are not born yet. */
	far_close_connection(connection[0]);
	connection[0] = NULL;
}

static void set_up(char **dirs)
{
	size_t recs = run.ops + 64, i;
	pthread_barrierattr_t attr;
	int side;

	for (side = 0; side < run.sides; side++)
		set_side(side, dirs[side]);
	make_top();
	sh = mmap(NULL, sizeof(*sh) + (run.workers + 1) * recs * sizeof(struct co_rec),
		  PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scratch = mmap(NULL, APPEND_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (sh == MAP_FAILED || scratch == MAP_FAILED)
		rnd_die("no memory");
	for (i = 0; i <= (size_t)run.workers; i++)
		sh->worker[i].rec = (struct co_rec *)(sh + 1) + i * recs;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&sh->barrier, &attr, run.workers + 1);
}

/* A worker that died would be waited for at the barrier for ever. */
static void on_child(int sig)
{
	static const char text[] = "FAILED: a worker died\n";
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (status) {
			(void)!write(1, text, sizeof(text) - 1);
			_exit(1);
		}
}

int main(int argc, char **argv)
{
	int opt, i, round, bad = 0, undecided = 0;
	uint64_t total = 0;
	double began, from, working = 0;

	run.seed = time(NULL);
	while ((opt = getopt(argc, argv, "s:w:r:n:p:mx:")) != -1) {
		switch (opt) {
		case 's':
			run.seed = rnd_number(optarg, 0, UINT64_MAX);
			break;
		case 'w':
			run.workers = rnd_number(optarg, 1, WORKERS_MAX);
			break;
		case 'r':
			run.rounds = rnd_number(optarg, 1, 1 << 30);
			break;
		case 'n':
			run.ops = rnd_number(optarg, 1, 10000);
			break;
		case 'p':
			run.part = optarg;
			if (strcmp(optarg, "files") && strcmp(optarg, "appends") &&
			    strcmp(optarg, "names"))
				rnd_die("-p wants files, appends or names");
			break;
		case 'm':
			co.mapped = true;
			break;
		case 'x':
			run.sabotage = optarg;
			if (strcmp(optarg, "block") && strcmp(optarg, "size") &&
			    strcmp(optarg, "name") &&
			    strcmp(optarg, "append") && strcmp(optarg, "prefix"))
				rnd_die("-x wants block, size, name, append or prefix");
			break;
		default:
			return 2;
		}
	}
	run.sides = argc - optind;
	if (run.sides < 1 || run.sides > CO_SIDES)
		rnd_die("usage: coherence [-s SEED] [-w WORKERS] [-r ROUNDS] [-n OPS] [-p PART] "
			"[-m] [-x WHAT] DIR [DIR2 [DIR3]]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	set_up(argv + optind);
	signal(SIGCHLD, on_child);
	fflush(stdout);
	for (i = 0; i < run.workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			rnd_die("fork: %s", strerror(errno));
		if (!pid)
			worker(i);
	}
	co.me = run.workers;
	began = rnd_now();
	for (round = 0; round < run.rounds && !bad && !sh->failed; round++) {
		open_all(0, round, true);
		close_all();
		pthread_barrier_wait(&sh->barrier);
		pthread_barrier_wait(&sh->barrier);
		from = rnd_now();
		/* They work. */
		pthread_barrier_wait(&sh->barrier);
		working += rnd_now() - from;
		if (sh->failed)
			break;
		bad += check_round(round, &total, &undecided);
		if (!bad)
			clean(round);
	}
	printf("# coherence: seed %llu, %d workers on %d side(s), %d rounds, %llu operations "
	       "in %.1f s, %.1f at any time, %d undecided\n", (unsigned long long)run.seed, run.workers, run.sides, round,
	       (unsigned long long)total, rnd_now() - began, waited / 1e9 / (working + 1e-9),
	       undecided);
	if (sh->failed)
		printf("FAILED: %s\n", sh->why);
	else if (bad)
		printf("FAILED: %d things are wrong; seed %llu, round %d, left in %s\n", bad,
		       (unsigned long long)run.seed, round - 1, run.side[0].dir);
	if (bad || sh->failed || undecided)
		return 1;
	go_to(0);
	return far_unlinkat(co.at, AT_FDCWD, run.side[0].dir, AT_REMOVEDIR) < 0;
}
