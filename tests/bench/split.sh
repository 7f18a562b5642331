#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: where the time of small files goes. Each measure is made of
# operations on one file after the other; the module counts how long it waits for
# each kind of message, the manager how long it works on it. Its lines:
#
#	split MEASURE FILES US			us a file
#	split MEASURE OPERATION COUNT WAIT MGR	us of each message, at the client and in the manager
#
#	split.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-3}
stats=/proc/fs/pvfs/vol/stats
n=1000

# OPERATION COUNT US of all the manager has done.
mgr_ops()
{
	"$build/pvfs" -m "$("$cluster" device)" -k /run/pvfs-cluster/volume/cluster.key status --json | perl -MJSON::PP -e '
		my ($m) = grep { ($_->{stats} // {})->{role} // "" eq "mgr" } @{decode_json(join "", <>)->{servers}};
		my $o = $m->{stats}{ops};
		print "$_ $o->{$_}{count} ", $o->{$_}{count} * $o->{$_}{mean_us}, "\n" for sort keys %$o'
}

# measure NAME COMMAND...: the command prints files a second.
measure()
{
	local what=$1 rate

	shift
	mgr_ops >$work/before
	echo reset >$stats
	rate=$("$@") || die "$what failed"
	awk '!/^#/ && NF >= 9 && $2 && $1 != "SESSION_RENEW" { print $1, $2, $6 + $8 }' $stats >$work/client
	mgr_ops >$work/after
	{
		awk -v w="$what" -v n="$n" '{ printf "split %s FILES %.0f\n", w, 1e6 / $1 }' <<<"${rate%% *}"
		# What the manager did for others beside is not in these operations.
		awk -v w="$what" '
			FILENAME ~ /before$/ { c[$1] = $2; t[$1] = $3; next }
			FILENAME ~ /after$/ { d = $2 - c[$1]; if (d > 0) m[$1] = ($3 - t[$1]) / d; next }
			{ printf "split %s %s %d %.0f %.0f\n", w, $1, $2, $3, m[$1] }' $work/before $work/after $work/client
	} | tee -a "$raw"
}

pvfs_up
cd /mnt/pvfs || exit 1
mkdir files
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	measure create $b create files $n
	cold
	measure stat-cold $b stat files $n
	measure unlink-known $b unlink files $n
	measure put-10k $b put files $n
	cold
	measure get-10k $b get files $n
	measure get-10k-warm $b get files $n
	measure unlink-10k $b unlink files $n
done
