#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make bench`: parallel programs on this machine, through MPI-IO and libpvfs:
# four I/O daemons, stores in memory, loopback. First what one stream gets of
# what TCP gives a program on the same loopback: with a peer that drops what
# comes, and with one that has to put it into a file in memory, or get it from
# there, as an I/O daemon must.
#
#	tests/bench/parallel.sh [OUT [ROUNDS [PART...]]]	PART: stream, test, perf, tile, records, md
#
# Lines are pbench's (`pbench -h`), and
#	raw put|get peer=memory|file mbs=MB/S cpu_ms_mib=HERE daemons_ms_mib=AT THE PEER
#	tile-messages api= how= write=N read=N		to the I/O daemons, of a round
. "${0%/*}/host.sh"

rounds=${2:-3}
parts=("${@:3}")
[ ${#parts[@]} -gt 0 ] || parts=(stream test perf tile records md)
port=7391

cleanup()
{
	local p

	for p in "${pids[@]}"; do
		kill "$p" 2>/dev/null || true
	done
	[ ! -d "$dir/vol" ] || "$build/pvfs" stop "$dir/vol" >/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

up()
{
	"$build/pvfs" mkfs -d "$dir/vol" -i 4 -p 0 >/dev/null 2>&1 && "$build/pvfs" start "$dir/vol" >/dev/null ||
		die "the volume does not start"
	mgr=$(sed -n '/^mgr:/,/^}/s/.*address = "\(.*\)";/\1/p' "$dir/vol/pvfs.conf")
	vol=pvfs:$mgr:/vol
	daemons=$(cat "$dir"/vol/run/iod*.pid | paste -sd,)
}

# How many of which messages the I/O daemons have had: READ, WRITE, with lists.
messages()
{
	"$build/pvfs" -c "$dir/vol/pvfs.conf" status --json | perl -MJSON::PP -e '
		my %n = (WRITE => 0, READ => 0);
		for my $s (@{decode_json(join "", <>)->{servers}}) {
			next if $s->{server} !~ /^iod/;
			for my $op (keys %n) {
				$n{$op} += ($s->{stats}{ops}{$_} // {})->{count} // 0 for $op, "${op}_LIST";
			}
		}
		print "$n{WRITE} $n{READ}\n"'
}

raw()
{
	local r

	r=$("$bench/stream" "$1" 512 "127.0.0.1:$3")
	read -r mbs here there <<<"$r"
	echo "raw $1 peer=$2 mbs=$mbs cpu_ms_mib=$here daemons_ms_mib=$there"
}

stream()
{
	local r i mib
	local -a p=("$bench/pbench" test -k -r 3 -p "$daemons")

	"$bench/stream" serve $port >/dev/null &
	pids+=($!)
	"$bench/stream" serve $((port + 1)) "$dir/raw" >/dev/null &
	pids+=($!)
	for ((i = 0; i < 50; i++)); do
		! "$bench/stream" put 512 127.0.0.1:$((port + 1)) >/dev/null 2>&1 || break
		sleep 0.1
	done
	# In turns, as the machine's speed changes.
	for ((r = 0; r < rounds; r++)); do
		raw put memory $port
		raw get memory $port
		raw put file $((port + 1))
		raw get file $((port + 1))
		for mib in 1 4 16; do
			i=$((512 / mib))
			mpi 1 "${p[@]}" -a lib -f 1 -b ${mib}m -i $i "$vol"
			mpi 1 "${p[@]}" -a lib -f 4 -b ${mib}m -i $i "$vol"
			mpi 1 "${p[@]}" -a mpi -f 4 -b ${mib}m -i $i "$vol"
		done
	done
	kill "${pids[@]}"
	pids=()
	rm "$dir"/raw.*
}

test_sizes()
{
	local a n b i

	for a in lib mpi; do
		for n in 1 2 4; do
			for b in 16 64 256 1024 4096; do
				# 64 MiB of a process, and not too many calls.
				i=$((65536 / b < 1024 ? 65536 / b : 1024))
				mpi $n "$bench/pbench" test -a $a -k -r "$rounds" -b ${b}k -i $i -p "$daemons" "$vol"
			done
		done
	done
}

# each BENCHMARK [options]: by both interfaces, with 1, 2 and 4 processes
each()
{
	local a n

	for a in lib mpi; do
		for n in 1 2 4; do
			mpi $n "$bench/pbench" "$1" -a $a -r "$rounds" "${@:2}" "$vol"
		done
	done
}

tile()
{
	local a how w0 r0 w1 r1

	for a in lib mpi; do
		for how in list pieces collective; do
			[ $a$how != libcollective ] || continue
			read -r w0 r0 < <(messages)
			mpi 4 "$bench/pbench" tile -a $a -r "$rounds" -m $how "$vol"
			read -r w1 r1 < <(messages)
			echo "tile-messages api=$a how=$how write=$(((w1 - w0) / rounds)) read=$(((r1 - r0) / rounds))"
		done
	done
}

for part in "${parts[@]}"; do
	case $part in
	stream|test|perf|tile|records|md) ;;
	*) die "$part: no such part";;
	esac
done
keep parallel
about
echo "transport: TCP, loopback; 4 iods and the mgr, defaults"
echo "rounds: $rounds"
echo
up
touch_memory
for part in "${parts[@]}"; do
	case $part in
	test) test_sizes;;
	perf) each perf -b 4m,16m,64m;;
	records|md) each "$part" -c 1000;;
	*) "$part";;
	esac
done
finish parallel
