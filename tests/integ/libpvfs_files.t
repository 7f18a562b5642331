#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Many small files at once, one file for many clients, calls that are not waited for: libpvfs against a real cluster.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_files_test
