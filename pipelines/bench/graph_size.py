#!/usr/bin/env python3
"""CPU time and memory of reading a network and running all passes over it, by its size, for several kinds of networks.

    graph_size.py --clinfer build/engine/tools/clinfer [--kinds relu add ...] [--sizes 1000 10000 100000] [--load] [--plot FILE.png]

Each run is `clinfer graph` on a generated model of so many layers; with --load, `clinfer bench` without the joining of launches, which
loads the model and infers a few times. All is linear: the targets are 10 s and 2 GB for 100,000 layers of any kind, and with --load that
four times the layers take at most eight times as long (16 times where something is quadratic). Exit status 1 where one is missed.
Needs Python 3.8+; matplotlib for --plot alone.
"""
import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from ir_model import Model

LIMIT_SECONDS, LIMIT_BYTES, LIMIT_LAYERS = 10, 2e9, 100000

IMAGE = (1, 4, 2, 2)
CONVOLUTION = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def chain(step):
    """n times `step` on the value before."""
    def build(model, n):
        value = model.parameter(IMAGE)
        for i in range(n):
            value = step(model, value, i)
        model.result(value)
    return build


def convolve(model, value, weights):
    return model.op("Convolution", [value, weights], IMAGE, CONVOLUTION)


def convolutions(model, n):
    weights, value = model.floats([4, 4, 1, 1], 0.1), model.parameter(IMAGE)
    for i in range(n // 2):
        value = model.op("ReLU", [convolve(model, value, weights)])
    model.result(value)


def residuals(model, n):
    weights, value = model.floats([4, 4, 1, 1], 0.1), model.parameter(IMAGE)
    for i in range(n // 3):
        value = model.op("ReLU", [model.op("Add", [convolve(model, value, weights), value])])
    model.result(value)


def many_readers(model, n):
    value = model.parameter(IMAGE)
    parts = [model.op("Sigmoid", [value]) for _ in range(n - 1)]
    model.result(model.op("Concat", parts, (1, 4 * len(parts), 2, 2), {"axis": 1}))


def convolution_readers(model, n):
    value = model.op("Sqrt", [model.parameter(IMAGE)])
    parts = [convolve(model, value, model.floats([4, 4, 1, 1], i)) for i in range(n // 2)]
    model.result(model.op("Concat", parts, (1, 4 * len(parts), 2, 2), {"axis": 1}))


def products(model, n):
    weights, value = model.floats([4, 4], 0.2), model.parameter((1, 4))
    for _ in range(n):
        value = model.op("MatMul", [value, weights], data={"transpose_a": "false", "transpose_b": "false"})
    model.result(value)


def one_result(model, n):
    value = model.op("Sqrt", [model.parameter(IMAGE)])
    for _ in range(n):
        model.result(value)


def host_steps(model, n):
    """Layers of the host between layers of the device."""
    weights, axis, value = model.floats([4, 4], 0.2), model.constant([], [1], "i64"), model.parameter((1, 4))
    for _ in range(n // 2):
        value = model.op("CumSum", [value, axis], opset=3)
        value = model.op("MatMul", [value, weights], data={"transpose_a": "false", "transpose_b": "false"})
    model.result(value)


def many_parts(model, n):
    parts = n // 2
    value = model.parameter((1, parts, 2, 2))
    axis = model.constant([], [1], "i64")
    split = model.layer("Split", 1, [value, axis], [(1, 1, 2, 2)] * parts, {"num_splits": parts})
    model.result(model.op("Concat", [model.op("Tanh", [part]) for part in split], (1, parts, 2, 2), {"axis": 1}))


def many_inputs(model, n):
    value = model.parameter(IMAGE)
    for _ in range(n // 2):
        value = model.op("Add", [value, model.parameter(IMAGE)])
    model.result(value)


def many_outputs(model, n):
    value = model.parameter(IMAGE)
    for i in range(n // 2):
        value = model.op("Clamp" if i % 2 else "ReLU", [value], data={"min": 0, "max": 1} if i % 2 else None)
        model.result(value)


def views(model, n):
    value, ends = model.parameter((1, n + 8)), model.ints([1 << 30])
    zero, one = model.ints([1]), model.ints([1])
    for i in range(n):
        value = model.op("Slice", [value, zero, ends, one, one], (1, n + 7 - i), opset=8)
    model.result(model.op("ReLU", [value]))


def turns(model, n):
    value, there, back = model.parameter(IMAGE), model.ints([1, 4, 4]), model.ints([1, 4, 2, 2])
    order = model.ints([0, 2, 1])
    for _ in range(n // 4):
        value = model.op("Reshape", [value, there], (1, 4, 4))
        value = model.op("Transpose", [value, order], (1, 4, 4))
        value = model.op("ReLU", [model.op("Reshape", [value, back], IMAGE)])
    model.result(value)


def quantised(model, n):
    weights, value = model.floats([4, 4, 1, 1], 0.1), model.parameter(IMAGE)
    low, high = model.floats([], 0), model.floats([], 2.55)
    for _ in range(n // 3):
        value = model.op("FakeQuantize", [value, low, high, low, high], data={"levels": 256})
        value = model.op("ReLU", [convolve(model, value, weights)])
    model.result(value)


def quantised_readers(model, n):
    value, low = model.parameter(IMAGE), model.floats([], 0)
    parts = [model.op("FakeQuantize", [value, low, model.floats([], 1 + i), low, model.floats([], 1 + i)], data={"levels": 256})
             for i in range(n // 3)]
    model.result(model.op("Concat", parts, (1, 4 * len(parts), 2, 2), {"axis": 1}))


def pools(model, n):
    value, low, high = model.parameter(IMAGE), model.floats([], 0), model.floats([], 2.55)
    for _ in range(n - 1):
        value = model.op("MaxPool", [value], data={"kernel": "1,1", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0",
                                                   "rounding_type": "floor"})
    model.result(model.op("FakeQuantize", [value, low, high, low, high], data={"levels": 256}))


KINDS = {
    "relu": chain(lambda m, x, i: m.op("Sigmoid" if i % 2 else "ReLU", [x])),
    "add": chain(lambda m, x, i: x if i % 2 else m.op("Multiply" if i % 4 else "Add", [x, m.floats([1, 4, 1, 1], 0.9)])),
    "convolutions": convolutions,
    "residuals": residuals,
    "readers": many_readers,
    "convolution readers": convolution_readers,
    "products": products,
    "one result": one_result,
    "host steps": host_steps,
    "parts": many_parts,
    "inputs": many_inputs,
    "outputs": many_outputs,
    "views": views,
    "turns": turns,
    "quantised": quantised,
    "quantised readers": quantised_readers,
    "pools": pools,
}


def write(kind, layers, path):
    model = Model()
    KINDS[kind](model, layers)
    model.write(path)


def measure(clinfer, folder, kind, layers, load):
    """CPU seconds and bytes of one run."""
    path = Path(folder, "model.xml")
    writer = multiprocessing.Process(target=write, args=(kind, layers, path))  # its memory is not measured
    writer.start()
    writer.join()
    environment = dict(os.environ, XDG_CACHE_HOME=folder)
    command = [clinfer, "graph", path, "-o", os.devnull]
    if load:
        command = [clinfer, "bench", path, "--device", "CPU", "--seconds", "0.1", "--config", "PERSISTENT_KERNEL=NO"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{kind}, {layers} layers: clinfer ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def plot(results, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    for kind, runs in results.items():
        pyplot.loglog([layers for layers, _, _ in runs], [seconds for _, seconds, _ in runs], marker="o", label=kind)
    pyplot.xlabel("layers")
    pyplot.ylabel("seconds")
    pyplot.legend()
    pyplot.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clinfer", required=True)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[1000, 10000, LIMIT_LAYERS])
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--plot")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    results, missed = {}, []
    print(f"{'kind':20}" + "".join(f"{f'{size} layers':>24}" for size in arguments.sizes))
    with tempfile.TemporaryDirectory() as folder:
        for kind in arguments.kinds:
            print(f"{kind:20}", end="", flush=True)
            if arguments.load:
                measure(arguments.clinfer, folder, kind, min(arguments.sizes), True)  # fills the caches of kernels
            for size in arguments.sizes:
                seconds, memory = measure(arguments.clinfer, folder, kind, size, arguments.load)
                results.setdefault(kind, []).append((size, seconds, memory))
                print(f"{f'{seconds:.2f} s, {memory / 1e6:.0f} MB':>24}", end="", flush=True)
                if not arguments.load and size <= LIMIT_LAYERS and (seconds > LIMIT_SECONDS or memory > LIMIT_BYTES):
                    missed.append(f"{kind}, {size} layers")
            first, last = results[kind][0], results[kind][-1]
            if arguments.load and last[1] / first[1] > (last[0] / first[0]) ** 1.5:
                missed.append(f"{kind}: {last[0]} layers take {last[1] / first[1]:.1f} times as long as {first[0]}")
            print()
    if arguments.plot:
        plot(results, arguments.plot)
    if missed:
        print("above 10 s or 2 GB, or not linear:", "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
