// SPDX-License-Identifier: GPL-2.0
/*
 * store_null.c - a store that remembers sizes and discards bytes; see store.h.
 *
 * Shows what the daemon and the network cost by themselves. Nothing survives the process.
 */
#include "store.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 4096u

struct null_file {
	struct null_file *next;
	struct pvfs_fid fid;
	u32 refs;		/* the table's and one per open */
	u64 size;
	struct pvfs_ts mtime;
};

struct null_store {
	struct iod_store s;
	int zeros;		/* a memfd of the longest read, for sendfile */
	u32 span;
	pthread_mutex_t lock;	/* protects the table and the files' fields */
	struct null_file *bucket[BUCKETS];
};

static struct null_store *null_of(struct iod_store *s)
{
	return container_of(s, struct null_store, s);
}

/* The link that points at @fid's file, or at the NULL where it would be. Call with the lock. */
static struct null_file **find(struct null_store *n, const struct pvfs_fid *fid)
{
	struct null_file **l = &n->bucket[(fid->ino ^ fid->gen) % BUCKETS];

	while (*l && ((*l)->fid.ino != fid->ino || (*l)->fid.gen != fid->gen))
		l = &(*l)->next;
	return l;
}

static int null_open(struct iod_store *s, const struct pvfs_fid *fid, bool create,
		     struct iod_file *ret)
{
	struct null_store *n = null_of(s);
	struct null_file **l, *f;
	int err = 0;

	pthread_mutex_lock(&n->lock);
	l = find(n, fid);
	if (!*l && create) {
		*l = calloc(1, sizeof(**l));
		if (*l) {
			(*l)->fid = *fid;
			(*l)->refs = 1;
		} else {
			err = -ENOMEM;
		}
	}
	f = *l;
	if (f)
		f->refs++;
	else if (!err)
		err = -ENOENT;
	pthread_mutex_unlock(&n->lock);
	if (err)
		return err;
	ret->fid = *fid;
	ret->fd = -1;
	ret->priv = f;
	return 0;
}

static void null_close(struct iod_store *s, struct iod_file *f)
{
	struct null_store *n = null_of(s);
	struct null_file *nf = f->priv;

	pthread_mutex_lock(&n->lock);
	if (!--nf->refs)
		free(nf);
	pthread_mutex_unlock(&n->lock);
	f->priv = NULL;
}

static size_t iov_bytes(const struct iovec *iov, int n)
{
	size_t sum = 0;

	while (n--)
		sum += iov++->iov_len;
	return sum;
}

static ssize_t null_preadv(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			   u64 off, bool nowait)
{
	struct null_file *nf = f->priv;
	size_t left, len, done = 0;
	u64 size;

	pthread_mutex_lock(&null_of(s)->lock);
	size = nf->size;
	pthread_mutex_unlock(&null_of(s)->lock);
	left = off >= size ? 0 : min(size - off, (u64)iov_bytes(iov, n));
	for (; left; iov++, left -= len, done += len) {
		len = min(left, iov->iov_len);
		memset(iov->iov_base, 0, len);
	}
	return done;
}

static ssize_t null_pwritev(struct iod_store *s, struct iod_file *f, const struct iovec *iov, int n,
			    u64 off)
{
	struct null_file *nf = f->priv;
	size_t len = iov_bytes(iov, n);
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	pthread_mutex_lock(&null_of(s)->lock);
	nf->size = max(nf->size, off + len);
	nf->mtime = (struct pvfs_ts){ .sec = ts.tv_sec, .nsec = ts.tv_nsec };
	pthread_mutex_unlock(&null_of(s)->lock);
	return len;
}

static int null_sendable(struct iod_store *s, struct iod_file *f, u64 off, off_t *ret_off)
{
	*ret_off = 0;
	return null_of(s)->zeros;
}

static bool null_ready(struct iod_store *s, struct iod_file *f, u64 off, u32 len)
{
	return true;
}

static void null_prefetch(struct iod_store *s, struct iod_file *f, u64 off, u32 len, bool wait)
{
}

static int null_truncate(struct iod_store *s, struct iod_file *f, u64 size)
{
	struct null_file *nf = f->priv;

	pthread_mutex_lock(&null_of(s)->lock);
	nf->size = size;
	pthread_mutex_unlock(&null_of(s)->lock);
	return 0;
}

static int null_space(struct iod_store *s, struct iod_file *f, u32 mode, u64 off, u64 len)
{
	struct null_file *nf = f->priv;

	pthread_mutex_lock(&null_of(s)->lock);
	if (!(mode & (PVFS_SP_KEEP_SIZE | PVFS_SP_PUNCH)))
		nf->size = max(nf->size, off + len);
	pthread_mutex_unlock(&null_of(s)->lock);
	return 0;
}

/* All that it pretends to have is data. */
static int null_seek(struct iod_store *s, struct iod_file *f, u64 off, bool hole, u64 *ret)
{
	struct null_file *nf = f->priv;

	pthread_mutex_lock(&null_of(s)->lock);
	*ret = hole ? max(off, nf->size) : off < nf->size ? off : PVFS_SEEK_NONE;
	pthread_mutex_unlock(&null_of(s)->lock);
	return 0;
}

static int null_copy(struct iod_store *s, struct iod_file *src, u64 src_off, struct iod_file *dst,
		     u64 dst_off, u64 len)
{
	struct null_file *nf = dst->priv;

	pthread_mutex_lock(&null_of(s)->lock);
	nf->size = max(nf->size, dst_off + len);
	pthread_mutex_unlock(&null_of(s)->lock);
	return 0;
}

static int null_stat(struct iod_store *s, const struct pvfs_fid *fid, struct iod_file *f,
		     struct iod_stat *ret)
{
	struct null_store *n = null_of(s);
	struct null_file *nf;

	pthread_mutex_lock(&n->lock);
	nf = f ? f->priv : *find(n, fid);
	if (nf) {
		ret->size = nf->size;
		ret->blocks = (nf->size + 511) / 512;
		ret->mtime = nf->mtime;
	}
	pthread_mutex_unlock(&n->lock);
	return nf ? 0 : -ENOENT;
}

static int null_sync(struct iod_store *s, struct iod_file *f, bool datasync)
{
	return 0;
}

static int null_sync_all(struct iod_store *s)
{
	return 0;
}

static int null_sync_name(struct iod_store *s, const struct pvfs_fid *fid)
{
	return 0;
}

static int null_draft(struct iod_store *s, const struct pvfs_fid *fid, const void *data, u32 len,
		      struct iod_file *ret)
{
	struct null_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->fid = *fid;
	f->refs = 1;
	f->size = len;
	*ret = (struct iod_file){ .fid = *fid, .fd = -1, .priv = f };
	return 0;
}

static int null_publish(struct iod_store *s, struct iod_file *f)
{
	struct null_store *n = null_of(s);
	struct null_file **l;
	int err = 0;

	pthread_mutex_lock(&n->lock);
	l = find(n, &f->fid);
	if (*l) {
		err = -EEXIST;
	} else {
		*l = f->priv;
		(*l)->refs++;
	}
	pthread_mutex_unlock(&n->lock);
	return err;
}

static void null_withdraw(struct iod_store *s, struct iod_file *f)
{
}

static int null_remove(struct iod_store *s, const struct pvfs_fid *fid)
{
	struct null_store *n = null_of(s);
	struct null_file **l, *f;

	pthread_mutex_lock(&n->lock);
	l = find(n, fid);
	f = *l;
	if (f) {
		*l = f->next;
		if (!--f->refs)
			free(f);
	}
	pthread_mutex_unlock(&n->lock);
	return 0;
}

static int null_statfs(struct iod_store *s, struct pvfs_iod_statfs_rep *ret)
{
	*ret = (struct pvfs_iod_statfs_rep){
		.bsize = 4096, .blocks = 1ull << 40, .bfree = 1ull << 40, .bavail = 1ull << 40,
		.files = 1ull << 40, .ffree = 1ull << 40,
	};
	return 0;
}

static void null_free(struct iod_store *s)
{
	struct null_store *n;
	struct null_file *f;
	u32 i;

	if (!s)
		return;
	n = null_of(s);
	for (i = 0; i < BUCKETS; i++) {
		while ((f = n->bucket[i]) != NULL) {
			n->bucket[i] = f->next;
			free(f);
		}
	}
	pthread_mutex_destroy(&n->lock);
	if (n->zeros >= 0)
		close(n->zeros);
	free(n);
}

static const struct iod_store_ops null_ops = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.preadv = null_preadv,
	.pwritev = null_pwritev,
	.sendable = null_sendable,
	.ready = null_ready,
	.prefetch = null_prefetch,
	.truncate = null_truncate,
	.space = null_space,
	.seek = null_seek,
	.copy = null_copy,
	.stat = null_stat,
	.sync = null_sync,
	.sync_all = null_sync_all,
	.sync_name = null_sync_name,
	.draft = null_draft,
	.publish = null_publish,
	.withdraw = null_withdraw,
	.remove = null_remove,
	.statfs = null_statfs,
	.free = null_free,
};

int iod_store_null_open(u32 span, struct iod_store **ret)
{
	struct null_store *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	n->s.ops = &null_ops;
	n->span = span;
	pthread_mutex_init(&n->lock, NULL);
	n->zeros = memfd_create("pvfs-null", MFD_CLOEXEC);
	if (n->zeros < 0 || ftruncate(n->zeros, span)) {
		err = -errno;
		null_free(&n->s);
		return err;
	}
	*ret = &n->s;
	return 0;
}
