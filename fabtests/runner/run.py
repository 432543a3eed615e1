# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run one test on its hosts, and judge it. Ends only what it started, by process group, and has ended it when it
returns."""
import dataclasses
import os
import re
import signal
import threading
import time

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'
# How programs end that find the provider without what they need, and what they have said then.
NOT_THERE = (61, 38)
NOT_THERE_TEXT = re.compile(r'fi_getinfo: .*|skipped: .*')
PORT_TEXT = re.compile(r'listening on port (\d+)')
KEEP = 20000            # bytes of output that are kept of a process, the last ones


@dataclasses.dataclass
class Side:
    """A process and what it said; `paste` starts it again from a shell."""
    side: str
    paste: str
    process: object = None
    code: int = None
    out: str = ''
    err: str = ''


@dataclasses.dataclass
class Result:
    test: object
    result: str = None
    reason: str = ''
    seconds: float = 0
    sides: list = dataclasses.field(default_factory=list)


class Reader(threading.Thread):
    """Takes what a pipe has, and wakes whoever waits for a pattern in it."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.text, self.changed, self.ended = pipe, '', threading.Condition(), False
        self.start()

    def run(self):
        for chunk in iter(lambda: self.pipe.read1(65536), b''):
            with self.changed:
                self.text = (self.text + chunk.decode(errors='replace'))[-KEEP:]
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.pipe.close()

    def wait_for(self, pattern, deadline):
        """The match, or None when the pipe has ended or it is too late."""
        with self.changed:
            while not (match := pattern.search(self.text)):
                left = deadline - time.monotonic()
                if self.ended or left <= 0 or not self.changed.wait(left):
                    return None
            return match


class Runner:
    """How tests are run: programs in `folder`, `provider`, `hosts`, `env` for all of them, `timeout` seconds each;
    `extra` has further options for each side."""

    def __init__(self, folder, provider, hosts, env, timeout, extra):
        self.folder, self.provider, self.hosts = folder, provider, hosts
        self.env, self.timeout, self.extra = env, timeout, extra
        self.alive = []

    def program(self, name):
        """The path to start, and the one to show: behind the wrapper of libtool there is the program itself."""
        shown = os.path.join(self.folder, name)
        hidden = os.path.join(self.folder, '.libs', name)
        return (hidden if os.path.exists(hidden) else shown), shown

    def start(self, result, side, options, paste_options):
        test = result.test
        path, shown = self.program(test.args[0])
        common = ['-p', self.provider, *test.args[1:], *self.extra.get(side, [])]
        address = self.hosts.address(side)
        if address:
            common += ['-s', address]
        there = self.hosts.env(side)
        process = self.hosts.start(side, [path, *common, *options], {**there, **self.library_env(path)})
        # libtool's wrapper finds the library, and nobody the providers beside it.
        found = {k: v for k, v in self.library_env(path).items() if k == 'FI_PROVIDER_PATH'}
        paste = self.hosts.paste(side, [shown, *common, *paste_options], {**there, **found, **self.env})
        entry = Side(side, paste, process)
        entry.readers = Reader(process.stdout), Reader(process.stderr)
        self.alive.append(process)
        result.sides.append(entry)
        return entry

    def library_env(self, path):
        if os.path.basename(os.path.dirname(path)) != '.libs':
            return self.env
        libs = os.path.join(os.path.dirname(self.folder), '.libs')
        before = self.env.get('LD_LIBRARY_PATH', os.environ.get('LD_LIBRARY_PATH'))
        env = {'LD_LIBRARY_PATH': libs + (':' + before if before else '')}
        if 'FI_PROVIDER_PATH' not in os.environ:
            env['FI_PROVIDER_PATH'] = libs
        return {**env, **{k: v for k, v in self.env.items() if k != 'LD_LIBRARY_PATH'}}

    def run(self, test):
        result = Result(test)
        begin = time.monotonic()
        deadline = begin + (test.time or self.timeout)
        try:
            if not os.path.exists(self.program(test.args[0])[0]) and not getattr(self.hosts, 'hosts', None):
                result.result, result.reason = SKIPPED, f'{test.args[0]} is not in {self.folder}'
                return result
            late = self.run_single(result, deadline) if test.kind == 'single' else self.run_pair(result, deadline)
            judge(result, late)
        finally:
            self.end_all()
            result.seconds = time.monotonic() - begin
        return result

    def run_single(self, result, deadline):
        self.start(result, 'server', [], [])
        return self.finish(result, deadline)

    def run_pair(self, result, deadline):
        server = self.start(result, 'server', ['-B', '0'], [])
        match = server.readers[1].wait_for(PORT_TEXT, deadline)
        if match:
            address = self.hosts.address('server')
            self.start(result, 'client', ['-P', match[1], address], [address])
        return self.finish(result, deadline)

    def finish(self, result, deadline):
        """Wait for the ends of all processes; whether that took too long. A side that fails has the other one end
        within seconds by itself, as the control channel closes."""
        late = False
        for side in reversed(result.sides):
            try:
                side.process.wait(max(0, deadline - time.monotonic()))
            except Exception:       # subprocess.TimeoutExpired
                late = True
        self.end_all()
        for side in result.sides:
            side.code = side.process.wait()
            for reader in side.readers:
                reader.join(5)
            side.out, side.err = (reader.text for reader in side.readers)
        return late

    def end_all(self):
        """End the processes of the test that still run, with what they have started."""
        for process in self.alive:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.alive = []


def last_line(text):
    """What a program said last, rather than the library's log behind it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith('libfabric:')]
    return (own or lines or [''])[-1]


def why_failed(side, expected):
    ended = f'ended by {signal.Signals(-side.code).name}' if side.code < 0 else f'exit code {side.code}'
    if expected:
        ended += f' instead of {expected}'
    said = last_line(side.err) or last_line('\n'.join(l for l in side.out.splitlines() if l.startswith('not ok')))
    return f'{side.side}: {ended}' + (f': {said}' if said else '')


def judge(result, late):
    expected = result.test.exit
    bad = [side for side in result.sides if side.code != expected]
    missing = [NOT_THERE_TEXT.search(side.err) for side in result.sides if side.code in NOT_THERE and not expected]
    missing = [match for match in missing if match]
    if late:
        result.result, result.reason = FAILED, 'still running after the time limit'
    elif missing:
        result.result, result.reason = SKIPPED, missing[0][0]
    elif bad:
        result.result, result.reason = FAILED, '; '.join(why_failed(side, expected) for side in bad)
    elif len(result.sides) < (2 if result.test.kind == 'pair' else 1):
        result.result, result.reason = FAILED, 'the server ended before there was a client'
    else:
        result.result = PASSED
