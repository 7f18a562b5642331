#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The conformance suite without a kernel module: over libpvfs, on real daemons; and the same tables on an ext4, the
# control, that says whether the tables are right. TAP of both, numbered through.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/conform.sh"

# Before cleanup removes the directory that it is in.
unmount_control() {
	local rc=$?
	mountpoint -q "$T/mnt" && umount "$T/mnt"
	(exit $rc)
	cleanup
}
trap unmount_control EXIT

make_cluster "$C" 4
start_cluster "$C"
run libpvfs -b lib "$(mgr_address "$C"),test,$C/cluster.key"

"$PVFS" stop "$C" >/dev/null
C=$T/striped
make_cluster "$C" 4 --stuff-max 0
start_cluster "$C"
run "libpvfs, striped" -b lib "$(mgr_address "$C"),test,$C/cluster.key"

# The control. A file system of its own, where root may have one; else a directory, if it is on ext4.
control=''
if [ "$(id -u)" = 0 ] && truncate -s 512M "$T/ext4" && mkfs.ext4 -q -F "$T/ext4" && mkdir "$T/mnt" &&
	mount -o loop "$T/ext4" "$T/mnt" 2>"$T/mount.err"; then
	control=$T/mnt
elif [ "$(stat -f -c %T "$T")" = ext2/ext3 ]; then
	control=$T
fi
if [ -n "$control" ]; then
	run ext4 "$control"
else
	# Not a failure of ours: tests/vm/conform.t has the control on its own disk, on both kernels.
	echo "# NO CONTROL HERE: no loop mount ($(cat "$T/mount.err")) and $T is not on ext4, but $(stat -f -c %T "$T")"
	echo "ok $((++TESTS)) - ext4 # SKIP no ext4 to be had: $(cat "$T/mount.err")"
fi
finish
