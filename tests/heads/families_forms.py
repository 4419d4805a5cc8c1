"""Further families for families.py: boxes that the graph has not suppressed, a background that comes last, labels of other lengths, and
small detectors, plates, head poses and anomalies as their authors export them."""
import math

import numpy as np

F = np.float32


def logit(p):
    return math.log(p / (1 - p))


def side(rng):
    return 32 * int(rng.integers(8, 14))


def cells_of(size, per_cell=1):
    return sum((size // s) ** 2 for s in (8, 16, 32)) * per_cell


def candidates(scene_of, rng, write, form, per_cell=1, centres=False, classes=80, files=None):
    """As DeepStream-Yolo's exporters leave them: a row for each cell, and each object found four times."""
    size = side(rng)
    scene = scene_of(rng, (size, size), "letterbox", classes)
    n = cells_of(size, per_cell)
    middle, extent = rng.uniform(4, size, (n, 2)), rng.uniform(4, size / 3, (n, 2))
    boxes = np.concatenate([middle, extent], 1) if centres else np.concatenate([middle - extent / 2, middle + extent / 2], 1)
    scores, labels = rng.uniform(.001, .04, n), rng.integers(0, classes, n)
    places = iter(rng.permutation(n))
    for b in scene.boxes:
        right = np.array(scene.centers(b) if centres else scene.corners(b))
        for shift in (0, 1.5, -1.5, 1):
            i = next(places)
            boxes[i], labels[i] = right, b[4]
            boxes[i, :2] += shift
            if not centres:
                boxes[i, 2:] += shift
            scores[i] = b[5] - .02 * abs(shift)
    boxes, scores, labels = boxes.astype(F)[None], scores.astype(F).reshape(1, n, 1), labels.astype(F).reshape(1, n, 1)
    outputs = [("output", np.concatenate([boxes, scores, labels], 2))] if form == "rows" else [("boxes", boxes), ("scores", scores), ("classes", labels)]
    write(scene, (1, 3, size, size), outputs, scene.truth(), input_name="input", files=files)


def backgrounds(scene_of, rng, write, place, logits=False, labels=None, classes=5):
    """Boxes and scores with a background first or last, by a softmax in the graph or left to the reader. labels: of how many classes."""
    size = side(rng)
    scene = scene_of(rng, (size, size), "stretch", classes)
    n = int(rng.integers(200, 900))
    boxes = np.sort(rng.uniform(0, 1, (n, 2, 2)), 1).reshape(1, n, 4).astype(F)
    columns = [classes, *range(classes)] if place == "first" else [*range(classes), classes]
    scores = np.full((1, n, classes + 1), .001, F)
    scores[..., classes] = 1 - .001 * classes
    truth = scene.truth()
    for b, i, item in zip(scene.boxes, rng.permutation(n), truth):
        boxes[0, i] = np.array(scene.corners(b)) / size
        scores[0, i] = .001
        scores[0, i, b[4]] = b[5]
        scores[0, i, classes] = 1 - b[5] - .001 * (classes - 1)
        item["label_id"] = columns.index(b[4])
        if labels:
            item["label"] = f"class {b[4]}"
    scores = scores[..., columns]
    if logits:
        scores = np.log(scores) + 4
    names = [f"class {k}" for k in range(classes)]
    if labels == classes + 1:
        names = ["background", *names] if place == "first" else [*names, "background"]
    write(scene, (1, 3, size, size), [("boxes", boxes), ("scores", scores)], truth, files={"labels.txt": "\n".join(names) + "\n"} if labels else None,
          properties="labels-file={folder}/labels.txt" if labels else "")


def one_label_more(scene_of, rng, write):
    """YOLO of 80 classes with 81 names, of which the first is the background's."""
    size = side(rng)
    scene = scene_of(rng, (size, size), "letterbox", 80)
    n = cells_of(size)
    out = np.zeros((1, 84, n), F)
    out[0, :4], out[0, 4:] = rng.uniform(6, size * .8, (4, n)), rng.uniform(0, .04, (80, n))
    truth = scene.truth()
    for b, i, item in zip(scene.boxes, rng.permutation(n), truth):
        out[0, :4, i], out[0, 4:, i] = scene.centers(b), 0
        out[0, 4 + b[4], i] = b[5]
        item["label"] = f"class {b[4]}"
    write(scene, (1, 3, size, size), [("output0", out)], truth, files={"names.txt": "\n".join(["background", *[f"class {k}" for k in range(80)]]) + "\n"},
          properties="labels-file={folder}/names.txt")


def fastestdet(scene_of, rng, write):
    size, g, classes = (352, 352), 22, 80
    scene = scene_of(rng, size, "stretch", classes)
    out = np.zeros((1, 5 + classes, g, g), F)
    out[0, 0], out[0, 5:] = .01, 1 / classes
    for b in scene.boxes:
        x, y = b[0] * g, b[1] * g
        cell = out[0, :, int(y), int(x)]
        certain = .99
        cell[0] = (b[5] / certain ** .4) ** (1 / .6)
        cell[1:5] = math.atanh(x - int(x)), math.atanh(y - int(y)), logit(b[2]), logit(b[3])
        cell[5:] = (1 - certain) / (classes - 1)
        cell[5 + b[4]] = certain
    write(scene, (1, 3, *size), [("output", out)], scene.truth())


def fastest_v2(scene_of, rng, write):
    size, classes = (352, 352), 80
    anchors = (((12.64, 19.39), (37.88, 51.48), (55.71, 138.31)), ((126.91, 78.23), (131.57, 214.55), (279.92, 258.87)))
    scene = scene_of(rng, size, "stretch", classes)
    maps = [np.full((1, g, g, 15 + classes), .01, F) for g in (22, 11)]
    for m in maps:
        m[..., 15:] = 1 / classes
    for b in scene.boxes:
        x, y, w, h = scene.centers(b)
        level, a = min(((l, a) for l in (0, 1) for a in range(3)), key=lambda k: abs(math.log(w / anchors[k[0]][k[1]][0])) + abs(math.log(h / anchors[k[0]][k[1]][1])))
        s, (aw, ah) = (16, 32)[level], anchors[level][a]
        cell = maps[level][0, int(y / s), int(x / s)]
        cell[4 * a:4 * a + 4] = (x / s - int(x / s) + .5) / 2, (y / s - int(y / s) + .5) / 2, math.sqrt(w / aw) / 2, math.sqrt(h / ah) / 2
        cell[12 + a] = b[5] / .99
        cell[15:] = .01 / (classes - 1)
        cell[15 + b[4]] = .99
    write(scene, (1, 3, *size), [("794", maps[0]), ("796", maps[1])], scene.truth())


def dbface(scene_of, rng, write):
    size = (384, 384)
    scene = scene_of(rng, size, "corner", 1, points=5)
    g = size[0] // 4
    heat, sides, marks = np.full((1, 1, g, g), .01, F), np.ones((1, 4, g, g), F), np.zeros((1, 10, g, g), F)

    def packed(v):                               # the inverse of the network's exponential, over 4
        return (v / math.e if abs(v) < math.e else math.copysign(math.log(abs(v)), v)) / 4
    for b, points in zip(scene.boxes, scene.points):
        x, y, _, _ = scene.centers(b)
        x0, y0, x1, y1 = scene.corners(b)
        gx, gy = int(x / 4), int(y / 4)
        heat[0, 0, gy, gx] = b[5]
        sides[0, :, gy, gx] = gx - x0 / 4, gy - y0 / 4, x1 / 4 - gx, y1 / 4 - gy
        marks[0, :, gy, gx] = [packed(scene.at(*p)[0] / 4 - gx) for p in points] + [packed(scene.at(*p)[1] / 4 - gy) for p in points]
    write(scene, (1, 3, *size), [("hm", heat), ("tlrb", sides), ("landmark", marks)], scene.truth(landmarks=[[list(p) for p in q] for q in scene.points]))


def aizoo(scene_of, rng, write):
    size = (260, 260)
    scene = scene_of(rng, size, "stretch", 2)
    priors = []
    for g, sizes in ((33, (.04, .056)), (17, (.08, .11)), (9, (.16, .22)), (5, (.32, .45)), (3, (.64, .72))):
        shapes = [(v, v) for v in sizes] + [(sizes[0] * math.sqrt(r), sizes[0] / math.sqrt(r)) for r in (.62, .42)]
        priors += [((x + .5) / g, (y + .5) / g, w, h) for y in range(g) for x in range(g) for w, h in shapes]
    priors = np.array(priors)
    loc, cls = rng.normal(0, 1, (1, len(priors), 4)).astype(F), np.full((1, len(priors), 2), .01, F)
    for b in scene.boxes:
        i = int(np.argmin(((priors - np.array(b[:4])) ** 2).sum(1)))
        px, py, pw, ph = priors[i]
        loc[0, i] = (b[0] - px) / pw / .1, (b[1] - py) / ph / .1, math.log(b[2] / pw) / .2, math.log(b[3] / ph) / .2
        cls[0, i, b[4]] = b[5]
    write(scene, (1, 3, *size), [("loc_branch_concat", loc), ("cls_branch_concat", cls)], scene.truth())


def plates(scene_of, rng, write):
    """RetinaFace's head with the four corners of a licence plate."""
    size = side(rng)
    scene = scene_of(rng, (size, size), "stretch", 1, points=4)
    priors = [((x + .5) * s, (y + .5) * s, m) for s, sizes in ((8, (16, 32)), (16, (64, 128)), (32, (256, 512))) for y in range(size // s) for x in range(size // s) for m in sizes]
    n = len(priors)
    loc, marks, conf = rng.normal(0, 1, (1, n, 4)).astype(F), rng.normal(0, 1, (1, n, 8)).astype(F), np.tile(np.array([.99, .01], F), (1, n, 1))
    for b, points, i in zip(scene.boxes, scene.points, rng.permutation(n)):
        x, y, w, h = scene.centers(b)
        px, py, m = priors[i]
        loc[0, i] = (x - px) / m / .1, (y - py) / m / .1, math.log(w / m) / .2, math.log(h / m) / .2
        marks[0, i] = [v for p in points for v in ((scene.at(*p)[0] - px) / m / .1, (scene.at(*p)[1] - py) / m / .1)]
        conf[0, i] = 1 - b[5], b[5]
    write(scene, (1, 3, size, size), [("loc", loc), ("conf", conf), ("landms", marks)], scene.truth(landmarks=[[list(p) for p in q] for q in scene.points]))


def head_pose(scene_of, rng, write, kind):
    size = 60 if kind == "numbers" else 224
    scene = scene_of(rng, (size, size), "stretch", 1)
    degrees = rng.uniform(-60, 60, 3)
    if kind == "numbers":
        outputs = [(f"angle_{k}_fc", np.array([[v]], F)) for k, v in zip("ypr", degrees)]
    else:                                        # bins of three degrees from -99 on
        outputs = []
        for name, v in zip(("yaw", "pitch", "roll"), degrees):
            at = (v + 99) / 3
            row = np.full((1, 66), -30, F)
            row[0, int(at)], row[0, int(at) + 1] = math.log(1 - at + int(at)), math.log(at - int(at))
            outputs.append((name, row))
    write(scene, (1, 3, size, size), outputs, [], truth_more={"attributes": {name: (int(round(v)), 1) for name, v in zip(("yaw", "pitch", "roll"), degrees)}})


def anomalib(scene_of, rng, write, odd):
    size = side(rng)
    scene = scene_of(rng, (size, size), "stretch", 1)
    score = float(rng.uniform(.6, .95) if odd else rng.uniform(.05, .4))
    values = rng.uniform(.1, .4, (1, 1, size, size)).astype(F)
    outputs = [("pred_score", np.array([score], F)), ("pred_label", np.array([odd])), ("anomaly_map", values), ("pred_mask", values > .3)]
    write(scene, (1, 3, size, size), outputs, [], input_name="input", truth_more={
        "attributes": {"pred_score": (int(odd), score if odd else 1 - score)}, "map": {"kind": "anomaly", "minimum": float(values.min()), "maximum": float(values.max())}})


def plate_text(scene_of, rng, write):
    """LPRNet: classes before steps, the blank last."""
    letters = [chr(65 + k) for k in range(26)] + [str(k) for k in range(10)] + ["-"]
    scene = scene_of(rng, (94, 24), "stretch", 1)
    picks = rng.permutation(36)[:7]
    out = np.full((1, len(letters), 18), -9, F)
    out[0, -1] = 9
    for step, k in enumerate(picks):
        out[0, -1, 2 * step], out[0, k, 2 * step] = -9, 9
    write(scene, (1, 3, 24, 94), [("output", out)], [], files={"letters.txt": "\n".join(letters) + "\n"}, properties="labels-file={folder}/letters.txt",
          truth_more={"text": "".join(letters[k] for k in picks)})


def digits(scene_of, rng, write):
    """Classes whose names are their numbers."""
    scene = scene_of(rng, (28, 28), "stretch", 1)
    logits = rng.normal(0, 1, (1, 10)).astype(F)
    best = int(rng.integers(10))
    logits[0, best] = 12
    share = math.exp(12) / np.exp(logits.astype(float)).sum()
    write(scene, (1, 3, 28, 28), [("logits", logits)], [], files={"digits.txt": "\n".join(map(str, range(10))) + "\n"}, properties="labels-file={folder}/digits.txt",
          truth_more={"attributes": {"logits": (best, share)}, "labels_named": [str(best)]})


def lanes(scene_of, rng, write, rows, places, first, step):
    """Each lane is a straight line through all rows; the places are spread over the columns."""
    scene = scene_of(rng, (800, 288), "stretch", 1)
    out = np.full((1, places + 1, rows, 4), -20, F)
    truth = []
    for lane in range(4):
        if lane == 2:
            out[0, places, :, lane] = 20
            continue
        xs = np.linspace(*rng.uniform(.05, .95, 2), rows) * (places - 1)
        for row, x in enumerate(xs):
            low = int(x)
            out[0, low, row, lane], out[0, low + 1, row, lane] = math.log(1 - x + low + 1e-9), math.log(x - low + 1e-9)
        points = [[((x + 1) * 799 / (places - 1) - 1) / 800, (first + step * row - 1) / 288] for row, x in enumerate(xs)]
        columns, heights = [p[0] for p in points], [p[1] for p in points]
        truth.append({"label_id": lane, "label": "lane", "confidence": 1.0, "box": [min(columns), min(heights), max(columns), max(heights)], "landmarks": points})
    write(scene, (1, 3, 288, 800), [("200", out)], truth)


def form_families(scene_of):
    def of(make, *arguments, **more):
        return lambda rng, write: make(scene_of, rng, write, *arguments, **more)

    return {
        "candidates-apart": of(candidates, "apart"), "candidates-apart-centres": of(candidates, "apart", centres=True), "candidates-rows": of(candidates, "rows"),
        "candidates-rows-of-anchors": of(candidates, "rows", per_cell=3), "candidates-rows-one-class": of(candidates, "rows", classes=1),
        "background-first": of(backgrounds, "first"), "background-last": of(backgrounds, "last"),
        "background-first-raw": of(backgrounds, "first", logits=True), "background-last-raw": of(backgrounds, "last", logits=True),
        "background-unnamed": of(backgrounds, "first", labels=5), "background-last-unnamed": of(backgrounds, "last", labels=5),
        "background-named": of(backgrounds, "first", labels=6), "background-last-named": of(backgrounds, "last", labels=6),
        "yolov8-background-named": of(one_label_more), "fastestdet": of(fastestdet), "yolo-fastestv2": of(fastest_v2), "dbface": of(dbface), "aizoo": of(aizoo),
        "retinaface-plates": of(plates), "head-pose-numbers": of(head_pose, "numbers"), "head-pose-bins": of(head_pose, "bins"),
        "anomalib-2": of(anomalib, True), "anomalib-2-normal": of(anomalib, False), "lprnet": of(plate_text), "digits": of(digits),
        "lanes-tusimple": of(lanes, 56, 100, 64, 4), "lanes-culane": of(lanes, 18, 200, 121, 9.765),
    }
