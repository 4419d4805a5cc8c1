#!/usr/bin/env python3
"""Compare the element's detections on videos, through a real gst-launch line, with OpenVINO's on the same frames.

    detections.py --shared DIR [--objects N] [--only TEXT] [--device D] [--cache-dir DIR] [--config KEY=VALUE,...]

For each model and video: every object of confidence >= 0.5 of either side has one of the other's of >= 0.4 with the same
label and IoU >= 0.85; the median difference of their scores is under 0.01 and none is above 0.1.
The plug-in is found by the environment (GST_PLUGIN_PATH). Ends with `N passed, N failed, N skipped`.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# model, video, properties beyond the model's own information
PAIRS = [
    ("face-detection-retail-0004_FP32", "head-pose-face-detection-female-and-male-preview.mp4", []),
    ("ultraface-RFB-320", "face-demographics-walking-and-pause-preview.mp4", ["color-format=rgb", "mean=127", "scale=128"]),
    ("vehicle-detection-0200_FP16", "car-detection.mp4", []),
    ("person-detection-retail-0013_FP32", "one-by-one-person-detection.mp4", []),
    ("yolox-nano", "person-bicycle-car-detection-preview.mp4", ["resize-mode=stretch"]),  # as the stored objects were made
]


def objects_of(entry):
    """[(label, confidence, box)] of a line of either kind."""
    found = []
    for item in entry["objects"]:
        detection = item.get("detection", item)
        box = detection["bounding_box"]
        found.append((detection["label_id"], detection["confidence"], [box[k] for k in ("x_min", "y_min", "x_max", "y_max")]))
    return found


def iou(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])
    return width * height / (area(a) + area(b) - width * height)


def clipped(box):
    return [min(max(v, 0.0), 1.0) for v in box]


def compare(ours, theirs, differences):
    """Objects of `ours` without a partner in `theirs`; appends the differences of scores."""
    lonely = []
    for label, confidence, box in ours:
        if confidence < 0.5:
            continue
        partners = [(iou(clipped(box), clipped(b)), c) for l, c, b in theirs if l == label and c >= 0.4]
        overlap, score = max(partners, default=(0.0, 0.0))
        if overlap < 0.85:
            lonely.append(f"label {label} confidence {confidence:.3f} box {[round(v, 3) for v in box]}, best IoU {overlap:.3f}")
        else:
            differences.append(abs(score - confidence))
    return lonely


def run(model, video, properties, arguments):
    """Why the pair fails, or None."""
    reference = f"{arguments.shared}/data/detections/{model}__{os.path.splitext(video)[0]}.jsonl"
    with open(reference, encoding="utf-8") as file:
        expected = [objects_of(json.loads(line)) for line in file]
    if arguments.objects:
        shown = [n for n, objects in enumerate(expected) if any(c >= 0.5 for _, c, _ in objects)]
        expected = expected[:shown[:arguments.objects][-1] + 1]
    frames = len(expected)  # the reference may end before the video
    with tempfile.TemporaryDirectory() as folder:
        lines = f"{folder}/lines.jsonl"
        command = ["gst-launch-1.0", "-q", "filesrc", f"location={arguments.shared}/data/videos/{video}", "!", "decodebin", "!"]
        command += ["identity", f"eos-after={frames + 1}", "!"]
        if arguments.format:
            command += ["videoconvert", "!", f"video/x-raw,format={arguments.format}", "!"]
        command += ["clinfer", f"model={arguments.shared}/data/models/{model}/{model}.xml", "threshold=0.3", "iou-threshold=0.45",
                    "color-arithmetic=videoconvert", *properties]  # the references' frames were converted by it
        for name, value in (("device", arguments.device), ("cache-dir", arguments.cache_dir), ("config", arguments.config)):
            if value is not None:
                command.append(f"{name}={value}")
        command += ["!", "clpublish", f"file-path={lines}", "!", "fakesink", "sync=false"]
        print("$ " + " ".join(command), flush=True)
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        except subprocess.TimeoutExpired:
            return f"no end within {arguments.timeout} s"
        if result.returncode != 0 or "ERROR" in result.stderr:
            return "gst-launch failed: " + (result.stderr.strip().splitlines() or ["nothing on stderr"])[0]
        with open(lines, encoding="utf-8") as file:
            got = [objects_of(json.loads(line)) for line in file]
    got = got[:frames]  # decoders give what they still hold when told to end
    if len(got) != len(expected):
        return f"{len(got)} lines for {len(expected)} frames"
    differences, lonely, count = [], [], 0
    for number, (ours, theirs) in enumerate(zip(got, expected)):
        count += sum(c >= 0.5 for _, c, _ in theirs)
        lonely += [f"frame {number}: ours alone: {text}" for text in compare(ours, theirs, differences)]
        lonely += [f"frame {number}: missed: {text}" for text in compare(theirs, ours, differences)]
    median, worst = (statistics.median(differences), max(differences)) if differences else (0, 0)
    print(f"  {len(got)} frames, {count} objects expected, {len(lonely)} without partner, score differences: median {median:.5f}, worst {worst:.5f}")
    if not differences:
        return "nothing was found"
    if lonely:
        return f"{len(lonely)} objects without a partner, first: {lonely[0]}"
    if median >= 0.01 or worst > 0.1:
        return f"scores differ by {median:.4f} in the median, {worst:.4f} at most"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", required=True, help="folder that holds data/")
    parser.add_argument("--objects", type=int, default=0, help="end each video at its Nth frame with objects (0: whole videos)")
    parser.add_argument("--only", default="", help="part of the models' names")
    parser.add_argument("--format", default="", help="convert to this format first")
    parser.add_argument("--device")
    parser.add_argument("--cache-dir")
    parser.add_argument("--config")
    parser.add_argument("--timeout", type=int, default=900)
    arguments = parser.parse_args()
    passed = failed = skipped = 0
    for model, video, properties in PAIRS:
        if arguments.only not in model:
            continue
        if not os.path.exists(f"{arguments.shared}/data/models/{model}/{model}.xml"):
            print(f"skip {model}: not in {arguments.shared}/data")
            skipped += 1
            continue
        reason = run(model, video, properties, arguments)
        print(("ok   " if reason is None else "FAIL ") + model + (f": {reason}" if reason else ""), flush=True)
        passed, failed = passed + (reason is None), failed + (reason is not None)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
