#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# libpvfs against a cluster: names, attributes, handles, directories, extended attributes.
. "$(dirname "$0")/lib.sh"
libpvfs_test libpvfs_names_test
