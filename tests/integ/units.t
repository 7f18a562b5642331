#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The units for systemd: sound, as tight as they say, and what `make install` puts beside them.
. "$(dirname "$0")/lib.sh"

command -v systemd-analyze >/dev/null || skip_all "systemd-analyze is not installed (make deps)"

mkdir "$T/units"
for u in mgr iod; do
	unit="$ROOT/dist/pvfs-$u@.service"
	ok "pvfs-$u@: exposure below 2.0" systemd-analyze security --offline=true --threshold=19 --no-pager "$unit"
	# The programs are not installed where the unit has them.
	sed "s|=/usr/sbin/|=$BIN/|" "$unit" >"$T/units/pvfs-$u@.service"
	ok "pvfs-$u@: is sound" systemd-analyze verify --man=no --recursive-errors=no "$T/units/pvfs-$u@.service"
	is "... and nothing is said of it" "$(systemd-analyze verify --man=no --recursive-errors=no "$T/units/pvfs-$u@.service" 2>&1)" ""
	is "... it is not root's" "$(sed -n 's/^User=//p' "$unit")" pvfs
done

# What the programs are told there they understand.
fails "the manager's command line" 1 "/nosuch.conf" "$BIN/"$(sed -n 's|^ExecStart=/usr/sbin/||p' "$ROOT/dist/pvfs-mgr@.service" | sed "s|%i|nosuch|; s|/etc/pvfs|$T|")
fails "the I/O daemon's" 1 "/etc/pvfs/nosuch.conf" "$BIN/"$(sed -n 's|^ExecStart=/usr/sbin/||p' "$ROOT/dist/pvfs-iod@.service" | sed "s|%i|nosuch-0|")

if [ "$(id -u)" = 0 ]; then
	mkdir -p "$T/root/etc/pvfs"
	touch "$T/root/etc/pvfs/cluster.key"
	ok "sysusers makes the user" systemd-sysusers --root="$T/root" "$ROOT/dist/pvfs.sysusers"
	like "... without a shell" "$(grep ^pvfs: "$T/root/etc/passwd")" ":/var/lib/pvfs:.*nologin"
	id=$(cut -d: -f 3 < <(grep ^pvfs: "$T/root/etc/passwd"))
	ok "tmpfiles makes the directories" systemd-tmpfiles --root="$T/root" --create "$ROOT/dist/pvfs.tmpfiles"
	is "... whose they are" "$(stat -c '%u %a' "$T/root/var/lib/pvfs" "$T/root/etc/pvfs/cluster.key" "$T/root/etc/pvfs")" "$id 750
$id 600
0 755"
fi
finish
