#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The random testers through the module, one client and two; on the newer kernel beside ext4 in the same guest, as what
# that shows, whether the testers are right, depends on no kernel. Fixed seeds, and one that is new each time and printed.
# `make soak` runs them for long.
. "${0%/*}/lib.sh"
build_tools
seed=${PVFS_RANDOM_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
for k in $kernels; do
	control=()
	[ "$k" != "${kernels##* }" ] || control=(control)
	guest_suite "$k" random.sh 1000 -- "$seed" "${control[@]}"
done
finish
