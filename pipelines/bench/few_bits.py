#!/usr/bin/env python3
"""Products with weights of few bits against the same products with weights of f32: latency, by turns, and the memory of the process.

    few_bits.py CLINFER [--rows 1,8,128] [--sizes 2048,5632] [--layers 4] [--rounds 5] [--seconds 0.6] [--device CPU]

The network is a chain of products with biases and GELU, compressed by NNCF. Memory: what the process has of its own (RssAnon) while inferences
run, programs from the cache. Needs nncf, openvino and numpy.
"""
import argparse
import json
import logging
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

FORMS = {"8 bits a column": {"mode": "INT8_SYM"}, "4 bits by 64": {"mode": "INT4_SYM", "group_size": 64},
         "4 bits by 32, zeros": {"mode": "INT4_ASYM", "group_size": 32}}


def network(rows, sizes, layers):
    import numpy
    import openvino
    import openvino.opset13 as ops
    rng = numpy.random.default_rng(1)
    data = value = ops.parameter([rows, sizes[0]], numpy.float32)
    for layer in range(layers):
        depth, columns = sizes[layer % 2], sizes[1 - layer % 2]
        weights = (rng.standard_normal((columns, depth)) / depth ** 0.5).astype(numpy.float32)
        value = ops.add(ops.matmul(value, ops.constant(weights), False, True), ops.constant(numpy.zeros((1, columns), numpy.float32)))
        if layer + 1 < layers:
            value = ops.gelu(value, "erf")
    return openvino.Model([value], [data])


def write(folder, rows, args):
    """Files by form, that of f32 first."""
    import nncf
    import openvino
    logging.getLogger("nncf").setLevel(logging.ERROR)
    paths = {"f32": folder / "f32.xml"}
    openvino.save_model(network(rows, args.sizes, args.layers), paths["f32"], compress_to_fp16=False)
    for name, form in FORMS.items():
        how = {key: value for key, value in form.items() if key != "mode"}
        if how:
            how.update(ratio=1, all_layers=True)
        compressed = nncf.compress_weights(network(rows, args.sizes, args.layers), mode=nncf.CompressWeightsMode[form["mode"]], **how)
        paths[name] = folder / f"{form['mode']}.xml"
        openvino.save_model(compressed, paths[name], compress_to_fp16=False)
    return paths


def bench(path, args):
    """Median latency in ms and the process's memory in MiB."""
    command = [args.clinfer, "bench", path, "--device", args.device, "--seconds", args.seconds, "--sync", "--json", "--config",
               "INFERENCE_PRECISION=f32,FIRST_TIER=NO"]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True,
                               env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"})  # what is freed goes back at once
    memory = []
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            memory += [round(int(line.split()[1]) / 1024) for line in status.splitlines() if line.startswith("RssAnon")]
        except OSError:
            pass
        time.sleep(0.05)
    return json.loads(process.stdout.read())["latency_ms"]["p50"], statistics.mode(memory)  # most readings are between load and end


def main():
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clinfer", type=Path)
    parser.add_argument("--rows", type=numbers, default=[1, 8, 128])
    parser.add_argument("--sizes", type=numbers, default=[2048, 5632])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--device", default="CPU")
    args = parser.parse_args()
    print("| rows | weights | ms | f32 ms | f32 / it | lowest | MiB | f32 MiB |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for rows in args.rows:
        with tempfile.TemporaryDirectory(prefix="clinfer-bits-") as folder:
            paths = write(Path(folder), rows, args)
            for path in paths.values():
                bench(path, args)  # fills the cache
            measured = [{name: bench(path, args) for name, path in paths.items()} for _ in range(args.rounds)]
        middle = lambda name, i: statistics.median(one[name][i] for one in measured)
        for name in FORMS:
            ratios = [one["f32"][0] / one[name][0] for one in measured]
            print(f"| {rows} | {name} | {middle(name, 0):.2f} | {middle('f32', 0):.2f} | {statistics.median(ratios):.2f} | {min(ratios):.2f} | "
                  f"{middle(name, 1):.0f} | {middle('f32', 1):.0f} |", flush=True)


if __name__ == "__main__":
    main()
