#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What copies keep: attributes, ACLs, owners, modes and times with -p; holes always. And who does the work within the
# volume.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 4
start_cluster "$C"

# All attributes, ACLs among them as text, of a tree, in an order of their own.
attributes() {
	(cd "$1" && find . | LC_ALL=C sort | while read -r f; do getfattr --absolute-names -h -d -m - -e hex "$f"; done; getfacl -R -n -p -P . | sort)
}

# A tree with what there is: binary, empty and long values, one that is not for everyone to see, what a program may do, of
# directories and of a link; ACLs, defaults, and a file without one below a default.
mkdir -p "$T/in/dir/below" "$T/in/plain"
make_file "$T/in/dir/f" 300000
make_file "$T/in/plain/f" 10
make_file "$T/in/plain/ro" 10
ln -s plain/f "$T/in/link"
setfattr -n user.text -v hello "$T/in/dir/f"
setfattr -n user.empty "$T/in/dir/f"
setfattr -n user.binary -v "0x$(head -c 2000 /dev/urandom | od -An -v -tx1 | tr -d ' \n')" "$T/in/dir/f"
setfattr -n user.ofdir -v x "$T/in/plain"
setfattr -n user.ro -v x "$T/in/plain/ro"
chmod 444 "$T/in/plain/ro"
setfacl -m u:1000:rwx,g:7:r,m:rx "$T/in/plain/f"
setfacl -m d:u:1000:rwx,u:1001:x "$T/in/dir"
make_file "$T/in/dir/below/inherits" 10
touch "$T/in/dir/bare"
setfacl -b "$T/in/dir/bare" "$T/in/dir/below"
if [ "$(id -u)" = 0 ]; then
	setfattr -n trusted.root -v secret "$T/in/dir/f"
	setfattr -h -n trusted.link -v l "$T/in/link"
	setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 "$T/in/plain/f"
	chown 1000:7 "$T/in/plain/f" "$T/in/dir/below"
	setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 "$T/in/plain/f"
fi
chmod 2751 "$T/in/plain"
touch -d "2001-02-03 04:05:06.789012345" "$T/in/plain/f" "$T/in/plain"

p mkdir pvfs:/v
ok "a tree with attributes and ACLs goes in" p cp -rp "$T/in" pvfs:/v
ok "... is copied within the volume" p cp -rp pvfs:/v/in pvfs:/v/again
ok "... and comes out" p cp -rp pvfs:/v/again "$T/out"
is "all are there" "$(attributes "$T/out")" "$(attributes "$T/in")"
list() { (cd "$1" && find . -printf '%p %y %m %l %T@ %U %G\n' | sort); }
is "... and modes, times, owners" "$(list "$T/out")" "$(list "$T/in")"
ok "... and bytes" cmp "$T/in/dir/f" "$T/out/dir/f"
ok "a second time, over what is there" p cp -rp "$T/in/dir" pvfs:/v/in
ok "one file" p cp -p pvfs:/v/in/plain/f "$T/one"
is "... with its ACL" "$(getfacl -cnp "$T/one")" "$(getfacl -cnp "$T/in/plain/f")"
is "... and its attributes" "$(getfattr --absolute-names -d -m - -e hex "$T/one" | tail -n +2)" "$(getfattr --absolute-names -d -m - -e hex "$T/in/plain/f" | tail -n +2)"
ok "without -p" p cp -r pvfs:/v/in "$T/bare"
is "... there are none" "$(getfattr --absolute-names -R -d -m '^(user|security.cap|trusted)' "$T/bare")" ''

# Into a directory that would have its own inherited.
ok "an ACL that the copy would inherit" p cp -p "$T/in/dir/bare" pvfs:/v/again/dir/bare2
p cp -p pvfs:/v/again/dir/bare2 "$T/bare2"
is "... is not there" "$(getfacl -cnp "$T/bare2")" "$(getfacl -cnp "$T/in/dir/bare")"

# What can't be kept: said of which file, what, and why; all else is there.
if [ "$(id -u)" = 0 ]; then
	cp "$C/cluster.key" "$T/nobody.key"
	chown 65534 "$T/nobody.key"
	chmod 755 "$T"
	as_nobody() {
		setpriv --reuid 65534 --regid 65534 --clear-groups "$PVFS" -m "$(mgr_address "$C")/test" -k "$T/nobody.key" --timeout 20 "$@"
	}
	make_file "$T/root" 10
	chmod 666 "$T/root"
	p cp -p "$T/root" pvfs:/root
	setfattr -n user.mine -v x "$T/one"
	chmod 4755 "$T/one"
	err=$(as_nobody cp -p "$T/one" pvfs:/root 2>&1)
	is "a copy onto somebody else's file" $? 1
	is "... says what is not kept" "$err" "pvfs cp: /root: ACL not kept: Operation not permitted
pvfs cp: /root: mode not kept: Operation not permitted
pvfs cp: /root: times not kept: Operation not permitted"
	p cp -p pvfs:/root "$T/back"
	ok "... the bytes are" cmp "$T/one" "$T/back"
	is "... and what can be" "$(getfattr --absolute-names --only-values -n user.mine "$T/back")" x
	(umask 0; p mkdir --mode 777 pvfs:/pub)
	ok "somebody's copy of another's program" as_nobody cp -rp "$T/one" "$T/in/plain/ro" pvfs:/pub
	is "... is theirs" "$(p stat --json pvfs:/pub/one | json '{files}[0]{uid}')" 65534
	is "... and not set-user-ID" "$(p stat --json pvfs:/pub/one | json '{files}[0]{mode} & 07777')" $((0755))
	p cp -p pvfs:/pub/ro "$T/ro"
	is "a file that its owner may only read has its attribute" "$(getfattr --absolute-names --only-values -n user.ro "$T/ro")" x
fi

# Holes: none filled, whatever the sides and layouts. Blocks are of 512 bytes.
blocks() { p stat --json "$1" | json '{files}[0]{blocks}'; }
make_file "$T/x" 65536
truncate -s 20M "$T/holes"
for at in 0 3 5 100 163 319; do
	dd if="$T/x" of="$T/holes" bs=64k seek=$at conv=notrunc status=none
done
dd if="$T/in/dir/f" of="$T/holes" bs=64k seek=200 conv=notrunc status=none
truncate -s 30000001 "$T/holes"
want=$(stat -c %b "$T/holes")
p mkdir pvfs:/narrow
p setstripe -S 4k -n 3 pvfs:/narrow
same() { if [ "$2" -le $((want + 64)) ] && [ "$2" -ge 1 ]; then pass "$1"; else fail "$1" "$2 blocks, not $want"; fi; }
p cp "$T/holes" pvfs:/holes
same "holes go in" "$(blocks pvfs:/holes)"
p cp pvfs:/holes pvfs:/holes2
same "... within the volume" "$(blocks pvfs:/holes2)"
p cp pvfs:/holes pvfs:/narrow/holes
same "... into another layout's directory" "$(blocks pvfs:/narrow/holes)"
p setstripe -S 8k -n 2 pvfs:/layout
dd if="$T/x" of="$T/y" bs=1 count=1 status=none
p cp "$T/y" pvfs:/layout
p cp pvfs:/holes pvfs:/layout
same "... into a file of another layout" "$(blocks pvfs:/layout)"
for f in holes2 narrow/holes layout; do
	p cp pvfs:/$f "$T/came"
	ok "$f: the bytes are right" cmp "$T/holes" "$T/came"
	same "... and the holes came out" "$(stat -c %b "$T/came")"
	rm "$T/came"
done
truncate -s 50M "$T/hole"
p cp "$T/hole" pvfs:/hole && p cp pvfs:/hole pvfs:/hole2 && p cp pvfs:/hole2 "$T/hole2"
ok "one hole, in, within and out" cmp "$T/hole" "$T/hole2"
is "... takes nothing" "$(blocks pvfs:/hole2) $(stat -c %b "$T/hole2")" "0 0"

# Within the volume the bytes don't come here, if both are laid out alike, as a new file is.
make_file "$T/big" $((40 << 20))
p cp "$T/big" pvfs:/big
out=$(p cp --counters pvfs:/big pvfs:/big2 2>&1)
like "the I/O daemons copy" "$out" 'COPY'
is "... and nobody reads or writes" "$(grep -Ec '\b(READ|WRITE)\b' <<<"$out")" 0
p cp pvfs:/big2 "$T/big2"
ok "... the bytes are right" cmp "$T/big" "$T/big2"
out=$(p cp --counters pvfs:/big pvfs:/layout 2>&1)
is "not into a file that was laid out otherwise" "$(grep -c COPY <<<"$out")" 0
p cp pvfs:/layout "$T/big2"
ok "... the bytes are right" cmp "$T/big" "$T/big2"
finish
