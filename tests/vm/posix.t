#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a POSIX file system does, through the module, on every supported kernel.
. "${0%/*}/lib.sh"
build_tools
# 6.1 is in tests/long until its last run has been seen whole.
for k in 6.12; do
	guest_suite "$k" posix.sh 600
done
finish
