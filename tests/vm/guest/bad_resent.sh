# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of what was written to the page cache and from there to an iod whose machine is started anew before it was
# synced. Sourced by it, after bad_behind.sh.
# shellcheck shell=bash disable=SC2154

# resent FILE [FLAGS]: a file, resent-FILE, of 4096 bytes of zeros, synced, is open there as fd, and for reading as second; the iod has
# 100,000 bytes more of `want` from its beginning, and they are not synced
resent()
{
	"$cluster" mount $P
	one_iod_file "$M/striped/resent-$1"
	sync "$M/striped/resent-$1"
	datafile=$(find /run/pvfs-cluster/volume/iod0/ -name "$(printf %016x "$(stat -c %i "$M/striped/resent-$1")").*")
	[ -f "$datafile" ]
	cp "$datafile" "$tmp/kept"
	by_hand
	hand "$M/striped" $P/striped "$S"
	does "import ctypes, mmap; wanted = '$tmp/want'; libc = ctypes.CDLL(None, use_errno=True)"
	does "fd = held('resent-$1', ${2-os.O_RDWR}); second = os.open(mine + '/resent-$1', os.O_RDONLY)"
	does 'put(100000)'
	iod_has_it
	does 'same(requests().get("FSYNC", 0), 0); same(leases("writes"), 1)'
}

iod_has_it()
{
	does 'same(libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), 7), 0)'
	does 'eventually(lambda: not lines("requests")); open(wanted, "wb").write(want)'
	cmp "$tmp/want" "$datafile"
}

# What was not synced is lost with the machine.
crash()
{
	cat "$tmp/kept" >"$datafile"
	reboot_iod iod0
}

# It is right on iod0, and for others.
right()
{
	cmp "$tmp/want" "$datafile"
	drop_caches
	# This takes the lease away.
	cmp "$tmp/want" "$P/striped/resent-$1"
	cmp "$tmp/want" "$M/striped/resent-$1"
}

resent_end()
{
	hand_ends
	by_itself
	"$cluster" umount $P
	rm "$M/striped/resent-$1"
}

# All that was written is still here: the iod gets it once more, and nobody is told.
resent_by_fsync()
{
	local datafile

	behind_settled
	resent fsync
	# Pages are moved, with what is known of them.
	[ ! -e /proc/sys/vm/compact_memory ] || echo 1 >/proc/sys/vm/compact_memory
	crash
	refuse cmp "$tmp/want" "$datafile"
	does 'same([came(x) for x in (fd, second, fd)], [0, 0, 0]); same(counted("resent_bytes"), 102400)'
	does 'assert done("FSYNC") >= 2; same(libc.syncfs(fd), 0); same(leases("writes"), 1)'
	cmp "$tmp/want" "$datafile"
	dmesg | grep -q 'inode [0-9]*: 100 KiB that an iod may have lost are written once more'
	# What is synced is not sent again, nor does it matter whether it is here.
	does 'reset(); put(5000); os.posix_fadvise(fd, 0, 65536, os.POSIX_FADV_DONTNEED)'
	iod_has_it
	cp "$datafile" "$tmp/kept"
	truncate -s 100000 "$tmp/kept"
	crash
	does 'same(came(fd), 0); same(counted("resent_bytes"), 8192)'
	right fsync
	resent_end fsync
}

# By syncfs, by whoever only reads it, stored to through a mapping; what was cut off is not missed.
resent_by_others()
{
	local datafile

	resent others
	crash
	does 'same(libc.syncfs(second), 0); assert counted("resent_bytes") > 0'
	cmp "$tmp/want" "$datafile"
	does 'm = mmap.mmap(fd, 100000); m[5000:5006] = want[5000:5006] = b"stored"; reset()'
	iod_has_it
	crash
	does 'same([came(second), came(fd)], [0, 0]); same(counted("resent_bytes"), 4096)'
	does 'm.close()'
	# The other pages are lost in earnest: they were synced.
	does 'os.pwrite(fd, want, 0)'
	iod_has_it
	does 'os.ftruncate(fd, 0); del want[50000:]; os.pwrite(fd, want, 0)'
	iod_has_it
	truncate -s 0 "$tmp/kept"
	crash
	does 'same([came(fd), came(second)], [0, 0])'
	right others
	resent_end others
}

# A WRITE's answer says it: nobody has to sync the file.
resent_by_itself()
{
	local datafile

	resent itself
	crash
	does 'put(5000); os.fstat(fd); open(wanted, "wb").write(want)'
	eventually 20 cmp "$tmp/want" "$datafile"
	does 'same([came(fd), came(second)], [0, 0]); assert counted("resent_bytes") >= 102400'
	# So with one that is closed.
	cp "$datafile" "$tmp/kept"
	does 'put(100000)'
	iod_has_it
	crash
	does 'put(5000); reset(); os.close(fd); open(wanted, "wb").write(want)'
	eventually 20 cmp "$tmp/want" "$datafile"
	does 'same(came(second), 0)'
	right itself
	resent_end itself
}

# Not all of it is here any more, or known to be right: it is told, once to each. $1: what becomes of it
resent_not()
{
	local datafile

	resent "$1"
	case $1 in
	dropped)
		does 'os.posix_fadvise(fd, 8192, 4096, os.POSIX_FADV_DONTNEED)';;
	direct)
		does 'b = mmap.mmap(-1, 4096); d = os.open(mine + "/resent-direct", os.O_WRONLY | os.O_DIRECT); same(os.pwrite(d, b, 200704), 4096)'
		does 'os.close(d)';;
	recalled)
		cmp "$tmp/want" "$P/striped/resent-$1"
		does 'eventually(lambda: leases("writes") == 0)';;
	esac
	crash
	does 'same([came(x) for x in (fd, second, fd, second)], [5, 5, 0, 0]); same(counted("resent_bytes"), 0)'
	does 'same([libc.syncfs(second) for _ in "12"], [-1, 0])'
	resent_end "$1"
}

# The machine is started anew while the file is synced.
resent_twice()
{
	local datafile i

	resent twice
	for i in 1 2; do
		crash
		begins 'first = came(fd)'
		# What was synced by then is not lost.
		reboot_iod iod0
		did
		does 'same([first, came(fd), came(second)], [0, 0, 0])'
		cmp "$tmp/want" "$datafile"
		does 'os.pwrite(fd, want, 0)'
		iod_has_it
	done
	does 'same(came(fd), 0)'
	right twice
	resent_end twice
}

# Nobody knows for a while whether the lease is good: a change of the file's mode is under way, or one of something else was left to
# its fate, and the mgr has yet to make it. $1: which
resent_in_doubt()
{
	local datafile

	resent "$1"
	if [ "$1" = changing ]; then
		late hold=pvfs_own_end
		chmod 600 "$M/striped/resent-$1" &
		eventually 20 late_is holds 1
	else
		# It waits for the client at $P, who waits for iod1.
		one_iod_file "$M/striped/theirs" 1
		exec 8<>$P/striped/theirs
		printf dirty >&8
		"$cluster" kill iod1 STOP
		# Not chmod(1), which asks first what it is like.
		perl -e 'chmod 0600, $ARGV[0]' "$M/striped/theirs" &
		eventually 20 grep -q '^mgr .*SETATTR' $S/requests
		kill -KILL $!
		eventually 10 eval 'grep "^abandoned" $S/stats | grep -v " 0$"'
	fi
	crash
	begins 'first = came(fd)'
	# It is to wait. If it does not, it is through.
	eventually 8 grep -qs "^$done_lines " "$tmp/hand.did" || true
	if [ "$1" = changing ]; then
		echo 1 >$late/go
	else
		"$cluster" kill iod1 CONT
		exec 8>&-
	fi
	did
	does 'same([first, came(second)], [0, 0]); same(counted("resent_bytes"), 102400)'
	[ "$1" != changing ] || late_done 1
	right "$1"
	resent_end "$1"
	rm -f "$M/striped/theirs"
}

# A page of it is on its way to an iod that does not answer, while the rest is to be sent to another once more: who reads what is not
# in memory does not wait for that.
resent_beside()
{
	local datafile

	"$cluster" mount $P
	: >"$M/striped/resent-beside"
	setfattr -n pvfs.layout -v "base=0 pcount=2 ssize=65536" "$M/striped/resent-beside"
	by_hand
	hand "$M/striped" $P/striped "$S"
	does "import ctypes, mmap, threading; libc = ctypes.CDLL(None, use_errno=True)"
	does 'fd = os.open(mine + "/resent-beside", os.O_RDWR); second = os.open(mine + "/resent-beside", os.O_RDONLY)'
	does 'put(131072); os.fsync(fd); os.posix_fadvise(fd, 32768, 4096, os.POSIX_FADV_DONTNEED)'
	does 'eventually(lambda: (os.pwrite(fd, want[:1], 0), os.fsync(fd), leases("writes") == 1)[-1]); reset()'
	does 'm = mmap.mmap(fd, 4096); at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))); came_of = []'
	# On iod0, and not synced.
	does 'os.pwrite(fd, b"iod0", 0); want[:4] = b"iod0"'
	does 'same(libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(4096), 7), 0)'
	"$cluster" kill iod1 STOP
	does 'os.pwrite(fd, b"iod1", 65536); want[65536:65540] = b"iod1"'
	does 'same(libc.sync_file_range(fd, ctypes.c_int64(65536), ctypes.c_int64(4096), 2), 0)'
	eventually 20 grep -q '^iod 1 WRITE' $S/requests
	reboot_iod iod0
	# Only what is mapped there is synced.
	does 'sync = threading.Thread(target=lambda: came_of.append(libc.msync(at, 4096, mmap.MAP_SHARED << 2)), daemon=True); sync.start()'
	# It is told that iod0 is another, and waits for the page that iod1 has.
	eventually 20 eval 'grep -qs "pvfs_resend+" /proc/[0-9]*/task/*/stack'
	begins 'os.posix_fadvise(fd, 32768, 4096, os.POSIX_FADV_DONTNEED); same(os.pread(second, 4096, 32768), bytes(want[32768:36864]))'
	eventually 20 grep -qs "^$done_lines well" "$tmp/hand.did" || { "$cluster" kill iod1 CONT; return 1; }
	does 'assert sync.is_alive()'
	"$cluster" kill iod1 CONT
	does 'sync.join(); same(came_of, [0]); same([came(fd), came(second)], [0, 0])'
	does 'assert counted("resent_bytes") >= 4096; same(read(other + "/resent-beside"), bytes(want))'
	resent_end beside
}

# A time that was set stays: what is sent is no news. What comes then is.
resent_times()
{
	local datafile

	resent times
	does 'm = mmap.mmap(fd, 100000); os.utime(fd, (1000, 1000)); same(os.fstat(fd).st_mtime, 1000)'
	crash
	does 'same(came(fd), 0); same(counted("resent_bytes"), 102400); same(os.fstat(fd).st_mtime, 1000)'
	cmp "$tmp/want" "$datafile"
	does 'm[:3] = want[:3] = b"new"; m.flush(); assert os.fstat(fd).st_mtime > 1000'
	# One gets other bytes before it is on its way once more; that is told with it.
	does 'os.pwrite(fd, want, 0); os.fsync(fd); os.pwrite(fd, want, 0)'
	iod_has_it
	does 'os.utime(fd, (1000, 1000)); import threading; first = []'
	crash
	late hold=pvfs_cache_write times=3
	does 'sync = threading.Thread(target=lambda: first.append(came(fd)), daemon=True); sync.start()'
	eventually 20 late_is held 1 >/dev/null
	echo 1 >$late/go
	eventually 20 late_is held 3 >/dev/null
	does 'assert counted("resent_bytes") > 0; os.pwrite(fd, b"newer", 0); want[:5] = b"newer"'
	echo 1 >$late/go
	does 'sync.join(); same(first, [0]); assert os.fstat(fd).st_mtime > 1000; m.close()'
	late_done 3
	does "open(wanted, 'wb').write(want)"
	right times
	resent_end times
}

# What is made dirty at once is not all of a long file.
resent_in_pieces()
{
	local datafile

	"$cluster" mount $P
	one_iod_file "$M/striped/resent-pieces"
	sync "$M/striped/resent-pieces"
	by_hand
	hand "$M/striped" $P/striped "$S"
	does "import ctypes; libc = ctypes.CDLL(None, use_errno=True)"
	does 'fd = held("resent-pieces", os.O_RDWR)'
	does 'for i in range(96): put(100000)'
	does 'same(libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), 7), 0); same(leases("writes"), 1)'
	datafile=$(find /run/pvfs-cluster/volume/iod0/ -name "$(printf %016x "$(stat -c %i "$M/striped/resent-pieces")").*")
	head -c 4096 /dev/zero >"$tmp/kept"
	does 'reset()'
	crash
	# Before the fsync; and then before a part is written, and by the work item that the fsync has begun.
	late hold=pvfs_cache_write times=3
	begins 'first = came(fd)'
	eventually 20 late_is held 1 >/dev/null
	echo 1 >$late/go
	eventually 20 late_is held 3 >/dev/null
	awk '$1 == "resent_bytes" { print; exit !($2 >= 4000000 && $2 < 5000000) }' $S/stats
	echo 1 >$late/go
	did
	late_done 3
	does 'same([first, came(fd)], [0, 0]); same(counted("resent_bytes"), (len(want) + 4095) // 4096 * 4096)'
	does "open('$tmp/want', 'wb').write(want)"
	right pieces
	resent_end pieces
}

# It is when all was written once more, and not synced: the work item that was to do that does it again.
resent_again()
{
	local datafile

	resent again
	crash
	# By fstat, and by the work item before it makes anything dirty, and then behind that.
	late hold=pvfs_cache_write ret=0 times=3
	begins 'put(5000); os.fstat(fd)'
	eventually 20 late_is held 2 >/dev/null
	echo 1 >$late/go
	did
	eventually 20 late_is held 3 >/dev/null
	does 'open(wanted, "wb").write(want)'
	cmp "$tmp/want" "$datafile"
	does 'assert counted("resent_bytes") >= 102400; same(done("FSYNC"), 0)'
	crash
	echo 1 >$late/go
	eventually 20 cmp "$tmp/want" "$datafile"
	late_done 3
	does 'same([came(fd), came(second)], [0, 0])'
	right again
	resent_end again
}
