// SPDX-License-Identifier: GPL-2.0
/*
 * iod_durable_test.c - what an I/O daemon answers only when it is on stable storage, what it
 * remembers of syncs that failed, and what must not be done late: a whole daemon in this process,
 * over a store whose syncs can be stopped and made to fail.
 */
#include "iod/iod.h"
#include "common/storeid.h"
#include "tests/free_port.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define SESSION 77u

static char dir[] = "/tmp/pvfs-durable-XXXXXX";
static struct pvfs_conf conf;
static struct pvfs_conf_iod conf_iod;
static struct pvfs_key server_key;
static struct pvfs_engine *engine;
static struct pvfs_peer *mgr, *client;
static struct iod *iod;
static u64 session = SESSION;	/* capabilities are made for */

/* The store's faults; under lock. */
static struct {
	const struct iod_store_ops *real;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int error;			/* the next sync fails so, once */
	bool stop_sync, stop_name;	/* a sync waits, with its result, until this is over */
	unsigned int syncs, names;	/* asked for */
	unsigned int stopped;		/* of them, that wait */
	bool stop_all;			/* the same for syncs of the store */
	unsigned int alls;
	/*
	 * This one could not be written. Its file knows that until it tells it or is closed, as does
	 * the file system until it tells it.
	 */
	u64 lost;
	bool lost_file, lost_fs;
	u64 closed;			/* the last one of those that matter */
	bool stop_small;		/* what has a file of its own, as evictions, is not synced yet */
	bool extend;			/* a datafile grows behind the next look at its size */
	bool cut;			/* the next read finds that its bytes are gone */
	unsigned int open, most;	/* datafiles now, and at most since that was set */
} fault = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static int fault_result(unsigned int *n, const bool *stop)
{
	int err;

	pthread_mutex_lock(&fault.lock);
	++*n;
	err = fault.error;	/* told once, as the kernel does */
	fault.error = 0;
	fault.stopped++;
	pthread_cond_broadcast(&fault.cond);
	while (*stop)
		pthread_cond_wait(&fault.cond, &fault.lock);
	fault.stopped--;
	pthread_mutex_unlock(&fault.lock);
	return err;
}

static int fault_sync(struct iod_store *s, struct iod_file *f, bool datasync)
{
	int err = fault_result(&fault.syncs, &fault.stop_sync);

	pthread_mutex_lock(&fault.lock);
	if (!err && fault.lost_file && fault.lost == f->fid.ino) {
		fault.lost_file = false;
		err = -EIO;
	}
	pthread_mutex_unlock(&fault.lock);
	return err ?: fault.real->sync(s, f, datasync);
}

/* The real one would write everything that this machine has to write. */
static int fault_sync_all(struct iod_store *s)
{
	int err;

	pthread_mutex_lock(&fault.lock);
	err = fault.lost_fs ? -EIO : 0;
	fault.lost_fs = false;
	fault.alls++;
	fault.stopped++;
	pthread_cond_broadcast(&fault.cond);
	while (fault.stop_all)
		pthread_cond_wait(&fault.cond, &fault.lock);
	fault.stopped--;
	pthread_mutex_unlock(&fault.lock);
	return err;
}

static int fault_open(struct iod_store *s, const struct pvfs_fid *fid, bool create, struct iod_file *f)
{
	int err = fault.real->open(s, fid, create, f);

	pthread_mutex_lock(&fault.lock);
	fault.open += !err;
	fault.most = max(fault.most, fault.open);
	pthread_mutex_unlock(&fault.lock);
	return err;
}

static void fault_close(struct iod_store *s, struct iod_file *f)
{
	pthread_mutex_lock(&fault.lock);
	fault.open--;
	if (fault.lost == f->fid.ino) {
		fault.lost_file = false;
		fault.closed = f->fid.ino;
		pthread_cond_broadcast(&fault.cond);
	}
	pthread_mutex_unlock(&fault.lock);
	fault.real->close(s, f);
}

/* What was written to @ino is lost, and nobody knows yet. */
static void lose(u64 ino)
{
	pthread_mutex_lock(&fault.lock);
	fault.lost = ino;
	fault.lost_file = fault.lost_fs = true;
	fault.closed = 0;
	pthread_mutex_unlock(&fault.lock);
}

static bool fault_stopped(void)
{
	bool ret;

	pthread_mutex_lock(&fault.lock);
	ret = fault.stopped;
	pthread_mutex_unlock(&fault.lock);
	return ret;
}

static bool is_closed(u64 ino)
{
	bool ret;

	pthread_mutex_lock(&fault.lock);
	ret = fault.closed == ino;
	pthread_mutex_unlock(&fault.lock);
	return ret;
}

static int fault_sync_name(struct iod_store *s, const struct pvfs_fid *fid)
{
	int err = fault_result(&fault.names, &fault.stop_name);

	return err ?: fault.real->sync_name(s, fid);
}

int fdatasync(int fd)
{
	pthread_mutex_lock(&fault.lock);
	if (fault.stop_small) {
		fault.stopped++;
		pthread_cond_broadcast(&fault.cond);
		while (fault.stop_small)
			pthread_cond_wait(&fault.cond, &fault.lock);
		fault.stopped--;
	}
	pthread_mutex_unlock(&fault.lock);
	return syscall(SYS_fdatasync, fd);
}

static bool fault_now(bool *what)
{
	bool ret;

	pthread_mutex_lock(&fault.lock);
	ret = *what;
	*what = false;
	pthread_mutex_unlock(&fault.lock);
	return ret;
}

static int fault_stat(struct iod_store *s, const struct pvfs_fid *fid, struct iod_file *f,
		      struct iod_stat *st)
{
	int err = fault.real->stat(s, fid, f, st);

	if (fault_now(&fault.extend))
		assert_int_equal(fault.real->truncate(s, f, st->size + 1000), 0);
	return err;
}

static ssize_t fault_preadv(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			    u64 off, bool nowait)
{
	return fault_now(&fault.cut) ? 0 : fault.real->preadv(s, f, iov, n, off, nowait);
}

static void set(bool *stop, bool value)
{
	pthread_mutex_lock(&fault.lock);
	*stop = value;
	pthread_cond_broadcast(&fault.cond);
	pthread_mutex_unlock(&fault.lock);
}

/* Until @n syncs wait, or, with 0, the file of what is lost is closed. */
static void await_stopped(unsigned int n)
{
	struct timespec ts;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 10;
	pthread_mutex_lock(&fault.lock);
	while ((n ? fault.stopped < n : !fault.closed) && !err)
		err = pthread_cond_timedwait(&fault.cond, &fault.lock, &ts);
	pthread_mutex_unlock(&fault.lock);
	assert_int_equal(err, 0);
}

static void start(void)
{
	static struct iod_store_ops ops;
	struct iod_store *store;
	char err[256];

	assert_int_equal(iod_store_posix_open(conf_iod.store, 0, &store), 0);
	fault.real = store->ops;
	ops = *store->ops;
	ops.sync = fault_sync;
	ops.sync_all = fault_sync_all;
	ops.open = fault_open;
	ops.close = fault_close;
	ops.sync_name = fault_sync_name;
	ops.stat = fault_stat;
	ops.preadv = fault_preadv;
	store->ops = &ops;
	if (iod_start(&conf, 0, store, &iod, err, sizeof(err)))
		fail_msg("%s", err);
}

static void restart(void)
{
	iod_stop(iod, 1000);
	start();
}

static void put_key(const char *path, char digit)
{
	char text[66];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	memset(text, digit, 64);
	assert_int_equal(write(fd, text, 64), 64);
	close(fd);
}

static struct pvfs_peer *peer(u8 role, const char *keyfile, u64 as)
{
	struct pvfs_peer_params pp = { .my_role = role, .its_role = PVFS_ROLE_IOD, .nconnect = 1,
				       .fail_ms = 5000 };
	u8 ticket[PVFS_TICKET_LEN];
	struct pvfs_peer *ret;
	struct pvfs_key key;
	const char *why;

	assert_int_equal(pvfs_addr_resolve(conf_iod.address, 0, &pp.addr, &why), 0);
	assert_int_equal(pvfs_key_load(keyfile, &key, &why), 0);
	if (role == PVFS_ROLE_MGR)
		server_key = key;
	pp.key = &key;
	strcpy(pp.volume, conf.name);
	assert_int_equal(pvfs_peer_new(engine, &pp, &ret), 0);
	pvfs_ticket_make(&server_key, conf.uuid, as, ticket);
	pvfs_peer_set_session(ret, as, ticket);
	return ret;
}

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(conf_iod.address, sizeof(conf_iod.address), "127.0.0.1:%u", free_port());
	snprintf(conf_iod.store, sizeof(conf_iod.store), "%s", dir);
	snprintf(conf.cluster_key, sizeof(conf.cluster_key), "%s/c.key", dir);
	snprintf(conf.server_key, sizeof(conf.server_key), "%s/s.key", dir);
	put_key(conf.cluster_key, '6');
	put_key(conf.server_key, '7');
	strcpy(conf.name, "durable");
	memset(conf.uuid, 9, sizeof(conf.uuid));
	conf.iods = &conf_iod;
	conf.niods = 1;
	conf.iod_threads = 4;
	conf.iod_max_conns = 10;
	conf.iod_buffers = 1 << 20;
	conf.io_max = 65536;
	conf.fd_cache = 64;
	if (pvfs_engine_new("test", 2, &engine))
		return -1;
	start();
	mgr = peer(PVFS_ROLE_MGR, conf.server_key, 0);
	client = peer(PVFS_ROLE_CLIENT, conf.cluster_key, SESSION);
	return 0;
}

static int teardown(void **state)
{
	char cmd[64];

	pvfs_peer_free(mgr);
	pvfs_peer_free(client);
	iod_stop(iod, 1000);
	pvfs_engine_free(engine);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

/* ---- requests ---- */

struct ask {
	struct pvfs_rpc rpc;
	u8 body[128], rep[64];
	struct iovec iov;
	sem_t done;
};

static void ask_done(struct pvfs_rpc *rpc)
{
	sem_post(&((struct ask *)rpc->arg)->done);
}

static struct pvfs_fid fid(u64 ino)
{
	return (struct pvfs_fid){ .ino = ino, .gen = 1 };
}

static void ask_begin(struct ask *a, struct pvfs_peer *p, u16 op, int len)
{
	assert_true(len > 0);
	sem_init(&a->done, 0, 0);
	a->rpc = (struct pvfs_rpc){ .op = op, .body = a->body, .body_len = len, .rep = a->rep,
				    .rep_room = sizeof(a->rep), .timeout_ms = 60000,
				    .done = ask_done, .arg = a, .out = &a->iov,
				    .nout = a->iov.iov_len ? 1 : 0 };
	pvfs_peer_submit(p, &a->rpc);
}

static int ask_end(struct ask *a)
{
	sem_wait(&a->done);
	sem_destroy(&a->done);
	return a->rpc.err;
}

static bool ask_ended(struct ask *a)
{
	int n;

	sem_getvalue(&a->done, &n);
	return n > 0;
}

static struct pvfs_cap cap(u64 ino)
{
	struct pvfs_fid f = fid(ino);
	struct pvfs_cap c;

	pvfs_cap_make(&server_key, conf.uuid, session, &f, PVFS_CAP_READ | PVFS_CAP_WRITE, &c);
	return c;
}

static u64 do_write(u64 ino)
{
	struct pvfs_write_req req = { .fid = fid(ino), .cap = cap(ino) };
	struct ask a = { .iov = { .iov_base = "hello", .iov_len = 5 } };
	struct pvfs_write_rep rep;

	ask_begin(&a, client, PVFS_OP_WRITE, pvfs_write_req_encode(&req, a.body, sizeof(a.body)));
	assert_int_equal(ask_end(&a), 0);
	assert_int_equal(pvfs_write_rep_decode(&rep, a.rep, a.rpc.rep_len), 0);
	return rep.verifier;
}

static void fsync_begin(struct ask *a, u64 ino)
{
	struct pvfs_fsync_req req = { .fid = fid(ino), .cap = cap(ino) };

	memset(a, 0, sizeof(*a));
	ask_begin(a, client, PVFS_OP_FSYNC, pvfs_fsync_req_encode(&req, a->body, sizeof(a->body)));
}

static int fsync_end(struct ask *a, u64 *ret_verifier)
{
	struct pvfs_fsync_rep rep;
	int err = ask_end(a);

	if (!err) {
		assert_int_equal(pvfs_fsync_rep_decode(&rep, a->rep, a->rpc.rep_len), 0);
		*ret_verifier = rep.verifier;
	}
	return err;
}

static int do_fsync(u64 ino, u64 *ret_verifier)
{
	struct ask a;

	fsync_begin(&a, ino);
	return fsync_end(&a, ret_verifier);
}

static void do_read(u64 ino)
{
	struct pvfs_read_req req = { .fid = fid(ino), .len = 1, .cap = cap(ino) };
	u8 byte, body[128], rep[64];
	struct iovec in = { &byte, 1 };
	struct pvfs_rpc rpc = { .op = PVFS_OP_READ, .body = body, .rep = rep, .rep_room = sizeof(rep),
				.timeout_ms = 60000, .in = &in, .nin = 1 };

	rpc.body_len = pvfs_read_req_encode(&req, body, sizeof(body));
	assert_int_equal(pvfs_peer_call(client, &rpc), 0);
	assert_int_equal(rpc.in_len, 1);
}

/* The first @len bytes. Return: some lie behind the datafile's end, or did a moment ago. */
static bool do_read_list(u64 ino, u32 len)
{
	u8 runs[] = { 0, 0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct pvfs_read_list_req req = { .fid = fid(ino), .pcount = 1, .ssize = 65536, .len = len,
					  .cap = cap(ino), .runs = { runs, sizeof(runs) } };
	struct pvfs_read_list_rep list;
	u8 bytes[256], body[256], rep[64];
	struct iovec in = { bytes, sizeof(bytes) };
	struct pvfs_rpc rpc = { .op = PVFS_OP_READ_LIST, .body = body, .rep = rep,
				.rep_room = sizeof(rep), .timeout_ms = 20000, .in = &in, .nin = 1 };

	rpc.body_len = pvfs_read_list_req_encode(&req, body, sizeof(body));
	assert_int_equal(pvfs_peer_call(client, &rpc), 0);
	assert_int_equal(pvfs_read_list_rep_decode(&list, rep, rpc.rep_len), 0);
	assert_int_equal(rpc.in_len, len);
	return list.beyond;
}

static u64 size_of(u64 ino)
{
	struct pvfs_glimpse_req req = { .fid = fid(ino) };
	struct pvfs_glimpse_rep rep;
	struct ask a = { 0 };

	ask_begin(&a, mgr, PVFS_OP_GLIMPSE, pvfs_glimpse_req_encode(&req, a.body, sizeof(a.body)));
	assert_int_equal(ask_end(&a), 0);
	assert_int_equal(pvfs_glimpse_rep_decode(&rep, a.rep, a.rpc.rep_len), 0);
	return rep.size;
}

static void trim_begin(struct ask *a, u64 ino, u64 size)
{
	struct pvfs_trim_req req = { .fid = fid(ino), .size = size };

	memset(a, 0, sizeof(*a));
	ask_begin(a, mgr, PVFS_OP_TRIM, pvfs_trim_req_encode(&req, a->body, sizeof(a->body)));
}

static void remove_begin(struct ask *a, u64 ino)
{
	struct pvfs_remove_req req = { .fid = fid(ino) };

	memset(a, 0, sizeof(*a));
	ask_begin(a, mgr, PVFS_OP_REMOVE, pvfs_remove_req_encode(&req, a->body, sizeof(a->body)));
}

/* ---- tests ---- */

/* The mgr drops the record of a truncation that was answered. */
static void test_trim_is_synced(void **state)
{
	struct ask a;
	u64 v1 = do_write(10), v2;

	set(&fault.stop_sync, true);
	trim_begin(&a, 10, 2);
	await_stopped(1);
	assert_false(ask_ended(&a));
	set(&fault.stop_sync, false);
	assert_int_equal(ask_end(&a), 0);
	/* One that finds it done may be the second copy of one that was not synced. */
	fault.syncs = 0;
	trim_begin(&a, 10, 2);
	assert_int_equal(ask_end(&a), 0);
	assert_int_equal(fault.syncs, 1);
	/* It is not done when it fails, and then data may be lost. */
	fault.error = -EIO;
	trim_begin(&a, 10, 1);
	assert_int_equal(ask_end(&a), -EIO);
	assert_int_equal(do_fsync(10, &v2), 0);
	assert_true(v2 != v1);
}

/* And that of a removal; those that come meanwhile share the next sync of their directory. */
static void test_remove_is_synced(void **state)
{
	enum { N = 20 };
	static struct ask a[N];
	u64 i;

	for (i = 0; i < N; i++)
		do_write(1000 + i);
	set(&fault.stop_name, true);
	remove_begin(&a[0], 1000);
	await_stopped(1);
	for (i = 1; i < N; i++)
		remove_begin(&a[i], 1000 + i);
	for (i = 0; i < N; i++)
		assert_false(ask_ended(&a[i]));
	set(&fault.stop_name, false);
	for (i = 0; i < N; i++)
		assert_int_equal(ask_end(&a[i]), 0);
	assert_int_equal(fault.names, N);
	/* Removed before and not synced, for all that this daemon knows. */
	remove_begin(&a[0], 1000);
	assert_int_equal(ask_end(&a[0]), 0);
	assert_int_equal(fault.names, N + 1);
	fault.error = -EIO;
	remove_begin(&a[0], 1000);
	assert_int_equal(ask_end(&a[0]), -EIO);
}

/* The bytes are gone, whoever is restarted. */
static void test_failed_sync_outlives_the_daemon(void **state)
{
	u64 v1 = do_write(20), v2, v3 = 0;

	restart();
	assert_int_equal(do_fsync(20, &v2), 0);
	assert_true(v2 == v1);
	fault.error = -EIO;
	assert_int_equal(do_fsync(20, &v2), -EIO);
	restart();
	assert_int_equal(do_fsync(20, &v2), 0);
	assert_true(v2 != v1);
	restart();
	assert_int_equal(do_fsync(20, &v3), 0);
	assert_true(v3 == v2);
}

/* What the kernel could not write while no daemon had the store open. */
static void test_lost_between_daemons(void **state)
{
	u64 v1 = do_write(21), v2, v3;

	assert_int_equal(do_fsync(22, &v2), 0);
	assert_true(v2 == v1);
	iod_stop(iod, 1000);
	set(&fault.lost_fs, true);
	start();
	assert_int_equal(do_fsync(21, &v2), 0);
	assert_true(v2 != v1);
	restart();
	assert_int_equal(do_fsync(21, &v3), 0);
	assert_true(v3 == v2);
}

/* Where it can't be kept every start counts. */
static void test_nothing_can_be_kept(void **state)
{
	char path[300];
	u64 v1, v2;

	snprintf(path, sizeof(path), "%s/pvfs.lost", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	v1 = do_write(30);
	restart();
	assert_int_equal(do_fsync(30, &v2), 0);
	assert_true(v2 != v1);
	v1 = v2;
	restart();
	assert_int_equal(do_fsync(30, &v2), 0);
	assert_true(v2 != v1);
	assert_int_equal(rmdir(path), 0);
	restart();
}

/* The kernel tells the first of two, and the second must not be told that all is well before. */
static void test_two_syncs_at_once(void **state)
{
	u64 v1 = do_write(40), v2 = v1, v;
	struct ask a, b;

	fault.error = -EIO;
	set(&fault.stop_sync, true);
	fsync_begin(&a, 40);
	await_stopped(1);
	fsync_begin(&b, 40);
	/* Answered in order on one connection and thread; this one needs no sync. */
	assert_int_equal(do_fsync(41, &v), 0);
	assert_false(ask_ended(&b));
	set(&fault.stop_sync, false);
	assert_int_equal(fsync_end(&a, &v), -EIO);
	assert_int_equal(fsync_end(&b, &v2), 0);
	assert_true(v2 != v1);
}

/* Who asks while another's sync runs may not share that one; who waits longer shares the next. */
static void test_syncs_are_shared(void **state)
{
	struct ask a, b, c;
	u64 v;

	do_write(50);
	fault.syncs = 0;
	set(&fault.stop_sync, true);
	fsync_begin(&a, 50);
	await_stopped(1);
	fsync_begin(&b, 50);
	fsync_begin(&c, 50);
	while (atomic_load(&iod->inside) + atomic_load(&iod->counts.handed_over) < 3)
		usleep(100);
	set(&fault.stop_sync, false);
	assert_int_equal(fsync_end(&a, &v), 0);
	assert_int_equal(fsync_end(&b, &v), 0);
	assert_int_equal(fsync_end(&c, &v), 0);
	assert_in_range(fault.syncs, 2, 3);
}

/*
 * The kernel tells of a failure who has the file open. Of those that the cache closed the daemon has to
 * know it by itself.
 */
static void test_closed_unsynced(void **state)
{
	u64 v1 = do_write(5000), v2, i;
	unsigned int before = fault.alls;

	lose(5000);
	for (i = 0; i < 150; i++)
		do_write(6000 + i);
	await_stopped(0);
	assert_int_equal(do_fsync(5000, &v2), 0);
	assert_true(v2 != v1);
	assert_true(fault.alls > before);
}

/* Until then they stay open, and new ones come on top. */
static void test_closed_after_the_sync(void **state)
{
	u64 v1, v, i;

	/* Many stripes: no write comes to wait for the sync before it has begun. */
	conf.fd_cache = 1024;
	restart();	/* with nothing open */
	v1 = do_write(5001);
	set(&fault.stop_all, true);
	lose(5001);
	for (i = 0; !fault_stopped(); i++)
		do_write(6200 + i);
	assert_false(is_closed(5001));
	/* What is to be answered is answered meanwhile, also by the file that knows. */
	assert_int_equal(do_fsync(5001, &v), -EIO);
	assert_int_equal(do_fsync(6200, &v), 0);
	assert_true(v != v1);
	set(&fault.stop_all, false);
	conf.fd_cache = 64;
	restart();
}

/* Those that need no sync are closed first. */
static void test_clean_ones_first(void **state)
{
	unsigned int before;
	u64 v, i;

	do_write(5002);
	lose(5002);
	before = fault.alls;
	for (i = 0; i < 200; i++) {
		do_write(6400 + i);
		assert_int_equal(do_fsync(6400 + i, &v), 0);
	}
	assert_false(is_closed(5002));
	assert_int_equal(fault.alls, before);
}

static void evict(u64 whom)
{
	struct pvfs_evict_req req = { .session = whom };
	struct ask a = { 0 };

	ask_begin(&a, mgr, PVFS_OP_EVICT, pvfs_evict_req_encode(&req, a.body, sizeof(a.body)));
	assert_int_equal(ask_end(&a), 0);
}

/* Who only reads does not wait for the sync, and leaves no more open than may be. */
static void test_reads_beside_a_sync(void **state)
{
	const unsigned int limit = 2048, files = 2 * limit;
	unsigned int i;

	conf.fd_cache = limit;
	restart();
	for (i = 0; i < files; i++)
		do_write(10000 + i);
	restart();		/* with nothing open */
	set(&fault.stop_all, true);
	/* More than a look at the first of a stripe finds, and less than are waited for. */
	for (i = 0; i < limit + limit / 8; i++)
		do_write(20000 + i);
	await_stopped(1);
	fault.most = 0;
	for (i = 0; i < files; i++)
		do_read(10000 + i);
	set(&fault.stop_all, false);
	assert_in_range(fault.most, limit, 2 * limit + limit / 16);
	conf.fd_cache = 64;
	restart();
}

/* Zeros that stand for what is not there, or was not, are not the file's. */
static void test_list_beside_a_cut(void **state)
{
	do_write(70);
	assert_false(do_read_list(70, 5));
	assert_true(do_read_list(70, 100));
	set(&fault.extend, true);
	assert_true(do_read_list(70, 100));
	assert_false(do_read_list(70, 100));
	set(&fault.cut, true);
	assert_true(do_read_list(70, 100));
	assert_false(do_read_list(70, 100));
}

/* The manager has long sent another one, and others go on writing. */
static void test_late_trim(void **state)
{
	struct iod_fdent *e = NULL;
	struct pvfs_fid f = fid(80);
	struct ask first, second;
	u64 i;

	do_write(80);
	conf.fd_cache = 16;
	restart();	/* with nothing open */
	/* As many as may be that wait for a sync; who opens one more waits for it, too. */
	set(&fault.stop_all, true);
	for (i = 0; i < 33; i++)
		do_write(8000 + i);
	await_stopped(1);
	trim_begin(&first, 80, 2);
	while (!e) {
		usleep(100);
		e = iod_fds_lookup(iod->files, &f);
	}
	iod_fds_put(e);
	trim_begin(&second, 80, 2);
	assert_int_equal(ask_end(&second), 0);
	do_write(80);
	assert_int_equal(size_of(80), 5);
	assert_false(ask_ended(&first));
	set(&fault.stop_all, false);
	ask_end(&first);
	assert_int_equal(size_of(80), 5);
	/* It has done nothing else either: the next one is as any. */
	trim_begin(&first, 80, 3);
	assert_int_equal(ask_end(&first), 0);
	assert_int_equal(size_of(80), 3);
	conf.fd_cache = 64;
	restart();
}

static void evict_begin(struct ask *a, u64 whom)
{
	struct pvfs_evict_req req = { .session = whom };

	memset(a, 0, sizeof(*a));
	ask_begin(a, mgr, PVFS_OP_EVICT, pvfs_evict_req_encode(&req, a->body, sizeof(a->body)));
}

static void space_begin(struct ask *a, struct pvfs_peer *p, u64 as, u64 ino, u64 len)
{
	struct pvfs_space_req req = { .fid = fid(ino), .len = len };

	session = as;
	req.cap = cap(ino);
	session = SESSION;
	memset(a, 0, sizeof(*a));
	ask_begin(a, p, PVFS_OP_SPACE, pvfs_space_req_encode(&req, a->body, sizeof(a->body)));
}

/* Nor does it wait for the disk to have its own record before it ends anything. */
static void test_evict_before_its_record(void **state)
{
	const u64 GONE = SESSION + 3000;
	struct pvfs_peer *gone = peer(PVFS_ROLE_CLIENT, conf.cluster_key, GONE);
	struct ask space, evict;

	space_begin(&space, gone, GONE, 98, 10);
	assert_int_equal(ask_end(&space), 0);
	set(&fault.stop_small, true);
	evict_begin(&evict, GONE);
	await_stopped(1);
	space_begin(&space, gone, GONE, 98, 20);
	assert_true(ask_end(&space) < 0);
	assert_false(ask_ended(&evict));
	set(&fault.stop_small, false);
	assert_int_equal(ask_end(&evict), 0);
	assert_int_equal(size_of(98), 10);
	pvfs_peer_free(gone);
}

/* EVICT needs no thread that waits for the disk, and what waits for one is not done any more. */
static void test_evict_beside_a_sync(void **state)
{
	enum { N = 6, GONE = SESSION + 2000 };	/* two on the network's threads */
	struct pvfs_peer *gone = peer(PVFS_ROLE_CLIENT, conf.cluster_key, GONE);
	struct ask a[N], space, evict, other;
	u64 handed, i, v;

	for (i = 0; i < N; i++)
		do_write(90 + i);
	set(&fault.stop_sync, true);
	for (i = 0; i < N; i++)
		fsync_begin(&a[i], 90 + i);
	await_stopped(N);
	handed = atomic_load(&iod->counts.handed_over);
	space_begin(&space, gone, GONE, 90, 4096);
	while (atomic_load(&iod->counts.handed_over) == handed)
		usleep(100);
	/* One that has nothing under way, though no disk thread is free. */
	evict_begin(&other, GONE + 1);
	assert_int_equal(ask_end(&other), 0);
	evict_begin(&evict, GONE);
	while (!pvfs_server_session_busy(atomic_load(&iod->server), GONE))
		usleep(100);
	assert_false(ask_ended(&evict));
	set(&fault.stop_sync, false);
	assert_int_equal(ask_end(&evict), 0);
	assert_true(ask_end(&space) < 0);
	assert_int_equal(size_of(90), 5);
	for (i = 0; i < N; i++)
		assert_int_equal(fsync_end(&a[i], &v), 0);
	pvfs_peer_free(gone);
}

/* By a manager that has lost the table of its sessions. The last one: @client is done for. */
static void test_evict_all_up_to(void **state)
{
	struct pvfs_peer *old, *new;
	u64 v;

	assert_int_equal(do_fsync(60, &v), 0);
	evict(SESSION + 1000);		/* one alone, beyond those */
	assert_int_equal(do_fsync(60, &v), 0);
	evict(PVFS_SESSION_ALL | SESSION);
	assert_true(do_fsync(60, &v) < 0);
	restart();
	assert_true(iod_fence_has(iod->fence, 1));
	assert_true(iod_fence_has(iod->fence, SESSION));
	assert_false(iod_fence_has(iod->fence, SESSION + 1));
	assert_true(iod_fence_has(iod->fence, SESSION + 1000));
	assert_false(iod_fence_has(iod->fence, 0));
	evict(PVFS_SESSION_ALL | (SESSION - 10));	/* comes late: nobody gets in by it */
	old = peer(PVFS_ROLE_CLIENT, conf.cluster_key, SESSION - 5);
	new = peer(PVFS_ROLE_CLIENT, conf.cluster_key, SESSION + 1);
	pvfs_peer_free(client);
	client = old;
	assert_true(do_fsync(61, &v) < 0);
	pvfs_peer_free(old);
	client = new;
	session = SESSION + 1;
	assert_int_equal(do_fsync(61, &v), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trim_is_synced), cmocka_unit_test(test_remove_is_synced),
		cmocka_unit_test(test_failed_sync_outlives_the_daemon),
		cmocka_unit_test(test_lost_between_daemons),
		cmocka_unit_test(test_nothing_can_be_kept), cmocka_unit_test(test_two_syncs_at_once),
		cmocka_unit_test(test_syncs_are_shared), cmocka_unit_test(test_clean_ones_first),
		cmocka_unit_test(test_closed_unsynced), cmocka_unit_test(test_closed_after_the_sync),
		cmocka_unit_test(test_reads_beside_a_sync),
		cmocka_unit_test(test_list_beside_a_cut), cmocka_unit_test(test_late_trim),
		cmocka_unit_test(test_evict_beside_a_sync),
		cmocka_unit_test(test_evict_before_its_record), cmocka_unit_test(test_evict_all_up_to),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("iod_durable", tests, setup, teardown);
}
