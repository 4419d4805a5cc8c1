#!/usr/bin/env python3
"""The tracer clinferlatency: a gst-launch-1.0 line logs each frame with the times of its stages.

    tracer.py MODEL.xml      GST_PLUGIN_PATH as in the environment
"""
import os
import re
import subprocess
import sys

FRAMES = 12


def log(model, elements="", tracers="clinferlatency"):
    environment = dict(os.environ, GST_DEBUG="GST_TRACER:7", GST_DEBUG_NO_COLOR="1", GST_TRACERS=tracers)
    line = ["gst-launch-1.0", "-q", "videotestsrc", "pattern=ball", f"num-buffers={FRAMES}", "!", "video/x-raw,width=320,height=240,framerate=30/1", "!",
            "clinfer", f"model={model}", "name=eye", "config=FIRST_TIER=NO", *elements.split(), "!", "fakesink"]
    run = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0:
        sys.exit(f"FAIL {' '.join(line)}: {run.stderr}")
    return run.stderr


def records(text):
    """The fields of each record, as numbers where they are."""
    found = []
    for line in re.findall(r"(?<!string: )clinfer-inference, (.*)", text):
        fields = dict(re.findall(r"(\w+)=\([\w-]+\)([^,;]*)", line))
        found.append({key: int(value) if value.isdigit() else value.strip('"') for key, value in fields.items()})
    return found


def expect(what, true):
    if not true:
        sys.exit(f"FAIL {what}")
    print(f"ok   {what}")


def main():
    model = sys.argv[1]
    text = log(model)
    expect("the record is described once", text.count("clinfer-inference.class") == 1)
    frames = records(text)
    expect(f"{len(frames)} frames are logged", len(frames) == FRAMES)
    for frame in frames:
        expect(frame, frame["element"] == "eye" and frame["model"] == "ball" and frame["outcome"] == "run" and frame["inferences"] == 1)
        expect("its times add up", 0 < frame["infer"] and frame["queue"] + frame["infer"] + frame["decode"] <= frame["latency"] + 1000)
    expect("frames are in order", [frame["pts"] for frame in frames] == sorted(frame["pts"] for frame in frames))
    outcomes = [frame["outcome"] for frame in records(log(model, "inference-interval=3"))]
    expect(f"skipped frames are, too: {outcomes}", outcomes == ["run", "skipped", "skipped"] * (FRAMES // 3))
    expect("without the tracer nothing is logged", not records(log(model, tracers="")))


if __name__ == "__main__":
    main()
