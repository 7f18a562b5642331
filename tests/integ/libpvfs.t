#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Runs libpvfs_test, which prints TAP itself, against a cluster.
. "$(dirname "$0")/lib.sh"

make_cluster "$C" 4
start_cluster "$C"
PVFS_TEST_MGR=$(mgr_address "$C")
cat >"$T/restart" <<EOF
#!/bin/bash
kill -KILL "\$(cat "$C/run/\$1.pid")"
sleep 0.2
exec "$PVFS" start "$C" "\$1" >/dev/null
EOF
chmod +x "$T/restart"
export PVFS_TEST_RESTART=$T/restart
export PVFS_TEST_MGR PVFS_TEST_VOLUME=test PVFS_TEST_KEY=$C/cluster.key CMOCKA_MESSAGE_OUTPUT=TAP
"$BIN/tests/integ/libpvfs_test"
rc=$?
[ $rc -eq 0 ] || FAILED=1
exit $rc
