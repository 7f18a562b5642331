# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of clients that are cut off from the mgr for longer than their leases, and that it gives up on: of what they
# have written behind, and have mapped. Sourced by it, after bad_behind.sh.
# shellcheck shell=bash disable=SC2154

# How many lines of the kernel's log say that
said()
{
	dmesg | grep -c "$1" || true
}

short_leases()
{
	cp $conf "$tmp/conf.long"
	sed -i 's/^mgr: {/&\n\tlease_ms = 3000;/' $conf
	grep -q 'lease_ms = 3000' $conf
	restart_mgr
}

long_leases()
{
	mv "$tmp/conf.long" $conf
	restart_mgr
}

# The mgr has given up on a client with dirty pages, and another has changed the file: nothing of them lands, and all
# who have it open there are told, once. $1: an fsync has begun before it hears of that.
behind_evicted()
{
	local f=striped/evicted there here lost

	there=$(ends_there)
	here=$(ends_here)
	lost=$(said 'written here are lost')
	short_leases
	head -c 8192 /dev/zero | tr '\0' a >"$M/$f"
	sync "$M/$f"
	through_gate $NEVER 1 ask -o nconnect=1
	by_hand
	hand $G/striped "$M/striped" /proc/fs/pvfs/vol-2
	does 'fd = held("evicted", os.O_RDWR); second = os.open(mine + "/evicted", os.O_RDONLY); reset()'
	does 'os.pwrite(fd, b"dirty", 0); os.pwrite(fd, bytes_of(12000), 8192)'
	does 'same(counted("written_behind"), 12005); same(requests().get("WRITE", 0), 0); same(leases("writes"), 1)'
	kill -STOP $gate
	printf other | within 100 dd of="$M/$f" conv=notrunc status=none
	[ "$(ends_there)" -gt "$there" ]
	if [ -n "${1-}" ]; then
		begins 'first = came(fd)'
		# The iods have refused it, and the session is known to be over.
		eventually 30 eval '[ "$(ends_here)" -gt '"$here"' ]'
	fi
	kill -CONT $gate
	eventually 60 eval '[ "$(ends_here)" -gt '"$here"' ]'
	eventually 60 eval '[ "$(said "written here are lost")" -gt '"$lost"' ]'
	[ -n "${1-}" ] || begins 'first = came(fd)'
	did
	does 'same([first] + [came(x) for x in (second, fd, second)], [5, 5, 0, 0])'
	# A RECALL that comes with the rest has it tried: the iods refuse.
	does 'same(done("WRITE"), 0)'
	(printf other; head -c 8187 /dev/zero | tr '\0' a) >"$tmp/want"
	cmp "$tmp/want" "$M/$f"
	does 'same(os.fstat(fd).st_size, 8192)'
	cmp "$tmp/want" $G/$f
	# It can be written to again, and then anew under a lease.
	does 'os.pwrite(fd, b"again", 100); os.fsync(fd)'
	does 'same(read(other + "/evicted")[100:105], b"again")'
	does 'os.close(fd); os.close(second)'
	does 'fd = held("evicted", os.O_WRONLY)'
	does 'os.pwrite(fd, b"behind", 200); same(counted("written_behind"), 6)'
	does 'same(read(other + "/evicted")[200:206], b"behind")'
	hand_ends
	by_itself
	umount $G
	kill $gate
	rm "$M/$f"
	long_leases
}

# Who may only read has mapped a file, and is cut off: what others write then, when his lease has run out, he does not see
# as it was. $1: somebody has it open for writing all the time, so that he was alone with it, and his session has to end.
shown_cut_off()
{
	local f=striped/shown

	short_leases
	head -c 8192 /dev/zero | tr '\0' a >"$M/$f"
	sync "$M/$f"
	[ -z "${1-}" ] || exec 7<>"$M/$f"
	through_gate $NEVER 1 ask -o nconnect=1
	hand $G/striped "$M/striped" /proc/fs/pvfs/vol-2
	does 'import mmap; fd = os.open(mine + "/shown", os.O_RDONLY); m = mmap.mmap(fd, 8192, access=mmap.ACCESS_READ); same(m[:1], b"a")'
	[ -z "${1-}" ] || does 'assert counted("turns") > 0'
	kill -STOP $gate
	if [ -n "${1-}" ]; then
		within 100 bash -c 'printf other >&7'
		exec 7<&-
	else
		printf other | within 100 dd of="$M/$f" conv=notrunc status=none
	fi
	begins 'got = m[:5]'
	kill -CONT $gate
	did
	does 'same((got, m[:5]), (b"other", b"other"))'
	hand_ends
	umount $G
	kill $gate
	rm "$M/$f"
	long_leases
}

# The mgr has given up on the client behind the relay, which knows it.
given_up()
{
	local there here

	there=$(ends_there)
	here=$(ends_here)
	kill -STOP $gate
	eventually 60 eval '[ "$(ends_there)" -gt '"$there"' ]'
	kill -CONT $gate
	eventually 60 eval '[ "$(ends_here)" -gt '"$here"' ]'
	within 60 stat $G/tree
}

# What the client has from sessions that are over it does not show for what it has from this one: a lease stands over a
# restart of the mgr.
behind_third_session()
{
	local f=striped/third

	short_leases
	head -c 8192 /dev/zero >"$M/$f"
	sync "$M/$f"
	through_gate $NEVER 1 ask -o nconnect=1
	by_hand
	hand $G/striped "$M/striped" /proc/fs/pvfs/vol-2
	does 'fd = os.open(mine + "/third", os.O_WRONLY)'
	given_up
	# The open was told in the second session.
	does 'os.pwrite(fd, b"second", 0); os.fsync(fd); os.close(fd)'
	given_up
	does 'fd = eventually(lambda: (lambda x: x if leases("writes") else os.close(x) or False)(os.open(mine + "/third", os.O_WRONLY)))'
	does 'reset(); os.pwrite(fd, b"third", 100); same(counted("written_behind"), 5)'
	restart_mgr
	within 60 stat $G/tree
	# It is usable without having been given up, which a REPORT would tell, and taken anew.
	does 'eventually(lambda: (os.pwrite(fd, b"third", 100), counted("written_behind") >= 10)[-1])'
	does 'same(requests().get("REPORT", 0), 0)'
	does 'same(read(other + "/third")[:105], b"second" + bytes(94) + b"third")'
	hand_ends
	by_itself
	umount $G
	kill $gate
	rm "$M/$f"
	long_leases
}

# As behind_evicted(): what was kept of a head does not land in another session.
behind_head_evicted()
{
	local f=heads/evicted there here lost

	mkdir -p "$M/heads"
	there=$(ends_there)
	here=$(ends_here)
	lost=$(said 'written here are lost')
	short_leases
	head -c 3000 /dev/zero | tr '\0' a >"$M/$f"
	through_gate $NEVER 1 ask -o nconnect=1
	by_hand
	hand $G/heads "$M/heads" /proc/fs/pvfs/vol-2
	does 'calm(); fd = os.open(mine + "/evicted", os.O_RDWR); second = os.open(mine + "/evicted", os.O_RDONLY)'
	does 'eventually(lambda: (os.pwrite(fd, b"aa", 0), leases("writes") == 1)[-1]); reset()'
	does 'os.pwrite(fd, b"dirty", 0); os.pwrite(fd, bytes_of(5000), 3000)'
	does 'same(counted("written_behind"), 5005); same(requests().get("HEAD_WRITE", 0), 0)'
	kill -STOP $gate
	printf other | within 100 dd of="$M/$f" conv=notrunc status=none
	[ "$(ends_there)" -gt "$there" ]
	kill -CONT $gate
	eventually 60 eval '[ "$(ends_here)" -gt '"$here"' ]'
	eventually 60 eval '[ "$(said "written here are lost")" -gt '"$lost"' ]'
	does 'same([came(x) for x in (fd, second, fd, second)], [5, 5, 0, 0])'
	does 'same(done("HEAD_WRITE"), 0)'
	(printf other; head -c 2995 /dev/zero | tr '\0' a) >"$tmp/want"
	cmp "$tmp/want" "$M/$f"
	does 'same(os.fstat(fd).st_size, 3000)'
	cmp "$tmp/want" $G/$f
	does 'os.pwrite(fd, b"again", 100); os.fsync(fd)'
	does 'same(read(other + "/evicted")[100:105], b"again")'
	hand_ends
	by_itself
	umount $G
	kill $gate
	rm -r "$M/heads"
	long_leases
}
