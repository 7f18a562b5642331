// SPDX-License-Identifier: GPL-2.0
/*
 * stats.c - counters per volume, and what /proc/fs/pvfs/<volume>/ shows of them:
 *
 *   stats     one line per operation that was used; writing "reset" starts from zero
 *   servers   one line per server: connections, state, queue
 *   requests  one line per request in flight: what waits for whom, and for how long
 *   leases    what may be believed, and what others wait for: the VFS half writes it
 *
 * Two mounts of one volume are <volume> and <volume>-2.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "conn.h"

static struct proc_dir_entry *proc_root;
static LIST_HEAD(volumes);
static DEFINE_MUTEX(volumes_mutex);	/* protects the list and the names on it */

int pvfs_stats_init(void)
{
	proc_root = proc_mkdir("fs/pvfs", NULL);
	return proc_root ? 0 : -ENOMEM;
}

void pvfs_stats_exit(void)
{
	proc_remove(proc_root);
}

/* ---------------------------------------------------------------- counting */

void pvfs_count(struct pvfs_volume *vol, enum pvfs_counter c, u64 n)
{
	this_cpu_add(vol->stats->counter[c], n);
}

u64 pvfs_counted(struct pvfs_volume *vol, enum pvfs_counter c)
{
	u64 n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += per_cpu_ptr(vol->stats, cpu)->counter[c];
	return n;
}

void pvfs_stats_request(struct pvfs_volume *vol, const struct pvfs_request *req, u64 now)
{
	struct pvfs_op_stats *s;
	u64 queued = 0, flight = 0;

	if (req->t_post) {
		queued = req->t_post - req->t_submit;
		flight = now - req->t_post;
	} else if (req->t_submit) {
		queued = now - req->t_submit;
	}
	s = &get_cpu_ptr(vol->stats)->op[req->op];
	s->count++;
	s->errors += req->err < 0;
	s->bytes_out += PVFS_HDR_LEN + req->body_len + (req->write ? req->bv_len : 0);
	s->bytes_in += PVFS_HDR_LEN + req->rep_len + req->in_len;
	s->queued += queued;
	s->queued_max = max(s->queued_max, queued);
	s->flight += flight;
	s->flight_max = max(s->flight_max, flight);
	put_cpu_ptr(vol->stats);
}

/* ---------------------------------------------------------------- showing */

static void stats_sum_op(struct pvfs_volume *vol, unsigned int op, struct pvfs_op_stats *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct pvfs_op_stats *s = &per_cpu_ptr(vol->stats, cpu)->op[op];

		sum->count += s->count;
		sum->errors += s->errors;
		sum->bytes_out += s->bytes_out;
		sum->bytes_in += s->bytes_in;
		sum->queued += s->queued;
		sum->queued_max = max(sum->queued_max, s->queued_max);
		sum->flight += s->flight;
		sum->flight_max = max(sum->flight_max, s->flight_max);
	}
}

static int stats_show(struct seq_file *m, void *v)
{
	static const char * const names[PVFS_CNT_MAX] = {
		[PVFS_CNT_COPIED] = "copied_bytes",
		[PVFS_CNT_WAKEUPS] = "wakeups",
		[PVFS_CNT_DIRECT_SENDS] = "sent_by_caller",
		[PVFS_CNT_THREAD_SENDS] = "sent_by_kpvfsd",
		[PVFS_CNT_RECONNECTS] = "reconnects",
		[PVFS_CNT_RESENDS] = "resends",
		[PVFS_CNT_ABANDONED] = "abandoned",
		[PVFS_CNT_LEASES] = "leases",
		[PVFS_CNT_RECALLED] = "recalled",
		[PVFS_CNT_LATE] = "recalled_late",
		[PVFS_CNT_SETTLES] = "settles",
		[PVFS_CNT_TURNS] = "turns",
		[PVFS_CNT_YIELDS] = "yields",
		[PVFS_CNT_JOINED] = "joined",
		[PVFS_CNT_WLEASES] = "write_leases",
		[PVFS_CNT_BEHIND] = "written_behind",
		[PVFS_CNT_AHEAD] = "ahead_by_steps",
		[PVFS_CNT_RESENT] = "resent_bytes",
	};
	struct pvfs_volume *vol = m->private;
	struct pvfs_op_stats s;
	unsigned int i;

	seq_puts(m,
		 "# operation count errors bytes_out bytes_in queued_us_mean queued_us_max flight_us_mean flight_us_max\n");
	for (i = 0; i < PVFS_OP_LIMIT; i++) {
		if (!pvfs_op_info(i))
			continue;
		stats_sum_op(vol, i, &s);
		if (!s.count)
			continue;
		seq_printf(m, "%s %llu %llu %llu %llu %llu %llu %llu %llu\n", pvfs_op_name(i),
			   s.count, s.errors, s.bytes_out, s.bytes_in,
			   div64_u64(s.queued, s.count * 1000), div_u64(s.queued_max, 1000),
			   div64_u64(s.flight, s.count * 1000), div_u64(s.flight_max, 1000));
	}
	for (i = 0; i < PVFS_CNT_MAX; i++)
		seq_printf(m, "%s %llu\n", names[i], pvfs_counted(vol, i));
	return 0;
}

static int stats_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, stats_show, pde_data(inode), 8192);
}

static ssize_t stats_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct pvfs_volume *vol = pde_data(file_inode(file));
	char word[8] = "";
	int cpu;

	if (!n || n >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, buf, n))
		return -EFAULT;
	if (strcmp(strim(word), "reset"))
		return -EINVAL;
	/* Counts of requests that end right now may survive: good enough for who measures. */
	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(vol->stats, cpu), 0, sizeof(struct pvfs_stats));
	vol->ops->reset_leases(vol);
	return n;
}

static const struct proc_ops stats_proc_ops = {
	.proc_open = stats_open,
	.proc_read = seq_read,
	.proc_write = stats_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static void stats_show_server(struct seq_file *m, struct pvfs_server *s)
{
	u32 i, up = 0, posted = 0, queued = 0;
	struct pvfs_request *req;
	u64 connects = 0;
	const char *state;

	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		spin_lock_bh(&c->lock);
		up += c->state == PVFS_CONN_UP;
		posted += c->nposted;
		list_for_each_entry(req, &c->queue, link)
			queued++;
		connects += c->connects;
		spin_unlock_bh(&c->lock);
	}
	spin_lock(&s->lock);
	if (up)
		state = "up";
	else if (!s->down_since)
		state = "idle";
	else
		state = s->last_err == -EACCES || s->last_err == -EPROTO ? "refused" : "down";
	seq_printf(m,
		   "%s %u %pISpc state %s connections %u/%u in_flight %u queued %u connects %llu error %d\n",
		   s->role == PVFS_ROLE_MGR ? "mgr" : "iod", s->index, &s->addr, state, up,
		   s->nchan, posted, queued, connects, s->last_err);
	spin_unlock(&s->lock);
}

static int stats_servers_show(struct seq_file *m, void *v)
{
	struct pvfs_volume *vol = m->private;
	u32 i;

	stats_show_server(m, vol->mgr);
	for (i = 0; i < vol->niods; i++)
		stats_show_server(m, vol->iods[i]);
	return 0;
}

static void stats_show_requests(struct seq_file *m, struct pvfs_server *s, u64 now)
{
	struct pvfs_request *req;
	u32 i;

	for (i = 0; i < s->nchan; i++) {
		struct pvfs_conn *c = &s->chan[i];

		spin_lock_bh(&c->lock);
		list_for_each_entry(req, &c->posted, link)
			seq_printf(m, "%s %u %s posted %llu ms%s%s\n",
				   s->role == PVFS_ROLE_MGR ? "mgr" : "iod", s->index,
				   pvfs_op_name(req->op),
				   div_u64(now - req->t_submit, NSEC_PER_MSEC),
				   req->resend ? " sent again" : "",
				   req->detached ? " given up" : "");
		list_for_each_entry(req, &c->queue, link)
			seq_printf(m, "%s %u %s queued %llu ms\n",
				   s->role == PVFS_ROLE_MGR ? "mgr" : "iod", s->index,
				   pvfs_op_name(req->op),
				   div_u64(now - req->t_submit, NSEC_PER_MSEC));
		spin_unlock_bh(&c->lock);
	}
}

static int stats_requests_show(struct seq_file *m, void *v)
{
	struct pvfs_volume *vol = m->private;
	u64 now = ktime_get_ns();
	u32 i;

	stats_show_requests(m, vol->mgr, now);
	for (i = 0; i < vol->niods; i++)
		stats_show_requests(m, vol->iods[i], now);
	return 0;
}

static int stats_leases_show(struct seq_file *m, void *v)
{
	struct pvfs_volume *vol = m->private;

	vol->ops->show_leases(m, vol);
	return 0;
}

/* ---------------------------------------------------------------- volumes */

static bool stats_name_taken(const char *name)
{
	struct pvfs_volume *vol;

	list_for_each_entry(vol, &volumes, volumes)
		if (!strcmp(vol->proc_name, name))
			return true;
	return false;
}

int pvfs_stats_add_volume(struct pvfs_volume *vol)
{
	unsigned int n = 1;

	mutex_lock(&volumes_mutex);
	strscpy(vol->proc_name, vol->opts.volume, sizeof(vol->proc_name));
	while (stats_name_taken(vol->proc_name))
		snprintf(vol->proc_name, sizeof(vol->proc_name), "%s-%u", vol->opts.volume, ++n);
	vol->proc = proc_mkdir(vol->proc_name, proc_root);
	if (vol->proc &&
	    proc_create_data("stats", 0644, vol->proc, &stats_proc_ops, vol) &&
	    proc_create_single_data("servers", 0444, vol->proc, stats_servers_show, vol) &&
	    proc_create_single_data("requests", 0444, vol->proc, stats_requests_show, vol) &&
	    proc_create_single_data("leases", 0444, vol->proc, stats_leases_show, vol)) {
		list_add_tail(&vol->volumes, &volumes);
		mutex_unlock(&volumes_mutex);
		return 0;
	}
	proc_remove(vol->proc);
	mutex_unlock(&volumes_mutex);
	return -ENOMEM;
}

void pvfs_stats_del_volume(struct pvfs_volume *vol)
{
	mutex_lock(&volumes_mutex);
	proc_remove(vol->proc);
	list_del(&vol->volumes);
	mutex_unlock(&volumes_mutex);
}
