/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lost_signal.h - condition variables that lose signals when a test says so, as glibc's may until 2.41 (its bug 25847).
 * Included by one file of a program.
 */
#ifndef TESTS_UNIT_LOST_SIGNAL_H
#define TESTS_UNIT_LOST_SIGNAL_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int to_lose;	/* the next signals */

int pthread_cond_signal(pthread_cond_t *c)
{
	static int (*_Atomic real)(pthread_cond_t *c);
	int n = to_lose;

	while (n > 0) {
		if (atomic_compare_exchange_weak(&to_lose, &n, n - 1))
			return 0;
	}
	if (!real)
		real = dlsym(RTLD_NEXT, "pthread_cond_signal");
	return real(c);
}

#endif
