#!/usr/bin/env python3
"""Throughput or latency of `clinfer bench` beside OpenVINO's CPU plug-in, on the same cores, and clinfer's load times.

    compare_openvino.py --clinfer build/engine/tools/clinfer MODEL.xml... [--rounds 5] [--seconds 5] [--cpus 0,1] [--latency] [--json FILE]

Rounds are interleaved (clinfer, OpenVINO, then OpenVINO, clinfer ...), so that a noisy machine hits both; what counts is the median of
the rounds' ratios. OpenVINO runs as benchmark_app does: asynchronous requests, throughput hint, f32, or bf16 with --bf16. Either side
runs in a process of its own with the same CPU affinity. With --latency there is one request at a time, with one stream and the latency
hint; the ratio is OpenVINO's median time over clinfer's: above 1, clinfer answers sooner. Load times: cold means an empty program cache,
of clinfer and of PoCL; warm is the same command again. Needs Python 3.8+; openvino and numpy in the Python that --openvino-python names.
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


def measure_openvino(model_path, seconds, batch, latency, precision):
    """The worker: prints one line of JSON."""
    import numpy as np
    import openvino as ov

    begin = time.perf_counter()
    core = ov.Core()
    model = core.read_model(model_path)
    for node in model.inputs:
        shape = node.get_partial_shape()
        if shape.is_dynamic or batch:
            shape[0] = batch or 1
            model.reshape({node: shape})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision,
                                                 "PERFORMANCE_HINT": "LATENCY" if latency else "THROUGHPUT"})
    load_ms = 1e3 * (time.perf_counter() - begin)
    number = 1 if latency else compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    queue = ov.AsyncInferQueue(compiled, number)
    random = np.random.default_rng(1)
    images = 1
    for k, node in enumerate(compiled.inputs):
        shape, dtype = tuple(node.shape), node.element_type.to_dtype()
        values = random.integers(0, 255, shape) if len(shape) >= 4 else random.random(shape)
        if k == 0 and shape:
            images = shape[0]
        for request in queue:
            request.set_input_tensor(k, ov.Tensor(np.ascontiguousarray(values.astype(dtype))))
    latencies = []
    queue.set_callback(lambda request, _: latencies.append(request.latency))
    for _ in range(2 * number):                              # first inferences allocate
        queue.start_async()
    queue.wait_all()
    latencies.clear()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        queue.start_async()
        if latency:
            queue.wait_all()
    queue.wait_all()
    took = time.perf_counter() - begin
    print(json.dumps({"images_per_second": images * len(latencies) / took, "load_ms": load_ms, "nireq": number,
                      "p50": statistics.median(latencies)}))


def last_json(command, environment=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        sys.exit(f"compare_openvino.py: {' '.join(command)}: {lines[-1] if lines else f'exit status {done.returncode}'}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Comparison:
    def __init__(self, args):
        self.args = args
        self.options = ["--json", "--device", args.device]
        self.options += ["--sync", "--streams", "1"] if args.latency else ["--streams", str(args.streams)]
        self.options += ["--nireq", str(args.nireq)] if args.nireq else []
        self.options += ["--batch", str(args.batch)] if args.batch else []
        for setting in args.config + ["INFERENCE_PRECISION=bf16"] * args.bf16:
            self.options += ["--config", setting]

    def clinfer(self, model):
        return last_json([self.args.clinfer, "bench", model, "--seconds", str(self.args.seconds), *self.options])

    def openvino(self, model):
        return last_json([self.args.openvino_python, __file__, "--worker", model, "--seconds", str(self.args.seconds),
                          "--batch", str(self.args.batch)] + ["--latency"] * self.args.latency + ["--bf16"] * self.args.bf16)

    def ratio(self, mine, theirs):
        if self.args.latency:
            return theirs["p50"] / mine["latency_ms"]["p50"]
        return mine["images_per_second"] / theirs["images_per_second"]

    def measure(self, model):
        """Per round: what clinfer and OpenVINO say."""
        pairs = []
        for k in range(self.args.rounds):
            sides = [self.clinfer, self.openvino]
            made = [side(model) for side in (sides if k % 2 == 0 else reversed(sides))]
            mine, theirs = made if k % 2 == 0 else reversed(made)
            pairs.append((mine, theirs))
            print(f"  round {k + 1}: {mine['images_per_second']:.1f} and {theirs['images_per_second']:.1f} images/s, "
                  f"median {mine['latency_ms']['p50']:.2f} and {theirs['p50']:.2f} ms, ratio {self.ratio(mine, theirs):.3f}", flush=True)
        return pairs

    def load_times(self, model):
        """Seconds until the first result, cold and warm."""
        cold, warm = [], []
        for _ in range(self.args.load_rounds):
            with tempfile.TemporaryDirectory(prefix="clinfer-cache-") as cache:
                command = [self.args.clinfer, "bench", model, "--seconds", "0.01", *self.options, "--config", f"CACHE_DIR={cache}/programs"]
                for times in (cold, warm):
                    line = last_json(command, {"POCL_CACHE_DIR": f"{cache}/pocl"})
                    times.append(line["first_result_ms"] / 1e3)
        return statistics.median(cold), statistics.median(warm)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL.xml")
    parser.add_argument("--clinfer", default="build/engine/tools/clinfer", metavar="PROGRAM")
    parser.add_argument("--openvino-python", default=sys.executable, metavar="PYTHON", help="a Python that has openvino")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--load-rounds", type=int, default=1, help="measurements of the load times; 0: none")
    parser.add_argument("--cpus", default="", metavar="LIST", help="cores for both sides, e.g. 0,1; all unless given")
    parser.add_argument("--device", default="CPU", help="clinfer's device")
    parser.add_argument("--streams", type=int, default=0, help="0: AUTO, as OpenVINO chooses its own")
    parser.add_argument("--nireq", type=int, default=0, help="0: 2 x streams")
    parser.add_argument("--batch", type=int, default=0, help="0: as the model states")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="for clinfer")
    parser.add_argument("--bf16", action="store_true", help="both sides multiply in bf16")
    parser.add_argument("--latency", action="store_true", help="of one request at a time, instead of throughput")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all measurements")
    parser.add_argument("--worker", metavar="MODEL.xml", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return measure_openvino(args.worker, args.seconds, args.batch, args.latency, "bf16" if args.bf16 else "f32")
    if not args.models:
        parser.error("no models are given")
    if args.cpus:
        os.sched_setaffinity(0, {int(c) for c in args.cpus.split(",")})
    comparison, rows = Comparison(args), []
    for model in args.models:
        name = Path(model).stem
        print(name, flush=True)
        pairs = comparison.measure(model)
        ratios = [comparison.ratio(mine, theirs) for mine, theirs in pairs]
        cold, warm = comparison.load_times(model) if args.load_rounds else (None, None)
        rows.append({"model": name, "ratio": statistics.median(ratios), "ratios": ratios, "cold_s": cold, "warm_s": warm,
                     "clinfer": [mine for mine, _ in pairs], "openvino": [theirs for _, theirs in pairs]})
    cpus = sorted(os.sched_getaffinity(0))
    print(f"\nmedians of {args.rounds} rounds of {args.seconds:g} s on cores {','.join(map(str, cpus))}"
          + ("; load times until the first result" if args.load_rounds else ""))
    unit, digits = (" ms", 2) if args.latency else ("/s", 1)
    columns = ["model", "clinfer" + unit, "OpenVINO" + unit, "ratio", "lowest"] + (["cold s", "warm s"] if args.load_rounds else [])
    print("\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        mine = statistics.median(side["latency_ms"]["p50"] if args.latency else side["images_per_second"] for side in row["clinfer"])
        theirs = statistics.median(side["p50"] if args.latency else side["images_per_second"] for side in row["openvino"])
        cells = [row["model"], f"{mine:.{digits}f}", f"{theirs:.{digits}f}", f"{row['ratio']:.2f}", f"{min(row['ratios']):.2f}"]
        cells += [f"{row[key]:.2f}" for key in ("cold_s", "warm_s")] if args.load_rounds else []
        print("| " + " | ".join(cells) + " |")
    print(f"\ngeometric mean of the ratios: {statistics.geometric_mean(row['ratio'] for row in rows):.2f}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
