#!/usr/bin/env python3
"""Compares the plans of ONNX networks with those of the same networks as OpenVINO's converter writes them.

    networks.py --plans build/tests/onnx_plans [--ir FOLDER] MODEL.onnx... [--most 2] [--verbose]

Per network: kernels and operations on the host of both, and how many layers of the ONNX file have a tuning record that the IR has not.
Fails where the ONNX file launches over `--most` kernels more, or computes more on the host. Needs the Python package openvino. IR
files are kept in the folder and taken from there when they are newer than the model.
"""
import argparse
import collections
import subprocess
import sys
import tempfile
from pathlib import Path


def convert(model, folder):
    """The network as IR; None where OpenVINO does not take it."""
    xml = folder / (model.stem + '.xml')
    if not xml.exists() or xml.stat().st_mtime < model.stat().st_mtime:
        import openvino as ov
        try:
            ov.save_model(ov.convert_model(model), xml, compress_to_fp16=False)
        except RuntimeError as error:
            print(f'{model.stem}: OpenVINO does not convert it: {str(error).splitlines()[0]}')
            return None
    return xml


def plan(program, path):
    """(kernels, operations on the host, keys of the layers), or the error's text."""
    done = subprocess.run([program, '--layers', str(path)], text=True, capture_output=True, check=False)
    lines = done.stdout.splitlines()
    if not lines:
        return f'exit status {done.returncode}'
    _, *counts = lines[0].split('\t')
    if counts[0] == 'error':
        return counts[1]
    return int(counts[0]), int(counts[1]), collections.Counter(tuple(line.split('\t')[:2]) for line in lines[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=Path, metavar='MODEL.onnx')
    parser.add_argument('--plans', required=True, help='the program onnx_plans')
    parser.add_argument('--ir', type=Path, help='where IR files are kept; a temporary folder unless given')
    parser.add_argument('--most', type=int, default=2, help='kernels that an ONNX file may launch beyond those of its IR')
    parser.add_argument('--verbose', action='store_true', help='list the layers that differ')
    arguments = parser.parse_args()
    folder = arguments.ir or Path(tempfile.mkdtemp())
    failed = 0
    print(f'{"network":36} {"ONNX":>9} {"IR":>9}  layers with other records')
    for model in arguments.models:
        xml = convert(model, folder)
        ours = plan(arguments.plans, model)
        theirs = plan(arguments.plans, xml) if xml else 'not converted'
        if isinstance(ours, str) or isinstance(theirs, str):
            failed += isinstance(ours, str)
            print(f'{model.stem:36} {ours if isinstance(ours, str) else ours[0]} | '
                  f'{theirs if isinstance(theirs, str) else theirs[0]}')
            continue
        worse = ours[0] > theirs[0] + arguments.most or ours[1] > theirs[1]
        failed += worse
        other = ours[2] - theirs[2]
        print(f'{model.stem:36} {ours[0]:5}+{ours[1]:<3} {theirs[0]:5}+{theirs[1]:<3}  {other.total()}{"  MORE" if worse else ""}')
        if arguments.verbose:
            for sign, layers in (('+', other), ('-', theirs[2] - ours[2])):
                for (family, key), times in layers.items():
                    print(f'    {sign} {times} x {family}: {key}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
