# SPDX-License-Identifier: GPL-2.0-only
#
# Copies, archives and packages, for programs.sh: all that a file has goes there,
# comes back, and nothing of it differs.
# shellcheck shell=bash disable=SC2154

program long 240 copy_cp "cp -a there and back"
program short 300 copy_rsync "rsync -aHAXS there and back; a second run has nothing to do"
program short 240 copy_tar "tar with xattrs, ACLs and holes, there and back"
program long 90 copy_holes "cp, rsync and tar keep holes, and st_blocks tells them"
program long 300 copy_cpio "cpio there and back"
program long 300 copy_zip "zip, unzip"
program short 120 find_tree "find and ls know all of it, on both mounts"
program short 150 dpkg_unpack "dpkg --unpack, verify, unpack over it, purge"
program long 2400 debootstrap_small "debootstrap of a small Debian, and what is in it runs"

# A tree with one of everything: the same each time, on the control.
full_tree()
{
	local d=$1 i long

	mkdir -p "$d"/{a/b/c/d/e,empty,acl,'with space'}
	for i in 0 1 100 4095 4096 4097 65536 65537 300001; do
		seq 100000 | head -c "$i" >"$d/size-$i"
	done
	unpack_source "$d/source" >/dev/null
	# The guest is slow: of the 170 files these will do.
	[ "$level" = long ] || rm -r "$d"/source/{contrib,examples,amiga,doc,msdos,nintendods,old,os400,qnx,watcom,test}
	long=$(printf '%0255d' 7)
	echo long >"$d/$long"
	mkdir -p "$d/deep/$long/$long"
	echo deep >"$d/deep/$long/$long/$long"
	echo odd >"$d/with space/$(printf '\001\377\t\n"\\*?$')"
	echo utf >"$d/with space/größe ☃"
	# Data, a hole, data, a hole to the end; and nothing but a hole.
	printf 'start' >"$d/sparse"
	seq 20000 | dd of="$d/sparse" bs=64k seek=48 conv=notrunc status=none
	truncate -s 9000001 "$d/sparse"
	truncate -s 3000000 "$d/hole"
	ln "$d/size-65537" "$d/a/b/hard"
	ln "$d/size-65537" "$d/a/b/c/harder"
	ln -s ../../size-100 "$d/a/b/soft"
	ln -s nowhere "$d/dangling"
	ln -s "$(printf 'nowhere/%.0s' {1..500})" "$d/long-link"
	ln "$d/dangling" "$d/a/dangling-too"
	mkfifo -m 640 "$d/fifo"
	mknod -m 620 "$d/null" c 1 3
	mknod -m 660 "$d/block" b 250 4097
	mknod -m 600 "$d/large-numbers" c 4000 900000
	perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); chdir $ARGV[0];
		bind(S, pack_sockaddr_un("socket")) or die "$!"' "$d"
	chmod 4751 "$d/size-4095"
	chmod 2770 "$d/a/b"
	chmod 1777 "$d/empty"
	chmod 0 "$d/size-1"
	chown 1234:4321 "$d/size-4096" "$d/null"
	chown 3000000000:4000000000 "$d/size-4097"
	chown -h 99:98 "$d/dangling"
	setfattr -n user.colour -v blue "$d/size-100"
	setfattr -n user.empty "$d/size-100"
	setfattr -n user.binary -v 0x00ff0a3d22 "$d/a/b"
	setfattr -n user.long -v "$(printf '%02000d' 5)" "$d/a/b/c"
	setfattr -n trusted.mark -v 7 "$d/sparse"
	setfattr -h -n trusted.link -v 9 "$d/a/b/soft"
	# cap_net_raw+ep, as setcap writes it.
	setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 "$d/size-300001"
	setfacl -m u:1000:rw,g:2000:r,u:3000000000:x "$d/size-4096"
	setfacl -m u:1000:rwx,d:u:1000:rwx,d:g:2000:rx,d:m:rx "$d/acl"
	echo inherited >"$d/acl/inherited"
	mkdir "$d/acl/sub"
	touch -d '2001-02-03 04:05:06.123456789' "$d/size-100" "$d/fifo"
	touch -d '1965-01-01 00:00:00.5' "$d/size-0"
	touch -d '2200-06-05 04:03:02.000000001' "$d/size-65536"
	touch -h -d '2005-05-05' "$d/dangling"
	touch -d '2003-03-03 03:03:03.333333333' "$d/empty" "$d/a/b/c/d/e" "$d/a/b"
}

# The tree, made once.
the_tree()
{
	if [ ! -e "$C/tree.made" ]; then
		rm -rf "$C/tree"
		full_tree "$C/tree"
		describe "$C/tree" >"$C/tree.made.$$"
		# It has what it should have: else both sides could lack the same.
		[ "$(find "$C/tree" -printf '%y\n' | sort -u | tr -d '\n')" = bcdflps ]
		grep -q '^security.capability=' "$C/tree.made.$$"
		grep -q '^trusted.link=' "$C/tree.made.$$"
		grep -q '^default:user:1000:rwx' "$C/tree.made.$$"
		grep -q '3000000000|4000000000' "$C/tree.made.$$"
		mv "$C/tree.made.$$" "$C/tree.made"
	fi
}

# All there is to know of tree $1, but for inode numbers, ctimes and directories'
# sizes: names, kinds, modes, owners, links, times, contents, who is linked with
# whom, numbers of devices, attributes, ACLs. $2: more for find to leave out.
# shellcheck disable=SC2086 # $2 is words
describe()
{
	(
		cd "$1"
		find . ${2-} -printf '%P|%y|%m|%U|%G|%n|%T@|%l|' \
			\( -type d -printf '\0' -o -printf '%s\0' \) | sort -z | tr '\0' '\n'
		find . -type f -printf '%i %P\0' | sort -z -k1,1n -k2 |
			awk -v RS='\0' '{ i = $1; sub(/^[0-9]+ /, ""); all[i] = all[i] "=" $0; n[i]++ }
				END { for (i in all) if (n[i] > 1) print "same" all[i] }' | sort
		find . \( -type b -o -type c \) -print0 | sort -z | xargs -0r stat -c '%n %t %T'
		find . -type f -print0 | sort -z | xargs -0r sha256sum
		find . ${2-} -print0 | sort -z | xargs -0r getfattr -h -d -e hex -m '^(user|trusted|security)\.'
		find . ! -type l ${2-} -print0 | sort -z | xargs -0r getfacl -n -p
	) 2>&1
}

# same_as_tree DIRECTORY [what find leaves out]
same_as_tree()
{
	local want=$C/tree.made

	if [ $# -gt 1 ]; then
		want=$tmp/work/want
		describe "$C/tree" "$2" >"$want"
	fi
	describe "$1" "${2-}" | diff "$want" - | cat -v | head -n 30 >"$tmp/work/diff"
	[ ! -s "$tmp/work/diff" ] || { echo "$1 differs:"; cat "$tmp/work/diff"; return 1; }
}

# The copy has the holes of the original, to a tenth.
sparse_as_tree()
{
	local f bad=0

	for f in sparse hole; do
		echo "$f: $(stat -c %b "$C/tree/$f") blocks in the tree, $(stat -c %b "$1/$f") in $1"
		[ "$(stat -c %b "$1/$f")" -le \
			$(($(stat -c %b "$C/tree/$f") + $(stat -c %s "$C/tree/$f") / 5120)) ] || bad=1
	done
	return $bad
}

copy_cp()
{
	the_tree
	cp -a --sparse=always "$C/tree" .
	same_as_tree "$PWD/tree"
	drop_page_cache
	same_as_tree "$B/copy_cp/tree"
	# Within the mount, and back from the other.
	cp -a tree again
	same_as_tree "$PWD/again"
	rm -rf "$C/back"
	cp -a "$B/copy_cp/again" "$C/back"
	same_as_tree "$C/back"
	rm -rf "$C/back"
}

copy_rsync()
{
	local opts='-aHAXS --numeric-ids --modify-window=-1'

	# shellcheck disable=SC2086 # words
	sync_to()
	{
		rsync $opts "$@"
	}
	the_tree
	sync_to "$C/tree/" tree/
	same_as_tree "$PWD/tree"
	sync_to -ii "$C/tree/" "$B/copy_rsync/tree/" >"$tmp/work/items"
	# Each is named, and nothing of it would change.
	refuse grep -v '^[.h][fdLDS]          ' "$tmp/work/items"
	[ "$(wc -l <"$tmp/work/items")" = "$(find "$C/tree" -printf '.\n' | wc -l)" ]
	sync_to -i "$C/tree/" tree/ >"$tmp/work/items"
	[ ! -s "$tmp/work/items" ] || { cat "$tmp/work/items"; return 1; }
	# Changed in all ways, and made right with what is there, by contents.
	echo more >>tree/size-4096
	rm -r tree/source/debian tree/fifo
	chmod 600 tree/size-300001
	setfattr -n user.more -v 1 tree/hole
	setfacl -b tree/acl
	echo extra >tree/extra
	touch -d 2020-01-01 tree/a
	# A write took the capability.
	sync_to --checksum --delete --inplace --no-whole-file -i "$C/tree/" tree/ 2>"$tmp/work/err" ||
		# --inplace and -S together, since rsync 3.1.3.
		{ cat "$tmp/work/err"; return 1; }
	same_as_tree "$PWD/tree"
	rm -rf "$C/back"
	sync_to "$B/copy_rsync/tree/" "$C/back/"
	same_as_tree "$C/back"
	sync_to -i tree/ "$C/back/" >"$tmp/work/items"
	[ ! -s "$tmp/work/items" ] || { cat "$tmp/work/items"; return 1; }
	rm -rf "$C/back"
}

# tar and cpio of newc do not do sockets.
no_socket='! -type s'

copy_tar()
{
	local create=(tar --xattrs --xattrs-include=* --acls --sparse --numeric-owner --format=posix --exclude=./socket)
	local extract=(tar --xattrs --xattrs-include=* --acls --numeric-owner -p)

	the_tree
	mkdir tree
	"${create[@]}" -C "$C/tree" -cf - . | "${extract[@]}" -C tree -xf -
	same_as_tree "$PWD/tree" "$no_socket"
	drop_page_cache
	"${create[@]}" -C "$B/copy_tar/tree" -cf tree.tar .
	"${create[@]}" -C tree -df tree.tar
	rm -rf "$C/back"
	mkdir "$C/back"
	"${extract[@]}" -C "$C/back" -xf "$B/copy_tar/tree.tar"
	same_as_tree "$C/back" "$no_socket"
	rm -rf "$C/back"
}

# Holes stay holes: those of ./sparse and ./hole of the tree, by each of the three.
copy_holes()
{
	local bad=0 by

	the_tree
	mkdir cp rsync tar
	cp -a --sparse=always "$C/tree/sparse" "$C/tree/hole" cp
	rsync -aS "$C/tree/sparse" "$C/tree/hole" rsync
	tar -C "$C/tree" --sparse -cf - sparse hole | tar -C tar -xf -
	for by in cp rsync tar; do
		cmp $by/sparse "$C/tree/sparse"
		sparse_as_tree "$PWD/$by" || bad=1
	done
	# As they are read from here: the archive is as small, and so is the copy.
	tar --sparse -cf - -C cp sparse hole | tee "$C/holes.tar" | wc -c
	[ "$(stat -c %s "$C/holes.tar")" -lt 1000000 ] || { echo "the archive has the holes in it"; bad=1; }
	rm -rf "$C/back" "$C/holes.tar"
	mkdir "$C/back"
	cp -a "$B/copy_holes/cp/." "$C/back"
	cmp "$C/back/sparse" "$C/tree/sparse"
	sparse_as_tree "$C/back" || bad=1
	rm -rf "$C/back"
	return $bad
}

copy_cpio()
{
	the_tree
	# newc has no nanoseconds, no attributes and no large owners: contents, modes, links.
	mkdir tree
	(cd "$C/tree" && find . -depth ! -type s -print0 | cpio -0 -o -H newc --quiet) >"$C/there.cpio"
	(cd tree && cpio -idm --quiet) <"$C/there.cpio"
	plain_parts "$C/tree" >"$tmp/work/a"
	plain_parts "$PWD/tree" | diff "$tmp/work/a" -
	(cd "$B/copy_cpio/tree" && find . -depth -print0 | cpio -0 -o -H newc --quiet) >"$C/back.cpio"
	rm -rf "$C/back"
	mkdir "$C/back"
	(cd "$C/back" && cpio -idm --quiet) <"$C/back.cpio"
	plain_parts "$C/back" | diff "$tmp/work/a" -
	rm -rf "$C/back" "$C"/*.cpio
}

plain_parts()
{
	# Of symbolic links with one inode cpio makes two.
	(
		cd "$1"
		find . ! -type s -printf '%P|%y|%m|%l|' \
			\( -type f -printf '%n|%s\0' -o -printf '\0' \) | sort -z | tr '\0' '\n'
		find . -type f -print0 | sort -z | xargs -0r sha256sum
	)
}

copy_zip()
{
	the_tree
	cp -r "$C/tree/source" .
	zip -qr source.zip source
	unzip -tqq source.zip
	mkdir out
	unzip -q -d out "$B/copy_zip/source.zip"
	diff -r "$C/tree/source" out/source
	echo changed >>source/README
	zip -q source.zip source/README
	zip -qd source.zip source/zlib.h
	unzip -p source.zip source/README | cmp - source/README
	refuse unzip -p source.zip source/zlib.h
	unzip -tqq "$B/copy_zip/source.zip"
}

# Without the sizes of directories.
listing()
{
	ls -lRn --time-style=full-iso | sed -E '/^total/d; /^d/s/ +[0-9]+ ([0-9]{4}-)/ \1/'
}

find_tree()
{
	local d test

	the_tree
	cp -a "$C/tree" .
	for d in "$PWD/tree" "$B/find_tree/tree"; do
		cd "$d"
		for test in '-type f -size +100k' '-type l -lname ../*' '-links +2' '-perm -4000' \
			'-perm -2000 -type d' '-user 1234' '-gid 4321' '-empty' '-mindepth 6' \
			'-newermt 2002-01-01 ! -newermt 2010-01-01' '! -newermt 1970-01-01' \
			'-name *.c -size -20k' '-path ./source/* -iname *MAKE*' '-samefile size-65537' \
			'-type p -o -type b -o -type c -o -type s' '-xtype l' \
			'-uid +2000000000' '-nouser -nogroup -type f'; do
			set -f
			# shellcheck disable=SC2086 # words
			find . $test | sort >"$tmp/work/here"
			# shellcheck disable=SC2086
			(cd "$C/tree" && find . $test | sort) >"$tmp/work/there"
			set +f
			[ -s "$tmp/work/there" ] || { echo "finds nothing: $test"; return 1; }
			diff "$tmp/work/there" "$tmp/work/here" || { echo "find $test"; return 1; }
		done
		listing >"$tmp/work/here"
		(cd "$C/tree" && listing) | diff -b - "$tmp/work/here"
	done
	cd "$A/find_tree"
	find tree -depth -delete
	[ ! -e "$B/find_tree/tree" ]
}

dpkg_unpack()
{
	local root=$PWD/root n deb f
	local -a debs=("$debian"/debs/*.deb)

	mkdir -p root/var/lib/dpkg/{info,updates}
	: >root/var/lib/dpkg/status
	# With dependencies left out, and what a script would do in the root.
	dpkg_in()
	{
		dpkg --root="$root" --log=/dev/null --force-depends --force-script-chrootless "$@"
	}
	# Configuration files are put in their places when a package is configured.
	right()
	{
		dpkg_in --verify >"$tmp/work/verify"
		refuse grep -v '^missing   c /etc/' "$tmp/work/verify"
	}
	[ "$level" = long ] || debs=("$debian"/debs/{hostname,zlib1g,netbase,gzip}_*.deb)
	n=${#debs[@]}
	dpkg_in --unpack "${debs[@]}"
	[ "$(dpkg_in -l | grep -c '^iU')" = "$n" ]
	right
	# By another way: the same files.
	mkdir plain
	for deb in "${debs[@]}"; do
		dpkg-deb -x "$deb" plain
	done
	(cd "$B/dpkg_unpack/plain" && find . ! -type d | sort) >"$tmp/work/plain"
	[ "$(wc -l <"$tmp/work/plain")" -gt 40 ]
	while IFS= read -r f; do
		# Configuration files wait under another name.
		[ -e "root/$f" ] || [ -L "root/$f" ] || f=$f.dpkg-new
		if [ -L "root/$f" ]; then
			[ "$(readlink "root/$f")" = "$(readlink "plain/${f%.dpkg-new}")" ]
		else
			cmp "root/$f" "plain/${f%.dpkg-new}"
		fi
	done <"$tmp/work/plain"
	# What is there makes room for the same, by renames and links of backups.
	dpkg_in --unpack "${debs[@]}"
	right
	[ -z "$(find "$B/dpkg_unpack/root" -name '*.dpkg-tmp')" ]
	dpkg_in --force-remove-essential --purge hostname gzip
	[ ! -e root/bin/hostname ]
	[ ! -e "$B/dpkg_unpack/root/bin/gzip" ]
	[ "$(dpkg_in -l | grep -c '^iU')" = $((n - 2)) ]
}

# With the packages that tools/debian.sh --all fetched; no network.
debootstrap_small()
{
	local root=$PWD/root

	trap 'umount "$root/proc" "$root/sys" 2>/dev/null || true' EXIT
	said debootstrap --variant=minbase --no-check-gpg --unpack-tarball="$debian/minbase.tar" bookworm "$root" ||
		{ tail -n 20 "$root/debootstrap/debootstrap.log"; return 1; }
	umount "$root/proc" "$root/sys" 2>/dev/null || true
	drop_page_cache
	[ "$(chroot "$B/debootstrap_small/root" /bin/sh -c 'echo $((6 * 7))')" = 42 ]
	chroot "$root" dpkg --audit
	chroot "$root" dpkg -l | grep -c '^ii'
	[ "$(chroot "$root" dpkg -l | grep -c '^ii')" -gt 70 ]
	chroot "$root" dpkg --verify | refuse grep -v -E ' (c )?/(etc|usr/share/(doc|man|locale))/'
	chroot "$root" perl -e 'print "perl runs\n"'
}
