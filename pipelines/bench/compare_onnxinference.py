#!/usr/bin/env python3
"""The element clinfer beside GStreamer's own onnxinference: frames per second of one pipeline, on the same cores, files and frames.

    compare_onnxinference.py MODEL.onnx... [--size 224x224] [--frames 100] [--rounds 3] [--cpus 0,1] [--device CPU]

Debian 13 and later have onnxinference in gstreamer1.0-plugins-bad. Both elements attach the model's outputs as tensors and decode nothing.
A rate is that of the frames after the first ten, so that loading and compiling do not count; what counts is the median of the rounds' ratios.
onnxinference takes models of one picture with three channels first and a fixed size, whose metadata name each output: it gets a copy with
such metadata. Both elements are found by the environment.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIRST = 10


def fields(data):
    """(number, value) of the fields of a protobuf message: bytes, or None for other kinds."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            varint()
            yield key >> 3, None
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, data[at:at + size]
        at += size


def length_of(size):
    return bytes([size & 127 | 128]) + length_of(size >> 7) if size > 127 else bytes([size])


def field(number, data):
    return bytes([number << 3 | 2]) + length_of(len(data)) + data


def with_ids(model, folder):
    """A copy in which metadata_props (14) give each output (12 of the graph, 7) an id."""
    data = Path(model).read_bytes()
    graph = next(value for number, value in fields(memoryview(data)) if number == 7)
    for number, output in fields(graph):
        if number == 12:
            name = bytes(next(value for key, value in fields(output) if key == 1))
            data += field(14, field(1, name) + field(2, b'id-' + name))
    copy = Path(folder) / Path(model).name
    copy.write_bytes(data)
    return copy


def seconds(element, width, height, frames):
    command = ['gst-launch-1.0', '-q', 'videotestsrc', 'pattern=snow', f'num-buffers={frames}', '!',
               f'video/x-raw,format=RGB,width={width},height={height},framerate=30/1', '!', 'queue', '!', *element, '!', 'fakesink', 'sync=false']
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - begin
    if done.returncode or 'ERROR' in done.stderr:
        lines = [line for line in done.stderr.splitlines() if line.startswith(('ERROR', 'WARNING'))]
        raise RuntimeError((lines or [f'exit status {done.returncode}'])[0])
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('models', nargs='+', metavar='MODEL.onnx')
    parser.add_argument('--size', default='224x224', metavar='WxH', help="the models' pictures")
    parser.add_argument('--frames', type=int, default=100, help='of each measurement')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--cpus', default='', metavar='LIST', help='cores for both, e.g. 0,1; all unless given')
    parser.add_argument('--device', default='CPU', help="clinfer's device")
    args = parser.parse_args()
    if args.cpus:
        cores = {int(c) for c in args.cpus.split(',')}
        os.sched_setaffinity(0, cores)
        for name in ('POCL_MAX_PTHREAD_COUNT', 'POCL_CPU_MAX_CU_COUNT'):  # PoCL counts all cores of the machine
            os.environ.setdefault(name, str(len(cores)))
    width, height = map(int, args.size.split('x'))
    folder, failed = tempfile.TemporaryDirectory(), False
    print(f'{"model":32} {"clinfer/s":>10} {"onnxinference/s":>16} {"ratio":>6}', flush=True)
    for model in args.models:
        sides = (['clinfer', f'model={model}', f'device={args.device}', 'post-process=none', 'color-format=rgb', 'scale=255', 'first-tier=false',
                  'config=INFERENCE_PRECISION=f32'],
                 ['onnxinference', f'model-file={with_ids(model, folder.name)}', 'input-image-format=chw', 'input-tensor-scale=255', 'optimization-level=enable-all'])

        def rate(element):
            return args.frames / (seconds(element, width, height, FIRST + args.frames) - seconds(element, width, height, FIRST))
        try:
            for side in sides:
                seconds(side, width, height, 1)  # compiled kernels are in the cache from here on
            rounds = [[rate(sides[0]), rate(sides[1])] if k % 2 else [rate(sides[1]), rate(sides[0])][::-1] for k in range(args.rounds)]
            print(f'{Path(model).stem:32} {statistics.median(r[0] for r in rounds):10.1f} {statistics.median(r[1] for r in rounds):16.1f} '
                  f'{statistics.median(r[0] / r[1] for r in rounds):6.2f}', flush=True)
        except RuntimeError as problem:
            print(f'{Path(model).stem:32} {problem}', flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
