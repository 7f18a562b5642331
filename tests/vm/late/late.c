// SPDX-License-Identifier: GPL-2.0
/*
 * late.c - for tests of races: holds whoever calls a function until something else has happened, so
 * that an interleaving is forced and not hoped for. Loaded in test guests only; knows nothing of PVFS.
 *
 *	insmod late.ko hold=FUNC [ret=[!]N] [until=FUNC [room=1]] [times=N] [ms=N]
 *
 * The first @times calls of @hold are held when they begin; with ret=N, the first @times that return
 * N (ret=!N: all but N), when they return. Each is let go when a call of @until has ended since it
 * began; or when 1 is written to the parameter go; else after @ms. What came of it is to be read in
 * the parameters:
 *
 *	seen	how many came by that could have been held
 *	held	how many were held
 *	holds	how many are now
 *	freed	how many were let go by what they waited for
 *	missed	how many were not, in @ms: what was to be forced did not happen
 *
 * Both functions take at most six arguments, all integers or pointers: a probe at their beginning
 * sends who calls them through a function of ours, so that it can sleep, which a probe cannot. @until
 * may be called from anywhere; @hold is called where it may sleep.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/wait.h>
#include <net/sock.h>

static char *hold;
module_param(hold, charp, 0444);
MODULE_PARM_DESC(hold, "function whose callers are held");

static char *ret = "";
module_param(ret, charp, 0444);
MODULE_PARM_DESC(ret, "hold those that return this (an int), not those that begin");

static char *until = "";
module_param(until, charp, 0444);
MODULE_PARM_DESC(until, "function whose end lets them go");

static bool room;
module_param(room, bool, 0444);
MODULE_PARM_DESC(room, "only calls of @until whose first argument is a socket that has room to send");

static int times = 1;
module_param(times, int, 0444);
MODULE_PARM_DESC(times, "how many are held");

static unsigned int ms = 60000;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "how long at most, milliseconds");

static DECLARE_WAIT_QUEUE_HEAD(late_wait);
static atomic_t late_events = ATOMIC_INIT(0);
static atomic_t late_left = ATOMIC_INIT(0);
static atomic_t late_inside = ATOMIC_INIT(0);	/* in one of our functions */
static atomic_t late_seen = ATOMIC_INIT(0);
static atomic_t late_held = ATOMIC_INIT(0);
static atomic_t late_holds = ATOMIC_INIT(0);
static atomic_t late_freed = ATOMIC_INIT(0);
static atomic_t late_missed = ATOMIC_INIT(0);
static int late_ret;
static bool late_not;

static int late_count_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", atomic_read((atomic_t *)kp->arg));
}

static const struct kernel_param_ops late_count_ops = { .get = late_count_get };
module_param_cb(seen, &late_count_ops, &late_seen, 0444);
MODULE_PARM_DESC(seen, "how many came by, held or not");
module_param_cb(held, &late_count_ops, &late_held, 0444);
MODULE_PARM_DESC(held, "how many were held");
module_param_cb(holds, &late_count_ops, &late_holds, 0444);
MODULE_PARM_DESC(holds, "how many are held now");
module_param_cb(freed, &late_count_ops, &late_freed, 0444);
MODULE_PARM_DESC(freed, "how many were let go by what they waited for");
module_param_cb(missed, &late_count_ops, &late_missed, 0444);
MODULE_PARM_DESC(missed, "how many were let go by the clock");

static void late_event(void)
{
	atomic_inc(&late_events);
	wake_up_all(&late_wait);
}

static int late_go_set(const char *val, const struct kernel_param *kp)
{
	late_event();
	return 0;
}

static const struct kernel_param_ops late_go_ops = { .set = late_go_set };
module_param_cb(go, &late_go_ops, NULL, 0200);
MODULE_PARM_DESC(go, "lets go who is held");

/* @since: the events before the call began: what comes while it returns is not to be waited for. */
static void late_hold(int since)
{
	atomic_inc(&late_seen);
	if (atomic_dec_if_positive(&late_left) < 0)
		return;
	atomic_inc(&late_holds);
	atomic_inc(&late_held);
	if (wait_event_timeout(late_wait, atomic_read(&late_events) != since, msecs_to_jiffies(ms)))
		atomic_inc(&late_freed);
	else
		atomic_inc(&late_missed);
	atomic_dec(&late_holds);
}

/* ---------------------------------------------------------------- between the caller and the function */

typedef long late_fn(long a, long b, long c, long d, long e, long f);

static struct kprobe late_hold_probe, late_until_probe;

/* As the probe is at its beginning, it finds us as the caller, and lets us pass. */
static late_fn *late_function(const struct kprobe *kp)
{
	return (late_fn *)kp->addr;
}

static long late_held_call(long a, long b, long c, long d, long e, long f)
{
	int since = atomic_read(&late_events);
	long r;

	atomic_inc(&late_inside);
	if (!*ret)
		late_hold(since);
	r = late_function(&late_hold_probe)(a, b, c, d, e, f);
	if (*ret && ((int)r == late_ret) != late_not)
		late_hold(since);
	atomic_dec(&late_inside);
	return r;
}

static long late_until_call(long a, long b, long c, long d, long e, long f)
{
	long r;

	atomic_inc(&late_inside);
	r = late_function(&late_until_probe)(a, b, c, d, e, f);
	if (!room || sk_stream_is_writeable((struct sock *)a))
		late_event();
	atomic_dec(&late_inside);
	return r;
}

static int late_pre(struct kprobe *kp, struct pt_regs *regs)
{
	if (within_module(*(unsigned long *)regs->sp, THIS_MODULE))
		return 0;
	regs->ip = (unsigned long)(kp == &late_hold_probe ? late_held_call : late_until_call);
	return 1;
}
NOKPROBE_SYMBOL(late_pre);

/* With it the probe stays one that may send the caller elsewhere. */
static void late_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

static int late_probe(struct kprobe *kp, const char *name)
{
	kp->symbol_name = name;
	kp->pre_handler = late_pre;
	kp->post_handler = late_post;
	return register_kprobe(kp);
}

static int __init late_init(void)
{
	int err;

	if (!hold || times < 1)
		return -EINVAL;
	if (*ret) {
		late_not = *ret == '!';
		err = kstrtoint(ret + late_not, 0, &late_ret);
		if (err)
			return err;
	}
	atomic_set(&late_left, times);
	if (*until) {
		err = late_probe(&late_until_probe, until);
		if (err)
			return err;
	}
	err = late_probe(&late_hold_probe, hold);
	if (err && *until)
		unregister_kprobe(&late_until_probe);
	return err;
}

static void __exit late_exit(void)
{
	unregister_kprobe(&late_hold_probe);
	if (*until)
		unregister_kprobe(&late_until_probe);
	/* Who is still in our functions leaves them; for the last instructions of these there is RCU. */
	atomic_set(&late_left, 0);
	while (atomic_read(&late_inside)) {
		late_event();
		msleep(20);
	}
	synchronize_rcu_tasks();
}

module_init(late_init);
module_exit(late_exit);
MODULE_DESCRIPTION("holds callers of a function, for tests");
MODULE_LICENSE("GPL");
