# SPDX-License-Identifier: GPL-2.0-only
#
# Part of counts.sh: what is written to the page cache, while nobody else has the file open, costs no message until
# somebody wants it. /mnt/leased is mounted, "another" is $M, which writes to the iods. Files below striped are that from
# the start, those below plain when they have outgrown a head.
# shellcheck shell=bash disable=SC2154 # S, M, top, wsize, pcount are lib.sh's and counts.sh's

B=/mnt/leased/behind
behind_interval=$(cat /proc/sys/vm/dirty_writeback_centisecs)

# Pages are written when a row says so: the flusher would look for old ones.
behind_files()
{
	mkdir "$M/behind" "$M/behind/striped" "$M/behind/plain"
	setfattr -n pvfs.layout -v stuff_max=0 "$M/behind/striped"
	echo 360000 >/proc/sys/vm/dirty_writeback_centisecs
}

# python with the words of behind.py; $1: the mount that is looked at. WRITES is how many 1 MiB takes, from the start, and
# WRITES4 how many 4 MiB.
behind_python()
{
	local transfer=$((1024 * 1024)) share

	[ $transfer -le $((pcount * wsize)) ] || transfer=$((pcount * wsize))
	share=$((transfer / pcount))
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/tests/vm/guest \
		WRITES=$((1048576 / transfer * pcount * ((share + wsize - 1) / wsize))) PCOUNT=$pcount \
		WRITES4=$(((4194304 + wsize - 1) / wsize)) WSIZE=$wsize \
		python3 - "${1-$B}" "$M/behind" "$S"
}

behind_new()
{
	behind_python <<-'END'
	from behind import *
	writes, pcount = int(os.environ['WRITES']), int(os.environ['PCOUNT'])
	fd = new('striped/many', os.O_WRONLY)
	same(leases('writes'), 1)
	data = bytes_of(1 << 20)
	for i in range(256):
	    same(os.write(fd, data[i * 4096:(i + 1) * 4096]), 4096)
	sent()
	same(counted('written_behind'), 1 << 20)
	os.fsync(fd)
	sent(WRITE=writes, FSYNC=pcount, REPORT=1)
	# It still has the lease, and the second time there is nothing to do.
	os.fsync(fd)
	sent(WRITE=writes, FSYNC=pcount, REPORT=1)
	os.write(fd, b'more')
	sent(WRITE=writes, FSYNC=pcount, REPORT=1)
	os.fsync(fd)
	reset()
	os.close(fd)
	eventually(sent, CLOSE=1)
	same(leases('writes'), 0)
	same(read(other + '/striped/many'), data + b'more')
	END
}

behind_outgrown()
{
	local stuff

	stuff=$(getfattr --only-values -n pvfs.layout "$M/behind/plain" | sed -n 's/.*stuff_max=\([0-9]*\).*/\1/p')
	STUFF=$stuff behind_python <<-'END'
	from behind import *
	writes, pcount, stuff = (int(os.environ[x]) for x in ('WRITES', 'PCOUNT', 'STUFF'))
	assert 0 < stuff <= 65536 and stuff % 4096 == 0, stuff
	data = bytes_of(1 << 20)
	fits = stuff // 4096
	for again in range(20):
	    fd = new('plain/many', os.O_WRONLY)
	    for i in range(fits):
	        os.write(fd, data[i * 4096:(i + 1) * 4096])
	    none = requests()
	    os.write(fd, data[stuff:stuff + 4096])
	    # A new file is kept back for a second: on a slow machine it may be over, and then a HEAD_WRITE comes first.
	    if time.monotonic() < new.began + 0.9:
	        break
	    os.close(fd)
	    os.unlink(mine + '/plain/many')
	same(none, {})
	for i in range(fits + 1, 256):
	    sent(UNSTUFF=1, WRITE=1)	# of what it was till then
	    os.write(fd, data[i * 4096:(i + 1) * 4096])
	sent(UNSTUFF=1, WRITE=1)
	same(leases('writes'), 1)
	same(counted('written_behind'), len(data) - stuff)
	same(counted('write_leases'), 1)
	os.fsync(fd)
	sent(UNSTUFF=1, WRITE=1 + writes, FSYNC=pcount, REPORT=1)
	reset()
	os.close(fd)
	eventually(sent, CLOSE=1)
	same(read(other + '/plain/many'), data)
	END
}

behind_appends()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/log', os.O_WRONLY | os.O_APPEND)
	for i in range(1000):
	    same(os.write(fd, b'%03d\n' % i), 4)
	sent()
	same(counted('written_behind'), 4000)
	os.close(fd)
	eventually(sent, WRITE=1, CLOSE=1)
	same(read(other + '/striped/log'), b''.join(b'%03d\n' % i for i in range(1000)))
	END
}

behind_read_again()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/again')
	data = bytes_of(300000)
	for i in range(0, len(data), 10000):
	    os.write(fd, data[i:i + 10000])
	same(os.pread(fd, 1 << 20, 0), data)
	same(os.pread(fd, 1 << 20, 100001), data[100001:])
	same(os.pread(fd, 10, len(data)), b'')
	sent()
	same(counted('written_behind'), len(data))
	os.close(fd)
	END
}

behind_end()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/end')
	for n in 1, 2, 3:
	    os.pwrite(fd, bytes_of(5000), (n - 1) * 5000)
	    same(os.lseek(fd, 0, os.SEEK_END), n * 5000)
	    same(os.lseek(fd, -1, os.SEEK_END), n * 5000 - 1)
	sent()
	same(counted('written_behind'), 15000)
	os.close(fd)
	END
}

behind_part()
{
	behind_python <<-'END'
	from behind import *
	want = bytearray(bytes_of(3 * 4096 + 100, 7))
	with open(other + '/striped/old', 'wb') as f:
	    f.write(want)
	fd = held('striped/old', os.O_WRONLY)
	def put(what, at):
	    same(os.pwrite(fd, what, at), len(what))
	    want[at:at + len(what)] = what
	put(b'x' * 10, 5000)
	sent(READ=1)
	put(b'y' * 10, 5020)
	sent(READ=1)
	# A whole one, and all that the last one has, is not read.
	put(b'z' * 4096, 8192)
	put(b'e' * 200, 12288)
	sent(READ=1)
	same(counted('written_behind'), 20 + 4096 + 200)
	os.close(fd)
	eventually(sent, READ=1, WRITE=1, CLOSE=1)
	calm()
	same(read(mine + '/striped/old'), want)
	same(read(other + '/striped/old'), want)
	END
}

# What is dirty here and there of 4 MiB is a message to each iod, if it takes no more bytes than that may carry.
behind_scattered()
{
	behind_python <<-'END'
	import random
	from behind import *
	pcount, wsize = int(os.environ['PCOUNT']), int(os.environ['WSIZE'])
	pages = 1024
	data = bytearray(bytes_of(pages * 4096))
	fd = new('striped/scattered')
	os.write(fd, data)
	os.fsync(fd)
	def put(page, off, n, salt):
	    what = bytes_of(n, salt + page)
	    data[page * 4096 + off:page * 4096 + off + n] = what
	    same(os.pwrite(fd, what, page * 4096 + off), n)
	def lists(n):
	    r = requests()
	    same({op for op in r}, {'WRITE_LIST', 'FSYNC', 'REPORT'})
	    same(r['FSYNC'], pcount)
	    assert pcount <= r['WRITE_LIST'] <= n, r
	# All of it is in the cache, so parts of pages need no READ.
	same(os.pread(fd, len(data), 0), bytes(data))
	reset()
	share = pages // 2 // pcount * 4096
	for page in range(0, pages, 2):
	    put(page, 0, 4096, 1000000)
	sent()
	os.fsync(fd)
	lists(pcount * ((share + wsize - 1) // wsize))
	reset()
	# Rows of some, and single ones, whole and not, up to the last.
	some = random.Random(7)
	for page in sorted(some.sample(range(pages - 1), 100)) + [pages - 1]:
	    for next in range(page, min(page + some.choice((1, 1, 2, 5)), pages)):
	        off = some.choice((0, 0, 100))
	        put(next, off, some.choice((4096, 4096, 50)) - off if not off else 50, 2000000)
	same(os.pwrite(fd, b'and more', len(data)), 8)
	data += b'and more'
	sent()
	os.fsync(fd)
	lists(2 * pcount)
	os.close(fd)
	same(read(other + '/striped/scattered'), bytes(data))
	END
}

# Who writes on and on has it written from the first 4 MiB on, and need not ask for that.
behind_early()
{
	behind_python <<-'END'
	from behind import *
	writes = int(os.environ['WRITES4'])
	data = bytes_of(10 << 20)
	fd = new('striped/early', os.O_WRONLY)
	for at in range(0, 4 << 20, 16384):
	    sent()
	    os.write(fd, data[at:at + 16384])
	eventually(sent, WRITE=writes)
	for at in range(4 << 20, len(data), 16384):
	    os.write(fd, data[at:at + 16384])
	eventually(sent, WRITE=2 * writes)
	same(counted('written_behind'), len(data))
	# Here and there it stays.
	for at in range(0, 8 << 20, 65536):
	    os.pwrite(fd, b'stays', at)
	    data = data[:at] + b'stays' + data[at + 5:]
	sent(WRITE=2 * writes)
	os.close(fd)
	same(read(other + '/striped/early'), data)
	END
}

behind_at_once()
{
	behind_python <<-'END'
	import mmap
	from behind import *
	pcount = int(os.environ['PCOUNT'])
	large = bytes_of(4 << 20)
	fd = new('striped/large', os.O_WRONLY)
	same(os.write(fd, large), len(large))
	sent(WRITE=int(os.environ['WRITES4']))
	same(counted('written_behind'), 0)
	# That was the size: the lease is there.
	same(os.write(fd, large[1 << 20:]), 3 << 20)
	sent(WRITE=int(os.environ['WRITES4']))
	same(counted('written_behind'), 3 << 20)
	os.close(fd)
	same(read(other + '/striped/large'), large + large[1 << 20:])

	fd = new('striped/sync', os.O_WRONLY)
	same(os.write(fd, b'behind'), 6)
	sent()
	synced = os.open(mine + '/striped/sync', os.O_WRONLY | os.O_SYNC)
	same(leases('writes'), 1)
	os.fsync(fd)
	reset()
	os.pwrite(synced, b'synced', 6)
	os.pwrite(synced, b'synced', 12)
	same(requests().get('WRITE'), 2)
	same(requests().get('FSYNC'), 2)
	same(counted('written_behind'), 0)
	os.close(synced)
	os.close(fd)
	same(read(other + '/striped/sync'), b'behindsyncedsynced')

	fd = new('striped/direct', os.O_WRONLY)
	direct = os.open(mine + '/striped/direct', os.O_WRONLY | os.O_DIRECT)
	same(leases('writes'), 1)
	reset()
	page = mmap.mmap(-1, 4096)
	page[:] = large[:4096]
	os.pwrite(fd, large[:4096], 0)
	sent()
	os.pwrite(direct, page, 4096)
	os.pwrite(direct, page, 8192)
	sent(WRITE=2)
	same(counted('written_behind'), 4096)
	os.close(direct)
	os.close(fd)
	same(read(other + '/striped/direct'), large[:4096] * 3)
	END
}

# What who may only read has mapped.
behind_shown()
{
	behind_python <<-'END'
	import mmap
	from behind import *
	fd = new('striped/shown', os.O_WRONLY)
	os.write(fd, b'old' + bytes(4093))
	os.close(fd)
	def mapped():
	    fd = os.open(mine + '/striped/shown', os.O_RDONLY)
	    try:
	        return mmap.mmap(fd, 4096, access=mmap.ACCESS_READ)
	    finally:
	        os.close(fd)
	same(mapped()[:3], b'old')
	calm()
	def again():
	    reset()
	    m = mapped()
	    same(m[:3], b'old')
	    sent()
	    return m
	m = eventually(again)
	# Another, who can't be asked to go out, opens it.
	fd = os.open(other + '/striped/shown', os.O_WRONLY)
	os.pwrite(fd, b'new', 0)
	same(m[:3], b'new')
	sent(REPORT=1, TURN=1, READ=1)
	os.close(fd)
	reset()
	eventually(lambda: (m[:3], counted('turns') == 1)[-1])
	# Now nobody may write.
	time.sleep(1.5)
	same(m[:3], b'new')
	same(requests().get('TURN'), 1)
	END
}

behind_uncached()
{
	local S=/proc/fs/pvfs/vol-3

	"$cluster" mount -o cache=none /mnt/none
	behind_python /mnt/none/behind <<-'END'
	from behind import *
	fd = new('striped/none')
	for i in range(10):
	    os.write(fd, b'%04d' % i)
	sent(WRITE=10)
	same(counted('written_behind'), 0)
	same(leases('writes'), 0)
	os.close(fd)
	END
	"$cluster" umount /mnt/none
}

behind_asked_for()
{
	behind_python <<-'END'
	from behind import *
	data = bytes_of(5000)
	def ask(name, how):
	    fd = new(name)
	    os.write(fd, data)
	    sent()
	    same(leases('writes'), 1)
	    how(other + '/' + name)
	    # It is asked again after 0.1 s.
	    times = counted('recalled')
	    assert times >= 1
	    eventually(lambda: leases('writes') == 0)
	    same(leases('writes_given'), 1)
	    assert leases('given_us_mean') == leases('given_us_max') > 0
	    sent(WRITE=1, REPORT=1)
	    same(counted('written_behind'), len(data))
	    # From then on nothing is behind, so that the other sees it.
	    os.write(fd, b'more')
	    sent(WRITE=2, REPORT=1)
	    same(os.stat(other + '/' + name).st_size, len(data) + 4)
	    same(read(other + '/' + name), data + b'more')
	    os.close(fd)
	    return times
	once = lambda how, name: [ask(f'striped/{name}{i}', how) for i in range(4)]
	def bytes_there(path):
	    same(read(path), data)
	def opened(path):
	    os.close(os.open(path, os.O_RDONLY))
	assert 1 in once(bytes_there, 'read')
	assert 1 in once(opened, 'opened')
	END
}

# Who only wants to know what it is like takes the lease from nobody.
behind_settled()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/settled', os.O_WRONLY | os.O_APPEND)
	told = lambda st: (st.st_size, st.st_blocks, st.st_mtime_ns, st.st_ctime_ns)
	there, size = other + '/striped/settled', 0
	for i in range(5):
	    for j in range(20):
	        size += os.write(fd, b'%07d\n' % size)
	    sent(**({'WRITE': i, 'REPORT': i} if i else {}))
	    st = os.stat(there)
	    same(st.st_size, size)
	    # Nothing is dirty any more: the answer is there at once.
	    same(told(os.stat(there)), told(st))
	    # Who asks twice, as we take long, may be told before the REPORT is sent.
	    eventually(sent, WRITE=i + 1, REPORT=i + 1)
	    same((leases('writes'), counted('recalled'), counted('write_leases')), (1, 0, 0))
	assert counted('settles') >= 10
	same(leases('settles'), counted('settles'))
	same(counted('written_behind'), size)
	# One's own word is the same.
	same(told(os.fstat(fd)), told(st))
	# A listing (to have read the directory is a change of that), and extended attributes, which nobody keeps back.
	reset()
	os.write(fd, b'more....')
	same([x.stat().st_size for x in os.scandir(other + '/striped') if x.name == 'settled'], [size + 8])
	os.listxattr(there)
	os.access(there, os.R_OK)
	eventually(sent, WRITE=1, REPORT=1)
	same((leases('writes'), counted('write_leases')), (1, 0))
	# Times that are set stay.
	os.utime(fd, ns=(1000000001, 2000000002))
	same(os.stat(there).st_mtime_ns, 2000000002)
	os.write(fd, b'again...')
	assert os.stat(there).st_mtime_ns > 2000000002
	# A truncation, too, is the holder's own.
	os.ftruncate(fd, 100)
	same(os.stat(there).st_size, 100)
	os.write(fd, b'and more')
	same(os.stat(there).st_size, 108)
	same((leases('writes'), counted('write_leases')), (1, 0))
	reset()
	for i in range(20):
	    os.write(fd, b'nothing\n')
	sent()
	os.close(fd)
	same(len(read(there)), 268)
	END
}

behind_head_settled()
{
	behind_python <<-'END'
	from behind import *
	fd = new('plain/settled', os.O_WRONLY | os.O_APPEND)
	told = lambda st: (st.st_size, st.st_blocks, st.st_mtime_ns, st.st_ctime_ns)
	there, size = other + '/plain/settled', os.write(fd, b'a' * 100)
	os.fsync(fd)
	reset()
	for i in range(5):
	    for j in range(20):
	        size += os.write(fd, b'%07d\n' % size)
	    st = os.stat(there)
	    same(st.st_size, size)
	    same(told(os.stat(there)), told(st))
	    # The page that it ends in was read first.
	    eventually(sent, HEAD_READ=1, HEAD_WRITE=i + 1, REPORT=i + 1)
	    same((leases('writes'), counted('recalled'), counted('write_leases')), (1, 0, 0))
	same(told(os.fstat(fd)), told(st))
	os.close(fd)
	same(len(read(there)), size)
	END
}

# $1: where. In a loop beside it: no size goes back, and each has what was written when it was asked for.
behind_settled_all_the_while()
{
	WHERE=$1 behind_python <<-'END'
	import ctypes, mmap
	from behind import *
	STATS, APPENDS = 200, 10000
	shared = mmap.mmap(-1, 4096)
	written, looked = (ctypes.c_uint64.from_buffer(shared, 8 * i) for i in (0, 1))
	name = os.environ['WHERE'] + '/looked'
	path = other + '/' + name
	def look():
	    last = 0
	    for i in range(STATS):
	        n = written.value
	        size = os.stat(path).st_size
	        assert size >= n, f'{size} after {n}'
	        assert size >= last, f'{size} after {last}'
	        last = size
	        looked.value += 1
	# Before the file is open: the end of a process that has it open would write what is dirty.
	ready, go = os.pipe()
	pid = os.fork()
	if not pid:
	    how = 1
	    try:
	        os.read(ready, 1)
	        look()
	        how = 0
	    finally:
	        os._exit(how)
	fd = new(name, os.O_WRONLY | os.O_APPEND)
	# No draft, any more.
	want, ended, n = [b'%07d\n' % 0], False, 1
	os.write(fd, want[0])
	os.fsync(fd)
	same(leases('writes'), 1)
	reset()
	written.value = 8
	os.write(go, b'x')
	while n < APPENDS or not ended:
	    want.append(b'%07d\n' % n)
	    os.write(fd, want[-1])
	    n += 1
	    written.value = 8 * n
	    if n % 50 == 0 and not ended:
	        ended = os.waitpid(pid, os.WNOHANG) != (0, 0)
	        if ended:
	            same(looked.value, STATS)
	print(n, 'appends', requests(), *((x, counted(x)) for x in ('written_behind', 'settles', 'recalled')))
	same(looked.value, STATS)
	same((leases('writes'), counted('recalled'), counted('write_leases')), (1, 0, 0))
	assert counted('written_behind') >= 8 * n - 4096
	assert counted('settles') >= STATS
	# As often as anything was dirty at all, and no more. (It is asked once more where an answer takes long.)
	asked = counted('settles')
	assert requests()['REPORT'] <= asked and requests()['WRITE'] <= 3 * asked + n // 500, requests()
	os.close(fd)
	same(read(path), b''.join(want))
	END
}

behind_two_writers()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/two')
	for i in range(10):
	    os.write(fd, b'%04d' % i)
	sent()
	there = os.open(other + '/striped/two', os.O_WRONLY)
	eventually(lambda: leases('writes') == 0)
	sent(WRITE=1, REPORT=1)
	reset()
	for i in range(10):
	    os.write(fd, b'%04d' % i)
	    sent(WRITE=i + 1)
	same(counted('written_behind'), 0)
	os.close(there)
	os.close(fd)
	fd = held('striped/two', os.O_WRONLY)
	for i in range(10):
	    os.write(fd, b'%04d' % (100 + i))
	# The rest of the page.
	sent(READ=1)
	same(counted('written_behind'), 40)
	os.close(fd)
	same(read(other + '/striped/two'), b''.join(b'%04d' % i for i in (*range(100, 110), *range(10))))
	END
}

# Who has lost the lease gets it again without closing the file, when the other has gone: after a second at the earliest, and
# some writes.
behind_regained()
{
	behind_python <<-'END'
	from behind import *
	fd = new('striped/regained')
	want = bytearray()
	def put():
	    want.extend(b'%07d\n' % len(want))
	    os.write(fd, want[-8:])
	put()
	same(read(other + '/striped/regained'), bytes(want))
	eventually(lambda: leases('writes') == 0)
	reset()
	for i in range(15):
	    put()
	# So many are not worth it, however long ago it was.
	same((counted('written_behind'), requests()), (0, {'WRITE': 15}))
	def regained():
	    put()
	    return counted('written_behind') > 0
	eventually(regained)
	same((requests()['OPEN'], leases('writes')), (1, 1))
	reset()
	for i in range(20):
	    put()
	sent()
	os.close(fd)
	same(read(other + '/striped/regained'), bytes(want))
	END
}

behind_times_set()
{
	behind_python <<-'END'
	from behind import *
	for dir in 'striped', 'plain':
	    name = dir + '/times'
	    fd = new(name, os.O_WRONLY)
	    for i in range(10):
	        os.write(fd, bytes_of(4096))
	    assert counted('written_behind') > 0
	    os.utime(fd, ns=(1000000001, 2000000002))
	    os.close(fd)
	    for when in 'at once', 'later':
	        for d in mine, other:
	            st = os.stat(d + '/' + name)
	            same((st.st_atime_ns, st.st_mtime_ns, st.st_size), (1000000001, 2000000002, 40960), f'{d}/{name} {when}')
	        calm()
	END
}

behind_stat()
{
	behind_python <<-'END'
	from behind import *
	COARSE = 5		# the clock of an iod's file system
	fd = new('striped/stat')
	for i in range(5):
	    before = time.clock_gettime_ns(COARSE)
	    os.write(fd, bytes_of(1000))
	    same(counted('written_behind'), 1000 * (i + 1))
	    a = os.fstat(fd)
	    b = os.stat(mine + '/striped/stat')
	    same((a.st_size, b.st_size), (1000 * (i + 1),) * 2)
	    assert before <= a.st_mtime_ns <= time.time_ns(), (before, a.st_mtime_ns)
	    same((b.st_mtime_ns, b.st_ctime_ns), (a.st_mtime_ns, a.st_ctime_ns))
	os.close(fd)
	a = os.stat(mine + '/striped/stat')
	same((a.st_mtime_ns, a.st_ctime_ns, a.st_size), (b.st_mtime_ns, b.st_ctime_ns, 5000))
	END
}

behind_outlives()
{
	behind_python <<-'END'
	from behind import *
	name = 'striped/outlives'
	want = bytearray(bytes_of(600000))
	def closed(fd):
	    os.close(fd)
	    # With it has come a lease to read: nobody has to ask for that.
	    eventually(lambda: requests().get('CLOSE') == 1 and not lines('requests'))
	    reset()
	def again():
	    same(read(mine + '/' + name), want)
	    # An open, by name, unless it is still open.
	    assert not requests() or requests() == {'CREATE': 1}, requests()
	fd = new(name, os.O_WRONLY)
	for i in range(0, len(want), 4096):
	    os.write(fd, want[i:i + 4096])
	closed(fd)
	again()
	# Opened to write again, with what is there.
	fd = held(name, os.O_RDWR)
	def put(what, at):
	    same(os.pwrite(fd, what, at), len(what))
	    want[at:at + len(what)] = what
	same(os.pread(fd, 1 << 20, 0), want)
	reset()
	put(b'x' * 100, 5000)
	put(b'y' * 5000, len(want))
	sent()
	closed(fd)
	again()
	# Cut, and longer, under the lease.
	fd = held(name, os.O_RDWR)
	same(os.pread(fd, 1 << 20, 0), want)
	put(b'z' * 10, 30)
	os.ftruncate(fd, 300001)
	del want[300001:]
	put(b'e' * 4096, len(want))
	reset()
	closed(fd)
	same(read(mine + '/' + name), want)
	# Another has written it meanwhile.
	there = os.open(other + '/' + name, os.O_WRONLY)
	os.pwrite(there, b'other', 10000)
	want[10000:10005] = b'other'
	os.close(there)
	same(read(mine + '/' + name), want)
	# Has it open while we close it.
	fd = held(name, os.O_WRONLY)
	put(b'v' * 4096, 4096)
	there = os.open(other + '/' + name, os.O_WRONLY)
	put(b'w' * 10, 8192)
	os.close(fd)
	os.pwrite(there, b'u' * 10, 4100)
	want[4100:4110] = b'u' * 10
	same(read(mine + '/' + name), want)
	os.close(there)
	same(read(mine + '/' + name), want)
	same(read(other + '/' + name), want)
	END
}

# Small files, whose bytes are with the mgr: the lease comes with the first write, or with the FLUSH of a new one.
behind_head()
{
	behind_python <<-'END'
	from behind import *
	name = 'plain/head'
	fd = new(name, os.O_WRONLY | os.O_APPEND)
	want = bytearray()
	def put(n=4):
	    data = bytes_of(n, len(want))
	    want.extend(data)
	    same(os.write(fd, data), n)
	put(100)
	os.close(fd)
	calm()
	fd = os.open(mine + '/' + name, os.O_WRONLY | os.O_APPEND)
	reset()
	put()
	sent(HEAD_WRITE=1)
	same(leases('writes'), 0)
	put()
	sent(HEAD_WRITE=2)
	same(leases('writes'), 1)
	for i in range(1000):
	    put()
	# The page that it ends in is read.
	sent(HEAD_WRITE=2, HEAD_READ=1)
	same(counted('written_behind'), 4000)
	os.fsync(fd)
	os.fsync(fd)
	sent(HEAD_WRITE=3, HEAD_READ=1)
	put()
	sent(HEAD_WRITE=3, HEAD_READ=1)
	os.close(fd)
	eventually(sent, HEAD_WRITE=4, HEAD_READ=1, CLOSE=1)
	same(leases('writes'), 0)
	same(read(other + '/' + name), want)
	same(read(mine + '/' + name), want)
	END
}

behind_head_draft()
{
	behind_python <<-'END'
	from behind import *
	name = 'plain/draft'
	fd = new(name)
	want = bytearray(bytes_of(10000))
	os.write(fd, want)
	os.fsync(fd)
	sent(FLUSH=1)
	same(leases('writes'), 1)
	def put(what, at):
	    same(os.pwrite(fd, what, at), len(what))
	    want[at:at + len(what)] = what
	for i in range(100):
	    put(b'%04d' % i, 50 + 4 * i)
	put(b'w' * 4096, 4096)
	sent(FLUSH=1, HEAD_READ=1)
	same(os.pread(fd, 8192, 0), want[:8192])
	sent(FLUSH=1, HEAD_READ=1)
	# One piece.
	os.fsync(fd)
	sent(FLUSH=1, HEAD_READ=1, HEAD_WRITE=1)
	same(read(other + '/' + name), want)
	os.close(fd)
	END
}

behind_head_outgrown()
{
	local stuff

	stuff=$(getfattr --only-values -n pvfs.layout "$M/behind/plain" | sed -n 's/.*stuff_max=\([0-9]*\).*/\1/p')
	STUFF=$stuff behind_python <<-'END'
	from behind import *
	stuff = int(os.environ['STUFF'])
	name = 'plain/head_outgrown'
	fd = new(name)
	want = bytearray(bytes_of(1000))
	os.write(fd, want)
	os.fsync(fd)
	reset()
	while len(want) < stuff + 50000:
	    data = bytes_of(1000, len(want))
	    want.extend(data)
	    same(os.write(fd, data), 1000)
	is_ = requests()
	same(is_.get('UNSTUFF'), 1)
	assert is_.get('HEAD_WRITE', 0) <= 1 and is_.get('WRITE', 0) <= 2, is_
	same(leases('writes'), 1)
	assert counted('written_behind') >= len(want) - 3000
	same(os.pread(fd, len(want), 0), want)
	same(os.fstat(fd).st_size, len(want))
	same(read(other + '/' + name), want)
	os.close(fd)
	END
}

# Another looks at it, writes it, cuts it: it is what the two have made of it.
behind_head_others()
{
	behind_python <<-'END'
	from behind import *
	name = 'plain/head_others'
	there = other + '/' + name
	fd = new(name, os.O_RDWR | os.O_APPEND)
	want = bytearray()
	def put(n=7):
	    data = bytes_of(n, len(want))
	    want.extend(data)
	    same(os.write(fd, data), n)
	def both():
	    for p in there, mine + '/' + name:
	        same(os.stat(p).st_size, len(want))
	        same(read(p), want)
	put()
	os.fsync(fd)
	for i in range(10):
	    # Anew under a lease, which another may just have taken away.
	    eventually(lambda: (reset(), put(), counted('written_behind'))[-1])
	    put(1000)
	    same(os.stat(there).st_size, len(want))
	    both()
	    eventually(lambda: (reset(), put(), counted('written_behind'))[-1])
	    if i % 2:
	        os.truncate(there, len(want) - 1500)
	        del want[len(want) - 1500:]
	    else:
	        with open(there, 'ab') as f:
	            f.write(b'other')
	        want.extend(b'other')
	    put()
	    both()
	os.close(fd)
	both()
	END
}

# Who reads backward, or a part of every so much, is read ahead of; who jumps about is not.
read_by_steps()
{
	behind_python <<-'END'
	import random
	from behind import *
	data = bytes_of(4 << 20)
	with open(other + '/striped/steps', 'wb') as f:
	    f.write(data)
	fd = os.open(mine + '/striped/steps', os.O_RDONLY)
	def reads(places):
	    calm()
	    reset()
	    for at in places:
	        same(os.pread(fd, 4096, at), data[at:at + 4096])
	    n = requests().get('READ', 0)
	    print(n, 'READs for', len(places), 'reads,', counted('ahead_by_steps'), 'bytes ahead')
	    return n
	pages = len(data) // 4096
	assert reads(range(len(data) - 4096, -1, -4096)) <= pages // 8
	for places in range(0, 20 * 65536, 65536), range(len(data) - 4096, len(data) - 20 * 65536, -65536):
	    # Some have come already that nobody has read.
	    assert 20 < reads(places) <= 64
	some = random.Random(1).sample(range(pages), 100)
	assert reads([4096 * x for x in some]) <= 100
	same(counted('ahead_by_steps'), 0)
	os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
	same(reads(range(0, 20 * 65536, 65536)), 20)
	same(counted('ahead_by_steps'), 0)
	END
}

counts_behind()
{
	check "write leases: files to write" behind_files
	check "write leases: 256 writes of 4 KiB: 0 until fsync, then a WRITE to each iod; close: 1" behind_new
	check "... to a file that outgrows its head: an UNSTUFF, too" behind_outgrown
	check "... 1000 appends of 4 bytes: 0 until close" behind_appends
	check "... what was written is read again: 0" behind_read_again
	check "... where it ends: 0" behind_end
	check "... a part of a page of an old file, opened to write only: a READ, and the rest stays" behind_part
	check "... pages here and there: a WRITE_LIST to each iod" behind_scattered
	check "... on and on: from the first 4 MiB on, nobody waiting for it" behind_early
	check "... 4 MiB, O_SYNC, O_DIRECT: to the iods at once" behind_at_once
	check "... cache=none: a WRITE each" behind_uncached
	check "mapped by who may only read: 0; a TURN when another writes" behind_shown
	check "... another reads it, or opens it: a RECALL, and it is right" behind_asked_for
	check "... another stats it: what was not written, and a REPORT; the lease stays, and the next writes are 0" behind_settled
	check "... 200 stats beside 10,000 appends: each has what was written before, and the lease stays" \
		behind_settled_all_the_while striped
	check "... to a small file, which becomes a large one" behind_settled_all_the_while plain
	check "... a stat beside appends to a small file: a HEAD_WRITE, and a REPORT; the lease stays" behind_head_settled
	check "... beside another who has it open to write: a WRITE each, and none when that is over" behind_two_writers
	check "... lost, and got again without an open: an OPEN, after some writes" behind_regained
	check "... times that were set after a write stay" behind_times_set
	check "... written, closed, opened, read: no READ, until another has written" behind_outlives
	check "write leases: appends of 4 bytes to a small file: two HEAD_WRITEs, then 0 until fsync or close" behind_head
	check "... a new one that was synced: 0, in one piece when it is synced again" behind_head_draft
	check "... one that outgrows its head meanwhile: an UNSTUFF, and it goes on" behind_head_outgrown
	check "... another stats it, reads it, appends to it, cuts it" behind_head_others
	check "read backward, and in steps: what is next is asked for ahead" read_by_steps
	check "... a stat after a write: size, and when it was written, which stays" behind_stat
	echo "$behind_interval" >/proc/sys/vm/dirty_writeback_centisecs
}
