#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (real.t on the host): real amounts of real input.
#
#	real.sh MB SUM FILES HEADERS	size of the large file and its right sha256,
#				how many files go into one directory, and which
#				directory of the kernel's headers
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

mb=$1
sum=$2
files=$3
src=$(echo /usr/src/linux-headers-6.1.0-*-common)/$4
plan 16

tar_in()
{
	mkdir "$M/headers"
	tar -C "$src" -cf "$tmp/h.tar" .
	tar -C "$M/headers" -xf "$tmp/h.tar"
	rm "$tmp/h.tar"
}

listed()
{
	(cd "$src" && find . | sort) >"$tmp/a"
	drop_caches
	(cd "$M/headers" && find . | sort) >"$tmp/b"
	wc -l <"$tmp/a"
	cmp "$tmp/a" "$tmp/b"
	# With all that ls -lR shows of files: mode, size, time.
	(cd "$src" && find . -type f -printf '%p %m %s %T@\n' | sort) >"$tmp/a"
	(cd "$M/headers" && find . -type f -printf '%p %m %s %T@\n' | sort) >"$tmp/b"
	diff "$tmp/a" "$tmp/b"
}

# Every byte, by name and by sum, from a cold cache.
compared()
{
	drop_caches
	diff -r --no-dereference "$src" "$M/headers"
}

# File by file, so that the sizes of directories are left out.
bytes_in()
{
	find "$1" -type f -print0 | du -c -B1 --apparent-size --files0-from=- | tail -n 1 | cut -f1
}

counted()
{
	df "$M"
	bytes_in "$src"
	[ "$(bytes_in "$src")" = "$(bytes_in "$M/headers")" ]
}

gone()
{
	[ -z "$(find "$1" -mindepth 1 -print -quit)" ]
}

# What the iods hold: bytes of all datafiles.
stored()
{
	find /run/pvfs-cluster/volume/iod* -xdev -type f ! -name 'pvfs.*' -printf '%b\n' | awk '{ n += $1 } END { print n * 512 }'
}

freed()
{
	local i

	for ((i = 0; i < 300; i++)); do
		[ "$(stored)" -gt 65536 ] || return 0
		sleep 0.1
	done
	echo "after 30 s the iods still hold $(stored) bytes"
	return 1
}

rates()
{
	"$@" >"$tmp/rate"
	cat "$tmp/rate" >&3
}
exec 3> >(sed 's/^/# /')

limit=500	# a hundred thousand files take their time in an emulated machine
up
check "the kernel's headers: tar in, $(find "$src" | wc -l) names" tar_in
check "listed, with sizes and times" listed
check "every byte is right" compared
check "du and df know them" counted
check "rm -r" rm -r "$M/headers"
check "the iods hold nothing any more" freed

check "$mb MiB written by four processes at once in disjoint parts" rates "$tools/pario" write "$M/big" "$mb" 4
check "its size" [ "$(stat -c %s "$M/big")" = $((mb << 20)) ]
check "its sha256" [ "$(sha256sum <"$M/big" | cut -d' ' -f1)" = "$sum" ]
check "read and compared by four processes at once" rates "$tools/pario" read "$M/big" "$mb" 4
check "spread over four iods evenly" eval 'du -s -B1 /run/pvfs-cluster/volume/iod? | awk -v all=$((mb << 20)) \
	"{ print; if (\$1 < all / 5 || \$1 > all / 3) bad = 1 } END { exit bad }"'
rm -f "$M/big"

mkdir "$M/many"
check "$files files created in one directory by four processes" rates "$tools/manyfiles" create "$M/many" "$files" 4
drop_caches
check "listed, each once" rates "$tools/manyfiles" list "$M/many" "$files"
check "ls sees as many" [ "$(ls -f "$M/many" | wc -l)" = $((files + 2)) ]
check "removed by four processes" eval 'rates "$tools/manyfiles" unlink "$M/many" "$files" 4 && gone "$M/many" && rmdir "$M/many"'
check "down" "$cluster" down
finish
