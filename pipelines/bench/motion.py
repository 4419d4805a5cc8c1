#!/usr/bin/env python3
"""What inference-when=motion saves, what it misses, and what it costs.

    motion.py --data DATA [--only NAME] [--frames 240] [--videos 300] [--device CPU]

Generated scenes of 1280x720: a still picture of a street under noise, flicker, rain, from day to night; then with a small object that
crawls through it and with one that crosses it fast. Then videos. DATA/frames, DATA/videos and DATA/models have the pictures, the videos
and the detectors (yolox-nano, person-detection-retail-0013 ...). Each runs twice, with the network on every frame and with
inference-when=motion. Saved: the share of inferences. Recall: of the objects of at least 0.6 with inference on every frame, those that
are there with motion on the same frame, with the same label and boxes that overlap by half. Cost: the median time of looking for
changes at 1920x1080. Needs Python with numpy and Pillow, gst-launch-1.0, and GST_PLUGIN_PATH.
"""
import argparse
import json
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 1280, 720
VIDEOS = {  # video: detector and its labels
    "person-bicycle-car-detection-preview.mp4": "yolox-nano",
    "car-detection.mp4": "vehicle-detection-0200_FP16",
    "one-by-one-person-detection.mp4": "person-detection-retail-0013_FP32",
    "face-demographics-walking-and-pause-preview.mp4": "face-detection-retail-0004_FP32",
    "head-pose-face-detection-female-and-male-preview.mp4": "face-detection-retail-0004_FP32",
    "store-aisle-detection-preview.mp4": "person-detection-retail-0013_FP32",
    "classroom-preview.mp4": "person-detection-retail-0013_FP32",
    "bottle-detection.mp4": "yolox-nano",
}


class Scene:
    """Frames of a still picture with what happens in it."""

    def __init__(self, data, frames):
        self.random = np.random.default_rng(5)
        self.frames = frames
        self.street = self.read(data / "frames/street.png", WIDTH, HEIGHT)
        self.person = self.read(data / "frames/dogcrop.png", 96, 96)
        self.table = self.random.standard_normal(WIDTH * HEIGHT * 3 + 65536).astype(np.float32)

    @staticmethod
    def read(file, width, height):
        return np.asarray(Image.open(file).convert("RGB").resize((width, height)), dtype=np.float32)

    def noise(self, picture, deviation):
        start = self.random.integers(65536)
        picture += deviation * self.table[start:start + picture.size].reshape(picture.shape)

    def rain(self, picture, drops):
        for x, y, length, width in zip(self.random.integers(0, WIDTH - 8, drops), self.random.integers(0, HEIGHT - 40, drops),
                                       self.random.integers(10, 35, drops), self.random.integers(1, 3, drops)):
            for k in range(0, length, 6):
                picture[y + k:y + min(k + 6, length), x + k // 6:x + k // 6 + width] += 45

    def put(self, picture, x, y, size):
        step = self.person.shape[0] / size
        places = (np.arange(size) * step).astype(int)
        x, y = int(round(x)), int(round(y))
        picture[y:y + size, x:x + size] = self.person[places][:, places]

    def pictures(self, name):
        self.random = np.random.default_rng(5)  # equal ones in each run
        return (self.draw(name, n) for n in range(self.frames))

    def draw(self, name, n):
        picture = self.street.copy()
        if name == "small slow object":
            self.put(picture, 200 + 0.5 * n, 400, 64)
        if name == "fast object":
            self.put(picture, (9 * n) % (WIDTH - 96), 430, 96)
        if name == "flicker":
            picture *= 1 + 0.08 * np.sin(n * 1.9)
        if name == "day to night":
            picture *= 1 - 0.75 * n / self.frames
        if name in ("rain", "rain and a slow object"):
            self.rain(picture, 800)
        if name == "rain and a slow object":
            self.put(picture, 200 + 0.5 * n, 400, 64)
        self.noise(picture, {"quiet": 0, "strong noise": 12}.get(name, 4))
        return np.clip(picture, 0, 255).astype(np.uint8)

    QUIET = ("quiet", "noise", "strong noise", "flicker", "rain", "day to night")
    NAMES = QUIET + ("small slow object", "rain and a slow object", "fast object")


def run(source, detector, data, when, device, feed=None):
    """The objects of each frame, and the statistics at the end."""
    model = next((data / "models" / detector).glob("*.xml"))
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as lines, tempfile.TemporaryFile() as out:
        command = (f"gst-launch-1.0 -m {source} ! clinfer model={model} device={device} first-tier=false inference-when={when} threshold=0.5 "
                   f"! clpublish file-path={lines.name} ! fakesink sync=false").split()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT)
        if feed is not None:
            for picture in feed:
                process.stdin.write(picture.tobytes())
        process.communicate()
        out.seek(0)
        text = out.read().decode()
        if process.returncode != 0:
            raise SystemExit(text)
        frames = [json.loads(line).get("objects", []) for line in open(lines.name, encoding="utf-8")]
    stats = re.search(r"clinfer-stats, (.*)", text).group(1)
    return frames, {name: float(value) for name, value in re.findall(r"([a-z0-9-]+)=\([a-z0-9]+\)([0-9.]+)", stats)}


def overlap(a, b):
    width = min(a["x_max"], b["x_max"]) - max(a["x_min"], b["x_min"])
    height = min(a["y_max"], b["y_max"]) - max(a["y_min"], b["y_min"])
    if width <= 0 or height <= 0:
        return 0
    area = [(box["x_max"] - box["x_min"]) * (box["y_max"] - box["y_min"]) for box in (a, b)]
    return width * height / (sum(area) - width * height)


def recall(expected, found):
    objects = kept = 0
    for before, after in zip(expected, found):
        for wanted in (o["detection"] for o in before if o.get("detection", {}).get("confidence", 0) >= 0.6):
            objects += 1
            kept += any(o["detection"]["label_id"] == wanted["label_id"] and overlap(o["detection"]["bounding_box"], wanted["bounding_box"]) >= 0.5
                        for o in after if "detection" in o)
    return objects, kept


def row(name, arguments, total):
    expected, _ = run(*arguments[:3], "always", *arguments[3:4], feed=arguments[4]())
    found, stats = run(*arguments[:3], "motion", *arguments[3:4], feed=arguments[4]())
    if len(expected) != len(found):
        raise SystemExit(f"{name}: {len(expected)} and {len(found)} frames")
    objects, kept = recall(expected, found)
    saved = 1 - stats["inferred"] / stats["frames-out"]
    total.append((objects, kept))
    share = f"{kept / objects:.4f}" if objects else "-"
    print(f"| {name} | {len(found)} | {100 * saved:.1f} % | {objects} | {share} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--only", help="scenes and videos with this in their name")
    parser.add_argument("--frames", type=int, default=240, help="of a scene")
    parser.add_argument("--videos", type=int, default=300, help="frames of a video")
    parser.add_argument("--device", default="CPU")
    args = parser.parse_args()
    scene, total = Scene(args.data, args.frames), []
    raw = f"fdsrc fd=0 ! rawvideoparse format=rgb width={WIDTH} height={HEIGHT} framerate=25/1 ! videoconvert ! video/x-raw,format=NV12"
    print("| scene or video | frames | inferences saved | objects | recall |\n| --- | --- | --- | --- | --- |")
    for name in Scene.NAMES:
        if args.only is None or args.only in name:
            row(name, (raw, "yolox-nano", args.data, args.device, partial(scene.pictures, name)), total)
    for video, detector in VIDEOS.items():
        file = args.data / "videos" / video
        if (args.only is None or args.only in video) and file.exists():
            source = f"filesrc location={file} ! decodebin ! identity eos-after={args.videos + 1} ! videoconvert ! video/x-raw,format=NV12"
            row(video, (source, detector, args.data, args.device, lambda: None), total)
    objects, kept = (sum(part) for part in zip(*total))
    print(f"| all | | | {objects} | {kept / max(objects, 1):.4f} |")
    if args.only is None:
        still = ("videotestsrc pattern=smpte num-buffers=400 ! video/x-raw,format=NV12,width=1920,height=1080")
        _, stats = run(still, "yolox-nano", args.data, "motion", args.device)
        print(f"\nLooking for changes, 1920x1080: {1000 * stats['motion-p50-ms']:.0f} us (median), {1000 * stats['motion-p95-ms']:.0f} us (p95)")


if __name__ == "__main__":
    main()
