#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What two.sh needs and no command does.

two.py store FILE OFFSET TEXT       through a shared mapping, and msync
two.py load FILE OFFSET LENGTH      through a shared mapping
two.py count FILE OFFSET TIMES      there, in eight digits, without msync; status 1 if somebody
        else changes it
two.py record FILE START LENGTH COMMAND...
        the command, with that range locked by fcntl for writing; status 1 if
        somebody has it
"""
import fcntl
import mmap
import os
import subprocess
import sys
import time

what, path, start, last, *command = sys.argv[1:]
start = int(start)
fd = os.open(path, os.O_RDWR)
if what == 'record':
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, int(last), start)
    except BlockingIOError:
        sys.exit(1)
    sys.exit(subprocess.call(command))
with mmap.mmap(fd, 0, mmap.MAP_SHARED) as m:
    if what == 'count':
        for i in range(int(last)):
            if m[start:start + 8] != b'%08d' % i:
                sys.exit(f'{m[start:start + 8]}, and not {i}')
            m[start:start + 8] = b'%08d' % (i + 1)
            time.sleep(0.002)
    elif what == 'store':
        m[start:start + len(last)] = last.encode()
        m.flush()
    else:
        print(m[start:start + int(last)].decode())
