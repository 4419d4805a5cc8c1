#!/usr/bin/env python3
"""How throughput, latency and memory grow with streams, requests, batch, models and videos, beside a peer: a table and a picture.

    growth.py MODEL.xml --build build [--png growth.png] [--only streams,batch] [--seconds 2] [--device CPU] [--precision f32]
              [--json FILE] [--openvino-python PYTHON] [--gpu-peer PROGRAM] [--plot-python PYTHON]

  streams, requests, batch   clinfer bench, and OpenVINO with as many streams and requests
  models                     elements in one process with a compiled model each, and compiled models of OpenVINO in one process
  videos                     gst-launch with as many sources that share one model (model-instance-id); no counterpart in OpenVINO
Throughput is images per second of all together. Latency is the median of a request, with pipelines that of a frame from source to sink,
where it waits for frames of all others: sources are as fast as the device. Memory is the largest resident set of the process (RSS).
Each measurement is a process of its own; its kernels are compiled before. The peer is OpenVINO's CPU plug-in in f32, or what --gpu-peer
names: a program that takes `MODEL --precision fp16 --io --batch B... --mode graph`, or `--mode --streams N...` for streams, and prints a line
of JSON for each with batch or streams, ms_median and img_per_s. Needs Python 3.8+; openvino and numpy in the Python that --openvino-python
names ('': left out); matplotlib in the one that --plot-python names.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = {"streams": [1, 2, 3, 4, 6, 8], "requests": [1, 2, 3, 4, 6, 8, 12, 16], "batch": [1, 2, 4, 8, 16, 32, 64],
         "models": [1, 2, 3, 4, 6, 8], "videos": [1, 2, 4, 8, 16, 32]}

OPENVINO = """
import json, resource, statistics, sys, time
import numpy as np
import openvino as ov
path, axis, count, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
core, models = ov.Core(), []
for _ in range(count if axis == "models" else 1):
    model = core.read_model(path)
    batch = count if axis == "batch" else 1
    for node in model.inputs:
        shape = node.get_partial_shape()
        if shape.is_dynamic or batch > 1:
            shape[0] = batch
            model.reshape({node: shape})
    config = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT"}
    if axis == "streams":
        config["NUM_STREAMS"] = count
    if axis == "models":
        config["NUM_STREAMS"] = 1
    compiled = core.compile_model(model, "CPU", config)
    requests = count if axis == "requests" else 2 * count if axis == "streams" else 0
    queue = ov.AsyncInferQueue(compiled, requests)
    for k, node in enumerate(compiled.inputs):
        values = np.random.default_rng(1).random(tuple(node.shape)).astype(node.element_type.to_dtype())
        for request in queue:
            request.set_input_tensor(k, ov.Tensor(values.copy()))
    models.append((queue, []))
for queue, latencies in models:
    queue.set_callback(lambda request, _, into=latencies: into.append(request.latency))
    for _ in range(len(queue)):
        queue.start_async()
    queue.wait_all()
    latencies.clear()
begin = time.perf_counter()
while time.perf_counter() - begin < seconds:
    for queue, _ in models:
        queue.start_async()
for queue, _ in models:
    queue.wait_all()
took = time.perf_counter() - begin
all_of_them = [l for _, latencies in models for l in latencies]
print(json.dumps({"rate": len(all_of_them) * batch / took, "latency": statistics.median(all_of_them)}))
"""


def run(command, environment=None, fails=True):
    """Standard output, standard error, and the process's largest resident set in MiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(environment or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status
        out.seek(0), err.seek(0)
        texts = out.read(), err.read()
    if process.returncode and fails:
        lines = (texts[1].strip() or texts[0].strip()).splitlines()
        sys.exit(f"growth.py: {' '.join(command)[:300]}: {lines[-1] if lines else f'exit status {process.returncode}'}")
    return (*texts, usage.ru_maxrss / 1024)


class Growth:
    def __init__(self, args, cache):
        self.args = args
        self.environment = {"XDG_CACHE_HOME": f"{cache}/user", "POCL_CACHE_DIR": f"{cache}/pocl", "GST_REGISTRY": f"{cache}/registry",
                            "GST_PLUGIN_PATH": f"{args.build}/gst"}

    def bench(self, axis, count):
        option = {"streams": ["--streams", str(count), "--nireq", str(2 * count)], "requests": ["--streams", "0", "--nireq", str(count)],
                  "batch": ["--batch", str(count)]}[axis]
        command = [f"{self.args.build}/engine/tools/clinfer", "bench", self.args.model, "--device", self.args.device, *option, "--json",
                   "--config", f"INFERENCE_PRECISION={self.args.precision}"]
        run([*command, "--seconds", "0.01"], self.environment)  # compiles
        out, _, memory = run([*command, "--seconds", str(self.args.seconds)], self.environment)
        line = json.loads(out.splitlines()[-1])
        return {"rate": line["images_per_second"], "latency": line["latency_ms"]["p50"], "memory": memory}

    def pipeline(self, axis, count):
        """A pipeline of `count` sources that stops by itself. Its rate is that of the frames between the first and the last one."""
        def branches(frames, more=""):
            shared = "model-instance-id=shared" if axis == "videos" else ""
            one = (f"videotestsrc num-buffers={frames} ! video/x-raw,format=NV12,width=640,height=360 ! clinfer model={self.args.model} "
                   f"device={self.args.device} first-tier=false post-process=none config=INFERENCE_PRECISION={self.args.precision} {shared} ! fakesink sync=false")
            return ["gst-launch-1.0", "-q", *" ".join([one] * count).split()]
        frames = max(20, int(self.args.seconds * self.single / count))
        run(branches(3), self.environment)  # compiles
        _, log, memory = run(branches(frames), {**self.environment, "GST_TRACERS": "latency(flags=pipeline)", "GST_DEBUG_NO_COLOR": "1",
                                                "GST_DEBUG": "GST_TRACER:7"})
        times = [(int(at), int(took)) for took, at in re.findall(r"latency, .*time=\(guint64\)(\d+), ts=\(guint64\)(\d+)", log)]
        if len(times) < count * frames * 0.9:
            sys.exit(f"growth.py: {len(times)} of {count * frames} frames came out of {count} {axis}")
        begin, end = min(at for at, _ in times), max(at for at, _ in times)
        return {"rate": (len(times) - 1) / (end - begin) * 1e9, "latency": statistics.median(took for _, took in times) / 1e6,
                "memory": memory}

    def openvino(self, axis, count):
        if axis == "videos" or not self.args.openvino_python:
            return None
        out, _, memory = run([self.args.openvino_python, "-c", OPENVINO, self.args.model, axis, str(count), str(self.args.seconds)])
        return {**json.loads(out.splitlines()[-1]), "memory": memory}

    def gpu_peer(self, axis, counts):
        """{count: measurement} of one process, whose memory says nothing of a count."""
        if axis not in ("streams", "batch"):
            return {}
        numbers = [str(count) for count in counts]
        options = ["--batch", *numbers, "--mode", "graph"] if axis == "batch" else ["--mode", "--streams", *numbers]
        out, _, _ = run([sys.executable, self.args.gpu_peer, self.args.model, "--precision", "fp16", "--io", "--no-verify", "--seconds",
                         str(self.args.seconds), *options])
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return {line[axis]: {"rate": line["img_per_s"], "latency": line["ms_median"]} for line in lines if "ms_median" in line}

    def rows(self, axis):
        counts = [count for count in STEPS[axis] if count <= self.args.most]
        known = self.gpu_peer(axis, counts) if self.args.gpu_peer else None
        for count in counts:
            ours = self.bench(axis, count) if axis in ("streams", "requests", "batch") else self.pipeline(axis, count)
            yield {"axis": axis, "count": count, "clinfer": ours, "peer": self.openvino(axis, count) if known is None else known.get(count)}


PLOT = """
import json, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
rows, title, peer, path = json.loads(sys.stdin.read()), *sys.argv[1:4]
axes = list(dict.fromkeys(row["axis"] for row in rows))
units = (("rate", "images / s"), ("latency", "latency, ms"), ("memory", "RSS, MiB"))
figure, plots = plt.subplots(3, len(axes), figsize=(3.6 * len(axes), 8), squeeze=False)
for column, axis in enumerate(axes):
    for line, (what, unit) in enumerate(units):
        plot = plots[line][column]
        for side, style in (("clinfer", "o-"), ("peer", "s--")):
            points = [(row["count"], row[side][what]) for row in rows if row["axis"] == axis and row[side] and what in row[side]]
            if points:
                plot.plot(*zip(*points), style, label=peer if side == "peer" else side)
        plot.set_ylim(bottom=0)
        plot.grid(alpha=0.3)
        if line == 0: plot.set_title(axis)
        if column == 0: plot.set_ylabel(unit)
        if line == 2: plot.set_xlabel(axis)
plots[0][0].legend()
figure.suptitle(title)
figure.tight_layout()
figure.savefig(path, dpi=80)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", metavar="MODEL.xml")
    parser.add_argument("--build", default="build", metavar="FOLDER", help="the build folder")
    parser.add_argument("--device", default="CPU", help="clinfer's device")
    parser.add_argument("--only", default=",".join(STEPS), metavar="LIST", help="what grows")
    parser.add_argument("--most", type=int, default=64, help="no larger numbers")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--precision", default="f32", help="clinfer's INFERENCE_PRECISION")
    parser.add_argument("--gpu-peer", metavar="PROGRAM", help="a peer on the GPU in OpenVINO's place")
    parser.add_argument("--png", metavar="FILE", help="the picture")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all measurements")
    parser.add_argument("--openvino-python", default=sys.executable, metavar="PYTHON", help="a Python that has openvino; '': none")
    parser.add_argument("--plot-python", default=sys.executable, metavar="PYTHON", help="a Python that has matplotlib")
    args = parser.parse_args()
    args.build = str(Path(args.build).resolve())
    unknown = [axis for axis in args.only.split(",") if axis not in STEPS]
    if unknown:
        parser.error(f"--only {unknown[0]}: there are {', '.join(STEPS)}")
    rows = []
    peer = Path(args.gpu_peer).stem if args.gpu_peer else "OpenVINO"
    print(f"| what | number | clinfer/s | ms | MiB | {peer}/s | ms | MiB |\n| --- |" + " --- |" * 7, flush=True)
    with tempfile.TemporaryDirectory(prefix="clinfer-growth-") as cache:
        growth = Growth(args, cache)
        growth.single = growth.bench("requests", 2)["rate"]
        for axis in args.only.split(","):
            for row in growth.rows(axis):
                rows.append(row)
                cells = [f"{side[what]:.{digits}f}" if side and what in side else "" for side in (row["clinfer"], row["peer"])
                         for what, digits in (("rate", 1), ("latency", 2), ("memory", 0))]
                print(f"| {axis} | {row['count']} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.png:
        title = f"{Path(args.model).stem} on {args.device}, {args.precision}, {len(os.sched_getaffinity(0))} cores"
        subprocess.run([args.plot_python, "-c", PLOT, title, peer, args.png], input=json.dumps(rows), text=True, check=True)


if __name__ == "__main__":
    main()
