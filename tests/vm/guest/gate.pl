#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only
#
# A relay between clients and a PVFS server that stops at one message.
#
#	gate.pl LISTEN-PORT SERVER-PORT OP N ask|answer|eio
#
# The Nth request with the number OP is held, with all that its client sends behind it on that
# connection ("ask"); or it is passed on, and nothing that the server says there is ("answer"); or it, and each that comes
# after it, is answered EIO, which the server does not hear of ("eio", until SIGHUP).
# Prints "ready", and "held" when that has happened. Then
#
#	SIGUSR1	nothing passes on the other connections either, in both directions
#	SIGUSR2	these are closed towards the client; new ones pass
#	SIGHUP	all passes again; what the server has closed meanwhile is closed
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my ($port, $to, $op, $nth, $what) = @ARGV;
$| = 1;
$SIG{PIPE} = 'IGNORE';
my (%peer, %client, %buf, %parse, %shut, %held, %gone, %eat, @signals);
$SIG{$_} = sub { push @signals, $_[0] } for qw(USR1 USR2 HUP);

my $listen = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 64, ReuseAddr => 1)
	or die "listen on $port: $!\n";
print "ready\n";
my $sel = IO::Select->new($listen);

sub drop {
	for my $s (grep { defined } @_) {
		$sel->remove($s);
		delete @{$_}{$s} for \%peer, \%client, \%buf, \%parse, \%shut, \%held, \%gone, \%eat;
		close($s);
	}
}

sub crc32c {
	my $c = 0xffffffff;
	for my $b (unpack('C*', $_[0])) {
		$c ^= $b;
		$c = $c & 1 ? $c >> 1 ^ 0x82f63b78 : $c >> 1 for 1 .. 8;
	}
	return $c ^ 0xffffffff;
}

# A reply without a body to the request with that header; wire errno 5, 32 more credits.
sub refusal {
	my ($h) = @_;
	my ($front, $tag_to_slot) = (substr($h, 0, 8), substr($h, 12, 14));
	my $r = $front . pack('V', 1) . $tag_to_slot . pack('v', 32) . substr($h, 28, 4) . pack('V', 5) . "\0" x 24;
	return substr($r, 0, 60) . pack('V', crc32c(substr($r, 0, 60)));
}

# What has come from $s goes on, unless it is shut.
sub pass {
	my ($s) = @_;
	while (!$shut{$s} && length $buf{$s}) {
		my $n = length $buf{$s};
		if ($client{$s}) {
			# To the end of the message that is under way.
			if (!$parse{$s}) {
				return if $n < 64;
				my ($o) = unpack('v', substr($buf{$s}, 6, 2));
				my ($body, $payload) = unpack('VV', substr($buf{$s}, 36, 8));
				$parse{$s} = 64 + $body + $payload;
				if ($o == $op && $what eq 'eio' && --$nth <= 0) {
					$eat{$s} = substr($buf{$s}, 0, 64);
					print "held\n";
				} elsif ($o == $op && $what ne 'eio' && --$nth == 0) {
					$shut{$what eq 'ask' ? $s : $peer{$s}} = 1;
					$held{$s} = $held{$peer{$s}} = 1;
					print "held\n";
					return if $what eq 'ask';
				}
			}
			$n = $parse{$s} if $n > $parse{$s};
			$parse{$s} -= $n;
		}
		my $data = substr($buf{$s}, 0, $n, '');
		if ($eat{$s}) {
			syswrite($s, refusal(delete $eat{$s})) unless $parse{$s};
			next;
		}
		while (length $data) {
			my $did = syswrite($peer{$s}, $data);
			defined $did or return drop($peer{$s}, $s);
			substr($data, 0, $did, '');
		}
	}
}

sub command {
	my ($name) = @_;
	$op = -1 if $name eq 'HUP' && $what eq 'eio';
	for my $s (grep { $peer{$_} } $sel->handles) {
		if ($name eq 'HUP') {
			delete $shut{$s};
			$gone{$s} ? drop($peer{$s}, $s) : pass($s);
		} elsif ($name eq 'USR1') {
			$shut{$s} = 1 unless $held{$s};
		} elsif ($client{$s} && $shut{$s} && !$held{$s}) {
			drop($peer{$s}, $s);
		}
	}
}

for (;;) {
	my @ready = $sel->can_read(@signals ? 0 : 0.2);
	while (my $name = shift @signals) {
		command($name);
	}
	for my $s (@ready) {
		if ($s == $listen) {
			my $c = $listen->accept or next;
			my $d = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$to");
			$d or (close($c), next);
			($peer{$c}, $peer{$d}) = ($d, $c);
			$client{$c} = 1;
			$buf{$c} = $buf{$d} = '';
			$sel->add($c, $d);
			next;
		}
		next unless $peer{$s};	# dropped in this round
		my $n = sysread($s, my $data, 262144);
		if (!$n) {
			# The server's end is kept from a client that is to hear nothing.
			if ($shut{$s} && !$client{$s}) {
				$sel->remove($s);
				$gone{$peer{$s}} = 1;
			} else {
				drop($peer{$s}, $s);
			}
			next;
		}
		$buf{$s} .= $data;
		pass($s);
	}
}
