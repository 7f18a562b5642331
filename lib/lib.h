/* SPDX-License-Identifier: LGPL-2.1 */
/*
 * lib.h - libpvfs from inside: its structures, and what its files offer one another.
 *
 *   name.c dir.c attr.c xattr.c io.c list.c space.c sync.c file.c lock.c   the calls of pvfs.h
 *   files.c                              many small files at once
 *   queue.c                              calls that are not waited for
 *   memory.c                             the user's memory, in pieces
 *   head.c                               files whose bytes are with the manager
 *   ask.c                                the same question to many I/O daemons
 *   holders.c                            who has leases on a file, or has it open
 *   inode.c                              what is known of the inodes that are open: sizes, reports,
 *                                        verifiers
 *   session.c                            slots, heartbeat, recovery after the mgr or the session
 *                                        was new; mgr calls
 *   fs.c                                 mount, umount, I/O daemons, credentials, counters
 *   ---------------------------------------------------------------- ../transport/transport.h
 *
 * Lock order: dir->lock, inode->append, inode->relayout, the gate of session.c (opens),
 * inode->locking, fs->inode_lock, inode->lock, fs->lock. No call to a server is made under
 * inode_lock, inode->lock or fs->lock. queue->lock is taken and let go with nothing else held.
 */
#ifndef PVFS_LIB_H
#define PVFS_LIB_H

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "../transport/transport.h"
#include "../common/lockset.h"
#include "../common/log.h"
#include "../common/stripe.h"
#include "pvfs.h"

#define INODE_BUCKETS	256u
#define ASYNC_MAX	256u		/* closes that nobody waits for, at most */
#define SYMLINKS_MAX	40		/* followed in one path; as the kernel's limit */
#define NCONNECT_DEFAULT 1u

/* One I/O daemon. Constant after mount, but for payload_max. */
struct fs_iod {
	struct pvfs_fs *fs;
	struct pvfs_peer *peer;
	u32 index;
	char name[PVFS_HOST_MAX + 80];	/* for messages */
	atomic_uint payload_max;	/* bytes; 0 until it answered for the first time */
};

struct fs_cred {
	u32 uid, gid;
	u32 ngroups;
	u8 groups[PVFS_NGROUPS_MAX * 4];	/* as on the wire */
};

struct pvfs_fs {
	u64 number;			/* of this mount in the process, from 1 on */
	pid_t pid;			/* who made it; a forked child may not use it */
	struct pvfs_engine *engine;
	struct pvfs_peer *mgr;
	struct pvfs_key key;
	char volume[PVFS_VOLUME_MAX + 1];
	char mgr_name[320];		/* as the user wrote it */
	bool soft;
	unsigned int timeo_ms, mount_timeout_ms, nconnect;
	u8 client[PVFS_UUID_LEN];	/* random; finds our session again */
	char who[PVFS_HOST_MAX + 1];	/* host, user and program, for the mgr's log */
	u8 uuid[PVFS_UUID_LEN];
	struct pvfs_fid root;
	struct pvfs_layout root_layout;
	u32 lease_ms;
	u32 niods;
	struct fs_iod *iods;

	pthread_rwlock_t cred_lock;	/* protects cred */
	struct fs_cred cred;
	atomic_uint umask;

	pthread_mutex_t lock;		/* protects what follows, to the next lock */
	pthread_cond_t cond;		/* any of it changed */
	u64 session;
	u8 ticket[PVFS_TICKET_LEN];	/* for AUTH in it */
	u64 epoch;			/* of the mgr */
	u32 nslots;
	u64 slot_busy[PVFS_SLOTS_MAX / 64];
	u32 slot_seq[PVFS_SLOTS_MAX];
	bool mounted;	/* pvfs_mount() is through: the recovery thread is in charge */
	bool lost;			/* the session is gone, a new one is not there yet */
	bool doubt;			/* an iod says so: the mgr is to be asked */
	u32 reclaim_wanted;	/* how often the mgr had to be told of our open files again */
	u32 reclaim_done;		/* how much of that was done */
	bool stopping;
	bool reclaiming;		/* opens and closes wait */
	u32 opens;			/* opens and closes under way */
	u64 channels_seen[PVFS_CHANNELS_MAX / 64];	/* of the mgr: had a connection before */
	u32 async;			/* closes nobody waits for, under way */
	u32 generation;	/* of the session: capabilities of an older one are void, and locks */
	u64 lock_ids;			/* the last owner's or ticket's number */
	struct lock_wait *lock_waits;	/* calls that LOCK_GRANT may name */

	pthread_t thread;		/* heartbeat and recovery */
	bool have_thread;

	pthread_mutex_t inode_lock;	/* protects inodes and every inode's next and refs */
	struct inode *inodes[INODE_BUCKETS];
	atomic_uint nfiles, ndirs, nqueues;	/* not closed yet */
};

/* What one iod said of our writes since the last fsync. */
struct inode_verifier {
	u64 verifier;
	u64 seq;		/* of the latest write, counted by inode->write_seq */
	bool dirty;
};

/* Opens of an inode with the same rights. */
struct inode_open {
	u32 count;
	struct pvfs_cap cap;
	u32 generation;		/* of the session the capability was given to */
};

/* An owner of locks of an inode: this process, an open file, or whom a server locks for. */
struct lock_owner {
	struct lock_owner *next;	/* inode->lock_owners, when @id is not 0 */
	u64 id;				/* for the mgr; 0: it never locked anything */
	u8 kind;			/* PVFS_LK_* */
	bool lost;			/* the session that had the locks is gone */
	u32 generation;			/* of that session; valid while @set is not empty */
	struct pvfs_lockset set;	/* what the mgr has granted */
	/* Whom a server locks for; inode->locking protects these. It is freed when it ends. */
	bool named;
	u64 name;			/* struct pvfs_locker's owner */
	u32 users;			/* calls under way */
	struct pvfs_file *last;		/* used by the last of them; NULL: that is closed */
};

/*
 * An inode while it is open here, shared by all its struct pvfs_file. Found by fid; there is no
 * other cache: attributes of what is not open are asked for each time.
 */
struct inode {
	struct inode *next;		/* in the bucket */
	u32 refs;
	struct pvfs_fid fid;
	pthread_mutex_t append;		/* one append at a time; outside of lock */
	pthread_mutex_t relayout;	/* held to change the layout, and by the first write */
	/* one question about locks at a time, to its answer; outside of lock */
	pthread_mutex_t locking;
	pthread_mutex_t lock;		/* protects what follows */
	struct pvfs_layout layout;
	u32 mode, uid, gid;
	bool caps;			/* has security.capability */
	bool striped;			/* it was seen so: it is not stuffed again */
	u64 version;			/* newest attributes seen */
	u64 size;			/* the file was at least so long, */
	u32 trunc_gen;			/* with this */
	struct pvfs_ts atime, mtime, ctime;
	/* it was read then, and the mgr is to know; 0: nothing new */
	struct pvfs_ts atime_due;
	struct pvfs_wreport report;	/* pending: what the mgr has not been told */
	bool reporting;			/* report has something in it */
	struct inode_open open[4];	/* by rights, PVFS_CAP_* or'ed */
	struct inode_verifier *verifiers;	/* pcount, from the first write on */
	u64 write_seq;			/* writes answered */
	bool lost;	/* an iod forgot what it had acknowledged: the next fsync fails */
	/* they change between lib_session_opens_begin() and _end() only */
	struct lock_owner *lock_owners;
	struct lock_owner records;	/* of the process */
	struct lock_owner appender;	/* whoever appends, under append */
};

struct pvfs_file {
	struct pvfs_fs *fs;
	struct inode *inode;
	int flags;			/* O_* */
	u32 rights;			/* PVFS_CAP_* it was opened with */
	struct lock_owner flk, ofd;	/* its own locks */
};

static inline int lib_fs_check(const struct pvfs_fs *fs)
{
	return !fs || fs->pid != getpid() ? -EBADF : 0;
}

/* fs.c */
u32 lib_fs_umask(struct pvfs_fs *fs);
void lib_fs_cred_get(struct pvfs_fs *fs, struct fs_cred *copy, struct pvfs_cred *ret);
bool lib_fs_cred_may(const struct fs_cred *c, u32 mode, u32 uid, u32 gid, unsigned int want);
int lib_fs_iods_ready(struct pvfs_fs *fs, const u32 *index, u32 n);
int lib_fs_iods_create(struct pvfs_fs *fs, const void *table, u32 len, u32 n, char *err,
		       size_t errlen);

/* session.c */
int lib_session_open(struct pvfs_fs *fs, unsigned int timeout_ms, void *table, size_t room,
		     u32 *ret_len, u32 *ret_niods);
void lib_session_mgr_up(struct pvfs_peer *p, u32 channel, const struct pvfs_auth_rep *rep);
void lib_session_lost(struct pvfs_fs *fs);
void lib_session_doubt(struct pvfs_fs *fs);
int lib_session_start(struct pvfs_fs *fs);
void lib_session_stop(struct pvfs_fs *fs);
void lib_session_opens_begin(struct pvfs_fs *fs);
void lib_session_opens_end(struct pvfs_fs *fs);
bool lib_session_refused(struct pvfs_fs *fs, int err, u32 generation);
int lib_fs_rpc_error(struct pvfs_fs *fs, int err);
int lib_fs_mgr_call(struct pvfs_fs *fs, u16 op, const void *body, int body_len, void *rep,
		    u32 rep_room, u32 *ret_len, const struct iovec *out, const struct iovec *in,
		    u32 *ret_in_len);
int lib_fs_close_async(struct pvfs_fs *fs, const struct pvfs_close_req *req);

/*
 * One typed exchange with the mgr: encodes @req (struct pvfs_<name>_req *), calls, decodes to @rep
 * (struct pvfs_<name>_rep *), whose strings borrow @buf (an array). Value: 0 or -errno.
 */
#define MGR_CALL_DATA(fs, NAME, name, req, rep, buf, out, in, ret_in_len) ({ \
		u8 body_[PVFS_BODY_MAX]; \
		u32 len_ = 0; \
		int err_ = lib_fs_mgr_call(fs, PVFS_OP_##NAME, body_, \
					   pvfs_##name##_req_encode(req, body_, sizeof(body_)), \
					   buf, sizeof(buf), &len_, out, in, ret_in_len); \
		err_ ?: pvfs_##name##_rep_decode(rep, buf, len_); })
#define MGR_CALL_IN(fs, NAME, name, req, rep, buf, in, ret_in_len) \
	MGR_CALL_DATA(fs, NAME, name, req, rep, buf, NULL, in, ret_in_len)
#define MGR_CALL(fs, NAME, name, req, rep, buf) MGR_CALL_IN(fs, NAME, name, req, rep, buf, NULL, NULL)

#define REP_MAX 1024	/* bytes of a reply's body, for all but READLINK */

/* inode.c */
struct inode *lib_inode_get(struct pvfs_fs *fs, const struct pvfs_attr *attr);
struct inode *lib_inode_find(struct pvfs_fs *fs, const struct pvfs_fid *fid);
void lib_inode_put(struct pvfs_fs *fs, struct inode *ino);
void lib_inode_update(struct inode *ino, const struct pvfs_attr *attr);
void lib_now(struct pvfs_ts *ret);
bool lib_atime_due(const struct pvfs_ts *atime, const struct pvfs_ts *mtime,
		   const struct pvfs_ts *ctime, struct pvfs_ts *now);
void lib_inode_accessed(struct inode *ino);
void lib_inode_atime_take(struct inode *ino, struct pvfs_ts *ret);
bool lib_inode_report_take(struct inode *ino, struct pvfs_wreport *ret);
void lib_inode_report_done(struct inode *ino, const struct pvfs_wreport *r);
bool lib_inode_leaves_hole(struct inode *ino, u64 off);
void lib_inode_wrote(struct inode *ino, u64 end, const struct pvfs_ts *wtime, u32 trunc_gen);
void lib_inode_verify(struct inode *ino, u32 df, u64 verifier, u64 sync_seq);
u64 lib_inode_sync_begin(struct inode *ino);
int lib_inode_reclaim(struct pvfs_fs *fs, struct inode *ino);
int lib_inodes_reclaim(struct pvfs_fs *fs);

/* lock.c */
void lib_lock_callback(struct pvfs_peer *p, u32 channel, const struct pvfs_header *h,
		       const void *body);
int lib_append_begin(struct pvfs_file *f);
bool lib_append_lost(const struct pvfs_file *f);
void lib_append_end(struct pvfs_file *f);
void lib_locks_close(struct pvfs_file *f);
int lib_locks_reclaim(struct pvfs_fs *fs, struct inode *ino);

/* memory.c */

/* The user's memory. */
struct memory {
	const struct iovec *iov;
	int n;
	u64 *start;		/* bytes before each piece; NULL when n is 0 or 1 */
};

/* Return: 0, and lib_mem_free() is due; -EINVAL: more than SSIZE_MAX bytes; -ENOMEM. */
int lib_mem_init(struct memory *m, const struct iovec *iov, size_t n, u64 *ret_len);
void lib_mem_free(struct memory *m);
/*
 * Memory @at bytes from the start, up to @len bytes, into @out (@room pieces). Return: pieces used;
 * *@ret_len is what they hold, less than @len when there was no room.
 */
u32 lib_mem_slice(const struct memory *m, u64 at, u64 len, struct iovec *out, u32 room,
		  u64 *ret_len);
/* Zeroes what a reply of @got bytes has left of these @n pieces. */
void lib_mem_zero(const struct iovec *iov, u32 n, u32 got);

/* io.c */

/* Size and layout that belong together. Return: the truncation generation. */
u32 lib_size_known(struct inode *ino, u64 *size, struct pvfs_layout *layout);
u32 lib_file_cap(const struct pvfs_file *f, struct pvfs_cap *ret);
int lib_write_prepare(struct pvfs_file *f, struct pvfs_layout *ret_layout, u32 *ret_trunc_gen);
int lib_write_sync(struct pvfs_file *f);

/* head.c */
bool lib_head_is(struct inode *ino);
ssize_t lib_head_read(struct pvfs_file *f, const struct iovec *iov, int n, u64 off);
ssize_t lib_head_write(struct pvfs_file *f, const struct iovec *iov, int n, u64 off, bool append);
int lib_unstuff(struct pvfs_file *f);

/* ask.c */
struct lib_ask {
	struct pvfs_rpc rpc;
	u32 df;			/* whom */
	int body_len;
	int err;
	u32 rep_len;
	u8 body[128], rep[64];
};
int lib_ask_all(struct pvfs_fs *fs, const struct pvfs_layout *layout, u16 op, struct lib_ask *asks,
		u32 n);

/* attr.c */
int lib_attr_get(struct pvfs_fs *fs, const struct pvfs_fid *fid, struct inode *ino,
		 struct pvfs_attr *ret);
int lib_attr_refresh(struct pvfs_fs *fs, struct pvfs_attr *attr);
void lib_attr_to_stat(const struct pvfs_attr *a, struct pvfs_stat *ret);
int lib_attr_set(struct pvfs_fs *fs, const struct pvfs_fid *fid, struct inode *ino,
		 struct pvfs_setattr_req *req, struct pvfs_attr *ret);

int lib_layout_of(struct pvfs_fs *fs, const struct pvfs_striping *s, struct pvfs_layout *ret);
int lib_layout_set(struct pvfs_fs *fs, const struct pvfs_fid *fid,
		   const struct pvfs_layout *layout);

/* xattr.c */
int lib_acl_may(struct pvfs_fs *fs, const struct pvfs_attr *attr, unsigned int want);

/* name.c */

/* Where a path leads: the directory its last component is in, and the component. */
struct walk {
	struct pvfs_fid *stack;	/* from the root to the directory; the last is the directory */
	u32 depth, room;
	struct pvfs_fid few[16];	/* the stack of most paths */
	char *path;			/* what is left to walk, owned */
	/* last component; "" when the path is the directory itself */
	char name[PVFS_NAME_MAX + 1];
	bool must_dir;			/* the path ended in a slash */
	enum { DOT_NONE, DOT, DOT_DOT } dot;	/* the last component was that */
	int links;			/* symbolic links followed so far */
	bool have_attr;			/* @attr is of what the path names */
	struct pvfs_attr attr;
	struct pvfs_fid target_of;	/* the symbolic link that has */
	char target[PVFS_SYMLINK_EAGER + 1];	/* as its target, if not empty */
};
int lib_walk_parent(struct pvfs_fs *fs, const char *path, struct walk *w);
int lib_walk_full(struct pvfs_fs *fs, const char *path, bool follow, struct walk *w);
int lib_walk_follow(struct pvfs_fs *fs, struct walk *w);
int lib_walk_lookup(struct pvfs_fs *fs, struct walk *w);
void lib_walk_free(struct walk *w);
static inline const struct pvfs_fid *lib_walk_dir(const struct walk *w)
{
	return &w->stack[w->depth - 1];
}
int lib_name_lookup(struct pvfs_fs *fs, const struct pvfs_fid *dir, const char *name,
		    struct pvfs_attr *ret);
int lib_name_check(const char *name);

/* file.c */
int lib_file_from_attr(struct pvfs_fs *fs, const struct pvfs_attr *attr, const struct pvfs_cap *cap,
		       int flags, struct pvfs_file **ret);
u32 lib_file_wire_flags(int flags);

static inline struct pvfs_fid fid_of(const struct pvfs_fh *fh)
{
	return (struct pvfs_fid){ .ino = fh->ino, .gen = fh->gen };
}

static inline struct pvfs_striping lib_striping(const struct pvfs_layout *l)
{
	return (struct pvfs_striping){ .base = l->base, .pcount = l->pcount, .ssize = l->ssize,
				       .stuff_max = l->stuff_max };
}

static inline bool fid_eq(const struct pvfs_fid *a, const struct pvfs_fid *b)
{
	return a->ino == b->ino && a->gen == b->gen;
}

#endif
