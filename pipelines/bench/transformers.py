#!/usr/bin/env python3
"""Vision transformers: on a CPU beside OpenVINO, on an NVIDIA GPU beside a peer, and before a change.

    transformers.py [--clinfer build/engine/tools/clinfer] [--before PROGRAM] [--networks vit_tiny,...] [--rounds 3] [--seconds 1]
                    [--openvino PYTHON | --peer PROGRAM] [--device CPU] [--batches 1] [--config KEY=VALUE...] [--write FOLDER] [--keep FOLDER]

    transformers.py --device CPU --openvino python3 --networks vit_tiny,vit_small,detr_encoder
    transformers.py --device GPU --batches 1,8,32 --peer PEER

Networks are the ones below and those of networks.py. Writes them itself, with random weights and as exporters write them: softmax(q k^T / sqrt(size)) v of two products, LayerNorm
as MVN, a factor and a summand. Each round measures every side once, in turn, one request at a time, inputs uploaded and results read back; what counts are
the medians of the rounds' ratios. --before is a program of another version. --openvino names a Python that has openvino and numpy; it
runs f32 with the latency hint. --peer names a program that takes `NAMES --batch B...` and prints a line of JSON a batch with model,
batch and ms_median; it runs once after the rounds, and its ratio is of medians. --write leaves the networks in a folder and measures
nothing; --keep takes them from a folder, and writes there what it lacks. Needs Python 3.8+.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import networks
from architectures.layers import Network

SIZES = {  # side of the grid of tokens, channels of one, layers, heads, channels in between
    "vit_tiny": (14, 192, 12, 3, 768),
    "vit_small": (14, 384, 12, 6, 1536),
    "vit_base": (14, 768, 12, 12, 3072),
    "detr_encoder": (28, 256, 6, 8, 1024),
}
PATCH = 16


class Transformer(Network):
    """A network of tokens by channels."""

    def linear(self, x, out):
        rows, inner = x[2][:-1], x[2][-1]
        y = self.matmul(x, self.noise((inner, out), inner ** -0.5), (*rows, out))
        return self.add(y, self.noise((out,), 0.01))

    def norm(self, x):
        data = {"eps": 1e-6, "normalize_variance": "true", "eps_mode": "inside_sqrt"}
        y = self.op("MVN", [x, self.ints([-1])], x[2], data, opset=6)
        y = self.broadcast("Multiply", y, self.floats((x[2][-1],), 1.0))
        return self.add(y, self.floats((x[2][-1],), 0.0))

    def attention(self, x, heads):
        n, tokens, width = x[2]
        q, k, v = (self.in_heads(self.linear(x, width), heads) for _ in range(3))
        scores = self.matmul(q, k, (n, heads, tokens, tokens), transpose_b=True)
        scores = self.broadcast("Multiply", scores, self.floats((), (width // heads) ** -0.5))
        y = self.matmul(self.softmax(scores, -1), v, (n, heads, tokens, width // heads))
        return self.linear(self.reshape(self.transpose(y, [0, 2, 1, 3]), (n, tokens, width)), width)

    def layer_of(self, x, heads, hidden):
        x = self.add(x, self.attention(self.norm(x), heads))
        y = self.op("Gelu", [self.linear(self.norm(x), hidden)], data={"approximation_mode": "ERF"}, opset=7)
        return self.add(x, self.linear(y, x[2][-1]))


def write(name, folder):
    if name in networks.NETWORKS:
        return networks.write(folder, name)
    grid, width, depth, heads, hidden = SIZES[name]
    net = Transformer()
    x = net.parameter((1, 3, grid * PATCH, grid * PATCH))
    steps = {"strides": f"{PATCH},{PATCH}", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "explicit"}
    x = net.op("Convolution", [x, net.noise((width, 3, PATCH, PATCH), 0.02)], (1, width, grid, grid), steps)
    x = net.transpose(net.reshape(x, (1, width, grid * grid)), [0, 2, 1])
    x = net.add(x, net.noise((1, grid * grid, width), 0.02))
    for _ in range(depth):
        x = net.layer_of(x, heads, hidden)
    x = net.op("ReduceMean", [net.norm(x), net.ints([1])], (1, width), {"keep_dims": "false"})
    net.result(net.linear(x, 1000))
    net.write(folder / f"{name}.xml")
    return folder / f"{name}.xml"


def run(command):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        sys.exit(f"transformers.py: {command[0]}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer", metavar="PROGRAM")
    parser.add_argument("--before", metavar="PROGRAM", help="clinfer of another version")
    parser.add_argument("--openvino", metavar="PYTHON", help="a Python that has openvino")
    parser.add_argument("--peer", metavar="PROGRAM")
    parser.add_argument("--networks", default=",".join(SIZES))
    parser.add_argument("--batches", default="1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--device", default="GPU", help="clinfer's device")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="for clinfer")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the networks and measure nothing")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="take networks from here, and leave them here")
    args = parser.parse_args()
    names = args.networks.split(",")
    if unknown := [name for name in names if name not in {**SIZES, **networks.NETWORKS}]:
        parser.error(f"no network {unknown[0]}; there are {', '.join({**SIZES, **networks.NETWORKS})}")
    if args.write:
        args.write.mkdir(parents=True, exist_ok=True)
        for name in names:
            write(name, args.write)
        return
    batches = [int(batch) for batch in args.batches.split(",")]

    def clinfer(program, model, batch):
        options = [part for setting in args.config for part in ("--config", setting)]
        command = [program, "bench", model, "--device", args.device, "--batch", batch, "--seconds", args.seconds, "--sync", "--streams", 1]
        return run([*command, "--json", *options])[-1]["latency_ms"]["p50"]

    def openvino(model, batch):
        worker = Path(__file__).with_name("compare_openvino.py")
        return run([args.openvino, worker, "--worker", model, "--seconds", args.seconds, "--batch", batch, "--latency"])[-1]["p50"]

    rows = []
    with tempfile.TemporaryDirectory(prefix="clinfer-transformers-") as folder:
        folder = args.keep or Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            model = folder / f"{name}.xml"
            if not model.exists():
                write(name, folder)
            for batch in batches:
                sides = {"now": lambda: clinfer(args.clinfer, model, batch)}
                if args.before:
                    sides["before"] = lambda: clinfer(args.before, model, batch)
                if args.openvino:
                    sides["openvino"] = lambda: openvino(model, batch)
                times = {side: [] for side in sides}
                for k in range(args.rounds):
                    for side in list(sides) if k % 2 == 0 else reversed(list(sides)):
                        times[side].append(sides[side]())
                rows.append({"model": name, "batch": batch, "times": times})
                print(json.dumps(rows[-1]), flush=True)
    peers = {}
    if args.peer:
        for line in run([*args.peer.split(), *names, "--batch", *batches]):
            peers[line["model"], line["batch"]] = line["ms_median"]

    others = (["before"] if args.before else []) + (["openvino"] if args.openvino else []) + (["peer"] if args.peer else [])
    print(f"\nmedians of {args.rounds} rounds of {args.seconds:g} s, milliseconds a batch; ratios above 1: this version is faster")
    columns = ["network", "batch", "now"] + [column for other in others for column in (other, "ratio")]
    print("\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    ratios = {other: [] for other in others}
    for row in rows:
        now = row["times"]["now"]
        cells = [row["model"], str(row["batch"]), f"{statistics.median(now):.3f}"]
        for other in others:
            if other == "peer":
                theirs = peers.get((row["model"], row["batch"]), float("nan"))
                ratio = theirs / statistics.median(now)
            else:
                theirs = statistics.median(row["times"][other])
                ratio = statistics.median(b / a for a, b in zip(now, row["times"][other]))
            ratios[other].append(ratio)
            cells += [f"{theirs:.3f}", f"{ratio:.2f}"]
        print("| " + " | ".join(cells) + " |")
    print()
    for other in others:
        print(f"geometric mean of the ratios to {other}: {statistics.geometric_mean(ratios[other]):.2f}")


if __name__ == "__main__":
    main()
