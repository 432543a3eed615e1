# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Of the tests here that are Python: two hosts as runfabtests makes them (fabtests/runner/hosts.py), processes on
them, TAP.

inside() first: it starts the script again in namespaces of its own, with which whatever it has started ends."""
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
SRC = os.path.abspath(os.environ.get('srcdir', os.path.join(os.path.dirname(__file__), '..', '..')))
BUILD = os.path.abspath(os.environ.get('builddir', '.'))
sys.path.insert(0, os.path.join(SRC, 'fabtests', 'runner'))
import hosts        # noqa: E402

LIMIT_S = 90            # for what takes a moment on an idle machine
results = []


def skip_all(why):
    print(f'1..0 # SKIP {why}')
    sys.exit(0)


def inside():
    if os.environ.get('NET_INSIDE'):
        return
    command = ['unshare', *(['--map-root-user'] if os.geteuid() else []), '--net', '--uts', '--pid', '--fork',
               '--kill-child',
               '--mount-proc']
    if not shutil.which('unshare') or not shutil.which('ip') or not shutil.which('nsenter'):
        skip_all('there is no unshare, nsenter or ip (packages util-linux, iproute2)')
    if (said := subprocess.run([*command, 'true'], capture_output=True, text=True)).returncode:
        skip_all(f'no namespaces here: {said.stderr.strip()}')
    os.environ['NET_INSIDE'] = '1'
    sys.stdout.flush()
    os.execvp(command[0], [*command, sys.executable, *sys.argv])


def report(name, faults, skip=None):
    """A line of TAP, behind what broke the test."""
    for fault in faults:
        print('#', str(fault).replace('\n', '\n# '))
    results.append(not faults)
    print(f"{'not ok' if faults else 'ok'} {len(results)} - {name}{' # SKIP ' + skip if skip else ''}", flush=True)


def done():
    print(f'1..{len(results)}')
    sys.exit(not all(results))


def why_not(kind):
    """Why a kind of hosts cannot be had here, or None."""
    if kind == 'ipv6' and not os.path.exists('/proc/net/if_inet6'):
        return 'no IPv6 in this kernel'
    if kind == 'nat' and not os.access('/dev/net/tun', os.W_OK):
        return '/dev/net/tun is not there or may not be written'
    return None


def library():
    """What a program needs to find this build's library and providers."""
    libs = os.path.join(BUILD, '.libs')
    return {'LD_LIBRARY_PATH': libs, 'FI_PROVIDER_PATH': libs}


def program(path):
    """A program of this build, without libtool's wrapper: what is started is what is ended."""
    folder, name = os.path.split(os.path.join(BUILD, path))
    hidden = os.path.join(folder, '.libs', name)
    return hidden if os.path.exists(hidden) else os.path.join(folder, name)


class Process:
    """One process on a host. Its output is read as it comes; wait_for() finds a pattern behind the one found before."""

    def __init__(self, space, argv, env=None):
        self.process = subprocess.Popen(space.enter(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env={**os.environ, **library(),
                                                                       **(env or {})}, text=True)
        self.text, self.seen, self.ended, self.changed = '', 0, False, threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.text += line
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, pattern):
        deadline = time.monotonic() + LIMIT_S
        with self.changed:
            while not (match := re.compile(pattern, re.M).search(self.text, self.seen)):
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    raise Missing(f"no '{pattern}' in:\n{self.text[-3000:]}")
                self.changed.wait(left)
            self.seen = match.end()
        return match

    def exit_code(self):
        """Wait for the end. What it printed is all in text then."""
        try:
            code = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return 'still running'
        with self.changed:
            self.changed.wait_for(lambda: self.ended, LIMIT_S)
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()


class Missing(Exception):
    """Something did not come."""
