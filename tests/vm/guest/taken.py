#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""taken.py HERE THERE CLUSTER: a read into a mapping that another client takes before it is answered.

HERE and THERE are one directory through two mounts, with the files small and source.
"""
import glob
import mmap
import os
import subprocess
import sys
import threading
import time

here, there, cluster = sys.argv[1:]


def kill(signal):
    for i in range(4):
        subprocess.check_call([cluster, 'kill', f'iod{i}', signal])


def read():
    got.append(os.preadv(source, [memoryview(one)[100:2100]], 70000))


one = mmap.mmap(os.open(here + '/small', os.O_RDWR), 4096)
two = mmap.mmap(os.open(there + '/small', os.O_RDWR), 4096)
source = os.open(here + '/source', os.O_RDONLY | os.O_DIRECT)
got = []
one[0] = 1
kill('STOP')
reader = threading.Thread(target=read)
reader.start()
while not any('READ' in open(f).read() for f in glob.glob('/proc/fs/pvfs/*/requests')):
    time.sleep(0.05)
two[1] = 2
kill('CONT')
reader.join()
assert got == [2000], got
assert one[100:2100] == b'x' * 2000
assert two[100:2100] == b'x' * 2000
assert (one[0], one[1]) == (1, 2)
