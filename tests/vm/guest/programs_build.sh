# SPDX-License-Identifier: GPL-2.0-only
#
# What a programmer does all day, for programs.sh: git, compilers and make, and
# Python's own tests of what it has of the operating system.
# shellcheck shell=bash disable=SC2154

program brief 200 git_source "git: init, add, commit, branches, gc, fsck, clone, of zlib's source"
program long 3000 git_headers "git: the same of the kernel's headers"
program short 300 make_source "dpkg-source, configure, make -j, make test of zlib"
program long 900 make_twice "the same with all optimisations, and on the control: the same library"
program long 2400 python_tests "Python's own tests of shutil, mmap, fcntl, tempfile; with -a also os, posix, pathlib"
program long 3000 python_more "Python's own tests of more, with large files"
program long 2400 python_user "Python's own tests of os, shutil, posix, pathlib, tempfile by an unprivileged user"

# git_work SOURCE: a history of SOURCE in ./repo, and what git says of it.
git_work()
{
	local source=$1 other=$B/${FUNCNAME[1]} commits i d f n

	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
	export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
	# No gc behind our back: it would be in the way of the one that is called.
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
	git init -q -b main repo
	cp -r "$source/." repo
	cd repo
	git add -A .
	git commit -qm 'all of it'
	git ls-files | head -n 40 >"$tmp/work/files"
	for i in 1 2 3 4 5; do
		while IFS= read -r f; do
			echo "change $i" >>"$f"
		done <"$tmp/work/files"
		git commit -qam "change $i"
	done
	git checkout -q -b side HEAD~3
	git mv "$(tail -n 1 "$tmp/work/files")" moved
	git rm -q "$(tail -n 2 "$tmp/work/files" | head -n 1)"
	git commit -qm side
	git checkout -q main
	git merge -q -m merged -X ours side || { git add -A; git commit -qm merged; }
	[ -e moved ]
	commits=$(git rev-list --count HEAD)
	[ "$commits" = 8 ]
	[ -z "$(git status --porcelain)" ]
	git fsck --full --strict
	# What is known on the other mount is the same, and it can go on there.
	[ "$(git -C "$other/repo" rev-parse HEAD)" = "$(git rev-parse HEAD)" ]
	[ -z "$(git -C "$other/repo" status --porcelain)" ]
	echo other >"$other/repo/other"
	git -C "$other/repo" add other
	git -C "$other/repo" commit -qm other
	[ -z "$(git status --porcelain)" ]
	[ "$(git log -1 --format=%s)" = other ]
	git gc -q --prune=now
	[ "$(git count-objects)" = '0 objects, 0 kilobytes' ]
	git fsck --full --strict
	git -C "$other/repo" fsck --full --strict
	cd ..
	# Objects are linked by the first, copied by the second.
	git clone -q repo linked
	git clone -q --no-local "$other/repo" copied
	for d in linked copied; do
		[ "$(git -C $d rev-list --count HEAD)" = $((commits + 1)) ]
		[ -z "$(git -C $d status --porcelain)" ]
		git -C $d fsck --full
		diff -r --no-dereference -x .git repo "$other/$d"
	done
	# Locks hold between the mounts: while one has the index, the other is refused.
	: >repo/.git/index.lock
	refuse git -C "$other/repo" commit -q --allow-empty -m refused
	rm repo/.git/index.lock
	git -C "$other/repo" commit -q --allow-empty -m allowed
	# Two writers of refs at once: each push gets in, or says so and does then.
	git init -q --bare -b main bare
	git -C linked push -q "$PWD/bare" main
	for i in linked copied; do
		(
			to=$PWD/bare
			[ "$i" = linked ] || to=$other/bare
			cd "$i"
			for n in 1 2 3; do
				git push -q "$to" "main:refs/heads/$i-$n"
			done
		) &
	done
	wait
	[ "$(git -C bare for-each-ref | wc -l)" = 7 ]
	git -C bare fsck
}

git_source()
{
	unpack_source "$tmp/work/z"
	rm -r "$tmp"/work/z/{contrib,examples,amiga,doc,msdos,nintendods,old,os400,qnx,watcom,test}
	git_work "$tmp/work/z"
	rm -rf "$tmp/work/z"
}

git_headers()
{
	local src

	for src in /usr/src/linux-headers-6.1.0-*-common; do :; done
	[ -d "$src/include" ]
	git_work "$src"
}

# build_zlib DIRECTORY FLAGS
build_zlib()
{
	unpack_source "$1"
	cd "$1"
	[ -e debian/rules ]
	said env CFLAGS="$2" ./configure --prefix="$PWD/installed"
	said make -j$((2 * cpus))
	said make test
	[ "$(grep -c 'zlib.*test OK' "$tmp/work/said")" = 3 ]
	make -q libz.a
	touch inflate.h
	refuse make -q libz.a
	said make libz.a
	[ "$(grep -c -- ' -c ' "$tmp/work/said")" = 3 ]
	said make install
}

make_source()
{
	build_zlib zlib -O0
	cd ..
	# What was built there works here, and what is linked with it.
	cat >t.c <<-'C'
		#include <stdio.h>
		#include <zlib.h>
		int main(void)
		{
			printf("%s\n", zlibVersion());
			return crc32(0, (const Bytef *)"123456789", 9) != 0xcbf43926;
		}
	C
	gcc -Izlib/installed/include -o t t.c -Lzlib/installed/lib \
		-Wl,-rpath,"$B/make_source/zlib/installed/lib" -lz
	ldd ./t | grep -q "libz.so.1 => $B/make_source/"
	[ "$("$B/make_source/t")" = 1.2.13 ]
}

make_twice()
{
	local c

	c=$(control)
	(build_zlib "$PWD/zlib" "-O3")
	(build_zlib "$c/zlib" "-O3")
	for f in libz.a libz.so.1.2.13 minigzip example; do
		cmp "zlib/$f" "$c/zlib/$f"
	done
	rm -rf "$c"
}

# In the mount; what fails or is skipped there is tried on the control, where it must do the same.
python_compare()
{
	local d=$PWD c

	c=$(control)
	chmod 1777 "$d" "$c"
	TMPDIR=$d "$python" "$top/tests/vm/guest/programs_python.py" "$d" "$c" "$@"
	rm -rf "$c"
}

python_tests()
{
	# The others take minutes each in an emulated guest.
	local more=()

	[ "$level" != long ] || more=(test_os test_posix test_pathlib)
	python_compare test_shutil test_mmap test_fcntl test_tempfile "${more[@]}"
}

# Not test_largefile: its gigabytes are in the memory of the guest four times.
python_more()
{
	python_compare --use largefile test_mmap test_os test_shutil
	python_compare test_io test_file test_fileio test_bufio test_tarfile test_zipfile test_glob test_stat \
		test_genericpath test_posixpath test_mailbox test_dbm_dumb test_dbm_gnu test_sqlite3 test_shelve \
		test_filecmp test_import test_compileall test_py_compile test_zipapp test_gzip test_bz2 test_lzma \
		test_fileinput
}

python_user()
{
	python_compare --user nobody test_os test_shutil test_posix test_pathlib test_tempfile test_fcntl test_mmap
}
