#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes the graphs of tests/bench/postmark.sh from its lines, as tables, and as
# PNG and SVG by gnuplot.
#
#	graphs.pl RAW DIR
use strict;
use warnings;
use File::Basename;
use File::Spec;
require(dirname(File::Spec->rel2abs(__FILE__)) . '/plot.pl');

my ($raw, $dir) = @ARGV;
die "usage: graphs.pl RAW DIR\n" unless defined $dir;
my %v;
open(my $f, '<', $raw) or die "$raw: $!\n";
while (<$f>) {
	my ($where, $what, @n) = split;
	push @{$v{"$where $what"}[$_]}, $n[$_] for 0 .. $#n;
}

my @where = (['none', 'striped'], ['db', 'in the database'], ['file', 'in files']);

# graph NAME TITLE X-LABEL Y-LABEL LOG PREFIX COLUMN
sub graph {
	my ($name, $title, $xlabel, $ylabel, $log, $prefix, $column) = @_;
	my %x = map { /^\S+ $prefix-(\d+)$/ ? ($1 => 1) : () } keys %v;

	plot($dir, $name, { title => $title, xlabel => $xlabel, ylabel => $ylabel, log => $log }, [map { $_->[1] } @where],
	     map { my $x = $_; [$x, map { scalar(median(@{($v{"$_->[0] $prefix-$x"} // [])->[$column] // []})) } @where] }
	     sort { $a <=> $b } keys %x);
}

graph('postmark-read', 'PostMark by file size, read', 'KiB', 'MB/s', 1, 'postmark', 0);
graph('postmark-written', 'PostMark by file size, written', 'KiB', 'MB/s', 1, 'postmark', 1);
graph('large-write', 'A large file beside small-file clients, write', 'small-file clients', 'MB/s', 0, 'beside', 0);
graph('large-read', 'A large file beside small-file clients, read', 'small-file clients', 'MB/s', 0, 'beside', 1);
graph('small-beside', 'Small files beside a large one', 'small-file clients', 'files/s', 0, 'beside', 2);
