// SPDX-License-Identifier: GPL-2.0
/*
 * kpvfsd.c - the pool of kernel threads, bound one to a CPU, that receive for the channels and send
 * what their submitters could not.
 *
 * Channel n of every server is served by thread n, and a request goes to the channel of its CPU, so
 * the thread that completes it wakes a task of its own CPU: a wake-up across CPUs costs about as
 * much as the whole exchange.
 *
 * kick() is called by the socket's callbacks in softirq and by anyone else. A channel is on its
 * thread's list while KICKED is set; the thread clears it before it serves, so a kick during
 * service makes it come again.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "conn.h"

struct pvfs_kthread {
	struct task_struct *task;
	struct llist_head ready;
	wait_queue_head_t wait;		/* the thread sleeps here */
	wait_queue_head_t idle;		/* pvfs_kpvfsd_flush() sleeps here */
};

#define KPVFSD_MAX PVFS_CHANNELS_MAX

static struct pvfs_kthread *threads;
static unsigned int nthreads;

unsigned int pvfs_kpvfsd_count(void)
{
	return nthreads;
}

struct pvfs_kthread *pvfs_kpvfsd_thread(u32 channel)
{
	return &threads[channel % nthreads];
}

void pvfs_kpvfsd_kick(struct pvfs_conn *c)
{
	if (test_and_set_bit(PVFS_CONN_KICKED, &c->flags))
		return;
	if (llist_add(&c->ready, &c->thread->ready))
		wake_up(&c->thread->wait);
}

void pvfs_kpvfsd_flush(struct pvfs_conn *c)
{
	wait_event(c->thread->idle,
		   !(READ_ONCE(c->flags) & (BIT(PVFS_CONN_KICKED) | BIT(PVFS_CONN_SERVING))));
	/*
	 * The thread may still be between clearing SERVING and its wake_up(): that touches only the
	 * thread.
	 */
}

static int kpvfsd(void *arg)
{
	struct pvfs_kthread *t = arg;
	/* What we allocate may be needed to write back pages: don't recurse into file systems. */
	unsigned int nofs = memalloc_nofs_save();
	struct pvfs_conn *c, *next;
	struct llist_node *list;

	while (!kthread_should_stop()) {
		wait_event_idle(t->wait, !llist_empty(&t->ready) || kthread_should_stop());
		list = llist_reverse_order(llist_del_all(&t->ready));
		llist_for_each_entry_safe(c, next, list, ready) {
			set_bit(PVFS_CONN_SERVING, &c->flags);
			clear_bit(PVFS_CONN_KICKED, &c->flags);
			smp_mb__after_atomic();		/* a kick from now on makes us come again */
			pvfs_conn_service(c);
			/* whoever sees it cleared sees what we did */
			smp_mb__before_atomic();
			clear_bit(PVFS_CONN_SERVING, &c->flags);
			wake_up_all(&t->idle);
			cond_resched();
		}
	}
	memalloc_nofs_restore(nofs);
	return 0;
}

int pvfs_kpvfsd_init(void)
{
	struct pvfs_kthread *t;
	unsigned int cpu;
	int err;

	threads = kvcalloc(min_t(unsigned int, num_online_cpus(), KPVFSD_MAX), sizeof(*threads),
			   GFP_KERNEL);
	if (!threads)
		return -ENOMEM;
	for_each_online_cpu(cpu) {
		if (nthreads == min_t(unsigned int, num_online_cpus(), KPVFSD_MAX))
			break;
		t = &threads[nthreads];
		init_llist_head(&t->ready);
		init_waitqueue_head(&t->wait);
		init_waitqueue_head(&t->idle);
		t->task = kthread_create_on_node(kpvfsd, t, cpu_to_node(cpu), "kpvfsd/%u",
						 nthreads);
		if (IS_ERR(t->task)) {
			err = PTR_ERR(t->task);
			goto out_stop;
		}
		/* Not kthread_bind(): when the CPU goes away the scheduler may move us. */
		set_cpus_allowed_ptr(t->task, cpumask_of(cpu));
		wake_up_process(t->task);
		nthreads++;
	}
	return 0;

out_stop:
	pvfs_kpvfsd_exit();
	return err;
}

void pvfs_kpvfsd_exit(void)
{
	while (nthreads)
		kthread_stop(threads[--nthreads].task);
	kvfree(threads);
	threads = NULL;
}
