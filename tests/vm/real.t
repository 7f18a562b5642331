#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Real amounts of real input: the kernel's headers, one large file by several
# processes, one large directory. The first kernel gets all of it, the others get
# a part: what the amount shows does not depend on the kernel.
#
# environment: PVFS_REAL_MB (default 256), PVFS_REAL_FILES (default 5000; 100000
# takes ten minutes), PVFS_REAL_HEADERS (default include; . is all of them)
. "${0%/*}/lib.sh"
build_tools
mb=${PVFS_REAL_MB:-256}
files=${PVFS_REAL_FILES:-5000}
# The right sum, worked out where it is cheap.
sum=$("$build/tests/vm/pario" print "$mb" | sha256sum | cut -d' ' -f1)
headers=${PVFS_REAL_HEADERS:-include}
for k in $kernels; do
	guest_suite "$k" real.sh 1500 --mem 6144 -- "$mb" "$sum" "$files" $headers
	[ "$files" -le 3000 ] || files=3000
	headers=include/linux
done
finish
