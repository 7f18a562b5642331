# SPDX-License-Identifier: GPL-2.0-only
#
# The host's half of the tests in the guest. A test, NAME.t, sources this and
# calls guest_suite for each kernel; that boots one guest, runs guest/NAME.sh in
# it, and passes its TAP on, numbered through. Nothing can end early and look
# well: what ran is compared with what the guest planned, the exit status with
# the checks, and the plan of the whole is printed last.
#
# environment:
#	PVFS_VM_KERNELS	kernels to test on (default "6.1 6.12"; also debug, debug-6.12)
#	PVFS_VM_SLOW	what time limits are multiplied by (default 1)
#	PVFS_VM_BUILD	directory with the binaries (default build/: the sanitizers are too slow here)
# shellcheck shell=bash

set -u
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
build=${PVFS_VM_BUILD:-$PWD/build}
export PVFS_BUILD=$build
kernels=${PVFS_VM_KERNELS:-6.1 6.12}
export PVFS_VM_SLOW=${PVFS_VM_SLOW:-1}
tap_n=0
tap_failed=0

tap()
{
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

# Makes the C programs that the suites run in the guest.
build_tools()
{
	make -s -f tests/vm/guest/tools.mk B="$build" && make -s -f tests/random/random.mk B="$build" || {
		echo "Bail out! the test programs do not build"
		exit 1
	}
}

# two_cpus KERNEL: the option, on the newer of the stock kernels
two_cpus()
{
	[ "$1" = 6.1 ] || [[ $1 = debug* ]] || echo --smp 2
}

# guest_suite KERNEL SCRIPT TIMEOUT [tests/vm/run option]... [-- argument...]
# The arguments are the script's. One CPU, unless the options say otherwise: what wakes the other CPU up is emulated so
# dearly that two do the same work in more than twice the CPU time. Suites where much is done at once have two
# on the newer kernel ($(two_cpus KERNEL)).
guest_suite()
{
	local kernel=$1 script=$2 timeout=$3 leaks='' planned='' ran=0 failed=0 line rc fifo log='' t0=$SECONDS
	local -a opts=()

	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		opts+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	fifo=$(mktemp -u "${TMPDIR:-/tmp}/pvfs-t.XXXXXX")
	mkfifo -m 600 "$fifo" || exit 1
	echo "# $script on $kernel"
	[[ $kernel != debug* ]] || leaks=tests/vm/guest/leaks.sh
	tests/vm/run --kernel "$kernel" --smp 1 --timeout $((timeout * PVFS_VM_SLOW)) "${opts[@]}" -- \
		env PVFS_BUILD="$build" PVFS_VM_SLOW="$PVFS_VM_SLOW" $leaks "tests/vm/guest/$script" "$@" >"$fifo" 2>&1 </dev/null &
	local pid=$!
	# The guest goes when we go.
	trap 'kill -TERM $pid 2>/dev/null; exit 130' INT TERM HUP
	while IFS= read -r line; do
		case $line in
		'1..'[0-9]*)
			planned=${line#1..};;
		'ok '[0-9]*)
			ran=$((ran + 1))
			tap 0 "$kernel ${line#ok [0-9]* - }";;
		'not ok '[0-9]*)
			ran=$((ran + 1))
			failed=$((failed + 1))
			tap 1 "$kernel ${line#not ok [0-9]* - }";;
		'Bail out!'*)
			# Ends this suite only: the next kernel may do.
			echo "# $line";;
		'#'*)
			echo "$line";;
		*)
			[[ $line != *'kernel log: '* ]] || log=${line##*kernel log: }
			echo "# $line";;
		esac
	done <"$fifo"
	wait $pid
	rc=$?
	trap - INT TERM HUP
	rm -f "$fifo"
	if [ -z "$planned" ]; then
		echo "# the guest printed no plan"
		tap 1 "$kernel $script ran all its checks"
	else
		[ "$ran" = "$planned" ] || echo "# planned $planned, ran $ran"
		tap $((ran != planned)) "$kernel $script ran all its checks"
	fi
	# 1 is right when checks failed; 124, 125 and others never are.
	[ $rc = $((failed > 0)) ] || echo "# tests/vm/run: status $rc with $failed failures"
	tap $((rc != (failed > 0))) "$kernel $script: the guest ended well and the kernel was silent"
	# The log itself goes with the machine.
	if [ $rc != $((failed > 0)) ] && [ -s "$log" ]; then
		tail -n 100 "$log" | cut -c-200 | sed 's/^/#   /'
	fi
	echo "# $script on $kernel: $((SECONDS - t0)) s"
}

finish()
{
	echo "1..$tap_n"
	exit $((tap_failed > 0))
}
