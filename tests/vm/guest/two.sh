#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the first of two guests (two.t on the host), which has the servers: what
# a client here did, one in the other guest sees at once, and the other way round.
#
#	two.sh SEED
#
# shellcheck disable=SC2016,SC2034,SC2317 # what the guests get is expanded there; functions are called by check
. "${0%/*}/lib.sh"

seed=$1
rnd=$build/tests/random
far=10.0.0.2:7200
conf=/run/pvfs-cluster/volume/pvfs.conf
two=$top/tests/vm/guest/two.py
plan 36

# ------------------------------------------------------------------ here and there

# Both run the words as the shell does, in $dir, to the first command that fails.
# Starting a program is dear in a guest, so here there is none to be started.
dir=/
here()
(
	set -e
	cd "$dir"
	eval "$*"
)

there()
{
	"$rnd/far" run $far "$there_has; set -e; cd $dir; $*"
}

# Waits until there is a file of that name.
await()
{
	local end=$((SECONDS + 60))

	until [ -e "$1" ]; do
		[ $SECONDS -lt $end ] || return
		sleep 0.05
	done
}
there_has="two=$two; $(declare -f await)"

# each FUNCTION: from here to there, then from there to here; a new directory each.
# Directories are another's each round.
round=
each()
{
	local f=$1

	for side in 'here there' 'there here'; do
		echo "$side"
		dir=$M/$f-${side% *}$round
		mkdir "$dir"
		# shellcheck disable=SC2086 # two words
		$f $side
	done
}

# same A B COMMAND: it prints the same on both sides. Then that is in $said.
same()
{
	local other

	said=$($1 "$3")
	other=$($2 "$3")
	[ "$said" = "$other" ] || { echo "$1: $said, $2: $other"; return 1; }
}

# ------------------------------------------------------------------ the second client

join_there()
{
	local ko=$build/kmod

	there 'uname -r; ip addr show eth0'
	there "install -d -m 700 /etc/pvfs; umask 077; echo $(cat /run/pvfs-cluster/volume/cluster.key) >/etc/pvfs/cluster.key"
	there "ln -s $build/mount.pvfs /sbin/mount.pvfs"
	there "ko=$ko/\$(uname -r)/pvfs.ko
		for dep in \$(modinfo -F depends \$ko | tr , ' '); do modprobe \$dep; done
		insmod \$ko
		mkdir -p $M"
	mount_there
	here "grep ' $M ' /proc/mounts"
	there "grep ' $M ' /proc/mounts"
}

mount_there()
{
	there "mount -t pvfs ${1:+-o $1} $("$cluster" device) $M"
}

# ------------------------------------------------------------------ checks: A does, B sees

overwritten()
{
	local i

	$1 'seq 30000 >f'
	same "$1" "$2" 'md5sum <f'
	for i in 1 2 3; do
		$1 "printf 'piece $i' | dd of=f bs=1 seek=$((i * 50000)) conv=notrunc status=none"
		[ "$($2 "dd if=f bs=1 skip=$((i * 50000)) count=7 status=none")" = "piece $i" ]
		$2 "printf 'answer $i' | dd of=f bs=1 seek=$((i * 50000)) conv=notrunc status=none"
		[ "$($1 "dd if=f bs=1 skip=$((i * 50000)) count=8 status=none")" = "answer $i" ]
	done
	same "$1" "$2" 'md5sum <f'
}

appended()
{
	local i want=

	for i in 1 2 3 4; do
		$1 "echo $1 $i >>f"
		$2 "echo $2 $i >>f"
		want+="$1 $i"$'\n'"$2 $i"$'\n'
	done
	same "$1" "$2" 'cat f'
	[ "$said" = "${want%$'\n'}" ]
}

# At once, and whole.
appended_together()
{
	$1 'for i in {1..100}; do echo $i a >>f; done' &
	$2 'for i in {1..100}; do echo $i b >>f; done'
	wait $!
	same "$1" "$2" 'sort -n f | md5sum'
	[ "${said%% *}" = "$(for i in {1..100}; do echo "$i a"; echo "$i b"; done | md5sum | cut -d' ' -f1)" ]
}

sizes()
{
	local n

	$1 ': >f'
	for n in 1 70000 3000000 65536 10 0 5; do
		$1 "truncate -s $n f"
		[ "$($2 'stat -c %s f; wc -c <f')" = $n$'\n'$n ]
	done
	$1 'echo more >>f'
	[ "$($2 'stat -c %s f; tail -c 5 f')" = $'10\nmore' ]
	$2 'dd if=/dev/zero of=f bs=1 count=1 seek=999999 status=none'
	[ "$($1 'stat -c %s f')" = 1000000 ]
}

# Names that were looked for in vain, and are there then.
made()
{
	$2 'for n in file dir link other; do [ ! -e $n ]; done'
	$1 'echo text >file; mkdir dir; ln -s file link; ln file other'
	[ "$($2 'cat file link other; stat -c %h file; stat -c %F dir')" = $'text\ntext\ntext\n2\ndirectory' ]
	same "$1" "$2" 'stat -c "%i %n" *'
	same "$1" "$2" 'ls -A'
	[ "$said" = $'dir\nfile\nlink\nother' ]
}

removed()
{
	$1 'mkdir dir; touch dir/a b c'
	$2 'ls . dir; stat dir/a b c'
	$1 'rm dir/a b'
	$2 '[ ! -e dir/a ]; [ ! -e b ]; rmdir dir; rm c'
	$1 '[ ! -e dir ]; [ ! -e c ]; mkdir c; touch dir'
	[ "$($2 'stat -c %F c dir')" = $'directory\nregular empty file' ]
	$1 'rm dir; rmdir c'
	[ -z "$($2 'ls -A')" ]
}

renamed()
{
	$1 'echo a >a; echo b >b; mkdir d'
	$2 'cat a b; [ ! -e c ]; [ ! -e d/a ]'
	$1 'mv a c'
	[ "$($2 '[ ! -e a ]; cat c')" = a ]
	$1 'mv c b'
	[ "$($2 '[ ! -e c ]; cat b')" = a ]
	$2 'mv b d/a'
	[ "$($1 '[ ! -e b ]; cat d/a')" = a ]
	$1 'mv d e'
	[ "$($2 '[ ! -e d ]; cat e/a')" = a ]
}

attributes()
{
	$1 'touch f; mkdir d'
	$2 'stat f d; getfattr -d f'
	$1 'chmod 4751 f; chmod 1700 d'
	[ "$($2 'stat -c %a f d')" = $'4751\n1700' ]
	$1 'chown 1001:1002 f d'
	[ "$($2 'stat -c %u:%g f d')" = $'1001:1002\n1001:1002' ]
	$1 'touch -d @1234567890.123456789 f'
	[ "$($2 'stat -c %.9Y f')" = 1234567890.123456789 ]
	$1 'setfattr -n user.colour -v blue f'
	[ "$($2 'getfattr --only-values -n user.colour f')" = blue ]
	$1 'setfattr -n user.colour -v red f'
	[ "$($2 'getfattr --only-values -n user.colour f')" = red ]
	$1 'setfattr -x user.colour f; setfacl -m u:1003:r f'
	[ "$($2 'getfattr -d f; getfacl -cn f | grep ^user:1003')" = user:1003:r-- ]
	same "$1" "$2" 'stat -c "%z %y %a" f d'
}

# Open there, and gone.
unlinked()
{
	local p

	$1 'echo kept >f'
	$2 'exec 3<>f; touch opened; await gone; cat <&3; echo more >&3; stat -L -c "%h %s" /dev/fd/3' >"$tmp/said" &
	p=$!
	$1 'await opened; rm f; touch gone'
	wait $p
	[ "$(cat "$tmp/said")" = $'kept\n0 10' ]
	$1 '[ ! -e f ]'
}

mapped()
{
	$1 'truncate -s 200000 f'
	$2 'md5sum f'
	$1 '$two store f 100000 "from a mapping"'
	[ "$($2 'dd if=f bs=1 skip=100000 count=14 status=none')" = "from a mapping" ]
	[ "$($2 '$two load f 100000 14')" = "from a mapping" ]
	$2 'printf "by a write" | dd of=f bs=1 seek=150000 conv=notrunc status=none'
	[ "$($1 '$two load f 150000 10')" = "by a write" ]
	$2 '$two store f 100000 "by another one"'
	[ "$($1 '$two load f 100000 14')" = "by another one" ]
}

# Two counters in one page, without a lock.
mapped_at_once()
{
	local p

	$1 "printf '%0200000d' 0 >f"
	$1 '$two count f 100000 400' &
	p=$!
	$2 '$two count f 100008 400'
	wait $p
	same "$1" "$2" '$two load f 100000 16'
	[ "$said" = 0000040000000400 ]
	same "$1" "$2" 'dd if=f bs=1 skip=100000 count=16 status=none'
	[ "$said" = 0000040000000400 ]
}

flocks()
{
	local holder waiter

	$1 'touch f'
	$1 'flock f bash -c "$(declare -f await); touch held; await enough"' &
	holder=$!
	$2 'await held'
	$2 '! flock -n f true'
	$2 '! flock -n -s f true'
	$2 'touch waiting; flock f touch got' &
	waiter=$!
	$1 'await waiting; [ ! -e got ]; touch enough'
	wait $holder
	wait $waiter
	$1 '[ -e got ]; flock -n f true'
}

record_locks()
{
	local holder

	$1 'seq 100 >f'
	$1 '$two record f 10 20 bash -c "$(declare -f await); touch held; await enough"' &
	holder=$!
	$2 'await held'
	$2 '! $two record f 29 5 true'
	$2 '! $two record f 0 0 true'
	$2 '$two record f 0 10 true'
	$2 '$two record f 30 0 touch enough'
	wait $holder
	$2 '$two record f 0 0 true'
}

# A lock is worth something only if what it guards is seen.
counted()
{
	local p count='for i in {1..25}; do (flock 9; n=$(<n); echo $((n + 1)) >n) 9>>lock; done'

	$1 'echo 0 >n'
	$1 "$count" &
	p=$!
	$2 "$count"
	wait $p
	same "$1" "$2" 'cat n'
	[ "$said" = 50 ]
}

both_see_statfs()
{
	dir=$M
	there 'head -c 5000000 /dev/zero >big; sync'
	same here there 'stat -f -c "%i %b %c %S" .'
	rm "$M/big"
}

# ------------------------------------------------------------------ a client that is cut off

no_leases()
{
	there "umount $M"
	"$cluster" umount
	"$cluster" mount -o lease=off
	mount_there lease=off
}

short_lease()
{
	there "umount $M"
	"$cluster" umount
	sed -i 's/^mgr: {/mgr: {\n\tlease_ms = 4000;/' $conf
	"$cluster" kill mgr TERM
	"$cluster" start mgr
	"$cluster" mount
	mount_there
}

# The wire is cut on this side, where it can be mended. Who is there holds a lock. What it is to do
# last:
cut_off_with=
cut_off()
{
	there 'touch f; setsid flock f sleep 1000 >/dev/null 2>&1 &'
	eventually 30 here '! flock -n f true'
	[ -z "$cut_off_with" ] || there "$cut_off_with"
	cut_off_with=
	ip link set eth0 down
}

# What it believes is recalled in vain: others wait until its lease is over, and no longer.
lease_of_the_lost()
{
	local t0

	dir=$M/leased
	mkdir "$dir"
	here 'echo old >believed'
	cut_off_with='stat believed; [ ! -e made ]'
	cut_off
	t0=$SECONDS
	here 'chmod 640 believed; echo new >made; mv made made2; mv made2 made'
	[ $((SECONDS - t0)) -ge 1 ]
	[ $((SECONDS - t0)) -le 10 ]
	back
	[ "$(there 'stat -c %a believed; cat made; [ ! -e made2 ]')" = $'640\nnew' ]
	there 'pkill -x sleep; flock -w 30 f true'
}

# Nobody else waits for the lock. A process there writes all the while, to a file that
# it has open.
lock_of_the_lost()
{
	local t0

	dir=$M/cut
	mkdir "$dir"
	there '{
			exec 3>lines
			i=0
			until [ -e made ]; do echo $((++i)) >&3; done
			touch done
		} >/tmp/late 2>&1 &'
	eventually 30 here '[ -s lines ]'
	# Another one there has locks, too, writes under them when the wire is cut, and once more when he has heard of that. (On a slow
	# machine he may not have found it cut before it is not any more.)
	here 'touch held held2; setfattr -n pvfs.layout -v stuff_max=0 held2'
	cut_off_with='
		setsid bash -c "exec 3<>held 4<>held2; flock 3; flock 4; touch /tmp/has
			while timeout 2 stat -f . && ! dmesg | grep \"locks of process\"; do sleep 0.1; done
			for i in 1 2; do echo late >&3 || echo no write; echo late >&4 || echo no write; done
			flock -u 3 || echo no unlock; flock -u 4 || echo no unlock; echo ended" >/tmp/holder 2>&1 &
		await /tmp/has'
	cut_off
	t0=$SECONDS
	here 'flock -w 60 f true'
	[ $((SECONDS - t0)) -ge 2 ]
	[ $((SECONDS - t0)) -le 30 ]
	here 'for f in held held2; do flock -w 60 $f sh -c "echo mine >$f"; done'
	here 'cat lines; touch made; ls'
}

back()
{
	ip link set eth0 up
	eventually 60 within 10 "$rnd/far" run $far true
}

lost_is_back()
{
	dir=$M/cut
	back
	there 'ls; [ -e made ]; await done || { cat /tmp/late; exit 1; }'
	same here there 'md5sum <lines'
	here 'seq $(wc -l <lines) | cmp - lines'
	there 'echo again >f'
	[ "$(here 'cat f')" = again ]
	# Who lost the lock writes nothing over what was written under it since.
	there 'until grep ended /tmp/holder; do sleep 0.1; done
		[ "$(grep -cx "no write" /tmp/holder) $(grep -cx "no unlock" /tmp/holder)" = "4 2" ] || { cat /tmp/holder; exit 1; }'
	[ "$(here 'cat held held2')" = $'mine\nmine' ]
	there 'pkill -x sleep; flock -w 30 f true'
	there 'dmesg | grep "pvfs: .*session expired"'
}

# The bytes in which each iod remembers the sessions that were evicted.
evictions()
{
	local i

	for i in 0 1 2 3; do
		stat -c %s /run/pvfs-cluster/volume/iod$i/pvfs.evicted
	done
}

# All iods know of one more than in $1.
all_know()
{
	[ -z "$(join <(sort <<<"$1") <(evictions | sort))" ]
}

# An append is on its way and has not arrived when its client is evicted. It must not
# be done where others have appended since, nor fail.
append_of_the_lost()
{
	local i knew

	dir=$M/late
	mkdir "$dir"
	setfattr -n pvfs.layout -v stuff_max=0 "$dir"
	here 'echo first >log'
	knew=$(evictions)
	for i in 0 1 2 3; do
		"$cluster" kill iod$i STOP
	done
	# Past the page cache, whoever else has the file open.
	there '(echo there | dd of=log oflag=append,sync conv=notrunc status=none; touch done) >/tmp/late 2>&1 &'
	eventually 30 there "grep WRITE $S/requests"
	cut_off
	for i in 0 1 2 3; do
		"$cluster" kill iod$i
		"$cluster" start iod$i
	done
	here 'flock -w 60 f true'
	eventually 30 all_know "$knew"
	here 'echo here, >>log'
	back
	there 'await done || cat /tmp/late; pkill -x sleep'
	same here there 'cat log'
	echo "$said"
	[ "$said" = $'first\nhere,\nthere' ]
}

# Makes a file, writes to it and keeps it open until told to go on; then says what close does.
keeps_open='open(F, ">", $ARGV[0]); syswrite(F, "there\n"); open(W, ">", "/tmp/written"); close(W);
	select(undef, undef, undef, 0.05) until -e "/tmp/go"; print close(F) ? "closed" : "close: $!"; open(W, ">", "/tmp/gone")'

# A client is lost before it has told what it wrote to new$1. Others find the file as it was made.
lose_draft()
{
	# It is kept back for a second; if the wire was not cut by then, once more.
	for _ in 1 2 3 4 5; do
		there "rm -f new$1 /tmp/written /tmp/go /tmp/gone"
		there "setsid perl -e '$keeps_open' new$1 >/tmp/late 2>&1 & await /tmp/written"
		ip link set eth0 down
		[ -n "$(here "within 60 cat new$1")" ] || return 0
		back
		there 'touch /tmp/go; await /tmp/gone'
	done
	echo "new$1 was told of each time"
	return 1
}

# Back again, it tells. What others have written meanwhile is not overwritten, and who wrote first is told so.
draft_of_the_lost()
{
	dir=$M/draft
	mkdir "$dir"
	lose_draft 1
	back
	there 'touch /tmp/go; await /tmp/gone'
	[ "$(there 'cat /tmp/late')" = closed ]
	same here there 'cat new1'
	[ "$said" = there ]
	# Who was late once gets no leases any more, and without one nothing is kept back.
	dir=/
	there "umount $M"
	mount_there
	dir=$M/draft
	lose_draft 2
	here 'echo here >>new2'
	back
	there 'touch /tmp/go; await /tmp/gone'
	same there here 'cat new2'
	[ "$said" = here ]
	[ "$(there 'cat /tmp/late')" = 'close: Input/output error' ]
	there 'dmesg | grep "pvfs: .* is lost"'
}

ended_there()
{
	dir=/
	there "umount $M; rmmod pvfs"
	there 'kill $FAR_SERVER'
}

# ------------------------------------------------------------------ all of it

diag "seed $seed, $(uname -r)"
check "a network of two" lan_up 1
[ $checked = 0 ] || bail "no network"
up --address 10.0.0.1
check "the other guest answers" eventually 200 within 10 "$rnd/far" run $far true
[ $checked = 0 ] || bail "no second guest"
check "it mounts the volume" join_there
[ $checked = 0 ] || bail "no second client"
check "bytes overwritten in place" each overwritten
check "appends in turn" each appended
check "appends at once" each appended_together
check "sizes: extended, cut" each sizes
check "names made, looked for in vain before" each made
check "names removed, and made anew" each removed
check "names renamed, over others too" each renamed
check "modes, owners, times, attributes, ACLs" each attributes
check "an open file, unlinked on the other side" each unlinked
check "shared mappings, after msync" each mapped
check "shared mappings, of both at once" each mapped_at_once
check "flock" each flocks
check "fcntl locks" each record_locks
check "a counter under a lock" each counted
check "statfs" both_see_statfs
for s in 1 "$seed"; do
	check "coherence, seed $s" "$rnd/coherence" -s "$s" -r 10 -n 40 "$M" "$far:$M"
	if [ $checked = 0 ]; then
		grep '^# ' "$tmp/out"
	else
		sed 's/^/#   /' "$tmp/out"
	fi
done
check "without leases" no_leases
round=-off
check "no leases: sizes" each sizes
check "no leases: names made, looked for in vain before" each made
check "no leases: names removed, and made anew" each removed
check "no leases: names renamed, over others too" each renamed
check "no leases: modes, owners, times, attributes, ACLs" each attributes
check "no leases: an open file, unlinked on the other side" each unlinked
try_coherence() { "$rnd/coherence" -s "$seed" -r 10 -n 40 "$M" "$far:$M"; }
check "no leases: coherence, seed $seed" try_coherence
[ $checked = 0 ] || sed 's/^/#   /' "$tmp/out"
check "leases, of four seconds" short_lease
check "what a lost client believes delays others by its lease at most" lease_of_the_lost
check "who is cut off loses its lock when its lease is over" lock_of_the_lost
check "back again, it goes on" lost_is_back
check "an append that was under way comes after the others" append_of_the_lost
check "what was not told of a new file does not overwrite what others wrote" draft_of_the_lost
check "the second client unmounts, and is told to end" ended_there
check "down" "$cluster" down
finish
