#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Locks through pvfsd: of the processes of two mounts and of one that uses libpvfs, among all.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/locks.sh"
. "$(dirname "$0")/pvfsd.sh"

make_cluster "$C" 2
sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 2000;/' "$C/pvfs.conf"
start_cluster "$C"
mount_both allow_other

client a /f "$T/m1"
client b /f "$T/m2"
client c /f
client d /f "$T/m1"
is "a gets a range" "$(ask a lock w 0 100)" ok
is "nobody else does" "$(ask b lock r 50 1; ask c lock r 50 1; ask d lock r 50 1)" $'EAGAIN\nEAGAIN\nEAGAIN'
is "but its neighbour" "$(ask b lock w 100 10; ask c lock w 110 10; ask d lock w 120 10)" $'ok\nok\nok'
is "they are told who, on the same host by the same mount" "$(ask b get r 0 100; ask c get r 0 100; ask d get r 0 100)" \
	"w 0 100 0 ok
w 0 100 -${PID[a]} ok
w 0 100 ${PID[a]} ok"
is "a wait ends by a signal" "$(ask b lock r 50 1 400; ask d lock r 50 1 400)" $'ETIMEDOUT\nETIMEDOUT'
tell b lock w 0 50 -1
is "b waits" "$(hear b 0.5)" silence
is "a can't wait for b as well" "$(ask a lock r 100 1 -1)" EDEADLK
is "a unlocks" "$(ask a lock u 0 0)" ok
is "b has it at once" "$(hear b 2)" ok
tell c lock w 0 50 -1
tell d lock r 100 1 -1
is "c and d wait for b" "$(hear c 0.3; hear d 0.3)" $'silence\nsilence'
is "b closes the file: they have it" "$(ask b reopen; hear c 2; hear d 2)" $'ok\nok\nok'
is "all close it, and nothing is left" "$(for n in a c d; do ask $n reopen; done; ask b lock w 0 0; ask b lock u 0 0)" \
	$'ok\nok\nok\nok\nok'

is "locks of open files" "$(ask a ofd w 0 10; ask b ofd r 0 10; ask c ofd r 0 10; ask d ofd r 0 10; ask a lock r 5 1)" \
	$'ok\nEAGAIN\nEAGAIN\nEAGAIN\nEAGAIN'
tell b ofd w 5 1 -1
is "b waits for one" "$(hear b 0.3)" silence
is "it goes with the file" "$(ask a reopen; hear b 2; ask b ofd u 0 0)" $'ok\nok\nok'
is "flock is apart" "$(ask a flock w; ask a lock w 0 0; ask b flock r; ask c flock r; ask d flock w 300; ask a flock u; ask d flock w)" \
	$'ok\nok\nEAGAIN\nEAGAIN\nETIMEDOUT\nok\nok'
is "and all goes back" "$(for n in a d; do ask $n reopen; done; ask c lock w 0 0; ask c flock w; ask c reopen)" \
	$'ok\nok\nok\nok\nok'

for n in a b c d; do tell $n count 50; done
is "four processes count to 200" "$(hear a 60; hear b 60; hear c 60; hear d 60; ask c read)" $'ok\nok\nok\nok\n000000000000200 ok'

# The kernel tells of the last close of a file some time after it: nobody is to notice.
ok "a lock that went by close is free at once" perl -MFcntl=:flock -e '
	for (1 .. 300) {
		open(my $f, "+<", $ARGV[0]) or die;
		open(my $g, "+<", $ARGV[0]) or die;
		flock($f, LOCK_EX | LOCK_NB) or die;
		close($f);
		flock($g, LOCK_EX | LOCK_NB) or die "round $_: $!";
		close($g);
	}' "$T/m1/f"
ok "that a file was read is known at once, also elsewhere" perl -e '
	for (1 .. 100) {
		utime(1e9, 1e9, $ARGV[0]);
		open(my $f, "<", $ARGV[0]) or die;
		readline($f);
		close($f);
		(stat($ARGV[$_ % 2]))[8] > 1e9 or die "round $_";
	}' "$T/m1/f" "$T/m2/f"

# Of who is killed nothing is left, at once: the mount's kernel knows.
is "a holds" "$(ask a lock w 0 10; ask a ofd w 20 10; ask a flock w)" $'ok\nok\nok'
tell b lock w 0 10 -1
tell c flock w -1
tell d ofd w 20 10 -1
is "they wait" "$(hear b 0.3; hear c 0.3; hear d 0.3)" $'silence\nsilence\nsilence'
kill -KILL "${PID[a]}"
is "a is killed: they have it" "$(hear b 1; hear c 1; hear d 1)" $'ok\nok\nok'
leave a killed 2>/dev/null
client a /f "$T/m1"
tell a lock w 0 10 -1
is "a waits for b" "$(hear a 0.3)" silence
kill -KILL "${PID[a]}"
leave a killed 2>/dev/null
is "a is killed, b unlocks, c has it" "$(ask b lock u 0 0; ask c lock w 0 10; ask c lock u 0 0; ask c flock u; ask d ofd u 0 0)" \
	$'ok\nok\nok\nok\nok'

# Many who wait, more than libfuse has threads to begin with; one is killed.
is "b holds all" "$(ask b lock w 0 0)" ok
waiting=()
echo "lock w 0 0 -1" >"$T/order"
for i in {1..40}; do
	"$BIN/tests/integ/locks_test" "$T/m$((i % 2 + 1))/f" <"$T/order" >"$T/waits.$i" 2>&1 &
	waiting+=($!)
	PIDS+=($!)
done
all_ready() {
	[ "$(cat "$T"/waits.* | grep -c ready)" = 40 ]
}
wait_for 20 all_ready
sleep 0.5
ok "40 wait, and the mounts work" timeout 20 touch "$T/m1/while-they-wait" "$T/m2/while-they-wait-there"
is "nobody has it" "$(cat "$T"/waits.* | grep -c ok)" 0
kill -KILL "${waiting[7]}"
is "b unlocks" "$(ask b lock u 0 0)" ok
all_had() {
	[ "$(cat "$T"/waits.* | grep -c ok)" = 39 ]
}
ok "all but the one that was killed have it in their turn" wait_for 30 all_had
wait "${waiting[@]}" 2>/dev/null

# The mgr is restarted.
client a /f "$T/m1"
is "a and b hold" "$(ask a lock w 0 10; ask b lock r 20 10; ask b ofd r 100 10; ask b flock w)" $'ok\nok\nok\nok'
tell d lock w 5 1 -1
is "d waits" "$(hear d 0.3)" silence
ok "the mgr is killed and restarted" restart_mgr
is "c does not get what they have told the new mgr" \
	"$(ask c lock r 9 1; ask c lock w 29 1; ask c ofd w 100 1; ask c flock r)" $'EAGAIN\nEAGAIN\nEAGAIN\nEAGAIN'
is "a unlocks, d has it" "$(ask a lock u 0 0; hear d 10)" $'ok\nok'
is "b has the others still" "$(ask c flock r; ask b flock u; ask c flock w)" $'EAGAIN\nok\nok'
for n in a b c d; do leave $n; done
unmount_both
finish
