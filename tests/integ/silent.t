#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# An I/O daemon that is there and silent: whoever needs it waits, and nobody else does. With two threads the manager has
# fewer than there are who wait. And a manager that starts before an I/O daemon's name has an address.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pvfsd.sh"

make_cluster "$C" 3
sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 1500;\n\tthreads = 2;/' "$C/pvfs.conf"
start_cluster "$C"
mount_both allow_other
mkdir "$T/in" "$T/m1/small"
for i in {1..20}; do make_file "$T/in/$i" 300000; done
cp "$T/in/"* "$T/m1/"
for i in {1..10}; do echo "content of $i" >"$T/m1/small/$i"; done
sync -f "$T/m1"

freeze "$(pid_of iod1)"
waiting=()
for i in {1..20}; do
	truncate -s 70000 "$T/m1/$i" &
	waiting+=($!)
done
for i in {1..6}; do
	df "$T/m1" >/dev/null &
	waiting+=($!)
done
for i in {1..10}; do
	truncate -s 200000 "$T/m1/small/$i" &
	waiting+=($!)
done
# Meanwhile, for some leases, with the other mount. A busy machine is slow, too; but the daemon is silent for longer.
slowest=0
end=$((SECONDS + 4))
rounds=0
while [ $SECONDS -le $end ]; do
	begin=${EPOCHREALTIME/./}
	mkdir "$T/m2/d$rounds" && echo x >"$T/m2/d$rounds/f" && rm "$T/m2/d$rounds/f" && rmdir "$T/m2/d$rounds" || break
	took=$(((${EPOCHREALTIME/./} - begin) / 1000))
	[ $took -le $slowest ] || slowest=$took
	rounds=$((rounds + 1))
done
if [ $rounds -ge 3 ] && [ $slowest -lt 3000 ]; then
	pass "names are made and removed while 36 wait for a silent daemon"
else
	fail "names are made and removed while 36 wait for a silent daemon" "$rounds rounds, the slowest took $slowest ms"
fi
is "who waits still waits" "$(for p in "${waiting[@]:0:20}"; do kill -0 "$p" 2>/dev/null && echo; done | wc -l)" 20
kill -CONT "$(pid_of iod1)"
failed=0
for p in "${waiting[@]}"; do wait "$p" || failed=$((failed + 1)); done
is "... until it goes on, and all succeed" $failed 0
is "... as they should" "$(stat -c %s "$T"/m2/{1..20} "$T"/m2/small/{1..10} | sort | uniq -c | tr -s ' \n' ' ')" " 10 200000 20 70000 "
ok "... with the right bytes" bash -c "for i in {1..20}; do cmp '$T/m2/'\$i <(head -c 70000 '$T/in/'\$i) || exit; done"
is "nobody was evicted" "$(grep -c 'no sign of life' "$C/log/mgr.log")" 0
unmount_both

# A manager that was killed beside the writer of a file finds out how long that is, before anybody asks.
make_file "$T/big" 2000000
killed_writer "$T/big" lost 1000000
"$PVFS" stop "$C" mgr --kill >/dev/null
start_cluster "$C" mgr
uncertain() { "$PVFS" -c "$C/pvfs.conf" status --json --timeout 2 | json "{servers}[0]{stats}{mgr}{uncertain}{$1}"; }
settled() { [ "$(uncertain left)" = 0 ] && [ "$(uncertain walk)" != 1 ] && [ "$(uncertain settled)" -ge 1 ]; }
ok "after a crash of the manager it asks for the sizes that its writers have not told" wait_for 20 settled
freeze "$(pid_of iod1)"
like "... so that nobody waits for a silent daemon" "$("$PVFS" -c "$C/pvfs.conf" --soft --timeout 2 ls -l pvfs:/ 2>&1)" " 1000000 .* lost"
echo precious >"$T/kept"
iod1=$(sed -n '/"iod1"/s/.*address = "\([^"]*\)".*/\1/p' "$C/pvfs.conf")
fails "what can't be read" 1 "/lost: Connection timed out" "$PVFS" -c "$C/pvfs.conf" --soft --timeout 2 cp pvfs:/lost "$T/kept"
fails "... and who does not answer" 1 "pvfs cp: does not answer: .*$iod1" "$PVFS" -c "$C/pvfs.conf" --soft --timeout 2 cp pvfs:/lost "$T/kept"
is "... does not empty what it would replace" "$(cat "$T/kept")" precious
kill -CONT "$(pid_of iod1)"
ok "... with the right size and bytes" bash -c "
	'$PVFS' -c '$C/pvfs.conf' --timeout 20 cp pvfs:/lost '$T/lost' && cmp '$T/lost' <(head -c 1000000 '$T/big')"

# The manager alone has a table of hosts that does not name the second daemon yet.
D=$T/d
make_cluster "$D" 2
sed -i '/iod1/s/address = "127.0.0.1:\([0-9]*\)";/address = "iod1.invalid:\1"; listen = "127.0.0.1:\1";/' "$D/pvfs.conf"
cp /etc/hosts "$T/hosts"
ok "a manager starts when a daemon's name has no address" \
	unshare -m sh -c "mount --bind '$T/hosts' /etc/hosts && exec '$PVFS' start '$D' mgr"
ok "... the daemons start" "$PVFS" start "$D" iod0 iod1
like "... it says so" "$(cat "$D/log/mgr.log")" "iod 1: iod1.invalid:[0-9]*: .*; asking again"
fails "... and opens no session" 1 "127.0.0.1:[0-9]+: opens no session yet: .*its log says what" "$PVFS" -c "$D/pvfs.conf" --soft --timeout 2 ls
echo "127.0.0.1 iod1.invalid" >>"$T/hosts"
ok "... until there is one" wait_for 10 "$PVFS" -c "$D/pvfs.conf" --soft --timeout 2 ls
ok "... then it serves" "$PVFS" -c "$D/pvfs.conf" --timeout 20 cp "$T/in/1" pvfs:/f
ok "... with all daemons" bash -c "'$PVFS' -c '$D/pvfs.conf' --timeout 20 cp pvfs:/f '$T/f' && cmp '$T/in/1' '$T/f'"
finish
