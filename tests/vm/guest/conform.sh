#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (conform.t on the host): the conformance suite, tests/posix, on a PVFS mount.
#
#	conform.sh I/N [control]	of every N tables the I-th; with control, on an ext4
#					beside it, too, which says whether the tables are right
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

suite=$build/tests/posix/conform
control=/mnt/ext4

make_control()
{
	# Elsewhere that may be somebody's root.
	[ "${PVFS_GUEST:-}" = 1 ]
	mkfs.ext4 -q /dev/vda
	mkdir -p $control
	mount -t ext4 /dev/vda $control
}

# run NAME DIR: the suite's lines, with NAME before theirs. It says itself how
# many rows did not run, so they are counted here as they come.
run()
{
	local t0=$SECONDS ok bad

	"$suite" -p "$part" "$2" 2>&1 | sed "/^1\.\./d; s/^\(ok\|not ok\) \([0-9]*\) - /\1 \2 - $1 /" | tee "$tmp/tap"
	ok=$(grep -c '^ok ' "$tmp/tap")
	bad=$(grep -c '^not ok ' "$tmp/tap")
	tap_n=$((tap_n + ok + bad))
	tap_failed=$((tap_failed + bad))
	diag "$1: $((ok + bad)) rows in $((SECONDS - t0)) s"
}

part=$1
rows=$("$suite" -p "$part" -n)
planned=$((rows + 1))
[ "${2-}" != control ] || planned=$((planned + rows + 2))
plan $planned
# On a file system whose longest file ends below 2^63, like the control.
up --store ext4
run pvfs "$M"
if [ "${2-}" = control ]; then
	check "ext4 beside it" make_control
	run ext4 $control
	check "umount of ext4" umount $control
fi
check "down" "$cluster" down
finish
