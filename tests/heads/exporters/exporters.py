#!/usr/bin/env python3
"""Tiny models with the files that exporters leave beside them, and what the element makes of them.

    exporters.py [--keep DIR] [NAME ...]      the plug-in is found by the environment (GST_PLUGIN_PATH)

The next report about an exporter becomes a function under @case in one of the files beside this one. It writes a folder by that
exporter's own rules and returns what is right, computed here by those rules and not by clinfer's. Needs numpy and onnx
(CLINFER_PYTHON names a Python that has them); without them it is skipped (exit status 77). Ends with `N right, N wrong`.

Most models answer with what they were fed at five places. The picture's red says the column, its green the row, and its blue is the
same everywhere, so that these numbers tell part, order, range and padding.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from cases import CASES, Folder, picture, write_png
import numpy as np

# Each registers its cases.
import hugging_face, toolkits, open_sizes, names, without_files  # noqa: E401, F401


def run(folder, wanted):
    path = os.path.join(folder, "picture.png")
    write_png(path, picture())
    model = os.path.join(folder, wanted["model"]) if wanted["model"] else folder
    command = ["gst-launch-1.0", "filesrc", f"location={path}", "!", "pngdec", "!", "videoconvert", "!", "video/x-raw,format=RGB", "!", *wanted.get("before", "identity").split(), "!", "clinfer", f"model={model}", "device=CPU", "attach-tensors=true",
               *wanted.get("properties", "").split(), "!", "clpublish", f"file-path={path}.json", "add-tensor-data=true", "!", "fakesink"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = []
    if os.path.exists(f"{path}.json"):
        with open(f"{path}.json", encoding="utf-8") as file:  # on stdout gst-launch's messages would come between parts of a long line
            lines = file.read().splitlines()
    told = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    return (json.loads(lines[0]) if lines else None), told


def every(value, key):
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from every(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from every(inner, key)


def compare(folder, wanted):
    """What is wrong, or ''."""
    line, told = run(folder, wanted)
    if line is None:
        return f"no line: {[line for line in told if 'ERROR' in line] or told[-3:]}"
    data = [np.array(d, float).ravel() for d in every(line, "data") if isinstance(d, list)]
    if "fed" in wanted:
        found = [d for d in data if d.size == wanted["fed"].size]
        if not found:
            return f"no tensor of {wanted['fed'].size} numbers"
        far = np.abs(found[0] - wanted["fed"])
        limit = wanted.get("tolerance", .02) * max(1, float(np.ptp(wanted["fed"])))
        if far.max() > limit:
            return f"fed {np.round(found[0][far > limit][:6], 3)}, right is {np.round(wanted['fed'][far > limit][:6], 3)}"
    if "elements" in wanted and not any(d.size == wanted["elements"] for d in data):
        return f"tensors of {[d.size for d in data]} numbers, right are {wanted['elements']}"
    if "said" in wanted and not any(wanted["said"] in line for line in told):
        return f"{wanted['said']!r} was not said"
    if "shares" in wanted:
        parts = {part["label_id"]: part["share"] for part in (line.get("segmentation") or {}).get("classes", [])}
        if any(abs(parts.get(k, 0) - share) > .02 for k, share in enumerate(wanted["shares"])):
            return f"classes cover {parts}, right is {wanted['shares']}"
    if "label" in wanted:
        labels = [answer["label"] for item in line["objects"] for answer in item.values() if isinstance(answer, dict) and "label" in answer]
        if not labels or not labels[0].startswith(wanted["label"]):
            return f"class {labels[:1]}, right is {wanted['label']!r}"
    if "points" in wanted:
        found = [[point["x"], point["y"]] for item in line["objects"] for point in item.get("landmarks") or item.get("keypoints") or []]
        if np.shape(found) != wanted["points"].shape or np.abs(found - wanted["points"]).max() > .01:
            return f"{len(found)} points {found[:2]}, right are {wanted['points'][:2]}"
    if "label_id" in wanted and wanted["label_id"] not in [answer["label_id"] for item in line["objects"] for answer in item.values() if isinstance(answer, dict) and "label_id" in answer]:
        return f"the objects are {line['objects']}, right is class {wanted['label_id']}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="a folder to leave the cases in")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    right = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.names or CASES:
            folder = os.path.join(arguments.keep or temporary, name)
            os.makedirs(folder, exist_ok=True)
            why = compare(folder, CASES[name](Folder(folder)))
            right, wrong = right + (not why), wrong + bool(why)
            print(f"FAIL {name}: {why}" if why else f"ok   {name}", flush=True)
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
