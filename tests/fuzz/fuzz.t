#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A bounded run of the fuzz targets over the corpus, under the sanitizers: FUZZ_SECONDS (default 20) each, from a seed
# that is printed and can be given as FUZZ_SEED. What a target dies of is kept in $FUZZ_SAVE (default build/crashes); add
# it to corpus/ with the fix.
set -u
cd "$(dirname "$0")/../.." || exit 1
bin=${PVFS_BUILD:-build/asan}/tests/fuzz
corpus=tests/fuzz/corpus
seconds=${FUZZ_SECONDS:-20}
seed=${FUZZ_SEED:-$(date +%s)}
save=${FUZZ_SAVE:-build/crashes}
mapfile -t targets < <(cd tests/fuzz && ls fuzz_*.c | sed 's/\.c$//')
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$save"
failed=0
n=0

check() { # NAME STATUS
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		failed=1
	fi
}

echo "1..$((${#targets[@]} + 1))"
missing=0
"$bin/mkcorpus" "$tmp" || missing=1
for f in "$tmp"/*; do
	if [ ! -e "$corpus/${f##*/}" ]; then
		echo "# $corpus/${f##*/} is missing: run $bin/mkcorpus $corpus"
		missing=1
	fi
done
check "every operation has its seeds" $missing
echo "# seed $seed, $seconds s each"
for t in "${targets[@]}"; do
	timeout $((seconds * 5 + 120)) "$bin/$t" --seconds "$seconds" --seed "$seed" --save "$save" "$corpus"/* >"$tmp/out" 2>&1
	rc=$?
	tail -n 40 "$tmp/out" | sed 's/^/# /'
	check "$t" $rc
done
exit $failed
