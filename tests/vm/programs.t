#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Real programs on two mounts of one volume: data bases, git, compilers, copies,
# packages, load and verify. The short list on the newer kernel; PROGRAMS=all (make
# programs) has all of them at full length on both. Arguments are those checks'
# names (as in guest/programs_*.sh) to which the run is to be limited.
. "${0%/*}/lib.sh"
build_tools
fetch=() timeout=900 args=()
if [ "${PROGRAMS-}" = all ]; then
	fetch=(--all)
	timeout=14000
	args=(-a)
else
	kernels=${kernels##* }
fi
for f; do
	args+=(-o "$f")
done
# The guest has no network. Without the packages there is nothing to test: no skip, a failure.
debian=$(tools/debian.sh "${fetch[@]}")
tap $? "Debian's packages are there, or can be fetched"
[ -n "$debian" ] || finish
args+=(-d "$debian")
for k in $kernels; do
	guest_suite "$k" programs.sh "$timeout" --mem 6144 -- "${args[@]}"
done
finish
