#!/usr/bin/env python3
"""Compares the tracker of cltrack with trackers from PyPI on the same generated boxes, by IDF1 and MOTA.

Usage: tracking.py BUILD/tests/gst/track_boxes [--seeds 1,2,3] [--frames 1500]
Needs: pip install motmetrics 'supervision<0.27' norfair trackers

People walk through a scene with pillars, turn, stop, and hide each other. A simulated detector misses some, moves their corners, gives
low confidences to those half hidden, and sees some that are not there. Truth counts a person of whom 30 % can be seen.
"""
import argparse
import contextlib
import io
import math
import subprocess
import sys
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")

SCENES = {  # frames a second, objects, speed in heights a second, pillars
    "street": (30, 12, 0.8, 2),
    "crowd": (30, 30, 0.6, 3),
    "running": (15, 20, 2.0, 2),
    "5 frames/s": (5, 12, 0.8, 2),
}
WIDTH, HEIGHT = 1920, 1080
LOST_SECONDS = 2  # of all trackers; their other settings are their defaults


def generate(scene, frames, seed):
    """Returns (truth, boxes): for each frame a list of (id, left, top, width, height) and one of (left, top, width, height, score)."""
    fps, count, speed, pillar_count = SCENES[scene]
    random = np.random.default_rng(seed)
    pillars = [(x, 0, 90, HEIGHT) for x in random.uniform(200, WIDTH - 300, pillar_count)]
    people, next_id = [], 1
    truth, found = [], []
    for _ in range(frames):
        while len(people) < count:
            left = random.random() < 0.5
            y = random.uniform(300, HEIGHT - 20)  # of the feet
            people.append({"id": next_id, "x": -20.0 if left else WIDTH + 20.0, "y": y, "way": 0.0 if left else math.pi,
                           "speed": speed * random.uniform(0.6, 1.4), "pause": 0})
            next_id += 1
        for p in people:
            height = 60 + 200 * p["y"] / HEIGHT
            if p["pause"] > 0:
                p["pause"] -= 1
            else:
                p["way"] += random.normal(0, 0.6) / math.sqrt(fps)
                p["way"] += 0.5 / fps * math.sin((0 if math.cos(p["way"]) > 0 else math.pi) - p["way"])
                if random.random() < 0.05 / fps:
                    p["pause"] = int(fps * random.uniform(0.5, 2))
                p["x"] += math.cos(p["way"]) * p["speed"] * height / fps
                p["y"] = min(max(p["y"] + 0.4 * math.sin(p["way"]) * p["speed"] * height / fps, 250), HEIGHT - 5)
            p["box"] = (p["x"] - 0.2 * height, p["y"] - height, 0.4 * height, height)
        people = [p for p in people if -100 < p["x"] < WIDTH + 100]
        cells = np.zeros((HEIGHT // 4, WIDTH // 4), bool)  # covered by what is nearer
        visible = {}
        for p in sorted(people, key=lambda p: -p["y"]):
            left, top, width, height = p["box"]
            rows = slice(max(int(top) // 4, 0), max(int(top + height) // 4, 0))
            columns = slice(max(int(left) // 4, 0), max(int(left + width) // 4, 0))
            area = max(width * height / 16, 1)
            free = ~cells[rows, columns]
            for x, _, w, _ in pillars:
                free[:, max(int(x) // 4 - columns.start, 0):max(int(x + w) // 4 - columns.start, 0)] = False
            visible[p["id"]] = min(free.sum() / area, 1)
            cells[rows, columns] = True
        truth.append([(p["id"], *p["box"]) for p in people if visible[p["id"]] >= 0.3])
        seen = []
        for p in people:
            share = visible[p["id"]]
            if share < 0.3 or random.random() < 0.03:
                continue
            left, top, width, height = p["box"]
            noise = random.normal(0, 0.03 + 0.05 * (1 - share), 4)
            score = float(np.clip(random.normal(0.35 + 0.5 * share, 0.08), 0.1, 0.99))
            seen.append((left + noise[0] * width, top + noise[1] * height, width * (1 + noise[2]), height * (1 + noise[3]), score))
        for _ in range(random.poisson(0.15)):
            height = random.uniform(60, 260)
            seen.append((random.uniform(0, WIDTH), random.uniform(0, HEIGHT - height), 0.4 * height, height,
                         float(random.uniform(0.1, 0.65))))
        found.append(seen)
    return truth, found


def ours(program, fps, found, interval=1, options=()):
    lines = "".join(f"{i + 1},-1,{x:.3f},{y:.3f},{w:.3f},{h:.3f},{s:.4f}\n" for i, boxes in enumerate(found) for x, y, w, h, s in boxes)
    run = subprocess.run([program, str(fps), str(interval), *options], input=lines, capture_output=True, text=True, check=True)
    tracks = [[] for _ in found]
    for line in run.stdout.splitlines():
        frame, track, x, y, w, h = line.split(",")[:6]
        tracks[int(frame) - 1].append((int(track), float(x), float(y), float(w), float(h)))
    return tracks, float(run.stderr.split()[-2])


def supervision_tracker(fps, found):
    import supervision
    tracker = supervision.ByteTrack(frame_rate=fps, lost_track_buffer=30 * LOST_SECONDS)
    return with_detections(found, lambda d: tracker.update_with_detections(d), supervision)


def trackers_tracker(name):
    def run(fps, found):
        import supervision
        import trackers
        tracker = getattr(trackers, name)(frame_rate=fps, lost_track_buffer=30 * LOST_SECONDS)
        return with_detections(found, lambda d: tracker.update(d), supervision)
    return run


def with_detections(found, update, supervision):
    tracks = []
    for boxes in found:
        array = np.array(boxes, float).reshape(-1, 5)
        corners = np.stack([array[:, 0], array[:, 1], array[:, 0] + array[:, 2], array[:, 1] + array[:, 3]], 1)
        result = update(supervision.Detections(xyxy=corners, confidence=array[:, 4], class_id=np.zeros(len(array), int)))
        ids = result.tracker_id if result.tracker_id is not None else []
        tracks.append([(int(i), b[0], b[1], b[2] - b[0], b[3] - b[1]) for i, b in zip(ids, result.xyxy) if i >= 0])
    return tracks


def norfair_tracker(fps, found):
    import norfair
    tracker = norfair.Tracker(distance_function="iou", distance_threshold=0.8, hit_counter_max=LOST_SECONDS * fps, initialization_delay=1)
    tracks = []
    for boxes in found:
        result = tracker.update([norfair.Detection(np.array([[x, y], [x + w, y + h]]), np.array([s, s]))
                                 for x, y, w, h, s in boxes if s >= 0.5])
        tracks.append([(t.id, *t.estimate[0], *(t.estimate[1] - t.estimate[0])) for t in result if t.live_points.any()])
    return tracks


def distances(wanted, got):
    """1 - IoU of all pairs; NaN where less than half is shared."""
    a, b = np.array(wanted, float).reshape(-1, 1, 4), np.array(got, float).reshape(1, -1, 4)
    sides = np.minimum(a[..., :2] + a[..., 2:], b[..., :2] + b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = np.prod(np.maximum(sides, 0), axis=-1)
    iou = shared / (np.prod(a[..., 2:], axis=-1) + np.prod(b[..., 2:], axis=-1) - shared)
    return np.where(iou >= 0.5, 1 - iou, np.nan)


def measure(truth, tracks):
    import motmetrics
    accumulator = motmetrics.MOTAccumulator(auto_id=True)
    for wanted, got in zip(truth, tracks):
        accumulator.update([w[0] for w in wanted], [g[0] for g in got], distances([w[1:] for w in wanted], [g[1:] for g in got]))
    return motmetrics.metrics.create().compute(accumulator, metrics=["idf1", "mota", "num_switches"]).iloc[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--frames", type=int, default=1500)
    parser.add_argument("--peers", default="supervision ByteTrack,trackers ByteTrack,trackers SORT,norfair")
    options = parser.parse_args()
    peers = {"supervision ByteTrack": supervision_tracker, "trackers ByteTrack": trackers_tracker("ByteTrackTracker"),
             "trackers SORT": trackers_tracker("SORTTracker"), "norfair": norfair_tracker}
    print("| scene | tracker | IDF1 | MOTA | switches | frames/s |\n| --- | --- | --- | --- | --- | --- |")
    behind = []
    for scene, (fps, *_) in SCENES.items():
        sums = {}
        for seed in (int(s) for s in options.seeds.split(",")):
            truth, found = generate(scene, options.frames, seed)
            for name, interval in (("cltrack", 1), ("cltrack, every 3rd frame inferred", 3)):
                tracks, speed = ours(options.program, fps, found, interval)
                sums.setdefault(name, []).append((*measure(truth, tracks), speed))
            for name in (n for n in options.peers.split(",") if n):
                begin = time.monotonic()
                with contextlib.redirect_stdout(io.StringIO()):
                    tracks = peers[name](fps, found)
                sums.setdefault(name, []).append((*measure(truth, tracks), len(found) / (time.monotonic() - begin)))
        means = {name: np.mean(rows, axis=0) for name, rows in sums.items()}
        for name, (idf1, mota, switches, speed) in means.items():
            print(f"| {scene} | {name} | {idf1:.3f} | {mota:.3f} | {switches:.0f} | {speed:,.0f} |", flush=True)
        behind += [f"{scene}: {name}" for name, row in means.items() if not name.startswith("cltrack")
                   and (row[0] > means["cltrack"][0] or row[1] > means["cltrack"][1])]
    if behind:
        sys.exit("better than cltrack in IDF1 or MOTA: " + "; ".join(behind))


if __name__ == "__main__":
    main()
