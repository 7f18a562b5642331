#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libpvfs against a cluster whose small files are striped too: bytes, requests, restarts.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_data_test --stuff-max 0
