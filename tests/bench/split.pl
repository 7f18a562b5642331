#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes a table of what tests/bench/split.sh has measured: us a file, medians of
# the rounds. CLOSE is left out: nobody waits for it.
#
#	split.pl RAW
use strict;
use warnings;

my (%files, %ops, @order);
open(my $f, '<', $ARGV[0] // die "usage: split.pl RAW\n") or die "$ARGV[0]: $!\n";
while (<$f>) {
	my ($split, $what, $op, @n) = split;
	next if $split ne 'split' || $op eq 'CLOSE';
	if ($op eq 'FILES') {
		push @order, $what unless $files{$what};
		push @{$files{$what}}, $n[0];
	} else {
		push @{$ops{$what}{$op}[$_]}, $n[$_] for 0 .. 2;
	}
}

sub median {
	my @s = sort { $a <=> $b } @{$_[0]};
	return @s % 2 ? $s[$#s / 2] : ($s[@s / 2 - 1] + $s[@s / 2]) / 2;
}

printf("%-14s %8s %8s %8s %8s  %s\n", 'us a file', 'all', 'client', 'wire', 'manager', 'messages');
for my $what (@order) {
	my ($wait, $mgr, @names) = (0, 0);
	for my $op (sort keys %{$ops{$what}}) {
		my ($count, $w, $m) = map { median($_) } @{$ops{$what}{$op}};
		next if $count < 500;	# of 1,000 files: others are accidents
		$wait += $w * $count / 1000;
		$mgr += $m * $count / 1000;
		push @names, $op;
	}
	my $all = median($files{$what});
	printf("%-14s %8.0f %8.0f %8.0f %8.0f  %s\n", $what, $all, $all - $wait, $wait - $mgr, $mgr, "@names");
}
