#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest of a debug kernel (tests/debug/faults.t): faults.sh SEED. Some of the allocations that are made with the
# module anywhere on the stack fail, of memory by kmalloc and the like (failslab) and of pages (fail_page_alloc), while programs
# work on a mount, mount and unmount. Calls may fail then. The kernel must have nothing to say to it, no program may
# hang, and when allocations succeed again everything works, and what was there before is there.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"
F=/sys/kernel/debug
seed=$1
rnd=$build/tests/random
plan 15
RANDOM=$((seed % 32768))

# The module's code is where a fault may come from; all of an allocation's kind may fail, those that can wait too.
aim()
{
	local base size f

	read -r size base < <(awk '$1 == "pvfs" { print $2, $6 }' /proc/modules)
	for f in failslab fail_page_alloc; do
		echo 0 >$F/$f/probability
		echo "$base" >$F/$f/require-start
		printf '0x%x\n' $((base + size)) >$F/$f/require-end
		echo 32 >$F/$f/stacktrace-depth
		echo N >$F/$f/ignore-gfp-wait
		echo 0 >$F/$f/verbose
		echo N >$F/$f/task-filter
		echo 1000000 >$F/$f/times
	done
	echo N >$F/fail_page_alloc/ignore-gfp-highmem
	echo 0 >$F/fail_page_alloc/min-order
}

# probability PERCENT [INTERVAL]: of one in INTERVAL.
probability()
{
	local f

	for f in failslab fail_page_alloc; do
		echo "${2:-1}" >$F/$f/interval
		echo "$1" >$F/$f/probability
	done
}

# How many allocations have failed: the file counts down.
injected()
{
	echo $((1000000 - $(cat $F/$1/times)))
}

# The load's own verdict does not count, only that it ends. Status 124 and 137 are timeout's when the time is up; but
# also those of a program that a failed allocation killed.
load()
{
	local rc=0 t0=$SECONDS max=$((60 * slow))

	timeout -k 5 $max "$@" || rc=$?
	if [ $((SECONDS - t0)) -ge $max ]; then
		echo "did not end: $*"
		return 1
	fi
	[ $rc -lt 124 ] || echo "status $rc after $((SECONDS - t0)) s: $*"
}

# Everything once, with many faults: most rounds end early, so there are many of them.
round()
{
	local i d

	for ((i = 0; i < $1; i++)); do
		d=$M/load-$RANDOM$RANDOM
		mkdir "$d" || continue
		load "$rnd/dataops" -s $((seed + i)) -n 60 "$d" || return
		load "$rnd/nameops" -s $((seed + i)) -n 60 "$d" || return
		load cp -a "$tmp/tree" "$d/tree" || return
		load ls -lR "$d/tree"
		load getfacl -R "$d/tree"
		load flock "$d" true
		echo 2 >/proc/sys/vm/drop_caches
		load cat "$d"/tree/* || return
		load rm -rf "$d"
	done >"$tmp/load" 2>&1
	echo "$i rounds, failed allocations: $(injected failslab) of memory, $(injected fail_page_alloc) of pages"
	return 0
}

# What load says of a hang is in its output.
rounds()
{
	round "$@"
	refuse grep '^did not end' "$tmp/load"
}

conformance()
{
	# A twelfth of the tables.
	load "$build/tests/posix/conform" -p $((seed % 12 + 1))/12 "$M" >"$tmp/load" 2>&1 || true
	grep '^status' "$tmp/load" || true
	refuse grep '^did not end' "$tmp/load"
	echo "$(grep -c '^ok' "$tmp/load") ok, $(grep -c '^not ok' "$tmp/load") not ok"
}

# Mounting goes through all that a volume needs.
mounts()
{
	local i n=0

	for ((i = 0; i < 12; i++)); do
		load mount -t pvfs "$("$cluster" device)" /mnt/other || return
		if mountpoint -q /mnt/other; then
			n=$((n + 1))
			load ls /mnt/other
			load umount /mnt/other || return
			mountpoint -q /mnt/other && load umount /mnt/other
		fi
	done >"$tmp/load" 2>&1
	mountpoint -q /mnt/other && umount /mnt/other
	refuse grep '^did not end' "$tmp/load"
	echo "$n of $i mounts succeeded"
}

# As check, and what it says is shown.
try()
{
	check "$@"
	tail -n 1 "$tmp/out" | cut -c1-140 | sed 's/^/# /'
}

diag "seed $seed"
up
mkdir -p "$tmp/tree" /mnt/other
for i in 1 2 3 4 5 6; do
	head -c $((i * i * 9000)) /dev/urandom >"$tmp/tree/f$i"
done
setfacl -m u:1000:rw "$tmp/tree/f2"
check "a tree from before" cp -a "$tmp/tree" "$M/before"
sync
check "faults are aimed at the module" aim
probability 100
# It fails, or tries again for as long as it may: not even the socket can send.
check "nothing is made while all fail" refuse timeout 5 mkdir "$M/made"
probability 0
check "by failslab" [ "$(injected failslab)" -gt 0 ]
probability 1 2
try "few faults" rounds 6
probability 2
try "faults while mounting and unmounting" mounts
try "more faults" rounds 4
try "faults in the conformance suite" conformance
probability 0
diag "failed allocations: $(injected failslab) of memory, $(injected fail_page_alloc) of pages"
check "allocations of pages failed too" [ "$(injected fail_page_alloc)" -gt 0 ]
# What lacks memory once must not lack it for ever.
check "the mount goes on" eventually 30 ls "$M"
check "what was there before is there" diff -r "$tmp/tree" "$M/before"
drop_caches
check "and is there when read again" diff -r "$tmp/tree" "$M/before"
check "dataops afterwards" "$rnd/dataops" -s "$seed" -n 300 "$M"
check "nameops afterwards" "$rnd/nameops" -s "$seed" -n 300 "$M"
check "another mount afterwards" eval '"$cluster" mount /mnt/again && ls /mnt/again && "$cluster" umount /mnt/again'
finish
