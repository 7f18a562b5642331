#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debug kernels report what they are for: mistakes that were planted in a module (planted/planted.c), each of which must be
# told in the kernel's log and known by tests/vm/run for what fails a run.
. "${0%/*}/../vm/lib.sh"
work=$build/debug-planted
mkdir -p "$work"
for k in $kernels; do
	dir=$work/$k
	rm -rf "$dir"
	mkdir "$dir"
	cp tests/debug/planted/{Kbuild,planted.c} "$dir"
	make --no-print-directory -s -C "$(tools/kernels.sh "$k" build)" M="$dir" UBSAN_SANITIZE=y modules >"$dir/log" 2>&1
	tap $? "$k the planted mistakes build"
	tests/vm/run --kernel "$k" --timeout $((300 * PVFS_VM_SLOW)) --smp 1 --mem 2048 --out "$dir/out" -- \
		tests/debug/planted/make.sh "$dir/planted.ko" >"$dir/said" 2>"$dir/complaints" </dev/null
	rc=$?
	[ $rc = 125 ] || sed 's/^/# /' "$dir/complaints"
	tap $((rc != 125)) "$k a kernel that reports fails the run"
	# told WHAT PATTERN: between WHAT and what comes after it.
	while read -r what pattern; do
		sed -n "/planted: $what\$/,/planted: [a-z_]*\$/p" "$dir/out/kernel.log" | grep -qE "$pattern"
		tap $? "$k $what: $pattern"
	done <<-END
		lock_order possible circular locking dependency detected
		sleep_in_atomic BUG: sleeping function called from invalid context
		shift UBSAN: shift-out-of-bounds in .*/planted\.c
		refcount refcount_t: addition on 0; use-after-free
		free_armed ODEBUG: free active
		use_after_free KASAN: .*use-after-free in planted_
		out_of_bounds KASAN: slab-out-of-bounds in planted_
	END
	grep -qE 'kmemleak: [0-9]+ new suspected memory leaks' "$dir/out/kernel.log"
	tap $? "$k leak: kmemleak: new suspected memory leaks"
	grep -q 'planted_leak' "$dir/said" || grep -q 'comm "insmod"' "$dir/said"
	tap $? "$k leak: of the module that has it"
done
finish
