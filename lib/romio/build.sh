#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1
#
# Builds ROMIO with the driver for PVFS as a shared library over Debian's MPICH:
# what an MPI program that is linked with it, or has it preloaded, calls for
# MPI_File_*. Debian's libmpich has a ROMIO of its own, without the driver.
# `make romio` calls it.
#
#	build.sh BUILD		makes BUILD/libpvfs-romio.so, and BUILD/romio with its tests
#
# The source is Debian's. What is changed in it, by mpich-4.0.2.patch: the driver
# is named in its lists; it finds an MPI that is installed; and two places want
# what libmpich does not export. mpio_err.c is ours.
set -eu -o pipefail
export LC_ALL=C

die()
{
	echo "romio: $*" >&2
	exit 1
}

[ $# = 1 ] || { echo "usage: lib/romio/build.sh BUILD" >&2; exit 2; }
here=$(cd "${0%/*}" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
build=$(mkdir -p "$1" && cd "$1" && pwd -P)
work=$build/romio
version=4.0.2
src=$work/mpich-$version/src/mpi/romio
log=$work/build.log
lib=$(gcc -print-multiarch)

command -v mpicc.mpich >/dev/null || die "no mpicc.mpich: run make deps"
mpichversion | grep -q "Version:[[:space:]]*$version" || die "the patch is for MPICH $version, not: $(mpichversion | head -n 1)"
[ -e "$build/libpvfs.a" ] || die "no libpvfs: run make"

# What it is made of. Nothing is done when that is what it was the last time.
sum=$(cat "$here"/ad_pvfs/* "$here"/*.c "$here"/*.patch "$here"/build.sh "$top/lib/pvfs.h" "$build/libpvfs.a" | sha256sum)
[ "$sum" != "$(cat "$work/made-of" 2>/dev/null)" ] || [ ! -e "$build/libpvfs-romio.so" ] || exit 0

step()
{
	"$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; die "failed: $*; see $log"; }
}

# Anew when the build system is another one; else make finds out what is to be done.
recipe=$(cat "$here"/*.patch "$here"/build.sh "$here/ad_pvfs/Makefile.mk" | sha256sum)
if [ "$recipe" != "$(cat "$work/recipe" 2>/dev/null)" ]; then
	rm -rf "$work"
	mkdir -p "$work/mpi/bin"
	: >"$log"
	source=$("$top/tools/debian.sh" --mpich)
	step tar -C "$work" -xf "$source/mpich_$version.orig.tar.xz" mpich-$version/src/mpi/romio
	patch -d "$work/mpich-$version" -p1 -s <"$here/mpich-$version.patch" || die "the patch does not apply"
	# As if it were installed in a directory of its own.
	ln -sf "$(command -v mpicc.mpich)" "$work/mpi/bin/mpicc"
	ln -sfn "/usr/include/$lib/mpich" "$work/mpi/include"
	ln -sfn "/usr/lib/$lib" "$work/mpi/lib"
	mkdir -p "$src/adio/ad_pvfs"
	cp "$here"/ad_pvfs/* "$src/adio/ad_pvfs/"
	cd "$src"
	for dir in mpl .; do
		(cd $dir && step autoreconf -fi)
	done
	step ./configure --with-mpi="$work/mpi" --with-mpi-impl=cray --with-file-system=ufs+nfs+pvfs+testfs \
		--disable-f77 --disable-f90 --with-mpl-prefix=embedded --enable-shared --disable-static \
		CFLAGS="-O2 -g -w -D_GNU_SOURCE -I$top/lib"
	echo "$recipe" >"$work/recipe"
fi
for f in "$here"/ad_pvfs/*; do
	cmp -s "$f" "$src/adio/ad_pvfs/${f##*/}" || cp "$f" "$src/adio/ad_pvfs/"
done
cmp -s "$here/mpio_err.c" "$src/mpi-io/glue/default/mpio_err.c" || cp "$here/mpio_err.c" "$src/mpi-io/glue/default/"
cd "$src"
# What configure would define inside of MPICH; without them views that are arrays are taken apart wrongly.
combiners=$(printf -- '-DMPIIMPL_HAVE_MPI_COMBINER_%s=1 ' DUP SUBARRAY DARRAY)
step make -C mpl -j"$(nproc)"
step make -j"$(nproc)" CPPFLAGS="-DHAVE_STATUS_SET_BYTES=1 $combiners" libromio.la
# With libpvfs in it, and only MPI's functions to be seen.
echo '{ global: MPI_*; PMPI_*; MPIO_*; PMPIO_*; local: *; };' >"$work/map"
readarray -t objects < <(find . -path ./test -prune -o -path '*/.libs/*.o' -print)
step "$work/mpi/bin/mpicc" -shared -o "$build/libpvfs-romio.so" -Wl,-soname,libpvfs-romio.so -Wl,--no-undefined \
	-Wl,--version-script="$work/map" "${objects[@]}" "$build/libpvfs.a" -lcrypto -lconfig -lm
echo "$sum" >"$work/made-of"
