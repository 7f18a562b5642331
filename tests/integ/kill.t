#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kill -9 and restart of daemons in the middle of copies: the copies end, and every byte is right.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 3
start_cluster "$C"
mkdir "$T/in"
make_file "$T/in/big" $((200 << 20))
mkdir "$T/in/small"
for i in $(seq 1500); do echo "content of $i" >"$T/in/small/$i"; done
big=$(sum "$T/in/big")

# crash DAEMON: kill -9, a moment away, back again
crash() {
	local pid
	pid=$(pid_of "$1")
	kill -KILL "$pid"
	sleep 0.7
	# What it was doing in the kernel has to end first.
	while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	"$PVFS" start "$C" "$1" >"$T/restart.out" 2>&1 || { sed 's/^/# /' "$T/restart.out"; return 1; }
}

# copy_through DAEMON SOURCE TARGET OPTIONS...: copies while the daemon is killed twice
copy_through() {
	local d=$1 rc
	shift
	"$PVFS" -c "$C/pvfs.conf" cp "$@" 2>"$T/cp.err" &
	local cp=$!
	PIDS+=($cp)
	sleep 0.15
	crash "$d" || return 1
	sleep 0.2
	kill -0 $cp 2>/dev/null && crash "$d"
	wait $cp
	rc=$?
	[ $rc -eq 0 ] || sed 's/^/# /' "$T/cp.err"
	return $rc
}

for d in mgr iod1; do
	ok "$d killed while a large file goes in" copy_through $d "$T/in/big" pvfs:/big
	rm -f "$T/big"
	ok "... copied out" p cp pvfs:/big "$T/big"
	is "... every byte is right" "$(sum "$T/big")" "$big"
	rm -f "$T/big"
	ok "$d killed while it comes out" copy_through $d pvfs:/big "$T/big"
	is "... every byte is right" "$(sum "$T/big")" "$big"
	ok "... copied in again" p cp "$T/in/big" pvfs:/big
	ok "$d killed while it is copied within" copy_through $d --chunk 1M --fsync pvfs:/big pvfs:/within
	rm -f "$T/big"
	ok "... copied out" p cp pvfs:/within "$T/big"
	is "... every byte is right" "$(sum "$T/big")" "$big"
	ok "... and removed" p rm pvfs:/within
	ok "... and removed" p rm pvfs:/big
done
# Of small files an I/O daemon has only those that are striped.
p mkdir pvfs:/stuffed pvfs:/striped
p setstripe -s 0 pvfs:/striped
for how in "mgr stuffed" "mgr striped" "iod1 striped"; do
	set -- $how
	ok "$1 killed while a tree goes in, small files $2" copy_through "$1" -r "$T/in/small" "pvfs:/$2"
	ok "... copied out" p cp -r "pvfs:/$2/small" "$T/small"
	ok "... every file is right" diff -r "$T/in/small" "$T/small"
	ok "the tree is removed" p rm -r "pvfs:/$2/small"
	rm -r "$T/small"
done

# A size that only a dead daemon knows is not guessed: a copy would end early. The writer is gone, so the daemons have to
# say where the file ends.
killed_writer "$T/in/big" unsure 10000000
size=$(size_of unsure)
"$PVFS" stop "$C" iod1 --kill >/dev/null
fails "a size that a dead daemon knows: soft says so" 1 "unsure: (Input/output error|Connection timed out)" \
	"$PVFS" -c "$C/pvfs.conf" --soft --timeout 1 stat pvfs:/unsure
"$PVFS" -c "$C/pvfs.conf" stat pvfs:/unsure >"$T/stat" &
stat=$!
PIDS+=($stat)
start_cluster "$C" iod1
wait $stat
like "... hard waits" "$(cat "$T/stat")" "Size: $size "

# The same with one that hangs; the waiting is said, and it is asked again when it is back.
freeze "$(pid_of iod1)"
fails "a size that a hanging daemon knows: soft says so" 1 "unsure: (Input/output error|Connection timed out)" \
	"$PVFS" -c "$C/pvfs.conf" --soft --timeout 1 stat pvfs:/unsure
"$PVFS" -c "$C/pvfs.conf" stat pvfs:/unsure >"$T/stat" 2>"$T/stat.err" &
stat=$!
PIDS+=($stat)
wait_for 30 grep -q "waits for an I/O daemon that does not answer" "$T/stat.err"
ok "... it says so" grep "waits for an I/O daemon that does not answer" "$T/stat.err"
kill -CONT "$(pid_of iod1)"
wait $stat
like "... hard waits" "$(cat "$T/stat")" "Size: $size "

# A session that ends while its owner is stopped: it goes on with a new one.
"$PVFS" stop "$C" >/dev/null
sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 1000;/' "$C/pvfs.conf"
start_cluster "$C"
# copy_asleep SOURCE TARGET: the copy is stopped for longer than its lease when it has made its target
copy_asleep() {
	"$PVFS" -c "$C/pvfs.conf" cp --chunk 256k "$1" "$2" 2>"$T/cp.err" &
	local cp=$! rc
	PIDS+=($cp)
	wait_for 20 p stat "$2"
	freeze $cp
	sleep 4
	kill -CONT $cp
	wait $cp
	rc=$?
	sed 's/^/# /' "$T/cp.err"
	return $rc
}

ok "a client that slept longer than its lease" copy_asleep "$T/in/big" pvfs:/big
rm -f "$T/big"
ok "... copied out" p cp pvfs:/big "$T/big"
is "... every byte is right" "$(sum "$T/big")" "$big"
ok "one that slept while it had the daemons copy" copy_asleep pvfs:/big pvfs:/within
rm -f "$T/big"
ok "... copied out" p cp pvfs:/within "$T/big"
is "... every byte is right" "$(sum "$T/big")" "$big"

# Soft: in bounded time.
"$PVFS" stop "$C" iod0 --kill >/dev/null
SECONDS=0
fails "soft: a read without one daemon fails" 1 "big: (Input/output error|Connection timed out)" \
	"$PVFS" -c "$C/pvfs.conf" --soft --timeout 3 cp pvfs:/big "$T/big2"
if [ $SECONDS -le 15 ]; then pass "... in bounded time"; else fail "... in bounded time" "$SECONDS s"; fi
"$PVFS" -c "$C/pvfs.conf" cp pvfs:/big "$T/big2" &
cp=$!
PIDS+=($cp)
sleep 2
ok "hard: it waits" kill -0 $cp
start_cluster "$C" iod0
wait $cp
is "... and goes on when the daemon is back" "$?" 0
is "... every byte is right" "$(sum "$T/big2")" "$big"
finish
