"""What the outputs of public models mean, by kind: decoders written apart from the product's. Boxes and points are in pixels of the input."""
import numpy as np

USUAL = LEAST = .5                                                   # threshold
SLACK = .03                                                          # scores this near it may be on either side


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -80, 80)))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


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
    """Pytorch_Retinaface's priors, from 16 pixels on or `least` (plates); points are corners or face points."""
    loc, conf, marks = (v.reshape(-1, v.shape[-1]) for v in outputs)
    priors = []
    least = options.get("least", 16)
    for stride, sides in ((8, (least, 2 * least)), (16, (4 * least, 8 * least)), (32, (16 * least, 32 * least))):
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


def yolox_logits(outputs, size, options):
    """bubbliiiing's YOLOX, whose graph ends before the sigmoid of the scores."""
    rows = outputs[0].reshape(-1, outputs[0].shape[-1])
    return yolox([np.concatenate([rows[:, :4], sigmoid(rows[:, 4:])], 1)], size, options)


def yolox_rows(outputs, size, _):
    """A picture's number, class, score and corners, after suppression."""
    rows = outputs[0]
    return objects(rows[:, 3:7], rows[:, 2], rows[:, 1].astype(int), suppress=1)


def nanodet(outputs, size, options):
    corners, scores = [], []
    for s in (8, 16, 32):
        n = int(size[0] // s) * int(size[1] // s)
        score, bins = sorted((v.reshape(n, -1) for v in outputs if v.size in (n * options.get("classes", 80), n * 32)), key=lambda v: v.shape[1] == 32)
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


def yolov5(outputs, size, _):
    """Rows of a centre, sides, objectness and classes in pixels."""
    rows = outputs[0][0].astype(float)
    return objects(centred(*rows[:, :4].T), rows[:, 4] * rows[:, 5:].max(1), rows[:, 5:].argmax(1))


def yolo5face(outputs, size, _):
    """YOLO5Face's three raw maps [1,3,h,w,16]: box, objectness, five points in anchors from the cell's corner, one class."""
    sides = np.array([4, 5, 8, 10, 13, 16, 23, 29, 43, 55, 73, 105, 146, 217, 231, 300, 335, 433], float).reshape(3, 3, 2)
    corners, scores, points = [], [], []
    for level, values in enumerate(sorted(outputs, key=lambda v: -v.size)):
        rows, columns = values.shape[2:4]
        stride = size[0] / columns
        y, x = np.mgrid[0:rows, 0:columns]
        for a in range(3):
            cell, side = values[0, a].astype(float), sides[level, a]
            middle = (sigmoid(cell[..., :2]) * 2 - .5 + np.stack([x, y], -1)) * stride
            extent = (sigmoid(cell[..., 2:4]) * 2) ** 2 * side
            corners.append(np.concatenate([middle - extent / 2, middle + extent / 2], -1).reshape(-1, 4))
            scores.append((sigmoid(cell[..., 4]) * sigmoid(cell[..., 15])).ravel())
            points.append((cell[..., 5:15].reshape(rows, columns, 5, 2) * side + (np.stack([x, y], -1) * stride)[:, :, None]).reshape(-1, 10))
    return objects(np.concatenate(corners), np.concatenate(scores), points=np.concatenate(points))


def detection_output(outputs, size, _):
    """OpenVINO's rows of 7: the picture's number, class, score and corners in shares; they end at a number below 0."""
    rows = outputs[0].reshape(-1, 7)
    ends = np.flatnonzero(rows[:, 0] < 0)
    rows = rows[:ends[0]] if len(ends) else rows
    return objects(rows[:, 3:] * np.tile(size, 2), rows[:, 2], rows[:, 1].astype(int), suppress=1)


def own_anchors(outputs, size, _):
    """STMicroelectronics' SSD: scores, moves of corners in sides of the anchors, and the anchors' corners."""
    scores, moves, anchors = (v[0].astype(float) for v in outputs)
    side = np.tile(anchors[:, 2:] - anchors[:, :2], 2)
    return objects((anchors + moves * side) * np.tile(size, 2), scores[:, 1:].max(1), 1 + scores[:, 1:].argmax(1))


def yolov8(outputs, size, options):
    """`most`: quantised scores come out larger than this, by less than a step."""
    rows = outputs[0][0].T
    return objects(centred(*rows[:, :4].T), np.minimum(rows[:, 4:].max(1), options.get("most", np.inf)), rows[:, 4:].argmax(1))


def yolov8_pose(outputs, size, _):
    """A person's box and score, then 17 points with a confidence each."""
    rows = outputs[0][0].T.astype(float)
    return objects(centred(*rows[:, :4].T), rows[:, 4], points=rows[:, 5:].reshape(len(rows), 17, 3)[:, :, :2].reshape(len(rows), -1))


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


def triples(outputs, size, _):
    """D-FINE's and DEIM's last step: labels, corners in pixels of the size that was asked for, and scores."""
    labels, corners, scores = (v[0] for v in outputs)
    return objects(corners, scores, labels, suppress=1)


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
    """The best class of each vector (`outputs`: of the first so many), by softmax where the numbers are logits."""
    found = []
    for values in outputs[:options.get("outputs")]:
        values = values.ravel()
        if options.get("logits"):
            values = softmax(values)
        found.append((int(values.argmax()), float(values.max())))
    return {"best": found}


def share(outputs, size, _):
    """The likelier of two classes, of which a sigmoid tells the second's probability."""
    p = float(outputs[0].ravel()[0])
    return {"best": [(1, p) if p >= .5 else (0, 1 - p)]}


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


def mesh_of_a_row(outputs, size, _):
    """Peppa-Facial-Landmark: 68 points as shares, then three angles and four states of the eyes and the mouth."""
    return {"points": outputs[0].ravel()[:136].reshape(-1, 2) * size}


def posenet(outputs, size, options):
    """One person: the best cell of each heat map, moved by the offsets there."""
    heat, offsets = (outputs[k][0] for k in options["outputs"])
    points, stride = [], options.get("stride", 16)
    for k in range(17):
        y, x = np.unravel_index(heat[:, :, k].argmax(), heat.shape[:2])
        points.append((x * stride + offsets[y, x, k + 17], y * stride + offsets[y, x, k]))
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


def angles_apart(outputs, size, options):
    """An output an angle, which its name tells: y, p and r after "angle_" or "fc_"."""
    of = {name.replace("angle_", "").replace("fc_", "").replace("_fc", ""): value.ravel()[0] for name, value in zip(options["names"], outputs)}
    return {"angles": np.array([of["y"], of["p"], of["r"]])}


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
    yolov5, yolo5face, yolox_logits, yolov8_pose, angles_apart, detection_output, own_anchors, share, yolov8_points, yolov8_boxes, distances, picodet, fastestdet_rows, triples, mesh_of_a_row, posenet, number, peaks, offset_maps)}
