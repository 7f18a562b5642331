#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest: the graphs of the small-file paper, for files that are not
# stuffed (none), and for those up to 64 KiB stuffed in the database (db) and in
# files beside it (file). Its lines:
#
#	WHERE postmark-SIZE READ WRITTEN	MB/s of PostMark, of files of so many KiB
#	WHERE beside-N WRITE READ FILES		MB/s of a client with a large file beside N with
#						small ones, and how many files these make,
#						write, read and remove a second
#
#	postmark.sh ROUNDS
. "${0%/*}/lib.sh"

rounds=${1:-1}
copy postmark cat rm
conf=/run/pvfs-cluster/volume/pvfs.conf

store()
{
	sed -i '/stuff_store/d; s/^mgr: {/mgr: {\n\tstuff_store = "'"$1"'";/' $conf
	"$cluster" kill mgr TERM && "$cluster" start mgr || die "the manager does not start"
}

# PostMark with as many files of $1 KiB as have 64 MiB, 200 at most.
postmark()
{
	local bytes=$(($1 * 1024)) n t0 t1

	n=$((65536 / $1 < 200 ? 65536 / $1 : 200))
	printf '%s\n' "set location mark" "set size $bytes $bytes" "set number $n" "set transactions $((2 * n))" \
		"set buffering false" "set read 65536" "set write 65536" run quit >$work/postmark.txt
	mkdir mark
	cold
	t0=$EPOCHREALTIME
	program postmark $work/postmark.txt >$work/postmark.out || return 1
	t1=$EPOCHREALTIME
	rmdir mark
	# What it says of its time is in whole seconds.
	awk -v t="$t0 $t1" '
		/(bytes|kilobytes|megabytes|gigabytes) (read|written)/ {
			u["bytes"] = 1e-6; u["kilobytes"] = 1024e-6; u["megabytes"] = 1.048576; u["gigabytes"] = 1073.741824
			mb[$3] = $1 * u[$2]
		}
		END { split(t, a); s = a[2] - a[1]; if (!mb["read"]) exit 1; printf "%.2f %.2f\n", mb["read"] / s, mb["written"] / s }
	' $work/postmark.out
}

# Until somebody removes the file "on".
small_client()
{
	local n=0

	mkdir "small$1"
	while [ -e $work/on ]; do
		$b put "small$1" 20 && $b get "small$1" 20 && $b unlink "small$1" 20 || return 1
		n=$((n + 20))
	done >/dev/null
	echo $n >"$work/small$1"
	rmdir "small$1"
}

# A large file beside $1 clients with small ones.
beside()
{
	local n=$1 i w r t0 t1
	local -a pids=()

	touch $work/on
	for ((i = 0; i < n; i++)); do
		small_client $i &
		pids+=($!)
	done
	t0=$EPOCHREALTIME
	w=$($b write big 1024 1048576) && cold && r=$($b read big 1024 1048576) || return 1
	t1=$EPOCHREALTIME
	rm $work/on big
	for i in "${pids[@]}"; do
		wait "$i" || return 1
	done
	echo "${w%% *} ${r%% *} $(for ((i = 0; i < n; i++)); do cat $work/small$i; done |
		awk -v t="$t0 $t1" '{ n += $1 } END { split(t, a); printf "%.0f\n", n / (a[2] - a[1]) }')"
}

pvfs_up
for ((r = 1; r <= rounds; r++)); do
	echo "round $r of $rounds"
	raw_limits
	for where in none db file; do
		[ $where = none ] || store $where
		mkdir /mnt/pvfs/w
		cd /mnt/pvfs/w || exit 1
		"$build/pvfs" setstripe -s $([ $where = none ] && echo 0 || echo 64k) . >/dev/null || die "pvfs setstripe failed"
		for size in 1 4 10 16 32 64 128 256 1024 4096; do
			put $where postmark-$size postmark $size
		done
		for n in 0 1 2 3 4; do
			put $where beside-$n beside $n
		done
		cd /
		rm -rf /mnt/pvfs/w
	done
done
"$build/pvfs" tune -m "$("$cluster" device)" -k /run/pvfs-cluster/volume/cluster.key 2>&1 | tee "$PVFS_OUT/tune.txt"
