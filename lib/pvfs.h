/* SPDX-License-Identifier: LGPL-2.1 */
/*
 * pvfs.h - libpvfs: a PVFS volume from a program, without the kernel's module. See libpvfs(3).
 *
 * Functions return 0 or a negative errno value; those that move bytes return how many. All are
 * thread-safe, on one file too. Nothing that a process opened can be used by a child it forked: the
 * child gets -EBADF. Paths start at the volume's root, with or without a leading slash; symbolic
 * links are followed inside the volume.
 */
#ifndef PVFS_H
#define PVFS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* File offsets are 64 bits: on 32-bit hosts compile with -D_FILE_OFFSET_BITS=64. */
extern const char pvfs_off_t_has_64_bits[sizeof(off_t) == 8 ? 1 : -1];

struct pvfs_fs;			/* a mounted volume */
struct pvfs_file;		/* an open file */
struct pvfs_dir;		/* a directory being read */

/* Names an inode for good: numbers are never reused. */
struct pvfs_fh {
	uint64_t ino;
	uint32_t gen;
};

#define PVFS_BASE_ANY 0xffffu	/* each new file begins on the next daemon */

/* How a file's bytes are dealt out to the I/O daemons: stripe units of @ssize bytes in turn. */
struct pvfs_striping {
	/* index of the first daemon; of directories and in requests also PVFS_BASE_ANY */
	uint16_t base;
	uint16_t pcount;	/* how many daemons; in requests 0: all */
	/* stripe unit, bytes: a power of two, 4 KiB .. 1 GiB; in requests 0: the default */
	uint32_t ssize;
	/*
	 * The manager keeps files of at most so many bytes, up to 64 KiB, by itself; 0: none. In
	 * requests 0: as it is now, PVFS_STUFF_NONE: none
	 */
	uint32_t stuff_max;
};
#define PVFS_STUFF_NONE 0xffffffffu

/*
 * size is the last known: a daemon that knows better does not answer. From pvfs_readdir() and calls
 * that change something; pvfs_stat() and its like wait for the daemon.
 */
#define PVFS_ST_SIZE_UNKNOWN	0x1u
#define PVFS_ST_WRITERS		0x2u	/* another client has the file open for writing */
#define PVFS_ST_STUFFED		0x4u	/* its bytes are with the manager */

struct pvfs_stat {
	struct stat st;
	struct timespec btime;	/* when it was made */
	struct pvfs_fh fh;
	struct pvfs_striping striping;	/* of a directory: what new files in it get */
	uint64_t version;	/* grows with every change */
	uint32_t flags;		/* PVFS_ST_* */
};

struct pvfs_dirent {
	char name[256];
	int64_t off;		/* where the entry after this one is, for pvfs_seekdir() */
	struct pvfs_stat stat;	/* as lstat() would say, at the time the directory was read */
};

/**
 * struct pvfs_mount_opts - whom to talk to and how
 * @struct_size: sizeof(struct pvfs_mount_opts), so that the structure can grow
 * @mgr: "host", "host:port" or "[v6]:port" of the manager
 * @volume: name of the volume
 * @key_file: file with the cluster key; NULL: /etc/pvfs/cluster.key
 * @nconnect: connections to each server, 1 .. 256; 0: default
 * @soft: give up with -EIO or -ETIMEDOUT after @timeo_ms; else wait as long as a server is away
 * @timeo_ms: 0: 60,000
 * @mount_timeout_ms: pvfs_mount() gives up after so long; 0: 10,000
 * @threads: network threads, at most 128; 0: default
 */
struct pvfs_mount_opts {
	size_t struct_size;
	const char *mgr;
	const char *volume;
	const char *key_file;
	unsigned int nconnect;
	int soft;
	unsigned int timeo_ms;
	unsigned int mount_timeout_ms;
	unsigned int threads;
};
#define PVFS_MOUNT_OPTS_INIT { .struct_size = sizeof(struct pvfs_mount_opts) }

/* ---- volumes ---- */

/* On failure @err (@errlen bytes, may be NULL) gets one line for the user. */
int pvfs_mount(const struct pvfs_mount_opts *opts, struct pvfs_fs **ret, char *err, size_t errlen);
/*
 * Every file and directory must have been closed, every queue freed: else -EBUSY and nothing
 * happens.
 */
int pvfs_umount(struct pvfs_fs *fs);
const char *pvfs_version(void);

/*
 * Who the calls that follow are made for; the default is the process' effective ids and its groups
 * at mount.
 */
int pvfs_setcred(struct pvfs_fs *fs, uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups);
/*
 * The same for the calls of this thread alone, with a file mode creation mask of their own, until
 * pvfs_endcred_thread(): for servers that work for many users.
 */
int pvfs_setcred_thread(struct pvfs_fs *fs, uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups,
			mode_t mask);
void pvfs_endcred_thread(void);
/*
 * File mode creation mask, where no default ACL takes its place; the default is the process' at
 * mount. Returns the old one.
 */
mode_t pvfs_umask(struct pvfs_fs *fs, mode_t mask);

struct pvfs_volinfo {
	char name[64];
	uint8_t uuid[16];
	struct pvfs_fh root;
	uint32_t niods;
	uint32_t lease_ms;
	struct pvfs_striping striping;	/* of the root */
};
int pvfs_volinfo(struct pvfs_fs *fs, struct pvfs_volinfo *ret);
/* Address of I/O daemon @index as text, "host (127.0.0.1:7101)". */
int pvfs_iod_name(struct pvfs_fs *fs, unsigned int index, char *buf, size_t n);
/*
 * A server that was needed and has no connection now, the manager before I/O daemons: "host (127.0.0.1:7101): Connection
 * refused", for who was told EIO by a soft mount. Return: 1, 0 (there is none), or -errno.
 */
int pvfs_away(struct pvfs_fs *fs, char *buf, size_t n);

struct pvfs_fsstat {
	struct statvfs vfs;
	/* daemons there are, and those that answered: space is the sum over these */
	uint32_t iods, iods_up;
};
int pvfs_statfs(struct pvfs_fs *fs, struct pvfs_fsstat *ret);

/* ---- files ---- */

/*
 * @flags: O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC O_APPEND O_NOFOLLOW O_SYNC O_DSYNC;
 *	others are ignored. Opening a directory is -EISDIR: see pvfs_opendir().
 */
int pvfs_open(struct pvfs_fs *fs, const char *path, int flags, mode_t mode, struct pvfs_file **ret);
/* The same, giving a file that it creates this striping. */
int pvfs_open_striped(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		      const struct pvfs_striping *s, struct pvfs_file **ret);
/*
 * Always gives @f up. An error says that what was written may not be known to others as it should.
 */
int pvfs_close(struct pvfs_file *f);
ssize_t pvfs_pread(struct pvfs_file *f, void *buf, size_t n, off_t off);
/* With O_APPEND the offset is ignored, as the kernel does. */
ssize_t pvfs_pwrite(struct pvfs_file *f, const void *buf, size_t n, off_t off);
ssize_t pvfs_preadv(struct pvfs_file *f, const struct iovec *iov, int n, off_t off);
ssize_t pvfs_pwritev(struct pvfs_file *f, const struct iovec *iov, int n, off_t off);

/* A place in a file. */
struct pvfs_piece {
	off_t off;	/* 0 or more */
	size_t len;	/* 0: nothing */
};

/* Places in a file: blocks of @len bytes, in up to four nested loops, the outermost first. */
struct pvfs_pattern {
	off_t off;	/* of the first block */
	size_t len;
	unsigned int ndims;	/* 0: the one block */
	struct {
		uint32_t count;
		off_t stride;	/* bytes from one to the next, 0 or more */
	} dim[4];
};

/**
 * pvfs_read_list, pvfs_write_list - many places of a file at once (list I/O)
 * pvfs_read_pattern, pvfs_write_pattern - the same, where they are regular (datatype I/O)
 * @f: without O_APPEND, to write
 * @mem: @nmem pieces of memory, for all bytes of @file in its order; the sums must be equal
 * @file: @nfile places, in any order; a write of some that overlap leaves what comes last
 *
 * One request to each I/O daemon while it fits: 4 MiB or what the daemon takes, 65,536 blocks. A
 * regular pattern is described there, also when a list enumerates it. Other clients may see one
 * part of a write before another.
 *
 * Return: bytes moved, counted from the first place's start on. A read is short at the first block
 * that crosses the end of the file, or before a failure; a write before a failure. -EINVAL: also
 * unequal sums, and places before the start or behind 2^63 - 1; or another -errno.
 */
ssize_t pvfs_read_list(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
		       const struct pvfs_piece *file, size_t nfile);
ssize_t pvfs_write_list(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			const struct pvfs_piece *file, size_t nfile);
ssize_t pvfs_read_pattern(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			  const struct pvfs_pattern *file, size_t nfile);
ssize_t pvfs_write_pattern(struct pvfs_file *f, const struct iovec *mem, size_t nmem,
			   const struct pvfs_pattern *file, size_t nfile);

int pvfs_fsync(struct pvfs_file *f);
int pvfs_fdatasync(struct pvfs_file *f);
int pvfs_ftruncate(struct pvfs_file *f, off_t size);
int pvfs_fstat(struct pvfs_file *f, struct pvfs_stat *ret);
int pvfs_fchmod(struct pvfs_file *f, mode_t mode);
int pvfs_fchown(struct pvfs_file *f, uid_t uid, gid_t gid);
int pvfs_futimens(struct pvfs_file *f, const struct timespec ts[2]);

/* ---- many small files ---- */

struct pvfs_small {
	const char *path;
	void *buf;		/* room for what is read, or what is written */
	size_t len;		/* bytes of it */
	mode_t mode;		/* of a file that is made */
	ssize_t result;		/* bytes, or -errno */
};

/**
 * pvfs_read_files - open, read and close many files
 * @files: @n of them; result says what became of each
 *
 * One request for up to 128 files of a directory, 11 KiB of names and 256 KiB of what is in them,
 * as long as they are stuffed; others are opened, one by one. Read is from the start of each, to its
 * end or to len.
 *
 * Return: of how many the result is no error; or -errno, and none was tried.
 */
ssize_t pvfs_read_files(struct pvfs_fs *fs, struct pvfs_small *files, size_t n);
/**
 * pvfs_write_files - create, write and close many files
 * @files: @n of them; result says what became of each
 * @flags: O_EXCL: one that is there is left alone, -EEXIST; 0: it is written anew
 *
 * One request, as above, for files that are not there and have at most the stuff_max of their
 * directory. They are made whole: nobody sees one without its bytes; and are on stable storage when
 * the call returns. Others are opened, one by one. Of two with one path the last one counts.
 *
 * Return: as pvfs_read_files().
 */
ssize_t pvfs_write_files(struct pvfs_fs *fs, struct pvfs_small *files, size_t n, int flags);

/* ---- one file for many processes ---- */

/* A process' mount, as one that another may open a file for. Not secret among the program's own. */
struct pvfs_mount_id {
	uint64_t session;
	uint8_t client[16];
};
int pvfs_mount_id(struct pvfs_fs *fs, struct pvfs_mount_id *ret);

/* A file that was opened for another process: bytes to be sent to it. */
struct pvfs_shared {
	uint8_t bytes[192];
};

/**
 * pvfs_open_for - pvfs_open_striped(), for others as well, in one request
 * @flags: O_RDONLY O_WRONLY O_RDWR O_CREAT O_EXCL O_TRUNC
 * @sharers: @n mounts of the same volume
 * @given: gets what each of them gives to pvfs_open_shared(); only of more than 480 the others have
 *	to ask the manager then
 *
 * Return: 0, or -errno and the file is open for nobody.
 */
int pvfs_open_for(struct pvfs_fs *fs, const char *path, int flags, mode_t mode,
		  const struct pvfs_striping *s, const struct pvfs_mount_id *sharers, size_t n,
		  struct pvfs_shared *given, struct pvfs_file **ret);
/*
 * The other half, in the process it was opened for, once; without it the file stays open for that
 * mount until it ends. @flags: the same.
 */
int pvfs_open_shared(struct pvfs_fs *fs, const struct pvfs_shared *given, int flags,
		     struct pvfs_file **ret);

/* ---- asynchronous calls ---- */

struct pvfs_queue;		/* of calls that are under way, or have ended */

enum pvfs_async_op {
	PVFS_ASYNC_READ,	/* pvfs_preadv(), pvfs_pwritev() */
	PVFS_ASYNC_WRITE,
	PVFS_ASYNC_READ_LIST,	/* list I/O: pieces */
	PVFS_ASYNC_WRITE_LIST,
	PVFS_ASYNC_READ_PATTERN,	/* datatype I/O: patterns */
	PVFS_ASYNC_WRITE_PATTERN,
	PVFS_ASYNC_FSYNC,
	PVFS_ASYNC_FDATASYNC,
	PVFS_ASYNC_CALL,	/* call(arg): whatever takes its time */
};

/* A call. It and what it points to belong to the queue from pvfs_submit() to pvfs_wait(). */
struct pvfs_async {
	enum pvfs_async_op op;
	struct pvfs_file *file;
	const struct iovec *mem;	/* @nmem pieces of memory */
	size_t nmem;
	off_t off;			/* of READ and WRITE */
	const struct pvfs_piece *pieces;	/* @nfile places, of ..._LIST */
	const struct pvfs_pattern *patterns;	/* @nfile, of ..._PATTERN */
	size_t nfile;
	ssize_t (*call)(void *arg);
	void *arg;
	void *user;			/* the caller's own */
	ssize_t result;			/* what the call returned */
	void *priv[2];			/* the queue's own */
};

/**
 * pvfs_queue_new - for calls that are not waited for
 * @fs: they are made for the ids of pvfs_setcred(), whatever thread submits them
 * @calls: under way at once, at most 1,024; others wait their turn. 0: 16
 *
 * Return: 0, -EINVAL, -ENOMEM, -EMFILE.
 */
int pvfs_queue_new(struct pvfs_fs *fs, unsigned int calls, struct pvfs_queue **ret);
/* Readable, for poll(2) and its like, while pvfs_wait() has something to give. Not to be read. */
int pvfs_queue_fd(const struct pvfs_queue *q);
/* Return: 0; -EINVAL: no such op. Calls on one file may be done in any order, and at once. */
int pvfs_submit(struct pvfs_queue *q, struct pvfs_async *a);
/*
 * Fetches up to @n calls that have ended, in the order they did. Waits for the first one up to
 * @timeout_ms; negative: for as long as one is under way. Return: how many, 0: none.
 */
int pvfs_wait(struct pvfs_queue *q, struct pvfs_async **ret, unsigned int n, int timeout_ms);
/* Return: 0; -EBUSY: calls are under way or were not fetched, and nothing happens. */
int pvfs_queue_free(struct pvfs_queue *q);

/* ---- where the bytes of a file are ---- */

/**
 * pvfs_fallocate - as fallocate(2): make room for a range, give it back, or make it zeros
 * @f: open for writing
 * @mode: 0: there is room for the range, and the file reaches to its end; FALLOC_FL_ZERO_RANGE
 *        (<linux/falloc.h>): it is zeros, too; either with FALLOC_FL_KEEP_SIZE: without getting
 *        longer. FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE: it is a hole
 * @off: bytes, 0 or more
 * @len: bytes, more than 0
 *
 * All daemons that have a part of the range make room before the file gets longer; after a failure
 * some may have.
 *
 * Return: 0; -EOPNOTSUPP: another mode, or the daemons' file systems cannot; -EINVAL; -EBADF: not
 * open for writing; -EFBIG: ends beyond 2^63 - 1, or what the daemons' file systems hold; -ENOSPC;
 * or another -errno.
 */
int pvfs_fallocate(struct pvfs_file *f, int mode, off_t off, off_t len);

/**
 * pvfs_lseek - as lseek(2), but only for what does not need a file's position
 * @off: bytes
 * @whence: SEEK_DATA: the next byte at or behind @off that is not in a hole; SEEK_HOLE: that is in
 *          one, or the end
 *
 * As exact as the daemons' file systems: some of what is data may be zeros that were written, never
 * the other way round.
 *
 * Return: the offset; -ENXIO: @off is not in the file, or only holes come behind it; -EINVAL:
 * another @whence; or another -errno.
 */
off_t pvfs_lseek(struct pvfs_file *f, off_t off, int whence);

/**
 * pvfs_copy_file_range - as copy_file_range(2): copy from one file to another, or within one
 * @in: open for reading
 * @off_in: bytes, 0 or more
 * @out: open for writing, without O_APPEND; may be of another mount, or of another volume
 * @off_out: bytes, 0 or more
 * @len: bytes
 * @flags: 0
 *
 * 256 KiB or more are copied by the daemons, and holes stay holes, if both files are of one mount
 * and laid out alike (a file never written is made so) and the offsets differ by whole rounds of
 * stripe units. Else the bytes come and go.
 *
 * Return: bytes copied, less than @len at the end of @in or before a failure, 0: @off_in is not in
 * the file; -EINVAL: also ranges of one file that overlap; -EBADF: not open for that, or O_APPEND;
 * -EOVERFLOW: ends beyond 2^63 - 1; or another -errno.
 */
ssize_t pvfs_copy_file_range(struct pvfs_file *in, off_t off_in, struct pvfs_file *out,
			     off_t off_out, size_t len, unsigned int flags);

/* ---- locks, as flock(2) and fcntl(2) have them, among all clients ---- */

/*
 * @cmd: F_GETLK F_SETLK F_SETLKW (<fcntl.h>), of this process: closing any file of the same inode
 *	unlocks; or F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW, of @f. @fl: as for fcntl(2); l_whence must
 *	be SEEK_SET. @timeout_ms: F_SETLKW and F_OFD_SETLKW give up with -ETIMEDOUT after so long;
 *	negative: never. -EAGAIN: somebody has it. -EDEADLK. -ENOLCK: too many. -EIO: this owner's
 *	locks were lost with the session, and are until the file is closed.
 */
struct flock;
int pvfs_lock(struct pvfs_file *f, int cmd, struct flock *fl, int timeout_ms);
/*
 * @operation: LOCK_SH LOCK_EX LOCK_UN (<sys/file.h>), and LOCK_NB. -EWOULDBLOCK: somebody has it.
 */
int pvfs_flock(struct pvfs_file *f, int operation, int timeout_ms);

/* Whom a server locks for, as pvfsd(8) does: not for this process as a whole. */
struct pvfs_locker {
	uint64_t owner;		/* any number: record locks of different ones exclude each other */
	pid_t pid;		/* what F_GETLK tells of it */
	int stop;		/* 0; pvfs_lock_stop() changes it */
};
/*
 * As pvfs_lock() with F_GETLK, F_SETLK and F_SETLKW, and as pvfs_flock(), for @by; they wait until
 * they have the lock or pvfs_lock_stop() is called, also before they begin: -EINTR.
 *
 * What an owner has locked of a file ends with pvfs_flush(), which is to be called when it closes
 * any descriptor of it, or when the struct pvfs_file is closed that it used last. pvfs_flush() also
 * tells others that the file was read.
 */
int pvfs_lock_by(struct pvfs_file *f, struct pvfs_locker *by, int cmd, struct flock *fl);
int pvfs_flock_by(struct pvfs_file *f, struct pvfs_locker *by, int operation);
void pvfs_lock_stop(struct pvfs_file *f, struct pvfs_locker *by);
int pvfs_flush(struct pvfs_file *f, uint64_t owner);

/* ---- names ---- */

int pvfs_stat(struct pvfs_fs *fs, const char *path, struct pvfs_stat *ret);
int pvfs_lstat(struct pvfs_fs *fs, const char *path, struct pvfs_stat *ret);
/* @mode: R_OK, W_OK, X_OK or F_OK, for the ids of pvfs_setcred(). */
int pvfs_access(struct pvfs_fs *fs, const char *path, int mode);
int pvfs_truncate(struct pvfs_fs *fs, const char *path, off_t size);
int pvfs_chmod(struct pvfs_fs *fs, const char *path, mode_t mode);
/* (uid_t)-1 and (gid_t)-1 leave an id as it is. */
int pvfs_chown(struct pvfs_fs *fs, const char *path, uid_t uid, gid_t gid);
int pvfs_lchown(struct pvfs_fs *fs, const char *path, uid_t uid, gid_t gid);
/* NULL: now; tv_nsec UTIME_NOW and UTIME_OMIT as in utimensat(2). */
int pvfs_utimens(struct pvfs_fs *fs, const char *path, const struct timespec ts[2]);
int pvfs_lutimens(struct pvfs_fs *fs, const char *path, const struct timespec ts[2]);
int pvfs_mkdir(struct pvfs_fs *fs, const char *path, mode_t mode);
int pvfs_mknod(struct pvfs_fs *fs, const char *path, mode_t mode, dev_t dev);
int pvfs_rmdir(struct pvfs_fs *fs, const char *path);
int pvfs_unlink(struct pvfs_fs *fs, const char *path);
/* @flags: 0, RENAME_NOREPLACE (1) or RENAME_EXCHANGE (2). */
int pvfs_rename(struct pvfs_fs *fs, const char *from, const char *to, unsigned int flags);
int pvfs_link(struct pvfs_fs *fs, const char *from, const char *to);
int pvfs_symlink(struct pvfs_fs *fs, const char *target, const char *path);
/* Bytes of the target, at most @n, without a NUL; as readlink(2). */
ssize_t pvfs_readlink(struct pvfs_fs *fs, const char *path, char *buf, size_t n);
/* Of a directory: for files made in it from now on. Of an empty file: its own. */
int pvfs_setlayout(struct pvfs_fs *fs, const char *path, const struct pvfs_striping *s);
int pvfs_getlayout(struct pvfs_fs *fs, const char *path, struct pvfs_striping *ret);
/* Of a file that is open, as it is known here: asks nobody. */
int pvfs_fgetlayout(struct pvfs_file *f, struct pvfs_striping *ret);

/* ---- extended attributes ---- */

/*
 * As the system calls of these names: pvfs_l... are of a symbolic link itself, pvfs_f... of an open
 * file. @size 0 asks for the size only. @flags: 0, XATTR_CREATE (1) or XATTR_REPLACE (2). ACLs are
 * system.posix_acl_access and system.posix_acl_default, in the kernel's form.
 */
ssize_t pvfs_getxattr(struct pvfs_fs *fs, const char *path, const char *name, void *value,
		      size_t size);
ssize_t pvfs_lgetxattr(struct pvfs_fs *fs, const char *path, const char *name, void *value,
		       size_t size);
ssize_t pvfs_fgetxattr(struct pvfs_file *f, const char *name, void *value, size_t size);
int pvfs_setxattr(struct pvfs_fs *fs, const char *path, const char *name, const void *value,
		  size_t size, int flags);
int pvfs_lsetxattr(struct pvfs_fs *fs, const char *path, const char *name, const void *value,
		   size_t size, int flags);
int pvfs_fsetxattr(struct pvfs_file *f, const char *name, const void *value, size_t size,
		   int flags);
ssize_t pvfs_listxattr(struct pvfs_fs *fs, const char *path, char *list, size_t size);
ssize_t pvfs_llistxattr(struct pvfs_fs *fs, const char *path, char *list, size_t size);
ssize_t pvfs_flistxattr(struct pvfs_file *f, char *list, size_t size);
int pvfs_removexattr(struct pvfs_fs *fs, const char *path, const char *name);
int pvfs_lremovexattr(struct pvfs_fs *fs, const char *path, const char *name);
int pvfs_fremovexattr(struct pvfs_file *f, const char *name);

/* ---- directories ---- */

int pvfs_opendir(struct pvfs_fs *fs, const char *path, struct pvfs_dir **ret);
/*
 * 1 and an entry ("." and ".." come first), 0 at the end, or -errno. When an entry's attributes could not be had
 * its name is there, as are its fh and off, and the next call tries again; pvfs_seekdir() to off leaves it out.
 * Else the name is empty.
 */
int pvfs_readdir(struct pvfs_dir *d, struct pvfs_dirent *ret);
/* @off: 0 or the off of an entry that was read; good across opens while the entry exists. */
void pvfs_seekdir(struct pvfs_dir *d, int64_t off);
int64_t pvfs_telldir(struct pvfs_dir *d);
int pvfs_closedir(struct pvfs_dir *d);

/* ---- the same by handle ---- */

int pvfs_lookup_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name,
		   struct pvfs_stat *ret);
#define PVFS_TARGET_ROOM 256
/*
 * Also the target of a symbolic link, if that came along: it does up to 255 bytes. Else "". @target
 * has PVFS_TARGET_ROOM bytes.
 */
int pvfs_lookup_target_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name,
			  struct pvfs_stat *ret, char *target);
int pvfs_resolve(struct pvfs_fs *fs, const char *path, int follow, struct pvfs_fh *ret);
int pvfs_stat_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, struct pvfs_stat *ret);
int pvfs_truncate_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, off_t size,
		     struct pvfs_stat *ret);
int pvfs_chmod_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, mode_t mode, struct pvfs_stat *ret);
int pvfs_chown_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, uid_t uid, gid_t gid,
		  struct pvfs_stat *ret);
int pvfs_utimens_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct timespec ts[2],
		    struct pvfs_stat *ret);
int pvfs_setlayout_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct pvfs_striping *s);
int pvfs_open_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, int flags, struct pvfs_file **ret);
/* Opens @name in @dir, creating with O_CREAT; a symbolic link is -ELOOP. @s and @st may be NULL. */
int pvfs_create_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, int flags,
		   mode_t mode, const struct pvfs_striping *s, struct pvfs_file **ret,
		   struct pvfs_stat *st);
int pvfs_mkdir_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, mode_t mode,
		  struct pvfs_stat *ret);
int pvfs_mknod_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name, mode_t mode,
		  dev_t dev, struct pvfs_stat *ret);
int pvfs_symlink_fh(struct pvfs_fs *fs, const char *target, const struct pvfs_fh *dir,
		    const char *name, struct pvfs_stat *ret);
int pvfs_link_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const struct pvfs_fh *dir,
		 const char *name, struct pvfs_stat *ret);
int pvfs_unlink_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name);
int pvfs_rmdir_fh(struct pvfs_fs *fs, const struct pvfs_fh *dir, const char *name);
int pvfs_rename_fh(struct pvfs_fs *fs, const struct pvfs_fh *sdir, const char *sname,
		   const struct pvfs_fh *ddir, const char *dname, unsigned int flags);
ssize_t pvfs_readlink_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, char *buf, size_t n);
ssize_t pvfs_getxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name,
			 void *value, size_t size);
int pvfs_setxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name,
		     const void *value, size_t size, int flags);
ssize_t pvfs_listxattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, char *list, size_t size);
int pvfs_removexattr_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, const char *name);
int pvfs_opendir_fh(struct pvfs_fs *fs, const struct pvfs_fh *fh, struct pvfs_dir **ret);

/* ---- who holds what ---- */

/* struct pvfs_who.flags */
#define PVFS_WHO_LEASE	0x1u	/* it may believe what it knows of the file, until it is asked to give that up */
#define PVFS_WHO_DRAFT	0x2u	/* it has made the file and may not have told all of it */
#define PVFS_WHO_RECALL	0x4u	/* it is being asked, and has not answered */
#define PVFS_WHO_OWN	0x8u	/* it is this mount */
#define PVFS_WHO_WRITE	0x10u	/* it has the file alone and may not have told all that it wrote */
#define PVFS_WHO_OUT	0x20u	/* it has the file open, keeps nothing of it, and asks before it reads or writes */

/* A client that has a lease on a file or directory, or has it open, as the manager knows it. */
struct pvfs_who {
	uint64_t session;
	uint32_t flags;		/* PVFS_WHO_* */
	uint32_t lease_ms;	/* until the lease is over; 0: it has none, or WRITE, that lasts */
	uint32_t readers;	/* opens for reading only */
	uint32_t writers;	/* opens for writing */
	char host[256];		/* host, user, program and address, for uid 0; else empty */
};

#define PVFS_WHO_GRACE	0x1u	/* the manager was restarted, and has not yet heard of all */

struct pvfs_who_list {
	struct pvfs_fh fh;	/* of the file */
	mode_t mode;		/* its type */
	uint32_t flags;		/* PVFS_WHO_GRACE */
	size_t n;
	struct pvfs_who *who;	/* in the order of their numbers */
	uint64_t left;		/* others, behind @max */
};
/*
 * All of them, or the first @max unless that is 0. A symbolic link at the end of @path is not
 * followed. Nothing comes of it for who is listed. -EOPNOTSUPP: the manager is too old for that.
 * Free with pvfs_who_free().
 */
int pvfs_who_holds(struct pvfs_fs *fs, const char *path, size_t max, struct pvfs_who_list *ret);
void pvfs_who_free(struct pvfs_who_list *l);

/* ---- counters ---- */

#define PVFS_SERVER_MGR (-1)		/* else an index of an I/O daemon */
#define PVFS_SERVER_ALL (-2)

struct pvfs_opcount {
	uint64_t count, errors;		/* finished requests, and those of them that failed */
	uint64_t bytes_out, bytes_in;	/* payload */
	uint64_t resent;		/* sent again after a connection was lost */
	uint64_t ns_total, ns_max;	/* from submission to completion */
};
/*
 * @op: as in docs/protocol.md, "LOOKUP"; NULL: the sum of all. -ENOENT: no such operation or
 * server.
 */
int pvfs_counters(struct pvfs_fs *fs, int server, const char *op, struct pvfs_opcount *ret);
/* A table of what is not zero. */
void pvfs_counters_print(struct pvfs_fs *fs, FILE *f);

#ifdef __cplusplus
}
#endif
#endif
