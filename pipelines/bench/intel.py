#!/usr/bin/env python3
"""Predicts the times of networks on Intel's GPUs, which nobody here has, from counts of instructions and published rates.

    intel.py build/tests/layer_cycles MODEL.xml... [--devices uhd630,xe96,a770,b580] [--batch 1] [--layers 3]
    intel.py build/tests/layer_cycles MODEL.xml... --devices h100 --batch 8 --measured MS...

A layer takes the longest of: the cycles that the engine's cost model gives its kernel (instructions, bytes from the cache, waiting) at
the device's clock, and its bytes from memory at the device's bandwidth; then the start of a kernel. Kernels that the model does not
know (depthwise, pooling and others) are given a share of the multiply-adds instead (UNKNOWN). The roofline is the larger of
multiply-adds at the peak and bytes at the bandwidth, a layer at a time, without starts: of the matrix units where the device has them,
else of floats, since sums are f32. What bounds a layer: issue (its instructions, matrix instructions among them), cache, wait (threads
that wait, or have too few beside them), memory, start.

h100 has no cycles: its layers take a share of the peak as in the counts of Intel's kernels (KNOWN). Beside measured sums of its kernels'
times, --measured, a number a model, it shows how far such a model is from a device.
"""
import argparse
import collections
import subprocess
import sys

# Execution units, floats that one multiplies and adds in a cycle, GHz, GB/s, multiply-adds of a matrix unit in a cycle.
Device = collections.namedtuple("Device", "title units width ghz gbytes matrix")
DEVICES = {
    "uhd630": Device("UHD 630 (24 EU)", 24, 8, 1.15, 41.6, 0),
    "xe96": Device("Iris Xe (96 EU)", 96, 8, 1.35, 68.3, 0),
    "a770": Device("Arc A770", 512, 8, 2.1, 560, 64),
    "b580": Device("Arc B580", 160, 16, 2.67, 456, 128),
    "h100": Device("H100 SXM", 132, 128, 1.83, 3350, 2048),
}
START = 2.0  # microseconds between kernels of one queue: assumed
UNKNOWN = 0.3  # of the peak of floats: the least share that intel_isa.py counts for the kernels all GPUs share
KNOWN = 0.85
FIELDS = "name type family launches products activations weights multiply issue sends cache own wait".split()


def layers(program, model, device, batch):
    result = subprocess.run([program, model, device, str(batch)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        sys.exit(f"{model}: {result.stderr.strip()}")
    for line in result.stdout.splitlines():
        values = line.split("\t")
        yield dict(zip(FIELDS, values[:3] + [float(value) for value in values[3:]]))


def predict(layer, device):
    """(microseconds, those of the roofline, what bounds it)"""
    floats = device.units * device.width * device.ghz * 1e3  # multiply-adds in a microsecond
    matrix = device.units * device.matrix * device.ghz * 1e3
    memory = (layer["activations"] + layer["weights"]) / (device.gbytes * 1e3)
    roof = max(layer["products"] / (matrix or floats), memory)
    start = START * layer["launches"]
    parts = {"memory": memory}
    if layer["issue"]:
        cycle = 1e-3 / device.ghz
        # The cost model counts cycles of eight floats; a matrix unit's are its own.
        vectors = 8 / device.width * cycle
        loops = layer["issue"] * (cycle if layer["family"].startswith("conv_xmx") else vectors)
        cache, own, wait = layer["cache"] * cycle, layer["own"] * vectors, layer["wait"] * cycle
        total = max(loops, cache) + own + wait
        bound = "wait" if wait > max(loops, cache) else "cache" if cache > loops else "issue"
        parts[bound] = total
    elif layer["products"]:
        known = device.title.startswith("H100") and layer["family"] in ("conv_mma", "conv_rows", "conv_wgmma", "fc_mma")
        parts["issue"] = layer["products"] / (KNOWN * matrix if known else UNKNOWN * floats)
    bound = max(parts, key=parts.get)
    return parts[bound] + start, roof, bound if parts[bound] > start else "start"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--devices", default="uhd630,xe96,a770,b580")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--measured", type=float, nargs="+", help="milliseconds a batch, a number a model")
    arguments = parser.parse_args()
    if arguments.measured and len(arguments.measured) != len(arguments.models):
        parser.error("--measured wants a number for each model")
    print("| network | device | GFLOP | kernels | predicted ms | starts ms | share of the roofline | time by bound | layers that hold it back |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for number, model in enumerate(arguments.models):
        name = model.rsplit("/", 1)[-1].removesuffix(".xml")
        for key in arguments.devices.split(","):
            device = DEVICES[key]
            rows = [(layer, *predict(layer, device)) for layer in layers(arguments.program, model, key, arguments.batch)]
            total, roof = sum(row[1] for row in rows), sum(row[2] for row in rows)
            by_bound = collections.Counter()
            for layer, time, _, bound in rows:
                by_bound[bound] += time
            worst = sorted(rows, key=lambda row: row[2] - row[1])[:arguments.layers]
            held = ", ".join(f"{layer['name'].split('/')[-1] if len(layer['name']) > 24 else layer['name']} ({layer['family']}, {bound}, "
                             f"{time / 1e3:.3f})" for layer, time, _, bound in worst)
            bounds = ", ".join(f"{bound} {100 * time / total:.0f} %" for bound, time in by_bound.most_common())
            measured = f" (measured {arguments.measured[number]:.3f})" if arguments.measured else ""
            launches = sum(layer["launches"] for layer, *_ in rows)
            print(f"| {name} | {device.title} | {2e-9 * sum(layer['products'] for layer, *_ in rows):.2f} | {launches:.0f} | "
                  f"{total / 1e3:.3f}{measured} | {START * launches / 1e3:.3f} | {100 * roof / total:.0f} % | {bounds} | {held} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
