#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libpvfs and stuffed files: what they cost, when they are striped, restarts.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_head_test
