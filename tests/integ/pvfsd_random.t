#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The random testers through pvfsd, by two mounts of a volume, on the host's kernel: fixed seeds. See docs/testing.md.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pvfsd.sh"
rnd=$BIN/tests/random

# try NAME PROGRAM ARGS...: its last lines when it fails
try() {
	local name=$1 what=$2
	shift 2
	if timeout 120 "$rnd/$what" "$@" >"$T/random.out" 2>&1; then
		pass "$name"
		grep '^# LEFT OUT' "$T/random.out"
	else
		fail "$name: $what $*" "$(tail -n 28 "$T/random.out" | cut -c-200)"
	fi
}

make_cluster "$C" 4
start_cluster "$C"
mount_both allow_other,suid,dev
two=("$T/m1" "$T/m2")
try "bytes of two files" dataops -s 1 -n 800 "${two[@]}"
try "... around the limit of what the manager keeps" dataops -s 2 -n 1200 -l 24000 "${two[@]}"
try "names" nameops -s 3 -n 1500 "${two[@]}"
try "names, one mount" nameops -s 4 -n 1000 "$T/m1"
try "many processes with files of their own" churn -s 5 -n 60 "${two[@]}"
try "blocks and sizes, at once" coherence -s 6 -p files -r 8 -n 50 "${two[@]}"
try "appends, at once" coherence -s 7 -p appends -r 8 -n 50 "${two[@]}"
try "appends, at once, one mount" coherence -s 8 -p appends -r 6 -n 50 "$T/m1"
# By two mounts the kernel does not rename what it found twice, while the other mount exchanged it: see pvfsd(8).
try "names, at once, one mount" coherence -s 216 -p names -r 20 -n 60 "$T/m1"
unmount_both
finish
