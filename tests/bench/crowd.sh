#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make bench`: many clients in one directory, then a million files in one, on
# this machine, through libpvfs. With the store on a disk each change is on it
# when it is answered: what many clients gain there is that they share flushes.
#
#	tests/bench/crowd.sh [OUT [FILES]]
set -eu -o pipefail

cd "${0%/*}/../.."
build=${PVFS_BUILD:-$PWD/build}
commit=$(git rev-parse --short HEAD 2>/dev/null || echo none)
out=${1:-docs/results/$(date +%Y-%m-%d)-$commit}
files=${2:-1000000}
dir=
c=

cleanup()
{
	[ -z "$c" ] || "$build/pvfs" stop "$c" >/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# crowd BASE CLIENTS FILES: on a new volume below BASE.
crowd()
{
	dir=$(mktemp -d "$1/pvfs-crowd.XXXXXX")
	c=$dir/vol
	"$build/pvfs" mkfs -d "$c" -i 1 -p 7300 >/dev/null 2>&1
	"$build/pvfs" start "$c" >/dev/null 2>&1
	"$build/tests/bench/crowd" -c "$2" -n "$3" -p "$(cat "$c/run/mgr.pid")" 127.0.0.1:7300/vol "$c/cluster.key"
	"$build/pvfs" stop "$c" >/dev/null
	c=
	rm -rf "$dir"
}

mkdir -p "$out"
{
	echo "date: $(date -u +'%Y-%m-%d %H:%M') UTC"
	echo "commit: $commit"
	echo "host: $(nproc) CPUs, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -r)"
	echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
	echo "db_cache: 64M (the default)"
	echo
	echo "what, clients, files, a second, slowest tenth by fastest, MiB of the manager after the first tenth and at the end"
	echo
	echo "store on $(stat -f -c %T /var/tmp):"
	for n in 1 8 64 1000; do
		crowd /var/tmp $n 20000
	done
	echo "store in memory:"
	for n in 1 8 64 1000; do
		crowd /dev/shm $n 20000
	done
	crowd /dev/shm 8 "$files"
} | tee "$out/crowd.txt"
