# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the benchmarks in the guest share (vm.sh on the host starts them). They
# print lines "FS MEASURE VALUE..." to $PVFS_OUT/raw.txt, one for each run, and
# progress to stdout. All is on loopback, stores are in memory.
set -u -o pipefail

top=$(cd "${0%/*}/../.." && pwd -P)
build=${PVFS_BUILD:-$top/build}
cluster=$top/tests/vm/cluster
raw=$PVFS_OUT/raw.txt
mb=256
work=/tmp/bench
mkdir -p $work/lib
# From memory, not over 9p: its pages are dropped with the others.
cp "$build/tests/vm/bench" $work/bench
b=$work/bench
: >"$raw"

die()
{
	echo "bench: $*" >&2
	exit 1
}

# copy PROGRAM...: of the host's.
copy()
{
	local p

	for p; do
		p=$(command -v "$p") || die "no $p here: tools/deps.sh --bench"
		cp "$p" $work/
		ldd "$p" | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\//) print $i }' | xargs -I{} cp -Lu {} $work/lib/
	done
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

raw_limits()
{
	put raw stream $b stream 2
	put raw trip $b trip 4000
}

pvfs_up()
{
	"$cluster" up --iods 4 --mount /mnt/pvfs || die "the cluster does not start"
	grep -E ' /mnt/pvfs ' /proc/mounts
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
