#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The round-trip budget of the design: counts, which no noise can blur.
. "${0%/*}/lib.sh"
build_tools
for k in $kernels; do
	guest_suite "$k" counts.sh 900
done
finish
