# SPDX-License-Identifier: GPL-2.0-only
# The C programs that tests and benchmarks run in the guest, to $(B)/tests/vm.

B ?= build
CC ?= gcc
# Not CFLAGS: a sanitizer of the daemons is not for these.
VMCFLAGS := -O2 -g -std=gnu11 -Wall -Wextra -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -pthread
OPS := ops.c ops_data.c ops_names.c ops_perm.c ops_two.c ops_mmap.c ops_turns.c ops_space.c ops_xattr.c ops_locks.c
D := $(B)/tests/vm

.PHONY: vm-tools
vm-tools: $(addprefix $(D)/,ops calls idmap manyfiles pario bench)

$(D)/ops: $(addprefix tests/vm/guest/,$(OPS) ops.h)
	@mkdir -p $(@D)
	$(CC) $(VMCFLAGS) -o $@ $(filter %.c,$^)

$(D)/%: tests/vm/guest/%.c
	@mkdir -p $(@D)
	$(CC) $(VMCFLAGS) -o $@ $<

$(D)/bench: tests/bench/bench.c
	@mkdir -p $(@D)
	$(CC) $(VMCFLAGS) -o $@ $<
