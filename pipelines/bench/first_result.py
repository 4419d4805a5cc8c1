#!/usr/bin/env python3
"""How long a user waits for a first result and for full speed, beside OpenVINO, as a Markdown table.

    first_result.py --build build MODEL.xml... [--rounds 3] [--device CPU] [--openvino-python PYTHON] [--json FILE]

Of each model, in one run; cold: with an empty program cache of clinfer and of the OpenCL driver
  first cold, warm  `gst-launch-1.0 videotestsrc num-buffers=1 ! clinfer ! fakesink`, from its start to its end
  full              the same without an end, cold: from its start until all kernels are compiled, while the first tier computes frames
  full alone        the same with first-tier=false: what the first tier costs the compilers
  OpenVINO          reading, compiling and one inference by its CPU plug-in, in a process of its own, without Python's start
Medians of the rounds, in seconds. Needs Python 3.8+; openvino and numpy in the Python that --openvino-python names ("": left out).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPENVINO = """
import sys, time
import numpy as np
import openvino as ov
begin = time.perf_counter()
core = ov.Core()
model = core.read_model(sys.argv[1])
for node in model.inputs:
    shape = node.get_partial_shape()
    if shape.is_dynamic:
        shape[0] = 1
        model.reshape({node: shape})
compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
compiled([np.zeros(tuple(node.shape), node.element_type.to_dtype()) for node in compiled.inputs])
print(time.perf_counter() - begin)
"""


def run(command, environment=None):
    """Seconds, and what it wrote to standard output."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})})
    seconds = time.perf_counter() - begin
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        sys.exit(f"first_result.py: {' '.join(command)}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return seconds, done.stdout


class Bench:
    def __init__(self, args):
        self.args = args

    def environment(self, cache):
        """Empty caches below `cache`: of clinfer, of PoCL, and of NVIDIA's driver."""
        return {"POCL_CACHE_DIR": f"{cache}/pocl", "CUDA_CACHE_PATH": f"{cache}/cuda", "XDG_CACHE_HOME": f"{cache}/user",
                "GST_PLUGIN_PATH": f"{self.args.build}/gst", "GST_REGISTRY": f"{self.args.registry}/registry"}

    def pipeline(self, model, *options):
        return ["gst-launch-1.0", "videotestsrc", *[o for o in options if o.startswith("num-buffers")], "!",
                "video/x-raw,format=NV12,width=640,height=480", "!", "clinfer", f"model={model}", f"device={self.args.device}",
                "post-process=none", *[o for o in options if o.startswith("first-tier")], "!", "fakesink"]

    def first(self, model, cache):
        return run(self.pipeline(model, "num-buffers=1") + ["-q"], self.environment(cache))[0]

    def full(self, model, cache, *options):
        """Seconds until the element says that the model is compiled."""
        begin = time.perf_counter()
        with subprocess.Popen(["stdbuf", "-oL", *self.pipeline(model, *options), "-m"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, **self.environment(cache)}) as process:
            for line in process.stdout:
                if "(progress)" in line and "Compiled" in line:
                    seconds = time.perf_counter() - begin
                    process.terminate()
                    return seconds
        sys.exit(f"first_result.py: {model} was not compiled")

    def round(self, model):
        row = {}
        for name, options in (("full", []), ("full alone", ["first-tier=false"])):
            with tempfile.TemporaryDirectory(prefix="clinfer-cache-") as cache:
                row[name] = self.full(model, cache, *options)
                if name == "full":
                    row["first warm"] = self.first(model, cache)
        with tempfile.TemporaryDirectory(prefix="clinfer-cache-") as cache:
            row["first cold"] = self.first(model, cache)
        if self.args.openvino_python:
            row["OpenVINO"] = float(run([self.args.openvino_python, "-c", OPENVINO, model])[1])
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    parser.add_argument("--build", default="build", metavar="FOLDER", help="the build folder")
    parser.add_argument("--openvino-python", default=sys.executable, metavar="PYTHON", help="a Python that has openvino; '': none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="CPU", help="clinfer's device")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all measurements")
    args = parser.parse_args()
    args.build = str(Path(args.build).resolve())
    columns = ["first cold", "first warm", "full", "full alone"] + (["OpenVINO"] if args.openvino_python else [])
    rows = []
    with tempfile.TemporaryDirectory(prefix="clinfer-registry-") as args.registry:
        bench = Bench(args)
        run(["gst-inspect-1.0", "clinfer"], bench.environment(args.registry))  # writes the registry
        print("| model | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns), flush=True)
        for model in args.models:
            rounds = [bench.round(model) for _ in range(args.rounds)]
            row = {name: statistics.median(r[name] for r in rounds) for name in columns}
            rows.append({"model": Path(model).stem, **row, "rounds": rounds})
            print(f"| {Path(model).stem} | " + " | ".join(f"{row[name]:.2f}" for name in columns) + " |", flush=True)
    print(f"| longest | " + " | ".join(f"{max(row[name] for row in rows):.2f}" for name in columns) + " |")
    print(f"\nseconds, medians of {args.rounds} rounds, on cores {','.join(map(str, sorted(os.sched_getaffinity(0))))}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
