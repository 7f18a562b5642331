#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: PVFS beside the kernel's NFSv4.2, with its defaults and as
# coherent as it can be, and GlusterFS.
#
#	beside.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-3}
copy tar ls rm cat postmark bonnie++

nfs_up()
{
	local m

	for m in nfsd nfs nfsv4; do
		modprobe $m || die "no module $m"
	done
	mkdir -p /srv/nfs /mnt/nfs /var/lib/nfs/v4recovery /run/rpcbind
	mount -t tmpfs -o size=60% nfs-store /srv/nfs || die "no tmpfs for NFS"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || die "no nfsd"
	rpcbind -w 2>/dev/null || rpcbind || die "no rpcbind"
	echo '/srv/nfs *(rw,no_root_squash,insecure,fsid=0,no_subtree_check)' >/etc/exports
	exportfs -a && rpc.mountd && rpc.nfsd 8 || die "the NFS server does not start"
	mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /mnt/nfs || die "cannot mount NFS"
	# What NFS has to do so that clients see each other's changes, its data apart.
	mkdir -p /mnt/noac
	mount -t nfs -o vers=4.2,proto=tcp,noac,lookupcache=none,nosharecache 127.0.0.1:/ /mnt/noac ||
		die "cannot mount NFS with noac"
	grep -E ' /mnt/(nfs|noac) ' /proc/mounts
}

# Four bricks, files spread over them. It does not take loopback addresses, nor tmpfs.
gluster_up()
{
	local i bricks=()

	modprobe -a fuse loop || die "no modules fuse and loop"
	ip addr add 10.255.255.1/32 dev lo
	echo '10.255.255.1 bricks' >>/etc/hosts
	mkdir -p /srv/gluster /mnt/gluster /var/lib/glusterd /var/log/glusterfs /run/gluster
	mount -t tmpfs -o size=40% gluster-store /srv/gluster || die "no tmpfs for GlusterFS"
	for i in 0 1 2 3; do
		truncate -s 1G /srv/gluster/image$i && mkfs.ext4 -q -I 512 /srv/gluster/image$i && mkdir /srv/gluster/$i &&
			mount -o loop /srv/gluster/image$i /srv/gluster/$i && mkdir /srv/gluster/$i/brick || die "no brick"
		bricks+=("bricks:/srv/gluster/$i/brick")
	done
	glusterd || die "glusterd does not start"
	for ((i = 0; i < 60; i++)); do
		gluster --mode=script volume list >/dev/null 2>&1 && break
		sleep 1
	done
	gluster --mode=script volume create vol transport tcp "${bricks[@]}" force || die "no GlusterFS volume"
	gluster --mode=script volume start vol || die "the GlusterFS volume does not start"
	mount -t glusterfs bricks:/vol /mnt/gluster || die "cannot mount GlusterFS"
	grep -E ' /mnt/gluster ' /proc/mounts
}

large_files()
{
	local fs=$1

	put $fs write-1m $b write big $mb 1048576
	cold
	put $fs read-1m $b read big $mb 1048576
	put $fs read-1m-warm $b read big $mb 1048576
	rm big
	put $fs write-16k $b write big $mb 16384
	cold
	put $fs read-16k $b read big $mb 16384
	put $fs read-16k-warm $b read big $mb 16384
	cold
	put $fs write-4k-random $b bufwrite big $mb 4000
	cold
	put $fs read-4k-random $b bufread big $mb 2000
	put $fs append-4 $b append log 20000
	rm log
	cold
	put $fs readers-4 $b readers big $mb 1048576 4
	rm big
	put $fs writers-4 $b writers big $mb 1048576 4
	cold
	put $fs direct-read-4k $b randread big $mb 2000
	put $fs direct-write-4k $b randwrite big $mb 2000
	rm big
}

small_files()
{
	local fs=$1

	mkdir files
	put $fs create $b create files 1000
	cold
	put $fs stat-cold $b stat files 1000
	put $fs stat-warm $b stat files 1000
	cold
	put $fs unlink $b unlink files 1000
	$b create files 1000 >/dev/null
	put $fs unlink-known $b unlink files 1000
	put $fs put-10k $b put files 1000
	cold
	put $fs get-10k $b get files 1000
	put $fs get-10k-warm $b get files 1000
	rm -r files
	mkdir tree
	put $fs untar seconds tar -C tree -xf $work/tree.tar
	cold
	put $fs ls-aR seconds ls -aR tree
	cold
	put $fs ls-lR seconds ls -lR tree
	put $fs ls-lR-warm seconds ls -lR tree
	cold
	put $fs read-all seconds tar -cf - tree
	put $fs rm-rf seconds rm -rf tree
	mkdir mark
	printf '%s\n' 'set location mark' 'set number 500' 'set transactions 1000' run quit >$work/postmark.txt
	put $fs postmark seconds postmark $work/postmark.txt
	rmdir mark
	bonnie $fs
}

# Bonnie++'s create tests, files of up to 10 KiB; per second. (It says nothing of what takes it no
# half a second.)
bonnie()
{
	local fs=$1 line

	line=$(program bonnie++ -q -d . -s 0 -n 1:10240:0:4 -u root -m bench 2>/dev/null | tail -n 1)
	[ "$(awk -F, '{ print NF }' <<<"$line")" -ge 37 ] || die "$fs: bonnie++ said: $line"
	awk -F, -v fs="$fs" '
		function put(what, v) { if (v + 0) print fs, "bonnie-" what, v }
		{ put("seq-create", $27); put("seq-read", $29); put("seq-delete", $31)
		  put("random-create", $33); put("random-read", $35); put("random-delete", $37) }' <<<"$line" | tee -a "$raw"
}

striped()
{
	"$build/pvfs" setstripe -s 0 . >/dev/null || die "pvfs setstripe failed"
}

# round FS DIR FUNCTION...: each is called in a new directory of DIR, with FS.
round()
{
	local fs=$1 dir=$2 f

	shift 2
	mkdir "$dir/w" || die "cannot work in $dir"
	cd "$dir/w" || exit 1
	for f; do
		$f "$fs"
	done
	cd /
	rm -rf "$dir/w"
}

pvfs_up
nfs_up
make_tar
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	# In turns, and not always in the same order.
	if ((r % 2)); then
		round pvfs /mnt/pvfs large_files small_files
		round nfs /mnt/nfs large_files small_files
	else
		round nfs /mnt/nfs large_files small_files
		round pvfs /mnt/pvfs large_files small_files
	fi
	round striped /mnt/pvfs striped small_files
	((r > 1)) || round noac /mnt/noac small_files
done
cat /proc/fs/pvfs/vol/stats >"$PVFS_OUT/pvfs-stats.txt"
gluster_up
round gluster /mnt/gluster small_files
