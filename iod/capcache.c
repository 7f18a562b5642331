// SPDX-License-Identifier: GPL-2.0
/*
 * capcache.c - checking capabilities, and remembering the ones that were right; see capcache.h.
 *
 * A table of sets of four, the oldest of a set replaced. What is in it was verified once, so a hit
 * is as good as a check: the whole signature is compared, in constant time.
 */
#include "capcache.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SETS 2048u
#define WAYS 4u
#define LOCKS 64u

struct entry {
	u64 session, ino;
	u32 gen, rights;	/* rights 0: empty */
	u8 mac[PVFS_CAP_MAC_LEN];
};

struct iod_caps {
	struct pvfs_key key;
	u8 uuid[PVFS_UUID_LEN];
	_Atomic u64 hits, checks, refused;
	pthread_mutex_t lock[LOCKS];	/* set i is protected by lock[i % LOCKS] */
	u8 next[SETS];
	struct entry set[SETS][WAYS];
};

int iod_caps_new(const struct pvfs_key *key, const u8 uuid[PVFS_UUID_LEN], struct iod_caps **ret)
{
	struct iod_caps *c = calloc(1, sizeof(*c));
	u32 i;

	if (!c)
		return -ENOMEM;
	c->key = *key;
	memcpy(c->uuid, uuid, PVFS_UUID_LEN);
	for (i = 0; i < LOCKS; i++)
		pthread_mutex_init(&c->lock[i], NULL);
	*ret = c;
	return 0;
}

void iod_caps_free(struct iod_caps *c)
{
	u32 i;

	if (!c)
		return;
	for (i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&c->lock[i]);
	explicit_bzero(&c->key, sizeof(c->key));
	free(c);
}

static u32 set_of(u64 session, const struct pvfs_fid *fid)
{
	u64 h = (fid->ino ^ ((u64)fid->gen << 32)) * 0x9e3779b97f4a7c15ull;

	h = (h ^ session) * 0xd6e8feb86659fd93ull;
	return h >> 53;
}
_Static_assert(SETS == 1u << (64 - 53), "set_of() gives a set");

int iod_caps_check(struct iod_caps *c, u64 session, const struct pvfs_fid *fid,
		   const struct pvfs_cap *cap, u32 want)
{
	u32 s = set_of(session, fid), w;
	bool hit = false;
	struct entry *e;

	if (!(cap->rights & want))
		goto refuse;
	pthread_mutex_lock(&c->lock[s % LOCKS]);
	for (w = 0; w < WAYS && !hit; w++) {
		e = &c->set[s][w];
		hit = e->ino == fid->ino && e->gen == fid->gen && e->session == session &&
		      e->rights == cap->rights &&
		      pvfs_mac_equal(e->mac, cap->mac, PVFS_CAP_MAC_LEN);
	}
	pthread_mutex_unlock(&c->lock[s % LOCKS]);
	if (hit) {
		atomic_fetch_add_explicit(&c->hits, 1, memory_order_relaxed);
		return 0;
	}
	atomic_fetch_add_explicit(&c->checks, 1, memory_order_relaxed);
	if (!pvfs_cap_check(&c->key, c->uuid, session, fid, cap))
		goto refuse;
	pthread_mutex_lock(&c->lock[s % LOCKS]);
	e = &c->set[s][c->next[s]++ % WAYS];
	*e = (struct entry){ .session = session, .ino = fid->ino, .gen = fid->gen,
			     .rights = cap->rights };
	memcpy(e->mac, cap->mac, PVFS_CAP_MAC_LEN);
	pthread_mutex_unlock(&c->lock[s % LOCKS]);
	return 0;
refuse:
	atomic_fetch_add_explicit(&c->refused, 1, memory_order_relaxed);
	return -EACCES;
}

bool iod_caps_ticket(struct iod_caps *c, u64 session, const u8 *ticket)
{
	return pvfs_ticket_check(&c->key, c->uuid, session, ticket);
}

void iod_caps_stats(struct iod_caps *c, FILE *f)
{
	fprintf(f, "\"hits\":%llu,\"checks\":%llu,\"refused\":%llu",
		(unsigned long long)atomic_load(&c->hits),
		(unsigned long long)atomic_load(&c->checks),
		(unsigned long long)atomic_load(&c->refused));
}
