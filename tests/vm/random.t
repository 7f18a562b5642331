#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The random testers through the module, one client and two: fixed seeds, on the newer kernel (on both with PVFS_ALL), and
# one that is new each time and printed. `make soak` runs them for long.
. "${0%/*}/lib.sh"
build_tools
seed=${PVFS_RANDOM_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
for k in $kernels; do
	all=()
	[ "$k" = 6.1 ] && [ -z "${PVFS_ALL-}" ] || all=(all)
	guest_suite "$k" random.sh 1800 $(two_cpus "$k") -- "$seed" "${all[@]}"
done
finish
