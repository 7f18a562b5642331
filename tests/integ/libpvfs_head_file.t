#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The same as libpvfs_head.t, with heads that are files of the manager's.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_head_test --stuff-max 16k --stuff-store file
