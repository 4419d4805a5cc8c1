#!/usr/bin/env python3
"""Live cameras on a device that is too slow for them: how evenly they are inferred, and how late their frames leave.

    live_sources.py MODEL.xml [--second MODEL.xml] [--cameras 8] [--seconds 6] [--fps 30] [--size 640x480]

Fairness: for both policies, cameras in phase and at random phases, with and without batches, and with --second as a stage on the
regions of MODEL: inferences of each camera of one model-instance-id, and the least over the most. Latency: one camera on MODEL, for
both policies: the time of each frame from the element's sink pad to its source pad (p50, p95), beside the time of an inference and of
one frame; it should stay below their sum. What counts are ratios: run it on a machine that does nothing else. Needs Python's GObject
bindings (python3-gi) and GST_PLUGIN_PATH.
"""
import argparse
import random
import statistics
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402


def stats(element, *fields):
    structure = element.get_property("stats")
    values = [structure.get_value(field) for field in fields]
    return values if len(values) > 1 else values[0]


def wait_until_compiled(pipeline, elements):
    bus = pipeline.get_bus()
    while not all(element.get_property("stats").has_field("tier") and stats(element, "tier") == "full" for element in elements):
        message = bus.timed_pop_filtered(50 * Gst.MSECOND, Gst.MessageType.ERROR)
        if message:
            raise SystemExit(message.parse_error()[0].message)


def camera(args, offset=0):
    width, height = args.size.split("x")
    return (f"videotestsrc is-live=true pattern=ball timestamp-offset={offset} "
            f"! video/x-raw,format=I420,width={width},height={height},framerate={args.fps}/1")


def fairness(args, policy, phase, batch, second):
    interval = Gst.SECOND // args.fps
    launch = ""
    for i in range(args.cameras):
        offset = random.randrange(interval) if phase == "random" else 0
        first = f"clinfer name=first{i} model={args.model} model-instance-id=first overload-policy={policy}"
        if second:  # regions that are always there
            first += f' ! clinfer name=c{i} model={args.second} model-instance-id=second regions="0,0,0.5,0.5;0.5,0.5,0.5,0.5"'
        else:
            first = first.replace(f"first{i} ", f"c{i} ", 1)
        launch += f"{camera(args, offset)} ! {first} overload-policy={policy} batch-size={batch} ! fakesink sync=false async=false "
    pipeline = Gst.parse_launch(launch)
    cameras = [pipeline.get_by_name(f"c{i}") for i in range(args.cameras)]
    pipeline.set_state(Gst.State.PLAYING)
    wait_until_compiled(pipeline, cameras)
    time.sleep(1)
    before = [stats(c, "inferred") for c in cameras]
    time.sleep(args.seconds)
    counts = [stats(c, "inferred") - b for c, b in zip(cameras, before)]
    pipeline.set_state(Gst.State.NULL)
    return counts


def latency(args, policy):
    pipeline = Gst.parse_launch(f"{camera(args)} ! clinfer name=c model={args.model} overload-policy={policy} ! fakesink sync=false async=false")
    element = pipeline.get_by_name("c")
    came, times = {}, []

    def arrives(pad, info):
        came[info.get_buffer().pts] = time.monotonic()
        return Gst.PadProbeReturn.OK

    def leaves(pad, info):
        if info.get_buffer().pts in came:
            times.append(1000 * (time.monotonic() - came[info.get_buffer().pts]))
        return Gst.PadProbeReturn.OK

    pipeline.set_state(Gst.State.PLAYING)
    wait_until_compiled(pipeline, [element])
    time.sleep(1)
    element.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, arrives)
    element.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, leaves)
    time.sleep(args.seconds)
    inference = stats(element, "infer-p50-ms")
    pipeline.set_state(Gst.State.NULL)
    cuts = statistics.quantiles(times, n=20)
    return statistics.median(times), cuts[18], inference, len(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--second")
    parser.add_argument("--cameras", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--fps", type=int, default=30)
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--only", choices=("fairness", "latency"))
    args = parser.parse_args()
    Gst.init(None)
    if args.only != "latency":
        print("| policy | phase | batch | regions | inferences of each camera | least / most |\n| --- | --- | --- | --- | --- | --- |")
        for second in (False, True) if args.second else (False,):
            for policy in ("skip-inference", "drop"):
                for phase in ("equal", "random"):
                    for batch in (1, 4):
                        counts = fairness(args, policy, phase, batch, second)
                        print(f"| {policy} | {phase} | {batch} | {'2' if second else ''} | {', '.join(map(str, counts))} | "
                              f"{min(counts) / max(max(counts), 1):.2f} |", flush=True)
    if args.only != "fairness":
        print("\n| policy | latency p50, p95 | inference p50 + a frame | frames |\n| --- | --- | --- | --- |")
        for policy in ("skip-inference", "drop"):
            p50, p95, inference, count = latency(args, policy)
            print(f"| {policy} | {p50:.1f}, {p95:.1f} ms | {inference:.1f} + {1000 / args.fps:.1f} ms | {count} |", flush=True)


if __name__ == "__main__":
    main()
