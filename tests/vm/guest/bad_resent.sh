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
