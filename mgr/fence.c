// SPDX-License-Identifier: GPL-2.0
/*
 * fence.c - telling the iods that a session was evicted, so that its client, which may only have
 * lost the way to us, writes nothing any more: others are about to get its locks.
 *
 * An iod that does not answer is not waited for longer than some seconds, and told later: the
 * session's record stays, marked as evicted, until all know, and a restarted mgr goes on from there.
 *
 * Context: the thread that expires sessions; mgr_fence_add() also the start.
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
 * mgr_fence_add - a session is dead, and the iods have to be told: see mgr_fence_retry()
 * @session: its number
 *
 * Return: 0 or -ENOMEM.
 */
int mgr_fence_add(struct mgr *m, u64 session)
{
	struct mgr_eviction *e = calloc(1, sizeof(*e) + m->niods);

	if (!e)
		return -ENOMEM;
	e->session = session;
	e->left = m->niods;
	e->next = m->evictions;
	m->evictions = e;
	return 0;
}

/**
 * mgr_fence - a session is dead: no iod does anything for it when this returns, if all of them
 * answer
 * @session: its number
 *
 * Return: all iods know. If not, its record must stay.
 */
bool mgr_fence(struct mgr *m, u64 session)
{
	struct mgr_iocall *calls = malloc(m->niods * sizeof(*calls));
	struct mgr_eviction *e;
	bool all;

	if (!calls || mgr_fence_add(m, session)) {
		free(calls);
		pvfs_warn("session %llu: no memory to have the iods refuse it",
			  (unsigned long long)session);
		return false;
	}
	e = m->evictions;
	tell(m, e, calls);
	free(calls);
	all = !e->left;
	if (all) {
		m->evictions = e->next;
		free(e);
	} else {
		pvfs_warn("session %llu: %u iods do not answer: its client may still write there",
			  (unsigned long long)session, e->left);
	}
	return all;
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
		if (e->left)
			tell(m, e, calls);
		/* Without its record's end it is only told once more after a restart. */
		if (e->left || mgr_session_forget(m, e->session)) {
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
