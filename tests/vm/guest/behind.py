# SPDX-License-Identifier: GPL-2.0-only
"""What counts_behind.sh and bad_behind.sh ask in python, in one process: the
end of any other that has a file open would write what is dirty.

Arguments of the script: the directory of the mount that is looked at, the same
one on another mount, and the first one's /proc/fs/pvfs/VOLUME."""
import errno
import glob
import os
import signal
import sys
import time

mine, other, proc = sys.argv[1:4]
SLOW = int(os.environ.get('PVFS_VM_SLOW', '1'))
UNASKED = {'SESSION_RENEW', 'HELLO', 'AUTH', 'PING', 'SESSION_OPEN'}


def lines(name):
    with open(proc + '/' + name) as f:
        return [x.split() for x in f if not x.startswith('#')]


def requests():
    """What was sent since reset(): {operation: how often}."""
    return {x[0]: int(x[1]) for x in lines('stats')
            if len(x) >= 9 and int(x[1]) and x[0] not in UNASKED}


def done(op):
    """How many of these requests were not refused."""
    return sum(int(x[1]) - int(x[2]) for x in lines('stats') if x[0] == op)


def counted(name):
    return next(int(x[1]) for x in lines('stats') if x[0] == name)


def leases(name):
    return next(int(x[1]) for x in lines('leases') if x[0] == name)


def reset():
    with open(proc + '/stats', 'w') as f:
        f.write('reset')


def sent(**want):
    """These were sent since reset(), and nothing else."""
    is_ = requests()
    assert is_ == want, f'sent {is_}, not {want}'


def same(is_, want, what=''):
    assert is_ == want, f'{what} {is_!r:.200}, not {want!r:.200}'


def eventually(what, *args, seconds=20, **kw):
    end = time.monotonic() + seconds * SLOW
    while True:
        try:
            r = what(*args, **kw)
            assert r is None or r, 'not true'
            return r
        except (AssertionError, OSError):
            if time.monotonic() > end:
                raise
        time.sleep(0.02)


def calm():
    """Nothing from before is sent any more: opens that were kept, CLOSEs, drafts."""
    os.sync()
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('3')
    was = None
    while was != requests() or lines('requests'):
        was = requests()
        time.sleep(0.05)


def new(name, flags=os.O_RDWR):
    """A file that was not there, opened; counts begin. new.began: when it was made, or a little before."""
    calm()
    new.began = time.monotonic()
    fd = os.open(f'{mine}/{name}', flags | os.O_CREAT | os.O_EXCL)
    reset()
    return fd


def held(name, flags):
    """A file that is there, opened under a WRITE lease; counts begin. Who else had it open may just have closed it."""
    calm()
    def once():
        fd = os.open(f'{mine}/{name}', flags)
        if leases('writes') == 1:
            return fd
        os.close(fd)
        return None
    fd = eventually(lambda: once() or False)
    reset()
    return fd


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def bytes_of(n, seed=0):
    """n bytes that differ from page to page."""
    return b''.join(b'%07d\n' % (seed + i) for i in range((n + 7) // 8))[:n]


def tell(path, word=''):
    """For the shell: it is there whole or not at all."""
    with open(path + '.new', 'w') as f:
        f.write(word)
    os.rename(path + '.new', path)


def freeze(pid):
    """The signal is on its way for a moment, in which the threads of a daemon go on, and answer."""
    os.kill(pid, signal.SIGSTOP)
    def states():
        for path in glob.glob(f'/proc/{pid}/task/*/stat'):
            with open(path) as f:
                yield f.read().rpartition(') ')[2][0]
    eventually(lambda: set(states()) <= {'T', 't'})


def came(fd):
    """errno of an fsync, or 0"""
    try:
        os.fsync(fd)
    except OSError as e:
        return e.errno
    return 0


def append_at_once(name, often, size=4, n=500):
    """A process on each mount appends n records, and opens the file anew after so many of them: all are there, each
    one's in order."""
    def record(letter, i):
        return b'%s%03d' % (letter, i) * (size // 4)
    pids = []
    for letter, dir in (b'a', mine), (b'b', other):
        pid = os.fork()
        if pid:
            pids.append(pid)
            continue
        how = 1
        try:
            def opened():
                return os.open(f'{dir}/{name}', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            fd = opened()
            for i in range(n):
                same(os.write(fd, record(letter, i)), size)
                if i % often == often - 1:
                    os.close(fd)
                    fd = opened()
            os.close(fd)
            how = 0
        finally:
            os._exit(how)
    same([os.waitpid(pid, 0)[1] for pid in pids], [0, 0])
    data = read(f'{other}/{name}')
    same(data, read(f'{mine}/{name}'), name)
    all = [data[i:i + size] for i in range(0, len(data), size)]
    for letter in b'a', b'b':
        same([r for r in all if r[:1] == letter], [record(letter, i) for i in range(n)], name)
    same(len(all), 2 * n)
