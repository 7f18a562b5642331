#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make bench`: a benchmark of this directory in the guest, PVFS with four I/O
# daemons on tmpfs. The raw runs, what was made of them and what they were made
# with are kept in docs/results/.
set -u

usage()
{
	cat <<-END
	usage: tests/bench/vm.sh [--kernel 6.1|6.12] [--rounds N] [--out DIR] [beside|postmark|tables|split|sweep|user]
	  --kernel  stock kernel of the guest (default 6.1)
	  --rounds  runs of each measure, medians count (default: beside, tables, split and user 3, others 1)
	  --out     where to keep the results (default docs/results/DATE-COMMIT)
	  beside    PVFS beside the kernel's NFSv4.2 and GlusterFS: a table (the default)
	  postmark  PostMark by file size, large files beside small ones; with and without stuffing
	  tables    messages of an untar, and how long they are waited for; ls -aR by entries a message
	  split     where the time of small files goes: client, wire, manager
	  sweep     PVFS alone, by nconnect and by stripe unit
	  user      the mount from user space beside the module: Bonnie++, and pbench by block size
	END
}

command="$0 $*"
cd "${0%/*}/../.." || exit 1
kernel=6.1 rounds='' out='' what=beside
while [ $# -gt 0 ]; do
	case $1 in
	--kernel|--rounds|--out)
		[ $# -ge 2 ] || { usage >&2; exit 2; };;
	esac
	case $1 in
	--kernel)
		kernel=$2; shift;;
	--rounds)
		[[ $2 =~ ^[1-9][0-9]?$ ]] || { usage >&2; exit 2; }
		rounds=$2; shift;;
	--out)
		out=$2; shift;;
	beside|postmark|tables|split|sweep|user)
		what=$1;;
	-h|--help)
		usage
		exit 0;;
	*)
		usage >&2
		exit 2;;
	esac
	shift
done
[ -n "$rounds" ] || case $what in beside|tables|split|user) rounds=3;; *) rounds=1;; esac
build=${PVFS_BUILD:-$PWD/build}
load=$(cut -d' ' -f1-3 /proc/loadavg)
export PVFS_BUILD=$build
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
[ -z "$(git status --porcelain -uno 2>/dev/null)" ] || commit=$commit+
out=${out:-docs/results/$(date +%Y-%m-%d)-$commit}
make -s -f tests/vm/guest/tools.mk B="$build" || exit 1
[ $what != user ] || make -s B="$build" "$build/tests/bench/pbench" || exit 1
run=$(mktemp -d "${TMPDIR:-/tmp}/pvfs-bench.XXXXXX") || exit 1
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM HUP

tests/vm/run --kernel "$kernel" --mem 6144 --prealloc --timeout $((1800 + 1200 * rounds)) --out "$run" -- \
	env PVFS_BUILD="$build" tests/bench/$what.sh "$rounds"
rc=$?

# What was measured before it failed is kept, too.
[ -s "$run/raw.txt" ] || exit $((rc ? rc : 1))
mkdir -p "$out" || exit 1
cp "$run/raw.txt" "$out/$what-$kernel.txt"
for f in pvfs-stats tune; do
	[ ! -e "$run/$f.txt" ] || cp "$run/$f.txt" "$out/$f-$kernel.txt"
done
about()
{
	echo "date: $(date -u +'%Y-%m-%d %H:%M') UTC"
	echo "commit: $commit"
	echo "kernel: $(tools/kernels.sh "$kernel" kver) in QEMU/TCG, 2 CPUs, memory touched first"
	echo "host: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -r)"
	echo "load before: $load"
	echo "transport: TCP, loopback; 4 iods and the mgr on tmpfs"
	[ $what != beside ] || echo "beside it: NFS server with 8 threads, sync export of a tmpfs; noac: with noac,lookupcache=none; GlusterFS: 4 bricks on tmpfs"
	echo "command: $command"
	echo "rounds: $rounds, medians"
	[ $rc = 0 ] || echo "it did not come to its end: exit status $rc"
	echo
}
case $what in
beside)
	{ about; tests/bench/table.pl "$out/beside-$kernel.txt"; } | tee "$out/table-$kernel.txt";;
split)
	{ about; tests/bench/split.pl "$out/split-$kernel.txt"; } | tee "$out/where-$kernel.txt";;
tables)
	{ about; tests/bench/tables.pl "$out/tables-$kernel.txt"; } | tee "$out/paper-$kernel.txt";;
user)
	{ about; tests/bench/parallel.pl "$out/user-$kernel.txt" "$out"; } | tee "$out/graphs-user-$kernel.txt";;
postmark)
	{ about; tests/bench/graphs.pl "$out/postmark-$kernel.txt" "$out"; } | tee "$out/graphs-$kernel.txt";;
esac
echo
echo "kept in $out"
exit $rc
