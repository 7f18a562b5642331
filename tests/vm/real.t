#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Real amounts of real input: the kernel's headers, one large file by several
# processes, one large directory. The newer kernel gets more than the older: what
# the amount shows does not depend on the kernel. PVFS_ALL: more yet.
#
# environment: PVFS_REAL_MB, PVFS_REAL_FILES (100000 takes ten minutes),
# PVFS_REAL_HEADERS (. is all of them)
. "${0%/*}/lib.sh"
build_tools
for k in $kernels; do
	mb=128 files=2000 headers=include/linux
	[ "$k" != 6.1 ] || mb=64 files=1000 headers=include/net
	[ -z "${PVFS_ALL-}" ] || mb=256 files=5000 headers=include
	mb=${PVFS_REAL_MB:-$mb}
	# The right sum, worked out where it is cheap.
	sum=$("$build/tests/vm/pario" print "$mb" | sha256sum | cut -d' ' -f1)
	guest_suite "$k" real.sh 1500 --mem 6144 -- "$mb" "$sum" "${PVFS_REAL_FILES:-$files}" "${PVFS_REAL_HEADERS:-$headers}"
done
finish
