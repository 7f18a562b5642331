#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# MPI programs on PVFS, through ROMIO's driver and no kernel: ROMIO's own test programs, from Debian's source, and ours.
. "$(dirname "$0")/lib.sh"
ROMIO=$ROOT/build/libpvfs-romio.so
SOURCE=$(echo "$ROOT"/build/romio/mpich-*/src/mpi/romio/test)
PBENCH=$ROOT/build/tests/bench/pbench
[ -e "$ROMIO" ] && [ -d "$SOURCE" ] || { echo "Bail out! build first: make romio"; exit 1; }
[ -x "$PBENCH" ] || { echo "Bail out! build first: make build/tests/bench/pbench"; exit 1; }

# How many processes, program, arguments. Left out are those that measure, and those that want more than
# 4 GB; `error', which looks for a word in a text that a library outside of MPICH cannot set.
programs="
4 simple -fname
4 async -fname
4 async-multiple -fname
4 atomicity -fname
4 coll_test -fname
4 excl -fname
4 creat_excl -fname
4 noncontig_coll2 -fname
4 aggregation1 -h -f
4 aggregation2
4 misc -fname
4 shared_fp -fname
4 ordered_fp -fname
4 split_coll -fname
4 psimple -fname
4 hindexed
2 i_noncontig -fname
2 noncontig -fname
2 noncontig_coll -fname
2 types_with_zeros
1 status -fname
1 big_extents
4 darray_read
4 file_info -u -fname
"

mpi() {
	timeout 120 mpiexec.mpich -iface lo "$@" </dev/null
}

# build NAME DIRECTORY [flags]: into $T
build() {
	mpicc.mpich -w -O1 -I"$2" -o "$T/${1##*/}" "$2/$1.c" "${@:3}"
}

own() {
	mpi -n "$1" "$T/romio_test" "${@:2}"
}

make_cluster "$C" 4
start_cluster "$C"
PVFS_MGR=$(mgr_address "$C")
export PVFS_MGR PVFS_VOLUME=test PVFS_KEY=$C/cluster.key LD_LIBRARY_PATH=$ROOT/build

# opens: how often the manager was asked for files to be opened, by each of the operations that do
opens() {
	p status --json | json '{servers} && join " ", map { $j->{servers}[0]{stats}{ops}{$_}{count} // 0 } qw(OPEN_SHARED CREATE OPEN)'
}
run_one() {
	local n=$1 name=$2 out before
	shift 2
	build "$name" "$SOURCE" || return 1
	before=$(opens)
	out=$(mpi -n "$n" -genv LD_PRELOAD "$ROMIO" "$T/$name" "$@" 2>&1)
	if [ $? -ne 0 ] || ! grep -q "No Errors" <<<"$out"; then
		head -n 20 <<<"$out"
		return 1
	fi
	# It may have taken something else for the name of its file.
	[ "$(opens)" != "$before" ] || { echo "it opened nothing here"; return 1; }
}

ok "a directory of files on one I/O daemon" p mkdir pvfs:/one
ok "... is one" p setstripe -n 1 pvfs:/one
while read -r n name args; do
	[ -n "$name" ] || continue
	dir=/
	# In a directory of four it is wrong whatever the factor is: of 3, which it asks for, it wants 4 as well.
	[ "$name" != file_info ] || dir=/one/
	# shellcheck disable=SC2086 # a list of words
	ok "ROMIO's $name" run_one "$n" "$name" $args "pvfs:$dir$name"
done <<<"$programs"

build romio_test "$ROOT/tests/romio" -L"$ROOT/build" -lpvfs-romio || { echo "Bail out! romio_test does not build"; exit 1; }
out=$(own 4 pvfs:/own 2>"$T/err")
rc=$?
while read -r verdict _ _ name; do
	[ "$verdict" = ok ] && pass "$name"
	[ "$verdict" = not ] && fail "${name#- }" "$(cat "$T/err")"
done < <(grep -E '^(not )?ok ' <<<"$out")
is "all of our tests ran to their end" "$rc $(grep -c '^1\.\.' <<<"$out")" "0 1"

read -r shared others < <(opens; echo)
own 4 pvfs:/together leave >"$T/leave.out" 2>&1
is "4 processes open a file with one message" "$(opens)" "$((shared + 1)) $others"
fails "a time-out that is none" 1 'PVFS_TIMEO=-5: tenths of a second' env PVFS_TIMEO=-5 timeout 60 mpiexec.mpich -iface lo -n 1 \
	-genv LD_PRELOAD "$ROMIO" "$T/simple" -fname pvfs:/x

# By name alone, without anything in the environment but the key.
(
	unset PVFS_MGR PVFS_VOLUME
	own 4 "pvfs:$(mgr_address "$C"):/test/by-name" leave >"$T/leave.out" 2>&1
)
p cp pvfs:/by-name "$T/left"
is "a file whose writers ended without closing it is whole, to others too" "$(cat "$T/left")" leftleftleftleft
fails "no such volume" 1 "volume|not there|no " env PVFS_VOLUME=other timeout 60 mpiexec.mpich -iface lo -n 1 -genv LD_PRELOAD "$ROMIO" \
	"$T/simple" -fname pvfs:/x

# The benchmarks check what they read; here they are small. What is said of a benchmark below it must print.
volume=pvfs:$(mgr_address "$C"):/test
bench() {
	local lines=$1 procs=$2 out
	shift 2
	out=$(mpi -n "$procs" "$PBENCH" "$@" "$volume" 2>&1) && [ "$(grep -Ec ' (mbs|files)=[0-9.]+ ' <<<"$out")" = "$lines" ] && return
	echo "$out"
	return 1
}
for api in mpi lib; do
	ok "pbench's test, $api" bench 6 3 test -a $api -r 2 -i 3 -b 1k,20k,200k -s -k
	ok "pbench's test, $api, two I/O daemons and units of 4 KiB" bench 2 2 test -a $api -r 1 -i 5 -b 30k -f 2 -u 4k
	ok "pbench's perf, $api" bench 4 4 perf -a $api -r 2 -b 100k
	ok "pbench's tile, $api" bench $([ $api = mpi ] && echo 6 || echo 4) 4 tile -a $api -r 1 -z 64x48 -o 3x2 -d 100
	ok "pbench's tile, $api, in a row" bench 2 3 tile -a $api -r 1 -z 33x20 -t 3x1 -e 7 -m list
	ok "pbench's records, $api" bench 4 3 records -a $api -r 1 -c 10
	ok "pbench's md, $api" bench 7 3 md -a $api -r 2 -c 10
done
is "... and all of their files are gone" "$(p ls pvfs:/ | grep pbench)" ""
fails "pbench does not take what makes no sense" 2 "md takes no -z" mpi -n 2 "$PBENCH" md -a lib -z 2x2 "$volume"

PVFS_TIMEO=30 own 4 pvfs:/lost lost "$C/run/iod1.pid" >"$T/lost.out" 2>&1
like "an I/O daemon that is lost during collective writes is an error on all processes" "$(cat "$T/lost.out")" '^ok 1'
finish
