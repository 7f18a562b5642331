#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libpvfs against a cluster whose small files are striped too: many places of a file in one call.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_list_test --stuff-max 0
