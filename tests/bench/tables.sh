#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: the tables of the POSIX paper. How often each operation is
# asked for by an untar of kernel headers, and how long it is waited for; and
# ls -aR of them with many entries a message, and with one. Its lines:
#
#	HOW OPERATION COUNT US		HOW: leases, or no-leases; mean us from submission to answer
#	HOW ls-aR SECONDS READDIRS
#
#	tables.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-3}
copy tar ls cat rm
stats=/proc/fs/pvfs/vol-2/stats

untar()
{
	echo reset >$stats
	put "$1" untar seconds tar -C /mnt/second -xf $work/tree.tar
	sleep 0.1	# the last CLOSE goes behind
	awk -v how="$1" '!/^#/ && NF >= 9 && $2 && $1 != "SESSION_RENEW" { print how, $1, $2, $6 + $8 }' $stats | tee -a "$raw"
}

list()
{
	local s

	cold
	echo reset >$stats
	s=$(seconds ls -aR /mnt/second/include) || die "ls failed"
	echo "$1 ls-aR $s $(awk '$1 == "READDIR" { print $2 }' $stats)" | tee -a "$raw"
}

# with OPTIONS COMMAND...: on another mount.
with()
{
	"$cluster" mount -o "$1" /mnt/second || die "no mount with $1"
	"${@:2}"
	"$cluster" umount /mnt/second || die "no umount"
}

pvfs_up
make_tar
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	with lease=on untar leases
	with lease=on list leases-many
	with lease=on,readdir=one list leases-one
	rm -rf /mnt/pvfs/include /mnt/pvfs/arch
	with lease=off untar no-leases
	with lease=off list no-leases-many
	with lease=off,readdir=one list no-leases-one
	rm -rf /mnt/pvfs/include /mnt/pvfs/arch
done
