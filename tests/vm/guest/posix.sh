#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (posix.t on the host): what unmodified programs and precise
# little checks expect of a POSIX file system.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"
. "${0%/*}/over.sh"

ops=$tools/ops
one=$("$ops" -n "$M")
two=$("$ops" -n "$M" "$M")
edges=$("$ops" -n -k edge "$M")
plan $((40 + one + two + 2 * edges))

# A tree with some of everything, the same each time.
make_tree()
{
	local d=$1 i

	mkdir -p "$d"/{a/b/c,empty,'with space'}
	for i in 0 1 4095 4096 65536 65537 262144 300001; do
		head -c "$i" /dev/zero | tr '\0' "$((i % 10))" >"$d/size-$i"
	done
	head -c 3000000 /dev/urandom >"$d/a/random"
	printf 'x' | dd of="$d/sparse" bs=1 seek=5000000 conv=notrunc status=none
	ln "$d/a/random" "$d/a/b/hard"
	ln -s ../random "$d/a/b/soft"
	ln -s nowhere "$d/dangling"
	mkfifo "$d/fifo"
	touch -d '2001-02-03 04:05:06.123456789' "$d/size-1" "$d/a/b/c"
	touch -h -d '2005-05-05' "$d/dangling"
	chmod 4751 "$d/size-4095"
	chmod 1777 "$d/empty"
	chown 1234:4321 "$d/size-4096"
	touch "$d/with space/$(printf '\001\377\n"\\')"
}

# What there is to know about a tree but for inode numbers and directories' sizes.
describe()
{
	(cd "$1" && find . -printf '%P|%y|%m|%U|%G|%n|%T@|%l|' \
		\( -type d -printf '\0' -o -printf '%s\0' \) | sort -z | tr '\0' '\n')
}

# diff calls two fifos different.
same_trees()
{
	diff -r --no-dereference -x fifo "$1" "$2" || return 1
	diff <(describe "$1") <(describe "$2")
}

basic_tools()
{
	mkdir "$M/basic"
	cd "$M/basic"
	echo one >f
	[ "$(cat f)" = one ]
	cp f g
	cmp f g
	mv g h
	[ ! -e g ]
	[ "$(cat h)" = one ]
	ln h i
	ln -s h j
	[ "$(cat i j)" = $'one\none' ]
	[ "$(stat -c %h i)" = 2 ]
	echo two >>h
	[ "$(cat i)" = $'one\ntwo' ]
	: >f
	[ "$(stat -c %s f)" = 0 ]
	touch k
	[ -e k ]
	ls -la --time-style=full-iso
	[ "$(ls | tr '\n' ' ')" = 'f h i j k ' ]
	rm f h i j k
	[ -z "$(ls -A)" ]
	mkdir -p x/y/z
	rmdir x/y/z
	rm -r x
	cd ..
	rmdir basic
}

text_tools()
{
	mkdir "$M/text"
	cd "$M/text"
	seq 100000 >n
	[ "$(wc -l <n)" = 100000 ]
	sort -rn -T . n | sort -n -T . | cmp - n
	sed -i 's/^5$/five/' n
	[ "$(sed -n 5p n)" = five ]
	split -b 70000 n part.
	cat part.* | cmp - n
	gzip -k n
	gunzip -c n.gz | cmp - n
	grep -c five n
	tail -c 7 n | grep -q 100000
	tac n >m
	[ "$(head -1 m)" = 100000 ]
	truncate -s 10 m
	[ "$(stat -c %s m)" = 10 ]
	cd ..
	rm -r text
}

dd_sizes()
{
	local bs

	cd "$M"
	head -c 2000000 /dev/urandom >"$tmp/dd"
	for bs in 511 4096 65536 65537 1000000 4194304; do
		dd if="$tmp/dd" of=dd bs=$bs status=none
		cmp "$tmp/dd" dd
		dd if=dd of="$tmp/dd2" bs=$bs status=none
		cmp "$tmp/dd" "$tmp/dd2"
	done
	truncate -s 1990656 "$tmp/dd"	# a multiple of 4096
	dd if="$tmp/dd" of=dd bs=64k oflag=direct conv=fsync status=none
	dd if=dd of="$tmp/dd2" bs=128k iflag=direct status=none
	cmp "$tmp/dd" "$tmp/dd2"
	printf abc | dd of=dd bs=1 seek=70000 conv=notrunc status=none
	printf abc | dd of="$tmp/dd" bs=1 seek=70000 conv=notrunc status=none
	cmp "$tmp/dd" dd
	rm dd
}

find_tool()
{
	cd "$M/tree"
	[ "$(find . -type f -size +100k -name 'size-*' | wc -l)" = 2 ]
	[ "$(find . -type l | wc -l)" = 2 ]
	[ "$(find . -links 2 -type f | wc -l)" = 2 ]
	[ "$(find . -perm -4000)" = ./size-4095 ]
	[ "$(find . -user 1234)" = ./size-4096 ]
	[ "$(find . -empty -type d | sort)" = $'./a/b/c\n./empty' ]
	find . -newermt 2002-01-01 ! -newermt 2010-01-01 -type l | grep -q dangling
	find . -depth -print0 | xargs -0 ls -ld
}

compiler()
{
	mkdir "$M/cc"
	cd "$M/cc"
	cat >a.c <<-'C'
		#include <stdio.h>
		int b(int);
		int main(void) { printf("%d\n", b(20)); return 0; }
	C
	echo 'int b(int x) { return 2 * x + 2; }' >b.c
	printf 'prog: a.o b.o\n\tgcc -o $@ $^\n%%.o: %%.c\n\tgcc -O2 -g -c -o $@ $<\n' >Makefile
	make
	[ "$(./prog)" = 42 ]
	make | grep -q 'up to date'
	touch b.c
	make
	[ "$(./prog)" = 42 ]
	gcc -shared -fPIC -o libb.so b.c
	gcc -o dyn a.c -L. -lb
	[ "$(LD_LIBRARY_PATH=. ./dyn)" = 42 ]
	cp prog running
	ar rc lib.a a.o b.o
	strip running
	[ "$(./running)" = 42 ]
}

git_tool()
{
	export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
	mkdir "$M/repo"
	cd "$M/repo"
	git init -q -b main .
	cp -r "$top"/common "$top"/transport .
	git add .
	git commit -qm one
	echo change >>common/proto.h
	git commit -qam two
	git checkout -q -b side HEAD~1
	echo side >side
	git add side
	git commit -qm side
	git merge -q -m merge main
	[ -e side ]
	grep -q change common/proto.h
	git fsck --full --strict
	[ -z "$(git status --porcelain)" ]
	git gc -q
	git fsck
	git clone -q . ../clone
	cd ../clone
	[ -z "$(git status --porcelain)" ]
	git log --oneline | wc -l | grep -qx 4
	rm -rf "$M/repo" "$M/clone"
}

rsync_tool()
{
	# By default rsync takes times within one second for equal, and leaves the wrong one.
	mkdir "$M/rs"
	rsync -aH --modify-window=-1 "$tmp/tree/" "$M/rs/"
	same_trees "$tmp/tree" "$M/rs"
	[ -z "$(rsync -aH --modify-window=-1i "$tmp/tree/" "$M/rs/" | grep -v '/$')" ]
	cp -a "$tmp/tree" "$tmp/tree2"
	echo more >>"$tmp/tree2/a/random"
	rm "$tmp/tree2/size-1"
	rsync -aH --modify-window=-1 --delete --inplace --no-whole-file "$tmp/tree2/" "$M/rs/"
	same_trees "$tmp/tree2" "$M/rs"
	rsync -aH --modify-window=-1 "$M/rs/" "$tmp/back/"
	same_trees "$tmp/tree2" "$tmp/back"
}

programs()
{
	mkdir "$M/bin"
	cp /bin/bash /usr/bin/sha256sum "$M/bin/"
	cd "$M/bin"
	[ "$(./bash -c 'echo $((6*7))')" = 42 ]
	printf '#!%s/bin/bash\necho script $1\n' "$M" >s
	chmod +x s
	[ "$(./s works)" = 'script works' ]
	drop_caches
	[ "$(./sha256sum ./bash | cut -d' ' -f1)" = "$(sha256sum </bin/bash | cut -d' ' -f1)" ]
	# Removed and replaced while it runs.
	mkfifo p
	(./bash -c 'rm bash; read -r x <p; echo "still $x"' >out; true) &
	for i in $(seq 100); do [ -e bash ] || break; sleep 0.05; done
	cp /bin/true bash
	drop_caches
	echo here >p
	wait
	[ "$(cat out)" = 'still here' ]
}

unprivileged()
{
	mkdir -m 1777 "$M/tmpdir"
	setpriv --reuid 1000 --regid 1000 --clear-groups bash -e -c "
		cd $M/tmpdir
		export HOME=$M/tmpdir GIT_CONFIG_GLOBAL=/dev/null
		umask 022
		mkdir mine
		cd mine
		echo hello >f
		chmod 600 f
		[ \$(stat -c %u:%g:%a f) = 1000:1000:600 ]
		git init -q .
		git add f
		git -c user.name=t -c user.email=t@t commit -qm x
		git fsck
		if touch $M/nope; then exit 1; fi
		if chown 0 f; then exit 1; fi"
	[ "$(stat -c %u "$M/tmpdir/mine/f")" = 1000 ]
	refuse setpriv --reuid 1001 --regid 1001 --clear-groups cat "$M/tmpdir/mine/f"
}

space()
{
	local before after

	df "$M"
	df -i "$M"
	stat -f "$M"
	before=$(df --output=used -B1 "$M" | tail -1)
	head -c 20000000 /dev/urandom >"$M/space"
	sync -f "$M"
	after=$(df --output=used -B1 "$M" | tail -1)
	[ $((after - before)) -ge 19000000 ]
	[ $((after - before)) -le 40000000 ]
	[ "$(du -B1 "$M/space" | cut -f1)" -ge 20000000 ]
	rm "$M/space"
	# Datafiles go behind the reply.
	for ((i = 0; i < 100; i++)); do
		[ $(($(df --output=used -B1 "$M" | tail -1) - before)) -lt 4000000 ] && return 0
		sleep 0.1
	done
	echo "space of a removed file was not freed within 10 s"
	return 1
}

proc_files()
{
	grep -q "^127.0.0.1.*:/vol $M pvfs " /proc/mounts || { grep pvfs /proc/mounts; return 1; }
	findmnt -t pvfs "$M"
	cat $S/servers $S/requests $S/stats
	[ "$(grep -c '^iod .*state' $S/servers)" = 4 ]
	grep -q '^mgr .*state up' $S/servers
	reset_stats
	[ "$(count WRITE)" = 0 ]
	[ "$(count HEAD_WRITE)" = 0 ]
	echo x >"$M/proc-test"
	[ "$(count HEAD_WRITE)" = 1 ]
	[ "$(count CREATE)" = 1 ]
	rm "$M/proc-test"
	[ "$(count UNLINK)" = 1 ]
	echo x >"$M/striped/proc-test"
	[ "$(count WRITE)" = 1 ]
	rm "$M/striped/proc-test"
	refuse echo nonsense >$S/stats
}

tracepoints()
{
	local t=/sys/kernel/tracing n

	ls $t/events/pvfs
	echo 1 >$t/events/pvfs/enable
	echo >$t/trace
	echo traced >"$M/traced"
	echo 0 >$t/events/pvfs/enable
	cat $t/trace | grep -v '^#' | tail -n 20
	n=$(grep -c CREATE $t/trace)
	echo >$t/trace
	rm "$M/traced"
	# Submitted, posted, answered, done.
	[ "$n" -ge 4 ]
}

mount_options()
{
	"$cluster" mount -o ro /mnt/ro
	cmp /mnt/ro/tree/a/random "$tmp/tree/a/random"
	refuse touch /mnt/ro/x
	refuse rm /mnt/ro/tree/size-1
	"$cluster" umount /mnt/ro
	"$cluster" mount -o noexec,nodev,nosuid /mnt/ro
	cp /bin/true "$M/true"
	"$M/true"
	refuse /mnt/ro/true
	mount -o remount,ro /mnt/ro
	refuse touch /mnt/ro/x
	mount -o remount,rw /mnt/ro
	touch /mnt/ro/x
	rm /mnt/ro/x "$M/true"
	"$cluster" umount /mnt/ro
	refuse mountpoint -q /mnt/ro
}

# What is open works on; the mount goes when it is closed.
lazy_umount()
{
	"$cluster" mount /mnt/lazy
	exec 7<>/mnt/lazy/lazy
	echo before >&7
	umount -l /mnt/lazy
	refuse mountpoint -q /mnt/lazy
	echo behind >&7
	[ "$(cat "$M/lazy")" = $'before\nbehind' ]
	ls /proc/fs/pvfs/vol-2
	exec 7>&-
	gone_within 10 /proc/fs/pvfs/vol-2
	[ "$(cat "$M/lazy")" = $'before\nbehind' ]
	rm "$M/lazy"
	"$cluster" umount /mnt/lazy
}

gone_within()
{
	local i

	for ((i = 0; i < $1 * 10; i++)); do
		[ -e "$2" ] || return 0
		sleep 0.1
	done
	echo "$2 is still there"
	return 1
}

bind_and_chroot()
{
	mkdir -p "$M/jail/bin" /mnt/bind
	cp /bin/busybox "$M/jail/bin/"
	[ "$(chroot "$M/jail" /bin/busybox ls -A /)" = bin ]
	mount --bind "$M/jail" /mnt/bind
	echo x >/mnt/bind/f
	umount /mnt/bind
	[ "$(cat "$M/jail/f")" = x ]
	rm -r "$M/jail"
}

# The time that $1 was last read, as the second mount sees it.
atime()
{
	stat -c %x "/mnt/second/read-marks/$1"
}

# Does the command leave a mark? The others are told behind the close, some milliseconds later as a rule:
# waited for up to @patience tenths of a second.
patience=100
marks()
{
	local name=$1 was i

	shift
	was=$(atime "$name")
	"$@" >/dev/null
	for ((i = 0; i < patience; i++)); do
		[[ $(atime "$name") == "$was" ]] || break
		sleep 0.1
	done
	[[ $(atime "$name") > $was ]]
}

unmarked()
{
	local patience=3

	refuse marks "$@"
}

access_times()
{
	local f=$M/read-marks/f

	mkdir "$M/read-marks"
	echo data >"$f"
	ln -s f "$M/read-marks/l"
	# relatime: it was not read since it was written.
	marks f cat "$f"
	unmarked f cat "$f"
	echo more >>"$f"
	unmarked f dd if="$f" iflag=noatime status=none
	marks f dd if="$f" iflag=direct bs=4096 status=none
	touch -a -d '2 days ago' "$f"
	marks f cat "$f"
	echo more >>"$f"
	marks f cp "$f" "$M/read-marks/copy"
	marks . ls "$M/read-marks"
	unmarked . ls "$M/read-marks"
	# Set by hand it stays, until the next read.
	touch -a -d '2001-02-03 04:05:06' "$f"
	[ "$(date -d "$(atime f)" +%s)" = "$(date -d '2001-02-03 04:05:06' +%s)" ]
	mount -o remount,strictatime "$M"
	marks f cat "$f"
	marks f cat "$f"
	marks . ls "$M/read-marks"
	mount -o remount,noatime "$M"
	echo more >>"$f"
	unmarked f cat "$f"
	unmarked . ls "$M/read-marks"
	mount -o remount,atime,relatime "$M"
	# A reader sees its own mark before it closes.
	exec 7<"$f"
	was=$(stat -c %x "$f")
	read -r _ <&7
	[[ $(stat -c %x "$f") > $was ]]
	exec 7<&-
}

# flock(1) through two mounts, with a waiter that is killed.
flock_tool()
{
	local waiter holder

	# Held as long as we hold the other end of the pipe.
	mkfifo "$tmp/hold"
	flock "$M/lk" cat "$tmp/hold" &
	holder=$!
	exec 8>"$tmp/hold"
	grep -q 'FLOCK.*WRITE' /proc/locks
	refuse flock -n /mnt/second/lk true
	refuse flock -w 0.5 /mnt/second/lk true
	flock /mnt/second/lk true 8>&- &
	waiter=$!
	sleep 0.5
	kill -KILL $waiter
	flock -w 60 /mnt/second/lk true 8>&- &
	waiter=$!
	exec 8>&-
	wait $holder
	wait $waiter
	flock -n "$M/lk" true
}

# Who has a lock has it still when the mgr was killed and started again, and who waits gets it in the end.
# Programs on both mounts store to the same pages while the mgr is killed, and comes back.
turns_survive_restart()
{
	local pid n=0

	mkdir "$M/turns"
	{ "$ops" -k counters "$M/turns" /mnt/second/turns && mkdir "$M/turns/2" &&
		"$ops" -k 'maps beside read' "$M/turns/2" /mnt/second/turns/2; } &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		sleep 0.5
		"$cluster" kill mgr KILL
		"$cluster" start mgr
		n=$((n + 1))
		[ $n -lt 4 ] || break
	done
	echo "$n restarts"
	wait $pid
}

# A read into pages of a mapping, which the other mount takes before the iods have answered.
read_into_what_is_taken()
{
	mkdir "$M/taken"
	head -c 4096 /dev/zero >"$M/taken/small"
	head -c 300000 /dev/zero | tr '\0' x >"$M/taken/source"
	"$top/tests/vm/guest/taken.py" "$M/taken" /mnt/second/taken "$cluster"
}

locks_survive_restart()
{
	local waiter

	exec 9>"$M/lk"
	flock 9
	flock -w 100 /mnt/second/lk echo got it >"$tmp/waiter" 9>&- &
	waiter=$!
	sleep 1
	"$cluster" kill mgr KILL
	"$cluster" start mgr 9>&-
	refuse flock -w 3 /mnt/second/lk true
	[ ! -s "$tmp/waiter" ]
	exec 9>&-
	wait $waiter
	[ "$(cat "$tmp/waiter")" = 'got it' ]
	flock -n "$M/lk" true
}

locks_local()
{
	"$cluster" mount -o locks=local /mnt/local
	grep -q ' /mnt/local pvfs .*locks=local' /proc/mounts
	exec 9>"$M/lk" 8>/mnt/local/lk
	flock 9
	flock -n 8
	refuse flock -n /mnt/local/lk true
	refuse flock -n /mnt/second/lk true
	exec 9>&-
	flock -n /mnt/second/lk true
	exec 8>&-
	flock -n /mnt/local/lk true
	"$cluster" umount /mnt/local
	refuse "$cluster" mount -o locks=none /mnt/local
}

remount_keeps_all()
{
	(cd "$M/tree" && sha256sum size-* a/random sparse) >"$tmp/sums"
	describe "$M/tree" >"$tmp/described"
	"$cluster" umount
	refuse mountpoint -q "$M"
	rmmod pvfs
	[ ! -e /proc/fs/pvfs ]
	"$cluster" mount
	(cd "$M/tree" && sha256sum -c --quiet "$tmp/sums") && describe "$M/tree" | diff "$tmp/described" -
}

restart_keeps_all()
{
	"$cluster" umount
	for d in mgr iod0 iod1 iod2 iod3; do
		"$cluster" kill $d TERM
	done
	for d in mgr iod0 iod1 iod2 iod3; do
		"$cluster" start $d
	done
	"$cluster" mount
	(cd "$M/tree" && sha256sum -c --quiet "$tmp/sums") && describe "$M/tree" | diff "$tmp/described" -
}

# Files inherit the striping of their directory; the attribute tells it.
layouts()
{
	mkdir "$M/wide" "$M/narrow"
	pvfs setstripe --size 4k --count 1 --stuff-max 0 "$M/narrow"
	pvfs setstripe --size 256k "$M/wide"
	head -c 3000000 /dev/urandom >"$tmp/l"
	cp "$tmp/l" "$M/wide/l"
	cp "$tmp/l" "$M/narrow/l"
	drop_caches
	cmp "$tmp/l" "$M/wide/l"
	cmp "$tmp/l" "$M/narrow/l"
	getfattr -n pvfs.layout "$M/narrow/l" "$M/wide/l" | tee "$tmp/layouts"
	grep -q 'pvfs.*=".*4096' "$tmp/layouts"
	grep -q 'pvfs.*=".*262144' "$tmp/layouts"
	pvfs getstripe "$M/narrow/l" pvfs:/wide/l
	pvfs stat pvfs:/narrow/l
	# All bytes of the narrow one are in one datafile.
	rm "$M/wide/l"
	refuse pvfs setstripe --size 5000 "$M/narrow"
	# What was written stays where it is, though the mgr has not heard of it.
	exec 7<>"$M/wide/w"
	setfattr -n pvfs.layout -v "pcount=2 ssize=4096" "$M/wide/w"
	cat "$tmp/l" >&7
	refuse setfattr -n pvfs.layout -v "pcount=1 ssize=65536" "$M/wide/w"
	exec 7>&-
	cmp "$tmp/l" "$M/wide/w"
	rm "$M/wide/w"
}

# All there is to know of a tree's extended attributes and ACLs but for layouts.
describe_attrs()
{
	(cd "$1" && find . -print0 | sort -z | xargs -0 getfattr -h -d -m '^(user|trusted|security)\.' 2>/dev/null
	find . ! -type l -print0 | sort -z | xargs -0 getfacl -n -p) | sed 's/^# file: \.\///'
}

make_attr_tree()
{
	local d=$1

	mkdir -p "$d/sub" "$d/shared"
	echo one >"$d/f"
	echo two >"$d/sub/g"
	ln -s f "$d/link"
	setfattr -n user.colour -v blue "$d/f"
	setfattr -n user.empty "$d/f"
	setfattr -n user.binary -v 0x00ff0a3d22 "$d/sub/g"
	setfattr -n trusted.mark -v 7 "$d/sub"
	setfattr -n user.long -v "$(head -c 3000 /dev/zero | tr '\0' x)" "$d/sub"
	setfacl -m u:1000:rw,g:2000:r "$d/f"
	setfacl -m u:1000:rwx,d:u:1000:rwx,d:g:2000:rx,d:m:rx "$d/shared"
	echo three >"$d/shared/inherited"
	chmod 4755 "$d/sub/g"
}

xattr_tools()
{
	mkdir "$M/xt"
	cd "$M/xt"
	touch f
	setfattr -n user.one -v 1 f
	setfattr -n user.two -v 'a "b"' f
	[ "$(getfattr --only-values -n user.two f)" = 'a "b"' ]
	[ "$(getfattr -d f | grep -c '^user')" = 2 ]
	# It is there, and not in the list: copies of all attributes leave it alone.
	getfattr -n pvfs.layout f | grep -q '^pvfs.layout='
	refuse eval 'getfattr -d -m - f | grep pvfs.layout'
	setfattr -x user.one f
	refuse getfattr -n user.one f
	refuse setfattr -x user.one f
	setpriv --reuid 1000 --regid 1000 --clear-groups getfattr -n user.two f
	refuse setpriv --reuid 1000 --regid 1000 --clear-groups setfattr -n user.three -v 3 f
	cp --preserve=all f g
	[ "$(getfattr --only-values -n user.two g)" = 'a "b"' ]
	# What needs no question is not asked: no attribute, no GETXATTR, and ls looks for ACLs.
	touch plain
	reset_stats
	ls -l plain
	refuse getfattr -n trusted.none plain
	echo x >plain
	[ "$(count GETXATTR)" = 0 ]
	[ "$(count LISTXATTR)" = 0 ]
}

acl_tools()
{
	local as='setpriv --reuid 1000 --regid 1000 --clear-groups'

	mkdir -m 755 "$M/times"
	cd "$M/times"
	umask 022
	echo secret >f
	chmod 600 f
	refuse $as cat f
	setfacl -m u:1000:r f
	[ "$($as cat f)" = secret ]
	[ "$(stat -c %a f)" = 640 ]
	[ "$(getfacl -cn f | tr '\n' ' ')" = "user::rw- user:1000:r-- group::--- mask::r-- other::---  " ]
	ls -l f | grep -q '^-rw-r-----+'
	chmod g-r f
	refuse $as cat f
	getfacl -cn f | grep -q '^mask::---'
	setfacl -b f
	refuse getfattr -n system.posix_acl_access f
	mkdir d
	setfacl -d -m u:1000:rwx,g:7:rx d
	mkdir -p d/a/b
	touch d/a/b/c
	getfacl -cn d/a/b | grep -q '^default:user:1000:rwx'
	getfacl -cn d/a/b/c | grep -q '^user:1000:rwx.*#effective:rw-'
	[ "$(stat -c %a d/a/b/c)" = 664 ]
	$as sh -c 'echo mine >>d/a/b/c && touch d/a/b/new'
	refuse $as setfacl -m u:1000:rwx d/a/b/c
	setfacl -R -x u:1000 d
	refuse $as touch d/a/b/c
	setfacl -k d
	mkdir d/plain
	[ "$(stat -c %a d/plain)" = 755 ]
	refuse getfattr -n system.posix_acl_default d/plain
}

# Copies that should have everything, have everything; there, back, and within.
attr_copies()
{
	local from=$tmp/attrs

	# The original is on another file system, if one of this kernel keeps user attributes in memory (from 6.6 on).
	touch "$tmp/probe"
	setfattr -n user.probe -v 1 "$tmp/probe" 2>/dev/null || from=$M/attrs
	make_attr_tree "$from"
	mkdir "$M/copies"
	cd "$M/copies"
	describe_attrs "$from" >"$tmp/attrs.want"
	grep -q '^user.binary=' "$tmp/attrs.want"
	grep -q '^user:1000:' "$tmp/attrs.want"
	cp -a "$from" cp
	describe_attrs cp | diff "$tmp/attrs.want" -
	rsync -aAX --modify-window=-1 "$from/" rsync/
	describe_attrs rsync | diff "$tmp/attrs.want" -
	mkdir tar
	tar -C cp --xattrs --xattrs-include='*' --acls -cf - . |
		tar -C tar --xattrs --xattrs-include='user.*' --xattrs-include='trusted.*' --acls -xpf -
	describe_attrs tar | diff "$tmp/attrs.want" -
	rsync -aAX --modify-window=-1 tar/ "$from.back/"
	describe_attrs "$from.back" | diff "$tmp/attrs.want" -
	same_trees "$from" "$from.back"
	# All of it survives the caches.
	drop_caches
	describe_attrs cp | diff "$tmp/attrs.want" -
	[ -z "$(rsync -aAX --modify-window=-1 -i "$from/" cp/ | grep -v '/$')" ]
}

down_and_up()
{
	"$cluster" down
	[ ! -e /proc/fs/pvfs ]
	[ ! -d /sys/module/pvfs ]
	[ ! -e /run/pvfs-cluster ]
	refuse pidof pvfs-mgr pvfs-iod
	refuse grep " pvfs " /proc/mounts
	"$cluster" down
	"$cluster" up --iods 3 --store ext4 --mount /mnt/three
	"$cluster" up --iods 3 --store ext4 --mount /mnt/three
	refuse "$cluster" up --iods 2
	cp -a "$tmp/tree" /mnt/three/
	same_trees "$tmp/tree" /mnt/three/tree
}

result 0 "a plan of $tap_planned checks"
up
make_tree "$tmp/tree" || bail "cannot make the tree"
check "ls cp mv rm ln" basic_tools
check "sort sed split gzip grep truncate" text_tools
check "dd in all sizes, buffered and direct" dd_sizes
check "cp -a keeps everything" eval 'cp -a "$tmp/tree" "$M/tree" && same_trees "$tmp/tree" "$M/tree"'
check "cp -a back, from a cold cache" eval 'drop_caches; cp -a "$M/tree" "$tmp/cold" && same_trees "$tmp/tree" "$tmp/cold"'
check "tar in and out" eval 'mkdir "$M/tar" && tar -C "$tmp/tree" -H posix -cf - . | tar -C "$M/tar" -xpf - &&
	same_trees "$tmp/tree" "$M/tar" && tar -C "$M/tar" -H posix -cf "$M/t.tar" . && mkdir "$tmp/untar" &&
	tar -C "$tmp/untar" -xpf "$M/t.tar" && same_trees "$tmp/tree" "$tmp/untar" && rm -r "$M/tar" "$M/t.tar"'
check "find" find_tool
check "gcc, make, shared libraries" compiler
check "git init add commit merge gc fsck clone" git_tool
check "rsync there, again, changed, back" rsync_tool
check "programs run from the mount" programs
check "an unprivileged user" unprivileged
check "df, du, and space comes back" space
mkdir "$M/striped"
pvfs setstripe -s 0 "$M/striped"
check "/proc/fs/pvfs" proc_files
check "tracepoints" tracepoints
check "mount options ro noexec nodev, remount" mount_options
check "umount -l" lazy_umount
check "bind mount and chroot" bind_and_chroot
check "layout as an attribute" layouts
check "setfattr, getfattr" xattr_tools
check "setfacl, getfacl" acl_tools
check "cp -a, rsync -aAX and tar keep attributes and ACLs" attr_copies

mkdir "$M/ops" "$M/two"
helper "$one" "$ops" "$M/ops"
helper "$edges" "$ops" -k edge "$M/narrow"
check "a second mount" "$cluster" mount /mnt/second
helper "$two" "$ops" "$M/two" /mnt/second/two
check "flock(1) through two mounts" flock_tool
check "locks survive a restart of the mgr" locks_survive_restart
check "shared mappings of both, through restarts of the mgr" turns_survive_restart
check "a read into a mapping that the other takes meanwhile" read_into_what_is_taken
check "locks=local" locks_local
check "access times: relatime, strictatime, noatime, O_NOATIME, on both mounts" access_times
check "umount of the second" "$cluster" umount /mnt/second
check "overlayfs with both layers here" overlay
check "roots without capabilities, and others with some" capabilities
check "the root of a user name space" user_namespace
check "exported by NFS, through a restart of the mgr" nfs_export
check "a mount that maps ids" idmapped
check "unmount, unload, load, mount: all is there" remount_keeps_all
check "daemons stopped and started: all is there" restart_keeps_all
check "down leaves nothing; up with other settings, on ext4" down_and_up
mkdir /mnt/three/ops
helper "$edges" "$ops" -k edge /mnt/three/ops
check "down" "$cluster" down
finish
