# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the benchmarks on this machine itself share: a volume in memory, and where
# results go.
set -eu -o pipefail

command="$0 $*"
top=$(cd "${0%/*}/../.." && pwd -P)
cd "$top"
build=${PVFS_BUILD:-$top/build}
bench=$build/tests/bench
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
[ -z "$(git status --porcelain -uno 2>/dev/null)" ] || commit=$commit+
out=${1:-docs/results/$(date +%Y-%m-%d)-$commit}
dir=$(mktemp -d /dev/shm/pvfs-bench.XXXXXX)
pids=()			# processes of ours to end
export PVFS_KEY=$dir/vol/cluster.key

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# keep NAME: what is printed from now on, in $out/NAME.txt, too.
keep()
{
	mkdir -p "$out"
	exec 4>&1 > >(tee "$out/$1.txt")
	tee=$!
}

# finish NAME: tables and graphs of what was kept, beside it.
finish()
{
	exec >&4
	wait "$tee" || true
	echo
	tests/bench/parallel.pl "$out/$1.txt" "$out" | tee "$out/$1-graphs.txt"
}

about()
{
	echo "date: $(date -u +'%Y-%m-%d %H:%M') UTC"
	echo "commit: $commit"
	echo "host: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -r)"
	echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
	echo "command: $command"
	echo "stores: in memory"
}

# New memory is slow to come by in a guest whose host gives it page by page, and
# so is what was given back: touched here, it is fast for a while.
touch_memory()
{
	head -c "${1:-2G}" /dev/zero >"$dir/touched"
	rm "$dir/touched"
}

# mpi N PROGRAM...
mpi()
{
	timeout 900 mpiexec.mpich -iface lo -n "$@" </dev/null
}
