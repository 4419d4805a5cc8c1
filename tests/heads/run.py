#!/usr/bin/env python3
"""Runs models with known objects in their outputs through the element, and compares what clpublish writes.

    run.py [--seeds N,N | --written DIR] [--config KEY=VALUE] [--onnx] [FAMILY ...]    the plug-in is found by the environment (GST_PLUGIN_PATH)

families.py writes the models, or has written them to DIR (for machines without numpy: INFERENCE_PRECISION=f16 on a GPU); it needs
numpy. Without it the test is skipped (exit status 77), unless CLINFER_PYTHON names a
Python that has it. --onnx makes ONNX files of them (as_onnx.py), which needs openvino and onnx. Ends with `N right, N wrong`.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(model, truth, config):
    width, height = truth["frame"]
    caps = f"video/x-raw,format=BGR,width={width},height={height}"
    command = ["gst-launch-1.0", "-q", "videotestsrc", "pattern=black", "num-buffers=1", "!", caps, "!", "clinfer",
               f"model={model}", *truth["properties"].split(), *config, "!", "clpublish", "!", "fakesink"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise ValueError((result.stderr.strip().splitlines() or ["no line came out"])[-1])
    return json.loads(lines[0])


def box_of(item):
    box = item["detection"]["bounding_box"]
    return [box[key] for key in ("x_min", "y_min", "x_max", "y_max")]


def farthest(ours, right):
    return max(abs(a - b) for a, b in zip(ours, right))


def pixels_of(mask):
    """The places (column by column) that a mask in run lengths covers."""
    at, covered = 0, set()
    for i, length in enumerate(mask["counts"]):
        if i % 2:
            covered.update(range(at, at + length))
        at += length
    if at != mask["size"][0] * mask["size"][1]:
        raise ValueError("the run lengths do not add up to the frame")
    return covered


def mask_overlap(mask, rectangle, width, height):
    covered, (x0, y0, x1, y1) = pixels_of(mask), rectangle
    inside = {x * height + y for x in range(width) for y in range(height)
              if x0 <= (x + .5) / width <= x1 and y0 <= (y + .5) / height <= y1}
    return len(covered & inside) / max(len(covered | inside), 1)


def compare_turned(box, right, frame):
    """What is wrong with the corners of a turned box, in any order, or ''."""
    if box is None:
        return "no turned box"
    w, h, c, s = box["width"] / 2, box["height"] / 2, math.cos(box["rotation"]), math.sin(box["rotation"])
    ours = [((box["x_center"] + a * w * c - b * h * s) / frame[0], (box["y_center"] + a * w * s + b * h * c) / frame[1]) for a in (-1, 1) for b in (-1, 1)]
    far = max(min(math.dist(corner, other) for other in ours) for corner in right)
    return f"turned box: a corner is {far:.3f} away" if far > .02 else ""


def compare_others(line, truth):
    """What is wrong with maps, texts, vectors and classes of the whole frame, or ''."""
    answers = [(key, value) for item in line["objects"] if "detection" not in item for key, value in item.items() if isinstance(value, dict)]
    width, height = truth["frame"]
    for x, y, label in truth.get("classes_at", []):
        found = [part["label_id"] for part in line.get("segmentation", {}).get("classes", [])
                 if int(x * width) * height + int(y * height) in pixels_of({"counts": part["counts"], "size": [height, width]})]
        if found != [label]:
            return f"class {found} at {x:.2f} {y:.2f}, right is {label}"
    if "map" in truth:
        right = truth["map"]
        ours = next((m for m in line.get("maps", []) if m["kind"] == right["kind"]), None)
        if ours is None or any(abs(ours[k] - right[k]) > .01 * max(abs(right[k]), 1) for k in ("minimum", "maximum")):
            return f"map {ours}, right is {right}"
    if "text" in truth:
        texts = [value["label"] for key, value in answers if key == "text"]
        if texts != [truth["text"]]:
            return f"text {texts}, right is {truth['text']}"
    if "embedding" in truth:
        vectors = [value["data"] for key, value in answers if key.startswith("embedding")]
        if not any(len(vector) == len(truth["embedding"]) and farthest(vector, truth["embedding"]) <= .01 for vector in vectors):
            return f"{len(vectors)} vectors, or other numbers"
    for name, (label, confidence) in truth.get("attributes", {}).items():
        ours = dict(answers).get(name)
        if ours is None or ours["label_id"] != label or abs(ours["confidence"] - confidence) > .01:
            return f"{name}: {ours}, right is {label} at {confidence}"
    named = {value.get("label") for _, value in answers}
    missing, too_many = set(truth.get("labels_named", [])) - named, set(truth.get("labels_absent", [])) & named
    return f"labels {sorted(map(str, named))}, right are {truth['labels_named']}" if missing or too_many else ""


def compare_object(ours, right, frame):
    """What is wrong with an object, or ''."""
    if farthest(box_of(ours), right["box"]) > .01:
        return f"box {[round(v, 3) for v in box_of(ours)]}, right is {[round(v, 3) for v in right['box']]}"
    if ours["detection"].get("label_id") != right["label_id"]:
        return f"label_id {ours['detection'].get('label_id')}, right is {right['label_id']}"
    if "label" in right and ours["detection"].get("label") != right["label"]:
        return f"label {ours['detection'].get('label')}, right is {right['label']}"
    if abs(ours["detection"]["confidence"] - right["confidence"]) > .01:
        return f"confidence {ours['detection']['confidence']}, right is {right['confidence']:.3f}"
    for kind in ("keypoints", "landmarks"):
        points = ours.get(kind, [])
        if len(points) != len(right.get(kind, [])):
            return f"{len(points)} {kind}, right are {len(right.get(kind, []))}"
        for point, (x, y, *confidence) in zip(points, right.get(kind, [])):
            if abs(point["x"] - x) > .01 or abs(point["y"] - y) > .01:
                return f"{kind}: {point}, right is {x:.3f} {y:.3f}"
            if confidence and abs(point["confidence"] - confidence[0]) > .01:
                return f"{kind}: confidence {point['confidence']}, right is {confidence[0]:.3f}"
    if "corners" in right and (why := compare_turned(ours["detection"].get("oriented_box"), right["corners"], frame)):
        return why
    if ("mask" in right) != ("mask" in ours):
        return "no mask" if "mask" in right else "a mask where there is none"
    if "mask" in right:
        overlap = mask_overlap(ours["mask"], right["mask"], *frame)
        if overlap < .85:
            return f"mask: intersection over union {overlap:.2f}"
    return ""


def compare(line, truth):
    """What is wrong with a line, or ''."""
    ours = [item for item in line.get("objects", []) if "detection" in item]
    if len(ours) != len(truth["objects"]):
        return f"{len(ours)} objects, right are {len(truth['objects'])}: {[o['detection'] for o in ours][:2]}"
    for right in truth["objects"]:
        nearest = min(ours, key=lambda item: farthest(box_of(item), right["box"]))
        ours.remove(nearest)
        if why := compare_object(nearest, right, truth["frame"]):
            return why
    for right in truth.get("labels", []):
        answers = [value for item in line["objects"] if "detection" not in item for value in item.values()
                   if isinstance(value, dict) and "label_id" in value]
        best = max(answers, key=lambda answer: answer["confidence"], default=None)
        if best is None or best["label_id"] != right["label_id"] or abs(best["confidence"] - right["confidence"]) > .01:
            return f"class {best}, right is {right}"
    return compare_others(line, truth)


def python_with_numpy():
    """CLINFER_PYTHON, else this Python, else the system's, for which pipelines/install installs numpy; None without."""
    for python in (os.environ.get("CLINFER_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL,
                                                                check=False).returncode == 0:
            return python
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--written", help="a folder that families.py has written")
    parser.add_argument("--config", default="")
    parser.add_argument("--onnx", action="store_true", help="compare the models as ONNX files")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    python = python_with_numpy()
    if not arguments.written and python is None:
        print("skipped: needs numpy (CLINFER_PYTHON names a Python that has it)")
        return 77
    config = [f"config={arguments.config}"] if arguments.config else []
    right = wrong = 0

    def compare_all(folder, names, said):
        nonlocal right, wrong
        for name in names:
            with open(f"{folder}/{name}/truth.json", encoding="utf-8") as file:
                truth = json.load(file)
            try:
                model = f"{folder}/{name}/{name}.{'onnx' if arguments.onnx else 'xml'}"
                why = compare(run(model, truth, config), truth)
            except (ValueError, subprocess.TimeoutExpired) as error:
                why = str(error)
            right, wrong = right + (not why), wrong + bool(why)
            print((f"FAIL {name} ({said}): {why}" if why else f"ok   {name}"), flush=True)

    if arguments.written:
        compare_all(arguments.written, arguments.families or sorted(os.listdir(arguments.written)), arguments.written)
    for seed in [] if arguments.written else arguments.seeds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, f"{HERE}/families.py", "--seed", seed, "--out", folder, *arguments.families], check=True)
            if arguments.onnx:
                subprocess.run([python, f"{HERE}/as_onnx.py", folder], check=True)
            compare_all(folder, sorted(os.listdir(folder)), f"seed {seed}")
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
