# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Processes that do as they are told (player.c), and fi_why's answers about them; for the tests of this folder."""

import os
import signal
import subprocess

BUILD = os.environ["builddir"]
SRC = os.environ["srcdir"]
SOFT = f"{BUILD}/test/softverbs/.libs"
DEVICES = os.path.exists(f"{SOFT}/librdmacm.so.1")
AFTER_MS = 300		# what has waited so long is stuck here


class Player:
    def __init__(self, where, kind, env, stderr=None, before=()):
        self.env = dict(os.environ, XDG_RUNTIME_DIR=where, FI_LOG_LEVEL="silent", **env)
        provider = self.env.pop("PROVIDER", "tcp")
        self.proc = subprocess.Popen([*before, f"{BUILD}/test/why/player", kind, provider], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=stderr, env=self.env, text=True, bufsize=1)
        self.pid = self.proc.pid
        self.name = self.answer("name")

    def answer(self, word):
        line = self.proc.stdout.readline().strip()
        assert line.startswith(word), f"{line!r} in place of {word}"
        return line[len(word):].strip()

    def write(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def tell(self, line):
        self.write(line)
        if line.startswith("region"):
            self.region = self.answer("region")
        self.answer("ok")

    def end(self):
        self.proc.send_signal(signal.SIGKILL)
        self.proc.wait()
        if not self.proc.stdin.closed:
            self.proc.stdin.close()
        self.proc.stdout.close()


def fi_why(where, *args):
    """The exit status and the text of fi_why."""
    out = subprocess.run([f"{BUILD}/util/fi_why", "--after", str(AFTER_MS), *map(str, args)], capture_output=True, text=True,
                         env=dict(os.environ, XDG_RUNTIME_DIR=where))
    return out.returncode, out.stdout, out.stderr
