# SPDX-License-Identifier: GPL-2.0-only
#
# What the benchmarks draw with, for a `require': a graph is a table on stdout,
# its data, and two pictures by gnuplot.
use strict;
use warnings;

sub median {
	my @s = sort { $a <=> $b } @_ or return;
	return @s % 2 ? $s[$#s / 2] : ($s[@s / 2 - 1] + $s[@s / 2]) / 2;
}

# plot(DIR, NAME, {title, xlabel, ylabel, log: x is}, [TITLE of a line...], [X, Y...]...); a Y may be undef.
sub plot {
	my ($dir, $name, $is, $lines, @rows) = @_;
	return unless @rows;

	printf("%s, %s\n", $is->{title}, $is->{ylabel});
	printf("%-24s" . " %16s" x @$lines . "\n", $is->{xlabel}, @$lines);
	open(my $data, '>', "$dir/$name.dat") or die "$dir/$name.dat: $!\n";
	for my $row (@rows) {
		my ($x, @y) = map { $_ // 'NaN' } @$row;
		printf("%-24s" . " %16s" x @y . "\n", $x, map { /\.\d\d\d/ ? sprintf('%.2f', $_) : $_ } @y);
		print $data join(' ', $x, @y), "\n";
	}
	print "\n";
	close($data) or die "$dir/$name.dat: $!\n";
	for (['png', 'pngcairo size 800,500'], ['svg', 'svg size 800,500']) {
		my ($ext, $term) = @$_;

		open(my $g, '|-', 'gnuplot') or die "gnuplot: $!\n";
		print $g "set terminal $term\nset output '$dir/$name.$ext'\nset title '$is->{title}'\n",
			 "set xlabel '$is->{xlabel}'\nset ylabel '$is->{ylabel}'\nset grid\nset key left top\nset yrange [0:*]\n",
			 $is->{log} ? "set logscale x 2\n" : "set xtics 1\n", 'plot ',
			 join(', ', map { "'$dir/$name.dat' using 1:" . ($_ + 2) . " with linespoints title '$lines->[$_]'" } 0 .. $#$lines),
			 "\n";
		close($g) or die "gnuplot failed\n";
	}
	unlink("$dir/$name.dat");
}

1;
