#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest (make soak): the random testers for long, each through one mount, then through two.
#
#	soak.sh OPS SEED WHAT...	WHAT: dataops, nameops, coherence; SEED may be empty
#
# A line for docs/testing.md comes from each that found nothing. Goes on after one that did.
# shellcheck disable=SC2317 # functions are called by check
. "${0%/*}/lib.sh"

ops=$1
seed=${2:-$RANDOM$RANDOM}
shift 2
rnd=$build/tests/random
rounds=$((ops / 300 + 1))
limit=86000
plan $((2 * $#))
up
"$cluster" mount /mnt/second || bail "no second mount"
diag "seed $seed, $(uname -r)"
for what in "$@"; do
	for dirs in "$M" "$M /mnt/second"; do
		case $what in
		coherence)
			args="-r $rounds -w 6 -n 50";;
		*)
			args="-n $ops";;
		esac
		# shellcheck disable=SC2086 # lists of words
		check "$what $args -s $seed $dirs" "$rnd/$what" $args -s "$seed" $dirs
		[ $checked = 0 ] || sed 's/^/#   /' "$tmp/out"
		grep '^# ' "$tmp/out"
	done
done
finish
