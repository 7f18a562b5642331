// SPDX-License-Identifier: GPL-2.0
/*
 * pvfsd - a volume mounted from user space, by libfuse3 and libpvfs: for hosts that cannot load the
 * module. See pvfsd(8).
 *
 * The kernel asks, a thread of libfuse calls libpvfs for the user who asked, and the manager decides:
 * nothing is cached here or in the kernel, so this mount is as coherent as any other client. An inode
 * is known to the kernel by its number; its generation is kept here as long as the kernel knows it.
 */
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "../lib/pvfs.h"

#define BUCKETS 4096u
#define GROUPS_MAX 1024
#define THREADS_MAX 1000
#define RELEASE_MS 200	/* from the last close(2) of a file to its release, at most */

static struct pvfs_fs *fs;
static struct pvfs_fh root;

/* ---- inodes that the kernel knows ---- */

struct node {
	struct node *next;
	struct pvfs_fh fh;
	uint64_t lookups;
	char *target;		/* of a symbolic link, if it came along; it never changes */
	struct stat last;	/* when it was looked up last */
};

static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *nodes[BUCKETS];	/* protected by it */

static struct node **find(uint64_t ino)
{
	struct node **p = &nodes[ino % BUCKETS];

	while (*p && (*p)->fh.ino != ino)
		p = &(*p)->next;
	return p;
}

/* @target: or NULL: not known */
static int remember(const struct pvfs_stat *st, const char *target)
{
	struct node **p, *n;

	pthread_mutex_lock(&nodes_lock);
	p = find(st->fh.ino);
	if (!*p)
		*p = calloc(1, sizeof(**p));
	n = *p;
	if (n) {
		n->fh = st->fh;
		n->last = st->st;
		n->lookups++;
		if (!n->target && target && *target)
			n->target = strdup(target);
	}
	pthread_mutex_unlock(&nodes_lock);
	return n ? 0 : -ENOMEM;
}

static void forget(uint64_t ino, uint64_t count)
{
	struct node **p, *n;

	pthread_mutex_lock(&nodes_lock);
	p = find(ino);
	n = *p;
	if (n && n->lookups <= count) {
		*p = n->next;
		free(n->target);
		free(n);
	} else if (n) {
		n->lookups -= count;
	}
	pthread_mutex_unlock(&nodes_lock);
}

static struct pvfs_fh fh_of(fuse_ino_t ino)
{
	struct pvfs_fh fh = { .ino = ino };
	struct node *n;

	if (ino == FUSE_ROOT_ID)
		return root;
	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	if (n)
		fh = n->fh;
	pthread_mutex_unlock(&nodes_lock);
	return fh;
}

/* Return: its length, 0: it has to be asked for. */
static size_t target_of(fuse_ino_t ino, char target[PVFS_TARGET_ROOM])
{
	struct node *n;

	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	strcpy(target, n && n->target ? n->target : "");
	pthread_mutex_unlock(&nodes_lock);
	return strlen(target);
}

/* A directory that is gone, and still open somewhere, is one without links. */
static int gone_directory(fuse_ino_t ino, struct stat *ret)
{
	struct node *n;
	int is;

	pthread_mutex_lock(&nodes_lock);
	n = *find(ino);
	is = n && S_ISDIR(n->last.st_mode);
	if (is)
		*ret = n->last;
	pthread_mutex_unlock(&nodes_lock);
	ret->st_nlink = 0;
	return is;
}

/* ---- open files ---- */

/*
 * The kernel tells of every close(2) while it is under way, and that there was no descriptor left
 * some time after: until then the file has its locks of flock(2) and the like.
 */
struct open_file {
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

static struct pvfs_file *file_of(const struct fuse_file_info *fi)
{
	return open_of(fi)->f;
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

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static void descriptor_closed(struct open_file *o)
{
	pthread_mutex_lock(&locks_lock);
	o->ends_ms = now_ms() + RELEASE_MS;
	pthread_mutex_unlock(&locks_lock);
}

static int open_end(struct open_file *o)
{
	struct open_file **p;
	int err = pvfs_close(o->f);

	pthread_mutex_lock(&locks_lock);
	for (p = &with_locks; *p && *p != o; p = &(*p)->next)
		;
	if (*p)
		*p = o->next;
	pthread_cond_broadcast(&released);
	pthread_mutex_unlock(&locks_lock);
	free(o);
	return err;
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
		pthread_cond_timedwait(&released, &locks_lock, &ts);
	}
	pthread_mutex_unlock(&locks_lock);
	return any;
}

/* ---- who asks, and what is answered ---- */

/* What follows on this thread is done for who made the request. */
static void as(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	gid_t groups[GROUPS_MAX];
	int n = ctx->uid ? fuse_req_getgroups(req, GROUPS_MAX, groups) : 0;

	if (pvfs_setcred_thread(fs, ctx->uid, ctx->gid, groups, n < 0 ? 0 : n > GROUPS_MAX ? GROUPS_MAX : n,
				ctx->umask))
		pvfs_setcred_thread(fs, ctx->uid, ctx->gid, NULL, 0, ctx->umask);
}

static void reply(fuse_req_t req, int err)
{
	fuse_reply_err(req, -err);
}

/* Of a name: there is nothing in a directory that is gone. */
static void reply_name(fuse_req_t req, int err)
{
	reply(req, err == -ESTALE ? -ENOENT : err);
}

static void reply_size(fuse_req_t req, ssize_t n)
{
	if (n < 0)
		reply(req, n);
	else
		fuse_reply_write(req, n);
}

/* A name, with what it names. */
static int fill_entry(struct fuse_entry_param *e, const struct pvfs_stat *st, const char *target)
{
	*e = (struct fuse_entry_param){ .ino = st->fh.ino == root.ino ? FUSE_ROOT_ID : st->fh.ino,
					.generation = st->fh.gen, .attr = st->st };
	return e->ino == FUSE_ROOT_ID ? 0 : remember(st, target);
}

/* @err: of the call that found it */
static void reply_target(fuse_req_t req, int err, const struct pvfs_stat *st, const char *target)
{
	struct fuse_entry_param e;

	err = err ? err : fill_entry(&e, st, target);
	if (err)
		reply_name(req, err);
	else if (fuse_reply_entry(req, &e))
		forget(e.ino, 1);
}

static void reply_entry(fuse_req_t req, int err, const struct pvfs_stat *st)
{
	reply_target(req, err, st, NULL);
}

static void reply_attr(fuse_req_t req, int err, const struct pvfs_stat *st)
{
	if (err)
		reply(req, err);
	else
		fuse_reply_attr(req, &st->st, 0);
}

/* ---- names ---- */

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = fh_of(parent);
	char target[PVFS_TARGET_ROOM];
	struct pvfs_stat st;

	as(req);
	reply_target(req, pvfs_lookup_target_fh(fs, &dir, name, &st, target), &st, target);
}

static void do_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	forget(ino, nlookup);
	fuse_reply_none(req);
}

static void do_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *f)
{
	size_t i;

	for (i = 0; i < count; i++)
		forget(f[i].ino, f[i].nlookup);
	fuse_reply_none(req);
}

static void do_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct pvfs_fh dir = fh_of(parent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_mknod_fh(fs, &dir, name, mode, rdev, &st), &st);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct pvfs_fh dir = fh_of(parent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_mkdir_fh(fs, &dir, name, mode, &st), &st);
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = fh_of(parent);
	struct pvfs_stat st;

	as(req);
	reply_target(req, pvfs_symlink_fh(fs, target, &dir, name, &st), &st,
		     strlen(target) < PVFS_TARGET_ROOM ? target : NULL);
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t newparent, const char *name)
{
	struct pvfs_fh fh = fh_of(ino), dir = fh_of(newparent);
	struct pvfs_stat st;

	as(req);
	reply_entry(req, pvfs_link_fh(fs, &fh, &dir, name, &st), &st);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = fh_of(parent);

	as(req);
	reply_name(req, pvfs_unlink_fh(fs, &dir, name));
}

static void do_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pvfs_fh dir = fh_of(parent);

	as(req);
	reply_name(req, pvfs_rmdir_fh(fs, &dir, name));
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		      const char *newname, unsigned int flags)
{
	struct pvfs_fh from = fh_of(parent), to = fh_of(newparent);

	as(req);
	reply_name(req, pvfs_rename_fh(fs, &from, name, &to, newname, flags));
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct pvfs_fh fh = fh_of(ino);
	char target[4097];
	ssize_t n;

	/* The link may be gone by now, and its name be another's all the time. */
	if (target_of(ino, target)) {
		fuse_reply_readlink(req, target);
		return;
	}
	as(req);
	n = pvfs_readlink_fh(fs, &fh, target, sizeof(target) - 1);
	if (n < 0) {
		reply(req, n);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(req, target);
}

/* ---- attributes ---- */

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct pvfs_fh fh = fh_of(ino);
	struct pvfs_stat st;
	int err;

	as(req);
	err = pvfs_stat_fh(fs, &fh, &st);
	if (err == -ESTALE && gone_directory(ino, &st.st))
		err = 0;
	reply_attr(req, err, &st);
}

static void set_times(int to_set, const struct stat *attr, struct timespec ts[2])
{
	ts[0].tv_nsec = to_set & FUSE_SET_ATTR_ATIME_NOW ? UTIME_NOW : UTIME_OMIT;
	ts[1].tv_nsec = to_set & FUSE_SET_ATTR_MTIME_NOW ? UTIME_NOW : UTIME_OMIT;
	if ((to_set & FUSE_SET_ATTR_ATIME) && !(to_set & FUSE_SET_ATTR_ATIME_NOW))
		ts[0] = attr->st_atim;
	if ((to_set & FUSE_SET_ATTR_MTIME) && !(to_set & FUSE_SET_ATTR_MTIME_NOW))
		ts[1] = attr->st_mtim;
}

/*
 * Before a write or the like by one who is not the owner the kernel takes set-id bits away, for the
 * same user: that is no chmod of theirs. The write itself does it, in libpvfs and the manager.
 */
static int only_drops_set_id(const struct pvfs_fh *fh, mode_t mode)
{
	struct pvfs_stat st;

	return !pvfs_stat_fh(fs, fh, &st) && !(mode & ~st.st.st_mode & 07777) &&
	       !((mode ^ st.st.st_mode) & 07777 & ~(S_ISUID | S_ISGID));
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
			  FUSE_SET_ATTR_MTIME_NOW;
	struct pvfs_fh fh = fh_of(ino);
	struct timespec ts[2] = { 0 };
	struct pvfs_stat st;
	int err = 0;

	as(req);
	if (to_set & FUSE_SET_ATTR_MODE)
		err = pvfs_chmod_fh(fs, &fh, attr->st_mode, &st);
	if (err == -EPERM && only_drops_set_id(&fh, attr->st_mode))
		err = 0;
	if (!err && (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		err = pvfs_chown_fh(fs, &fh, to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
				    to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1, &st);
	if (!err && (to_set & FUSE_SET_ATTR_SIZE))
		err = fi ? pvfs_ftruncate(file_of(fi), attr->st_size) :
			   pvfs_truncate_fh(fs, &fh, attr->st_size, &st);
	if (!err && (to_set & times)) {
		set_times(to_set, attr, ts);
		err = pvfs_utimens_fh(fs, &fh, ts, &st);
	}
	err = err ? err : pvfs_stat_fh(fs, &fh, &st);
	reply_attr(req, err, &st);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct pvfs_fsstat st;
	int err = pvfs_statfs(fs, &st);

	if (err)
		reply(req, err);
	else
		fuse_reply_statfs(req, &st.vfs);
}

static void do_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
			int flags)
{
	struct pvfs_fh fh = fh_of(ino);

	as(req);
	reply(req, pvfs_setxattr_fh(fs, &fh, name, value, size, flags));
}

static void reply_list(fuse_req_t req, ssize_t n, size_t size, const char *buf)
{
	if (n < 0)
		reply(req, n);
	else if (!size)
		fuse_reply_xattr(req, n);
	else
		fuse_reply_buf(req, buf, n);
}

static void do_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct pvfs_fh fh = fh_of(ino);
	char *buf = malloc(size ? size : 1);

	as(req);
	reply_list(req, buf ? pvfs_getxattr_fh(fs, &fh, name, buf, size) : -ENOMEM, size, buf);
	free(buf);
}

static void do_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct pvfs_fh fh = fh_of(ino);
	char *buf = malloc(size ? size : 1);

	as(req);
	reply_list(req, buf ? pvfs_listxattr_fh(fs, &fh, buf, size) : -ENOMEM, size, buf);
	free(buf);
}

static void do_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct pvfs_fh fh = fh_of(ino);

	as(req);
	reply(req, pvfs_removexattr_fh(fs, &fh, name));
}

/* ---- files ---- */

/*
 * Bytes do not stay in the kernel: what another client wrote is seen by the next read. Return: 0, or
 * -ENOMEM, and @f is closed.
 */
static int opened(struct fuse_file_info *fi, struct pvfs_file *f, uint64_t ino)
{
	struct open_file *o = calloc(1, sizeof(*o));

	if (!o) {
		pvfs_close(f);
		return -ENOMEM;
	}
	o->f = f;
	o->ino = ino;
	fi->fh = (uintptr_t)o;
	fi->direct_io = 1;
	return 0;
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct pvfs_fh fh = fh_of(ino);
	struct pvfs_file *f;
	int err;

	as(req);
	/* Where an append goes is libpvfs' affair: nobody else knows the end. */
	err = pvfs_open_fh(fs, &fh, fi->flags & ~(O_CREAT | O_EXCL), &f);
	err = err ? err : opened(fi, f, ino);
	if (err) {
		reply(req, err);
		return;
	}
	if (fuse_reply_open(req, fi))
		open_end(open_of(fi));
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct pvfs_fh dir = fh_of(parent);
	struct fuse_entry_param e;
	struct pvfs_file *f;
	struct pvfs_stat st;
	int err;

	as(req);
	err = pvfs_create_fh(fs, &dir, name, fi->flags | O_CREAT, mode, NULL, &f, &st);
	err = err ? err : opened(fi, f, st.fh.ino);
	if (err) {
		reply_name(req, err);
		return;
	}
	err = fill_entry(&e, &st, NULL);
	if (err) {
		open_end(open_of(fi));
		reply_name(req, err);
	} else if (fuse_reply_create(req, &e, fi)) {
		forget(e.ino, 1);
		open_end(open_of(fi));
	}
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	char *buf = malloc(size ? size : 1);
	ssize_t n;

	as(req);
	n = buf ? pvfs_pread(file_of(fi), buf, size, off) : -ENOMEM;
	if (n < 0)
		reply(req, n);
	else
		fuse_reply_buf(req, buf, n);
	free(buf);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	as(req);
	reply_size(req, pvfs_pwrite(file_of(fi), buf, size, off));
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	as(req);
	reply(req, open_end(open_of(fi)));
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	as(req);
	reply(req, datasync ? pvfs_fdatasync(file_of(fi)) : pvfs_fsync(file_of(fi)));
}

static void do_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	as(req);
	reply(req, pvfs_fallocate(file_of(fi), mode, off, len));
}

static void do_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	off_t at;

	as(req);
	at = pvfs_lseek(file_of(fi), off, whence);
	if (at < 0)
		reply(req, at);
	else
		fuse_reply_lseek(req, at);
}

static void do_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in, struct fuse_file_info *fi_in,
			       fuse_ino_t ino_out, off_t off_out, struct fuse_file_info *fi_out, size_t len,
			       int flags)
{
	as(req);
	reply_size(req, pvfs_copy_file_range(file_of(fi_in), off_in, file_of(fi_out), off_out, len, flags));
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

	as(req);
	has_locks(o);
	err = ask_lock(asked, 0);
	if (err == -EAGAIN && !wait && wait_for_release(o))
		err = ask_lock(asked, 0);
	if (err != -EAGAIN || !wait) {
		reply(req, err);
		return;
	}
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

static void do_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct locking l = { .req = req, .f = file_of(fi), .op = op & ~LOCK_NB,
			     .by = { .pid = fuse_req_ctx(req)->pid } };

	lock(&l, open_of(fi), !(op & LOCK_NB));
}

/* Of a process or of an open file: both are owners to FUSE, and which it is does not matter. */
static void do_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl, int sleep)
{
	struct locking l = { .req = req, .f = file_of(fi), .fl = *fl,
			     .by = { .owner = fi->lock_owner, .pid = fl->l_pid } };

	lock(&l, open_of(fi), sleep);
}

static void do_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *fl)
{
	struct pvfs_locker by = { .owner = fi->lock_owner };
	int err = pvfs_lock_by(file_of(fi), &by, F_GETLK, fl);

	if (err)
		reply(req, err);
	else
		fuse_reply_lock(req, fl);
}

/* A descriptor is closed, maybe not the last of the file: the process' record locks end with it. */
static void do_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	descriptor_closed(open_of(fi));
	reply(req, pvfs_flush(file_of(fi), fi->lock_owner));
}

/* ---- directories ---- */

/* An open directory. */
struct listing {
	struct pvfs_dir *d;
	off_t at;			/* behind what the kernel was told last */
	struct pvfs_dirent next;	/* it comes there: there was no room for it */
	int have_next;
};

static void listing_free(struct listing *l)
{
	pvfs_closedir(l->d);
	free(l);
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct listing *l = calloc(1, sizeof(*l));
	struct pvfs_fh fh = fh_of(ino);
	int err;

	as(req);
	err = l ? pvfs_opendir_fh(fs, &fh, &l->d) : -ENOMEM;
	if (err) {
		free(l);
		reply(req, err);
		return;
	}
	fi->fh = (uintptr_t)l;
	if (fuse_reply_open(req, fi))
		listing_free(l);
}

/* The entry after @l->at. Return: 1, 0 at the end, or -errno. */
static int look(struct listing *l)
{
	int rc = l->have_next ? 1 : pvfs_readdir(l->d, &l->next);

	l->have_next = rc > 0;
	return rc;
}

/*
 * @plus: with what the names name, which the kernel then knows. One open directory is read by one
 * request at a time.
 */
static void list(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, int plus)
{
	struct listing *l = (struct listing *)(uintptr_t)fi->fh;
	const struct pvfs_dirent *de = &l->next;
	struct fuse_entry_param e;
	char *buf = malloc(size);
	size_t used = 0, n;
	int rc = 0;

	as(req);
	if (!buf) {
		reply(req, -ENOMEM);
		return;
	}
	if (off != l->at) {
		pvfs_seekdir(l->d, off);
		l->at = off;
		l->have_next = 0;
	}
	while ((rc = look(l)) > 0) {
		int dots = !strcmp(de->name, ".") || !strcmp(de->name, "..");

		e = (struct fuse_entry_param){ .attr = de->stat.st };
		/* How much would it take? The kernel is told of it only when there is room. */
		n = plus ? fuse_add_direntry_plus(req, NULL, 0, de->name, NULL, 0) :
			   fuse_add_direntry(req, NULL, 0, de->name, NULL, 0);
		if (used + n > size)
			break;
		/* A size that is not known must not be believed: the kernel asks when it looks. */
		if (plus && !dots && !(de->stat.flags & PVFS_ST_SIZE_UNKNOWN) && fill_entry(&e, &de->stat, NULL))
			e = (struct fuse_entry_param){ .attr = de->stat.st };
		used += plus ? fuse_add_direntry_plus(req, buf + used, size - used, de->name, &e, de->off) :
			       fuse_add_direntry(req, buf + used, size - used, de->name, &e.attr, de->off);
		l->at = de->off;
		l->have_next = 0;
	}
	if (rc < 0 && !used)
		reply(req, rc);
	else
		fuse_reply_buf(req, buf, used);
	free(buf);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	list(req, size, off, fi, 0);
}

static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	list(req, size, off, fi, 1);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	listing_free((struct listing *)(uintptr_t)fi->fh);
	reply(req, 0);
}

static void do_init(void *unused, struct fuse_conn_info *conn)
{
	conn->want |= conn->capable & (FUSE_CAP_DONT_MASK | FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_PARALLEL_DIROPS |
				       FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_READDIRPLUS |
				       FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_POSIX_ACL | FUSE_CAP_EXPORT_SUPPORT);
	conn->want &= ~(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_AUTO_INVAL_DATA);
	conn->max_write = 1 << 20;
	conn->max_background = 64;
}

/*
 * What is not here the kernel asks for once: ->fsyncdir has nothing to do, since a change of a name that
 * was answered is kept by the manager; ->access is default_permissions'.
 */
static const struct fuse_lowlevel_ops ops = {
	.init = do_init, .lookup = do_lookup, .forget = do_forget, .forget_multi = do_forget_multi,
	.getattr = do_getattr, .setattr = do_setattr, .readlink = do_readlink, .mknod = do_mknod,
	.mkdir = do_mkdir, .unlink = do_unlink, .rmdir = do_rmdir, .symlink = do_symlink,
	.rename = do_rename, .link = do_link, .open = do_open, .read = do_read, .write = do_write,
	.release = do_release, .fsync = do_fsync, .opendir = do_opendir,
	.readdir = do_readdir, .readdirplus = do_readdirplus, .releasedir = do_releasedir,
	.statfs = do_statfs, .setxattr = do_setxattr, .getxattr = do_getxattr,
	.listxattr = do_listxattr, .removexattr = do_removexattr,
	.create = do_create, .fallocate = do_fallocate, .lseek = do_lseek,
	.copy_file_range = do_copy_file_range, .flock = do_flock, .setlk = do_setlk, .getlk = do_getlk,
	.flush = do_flush,
};

/* ---- start and stop ---- */

struct options {
	char *key;
	unsigned int timeo, nconnect, mount_timeout;
	int soft;
};

static const struct fuse_opt option_list[] = {
	{ "key=%s", offsetof(struct options, key), 0 },
	{ "timeo=%u", offsetof(struct options, timeo), 0 },
	{ "nconnect=%u", offsetof(struct options, nconnect), 0 },
	{ "mount_timeout=%u", offsetof(struct options, mount_timeout), 0 },
	{ "soft", offsetof(struct options, soft), 1 },
	{ "hard", offsetof(struct options, soft), 0 },
	FUSE_OPT_END
};

static void usage(FILE *f)
{
	fprintf(f, "usage: pvfsd [-f] [-o options] host[:port]:/volume directory\n"
		   "  -f             stay in the foreground\n"
		   "  -o key=FILE    the cluster key (default /etc/pvfs/cluster.key)\n"
		   "  -o soft,timeo=DS  give up after so many tenths of a second\n"
		   "  -o nconnect=N  connections to each server\n"
		   "  -o mount_timeout=S  how many seconds the manager has to answer (10)\n"
		   "  -o allow_other, ro, and what else mount.fuse3(8) has\n");
}

/* "host:port:/volume" into manager and volume. */
static int parse_source(char *source, char **mgr, char **volume)
{
	char *at = strstr(source, ":/");

	if (!at || at == source || !at[2] || strchr(at + 2, '/'))
		return -EINVAL;
	*at = '\0';
	*mgr = source;
	*volume = at + 2;
	return 0;
}

static int mount_volume(const struct options *o, char *mgr, char *volume)
{
	struct pvfs_mount_opts opts = PVFS_MOUNT_OPTS_INIT;
	struct pvfs_volinfo vol;
	char why[512] = "";
	int err;

	opts.mgr = mgr;
	opts.volume = volume;
	opts.key_file = o->key;
	opts.nconnect = o->nconnect;
	opts.soft = o->soft;
	opts.timeo_ms = o->timeo * 100;
	opts.mount_timeout_ms = o->mount_timeout * 1000;
	err = pvfs_mount(&opts, &fs, why, sizeof(why));
	if (err) {
		fprintf(stderr, "pvfsd: volume %s of %s: %s\n", volume, mgr, *why ? why : strerror(-err));
		return err;
	}
	err = pvfs_volinfo(fs, &vol);
	root = vol.root;
	return err;
}

/*
 * Into the background, where all the rest is done: a child may not use what its parent has opened. The
 * parent ends when the volume is mounted, or with what is said by then.
 *
 * Return: where to tell the parent, or -1.
 */
static int background(void)
{
	char status = EXIT_FAILURE;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		close(p[0]);
		setsid();
		return p[1];
	}
	close(p[1]);
	if (read(p[0], &status, 1) != 1)
		status = EXIT_FAILURE;
	_exit(status);
}

static void tell_parent(int fd)
{
	char status = 0;
	int null;

	if (fd < 0)
		return;
	null = open("/dev/null", O_RDWR);
	if (chdir("/") || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		status = EXIT_FAILURE;
	if (null > 2)
		close(null);
	if (write(fd, &status, 1) != 1)
		perror("pvfsd");
	close(fd);
}

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *config = NULL;
	struct fuse_session *se = NULL;
	struct options o = { 0 };
	char *mgr, *volume, *source = NULL, named[600];
	int c, foreground = 0, parent = -1, rc = EXIT_FAILURE;

	fuse_opt_add_arg(&args, "pvfsd");
	while ((c = getopt(argc, argv, "fo:h")) != -1) {
		switch (c) {
		case 'f':
			foreground = 1;
			break;
		case 'o':
			fuse_opt_add_arg(&args, "-o");
			fuse_opt_add_arg(&args, optarg);
			break;
		case 'h':
			usage(stdout);
			rc = 0;
			goto out_args;
		default:
			usage(stderr);
			rc = 2;
			goto out_args;
		}
	}
	rc = 2;
	if (argc - optind != 2) {
		usage(stderr);
		goto out_args;
	}
	source = strdup(argv[optind]);
	if (!source || parse_source(source, &mgr, &volume)) {
		fprintf(stderr, "pvfsd: '%s' is no host[:port]:/volume\n", argv[optind]);
		goto out_args;
	}
	snprintf(named, sizeof(named), "-ofsname=%s,subtype=pvfs,default_permissions", argv[optind]);
	fuse_opt_add_arg(&args, named);
	if (fuse_opt_parse(&args, &o, option_list, NULL))
		goto out_args;
	rc = EXIT_FAILURE;
	if (!foreground) {
		parent = background();
		if (parent < 0) {
			perror("pvfsd");
			goto out_args;
		}
	}
	se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!se)
		goto out_args;
	if (mount_volume(&o, mgr, volume) || fuse_set_signal_handlers(se))
		goto out;
	if (fuse_session_mount(se, argv[optind + 1]))
		goto out_volume;
	tell_parent(parent);
	config = fuse_loop_cfg_create();
	if (config)
		/* A daemon that is away holds up those who need it, and not all others. */
		fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
	if (config)
		rc = fuse_session_loop_mt(se, config) ? EXIT_FAILURE : 0;
	fuse_session_unmount(se);
out_volume:
	fuse_remove_signal_handlers(se);
	/* What is still open (umount -f, a signal) may be waited for by threads of ours. */
	if (pvfs_umount(fs) == -EBUSY)
		_exit(rc);
out:
	if (config)
		fuse_loop_cfg_destroy(config);
	fuse_session_destroy(se);
out_args:
	fuse_opt_free_args(&args);
	free(o.key);
	free(source);
	return rc;
}
