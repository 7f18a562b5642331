#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libpvfs as it is installed: its examples built as their users would, by pkg-config, and run; what the library exports.
. "$(dirname "$0")/lib.sh"
[ -e "$ROOT/build/libpvfs.so.0" ] || { echo "Bail out! build first: make"; exit 1; }

ok "make install" make -s -C "$ROOT" install DESTDIR="$T/root"
# The names of the paths that pkg-config gives are those of the system it will be on.
export PKG_CONFIG_PATH=$T/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$T/root LD_LIBRARY_PATH=$T/root/usr/lib
# Not the sanitizers': the library is the installed one.
unset ASAN_OPTIONS UBSAN_OPTIONS

# built NAME [compiler and flags]
built() {
	local name=$1
	shift
	# shellcheck disable=SC2046 # words
	"${@:-cc}" -Wall -Wextra -Werror -o "$T/$name" "$ROOT/lib/examples/$name.c" $(pkg-config --cflags --libs pvfs)
}
for f in "$ROOT"/lib/examples/*.c; do
	name=$(basename "$f" .c)
	ok "the example $name is built by pkg-config" built "$name"
done
ok "a program is linked statically with it" cc -o "$T/static" "$ROOT/lib/examples/first.c" -I"$T/root/usr/include" \
	"$T/root/usr/lib/libpvfs.a" -lcrypto -lconfig -pthread
printf '#include <pvfs.h>\nint main() { return pvfs_version()[0] == 0; }\n' >"$T/cxx.cc"
# shellcheck disable=SC2046 # words
ok "a C++ program is" g++ -Wall -Werror -o "$T/cxx" "$T/cxx.cc" $(pkg-config --cflags --libs pvfs)
ok "... and runs" "$T/cxx"

make_cluster "$C" 4
start_cluster "$C"
export PVFS_KEY=$C/cluster.key
mgr=$(mgr_address "$C")
like "first" "$("$T/first" "$mgr" test)" 'Hello, iods!'
p cp pvfs:/hello "$T/hello"
is "... what it wrote is there" "$(cat "$T/hello")" "Hello, iods!"
like "the statically linked one" "$("$T/static" "$mgr" test)" ' hello$'
for xy in "0 0" "3 1" "2 3"; do
	# shellcheck disable=SC2086 # words
	is "tile $xy" "$("$T/tile" "$mgr" test $xy)" "tile ${xy/ /,}: 262144 bytes"
done
out=$("$T/small" "$mgr" test)
like "small: ten thousand files in few messages" "$out" '^10000 files, 1[67][0-9] messages$'
make_file "$T/random" 10000000
# shellcheck disable=SC2002 # from a pipe
is "put: from a pipe" "$(cat "$T/random" | "$T/put" "$mgr" test /put)" "10000000 bytes"
p cp pvfs:/put "$T/put.back"
is "... whole" "$(sum "$T/put.back")" "$(sum "$T/random")"
fails "a volume that there is not" 1 'nowhere' "$T/first" "$mgr" nowhere
fails "a key that there is not" 1 '/none' env PVFS_KEY=/none "$T/first" "$mgr" test

# What the library has for others is what its header says, all of one version.
nm -D --defined-only "$T/root/usr/lib/libpvfs.so.0" | awk '$2 != "A" { print $3 }' | sort >"$T/exported"
is "all that is exported has its version" "$(grep -vc '@@LIBPVFS_0$' "$T/exported")" 0
sed 's/@.*//' "$T/exported" >"$T/names"
is "... and is in the header" "$(grep -vxFf <(grep -oE '\bpvfs_[a-z_0-9]+' "$ROOT/lib/pvfs.h" | sort -u) "$T/names")" ""
is "... and all the header's functions are exported" \
	"$(grep -oE '\bpvfs_[a-z_0-9]+\(struct|\bpvfs_[a-z_0-9]+\(const struct|\bpvfs_[a-z_0-9]+\(void' "$ROOT/lib/pvfs.h" |
		sed 's/(.*//' | sort -u | grep -vxFf "$T/names")" ""
finish
