#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Real programs on two mounts of one volume. Runs in the guest (programs.t on the
# host); given directories it runs anywhere, on whatever file system they are on:
# that is how the checks themselves are checked.
#
#	programs.sh [-a] [-d DIRECTORY] [-o FUNCTION]... [A B CONTROL]
#	-a		all programs at full length, not the short list
#	-d DIRECTORY	where the packages are that tools/debian.sh fetched
#	-o FUNCTION	only this check, and what it needs from others is not made
#	A, B		two directories where the same files are: two mounts of a volume
#			(default: of a cluster that is started)
#	CONTROL		a directory on ext4 (default: of an ext4 that is made); what a
#			program's own tests refuse there too is not held against A
#
# The checks are in programs_*.sh, each announced by a line
#
#	program LEVEL LIMIT FUNCTION NAME
#
# where LEVEL is short, long (with -a only) or brief (without -a only), and LIMIT
# the seconds after which it is killed. A check works in $A/FUNCTION and
# $B/FUNCTION, which exist and are removed behind it, unless KEEP is set.
# shellcheck disable=SC2034,SC2317
. "${0%/*}/lib.sh"

level=short
only=' '
debian=/var/cache/pvfs-debian
while getopts ad:o: o; do
	case $o in
	a)	level=long;;
	d)	debian=$OPTARG;;
	o)	only="$only$OPTARG ";;
	*)	exit 2;;
	esac
done
shift $((OPTIND - 1))
A=${1-} B=${2-} C=${3-}
tmp=${TMPDIR:-/tmp}/t
# Debian's own python, whatever else the machine has.
python=/usr/bin/python3
cpus=$(nproc)
functions=() limits=() names=()

program()
{
	case $1.$level in
	short.*|long.long|brief.short)
		;;
	*)
		return;;
	esac
	[ "$only" = ' ' ] || [[ $only = *" $3 "* ]] || return 0
	limits+=("$2")
	functions+=("$3")
	names+=("$4")
}

# Waits up to $1 seconds until the command succeeds.
await()
{
	local end=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { echo "waited in vain: $*"; return 1; }
		sleep 0.1
	done
}

# Runs a command; what it says goes to $tmp/work/said, and is shown if it fails.
said()
{
	"$@" >"$tmp/work/said" 2>&1 || { tail -n 40 "$tmp/work/said"; return 1; }
}

# Where a program's own refusal is compared with the one on the control.
control()
{
	local d=$C/${FUNCNAME[1]}

	rm -rf "$d"
	mkdir -p "$d"
	echo "$d"
}

# one CHECK: in a directory of its own.
one()
{
	mkdir "$A/$1"
	cd "$A/$1"
	"$1"
	cd /
	[ -n "${KEEP-}" ] || rm -r "${A:?}/$1"
}

for area in db files build load; do
	# shellcheck source=/dev/null
	. "$top/tests/vm/guest/programs_$area.sh"
done

# zlib's source, the tree that several work on.
unpack_source()
{
	dpkg-source --no-check -q -x "$debian"/source/*.dsc "$1"
}

plan $((${#names[@]} + 1))
if [ -z "$A" ]; then
	A=$M B=/mnt/second C=/mnt/control
	up --store tmpfs
	truncate -s 1500M "$tmp/control.img"
	modprobe loop
	mkdir -p $C
	mkfs.ext4 -q "$tmp/control.img" || bail "no ext4 for the control"
	mount -o loop "$tmp/control.img" $C || bail "no ext4 for the control"
	"$cluster" mount $B || bail "no second mount"
	ours=1
fi
rm -rf "$tmp/work"
mkdir -p "$tmp/work"
chmod 755 "$tmp" "$A"
# What programs make of it for themselves: a home, a locale that is there, no questions.
export HOME=$tmp/work LANG=C.UTF-8 LC_ALL=C.UTF-8 TZ=UTC
unset XDG_CACHE_HOME XDG_CONFIG_HOME MAKEFLAGS
umask 022

for i in "${!names[@]}"; do
	limit=${limits[i]}
	t0=${EPOCHREALTIME/./}
	check "${names[i]}" one "${functions[i]}"
	[ -z "${PVFS_OUT-}" ] || cp "$tmp/out" "$PVFS_OUT/${functions[i]}.log"
	t1=${EPOCHREALTIME/./}
	diag "time ${functions[i]} $(((t1 - t0) / 1000)) ms"
done
if [ -n "${ours-}" ]; then
	umount $C
	check "down" "$cluster" down
else
	check "nothing is left" eval '[ -n "${KEEP-}" ] || [ -z "$(ls -A -I lost+found "$A")" ]'
fi
finish
