# SPDX-License-Identifier: GPL-2.0
# PVFS: a parallel file system. `make help` lists what there is to make.

MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
B ?= build
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
PKGS := openssl json-c libconfig smartcols liburing
CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPVFS_VERSION='"$(shell cat VERSION)"'
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wmissing-prototypes -Wshadow -fPIC -pthread
LDFLAGS += -pthread
ifdef SANITIZE
B := build/asan
CFLAGS += -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=address,undefined
endif
ifdef WERROR
CFLAGS += -Werror
endif

COMMON_SRC := $(wildcard common/*.c)
TRANSPORT_SRC := $(filter-out %_kern.c,$(wildcard transport/*.c))
LIB_SRC := $(wildcard lib/*.c)
MGR_SRC := $(wildcard mgr/*.c)
IOD_SRC := $(wildcard iod/*.c)
TOOL_SRC := $(wildcard tools/pvfs/*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE := $(call obj,$(COMMON_SRC) $(TRANSPORT_SRC))
LIBS_CORE := -lcrypto -lconfig
BINS := $(B)/pvfs-mgr $(B)/pvfs-iod $(B)/pvfs $(B)/mount.pvfs
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/*_test.c))

.PHONY: all
all: $(BINS) $(B)/libpvfs.so $(B)/libpvfs.a ## daemons, library and tools (the default)

include tools/rules.mk

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
