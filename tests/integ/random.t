#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Are the random testers right? On an ext4, once as two mounts of one directory, what fails is the tester's fault; and each
# is lied to once, and must find out. On PVFS they run in tests/vm/random.t and in pvfsd_random.t.

# In a network of its own, where far, which obeys whoever reaches its port, can be reached by nobody else.
if [ -z "${PVFS_RANDOM_ALONE-}" ] && unshare -n true 2>/dev/null; then
	PVFS_RANDOM_ALONE=1 exec unshare -n "$0"
fi
. "$(dirname "$0")/lib.sh"
rnd=$BIN/tests/random
e=$T/ext4
e2=$T/second
seed=${PVFS_RANDOM_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "# seed $seed"

unmount() {
	local rc=$? m
	for m in "$e2" "$e"; do
		mountpoint -q "$m" && umount "$m"
	done
	(exit $rc)
	cleanup
}
trap unmount EXIT

# try NAME PROGRAM ARGS...: its last lines when it fails
try() {
	local name=$1 what=$2
	shift 2
	if timeout 120 "$rnd/$what" "$@" >"$T/out" 2>&1; then
		pass "$name"
	else
		fail "$name: $what $*" "$(tail -n 28 "$T/out" | cut -c-200)"
	fi
}

# finds NAME PATTERN PROGRAM ARGS...: status 1, and the reason is the lie
finds() {
	local name=$1 pattern=$2 what=$3 rc
	shift 3
	timeout 120 "$rnd/$what" "$@" >"$T/out" 2>&1
	rc=$?
	if [ $rc = 1 ] && grep -qE "$pattern" "$T/out"; then
		pass "$name"
	else
		fail "$name: $what $*" "status $rc, and not $pattern" "$(tail -n 20 "$T/out" | cut -c-200)"
	fi
	rm -rf "$e"/coherence-13
}

mkdir "$e" "$e2"
if [ "$(id -u)" != 0 ] || ! truncate -s 600M "$T/image" || ! mkfs.ext4 -q -F "$T/image" ||
	! mount -o loop "$T/image" "$e" 2>"$T/mount.err"; then
	# Not on its own file system, then, but on the one that is here, if that is an ext4, too.
	[ "$(stat -f -c %T "$T")" = ext2/ext3 ] ||
		skip_all "no loop mount ($(cat "$T/mount.err")), and $T is not on ext4, but $(stat -f -c %T "$T")"
fi
# Two ways to one directory: a second mount where root may make one, else another name.
if ! mount --bind "$e" "$e2" 2>"$T/mount.err"; then
	echo "# NO SECOND MOUNT HERE ($(cat "$T/mount.err")): a symbolic link stands for it"
	rmdir "$e2"
	ln -s "$e" "$e2"
fi
try "dataops" dataops -s 11 -n 4000 "$e"
try "dataops, two mounts" dataops -s "$seed" -n 4000 "$e" "$e2"
try "nameops" nameops -s 12 -n 4000 "$e"
try "nameops, two mounts" nameops -s "$seed" -n 4000 "$e" "$e2"
try "coherence, two mounts" coherence -s "$seed" -r 20 "$e" "$e2"
try "churn, two mounts" churn -s "$seed" -n 300 "$e" "$e2"
finds "churn finds a byte that was changed" "^FAILED: .*byte 0 of [0-9]+ is" churn -s 13 -n 100 -x "$e" "$e2"
finds "dataops finds a byte that was changed" "^FAILED: all bytes, .* 1 of [0-9]+ bytes at" \
	dataops -s 13 -n 600 -k 1 -x 500 "$e" "$e2"
finds "nameops finds a name that was made" "^FAILED: the whole tree, side 0, .: has a name y" \
	nameops -s 13 -n 600 -k 20 -x 500 "$e" "$e2"
for what in block size name append prefix; do
	case $what in
	append | prefix) said='^APPENDS: ' ;;
	*) said="^NOT LINEARIZABLE: .*$what" ;;
	esac
	finds "coherence finds a false $what" "$said" coherence -s 13 -r 2 -x $what "$e" "$e2"
done

# One side over a connection, as tests/vm/two.t has it.
if [ -n "${PVFS_RANDOM_ALONE-}" ] && ip link set lo up; then
	far=127.0.0.1:7200
	PVFS_GUEST=1 "$rnd/far" serve $far &
	PIDS+=($!)
	ok "far serves" wait_for 10 "$rnd/far" run $far true
	try "coherence, one side over a connection" coherence -s "$seed" -r 20 "$e" "$far:$e2"
	finds "coherence finds a false block over a connection" "^NOT LINEARIZABLE: .*block" \
		coherence -s 13 -r 2 -x block "$e" "$far:$e2"
else
	echo "ok $((++TESTS)) - over a connection # SKIP no network name space of our own to be had"
fi
finish
