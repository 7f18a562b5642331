#!/bin/bash
# Builds pvfs.ko for one kernel: kmod-build.sh 6.1|6.12|debug|debug-6.12|VERSION. The result is build/kmod/<full version>/pvfs.ko.
# The sources are mirrored there first, so that the tree stays clean and two kernels don't meet.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
more=()
case ${1:-} in
6.1 | 6.12 | debug*)
	kver=$(tools/kernels.sh "$1" kver)
	headers=$(tools/kernels.sh "$1" build)
	# The debug kernels have UBSan for what asks for it.
	[[ $1 != debug* ]] || more=(UBSAN_SANITIZE=y)
	;;
?*)
	kver=$1
	headers=/lib/modules/$kver/build
	;;
*)
	echo "usage: $0 6.1|6.12|debug|debug-6.12|VERSION" >&2
	exit 2
	;;
esac
if [ ! -e "$headers/Makefile" ]; then
	echo "no headers for kernel $kver in $headers: install linux-headers-$kver" >&2
	exit 1
fi
dir=$top/build/kmod/$kver
mkdir -p "$dir"/kmod/{net,fs} "$dir/common"
# Only what changed, so that make sees what it has to do; and nothing that is gone from the tree.
for f in Kbuild kmod/{,net/,fs/}*.[ch] common/*.[ch] common/*.def; do
	cmp -s "$f" "$dir/$f" || cp "$f" "$dir/$f"
done
for f in "$dir"/kmod/{,net/,fs/}*.[ch] "$dir"/common/*.[ch]; do
	f=${f#"$dir"/}
	case $f in *.mod.c) continue ;; esac
	[ -e "$f" ] || rm "$dir/$f"
done
make --no-print-directory -s -j2 -C "$headers" M="$dir" ${C:+C=$C} ${W:+W=$W} "${more[@]}" modules
# What the tests in guests load beside it.
mkdir -p "$dir/late"
for f in Kbuild late.c; do
	cmp -s "tests/vm/late/$f" "$dir/late/$f" || cp "tests/vm/late/$f" "$dir/late/$f"
done
make --no-print-directory -s -j2 -C "$headers" M="$dir/late" ${C:+C=$C} ${W:+W=$W} "${more[@]}" modules
echo "$dir/pvfs.ko"
