#!/usr/bin/env python3
"""How many launches a network takes, beside the number of layers that OpenVINO executes of it.

    launches.py MODEL... [--clinfer build/engine/tools/clinfer] [--device CPU] [--config KEY=VALUE...] [--kinds] [--no-openvino]

Ours are those of `clinfer graph --json`; OpenVINO's the nodes of its executed graph on the CPU in f32 that are no inputs, outputs,
constants or reshapes in place, which cost nothing. --kinds counts both by operation. Needs openvino, unless --no-openvino is given.
"""
import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path

FREE = {"Input", "Output", "Const", "Parameter", "Result", "Reshape"}


def ours(args, model):
    command = [args.clinfer, "graph", model, "--json", "--device", args.device]
    command += [part for setting in args.config for part in ("--config", setting)]
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"launches.py: {model}: {done.stderr.strip().splitlines()[-1]}")
    return collections.Counter(layer["type"] for layer in json.loads(done.stdout)["layers"] if layer["runs"] != "nowhere")


def openvino_layers(model):
    import openvino
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    kinds = [node.get_rt_info()["layerType"].astype(str) for node in compiled.get_runtime_model().get_ordered_ops()]
    return collections.Counter(kind for kind in kinds if kind not in FREE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer", metavar="PROGRAM")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--no-openvino", action="store_true")
    args = parser.parse_args()
    print("| network | launches |" + ("" if args.no_openvino else " OpenVINO's layers |"))
    print("| --- | --- |" + ("" if args.no_openvino else " --- |"))
    for model in args.models:
        sides = [ours(args, model)] + ([] if args.no_openvino else [openvino_layers(model)])
        print(f"| {model.stem} | " + " | ".join(str(sum(side.values())) for side in sides) + " |", flush=True)
        if args.kinds:
            for side in sides:
                print("    " + ", ".join(f"{count} {kind}" for kind, count in side.most_common()), flush=True)


if __name__ == "__main__":
    main()
