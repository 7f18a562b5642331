#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The module's two halves: the lower one, kmod/net, neither includes nor calls anything of kmod/fs by name, and that one knows
# of the lower what net.h says. The symbols are looked at where the module was built from this tree (make modules).
. "$(dirname "$0")/lib.sh"

# crossing TREE FROM TO: what files of folder FROM, and the headers that both halves share, include of folder TO
crossing() {
	local tree f i
	tree=$(realpath "$1")
	for f in "$tree/kmod/$2"/*.[ch] "$tree"/kmod/*.h; do
		sed -nE 's/^\s*#\s*include\s*"(.*)".*/\1/p' "$f" | while read -r i; do
			i=$(realpath -m "$(dirname "$f")/$i")
			[[ $i != "$tree/kmod/$3/"* ]] || echo "${f#"$tree"/}: ${i#"$tree"/}"
		done
	done
}

# called DIR FROM TO: what objects of folder FROM want that those of TO define
called() {
	local f from=() to=()
	for f in "$ROOT/kmod/$2"/*.c; do from+=("$1/$2/$(basename "$f" .c).o"); done
	for f in "$ROOT/kmod/$3"/*.c; do to+=("$1/$3/$(basename "$f" .c).o"); done
	comm -12 <(nm -g --undefined-only "${from[@]}" | awk 'NF == 2 { print $2 }' | sort -u) \
		<(nm -g --defined-only "${to[@]}" | awk 'NF == 3 { print $3 }' | sort -u)
}

# built DIR: are its objects those of this tree?
built() {
	local f
	for f in "$ROOT"/kmod/{net,fs}/*.[ch] "$ROOT"/kmod/*.h; do
		f=${f#"$ROOT"/kmod/}
		cmp -s "$ROOT/kmod/$f" "$1/$f" || return 1
		[[ $f == *.h || -e $1/${f%.c}.o ]] || return 1
	done
}

is "the lower half includes nothing of the VFS half" "$(crossing "$ROOT" net fs)" ""
is "the VFS half includes net.h of the lower, and no more" "$(crossing "$ROOT" fs net | sed 's/.*: //' | sort -u)" "kmod/net/net.h"
cp -r "$ROOT/kmod" "$T"
echo '#include "../fs/vfs.h"' >>"$T/kmod/net/kreq.c"
echo '# include "fs/lock.h"' >>"$T/kmod/kcompat.h"
is "... which would be seen" "$(crossing "$T" net fs)" "kmod/net/kreq.c: kmod/fs/vfs.h
kmod/kcompat.h: kmod/fs/lock.h"

for d in "$ROOT"/build/kmod/*/kmod; do
	k=$(basename "$(dirname "$d")")
	if ! built "$d"; then
		pass "$k # SKIP the module was not built from this tree"
		continue
	fi
	is "$k: the lower half calls nothing of the VFS half by name" "$(called "$d" net fs)" ""
	ok "... and calls are seen" grep -x pvfs_req_alloc <(called "$d" fs net)
done
finish
