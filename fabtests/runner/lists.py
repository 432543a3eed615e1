# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Which tests there are: the files tests/SET.list, sets of sets, and what a user leaves out.

A line of a list is a test: `single PROGRAM OPTION...` is one process, `pair PROGRAM OPTION...` a server and a client
with the same options, which the client gets the server's address behind. `{exit=N}` in front of the program: the one
process has to end with that code. `{time=N}`: it may take this many seconds. `{local}`: both ends on one host only.
"""
import dataclasses
import os
import re
import shlex

GROUPS = {
    'quick': ['unit', 'negative', 'functional', 'short'],
    'all': ['unit', 'negative', 'regression', 'functional', 'standard', 'multinode', 'sweep', 'stress'],
    'complex': ['sweep'],
}
KINDS = ('single', 'pair')


class ListError(Exception):
    """A list, or a choice from the lists, cannot be used; the text says where and why."""


@dataclasses.dataclass(frozen=True)
class Test:
    set: str
    kind: str
    args: tuple         # program and its own options
    exit: int = 0       # what a single has to end with
    time: int = 0       # seconds it may take; 0: the runner's default
    local: bool = False

    @property
    def name(self):
        return ' '.join(self.args)


def parse_line(set_name, line):
    words = shlex.split(line)
    kind, extra = words.pop(0), {}
    if kind not in KINDS:
        raise ListError(f"'{kind}' is no kind of test: {', '.join(KINDS)}")
    while words and (match := re.fullmatch(r'\{(\w+)(?:=(\d+))?\}', words[0])):
        if match[1] not in ('exit', 'time', 'local'):
            raise ListError(f"'{words[0]}' means nothing")
        extra[match[1]] = int(match[2]) if match[2] else True
        words.pop(0)
    if not words:
        raise ListError('a program is missing')
    return Test(set_name, kind, tuple(words), **extra)


def read_set(folder, name):
    path = os.path.join(folder, name + '.list')
    tests = []
    try:
        lines = open(path, encoding='utf-8').read().splitlines()
    except OSError as e:
        have = sorted(f[:-5] for f in os.listdir(folder) if f.endswith('.list'))
        raise ListError(f"no set '{name}': there are {', '.join([*have, *GROUPS])}") from e
    for number, line in enumerate(lines, 1):
        line = line.split('#')[0].strip()
        if not line:
            continue
        try:
            tests.append(parse_line(name, line))
        except ValueError as e:
            raise ListError(f'{path}:{number}: {e}') from e
        except ListError as e:
            raise ListError(f'{path}:{number}: {e}') from e
    return tests


def read_sets(folder, names):
    """The tests of sets and groups of sets, in order, none twice."""
    wanted = []
    for name in names:
        # A group has what there is of it: a set without a file is not installed.
        wanted += [s for s in GROUPS[name] if os.path.exists(os.path.join(folder,
                                                                          s + '.list'))] if name in GROUPS else [name]
    return [t for name in dict.fromkeys(wanted) for t in read_set(folder, name)]


def read_patterns(path):
    """Lines `PATTERN  # reason` of a file: a list of (compiled pattern, reason)."""
    patterns = []
    for line in open(path, encoding='utf-8'):
        pattern, _, reason = line.partition('#')
        if pattern.strip():
            patterns.append(compile_pattern(pattern.strip(), reason.strip() or 'named in ' + os.path.basename(path)))
    return patterns


def compile_pattern(pattern, reason):
    try:
        return re.compile(pattern), reason
    except re.error as e:
        raise ListError(f"'{pattern}' is no pattern: {e}") from e


def reason_to_skip(test, include, exclude):
    """Why a user does not want this test, or None. A pattern fits a test when it is found in its name."""
    if include and not any(p.search(test.name) for p, _ in include):
        return 'not included'
    return next((why for p, why in exclude if p.search(test.name)), None)
