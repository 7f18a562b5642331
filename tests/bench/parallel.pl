#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes tables and graphs of the lines of tests/bench/parallel.sh, links.sh and
# user.sh; of repeated lines medians.
#
#	parallel.pl RAW DIR
use strict;
use warnings;
use File::Basename;
use File::Spec;
require(dirname(File::Spec->rel2abs(__FILE__)) . '/plot.pl');

my ($raw, $dir) = @ARGV;
die "usage: parallel.pl RAW DIR\n" unless defined $dir;
my $link = 12.5;	# MB/s of a link, packets and all
my (@line, %bonnie);

# "[FS] WHAT WAY KEY=VALUE..."
open(my $f, '<', $raw) or die "$raw: $!\n";
while (<$f>) {
	if (/^(\S+) bonnie-(\S+) ([\d.]+)/) {
		push @{$bonnie{$2}{$1}}, $3;
		next;
	}
	/^(?:(pvfs|pvfsd) )?(raw|test|perf|tile|tile-messages|records|md)(?: ([a-z-]+))?((?: [a-z_]+=\S+)+)$/ or next;
	my %l = (fs => $1 // '', what => $2, way => $3 // '', map { split /=/, $_, 2 } split ' ', $4);
	$l{block} = $l{block} / 1024 if $l{block};
	push @line, \%l;
}

# The lines that have all of these values.
sub pick {
	my %want = @_;
	return grep { my $l = $_; !grep { ($l->{$_} // '') ne $want{$_} } keys %want } @line;
}

# value KEY WANTED...: median
sub value {
	my $key = shift;
	return scalar median(map { $_->{$key} // () } pick(@_));
}

sub values_of {
	my ($key, @lines) = @_;
	my %v = map { defined $_->{$key} ? ($_->{$key} => 1) : () } @lines;
	no warnings 'numeric';
	return sort { $a <=> $b || $a cmp $b } keys %v;
}

sub ratio {
	my ($a, $b) = @_;
	return defined $a && $b ? sprintf('%.2f', $a / $b) : '-';
}

# graph NAME TITLE X-LABEL X-KEY WANTED-OF-ALL [TITLE => {WANTED}]...: MB/s
sub graph {
	my ($name, $title, $xlabel, $x, $all, @of) = @_;
	my (@titles, @wanted);

	while (my ($t, $w) = splice @of, 0, 2) {
		next unless pick(%$all, %$w);
		push @titles, $t;
		push @wanted, { %$all, %$w };
	}
	# A factor of 0 is that of all daemons.
	my @x = grep { $x ne 'factor' || $_ } values_of($x, map { pick(%$_) } @wanted);
	return if @x < 2;
	plot($dir, $name, { title => $title, xlabel => $xlabel, ylabel => 'MB/s', log => 1 }, \@titles,
	     map { my $at = $_; [$at, map { value('mbs', %$_, $x => $at) } @wanted] } @x);
}

# ---- one stream beside TCP

sub stream {
	my %tcp = (write => 'put', read => 'get');

	return unless pick(what => 'raw', peer => 'file');
	print "One stream of calls of 1, 4 and 16 MiB, and TCP alone; CPU in ms a MiB\n";
	printf("%-28s %10s %10s %10s %12s %12s\n", '', 'MB/s', 'client', 'daemons', 'of TCP', 'of TCP, file');
	for my $way ('write', 'read') {
		my @raw = map { value('mbs', what => 'raw', way => $tcp{$way}, peer => $_) } 'memory', 'file';
		my @rows = map { ["TCP, $_", { what => 'raw', way => $tcp{$way}, peer => $_ }] } 'memory', 'file';

		for my $a ('lib', 'mpi') {
			for my $iods (1, 4) {
				push @rows, map { ["$a, $iods iods, $_ MiB", { what => 'test', way => $way, api => $a,
					procs => 1, block => 1024 * $_, factor => $iods }] } 1, 4, 16;
			}
		}
		for (@rows) {
			my ($title, $w) = @$_;
			my $v = value('mbs', %$w) // next;

			printf("%-28s %10.0f %10.3f %10.3f %12s %12s\n", "$way: $title", $v, value('cpu_ms_mib', %$w),
			       value('daemons_ms_mib', %$w), map { ratio($v, $_) } @raw);
		}
	}
	print "\n";
}

# ---- links

sub links {
	my @n = values_of('links', @line) or return;

	print "By links of $link MB/s, blocks of 1 MiB: MB/s, share of the links, and of what TCP gets over them\n";
	printf("%-8s %-6s %10s  %s\n", 'links', '', 'TCP', join(' ', map { my $a = $_; map { sprintf('%-22s', "$a, $_ procs") } 1, 4, 8 } 'lib', 'mpi'));
	for my $n (@n) {
		for (['write', 'put'], ['read', 'get']) {
			my ($way, $tcp) = @$_;
			my $raw = value('mbs', what => 'raw', way => $tcp, links => $n);

			printf("%-8d %-6s %10.2f  ", $n, $way, $raw);
			for my $a ('lib', 'mpi') {
				for my $p (1, 4, 8) {
					my $v = value('mbs', what => 'test', way => $way, api => $a, procs => $p,
						      block => 1024, factor => $n);
					printf('%-22s ', defined $v ? sprintf('%7.2f %5s %5s', $v, ratio($v, $n * $link), ratio($v, $raw)) : '-');
				}
			}
			print "\n";
		}
	}
	print "\n";
	graph("links-$_->[0]", "By I/O daemons on links of 100 Mbit/s, $_->[0], 1 MiB", 'I/O daemons', 'factor',
	      { what => 'test', way => $_->[0], block => 1024 },
	      map { my $a = $_; map { ("$a, $_ processes" => { api => $a, procs => $_ }) } 1, 4, 8 } 'lib', 'mpi') for ['write'], ['read'];
}

# ---- by block, by process

sub processes {
	return map { my $w = $_; map { ("$w, $_ processes" => { api => $w, procs => $_ }) } 1, 2, 4, 8 } @_;
}

my $kind = (pick(what => 'raw', way => 'put', links => 1)) ? 'links-' : '';
stream();
links();
for my $way ('write', 'read') {
	graph("${kind}test-$way", "pvfs_test, $way", 'block, KiB', 'block', { what => 'test', way => $way, factor => 0, fs => '' },
	      processes('lib', 'mpi'));
	for my $n (1, 4) {
		graph("user-$way-$n", "pvfsd and the module, $way, processes: $n", 'block, KiB', 'block',
		      { what => 'test', way => $way, procs => $n }, pvfsd => { fs => 'pvfsd' }, module => { fs => 'pvfs' });
	}
}
for my $way ('write', 'write-sync', 'read', 'read-after-sync') {
	graph("${kind}perf-$way", "perf, $way", 'processes', 'procs', { what => 'perf', way => $way },
	      map { my $a = $_; map { ("$a, $_ MiB" => { api => $a, block => $_ * 1024 }) } 4, 16, 64 } 'lib', 'mpi');
}

if (pick(what => 'tile')) {
	print "mpi-tile-io, four tiles: MB/s, and messages to the I/O daemons\n";
	for my $a ('lib', 'mpi') {
		for my $way ('write', 'read') {
			my %v = map { $_ => value('mbs', what => 'tile', way => $way, api => $a, how => $_) } qw(list pieces collective);
			my %m = map { $_ => value($way, what => 'tile-messages', api => $a, how => $_) } keys %v;

			printf("%-10s", "$a $way");
			printf(" %s %.0f (%s)", $_, $v{$_}, $m{$_} // '-') for grep { defined $v{$_} } qw(list pieces collective);
			printf("; list/pieces %s\n", ratio($v{list}, $v{pieces}));
		}
	}
	print "\n";
}

if (pick(what => 'records', files => 'own')) {
	print "Records of 47,008 bytes: one file shared, a file for each, MB/s\n";
	for my $a ('lib', 'mpi') {
		for my $n (values_of('procs', pick(what => 'records', api => $a))) {
			for my $way ('write', 'read') {
				my ($s, $o) = map { value('mbs', what => 'records', way => $way, api => $a, procs => $n, files => $_) } 'shared', 'own';
				printf("%-24s %8.0f %8.0f %8s\n", "$a, $n processes, $way", $s, $o, ratio($s, $o));
			}
		}
	}
	print "\n";
}

if (my @md = pick(what => 'md')) {
	my @n = values_of('procs', @md);

	print "Files a second, by processes\n";
	printf("%-24s" . " %10s" x @n . "\n", '', @n);
	for my $a (values_of('api', @md)) {
		for my $way (qw(easy-create easy-stat easy-remove hard-create hard-stat hard-read hard-remove)) {
			printf("%-24s" . " %10.0f" x @n . "\n", "$a $way", map { value('files', what => 'md', way => $way, api => $a, procs => $_) } @n);
		}
	}
	print "\n";
}

if (%bonnie) {
	print "Bonnie++, 16 KiB a call: pvfsd, the module (KiB/s, seeks/s; cpu: seconds)\n";
	for my $m (qw(write rewrite read seeks cpu)) {
		my ($u, $k) = map { scalar median(@{$bonnie{$m}{$_} // []}) } 'pvfsd', 'pvfs';
		printf("%-10s %10s %10s %8s\n", $m, $u // '-', $k // '-', ratio($k, $u));
	}
	print "\nCPU of the client, ms a MiB (processes, and pvfsd or the module's threads)\n";
	for my $way ('write', 'read') {
		for my $b (values_of('block', pick(what => 'test', fs => 'pvfsd'))) {
			my @w = map { { what => 'test', way => $way, procs => 1, block => $b, fs => $_ } } 'pvfsd', 'pvfs';

			printf("%-16s pvfsd %6.2f + %6.2f   module %6.2f + %6.2f\n", "$way $b KiB",
			       map { (value('cpu_ms_mib', %$_) // 0, value('daemons_ms_mib', %$_) // 0) } @w);
		}
	}
	print "\n";
}
