// SPDX-License-Identifier: GPL-2.0
/*
 * leasestat.c - /proc/fs/pvfs/<volume>/leases: how many inodes have a lease now, how many are drafts,
 * and how long others wait for these.
 *
 * A lease mostly ends by itself: nobody notes when. So what is counted is how many end in each of 64
 * spans of time (at most 1/16 of a lease long), and who reads the file adds up those that are yet to
 * come: that walks over no inodes. An inode knows where it is counted, and is taken from there when
 * its lease is made longer or given up; spans that are over are forgotten with what was in them. So
 * are all when the session or the manager is another.
 */
#include <linux/seq_file.h>
#include "vfs.h"
#include "trace.h"

/* Of pvfs_flush_times.below, but for the last, which is longer. */
static const u32 below_us[PVFS_FLUSH_TIMES - 1] = { 1000, 10000, 100000, 1000000 };

static enum pvfs_leased leased_kind(const struct inode *inode)
{
	return S_ISREG(inode->i_mode) ? PVFS_LEASED_FILE :
	       S_ISDIR(inode->i_mode) ? PVFS_LEASED_DIR : PVFS_LEASED_OTHER;
}

/* ---------------------------------------------------------------- leases; pvfs_leases.lock is held */

/* Spans that are over by @now are empty. */
static void counts_advance(struct pvfs_lease_counts *c, u64 now)
{
	unsigned int kind;

	now >>= c->shift;
	for (; c->first < now; c->first++) {
		if (now - c->first >= PVFS_LEASE_SPANS) {
			memset(c->n, 0, sizeof(c->n));
			c->first = now;
			break;
		}
		for (kind = 0; kind < PVFS_LEASED_KINDS; kind++)
			c->n[kind][c->first % PVFS_LEASE_SPANS] = 0;
	}
}

/* The first of another session, or manager. */
static void counts_begin(struct pvfs_lease_counts *c, u64 gen, u64 now, u32 lease_ms)
{
	memset(c, 0, sizeof(*c));
	c->gen = gen;
	for (c->shift = 20; ((u64)lease_ms * NSEC_PER_MSEC) >> c->shift >= PVFS_LEASE_SPANS / 2; c->shift++)
		;
	c->first = now >> c->shift;
}

static void counts_take_out(struct pvfs_lease_counts *c, struct pvfs_inode *pi)
{
	u64 span = pi->lease.span;

	if (span && pi->lease.span_gen == c->gen && span >= c->first)
		c->n[leased_kind(&pi->vfs_inode)][span % PVFS_LEASE_SPANS]--;
	pi->lease.span = 0;
}

/* ---------------------------------------------------------------- leases */

/**
 * pvfs_leasestat_take - an inode has a lease, or has it for longer
 * @inode: the inode; pvfs_inode.lock is held, and the lease is in it
 * @now: boot time, ns
 */
void pvfs_leasestat_take(struct inode *inode, u64 now)
{
	struct pvfs_volume *vol = PVFS_VOL(inode);
	struct pvfs_lease_counts *c = &vol->leases.counts;
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 gen = pi->lease.gen;

	spin_lock(&vol->leases.lock);
	counts_take_out(c, pi);
	if (!c->shift || gen > c->gen)
		counts_begin(c, gen, now, READ_ONCE(vol->lease_ms));
	counts_advance(c, now);
	if (gen == c->gen) {
		/* The lease time may have become longer since: then it is taken for over too early. */
		pi->lease.span = clamp(pi->lease.end >> c->shift, c->first, c->first + PVFS_LEASE_SPANS - 1);
		pi->lease.span_gen = gen;
		c->n[leased_kind(inode)][pi->lease.span % PVFS_LEASE_SPANS]++;
	}
	spin_unlock(&vol->leases.lock);
}

/**
 * pvfs_leasestat_drop - an inode has no lease any more, or goes
 * @pi: of the inode; pvfs_inode.lock is held
 */
void pvfs_leasestat_drop(struct pvfs_inode *pi)
{
	struct pvfs_leases *l = &PVFS_VOL(&pi->vfs_inode)->leases;

	if (!pi->lease.span)
		return;
	spin_lock(&l->lock);
	counts_take_out(&l->counts, pi);
	spin_unlock(&l->lock);
}

/* ---------------------------------------------------------------- drafts */

/**
 * pvfs_leasestat_draft - a draft is there; or there is one less
 * @vol: the volume
 * @delta: 1 or -1
 */
void pvfs_leasestat_draft(struct pvfs_volume *vol, int delta)
{
	atomic_add(delta, &vol->leases.drafts);
}

/**
 * pvfs_leasestat_late - a RECALL of a draft was answered: not yet
 * @inode: the draft
 *
 * Context: where replies are received.
 */
void pvfs_leasestat_late(struct inode *inode)
{
	struct pvfs_inode *pi = PVFS_I(inode);

	pvfs_count(PVFS_VOL(inode), PVFS_CNT_LATE, 1);
	/* Of several RECALLs the first. */
	spin_lock(&pi->lock);
	if (!pi->draft.recalled)
		pi->draft.recalled = ktime_get_ns();
	spin_unlock(&pi->lock);
}

/* @since: ktime, ns; 0: nobody has asked for it. Return: microseconds since then. */
static u64 times_add(struct pvfs_leases *l, struct pvfs_flush_times *t, u64 since)
{
	u64 us = div_u64(ktime_get_ns() - since, NSEC_PER_USEC);
	unsigned int i;

	if (!since)
		return 0;
	for (i = 0; i < PVFS_FLUSH_TIMES - 1 && us >= below_us[i]; i++)
		;
	spin_lock(&l->lock);
	t->n++;
	t->us += us;
	t->us_max = max(t->us_max, us);
	t->below[i]++;
	spin_unlock(&l->lock);
	return us;
}

/**
 * pvfs_leasestat_told - a draft is over: the manager, or the iods, have what was kept back
 * @inode: what was a draft; its mutex is held
 * @bytes: that were written to it
 */
void pvfs_leasestat_told(struct inode *inode, u32 bytes)
{
	struct pvfs_leases *l = &PVFS_VOL(inode)->leases;
	struct pvfs_inode *pi = PVFS_I(inode);
	u64 at, us;

	pvfs_leasestat_draft(PVFS_VOL(inode), -1);
	spin_lock(&pi->lock);
	at = pi->draft.recalled;
	spin_unlock(&pi->lock);
	us = times_add(l, &l->told, at);
	if (at)
		trace_pvfs_draft_told(inode->i_sb->s_dev, pi->fid.ino, bytes, us);
}

/**
 * pvfs_leasestat_given - a WRITE lease was given up, and the manager was told
 * @inode: the file
 * @since: ktime when it was asked for first, ns; 0: it was not
 * @failed: something could not be written
 */
void pvfs_leasestat_given(struct inode *inode, u64 since, bool failed)
{
	struct pvfs_leases *l = &PVFS_VOL(inode)->leases;

	trace_pvfs_wlease_given(inode->i_sb->s_dev, PVFS_I(inode)->fid.ino, times_add(l, &l->given, since),
				failed);
}

/* ---------------------------------------------------------------- for people */

/**
 * pvfs_leasestat_reset - times begin anew, with the counters
 * @vol: the volume
 */
void pvfs_leasestat_reset(struct pvfs_volume *vol)
{
	spin_lock(&vol->leases.lock);
	memset(&vol->leases.told, 0, sizeof(vol->leases.told));
	memset(&vol->leases.given, 0, sizeof(vol->leases.given));
	spin_unlock(&vol->leases.lock);
}

static void show_times(struct seq_file *m, const char *what, const char *did, const struct pvfs_flush_times *t)
{
	unsigned int i;

	seq_printf(m, "%s %llu\n%s_us_mean %llu\n%s_us_max %llu\n", what, t->n, did,
		   t->n ? div64_u64(t->us, t->n) : 0, did, t->us_max);
	for (i = 0; i < PVFS_FLUSH_TIMES - 1; i++)
		seq_printf(m, "%s_below_%u_us %llu\n", did, below_us[i], t->below[i]);
	seq_printf(m, "%s_later %llu\n", did, t->below[i]);
}

/**
 * pvfs_leasestat_show - the file's lines
 * @m: where to
 * @vol: the volume
 */
void pvfs_leasestat_show(struct seq_file *m, struct pvfs_volume *vol)
{
	static const char * const kinds[PVFS_LEASED_KINDS] = { "files", "directories", "others" };
	struct pvfs_leases *l = &vol->leases;
	u64 now = pvfs_boot_ns(), sum[PVFS_LEASED_KINDS] = { };
	struct pvfs_lease_counts *c = &l->counts;
	struct pvfs_flush_times told, given;
	unsigned int i, kind;

	spin_lock(&l->lock);
	/* While a change may be made at any time no lease is believed. */
	if (c->shift && c->gen == atomic64_read(&l->gen) && !atomic_read(&l->unsure)) {
		counts_advance(c, now);
		for (kind = 0; kind < PVFS_LEASED_KINDS; kind++)
			for (i = 0; i < PVFS_LEASE_SPANS; i++)
				sum[kind] += c->n[kind][i];
	}
	told = l->told;
	given = l->given;
	spin_unlock(&l->lock);
	for (kind = 0; kind < PVFS_LEASED_KINDS; kind++)
		seq_printf(m, "%s %llu\n", kinds[kind], sum[kind]);
	seq_printf(m, "drafts %d\nwrites %d\n", atomic_read(&l->drafts), atomic_read(&l->writes));
	seq_printf(m, "taken %llu\nrecalled %llu\nrecalled_late %llu\nsettles %llu\n",
		   pvfs_counted(vol, PVFS_CNT_LEASES), pvfs_counted(vol, PVFS_CNT_RECALLED),
		   pvfs_counted(vol, PVFS_CNT_LATE), pvfs_counted(vol, PVFS_CNT_SETTLES));
	show_times(m, "drafts_told", "told", &told);
	show_times(m, "writes_given", "given", &given);
}
