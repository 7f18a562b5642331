/* SPDX-License-Identifier: GPL-2.0 */
/*
 * store.h - where an iod keeps its datafiles: the seam between the daemon and what is below it.
 *
 * A datafile is a sparse run of bytes named by a fid. It comes into being with its first byte and
 * needs no other creation; one that does not exist has size 0. A store knows nothing of sessions,
 * capabilities or messages, and keeps no datafile open by itself: fdcache.c does.
 *
 * Implementations: store_posix.c (sparse files on a local file system), store_null.c (keeps sizes,
 * discards bytes). All operations may be called from any thread at any time; for one fid the caller
 * (fdcache.c) keeps open-with-create and remove apart.
 */
#ifndef PVFS_IOD_STORE_H
#define PVFS_IOD_STORE_H

#include <sys/uio.h>
#include "../common/msg.h"

struct iod_loss;
struct iod_store;

/* An open datafile. Belongs to the one who opened it; no reference to the store is counted. */
struct iod_file {
	struct pvfs_fid fid;
	int fd;			/* store_posix */
	void *priv;		/* store_null; store_posix: the number of a draft */
};

/* What a datafile is like now. */
struct iod_stat {
	u64 size;		/* bytes */
	u64 blocks;		/* 512-byte units */
	struct pvfs_ts mtime;	/* of the last write; all 0: none */
};

struct iod_store_ops {
	const char *name;
	/*
	 * Opens datafile @fid for reading and writing into @ret. -ENOENT when there is none and
	 * @create is false; made when it is true (-ENOSPC, -EDQUOT, -EROFS, ...).
	 */
	int (*open)(struct iod_store *s, const struct pvfs_fid *fid, bool create,
		    struct iod_file *ret);
	void (*close)(struct iod_store *s, struct iod_file *f);
	/*
	 * Bytes moved (short at the end of the datafile, 0 past it) or -errno. With @nowait
	 * -EAGAIN, or less than asked, when it would have to wait for a disk.
	 */
	ssize_t (*preadv)(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			  u64 off, bool nowait);
	ssize_t (*pwritev)(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			   u64 off);
	/*
	 * A descriptor that sendfile can take the bytes at @off from, and where they are in it. It
	 * lives as long as @f is open.
	 */
	int (*sendable)(struct iod_store *s, struct iod_file *f, u64 off, off_t *ret_off);
	/* Are the @len bytes at @off in memory? May say yes to what is only mostly there. */
	bool (*ready)(struct iod_store *s, struct iod_file *f, u64 off, u32 len);
	/* Brings them there, with @wait until they are. May block anyway, and leave some out. */
	void (*prefetch)(struct iod_store *s, struct iod_file *f, u64 off, u32 len, bool wait);
	/* Ends it at @size, up or down. Its mtime stays: a truncation's time is the mgr's. */
	int (*truncate)(struct iod_store *s, struct iod_file *f, u64 size);
	/* As fallocate(2), by PVFS_SP_* in @mode. -EOPNOTSUPP when it cannot. */
	int (*space)(struct iod_store *s, struct iod_file *f, u32 mode, u64 off, u64 len);
	/* The next data at or behind @off, PVFS_SEEK_NONE if there is none; or the next @hole. */
	int (*seek)(struct iod_store *s, struct iod_file *f, u64 off, bool hole, u64 *ret);
	/*
	 * Bytes of @src, NULL: zeros, to @dst, which ends at @dst_off + @len or later then. What is
	 * a hole in @src, or behind its end, is one in @dst. They may be one file, whose two ranges
	 * don't overlap.
	 */
	int (*copy)(struct iod_store *s, struct iod_file *src, u64 src_off, struct iod_file *dst,
		    u64 dst_off, u64 len);
	/* @f may be NULL when it is not open. -ENOENT when there is none. */
	int (*stat)(struct iod_store *s, const struct pvfs_fid *fid, struct iod_file *f,
		    struct iod_stat *ret);
	/*
	 * What was written to @f is on stable storage, and so is its name. -EIO, -ENOSPC, -EDQUOT:
	 * something may be lost, and will not be reported again: the caller lets nobody else sync
	 * @f before that is in @s->loss, durable.c does. (Of names the store does it.)
	 */
	int (*sync)(struct iod_store *s, struct iod_file *f, bool datasync);
	/*
	 * All that was written to any datafile is on stable storage, names left out. Fails also when
	 * something was lost since it was last called, or the store was opened, though nobody has
	 * that datafile open any more. May take other files of the file system along.
	 */
	int (*sync_all)(struct iod_store *s);
	/* Only the name, or that there is none: what remove() did is on stable storage. */
	int (*sync_name)(struct iod_store *s, const struct pvfs_fid *fid);
	/*
	 * A datafile that consists of these bytes, on stable storage, without a name; its mtime says
	 * that nothing was written. publish() gives it the name of @fid unless there is a datafile
	 * of that name; sync() makes that last. close() in any case, withdraw() before it if it was
	 * not published.
	 */
	int (*draft)(struct iod_store *s, const struct pvfs_fid *fid, const void *data, u32 len,
		     struct iod_file *ret);
	int (*publish)(struct iod_store *s, struct iod_file *f);
	void (*withdraw)(struct iod_store *s, struct iod_file *f);
	/* Idempotent: 0 also when there is none. sync_name() makes it last. */
	int (*remove)(struct iod_store *s, const struct pvfs_fid *fid);
	int (*statfs)(struct iod_store *s, struct pvfs_iod_statfs_rep *ret);
	/* See iod_room_told(); after each write, so it is cheap. NULL: nobody knows, or there is no end. */
	u64 (*room)(struct iod_store *s);
	void (*free)(struct iod_store *s);
};

/* Every implementation embeds this first. */
struct iod_store {
	const struct iod_store_ops *ops;
	struct iod_loss *loss;	/* whose store it is sets it; may be NULL */
};

/**
 * iod_store_posix_open - the store in a directory of a local file system
 * @dir: checked, marked and locked by the caller (common/storeid.h)
 * @reserve: bytes of its file system that are left free, see room.h
 * @ret: close with (*ret)->ops->free()
 *
 * Return: 0 or -errno.
 */
int iod_store_posix_open(const char *dir, u64 reserve, struct iod_store **ret);

/**
 * iod_store_null_open - a store that remembers sizes and discards bytes; reads give zeros
 * @span: the longest read that will be asked for, bytes
 * @ret: as above
 *
 * For benchmarks only: what is measured with it is the daemon and the network alone.
 *
 * Return: 0 or -errno.
 */
int iod_store_null_open(u32 span, struct iod_store **ret);

#endif
