#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The mount from user space: start, stop, what goes wrong, two mounts of a volume; by mount.pvfs and by
# mount(8).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/pvfsd.sh"

make_cluster "$C" 4
start_cluster "$C"
source=$(mgr_address "$C"):/test

fails "a source without a volume" 2 "is no host" "$BIN/pvfsd" "$(mgr_address "$C")" "$T/m1"
fails "an option that nobody knows" 2 "frob" "$BIN/pvfsd" -o "frob,key=$C/cluster.key" "$source" "$T/m1"
fails "... in the foreground" 2 "frob" "$BIN/pvfsd" -f -o "frob,key=$C/cluster.key" "$source" "$T/m1"
for o in rsize=64k wsize=64k actimeo=5 locks=local lease=off cache=none flush=close readdir=one; do
	fails "an option of the module: $o" 2 "option '${o%=*}' is the kernel module's" "$BIN/pvfsd" -o "$o,key=$C/cluster.key" "$source" "$T/m1"
done
fails "a wrong key" 1 "key|refused|No such file" "$BIN/pvfsd" -o "key=$T/none" "$source" "$T/m1"
fails "another volume" 1 "other" "$BIN/pvfsd" -o "key=$C/cluster.key" "${source%test}other" "$T/m1"
fails "no such directory" 1 "" "$BIN/pvfsd" -o "key=$C/cluster.key" "$source" "$T/m3"
# The numbers are checked as mount.pvfs does.
bad_number() {	# OPTIONS WHAT-IT-SAYS
	fails "-o $1" 2 "$2" "$BIN/pvfsd" -o "key=$C/cluster.key,$1" "$source" "$T/m1"
}
for o in mount_timeout=-1 mount_timeout=0 mount_timeout=3601 nconnect=0 nconnect=-1 nconnect=257 soft,timeo=-5 soft,timeo=soon; do
	x=${o#soft,}
	bad_number $o "'${x%=*}' takes a number of 1 \.\. (256|3600|36000), not '${x#*=}'"
done
bad_number timeo=5 "'timeo' goes with 'soft'"
: >"$T/file"
fails "a file in a directory's place" 1 "Not a directory" "$BIN/pvfsd" -o "key=$C/cluster.key" "$source" "$T/file"
mount_both allow_other,suid,dev
is "mount_timeout is how long nobody may answer" "$(
	SECONDS=0
	"$BIN/pvfsd" -o "key=$C/cluster.key,mount_timeout=1" 127.0.0.1:1:/test "$T/m1" 2>/dev/null
	echo "$? $((SECONDS < 5))")" "1 1"

# Who ends it while it waits for the manager gets no mount later: what is in the background ends too.
for sig in TERM INT KILL; do
	env --default-signal=INT "$BIN/pvfsd" -o "key=$C/cluster.key,mount_timeout=60" 127.0.0.1:1:/test "$T/m3" 2>/dev/null &
	pid=$!
	PIDS+=($pid)
	ok "pvfsd waits for a manager" wait_for 10 pgrep -P $pid
	child=$(pgrep -P $pid)
	kill -$sig $pid
	ok "... SIG$sig ends it, and its child" wait_for 5 bash -c "! grep -qs '^State:.[^Z]' /proc/$pid/status /proc/$child/status"
	kill -KILL $child 2>/dev/null
done
is "the mount says what it is" "$(awk -v m="$T/m1" '$2 == m { print $1, $3 }' /proc/mounts)" "$source fuse.pvfs"

# As many connections as mount.pvfs takes.
mkdir "$T/many"
ok "nconnect=256" "$BIN/pvfsd" -o "key=$C/cluster.key,nconnect=256" "$source" "$T/many"
ok "... until umount" umount "$T/many"

# Who has a file open is asked by its name on the mount, and it is the mount that has it; its link, not what that names.
echo x >"$T/m1/with space"
ln -s "with space" "$T/m1/link"
exec 5>>"$T/m2/with space" 6<"$T/m1/with space"
rows() { "$PVFS" leases --json -k "$C/cluster.key" "$@" 2>/dev/null | perl -MJSON::PP -e 'local $/; print join " ", sort map { "$_->{readers}/$_->{writers}" } @{decode_json(<STDIN>)->{holders}}'; }
is "pvfs leases of a path on a mount" "$(rows "$T/m1/with space")" "0/1 1/0"
is "... from within" "$(cd "$T/m2" && rows "./with space")" "0/1 1/0"
is "... as many as are wanted, by the order of their sessions" "$(rows -n 1 "$T/m1/with space")" "1/0"
like "... and how many are left" "$("$PVFS" leases -n 1 -k "$C/cluster.key" "$T/m1/with space" 2>&1 >/dev/null)" \
	"/with space: and 1 more; -n 0 lists all$"
is "... by the options' way to the same volume" "$(rows -c "$C/pvfs.conf" "$T/m1/with space")" "0/1 1/0"
is "... and of a symbolic link there" "$(rows "$T/m1/link") $(rows "$T/m1")" " "
fails "... not when the options mean another volume" 1 "is on a mount of volume 'test', and the options mean 'other'" \
	"$PVFS" leases -m "$(mgr_address "$C")/other" -k "$C/cluster.key" "$T/m1/with space"
exec 5>&- 6<&-
rm "$T/m1/with space" "$T/m1/link"

# One file system, whoever looks at it.
both() {
	echo first >"$T/m1/f"
	[ "$(cat "$T/m2/f")" = first ]
	exec 5<"$T/m2/f"
	echo second, and longer >"$T/m1/f"
	[ "$(cat <&5)" = "second, and longer" ]
	[ "$(stat -c %s "$T/m2/f")" = 19 ]
	mv "$T/m2/f" "$T/m2/g"
	[ ! -e "$T/m1/f" ]
	exec 5<&-
	[ "$("$PVFS" -c "$C/pvfs.conf" ls pvfs:/ | grep -c '^g')" = 1 ]
	flock -n "$T/m1/g" bash -c "! flock -n '$T/m2/g' true"
}
ok "two mounts and the pvfs command see the same at once" bash -ec "$(declare -f both); T=$T; C=$C; PVFS=$PVFS; both"

# More who wait than libfuse has threads to begin with; who has the lock goes on working, and all get it in their turn.
waiters() {
	local i pids=()
	exec 6>"$T/m1/lock"
	flock 6
	for i in {1..40}; do
		flock "$T/m1/lock" true &
		pids+=($!)
	done
	for i in {1..50}; do
		[ "$(pgrep -c -P $BASHPID flock)" = 40 ] && break
		sleep 0.1
	done
	timeout 20 ls -l "$T/m1" >/dev/null
	timeout 20 touch "$T/m1/while-they-wait"
	kill "${pids[0]}"
	timeout 20 flock -u 6
	wait "${pids[@]:1}"
	exec 6>&-
}
ok "40 wait for a lock, one is killed, and nothing hangs" bash -ec "$(declare -f waiters); T=$T; waiters"

readdirs() {
	p status --json | json '{servers}[0]{stats}{ops}{READDIR}{count}'
}
mkdir "$T/m1/many"
(cd "$T/m1/many" && touch {1..2000})
before=$(readdirs)
is "a directory is listed whole" "$(ls -f "$T/m2/many" | wc -l)" 2002
ok "... in a few messages, not one for each call of the kernel's" [ $(($(readdirs) - before)) -le 4 ]
ok "... and once more from the middle" perl - "$T/m1/many" <<'END'
opendir(my $d, $ARGV[0]) or die;
readdir($d) for 1 .. 777;
my $at = telldir($d);
my @rest = readdir($d);
seekdir($d, $at);
my @again = readdir($d);
die scalar(@rest) . " and " . scalar(@again) unless @rest == 2002 - 777 && "@rest" eq "@again";
END
ok "a tree goes in by tar" bash -c "tar -C /usr/include -cf - linux | tar -C '$T/m1' -xf -"
ok "... and is the same from the other mount" diff -r /usr/include/linux "$T/m2/linux"
ok "... and is removed" rm -r "$T/m2/linux"

mount_options() {
	awk -v m="$T/m1" '$2 == m { print $1, $3, $4 }' /proc/mounts
}

# How files are laid out, as on a mount by the module.
mkdir "$T/m1/layout"
layout() { "$PVFS" getstripe --json "$1" | json '{files}[0]{stripe_count} . " " . $j->{files}[0]{stripe_size} . " " . $j->{files}[0]{stuff_max}'; }
ok "setstripe of a directory on the mount" "$PVFS" setstripe -n 2 -S 8k -s 0 "$T/m1/layout"
ok "... once more, with less" "$PVFS" setstripe -n 3 "$T/m1/layout"
is "... the rest stayed" "$(layout "$T/m2/layout")" "3 8192 0"
ok "setstripe makes a file there" "$PVFS" setstripe -S 32k "$T/m1/layout/new"
is "... so" "$(layout "$T/m2/layout/new")" "3 32768 0"
is "the attribute is the module's" "$(getfattr --only-values -n pvfs.layout "$T/m1/layout")" "base=any pcount=3 ssize=8192 stuff_max=0"
echo data >"$T/m1/layout/data"
fails "setstripe of a file with data" 1 "data: it was written to already" "$PVFS" setstripe -n 1 "$T/m1/layout/data"
fails "... and not to be removed" 1 "not permitted" setfattr -x pvfs.layout "$T/m1/layout"
fails "... nor to be what it can't" 1 "Invalid" setfattr -n pvfs.layout -v pcount=99 "$T/m1/layout"

# An iod that hangs: who is killed is gone at once, who has but got a signal has its bytes when it is back.
hung() {	# PID: it waits for pvfsd
	wait_for 10 grep -q request_wait_answer "/proc/$1/wchan" "/proc/$1/stack"
}
gone() {
	wait_for 3 bash -c "! grep -qs '^State:.[^Z]' /proc/$1/status"
}
make_file "$T/8M" $((8 << 20))
cp "$T/8M" "$T/m1/8M"
cp "$T/8M" "$T/m1/8M.2"
freeze "$(pid_of iod1)"
cat "$T/m1/8M" >/dev/null &
reader=$!
dd if=/dev/zero of="$T/m1/8M.2" bs=1M conv=notrunc status=none &
writer=$!
perl - "$T/m1/8M" >"$T/read" <<'END' &
use Time::HiRes "setitimer", "ITIMER_REAL";
$SIG{ALRM} = sub { $n++ };
open(my $f, "<:raw", $ARGV[0]) or die;
setitimer(ITIMER_REAL, 0.05, 0.05);
my $got = sysread($f, my $buf, 1 << 20);
print defined $got ? $got : $!, " ", $n > 0, "\n";
END
signalled=$!
PIDS+=($reader $writer $signalled)
for x in reader writer signalled; do ok "the $x waits for an iod" hung ${!x}; done
kill -KILL $reader $writer
for x in reader writer; do ok "... and is gone when it is killed" gone ${!x}; done
ok "others go on" timeout 10 ls -l "$T/m1"
# The timer runs only once the file is open, and SIGALRM stays pending while the read waits.
ok "... who got a signal waits" wait_for 10 grep -q '^ShdPnd:.*2...$' "/proc/$signalled/status"
kill -CONT "$(pid_of iod1)"
wait $signalled
is "... and has its bytes" "$(cat "$T/read")" "1048576 1"
ok "the file is whole from the other mount" cmp "$T/8M" "$T/m2/8M"

unmount_both

# Its messages, and how it ends.
ok "pvfsd -l" "$BIN/pvfsd" -l "$T/pvfsd.log" -o "key=$C/cluster.key" "$source" "$T/m1"
daemon=$(pgrep -f "[p]vfsd .* $T/m1\$")
like "... says what it does" "$(cat "$T/pvfsd.log")" "^20[0-9-]+ [0-9:.]+ pvfsd\[$daemon\]: $source: mounted on $T/m1"
mv "$T/pvfsd.log" "$T/pvfsd.old"
kill -HUP "$daemon"
ok "... to a new file after a SIGHUP" wait_for 10 test -e "$T/pvfsd.log"
freeze "$(pid_of iod1)"
cat "$T/m1/8M" >/dev/null 2>&1 &
reader=$!
PIDS+=($reader)
ok "a reader waits for an iod" hung $reader
kill -TERM "$daemon"
ok "SIGTERM ends pvfsd all the same" gone "$daemon"
ok "... the reader, too" gone $reader
is "... and the mount" "$(mount_options)" ""
kill -CONT "$(pid_of iod1)"
ok "pvfsd on a directory by its name here" eval '(cd "$T" && exec "$BIN/pvfsd" -o "key=$C/cluster.key" "$source" m1)'
daemon=$(pgrep -f "[p]vfsd .*$source m1\$")
kill -TERM "$daemon"
ok "... ends at a SIGTERM, too" gone "$daemon"
is "... and its mount" "$(mount_options)" ""
syslog() {	# what comes to /dev/log in a /dev of our own
	mkdir "$T/dev"
	cp -a /dev/null /dev/fuse /dev/urandom "$T/dev"
	mount --bind "$T/dev" /dev
	perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_DGRAM, 0); bind($s, pack_sockaddr_un("/dev/log")) or die;
		alarm 20; recv($s, my $m, 4096, 0); print "$m\n"' &
	wait_for 10 test -S /dev/log
	"$BIN/pvfsd" -o "key=$C/cluster.key" "$source" "$T/m1"
	wait
	umount "$T/m1"
}
like "without -l messages go to syslog" "$(unshare -m bash -c "$(declare -f syslog wait_for)
	T=$T BIN=$BIN C=$C source=$source
	syslog" 2>&1)" "^<30>.* pvfsd\[[0-9]+\]: $source: mounted on $T/m1"

# The same by mount.pvfs.
options=key=$C/cluster.key
said="mount.pvfs: user: mounted by pvfsd, without the kernel module"
by_user() {
	"$BIN/mount.pvfs" "$source" "$T/m1" -o "$@" 2>&1
}
is "mount.pvfs -o user says who mounts" "$(by_user "$options,user,mount_timeout=5,soft,timeo=100,nconnect=2,ro")" "$said"
is "... and it is so" "$(mount_options | cut -d, -f1)" "$source fuse.pvfs ro"
is "... for all users" "$(mount_options | grep -c allow_other)" 1
is "... and set-id programs" "$(mount_options | grep -c nosuid)" 0
ok "... until umount" umount "$T/m1"
is "client=user is the same" "$(by_user "client=user,user,$options,nosuid" && mount_options | grep -c nosuid)" "$said
1"
ok "... until umount" umount "$T/m1"
if ! grep -qw pvfs /proc/filesystems; then
	fails "client=kernel is the module" 32 "the kernel has no pvfs" "$BIN/mount.pvfs" "$source" "$T/m1" -o \
		"$options,client=kernel,user"
	fails "who has no module is told of user" 32 "modprobe.*-o user" "$BIN/mount.pvfs" "$source" "$T/m1" -o "$options"
fi
fails "a third client" 1 "kernel or user, not 'x'" "$BIN/mount.pvfs" "$source" "$T/m1" -o "$options,client=x"
for o in rsize=64k locks=local lease=off actimeo=1 readdir=one noatime remount strictatime; do
	fails "user with $o" 1 "'${o%=*}'.*leave out one" "$BIN/mount.pvfs" "$source" "$T/m1" -o "$options,user,$o"
done
ok "-f stops before pvfsd" "$BIN/mount.pvfs" "$source" "$T/m1" -f -o "$options,user"
fails "no such directory" 32 "" "$BIN/mount.pvfs" "$source" "$T/none" -o "$options,user"
is "... and nothing is mounted" "$(grep -c " $T/" /proc/mounts)" 0

# A name whose attributes only a dead daemon knows is listed, on a soft mount too: a copy that left it out in silence would
# be taken for a whole one.
p mkdir pvfs:/partly
mkdir "$T/partly"
for i in {1..5}; do echo "$i" >"$T/partly/$i"; done
p cp "$T/partly/"* pvfs:/partly
make_file "$T/in" 1000000
"$BIN/tests/integ/unclosed" "$(mgr_address "$C")" test "$C/cluster.key" /partly/growing 1000000 <"$T/in" >"$T/written" &
PIDS+=($!)
ok "somebody writes a file" wait_for 20 grep written "$T/written"
ok "an iod is killed" "$PVFS" stop "$C" iod1 --kill
ok "a soft mount" "$BIN/pvfsd" -o "key=$C/cluster.key,soft,timeo=10" "$(mgr_address "$C"):/test" "$T/m1"
is "... lists all names" "$(echo $(ls "$T/m1/partly"))" "1 2 3 4 5 growing"
is "... not with attributes that it does not have" "$(ls -l "$T/m1/partly" 2>&1 | grep -c "growing.*\(Input/output error\|timed out\)")" 1
fails "... and who copies them is told" 2 "growing: .*(Input/output error|timed out)" tar -C "$T/m1" -cf "$T/partly.tar" partly
ok "... it is unmounted" umount "$T/m1"
start_cluster "$C" iod1

# mount(8) looks for mount.pvfs in /sbin: in a name space of its own this one is there.
by_mount() {
	local rc=0

	mkdir "$T/sbin"
	cp "$BIN/mount.pvfs" "$BIN/pvfsd" "$T/sbin"
	mount --bind "$T/sbin" /sbin
	echo "$source $T/m1 pvfs $options,client=user,noauto 0 0" >"$T/fstab"
	mount -t pvfs -o "user,$options" "$source" "$T/m1" || rc=1
	mount_options
	touch "$T/m1/by-mount" || rc=1
	umount "$T/m1" || rc=1
	mount -T "$T/fstab" "$T/m1" || rc=1
	mount_options
	rm "$T/m1/by-mount" || rc=1
	umount "$T/m1" || rc=1
	return $rc
}
is "mount -t pvfs -o user, and by fstab" "$(unshare -m bash -c "$(declare -f by_mount mount_options)
	T=$T BIN=$BIN source=$source options=$options
	by_mount" 2>&1 | sed 's/,relatime.*//')" "$said
$source fuse.pvfs rw,nosuid,nodev,noexec
$said
$source fuse.pvfs rw"
is "no pvfsd is left there either" "$(wait_for 10 bash -c "! pgrep -f '[p]vfsd .*$T/m'" && echo none)" none
finish
