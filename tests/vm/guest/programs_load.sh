# SPDX-License-Identifier: GPL-2.0-only
#
# Load and verify, for programs.sh: fio, dbench, stress-ng.
# shellcheck shell=bash disable=SC2154

program short 90 fio_psync "fio verify: psync, buffered and direct, two jobs"
program short 90 fio_libaio "fio verify: libaio, direct and buffered"
program short 90 fio_io_uring "fio verify: io_uring, direct and buffered"
program short 90 fio_mmap "fio verify: mmap"
program short 90 fio_vectors "fio verify: pvsync2, splice, and sync with an fsync and a sync_file_range now and then"
program short 120 fio_two "fio: written on one mount, verified on the other, by every engine"
program short 120 dbench_run "dbench"
program long 400 stress_together "stress-ng: a choice of the file-system stressors at once"
program long 3000 stress_each "stress-ng: each of the file-system stressors"

# fio_verify NAME OPTION...: in ./in-NAME, random reads and writes of random sizes, then
# all of what was written last is read and compared.
fio_verify()
{
	local name=$1 size=4m

	shift
	[ "$level" != long ] || size=64m
	# fio takes a directory of the job's name for the file.
	mkdir "in-$name"
	fio --name="$name" --directory="$PWD/in-$name" --size=$size --rw=randrw --bsrange=4k-96k --bs_unaligned=0 \
		--verify=crc32c --verify_fatal=1 --verify_dump=0 --do_verify=1 --group_reporting --eta=never \
		"$@" >"$tmp/work/fio" 2>&1 || { echo "$name: $*"; grep -v '^  ' "$tmp/work/fio"; return 1; }
	# It read, wrote and found no error.
	grep -q 'err= 0' "$tmp/work/fio"
	grep -q 'WRITE: bw=' "$tmp/work/fio"
	grep -q 'READ: bw=' "$tmp/work/fio"
	rm -r "in-$name"
}

fio_psync()
{
	fio_verify buffered --ioengine=psync --numjobs=2
	fio_verify direct --ioengine=psync --direct=1 --numjobs=2
	fio_verify odd --ioengine=psync --bsrange=512-70000 --bs_unaligned=1 --end_fsync=1
}

fio_libaio()
{
	fio_verify direct --ioengine=libaio --direct=1 --iodepth=16
	fio_verify buffered --ioengine=libaio --iodepth=16
}

fio_io_uring()
{
	fio_verify direct --ioengine=io_uring --direct=1 --iodepth=16
	fio_verify buffered --ioengine=io_uring --iodepth=16
	fio_verify fixed --ioengine=io_uring --direct=1 --iodepth=8 --fixedbufs=1 --registerfiles=1
}

fio_mmap()
{
	fio_verify mapped --ioengine=mmap --numjobs=2
	fio_verify synced --ioengine=mmap --fsync=16
}

fio_vectors()
{
	fio_verify pvsync2 --ioengine=pvsync2
	fio_verify splice --ioengine=splice
	fio_verify synced --ioengine=sync --fsync=8 --sync_file_range=write:4 --fallocate=keep
}

fio_two()
{
	local e how

	for e in psync libaio io_uring mmap; do
		how="--name=two --filename=$e --size=4m --rw=randwrite --bsrange=4k-64k --verify=crc32c --verify_fatal=1
			--ioengine=$e --eta=never --randseed=77"
		# shellcheck disable=SC2086 # words
		said fio --directory="$PWD" $how --do_verify=0 --end_fsync=1
		# shellcheck disable=SC2086
		said fio --directory="$B/fio_two" $how --verify_only
		grep -q 'READ: bw=' "$tmp/work/said"
		cmp "$e" "$B/fio_two/$e"
	done
}

dbench_run()
{
	local t=5 n=2 ops=0

	[ "$level" != long ] || { t=60; n=8; }
	# It ends by the clock: on a busy machine before it has come to most of its calls. Then once more, for longer.
	for ((; t <= 80 && ops < 5; t *= 4)); do
		dbench -c /usr/share/dbench/client.txt -t $t -D "$PWD" $n >"$tmp/work/dbench" 2>&1 ||
			{ grep -v ' cleanup ' "$tmp/work/dbench" | tail -n 30; return 1; }
		ops=$(grep -cE '^ (NTCreateX|Rename|Unlink|ReadX|WriteX|Flush) ' "$tmp/work/dbench") || true
	done
	tail -n 2 "$tmp/work/dbench"
	# Where there are no semaphores its clients just don't wait for each other.
	grep -v 'barrier semaphore' "$tmp/work/dbench" | refuse grep -iE 'error|failed|expected'
	grep -q '^Throughput [0-9.]* MB/sec' "$tmp/work/dbench"
	grep -E '^ (NTCreateX|Rename|Unlink|ReadX|WriteX|Flush) ' "$tmp/work/dbench" | tee "$tmp/work/ops"
	[ "$(wc -l <"$tmp/work/ops")" -ge 5 ]
}

# What stress-ng counts among its file-system stressors and is none of ours:
#	binderfs	mounts a file system of its own
#	bind-mount	mounts the root over itself
#	eventfd, dup	no file of a file system; the table of open files
#	ioprio, procfs	the block layer's priorities; /proc
#	hdd		is what fio does, and takes the longest
not_ours=' binderfs bind-mount eventfd dup ioprio procfs hdd '

# What there is, by the program itself, with some of its other classes that are for files.
stressors()
{
	local s

	stress-ng --help >"$tmp/work/stress-help" 2>&1
	for s in $(stress-ng --class 'filesystem?' 2>&1 | sed 's/.*stressors: //') \
			aio aiol fifo metamix mmap mmapfixed msync readahead revio seek sendfile splice tee vm-splice; do
		[[ $not_ours != *" $s "* ]] || continue
		! grep -qE -- "--$s N( |\$)" "$tmp/work/stress-help" || echo "$s"
	done
}

# stress DIRECTORY SECONDS NAME=OPS...: all of them at once, an instance each.
stress()
{
	local d=$1 t=$2 s
	local -a o=()

	shift 2
	for s; do
		o+=("--${s%=*}" 1 "--${s%=*}-ops" "${s#*=}")
	done
	rm -rf "$d"
	mkdir -p "$d"
	stress-ng --temp-path "$d" --verify --metrics-brief --timeout "$t" --fallocate-bytes 16m --iomix-bytes 4m \
		--seek-size 4m --readahead-bytes 4m --sync-file-bytes 4m --mmap-bytes 4m --mmap-file \
		--copy-file-bytes 128m --aiol-requests 8 --open-max 256 --no-rand-seed "${o[@]}" 2>&1 || echo "status $?"
}

# stress_passed NAME OUTPUT: it did something, and neither complained nor refused.
stress_passed()
{
	awk -v name="$1" '
		/miscellaneous metrics/ { rest = 1 }
		$2 == "metrc:" && $4 == name && !rest { did = $5 }
		$2 == "fail:" || $2 == "error:" || /skipping|not implemented|aborted early/ {
			if (index($0, " " name ":") || index($0, "(" name ")"))
				bad = 1
		}
		END { exit !(did > 0 && !bad) }' "$2"
}

# What is not passed here must be just so on the control. stress_compare SECONDS NAME=OPS...
stress_compare()
{
	local t=$1 c=$C/stress s name bad=0

	shift
	rm -f "$tmp/work/stress.control"
	stress "$PWD/s" "$t" "$@" >"$tmp/work/stress"
	for s; do
		name=${s%=*}
		if stress_passed "$name" "$tmp/work/stress"; then
			passed=$((passed + 1))
			continue
		fi
		# The same company, on the control.
		[ -e "$tmp/work/stress.control" ] || stress "$c" "$t" "$@" >"$tmp/work/stress.control"
		if stress_passed "$name" "$tmp/work/stress.control"; then
			echo "$name is passed by the control, here:"
			grep -E "[ (]$name[:)]" "$tmp/work/stress" || tail -n 5 "$tmp/work/stress"
			bad=1
		else
			echo "$name is not passed by the control either:"
			grep -E "${name}[:)]" "$tmp/work/stress.control" | head -n 2
		fi
	done
	rm -rf "$PWD/s" "$c"
	return $bad
}

stress_together()
{
	local passed=0

	# No filename, xattr, dir, touch: one operation of theirs takes half a minute in an emulated guest.
	stress_compare 40 access=5 chmod=5 dentry=64 fallocate=1 fcntl=100 flock=100 fstat=50 \
		getdent=20 iomix=50 locka=50 lockofd=50 rename=50 seek=50 utime=20
	[ $passed -ge 12 ]
}

stress_each()
{
	local s bad=0 n=0 passed=0

	for s in $(stressors); do
		n=$((n + 1))
		# The number of operations is out of reach: the time ends it.
		stress_compare 8 "$s=1000000" || bad=$((bad + 1))
	done
	echo "$n stressors, $passed passed, $bad bad"
	[ $passed -ge 40 ]
	[ $bad = 0 ]
}
