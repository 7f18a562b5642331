#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The conformance suite through pvfsd, on the host's kernel: all tables, a half of them on each of two mounts at once. What is
# known to be different is in tests/posix/differences.c.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pvfsd.sh"
. "$(dirname "$0")/conform.sh"

make_cluster "$C" 4
start_cluster "$C"
mount_both allow_other,suid,dev
"$suite" -p 2/2 "$T/m2" >"$T/second" 2>&1 &
second=$!
PIDS+=($second)
run "one half:" -p 1/2 "$T/m1"
wait $second
rc=$?
pass_on "the other half:" <"$T/second"
is "the other half: and it ended well" "$rc" "$?"
unmount_both
finish
