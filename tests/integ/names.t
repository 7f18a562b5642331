#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Names of any bytes but '/' and NUL, and of any length up to 255.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 2
start_cluster "$C"
mkdir "$T/in"
bad=0
for i in $(seq 1 255); do
	[ "$i" -eq 47 ] && continue
	printf -v name "x\\x$(printf %02x "$i")y"
	printf '%s' "$i" >"$T/in/$name"
done
# Each byte alone, where that is a name.
for i in $(seq 1 255); do
	[ "$i" -eq 47 ] || [ "$i" -eq 46 ] && continue
	printf -v name "\\x$(printf %02x "$i")"
	printf 'alone %s' "$i" >"$T/in/$name"
done
long=$(printf 'n%.0s' $(seq 255))
echo long >"$T/in/$long"
echo dots >"$T/in/..."
echo dash >"$T/in/--help"
echo colon >"$T/in/pvfs:"
ok "names with every byte go in" p cp -r "$T/in" pvfs:/in
ok "... and come out" p cp -r pvfs:/in "$T/out"
ok "... with the right contents" diff -r "$T/in" "$T/out"
is "ls prints one line each" "$(p ls -a pvfs:/in | wc -l)" "$(($(ls "$T/in" -A --zero | tr -cd '\0' | wc -c) + 2))"
is "ls --json is JSON, with the bytes of what is not UTF-8" \
	"$(p ls -a --json pvfs:/in | perl -MJSON::PP -e 'local $/; print scalar grep { defined $_->{name_hex} } @{decode_json(<STDIN>)->{entries}}')" 256
fails "a name of 256 bytes" 1 "name too long" p mkdir "pvfs:/${long}n"
fails "a name of 256 bytes on the way" 1 "name too long" p stat "pvfs:/${long}n/x"
fails "an empty path" 1 "No such file" p stat ""
ok "slashes in plenty" p stat "pvfs:///in//$long"
ok "dots on the way" p stat "pvfs:/in/./../in/.//$long"
ok "beyond the root is the root" p stat "pvfs:/../../in"
fails "a file is no directory" 1 "Not a directory" p stat "pvfs:/in/$long/"
fails "... on the way either" 1 "Not a directory" p stat "pvfs:/in/$long/x"

# A deep path.
deep=
for i in $(seq 300); do deep=$deep/d$i; done
ok "300 directories deep" p mkdir -p "pvfs:$deep"
ok "... a file there" p cp "$T/in/..." "pvfs:$deep/file"
ok "... is found" p stat "pvfs:$deep/file"
ok "rm -r of it all" p rm -r pvfs:/d1 pvfs:/in
is "... and nothing is left" "$(p ls -a pvfs:/ | wc -l)" 2
finish
