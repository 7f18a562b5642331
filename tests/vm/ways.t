#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The four ways to a file at once: the module's mount, the mount from user space,
# libpvfs, MPI-IO. One kernel: what is between them does not depend on it.
. "${0%/*}/lib.sh"
build_tools
[ -e "$build/libpvfs-romio.so" ] || { echo "Bail out! build first: make romio"; exit 1; }
mpicc.mpich -O1 -o "$build/tests/vm/romio_test" tests/romio/romio_test.c -L"$build" -lpvfs-romio || {
	echo "Bail out! romio_test does not build"
	exit 1
}
guest_suite "${kernels##* }" ways.sh 300
finish
