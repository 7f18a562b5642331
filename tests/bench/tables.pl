#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes tables of what tests/bench/tables.sh has measured: medians.
#
#	tables.pl RAW
use strict;
use warnings;

my %v;
open(my $f, '<', $ARGV[0] // die "usage: tables.pl RAW\n") or die "$ARGV[0]: $!\n";
while (<$f>) {
	my ($how, $what, @n) = split;
	push @{$v{$how}{$what}[$_]}, $n[$_] for 0 .. $#n;
}

sub median {
	my ($how, $what, $i) = @_;
	my $l = ($v{$how}{$what} // return '-')->[$i] // return '-';
	my @s = sort { $a <=> $b } @$l;
	return @s % 2 ? $s[$#s / 2] : ($s[@s / 2 - 1] + $s[@s / 2]) / 2;
}

for my $how (qw(leases no-leases)) {
	printf("untar of kernel headers, %s: %s s\n", $how =~ tr/-/ /r, median($how, 'untar', 0));
	printf("  %-14s %8s %10s\n", 'operation', 'count', 'mean us');
	printf("  %-14s %8s %10s\n", $_, median($how, $_, 0), median($how, $_, 1))
		for sort { median($how, $b, 0) <=> median($how, $a, 0) } grep { !/^(untar|ls-aR)$/ } keys %{$v{$how}};
	print "\n";
}
print "ls -aR of them, cold\n";
printf("  %-30s %8s %10s\n", '', 's', 'READDIRs');
for my $how (qw(leases no-leases)) {
	for my $n (qw(many one)) {
		printf("  %-30s %8s %10s\n", ($how =~ tr/-/ /r) . ", $n a message", median("$how-$n", 'ls-aR', 0),
		       median("$how-$n", 'ls-aR', 1));
	}
}
