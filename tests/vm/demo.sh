#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs in the guest; tools/demo.sh (make demo) builds, boots and calls it. A
# whole cluster, real files through it, and what it says about itself. Any
# command that fails ends it with that status.
set -eu

top=$(cd "${0%/*}/../.." && pwd -P)
PATH=$top/tests/vm:$PATH
M=/mnt/pvfs
src=$(echo /usr/src/linux-headers-6.1.0-*-common)
export GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C.UTF-8
step_n=0
began=$SECONDS
trap 'rc=$?; [ $rc = 0 ] || echo "demo: failed with status $rc, see above" >&2; exit $rc' EXIT

step()
{
	step_n=$((step_n + 1))
	printf '\n== %d. %s\n\n' "$step_n" "$*"
}

# Shows a command, runs it, says how long it took when that is long enough to see.
run()
{
	local t0 t1

	printf '# %s\n' "$*"
	t0=$(date +%s%N)
	eval "$*"
	t1=$(date +%s%N)
	if [ $(((t1 - t0) / 1000000)) -ge 500 ]; then
		printf '  (%d.%d s)\n' $(((t1 - t0) / 1000000000)) $(((t1 - t0) / 100000000 % 10))
	fi
}

same()
{
	echo "  the same, every byte"
}

echo "PVFS on $(uname -sr), $(nproc) CPUs, emulated: judge what it does by this, not its speed."

step "A manager and four I/O daemons start; the volume is mounted"
run cluster up --iods 4
run "mount -t pvfs | cut -c1-100"
run pvfs status
run "df -h $M"

step "Real files: the kernel's headers, copied in with tar and with cp -a"
parts="include/linux include/net arch/x86/include"
(cd "$src" && mkdir /tmp/tree && cp -a --parents $parts /tmp/tree/)
echo "  $(find /tmp/tree -type f | wc -l) files, $(find /tmp/tree -type d | wc -l) directories, $(du -sh --apparent-size /tmp/tree | cut -f1)"
run "mkdir $M/tar && tar -C /tmp/tree -cf - include arch | tar -C $M/tar -xf -"
run "cp -a /tmp/tree/include/net $M/net"
run "echo 3 >/proc/sys/vm/drop_caches"
run "diff -r /tmp/tree $M/tar" && same
run "diff -r /tmp/tree/include/net $M/net" && same
run "(cd /tmp/tree/include/linux && find . -type f -exec sha256sum {} +) >/tmp/sums"
run "(cd $M/tar/include/linux && sha256sum --quiet -c /tmp/sums)" && same
run "ls -lR $M/tar | wc -l"

step "A program is built on the mount, and run from there"
mkdir $M/src
cat >$M/src/hello.c <<-'C'
	#include <stdio.h>
	#include <sys/vfs.h>
	int main(int argc, char **argv)
	{
		struct statfs s;
		if (statfs(argv[0], &s))
			return 1;
		printf("Hello from file system type %#lx, %llu MiB free.\n", (long)s.f_type,
		       (unsigned long long)s.f_bavail * s.f_bsize >> 20);
		return 0;
	}
C
run "cd $M/src && gcc -O2 -Wall -o hello hello.c"
run "$M/src/hello"

step "A git repository"
run "mkdir $M/repo && cd $M/repo && git init -q -b main . && cp -r $M/net ."
run "git add . && git -c user.name=demo -c user.email=demo@example.org commit -qm 'Kernel headers' && git log --oneline --shortstat"
run "git fsck --full"
cd /

step "A large file is striped over the four I/O daemons"
run "dd if=/dev/urandom of=/tmp/large bs=1M count=64 status=none"
run "cp /tmp/large $M/large && echo 3 >/proc/sys/vm/drop_caches"
run "cmp /tmp/large $M/large" && same
run "pvfs stat pvfs:/large"
run "dd if=$M/large of=/dev/null bs=1M 2>&1 | tail -n 1"

step "The same volume without the kernel: the pvfs command"
run "pvfs cp --no-progress pvfs:/large /tmp/copy && cmp /tmp/large /tmp/copy" && same
run pvfs df
run "pvfs ls -l pvfs:/"

step "What the mount counted"
run "column -t /proc/fs/pvfs/vol/stats | cut -c1-118"
run "cat /proc/fs/pvfs/vol/servers"

step "All is removed and taken down"
run "rm -r $M/tar $M/net"
run cluster down

printf '\nDone in %d s. Next: "make shell" gives a prompt in such a machine, with the file system at /mnt/pvfs.\n' $((SECONDS - began))
