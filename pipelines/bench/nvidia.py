#!/usr/bin/env python3
"""Networks on an NVIDIA GPU: latency, time of the kernels alone, share of the roofline, beside a peer.

    nvidia.py [--clinfer build/engine/tools/clinfer] [--networks yolov8n,yolov8s,resnet50,mobilenet_v2] [--models MODEL.xml...]
              [--batches 1,8,32] [--layers yolov8s,resnet50] [--seconds 2] [--device D] [--peer PROGRAM] [--peer-seconds 1] [--peer-limit 600]
              [--limit SECONDS] [--config KEY=VALUE...] [--tflops T --gbytes G]

Writes the networks itself (networks.py). One table, milliseconds a batch: the latency of one request that uploads its inputs and reads
its results back, as the peer's does, in f16 and of inputs that were converted before on both sides; batches in a row, of two requests whose inputs
stay on the device, against the peer's time of the device alone (no copies); the sum of the kernels' times by counters, each of which
holds some microseconds of its launch; and the roofline: for each layer that has a kernel the larger of operations / peak and bytes / bandwidth,
where a layer reads its data and weights and writes its result once, in f16, and what is fused into it is free but for further tensors.
--layers prints each layer's time and its share of that. --peer names a program that takes `MODEL --precision fp16 --batch B... --mode
graph [--io]` and prints a line of JSON a batch with model, batch, ms_median and ms_event_median; it runs right after each network's own
measurement, at most --peer-limit seconds at a time. After --limit seconds no further network begins. The peaks are those of the card by
its name (f16 on matrix units, dense), unless given. Needs Python 3.8+.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import networks

PEAKS = {"H200": (989, 4800), "H100": (989, 3350), "A100": (312, 1555)}  # TFLOP/s, GB/s; the SXM cards'


class Layers:
    """What a model's file says of the layers: operations of the products, and bytes in f16, for one image."""

    def __init__(self, path):
        root = ET.parse(path).getroot()
        self.by_name, self.inputs, self.shapes, self.kinds = {}, {}, {}, {}
        for layer in root.find("layers"):
            number, kind = layer.get("id"), layer.get("type")
            self.by_name[layer.get("name")] = number
            self.kinds[number] = kind
            for tag in ("input", "output"):
                for port in layer.findall(f"{tag}/port"):
                    self.shapes[number, port.get("id")] = [int(dim.text) for dim in port.findall("dim")]
            self.inputs[number] = [port.get("id") for port in layer.findall("input/port")]
            self.shapes[number] = next((self.shapes[number, port.get("id")] for port in layer.findall("output/port")), [])
        self.sources = {(edge.get("to-layer"), edge.get("to-port")): edge.get("from-layer") for edge in root.find("edges")}

    def is_constant(self, number):
        """Whether it is one or made of some."""
        if self.kinds[number] in ("Const", "Parameter"):
            return self.kinds[number] == "Const"
        return bool(self.inputs[number]) and all(self.is_constant(self.sources[number, port]) for port in self.inputs[number])

    def cost(self, name, fused, batch):
        """(operations, bytes) of a layer with the layers fused into it."""
        number = self.by_name[name]
        members = {number} | {self.by_name[other] for other in fused if other in self.by_name}
        operations = 0
        for member in members:
            if self.kinds[member] in ("Convolution", "GroupConvolution", "MatMul"):
                weights = self.shapes[member, self.inputs[member][1]]
                inner = math.prod(weights[1:] if self.kinds[member] == "Convolution" else weights[2:])
                if self.kinds[member] == "MatMul":
                    inner = self.shapes[member, self.inputs[member][0]][-1]
                operations += 2 * inner * math.prod(self.shapes[member]) * batch
        # Counts each value that a member reads and no member makes, and the result of the last member.
        moved, seen = 0, set()
        for member in members:
            for port in self.inputs[member]:
                source = self.sources[member, port]
                if source in members or source in seen:
                    continue
                seen.add(source)
                moved += 2 * math.prod(self.shapes[member, port]) * (1 if self.is_constant(source) else batch)
        last = max(members, key=int)
        return operations, moved + 2 * math.prod(self.shapes[last]) * batch


def bench(args, model, batch, *options):
    command = [args.clinfer, "bench", str(model), "--batch", str(batch), "--seconds", str(args.seconds), "--json", *options]
    command += ["--device", args.device] if args.device else []
    for setting in args.config:
        command += ["--config", setting]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        raise RuntimeError((run.stderr.strip().splitlines() or ["no message"])[-1])
    return json.loads(run.stdout.strip().splitlines()[-1])


def timed_layers(result, model, batch, peaks):
    """[(name, type, us, ideal us, kernel)] of the layers that the device computed."""
    layers, fused = Layers(model), {}
    for row in result["layers"]:
        if row["fused_into"]:
            fused.setdefault(row["fused_into"], []).append(row["layer"])
    rows = []
    for row in result["layers"]:
        if row["status"] != "EXECUTED" or row["type"] == "Transfer" or row["device_us"] <= 0:
            continue
        ideal = 0.0
        # A copy that the engine makes has no part in the ideal.
        if row["layer"] in layers.by_name and row["type"] == layers.kinds[layers.by_name[row["layer"]]]:
            operations, moved = layers.cost(row["layer"], fused.get(row["layer"], []), batch)
            ideal = max(operations / peaks[0] / 1e6, moved / peaks[1] / 1e3)
        rows.append((row["layer"], row["type"], row["device_us"], ideal, row["kernel"]))
    return rows


def peer_times(args, model, io):
    """{(model, batch): (latency, time of the device)}; empty where there is no peer or it fails, and short where its time is over."""
    times = {}
    if not args.peer:
        return times
    command = [sys.executable, args.peer, str(model), "--precision", "fp16", "--batch", *map(str, args.batches), "--mode", "graph",
               "--seconds", str(args.peer_seconds), "--no-verify"] + (["--io"] if io else [])
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=args.peer_limit)
        out, said = run.stdout, run.stderr
    except subprocess.TimeoutExpired as error:  # its text is bytes in some versions of Python
        out = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        said = f"it took more than {args.peer_limit:.0f} s"
    for line in out.splitlines():
        result = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
        if "ms_median" in result:
            times[result["model"], result["batch"]] = (result["ms_median"], result.get("ms_event_median", math.nan))
            print(f"peer: {result['model']} batch {result['batch']}{' with copies' if io else ''}: one request {result['ms_median']:.3f} ms, "
                  f"kernels alone {result.get('ms_event_median', math.nan):.3f} ms", flush=True)
        elif "error" in result:
            print(f"peer: {result}", flush=True)
    if not times:
        print(f"no peer: {(said.strip().splitlines() or ['it printed no result'])[-1]}", flush=True)
    return times


def with_peer(ours, peer):
    return f"{ours:.3f}" + (f" / {peer:.3f}" if peer else "")


def measure(args, models):
    latencies, in_a_row, kernels, ideals, alone, io, device = {}, {}, {}, {}, {}, {}, None
    ends = time.monotonic() + args.limit
    for model in models:
        if time.monotonic() > ends:
            print(f"the time was over before {model.stem}", flush=True)
            break
        for batch in args.batches:
            try:
                latencies[model.stem, batch] = bench(args, model, batch, "--sync", "--half-outputs")["latency_ms"]["p50"]
                in_a_row[model.stem, batch] = 1e3 * batch / bench(args, model, batch, "--inputs-once", "--half-outputs")["images_per_second"]
                counted = bench(args, model, batch, "--sync", "--inputs-once", "--perf-count")
            except RuntimeError as error:
                print(f"{model.stem} batch {batch}: {error}", flush=True)
                continue
            device = counted["device"]
            known = next((peak for name, peak in PEAKS.items() if name in device), (None, None))
            peaks = (args.tflops or known[0], args.gbytes or known[1])
            if None in peaks:
                raise SystemExit(f"{device}: the peaks are not known: give --tflops and --gbytes")
            rows = timed_layers(counted, model, batch, peaks)
            kernels[model.stem, batch] = sum(row[2] for row in rows) / 1e3
            ideals[model.stem, batch] = sum(row[3] for row in rows) / 1e3
            # At once, so that a run that is cut short leaves what it has measured.
            print(f"{model.stem} batch {batch}: one request {latencies[model.stem, batch]:.3f} ms, in a row "
                  f"{in_a_row[model.stem, batch]:.3f} ms, sum of kernels {kernels[model.stem, batch]:.3f} ms, roofline {ideals[model.stem, batch]:.3f} ms", flush=True)
            if model.stem in args.layers:
                print_layers(model.stem, batch, rows, kernels[model.stem, batch])
        alone.update(peer_times(args, model, False))
        io.update(peer_times(args, model, True))
    return latencies, in_a_row, kernels, ideals, alone, io, device


def print_layers(name, batch, rows, total):
    print(f"\n### {name}, batch {batch}: {total:.3f} ms in {len(rows)} steps\n\n| layer | type | us | of the total | of the roofline | kernel |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for layer, kind, us, ideal, kernel in rows:
        print(f"| {layer} | {kind} | {us:.1f} | {us / total / 10:.1f} % | {100 * ideal / us:.0f} % | {kernel} |")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer")
    parser.add_argument("--networks", default="yolov8n,yolov8s,resnet50,mobilenet_v2")
    parser.add_argument("--models", nargs="*", type=Path, default=[])
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--layers", default="yolov8s,resnet50")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--device")
    parser.add_argument("--config", action="append", default=[])
    parser.add_argument("--peer")
    parser.add_argument("--peer-seconds", type=float, default=1)
    parser.add_argument("--peer-limit", type=float, default=600)
    parser.add_argument("--limit", type=float, default=math.inf)
    parser.add_argument("--tflops", type=float)
    parser.add_argument("--gbytes", type=float)
    args = parser.parse_args()
    args.batches = [int(batch) for batch in args.batches.split(",")]
    args.layers = args.layers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        models = [networks.write(Path(folder), name) for name in filter(None, args.networks.split(","))] + args.models
        latencies, in_a_row, kernels, ideals, alone, io, device = measure(args, models)

    print(f"\n## {device}: milliseconds a batch, ours" + (" / peer" if io or alone else "; no peer was run") + "\n")
    heads = [f"b={batch}: {what}" for batch in args.batches for what in ("one request", "in a row", "sum of kernels", "roofline", "in a row over it")]
    print("| network | " + " | ".join(heads) + " |\n" + "| --- " * (len(heads) + 1) + "|")
    for model in models:
        cells = []
        for key in ((model.stem, batch) for batch in args.batches):
            if key not in kernels:
                cells += ["not measured"] * 5
                continue
            cells += [with_peer(latencies[key], io.get(key, (0, 0))[0]), with_peer(in_a_row[key], alone.get(key, (0, 0))[1]),
                      f"{kernels[key]:.3f}", f"{ideals[key]:.3f}", f"{in_a_row[key] / ideals[key]:.2f}"]
        print(f"| {model.stem} | " + " | ".join(cells) + " |")
    for batch in args.batches:
        for what, ours, peer, column in (("one request", latencies, io, 0), ("in a row", in_a_row, alone, 1)):
            ratios = [peer[key][column] / ours[key] for key in peer if key in ours and key[1] == batch]
            if ratios:
                print(f"b={batch}, {what}: peer over ours {statistics.geometric_mean(ratios):.2f} in the mean, {min(ratios):.2f} at least")


if __name__ == "__main__":
    main()
