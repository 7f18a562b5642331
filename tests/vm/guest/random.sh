#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (random.t on the host): the random testers of tests/random/.
#
#	random.sh SEED [all]	a seed that is new; with all, also seeds that are always the same
#
# Whether the testers are right is tests/integ/random.t's question.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

seed=$1
rnd=$build/tests/random
two=/mnt/second
all=${2-}
planned=27
[ -z "$all" ] || planned=$((planned + 12))
plan $planned

# As check, but what the tester says of itself is shown, and all of it when it failed; what it left is kept.
try()
{
	local left

	check "$@"
	if [ $checked = 0 ]; then
		grep '^# ' "$tmp/out" | cut -c1-140
		return 0
	fi
	diag "all of it:"
	sed 's/^/#   /' "$tmp/out"
	for left in "$M"/dataops-*; do
		[ ! -f "$left" ] || cp "$left" "${PVFS_OUT:-/tmp}/"
	done
	# The next one may have the same seed.
	for left in "$M"/coherence-*; do
		[ ! -d "$left" ] || mv "$left" "$M/failed-$tap_n"
	done
}

diag "seed $seed"
up
check "a second mount" "$cluster" mount $two
for s in ${all:+1} "$seed"; do
	try "dataops, one client, seed $s" "$rnd/dataops" -s "$s" -n 1200 "$M"
	try "dataops, two clients, seed $s" "$rnd/dataops" -m -s "$s" -n 800 "$M" $two
	try "nameops, one client, seed $s" "$rnd/nameops" -s "$s" -n 1500 "$M"
	try "nameops, two clients, seed $s" "$rnd/nameops" -s "$s" -n 1500 "$M" $two
done
# Files of one iod, where the iods copy over any distance; files of small units, where most calls cross some.
layout()
{
	mkdir "$M/$1"
	setfattr -n pvfs.layout -v "$2" "$M/$1"
}
check "directories with layouts of their own" eval 'layout one "pcount=1 stuff_max=0" &&
	layout units "pcount=4 ssize=4096 stuff_max=0"'
try "dataops, two clients, one iod" "$rnd/dataops" -m -s "$seed" -n 600 "$M/one" $two/one
try "dataops, two clients, small units" "$rnd/dataops" -m -s "$seed" -n 600 "$M/units" $two/units
# Files about as long as what may be stuffed, and small ones that are not.
try "dataops, one client, around the limit" "$rnd/dataops" -s "$seed" -n 1000 -l 24000 "$M"
try "dataops, two clients, around the limit" "$rnd/dataops" -m -s "$seed" -n 1000 -l 24000 "$M" $two
check "a directory of striped files" layout striped stuff_max=0
try "nameops, two clients, striped" "$rnd/nameops" -s "$seed" -n 1000 "$M/striped" $two/striped
try "coherence, two clients, striped" "$rnd/coherence" -s "$seed" -r 12 -n 40 "$M/striped" $two/striped
three=/mnt/third
coherence_three()
{
	"$cluster" mount $three
	"$rnd/coherence" -s "$seed" -m -p files -w 9 -r 4 "$M/striped" $two/striped $three/striped
	"$cluster" umount $three
}
if [ -n "$all" ]; then
	# Seeds that once found something.
	try "nameops, two clients, seed 975398789" "$rnd/nameops" -s 975398789 -n 700 "$M" $two
	try "nameops, two clients, seed 3512914197" "$rnd/nameops" -s 3512914197 -n 250 "$M" $two
	try "nameops, one client, seed 3883827210" "$rnd/nameops" -s 3883827210 -n 1102 "$M"
	try "nameops, one client, seed 286549587" "$rnd/nameops" -s 286549587 -n 300 "$M"
	try "coherence of files, one client, mappings" "$rnd/coherence" -s "$seed" -m -p files -r 20 "$M"
	try "coherence of files, two clients, mappings" "$rnd/coherence" -s "$seed" -m -p files -r 8 "$M/striped" $two/striped
	try "coherence of files, three clients" coherence_three
	try "coherence of appends, two clients, small units" "$rnd/coherence" -s 18 -p appends -r 8 -n 40 "$M/units" $two/units
fi
try "coherence, one client" "$rnd/coherence" -s "$seed" -r 6 -n 40 "$M"
try "coherence, two clients" "$rnd/coherence" -s "$seed" -r 12 -n 40 "$M" $two
try "churn, two clients" "$rnd/churn" -s "$seed" -n 100 "$M" $two
# The same, while daemons are killed and come back: nothing that was answered is lost, nothing is done twice.
churn_killed()
{
	local pid d n=0 s=$seed

	# Again, if it is too quick.
	while [ $n -lt 3 ]; do
		s=$((s + 1))
		"$rnd/churn" -s $s -n 80 "$M" $two &
		pid=$!
		while kill -0 $pid 2>/dev/null; do
			d=mgr
			((RANDOM % 2)) || d=iod$((RANDOM % 4))
			sleep 0.$((RANDOM % 7 + 3))
			"$cluster" kill $d
			"$cluster" start $d
			n=$((n + 1))
		done
		wait $pid
	done
	echo "# $n daemons were killed meanwhile"
}
try "churn, two clients, daemons are killed" churn_killed
# Without leases, all of them or some.
off=/mnt/off
off2=/mnt/off2
check "mounts without leases" eval '"$cluster" mount -o lease=off $off && "$cluster" mount -o lease=off $off2'
try "dataops, two clients without leases" "$rnd/dataops" -s "$seed" -n 600 $off $off2
try "nameops, one client without leases" "$rnd/nameops" -s "$seed" -n 1000 $off
try "nameops, two clients without leases" "$rnd/nameops" -s "$seed" -n 800 $off $off2
try "coherence of files, one client without leases" "$rnd/coherence" -s "$seed" -p files -r 8 -n 60 $off
try "coherence, two clients without leases" "$rnd/coherence" -s "$seed" -r 12 -n 40 $off $off2
try "coherence, one with leases, one without" "$rnd/coherence" -s "$seed" -r 12 -n 40 "$M" $off
"$cluster" umount $off
"$cluster" umount $off2
# One mount that maps ids, and from then on it is the client that checks permissions for all of its volume.
mapped()
{
	local m

	for m in "$M" $two; do
		"$build/tests/vm/idmap" mount "$m" /mnt/mapped 1000 2000
		ls /mnt/mapped
		umount /mnt/mapped
	done
}
mkdir -p /mnt/mapped
check "mounts that map ids" mapped
try "nameops, two clients that check permissions" "$rnd/nameops" -s 1 -n 400 "$M" $two
try "coherence of names, two clients that check permissions" "$rnd/coherence" -s "$seed" -p names -r 30 -n 40 "$M" $two
finish
