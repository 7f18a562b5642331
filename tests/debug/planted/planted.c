// SPDX-License-Identifier: GPL-2.0
/*
 * planted.c - mistakes on purpose: what a debug kernel must report, one for each thing that it
 * looks with. insmod planted.ko what=NAME makes one of them. tests/debug/selftest.t loads it.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "which mistake to make");

/* Only read through this, so that the compiler cannot know what becomes of it. */
static void *volatile planted_kept;
static volatile int planted_many = 40;

static void planted_use_after_free(void)
{
	char *p = kmalloc(100, GFP_KERNEL);

	planted_kept = p;
	kfree(p);
	pr_info("planted: read %d\n", *((volatile char *)planted_kept + 7));
}

static void planted_out_of_bounds(void)
{
	planted_kept = kmalloc(100, GFP_KERNEL);
	((volatile char *)planted_kept)[100] = 1;
	kfree(planted_kept);
}

static DEFINE_MUTEX(planted_a);
static DEFINE_MUTEX(planted_b);

/* Both orders; nobody has to wait for them to be wrong. */
static void planted_lock_order(void)
{
	mutex_lock(&planted_a);
	mutex_lock(&planted_b);
	mutex_unlock(&planted_b);
	mutex_unlock(&planted_a);
	mutex_lock(&planted_b);
	mutex_lock(&planted_a);
	mutex_unlock(&planted_a);
	mutex_unlock(&planted_b);
}

static DEFINE_SPINLOCK(planted_spin);

static void planted_sleep_in_atomic(void)
{
	spin_lock(&planted_spin);
	might_sleep();
	spin_unlock(&planted_spin);
}

/* Younger than 5 s it is not looked at; the script waits for that. */
static void planted_leak(void)
{
	planted_kept = kmalloc(1000, GFP_KERNEL);
	planted_kept = NULL;
}

static void planted_shift(void)
{
	pr_info("planted: %d\n", 1 << planted_many);
}

static void planted_refcount(void)
{
	refcount_t r = REFCOUNT_INIT(0);

	refcount_inc(&r);
}

static void planted_work_fn(struct work_struct *work)
{
}

struct planted_work {
	struct delayed_work work;
};

/* An hour from now it would run. */
static void planted_free_armed(void)
{
	struct planted_work *w = kmalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return;
	INIT_DELAYED_WORK(&w->work, planted_work_fn);
	schedule_delayed_work(&w->work, 3600 * HZ);
	planted_kept = w;
	kfree(w);
}

static const struct {
	const char *name;
	void (*make)(void);
} planted_all[] = {
	{ "lock_order", planted_lock_order },
	{ "sleep_in_atomic", planted_sleep_in_atomic },
	{ "shift", planted_shift },
	{ "refcount", planted_refcount },
	{ "leak", planted_leak },
	{ "free_armed", planted_free_armed },
	{ "use_after_free", planted_use_after_free },
	{ "out_of_bounds", planted_out_of_bounds },
};

static int __init planted_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(planted_all); i++) {
		if (strcmp(what, planted_all[i].name))
			continue;
		planted_all[i].make();
		return 0;
	}
	pr_err("planted: no mistake '%s'\n", what);
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("mistakes on purpose");
MODULE_LICENSE("GPL");
