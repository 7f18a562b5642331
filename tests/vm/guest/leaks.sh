#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a suite is run by on a debug kernel: leaks.sh COMMAND... When the command
# has ended, the cluster is taken down and the module unloaded, so that nothing can
# refer to its memory; then kmemleak is asked. What it finds is in the output and,
# as it says so itself, in the kernel's log, which fails the run. The status is
# the command's.
k=/sys/kernel/debug/kmemleak

"$@"
rc=$?
# Names for the addresses of a report: they go with the module.
grep '\[pvfs\]$' /proc/kallsyms >"$PVFS_OUT/kallsyms"
"${0%/*}/../cluster" down >/tmp/down 2>&1 || sed 's/^/# /' /tmp/down
# A scan passes over what is younger than 5 s, and over what changed since the last one.
sleep 6
{ echo scan >$k && echo scan >$k && cat $k >/tmp/leaks; } ||
	echo '<3>BUG: kmemleak cannot scan' >/dev/kmsg
[ ! -s /tmp/leaks ] || head -n 200 /tmp/leaks | sed 's/^/# /'
grep -q '^ *debug_locks: *1' /proc/lockdep_stats ||
	echo '<3>BUG: lockdep has been turned off' >/dev/kmsg
exit $rc
