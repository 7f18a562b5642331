#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: PVFS alone, by connections to a server and by stripe unit.
# The defaults are chosen from it.
#
#	sweep.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-2}

# What depends on how data is spread and carried.
large()
{
	local fs=$1

	put "$fs" write-1m $b write big $mb 1048576
	cold
	put "$fs" read-1m $b read big $mb 1048576
	cold
	put "$fs" readers-4 $b readers big $mb 1048576 4
	rm big
	put "$fs" writers-4 $b writers big $mb 1048576 4
	cold
	put "$fs" direct-read-4k $b randread big $mb 2000
	rm big
}

sweep()
{
	local n s r

	for ((r = 1; r <= rounds; r++)); do
		raw_limits
		for n in 1 2 4 8; do
			"$cluster" mount -o nconnect=$n /mnt/sweep || die "no mount"
			mkdir -p /mnt/sweep/w
			cd /mnt/sweep/w || exit 1
			large nconnect-$n
			put nconnect-$n create-4 "$build/tests/vm/manyfiles" create . 1000 4
			"$build/tests/vm/manyfiles" unlink . 1000 4 >/dev/null
			cd /
			"$cluster" umount /mnt/sweep
		done
		mkdir -p /mnt/pvfs/w
		cd /mnt/pvfs/w || exit 1
		for s in 16k 64k 256k 1m 4m; do
			"$build/pvfs" setstripe -S $s /mnt/pvfs/w >/dev/null || die "no stripe unit $s"
			large stripe-$s
		done
		cd /
	done
}

pvfs_up
sweep
