#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make bench`: PVFS with four I/O daemons on tmpfs beside the kernel's NFSv4.2
# in the same guest and the same run. The raw runs, the table and what they were
# made with are kept in docs/results/.
set -u

usage()
{
	cat <<-END
	usage: tests/bench/vm.sh [--kernel 6.1|6.12] [--rounds N] [--out DIR] [--sweep]
	  --kernel  stock kernel of the guest (default 6.1)
	  --rounds  runs of each measure, medians count (default 3)
	  --out     where to keep the results (default docs/results/DATE-COMMIT)
	  --sweep   PVFS alone, by nconnect and by stripe unit
	END
}

command="$0 $*"
cd "${0%/*}/../.." || exit 1
kernel=6.1 rounds=3 out='' sweep=''
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
	--sweep)
		sweep=sweep;;
	-h|--help)
		usage
		exit 0;;
	*)
		usage >&2
		exit 2;;
	esac
	shift
done
build=${PVFS_BUILD:-$PWD/build}
export PVFS_BUILD=$build
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
[ -z "$(git status --porcelain -uno 2>/dev/null)" ] || commit=$commit+
out=${out:-docs/results/$(date +%Y-%m-%d)-$commit}
make -s -f tests/vm/guest/tools.mk B="$build" || exit 1
run=$(mktemp -d "${TMPDIR:-/tmp}/pvfs-bench.XXXXXX") || exit 1
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT TERM HUP

tests/vm/run --kernel "$kernel" --mem 6144 --prealloc --timeout $((300 + 300 * rounds)) --out "$run" -- \
	env PVFS_BUILD="$build" tests/bench/guest.sh "$rounds" $sweep || exit

mkdir -p "$out" || exit 1
if [ -n "$sweep" ]; then
	cp "$run/raw.txt" "$out/sweep-$kernel.txt"
	echo "kept in $out"
	exit
fi
cp "$run/raw.txt" "$out/raw-$kernel.txt"
cp "$run/pvfs-stats.txt" "$out/stats-$kernel.txt"
{
	echo "date: $(date -u +'%Y-%m-%d %H:%M') UTC"
	echo "commit: $commit"
	echo "kernel: $(tools/kernels.sh "$kernel" kver) in QEMU/TCG, 2 CPUs, memory touched first"
	echo "host: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -r)"
	echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
	echo "transport: TCP, loopback; 4 iods and the mgr on tmpfs; NFS server: 8 threads, sync export of a tmpfs"
	echo "command: $command"
	echo "rounds: $rounds, medians"
	echo
	tests/bench/table.pl "$out/raw-$kernel.txt"
} | tee "$out/table-$kernel.txt"
echo
echo "kept in $out"
