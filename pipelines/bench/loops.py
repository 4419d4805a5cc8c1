#!/usr/bin/env python3
"""Loops beside OpenVINO's CPU plug-in: 100 iterations of 256 units and 1000 of 16, of plain layers and of LSTM cells.

    loops.py --clinfer build/engine/tools/clinfer [--rounds 5] [--seconds 1] [--precision f32]

Each network is a TensorIterator; clinfer runs it unrolled (where it is short enough) and as a loop. One request at a time on
the same cores; medians of alternating rounds. Needs openvino and numpy.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as op

RANDOM = np.random.default_rng(1)


def weights(*shape):
    return (RANDOM.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def network(path, cell, steps, units):
    """All states along the steps, and the last one."""
    x = op.parameter([1, steps, units], np.float32, name="x")
    states = [op.parameter([1, units], np.float32) for _ in range(2 if cell == "lstm" else 1)]
    part, inner = op.parameter([1, 1, units], np.float32), [op.parameter([1, units], np.float32) for _ in states]
    row = op.squeeze(part, op.constant([1], np.int64))
    if cell == "lstm":
        made = op.lstm_cell(row, *inner, weights(4 * units, units), weights(4 * units, units), weights(4 * units), units).outputs()
    else:
        products = [op.matmul(value, op.constant(weights(units, units)), False, True) for value in (row, inner[0])]
        made = [op.tanh(op.add(op.add(*products), op.constant(weights(1, units)))).output(0)]
    results = [op.result(op.unsqueeze(made[0], op.constant([1], np.int64)))] + [op.result(value) for value in made]
    loop = op.tensor_iterator()
    loop.set_function(ov.Model(results, [part, *inner], "body"))
    loop.set_sliced_input(part, x.output(0), 0, 1, 1, -1, 1)
    for state, value, result in zip(states, inner, results[1:]):
        loop.set_merged_input(value, state.output(0), result.output(0))
    outputs = [loop.get_concatenated_slices(results[0].output(0), 0, 1, 1, -1, 1), loop.get_iter_value(results[1].output(0), -1)]
    ov.save_model(ov.Model([op.result(value) for value in outputs], [x, *states], path.stem), path, compress_to_fp16=False)


def openvino_ms(path, seconds):
    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
    request, times = compiled.create_infer_request(), []
    for port in compiled.inputs:
        request.set_tensor(port, ov.Tensor(RANDOM.random(tuple(port.shape)).astype(np.float32)))
    for _ in range(3):
        request.infer()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        request.infer()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def clinfer_ms(args, path, unroll):
    command = [args.clinfer, "bench", str(path), "--device", args.device, "--sync", "--seconds", str(args.seconds), "--json",
               "--config", f"INFERENCE_PRECISION={args.precision}", "--config", f"ENABLE_LOOP_UNROLLING={'YES' if unroll else 'NO'}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"loops.py: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])["latency_ms"]["p50"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer", metavar="PROGRAM")
    parser.add_argument("--device", default="CPU", help="clinfer's device")
    parser.add_argument("--precision", default="f32", help="clinfer's INFERENCE_PRECISION")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    args = parser.parse_args()
    print(f"{'network':18} {'OpenVINO ms':>11} {'loop ms':>8} {'ratio':>6} {'unrolled ms':>11} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="clinfer-loops-") as folder:
        for cell in ("plain", "lstm"):
            for steps, units in ((100, 256), (1000, 16)):
                path = Path(folder) / f"{cell}-{steps}x{units}.xml"
                network(path, cell, steps, units)
                rounds = [(openvino_ms(path, args.seconds), clinfer_ms(args, path, False), clinfer_ms(args, path, True))
                          for _ in range(args.rounds)]
                theirs, rolled, unrolled = (statistics.median(column) for column in zip(*rounds))
                ratio = lambda k: statistics.median(row[k] / row[0] for row in rounds)
                print(f"{path.stem:18} {theirs:11.2f} {rolled:8.2f} {ratio(1):6.2f} {unrolled:11.2f} {ratio(2):6.2f}", flush=True)


if __name__ == "__main__":
    main()
