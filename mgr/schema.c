// SPDX-License-Identifier: GPL-2.0
/*
 * schema.c - records to bytes and back, and the hash behind directory cookies; see schema.h.
 */
#include "schema.h"
#include <sys/stat.h>

/* ---- SipHash-2-4 (Aumasson and Bernstein, 2012) ---- */

static inline u64 rotl(u64 v, int n)
{
	return (v << n) | (v >> (64 - n));
}

static inline void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

u64 mgr_siphash(const u8 key[16], const void *data, size_t len)
{
	u64 k0 = get_unaligned_le64(key), k1 = get_unaligned_le64(key + 8), m,
		last = (u64)len << 56;
	u64 v[4] = {
		k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
		k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull,
	};
	const u8 *p = data;
	size_t i;

	for (; len >= 8; p += 8, len -= 8) {
		m = get_unaligned_le64(p);
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	for (i = 0; i < len; i++)
		last |= (u64)p[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

u64 mgr_name_cookie(const u8 key[16], const struct pvfs_str *name)
{
	return mgr_siphash(key, name->p, name->len) & 0x7fffffffffffff00ull;
}

/* ---- records ---- */

static void ts_encode(const struct pvfs_ts *t, struct mgr_ts_disk *d)
{
	d->sec = cpu_to_le64((u64)t->sec);
	d->nsec = cpu_to_le32(t->nsec);
}

static void ts_decode(struct pvfs_ts *t, const struct mgr_ts_disk *d)
{
	t->sec = (s64)le64_to_cpu(d->sec);
	t->nsec = le32_to_cpu(d->nsec);
}

u32 mgr_inode_encode(const struct mgr_inode *in, struct mgr_inode_disk *d)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_INODE_FORMAT;
	d->flags = cpu_to_le32(in->flags);
	d->gen = cpu_to_le32(in->gen);
	d->mode = cpu_to_le32(in->mode);
	d->nlink = cpu_to_le32(in->nlink);
	d->uid = cpu_to_le32(in->uid);
	d->gid = cpu_to_le32(in->gid);
	d->trunc_gen = cpu_to_le32(in->trunc_gen);
	d->rdev = cpu_to_le64(in->rdev);
	d->size = cpu_to_le64(in->size);
	d->version = cpu_to_le64(in->version);
	d->entries = cpu_to_le64(in->entries);
	ts_encode(&in->atime, &d->atime);
	ts_encode(&in->mtime, &d->mtime);
	ts_encode(&in->ctime, &d->ctime);
	ts_encode(&in->btime, &d->btime);
	ts_encode(&in->wtime, &d->wtime);
	d->base = cpu_to_le16(in->layout.base);
	d->pcount = cpu_to_le16(in->layout.pcount);
	d->ssize = cpu_to_le32(in->layout.ssize);
	d->parent_ino = cpu_to_le64(in->parent.ino);
	d->parent_gen = cpu_to_le32(in->parent.gen);
	d->acl_version = cpu_to_le64(in->acl_version);
	d->xattr_names = cpu_to_le32(in->xattr_names);
	d->xattr_bytes = cpu_to_le32(in->xattr_bytes);
	d->blocks = cpu_to_le64(in->blocks);
	d->stuff_max = cpu_to_le32(in->layout.stuff_max);
	return sizeof(*d);
}

int mgr_inode_decode(struct mgr_inode *in, u64 ino, const void *rec, u32 len)
{
	const struct mgr_inode_disk *d = rec;

	if (len != sizeof(*d) || d->format != MGR_INODE_FORMAT)
		return -EUCLEAN;
	in->ino = ino;
	in->flags = le32_to_cpu(d->flags);
	in->gen = le32_to_cpu(d->gen);
	in->mode = le32_to_cpu(d->mode);
	in->nlink = le32_to_cpu(d->nlink);
	in->uid = le32_to_cpu(d->uid);
	in->gid = le32_to_cpu(d->gid);
	in->trunc_gen = le32_to_cpu(d->trunc_gen);
	in->rdev = le64_to_cpu(d->rdev);
	in->size = le64_to_cpu(d->size);
	in->version = le64_to_cpu(d->version);
	in->entries = le64_to_cpu(d->entries);
	ts_decode(&in->atime, &d->atime);
	ts_decode(&in->mtime, &d->mtime);
	ts_decode(&in->ctime, &d->ctime);
	ts_decode(&in->btime, &d->btime);
	ts_decode(&in->wtime, &d->wtime);
	in->layout.base = le16_to_cpu(d->base);
	in->layout.pcount = le16_to_cpu(d->pcount);
	in->layout.ssize = le32_to_cpu(d->ssize);
	in->parent.ino = le64_to_cpu(d->parent_ino);
	in->parent.gen = le32_to_cpu(d->parent_gen);
	in->acl_version = le64_to_cpu(d->acl_version);
	in->xattr_names = le32_to_cpu(d->xattr_names);
	in->xattr_bytes = le32_to_cpu(d->xattr_bytes);
	in->blocks = le64_to_cpu(d->blocks);
	in->layout.stuff_max = le32_to_cpu(d->stuff_max);
	if ((in->flags & ~MGR_IF_ALL) || (in->mode & ~(S_IFMT | 07777u)))
		return -EUCLEAN;
	switch (in->mode & S_IFMT) {
	case S_IFREG:
		/* The layout is used for arithmetic from here on. */
		if (!in->layout.pcount || in->layout.ssize < PVFS_SSIZE_MIN ||
		    (in->layout.ssize & (in->layout.ssize - 1)) || in->size > PVFS_FILE_MAX ||
		    in->layout.stuff_max > PVFS_STUFF_MAX ||
		    ((in->flags & MGR_IF_STUFFED) && in->size > PVFS_STUFF_MAX))
			return -EUCLEAN;
		return 0;
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	default:
		return -EUCLEAN;
	}
}

u32 mgr_dirent_encode(const struct mgr_dirent *de, void *room)
{
	struct mgr_dirent_disk *d = room;

	d->format = MGR_DIRENT_FORMAT;
	d->type = de->type;
	d->namelen = de->name.len;
	d->zero = 0;
	d->gen = cpu_to_le32(de->gen);
	d->ino = cpu_to_le64(de->ino);
	memcpy(d + 1, de->name.p, de->name.len);
	return sizeof(*d) + de->name.len;
}

int mgr_dirent_decode(struct mgr_dirent *de, const u8 *key, u32 klen, const void *rec, u32 len)
{
	const struct mgr_dirent_disk *d = rec;

	if (klen != MGR_PAIR_KEY || len < sizeof(*d) || d->format != MGR_DIRENT_FORMAT ||
	    !d->namelen ||
	    len != sizeof(*d) + d->namelen)
		return -EUCLEAN;
	de->dir = mgr_get_be64(key);
	de->cookie = mgr_get_be64(key + 8);
	de->ino = le64_to_cpu(d->ino);
	de->gen = le32_to_cpu(d->gen);
	de->type = d->type;
	de->name.p = (const u8 *)(d + 1);
	de->name.len = d->namelen;
	return 0;
}

u32 mgr_session_encode(const struct mgr_session_rec *s, void *room)
{
	struct mgr_session_disk *d = room;
	u32 n = strlen(s->host);

	memset(d, 0, sizeof(*d));
	d->format = MGR_SESSION_FORMAT;
	d->hostlen = cpu_to_le16(n);
	memcpy(d->client, s->client, sizeof(d->client));
	d->opened = cpu_to_le64(s->opened);
	d->flags = (s->evicted ? MGR_SESSION_EVICTED : 0) | (s->leases ? MGR_SESSION_LEASES : 0) |
		   (s->fenced ? MGR_SESSION_FENCED : 0);
	memcpy(d + 1, s->host, n);
	return sizeof(*d) + n;
}

int mgr_session_decode(struct mgr_session_rec *s, const void *rec, u32 len)
{
	const struct mgr_session_disk *d = rec;
	u32 n;

	if (len < sizeof(*d) || d->format != MGR_SESSION_FORMAT)
		return -EUCLEAN;
	n = le16_to_cpu(d->hostlen);
	if (n > PVFS_HOST_MAX || len != sizeof(*d) + n)
		return -EUCLEAN;
	memcpy(s->client, d->client, sizeof(s->client));
	s->opened = le64_to_cpu(d->opened);
	s->evicted = d->flags & MGR_SESSION_EVICTED;
	s->leases = d->flags & MGR_SESSION_LEASES;
	s->fenced = d->flags & MGR_SESSION_FENCED;
	memcpy(s->host, d + 1, n);
	s->host[n] = 0;
	return 0;
}

u32 mgr_trim_encode(const struct mgr_trim_rec *t, struct mgr_trim_disk *d)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_TRIM_FORMAT;
	d->gen = cpu_to_le32(t->gen);
	d->trunc_gen = cpu_to_le32(t->trunc_gen);
	d->size = cpu_to_le64(t->size);
	return sizeof(*d);
}

int mgr_trim_decode(struct mgr_trim_rec *t, const void *rec, u32 len)
{
	const struct mgr_trim_disk *d = rec;

	if (len != sizeof(*d) || d->format != MGR_TRIM_FORMAT)
		return -EUCLEAN;
	t->gen = le32_to_cpu(d->gen);
	t->trunc_gen = le32_to_cpu(d->trunc_gen);
	t->size = le64_to_cpu(d->size);
	return 0;
}

u32 mgr_mark_encode(u32 gen, struct mgr_mark_disk *d)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_MARK_FORMAT;
	d->gen = cpu_to_le32(gen);
	return sizeof(*d);
}

int mgr_mark_decode(u32 *ret_gen, const void *rec, u32 len)
{
	const struct mgr_mark_disk *d = rec;

	if (len != sizeof(*d) || d->format != MGR_MARK_FORMAT)
		return -EUCLEAN;
	*ret_gen = le32_to_cpu(d->gen);
	return 0;
}

u32 mgr_head_encode(struct mgr_head_disk *d, u32 len)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_HEAD_FORMAT;
	d->crc = cpu_to_le32(pvfs_crc32c(0, d + 1, len));
	return sizeof(*d) + len;
}

int mgr_head_decode(const struct mgr_head_disk *d, u32 len, u32 *ret_len)
{
	if (len <= sizeof(*d) || d->format != MGR_HEAD_FORMAT ||
	    le32_to_cpu(d->crc) != pvfs_crc32c(0, d + 1, len - sizeof(*d)))
		return -EUCLEAN;
	*ret_len = len - sizeof(*d);
	return 0;
}

u32 mgr_headfile_encode(const struct mgr_headfile *f, struct mgr_headfile_disk *d)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_HEADFILE_FORMAT;
	d->crc = cpu_to_le32(f->crc);
	d->len = cpu_to_le32(f->len);
	d->gen = cpu_to_le32(f->gen);
	d->epoch = cpu_to_le64(f->epoch);
	d->nr = cpu_to_le64(f->nr);
	return sizeof(*d);
}

int mgr_headfile_decode(struct mgr_headfile *f, u64 ino, const void *rec, u32 len)
{
	const struct mgr_headfile_disk *d = rec;

	if (len != sizeof(*d) || d->format != MGR_HEADFILE_FORMAT)
		return -EUCLEAN;
	f->ino = ino;
	f->gen = le32_to_cpu(d->gen);
	f->epoch = le64_to_cpu(d->epoch);
	f->nr = le64_to_cpu(d->nr);
	f->len = le32_to_cpu(d->len);
	f->crc = le32_to_cpu(d->crc);
	return f->len && f->len <= PVFS_STUFF_MAX ? 0 : -EUCLEAN;
}

u32 mgr_super_encode(const struct mgr_super *s, struct mgr_super_disk *d)
{
	memset(d, 0, sizeof(*d));
	d->format = MGR_SUPER_FORMAT;
	d->niods = cpu_to_le32(s->niods);
	memcpy(d->uuid, s->uuid, sizeof(d->uuid));
	memcpy(d->hash_key, s->hash_key, sizeof(d->hash_key));
	return sizeof(*d);
}

int mgr_super_decode(struct mgr_super *s, const void *rec, u32 len)
{
	const struct mgr_super_disk *d = rec;

	if (len != sizeof(*d) || d->format != MGR_SUPER_FORMAT)
		return -EUCLEAN;
	s->niods = le32_to_cpu(d->niods);
	memcpy(s->uuid, d->uuid, sizeof(s->uuid));
	memcpy(s->hash_key, d->hash_key, sizeof(s->hash_key));
	return 0;
}
