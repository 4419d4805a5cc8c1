#!/usr/bin/env python3
"""Several devices against one: `devices.py PROGRAM MODEL DEVICE DEVICE ...`

MULTI of the first two, four, ... devices against the first one alone, by turns (images per second, and how many times one device's);
with --auto GPU,CPU when the first result comes with empty caches, on each alone and with AUTO; with --hetero GPU,CPU whether HETERO
gives what the first device gives.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile


def bench(program, model, device, options, environment=None):
    """What `clinfer bench` measured."""
    done = subprocess.run([program, 'bench', model, '--device', device, '--json', *options], capture_output=True, text=True,
                          env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f'{device}: {done.stderr}')
    return json.loads(done.stdout)


def measure_multi(args):
    options = ['--seconds', str(args.seconds)]
    options += ['--batch', str(args.batch)] if args.batch else []
    options += ['--frames', args.frames] if args.frames else []
    options += [word for setting in args.config for word in ('--config', setting)]
    counts = [n for n in (2, 4, 8) if n <= len(args.devices)]
    names = [args.devices[0]] + ['MULTI:' + ','.join(args.devices[:n]) for n in counts]
    rates = {name: [] for name in names}
    for _ in range(args.rounds):
        for name in names:
            result = bench(args.program, args.model, name, options)
            rates[name].append(result['images_per_second'])
    one = statistics.median(rates[names[0]])
    for name in names:
        rate = statistics.median(rates[name])
        print(f'{name}: {rate:.0f} images/s ({min(rates[name]):.0f} to {max(rates[name]):.0f}), {rate / one:.2f} times one device')
    print(', '.join(f'{device["id"]}: {device["inferences"]} inferences' for device in result['devices']))


def first_result(args, device):
    """Milliseconds until the first result with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: str(pathlib.Path(folder, name)) for name in ('XDG_CACHE_HOME', 'POCL_CACHE_DIR', 'CUDA_CACHE_PATH')}
        settings = [word for setting in args.config for word in ('--config', setting)]
        result = bench(args.program, args.model, device, ['--seconds', '1', *settings], {**os.environ, **caches})
    print(f'{device}: first result after {result["first_result_ms"]:.0f} ms, loaded after {result["load_ms"]:.0f} ms')
    print(f'  {result["built_programs"]} programs built, first inference on {result["first_device"]}: {result["first_ms"]:.2f} ms')


def compare_hetero(args, devices):
    with tempfile.TemporaryDirectory() as folder:
        for name in (devices.split(',')[0], f'HETERO:{devices}'):
            print(name, bench(args.program, args.model, name, ['--seconds', '2', '--config', 'HETERO_DUMP_GRAPH_DOT=YES', '--config',
                                                              f'GRAPH_DUMPS_DIR={folder}']))
        for drawing in sorted(pathlib.Path(folder).glob('hetero_*.dot')):
            text = drawing.read_text()
            parts = sorted(set(part.split('\\n')[0] for part in text.split('subgraph=')[1:]))
            print(drawing.name, 'parts:', ' '.join(parts) or '-')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('model')
    parser.add_argument('devices', nargs='*')
    parser.add_argument('--batch', type=int)
    parser.add_argument('--frames', help='WxH:FORMAT')
    parser.add_argument('--seconds', type=float, default=4)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--config', action='append', default=[])
    parser.add_argument('--auto', help='GPU,CPU')
    parser.add_argument('--hetero', help='GPU,CPU')
    args = parser.parse_args()
    if args.devices:
        measure_multi(args)
    if args.auto:
        for device in [*reversed(args.auto.split(',')), f'AUTO:{args.auto}']:
            first_result(args, device)
    if args.hetero:
        compare_hetero(args, args.hetero)


main()
