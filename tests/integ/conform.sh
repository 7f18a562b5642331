# SPDX-License-Identifier: GPL-2.0
# conform.sh - runs the conformance suite as a part of a test. Sourced after lib.sh.

suite=$BIN/tests/posix/conform

# pass_on NAME: what the suite printed; compares what ran with what was planned. Return: did a row fail?
pass_on() {
	local name=$1 line planned='' ran=0 failed=0
	while IFS= read -r line; do
		case $line in
		'1..'*) planned=${line#1..} ;;
		'ok '*)
			ran=$((ran + 1))
			pass "$name ${line#ok [0-9]* - }"
			;;
		'not ok '*)
			ran=$((ran + 1))
			failed=$((failed + 1))
			fail "$name ${line#not ok [0-9]* - }"
			;;
		'#'*) echo "$line" ;;
		*) echo "# $line" ;;
		esac
	done
	is "$name: all rows ran" "$ran" "${planned:-a plan}"
	return $((failed > 0))
}

# run NAME ARGS...: the suite with these arguments
run() {
	local name=$1 fifo=$T/tap failed
	shift
	rm -f "$fifo"
	mkfifo "$fifo"
	"$suite" "$@" >"$fifo" 2>&1 &
	local pid=$!
	pass_on "$name" <"$fifo"
	failed=$?
	wait $pid
	is "$name: and it ended well" "$?" "$failed"
}
