#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Thousands of connections that never prove themselves, more than a daemon has descriptors: who has the key is served.
. "$(dirname "$0")/lib.sh"

N=2000
make_cluster "$C" 1
# Fewer descriptors than knock at the door.
if (ulimit -n 600 && exec "$PVFS" start "$C") >"$T/start.out" 2>&1; then
	pass "daemons with 600 descriptors"
else
	fail "daemons with 600 descriptors" "$(cat "$T/start.out")"
fi
make_file "$T/a" 3000000
ok "a client before" p cp "$T/a" pvfs:/a
port=$(mgr_address "$C")
port=${port#*:}
iod=$(sed -n '/^iods/,$s/.*address = "[^"]*:\([0-9]*\)".*/\1/p' "$C/pvfs.conf" | head -n 1)
for at in "$port" "$iod"; do
	"$BIN/tests/integ/knock" "$at" $N >"$T/knock.$at" &
	PIDS+=($!)
	wait_for 10 test -s "$T/knock.$at"
	like "$N connections came" "$(head -n 1 "$T/knock.$at")" '^ready$'
done
SECONDS=0
ok "a new client's stat" p stat pvfs:/a
ok "... its file's bytes" p cp pvfs:/a "$T/b"
ok "... are right" cmp "$T/a" "$T/b"
ok "... and others are written" p cp "$T/a" pvfs:/c
ok "... and listed" p ls pvfs:/
if [ $SECONDS -le 15 ]; then pass "... in bounded time"; else fail "... in bounded time" "$SECONDS s"; fi
for d in mgr iod0; do
	n=$(ls "/proc/$(pid_of $d)/fd" | wc -l)
	if [ "$n" -lt 600 ]; then pass "$d has descriptors left ($n)"; else fail "$d has descriptors left" "$n"; fi
done
kill "${PIDS[@]}"
wait "${PIDS[@]}"
for at in "$port" "$iod"; do
	like "the crowd at $at was sent away, and came again" "$(tail -n 1 "$T/knock.$at")" '^[0-9]{4,}$'
done
PIDS=()
like "the log says so" "$(grep -c 'have not proved themselves' "$C"/log/mgr.log)" '^[1-9]'
ok "a client after" p stat pvfs:/c
finish
