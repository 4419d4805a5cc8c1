#!/usr/bin/env python3
"""The same bits from the same frame: from run to run, on one stream of the device or several, at any place of a whole batch, and with any other
images in it. Each model plays the same frames in ways that have to give the same raw outputs, bit by bit. Another batch size may choose other kernels, whose
sums are rounded otherwise; how far they are apart is told.

    reproducible.py MODEL.xml... | FOLDER [--config KEY=VALUE,...] [--frames 8] [--only NAME]      GST_PLUGIN_PATH as in the environment

FOLDER has models/NAME/*.xml, or *.xml itself. Models that clinfer does not take pictures for are named and left out. Exit status 1 where bits differ, 77 without models.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

SOURCE = "videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,format=I420,width=160,height=120,framerate=30/1"
# By batch size: ways that give the same bits, by name, with their properties, and how many cameras share the model.
WAYS = {
    1: {"a run": ("batch-size=1", 1), "another run": ("batch-size=1", 1), "two streams": ("batch-size=1 throughput-streams=2 nireq=4", 1)},
    4: {"a run": ("batch-size=4", 1), "another camera in the batch": ("batch-size=4 model-instance-id=all", 2)},
}


def outputs(model, properties, cameras, options):
    """The tensors of each frame, or None and why."""
    words = []
    for camera in range(cameras):
        # The last batch is a partial one, which may have other kernels: four more frames are played than compared, and the other camera goes on longer.
        pattern = SOURCE.format(frames=options.frames + 4 if camera == 0 else 3 * options.frames + 12).replace("ball", "ball" if camera == 0 else "smpte")
        words += [*pattern.split(), "!", "clinfer", f"model={model}", "first-tier=false", "post-process=none", "device=CPU", *properties.split()]
        if options.config:
            words.append(f"config={options.config}")
        words += ["!", *(["clpublish", "add-tensor-data=true", "!"] if camera == 0 else []), "fakesink"]
    run = subprocess.run(["gst-launch-1.0", "-q", *words], capture_output=True, text=True, timeout=600, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or len(lines) != options.frames + 4:
        error = re.search(r"ERROR: from element \S+: (.*)", run.stderr)
        return None, error.group(1) if error else run.stderr.strip()[-200:]
    return [[(tensor["name"], tensor["data"]) for tensor in line["tensors"]] for line in lines[:options.frames]], ""


def largest_difference(a, b):
    """Of two runs' tensors, as a share of the largest value of the tensor."""
    worst = 0
    for frame, other in zip(a, b):
        for (_, x), (_, y) in zip(frame, other):
            top = max((abs(v) for v in x if v is not None), default=0) or 1
            worst = max([worst] + [abs(v - w) / top for v, w in zip(x, y) if v is not None and w is not None])
    return worst


def check(model, options):
    """The ways that give other bits than the first one of their batch size; None if the model is not one for pictures."""
    differs, told, first = [], "", {}
    for size, ways in WAYS.items():
        for way, (properties, cameras) in ways.items():
            found, why = outputs(model, properties, cameras, options)
            if found is None and not first:
                print(f"left out  {model.stem}: {why}", flush=True)
                return None
            if found is None and size not in first:
                told = f"no batch of {size}: {why}"
                break
            if found is None:
                sys.exit(f"{model.stem}: {way}: {why}")
            if first.setdefault(size, found) != found:
                differs.append(f"batch {size}, {way}: {largest_difference(first[size], found):.1e}")
    if len(first) == len(WAYS) and first[1] != first[4]:
        told = f"batches of 4 and 1 differ by {largest_difference(first[1], first[4]):.1e}"
    print(f"{'differs  ' if differs else 'ok       '} {model.stem}{': ' if differs or told else ''}{'; '.join(differs + [told] * bool(told))}", flush=True)
    return differs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--config", default="")
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    models = [model for path in options.models
              for model in (sorted([*path.glob("*.xml"), *path.glob("models/*/*.xml")]) if path.is_dir() else [path]) if options.only in str(model) and model.exists()]
    if not models:
        print("SKIPPED, there are no models")
        sys.exit(77)
    results = [check(model, options) for model in models]
    print(f"{sum(differs is not None for differs in results)} models, {sum(bool(differs) for differs in results)} with other bits")
    sys.exit(any(results))


if __name__ == "__main__":
    main()
