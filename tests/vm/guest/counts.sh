#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (counts.t on the host): requests per operation, from the
# mount's own counters, against the round-trip budget (docs/performance.md).
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"
. "${0%/*}/counts_open.sh"
. "${0%/*}/counts_behind.sh"

calls=$tools/calls
plan 149

# An attribute of the mount M: the value of option $1.
option()
{
	findmnt -no OPTIONS "$M" | tr ',' '\n' | sed -n "s/^$1=//p"
}

# cost MGR IODS OP=COUNT... -- calls-arguments: the operation makes exactly MGR
# requests to the mgr and IODS to the iods, and of each OP that many.
cost()
{
	local mgr=$1 iods=$2 x rc=0
	local -a ops=()

	shift 2
	while [ "$1" != -- ]; do
		ops+=("$1")
		shift
	done
	shift
	mkdir -p "$tmp/cost"
	"$calls" "$S/stats" "$@" >"$tmp/cost/stats"
	cat "$tmp/cost/stats"
	x=$(count_to mgr "$tmp/cost")
	[ "$x" = "$mgr" ] || { echo "$x requests to the mgr, budget $mgr"; rc=1; }
	x=$(count_to iods "$tmp/cost")
	[ "$x" = "$iods" ] || { echo "$x requests to iods, budget $iods"; rc=1; }
	for i in "${ops[@]}"; do
		x=$(count "${i%=*}" "$tmp/cost")
		[ "$x" = "${i#*=}" ] || { echo "$x ${i%=*}, budget ${i#*=}"; rc=1; }
	done
	return $rc
}

# ls -l of $1 entries whose names have 12 bytes: an entry on the wire is its
# cookie, its name and its attributes (common/msg.def), and a reply 256 KiB.
# $4 is how many of the entries are asked for by themselves after that.
listing()
{
	local entry=$((8 + 2 + 12 + 136)) replies

	replies=$((($1 + 262144 / entry - 1) / (262144 / entry)))
	cost $((replies + $4)) 0 READDIR=$replies -- "$2" "$3"
}

up -o lease=off
pcount=4
wsize=$(option wsize)
rsize=$(option rsize)
diag "wsize=$wsize rsize=$rsize"
check "rsize and wsize are shown" [ "$((${rsize:-0} >= 65536 && ${wsize:-0} >= 65536))" = 1 ]
rsize=${rsize:-1048576}
wsize=${wsize:-1048576}
big=$((16 * 1048576))

mkdir "$M/d" "$M/d/sub" "$M/many" "$M/few"
for i in a b c d e; do echo "$i" >"$M/d/$i"; done
ln -s a "$M/d/link"
head -c $big /dev/urandom >"$M/d/big"
# Small files whose bytes the iods have.
mkdir "$M/striped"
pvfs setstripe -s 0 "$M/striped"
head -c 5000 /dev/urandom >"$M/striped/small"
"$tools/manyfiles" create "$M/many" 5000 4 >/dev/null
"$tools/manyfiles" create "$M/few" 3 >/dev/null

check "lookup of one name: 1" cost 1 0 LOOKUP=1 -- "$M/d" lookup a
check "lookup of five names: 5" cost 5 0 LOOKUP=5 -- "$M/d" lookup a b c d e
check "lookup of a path: 1 a name" cost 2 0 LOOKUP=2 -- "$M" lookup d/a
check "readlink: 1, the target comes along" cost 1 0 LOOKUP=1 -- "$M/d" readlink link
check "stat of a known name: 1" cost 1 0 -- "$M/d" stat a
check "stat of a known large file: 1" cost 1 0 -- "$M/d" stat big
check "stat of a directory: 1" cost 1 0 -- "$M/d" stat sub
check "fstat of a file nobody writes: 1" cost 1 0 GETATTR=1 -- "$M/d" fstat big
check "names of 3 entries: 1" cost 1 0 READDIR=1 -- "$M/few" names
# Attributes that came with a listing may be used as long as actimeo says; by
# default that is never, and a stat asks: of each entry, of "." and of "..".
check "ls -l of 3 entries, no leases: 1 and the stats" listing 3 "$M/few" list 5
check "names of 5000 entries: a request per 256 KiB" listing 5000 "$M/many" names 0
"$cluster" mount -o actimeo=30 /mnt/ac || diag "the second mount failed"
S=/proc/fs/pvfs/vol-2
check "ls -l of 3 entries, actimeo: 1, 0 stats" listing 3 /mnt/ac/few list 0
check "ls -l of 5000 entries, actimeo: a request per 256 KiB, 0 stats" listing 5000 /mnt/ac/many list 0
check "stat of a known name, actimeo: 0" cost 0 0 -- /mnt/ac/d stat a
S=/proc/fs/pvfs/vol
"$cluster" umount /mnt/ac || diag "the second umount failed"
"$cluster" mount -o lease=off,readdir=one /mnt/one || diag "the mount with readdir=one failed"
S=/proc/fs/pvfs/vol-2
check "names of 3 entries, readdir=one: 3" cost 3 0 READDIR=3 -- /mnt/one/few names
S=/proc/fs/pvfs/vol
"$cluster" umount /mnt/one || diag "the umount with readdir=one failed"
# A mapping that is read ahead in many transfers.
"$cluster" mount -o rsize=4096 /mnt/small || diag "the mount with rsize=4096 failed"
check "a mapping has each page's own bytes with small requests, too" eval '
	python3 -c "import mmap,sys; f=open(sys.argv[1],\"rb\"); sys.stdout.buffer.write(mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ)[:])" \
		/mnt/small/d/big | cmp - $M/d/big'
"$cluster" umount /mnt/small || diag "the umount with rsize=4096 failed"
# Under leases what was told is believed until it is recalled.
"$cluster" mount -o lease=on /mnt/leased || diag "the mount with leases failed"
S=/proc/fs/pvfs/vol-2
check "lookup of a path, leases: 1 a name" cost 2 0 LOOKUP=2 -- /mnt/leased lookup d/a
check "stat of a known path, leases: 0" cost 0 0 -- /mnt/leased stat d/a
check "stat of a known directory, leases: 0" cost 0 0 -- /mnt/leased/d stat sub
check "stat of what is known not to be there, leases: 0" cost 0 0 -- /mnt/leased absent d/none
check "fstat, leases: 0" cost 0 0 -- /mnt/leased/d fstat big
check "ls -l of 5000 entries, leases: a request per 256 KiB, 0 stats" listing 5000 /mnt/leased/many list 0
check "... for the second time: 0" cost 0 0 -- /mnt/leased/many relist
# After $3, ls -l twice: $2 entries, and $1 READDIRs. The attributes of the directory itself are asked for, when it has
# changed, and again when the mgr is to hear that it was read.
relisted()
{
	local readdirs=$1 entries=$2

	ls -l /mnt/leased/few
	eval "$3"
	echo reset >$S/stats
	[ "$(ls -lA /mnt/leased/few | grep -c ^-)" = "$entries" ]
	[ "$(ls -lA /mnt/leased/few | grep -c ^-)" = "$entries" ]
	cat $S/stats
	[ "$(count READDIR)" = "$readdirs" ]
	[ "$(count GETATTR)" -le $((2 * readdirs)) ]
}
check "a listing that is known: 0" relisted 0 3 true
check "... a name made by another is listed, and asked for once" relisted 1 4 'touch $M/few/other'
check "... one removed by another is not" relisted 1 3 'rm $M/few/other'
check "... a name of its own is listed" relisted 1 4 'touch /mnt/leased/few/own'
check "... nor one that was removed" relisted 1 3 'rm /mnt/leased/few/own'
check "... one that another renamed has its new name" eval \
	'relisted 1 3 "mv $M/few/* $M/d/sub; touch $M/few/x $M/few/y $M/few/z" && [ "$(echo $(ls /mnt/leased/few))" = "x y z" ]'
check "... attributes that another changed come with the names" relisted 1 3 'chmod 600 $M/few/*'
check "... from the middle, too" eval 'ls /mnt/leased/many >"$tmp/names"; echo reset >$S/stats
	"$tools/manyfiles" seek /mnt/leased/many 5000 && cat $S/stats; [ "$(count READDIR)" = 0 ]'
check "readlink of a known link, leases: 0" eval '
	stat /mnt/leased/d/link; echo reset >$S/stats; readlink /mnt/leased/d/link; [ "$(count_to mgr)" = 0 ]'
check "striped: cat, leases: open, read, close: it ends where it is known to end" eval '
	stat /mnt/leased/striped/small; echo reset >$S/stats; [ "$(cat /mnt/leased/striped/small | wc -c)" = 5000 ]
	cat $S/stats
	[ "$(count GETATTR)" = 0 ]; [ "$(count READ)" = 1 ]; [ "$(count_to mgr)" -le 2 ]'
check "a change of its own is seen, and asked for once" eval '
	stat /mnt/leased/d/a; echo reset >$S/stats
	chmod 600 /mnt/leased/d/a; stat -c %a /mnt/leased/d/a; [ "$(stat -c %a /mnt/leased/d/a)" = 600 ]
	cat $S/stats; [ "$(count SETATTR)" = 1 ]; [ "$(count_to mgr)" -le 2 ]'
check "a change by another is seen at once, and asked for once" eval '
	stat /mnt/leased/d/a; chmod 640 $M/d/a; echo reset >$S/stats
	[ "$(stat -c %a /mnt/leased/d/a)" = 640 ]; [ "$(stat -c %a /mnt/leased/d/a)" = 640 ]
	cat $S/stats; [ "$(count_to mgr)" = 1 ]'
check "leases and recalls are counted" eval '
	rm -f $M/d/none; cat $S/stats; [ "$(awk "\$1 == \"leases\" { print \$2 }" $S/stats)" -ge 1 ]
	echo reset >$S/stats; stat /mnt/leased/d/b; chmod 600 $M/d/b
	[ "$(awk "\$1 == \"recalled\" { print \$2 }" $S/stats)" -ge 1 ]'
# A line of the mount's leases.
leases()
{
	awk -v what="$1" '$1 == what { print $2 }' $S/leases
}
check "... and how many there are now, files and directories" eval '
	stat /mnt/leased/d/a /mnt/leased/d/b; cat $S/leases; n=$(leases files); [ "$n" -ge 2 ]; [ "$(leases directories)" -ge 1 ]
	echo >$M/d/short; stat /mnt/leased/d/short; [ "$(leases files)" = $((n + 1)) ]
	chmod 600 $M/d/short; [ "$(leases files)" = $n ]
	stat /mnt/leased/d/short; [ "$(leases files)" = $((n + 1)) ]; rm /mnt/leased/d/short; [ "$(leases files)" = $n ]
	stat /mnt/leased/d/link; cat $S/leases; [ "$(leases others)" -ge 1 ]; [ "$(leases recalled)" -ge 1 ]'
# In one process: who has the file open and ends, as cat does, tells it. After a second it is told by itself: a slow machine
# gets some more tries to ask for it before that.
draft_asked_for()
{
	local t=/sys/kernel/tracing x ino

	echo >$t/trace
	for x in lease recall draft_told; do echo 1 >$t/events/pvfs/pvfs_$x/enable; done
	python3 - /mnt/leased/d/draft "$M/d/draft" $S <<-'END'
	import os, sys
	mine, other, proc = sys.argv[1:]
	def now():
	    with open(proc + "/leases") as f:
	        return {k: int(v) for k, v in map(str.split, f)}
	for i in range(8):
	    with open(proc + "/stats", "w") as f:
	        f.write("reset")
	    fd = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
	    os.write(fd, b"kept")
	    before = now()
	    with open(other) as f:
	        assert f.read() == "kept"
	    after = now()
	    os.close(fd)
	    if before["drafts"] and after["recalled_late"]:
	        break
	    os.unlink(mine)
	print(before, after)
	assert before["drafts"] == 1 and before["drafts_told"] == 0
	assert after["drafts"] == 0 and after["drafts_told"] == 1 and after["recalled_late"] >= 1
	assert after["told_us_mean"] == after["told_us_max"] > 0
	assert sum(v for k, v in after.items() if k.startswith(("told_below", "told_later"))) == 1
	END
	for x in lease recall draft_told; do echo 0 >$t/events/pvfs/pvfs_$x/enable; done
	ino=$(stat -c %i "$M/d/draft")
	grep " ino $ino " $t/trace
	grep -E "pvfs_lease: dev [0-9]+:[0-9]+ ino $ino file ms [0-9]+" $t/trace
	grep -E "pvfs_recall: dev [0-9]+:[0-9]+ ino $ino answer -11" $t/trace
	grep -E "pvfs_draft_told: dev [0-9]+:[0-9]+ ino $ino bytes 4 us [0-9]+" $t/trace
	echo >$t/trace
	rm "$M/d/draft"
}
check "a draft that others ask for: counted, traced, with how long they waited" draft_asked_for
check "pvfs leases says whose a lease is, and a draft" eval '
	who() { pvfs leases -k /run/pvfs-cluster/volume/cluster.key "$@"; }
	stat /mnt/leased/d/a; who /mnt/leased/d/a; [ "$(who --json "$M/d/a" | grep -c \"READ\")" = 1 ]
	exec 5>/mnt/leased/d/whose; who /mnt/leased/d/whose >"$tmp/whose"; exec 5>&-
	cat "$tmp/whose"; grep "DRAFT.* 0  *1  *in  *- " "$tmp/whose"; rm -f /mnt/leased/d/whose'
# dd: bytes of the file $1 in calls of $2, from the start, $3 of them
in_calls()
{
	dd if="$1" of=/dev/null bs="$2" count="$3" status=none
}
check "1 MiB in calls of 4 KiB, leases: what is read ahead" eval '
	echo reset >$S/stats; in_calls /mnt/leased/d/big 4k 256; cat $S/stats; [ "$(count READ)" -le 40 ]'
check "... again: 0" eval 'echo reset >$S/stats; in_calls /mnt/leased/d/big 4k 256; cat $S/stats; [ "$(count READ)" = 0 ]'
check "... and in one call" eval 'echo reset >$S/stats; in_calls /mnt/leased/d/big 1M 1; cat $S/stats; [ "$(count READ)" = 0 ]'
# Opened before, and read by another on the way: what it has of the file is out of date when the write has returned.
cached_changes()
{
	local i

	exec 5</mnt/leased/d/big
	for i in 1 2 3 4; do
		printf '%s' "change $i" | dd of="$M/d/big" bs=64 seek=$((i * 50000)) conv=notrunc status=none
		cmp "$M/d/big" - <&5 || return
		cmp "$M/d/big" /mnt/leased/d/big || return
		exec 5</mnt/leased/d/big
	done
	exec 5<&-
}
check "... what another writes is read at once, by who had it open, too" cached_changes
check "... also beside one who has it open for writing" eval '
	exec 6<>$M/d/big; in_calls /mnt/leased/d/big 64k 16; printf here >&6; [ "$(head -c 4 /mnt/leased/d/big)" = here ]
	printf more >&6; [ "$(head -c 8 /mnt/leased/d/big)" = heremore ]; exec 6>&-; cmp $M/d/big /mnt/leased/d/big'
check "... what it writes itself it reads, while it has the file open and after" eval '
	cmp $M/d/big /mnt/leased/d/big; exec 6<>/mnt/leased/d/big; printf mine >&6; [ "$(head -c 4 /mnt/leased/d/big)" = mine ]
	exec 6>&-; [ "$(head -c 4 /mnt/leased/d/big)" = mine ]; cmp $M/d/big /mnt/leased/d/big'
check "... what another cuts off, and adds, is seen" eval '
	cp $M/d/big $M/d/cut; cmp $M/d/cut /mnt/leased/d/cut; exec 5</mnt/leased/d/cut; truncate -s 5000000 $M/d/cut
	[ "$(wc -c </mnt/leased/d/cut)" = 5000000 ]; truncate -s 9000000 $M/d/cut; cmp $M/d/cut - <&5
	exec 5<&-; [ "$(tail -c 4000000 /mnt/leased/d/cut | tr -d "\\0" | wc -c)" = 0 ]'
"$cluster" mount -o cache=none /mnt/none || diag "the mount with cache=none failed"
S=/proc/fs/pvfs/vol-3
check "cache=none: each read asks" eval '
	in_calls /mnt/none/d/big 4k 8; echo reset >$S/stats; in_calls /mnt/none/d/big 4k 8; cat $S/stats; [ "$(count READ)" = 8 ]'
S=/proc/fs/pvfs/vol-2
"$cluster" umount /mnt/none || diag "the umount with cache=none failed"
lease_options()
{
	grep ' /mnt/leased pvfs .*lease=on' /proc/mounts
	grep " $M pvfs .*lease=off" /proc/mounts
	refuse "$cluster" mount -o lease=maybe /mnt/refused
	refuse "$cluster" mount -o lease /mnt/refused
	refuse "$cluster" mount -o lease=on,actimeo=3 /mnt/refused
	refuse "$cluster" mount -o readdir=few /mnt/refused
	grep ' /mnt/leased pvfs .*cache=lease' /proc/mounts
	grep " $M pvfs .*cache=none" /proc/mounts
	refuse "$cluster" mount -o cache=some /mnt/refused
	refuse "$cluster" mount -o flush=never /mnt/refused
	refuse mount -o remount,flush=close /mnt/leased
	refuse "$cluster" mount -o cache=lease,lease=off /mnt/refused
	refuse mount -o remount,cache=none /mnt/leased
	"$cluster" mount -o actimeo=3 /mnt/ac
	grep ' /mnt/ac pvfs .*lease=off' /proc/mounts
	"$cluster" umount /mnt/ac
	mount -o remount,lease=on /mnt/leased
	refuse mount -o remount,lease=off /mnt/leased
}
check "lease= is on or off, not on beside actimeo, and stays" lease_options
# Nobody waits for the change any more, and the manager makes it all the same.
killed_change()
{
	local pid

	[ "$(stat -c %a /mnt/leased/d/c)" = 644 ]
	"$cluster" kill mgr STOP
	chmod 600 /mnt/leased/d/c &
	pid=$!
	eventually 20 grep SETATTR $S/requests
	kill -KILL $pid
	wait $pid || [ $? = 137 ]
	"$cluster" kill mgr CONT
	eventually 20 eval '[ "$(stat -c %a $M/d/c)" = 600 ]'
	[ "$(stat -c %a /mnt/leased/d/c)" = 600 ]
}
check "a change whose maker was killed is seen" killed_change
# Who waits for the manager to take a draft is killed, and the file is written to again. (Each process that has it open
# would flush it when it ends: none but these have.)
killed_flush()
{
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/vm/guest python3 - /mnt/leased/d/draft $S/requests \
		"$(cat /run/pvfs-cluster/mgr.pid)" <<-'END'
		from behind import *
		path, requests, mgr = sys.argv[1], sys.argv[2], int(sys.argv[3])
		if not os.fork():
		    time.sleep(5)
		    os.kill(mgr, signal.SIGCONT)
		    os._exit(0)
		fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
		os.write(fd, b"first")
		freeze(mgr)
		child = os.fork()
		if not child:
		    os.fstat(fd)
		    os._exit(0)
		end = time.time() + 4
		while "FLUSH" not in open(requests).read():
		    assert time.time() < end, "nobody flushes"
		os.kill(child, signal.SIGKILL)
		assert os.waitpid(child, 0)[1] == signal.SIGKILL
		os.write(fd, b"second")
		os.wait()
		os.close(fd)
	END
	[ "$(cat $M/d/draft)" = firstsecond ]
	! dmesg | grep "what was written to a new file is lost"
}
check "a draft whose flusher was killed is whole" killed_flush
asked_again()
{
	stat /mnt/leased/d/a
	[ "$(count_to mgr)" -ge 1 ]
}
counts_behind
counts_open
# The promises of the new manager are shorter.
restarted()
{
	stat /mnt/leased/d/a /mnt/leased/d/b
	sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 8000;/' /run/pvfs-cluster/volume/pvfs.conf
	"$cluster" kill mgr TERM
	"$cluster" start mgr
	chmod 604 "$M/d/a"
	[ "$(stat -c %a /mnt/leased/d/a)" = 604 ]
	echo reset >$S/stats
	stat /mnt/leased/d/a
	[ "$(count_to mgr)" = 0 ]
	chmod 606 "$M/d/a"
	[ "$(stat -c %a /mnt/leased/d/a)" = 606 ]
	echo reset >$S/stats
	eventually 20 asked_again
	cat $S/stats
}
check "a restarted manager gives leases, for its own time" restarted
check "an open that nobody uses ends with its lease" lease_ended
S=/proc/fs/pvfs/vol
"$cluster" umount /mnt/leased || diag "the umount with leases failed"
n=$(((big + pcount * rsize - 1) / (pcount * rsize) * pcount))
check "a read of 16 MiB: $n, all to iods" cost 0 $n READ=$n -- "$M/d" read big $big
n=$(((big + pcount * wsize - 1) / (pcount * wsize) * pcount))
check "a write of 16 MiB: $n, all to iods" cost 0 $n WRITE=$n -- "$M/d" write big $big
check "a read of 256 KiB: one to each iod" cost 0 4 READ=4 -- "$M/d" read big 262144
check "a read in one stripe unit: 1" cost 0 1 READ=1 -- "$M/d" read big 4096 65536
check "a read across two units: 2" cost 0 2 READ=2 -- "$M/d" read big 4096 63488
check "a write in one stripe unit: 1" cost 0 1 WRITE=1 -- "$M/d" write big 4096 65536
check "striped: stores to a new mapping and msync: a WRITE, a FSYNC, and the times to the mgr" \
	cost 1 2 WRITE=1 FSYNC=1 -- "$M/striped" msync small 4096
check "striped: open, read 5000 bytes, close: lookup and open, read, close" eval '
	cost 3 1 READ=1 CLOSE=1 -- "$M/striped" whole small 5000 || cost 2 1 READ=1 CLOSE=1 -- "$M/striped" whole small 5000'
check "striped: create, write, close: 2, and the write" \
	cost 2 1 CREATE=1 WRITE=1 CLOSE=1 -- "$M/striped" create new 100
check "unlink: 1, the datafiles behind the reply" eval '
	"$calls" $S/stats "$M/d" unlink big >"$tmp/n"; cat "$tmp/n"
	mkdir -p "$tmp/cost"; cp "$tmp/n" "$tmp/cost/stats"
	[ "$(count UNLINK "$tmp/cost")" = 1 ] && [ "$(count_to iods "$tmp/cost")" = 0 ] &&
	[ $(($(count_to mgr "$tmp/cost") - $(count LOOKUP "$tmp/cost"))) = 1 ]'
# What was written is known until it is synced, whatever becomes of the inodes. unsynced N FILES COMMAND...: N files are
# written, closed and forgotten, so that COMMAND has the iods asked FSYNC times; and then there is nothing left.
unsynced()
{
	local n=$1 files=$2 fsyncs=$3 i

	shift 3
	sync -f "$M"
	mkdir -p "$M/striped/unsynced"
	reset_stats
	for ((i = 0; i < n; i++)); do
		head -c 5000 /dev/zero >"$M/striped/unsynced/$i"
	done
	evict "$M/striped/unsynced/"*
	[ "$(count FSYNC)" = "$files" ] || { echo "$(count FSYNC) FSYNCs by the writers"; return 1; }
	reset_stats
	"$@"
	[ "$(count FSYNC)" = "$fsyncs" ] || { echo "$(count FSYNC) FSYNCs"; return 1; }
	sync -f "$M"
	reset_stats
	"$@"
	[ "$(count FSYNC)" = 0 ] || { echo "$(count FSYNC) FSYNCs once more"; return 1; }
}
check "write, close, forget, sync FILE: an FSYNC" unsynced 1 0 1 sync "$M/striped/unsynced/0"
check "... of a file on all iods: one each" eval '
	sync -f $M; head -c $big /dev/zero >$M/striped/large; evict $M/striped/large; echo reset >$S/stats
	sync $M/striped/large; cat $S/stats; [ "$(count FSYNC)" = 4 ]'
# One unit of it.
unit_at()
{
	dd if=/dev/zero of="$M/striped/large" bs=65536 count=1 seek="$1" conv=notrunc status=none
}
unsynced_units()
{
	unit_at 1
	evict "$M/striped/large"
	# Another inode, which knows nothing of the first one's.
	unit_at 7
	evict "$M/striped/large"
	reset_stats
	sync "$M/striped/large"
	cat $S/stats
	[ "$(count FSYNC)" = 2 ]
	evict "$M/striped/large"
	reset_stats
	sync "$M/striped/large"
	[ "$(count FSYNC)" = 0 ]
	rm "$M/striped/large"
}
check "... of one that was written on two iods, forgotten each time: one each to these" unsynced_units
check "... syncfs: one for each file" unsynced 40 0 40 sync -f "$M"
check "... sync: the same" unsynced 3 0 3 sync
check "... but none for those that are gone" unsynced 5 0 0 rm -rf "$M/striped/unsynced"
max=/sys/module/pvfs/parameters/unsynced_max
old=$(cat $max)
echo 8 >$max
check "when there are too many the oldest are synced by who writes" unsynced 20 16 4 sync -f "$M"
echo "$old" >$max
# Small files, whose bytes are in the store $1: no iod hears of them.
small()
{
	local store=$1

	rm -f "$M/d/new" "$M/d/tarred" "$M/d/kept" "$M/d/changed" "$M/d/appended"
	check "$store: create, write, close: 3, none to iods" \
		cost 3 0 CREATE=1 HEAD_WRITE=1 CLOSE=1 -- "$M/d" create new 10000
	check "$store: open, read, close: lookup and open, read, close" eval '
		cost 4 0 HEAD_READ=1 CLOSE=1 -- "$M/d" whole new 10000 || cost 3 0 HEAD_READ=1 CLOSE=1 -- "$M/d" whole new 10000'
	check "$store: a write: 1" cost 1 0 HEAD_WRITE=1 -- "$M/d" write new 1000
	echo first >"$M/d/appended"
	check "$store: an append: 1" cost 1 0 HEAD_WRITE=1 -- "$M/d" append appended 100
	check "$store: stores to a mapping and msync: a write" cost 1 0 HEAD_WRITE=1 -- "$M/d" msync new 4096
	"$cluster" mount -o lease=on /mnt/leased || diag "the mount with leases failed"
	S=/proc/fs/pvfs/vol-2
	check "$store, leases: open, read, close: open, close" cost 2 0 CREATE=1 CLOSE=1 -- /mnt/leased/d whole new 10000
	check "$store: ... again: 0" cost 0 0 -- /mnt/leased/d again new 10000
	check "$store, leases: create, two writes, times, owner, mode, close: create, flush, close" \
		cost 3 0 CREATE=1 FLUSH=1 CLOSE=1 -- /mnt/leased/d untar tarred 9000
	check "$store: ... and that is what others see" eval '
		[ "$(stat -c "%s %u %g %a %Y" $M/d/tarred)" = "9000 7 8 644 1000" ] && [ "$(tr -d c <$M/d/tarred | wc -c)" = 0 ]'
	check "$store: ... which others need not wait for" eval '
		exec 5>/mnt/leased/d/kept; printf draft >&5; chmod 640 /dev/fd/5
		[ "$(stat -c "%s %a" $M/d/kept)" = "5 640" ] && [ "$(cat $M/d/kept)" = draft ] &&
		[ "$(count FLUSH)" = 1 ] && printf more >&5 && [ "$(cat $M/d/kept)" = draftmore ]; rc=$?
		exec 5>&-; [ $rc = 0 ]'
	check "$store: ... a change by another is read at once, and asked for once" eval '
		printf changed >$M/d/changed; cat /mnt/leased/d/changed; printf CHANGED >$M/d/changed
		[ "$(cat /mnt/leased/d/changed)" = CHANGED ]; exec 5</mnt/leased/d/changed; printf again.. >$M/d/changed
		echo reset >$S/stats; [ "$(cat <&5)" = again.. ]; cat $S/stats; [ $(($(count_to mgr) - $(count CLOSE))) -le 2 ]; exec 5<&-'
	check "$store: a new file that outgrows it has its size, also while it is open" eval '
		rm -f "$M/d/long"; exec 5<>/mnt/leased/d/long; head -c 20000 /dev/zero >&5
		[ "$(stat -Lc %s /dev/fd/5)" = 20000 ] && head -c 20000 /dev/zero >&5 &&
		[ "$(stat -Lc %s /dev/fd/5)" = 40000 ] && [ "$(stat -c %s $M/d/long)" = 40000 ]; rc=$?
		exec 5>&-; [ $rc = 0 ]'
	S=/proc/fs/pvfs/vol
	"$cluster" umount /mnt/leased || diag "the umount with leases failed"
	check "$store: a write past the limit: 1, and to the iods" cost 1 1 UNSTUFF=1 WRITE=1 -- "$M/d" write new 20000
	check "$store: ... and only there from then on" cost 0 1 WRITE=1 -- "$M/d" write new 4096
}
small db
heads=/run/pvfs-cluster/volume/mgr/heads
in_files()
{
	find $heads -type f | grep . && return 1
	sed -i 's/^mgr: {/mgr: {\n\tstuff_store = "file";/' /run/pvfs-cluster/volume/pvfs.conf
	"$cluster" kill mgr TERM
	"$cluster" start mgr
	echo file >"$M/d/a"
	find $heads -type f | grep .
	[ "$(cat "$M/d/a" "$M/d/b")" = "$(printf 'file\nb')" ]
}
check "the bytes of new heads go to files" in_files
small file
"$cluster" down || diag "down failed"

# What the answer to a CLOSE tells. A new volume: its mgr was not restarted, which would leave unsettled for a while how long
# files are, and gives leases for longer.
up -o lease=off
mkdir "$M/d" "$M/striped"
pvfs setstripe -s 0 "$M/striped"
G=/mnt/leased
"$cluster" mount -o lease=on $G || diag "the mount with leases failed"
S=/proc/fs/pvfs/vol-2
# told N FILE: a stat of FILE costs N messages, and what it says is what the mgr says.
told()
{
	local n=$1 f=$2 is

	echo reset >$S/stats
	is=$(stat -c "%s %b %a %y %z" "$G/$f")
	[ $(($(count_to mgr) - $(count CLOSE))) = "$n" ] || { cat $S/stats; return 1; }
	# While it is written an iod says itself when that was.
	[ "$n" = 0 ] || is=$(echo "$is" | cut -d " " -f 1-3)
	[[ "$(stat -c "%s %b %a %y %z" "$M/$f")" = "$is"* ]] || { echo "$f: $is"; stat "$M/$f"; return 1; }
}
# closed N FILE COMMAND: COMMAND writes FILE, and closes it; then it is told, a moment later.
closed()
{
	local n=$1 f=$2

	echo reset >$S/stats
	eval "$3"
	eventually 10 eval '[ "$(count CLOSE)" -ge 1 ]' >/dev/null
	sleep 0.3
	told "$n" "$f"
}
# The leases on the directories are new, and all names known.
named()
{
	touch $M/d $M/striped
	eventually 10 eval '
		stat $G/d/{made,grown} $G/striped/{made,copy} >/dev/null 2>&1; echo reset >$S/stats
		stat $G/d/{made,grown} $G/striped/{made,copy} >/dev/null 2>&1; [ "$(count_to mgr)" = 0 ]'
}
beside_writers()
{
	local by

	for by in $G $M; do
		named
		exec 6<>$by/striped/made
		closed 1 striped/made 'echo two 1<>$G/striped/made' && head -c 5000 /dev/zero >&6 && told 1 striped/made &&
			head -c 5000 /dev/zero >&6 && told 1 striped/made || return
		exec 6>&-
	done
}
others_then()
{
	local i

	for i in d/made d/grown striped/made striped/copy; do
		named
		closed 0 $i "echo mine 1<>$G/$i" && echo other 1<>$M/$i && told 1 $i && told 0 $i || return
		[ "$(head -n 1 $G/$i)" = other ] && chmod 600 $M/$i && told 1 $i && told 0 $i || return
		rm $M/$i
		[ ! -e $G/$i ] || return
	done
}
check "leases: create, write, close, then stat: 0" eval 'named; closed 0 d/made "echo one >$G/d/made"'
check "... written to again: 0" eval 'named; closed 0 d/made "echo more >>$G/d/made"'
check "... one that outgrows it: 0" eval 'named; closed 0 d/grown "head -c 40000 /dev/zero >$G/d/grown"'
check "... a striped one: 0" eval 'named; closed 0 striped/made "echo one >$G/striped/made"'
check "... whose times were set, so that the CLOSE has nothing to tell: 0" eval '
	named; closed 0 striped/copy "cp -p $G/d/grown $G/striped/copy"'
check "... while another process, or another client, has it open for writing: 1, each time" beside_writers
check "... what another client does then is seen, and asked for once" others_then
"$cluster" down || diag "down failed"
finish
