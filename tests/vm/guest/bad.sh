#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (bad.t on the host): what is wrong is refused in time and in
# words; what is lost is waited for, or reported, as the mount options say; what
# comes back is used again; nothing is ever wrong on disk.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"
. "${0%/*}/bad_session.sh"
. "${0%/*}/bad_exit.sh"
. "${0%/*}/bad_late.sh"
. "${0%/*}/bad_behind.sh"
. "${0%/*}/bad_evicted.sh"
. "${0%/*}/bad_resent.sh"
. "${0%/*}/bad_full.sh"

plan 121
KEY=key
TIMEO=timeo=30
conf=/run/pvfs-cluster/volume/pvfs.conf
src=$(echo /usr/src/linux-headers-6.1.0-*-common)

# bad_mount SECONDS WORD ARGS...: mount -t pvfs ARGS fails within SECONDS, and
# says WORD.
bad_mount()
{
	local max=$1 word=$2 t0=$SECONDS rc

	shift 2
	mkdir -p "$tmp/bad"
	rc=0
	within $((max + 20)) mount -t pvfs "$@" "$tmp/bad" >"$tmp/mount" 2>&1 || rc=$?
	cat "$tmp/mount"
	[ $rc != 0 ]
	[ $rc != 124 ]
	[ $((SECONDS - t0)) -le $((max * slow)) ] || { echo "took $((SECONDS - t0)) s"; return 1; }
	refuse mountpoint -q "$tmp/bad"
	grep -qi -- "$word" "$tmp/mount" || { echo "does not say '$word'"; return 1; }
}

# Runs a command in the background; its output is in $tmp/bg, its status will be
# in $tmp/bg.rc.
background()
{
	rm -f "$tmp/bg.rc"
	(
		rc=0
		"$@" >"$tmp/bg" 2>&1 || rc=$?
		echo $rc >"$tmp/bg.rc"
	) &
}

# Waits up to $1 s for the background command; fails when it still runs.
ended()
{
	local i

	for ((i = 0; i < $1 * 10; i++)); do
		[ ! -e "$tmp/bg.rc" ] || return 0
		sleep 0.1
	done
	echo "still runs after $1 s"
	return 1
}

# Those that take as long as mount waits for an answer are tried at once. begin NAME COMMAND...: the check starts, with a
# $tmp of its own; came_of NAME: what came of it.
begin()
{
	local name=$1

	shift
	(
		set -e
		tmp=$tmp/$name
		mkdir -p "$tmp"
		"$@"
		: >"$tmp/went-well"
	) >"$tmp/$name.said" 2>&1 </dev/null &
	begun[$name]=$!
}
declare -A begun

came_of()
{
	local name=$1

	eventually 80 eval '! kill -0 ${begun[$name]} 2>/dev/null'
	cat "$tmp/$name.said"
	[ -e "$tmp/$name/went-well" ]
}

waiting_requests()
{
	[ "$(wc -l <$S/requests)" -gt 0 ]
}

wrong_key()
{
	head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$tmp/key"
	chmod 600 "$tmp/key"
	bad_mount 20 key -o "$KEY=$tmp/key" "$("$cluster" device)"
}

open_key()
{
	cp /run/pvfs-cluster/volume/cluster.key "$tmp/open.key"
	chmod 644 "$tmp/open.key"
	bad_mount 20 open.key -o "$KEY=$tmp/open.key" "$("$cluster" device)"
}

# silent_mgr PORT WHAT
silent_mgr()
{
	local p

	perl "$top/tests/vm/guest/noise.pl" "$1" "$2" >"$tmp/noise" &
	p=$!
	# shellcheck disable=SC2064 # this process
	trap "kill $p" EXIT
	eventually 10 grep -q ready "$tmp/noise"
	bad_mount 30 localhost "localhost:$1:/vol"
}

# A byte a second, to the module, which mount.pvfs would not have asked: what it takes is the handshake's time in all.
slow_hello()
{
	local p t0=$SECONDS

	perl "$top/tests/vm/guest/noise.pl" "$1" slow >"$tmp/noise" &
	p=$!
	# shellcheck disable=SC2064 # this process
	trap "kill $p" EXIT
	eventually 10 grep -q ready "$tmp/noise"
	mkdir -p "$tmp/m"
	refuse within 90 mount -i -t pvfs \
		-o "addr=127.0.0.1,port=$1,vol=vol,host=slow,mount_timeout=3,keyhex=$(cat /run/pvfs-cluster/volume/cluster.key)" slow "$tmp/m"
	[ $((SECONDS - t0)) -le 30 ] || { echo "took $((SECONDS - t0)) s"; return 1; }
}

through_fstab()
{
	mkdir -p /mnt/fstab
	echo "$("$cluster" device) /mnt/fstab pvfs noauto,_netdev 0 0" >>/etc/fstab
	mount /mnt/fstab
	ls /mnt/fstab
	[ "$(stat -f -c %i /mnt/fstab)" ]
	umount /mnt/fstab
	refuse mountpoint -q /mnt/fstab
	# Mounting what is there twice is two mounts, not an error.
	mount /mnt/fstab
	umount /mnt/fstab
}

prepare()
{
	# Its first block is to be on iod 0, whatever the mgr would choose.
	: >"$M/big"
	# Small files whose bytes the iods have.
	mkdir "$M/striped"
	pvfs setstripe -s 0 "$M/striped"
	setfattr -n pvfs.layout -v "base=0 pcount=4 ssize=65536" "$M/big"
	"$tools/pario" write "$M/big" 64 4
	[ "$(getfattr --only-values -n pvfs.layout "$M/big")" = "base=0 pcount=4 ssize=65536 stuff_max=16384" ]
	head -c 4M /dev/urandom >"$M/ahead"
	cp -r "$src/include/net" "$M/tree"
	sync
}

# An iod dies while it is read from: hard waits, and can be killed. Each read asks, so that it is not over too soon.
hard_read()
{
	local t0 S=/proc/fs/pvfs/vol-2

	"$cluster" mount -o cache=none /mnt/none
	background "$tools/pario" read /mnt/none/big 64 1 4096
	eventually 20 eval '[ "$(count READ)" -gt 100 ]'
	"$cluster" kill iod1
	sleep 2
	[ ! -e "$tmp/bg.rc" ]
	eventually 20 waiting_requests
	eventually 30 eval 'grep "^iod 1 " $S/servers | grep -q "state down"'
	cat $S/servers $S/requests
	# Other iods still serve.
	dd if="$M/big" of=/dev/null bs=4096 count=1 status=none
	t0=$SECONDS
	pkill -KILL -f "pario read /mnt/none/big"
	ended 5
	[ $((SECONDS - t0)) -le 5 ]
}

# The same where it is read ahead, and by who waits for what others have asked for; he ends, the file loses its name, and
# nothing is held up by what is on its way.
hard_read_ahead()
{
	local one two

	# It was written here.
	echo 3 >/proc/sys/vm/drop_caches
	dd if="$M/ahead" of=/dev/null bs=16k status=none &
	one=$!
	eventually 20 eval 'grep -q READ $S/requests'
	dd if="$M/ahead" of=/dev/null bs=16k status=none &
	two=$!
	eventually 20 eval "grep -qs 'ahead' <(readlink /proc/$two/fd/0)"
	rm "$M/ahead"
	# Whoever goes last has the last reference to the file.
	kill -KILL $two
	eventually 10 gone $two
	kill -KILL $one
	eventually 10 gone $one
}

# One that was not killed goes on when the iod is back, and reads what is right.
hard_resumes()
{
	echo 3 >/proc/sys/vm/drop_caches
	background "$tools/pario" read "$M/big" 64 1 4096
	sleep 1
	[ ! -e "$tmp/bg.rc" ]
	"$cluster" start iod1
	ended 60
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	[ "$(wc -l <$S/requests)" = 0 ]
	dmesg | grep -q 'pvfs: .*iod.*does not respond'
	dmesg | grep -q 'pvfs: .*answers again'
	"$cluster" umount /mnt/none
}

hard_write()
{
	local mib=$((slow > 1 ? 16 : 64))

	background "$tools/pario" write "$M/big2" $mib 2 4096
	sleep 0.5
	"$cluster" kill iod2
	sleep 2
	"$cluster" start iod2
	ended 90
	cat "$tmp/bg"
	# An iod that lost what was not synced says so once, at fsync; after a kill
	# alone nothing is lost.
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	"$tools/pario" read "$M/big2" $mib 4
}

# The iod's machine is started anew, as far as it can tell.
reboot_iod()
{
	cat /proc/sys/kernel/random/uuid >"$tmp/boot_id"
	"$cluster" kill "$1"
	mount --bind "$tmp/boot_id" /proc/sys/kernel/random/boot_id
	"$cluster" start "$1"
	umount /proc/sys/kernel/random/boot_id
}

# said_after_reboot FILTER: what the program in the background says, as FILTER leaves it, when it is told to go on after iod0's
# machine was started anew. As the input.
said_after_reboot()
{
	eventually 20 grep -s opened "$tmp/bg"
	reboot_iod iod0
	echo go >"$tmp/fifo"
	ended 60
	cat "$tmp/bg"
	diff - <("$1" "$tmp/bg")
}

# What an iod may have lost is told once to each descriptor of the file, and to the next syncfs; also when the file had
# been forgotten here meanwhile.
lost_writes()
{
	local f=$M/striped/lost

	sync -f "$M"
	mkdir "$f"
	setfattr -n pvfs.layout -v "base=0 pcount=1 ssize=65536" "$f"
	head -c 5000 /dev/urandom >"$f/synced"
	sync "$f/synced"
	head -c 5000 /dev/urandom >"$f/closed"
	evict "$f/synced" "$f/closed"
	rm -f "$tmp/fifo"
	mkfifo "$tmp/fifo"
	background python3 - "$f" "$tmp/fifo" <<-'END'
		import ctypes, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		def came(call, fd):
		    return ctypes.get_errno() if call(fd) else 0
		d, fifo = sys.argv[1:]
		a = os.open(d + "/open", os.O_RDWR | os.O_CREAT)
		b = os.open(d + "/open", os.O_RDONLY)
		c = os.open(d, os.O_RDONLY)
		os.write(a, bytes(5000))
		os.fstat(a)		# so that the iod has it,
		os.posix_fadvise(a, 0, 0, os.POSIX_FADV_DONTNEED)	# and only the iod
		print("opened", flush=True)
		open(fifo).read()
		print("descriptors", [came(libc.fsync, x) for x in (a, b, a, b)])
		print("syncfs", [came(libc.syncfs, x) for x in (c, c)])
		late = os.open(d + "/open", os.O_RDONLY)
		print("opened later", came(libc.fsync, late))
		for name in "closed", "synced":
		    fd = os.open(d + "/" + name, os.O_RDONLY)
		    print(name, [came(libc.fsync, fd) for _ in "12"])
	END
	said_after_reboot cat <<-'END'
		opened
		descriptors [5, 5, 0, 0]
		syncfs [5, 0]
		opened later 0
		closed [5, 0]
		synced [0, 0]
	END
	rm -r "$f"
}

# lost_forgotten FIRST: what was written was closed and forgotten, and the file is open again, with nothing known of
# that, when its iod's machine is started anew. Each descriptor and the next syncfs are told once, whichever call, fsync or
# syncfs, comes first and finds it out.
lost_forgotten()
{
	local f=$M/striped/forgotten-$1

	sync -f "$M"
	mkdir "$f"
	setfattr -n pvfs.layout -v "base=0 pcount=1 ssize=65536" "$f"
	head -c 5000 /dev/urandom >"$f/a"
	evict "$f/a"
	rm -f "$tmp/fifo"
	mkfifo "$tmp/fifo"
	background python3 - "$f" "$tmp/fifo" "$1" <<-'END'
		import ctypes, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		def came(call, fds):
		    return [ctypes.get_errno() if call(fd) else 0 for fd in fds]
		d, fifo, first = sys.argv[1:]
		volume = os.open(d, os.O_RDONLY)
		fds = [os.open(d + "/a", how) for how in (os.O_RDONLY, os.O_RDWR)]
		print("opened", flush=True)
		open(fifo).read()
		if first == "fsync":
		    print("fsync", came(libc.fsync, fds + fds))
		print("syncfs", came(libc.syncfs, [volume, volume]))
		if first == "syncfs":
		    print("fsync", came(libc.fsync, fds + fds))
		print("opened later", came(libc.fsync, [os.open(d + "/a", os.O_RDWR)]))
	END
	said_after_reboot sort <<-'END'
		fsync [5, 5, 0, 0]
		opened
		opened later [0]
		syncfs [5, 0]
	END
	rm -r "$f"
}

# Who syncs the volume beside a task that syncs a file waits for that file, too.
syncfs_beside_fsync()
{
	local f=$M/striped/both syncer

	rm -f "$tmp/synced"
	sync -f "$M"
	one_iod_file "$f"
	"$cluster" kill iod0 STOP
	background sync "$f"
	eventually 20 grep FSYNC $S/requests
	python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None)
if not libc.syncfs(os.open(sys.argv[1], os.O_RDONLY)):
    open(sys.argv[2], "w").close()' "$M" "$tmp/synced" &
	syncer=$!
	eventually 20 in_deep_sleep $syncer
	refuse [ -e "$tmp/synced" ]
	"$cluster" kill iod0 CONT
	wait $syncer
	[ -e "$tmp/synced" ]
	ended 20
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	rm "$f"
}

soft_read()
{
	local t0 rc=0

	"$cluster" mount -o "soft,$TIMEO" /mnt/soft
	"$tools/pario" read /mnt/soft/big 64 1
	# What is in memory would be read from there.
	drop_caches
	"$cluster" kill iod3
	t0=$SECONDS
	LC_ALL=C within 60 dd if=/mnt/soft/big of=/dev/null bs=1M >"$tmp/dd" 2>&1 || rc=$?
	cat "$tmp/dd"
	[ $rc = 1 ]
	grep -q 'Input/output error' "$tmp/dd"
	[ $((SECONDS - t0)) -le 30 ]
	# Names, attributes and small files are not the iods' business.
	ls -l /mnt/soft
	echo small >/mnt/soft/small
	[ "$(cat "$M/small")" = small ]
	rm /mnt/soft/small
	"$cluster" start iod3
	eventually 30 cmp -n 8388608 /mnt/soft/big "$M/big"
	"$cluster" umount /mnt/soft
}

# How long a file is that another client has open, the iod that has its end knows. Without it, no
# program may take it for shorter.
size_unknown()
{
	local f=striped/unsure rc=0

	"$cluster" mount -o flush=close /mnt/laid
	: >"$M/$f"
	setfattr -n pvfs.layout -v "base=0 pcount=2 ssize=4096" "$M/$f"
	exec 7>"/mnt/laid/$f"
	head -c 4096 /dev/urandom >&7
	"$cluster" mount -o "soft,$TIMEO" /mnt/soft
	"$cluster" mount /mnt/pool
	# That it was shorter once is known.
	[ "$(stat -c %s "/mnt/soft/$f" "/mnt/pool/$f" | uniq)" = 4096 ]
	head -c 4096 /dev/urandom >&7
	"$cluster" kill iod1
	[ "$(stat -c %s "/mnt/laid/$f")" = 8192 ]	# its own writes
	within 60 stat "/mnt/soft/$f" || rc=$?
	[ $rc = 1 ]
	# Waiting is said in the log, and ended by umount -f.
	background stat -c %s "/mnt/pool/$f"
	eventually 20 eval 'dmesg | grep -q "pvfs: .* waits for an iod that does not answer, still trying"'
	[ ! -e "$tmp/bg.rc" ]
	refuse umount -f /mnt/pool
	ended 10
	[ "$(cat "$tmp/bg.rc")" = 1 ]
	background stat -c %s "/mnt/pool/$f"
	sleep 1
	[ ! -e "$tmp/bg.rc" ]
	"$cluster" start iod1
	ended 60
	[ "$(cat "$tmp/bg")" = 8192 ]
	eventually 30 cmp "/mnt/soft/$f" "$M/$f"
	exec 7>&-
	rm "$M/$f"
	"$cluster" umount /mnt/soft
	"$cluster" umount /mnt/pool
	"$cluster" umount /mnt/laid
}

soft_mgr()
{
	local t0 rc=0

	"$cluster" mount -o "soft,$TIMEO" /mnt/soft
	"$cluster" kill mgr
	t0=$SECONDS
	within 60 stat /mnt/soft/big || rc=$?
	[ $rc = 1 ]
	[ $((SECONDS - t0)) -le 30 ]
	"$cluster" start mgr
	eventually 40 stat /mnt/soft/big
	"$cluster" umount /mnt/soft
}

# Bytes that the iods have are read without the mgr, also where a lease on them would be asked for: nobody is told to wait.
read_without_mgr()
{
	"$cluster" mount /mnt/pool
	head -c 1M /dev/urandom >"$tmp/read_on"
	cp "$tmp/read_on" "$M/striped/read_on"
	# No lease while another has it open for writing.
	exec 6<>/mnt/pool/striped/read_on 5<"$M/striped/read_on"
	"$cluster" kill mgr
	eventually 30 eval 'grep "^mgr " $S/servers | grep -q "state down"'
	within 20 dd bs=4096 count=10 status=none <&5 >"$tmp/read"
	"$cluster" start mgr
	exec 5<&- 6>&-
	cmp -n 40960 "$tmp/read" "$tmp/read_on"
	"$cluster" umount /mnt/pool
	rm "$M/striped/read_on"
}

hard_mgr()
{
	background stat "$M/big"
	ended 10
	"$cluster" kill mgr
	# Of a name that nobody has asked for, nothing is known without it.
	background stat "$M/unasked"
	sleep 1
	[ ! -e "$tmp/bg.rc" ]
	pkill -KILL -x stat
	ended 5
	background touch "$M/made-while-away"
	sleep 1
	[ ! -e "$tmp/bg.rc" ]
	"$cluster" start mgr
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	rm "$M/made-while-away"
}

# Files open over a restart of the mgr stay open, unlinked ones too.
open_over_restart()
{
	local f

	cp "$M/big" "$M/gone"
	exec 5<"$M/gone" 6>"$M/held" 7>"$M/striped/held"
	rm "$M/gone"
	"$cluster" kill mgr
	"$cluster" start mgr
	echo after >&6
	echo after >&7
	cmp -n 8388608 - "$M/big" <&5
	echo more >&6
	echo more >&7
	exec 5<&- 6>&- 7>&-
	for f in "$M/held" "$M/striped/held"; do
		[ "$(cat "$f")" = $'after\nmore' ]
		rm "$f"
	done
}

# Kills a daemon once N names are there, and starts it again.
kill_at()
{
	eventually 200 eval '[ "$(find "'"$2"'" 2>/dev/null | head -n '"$3"' | wc -l)" -ge '"$3"' ]'
	"$cluster" kill "$1"
	sleep 1
	"$cluster" start "$1"
}

# Into directory $1.
untar_through_kills()
{
	mkdir "$1/untar"
	tar -C "$src" -cf "$tmp/u.tar" include/uapi/rdma include/net
	background tar -C "$1/untar" -xf "$tmp/u.tar"
	kill_at mgr "$1/untar" 60
	kill_at iod0 "$1/untar" 160
	kill_at mgr "$1/untar" 260
	ended 300
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	drop_caches
	diff -r "$src/include/uapi/rdma" "$1/untar/include/uapi/rdma"
	diff -r "$src/include/net" "$1/untar/include/net"
	rm -r "$1/untar"
}

# A server that stops answering without a word: what is in flight can be given
# up by umount -f; then all is taken apart and put together again.
umount_in_flight()
{
	"$cluster" kill iod0 STOP
	background cat "$M/big"
	eventually 10 waiting_requests
	refuse umount "$M"
	refuse rmmod pvfs
	"$cluster" umount -f "$M"
	ended 10
	[ "$(cat "$tmp/bg.rc")" != 0 ]
	rmmod pvfs
	"$cluster" kill iod0 CONT
	"$cluster" mount
	"$tools/pario" read "$M/big" 64 1
}

asked_for_locks()
{
	[ "$(count LOCK)" -gt 0 ]
}

forced_out()
{
	refuse umount -f "$M"
	[ -e "$tmp/bg.rc" ]
}

# The same with a lock held and another waited for, and a mgr that does not answer:
# the lock is free again when the session it was given to has expired.
umount_with_locks()
{
	local holder

	: >"$M/locked"
	reset_stats
	perl -e 'open(F, "<", $ARGV[0]); flock(F, 2); sleep' "$M/locked" &
	holder=$!
	eventually 10 asked_for_locks
	reset_stats
	background flock -x "$M/locked" true
	eventually 10 asked_for_locks
	"$cluster" kill mgr STOP
	# What a process asks on its way out fails with the next umount -f.
	eventually 20 forced_out
	[ "$(cat "$tmp/bg.rc")" != 0 ]
	kill -KILL $holder
	"$cluster" umount -f "$M"
	rmmod pvfs
	"$cluster" kill mgr CONT
	"$cluster" mount
	within 100 flock -x "$M/locked" true
	rm "$M/locked"
}

# More sessions than $1 were closed by their clients.
more_left()
{
	[ "$(grep -c "is leaving" /run/pvfs-cluster/mgr.log || true)" -gt "$1" ]
}

killed_and_unmounted()
{
	local left

	sync -f "$M"
	"$cluster" kill iod0 STOP
	background cat "$M/big"
	eventually 10 waiting_requests
	pkill -KILL -x cat
	ended 5
	left=$(grep -c "is leaving" /run/pvfs-cluster/mgr.log || true)
	within 60 "$cluster" umount
	rmmod pvfs
	eventually 5 more_left "$left"
	"$cluster" kill iod0 CONT
	"$cluster" mount
	"$tools/pario" read "$M/big" 64 1
}

# Whoever sets a layout is killed while the mgr is away: nobody writes before it is
# known which layout the file has. On a soft mount that is given up in time.
killed_layout()
{
	"$cluster" mount -o actimeo=30 /mnt/laid
	: >/mnt/laid/striped/hard
	: >/mnt/laid/striped/soft
	kill_setfattr /mnt/laid/striped/hard
	background to_laid "$src/Makefile"
	refuse ended 2
	"$cluster" kill mgr CONT
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	exec 7>&-
	getfattr -n pvfs.layout "$M/striped/hard" | grep "pcount=2 ssize=4096"
	cmp "$src/Makefile" "$M/striped/hard"
	"$cluster" umount /mnt/laid
	"$cluster" mount -o "soft,$TIMEO,actimeo=30" /mnt/laid
	kill_setfattr /mnt/laid/striped/soft
	background to_laid "$src/Makefile"
	ended 10
	[ "$(cat "$tmp/bg.rc")" != 0 ]
	"$cluster" kill mgr CONT
	to_laid "$src/Makefile"
	exec 7>&-
	cmp "$src/Makefile" "$M/striped/soft"
	"$cluster" umount /mnt/laid
	rm "$M/striped/hard" "$M/striped/soft"
}

to_laid()
{
	cat "$1" >&7
}

# Opens $1 as 7, and leaves the mgr stopped and a SETLAYOUT of it under way that
# nobody waits for.
kill_setfattr()
{
	exec 7<>"$1"
	"$cluster" kill mgr STOP
	background setfattr -n pvfs.layout -v "pcount=2 ssize=4096" "$1"
	eventually 10 grep SETLAYOUT /proc/fs/pvfs/vol-2/requests
	pkill -KILL -x setfattr
	ended 5
}

# Far more requests than the pool has room for: they wait, and the pool does not
# grow. (The guest is booted with slab_nomerge, so that the cache has its name.)
bounded_pool()
{
	local i n

	: >"$M/third"
	setfattr -n pvfs.layout -v "base=3 pcount=1 ssize=65536" "$M/third"
	head -c 1048576 /dev/zero >"$M/third"
	"$cluster" mount -o rsize=65536 /mnt/pool
	for i in 0 1 2; do
		"$cluster" kill iod$i STOP
	done
	for ((i = 0; i < 160; i++)); do
		dd if=/mnt/pool/big of=/dev/null bs=1M count=1 iflag=direct status=none &
	done
	sleep 3
	grep pvfs /proc/slabinfo
	n=$(awk '$1 == "pvfs_request" { print $3 }' /proc/slabinfo)
	# Another mount is none the worse: this is on iod 3, and a transfer of the large kind.
	within 20 dd if="$M/third" of=/dev/null bs=1M count=1 iflag=direct status=none
	for i in 0 1 2; do
		"$cluster" kill iod$i CONT
	done
	wait
	[ "${n:-0}" -ge 16 ]
	# 2048 and what may be beside them, rounded up to slabs on each CPU.
	[ "$n" -le 2300 ]
	"$cluster" umount /mnt/pool
}

unloaded_clean()
{
	"$cluster" umount
	rmmod pvfs
	refuse grep pvfs /proc/slabinfo
	"$cluster" mount
}

# Servers that send nonsense now and then: connections are closed and made
# again, and what programs see is right.
noisy_servers()
{
	local p i
	local -a pids=()

	"$cluster" umount
	for i in 0 1 2 3; do
		sed -i "s/address = \"127.0.0.1:710$((i + 1))\"/address = \"127.0.0.1:720$((i + 1))\"; listen = \"127.0.0.1:710$((i + 1))\"/" $conf
	done
	for i in mgr iod0 iod1 iod2 iod3; do
		"$cluster" kill $i TERM
	done
	for i in 0 1 2 3 4; do
		perl "$top/tests/vm/guest/noise.pl" 720$i 710$i 60 $i >"$tmp/noise$i" &
		pids+=($!)
		eventually 10 grep -q ready "$tmp/noise$i"
	done
	for i in iod0 iod1 iod2 iod3 mgr; do
		"$cluster" start $i
	done
	eventually 30 mount -t pvfs 127.0.0.1:7200:/vol "$M"
	cp -r "$src/include/net" "$M/noisy"
	"$tools/pario" write "$M/noisy-big" 8 4
	diff -r "$src/include/net" "$M/noisy"
	"$tools/pario" read "$M/noisy-big" 8 2
	cat $S/servers
	wc -l "$tmp"/noise?
	[ "$(cat "$tmp"/noise? | grep -c -v ready)" -gt 20 ]
	rm -r "$M/noisy" "$M/noisy-big"
	umount "$M"
	kill "${pids[@]}"
	dmesg | grep -c 'pvfs: .*connection closed'
}

usage_errors()
{
	local a rc

	for a in 'up --iods 0' 'up --store floppy' 'up --mount relative' nonsense 'down now'; do
		rc=0
		# shellcheck disable=SC2086 # words
		"$cluster" $a || rc=$?
		[ $rc = 2 ]
	done
}

# A failed check must not spoil the next ones: whatever it had killed or stopped
# is started, its second mount goes.
repair()
{
	local d

	pkill -CONT -f gate.pl
	pkill -f gate.pl
	echo THAWED >"$tmp/freezer/pvfs/freezer.state"
	! mv "$tmp/conf.long" $conf || "$cluster" kill mgr
	rmdir "$tmp/memory/pvfs"
	umount "$tmp/memory"
	by_itself
	for d in mgr iod0 iod1 iod2 iod3; do
		"$cluster" kill $d CONT || "$cluster" start $d
	done
	rmmod late
	for d in /mnt/soft /mnt/pool /mnt/laid /mnt/none $G; do
		"$cluster" umount -f $d
	done
	mountpoint -q "$M" || "$cluster" mount
} >/dev/null 2>&1

try()
{
	check "$@"
	[ $checked = 0 ] || repair
}

limit=400
up
begin refused bad_mount 20 localhost localhost:7999:/vol
begin nowhere bad_mount 40 192.0.2.1 192.0.2.1:/vol
begin silent silent_mgr 7990 silent
begin garbage silent_mgr 7991 garbage
begin slow silent_mgr 7992 slow
begin slow_hello slow_hello 7993
check "wrong key" wrong_key
check "missing key" bad_mount 20 no-such-file -o "$KEY=$tmp/no-such-file" "$("$cluster" device)"
check "key that others can read" open_key
check "wrong volume" bad_mount 20 nosuch 127.0.0.1:7100:/nosuch
check "no mgr at that port, its host is named" came_of refused
check "no such host" bad_mount 30 no-such-host.invalid no-such-host.invalid:/vol
check "no way to that host" came_of nowhere
check "a mgr that says nothing" came_of silent
check "a mgr that sends garbage" came_of garbage
check "a mgr that sends a byte a second" came_of slow
check "the same to the module itself" came_of slow_hello
check "no volume in the name" bad_mount 20 : 127.0.0.1
check "an option that does not exist" bad_mount 20 nonsense -o nonsense=1 "$("$cluster" device)"
check "an option out of bounds" bad_mount 20 nconnect -o nconnect=100000 "$("$cluster" device)"
check "through /etc/fstab" through_fstab
try "files to work on" prepare
try "iod killed while read: hard waits, others go on, kill works" hard_read
try "... while it is read ahead: who reads can be killed, and the file removed" hard_read_ahead
try "iod comes back: the read goes on" hard_resumes
try "iod killed while written: the write goes on" hard_write
try "iod's machine started anew: what was not synced is told as lost, once" lost_writes
try "... of a file that was forgotten, and is open again: by fsync" lost_forgotten fsync
try "... by syncfs" lost_forgotten syncfs
try "syncfs beside a file's fsync waits for that file" syncfs_beside_fsync
try "iod killed: soft gives EIO in time, and recovers" soft_read
try "iod killed: a size that nobody knows is not guessed" size_unknown
try "mgr killed: hard waits, kill works, comes back" hard_mgr
try "mgr killed: what is open is read on, leased or not" read_without_mgr
try "mgr killed: soft gives up in time, and recovers" soft_mgr
try "open files outlive the mgr's restart" open_over_restart
try "umount while recovery waits for the mgr" umount_in_recovery
try "mgr started twice during one recovery" mgr_started_twice
try "a new mgr can't read an inode that is open: recovery goes on without it" could_not $RECLAIM 1 "was open here, and the mgr can't read it"
try "... that is locked" could_not $LOCK 2 "was locked here, and the mgr can't read it"
late_try "a CLOSE from before a restart of the mgr does not end a later open" closed_after_restart
try "a refusal that nobody proves" forged_refusal
try "mode 0 while it is open, and a restart of the mgr" chmod_before_restart
try "done once, though the session ended before the answer" once_across_sessions
try "a frozen task that received for others" frozen_reader
try "a machine whose servers are away goes to sleep" suspended
try "another daemon at an iod's address is refused by name" other_daemon
try "a layout being set by who is killed: writes wait for it" killed_layout
try "untar through kill -9 of mgr, iod, mgr" untar_through_kills "$M"
try "the same, small files striped" untar_through_kills "$M/striped"
try "umount -f with requests in flight, unload, mount" umount_in_flight
try "umount -f with locks" umount_with_locks
try "killed reader, umount at once" killed_and_unmounted
try "killed with pages that were stored to: gone in time, and they arrive" killed_with_mapping
try "killed while another reads its memory: who is last does not wait" killed_and_read
try "killed while they wait for pages in the flusher's hands: gone in time" killed_behind_flusher
try "killed with a page that another syncs: that waits until it is written" fsync_beside_killed
late_try "killed while he waits for pages that are read ahead: none is left from before his write" killed_behind_readahead
try "a child closes what could not be written: its parent is told" told_beside_child
try "killed with a draft and a lock, and no mgr" killed_with_draft
try "umount with a due draft, and no mgr" umount_with_draft
try "a thread of the kernel unlocks, and no mgr" unlocked_by_kernel
late_try "room in a full socket, before that is noted as full" room_in_full_socket
late_try "two walks over one list of files" two_walks
late_try "a file that another makes longer while it is read from the page cache" grown_in_read
late_two "a file that is opened for writing again before the answer to its CLOSE comes" opened_before_close_answered
late_two "a file that another changes before the answer to its CLOSE comes" recalled_before_close_answered
late_try "a name asked about while a rename has its answer, but has not moved it" asked_in_rename
try "more requests than the pool holds" bounded_pool
try "written behind by who is killed: it is there for others" behind_killed
try "... and the volume unmounted behind the close: umount waits" behind_unmounted
try "... and closed: close waits for no iod that is away, but of many files, or with flush=close" behind_closed
try "a new small file is closed: close waits for no manager that is away, but with flush=close" behind_closed_drafts
try "... what was lost so a rename tells, and replaces nothing" behind_lost_renamed
try "written behind, and the iod is away: who writes goes on, who asks waits, and can be killed" behind_iod_stopped
try "read past the cache while the file becomes longer in it: the new bytes, or none of them" behind_direct_read
try "opened to be cut while a write is on its way: after that" cut_beside_write
try "two mounts append, in turns and at once" behind_appenders
try "two mounts append to a small file at once, also one that becomes large" behind_head_appenders
late_try "a record is appended to a small file while what is before it is on its way" behind_head_appended
try_two "... who had that written is killed, and what comes behind it stays behind it" behind_head_killed
try "20 files, written here, read there at the same time" behind_storm striped/storm
try "... small ones" behind_storm storm
try "a page that is stored to and written to" behind_mapped
try "... stored to behind the end, which comes behind that" behind_mapped_end striped
try "... of a small file" behind_mapped_end .
try "more is written behind than the writer may have in memory" behind_memory
try "written behind over a restart of the mgr: that goes on" behind_restart
try "... to a small file" behind_head_restart
try "written behind by a client that was given up: it is lost, and told once to each" behind_evicted
try "... also when an fsync was under way" behind_evicted fsync
try "mapped by who may only read, and is cut off: what others write he sees" shown_cut_off
try "... also when they had it open before" shown_cut_off lasts
try "... to a small file" behind_head_evicted
try "a lease of a third session stands over a restart of the mgr" behind_third_session
try "two clients with all their credits wait for each other's files" behind_crossed 0 250
late_try "... small ones" behind_crossed 16384 250
late_try "... with all their slots, to open them" behind_crossed 16384 100 open
try "more calls than there are requests wait for another client: what is written behind does not" behind_calls
try "not synced, and the iod's machine started anew: by fsync the iod gets it again" resent_by_fsync
try "... by syncfs, of a reader, stored to, cut off" resent_by_others
try "... by itself, when it is seen; by close" resent_by_itself
try "... some of it was thrown out of the page cache: it is told" resent_not dropped
try "... some was written past the page cache: it is told" resent_not direct
try "... another has looked at it: it is told" resent_not recalled
try "... started anew twice meanwhile" resent_twice
late_try "... and once more before that is synced" resent_again
late_try "... a change of the file is under way, for long" resent_in_doubt changing
try "... a change was left to its fate, for long" resent_in_doubt left
try "... beside a page on its way to an iod that is silent: who reads goes on" resent_beside
late_try "... a long file, a piece after the other" resent_in_pieces
late_try "... that moves no time that was set" resent_times
try "unload leaves no cache behind" unloaded_clean
try "every byte is still right" eval '"$tools/pario" read "$M/big" 64 2 && diff -r "$src/include/net" "$M/tree"'
check "down" "$cluster" down
check "full disk under the iods" full_iod
full_files
check "... write says it, of small calls, too, and all that was taken is there" full_small
check "... of several files, and beside large calls" full_several
check "... beside an iod that hangs" full_beside_hung
check "... when others take the room fsync says it, and then write" full_by_others
rmdir "$M/small"
check "full disk under the mgr" full_mgr
check "full disk under the mgr, a new file that is not all told" full_mgr_draft
check "servers that send nonsense" noisy_servers
check "down again" "$cluster" down
check "down when there is nothing" "$cluster" down
check "usage errors have status 2" usage_errors
check "kill without a cluster says so" refuse "$cluster" kill mgr
finish
