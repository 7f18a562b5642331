#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the second guest (two.t on the host): does what the first one asks for,
# until that ends FAR_SERVER.
. "${0%/*}/lib.sh"

lan_up 2 || exit 1
exec "$build/tests/random/far" serve 10.0.0.2:7200
