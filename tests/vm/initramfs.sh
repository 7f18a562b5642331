#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the initramfs of the test guest: busybox, the few modules needed to
# mount the host's root, the agent. Prints its path. Called by tests/vm/run; the
# result is cached in build/vm by kernel and by the contents of this script and
# of agent.c.
#
# What its init sets up, by the kernel command line and the file cmd in
# the run directory:
#	/		host's root over 9p, read-only, under a tmpfs overlay
#	/tmp		tmpfs; the command's directory is kept if it is below
#	/lib/modules/K	from the directory pvfs.modroot names
#	$PVFS_OUT	9p share of the run directory, writable
#	programs	a file in the run directory: files that are copied into the
#			guest's memory at once
#	pvfs.tty	for --shell: the tty, with its size and kind

set -eu -o pipefail

usage="usage: tests/vm/initramfs.sh KVER MODROOT"
[ $# = 2 ] || { echo "$usage" >&2; exit 2; }
kver=$1
modroot=$2
here=$(cd "$(dirname "$0")" && pwd -P)
cache=$(cd "$here/../.." && pwd -P)/build/vm

sum=$(cat "$here/initramfs.sh" "$here/agent.c" | sha256sum)
image=$cache/initramfs-$kver-${sum:0:12}.cpio
if [ -e "$image" ]; then
	echo "$image"
	exit 0
fi

mkdir -p "$cache"
dir=$(mktemp -d "$cache/.initramfs.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

root=$dir/root
mkdir -p "$root"/{bin,dev,proc,sys,mod,ro,rw,new}
cp /bin/busybox "$root/bin/"
gcc -static -Os -s -Wall -Wextra -o "$root/agent" "$here/agent.c"

# Dependencies first, each once.
for m in virtio_pci virtio_console virtio_blk 9pnet_virtio 9p overlay; do
	modprobe -d "$modroot" -S "$kver" --show-depends "$m"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
while read -r f; do
	name=${f##*/}
	case $name in
	*.xz)	name=${name%.xz}; xz -dc "$f" >"$root/mod/$name";;
	*)	cp "$f" "$root/mod/";;
	esac
	echo "$name"
done >"$root/mod/list"

cat >"$root/init" <<'INIT'
#!/bin/busybox sh
B=/bin/busybox
PATH=/bin

fail()
{
	echo "<3>pvfs-vm: init: $*" >/dev/kmsg
	# The host notices that the guest is gone.
	$B reboot -f
}

$B mount -t devtmpfs d /dev
$B mount -t proc p /proc
$B mount -t sysfs s /sys

for word in $($B cat /proc/cmdline); do
	case $word in
	pvfs.modroot=*)	modroot=${word#*=};;
	pvfs.tty=*)	tty=${word#*=};;
	pvfs.rows=*)	rows=${word#*=};;
	pvfs.columns=*)	columns=${word#*=};;
	pvfs.term=*)	TERM=${word#*=};;
	esac
done

while read -r m; do
	$B insmod /mod/$m || fail "cannot load $m"
done </mod/list

opt=trans=virtio,version=9p2000.L,msize=512000
$B mount -t tmpfs -o size=70% rw /rw && $B mkdir /rw/upper /rw/ovl || fail "no tmpfs"
$B mount -t 9p -o $opt,ro,cache=loose root /ro || fail "cannot mount the host's root"
$B mount -t overlay -o lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/ovl root /new ||
	fail "cannot mount the overlay"
cd /new
$B mkdir -p dev proc sys tmp run

# Everything taken from the host's tree comes before tmpfs hides parts of it.
k=$($B uname -r)
$B mkdir -p lib/modules/$k
$B mount --bind /new$modroot/lib/modules/$k lib/modules/$k || fail "cannot bind $modroot"
$B mkdir /out /cwd
$B mount -t 9p -o $opt,cache=mmap out /out || fail "cannot mount the run directory"
# Opened for writing, a file is copied into the overlay.
while read -r f; do
	$B true >>"/new$f" || fail "cannot copy $f"
done </out/programs
cwd=$($B tr '\0' '\n' </out/cmd | $B head -n 1)
case $cwd in
/tmp/*)	$B mount --bind "/new$cwd" /cwd || fail "cannot bind $cwd";;
esac

$B mount -t tmpfs -o size=70%,mode=1777 tmp tmp
$B mount -t tmpfs -o mode=755 run run
$B mkdir -p run/lock run/pvfs-vm/out
case $cwd in
/tmp/*)	$B mkdir -p "/new$cwd"; $B mount --move /cwd "/new$cwd";;
esac
$B mount --move /out run/pvfs-vm/out
$B cp /agent run/pvfs-vm/agent

$B mkdir -p /dev/pts /dev/shm
$B mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
$B mount -t tmpfs -o mode=1777 shm /dev/shm
$B ln -sf /proc/self/fd /dev/fd
$B ln -sf fd/0 /dev/stdin
$B ln -sf fd/1 /dev/stdout
$B ln -sf fd/2 /dev/stderr
$B mount -t debugfs debug /sys/kernel/debug
$B mount -t tracefs trace /sys/kernel/tracing
$B mount -t cgroup2 cgroup /sys/fs/cgroup

$B hostname pvfs-guest
echo "127.0.0.1 pvfs-guest" >>etc/hosts
$B ip link set lo up

for p in kernel/hung_task_timeout_secs=60 kernel/hung_task_warnings=-1; do
	[ -e /proc/sys/${p%=*} ] && echo ${p#*=} >/proc/sys/${p%=*}
done

for d in dev proc sys; do
	$B mount --move /$d $d
done
read -r up rest <proc/uptime
echo "<6>pvfs-vm: ready after $up s" >dev/kmsg

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8
[ -n "$tty" ] || TERM=dumb
[ -z "$rows" ] || $B stty rows $rows cols $columns <dev/$tty
export TERM PVFS_GUEST=1 PVFS_OUT=/run/pvfs-vm/out
exec $B switch_root /new /run/pvfs-vm/agent /run/pvfs-vm/out/cmd ${tty:+/dev/$tty}
INIT
chmod 755 "$root/init"

# Not compressed: unpacking costs more in the guest than copying here. The name
# appears when the file is complete, so several can be made at once.
(cd "$root" && find . -print0 | cpio -0 -o -H newc --quiet) >"$dir/image"
mv "$dir/image" "$image"
echo "$image"
