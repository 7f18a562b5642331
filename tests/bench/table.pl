#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes the table of a benchmark from its raw runs (tests/bench/guest.sh):
# medians, the ratio to NFS (above 1: PVFS is better), what is asked for; and
# what was measured with PVFS and small files striped as well, with NFS as
# coherent as it can be, and with GlusterFS.
#
#	table.pl RAW
use strict;
use warnings;

my %v;
open(my $f, '<', $ARGV[0] // die "usage: table.pl RAW\n") or die "$ARGV[0]: $!\n";
while (<$f>) {
	my ($fs, $what, @n) = split;
	push @{$v{"$fs $what"}[$_]}, $n[$_] for 0 .. $#n;
}

sub median {
	my ($key, $i) = @_;
	my $l = $v{$key}[$i // 0] or return undef;
	my @s = sort { $a <=> $b } @$l;
	return @s % 2 ? $s[$#s / 2] : ($s[@s / 2 - 1] + $s[@s / 2]) / 2;
}

sub spread {
	my ($key, $i) = @_;
	my @s = sort { $a <=> $b } @{$v{$key}[$i // 0] or return ''};
	return @s > 1 ? sprintf("%s..%s", $s[0], $s[-1]) : '';
}

# measure, column, text, unit, more is better, ratio asked for
my @rows = (
	['write-1m', 0, 'write 1 MiB calls + fsync', 'MB/s', 1, 1.6],
	['read-1m', 0, 'cold read 1 MiB calls', 'MB/s', 1, 1.5],
	['read-1m-warm', 0, '  the same again', 'MB/s', 1, 0.95],
	['write-16k', 0, 'write 16 KiB calls + fsync', 'MB/s', 1, 1.2],
	['read-16k', 0, 'cold read 16 KiB calls', 'MB/s', 1, 1.3],
	['read-16k-warm', 0, '  the same again', 'MB/s', 1, 0.95],
	['write-4k-random', 0, '4 KiB random write + fsync', '/s', 1, 1],
	['read-4k-random', 0, '4 KiB random read, cold', '/s', 1, 1.4],
	['append-4', 0, 'appends of 4 bytes + fsync', '/s', 1, 0.8],
	['write-1m', 1, '  CPU, write 1 MiB', 'ms/MiB', 0, 1],
	['read-1m', 1, '  CPU, read 1 MiB', 'ms/MiB', 0, 1],
	['write-16k', 1, '  CPU, write 16 KiB', 'ms/MiB', 0, undef],
	['read-16k', 1, '  CPU, read 16 KiB', 'ms/MiB', 0, undef],
	['writers-4', 0, '4 writers, one file', 'MB/s', 1, undef],
	['readers-4', 0, '4 readers, one file', 'MB/s', 1, undef],
	['direct-read-4k', 0, '4 KiB random direct read', '/s', 1, 1.5],
	['direct-write-4k', 0, '4 KiB random direct write', '/s', 1, 1.5],
	['create', 0, 'create', '/s', 1, 3],
	['stat-cold', 0, 'stat, cold', '/s', 1, 1.5],
	['stat-warm', 0, 'stat, warm', '/s', 1, 5],
	['unlink', 0, 'unlink, cold', '/s', 1, 2],
	['unlink-known', 0, 'unlink after create', '/s', 1, undef],
	['put-10k', 0, 'create, write 10 KiB, close', '/s', 1, 4],
	['get-10k', 0, 'open, read it, close, cold', '/s', 1, 3],
	['get-10k-warm', 0, '  the same again', '/s', 1, undef],
	['untar', 0, 'untar 2,500 files', 's', 0, 4],
	['ls-aR', 0, 'ls -aR, cold', 's', 0, 1.5],
	['ls-lR', 0, 'ls -lR, cold', 's', 0, 1.5],
	['ls-lR-warm', 0, 'ls -lR, warm', 's', 0, 1],
	['read-all', 0, 'read all of them, cold', 's', 0, 3],
	['rm-rf', 0, 'rm -rf', 's', 0, 2.5],
	['postmark', 0, 'PostMark, 500 files, 1000', 's', 0, 3],
	['bonnie-seq-create', 0, 'Bonnie++ create, in order', '/s', 1, undef],
	['bonnie-seq-read', 0, '  stat and read', '/s', 1, undef],
	['bonnie-seq-delete', 0, '  delete', '/s', 1, undef],
	['bonnie-random-create', 0, 'Bonnie++ create, at random', '/s', 1, undef],
	['bonnie-random-read', 0, '  stat and read', '/s', 1, undef],
	['bonnie-random-delete', 0, '  delete', '/s', 1, undef],
);

sub number {
	my ($v) = @_;
	return defined($v) ? sprintf($v >= 1000 ? '%.0f' : $v >= 100 ? '%.0f' : '%.2f', $v) : '-';
}

printf("%-28s %-5s %8s %8s %6s  %-6s %8s %8s %8s  %s\n", 'measure', 'unit', 'PVFS', 'NFSv4.2', 'ratio', 'asked', 'striped',
       'noac', 'gluster', 'PVFS min..max');
for (@rows) {
	my ($what, $i, $text, $unit, $more, $goal) = @$_;
	my ($p, $n) = map { median("$_ $what", $i) } qw(pvfs nfs);
	next unless defined($p);
	my $ratio = $p && $n && ($more ? $p / $n : $n / $p);
	my $asked = defined($goal) ? sprintf('%.1f%s', $goal, ($ratio // 0) >= $goal ? ' ok' : ' NO') : '';
	printf("%-28s %-5s %8s %8s %6s  %-6s %8s %8s %8s  %s\n", $text, $unit, number($p), number($n),
	       $ratio ? sprintf('%.2f', $ratio) : '-', $asked, map({ number(median("$_ $what", $i)) } qw(striped noac gluster)),
	       spread("pvfs $what", $i));
}
my ($stream, $trip) = (median('raw stream'), median('raw trip'));
if (defined $stream) {
	printf("\nlimits: one TCP stream %.0f MB/s, a round trip of 128 bytes %.0f us\n", $stream, $trip);
	for (['write-1m', 'write 1 MiB'], ['read-1m', 'cold read 1 MiB']) {
		my $p = median("pvfs $_->[0]");
		printf("%s: %.0f%% of the stream (goal 45%%)\n", $_->[1], 100 * $p / $stream) if defined $p;
	}
	for (['direct-read-4k', 'a 4 KiB direct read'], ['direct-write-4k', 'a 4 KiB direct write'], ['stat-cold', 'a cold stat'],
	     ['create', 'create and close'], ['unlink', 'an unlink']) {
		my $p = median("pvfs $_->[0]");
		printf("%s: %.0f us, %.1f raw round trips\n", $_->[1], 1e6 / $p, 1e6 / $p / $trip) if $p;
	}
}
