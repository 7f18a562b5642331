# SPDX-License-Identifier: GPL-2.0
# pvfsd.sh - what the tests of pvfsd share: two mounts, $T/m1 and $T/m2, of the volume of cluster $C. Sourced after lib.sh.

unmount_all() {
	local rc=$? m
	for m in "$T"/m1 "$T"/m2; do
		grep -q " $m " /proc/mounts && umount -l "$m"
		# If it is what hangs, its callers end with it.
		pkill -KILL -f "[p]vfsd .* $m\$"
	done
	(exit $rc)
	cleanup
}
trap unmount_all EXIT

if [ "$(id -u)" != 0 ] || ! [ -c /dev/fuse ]; then
	# Loud: there is no other test of it.
	echo "# NO FUSE HERE: pvfsd was not tested"
	skip_all "no /dev/fuse, or not root"
fi
mkdir "$T/m1" "$T/m2"

# mount_both OPTIONS
mount_both() {
	local m
	for m in m1 m2; do
		ok "pvfsd mounts on $m" "$BIN/pvfsd" -o "key=$C/cluster.key,$1" "$(mgr_address "$C"):/test" "$T/$m"
	done
}

unmount_both() {
	ok "m1 is unmounted" umount "$T/m1"
	ok "m2 is unmounted" umount "$T/m2"
	is "no pvfsd is left" "$(wait_for 10 bash -c "! pgrep -f '[p]vfsd .*$T/m'" && echo none)" none
}
