#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The conformance suite through the module on every supported kernel, and on ext4 in the newer one's guest as the control.
. "${0%/*}/lib.sh"
build_tools
make -s B="$build" "$build/tests/posix/conform" || {
	echo "Bail out! the conformance suite does not build"
	exit 1
}
for k in $kernels; do
	control=()
	[ "$k" != "${kernels##* }" ] || control=(control)
	guest_suite "$k" conform.sh 900 --disk 1:1G -- "${control[@]}"
done
finish
