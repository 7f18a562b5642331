#!/bin/bash
# pvfs-iod by itself: every operation, what it refuses, many clients, a full disk, its end.
cd "$(dirname "$0")/../.." || exit 1
B=${PVFS_BUILD:-build}
exec "$B/tests/integ/iod_io" "$B/pvfs-iod"
