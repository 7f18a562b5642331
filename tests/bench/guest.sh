#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (vm.sh on the host): measures PVFS and the kernel's NFSv4.2
# side by side, all on loopback, stores in memory. Prints lines "FS MEASURE
# VALUE..." to $PVFS_OUT/raw.txt, one for each run, and progress to stdout.
#
#	guest.sh ROUNDS [sweep]
#
# "sweep" measures PVFS alone, by connections to a server and by stripe unit: the
# defaults are chosen from it.
set -u -o pipefail

top=$(cd "${0%/*}/../.." && pwd -P)
build=${PVFS_BUILD:-$top/build}
rounds=${1:-3}
raw=$PVFS_OUT/raw.txt
mb=256
work=/tmp/bench
mkdir -p $work
# From memory, not over 9p: its pages are dropped with the others.
cp "$build/tests/vm/bench" $work/bench
b=$work/bench
mkdir -p $work/lib
for p in tar ls rm cat; do
	cp "$(command -v $p)" $work/
	ldd $work/$p | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }' | xargs -I{} cp -Lu {} $work/lib/
done
: >"$raw"

die()
{
	echo "bench: $*" >&2
	exit 1
}

cold()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# put FS MEASURE COMMAND...: the command prints the values.
put()
{
	local fs=$1 what=$2 out

	shift 2
	out=$("$@") || die "$fs: $what failed: $*"
	echo "$fs $what $out" >>"$raw"
	echo "  $fs $what $out"
}

program()
{
	local p=$1

	shift
	$work/lib/ld-linux-x86-64.so.2 --library-path $work/lib "$work/$p" "$@"
}

# How long one of the programs that were copied takes. (What it prints goes through a pipe: tar reads
# no file when it writes to /dev/null.)
seconds()
{
	local t0 t1 p=$1

	shift
	t0=$EPOCHREALTIME
	program "$p" "$@" | program cat >/dev/null || return 1
	t1=$EPOCHREALTIME
	awk -v a="$t0" -v b="$t1" 'BEGIN { printf "%.2f\n", b - a }'
}

nfs_up()
{
	local m

	for m in nfsd nfs nfsv4; do
		modprobe $m || die "no module $m"
	done
	mkdir -p /srv/nfs /mnt/nfs /var/lib/nfs/v4recovery /run/rpcbind
	mount -t tmpfs -o size=60% nfs-store /srv/nfs || die "no tmpfs for NFS"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || die "no nfsd"
	rpcbind -w 2>/dev/null || rpcbind || die "no rpcbind"
	echo '/srv/nfs *(rw,no_root_squash,insecure,fsid=0,no_subtree_check)' >/etc/exports
	exportfs -a && rpc.mountd && rpc.nfsd 8 || die "the NFS server does not start"
	mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /mnt/nfs || die "cannot mount NFS"
	grep -E ' /mnt/nfs ' /proc/mounts
}

# Two and a half thousand real files.
make_tar()
{
	local src

	src=$(echo /usr/src/linux-headers-6.1.0-*-common)
	(cd "$src" && find include/linux include/uapi include/net arch/x86/include -type f | head -n 2500 |
		tar -cf $work/tree.tar -T -)
	tar -tf $work/tree.tar | wc -l
}

large_files()
{
	local fs=$1

	put $fs write-1m $b write big $mb 1048576
	cold
	put $fs read-1m $b read big $mb 1048576
	rm big
	put $fs write-16k $b write big $mb 16384
	cold
	put $fs read-16k $b read big $mb 16384
	cold
	put $fs readers-4 $b readers big $mb 1048576 4
	rm big
	put $fs writers-4 $b writers big $mb 1048576 4
	cold
	put $fs direct-read-4k $b randread big $mb 2000
	put $fs direct-write-4k $b randwrite big $mb 2000
	rm big
}

small_files()
{
	local fs=$1

	mkdir files
	put $fs create $b create files 1000
	cold
	put $fs stat-cold $b stat files 1000
	put $fs stat-warm $b stat files 1000
	cold
	put $fs unlink $b unlink files 1000
	$b create files 1000 >/dev/null
	put $fs unlink-known $b unlink files 1000
	put $fs put-10k $b put files 1000
	cold
	put $fs get-10k $b get files 1000
	put $fs get-10k-warm $b get files 1000
	rm -r files
	mkdir tree
	put $fs untar seconds tar -C tree -xf $work/tree.tar
	cold
	put $fs ls-aR seconds ls -aR tree
	cold
	put $fs ls-lR seconds ls -lR tree
	put $fs ls-lR-warm seconds ls -lR tree
	cold
	put $fs read-all seconds tar -cf - tree
	put $fs rm-rf seconds rm -rf tree
}

# round FS DIR [COMMAND]: what the command does to the directory comes first.
round()
{
	local fs=$1 dir=$2

	mkdir "$dir/w" || die "cannot work in $dir"
	cd "$dir/w" || exit 1
	if [ $# = 2 ]; then
		large_files "$fs"
	else
		shift 2
		"$@" . >/dev/null || die "$* failed"
	fi
	small_files "$fs"
	cd /
	rm -rf "$dir/w"
}

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
			"$top/tests/vm/cluster" mount -o nconnect=$n /mnt/sweep || die "no mount"
			mkdir -p /mnt/sweep/w
			cd /mnt/sweep/w || exit 1
			large nconnect-$n
			put nconnect-$n create-4 "$build/tests/vm/manyfiles" create . 1000 4
			"$build/tests/vm/manyfiles" unlink . 1000 4 >/dev/null
			cd /
			"$top/tests/vm/cluster" umount /mnt/sweep
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

raw_limits()
{
	put raw stream $b stream 2
	put raw trip $b trip 4000
}

"$top/tests/vm/cluster" up --iods 4 --mount /mnt/pvfs || die "the cluster does not start"
grep -E ' /mnt/pvfs ' /proc/mounts
if [ "${2-}" = sweep ]; then
	sweep
	exit
fi
nfs_up
make_tar
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	# In turns, and not always in the same order.
	if ((r % 2)); then
		round pvfs /mnt/pvfs
		round nfs /mnt/nfs
	else
		round nfs /mnt/nfs
		round pvfs /mnt/pvfs
	fi
	round striped /mnt/pvfs "$build/pvfs" setstripe -s 0
done
cat /proc/fs/pvfs/vol/stats >"$PVFS_OUT/pvfs-stats.txt"
