#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs tests of Python's own suite with their files in DIRECTORY.

	programs_python.py [--use RESOURCE] [--user NAME] [--ignore PATTERN]
		DIRECTORY CONTROL TEST...

A test that does not pass there, or that is skipped, is run again with its files in
CONTROL, on another file system: only what has the same result there is excused.
The exit status is 1 when something is not, or when nothing was run at all.
"""

import argparse
import os
import pwd
import subprocess
import sys
import xml.etree.ElementTree as xml


def run(directory, o, match=None):
    """Runs o.tests, or those in match. Returns the exit status, a dict of test name -> (result, text), and the output."""
    work = os.path.join(directory, "tests")
    os.makedirs(work, exist_ok=True)
    report = os.path.join(work, "report.xml")
    if os.path.exists(report):
        os.unlink(report)
    # A file of tests that hangs tells where, and the slowest are named. test_os walks trees a thousand directories
    # deep, by paths of which each part is a request here.
    command = [sys.executable, "-m", "test", "-W", "--timeout", "1600", "--slowest", "--tempdir", work,
               "--junit-xml", report]
    if o.use:
        command += ["--use", o.use]
    if o.ignore:
        command += ["--ignore", o.ignore]
    if match is not None:
        listed = os.path.join(work, "match")
        with open(listed, "w", encoding="utf-8") as f:
            f.write("".join(name + "\n" for name in match))
        command += ["--matchfile", listed]
    env = dict(os.environ, TMPDIR=work, HOME=work, PYTHONDONTWRITEBYTECODE="1")
    options = {}
    if o.user:
        who = pwd.getpwnam(o.user)
        for d in (directory, work):
            os.chown(d, who.pw_uid, who.pw_gid)
        options = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
    done = subprocess.run(command + o.tests, env=env, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    results = {}
    if os.path.exists(report):
        for case in xml.parse(report).getroot().iter("testcase"):
            result, text = "passed", ""
            for kind in ("skipped", "failure", "error"):
                for found in case.iter(kind):
                    result, text = kind, (found.text or found.get("message") or "")
            results[case.get("name")] = (result, text)
    return done.returncode, results, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--use")
    parser.add_argument("--user")
    parser.add_argument("--ignore")
    parser.add_argument("directory")
    parser.add_argument("control")
    parser.add_argument("tests", nargs="+")
    o = parser.parse_args()

    status, results, printed = run(o.directory, o)
    other = {name: r for name, r in results.items() if r[0] != "passed"}
    print(f"{len(results)} tests, {sum(r[0] == 'skipped' for r in results.values())} skipped,"
          f" {sum(r[0] in ('failure', 'error') for r in results.values())} failed, status {status}")
    slow = printed.find("10 slowest tests")
    if slow >= 0:
        print(printed[slow:slow + 600])
    if len(results) < 10 * len(o.tests):
        print(printed[-4000:])
        print("that are too few: the tests did not run")
        return 1
    bad, details = [], []
    if status != 0 and not any(r[0] in ("failure", "error") for r in other.values()):
        # A test that changed its surroundings, crashed, or could not be loaded.
        bad.append("no test failed, but the run of them")
    control = {}
    if other:
        # By their last two names, which is what --matchfile compares whole ids with.
        _, control, _ = run(o.control, o, sorted(other))
    for name, (result, text) in sorted(other.items()):
        there = control.get(name, ("not run", ""))
        if there[0] == result:
            if result != "skipped":
                print(f"{name}: {result}, on the control too")
            continue
        bad.append(f"{name}: {result} here, {there[0]} on the control")
        details += [f"{name}:"] + ["    " + line for line in text.strip().splitlines()[-8:]]
    if bad:
        # The names last: the end of what is printed is what is shown.
        print("\n".join(details))
        print("\n".join(line for line in printed.splitlines() if "Warning -- " in line or "crashed" in line))
        print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
