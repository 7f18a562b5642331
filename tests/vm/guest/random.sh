#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (random.t on the host): the random testers of tests/random/.
#
#	random.sh SEED		one seed that is new; the others are always the same
#
# First on ext4, once as two mounts of one directory: what fails there is the tester's fault. There too each tester is
# lied to once, and must find out.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

seed=$1
rnd=$build/tests/random
two=/mnt/second
plan 29

# As check, but what the tester says of itself is shown, and all of it when it failed; what it left is kept.
try()
{
	check "$@"
	if [ $? = 0 ]; then
		grep '^# ' "$tmp/out" | cut -c1-140
		return 0
	fi
	sed 's/^/#   /' "$tmp/out"
	for f in "$M"/dataops-* /mnt/ext4/dataops-*; do
		[ ! -f "$f" ] || cp "$f" "${PVFS_OUT:-/tmp}/"
	done
}

# Status 1, and the report.
finds()
{
	local rc=0

	"$@" >"$tmp/lied" 2>&1 || rc=$?
	cat "$tmp/lied"
	[ "$rc" = 1 ]
	grep -q '^FAILED: ' "$tmp/lied"
}

ext4_up()
{
	truncate -s 600M "$tmp/ext4"
	mkfs.ext4 -q -F "$tmp/ext4"
	mkdir -p /mnt/ext4 /mnt/ext4b
	mount -o loop "$tmp/ext4" /mnt/ext4
	mount --bind /mnt/ext4 /mnt/ext4b
}

diag "seed $seed"
check "ext4 on a loop device, bound twice" ext4_up
e=/mnt/ext4
f=/mnt/ext4b
try "ext4: dataops" "$rnd/dataops" -s 11 -n 4000 $e
try "ext4: dataops, two mounts" "$rnd/dataops" -s "$seed" -n 4000 $e $f
try "ext4: nameops" "$rnd/nameops" -s 12 -n 4000 $e
try "ext4: nameops, two mounts" "$rnd/nameops" -s "$seed" -n 4000 $e $f
try "ext4: coherence, two mounts" "$rnd/coherence" -s "$seed" -r 20 $e $f
check "dataops finds a byte that was changed" finds "$rnd/dataops" -s 13 -n 600 -k 20 -x 500 $e $f
check "nameops finds a name that was made" finds "$rnd/nameops" -s 13 -n 600 -k 20 -x 500 $e $f
for what in block size name append prefix; do
	check "coherence finds a false $what" finds "$rnd/coherence" -s 13 -r 2 -x $what $e $f
	rm -rf $e/coherence-13
done
check "ext4 unmounted" eval "umount $f && umount $e"

up
check "a second mount" "$cluster" mount $two
for s in 1 2 "$seed"; do
	try "dataops, one client, seed $s" "$rnd/dataops" -s "$s" -n 1500 "$M"
	try "dataops, two clients, seed $s" "$rnd/dataops" -s "$s" -n 1500 "$M" $two
	try "nameops, one client, seed $s" "$rnd/nameops" -s "$s" -n 1500 "$M"
	try "nameops, two clients, seed $s" "$rnd/nameops" -s "$s" -n 1500 "$M" $two
done
try "coherence, one client" "$rnd/coherence" -s "$seed" -r 6 -n 40 "$M"
try "coherence, two clients" "$rnd/coherence" -s "$seed" -r 12 -n 40 "$M" $two
finish
