#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make bench`: sixteen I/O daemons, each behind a link of its own of 100 Mbit/s
# in both directions, as the fast Ethernet of the papers: each in a network
# namespace with a veth that a token bucket limits. The clients and the manager
# are in one more, which has the other ends. So it is the links that limit, and
# not this machine: what part of them do programs get?
#
#	tests/bench/links.sh [OUT [ROUNDS [IODS]]]
#
# A link takes 12.5 MB/s of packets; of those of 1,500 bytes TCP's data are 95.6%.
# What TCP attains over the same links, with no file system, is measured too:
#	raw put|get links=N mbs=
# The other lines are pbench's (`pbench -h`).
. "${0%/*}/host.sh"

rounds=${2:-3}
iods=${3:-16}
ns=pvfs-bench-$$
port=7391

cleanup()
{
	local p i

	for p in "${pids[@]}"; do
		kill "$p" 2>/dev/null || true
	done
	wait "${pids[@]}" 2>/dev/null || true
	for ((i = 0; i < iods; i++)); do
		ip netns del $ns-$i 2>/dev/null || true
	done
	ip netns del $ns 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

hub()
{
	ip netns exec $ns "$@"
}

# Packets not larger than the bucket: else each would be taken to pieces there.
limit()
{
	ip netns exec "$1" ip link set "$2" gso_max_size 16384 up
	ip netns exec "$1" tc qdisc add dev "$2" root tbf rate 100mbit burst 20k latency 50ms
}

links()
{
	local i

	ip netns add $ns
	hub ip link set lo up
	hub ip addr add 10.77.255.1/32 dev lo
	hub sysctl -q net.ipv4.ip_forward=1
	for ((i = 0; i < iods; i++)); do
		ip netns add $ns-$i
		ip netns exec $ns-$i ip link set lo up
		hub ip link add l$i type veth peer name eth0 netns $ns-$i
		hub ip addr add 10.77.$i.1/24 dev l$i
		ip netns exec $ns-$i ip addr add 10.77.$i.2/24 dev eth0
		limit $ns l$i
		limit $ns-$i eth0
		ip netns exec $ns-$i ip route add default via 10.77.$i.1
	done
}

config()
{
	local i comma=

	cat <<-END
	volume: {
		name = "vol"; uuid = "$(cat /proc/sys/kernel/random/uuid)";
		cluster_key = "cluster.key"; server_key = "server.key";
	};
	mgr: { address = "10.77.255.1:7100"; store = "mgr"; };
	iods: (
	END
	for ((i = 0; i < iods; i++)); do
		printf '%s\t{ address = "10.77.%d.2:7101"; store = "iod%d"; }' "$comma" $i $i
		comma=$',\n'
	done
	printf '\n);\n'
}

# start NAMESPACE NAME COMMAND...
start()
{
	local where=$1 name=$2 i

	shift 2
	: >"$dir/$name.ready"
	ip netns exec "$where" "$@" --ready-fd 3 3>"$dir/$name.ready" >"$dir/$name.log" 2>&1 &
	pids+=($!)
	for ((i = 0; i < 100; i++)); do
		[ ! -s "$dir/$name.ready" ] || return 0
		sleep 0.1
	done
	cat "$dir/$name.log" >&2
	die "$name does not start"
}

up()
{
	local i conf=$dir/vol/pvfs.conf

	mkdir "$dir/vol"
	config >"$conf"
	"$build/pvfs" mkfs -c "$conf" --mgr >/dev/null 2>&1 || die "mkfs failed"
	for ((i = 0; i < iods; i++)); do
		"$build/pvfs" mkfs -c "$conf" --iod $i >/dev/null 2>&1 || die "mkfs of iod$i failed"
	done
	start $ns mgr "$build/pvfs-mgr" -c "$conf"
	for ((i = 0; i < iods; i++)); do
		start $ns-$i iod$i "$build/pvfs-iod" -c "$conf" -n $i
		ip netns exec $ns-$i "$bench/stream" serve $port >/dev/null &
		pids+=($!)
	done
	vol=pvfs:10.77.255.1:7100:/vol
}

pbench()
{
	local n=$1

	shift
	hub timeout 900 mpiexec.mpich -iface lo -n "$n" "$bench/pbench" "$@" "$vol" </dev/null
}

# 16 MiB over each of the first so many links: more than a second.
raw()
{
	local n way i hosts=()

	for ((i = 0; i < $1; i++)); do
		hosts+=(10.77.$i.2:$port)
	done
	for way in put get; do
		n=$(hub "$bench/stream" $way 16 "${hosts[@]}")
		echo "raw $way links=$1 mbs=${n%% *}"
	done
}

[ "$(id -u)" = 0 ] || die "must be root"
[ "$iods" -ge 1 ] && [ "$iods" -le 16 ] || die "1 to 16 I/O daemons"
counts=()
for n in 1 2 4 8 16; do
	[ $n -gt "$iods" ] || counts+=($n)
done
keep links
about
echo "links: $iods of 100 Mbit/s in both directions, MTU 1500; $iods iods; clients and the mgr on the other side"
echo "rounds: $rounds"
echo
links
up
for n in "${counts[@]}"; do
	for ((r = 0; r < rounds; r++)); do
		raw $n
	done
done
# By the number of I/O daemons, 12 MiB for each.
for a in lib mpi; do
	for n in "${counts[@]}"; do
		for procs in 1 4 8; do
			pbench $procs test -a $a -k -r "$rounds" -f $n -b 1m -i $(((12 * n + procs - 1) / procs))
		done
	done
done
# By block and processes, all of them.
for a in lib mpi; do
	for procs in 1 2 4 8; do
		for b in 16 64 256 1024 4096; do
			# A second's worth, but not too many calls.
			i=$((iods * 8192 / b / procs))
			i=$((i < 1024 ? i : 1024))
			pbench $procs test -a $a -k -r "$rounds" -b ${b}k -i $((i > 0 ? i : 1))
		done
	done
done
for procs in 1 2 4 8; do
	pbench $procs perf -a mpi -r "$rounds" -b 4m,16m,64m
done
finish links
