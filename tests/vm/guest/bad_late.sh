# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of what one task does while another is between two of its steps. Who is to be late is
# held in the kernel (tests/vm/late), or waits for a daemon that is stopped. Sourced by it.
# shellcheck shell=bash disable=SC2154

late=/sys/module/late/parameters

# late PARAMETER...: holds what the parameters say, from now on; see late.c
late()
{
	insmod "$build/kmod/$(uname -r)/late/late.ko" "$@"
}

late_is()
{
	local is

	is=$(cat $late/"$1")
	[ "$is" = "$2" ] || { echo "$1 $is"; return 1; }
}

# late_done N: it has held N and let them go for what they waited for
late_done()
{
	grep . $late/{seen,held,freed,missed}
	late_is held "$1"
	late_is freed "$1"
	rmmod late
}

# late_try NAME COMMAND...: as try; a kernel without probes cannot hold anybody.
late_try()
{
	if grep -q ' register_kprobe$' /proc/kallsyms; then
		try "$@"
	else
		diag "LEFT OUT, as $(uname -r) has no probes: $1"
		result 0 "$1 # SKIP no probes in this kernel"
	fi
}

# one_cpu NAME: is this left out, as who is held up is to have a CPU, and so a connection, of its own?
one_cpu()
{
	[ "$(nproc)" = 1 ] || return 1
	diag "LEFT OUT, as there is one CPU: $1"
	result 0 "$1 # SKIP one CPU"
}

# try_two NAME COMMAND..., late_two NAME COMMAND...: as try and late_try, with two CPUs.
try_two()
{
	if ! one_cpu "$1"; then
		try "$@"
	fi
}

late_two()
{
	if ! one_cpu "$1"; then
		late_try "$@"
	fi
}

# The socket takes no more, and has room again before that is noted: nobody else will say so. (Later the iod would
# give the connection up, as half a request is all that it has.)
room_in_full_socket()
{
	local f=$G/striped/full wmem

	wmem=$(cat /proc/sys/net/ipv4/tcp_wmem)
	echo 4096 16384 16384 >/proc/sys/net/ipv4/tcp_wmem
	"$cluster" mount -o nconnect=1 $G
	one_iod_file "$f"
	# The connection is made for that.
	sync "$f"
	echo "$wmem" >/proc/sys/net/ipv4/tcp_wmem
	late hold=pvfs_tcp_send_pages ret=-11 until=tcp_kern_write_space room=1
	"$cluster" kill iod0 STOP
	background dd if=/dev/zero of="$f" bs=1M count=1 conv=notrunc status=none
	eventually 20 late_is held 1
	"$cluster" kill iod0 CONT
	ended 15
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	late_done 1
	rm "$f"
	"$cluster" umount $G
}

# Two tasks go through the files that are open, of which there is one; the second does while the first is at it. Each comes
# to it once: a walk that takes another's mark for none goes round again, and two such do for as long as they meet.
two_walks()
{
	local f=$G/striped/walked one

	"$cluster" mount $G
	: >"$f"
	exec 5<"$f"
	late hold=pvfs_walk_next 'ret=!0'
	sync -f $G/striped &
	one=$!
	eventually 20 late_is holds 1 >/dev/null
	within 20 sync -f $G/striped
	late_is holds 1
	echo 1 >$late/go
	wait $one
	late_is seen 2
	late_done 1
	exec 5<&-
	rm "$f"
	"$cluster" umount $G
}

# We exchange two names that another client has exchanged since we looked: they stand for what they did, and the VFS is yet
# to exchange them here. Who asks for one of them in between is not to have it believed as what it stands for in his hand.
asked_in_rename()
{
	local d=striped/renamed

	mkdir "$M/$d"
	: >"$M/$d/a"
	: >"$M/$d/b"
	"$cluster" mount -o actimeo=60 $G
	stat $G/$d/a $G/$d/b
	exchange "$M/$d/a" "$M/$d/b"
	late hold=pvfs_rename ret=0
	background exchange $G/$d/a $G/$d/b
	eventually 20 late_is holds 1 >/dev/null
	within 20 stat $G/$d/a
	late_is holds 1
	echo 1 >$late/go
	ended 20
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	late_done 1
	stat -c '%n %i' $G/$d/a "$M/$d/a" $G/$d/b "$M/$d/b"
	[ "$(stat -c %i $G/$d/b)" = "$(stat -c %i "$M/$d/b")" ]
	[ "$(stat -c %i $G/$d/a)" = "$(stat -c %i "$M/$d/a")" ]
	"$cluster" umount $G
	rm -r "${M:?}/$d"
}

# A read from the page cache has begun, and waits for its first page; meanwhile another client makes the file longer, and this
# one hears of it. The last page is there, from before: the zeros behind the end that the file had are no bytes of it.
grown_in_read()
{
	local f=striped/grown

	head -c 8292 /dev/zero | tr '\0' a >"$M/$f"
	"$cluster" mount -o lease=on $G
	cat $G/$f >/dev/null
	dd if=$G/$f of=/dev/null iflag=nocache bs=8192 count=1 status=none
	late hold=pvfs_io_start
	background eval "dd if=$G/$f bs=20000 count=1 status=none | tr -d ab | wc -c"
	eventually 20 late_is holds 1 >/dev/null
	head -c 1000 /dev/zero | tr '\0' b >>"$M/$f"
	[ "$(stat -c %s $G/$f)" = 9292 ]
	late_is holds 1
	echo 1 >$late/go
	ended 20
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg")" = 0 ]
	late_done 1
	"$cluster" umount $G
	rm "$M/$f"
}

# late_close FILE: a file of $G is written and closed, on the first CPU, and the answer to the CLOSE, which has a lease, is on
# its way. What follows is on the other; so is what the mgr asks, which comes on the connection that was made last.
late_close()
{
	taskset -c 0 "$cluster" mount -o lease=on,nconnect=2 $G
	taskset -c 0 stat -f $G
	taskset -c 1 stat -f $G
	echo first >"$M/$1"
	stat $G/$1
	late hold=close_done
	taskset -c 0 bash -c "echo one 1<>$G/$1"
	eventually 20 late_is holds 1 >/dev/null
	taskset -cp 1 "$BASHPID" >/dev/null
}

# It comes.
late_closed()
{
	late_is holds 1
	echo 1 >$late/go
	eventually 20 late_is holds 0 >/dev/null
	sleep 0.3
}

# Opened for writing again meanwhile, and written: that is asked about, as of any file that is.
opened_before_close_answered()
{
	local f=striped/again stats=/proc/fs/pvfs/vol-2

	late_close $f
	exec 6<>$G/$f
	head -c 5000 /dev/zero >&6
	late_closed
	echo reset >$stats/stats
	[ "$(stat -c %s $G/$f)" = 5000 ]
	[ "$(count GETATTR $stats)" = 1 ]
	exec 6>&-
	late_done 1
	"$cluster" umount $G
	rm "$M/$f"
}

# Changed meanwhile by another client, whose RECALL has been answered before the CLOSE was.
recalled_before_close_answered()
{
	local f=striped/recalled

	late_close $f
	background chmod 600 "$M/$f"
	ended 20
	late_closed
	[ "$(stat -c %a $G/$f)" = 600 ]
	late_done 1
	"$cluster" umount $G
	rm "$M/$f"
}

# A CLOSE goes out after its inode was forgotten, the mgr was started anew, and the file opened again: it is not of that open,
# for which the file stays when its name is removed.
closed_after_restart()
{
	"$cluster" mount -o lease=off $G
	echo kept >"$M/kept"
	sync -f "$M"
	sleep 0.3
	late hold=closes_work
	cat $G/kept
	eventually 20 late_is holds 1 >/dev/null
	evict $G/kept
	restart_mgr
	within 60 stat $G/tree
	exec 5<$G/kept
	late_is holds 1
	echo 1 >$late/go
	sleep 0.3
	rm "$M/kept"
	[ "$(cat <&5)" = kept ]
	exec 5<&-
	late_done 1
	"$cluster" umount $G
}

# exchange A B: by renameat2(2)
exchange()
{
	perl -e 'syscall(316, -100, $ARGV[0], -100, $ARGV[1], 2) and die "renameat2: $!"' "$1" "$2"
}

# two_iods_file FILE: 128 KiB that begin with "old", half of them with iod 0, half with iod 1, and none in memory
two_iods_file()
{
	: >"$1"
	setfattr -n pvfs.layout -v "base=0 pcount=2 ssize=65536" "$1"
	(printf old; head -c 131069 /dev/zero) >"$1"
	drop_caches
}

# mapper FILE: a process, $mapper, maps it, and does what is written to descriptor 8: "look N": its first bytes
# to $tmp/look.N; "store": a byte, and sync it.
mapper()
{
	rm -f "$tmp"/look.* "$tmp/mapper" "$tmp/mapped"
	mkfifo "$tmp/mapper"
	python3 - "$1" "$tmp" "$tmp/mapper" <<-'END' &
		import mmap, os, sys
		name, tmp, fifo = sys.argv[1:]
		m = mmap.mmap(os.open(name, os.O_RDWR), 131072)
		def tell(what, word):
		    with open(tmp + "/new", "w") as out:
		        out.write(word)
		    os.rename(tmp + "/new", tmp + "/" + what)
		tell("mapped", "")
		for line in open(fifo):
		    what = line.strip()
		    if what == "store":
		        m[100] = 115
		        m.flush()
		        tell("stored", "")
		    else:
		        tell(what, m[:3].decode())
	END
	mapper=$!
	exec 8>"$tmp/mapper"
	eventually 20 [ -e "$tmp/mapped" ]
}

# looks N WORD: the mapper sees that
looks()
{
	echo "look.$1" >&8
	eventually 20 [ -e "$tmp/look.$1" ]
	[ "$(cat "$tmp/look.$1")" = "$2" ]
}

looks_anew()
{
	looks=$((looks + 1))
	looks $looks "$1"
}

# late_writer FILE: a process, $writer, that writes a page that begins with "new", to the iods at once, when told to by
# descriptor 9
late_writer()
{
	rm -f "$tmp/writer" "$tmp/opened" "$tmp/begun"
	mkfifo "$tmp/writer"
	python3 - "$1" "$tmp/opened" "$tmp/begun" "$tmp/writer" <<-'END' &
		import os, sys
		name, opened, begun, fifo = sys.argv[1:]
		fd = os.open(name, os.O_RDWR | os.O_DSYNC)
		open(opened, "w").close()
		open(fifo).readline()
		open(begun, "w").close()
		os.pwrite(fd, b"new" + bytes(4093), 0)
	END
	writer=$!
	exec 9>"$tmp/writer"
	eventually 20 [ -e "$tmp/opened" ]
}

writes_done()
{
	awk '$1 == "WRITE" { n = $2 } END { print n + 0 }' $S/stats
}

# Half of what is read ahead has come, and its pages are locked for the other half.
half_read()
{
	grep '^iod 1 READ' $S/requests
	refuse grep '^iod 0' $S/requests
}

# Who is killed while he waits for pages that are read ahead leaves none from before his write: before that, it is
# not done; after it, they go.
killed_behind_readahead()
{
	local f=striped/ahead none=/mnt/none looks=0 before

	"$cluster" mount -o cache=none $none
	two_iods_file "$M/$f"
	late_writer "$M/$f"
	mapper "$M/$f"
	"$cluster" kill iod1 STOP
	echo look.0 >&8
	eventually 20 half_read
	echo go >&9
	eventually 20 [ -e "$tmp/begun" ]
	eventually 20 in_deep_sleep $writer
	kill -KILL $writer
	eventually 20 gone $writer
	eventually 20 half_read
	"$cluster" kill iod1 CONT
	eventually 20 [ -e "$tmp/look.0" ]
	starts_with $none/$f old
	looks_anew old
	exec 8>&- 9>&-
	wait $mapper
	rm "$M/$f"

	two_iods_file "$M/$f"
	late_writer "$M/$f"
	mapper "$M/$f"
	# He has thrown the pages away, and not written yet.
	late hold=pvfs_io_start
	echo go >&9
	eventually 20 late_is holds 1 >/dev/null
	"$cluster" kill iod1 STOP
	echo look.0 >&8
	eventually 20 half_read
	before=$(writes_done)
	echo 1 >$late/go
	# It is done, and he waits for the pages; whoever else wants the file waits for who maps it.
	eventually 20 eval '[ "$(writes_done)" -gt $before ]'
	eventually 20 in_deep_sleep $writer
	late_done 1
	kill -KILL $writer
	eventually 20 gone $writer
	"$cluster" kill iod1 CONT
	eventually 20 [ -e "$tmp/look.0" ]
	eventually 20 starts_with $none/$f new
	eventually 20 looks_anew new
	echo store >&8
	eventually 20 [ -e "$tmp/stored" ]
	starts_with $none/$f new
	[ "$(head -c 101 $none/$f | tail -c 1)" = s ]
	exec 8>&- 9>&-
	wait $mapper
	rm "$M/$f"
	"$cluster" umount $none
}

# A thread of the kernel, which lets go of files for all, takes a lock off without a manager that answers. Two files
# are in the hands of rings, whose end is such a thread's; the second's lock, of another file system, is off then.
unlocked_by_kernel()
{
	local ringer

	: >"$M/ring"
	rm -f "$tmp/other" "$tmp/ringer" "$tmp/ringing"
	mkfifo "$tmp/ringer"
	python3 - "$M/ring" "$tmp/other" "$tmp/ringing" "$tmp/ringer" <<-'END' &
		import ctypes, fcntl, os, sys
		names, ringing, fifo = sys.argv[1:3], sys.argv[3], sys.argv[4]
		libc = ctypes.CDLL(None, use_errno=True)
		def call(*args):
		    r = libc.syscall(*args)
		    if r < 0:
		        sys.exit(os.strerror(ctypes.get_errno()))
		    return r
		rings = []
		for name in names:
		    fd = os.open(name, os.O_RDWR | os.O_CREAT)
		    fcntl.flock(fd, fcntl.LOCK_EX)
		    rings.append(call(425, 1, ctypes.create_string_buffer(120)))
		    call(427, rings[-1], 2, ctypes.byref(ctypes.c_int(fd)), 1)
		    os.close(fd)
		open(ringing, "w").close()
		with open(fifo) as lines:
		    for ring in rings:
		        lines.readline()
		        os.close(ring)
		    lines.readline()
	END
	ringer=$!
	exec 9>"$tmp/ringer"
	eventually 20 [ -e "$tmp/ringing" ]
	locked "$M/ring"
	locked "$tmp/other"
	"$cluster" kill mgr STOP
	echo first >&9
	eventually 20 grep LOCK $S/requests
	echo second >&9
	eventually 5 flock -n "$tmp/other" true
	"$cluster" kill mgr CONT
	within 30 flock -x "$M/ring" true
	exec 9>&-
	wait $ringer
	rm "$M/ring"
}
