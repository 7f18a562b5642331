#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: the mount from user space (pvfsd) beside the module's
# (pvfs), of one volume: Bonnie++ with 16 KiB a call, as the POSIX paper has it,
# and pbench's test by block size. Its lines:
#
#	FS bonnie-MEASURE PER-SECOND CPU	KiB or seeks; percent of a CPU of the process itself
#	FS bonnie-cpu SECONDS			of the whole guest, for all of it
#	FS test write|read api=posix ...	of pbench: cpu_ms_mib is that of the processes,
#						daemons_ms_mib that of pvfsd, or of the module's threads
#
#	user.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-1}
size=96
copy bonnie++

pvfsd_up()
{
	modprobe fuse
	mkdir -p /mnt/pvfsd
	"$build/pvfsd" -o "key=/run/pvfs-cluster/volume/cluster.key" "$("$cluster" device)" /mnt/pvfsd ||
		die "pvfsd does not start"
	grep -E ' /mnt/pvfsd ' /proc/mounts
}

# Processes that work for the mount at the client: pvfsd, or the module's threads.
helpers()
{
	case $1 in
	pvfsd) pgrep -x pvfsd;;
	*) pgrep kpvfsd;;
	esac | paste -sd,
}

# Hundredths of a second that any CPU worked.
busy()
{
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}

bonnie()
{
	local fs=$1 line c0 c1

	c0=$(busy)
	line=$(program bonnie++ -q -d . -s $size:16k -r 16 -n 0 -f -u root -m bench 2>/dev/null | tail -n 1)
	c1=$(busy)
	[ "$(awk -F, '{ print NF }' <<<"$line")" -ge 21 ] || die "$fs: bonnie++ said: $line"
	awk -F, -v fs="$fs" -v cpu=$((c1 - c0)) '
		function put(what, v, percent) { if (v + 0) print fs, "bonnie-" what, v, percent }
		{ put("write", $12, $13); put("rewrite", $14, $15); put("read", $18, $19); put("seeks", $20, $21)
		  print fs, "bonnie-cpu", cpu / 100 }' <<<"$line" | tee -a "$raw"
}

blocks()
{
	local fs=$1 n b pids

	pids=$(helpers "$fs")
	for n in 1 4; do
		for b in 16 64 256 1024 4096; do
			mpiexec.mpich -iface lo -n $n "$build/tests/bench/pbench" test -a posix -k -r 2 -b ${b}k \
				-i $((16384 / b)) ${pids:+-p "$pids"} "$PWD" </dev/null >$work/pbench || die "$fs: pbench failed"
			sed "s/^/$fs /" $work/pbench | tee -a "$raw"
		done
	done
}

both()
{
	local fs=$1

	mkdir "/mnt/$fs/w" || die "cannot work in /mnt/$fs"
	cd "/mnt/$fs/w" || exit 1
	bonnie "$fs"
	blocks "$fs"
	cd /
	rm -rf "/mnt/$fs/w"
}

pvfs_up
pvfsd_up
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	if ((r % 2)); then
		both pvfs
		both pvfsd
	else
		both pvfsd
		both pvfs
	fi
done
umount /mnt/pvfsd
