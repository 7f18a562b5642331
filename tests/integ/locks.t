#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Locks between processes that use libpvfs: kill -9 of who holds one, restarts of the mgr while one is held and another
# waited for, a session that expires while its owner is stopped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/locks.sh"

make_cluster "$C" 2
sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 2000;\n\tsession_locks_max = 50;/' "$C/pvfs.conf"
start_cluster "$C"

client a
client b
is "a gets a range" "$(ask a lock w 0 100)" ok
is "b does not get it" "$(ask b lock r 50 1)" EAGAIN
is "nor within half a second" "$(ask b lock r 50 1 500)" ETIMEDOUT
is "but its neighbour" "$(ask b lock w 100 10)" ok
is "b is told who" "$(ask b get r 0 0)" "w 0 100 -${PID[a]} ok"
tell b lock w 0 50 -1
is "b waits" "$(hear b 1)" silence
is "a can't wait for b as well" "$(ask a lock r 100 1 -1)" EDEADLK
is "a unlocks" "$(ask a lock u 0 0)" ok
is "b has it at once, not at its next question" "$(hear b 2)" ok
is "a closes and opens the file" "$(ask b lock u 0 0; ask a lock w 5 5; ask a reopen; ask b lock w 0 0)" $'ok\nok\nok\nok'
is "open files' locks: the process does not matter" "$(ask a ofd r 0 10; ask b lock u 0 0; ask a ofd r 0 10; ask a lock w 5 1)" \
	$'EAGAIN\nok\nok\nEAGAIN'
is "flock is apart" "$(ask b flock w; ask a flock r; ask b flock u; ask a flock r; ask b flock w 300)" \
	$'ok\nEAGAIN\nok\nok\nETIMEDOUT'
is "all is given back" "$(ask a reopen; ask b flock w; ask b reopen)" $'ok\nok\nok'

# Many at once.
client c
for n in a b c; do tell $n count 100; done
is "three processes count to 300" "$(hear a 60; hear b 60; hear c 60; ask a read)" $'ok\nok\nok\n000000000000300 ok'

# More than it may have.
got=$(for i in $(seq 60); do ask c lock w $((1000 + 2 * i)) 1; done | sort | uniq -c | tr -s ' \n' ' ')
like "a session's limit" "$got" '^ (9|10|11) ENOLCK (49|50|51) ok $'
is "and back" "$(ask c lock u 0 0; ask c lock w 1000 1; ask c lock u 0 0)" $'ok\nok\nok'

# kill -9 of the holder: its session expires, who waits gets the lock.
is "a holds two" "$(ask a lock w 0 10; ask a flock w)" $'ok\nok'
tell b lock w 0 10 -1
tell c flock w -1
is "b and c wait" "$(hear b 0.5; hear c 0.5)" $'silence\nsilence'
kill -KILL "${PID[a]}"
is "a is killed: b and c get them" "$(hear b 15; hear c 15)" $'ok\nok'
leave a killed 2>/dev/null

# A killed waiter leaves nothing behind.
client a
tell a lock w 0 10 -1
is "a waits for b" "$(hear a 0.5)" silence
kill -KILL "${PID[a]}"
leave a killed 2>/dev/null
sleep 4
is "b unlocks, c gets it, not the dead" "$(ask b lock u 0 0; ask c lock w 0 10 3000; ask c lock u 0 0; ask c flock u)" \
	$'ok\nok\nok\nok'

# The mgr is restarted while b holds and c waits: b still has it, c gets it when b gives it back, a stranger never.
client a
is "b holds, shared and alone" "$(ask b lock w 0 10; ask b lock r 20 10; ask b ofd r 100 10; ask b flock w)" $'ok\nok\nok\nok'
tell c lock w 5 1 -1
is "c waits" "$(hear c 0.5)" silence
ok "the mgr is killed and restarted" restart_mgr
is "a does not get what b has told the new mgr" "$(ask a lock r 9 1; ask a lock w 29 1; ask a ofd w 100 1; ask a flock r)" \
	$'EAGAIN\nEAGAIN\nEAGAIN\nEAGAIN'
is "but what is free" "$(ask a lock r 20 10; ask a lock w 10 10)" $'ok\nok'
is "c waits still" "$(hear c 0.3)" silence
is "b unlocks" "$(ask b lock u 0 0)" ok
is "c gets it" "$(hear c 10)" ok
is "b has the others still" "$(ask a flock r; ask b flock u; ask a flock w)" $'EAGAIN\nok\nok'

# Somebody comes to the mgr's port before it does, without the key, and says that the sessions are over, and that there is no
# such volume. Nobody gives anything up for that.
is "c locks" "$(ask c lock w 200 10)" ok
kill -KILL "$(pid_of mgr)"
port=$(mgr_address "$C")
port=${port##*:}
rm -f "$T/refuse"
bound() {
	"$BIN/tests/integ/fake_peer" refuse "$port" >"$T/refuse" 2>>"$T/err" &
	fake=$!
	PIDS+=($fake)
	wait_for 1 grep -q "$port" "$T/refuse"
}
ok "an impostor takes the mgr's port" wait_for 5 bound
refused() { [ "$(grep -c refused "$T/refuse")" -ge 12 ]; }
ok "... and refuses whoever comes, more than once" wait_for 20 refused
kill -KILL $fake
wait $fake 2>/dev/null
ok "the mgr is back" restart_mgr
is "a and b do not get what c has" "$(ask a lock r 205 1; ask b lock r 205 1)" $'EAGAIN\nEAGAIN'
is "c unlocks it, and a gets it" "$(ask c lock u 200 10; ask a lock w 200 10; ask a lock u 200 10)" $'ok\nok\nok'
is "no session was given up" "$(grep -c 'was ended' "$T/err")" 0
like "the log names it once" "$(grep -c 'does not prove that he knows the key' "$T/err")" '^[1-9]$'

# Restarted again and again under contention: every lock is held by one at a time. The bytes are with the mgr as well, or
# with an I/O daemon.
ok "a file that is striped" p setstripe -s 0 pvfs:/striped
for path in /striped /f; do
	for n in a b c; do
		leave $n
		client $n $path
	done
	ask a write 000000000000000 >/dev/null
	for n in a b c; do tell $n count 150; done
	for i in 1 2 3; do
		sleep 0.4
		restart_mgr
	done
	is "$path: three restarts while three count to 450" "$(hear a 90; hear b 90; hear c 90; ask a read)" \
		$'ok\nok\nok\n000000000000450 ok'
done

# A session that ends while its owner is stopped: its locks are others', and it is told.
is "a holds" "$(ask a lock w 0 10; ask a flock w)" $'ok\nok'
freeze "${PID[a]}"
is "a sleeps too long: b gets it" "$(ask b lock w 0 10 15000)" ok
kill -CONT "${PID[a]}"
sleep 2
is "a is told, until it closes the file" "$(ask a lock w 50 1; ask a flock r; ask a reopen; ask a lock w 50 1; ask a lock w 0 1)" \
	$'EIO\nEIO\nok\nok\nEAGAIN'
like "one line of it in its log" "$(cat "$T/err")" 'locks of inode [0-9]+ were lost'

# A session that ends under a write, which the mgr never heard of: at its place the write may be made again.
is "a holds again" "$(ask a reopen; ask b lock u 0 0; ask a lock w 0 10)" $'ok\nok\nok'
mgr=$(pid_of mgr)
freeze "$mgr"
tell a write 000000000000777
is "a's write waits" "$(hear a 0.5)" silence
freeze "${PID[a]}"
kill -KILL "$mgr"
while kill -0 "$mgr" 2>/dev/null; do sleep 0.05; done
"$PVFS" start "$C" mgr >"$T/restart.out" 2>&1
is "a sleeps too long: b gets it" "$(ask b lock w 0 10 15000)" ok
kill -CONT "${PID[a]}"
is "a has written" "$(hear a; ask b read)" $'ok\n000000000000777 ok'
leave a
leave b
leave c
client d
is "nothing is left" "$(ask d lock w 0 0; ask d flock w)" $'ok\nok'
leave d
finish
