# SPDX-License-Identifier: GPL-2.0-only
#
# Checks of what lies over a volume - overlayfs, mounts that map ids, the NFS
# server - and of callers who may other things than their uids say. Functions
# for posix.sh, which sources this.
# shellcheck shell=bash disable=SC2317

# as UID COMMAND...
as()
{
	setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"
}

# owners FILE...: as uid:gid each
owners()
{
	stat -c %u:%g "$@" | tr '\n' ' '
}

overlay()
{
	local d=$M/overlay

	mkdir -p "$d"/{low/dir,up,work} /mnt/over
	echo lower >"$d/low/f"
	echo gone >"$d/low/g"
	echo deep >"$d/low/dir/h"
	setfattr -n user.x -v kept "$d/low/f"
	mount -t overlay over -o "lowerdir=$d/low,upperdir=$d/up,workdir=$d/work" /mnt/over
	[ "$(cat /mnt/over/f)" = lower ]
	echo upper >>/mnt/over/f
	[ "$(cat /mnt/over/f)" = $'lower\nupper' ]
	[ "$(getfattr --only-values -n user.x /mnt/over/f)" = kept ]
	rm /mnt/over/g
	[ ! -e /mnt/over/g ]
	[ "$(stat -c '%F %t:%T' "$d/up/g")" = 'character special file 0:0' ]
	mv /mnt/over/f /mnt/over/moved
	rm -r /mnt/over/dir
	mkdir /mnt/over/dir
	[ -z "$(ls -A /mnt/over/dir)" ]
	[ "$(ls /mnt/over | tr '\n' ' ')" = 'dir moved ' ]
	cp -a "$tmp/tree" /mnt/over/tree
	same_trees "$tmp/tree" /mnt/over/tree
	umount /mnt/over
	[ "$(cat "$d/low/f" "$d/low/g" "$d/low/dir/h")" = $'lower\ngone\ndeep' ]
	mount -t overlay over -o "lowerdir=$d/low,upperdir=$d/up,workdir=$d/work" /mnt/over
	[ "$(ls /mnt/over | tr '\n' ' ')" = 'dir moved tree ' ]
	[ "$(cat /mnt/over/moved)" = $'lower\nupper' ]
	umount /mnt/over
	rm -r "$d"
}

# A root with less than all capabilities is not the mgr's root.
capabilities()
{
	local d=$M/caps

	mkdir -m 700 "$d"
	chown 1000 "$d"
	as 1000 sh -c "echo private >$d/f; chmod 600 $d/f"
	[ "$(cat "$d/f")" = private ]
	refuse setpriv --bounding-set -dac_override,-dac_read_search -- cat "$d/f"
	refuse setpriv --bounding-set -all -- chown 5 "$d"
	setpriv --bounding-set -all -- mkdir "$M/weak"
	[ "$(owners "$d" "$M/weak")" = '1000:0 0:0 ' ]
	# And another than root may have some.
	chmod 755 "$d"
	refuse as 2000 cat "$d/f"
	setpriv --reuid=2000 --clear-groups --inh-caps +dac_override --ambient-caps +dac_override -- cat "$d/f"
	setpriv --reuid=2000 --clear-groups --inh-caps +chown --ambient-caps +chown -- chown 2000 "$d/f"
	[ "$(owners "$d/f")" = '2000:1000 ' ]
	rm -r "$d" "$M/weak"
}

# A file that has no name, and gets one.
nameless='import os, sys
d = sys.argv[1]
fd = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o600)
os.write(fd, b"nameless")
os.link("/proc/self/fd/%d" % fd, "named", dst_dir_fd=os.open(d, os.O_RDONLY))
assert open(d + "/named").read() == "nameless" and os.stat(d + "/named").st_uid == os.getuid()
os.unlink(d + "/named")'

# The root of a user name space, as in a container.
user_namespace()
{
	local d=$M/container run="$tools/idmap run 100000"

	mkdir "$d"
	chown 100000:100000 "$d"
	echo secret >"$M/secret"
	chmod 600 "$M/secret"
	$run sh -ec "cd $d; echo one >a; chown 5:6 a; echo two >>a; chmod 0 a; cat a; chown 7:0 a
		mkdir d; chown 8 d; touch d/f; tar -C /etc -cf - passwd | tar -xpf -"
	# What is nobody's in there is 65534's.
	[ "$(owners "$d"/{a,d,d/f,passwd})" = '100007:100000 100008:100000 100000:100000 165534:165534 ' ]
	$run rm -r "$d/d"
	refuse $run cat "$M/secret"
	refuse $run sh -c ": >$M/secret"
	refuse $run chown 0 "$M/secret"
	refuse $run chmod 666 "$M/secret"
	refuse $run touch "$M/secret"
	refuse $run sh -c "echo x >$M/new"
	refuse $run mv "$M/secret" "$d/"
	refuse $run mknod "$d/null" c 1 3
	refuse $run setfattr -n trusted.x -v 1 "$d/a"
	refuse $run chown 70000 "$d/a"
	$run python3 -c "$nameless" "$d"
	[ "$(cat "$M/secret")" = secret ]
	[ "$(owners "$M/secret")" = '0:0 ' ]
	rm -r "$d" "$M/secret"
}

idmapped()
{
	local d=$M/mapped

	mkdir -p "$d" /mnt/mapped "$M/roots"
	chown 1000:1000 "$d"
	chmod 700 "$d"
	as 1000 sh -c "echo hello >$d/f"
	"$tools/idmap" mount "$M" /mnt/mapped 1000 2000
	[ "$(owners "$d" /mnt/mapped/mapped)" = '1000:1000 2000:2000 ' ]
	as 2000 sh -ec 'cd /mnt/mapped/mapped; cat f; echo two >g; mkdir dir; ln -s x s; ln f l; mv g h; rm f
		chmod 600 h; touch h; truncate -s 3 h; setfattr -n user.x -v y h; setfacl -m u:2000:rwx h; ls -l'
	as 2000 sh -ec 'cd /mnt/mapped/mapped; setfacl -d -m u:2000:rx dir; getfacl -cn h | grep "^user:2000:rwx"
		getfacl -cn dir | grep "^default:user:2000:r-x"'
	getfacl -cn "$d/h" | grep '^user:1000:rwx'
	getfacl -cn "$d/dir" | grep '^default:user:1000:r-x'
	[ "$(owners "$d"/{h,dir,s,l})" = '1000:1000 1000:1000 1000:1000 1000:1000 ' ]
	[ "$(owners /mnt/mapped/mapped/{h,dir,s,l})" = '2000:2000 2000:2000 2000:2000 2000:2000 ' ]
	as 2000 python3 -c "$nameless" /mnt/mapped/mapped
	# Who has no place on the volume gets EOVERFLOW from the VFS, as on any file system that is mounted so.
	python3 -c "$nameless" /mnt/mapped/mapped 2>&1 | grep 'Errno 75'
	refuse as 1000 ls /mnt/mapped/mapped
	refuse as 2000 ls "$d"
	refuse as 2000 sh -c 'echo no >/mnt/mapped/roots/x'
	refuse as 3000 sh -c 'echo no >/mnt/mapped/mapped/x'
	# Ids that have no place on the volume can't be given.
	refuse as 2000 chown 2001 /mnt/mapped/mapped/h
	refuse touch /mnt/mapped/mapped/roots
	# The other mount is as before.
	as 1000 cat "$d/h"
	umount /mnt/mapped
	as 1000 rm -r "$d/dir"
	rm -r "$d" "$M/roots"
}

nfs_mount()
{
	exportfs -ra
	mount -t nfs -o vers=4.2,proto=tcp,hard 127.0.0.1:/ /mnt/nfs
}

# Exported by the kernel's NFS server, whose handles outlive restarts.
nfs_export()
{
	local m

	for m in nfsd nfs nfsv4; do
		modprobe $m
	done
	mkdir -p /mnt/nfs /var/lib/nfs/v4recovery /run/rpcbind "$M/exported"
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	pidof rpcbind >/dev/null || rpcbind -w || rpcbind
	echo "$M/exported *(rw,no_root_squash,insecure,fsid=0,no_subtree_check)" >/etc/exports
	rpc.mountd
	rpc.nfsd 4
	nfs_mount
	cp -a "$tmp/tree/a" /mnt/nfs/a
	diff -r --no-dereference "$tmp/tree/a" "$M/exported/a"
	echo here >"$M/exported/here"
	[ "$(cat /mnt/nfs/here)" = here ]
	exec 9</mnt/nfs/here
	rm /mnt/nfs/a/random
	[ ! -e "$M/exported/a/random" ]
	"$cluster" kill mgr KILL
	"$cluster" start mgr 9<&-
	echo there >/mnt/nfs/there
	[ "$(cat "$M/exported/there")" = there ]
	[ "$(cat <&9)" = here ]
	exec 9<&-
	drop_caches
	ls -lR /mnt/nfs
	umount /mnt/nfs
	rpc.nfsd 0
	exportfs -ua
	pkill -x rpc.mountd
	umount /proc/fs/nfsd
	rm -r "$M/exported"
}
