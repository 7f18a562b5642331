#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in the guest (tests/debug/selftest.t): each mistake of planted.c once, with its name in the kernel's log before it.
# Lock order comes first: lockdep stops at the first report of any kind.
k=/sys/kernel/debug/kmemleak
for what in lock_order sleep_in_atomic shift refcount leak free_armed use_after_free out_of_bounds; do
	echo "<6>planted: $what" >/dev/kmsg
	insmod "$1" what=$what && rmmod planted || exit 1
done
echo "<6>planted: the scan" >/dev/kmsg
sleep 6
echo scan >$k && echo scan >$k && sed 's/^/# /' $k
