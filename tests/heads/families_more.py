"""Further families for families.py: heads before their maps are joined, other sizes and numbers of classes, exporters' further
outputs, and outputs of which no object may come."""
import math

import numpy as np

F, HALF = np.float32, np.float16
STRIDES = (8, 16, 32)


def logit(p):
    return math.log(p / (1 - p))


def oblong(rng):
    return 32 * int(rng.integers(6, 12)), 32 * int(rng.integers(6, 12))


def shape_of(size, last=False):
    return (1, size[1], size[0], 3) if last else (1, 3, size[1], size[0])


def count_of(size):
    return sum((size[0] // s) * (size[1] // s) for s in STRIDES)


def corners_as_shares(scene, b):
    return np.array(scene.corners(b)) / np.tile(np.array((scene.width, scene.height), float), 2)


def bins_of(distance, bins):
    """A distribution whose mean is a distance in steps."""
    low = min(int(distance), bins - 2)
    part = min(max(distance - low, 1e-6), 1 - 1e-6)
    row = np.full(bins, -30, F)
    row[low], row[low + 1] = math.log(1 - part), math.log(part)
    return row


def landmarks_of(scene):
    return [[list(p) for p in points] for points in scene.points]


# ---- YOLO

def cells(scene_of, rng, write, classes=80, dtype=F, points=None, masks=False, turned=False, files=None):
    """v8 and later with any number of classes, oblong; points: (how many, numbers each); turned: with an angle."""
    size = oblong(rng)
    scene = scene_of(rng, size, "letterbox", classes, points=points[0] if points else 0)
    n = count_of(size)
    tail = points[0] * points[1] if points else 32 if masks else int(turned)
    out = np.zeros((1, 4 + classes + tail, n), F)
    out[0, :4] = rng.uniform(6, min(size) * .8, (4, n))
    out[0, 4:4 + classes] = rng.uniform(0, .04, (classes, n))
    if points:
        out[0, 4 + classes:] = rng.uniform(0, size[0], (tail, n))
    if turned:
        out[0, -1] = rng.uniform(-.78, 2.35, n)
    prototypes = np.full((1, 32, size[1] // 4, size[0] // 4), -8, F)
    more = {}
    for k, (b, i) in enumerate(zip(scene.boxes, rng.permutation(n))):
        out[0, :4, i] = scene.centers(b)
        out[0, 4:, i] = 0
        out[0, 4 + b[4], i] = b[5]
        if points:
            rows = np.full(points, .9, F)
            rows[:, :2] = [scene.at(*p) for p in scene.points[k]]
            out[0, 4 + classes:, i] = rows.ravel()
            more.setdefault("keypoints", []).append([[*p, .9][:points[1]] for p in scene.points[k]])
        if masks:
            out[0, 4 + classes + k, i] = 1
            x0, y0, x1, y1 = (int(round(v / 4)) for v in scene.corners(b))
            prototypes[0, k, y0:y1, x0:x1] = 8
            more.setdefault("mask", []).append([(4 * x0 - scene.dx) / scene.scale[0], (4 * y0 - scene.dy) / scene.scale[1],
                                                (4 * x1 - scene.dx) / scene.scale[0], (4 * y1 - scene.dy) / scene.scale[1]])
    outputs = [("output0", out.astype(dtype))] + ([("output1", prototypes.astype(dtype))] if masks else [])
    write(scene, shape_of(size), outputs, scene.truth(**more), files=files)


def split_maps(scene_of, rng, write, last=False, sums=False):
    """v8's distributions and class scores in maps of their own; sums: with the sum of the scores, as accelerators want it."""
    size, classes = oblong(rng), int(rng.integers(2, 30))
    scene = scene_of(rng, size, "letterbox", classes, most=3)
    levels = {s: (np.zeros((size[1] // s, size[0] // s, 64), F),
                  np.full((size[1] // s, size[0] // s, classes), .001 if sums else -9, F)) for s in STRIDES}
    for b in scene.boxes:
        x0, y0, x1, y1 = scene.corners(b)
        s = next((s for s in STRIDES if max(x1 - x0, y1 - y0) / s < 28), 32)
        gx, gy = int((x0 + x1) / 2 / s), int((y0 + y1) / 2 / s)
        cx, cy = (gx + .5) * s, (gy + .5) * s
        levels[s][1][gy, gx, b[4]] = b[5] if sums else logit(b[5])
        levels[s][0][gy, gx] = np.concatenate([bins_of(d / s, 16) for d in (cx - x0, cy - y0, x1 - cx, y1 - cy)])
    outputs = []
    for s in STRIDES:
        parts = [*levels[s]] + ([levels[s][1].sum(-1, keepdims=True)] if sums else [])
        outputs += [(str(318 + 13 * (len(outputs) + k)), (v if last else v.transpose(2, 0, 1))[None]) for k, v in enumerate(parts)]
    write(scene, shape_of(size, last), outputs, scene.truth())


def anchor_maps(scene_of, rng, write, classes=80, squashed=False):
    """v5 cut at its convolutions [1,3*(5+C),h,w], or with its sigmoid [1,3,h,w,5+C]; the finest map first."""
    size = (416, 416)
    scene = scene_of(rng, size, "letterbox", classes)
    anchors = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]
    maps = [np.full((1, 3, size[1] // s, size[0] // s, 5 + classes), -9, F) for s in STRIDES]
    for b in scene.boxes:
        x, y, w, h = scene.centers(b)
        _, level, a = min((abs(math.log(w / q[0])) + abs(math.log(h / q[1])), l, k) for l, row in enumerate(anchors) for k, q in enumerate(row))
        s, (aw, ah) = STRIDES[level], anchors[level][a]
        gx, gy = int(x // s), int(y // s)
        values = ((x / s - gx + .5) / 2, (y / s - gy + .5) / 2, math.sqrt(w / aw) / 2, math.sqrt(h / ah) / 2, b[5] / .99)
        maps[level][0, a, gy, gx, :5] = [logit(min(max(v, 1e-4), 1 - 1e-4)) for v in values]
        maps[level][0, a, gy, gx, 5 + b[4]] = logit(.99)
    maps = [(1 / (1 + np.exp(-m))).astype(F) if squashed else m.transpose(0, 1, 4, 2, 3).reshape(1, -1, *m.shape[2:4]) for m in maps]
    write(scene, shape_of(size), [(f"Conv_{196 + 77 * i}", m) for i, m in enumerate(maps)], scene.truth())


def anchor_rows(scene_of, rng, write, classes, dtype=F, maps=False):
    """v5's joined rows, oblong; maps: with the maps that they were made of beside."""
    size = oblong(rng)
    scene = scene_of(rng, size, "letterbox", classes)
    n = 3 * count_of(size)
    out = np.zeros((1, n, 5 + classes), F)
    out[0, :, :4] = rng.uniform(6, size[0], (n, 4))
    out[0, :, 4:] = rng.uniform(0, .02, (n, 1 + classes))
    for b, i in zip(scene.boxes, rng.permutation(n)):
        out[0, i] = 0
        out[0, i, :5] = [*scene.centers(b), .98]
        out[0, i, 5 + b[4]] = b[5] / .98
    outputs = [("output", out.astype(dtype))]
    if maps:
        outputs += [(str(300 + s), rng.normal(-3, 1, (1, 3, size[1] // s, size[0] // s, 5 + classes)).astype(F)) for s in STRIDES]
    # 52 classes have as many columns as a person's 17 points: no points are seen, and no objects come.
    write(scene, shape_of(size), outputs, [] if classes == 52 else scene.truth())


# ---- faces

def face_maps(scene_of, rng, write, kind, names=True):
    """Two anchors a cell in maps: InsightFace's RetinaFace (offsets to squares) or SCRFD (distances)."""
    size = oblong(rng)
    scene = scene_of(rng, size, "corner" if kind == "scrfd" else "stretch", 1, points=5, least=.2)
    scales = {32: (32, 16), 16: (8, 4), 8: (2, 1)}
    channels = 4 if kind == "retinaface" else 2
    levels = {s: [np.full((1, c, size[1] // s, size[0] // s), fill, F) for c, fill in ((channels, .01), (8, 0), (20, 0))] for s in scales}
    for k, b in enumerate(scene.boxes):
        x0, y0, x1, y1 = scene.corners(b)
        x, y, w, h = scene.centers(b)
        if kind == "retinaface":
            _, s, a = min((abs(math.log(w / (16 * q))) + abs(math.log(h / (16 * q))), s, a) for s in scales for a, q in enumerate(scales[s]))
            unit, shift = 16 * scales[s][a], 7.5
        else:
            s, a = int(rng.choice(STRIDES)), int(rng.integers(2))
            unit, shift = s, 0
        gx, gy = int(x // s), int(y // s)
        ax, ay = gx * s + shift, gy * s + shift
        scores, boxes, points = levels[s]
        scores[0, channels - 2 + a, gy, gx] = b[5]
        boxes[0, 4 * a:4 * a + 4, gy, gx] = ([(x - ax) / unit, (y - ay) / unit, math.log((w + 1) / unit), math.log((h + 1) / unit)]
                                             if kind == "retinaface" else np.array([ax - x0, ay - y0, x1 - ax, y1 - ay]) / unit)
        points[0, 10 * a:10 * a + 10, gy, gx] = ((np.array([scene.at(*p) for p in scene.points[k]]) - [ax, ay]) / unit).ravel()
    order = [(s, part) for s in (32, 16, 8) for part in range(3)] if kind == "retinaface" else [(s, part) for part in range(3) for s in STRIDES]
    parts = ("cls_prob_reshape", "bbox_pred", "landmark_pred")
    outputs = [(f"face_rpn_{parts[part]}_stride{s}" if names else str(443 + 25 * i), levels[s][part]) for i, (s, part) in enumerate(order)]
    write(scene, shape_of(size), outputs, scene.truth(landmarks=landmarks_of(scene)), input_name="data")


# ---- others

def picodet(scene_of, rng, write):
    size, classes, strides = (416, 416), int(rng.integers(2, 80)), (8, 16, 32, 64)
    scene = scene_of(rng, size, "stretch", classes, most=3)
    levels = {s: (np.full((1, (-(-size[0] // s)) ** 2, classes), .002, F), np.zeros((1, (-(-size[0] // s)) ** 2, 32), F)) for s in strides}
    for b in scene.boxes:
        x0, y0, x1, y1 = scene.corners(b)
        s = next((s for s in strides if max(x1 - x0, y1 - y0) / s < 11), 64)
        gx, gy = int((x0 + x1) / 2 / s), int((y0 + y1) / 2 / s)
        cx, cy, i = (gx + .5) * s, (gy + .5) * s, gy * -(-size[0] // s) + gx
        levels[s][0][0, i, b[4]] = b[5]
        levels[s][1][0, i] = np.concatenate([bins_of(d / s, 8) for d in (cx - x0, cy - y0, x1 - cx, y1 - cy)])
    outputs = [(f"save_infer_model/scale_{k}.tmp_1", levels[s][part]) for k, (part, s) in enumerate((p, s) for p in range(2) for s in strides)]
    write(scene, shape_of(size), outputs, scene.truth(), input_name="image")


def tensorflow(scene_of, rng, write, masks=False):
    """All eight outputs of TensorFlow's Object Detection API, and masks."""
    size, n = oblong(rng), 100
    scene = scene_of(rng, size, "stretch", 91, first=1)
    boxes, scores, labels, grids, truth = np.zeros((1, n, 4), F), np.zeros((1, n), F), np.zeros((1, n), F), np.zeros((1, n, 28, 28), F), []
    for i, b in enumerate(scene.boxes):
        boxes[0, i] = corners_as_shares(scene, b)[[1, 0, 3, 2]]
        scores[0, i], labels[0, i] = b[5], b[4]
        grids[0, i, :, :14] = .95
        truth.append([b[0] - b[2] / 2, b[1] - b[3] / 2, b[0], b[1] + b[3] / 2])
    outputs = [("detection_anchor_indices", np.zeros((1, n), F)), ("detection_boxes", boxes), ("detection_classes", labels),
               ("detection_multiclass_scores", rng.uniform(0, 1, (1, n, 91)).astype(F)), ("detection_scores", scores),
               ("num_detections", np.full(1, len(scene.boxes), F)), ("raw_detection_boxes", rng.uniform(0, 1, (1, 1917, 4)).astype(F)),
               ("raw_detection_scores", rng.uniform(0, 1, (1, 1917, 91)).astype(F))]
    outputs += [("detection_masks", grids)] if masks else []
    write(scene, shape_of(size, True), outputs, scene.truth(**({"mask": truth} if masks else {})), dtype=np.uint8)


def mmdeploy(scene_of, rng, write):
    """dets, labels and masks of the whole picture."""
    size, n = (320, 256), 20
    scene = scene_of(rng, size, "stretch", 80)
    rows, labels, masks, truth = np.zeros((1, n, 5), F), np.zeros((1, n), np.int64), np.zeros((1, n, size[1], size[0]), F), []
    for i, b in enumerate(scene.boxes):
        rows[0, i], labels[0, i] = [*scene.corners(b), b[5]], b[4]
        x0, y0, x1, y1 = (int(round(v)) for v in scene.corners(b))
        masks[0, i, y0:y1, x0:(x0 + x1) // 2] = 1
        truth.append([x0 / size[0], y0 / size[1], ((x0 + x1) // 2) / size[0], y1 / size[1]])
    write(scene, shape_of(size), [("dets", rows), ("labels", labels), ("masks", masks)], scene.truth(mask=truth))


def transformers(scene_of, rng, write, softmax):
    """DETR (softmax) and RT-DETR with what Hugging Face's exporter writes beside logits and boxes."""
    size, n, columns = (480, 480), 300, 92 if softmax else 80
    scene = scene_of(rng, size, "stretch", columns - softmax)
    logits, boxes = np.full((1, n, columns), -3 if softmax else -6, F), rng.uniform(.2, .7, (1, n, 4)).astype(F)
    if softmax:
        logits[..., -1] = 9
    for b, i in zip(scene.boxes, rng.permutation(n)):
        boxes[0, i] = b[:4]
        if softmax:
            logits[0, i], logits[0, i, -1] = -20, 0
        logits[0, i, b[4]] = logit(b[5])
    outputs = [("logits", logits), ("pred_boxes", boxes), ("last_hidden_state", rng.normal(0, 1, (1, n, 256)).astype(F))]
    outputs += ([("encoder_last_hidden_state", rng.normal(0, 1, (1, 225, 256)).astype(F))] if softmax else
                [("intermediate_logits", np.repeat(logits[:, None], 3, 1)), ("intermediate_reference_points", np.repeat(boxes[:, None], 3, 1)),
                 ("enc_outputs_class", rng.normal(-5, 1, (1, 4725, 80)).astype(F)),
                 ("enc_outputs_coord_logits", rng.normal(0, 1, (1, 4725, 4)).astype(F))])
    write(scene, shape_of(size), outputs, scene.truth())


def class_first_scores(scene_of, rng, write):
    """PP-YOLOE without its suppression: boxes [1,N,4] and scores [1,C,N]."""
    size, classes = oblong(rng), int(rng.integers(2, 80))
    scene = scene_of(rng, size, "stretch", classes)
    n = count_of(size)
    corner = rng.uniform(10, min(size) * .6, (n, 2))
    boxes, scores = np.concatenate([corner, corner + rng.uniform(10, 60, (n, 2))], 1).astype(F)[None], np.full((1, classes, n), .003, F)
    for b, i in zip(scene.boxes, rng.permutation(n)):
        boxes[0, i] = scene.corners(b)
        scores[0, b[4], i] = b[5]
    write(scene, shape_of(size), [("concat_14.tmp_0", boxes), ("tmp_16", scores)], scene.truth(), input_name="image")


def peaks(scene_of, rng, write):
    """CenterNet with numbers for names and the heat map's maxima beside it."""
    size = (640, 384)
    scene = scene_of(rng, size, "letterbox", 20)
    grid = size[1] // 4, size[0] // 4
    heat, extent, offset = np.full((1, 20, *grid), .004, F), np.zeros((1, 2, *grid), F), np.zeros((1, 2, *grid), F)
    for b in scene.boxes:
        x, y, w, h = scene.centers(b)
        gx, gy = int(x / 4), int(y / 4)
        heat[0, b[4], gy, gx] = b[5]
        extent[0, :, gy, gx] = [w / 4, h / 4]
        offset[0, :, gy, gx] = [x / 4 - gx, y / 4 - gy]
    write(scene, shape_of(size), [("508", heat), ("509", heat), ("511", extent), ("514", offset)], scene.truth())


def persons(scene_of, rng, write):
    """MoveNet multipose."""
    scene = scene_of(rng, (256, 256), "letterbox", 1, points=17)
    out, truth = np.zeros((1, 6, 56), F), []
    for i, b in enumerate(scene.boxes):
        points = np.array([[*reversed(scene.at(*p))] for p in scene.points[i]]) / 256
        x0, y0, x1, y1 = np.array(scene.corners(b)) / 256
        out[0, i] = [*np.concatenate([points, np.full((17, 1), .8)], 1).ravel(), y0, x0, y1, x1, b[5]]
        truth.append([[*p, .8] for p in scene.points[i]])
    write(scene, (1, 256, 256, 3), [("output_0", out)], scene.truth(keypoints=truth), dtype=np.int32, input_name="input")


def nothing(scene_of, rng, write, outputs):
    """Outputs of which no object may come."""
    scene = scene_of(rng, (224, 224), "stretch", 1)
    write(scene, (1, 3, 224, 224), [(name, rng.normal(0, 1, shape).astype(F)) for name, shape in outputs], [])


def more_families(scene_of, yaml):
    """yaml(task, names, **more): the text of an Ultralytics metadata.yaml."""
    def named(task, classes, **more):
        return {"metadata.yaml": yaml(task, [f"class{i}" for i in range(classes)], **more)}

    def of(make, *arguments, **more):
        return lambda rng, write: make(scene_of, rng, write, *arguments, **more)

    return {
        "yolov8-one-class": of(cells, 1), "yolov8-half": of(cells, 2, dtype=HALF), "yolov8-16-classes": of(cells, 16),
        "yolov8-52-named": of(cells, 52, files=named("detect", 52)),
        "yolov8-pose-plane": of(cells, 1, points=(5, 2), files=named("pose", 1, kpt_shape="[5, 2]")),
        "yolov8-pose-3-classes": of(cells, 3, points=(4, 3), files=named("pose", 3, kpt_shape="[4, 3]")),
        "yolov8-hands": of(cells, 1, points=(21, 3), files=named("pose", 1, kpt_shape="[21, 3]")),
        "yolov8-seg-one-class": of(cells, 1, masks=True), "yolov8-seg-half": of(cells, 7, dtype=HALF, masks=True),
        "yolov8-split": of(split_maps), "yolov8-split-last": of(split_maps, last=True), "yolov8-split-sums": of(split_maps, sums=True),
        "yolov5-one-class": of(anchor_rows, 1), "yolov5-half": of(anchor_rows, 2, dtype=HALF), "yolov5-with-maps": of(anchor_rows, 80, maps=True),
        "yolov5-52-classes": of(anchor_rows, 52),
        "yolov5-convolutions": of(anchor_maps), "yolov5-3-classes": of(anchor_maps, 3), "yolov5-squashed": of(anchor_maps, squashed=True),
        "insightface": of(face_maps, "retinaface"), "insightface-numbers": of(face_maps, "retinaface", names=False),
        "scrfd-maps": of(face_maps, "scrfd", names=False),
        "picodet-4-levels": of(picodet), "tensorflow-eight": of(tensorflow), "tensorflow-masks": of(tensorflow, masks=True),
        "mmdeploy-masks": of(mmdeploy), "detr-huggingface": of(transformers, True), "rtdetr-huggingface": of(transformers, False),
        "ppyoloe-raw": of(class_first_scores), "centernet-numbers": of(peaks), "movenet-multipose": of(persons),
        "no-regions": of(nothing, [("rois", (1000, 4)), ("roi_feats", (1000, 1024))]),
        "no-features": of(nothing, [("f1", (1, 64, 56, 56)), ("f2", (1, 128, 28, 28))]),
        "no-hidden-states": of(nothing, [("last_hidden_state", (1, 197, 768)), ("pooler_output", (1, 768))]),
        "no-text-classes": of(nothing, [("logits", (1, 576, 3)), ("pred_boxes", (1, 576, 4)), ("text_embeds", (1, 3, 512))]),
    }
