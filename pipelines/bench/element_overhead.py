#!/usr/bin/env python3
"""What the element adds to the engine: `clinfer` in a pipeline beside `clinfer bench --frames` with the same settings.

    element_overhead.py --build build [MODEL.xml] [--nireq 1 4] [--frames 1920x1080:NV12] [--seconds 3] [--rounds 5] [--device D]

The pipeline is one frame repeated by imagefreeze, so that the source costs next to nothing. Rounds are interleaved and alternate
which side goes first; what counts is the median of the rounds' ratios. Each round has a short and a long run of either side, and
host CPU time a frame is the difference of their CPU times by the difference of their frames, so that loading is not in it (on a CPU
device it includes the inference itself). What the element's own threads (clinfer's, and the streaming thread that gives it frames)
spend is told apart from what the device's driver does in its threads, by their names. The targets: at nireq=1 a latency of at most 2 % or 50 us more, whichever is more; at
nireq=4 at least 97 % of the throughput. Exit status 1 where one is missed. Needs Python 3.8+ and gst-launch-1.0.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


OWN_THREADS = ("clinfer", "imagefreeze")


def thread_seconds(pid):
    """CPU seconds of the element's own threads that are alive, by thread."""
    seconds = {}
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().startswith(OWN_THREADS):
                seconds[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        pass  # it has just ended
    return seconds


def run(command, environment):
    """Output of a command, the CPU seconds that it took, and those of the element's own threads. Looking at the threads takes CPU time,
    too: it is done seldom, and the same for either side, though only one has such threads."""
    own = {}
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        ended = False
        while not ended:
            own.update(thread_seconds(process.pid))
            time.sleep(0.1)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{text}")
    return text, usage.ru_utime + usage.ru_stime, sum(own.values())


def bench(arguments, environment, nireq, seconds):
    command = [f"{arguments.build}/engine/tools/clinfer", "bench", arguments.model, "--frames", arguments.frames, "--streams", str(max(nireq // 2, 1)),
               "--nireq", str(nireq), "--seconds", str(seconds), "--json"]
    if arguments.device:
        command += ["--device", arguments.device]
    text, cpu, _ = run(command, environment)
    result = json.loads(text.strip().splitlines()[-1])
    frames = int(re.search(r"^(\d+) inferences", text, re.M).group(1))
    return {"fps": result["images_per_second"], "p50": result["latency_ms"]["p50"], "frames": frames, "cpu": cpu}


def element(arguments, environment, nireq, frames):
    size, pixels = arguments.frames.split(":")
    width, height = size.split("x")
    command = ["gst-launch-1.0", "-m", "videotestsrc", "num-buffers=1", "!", f"video/x-raw,format={pixels},width={width},height={height}", "!",
               "imagefreeze", f"num-buffers={frames}", "!", "clinfer", f"model={arguments.model}", f"nireq={nireq}",
               f"throughput-streams={max(nireq // 2, 1)}"]
    if arguments.device:
        command.append(f"device={arguments.device}")
    text, cpu, own = run(command + ["!", "fakesink", "sync=false"], environment)
    line = next((line for line in text.splitlines() if "clinfer-stats" in line), None)
    if line is None:
        sys.exit(f"no statistics in:\n{text}")
    value = lambda name: float(re.search(rf"\b{name}=\([a-z0-9]+\)([0-9.e+-]+)", line).group(1))
    return {"fps": value("frames-per-second"), "p50": value("infer-p50-ms") + value("decode-p50-ms"), "frames": int(value("frames-out")), "cpu": cpu,
            "own": own}


def cpu_per_frame(short, long, what="cpu"):
    return 1e6 * (long[what] - short[what]) / max(long["frames"] - short["frames"], 1)


def compare(arguments, environment, nireq):
    rows = []
    rate = bench(arguments, environment, nireq, arguments.seconds)["fps"]
    frames = max(int(rate * arguments.seconds), 8)
    for number in range(arguments.rounds):
        sides = {}
        for side in ("bench", "element") if number % 2 == 0 else ("element", "bench"):
            if side == "bench":
                runs = [bench(arguments, environment, nireq, arguments.seconds * share) for share in (0.25, 1)]
            else:
                runs = [element(arguments, environment, nireq, max(int(frames * share), 4)) for share in (0.25, 1)]
            sides[side] = {**runs[1], "cpu_us": cpu_per_frame(*runs)}
            if side == "element":
                sides[side]["own_us"] = cpu_per_frame(*runs, "own")
        rows.append(sides)
        print(f"  {json.dumps({s: {k: round(v, 3) for k, v in r.items() if k not in ('cpu', 'own')} for s, r in sides.items()})}", flush=True)
    median = lambda pick: statistics.median(pick(row["element"], row["bench"]) for row in rows)
    latency, added_us = median(lambda e, b: e["p50"] / b["p50"]), median(lambda e, b: 1e3 * (e["p50"] - b["p50"]))
    throughput, cpu = median(lambda e, b: e["fps"] / b["fps"]), median(lambda e, b: e["cpu_us"] - b["cpu_us"])
    host, own = median(lambda e, b: e["cpu_us"]), median(lambda e, b: e["own_us"])
    share = median(lambda e, b: e["own_us"] * e["fps"] / 1e6)
    print(f"nireq={nireq}: latency {latency:.3f} of bench's ({added_us:+.0f} us), throughput {throughput:.3f} of bench's, "
          f"CPU time {host:.0f} us a frame ({cpu:+.0f} us beside bench), {own:.0f} us of it in the element's threads, which is "
          f"{100 * share:.1f} % of a core")
    return (latency <= 1.02 or added_us <= 50) if nireq == 1 else throughput >= 0.97


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(ROOT / "pipelines/models/ball.xml"))
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--nireq", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--frames", default="1920x1080:NV12")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GST_PLUGIN_PATH": f"{arguments.build}/gst", "GST_REGISTRY": f"{folder}/registry.bin"}
        met = [compare(arguments, environment, nireq) for nireq in arguments.nireq]
    print("every target met" if all(met) else "a target was missed")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
