#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Wrong keys, hosts, volumes, versions, configurations and stores: refused in bounded time, with a message that names
# what is wrong. Of `pvfs` and of mount.pvfs (which stops short of the kernel here: -f).
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 2
start_cluster "$C"
M=$(mgr_address "$C")
host=${M%:*}
port=${M#*:}
iod=$(sed -n 's/.*address = "\(.*\)"; store = "iod0".*/\1/p' "$C/pvfs.conf")
K=$C/cluster.key
mkdir "$T/mnt"
mnt() { "$BIN/mount.pvfs" "$@"; }

ok "mount.pvfs -f" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K"
out=$(mnt "$host:$port:/test" "$T/mnt" -fv -o "key=$K,soft,timeo=50,nconnect=2,rsize=64k,ro,noatime,_netdev,nofail,x-systemd.automount,defaults,user=me")
like "... what the kernel gets" "$out" 'addr=127.0.0.1,port=[0-9]*,vol=test,host=127.0.0.1,keyhex=\.\.\.,timeo=50,nconnect=2,rsize=65536,soft"'
like "... but not the key" "$(grep -c "$(cat "$K")" <<<"$out")" '^0$'
ok "a host's name" mnt "localhost:$port:/test" "$T/mnt" -f -o "key=$K"
ok "the port as an option" mnt "$host:/test" "$T/mnt" -f -o "port=$port,key=$K"

# Keys.
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$T/wrong.key"
chmod 600 "$T/wrong.key"
for who in pvfs mount; do
	case $who in
	pvfs) run() { "$PVFS" -m "${2:-$M/test}" -k "$1" --timeout 5 ls; }; status=1 ;;
	mount) run() { mnt "${3:-$host:$port:/test}" "$T/mnt" -f -o "key=$1,mount_timeout=5"; }; status=32 ;;
	esac
	fails "$who: a wrong key names host and file" $status "$host:$port: refused the key in $T/wrong.key" run "$T/wrong.key"
	fails "$who: a missing key file" $status "$T/no.key: .*" run "$T/no.key"
	cp "$K" "$T/open.key"
	chmod 644 "$T/open.key"
	fails "$who: a key that others can read" $status "$T/open.key: .*(others|group|chmod|mode)" run "$T/open.key"
	head -c 63 "$K" >"$T/short.key"
	chmod 600 "$T/short.key"
	fails "$who: a key that is too short" $status "$T/short.key: " run "$T/short.key"
	fails "$who: an I/O daemon's address" $status "it is an I/O daemon, not a manager: name the address of pvfs-mgr" \
		run "$K" "$iod/test" "$iod:/test"
	mkdir -p "$T/dir.key"
	fails "$who: a key that is a directory" $status "$T/dir.key: " run "$T/dir.key"
	fails "$who: another volume" $status "$host:$port: has no volume 'nosuch'" run "$K" "$M/nosuch" "$host:$port:/nosuch"
	fails "$who: a host that can't be resolved" $status "nosuchhost.invalid" run "$K" "nosuchhost.invalid/test" "nosuchhost.invalid:/test"

	# Nobody listens there; and somebody who never answers.
	SECONDS=0
	fails "$who: no manager, host and port named" $status "$host:1: no answer" run "$K" "$host:1/test" "$host:1:/test"
	if [ $SECONDS -le 8 ]; then pass "... in bounded time"; else fail "... in bounded time" "$SECONDS s"; fi
	rm -f "$T/mute.port"
	"$BIN/tests/integ/fake_peer" mute >"$T/mute.port" &
	PIDS+=($!)
	wait_for 5 test -s "$T/mute.port"
	mute=$(cat "$T/mute.port")
	SECONDS=0
	fails "$who: one that is silent" $status "127.0.0.1:$mute: no answer" run "$K" "127.0.0.1:$mute/test" "127.0.0.1:$mute:/test"
	if [ $SECONDS -le 8 ]; then pass "... in bounded time"; else fail "... in bounded time" "$SECONDS s"; fi

	# One of another version, that knows the key; one that speaks something else.
	rm -f "$T/version.port"
	"$BIN/tests/integ/fake_peer" version "$K" >"$T/version.port" &
	PIDS+=($!)
	wait_for 5 test -s "$T/version.port"
	other=$(cat "$T/version.port")
	fails "$who: another version" $status "127.0.0.1:$other: .*version" run "$K" "127.0.0.1:$other/test" "127.0.0.1:$other:/test"
	rm -f "$T/noise.port"
	"$BIN/tests/integ/fake_peer" noise >"$T/noise.port" &
	PIDS+=($!)
	wait_for 5 test -s "$T/noise.port"
	other=$(cat "$T/noise.port")
	fails "$who: one that speaks something else" $status "127.0.0.1:$other: " run "$K" "127.0.0.1:$other/test" "127.0.0.1:$other:/test"
done
fails "status with a wrong key" 1 "refused the key|^$" "$PVFS" -c "$C/pvfs.conf" -k "$T/wrong.key" --timeout 5 status
like "... tells it of each" "$("$PVFS" -c "$C/pvfs.conf" -k "$T/wrong.key" --timeout 5 status --json 2>&1)" "refused the key"

# mount.pvfs's own checks.
fails "mount: no volume" 1 'must be "host:/volume"' mnt "$host" "$T/mnt" -f
fails "mount: a bad port" 1 "is not a port" mnt "$host:70000:/test" "$T/mnt" -f
fails "mount: an IPv6 address without brackets" 1 "brackets" mnt "::1:/test" "$T/mnt" -f
fails "mount: an unknown option" 1 "unknown option 'frob'" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,frob=1"
ok "mount: ... with -s it is ignored" mnt "$host:$port:/test" "$T/mnt" -f -s -o "key=$K,frob=1"
fails "mount: an option that needs a number" 1 "takes a number" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,soft,timeo=soon"
# 2^54 + 4, times 1024
fails "mount: a size that is too large to count" 1 "takes a number of 4096 .. 4194304" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,rsize=18014398509481988k"
fails "mount: a value that an option has not" 1 "'ro' takes no value" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,ro=1"
fails "mount: an option out of bounds" 1 "takes a number of 1 .. 256" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,nconnect=1000"
for o in cache=lease,lease=off lease=off,cache=lease actimeo=5,cache=lease; do
	fails "mount: $o" 1 "'cache=lease' needs leases: leave it out, or '(lease=off|actimeo)'" \
		mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,$o"
done
fails "mount: lease=on,actimeo=5" 1 "exclude each other" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,lease=on,actimeo=5"
ok "mount: the last one counts" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,lease=off,lease=on,cache=lease"
ok "mount: cache=none,lease=off" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,cache=none,lease=off"
fails "mount: timeo without soft" 1 "goes with 'soft'" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,timeo=50"
fails "mount: rsize that is no power of two" 1 "power of two" mnt "$host:$port:/test" "$T/mnt" -f -o "key=$K,rsize=5000"
fails "mount: too few arguments" 1 "Usage" mnt "$host:$port:/test"

# Configurations: file, line, what to do.
conf() { sed "$1" "$C/pvfs.conf" >"$T/x.conf"; cp "$C"/*.key "$T/"; }
conf 's/name = /nmae = /'
fails "an unknown key" 1 "x.conf:[0-9]+: .*nmae.*did you mean 'name'" "$PVFS" -c "$T/x.conf" ls
conf 's/^mgr: {/mgr: {\n\tlease_ms = 5;/'
fails "a number out of bounds" 1 "x.conf:[0-9]+: .*lease_ms.*bounds" "$PVFS" -c "$T/x.conf" ls
conf 's/^mgr: {/mgr: {\n\tthreads = "many";/'
fails "no number at all" 1 "x.conf:[0-9]+: .*threads.*number" "$PVFS" -c "$T/x.conf" ls
conf "/iod1/s/address = \"[^\"]*\"/address = \"$iod\"/"
fails "two daemons on one address" 1 "x.conf:[0-9]+: .*$iod" "$PVFS" -c "$T/x.conf" ls
conf 's/^);/;;;/'
fails "a syntax error" 1 "x.conf:[0-9]+: " "$PVFS" -c "$T/x.conf" ls
conf 's/^mgr: {/mgr: {\n\tthreads = 1;\n\tthreads = 2;/'
fails "a setting that is there twice" 1 "x.conf:[0-9]+: duplicate setting name \(it was set above already" "$PVFS" -c "$T/x.conf" ls
conf 's/server_key = .*/server_key = "cluster.key";/'
fails "one file for both keys" 1 "x.conf:[0-9]+: .*cluster_key.*server_key.*are both" "$PVFS" -c "$T/x.conf" ls
conf 's/server_key = .*/server_key = "copy.key";/'
install -m 600 "$C/cluster.key" "$T/copy.key"
sed -i "s|store = \"|&$C/|" "$T/x.conf"
"$PVFS" stop "$C" >/dev/null
fails "... or one key in both: the manager" 1 "copy.key: is the cluster key $T/cluster.key" "$BIN/pvfs-mgr" -c "$T/x.conf"
fails "... an I/O daemon" 1 "copy.key: is the cluster key $T/cluster.key" "$BIN/pvfs-iod" -c "$T/x.conf" -n 0
for x in pvfs-mgr "pvfs-iod -n 0"; do
	fails "$x --ready-fd that is not open" 2 "--ready-fd 99: is not open for writing" "$BIN/"$x -c "$C/pvfs.conf" --ready-fd 99
	fails "... open for reading only" 2 "is not open for writing" bash -c "'$BIN/'$x -c '$C/pvfs.conf' --ready-fd 9 9</dev/null"
	fails "... no number" 2 "takes a descriptor, not '4294967297'" "$BIN/"$x -c "$C/pvfs.conf" --ready-fd 4294967297
done

# Ports that are not written are the usual ones. Of loopback's addresses one that no other test has.
lo=127.77.$((RANDOM % 256)).$((1 + RANDOM % 254))
CLUSTERS+=("$T/ports")
ok "a cluster on the usual ports" "$PVFS" mkfs --dir "$T/ports" --iods 1 --name test --host $lo
is "... which need not be written" "$(sed -i "s/\(address = \"$lo\):710[01]\"/\1\"/" "$T/ports/pvfs.conf"; grep -c "\"$lo\"" "$T/ports/pvfs.conf")" 2
ok "... to start it" "$PVFS" start "$T/ports"
ok "... and to use it" "$PVFS" -m "$lo:7100/test" -k "$T/ports/cluster.key" ls
like "... the I/O daemon too" "$("$PVFS" -m "$lo/test" -k "$T/ports/cluster.key" status)" "iod0 +$lo:7101 +up"
"$PVFS" stop "$T/ports" >/dev/null
fails "no configuration" 1 "$T/none.conf" "$PVFS" -c "$T/none.conf" ls
for m in "$host" "$host/"; do
	fails "-m $m" 2 "'$m' must be .*host/volume" "$PVFS" -m "$m" ls
	fails "... behind the subcommand" 2 "ls: '$m' must be .*host/volume" "$PVFS" ls -m "$m"
done
fails "pvfs-iod --tune with what is no size" 2 "sendfile_min=-1: the value" "$BIN/pvfs-iod" -n 0 -c "$C/pvfs.conf" --tune sendfile_min=-1
fails "... and of what there is not" 2 "does not know 'frob=1'" "$BIN/pvfs-iod" -n 0 -c "$C/pvfs.conf" --tune frob=1

for o in "--mkfs --check" "--check --salvage $T/none" "--mkfs --salvage $T/none"; do
	fails "pvfs-mgr $o" 2 "of --check, --mkfs and --salvage only one" "$BIN/pvfs-mgr" -c "$C/pvfs.conf" $o
done

# Stores.
"$PVFS" stop "$C" >/dev/null
D=$T/d
make_cluster "$D" 2
mv "$D/iod1" "$D/iod1.mine"
cp -a "$C/iod1" "$D/iod1"
fails "another volume's store is refused" 1 "iod1: .*belongs to" "$PVFS" start "$D" --wait 20
rm -rf "$D/iod1"
cp -a "$D/iod0" "$D/iod1"
fails "another daemon's store is refused" 1 "iod1: .*belongs to iod 0" "$PVFS" start "$D" --wait 20
rm -rf "$D/iod1"
mv "$D/iod1.mine" "$D/iod1"
format=$(grep ^format "$D/iod1/pvfs.store")
sed -i 's/^format .*/format 99/' "$D/iod1/pvfs.store"
fails "a newer format is refused" 1 "format 99, newer" "$PVFS" start "$D" --wait 20
sed -i 's/^format .*/format 1/' "$D/iod1/pvfs.store"
fails "an older format is refused" 1 "format 1, older" "$PVFS" start "$D" --wait 20
sed -i "s/^format .*/$format/" "$D/iod1/pvfs.store"
mv "$D/mgr" "$D/mgr.mine"
cp -a "$C/mgr" "$D/mgr"
fails "another volume's manager's store is refused" 1 "mgr: .*belongs to" "$PVFS" start "$D" --wait 20
rm -rf "$D/mgr"
fails "a store that is not there" 1 "mgr: is not a PVFS store" "$PVFS" start "$D" --wait 20
mv "$D/mgr.mine" "$D/mgr"
ok "all as it should be" "$PVFS" start "$D" --wait 20
fails "a directory with others' files" 1 "is not empty" bash -c "mkdir -p '$T/e/mgr' && touch '$T/e/mgr/mine' && '$PVFS' mkfs --dir '$T/e' --port 0"
ok "... they are still there" test -e "$T/e/mgr/mine"
finish
