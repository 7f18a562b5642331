// SPDX-License-Identifier: LGPL-2.1
/*
 * lock.c - file locks. The mgr keeps them; what it has granted is noted here too, because a
 * restarted mgr is told.
 *
 * Every request is made, and what it did noted, between lib_session_opens_begin() and _end():
 * recovery, which tells the mgr what we hold, never sees half of it. Waiting is outside of that:
 * for a LOCK_GRANT, or some seconds, then the mgr is asked again. So neither a lost message nor a
 * restart leaves anybody waiting for ever.
 */
#include "lib.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#define ASK_MS 3000		/* while queued: ask again, if no LOCK_GRANT came */
#define GRACE_MS 200		/* while others tell a restarted mgr what they have */
#define CALL_MS 5000		/* one attempt of recovery */

/* A call that waits, on its thread's stack; fs->lock protects it. */
struct lock_wait {
	struct lock_wait *next;
	const struct pvfs_locker *by;	/* may be told to stop; or NULL */
	u64 ticket;
	bool hinted;
};

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static u32 generation(struct pvfs_fs *fs)
{
	u32 g;

	pthread_mutex_lock(&fs->lock);
	g = fs->generation;
	pthread_mutex_unlock(&fs->lock);
	return g;
}

/* ---------------------------------------------------------------- waiting */

static void wait_begin(struct pvfs_fs *fs, struct lock_wait *w, const struct pvfs_locker *by)
{
	pthread_mutex_lock(&fs->lock);
	w->by = by;
	w->ticket = ++fs->lock_ids;
	w->hinted = false;
	w->next = fs->lock_waits;
	fs->lock_waits = w;
	pthread_mutex_unlock(&fs->lock);
}

static void wait_end(struct pvfs_fs *fs, struct lock_wait *w)
{
	struct lock_wait **pp;

	pthread_mutex_lock(&fs->lock);
	for (pp = &fs->lock_waits; *pp != w; pp = &(*pp)->next)
		;
	*pp = w->next;
	pthread_mutex_unlock(&fs->lock);
}

static bool wait_stopped(struct pvfs_fs *fs, const struct pvfs_locker *by)
{
	bool ret;

	pthread_mutex_lock(&fs->lock);
	ret = by && by->stop;
	pthread_mutex_unlock(&fs->lock);
	return ret;
}

/* Until it is time to ask again, or @deadline, or who waits is told to stop. */
static void wait_turn(struct pvfs_fs *fs, struct lock_wait *w, u8 state, u64 deadline)
{
	u64 until = min(now_ms() + (state == PVFS_LK_QUEUED ? ASK_MS : GRACE_MS), deadline);
	struct timespec ts = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

	pthread_mutex_lock(&fs->lock);
	while (!w->hinted && !fs->stopping && !(w->by && w->by->stop))
		if (pthread_cond_timedwait(&fs->cond, &fs->lock, &ts) == ETIMEDOUT)
			break;
	w->hinted = false;
	pthread_mutex_unlock(&fs->lock);
}

/**
 * lib_lock_callback - the mgr says that calls would be granted if they asked now; see struct
 * pvfs_peer_params
 *
 * On an engine thread. It is a hint: one that is wrong costs a question.
 */
void lib_lock_callback(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h,
		       const void *body)
{
	struct pvfs_fs *fs = pvfs_peer_arg(p);
	struct pvfs_lock_grant_req req;
	struct lock_wait *w;
	int err = -EOPNOTSUPP;
	u32 i;

	if (h->op == PVFS_OP_LOCK_GRANT)
		err = pvfs_lock_grant_req_decode(&req, body, h->body_len);
	if (!err && req.tickets.len % 8)
		err = -EBADMSG;
	if (!err) {
		pthread_mutex_lock(&fs->lock);
		for (i = 0; i < req.tickets.len / 8; i++)
			for (w = fs->lock_waits; w; w = w->next)
				if (w->ticket == get_unaligned_le64(req.tickets.p + 8 * i))
					w->hinted = true;
		pthread_cond_broadcast(&fs->cond);
		pthread_mutex_unlock(&fs->lock);
	}
	pvfs_peer_callback_reply(p, channel, h, err, NULL, 0);
}

/*
 * ---------------------------------------------------------------- requests; all between begin()
 * and end()
 */

/*
 * What one question does is noted before the next is asked: which came last is then never in doubt.
 */
static void begin(struct pvfs_fs *fs, struct inode *ino)
{
	lib_session_opens_begin(fs);
	pthread_mutex_lock(&ino->locking);
}

static void end(struct pvfs_fs *fs, struct inode *ino)
{
	pthread_mutex_unlock(&ino->locking);
	lib_session_opens_end(fs);
}

static void owner_init(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o, u8 kind)
{
	u64 id;

	pthread_mutex_lock(&fs->lock);
	id = ++fs->lock_ids;
	pthread_mutex_unlock(&fs->lock);
	pthread_mutex_lock(&ino->lock);
	if (!o->id) {
		o->id = id;
		o->kind = kind;
		o->next = ino->lock_owners;
		ino->lock_owners = o;
	}
	pthread_mutex_unlock(&ino->lock);
}

static void owner_lost(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o)
{
	bool tell;

	pthread_mutex_lock(&ino->lock);
	tell = !o->lost && o != &ino->appender;	/* which begins again at the new end */
	o->lost = true;
	pvfs_lockset_free(&o->set);
	pthread_mutex_unlock(&ino->lock);
	if (tell)
		pvfs_warn("libpvfs: %s: locks of inode %llu were lost with the session: they fail until the file is closed",
			  fs->mgr_name, (unsigned long long)ino->fid.ino);
}

/* The session that had its locks may have been replaced. */
static bool owner_is_lost(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o)
{
	u32 g = generation(fs);
	bool old, lost;

	pthread_mutex_lock(&ino->lock);
	lost = o->lost;
	old = o->set.n && o->generation != g;
	pthread_mutex_unlock(&ino->lock);
	if (old)
		owner_lost(fs, ino, o);
	return lost || old;
}

static int note(struct inode *ino, struct lock_owner *o, const struct pvfs_lockrange *r, u32 g)
{
	int err;

	pthread_mutex_lock(&ino->lock);
	err = pvfs_lockset_set(&o->set, r);
	o->generation = g;
	pthread_mutex_unlock(&ino->lock);
	return err;
}

static int ask(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o,
	       const struct pvfs_lockrange *r, u32 flags, u8 *state)
{
	struct pvfs_lock_req req = {
		.fid = ino->fid,
		.kind = o->kind,
		.type = r->type,
		.flags = flags,
		.owner = o->id,
		.pid = r->pid,
		.start = r->start,
		.end = r->end,
		.ticket = r->type == PVFS_LK_UNLOCK ? 0 : r->ticket,
	};
	struct pvfs_lock_rep rep = { 0 };
	u8 buf[64];
	int err = MGR_CALL(fs, LOCK, lock, &req, &rep, buf);

	*state = rep.state;
	return err;
}

static int cancel(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o,
		  const struct pvfs_lockrange *r, u32 flags, bool *granted)
{
	struct pvfs_lock_cancel_req req = {
		.fid = ino->fid,
		.kind = o->kind,
		.type = r->type,
		.flags = flags,
		.owner = o->id,
		.start = r->start,
		.end = r->end,
		.ticket = r->ticket,
	};
	struct pvfs_lock_cancel_rep rep = { 0 };
	u8 buf[64];
	int err = MGR_CALL(fs, LOCK_CANCEL, lock_cancel, &req, &rep, buf);

	*granted = rep.granted;
	return err;
}

static int unlock(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o,
		  const struct pvfs_lockrange *r)
{
	u8 state;
	int err;

	if (!o->id)
		return 0;
	err = ask(fs, ino, o, r, 0, &state);
	if (owner_is_lost(fs, ino, o))
		return 0;
	return err ?: note(ino, o, r, generation(fs)) ? -ENOLCK : 0;
}

/* Who locks it next is to see what we wrote: data is with the iods, size and time are told now. */
static int report(struct pvfs_fs *fs, struct inode *ino)
{
	struct pvfs_report_req req = { .fid = ino->fid };
	struct pvfs_report_rep rep;
	u8 buf[REP_MAX];
	int err;

	if (!lib_inode_report_take(ino, &req.report))
		return 0;
	err = MGR_CALL(fs, REPORT, report, &req, &rep, buf);
	if (!err) {
		lib_inode_update(ino, &rep.attr);
		lib_inode_report_done(ino, &req.report);
	}
	return err;
}

/* One question, and what its answer did is noted. Return: 0 with *@state, or -errno. */
static int ask_once(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o,
		    const struct pvfs_lockrange *r, u32 flags, u8 *state)
{
	struct pvfs_lockrange none = *r;
	u32 before, after;
	bool granted;
	int err;

	none.type = PVFS_LK_UNLOCK;
	for (;;) {
		if (owner_is_lost(fs, ino, o))
			return -EIO;
		before = generation(fs);
		err = ask(fs, ino, o, r, flags, state);
		after = generation(fs);
		if (err == -ETIMEDOUT || err == -EIO)	/* soft: it may come through yet */
			cancel(fs, ino, o, r, 0, &granted);
		if (err)
			return err;
		if (before == after)
			break;
		/*
		 * In which session was that? If it is ours to have in the new one, asking twice
		 * does no harm.
		 */
		if (owner_is_lost(fs, ino, o))
			cancel(fs, ino, o, r, 0, &granted);
	}
	if (*state == PVFS_LK_GRANTED && note(ino, o, r, after)) {
		cancel(fs, ino, o, r, 0, &granted);
		return -ENOLCK;
	}
	/* As flock(2): what was held goes when one begins to wait for another type. */
	if (*state == PVFS_LK_QUEUED && o->kind == PVFS_LK_FLOCK)
		note(ino, o, &none, after);
	return 0;
}

/* Time is up: not if it was granted meanwhile. */
static int give_up(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o,
		   const struct pvfs_lockrange *r)
{
	bool granted = false;
	int err;

	begin(fs, ino);
	err = cancel(fs, ino, o, r, PVFS_LK_KEEP, &granted);
	if (!err && granted && !owner_is_lost(fs, ino, o) && !note(ino, o, r, generation(fs)))
		err = 0;
	else
		err = err ?: -ETIMEDOUT;
	end(fs, ino);
	return err;
}

/* @by: may be told to stop waiting; or NULL */
static int lock_set(struct pvfs_file *f, struct lock_owner *o, u8 kind, struct pvfs_lockrange *r,
		    bool wait, int timeout_ms, const struct pvfs_locker *by)
{
	u64 deadline = timeout_ms < 0 ? UINT64_MAX : now_ms() + timeout_ms;
	struct inode *ino = f->inode;
	struct pvfs_fs *fs = f->fs;
	struct lock_wait w;
	bool again, stop;
	u8 state;
	int err;

	if (r->type == PVFS_LK_UNLOCK) {
		begin(fs, ino);
		report(fs, ino);
		err = unlock(fs, ino, o, r);
		end(fs, ino);
		return err;
	}
	wait_begin(fs, &w, by);
	r->ticket = w.ticket;
	do {
		again = false;
		begin(fs, ino);
		owner_init(fs, ino, o, kind);
		err = ask_once(fs, ino, o, r, wait ? PVFS_LK_WAIT : 0, &state);
		end(fs, ino);
		if (err)
			break;
		if (state == PVFS_LK_CONFLICT || state == PVFS_LK_DEADLOCK) {
			err = state == PVFS_LK_CONFLICT ? -EAGAIN : -EDEADLK;
		} else if (state != PVFS_LK_GRANTED) {
			stop = wait_stopped(fs, by);
			again = (now_ms() < deadline || !wait) && !stop;
			if (again)
				wait_turn(fs, &w, state, wait ? deadline : UINT64_MAX);
			else
				err = state == PVFS_LK_QUEUED ? give_up(fs, ino, o, r) : -ETIMEDOUT;
			if (stop && err == -ETIMEDOUT)
				err = -EINTR;
		}
	} while (again);
	wait_end(fs, &w);
	return err;
}

/* ---------------------------------------------------------------- appending */

/**
 * lib_append_begin - no other client appends to a file, or cuts it, until lib_append_end()
 * @f: the file; its inode's append lock is held until then
 *
 * Return: 0 or -errno.
 */
int lib_append_begin(struct pvfs_file *f)
{
	struct pvfs_lockrange all = { .end = PVFS_FILE_MAX, .type = PVFS_LK_WRITE };
	struct lock_owner *o = &f->inode->appender;
	int err;

	/* Lost with a session that is gone: nothing of it lasts longer than a write. */
	pthread_mutex_lock(&f->inode->lock);
	o->lost = false;
	pthread_mutex_unlock(&f->inode->lock);
	err = lock_set(f, o, PVFS_LK_APPEND, &all, true, -1, NULL);
	return err == -ENOLCK ? -EIO : err;
}

/**
 * lib_append_lost - did the lock go with a session, since lib_append_begin()?
 */
bool lib_append_lost(const struct pvfs_file *f)
{
	return owner_is_lost(f->fs, f->inode, &f->inode->appender);
}

void lib_append_end(struct pvfs_file *f)
{
	struct pvfs_lockrange all = { .end = PVFS_FILE_MAX, .type = PVFS_LK_UNLOCK };

	begin(f->fs, f->inode);
	unlock(f->fs, f->inode, &f->inode->appender, &all);
	end(f->fs, f->inode);
}

/* ---------------------------------------------------------------- the calls */

static int range_of(const struct flock *fl, pid_t pid, struct pvfs_lockrange *r)
{
	off_t start = fl->l_start, len = fl->l_len;

	if (fl->l_whence != SEEK_SET || start < 0)
		return -EINVAL;
	if (len < 0) {
		if (len < -start)
			return -EINVAL;
		start += len;
		len = -len;
	}
	if (len && len - 1 > INT64_MAX - start)
		return -EOVERFLOW;
	switch (fl->l_type) {
	case F_RDLCK:
		r->type = PVFS_LK_READ;
		break;
	case F_WRLCK:
		r->type = PVFS_LK_WRITE;
		break;
	case F_UNLCK:
		r->type = PVFS_LK_UNLOCK;
		break;
	default:
		return -EINVAL;
	}
	r->start = start;
	r->end = len ? (u64)start + len - 1 : PVFS_FILE_MAX;
	r->pid = pid;
	return 0;
}

/* @o: NULL: one that has no locks there */
static int lock_get(struct pvfs_file *f, const struct lock_owner *o, u8 kind,
		    const struct pvfs_lockrange *r, struct flock *fl)
{
	struct pvfs_getlk_req req = {
		.fid = f->inode->fid,
		.kind = kind,
		.type = r->type,
		.owner = o ? o->id : 0,
		.start = r->start,
		.end = r->end,
	};
	struct pvfs_getlk_rep rep;
	u8 buf[128];
	int err;

	if (r->type == PVFS_LK_UNLOCK)
		return -EINVAL;
	err = MGR_CALL(f->fs, GETLK, getlk, &req, &rep, buf);
	if (err)
		return err;
	fl->l_type = F_UNLCK;
	if (rep.type == PVFS_LK_UNLOCK)
		return 0;
	if (rep.type > PVFS_LK_WRITE || rep.start > rep.end || rep.end > PVFS_FILE_MAX)
		return -EIO;
	fl->l_type = rep.type == PVFS_LK_WRITE ? F_WRLCK : F_RDLCK;
	fl->l_start = rep.start;
	fl->l_len = rep.end == PVFS_FILE_MAX ? 0 : rep.end - rep.start + 1;
	/* As the kernel's client tells it. */
	fl->l_pid = rep.kind == PVFS_LK_OFD ? -1 : rep.own ? (pid_t)rep.pid : -(pid_t)rep.pid;
	return 0;
}

static bool may_lock(const struct pvfs_file *f, const struct pvfs_lockrange *r)
{
	return r->type == PVFS_LK_READ ? f->rights & PVFS_CAP_READ :
	       r->type == PVFS_LK_WRITE ? f->rights & PVFS_CAP_WRITE : true;
}

int pvfs_lock(struct pvfs_file *f, int cmd, struct flock *fl, int timeout_ms)
{
	bool ofd = cmd == F_OFD_GETLK || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
	struct lock_owner *o = ofd ? &f->ofd : &f->inode->records;
	u8 kind = ofd ? PVFS_LK_OFD : PVFS_LK_RECORD;
	struct pvfs_lockrange r = { 0 };
	int err = lib_fs_check(f->fs) ?: range_of(fl, getpid(), &r);

	if (!err && ofd && fl->l_pid)
		err = -EINVAL;
	if (err)
		return err;
	if (cmd == F_GETLK || cmd == F_OFD_GETLK)
		return lock_get(f, o, kind, &r, fl);
	if (!ofd && cmd != F_SETLK && cmd != F_SETLKW)
		return -EINVAL;
	if (!may_lock(f, &r))
		return -EBADF;
	return lock_set(f, o, kind, &r, cmd == F_SETLKW || cmd == F_OFD_SETLKW, timeout_ms, NULL);
}

static int do_flock(struct pvfs_file *f, const struct pvfs_locker *by, int operation,
		    int timeout_ms)
{
	struct pvfs_lockrange r = { .end = PVFS_FILE_MAX, .pid = by ? by->pid : getpid() };
	int err = lib_fs_check(f->fs);

	if (err)
		return err;
	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
		r.type = PVFS_LK_READ;
		break;
	case LOCK_EX:
		r.type = PVFS_LK_WRITE;
		break;
	case LOCK_UN:
		r.type = PVFS_LK_UNLOCK;
		break;
	default:
		return -EINVAL;
	}
	return lock_set(f, &f->flk, PVFS_LK_FLOCK, &r, !(operation & LOCK_NB), timeout_ms, by);
}

int pvfs_flock(struct pvfs_file *f, int operation, int timeout_ms)
{
	return do_flock(f, NULL, operation, timeout_ms);
}

/* ---------------------------------------------------------------- locking for others */

/* These three between begin() and end(). */
static struct lock_owner *named_find(struct inode *ino, u64 name)
{
	struct lock_owner *o;

	for (o = ino->lock_owners; o && !(o->named && o->name == name); o = o->next)
		;
	return o;
}

/* For a call. Return: NULL: there is none, or with @make: out of memory. */
static struct lock_owner *named_use(struct pvfs_file *f, u64 name, bool make)
{
	struct lock_owner *o = named_find(f->inode, name);

	if (!o && make)
		o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	if (!o->id) {
		o->named = true;
		o->name = name;
		owner_init(f->fs, f->inode, o, PVFS_LK_RECORD);
	}
	o->users++;
	o->last = f;
	return o;
}

static void owner_close(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o, bool gone);

/* It stays for those calls that are still under way for it. */
static void named_close(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o)
{
	bool gone = !o->users;

	owner_close(fs, ino, o, gone);
	if (gone)
		free(o);
}

int pvfs_lock_by(struct pvfs_file *f, struct pvfs_locker *by, int cmd, struct flock *fl)
{
	struct pvfs_lockrange r = { 0 };
	int err = lib_fs_check(f->fs) ?: range_of(fl, by->pid, &r);
	struct lock_owner *o;

	if (!err && cmd != F_GETLK && cmd != F_SETLK && cmd != F_SETLKW)
		err = -EINVAL;
	if (!err && cmd != F_GETLK && !may_lock(f, &r))
		err = -EBADF;
	if (err)
		return err;
	begin(f->fs, f->inode);
	o = named_use(f, by->owner, cmd != F_GETLK && r.type != PVFS_LK_UNLOCK);
	end(f->fs, f->inode);
	if (cmd == F_GETLK)
		err = lock_get(f, o, PVFS_LK_RECORD, &r, fl);
	else if (o)
		err = lock_set(f, o, PVFS_LK_RECORD, &r, cmd == F_SETLKW, -1, by);
	else
		err = r.type == PVFS_LK_UNLOCK ? 0 : -ENOLCK;
	if (o) {
		begin(f->fs, f->inode);
		o->users--;
		end(f->fs, f->inode);
	}
	return err;
}

int pvfs_flock_by(struct pvfs_file *f, struct pvfs_locker *by, int operation)
{
	return do_flock(f, by, operation, -1);
}

void pvfs_lock_stop(struct pvfs_file *f, struct pvfs_locker *by)
{
	pthread_mutex_lock(&f->fs->lock);
	by->stop = 1;
	pthread_cond_broadcast(&f->fs->cond);
	pthread_mutex_unlock(&f->fs->lock);
}

int pvfs_flush(struct pvfs_file *f, uint64_t owner)
{
	struct inode *ino = f->inode;
	int err = lib_fs_check(f->fs);
	struct lock_owner *o;
	bool was_read;

	if (err)
		return err;
	begin(f->fs, ino);
	o = named_find(ino, owner);
	pthread_mutex_lock(&ino->lock);
	was_read = ino->atime_due.sec;
	pthread_mutex_unlock(&ino->lock);
	/* What was written others are told by the iods while the file is open. */
	if (o || was_read)
		report(f->fs, ino);
	if (o)
		named_close(f->fs, ino, o);
	end(f->fs, ino);
	return 0;
}

/* ---------------------------------------------------------------- close and recovery */

/* @gone: it is an open file's, and goes with it. */
static void owner_close(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o, bool gone)
{
	struct pvfs_lockrange all = { .end = PVFS_FILE_MAX, .type = PVFS_LK_UNLOCK };
	struct lock_owner **pp;

	if (!o->id)
		return;
	/* Also when nothing is noted: a call that failed (soft) may have come through. */
	unlock(fs, ino, o, &all);
	pthread_mutex_lock(&ino->lock);
	pvfs_lockset_free(&o->set);
	o->lost = false;
	for (pp = &ino->lock_owners; gone && *pp; pp = &(*pp)->next) {
		if (*pp == o) {
			*pp = o->next;
			break;
		}
	}
	pthread_mutex_unlock(&ino->lock);
}

/**
 * lib_locks_close - a file is closed: its locks go, and the process' on the inode, as POSIX has it
 *
 * Between lib_session_opens_begin() and _end().
 */
void lib_locks_close(struct pvfs_file *f)
{
	struct lock_owner *o, *next;

	pthread_mutex_lock(&f->inode->locking);
	for (o = f->inode->lock_owners; o; o = next) {
		next = o->next;
		if (!o->named || o->last != f)
			continue;
		o->last = NULL;
		/* Who is using it does so by another file, and will say when it ends. */
		if (!o->users)
			named_close(f->fs, f->inode, o);
	}
	owner_close(f->fs, f->inode, &f->flk, true);
	owner_close(f->fs, f->inode, &f->ofd, true);
	owner_close(f->fs, f->inode, &f->inode->records, false);
	pthread_mutex_unlock(&f->inode->locking);
}

/*
 * Tells a new mgr of one owner's locks. Return: 0, also when they are lost; or -errno: to be tried
 * again.
 */
static int owner_reclaim(struct pvfs_fs *fs, struct inode *ino, struct lock_owner *o)
{
	struct pvfs_lock_req req = { .fid = ino->fid,
				     .kind = o->kind,
				     .flags = PVFS_LK_RECLAIM,
				     .owner = o->id };
	struct pvfs_lock_rep rep = { 0 };
	u8 body[128], rep_buf[64];
	struct pvfs_rpc rpc;
	u32 i;
	int n, err;

	for (i = 0; i < o->set.n && !owner_is_lost(fs, ino, o); i++) {
		req.type = o->set.r[i].type;
		req.pid = o->set.r[i].pid;
		req.start = o->set.r[i].start;
		req.end = o->set.r[i].end;
		req.ticket = o->set.r[i].ticket;
		n = pvfs_lock_req_encode(&req, body, sizeof(body));
		if (n < 0)
			return n;
		rpc = (struct pvfs_rpc){ .op = PVFS_OP_LOCK,
					 .body = body,
					 .body_len = n,
					 .rep = rep_buf,
					 .rep_room = sizeof(rep_buf),
					 .timeout_ms = CALL_MS };
		err = pvfs_peer_call(fs->mgr, &rpc);
		if (!err)
			err = pvfs_lock_rep_decode(&rep, rep_buf, rpc.rep_len);
		if (err && err != -ENOLCK && err != -ESTALE && err != -ENOENT)
			return err;
		if (err || rep.state != PVFS_LK_GRANTED)
			owner_lost(fs, ino, o);
	}
	return 0;
}

/**
 * lib_locks_reclaim - tell the mgr what is locked of an inode
 *
 * As lib_inode_reclaim(), which calls it: nothing else that concerns locks is under way.
 */
int lib_locks_reclaim(struct pvfs_fs *fs, struct inode *ino)
{
	struct lock_owner *o;
	int err = 0;

	for (o = ino->lock_owners; o && !err; o = o->next)
		err = owner_reclaim(fs, ino, o);
	return err;
}
