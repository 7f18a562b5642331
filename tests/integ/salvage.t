#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A damaged store of the manager, as an administrator meets it: served as far as it goes, refused with a reason, salvaged.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 2
start_cluster "$C"
mkdir -p "$T/tree"
for i in $(seq 0 39); do
	head -c $((i * 197)) /dev/urandom >"$T/tree/small-$i"
done
make_file "$T/tree/large" 3000000
ok "a tree of files" p cp --no-progress -r "$T/tree" pvfs:/tree
ok "stop" "$PVFS" stop "$C"

# flip TABLE PAGE: a bit in it
flip() {
	perl -e 'open my $f, "+<", $ARGV[0] or die; my $at = $ARGV[1] * 4096 + 300; seek $f, $at, 0; read $f, my $b, 1;
		seek $f, $at, 0; print $f chr(ord($b) ^ 8)' "$C/mgr/db/$1" "$2"
}

# pages TABLE TYPE: the numbers of its pages of a type, 5 for leaves
pages() {
	perl -e 'open my $f, "<", $ARGV[0] or die; my $n = 0; while (read $f, my $p, 4096) {
		print "$n\n" if ord(substr $p, 25, 1) == $ARGV[1]; $n++ }' "$C/mgr/db/$1" "$2"
}

readable() {
	local i n=0
	for i in $(seq 0 39) large; do
		rm -f "$T/back"
		[ "$i" = large ] && f=large || f=small-$i
		p --soft --timeout 5 cp --no-progress "pvfs:/tree/$f" "$T/back" 2>/dev/null && cmp -s "$T/back" "$T/tree/$f" && n=$((n + 1))
	done
	echo $n
}

cp -a "$C/mgr" "$T/good"
leaf=$(pages inode.db 5 | head -n 2 | tail -n 1)
flip inode.db "$leaf"
ok "it starts with a damaged page" "$PVFS" start "$C"
n=$(readable)
ok "what is on others is there ($n of 41)" [ "$n" -gt 0 ]
ok "... and what is on it is not" [ "$n" -lt 41 ]
like "the log names table and page" "$(cat "$C/log/mgr.log")" "db/inode.db: page $leaf is damaged"
is "... in one line" "$(grep -c "page $leaf is damaged" "$C/log/mgr.log")" 1
ok "stop" "$PVFS" stop "$C"

flip dirent.db 0
truncate -s -2048 "$C/mgr/db/xattr.db"
fails "a store whose tables can't be opened is refused" 1 "did not start" "$PVFS" start "$C"
like "... with the table and what to do" "$(cat "$C/log/mgr.log")" "dirent.db: can't be used: restore the store from a backup, or .*--salvage"
like "... and one that is half a page short" "$(cat "$C/log/mgr.log")" "xattr.db: ends in the middle of page [0-9]+, 2048 bytes short"

mv "$C/mgr/db/head.db" "$T/head.db"
fails "so is one that has lost a table" 1 "did not start" "$PVFS" start "$C"
like "... which is named" "$(cat "$C/log/mgr.log")" "head.db: is missing: restore the store from a backup, or .*--salvage"
mv "$T/head.db" "$C/mgr/db/head.db"

ok "salvage" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --salvage "$C/new"
like "... tells what is lost" "$(cat "$T/ok.out")" "[0-9]+ things were lost"
fails "... not into a directory that has something" 1 "new|store|empty" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --salvage "$T/tree"
mv "$C/mgr" "$T/bad" && mv "$C/new" "$C/mgr"
ok "the new store's tables agree" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --check
ok "start" "$PVFS" start "$C"
is "what was readable is there" "$(readable)" "$n"
ok "... and new files can be made" p cp "$T/tree/large" pvfs:/new
ok "stop" "$PVFS" stop "$C"

# The root directory's inode: nothing can be served without it.
rm -rf "$C/mgr" && cp -a "$T/good" "$C/mgr"
flip inode.db 1
fails "a store without its root is refused" 1 "did not start" "$PVFS" start "$C"
like "... with what to do" "$(cat "$C/log/mgr.log")" "cannot be taken up: Input/output error; restore the store from a backup, or .*--salvage"

# Sessions that nobody knows any more: who had one is evicted.
rm -rf "$C/mgr" && cp -a "$T/good" "$C/mgr"
ok "start" "$PVFS" start "$C"
kill -KILL "$(pid_of mgr)"
flip session.db "$(pages session.db 5 | head -n 1)"
ok "a manager with damaged sessions starts" "$PVFS" start "$C"
like "... and says what it did" "$(cat "$C/log/mgr.log")" "all clients that were there are evicted"
# What they had is nobody's before the I/O daemons refuse them.
ok "a new client is served" wait_for 30 p --soft --timeout 10 cp --no-progress pvfs:/tree/large "$T/back"
is "all is there" "$(readable)" 41
ok "the sessions are put aside" ls "$C"/mgr/db/session.db.damaged-*
kill -KILL "$(pid_of mgr)"
rm "$C"/mgr/db/session.db*
ok "one without sessions starts as well" "$PVFS" start "$C"
is "... and says so" "$(grep -c "all clients that were there are evicted" "$C/log/mgr.log")" 2
ok "... and a new client is served" wait_for 30 p --soft --timeout 10 cp --no-progress pvfs:/tree/large "$T/back"
ok "stop" "$PVFS" stop "$C"

# An older copy of the store comes back: who comes then does not get the number of a session that was evicted since. The
# oldest is from before the first session.
D=$T/d
make_cluster "$D" 1
sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 1000;/' "$D/pvfs.conf"
of_d() { "$PVFS" -c "$D/pvfs.conf" --soft --timeout 10 "$@"; }
evicted() { [ "$(grep -c "no sign of life" "$D/log/mgr.log")" = "$1" ]; }
# clients_die N EVICTED: N clients, and so many have been evicted then
clients_die() {
	local n
	for n in $(seq "$1"); do
		"$BIN/tests/integ/unclosed" "$(mgr_address "$D")" test "$D/cluster.key" "/$2.$n" 1000 <"$T/tree/large" >"$T/written.$2.$n" &
		PIDS+=($!)
		wait_for 20 grep written "$T/written.$2.$n"
		kill -KILL $!
		wait $! 2>/dev/null
	done
	ok "clients die, and are evicted" wait_for 30 evicted "$2"
}
restore() {
	"$PVFS" stop "$D" >/dev/null
	rm -r "$D/mgr"
	cp -a "$1" "$D/mgr"
	start_cluster "$D"
}
cp -a "$D/mgr" "$T/unused"
start_cluster "$D"
ok "a file of another volume" of_d cp --no-progress "$T/tree/large" pvfs:/large
"$PVFS" stop "$D" >/dev/null
cp -a "$D/mgr" "$T/older"
start_cluster "$D"
clients_die 3 3
restore "$T/older"
for n in 1 2 3 4 5; do
	ok "a client of the older store reads ($n)" of_d cp --no-progress pvfs:/large "$T/back.$n"
done
restore "$T/unused"
clients_die 3 6
restore "$T/unused"
for n in 1 2 3 4; do
	ok "a client of the unused store writes ($n)" of_d cp --no-progress "$T/tree/large" "pvfs:/new.$n"
done

# A check does with them what a start does, and says so.
check() { "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --check >"$T/check.out" 2>&1; echo $?; }
is "nothing is found" "$(check)" 0
rm "$C/mgr/db/slot.db"
is "sessions that are missing are a problem of the check" "$(check)" 1
like "... with the table" "$(cat "$T/check.out")" "db/slot.db: is missing"
like "... what was done" "$(cat "$T/check.out")" "they are put aside, and all clients that were there are evicted"
like "... and the sum" "$(tail -n 1 "$T/check.out")" ": 1 problems"
is "... once" "$(check)" 0
flip session.db 1
is "damaged ones are" "$(check)" 1
like "... with the page" "$(cat "$T/check.out")" "session.db: page 1 is damaged"

# A store of the user whom the daemon runs as, and root's hands on it.
others() { find "$@" ! -uid 65534; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
chmod 755 "$T"
cp "$BIN/pvfs-mgr" "$T"		# where that user can reach it
if [ "$(id -u)" = 0 ] && nobody test -x "$T/pvfs-mgr"; then
	chown -R 65534:65534 "$C/mgr" "$C"/*.key
	rm "$C/mgr/db/session.db"
	is "root's check finds something" "$(check)" 1
	is "... and leaves nothing that is root's" "$(others "$C/mgr")" ""
	mkdir -m 700 "$T/there"
	for d in new there; do
		ok "root's salvage into $d" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --salvage "$T/$d"
		is "... makes no store of root's" "$(others "$T/$d")" ""
	done
	mv "$C/mgr" "$T/unsalvaged" && mv "$T/new" "$C/mgr"
	ok "root starts the manager" "$PVFS" start "$C"
	is "... all is there" "$(readable)" 41
	ok "... and something new is" p cp --no-progress -r "$T/tree" pvfs:/tree2
	ok "stop" "$PVFS" stop "$C"
	is "... nothing is root's" "$(others "$C/mgr")" ""
	ok "its own user can check it" nobody "$T/pvfs-mgr" -c "$C/pvfs.conf" --check
	chown 0:0 "$C/mgr/db/inode.db"
	fails "a file of root's is named, with what to do" 1 "db/inode.db: Permission denied: all files .*chown" \
		nobody "$T/pvfs-mgr" -c "$C/pvfs.conf" --check
	mkdir -m 777 "$T/for-all"
	fails "... and is nothing that salvage takes for lost" 1 "db/inode.db: Permission denied: all files .*chown" \
		nobody "$T/pvfs-mgr" -c "$C/pvfs.conf" --salvage "$T/for-all/new"
	ok "... which makes no store then" test ! -e "$T/for-all/new"
	chown 65534:65534 "$C/mgr/db/inode.db"
fi

# What is not the manager's only log, and a table that has lost pages.
mkdir "$T/logs" && mv "$C"/mgr/db/log.* "$T/logs"
fails "a store without its log is refused" 1 "db: the database's log \(log.\*\) is missing: put it back" \
	"$BIN/pvfs-mgr" -c "$C/pvfs.conf" --check
mv "$T/logs"/* "$C/mgr/db"
ok "... until it is back" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" --check
truncate -s -8192 "$C/mgr/db/inode.db"
fails "one with a table that was cut is refused" 1 "db/inode.db: ends after page [0-9]+, 8192 bytes short: .*--salvage" \
	"$BIN/pvfs-mgr" -c "$C/pvfs.conf" --check
finish
