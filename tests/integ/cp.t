#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Copying in, out and within; sizes around every edge; holes; trees; resuming.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 4
start_cluster "$C"
S=65536			# stripe unit
N=4			# daemons

mkdir "$T/in" "$T/out"
sizes="0 1 $((S - 1)) $S $((S + 1)) $((N * S - 1)) $((N * S)) $((N * S + 1)) $((10 << 20)) $(((10 << 20) + 12345))"
for s in $sizes; do
	make_file "$T/in/f$s" "$s"
	p cp "$T/in/f$s" "pvfs:/f$s" && p cp "pvfs:/f$s" "$T/out/f$s"
	ok "$s bytes there and back" cmp "$T/in/f$s" "$T/out/f$s"
	is "... and the volume knows the size" "$(p stat --json "pvfs:/f$s" | json '{files}[0]{size}')" "$s"
	p cp "pvfs:/f$s" "pvfs:/g$s" && p cp "pvfs:/g$s" "$T/out/g$s"
	ok "... within the volume" cmp "$T/in/f$s" "$T/out/g$s"
done

# Other layouts.
for l in "4096 1" "4096 3" "131072 2" "1048576 4"; do
	set -- $l
	p mkdir "pvfs:/l$1-$2"
	ok "setstripe -S $1 -n $2" p setstripe -S "$1" -n "$2" -s 0 "pvfs:/l$1-$2"
	s=$((3 * $1 * $2 + $1 / 2 + 1))
	make_file "$T/in/x" $s
	p cp "$T/in/x" "pvfs:/l$1-$2/x" && p cp "pvfs:/l$1-$2/x" "$T/out/x"
	ok "... there and back" cmp "$T/in/x" "$T/out/x"
	is "... new files have it" \
		"$(p getstripe --json "pvfs:/l$1-$2/x" | json '{files}[0]{stripe_size} . " " . $j->{files}[0]{stripe_count}')" "$1 $2"
done
ok "setstripe makes a file" p setstripe -S 8k -n 2 -b 1 pvfs:/new
is "... with that layout" "$(p getstripe --json pvfs:/new | json '{files}[0]{stripe_base}')" 1
p mkdir pvfs:/stuffed
ok "setstripe -s of a directory" p setstripe -s 4k pvfs:/stuffed
is "... getstripe shows it" "$(p getstripe --json pvfs:/stuffed | json '{files}[0]{stuff_max}')" 4096
make_file "$T/4096" 4096
make_file "$T/4097" 4097
ok "files of the limit and one more" p cp "$T/4096" "$T/4097" pvfs:/stuffed
like "the one is with the manager" "$(p stat pvfs:/stuffed/4096)" "Datafiles: none, .* with the manager"
like "the other is not" "$(p stat pvfs:/stuffed/4097)" "Datafiles: iod"
ok "both copied out" p cp -r pvfs:/stuffed "$T/stuffed"
ok "... are right" cmp "$T/4096" "$T/stuffed/4096"
ok "... both" cmp "$T/4097" "$T/stuffed/4097"
ok "setstripe -n leaves it as it is" p setstripe -n 1 pvfs:/stuffed
is "... getstripe shows it" "$(p getstripe --json pvfs:/stuffed | json '{files}[0]{stuff_max}')" 4096
ok "setstripe -s 0" p setstripe -s 0 pvfs:/stuffed
is "... getstripe shows it" "$(p getstripe --json pvfs:/stuffed | json '{files}[0]{stuff_max}')" 0
p mkdir pvfs:/keep
layout() { p getstripe --json "$1" | json '{files}[0]{stripe_base} . " " . $j->{files}[0]{stripe_count} . " " . $j->{files}[0]{stripe_size} . " " . $j->{files}[0]{stuff_max}'; }
p setstripe -S 8k -n 2 -b 1 -s 4k pvfs:/keep
for o in "-S 16k" "-n 3" "-b any" "-s 0" "-n 0"; do p setstripe $o pvfs:/keep; layout pvfs:/keep; echo; done >"$T/keep"
is "setstripe keeps what it is not given" "$(cat "$T/keep")" "1 2 16384 4096
1 3 16384 4096
any 3 16384 4096
any 3 16384 0
any 4 16384 0"
p setstripe -n 2 -b 3 pvfs:/keep
ok "setstripe makes a file" p setstripe -S 32k pvfs:/keep/new
is "... which has the rest of its directory" "$(layout pvfs:/keep/new)" "3 2 32768 0"
fails "setstripe -s beyond the limit" 2 "at most 64k" p setstripe -s 65k pvfs:/stuffed
fails "setstripe of a file with data" 1 "pvfs setstripe: pvfs:/f$S: it was written to already" p setstripe -S 8k "pvfs:/f$S"
fails "setstripe over too many daemons" 1 "more daemons than the volume has" p setstripe -n 5 pvfs:/l4096-1
fails "setstripe with an odd unit" 2 "power of two" p setstripe -S 5000 pvfs:/l4096-1

# stat says which daemon has what.
like "stat shows the datafiles" "$(p stat "pvfs:/f$((10 << 20))")" "iod3 "
is "... and in JSON their bytes add up" \
	"$(p stat --json "pvfs:/f$((10 << 20))" | perl -MJSON::PP -e 'local $/; my $s = 0; $s += $_->{bytes} for @{decode_json(<STDIN>)->{files}[0]{datafiles}}; print $s')" $((10 << 20))

# Holes.
truncate -s 40M "$T/in/sparse"
make_file "$T/x" 100000
dd if="$T/x" of="$T/in/sparse" bs=100000 seek=$((17 << 20)) oflag=seek_bytes conv=notrunc status=none
p cp "$T/in/sparse" pvfs:/sparse && p cp pvfs:/sparse "$T/out/sparse"
ok "a sparse file there and back" cmp "$T/in/sparse" "$T/out/sparse"
if [ "$(du -k "$T/out/sparse" | cut -f1)" -lt 4096 ]; then pass "... is sparse still"; else fail "... is sparse still"; fi
truncate -s 3M "$T/in/hole"
p cp "$T/in/hole" pvfs:/hole && p cp pvfs:/hole "$T/out/hole"
ok "a file that is one hole" cmp "$T/in/hole" "$T/out/hole"

# Overwriting with less.
make_file "$T/short" 1000
ok "a long file is replaced by a short one" p cp "$T/short" "pvfs:/f$((10 << 20))"
p cp "pvfs:/f$((10 << 20))" "$T/out/short"
ok "... nothing of the long one is left" cmp "$T/short" "$T/out/short"

# Trees.
mkdir -p "$T/tree/a/b/c" "$T/tree/empty" "$T/tree/d"
make_file "$T/tree/a/one" 10
make_file "$T/tree/a/b/two" 200000
make_file "$T/tree/a/b/c/three" 9000000
for i in $(seq 200); do echo "$i" >"$T/tree/d/$i"; done
ln -s ../a/one "$T/tree/d/link"
ln -s nowhere "$T/tree/d/dangling"
mkfifo "$T/tree/d/fifo"
chmod 600 "$T/tree/a/one"; chmod 4711 "$T/tree/a/b/two"; chmod 555 "$T/tree/a/b"
touch -d "2001-02-03 04:05:06.789012345" "$T/tree/a/one" "$T/tree/a" "$T/tree/d/17"
fails "a directory without -r" 1 "-r copies it" p cp "$T/tree" pvfs:/
ok "a tree goes in" p cp -rp "$T/tree" pvfs:/
ok "a tree comes out" p cp -rp pvfs:/tree "$T/tree2"
list() { (cd "$1" && find . -printf '%p %y %m %l %s %T@ %U %G\n' | sed -E 's/^(\S+ d \S+ )( ?)[0-9]+ /\1/' | sort); }
is "... names, modes, links, sizes, times" "$(list "$T/tree2" | sha256sum)" "$(list "$T/tree" | sha256sum)"
[ "$(list "$T/tree2")" = "$(list "$T/tree")" ] || diff <(list "$T/tree") <(list "$T/tree2") | sed 's/^/# /' | head
ok "... contents" diff -r --no-dereference "$T/tree/a" "$T/tree2/a"
ok "a tree goes in over itself" p cp -rp "$T/tree" pvfs:/
ok "... and comes out over itself" p cp -rp pvfs:/tree "$T"
rm "$T/tree2/d/link" "$T/tree2/d/dangling" "$T/tree2/d/fifo"
touch "$T/tree2/d/link" "$T/tree2/d/fifo"
ln -s elsewhere "$T/tree2/d/dangling"
mkdir "$T/over"
mv "$T/tree2" "$T/over/tree"
ok "... and over one where links and pipes are other things" p cp -rp pvfs:/tree "$T/over"
is "... all is as it was" "$(list "$T/over/tree")" "$(list "$T/tree")"
mv "$T/over/tree" "$T/tree2"
is "ls -R lists it" "$(p ls -R pvfs:/tree | grep -c .)" "$(($(find "$T/tree" | wc -l) - 1 + $(find "$T/tree" -type d | wc -l)))"
like "ls -l shows where a link leads" "$(p ls -l pvfs:/tree/d)" "link -> ../a/one"
is "ls --json" "$(p ls --json pvfs:/tree/d | json '{entries} && scalar @{$j->{entries}}')" 203
fails "into itself" 1 "left out" p cp -r pvfs:/tree pvfs:/tree/a
fails "onto itself" 1 "same file" p cp "pvfs:/f$S" "pvfs:/f$S"
ok "... which did it no harm" bash -c "'$PVFS' -c '$C/pvfs.conf' cp pvfs:/f$S '$T/out/again' && cmp '$T/in/f$S' '$T/out/again'"
fails "rm of a directory without -r" 1 "-r removes" p rm pvfs:/tree
ok "rm -r" p rm -r pvfs:/tree
fails "... it is gone" 1 "No such file" p stat pvfs:/tree
ok "rm -f of nothing" p rm -f pvfs:/tree

# What must not be removed, made or changed by mistake.
p mkdir pvfs:/precious
touch "$T/local"
for r in / // pvfs:/ pvfs: pvfs://. pvfs:/precious/..; do
	fails "rm -rf $r is the whole volume" 1 "whole volume.*--all-of-it" p rm -rf "$r"
done
for c in rm mkdir setstripe; do
	fails "$c of a local path" 2 "in the volume it is pvfs:$T/local" p $c "$T/local"
done
fails "... of a relative one, among others" 2 "local path.*pvfs:/local" bash -c "cd '$T' && '$PVFS' -c '$C/pvfs.conf' rm -r pvfs:/precious local"
is "... and nothing was removed" "$(p ls -d pvfs:/precious)" /precious
for c in ls stat; do
	fails "$c of a local path says where it looks" 1 "No such file or directory \(it is looked for in the volume\)" p $c "$T/local"
	fails "... but not where that is clear" 1 "No such file or directory$" p $c "pvfs:$T/local"
done
for c in leases getstripe; do
	fails "$c of a local path says that it is one" 1 "/in: is a local path, and not on a mounted volume; there is no pvfs:/.*/in either" p $c "$T/in"
	fails "... but not of one that is none" 1 "/none: No such file or directory$" p $c "$T/none"
done
fails "a source that is not there" 1 "No such file" p cp "$T/nothing" pvfs:/x
fails "neither side in the volume" 2 "pvfs:/path" p cp "$T/in/f1" "$T/out/y"
fails "a target directory that is not there" 1 "No such file|not a directory" p cp "$T/in/f1" "$T/in/f0" pvfs:/nodir

# mkdir -p, several sources.
ok "mkdir -p" p mkdir -p pvfs:/m/n/o
ok "... again" p mkdir -p pvfs:/m/n/o
fails "mkdir of what exists" 1 "exists" p mkdir pvfs:/m
ok "several sources" p cp "$T/in/f1" "$T/in/f0" "$T/in/f$S" pvfs:/m/n/o
is "... all are there" "$(p ls pvfs:/m/n/o | wc -l)" 3

# Resuming. The file's second half is a daemon's that does not answer, so the copy waits in its middle; the first signal
# ends it. It says how to go on.
noted() { p cp pvfs:/halves/.big.pvfs-resume "$T/noted" && grep "done $1" "$T/noted"; }
make_file "$T/in/big" $((16 << 20))
p mkdir pvfs:/halves
p setstripe -S 8M -n 2 -b 1 pvfs:/halves
for signal in TERM INT; do
	freeze "$(pid_of iod2)"
	"$PVFS" -c "$C/pvfs.conf" cp --chunk 1M --checkpoint 0 -j 1 "$T/in/big" pvfs:/halves/big 2>"$T/cp.err" &
	cp=$!
	PIDS+=($cp)
	ok "a copy comes as far as it can" wait_for 30 noted 8388608
	kill -$signal $cp
	is "... ends at the first SIG$signal" "$(wait_for 5 bash -c "! grep -qs '^State:.[^Z]' /proc/$cp/status" && echo ended)" ended
	kill -KILL $cp 2>/dev/null
	wait $cp 2>/dev/null
	is "... with status 130" $? 130
	like "... and says how to go on" "$(cat "$T/cp.err")" "interrupted: .*; --resume"
	kill -CONT "$(pid_of iod2)"
	out=$(p cp --resume --chunk 1M "$T/in/big" pvfs:/halves/big 2>&1)
	is "--resume" "$?" 0
	like "... goes on, does not begin anew" "$out" "going on at byte 8388608"
	p cp pvfs:/halves/big "$T/out/big"
	is "... and the copy is right" "$(sum "$T/out/big")" "$(sum "$T/in/big")"
	fails "... no note is left" 1 "No such file" p stat pvfs:/halves/.big.pvfs-resume
	p rm pvfs:/halves/big
done

# Before there is a note nothing is promised. Here it is the first chunk that does not come: whoever copies is seen by
# what he has open.
p setstripe -S 8M -n 2 -b 2 pvfs:/halves
freeze "$(pid_of iod2)"
"$PVFS" -c "$C/pvfs.conf" cp --chunk 1M --checkpoint 0 -j 1 "$T/in/big" pvfs:/halves/none 2>"$T/cp.err" &
cp=$!
PIDS+=($cp)
ok "a copy that comes nowhere" wait_for 30 bash -c "'$PVFS' -c '$C/pvfs.conf' leases --json pvfs:/halves/none | grep '\"writers\":1'"
kill -TERM $cp
wait $cp 2>/dev/null
is "... ends with 130" $? 130
like "... and says why" "$(cat "$T/cp.err")" "interrupted: a server does not answer"
is "... and promises nothing" "$(grep -c -e --resume "$T/cp.err")" 0
kill -CONT "$(pid_of iod2)"
p setstripe -S 8M -n 2 -b 1 pvfs:/halves

# With daemons that answer, it ends in its own time.
freeze "$(pid_of iod2)"
"$PVFS" -c "$C/pvfs.conf" cp --chunk 1M --checkpoint 0 -j 1 "$T/in/big" pvfs:/halves/big 2>"$T/cp.err" &
cp=$!
PIDS+=($cp)
ok "a copy comes as far as it can" wait_for 30 noted 8388608
kill -INT $cp
kill -CONT "$(pid_of iod2)"
wait $cp 2>/dev/null
is "... an interrupted one ends with 130" $? 130
like "... and says how to go on" "$(cat "$T/cp.err")" "interrupted[;:] .*--resume"
like "--resume goes on" "$(p cp --resume --chunk 1M "$T/in/big" pvfs:/halves/big 2>&1)" "going on at byte [1-9]"
p cp pvfs:/halves/big "$T/out/big"
is "... and the copy is right" "$(sum "$T/out/big")" "$(sum "$T/in/big")"

# A note that is not true any more.
make_file "$T/in/big2" $((16 << 20))
p cp "$T/in/big2" pvfs:/big2
printf 'pvfs-resume 1\nino 1\nsize %d\nmtime 0.000000000\ndone 8388608\n' $((16 << 20)) >"$T/note"
p cp "$T/note" pvfs:/.big2.pvfs-resume
like "a note of another source" "$(p cp --resume "$T/in/big2" pvfs:/big2 2>&1)" "from the beginning: the source is not"
p cp pvfs:/big2 "$T/out/big2"
ok "... is not believed" cmp "$T/in/big2" "$T/out/big2"
eval "$(stat -c 'ino=%i mt=%.9Y' "$T/in/big2")"
printf 'pvfs-resume 1\nino %s\nsize %d\nmtime %s\ndone 8388608\n' "$ino" $((16 << 20)) "$mt" >"$T/note"
p cp "$T/note" pvfs:/.big2.pvfs-resume
p cp "$T/in/big" pvfs:/big2
p cp "$T/note" pvfs:/.big2.pvfs-resume
like "a copy that was changed" "$(p cp --resume "$T/in/big2" pvfs:/big2 2>&1)" "from the beginning: the copy was changed"
p cp pvfs:/big2 "$T/out/big2"
ok "... is made anew" cmp "$T/in/big2" "$T/out/big2"
p cp "$T/note" pvfs:/.big2.pvfs-resume
like "a note that is true" "$(p cp --resume "$T/in/big2" pvfs:/big2 2>&1)" "going on at byte 8388608 of 16777216"
p cp pvfs:/big2 "$T/out/big2"
ok "... is believed" cmp "$T/in/big2" "$T/out/big2"

ok "rm -r --all-of-it" p rm -r --all-of-it pvfs:/
is "... empties it" "$(p ls pvfs:/)" ""
finish
