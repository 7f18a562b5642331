# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of processes that end, and of unmounting, while a server is away. Sourced by it.
# shellcheck shell=bash disable=SC2154

# storer FILE WORD: a process, $storer, maps FILE, which has a page, and stores WORD in it; then it sleeps.
storer()
{
	rm -f "$tmp/stored"
	python3 - "$1" "$2" "$tmp/stored" <<-'END' &
		import mmap, os, sys, time
		name, word, told = sys.argv[1:]
		fd = os.open(name, os.O_RDWR)
		m = mmap.mmap(fd, 4096)
		m[:len(word)] = word.encode()
		open(told, "w").close()
		time.sleep(1000)
	END
	storer=$!
	eventually 30 [ -e "$tmp/stored" ]
}

# Pages are written when the test says so, and not some seconds later by the kernel: it thinks little of a mount that has
# written little. (0 would have it look at once.)
by_hand()
{
	sync -f "$M"
	echo 360000 >/proc/sys/vm/dirty_writeback_centisecs
}

by_itself()
{
	echo 500 >/proc/sys/vm/dirty_writeback_centisecs
}

# A zombie's parent may take it up at once.
gone()
{
	local state

	read -r _ _ state _ <"/proc/$1/stat" 2>/dev/null || return 0
	[ "$state" = Z ]
}

# starts_with FILE WORD
starts_with()
{
	[ "$(head -c ${#2} "$1")" = "$2" ]
}

# one_iod_file FILE [IOD]: a file of 4096 zeros, all of it with that iod, 0 if none is said
one_iod_file()
{
	: >"$1"
	setfattr -n pvfs.layout -v "base=${2-0} pcount=1 ssize=65536" "$1"
	head -c 4096 /dev/zero >"$1"
}

# What a process had stored through a mapping when it was killed: with its end it is there for others; if the iod is
# away it ends all the same, and the bytes arrive when the iod is back.
killed_with_mapping()
{
	local f=striped/mapped

	"$cluster" mount /mnt/pool
	one_iod_file "$M/$f"
	storer "$M/$f" live
	kill -KILL "$storer"
	wait "$storer" || true
	starts_with "/mnt/pool/$f" live

	by_hand
	storer "$M/$f" dirty
	"$cluster" kill iod0 STOP
	by_itself
	kill -KILL "$storer"
	eventually 30 gone "$storer"
	"$cluster" kill iod0 CONT
	eventually 30 starts_with "/mnt/pool/$f" dirty

	# The same, when the pages are in the flusher's hands.
	by_hand
	storer "$M/$f" flush
	"$cluster" kill iod0 STOP
	background sync -f "$M"
	eventually 60 grep WRITE $S/requests
	by_itself
	kill -KILL "$storer"
	eventually 30 gone "$storer"
	"$cluster" kill iod0 CONT
	eventually 30 starts_with "/mnt/pool/$f" flush
	ended 30
	"$cluster" umount /mnt/pool
	rm "$M/$f"
}

# Who holds the memory of a process that ends, to read of it, takes it apart; that is not held up by an iod that is
# away, as ps would be for every such process.
killed_and_read()
{
	local f=striped/read other=striped/other reader

	one_iod_file "$M/$f"
	one_iod_file "$M/$other" 1
	drop_caches
	storer "$M/$f" dirty
	"$cluster" kill iod1 STOP
	rm -f "$tmp/read"
	# Its own memory, where the bytes are to go, is of a file whose iod is away.
	python3 - "$storer" "$M/$other" "$tmp/read" <<-'END' &
		import ctypes, mmap, os, sys
		pid, name, told = sys.argv[1:]
		class iovec(ctypes.Structure):
		    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
		libc = ctypes.CDLL(None, use_errno=True)
		m = mmap.mmap(os.open(name, os.O_RDWR), 4096)
		here = iovec(ctypes.addressof(ctypes.c_char.from_buffer(m)), 1)
		with open("/proc/%s/maps" % pid) as maps:
		    at = next(int(l.split("-")[0], 16) for l in maps if l.endswith("[stack]\n"))
		there = iovec(at, 1)
		if libc.process_vm_readv(int(pid), ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != 1:
		    sys.exit(os.strerror(ctypes.get_errno()))
		open(told, "w").close()
	END
	reader=$!
	eventually 20 grep '^iod 1 READ' $S/requests
	"$cluster" kill iod0 STOP
	kill -KILL "$storer"
	eventually 20 gone "$storer"
	refuse [ -e "$tmp/read" ]
	"$cluster" kill iod1 CONT
	eventually 20 [ -e "$tmp/read" ]
	eventually 20 gone $reader
	"$cluster" kill iod0 CONT
	wait $reader
	echo 3 >/proc/sys/vm/drop_caches
	eventually 20 starts_with "$M/$f" dirty
	rm "$M/$f" "$M/$other"
}

# Waits where only what it waits for, or a kill, wakes it.
in_deep_sleep()
{
	local i state

	for i in 1 2 3 4 5; do
		read -r _ _ state _ <"/proc/$1/stat" || return 1
		[ "$state" = D ] || return 1
		sleep 0.05
	done
}

# Calls that wait for a page which the flusher is writing, to an iod that does not answer, end with a kill.
killed_behind_flusher()
{
	local f=striped/flushed parent what pid

	"$cluster" mount /mnt/pool
	"$cluster" mount -o flush=close /mnt/laid
	one_iod_file "/mnt/laid/$f"
	by_hand
	rm -f "$tmp/stored" "$tmp/fifo" "$tmp/calls"
	mkfifo "$tmp/fifo"
	python3 - "/mnt/laid/$f" "$tmp/stored" "$tmp/fifo" "$tmp/calls" <<-'END' &
		import ctypes, mmap, os, sys, time
		name, told, fifo, calls = sys.argv[1:]
		libc = ctypes.CDLL(None)
		fd = os.open(name, os.O_RDWR)
		# Another read takes the page as it is, under a WRITE lease.
		direct = os.open(name, os.O_RDONLY | os.O_DIRECT)
		m = mmap.mmap(fd, 4096)
		at = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m)))
		m[:5] = b"store"
		open(told, "w").close()
		open(fifo).read()
		pids = []
		for what, call in (("fsync", lambda: os.fsync(fd)),
				   ("close", lambda: os.close(fd)),
				   ("munmap", lambda: libc.munmap(at, 4096)),
				   ("read", lambda: os.preadv(direct, [mmap.mmap(-1, 4096)], 0)),
				   ("write", lambda: os.pwrite(fd, b"x", 0)),
				   ("truncate", lambda: os.ftruncate(fd, 1)),
				   ("store", lambda: m.__setitem__(0, 120))):
		    pid = os.fork()
		    if not pid:
		        call()
		        time.sleep(1000)
		    pids.append("%s %d\n" % (what, pid))
		with open(calls + ".new", "w") as out:
		    out.writelines(pids)
		os.rename(calls + ".new", calls)
		time.sleep(1000)
	END
	parent=$!
	eventually 30 [ -e "$tmp/stored" ]
	"$cluster" kill iod0 STOP
	background sync -f /mnt/laid
	eventually 20 grep WRITE /proc/fs/pvfs/*/requests
	by_itself
	echo go >"$tmp/fifo"
	eventually 20 [ -e "$tmp/calls" ]
	while read -r what pid; do
		echo "$what"
		eventually 20 in_deep_sleep "$pid"
	done <"$tmp/calls"
	while read -r what pid; do
		kill -KILL "$pid"
	done <"$tmp/calls"
	while read -r what pid; do
		echo "$what, killed"
		eventually 20 gone "$pid"
	done <"$tmp/calls"
	"$cluster" kill iod0 CONT
	ended 30
	kill -KILL "$parent"
	wait "$parent" || true
	# What was asked for by who was killed was not done.
	starts_with "/mnt/pool/$f" store
	[ "$(stat -c %s "/mnt/pool/$f")" = 4096 ]
	"$cluster" umount /mnt/pool
	"$cluster" umount /mnt/laid
	rm "$M/$f"
}

# Who syncs beside a task that is killed with the same page in its hands has it written: it is dirty again.
fsync_beside_killed()
{
	local f=striped/beside writer syncer

	one_iod_file "$M/$f"
	by_hand
	rm -f "$tmp/stored" "$tmp/fifo" "$tmp/begin" "$tmp/synced"
	mkfifo "$tmp/fifo"
	python3 - "$M/$f" "$tmp/stored" "$tmp/fifo" <<-'END' &
		import mmap, os, sys
		name, told, fifo = sys.argv[1:]
		m = mmap.mmap(os.open(name, os.O_RDWR), 4096)
		m[:5] = b"store"
		open(told, "w").close()
		open(fifo).read()
		m.flush()
	END
	writer=$!
	python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
sys.stdin.readline()
os.fsync(fd)
open(sys.argv[2], "w").close()' "$M/$f" "$tmp/synced" < <(eventually 60 [ -e "$tmp/begin" ]; echo) &
	syncer=$!
	eventually 30 [ -e "$tmp/stored" ]
	"$cluster" kill iod0 STOP
	echo go >"$tmp/fifo"
	eventually 20 grep WRITE $S/requests
	by_itself
	: >"$tmp/begin"
	eventually 30 in_deep_sleep $syncer
	kill -KILL $writer
	eventually 20 gone $writer
	# That it does not return there is no event for.
	sleep 2
	refuse [ -e "$tmp/synced" ]
	"$cluster" kill iod0 CONT
	eventually 30 [ -e "$tmp/synced" ]
	wait $syncer
	rm "$M/$f" "$tmp/begin"
}

# A child execs, and so closes what its parent has open and wrote: what could not be written the parent's fsync still
# tells, once. With a draft, and with a page that was stored to.
told_beside_child()
{
	local f=/mnt/soft/striped/child

	# Else there is nothing that could fail: what was stored is written behind a close.
	"$cluster" mount -o soft,timeo=10,flush=close /mnt/soft
	one_iod_file $f
	by_hand
	background behind_python $f /mnt/soft/child "$(pgrep -x pvfs-mgr)" "$(pgrep -f 'pvfs-iod --index 0')" <<-'END'
		import mmap
		from behind import *
		striped, draft = sys.argv[1:3]
		servers = [int(x) for x in sys.argv[3:]]
		def child_execs():
		    for pid in servers:
		        freeze(pid)
		    child = os.fork()
		    if not child:
		        os.execv("/bin/true", ["true"])
		    os.waitpid(child, 0)
		    for pid in servers:
		        os.kill(pid, signal.SIGCONT)
		fd = os.open(draft, os.O_WRONLY | os.O_CREAT)
		os.write(fd, bytes(100))
		child_execs()
		print("draft", [came(fd), came(fd)])
		fd = os.open(striped, os.O_RDWR)
		m = mmap.mmap(fd, 4096)
		m[:5] = b"store"
		child_execs()
		print("stored to", [came(fd), came(fd)])
	END
	ended 60
	by_itself
	cat "$tmp/bg"
	diff - "$tmp/bg" <<-'END'
		draft [5, 0]
		stored to [5, 0]
	END
	rm $f /mnt/soft/child
	"$cluster" umount /mnt/soft
}

# Who has just written to a new file $1, and with $2 has a lock on it, is killed when the manager is away.
killed_with()
{
	local pid

	rm -f "$tmp/made"
	perl -e 'open(F, ">", $ARGV[0]) or die; @ARGV < 3 or flock(F, 2) or die; syswrite(F, "draft") or die;
		open(T, ">", $ARGV[1]); close(T); sleep' "$1" "$tmp/made" "${@:2}" &
	pid=$!
	eventually 30 [ -e "$tmp/made" ]
	"$cluster" kill mgr STOP
	kill -KILL $pid
	eventually 40 gone $pid
}

# It is kept back for a second; if the manager was stopped later, this says less.
killed_with_draft()
{
	killed_with "$M/killed" lock
	"$cluster" kill mgr CONT
	eventually 30 starts_with "$M/killed" draft
	within 30 flock -x "$M/killed" true
	rm "$M/killed"
}

# Leaves a draft $1 on /mnt/pool, of who was killed, and no manager. (Or once more: as above.)
due_draft()
{
	"$cluster" mount /mnt/pool
	for _ in 1 2 3 4 5; do
		rm -f "$M/$1"
		killed_with "/mnt/pool/$1"
		! grep "^drafts 1$" /proc/fs/pvfs/vol-*/leases || return 0
		"$cluster" kill mgr CONT
	done
	return 1
}

# The manager is away, and longer than umount waits for messages: a draft is not lost with the mount. Who will not wait is told
# what that costs.
umount_with_draft()
{
	due_draft waited
	background perl -e 'syscall(166, $ARGV[0], 0) and die "umount2: $!"' /mnt/pool
	sleep 8
	[ ! -e "$tmp/bg.rc" ]
	"$cluster" kill mgr CONT
	ended 60
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	"$cluster" umount /mnt/pool || true
	starts_with "$M/waited" draft
	due_draft forced
	background perl -e 'syscall(166, $ARGV[0], 1) and die "umount2: $!"' /mnt/pool
	ended 60
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	"$cluster" kill mgr CONT
	"$cluster" umount /mnt/pool || true
	dmesg | grep "inode $(stat -c %i "$M/forced"): what was written to a new file is lost: error -"
	rm "$M/waited" "$M/forced"
}
