# SPDX-License-Identifier: GPL-2.0-only
#
# What bad.sh asks of full disks, under the mgr and under the I/O daemons, and of what is written to the page cache then.
# Sourced by it, after bad_behind.sh. Each call of a program is 4 KiB; nothing is written back by itself.
# shellcheck shell=bash disable=SC2154

full_iod()
{
	local rc=0 t0=$SECONDS

	"$cluster" up --size 48M
	head -c 8000000 /dev/urandom >"$tmp/keep"
	cp "$tmp/keep" "$M/keep"
	LC_ALL=C within 120 dd if=/dev/zero of="$M/fill" bs=1M count=400 2>"$tmp/dd" || rc=$?
	cat "$tmp/dd"
	df "$M"
	[ $rc = 1 ]
	grep -q 'No space left' "$tmp/dd"
	drop_caches
	cmp "$tmp/keep" "$M/keep"
	# Names need the mgr only.
	mkdir "$M/still"
	ls -l "$M"
	rm "$M/fill"
	eventually 20 eval 'cp "$tmp/keep" "$M/again" 2>/dev/null'
	cmp "$tmp/keep" "$M/again"
	cmp "$tmp/keep" "$M/keep"
	within 60 "$cluster" umount
	"$cluster" mount
	eventually 20 eval 'cp "$tmp/keep" "$M/again" 2>/dev/null'
	rm "$M/again" "$M/keep"
	rmdir "$M/still"
}

full_mgr()
{
	local rc=0 i

	mkdir "$M/dir"
	echo before >"$M/dir/before"
	dd if=/dev/zero of=/run/pvfs-cluster/volume/mgr/filler bs=64k 2>/dev/null || true
	df /run/pvfs-cluster/volume/mgr
	for ((i = 0; i < 20000; i++)); do
		LC_ALL=C mkdir "$M/dir/d$i" 2>"$tmp/err" || { rc=1; break; }
	done
	cat "$tmp/err"
	[ $rc = 1 ]
	grep -q 'No space left' "$tmp/err"
	LC_ALL=C refuse tee -a "$M/dir/before" <<<more 2>"$tmp/err"
	grep -q 'No space left' "$tmp/err"
	[ "$(cat "$M/dir/before")" = before ]
	rm /run/pvfs-cluster/volume/mgr/filler
	eventually 20 mkdir "$M/dir/after"
	# All that was acknowledged is there, also after a restart.
	"$cluster" kill mgr
	"$cluster" start mgr
	[ "$(ls "$M/dir" | wc -l)" = $((i + 2)) ]
	[ "$(cat "$M/dir/before")" = before ]
	rm -r "$M/dir"
}

# What close says of a file $1 when somebody has filled the disk under the manager with $2, to the last byte, before it is
# told what was written: it had kept room for that. It is kept back for a second; if the disk was not full by then, it is
# there. No process is started meanwhile: its end would close the file, too.
full_draft()
{
	rm -f "$2"
	eventually 20 touch "$M/room"
	LC_ALL=C perl -e 'open(F, ">", $ARGV[0]) or die "open: $!"; syswrite(F, "x" x 16000) or die "write: $!";
		open(D, ">", $ARGV[1]); 1 while syswrite(D, "x" x 65536); print close(F) ? "closed" : "close: $!"' "$1" "$2"
}

logged_as_lost()
{
	dmesg | grep "inode $1: what was written to a new file is lost: error -28"
}

# With flush=close that says so; else the log does. Nothing is there by halves.
full_mgr_draft()
{
	local i said ino told=1 filler=/run/pvfs-cluster/volume/mgr/filler

	"$cluster" mount -o flush=close /mnt/full
	for i in 1 2 3 4 5; do
		said=$(full_draft "/mnt/full/draft$i" $filler)
		echo "$said"
		[ "$said" = closed ] || break
	done
	[ "$said" = 'close: No space left on device' ]
	[ "$(stat -c %s "$M/draft$i")" = 0 ]
	for i in 1 2 3 4 5; do
		full_draft "$M/behind$i" $filler
		# Who asks waits for it.
		ino=$(stat -c %i "$M/behind$i")
		if [ "$(stat -c %s "$M/behind$i")" = 0 ] && eventually 5 logged_as_lost "$ino"; then
			told=0
			break
		fi
	done
	rm $filler
	eventually 20 cp /bin/true "$M/again"
	rm "$M/draft"* "$M/behind"* "$M/again" "$M/room"
	"$cluster" umount /mnt/full
	return $told
}

# Files below small are with the iods from the start.
full_files()
{
	mkdir "$M/small"
	setfattr -n pvfs.layout -v stuff_max=0 "$M/small"
}

# full_python: python with the words of behind.py, and of files that are written to in order: File(name) is a new one,
# put() writes a call more, or what is left of it, and says how many bytes, right() looks at all that was taken.
full_python()
{
	by_hand
	{
		cat <<-'END'
			import errno, glob
			from behind import *
			CALL = 4096
			def block(at):
			    return (b'%015d\n' % (at // CALL) * (CALL // 16))[at % CALL:]
			class File:
			    def __init__(self, name):
			        self.name, self.end, self.fd = name, 0, os.open(f'{mine}/{name}', os.O_RDWR | os.O_CREAT | os.O_EXCL)
			    def put(self):
			        n = os.write(self.fd, block(self.end))
			        self.end += n
			        return n
			    def puts(self, size):
			        while size > 0:
			            size -= self.put()
			    def told(self):
			        """errno of the next call, or 0"""
			        try:
			            self.put()
			        except OSError as e:
			            return e.errno
			        return 0
			    def right(self, end=None):
			        end = self.end if end is None else end
			        for at in range(0, end, CALL):
			            want = block(at)[:end - at]
			            got = os.pread(self.fd, len(want), at)
			            assert got == want, (self.name, at, end, got[:16], len(got))
			def free():
			    return [os.statvfs(store) for store in glob.glob('/run/pvfs-cluster/volume/iod*')]
			# Room for so many bytes on each, no more; all that comes is a file of 64 KiB units.
			def fill(left):
			    with open(f'{mine}/fill', 'wb', buffering=0) as f:
			        while min(st.f_bavail * st.f_frsize - st.f_blocks * st.f_frsize // 16 for st in free()) > left + (1 << 20):
			            f.write(bytes(1 << 20))
		END
		cat
	} | behind_python "$M/small" none "$S"
	by_itself
}

# write(2) says it, and not fsync or close, which have nothing to tell: what was taken is there. With room again writes go
# behind again.
full_small()
{
	full_python <<-'END'
		fill(12 << 20)
		a = File('a')
		reset()
		why = 0
		while not why:
		    assert a.end < 100 << 20, 'there is no end'
		    why = a.told()
		same(why, errno.ENOSPC)
		behind = counted('written_behind')
		print('full after', a.end, 'of which', behind, 'had gone behind')
		# Each iod had 12 MiB or more, and this is where the first of them ends.
		assert a.end > 40 << 20 and behind > 20 << 20
		same((came(a.fd), came(a.fd)), (0, 0))
		calm()
		same(os.fstat(a.fd).st_size, a.end)
		a.right()
		# It does not go behind now, and is told at once.
		same((a.told(), counted('written_behind')), (errno.ENOSPC, behind))
		os.unlink(f'{mine}/fill')
		eventually(lambda: (a.put(), counted('written_behind') > behind)[-1])
		os.close(a.fd)
		a.fd = os.open(f'{mine}/a', os.O_RDONLY)
		same(os.fstat(a.fd).st_size, a.end)
		a.right()
		os.close(a.fd)
		os.unlink(f'{mine}/a')
	END
}

# Several files: what one of them has taken on its account is not used up by another, nor by large calls.
full_several()
{
	full_python <<-'END'
		fill(12 << 20)
		idle, large, files = File('idle'), File('large'), [File(name) for name in 'abc']
		reset()
		idle.puts(8 << 20)
		same(counted('written_behind'), 8 << 20)
		left = list(files)
		while left:
		    for f in list(left):
		        assert f.end < 100 << 20, 'there is no end'
		        why = f.told()
		        if why:
		            same(why, errno.ENOSPC)
		            left.remove(f)
		assert counted('written_behind') > 16 << 20
		for f in files + [idle]:
		    same(came(f.fd), 0, f.name)
		calm()
		for f in files + [idle]:
		    same(os.fstat(f.fd).st_size, f.end)
		    f.right()
		    os.close(f.fd)
		    os.unlink(f'{mine}/{f.name}')
		# Room for what is kept, and not much more; and then who takes all there is.
		fd = os.open(f'{mine}/fill', os.O_WRONLY)
		os.ftruncate(fd, 0)
		eventually(lambda: min(st.f_bavail * st.f_frsize for st in free()) > 40 << 20)
		fill(6 << 20)
		idle = File('idle')
		reset()
		idle.puts(6 << 20)
		assert counted('written_behind') > 4 << 20
		try:
		    while True:
		        os.write(large.fd, bytes(1 << 20))
		        assert os.lseek(large.fd, 0, os.SEEK_CUR) < 100 << 20
		except OSError as e:
		    same(e.errno, errno.ENOSPC)
		same(came(idle.fd), 0)
		calm()
		idle.right()
		for f in idle, large:
		    os.close(f.fd)
		    os.unlink(f'{mine}/{f.name}')
		os.close(fd)
		os.unlink(f'{mine}/fill')
	END
}

# Who writes to a nearly full iod waits for what others have kept for that one, not for what another iod, which hangs, is to get.
full_beside_hung()
{
	full_python <<-'END'
		import subprocess, threading
		iod = int(subprocess.check_output(['pgrep', '-f', 'pvfs-iod --index 0']))
		def new_at(iod, name):
		    path = f'{mine}/{name}'
		    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
		    os.setxattr(path, 'pvfs.layout', f'base={iod} pcount=1 ssize=65536'.encode())
		    return os.open(path, os.O_RDWR)
		kept, other = new_at(0, 'kept'), new_at(1, 'other')
		fill(6 << 20)
		reset()
		# Its lease may come a moment after the first open's CLOSE.
		eventually(lambda: (os.pwrite(kept, bytes(4096), 0), counted('written_behind') > 0)[-1])
		os.pwrite(kept, bytes_of(2 << 20), 0)
		assert counted('written_behind') >= 2 << 20
		large = bytes_of(4 << 20, 5)
		wrote = []
		t = threading.Thread(target=lambda: wrote.append(os.pwrite(other, large, 0)))
		freeze(iod)
		try:
		    t.start()
		    eventually(lambda: wrote)
		finally:
		    os.kill(iod, signal.SIGCONT)
		    t.join()
		same(wrote, [len(large)])
		same((came(kept), came(other)), (0, 0))
		same(os.pread(other, len(large), 0), large)
		same(os.pread(kept, 2 << 20, 0), bytes_of(2 << 20))
		for fd, name in (kept, 'kept'), (other, 'other'):
		    os.close(fd)
		    os.unlink(f'{mine}/{name}')
		os.unlink(f'{mine}/fill')
	END
}

# Others take the room when bytes have been taken for it: then fsync says so, and from then on write(2) itself.
full_by_others()
{
	full_python <<-'END'
		f = File('full')
		f.puts(2 << 20)
		same(came(f.fd), 0)
		synced = f.end
		reset()
		f.puts(2 << 20)
		same(counted('written_behind'), 2 << 20)
		fillers = [store + '/filler' for store in glob.glob('/run/pvfs-cluster/volume/iod*')]
		for name in fillers:
		    try:
		        with open(name, 'wb', buffering=0) as g:
		            while True:
		                g.write(bytes(1 << 20))
		    except OSError as e:
		        same(e.errno, errno.ENOSPC)
		same(came(f.fd), errno.ENOSPC)
		same(came(f.fd), 0)
		same(f.told(), errno.ENOSPC)
		eventually(lambda: leases('writes') == 0)
		same(f.told(), errno.ENOSPC)
		calm()
		f.right(synced)
		os.close(f.fd)
		os.unlink(f'{mine}/full')
		for name in fillers:
		    os.unlink(name)
		f = File('full')
		eventually(lambda: f.told() == 0)
		f.right()
		os.close(f.fd)
		os.unlink(f'{mine}/full')
	END
}
