#!/usr/bin/env python3
"""Live cameras that come and go on one device: target-latency against fixed settings.

    targets.py MODEL.xml [--target 200] [--cameras 1,2,4,8,12] [--step 30] [--intervals 1,2,4,8] [--batches 1] [--streams 1] [--device CPU]
               [--allow-precision bf16]

As many live cameras as --cameras says play one after the other, and back to the first number, --step seconds each. They share a model. This is done
with target-latency, with each fixed setting of a grid (inference-interval, batch-size and throughput-streams, overload-policy=skip-inference), and with
target-latency again, because the load of the machine may change meanwhile. The latency of a frame
is the time from the element's sink pad to its source pad; what counts are frames that were inferred. Printed: the share of seconds in which 95 % of
them were within the target, without the first 10 s of each step; frames inferred in all; how often the target's limit changed; the streams and the precision
that it had at the end, and what it tried; the mean load of the machine. The last line has the frames inferred under the target (mean of both runs) over those of the
best fixed setting that is within the target in 99 % of the seconds. Run it on a machine that does nothing else. Needs Python's GObject bindings (python3-gi) and GST_PLUGIN_PATH.
"""
import argparse
import itertools
import math
import os
import statistics
import threading
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

SETTLING = 10  # seconds


class Camera:
    """A live source, a network, and what became of its frames."""

    def __init__(self, args, number, settings):
        width, height = args.size.split("x")
        self.pipeline = Gst.parse_launch(
            f"videotestsrc is-live=true pattern=ball timestamp-offset={number * 7919 % 33 * Gst.MSECOND} "
            f"! video/x-raw,format=I420,width={width},height={height},framerate={args.fps}/1 ! queue max-size-buffers=4 "
            f"! clinfer name=net model={args.model} model-instance-id=targets device={args.device} first-tier=false {settings} "
            "! fakesink sync=false async=false")
        self.net = self.pipeline.get_by_name("net")
        self.came, self.latencies, self.lock = {}, [], threading.Lock()
        self.net.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.arrives)
        self.net.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.leaves)
        self.pipeline.set_state(Gst.State.PLAYING)

    def arrives(self, pad, info):
        self.came[info.get_buffer().pts] = time.monotonic()
        return Gst.PadProbeReturn.OK

    def leaves(self, pad, info):
        buffer = info.get_buffer()
        came = self.came.pop(buffer.pts, None)
        meta = buffer.get_custom_meta("ClinferResult")
        if came is not None and meta is not None and ")run" in meta.get_structure().to_string().replace('"', ""):
            now = time.monotonic()
            with self.lock:
                self.latencies.append((now, 1000 * (now - came)))
        return Gst.PadProbeReturn.OK

    def take(self):
        with self.lock:
            taken, self.latencies = self.latencies, []
        return taken

    def stats(self, field):
        structure = self.net.get_property("stats")
        return structure.get_value(field) if structure.has_field(field) else None

    def check(self):
        message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        if message:
            raise SystemExit(message.parse_error()[0].message)

    def stop(self):
        self.pipeline.set_state(Gst.State.NULL)


def ramp(args, settings):
    """Returns latencies by second, what was chosen at the end, and the mean load."""
    counts = args.cameras + args.cameras[-2::-1]
    cameras = [Camera(args, 0, settings)]
    while cameras[0].stats("tier") != "full":
        cameras[0].check()
        time.sleep(0.1)
    cameras[0].take()
    begun, seconds, loads = time.monotonic(), {}, []

    def collect(camera):
        for at, latency in camera.take():
            seconds.setdefault(int(at - begun), []).append(latency)

    for step, count in enumerate(counts):
        while len(cameras) < count:
            cameras.append(Camera(args, len(cameras), settings))
        while len(cameras) > count:
            collect(cameras[-1])
            cameras.pop().stop()
        end = begun + (step + 1) * args.step
        while time.monotonic() < end:
            time.sleep(min(1, max(end - time.monotonic(), 0.01)))
            loads.append(os.getloadavg()[0])
            for camera in cameras:
                camera.check()
                collect(camera)
    chosen = {field: cameras[0].stats(field) for field in ("target-changes", "target-tried", "streams", "precision")}
    for camera in cameras:
        camera.stop()
    return seconds, chosen, statistics.mean(loads)


def percentile(values, share):
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def judge(args, seconds):
    """The share of seconds within the target, and the frames inferred."""
    settled = [values for second, values in seconds.items() if second % args.step >= SETTLING]
    good = sum(percentile(values, 0.95) <= args.target for values in settled)
    return good / max(len(settled), 1), sum(map(len, seconds.values()))


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--target", type=int, default=200, help="milliseconds")
    parser.add_argument("--cameras", type=numbers, default=[1, 2, 4, 8, 12])
    parser.add_argument("--step", type=int, default=30, help="seconds")
    parser.add_argument("--intervals", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--batches", type=numbers, default=[1])
    parser.add_argument("--streams", type=numbers, default=[1])
    parser.add_argument("--allow-precision", default="")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--fps", type=int, default=30)
    parser.add_argument("--size", default="640x480")
    args = parser.parse_args()
    if args.step <= SETTLING:
        parser.error(f"--step must be above {SETTLING}")
    Gst.init(None)
    print("| settings | seconds within | frames inferred | changes | streams, precision | tried | load |\n" + "| --- " * 7 + "|", flush=True)

    def row(name, settings):
        seconds, chosen, load = ramp(args, settings)
        within, inferred = judge(args, seconds)
        changes, tried, streams, precision = (chosen[field] for field in ("target-changes", "target-tried", "streams", "precision"))
        print(f"| {name} | {100 * within:.1f} % | {inferred} | {'' if changes is None else changes} | {streams}, {precision} | {tried or ''} | "
              f"{load:.1f} |", flush=True)
        return within, inferred

    target = f"target-latency={args.target} batch-size={max(args.batches)}"
    target += f" allow-precision={args.allow_precision}" if args.allow_precision else ""
    under_target = [row(target, target)[1]]
    best = None
    for interval, batch, streams in itertools.product(args.intervals, args.batches, args.streams):
        settings = f"inference-interval={interval} batch-size={batch} throughput-streams={streams}"
        within, inferred = row(settings, f"overload-policy=skip-inference {settings}")
        if within >= 0.99 and (best is None or inferred > best):
            best = inferred
    under_target.append(row(target, target)[1])
    mean = statistics.mean(under_target)
    print("\nover the best fixed setting: " + (f"{mean / best:.3f}" if best else "none is within the target"))


if __name__ == "__main__":
    main()
