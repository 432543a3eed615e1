# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The curves of compare: latency, bandwidth and message rate against message size, by gnuplot, as PNG and SVG."""
import json
import os
import shutil
import statistics
import subprocess

KINDS = [('tagged', 'rdm', 'tagged, RDM'), ('msg', 'msg', 'messages, MSG'), ('write', 'rdm', 'RMA write'),
         ('read', 'rdm', 'RMA read')]
# File, title, axis, window, what becomes of messages a second at a size.
PICTURES = [
    ('latency', 'Time of one message (half a round trip): lower is better', 'microseconds', 0,
     lambda rate, size: 1e6 / rate),
    ('bandwidth', 'Bandwidth of a stream of 64 messages at a time: higher is better', 'GB/s', 64,
     lambda rate, size: rate * size / 1e9),
    ('rate', 'Messages a second, 64 at a time: higher is better', 'million messages/s', 64,
     lambda rate, size: rate / 1e6),
]
XTICS = '("1" 1, "10" 10, "100" 100, "4 KiB" 4096, "64 KiB" 65536, "1 MiB" 1048576)'
COLOURS = {'ours': '#1f6fb4', 'ours over TCP': '#7fb3dd', 'peer': '#d1591b', 'peer over TCP': '#e9b08c',
           'peer shm': '#d1591b', 'tcp': '#777777', 'shm': '#bbbbbb', 'copy': '#777777'}


def series(points, convert):
    """Lines "size median low high" of {size: rates}."""
    for size in sorted(points):
        values = [convert(rate, size) for rate in points[size]]
        yield f'{size} {statistics.median(values):.6g} {min(values):.6g} {max(values):.6g}'


def redraw(folder):
    """Draw what results.json of a folder has; gives lines as draw() does."""
    with open(os.path.join(folder, 'results.json'), encoding='utf-8') as f:
        kept = json.load(f)
    rates = {tuple(key): values for *key, values in kept['rates']}
    return draw(folder, kept['prefix'], kept['titles'], rates)


def blocks(titles, rates, way, ep, window):
    """What is drawn in one panel: (title, colour, {size: rates})."""
    for name, title in titles.items():
        yield title, COLOURS[name], {k[3]: v[name] for k, v in rates.items() if k[:3] == (way, ep, window) and v.get(name)}


def script(titles, rates, picture):
    name, title, axis, window, convert = picture
    corner = {'latency': 'top left', 'bandwidth': 'bottom right', 'rate': 'bottom left'}[name]  # where no curve goes
    lines = [f'set multiplot layout 2,2 title "{title}"', 'set logscale xy', 'set grid', f'set key {corner}',
             'set xlabel "bytes of a message"', f'set ylabel "{axis}"', f'set xtics {XTICS}', 'set key font ",9"',
             'set style fill transparent solid 0.15 noborder']
    for number, (way, ep, text) in enumerate(KINDS):
        lines.append(f'set title "{text}"')
        plots = []
        for line, (label, colour, points) in enumerate(blocks(titles, rates, way, ep, window)):
            rows = list(series(points, convert))
            if not rows:
                continue
            lines += [f'$d{number}_{line} << END', *rows, 'END']
            style = 'dashtype 2' if label.startswith(('raw', 'process_vm')) else ''
            # the line is the median; the band goes from the worst round to the best
            plots.append(f'$d{number}_{line} using 1:3:4 with filledcurves lc rgb "{colour}" notitle, '
                         f'$d{number}_{line} using 1:2 with lines lw 2 lc rgb "{colour}" {style} title "{label}" '
                         'noenhanced')
        if plots:
            lines.append('plot ' + ', '.join(plots))
    return '\n'.join([*lines, 'unset multiplot', ''])


def draw(folder, prefix, titles, rates):
    """Write each picture, and what gnuplot is given; gives lines that say which. titles: {name in rates: its title}."""
    for picture in PICTURES:
        body = script(titles, rates, picture)
        if 'plot $' not in body:
            continue
        for kind, terminal in (('png', 'pngcairo size 1200,900'), ('svg', 'svg size 1200,900 background "white"')):
            path = os.path.join(folder, f'{prefix}{picture[0]}.{kind}')
            text = f'set terminal {terminal}\nset output "{path}"\n{body}'
            with open(os.path.join(folder, f'{prefix}{picture[0]}.{kind}.gp'), 'w', encoding='utf-8') as f:
                f.write(text)
            if not shutil.which('gnuplot'):
                yield f'{path}: not drawn, gnuplot is not installed'
                continue
            done = subprocess.run(['gnuplot'], input=text, text=True, capture_output=True)
            yield path if not done.returncode else f'{path}: gnuplot: {done.stderr.strip()[-200:]}'
