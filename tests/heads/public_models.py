#!/usr/bin/env python3
"""Models from public repositories and packages as people have them, through the element without a hint, against their authors' way to
take a picture and to read the outputs, which is written here apart from the product's.

    public_models.py FOLDER SHARED [--list] [--verbose] [NAME ...]      clinfer on GST_PLUGIN_PATH; exit status 1 where something is silent or false

FOLDER holds checkouts as OWNER/REPOSITORY and unpacked packages as NAME-VERSION; public_models.json says which, with the commit or version
and the sum of each model. Whatever lies beside a model there counts. SHARED holds data/frames, the pictures. Without FOLDER it is skipped
(exit status 77), and so is each model that FOLDER lacks. Needs numpy, onnx and onnxruntime (CLINFER_PYTHON names a Python that has them).

What becomes of a model is one of
    right    the results are the authors'
    said     they are not, or there are none, and a warning says so beside raw tensors; `hint` in the table is the line that makes them right
    refused  the model is not run, with a reason; `refusal` in the table says that this is right
    SILENT   the results are others, and nothing says so
    FALSE    a warning says that the family takes pictures in a way that is not its authors'
"""
import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import other_python

try:
    import numpy as np
    import onnx
    import onnxruntime
    from real_detectors import bilinear, frames
except ImportError:
    other_python.retry("numpy, onnx and onnxruntime")

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST, SLACK = .5, .03                                               # threshold; scores this near it may be on either side
BOX, POINT = .015, .015                                              # shares of the frame


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -80, 80)))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# ---- what the authors' code feeds

class Fed:
    """A frame [h, w, 3] of BGR as a network's input, and the way back from its pixels to shares of the frame."""

    def __init__(self, frame, size, feed):
        self.size = np.array(size, float)
        height, width = frame.shape[:2]
        resize = feed.get("resize", "stretch")
        inner, at, part = self.size, np.zeros(2), frame
        if resize.startswith("letterbox"):
            scale = min(size[0] / width, size[1] / height)
            inner = np.maximum(np.round(np.array([width, height]) * scale), 1)
            at = np.zeros(2) if resize == "letterbox-top-left" else np.floor((self.size - inner) / 2)
        elif resize == "crop":
            side = np.minimum(np.array([width, height]), np.array([width, height]).min() * self.size / self.size.min())
            side = (side * feed.get("share", 1)).round().astype(int)
            left, top = (np.array([width, height]) - side) // 2
            part = frame[top:top + side[1], left:left + side[0]]
        self.inner, self.at = inner, at
        picture = np.full((size[1], size[0], 3), feed.get("pad", 0), np.float32)
        x, y = at.astype(int)
        picture[y:y + int(inner[1]), x:x + int(inner[0])] = bilinear(part, int(inner[0]), int(inner[1]))
        if feed.get("color", "RGB") == "GRAY":
            picture = (picture @ np.float32([.114, .587, .299]))[..., None]
        elif feed.get("color", "RGB") == "RGB":
            picture = picture[:, :, ::-1]
        self.picture = np.float32((picture - np.float32(feed.get("mean", 0))) / np.float32(feed.get("scale", 1)))

    def shares(self, pixels):
        """x, y pairs in pixels of the input as shares of the frame."""
        pixels = np.asarray(pixels, float)
        return ((pixels.reshape(*pixels.shape[:-1], -1, 2) - self.at) / self.inner).reshape(pixels.shape)


# ---- decoders: what is right, by kind. Boxes and points in pixels of the input.

def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / max((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both, 1e-9)


def objects(corners, scores, labels=None, points=None, suppress=.45, together=False):
    corners, scores = np.asarray(corners, float), np.asarray(scores, float)
    labels = np.zeros(len(scores), int) if labels is None else labels
    kept = []
    for i in sorted(np.flatnonzero(scores >= LEAST - SLACK), key=lambda i: -scores[i]):
        if all((labels[i] != labels[j] and not together) or overlap(corners[i], corners[j]) <= suppress for j in kept):
            kept.append(i)
    return {"objects": [(int(labels[i]), float(scores[i]), corners[i], None if points is None else points[i]) for i in kept]}


def centred(x, y, w, h):
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)


def cells(size, strides, each=1):
    """Column, row and stride of each cell."""
    found = [(x, y, s) for s in strides for y in range(-(-int(size[1]) // s)) for x in range(-(-int(size[0]) // s)) for _ in range(each)]
    return np.array(found, float).T


def by_width(outputs, *widths):
    """The outputs as rows of these widths, one each."""
    return [next(v.reshape(-1, w) for v in outputs if v.shape[-1] == w) for w in widths]


def ultraface(outputs, size, _):
    scores, boxes = outputs[0][0], outputs[1][0]
    return objects(boxes * np.tile(size, 2), scores[:, 1:].max(1), 1 + scores[:, 1:].argmax(1))


def ultraface_raw(outputs, size, _):
    """Offsets to priors; vision/ssd/config/fd_config.py and box_utils.py."""
    scores, offsets = outputs[0][0], outputs[1][0]
    priors = []
    for stride, sides in ((8, (10, 16, 24)), (16, (32, 48)), (32, (64, 96)), (64, (128, 192, 256))):
        for y in range(-(-int(size[1]) // stride)):
            for x in range(-(-int(size[0]) // stride)):
                priors += [((x + .5) / (size[0] / stride), (y + .5) / (size[1] / stride), s / size[0], s / size[1]) for s in sides]
    p = np.clip(np.array(priors), 0, 1)
    middle, side = p[:, :2] + offsets[:, :2] * .1 * p[:, 2:], p[:, 2:] * np.exp(offsets[:, 2:] * .2)
    return objects(centred(*(np.concatenate([middle, side], 1) * np.tile(size, 2)).T), scores[:, 1], np.ones(len(scores), int))


def retinaface(outputs, size, options):
    """Pytorch_Retinaface's priors; `points` corners or face points."""
    loc, conf, marks = (v.reshape(-1, v.shape[-1]) for v in outputs)
    priors = []
    for stride, sides in ((8, (16, 32)), (16, (64, 128)), (32, (256, 512))) if not options.get("plates") else ((8, (24, 48)), (16, (96, 192)), (32, (384, 768))):
        for y in range(-(-int(size[1]) // stride)):
            for x in range(-(-int(size[0]) // stride)):
                priors += [((x + .5) * stride / size[0], (y + .5) * stride / size[1], s / size[0], s / size[1]) for s in sides]
    p = np.array(priors)
    middle, side = p[:, :2] + loc[:, :2] * .1 * p[:, 2:], p[:, 2:] * np.exp(loc[:, 2:] * .2)
    points = np.concatenate([p[:, :2] + marks[:, k:k + 2] * .1 * p[:, 2:] for k in range(0, marks.shape[1], 2)], 1)
    scores = conf[:, 1] if abs(conf.sum(1) - 1).max() < .01 else softmax(conf)[:, 1]
    return objects(centred(*(np.concatenate([middle, side], 1) * np.tile(size, 2)).T), scores, points=points * np.tile(size, points.shape[1] // 2), suppress=.4)


def yunet(outputs, size, names):
    of = dict(zip(names["names"], outputs))
    corners, scores, points = [], [], []
    for s in (8, 16, 32):
        x, y, _ = cells(size, (s,))
        cls, obj, box, marks = (of[f"{kind}_{s}"][0] for kind in ("cls", "obj", "bbox", "kps"))
        corners.append(centred((x + box[:, 0]) * s, (y + box[:, 1]) * s, np.exp(box[:, 2]) * s, np.exp(box[:, 3]) * s))
        scores.append(np.sqrt(np.clip(cls[:, 0], 0, 1) * np.clip(obj[:, 0], 0, 1)))
        points.append((marks.reshape(-1, 5, 2) + np.stack([x, y], -1)[:, None]) * s)
    return objects(np.concatenate(corners), np.concatenate(scores), points=np.concatenate(points).reshape(-1, 10), suppress=.3)


def yunet_rows(outputs, size, _):
    """YuNet of 2021: offsets to priors; the score is the root of class and IoU."""
    loc, conf, iou = by_width(outputs, 14, 2, 1)
    half = [(int(size[k]) + 1) // 2 // 2 for k in (0, 1)]
    maps = []
    for _ in range(4):
        half = [v // 2 for v in half]
        maps.append(half)
    priors = []
    for (w, h), stride, sides in zip(maps, (8, 16, 32, 64), ((10, 16, 24), (32, 48), (64, 96), (128, 192, 256))):
        priors += [((x + .5) * stride / size[0], (y + .5) * stride / size[1], s / size[0], s / size[1]) for y in range(h) for x in range(w) for s in sides]
    p = np.array(priors)
    middle, side = p[:, :2] + loc[:, :2] * .1 * p[:, 2:], p[:, 2:] * np.exp(loc[:, 2:4] * .2)
    points = np.concatenate([p[:, :2] + loc[:, k:k + 2] * .1 * p[:, 2:] for k in range(4, 14, 2)], 1)
    scores = np.sqrt(conf[:, 1] * np.clip(iou[:, 0], 0, 1))
    return objects(centred(*(np.concatenate([middle, side], 1) * np.tile(size, 2)).T), scores, points=points * np.tile(size, 5), suppress=.3)


def scrfd(outputs, size, _):
    corners, scores, points = [], [], []
    for s in (8, 16, 32):
        x, y, _ = cells(size, (s,), 2)
        n, middle = len(x), np.stack([x, y], -1) * s
        score, box, marks = (next(v.reshape(n, -1) for v in outputs if v.size == n * v.shape[-1] and v.shape[-1] == width) for width in (1, 4, 10))
        corners.append(np.concatenate([middle - box[:, :2] * s, middle + box[:, 2:] * s], 1))
        scores.append(score[:, 0])
        points.append((marks.reshape(n, 5, 2) * s + middle[:, None]).reshape(n, 10))
    return objects(np.concatenate(corners), np.concatenate(scores), points=np.concatenate(points))


def yolox(outputs, size, _):
    rows = outputs[0].reshape(-1, outputs[0].shape[-1])
    x, y, s = cells(size, (8, 16, 32))
    corners = centred((rows[:, 0] + x) * s, (rows[:, 1] + y) * s, np.exp(rows[:, 2]) * s, np.exp(rows[:, 3]) * s)
    scores = rows[:, 4:5] * rows[:, 5:]
    return objects(corners, scores.max(1), scores.argmax(1))


def yolox_rows(outputs, size, _):
    """A picture's number, class, score and corners, after suppression."""
    rows = outputs[0]
    return objects(rows[:, 3:7], rows[:, 2], rows[:, 1].astype(int), suppress=1)


def nanodet(outputs, size, _):
    corners, scores = [], []
    for s in (8, 16, 32):
        n = int(size[0] // s) * int(size[1] // s)
        score, bins = sorted((v.reshape(n, -1) for v in outputs if v.size in (n * 80, n * 32)), key=lambda v: -v.shape[1])
        reach = softmax(bins.reshape(n, 4, 8)) @ np.arange(8) * s
        x, y, _ = cells(size, (s,))
        x, y = (x + .5) * s, (y + .5) * s
        corners.append(np.stack([x - reach[:, 0], y - reach[:, 1], x + reach[:, 2], y + reach[:, 3]], -1))
        scores.append(score)
    corners, scores = np.clip(np.concatenate(corners), 0, np.tile(size, 2)), np.concatenate(scores)
    return objects(corners, scores.max(1), scores.argmax(1), suppress=.6)


def fastestdet(outputs, size, _):
    values = outputs[0][0]
    rows, columns = values.shape[1:]
    y, x = np.mgrid[0:rows, 0:columns]
    score = values[0] ** .6 * values[5:].max(0) ** .4
    middle = (np.tanh(values[1]) + x) / columns * size[0], (np.tanh(values[2]) + y) / rows * size[1]
    corners = centred(*middle, sigmoid(values[3]) * size[0], sigmoid(values[4]) * size[1])
    return objects(corners.reshape(-1, 4), score.ravel(), values[5:].argmax(0).ravel())


def fastest_v2(outputs, size, _):
    """One table of cells: offsets, objectness of three anchors, classes."""
    anchors = np.array([12.64, 19.39, 37.88, 51.48, 55.71, 138.31, 126.91, 78.23, 131.57, 214.55, 279.92, 258.87]).reshape(2, 3, 2)
    corners, scores, labels, at = [], [], [], 0
    for level, stride in enumerate((16, 32)):
        x, y, _ = cells(size, (stride,))
        rows, at = outputs[0].reshape(-1, 95)[at:at + len(x)], at + len(x)
        for a in range(3):
            box = rows[:, 4 * a:4 * a + 4]
            side = (box[:, 2:] * 2) ** 2 * anchors[level, a]
            corners.append(centred((box[:, 0] * 2 - .5 + x) * stride, (box[:, 1] * 2 - .5 + y) * stride, *side.T))
            scores.append(rows[:, 12 + a] * rows[:, 15:].max(1))
            labels.append(rows[:, 15:].argmax(1))
    return objects(np.concatenate(corners), np.concatenate(scores), np.concatenate(labels))


def yolov8(outputs, size, _):
    rows = outputs[0][0].T
    return objects(centred(*rows[:, :4].T), rows[:, 4:].max(1), rows[:, 4:].argmax(1))


def yolov8_points(outputs, size, options):
    """Maps of 64 bins, a score and five points with a visibility each, before YOLOv8's last step."""
    corners, scores, points = [], [], []
    for values in outputs:
        rows = values[0].reshape(values.shape[1], -1).T
        x, y, s = cells(size, (int(size[0]) // values.shape[3],))
        reach = softmax(rows[:, :64].reshape(-1, 4, 16)) @ np.arange(16)
        corners.append(np.stack([x + .5 - reach[:, 0], y + .5 - reach[:, 1], x + .5 + reach[:, 2], y + .5 + reach[:, 3]], -1) * s[:, None])
        scores.append(sigmoid(rows[:, 64]))
        points.append((rows[:, 65:].reshape(len(rows), -1, 3)[:, :, :2] * 2 + np.stack([x, y], -1)[:, None]) * s[:, None, None])
    return objects(np.concatenate(corners), np.concatenate(scores), points=np.concatenate(points).reshape(len(np.concatenate(scores)), -1))


def yolov8_boxes(outputs, size, options):
    """YOLOv8's rows without the coefficients of masks after the classes."""
    return yolov8([outputs[0][:, :4 + options["classes"]]], size, options)


def distances(outputs, size, options):
    """A row for each cell: classes and, after or before them, NanoDet's distances as bins or as numbers of strides."""
    rows, count = outputs[0][0], options["classes"]
    x, y, s = cells(size, options["strides"])
    scores, reach = (rows[:, 4:], rows[:, :4]) if options.get("numbers") else (rows[:, :count], softmax(rows[:, count:].reshape(len(rows), 4, -1)) @ np.arange(8))
    half = options.get("middle", 0)
    x, y, reach = (x + half) * s, (y + half) * s, reach * s[:, None]
    corners = np.clip(np.stack([x - reach[:, 0], y - reach[:, 1], x + reach[:, 2], y + reach[:, 3]], -1), 0, np.tile(size, 2))
    return objects(corners, scores.max(1), scores.argmax(1), suppress=.6)


def picodet(outputs, size, options):
    """PaddleDetection's four levels of scores and bins."""
    rows = [np.concatenate([next(v[0] for v in outputs if v.shape[1:] == (n, w)) for w in (options["classes"], 32)], 1) for n in [-(-int(size[0]) // s) * -(-int(size[1]) // s) for s in (8, 16, 32, 64)]]
    return distances([np.concatenate(rows)[None]], size, dict(options, strides=(8, 16, 32, 64), middle=.5))


def fastestdet_rows(outputs, size, _):
    """FastestDet with its last step in the graph: centre and sides, objectness, classes."""
    rows = outputs[0][0]
    return objects(centred(*rows[:, :4].T), rows[:, 4] * rows[:, 5:].max(1), rows[:, 5:].argmax(1))


def end_to_end(outputs, size, _):
    rows = outputs[0][0]
    return objects(rows[:, :4], rows[:, 4], rows[:, 5].astype(int), suppress=1)


def centerface(outputs, size, _):
    heat, scale, offset, marks = (v[0] for v in outputs)
    y, x = np.mgrid[0:heat.shape[1], 0:heat.shape[2]]
    h, w = np.exp(scale) * 4
    left, top = (x + offset[1] + .5) * 4 - w / 2, (y + offset[0] + .5) * 4 - h / 2
    points = np.stack([v for k in range(5) for v in (marks[2 * k + 1] * w + left, marks[2 * k] * h + top)], -1)
    return objects(np.stack([left, top, left + w, top + h], -1).reshape(-1, 4), heat[0].ravel(), points=points.reshape(-1, 10), suppress=.3)


def blaze(outputs, size, options):
    scores = np.concatenate([v.reshape(-1) for v in outputs if v.shape[-1] == 1])
    boxes = np.concatenate([v.reshape(-1, v.shape[-1]) for v in outputs if v.shape[-1] > 1])
    grid = np.concatenate([cells(size, (s,), each) for s, each in options["levels"]], 1)
    middle = ((grid[:2] + .5) * grid[2]).T
    points = (boxes[:, 4:].reshape(len(boxes), -1, 2) + middle[:, None]).reshape(len(boxes), -1)
    x, y = (boxes[:, :2] + middle).T
    return objects(centred(x, y, boxes[:, 2], boxes[:, 3]), sigmoid(scores), points=points, suppress=.3)


def text_map(outputs, size, _):
    """PP-OCR's regions: components above .3, the mean of which is above .5."""
    probability = outputs[0].reshape(outputs[0].shape[-2:])
    left, found = probability > .3, []
    while left.any():
        start = tuple(np.argwhere(left)[0])
        ahead, inside = [start], []
        left[start] = False
        while ahead:
            y, x = ahead.pop()
            inside.append((y, x))
            for v in range(max(y - 1, 0), min(y + 2, left.shape[0])):
                for u in range(max(x - 1, 0), min(x + 2, left.shape[1])):
                    if left[v, u]:
                        left[v, u] = False
                        ahead.append((v, u))
        c = np.array(inside)
        (y0, x0), (y1, x1) = c.min(0), c.max(0) + 1
        if min(y1 - y0, x1 - x0) >= 3:
            found.append(((x0 + x1) / 2, (y0 + y1) / 2, probability[c[:, 0], c[:, 1]].mean()))
    return {"regions": found}


def ctc(outputs, size, options):
    """Greedy, with the blank first or last and the dictionary that the authors use."""
    rows = outputs[0].reshape(-1, outputs[0].shape[-1])
    if options.get("turned"):
        rows = rows.T
    best, text, last = rows.argmax(1), "", -1
    blank = 0 if options.get("blank", "first") == "first" else rows.shape[1] - 1
    for b in best:
        if b not in (blank, last):
            text += options["characters"][b - (blank == 0)]
        last = b
    return {"text": text}


def classes(outputs, size, options):
    """The best class of each vector, by softmax where the numbers are logits."""
    found = []
    for values in outputs:
        values = values.ravel()
        if options.get("logits"):
            values = softmax(values)
        found.append((int(values.argmax()), float(values.max())))
    return {"best": found}


def vector(outputs, size, _):
    return {"embedding": outputs[0].ravel()}


def class_map(outputs, size, options):
    """`alone`: a sigmoid for each class, where none reaches a half there is none of them."""
    values = outputs[options.get("output", 0)][0]
    axis = -1 if options.get("last") else 0
    best = values.argmax(axis)
    return {"classes": np.where(values.max(axis) < .5, values.shape[axis], best) if options.get("alone") else best}


def foreground(outputs, size, options):
    """The share of each pixel; `logits`: before a sigmoid."""
    values = np.squeeze(outputs[options.get("output", 0)])
    return {"map": sigmoid(values) if options.get("logits") else values}


def mesh(outputs, size, options):
    """Points in pixels (or shares) of one thing that fills the picture."""
    if "score" in options and outputs[options["score"]].ravel()[0] < LEAST:
        return {"none": True}                                        # the thing is not there
    rows = outputs[options.get("output", 0)].reshape(-1, options.get("stride", 3))[:, :2]
    if "more" in options:
        rows = np.concatenate([rows, outputs[options["more"]].reshape(-1, 3)[:, :2]])
    return {"points": rows * (size if options.get("shares") else 1)}


def posenet(outputs, size, options):
    """One person: the best cell of each heat map, moved by the offsets there."""
    heat, offsets = (outputs[k][0] for k in options["outputs"])
    points = []
    for k in range(17):
        y, x = np.unravel_index(heat[:, :, k].argmax(), heat.shape[:2])
        points.append((x * 16 + offsets[y, x, k + 17], y * 16 + offsets[y, x, k]))
    return {"points": np.array(points)}


def offset_maps(outputs, size, _):
    """OpenSeeFace's landmarks(): scores, then offsets down and to the right, as logits over 16."""
    maps = outputs[0][0].reshape(3, 66, 28 * 28)
    best = maps[0].argmax(1)
    share = np.clip(maps[1:, np.arange(66), best], 1e-7, 1 - 1e-7)
    down, right = np.log(share / (1 - share)) / 16
    return {"points": (size[0] - 1) * np.stack([best % 28 / 27 + right, best // 28 / 27 + down], -1)}


def number(outputs, size, _):
    return {"number": float(outputs[0].ravel()[0])}


def peaks(outputs, size, _):
    """OpenSeeFace's faces: peaks of a map of scores, with half of the side as a share of 112."""
    score, radius = outputs[0][0]
    y, x = np.nonzero((score == outputs[1][0][0]) & (score >= LEAST - SLACK))
    half = radius[y, x] * 112
    return objects(np.stack([x * 4 - half, y * 4 - half, x * 4 + half, y * 4 + half], -1), score[y, x])


def angles(outputs, size, _):
    return {"angles": outputs[0].ravel()}


def onet(outputs, size, _):
    """A face in a region: by probability; box and points in shares of it."""
    move, score = (next(v.ravel() for v in outputs if v.size == n) for n in (4, 2))
    marks = next((v.ravel() for v in outputs if v.size == 10), None)
    return {"refined": (float(score[1]), np.array([move[0], move[1], 1 + move[2], 1 + move[3]]) * np.tile(size, 2), None if marks is None else np.stack([marks[:5], marks[5:]], 1) * size)}


def pnet(outputs, size, _):
    """Squares of 12 pixels, two apart, that move by shares of their side; the picture's columns come first."""
    move, score = (next(v[0] for v in outputs if v.shape[-1] == n) for n in (4, 2))
    x, y = np.mgrid[0:move.shape[0], 0:move.shape[1]]
    corners = np.stack([2 * x, 2 * y, 2 * x + 12, 2 * y + 12], -1) + 12 * move
    return objects(corners.reshape(-1, 4), score[..., 1].ravel())


def lanes(outputs, size, _):
    """LSTR: two bounds and six coefficients a lane."""
    found = []
    for logits, curve in zip(outputs[0][0], outputs[1][0]):
        if softmax(logits).argmax() != 1:
            continue
        low, high, k, f, m, n, b, c = curve
        y = np.linspace(low, high, 50)
        found.append((float(softmax(logits)[1]), np.stack([(k / (y - f) ** 2 + m / (y - f) + n + b * y - c) * size[0], y * size[1]], 1)))
    return {"lanes": found}


def picture_out(outputs, size, _):
    return {"picture": outputs[0]}


def no_head(outputs, size, _):
    return {"none": True}


DECODERS = {f.__name__.replace("_", "-"): f for f in (
    ultraface, ultraface_raw, retinaface, yunet, yunet_rows, scrfd, yolox, yolox_rows, nanodet, fastestdet, fastest_v2, yolov8, end_to_end, centerface, blaze,
    text_map, ctc, classes, vector, class_map, foreground, mesh, angles, onet, pnet, lanes, picture_out, no_head,
    yolov8_points, yolov8_boxes, distances, picodet, fastestdet_rows, posenet, number, peaks, offset_maps)}


# ---- the element

def element(model, frame_file, properties):
    """The first line of the element, and its warnings and errors."""
    with tempfile.TemporaryDirectory() as folder:
        written = f"{folder}/lines.json"
        command = ["gst-launch-1.0", "filesrc", f"location={frame_file}", "!", "pngdec", "!", "videoconvert", "!", "video/x-raw,format=BGR", "!", "clinfer", f"model={model}",
                   "config=INFERENCE_PRECISION=f32", *properties.split(), "!", "clpublish", f"file-path={written}", "!", "fakesink"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        lines = []
        if os.path.exists(written):
            with open(written, encoding="utf-8") as file:
                lines = [line for line in file.read().splitlines() if line.startswith("{")]
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("WARNING:", "ERROR:"))]
    return json.loads(lines[0]) if lines else None, said


# ---- comparing

def corners_of(found):
    box = found["detection"]["bounding_box"]
    return np.array([box[key] for key in ("x_min", "y_min", "x_max", "y_max")])


def points_of(found):
    return np.array([(p["x"], p["y"]) for p in found.get("landmarks") or found.get("keypoints") or []])


def compare_objects(line, right, fed):
    ours = [o for o in line.get("objects", []) if "detection" in o]
    for label, score, corners, points in right:
        corners = np.clip(fed.shares(corners), 0, 1)
        near = min((o for o in ours if o["detection"]["label_id"] == label), key=lambda o: abs(corners_of(o) - corners).max(), default=None)
        if near is None or abs(corners_of(near) - corners).max() > BOX:
            if score >= LEAST + SLACK:
                return f"no object {label} at {corners.round(3)} with {score:.3f}, but {[(o['detection']['label_id'], corners_of(o).round(2).tolist(), o['detection']['confidence']) for o in ours][:3]}"
            continue
        ours.remove(near)
        if abs(near["detection"]["confidence"] - score) > SLACK:
            return f"score {near['detection']['confidence']}, right is {score:.3f}"
        if points is not None and len(points) > 0:
            found, wanted = points_of(near), fed.shares(points).reshape(-1, 2)
            if found.shape != wanted.shape or abs(found - wanted).max() > POINT:
                return f"{len(found)} points, or elsewhere; right are {len(wanted)}"
    surplus = [o for o in ours if o["detection"]["confidence"] >= LEAST + SLACK]
    return f"{len(surplus)} objects too many: {surplus[0]['detection']}" if surplus else ""


def answers_of(line):
    return [(key, value) for item in line.get("objects", []) for key, value in item.items() if isinstance(value, dict) and key != "detection"]


def compare(line, right, fed):
    """What is wrong with a line, or ''."""
    if "objects" in right:
        return compare_objects(line, right["objects"], fed)
    if "regions" in right:
        ours, missing = [o for o in line.get("objects", []) if "detection" in o], 0
        wanted = [r for r in right["regions"] if r[2] >= .55]
        for x, y, _ in wanted:
            at = fed.shares([x, y])
            missing += not any(abs((corners_of(o)[:2] + corners_of(o)[2:]) / 2 - at).max() < .02 for o in ours)
        most = sum(r[2] >= .45 for r in right["regions"])
        return f"{missing} of {len(wanted)} regions are missing, {len(ours)} found" if missing > len(wanted) // 20 or len(ours) > most + most // 20 else ""
    if "text" in right:
        texts = [value["label"] for key, value in answers_of(line) if key.startswith("text")]
        return "" if texts == [right["text"]] else f"text {texts}, right is {right['text']!r}"
    if "best" in right:
        ours = [(value["label_id"], value["confidence"]) for key, value in answers_of(line) if "confidence" in value and "label_id" in value]
        for label, score in right["best"]:
            if not any(label == a and abs(score - b) <= SLACK for a, b in ours):
                return f"classes {ours[:4]}, right is {label} at {score:.3f}"
        return ""
    if "number" in right:
        numbers = [float(value["label"]) for _, value in answers_of(line) if re.fullmatch(r"-?[0-9.]+", str(value.get("label", "")))]
        return "" if any(abs(n - right["number"]) < 1 for n in numbers) else f"numbers {numbers}, right is {right['number']:.2f}"
    if "angles" in right:
        found = dict(answers_of(line))
        ours = [float(found[key]["label"]) for key in ("yaw", "pitch", "roll") if key in found]
        return "" if len(ours) == 3 and max(abs(np.array(ours) - right["angles"])) < 2 else f"angles {ours}, right are {right['angles'].round(1).tolist()}"
    if "embedding" in right:
        vectors = [np.array(value["data"]) for key, value in answers_of(line) if key.startswith("embedding")]
        for v in vectors:
            if len(v) == len(right["embedding"]) and v @ right["embedding"] / np.linalg.norm(v) / np.linalg.norm(right["embedding"]) > .995:
                return ""
        return f"{len(vectors)} vectors, or another direction"
    if "points" in right:
        found = [points_of(o) for o in line.get("objects", []) if o.get("landmarks") or o.get("keypoints")]
        wanted = fed.shares(right["points"])
        return "" if len(found) == 1 and found[0].shape == wanted.shape and abs(found[0] - wanted).max() <= POINT else f"{[len(f) for f in found]} points, or elsewhere; right are {len(wanted)}"
    if "refined" in right:
        score, corners, points = right["refined"]
        ours = [o for o in line.get("objects", []) if "detection" in o]
        if score < LEAST:
            return f"{len(ours)} faces, right is none" if ours else ""
        return compare_objects(line, [(0, score, corners, None if points is None else points.ravel())], fed)
    if "lanes" in right:
        ours = [o for o in line.get("objects", []) if o.get("landmarks")]
        if len(ours) != len(right["lanes"]):
            return f"{len(ours)} lanes, right are {len(right['lanes'])}"
        for _, points in right["lanes"]:
            wanted = fed.shares(points)
            inside = wanted[(wanted >= 0).all(1) & (wanted <= 1).all(1)]
            apart = min(np.mean([np.hypot(*(points_of(o) - p).T).min() for p in inside]) for o in ours)
            if apart > .03:
                return f"a lane is {apart:.3f} away"
        return ""
    if "classes" in right:
        maps = line.get("segmentation")
        maps = maps if isinstance(maps, list) else [maps] if maps else []
        if not maps:
            return "no segmentation"
        for label in np.unique(right["classes"]):
            wanted = (right["classes"] == label).mean()
            ours = sum(part["share"] for part in maps[0]["classes"] if part["label_id"] == label)
            if abs(ours - wanted) > .02:
                return f"class {label} covers {ours:.3f}, right is {wanted:.3f}"
        return ""
    if "map" in right:
        ours = [m for m in line.get("maps", []) if m["kind"] in ("saliency", "depth")]
        if not ours:
            return "no map"
        return "" if abs(ours[0]["maximum"] - right["map"].max()) < .05 and abs(ours[0]["minimum"] - right["map"].min()) < .05 else f"map {ours[0]}, right is {right['map'].min():.3f} to {right['map'].max():.3f}"
    results = [key for key in ("objects", "segmentation", "maps") if line.get(key)]
    return f"{results}, right are raw tensors" if results else ""


FAMILY = re.compile(r"nothing states how the model takes pictures[^;]*; (.*?) is assumed, as (.*?) takes? them")


def false_claims(said, feed):
    """What a warning claims of the family that its authors' code does not do."""
    if any("are possibly of the head" in text for text in said):
        return ""                                                    # the family itself is in doubt, and the claim with it
    for text in said:
        found = FAMILY.search(text)
        if not found:
            continue
        claims = found.group(1)
        resize = feed.get("resize", "stretch").split("-")[0]
        wrong = [word for word, mode in (("stretched", "stretch"), ("letterboxed", "letterbox"), ("cropped", "crop")) if word in claims and mode != resize]
        wrong += [order for order in ("RGB", "BGR") if order in claims.split(", ") and order != feed.get("color", "RGB")]
        numbers = re.search(r"mean ([-\d.,]+), scale ([-\d.,]+)", claims)
        if numbers:
            for name, text_of, default in (("mean", numbers.group(1), 0), ("scale", numbers.group(2), 1)):
                ours = np.array([float(v) for v in text_of.rstrip(",").split(",")])
                if abs(ours - np.array(feed.get(name, default))).max() > 1:
                    wrong.append(f"{name} {text_of}")
        if wrong:
            return f"{', '.join(wrong)}, as {found.group(2)}"
    return ""


# ---- the table

class OfOpenvino:
    """An IR with onnxruntime's calls."""

    def __init__(self, path):
        import openvino

        self.model = openvino.Core().read_model(path)
        self.compiled = openvino.compile_model(self.model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def get_inputs(self):
        return [Port(i.any_name, list(i.shape)) for i in self.model.inputs]

    def get_outputs(self):
        return [Port(o.any_name, list(o.shape)) for o in self.model.outputs]

    def run(self, _, given):
        found = self.compiled({name: value.astype(self.model.input(name).element_type.to_dtype()) for name, value in given.items()})
        return [np.float32(found[o]) for o in self.compiled.outputs]


Port = collections.namedtuple("Port", "name shape")


class ByFormula:
    """A network of QLinear operations by their formula, with onnxruntime's calls: sums of integers, times a factor in f32, rounded once.

    onnxruntime itself adds by an approximation that depends on the processor (it rounds -32.50001 to -32), and networks as deep as MobileNet
    make other scores of a single such step.
    """

    def __init__(self, path):
        self.graph = onnx.load(path).graph
        self.known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in self.graph.initializer}

    def get_inputs(self):
        return [Port(i.name, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in self.graph.input if i.name not in self.known]

    def get_outputs(self):
        return [Port(o.name, []) for o in self.graph.output]

    @staticmethod
    def bytes_of(steps, zero):
        limits = np.iinfo(zero.dtype)
        return np.clip(np.rint(steps) + int(zero), limits.min, limits.max).astype(zero.dtype)

    @staticmethod
    def sums(x, weights, attributes):
        """A convolution of integers."""
        (top, left, bottom, right), (down, across) = attributes.get("pads", (0, 0, 0, 0)), attributes.get("strides", (1, 1))
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        group, (out, _, rows, columns) = attributes.get("group", 1), weights.shape
        height, width = (x.shape[2] - rows) // down + 1, (x.shape[3] - columns) // across + 1
        x, weights = x[0].reshape(group, -1, *x.shape[2:]), weights.reshape(group, out // group, -1, rows, columns)
        total = np.zeros((group, out // group, height * width))
        for r in range(rows):
            for c in range(columns):
                part = x[:, :, r:r + down * (height - 1) + 1:down, c:c + across * (width - 1) + 1:across]
                total += weights[..., r, c].astype(float) @ part.reshape(group, part.shape[1], -1).astype(float)  # exact: below 2^53
        return total.reshape(1, out, height, width)

    def run(self, _, given):
        of = {**self.known, **given}

        def steps(value, zero):
            zero = of[zero].astype(np.int64)
            return of[value].astype(np.int64) - zero.reshape(zero.shape + (1,) * (of[value].ndim - 1) if zero.size > 1 else ())

        def factor(x, w, y):
            return np.float32(of[x]) * np.float32(of[w]) / np.float32(of[y])
        for node in self.graph.node:
            i, attributes = list(node.input), {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "QuantizeLinear":
                made = self.bytes_of(np.float32(of[i[0]]) / of[i[1]], of[i[2]])
            elif node.op_type == "DequantizeLinear":
                made = np.float32(steps(i[0], i[2])) * of[i[1]]
            elif node.op_type == "QLinearConv":
                total = self.sums(steps(i[0], i[2]), steps(i[3], i[5]), attributes) + (of[i[8]].reshape(-1, 1, 1) if len(i) > 8 else 0)
                made = self.bytes_of(np.float32(total) * factor(i[1], i[4], i[6]).reshape(-1, 1, 1), of[i[7]])
            elif node.op_type == "QLinearMatMul":
                made = self.bytes_of(np.float32(steps(i[0], i[2]) @ steps(i[3], i[5])) * factor(i[1], i[4], i[6]), of[i[7]])
            elif node.op_type == "QLinearAdd":
                made = self.bytes_of((steps(i[0], i[2]) * float(of[i[1]]) + steps(i[3], i[5]) * float(of[i[4]])) / float(of[i[6]]), of[i[7]])
            elif node.op_type == "QLinearGlobalAveragePool":
                pixels = np.float32(np.prod(of[i[0]].shape[2:]))
                made = self.bytes_of(np.float32(steps(i[0], i[2]).sum((2, 3), keepdims=True)) * (of[i[1]] / (of[i[3]] * pixels)), of[i[4]])
            elif node.op_type == "Reshape":
                made = of[i[0]].reshape(of[i[1]])
            else:
                raise ValueError(f"no formula of {node.op_type}")
            of[node.output[0]] = made
        return [of[o.name] for o in self.graph.output]


def session_of(path, shape):
    """Of a file whose size is an exporter's example: in this shape."""
    if path.endswith(".xml"):
        return OfOpenvino(path)
    model = path
    if shape:
        loaded = onnx.load(path)
        for dimension, size in zip(loaded.graph.input[0].type.tensor_type.shape.dim, shape):
            dimension.dim_value = size
        for output in loaded.graph.output:
            output.type.tensor_type.ClearField("shape")
        model = loaded.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def right_of(row, path, frame):
    """What the authors' code finds, and how the frame was fed."""
    session = ByFormula(path) if row.get("by") == "formula" else session_of(path, row.get("reshaped"))
    inputs = session.get_inputs()
    shape = list(row.get("shape") or row.get("reshaped") or inputs[0].shape)
    channels_last = shape[-1] in (1, 3) and shape[1] not in (1, 3)
    size = (shape[2], shape[1]) if channels_last else (shape[3], shape[2])
    fed = Fed(frame, size, row.get("feed", {}))
    tensor = fed.picture[None] if channels_last else fed.picture.transpose(2, 0, 1)[None]
    if row.get("feed", {}).get("transposed"):                        # TensorFlow's MTCNN
        tensor = tensor.transpose(0, 2, 1, 3)
    given = {inputs[0].name: np.ascontiguousarray(np.repeat(tensor, shape[0] if isinstance(shape[0], int) else 1, 0))}
    for more in inputs[1:]:
        given[more.name] = np.full(more.shape, row.get("others", {}).get(more.name, 0), np.float32)
    kinds = {"tensor(float16)": np.float16, "tensor(int64)": np.int64}
    given = {i.name: given[i.name].astype(kinds.get(getattr(i, "type", ""), np.float32)) for i in inputs}
    outputs = session.run(None, given)
    options = dict(row.get("options", {}), names=[o.name for o in session.get_outputs()])
    if row.get("characters") == "metadata":
        options["characters"] = session.get_modelmeta().custom_metadata_map["character"].split("\n") + [" "]
    elif "characters" in row:
        with open(os.path.join(os.path.dirname(path), row["characters"]), encoding="utf-8") as file:
            options["characters"] = file.read().rstrip("\n").split("\n") + [" "]
    return DECODERS[row["decode"]](outputs, np.array(size, float), options), fed


def verdict(row, folder, shared):
    path = os.path.join(folder, row["source"] if row["version"] == "commit" or len(row["version"]) == 40 else f"{row['source']}-{row['version']}", row["path"])
    if not os.path.exists(path):
        return "absent", path
    with open(path, "rb") as file:
        if hashlib.sha256(file.read()).hexdigest() != row["sha256"]:
            return "absent", "another file than the table's"
    picture = f"{shared}/data/frames/{row['picture']}.png"
    line, said = element(path, picture, "")
    if "refusal" in row:
        text = " ".join(said)
        return ("refused", "") if line is None and row["refusal"] in text else ("SILENT", f"not refused: {text[-300:]}")
    try:
        right, fed = right_of(row, path, next(frames(picture, 1)))
    except Exception as error:                                       # of onnxruntime, which has many kinds
        return "absent", f"no reference: {error}"
    claims = false_claims(said, row.get("feed", {}))
    why = "nothing came out" if line is None else compare(line, right, fed)
    if claims:
        return "FALSE", f"{claims}; {why or 'right otherwise'}"
    if not why:
        return "right", " / ".join(said)
    of_picture = "hint" in row and any("nothing states how" in text for text in said)
    beside = of_picture or line is None or not (line.get("objects") or line.get("segmentation") or line.get("maps")) or "tensors" in json.dumps(line)
    if not (said and beside):
        return "SILENT", f"{why} || {' / '.join(said)[:400]}"
    told = f"{why} || {' / '.join(said)[:500]}"
    if "hint" not in row:
        return "said", told
    hinted, said_then = element(path, picture, row["hint"])
    left = "nothing came out: " + " ".join(said_then)[-300:] if hinted is None else compare(hinted, right, fed)
    return ("said", f"right with {row['hint']} || {told}") if not left else ("SILENT", f"wrong even with {row['hint']}: {left}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("shared")
    parser.add_argument("--list", action="store_true", help="only print what is in the table")
    parser.add_argument("--verbose", action="store_true", help="print what is said of right results, too")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    with open(f"{HERE}/public_models.json", encoding="utf-8") as file:
        table = json.load(file)
    if arguments.list:
        for row in table:
            print(f"{row['name']}: {row['source']} {row['version'][:12]} {row['path']}")
        return 0
    if not os.path.isdir(arguments.folder):
        print("skipped: the folder of public models is not here")
        return 77
    counts = dict.fromkeys(("right", "said", "refused", "SILENT", "FALSE", "absent"), 0)
    for row in table:
        if arguments.names and row["name"] not in arguments.names:
            continue
        try:
            word, why = verdict(row, arguments.folder, arguments.shared)
        except subprocess.TimeoutExpired:
            word, why = "SILENT", "nothing came out for fifteen minutes"
        counts[word] += 1
        print(f"{word:7} {row['name']}" + (f": {why}" if word != "right" or arguments.verbose else ""), flush=True)
    print(", ".join(f"{number} {word}" for word, number in counts.items()))
    return 1 if counts["SILENT"] or counts["FALSE"] else 0


if __name__ == "__main__":
    sys.exit(main())
