#!/usr/bin/env python3
"""Real models of points, maps, texts and vectors through the element, against a decode of OpenVINO's reference outputs
that is written apart from ours.

    real_maps.py SHARED [NAME ...]      clinfer on GST_PLUGIN_PATH, gst-launch-1.0; exit status 1 where something is wrong. Needs numpy

SHARED holds models/, ref/, frames/ and labels/ under data/.
"""
import json
import os
import subprocess
import sys

import other_python

try:
    import numpy as np
except ImportError:
    other_python.retry("numpy")


def load(shared, model, frame, output):
    path = f"{shared}/data/ref/{model}/{frame}.out{output}"
    try:
        return np.load(path + ".fq32.npy")
    except FileNotFoundError:
        return np.load(path + ".npy")


def run(shared, model, frame, properties=""):
    """The line of JSON for one frame."""
    command = (f"gst-launch-1.0 -q filesrc location={shared}/data/frames/{frame}.png ! pngdec ! videoconvert ! video/x-raw,format=BGR ! "
               f"clinfer model={shared}/data/models/{model}/{model}.xml config=INFERENCE_PRECISION=f32,LP_TRANSFORMS_MODE=NO {properties} ! "
               "clpublish ! fakesink")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=900)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{model}: nothing came out: {done.stderr[-500:]}")
    return json.loads(lines[0])


def persons(paf, heat):
    """OpenPose's grouping, as its paper has it: peaks, line integrals, greedy links, bone after bone."""
    limbs = [(1, 2, 12), (1, 5, 20), (2, 3, 14), (3, 4, 16), (5, 6, 22), (6, 7, 24), (1, 8, 0), (8, 9, 2), (9, 10, 4), (1, 11, 6),
             (11, 12, 8), (12, 13, 10), (1, 0, 28), (0, 14, 30), (14, 16, 34), (0, 15, 32), (15, 17, 36)]
    height, width = heat.shape[1:]
    peaks = []
    for k in range(18):
        padded = np.pad(heat[k], 1)
        middle = padded[1:-1, 1:-1]
        top = ((middle > padded[1:-1, :-2]) & (middle >= padded[1:-1, 2:]) & (middle > padded[:-2, 1:-1]) &
               (middle >= padded[2:, 1:-1]) & (middle > .1))
        peaks.append([(x, y, middle[y, x]) for y, x in zip(*np.nonzero(top))])
    found = []
    for a, b, field in limbs:
        scored = []
        for i, (ax, ay, _) in enumerate(peaks[a]):
            for j, (bx, by, _) in enumerate(peaks[b]):
                line = np.array([bx - ax, by - ay], float)
                length = np.hypot(*line)
                if length == 0:
                    continue
                steps = np.linspace(0, 1, 10)
                xs, ys = np.rint(ax + steps * line[0]).astype(int), np.rint(ay + steps * line[1]).astype(int)
                dots = (paf[field, ys, xs] * line[0] + paf[field + 1, ys, xs] * line[1]) / length
                good = dots > .05
                if good.mean() < .8:
                    continue
                score = dots[good].mean() + min(.5 * height / length - 1, 0)
                if score > 0:
                    scored.append((score, i, j))
        used_a, used_b = set(), set()
        for score, i, j in sorted(scored, reverse=True):
            if i in used_a or j in used_b:
                continue
            used_a.add(i)
            used_b.add(j)
            starts, ends = [p for p in found if p.get(a) == i], [p for p in found if p.get(b) == j]
            if not starts and not ends:
                found.append({a: i, b: j})
            elif starts and ends and starts[0] is not ends[0]:
                if not starts[0].keys() & ends[0].keys():
                    starts[0].update(ends[0])
                    found.remove(ends[0])
            else:
                owner = (starts or ends)[0]
                if owner.get(a, i) == i and owner.get(b, j) == j:
                    owner[a], owner[b] = i, j
    return [{k: ((peaks[k][i][0] + .5) / width, (peaks[k][i][1] + .5) / height) for k, i in p.items()} for p in found if len(p) >= 3]


def pose(shared):
    model = "human-pose-estimation-0001_FP16-INT8"
    right = persons(load(shared, model, "ped", 0)[0], load(shared, model, "ped", 1)[0])
    got = [o for o in run(shared, model, "ped", "threshold=0.01").get("objects", []) if o.get("keypoints")]
    # Ours lie between cells, and fragments of hidden persons are tied otherwise: each point of a whole person must be there.
    whole = [person for person in right if len(person) >= 8]
    points_of = [[(k["x"], k["y"]) for k in o["keypoints"]] for o in got]
    near = [min(max(abs(p[k][0] - x), abs(p[k][1] - y)) for p in points_of) < .02 for person in whole for k, (x, y) in person.items()]
    if not len(whole) <= len(got) <= len(right) + 1 or np.mean(near) < .97:
        return f"{len(got)} persons, right are {len(whole)} whole ones of {len(right)}; {np.mean(near):.3f} of their points are there"
    return f"ok: {len(got)} persons, {len(whole)} whole ones of {len(right)} are right, {np.mean(near):.3f} of {len(near)} points within 2 %"


def ones(counts):
    at, value, found = 0, 0, []
    for n in counts:
        if value:
            found += range(at, at + n)
        at, value = at + n, 1 - value
    return found


def segmentation(shared):
    model = "deeplabv3-mnv2-257"
    right = load(shared, model, "people", 0)[0].argmax(-1)
    line = run(shared, model, "people", "color-format=rgb mean=127.5 scale=127.5 post-process=segmentation")
    maps = line.get("segmentation")
    if not maps:
        return f"no segmentation in {list(line)}"
    classes = (maps[0] if isinstance(maps, list) else maps)["classes"]
    text = []
    for c in classes:
        share = (right == c["label_id"]).mean()
        text.append(f"class {c['label_id']} {c['share']:.4f} (right {share:.4f})")
        if abs(c["share"] - share) > .005:
            return "; ".join(text)
    missing = {int(c) for c in np.unique(right)} - {c["label_id"] for c in classes}
    return f"missing {missing}" if missing else "ok: " + "; ".join(text)


def points(shared, model, frames, size, properties, output=0, stride=2):
    worst = 0
    for frame in frames:
        right = load(shared, model, frame, output).reshape(-1, stride)[:, :2] / size
        objects = run(shared, model, frame, properties).get("objects", [])
        found = [o for o in objects if o.get("landmarks")]
        if len(found) != 1 or len(found[0]["landmarks"]) != len(right):
            return f"{frame}: {len(found)} objects with landmarks"
        worst = max(worst, max(max(abs(p["x"] - x), abs(p["y"] - y)) for p, (x, y) in zip(found[0]["landmarks"], right)))
    return f"points up to {worst:.4f} off" if worst > .01 else f"ok: {len(right)} points within {worst:.5f}"


def plates(shared):
    model = "license-plate-recognition-barrier-0001_FP16"
    names = open(f"{shared}/data/labels/lpr.txt", encoding="utf-8").read().split("\n")
    text = []
    for frame in ("plate1", "plate2"):
        right = "".join(names[int(i)] for i in load(shared, model, frame, 0).ravel() if i >= 0)
        line = run(shared, model, frame, f"labels-file={shared}/data/labels/lpr.txt")
        got = json.dumps(line, ensure_ascii=False)
        if f'"label": "{right}"' not in got:
            return f"{frame}: {right} is right, got {got[:300]}"
        text.append(right)
    return "ok: " + " ".join(text)


def texts(shared):
    """Regions of text: components of the map, their bounding boxes grown by area over perimeter."""
    model = "ppocr-v3-det"
    probability = load(shared, model, "sticker", 0)[0, 0]
    height, width = probability.shape
    open_cells, right = probability > .3, []
    while open_cells.any():
        y, x = map(int, np.argwhere(open_cells)[0])
        ahead, cells = [(y, x)], []
        open_cells[y, x] = False
        while ahead:
            y, x = ahead.pop()
            cells.append((y, x))
            for v in range(max(y - 1, 0), min(y + 2, height)):
                for u in range(max(x - 1, 0), min(x + 2, width)):
                    if open_cells[v, u]:
                        open_cells[v, u] = False
                        ahead.append((v, u))
        cells = np.array(cells)
        (y0, x0), (y1, x1) = cells.min(0), cells.max(0) + 1
        score = probability[cells[:, 0], cells[:, 1]].mean()
        if min(y1 - y0, x1 - x0) >= 3 and score >= .5:
            right.append(((x0 + x1) / 2 / width, (y0 + y1) / 2 / height, score))
    got = [o for o in run(shared, model, "sticker").get("objects", []) if "detection" in o]
    if len(got) != len(right):
        return f"{len(got)} regions, right are {len(right)}"
    for x, y, score in right:
        def apart(o):
            b = o["detection"]["bounding_box"]
            return abs((b["x_min"] + b["x_max"]) / 2 - x) + abs((b["y_min"] + b["y_max"]) / 2 - y)
        best = min(got, key=apart)
        if apart(best) > .02 or abs(best["detection"]["confidence"] - score) > .01 or "oriented_box" not in best["detection"]:
            return f"region at {x:.3f}, {y:.3f}, score {score:.3f}: {best['detection']}"
    return f"ok: {len(got)} regions"


def embedding(shared):
    model = "osnet-x0_25-msmt17"
    properties = "color-format=rgb mean=123.675,116.28,103.53 scale=58.395,57.12,57.375"
    least = 1
    for frame in ("personA", "personB"):
        right = load(shared, model, frame, 0).ravel()
        line = run(shared, model, frame, properties)
        values = find(line, "embedding")
        if values is None:
            return f"no embedding in {json.dumps(line)[:300]}"
        values = np.array(values.get("values", values.get("data")) if isinstance(values, dict) else values)
        least = min(least, float(right @ values / np.linalg.norm(right) / np.linalg.norm(values)))
    return f"cosine {least:.5f}" if least < .999 else f"ok: cosine {least:.6f}"


def find(value, key):
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None


CASES = {
    "pose": pose, "segmentation": segmentation, "plates": plates, "texts": texts, "embedding": embedding,
    "landmarks": lambda shared: points(shared, "landmarks-regression-retail-0009_FP32", ("faceA", "faceB"), 1, ""),
    "facemesh": lambda shared: points(shared, "facemesh-468", ("faceA", "faceB"), 192,
                                      "threshold=0 color-format=rgb mean=127.5 scale=127.5", stride=3),
}

if __name__ == "__main__":
    if not os.path.exists(f"{sys.argv[1]}/data/ref"):
        print("skipped: the folder of models is not here")
        sys.exit(77)
    wrong = 0
    for name in sys.argv[2:] or CASES:
        result = CASES[name](sys.argv[1])
        wrong += not result.startswith("ok")
        print(f"{name}: {result}", flush=True)
    sys.exit(wrong > 0)
