#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (ways.t on the host): what one way to a volume writes, the
# others see as soon as the call has returned.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

U=/mnt/user
key=/run/pvfs-cluster/volume/cluster.key
ways="mount user lib"
plan 12

lib()
{
	"$build/pvfs" -m "$volume" -k "$key" "$@"
}

# put WAY NAME FILE, get WAY NAME
put()
{
	case $1 in
	mount) cat "$3" >"$M/$2";;
	user) cat "$3" >"$U/$2";;
	lib) lib cp --no-progress "$3" "pvfs:/$2";;
	esac
}

get()
{
	case $1 in
	mount) cat "$M/$2";;
	user) cat "$U/$2";;
	lib)
		rm -f "$tmp/got"
		lib cp --no-progress "pvfs:/$2" "$tmp/got"
		cat "$tmp/got";;
	esac
}

user_up()
{
	modprobe fuse
	mkdir -p "$U"
	"$build/mount.pvfs" "$("$cluster" device)" "$U" -o "user,key=$key"
	grep " $U fuse.pvfs " /proc/mounts
}

# Of both kinds, small and striped, written and written anew.
seen()
{
	local from=$1 to size

	for size in 10 3000 16384 200000 1000; do
		head -c "$size" /dev/urandom >"$tmp/bytes"
		put "$from" "by-$from" "$tmp/bytes"
		for to in $ways; do
			get "$to" "by-$from" >"$tmp/seen"
			cmp "$tmp/bytes" "$tmp/seen"
		done
	done
}

# By turns, so that each has the others' behind its own.
appended()
{
	local i

	: >"$tmp/lines"
	for ((i = 0; i < 40; i++)); do
		echo "line $i" >>"$tmp/lines"
		if ((i % 2)); then
			echo "line $i" >>"$M/lines"
		else
			echo "line $i" >>"$U/lines"
		fi
		[ "$(stat -c %s "$U/lines")" = "$(stat -c %s "$M/lines")" ]
	done
	get lib lines | cmp - "$tmp/lines"
}

names()
{
	mkdir "$M/dir"
	touch "$U/dir/a"
	mv "$M/dir/a" "$M/dir/b"
	[ "$(ls "$U/dir")" = b ]
	lib rm pvfs:/dir/b
	[ ! -e "$M/dir/b" ]
	rmdir "$U/dir"
	refuse stat "$M/dir"
}

# A record lock of one is in the way of the other.
locked()
{
	touch "$M/locked"
	flock "$M/locked" sh -c "flock -n -E 9 $U/locked true; test \$? = 9"
	flock -n "$U/locked" true
}

# mpi_leaves FILE: 4 processes write it, and are gone without closing it. mpiexec may find one of them gone while another is
# there, and says that the program has failed: what they have written is what counts.
mpi_leaves()
{
	PVFS_KEY=$key LD_LIBRARY_PATH=$build timeout 120 \
		mpiexec.mpich -iface lo -n 4 "$build/tests/vm/romio_test" "$1" leave </dev/null || true
}

by_mpi()
{
	mpi_leaves "pvfs:$volume_path/by-mpi"
	[ "$(cat "$M/by-mpi")" = leftleftleftleft ]
	[ "$(cat "$U/by-mpi")" = leftleftleftleft ]
}

# By the type of the file system, without a prefix; what the mount wrote before is gone.
by_mpi_mount()
{
	echo x >"$M/by-type"
	rm "$U/by-type"
	mpi_leaves "$M/by-type"
	[ "$(cat "$U/by-type")" = leftleftleftleft ]
}

up
device=$("$cluster" device)	# host:port:/volume
volume=${device/:\//\/}
volume_path=$device
check "a mount from user space beside the module's" user_up
for w in $ways; do
	check "what $w writes, all see" seen "$w"
done
check "mount and user append by turns" appended
check "names" names
check "locks" locked
check "what MPI writes, both mounts see" by_mpi
check "MPI finds the volume of a mount by itself" by_mpi_mount
check "df is the same" [ "$(df -B1 --output=size "$M" | tail -n 1)" = "$(df -B1 --output=size "$U" | tail -n 1)" ]
check "umount from user space" umount "$U"
check "down" "$cluster" down
finish
