#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One disk for all daemons, and full: it can still be listed, removed from, stopped and started, and then written to.
if [ -z "${PVFS_FULL_NS-}" ] && unshare -m true 2>/dev/null; then
	PVFS_FULL_NS=1 exec unshare -m "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

mkdir "$C"
mount -t tmpfs -o size=320m none "$C" || skip_all "needs to mount a tmpfs"
make_cluster "$C" 4
start_cluster "$C"
head -c 360M /dev/zero >"$T/big"
make_file "$T/some" $((4 << 20))
ok "a file goes in" p cp "$T/some" pvfs:/some
fails "one that is longer than the disk does not" 1 "No space left on device" p cp "$T/big" pvfs:/big
# A sixteenth is 20 MiB; the manager's log may have had some of them since.
ok "... and the reserve is left" [ "$(df -k --output=avail "$C" | tail -n 1)" -ge 16384 ]
like "... and the iod says why" "$(cat "$C"/log/iod*.log)" "iod.reserve"
ok "the volume can be listed" p ls -l pvfs:/
ok "it is stopped" "$PVFS" stop "$C"
# The rest of it goes to others: somebody's core dump.
head -c 200M /dev/zero >"$C/filler" 2>/dev/null
fails "... and not started while nothing can be written" 1 "No space left on device" "$PVFS" start "$C"
is "... nor is a part of it" "$(pgrep -f "pvfs-(mgr|iod) .*$C/" | wc -l)" 0
truncate -s -8M "$C/filler"
ok "... but with a little room" "$PVFS" start "$C"
ok "what is in the way is removed" p rm pvfs:/big
rm "$C/filler"
# Its datafiles are removed behind the answer.
ok "a file goes in again" wait_for 20 p cp "$T/some" pvfs:/again
ok "... and comes out" p cp pvfs:/again "$T/out"
ok "... as it was" cmp "$T/some" "$T/out"
ok "it is stopped" "$PVFS" stop "$C"
umount "$C"

# The manager's alone, by small files: what its tables have in memory only still fits when it is full.
C=$T/small
D=$T/mgrdisk
mkdir "$C" "$D"
make_cluster "$C" 2
mount -t tmpfs -o size=80m none "$D"
cp -a "$C/mgr" "$D/mgr"
sed -i "/^mgr:/,/^}/s|store = .*|store = \"$D/mgr\";|" "$C/pvfs.conf"
start_cluster "$C"
mkdir "$T/many"
make_file "$T/random" 16000
head -c 128M /dev/urandom | split -b 16000 -a 4 -d - "$T/many/"
fails "more small files than fit do not go in" 1 "No space left on device" p cp -r --no-progress -j 16 "$T/many" pvfs:/many
like "... and the manager says why" "$(cat "$C"/log/mgr.log)" "$D/mgr: less than 16 MiB free"
ok "the manager is stopped" "$PVFS" stop "$C" mgr
ok "... and started, with what it has" "$PVFS" start "$C" mgr
ok "what came in can be removed" p rm -r pvfs:/many
ok "... also when it starts once more" eval '"$PVFS" stop "$C" mgr && "$PVFS" start "$C" mgr'
ok "a file goes in again" wait_for 20 p cp "$T/random" pvfs:/again
ok "it is stopped" "$PVFS" stop "$C"
umount "$D"
finish
