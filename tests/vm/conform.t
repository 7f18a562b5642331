#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The conformance suite through the module, and on ext4 in the same guest as the control, on every supported kernel.
. "${0%/*}/lib.sh"
build_tools
make -s B="$build" "$build/tests/posix/conform" || {
	echo "Bail out! the conformance suite does not build"
	exit 1
}
for k in $kernels; do
	guest_suite "$k" conform.sh 900 --disk 1:1G
done
finish
