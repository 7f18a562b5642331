#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs what building and testing PVFS needs on Debian 12, and fetches both
# Debian stock kernels (6.1 and 6.12) with their headers into a cache.
# `make deps` calls it. No questions asked; no network and no change where all
# is there already. Use tools/kernels.sh to find the kernels afterwards.
#
# The kernels are unpacked, not installed: installing an image would run
# update-initramfs and the boot loader of the host, and the 6.12 headers depend
# on their image.

set -eu
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

usage()
{
	cat <<-END
	usage: tools/deps.sh [--check] [--bench] [--debug] [--no-kernels]
	  --check       also what only checks of the source text need: shellcheck, and
	                checkpatch.pl, put into the cache as scripts/checkpatch.pl
	  --bench       also what benchmarks run, compare with and draw with
	  --debug       also what debug kernels are built of (make test-debug)
	  --no-kernels  packages only, don't fetch kernels
	environment: PVFS_KERNELS  kernel cache (default /var/cache/pvfs-kernels)
	END
}

say()
{
	echo "deps.sh: $*"
}

die()
{
	echo "deps.sh: $*" >&2
	exit 1
}

build="gcc gcc-12 make pkg-config libdb5.3-dev libssl-dev liburing-dev
	libjson-c-dev libsmartcols-dev libmount-dev libcmocka-dev libfuse3-dev libconfig-dev
	libelf1 libc6-dev binutils"
romio="mpich libmpich-dev autoconf automake libtool patch xz-utils"
check="clang clang-tidy sparse"
guest="qemu-system-x86 busybox-static cpio xz-utils zstd kmod iproute2 dwarves"
tests="perl attr acl nfs-kernel-server nfs-common rpcbind git rsync man-db fio
	e2fsprogs procps systemd strace
	sqlite3 zip unzip postgresql dbench stress-ng debootstrap dpkg-dev
	bzip2 gpgv tzdata python3 libpython3.11-testsuite"
bench="postmark bonnie++ glusterfs-server glusterfs-client gnuplot-nox"
debug="flex bison bc libelf-dev linux-source-6.1 linux-source-6.12"
source="shellcheck linux-source-6.1"

here=$(cd "$(dirname "$0")" && pwd -P)
cache=${PVFS_KERNELS:-/var/cache/pvfs-kernels}
packages="$build $romio $check $guest $tests"
kernels="6.1 6.12"
checkpatch=
while [ $# -gt 0 ]; do
	case $1 in
	--check)
		checkpatch=1
		packages="$packages $source";;
	--bench)
		packages="$packages $bench";;
	--debug)
		packages="$packages $debug";;
	--no-kernels)
		kernels="";;
	-h|--help)
		usage
		exit 0;;
	*)
		echo "deps.sh: unknown argument '$1'" >&2
		usage >&2
		exit 2;;
	esac
	shift
done
[[ $cache = /* ]] || die "PVFS_KERNELS must be an absolute path, not '$cache'"

tmp=
policy=/usr/sbin/policy-rc.d

cleanup()
{
	if [ -n "$tmp" ]; then
		restore_policy
		rm -rf "$tmp"
	fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Packages that bring services must not start them: invoke-rc.d asks
# policy-rc.d, and 101 means "not allowed".
forbid_services()
{
	if [ -e $policy ] || [ -L $policy ]; then
		cp -a $policy "$tmp/policy.saved"
	fi
	: >"$tmp/policy.ours"
	printf '#!/bin/sh\nexit 101\n' >$policy.pvfs
	chmod 755 $policy.pvfs
	mv -f $policy.pvfs $policy
}

restore_policy()
{
	[ -e "$tmp/policy.ours" ] || return 0
	if [ -e "$tmp/policy.saved" ] || [ -L "$tmp/policy.saved" ]; then
		cp -a --remove-destination "$tmp/policy.saved" $policy
	else
		rm -f $policy
	fi
	rm -f "$tmp/policy.ours"
}

# Everything below may find out that something is missing; the first that does
# pays for the root check, the temporary directory and apt-get update.
prepared=
prepare()
{
	[ -z "$prepared" ] || return 0
	prepared=1
	[ "$(id -u)" = 0 ] || die "must be root to install packages"
	command -v apt-get >/dev/null || die "no apt-get: this is for Debian 12"
	tmp=$(mktemp -d)
	chmod 755 "$tmp"
	# One dead third-party source must not stop us; what we need is in
	# Debian's own, and its absence is reported where it hurts.
	apt-get -qq -o DPkg::Lock::Timeout=300 update ||
		say "apt-get update had errors, going on" >&2
}

apt_install()
{
	local rc=0

	forbid_services
	apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confold \
		install --no-install-recommends "$@" </dev/null || rc=$?
	restore_policy
	[ $rc = 0 ] || die "apt-get install failed ($rc)"
}

missing()
{
	local p status

	for p in "$@"; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null) || true
		[ "$status" = installed ] || echo "$p"
	done
}

# Newest linux-image package of series $1 that apt can fetch.
newest_image()
{
	local re p

	case $1 in
	6.1)	re='^linux-image-6\.1\.0-[0-9]+-amd64$';;
	6.12)	re='^linux-image-6\.12\.[0-9]+\+deb12-amd64$';;
	*)	die "no pattern for kernel $1";;
	esac
	apt-cache pkgnames linux-image-6. | grep -E "$re" | sort -rV |
	while read -r p; do
		if [ -n "$(apt-cache madison "$p")" ]; then
			echo "$p"
			break
		fi
	done
}

# The linux-kbuild package that the headers package $1 depends on.
kbuild_of()
{
	apt-cache show --no-all-versions "$1" |
		sed -n 's/^Depends:.*\(linux-kbuild-[^ ,]*\).*/\1/p' | head -n 1
}

# Unpacks image, headers and kbuild of series $1 into the cache and makes
# `make -C <headers> M=...` work from there: the packages know each other by
# paths under /usr/src, which become paths in the cache.
fetch_kernel()
{
	local series=$1 image kver hdr common kbuild dir deb
	local -a debs

	image=$(newest_image "$series")
	[ -n "$image" ] ||
		die "apt knows no kernel $series (is bookworm-security main in the sources?)"
	kver=${image#linux-image-}
	hdr=linux-headers-$kver
	common=${hdr%-amd64}-common
	kbuild=$(kbuild_of "$hdr")
	[ -n "$kbuild" ] || die "$hdr names no linux-kbuild package"

	say "fetching kernel $kver"
	mkdir -p "$tmp/debs-$series" "$cache"
	(
		cd "$tmp/debs-$series"
		apt-get -qq -o APT::Sandbox::User=root download \
			"$image" "$hdr" "$common" "$kbuild"
	) || die "cannot download kernel $kver"
	debs=("$tmp/debs-$series"/*.deb)
	[ ${#debs[@]} = 4 ] || die "expected 4 packages of $kver, got ${#debs[@]}"

	# Unpacked beside its final place and renamed when complete.
	dir=$cache/.$kver.$$
	rm -rf "$dir"
	mkdir "$dir"
	for deb in "${debs[@]}"; do
		dpkg -x "$deb" "$dir"
	done
	rm -rf "$tmp/debs-$series"
	[ -f "$dir/boot/vmlinuz-$kver" ] || die "no vmlinuz in $image"

	# A guest pays about a second for each big .ko.xz it unpacks.
	find "$dir/lib/modules/$kver" -name '*.ko.xz' -print0 | xargs -0r -n 64 -P 2 xz -d
	sed -i 's/\.ko\.xz$/.ko/' "$dir/lib/modules/$kver/modules.order"
	depmod -b "$dir" "$kver"

	ln -sfn "../../../usr/src/$hdr" "$dir/lib/modules/$kver/build"
	ln -sfn "../../../usr/src/$common" "$dir/lib/modules/$kver/source"
	sed -i "s|/usr/src/|$cache/$kver/usr/src/|" "$dir/usr/src/$hdr/Makefile"

	rm -rf "${cache:?}/$kver"
	mv "$dir" "$cache/$kver"
	ln -sfn "$kver" "$cache/$series"
}

# Unpacks the kernel proper out of the vmlinuz of $1 (6.1 is xz, 6.12 zstd): QEMU
# boots it directly, and the guest is spared 3 s of emulated unpacking. It is
# optional: on any surprise there is none and tests/vm/run takes the vmlinuz.
unpack_vmlinux()
{
	local from=$1 to=$2 tool magic offset

	for tool in xz:'\xfd7zXZ\x00' zstd:'\x28\xb5\x2f\xfd'; do
		magic=${tool#*:}
		tool=${tool%%:*}
		# The image goes on after the archive; the tools complain of that.
		for offset in $(grep -abo -P "$magic" "$from" | cut -d: -f1 | head -n 4); do
			tail -c +$((offset + 1)) "$from" | $tool -dc >"$to.$$" 2>/dev/null || true
			if readelf -hn "$to.$$" 2>/dev/null | grep -q Xen; then
				chmod 644 "$to.$$"
				mv "$to.$$" "$to"
				return
			fi
		done
	done
	rm -f "$to.$$"
	say "cannot unpack $from, guests will boot slower" >&2
}

# shellcheck disable=SC2086 # a list of words
want=$(missing $packages)
if [ -n "$want" ]; then
	prepare
	# shellcheck disable=SC2086 # a list of words
	say "installing" $want
	# shellcheck disable=SC2086 # a list of words
	apt_install $want
fi

for k in $kernels; do
	if ! PVFS_KERNELS=$cache "$here/kernels.sh" "$k" kver >/dev/null 2>&1; then
		prepare
		fetch_kernel "$k"
	fi
	vmlinuz=$(PVFS_KERNELS=$cache "$here/kernels.sh" "$k" vmlinuz)
	vmlinux=${vmlinuz/vmlinuz-/vmlinux-}
	[ -e "$vmlinux" ] || unpack_vmlinux "$vmlinuz" "$vmlinux"
done

# The real tree of headers that tests copy, untar and walk: as long as one is
# there, which version does not matter.
if [ -n "$kernels" ] && ! compgen -G '/usr/src/linux-headers-6.1.0-*-common/Makefile' >/dev/null; then
	prepare
	kver=$(PVFS_KERNELS=$cache "$here/kernels.sh" 6.1 kver)
	say "installing linux-headers-${kver%-amd64}-common"
	apt_install "linux-headers-${kver%-amd64}-common"
fi

# What the tests of real programs unpack and build in the guest.
"$here/debian.sh" >/dev/null || die "cannot fetch the packages that tests/vm/programs.t unpacks and builds"
"$here/debian.sh" --mpich >/dev/null || die "cannot fetch the source of MPICH"

# The tarball takes some seconds to go through, so only once.
if [ -n "$checkpatch" ] && ! [ -x "$cache/scripts/checkpatch.pl" ]; then
	mkdir -p "$cache/scripts.$$"
	tar -C "$cache/scripts.$$" --strip-components=2 -xf /usr/src/linux-source-6.1.tar.xz \
		linux-source-6.1/scripts/{checkpatch.pl,spelling.txt,const_structs.checkpatch} ||
		die "cannot unpack checkpatch.pl"
	rm -rf "$cache/scripts"
	mv "$cache/scripts.$$" "$cache/scripts"
fi
