#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# A relay between a client and a PVFS server that harms one in N of the server's
# messages: a bit of header or body flipped, the message cut off, noise put
# before it, or a length that no one may believe, with a checksum that is right.
# Payloads are left alone: what is in them has no checksum by default.
#
#	noise.pl LISTEN-PORT SERVER-PORT ONE-IN-N [SEED]
#	noise.pl LISTEN-PORT garbage
#	noise.pl LISTEN-PORT silent
#	noise.pl LISTEN-PORT slow
#
# The second answers every connection with random bytes, the third accepts and
# says nothing, the fourth says one byte a second. Prints "ready", then a line for each thing it did to a message.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my ($port, $to, $rate, $seed) = @ARGV;
srand($seed // 1);
$| = 1;
$SIG{PIPE} = 'IGNORE';
my @table = map {
	my $c = $_;
	$c = $c & 1 ? ($c >> 1) ^ 0x82f63b78 : $c >> 1 for 1 .. 8;
	$c;
} 0 .. 255;

sub crc32c {
	my $c = 0xffffffff;
	$c = $table[($c ^ $_) & 255] ^ ($c >> 8) for unpack('C*', $_[0]);
	return $c ^ 0xffffffff;
}

my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 64, ReuseAddr => 1)
	or die "listen on $port: $!\n";
print "ready\n";
my $sel = IO::Select->new($listen);
my (%peer, %from_server, %buf);

sub drop {
	for my $s (grep { defined } @_) {
		$sel->remove($s);
		delete @{$_}{$s} for \%peer, \%from_server, \%buf;
		close($s);
	}
}

sub send_all {
	my ($s, $data) = @_;
	while (length $data) {
		my $n = syswrite($s, $data);
		return 0 unless defined $n;
		substr($data, 0, $n, '');
	}
	return 1;
}

# Passes on whole messages; returns false when the connection has had it.
sub pass {
	my ($s) = @_;
	while (length($buf{$s}) >= 64) {
		my ($body, $payload) = unpack('VV', substr($buf{$s}, 36, 8));
		my $n = 64 + $body + $payload;
		return 1 if length($buf{$s}) < $n;
		my $m = substr($buf{$s}, 0, $n, '');
		if (rand($rate) < 1) {
			my $what = int(rand(4));
			if ($what == 0) {
				my $bit = int(rand((64 + $body) * 8));
				substr($m, $bit >> 3, 1) ^= chr(1 << ($bit & 7));
				print "flipped bit $bit\n";
			} elsif ($what == 1) {
				print "cut a message\n";
				send_all($peer{$s}, substr($m, 0, 1 + int(rand($n - 1))));
				return 0;
			} elsif ($what == 2) {
				print "sent noise\n";
				$m = join('', map { chr(int(rand(256))) } 1 .. 1 + int(rand(200))) . $m;
			} else {
				print "sent a length of 4 GiB\n";
				substr($m, rand(2) < 1 ? 36 : 40, 4) = pack('V', 0xffffffff);
				substr($m, 60, 4) = pack('V', crc32c(substr($m, 0, 60)));
			}
		}
		send_all($peer{$s}, $m) or return 0;
	}
	return 1;
}

my %slow;
for (;;) {
	my @ready = $sel->can_read($to eq 'slow' ? 1 : undef);
	syswrite($_, "P") for @ready ? () : values %slow;
	for my $s (@ready) {
		if ($s == $listen) {
			my $c = $listen->accept or next;
			if ($to eq 'garbage') {
				send_all($c, join('', map { chr(int(rand(256))) } 1 .. 5000));
				close($c);
				next;
			}
			if ($to eq 'slow') {
				$slow{$c} = $c;
				next;
			}
			if ($to eq 'silent') {
				$peer{$c} = $c;
				next;
			}
			my $d = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to");
			$d or (close($c), next);
			($peer{$c}, $peer{$d}) = ($d, $c);
			$from_server{$d} = 1;
			$buf{$d} = '';
			$sel->add($c, $d);
			next;
		}
		next unless $peer{$s};	# dropped in this round
		my $n = sysread($s, my $data, 262144);
		if (!$n) {
			drop($peer{$s}, $s);
		} elsif (!$from_server{$s}) {
			send_all($peer{$s}, $data) or drop($peer{$s}, $s);
		} else {
			$buf{$s} .= $data;
			pass($s) or drop($peer{$s}, $s);
		}
	}
}
