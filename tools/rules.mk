# SPDX-License-Identifier: GPL-2.0
# rules.mk - how the targets are made; the lists are in the Makefile. Everything made goes below build/.

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
CORE := $(call obj,$(COMMON_SRC) $(TRANSPORT_SRC))
LIBO := $(call obj,$(LIB_SRC))
DAEMONO := $(call obj,$(filter-out %/main.c,$(IOD_SRC) $(MGR_SRC)))
LINK = $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^)
UNIT := $(patsubst tests/%.c,$(B)/tests/%,$(UNIT_SRC))
INTEG_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/integ/*.c))
FUZZ_BIN := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/fuzz/*.c))
CONFORM := $(B)/tests/posix/conform

# ---------------------------------------------------------------- user space

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libpvfs.so.0: $(CORE) $(LIBO) $(wildcard lib/libpvfs.map)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libpvfs.so.0 $(addprefix -Wl$(comma)--version-script=,$(filter %.map,$^)) \
		-o $@ $(filter %.o,$^) $(LIBS)

$(B)/libpvfs.a: $(CORE) $(LIBO)
	rm -f $@
	ar rcs $@ $^

$(B)/pvfs-mgr: $(call obj,$(MGR_SRC)) $(CORE)
	$(LINK) $(LIBS) -ldb-5.3

$(B)/pvfs-iod: $(call obj,$(IOD_SRC)) $(CORE)
	$(LINK) $(LIBS)

$(B)/pvfs: $(call obj,$(TOOL_SRC)) $(B)/libpvfs.a
	$(LINK) $(LIBS) -ljson-c -lsmartcols -lmount

$(B)/mount.pvfs: $(call obj,tools/mount.pvfs.c) $(B)/libpvfs.a
	$(LINK) $(LIBS)

PVFSDO := $(call obj,$(wildcard tools/pvfsd/*.c))
$(PVFSDO): override CPPFLAGS += $(shell pkg-config --cflags fuse3)
$(B)/pvfsd: $(PVFSDO) $(B)/libpvfs.a
	$(LINK) $(LIBS) $(shell pkg-config --libs fuse3)

# Tests link everything but the daemons' main.c.
$(UNIT) $(INTEG_BIN) $(FUZZ_BIN): $(B)/tests/%: $(B)/obj/tests/%.o $(CORE) $(LIBO) $(DAEMONO)
	@mkdir -p $(@D)
	$(LINK) $(LIBS) -ldb-5.3 -lcmocka

# One program of many tables, over the kernel's file systems and over libpvfs.
$(CONFORM): $(call obj,$(wildcard tests/posix/*.c)) $(CORE) $(LIBO)
	@mkdir -p $(@D)
	$(LINK) $(LIBS)

# An MPI program, over our ROMIO; libpvfs is in that, and another time in the program.
PBENCHO := $(call obj,$(wildcard tests/bench/parallel/*.c))
$(PBENCHO) $(B)/tests/bench/pbench: private override CC := mpicc.mpich
$(B)/tests/bench/pbench: $(PBENCHO) $(B)/libpvfs.a | romio
	@mkdir -p $(@D)
	$(LINK) -L$(B) -Wl,-rpath,'$$ORIGIN/../..' -lpvfs-romio $(LIBS)

$(B)/tests/bench/crowd: $(call obj,tests/bench/crowd.c) $(CORE) $(LIBO)
	@mkdir -p $(@D)
	$(LINK) $(LIBS)

$(B)/tests/bench/stream: $(call obj,tests/bench/stream.c)
	@mkdir -p $(@D)
	$(LINK)

comma := ,
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z%-]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo '  SANITIZE=1 with any of them: under ASan and UBSan (in build/asan); SANITIZE=thread: under TSan (in build/tsan)'

.PHONY: romio
romio: $(B)/libpvfs.a ## ROMIO with a driver for PVFS, over Debian's MPICH: build/libpvfs-romio.so
	@lib/romio/build.sh $(B)

.PHONY: deps
deps: ## install what building and testing need (apt; Debian 12; no questions)
	tools/deps.sh

# ---------------------------------------------------------------- the module

# KVER: 6.1 or 6.12 (Debian's stock kernels, from `make deps`), or the full version of a kernel installed here.
STOCK := 6.1 6.12
.PHONY: modules
modules: ## the kernel module, for KVER=6.1|6.12|<installed version>; without KVER for both stock kernels
	@for k in $(or $(KVER),$(STOCK)); do tools/kmod-build.sh $$k || exit 1; done

# ---------------------------------------------------------------- tests

.PHONY: test test-all test-unit test-integ test-vm test-build
test-build: all $(UNIT) $(INTEG_BIN) $(FUZZ_BIN) $(CONFORM)
	@$(MAKE) --no-print-directory -s -f tests/vm/guest/tools.mk B=$(B)
	@$(MAKE) --no-print-directory -s -f tests/random/random.mk B=$(B)

test: ## the suite that CI runs
	$(MAKE) -j2 test-build
	$(MAKE) -j2 SANITIZE=1 test-build
	$(MAKE) -j2 $(B)/tests/bench/pbench modules
	tests/run unit asan integ fuzz vm

test-all: export PVFS_ALL := 1
test-all: test ## the same with the slow tables and long rounds, on both kernels

test-unit: ## unit tests, plain and under the sanitizers
	$(MAKE) -j2 test-build
	$(MAKE) -j2 SANITIZE=1 test-build
	tests/run unit asan

test-integ: ## real daemons on loopback, and the bounded fuzz run
	$(MAKE) -j2 test-build
	$(MAKE) -j2 $(B)/tests/bench/pbench
	$(MAKE) -j2 SANITIZE=1 test-build
	tests/run integ fuzz

test-vm: ## the module in a guest, on both stock kernels
	$(MAKE) -j2 test-build
	$(MAKE) -j2 romio modules
	tests/run vm

# What the debug kernels run: suites, by name; and how many times longer than on a stock kernel these may take.
DEBUG_KERNELS ?= debug
DEBUG_SUITES ?= posix counts bad conform random two
DEBUG_SLOW ?= 6
.PHONY: test-debug test-tsan
test-debug: ## the module's suites on a kernel with KASan, lockdep, kmemleak (built first; an hour and more)
	tools/deps.sh --debug
	$(MAKE) -j2 test-build
	@for k in $(DEBUG_KERNELS); do tools/debug/kernel.sh $$k && tools/kmod-build.sh $$k || exit 1; done
	PVFS_VM_KERNELS='$(DEBUG_KERNELS)' PVFS_VM_SLOW=$(DEBUG_SLOW) prove --timer --exec '' tests/debug/selftest.t \
		tests/debug/faults.t $(DEBUG_SUITES:%=tests/vm/%.t)

test-tsan: ## unit and integration tests under ThreadSanitizer (in build/tsan)
	$(MAKE) -j2 SANITIZE=thread test-build
	tests/tsan/run

.PHONY: programs soak demo shell bench check
programs: ## all real programs at full length, in guests of both stock kernels (hours)
	$(MAKE) -j2 test-build
	$(MAKE) modules
	PROGRAMS=all prove --timer --verbose --exec '' tests/vm/programs.t

OPS ?= 1000000
WHAT ?= dataops nameops coherence
soak: ## the random testers for long: OPS=1000000 WHAT='dataops nameops coherence' SEED=N KVER=6.1|6.12
	$(MAKE) -j2 test-build
	$(MAKE) modules KVER=$(or $(KVER),6.1)
	tests/vm/run --kernel $(or $(KVER),6.1) --timeout 86400 -- tests/vm/guest/soak.sh $(OPS) '$(SEED)' $(WHAT)

demo: ## from a bare machine to a mounted volume, shown
	@tools/demo.sh

shell: all ## a prompt inside the guest with the file system mounted
	$(MAKE) modules KVER=$(or $(KVER),6.1)
	tests/vm/run --kernel $(or $(KVER),6.1) --timeout 86400 --shell -- tests/vm/cluster shell

bench: ## measure, beside NFS and others in the same guest; raw runs go to docs/results
	tools/deps.sh --bench
	$(MAKE) -j2 test-build $(addprefix $(B)/tests/bench/,crowd pbench stream)
	$(MAKE) modules KVER=$(or $(KVER),6.1)
	tests/bench/crowd.sh
	tests/bench/parallel.sh
	tests/bench/links.sh
	tests/bench/vm.sh beside
	tests/bench/vm.sh postmark
	tests/bench/vm.sh tables
	tests/bench/vm.sh split
	tests/bench/vm.sh user

check: ## gcc and clang -Werror, sparse, clang-tidy, checkpatch
	tools/check.sh

# ---------------------------------------------------------------- installing

PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib
UNITDIR ?= /lib/systemd/system
KSRC = $(DESTDIR)/usr/src/pvfs-$(shell cat VERSION)
.PHONY: install clean
install: all ## put everything below DESTDIR; the module as DKMS source
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)/sbin $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(PREFIX)/include $(DESTDIR)$(UNITDIR) $(DESTDIR)/etc/pvfs $(KSRC)
	install -m 755 $(B)/pvfs-mgr $(B)/pvfs-iod $(B)/pvfsd $(DESTDIR)$(PREFIX)/sbin
	install -m 755 $(B)/pvfs $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/mount.pvfs $(DESTDIR)/sbin
	install -m 644 $(B)/libpvfs.so.0 $(B)/libpvfs.a $(DESTDIR)$(LIBDIR)
	ln -sf libpvfs.so.0 $(DESTDIR)$(LIBDIR)/libpvfs.so
	install -m 644 lib/pvfs.h $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(PREFIX)/share/doc/pvfs/examples
	install -m 644 lib/examples/*.c $(DESTDIR)$(PREFIX)/share/doc/pvfs/examples
	sed -e 's,@PREFIX@,$(PREFIX),; s,@LIBDIR@,$(LIBDIR),; s,@VERSION@,$(shell cat VERSION),' dist/pvfs.pc.in \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/pvfs.pc
	install -m 644 dist/pvfs-mgr@.service dist/pvfs-iod@.service $(DESTDIR)$(UNITDIR)
	install -D -m 644 dist/pvfs.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/pvfs.conf
	install -D -m 644 dist/pvfs.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/pvfs.conf
	for m in docs/man/*.[1-8]; do \
		install -D -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$${m##*/} || exit 1; done
	[ ! -e $(B)/libpvfs-romio.so ] || install -m 755 $(B)/libpvfs-romio.so $(DESTDIR)$(LIBDIR)
	cp -r Kbuild kmod common $(KSRC)
	sed -e 's/@VERSION@/$(shell cat VERSION)/' dist/dkms.conf.in > $(KSRC)/dkms.conf

clean: ## remove what was built
	rm -rf build
