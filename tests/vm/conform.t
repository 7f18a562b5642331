#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The conformance suite through the module: one half of the tables on each kernel, as little in them depends on that. With
# PVFS_ALL all of them on both, and on ext4 in the same guest, the control, which tests/integ/conform.t has on the host.
. "${0%/*}/lib.sh"
build_tools
make -s B="$build" "$build/tests/posix/conform" || {
	echo "Bail out! the conformance suite does not build"
	exit 1
}
for k in $kernels; do
	args=(1/1 control)
	if [ -z "${PVFS_ALL-}" ]; then
		[ "$k" = 6.1 ] && args=(2/2) || args=(1/2)
	fi
	guest_suite "$k" conform.sh 900 --disk 1:1G -- "${args[@]}"
done
finish
