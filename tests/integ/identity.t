#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A daemon that is another one than the volume has at that address: it is told apart before it gets a request. And a client
# that says it is another one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/locks.sh"

make_cluster "$C" 2
start_cluster "$C"
make_file "$T/file" 1000000
ok "a file on both I/O daemons" p cp "$T/file" pvfs:/file
ok "... which the manager knows" p df
ours=$(sed -n 's/.*uuid = "\(.*\)";/\1/p' "$C/pvfs.conf")

# other_iod DIR INDEX: an I/O daemon with a store of its own and the configuration in DIR, in the background
other_iod() {
	"$BIN/pvfs-iod" -c "$1/pvfs.conf" -n "$2" --mkfs 2>>"$1/log" || return
	"$BIN/pvfs-iod" -c "$1/pvfs.conf" -n "$2" 2>>"$1/log" &
	other=$!
	PIDS+=($other)
	wait_for 10 grep -q " serves " "$1/log"
}

state_of() {
	p status --json 2>/dev/null | perl -MJSON::PP -e 'local $/; print map { $_->{state} }
		grep { $_->{server} eq $ARGV[0] } @{decode_json(<STDIN>)->{servers}}' "$1"
}

mgr_has_met() {
	p df >/dev/null
	[ "$(grep -c "refused: it is $1" "$C/log/mgr.log")" -gt "$2" ]
}

# expect_refused WHAT HOW: of what answers now at iod1's address
expect_refused() {
	local before
	before=$(grep -c "refused: it is $2" "$C/log/mgr.log")
	is "$1: status says which it is, and which it should be" "$(state_of iod1)" "it is $2, not iod 1 of volume $ours"
	fails "... with status 1" 1 "" p status
	fails "... the library refuses it" 1 "refused: it is $2, not iod 1 of volume $ours" p --soft --timeout 3 cp pvfs:/file "$T/back"
	fails "... also to write" 1 "refused: it is $2" p --soft --timeout 3 cp "$T/file" pvfs:/more
	is "... and so does the manager" "$(p df --json | json '{volumes}[0]{iods_up}')" 1
	# Who was refused a moment ago is not asked at once.
	wait_for 10 mgr_has_met "$2" "$before"
	p df >/dev/null
	is "... with one line in its log" "$(($(grep -c "refused: it is $2" "$C/log/mgr.log") - before))" 1
}

# Of another volume: the same name and keys, as when a volume was made anew.
mkdir "$T/d"
theirs=11111111-2222-4333-8444-555555555555
sed "s/$ours/$theirs/" "$C/pvfs.conf" >"$T/d/pvfs.conf"
cp "$C"/*.key "$T/d"
ok "stop iod1" "$PVFS" stop "$C" iod1
ok "another volume's daemon in its place" other_iod "$T/d" 1
expect_refused "another volume" "iod 1 of volume $theirs"
is "... it was given nothing" "$(find "$T/d" -path '*/data/*' -type f | wc -l)" 0
kill "$other"
wait "$other" 2>/dev/null

# Itself, with another server key: it does not take the manager's, which says so once.
mkdir "$T/k"
sed "s|store = \"iod|store = \"$C/iod|" "$C/pvfs.conf" >"$T/k/pvfs.conf"
cp "$C/cluster.key" "$T/k"
head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$T/k/server.key"
chmod 600 "$T/k/server.key"
"$BIN/pvfs-iod" -c "$T/k/pvfs.conf" -n 1 2>>"$T/k/log" &
other=$!
PIDS+=($other)
ok "one with another key in its place" wait_for 10 grep -q " serves " "$T/k/log"
ok "... is told of in the manager's log" wait_for 30 grep -q "refuses us" "$C/log/mgr.log"
is "... once" "$(grep -c "refuses us" "$C/log/mgr.log")" 1
like "... and which key that is" "$(grep "refuses us" "$C/log/mgr.log")" "refused our key, the server key: compare the files of 'server_key'"
fails "status: it can't be used" 1 "" p status
is "... though it answers" "$(state_of iod1)" up
like "... and why" "$(p status --json 2>/dev/null | json '{servers}[2]{manager_sees}')" \
	"^refused: its server key is not the manager's: compare the files of 'server_key'"
fails "a client is told of the key" 1 "its server key is not the manager's: compare the files of 'server_key'" \
	p --soft --timeout 3 cp pvfs:/file "$T/back"
like "... and its log has it, too" "$(cat "$T/k/log")" "is another client's, or the manager has another server key than we"
kill "$other"
wait "$other" 2>/dev/null

# Of another place: the addresses were exchanged.
mkdir "$T/e"
a0=$(sed -n 's/.*{ address = "\([^"]*\)"; store = "iod0".*/\1/p' "$C/pvfs.conf")
a1=$(sed -n 's/.*{ address = "\([^"]*\)"; store = "iod1".*/\1/p' "$C/pvfs.conf")
sed "s/$a0/X/; s/$a1/$a0/; s/X/$a1/" "$C/pvfs.conf" >"$T/e/pvfs.conf"
cp "$C"/*.key "$T/e"
ok "the daemon of another place" other_iod "$T/e" 0
expect_refused "another place" "iod 0 of volume $ours"
is "... it was given nothing" "$(find "$T/e" -path '*/data/*' -type f | wc -l)" 0
kill "$other"
wait "$other" 2>/dev/null

# A client that waits goes on when the right one is back.
p cp pvfs:/file "$T/back" 2>"$T/cp.log" &
cp=$!
PIDS+=($cp)
ok "the right one is back" "$PVFS" start "$C"
ok "what waited for it ends well" wait "$cp"
ok "... with the file's bytes" cmp "$T/file" "$T/back"
ok "status" wait_for 20 p status

# Who knows the cluster key and counts sessions, but has not the ticket of this one.
client a
is "a client holds a lock" "$(ask a lock w 0 10)" ok
session=$(sed -n 's/.* session \([0-9]*\): .*locks_test.*/\1/p' "$C/log/mgr.log" | tail -n 1)
like "... in a session that has a number" "$session" '^[0-9]+$'
for who in mgr iod0; do
	[ $who = mgr ] && address=$(mgr_address "$C") || address=$a0
	is "$who: who says that it is his is refused" "$("$BIN/tests/integ/claim" "$address" test "$C/cluster.key" "$session" 2>&1)" EPERM
	is "... with one line in the log" "$(grep -c "refused: session $session is another client's" "$C/log/$who.log")" 1
done
client b
is "the session is left alone: it has its lock" "$(ask b lock w 0 10; ask a lock w 5 1; ask a write 000000000000001)" $'EAGAIN\nok\nok'
is "... and gives it back" "$(ask a lock u 0 0; ask b lock w 0 10; ask b read)" $'ok\nok\n000000000000001 ok'
is "it was not lost" "$(cat "$T/err")" ""
for who in mgr iod0; do
	[ $who = mgr ] && address=$(mgr_address "$C") || address=$a0
	is "$who: with its ticket it would have been his" \
		"$("$BIN/tests/integ/claim" "$address" test "$C/cluster.key" "$session" "$C/server.key" "$ours" 2>&1)" 0
done
leave a
leave b
finish
