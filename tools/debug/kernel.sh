#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the debug kernels of `make test-debug` from Debian's sources and keeps
# them, laid out so that tools/kernels.sh finds there what it finds of a stock
# kernel. One that is there already and is made of the same things is left
# alone: else it takes a quarter of an hour of one CPU.

set -eu
export LC_ALL=C

usage()
{
	cat <<-END
	usage: tools/debug/kernel.sh debug|debug-6.12
	Builds that kernel, of linux-source-6.1 or linux-source-6.12, if need be.
	environment: PVFS_DEBUG_KERNELS  where they are (default build/debug)
	             PVFS_DEBUG_JOBS     of make at once (default: one for each CPU)
	END
}

die()
{
	echo "kernel.sh: $*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd -P)
cache=${PVFS_DEBUG_KERNELS:-$(cd "$here/../.." && pwd -P)/build/debug}
[[ $cache = /* ]] || die "PVFS_DEBUG_KERNELS must be an absolute path, not '$cache'"
case ${1-} in
debug)		series=6.1;;
debug-6.12)	series=6.12;;
-h|--help)
	usage
	exit 0;;
*)
	usage >&2
	exit 2;;
esac
name=$1
tarball=/usr/src/linux-source-$series.tar.xz
[ -e "$tarball" ] || die "no $tarball: run tools/deps.sh --debug"

mkdir -p "$cache"
exec 8>"$cache/.lock.$series"
flock 8

# What it is made of; where the link $name is, it is complete.
made=$cache/$name.made
want=$(cat "$0" "$here/kernel.config" <(stat -c '%s %Y' "$tarball") <(gcc --version) | sha256sum)
if [ -e "$cache/$name" ] && [ "$(cat "$made" 2>/dev/null)" = "$want" ]; then
	exit 0
fi
echo "kernel.sh: building $name in $cache"
rm -f "$cache/$name" "$made"

src=$cache/source-$series
obj=$cache/objects-$series
stat=$(stat -c '%s %Y' "$tarball")
if [ "$(cat "$src/.unpacked" 2>/dev/null)" != "$stat" ]; then
	rm -rf "$src" "$obj"
	mkdir "$src"
	tar -C "$src" --strip-components=1 -xf "$tarball"
	# The filter that aims injected faults at the module. It was kept from x86 for
	# its stack traces of old; 6.2 has this line no more.
	sed -i '/^config FAULT_INJECTION_STACKTRACE_FILTER/,/^config /{/depends on !X86_64/d}' \
		"$src/lib/Kconfig.debug"
	echo "$stat" >"$src/.unpacked"
fi

kmake()
{
	# UBSan is for what asks for it, which is the module.
	make -s -C "$src" O="$obj" LOCALVERSION=-debug KBUILD_BUILD_TIMESTAMP=@0 UBSAN_SANITIZE=n "$@"
}

mkdir -p "$obj"
kmake tinyconfig >/dev/null
(cd "$src" && scripts/kconfig/merge_config.sh -m -O "$obj" "$obj/.config" "$here/kernel.config") >/dev/null 2>&1
kmake olddefconfig 2>/dev/null
# What depends on something that is not there is dropped without a word.
lost=$(while IFS== read -r key value; do
	case $key in
	CONFIG_*)
		if [ "$value" = n ]; then
			! grep -q "^$key=" "$obj/.config" || echo "$key=n"
		else
			grep -qFx "$key=$value" "$obj/.config" || echo "$key=$value"
		fi;;
	esac
done <"$here/kernel.config")
for l in $lost; do
	# An option of the other series has no meaning here.
	if grep -rqsE "^\s*(menu)?config ${l:7:-2}\$" --include='Kconfig*' "$src"; then
		die "linux-source-$series does not take $l"
	fi
done

kmake -j"${PVFS_DEBUG_JOBS:-$(nproc)}" bzImage modules 8>&-
kver=$(kmake kernelrelease)
root=$cache/$kver
rm -rf "$root"
mkdir -p "$root/boot" "$root/lib" "$root/usr/src"
kmake INSTALL_MOD_PATH="$root" modules_install >/dev/null
cp "$obj/arch/x86/boot/bzImage" "$root/boot/vmlinuz-$kver"
ln -s "../../../objects-$series" "$root/usr/src/linux-headers-$kver"
ln -sfn "../../../usr/src/linux-headers-$kver" "$root/lib/modules/$kver/build"
echo "$want" >"$made"
ln -sfn "$kver" "$cache/$name"
