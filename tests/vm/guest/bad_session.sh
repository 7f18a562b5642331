# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of sessions and connections: each interleaving is forced by a relay that stops at
# one message (gate.pl). Sourced by it.
# shellcheck shell=bash disable=SC2154

G=/mnt/gate
RECLAIM=19
MKDIR=37
LOCK=54

# through_gate OP N ask|answer|eio [MOUNT-OPTION...]: mounts at $G through a relay, which is process $gate.
through_gate()
{
	perl "$top/tests/vm/guest/gate.pl" 7300 7100 "$1" "$2" "$3" >"$tmp/gate" &
	gate=$!
	shift 3
	eventually 10 grep -q ready "$tmp/gate"
	mkdir -p $G
	mount -t pvfs "$@" 127.0.0.1:7300:/vol $G
}

gate_holds()
{
	eventually 30 grep -q held "$tmp/gate"
}

restart_mgr()
{
	"$cluster" kill mgr
	"$cluster" start mgr
}

# Recovery has an inode in its hands, and waits for the mgr: unmounting takes it away.
umount_in_recovery()
{
	through_gate $RECLAIM 1 ask
	exec 5<$G/big
	restart_mgr
	gate_holds
	exec 5<&-
	# umount(8) would ask the mgr for attributes.
	background perl -e 'syscall(166, $ARGV[0], 0) and die "umount2: $!"' $G
	ended 30
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	dmesg >"$tmp/dmesg"
	refuse grep 'Busy inodes' "$tmp/dmesg"
	kill $gate
}

# Somebody has the lock; 124 would be that nobody can say.
locked()
{
	local rc=0

	within 30 flock -n "$1" true || rc=$?
	[ $rc = 1 ]
}

# The mgr is started twice while one recovery is under way: the last one is told all, also what the
# one before was told.
mgr_started_twice()
{
	: >"$M/lock1"
	: >"$M/lock2"
	# Two are taken, then told.
	through_gate $LOCK 4 ask
	exec 5<$G/lock1 6<$G/lock2
	flock -x 5
	flock -x 6
	restart_mgr
	gate_holds
	restart_mgr
	# Its answer to who has not asked before: recovery is over.
	within 60 stat $G/tree
	locked "$M/lock1"
	locked "$M/lock2"
	exec 5<&- 6<&-
	within 60 flock -x "$M/lock1" true
	within 60 flock -x "$M/lock2" true
	rm "$M/lock1" "$M/lock2"
	umount $G
	kill $gate
}

# could_not OP N WHAT...: a new mgr can't say anything of what it is told of, or of its lock: recovery goes on without it.
could_not()
{
	local op=$1 n=$2 rc=0

	shift 2
	: >"$M/damaged"
	through_gate "$op" "$n" eio
	exec 5<$G/damaged
	flock -x 5
	restart_mgr
	gate_holds
	within 20 stat $G/tree
	# Nor is anybody kept in grace by it.
	within 20 flock -x "$M/tree" true
	dmesg | grep "$*"
	kill -HUP $gate
	flock -u 5 || true
	exec 5<&-
	cat $G/damaged
	within 20 flock -x "$M/damaged" true
	umount $G
	kill $gate
	rm "$M/damaged"
}

# How many sessions of this node have ended so far, as the module says, or the mgr's log.
ends_here()
{
	dmesg | grep -c 'session expired' || true
}

ends_there()
{
	grep -c 'no sign of life' /run/pvfs-cluster/mgr.log || true
}

# A directory is made in a session that ends before the answer comes: in the next one it is not made
# again, and nobody says that it was there before.
once_across_sessions()
{
	local here there

	# It takes two channels, so two CPUs.
	[ "$(nproc)" -gt 1 ] || return 0
	here=$(ends_here)
	there=$(ends_there)
	cp $conf "$tmp/conf"
	sed -i 's/^mgr: {/&\n\tlease_ms = 3000;/' $conf
	grep -q 'lease_ms = 3000' $conf
	restart_mgr
	through_gate $MKDIR 1 answer -o nconnect=2
	taskset 2 stat $G/tree
	LC_ALL=C background taskset 2 mkdir $G/once
	gate_holds
	eventually 10 [ -d "$M/once" ]
	kill -USR1 $gate
	eventually 60 eval '[ "$(ends_there)" -gt '"$there"' ]'
	kill -USR2 $gate
	eventually 30 eval '[ "$(ends_here)" -gt '"$here"' ]'
	within 60 taskset 1 stat $G/big
	kill -HUP $gate
	ended 30
	cat "$tmp/bg"
	[ "$(cat "$tmp/bg.rc")" = 1 ]
	grep -q 'Input/output error' "$tmp/bg"
	within 30 taskset 2 rmdir $G/once
	umount $G
	kill $gate
	cp "$tmp/conf" $conf
	restart_mgr
}

# Who waits for a server can be frozen, so that a machine whose server is away can suspend; and when it
# was the one that received for others, they get their answers all the same.
frozen_reader()
{
	local f=$tmp/freezer

	mkdir -p "$f"
	mount -t cgroup -o freezer none "$f"
	mkdir "$f/pvfs"
	# What is known of the path needs no lookup, and so no lock of a directory that others want.
	ls "$M" "$M/tree"
	"$cluster" kill mgr STOP
	# On one channel, all of them.
	background taskset 1 stat "$M/tree/unasked"
	eventually 10 waiting_requests
	pgrep -x stat >"$f/pvfs/cgroup.procs"
	echo FROZEN >"$f/pvfs/freezer.state"
	eventually 10 grep -q FROZEN "$f/pvfs/freezer.state"
	"$cluster" kill mgr CONT
	within 20 taskset 1 mkdir "$M/beside"
	within 20 taskset 1 rmdir "$M/beside"
	[ ! -e "$tmp/bg.rc" ]
	echo THAWED >"$f/pvfs/freezer.state"
	ended 20
	eventually 10 rmdir "$f/pvfs"
	umount "$f"
}

# Somebody without the key comes to the mgr's port before it does, and says that the session is over, and that there is
# no such volume: nothing is given up for that, the locks neither.
forged_refusal()
{
	local here fake

	here=$(ends_here)
	: >"$M/lock1"
	mkdir -p $G
	"$cluster" mount $G
	exec 5<$G/lock1
	flock -x 5
	"$cluster" kill mgr
	"$build/tests/integ/fake_peer" refuse 7100 >"$tmp/fake" &
	fake=$!
	eventually 60 eval '[ "$(grep -c refused "$tmp/fake")" -ge 4 ]'
	kill $fake
	wait $fake || true
	"$cluster" start mgr
	within 60 stat $G/tree
	locked "$M/lock1"
	exec 5<&-
	within 60 flock -x "$M/lock1" true
	rm "$M/lock1"
	"$cluster" umount $G
	[ "$(ends_here)" = "$here" ]
	dmesg >"$tmp/dmesg"
	grep 'somebody refuses us there' "$tmp/dmesg"
}

# A descriptor stays good: what it was opened for is told to a new mgr, whatever the mode has become since.
chmod_before_restart()
{
	local i

	echo one >"$M/closed"
	exec 5<"$M/closed" 6>>"$M/closed"
	chmod 0 "$M/closed"
	restart_mgr
	echo two >&6
	[ "$(cat <&5)" = $'one\ntwo' ]
	exec 5<&- 6>&-
	rm "$M/closed"
	dmesg >"$tmp/dmesg"
	refuse grep 'the mgr does not believe it' "$tmp/dmesg"
}

# The whole machine, as it would before it sleeps, with a mgr that is silent and an iod that is asked for connections in vain: all
# tasks are frozen in time, or the kernel says EBUSY. The debug kernels are made without that.
suspended()
{
	local rc=0 t0

	if [ ! -e /sys/power/pm_test ]; then
		uname -r | grep debug
		return 0
	fi
	sync -f "$M"
	ls "$M" "$M/tree"
	"$cluster" kill iod0
	background dd if="$M/big" of=/dev/null bs=64k count=1 iflag=direct status=none
	eventually 10 grep READ $S/requests
	eventually 30 eval 'grep "^iod 0 " $S/servers | grep -q "state down"'
	"$cluster" kill mgr STOP
	# Not a name that another check has asked for: that it is not there would be known.
	stat "$M/tree/never-asked" &
	eventually 10 grep LOOKUP $S/requests
	echo 0 >/sys/power/sync_on_suspend
	echo 0 >/sys/module/suspend/parameters/pm_test_delay
	echo freezer >/sys/power/pm_test
	t0=$SECONDS
	echo freeze >/sys/power/state || rc=$?
	echo none >/sys/power/pm_test
	echo "$((SECONDS - t0)) s"
	"$cluster" kill mgr CONT
	"$cluster" start iod0
	ended 60
	[ "$(cat "$tmp/bg.rc")" = 0 ]
	wait || true
	[ $rc = 0 ]
}

# Two iods have each other's address: they are refused, and the log says who was expected and who came.
other_daemon()
{
	local rc=0

	cp $conf "$tmp/conf"
	sed -i 's/127.0.0.1:7101"/127.0.0.1:7102"; listen = "127.0.0.1:7101"/; t
		s/127.0.0.1:7102"/127.0.0.1:7101"; listen = "127.0.0.1:7102"/' $conf
	restart_mgr
	"$cluster" mount -o "soft,$TIMEO" /mnt/soft
	LC_ALL=C within 60 dd if=/mnt/soft/big of=/dev/null bs=64k count=1 status=none 2>"$tmp/dd" || rc=$?
	cat "$tmp/dd"
	[ $rc = 1 ]
	grep -q 'Input/output error' "$tmp/dd"
	dmesg >"$tmp/dmesg"
	grep 'should be iod 0 of volume .*, and is iod 1 of volume .*: refused' "$tmp/dmesg"
	"$cluster" umount /mnt/soft
	cp "$tmp/conf" $conf
	restart_mgr
	within 60 dd if="$M/big" of=/dev/null bs=64k count=1 iflag=direct status=none
}
