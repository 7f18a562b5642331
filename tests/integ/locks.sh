# SPDX-License-Identifier: GPL-2.0
# locks.sh - processes with locks, told what to do one by one; locks_test.c has the commands. Sourced after lib.sh.

declare -A IN OUT PID

# client NAME [PATH [MOUNT]]: a process that has the file open, by libpvfs or through the mount
client() {
	local what=("$(mgr_address "$C")" test "$C/cluster.key" "${2:-/f}")
	[ $# -lt 3 ] || what=("$3$2")
	mkfifo "$T/$1.in" "$T/$1.out"
	"$BIN/tests/integ/locks_test" "${what[@]}" <"$T/$1.in" >"$T/$1.out" 2>>"$T/err" &
	PID[$1]=$!
	PIDS+=($!)
	exec {IN[$1]}>"$T/$1.in" {OUT[$1]}<"$T/$1.out"
	[ "$(hear "$1")" = ready ] || fail "client $1 starts" "$(cat "$T/err")"
}

# leave NAME: it closes the file and unmounts, if it was not killed
leave() {
	# Not by end of file: later clients have its input open as well.
	[ -n "${2:-}" ] || tell "$1" quit
	exec {IN[$1]}>&- {OUT[$1]}<&-
	wait "${PID[$1]}"
	rm -f "$T/$1.in" "$T/$1.out"
}

# hear NAME [SECONDS]: the next answer
hear() {
	local line=''
	read -r -t "${2:-20}" -u "${OUT[$1]}" line || line=silence
	echo "$line"
}

tell() {
	echo "${*:2}" >&"${IN[$1]}"
}

# ask NAME COMMAND...
ask() {
	tell "$@"
	hear "$1"
}

restart_mgr() {
	kill -KILL "$(pid_of mgr)"
	sleep 0.3
	"$PVFS" start "$C" mgr >"$T/restart.out" 2>&1
}
