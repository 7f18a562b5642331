# SPDX-License-Identifier: GPL-2.0-only
# The random testers, to $(B)/tests/random. They are run in the guest and on any local file system.

B ?= build
CC ?= gcc
# Not CFLAGS: a sanitizer of the daemons is not for these.
RNDCFLAGS := -O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wshadow -Wmissing-prototypes -D_GNU_SOURCE \
	-D_FILE_OFFSET_BITS=64 -pthread $(if $(WERROR),-Werror)
D := $(B)/tests/random
S := tests/random

.PHONY: random-tools
random-tools: $(addprefix $(D)/,dataops nameops coherence churn far)

$(D)/dataops: $(addprefix $(S)/,dataops.c dataops_exec.c rnd.c dataops.h rnd.h)
$(D)/nameops: $(addprefix $(S)/,nameops.c names_model.c names_check.c names_ops.c names_attrs.c rnd.c nameops.h rnd.h)
$(D)/coherence: $(addprefix $(S)/,coherence.c coherence_files.c coherence_check.c far.c lin.c rnd.c coherence.h far.h lin.h rnd.h)
$(D)/churn: $(addprefix $(S)/,churn.c rnd.c rnd.h)
$(D)/far: $(addprefix $(S)/,far_main.c far.c far.h)

$(D)/%: $(S)/random.mk
	@mkdir -p $(@D)
	$(CC) $(RNDCFLAGS) -o $@ $(filter %.c,$^)
