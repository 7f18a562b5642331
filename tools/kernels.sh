#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Where the Debian stock kernels that PVFS is built and tested against are.
# tools/deps.sh fetches them; this script only reads the cache, so it is cheap
# enough for Makefiles. The cache is $PVFS_KERNELS, else /var/cache/pvfs-kernels;
# that of the debug kernels, which tools/debug/kernel.sh builds,
# $PVFS_DEBUG_KERNELS, else build/debug.

set -u

usage()
{
	cat <<-END
	usage: tools/kernels.sh 6.1|6.12|debug|debug-6.12 [kver|vmlinuz|boot|modroot|build]
	  kver     kernel release, as in uname -r
	  vmlinuz  the kernel image
	  boot     what QEMU should boot: the unpacked kernel if there, else vmlinuz
	  modroot  directory that contains lib/modules/<kver> (for modprobe -d)
	  build    build directory for make -C <build> M=...
	Without the second argument: all, as name=value lines.
	       tools/kernels.sh checkpatch
	The path of checkpatch.pl (there after tools/deps.sh --check).
	END
}

die()
{
	echo "kernels.sh: $*" >&2
	exit 1
}

cache=${PVFS_KERNELS:-/var/cache/pvfs-kernels}
how='make deps'
case ${1-} in
-h|--help)
	usage
	exit 0;;
checkpatch)
	[ -x "$cache/scripts/checkpatch.pl" ] ||
		die "checkpatch.pl is not in $cache: run tools/deps.sh --check"
	echo "$cache/scripts/checkpatch.pl"
	exit 0;;
6.1|6.12)
	;;
debug|debug-6.12)
	cache=${PVFS_DEBUG_KERNELS:-$(cd "$(dirname "$0")/.." && pwd -P)/build/debug}
	how="tools/debug/kernel.sh $1";;
*)
	echo "kernels.sh: unknown kernel '${1-}' (know 6.1, 6.12, debug and debug-6.12)" >&2
	usage >&2
	exit 2;;
esac
if [ $# -gt 2 ]; then
	usage >&2
	exit 2
fi

# deps.sh makes the link last: where it is, the kernel is complete.
kver=$(readlink "$cache/$1") ||
	die "kernel $1 is not in $cache: run $how"
root=$cache/$kver
vmlinuz=$root/boot/vmlinuz-$kver
boot=$root/boot/vmlinux-$kver
[ -e "$boot" ] || boot=$vmlinuz
build=$root/usr/src/linux-headers-$kver
for f in "$vmlinuz" "$root/lib/modules/$kver/modules.dep" "$build/Makefile"; do
	[ -e "$f" ] || die "kernel $1 is incomplete, no $f: remove $cache/$1 and run $how"
done

case ${2-} in
'')
	printf '%s\n' "kver=$kver" "vmlinuz=$vmlinuz" "boot=$boot" "modroot=$root" "build=$build";;
kver)
	echo "$kver";;
vmlinuz)
	echo "$vmlinuz";;
boot)
	echo "$boot";;
modroot)
	echo "$root";;
build)
	echo "$build";;
*)
	echo "kernels.sh: unknown item '$2' (know kver, vmlinuz, boot, modroot, build)" >&2
	usage >&2
	exit 2;;
esac
