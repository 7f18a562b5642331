#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests tests/vm/run itself, on the host: what the other tests rely on when they
# run something in a guest. TAP on stdout. Each boot takes some seconds, so one
# boot answers several questions.

set -u

here=$(cd "$(dirname "$0")" && pwd -P)
run=$here/run
planned=33
count=0 failed=0

# ok DESCRIPTION COMMAND...: the test passes if the command does.
ok()
{
	local what=$1

	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $what"
	else
		failed=$((failed + 1))
		echo "not ok $count - $what"
		echo "# false: $*"
	fi
}

is()
{
	[ "$1" = "$2" ] || { echo "# got '$1', wanted '$2'"; false; }
}

has()
{
	grep -qE -- "$2" "$1" || { echo "# no '$2' in $1:"; sed 's/^/# /' "$1"; false; }
}

# Nothing that names $1 may be left, neither a process nor a directory. The
# harness has ended, but the kernel may still be taking apart what it killed.
gone()
{
	local i

	for ((i = 0; i < 40; i++)); do
		pgrep -f -- "$1" >/dev/null || break
		sleep 0.05
	done
	! pgrep -af -- "$1"
}

tmp=$(mktemp -d /tmp/pvfs-selftest.XXXXXX) || exit 1
pids=''
cleanup()
{
	# shellcheck disable=SC2086 # a list
	[ -z "$pids" ] || kill $pids 2>/dev/null
	wait
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$tmp/cwd" "$tmp/scratch"
# So that temporary directories of these runs, and of no others, are seen here.
export TMPDIR=$tmp/scratch
cd "$tmp/cwd" || exit 1

echo "1..$planned"

# Wrong usage is told before anything is booted.
for bad in "--kernel 5.4 true" "--smp none true" "--mem 1 true" "--disk 3 true" \
		"--timeout x true" "--lan .:3 true" "--lan nowhere:1 true" "--nonsense true" "--smp" ""; do
	# shellcheck disable=SC2086 # words
	"$run" $bad >"$tmp/o" 2>"$tmp/e" </dev/null
	status=$?
	ok "usage error: '$bad'" is "$status $(wc -c <"$tmp/o") $(grep -c '^vm/run: ' "$tmp/e")" "2 0 1"
done

# Timeout and SIGTERM run beside the others: they only wait.
"$run" --timeout 45 --mem 1024 --out "$tmp/late" -- \
	bash -c 'echo before; sleep 300' >"$tmp/late.o" 2>"$tmp/late.e" &
late=$!
"$run" --mem 1024 --disk 2:64M --out "$tmp/term" -- \
	bash -c 'lsblk -dnbo NAME,SIZE; echo up; sleep 300' >"$tmp/term.o" 2>"$tmp/term.e" &
term=$!
pids="$late $term"

# All bytes, no newline at the end, more than any buffer on the way.
head -c 1000003 /dev/urandom >data
args=('' ' a  b ' $'one\ntwo\n' '*' "it's \"\$HOME\"" $'\xff\x01' -- --shell)
# shellcheck disable=SC2016 # for the guest
"$run" --out "$tmp/first" -- bash -c '
	printf "%s\0" "$@" >"$PVFS_OUT/args"
	{ uname -r; pwd; id -u; cat /proc/sys/kernel/hostname; nproc; } >"$PVFS_OUT/facts"
	echo "$PVFS_GUEST $HOME" >>"$PVFS_OUT/facts"
	ip -br link show lo >"$PVFS_OUT/lo"
	modprobe nfs && grep -cw nfs /proc/filesystems >"$PVFS_OUT/modprobe"
	touch "/var/tmp/stays-in-guest-$$" new
	sleep 300 &
	cat data /dev/fd/0
	echo to-stderr >/dev/stderr
	exit 7' name "${args[@]}" >"$tmp/first.o" 2>"$tmp/first.e"
status=$?
ok "exit status comes through" is "$status" 7
printf '%s\0' "${args[@]}" >args
ok "arguments are exact" cmp args "$tmp/first/args"
echo to-stderr | cat data - >expected
ok "output is exact: 1 MB of any bytes, then stderr, in order" \
	is "$(sha256sum <"$tmp/first.o")" "$(sha256sum <expected)"
ok "6.1, directory, root, host name, CPUs, environment" is "$(cat "$tmp/first/facts")" \
	"$(printf '%s\n' "$("$here/../../tools/kernels.sh" 6.1 kver)" "$PWD" 0 pvfs-guest 2 "1 /root")"
ok "lo is up" has "$tmp/first/lo" UP
ok "modules load by name" is "$(cat "$tmp/first/modprobe")" 1
ok "the host's tree is not written to" is "$(ls)" $'args\ndata\nexpected'
ok "kernel log is named and whole" has "$tmp/first/kernel.log" 'command ended with status 7'
ok "its path is told on failure" has "$tmp/first.e" 'kernel log: .*first/kernel.log'

# A kernel that complains fails a command that succeeds.
"$run" --kernel 6.12 --out "$tmp/warn" -- bash -c '
	uname -r
	echo "<4>WARNING: planted" >/dev/kmsg' >"$tmp/warn.o" 2>"$tmp/warn.e"
status=$?
ok "a kernel warning fails the run" is "$status" 125
ok "and is shown" has "$tmp/warn.e" 'WARNING: planted'
ok "6.12 boots" is "$(cat "$tmp/warn.o")" "$("$here/../../tools/kernels.sh" 6.12 kver)"

# So does one that dies.
"$run" --kernel 6.12 --out "$tmp/crash" -- bash -c '
	echo c >/proc/sysrq-trigger; sleep 9' >"$tmp/crash.o" 2>"$tmp/crash.e"
status=$?
ok "a crash fails the run" is "$status" 125
ok "and is shown" has "$tmp/crash.e" 'Kernel panic'

# One that dies before it is up is started once more, and no more than that.
"$run" --mem 1024 --append rdinit=/none --out "$tmp/boot" -- true >"$tmp/boot.o" 2>"$tmp/boot.e"
status=$?
ok "a guest that does not come up fails the run" is "$status" 125
ok "after it was tried once more" is "$(grep -c 'once more$' "$tmp/boot.e")" 1
ok "and what it died of first is kept" has "$tmp/boot/died.log" 'Kernel panic'

wait $late
ok "timeout gives 124" is $? 124
ok "and is told" has "$tmp/late.e" 'timeout: .* 45 s'
ok "output before it is there" is "$(cat "$tmp/late.o")" before

for ((i = 0; i < 200; i++)); do
	grep -q up "$tmp/term.o" && break
	sleep 0.1
done
kill -TERM $term
wait $term
ok "SIGTERM gives 143" is $? 143
pids=''
ok "disks are there" is "$(tr -s ' ' <"$tmp/term.o")" $'vda 67108864\nvdb 67108864\nup'
ok "no process and no temporary directory is left" is "$(gone "$tmp"; ls "$TMPDIR")" ''

if [ $count != $planned ]; then
	echo "# planned $planned tests, ran $count"
	exit 1
fi
[ $failed = 0 ]
