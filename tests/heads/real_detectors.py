#!/usr/bin/env python3
"""Real detectors, pose and segmentation networks: what the element finds on frames and videos, against a decode of OpenVINO's
outputs that is written apart from ours.

    real_detectors.py SHARED [--frames N] [NAME ...]      clinfer on GST_PLUGIN_PATH; exit status 1 where something is wrong

SHARED holds data/ (manifest.json, models/, frames/, videos/) and heads/real/. Of each source the first N frames are taken. Boxes and
scores must be within 0.01, points within 1 % of the frame, masks above 0.9 IoU.

Quantised models round each layer to levels, and what lies between two levels goes to either side: in palm-detection-int8 a rounding of
one element in 20,000 after the first layer becomes another level for half of all elements after fourteen. Their bounds are therefore
measured on each picture: how far OpenVINO's own results move when the results of its convolutions are changed by a millionth, which is
what another order of a sum does. Both of our ways to compute them, integers and floats (LP_TRANSFORMS_MODE=NO), must lie within.
OpenVINO evaluates FakeQuantize in floats, since its integers differ between processors.

Needs openvino and numpy (CLINFER_PYTHON names a Python that has them); without them it is skipped (exit status 77).
"""
import argparse
import json
import os
import subprocess
import sys

import other_python

try:
    import numpy as np
    import openvino as ov
    import openvino.opset13 as op
    import real_maps
except ImportError:
    other_python.retry("openvino and numpy")

LEAST, SLACK = .5, .01                                               # threshold; scores this near it may be on either side
TRIALS, NOISE = 12, 1e-6                                             # of quantised models
SUPPRESS = .45


# ---- frames and what the network is fed

def reader(source):
    kind = "pngdec" if source.endswith(".png") else "decodebin"
    return f"filesrc location={source} ! {kind} ! videoconvert ! video/x-raw,format=BGR"


def raw_frames(source, limit):
    """The first BGR frames of a picture or a video in one piece, their number, width and height."""
    process = subprocess.Popen(f"gst-launch-1.0 -v {reader(source)} ! fdsink fd=3 3>&1 1>&2", shell=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    data, said = process.communicate()
    caps = next(line for line in said.decode().splitlines() if "format=(string)BGR" in line)
    width, height = (int(caps.split(f"{key}=(int)")[1].split(",")[0]) for key in ("width", "height"))
    count = min(limit, len(data) // (stride_of(width) * height))
    return data[:count * stride_of(width) * height], count, width, height


def stride_of(width):
    return (width * 3 + 3) & ~3


def frames(source, limit):
    """Frames [h, w, 3] of a picture or a video."""
    data, count, width, height = raw_frames(source, limit)
    for rows in np.frombuffer(data, np.uint8).reshape(count, height, stride_of(width)):
        yield rows[:, :width * 3].reshape(height, width, 3)


def bilinear(frame, width, height):
    """OpenCV's INTER_LINEAR of 8-bit pictures: half-pixel centres, no antialiasing, weights and sums of 11 bits."""
    def places(size, wanted):
        at = np.clip((np.arange(wanted) + .5) * size / wanted - .5, 0, size - 1).astype(np.float32)
        low = np.minimum(at.astype(int), size - 1)
        share = np.rint((at - low) * 2048).astype(np.int64)
        return low, np.minimum(low + 1, size - 1), 2048 - share, share
    x0, x1, left, right = places(frame.shape[1], width)
    y0, y1, top, bottom = places(frame.shape[0], height)
    values = frame.astype(np.int64)
    rows = values[:, x0] * left[:, None] + values[:, x1] * right[:, None]
    upper, lower = ((rows[y] >> 4) * weight[:, None, None] >> 16 for y, weight in ((y0, top), (y1, bottom)))
    return (upper + lower + 2) >> 2


class Fed:
    """A frame as a network's input, and the way back from its pixels to shares of the frame."""

    def __init__(self, frame, shape, take):
        height, width = shape[2:] if shape[1] == 3 else shape[1:3]
        self.size = np.array([width, height], float)
        self.offset, inner = np.zeros(2), self.size
        if take["letterbox"] is not None:
            scale = min(width / frame.shape[1], height / frame.shape[0])
            inner = np.array([round(frame.shape[1] * scale), round(frame.shape[0] * scale)], float)
            self.offset = np.floor((self.size - inner) / 2)
        self.scale = inner
        picture = np.full((height, width, 3), take["letterbox"] or 0, np.float32)
        left, top = self.offset.astype(int)
        picture[top:top + int(inner[1]), left:left + int(inner[0])] = bilinear(frame, int(inner[0]), int(inner[1]))
        if take["color"] == "RGB":
            picture = picture[:, :, ::-1]
        picture = (picture - np.float32(take["mean"])) / np.float32(take["scale"])
        self.picture = np.ascontiguousarray((picture.transpose(2, 0, 1) if shape[1] == 3 else picture)[None], np.float32)

    def shares(self, pixels):
        """x, y pairs in pixels of the input (last axis: x, y, x, y ...) as shares of the frame."""
        return ((pixels.reshape(*pixels.shape[:-1], -1, 2) - self.offset) / self.scale).reshape(pixels.shape)


# ---- decoders: lists of (label, score, corners in pixels of the input, points or None)

def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def best(corners, scores, labels, points=None, suppress=SUPPRESS):
    kept = []
    for i in sorted(np.flatnonzero(scores >= LEAST - SLACK), key=lambda i: -scores[i]):
        if all(labels[i] != labels[j] or overlap(corners[i], corners[j]) <= suppress for j in kept):
            kept.append(i)
    return [(int(labels[i]), float(scores[i]), corners[i], None if points is None else points[i]) for i in kept]


def centred(x, y, w, h):
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def cells(size, strides, each=1):
    """Column, row and stride of each cell."""
    found = [(x, y, s) for s in strides for y in range(int(size[1]) // s) for x in range(int(size[0]) // s) for _ in range(each)]
    return np.array(found, float).T


def ssd(outputs, size):
    rows = next(iter(outputs.values())).reshape(-1, 7)
    end = int(np.argmax(rows[:, 0] < 0)) if (rows[:, 0] < 0).any() else len(rows)
    return [(int(r[1]), float(r[2]), r[3:7] * np.tile(size, 2), None) for r in rows[:end] if r[2] >= LEAST - SLACK]


def ultraface(outputs, size):
    scores, boxes = sorted((v[0] for v in outputs.values()), key=lambda v: v.shape[-1])
    return best(boxes * np.tile(size, 2), scores[:, 1], np.ones(len(boxes), int))


def yolox(outputs, size):
    rows = next(iter(outputs.values()))[0]
    x, y, s = cells(size, (8, 16, 32))
    corners = centred((rows[:, 0] + x) * s, (rows[:, 1] + y) * s, np.exp(rows[:, 2]) * s, np.exp(rows[:, 3]) * s)
    scores = rows[:, 4:5] * rows[:, 5:]
    return best(corners, scores.max(1), scores.argmax(1))


def nanodet(outputs, size):
    corners, scores = [], []
    for s in (8, 16, 32):
        n = int(size[0] // s) * int(size[1] // s)
        level = [v.reshape(n, -1) for v in outputs.values() if v.size in (n * 80, n * 32)]
        score, bins = sorted(level, key=lambda v: -v.shape[1])
        bins = np.exp(bins.reshape(n, 4, 8) - bins.reshape(n, 4, 8).max(-1, keepdims=True))
        reach = (bins / bins.sum(-1, keepdims=True) @ np.arange(8)) * s
        x, y, _ = cells(size, (s,))
        x, y = (x + .5) * s, (y + .5) * s
        corners.append(np.stack([x - reach[:, 0], y - reach[:, 1], x + reach[:, 2], y + reach[:, 3]], -1))
        scores.append(score)
    corners, scores = np.concatenate(corners), np.concatenate(scores)
    corners = np.clip(corners, 0, np.tile(size, 2))
    # One class a box, as its authors' multi-class suppression without ties would find.
    return best(corners, scores.max(1), scores.argmax(1))


def yunet(outputs, size):
    corners, scores, points = [], [], []
    for s in (8, 16, 32):
        x, y, _ = cells(size, (s,))
        cls, obj, box, marks = (outputs[f"{kind}_{s}"][0] for kind in ("cls", "obj", "bbox", "kps"))
        corners.append(centred((x + box[:, 0]) * s, (y + box[:, 1]) * s, np.exp(box[:, 2]) * s, np.exp(box[:, 3]) * s))
        scores.append(np.sqrt(np.clip(cls[:, 0], 0, 1) * np.clip(obj[:, 0], 0, 1)))
        points.append((marks.reshape(-1, 5, 2) + np.stack([x, y], -1)[:, None]) * s)
    corners, scores = np.concatenate(corners), np.concatenate(scores)
    return best(corners, scores, np.zeros(len(scores), int), np.concatenate(points).reshape(-1, 10))


def blaze(levels):
    def decode(outputs, size):
        scores, boxes = sorted((v[0] for v in outputs.values()), key=lambda v: v.shape[-1])
        grid = np.concatenate([cells(size, (s,), each) for s, each in levels], 1)
        middle = ((grid[:2] + .5) * grid[2]).T
        scores = 1 / (1 + np.exp(-np.clip(scores[:, 0], -80, 80)))
        points = (boxes[:, 4:].reshape(len(boxes), -1, 2) + middle[:, None]).reshape(len(boxes), -1)
        x, y = (boxes[:, :2] + middle).T
        return best(centred(x, y, boxes[:, 2], boxes[:, 3]), scores, np.zeros(len(scores), int), points)
    return decode


def scrfd(outputs, size):
    corners, scores, points = [], [], []
    for s in (8, 16, 32):
        x, y, _ = cells(size, (s,), 2)
        n, middle = len(x), np.stack([x, y], -1) * s
        score, box, marks = (next(v.reshape(n, -1) for v in outputs.values() if v.size == n * v.shape[-1] and v.shape[-1] == width)
                             for width in (1, 4, 10))
        corners.append(np.concatenate([middle - box[:, :2] * s, middle + box[:, 2:] * s], 1))
        scores.append(score[:, 0])
        points.append((marks.reshape(n, 5, 2) * s + middle[:, None]).reshape(n, 10))
    corners, scores = np.concatenate(corners), np.concatenate(scores)
    return best(corners, scores, np.zeros(len(scores), int), np.concatenate(points))


def yolo_pose(outputs, size):
    rows = next(iter(outputs.values()))[0].T
    corners = centred(*rows[:, :4].T)
    points = rows[:, 5:].reshape(len(rows), 17, 3)[:, :, :2].reshape(len(rows), 34)
    return best(corners, rows[:, 4], np.zeros(len(rows), int), points, suppress=.7)


FACES, PEOPLE, CARS = ("faces", "faces2"), ("people", "ped", "aisle"), ("cars", "street", "drive")
FACE_VIDEO, PEOPLE_VIDEO, CAR_VIDEO = ("face-demographics-walking-and-pause-preview.mp4", "one-by-one-person-detection.mp4",
                                       "car-detection.mp4")
TRAFFIC = "person-bicycle-car-detection-preview.mp4"
SHORT = ((8, 2), (16, 6))
# Model: decoder, frames, video, what to tell the element beside colours, padding of a letterbox or None.
MODELS = {
    "face-detection-adas-0001_FP16": (ssd, FACES, FACE_VIDEO), "face-detection-adas-0001_FP16-INT8": (ssd, FACES, FACE_VIDEO),
    "face-detection-retail-0004_FP32": (ssd, FACES, FACE_VIDEO), "face-detection-retail-0004_FP16-INT8": (ssd, FACES, FACE_VIDEO),
    "pedestrian-and-vehicle-detector-adas-0001_FP16": (ssd, ("street", "ped"), CAR_VIDEO),
    "person-detection-retail-0013_FP32": (ssd, PEOPLE, PEOPLE_VIDEO),
    "person-vehicle-bike-detection-2000_FP16": (ssd, ("people", "cars"), TRAFFIC),
    "person-vehicle-bike-detection-2000_FP16-INT8": (ssd, ("people", "cars"), TRAFFIC),
    "person-vehicle-bike-detection-crossroad-0078_FP16-INT8": (ssd, ("ped", "cars"), None),
    "vehicle-detection-0200_FP16": (ssd, CARS, CAR_VIDEO),
    "vehicle-license-plate-detection-barrier-0106_INT8": (ssd, ("vlp", "cars"), CAR_VIDEO),
    "ultraface-RFB-320": (ultraface, FACES, FACE_VIDEO), "ultraface-RFB-320_INT8-nncf": (ultraface, FACES, FACE_VIDEO),
    "yolox-nano": (yolox, ("dog", "people", "cars"), TRAFFIC),
    "nanodet-m-416": (nanodet, ("dog", "people", "cars"), TRAFFIC), "nanodet-m-416_INT8-nncf": (nanodet, ("dog", "people"), TRAFFIC),
    "yunet-n-640": (yunet, FACES, FACE_VIDEO),
    "blazeface-front": (blaze(SHORT), FACES, FACE_VIDEO, 0), "blazepose-detector": (blaze(SHORT), ("people", "personA"), PEOPLE_VIDEO, 0),
    "palm-detection-int8": (blaze(((8, 2), (16, 2), (32, 6))), ("asl", "aslbook"), "asl-again.mkv", 0),
    "scrfd500m": (scrfd, FACES, FACE_VIDEO),
    "yolov8n-pose_int8_openvino_model": (yolo_pose, ("people", "ped"), PEOPLE_VIDEO, 114),
}
STATED = {                                                           # real models that the manifest does not list
    "scrfd500m": {"color": "RGB", "mean": 127.5, "scale": 128},
    "yolov8n-pose_int8_openvino_model": {"color": "RGB", "mean": 0, "scale": 255},
}


# ---- the element

FLOATS = ",LP_TRANSFORMS_MODE=NO"


def element(source, path, take, limit, more="", mode=FLOATS):
    """The lines of JSON for the first frames of a source."""
    def numbers(value):
        return ",".join(map(str, value if isinstance(value, list) else [value]))
    resize = "resize-mode=stretch" if take["letterbox"] is None else ""  # else as the family is known to take pictures
    data, wanted, width, height = raw_frames(source, limit)
    # Not `identity eos-after`: it lets frames pass that a decoder with threads has in hand when it ends.
    command = (f"gst-launch-1.0 -q fdsrc ! rawvideoparse format=bgr width={width} height={height} ! clinfer model={path} threshold={LEAST - SLACK} "
               f"config=INFERENCE_PRECISION=f32{mode} color-format={take['color'].lower()} mean={numbers(take['mean'])} "
               f"scale={numbers(take['scale'])} {resize} {more} ! clpublish ! fakesink")
    done = subprocess.run(command, shell=True, input=data, capture_output=True, timeout=900)
    out = done.stdout.decode().splitlines()
    lines, others = [json.loads(line) for line in out if line.startswith("{")], [line for line in out if not line.startswith("{")]
    if done.returncode != 0 or len(lines) != wanted:
        numbered = [line.get("frame") for line in lines]
        raise ValueError(f"{len(lines)} lines came out for {wanted} frames, {numbered}, exit status {done.returncode}, beside them "
                         f"{others[:3]}: {done.stderr.decode()[-400:]}")
    return lines


# ---- comparing

def corners_of(found):
    box = found["detection"]["bounding_box"]
    return np.array([box[key] for key in ("x_min", "y_min", "x_max", "y_max")])


def nearest(label, corners, found):
    alike = [o for o in found if o["detection"]["label_id"] == label]
    return min(alike, key=lambda o: abs(corners_of(o) - corners).max(), default=None)


class Seen:
    """An object in OpenVINO's results, and how far it moves between the trials."""

    def __init__(self, item, others, fed):
        self.label, self.score, corners, self.points = item
        self.corners = np.clip(fed.shares(np.asarray(corners, float)), 0, 1)
        scores, boxes, self.sure = [self.score], [self.corners], self.score >= LEAST + SLACK
        for trial in others:
            alike = [(other[1], np.clip(fed.shares(np.asarray(other[2], float)), 0, 1)) for other in trial if other[0] == self.label]
            score, box = min(alike, key=lambda other: abs(other[1] - self.corners).max(), default=(0, None))
            if box is None or abs(box - self.corners).max() > .1:
                self.sure = False
                continue
            scores, boxes = scores + [score], boxes + [box]
        self.score_slack = SLACK + max(scores) - min(scores)
        self.box_slack = .01 + (np.max(boxes, 0) - np.min(boxes, 0)).max()
        self.sure = self.sure and min(scores) - self.score_slack >= LEAST - SLACK


class Worst:
    """What is farthest from OpenVINO's, in excess of the bounds."""

    def __init__(self):
        self.objects, self.unsure, self.box, self.score, self.point, self.moved = 0, 0, 0.0, 0.0, 0.0, 0.0

    def note(self, trials, fed, found):
        """What is wrong in a frame, or ''."""
        left = [o for o in found if "detection" in o]
        for item in trials[0]:
            seen = Seen(item, trials[1:], fed)
            self.moved = max(self.moved, seen.score_slack - SLACK)
            if (o := nearest(seen.label, seen.corners, left)) is None or abs(corners_of(o) - seen.corners).max() > seen.box_slack:
                if not seen.sure:
                    self.unsure += 1
                    continue
                return f"class {seen.label} {seen.score:.3f} at {np.round(seen.corners, 3).tolist()} is not there; {len(left)} are left"
            left.remove(o)
            self.objects += 1
            self.box = max(self.box, abs(corners_of(o) - seen.corners).max() - seen.box_slack + .01)
            self.score = max(self.score, abs(o["detection"]["confidence"] - seen.score) - seen.score_slack + SLACK)
            if seen.points is not None:
                mine = o.get("keypoints") or o.get("landmarks") or []
                points = fed.shares(np.asarray(seen.points, float)).reshape(-1, 2)
                if len(mine) != len(points):
                    return f"{len(mine)} points, right are {len(points)}"
                far = max(max(abs(p["x"] - x), abs(p["y"] - y)) for p, (x, y) in zip(mine, points))
                self.point = max(self.point, far - seen.box_slack + .01)
        for o in left:
            # Another trial may have it, or one of a score as unsure as those seen.
            item = o["detection"]["label_id"], o["detection"]["confidence"], corners_of(o)
            known = any(other[0] == item[0] and overlap(np.clip(fed.shares(np.asarray(other[2], float)), 0, 1), item[2]) > .5
                        for trial in trials[1:] for other in trial)
            if not known and item[1] >= LEAST + SLACK + self.moved:
                return f"too many: {o['detection']}"
            self.unsure += 1
        return ""

    def verdict(self):
        text = f"{self.objects} objects, boxes within {self.box:.4f}, scores {self.score:.4f}, points {self.point:.4f}"
        if self.moved > 1e-4:
            text += f" beyond what OpenVINO's move (scores by up to {self.moved:.3f}); {self.unsure} on the border"
        near = max(self.box, self.point) <= .01 and self.score <= SLACK
        return ("ok: " if self.objects and near else "FAR: ") + text


def place(shared, name):
    if name in STATED:
        folder = f"{shared}/heads/real/{name}"
        return next(f"{folder}/{f}" for f in sorted(os.listdir(folder)) if f.endswith(".xml"))
    return f"{shared}/data/models/{name}/{name}.xml"


def compiled(path, seed=None):
    """A network of OpenVINO in floats; seed: the results of its convolutions change by NOISE."""
    core = ov.Core()
    model = core.read_model(path)
    if seed is not None:
        rng = np.random.default_rng(seed)
        for node in model.get_ordered_ops():
            if node.get_type_name() not in ("Convolution", "GroupConvolution"):
                continue
            users = node.output(0).get_target_inputs()
            factors = (1 + NOISE * rng.uniform(-1, 1, (1, node.get_output_partial_shape(0)[1].get_length(), 1, 1))).astype(np.float32)
            # In f32: halves, which OpenVINO computes as f32, would round the factors to 1.
            changed = op.convert(op.multiply(op.convert(node, np.float32), op.constant(factors)), node.get_output_element_type(0).to_dtype())
            for user in users:
                user.replace_source_output(changed.output(0))
    return core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO"})


def outputs_of(network, picture):
    results = network([picture])
    return {max(port.get_names(), default=str(i)): results[port] for i, port in enumerate(network.outputs)}  # cls_8, not 330


def preprocessing(shared, name):
    with open(f"{shared}/data/manifest.json", encoding="utf-8") as file:
        known = {m["name"]: m["preprocess"] for m in json.load(file)["models"]}
    return {**(STATED.get(name) or known[name]), "letterbox": (*MODELS.get(name, ()), None)[3] if len(MODELS.get(name, ())) > 3 else None}


def sources(shared, stills, video, limit):
    return [(f"{shared}/data/frames/{still}.png", 1) for still in stills] + ([(f"{shared}/data/videos/{video}", limit)] if video else [])


def detector(shared, name, limit):
    decode, stills, video = MODELS[name][:3]
    quantised = "int8" in name.lower()
    take, path = preprocessing(shared, name), place(shared, name)
    networks = [compiled(path)] + [compiled(path, seed) for seed in range(TRIALS if quantised else 0)]
    modes = {"floats": FLOATS, "integers": ""} if quantised else {"floats": FLOATS}
    worst = {mode: Worst() for mode in modes}
    for source, count in sources(shared, stills, video, limit):
        lines = {mode: element(source, path, take, count, mode=config) for mode, config in modes.items()}
        for number, frame in enumerate(frames(source, count)):
            fed = Fed(frame, list(networks[0].inputs[0].shape), take)
            trials = [decode(outputs_of(network, fed.picture), fed.size) for network in networks]
            for mode in modes:
                if why := worst[mode].note(trials, fed, lines[mode][number].get("objects", [])):
                    return f"FAIL: {mode}, {os.path.basename(source)}, frame {number}: {why}"
    verdicts = [worst[mode].verdict() for mode in modes]
    if not quantised:
        return verdicts[0]
    far = any(verdict.startswith("FAR") for verdict in verdicts)
    return ("FAR: " if far else "ok: ") + "; ".join(f"{mode}: {verdict.split(': ', 1)[1]}" for mode, verdict in zip(modes, verdicts))


def segmentation(shared, name, limit):
    take, network, least, classes = preprocessing(shared, name), compiled(place(shared, name)), 1.0, 0
    for source, count in sources(shared, ("people", "dog", "bottle"), "bottle-detection.mp4", min(limit, 5)):
        lines = element(source, place(shared, name), take, count, "post-process=segmentation")
        for number, frame in enumerate(frames(source, count)):
            height, width = frame.shape[:2]
            fed = Fed(frame, list(network.inputs[0].shape), take)
            scores = next(iter(outputs_of(network, fed.picture).values()))[0]
            best_class = scores.argmax(-1)
            y = np.minimum(((np.arange(height) + .5) * best_class.shape[0] / height).astype(int), best_class.shape[0] - 1)
            x = np.minimum(((np.arange(width) + .5) * best_class.shape[1] / width).astype(int), best_class.shape[1] - 1)
            right = best_class[np.ix_(y, x)]
            maps = lines[number]["segmentation"]
            mine = {c["label_id"]: c for c in (maps[0] if isinstance(maps, list) else maps)["classes"]}
            for label in np.unique(right):
                theirs = (right == label).T.ravel()
                if theirs.mean() < .01:
                    continue
                ours = np.zeros(theirs.size, bool)
                if label in mine:
                    ours[real_maps.ones(mine[label]["counts"])] = True
                least, classes = min(least, (ours & theirs).sum() / (ours | theirs).sum()), classes + 1
    return f"{'ok' if least > .9 and classes else 'FAR'}: {classes} masks of classes, IoU at least {least:.4f}"


def pose(shared, name, limit):
    """Every point of each whole person that the paper's grouping finds must be there."""
    take, network, seen, near = preprocessing(shared, name), compiled(place(shared, name)), 0, []
    for source, count in sources(shared, ("ped", "people"), PEOPLE_VIDEO, min(limit, 3)):
        lines = element(source, place(shared, name), take, count, "threshold=0.01")
        for number, frame in enumerate(frames(source, count)):
            fed = Fed(frame, list(network.inputs[0].shape), take)
            fields, heat = sorted((v[0] for v in outputs_of(network, fed.picture).values()), key=lambda v: -len(v))
            whole = [person for person in real_maps.persons(fields, heat) if len(person) >= 8]
            got = [[(k["x"], k["y"]) for k in o["keypoints"]] for o in lines[number].get("objects", []) if o.get("keypoints")]
            if len(got) < len(whole):
                return f"FAIL: {os.path.basename(source)}, frame {number}: {len(got)} persons, right are {len(whole)}"
            seen += len(whole)
            # Ours lie between the cells of heat maps, theirs on them: half a cell is apart at most.
            cell = .5 / np.array([heat.shape[2], heat.shape[1]])
            near += [min(max(abs(p[k][0] - x) - cell[0], abs(p[k][1] - y) - cell[1]) for p in got) < .01 for person in whole for k, (x, y) in person.items()]
    share = float(np.mean(near)) if near else 0
    return f"{'ok' if seen and share > .97 else 'FAR'}: {seen} whole persons, {share:.3f} of their {len(near)} points within 1 % and half a cell"


OTHERS = {"deeplabv3-mnv2-257": segmentation, "human-pose-estimation-0001_FP16-INT8": pose}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared")
    parser.add_argument("--frames", type=int, default=30)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    if not os.path.exists(f"{arguments.shared}/data/manifest.json"):
        print("skipped: the folder of models is not here")
        return 77
    wrong = 0
    for name in arguments.names or [*MODELS, *OTHERS]:
        try:
            result = OTHERS.get(name, detector)(arguments.shared, name, arguments.frames)
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            result = f"FAIL: {error!r}"
        wrong += not result.startswith("ok")
        print(f"{name}: {result}", flush=True)
    print(f"{len(arguments.names or [*MODELS, *OTHERS]) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
