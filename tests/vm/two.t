#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Clients in two guests, of both kernels: the newer one has the servers and says what is done, the other does as it is told
# (guest/far.sh). A seed that is new each time and printed.
. "${0%/*}/lib.sh"
build_tools
seed=${PVFS_RANDOM_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
# One CPU each: this machine may have no more than two, and starting a program takes far longer when two CPUs of a guest
# must wait for each other.
one=${kernels##* }
two=${kernels%% *}
wire=$(mktemp -d "${TMPDIR:-/tmp}/pvfs-two.XXXXXX") || exit 1
tests/vm/run --kernel "$two" --timeout $((900 * PVFS_VM_SLOW)) --smp 1 --mem 2048 --lan "$wire:2" -- \
	env PVFS_BUILD="$build" PVFS_VM_SLOW="$PVFS_VM_SLOW" tests/vm/guest/far.sh >"$wire/said" 2>&1 </dev/null &
other=$!
trap 'kill -TERM $other 2>/dev/null; wait $other; rm -rf "$wire"' EXIT
guest_suite "$one" two.sh 900 --smp 1 --mem 3072 --lan "$wire:1" -- "$seed"
# The first guest has ended the second, if it could.
timeout 60 tail --pid=$other -s 0.1 -f /dev/null || kill -TERM $other
wait $other
rc=$?
[ $rc = 0 ] || sed 's/^/# /' "$wire/said"
tap $rc "$two far.sh: the second guest ended well and the kernel was silent"
finish
