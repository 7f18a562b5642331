#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes the graphs of tests/bench/postmark.sh from its lines, as tables, and as
# PNG and SVG by gnuplot.
#
#	graphs.pl RAW DIR
use strict;
use warnings;

my ($raw, $dir) = @ARGV;
die "usage: graphs.pl RAW DIR\n" unless defined $dir;
my %v;
open(my $f, '<', $raw) or die "$raw: $!\n";
while (<$f>) {
	my ($where, $what, @n) = split;
	push @{$v{"$where $what"}[$_]}, $n[$_] for 0 .. $#n;
}

sub median {
	my ($key, $i) = @_;
	my @s = sort { $a <=> $b } @{($v{$key} // return)->[$i] // return};
	return @s % 2 ? $s[$#s / 2] : ($s[@s / 2 - 1] + $s[@s / 2]) / 2;
}

my @where = (['none', 'striped'], ['db', 'in the database'], ['file', 'in files']);

# graph NAME TITLE X-LABEL Y-LABEL LOG PREFIX COLUMN: a table on stdout, and two pictures.
sub graph {
	my ($name, $title, $xlabel, $ylabel, $log, $prefix, $column) = @_;
	my %x = map { /^\S+ $prefix-(\d+)$/ ? ($1 => 1) : () } keys %v;
	my @x = sort { $a <=> $b } keys %x or return;

	printf("%s, %s\n", $title, $ylabel);
	printf("%-24s" . " %16s" x @where . "\n", $xlabel, map { $_->[1] } @where);
	open(my $data, '>', "$dir/$name.dat") or die "$dir/$name.dat: $!\n";
	for my $x (@x) {
		my @y = map { median("$_->[0] $prefix-$x", $column) // 'NaN' } @where;
		printf("%-24s" . " %16s" x @y . "\n", $x, @y);
		print $data join(' ', $x, @y), "\n";
	}
	print "\n";
	close($data) or die "$dir/$name.dat: $!\n";
	for (['png', 'pngcairo size 800,500'], ['svg', 'svg size 800,500']) {
		my ($ext, $term) = @$_;

		open(my $g, '|-', 'gnuplot') or die "gnuplot: $!\n";
		print $g "set terminal $term\nset output '$dir/$name.$ext'\nset title '$title'\n",
			 "set xlabel '$xlabel'\nset ylabel '$ylabel'\nset grid\nset key left top\nset yrange [0:*]\n",
			 $log ? "set logscale x 2\n" : "set xtics 1\n", 'plot ',
			 join(', ', map { "'$dir/$name.dat' using 1:" . ($_ + 2) . " with linespoints title '$where[$_][1]'" } 0 .. $#where),
			 "\n";
		close($g) or die "gnuplot failed\n";
	}
}

graph('postmark-read', 'PostMark by file size, read', 'KiB', 'MB/s', 1, 'postmark', 0);
graph('postmark-written', 'PostMark by file size, written', 'KiB', 'MB/s', 1, 'postmark', 1);
graph('large-write', 'A large file beside small-file clients, write', 'small-file clients', 'MB/s', 0, 'beside', 0);
graph('large-read', 'A large file beside small-file clients, read', 'small-file clients', 'MB/s', 0, 'beside', 1);
graph('small-beside', 'Small files beside a large one', 'small-file clients', 'files/s', 0, 'beside', 2);
