# SPDX-License-Identifier: GPL-2.0-only
#
# TAP for the scripts that run in the test guest, and what most of them need.
# Sourced by guest/*.sh; tests/vm/lib.sh on the host has the other half: it
# compares the plan that is printed first with what came.
#
# A check is a function or command that runs in a subshell with -e, so that the
# first of its commands that fails ends it: put one command on a line, and say
# refuse, not !. Its output is shown only when it fails. Checks go on after a
# failure.
# shellcheck shell=bash

tap_n=0
tap_failed=0
top=$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)
build=${PVFS_BUILD:-$top/build}
tools=$build/tests/vm
cluster=$top/tests/vm/cluster
M=/mnt/pvfs
S=/proc/fs/pvfs/vol
tmp=/tmp/t

plan()
{
	echo "1..$1"
	tap_planned=$1
	mkdir -p "$tmp"
}

diag()
{
	sed 's/^/# /' <<<"$*"
}

# result STATUS NAME
result()
{
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

# check NAME COMMAND...; one that takes longer than $limit seconds is killed, with
# the processes it started itself, and has failed. Then $checked is not 0. Where bash
# ignores set -e (check ... || ..., if check ...) only the last command would count,
# so that is refused.
slow=${PVFS_VM_SLOW:-1}
limit=$((200 * slow))
checked=0
check()
{
	local name=$1 t0=$SECONDS pid dog ignored

	ignored=$(set -e; false; echo yes)
	[ -z "$ignored" ] || bail "check '$1' is in a condition: look at \$checked behind it"
	shift
	(
		set -e
		"$@"
	) >"$tmp/out" 2>&1 </dev/null &
	pid=$!
	(
		sleep $limit || exit
		echo "killed after $limit s" >>"$tmp/out"
		pkill -KILL -P $pid
		kill -KILL $pid
	) >/dev/null 2>&1 &
	dog=$!
	wait $pid 2>/dev/null
	checked=$?
	pkill -KILL -P $dog 2>/dev/null
	kill -KILL $dog 2>/dev/null
	wait $dog 2>/dev/null
	result $checked "$name"
	if [ $checked != 0 ]; then
		diag "status $checked: $*"
		tail -n 25 "$tmp/out" | sed 's/^/#   /'
	fi
	[ $((SECONDS - t0)) -lt 10 ] || diag "that took $((SECONDS - t0)) s"
}

# Succeeds when the command does not.
refuse()
{
	if "$@"; then
		echo "should have failed: $*"
		return 1
	fi
}

# Runs a helper that prints "ok - name" and "not ok - name" lines of its own,
# N of them; those that are missing at its end are failures.
# helper N COMMAND...
helper()
{
	local want=$1 got=0 line rc

	shift
	while IFS= read -r line; do
		case $line in
		'ok - '*)
			got=$((got + 1))
			result 0 "${line#ok - }";;
		'not ok - '*)
			got=$((got + 1))
			result 1 "${line#not ok - }";;
		*)
			echo "# $line";;
		esac
	done < <("$@" 2>&1 </dev/null; echo "helper-status $?" >"$tmp/status")
	rc=$(cut -d' ' -f2 "$tmp/status")
	while [ $got -lt "$want" ]; do
		got=$((got + 1))
		result 1 "check $got of ${1##*/} (it ended early, status $rc)"
	done
}

# Skips the rest when there is no use in going on.
bail()
{
	diag "$*"
	echo "Bail out! $*"
	exit 1
}

finish()
{
	[ "$tap_n" = "$tap_planned" ] || {
		diag "planned $tap_planned checks but ran $tap_n"
		exit 1
	}
	[ $tap_failed = 0 ] || diag "$tap_failed of $tap_n failed"
	exit $((tap_failed > 0))
}

# A cluster of our own; ARGS as for `cluster up`.
up()
{
	"$cluster" up "$@" >"$tmp/up" 2>&1 && return
	sed 's/^/# /' "$tmp/up"
	bail "the cluster does not start"
}

# The numbers of a statistics file: count OP [PROC-DIR]
count()
{
	awk -v op="$1" '$1 == op { n = $2 } END { print n + 0 }' "${2:-$S}/stats"
}

# All requests to the mgr, or to the iods, since the last reset, without the
# heartbeat: count_to mgr|iods [PROC-DIR]
count_to()
{
	awk -v to="$1" '
		/^#/ || NF < 9 { next }
		{ iod = $1 ~ /^(READ|WRITE|FSYNC|TRIM|GLIMPSE|REMOVE|IOD_STATFS|SPACE|SEEK|COPY)$/ }
		$1 ~ /^(SESSION_RENEW|HELLO|AUTH|PING|SESSION_OPEN)$/ { next }
		(to == "iods") == iod { n += $2 }
		END { print n + 0 }' "${2:-$S}/stats"
}

reset_stats()
{
	echo reset >"${1:-$S}/stats"
}

# Forgets all cached names, inodes and pages.
drop_caches()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# evict FILE...: forgets these files, and fails unless their inodes are gone: so are marks then that do not hold them. (Of an event that
# does not come here, as one that did would hold its file.) What was written through the page cache the kernel takes for
# dirty until its flusher has looked, which is soon here.
evict()
{
	local rc=0 expire=/proc/sys/vm/dirty_expire_centisecs pause=/proc/sys/vm/dirty_writeback_centisecs
	local was

	was="$(cat $expire) $(cat $pause)"
	echo 1 >$expire
	echo 10 >$pause
	forgotten "$@" || rc=$?
	echo "${was% *}" >$expire
	echo "${was#* }" >$pause
	return $rc
}

forgotten()
{
	python3 - "$@" <<-'END'
		import ctypes, os, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		ADD_EVICTABLE, OPEN_EXEC, AT_FDCWD = 0x201, 0x1000, -100
		names = sys.argv[1:]
		fan = libc.fanotify_init(0, os.O_RDONLY)
		for name in names:
		    if libc.fanotify_mark(fan, ADD_EVICTABLE, ctypes.c_uint64(OPEN_EXEC), AT_FDCWD, name.encode()):
		        sys.exit("a mark at %s: %s" % (name, os.strerror(ctypes.get_errno())))
		def left():
		    with open("/proc/self/fdinfo/%d" % fan) as info:
		        return sum(line.startswith("fanotify ino:") for line in info)
		if left() != len(names):
		    sys.exit("%d marks at %d files" % (left(), len(names)))
		# Who has just let go of one may do so behind its close.
		for _ in range(200):
		    with open("/proc/sys/vm/drop_caches", "w") as caches:
		        caches.write("3")
		    if not left():
		        sys.exit()
		    time.sleep(0.1)
		sys.exit("%d of %d inodes are still in memory" % (left(), len(names)))
	END
}

# within SECONDS COMMAND...: status of the command, 124 if it took too long.
within()
{
	timeout -k 5 $(($1 * slow)) "${@:2}"
}

# Waits up to $1 s until the command succeeds.
eventually()
{
	local i n=$(($1 * slow))

	shift
	for ((i = 0; i < n * 10; i++)); do
		"$@" && return
		sleep 0.1
	done
	echo "not within $n s: $*"
	return 1
}

# The other guest can be reached when both have done this, each with its NODE of
# tests/vm/run --lan: at 10.0.0.1 and 10.0.0.2.
lan_up()
{
	modprobe virtio_net || return
	# On lo too, so that what is here and uses this address has it when the wire is
	# cut (ip link set eth0 down).
	ip addr add "10.0.0.$1/32" dev lo || return
	ip addr add "10.0.0.$1/24" dev eth0 || return
	# QEMU would spin where a socket's queue, of ten frames, were full of small ones.
	ip link set eth0 mtu 9000 up
}
