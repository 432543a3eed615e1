# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a user sees: progress while tests run, the failures with their command lines, a table; and files for other
programs."""
import json
import sys
import time
import xml.etree.ElementTree as xml

from run import FAILED, PASSED, SKIPPED

MARK = {PASSED: 'ok  ', FAILED: 'FAIL', SKIPPED: 'skip'}
WIDTH = 110


def duration(seconds):
    return f'{seconds:.1f} s' if seconds < 60 else f'{int(seconds) // 60} min {int(seconds) % 60} s'


class Progress:
    """One line that changes where the output is a terminal; else a line for every result. again(test) is the command
    line that runs it alone."""

    def __init__(self, total, verbose, again):
        self.total, self.verbose, self.again, self.begin = total, verbose, again, time.monotonic()
        self.live = sys.stdout.isatty()
        self.done = self.failed = 0

    def left(self):
        passed = time.monotonic() - self.begin
        return duration(passed / self.done * (self.total - self.done)) if self.done else '?'

    def starting(self, test):
        if self.live:
            text = f'[{self.done + 1}/{self.total}] {self.failed} failed, about {self.left()} left: {test.name}'
            print('\r\033[K' + text[:WIDTH], end='', flush=True)

    def finished(self, result):
        self.done += 1
        self.failed += result.result == FAILED
        if self.live:
            print('\r\033[K', end='')
        if not self.live or self.verbose or result.result == FAILED:
            line = f'{MARK[result.result]} [{self.done}/{self.total}] {result.test.name} ({duration(result.seconds)})'
            print(line + (': ' + result.reason if result.reason else ''), flush=True)
        if result.result == FAILED:
            print_failure(result, self.again(result.test))


def print_failure(result, again):
    """Ready to paste: all of it again, on hosts like these; or the server in one shell, then the client in another."""
    print(f'     {again}')
    for side in result.sides:
        print('     ' + side.paste.replace('\n', '\n     '))
    for side in result.sides:
        for name, text in (('out', side.out), ('err', side.err)):
            for line in text.splitlines()[-12:]:
                print(f'     {side.side} {name}| {line}')
    sys.stdout.flush()


def count(results, what):
    return sum(r.result == what for r in results)


def print_table(results, heading, seconds):
    sets = list(dict.fromkeys(r.test.set for r in results))
    width = max(map(len, ['total', *sets]))
    print(f'\n{heading}')
    print(f'{"":{width}}  {"passed":>7}{"failed":>7}{"skipped":>8}{"time":>12}')
    for name in [*sets, 'total']:
        part = [r for r in results if name in (r.test.set, 'total')]
        took = seconds if name == 'total' else sum(r.seconds for r in part)
        counts = f'{count(part, PASSED):>7}{count(part, FAILED):>7}{count(part, SKIPPED):>8}'
        print(f'{name:{width}}  {counts}{duration(took):>12}')
    reasons = {}
    for r in results:
        if r.result == SKIPPED:
            reasons.setdefault(r.reason, []).append(r.test.name)
    if reasons:
        print('\nskipped:')
    for reason, names in reasons.items():
        print(f'  {reason}\n    ' + '\n    '.join(names))
    failed = [r for r in results if r.result == FAILED]
    if failed:
        print('\nfailed:')
    for r in failed:
        print(f'  {r.test.name}\n    {r.reason}')


def write_json(path, results, facts):
    def entry(r):
        sides = [{'side': s.side, 'command': s.paste, 'code': s.code, 'out': s.out, 'err': s.err} for s in r.sides]
        return {'set': r.test.set, 'name': r.test.name, 'result': r.result, 'reason': r.reason,
                'seconds': round(r.seconds, 3), 'sides': sides}

    totals = {what: count(results, what) for what in (PASSED, FAILED, SKIPPED)}
    with open(path, 'w', encoding='utf-8') as out:
        json.dump({**facts, **totals, 'tests': [entry(r) for r in results]}, out, indent=1)
        out.write('\n')


def plain(text):
    """XML has no place for most control characters."""
    return ''.join(c if c >= ' ' or c in '\n\t' else '?' for c in text)


def write_junit(path, results, facts):
    root = xml.Element('testsuites')
    for name in dict.fromkeys(r.test.set for r in results):
        part = [r for r in results if r.test.set == name]
        suite = xml.SubElement(root, 'testsuite', name=f'fabtests.{name}', tests=str(len(part)),
                               failures=str(count(part, FAILED)), skipped=str(count(part, SKIPPED)), errors='0',
                               time=f'{sum(r.seconds for r in part):.3f}')
        for r in part:
            case = xml.SubElement(suite, 'testcase', classname=f'{facts["provider"]}.{name}', name=r.test.name,
                                  time=f'{r.seconds:.3f}')
            said = plain('\n'.join(f'$ {s.paste}\n{s.out}{s.err}' for s in r.sides))
            if r.result == SKIPPED:
                xml.SubElement(case, 'skipped', message=plain(r.reason))
            elif r.result == FAILED:
                xml.SubElement(case, 'failure', message=plain(r.reason)).text = said
    xml.indent(root)
    xml.ElementTree(root).write(path, encoding='utf-8', xml_declaration=True)
