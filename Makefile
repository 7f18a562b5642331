# SPDX-License-Identifier: GPL-2.0
# PVFS: a parallel file system. `make help` lists what there is to make; tools/rules.mk says how.

MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.DEFAULT_GOAL := all

ifeq ($(origin CC),default)
CC := gcc
endif
B := build
CFLAGS ?= -O2 -g
ifeq ($(SANITIZE),thread)
B := build/tsan
override CFLAGS += -fsanitize=thread -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=thread
else ifdef SANITIZE
B := build/asan
override CFLAGS += -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
override LDFLAGS += -fsanitize=address,undefined
endif
ifdef WERROR
B := build/werror-$(CC)
override CFLAGS += -Werror
endif
override CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPVFS_VERSION='"$(shell cat VERSION)"'
override CFLAGS += -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wmissing-prototypes -Wshadow -fPIC -pthread
override LDFLAGS += -pthread
LIBS := -lcrypto -lconfig

COMMON_SRC := $(wildcard common/*.c)
TRANSPORT_SRC := $(wildcard transport/*.c)
LIB_SRC := $(wildcard lib/*.c)
MGR_SRC := $(wildcard mgr/*.c)
IOD_SRC := $(wildcard iod/*.c)
TOOL_SRC := $(wildcard tools/pvfs/*.c)
UNIT_SRC := $(wildcard tests/unit/*_test.c)

.PHONY: all
all: $(addprefix $(B)/,pvfs-mgr pvfs-iod pvfs pvfsd mount.pvfs libpvfs.so.0 libpvfs.a) ## daemons, library and tools (the default)

include tools/rules.mk
