# SPDX-License-Identifier: GPL-2.0
# lib.sh - what the integration tests share: TAP, clusters of real daemons in a temporary directory, and the certainty
# that nothing is left behind. Sourced by *.t, which prove(1) runs; PVFS_BUILD names the directory of the binaries.

set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BIN=$(cd "${PVFS_BUILD:-$ROOT/build}" && pwd) || { echo "Bail out! build first: make"; exit 1; }
PVFS=$BIN/pvfs
T=$(mktemp -d "${TMPDIR:-/tmp}/pvfs-test.XXXXXX")
C=$T/c			# the cluster
TESTS=0
FAILED=0
PIDS=()			# processes of ours to end
CLUSTERS=()		# directories of clusters to stop
export LC_ALL=C
unset PVFS_CONF

# Ends what was started, by process id, whatever way the test ends.
cleanup() {
	local rc=$? p d
	trap - EXIT
	for p in "${PIDS[@]}"; do
		kill -CONT "$p" 2>/dev/null
		kill -KILL "$p" 2>/dev/null
		wait "$p" 2>/dev/null
	done
	# Not by `pvfs stop`, which may be what is broken. A number in a file may be stale: it must be our daemon's.
	for d in "${CLUSTERS[@]}"; do
		for p in $(cat "$d"/run/*.pid 2>/dev/null | grep -x '[0-9]*'); do
			if tr '\0' ' ' 2>/dev/null <"/proc/$p/cmdline" | grep -q "pvfs-.* $d/pvfs.conf "; then
				kill -KILL "$p" 2>/dev/null
			fi
		done
	done
	if [ "$FAILED" -gt 0 ] || [ "$rc" -ne 0 ]; then
		for d in "${CLUSTERS[@]}"; do
			for p in "$d"/log/*.log; do
				[ -s "$p" ] && tail -n 20 "$p" | sed "s|^|# $(basename "$p"): |"
			done
		done
	fi
	if [ -n "${PVFS_TEST_KEEP:-}" ]; then
		echo "# kept: $T"
	else
		rm -rf "$T"
	fi
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

pass() {
	TESTS=$((TESTS + 1))
	echo "ok $TESTS - $1"
}

# fail NAME [LINES...]
fail() {
	local name=$1
	shift
	TESTS=$((TESTS + 1))
	FAILED=$((FAILED + 1))
	echo "not ok $TESTS - $name"
	[ $# -gt 0 ] && printf '%s\n' "$@" | head -n 30 | sed 's/^/#   /'
	return 0
}

# ok NAME COMMAND...: the command succeeds. Not in a subshell: what a function notes in PIDS is to be ended.
ok() {
	local name=$1 rc
	shift
	"$@" >"$T/ok.out" 2>&1
	rc=$?
	if [ $rc -eq 0 ]; then pass "$name"; else fail "$name" "exit status $rc of: $*" "$(cat "$T/ok.out")"; fi
}

# is NAME GOT WANTED
is() {
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got:    $2" "wanted: $3"; fi
}

# like NAME TEXT EXTENDED-REGEX
like() {
	if grep -Eq -- "$3" <<<"$2"; then pass "$1"; else fail "$1" "got:    $2" "wanted: $3"; fi
}

# fails NAME STATUS REGEX COMMAND...: exits with STATUS and says REGEX on standard error
fails() {
	local name=$1 status=$2 re=$3 out rc
	shift 3
	out=$("$@" 2>&1 >/dev/null)
	rc=$?
	if [ $rc -ne "$status" ]; then
		fail "$name" "exit status $rc, wanted $status, of: $*" "$out"
	elif ! grep -Eq -- "$re" <<<"$out"; then
		fail "$name" "said:   $out" "wanted: $re"
	else
		pass "$name"
	fi
}

# The last line of every test: without it prove sees no plan, and says so.
finish() {
	echo "1..$TESTS"
	[ "$FAILED" -eq 0 ]
	exit
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# make_cluster DIR IODS [mkfs options]: made, not started
make_cluster() {
	local d=$1 n=$2
	shift 2
	CLUSTERS+=("$d")
	"$PVFS" mkfs --dir "$d" --iods "$n" --port 0 --name test "$@" >"$T/mkfs.out" 2>&1 || {
		cat "$T/mkfs.out"
		echo "Bail out! mkfs failed"
		exit 1
	}
}

start_cluster() {
	"$PVFS" start "$@" >"$T/start.out" 2>&1 || {
		cat "$T/start.out"
		echo "Bail out! start failed"
		exit 1
	}
}

# The pvfs command on cluster $C.
p() {
	"$PVFS" -c "$C/pvfs.conf" --timeout 20 "$@"
}

# mgr_address DIR: "host:port"
mgr_address() {
	sed -n '/^mgr:/,/^}/s/.*address = "\(.*\)";/\1/p' "$1/pvfs.conf"
}

pid_of() {
	cat "$C/run/$1.pid"
}

# freeze PID: stops it. The signal is on its way for a moment, in which its threads go on.
freeze() {
	kill -STOP "$1"
	wait_for 10 bash -c "! grep -qs '^State:.[^TtZ]' /proc/$1/task/*/status"
}

# make_file PATH SIZE: random bytes
make_file() {
	head -c "$2" /dev/urandom >"$1"
}

sum() {
	sha256sum <"$1" | cut -d' ' -f1
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# size_of NAME: of a file of the volume
size_of() {
	p stat "pvfs:/$1" | sed -n 's/ *Size: \([0-9]*\).*/\1/p'
}

# killed_writer FILE NAME BYTES: who has written the first BYTES of FILE into NAME, which is new, is killed before he tells
# anybody how long that is.
killed_writer() {
	local writer
	"$BIN/tests/integ/unclosed" "$(mgr_address "$C")" test "$C/cluster.key" "/$2" "$3" <"$1" >"$T/written" &
	writer=$!
	PIDS+=($writer)
	ok "a writer writes $3 bytes" wait_for 20 grep written "$T/written"
	kill -KILL $writer
	wait $writer 2>/dev/null
	is "... and is killed" $? 137
}

# libpvfs_test PROGRAM [mkfs options]: a program that prints TAP itself, against a cluster; see libpvfs_test.h
libpvfs_test() {
	local rc

	make_cluster "$C" 4 "${@:2}"
	start_cluster "$C"
	cat >"$T/restart" <<EOF
#!/bin/bash
kill -KILL "\$(cat "$C/run/\$1.pid")"
sleep 0.2
exec "$PVFS" start "$C" "\$1" >/dev/null
EOF
	chmod +x "$T/restart"
	PVFS_TEST_MGR=$(mgr_address "$C") PVFS_TEST_VOLUME=test PVFS_TEST_KEY=$C/cluster.key PVFS_TEST_RESTART=$T/restart \
		CMOCKA_MESSAGE_OUTPUT=TAP "$BIN/tests/integ/$1"
	rc=$?
	[ $rc -eq 0 ] || FAILED=1
	exit $rc
}

json() {
	perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); my $v = eval "\$j->$ARGV[0]"; print defined $v ? $v : "undef"' "$1"
}
