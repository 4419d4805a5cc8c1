"""Further families for families.py, one for each task that has no boxes alone: turned boxes, maps, key points, text, vectors, several
classes; and detectors before or after a suppression that others do not have."""
import json
import math

import numpy as np

F = np.float32
STRIDES = (8, 16, 32)


def logit(p):
    return math.log(p / (1 - p))


def rotated(x, y, w, h, angle):
    c, s = math.cos(angle), math.sin(angle)
    return [(x + a * w / 2 * c - b * h / 2 * s, y + a * w / 2 * s + b * h / 2 * c) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def hull(points):
    x, y = zip(*points)
    return [float(np.clip(v, 0, 1)) for v in (min(x), min(y), max(x), max(y))]


def pipeline(component, *transforms, **params):
    """MMDeploy's file beside a model, as its SDK reads it."""
    tasks = [dict(type="Task", module="Transform", name="Preprocess", input=["img"], output=["prep_output"], transforms=[
        dict(type="LoadImageFromFile"), *transforms, dict(type="DefaultFormatBundle"), dict(type="Collect", keys=["img"])]),
        dict(name="net", type="Task", module="Net", is_batched=False, input=["prep_output"], output=["infer_output"], input_map={"img": "input"}, output_map={}),
        dict(type="Task", module="mm", name="postprocess", component=component, params=params, output=["post_output"], input=["prep_output", "infer_output"])]
    return {"pipeline.json": json.dumps(dict(pipeline=dict(input=["img"], output=["post_output"], tasks=tasks)))}


def cells_of(size):
    return sum((size // s) ** 2 for s in STRIDES)


# ---- detectors

def mmrotate(scene_of, rng, write, told):
    """Turned boxes in rows of 6, and labels; named as MMDeploy names them, or told by its pipeline.json."""
    size, classes, n = 32 * int(rng.integers(8, 13)), 15, 40
    scene = scene_of(rng, (size, size), "letterbox", classes, least=.2)
    if told:
        scene.dx = scene.dy = 0.0  # MMDetection pads on the right and below
    rows, labels, truth = np.zeros((1, n, 6), F), np.zeros((1, n), np.int64), scene.truth()
    for k, b in enumerate(scene.boxes):
        x, y, w, h = scene.centers(b)
        w, h, angle = w * .8, h * .6, float(rng.uniform(-1.5, 1.5))
        rows[0, k], labels[0, k] = [x, y, w, h, angle, b[5]], b[4]
        corners = [((px - scene.dx) / scene.scale[0], (py - scene.dy) / scene.scale[1]) for px, py in rotated(x, y, w, h, angle)]
        truth[k].update(box=hull(corners), corners=[list(p) for p in corners])
    files = pipeline("ResizeRBBox", dict(type="Resize", keep_ratio=True, size=[size, size]), dict(type="Pad", size=[size, size], pad_val=dict(img=[114] * 3)),
                     score_thr=0.05) if told else {}
    write(scene, (1, 3, size, size), [("1450", rows), ("1451", labels)] if told else [("dets", rows), ("labels", labels)], truth, files=files,
          properties="" if told else "resize-mode=letterbox")


def turned(scene_of, rng, write, yaml, rows):
    """YOLO with an angle: cells, or rows after the suppression (end to end)."""
    size, classes = 32 * int(rng.integers(8, 13)), 5
    scene = scene_of(rng, (size, size), "letterbox", classes, least=.2)
    n = 300 if rows else cells_of(size)
    out = np.zeros((1, n, 7) if rows else (1, 5 + classes, n), F)
    if not rows:
        out[0, :4], out[0, 4:-1] = 8, rng.uniform(0, .04, (classes, n))
    places, truth = rng.permutation(n), scene.truth()
    for k, b in enumerate(scene.boxes):
        x, y, w, h = scene.centers(b)
        w, h, angle = w * .8, h * .6, float(rng.uniform(-.7, 2.3))
        if rows:
            out[0, k] = [x, y, w, h, b[5], b[4], angle]
        else:
            out[0, :, places[k]] = [x, y, w, h, *(b[5] if c == b[4] else 0 for c in range(classes)), angle]
        corners = [((px - scene.dx) / scene.scale[0], (py - scene.dy) / scene.scale[1]) for px, py in rotated(x, y, w, h, angle)]
        truth[k].update(box=hull(corners), corners=[list(p) for p in corners])
    more = {"end2end": "true"} if rows else {}
    write(scene, (1, 3, size, size), [("output0", out)], truth, files={"metadata.yaml": yaml("obb", [f"class{i}" for i in range(classes)], **more)})


def tasks_in_rows(scene_of, rng, write, yaml, task):
    """End-to-end rows with points or mask coefficients."""
    size = 32 * int(rng.integers(8, 13))
    scene = scene_of(rng, (size, size), "letterbox", 1 if task == "pose" else 9, points=17 if task == "pose" else 0)
    out = np.zeros((1, 300, 57 if task == "pose" else 38), F)
    prototypes, more = np.full((1, 32, size // 4, size // 4), -8, F), {}
    for k, b in enumerate(scene.boxes):
        out[0, k, :6] = [*scene.corners(b), b[5], b[4]]
        if task == "pose":
            out[0, k, 6:] = np.array([[*scene.at(*p), .9] for p in scene.points[k]]).ravel()
            more.setdefault("keypoints", []).append([[*p, .9] for p in scene.points[k]])
            continue
        out[0, k, 6 + k] = 1
        x0, y0, x1, y1 = (int(round(v / 4)) for v in scene.corners(b))
        prototypes[0, k, y0:y1, x0:x1] = 8
        more.setdefault("mask", []).append([(4 * x0 - scene.dx) / scene.scale[0], (4 * y0 - scene.dy) / scene.scale[1],
                                            (4 * x1 - scene.dx) / scene.scale[0], (4 * y1 - scene.dy) / scene.scale[1]])
    outputs = [("output0", out)] + ([("output1", prototypes)] if task == "segment" else [])
    names = ["person"] if task == "pose" else [f"class{i}" for i in range(9)]
    points = {"kpt_shape": "[17, 3]"} if task == "pose" else {}
    write(scene, (1, 3, size, size), outputs, scene.truth(**more), files={"metadata.yaml": yaml(task, names, end2end="true", **points)})


def picked(scene_of, rng, write):
    """YOLOv3 of the ONNX model zoo: boxes y before x, scores with the classes first, and rows of image, class, box."""
    size = (416, 416)
    scene = scene_of(rng, size, "letterbox", 80)
    n = 3 * cells_of(416)
    boxes, scores, rows = rng.uniform(0, 416, (1, n, 4)).astype(F), rng.uniform(0, .9, (1, 80, n)).astype(F), []
    for b, i in zip(scene.boxes, rng.permutation(n)):
        boxes[0, i] = np.array(scene.corners(b))[[1, 0, 3, 2]]
        scores[0, b[4], i] = b[5]
        rows.append([0, b[4], i])
    rows += [[-1, -1, -1]] * 3
    outputs = [("yolonms_layer_1/ExpandDims_1:0", boxes), ("yolonms_layer_1/ExpandDims_3:0", scores),
               ("yolonms_layer_1/concat_2:0", np.array(rows, np.int32))]
    write(scene, (1, 3, 416, 416), outputs, scene.truth(), inputs=(("image_shape", (1, 2), F),), input_name="input_1")


def ssd_grids(kind):
    """Anchors as centre and size in shares, by each kind's published numbers."""
    anchors = []
    if kind == "tensorflow":
        scales = [.2, .35, .5, .65, .8, .95, 1.]
        for i, side in enumerate((19, 10, 5, 3, 2, 1)):
            pairs = ([(.1, 1), (.2, 2), (.2, .5)] if i == 0 else
                     [(scales[i], r) for r in (1, 2, .5, 3, 1 / 3)] + [(math.sqrt(scales[i] * scales[i + 1]), 1)])
            anchors += [((x + .5) / side, (y + .5) / side, s * math.sqrt(r), s / math.sqrt(r)) for y in range(side) for x in range(side) for s, r in pairs]
        return np.array(anchors, F)
    sizes = (30, 60, 111, 162, 213, 264, 315)
    for i, (side, step, ratios) in enumerate(((38, 8, (2,)), (19, 16, (2, 3)), (10, 32, (2, 3)), (5, 64, (2, 3)), (3, 100, (2,)), (1, 300, (2,)))):
        s, between = sizes[i] / 300, math.sqrt(sizes[i] * sizes[i + 1]) / 300
        shapes = [(s, s), (between, between)] + [v for r in ratios for v in ((s * math.sqrt(r), s / math.sqrt(r)), (s / math.sqrt(r), s * math.sqrt(r)))]
        anchors += [((x + .5) * step / 300, (y + .5) * step / 300, w, h) for y in range(side) for x in range(side) for w, h in shapes]
    return np.array(anchors, F)


def ssd_raw(scene_of, rng, write, kind):
    scene = scene_of(rng, (300, 300), "stretch", 91 if kind == "tensorflow" else 21, first=1)
    anchors = ssd_grids(kind)
    n, classes = len(anchors), 91 if kind == "tensorflow" else 21
    offsets = rng.normal(0, .3, (1, n, 4)).astype(F)
    scores = np.full((1, n, classes), -7, F) if kind == "tensorflow" else np.zeros((1, n, classes), F)
    if kind != "tensorflow":
        scores[..., 0] = 1
    for b in scene.boxes:
        x, y, w, h = b[:4]
        i = int(np.argmin(((anchors[:, :2] - [x, y]) ** 2).sum(1) + 2 * ((anchors[:, 2:] - [w, h]) ** 2).sum(1)))
        ax, ay, aw, ah = anchors[i]
        d = [(x - ax) / aw / .1, (y - ay) / ah / .1, math.log(w / aw) / .2, math.log(h / ah) / .2]
        offsets[0, i] = [d[1], d[0], d[3], d[2]] if kind == "tensorflow" else d
        scores[0, i] = -7 if kind == "tensorflow" else 0
        scores[0, i, b[4]] = logit(b[5]) if kind == "tensorflow" else b[5]
        if kind != "tensorflow":
            scores[0, i, 0] = 1 - b[5]
    names = ("raw_outputs/box_encodings", "raw_outputs/class_predictions") if kind == "tensorflow" else ("loc", "conf")
    write(scene, (1, 300, 300, 3) if kind == "tensorflow" else (1, 3, 300, 300), [(names[0], offsets), (names[1], scores)], scene.truth())


# ---- maps: the truth is a point of the frame and the class or the value there

def class_map(scene_of, rng, write, kind):
    size = (96, 64)
    scene = scene_of(rng, size, "stretch", 6, first=1, least=.25)
    rows, columns = (64, 96) if kind != "quarter" else (16, 24)
    numbers = np.zeros((rows, columns), np.int64)
    for b in scene.boxes:
        x0, y0, x1, y1 = b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2
        numbers[round(y0 * rows):round(y1 * rows), round(x0 * columns):round(x1 * columns)] = b[4]
    scores = np.eye(6, dtype=F)[numbers]
    value = {"logits": (8 * scores - 4).transpose(2, 0, 1)[None], "last": scores[None] * 9, "quarter": (8 * scores - 4).transpose(2, 0, 1)[None],
             "numbers": numbers[None], "numbers-map": numbers[None, None].astype(np.int32)}[kind]
    points = [[b[0], b[1], b[4]] for b in scene.boxes] + [[.005, .005, 0]]
    write(scene, (1, 3, 64, 96), [("segmentation_output" if kind != "logits" else "out", value)], [], truth_more={"classes_at": points})


def value_map(scene_of, rng, write, name, kind):
    size = (128, 96)
    scene = scene_of(rng, size, "stretch", 1)
    values = np.linspace(.05, .95, 96 * 128, dtype=F).reshape(1, 96, 128)
    if kind == "depth":
        values = values * 20
    write(scene, (1, 3, 96, 128), [(name, values if kind == "depth" else values[None])], [],
          truth_more={"map": {"kind": kind, "minimum": float(values.min()), "maximum": float(values.max())}})


# ---- key points of one person or face: an object of the whole frame

def whole(points, confidence=.9):
    return {"label_id": 0, "confidence": confidence, "box": [0, 0, 1, 1], **points}


def person(scene_of, rng, write, kind):
    size = (192, 192) if kind == "movenet" else (192, 256)
    scene = scene_of(rng, size, "letterbox", 1)
    points = np.array([scene.at(*p) for p in rng.uniform(.15, .85, (17, 2))])       # network pixels
    if kind == "heatmaps":
        maps = np.zeros((1, 17, 64, 48), F)
        for k, (x, y) in enumerate(points):
            maps[0, k, int(y / 4), int(x / 4)] = .9
        points = points // 4 * 4
        outputs, dtype, shape = [("output", maps)], F, (1, 3, 256, 192)
    elif kind == "simcc":
        x_bins, y_bins = np.zeros((1, 17, 384), F), np.zeros((1, 17, 512), F)
        for k, (x, y) in enumerate(points):
            x_bins[0, k, int(x * 2)] = y_bins[0, k, int(y * 2)] = .9
        outputs, dtype, shape = [("simcc_x", x_bins), ("simcc_y", y_bins)], F, (1, 3, 256, 192)
    else:
        marks = np.array([[y / 192, x / 192, .9] for x, y in points], F)
        outputs, dtype, shape = [("output_0", marks[None, None])], np.int32, (1, 192, 192, 3)
    shares = [[float(x - scene.dx) / scene.scale[0], float(y - scene.dy) / scene.scale[1], .9] for x, y in points]
    write(scene, shape, outputs, [whole({"keypoints": shares})], dtype=dtype, properties="threshold=0.3")


def landmarks(scene_of, rng, write, kind):
    """Five points of a face in shares; FaceMesh in network pixels with a logit beside; MediaPipe's hand with its score, which hand it is,
    and the points in metres; BlazePose with maps beside."""
    if kind == "five":
        scene = scene_of(rng, (48, 48), "stretch", 1)
        points = rng.uniform(.2, .8, (5, 2))
        outputs, confidence, shape = [("landmarks", points.reshape(1, 10).astype(F))], 1, (1, 3, 48, 48)
    elif kind in ("hand", "hand-named"):
        scene = scene_of(rng, (224, 224), "letterbox", 1)
        points = rng.uniform(.2, .8, (21, 2))
        hand = np.concatenate([[scene.at(*p) for p in points], np.zeros((21, 1))], 1).reshape(1, 63).astype(F)
        names = ("Identity", "Identity_1", "Identity_2", "Identity_3") if kind == "hand" else ("landmarks", "hand_score", "handedness", "world_landmarks")
        outputs = list(zip(names, (hand, np.full((1, 1), .8, F), np.full((1, 1), .1, F), rng.uniform(-.1, .1, (1, 63)).astype(F))))
        confidence, shape = .8, (1, 224, 224, 3)
    elif kind == "body":
        scene = scene_of(rng, (256, 256), "letterbox", 1)
        points = rng.uniform(.2, .8, (33, 2))
        rows = np.zeros((39, 5), F)
        rows[:33, :2], rows[:, 3] = [scene.at(*p) for p in points], 4
        outputs = [("Identity", rows.reshape(1, 195)), ("Identity_1", np.full((1, 1), .8, F)), ("Identity_2", rng.normal(0, 1, (1, 256, 256, 1)).astype(F)),
                   ("Identity_3", rng.normal(0, 1, (1, 64, 64, 39)).astype(F)), ("Identity_4", rng.normal(0, .1, (1, 117)).astype(F))]
        write(scene, (1, 256, 256, 3), outputs, [whole({"keypoints": [[*p, 1 / (1 + math.exp(-4))] for p in points.tolist()]}, .8)])
        return
    else:
        scene = scene_of(rng, (192, 192), "stretch", 1)
        points = rng.uniform(.2, .8, (468, 2))
        mesh = np.concatenate([points * 192, np.zeros((468, 1))], 1)
        outputs, confidence, shape = [("conv2d_21", mesh.reshape(1, 1, 1, 1404).astype(F)), ("conv2d_31", np.full((1, 1, 1, 1), logit(.8), F))], .8, (1, 192, 192, 3)
    write(scene, shape, outputs, [whole({"landmarks": points.tolist()}, confidence)])


# ---- text, vectors, classes

def text_boxes(scene_of, rng, write):
    """DB: shrunk regions of probability. They grow back by area over perimeter times 1.5."""
    size = (320, 192)
    scene = scene_of(rng, size, "corner", 1)
    values, objects = np.zeros((1, 1, 192, 320), F), []
    for b in scene.boxes:
        x0, y0, x1, y1 = (int(round(v)) for v in scene.corners(b))
        values[0, 0, y0:y1, x0:x1] = b[5]
        grown = (x1 - x0) * (y1 - y0) * 1.5 / (2 * (x1 - x0 + y1 - y0))
        box = [(x0 - grown) / scene.scale[0], (y0 - grown) / scene.scale[1], (x1 + grown) / scene.scale[0], (y1 + grown) / scene.scale[1]]
        objects.append({"label_id": 0, "confidence": b[5], "box": [float(np.clip(v, 0, 1)) for v in box], "corners": [[box[0], box[1]], [box[2], box[1]], [box[2], box[3]], [box[0], box[3]]]})
    write(scene, (1, 3, 192, 320), [("sigmoid_0.tmp_0", values)], objects, properties="post-process=text-detection")


def text_line(scene_of, rng, write, layout, blank):
    """CTC in steps: [1,T,C] or [T,1,C]; the blank first (PP-OCR) or last."""
    letters = "abcdefghij0123456789"
    scene = scene_of(rng, (320, 48), "stretch", 1)
    text = "".join(letters[i] for i in rng.integers(0, len(letters), 7))
    shift, none = (1, 0) if blank == "first" else (0, len(letters))
    steps = [v for c in text for v in (letters.index(c) + shift, letters.index(c) + shift, none)]
    steps = (steps + [none] * 40)[:40]
    scores = np.full((40, len(letters) + 1), .1 / len(letters), F)
    scores[np.arange(40), steps] = .9
    value = scores[None] if layout == "batch" else scores[:, None]
    dictionary = list(letters) if blank == "first" else [*letters, "<blank>"]
    write(scene, (1, 3, 48, 320), [("softmax_text", value)], [], files={"dictionary.txt": "\n".join(dictionary) + "\n"},
          properties="labels-file={folder}/dictionary.txt", truth_more={"text": text})


def vector(scene_of, rng, write, shape, name):
    scene = scene_of(rng, (64, 128), "stretch", 1)
    value = rng.normal(0, 1, shape).astype(F)
    write(scene, (1, 3, 128, 64), [(name, value)], [], truth_more={"embedding": [float(v) for v in value.ravel()]})


def several_classes(scene_of, rng, write):
    """An output for each attribute, with its labels in groups."""
    scene = scene_of(rng, (72, 72), "stretch", 1)
    kinds, colors = np.full((1, 4, 1, 1), .05, F), np.full((1, 3), .1, F)
    k, c = int(rng.integers(4)), int(rng.integers(3))
    kinds[0, k], colors[0, c] = .85, .8
    labels = ["type: car", "bus", "truck", "van", "color: red", "green", "blue"]
    write(scene, (1, 3, 72, 72), [("type", kinds), ("color", colors)], [], files={"labels.txt": "\n".join(labels) + "\n"},
          properties="labels-file={folder}/labels.txt",
          truth_more={"attributes": {"type": [k, .85], "color": [c, .8]}})


def tree_of_classes(scene_of, rng, write):
    """OpenVINO Training Extensions: a group of vehicles, below car a group of colours, and a group of several answers."""
    scene = scene_of(rng, (64, 64), "stretch", 1)
    config = {"cls_heads_info": {"num_multiclass_heads": 2, "num_multilabel_classes": 2, "head_idx_to_logits_range": {"0": [0, 2], "1": [2, 5]},
                                 "num_single_label_classes": 5, "empty_multiclass_head_indices": [],
                                 "class_to_group_idx": {"car": [0, 0], "bus": [0, 1], "red": [1, 0], "green": [1, 1], "blue": [1, 2], "lights": [2, 0], "roof": [2, 1]},
                                 "all_groups": [["car", "bus"], ["red", "green", "blue"], ["lights"], ["roof"]],
                                 "label_to_idx": {"car": 0, "bus": 1, "red": 2, "green": 3, "blue": 4, "lights": 5, "roof": 6}},
              "label_tree_edges": [["red", "car"], ["green", "car"], ["blue", "car"]]}
    c = int(rng.integers(3))
    values = np.array([[6, -6, *(6 if i == c else -6 for i in range(3)), 5, -5]], F)
    info = dict(model_type="Classification", labels="car bus red green blue lights roof", hierarchical="True", hierarchical_config=json.dumps(config),
                output_raw_scores="True", confidence_threshold="0.5")
    color = ("red", "green", "blue")[c]
    write(scene, (1, 3, 64, 64), [("logits", values)], [], info=info, truth_more={"labels_named": ["car", color, "lights"], "labels_absent": ["bus", "roof"]})


def task_families(scene_of, yaml):
    """yaml(task, names, **more): the text of an Ultralytics metadata.yaml."""
    def of(make, *arguments, **more):
        return lambda rng, write: make(scene_of, rng, write, *arguments, **more)

    return {
        "mmrotate": of(mmrotate, False), "mmrotate-pipeline": of(mmrotate, True),
        "yolov8-obb": of(turned, yaml, False), "yolo26-obb": of(turned, yaml, True),
        "yolo26-pose": of(tasks_in_rows, yaml, "pose"), "yolo26-seg": of(tasks_in_rows, yaml, "segment"),
        "yolov3-onnx-zoo": of(picked), "ssd-tensorflow-raw": of(ssd_raw, "tensorflow"), "ssd300-raw": of(ssd_raw, "ssd300"),
        **{f"segmentation-{kind}": of(class_map, kind) for kind in ("logits", "last", "quarter", "numbers", "numbers-map")},
        "depth": of(value_map, "predicted_depth", "depth"), "saliency": of(value_map, "saliency", "saliency"),
        "matting": of(value_map, "pha", "saliency"), "anomaly": of(value_map, "anomaly_map", "anomaly"),
        **{f"person-{kind}": of(person, kind) for kind in ("heatmaps", "simcc", "movenet")},
        "landmarks-five": of(landmarks, "five"), "landmarks-mesh": of(landmarks, "mesh"),
        **{f"landmarks-{kind}": of(landmarks, kind) for kind in ("hand", "hand-named", "body")},
        "text-boxes": of(text_boxes), "text-ppocr": of(text_line, "batch", "first"), "text-blank-last": of(text_line, "batch", "last"),
        "text-steps-first": of(text_line, "steps", "first"),
        "vector-512": of(vector, (1, 512), "embedding"), "vector-map": of(vector, (1, 256, 1, 1), "reid_embedding"),
        "classes-several": of(several_classes), "classes-tree": of(tree_of_classes),
    }
