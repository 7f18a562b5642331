#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Allocations of the module fail: errors may come of that, and nothing else. A seed that is new each time and printed.
. "${0%/*}/../vm/lib.sh"
build_tools
seed=${PVFS_RANDOM_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
for k in $kernels; do
	guest_suite "$k" faults.sh 600 -- "$seed"
done
finish
