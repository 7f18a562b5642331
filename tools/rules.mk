# SPDX-License-Identifier: GPL-2.0
# rules.mk - how the targets are made; the lists are in the Makefile.

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/libpvfs.so: $(CORE) $(call obj,$(LIB_SRC))
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libpvfs.so.0 -o $@ $^ $(LIBS_CORE)

$(B)/libpvfs.a: $(CORE) $(call obj,$(LIB_SRC))
	rm -f $@
	ar rcs $@ $^

$(B)/pvfs-mgr: $(call obj,$(MGR_SRC)) $(CORE)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CORE) -ldb-5.3

$(B)/pvfs-iod: $(call obj,$(IOD_SRC)) $(CORE)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CORE)

$(B)/pvfs: $(call obj,$(TOOL_SRC)) $(B)/libpvfs.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CORE) -ljson-c -lsmartcols

$(B)/mount.pvfs: $(call obj,tools/mount.pvfs.c) $(B)/libpvfs.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CORE)

# Unit tests: cmocka programs that print TAP; each links everything but the daemons' main.c.
$(B)/tests/unit/%: $(B)/obj/tests/unit/%.o $(CORE) $(call obj,$(LIB_SRC) $(filter-out %/main.c,$(IOD_SRC) $(MGR_SRC)))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_CORE) -ldb-5.3 -lcmocka

.PHONY: clean
clean: ## remove what was built
	rm -rf build
