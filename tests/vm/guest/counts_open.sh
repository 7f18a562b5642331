# SPDX-License-Identifier: GPL-2.0-only
#
# Part of counts.sh: opens for reading under a lease, which cost no message from the second on, and what becomes of
# them when others change the file. /mnt/leased is mounted; "another" is $M, a client without leases.
# shellcheck shell=bash disable=SC2154 # S, M are lib.sh's

L=/mnt/leased/opened
O=$M/opened

open_files()
{
	mkdir "$O" "$O/striped" "$O/many" "$O/tree"
	pvfs setstripe -s 0 "$O/striped"
	head -c 10000 /dev/zero >"$O/small"
	head -c 5000 /dev/zero >"$O/striped/small"
	head -c 1048576 /dev/zero >"$O/large"
	cp /bin/true "$O/true"
	for f in removed replaced written mode user held kept restart gone ended; do
		echo "$f" >"$O/$f"
	done
	for ((i = 0; i < 20; i++)); do echo "$i" >"$O/many/$i"; done
	for ((i = 0; i < 40; i++)); do echo "$i" >"$O/tree/$i"; done
	chmod 755 "$O"
}

reads_free()
{
	reset_stats
	cat "$1" >"$tmp/warm"
	[ "$(count_to mgr)" = 0 ]
}

# Reads $1 until that costs nothing: it is open at the mgr, its name and attributes are leased; and what the first
# one left behind is sent.
warm()
{
	eventually 5 reads_free "$1"
}

run_again()
{
	"$L/true"
	"$L/true"
	reset_stats
	"$L/true"
	cat $S/stats
	[ "$(count_to mgr)" = 0 ]
	[ "$(count_to iods)" = 0 ]
	[ "$(awk '$1 == "joined" { print $2 }' $S/stats)" -ge 1 ]
}

# Of the files of the volume; what was removed and is open counts.
files_used()
{
	stat -f -c '%c %d' "$M" | { read -r all left; echo $((all - left)); }
}

removed_by_another()
{
	local before

	warm "$L/removed"
	before=$(files_used)
	rm "$O/removed"
	refuse cat "$L/removed"
	eventually 10 eval '[ "$(files_used)" -lt '"$before"' ]'
}

replaced_by_another()
{
	warm "$L/replaced"
	echo new >"$O/replaced.new"
	mv "$O/replaced.new" "$O/replaced"
	[ "$(cat "$L/replaced")" = new ]
	warm "$L/replaced"
	[ "$(cat "$L/replaced")" = new ]
}

written_by_another()
{
	warm "$L/written"
	echo WRITTEN >"$O/written"
	[ "$(cat "$L/written")" = WRITTEN ]
}

as_nobody()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

closed_to_others()
{
	chmod 600 "$L/user"
	warm "$L/user"
	refuse as_nobody cat "$L/user"
	# Who may read all, by a capability, may: the manager knows of none.
	as_nobody --inh-caps=+dac_read_search --ambient-caps=+dac_read_search cat "$L/user"
	as_nobody --inh-caps=+dac_read_search --ambient-caps=+dac_read_search cat "$O/user"
	chmod 644 "$O/user"
	as_nobody cat "$L/user"
}

mode_by_another()
{
	warm "$L/mode"
	as_nobody cat "$L/mode"
	chmod 600 "$O/mode"
	refuse as_nobody cat "$L/mode"
	cat "$L/mode"
}

# Joined, then removed and replaced by another.
held()
{
	local before

	warm "$L/held"
	exec 5<"$L/held"
	before=$(files_used)
	echo other >"$O/held.new"
	mv "$O/held.new" "$O/held"
	[ "$(cat "$L/held")" = other ]
	[ "$(cat <&5)" = held ]
	[ "$(stat -Lc %h /dev/fd/5)" = 0 ]
	[ "$(cat /dev/fd/5)" = held ]
	exec 5<&-
	eventually 10 eval '[ "$(files_used)" -le '"$before"' ]'
}

# One name is in doubt: a LOOKUP tells of all.
name_in_doubt()
{
	warm "$L/small"
	# It is asked once a second at most.
	sleep 1.1
	touch "$O/other"
	reset_stats
	cat "$L/small" >"$tmp/warm"
	cat $S/stats
	[ "$(count LOOKUP)" = 1 ]
	[ "$(count_to mgr)" = 1 ]
	reset_stats
	cat "$L/small" >"$tmp/warm"
	cat $S/stats
	[ "$(count_to mgr)" = 0 ]
}

# All CLOSEs since the statistics were reset.
closes()
{
	[ "$(count CLOSE)" -ge "$1" ]
}

too_many()
{
	local max=/sys/module/pvfs/parameters/deferred_max old

	old=$(cat $max)
	echo 8 >$max
	for ((i = 0; i < 20; i++)); do warm "$L/many/$i"; done
	for ((i = 12; i < 20; i++)); do cat "$L/many/$i"; done
	reset_stats
	for ((i = 12; i < 20; i++)); do cat "$L/many/$i"; done
	cat $S/stats
	echo "$old" >$max
	[ "$(count_to mgr)" = 0 ]
	cat "$L/many/0"
	[ "$(count CREATE)" = 1 ]
}

# A tree that was read is removed: the last ones go to the mgr by the dozen, and no file stays as one that is open.
own_removed()
{
	local before

	cat "$L"/tree/*
	before=$(files_used)
	# Those of now may be wanted again.
	sleep 1.1
	reset_stats
	rm -r "$L/tree"
	cat $S/stats
	[ "$(count UNLINK)" = 40 ]
	[ "$(count CLOSE)" -ge 1 ]
	[ "$(count CLOSE)" -le 4 ]
	eventually 10 eval '[ "$(files_used)" -le $(('"$before"' - 40)) ]'
}

# The new manager is told of what somebody has open, and of nothing else.
manager_restarted()
{
	warm "$L/restart"
	warm "$L/kept"
	exec 5<"$L/restart"
	"$cluster" kill mgr TERM
	"$cluster" start mgr
	reset_stats
	[ "$(cat <&5)" = restart ]
	stat "$L"
	cat $S/stats
	rm "$O/restart" "$O/kept"
	[ "$(cat /dev/fd/5)" = restart ]
	refuse cat "$L/kept"
	exec 5<&-
}

# Its inode goes while there is no manager: nobody owes the next one a CLOSE, which could end what is opened by then.
evicted_meanwhile()
{
	warm "$L/gone"
	"$cluster" kill mgr TERM
	echo 3 >/proc/sys/vm/drop_caches
	reset_stats
	"$cluster" start mgr
	[ "$(cat "$L/gone")" = gone ]
	exec 5<"$L/gone"
	cat $S/stats
	[ "$(count CLOSE)" = 0 ]
	rm "$O/gone"
	[ "$(cat /dev/fd/5)" = gone ]
	exec 5<&-
}

# Nobody uses it any more: with its lease it ends. For a manager with short leases.
lease_ended()
{
	warm "$L/ended"
	reset_stats
	eventually 20 closes 1
	cat $S/stats
	[ "$(count_to mgr)" -le 4 ]
}

counts_open()
{
	check "leases: files to open" open_files
	check "leases: a small file is opened, read and closed again: 0" cost 0 0 -- "$L" again small 10000
	check "... a striped one: 0" cost 0 0 -- "$L/striped" again small 5000
	check "... 1 MiB: 0" cost 0 0 -- "$L" again large 1048576
	check "... a program is run: 0" run_again
	check "... one that another has removed is gone, and its space free" removed_by_another
	check "... replaced by another it is the new one" replaced_by_another
	check "... written by another it has the new bytes" written_by_another
	check "... who has no leave to read has none" closed_to_others
	check "... nor after another has changed the mode" mode_by_another
	check "... who has it open keeps it when another replaces it" held
	check "... when another has made a name beside it: a LOOKUP" name_in_doubt
	check "... no more than deferred_max are kept" too_many
	check "... a tree that was read is removed: a CLOSE for 32" own_removed
	check "... a new manager knows of what is open, and of no more" manager_restarted
	check "... nor is it told of what was open, and has gone" evicted_meanwhile
}
