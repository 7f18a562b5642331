#!/bin/bash
# The same as iod.t with the daemon as it is installed: only without sanitizers its memory can be judged.
cd "$(dirname "$0")/../.." || exit 1
exec build/tests/integ/iod_io build/pvfs-iod
