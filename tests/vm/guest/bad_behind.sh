# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of what was written behind, to the page cache, while a server, the writer or its session goes away, or
# somebody else wants it. Sourced by it, after bad_exit.sh and bad_session.sh.
# shellcheck shell=bash disable=SC2154

P=/mnt/pool
NEVER=65535	# no request has that number
HEAD_WRITE=61

# behind_python MINE OTHER PROC [ARGUMENT...]: python with the words of behind.py
behind_python()
{
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/vm/guest python3 - "$@"
}

# hand MINE OTHER PROC: a process, $hand, that does what `does` says, a line of python each. It ends when descriptor 9 is
# closed, so with the row. put(N) writes N bytes more to fd, want is all of them.
hand()
{
	rm -f "$tmp"/hand*
	mkfifo "$tmp/hand"
	# Not by a function: who is killed is to be this process.
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/vm/guest python3 - "$@" "$tmp/hand" >"$tmp/hand.out" 2>&1 <<-'END' &
		import traceback
		from behind import *
		want = bytearray()
		def put(n):
		    data = bytes_of(n, len(want))
		    want.extend(data)
		    same(os.write(fd, data), n)
		for n, line in enumerate(open(sys.argv[4]), 1):
		    how = 'well'
		    try:
		        exec(line)
		    except BaseException:
		        traceback.print_exc()
		        how = 'failed'
		    sys.stdout.flush()
		    tell(sys.argv[4] + '.did', f'{n} {how}\n')
	END
	hand=$!
	done_lines=0
	exec 9>"$tmp/hand"
}

# begins LINE: it does that, and nobody waits; did: it has, within 60 s, and it went well; does LINE: both
begins()
{
	done_lines=$((done_lines + 1))
	echo "$1" >&9
}

did()
{
	eventually 60 grep -qs "^$done_lines " "$tmp/hand.did"
	grep -q "^$done_lines well" "$tmp/hand.did" || { cat "$tmp/hand.out"; return 1; }
}

does()
{
	begins "$1"
	did || { echo "$1"; return 1; }
}

hand_ends()
{
	exec 9>&-
	wait "$hand"
}

# What was written is what FILE has.
is_wanted()
{
	does "open('$tmp/want', 'wb').write(want)"
	cmp "$tmp/want" "$1"
}

# The grace after a restart of the mgr is over: it knows again what a file is that nobody writes any more.
behind_settled()
{
	local f=$M/striped/settled

	eventually 100 eval "rm -f $f; : >$f; setfattr -n pvfs.layout -v pcount=1 $f" >/dev/null 2>&1
	rm "$f"
}

# Its writes had returned: what becomes of the writer does not matter, nor that an iod is away when he ends.
behind_killed()
{
	local f=striped/killed

	behind_settled
	"$cluster" mount $P
	by_hand
	hand "$M/striped" $P/striped "$S"
	does 'fd = new("killed", os.O_WRONLY)'
	does 'for i in range(100): put(1000)'
	does 'sent(); same(counted("written_behind"), 100000)'
	does "open('$tmp/want', 'wb').write(want)"
	kill -KILL "$hand"
	wait "$hand" || [ $? = 137 ]
	cmp "$tmp/want" $P/$f
	rm "$M/$f"

	one_iod_file "$M/$f"
	hand "$M/striped" $P/striped "$S"
	does 'fd = held("killed", os.O_WRONLY)'
	does 'for i in range(100): put(1000)'
	# Of the page that was there.
	does 'sent(READ=1); same(counted("written_behind"), 100000)'
	does "open('$tmp/want', 'wb').write(want)"
	"$cluster" kill iod0 STOP
	by_itself
	kill -KILL "$hand"
	eventually 30 gone "$hand"
	"$cluster" kill iod0 CONT
	eventually 30 cmp "$tmp/want" $P/$f
	"$cluster" umount $P
	rm "$M/$f"
}

# An iod is away, and longer than umount waits for messages: what was written, and what was stored through a mapping, and
# closed, is not lost with the mount.
behind_unmounted()
{
	local f

	"$cluster" mount $P
	for f in written stored forced; do one_iod_file "$P/striped/$f"; done
	by_hand
	"$cluster" kill iod0 STOP
	python3 - $P/striped <<-'END'
		import mmap, os, sys
		os.chdir(sys.argv[1])
		with open('written', 'r+b') as f:
		    f.write(b'written')
		with open('stored', 'r+b') as f:
		    m = mmap.mmap(f.fileno(), 4096)
		    m[:6] = b'stored'
		    m.close()
	END
	background "$cluster" umount $P
	sleep 8
	[ ! -e "$tmp/bg.rc" ]
	"$cluster" kill iod0 CONT
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	by_itself
	for f in written stored; do
		starts_with "$M/striped/$f" $f
	done
	# Who will not wait is told what that costs.
	"$cluster" mount $P
	by_hand
	behind_python $P/striped "$M/striped" "$(echo /proc/fs/pvfs/vol-*)" "$(pgrep -f 'pvfs-iod --index 0')" <<-'END'
		from behind import *
		fd = held('forced', os.O_WRONLY)
		freeze(int(sys.argv[4]))
		os.write(fd, bytes_of(4096))
	END
	background "$cluster" umount -f $P
	ended 60
	"$cluster" kill iod0 CONT
	by_itself
	dmesg | grep "pvfs: vol: inode $(stat -c %i "$M/striped/forced"): something that was written and closed is lost: error -"
	rm "$M"/striped/{written,stored,forced}
}

# close does not wait for an iod that is away, unless it is to (flush=close), nor do those who want other files meanwhile. Of many
# files it does: they do not take all work items. When the iod is back all is there.
behind_closed()
{
	"$cluster" mount $P
	"$cluster" mount -o flush=close /mnt/laid
	by_hand
	behind_python "$M/striped" $P/striped "$S" /mnt/laid/striped "$(pgrep -f 'pvfs-iod --index 0')" <<-'END'
		import re
		import threading
		from behind import *
		waiting, iod = sys.argv[4], int(sys.argv[5])
		MANY = 64
		def new_at(iod, path):
		    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
		    os.setxattr(path, 'pvfs.layout', f'base={iod} pcount=1 ssize=65536'.encode())
		    return os.open(path, os.O_WRONLY)
		fds = [new_at(0, f'{mine}/closed{i}') for i in range(MANY + 16)]
		well = new_at(1, mine + '/well')
		waits = new_at(0, waiting + '/waits')
		# The first open's CLOSE may have come after the second.
		for i, fd in enumerate(fds + [well]):
		    eventually(lambda: (os.pwrite(fd, b'here', 0), leases('writes') > i)[-1])
		def leased():
		    os.pwrite(waits, b'here', 0)
		    return any(re.search(r'^writes +1$', open(x).read(), re.M) for x in glob.glob('/proc/fs/pvfs/*/leases'))
		eventually(leased)
		reset()
		for i, fd in enumerate(fds):
		    os.pwrite(fd, bytes_of(8192, i), 0)
		os.pwrite(well, b'well', 0)
		os.pwrite(waits, b'waits', 0)
		sent()
		closed, waited = [], []
		def close(fds, told):
		    for fd in fds:
		        os.close(fd)
		        told.append(fd)
		threads = [threading.Thread(target=close, args=x) for x in ((fds, closed), ([waits], waited))]
		freeze(iod)
		try:
		    for t in threads:
		        t.start()
		    eventually(lambda: len(closed) == MANY)
		    same(read(other + '/well'), b'well')
		    same((len(closed), waited), (MANY, []))
		finally:
		    os.kill(iod, signal.SIGCONT)
		    for t in threads:
		        t.join()
		for i in range(len(fds)):
		    same(read(f'{other}/closed{i}'), bytes_of(8192, i), i)
		same(read(other + '/waits'), b'waits')
	END
	by_itself
	"$cluster" umount /mnt/laid
	"$cluster" umount $P
	rm "$M"/striped/{closed*,well,waits}
}

# New small files, and the manager is away when they are closed. They are kept back for a second; if it was not away by
# then, once more.
behind_closed_drafts()
{
	"$cluster" mount $P
	"$cluster" mount -o flush=close /mnt/laid
	behind_python "$M" $P "$S" /mnt/laid "$(pgrep -x pvfs-mgr)" <<-'END'
		import threading
		from behind import *
		waiting, mgr = sys.argv[4], int(sys.argv[5])
		def lines_of_all(name):
		    return [x for path in glob.glob('/proc/fs/pvfs/*/' + name) for x in open(path)]
		def drafts():
		    return sum(int(x.split()[1]) for x in lines_of_all('leases') if x.startswith('drafts '))
		def flushing():
		    return sum('FLUSH' in x for x in lines_of_all('requests'))
		def drafted(i):
		    """All three files are drafts, and the manager is away"""
		    paths = f'{mine}/closed{i}', f'{waiting}/waits{i}', f'{mine}/old{i}'
		    made = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) for path in paths]
		    for fd in made:
		        os.write(fd, bytes_of(8192, i))
		    freeze(mgr)
		    if drafts() == 3 and not flushing():
		        return made
		    os.kill(mgr, signal.SIGCONT)
		    for fd in made:
		        os.close(fd)
		    return None
		calm()
		i, made = next((i, made) for i in range(20) if (made := drafted(i)))
		waits = threading.Thread(target=os.close, args=(made[1],))
		old = threading.Thread(target=os.close, args=(made[2],))
		syncs = threading.Thread(target=os.sync)
		try:
		    os.close(made[0])
		    waits.start()
		    # With the third, which is a second old; to close it is not to wait for that, either.
		    eventually(lambda: flushing() == 3)
		    old.start()
		    old.join(20 * SLOW)
		    assert not old.is_alive(), 'it has waited'
		    syncs.start()
		    syncs.join(1)
		    assert waits.is_alive(), 'it has not waited'
		    assert syncs.is_alive(), 'sync has not waited for what was closed'
		finally:
		    os.kill(mgr, signal.SIGCONT)
		    for t in old, waits, syncs:
		        if t.ident:
		            t.join()
		for name in 'closed', 'waits', 'old':
		    same(read(f'{other}/{name}{i}'), bytes_of(8192, i), name)
	END
	"$cluster" umount /mnt/laid
	"$cluster" umount $P
	rm "$M"/{closed,waits,old}*
}

# A new file is lost behind its close, and takes the place of a good one: rename says so, once.
behind_lost_renamed()
{
	echo good >"$M/good"
	"$cluster" mount -o soft,timeo=10 /mnt/soft
	behind_python /mnt/soft "$M" "$(echo /proc/fs/pvfs/vol-*)" "$(pgrep -x pvfs-mgr)" <<-'END'
		from behind import *
		mgr = int(sys.argv[4])
		def lost(path):
		    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
		    os.write(fd, b'better')
		    freeze(mgr)
		    try:
		        kept = leases('drafts') == 1
		        os.close(fd)
		    except OSError:             # it was on its way, so close has waited
		        kept = False
		    eventually(lambda: leases('drafts') == 0)
		    os.kill(mgr, signal.SIGCONT)
		    return path if kept else None
		calm()
		path = next(x for i in range(20) if (x := lost(f'{mine}/better{i}')))
		def renamed():
		    try:
		        os.rename(path, mine + '/good')
		    except OSError as e:
		        return e.errno
		    return 0
		same(renamed(), errno.EIO)
		same(read(other + '/good'), b'good\n')
		same(renamed(), 0)
		assert not os.path.exists(path)
	END
	"$cluster" umount /mnt/soft
	rm -f "$M"/better* "$M/good"
}

# The new mgr hears of the lease, which stands; nothing has to be written for that.
behind_restart()
{
	local f=striped/restart

	"$cluster" mount $P
	by_hand
	hand "$M/striped" $P/striped "$S"
	does 'fd = new("restart", os.O_WRONLY)'
	does 'for i in range(20): put(1000)'
	does 'sent(); same(counted("written_behind"), 20000); same(leases("writes"), 1)'
	restart_mgr
	within 60 stat "$M/tree"
	does 'same(leases("writes"), 1)'
	does 'same(requests().get("WRITE", 0), 0)'
	# It may not be known yet that the session lasts.
	does 'eventually(lambda: (reset(), put(10), counted("written_behind") == 10)[-1])'
	does 'reset()'
	does 'for i in range(20): put(1000)'
	does 'sent(); same(counted("written_behind"), 20000)'
	is_wanted $P/$f
	does 'eventually(lambda: leases("writes") == 0)'
	hand_ends
	by_itself
	"$cluster" umount $P
	rm "$M/$f"
}

# Who writes does not wait for an iod; who asks does, and can be killed.
behind_iod_stopped()
{
	local f=striped/stopped

	"$cluster" mount $P
	# Its name is known there.
	stat $P/striped
	one_iod_file "$M/$f"
	by_hand
	hand "$M/striped" $P/striped "$S"
	does 'fd = held("stopped", os.O_WRONLY | os.O_APPEND); want.extend(bytes(4096))'
	does 'put(1000)'
	"$cluster" kill iod0 STOP
	does 'for i in range(100): put(40)'
	does 'sent(); same(counted("written_behind"), 5000)'
	background stat -c %s $P/$f
	eventually 20 grep '^mgr ' /proc/fs/pvfs/vol-2/requests
	eventually 20 grep '^iod 0 WRITE' $S/requests
	# Whoever only wants to know how long it is takes the lease from nobody.
	does 'assert counted("settles") >= 1; same((counted("recalled"), leases("writes")), (0, 1))'
	[ ! -e "$tmp/bg.rc" ]
	kill -KILL "$(pgrep -x stat)"
	ended 5
	[ "$(cat "$tmp/bg.rc")" = 137 ]
	"$cluster" kill iod0 CONT
	eventually 30 eval '[ "$(stat -c %s '$P/$f')" = 9096 ]'
	is_wanted $P/$f
	hand_ends
	by_itself
	"$cluster" umount $P
	rm "$M/$f"
}

# Somebody reads past the page cache, and waits for what is dirty; meanwhile the file becomes longer, in the page cache: he
# gets the new bytes or none of them, not zeros.
behind_direct_read()
{
	local f=striped/direct i

	by_hand
	hand "$M/striped" "$M/striped" "$S"
	does 'fd = new("direct", os.O_WRONLY)'
	# A stripe unit; what comes next is on another iod.
	does 'put(65536)'
	for i in 0 1 2 3; do "$cluster" kill iod$i STOP; done
	background dd if="$M/$f" of="$tmp/read" bs=128k count=1 iflag=direct
	eventually 20 grep '^iod . WRITE' $S/requests
	does 'put(4096); same(counted("written_behind"), 69632)'
	[ ! -e "$tmp/bg.rc" ]
	for i in 0 1 2 3; do "$cluster" kill iod$i CONT; done
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	does "got = read('$tmp/read'); assert len(got) in (65536, 69632), len(got)"
	does 'same(got, bytes(want[:len(got)]))'
	hand_ends
	by_itself
	rm "$M/$f"
}

# Who opens a file to cut it waits for a write of this client that is on its way: else that might come to the iods after the cut,
# and be behind the end that we believe in.
cut_beside_write()
{
	local f=striped/cut i pid

	head -c 65536 /dev/urandom >"$M/$f"
	sync
	for i in 0 1 2 3; do "$cluster" kill iod$i STOP; done
	background dd if=/dev/zero of="$M/$f" bs=64k count=1 seek=1 oflag=direct conv=notrunc
	eventually 20 grep '^iod . WRITE' $S/requests
	python3 -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC))' "$M/$f" &
	pid=$!
	# For a lock, not for the mgr.
	eventually 30 eval "head -n 1 /proc/$pid/stack | grep pvfs_file_open" || { cat /proc/$pid/stack $S/requests; return 1; }
	refuse grep '^mgr OPEN' $S/requests
	for i in 0 1 2 3; do "$cluster" kill iod$i CONT; done
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	wait $pid
	[ "$(stat -c %s "$M/$f")" = 0 ]
	rm "$M/$f"
}

# More calls than a connection takes requests wait, on each of two clients, for files that the other writes: both can still say
# that they have written them. $1: up to so many bytes a file is with the mgr; $2: how many such calls there are to be: stat, or to
# open it to write, if $3
behind_crossed()
{
	local a=/mnt/pool b=/mnt/laid i

	mkdir "$M/crossed"
	setfattr -n pvfs.layout -v "stuff_max=$1 pcount=1" "$M/crossed"
	"$cluster" mount -o nconnect=1 $a
	"$cluster" mount -o nconnect=1 $b
	by_hand
	rm -f "$tmp/crossed" "$tmp/waiting"
	mkfifo "$tmp/crossed"
	STUFFED=$1 CALLS=$2 HOW=${3-} background behind_python $a/crossed $b/crossed /proc/fs/pvfs/vol-2 "$tmp/crossed" "$tmp/waiting" <<-'END'
		import resource, threading
		from behind import *
		N = 300				# more than a manager's credits
		resource.setrlimit(resource.RLIMIT_NOFILE, (8 * N, 8 * N))
		threading.stack_size(256 << 10)
		fds = [os.open(f'{d}/{i}-{j}', os.O_CREAT | os.O_WRONLY) for i, d in enumerate((mine, other)) for j in range(N)]
		if os.environ['STUFFED'] != '0':
		    for fd in fds:
		        # As a draft, if it is still one, or twice: then there is a lease.
		        os.pwrite(fd, b'before', 0)
		        os.pwrite(fd, b'before', 0)
		        os.fsync(fd)
		for fd in fds:
		    os.pwrite(fd, b'behind', 0)
		same(leases('writes'), N)
		same(counted('written_behind'), 6 * N)
		tell(sys.argv[5])
		open(sys.argv[4]).read()
		sizes = []
		def look(path):
		    if os.environ['HOW']:
		        fd = os.open(path, os.O_WRONLY)
		        n = os.fstat(fd).st_size
		        os.close(fd)
		    else:
		        n = os.stat(path).st_size
		    sizes.append(n)
		looks = [threading.Thread(target=look, args=(f'{d}/{1 - i}-{j}',), daemon=True)
		         for j in range(N) for i, d in enumerate((mine, other))]
		for t in looks:
		    t.start()
		eventually(lambda: sum(x[0] == 'mgr' for x in lines('requests')) >= int(os.environ['CALLS']))
		tell(sys.argv[5], 'all')
		eventually(lambda: len(sizes) == 2 * N, seconds=60)
		same(sizes, [6] * 2 * N)
	END
	eventually 200 [ -e "$tmp/waiting" ]
	if [ "$1" = 0 ]; then
		for i in 0 1 2 3; do "$cluster" kill iod$i STOP; done
	else
		late hold=pvfs_head_run times=1000
	fi
	echo go >"$tmp/crossed"
	eventually 60 grep -qs all "$tmp/waiting" || { cat "$tmp/bg" $S/../vol-2/requests; return 1; }
	if [ "$1" = 0 ]; then
		for i in 0 1 2 3; do "$cluster" kill iod$i CONT; done
	else
		# Those that begin meanwhile are held as well.
		eventually 100 eval "echo 1 >$late/go; [ -e $tmp/bg.rc ]"
	fi
	ended 100
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	by_itself
	[ "$1" = 0 ] || rmmod late
	"$cluster" umount $a
	"$cluster" umount $b
	rm -r "$M/crossed"
}

# More calls than a volume has requests wait for another client: what was written here comes to the iods all the same.
behind_calls()
{
	local f=striped/calls

	behind_settled
	"$cluster" mount $P
	one_iod_file "$M/$f"
	one_iod_file "$M/$f-here" 1
	by_hand
	hand "$M/striped" $P/striped "$S"
	does 'fd = held("calls", os.O_WRONLY)'
	rm -f "$tmp/calls" "$tmp/waiting"
	mkfifo "$tmp/calls"
	background behind_python $P/striped "$M/striped" /proc/fs/pvfs/vol-2 "$tmp/calls" "$tmp/waiting" <<-'END'
		import threading
		from behind import *
		threading.stack_size(128 << 10)
		fd = held('calls-here', os.O_WRONLY)
		os.stat(mine + '/calls')
		tell(sys.argv[5])
		open(sys.argv[4]).read()
		calls = [threading.Thread(target=os.stat, args=(mine + '/calls',), daemon=True) for _ in range(2200)]
		for t in calls:
		    t.start()
		# All that there are.
		eventually(lambda: (time.sleep(1), sum(x[0] == 'mgr' for x in lines('requests')) >= 2048)[-1], seconds=60)
		reset()
		# The rest of the page is read.
		sync = threading.Thread(target=lambda: (os.pwrite(fd, b'behind', 0), os.fsync(fd)), daemon=True)
		sync.start()
		sync.join(20 * SLOW)
		tell(sys.argv[5], 'stands still' if sync.is_alive() else 'synced')
		for t in calls:
		    t.join()
		same(counted('written_behind'), 6)
	END
	eventually 60 [ -e "$tmp/waiting" ]
	does 'put(1000); same(counted("written_behind"), 1000)'
	"$cluster" kill iod0 STOP
	echo go >"$tmp/calls"
	eventually 100 grep -qs . "$tmp/waiting" || true
	"$cluster" kill iod0 CONT
	ended 100
	cat "$tmp/bg" "$tmp/waiting"
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	[ "$(cat "$tmp/waiting")" = synced ]
	hand_ends
	by_itself
	"$cluster" umount $P
	rm "$M/$f" "$M/$f-here"
}

# The new mgr knows that a small file may be somebody's as well.
behind_head_restart()
{
	local f=heads/restart

	mkdir -p "$M/heads"
	"$cluster" mount $P
	by_hand
	hand "$M/heads" $P/heads "$S"
	does 'fd = new("restart", os.O_WRONLY)'
	does 'put(100); os.fsync(fd); reset()'
	does 'for i in range(20): put(100)'
	does 'same(counted("written_behind"), 2000); same(requests().get("HEAD_WRITE", 0), 0); same(leases("writes"), 1)'
	restart_mgr
	within 60 stat "$M/tree"
	does 'same(leases("writes"), 1)'
	does 'same(requests().get("HEAD_WRITE", 0), 0)'
	does 'eventually(lambda: (reset(), put(10), counted("written_behind") == 10)[-1])'
	does 'reset()'
	does 'for i in range(20): put(100)'
	does 'same(requests().get("HEAD_WRITE", 0), 0)'
	is_wanted $P/$f
	does 'eventually(lambda: leases("writes") == 0)'
	does 'put(100)'
	is_wanted $P/$f
	hand_ends
	by_itself
	"$cluster" umount $P
	rm -r "$M/heads"
}

# What was kept of a small file, and ends with a page, is on its way to the mgr, late, when the next record is appended there:
# it comes behind that.
behind_head_appended()
{
	local f=heads/appended

	mkdir "$M/heads"
	"$cluster" mount $P
	stat $P/heads
	by_hand
	hand "$M/heads" $P/heads "$S"
	does 'fd = new("appended", os.O_WRONLY | os.O_APPEND)'
	does 'while not leases("writes"): put(512); os.fsync(fd)'
	does 'reset()'
	does 'while len(want) < 8192 or len(want) % 4096: put(512)'
	does 'same(leases("writes"), 1); assert counted("written_behind") >= 4096; same(requests().get("HEAD_WRITE", 0), 0)'
	late hold=pvfs_head_run
	background cat $P/$f
	eventually 20 late_is holds 1
	begins 'put(512)'
	# It is to wait. If it does not, it is through.
	eventually 2 grep -qs "^$done_lines " "$tmp/hand.did" || true
	echo 1 >$late/go
	did
	ended 20
	is_wanted $P/$f
	hand_ends
	by_itself
	late_done 1
	"$cluster" umount $P
	rm -r "$M/heads"
}

# Who had a small file written back, to ask about it, is killed while the mgr has yet to hear of that; what is written to the same
# place afterwards comes to the mgr behind it.
behind_head_killed()
{
	local f=heads/killed

	mkdir "$M/heads"
	through_gate $HEAD_WRITE 1 ask -o nconnect=2
	by_hand
	hand $G/heads "$M/heads" /proc/fs/pvfs/vol-2
	# On another connection than who is killed.
	taskset -a -p 1 "$hand"
	does 'fd = new("killed", os.O_RDWR); put(100); os.fsync(fd)'
	does 'same(leases("writes"), 1); reset(); os.pwrite(fd, b"old", 0); same(counted("written_behind"), 3)'
	background taskset 2 stat $G/$f
	gate_holds
	kill -KILL "$(pgrep -x stat)"
	ended 5
	[ "$(cat "$tmp/bg.rc")" = 137 ]
	begins 'os.pwrite(fd, b"new", 0); os.fsync(fd); want[:3] = b"new"'
	# It is to wait. If it does not, it is through.
	eventually 3 grep -qs "^$done_lines " "$tmp/hand.did" || true
	kill -HUP $gate
	did
	does 'eventually(lambda: not lines("requests")); same(read(other + "/killed"), bytes(want)); same(counted("abandoned"), 0)'
	hand_ends
	by_itself
	umount $G
	kill $gate
	rm -r "$M/heads"
}

# Two mounts append to a small file, also while it becomes a large one.
behind_head_appenders()
{
	mkdir "$M/heads"
	"$cluster" mount $P
	behind_python "$M/heads" $P/heads "$S" <<-'END'
		from behind import *
		append_at_once('beside', 1000)
		append_at_once('changing', 7)
		append_at_once('long', 1000, 100)
		# Records that pages end with.
		for i in range(20):
		    append_at_once(f'short{i}', 1000, 512, 12)
	END
	"$cluster" umount $P
	rm -r "$M/heads"
}

# Two mounts append: one after the other, one beside the other, and as leases come and go.
behind_appenders()
{
	"$cluster" mount $P
	behind_python "$M/striped" $P/striped "$S" <<-'END'
		from behind import *
		def append(dir, name):
		    return os.open(f'{dir}/{name}', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
		def records(name):
		    data = read(f'{other}/{name}')
		    same(data, read(f'{mine}/{name}'), name)
		    return [data[i:i + 4] for i in range(0, len(data), 4)]
		def leased(name):
		    fd = append(mine, name)
		    if leases('writes') == 1:
		        return fd
		    os.close(fd)
		    return False
		want = []
		def put(fd):
		    want.append(b'%03d\n' % len(want))
		    same(os.write(fd, want[-1]), 4)
		reset()
		for i in range(20):
		    # The other's CLOSE may be on its way.
		    fd = eventually(leased, 'turns')
		    put(fd)
		    put(fd)
		    same(counted('written_behind'), 8 * (i + 1))
		    there = append(other, 'turns')
		    put(there)
		    put(fd)
		    put(there)
		    os.close(there)
		    os.close(fd)
		same(records('turns'), want)
		# The first has a lease until the second comes, which finds its bytes.
		want = []
		fds = [append(mine, 'open')]
		reset()
		for i in range(30):
		    os.write(fds[0], b'%03d\n' % i)
		    want.append(b'%03d\n' % i)
		same(counted('written_behind'), 120)
		fds.append(append(other, 'open'))
		for i in range(30, 90):
		    os.write(fds[i % 2], b'%03d\n' % i)
		    want.append(b'%03d\n' % i)
		    same(os.fstat(fds[(i + 1) % 2]).st_size, 4 * (i + 1))
		same(records('open'), want)
		append_at_once('beside', 1000)
		append_at_once('changing', 7)
	END
	"$cluster" umount $P
	rm "$M"/striped/{turns,open,beside,changing}
}

# $1: their directory, below the mounts. 20 files are written through one mount, opened anew every now and then, so that there is a lease, and read through another: who
# was told that something was written finds it.
behind_storm()
{
	"$cluster" mount $P
	mkdir -p "$M/$1"
	behind_python "$M/$1" "$P/$1" "$S" <<-'END'
		import mmap, struct
		from behind import *
		FILES, WRITERS, ROUNDS = 20, 4, 12
		# Of each file, how often it was written; how often it was looked at; and whether that is enough.
		told = mmap.mmap(-1, 4096)
		get = lambda i: struct.unpack_from('<Q', told, 8 * i)[0]
		put = lambda i, n: struct.pack_into('<Q', told, 8 * i, n)
		LOOKED, ENOUGH = FILES, 2 * FILES
		name = lambda dir, i: f'{dir}/{i}'
		record = lambda n: b'%07d\n' % n
		looks = lambda files: sum(get(LOOKED + i) for i in files)
		def write(files):
		    for i in files:
		        os.close(os.open(name(mine, i), os.O_WRONLY | os.O_CREAT))
		    while not get(ENOUGH):
		        fds = [os.open(name(mine, i), os.O_WRONLY) for i in files]
		        for fd, i in zip(fds, files):
		            for n in range(get(i) + 1, get(i) + 9):
		                os.pwrite(fd, record(n), 8 * n)
		                os.pwrite(fd, record(n), 0)
		                put(i, n)
		        # They stay open, and as they are, until one is looked at.
		        seen = looks(files)
		        eventually(lambda: looks(files) > seen or get(ENOUGH), seconds=100)
		        for fd in fds:
		            os.close(fd)
		def look():
		    for _ in range(ROUNDS):
		        for i in range(FILES):
		            eventually(lambda: get(i) > 0, seconds=100)
		            n = get(i)
		            size = os.stat(name(other, i)).st_size
		            assert size >= 8 * n + 8, f'{i}: {size} bytes after {n}'
		            n = get(i)
		            data = read(name(other, i))
		            assert int(data[:8]) >= n, f'{i}: {data[:8]} after {n}'
		            assert len(data) >= 8 * n + 8, f'{i}: {len(data)} bytes after {n}'
		            # What a write is about to be told of may be there.
		            same(data[8:8 * n + 8], b''.join(record(k) for k in range(1, n + 1)), i)
		            put(LOOKED + i, get(LOOKED + i) + 1)
		def start(what, *args):
		    pid = os.fork()
		    if not pid:
		        how = 1
		        try:
		            what(*args)
		            how = 0
		        finally:
		            put(ENOUGH, 1)
		            os._exit(how)
		    return pid
		reset()
		pids = [start(write, range(w, FILES, WRITERS)) for w in range(WRITERS)]
		looker = start(look)
		same([os.waitpid(pid, 0)[1] for pid in (looker, *pids)], [0] * (WRITERS + 1))
		print(*((x, counted(x)) for x in ('written_behind', 'write_leases', 'recalled', 'settles')))
		print([get(i) for i in range(FILES)])
		assert counted('written_behind') > 16 * FILES
		assert counted('recalled') > FILES
		for i in range(FILES):
		    same(read(name(other, i)), record(get(i)) + b''.join(record(k) for k in range(1, get(i) + 1)), i)
	END
	rm -r "${M:?}/$1"
	"$cluster" umount $P
}

# One page, by write(2) and through a mapping: they are the same page.
behind_mapped()
{
	"$cluster" mount $P
	one_iod_file "$M/striped/both"
	by_hand
	behind_python "$M/striped" $P/striped "$S" <<-'END'
		import mmap
		from behind import *
		fd = held('both', os.O_RDWR)
		m = mmap.mmap(fd, 4096)
		m[:6] = b'stored'
		os.pwrite(fd, b'written', 100)
		m[200:206] = b'stored'
		os.pwrite(fd, b'written', 203)
		want = bytearray(4096)
		want[:6] = b'stored'
		want[100:107] = b'written'
		want[200:210] = b'stowritten'
		same(m[:], bytes(want))
		same(os.pread(fd, 5000, 0), bytes(want))
		same(counted('written_behind'), 14)
		same(requests().get('WRITE', 0), 0)
		same(read(other + '/both'), bytes(want))
		# The mapping is still good, and the other sees what is synced.
		m[300:306] = b'stored'
		os.pwrite(fd, b'written', 400)
		want[300:306] = b'stored'
		want[400:407] = b'written'
		m.flush()
		same(read(other + '/both'), bytes(want))
		same(m[:], bytes(want))
	END
	by_itself
	"$cluster" umount $P
	rm "$M/striped/both"
}

# What a mapping stores behind the end, in the last page, is no byte of the file when that becomes longer. $1: its directory
behind_mapped_end()
{
	"$cluster" mount $P
	behind_python "$M/$1" "$P/$1" "$S" <<-'END'
		import ctypes, mmap
		from behind import *
		fd = os.open(mine + '/end', os.O_RDWR | os.O_CREAT | os.O_EXCL)
		os.write(fd, b'a' * 4000)
		os.fsync(fd)
		# Under a lease, with the page in the cache.
		eventually(lambda: (os.pwrite(fd, b'a', 0), leases('writes'))[1] == 1)
		os.pwrite(fd, b'a', 1)
		same(os.pread(fd, 5000, 0), b'a' * 4000)
		m = mmap.mmap(fd, 4000)
		page = (ctypes.c_char * 4000).from_buffer(m)
		page[0] = b'b'
		ctypes.memmove(ctypes.addressof(page) + 4050, b'garbage', 7)
		same(os.pwrite(fd, b'c', 4096), 1)
		want = b'b' + b'a' * 3999 + bytes(96) + b'c'
		same(os.pread(fd, 5000, 0)[3990:], want[3990:])
		same(read(other + '/end')[3990:], want[3990:])
		same(read(other + '/end'), want)
	END
	"$cluster" umount $P
	rm "$M/$1/end"
}

# memory_box: a cgroup, $box, with 64 MiB for who is in it
memory_box()
{
	local f=$tmp/memory

	mkdir -p "$f"
	mount -t cgroup2 none "$f"
	if grep -qw memory "$f/cgroup.controllers"; then
		echo +memory >"$f/cgroup.subtree_control"
		mkdir "$f/pvfs"
		echo 64M >"$f/pvfs/memory.max"
	else
		umount "$f"
		mount -t cgroup -o memory none "$f" || return
		mkdir "$f/pvfs"
		echo 64M >"$f/pvfs/memory.limit_in_bytes"
	fi
	box=$f/pvfs
}

# Far more is written than the writer may have in memory: it goes to the iods, and nobody is killed for that.
behind_memory()
{
	local box

	if ! grep -qw memory /proc/cgroups; then
		uname -r | grep debug
		return 0
	fi
	memory_box
	(
		echo "$BASHPID" >"$box/cgroup.procs"
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/vm/guest exec python3 - "$M/striped" none "$S" "$box" <<-'END'
			from behind import *
			fd = new('memory')
			n = 256 << 6
			block = lambda i: b'%015d\n' % i * 1024
			def dirty():
			    with open(sys.argv[4] + '/memory.stat') as f:
			        return sum(int(x.split()[1]) for x in f if x.startswith(('file_dirty ', 'file_writeback ')))
			most = 0
			for i in range(n):
			    same(os.write(fd, block(i)), 16384)
			    if i % 16 == 0:
			        most = max(most, dirty())
			print('dirty at most', most)
			# Of a limit that the kernel looks after: what can't be dropped is a part of it.
			assert most < 40 << 20, most
			same(counted('written_behind'), 256 << 20)
			os.lseek(fd, 0, os.SEEK_SET)
			for i in range(n):
			    assert os.read(fd, 16384) == block(i), i
			os.fsync(fd)
			assert counted('WRITE' if 'WRITE' in requests() else 'none') > 0
		END
	)
	head "$box"/memory.{max,peak,events,failcnt,oom_control} 2>/dev/null || true
	refuse grep '^oom_kill [1-9]' "$box"/memory.{events,oom_control}
	# It was as much as it may have.
	grep -h '^max [1-9]' "$box/memory.events" || grep '[1-9]' "$box/memory.failcnt"
	drop_caches
	[ "$(stat -c %s "$M/striped/memory")" = 268435456 ]
	rm "$M/striped/memory"
	eventually 10 rmdir "$box"
	umount "${box%/*}"
}
