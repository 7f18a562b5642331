// SPDX-License-Identifier: GPL-2.0
/*
 * grant.c - which leases a request gets, and which of others it has to wait for; see recall.h and "Leases" in
 * docs/protocol.md. recall.c has those that wait.
 */
#include "mgr.h"
#include <sys/stat.h>

/* ---- granting ---- */

bool mgr_lease_begin(struct mgr_op *op, u64 ino)
{
	struct mgr *m = op->m;
	bool no;
	u64 now;

	if (!op->s || !atomic_load_explicit(&op->s->leases, memory_order_relaxed))
		return false;
	no = mgr_recall_barred(m, ino);
	now = mgr_mono_ms();
	if (no || mgr_leases_drafted(&m->leases, ino, op->s->id, now))
		return false;
	if (!mgr_leases_grant(&m->leases, ino, op->s->id, now, now + m->conf->lease_ms))
		return false;
	/* The sweep comes after @dead was set: it finds this one, or we see @dead. */
	if (!atomic_load(&op->s->dead))
		return true;
	mgr_leases_drop(&m->leases, ino, op->s->id);
	return false;
}

void mgr_lease_attr(struct mgr_op *op, bool had, const struct mgr_inode *in, struct pvfs_attr *attr)
{
	/*
	 * One that is not told stays noted until it expires: another request of the session may have
	 * been told of it meanwhile.
	 */
	if (had && !(op->beside && S_ISREG(in->mode)) &&
	    !(in->flags & (MGR_IF_UNCERTAIN | MGR_IF_TRIM | MGR_IF_SPILL)) &&
	    !(attr->flags & PVFS_AF_SIZE_UNKNOWN))
		attr->flags |= PVFS_AF_LEASE;
}

/* ---- noting ---- */

/* An inode that all leases are to be waited for of. Return: NULL: there are too many of them. */
static struct mgr_noted *note(struct mgr_op *op, u64 ino)
{
	u32 i;

	for (i = 0; i < op->nnoted && op->noted[i].ino != ino; i++)
		;
	if (i == MGR_NOTED_MAX) {
		op->noted_all = false;
		return NULL;
	}
	if (i == op->nnoted)
		op->noted[op->nnoted++] = (struct mgr_noted){ .ino = ino };
	op->noted[i].settle = false;
	return &op->noted[i];
}

void mgr_lease_note(struct mgr_op *op, u64 ino, bool own)
{
	struct mgr_noted *n = op->recalls && !op->only_kept ? note(op, ino) : NULL;

	if (!n)
		return;
	n->change = true;
	/* Who keeps something back does not believe what it is changing. */
	n->own |= own && !mgr_leases_draft_of(&op->m->leases, ino, mgr_op_session(op));
}

/* Drafts are empty, to us; a striped file under a WRITE lease is open for writing. */
bool mgr_draft_unsure(struct mgr_op *op, const struct mgr_inode *in)
{
	struct mgr_opens_view v;

	if (!S_ISREG(in->mode) || !mgr_leases_in_grace(op->m) ||
	    !(in->flags & MGR_IF_STUFFED ? !in->size || (in->flags & MGR_IF_BEHIND) :
					   in->flags & MGR_IF_UNCERTAIN))
		return false;
	/* Who had it open all the time: then nobody else kept anything back. */
	mgr_opens_view(&op->m->opens, in->ino, mgr_op_session(op), &v);
	return !v.reclaimed || op->for_others;
}

void mgr_draft_note(struct mgr_op *op, const struct mgr_inode *in)
{
	/* Of what it opens for others the session itself keeps nothing back either. */
	u64 ino = in->ino, but = op->for_others ? 0 : mgr_op_session(op);
	bool settle;
	u32 i;

	if (!op->recalls || op->outside)
		return;
	op->unsure |= !op->only_kept && mgr_draft_unsure(op, in);
	if (!mgr_leases_drafted(&op->m->leases, ino, but, mgr_mono_ms()))
		return;
	settle = op->tells && mgr_leases_writer(&op->m->leases, ino, but);
	/*
	 * It came before that was sent: so what was written before it came is with the iods, whatever became of
	 * the lease since.
	 */
	if (settle && mgr_recall_settled(op->parked, ino)) {
		op->beside = true;
		return;
	}
	for (i = 0; i < op->nnoted; i++)
		if (op->noted[i].ino == ino)
			break;
	if (i < op->nnoted)
		op->noted[i].own |= op->for_others;
	/* Those that there is no room for are waited for next time. */
	else if (i < MGR_NOTED_MAX)
		op->noted[op->nnoted++] = (struct mgr_noted){ .ino = ino, .own = op->for_others,
							      .settle = settle };
}

void mgr_yield_note(struct mgr_op *op, u64 ino, bool writers)
{
	struct mgr_noted *n = op->recalls ? note(op, ino) : NULL;

	if (!n)
		return;
	n->yield = true;
	n->writers = writers;
}

void mgr_lasting_note(struct mgr_op *op, u64 ino)
{
	/* What it opens for others its own session is to hear of as well. */
	if (mgr_leases_lasting(&op->m->leases, ino, op->for_others ? 0 : mgr_op_session(op)))
		mgr_lease_note(op, ino, op->for_others);
}

bool mgr_takes_leases(struct mgr *m, u64 session)
{
	struct mgr_session *s = mgr_session_peek(m, session);
	bool ret;

	/* One that is about to end is waited for. */
	if (!s)
		return true;
	ret = atomic_load_explicit(&s->leases, memory_order_relaxed);
	mgr_session_put(s);
	return ret;
}

bool mgr_yield_may(struct mgr *m, u64 ino, u64 but, bool writers)
{
	u64 ids[MGR_IN_MAX];
	u32 i, n = min(mgr_opens_in(&m->opens, ino, but, writers, ids, MGR_IN_MAX), MGR_IN_MAX);

	for (i = 0; i < n; i++)
		if (!mgr_takes_leases(m, ids[i]))
			return false;
	return true;
}

/* Is somebody to be waited for? */
static bool in_the_way(struct mgr_op *op, const struct mgr_noted *n, u64 now)
{
	struct mgr_leases *l = &op->m->leases;
	u64 session = mgr_op_session(op);

	if (n->settle)
		return mgr_leases_writer(l, n->ino, session);
	if (n->yield && mgr_opens_in(&op->m->opens, n->ino, session, n->writers, NULL, 0))
		return true;
	if (n->yield && !n->change)
		return mgr_leases_drafted(l, n->ino, session, now);
	return mgr_leases_held(l, n->ino, mgr_noted_exempt(n, session), now, NULL, 0);
}

int mgr_lease_check(struct mgr_op *op)
{
	struct mgr *m = op->m;
	bool changes = false;
	u32 i, kept = 0;
	u64 now;

	if (!op->recalls)
		return 0;
	if (op->unsure)
		return mgr_grace_wait(op, MGR_GRACE_LEASES);
	if (!op->nnoted)
		return 0;
	/* A transaction that changes more than we can note: none does. */
	if (!op->noted_all)
		return -EIO;
	now = mgr_mono_ms();
	for (i = 0; i < op->nnoted; i++) {
		changes |= op->noted[i].change;
		if (in_the_way(op, &op->noted[i], now))
			op->noted[kept++] = op->noted[i];
	}
	if (changes && mgr_leases_in_grace(m))
		return mgr_grace_wait(op, MGR_GRACE_LEASES);
	op->nnoted = kept;
	return kept ? -EINPROGRESS : 0;
}

/* ---- WRITE leases ---- */

struct writing {
	struct mgr *m;
	u64 ino, session;
};

static struct mgr_opens_view opens_of(const struct writing *w)
{
	struct mgr_opens_view v;

	mgr_opens_view(&w->m->opens, w->ino, w->session, &v);
	return v;
}

/* An open is counted before it looks for us: it sees us, or we see it. */
static bool opened_alone(void *arg)
{
	struct mgr_opens_view v = opens_of(arg);

	return v.self && !v.out && !v.open_elsewhere;
}

/* The same of those that are in: who comes in does so before it looks for us. */
static bool in_alone(void *arg)
{
	struct mgr_opens_view v = opens_of(arg);

	return v.self && !v.out && !v.in_elsewhere;
}

static bool writes_no_more(void *arg)
{
	return !opens_of(arg).self;
}

static bool is_out(void *arg)
{
	struct mgr_opens_view v = opens_of(arg);

	return !v.self || v.out;
}

static bool write_grant(struct mgr_op *op, u64 ino, bool (*alone)(void *arg))
{
	struct writing w = { .m = op->m, .ino = ino, .session = mgr_op_session(op) };

	if (!op->s || !atomic_load_explicit(&op->s->leases, memory_order_relaxed))
		return false;
	if (!mgr_leases_write(&op->m->leases, ino, w.session, mgr_mono_ms(), alone, &w))
		return false;
	/* As in mgr_lease_begin(). */
	if (!atomic_load(&op->s->dead))
		return true;
	mgr_leases_drop(&op->m->leases, ino, w.session);
	return false;
}

/*
 * Who has one keeps it while somebody waits for it, but is not told so again: it is giving it up.
 *
 * Others' leases to believe what they were told need not be looked for: nobody is told that of what
 * is written, and those from before were recalled before it was.
 */
bool mgr_write_begin(struct mgr_op *op, u64 ino)
{
	/* Who has it open from before a restart has yet to say so. */
	if (mgr_locks_in_grace(op->m))
		return mgr_leases_writes(&op->m->leases, ino, mgr_op_session(op)) &&
		       !mgr_recall_barred(op->m, ino);
	return !mgr_recall_barred(op->m, ino) && write_grant(op, ino, opened_alone);
}

/*
 * Nobody else was in it then. Who has opened it since, or comes back to it after an eviction, is in the
 * way; and nobody may have been told anything of it that was not in the grace all the time until it is
 * noted again. Whoever waits for it already is not: what was kept back is still there.
 */
bool mgr_write_reclaim(struct mgr_op *op, u64 ino)
{
	bool had = mgr_leases_writes(&op->m->leases, ino, mgr_op_session(op));

	if (!write_grant(op, ino, in_alone))
		return false;
	if (had || mgr_leases_in_grace(op->m))
		return true;
	mgr_leases_unwrite(&op->m->leases, ino, mgr_op_session(op), mgr_mono_ms(), NULL, NULL);
	return false;
}

bool mgr_write_of_draft(struct mgr_op *op, u64 ino)
{
	if (mgr_recall_barred(op->m, ino) || !write_grant(op, ino, NULL))
		return false;
	/* It may have been closed meanwhile, and nothing would end it. */
	mgr_write_trim(op, ino, mgr_op_session(op));
	return mgr_leases_writes(&op->m->leases, ino, mgr_op_session(op));
}

bool mgr_write_turn(struct mgr_op *op, u64 ino)
{
	/* What bars it is the request itself, or waits for its turn. */
	return write_grant(op, ino, in_alone);
}

bool mgr_write_told(struct mgr_op *op, u64 ino)
{
	return mgr_leases_writes(&op->m->leases, ino, mgr_op_session(op)) && !mgr_recall_barred(op->m, ino);
}

/* @over: as mgr_leases_unwrite() takes it */
static void write_end(struct mgr_op *op, u64 ino, u64 session, bool (*over)(void *arg))
{
	struct writing w = { .m = op->m, .ino = ino, .session = session };
	u64 asked = atomic_load(&op->m->recalls.born);

	/*
	 * With no other lease left there is nothing to wait for any more. What is recalled from here on may
	 * be one that the session has got since; mgr_recall_tick() sees if it is not.
	 */
	if (mgr_leases_unwrite(&op->m->leases, ino, session, mgr_mono_ms(), over, &w))
		mgr_recall_answered(op->m, session, &ino, 1, 0, asked);
	else
		mgr_settle_trim(op->m, ino, session);
}

void mgr_write_trim(struct mgr_op *op, u64 ino, u64 session)
{
	write_end(op, ino, session, writes_no_more);
}

/* ---- leases to read that last ---- */

static bool read_alone(void *arg)
{
	struct mgr_opens_view v = opens_of(arg);

	return v.open && !v.out && !v.writers_in;
}

static bool opened_no_more(void *arg)
{
	return !opens_of(arg).open;
}

static bool reads_no_more(void *arg)
{
	struct mgr_opens_view v = opens_of(arg);

	return !v.open || v.out;
}

bool mgr_lasting_turn(struct mgr_op *op, u64 ino)
{
	struct writing w = { .m = op->m, .ino = ino, .session = mgr_op_session(op) };

	if (!mgr_leases_last(&op->m->leases, ino, w.session, mgr_mono_ms(), read_alone, &w))
		return false;
	/* As in mgr_lease_begin(). */
	if (atomic_load(&op->s->dead)) {
		mgr_leases_drop(&op->m->leases, ino, w.session);
		return false;
	}
	/*
	 * Who waits outside of the line would have it recalled at once, and wait again; and the answer to a RECALL
	 * that is under way would end it.
	 */
	return !mgr_turn_barred(op->m, ino, w.session);
}

/* @over: as mgr_leases_unlast() takes it */
static void lasting_end(struct mgr *m, u64 ino, u64 session, bool (*over)(void *arg))
{
	struct writing w = { .m = m, .ino = ino, .session = session };
	u64 asked = atomic_load(&m->recalls.born);

	/* As in write_end(). */
	if (mgr_leases_unlast(&m->leases, ino, session, mgr_mono_ms(), over, &w))
		mgr_recall_answered(m, session, &ino, 1, 0, asked);
}

void mgr_lasting_over(struct mgr_op *op, u64 ino)
{
	lasting_end(op->m, ino, mgr_op_session(op), NULL);
}

void mgr_lasting_back(struct mgr_op *op, u64 ino)
{
	lasting_end(op->m, ino, mgr_op_session(op), reads_no_more);
}

void mgr_open_trim(struct mgr *m, u64 ino, u64 session)
{
	lasting_end(m, ino, session, opened_no_more);
	mgr_yield_trim(m, ino, session);
}

void mgr_write_back(struct mgr_op *op, u64 ino)
{
	write_end(op, ino, mgr_op_session(op), is_out);
}

void mgr_write_over(struct mgr_op *op, u64 ino)
{
	u64 asked = atomic_load(&op->m->recalls.born);

	mgr_leases_unwrite(&op->m->leases, ino, mgr_op_session(op), mgr_mono_ms(), NULL, NULL);
	mgr_recall_answered(op->m, mgr_op_session(op), &ino, 1, 0, asked);
}
