#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fetches the Debian packages that tests/vm/programs.t works with in the guest,
# which has no network: the source of zlib, some binary packages, and with --all
# what debootstrap needs for a small system; or the source of MPICH, for `make
# romio`. They go into a cache, and come from
# the mirrors this machine's apt uses. apt runs with a state and a list of
# sources of its own, so nothing of the machine's changes, and it does not
# matter whether there are deb-src lines. No network where all is there already.

set -eu
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

usage()
{
	cat <<-END
	usage: tools/debian.sh [--all | --mpich]
	Prints the directory with the packages: source/ (of zlib), debs/, and with
	--all minbase.tar, for debootstrap --unpack-tarball; with --mpich the one
	with the source of MPICH, of which ROMIO is a part.
	environment: PVFS_DEBIAN  that directory (default /var/cache/pvfs-debian)
	exit status: 1 when they are not there and cannot be fetched
	END
}

die()
{
	echo "debian.sh: $*" >&2
	exit 1
}

cache=${PVFS_DEBIAN:-/var/cache/pvfs-debian}
# Small ones with many kinds of files in them and no script to run before the
# unpacking, which would need a shell in the root they go to.
debs="zlib1g sed gzip hostname netbase ncurses-base"
all='' mpich=''
case ${1-} in
'')
	;;
--mpich)
	mpich=1;;
--all)
	all=1;;
-h|--help)
	usage
	exit 0;;
*)
	usage >&2
	exit 2;;
esac
[[ $cache = /* ]] || die "PVFS_DEBIAN must be an absolute path, not '$cache'"

tmp=
cleanup()
{
	[ -z "$tmp" ] || rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The release that runs here: bookworm.
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The addresses and suites of Debian's own packages, from apt's settings however they are written.
origins()
{
	apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
		grep -E " $codename(-updates|-security)?\$" | sort -u
}

private_apt()
{
	apt-get -qq -o "Dir::Etc::SourceList=$tmp/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State=$tmp/state" -o Dir::State::status=/var/lib/dpkg/status \
		-o "Dir::Cache=$tmp/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3 \
		-o Acquire::Languages=none "$@"
}

prepare()
{
	local uri suite signed=

	[ -z "$tmp" ] || return 0
	tmp=$(mktemp -d)
	mkdir -p "$tmp/state/lists/partial" "$tmp/cache/archives/partial"
	[ ! -e $keyring ] || signed="[signed-by=$keyring] "
	# The source from the release alone: a mirror of updates may list what it no longer has.
	origins | while read -r uri suite; do
		echo "deb $signed$uri $suite main"
		[ "$suite" != "$codename" ] || echo "deb-src $signed$uri $suite main"
	done >"$tmp/sources.list"
	[ -s "$tmp/sources.list" ] || die "apt knows no source of packages of $codename"
	private_apt update >&2 || die "apt-get update failed"
}

# What a step makes appears under its name when it is complete.
# fetch_source PACKAGE DIRECTORY
fetch_source()
{
	[ ! -d "$cache/$2" ] || return 0
	prepare
	mkdir "$tmp/$2"
	(cd "$tmp/$2" && private_apt source --download-only "$1" >&2) ||
		die "cannot fetch the source of $1"
	[ -n "$(find "$tmp/$2" -name '*.dsc')" ] || die "no .dsc came with the source of $1"
	mkdir -p "$cache"
	cp -r "$tmp/$2" "$cache/.$2.$$"
	mv -T "$cache/.$2.$$" "$cache/$2"
}

if [ -n "$mpich" ]; then
	fetch_source mpich mpich
	echo "$cache/mpich"
	exit
fi
fetch_source zlib source
if [ ! -d "$cache/debs" ]; then
	prepare
	mkdir "$tmp/debs"
	# shellcheck disable=SC2086 # a list of words
	(cd "$tmp/debs" && private_apt download $debs >&2) || die "cannot fetch $debs"
	# shellcheck disable=SC2086 # a list of words
	[ "$(find "$tmp/debs" -name '*.deb' | wc -l)" = "$(wc -w <<<$debs)" ] ||
		die "not all of $debs came"
	mkdir -p "$cache"
	cp -r "$tmp/debs" "$cache/.debs.$$"
	mv -T "$cache/.debs.$$" "$cache/debs"
fi
if [ -n "$all" ] && [ ! -e "$cache/minbase.tar" ]; then
	prepare
	[ "$(id -u)" = 0 ] || die "debootstrap wants root"
	uri=$(origins | awk -v suite="$codename" '$2 == suite { print $1; exit }')
	[ -n "$uri" ] || die "apt knows no source of packages of $codename"
	PATH=$PATH:/usr/sbin:/sbin debootstrap --variant=minbase --make-tarball="$tmp/minbase.tar" \
		"$codename" "$tmp/minbase" "$uri" >"$tmp/log" 2>&1 ||
		{ tail -n 5 "$tmp/log" >&2; die "debootstrap cannot fetch a small system"; }
	cp "$tmp/minbase.tar" "$cache/.minbase.tar.$$"
	mv "$cache/.minbase.tar.$$" "$cache/minbase.tar"
fi
echo "$cache"
