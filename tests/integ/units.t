#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The units for systemd: sound, as tight as they say, and what `make install` puts beside them.
. "$(dirname "$0")/lib.sh"

command -v systemd-analyze >/dev/null || skip_all "systemd-analyze is not installed (make deps)"

mkdir "$T/units"
for u in mgr iod; do
	unit="$ROOT/dist/pvfs-$u@.service"
	ok "pvfs-$u@: exposure below 2.0" systemd-analyze security --offline=true --threshold=19 --no-pager "$unit"
	# The programs are not installed where the unit has them.
	sed "s|=/usr/sbin/|=$BIN/|" "$unit" >"$T/units/pvfs-$u@.service"
	ok "pvfs-$u@: is sound" systemd-analyze verify --man=no --recursive-errors=no "$T/units/pvfs-$u@.service"
	is "... and nothing is said of it" "$(systemd-analyze verify --man=no --recursive-errors=no "$T/units/pvfs-$u@.service" 2>&1)" ""
	is "... it is not root's" "$(sed -n 's/^User=//p' "$unit")" pvfs
done

# What the programs are told there they understand.
fails "the manager's command line" 1 "/nosuch.conf" "$BIN/"$(sed -n 's|^ExecStart=/usr/sbin/||p' "$ROOT/dist/pvfs-mgr@.service" | sed "s|%i|nosuch|; s|/etc/pvfs|$T|")
fails "the I/O daemon's" 1 "/etc/pvfs/nosuch.conf" "$BIN/"$(sed -n 's|^ExecStart=/usr/sbin/||p' "$ROOT/dist/pvfs-iod@.service" | sed "s|%i|nosuch-0|")

# What the units allow is all that the daemons call: the plain ones, as sanitizers have needs of their own.
PLAIN=$ROOT/build
allowed() {	# @SET...: its system calls; sets may have sets in them
	systemd-analyze syscall-filter "$@" | grep -v '^[@ ]*#' | while read -r w; do
		case $w in
		"$1") ;;
		@*) allowed "$w" ;;
		?*) echo "$w" ;;
		esac
	done
}
work() {
	"$PVFS" -c "$C/pvfs.conf" "$@" >>"$T/work" 2>&1 || echo "failed: $*" >>"$T/work"
}
if command -v strace >/dev/null && [ -x "$PLAIN/pvfs-mgr" ]; then
	make_cluster "$C" 1
	for d in "mgr" "iod -n 0"; do
		mkfifo "$T/ready"
		ASAN_OPTIONS=detect_leaks=0 strace -fqqo "$T/${d% -*}.trace" "$PLAIN/"pvfs-$d -c "$C/pvfs.conf" -l "$T/${d% -*}.log" --ready-fd 3 3>"$T/ready" &
		PIDS+=($!)
		read -r _ <"$T/ready"
		rm "$T/ready"
	done
	make_file "$T/big" 3000000
	truncate -s 9M "$T/big"
	echo small >"$T/small"
	setfattr -n user.a -v b "$T/small"
	work cp -p --fsync "$T/big" "$T/small" pvfs:/
	work cp pvfs:/big pvfs:/big2
	work cp pvfs:/big2 "$T/big2"
	work status
	work rm pvfs:/big pvfs:/small
	is "all that was asked for was done" "$(grep failed "$T/work")" ""
	for p in "${PIDS[@]}"; do
		for d in $(pgrep -P "$p"); do kill -HUP "$d"; kill -TERM "$d"; done
		wait "$p"
	done
	comm -23 <(allowed @system-service | sort -u) <(allowed @privileged | sort -u) >"$T/allowed"
	for d in mgr iod; do
		sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' "$T/$d.trace" | sort -u >"$T/calls"
		ok "$d: some calls were seen" grep -qx sendto "$T/calls"
		is "... and all are allowed" "$(comm -23 "$T/calls" "$T/allowed")" ""
	done
fi

if [ "$(id -u)" = 0 ]; then
	mkdir -p "$T/root/etc/pvfs"
	touch "$T/root/etc/pvfs/cluster.key"
	ok "sysusers makes the user" systemd-sysusers --root="$T/root" "$ROOT/dist/pvfs.sysusers"
	like "... without a shell" "$(grep ^pvfs: "$T/root/etc/passwd")" ":/var/lib/pvfs:.*nologin"
	id=$(cut -d: -f 3 < <(grep ^pvfs: "$T/root/etc/passwd"))
	ok "tmpfiles makes the directories" systemd-tmpfiles --root="$T/root" --create "$ROOT/dist/pvfs.tmpfiles"
	is "... whose they are" "$(stat -c '%u %a' "$T/root/var/lib/pvfs" "$T/root/etc/pvfs/cluster.key" "$T/root/etc/pvfs")" "$id 750
$id 600
0 755"
fi
finish
