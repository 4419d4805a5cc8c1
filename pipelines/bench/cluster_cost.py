#!/usr/bin/env python3
"""Measures what Ray costs: the same recordings by pipelines/cluster/cameras.py in one actor of Ray, and by gst-launch-1.0 alone, by turns.

    cluster_cost.py [MODEL.xml] [--cameras 4] [--seconds 20] [--turns 3]

Recordings are played as fast as they go, in one process each time: under Ray the actor's, which it starts with a niceness of 0. A turn prints one
line of JSON: frames per second of all cameras, processor time (user and system) of that process for a frame, and of everything else that the way
takes: Ray's processes and cameras.py. The last line has the medians and what Ray costs. Nothing of Ray runs during a turn of gst-launch-1.0.
GST_PLUGIN_PATH as in the environment; needs `pip install ray` and python3-gst-1.0.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "pipelines/cluster"), str(ROOT / "tests/cluster")]
from group import fill  # noqa: E402
from site_of_nodes import Site, descendants, wait_until  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
LAUNCH = ("filesrc location={address} ! matroskademux ! jpegdec ! videoconvert ! clinfer model=$MODEL model-instance-id=all ! cltrack "
          "! clpublish source={camera} file-path=$LINES/{camera} ! fakesink sync=false")


def record(path, frames):
    source = f"videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,width=640,height=480,framerate=30/1 ! jpegenc ! matroskamux ! filesink"
    subprocess.run(["gst-launch-1.0", "-q", *source.split(), f"location={path}"], check=True)


def processor_seconds(pids):
    """What these processes have taken, without those that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICK


def measure(way, lines, pipeline, seconds):
    """One turn, from when all cameras have given frames. `pipeline`: the process that plays; what else this script has started is overhead."""

    def snapshot():
        others = set(descendants(os.getpid())) - {os.getpid(), *descendants(pipeline)}
        return time.monotonic(), sum(counts(lines)), processor_seconds([pipeline]), processor_seconds(others)

    before = snapshot()
    time.sleep(seconds)
    passed, frames, own, others = (after - at_first for after, at_first in zip(snapshot(), before))
    return {"way": way, "frames_per_second": frames / passed, "pipeline_ms_a_frame": 1000 * own / frames, "other_ms_a_frame": 1000 * others / frames}


def counts(lines):
    """Frames of each camera: clpublish writes a line for each."""
    return [file.read_bytes().count(b"\n") for file in lines.iterdir()]


def flow(lines, cameras):
    return sum(count > 0 for count in counts(lines)) == cameras


def by_gst_launch(cameras, lines, seconds):
    words = [word for name, address in cameras.items() for word in shlex.split(fill(LAUNCH, {"camera": name, "address": address}))]
    running = subprocess.Popen(["gst-launch-1.0", "-q", *words], stderr=subprocess.DEVNULL)
    try:
        wait_until("frames of all cameras", lambda: flow(lines, len(cameras)))
        return measure("gst-launch", lines, running.pid, seconds)
    finally:
        running.kill()
        running.wait()


def by_ray(cameras, lines, seconds):
    listed, launch = lines.parent / "cameras.txt", lines.parent / "launch"
    listed.write_text("".join(f"{name} {address}\n" for name, address in cameras.items()))
    launch.write_text(LAUNCH)
    site = Site([], {}, health=(3000, 10000, 5), cpus_of_head=os.cpu_count())  # one machine, as `ray start --head` makes it
    try:
        supervisor = site.run(ROOT / "pipelines/cluster/cameras.py", listed, launch, "--group", len(cameras), "--rebalance-after", 0,
                              stdout=subprocess.PIPE, text=True)
        try:
            text = ""
            while (found := re.search(r"cameras on \S+-(\d+)$", text, re.MULTILINE)) is None:
                line = supervisor.stdout.readline()
                if not line:
                    sys.exit("cameras.py ended: " + text)
                text += line
            wait_until("frames of all cameras", lambda: flow(lines, len(cameras)))
            return measure("ray", lines, int(found[1]), seconds)
        finally:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.communicate()
    finally:
        site.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(ROOT / "pipelines/models/ball.xml"))
    parser.add_argument("--cameras", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--frames", type=int, default=20000, help="of the recording that each camera plays, more than it plays in a turn")
    options = parser.parse_args()
    os.environ["RAY_worker_niceness"] = "0"
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record(folder / "recording.mkv", options.frames)
        cameras = {f"camera-{index}": str(folder / "recording.mkv") for index in range(options.cameras)}
        for turn in range(-1, 2 * options.turns):
            lines = folder / f"turn{turn}" / "lines"
            lines.mkdir(parents=True)
            os.environ.update(MODEL=options.model, LINES=str(lines))
            if turn < 0:
                by_gst_launch(cameras, lines, 5)  # so that all turns find the kernels in the cache
                continue
            rows.append((by_ray if turn % 2 else by_gst_launch)(cameras, lines, options.seconds))
            if any(count >= options.frames for count in counts(lines)):
                sys.exit("a recording ended within the turn: set more --frames")
            print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in rows[-1].items()}), flush=True)
    middle = {way: {name: statistics.median(row[name] for row in rows if row["way"] == way) for name in rows[0] if name != "way"}
              for way in ("gst-launch", "ray")}
    alone, ray = middle["gst-launch"], middle["ray"]
    print(json.dumps({"rate_percent": round(100 * (ray["frames_per_second"] / alone["frames_per_second"] - 1), 2),
                      "pipeline_percent": round(100 * (ray["pipeline_ms_a_frame"] / alone["pipeline_ms_a_frame"] - 1), 2),
                      "other_percent": round(100 * (ray["other_ms_a_frame"] - alone["other_ms_a_frame"]) / alone["pipeline_ms_a_frame"], 2)}))


if __name__ == "__main__":
    main()
