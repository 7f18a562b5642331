#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Bad input and lost servers: what fails says so in time, and comes back.
. "${0%/*}/lib.sh"
build_tools
guest_suite_together bad.sh 1500 --append slab_nomerge
finish
