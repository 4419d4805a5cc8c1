#!/usr/bin/env python3
"""Writes models of many families whose outputs are constants that encode known objects.

    families.py --seed N --out DIR [FAMILY ...]      needs numpy

Each family has a folder DIR/NAME with NAME.xml and .bin, the files that exporters leave beside it, and truth.json: {"frame": [w, h],
"properties": what clinfer is to be told, "objects": [{"label_id", "label", "confidence", "box": shares of the frame, "keypoints", "landmarks",
"mask", "corners" of a turned box}], "labels": [...]}, and for maps, text, vectors and several classes "classes_at", "map", "text",
"embedding", "attributes", "labels_named" and "labels_absent". Boxes are encoded by the formulas that each family's authors publish, written apart from the decoders.
"""
import argparse
import json
import math

import numpy as np

from families_forms import form_families
from families_more import more_families
from families_tasks import task_families
from ir import write_constants

F = np.float32
FRAMES = ((640, 360), (480, 640), (332, 218), (320, 320), (800, 600))


def logit(p):
    return math.log(p / (1 - p))


class Scene:
    """A frame, how it lies in a network's input of `width` x `height`, and the objects in it."""

    def __init__(self, rng, size, fit, classes, first=0, most=4, least=.16, count=None, points=0):
        self.rng = rng
        self.width, self.height = size
        self.frame = FRAMES[rng.integers(len(FRAMES))]
        scale_x, scale_y, self.dx, self.dy = self.width, self.height, 0.0, 0.0
        if fit in ("letterbox", "corner"):
            s = min(self.width / self.frame[0], self.height / self.frame[1])
            scale_x, scale_y = round(self.frame[0] * s), round(self.frame[1] * s)
            if fit == "letterbox":
                self.dx, self.dy = (self.width - scale_x) / 2, (self.height - scale_y) / 2
        self.scale = (scale_x, scale_y)
        self.boxes = []                                              # x, y, w, h in shares, label, score
        wanted = count or rng.integers(1, most + 1)
        while len(self.boxes) < wanted:
            w, h = rng.uniform(least, .34, 2)
            x, y = rng.uniform(w / 2 + .02, .98 - w / 2), rng.uniform(h / 2 + .02, .98 - h / 2)
            if all(abs(x - b[0]) > (w + b[2]) / 2 + .02 or abs(y - b[1]) > (h + b[3]) / 2 + .02 for b in self.boxes):
                self.boxes.append((x, y, w, h, int(rng.integers(first, classes)), float(rng.uniform(.62, .96))))
        self.boxes.sort(key=lambda b: -b[5])
        self.points = [[(b[0] + b[2] * rng.uniform(-.45, .45), b[1] + b[3] * rng.uniform(-.45, .45)) for _ in range(points)] for b in self.boxes]

    def at(self, x, y):
        return x * self.scale[0] + self.dx, y * self.scale[1] + self.dy

    def corners(self, b):
        return (*self.at(b[0] - b[2] / 2, b[1] - b[3] / 2), *self.at(b[0] + b[2] / 2, b[1] + b[3] / 2))

    def centers(self, b):
        return (*self.at(b[0], b[1]), b[2] * self.scale[0], b[3] * self.scale[1])

    def truth(self, **more):
        objects = [{"label_id": b[4], "confidence": b[5], "box": [b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2]} for b in self.boxes]
        for key, values in more.items():
            for item, value in zip(objects, values):
                item[key] = value
        return objects


class Writer:
    def __init__(self, out, name):
        self.folder, self.name = f"{out}/{name}", name

    def __call__(self, scene, shape, outputs, objects, dtype=F, inputs=(), info=None, files=None, properties="", labels=None, input_name="images", truth_more=None):
        write_constants(self.folder, self.name, (input_name, shape, dtype), outputs, inputs, info)
        for file, text in (files or {}).items():
            with open(f"{self.folder}/{file}", "w", encoding="utf-8") as handle:
                handle.write(text)
        truth = {"frame": [int(v) for v in scene.frame], "properties": properties.format(folder=self.folder), "objects": objects, **(truth_more or {})}
        if labels:
            truth["labels"] = labels
        with open(f"{self.folder}/truth.json", "w", encoding="utf-8") as handle:
            json.dump(truth, handle, indent=1)


def square(rng):
    side = 32 * int(rng.integers(8, 14))
    return side, side


def cells_of(size, strides, per_cell=1):
    return [(x, y, s) for s in strides for y in range(-(-size[1] // s)) for x in range(-(-size[0] // s)) for _ in range(per_cell)]


# ---- rows with an objectness

def yolo_rows(rng, write, per_cell=3, names=("output",), extra=None, classes=None, raw=False, shares=False, fit="letterbox", order=None, **more):
    size = square(rng)
    classes = classes or 80
    points = {"pose": 17, "face": 5}.get(extra, 0)
    scene = Scene(rng, size, fit, classes, points=points)
    cells = cells_of(size, (8, 16, 32), per_cell)
    width = {None: 5 + classes, "pose": 57, "face": 16, "seg": 5 + classes + 32}[extra]
    out = np.zeros((1, len(cells), width), F)
    out[0, :, :4] = rng.uniform(.2, .6, (len(cells), 4)) if raw else rng.uniform(6, size[0], (len(cells), 4))
    out[0, :, 4:] = rng.uniform(0, .02, (len(cells), width - 4))
    proto = np.full((1, 32, size[1] // 4, size[0] // 4), -8, F)
    keypoints, landmarks, masks = [], [], []
    for k, (b, i) in enumerate(zip(scene.boxes, rng.permutation(len(cells)))):
        x, y, w, h = scene.centers(b)
        gx, gy, s = cells[i]
        row = out[0, i]
        row[:] = 0
        row[:4] = [x / s - gx, y / s - gy, math.log(w / s), math.log(h / s)] if raw else [x, y, w, h]
        if shares:
            row[:4] /= [size[0], size[1], size[0], size[1]]
        row[4] = .98
        score = b[5] / .98
        pixels = [scene.at(*p) for p in scene.points[k]]
        if extra == "face":
            row[5:15] = np.array(pixels).ravel()
            row[15] = score
            landmarks.append([list(p) for p in scene.points[k]])
        else:
            row[5 + b[4]] = score
        if extra == "pose":
            confidence = rng.uniform(.5, 1, 17)
            row[6:] = np.concatenate([np.array(pixels), confidence[:, None]], 1).ravel()
            keypoints.append([[*p, float(c)] for p, c in zip(scene.points[k], confidence)])
        if extra == "seg":
            row[5 + classes + k] = 1
            x0, y0, x1, y1 = (int(round(v / 4)) for v in scene.corners(b))
            proto[0, k, y0:y1, x0:x1] = 8
            masks.append([(4 * x0 - scene.dx) / scene.scale[0], (4 * y0 - scene.dy) / scene.scale[1], (4 * x1 - scene.dx) / scene.scale[0], (4 * y1 - scene.dy) / scene.scale[1]])
    if shares:
        out[0, :, :4] = np.where(out[0, :, :4] > 2, out[0, :, :4] / size[0], out[0, :, :4])
    outputs = [(names[0], out)] + ([("output1", proto)] if extra == "seg" else [])
    more.update({k: v for k, v in (("keypoints", keypoints), ("landmarks", landmarks), ("mask", masks)) if v})
    write(scene, (1, 3, *size[::-1]), outputs, scene.truth(**more))


def yolo_maps(rng, write, kind):
    """Raw maps with anchors: v5 [1,3,h,w,85], v3 [1,255,h,w] coarse first, v2 [1,125,13,13]."""
    size, classes = (416, 416), {"v2": 20}.get(kind, 80)
    scene = Scene(rng, size, "letterbox", classes)
    v3 = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]
    v2 = [[(32 * a, 32 * b) for a, b in ((1.08, 1.19), (3.42, 4.41), (6.63, 11.38), (9.42, 5.11), (16.62, 10.52))]]
    strides, anchors = ((32,), v2) if kind == "v2" else ((8, 16, 32), v3)
    each = len(anchors[0])
    maps = [np.full((1, each, size[1] // s, size[0] // s, 5 + classes), -9, F) for s in strides]
    for b in scene.boxes:
        level = int(rng.integers(len(strides)))
        s, a = strides[level], int(rng.integers(each))
        x, y, w, h = scene.centers(b)
        gx, gy = int(x // s), int(y // s)
        fx, fy, (aw, ah) = x / s - gx, y / s - gy, anchors[level][a]
        cell = maps[level][0, a, gy, gx]
        if kind == "v5":
            # An anchor reaches at most four times its size.
            best = min(((abs(math.log(w / q[0])) + abs(math.log(h / q[1])), l, k) for l, row in enumerate(anchors) for k, q in enumerate(row)))
            level, a = best[1], best[2]
            s, (aw, ah) = strides[level], anchors[level][a]
            gx, gy = int(x // s), int(y // s)
            fx, fy = x / s - gx, y / s - gy
            cell = maps[level][0, a, gy, gx]
            cell[:4] = [logit(min(max((fx + .5) / 2, 1e-4), 1 - 1e-4)), logit(min(max((fy + .5) / 2, 1e-4), 1 - 1e-4)), logit(math.sqrt(w / aw) / 2), logit(math.sqrt(h / ah) / 2)]
        else:
            clip = lambda v: min(max(v, 1e-4), 1 - 1e-4)
            cell[:4] = [logit(clip(fx)), logit(clip(fy)), math.log(w / aw), math.log(h / ah)]
        cell[4] = logit(b[5] / .99)
        cell[5 + b[4]] = logit(.99) if kind != "v2" else 12
    if kind != "v5":
        maps = [m.transpose(0, 1, 4, 2, 3).reshape(1, each * (5 + classes), m.shape[2], m.shape[3]) for m in maps]
    if kind == "v3":
        maps = maps[::-1]
    write(scene, (1, 3, *size[::-1]), [(f"output{i}", m) for i, m in enumerate(maps)], scene.truth())


def cells_like_v8(rng, write, transposed=False, shares=False, twice=False, files=None, contradiction=False, info=None):
    size = square(rng)
    scene = Scene(rng, size, "letterbox", 80)
    cells = cells_of(size, (8, 16, 32))
    out = np.zeros((1, 84, len(cells)), F)
    out[0, :4] = rng.uniform(6, size[0] * .8, (4, len(cells)))
    out[0, 4:] = rng.uniform(0, .04, (80, len(cells)))
    for b, i in zip(scene.boxes, rng.permutation(len(cells))):
        out[0, :4, i] = scene.centers(b)
        out[0, 4:, i] = 0
        out[0, 4 + b[4], i] = b[5]
    if shares:
        out[0, :4] /= size[0]
    if contradiction:
        out[0, 4:] *= 40
    value = out.transpose(0, 2, 1).copy() if transposed else out
    outputs = [("output0", value)] + ([("output1", value * F(.5))] if twice else [])
    write(scene, (1, 3, *size[::-1]), outputs, [] if contradiction else scene.truth(), info=info, files=files)


# ---- boxes and scores, boxes, scores and classes

def pair(rng, write, names, fit, corners=True, unit=None, middle=False, background=None, classes=80, rows=None, raw_ultra=False, landmarks=False):
    size = (320, 240) if rows == "ultra" else square(rng)
    scene = Scene(rng, size, fit, 1 if rows == "ultra" else classes)
    if rows == "ultra":
        mins = {8: (10, 16, 24), 16: (32, 48), 32: (64, 96), 64: (128, 192, 256)}
        priors = [((x + .5) * s, (y + .5) * s, m, m) for s in mins for y in range(math.ceil(size[1] / s)) for x in range(math.ceil(size[0] / s)) for m in mins[s]]
    else:
        priors = [((x + .5) * s, (y + .5) * s, s, s) for x, y, s in cells_of(size, (8, 16, 32), rows or 1)]
    n = len(priors)
    boxes = np.array([[x - w / 2, y - h / 2, x + w / 2, y + h / 2] for x, y, w, h in priors], F)[None]
    if raw_ultra:
        boxes = rng.normal(0, 1, (1, n, 4)).astype(F)
    scores = np.full((1, n, classes + (background is not None)), .003, F)
    if background is not None:
        scores[:] = 0
        scores[..., background] = 1
    for b, i in zip(scene.boxes, rng.permutation(n)):
        x, y, w, h = scene.centers(b)
        if raw_ultra:
            px, py, pw, ph = priors[i]
            boxes[0, i] = [(x - px) / (.1 * pw), (y - py) / (.1 * ph), math.log(w / pw) / .2, math.log(h / ph) / .2]
        else:
            boxes[0, i] = scene.corners(b)
        label = b[4] if background is None else 1 + b[4]
        scores[0, i] = 0
        scores[0, i, label] = b[5]
        if background is not None:
            scores[0, i, background] = 1 - b[5]
    if unit == "shares":
        boxes /= [size[0], size[1], size[0], size[1]]
    if middle:
        boxes = boxes[:, :, None]
    objects = scene.truth()
    if background is not None:
        for item in objects:
            item["label_id"] += 1
    write(scene, (1, 3, *size[::-1]), [(names[0], boxes.astype(F)), (names[1], scores)], objects)


def triple(rng, write, names, fit="stretch", first=0, y_first=False, unit="pixels", label_type=np.int32, count=None, batch=True, nhwc=False, dtype=F, order="bsl", masks=0, points=None, files=None, inputs=(), properties=""):
    size = square(rng)
    scene = Scene(rng, size, fit, 80, first=first, points=17 if points else 0)
    n = int(rng.integers(10, 120))
    boxes, scores, labels = np.zeros((1, n, 4), F), np.zeros((1, n), F), np.zeros((1, n), label_type)
    grids, marks = np.zeros((n, 1, masks, masks), F), np.zeros((1, n, 17, 3), F)
    mask_truth, mark_truth = [], []
    for i, b in enumerate(scene.boxes):
        c = np.array(scene.corners(b))
        if unit == "shares":
            c = c / [size[0], size[1], size[0], size[1]]
        boxes[0, i] = c[[1, 0, 3, 2]] if y_first else c
        scores[0, i], labels[0, i] = b[5], b[4]
        if masks:
            grids[i, 0, :, :masks // 2] = .95
            mask_truth.append([b[0] - b[2] / 2, b[1] - b[3] / 2, b[0], b[1] + b[3] / 2])
        if points:
            marks[0, i, :, :2] = [scene.at(*p) for p in scene.points[i]]
            marks[0, i, :, 2] = .9
            mark_truth.append([[*p, .9] for p in scene.points[i]])
    parts = {"b": boxes, "s": scores, "l": labels}
    outputs = [(name, parts[key] if batch else parts[key][0]) for key, name in zip(order, names)]
    if count is not None:
        outputs.append((names[3], np.full_like(count, len(scene.boxes))))
    if masks:
        outputs.append(("masks", grids))
    if points:
        outputs.append((points, marks))
    more = {k: v for k, v in (("mask", mask_truth), ("keypoints", mark_truth)) if v}
    shape = (1, *size[::-1], 3) if nhwc else (1, 3, *size[::-1])
    write(scene, shape, outputs, scene.truth(**more), dtype=dtype, files=files, inputs=inputs, properties=properties)


def rows(rng, write, name, layout, fit="stretch", count=None, inputs=(), files=None, info=None, leading=0, input_name="images", width=None, objects_first=True):
    size = square(rng)
    scene = Scene(rng, size, fit, 80)
    out = np.zeros((100, width or len(layout)), F)
    if layout[0] == "C" and "i" not in layout:
        out[:, layout.index("C")] = -1
    for i, b in enumerate(scene.boxes):
        values = {"i": 0, "C": b[4], "S": b[5], **dict(zip("xyXY", scene.corners(b)))}
        out[i, :len(layout)] = [values[k] for k in layout]
    outputs = [(name, out.reshape((1,) * leading + out.shape))]
    if count is not None:
        outputs.append((count, np.array([len(scene.boxes)], np.int32)))
    write(scene, (1, 3, *size[::-1]), outputs, scene.truth(), inputs=inputs, files=files, info=info, input_name=input_name)


def queries(rng, write, names, columns, softmax=False, files=None, masks=False, fit="stretch"):
    size = (480, 480)
    scene = Scene(rng, size, fit, columns - softmax)
    n = 300
    logits = np.full((1, n, columns), -3 if softmax else -6, F)
    boxes = rng.uniform(.2, .7, (1, n, 4)).astype(F)
    grids = np.full((1, n, 120, 120), -6, F)
    if softmax:
        logits[..., -1] = 9
    truth = []
    for b, i in zip(scene.boxes, rng.permutation(n)):
        boxes[0, i] = b[:4]
        if softmax:
            logits[0, i] = -20
            logits[0, i, -1] = 0
        logits[0, i, b[4]] = logit(b[5])
        x0, y0, x1, y1 = (int(round(120 * v)) for v in (b[0] - b[2] / 2, b[1] - b[3] / 2, b[0], b[1] + b[3] / 2))
        grids[0, i, y0:y1, x0:x1] = 6
        truth.append([x0 / 120, y0 / 120, x1 / 120, y1 / 120])
    outputs = [(names[0], boxes), (names[1], logits)] + ([("masks", grids)] if masks else [])
    write(scene, (1, 3, *size[::-1]), outputs, scene.truth(**({"mask": truth} if masks else {})), files=files)


# ---- anchor-free and prior-based networks

def distributions(rng, write, batch=True, plus=False, strides=(8, 16, 32), maps=False):
    """Distances as distributions over 8 bins (NanoDet, PicoDet) or 16 (YOLO v8 in maps)."""
    size, classes, bins = (416, 416), 80, 16 if maps else 8
    scene = Scene(rng, size, "letterbox" if maps or (not plus and len(strides) == 3) else "stretch", classes, most=2)
    found, objects = {}, []
    for s in strides:
        n = (size[0] // s if not plus else -(-size[0] // s)) ** 2
        found[s] = (np.full((n, classes), -9 if maps else .002, F), np.zeros((n, 4 * bins), F))
    for b in scene.boxes:
        x0, y0, x1, y1 = scene.corners(b)
        s = next((s for s in strides if max(x1 - x0, y1 - y0) / s < 2 * (bins - 1.5)), strides[-1])
        g, middle = -(-size[0] // s), 0 if plus else .5
        gx, gy = int((x0 + x1) / 2 / s), int((y0 + y1) / 2 / s)
        cx, cy, i = (gx + middle) * s, (gy + middle) * s, gy * g + gx
        found[s][0][i, b[4]] = logit(b[5]) if maps else b[5]
        for side, distance in enumerate((cx - x0, cy - y0, x1 - cx, y1 - cy)):
            low = min(int(distance / s), bins - 2)
            part = distance / s - low
            part = min(max(part, 1e-6), 1 - 1e-6)
            row = np.full(bins, -30, F)
            row[low], row[low + 1] = math.log(1 - part), math.log(part)
            found[s][1][i, side * bins:(side + 1) * bins] = row
    if plus:
        outputs = [("output", np.concatenate([np.concatenate(found[s], 1) for s in strides])[None])]
    elif maps:
        outputs = [(f"output{k}", np.concatenate([found[s][1], found[s][0]], 1).T.reshape(1, 4 * bins + classes, size[1] // s, size[0] // s)) for k, s in enumerate(strides)]
    else:
        outputs = [(f"{kind}_{s}", found[s][k][None] if batch else found[s][k]) for k, kind in enumerate(("cls_pred_stride", "dis_pred_stride")) for s in strides]
    write(scene, (1, 3, *size[::-1]), outputs, scene.truth())


def fcos(rng, write, joined):
    size = (384, 384)
    scene = Scene(rng, size, "stretch", 80)
    strides, middle = (8, 16, 32, 64, 128), 0 if joined else .5
    cls, reg, ctr = [], [], []
    for s in strides:
        g = size[0] // s
        cls.append(np.full((g, g, 91 if joined else 80), -7, F)), reg.append(np.ones((g, g, 4), F)), ctr.append(np.full((g, g, 1), -2, F))
    for b in scene.boxes:
        level = int(rng.integers(3))
        s = strides[level]
        x0, y0, x1, y1 = scene.corners(b)
        gx, gy = int((x0 + x1) / 2 / s), int((y0 + y1) / 2 / s)
        cx, cy = (gx + middle) * s, (gy + middle) * s
        cls[level][gy, gx, b[4]] = logit(b[5] ** 2 / .97)
        ctr[level][gy, gx] = logit(.97)
        reg[level][gy, gx] = np.array([cx - x0, cy - y0, x1 - cx, y1 - cy]) / s
    if joined:
        flat = lambda parts: np.concatenate([p.reshape(-1, p.shape[-1]) for p in parts])[None]
        outputs = [("cls_logits", flat(cls)), ("bbox_regression", flat(reg)), ("bbox_ctrness", flat(ctr))]
    else:
        outputs = [(f"{kind}_{k}", p.transpose(2, 0, 1)[None]) for kind, parts in (("cls_score", cls), ("bbox_pred", reg), ("centerness", ctr)) for k, p in enumerate(parts)]
    write(scene, (1, 3, *size[::-1]), outputs, scene.truth())


def nine(rng, write, kind):
    """Nine anchors a cell at strides 8 to 128: torchvision's RetinaNet, Keras', EfficientDet."""
    size = (512, 512)
    classes = {"torchvision": 91, "keras": 80, "efficientdet": 90}[kind]
    scene = Scene(rng, size, "corner" if kind == "efficientdet" else "stretch", classes)
    priors = []
    for s in (8, 16, 32, 64, 128):
        shapes = []
        if kind == "efficientdet":
            shapes = [(4 * s * 2 ** (o / 3) * w, 4 * s * 2 ** (o / 3) * h) for o in range(3) for w, h in ((1, 1), (1.4, .7), (.7, 1.4))]
        else:
            for ratio in (.5, 1, 2):
                for o in range(3):
                    side = 4 * s * 2 ** (o / 3)
                    if kind == "torchvision":
                        side = int(side)
                        w, h = 2 * np.round(side / math.sqrt(ratio) / 2), 2 * np.round(side * math.sqrt(ratio) / 2)
                    else:
                        w, h = side / math.sqrt(ratio), side * math.sqrt(ratio)
                    shapes.append((w, h))
        middle = 0 if kind == "torchvision" else .5
        g = size[0] // s
        priors += [((x + middle) * s, (y + middle) * s, w, h) for y in range(g) for x in range(g) for w, h in shapes]
    priors = np.array(priors, F)
    n = len(priors)
    offsets = rng.normal(0, .3, (1, n, 4)).astype(F)
    scores = np.full((1, n, classes), -8 if kind == "torchvision" else .002, F)
    for b in scene.boxes:
        x, y, w, h = scene.centers(b)
        i = int(np.argmin(((priors[:, :2] - [x, y]) ** 2).sum(1) + 2 * ((priors[:, 2:] - [w, h]) ** 2).sum(1)))
        px, py, pw, ph = priors[i]
        if kind == "keras":
            x0, y0, x1, y1 = scene.corners(b)
            offsets[0, i] = [(x0 - (px - pw / 2)) / pw / .2, (y0 - (py - ph / 2)) / ph / .2, (x1 - (px + pw / 2)) / pw / .2, (y1 - (py + ph / 2)) / ph / .2]
        else:
            d = [(x - px) / pw, (y - py) / ph, math.log(w / pw), math.log(h / ph)]
            offsets[0, i] = [d[1], d[0], d[3], d[2]] if kind == "efficientdet" else d
        scores[0, i] = scores.min()
        scores[0, i, b[4]] = logit(b[5]) if kind == "torchvision" else b[5]
    names = ("bbox_regression", "cls_logits") if kind == "torchvision" else ("regression", "classification")
    write(scene, (1, 3, *size[::-1]), [(names[0], offsets), (names[1], scores)], scene.truth())


def centers(rng, write, face):
    size = (384, 384) if face else (512, 512)
    scene = Scene(rng, size, "stretch" if face else "letterbox", 1 if face else 80, points=5 if face else 0)
    g = size[0] // 4
    heat, wh, off, marks = (np.zeros((1, c, g, g), F) for c in (1 if face else 80, 2, 2, 10))
    heat += .005
    for k, b in enumerate(scene.boxes):
        x, y, w, h = scene.centers(b)
        gx, gy = int(x / 4), int(y / 4)
        heat[0, b[4], gy, gx] = b[5]
        if face:
            wh[0, :, gy, gx] = [math.log(h / 4), math.log(w / 4)]
            off[0, :, gy, gx] = [y / 4 - gy - .5, x / 4 - gx - .5]
            for j, p in enumerate(scene.points[k]):
                px, py = scene.at(*p)
                marks[0, 2 * j:2 * j + 2, gy, gx] = [(py - (y - h / 2)) / h, (px - (x - w / 2)) / w]
        else:
            wh[0, :, gy, gx] = [w / 4, h / 4]
            off[0, :, gy, gx] = [x / 4 - gx, y / 4 - gy]
    if face:
        outputs = [("537", heat), ("538", wh), ("539", off), ("540", marks)]
        return write(scene, (1, 3, *size[::-1]), outputs, scene.truth(landmarks=[[list(p) for p in ps] for ps in scene.points]))
    write(scene, (1, 3, *size[::-1]), [("hm", heat), ("wh", wh), ("reg", off)], scene.truth())


def detectnet(rng, write):
    size, classes = (960, 544), 3
    scene = Scene(rng, size, "stretch", classes)
    g = (size[0] // 16, size[1] // 16)
    cover, boxes = np.zeros((1, classes, g[1], g[0]), F), np.zeros((1, 4 * classes, g[1], g[0]), F)
    for b in scene.boxes:
        x0, y0, x1, y1 = scene.corners(b)
        gx, gy = int((x0 + x1) / 2 / 16), int((y0 + y1) / 2 / 16)
        cx, cy = (gx * 16 + .5) / 35, (gy * 16 + .5) / 35
        cover[0, b[4], gy, gx] = b[5]
        boxes[0, 4 * b[4]:4 * b[4] + 4, gy, gx] = [cx - x0 / 35, cy - y0 / 35, x1 / 35 - cx, y1 / 35 - cy]
    write(scene, (1, 3, *size[::-1]), [("output_cov/Sigmoid", cover), ("output_bbox/BiasAdd", boxes)], scene.truth())


def blaze(rng, write, side, levels, points):
    size = (side, side)
    scene = Scene(rng, size, "letterbox", 1, points=points)
    anchors = [((x + .5) * s, (y + .5) * s) for s, n in levels for y in range(side // s) for x in range(side // s) for _ in range(n)]
    boxes, scores = rng.normal(0, 20, (1, len(anchors), 4 + 2 * points)).astype(F), np.full((1, len(anchors), 1), -20, F)
    for k, (b, i) in enumerate(zip(scene.boxes, rng.permutation(len(anchors)))):
        x, y, w, h = scene.centers(b)
        ax, ay = anchors[i]
        boxes[0, i, :4] = [x - ax, y - ay, w, h]
        for j, p in enumerate(scene.points[k]):
            px, py = scene.at(*p)
            boxes[0, i, 4 + 2 * j:6 + 2 * j] = [px - ax, py - ay]
        scores[0, i] = logit(b[5])
    write(scene, (1, side, side, 3), [("regressors", boxes), ("classificators", scores)], scene.truth(landmarks=[[list(p) for p in ps] for ps in scene.points]), input_name="input")


def yunet(rng, write, joined):
    size = (320, 320)
    scene = Scene(rng, size, "stretch" if joined else "corner", 1, points=5)
    landmarks = [[list(p) for p in ps] for ps in scene.points]
    if joined:                                                      # the first form: loc with points, conf, iou
        mins = {8: (10, 16, 24), 16: (32, 48), 32: (64, 96), 64: (128, 192, 256)}
        priors = [((x + .5) * s, (y + .5) * s, m, m) for s in mins for y in range(math.ceil(size[1] / s)) for x in range(math.ceil(size[0] / s)) for m in mins[s]]
        n = len(priors)
        loc, conf, iou = rng.normal(0, 1, (n, 14)).astype(F), np.tile(np.array([.99, .01], F), (n, 1)), np.full((n, 1), .2, F)
        for k, (b, i) in enumerate(zip(scene.boxes, rng.permutation(n))):
            x, y, w, h = scene.centers(b)
            px, py, pw, ph = priors[i]
            loc[i, :4] = [(x - px) / (.1 * pw), (y - py) / (.1 * ph), math.log(w / pw) / .2, math.log(h / ph) / .2]
            for j, p in enumerate(scene.points[k]):
                qx, qy = scene.at(*p)
                loc[i, 4 + 2 * j:6 + 2 * j] = [(qx - px) / (.1 * pw), (qy - py) / (.1 * ph)]
            conf[i], iou[i] = [1 - b[5], b[5]], b[5]
        return write(scene, (1, 3, *size[::-1]), [("loc", loc), ("conf", conf), ("iou", iou)], scene.truth(landmarks=landmarks))
    parts = {}
    for s in (8, 16, 32):
        n = (size[0] // s) ** 2
        parts.update({f"cls_{s}": np.full((1, n, 1), .01, F), f"obj_{s}": np.full((1, n, 1), .01, F), f"bbox_{s}": np.zeros((1, n, 4), F), f"kps_{s}": np.zeros((1, n, 10), F)})
    for k, b in enumerate(scene.boxes):
        s = int(rng.choice((8, 16, 32)))
        x, y, w, h = scene.centers(b)
        g, gx, gy = size[0] // s, int(x / s), int(y / s)
        i = gy * g + gx
        parts[f"cls_{s}"][0, i], parts[f"obj_{s}"][0, i] = b[5], b[5]
        parts[f"bbox_{s}"][0, i] = [x / s - gx, y / s - gy, math.log(w / s), math.log(h / s)]
        for j, p in enumerate(scene.points[k]):
            qx, qy = scene.at(*p)
            parts[f"kps_{s}"][0, i, 2 * j:2 * j + 2] = [qx / s - gx, qy / s - gy]
    order = [f"{kind}_{s}" for kind in ("cls", "obj", "bbox", "kps") for s in (8, 16, 32)]
    write(scene, (1, 3, *size[::-1]), [(name, parts[name]) for name in order], scene.truth(landmarks=landmarks), input_name="input")


def classes(rng, write, kind):
    scene = Scene(rng, (64, 64), "stretch", 1)
    n = 7
    values = rng.normal(0, 1, (1, n)).astype(F)
    k = int(rng.integers(n))
    values[0, k] = 7
    p = float(np.exp(values[0, k]) / np.exp(values).sum())
    info, files = None, None
    if kind == "huggingface":
        files = {"config.json": json.dumps({"model_type": "vit", "architectures": ["ViTForImageClassification"], "id2label": {str(i): f"class{i}" for i in range(n)}}),
                 "preprocessor_config.json": json.dumps({"do_normalize": True, "image_mean": [.5, .5, .5], "image_std": [.5, .5, .5], "do_rescale": True, "rescale_factor": 1 / 255, "size": {"height": 64, "width": 64}})}
    if kind == "multilabel":
        info = dict(model_type="Classification", labels=" ".join(f"class{i}" for i in range(n)), multilabel="True", output_raw_scores="True")
        p = 1 / (1 + math.exp(-7.0))
        values[0] = -4
        values[0, k] = 7
    write(scene, (1, 3, 64, 64), [("logits", values)], [], info=info, files=files, labels=[{"label_id": k, "confidence": p}])


def metadata(task, names, **more):
    lines = ["description: Ultralytics YOLOv8n model", f"task: {task}", "stride: 32", "imgsz:", "- 320", "- 320", "names:"]
    return "\n".join(lines + [f"  {i}: {n}" for i, n in enumerate(names)] + [f"{k}: {v}" for k, v in more.items()]) + "\n"


def infer_cfg():
    return ("mode: paddle\ndraw_threshold: 0.5\nmetric: COCO\narch: YOLO\nmin_subgraph_size: 3\nPreprocess:\n- interp: 2\n  keep_ratio: false\n  target_size:\n  - 640\n  - 640\n"
            "  type: Resize\n- mean:\n  - 0.0\n  - 0.0\n  - 0.0\n  norm_type: none\n  std:\n  - 1.0\n  - 1.0\n  - 1.0\n  type: NormalizeImage\n- type: Permute\nlabel_list:\n"
            + "".join(f"- class{i}\n" for i in range(80)))


# ---- the same outputs as other exporters leave them

def varied(make, change):
    """A family with `change` made to its list of outputs."""
    def write_varied(rng, write):
        make(rng, lambda scene, shape, outputs, *rest, **more: write(scene, shape, change(outputs), *rest, **more))
    return write_varied


def numbered(outputs):
    return [(str(100 + 7 * i), value) for i, (_, value) in enumerate(outputs)]


def without_batch(outputs):
    return [(name, value[0] if value.ndim > 1 else value) for name, value in outputs]


def with_features(outputs):
    return [*outputs, ("feature_vector", np.linspace(-1, 1, 512, dtype=F)[None])]


def with_map(outputs):
    return [("p3", np.zeros((1, 64, 40, 40), F)), *outputs]


def turned_round(outputs):
    return outputs[::-1]


def variants(families):
    changes = {"turned-round": turned_round, "numbers": numbered, "without-batch": without_batch, "with-features": with_features, "with-map": with_map}
    wanted = {"turned-round": ("centerface", "retinanet-torchvision", "yolov8-seg-half", "tflite", "yolov3-onnx-zoo"),
              "numbers": ("batchednms", "batchednms-tao", "keypoint-rcnn", "yolos", "rf-detr-seg", "tflite"),
              "without-batch": ("yolov5", "yolov5-seg", "yolov5-half", "yolov8-shares", "tflite-renamed", "deim", "yolov4", "centernet", "yolov5-convolutions"),
              "with-features": ("yolov5", "yolov8-shares", "yolov10", "yolov5-convolutions", "nanodet", "centerface", "blazeface", "movenet-multipose"),
              "with-map": ("yolov5-seg", "yolov6", "yolov8-transposed", "ultraface-raw", "nanodet", "yunet")}
    return {f"{name}-{kind}": varied(families[name], changes[kind]) for kind, names in wanted.items() for name in names}


FAMILIES = {
    "yolov5": yolo_rows,
    "yolov5-shares": lambda r, w: yolo_rows(r, w, shares=True),
    "yolov5-seg": lambda r, w: yolo_rows(r, w, extra="seg", names=("output0",)),
    "yolov5-face": lambda r, w: yolo_rows(r, w, extra="face", classes=1),
    "yolov7-pose": lambda r, w: yolo_rows(r, w, extra="pose", classes=1),
    "yolov6": lambda r, w: yolo_rows(r, w, per_cell=1, names=("outputs",)),
    "yolox": lambda r, w: yolo_rows(r, w, per_cell=1, raw=True, fit="corner"),
    "yolov5-maps": lambda r, w: yolo_maps(r, w, "v5"), "yolov3-maps": lambda r, w: yolo_maps(r, w, "v3"), "yolov2-map": lambda r, w: yolo_maps(r, w, "v2"),
    "yolov8-transposed": lambda r, w: cells_like_v8(r, w, transposed=True), "yolov8-shares": lambda r, w: cells_like_v8(r, w, shares=True),
    "yolov9-auxiliary": lambda r, w: cells_like_v8(r, w, twice=True), "yolov8-contradiction": lambda r, w: cells_like_v8(r, w, contradiction=True),
    "yolov8-folder": lambda r, w: cells_like_v8(r, w, files={"metadata.yaml": metadata("detect", [f"class{i}" for i in range(80)])}),
    "yolov8-maps": lambda r, w: distributions(r, w, maps=True),
    "yolov4": lambda r, w: pair(r, w, ("boxes", "confs"), "letterbox", unit="shares", middle=True, rows=3),
    "yolo-nas-raw": lambda r, w: pair(r, w, ("904", "913"), "letterbox"),
    "ultraface": lambda r, w: pair(r, w, ("boxes", "scores"), "stretch", unit="shares", background=0, classes=1, rows="ultra"),
    "ultraface-raw": lambda r, w: pair(r, w, ("boxes", "scores"), "stretch", background=0, classes=1, rows="ultra", raw_ultra=True),
    "yolo-nas": lambda r, w: triple(r, w, ("graph2_pred_boxes", "graph2_pred_scores", "graph2_pred_classes", "graph2_num_predictions"), "letterbox", label_type=np.int64, count=np.zeros((1, 1), np.int64)),
    "yolo-nas-flat": lambda r, w: rows(r, w, "graph2_flat_predictions", "ixyXYSC", "letterbox"),
    "yolo-nas-pose": lambda r, w: triple(r, w, ("graph2_pred_boxes", "graph2_pred_scores", "graph2_pred_classes", "graph2_num_predictions"), "corner", label_type=np.int64, count=np.zeros((1, 1), np.int64), points="graph2_pred_joints"),
    "tflite": lambda r, w: triple(r, w, ("TFLite_Detection_PostProcess", "TFLite_Detection_PostProcess:2", "TFLite_Detection_PostProcess:1", "TFLite_Detection_PostProcess:3"), y_first=True, unit="shares", label_type=F, count=np.zeros(1, F), nhwc=True),
    "tflite-renamed": lambda r, w: triple(r, w, ("StatefulPartitionedCall:3", "StatefulPartitionedCall:1", "StatefulPartitionedCall:2", "StatefulPartitionedCall:0"), y_first=True, unit="shares", label_type=F, count=np.zeros(1, F), nhwc=True),
    "batchednms": lambda r, w: triple(r, w, ("nmsed_boxes", "nmsed_scores", "nmsed_classes", "num_detections"), label_type=F, unit="shares", count=np.zeros((1, 1), np.int32)),
    "batchednms-tao": lambda r, w: triple(r, w, ("BatchedNMS_1", "BatchedNMS_2", "BatchedNMS_3", "BatchedNMS"), label_type=F, unit="shares", count=np.zeros((1, 1), np.int32)),
    "trt-yolo": lambda r, w: triple(r, w, ("bboxes", "scores", "labels", "num_dets"), count=np.zeros((1, 1), np.int32)),
    "mask-rcnn": lambda r, w: triple(r, w, ("boxes", "scores", "labels"), first=1, label_type=np.int64, batch=False, masks=28),
    "keypoint-rcnn": lambda r, w: triple(r, w, ("boxes", "scores", "labels"), first=1, label_type=np.int64, batch=False, points="keypoints"),
    "deim-deploy": lambda r, w: triple(r, w, ("labels", "boxes", "scores"), order="lbs", label_type=np.int64),
    "yolov10": lambda r, w: rows(r, w, "output0", "xyXYSC", "letterbox", leading=1),
    "paddle-rtdetr": lambda r, w: rows(r, w, "reshape2_95.tmp_0", "CSxyXY", count="tile_3.tmp_0", inputs=(("im_shape", (1, 2), F), ("scale_factor", (1, 2), F)), input_name="image"),
    "paddle-infer-cfg": lambda r, w: rows(r, w, "concat_1", "CSxyXY", count="concat_2", files={"infer_cfg.yml": infer_cfg()}, input_name="image"),
    "ssd-rows": lambda r, w: rows(r, w, "detection_out", "iCSxyXY", leading=2),
    "d-fine": lambda r, w: queries(r, w, ("pred_boxes", "logits"), 33, files={"config.json": json.dumps({"model_type": "d_fine", "id2label": {str(i): f"class{i}" for i in range(33)}})}),
    "deim": lambda r, w: queries(r, w, ("pred_boxes", "pred_logits"), 80),
    "yolos": lambda r, w: queries(r, w, ("pred_boxes", "logits"), 24, softmax=True, files={"config.json": json.dumps({"model_type": "yolos", "id2label": {str(i): f"class{i}" for i in range(23)}})}),
    "rf-detr-seg": lambda r, w: queries(r, w, ("dets", "labels"), 91, masks=True),
    "nanodet": distributions, "nanodet-without-batch": lambda r, w: distributions(r, w, batch=False),
    "nanodet-plus": lambda r, w: distributions(r, w, plus=True, strides=(8, 16, 32, 64)),
    "picodet": lambda r, w: distributions(r, w, strides=(8, 16, 32)),
    "fcos-torchvision": lambda r, w: fcos(r, w, True), "fcos-levels": lambda r, w: fcos(r, w, False),
    "retinanet-torchvision": lambda r, w: nine(r, w, "torchvision"), "retinanet-keras": lambda r, w: nine(r, w, "keras"), "efficientdet": lambda r, w: nine(r, w, "efficientdet"),
    "centernet": lambda r, w: centers(r, w, False), "centerface": lambda r, w: centers(r, w, True), "detectnet": detectnet,
    "blazeface": lambda r, w: blaze(r, w, 128, ((8, 2), (16, 6)), 6), "palms": lambda r, w: blaze(r, w, 192, ((8, 2), (16, 6)), 7),
    "yunet": lambda r, w: yunet(r, w, False), "yunet-2022": lambda r, w: yunet(r, w, True),
    "classes-huggingface": lambda r, w: classes(r, w, "huggingface"), "classes-multilabel": lambda r, w: classes(r, w, "multilabel"),
    "yolov6-20-classes": lambda r, w: yolo_rows(r, w, per_cell=1, names=("outputs",), classes=20),
    "yolox-20-classes": lambda r, w: yolo_rows(r, w, per_cell=1, raw=True, fit="corner", classes=20),
    "detr-20-classes": lambda r, w: queries(r, w, ("pred_boxes", "logits"), 21, softmax=True),
    "rtdetr-one-class": lambda r, w: queries(r, w, ("pred_boxes", "logits"), 1),
    **more_families(Scene, metadata), **task_families(Scene, metadata),
}
FAMILIES.update(variants(FAMILIES))
FAMILIES.update(form_families(Scene))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    if unknown := set(arguments.families) - set(FAMILIES):
        parser.error(f"no such family: {', '.join(sorted(unknown))}")
    for number, (name, make) in enumerate(FAMILIES.items()):
        if not arguments.families or name in arguments.families:
            make(np.random.default_rng([arguments.seed, number]), Writer(arguments.out, name))


if __name__ == "__main__":
    main()
