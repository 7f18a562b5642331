// SPDX-License-Identifier: GPL-2.0
/*
 * open.c - open files, and the locks that go with them.
 */
#include "pvfsd.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#define RELEASE_MS 1000	/* from the last close(2) of a file to its release, at most */

/*
 * The kernel tells of every close(2) while it is under way, and that there was no descriptor left
 * some time after: until then the file has its locks of flock(2) and the like.
 */
struct open_file {
	struct held held;
	struct open_file *next;		/* in with_locks */
	struct pvfs_file *f;
	uint64_t ino;
	int locked;			/* it is in with_locks */
	uint64_t ends_ms;		/* a descriptor was closed: it may be released until then */
};

static pthread_mutex_t locks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct open_file *with_locks;	/* those that may have locks; protected by locks_lock */

static struct open_file *open_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

struct pvfs_file *file_of(const struct fuse_file_info *fi)
{
	ask_hold(&open_of(fi)->held);
	return open_of(fi)->f;
}

/* They are gone: those who wait for that go on. */
static void no_locks(struct open_file *o)
{
	struct open_file **p;

	pthread_mutex_lock(&locks_lock);
	for (p = &with_locks; *p && *p != o; p = &(*p)->next)
		;
	if (*p)
		*p = o->next;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&locks_lock);
}

static int open_free(struct held *h)
{
	struct open_file *o = (struct open_file *)h;	/* its first member */
	int err = pvfs_close(o->f);

	no_locks(o);
	free(o);
	return err;
}

int open_begin(struct fuse_file_info *fi, struct pvfs_file *f, uint64_t ino)
{
	struct open_file *o = calloc(1, sizeof(*o));

	if (!o) {
		pvfs_close(f);
		return -ENOMEM;
	}
	held_init(&o->held, open_free);
	o->f = f;
	o->ino = ino;
	fi->fh = (uintptr_t)o;
	/* Bytes do not stay in the kernel: what another client wrote is seen by the next read. */
	fi->direct_io = 1;
	return 0;
}

static void has_locks(struct open_file *o)
{
	pthread_mutex_lock(&locks_lock);
	if (!o->locked) {
		o->locked = 1;
		o->next = with_locks;
		with_locks = o;
	}
	pthread_mutex_unlock(&locks_lock);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static void descriptor_closed(struct open_file *o)
{
	pthread_mutex_lock(&locks_lock);
	o->ends_ms = now_ms() + RELEASE_MS;
	pthread_mutex_unlock(&locks_lock);
}

int open_end(const struct fuse_file_info *fi)
{
	struct pvfs_locker by = { 0 };
	struct open_file *o = open_of(fi);

	/* A request that nobody waits for any more may keep the file, but not its locks. */
	if (o->locked && held_shared(&o->held)) {
		pvfs_flock_by(o->f, &by, LOCK_UN);
		no_locks(o);
	}
	return held_put(&o->held);
}

/* When the last of those ends that have locks on the inode and may be closed; 0: there is none. */
static uint64_t others_end_ms(const struct open_file *asker)
{
	const struct open_file *o;
	uint64_t ret = 0;

	for (o = with_locks; o; o = o->next)
		if (o->ino == asker->ino && o != asker && o->ends_ms > ret)
			ret = o->ends_ms;
	return ret;
}

/* Waits until they are released, but not for ever: they may be open elsewhere. Was there one? */
static int wait_for_release(const struct open_file *asker)
{
	uint64_t limit = now_ms() + RELEASE_MS, end;
	struct timespec ts;
	int any = 0;

	pthread_mutex_lock(&locks_lock);
	while ((end = others_end_ms(asker)) > now_ms() && now_ms() < limit) {
		any = 1;
		if (end > limit)
			end = limit;
		ts = (struct timespec){ .tv_sec = end / 1000, .tv_nsec = end % 1000 * 1000000 };
		pthread_cond_clockwait(&released, &locks_lock, CLOCK_MONOTONIC, &ts);
	}
	pthread_mutex_unlock(&locks_lock);
	return any;
}

/* ---- locks ---- */

/* A lock that is asked for. The file stays open: the kernel waits for the answer. */
struct locking {
	fuse_req_t req;
	struct pvfs_file *f;
	struct pvfs_locker by;
	int op;			/* of flock(2); 0: it is @fl */
	struct flock fl;
};

static int ask_lock(struct locking *l, int wait)
{
	if (l->op)
		return pvfs_flock_by(l->f, &l->by, l->op | (wait ? 0 : LOCK_NB));
	return pvfs_lock_by(l->f, &l->by, wait ? F_SETLKW : F_SETLK, &l->fl);
}

static void stop_waiting(fuse_req_t req, void *arg)
{
	struct locking *l = arg;

	pvfs_lock_stop(l->f, &l->by);
}

static void *wait_for_lock(void *arg)
{
	struct locking *l = arg;
	fuse_req_t req = l->req;
	int err = ask_lock(l, 1);

	/* From here on nobody stops it any more. */
	fuse_req_interrupt_func(req, NULL, NULL);
	free(l);
	reply(req, err);
	return NULL;
}

/* Who waits does so on a thread of its own: those of libfuse are few, and the unlock needs one. */
static void lock(struct locking *asked, struct open_file *o, int wait)
{
	fuse_req_t req = asked->req;
	struct locking *l;
	pthread_t t;
	int err;

	has_locks(o);
	err = ask_lock(asked, 0);
	if (err == -EAGAIN && !wait && wait_for_release(o))
		err = ask_lock(asked, 0);
	if (err != -EAGAIN || !wait) {
		reply(req, err);
		return;
	}
	/* From here on whoever interrupts it ends the wait, and the wait ends the request. */
	if (!ask_end())
		return;
	l = malloc(sizeof(*l));
	if (!l) {
		reply(req, -ENOLCK);
		return;
	}
	*l = *asked;
	fuse_req_interrupt_func(req, stop_waiting, l);
	if (pthread_create(&t, NULL, wait_for_lock, l)) {
		fuse_req_interrupt_func(req, NULL, NULL);
		free(l);
		reply(req, -ENOLCK);
		return;
	}
	pthread_detach(t);
}

void do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct locking l = { .req = req, .op = op & ~LOCK_NB,
			     .by = { .pid = fuse_req_ctx(req)->pid } };

	as(req);
	l.f = file_of(fi);
	lock(&l, open_of(fi), !(op & LOCK_NB));
}

/* Of a process or of an open file: both are owners to FUSE, and which it is does not matter. */
void do_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl, int sleep)
{
	struct locking l = { .req = req, .fl = *fl,
			     .by = { .owner = fi->lock_owner, .pid = fl->l_pid } };

	as(req);
	l.f = file_of(fi);
	lock(&l, open_of(fi), sleep);
}

void do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl)
{
	struct pvfs_locker by = { .owner = fi->lock_owner };
	int err;

	as(req);
	err = pvfs_lock_by(file_of(fi), &by, F_GETLK, fl);
	if (err)
		reply(req, err);
	else if (ask_end())
		fuse_reply_lock(req, fl);
}

/* A descriptor is closed, maybe not the last of the file: the process' record locks end with it. */
void do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	as(req);
	descriptor_closed(open_of(fi));
	reply(req, pvfs_flush(file_of(fi), fi->lock_owner));
}
