#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a POSIX file system does, through the module, on every supported kernel.
. "${0%/*}/lib.sh"
build_tools
for k in $kernels; do
	guest_suite "$k" posix.sh 600 $(two_cpus "$k")
done
finish
