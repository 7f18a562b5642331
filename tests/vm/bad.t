#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Bad input and lost servers: what fails says so in time, and comes back.
. "${0%/*}/lib.sh"
build_tools
for k in $kernels; do
	guest_suite "$k" bad.sh 1500 $(two_cpus "$k") --append slab_nomerge
done
finish
