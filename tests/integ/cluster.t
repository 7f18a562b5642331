#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A one-machine cluster: made, started, looked at, stopped; and what must not happen to it.
. "$(dirname "$0")/lib.sh"

CLUSTERS+=("$C")
out=$("$PVFS" mkfs --dir "$C" --iods 3 --port 0 --name vol1 2>/dev/null)
is "mkfs --dir" "$?" 0
like "it says what comes next" "$out" "pvfs start"
# Of those a daemon that is away for a moment may lose its own to a connection.
is "its ports are none that the kernel gives away" "$(sed -n 's/.*address = ".*:\([0-9]*\)".*/\1/p' "$C/pvfs.conf" |
	awk -v low="$(cut -f 1 /proc/sys/net/ipv4/ip_local_port_range)" '$1 >= 10000 && $1 < low' | wc -l)" 4
is "keys are for their owner only" "$(stat -c %a "$C/cluster.key" "$C/server.key" | tr '\n' ' ')" "600 600 "
is "the two keys differ" "$(cmp -s "$C/cluster.key" "$C/server.key"; echo $?)" 1
like "a key is 64 hexadecimal digits" "$(cat "$C/cluster.key")" '^[0-9a-f]{64}$'
[ -e /etc/pvfs/pvfs.conf ] || fails "mkfs of nothing says what there is" 2 "--dir DIR .* -c FILE" "$PVFS" mkfs
fails "a cluster that is there already is refused" 1 "already" "$PVFS" mkfs --dir "$C" --port 0
fails "a store that is there already is refused" 1 "is a PVFS store already" "$PVFS" mkfs -c "$C/pvfs.conf"

ok "start" "$PVFS" start "$C"
is "process ids are noted" "$(ls "$C/run" | grep -c pid)" 4
out=$("$PVFS" start "$C")
like "start again finds them running" "$out" "0 daemons started, 4 ran already"
# Who has been killed and is not gone does not run any more.
killed=0
for i in {1..10}; do
	kill -KILL $(cat "$C"/run/*.pid)
	[[ $("$PVFS" start "$C") = *"4 daemons started."* ]] && killed=$((killed + 1))
done
is "start right after kill -9 starts all, each time" $killed 10
ok "status" p status
is "status --json lists all" "$(p status --json | json '{servers} && scalar @{$j->{servers}}')" 4
is "... each is up" "$(p status --json | perl -MJSON::PP -e 'local $/; print join " ", map { $_->{state} } @{decode_json(<STDIN>)->{servers}}')" \
	"up up up up"
ok "status by -m and -k" "$PVFS" status -m "$(mgr_address "$C")/vol1" -k "$C/cluster.key"
ok "ping" p ping -n 3
is "ping --json counts" "$(p ping -n 3 --json | json '{pings}[1]{count}')" 3
ok "tune" p tune -n 2
like "... ends with a limit" "$(p tune -n 2 | tail -n 1)" "^stuff_max = [0-9]+k$"
is "... or with the medians of seven sizes" "$(p tune -n 2 --json | json '{sizes} && scalar @{$j->{sizes}}')" 7
is "... and leaves nothing behind" "$(p ls -a / | grep tune)" ""
for sig in INT TERM; do
	"$PVFS" -c "$C/pvfs.conf" tune -n 1000 >/dev/null &
	pid=$!
	PIDS+=($pid)
	ok "tune measures" wait_for 30 bash -c "'$PVFS' -c '$C/pvfs.conf' ls 'pvfs:/.pvfs-tune.$pid/stuffed' | grep -q ."
	kill -$sig $pid
	wait $pid
	is "... SIG$sig ends it" $? 130
	is "... and nothing is left behind" "$(p ls -a / | grep tune)" ""
done
fails "tune where there is no directory" 1 "/nowhere/.*No such file" p tune /nowhere
ok "df" p df
is "df knows the daemons" "$(p df --json | json '{volumes}[0]{iods_up}')" 3
size=$(($(stat -f -c '%b * %S' "$C")))
is "... and counts their disk once" "$(p df --json | json '{volumes}[0]{size}')" "$size"
is "df --iods has each" "$(p df --iods --json | perl -MJSON::PP -e 'local $/; print join " ", map { $_->{size} } @{decode_json(<STDIN>)->{iods}}')" \
	"$size $size $size"
is "... and whose disk it shares" "$(p df --iods --json | perl -MJSON::PP -e 'local $/; print join " ", map { $_->{disk_of} // "-" } @{decode_json(<STDIN>)->{iods}}')" \
	"- iod0 iod0"
is "status --json has their space" "$(p status --json | json '{servers}[2]{stats}{iod}{space}{bytes}')" "$size"

# Logs: a time in each line, who a session is, and a new file after SIGHUP.
for d in mgr iod0; do
	like "$d's lines have a time" "$(head -n 1 "$C/log/$d.log")" '^20[0-9-]{8} [0-9:]{8}\.[0-9]{3} pvfs-'"${d%0}"'\['
	mv "$C/log/$d.log" "$C/log/$d.old"
	kill -HUP "$(pid_of $d)"
	ok "$d makes a new log when it gets a SIGHUP" wait_for 10 test -e "$C/log/$d.log"
done
p ls >/dev/null
like "the manager's log says who a session is" "$(wait_for 5 grep session "$C/log/mgr.log"; cat "$C/log/mgr.log")" \
	" session [0-9]+: $(uname -n), $(id -un), pvfs\[[0-9]+\] \(127.0.0.1:[0-9]+\)"
is "... in the new file only" "$(grep -c ", pvfs\[[0-9]*\] (127.0.0.1:[0-9]*) is leaving" "$C/log/mgr.log")" 1

echo hello >"$T/hello"
ok "a file goes in" p cp "$T/hello" pvfs:/hello
fails "a store that is in use is refused even with --force" 1 "in use" "$PVFS" mkfs -c "$C/pvfs.conf" --force

# Who has a file open, and whose leases are on it.
"$BIN/tests/integ/unclosed" "$(mgr_address "$C")" vol1 "$C/cluster.key" /held 6 <"$T/hello" >"$T/held.out" &
holder=$!
PIDS+=($holder)
wait_for 10 grep -q written "$T/held.out"
held() { "$PVFS" -c "$C/pvfs.conf" leases --json pvfs:/held | json "{holders}[0]{$1}"; }
is "leases says who has a file open for writing" "$(held writers) $(held readers) $(held lease)" "1 0 -"
like "... by host, user, program and address" "$(held host)" "^$(uname -n), $(id -un), unclosed\[$holder\] \(127.0.0.1:[0-9]+\)$"
like "... in a table" "$(p leases pvfs:/held | tr '\n' ';')" "^NAME +SESSION +LEASE +SECONDS +READING +WRITING +TURN +RECALL +HOST *;pvfs:/held +$(held session) - +- +0 +1 +in +- "
is "... each once" "$(p leases --json pvfs:/held /held | json '{holders} && scalar @{$j->{holders}}')" 2
like "... it says that nobody has the root" "$(p leases pvfs:/ 2>&1)" "^pvfs:/: nobody has a lease on it"
is "... which is no error" "$(p leases --json pvfs:/ 2>/dev/null | json '{holders} && scalar @{$j->{holders}}') $?" "0 0"
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$T"
	install -m 600 -o 65534 -g 65534 "$C/cluster.key" "$T/nobody.key"
	like "... and to others than root no hosts" "$(setpriv --reuid 65534 --regid 65534 --clear-groups "$PVFS" leases --json \
		-m "$(mgr_address "$C")/vol1" -k "$T/nobody.key" pvfs:/held | tr -d ' \n')" '"writers":1,"turn":"in","recall":"-","host":""'
fi
kill -KILL $holder
wait $holder 2>/dev/null
fails "leases of nothing" 2 "of what" p leases
fails "leases -n x" 2 "not a number" p leases -n x pvfs:/held
fails "leases of what is not there" 1 "/none: No such file" p leases pvfs:/none
fails "leases below a file" 1 "Not a directory" p leases pvfs:/hello/x

ok "stop one daemon" "$PVFS" stop "$C" iod1
ok "the manager's log says that it went away" wait_for 10 grep -q "iod 1 (127.0.0.1:.*) does not answer" "$C/log/mgr.log"
like "... and status what the manager sees" "$(p status --timeout 2 --json | json '{servers}[2]{manager_sees}')" "^away for the manager, [0-9]+ s"
fails "status tells that one is down" 1 "" p status --timeout 2
is "... which" "$(p status --timeout 2 --json | perl -MJSON::PP -e 'local $/; print join " ", map { $_->{server} } grep { $_->{state} ne "up" } @{decode_json(<STDIN>)->{servers}}')" iod1
ok "start brings it back" "$PVFS" start "$C"
ok "all are up again" p status
ok "the manager's log says that it is back" wait_for 10 grep -q "iod 1 (127.0.0.1:.*) answers again" "$C/log/mgr.log"
is "... each in one line" "$(grep -c "iod 1 (" "$C/log/mgr.log")" 2
out=$("$PVFS" stop "$C")
is "stop" "$?" 0
like "... all" "$out" "4 daemons stopped"
is "no process ids are left" "$(ls "$C/run" | grep -c 'pid$')" 0
ok "stop again is fine" "$PVFS" stop "$C"

# A stale file with the id of a process that is something else: it must live.
sleep 300 &
other=$!
PIDS+=($other)
echo $other >"$C/run/mgr.pid"
ok "stop with a stale process id" "$PVFS" stop "$C"
ok "... did no harm to the stranger" kill -0 $other
echo $other >"$C/run/iod0.pid"
echo garbage >"$C/run/iod1.pid"
ok "start with stale process ids" "$PVFS" start "$C"
ok "... the stranger lives" kill -0 $other
ok "what was stored is still there" p cp pvfs:/hello "$T/hello2"
ok "... the same" cmp "$T/hello" "$T/hello2"

# Whose number is lost is found by the lock of its store.
lost=$(pid_of mgr)
echo garbage >"$C/run/mgr.pid"
echo $other >"$C/run/iod1.pid"
like "start finds who runs by the store" "$("$PVFS" start "$C")" "0 daemons started, 4 ran already"
like "... so does stop" "$("$PVFS" stop "$C")" "4 daemons stopped"
is "... the manager has ended" "$(grep -qs '^State:.[^Z]' "/proc/$lost/status" || echo ended)" ended
ok "... and the stranger lives" kill -0 $other
ln -s pvfs.conf "$C/other.conf"
"$BIN/pvfs-mgr" -c "$C/other.conf" -l "$T/by-hand.log" &
PIDS+=($!)
wait_for 10 grep -q "serving on" "$T/by-hand.log"
fails "who was started by hand is not stopped" 1 "mgr: runs as process $!, .*kill $!" "$PVFS" stop "$C"
kill $!
wait $!
ok "start" "$PVFS" start "$C"

# A daemon that was killed is started again.
kill -KILL "$(pid_of iod2)"
wait_for 10 bash -c "! kill -0 $(pid_of iod2) || grep -q '^State:.*Z' /proc/$(pid_of iod2)/status"
out=$("$PVFS" start "$C")
like "a killed daemon is started again" "$out" "1 daemons started, 3 ran already"

# One that can't start: its message is shown, the others are stopped.
D=$T/d
make_cluster "$D" 2
sed -i "s/^\(\t{ address = \"127.0.0.1:\)[0-9]*\(\"; store = \"iod1\".*\)/\1$(mgr_address "$C" | cut -d: -f2)\2/" "$D/pvfs.conf"
fails "a daemon whose port is taken" 1 "iod1: did not start.*|in use" "$PVFS" start "$D" --wait 20
is "... leaves none running" "$(ls "$D/run" | grep -c 'pid$')" 0

# --force moves aside, deletes nothing.
ok "stop" "$PVFS" stop "$C"
before=$(find "$C" -name hello -o -name '*.db' -o -name 'log.*' | wc -l)
ok "mkfs --force" "$PVFS" mkfs -c "$C/pvfs.conf" --force
is "... made the old stores aside" "$(ls -d "$C"/mgr.old-* "$C"/iod?.old-* | wc -l)" 4
ok "start" "$PVFS" start "$C"
fails "... and the volume is empty" 1 "No such file" p stat pvfs:/hello

fails "start of nothing" 1 "give the directory of a cluster" "$PVFS" start "$T/nothing/"
# What mkfs can't finish is in the way of nobody.
bad_mkfs() {	# STATUS WHAT-IT-SAYS OPTIONS...
	fails "mkfs ${*:3}" $1 "$2" "$PVFS" mkfs --dir "$T/bad/new" --port 0 "${@:3}"
	is "... makes nothing" "$(ls "$T" | grep -c '^bad$')" 0
}
bad_mkfs 2 "can't be a volume's name" --name a/b
bad_mkfs 2 "stripe-count 9: there are 4" --stripe-count 9
bad_mkfs 2 "--host ''" --host ""
bad_mkfs 1 "--host nosuch.invalid: .*give an address" --host nosuch.invalid
bad_mkfs 1 "192.0.2.1: no free ports" --host 192.0.2.1
: >"$T/file"
fails "mkfs where a file is" 1 "$T/file: can't be made: Not a directory" "$PVFS" mkfs --dir "$T/file" --port 0
mkdir -p "$T/half/iod1"
: >"$T/half/iod1/mine"
fails "mkfs that fails half way" 1 "removed again" "$PVFS" mkfs --dir "$T/half" --port 0
is "... leaves what was there" "$(cd "$T/half" && find . | sort | tr '\n' ' ')" ". ./iod1 ./iod1/mine "
rm "$T/half/iod1/mine"
ok "... and is done when the cause is gone" "$PVFS" mkfs --dir "$T/half" --port 0
for c in status ping df; do
	fails "$c with an argument" 2 "'x'\? there are no arguments" p $c x
done
for c in start stop; do
	fails "$c of a daemon that there is not" 2 "'iod7' is neither" "$PVFS" $c "$C" mgr iod7
done
is "... leaves the others alone" "$(ls "$C/run" | grep -c 'pid$')" 4
fails "help of two" 2 "one subcommand" "$PVFS" help ls cp
fails "an unknown subcommand" 2 "pvfs help" "$PVFS" frobnicate
fails "an unknown option" 2 "unrecognized|invalid" "$PVFS" ls --frobnicate
# The same over IPv6. A machine that has it turned off is told so by mkfs or start.
if [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6; then
	CLUSTERS+=("$T/six")
	"$PVFS" mkfs --dir "$T/six" --iods 2 --port 0 --name six --host ::1 >/dev/null 2>&1
	ok "start over IPv6" "$PVFS" start "$T/six"
	like "the manager's address is in brackets" "$(mgr_address "$T/six")" '^\[::1\]:[0-9]+$'
	make_file "$T/big6" 3000000
	ok "a file goes there" "$PVFS" cp --no-progress -c "$T/six/pvfs.conf" "$T/big6" pvfs:/big6
	ok "and comes back, by the address alone" "$PVFS" cp --no-progress -m "$(mgr_address "$T/six")/six" \
		-k "$T/six/cluster.key" pvfs:/big6 "$T/back6"
	ok "... the same" cmp "$T/big6" "$T/back6"
else
	pass "IPv6 # SKIP: lo has no ::1 on this machine, so nothing was tried over IPv6"
fi
for c in mkfs start stop status ping df cp ls stat rm mkdir setstripe getstripe leases tune; do
	ok "pvfs $c --help" "$PVFS" $c --help
done
# The same of all programs; of mount.pvfs 1 is mount(8)'s own for a wrong command line.
for x in pvfs pvfs-mgr pvfs-iod pvfsd mount.pvfs; do
	for o in -h --help; do
		like "$x $o" "$("$BIN/$x" $o)" "^Usage: $x"
	done
	for o in -V --version; do
		like "$x $o" "$("$BIN/$x" $o)" "^$x [0-9][^ ]* \(protocol [0-9]+\)$"
	done
	fails "$x without arguments" "$([ $x = mount.pvfs ] && echo 1 || echo 2)" "Usage|--help" "$BIN/$x"
	fails "$x --frobnicate" "$([ $x = mount.pvfs ] && echo 1 || echo 2)" "frobnicate" "$BIN/$x" --frobnicate
done
for x in "pvfs-mgr" "pvfs-iod -n 0" "pvfs"; do
	fails "$x -v -l FILE, and a configuration that is not there" 1 "" "$BIN/"$x -v -l "$T/l.log" -c "$T/none.conf" \
		$([ "$x" = pvfs ] && echo ls)
done
fails "an instance names its configuration" 1 "/etc/pvfs/no-such.conf" "$BIN/pvfs-iod" --instance no-such-3
fails "an instance without an index" 2 "NAME-INDEX" "$BIN/pvfs-iod" --instance nosuch

# A volume is of who makes it; what root makes is of who has the directory.
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$T"
	mkdir "$T/own" "$T/given"
	chown 65534:65534 "$T/own" "$T/given"
	CLUSTERS+=("$T/own/c")
	as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$PVFS" "$@"; }
	ok "mkfs by a user" as_nobody mkfs --dir "$T/own/c" --iods 2 --port 0 --name own
	ok "... start" as_nobody start "$T/own/c"
	ok "... who may write there" as_nobody -c "$T/own/c/pvfs.conf" cp "$T/hello" pvfs:/mine
	like "... as the owner of the root" "$(as_nobody -c "$T/own/c/pvfs.conf" stat --json pvfs:/ | tr -d ' \n')" '"uid":65534,"gid":65534'
	as_nobody stop "$T/own/c" >/dev/null
	cp "$T/own/c/pvfs.conf" "$T/given/"
	ok "mkfs by root for a user" "$PVFS" mkfs -c "$T/given/pvfs.conf"
	is "... all is the user's" "$(find "$T/given" -mindepth 1 ! -user 65534 ! -name pvfs.conf; ls "$T/given" | tr '\n' ' ')" \
		"cluster.key iod0 iod1 mgr pvfs.conf server.key "
fi
finish
