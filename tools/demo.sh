#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make demo`: installs what is needed (Debian 12, nothing asked), builds PVFS and
# its module, boots a stock kernel in an emulated machine and shows a cluster at
# work there (tests/vm/demo.sh). This machine's kernel and files are not touched.
#
#	tools/demo.sh [--kernel 6.1|6.12]
set -eu
cd "${0%/*}/.."
kernel=6.1
case ${1-} in
'')
	;;
--kernel)
	kernel=${2-};;
*)
	echo "usage: tools/demo.sh [--kernel 6.1|6.12]" >&2
	exit 2;;
esac
log=build/demo.log
mkdir -p build

# Quiet while it works, all of it when it does not.
quietly()
{
	local text=$1 t0=$SECONDS

	shift
	printf '%-58s' "$text ..."
	if ! "$@" >"$log" 2>&1 </dev/null; then
		echo "failed"
		tail -n 40 "$log" >&2
		echo "demo: '$*' failed; all it said is in $log" >&2
		exit 1
	fi
	echo "$((SECONDS - t0)) s"
}

began=$SECONDS
quietly "Installing what is missing" tools/deps.sh
quietly "Building daemons, library, tools" make -s -j"$(nproc)"
quietly "Building the module for Linux $(tools/kernels.sh "$kernel" kver)" tools/kmod-build.sh "$kernel"
echo "Booting that kernel ..."
echo
tests/vm/run --kernel "$kernel" --timeout 900 -- tests/vm/demo.sh
echo "From nothing to here: $((SECONDS - began)) s."
