// SPDX-License-Identifier: GPL-2.0
/*
 * fence.c - telling the iods that a session was evicted, so that its client, which may only have
 * lost the way to us, writes nothing any more: others are about to get its locks.
 *
 * An iod that does not answer is not waited for longer than some seconds, and told later. What an
 * mgr that ends has not got through is not told any more.
 *
 * Context: the thread that expires sessions.
 */
#include "mgr.h"
#include <stdlib.h>

#define FENCE_MS 3000u

struct mgr_eviction {
	struct mgr_eviction *next;
	u64 session;
	u32 left;		/* iods that do not know */
	bool known[];		/* by iod */
};

/* Tells those that do not know. */
static void tell(struct mgr *m, struct mgr_eviction *e, struct mgr_iocall *calls)
{
	u32 i, n = 0;

	for (i = 0; i < m->niods; i++)
		if (!e->known[i])
			calls[n++] = (struct mgr_iocall){ .iod = i,
							  .op = PVFS_OP_EVICT,
							  .session = e->session };
	m->iod_ops->call(m->iod_arg, calls, n, FENCE_MS);
	for (i = 0; i < n; i++) {
		if (calls[i].err)
			continue;
		e->known[calls[i].iod] = true;
		e->left--;
	}
}

/**
 * mgr_fence - a session is dead: no iod does anything for it when this returns, if all of them
 * answer
 * @session: its number
 */
void mgr_fence(struct mgr *m, u64 session)
{
	struct mgr_eviction *e = calloc(1, sizeof(*e) + m->niods);

	if (!e) {
		pvfs_warn("session %llu: no memory to have the iods refuse it",
			  (unsigned long long)session);
		return;
	}
	e->session = session;
	e->left = m->niods;
	e->next = m->evictions;
	m->evictions = e;
	mgr_fence_retry(m);
	if (m->evictions == e)		/* the newest comes first */
		pvfs_warn("session %llu: %u iods do not answer: its client may still write there",
			  (unsigned long long)session, e->left);
}

/* mgr_fence_retry - tell iods what they could not be told before */
void mgr_fence_retry(struct mgr *m)
{
	struct mgr_eviction **pp = &m->evictions, *e;
	struct mgr_iocall *calls;

	if (!m->evictions)
		return;
	calls = malloc(m->niods * sizeof(*calls));
	while (calls && *pp) {
		e = *pp;
		tell(m, e, calls);
		if (e->left) {
			pp = &e->next;
			continue;
		}
		*pp = e->next;
		free(e);
	}
	free(calls);
}

void mgr_fence_fini(struct mgr *m)
{
	struct mgr_eviction *e;

	while ((e = m->evictions)) {
		m->evictions = e->next;
		free(e);
	}
}
