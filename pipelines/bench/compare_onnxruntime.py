#!/usr/bin/env python3
"""ONNX models in clinfer beside ONNX Runtime's CPU provider: outputs and throughput, on the same cores and files.

    compare_onnxruntime.py --clinfer build/engine/tools/clinfer MODEL.onnx... [--ir FOLDER] [--rounds 3] [--seconds 4] [--cpus 0,1]

Rounds are interleaved, in turning order, so that a noisy machine hits all sides; what counts is the median of the rounds' ratios.
ONNX Runtime runs in a process of its own, with one caller and all cores for each operation or with one caller per core, whichever
is faster. With --ir the same network as OpenVINO IR (FOLDER/NAME.xml) is a third side, for the ratio of the two files in clinfer.
Outputs: both sides get the same random inputs; the error is the largest difference over the largest value. Needs onnxruntime and
numpy in the Python that --onnxruntime-python names.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

OPEN = 'an open dimension'


def inputs_of(session, reshape):
    """Random values for each input, the same in every process."""
    import numpy as np

    types = {'tensor(float)': np.float32, 'tensor(uint8)': np.uint8, 'tensor(int64)': np.int64, 'tensor(int32)': np.int32,
             'tensor(bool)': np.bool_, 'tensor(float16)': np.float16, 'tensor(double)': np.float64}
    random, values = np.random.default_rng(1), {}
    for k, node in enumerate(session.get_inputs()):
        shape = list(node.shape)
        if k == 0 and reshape:
            width, height = map(int, reshape.split('x'))
            shape[2:4] = height, width
        shape = [d if isinstance(d, int) and d > 0 else 1 if i == 0 else OPEN for i, d in enumerate(shape)]
        if OPEN in shape:
            sys.exit(f'{node.name} is open in its shape {node.shape}: give --reshape WIDTHxHEIGHT')
        dtype = types[node.type]
        values[node.name] = (random.random(shape) if np.dtype(dtype).kind == 'f' else random.integers(0, 2, shape)).astype(dtype)
    return values


def session_of(path, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def rate(session, values, callers, seconds):
    """Inferences per second of `callers` threads."""
    session.run(None, values)
    counts, end = [0] * callers, time.perf_counter() + seconds

    def call(k):
        while time.perf_counter() < end:
            session.run(None, values)
            counts[k] += 1
    begin = time.perf_counter()
    threads = [threading.Thread(target=call, args=(k,)) for k in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def worker(args):
    """Prints one line of JSON, or with --worker-outputs writes inputs and outputs."""
    import numpy as np

    cores = len(os.sched_getaffinity(0))
    wide = session_of(args.worker, cores)
    values = inputs_of(wide, args.reshape)
    if args.worker_outputs:
        for name, array in values.items():
            np.save(args.worker_outputs / f'in_{list(values).index(name)}.npy', array)
        for k, array in enumerate(wide.run(None, values)):
            np.save(args.worker_outputs / f'out_{k}.npy', np.asarray(array))
        return
    sides = [(wide, 1), (session_of(args.worker, 1), cores)]
    session, callers = max(sides, key=lambda side: rate(side[0], values, side[1], min(1, args.seconds / 4)))
    batch = next(iter(values.values())).shape[0]
    print(json.dumps({'images_per_second': batch * rate(session, values, callers, args.seconds), 'callers': callers}))


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f'{" ".join(map(str, command))}: {lines[-1] if lines else f"exit status {done.returncode}"}')
    return done.stdout.strip().splitlines()


class Comparison:
    def __init__(self, args):
        self.args = args
        self.reshape = ['--reshape', args.reshape] if args.reshape else []

    def clinfer(self, model):
        command = [self.args.clinfer, 'bench', model, '--seconds', str(self.args.seconds), '--json', '--device', self.args.device,
                   '--streams', '0', '--config', 'INFERENCE_PRECISION=f32', *self.reshape]
        return json.loads(run(command)[-1])['images_per_second']

    def worker(self, model, *more):
        return run([self.args.onnxruntime_python, __file__, '--worker', model, '--seconds', str(self.args.seconds), *self.reshape, *more])

    def onnxruntime(self, model):
        return json.loads(self.worker(model)[-1])['images_per_second']

    def error(self, model):
        """The largest difference of all outputs, each over its largest value."""
        with tempfile.TemporaryDirectory() as name:
            folder, worst = Path(name), 0.0
            self.worker(model, '--worker-outputs', name)
            given = [word for k in range(len(list(folder.glob('in_*.npy')))) for word in ('--input', f'{k}={folder}/in_{k}.npy')]
            run([self.args.clinfer, 'run', model, *given, '--output-dir', f'{name}/ours', '--device', self.args.device,
                 '--config', 'INFERENCE_PRECISION=f32', *self.reshape])
            check = 'import sys, numpy as np\n' \
                    'a, b = (np.load(p).astype(np.float64) for p in sys.argv[1:])\n' \
                    'same = a.shape == b.shape\n' \
                    'print(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30) if same and a.size else 0 if same else np.inf)'
            for k in range(len(list(folder.glob('out_*.npy')))):
                lines = run([self.args.onnxruntime_python, '-c', check, f'{name}/ours/{k}.npy', f'{name}/out_{k}.npy'])
                worst = max(worst, float(lines[-1]))
            return worst

    def throughput(self, model, ir):
        """Per round: images per second of clinfer, of ONNX Runtime, and of clinfer with the IR."""
        sides = [lambda: self.clinfer(model), lambda: self.onnxruntime(model)] + ([lambda: self.clinfer(ir)] if ir else [])
        rounds = []
        for k in range(self.args.rounds):
            order = [(i + k) % len(sides) for i in range(len(sides))]
            made = {i: sides[i]() for i in order}
            rounds.append([made[i] for i in range(len(sides))])
        return rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument('models', nargs='*', metavar='MODEL.onnx')
    parser.add_argument('--clinfer', default='build/engine/tools/clinfer', metavar='PROGRAM')
    parser.add_argument('--onnxruntime-python', default=sys.executable, metavar='PYTHON', help='a Python that has onnxruntime')
    parser.add_argument('--ir', type=Path, metavar='FOLDER', help='the same networks as IR')
    parser.add_argument('--rounds', type=int, default=3, help='0: outputs only')
    parser.add_argument('--seconds', type=float, default=4, help='of each measurement')
    parser.add_argument('--cpus', default='', metavar='LIST', help='cores for all sides, e.g. 0,1; all unless given')
    parser.add_argument('--device', default='CPU', help="clinfer's device")
    parser.add_argument('--reshape', default='', metavar='WxH', help='where the files leave the size open')
    parser.add_argument('--worker', metavar='MODEL.onnx', help=argparse.SUPPRESS)
    parser.add_argument('--worker-outputs', type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    if not args.models:
        parser.error('no models are given')
    if args.cpus:
        cores = {int(c) for c in args.cpus.split(',')}
        os.sched_setaffinity(0, cores)
        for name in ('POCL_MAX_PTHREAD_COUNT', 'POCL_CPU_MAX_CU_COUNT'):  # PoCL counts all cores of the machine
            os.environ.setdefault(name, str(len(cores)))
    comparison, failed = Comparison(args), False
    columns = ['model', 'error', 'clinfer/s', 'ONNX Runtime/s', 'ratio'] + (['file over its IR'] if args.ir else [])
    print('| ' + ' | '.join(columns) + ' |\n|' + ' --- |' * len(columns), flush=True)
    for model in args.models:
        name = Path(model).stem
        try:
            error = comparison.error(model)
            cells = [name, f'{error:.1e}']
            ir = str(args.ir / f'{name}.xml') if args.ir and (args.ir / f'{name}.xml').exists() else None
            rounds = comparison.throughput(model, ir)
            if rounds:
                cells += [f'{statistics.median(r[i] for r in rounds):.1f}' for i in (0, 1)]
                cells += [f'{statistics.median(r[0] / r[1] for r in rounds):.2f}']
                cells += [f'{statistics.median(r[0] / r[2] for r in rounds):.3f}'] if ir else []
            cells += [''] * (len(columns) - len(cells))
            print('| ' + ' | '.join(cells) + ' |', flush=True)
            failed |= error > 1e-4
        except RuntimeError as problem:
            print('| ' + ' | '.join([name, str(problem).replace('\n', ' ')] + [''] * (len(columns) - 2)) + ' |', flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
